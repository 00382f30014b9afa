/* read.h — readers: text in, vertices and edges in a graph out.  No file is opened here.
 *
 * Every reader returns 0, -EINVAL (the text is wrong), -EFBIG (a ceiling), or -ENOMEM, and appends
 * the reference's message to `msg` (it may be empty, it mostly ends in a newline).  The graph is
 * left as it was when reading fails. */
#pragma once
#include "graph/graph.h"
#include "graph/listing.h"

#define SLU_READ_MAX (1u << 22) /* vertices that one text may make */

/* GRUG: a recipe in GraphML. */
int slu_read_grug(struct slu_graph *g, const char *text, size_t n, struct slu_buf *msg);
/* The same with the caller's ceiling on the number of vertices, because a recipe of a few lines
 * can ask for any number. */
int slu_read_grug_max(struct slu_graph *g, const char *text, size_t n, uint32_t max,
		      struct slu_buf *msg);
/* JGF, for a new graph as for growing one ("attach"): vertices that are there already are
 * recognised by path and rank.  -EEXIST: two edges from one vertex lead to the same uniq_id; then
 * everything up to the second of them is in the graph, as the reference leaves it, and the caller
 * keeps that or rolls back. */
int slu_read_jgf(struct slu_graph *g, const char *text, size_t n, struct slu_buf *msg);
/* JGF for a new graph, read while it arrives in pieces of any size: the text is not kept, vertices are
 * made as they come, and edges wait as numbers until all vertices are known.  It is taken or refused
 * as slu_read() would, at the end. */
struct slu_jgf_loader;
struct slu_jgf_loader *slu_jgf_loader_new(void);
/* 0 or -ENOMEM, and then again at the end. */
int slu_jgf_loader_feed(struct slu_jgf_loader *l, const char *p, size_t n);
/* After the last piece, once. */
int slu_jgf_loader_end(struct slu_jgf_loader *l, struct slu_graph **out, struct slu_buf *msg);
void slu_jgf_loader_free(struct slu_jgf_loader *l);
SLU_DEFINE_CLEANUP(struct slu_jgf_loader, slu_jgf_loader_free)
/* R version 1. */
int slu_read_rv1(struct slu_graph *g, const char *text, size_t n, struct slu_buf *msg);
/* hwloc's XML.  `allow`: comma separated kinds to keep; NULL or "" keeps all. */
int slu_read_hwloc(struct slu_graph *g, const char *text, size_t n, const char *allow,
		   struct slu_buf *msg);

/* By the names of -f: grug, hwloc, jgf, jgf_shorthand, rv1exec, rv1exec_force. */
bool slu_read_knows(const char *format);
int slu_read(struct slu_graph *g, const char *format, const char *text, size_t n, const char *allow,
	     struct slu_buf *msg);

/* What a JGF or R text names, for `update` and `partial-cancel` (see listing.h).  Returns 0 even
 * for a broken text: the listing says where it breaks.  -ENOMEM otherwise.  `edges`: read them too
 * (partial-cancel does not look at them). */
int slu_jgf_listing(struct slu_listing *l, const char *text, size_t n, bool shorthand, bool edges);
int slu_rv1_listing(struct slu_listing *l, const char *text, size_t n);
/* Only `ranks`, ascending and each once: all that partial-cancel wants of an R. */
int slu_rv1_rank_listing(struct slu_listing *l, const char *text, size_t n);

/* "node017" -> basename "node" (its length), id 17.  No digits: id -1; digits only: the basename is
 * the whole name.  -EOVERFLOW if the number is beyond int64. */
int slu_split_hostname(const char *host, size_t *basename, int64_t *id);
