/* batch.h — in which order to try jobs that came at about the same time; for src/queue only.
 *
 * Jobs of one batch have equal rights, so their order may serve the machine: a large or long one
 * left to the end leaves most of it idle.  Which order is best depends on the set, and no simple
 * rule wins always.  So each of a few rules (as submitted; most work, widest, longest first) is
 * played to the end against the limits of the jobs, with the first that does not fit reserved and
 * the others filling in, and the order that ends first is taken; of equals the one that does its
 * work earlier, which leaves more to fill in where a limit was wrong.  This is a model with one
 * number per job, its share of the machine; it orders, the matcher decides.
 *
 * Pure, without memory of its own, the same answer for the same question. */
#pragma once
#include "base/base.h"

#define BATCH_MAX  128u  /* jobs in a batch */
#define BATCH_BUSY 2048u /* running jobs the model takes in; with more it is not asked */

struct batch_item {
	uint32_t job;
	int64_t share; /* of the machine, in the units of `total` */
	int64_t limit_s;
};

/* What runs: so much comes free then. */
struct batch_busy {
	int64_t end_s, share;
};

struct batch {
	struct batch_item item[BATCH_MAX]; /* as submitted */
	uint32_t n;
	uint32_t head; /* the one that has a promise already; BATCH_MAX: none */
	int64_t now_s, free;
	struct batch_busy busy[BATCH_BUSY + BATCH_MAX]; /* in any order */
	uint32_t n_busy;
	/* the answer: places in item[], the first to be tried first; head is not among them */
	uint8_t order[BATCH_MAX];
	uint32_t n_order;
	/* scratch */
	struct batch_busy play[BATCH_BUSY + BATCH_MAX];
	uint8_t line[BATCH_MAX];
};

void batch_choose(struct batch *b);
