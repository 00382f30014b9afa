/* ranks.c — the table behind ranks_internal.h. */
#include "match/fast/ranks_internal.h"

#define ENTRIES_MAX (1u << 22)
#define EMPTY_MAX   16 /* after this many blocks without slots in a row the tree is quicker */

static uint32_t value_at(const struct ranks *r, const struct block *b, uint32_t j)
{
	int64_t v = block_score(b, j) - r->base;

	return r->of->g->greater ? r->width - 1 - (uint32_t)v : (uint32_t)v;
}

/* Slots of one block with at most each value. */
static void count_block(const struct ranks *r, const struct block *b, uint32_t *row)
{
	memset(row, 0, r->width * sizeof *row);
	for (uint32_t j = 0; j < b->n; j++)
		row[value_at(r, b, j)]++;
	for (uint32_t v = 1; v < r->width; v++)
		row[v] += row[v - 1];
}

static void add_row(uint32_t *restrict to, const uint32_t *restrict from, uint32_t width)
{
	for (uint32_t v = 0; v < width; v++)
		to[v] += from[v];
}

/* Turn the rows of n single blocks (from row 1 on) into a Fenwick tree. */
static void grow_rows(uint32_t *row, uint32_t n, uint32_t width)
{
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t up = i + (i & -i);

		if (up <= n)
			add_row(row + (size_t)up * width, row + (size_t)i * width, width);
	}
}

int match_ranks_write(struct ranks *r, uint32_t c)
{
	uint32_t *part = slu_reallocarray(NULL, (size_t)(CHUNK_N + 1) * r->width, sizeof *part);
	struct block last = { 0 };

	if (!part)
		return -ENOMEM;
	for (uint32_t j = 0; j < CHUNK_N; j++) {
		uint32_t *row = part + (size_t)(j + 1) * r->width;
		struct block b = offers_at(r->of, c * CHUNK_N + j);

		if (j && b.n == last.n && b.score == last.score && b.shift == last.shift)
			memcpy(row, row - r->width, r->width * sizeof *row);
		else
			count_block(r, &b, row);
		last = b;
	}
	grow_rows(part, CHUNK_N, r->width);
	r->part[c] = part;
	return 0;
}

/* The row of a whole chunk. */
static int count_chunk(struct ranks *r, uint32_t c, uint32_t *row)
{
	const struct offers *o = r->of;
	const uint32_t *one;
	uint32_t times;

	if (o->chunk[c]) {
		if (match_ranks_write(r, c) < 0)
			return -ENOMEM;
		memcpy(row, r->part[c] + (size_t)CHUNK_N * r->width, r->width * sizeof *row);
		return 0;
	}
	one = o->plain[c] ? r->plain + (o->plain[c] - 1) * r->width : NULL;
	times = one ? chunk_size(o, c) : 0;
	for (uint32_t v = 0; v < r->width; v++)
		row[v] = one ? one[v] * times : 0;
	return 0;
}

int match_ranks_make(struct ranks *r)
{
	const struct offers *o = r->of;
	uint64_t entries = ((uint64_t)o->g->n + 1) * r->width;
	bool used[PATTERNS_MAX] = { 0 };
	int rc = 0;

	if (entries > ENTRIES_MAX || !r->width)
		return -E2BIG;
	r->row = slu_reallocarray(NULL, ((size_t)o->nchunk + 1) * r->width, sizeof *r->row);
	r->equal = slu_reallocarray(NULL, r->width, sizeof *r->equal);
	r->plain = slu_reallocarray(NULL, (size_t)PATTERNS_MAX * r->width, sizeof *r->plain);
	r->one = slu_reallocarray(NULL, r->width, sizeof *r->one);
	r->part = slu_calloc(o->nchunk + 1, sizeof *r->part);
	if (!r->row || !r->equal || !r->plain || !r->one || !r->part)
		rc = -ENOMEM;
	for (uint32_t c = 0; c < o->nchunk; c++)
		if (!o->chunk[c] && o->plain[c])
			used[o->plain[c] - 1] = true;
	for (uint32_t i = 0; i < PATTERNS_MAX && !rc; i++) {
		struct block b = { o->pattern[i].score, 0, used[i] ? o->pattern[i].n : 0 };

		count_block(r, &b, r->plain + i * r->width);
	}
	for (uint32_t c = 0; c < o->nchunk && !rc; c++)
		rc = count_chunk(r, c, r->row + (size_t)(c + 1) * r->width);
	if (rc < 0) {
		match_ranks_done(r);
		return rc;
	}
	grow_rows(r->row, o->nchunk, r->width);
	return 0;
}

void match_ranks_done(struct ranks *r)
{
	for (uint32_t c = 0; r->part && c < r->of->nchunk; c++)
		slu_free(r->part[c]);
	slu_free(r->part);
	slu_free(r->row);
	slu_free(r->plain);
	slu_free(r->one);
	slu_free(r->equal);
	r->row = r->plain = r->one = r->equal = NULL;
	r->part = NULL;
}

void match_ranks_change(struct ranks *r, uint32_t p, int by)
{
	struct block b = offers_at(r->of, p);
	uint32_t *part = r->part[p / CHUNK_N];

	count_block(r, &b, r->one);
	for (uint32_t v = 0; by < 0 && v < r->width; v++)
		r->one[v] = -r->one[v];
	for (uint32_t i = p % CHUNK_N + 1; i <= CHUNK_N; i += i & -i)
		add_row(part + (size_t)i * r->width, r->one, r->width);
	for (uint32_t i = p / CHUNK_N + 1; i <= r->of->nchunk; i += i & -i)
		add_row(r->row + (size_t)i * r->width, r->one, r->width);
}

