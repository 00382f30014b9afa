/* cand.c — candidates, and the choice among them. */
#include "match/walk_internal.h"

struct cands *match_pool_cands(struct attempt *a, struct pool *p, uint16_t type, uint8_t sub,
			       bool make)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->k[i].type == type && p->k[i].sub == sub)
			return &p->k[i];
	if (!make)
		return NULL;
	if (p->n == p->cap) {
		uint32_t cap = p->cap ? p->cap * 2 : 4;
		struct cands *k = slu_arena_alloc(&a->m->tmp, cap * sizeof *k);

		if (!k) {
			a->no_memory = true;
			return NULL;
		}
		if (p->n)
			memcpy(k, p->k, p->n * sizeof *k);
		p->k = k;
		p->cap = cap;
	}
	p->k[p->n] = (struct cands){ .type = type, .sub = sub };
	return &p->k[p->n++];
}

void match_pool_add(struct cands *k, struct cand *c)
{
	c->next = NULL;
	if (k->tail)
		k->tail->next = c;
	else
		k->head = c;
	k->tail = c;
	k->n++;
	k->total += c->count;
	if (c->score > 0)
		k->qualified += c->count;
}

void match_pool_append(struct attempt *a, struct pool *to, const struct pool *from)
{
	for (uint32_t i = 0; i < from->n; i++) {
		const struct cands *f = &from->k[i];
		struct cands *k = match_pool_cands(a, to, f->type, f->sub, true);

		if (!k)
			return;
		if (!f->n)
			continue;
		if (k->tail)
			k->tail->next = f->head;
		else
			k->head = f->head;
		k->tail = f->tail;
		k->n += f->n;
		k->total += f->total;
		k->qualified += f->qualified;
	}
}

struct cand *match_cand_new(struct attempt *a, uint32_t npicks)
{
	struct cand *c = slu_arena_alloc(&a->m->tmp, sizeof *c);

	if (c) {
		*c = (struct cand){ .n = npicks };
		if (npicks > 1)
			c->many = slu_arena_alloc(&a->m->tmp, npicks * sizeof *c->many);
	}
	if (!c || (npicks > 1 && !c->many)) {
		a->no_memory = true;
		return NULL;
	}
	return c;
}

/* Relink the candidates in the order of their keys. */
static bool sort_cands(struct attempt *a, struct cands *k, bool greater,
		       int64_t (*key)(void *, int64_t), void *arg)
{
	struct key small[64], *keys = small;
	bool in_order = true, reversed = true;
	uint32_t n = 0;

	if (k->n < 2)
		return true;
	if (k->n > SLU_LEN(small))
		keys = slu_arena_alloc(&a->m->tmp, k->n * sizeof *keys);
	if (!keys) {
		a->no_memory = true;
		return false;
	}
	for (struct cand *c = k->head; c; c = c->next, n++) {
		keys[n] = (struct key){ key ? key(arg, c->score) : c->score, c };
		if (n) {
			in_order &= greater ? keys[n - 1].key > keys[n].key
					    : keys[n - 1].key < keys[n].key;
			reversed &= greater ? keys[n - 1].key < keys[n].key
					    : keys[n - 1].key > keys[n].key;
		}
	}
	/* The candidates are in order, or in reverse order, and no two are equal: any sort gives
	 * this result. */
	if (in_order)
		return true;
	if (reversed)
		for (uint32_t i = 0, j = n - 1; i < j; i++, j--) {
			struct key t = keys[i];

			keys[i] = keys[j];
			keys[j] = t;
		}
	else
		match_sort_keys(keys, n, greater);
	for (uint32_t i = 0; i + 1 < n; i++)
		keys[i].c->next = keys[i + 1].c;
	keys[n - 1].c->next = NULL;
	k->head = keys[0].c;
	k->tail = keys[n - 1].c;
	return true;
}

static bool take_best(struct cands *k, uint32_t n)
{
	int64_t units = 0;

	k->best = 0;
	for (struct cand *c = k->head; c && units < n; c = c->next) {
		units += c->count;
		k->best++;
	}
	k->chosen = true;
	return true;
}

bool match_choose(struct attempt *a, struct cands *k, uint32_t n, bool greater)
{
	if (!n || n > k->qualified || !sort_cands(a, k, greater, NULL, NULL))
		return false;
	return take_best(k, n);
}

void match_choose_all(struct attempt *a, struct pool *p, bool slot)
{
	bool greater = a->m->policy.scorer != SCORE_LOW &&
		       (a->m->policy.scorer != SCORE_VARIATION || slot);

	for (uint32_t i = 0; i < p->n; i++)
		if (p->k[i].qualified)
			sort_cands(a, &p->k[i], greater, NULL, NULL);
}

bool match_usual_order(const struct attempt *a)
{
	return a->m->policy.scorer == SCORE_HIGH || a->m->policy.scorer == SCORE_LOCALITY;
}

