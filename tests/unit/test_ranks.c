/* The sort of sequences in blocks that are not written down, against the sort itself. */
#include "base/rng.h"
#include "match/ranks.h"
#include "tap.h"

#define BLOCKS 1200
#define SLOTS  32

static struct offer block[BLOCKS + 1];
static int64_t score[BLOCKS][SLOTS];
static uint32_t sums[BLOCKS + 1];
static struct key keys[BLOCKS * SLOTS];

struct kind_of {
	uint32_t slots;   /* of a full block */
	uint32_t missing; /* of 100 slots */
	uint32_t empty;   /* of 100 blocks */
	bool twins;       /* scores come in pairs */
};

static void fill(struct slu_rng *r, uint32_t n, const struct kind_of *k, struct ranks *t)
{
	t->slots = 0;
	memset(sums, 0, sizeof sums);
	for (uint32_t p = 0; p < n; p++) {
		struct offer *o = &block[p];
		bool empty = slu_rng_below(r, 100) < k->empty;

		*o = (struct offer){ .score = score[p] };
		for (uint32_t s = 0; s < k->slots && !empty; s++)
			if (slu_rng_below(r, 100) >= k->missing) {
				uint32_t v = t->greater ? k->slots - 1 - s : s;

				o->score[o->n++] = 7 + (k->twins ? v / 2 : v);
			}
		for (uint32_t i = p + 1; i <= n; i += i & -i)
			sums[i] += o->n;
		t->slots += o->n;
	}
	block[n] = (struct offer){ 0 };
	t->block = block;
	t->sums = sums;
	t->n = n;
	t->base = 7;
	t->width = k->slots;
}

/* Whether both sorts agree; *gave_up counts those that were too uneven. */
static bool agree(struct slu_arena *mem, const struct ranks *t, uint32_t need, uint32_t *gave_up)
{
	uint32_t n = 0, out[64];
	int rc;

	for (uint32_t p = 0; p < t->n; p++)
		for (uint32_t j = 0; j < block[p].n; j++, n++) {
			int64_t v = block[p].score[j] - t->base;
			uint32_t value = (uint32_t)(t->greater ? t->width - 1 - v : v);

			keys[n] = (struct key){ t->equal[value], (void *)(uintptr_t)n };
		}
	sort_first(keys, n, need, false);
	slu_arena_reset(mem);
	rc = sort_ranks(mem, t, need, out);
	if (rc == -EAGAIN) {
		(*gave_up)++;
		return true;
	}
	for (uint32_t i = 0; i < need && !rc; i++)
		if (out[i] != (uint32_t)(uintptr_t)keys[i].c)
			return false;
	return !rc;
}

static void each_equal(struct ranks *t, uint32_t run)
{
	for (uint32_t v = 0; v < t->width; v++)
		t->equal[v] = SLU_MIN(v / run * run + run - 1, t->width - 1);
}

static void random_sequences(struct slu_rng *r, struct slu_arena *mem)
{
	static const struct kind_of kinds[] = {
		{ 32, 0, 0, false },  { 32, 1, 0, false }, { 8, 0, 0, false },
		{ 8, 30, 20, false }, { 2, 10, 0, false }, { 32, 50, 30, false },
		{ 32, 2, 90, true },  { 5, 0, 50, true },
	};
	uint32_t wrong = 0, gave_up = 0, rounds = 0;

	for (uint32_t i = 0; i < 600; i++) {
		struct ranks t = { .greater = i % 3 == 0 };
		uint32_t need = 1 + (uint32_t)slu_rng_below(r, i % 4 ? 1 : 64), n;

		n = 1 + (uint32_t)slu_rng_below(r, i % 5 ? 200 : BLOCKS);
		fill(r, n, &kinds[i % SLU_LEN(kinds)], &t);
		if (t.slots < need || ranks_make(&t) < 0)
			continue;
		each_equal(&t, i % 7 ? 1 : 1 + (uint32_t)slu_rng_below(r, 6));
		rounds++;
		wrong += !agree(mem, &t, need, &gave_up);
		ranks_done(&t);
	}
	ok(!wrong && rounds > 400, "%u random sequences sort as they do one by one (%u wrong)",
	   rounds, wrong);
	ok(gave_up < rounds / 2, "most of them without writing them down (%u were not)", gave_up);
}

/* Always take the best, as jobs of one core do. */
static void taking(struct slu_rng *r, struct slu_arena *mem, bool greater)
{
	struct ranks t = { .greater = greater };
	uint32_t wrong = 0, gave_up = 0;

	fill(r, 400, &(struct kind_of){ 16, 0, 0, false }, &t);
	if (!ok(ranks_make(&t) == 0, "a table for 400 blocks"))
		return;
	each_equal(&t, 1);
	for (uint32_t i = 0; i < 600; i++) {
		uint32_t out;
		struct place at;
		struct offer *o;

		wrong += !agree(mem, &t, 1, &gave_up);
		out = (uint32_t)(uintptr_t)keys[0].c;
		ranks_seek(&t, out, &at);
		o = &block[at.p];
		ranks_change(&t, at.p, o, -1);
		memmove(o->score + at.j, o->score + at.j + 1, (--o->n - at.j) * sizeof *o->score);
		ranks_change(&t, at.p, o, 1);
		for (uint32_t b = at.p + 1; b <= t.n; b += b & -b)
			sums[b]--;
		t.slots--;
	}
	ok(!wrong, "600 times the first taken out (%u wrong, %u given up)", wrong, gave_up);
	ok(gave_up < 300, "most of them without writing them down");
	ranks_done(&t);
}

int main(void)
{
	struct slu_rng r = { 5 };
	struct slu_arena mem = { 0 };

	random_sequences(&r, &mem);
	taking(&r, &mem, false);
	taking(&r, &mem, true);
	slu_arena_done(&mem);
	return tap_done();
}
