/* sort_ranks.c — the start of the sort of sort.c, for a sequence in blocks that is never written down.
 *
 * A partition of a sequence S around a pivot exchanges the k-th from the left that is not better
 * than the pivot with the k-th from the right that is not worse, until the two meet; then the sort
 * continues with the left part.  So place q of the left part holds the item at place q of S, if that
 * item is better than the pivot; otherwise it holds the k-th from the right, where k is the number of
 * items before q that are not better.  Counts of S give both, and counts of the left part follow from
 * counts of S at the two places.  Hence a place in the sequence after t partitions is a tree of 2^t places
 * in the first one, and a few such trees tell the pivots and where the fingers meet.
 *
 * A place is found from a count by interpolation and a short walk.  Short sequences, and sequences of
 * equal items, are sorted as usual.  If the counts are too uneven or the pivots too bad, the result is
 * -EAGAIN, and the caller sorts everything. */
#include "match/fast/fast_internal.h"

#define PARTITIONS_MAX 9
#define FEW            64 /* a sequence this short is written down */
#define NEAR           8  /* within this distance walk instead of guessing again */
#define GUESSES_MAX    12

struct item {
	uint32_t value; /* the last of those equal to it */
	uint32_t number;
};

/* One partition: of sequence t - 1 into sequence t. */
struct step {
	uint32_t n;    /* length of the sequence */
	uint32_t fine; /* of it, those not worse than the pivot */
	uint32_t mid;  /* the place where the pivot stood and the first item stands now */
	struct item pivot, first;
};

/* A place in sequence t, behind q of its items. */
struct cursor {
	uint32_t q;
	struct place at; /* t = 0 */
	struct cursor *left,
		*right; /* in sequence t - 1: at q, and as many from the right as needed */
};

struct lazy {
	const struct ranks *r;
	struct slu_arena *mem;
	uint32_t steps; /* partitions known */
	struct step step[PARTITIONS_MAX + 1];
	struct bound bound[PARTITIONS_MAX + 1]; /* of the pivots */
	struct share all[PARTITIONS_MAX + 1];   /* counts of the first sequence */
	int64_t budget;
};

/* Counts per pivot, of some first items of a sequence. */
struct counts {
	struct share of[PARTITIONS_MAX + 1];
};

static struct cursor *cursor_new(struct lazy *z, uint32_t t)
{
	struct cursor *c = slu_arena_zalloc(z->mem, sizeof *c);

	if (!c || !t)
		return c;
	c->left = cursor_new(z, t - 1);
	c->right = cursor_new(z, t - 1);
	return c->left && c->right ? c : NULL;
}

/* --- walking --- */

static struct item walk_next(struct lazy *z, uint32_t t, struct cursor *c);
static struct item walk_back(struct lazy *z, uint32_t t, struct cursor *c);

static struct item item_of(const struct lazy *z, uint32_t value, uint32_t number)
{
	return (struct item){ z->r->equal[value], number };
}

/* The item at place q once the pivot stands first. */
static struct item exchanged(const struct lazy *z, uint32_t t, uint32_t q, struct item x)
{
	const struct step *s = &z->step[t];

	return !q ? s->pivot : q == s->mid ? s->first : x;
}

/* The same walks in sequence t - 1 with the pivot of partition t in front. */
static struct item walk_pivoted(struct lazy *z, uint32_t t, struct cursor *c)
{
	uint32_t q = c->q;

	return exchanged(z, t, q, walk_next(z, t - 1, c));
}

static struct item walk_back_pivoted(struct lazy *z, uint32_t t, struct cursor *c)
{
	struct item x = walk_back(z, t - 1, c);

	return exchanged(z, t, c->q, x);
}

/* The next item, in either direction, that is not worse than the pivot. */
static struct item next_fine(struct lazy *z, uint32_t t, struct cursor *c, bool back)
{
	uint32_t to = z->bound[t].to;
	struct item x;

	do {
		if (t > 1) {
			x = back ? walk_back_pivoted(z, t, c) : walk_pivoted(z, t, c);
			continue;
		}
		/* The pivot itself is fine, so the place it left is not passed over. */
		z->budget--;
		if (back) {
			x.value = match_ranks_back_fine(z->r, &c->at, to);
			c->q = c->at.i;
			x = exchanged(z, t, c->q, item_of(z, x.value, c->at.i));
		} else {
			x.value = match_ranks_next_fine(z->r, &c->at, to);
			c->q = c->at.i - 1;
			x = exchanged(z, t, c->q, item_of(z, x.value, c->q));
			c->q++;
		}
	} while (x.value > to);
	return x;
}

static struct item walk_next(struct lazy *z, uint32_t t, struct cursor *c)
{
	struct item x;

