/* Groups: when a gang is whole, which pods follow it, which places are kept.
 *
 *	gathering ──(enough members)──► queued ──(decided)──► placing ──► running ──► over
 *	    ▲                             │                                 │
 *	    └──────(members went)─────────┘        later members: followers, or a vacant place
 */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define TURNED_AWAY_S 30 /* no member goes where a kubelet refused one */

void core_groups_born(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->groups->born.n; i++) {
		core_after_born(c, c->groups->born.p[i]);
		core_life_begun(c, c->groups->born.p[i]);
	}
	if (c->groups->born.n)
		core_due_begin(c, CORE_AT_STATUS);
	c->groups->born.n = 0;
}

void core_group_end(struct slu_core *c, struct group *g)
{
	while (g->run.n)
		core_run_over(c, g->run.p[0]);
	core_elastic_forget(c, g);
	core_after_gone(c, g);
	core_life_over(c, g);
	core_held_unlink(g);
	core_group_over(c, g);
}

/* Whether a member of a running gang failed or was taken away, and the gang has to start again as a whole. */
static bool lost_member(struct slu_core *c, const struct pod *p, bool ended)
{
	bool told = !strcmp(c->cfg->jobs.on_member_failure, "restart") ||
		    core_native_together(c, p);

	return told && p->run->gang &&
	       (p->run->state == RUN_RUNNING || (p->run->state == RUN_PLACING && core_pod_at(p))) &&
	       core_group_wanted(c, p->group) > 0 && !(ended && p->k->phase == SLU_PHASE_SUCCEEDED);
}

/* Search from the last known place downwards, since members before it may have gone; then upwards. */
static uint32_t member_index(const struct group *g, const struct pod *p)
{
	uint32_t n = g->pod.n, from = SLU_MIN(p->member_at, n ? n - 1 : 0), i;

	for (i = from + 1; n && i-- > 0;)
		if (g->pod.p[i] == p)
			return i;
	for (i = from + 1; i < n; i++)
		if (g->pod.p[i] == p)
			return i;
	return n;
}

static void remove_member(struct group *g, const struct pod *p)
{
	uint32_t at = member_index(g, p);

	if (at == g->pod.n)
		return;
	memmove(&g->pod.p[at], &g->pod.p[at + 1], (--g->pod.n - at) * sizeof p);
	g->stands -= p->stand != NULL;
	g->others -= p->others;
}

void core_group_leave(struct slu_core *c, struct pod *p, bool ended)
{
	struct group *g = p->group;
	struct run *r = p->run;

	core_pod_unkeep(c, p);
	remove_member(g, p);
	if (ended && p->k->phase == SLU_PHASE_SUCCEEDED) {
		const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

		g->ended_ok++;
		g->ended_alone += !o || !slu_kind_owns(o);
		g->newest_us = SLU_MAX(g->newest_us, p->k->o.meta.created_us);
	} else if (ended)
		g->ended_bad++;
	if (ended && p->node && p->node->handle != SLU_NODE_NONE && core_pod_turned_away(p))
		core_avoid(c, g, p->node->handle, TURNED_AWAY_S);
	if (r && core_slot_of(p)) {
		bool again = lost_member(c, p, ended);

		core_slot_vacate(c, r, p,
				 !again && r->state != RUN_UNDOING && core_vacant_kept(c, p));
		core_run_settled(c, r);
		if (again && r->state != RUN_OVER) {
			slu_log(SLU_INFO, "gang lost a member and starts again",
				SLU_STR("job", g->id.name), SLU_STR("ns", g->ns));
			g->disrupted = p->k->disrupted == SLU_TRI_TRUE;
			core_run_undo(c, r);
		}
	} else if (r) {
		for (uint32_t i = r->want.n; i-- > 0;)
			if (r->want.p[i] == p) {
				r->want.p[i] = r->want.p[--r->want.n];
				break;
			}
		p->run = NULL;
	}
	p->group = NULL;
	core_group_dirty(c, g);
}

