/* Objects that are only looked up: owners by uid; volumes, classes, namespaces and PodGroups by kind and
 * name. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#include "control/rules/life.h"

static bool lookup_key(char out[600], enum slu_kkind kind, const char *ns, const char *name)
{
	int n = snprintf(out, 600, "%d/%s/%s", kind, ns, name);

	return n > 0 && n < 600;
}

static const struct slu_kobj *object_under(const struct slu_table *t, const char *key)
{
	struct slu_entry *e = slu_table_finds(t, key);

	return e ? slu_entry_of(e, struct lookup, e)->obj : NULL;
}

const struct slu_kobj *core_lookup(struct slu_core *c, enum slu_kkind kind, const char *ns,
				   const char *name)
{
	char key[600];

	return lookup_key(key, kind, ns, name) ? object_under(&c->cluster->lookups, key) : NULL;
}

static void keep_newest(struct slu_table *t, const char *key, const struct slu_kobj *obj, bool gone)
{
	struct slu_entry *e = slu_table_finds(t, key);
	struct lookup *x = e ? slu_entry_of(e, struct lookup, e) : NULL;

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

bool core_lookup_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	char key[600];

	if (!lookup_key(key, obj->kind, obj->meta.ns, obj->meta.name))
		return false;
	keep_newest(&c->cluster->lookups, key, obj, gone);
	if (obj->kind == SLU_KIND_PRIORITYCLASS && slu_kpriorityclass(obj)->global_default)
		c->cluster->default_priority = gone ? 0 : slu_kpriorityclass(obj)->value;
	return obj->kind == SLU_KIND_PVC || obj->kind == SLU_KIND_PV;
}

static bool same_owner(const struct slu_kobj *a, const struct slu_kobj *b)
{
	return a->meta.generation == b->meta.generation &&
	       a->meta.deleted_us == b->meta.deleted_us && slu_life_wants(a) == slu_life_wants(b) &&
	       a->meta.rv && b->meta.rv && a->meta.nlabels == b->meta.nlabels &&
	       a->meta.nannotations == b->meta.nannotations &&
	       !slu_key_wishes_changed(&a->meta, &b->meta);
}

bool core_owner_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	const struct slu_kobj *old = object_under(&c->cluster->owners, obj->meta.uid);
	bool same = old && !gone && same_owner(old, obj);

	keep_newest(&c->cluster->owners, obj->meta.uid, obj, gone);
	return !same;
}

int32_t core_priority(struct slu_core *c, const char *class)
{
	const struct slu_kobj *o = *class ? core_lookup(c, SLU_KIND_PRIORITYCLASS, "", class)
					  : NULL;

	return o ? slu_kpriorityclass(o)->value : c->cluster->default_priority;
}

const struct slu_kobj *core_owner(struct slu_core *c, const char *ns, const char *uid)
{
	const struct slu_kobj *o = object_under(&c->cluster->owners, uid);
	size_t n = o ? strlen(o->meta.ns) : 0;

	return o && !strncmp(o->meta.ns, ns, n) && (!ns[n] || ns[n] == '/') ? o : NULL;
}

void core_lookups_done(struct slu_core *c)
{
	for (int t = 0; t < 2; t++) {
		struct slu_table *tab = t ? &c->cluster->owners : &c->cluster->lookups;

		for (struct slu_entry *e = slu_table_next(tab, NULL), *next; e; e = next) {
			struct lookup *x = slu_entry_of(e, struct lookup, e);

			next = slu_table_next(tab, e);
			slu_kobj_unref(x->obj);
			slu_free(x->key);
			slu_free(x);
		}
		slu_table_done(tab);
	}
}
