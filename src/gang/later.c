/* later.c — the earliest time at which a gang fits.
 *
 * Room appears only where something ends, so the candidates are the ends of what is booked.  Going
 * through them in order, the slots that fit on each node are kept up to date: a node changes when
 * work on it ends, or when the far edge of the window meets a later start.  A full attempt is made
 * only when every role has slots enough in all. */
#include "gang/impl.h"

struct sweep {
	struct plan *p;
	uint32_t end_at, start_at; /* next entries of m->ends, m->starts */
	uint32_t n_dirty, pass;
};

/* Nodes on which nothing begins later and no block lies: what is free there only grows. */
static bool simple(const struct node *v)
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

		if (simple(v)) {
			int64_t *row = s->row + (size_t)v->pos * m->stride;

			if (s->stamp[v->pos] != s->epoch) {
				s->stamp[v->pos] = s->epoch;
				memcpy(row, row_free(m, q->node), m->kind.n * sizeof *row);
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

			if (!simple(v))
				cap = slu_caps_at(p, r, pos);
			else if (bit(p->role[r].shape->elig, pos))
				cap = need_fits(p->role[r].need, s->row + (size_t)pos * m->stride,
						p->role[r].flags);
			else
				continue;
			slu_caps_set(p, r, pos, cap);
		}
	}
}

int slu_later(struct plan *p, int64_t t, bool tried, int64_t latest)
{
	struct slu_machine *m = p->m;
	struct sweep w = { .p = p };

	if (!++m->s.epoch) {
		memset(m->s.stamp, 0, m->s.n * sizeof *m->s.stamp);
		m->s.epoch = 1;
	}
	for (uint32_t r = 0; r < p->n_role; r++) {
		const struct shape *s = p->role[r].shape;

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
	for (;; tried = false) {
		int rc = tried ? 0 : slu_attempt(p);

		if (rc)
			return rc;
		if (w.end_at == m->ends.n)
			return 0;
		t = planned_end(m, &m->job[m->ends.p[w.end_at].job]);
		if (t > latest)
			return 0;
		move_to(&w, t);
	}
}
