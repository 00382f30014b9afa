/* later.c — the earliest time at which a gang fits.
 *
 * Room appears only where something ends, so the candidates are the ends of what is booked.  Going
 * through them in order, the slots that fit on each node are kept up to date: a node changes when
 * work on it ends, or when the far edge of the window meets a later start.  A full attempt is made
 * only when every role has slots enough in all. */
#include "gang/gang_internal.h"

/* The machine as one pool: at no time can a gang fit where not even the sum of what is free would
 * do.  Looking ahead in that sum skips most candidates without looking at any node.
 *
 * The sum must never be too small.  Ends of what counts now only add to it.  Later starts are taken
 * off as long as everything planned fits (m->odd: it may not, then starts do not count); blocks and
 * the guests in them share, so they are never taken off. */
struct ahead {
	bool used, starts;
	uint32_t end_at, start_at;
	uint32_t n_resource, resource[SLU_RESOURCES_MAX];
	int64_t want[SLU_RESOURCES_MAX], have[SLU_RESOURCES_MAX]; /* by place in resource[] */
	int64_t t;                                                /* have is the sum at t */
};

struct sweep {
	struct plan *p;
	uint32_t end_at, start_at; /* next entries of m->ends, m->starts */
	uint32_t n_dirty, pass;
};

/* Nodes on which nothing begins later and no block lies: what is free there only grows. */
static bool only_grows(const struct node *v)
{
	return !v->future && !v->blocks;
}

static void soil(struct sweep *w, uint32_t pos)
{
	struct scratch *s = &w->p->m->s;

	if (s->dirty_stamp[pos] == w->pass)
		return;
	s->dirty_stamp[pos] = w->pass;
	s->dirty[w->n_dirty++] = pos;
}

static void give_back(struct sweep *w, const struct job *j)
{
	struct slu_machine *m = w->p->m;
	struct scratch *s = &m->s;

	for (uint32_t i = 0; i < j->n_part; i++) {
		const struct part *q = &j->part[i];
		const struct node *v = &m->node[q->node];

		if (only_grows(v)) {
			int64_t *row = s->row + (size_t)v->pos * m->stride;

			if (s->stamp[v->pos] != s->epoch) {
				s->stamp[v->pos] = s->epoch;
				memcpy(row, row_free(m, q->node), m->resource.n * sizeof *row);
			}
			need_give(j->need[q->role], q->slots, row);
		}
		soil(w, v->pos);
	}
}

/* Move the window to [t, t + duration). */
static void move_to(struct sweep *w, int64_t t)
{
	struct plan *p = w->p;
	struct slu_machine *m = p->m;
	struct scratch *s = &m->s;

	p->t = t;
	p->end = later(t, p->duration);
	if (!++s->pass)
		s->pass = 1;
	w->pass = s->pass;
	w->n_dirty = 0;
	for (; w->end_at < m->ends.n; w->end_at++) {
		const struct job *j = &m->job[m->ends.p[w->end_at].job];

		if (planned_end(m, j) > t)
			break;
		give_back(w, j);
	}
	for (; w->start_at < m->starts.n && m->starts.p[w->start_at].t < p->end; w->start_at++) {
		const struct job *j = &m->job[m->starts.p[w->start_at].job];

		for (uint32_t i = 0; i < j->n_part; i++)
			soil(w, m->node[j->part[i].node].pos);
	}
	for (uint32_t i = 0; i < w->n_dirty; i++) {
		uint32_t pos = s->dirty[i], node = m->order[pos];
		const struct node *v = &m->node[node];

		if (v->down || v->cordoned)
			continue;
		for (uint32_t r = 0; r < p->n_role; r++) {
			int32_t cap;

			if (!only_grows(v))
				cap = slu_caps_at(p, r, pos);
			else if (bit(p->role[r].fitmap->elig, pos))
				cap = need_fits(p->role[r].need, s->row + (size_t)pos * m->stride,
						p->role[r].flags);
			else
				continue;
			slu_caps_set(p, r, pos, cap);
		}
	}
}

/* ---- the sum ---- */

static void ahead_init(struct ahead *a, const struct plan *p)
{
	const struct slu_machine *m = p->m;
	int64_t want[SLU_RESOURCES_MAX] = { 0 };

	*a = (struct ahead){ .used = !p->req->n_use, .starts = !m->odd && !m->n_unfit };
	for (uint32_t r = 0; r < p->n_role; r++) {
		const struct need *n = p->role[r].need;

		for (uint32_t i = 0; i < n->n; i++)
			want[n->a[i].resource] = slu_plus_sat(want[n->a[i].resource], n->a[i].n,
							      p->role[r].min);
	}
	for (uint32_t k = 1; k < m->resource.n; k++) {
		if (!want[k])
			continue;
		a->resource[a->n_resource] = k;
		a->want[a->n_resource] = want[k];
		a->have[a->n_resource++] = m->sum[k];
	}
	a->t = m->now;
}

