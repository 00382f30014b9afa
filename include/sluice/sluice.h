/* sluice/sluice.h — libsluice: match jobs against resources, over time.
 *
 * Two engines behind one header:
 *
 *   struct sluice_graph    a graph of resources (GRUG, JGF, R, hwloc) and Flux jobspecs; answers as
 *                          Fluxion does: same matches, same ties, same texts.
 *   struct sluice_machine  nodes with sized pools (millicores, bytes, devices) and gangs of pods on
 *                          them, placed whole or not at all; small and fast at 10 000 nodes.
 *
 * Errors.  Functions that can fail return int: 0 or a small positive answer, or a negative errno
 * value.  Where a person may want to know more, the last parameter takes a struct sluice_error for
 * one sentence; NULL is fine.  "Does not fit" is an answer, not an error.  -ENOMEM leaves
 * everything as it was.  Out-parameters are written on success only.
 *
 * Ownership.  sluice_*_new() and sluice_*_clone() make objects that the matching sluice_*_free()
 * ends; NULL is fine there.  Arguments are borrowed for the call.  Texts handed out (char **)
 * belong to the caller, who frees them with sluice_free(); const char * results are borrowed as
 * long as the comment says.
 *
 * Threads.  No globals, no locks, no output, no clock: the time is an argument.  Different objects
 * may be used from different threads at once; one object from one thread at a time.  A clone shares
 * nothing with its original.  The same calls in the same order give the same answers.
 *
 * Times are seconds, intervals half-open, SLUICE_FOREVER is an end that never comes. */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0

/* "0.1.0": of the library at run time. */
const char *sluice_version(void);

#define SLUICE_FOREVER INT64_MAX

/* Zero-initialise; holds a sentence after a failure. */
struct sluice_error {
	char text[512];
};

/* Free a text the library handed out.  NULL is fine. */
void sluice_free(void *p);

/* What came of a match, of jobspecs and gangs alike. */
enum sluice_answer {
	SLUICE_NOW = 0,   /* fits now */
	SLUICE_LATER = 1, /* fits later, at the start given, the earliest possible */
	SLUICE_BUSY = 2,  /* not now */
	SLUICE_NEVER = 3, /* not even on the empty machine */
};

/* ==== graphs and jobspecs ==================================================================== */

struct sluice_graph;

/* Load a graph from text and make it ready to match.
 *
 * options: a JSON object, or NULL for the defaults.  Keys, all optional:
 *	load_format       "jgf" (default), "jgf_shorthand", "grug", "hwloc", "rv1exec"
 *	load_allowlist    types to keep, comma separated (hwloc); default all
 *	matcher_name      subsystems to match, default "CA"
 *	matcher_policy    "first" (default), "high", "low", "lonode", "hinode", "firstnodex",
 *	                  "lonodex", "hinodex", "locality", "variation", or "policy=low ..."
 *	traverser_policy  "simple" (default), "flexible"
 *	match_format      of the texts handed out: "jgf" (default), "rv1", "rv1_nosched", "rlite",
 *	                  "simple", "pretty_simple", "jgf_shorthand", "rv1_shorthand"
 *	prune_filters     default "ALL:core,ALL:node"
 *	reserve_vtx_vec   vertices to make room for
 *
 * 0; -EINVAL (bad options or graph, with the reason), -EFBIG, -ENOMEM. */
int sluice_graph_new(const char *text, size_t n, const char *options, struct sluice_graph **out,
		     struct sluice_error *err);
void sluice_graph_free(struct sluice_graph *g);

/* The same for a JGF that arrives in pieces of any size: it is read as it comes, and its text, which
 * may be larger than the graph, is never held whole.  The graph is taken or refused, in the same
 * words, as sluice_graph_new() would; without memory all of these return -ENOMEM. */
struct sluice_loader;
int sluice_loader_new(struct sluice_loader **out);
int sluice_loader_feed(struct sluice_loader *l, const char *text, size_t n);
/* After the last piece, once; options as above, load_format "jgf" only. */
int sluice_loader_graph(struct sluice_loader *l, const char *options, struct sluice_graph **out,
			struct sluice_error *err);
