/* marks.c — what an attempt leaves on the graph for book.c: marked edges, and labels on
 * vertices.  A mark is valid for one generation; starting the next generation invalidates all
 * marks. */
#include "match/match_internal.h"

/* --- labels --- */

int match_label_set(struct slu_match *m, uint32_t v, const char *text)
{
	uint32_t word = slu_intern(&m->words, text);

	if (word == SLU_INTERN_NONE)
		return -ENOMEM;
	return slu_map_put(&m->labels, v, (uint64_t)m->gen << 32 | word);
}

const char *match_label_of(const struct slu_match *m, uint32_t v)
{
	uint64_t *at = slu_map_get(&m->labels, v);

	return at ? slu_intern_str(&m->words, (uint32_t)*at) : NULL;
}

/* --- marks --- */

void match_mark_put(struct slu_match *m, uint32_t e, uint32_t needs, bool excl)
{
	uint32_t u = m->g->e.p[e].src;

	if (m->kid_off[u + 1] - m->kid_off[u] > WIDE && m->mark[e].gen != m->gen &&
	    slu_vec_push(&m->wide, (uint64_t)u << 32 | e) < 0)
		m->wide_lost = true;
	m->mark[e] = (struct mark){ .needs = needs, .gen = m->gen, .excl = excl };
}

void match_mark_above(struct slu_match *m, uint32_t v)
{
	for (uint32_t e = m->up[v]; e != SLU_NONE && m->mark[e].gen != m->gen; e = m->up[v]) {
		match_mark_put(m, e, m->g->v.p[v].size, false);
		v = m->g->e.p[e].src;
	}
}

void match_mark_pick(struct slu_match *m, const struct pick *p)
{
	uint32_t s;

	match_mark_put(m, p->edge, p->needs, p->excl);
	if (p->all)
		match_family_at(m, m->g->e.p[p->edge].dst, &s)->gen = m->gen;
}

void match_mark_tick(struct slu_match *m)
{
	if (++m->gen >= 1u << 30) {
		memset(m->mark, 0, m->ne * sizeof *m->mark);
		for (uint32_t i = 0; i < m->family.n; i++)
			m->family.p[i].gen = 0;
		if (m->colour)
			memset(m->colour, 0, m->nv * sizeof *m->colour);
		m->gen = 1;
	}
	m->wide.n = 0;
	m->wide_lost = false;
}
