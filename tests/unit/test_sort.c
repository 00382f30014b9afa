/* The exact order of equals that the reference's sort gives, and its shortcut for the first few. */
#include "base/rng.h"
#include "match/fast/fast_internal.h"
#include "tap.h"

#define MAX 700

static struct key whole[MAX], first[MAX];

static void fill(struct slu_rng *r, uint32_t n, uint32_t scores, int shape)
{
	for (uint32_t i = 0; i < n; i++) {
		int64_t s = (int64_t)slu_rng_below(r, scores);

		if (shape == 1)
			s = i; /* ascending, as ids come */
		else if (shape == 2)
			s = i % scores; /* the same ids under several parents */
		else if (shape == 3)
			s = n - i;
		whole[i] = first[i] = (struct key){ s, (void *)(uintptr_t)i };
	}
}

static uint32_t run_lo[MAX], run_hi[MAX];

static void run_of(void *arg, uint32_t i, uint32_t *lo, uint32_t *hi)
{
	(void)arg;
	*lo = run_lo[i];
	*hi = run_hi[i];
}

/* Numbers in runs, rising or falling, sorted both ways. */
static bool same_runs(struct slu_rng *r, struct slu_arena *mem, uint32_t longest)
{
	uint32_t n = 1 + (uint32_t)slu_rng_below(r, MAX), out[MAX];
	uint32_t need = 1 + (uint32_t)slu_rng_below(r, slu_rng_below(r, 3) ? SLU_MIN(n, 9u) : n);
	bool reversed = slu_rng_below(r, 2), same = true;

	for (uint32_t lo = 0, hi; lo < n; lo = hi) {
		hi = SLU_MIN(n, lo + 1 + (uint32_t)slu_rng_below(r, longest));
		for (uint32_t i = lo; i < hi; i++) {
			run_lo[i] = lo;
			run_hi[i] = hi;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = reversed ? n - 1 - i : i;

		whole[i] = (struct key){ run_lo[v], (void *)(uintptr_t)v };
	}
	match_sort_keys(whole, n, false);
	slu_arena_reset(mem);
	if (match_sort_runs(mem, n, reversed, need, run_of, NULL, out) < 0)
		return false;
	for (uint32_t i = 0; i < need; i++)
		same &= out[i] == (uint32_t)(uintptr_t)whole[i].c;
	return same;
}

static int64_t given[MAX];

static int64_t given_key(void *arg, uint32_t i)
{
	(void)arg;
	return given[i];
}

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static uint32_t given_stretch(void *arg, uint32_t i, uint32_t end, int64_t key, int *cmp)
{
	(void)arg;
	*cmp = compare(given[i], key);
	while (++i < end && compare(given[i], key) == *cmp)
		;
	return i;
}

/* Any sequence, followed in stretches; 1 if it was, 0 if it had too many, -1 if it came out wrong.
 */
static int same_sequence(struct slu_rng *r, struct slu_arena *mem, int shape)
{
	uint32_t n = 1 + (uint32_t)slu_rng_below(r, MAX), out[MAX];
	uint32_t need = 1 + (uint32_t)slu_rng_below(r, slu_rng_below(r, 3) ? SLU_MIN(n, 9u) : n);
	uint32_t block = 1 + (uint32_t)slu_rng_below(r, 40);
	struct sequence s = { n, shape == 3, NULL, given_key, given_stretch };
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		given[i] = (int64_t)slu_rng_below(r, 1000);
		if (shape) /* blocks that rise while their members fall, and overlap a little */
			given[i] = i / block * (block - shape % 3) + block - i % block;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = s.reversed ? n - 1 - i : i;

		whole[i] = (struct key){ given[v], (void *)(uintptr_t)v };
	}
	match_sort_keys(whole, n, false);
	slu_arena_reset(mem);
	rc = match_sort_sequence(mem, &s, need, n / 2 + 64, out);
	for (uint32_t i = 0; i < need && !rc; i++)
		if (out[i] != (uint32_t)(uintptr_t)whole[i].c)
			return -1;
	return rc == -EAGAIN ? 0 : rc ? -1 : 1;
}

int main(void)
{
	struct slu_rng r = { 11 };
	bool sorted = true, prefix = true, runs = true;
	struct slu_arena mem = { 0 };
	uint32_t wrong = 0, followed = 0;

	for (int round = 0; round < 4000; round++) {
		uint32_t n = 1 + (uint32_t)slu_rng_below(&r, MAX);
		uint32_t need = 1 + (uint32_t)slu_rng_below(&r, n);
		uint32_t scores = 1 + (uint32_t)slu_rng_below(&r, round % 2 ? 5 : 1000);
		bool greater = slu_rng_below(&r, 2);

		fill(&r, n, scores, round % 5);
		match_sort_keys(whole, n, greater);
		match_sort_first(first, n, need, greater);
		for (uint32_t i = 1; i < n; i++)
			sorted &= greater ? whole[i - 1].key >= whole[i].key
					  : whole[i - 1].key <= whole[i].key;
		for (uint32_t i = 0; i < need; i++)
			prefix &= first[i].key == whole[i].key && first[i].c == whole[i].c;
	}
	ok(sorted, "4000 random arrays are sorted (seed 11)");
	ok(prefix, "the first few of each are those of the whole sort, equals included");
	for (int round = 0; round < 20000; round++)
		runs &= same_runs(&r, &mem, round % 3 ? 1 + (uint32_t)round % 50 : MAX);
	ok(runs, "20000 sequences of runs sort piece by piece as they do one by one");
	for (int round = 0; round < 20000; round++) {
		int rc = same_sequence(&r, &mem, round % 4);

		wrong += rc < 0;
		followed += rc > 0;
	}
	ok(!wrong && followed > 10000, "20000 other sequences in stretches: %u wrong, %u followed",
	   wrong, followed);
	slu_arena_done(&mem);
	return tap_done();
}
