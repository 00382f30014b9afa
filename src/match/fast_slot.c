/* fast_slot.c — a top-level slot ("slot -> core", anywhere): every vertex whose children have the
 * slot's types offers slots, each with its score; the best of all offers are chosen.
 *
 * Offers are remembered per vertex until something below it changes, and a tournament over the
 * vertices finds the best first slot.  When the last slot chosen ties with one left out, fast_tie.c
 * decides. */
#include "match/fast.h"

#define LEVELS_MAX 4096

void memo_slots_done(struct memo *x, uint32_t n)
{
	for (uint32_t i = 0; x->offer && i < n; i++)
		if (x->offer[i].cap)
			slu_free(x->offer[i].score);
	while (x->nshared)
		slu_free(x->shared[--x->nshared]);
	slu_free(x->offer);
	slu_free(x->tree);
	slu_free(x->sums);
	slu_free(x->level);
	slu_free(x->extent);
	ranks_done(&x->ranks);
	for (uint32_t i = 0; i < KEPT_MAX; i++)
		slu_free(x->kept[i].pick);
	memset(x->kept, 0, sizeof x->kept);
	x->offer = NULL;
	x->extent = NULL;
	x->tree = x->sums = x->level = NULL;
}

static int make_room(const struct front *f, struct memo *x)
{
	if (x->offer)
		return 0;
	for (x->leaves = 1; x->leaves < f->n; x->leaves *= 2)
		;
	x->offer = slu_calloc(f->n + 1, sizeof *x->offer);
	x->tree = slu_reallocarray(NULL, 2 * (size_t)x->leaves, sizeof *x->tree);
	x->sums = slu_calloc(f->n + 1, sizeof *x->sums);
	if (!x->offer || !x->tree || !x->sums) {
		memo_slots_done(x, f->n);
		return -ENOMEM;
	}
	memset(x->tree, 0xff, 2 * (size_t)x->leaves * sizeof *x->tree);
	return 0;
}

/* The better of two positions by their next slot. */
static uint32_t better(const struct memo *x, uint32_t a, uint32_t b, bool greater)
{
	int64_t s, t;

	if (a == SLU_NONE || b == SLU_NONE)
		return a == SLU_NONE ? b : a;
	s = offer_score(&x->offer[a], x->offer[a].next);
	t = offer_score(&x->offer[b], x->offer[b].next);
	return (greater ? t > s : t < s) ? b : a;
}

/* The offer at p changed: play its matches again. */
static void replay(struct memo *x, uint32_t p, bool greater)
{
	const struct offer *o = &x->offer[p];
	uint32_t i = x->leaves + p;

	if (x->bulk)
		return;
	x->tree[i] = o->next < o->n ? p : SLU_NONE;
	for (i /= 2; i; i /= 2)
		x->tree[i] = better(x, x->tree[2 * i], x->tree[2 * i + 1], greater);
}

/* --- how many slots, and of which scores --- */

static void sums_add(const struct front *f, struct memo *x, uint32_t p, uint32_t more)
{
	for (uint32_t i = p + 1; i <= f->n && !x->bulk; i += i & -i)
		x->sums[i] += more; /* modulo 2^32: also takes away */
}

/* `tree` and `sums` for all offers as they are. */
static void tally(const struct front *f, struct memo *x, bool greater)
{
	for (uint32_t p = 0; p < f->n; p++) {
		x->tree[x->leaves + p] = x->offer[p].n ? p : SLU_NONE;
		x->sums[p + 1] = x->offer[p].n;
	}
	for (uint32_t i = x->leaves; --i;)
		x->tree[i] = better(x, x->tree[2 * i], x->tree[2 * i + 1], greater);
	for (uint32_t i = 1, up; i <= f->n; i++) {
		up = i + (i & -i);
		if (up <= f->n)
			x->sums[up] += x->sums[i];
	}
}

