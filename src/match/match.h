/* match.h — the matcher: a graph, the bookings on it, and the operations that change them.
 *
 *	slu_match_new(graph, &options, &m, &err)
 *	slu_match_run(m, SLU_MATCH_ALLOCATE, spec, jobid, now, &sink, &result)
 *	slu_match_cancel(m, jobid, ...)
 *
 * The graph is borrowed and must outlive the matcher; after the matcher exists only the matcher
 * changes it (status, properties, attach, remove below).  Deterministic, no input or output, no
 * clock.  One thread at a time.
 *
 * Results of an operation are an errno value without sign in `result.code`, as the reference prints
 * them: 0, EBUSY (not now), ENODEV (never), EINVAL, ENOENT, ...; the function itself returns 0 when
 * the operation was carried out to its end, whatever its outcome, and a negative errno only for
 * lack of memory or for an error of the writer. */
#pragma once
#include "graph/graph.h"
#include "graph/listing.h"
#include "match/writer.h"

struct slu_jobspec;
struct slu_match;

#define SLU_GRAPH_END 3153600000 /* s; the life of the graph in sluice-query */

struct slu_match_options {
	const char *subsystems; /* matcher name (-S); NULL = "CA" */
	const char *policy;     /* -P; NULL = "first" */
	const char *traverser;  /* -T: "simple" (NULL), "flexible" */
	const char *filters;    /* -p; NULL or blank = "ALL:core,ALL:node" */
	/* Walk exactly as the reference does, vertex by vertex, so that the visit counts (-e)
	 * are those of the reference.  Without this option the answer is the same, and the counts
	 * are 0 or smaller. */
	bool count_visits;
	int64_t end_s; /* end of the graph's life; 0 = SLU_GRAPH_END */
	/* The error of a walk that books nothing although no vertex refused: the reference reports
	 * whatever errno the process had before.  0 = EBUSY. */
	int stale_error;
};

/* -EINVAL with the reference's text in err (the part after "ERROR: "): "can't create matcher",
 * "can't initialize traverser", "can't set pruning filters". */
int slu_match_new(struct slu_graph *g, const struct slu_match_options *o, struct slu_match **out,
		  struct slu_error *err);
void slu_match_free(struct slu_match *m);
SLU_DEFINE_CLEANUP(struct slu_match, slu_match_free)
/* An independent copy of all bookings over `g`, a clone of the original's graph. */
struct slu_match *slu_match_clone(const struct slu_match *m, struct slu_graph *g);

/* Check names at option parsing, before a graph exists. */
bool slu_match_policy_valid(const char *policy);

enum slu_match_op {
	SLU_MATCH_ALLOCATE,
	SLU_MATCH_ALLOCATE_SATISFIABILITY,
	SLU_MATCH_ALLOCATE_ORELSE_RESERVE,
	SLU_MATCH_SATISFIABILITY,
	SLU_MATCH_WITHOUT_ALLOCATING,
	SLU_MATCH_WITHOUT_ALLOCATING_FUTURE,
};

struct slu_match_result {
	int code;          /* 0 or an errno value, positive */
	int64_t at_s;      /* when it starts */
	int64_t end_s;     /* and ends */
	bool reserved;     /* at_s > now */
	uint64_t preorder; /* visit counts, as printed by -e */
	uint64_t postorder;
	const char *messages; /* collected texts, "" if none; valid until the next call */
};

/* Match `spec` for job `jobid`, which must not be known (slu_match_has_job) unless the operation
 * books nothing.  Vertices go to `sink` (may be NULL) when it matched. */
int slu_match_run(struct slu_match *m, enum slu_match_op op, const struct slu_jobspec *spec,
		  int64_t jobid, int64_t now_s, const struct slu_sink *sink,
		  struct slu_match_result *out);

/* Whether the job has bookings. */
bool slu_match_has_job(const struct slu_match *m, int64_t jobid);

/* Book the resources that a file lists for a job that runs ("update"), or is planned (`reserve`:
 * "update reserve"). */
int slu_match_update(struct slu_match *m, const struct slu_listing *l, int64_t jobid, int64_t at_s,
		     int64_t duration_s, bool reserve, const struct slu_sink *sink,
		     struct slu_match_result *out);

/* Free everything that the job holds. out->code: 0, or EINVAL if the job is not tagged at the
 * root (its resources are freed all the same).  Counts are those of `cancel ... stats`. */
int slu_match_cancel(struct slu_match *m, int64_t jobid, struct slu_match_result *out);

/* Free a part of what the job holds: by ranks (a listing of RV1) or vertex by vertex (JGF).
 * *full: the job holds nothing any more. */
int slu_match_partial_cancel(struct slu_match *m, int64_t jobid, const struct slu_listing *l,
			     bool *full, struct slu_match_result *out);

/* Print the vertices that satisfy the criteria.  Bad criteria: out->code is EINVAL, with
 * messages. now_s: the current time for agfilter ("current epoch time"). */
int slu_match_find(struct slu_match *m, const char *criteria, int64_t now_s,
		   const struct slu_sink *sink, struct slu_match_result *out);

/* Mark one vertex up or down, and count the nodes that are up. */
void slu_match_status_set(struct slu_match *m, uint32_t v, enum slu_status status);
int slu_match_property_set(struct slu_match *m, uint32_t v, const char *key, const char *val);

/* After a reader added vertices to the live graph ("attach"): prime the filters again. */
int slu_match_attached(struct slu_match *m);
/* The same after a reader stopped half-way (-EEXIST).  The vertices it had made stay, but the
 * sums above them do not count them, as in the reference. */
int slu_match_attached_part(struct slu_match *m);
/* Remove vertices and everything below them; out->code and messages as for the other operations. */
int slu_match_remove_path(struct slu_match *m, const char *path, struct slu_match_result *out);
int slu_match_remove_ranks(struct slu_match *m, const int64_t *ranks, uint32_t n,
			   struct slu_match_result *out);

/* Bytes held for bookings (records, planners, maps), for the benchmark. */
size_t slu_match_memory(const struct slu_match *m);
