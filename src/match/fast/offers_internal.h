/* offers_internal.h — the slots that the vertices of a front offer: a long sequence of blocks, one per
 * vertex.  For src/match/fast only.
 *
 * Nearly all vertices of a machine are alike and offer the same, but for what node_centric adds
 * above them.  So they come in chunks of 64 neighbours, and a chunk that follows one pattern is not
 * written down: its sums, its best vertex and every block of it are worked out.  When one of its
 * vertices differs, the chunk is written down.  The first match of a kind then costs steps per
 * chunk, not per vertex.
 *
 * Within a block the best slot comes first. */
#pragma once
#include "match/match_internal.h"

#define CHUNK_N      64
#define PATTERNS_MAX 4

/* Slots that one vertex offers, written down. */
struct offer {
	int64_t *score;  /* less `shift` */
	uint32_t n, cap; /* cap 0: the scores are a pattern's */
	int64_t shift;
	uint32_t next;     /* the first of these slots that the search under way has not taken */
	struct cand *head; /* the slots as candidates, valid if `marked` is this generation */
};

/* A view of a block, whether it is written down or follows a pattern. */
struct block {
	const int64_t *score; /* less `shift` */
	int64_t shift;
	uint32_t n;
};

struct pattern {
	int64_t *score; /* of a vertex with F of node_centric below it as in `centre` */
	uint32_t n;
	uint32_t picks; /* of each slot; 0: they differ, or there are none */
	int64_t centre;
};

struct range {
	int64_t low, high; /* low > high: none */
};

/* The part that does not depend on the request; the front owns it. */
struct ground {
	uint32_t n;
	bool greater;        /* the greatest score is the best */
	int64_t *below;      /* by vertex: F of node_centric below it; NULL: scores have no F */
	struct range *range; /* of `below`; by chunk a tree of 2 * CHUNK_N */
	uint8_t *best;       /* by chunk: which of its vertices has the best, the first of these */
};

struct chunk {
	struct offer offer[CHUNK_N];
	uint32_t sums[CHUNK_N + 1]; /* Fenwick tree: slots */
	uint32_t tree[2 * CHUNK_N]; /* tournament: the vertex with the best next slot */
};

struct offers {
	const struct ground *g;
	uint32_t nchunk, top; /* chunks; leaves of the tree over them */
	struct pattern pattern[PATTERNS_MAX];
	struct chunk **chunk; /* NULL: not written down */
	uint8_t *plain; /* if not written down: number of its pattern + 1; 0: nothing is offered */
	uint32_t *sums; /* Fenwick tree over chunks */
	uint32_t *tree; /* tournament over chunks */
	int64_t slots;  /* in all */
	bool bulk;      /* sums and trees are still to be made, by match_offers_tally() */
};

/* Slot number `i` of vertex `p`. */
struct chosen {
	uint32_t p, i;
};

static inline uint32_t chunks_of(uint32_t n)
{
	return (n + CHUNK_N - 1) / CHUNK_N;
}

static inline uint32_t chunk_size(const struct offers *o, uint32_t c)
{
	return SLU_MIN(o->g->n - c * CHUNK_N, (uint32_t)CHUNK_N);
}

/* The vertices of chunk c, as bits. */
static inline uint64_t chunk_bits(const struct offers *o, uint32_t c)
{
	return ~0ull >> (c + 1 < o->nchunk ? 0 : CHUNK_N - chunk_size(o, c));
}

static inline int64_t block_score(const struct block *b, uint32_t i)
{
	return b->score[i] + b->shift;
}

/* The block of vertex p; an empty block behind the last vertex. */
static inline struct block offers_at(const struct offers *o, uint32_t p)
{
	const struct chunk *k = p < o->g->n ? o->chunk[p / CHUNK_N] : NULL;
	const struct pattern *t;

	if (k) {
		const struct offer *x = &k->offer[p % CHUNK_N];

		return (struct block){ x->score, x->shift, x->n };
	}
	if (p >= o->g->n || !o->plain[p / CHUNK_N])
		return (struct block){ 0 };
	t = &o->pattern[o->plain[p / CHUNK_N] - 1];
	return (struct block){ t->score, o->g->below ? (o->g->below[p] - t->centre) * t->picks : 0,
			       t->n };
}

/* No vertex offers anything yet.  0, -ENOMEM. */
int match_offers_init(struct offers *o, const struct ground *g);
void match_offers_done(struct offers *o);
/* Let all vertices of a chunk that is not written down offer this pattern; match_offers_tally()
 * must follow. */
void match_offers_plain(struct offers *o, uint32_t c, uint32_t pattern);
/* Write a chunk down, if it is not; NULL without memory. */
struct chunk *match_offers_write(struct offers *o, uint32_t c);
/* Make all sums and trees. */
void match_offers_tally(struct offers *o);
/* Report that vertex p, which is written down, has this many slots more (modulo 2^32, so also
 * fewer) ... */
void match_offers_grew(struct offers *o, uint32_t p, uint32_t more);
/* ... or another next slot. */
void match_offers_replay(struct offers *o, uint32_t p);

/* The vertex with the best next slot, SLU_NONE if no slot is left. */
static inline uint32_t offers_best(const struct offers *o)
{
	return o->tree[1];
}
/* Slots of all vertices before p. */
uint32_t match_offers_before(const struct offers *o, uint32_t p);
/* Slot number i of all; p is the number of vertices at the end. */
struct chosen match_offers_find(const struct offers *o, uint32_t i);

/* --- levels.c --- */

#define LEVELS_MAX 4096

/* How many slots have which score. */
struct levels {
	uint32_t *of; /* by score - base */
	int64_t base;
	uint32_t n, filled; /* entries; those above 0 */
	bool spread; /* not counted, because the scores are too far apart or memory ran out */
};

/* Add the slots of a block (this many times) or remove them (-1).  True if the set of scores with
 * entries changed. */
bool match_levels_count(struct levels *l, const struct block *b, int by);
void match_levels_done(struct levels *l);