void sluice_loader_free(struct sluice_loader *l);

/* A deep copy with all bookings and jobs.  NULL: out of memory. */
struct sluice_graph *sluice_graph_clone(const struct sluice_graph *g);

enum sluice_op {
	SLUICE_ALLOCATE = 1,         /* now or BUSY */
	SLUICE_ALLOCATE_SATISFIABLE, /* now; otherwise BUSY or NEVER */
	SLUICE_ALLOCATE_OR_RESERVE,  /* now, or LATER, or BUSY, NEVER */
	SLUICE_SATISFIABLE,          /* NOW (it could run) or NEVER; books nothing */
	SLUICE_MATCH,                /* as ALLOCATE, books nothing */
	SLUICE_MATCH_LATER,          /* as ALLOCATE_OR_RESERVE, books nothing */
};

#define SLUICE_NO_JOB UINT64_MAX

/* Result of a match.  Zero-initialise, end with sluice_match_done(); may be used again. */
struct sluice_match {
	uint64_t job; /* its number; SLUICE_NO_JOB if nothing was booked */
	int64_t start_s, end_s;
	char *text; /* the resources in the graph's match_format; NULL for SATISFIABLE */
};
void sluice_match_done(struct sluice_match *r);

/* Match a jobspec (YAML or JSON).  The job gets the graph's next number: they count from 1 and
 * advance with every finished ALLOCATE*, matched or not.
 * Returns enum sluice_answer; -EINVAL (bad jobspec), other negative values as the matcher has them.
 * `out` may be NULL. */
int sluice_graph_match(struct sluice_graph *g, enum sluice_op op, int64_t now_s,
		       const char *jobspec, size_t n, struct sluice_match *out,
		       struct sluice_error *err);
/* The same under a number of the caller's.  -EEXIST: it is in use.  Numbers are below 2^63. */
int sluice_graph_match_as(struct sluice_graph *g, enum sluice_op op, int64_t now_s, uint64_t job,
			  const char *jobspec, size_t n, struct sluice_match *out,
			  struct sluice_error *err);
/* ALLOCATE, or ALLOCATE_OR_RESERVE if `reserve`. */
int sluice_graph_allocate(struct sluice_graph *g, bool reserve, int64_t now_s, const char *jobspec,
			  size_t n, struct sluice_match *out, struct sluice_error *err);
/* Could it ever run?  1 or 0, or an error. */
int sluice_graph_satisfiable(struct sluice_graph *g, const char *jobspec, size_t n,
			     struct sluice_error *err);

/* Register work that runs already, as an R (version 1, or a graph in the load format) says.  Times
 * come from its execution section; without an end it runs as long as the graph lives.
 * 0; -EEXIST: the number is in use; -EINVAL; -ENOMEM. */
int sluice_graph_update(struct sluice_graph *g, uint64_t job, const char *r, size_t n,
			struct sluice_match *out, struct sluice_error *err);

/* Give back what a job holds or has reserved.  -ENOENT: it has nothing. */
int sluice_graph_cancel(struct sluice_graph *g, uint64_t job);
/* Forget a cancelled job, so that a graph that lives for years does not remember every job it ever
 * had; its number is unknown from then on.  -ENOENT: there is no such job, or it still has
 * something. */
int sluice_graph_forget(struct sluice_graph *g, uint64_t job);
/* Give back the part of a running job that an R names.  1: nothing is left, 0: some is; -ENOENT,
 * -EINVAL, -ENOMEM. */
int sluice_graph_partial_cancel(struct sluice_graph *g, uint64_t job, const char *r, size_t n,
				struct sluice_error *err);

enum sluice_job_state { SLUICE_ALLOCATED, SLUICE_RESERVED, SLUICE_CANCELED };
/* "ALLOCATED", "RESERVED", "CANCELED". */
const char *sluice_job_state_name(enum sluice_job_state s);

