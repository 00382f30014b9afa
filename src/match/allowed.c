#include "match/allowed.h"

struct vertex {
	const struct slu_graph *g;
	uint32_t v;
};

static bool vertex_has(const void *arg, const char *property)
{
	const struct vertex *x = arg;

	return slu_graph_property(x->g, x->v, property);
}

static const char *vertex_name(const void *arg, struct slu_buf *scratch)
{
	const struct vertex *x = arg;

	return slu_graph_name(x->g, x->v, scratch);
}

bool slu_constraint_match(const struct slu_constraint *c, const struct slu_graph *g, uint32_t v)
{
	struct vertex x = { g, v };

	return slu_constraint_holds(c, &(struct slu_constraint_subject){
					       .rank = slu_graph_vertex(g, v)->rank,
					       .has = vertex_has,
					       .name = vertex_name,
					       .arg = &x,
				       });
}
