/* Pods of all schedulers, the objects above them, and the few things that are only looked up. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/run/run.h"

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

static void touch(struct slu_core *c, const char *ns, char sort, const char *name)
{
	char key[SLU_GROUP_NAME_MAX + 3];
	struct group *g;

	snprintf(key, sizeof key, "%c:%.250s", sort, name);
	g = core_group_find(c, ns, key);
	if (g)
		core_group_dirty(c, g);
}

static void touch_named(struct slu_core *c, const char *ns, struct slu_key_place p)
{
	const char *name = slu_key_value(&p, SLU_KEY_GROUP, NULL);

	if (name)
		touch(c, ns, 'g', name);
}

/* The groups that may look different now that an owner changed. */
static void touch_owned(struct slu_core *c, const struct slu_kobj *o)
{
	const struct slu_kowner *above = slu_kmeta_controller(&o->meta);

	touch(c, o->meta.ns, 'u', o->meta.uid);
	if (above)
		touch(c, o->meta.ns, 'u', above->uid);
	touch_named(c, o->meta.ns, slu_key_place_meta(&o->meta));
	if (o->kind == SLU_KIND_JOB)
		touch_named(c, o->meta.ns, slu_key_place_template(&slu_kjob(o)->tmpl));
	else if (o->kind == SLU_KIND_REPLICASET)
		touch_named(c, o->meta.ns, slu_key_place_template(&slu_kreplicaset(o)->tmpl));
	else if (o->kind == SLU_KIND_STATEFULSET)
		touch_named(c, o->meta.ns, slu_key_place_template(&slu_kstatefulset(o)->tmpl));
}

/* A claim was bound or lost: whoever of its namespace waits may care.  Claims change rarely. */
static void touch_space(struct slu_core *c, const char *ns)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		if (!strcmp(group_of(e)->ns, ns))
			core_group_dirty(c, group_of(e));
}

void core_thing_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	char key[600];

	if (!thing_key(key, obj->kind, obj->meta.ns, obj->meta.name))
		return;
	keep(&c->cluster->things, key, obj, gone);
	if (obj->kind == SLU_KIND_PVC || obj->kind == SLU_KIND_PV)
		core_shapes_thing(c);
	if (obj->kind == SLU_KIND_NAMESPACE && !gone)
		core_held_space(c, obj);
	if (obj->kind == SLU_KIND_PRIORITYCLASS && slu_kpriorityclass(obj)->global_default)
		c->cluster->default_priority = gone ? 0 : slu_kpriorityclass(obj)->value;
	if (obj->kind == SLU_KIND_PVC)
		touch_space(c, obj->meta.ns);
	else if (obj->kind == SLU_KIND_PODGROUP)
		touch(c, obj->meta.ns, 'n', obj->meta.name);
	else if (obj->kind == SLU_KIND_PODGROUP_X || obj->kind == SLU_KIND_PODGROUP_SIGS)
		touch(c, obj->meta.ns, 'g', obj->meta.name);
}

static bool same_owner(const struct slu_kobj *a, const struct slu_kobj *b)
{
	return a->meta.generation == b->meta.generation &&
	       a->meta.deleted_us == b->meta.deleted_us &&
	       slu_group_owner_wants(a) == slu_group_owner_wants(b) && a->meta.rv && b->meta.rv &&
	       a->meta.nlabels == b->meta.nlabels && a->meta.nannotations == b->meta.nannotations;
}

void core_owner_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	const struct slu_kobj *old = find(&c->cluster->owners, obj->meta.uid);
	bool same = old && !gone && same_owner(old, obj);

	keep(&c->cluster->owners, obj->meta.uid, obj, gone);
	c->groups->after.news |= obj->kind == SLU_KIND_JOB;
	if (!same)
		touch_owned(c, obj);
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

const struct slu_kpodgroup *core_podgroup(struct slu_core *c, const struct group *g)
{
	static const enum slu_kkind order[] = { SLU_KIND_PODGROUP_X, SLU_KIND_PODGROUP_SIGS };
	const struct slu_kobj *o;

	if (!g->id.explicit)
		return NULL;
	if (g->id.native) {
		o = core_thing(c, SLU_KIND_PODGROUP, g->ns, g->id.key + 2);
		return o ? slu_kpodgroup(o) : NULL;
	}
	for (size_t i = 0; i < SLU_LEN(order); i++) {
		o = core_thing(c, order[i], g->ns, g->id.key + 2);
		if (o)
			return slu_kpodgroup(o);
	}
	return NULL;
}

