/* clone.c — an independent copy of all bookings, on which a caller can try "what if" questions. */
#include "match/match_internal.h"

#define dup(to, from, n) \
	(!(from) || ((to) = slu_malloc(((size_t)(n) + 1) * sizeof *(from))) != NULL)

static bool copy_arrays(struct slu_match *c, const struct slu_match *m)
{
	uint32_t kids = m->kid_off[m->nv];

	if (!dup(c->kid_off, m->kid_off, m->nv) || !dup(c->kid, m->kid, m->ne) ||
	    !dup(c->ord, m->ord, m->ne) || !dup(c->weight, m->weight, m->ne) ||
	    !dup(c->up, m->up, m->nv) || !dup(c->kidtypes, m->kidtypes, m->nv) ||
	    !dup(c->mark, m->mark, m->ne) || !dup(c->colour, m->colour, m->nv) ||
	    !dup(c->prune_at, m->prune_at, m->ntypes))
		return false;
	memcpy(c->kid_off, m->kid_off, ((size_t)m->nv + 1) * sizeof *m->kid_off);
	memcpy(c->kid, m->kid, kids * sizeof *m->kid);
	memcpy(c->up, m->up, m->nv * sizeof *m->up);
	memcpy(c->kidtypes, m->kidtypes, m->nv * sizeof *m->kidtypes);
	memcpy(c->mark, m->mark, m->ne * sizeof *m->mark);
	if (m->prune_at)
		memcpy(c->prune_at, m->prune_at, m->ntypes * sizeof *m->prune_at);
	if (m->ord) {
		memcpy(c->ord, m->ord, kids * sizeof *m->ord);
		memcpy(c->weight, m->weight, m->ne * sizeof *m->weight);
	}
	if (m->colour)
		memcpy(c->colour, m->colour, m->nv * sizeof *m->colour);
	return true;
}

static bool copy_rest(struct slu_match *c, const struct slu_match *m)
{
	if (slu_vec_reserve(&c->filters, m->filters.n) < 0 ||
	    slu_vec_reserve(&c->prune, m->prune.n) < 0 ||
	    slu_vec_reserve(&c->whole, m->whole.n) < 0 ||
	    slu_vec_reserve(&c->family, m->family.n) < 0)
		return false;
	for (uint32_t i = 0; i < m->family.n; i++)
		c->family.p[c->family.n++] = m->family.p[i];
	for (uint32_t i = 0; i < m->whole.n; i++)
		c->whole.p[c->whole.n++] = m->whole.p[i];
	for (uint32_t i = 0; i < m->filters.n; i++)
		c->filters.p[c->filters.n++] = m->filters.p[i];
	for (uint32_t i = 0; i < m->prune.n; i++)
		c->prune.p[c->prune.n++] = m->prune.p[i];
	for (uint32_t i = 0; i < m->words.n; i++)
		if (slu_intern(&c->words, slu_intern_str(&m->words, i)) != i)
			return false;
	for (uint32_t i = 0; i < m->labels.n; i++)
		if (slu_map_put(&c->labels, m->labels.e[i].key, m->labels.e[i].val) < 0)
			return false;
	c->multi = slu_calloc((size_t)m->nv * m->nsub + 1, sizeof *c->multi);
	if (!c->multi)
		return false;
	for (size_t i = 0; i < (size_t)m->nv * m->nsub; i++)
		if (m->multi[i] && !(c->multi[i] = slu_multi_copy(m->multi[i])))
			return false;
	return match_led_copy(&c->led, &m->led) == 0;
}

struct slu_match *slu_match_clone(const struct slu_match *m, struct slu_graph *g)
{
	slu_cleanup(slu_match_freep) struct slu_match *c = slu_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->g = g;
	c->policy = m->policy;
	c->flexible = m->flexible;
	c->count_visits = m->count_visits;
	c->end_s = m->end_s;
	memcpy(c->sub, m->sub, sizeof c->sub);
	c->nsub = m->nsub;
	c->ntypes = m->ntypes;
	c->nv = m->nv;
	c->ne = m->ne;
	c->tree = m->tree;
	c->no_parents = m->no_parents;
	c->depth = m->depth;
	c->nodes_up = m->nodes_up;
	c->centre = m->centre;
	c->nested = m->nested;
	c->gen = m->gen;
	c->odd = m->odd;
	c->inexact = m->inexact;
	c->unseen = m->unseen;
	c->level = m->level;
	c->pre = m->pre;
	c->post = m->post;
	c->stale = m->stale;
	c->msg = SLU_BUF_INIT(64 << 20);
	if (!copy_arrays(c, m) || !copy_rest(c, m))
		return NULL;
	return slu_take(c);
}
