/* queue.h — the queue that plans with time: events in, decisions out.
 *
 * A `struct slu_queue` owns everything that is decided upon: the machine (gang/gang.h), the queues
 * with their policies and limits, the jobs, the plan.  It does no input or output, has no clock
 * and no globals: the time is an argument, and the same events in the same steps give the same
 * decisions, byte for byte.  So a recorded event log can be replayed, and a clone of a live queue
 * answers "what if".
 *
 *	slu_queue_apply(q, now_s, &ev, &out, &err);	// any number of events, cheap each
 *	slu_queue_schedule(q, now_s, &out, &err);	// one look at the plan: starts, promises
 *	for each out.p[i]: make it durable, carry it out
 *	slu_queue_wake_s(q);				// call schedule again then at the latest
 *
 * The caller reports what happens then (a pod ended, a bind was refused) as further events.
 *
 * Order inside a queue: priority (higher first), first-seen time in microseconds, name, id.
 *
 * Which jobs get a promise: the first in line (EASY, FCFS), the first few (HYBRID), every job
 * (CONSERVATIVE), no job (FIRST_FIT), or jobs that have waited long for what they ask (SELECTIVE).
 *
 * Promises: when a job gets a reservation, the planned start is a promise.  It is repaired at every
 * event and moves earlier whenever it can; it moves later only if capacity that was counted on is
 * gone: a node went down, was drained or resized, foreign work appeared, a running job outlived its
 * limit or grew, or the job itself was changed.  Each change of a planned start is a decision of
 * its own (SLU_DEC_PLAN) with its cause.  A job that was promised a start keeps its reservation
 * when more urgent jobs arrive behind it; those are planned around it.
 *
 * States of a job:
 *
 *   submit ──► WAITING ──start──► RUNNING ──end──► gone (result kept for dependents)
 *      │        ▲  │ ▲               │
 *      │   release │ └── take back ──┘
 *      ├──► HELD ◄┘hold
 *      ├──► BLOCKED   dependency, begin time, full queue: enters WAITING by itself
 *      └──► NEVER     cannot run on this machine; looked at again when the machine changes
 *
 * Threads: one owner at a time, nothing here locks.  Memory: -ENOMEM from apply leaves the queue as
 * it was before that event; from schedule, each job is either fully decided (its decision is in
 * `out`) or untouched.
 */
#pragma once
#include "base/vec.h"
#include "gang/gang.h"

struct slu_queue;

/* Given by the caller, not 0, unique among the living and below SLU_JOB_ID_MAX. */
typedef uint64_t slu_job_id;
#define SLU_JOB_ID_MAX (UINT64_C(1) << 62)

#define SLU_TIME_NONE INT64_MIN                   /* no begin, no deadline, no planned start */
#define SLU_TIME_EVER INT64_MAX                   /* a span without end */
#define SLU_LIMIT_MAX (INT64_C(10) * 366 * 86400) /* longest limit of a job, in seconds */

/* ------------------------------------------------------------------------------ queues -- */

enum slu_policy {
	SLU_POLICY_FCFS,         /* strictly in order; no job overtakes */
	SLU_POLICY_EASY,         /* one reservation, the others fill the gap in front of it */
	SLU_POLICY_HYBRID,       /* `reservation_depth` reservations */
	SLU_POLICY_CONSERVATIVE, /* a reservation for every job considered */
	SLU_POLICY_FIRST_FIT,    /* no reservation: whatever fits starts.  Can starve; to compare */
	/* Reservations for jobs that have waited long for what they ask, SLU_PROMISES at a time;
	 * whatever fits beside them starts.  See `max_stretch`. */
	SLU_POLICY_SELECTIVE,
	SLU_POLICIES, /* how many there are; a new one goes before this */
};

#define SLU_PROMISES 8u /* reservations of SELECTIVE at a time */

#define SLU_BATCH_S 60
enum slu_backfill {
	SLU_BACKFILL_SUBMISSION, /* in queue order */
	SLU_BACKFILL_SHORTEST,   /* shortest limit first, then queue order */
	/* EASY only: jobs of one batch, which came within SLU_BATCH_S after the oldest that waits,
	 * go in the order that gets all of them done first (batch.c), the others behind them in
	 * queue order.  No job is overtaken by one that came later than that. */
	SLU_BACKFILL_PACKED,
	/* SELECTIVE only: the order that weighs equally how soon the whole line is done and how short
	 * jobs wait (batch.c); shortest first when the line is too long to simulate. */
	SLU_BACKFILL_BALANCED,
};