	c->q++;
	if (!t) {
		z->budget--;
		x.value = match_ranks_next(z->r, &c->at);
		return item_of(z, x.value, c->q - 1);
	}
	x = walk_pivoted(z, t, c->left);
	if (c->q == 1 || x.value < z->bound[t].from)
		return x;
	return next_fine(z, t, c->right, true);
}

static struct item walk_back(struct lazy *z, uint32_t t, struct cursor *c)
{
	struct item x;

	c->q--;
	if (!t) {
		z->budget--;
		x.value = match_ranks_back(z->r, &c->at);
		return item_of(z, x.value, c->q);
	}
	x = walk_back_pivoted(z, t, c->left);
	if (!c->q || x.value < z->bound[t].from)
		return x;
	return next_fine(z, t, c->right, false);
}

/* --- finding --- */

static void count_rank(const struct lazy *z, struct counts *k, uint32_t t, struct item x,
		       uint32_t by)
{
	for (; t <= z->steps; t++) {
		k->of[t].better += x.value < z->bound[t].from ? by : 0;
		k->of[t].fine += x.value <= z->bound[t].to ? by : 0;
	}
}

enum goal {
	FINE, /* as many that are not worse than the pivot */
	MEET, /* where the fingers meet: as many items, those equal to the pivot counted twice */
};

static bool find_rank(struct lazy *z, uint32_t t, struct cursor *c, enum goal goal, uint32_t want,
		      struct counts *k);

/* Move to place q of sequence t, with counts for the pivots of the partitions after t. */
static bool seek(struct lazy *z, uint32_t t, struct cursor *c, uint32_t q, struct counts *k)
{
	const struct step *s = &z->step[t];
	struct counts left, right;
	uint32_t from_right;

	c->q = q;
	if (!t) {
		z->budget -= 16;
		match_ranks_seek(z->r, q, &c->at);
		match_ranks_share(z->r, &c->at, z->bound + 1, z->steps, k->of + 1);
		return z->budget > 0;
	}
	if (!seek(z, t - 1, c->left, q, &left))
		return false;
	if (q && q <= s->mid) {
		count_rank(z, &left, t, s->first, UINT32_MAX);
		count_rank(z, &left, t, s->pivot, 1);
	}
	from_right = q ? q - 1 - left.of[t].better : 0;
	if (!find_rank(z, t, c->right, FINE, s->fine - from_right, &right))
		return false;
	for (uint32_t i = t + 1; i <= z->steps; i++) {
		k->of[i].better = left.of[i].better + z->all[i].better - right.of[i].better;
		/* Nothing in this sequence is worse than its own pivot. */
		k->of[i].fine = z->bound[i].to == z->bound[t].to
					? q
					: left.of[i].fine + z->all[i].fine - right.of[i].fine;
	}
	return z->budget > 0;
}

static uint32_t reached(enum goal goal, uint32_t q, const struct share *k)
{
	return goal == FINE ? k->fine : q + k->fine - k->better;
}

/* A place in sequence t - 1, the pivot of partition t in front: the last that goes not beyond the
 * goal, or for FINE any that reaches it. */
static bool find_rank(struct lazy *z, uint32_t t, struct cursor *c, enum goal goal, uint32_t want,
		      struct counts *k)
{
	const struct step *s = &z->step[t];
	uint32_t lo = 1, hi = s->n, flo = goal == FINE ? 1 : 2, fhi, f = 0, q;

	fhi = goal == FINE ? s->fine : s->n + s->fine - z->all[t].better;
	for (uint32_t guess = 0;; guess++) {
		if (guess == GUESSES_MAX)
			return false;
		if (want >= fhi)
			q = hi;
		else if (want <= flo)
			q = lo;
		else if (guess > 2 && guess % 2)
			q = lo + (hi - lo) / 2;
		else
			q = lo + (uint32_t)((uint64_t)(want - flo) * (hi - lo) / (fhi - flo));
		if (t == 1 && goal == FINE) {
			match_ranks_select(z->r, z->bound[t].to, want, &c->at);
			q = c->q = c->at.i;
			z->budget -= 16;
			match_ranks_share(z->r, &c->at, z->bound + 1, z->steps, k->of + 1);
		} else if (!seek(z, t - 1, c, q, k)) {
			return false;
		}
		if (q && q <= s->mid) {
			count_rank(z, k, t, s->first, UINT32_MAX);
			count_rank(z, k, t, s->pivot, 1);
		}
		f = reached(goal, q, &k->of[t]);
		if ((f > want ? f - want : want - f) <= NEAR)
			break;
		if (f > want) {
			hi = q;
			fhi = f;
		} else {
			lo = q;
			flo = f;
		}
		if (hi - lo < 2)
			break;
	}
	while (f > want && z->budget > 0) {
		count_rank(z, k, t, walk_back_pivoted(z, t, c), UINT32_MAX);
		f = reached(goal, c->q, &k->of[t]);
	}
	while (f < want && c->q < s->n && z->budget > 0) {
		count_rank(z, k, t, walk_pivoted(z, t, c), 1);
		f = reached(goal, c->q, &k->of[t]);
	}
	if (f > want)
		count_rank(z, k, t, walk_back_pivoted(z, t, c), UINT32_MAX);
	return z->budget > 0;
}