/* Make room for this score, or note that there is none. */
static void level_reach(struct memo *x, int64_t score)
{
	int64_t low = x->nlevel ? SLU_MIN(x->base, score) : score;
	int64_t high = x->nlevel ? SLU_MAX(x->base + x->nlevel - 1, score) : score;
	uint32_t *more, n;

	if (x->nlevel && low == x->base && high == x->base + x->nlevel - 1)
		return;
	ranks_done(&x->ranks); /* other values */
	n = (uint32_t)SLU_MIN(high - low + 1, (int64_t)LEVELS_MAX + 1);
	more = n <= LEVELS_MAX ? slu_calloc(n, sizeof *more) : NULL;
	if (!more) {
		x->spread = true;
		return;
	}
	if (x->nlevel)
		memcpy(more + (x->base - low), x->level, x->nlevel * sizeof *more);
	slu_free(x->level);
	x->level = more;
	x->base = low;
	x->nlevel = n;
}

/* Count the slots of an offer in (so many times) or out (-1). */
static void levels_count(struct memo *x, const struct offer *o, int by)
{
	for (uint32_t i = 0; i < o->n && !x->spread; i++) {
		uint32_t *n;

		if (by > 0)
			level_reach(x, offer_score(o, i));
		if (x->spread)
			break;
		n = &x->level[offer_score(o, i) - x->base];
		x->filled += by > 0 && !*n;
		*n += (uint32_t)by;
		x->filled -= by < 0 && !*n;
	}
}

/* --- offers --- */

static bool same_offer(const struct offer *o, const struct kind *k)
{
	uint32_t n = 0;

	if (o->n != (k ? k->n : 0))
		return false;
	for (const struct cand *c = k ? k->head : NULL; c; c = c->next)
		if (c->score != offer_score(o, n++))
			return false;
	return true;
}

/* Put down what vertex p offers from now on. */
static int change_offer(struct attempt *a, struct front *f, struct memo *x, uint32_t p,
			const struct kind *k)
{
	struct slu_match *m = a->m;
	struct offer *o = &x->offer[p];
	int64_t *fresh = NULL;
	uint32_t n = 0;

	if (k && k->n > o->cap) {
		fresh = slu_reallocarray(NULL, k->n, sizeof *fresh);
		if (!fresh)
			return -ENOMEM;
	}
	levels_count(x, o, -1);
	if (x->ranks.row)
		ranks_change(&x->ranks, p, o, -1);
	if (fresh) {
		if (o->cap)
			slu_free(o->score);
		o->score = fresh;
		o->cap = k->n;
	}
	o->shift = 0;
	for (struct cand *c = k ? k->head : NULL; c; c = c->next) {
		if (c->score <= 0)
			f->bad = true;
		/* Slots of one vertex mostly come in the order of the policy, but not if they
		 * differ in the number of their members, nor with variation. */
		if (n &&
		    (greater_first(m) ? c->score > o->score[n - 1] : c->score < o->score[n - 1]))
			x->unordered = true;
		o->score[n++] = c->score;
	}
	if (f->bad)
		return -EAGAIN;
	x->slots += (int64_t)n - o->n;
	sums_add(f, x, p, n - o->n);
	o->n = n;
	levels_count(x, o, 1);
	if (x->ranks.row)
		ranks_change(&x->ranks, p, o, 1);
	extent_change(m, x, p);
	return 0;
}

/* --- what was asked lately --- */

static struct kept *kept_of(struct memo *x, uint32_t p)
{
	for (uint32_t i = 0; i < KEPT_MAX; i++)
		if (x->kept[i].n && x->kept[i].p == p)
			return &x->kept[i];
	return NULL;
}

/* The next jobs often take from the same few vertices: keep the way to these slots, where that is
 * all a search marks. */
static void keep(const struct slu_match *m, struct memo *x, uint32_t p, const struct kind *k)
{
	struct kept *to = kept_of(x, p);
	uint32_t n = 0;

	if (!to)
		to = &x->kept[x->nkept++ % KEPT_MAX];
	to->p = p;
	to->n = 0;
	if (k && k->n > to->cap) {
		struct pick *more = slu_reallocarray(to->pick, k->n, sizeof *more);

		if (!more)
			return; /* it will be asked again */
		to->pick = more;
		to->cap = k->n;
	}
	for (const struct cand *c = k ? k->head : NULL; c; c = c->next) {
		uint32_t v = c->n == 1 ? m->g->e.p[c->one.edge].dst : SLU_NONE;

		if (v == SLU_NONE || m->kid_off[v] != m->kid_off[v + 1])
			return;
		to->pick[n++] = c->one;
	}
	to->n = n;
}

