/* listed_internal.h — find in the graph the vertices that a listing names; for the matcher only. */
#pragma once
#include "match/match_internal.h"

/* Find the vertex with all paths and the rank that the file gives; everything else in the file
 * about the vertex must agree. 0, or -EINVAL with the reference's text in m->msg. */
int match_listed_find(struct slu_match *m, const struct slu_listing *l,
		      const struct slu_listing_vertex *x, uint32_t *out);
/* The vertex with this path and rank; SLU_NONE if there is none. */
uint32_t match_listed_at(const struct slu_match *m, const char *path, int64_t rank);
