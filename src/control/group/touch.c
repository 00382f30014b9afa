/* Which groups an object that changed may concern. */
#include "control/group/group.h"

#include <stdio.h>

#include "control/rules/kinds.h"

static void touch_groups(struct slu_core *c, const char *ns, char sort, const char *name)
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
		touch_groups(c, ns, 'g', name);
}

/* Make all groups of a namespace dirty, for objects that rarely change.  A user may change a claim often, but until
 * the groups are settled further changes find them dirty already. */
static void touch_space(struct slu_core *c, const char *ns)
{
	uint64_t key = slu_hash_keyed(ns, strlen(ns));

	if (slu_map_get(&c->groups->touched, key))
		return;
	(void)slu_map_put(&c->groups->touched, key,
			  1); /* no memory: the next change touches them again */
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		if (!strcmp(group_of(e)->ns, ns))
			core_group_dirty(c, group_of(e));
}

/* The groups that may look different now that an owner changed. */
void core_groups_touch_owner(struct slu_core *c, const struct slu_kobj *o)
{
	const struct slu_kowner *above = slu_kmeta_controller(&o->meta);
	const struct slu_ktemplate *t = slu_kind_template(o);

	touch_groups(c, o->meta.ns, 'u', o->meta.uid);
	if (above)
		touch_groups(c, o->meta.ns, 'u', above->uid);
	touch_named(c, o->meta.ns, slu_key_place_meta(&o->meta));
	if (t)
		touch_named(c, o->meta.ns, slu_key_place_template(t));
	/* A LeaderWorkerSet makes the leaders of several groups, and its template has none of their
	 * keys. */
	if (t && slu_kpair_get(t->labels, t->nlabels, SLU_LED_SET))
		touch_space(c, o->meta.ns);
}

void core_groups_touch(struct slu_core *c, const struct slu_kobj *obj)
{
	if (obj->kind == SLU_KIND_PVC)
		touch_space(c, obj->meta.ns);
	else if (obj->kind == SLU_KIND_PV && *slu_kpv(obj)->claim_ns)
		touch_space(c, slu_kpv(obj)->claim_ns);
	else if (slu_kkind_is_native_group(obj->kind))
		touch_groups(c, obj->meta.ns, 'n', obj->meta.name);
	else if (obj->kind == SLU_KIND_PODGROUP_X || obj->kind == SLU_KIND_PODGROUP_SIGS)
		touch_groups(c, obj->meta.ns, 'g', obj->meta.name);
}

void core_groups_touch_wrong(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		if (group_of(e)->wrong)
			core_group_dirty(c, group_of(e));
}

void core_groups_touch_bound(struct slu_core *c, bool claims)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		bool bound = false;

		for (uint32_t i = 0; i < group_of(e)->pod.n && !bound; i++) {
			const struct slu_kpodspec *s = &group_of(e)->pod.p[i]->k->spec;

			bound = claims ? s->nclaims : s->flags & SLU_POD_PINS_CPUS;
		}
		if (bound)
			core_group_dirty(c, group_of(e));
	}
}
