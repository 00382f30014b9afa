/* batch_internal.h — the order in which to try jobs of equal standing; for src/queue only.
 *
 * Which order is best depends on the set, and no simple rule wins always.  So each of a few rules is
 * played to the end against the limits of the jobs, and the order with the best outcome is taken.
 *
 * BATCH_DONE serves the machine: the orders "as submitted", "most work", "widest" and "longest first"
 * are played, each with a reservation for the first job that does not fit.  The order that ends first
 * wins; among equals the one that does its work earlier, which leaves more room where a limit was wrong.
 *
 * BATCH_BALANCED serves machine and users: these orders and "least work", "shortest" and "narrowest
 * first" are played, each twice: with reservations only for promised jobs and jobs that become due on the
 * way; and, as long as no job has a promise, with a *hold*, a reservation for the first job that does not
 * fit, as above.  Without holds a wide job gets its room only when the line is empty, and then the machine
 * is half idle beside it.  The least sum of "until all is done" and "mean wait" wins.  Then every job that
 * would find room now is tried in front of that order: only the next start is decided, the rest is decided
 * when its time comes.  At last, single jobs are moved to other places, as long as that helps.
 *
 * The model has one number per job, its share of the machine.  The model orders; the matcher decides.
 *
 * Pure, without memory of its own, the same answer for the same question. */
#pragma once
#include "base/base.h"

#define BATCH_MAX   128u  /* jobs in a batch */
#define BATCH_LONG  32u   /* jobs taken from the front of a longer line */
#define BATCH_BUSY  2048u /* running jobs the model takes in; with more it is not asked */
#define BATCH_TRIES 32u   /* jobs tried in front of the best order */
#define BATCH_MOVES 64u   /* then: one job moved to another place */

enum batch_goal { BATCH_DONE, BATCH_BALANCED };

struct batch_item {
	uint32_t job;
	int64_t share; /* of the machine, in the units of `free` */
	int64_t limit_s, priority;
	int64_t due_s; /* BATCH_BALANCED: reserved for from then on */
};

/* Running work: `share` becomes free at `end_s`. */
struct batch_busy {
	int64_t end_s, share;
};

struct batch {
	enum batch_goal goal;
	/* First the jobs that have a promise, by planned start; then the others as submitted. */
	struct batch_item item[BATCH_MAX];
	uint32_t n, promised;
	int64_t now_s, free;
	struct batch_busy busy[BATCH_BUSY + BATCH_MAX]; /* in any order */
	uint32_t n_busy;
	/* the answer: places in item[], the first to be tried first; no promised ones */
	uint8_t order[BATCH_MAX];
	uint32_t n_order;
	bool hold; /* the first of them that does not fit is to be promised a start */
	/* scratch */
	struct batch_busy play[BATCH_BUSY + BATCH_MAX];
	uint8_t line[BATCH_MAX];
};

void queue_batch_choose(struct batch *b);
