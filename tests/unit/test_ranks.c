/* The sort of sequences in blocks that are not written down, against the sort itself. */
#include "base/rng.h"
#include "match/fast/ranks_internal.h"
#include "tap.h"

#define BLOCKS 1200
#define SLOTS  32

static struct ground ground;
static struct offers offers;
static struct key keys[BLOCKS * SLOTS];

struct kind_of {
	uint32_t slots;   /* of a full block */
	uint32_t missing; /* of 100 slots */
	uint32_t empty;   /* of 100 blocks */
	bool twins;       /* scores come in pairs */
	uint32_t plain;   /* of 100 chunks */
};

/* Scores of one block; how many. */
static uint32_t some_scores(struct slu_rng *r, const struct kind_of *k, int64_t *to)
{
	bool empty = slu_rng_below(r, 100) < k->empty;
	uint32_t n = 0;

	for (uint32_t s = 0; s < k->slots && !empty; s++)
		if (slu_rng_below(r, 100) >= k->missing) {
			uint32_t v = ground.greater ? k->slots - 1 - s : s;

			to[n++] = 7 + (k->twins ? v / 2 : v);
		}
	return n;
}

static void fill(struct slu_rng *r, uint32_t n, const struct kind_of *k, bool greater,
		 struct ranks *t)
{
	ground = (struct ground){ .n = n, .greater = greater };
	match_offers_init(&offers, &ground);
	for (uint32_t i = 0; i < PATTERNS_MAX; i++) {
		offers.pattern[i].score = slu_calloc(SLOTS, sizeof(int64_t));
		offers.pattern[i].n = some_scores(r, k, offers.pattern[i].score);
	}
	for (uint32_t p = 0; p < n; p++) {
		struct offer *o;

		if (p % CHUNK_N == 0 && slu_rng_below(r, 100) < k->plain) {
			match_offers_plain(&offers, p / CHUNK_N,
					   (uint32_t)slu_rng_below(r, PATTERNS_MAX));
			p += CHUNK_N - 1;
			continue;
		}
		o = &match_offers_write(&offers, p / CHUNK_N)->offer[p % CHUNK_N];
		*o = (struct offer){ .score = slu_calloc(SLOTS, sizeof(int64_t)), .cap = SLOTS };
		o->n = some_scores(r, k, o->score);
		offers.slots += o->n;
	}
	match_offers_tally(&offers);
	*t = (struct ranks){ .of = &offers, .base = 7, .width = k->slots };
	t->slots = (uint32_t)offers.slots;
}

static void done(struct ranks *t)
{
	match_ranks_done(t);
	match_offers_done(&offers);
}

/* The summary that a sequence keeps by chunks, against a look at every block. */
static bool sound(void)
{
	uint32_t best = SLU_NONE, before = 0, n = ground.n;
	int64_t top = 0;

	for (uint32_t p = 0; p < n; p++) {
		struct block b = offers_at(&offers, p);
		struct chosen c = match_offers_find(&offers, before);

		if (match_offers_before(&offers, p) != before)
			return false;
		if (b.n && (c.p != p || c.i))
			return false;
		if (b.n && (best == SLU_NONE || (ground.greater ? block_score(&b, 0) > top
								: block_score(&b, 0) < top))) {
			best = p;
			top = block_score(&b, 0);
		}
		before += b.n;
	}
	return before == offers.slots && offers_best(&offers) == best &&
	       match_offers_find(&offers, before).p == n;
}