/* Take the pod out of its run with what it holds: it runs on, in another group, which counts its use. */
static void give_up_slot(struct slu_core *c, struct run *r, struct pod *p)
{
	for (uint32_t i = 0; i < r->slot.n; i++) {
		if (r->slot.p[i].pod != p)
			continue;
		r->slot.p[i].pod = NULL;
		core_slot_to(c, r, &r->slot.p[i], SLOT_VACANT);
		p->run = NULL;
		core_node_leave(c, p);
		core_slot_drop(c, r, i);
		break;
	}
}

bool core_group_yield(struct slu_core *c, struct pod *p)
{
	struct group *g = p->group;
	const struct slot *s = core_slot_of(p);
	struct run *r = p->run;

	if (core_group_names(c, g, p) || g->retired ||
	    (s && (r->state != RUN_RUNNING || s->state != SLOT_BOUND)))
		return false;
	core_pod_unkeep(c, p);
	remove_member(g, p);
	if (s) {
		give_up_slot(c, r, p);
		core_run_settled(c, r);
	}
	p->group = NULL;
	core_group_dirty(c, g);
	return true;
}

/* ---- gathering ---- */

static struct run *queued_gang(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->state == RUN_QUEUED)
			return g->run.p[i];
	return NULL;
}

static bool gang_started(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state != RUN_QUEUED)
			return true;
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_at(g->pod.p[i]))
			return true;
	return false;
}

int core_run_role(struct run *r, struct shape *s)
{
	for (uint32_t i = 0; i < r->role.n; i++)
		if (r->role.p[i].shape == s)
			return (int)i;
	if (r->role.n == SLU_ROLES_MAX)
		return -E2BIG;
	if (slu_vec_push(&r->role, ((struct role){ .shape = s })) < 0)
		return -ENOMEM;
	s->refs++;
	return (int)r->role.n - 1;
}

static void clear_wants(struct slu_core *c, struct run *r)
{
	for (uint32_t i = 0; i < r->want.n; i++)
		r->want.p[i]->run = NULL;
	r->want.n = 0;
	for (uint32_t i = 0; i < r->role.n; i++)
		core_shape_put(c, r->role.p[i].shape);
	r->role.n = 0;
}

/* Roles and members of a queued run, from the pods it is to take: `most` of them, `min` at once. */
static int fill_run(struct run *r, struct pod **pod, uint32_t n, uint32_t most, uint32_t min,
		    uint32_t places)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < n && taken < most; i++) {
		uint32_t here = SLU_MIN(pod[i]->others, most - taken - 1) + 1;
		int k = core_run_role(r, pod[i]->shape);

		if (k < 0)
			return k;
		if (slu_vec_push(&r->want, pod[i]) < 0)
			return -ENOMEM;
		pod[i]->run = r;
		r->role.p[k].max += here;
		r->role.p[k].min += taken < min ? SLU_MIN(here, min - taken) : 0;
		taken += here;
	}
	if (places > taken) { /* members that are made one by one: hold their places too */
		r->role.p[0].min += places - taken;
		r->role.p[0].max += places - taken;
	}
	return 0;
}

static uint64_t fingerprint(const struct run *r)
{
	uint64_t h = r->want.n + ((uint64_t)r->g->n_avoid << 32);

	for (uint32_t i = 0; i < r->role.n; i++)
		h = slu_hash_u64(h ^ (uintptr_t)r->role.p[i].shape) + r->role.p[i].min * 31u +
		    r->role.p[i].max;
	return h;
}

/* How many members it takes to start.  Members that have finished their part do not count, nor members
 * that run already because they came before holding was switched on. */
static uint32_t needed(struct slu_core *c, const struct group *g)
{
	uint32_t asks = g->life.asks, others = 0;

	if (g->owned.n && core_members(g) < asks)
		others = core_held_strangers(c, g);
	return asks - SLU_MIN(others, asks - 1);
}

/* Whether fewer members are left than a gang needs because the others have started and ended. */
static bool too_few_left(struct slu_core *c, const struct group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_startable(g->pod.p[i]))
			n += 1 + g->pod.p[i]->others;
	return n < needed(c, g);
}