/* 0 means "no limit" in all of these.  A job beyond max_waiting or max_waiting_user is told so
 * (SLU_DEC_REFUSED) and kept aside; it is let in, in queue order, as soon as there is a place
 * (SLU_DEC_STATE).  One beyond max_slots or max_duration is not taken at all. */
struct slu_queue_limits {
	int64_t max_slots;    /* of one job, at its minimum size */
	int64_t max_duration; /* seconds, of one job */
	uint32_t max_running, max_waiting;
	uint32_t max_running_user, max_waiting_user;
};

struct slu_queue_conf {
	const char *name;
	enum slu_policy policy;
	enum slu_backfill backfill;
	uint32_t queue_depth;       /* jobs looked at per pass; 0: all */
	uint32_t reservation_depth; /* HYBRID only; 0 is taken as 64.  Others: see enum */
	int32_t priority;           /* among queues: higher is served first */
	/* SELECTIVE: a job is due for a promise once it has waited max_stretch times its limit (of
	 * at least SLU_STRETCH_FLOOR_S), or max_wait_s, whichever comes first.  Counted from when
	 * it was first seen, or may begin.  0: SLU_STRETCH, SLU_WAIT_S. */
	uint32_t max_stretch;
	int64_t max_wait_s;
	int64_t default_duration; /* seconds, for jobs without a limit; 0: 3600 */
	const char *property;     /* only nodes with this property; NULL or "": all */
	struct slu_queue_limits limit;
	bool stopped; /* takes jobs, starts none */
	bool removed; /* takes no jobs either; running jobs go on, waiting jobs wait until the
		       * queue is set again */
};

#define SLU_STRETCH         20u
#define SLU_STRETCH_MAX     1000000u
#define SLU_STRETCH_FLOOR_S 10
#define SLU_WAIT_S          (INT64_C(48) * 3600)

/* What a queue is for, in one word: "balanced", "throughput", "response", "order".  Sets policy,
 * backfill, max_stretch and max_wait_s.  -EINVAL with the list in err. */
int slu_objective_parse(const char *s, struct slu_queue_conf *c, struct slu_error *err);
/* NULL-terminated, the default first. */
extern const char *const slu_objective_names[];

/* "fcfs", "easy", "hybrid", "conservative", "first-fit", "selective"; else -EINVAL, the list in err. */
int slu_policy_parse(const char *s, enum slu_policy *out, struct slu_error *err);
const char *slu_policy_name(enum slu_policy p);
/* "auto" (as the objective says), then the names of all policies; NULL after the last. */
extern const char *const slu_policy_words[];
int slu_backfill_parse(const char *s, enum slu_backfill *out, struct slu_error *err);
const char *slu_backfill_name(enum slu_backfill b);
/* "queue-depth=32,reservation-depth=8,max-queue-depth=…,max-reservation-depth=…" as Fluxion's
 * queue-params and policy-params; decimal >= 1, else -EINVAL or -ERANGE. */
int slu_queue_conf_params(struct slu_queue_conf *c, const char *params, struct slu_error *err);

/* -------------------------------------------------------------------------------- jobs -- */

enum slu_dep_kind {
	SLU_DEP_AFTER,       /* the other job has ended, with any result */
	SLU_DEP_AFTER_OK,    /* the other job has succeeded */
	SLU_DEP_AFTER_NOTOK, /* the other job has failed or was cancelled */
	SLU_DEP_AFTER_START, /* the other job has started */
};

struct slu_dep {
	enum slu_dep_kind kind;
	slu_job_id job; /* may be one that is not known yet: the job waits for it */
};