/* --- sorting --- */

static bool item_at(struct lazy *z, uint32_t q, struct item *x)
{
	struct cursor *c = cursor_new(z, z->steps);
	struct counts k;

	if (!c || !seek(z, z->steps, c, q, &k))
		return false;
	*x = walk_next(z, z->steps, c);
	return true;
}

/* One more partition of the `n` items there are; its left part is *cut long. */
static bool partition_lazily(struct lazy *z, uint32_t n, uint32_t *cut)
{
	uint32_t t = z->steps + 1, mid;
	struct step *s = &z->step[t];
	struct item a, b, c;
	struct cursor *at;
	struct counts k;

	/* After a partition its pivot is the first. */
	if (z->steps)
		s->first = z->step[z->steps].pivot;
	else if (!item_at(z, 0, &s->first))
		return false;
	if (!item_at(z, 1, &a) || !item_at(z, n / 2, &b) || !item_at(z, n - 1, &c))
		return false;
	if (a.value < b.value)
		mid = b.value < c.value ? n / 2 : a.value < c.value ? n - 1 : 1;
	else
		mid = a.value < c.value ? 1 : b.value < c.value ? n - 1 : n / 2;
	s->pivot = mid == 1 ? a : mid == n - 1 ? c : b;
	s->n = n;
	s->mid = mid;
	z->bound[t].to = s->pivot.value;
	z->bound[t].from = s->pivot.value;
	while (z->bound[t].from && z->r->equal[z->bound[t].from - 1] == s->pivot.value)
		z->bound[t].from--;
	match_ranks_share(z->r, &(struct place){ z->r->slots, z->r->of->g->n, 0 }, &z->bound[t], 1,
			  &z->all[t]);
	s->fine = z->steps && z->bound[t - 1].to == z->bound[t].to ? n : z->all[t].fine;
	z->steps++;
	at = cursor_new(z, t - 1);
	if (!at || !find_rank(z, t, at, MEET, s->fine + 1, &k))
		return false;
	*cut = at->q;
	return true;
}

static int write_down(struct lazy *z, uint32_t n, uint32_t need, int depth, uint32_t *out)
{
	struct key *key = slu_arena_alloc(z->mem, (n + 1) * sizeof *key);
	struct cursor *c = cursor_new(z, z->steps);
	struct counts k;

	if (!c || !key)
		return -ENOMEM;
	if (!seek(z, z->steps, c, 0, &k))
		return -EAGAIN;
	for (uint32_t i = 0; i < n; i++) {
		struct item x = walk_next(z, z->steps, c);

		if (z->budget < 0)
			return -EAGAIN;
		key[i] = (struct key){ x.value, (void *)(uintptr_t)x.number };
	}
	match_sort_deeper(key, n, need, depth, false);
	for (uint32_t i = 0; i < need; i++)
		out[i] = (uint32_t)(uintptr_t)key[i].c;
	return 0;
}

static void one_run(void *arg, uint32_t i, uint32_t *lo, uint32_t *hi)
{
	*lo = 0;
	*hi = *(uint32_t *)arg;
}

static int all_equal(struct lazy *z, uint32_t n, uint32_t need, uint32_t *out)
{
	int rc = match_sort_runs(z->mem, n, false, need, one_run, &n, out);

	for (uint32_t i = 0; i < need && !rc; i++) {
		struct item x;

		if (!item_at(z, out[i], &x))
			return -EAGAIN;
		out[i] = x.number;
	}
	return rc;
}

int match_sort_ranks(struct slu_arena *mem, const struct ranks *r, uint32_t need, uint32_t *out)
{
	struct lazy *z = slu_arena_zalloc(mem, sizeof *z);
	uint32_t n = r->slots;
	int depth = n ? 2 * (31 - __builtin_clz(n)) : 0;

	if (!z)
		return -ENOMEM;
	z->r = r;
	z->mem = mem;
	z->budget = (int64_t)n + 1024;
	while (n > FEW && n / 4 > need) {
		uint32_t cut;

		if (z->steps && !z->all[z->steps].better)
			return all_equal(z, n, need, out);
		if (z->steps == PARTITIONS_MAX || !depth || !partition_lazily(z, n, &cut) ||
		    cut < need)
			return -EAGAIN;
		depth--;
		n = cut;
	}
	return write_down(z, n, need, depth, out);
}
