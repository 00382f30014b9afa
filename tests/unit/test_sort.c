/* The exact order of equals that the reference's sort gives, and its shortcut for the first few. */
#include "base/rng.h"
#include "match/core.h"
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

int main(void)
{
	struct slu_rng r = { 11 };
	bool sorted = true, prefix = true;

	for (int round = 0; round < 4000; round++) {
		uint32_t n = 1 + (uint32_t)slu_rng_below(&r, MAX);
		uint32_t need = 1 + (uint32_t)slu_rng_below(&r, n);
		uint32_t scores = 1 + (uint32_t)slu_rng_below(&r, round % 2 ? 5 : 1000);
		bool greater = slu_rng_below(&r, 2);

		fill(&r, n, scores, round % 5);
		sort_keys(whole, n, greater);
		sort_first(first, n, need, greater);
		for (uint32_t i = 1; i < n; i++)
			sorted &= greater ? whole[i - 1].key >= whole[i].key
					  : whole[i - 1].key <= whole[i].key;
		for (uint32_t i = 0; i < need; i++)
			prefix &= first[i].key == whole[i].key && first[i].c == whole[i].c;
	}
	ok(sorted, "4000 random arrays are sorted (seed 11)");
	ok(prefix, "the first few of each are those of the whole sort, equals included");
	return tap_done();
}
