/* constraint.h — which nodes a job may use (RFC 31: properties, hostlist, ranks, and, or, not). */
#pragma once
#include "base/arena.h"
#include "graph/graph.h"

struct slu_constraint;
struct slu_json;

/* Build from a parsed mapping; everything goes into `mem`.  *out is NULL for the empty mapping.
 * 0; -EINVAL with the reference's text in err; -ENOMEM. */
int slu_constraint_parse(const struct slu_json *v, struct slu_arena *mem,
			 struct slu_constraint **out, struct slu_error *err);

/* Does vertex v satisfy it?  NULL: yes.  (The caller asks only at nodes and storage nodes.) */
bool slu_constraint_match(const struct slu_constraint *c, const struct slu_graph *g, uint32_t v);
