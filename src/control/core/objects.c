/* Pass a changed object on to each room that it concerns, from the mirror up. */
#include "control/core/objects.h"

#include <stdio.h>

#include "control/ask/ask.h"
#include "control/cluster/cluster.h"
#include "control/fluxjob/fluxjob.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/recover/recover.h"
#include "control/rules/kinds.h"
#include "control/run/run.h"

void core_joined(struct slu_core *c)
{
	core_groups_born(c);
	for (uint32_t i = 0; i < c->groups->joined.n; i++)
		core_held_pod(c, c->groups->joined.p[i], false);
	c->groups->joined.n = 0;
}

/* ---- nodes ---- */

static void node_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	enum core_node_news news = core_node_changed(c, obj, gone);

	if (news == CORE_NODE_SAME)
		return;
	if (core_node(c, obj->meta.name)->handle == SLU_NODE_NONE)
		core_vacant_node_gone(c);
	if (news == CORE_NODE_ADDED)
		core_slots_back(c, core_node(c, obj->meta.name));
	core_near_node(c);
	core_reservations_look(c);
}

/* ---- pods ---- */

/* The pod no longer uses anything: it ended, or is gone. */
static void release_pod(struct slu_core *c, struct pod *p, bool ended)
{
	struct group *g = p->group;

	if (g)
		core_group_leave(c, p, ended);
	core_node_leave(c, p);
	if (g)
		core_group_dirty(c, g);
}

/* The pod is on a node: Sluice put it there, or another scheduler did. */
static void seen_on_node(struct slu_core *c, struct pod *p, const char *at)
{
	struct node *n = core_node(c, at);
	struct slot *s = core_slot_of(p);

	if (!n)
		return;
	if (s && core_slot_on(c, s, n)) {
		core_node_enter(c, n, p);
		if (p->resized && n->handle != SLU_NODE_NONE) {
			p->resized = false;
			core_foreign_more(c, p, p->run->role.p[s->role].shape);
		}
		if (s->state != SLOT_BOUND) {
			core_slot_to(c, p->run, s, SLOT_BOUND);
			core_run_settled(c, p->run);
		}
		return;
	}
	if (s) { /* bound elsewhere by another program: the cluster is right */
		struct run *r = p->run;

		core_slot_vacate(c, r, p, false);
		core_run_settled(c, r);
	}
	core_node_enter(c, n, p);
	if (p->resized)
		core_foreign_remove(c, p);
	p->resized = false;
	core_foreign_add(c, p); /* until its group takes it over */
	if (p->group)
		core_group_dirty(c, p->group);
}

/* The pod has no gate and names a node: whether Sluice released it, or a user only wrote that it did. */
static bool released_by_us(struct slu_core *c, const struct pod *p)
{
	const char *node = slu_held_node(p->k);

	return !c->recovered || (p->sent_to && node && !strcmp(p->sent_to, node));
}

/* Desired, allocated or actual amounts have changed: a resize in place. */
static bool is_resized(const struct slu_kpodspec *a, const struct slu_kpodspec *b)
{
	if (a->nrequests != b->nrequests)
		return true;
	for (uint16_t i = 0; i < a->nrequests; i++)
		if (a->requests[i].amount != b->requests[i].amount ||
		    strcmp(a->requests[i].name, b->requests[i].name))
			return true;
	return false;
}

/* Plan a pod that has no place yet with its new request. */
static void plan_resized(struct slu_core *c, struct pod *p)
{
	core_shape_put(c, p->shape);
	p->shape = NULL;
	if (p->group)
		core_group_dirty(c, p->group);
}

/* A term that no pod carried before: pods that wait and that it selects have fewer nodes now. */
void core_look_for_selected(struct slu_core *c)
{
	if (!c->cluster->new_repels.n)
		return;
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		for (uint32_t i = 0; i < group_of(e)->pod.n; i++) {
			struct pod *p = group_of(e)->pod.p[i];

			if (p->shape && !core_pod_at(p) && !core_slot_of(p) &&
			    core_pod_startable(p) && core_shape_stale(c, p))
				plan_resized(c, p);
		}
	core_repels_put(c, &c->cluster->new_repels);
}

#define STUCK_AGAIN_US 600000000

/* A gang that has its nodes but whose containers cannot start is as good as waiting: say so, for the
 * group and not for each of its pods. */
static void tell_stuck(struct slu_core *c, struct pod *p)
{
	struct group *g = p->group;

	if (!g || !core_pod_stuck(p) || (g->stuck_us && c->now_us - g->stuck_us < STUCK_AGAIN_US))
		return;
	g->stuck_us = c->now_us;
	core_tell(c, p, "NotStarting", true,
		  "group %s has its nodes, but a container of this pod does not start on %s: %s",
		  g->id.name, p->k->spec.node, p->k->waits);
}

