/* queue_internal.h — what a queue is made of; for the files of src/queue only.
 *
 * Everything lies in tables whose rows refer to each other by index, so a clone is a copy of tables.
 *
 * Waiting jobs that could run now or later (state WAITING) are in exactly one tree each: the tree
 * of their *bucket* (same queue, same request, same user where that matters), or, once they have a
 * reservation, the queue's `reserved` tree.  All jobs of a bucket ask for the same thing, so one
 * failed match speaks for every job of the bucket with the same or a longer limit.
 *
 * `freed` counts the moments at which room may have appeared.  A pass looks at all buckets only if
 * `freed` changed since the last pass, otherwise at `fresh` jobs alone: nothing changed for the others
 * (time alone never makes room: the end of a job is an event, even when it was planned). */
#pragma once
#include "base/intern.h"
#include "base/map.h"
#include "queue/batch_internal.h"
#include "queue/explain.h"
#include "queue/order.h"
#include "queue/queue.h"

/* Why a job is not in line (BLOCKED, NEVER). */
enum block {
	BLOCK_NONE,
	BLOCK_BEGIN,
	BLOCK_DEP,
	BLOCK_NEVER,    /* the request does not fit the machine */
	BLOCK_DEADLINE, /* too late */
	BLOCK_DEP_DEAD, /* dependency cannot come true */
	BLOCK_FULL,     /* as many wait as may: in the tree `full` of its user */
};

enum {
	JOB_HELD = 1,
	JOB_GROW = 2,
	JOB_FRESH = 4,    /* in q->fresh */
	JOB_NOPLAN = 8,   /* no time was found for it: nodes are down, or endless work */
	JOB_OVERRUN = 16, /* outlived its limit */
	JOB_AVOIDS = 32,  /* `asked` is its own request, `shape` leaves out nodes for a while */
	JOB_PARTIAL = 64, /* some of its slots ended or were lost */
	JOB_MEMBER = 128, /* came later to its gang: limits count the gang; see `stands` */
};

struct job {
	struct order_node ord;
	slu_job_id id;
	char *name; /* own; NULL: "" */
	uint32_t user, queue;
	uint32_t shape, asked;
	uint32_t bucket; /* WAITING only */
	uint32_t tag;    /* interned reservation name or SLU_INTERN_NONE */
	int64_t priority, first_seen_us, limit_s, begin_s, deadline_s;
	int64_t start_s, end_s;        /* RUNNING: end as the plan believes */
	int64_t planned_s, promised_s; /* reservation; first promise */
	int64_t due_s;       /* SELECTIVE: when its promise is due; set when it enters the line */
	uint32_t dep, ndep;  /* list in q->dep (linked by next), how many are open */
	uint32_t prev, next; /* list by state */
	uint32_t gen;
	uint8_t state, block, flags, how;
	bool used;   /* the table slot is taken */
	bool stands; /* JOB_MEMBER: nothing else of its gang runs, so limits of what runs count it */
	/* For explanations, numbers of starts: the first after the job entered the line, the first
	 * after its promise was given, and its own. */
	uint64_t line_from, told_from, note;
};

/* Limits of what runs count its gang, not the job. */
static inline bool job_is_free(const struct job *j)
{
	return (j->flags & JOB_MEMBER) && !j->stands;
}

static inline const char *job_name(const struct job *j)
{
	return j->name ? j->name : "";
}

struct shape {
	struct slu_gang_req req; /* own copies of roles, needs, scores; node sets by reference */
	uint64_t hash;
	uint32_t refs, chain;
	int64_t slots;                    /* at minimum */
	uint32_t sat_topology, sat_queue; /* known to be satisfiable: q->topology + 1, where */
	bool elastic;
	bool used;
};

