/* window.c — how much of a node is free during a stretch of time.
 *
 * Free amounts fall only where something begins, so the least over [t, end) is the least of the
 * values at t and at every later start in between. */
#include "gang/gang_internal.h"

void slu_sum_out(struct slu_machine *m, uint32_t node)
{
	const int64_t *row = row_free(m, node), *total = m->total + (size_t)node * m->stride;

	for (uint32_t k = 1; node_up(&m->node[node]) && k < m->resource.n; k++) {
		m->sum[k] = slu_plus_mod(m->sum[k], sum_usable(row[k], total[k]), -1);
		m->whole[k] = slu_plus_mod(m->whole[k], total[k], -1);
	}
}

void slu_sum_in(struct slu_machine *m, uint32_t node)
{
	const int64_t *row = row_free(m, node), *total = m->total + (size_t)node * m->stride;

	for (uint32_t k = 1; node_up(&m->node[node]) && k < m->resource.n; k++) {
		m->sum[k] = slu_plus_mod(m->sum[k], sum_usable(row[k], total[k]), 1);
		m->whole[k] = slu_plus_mod(m->whole[k], total[k], 1);
	}
}

void slu_when_sort(struct when *w, uint32_t n)
{
	if (n > 24) {
		qsort(w, n, sizeof *w, when_cmp);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct when x = w[i];
		uint32_t k = i;

		for (; k && when_cmp(&w[k - 1], &x) > 0; k--)
			w[k] = w[k - 1];
		w[k] = x;
	}
}

static bool is_among(uint64_t id, const uint64_t *use, uint32_t n_use)
{
	for (uint32_t i = 0; i < n_use; i++) {
		if (use[i] == id)
			return true;
	}
	return false;
}

static bool holds_at(const struct slu_machine *m, const struct job *j, int64_t t)
{
	return (j->counted ? t >= m->now : j->start <= t) && t < planned_end(m, j);
}

/* The block on this node whose room a job lives in: the first of those it names, or NULL. */
static const struct job *home_block(const struct slu_machine *m, const struct node *v,
				    const struct job *j)
{
	for (uint32_t u = 0; u < j->n_use; u++) {
		for (uint32_t i = 0; i < v->share.n; i++) {
			const struct job *b = &m->job[v->share.p[i].job];

			if (b->state == SLU_GANG_BLOCK && b->id == j->use[u])
				return b;
		}
	}
	return NULL;
}

/* Free at time t from scratch, on a node with blocks.  A block and the work that lives in it take
 * together what the larger of the two takes. */
static void at_with_blocks(const struct slu_machine *m, uint32_t node, int64_t t,
			   const uint64_t *use, uint32_t n_use, int64_t *out)
{
	const struct node *v = &m->node[node];
	uint32_t resources = m->resource.n;

	memcpy(out, m->total + (size_t)node * m->stride, resources * sizeof *out);
	for (uint32_t i = 0; i < v->share.n; i++) {
		const struct job *j = &m->job[v->share.p[i].job];
		const struct part *p = &j->part[v->share.p[i].part];
		int64_t block[SLU_RESOURCES_MAX] = { 0 }, guest[SLU_RESOURCES_MAX] = { 0 };

		if (j->state != SLU_GANG_BLOCK) {
			const struct job *b = j->n_use ? home_block(m, v, j) : NULL;

			if (holds_at(m, j, t) &&
			    (!b || !holds_at(m, b, t) || is_among(b->id, use, n_use)))
				need_take(j->need[p->role], p->slots, out);
			continue;
		}
		if (!holds_at(m, j, t) || is_among(j->id, use, n_use))
			continue;
		need_take(j->need[p->role], p->slots, block);
		for (uint32_t k = 0; k < v->share.n; k++) {
			const struct job *g = &m->job[v->share.p[k].job];
			const struct part *q = &g->part[v->share.p[k].part];

			if (g->n_use && g->state != SLU_GANG_BLOCK && holds_at(m, g, t) &&
			    home_block(m, v, g) == j)
				need_take(g->need[q->role], q->slots, guest);
		}
		for (uint32_t k = 0; k < resources; k++)
			out[k] = slu_plus_mod(out[k], SLU_MIN(block[k], guest[k]), 1);
	}
}

static void free_at(const struct slu_machine *m, uint32_t node, int64_t t, int64_t *out)
{
	const struct node *v = &m->node[node];

	memcpy(out, row_free(m, node), m->resource.n * sizeof *out);
	for (uint32_t i = 0; i < v->share.n; i++) {
		const struct share *s = &v->share.p[i];

		if (s->start == COUNTED) {
			if (share_end(m, s) <= t)
				share_give(m, s, out);
		} else if (s->start <= t && t < s->end) {
			share_take(m, s, out);
		}
	}
}

static void least_of(int64_t *out, const int64_t *v, uint32_t resources)
{
	for (uint32_t k = 0; k < resources; k++)
		out[k] = SLU_MIN(out[k], v[k]);
}

