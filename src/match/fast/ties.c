/* ties.c — which of the equal slots are taken.
 *
 * The reference sorts all slots, and where its sort leaves equals depends on all of them.  Four
 * ways to the same end: by place if all are equal; by counts of the slots of every score, if there
 * are few scores (ranks_internal.h); stretch by stretch, if most vertices differ from the pivot as a whole;
 * and the sort itself, one by one. */
#include "match/fast/fast_internal.h"

#define WRITTEN_MAX 512 /* number of slots that are followed in stretches */

/* --- all equal --- */

/* Whether all slots are equal to the sort. */
static bool all_equal(const struct slu_match *m, const struct memo *x)
{
	uint32_t low = 0, high = x->levels.n;

	if (x->levels.spread || !x->levels.filled)
		return false;
	if (m->policy.scorer != SCORE_LOCALITY)
		return x->levels.filled == 1;
	while (!x->levels.of[low])
		low++;
	while (!x->levels.of[high - 1])
		high--;
	return high - low == x->levels.filled;
}

static void one_run(void *arg, uint32_t i, uint32_t *lo, uint32_t *hi)
{
	*lo = 0;
	*hi = *(uint32_t *)arg;
}

/* All slots are equal to the sort. */
static int by_place(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
		    struct chosen *out)
{
	struct slu_match *m = a->m;
	uint32_t n = (uint32_t)x->offers.slots, *number;
	int rc;

	number = slu_arena_alloc(&m->tmp, want * sizeof *number);
	if (!number)
		return -ENOMEM;
	rc = match_sort_runs(&m->tmp, n, false, want, one_run, &n, number);
	for (uint32_t i = 0; i < want && !rc; i++)
		out[i] = match_offers_find(&x->offers, number[i]);
	return rc;
}

/* --- by counts --- */

/* Which levels are equal to the sort: only each level itself or, with locality, levels in a row. */
static void say_equal(const struct slu_match *m, const struct memo *x, uint32_t *equal)
{
	for (uint32_t v = x->levels.n; v-- > 0;) {
		/* With locality the greatest score has value 0. */
		bool on = m->policy.scorer == SCORE_LOCALITY && v + 1 < x->levels.n &&
			  x->levels.of[x->levels.n - 1 - v] && x->levels.of[x->levels.n - 2 - v];

		equal[v] = on ? equal[v + 1] : v;
	}
}

/* Use the counts of all slots, which are kept from one search to the next. */
static int by_ranks(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
		    struct chosen *out)
{
	struct slu_match *m = a->m;
	struct ranks *r = &x->ranks;
	uint32_t *number;
	int rc;

	if (!r->row) {
		*r = (struct ranks){ .of = &x->offers,
				     .base = x->levels.base,
				     .width = x->levels.n };
		if (match_ranks_make(r) < 0)
			return -EAGAIN;
	}
	r->slots = (uint32_t)x->offers.slots;
	say_equal(m, x, r->equal);
	number = slu_arena_alloc(&m->tmp, want * sizeof *number);
	if (!number)
		return -ENOMEM;
	rc = match_sort_ranks(&m->tmp, r, want, number);
	for (uint32_t i = 0; i < want && !rc; i++)
		out[i] = match_offers_find(&x->offers, number[i]);
	return rc;
}

/* --- in stretches --- */

static int64_t key_of(const struct offers *o, int64_t score)
{
	return o->g->greater ? -score : score;
}

static const struct range nothing = { INT64_MAX, INT64_MIN };

static struct range join_ranges(const struct range *a)
{
	return (struct range){ SLU_MIN(a[0].low, a[1].low), SLU_MAX(a[0].high, a[1].high) };
}

/* Keys of a block, best first. */
static struct range keys_of(const struct offers *o, const struct block *b)
{
	if (!b->n)
		return nothing;
	return (struct range){ key_of(o, block_score(b, 0)), key_of(o, block_score(b, b->n - 1)) };
}

/* Keys of the vertices below number i of the tree of a chunk that is not written down. */
static struct range keys_plain(const struct offers *o, uint32_t c, uint32_t i)
{
	const struct pattern *t;
	const struct range *r;
	int64_t low = 0, high = 0;

	t = o->plain[c] ? &o->pattern[o->plain[c] - 1] : NULL;
	if (!t || !t->n)
		return nothing;
	if (o->g->range) {
		r = &o->g->range[(size_t)c * 2 * CHUNK_N + i];
		if (r->low > r->high)
			return nothing;
		low = (r->low - t->centre) * t->picks;
		high = (r->high - t->centre) * t->picks;
	} else {
		/* The vertices below i: is there one at all? */
		while (i < CHUNK_N)
			i *= 2;
		if (i - CHUNK_N >= chunk_size(o, c))
			return nothing;
	}
	if (o->g->greater)
		return (struct range){ -(t->score[0] + high), -(t->score[t->n - 1] + low) };
	return (struct range){ t->score[0] + low, t->score[t->n - 1] + high };
}

/* The same for any chunk. */
static inline struct range keys_at(const struct memo *x, uint32_t c, uint32_t i)
{
	return x->part[c] ? x->part[c][i] : keys_plain(&x->offers, c, i);
}

