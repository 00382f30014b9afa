/* When a pod joins its group: not before the controllers above it are known, because the group's
 * name, size and wishes may stand on them.  Pods and their controllers come by different watches,
 * in any order. */
#include "control/group/group.h"

#include "control/cluster/cluster.h"

#define PATIENCE_US 3000000 /* for a controller that a pod names and the mirror lacks */

static bool owners_known(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

	for (uint32_t up = 0; o && up < SLU_GROUP_OWNERS && slu_kind_owns(o); up++) {
		const struct slu_kobj *obj = core_owner(c, p->k->o.meta.ns, o->uid);

		if (!obj)
			return false;
		o = slu_kmeta_controller(&obj->meta);
	}
	return true;
}

static void join_group(struct slu_core *c, struct pod *p)
{
	if (slu_vec_reserve(&c->groups->joined, c->groups->joined.n + 1) == 0)
		p->group = core_group_join(c, p);
	if (p->group)
		c->groups->joined.p[c->groups->joined.n++] = p;
	else
		slu_log(SLU_ERROR, "out of memory: pod not recorded",
			SLU_STR("pod", p->k->o.meta.name));
}

/* Whether the pod may join without its controllers: it will not be started any more; or it runs, and the
 * lists after a start are complete, so its maker is known or gone. */
static bool needs_no_owner(const struct slu_core *c, const struct pod *p)
{
	return p->k->o.meta.deleted_us || (!c->recovered && core_pod_at(p));
}

void core_member_meet(struct slu_core *c, struct pod *p)
{
	if (p->met_us)
		return; /* waits already */
	if (slu_core_synced(c) && owners_known(c, p)) {
		join_group(c, p);
		return;
	}
	if (slu_vec_push(&c->groups->unowned, p) < 0)
		join_group(c, p);
	else
		p->met_us = c->now_us;
}

void core_member_forget(struct slu_core *c, struct pod *p)
{
	for (uint32_t i = 0; p->met_us && i < c->groups->unowned.n; i++)
		if (c->groups->unowned.p[i] == p) {
			c->groups->unowned.p[i] = c->groups->unowned.p[--c->groups->unowned.n];
			break;
		}
	p->met_us = 0;
}

void core_members_join(struct slu_core *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->groups->unowned.n; i++) {
		struct pod *p = c->groups->unowned.p[i];

		if (!owners_known(c, p) && !needs_no_owner(c, p) &&
		    c->now_us < p->met_us + PATIENCE_US) {
			c->groups->unowned.p[kept++] = p;
			continue;
		}
		p->met_us = 0;
		if (!slu_kpod_ended(p->k))
			join_group(c, p);
	}
	c->groups->unowned.n = kept;
}

int64_t core_members_wake_us(const struct slu_core *c)
{
	return c->groups->unowned.n ? c->groups->unowned.p[0]->met_us + PATIENCE_US : INT64_MAX;
}
