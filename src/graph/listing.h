/* listing.h — the vertices and edges that a file names, before they are looked up in a graph: the input
 * of `update` and `partial-cancel`.  Readers of JGF and R fill it (slu_jgf_listing(), slu_rv1_listing() in
 * read.h); strings live in its arena. */
#pragma once
#include "base/arena.h"
#include "base/idset.h"

struct slu_listing_path {
	const char *subsystem, *path;
};

struct slu_listing_prop {
	const char *key, *val;
};

struct slu_listing_vertex {
	const char *ref; /* the file's own id ("12"); R: NULL */
	const char *type, *basename, *name;
	int64_t id, uniq_id;
	int64_t rank;
	int64_t size;
	bool exclusive;
	uint32_t path, npaths; /* in `paths` */
	uint32_t prop, nprops; /* in `props`, sorted by key */
};

struct slu_listing_edge {
	uint32_t src, dst; /* positions in `v` */
};

enum slu_listing_kind {
	SLU_LISTING_JGF,
	SLU_LISTING_JGF_SHORTHAND, /* an exclusive vertex stands for its containment subtree */
	SLU_LISTING_RV1,
};

/* Zero-initialise, end with slu_listing_done.
 *
 * R is listed as the graph it describes: cluster0, per rank (in the order of section "R version 1")
 * the node and right after it its children; edges accordingly; `exclusive` is unused.
 *
 * A file that is broken at entry k does not fail at once: the k entries before it are listed and
 * `error` holds the rest of the story (the reference works entry by entry, so an earlier entry that
 * does not exist in the graph is reported first).  `broken` says after which part it stops. */
struct slu_listing {
	struct slu_arena text;
	enum slu_listing_kind kind;
	SLU_VEC(struct slu_listing_vertex) v;
	SLU_VEC(struct slu_listing_edge) e;
	SLU_VEC(struct slu_listing_path) paths;
	SLU_VEC(struct slu_listing_prop) props;
	SLU_VEC(int64_t) ranks;      /* R: ranks of R_lite in order; a rank may occur twice */
	struct slu_idset free_ranks; /* JGF */
	bool has_free;               /* JGF: the key is there, even if the set is empty */
	bool has_edges; /* JGF: the file lists edges, whether or not they were taken over */
	bool broken; /* where the file is broken: report `error` after working through what is listed */
	const char *error; /* message, or "" */
};

/* Whether the file lists this rank as free. */
bool slu_listing_frees(const struct slu_listing *l, int64_t rank);
void slu_listing_done(struct slu_listing *l);
