/* Elastic groups: the gang starts with what fits between min-size and max-size; the other members
 * join it later, with room that no waiting job has been promised or could start in.
 *
 * A member that joins becomes a slot of the gang's own run: it is planned until the gang's end and
 * stays in its rack where that was required.  So it asks only after the queue had its turn. */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"

#define AGAIN_US INT64_C(50000) /* between two rounds */
#define EACH_US  1000           /* added for each group that asks */

static struct run *running_gang(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->state != RUN_QUEUED)
			return g->run.p[i];
	return NULL;
}

static int role_of(const struct run *r, const struct pod *p)
{
	for (uint32_t i = 0; i < r->role.n; i++)
		if (r->role.p[i].shape == p->shape)
			return (int)i;
	return -1;
}

bool core_elastic_takes(const struct group *g, const struct pod *p)
{
	const struct run *r = g->wish.elastic ? running_gang(g) : NULL;

	return r && role_of(r, p) >= 0;
}

void core_elastic_wait(struct slu_core *c, struct group *g)
{
	if (!g->fills && slu_vec_push(&c->runs->fill, g) == 0)
		g->fills = true;
}

void core_elastic_forget(struct slu_core *c, struct group *g)
{
	for (uint32_t i = 0; g->fills && i < c->runs->fill.n; i++)
		if (c->runs->fill.p[i] == g) {
			c->runs->fill.p[i] = c->runs->fill.p[--c->runs->fill.n];
			break;
		}
	g->fills = false;
}

static void tell_member(struct slu_core *c, const struct group *g, struct pod *p, uint32_t have)
{
	int64_t age_us = c->now_us - p->k->o.meta.created_us;
	char text[200];

	if (p->told || p->stand || age_us < c->cfg->status.interval_s * 1000000)
		return;
	snprintf(
		text, sizeof text,
		"group %s runs with %u members; this one joins when there is room that no waiting job needs",
		g->id.name, have);
	core_tell_unschedulable(c, p, text);
}

/* Ask the queue for one more slot for this member; true if it got one.  `have`: the slots of each role. */
static bool ask_to_grow(struct slu_core *c, struct run *r, struct pod *p,
			uint32_t have[SLU_ROLES_MAX])
{
	struct slu_event ev = { .kind = SLU_EV_RESIZE, .job = r->id };
	int role = role_of(r, p);

	if (role < 0)
		return false;
	ev.role = (uint32_t)role;
	ev.size = have[role] + 1;
	if (core_apply(c, &ev) < 0)
		return false;
	core_decisions(c); /* gives the slot to the first member in line */
	have[role] += p->run != NULL;
	return p->run;
}

/* True while some member still has no place. */
static bool fill_group(struct slu_core *c, struct group *g)
{
	struct run *r = running_gang(g);
	uint32_t alive = 0, have[SLU_ROLES_MAX] = { 0 };
	bool room = true, missing = false;

	if (!r || g->cancelled || !g->wish.elastic)
		return false;
	for (uint32_t i = 0; i < r->slot.n; i++)
		have[r->slot.p[i].role]++;
	for (uint32_t i = 0; i < g->pod.n; i++)
		alive += g->pod.p[i]->run || core_pod_at(g->pod.p[i]);
	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];

		if (p->run || !core_pod_startable(p) || !core_elastic_takes(g, p))
			continue;
		if (room && alive < g->wish.max && r->state == RUN_RUNNING &&
		    ask_to_grow(c, r, p, have)) {
			alive++;
			continue;
		}
		room = false;
		missing = true;
		tell_member(c, g, p, alive);
	}
	return missing;
}

void core_elastic(struct slu_core *c)
{
	if (!c->runs->fill.n ||
	    c->now_us - c->runs->filled_us < SLU_MAX(AGAIN_US, (int64_t)c->runs->fill.n * EACH_US))
		return;
	c->runs->filled_us = c->now_us;
	for (uint32_t i = c->runs->fill.n; i-- > 0;) {
		struct group *g = c->runs->fill.p[i];

		if (!fill_group(c, g)) {
			c->runs->fill.p[i] = c->runs->fill.p[--c->runs->fill.n];
			g->fills = false;
		}
	}
}

void core_elastic_grown(struct slu_core *c, struct run *r, const struct slu_decision *d)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct group *g = r->g;
	uint32_t first = 0; /* all before it have a place */

	if (d->size <= 0)
		return;
	for (uint32_t i = 0; i < d->n_part; i++) {
		struct slu_gang_part part = c->dec.part.p[d->part + i];
		struct node *n = (struct node *)(uintptr_t)slu_machine_node_tag(m, part.node);

		for (uint32_t k = 0; k < part.slots; k++) {
			struct slot s = { .node = part.node,
					  .role = part.role,
					  .state = SLOT_VACANT,
					  .vacant_us = c->now_us };

			while (first < g->pod.n && g->pod.p[first]->run)
				first++;
			for (uint32_t j = first; j < g->pod.n && !s.pod; j++)
				if (!g->pod.p[j]->run && core_pod_startable(g->pod.p[j]) &&
				    role_of(r, g->pod.p[j]) == (int)part.role &&
				    !core_pod_clashes(c, n, g->pod.p[j]) &&
				    core_lot_divide(c, g->pod.p[j], 1) == 0)
					s.pod = g->pod.p[j];
			if (core_slot_add(r, s) < 0) {
				struct slu_event ev = {
					.kind = SLU_EV_END_SLOTS,
					.job = r->id,
					.part = &(struct slu_gang_part){ part.node, part.role, 1 },
					.n_part = 1
				};

				core_apply(c, &ev);
				continue;
			}
			if (!s.pod)
				continue;
			core_slot_to(c, r, &r->slot.p[r->slot.n - 1], SLOT_CHOSEN);
			s.pod->run = r;
			core_node_enter(c, n, s.pod);
		}
	}
	slu_log(SLU_INFO, "gang grows", SLU_STR("job", g->id.name), SLU_STR("ns", g->ns),
		SLU_I64("pods", r->slot.n));
	core_run_intend(c, r);
}
