/* writer.h — how a match or a find hands its result to the code that prints it.  The matcher calls the
 * functions below while it walks; one table of functions per format (write_*.c) collects them, and
 * the program asks the writer for its text afterwards.
 *
 * Order of calls: children before parents (post-order); the edge u->v right after everything at and
 * below v, the vertex u after all its edges.  A function returns 0 or a negative errno, which ends
 * the walk and becomes the operation's result. */
#pragma once
#include "graph/graph.h"

/* "used" and "total" units of one type below a vertex (find with agfilter=true). */
struct slu_agfilter {
	uint16_t type;
	int64_t used, total;
};

struct slu_emit_vertex {
	uint32_t v;
	uint32_t level; /* root 1; keeps growing after certain errors, as in the reference */
	int64_t needs;
	bool exclusive;        /* itself */
	bool parent_exclusive; /* the vertex above it in this result */
	const char *label;     /* NULL = none */
	const struct slu_agfilter *ag;
	uint32_t nag; /* sorted by type name; ag == NULL: not asked for */
};

struct slu_emit_edge {
	uint32_t src, dst;
	uint8_t subsystem;
	bool src_exclusive;
	int64_t needs;
	bool exclusive;
};

/* Leaves of one type below one vertex, numbered one after the other and taken whole. */
struct slu_emit_leaves {
	uint32_t first, n;
	bool rising; /* their ids are, by one each */
};

struct slu_writer_ops {
	int (*vertex)(void *w, const struct slu_graph *g, const struct slu_emit_vertex *x);
	int (*edge)(void *w, const struct slu_graph *g, const struct slu_emit_edge *x);
	/* Called instead of `vertex` and `edge` for each leaf.  NULL: the leaves come one by one. */
	int (*leaves)(void *w, const struct slu_graph *g, const struct slu_emit_leaves *x);
	/* After the last vertex of a match or update; not for find. */
	int (*times)(void *w, int64_t at_s, int64_t end_s);
	/* Only if the job names a queue. */
	int (*queue)(void *w, const char *queue);
};

/* ops == NULL, or NULL functions: not interested. */
struct slu_sink {
	const struct slu_writer_ops *ops;
	void *w;
};