/* How many members the records are.  Of a lot that shares a claim for one pod only the first counts: it gets
 * a record of its own. */
static uint32_t count_members(struct slu_core *c, struct pod **pod, uint32_t n)
{
	uint32_t members = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (pod[i]->others && core_claim_alone(c, pod[i]))
			(void)core_lot_divide(c, pod[i], 1); /* no memory: core/again.c */
		members += 1 + pod[i]->others;
	}
	return members;
}

static void gather_group(struct slu_core *c, struct group *g)
{
	struct run *r = queued_gang(g);
	slu_cleanup(slu_freep) struct pod **pod = slu_reallocarray(NULL, g->pod.n + 1u,
								   sizeof *pod);
	uint32_t n = 0, members = 0, need = needed(c, g), most;
	uint64_t was = r ? fingerprint(r) : 0;
	int rc;

	if (!pod)
		return;
	for (uint32_t i = g->run.n; i-- > 0;) /* a gang that was taken back has no followers */
		if (!g->run.p[i]->gang && g->run.p[i]->state == RUN_QUEUED)
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_startable(g->pod.p[i])) {
			pod[n++] = g->pod.p[i];
			members += 1 + g->pod.p[i]->others;
		}
	if ((members < need && !(g->wish.one_by_one && n)) || core_after_blocks(c, g) ||
	    c->now_s < g->again_s || core_calm_waits(c, g)) {
		if (r)
			core_run_end(c, r, SLU_RESULT_CANCELLED);
		if (!g->kept)
			core_group_keep(c, g);
		return;
	}
	qsort(pod, n, sizeof *pod, core_by_age);
	n = core_claims_once(c, pod, n, NULL);
	most = SLU_MIN(count_members(c, pod, n), g->wish.max); /* the others follow */
	if (!r)
		r = core_run_new(c, g, true);
	if (!r)
		return;
	clear_wants(c, r);
	rc = fill_run(r, pod, n, most, need, SLU_MAX(need, most));
	if (rc == -E2BIG)
		core_group_wrong(c, g, "members of more than %u different kinds", SLU_ROLES_MAX);
	if (rc < 0) { /* without memory: not a part of it */
		core_run_end(c, r, SLU_RESULT_CANCELLED);
	} else {
		bool changed = core_run_wishes(c, r);

		if ((!changed && fingerprint(r) != was) || !r->submitted)
			core_run_submit(c, r);
	}
}

/* Followers of one group that wait in the queue at the same time, if they come from a lot. */
#define FOLLOWERS 64u

static void gather_followers(struct slu_core *c, struct group *g)
{
	uint32_t alive = 0, queued = 0;

	for (uint32_t i = 0; i < g->pod.n; i++)
		if (g->pod.p[i]->run || core_pod_at(g->pod.p[i]))
			alive += 1 + g->pod.p[i]->others;
	for (uint32_t i = 0; i < g->run.n; i++)
		queued += g->run.p[i]->state == RUN_QUEUED;
	for (uint32_t i = 0; i < g->pod.n && alive < g->wish.max; i++) {
		struct pod *p = g->pod.p[i];
		struct run *r;

		if (p->run || !core_pod_startable(p))
			continue;
		if (core_elastic_takes(g, p)) {
			core_elastic_wait(c, g);
			continue;
		}
		/* The rest of the lot follows as these start. */
		if (p->others && (queued >= FOLLOWERS || core_lot_divide(c, p, 1) < 0))
			continue;
		r = core_run_new(c, g, false);
		if (!r)
			return;
		r->stands = !core_started(g);
		alive++;
		queued++;
		if (fill_run(r, &p, 1, 1, 1, 1) < 0 || core_run_submit(c, r) < 0)
			core_run_over(c, r);
	}
}

static void cancel_queued(struct slu_core *c, struct group *g)
{
	for (uint32_t i = g->run.n; i-- > 0;)
		if (g->run.p[i]->state == RUN_QUEUED)
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
}

/* No member starts while the rest of the old gang is on its way out. */
static bool is_undoing(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state == RUN_UNDOING)
			return true;
	return false;
}