struct bucket {
	uint32_t queue, shape, user, tag; /* user SLU_INTERN_NONE: any */
	uint32_t root, chain;
	uint32_t active; /* place in queue->active, SLU_NIL when empty */
	uint32_t refs;   /* jobs attached, in its tree or reserved */
	uint32_t generation;
	/* Shortest limit that failed since room was last freed (failed_at == q->freed). */
	int64_t failed_limit;
	uint64_t failed_at;
	uint32_t after; /* pass: where a walk over this bucket stands; SLU_NIL: at its start */
	bool member;    /* of members of running gangs */
	bool closed;    /* pass: its user is at a limit */
	uint32_t n_use; /* advance reservations its jobs may use */
	uint64_t *use;
	bool used;
};

/* What limits count, of a user in a queue or of a whole queue: later members of running gangs and jobs
 * that wait outside a full queue are left out. */
struct usage {
	uint32_t waiting, running, reserved;
	uint32_t full; /* of a user: tree of the jobs outside */
};

struct subqueue {
	struct slu_queue_conf conf; /* strings interned */
	struct slu_nodeset *nodes;  /* by property; NULL: all */
	uint32_t reserved;          /* tree */
	SLU_VEC(uint32_t) active;   /* buckets with waiting jobs */
	uint32_t n[5];              /* by state */
	uint32_t n_reserved;
	struct usage all;
	uint32_t n_full;   /* BLOCK_FULL */
	bool stale;        /* its reservation was not repaired, as no job could start (opts.lazy) */
	uint32_t n_noplan; /* waiting, but no time was found for them */
	uint64_t started, ended, backfilled;
};

struct dep {
	uint32_t next;     /* of the same waiting job */
	uint32_t next_for; /* of the same job waited for */
	uint32_t job;
	slu_job_id on;
	uint8_t kind;
	bool open;
};

struct span {
	enum slu_span_kind kind;
	uint32_t name;
	uint64_t id;
	int64_t from_s, to_s;
	struct slu_nodeset *nodes;
	SLU_VEC(uint32_t) user;
};

/* Properties of a node, by index. */
struct node_props {
	SLU_VEC(uint32_t) p;
	/* When it was last described again, or overfilled by work we did not put there; INT64_MIN:
	 * never. */
	int64_t changed_s;
};

struct timer {
	int64_t at_s;
	uint32_t job, gen;
};

/* A start, remembered to explain which jobs passed a waiting one. */
struct note {
	slu_job_id id; /* 0: it came to nothing */
	uint64_t seq;
	int64_t at_s, end_s; /* end: SLU_TIME_NONE while it runs */
	int64_t priority, first_seen_us, limit_s;
	uint32_t queue, slots;
	bool member, played;
	bool told; /* the job ran already when the queue was told of it: its start, not its number, says which jobs it passed */
	char name[SLU_PASS_NAME];
};

struct cause {
	enum slu_cause cause;
	slu_job_id job;
	slu_node node;
};

struct slu_queue {
	struct slu_queue_opts opts;
	struct slu_machine *m;
	struct slu_intern str; /* users, queues, properties, reservation names */
	int64_t now_s;

	SLU_VEC(struct job) job;
	SLU_VEC(uint32_t) job_free;
	struct slu_map job_of; /* id -> index */
	uint32_t list[5];      /* heads of the lists by state (not WAITING) */
	uint32_t list_end[5];
	SLU_VEC(uint32_t) fresh;

	SLU_VEC(struct shape) shape;
	SLU_VEC(uint32_t) shape_free;
	struct slu_map shape_of; /* hash -> index + 1, chained */

	SLU_VEC(struct bucket) bucket;
	SLU_VEC(uint32_t) bucket_free;
	struct slu_map bucket_of;
	uint32_t bucket_gen;
	bool rebuild; /* buckets do not fit the spans or queues any more */

	SLU_VEC(struct subqueue) sub;
	SLU_VEC(uint32_t) sub_order; /* by priority */
	SLU_VEC(struct usage) usage;
	struct slu_map usage_of; /* queue << 32 | user -> index */

	SLU_VEC(struct dep) dep;
	uint32_t dep_free;
	struct slu_map dep_on; /* id waited for -> index of the first dep + 1 */
	struct slu_map result; /* id -> result + 1, of ended jobs */
	SLU_VEC(uint64_t) result_ring;
	uint32_t result_next;