/* Many starts: walk the events in order of time instead of counting again at each. */
static void walk_events(const struct slu_machine *m, uint32_t node, int64_t t, int64_t end,
			int64_t *out)
{
	const struct node *v = &m->node[node];
	struct when *ev = m->s.ev.p; /* room for two per share: slu_job_book() sees to it */
	int64_t row[SLU_RESOURCES_MAX];
	uint32_t n = 0;

	free_at(m, node, t, row);
	memcpy(out, row, m->resource.n * sizeof *out);
	for (uint32_t i = 0; i < v->share.n; i++) {
		const struct share *x = &v->share.p[i];
		int64_t e = share_end(m, x);

		if (x->start > t && x->start < end)
			ev[n++] = (struct when){ x->start, i * 2 + 1 };
		if (e > t && e < end)
			ev[n++] = (struct when){ e, i * 2 };
	}
	slu_when_sort(ev, n);
	for (uint32_t i = 0; i < n;) {
		int64_t now = ev[i].t;

		for (; i < n && ev[i].t == now; i++) {
			const struct share *s = &v->share.p[ev[i].job / 2];

			if (ev[i].job & 1)
				share_take(m, s, row);
			else
				share_give(m, s, row);
		}
		least_of(out, row, m->resource.n);
	}
}

/* Whether some work on the node lives in a block. */
static bool has_guests(const struct slu_machine *m, const struct node *v)
{
	for (uint32_t i = 0; i < v->share.n; i++) {
		const struct job *j = &m->job[v->share.p[i].job];

		if (j->n_use && j->state != SLU_GANG_BLOCK)
			return true;
	}
	return false;
}

/* The same walk on a node with blocks in which nothing lives: a Reservation that repeats has many of them. */
static void walk_blocks(const struct slu_machine *m, uint32_t node, int64_t t, int64_t end,
			int64_t *out)
{
	const struct node *v = &m->node[node];
	struct when *ev = m->s.ev.p;
	int64_t row[SLU_RESOURCES_MAX];
	uint32_t n = 0;

	at_with_blocks(m, node, t, NULL, 0, row);
	memcpy(out, row, m->resource.n * sizeof *out);
	for (uint32_t i = 0; i < v->share.n; i++) {
		const struct job *j = &m->job[v->share.p[i].job];
		int64_t e = planned_end(m, j);
		bool held = holds_at(m, j, t);
		bool comes = !held && !j->counted && j->start > t && j->start < end && e > j->start;

		if (comes)
			ev[n++] = (struct when){ j->start, i * 2 + 1 };
		if ((held || comes) && e < end)
			ev[n++] = (struct when){ e, i * 2 };
	}
	slu_when_sort(ev, n);
	for (uint32_t i = 0; i < n;) {
		int64_t now = ev[i].t;

		for (; i < n && ev[i].t == now; i++) {
			const struct share *s = &v->share.p[ev[i].job / 2];

			if (ev[i].job & 1)
				share_take(m, s, row);
			else
				share_give(m, s, row);
		}
		least_of(out, row, m->resource.n);
	}
}

void slu_window(const struct slu_machine *m, uint32_t node, int64_t t, int64_t end,
		const uint64_t *use, uint32_t n_use, int64_t *out)
{
	const struct node *v = &m->node[node];
	int64_t row[SLU_RESOURCES_MAX];

	if (v->blocks && v->future > 3 && !n_use && !has_guests(m, v)) {
		walk_blocks(m, node, t, end, out);
		return;
	}
	if (v->blocks)
		at_with_blocks(m, node, t, use, n_use, out);
	else if (!v->future && t <= m->now)
		memcpy(out, row_free(m, node), m->resource.n * sizeof *out);
	else if (v->future > 3)
		walk_events(m, node, t, end, out);
	else
		free_at(m, node, t, out);
	if (!v->future || (!v->blocks && v->future > 3))
		return;
	for (uint32_t i = 0; i < v->share.n; i++) {
		int64_t start = v->share.p[i].start;

		if (start <= t || start >= end)
			continue;
		if (v->blocks)
			at_with_blocks(m, node, start, use, n_use, row);
		else
			free_at(m, node, start, row);
		least_of(out, row, m->resource.n);
	}
}

/* Number of later starts that are tested one by one; with more, one walk over all events is
 * cheaper. */
#define STARTS_FEW 6

int32_t slu_window_fits(const struct slu_machine *m, uint32_t node, int64_t t, int64_t end,
			const struct need *need, unsigned flags)
{
	const struct node *v = &m->node[node];
	int64_t row[SLU_RESOURCES_MAX];
	int32_t cap, c;
	uint32_t seen = 0;

	free_at(m, node, t, row);
	cap = need_fits(need, row, flags);
	/* Most often the first test says no. */
	for (uint32_t i = 0; cap && i < v->share.n; i++) {
		const struct share *s = &v->share.p[i];

		if (s->start <= t || s->start >= end)
			continue;
		if (++seen > STARTS_FEW) {
			walk_events(m, node, t, end, row);
			return need_fits(need, row, flags);
		}
		free_at(m, node, s->start, row);
		c = need_fits(need, row, flags);
		cap = SLU_MIN(cap, c);
	}
	return cap;
}

const int64_t *slu_window_least(struct slu_machine *m, uint32_t node)
{
	struct node *v = &m->node[node];
	int64_t *row = m->least + (size_t)node * m->stride;

	if (!v->future)
		return row_free(m, node);
	if (!v->least_ok) {
		slu_window(m, node, m->now, SLU_FOREVER, NULL, 0, row);
		v->least_ok = true;
	}
	return row;
}

void slu_node_recount(struct slu_machine *m, uint32_t node)
{
	slu_sum_out(m, node);
	at_with_blocks(m, node, m->now, NULL, 0, row_free(m, node));
	slu_sum_in(m, node);
}