struct slu_job_spec {
	slu_job_id id;
	const char *name;        /* breaks ties in the order; shown to people */
	const char *user;        /* "" is a user too */
	const char *queue;       /* NULL or "": the first queue added */
	int64_t priority;        /* higher first */
	int64_t first_seen_us;   /* order among equals */
	int64_t limit_s;         /* 0: the queue's default duration */
	int64_t begin_s;         /* not before; SLU_TIME_NONE */
	int64_t deadline_s;      /* must have ended by then; SLU_TIME_NONE */
	const char *reservation; /* advance reservation it may use; NULL: none */
	const struct slu_dep *dep;
	uint32_t ndep;
	bool held;
	/* A later member or replacement of a gang: it belongs to that gang, so it counts against no
	 * limit of the queue, whether it waits or runs. */
	bool member;
	/* A member that stands for its gang, of which nothing else runs: it counts against the limits
	 * of what runs, as the gang would. */
	bool stands;
	/* The job was in the queue before the daemon was started again: limits on new jobs do not
	 * concern it, and if the queue was removed, it waits there. */
	bool known;
	/* Elastic jobs (a role with max > min): starts with as many slots as fit at once, between
	 * minimum and maximum; planned ahead by the minimum.  With grow set, a running job is
	 * filled up to its maximum with room that no plan needs (SLU_DEC_RESIZED). */
	bool grow;
	/* What it asks for.  Copied; node sets are shared by reference.  Only roles, min, max,
	 * level, flags and policy count: times, the queue's nodes and blocks are filled in here,
	 * and SLU_GANG_TIME_FIT is always set. */
	const struct slu_gang_req *req;
};

enum slu_result { SLU_RESULT_OK, SLU_RESULT_FAILED, SLU_RESULT_CANCELLED };

/* ------------------------------------------------------------------------------ events -- */

enum slu_event_kind {
	SLU_EV_SUBMIT, /* spec */
	/* spec, part, start_s: the job runs already (after a restart).  If its queue is gone, the job
	 * counts in the first one. */
	SLU_EV_RUNNING,
	SLU_EV_CANCEL,   /* job: in any state.  Running: counts as ended, cancelled */
	SLU_EV_HOLD,     /* job: waiting only; a running job is left alone */
	SLU_EV_RELEASE,  /* job */
	SLU_EV_PRIORITY, /* job, priority */
	SLU_EV_LIMIT,    /* job, limit_s: new time limit, waiting or running */
	/* job, spec->req, spec->stands: what a waiting job asks for changed; keeps its place */
	SLU_EV_REQUEST,
	SLU_EV_END, /* job, result: all of it is gone */
	/* job, part: these slots ended, the rest runs on.  size: how many are left of the job, those on
	 * nodes that were removed counted in; 0: as many as are booked, and the job ends with the last */
	SLU_EV_END_SLOTS,
	/* job: the start was not carried out; the job waits again at its old place.  part: nodes it
	 * must avoid until until_s (may be none) */
	SLU_EV_TAKE_BACK,
	/* job, size: wanted slots in role `role`; answered by SLU_DEC_RESIZED (or _REFUSED).  0 is a
	 * cancel.  Of a waiting job: changes the request */
	SLU_EV_RESIZE,
	SLU_EV_NODE_ADD, /* node_spec, property: new, or new description of a node of that name */
	SLU_EV_NODE_REMOVE, /* node */
	SLU_EV_NODE_UP,     /* node */
	SLU_EV_NODE_DOWN, /* node: nothing new is placed there; SLU_DEC_LOST names the jobs that run there */
	SLU_EV_FOREIGN_ADD,    /* foreign, node, amount, until_s: used by others */
	SLU_EV_FOREIGN_REMOVE, /* foreign */
	/* span: advance reservation or drain.  Reservations that do not overlap may share a name, as
	 * the occurrences of one do: a job that names it may use any of them */
	SLU_EV_SPAN_ADD,
	SLU_EV_SPAN_REMOVE, /* span->name: all of that name */
	SLU_EV_QUEUE_SET,   /* conf: new queue, or new settings of one */
	SLU_EV_TICK,        /* time passed, nothing else */
	/* job, start_s, part (may be none): before a restart, the waiting job was promised this start
	 * in these parts.  The queue plans the job there, whatever its position; or else somehow on
	 * their nodes; or else anywhere at that time; or else at the next time after it.  The next pass looks for an
	 * earlier one. */
	SLU_EV_PROMISE,
	SLU_EV_LOOK, /* the next pass looks at every job, as if room had appeared */
	/* job, part: the running job had these slots on a node that was removed; the node is back, and
	 * so are they */
	SLU_EV_REGAIN,
	/* job, size: the running member stands for its gang (1), or another one does (0) */
	SLU_EV_STANDS,
};