	SLU_VEC(struct span) span;
	uint64_t span_seq;
	SLU_VEC(struct node_props) props;
	SLU_VEC(struct timer) timer; /* binary heap */

	uint64_t freed, seen_freed; /* see above */
	uint64_t changes;           /* events taken; tells holders of derived data to renew it */
	uint32_t topology;          /* counts changes of nodes */
	uint32_t topology_seen;
	bool unsettled; /* memory ran out while a job was settled: some job is in no list or tree */
	bool came_due;  /* within a step: the promise of some job has become due */
	bool user_matters; /* buckets are per user: limits or spans name users */
	bool grow_any;     /* some running job wants to grow */
	bool avoids;       /* some job may have JOB_AVOIDS */
	bool moved;        /* a promise left its place after others were looked at: look again */
	struct cause later, earlier;

	struct slu_nodeset *only;         /* while one promise is booked: its nodes; else NULL */
	struct slu_gang_place place, due; /* scratch */
	SLU_VEC(uint32_t) heap;           /* scratch: candidates of a pass */
	SLU_VEC(uint32_t) todo;           /* scratch */
	struct batch *batch;              /* scratch; made when first needed */
	struct shadow *shadow;            /* of why.c; gone with the first change */
	struct note *note;                /* the last SLU_PASS_KEPT starts, a ring */
	uint64_t notes;                   /* number of starts so far */
};

/* why.c */
void queue_shadow_drop(struct slu_queue *q);

/* note.c */
int queue_notes_new(struct slu_queue *q);
/* The job has begun, at its start_s; told: it began before the queue learned of it. */
void queue_note_start(struct slu_queue *q, uint32_t j, uint32_t slots, bool told);
void queue_note_end(struct slu_queue *q, uint32_t j);  /* a running job is gone */
void queue_note_undo(struct slu_queue *q, uint32_t j); /* its start came to nothing */

/* decision.c */
struct slu_decision *queue_decide(struct slu_decisions *out, enum slu_decision_kind kind,
				  slu_job_id job);
int queue_decide_parts(struct slu_decisions *out, struct slu_decision *d,
		       const struct slu_gang_part *p, uint32_t n);
/* A whole decision with a sentence; 0 or -ENOMEM with nothing added. */
int queue_decide_text(struct slu_decisions *out, enum slu_decision_kind kind, slu_job_id job,
		      const char *fmt, ...) SLU_PRINTF(4, 5);

/* shape.c */
/* Index of an equal request (counted), or -ENOMEM. */
int64_t queue_shape_get(struct slu_queue *q, const struct slu_gang_req *req);
void queue_shape_put(struct slu_queue *q, uint32_t shape);
/* Restoring a picture: put the request at its own, empty, place in the table, not counted yet. */
int queue_shape_put_at(struct slu_queue *q, uint32_t shape, const struct slu_gang_req *req);
void queue_shape_done(struct shape *s);
/* Own copy of a request; 0 or -ENOMEM. */
int queue_shape_copy(struct shape *s, const struct slu_gang_req *req);
/* The request of a job, ready for the matcher.  Borrowed until shapes or buckets change. */
struct slu_gang_req queue_job_req(const struct slu_queue *q, uint32_t j);
/* Cut an elastic request down to its minimum size.  `role` gets the changed roles, which the request
 * points to from then on. */
void queue_req_minimum(struct slu_gang_req *req, struct slu_gang_role role[SLU_ROLES_MAX]);
/* Bucket for a job; made if need be.  -ENOMEM. */
int64_t queue_bucket_get(struct slu_queue *q, uint32_t j);
int queue_bucket_link(struct slu_queue *q, uint32_t i);    /* let bucket i be found */
int queue_bucket_attach(struct slu_queue *q, uint32_t j);  /* job->bucket = its bucket */
void queue_bucket_detach(struct slu_queue *q, uint32_t j); /* the last one takes the bucket along */
void queue_bucket_enter(struct slu_queue *q, uint32_t j);  /* into the tree of its bucket */
void queue_bucket_leave(struct slu_queue *q, uint32_t j);
/* Spans or settings changed: sort all waiting jobs again. */
int queue_bucket_rebuild(struct slu_queue *q);

