/* sort_runs.c — the start of the sort of sort.c, for a sequence that is never written down.
 *
 * The sequence is 0, 1, ..., n - 1 or its reverse, and long stretches of numbers compare alike to
 * any pivot.  Then every step of the introsort moves whole intervals, and what it has made so far
 * is a short list of pieces, each an interval read forwards or backwards.  A partition costs a few
 * steps a piece; only the last few numbers, among which the wanted ones are, are written down and
 * sorted. */
#include "match/fast/fast_internal.h"

#define PIECES_MAX 480

struct piece {
	uint32_t lo, n;
	bool rev;
	int8_t cmp; /* to the pivot: before (-1), equal, after (1) */
};

struct pieces {
	struct piece p[PIECES_MAX];
	uint32_t n;
};

/* Append a piece, or lengthen the last one. */
static bool put_piece(struct pieces *t, struct piece p)
{
	struct piece *q = t->n ? &t->p[t->n - 1] : NULL;

	if (!p.n)
		return true;
	if (q && q->cmp == p.cmp && (!q->rev || q->n == 1) && (!p.rev || p.n == 1) &&
	    q->lo + q->n == p.lo) {
		q->n += p.n;
		q->rev = false;
		return true;
	}
	if (q && q->cmp == p.cmp && (q->rev || q->n == 1) && (p.rev || p.n == 1) &&
	    p.lo + p.n == q->lo) {
		q->lo = p.lo;
		q->n += p.n;
		q->rev = true;
		return true;
	}
	if (t->n == PIECES_MAX)
		return false;
	t->p[t->n++] = p;
	return true;
}

/* Numbers from..from + n - 1 of a piece, counted as it is read. */
static struct piece part_of_piece(const struct piece *p, uint32_t from, uint32_t n)
{
	return (struct piece){ p->rev ? p->lo + p->n - from - n : p->lo + from, n, p->rev, p->cmp };
}

static uint32_t at(const struct pieces *t, uint32_t pos)
{
	uint32_t k = 0;

	for (; pos >= t->p[k].n; k++)
		pos -= t->p[k].n;
	return part_of_piece(&t->p[k], pos, 1).lo;
}

/* A piece in stretches that compare alike to the pivot. */
static bool put_cut(const struct sequence *s, int64_t key, const struct piece *p,
		    struct pieces *out)
{
	uint32_t from = out->n;

	for (uint32_t i = p->lo, next; i < p->lo + p->n; i = next) {
		int cmp;

		next = s->stretch(s->arg, i, p->lo + p->n, key, &cmp);
		/* Read backwards, the stretches come in reverse: put them down as they are found,
		 * then turn them around. */
		if (out->n == PIECES_MAX)
			return false;
		out->p[out->n++] = (struct piece){ i, next - i, p->rev, (int8_t)cmp };
	}
	for (uint32_t a = from, b = out->n; p->rev && a + 1 < b; a++) {
		struct piece t = out->p[a];

		out->p[a] = out->p[--b];
		out->p[b] = t;
	}
	return true;
}

/* Everything behind the first, with number `with` at position pos, in such stretches. */
static bool rest_pieces(const struct sequence *s, const struct pieces *t, uint32_t pos,
			uint32_t with, int64_t key, struct pieces *out)
{
	uint32_t from = 0;

	out->n = 0;
	for (uint32_t k = 0; k < t->n; from += t->p[k++].n) {
		const struct piece *p = &t->p[k];
		uint32_t skip = from ? 0 : 1, here = pos - from;
		struct piece a, b, c = { 0 };

		if (pos < from || here >= p->n) {
			a = part_of_piece(p, skip, p->n - skip);
			b.n = 0;
		} else {
			a = part_of_piece(p, skip, here - skip);
			b = (struct piece){ with, 1, false, 0 };
			c = part_of_piece(p, here + 1, p->n - here - 1);
		}
		if ((a.n && !put_cut(s, key, &a, out)) || (b.n && !put_cut(s, key, &b, out)) ||
		    (c.n && !put_cut(s, key, &c, out)))
			return false;
	}
	return true;
}

/* One partition of `size` numbers in t: their left part in `out`, its length returned; 0 if there
 * are too many pieces. */
static uint32_t partition_runs(const struct sequence *s, const struct pieces *t, uint32_t size,
			       struct pieces *mid, struct pieces *out)
{
	uint32_t pa = 1, pb = size / 2, pc = size - 1, m, left = 1;
	uint32_t na = at(t, pa), nb = at(t, pb), nc = at(t, pc), pivot;
	int64_t a = s->key(s->arg, na), b = s->key(s->arg, nb), c = s->key(s->arg, nc);
	struct piece *i, *j;