enum slu_span_kind {
	SLU_SPAN_RESERVATION, /* only jobs that are allowed may be planned into it */
	SLU_SPAN_DRAIN,       /* no job may start; running jobs go on */
};

/* A span in the plan: [from, to) on given nodes, whole or so much of each. */
struct slu_span {
	enum slu_span_kind kind;
	const char *name;
	int64_t from_s, to_s; /* to may be SLU_TIME_EVER */
	/* Names of nodes; or, with nnode 0, `count` whole nodes chosen when the span is added: those
	 * that are free of plans, as far as possible. */
	const char *const *node;
	uint32_t nnode, count;
	const char *property;            /* with count: only nodes with this property */
	const struct slu_amount *amount; /* so much of each node; none: the whole node */
	uint32_t n_amount;
	const char *const *user; /* reservation: these users, or jobs naming the reservation */
	uint32_t nuser;
};

struct slu_event {
	enum slu_event_kind kind;
	slu_job_id job;
	const struct slu_job_spec *spec;
	const struct slu_gang_part *part;
	uint32_t n_part;
	slu_node node;
	/* NODE_ADD: uses the numbers of slu_queue_resource() and slu_queue_level(). */
	const struct slu_node_spec *node_spec;
	const char *const *property; /* NODE_ADD: what queues choose nodes by */
	uint32_t n_property;
	uint64_t foreign; /* the caller's key of a piece of foreign work, below 2^62 */
	const struct slu_amount *amount; /* FOREIGN_ADD: what it holds of `node` */
	uint32_t n_amount;
	bool background; /* FOREIGN_ADD: does not count against whole nodes */
	const struct slu_span *span;
	const struct slu_queue_conf *conf;
	int64_t priority, limit_s, start_s, until_s, size;
	uint32_t role;
	enum slu_result result;
};

/* --------------------------------------------------------------------------- decisions -- */

enum slu_decision_kind {
	SLU_DEC_START,   /* start job on parts; carry it out or answer with TAKE_BACK */
	SLU_DEC_PLAN,    /* planned start changed: was_s -> start_s, cause, parts if reserved */
	SLU_DEC_STATE,   /* state or reason changed (held, blocked, waiting again): text */
	SLU_DEC_NEVER,   /* can never run: text says which part exceeds what */
	SLU_DEC_REFUSED, /* the event was refused (limits, cycle, unknown queue): text */
	/* the running job has grown by parts (size > 0), or is to give up parts (size < 0), which
	 * count until END_SLOTS reports them */
	SLU_DEC_RESIZED,
	SLU_DEC_LOST,    /* the node under these parts of a running job went down or away */
	SLU_DEC_EXPIRED, /* deadline cannot be met any more, or dependency cannot come true */
	SLU_DEC_OVERRUN, /* running job outlived its limit; the plan no longer relies on its end */
	SLU_DEC_MOVED,   /* planned for the same time on other nodes: parts */
};

enum slu_how { SLU_HOW_IMMEDIATE, SLU_HOW_BACKFILL, SLU_HOW_RESERVED };

enum slu_cause {
	SLU_CAUSE_NONE,
	SLU_CAUSE_NEW,       /* the job's first reservation */
	SLU_CAUSE_EARLY_END, /* cause_job ended or was cancelled before its time: earlier */
	SLU_CAUSE_REPLAN,    /* room in the plan was found: earlier */
	SLU_CAUSE_GREW,      /* machine grew: earlier */
	SLU_CAUSE_NODE_LOST, /* node went down, was removed, drained or shrank: later */
	SLU_CAUSE_FOREIGN,   /* foreign work took the room: later */
	SLU_CAUSE_OVERRUN,   /* cause_job outlived its limit: later */
	SLU_CAUSE_LATE,      /* schedule was called too late to keep the promised second */
	SLU_CAUSE_OWN,       /* the job itself was changed (priority, limit, request, hold) */
	SLU_CAUSE_STARTED,   /* the job starts */
	SLU_CAUSE_DROPPED,   /* no reservation any more (held, cancelled, policy changed) */
};

