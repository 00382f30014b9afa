/* alike.c — vertices whose subtrees are the same: an answer of one is the answer of all.
 *
 * Most machines are made of a few kinds of nodes.  Two vertices are alike if they and everything
 * below them have the same types, sizes, states, numbers of children in the same order, and below
 * them the same ids: then they answer any request in the same way as long as nothing is booked
 * there, but for the ids above and their own. */
#include "match/fast/fast_internal.h"

/* Compare everything but the vertex's own id, which its parent compares. */
static bool same_self(const struct slu_match *m, uint32_t u, uint32_t t)
{
	const struct slu_vertex *x = &m->g->v.p[u], *y = &m->g->v.p[t];

	return x->type == y->type && x->size == y->size && x->status == y->status &&
	       m->kidtypes[u] == m->kidtypes[t];
}

static bool is_leaf(const struct slu_match *m, uint32_t v)
{
	return m->kid_off[v] == m->kid_off[v + 1] && !m->multi[v];
}

static bool same_multi(const struct slu_multi *a, const struct slu_multi *b)
{
	if (!a || !b)
		return a == b;
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->type[i] != b->type[i] || a->p[i].total != b->p[i].total)
			return false;
	return true;
}

static bool same_records(const struct slu_match *m, uint32_t u, uint32_t t)
{
	const uint32_t *a = m->kid + m->kid_off[u], *b = m->kid + m->kid_off[t];
	uint32_t n = m->kid_off[u + 1] - m->kid_off[u];

	if (n != m->kid_off[t + 1] - m->kid_off[t] || !same_self(m, u, t) ||
	    !same_multi(m->multi[u], m->multi[t]))
		return false;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t c = m->g->e.p[a[k]].dst, d = m->g->e.p[b[k]].dst;

		if (!same_self(m, c, d) || m->g->v.p[c].id != m->g->v.p[d].id ||
		    m->like[c] != m->like[d] || is_leaf(m, c) != is_leaf(m, d) ||
		    (m->like[c] == SLU_NONE && !is_leaf(m, c)))
			return false;
	}
	return true;
}

/* Whether all scores below u are above 0 and far below the largest number, whatever is above u. */
static bool usual(const struct slu_match *m, uint32_t u)
{
	const uint64_t many = 1ull << 63;

	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		uint32_t c = m->g->e.p[m->kid[k]].dst;
		const struct slu_vertex *x = &m->g->v.p[c];

		if (x->id < -1 || x->id > INT32_MAX || x->type == SLU_TYPE_SLOT ||
		    x->type == SLU_TYPE_XOR_SLOT || m->kidtypes[c] & many ||
		    (m->policy.node_centric && x->type == SLU_TYPE_NODE) ||
		    (m->like[c] == SLU_NONE && !is_leaf(m, c)))
			return false;
	}
	return !(m->kidtypes[u] & many) && m->g->v.p[u].type != SLU_TYPE_SLOT &&
	       m->g->v.p[u].type != SLU_TYPE_XOR_SLOT;
}

int match_alike_begin(struct slu_match *m)
{
	slu_free(m->like);
	m->like = NULL;
	if (m->policy.stop || m->policy.scorer == SCORE_VARIATION || !m->tree || m->nsub > 1 ||
	    m->flexible)
		return 0; /* no request asks for this type */
	m->like = slu_reallocarray(NULL, (size_t)m->g->v.n + 1, sizeof *m->like);
	if (!m->like)
		return -ENOMEM;
	memset(m->like, 0xff, m->g->v.n * sizeof *m->like);
	memset(m->seen_like, 0xff, sizeof m->seen_like);
	return 0;
}

void match_alike_put(struct slu_match *m, uint32_t u)
{
	uint32_t i = 0, t, *seen = m->seen_like;

	if (!m->like)
		return;
	while (i < LIKE_MAX - 1 && seen[i] != SLU_NONE && !same_records(m, u, seen[i]))
		i++;
	t = seen[i];
	if (t == SLU_NONE || (i == LIKE_MAX - 1 && !same_records(m, u, t))) {
		if (!usual(m, u))
			return;
		t = u;
	}
	/* The latest first. */
	memmove(seen + 1, seen, i * sizeof *seen);
	seen[0] = t;
	m->like[u] = t;
}

void match_alike_change(struct slu_match *m, uint32_t v)
{
	if (!m->like)
		return;
	for (;;) {
		m->like[v] = SLU_NONE;
		if (m->up[v] == SLU_NONE)
			return;
		v = m->g->e.p[m->up[v]].src;
	}
}
