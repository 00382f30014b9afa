#include "control/io/throttle.h"

#include "tap.h"

#define MS INT64_C(1000000)

/* Send as many as may go; the number. */
static uint32_t fill(struct slu_throttle *w)
{
	uint32_t n = 0;

	for (; slu_throttle_room(w); n++)
		slu_throttle_sent(w);
	return n;
}

static void round_of(struct slu_throttle *w, int64_t now, int64_t took, bool strained)
{
	for (uint32_t n = w->flying; n; n--)
		slu_throttle_answered(w, now, now - took, strained);
}

int main(void)
{
	struct slu_throttle w = slu_throttle(64);

	ok(fill(&w) == 64, "begins at the ceiling");
	ok(!slu_throttle_room(&w), "the rate does not rise beyond the ceiling");
	round_of(&w, 1000 * MS, 100 * MS, false);
	ok(w.limit == 64 && w.flying == 0, "good answers do not move it above the ceiling");

	fill(&w);
	round_of(&w, 2000 * MS, 100 * MS, true);
	ok(w.limit == 32 && w.halvings == 1, "a round of refusals halves it once: %u, %u", w.limit,
	   (unsigned)w.halvings);
	for (int i = 0; i < 10; i++) {
		fill(&w);
		round_of(&w, (3000 + 1000 * i) * MS, 100 * MS, true);
	}
	ok(w.limit == SLU_THROTTLE_MIN, "never below %u: %u", SLU_THROTTLE_MIN, w.limit);

	for (int i = 0; i < 8; i++) {
		fill(&w);
		for (uint32_t n = w.flying; n; n--) {
			slu_throttle_answered(&w, (20000 + i) * MS, 19990 * MS, false);
			fill(&w);
		}
	}
	ok(w.limit > SLU_THROTTLE_MIN && w.limit < 64, "grows slowly while it is used: %u",
	   w.limit);

	w = slu_throttle(64);
	fill(&w);
	round_of(&w, 1000 * MS, 10 * MS, true);
	ok(fill(&w) == 32 && slu_throttle_excess(&w),
	   "a gang that was begun may go past the limit");
	for (int i = 0; i < 32; i++)
		slu_throttle_sent(&w);
	ok(!slu_throttle_excess(&w), "a gang that was begun does not go past the ceiling");

	w = slu_throttle(64);
	fill(&w);
	round_of(&w, 9000 * MS, 6000 * MS, false);
	ok(w.limit == 32, "an answer after six seconds is a refusal too: %u", w.limit);

	w.flying = 1;
	for (int i = 0; i < 1000; i++) {
		slu_throttle_answered(&w, 10000 * MS, 9990 * MS, false);
		slu_throttle_sent(&w);
	}
	ok(w.limit == 32, "one request at a time does not raise the limit: %u", w.limit);

	w = slu_throttle(1);
	fill(&w);
	round_of(&w, 1000 * MS, 10 * MS, true);
	ok(w.limit == 1 && fill(&w) == 1, "a ceiling of one stays one");
	return tap_done();
}