struct sluice_job {
	uint64_t job;
	enum sluice_job_state state;
	int64_t start_s, end_s;
};
/* -ENOENT: there was never such a job. */
int sluice_graph_info(const struct sluice_graph *g, uint64_t job, struct sluice_job *out);

/* Resources that meet criteria ("status=down and sched-now=free"), in `format` (NULL: the graph's).
 * *text is NULL if there are none.  now_s: the time "now" in the criteria stands for. */
int sluice_graph_find(struct sluice_graph *g, const char *criteria, const char *format,
		      int64_t now_s, char **text, struct sluice_error *err);

/* Add the vertices of a JGF text to the live graph.  -EINVAL leaves it unchanged. */
int sluice_graph_add_subgraph(struct sluice_graph *g, const char *jgf, size_t n,
			      struct sluice_error *err);
/* Cut out the vertex with this path and all below it. */
int sluice_graph_remove_subgraph(struct sluice_graph *g, const char *path,
				 struct sluice_error *err);

enum sluice_status { SLUICE_UP = 0, SLUICE_DOWN = 1 };
/* By path.  -EINVAL: there is no such vertex. */
int sluice_graph_set_status(struct sluice_graph *g, const char *path, enum sluice_status s);
int sluice_graph_status(const struct sluice_graph *g, const char *path, enum sluice_status *out);
/* By ranks ("0-3,7" or "all"): the topmost vertex of each; ranks that do not exist are skipped.
 * -EINVAL: not a set of ranks. */
int sluice_graph_set_rank_status(struct sluice_graph *g, const char *ranks, enum sluice_status s);
/* Of the node at a rank.  -EINVAL: there is none. */
int sluice_graph_rank_status(struct sluice_graph *g, uint32_t rank, enum sluice_status *out);

/* -EINVAL: no such vertex, or an empty key. */
int sluice_graph_set_property(struct sluice_graph *g, const char *path, const char *key,
			      const char *value);
/* Borrowed until the graph changes; NULL if there is no such vertex or key. */
const char *sluice_graph_property(const struct sluice_graph *g, const char *path, const char *key);

struct sluice_graph_stats {
	uint64_t vertices, edges;
	uint64_t allocated, reserved; /* jobs */
	size_t booking_bytes;         /* memory held for bookings */
};
void sluice_graph_stats(const struct sluice_graph *g, struct sluice_graph_stats *out);

/* Everything the matcher had to say since the last clear, as the reference words it; borrowed until
 * the next call.  Never NULL. */
const char *sluice_graph_messages(const struct sluice_graph *g);
void sluice_graph_clear_messages(struct sluice_graph *g);

/* ==== machines ================================================================================ */

/* Nodes with an amount of each resource, in domains of topology levels ("rack", "zone"). */
struct sluice_machine;

struct sluice_machine *sluice_machine_new(void);
void sluice_machine_free(struct sluice_machine *m);
/* A deep copy with all nodes and bookings; handles mean the same in both. */
struct sluice_machine *sluice_machine_clone(const struct sluice_machine *m);

/* Number of a resource ("cpu") or a level ("rack"), new if need be.  Resources count from 1, at most 31;
 * levels from 0, at most 8.  -ENOSPC, -ENOMEM. */
int sluice_machine_resource(struct sluice_machine *m, const char *name);
int sluice_machine_level(struct sluice_machine *m, const char *name);

/* A node: index in the low half, generation in the high half, so that a removed one is noticed. */
typedef uint64_t sluice_node;
#define SLUICE_NO_NODE UINT64_MAX

struct sluice_amount {
	uint32_t resource;
	int64_t n; /* 0 .. 2^50 */
};

struct sluice_node_spec {
	const char *name; /* unique */
	int64_t rank;     /* the order the policies go by */
	const struct sluice_amount *total;
	uint32_t n_total;
	const char *const *domain; /* by level; NULL entries: in none */
	uint32_t n_domain;
};

