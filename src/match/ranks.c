/* ranks.c — the table behind ranks.h. */
#include "match/ranks.h"

#define ENTRIES_MAX (1u << 22)
#define EMPTY_MAX   16 /* blocks without slots in a row; behind that many the tree is quicker */

static uint32_t value_at(const struct ranks *r, const struct offer *o, uint32_t j)
{
	int64_t v = offer_score(o, j) - r->base;

	return r->greater ? r->width - 1 - (uint32_t)v : (uint32_t)v;
}

int ranks_make(struct ranks *r)
{
	uint64_t entries = ((uint64_t)r->n + 1) * r->width;

	if (entries > ENTRIES_MAX || !r->width)
		return -E2BIG;
	r->row = slu_calloc(entries, sizeof *r->row);
	r->equal = slu_reallocarray(NULL, r->width, sizeof *r->equal);
	if (!r->row || !r->equal) {
		ranks_done(r);
		return -ENOMEM;
	}
	for (uint32_t p = 0; p < r->n; p++) {
		uint32_t *row = r->row + (size_t)(p + 1) * r->width;
		const struct offer *o = &r->block[p];

		if (p && o->n == o[-1].n && o->score == o[-1].score && o->shift == o[-1].shift) {
			memcpy(row, row - r->width, r->width * sizeof *row);
			continue;
		}
		for (uint32_t j = 0; j < o->n; j++)
			row[value_at(r, o, j)]++;
		for (uint32_t v = 1; v < r->width; v++)
			row[v] += row[v - 1];
	}
	/* From single blocks to the tree. */
	for (uint32_t i = 1; i <= r->n; i++) {
		uint32_t up = i + (i & -i), n = up <= r->n ? r->width : 0;
		const uint32_t *from = r->row + (size_t)i * r->width;

		for (uint32_t v = 0, *to = r->row + (n ? (size_t)up * n : 0); v < n; v++)
			to[v] += from[v];
	}
	return 0;
}

void ranks_done(struct ranks *r)
{
	slu_free(r->row);
	slu_free(r->equal);
	r->row = r->equal = NULL;
}

void ranks_change(struct ranks *r, uint32_t p, const struct offer *o, int by)
{
	for (uint32_t i = p + 1; i <= r->n; i += i & -i) {
		uint32_t *row = r->row + (size_t)i * r->width;
		uint32_t j = 0;

		/* Values rise within a block: the sum so far goes to every value between. */
		for (uint32_t v = o->n ? value_at(r, o, 0) : r->width; v < r->width; v++) {
			while (j < o->n && value_at(r, o, j) == v)
				j++;
			row[v] += by < 0 ? -j : j;
		}
	}
}

static uint32_t top_step(const struct ranks *r)
{
	return r->n ? 1u << (31 - __builtin_clz(r->n)) : 0;
}

void ranks_seek(const struct ranks *r, uint32_t i, struct place *at)
{
	uint32_t p = 0, left = i;

	for (uint32_t step = top_step(r); step; step /= 2)
		if (p + step <= r->n && r->sums[p + step] <= left) {
			p += step;
			left -= r->sums[p];
		}
	*at = (struct place){ i, p, left };
}

void ranks_select(const struct ranks *r, uint32_t to, uint32_t k, struct place *at)
{
	uint32_t p = 0, i = 0;

	for (uint32_t step = top_step(r); step; step /= 2)
		if (p + step <= r->n && r->row[(size_t)(p + step) * r->width + to] <= k) {
			p += step;
			i += r->sums[p];
			k -= r->row[(size_t)p * r->width + to];
		}
	/* The best of a block come first. */
	*at = (struct place){ i + k, p, k };
}

/* Slots of a block that are at most `to`, given that from the j-th on none is. */
static uint32_t fine_before(const struct ranks *r, const struct offer *o, uint32_t j, uint32_t to)
{
	uint32_t lo = 0;

	while (lo < j) {
		uint32_t mid = lo + (j - lo) / 2;

		if (value_at(r, o, mid) <= to)
			lo = mid + 1;
		else
			j = mid;
	}
	return lo;
}

void ranks_share(const struct ranks *r, const struct place *at, const struct bound *b, uint32_t n,
		 struct share *out)
{
	const struct offer *o = &r->block[at->p];

	for (uint32_t t = 0; t < n; t++) {
		out[t].fine = at->j ? fine_before(r, o, at->j, b[t].to) : 0;
		out[t].better = at->j && b[t].from ? fine_before(r, o, at->j, b[t].from - 1) : 0;
	}
	for (uint32_t i = at->p; i; i -= i & -i) {
		const uint32_t *row = r->row + (size_t)i * r->width;

		for (uint32_t t = 0; t < n; t++) {
			out[t].fine += row[b[t].to];
			out[t].better += b[t].from ? row[b[t].from - 1] : 0;
		}
	}
}

/* To the start of the next block with slots; at->i is there already. */
static void block_next(const struct ranks *r, struct place *at)
{
	at->j = 0;
	for (uint32_t end = SLU_MIN(at->p + EMPTY_MAX, r->n); ++at->p < end;)
		if (r->block[at->p].n)
			return;
	ranks_seek(r, at->i, at);
}

uint32_t ranks_next(const struct ranks *r, struct place *at)
{
	const struct offer *o = &r->block[at->p];
	uint32_t v = value_at(r, o, at->j);

	at->i++;
	if (++at->j == o->n)
		block_next(r, at);
	return v;
}

/* To the end of the block before. */
static void block_back(const struct ranks *r, struct place *at)
{
	for (uint32_t left = EMPTY_MAX; left; left--)
		if (r->block[--at->p].n) {
			at->j = r->block[at->p].n;
			return;
		}
	ranks_seek(r, at->i - 1, at);
	at->i++;
	at->j++;
}

uint32_t ranks_back(const struct ranks *r, struct place *at)
{
	if (!at->j)
		block_back(r, at);
	at->i--;
	at->j--;
	return value_at(r, &r->block[at->p], at->j);
}

uint32_t ranks_next_fine(const struct ranks *r, struct place *at, uint32_t to)
{
	for (;;) {
		const struct offer *o = &r->block[at->p];

		if (value_at(r, o, at->j) <= to)
			return ranks_next(r, at);
		/* The rest of the block is worse still. */
		at->i += o->n - at->j;
		block_next(r, at);
	}
}

uint32_t ranks_back_fine(const struct ranks *r, struct place *at, uint32_t to)
{
	for (;;) {
		uint32_t fine;

		if (!at->j)
			block_back(r, at);
		fine = fine_before(r, &r->block[at->p], at->j, to);
		at->i -= at->j - fine;
		at->j = fine;
		if (fine)
			return ranks_back(r, at);
	}
}