struct slu_decision {
	enum slu_decision_kind kind;
	slu_job_id job;
	int64_t start_s, end_s; /* START: now and now + limit; PLAN: new planned start, end */
	int64_t was_s;          /* PLAN: what was planned before; SLU_TIME_NONE */
	enum slu_how how;
	enum slu_cause cause;
	slu_job_id cause_job;  /* 0 if none */
	slu_node cause_node;   /* SLU_NODE_NONE if none */
	uint32_t part, n_part; /* range in slu_decisions.part */
	int64_t size;
	uint32_t text; /* offset in slu_decisions.text, NUL-terminated; UINT32_MAX: none */
};

/* Zero-initialise; appended to by apply and schedule.  Nothing in it points elsewhere. */
struct slu_decisions {
	SLU_VEC(struct slu_decision) v;
	SLU_VEC(struct slu_gang_part) part;
	SLU_VEC(char) text;
};
void slu_decisions_clear(struct slu_decisions *d); /* keeps the memory */
void slu_decisions_done(struct slu_decisions *d);
const char *slu_decision_text(const struct slu_decisions *d, const struct slu_decision *x);
const char *slu_decision_name(enum slu_decision_kind k); /* "start", "plan", ... */
const char *slu_cause_name(enum slu_cause c);
const char *slu_how_name(enum slu_how h);

/* --------------------------------------------------------------------------- the queue -- */

struct slu_queue_opts {
	/* Seconds a running job that outlived its limit is expected to go on; the plan is moved
	 * by that much each time.  0: 60. */
	int64_t overrun_s;
	/* Repair the reservation of EASY and FCFS only when some job could start.  The starts are
	 * the same, but a planned start that could move earlier is reported later.  For simulations. */
	bool lazy;
	/* Check every invariant after each step; a broken one is -EUCLEAN with the sentence. */
	bool verify;
	/* Results of ended jobs kept for dependents; 0: 1 000 000. */
	uint32_t keep_results;
};

/* Empty queue on an empty machine.  There is no queue until the first SLU_EV_QUEUE_SET. */
int slu_queue_new(const struct slu_queue_opts *opts, struct slu_queue **out, struct slu_error *err);
const struct slu_queue_opts *slu_queue_opts(const struct slu_queue *q); /* as they are in force */
void slu_queue_free(struct slu_queue *q);
SLU_DEFINE_CLEANUP(struct slu_queue, slu_queue_free)

int64_t slu_queue_now_s(const struct slu_queue *q); /* the latest time that a caller has passed */

/* A deep, independent copy ("what if").  NULL when memory runs out.  (codec.h writes a copy as bytes,
 * for a log.) */
struct slu_queue *slu_queue_clone(const struct slu_queue *q);

/* Take one event.  now_s must not run backwards (-EINVAL).  Refusals that belong to a job or queue
 * (limits, unknown queue, cyclic dependency, unsatisfiable request) are not errors: they are
 * decisions, and the return is 0.  Errors: -EINVAL for records that make no sense (unknown job or
 * node id is -ENOENT, id taken -EEXIST), -ENOMEM; the queue is unchanged. */
int slu_queue_apply(struct slu_queue *q, int64_t now_s, const struct slu_event *ev,
		    struct slu_decisions *out, struct slu_error *err);

/* One scheduling pass over all queues.  Cheap when nothing changed. */
int slu_queue_schedule(struct slu_queue *q, int64_t now_s, struct slu_decisions *out,
		       struct slu_error *err);

/* When to call schedule again although no event came: the next planned start, begin time, end of a
 * span, limit of a running job.  SLU_TIME_EVER if never. */
int64_t slu_queue_wake_s(const struct slu_queue *q);

/* The machine, to read (node names, free amounts).  Changes go through events. */
const struct slu_machine *slu_queue_machine(const struct slu_queue *q);
/* Numbers of resources and topology levels, for requests and node descriptions; as
 * slu_machine_resource() and slu_machine_level(). */