void match_extent_done(struct memo *x)
{
	for (uint32_t c = 0; x->part && c < x->offers.nchunk; c++)
		slu_free(x->part[c]);
	slu_free(x->part);
	slu_free(x->extent);
	x->part = NULL;
	x->extent = NULL;
}

void match_extent_write(struct memo *x, uint32_t c)
{
	const struct offers *o = &x->offers;
	struct range *r;

	if (!x->extent)
		return;
	r = x->part[c] = slu_reallocarray(NULL, (size_t)2 * CHUNK_N, sizeof *r);
	if (!r) {
		match_extent_done(x); /* the tables are made again when needed */
		return;
	}
	for (uint32_t j = 0; j < CHUNK_N; j++) {
		struct block b = offers_at(o, c * CHUNK_N + j);

		r[CHUNK_N + j] = keys_of(o, &b);
	}
	for (uint32_t i = CHUNK_N; --i;)
		r[i] = join_ranges(r + (size_t)2 * i);
}

void match_extent_change(struct memo *x, uint32_t p)
{
	struct block b = offers_at(&x->offers, p);
	uint32_t c = p / CHUNK_N, i = CHUNK_N + p % CHUNK_N;

	if (!x->extent)
		return;
	x->part[c][i] = keys_of(&x->offers, &b);
	for (i /= 2; i; i /= 2)
		x->part[c][i] = join_ranges(x->part[c] + (size_t)2 * i);
	i = x->offers.top + c;
	x->extent[i] = x->part[c][1];
	for (i /= 2; i; i /= 2)
		x->extent[i] = join_ranges(x->extent + (size_t)2 * i);
}

static bool in_stretches(const struct slu_match *m, const struct memo *x)
{
	return x->levels.spread && !x->unordered && m->policy.scorer != SCORE_LOCALITY;
}

int match_extent_make(const struct slu_match *m, struct memo *x)
{
	const struct offers *o = &x->offers;

	if (x->extent || !in_stretches(m, x))
		return 0;
	x->extent = slu_reallocarray(NULL, 2 * (size_t)o->top, sizeof *x->extent);
	x->part = slu_calloc(o->nchunk + 1, sizeof *x->part);
	for (uint32_t c = 0; c < o->top && x->extent && x->part; c++) {
		if (c < o->nchunk && o->chunk[c])
			match_extent_write(x, c);
		if (x->extent)
			x->extent[o->top + c] = c < o->nchunk ? keys_at(x, c, 1) : nothing;
	}
	if (!x->extent || !x->part) {
		match_extent_done(x);
		return -ENOMEM;
	}
	for (uint32_t i = o->top; --i;)
		x->extent[i] = join_ranges(x->extent + (size_t)2 * i);
	return 0;
}

struct slots {
	const struct memo *x;
	struct near {
		uint32_t p, start, n; /* a vertex, the number of its first slot, its slots */
	} near[2];                    /* asked for last, the latest first */
};

static bool is_in(const struct near *b, uint32_t i)
{
	return i - b->start < b->n; /* below it: a great number */
}

/* As offers_find; the next is often of the same vertex, or of the one before. */
static struct chosen find_slot(struct slots *s, uint32_t i)
{
	if (!is_in(&s->near[0], i)) {
		struct near b = s->near[1];

		if (!is_in(&b, i)) {
			struct chosen c = match_offers_find(&s->x->offers, i);

			b = (struct near){ c.p, i - c.i, offers_at(&s->x->offers, c.p).n };
		}
		s->near[1] = s->near[0];
		s->near[0] = b;
	}
	return (struct chosen){ s->near[0].p, i - s->near[0].start };
}