static bool is_same_owner(const struct slu_kmeta *a, const struct slu_kmeta *b)
{
	const struct slu_kowner *x = slu_kmeta_controller(a), *y = slu_kmeta_controller(b);

	return (!x && !y) || (x && y && !strcmp(x->uid, y->uid));
}

/* The pod's owner was deleted without it, or the pod got another owner: the pod joins the group that its objects
 * name now.  If its gang is just being placed, it keeps its group. */
static void change_owner(struct slu_core *c, struct pod *p)
{
	if (!core_pod_at(p) && !core_slot_of(p))
		core_group_leave(c, p, false);
	else if (!core_pod_at(p) || !core_group_yield(c, p))
		core_group_dirty(c, p->group);
}

static void pod_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	const struct slu_kpod *k = slu_kpod(obj);
	struct pod *p = pod_of(slu_table_finds(&c->cluster->pods, obj->meta.uid));
	bool was_ended, was_startable, was_gated, wishes = false, new_owner = false, goes = false;

	if (gone) {
		if (!p)
			return;
		core_held_pod(c, p, true);
		release_pod(c, p, slu_kpod_ended(p->k));
		core_member_forget(c, p);
		core_held_gone(c, p);
		core_pod_free(c, p);
		return;
	}
	if (!p) {
		p = core_pod_new(c, k);
		if (!p)
			return;
		was_ended = was_startable = false;
	} else {
		was_ended = slu_kpod_ended(p->k);
		was_startable = core_pod_startable(p);
		was_gated = slu_held_gated(&p->k->spec);
		p->resized |= is_resized(&p->k->spec, &k->spec);
		wishes = p->k->spec.priority != k->spec.priority ||
			 slu_key_wishes_changed(&p->k->o.meta, &k->o.meta);
		goes = !p->k->o.meta.deleted_us && k->o.meta.deleted_us;
		new_owner = !is_same_owner(&p->k->o.meta, &k->o.meta);
		slu_kobj_ref(obj);
		slu_kobj_unref(&p->k->o);
		p->k = k;
		p->e.key = k->o.meta.uid;
		if (!slu_held_gated(&k->spec) && (was_gated || p->sent_to))
			p->vouched = released_by_us(c, p);
	}
	if (slu_kpod_ended(k)) {
		if (!was_ended)
			release_pod(c, p, true);
		core_held_released(c, p);
		core_held_pod(c, p, false);
		return;
	}
	if (new_owner && p->group)
		change_owner(c, p);
	if (p->managed && !p->group) {
		core_member_meet(c, p);
		core_joined(c);
	} else if (p->group && (wishes || goes || was_startable != core_pod_startable(p))) {
		core_group_dirty(c, p->group);
	}
	if (core_pod_at(p)) {
		seen_on_node(c, p, core_pod_at(p));
	} else if (p->resized && !core_slot_of(p)) {
		p->resized = false;
		plan_resized(c, p);
	}
	core_held_released(c, p);
	core_held_pod(c, p, false);
	tell_stuck(c, p);
}

void core_mirror_again(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL), *next; e; e = next) {
		const struct slu_kobj *o = slu_kobj_ref(&pod_of(e)->k->o);

		next = slu_table_next(&c->cluster->pods, e);
		pod_changed(c, o, false);
		slu_kobj_unref(o);
	}
}

void core_phantoms_taken(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->fluxjobs->shown.n; i++) {
		struct core_shown s = c->fluxjobs->shown.p[i];

		struct pod *p = pod_of(slu_table_finds(&c->cluster->pods, s.obj->meta.uid));

		if (p)
			core_lot_resize(c, p, s.others); /* each slot is shown by itself now */
		pod_changed(c, s.obj, s.gone);
		if (!p && s.others) {
			p = pod_of(slu_table_finds(&c->cluster->pods, s.obj->meta.uid));
			if (p)
				core_lot_resize(c, p, s.others);
		}
		slu_kobj_unref(s.obj);
	}
	c->fluxjobs->shown.n = 0;
	core_phantom_forget(c);
}

/* ---- owners ---- */

/* The uid that names the group of the pods that the object makes: of its controller, or its own. */
static const char *uid_above(const struct slu_kobj *o)
{
	const struct slu_kowner *above = slu_kmeta_controller(&o->meta);

	return above && slu_kind_owns(above) ? above->uid : o->meta.uid;
}

/* Pods joined the group that the uid names; now another object names it.  Either
 * the pods came long before their owner, and only the owner names its controller, or a user deleted
 * the controller without the owner.  The pods join the other group. */
