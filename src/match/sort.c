/* sort.c — the order of candidates.  Comparators look at scores only, so the order among equals is
 * that of the sorting routine, and it shows in the output.  The reference uses std::sort of GNU
 * libstdc++: introsort (Musser 1997) down to runs of 16, then one insertion sort. */
#include "match/match_internal.h"

#define RUN 16

static inline bool key_before(const struct key *a, const struct key *b, bool greater)
{
	return greater ? a->key > b->key : a->key < b->key;
}

static inline void swap(struct key *a, struct key *b)
{
	struct key t = *a;

	*a = *b;
	*b = t;
}

/* Sink `v` from hole h in a heap of m. */
static void sift_down(struct key *k, ptrdiff_t h, ptrdiff_t m, struct key v, bool greater)
{
	ptrdiff_t top = h, child = h;

	while (child < (m - 1) / 2) {
		child = 2 * (child + 1);
		if (key_before(&k[child], &k[child - 1], greater))
			child--;
		k[h] = k[child];
		h = child;
	}
	if ((m & 1) == 0 && child == (m - 2) / 2) {
		child = 2 * child + 1;
		k[h] = k[child];
		h = child;
	}
	while (h > top && key_before(&k[(h - 1) / 2], &v, greater)) {
		k[h] = k[(h - 1) / 2];
		h = (h - 1) / 2;
	}
	k[h] = v;
}

static void heap_sort(struct key *k, ptrdiff_t m, bool greater)
{
	for (ptrdiff_t h = (m - 2) / 2; h >= 0; h--)
		sift_down(k, h, m, k[h], greater);
	while (m > 1) {
		struct key v = k[--m];

		k[m] = k[0];
		sift_down(k, 0, m, v, greater);
	}
}

static struct key *partition_keys(struct key *first, struct key *last, bool greater)
{
	struct key *a = first + 1, *b = first + (last - first) / 2, *c = last - 1, *i, *j;

	if (key_before(a, b, greater))
		swap(first, key_before(b, c, greater) ? b : key_before(a, c, greater) ? c : a);
	else
		swap(first, key_before(a, c, greater) ? a : key_before(b, c, greater) ? c : b);
	for (i = first + 1, j = last;; i++) {
		while (key_before(i, first, greater))
			i++;
		j--;
		while (key_before(first, j, greater))
			j--;
		if (i >= j)
			return i;
		swap(i, j);
	}
}

static void loop(struct key *first, struct key *last, int depth, bool greater)
{
	while (last - first > RUN) {
		struct key *cut;

		if (depth-- == 0) {
			heap_sort(first, last - first, greater);
			return;
		}
		cut = partition_keys(first, last, greater);
		loop(cut, last, depth, greater);
		last = cut;
	}
}

/* Sort only the right parts that begin before `need`; return where the other parts begin. */
static struct key *loop_first(struct key *first, struct key *last, const struct key *need,
			      int depth, bool greater)
{
	struct key *end = last;

	while (last - first > RUN) {
		struct key *cut;

		if (depth-- == 0) {
			heap_sort(first, last - first, greater);
			return end;
		}
		cut = partition_keys(first, last, greater);
		if (cut >= need) {
			end = cut;
		} else {
			struct key *right = loop_first(cut, last, need, depth, greater);

			/* Ranges that end before `need` do not decide where the sorted part
			 * ends. */
			if (last >= need)
				end = right;
		}
		last = cut;
	}
	return end;
}

static void move_left(struct key *k, bool greater)
{
	struct key v = *k;

	for (; key_before(&v, k - 1, greater); k--)
		*k = k[-1];
	*k = v;
}

static void insertion(struct key *k, uint32_t n, bool greater)
{
	for (uint32_t i = 1; i < n; i++) {
		if (key_before(&k[i], &k[0], greater)) {
			struct key v = k[i];

			memmove(k + 1, k, i * sizeof *k);
			k[0] = v;
		} else {
			move_left(&k[i], greater);
		}
	}
}

void match_sort_keys(struct key *k, uint32_t n, bool greater)
{
	if (n <= RUN) {
		insertion(k, n, greater);
		return;
	}
	loop(k, k + n, 2 * (31 - __builtin_clz(n)), greater);
	insertion(k, RUN, greater);
	for (uint32_t i = RUN; i < n; i++)
		move_left(&k[i], greater);
}

void match_sort_deeper(struct key *k, uint32_t n, uint32_t need, int depth, bool greater)
{
	n = (uint32_t)(loop_first(k, k + n, k + need, depth, greater) - k);
	insertion(k, SLU_MIN(n, (uint32_t)RUN), greater);
	for (uint32_t i = RUN; i < n; i++)
		move_left(&k[i], greater);
}

void match_sort_first(struct key *k, uint32_t n, uint32_t need, bool greater)
{
	if (n <= RUN || need >= n)
		match_sort_keys(k, n, greater);
	else
		match_sort_deeper(k, n, need, 2 * (31 - __builtin_clz(n)), greater);
}