static void ahead_add(struct ahead *a, const struct job *j, int sign)
{
	for (uint32_t r = 0; r < j->n_role; r++) {
		const struct need *n = j->need[r];
		int64_t slots = j->slots;

		if (j->n_role > 1) {
			slots = 0;
			for (uint32_t i = 0; i < j->n_part; i++)
				slots += j->part[i].role == r ? j->part[i].slots : 0;
		}
		for (uint32_t i = 0, k = 0; i < n->n; i++) {
			while (k < a->n_resource && a->resource[k] < n->a[i].resource)
				k++;
			if (k < a->n_resource && a->resource[k] == n->a[i].resource)
				a->have[k] = slu_plus_sat(a->have[k], n->a[i].n, sign * slots);
		}
	}
}

static bool ahead_counts(const struct ahead *a, const struct job *j)
{
	return j->counted || (a->starts && !j->n_use && j->state != SLU_GANG_BLOCK);
}

/* Let everything happen up to and at time t. */
static void ahead_to(struct ahead *a, const struct slu_machine *m, int64_t t)
{
	for (; a->end_at < m->ends.n; a->end_at++) {
		const struct job *j = &m->job[m->ends.p[a->end_at].job];

		if (planned_end(m, j) > t)
			break;
		if (ahead_counts(a, j))
			ahead_add(a, j, 1);
	}
	for (; a->start_at < m->starts.n && m->starts.p[a->start_at].t <= t; a->start_at++) {
		const struct job *j = &m->job[m->starts.p[a->start_at].job];

		if (ahead_counts(a, j))
			ahead_add(a, j, -1);
	}
	a->t = t;
}

static bool ahead_enough(const struct ahead *a)
{
	for (uint32_t k = 0; k < a->n_resource; k++) {
		if (a->have[k] < a->want[k])
			return false;
	}
	return true;
}

/* The first candidate from t on (t itself is a candidate) that the sum does not rule out;
 * SLU_FOREVER: none. */
static int64_t ahead_next(struct ahead *a, const struct plan *p, int64_t t)
{
	const struct slu_machine *m = p->m;

	if (!a->used)
		return t;
	if (t > a->t)
		ahead_to(a, m, t);
	for (;;) {
		if (!ahead_enough(a)) {
			if (a->end_at == m->ends.n)
				return SLU_FOREVER;
			t = planned_end(m, &m->job[m->ends.p[a->end_at].job]);
			ahead_to(a, m, t);
		} else if (!a->starts || a->start_at == m->starts.n ||
			   m->starts.p[a->start_at].t >= later(t, p->duration)) {
			return t;
		} else {
			ahead_to(a, m, m->starts.p[a->start_at].t);
		}
	}
}

int slu_later(struct plan *p, int64_t t, bool tried, int64_t latest)
{
	struct slu_machine *m = p->m;
	struct sweep w = { .p = p };
	struct ahead a;

	ahead_init(&a, p);
	if (!++m->s.epoch) {
		memset(m->s.stamp, 0, m->s.n * sizeof *m->s.stamp);
		m->s.epoch = 1;
	}
	for (uint32_t r = 0; r < p->n_role; r++) {
		const struct fitmap *s = p->role[r].fitmap;

		memcpy(m->s.cap[r], s->now, m->n_pos * sizeof *s->now);
		memcpy(m->s.bits[r], s->now_bits, (m->n_pos / 64 + 1) * sizeof *s->now_bits);
		p->caps[r] = (struct caps){ .cap = m->s.cap[r],
					    .bits = m->s.bits[r],
					    .sum = s->now_sum,
					    .nodes = s->now_nodes };
		p->before[r] = s->now;
	}
	move_to(&w, t);
	/* Blocks the job may use, and blocks that end before t without an end in the list. */
	for (uint32_t pos = 0; m->n_block && pos < m->n_pos; pos++) {
		if (!m->node[m->order[pos]].blocks)
			continue;
		for (uint32_t r = 0; r < p->n_role; r++)
			slu_caps_set(p, r, pos, slu_caps_at(p, r, pos));
	}
	if (!tried && ahead_next(&a, p, t) == t) {
		int rc = slu_attempt(p);

		if (rc)
			return rc;
	}
	for (;;) {
		int rc;

		if (w.end_at == m->ends.n)
			return 0;
		t = ahead_next(&a, p, planned_end(m, &m->job[m->ends.p[w.end_at].job]));
		if (t == SLU_FOREVER || t > latest)
			return 0;
		move_to(&w, t);
		rc = slu_attempt(p);
		if (rc)
			return rc;
	}
}
