/* path_internal.h — names and paths for the graph's own code; the functions for other layers are in graph.h. */
#pragma once
#include "graph/graph.h"

/* Whether the name is just the basename followed by the id. */
bool slu_path_name_derived(const struct slu_graph *g, const struct slu_vertex_desc *d);
/* Take a path record out of the index; it still names the paths below it. */
void slu_path_unindex(struct slu_graph *g, uint32_t p);