/* Nor while bindings that the last process may have sent are expected, which may be none. */
static bool is_expecting(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->expect_us && !g->run.p[i]->n_slot[SLOT_BOUND])
			return true;
	return false;
}

static bool has_bound(const struct run *r)
{
	for (uint32_t i = 0; i < r->want.n; i++)
		if (core_pod_at(r->want.p[i]))
			return true;
	return false;
}

/* Another scheduler bound a member while its gang waited, or while the member waited to follow: take the
 * binding as a fact and do not decide the member again. */
static void yield_to_bound(struct slu_core *c, struct group *g)
{
	for (uint32_t i = g->run.n; i-- > 0;)
		if (g->run.p[i]->state == RUN_QUEUED && has_bound(g->run.p[i]))
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
}

static void end_empty(struct slu_core *c, struct group *g, bool gang)
{
	for (uint32_t i = g->run.n; i-- > 0;)
		if (g->run.p[i]->state == RUN_QUEUED && !g->run.p[i]->want.n &&
		    (gang || !g->run.p[i]->gang))
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
}

static void settle_group(struct slu_core *c, struct group *g)
{
	bool sound;

	if (!g->pod.n) {
		cancel_queued(c, g);
		core_vacant_trim(c, g);
	}
	/* A follower whose pod is gone waits for nothing; a gang whose pods are gone may get others
	 * in their place. */
	end_empty(c, g, !g->pod.n);
	if (!g->pod.n) {
		if (!g->run.n) {
			core_group_unkeep(c, g);
			core_group_end(c, g);
		} else if (core_life_look(c,
					  g)) { /* its object may make more or fewer than before */
			core_life_size(c, g, g->named);
			core_group_keep(c, g);
		}
		return;
	}
	g->told_times = 0; /* something about itself has changed */
	if (!core_life_look(c, g))
		return; /* how many it takes is not known: core/again.c comes back to it */
	if (g->life.again && !g->retired)
		core_group_part(c, g);
	core_runs_recall(c, g);
	yield_to_bound(c, g);
	sound = core_wish_read(c, g); /* also of what runs: how long, which queue */
	core_adopt(c, g);
	core_group_stands(c, g);
	if (!sound) {
		cancel_queued(c, g);
		core_vacant_trim(c, g);
		core_group_keep(c, g); /* it keeps its place for the day it is mended */
		return;
	}
	core_vacant_fill(c, g);
	if (core_vacant_trim(c, g)) /* a node may have room for a place that it had too many for */
		core_vacant_fill(c, g);
	if (g->cancelled || g->retired)
		core_group_keep(c, g);
	if (is_undoing(g))
		cancel_queued(c, g); /* no member follows a gang that is taken back */
	if (g->cancelled || g->retired || is_undoing(g) || is_expecting(g))
		return;
	if (c->runs->adopting) { /* waiting groups are settled later, in order */
		core_group_dirty(c, g);
		return;
	}
	if (gang_started(g) || (g->begun && too_few_left(c, g))) {
		end_empty(c, g, true);
		for (uint32_t i = 0; i < g->run.n; i++)
			core_run_wishes(c, g->run.p[i]);
		gather_followers(c, g);
	} else {
		gather_group(c, g);
	}
	core_group_keep(c, g);
}

void core_group_settle(struct slu_core *c, uint32_t i)
{
	struct group *g = c->groups->dirty.p[i];

	if (!g)
		return;
	g->dirty = false;
	c->groups->dirty.p[i] = NULL;
	if (c->groups->touched.n) /* from here on not all groups of a namespace are dirty */
		slu_map_clear(&c->groups->touched);
	settle_group(c, g);
}

void core_groups_settle(struct slu_core *c)
{
	if (c->cluster->new_resources)
		core_groups_touch_wrong(c);
	c->cluster->new_resources = false;
	for (uint32_t i = 0; i < c->groups->dirty.n; i++) /* settling may make others dirty */
		core_group_settle(c, i);
	c->groups->dirty.n = 0;
}
