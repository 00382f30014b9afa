/* rv1.h — walk over the resources an R (version 1) names, in the reference's order: per entry of
 * R_lite and rank ascending the node, then its children in file order, ids ascending. */
#pragma once
#include "base/idset.h"
#include "graph/graph.h"

struct slu_rv1_node {
	const char *host;
	size_t basename; /* length within host */
	int64_t id;
	uint32_t rank;
};

struct slu_rv1_visitor {
	int (*node)(void *arg, const struct slu_rv1_node *x);
	int (*child)(void *arg, const char *type, uint32_t id, uint32_t rank);
	/* A property of the node visited last; NULL = not interested. */
	int (*property)(void *arg, const char *key);
	void *arg;
};

/* 0; -EINVAL with the reference's message appended, if it has one; -EFBIG (a ceiling) with a
 * message of our own; what a visitor returned; -ENOMEM. What was visited before an error stays
 * visited. */
int slu_rv1_walk(const char *text, size_t n, const struct slu_rv1_visitor *v, struct slu_buf *msg);
/* Read the ranks alone; errors in other parts of R are not noticed. 0, -EINVAL, -EFBIG, -ENOMEM. */
int slu_rv1_ranks(const char *text, size_t n, struct slu_idset *out);
