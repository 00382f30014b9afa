/* jgf.h — one JGF document taken apart, with the checks and messages that loading and updating
 * share. */
#pragma once
#include "base/idset.h"
#include "graph/graph.h"
#include "wire/jsonparts.h"

struct slu_jgf {
	struct slu_json_parts parts;
	const struct slu_json *nodes, *edges; /* for slu_json_parts_each() */
	bool has_free;                        /* "free_ranks" is there */
	struct slu_idset free_ranks;
};

/* One entry of "nodes", defaults filled in.  Strings are borrowed from the entry. */
struct slu_jgf_node {
	const char *ref; /* the file's id */
	const char *type, *basename;
	const char *name; /* NULL: basename + id */
	int64_t id, uniq_id, rank, size;
	enum slu_status status;
	bool exclusive;
	const struct slu_json *paths, *properties; /* NULL or an object (paths: anything) */
};

struct slu_jgf_edge {
	const char *src, *dst;
	const struct slu_json *el;
};

/* Each: 0, -EINVAL with the message appended, -ENOMEM.  The text must stay until closing. */
int slu_jgf_open(struct slu_jgf *j, const char *text, size_t n, struct slu_buf *msg);
void slu_jgf_close(struct slu_jgf *j);
/* The two halves of opening: say why the text is no JSON; find the lists in the root of the text, or
 * in that of its outline. */
int slu_jgf_not_json(const struct slu_json_place *place, struct slu_buf *msg);
int slu_jgf_outline(struct slu_jgf *j, const struct slu_json *root, struct slu_buf *msg);
int slu_jgf_node(const struct slu_json *el, struct slu_jgf_node *out, struct slu_buf *msg);
/* Source and target only; the subsystem comes after the ends were found. */
int slu_jgf_edge(const struct slu_json *el, struct slu_jgf_edge *out, struct slu_buf *msg);
int slu_jgf_edge_subsystem(const struct slu_json *el, const char **out, struct slu_buf *msg);
