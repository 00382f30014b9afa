/* walk_internal.h — shared by the files that make one attempt (see walk.c); no other file
 * includes it. */
#pragma once
#include "match/match_internal.h"

/* --- cand.c --- */
/* Append all candidates of one pool to those of another. */
void match_pool_append(struct attempt *a, struct pool *to, const struct pool *from);
/* The order in which most choices are made: the greatest score first? */
bool match_usual_order(const struct attempt *a);
/* Mark the edges of the chosen candidates; false if none was chosen. */
bool match_mark_chosen(struct attempt *a, struct pool *own);
/* Choose for the whole request among the candidates that reached the root. 0, -ENODEV, -ENOMEM. */
int match_decide(struct attempt *a, uint32_t root, struct pool *own, int64_t root_avail);

/* --- fit.c --- */
enum fit { FIT_NONE, FIT_SLOT, FIT_RESOURCE, FIT_SKIP };

/* What a vertex is to a request. */
struct part {
	enum fit fit;
	const struct slu_request *list; /* for the level below */
	uint32_t n;
	const struct slu_request *slot; /* FIT_SLOT: the slot; flexible: the whole list above */
	uint32_t nslot;
};

struct part match_part_of(struct attempt *a, uint32_t u, const struct slu_request *list, uint32_t n,
			  bool pristine);
/* Note why a vertex was refused; returns -error. */
int match_refuse(struct attempt *a, int error);
/* Whether vertex u of subsystem number s can serve the list at the attempt's time: 0 and the units
 * it has, or a negative errno. */
int match_prune(struct attempt *a, uint32_t u, uint32_t s, const struct slu_request *list,
		uint32_t n, bool x, int64_t *avail);

/* --- leaf.c --- */
/* A leaf of the request, asked of all children of one vertex; see leaf.c. */
struct leaves {
	const struct slu_request *r;
	bool excl, down, later; /* taken exclusively; may be down; ended bookings count too */
	int64_t centre;
	struct cand *next; /* so many are left */
	uint32_t left;
};

/* Whether the request is such a leaf. */
bool match_leaves_begin(struct attempt *a, const struct slu_request *r, bool x, uint32_t depth,
			struct leaves *l);
/* Ask the vertex at the end of an edge.  0 if it serves, -EBUSY, -ENOMEM; -EAGAIN: visit it. */
int match_leaves_visit(struct attempt *a, struct leaves *l, uint32_t e, struct pool *into);
/* Make the slots of vertex u if they need everything below it; true: they did. */
bool match_family_slot(struct attempt *a, uint32_t u, const struct slu_request *slot,
		       uint32_t depth, struct pool *into);

/* --- walk.c --- */
/* The plain walk from the root, in the generation that was just started.  0, or a negative errno. */
int match_walk_root(struct attempt *a);