/* ---- pods ---- */

bool core_binds(const struct slu_core *c, const struct slu_kpod *k)
{
	for (uint32_t i = 0; i < c->cfg->scheduler_names.n; i++)
		if (!strcmp(k->spec.scheduler, c->cfg->scheduler_names.p[i]))
			return true;
	return false;
}

bool core_pod_startable(const struct pod *p)
{
	return !*p->k->spec.node && slu_held_free(&p->k->spec) && !p->k->o.meta.deleted_us &&
	       !slu_kpod_ended(p->k) && (p->binds || slu_held_gated(&p->k->spec));
}

static struct pod *pod_new(struct slu_core *c, const struct slu_kpod *k)
{
	struct pod *p = slu_calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->k = slu_kpod(slu_kobj_ref(&k->o));
	p->serial = ++c->serial;
	p->binds = core_binds(c, k);
	p->managed = p->binds || slu_held_gated(&k->spec) || slu_held_node(k);
	p->e.key = k->o.meta.uid; /* pooled: the same text as long as a version of it is held */
	p->e.n = strlen(k->o.meta.uid);
	if (slu_table_add(&c->cluster->pods, &p->e) < 0) {
		slu_kobj_unref(&p->k->o);
		slu_free(p);
		return NULL;
	}
	return p;
}

static void pod_free(struct slu_core *c, struct pod *p)
{
	core_member_forget(c, p);
	core_held_gone(c, p);
	slu_table_del(&c->cluster->pods, &p->e);
	core_shape_put(c, p->shape);
	slu_kobj_unref(&p->k->o);
	slu_free(p);
}

/* The pod holds nothing any more: it ended, or is gone. */
static void release(struct slu_core *c, struct pod *p, bool ended)
{
	struct group *g = p->group;

	if (g)
		core_group_leave(c, p, ended);
	core_node_leave(c, p);
	if (g)
		core_group_dirty(c, g);
}

/* It is on a node: where we put it, or where somebody else did. */
static void seen_on_node(struct slu_core *c, struct pod *p, const char *at)
{
	struct node *n = core_node(c, at);
	struct slot *s = core_slot_of(p);

	if (!n)
		return;
	if (s && n->handle != SLU_NODE_NONE && s->node == n->handle) {
		core_node_enter(c, n, p);
		if (s->state != SLOT_BOUND) {
			s->state = SLOT_BOUND;
			core_run_settled(c, p->run);
		}
		return;
	}
	if (s) /* bound elsewhere behind our back: what is so counts */
		core_slot_vacate(c, p->run, p, false);
	core_node_enter(c, n, p);
	core_foreign_add(c, p); /* until its group takes it over */
	if (p->group)
		core_group_dirty(c, p->group);
}

void core_pod_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	const struct slu_kpod *k = slu_kpod(obj);
	struct pod *p = pod_of(slu_table_finds(&c->cluster->pods, obj->meta.uid));
	bool was_ended, was_startable;

	if (gone) {
		if (!p)
			return;
		core_held_pod(c, p, true);
		release(c, p, slu_kpod_ended(p->k));
		pod_free(c, p);
		return;
	}
	if (!p) {
		p = pod_new(c, k);
		if (!p)
			return;
		was_ended = was_startable = false;
	} else {
		was_ended = slu_kpod_ended(p->k);
		was_startable = core_pod_startable(p);
		slu_kobj_ref(obj);
		slu_kobj_unref(&p->k->o);
		p->k = k;
		p->e.key = k->o.meta.uid;
	}
	if (slu_kpod_ended(k)) {
		if (!was_ended)
			release(c, p, true);
		core_held_released(c, p);
		core_held_pod(c, p, false);
		return;
	}
	if (p->managed && !p->group) {
		core_member_meet(c, p);
	} else if (p->group && was_startable != core_pod_startable(p)) {
		core_group_dirty(c, p->group);
	}
	if (core_pod_at(p))
		seen_on_node(c, p, core_pod_at(p));
	core_held_released(c, p);
	core_held_pod(c, p, false);
}

void core_pods_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL), *next; e; e = next) {
		struct pod *p = pod_of(e);

		next = slu_table_next(&c->cluster->pods, e);
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