/* Mark the edges of the chosen candidates; false if none was chosen. */
bool match_mark_chosen(struct attempt *a, struct pool *own)
{
	bool any = false;

	for (uint32_t i = 0; i < own->n; i++) {
		const struct cands *k = &own->k[i];
		uint32_t left = k->best;

		if (!k->chosen)
			continue;
		any = true;
		for (const struct cand *c = k->head; c && left; c = c->next, left--) {
			const struct pick *p = cand_picks(c);

			for (uint32_t j = 0; j < c->n; j++)
				match_mark_pick(a->m, &p[j]);
		}
	}
	return any;
}

/* --- the choice for the whole request --- */

struct runs {
	int64_t *score;
	uint32_t n;
};

static int cmp_i64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* The start of the run of neighbouring scores that contains this score. */
static int64_t run_start(void *arg, int64_t score)
{
	const struct runs *r = arg; /* pairs: score, start of its run */
	uint32_t lo = 0, hi = r->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->score[2 * mid] < score)
			lo = mid + 1;
		else
			hi = mid;
	}
	return r->score[2 * lo + 1];
}

static int make_runs(struct attempt *a, struct pool *own, uint32_t upto, struct runs *r)
{
	uint32_t n = 0, k = 0;
	int64_t *s;

	for (uint32_t i = 0; i <= upto; i++) {
		struct cands *cs = match_pool_cands(a, own, a->list[i].type, a->m->sub[0], false);

		n += cs ? cs->n : 0;
	}
	s = slu_arena_alloc(&a->m->tmp, (2 * (size_t)n + 2) * sizeof *s);
	if (!s)
		return -ENOMEM;
	for (uint32_t i = 0; i <= upto; i++) {
		struct cands *cs = match_pool_cands(a, own, a->list[i].type, a->m->sub[0], false);

		for (struct cand *c = cs ? cs->head : NULL; c; c = c->next)
			s[k++] = c->score;
	}
	qsort(s, k, sizeof *s, cmp_i64);
	n = 0;
	for (uint32_t i = 0; i < k; i++)
		if (!n || s[n - 1] != s[i])
			s[n++] = s[i];
	/* Spread the scores to pairs, beginning at the end of the array, then fill in the
	 * starts. */
	for (uint32_t i = n; i-- > 0;)
		s[2 * i] = s[i];
	for (uint32_t i = 0; i < n; i++)
		s[2 * i + 1] = i && s[2 * i - 2] == s[2 * i] - 1 ? s[2 * i - 1] : s[2 * i];
	*r = (struct runs){ s, n };
	return 0;
}

/* Mark the edges above the chosen vertices, for types of which no candidate was chosen. */
static void complete_upwards(struct attempt *a, struct pool *own, uint32_t edge)
{
	struct slu_match *m = a->m;
	uint32_t v = m->g->e.p[edge].src;

	for (uint32_t e = m->up[v], left = DEPTH_MAX; e != SLU_NONE && left; e = m->up[v], left--) {
		struct cands *k;

		if (m->mark[e].gen == m->gen)
			return;
		k = match_pool_cands(a, own, m->g->v.p[v].type, m->sub[0], false);
		if (k && !k->chosen)
			match_mark_put(m, e, m->g->v.p[v].size, false);
		v = m->g->e.p[e].src;
	}
}

int match_decide(struct attempt *a, uint32_t root, struct pool *own, int64_t root_avail)
{
	struct slu_match *m = a->m;

	a->root_needs = 1;
	for (uint32_t i = 0; i < a->nlist; i++) {
		const struct slu_request *r = &a->list[i];
		struct cands *k = match_pool_cands(a, own, r->type, m->sub[0], false);
		int64_t q = k ? k->qualified : 0;
		uint32_t n = slu_count_select(&r->count, (uint32_t)SLU_MIN(q, (int64_t)UINT32_MAX));

		if (!n)
			return -ENODEV;
		if (m->policy.scorer == SCORE_LOCALITY) {
			struct runs runs;

			if (make_runs(a, own, i, &runs) < 0 ||
			    !sort_cands(a, k, true, run_start, &runs))
				return -ENOMEM;
			take_best(k, n);
		} else if (!match_choose(a, k, n, match_usual_order(a))) {
			return a->no_memory ? -ENOMEM : -ENODEV;
		}
		if (r->type == m->g->v.p[root].type) {
			a->root_needs = slu_count_select(&r->count, (uint32_t)root_avail);
			if (!a->root_needs)
				return -ENODEV;
		}
	}
	for (uint32_t i = 0; i < own->n; i++)
		if (own->k[i].qualified <= 0)
			return -ENODEV;
	match_mark_chosen(a, own);
	for (uint32_t i = 0; i < own->n; i++) {
		const struct cands *k = &own->k[i];
		uint32_t left = k->best;

		if (!k->chosen)
			continue;
		for (const struct cand *c = k->head; c && left; c = c->next, left--)
			for (uint32_t j = 0; j < c->n; j++)
				complete_upwards(a, own, cand_picks(c)[j].edge);
	}
	return 0;
}
