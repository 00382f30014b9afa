/* offers.c — sums and tournaments in two storeys; see offers_internal.h. */
#include "match/fast/offers_internal.h"

int match_offers_init(struct offers *o, const struct ground *g)
{
	*o = (struct offers){ .g = g, .nchunk = chunks_of(g->n), .top = 1 };
	while (o->top < o->nchunk)
		o->top *= 2;
	o->chunk = slu_calloc(o->nchunk + 1, sizeof *o->chunk);
	o->plain = slu_calloc(o->nchunk + 1, sizeof *o->plain);
	o->sums = slu_calloc(o->nchunk + 1, sizeof *o->sums);
	o->tree = slu_reallocarray(NULL, 2 * (size_t)o->top, sizeof *o->tree);
	if (!o->chunk || !o->plain || !o->sums || !o->tree) {
		match_offers_done(o);
		return -ENOMEM;
	}
	memset(o->tree, 0xff, 2 * (size_t)o->top * sizeof *o->tree);
	return 0;
}

void match_offers_done(struct offers *o)
{
	for (uint32_t c = 0; o->chunk && c < o->nchunk; c++) {
		for (uint32_t j = 0; o->chunk[c] && j < CHUNK_N; j++)
			if (o->chunk[c]->offer[j].cap)
				slu_free(o->chunk[c]->offer[j].score);
		slu_free(o->chunk[c]);
	}
	for (uint32_t i = 0; i < PATTERNS_MAX; i++)
		slu_free(o->pattern[i].score);
	slu_free(o->chunk);
	slu_free(o->plain);
	slu_free(o->sums);
	slu_free(o->tree);
	*o = (struct offers){ 0 };
}

/* --- tournaments --- */

static int64_t next_score(const struct offers *o, uint32_t p)
{
	const struct chunk *k = o->chunk[p / CHUNK_N];
	struct block b = offers_at(o, p);

	return block_score(&b, k ? k->offer[p % CHUNK_N].next : 0);
}

/* The better of two vertices, the first of equals. */
static uint32_t better_vertex(const struct offers *o, uint32_t a, uint32_t b)
{
	int64_t s, t;

	if (a == SLU_NONE || b == SLU_NONE)
		return a == SLU_NONE ? b : a;
	s = next_score(o, a);
	t = next_score(o, b);
	return (o->g->greater ? t > s : t < s) ? b : a;
}

static void play_tree(const struct offers *o, uint32_t *tree, uint32_t i)
{
	tree[i] = better_vertex(o, tree[2 * i], tree[2 * i + 1]);
}

void match_offers_replay(struct offers *o, uint32_t p)
{
	struct chunk *k = o->chunk[p / CHUNK_N];
	const struct offer *x = &k->offer[p % CHUNK_N];
	uint32_t i;

	if (o->bulk)
		return;
	k->tree[CHUNK_N + p % CHUNK_N] = x->next < x->n ? p : SLU_NONE;
	for (i = (CHUNK_N + p % CHUNK_N) / 2; i; i /= 2)
		play_tree(o, k->tree, i);
	i = o->top + p / CHUNK_N;
	o->tree[i] = k->tree[1];
	for (i /= 2; i; i /= 2)
		play_tree(o, o->tree, i);
}

/* --- sums --- */

void match_offers_grew(struct offers *o, uint32_t p, uint32_t more)
{
	struct chunk *k = o->chunk[p / CHUNK_N];

	o->slots += (int32_t)more;
	if (o->bulk)
		return;
	for (uint32_t i = p % CHUNK_N + 1; i <= CHUNK_N; i += i & -i)
		k->sums[i] += more;
	for (uint32_t i = p / CHUNK_N + 1; i <= o->nchunk; i += i & -i)
		o->sums[i] += more;
}

static uint32_t sum_before(const uint32_t *sums, uint32_t i)
{
	uint32_t n = 0;

	for (; i; i -= i & -i)
		n += sums[i];
	return n;
}

