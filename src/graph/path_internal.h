/* path_internal.h — what the graph's own code needs of names and paths; the rest is in graph.h. */
#pragma once
#include "graph/graph.h"

/* Whether the name is what basename and id make by themselves. */
bool slu_path_name_derived(const struct slu_graph *g, const struct slu_vertex_desc *d);
/* Take a path record out of the index; it still names the paths below it. */
void slu_path_unindex(struct slu_graph *g, uint32_t p);