/* job.c */
uint32_t queue_job_find(const struct slu_queue *q, slu_job_id id);                /* SLU_NIL */
struct usage *queue_usage_of(struct slu_queue *q, uint32_t queue, uint32_t user); /* exists */
int queue_usage_make(struct slu_queue *q, uint32_t queue, uint32_t user);
void queue_job_set_state(struct slu_queue *q, uint32_t j, enum slu_job_state s);
void queue_job_list(struct slu_queue *q, uint32_t j); /* to the end of the list of its state */
/* A new job in no tree, BLOCKED; settle or register it next. */
int queue_job_make(struct slu_queue *q, const struct slu_job_spec *s, uint32_t queue,
		   int64_t limit_s, uint32_t *out_j);
void queue_job_unmake(struct slu_queue *q, uint32_t j);
/* Out of its tree and, if it was reserved, out of the machine's books. */
void queue_job_leave_line(struct slu_queue *q, uint32_t j);
/* Put a job where it belongs now: in line, or aside with a reason.  Not in any tree before. */
int queue_job_settle(struct slu_queue *q, uint32_t j, struct slu_decisions *out);
/* 1: the job does not fit even an empty machine, and `why` says so; 0: it fits; or an error. */
int queue_job_never(struct slu_queue *q, uint32_t j, struct slu_error *why);
/* Settle the jobs that could not be settled before, when memory ran out. */
int queue_jobs_settle(struct slu_queue *q, struct slu_decisions *out);
/* The job is gone: take it out of books and tables, and settle its dependents. */
int queue_job_gone(struct slu_queue *q, uint32_t j, enum slu_result r, struct slu_decisions *out);
/* Report that the job has lost its planned start, if it had one. */
int queue_plan_told(struct slu_queue *q, uint32_t j, int64_t was_s, enum slu_cause cause,
		    struct slu_decisions *out);
int queue_dep_check(struct slu_queue *q, const struct slu_job_spec *s, struct slu_error *err);
int queue_dep_fire(struct slu_queue *q, slu_job_id on, bool started, enum slu_result r,
		   struct slu_decisions *out);
/* Count a job in or out of what limits look at. */
enum tally { TALLY_WAITING, TALLY_RUNNING, TALLY_RESERVED };
void queue_tally(struct slu_queue *q, uint32_t j, enum tally what, int by);
/* Whether the queue is full for this job; put it aside; take it back; let in jobs that now have a
 * place. */
bool queue_full_for(struct slu_queue *q, uint32_t j);
int queue_full_enter(struct slu_queue *q, uint32_t j, struct slu_decisions *out);
void queue_full_leave(struct slu_queue *q, uint32_t j);
int queue_full_admit(struct slu_queue *q, struct slu_decisions *out);
int queue_timer_add(struct slu_queue *q, int64_t at_s, uint32_t j);
void queue_timer_pop(struct slu_queue *q);
bool queue_timer_stale(const struct slu_queue *q, const struct timer *t);

/* event.c */
int queue_ev_submit(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err);
int queue_ev_change(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err);
int queue_ev_end(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		 struct slu_error *err);
int queue_ev_resize(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err);

/* node.c */
int queue_ev_node(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		  struct slu_error *err);
int queue_ev_foreign(struct slu_queue *q, const struct slu_event *ev, struct slu_error *err);
int queue_ev_span(struct slu_queue *q, const struct slu_event *ev, struct slu_error *err);
int queue_ev_conf(struct slu_queue *q, const struct slu_event *ev, struct slu_error *err);
int queue_sub_nodes(struct slu_queue *q, uint32_t sub); /* rebuild the node set of a queue */
void queue_span_drop(struct slu_queue *q, uint32_t i);

/* view.c */
uint32_t queue_job_position(const struct slu_queue *q, uint32_t j); /* 0: not in line */
/* The waiting jobs of a queue in order; free the array. */
int queue_line_of(const struct slu_queue *q, uint32_t sub, uint32_t **out, uint32_t *n);