/* Whether both sorts agree; *gave_up counts those that were too uneven. */
static bool agree(struct slu_arena *mem, const struct ranks *t, uint32_t need, uint32_t *gave_up)
{
	uint32_t n = 0, out[64];
	int rc;

	for (uint32_t p = 0; p < ground.n; p++) {
		struct block b = offers_at(&offers, p);

		for (uint32_t j = 0; j < b.n; j++, n++) {
			int64_t v = block_score(&b, j) - t->base;
			uint32_t value = (uint32_t)(ground.greater ? t->width - 1 - v : v);

			keys[n] = (struct key){ t->equal[value], (void *)(uintptr_t)n };
		}
	}
	match_sort_first(keys, n, need, false);
	slu_arena_reset(mem);
	rc = match_sort_ranks(mem, t, need, out);
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
		{ 32, 0, 0, false, 90 },  { 32, 1, 0, false, 50 }, { 8, 0, 0, false, 0 },
		{ 8, 30, 20, false, 50 }, { 2, 10, 0, false, 95 }, { 32, 50, 30, false, 0 },
		{ 32, 2, 90, true, 30 },  { 5, 0, 50, true, 60 },
	};
	uint32_t wrong = 0, unsound = 0, gave_up = 0, rounds = 0;

	for (uint32_t i = 0; i < 600; i++) {
		struct ranks t;
		uint32_t need = 1 + (uint32_t)slu_rng_below(r, i % 4 ? 1 : 64), n;

		n = 1 + (uint32_t)slu_rng_below(r, i % 5 ? 200 : BLOCKS);
		fill(r, n, &kinds[i % SLU_LEN(kinds)], i % 3 == 0, &t);
		unsound += !sound();
		if (t.slots < need || match_ranks_make(&t) < 0) {
			done(&t);
			continue;
		}
		each_equal(&t, i % 7 ? 1 : 1 + (uint32_t)slu_rng_below(r, 6));
		rounds++;
		wrong += !agree(mem, &t, need, &gave_up);
		done(&t);
	}
	ok(!unsound, "sums, places and the best of sequences in chunks (%u wrong)", unsound);
	ok(!wrong && rounds > 400, "%u random sequences sort as they do one by one (%u wrong)",
	   rounds, wrong);
	ok(gave_up < rounds / 2, "most of them without writing them down (%u were not)", gave_up);
}

/* Scores of its own instead of a pattern's. */
static void own(struct offer *o)
{
	int64_t *score;

	if (o->cap)
		return;
	score = slu_calloc(SLOTS, sizeof *score);
	memcpy(score, o->score, o->n * sizeof *score);
	o->score = score;
	o->cap = SLOTS;
}

/* Always take the best, as jobs of one core do; all chunks are plain at first. */
static void taking(struct slu_rng *r, struct slu_arena *mem, bool greater)
{
	struct ranks t;
	uint32_t wrong = 0, gave_up = 0;

	fill(r, 400, &(struct kind_of){ 16, 0, 0, false, 100 }, greater, &t);
	if (!ok(match_ranks_make(&t) == 0, "a table for 400 blocks"))
		return;
	each_equal(&t, 1);
	for (uint32_t i = 0; i < 600; i++) {
		uint32_t out;
		struct place at;
		struct offer *o;

		wrong += !agree(mem, &t, 1, &gave_up);
		out = (uint32_t)(uintptr_t)keys[0].c;
		match_ranks_seek(&t, out, &at);
		if (!offers.chunk[at.p / CHUNK_N] &&
		    (!match_offers_write(&offers, at.p / CHUNK_N) ||
		     match_ranks_write(&t, at.p / CHUNK_N) < 0))
			break;
		o = &offers.chunk[at.p / CHUNK_N]->offer[at.p % CHUNK_N];
		match_ranks_change(&t, at.p, -1);
		own(o);
		memmove(o->score + at.j, o->score + at.j + 1, (--o->n - at.j) * sizeof *o->score);
		match_ranks_change(&t, at.p, 1);
		match_offers_grew(&offers, at.p, -1u);
		match_offers_replay(&offers, at.p);
		t.slots--;
	}
	ok(t.slots == offers.slots && t.slots == 400 * 16 - 600 && sound(),
	   "the items behind the partition are in place");
	ok(!wrong, "600 times the first taken out (%u wrong, %u given up)", wrong, gave_up);
	ok(gave_up < 300, "most of them without writing them down");
	done(&t);
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