/* -EEXIST, -EINVAL, -ERANGE, -ENOSPC, -ENOMEM. */
int sluice_machine_add(struct sluice_machine *m, const struct sluice_node_spec *spec,
		       sluice_node *out, struct sluice_error *err);
/* What is booked there goes with it.  All of these: -ENOENT if the node is gone. */
int sluice_machine_remove(struct sluice_machine *m, sluice_node node);
/* New totals; bookings stay, even if the node is overbooked then. */
int sluice_machine_resize(struct sluice_machine *m, sluice_node node,
			  const struct sluice_amount *total, uint32_t n_total,
			  struct sluice_error *err);
/* Nothing new on a node that is down; what is there stays. */
int sluice_machine_set_down(struct sluice_machine *m, sluice_node node, bool down);
int sluice_machine_set_domain(struct sluice_machine *m, sluice_node node, uint32_t level,
			      const char *domain);

/* SLUICE_NO_NODE if there is none. */
sluice_node sluice_machine_find(const struct sluice_machine *m, const char *name);
/* The walk over the nodes: i from 0 while below the number of slots; SLUICE_NO_NODE where empty. */
uint32_t sluice_machine_slots(const struct sluice_machine *m);
sluice_node sluice_machine_at(const struct sluice_machine *m, uint32_t i);
/* Borrowed until the node goes; NULL if it is gone. */
const char *sluice_machine_name(const struct sluice_machine *m, sluice_node node);
/* 0 if the node is gone. */
int64_t sluice_machine_total(const struct sluice_machine *m, sluice_node node, uint32_t resource);
/* Free during [from_s, to_s), from_s not before the newest time seen; negative if overbooked. */
int64_t sluice_machine_free_amount(const struct sluice_machine *m, sluice_node node,
				   uint32_t resource, int64_t from_s, int64_t to_s);

struct sluice_machine_stats {
	uint32_t nodes, up, overbooked;
	uint32_t running, reserved, blocks;
	size_t bytes; /* memory held */
};
void sluice_machine_stats(const struct sluice_machine *m, struct sluice_machine_stats *out);

/* Sets of nodes: which a role may use.  Counted: _unref() ends one ownership, NULL is fine.  A
 * machine may keep a set beyond the call, and notices if the set changes between two calls.  Threads
 * may share a set that no thread changes.  A set knows nodes by their index, and a new node may get
 * the index of one that was removed: make new sets when nodes come and go. */
struct sluice_nodeset;
struct sluice_nodeset *sluice_nodeset_new(void);
struct sluice_nodeset *sluice_nodeset_ref(struct sluice_nodeset *s);
void sluice_nodeset_unref(struct sluice_nodeset *s);
/* -EINVAL: SLUICE_NO_NODE; -ENOMEM. */
int sluice_nodeset_add(struct sluice_nodeset *s, sluice_node node);
bool sluice_nodeset_has(const struct sluice_nodeset *s, sluice_node node);

/* ==== gangs =================================================================================== */

enum {
	SLUICE_ROLE_ALONE = 1,     /* at most one slot of this role per node */
	SLUICE_ROLE_EXCLUSIVE = 2, /* whole nodes */
};

/* A number of identical slots (pods), each within one node. */
struct sluice_role {
	const char *name;                 /* for messages; may be NULL */
	uint32_t min, max;                /* max 0: exactly min */
	const struct sluice_amount *need; /* of one slot */
	uint32_t n_need;
	const struct sluice_nodeset *nodes;  /* eligible; NULL: all */
	const struct sluice_nodeset *prefer; /* tried first; NULL: no preference */
	unsigned flags;
};

enum {
	SLUICE_GANG_CLOSE_REQUIRED = 1, /* all in one domain of `level`, or no match */
	SLUICE_GANG_TIME_FIT = 2,       /* leave open-ended room to the jobs behind */
};

