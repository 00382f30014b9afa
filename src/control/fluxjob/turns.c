/* A heap of FluxJobs by the time of their turn, so that a pass visits only those with something to do. */
#include "control/fluxjob/fluxjob.h"

static bool is_before(const struct fluxjob *a, const struct fluxjob *b)
{
	return a->turn_us < b->turn_us;
}

static void put_at(struct fluxjobs *all, uint32_t i, struct fluxjob *f)
{
	all->turns.p[i] = f;
	f->turn_at = i + 1;
}

static void rise(struct fluxjobs *all, uint32_t i)
{
	struct fluxjob *f = all->turns.p[i];

	for (; i && is_before(f, all->turns.p[(i - 1) / 2]); i = (i - 1) / 2)
		put_at(all, i, all->turns.p[(i - 1) / 2]);
	put_at(all, i, f);
}

static void sink(struct fluxjobs *all, uint32_t i)
{
	struct fluxjob *f = all->turns.p[i];

	for (uint32_t k; (k = 2 * i + 1) < all->turns.n; i = k) {
		if (k + 1 < all->turns.n && is_before(all->turns.p[k + 1], all->turns.p[k]))
			k++;
		if (!is_before(all->turns.p[k], f))
			break;
		put_at(all, i, all->turns.p[k]);
	}
	put_at(all, i, f);
}

int core_fluxjob_turn_room(struct slu_core *c)
{
	return slu_vec_reserve(&c->fluxjobs->turns, c->fluxjobs->table.n + 1);
}

void core_fluxjob_turn_by(struct slu_core *c, struct fluxjob *f, int64_t us)
{
	struct fluxjobs *all = c->fluxjobs;

	if (us == CORE_NEVER || (f->turn_at && f->turn_us <= us))
		return;
	f->turn_us = us;
	if (!f->turn_at) {
		all->turns.n++; /* core_fluxjob_turn_room() has reserved it */
		put_at(all, all->turns.n - 1, f);
	}
	rise(all, f->turn_at - 1);
	core_due_by(c, CORE_AT_FLUXJOBS, us);
}

void core_fluxjob_turn_none(struct slu_core *c, struct fluxjob *f)
{
	struct fluxjobs *all = c->fluxjobs;
	uint32_t i = f->turn_at;
	struct fluxjob *last;

	if (!i)
		return;
	f->turn_at = 0;
	last = all->turns.p[--all->turns.n];
	if (last == f)
		return;
	put_at(all, i - 1, last);
	rise(all, i - 1);
	sink(all, last->turn_at - 1);
}

struct fluxjob *core_fluxjob_turn(struct slu_core *c)
{
	struct fluxjob *f = c->fluxjobs->turns.n ? c->fluxjobs->turns.p[0] : NULL;

	core_due_at(c, CORE_AT_FLUXJOBS, f ? f->turn_us : CORE_NEVER);
	if (!f || f->turn_us > c->now_us)
		return NULL;
	core_fluxjob_turn_none(c, f);
	return f;
}
