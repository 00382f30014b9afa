/* A gang of which some members are bound and others cannot be: it is taken back as a whole.
 *
 * The core evicts the bound pods, so that their controllers create them again, and plans the gang again,
 * away from the nodes that refused, and later the more often the gang failed.  A pod without a controller
 * would be lost: then all bound pods stay, and the rest follow as soon as they can be bound. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"

#define AVOID_S   30
#define AGAIN_US  10000000 /* an eviction may be refused by a disruption budget: ask again */
#define PAUSE_MAX 300      /* seconds */

/* Whether the slot is bound or may be in a moment: a binding on its way cannot be called back. */
static bool slot_holds(const struct slot *s)
{
	return s->pod && (s->state == SLOT_BOUND || s->state == SLOT_BINDING);
}

static bool lost_if_evicted(const struct run *r)
{
	for (uint32_t i = 0; i < r->slot.n; i++) {
		const struct slot *s = &r->slot.p[i];

		if (slot_holds(s) && !slu_kmeta_controller(&s->pod->k->o.meta))
			return true;
	}
	return false;
}

static void avoid(struct slu_core *c, struct run *r)
{
	struct group *g = r->g;

	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].state == SLOT_FAILED)
			core_avoid(c, g, r->slot.p[i].node, AVOID_S);
	if (!g->n_avoid)
		return;
	/* At once the first time, then after 2, 4, 8 ... seconds. */
	if (g->undone)
		g->again_s = c->now_s + (g->undone < 9 ? 1 << g->undone : PAUSE_MAX);
	g->undone++;
	core_due_by(c, CORE_AT_UNDO, c->now_us + 1000000);
}

/* Drop the slots of members that hold nothing, and the run with the last of them. */
static void drop_unbound(struct slu_core *c, struct run *r)
{
	for (uint32_t i = r->slot.n; i-- > 0;)
		if (!slot_holds(&r->slot.p[i]))
			core_slot_drop(c, r, i);
}

void core_undo_evict(struct slu_core *c, struct run *r)
{
	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].state == SLOT_BOUND && r->slot.p[i].pod &&
		    !r->slot.p[i].pod->k->o.meta.deleted_us)
			core_evict(c, r->slot.p[i].pod);
	core_due_by(c, CORE_AT_UNDO, c->now_us + AGAIN_US);
}

/* A binding that was on its way when the gang was taken back has been answered. */
void core_undo_answered(struct slu_core *c, struct run *r)
{
	for (uint32_t i = r->slot.n; i-- > 0 && (r->n_slot[SLOT_FAILED] || r->n_slot[SLOT_GONE]);)
		if (r->slot.p[i].state == SLOT_FAILED || r->slot.p[i].state == SLOT_GONE)
			core_slot_drop(c, r, i);
	if (r->state == RUN_UNDOING && !r->waits)
		core_due_at(c, CORE_AT_UNDO, c->now_us);
}

/* Members that came later are part of the same job and run on when their gang is taken back. */
static bool others_run(const struct group *g, const struct run *r)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i] != r && g->run.p[i]->state != RUN_QUEUED)
			return true;
	return false;
}

void core_run_undo(struct slu_core *c, struct run *r)
{
	c->count.taken_back += !lost_if_evicted(r);
	avoid(c, r);
	core_run_undo_on(c, r);
}

void core_run_undo_on(struct slu_core *c, struct run *r)
{
	struct group *g = r->g;
	bool keep = lost_if_evicted(r);

	core_intents_settle(c, r, SLU_INTENT_UNDONE);
	slu_log(SLU_WARN,
		keep ? "gang is bound in part; the rest follows when it can be bound"
		     : "gang taken back; its bound pods are evicted",
		SLU_STR("job", g->id.name), SLU_STR("ns", g->ns));
	core_group_dirty(c, g);
	drop_unbound(c, r);
	if (r->state == RUN_OVER)
		return;
	core_run_to(c, r, keep ? RUN_RUNNING : RUN_UNDOING);
	g->begun = keep || others_run(g, r);
	if (keep)
		return;
	/* Evictions need an intent, too, because a gang that is half evicted is half a gang. */
	if (core_intend(c, r, true) < 0) {
		slu_log(SLU_ERROR, "out of memory: gang not taken back",
			SLU_STR("job", g->id.name));
		core_run_to(c, r, RUN_RUNNING); /* stays as it is, and the rest follows */
	}
}

/* Let the group use the nodes again that refused a member: submit its waiting runs with them. */
static void forgive(struct slu_core *c, struct group *g)
{
	g->n_avoid = 0;
	core_group_dirty(c, g);
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state == RUN_QUEUED && g->run.p[i]->submitted &&
		    core_run_submit(c, g->run.p[i]) < 0)
			slu_log(SLU_WARN, "job not submitted again with the nodes that it avoided",
				SLU_STR("job", g->id.name));
}

/* A binding of the last process did not show in time: it was never sent. */
static void stop_expecting(struct slu_core *c, struct run *r)
{
	r->expect_us = 0;
	if (r->state == RUN_PLACING && !r->n_slot[SLOT_BOUND]) {
		core_run_take_back(c, r);
		return;
	}
	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].state == SLOT_BINDING)
			core_slot_to(c, r, &r->slot.p[i], SLOT_FAILED);
	core_run_settled(c, r);
}

static int64_t expect_again(struct slu_core *c)
{
	int64_t next = INT64_MAX;

	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL), *after; e; e = after) {
		struct run *r = run_of(e);

		after = slu_table_next(&c->runs->table, e);
		if (!r->expect_us)
			continue;
		if (r->n_slot[SLOT_BINDING] && r->expect_us <= c->now_us) {
			stop_expecting(c, r);
			after = slu_table_next(&c->runs->table, NULL); /* runs may be over */
		} else if (!r->n_slot[SLOT_BINDING]) {
			r->expect_us = 0;
		} else {
			next = SLU_MIN(next, r->expect_us);
		}
	}
	return next;
}

void core_undo_again(struct slu_core *c)
{
	int64_t next = INT64_MAX;

	if (!core_is_due(c, CORE_AT_UNDO))
		return;
	next = expect_again(c);
	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL); e;
	     e = slu_table_next(&c->runs->table, e)) {
		struct run *r = run_of(e);

		for (uint32_t i = 0; r->state == RUN_UNDOING && !r->waits && i < r->slot.n; i++) {
			const struct pod *p = r->slot.p[i].pod;

			next = SLU_MIN(next, c->now_us + AGAIN_US);
			if (p && r->slot.p[i].state == SLOT_BOUND && !p->k->o.meta.deleted_us)
				core_evict(c, p);
		}
	}
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		struct group *g = group_of(e);

		if (g->n_avoid && c->now_s >= g->avoid_until_s)
			forgive(c, g);
		if (g->again_s && c->now_s >= g->again_s) {
			g->again_s = 0;
			core_group_dirty(c, g);
		}
		if (g->n_avoid || g->again_s)
			next = SLU_MIN(next, c->now_us + 1000000);
	}
	core_due_at(c, CORE_AT_UNDO, next);
}
