/* order.h — jobs of one bucket in queue order: a treap over the job table, linked by index so that
 * a table can be copied as it stands.  Each node knows the size of its subtree, its shortest job and
 * its job whose promise is due first, so position, "first in order with a limit below L",
 * "shortest" and "soonest due" cost O(log n). */
#pragma once
#include "base/base.h"

#define SLU_NIL UINT32_MAX

struct job;

struct order_node {
	uint32_t left, right;
	uint32_t heap;     /* a hash of the slot: balances, and is the same in every run */
	uint32_t size;     /* of the subtree */
	uint32_t shortest; /* job of the subtree with the least (limit, order) */
	uint32_t soonest;  /* job of the subtree that is first in line for a promise */
};

/* Queue order: priority, first seen, name, id. */
bool queue_order_before(const struct job *a, const struct job *b);
/* Limit, then queue order. */
bool queue_order_shorter(const struct job *a, const struct job *b);
/* Priority, when the promise is due, then queue order. */
bool queue_order_sooner(const struct job *a, const struct job *b);

/* All take the job table and return or change the root (an index or SLU_NIL). */
void queue_order_insert(struct job *t, uint32_t *root, uint32_t j);
void queue_order_remove(struct job *t, uint32_t *root, uint32_t j);
uint32_t queue_order_first(const struct job *t, uint32_t root);
uint32_t queue_order_last(const struct job *t, uint32_t root);
/* First in line for a promise, or SLU_NIL. */
uint32_t queue_order_soonest(const struct job *t, uint32_t root);
/* First in order with limit < below, or SLU_NIL. */
uint32_t queue_order_first_below(const struct job *t, uint32_t root, int64_t below);
/* Shortest job not after `last` in order (SLU_NIL: no bound), or SLU_NIL. */
uint32_t queue_order_shortest(const struct job *t, uint32_t root, const struct job *last);
/* The next in order after j in this tree, or SLU_NIL. */
uint32_t queue_order_next(const struct job *t, uint32_t root, const struct job *j);
/* How many come before j (which need not be in this tree). */
uint32_t queue_order_rank(const struct job *t, uint32_t root, const struct job *j);
/* All of the tree in order into `out`; how many. */
uint32_t queue_order_list(const struct job *t, uint32_t root, uint32_t *out);
