/* ranks_internal.h — sort a long sequence of blocks without writing it down.  For src/match/fast only.
 *
 * Every block is a vertex with the slots it offers, best first.  For every value a table knows how
 * many slots up to some block are at least as good, so that "the slot with number i" and "how many
 * of the first i are better than this" cost a few steps however long the sequence is.
 *
 * Values are small numbers, the best is 0. */
#pragma once
#include "match/fast/offers_internal.h"

struct ranks {
	const struct offers *of;
	uint32_t slots;  /* in all */
	int64_t base;    /* the lowest score */
	uint32_t width;  /* values */
	uint32_t *row;   /* Fenwick tree over chunks, `width` a row: slots with at most value v */
	uint32_t **part; /* by chunk that is written down: the same over its blocks */
	uint32_t *plain; /* by pattern, `width` a row: the same for one block */
	uint32_t *one;   /* the same for the block that changes */
	uint32_t *equal; /* by value: the last value that counts as equal to it */
};

/* --- ranks.c --- */

/* Make the table for blocks that are all in place.  0, -ENOMEM, -E2BIG. */
int match_ranks_make(struct ranks *r);
void match_ranks_done(struct ranks *r);
/* Chunk c was written down.  0, -ENOMEM. */
int match_ranks_write(struct ranks *r, uint32_t c);
/* Take the slots of block p, which is written down, out of the table (-1) or add them (1). */
void match_ranks_change(struct ranks *r, uint32_t p, int by);

/* Before slot number i of all: the j-th of block p.  At the end p is the number of blocks. */
struct place {
	uint32_t i, p, j;
};

/* How many of the slots before a place are better than a value, and how many are not worse. */
struct share {
	uint32_t better, fine;
};

/* What to count: values below `from` are better, those up to `to` not worse. */
struct bound {
	uint32_t from, to;
};

void match_ranks_seek(const struct ranks *r, uint32_t i, struct place *at);
/* A slot is fine if it is not worse than the value.  The place before the fine slot with exactly
 * k fine slots before it; the end if there is none. */
void match_ranks_select(const struct ranks *r, uint32_t to, uint32_t k, struct place *at);
void match_ranks_share(const struct ranks *r, const struct place *at, const struct bound *b,
		       uint32_t n, struct share *out);
/* The value of the slot behind (before) the place; the place moves over the slot. */
uint32_t match_ranks_next(const struct ranks *r, struct place *at);
uint32_t match_ranks_back(const struct ranks *r, struct place *at);
/* The same for the next slot with a value of at most `to`; there must be one. */
uint32_t match_ranks_next_fine(const struct ranks *r, struct place *at, uint32_t to);
uint32_t match_ranks_back_fine(const struct ranks *r, struct place *at, uint32_t to);

/* --- sort_ranks.c --- */

/* The numbers of the `need` slots that the sort of sort.c puts first.  0, -ENOMEM; -EAGAIN: this
 * would cost more than the sort itself. */
int match_sort_ranks(struct slu_arena *mem, const struct ranks *r, uint32_t need, uint32_t *out);
