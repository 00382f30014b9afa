/* Pods of all schedulers, the objects above them, and the few things that are only looked up. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#include "control/rules/life.h"

/* ---- things ---- */

static bool thing_key(char out[600], enum slu_kkind kind, const char *ns, const char *name)
{
	int n = snprintf(out, 600, "%d/%s/%s", kind, ns, name);

	return n > 0 && n < 600;
}

static const struct slu_kobj *find(const struct slu_table *t, const char *key)
{
	struct slu_entry *e = slu_table_finds(t, key);

	return e ? slu_entry_of(e, struct thing, e)->obj : NULL;
}

const struct slu_kobj *core_thing(struct slu_core *c, enum slu_kkind kind, const char *ns,
				  const char *name)
{
	char key[600];

	return thing_key(key, kind, ns, name) ? find(&c->cluster->things, key) : NULL;
}

static void keep(struct slu_table *t, const char *key, const struct slu_kobj *obj, bool gone)
{
	struct slu_entry *e = slu_table_finds(t, key);
	struct thing *x = e ? slu_entry_of(e, struct thing, e) : NULL;

	if (gone) {
		if (!x)
			return;
		slu_table_del(t, e);
		slu_kobj_unref(x->obj);
		slu_free(x->key);
		slu_free(x);
		return;
	}
	if (x) {
		slu_kobj_unref(x->obj);
		x->obj = slu_kobj_ref(obj);
		return;
	}
	x = slu_calloc(1, sizeof *x);
	if (x)
		x->key = slu_strdup(key);
	if (!x || !x->key) {
		slu_free(x);
		return;
	}
	x->e.key = x->key;
	x->e.n = strlen(key);
	if (slu_table_add(t, &x->e) < 0) {
		slu_free(x->key);
		slu_free(x);
		return;
	}
	x->obj = slu_kobj_ref(obj);
}

void core_thing_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	char key[600];

	if (!thing_key(key, obj->kind, obj->meta.ns, obj->meta.name))
		return;
	keep(&c->cluster->things, key, obj, gone);
	if (obj->kind == SLU_KIND_PVC || obj->kind == SLU_KIND_PV)
		core_shapes_thing(c);
	if (obj->kind == SLU_KIND_PRIORITYCLASS && slu_kpriorityclass(obj)->global_default)
		c->cluster->default_priority = gone ? 0 : slu_kpriorityclass(obj)->value;
}

static bool same_owner(const struct slu_kobj *a, const struct slu_kobj *b)
{
	return a->meta.generation == b->meta.generation &&
	       a->meta.deleted_us == b->meta.deleted_us && slu_life_wants(a) == slu_life_wants(b) &&
	       a->meta.rv && b->meta.rv && a->meta.nlabels == b->meta.nlabels &&
	       a->meta.nannotations == b->meta.nannotations;
}

bool core_owner_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	const struct slu_kobj *old = find(&c->cluster->owners, obj->meta.uid);
	bool same = old && !gone && same_owner(old, obj);

	keep(&c->cluster->owners, obj->meta.uid, obj, gone);
	return !same;
}

int32_t core_priority(struct slu_core *c, const char *class)
{
	const struct slu_kobj *o = *class ? core_thing(c, SLU_KIND_PRIORITYCLASS, "", class) : NULL;

	return o ? slu_kpriorityclass(o)->value : c->cluster->default_priority;
}

const struct slu_kobj *core_owner(struct slu_core *c, const char *uid)
{
	return find(&c->cluster->owners, uid);
}

/* ---- what a pod's group is read from ---- */

void core_source(struct slu_core *c, const struct slu_kpod *k, struct slu_group_source *out)
{
	const struct slu_kmeta *m = &k->o.meta;

	*out = (struct slu_group_source){ .pod = k };
	while (out->n_owners < SLU_GROUP_OWNERS) {
		const struct slu_kowner *o = slu_kmeta_controller(m);
		const struct slu_kobj *obj = o ? find(&c->cluster->owners, o->uid) : NULL;

		if (!obj)
			return;
		out->owner[out->n_owners++] = obj;
		m = &obj->meta;
	}
}

/* ---- pods ---- */

bool core_binds(const struct slu_core *c, const struct slu_kpod *k)
{
	for (uint32_t i = 0; i < c->cfg->scheduler_names.n; i++)
		if (!strcmp(k->spec.scheduler, c->cfg->scheduler_names.p[i]))
			return true;
	return false;
}

const char *core_pod_at(const struct pod *p)
{
	if (*p->k->spec.node)
		return p->k->spec.node;
	return p->binds || p->stand || !p->vouched ? NULL : slu_held_node(p->k);
}

bool core_pod_startable(const struct pod *p)
{
	return !*p->k->spec.node && slu_held_free(&p->k->spec) && !p->k->o.meta.deleted_us &&
	       !p->leaving && !slu_kpod_ended(p->k) && (p->binds || slu_held_gated(&p->k->spec));
}

const char *core_pod_uid(const struct pod *p)
{
	return p->stand ? p->stand_key : p->k->o.meta.uid;
}

void core_stand_key(char *buf, size_t n, const char *job, uint32_t i)
{
	snprintf(buf, n, "%.80s#%u", job, i);
}

struct pod *core_pod_new(struct slu_core *c, const struct slu_kpod *k)
{
	struct pod *p = slu_calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->k = slu_kpod(slu_kobj_ref(&k->o));
	p->serial = ++c->serial;
	p->binds = core_binds(c, k);
	/* Later on we know of each pod before we release it; at start the store has to confirm it. */
	p->vouched = !c->recovered;
	p->managed = p->binds || slu_held_gated(&k->spec) || (p->vouched && slu_held_node(k));
	p->e.key = k->o.meta.uid; /* pooled: the same text as long as a version of it is held */
	p->e.n = strlen(k->o.meta.uid);
	if (slu_table_add(&c->cluster->pods, &p->e) < 0) {
		slu_kobj_unref(&p->k->o);
		slu_free(p);
		return NULL;
	}
	return p;
}

void core_pod_free(struct slu_core *c, struct pod *p)
{
	slu_table_del(&c->cluster->pods, &p->e);
	core_shape_put(c, p->shape);
	slu_kobj_unref(&p->k->o);
	slu_free(p);
}

void core_pods_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL), *next; e; e = next) {
		struct pod *p = pod_of(e);

		next = slu_table_next(&c->cluster->pods, e);
		while (p->repels.n)
			core_repel_unref(c, p->repels.p[--p->repels.n].repel);
		slu_vec_done(&p->repels);
		core_shape_put(c, p->shape);
		slu_kobj_unref(&p->k->o);
		slu_free(p);
	}
	slu_table_done(&c->cluster->pods);
	for (int t = 0; t < 2; t++) {
		struct slu_table *tab = t ? &c->cluster->owners : &c->cluster->things;

		for (struct slu_entry *e = slu_table_next(tab, NULL), *next; e; e = next) {
			struct thing *x = slu_entry_of(e, struct thing, e);

			next = slu_table_next(tab, e);
			slu_kobj_unref(x->obj);
			slu_free(x->key);
			slu_free(x);
		}
		slu_table_done(tab);
	}
}
