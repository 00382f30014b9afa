/* levels.c — how many slots have which score; see offers_internal.h. */
#include "match/fast/offers_internal.h"

void match_levels_done(struct levels *l)
{
	slu_free(l->of);
	*l = (struct levels){ 0 };
}

/* Make room for this score, or note that there is no room.  True if entries have moved. */
static bool reach_score(struct levels *l, int64_t score)
{
	int64_t low = l->n ? SLU_MIN(l->base, score) : score;
	int64_t high = l->n ? SLU_MAX(l->base + l->n - 1, score) : score;
	uint32_t *more, n;

	if (l->n && low == l->base && high == l->base + l->n - 1)
		return false;
	n = (uint32_t)SLU_MIN(high - low + 1, (int64_t)LEVELS_MAX + 1);
	more = n <= LEVELS_MAX ? slu_calloc(n, sizeof *more) : NULL;
	if (!more) {
		l->spread = true;
		return true;
	}
	if (l->n)
		memcpy(more + (l->base - low), l->of, l->n * sizeof *more);
	slu_free(l->of);
	l->of = more;
	l->base = low;
	l->n = n;
	return true;
}

bool match_levels_count(struct levels *l, const struct block *b, int by)
{
	bool moved = false;

	for (uint32_t i = 0; i < b->n && !l->spread; i++) {
		uint32_t *n;

		if (by > 0)
			moved |= reach_score(l, block_score(b, i));
		if (l->spread)
			break;
		n = &l->of[block_score(b, i) - l->base];
		l->filled += by > 0 && !*n;
		*n += (uint32_t)by;
		l->filled -= by < 0 && !*n;
	}
	return moved;
}