int slu_queue_resource(struct slu_queue *q, const char *name);
int slu_queue_level(struct slu_queue *q, const char *name);
/* Bookings of the machine that are not jobs: what foreign work and spans are called there. */
#define SLU_BOOKING_SPAN    (UINT64_C(1) << 62)
#define SLU_BOOKING_FOREIGN (UINT64_C(1) << 63)

/* ------------------------------------------------------------------------------ reading -- */

enum slu_job_state {
	SLU_JOB_WAITING,
	SLU_JOB_HELD,
	SLU_JOB_BLOCKED, /* begin time, dependency, its queue is full */
	SLU_JOB_NEVER,
	SLU_JOB_RUNNING,
};
const char *slu_job_state_name(enum slu_job_state s);

/* All strings and arrays borrowed, valid until the next apply or schedule. */
struct slu_job_view {
	slu_job_id id;
	const char *name, *user, *queue;
	enum slu_job_state state;
	int64_t priority, first_seen_us, limit_s, begin_s, deadline_s;
	int64_t start_s, end_s; /* running */
	int64_t planned_s;      /* reservation (a promise); SLU_TIME_NONE */
	int64_t promised_s;     /* first promise made; SLU_TIME_NONE */
	uint32_t position;      /* from 1 among the waiting of its queue; 0: not in line */
	uint32_t slots; /* that the job runs or is planned on; parts: slu_gang_info(machine, id) */
	const struct slu_gang_req *req;
};

/* -ENOENT if unknown.  position costs O(shapes log n): for all of them take slu_queue_each(). */
int slu_queue_job(const struct slu_queue *q, slu_job_id id, struct slu_job_view *out);

/* Every living job: running by start, then waiting in queue order (queues by priority), then held,
 * blocked and never.  Positions are filled.  Stops when fn returns non-zero and returns that. */
int slu_queue_each(const struct slu_queue *q, int (*fn)(const struct slu_job_view *, void *),
		   void *arg);

struct slu_queue_view {
	const struct slu_queue_conf *conf;
	uint32_t waiting, held, blocked, never, running;
	uint64_t started, ended, backfilled;
};
uint32_t slu_queue_count(const struct slu_queue *q); /* queues */
int slu_queue_view(const struct slu_queue *q, uint32_t i, struct slu_queue_view *out);

/* Why is it not running, in words, from the plan itself.  Texts are filled into buf-owned memory
 * inside `out`; slu_why_done() frees it. */
struct slu_why {
	enum slu_job_state state;
	uint32_t position;
	int64_t planned_s; /* promise, else estimate; SLU_TIME_NONE if it cannot be said */
	bool promised;     /* planned_s is a promise */
	char *reason;      /* "needs 8 slots of 4 cpu at once; 5 fit now; job b holds 3 nodes until
			      …" */
	char *remedy;      /* smallest change that would let it start now; NULL: none found */
	struct slu_gang_place place; /* where it is planned; n = 0: not planned */
};
int slu_queue_why(const struct slu_queue *q, int64_t now_s, slu_job_id id, struct slu_why *out,
		  struct slu_error *err);
void slu_why_done(struct slu_why *w);

/* Start estimates for the first `depth` waiting jobs of each queue (0: all), from a shadow plan
 * that books them one after another on a copy of the machine: fn(id, start_s or SLU_TIME_NONE).
 * Costs one reservation per job; the daemon calls it at leisure. */
int slu_queue_estimate(const struct slu_queue *q, int64_t now_s, uint32_t depth,
		       int (*fn)(slu_job_id id, int64_t start_s, void *), void *arg,
		       struct slu_error *err);

/* Does every wait have a wake?  0: yes; 1: *job fits now beside all that is booked and promised, is
 * allowed to start, and no event is due that would look at it (a bug in here: SLU_EV_LOOK starts
 * it); -ENOMEM.  Ask after a pass, before other events.  opts.verify asks after every pass. */
int slu_queue_overlooked(const struct slu_queue *q, slu_job_id *job, struct slu_error *err);

/* Prove the invariants: books equal jobs, no node over its size, no gang in part, promises kept.
 * -EUCLEAN with a sentence. */
int slu_queue_check(const struct slu_queue *q, int64_t now_s, struct slu_error *err);