/* resize.c */
int queue_grow_all(struct slu_queue *q, struct slu_decisions *out);

/* step.c */
int queue_plan_step(struct slu_queue *q, struct slu_decisions *out, struct slu_error *err);

/* pass.c */
/* Look at all jobs of one queue. */
int queue_pass_full(struct slu_queue *q, struct subqueue *sub, struct slu_decisions *out,
		    struct slu_error *err);
/* May an unreserved job in line start, if it fits: order, depth and running limits? */
bool queue_pass_allows(struct slu_queue *q, uint32_t j);
int queue_pass_may_start(struct slu_queue *q, struct slu_error *err);
int queue_pass_fresh(struct slu_queue *q, struct slu_decisions *out, struct slu_error *err);
uint32_t queue_pass_first(const struct slu_queue *q, const struct subqueue *sub);
int queue_pass_by_plan(const void *a, const void *b, void *jobs);
int queue_pass_fits(struct slu_queue *q, struct bucket *b, struct slu_error *err);

/* pass_batch.c */
/* Try a batch in the order that serves it best.  *packed tells whether there was one. */
int queue_pass_batch(struct slu_queue *q, struct subqueue *sub, const struct job *last,
		     uint32_t *started, bool *packed, struct slu_decisions *out,
		     struct slu_error *err);
/* Does the order of jobs that come together matter to this queue? */
static inline bool queue_pass_plays(const struct subqueue *sub)
{
	return sub->conf.policy == SLU_POLICY_SELECTIVE &&
	       sub->conf.backfill == SLU_BACKFILL_BALANCED && sub->n[SLU_JOB_WAITING] <= BATCH_MAX;
}

/* plan.c */
/* An unreserved job in line: start it, or reserve for it if asked to.
 * SLU_GANG_NOW, _LATER (it has moved to the reserved tree) or _BUSY. */
/* Book the unreserved job in line for that moment, exactly there.  SLU_GANG_LATER or _BUSY: there is no
 * room for it, or it may not be there. */
int queue_try_parts(struct slu_queue *q, uint32_t j, int64_t start_s,
		    const struct slu_gang_part *part, uint32_t n, struct slu_decisions *out,
		    struct slu_error *err);
int queue_try_job(struct slu_queue *q, uint32_t j, bool reserve, struct slu_decisions *out,
		  struct slu_error *err);
/* Take a reserved job out of the plan and put it back at its earliest time.  *moved: room that it
 * held before is free now. */
int queue_replan(struct slu_queue *q, uint32_t j, bool *moved, struct slu_decisions *out,
		 struct slu_error *err);
/* Out of the reserved tree; the booking is gone already.  In no tree after. */
void queue_unreserve(struct slu_queue *q, uint32_t j);
/* Would a job with a promise for later fit now, beside everything else on `m`, which is the machine
 * or a copy of it?  The booking is taken out and put back; `place` is scratch.  1, 0, or an error;
 * after -ENOMEM the booking may be gone. */
int queue_plan_promise_fits(const struct slu_queue *q, struct slu_machine *m, uint32_t j,
			    struct slu_gang_place *place, struct slu_error *err);
void queue_plan_freed(struct slu_queue *q, enum slu_cause cause, slu_job_id job, slu_node node);
void queue_plan_lost(struct slu_queue *q, enum slu_cause cause, slu_job_id job, slu_node node);
void queue_plan_look(struct slu_queue *q); /* the next pass looks at every job */
/* A job without a promise left its place in line: look at the jobs behind it if only order or depth
 * kept the pass from looking at them. */
void queue_plan_moved_up(struct slu_queue *q, uint32_t j);
bool queue_plan_user_free(struct slu_queue *q, uint32_t j); /* running limits leave it a place */
bool queue_plan_user_beyond(struct slu_queue *q,
			    uint32_t j);                   /* it, being promised, is beyond them */
uint32_t queue_plan_depth(const struct slu_queue_conf *c); /* reservations of the policy */
/* When a job of this queue is due for a promise; SLU_TIME_NONE: not by the clock. */
int64_t queue_plan_due(const struct slu_queue_conf *c, const struct job *j);