void match_ranks_seek(const struct ranks *r, uint32_t i, struct place *at)
{
	struct chosen c = match_offers_find(r->of, i);

	*at = (struct place){ i, c.p, c.i };
}

void match_ranks_select(const struct ranks *r, uint32_t to, uint32_t k, struct place *at)
{
	const struct offers *o = r->of;
	uint32_t c = 0, p = 0, i = 0;
	const uint32_t *part;

	for (uint32_t step = o->top; step; step /= 2)
		if (c + step <= o->nchunk && r->row[(size_t)(c + step) * r->width + to] <= k) {
			c += step;
			i += o->sums[c];
			k -= r->row[(size_t)c * r->width + to];
		}
	if (c == o->nchunk) {
		*at = (struct place){ i, o->g->n, 0 };
		return;
	}
	part = r->part[c];
	if (!part) {
		uint32_t fine = r->plain[(o->plain[c] - 1) * r->width + to];

		p = k / fine;
		i += p * o->pattern[o->plain[c] - 1].n;
		k %= fine;
	}
	for (uint32_t step = CHUNK_N / 2; step && part; step /= 2)
		if (part[(size_t)(p + step) * r->width + to] <= k) {
			p += step;
			i += o->chunk[c]->sums[p];
			k -= part[(size_t)p * r->width + to];
		}
	/* The best of a block come first. */
	*at = (struct place){ i + k, c * CHUNK_N + p, k };
}

/* Slots of a block that are at most `to`, given that from the j-th on none is. */
static uint32_t fine_before(const struct ranks *r, const struct block *b, uint32_t j, uint32_t to)
{
	uint32_t lo = 0;

	while (lo < j) {
		uint32_t mid = lo + (j - lo) / 2;

		if (value_at(r, b, mid) <= to)
			lo = mid + 1;
		else
			j = mid;
	}
	return lo;
}

/* Add a row this many times. */
static void share_row(const uint32_t *row, uint32_t times, const struct bound *b, uint32_t n,
		      struct share *out)
{
	for (uint32_t t = 0; t < n; t++) {
		out[t].fine += row[b[t].to] * times;
		out[t].better += b[t].from ? row[b[t].from - 1] * times : 0;
	}
}

void match_ranks_share(const struct ranks *r, const struct place *at, const struct bound *b,
		       uint32_t n, struct share *out)
{
	const struct offers *o = r->of;
	uint32_t c = at->p / CHUNK_N, j = at->p % CHUNK_N;
	struct block own = offers_at(o, at->p);

	for (uint32_t t = 0; t < n; t++) {
		out[t].fine = at->j ? fine_before(r, &own, at->j, b[t].to) : 0;
		out[t].better = at->j && b[t].from ? fine_before(r, &own, at->j, b[t].from - 1) : 0;
	}
	if (j && !r->part[c] && o->plain[c])
		share_row(r->plain + (o->plain[c] - 1) * r->width, j, b, n, out);
	for (uint32_t i = j && r->part[c] ? j : 0; i; i -= i & -i)
		share_row(r->part[c] + (size_t)i * r->width, 1, b, n, out);
	for (uint32_t i = c; i; i -= i & -i)
		share_row(r->row + (size_t)i * r->width, 1, b, n, out);
}

/* Move to the start of the next block with slots; at->i is there already. */
static void block_next(const struct ranks *r, struct place *at)
{
	at->j = 0;
	for (uint32_t end = SLU_MIN(at->p + EMPTY_MAX, r->of->g->n); ++at->p < end;)
		if (offers_at(r->of, at->p).n)
			return;
	match_ranks_seek(r, at->i, at);
}

uint32_t match_ranks_next(const struct ranks *r, struct place *at)
{
	struct block b = offers_at(r->of, at->p);
	uint32_t v = value_at(r, &b, at->j);

	at->i++;
	if (++at->j == b.n)
		block_next(r, at);
	return v;
}

/* Move to the end of the block before. */
static void block_back(const struct ranks *r, struct place *at)
{
	for (uint32_t left = EMPTY_MAX; left; left--) {
		at->j = offers_at(r->of, --at->p).n;
		if (at->j)
			return;
	}
	match_ranks_seek(r, at->i - 1, at);
	at->i++;
	at->j++;
}

uint32_t match_ranks_back(const struct ranks *r, struct place *at)
{
	struct block b;

	if (!at->j)
		block_back(r, at);
	at->i--;
	at->j--;
	b = offers_at(r->of, at->p);
	return value_at(r, &b, at->j);
}

uint32_t match_ranks_next_fine(const struct ranks *r, struct place *at, uint32_t to)
{
	for (;;) {
		struct block b = offers_at(r->of, at->p);

		if (value_at(r, &b, at->j) <= to)
			return match_ranks_next(r, at);
		/* The rest of the block is worse still. */
		at->i += b.n - at->j;
		block_next(r, at);
	}
}

uint32_t match_ranks_back_fine(const struct ranks *r, struct place *at, uint32_t to)
{
	for (;;) {
		struct block b;
		uint32_t fine;

		if (!at->j)
			block_back(r, at);
		b = offers_at(r->of, at->p);
		fine = fine_before(r, &b, at->j, to);
		at->i -= at->j - fine;
		at->j = fine;
		if (fine)
			return match_ranks_back(r, at);
	}
}