/* What vertex p offers now. */
static int ask(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	struct slu_match *m = a->m;
	struct pool up = { 0 };
	struct offer *o = &x->offer[p];
	struct kind *k = NULL;
	uint32_t v = f->v[p];
	int64_t count;

	/* Above it the sum of what is free is asked too, and that changes with others: where it
	 * says no, take the plain walk rather than remember it. */
	if (!passes(a, x, v))
		return -EAGAIN;
	if (walk_visit(a, v, f->centre[p], &count, &up))
		k = pool_kind(a, &up, SLU_TYPE_SLOT, m->sub[0], false);
	if (a->no_memory)
		return -ENOMEM;
	if (o->n)
		keep(m, x, p, k);
	if (!same_offer(o, k)) {
		int rc = change_offer(a, f, x, p, k);

		if (rc < 0)
			return rc;
	}
	o->next = 0;
	o->head = k ? k->head : NULL;
	x->marked[p] = m->gen;
	memo_know(m, f, x, p);
	replay(x, p, greater_first(m));
	return 0;
}

/* --- the same again --- */

static uint32_t picks_of(const struct offer *o)
{
	for (const struct cand *c = o->head; c; c = c->next)
		if (c->n != o->head->n)
			return 0;
	return o->head ? o->head->n : 0;
}

static bool equal_offers(const struct offer *a, const struct offer *b, int64_t shift)
{
	if (a->n != b->n)
		return false;
	if (a->score == b->score)
		return !a->n || a->shift == shift;
	for (uint32_t i = 0; i < a->n; i++)
		if (offer_score(a, i) != b->score[i] + shift)
			return false;
	return true;
}

/* Let p offer what the model does.  -EAGAIN: ask it. */
static int adopt(struct attempt *a, struct front *f, struct memo *x, uint32_t p, struct model *like,
		 int64_t centre)
{
	struct slu_match *m = a->m;
	struct offer *o = &x->offer[p], *from = &x->offer[like->p];
	struct kept *kept = kept_of(x, p);
	int64_t by = m->policy.scorer == SCORE_LOCALITY ? 0 : centre - like->centre;

	if ((by && from->n && !like->picks) || __builtin_mul_overflow(by, like->picks, &by) ||
	    __builtin_add_overflow(by, from->shift, &by))
		return -EAGAIN;
	if (!equal_offers(o, from, by)) {
		if (o->n || (from->cap && x->nshared == SHARED_MAX))
			return -EAGAIN;
		if (from->cap)
			x->shared[x->nshared++] = from->score;
		if (o->cap)
			slu_free(o->score);
		from->cap = o->cap = 0;
		o->score = from->score;
		o->shift = by;
		o->n = from->n;
		x->slots += o->n;
		sums_add(f, x, p, o->n);
		if (by == from->shift)
			like->more++;
		else
			levels_count(x, o, 1);
		if (x->ranks.row)
			ranks_change(&x->ranks, p, o, 1);
		extent_change(m, x, p);
	}
	if (kept)
		kept->n = 0;
	x->known[p / 64] |= 1ull << p % 64;
	x->later[p / 64] &= ~(1ull << p % 64);
	m->fast->last[x->front] = SLU_NONE;
	replay(x, p, greater_first(m));
	return 0;
}

/* Ask vertex p, or one like it. */
static int learn(struct attempt *a, struct front *f, struct memo *x, uint32_t p)
{
	int64_t centre;
	struct model *like = model_for(a, f, x, p, &centre);
	int rc = -EAGAIN;

	if (like && like->p != p && passes(a, x, f->v[p]))
		rc = adopt(a, f, x, p, like, centre);
	if (rc == -EAGAIN)
		rc = ask(a, f, x, p);
	if (!rc && like && like->p == p)
		like->picks = picks_of(&x->offer[p]);
	return rc;
}

