/* fast_tie.c — which of the equal slots are taken.
 *
 * The reference sorts all slots, and where its sort leaves equals depends on all of them.  Four
 * ways to the same end: by place if all are equal; by counts of the slots of every score, if there
 * are few scores (ranks.h); stretch by stretch, if most vertices differ from the pivot as a whole;
 * and the sort itself, one by one. */
#include "match/fast.h"

#define WRITTEN_MAX 512 /* of slots that are followed in stretches */

/* The vertex that offers slot number i of all, and which of its own that is. */
static struct chosen sums_find(const struct front *f, const struct memo *x, uint32_t i)
{
	uint32_t p = 0;

	for (uint32_t step = x->leaves; step; step /= 2)
		if (p + step <= f->n && x->sums[p + step] <= i) {
			p += step;
			i -= x->sums[p];
		}
	return (struct chosen){ p, i };
}

/* --- all equal --- */

/* Whether the sort would find no two slots different. */
static bool all_equal(const struct slu_match *m, const struct memo *x)
{
	uint32_t low = 0, high = x->nlevel;

	if (x->spread || !x->filled)
		return false;
	if (m->policy.scorer != SCORE_LOCALITY)
		return x->filled == 1;
	while (!x->level[low])
		low++;
	while (!x->level[high - 1])
		high--;
	return high - low == x->filled;
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
	uint32_t n = (uint32_t)x->slots, *number;
	int rc;

	number = slu_arena_alloc(&m->tmp, want * sizeof *number);
	if (!number)
		return -ENOMEM;
	rc = sort_runs(&m->tmp, n, false, want, one_run, &n, number);
	for (uint32_t i = 0; i < want && !rc; i++)
		out[i] = sums_find(f, x, number[i]);
	return rc;
}

/* --- by counts --- */

/* Which levels the sort takes for equal: each its own, or with locality those in a row. */
static void say_equal(const struct slu_match *m, const struct memo *x, uint32_t *equal)
{
	for (uint32_t v = x->nlevel; v-- > 0;) {
		/* With locality the greatest score has value 0. */
		bool on = m->policy.scorer == SCORE_LOCALITY && v + 1 < x->nlevel &&
			  x->level[x->nlevel - 1 - v] && x->level[x->nlevel - 2 - v];

		equal[v] = on ? equal[v + 1] : v;
	}
}

/* By counts of all slots, which are kept from one search to the next. */
static int by_ranks(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
		    struct chosen *out)
{
	struct slu_match *m = a->m;
	struct ranks *r = &x->ranks;
	uint32_t *number;
	int rc;

	r->slots = (uint32_t)x->slots;
	if (!r->row) {
		*r = (struct ranks){ x->offer,         x->sums,   f->n, r->slots, x->base,
				     greater_first(m), x->nlevel, NULL, NULL };
		if (ranks_make(r) < 0)
			return -EAGAIN;
	}
	say_equal(m, x, r->equal);
	number = slu_arena_alloc(&m->tmp, want * sizeof *number);
	if (!number)
		return -ENOMEM;
	rc = sort_ranks(&m->tmp, r, want, number);
	for (uint32_t i = 0; i < want && !rc; i++)
		out[i] = sums_find(f, x, number[i]);
	return rc;
}

/* --- in stretches --- */

static int64_t key_of(const struct slu_match *m, int64_t score)
{
	return greater_first(m) ? -score : score;
}

static const struct extent nothing = { INT64_MAX, INT64_MIN };

static void extent_play(struct memo *x, uint32_t i)
{
	const struct extent *a = &x->extent[(size_t)2 * i], *b = a + 1;

	x->extent[i] = (struct extent){ SLU_MIN(a->low, b->low), SLU_MAX(a->high, b->high) };
}

static struct extent extent_of(const struct slu_match *m, const struct offer *o)
{
	if (!o->n)
		return nothing;
	/* Best first. */
	return (struct extent){ key_of(m, offer_score(o, 0)), key_of(m, offer_score(o, o->n - 1)) };
}

void extent_change(const struct slu_match *m, struct memo *x, uint32_t p)
{
	if (!x->extent)
		return;
	x->extent[x->leaves + p] = extent_of(m, &x->offer[p]);
	for (uint32_t i = (x->leaves + p) / 2; i; i /= 2)
		extent_play(x, i);
}

static bool in_stretches(const struct slu_match *m, const struct memo *x)
{
	return x->spread && !x->unordered && m->policy.scorer != SCORE_LOCALITY;
}

int extent_make(const struct slu_match *m, const struct front *f, struct memo *x)
{
	if (x->extent || !in_stretches(m, x))
		return 0;
	x->extent = slu_reallocarray(NULL, 2 * (size_t)x->leaves, sizeof *x->extent);
	if (!x->extent)
		return -ENOMEM;
	for (uint32_t p = 0; p < x->leaves; p++)
		x->extent[x->leaves + p] = p < f->n ? extent_of(m, &x->offer[p]) : nothing;
	for (uint32_t i = x->leaves; --i;)
		extent_play(x, i);
	return 0;
}

struct slots {
	const struct slu_match *m;
	const struct front *f;
	const struct memo *x;
	struct block {
		uint32_t p, start; /* a vertex, and the number of its first slot */
	} near[2];                 /* asked for last, the latest first */
};

