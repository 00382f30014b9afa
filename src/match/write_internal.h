/* write_internal.h — the two halves an R is made of, each collecting on its own. */
#pragma once
#include "base/vec.h"
#include "match/writer.h"

/* --- the graph half: JGF --- */

/* Vertices and edges are turned into text as they come. */
struct slu_jgf_part {
	bool shorthand;  /* leave out what lies below an exclusive vertex */
	bool incomplete; /* a vertex was left out at some time; never cleared */
	struct slu_buf nodes, edges, scratch;
};

void slu_jgf_part_init(struct slu_jgf_part *j, bool shorthand);
void slu_jgf_part_done(struct slu_jgf_part *j);
bool slu_jgf_part_empty(const struct slu_jgf_part *j);
int slu_jgf_part_vertex(struct slu_jgf_part *j, const struct slu_graph *g,
			const struct slu_emit_vertex *x);
int slu_jgf_part_edge(struct slu_jgf_part *j, const struct slu_graph *g,
		      const struct slu_emit_edge *x);
/* Append the document (no newline) and forget it.  -ENOENT if only vertices or only edges came. */
int slu_jgf_part_emit(struct slu_jgf_part *j, struct slu_buf *out);
void slu_jgf_part_reset(struct slu_jgf_part *j);

/* --- the execution half: R_lite, nodelist, properties --- */

struct rlite_entry {
	uint32_t text, len; /* children, in `text` */
	uint32_t hash;
	uint32_t order; /* among the entries, by bytes; set while emitting */
};

struct rlite_node {
	uint32_t entry;
	int32_t rank;
	uint32_t name; /* in `text`, NUL-terminated */
};

struct rlite_prop {
	uint32_t text; /* "key" or "key=value" in `text` */
	int32_t rank;
};

struct slu_rlite_part {
	SLU_VEC(int64_t) core;
	SLU_VEC(int64_t) gpu;
	SLU_VEC(struct rlite_entry) entries;
	SLU_VEC(struct rlite_node) nodes;
	SLU_VEC(struct rlite_prop) props;
	struct slu_buf text, scratch;
	struct slu_map by_hash; /* entries, once there are many */
	/* The cores of the last node if it had nothing else, and its entry: most often the next
	 * node has the same. */
	SLU_VEC(int64_t) last;
	uint32_t last_entry;
};

void slu_rlite_part_init(struct slu_rlite_part *r);
void slu_rlite_part_done(struct slu_rlite_part *r);
bool slu_rlite_part_empty(const struct slu_rlite_part *r);
int slu_rlite_part_vertex(struct slu_rlite_part *r, const struct slu_graph *g,
			  const struct slu_emit_vertex *x);
int slu_rlite_part_leaves(struct slu_rlite_part *r, const struct slu_graph *g,
			  const struct slu_emit_leaves *x);
/* Append the list alone.  -EINVAL if it is empty or a rank is below 0. */
int slu_rlite_part_emit(struct slu_rlite_part *r, struct slu_buf *out);
/* The same with `, "nodelist": [..]` and `, "properties": {..}` after it, inside "execution". */
int slu_rlite_part_emit_execution(struct slu_rlite_part *r, struct slu_buf *out);
void slu_rlite_part_reset(struct slu_rlite_part *r);
