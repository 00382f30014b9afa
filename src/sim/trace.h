/* trace.h — a workload and a machine to run it on, as records in memory.  Filled by the readers
 * (swf.c, jsonl.c) and the generator (generate.c), run by run.c.
 *
 * Requests are shared: a million jobs of fifty shapes hold fifty requests. */
#pragma once
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"

#define SLU_TRACE_MAX_JOBS  20000000u
#define SLU_TRACE_MAX_NODES 1000000u
#define SLU_TRACE_MAX_ROLES 16u
#define SLU_TRACE_MAX_LINE  (1u << 20)
#define SLU_TRACE_MAX_TIME  (INT64_C(1) << 40) /* seconds; 34 000 years */
#define SLU_TRACE_MAX_SLOTS 1000000

/* One role of a gang: `slots` equal slots (at most max_slots when elastic, else equal). */
struct slu_trace_role {
	uint32_t slots, max_slots;
	int64_t millicores, memory; /* per slot */
	uint32_t gpus;
	uint32_t property; /* interned; SLU_INTERN_NONE: any node */
	bool spread;       /* one slot per node */
};

struct slu_trace_req {
	uint32_t role, nrole; /* range in slu_trace.role */
	uint32_t within;      /* interned "rack", "block", "zone"; SLU_INTERN_NONE */
	bool prefer;          /* closeness is a wish, not a must */
	bool exclusive;       /* whole nodes */
};

enum slu_trace_dep_kind {
	SLU_TRACE_AFTER,
	SLU_TRACE_AFTER_OK,
	SLU_TRACE_AFTER_NOTOK,
	SLU_TRACE_AFTER_START
};

struct slu_trace_dep {
	uint32_t kind;
	uint64_t job;
};

/* Fields that few jobs use. */
struct slu_trace_extra {
	int64_t begin_s, deadline_s; /* INT64_MIN: none */
	uint32_t reservation;        /* interned */
	uint32_t dep, ndep;
	bool held, grow;
};

struct slu_trace_job {
	uint64_t id;
	uint64_t number; /* what the log calls it; 0: its id */
	int64_t submit_s, run_s, limit_s;
	int32_t priority;
	uint32_t name, user, queue; /* interned; SLU_INTERN_NONE: none */
	uint32_t req;
	uint32_t extra; /* index + 1; 0: none */
	bool fails;     /* ends badly */
};

struct slu_trace_node {
	uint32_t name, zone, block, rack; /* interned; SLU_INTERN_NONE */
	int64_t millicores, memory;
	uint32_t gpus;
	uint32_t prop, nprop; /* range in slu_trace.prop */
};

enum slu_trace_event_kind {
	SLU_TRACE_DOWN,
	SLU_TRACE_UP,
	SLU_TRACE_CANCEL,
	SLU_TRACE_HOLD,
	SLU_TRACE_RELEASE,
	SLU_TRACE_PRIORITY,
	SLU_TRACE_RESIZE,
	SLU_TRACE_SPAN,   /* drain or reservation */
	SLU_TRACE_UNSPAN, /* the span is taken away */
};

struct slu_trace_event {
	int64_t at_s;
	enum slu_trace_event_kind kind;
	uint32_t node; /* index of a node */
	uint64_t job;
	int64_t value; /* priority or size */
	uint32_t span; /* index in slu_trace.span */
	uint32_t seq;  /* order in the file */
};

struct slu_trace_span {
	bool drain;
	uint32_t name;
	int64_t from_s, to_s;
	uint32_t node, nnode; /* range in slu_trace.span_node (interned names) */
	uint32_t count;
	uint32_t user, nuser;       /* range in slu_trace.span_user */
	int64_t millicores, memory; /* of each node; all 0: the whole node */
	uint32_t gpus;
};

struct slu_trace_queue {
	uint32_t name, policy, backfill, property; /* interned; NONE: as on the command line */
	uint32_t queue_depth, reservation_depth;
	int32_t priority;
	int64_t default_s, max_s, max_slots;
	uint32_t max_running, max_waiting, max_running_user, max_waiting_user;
};

/* Zero-initialise, slu_trace_done(). */
struct slu_trace {
	struct slu_intern str;
	SLU_VEC(struct slu_trace_job) job;
	SLU_VEC(struct slu_trace_req) req;
	SLU_VEC(struct slu_trace_role) role;
	SLU_VEC(struct slu_trace_extra) extra;
	SLU_VEC(struct slu_trace_dep) dep;
	SLU_VEC(struct slu_trace_node) node;
	SLU_VEC(uint32_t) prop;
	SLU_VEC(struct slu_trace_event) event;
	SLU_VEC(struct slu_trace_span) span;
	SLU_VEC(uint32_t) span_node;
	SLU_VEC(uint32_t) span_user;
	SLU_VEC(struct slu_trace_queue) queue;
	struct slu_map req_of; /* hash of a request -> its index + 1 (chained by req_next) */
	SLU_VEC(uint32_t) req_next;
	/* What the reader saw. */
	int64_t machine_procs; /* MaxProcs or MaxNodes of an SWF header; 0: not said */
	uint64_t records, dropped, malformed;
};
void slu_trace_done(struct slu_trace *t);

/* Index of this request, adding it if new; roles are copied.  -ENOMEM. */
int64_t slu_trace_intern_req(struct slu_trace *t, const struct slu_trace_req *req,
			     const struct slu_trace_role *role);

/* The commonest request: `slots` slots of one whole core each. */
int64_t slu_trace_cores_req(struct slu_trace *t, uint32_t slots);

/* Total slots of a request at its minimum, and what they hold together in millicores. */
int64_t slu_trace_slots(const struct slu_trace *t, uint32_t req);
int64_t slu_trace_millicores(const struct slu_trace *t, uint32_t req);

/* `n` nodes named node0, node1, ... of `cores` cores; racks of `per_rack` (0: none). */
int slu_trace_machine(struct slu_trace *t, uint32_t n, uint32_t cores, uint32_t per_rack,
		      struct slu_error *err);

/* Jobs by submit time, then by their place in the file.  Events by time. */
int slu_trace_sort(struct slu_trace *t);