static void regroup(struct slu_core *c, const struct slu_kobj *owner, const char *uid)
{
	char key[SLU_GROUP_NAME_MAX + 3];
	struct group *g;

	if (!strcmp(uid, uid_above(owner)))
		return;
	snprintf(key, sizeof key, "u:%.250s", uid);
	g = core_group_find(c, owner->meta.ns, key);
	for (uint32_t i = g ? g->pod.n : 0; i-- > 0;) {
		struct pod *p = g->pod.p[i];
		const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

		if (p->stand || !o || strcmp(o->uid, owner->meta.uid))
			continue;
		change_owner(c, p);
		if (p->group)
			continue;
		core_member_meet(c, p);
		if (core_pod_at(p))
			seen_on_node(c, p, core_pod_at(p));
	}
	core_joined(c);
}

static void owner_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	const struct slu_kobj *old = core_owner(c, obj->meta.ns, obj->meta.uid);
	char uid[SLU_GROUP_NAME_MAX];
	bool news;

	snprintf(uid, sizeof uid, "%s", old ? uid_above(old) : obj->meta.uid);
	news = core_owner_changed(c, obj, gone);

	if (obj->kind == SLU_KIND_JOB)
		core_after_news(c, obj->meta.ns);
	if (!gone)
		regroup(c, obj, uid);
	if (news)
		core_groups_touch_owner(c, obj);
	core_held_owner(c, obj, gone);
}

static void lookup_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	if (core_lookup_changed(c, obj, gone))
		core_shapes_volumes(c);
	if (obj->kind == SLU_KIND_NAMESPACE && !gone)
		core_held_space(c, obj);
	core_groups_touch(c, obj);
}

void core_object_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	c->count.objects++;
	if (gone)
		core_census_gone(c, obj);
	switch (obj->kind) {
	case SLU_KIND_NODE:
		node_changed(c, obj, gone);
		break;
	case SLU_KIND_POD:
		pod_changed(c, obj, gone);
		if (gone) /* the object may have ended long ago, with a label */
			core_after_news(c, obj->meta.ns);
		break;
	case SLU_KIND_FLUXJOB:
		core_fluxjob_changed(c, obj, gone);
		core_phantoms_taken(c);
		break;
	case SLU_KIND_RESERVATION:
		core_reservation_changed(c, obj, gone);
		core_groups_touch_wrong(c); /* a group may wait for it */
		break;
	case SLU_KIND_CSINODE:
		if (core_csinode_changed(c, obj, gone))
			core_groups_touch_bound(c, true);
		break;
	case SLU_KIND_TOPOLOGY:
		if (core_topology_changed(c, obj, gone))
			core_groups_touch_bound(c, false);
		break;
	case SLU_KIND_ATTACHMENT:
		core_attachment_changed(c, obj, gone);
		break;
	case SLU_KIND_LIMITRANGE:
		core_limits_changed(c, obj, gone);
		core_held_templates(c, obj->meta.ns);
		break;
	case SLU_KIND_RUNTIMECLASS:
		lookup_changed(c, obj, gone);
		core_held_templates(c, NULL);
		break;
	default:
		if (slu_kind_makes((enum slu_kkind)obj->kind))
			owner_changed(c, obj, gone);
		else
			lookup_changed(c, obj, gone);
	}
}

void core_kind_resent(struct slu_core *c, const struct slu_rec_resent *r)
{
	struct core_changes d = { 0 };

	if (core_resent(c, r, &d) == 0) {
		for (uint32_t i = 0; i < d.gone.n; i++)
			slu_kobj_ref(d.gone.p[i]); /* the mirror lets go of it */
		for (uint32_t i = 0; i < d.gone.n; i++) {
			core_object_changed(c, d.gone.p[i], true);
			slu_kobj_unref(d.gone.p[i]);
		}
		for (uint32_t i = 0; i < d.news.n; i++)
			core_object_changed(c, d.news.p[i], false);
	}
	slu_log(SLU_INFO, "objects listed again after a disagreement",
		SLU_STR("kind", slu_kkind_info(r->kind)->kind), SLU_I64("objects", r->obj.n),
		SLU_I64("gone", d.gone.n));
	slu_vec_done(&d.gone);
	slu_vec_done(&d.news);
}

void core_written(struct slu_core *c, const struct slu_rec_written *w)
{
	c->binding -= c->binding > 0;
	if (w->verb == SLU_WRITE_BIND)
		core_slot_answered(c, w);
	else if (w->verb == SLU_WRITE_PATCH)
		core_held_written(c, w);
	else if (w->verb == SLU_WRITE_SPEC || w->verb == SLU_WRITE_CREATE)
		core_resize_written(c, w);
}