/* Turn single sums into a Fenwick tree. */
static void grow_sums(uint32_t *sums, uint32_t n)
{
	for (uint32_t i = 1, up; i <= n; i++) {
		up = i + (i & -i);
		if (up <= n)
			sums[up] += sums[i];
	}
}

static uint32_t plain_n(const struct offers *o, uint32_t c)
{
	return o->plain[c] ? o->pattern[o->plain[c] - 1].n : 0;
}

uint32_t match_offers_before(const struct offers *o, uint32_t p)
{
	uint32_t c = p / CHUNK_N, n = sum_before(o->sums, c);

	if (c >= o->nchunk)
		return n;
	return n + (o->chunk[c] ? sum_before(o->chunk[c]->sums, p % CHUNK_N)
				: p % CHUNK_N * plain_n(o, c));
}

struct chosen match_offers_find(const struct offers *o, uint32_t i)
{
	uint32_t c = 0, p = 0;
	const struct chunk *k;

	for (uint32_t step = o->top; step; step /= 2)
		if (c + step <= o->nchunk && o->sums[c + step] <= i) {
			c += step;
			i -= o->sums[c];
		}
	if (c == o->nchunk)
		return (struct chosen){ o->g->n, 0 };
	k = o->chunk[c];
	if (!k) {
		uint32_t n = plain_n(o, c);

		return (struct chosen){ c * CHUNK_N + i / n, i % n };
	}
	for (uint32_t step = CHUNK_N / 2; step; step /= 2)
		if (k->sums[p + step] <= i) {
			p += step;
			i -= k->sums[p];
		}
	return (struct chosen){ c * CHUNK_N + p, i };
}

/* --- chunks --- */

void match_offers_plain(struct offers *o, uint32_t c, uint32_t pattern)
{
	o->plain[c] = (uint8_t)(pattern + 1);
	o->slots += (int64_t)chunk_size(o, c) * o->pattern[pattern].n;
}

static void chunk_tally(const struct offers *o, struct chunk *k, uint32_t c)
{
	for (uint32_t j = 0; j < CHUNK_N; j++) {
		const struct offer *x = &k->offer[j];

		k->tree[CHUNK_N + j] = x->next < x->n ? c * CHUNK_N + j : SLU_NONE;
		k->sums[j + 1] = x->n;
	}
	for (uint32_t i = CHUNK_N; --i;)
		play_tree(o, k->tree, i);
	grow_sums(k->sums, CHUNK_N);
}

struct chunk *match_offers_write(struct offers *o, uint32_t c)
{
	struct chunk *k = o->chunk[c];

	if (k)
		return k;
	k = slu_malloc(sizeof *k);
	if (!k)
		return NULL;
	for (uint32_t j = 0; j < CHUNK_N; j++) {
		struct block b = offers_at(o, c * CHUNK_N + j);

		k->offer[j] = (struct offer){ (int64_t *)b.score, b.n, 0, b.shift, 0, NULL };
	}
	k->sums[0] = 0;
	o->chunk[c] = k;
	chunk_tally(o, k, c);
	return k;
}

void match_offers_tally(struct offers *o)
{
	for (uint32_t c = 0; c < o->nchunk; c++) {
		struct chunk *k = o->chunk[c];
		uint32_t n = plain_n(o, c);

		if (k) {
			chunk_tally(o, k, c);
			o->tree[o->top + c] = k->tree[1];
			o->sums[c + 1] = k->sums[CHUNK_N];
			continue;
		}
		o->tree[o->top + c] = n ? c * CHUNK_N + (o->g->best ? o->g->best[c] : 0) : SLU_NONE;
		o->sums[c + 1] = n * chunk_size(o, c);
	}
	for (uint32_t i = o->top; --i;)
		play_tree(o, o->tree, i);
	grow_sums(o->sums, o->nchunk);
	o->bulk = false;
}