static int compare_keys(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int64_t slot_key(void *arg, uint32_t i)
{
	struct slots *s = arg;
	struct chosen c = find_slot(s, i);
	struct block b = offers_at(&s->x->offers, c.p);

	return key_of(&s->x->offers, block_score(&b, c.i));
}

static bool whole_range(struct range e, int64_t key, int cmp)
{
	if (e.low > e.high)
		return true;
	return compare_keys(e.low, key) == cmp && compare_keys(e.high, key) == cmp;
}

/* The first vertex below number i of a chunk's tree with a slot that compares otherwise. */
static uint32_t other_below(const struct memo *x, uint32_t c, uint32_t i, int64_t key, int cmp)
{
	while (i < CHUNK_N) {
		i *= 2;
		i += whole_range(keys_at(x, c, i), key, cmp);
	}
	return c * CHUNK_N + i - CHUNK_N;
}

/* The first vertex from p on with a slot that compares otherwise; SLU_NONE if there is none. */
static uint32_t other_from(const struct memo *x, uint32_t p, int64_t key, int cmp)
{
	uint32_t c = p / CHUNK_N, i = CHUNK_N + p % CHUNK_N, top = x->offers.top;

	if (c >= x->offers.nchunk)
		return SLU_NONE;
	do {
		while (i % 2 == 0)
			i /= 2;
		if (!whole_range(keys_at(x, c, i), key, cmp))
			return other_below(x, c, i, key, cmp);
		i++;
	} while (i & (i - 1));
	if (++c >= x->offers.nchunk)
		return SLU_NONE;
	i = top + c;
	do {
		while (i % 2 == 0)
			i /= 2;
		if (!whole_range(x->extent[i], key, cmp)) {
			while (i < top) {
				i *= 2;
				i += whole_range(x->extent[i], key, cmp);
			}
			return other_below(x, i - top, 1, key, cmp);
		}
		i++;
	} while (i & (i - 1));
	return SLU_NONE;
}

/* How many slots of a vertex from number j on compare like this; they get worse. */
static uint32_t alike(const struct offers *o, const struct block *b, uint32_t j, int64_t key,
		      int cmp)
{
	uint32_t lo = j, hi = b->n;

	if (compare_keys(key_of(o, block_score(b, j)), key) != cmp)
		return 0;
	if (compare_keys(key_of(o, block_score(b, hi - 1)), key) == cmp)
		return hi - j;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (compare_keys(key_of(o, block_score(b, mid)), key) == cmp)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - j;
}

static uint32_t slot_stretch(void *arg, uint32_t i, uint32_t end, int64_t key, int *cmp)
{
	struct slots *s = arg;
	const struct offers *o = &s->x->offers;
	struct chosen c = find_slot(s, i);
	struct block b = offers_at(o, c.p);
	uint32_t n, p;

	*cmp = compare_keys(key_of(o, block_score(&b, c.i)), key);
	if (i + 1 == end)
		return end;
	n = alike(o, &b, c.i, key, *cmp);
	if (c.i + n < b.n || i + n >= end)
		return SLU_MIN(i + n, end);
	p = other_from(s->x, c.p + 1, key, *cmp);
	if (p == SLU_NONE)
		return end;
	b = offers_at(o, p);
	return SLU_MIN(match_offers_before(o, p) + alike(o, &b, 0, key, *cmp), end);
}

static int by_stretches(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
			struct chosen *out)
{
	struct slu_match *m = a->m;
	struct slots s = { .x = x };
	struct sequence q = { (uint32_t)x->offers.slots, false, &s, slot_key, slot_stretch };
	uint32_t *number = slu_arena_alloc(&m->tmp, want * sizeof *number);
	int rc;

	if (!number)
		return -ENOMEM;
	rc = match_sort_sequence(&m->tmp, &q, want, WRITTEN_MAX, number);
	for (uint32_t i = 0; i < want && !rc; i++)
		out[i] = match_offers_find(&x->offers, number[i]);
	return rc;
}

/* --- one by one --- */

/* Scores become the starts of the runs of neighbours they are in. */
static int to_runs(struct attempt *a, struct key *k, uint32_t n)
{
	int64_t low = INT64_MAX, high = INT64_MIN, *start;

	for (uint32_t i = 0; i < n; i++) {
		low = SLU_MIN(low, k[i].key);
		high = SLU_MAX(high, k[i].key);
	}
	if (high - low > (int64_t)n * 64 + 4096)
		return -EAGAIN;
	start = slu_arena_zalloc(&a->m->tmp, (size_t)(high - low + 1) * sizeof *start);
	if (!start)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		start[k[i].key - low] = 1;
	for (int64_t s = low, run = low; s <= high; s++) {
		if (!start[s - low])
			run = s + 1;
		else
			start[s - low] = run;
	}
	for (uint32_t i = 0; i < n; i++)
		k[i].key = start[k[i].key - low];
	return 0;
}

static int by_sorting(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
		      struct chosen *out)
{
	struct slu_match *m = a->m;
	uint32_t n = 0;
	struct key *k;
	int rc;

	k = slu_arena_alloc(&m->tmp, ((size_t)x->offers.slots + 1) * sizeof *k);
	if (!k)
		return -ENOMEM;
	for (uint32_t p = 0; p < f->n; p++) {
		struct block b = offers_at(&x->offers, p);

		for (uint32_t i = 0; i < b.n; i++)
			k[n++] = (struct key){ block_score(&b, i),
					       (void *)(uintptr_t)((uint64_t)p << 32 | i) };
	}
	if (m->policy.scorer == SCORE_LOCALITY) {
		rc = to_runs(a, k, n);
		if (rc < 0)
			return rc;
	}
	match_sort_first(k, n, want, match_greater_first(m));
	for (uint32_t i = 0; i < want; i++) {
		uint64_t c = (uint64_t)(uintptr_t)k[i].c;

		out[i] = (struct chosen){ (uint32_t)(c >> 32), (uint32_t)c };
	}
	return 0;
}

int match_tie_decide(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
		     struct chosen *out)
{
	struct slu_match *m = a->m;
	int rc = -EAGAIN;

	if (x->offers.slots > UINT32_MAX / 2)
		return -EAGAIN;
	if (all_equal(m, x))
		return by_place(a, f, x, want, out);
	if (!x->unordered && !x->levels.spread)
		rc = by_ranks(a, f, x, want, out);
	else if (in_stretches(m, x) && x->extent)
		rc = by_stretches(a, f, x, want, out);
	return rc == -EAGAIN ? by_sorting(a, f, x, want, out) : rc;
}