	if (a < b)
		m = b < c ? pb : a < c ? pc : pa;
	else
		m = a < c ? pa : b < c ? pc : pb;
	pivot = m == pa ? na : m == pb ? nb : nc;
	if (!rest_pieces(s, t, m, at(t, 0), m == pa ? a : m == pb ? b : c, mid))
		return 0;
	out->n = 0;
	put_piece(out, (struct piece){ pivot, 1, false, 0 });
	i = mid->p;
	j = mid->p + mid->n;
	for (size--; size;) {
		uint32_t n;

		if (i->cmp < 0) { /* before the pivot: stays */
			if (!put_piece(out, (struct piece){ i->lo, i->n, i->rev, 0 }))
				return 0;
			left += i->n;
			size -= i->n;
			i++;
			continue;
		}
		if (j[-1].cmp > 0) { /* after it: stays */
			size -= (--j)->n;
			continue;
		}
		if (size == 1)
			break;
		/* The two fingers stand on i and j: exchange as many as both sides have. */
		n = SLU_MIN(i->n, j[-1].n);
		n = SLU_MIN(n, size / 2);
		j--;
		if (!put_piece(out,
			       (struct piece){ part_of_piece(j, j->n - n, n).lo, n, !j->rev, 0 }))
			return 0;
		left += n;
		size -= 2 * n;
		*i = part_of_piece(i, n, i->n - n);
		*j = part_of_piece(j, 0, j->n - n);
		if (!i->n)
			i++;
		if (j->n)
			j++;
	}
	return left;
}

/* Write the numbers of t down and sort them as usual. */
static int sort_pieces(const struct sequence *s, struct slu_arena *mem, const struct pieces *t,
		       uint32_t size, uint32_t need, int depth, uint32_t *out)
{
	struct key *k = slu_arena_alloc(mem, (size + 1) * sizeof *k);
	uint32_t n = 0;

	if (!k)
		return -ENOMEM;
	for (uint32_t p = 0; p < t->n; p++)
		for (uint32_t i = 0; i < t->p[p].n; i++, n++) {
			uint32_t v = part_of_piece(&t->p[p], i, 1).lo;

			k[n] = (struct key){ s->key(s->arg, v), (void *)(uintptr_t)v };
		}
	match_sort_deeper(k, n, need, depth, false);
	for (uint32_t i = 0; i < need; i++)
		out[i] = (uint32_t)(uintptr_t)k[i].c;
	return 0;
}

int match_sort_sequence(struct slu_arena *mem, const struct sequence *s, uint32_t need,
			uint32_t most, uint32_t *out)
{
	struct pieces *of = slu_arena_alloc(mem, 3 * sizeof *of), *t = of, *next = of + 1;
	int depth = s->n ? 2 * (31 - __builtin_clz(s->n)) : 0;
	uint32_t size = s->n;

	if (!of)
		return -ENOMEM;
	t->n = 0;
	put_piece(t, (struct piece){ 0, s->n, s->reversed, 0 });
	while (size > 64 && size / 4 > need && depth) {
		uint32_t cut = partition_runs(s, t, size, of + 2, next);
		struct pieces *last = t;

		/* If the pivot is so bad that the right part is needed too, leave the rest to
		 * the usual sort. */
		if (cut < need)
			break;
		depth--;
		t = next;
		next = last;
		size = cut;
	}
	return size > most ? -EAGAIN : sort_pieces(s, mem, t, size, need, depth, out);
}

/* --- runs --- */

struct runs {
	run_fn *run_of;
	void *arg;
	uint32_t lo, hi; /* the run asked for last */
};

static void run_at(struct runs *r, uint32_t i)
{
	if (i < r->lo || i >= r->hi)
		r->run_of(r->arg, i, &r->lo, &r->hi);
}

static int64_t run_key(void *arg, uint32_t i)
{
	struct runs *r = arg;

	run_at(r, i);
	return r->lo;
}

static uint32_t run_stretch(void *arg, uint32_t i, uint32_t end, int64_t key, int *cmp)
{
	struct runs *r = arg;

	run_at(r, (uint32_t)key);
	*cmp = i < r->lo ? -1 : i >= r->hi;
	return *cmp < 0 ? SLU_MIN(r->lo, end) : *cmp ? end : SLU_MIN(r->hi, end);
}

int match_sort_runs(struct slu_arena *mem, uint32_t n, bool reversed, uint32_t need, run_fn *run_of,
		    void *arg, uint32_t *out)
{
	struct runs r = { .run_of = run_of, .arg = arg };
	struct sequence s = { n, reversed, &r, run_key, run_stretch };

	return match_sort_sequence(mem, &s, need, n, out);
}
