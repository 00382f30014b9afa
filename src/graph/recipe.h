/* recipe.h — a generator recipe (GRUG) as read from GraphML, before vertices are generated. */
#pragma once
#include "graph/graph.h"

enum slu_gen_method {
	SLU_GEN_MULTIPLY,
	SLU_GEN_ASSOCIATE_IN,
	SLU_GEN_ASSOCIATE_BY_PATH_IN,
	SLU_GEN_UNKNOWN,
};

struct slu_recipe_vertex {
	const char *type, *basename, *unit, *subsystem;
	int64_t size;
	bool root;
	uint32_t first_edge, last_edge; /* in file order; SLU_NONE = none */
};

struct slu_recipe_edge {
	uint32_t src, dst, next;
	const char *subsystem, *tgt_subsystem;
	enum slu_gen_method method;
	int32_t scale, scope, start, stride, tgt_uplevel, src_uplevel;
};

/* Zero-initialise; strings are in the arena. */
struct slu_recipe {
	struct slu_arena text;
	SLU_VEC(struct slu_recipe_vertex) v;
	SLU_VEC(struct slu_recipe_edge) e;
};

/* 0; -EINVAL if the text is not a well-formed recipe; -EFBIG; -ENOMEM. */
int slu_recipe_parse(struct slu_recipe *r, const char *text, size_t n);
void slu_recipe_done(struct slu_recipe *r);