static int ask_unknown(struct attempt *a, struct front *f, struct memo *x)
{
	int rc = 0;

	x->bulk = true;
	for (uint32_t w = 0; w < memo_words(f->n) && x->bulk; w++)
		x->bulk = !x->known[w];
	for (uint32_t w = 0; w < memo_words(f->n) && !rc; w++) {
		uint64_t bits = ~x->known[w];

		while (bits && !rc) {
			uint32_t p = w * 64 + (uint32_t)__builtin_ctzll(bits);

			bits &= bits - 1;
			if (p >= f->n)
				break;
			rc = learn(a, f, x, p);
		}
	}
	for (uint32_t i = 0; i < x->nmodel && x->model_gen == a->m->gen; i++) {
		if (x->model[i].more)
			levels_count(x, &x->offer[x->model[i].p], (int)x->model[i].more);
		x->model[i].more = 0;
	}
	if (x->bulk)
		tally(f, x, greater_first(a->m));
	x->bulk = false;
	return rc;
}

/* Mark slot number i of vertex p. */
static int take(struct attempt *a, struct front *f, struct memo *x, uint32_t p, uint32_t i)
{
	struct slu_match *m = a->m;
	const struct kept *kept = kept_of(x, p);
	const struct pick *picks;
	const struct cand *c;

	if (kept) {
		if (i >= kept->n || !passes(a, x, f->v[p]))
			return -EAGAIN;
		mark_put(m, kept->pick[i].edge, kept->pick[i].needs, kept->pick[i].excl);
		mark_above(m, f->v[p]);
		return 0;
	}
	if (x->marked[p] != m->gen) {
		uint32_t next = x->offer[p].next, n = x->offer[p].n;
		int rc = ask(a, f, x, p);

		if (rc < 0)
			return rc;
		if (x->offer[p].n != n)
			return -EAGAIN;
		x->offer[p].next = next;
	}
	for (c = x->offer[p].head; c && i; i--)
		c = c->next;
	if (!c)
		return -EAGAIN;
	picks = cand_picks(c);
	for (uint32_t k = 0; k < c->n; k++)
		mark_put(m, picks[k].edge, picks[k].needs, picks[k].excl);
	mark_above(m, f->v[p]);
	return 0;
}

/* The best `want` slots by the tournament; -EAGAIN if equals are left out. */
static int by_tournament(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
			 struct chosen *out)
{
	bool greater = greater_first(a->m), tie = false;
	int64_t last = 0;

	for (uint32_t n = 0; n < want; n++) {
		uint32_t p = x->tree[1];
		struct offer *o = &x->offer[p];

		last = offer_score(o, o->next);
		out[n] = (struct chosen){ p, o->next };
		o->next++;
		replay(x, p, greater);
	}
	if (x->tree[1] != SLU_NONE) {
		const struct offer *o = &x->offer[x->tree[1]];

		tie = tie || offer_score(o, o->next) == last;
	}
	for (uint32_t n = 0; n < want; n++) {
		x->offer[out[n].p].next = 0;
		replay(x, out[n].p, greater);
	}
	return tie ? -EAGAIN : 0;
}

int fast_slots(struct attempt *a, const struct slu_request *r, struct front *f, struct memo *x)
{
	struct slu_match *m = a->m;
	struct chosen *list;
	uint32_t want;
	int rc;

	if (make_room(f, x) < 0)
		return -ENOMEM;
	rc = ask_unknown(a, f, x);
	if (!rc)
		rc = extent_make(m, f, x);
	if (rc < 0)
		return rc;
	want = slu_count_select(&r->count, (uint32_t)SLU_MIN(x->slots, (int64_t)UINT32_MAX));
	if (!want || want > x->slots) {
		a->error = ENODEV;
		return -ENODEV;
	}
	list = slu_arena_alloc(&m->tmp, want * sizeof *list);
	if (!list)
		return -ENOMEM;
	rc = -EAGAIN;
	if (m->policy.scorer != SCORE_LOCALITY && !x->unordered)
		rc = by_tournament(a, f, x, want, list);
	if (rc == -EAGAIN)
		rc = tie_decide(a, f, x, want, list);
	for (uint32_t i = 0; i < want && !rc; i++)
		rc = take(a, f, x, list[i].p, list[i].i);
	a->error = EBUSY;
	return rc;
}
