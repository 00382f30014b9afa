/* allowed.h — a job's constraint (jobspec/constraint.h) asked of a vertex of a graph. */
#pragma once
#include "graph/graph.h"
#include "jobspec/constraint.h"

/* Whether vertex v satisfies the constraint; every vertex satisfies NULL. The caller asks only
 * at nodes and storage nodes. */
bool slu_constraint_match(const struct slu_constraint *c, const struct slu_graph *g, uint32_t v);