static bool is_in(const struct slots *s, const struct block *b, uint32_t i)
{
	return i - b->start < s->x->offer[b->p].n; /* below it: a great number */
}

/* As sums_find; the next is often of the same vertex, or of the one before. */
static struct chosen find_slot(struct slots *s, uint32_t i)
{
	if (!is_in(s, &s->near[0], i)) {
		struct block b = s->near[1];

		if (!is_in(s, &b, i)) {
			struct chosen c = sums_find(s->f, s->x, i);

			b = (struct block){ c.p, i - c.i };
		}
		s->near[1] = s->near[0];
		s->near[0] = b;
	}
	return (struct chosen){ s->near[0].p, i - s->near[0].start };
}

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int64_t slot_key(void *arg, uint32_t i)
{
	struct slots *s = arg;
	struct chosen c = find_slot(s, i);

	return key_of(s->m, offer_score(&s->x->offer[c.p], c.i));
}

static bool whole(const struct extent *e, int64_t key, int cmp)
{
	if (e->low > e->high)
		return true;
	return compare(e->low, key) == cmp && compare(e->high, key) == cmp;
}

/* The first vertex from p on with a slot that compares otherwise; the number of leaves if none. */
static uint32_t other_from(const struct memo *x, uint32_t p, int64_t key, int cmp)
{
	uint32_t i = x->leaves + p;

	if (p >= x->leaves)
		return x->leaves;
	do {
		while (i % 2 == 0)
			i /= 2;
		if (!whole(&x->extent[i], key, cmp)) {
			while (i < x->leaves) {
				i *= 2;
				i += whole(&x->extent[i], key, cmp);
			}
			return i - x->leaves;
		}
		i++;
	} while (i & (i - 1));
	return x->leaves;
}

/* How many slots of a vertex from number j on compare like this; they get worse. */
static uint32_t alike(const struct slots *s, const struct offer *o, uint32_t j, int64_t key,
		      int cmp)
{
	uint32_t lo = j, hi = o->n;

	if (compare(key_of(s->m, offer_score(o, j)), key) != cmp)
		return 0;
	if (compare(key_of(s->m, offer_score(o, hi - 1)), key) == cmp)
		return hi - j;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (compare(key_of(s->m, offer_score(o, mid)), key) == cmp)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - j;
}

static uint32_t slot_stretch(void *arg, uint32_t i, uint32_t end, int64_t key, int *cmp)
{
	struct slots *s = arg;
	const struct memo *x = s->x;
	struct chosen c = find_slot(s, i);
	const struct offer *o = &x->offer[c.p];
	uint32_t n, p, before = 0;

	*cmp = compare(key_of(s->m, offer_score(o, c.i)), key);
	if (i + 1 == end)
		return end;
	n = alike(s, o, c.i, key, *cmp);
	if (c.i + n < o->n || i + n >= end)
		return SLU_MIN(i + n, end);
	p = other_from(x, c.p + 1, key, *cmp);
	if (p >= s->f->n)
		return end;
	for (uint32_t k = p; k; k -= k & -k)
		before += x->sums[k];
	return SLU_MIN(before + alike(s, &x->offer[p], 0, key, *cmp), end);
}

static int by_stretches(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
			struct chosen *out)
{
	struct slu_match *m = a->m;
	struct slots s = { .m = m, .f = f, .x = x };
	struct sequence q = { (uint32_t)x->slots, false, &s, slot_key, slot_stretch };
	uint32_t *number = slu_arena_alloc(&m->tmp, want * sizeof *number);
	int rc;

	if (!number)
		return -ENOMEM;
	rc = sort_sequence(&m->tmp, &q, want, WRITTEN_MAX, number);
	for (uint32_t i = 0; i < want && !rc; i++)
		out[i] = sums_find(f, x, number[i]);
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

	k = slu_arena_alloc(&m->tmp, ((size_t)x->slots + 1) * sizeof *k);
	if (!k)
		return -ENOMEM;
	for (uint32_t p = 0; p < f->n; p++)
		for (uint32_t i = 0; i < x->offer[p].n; i++)
			k[n++] = (struct key){ offer_score(&x->offer[p], i),
					       (void *)(uintptr_t)((uint64_t)p << 32 | i) };
	if (m->policy.scorer == SCORE_LOCALITY) {
		rc = to_runs(a, k, n);
		if (rc < 0)
			return rc;
	}
	sort_first(k, n, want, greater_first(m));
	for (uint32_t i = 0; i < want; i++) {
		uint64_t c = (uint64_t)(uintptr_t)k[i].c;

		out[i] = (struct chosen){ (uint32_t)(c >> 32), (uint32_t)c };
	}
	return 0;
}

int tie_decide(struct attempt *a, struct front *f, struct memo *x, uint32_t want,
	       struct chosen *out)
{
	struct slu_match *m = a->m;
	int rc = -EAGAIN;

	if (x->slots > UINT32_MAX / 2)
		return -EAGAIN;
	if (all_equal(m, x))
		return by_place(a, f, x, want, out);
	if (!x->unordered && !x->spread)
		rc = by_ranks(a, f, x, want, out);
	else if (in_stretches(m, x))
		rc = by_stretches(a, f, x, want, out);
	return rc == -EAGAIN ? by_sorting(a, f, x, want, out) : rc;
}