/* Zero-initialise, set .level = -1 if closeness does not matter. */
struct sluice_gang {
	const struct sluice_role *role;
	uint32_t n_role;
	uint32_t min, max; /* of all roles; 0: the sums */
	int level; /* all in one domain of this level, preferred or required; -1: anywhere */
	unsigned flags;
	const char *policy; /* "first" (NULL), "low", "high", "lonode", "hinode", "firstnodex",
			     * "lonodex", "hinodex", "locality", "pack", "spread" */
	int64_t duration_s; /* 0: unlimited */
	int64_t begin_s;    /* not before; 0: any time */
	int64_t deadline_s; /* end not after; 0: any time */
	const struct sluice_nodeset *nodes; /* for the whole gang; NULL: all */
	const uint64_t *use;                /* blocks this job may use */
	uint32_t n_use;
};

struct sluice_part {
	sluice_node node;
	uint32_t role, slots;
};

/* Zero-initialise, use again as often as you like, end with sluice_place_done(). */
struct sluice_place {
	int64_t start_s, end_s;
	uint32_t slots;
	int close; /* 1: all in one domain of the level asked for */
	struct sluice_part *part;
	uint32_t n, room;
};
void sluice_place_done(struct sluice_place *p);

/* Match a gang.  Returns enum sluice_answer, or -EINVAL (with the reason), -EEXIST (the job number
 * is in use), -ENOMEM.  op: any but SLUICE_SATISFIABLE.  `place` may be NULL. */
int sluice_gang_match(struct sluice_machine *m, enum sluice_op op, int64_t now_s, uint64_t job,
		      const struct sluice_gang *gang, struct sluice_place *place,
		      struct sluice_error *err);
/* Could it run on the empty machine?  1, or 0 with the reason in err; or an error. */
int sluice_gang_satisfiable(struct sluice_machine *m, const struct sluice_gang *gang,
			    struct sluice_error *err);
/* Why it does not start now, what holds it, what would help, in words.  Returns the answer as
 * SLUICE_ALLOCATE_OR_RESERVE would give it, or an error. */
int sluice_gang_explain(struct sluice_machine *m, int64_t now_s, const struct sluice_gang *gang,
			struct sluice_error *why, struct sluice_error *err);

/* Book work as it stands, whether it fits or not (of the roles, need and flags count).
 * end_s SLUICE_FOREVER: no end known. */
int sluice_gang_register(struct sluice_machine *m, int64_t now_s, uint64_t job,
			 const struct sluice_gang *gang, int64_t start_s, int64_t end_s,
			 const struct sluice_part *part, uint32_t n_part, struct sluice_error *err);
/* Keep nodes (or an amount on each) free for [from_s, to_s), but for jobs that name the block. */
int sluice_gang_block(struct sluice_machine *m, int64_t now_s, uint64_t id, int64_t from_s,
		      int64_t to_s, const struct sluice_nodeset *nodes,
		      const struct sluice_amount *amount, uint32_t n_amount,
		      struct sluice_error *err);

/* The life of a booking.  -ENOENT: no such job. */
int sluice_gang_cancel(struct sluice_machine *m, uint64_t job);
int sluice_gang_start(struct sluice_machine *m, int64_t now_s, uint64_t job);
int sluice_gang_set_end(struct sluice_machine *m, uint64_t job, int64_t end_s);
/* Returns how many slots the job has left, 0: it is gone. */
int64_t sluice_gang_release(struct sluice_machine *m, uint64_t job, uint32_t role, sluice_node node,
			    uint32_t slots);
/* `gang` counts the additional slots.  SLUICE_NOW or SLUICE_BUSY, or an error. */
int sluice_gang_grow(struct sluice_machine *m, int64_t now_s, uint64_t job,
		     const struct sluice_gang *gang, struct sluice_place *place,
		     struct sluice_error *err);
int sluice_gang_shrink(struct sluice_machine *m, uint64_t job, uint32_t role, uint32_t slots,
		       struct sluice_place *place);
/* *state: ALLOCATED or RESERVED. */
int sluice_gang_info(const struct sluice_machine *m, uint64_t job, enum sluice_job_state *state,
		     struct sluice_place *place);

#ifdef __cplusplus
}
#endif
#endif
