/* sort_runs.c — the start of the sort of sort.c, for a sequence that nobody wrote down.
 *
 * The sequence is 0, 1, ..., n - 1 or its reverse, and numbers are equal in runs: intervals.  Then
 * every step of the introsort moves whole intervals, and what it has made so far is a short list
 * of pieces, each an interval read forwards or backwards.  A partition costs a few steps a piece;
 * only the last few numbers, among which the wanted ones are, are written down and sorted. */
#include "match/core.h"

#define PIECES_MAX 480

struct piece {
	uint32_t lo, n;
	bool rev;
};

struct pieces {
	struct piece p[PIECES_MAX];
	uint32_t n;
};

struct sorting {
	run_fn *run_of;
	void *arg;
	uint32_t lo, hi; /* the run asked for last */
};

static void run_at(struct sorting *s, uint32_t i, uint32_t *lo, uint32_t *hi)
{
	if (i < s->lo || i >= s->hi)
		s->run_of(s->arg, i, &s->lo, &s->hi);
	*lo = s->lo;
	*hi = s->hi;
}

static bool before(struct sorting *s, uint32_t a, uint32_t b)
{
	uint32_t lo, hi;

	run_at(s, a, &lo, &hi);
	return b >= hi;
}

static bool put(struct pieces *t, struct piece p)
{
	if (!p.n)
		return true;
	if (t->n == PIECES_MAX)
		return false;
	t->p[t->n++] = p;
	return true;
}

/* Numbers from..from + n - 1 of a piece, counted as it is read. */
static struct piece part(const struct piece *p, uint32_t from, uint32_t n)
{
	return (struct piece){ p->rev ? p->lo + p->n - from - n : p->lo + from, n, p->rev };
}

static uint32_t at(const struct pieces *t, uint32_t pos)
{
	uint32_t k = 0;

	for (; pos >= t->p[k].n; k++)
		pos -= t->p[k].n;
	return part(&t->p[k], pos, 1).lo;
}

/* Everything behind the first, with number `with` at position pos, cut where a run begins or ends
 * so that each piece is before the run, in it, or after it. */
static bool rest(const struct pieces *t, uint32_t pos, uint32_t with, uint32_t lo, uint32_t hi,
		 struct pieces *out)
{
	uint32_t from = 0;

	out->n = 0;
	for (uint32_t k = 0; k < t->n; from += t->p[k++].n) {
		const struct piece *p = &t->p[k];
		/* Places to cut, rising, in the order the piece is read. */
		uint32_t cut[6] = { 0 }, n = 1;
		uint32_t a = SLU_MIN(lo > p->lo ? lo - p->lo : 0, p->n);
		uint32_t b = SLU_MIN(hi > p->lo ? hi - p->lo : 0, p->n);
		uint32_t first = p->rev ? p->n - b : a, second = p->rev ? p->n - a : b;

		cut[n++] = first;
		cut[n++] = second;
		cut[n++] = p->n;
		for (uint32_t i = 0; i + 1 < n; i++) {
			uint32_t c = from + cut[i], d = from + cut[i + 1];

			if (c == 0 && d)
				c = 1; /* the first stays where it is */
			if (c > d || !d)
				continue;
			if (pos < c || pos >= d) {
				if (!put(out, part(p, c - from, d - c)))
					return false;
				continue;
			}
			if (!put(out, part(p, c - from, pos - c)) ||
			    !put(out, (struct piece){ with, 1, false }) ||
			    !put(out, part(p, pos + 1 - from, d - pos - 1)))
				return false;
		}
	}
	return true;
}

/* One partition of `size` numbers in t: their left part in `out`, its length returned; 0 if there
 * are too many pieces. */
static uint32_t partition(struct sorting *s, const struct pieces *t, uint32_t size,
			  struct pieces *out)
{
	uint32_t pa = 1, pb = size / 2, pc = size - 1, m, lo, hi, left = 1;
	uint32_t a = at(t, pa), b = at(t, pb), c = at(t, pc), pivot;
	struct pieces mid;
	struct piece *i, *j;

	if (before(s, a, b))
		m = before(s, b, c) ? pb : before(s, a, c) ? pc : pa;
	else
		m = before(s, a, c) ? pa : before(s, b, c) ? pc : pb;
	pivot = m == pa ? a : m == pb ? b : c;
	run_at(s, pivot, &lo, &hi);
	if (!rest(t, m, at(t, 0), lo, hi, &mid))
		return 0;
	out->n = 0;
	put(out, (struct piece){ pivot, 1, false });
	i = mid.p;
	j = mid.p + mid.n;
	for (size--; size;) {
		uint32_t n;

		if (i->lo < lo) { /* before the pivot: stays */
			if (!put(out, *i))
				return 0;
			left += i->n;
			size -= i->n;
			i++;
			continue;
		}
		if (j[-1].lo >= hi) { /* after it: stays */
			size -= (--j)->n;
			continue;
		}
		if (size == 1)
			break;
		/* The two fingers stand on i and j: exchange as many as both sides have. */
		n = SLU_MIN(i->n, j[-1].n);
		n = SLU_MIN(n, size / 2);
		j--;
		if (!put(out, (struct piece){ part(j, j->n - n, n).lo, n, !j->rev }))
			return 0;
		left += n;
		size -= 2 * n;
		*i = part(i, n, i->n - n);
		*j = part(j, 0, j->n - n);
		if (!i->n)
			i++;
		if (j->n)
			j++;
	}
	return left;
}

/* Write down what t says and sort it as usual. */
static int finish(struct sorting *s, struct slu_arena *mem, const struct pieces *t, uint32_t size,
		  uint32_t need, int depth, uint32_t *out)
{
	struct key *k = slu_arena_alloc(mem, (size + 1) * sizeof *k);
	uint32_t n = 0, hi;

	if (!k)
		return -ENOMEM;
	for (uint32_t p = 0; p < t->n; p++)
		for (uint32_t i = 0; i < t->p[p].n; i++, n++) {
			uint32_t v = part(&t->p[p], i, 1).lo, lo;

			run_at(s, v, &lo, &hi);
			k[n] = (struct key){ lo, (void *)(uintptr_t)v };
		}
	sort_deeper(k, n, need, depth, false);
	for (uint32_t i = 0; i < need; i++)
		out[i] = (uint32_t)(uintptr_t)k[i].c;
	return 0;
}

int sort_runs(struct slu_arena *mem, uint32_t n, bool reversed, uint32_t need, run_fn *run_of,
	      void *arg, uint32_t *out)
{
	struct sorting s = { .run_of = run_of, .arg = arg };
	struct pieces two[2], *t = &two[0];
	int depth = n ? 2 * (31 - __builtin_clz(n)) : 0;
	uint32_t size = n;

	t->n = 0;
	put(t, (struct piece){ 0, n, reversed });
	while (size > 64 && size / 4 > need && depth) {
		struct pieces *next = &two[t == &two[0]];
		uint32_t cut = partition(&s, t, size, next);

		/* A pivot so bad that the right part is wanted too is left to the usual way. */
		if (cut < need)
			break;
		depth--;
		t = next;
		size = cut;
	}
	return finish(&s, mem, t, size, need, depth, out);
}
