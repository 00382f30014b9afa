/* Places that members left and that later members will take: the next wave of a Job, the pods of a
 * StatefulSet one by one, the replacement of a member that failed. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"

/* After a start: a gang of which nothing is bound waits for the successor of a deleted member.  If none
 * comes, it is planned again. */
static void give_up_waiting(struct slu_core *c, struct group *g, int64_t hold_us)
{
	for (uint32_t i = g->run.n; i-- > 0 && !g->owned.n;) {
		struct run *r = g->run.p[i];

		if (r->state != RUN_PLACING || r->n_slot[SLOT_BOUND] || !core_run_short(r))
			continue;
		if (r->appear_us + hold_us <= c->now_us)
			core_run_take_back(c, r);
		else
			core_due_by(c, CORE_AT_VACANCY, r->appear_us + hold_us);
	}
}

bool core_vacant_trim(struct slu_core *c, struct group *g)
{
	bool any = false;
	int64_t extra = (int64_t)core_members(g) + core_vacant(g) - core_group_wanted(c, g);
	int64_t hold_us = c->cfg->jobs.hold_vacant_s * 1000000;
	const struct slu_machine *m = slu_queue_machine(c->q);
	bool ever = core_group_ordered(c, g);

	give_up_waiting(c, g, hold_us);
	for (uint32_t i = g->run.n; i-- > 0;) {
		struct run *r = g->run.p[i];
		bool dropped = false;

		for (uint32_t k = r->slot.n; k-- > 0;) {
			struct slot *s = &r->slot.p[k];
			bool late = !ever && !core_run_short(r) && s->vacant_us &&
				    s->vacant_us + hold_us <= c->now_us;
			bool gone = !slu_machine_node_is(m, s->node);

			if (s->state != SLOT_VACANT)
				continue;
			if (extra <= 0 && !late && !gone) {
				if (s->vacant_us && !ever)
					core_due_by(c, CORE_AT_VACANCY, s->vacant_us + hold_us);
				continue;
			}
			extra--;
			core_slot_drop(c, r, k);
			dropped = true;
		}
		if (dropped)
			core_run_settled(c, r);
		any |= dropped;
	}
	return any;
}

void core_vacant_node_gone(struct slu_core *c)
{
	core_due_by(c, CORE_AT_VACANCY, c->now_us);
}

void core_vacancies(struct slu_core *c)
{
	if (!core_is_due(c, CORE_AT_VACANCY))
		return;
	core_due_at(c, CORE_AT_VACANCY, CORE_NEVER);
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		if (core_vacant(group_of(e)))
			core_group_dirty(c, group_of(e));
}

bool core_pod_turned_away(const struct pod *p)
{
	return p->k->phase == SLU_PHASE_FAILED &&
	       (!strncmp(p->k->reason, "OutOf", 5) || !strcmp(p->k->reason, "Evicted") ||
		!strcmp(p->k->reason, "NodeAffinity") ||
		!strcmp(p->k->reason, "UnexpectedAdmissionError"));
}

bool core_vacant_kept(struct slu_core *c, const struct pod *p)
{
	const struct group *g = p->group;
	const struct slu_knode *n = p->node ? p->node->k : NULL;

	if (!n || n->ready != SLU_TRI_TRUE || n->unschedulable || p->refused)
		return false;
	if (core_pod_turned_away(p))
		return false;
	return core_group_wanted(c, g) > (int64_t)core_members(g) + core_vacant(g);
}

/* A pod fits none of the places kept for it, since it differs from its template. */
static bool template_differs(struct slu_core *c, const struct group *g, const struct run *r)
{
	for (uint32_t i = 0; i < g->pod.n; i++) {
		const struct pod *p = g->pod.p[i];

		if (!p->run && !p->stand && core_pod_startable(p)) {
			slu_log(SLU_INFO,
				"pod differs from its template; its gang is planned again",
				SLU_STR("pod", p->k->o.meta.name), SLU_STR("job", g->id.name));
			return true;
		}
	}
	(void)c;
	(void)r;
	return false;
}

/* Members without a place, in order; consecutive members of one shape get the same answer. */
struct alike {
	uint32_t from, to;
};

struct takers {
	struct pod **p;
	SLU_VEC(struct alike) alike;
};

static void takers_done(struct takers *t)
{
	slu_free(t->p);
	slu_vec_done(&t->alike);
}

/* A member that cannot be listed because memory ran out takes a place another time. */
static void takers_of(struct slu_core *c, struct group *g, uint32_t places, struct takers *t)
{
	uint32_t n = 0;

	for (uint32_t j = 0; g->others && j < g->pod.n; j++)
		if (g->pod.p[j]->others && core_pod_startable(g->pod.p[j]))
			(void)core_lot_divide(c, g->pod.p[j], places);

	t->p = slu_reallocarray(NULL, g->pod.n + 1u, sizeof *t->p);
	for (uint32_t j = 0; t->p && j < g->pod.n; j++) {
		struct pod *p = g->pod.p[j];

		if (!core_pod_startable(p) || (p->run && p->run->state != RUN_QUEUED))
			continue;
		if (n && t->p[n - 1]->shape == p->shape)
			t->alike.p[t->alike.n - 1].to = n + 1;
		else if (slu_vec_push(&t->alike, ((struct alike){ n, n + 1 })) < 0)
			return;
		t->p[n++] = p;
	}
}

/* Only one member of each lot is tried: thousands of places times thousands of members would cost too
 * much. */
static bool take_place(struct slu_core *c, struct run *r, uint32_t k, struct takers *t)
{
	for (uint32_t i = 0; i < t->alike.n; i++) {
		struct alike *a = &t->alike.p[i];

		if (a->from < a->to && core_slot_take(c, r, k, t->p[a->from])) {
			a->from++;
			return true;
		}
	}
	return false;
}

static bool fill_run(struct slu_core *c, struct group *g, struct run *r)
{
	struct takers t = { 0 };
	bool filled = false;

	if (!r->n_slot[SLOT_VACANT] || r->state == RUN_UNDOING)
		return false;
	takers_of(c, g, r->n_slot[SLOT_VACANT], &t);
	for (uint32_t k = 0; t.alike.n && k < r->slot.n; k++)
		if (r->slot.p[k].state == SLOT_VACANT)
			filled |= take_place(c, r, k, &t);
	takers_done(&t);
	return filled;
}

void core_vacant_fill(struct slu_core *c, struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++) {
		struct run *r = g->run.p[i];
		bool filled = fill_run(c, g, r);

		if (filled)
			r->appear_us = c->now_us;
		if (r->appears && r->state == RUN_PLACING && core_run_short(r) &&
		    template_differs(c, g, r)) {
			core_run_take_back(c, r); /* planned again with the pods as they are */
			return;
		}
		if (filled ||
		    (r->appears && !core_run_short(r) && !r->waits && r->n_slot[SLOT_CHOSEN]))
			core_run_intend(c, r);
	}
}
