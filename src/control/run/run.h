/* run.h — jobs of the queue and their places.
 *
 *	group ──► runs ─► slots ─► pod or vacant
 */
#pragma once
#include "control/group/held.h"

/* What the store says of a group in `cause`. */
#define CORE_CAUSE_CANCELLED "cancelled"
#define CORE_CAUSE_BEGUN     "begun" /* members have started: the rest belongs to them */
/* ... and in `spec`: the nodes it was promised. */
#define CORE_SPEC_PLACES "places"

/* An intent that is not settled yet. */
struct core_intent {
	uint64_t id, job;
	int64_t made_us;
	const char *verb; /* "bind", "evict" */
};

/*	                 a member takes it
 *	VACANT ──────────────────────────────► CHOSEN ──► BINDING ──► BOUND
 *	   ▲                                      │          ├──────► FAILED
 *	   └── its member left, the place is kept └─► FAILED └──────► GONE
 *
 * Whatever the state, a pod that is seen on the slot's node makes it BOUND, and a member that
 * leaves makes it VACANT or ends the slot.  core_slot_to() refuses every other change. */
enum slot_state {
	SLOT_VACANT,  /* kept for a member to come */
	SLOT_CHOSEN,  /* decided, nothing written yet */
	SLOT_BINDING, /* binding on its way */
	SLOT_BOUND,
	SLOT_FAILED, /* cannot be bound */
	SLOT_GONE,   /* its pod was deleted before it could be bound; the watch will say so */
	SLOT_STATES,
};

struct slot {
	slu_node node;
	uint32_t role;
	struct pod *pod;
	enum slot_state state;
	int64_t vacant_us; /* since when; 0: never had a member */
};

/*	         start          durable           all bound
 *	QUEUED ─────────► INTENT ───────► PLACING ──────────► RUNNING ◄── adopted: bound already
 *	  ▲ ▲               │                │ │                 │
 *	  │ └── taken back ─┘                │ └─ bound in part ─┴─► UNDOING
 *	  └──── nothing of it is bound ──────┘     (or a member was lost)
 *
 * From each of them a run may be OVER; nothing leads out of that.  core_run_to() refuses every other
 * change. */
enum run_state {
	RUN_QUEUED,
	RUN_INTENT, /* decided; waits until the intent is durable */
	RUN_PLACING,
	RUN_RUNNING,
	RUN_UNDOING, /* could not be bound as a whole: what was is being evicted */
	RUN_OVER,    /* in no list or table any more; freed at the end of the cycle */
};

struct role {
	struct shape *shape;
	uint32_t min, max;
};

struct run {
	struct slu_entry e; /* key: id */
	uint64_t id;
	struct group *g;
	enum run_state state;
	bool gang; /* the group's own gang, not a follower */
	bool submitted;
	SLU_VEC(struct role) role;
	SLU_VEC(struct pod *) want;   /* QUEUED: pods it will take, by role */
	SLU_VEC(struct slot) slot;    /* core_slot_add(), core_slot_to(), core_slot_drop() */
	uint32_t n_slot[SLOT_STATES]; /* how many there are in each state */
	uint32_t answered;            /* the slot whose answer came last: the next one is near */
	SLU_VEC(struct core_intent) intent; /* not settled yet */
	uint64_t ticket;                    /* of the newest; UINT64_MAX: its batch is still open */
	bool waits;                         /* is on the list `open` */
	bool appears;      /* pods of Jobs that were resumed for it are still to come */
	int64_t appear_us; /* ... since when, or since the last of them came */
	int64_t decided_us, start_s, end_s;
	struct {                                                /* what the queue was told last */
		int64_t priority, limit_s, begin_s, deadline_s; /* limit 0: the queue's default */
		char queue[64], level[32], reservation[64];
		bool required, exclusive;
		uint64_t slots; /* members that start together */
	} told;
	char *nodes;              /* of all its slots, for people; NULL: not asked for yet */
	int64_t whole_s;          /* since when enough members run; 0: never were */
	bool overdue;             /* was ended for running too long */
	uint32_t ending;          /* a member has ended: `ending_round` at that time; 0: none has */
	struct slu_nodeset *near; /* a follower that must be close to its gang; NULL */
	/* what people are told */
	int64_t planned_s;  /* SLU_TIME_NONE */
	int64_t promised_s; /* the first promise; 0: none */
	const char *cause;  /* of the present plan; "" */
	int64_t was_s;      /* planned in a former life, and for this cause; NULL: it was not */
	const char *was_cause;
	bool never, refused;
	char *reason;
	struct run *next_over; /* RUN_OVER: of those that are freed at the end of the cycle */
};

struct runs {
	struct slu_table table;
	SLU_VEC(struct run *) open; /* wait for the ticket of an intent */
	struct run *over;           /* ended in this cycle */
	/* Gangs whose members are ending; nothing is decided for a moment, for their sake. */
	uint32_t ending_round, n_ending;
	SLU_VEC(struct group *) fill; /* elastic groups with members without a place */
	int64_t filled_us;
	int64_t plan_seq;  /* of the history of plans: ascends over restarts, too */
	uint32_t near;     /* runs with a set `near` */
	bool adopting;     /* only what has started is settled */
	int64_t promise_s; /* the next to be submitted was promised this; 0: nothing */
	const char *promise_cause;
	SLU_VEC(struct slu_gang_part) promise; /* ... on these nodes, as far as they are there */
	/* What the store remembers, until the first cycle is over: groups, pods of open intents,
	 * those intents. */
	struct slu_table known, meant;
	SLU_VEC(struct core_intent) left;
	struct {                              /* after.c */
		struct slu_map by_name, past; /* names to live groups; to how the others ended */
		SLU_VEC(struct group *) waits;
		bool news; /* a group came, started or ended */
	} after;
};

static inline struct run *run_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct run, e) : NULL;
}

/* Places of the group that are kept for members to come. */
static inline uint32_t core_vacant(const struct group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->run.n; i++)
		n += g->run.p[i]->n_slot[SLOT_VACANT];
	return n;
}

/* ---- runs.c ---- */

struct run *core_run_new(struct slu_core *c, struct group *g, bool gang);
/* The one way to change a state; see the drawings above. */
void core_run_to(struct slu_core *c, struct run *r, enum run_state to);
void core_slot_to(struct slu_core *c, struct run *r, struct slot *s, enum slot_state to);
int core_slot_add(struct run *r, struct slot s); /* behind the others; 0 or -ENOMEM */
/* Take the run out of everything: it is RUN_OVER and holds no slots.  Nothing is freed before
 * core_runs_reap(), so whoever is looking at it may go on doing so. */
void core_run_over(struct slu_core *c, struct run *r);
void core_runs_reap(struct slu_core *c);                /* at the end of the cycle */
int core_run_submit(struct slu_core *c, struct run *r); /* or tell the queue what changed */
/* Tell the queue what is new in the group's wishes but for members and shapes: priority, limit (also
 * while it runs), queue, begin, deadline.  True: it was submitted again, as it is now. */
bool core_run_wishes(struct slu_core *c, struct run *r);
/* The limit in force: the group's, else that of its queue.  Seconds. */
int64_t core_run_limit(const struct slu_core *c, const struct run *r);
/* The settings changed: what was refused is tried again, and with `all` every waiting run is submitted again. */
void core_runs_again(struct slu_core *c, bool all);
void core_run_register(struct slu_core *c, struct run *r, int64_t start_s); /* it runs already */
void core_run_end(struct slu_core *c, struct run *r, enum slu_result how);
/* Both leave the run to the caller, who ends with core_run_settled().  The last slot takes its run
 * with it (RUN_OVER). */
void core_slot_vacate(struct slu_core *c, struct run *r, struct pod *p, bool keep);
void core_slot_drop(struct slu_core *c, struct run *r, uint32_t i);
/* A gang is just ending: no decision before all of it has ended, or the moment has passed. */
bool core_awaits_ending(struct slu_core *c);
/* Give a vacant place to a member, which may leave its own queued run for it. */
bool core_slot_take(struct slu_core *c, struct run *r, uint32_t i, struct pod *p);
struct slot *core_slot_of(struct pod *p);
/* It has a place that the queue's books count.  A place on a node that was removed does not: its pod
 * counts as work of others, should the node be made again while the pod is still there. */
bool core_slot_counts(const struct slu_core *c, struct pod *p);
void core_run_reason(struct run *r, const char *text);
/* The place whose pod was written to; NULL: the pod or the run (which may be NULL) has gone. */
struct slot *core_slot_written(struct run *r, const struct slu_rec_written *w);

/* ---- intents.c ---- */

void core_run_intend(struct slu_core *c, struct run *r); /* what was chosen becomes an intent */
/* ... or what is bound goes back; -ENOMEM: nothing of it may be written. */
int core_intend(struct slu_core *c, struct run *r, bool evict);
void core_intents_settle(struct slu_core *c, struct run *r, enum slu_store_intent_state how);
/* The run is over: whatever was intended is settled. */
void core_run_close(struct slu_core *c, struct run *r);

/* ---- decide.c ---- */

void core_decisions(struct slu_core *c); /* carry out what the queue decided */
void core_slot_bind(struct slu_core *c, struct run *r, struct slot *s);
void core_slot_answered(struct slu_core *c, const struct slu_rec_written *w); /* its binding */
/* Something of the run changed: whether all its slots are settled, and what follows. */
void core_run_settled(struct slu_core *c, struct run *r);
/* What was decided and not written yet, for members that are leaving now, is taken back. */
void core_runs_recall(struct slu_core *c, struct group *g);
/* Not all the pods it waits for are there: none of them is let go. */
bool core_run_short(const struct run *r);
/* Nothing of it is bound: it waits again, at its old place. */
void core_run_take_back(struct slu_core *c, struct run *r);
/* How long a chosen place may fail before the gang is taken back. */
int64_t core_place_limit_ns(const struct slu_core *c, const struct group *g);
void core_deadlines(struct slu_core *c); /* end what runs too long, where told to */

/* ---- vacant.c ---- */

/* Its kubelet refused it or threw it out: the next one would fare no better there for a while. */
bool core_pod_turned_away(const struct pod *p);
bool core_vacant_kept(struct slu_core *c, const struct pod *p); /* one who leaves leaves a place */
void core_vacant_fill(struct slu_core *c, struct group *g);
/* More places kept than members to come, or their time is over: give them back. */
void core_vacant_trim(struct slu_core *c, struct group *g);
void core_vacancies(struct slu_core *c); /* let those go whose time is over */

/* ---- adopt.c ---- */

void core_adopt(struct slu_core *c, struct group *g); /* a group without runs: what runs, runs */
/* After a start: pods that only say they were released, which the store does not confirm, are none of
 * the group's. */
void core_forged_leave(struct slu_core *c, struct group *g);
/* After a start: the places a released Job of the group had, as its annotation says; NULL: none. */
const char *core_held_places(struct slu_core *c, const struct group *g);

/* ---- undo.c ---- */

void core_run_undo(struct slu_core *c, struct run *r); /* evict what is bound, then gather again */
void core_undo_evict(struct slu_core *c, struct run *r); /* its intent is durable */
void core_undo_answered(struct slu_core *c, struct run *r);
void core_undo_again(struct slu_core *c);

/* ---- elastic.c ---- */

bool core_elastic_takes(const struct group *g, const struct pod *p); /* it follows no other way */
void core_elastic_wait(struct slu_core *c, struct group *g);         /* some member has no place */
void core_elastic_forget(struct slu_core *c, struct group *g);
void core_elastic(struct slu_core *c); /* after the queue had its turn */
void core_elastic_grown(struct slu_core *c, struct run *r, const struct slu_decision *d);

/* ---- near.c ---- */

int core_near_set(struct slu_core *c, struct run *r); /* before it is submitted */
void core_near_free(struct slu_core *c, struct run *r);
void core_near_node(struct slu_core *c); /* some node changed: look again */
/* No member of the group goes there for so many seconds. */
void core_avoid(struct slu_core *c, struct group *g, slu_node n, int64_t seconds);
/* The nodes without those that are avoided, a new set; NULL: all of them, or no memory. */
struct slu_nodeset *core_avoid_nodes(const struct group *g, const struct slu_nodeset *all);

/* ---- gather.c: when is a gang whole, who follows it ---- */

void core_groups_born(struct slu_core *c); /* what the store knows of groups that are new */
void core_group_leave(struct slu_core *c, struct pod *p, bool ended);
void core_groups_settle(struct slu_core *c);              /* look at every dirty group */
void core_group_settle(struct slu_core *c, uint32_t i);   /* at the i-th of them */
void core_group_end(struct slu_core *c, struct group *g); /* it has no members left */
int core_run_role(struct run *r, struct shape *s); /* its number, new if need be; -E2BIG, -ENOMEM */

/* ---- lives.c ---- */

/* Those who leave and those who wait are two lives of one name: two groups from now on. */
void core_group_part(struct slu_core *c, struct group *g);

/* ---- after.c: groups that wait for others ---- */

void core_after_born(struct slu_core *c, struct group *g);
void core_after_recall(struct slu_core *c, const struct slu_store_result *r);
void core_after_gone(struct slu_core *c, struct group *g);
void core_after_wake(struct slu_core *c);                    /* look again who may start */
bool core_after_blocks(struct slu_core *c, struct group *g); /* it waits for another group */
void core_after_done(struct slu_core *c);

/* ---- rows.c: rows of the store ---- */

uint64_t core_keep_sum(const struct slu_store_job *j); /* equal: the row need not be written */
int core_run_keep(struct slu_core *c, const struct run *r, enum slu_store_job_state state);
void core_group_keep(struct slu_core *c, struct group *g); /* what changed since the last time */
int core_group_keep_anew(struct slu_core *c, struct group *g);
void core_group_unkeep(struct slu_core *c, struct group *g); /* it is gone */
void core_pod_unkeep(struct slu_core *c, struct pod *p);

bool core_started(const struct group *g); /* one of its runs has left the queue */

/* ---- ends.c ---- */

void core_used(struct slu_core *c, struct run *r, const struct slot *s); /* its member goes */
enum slu_result core_outcome(struct slu_core *c, const struct group *g);
/* The group is over: how it ended and what it has used goes into the store. */
void core_result_keep(struct slu_core *c, const struct group *g, uint64_t job, int64_t start_s,
		      enum slu_result how);
/* Makers, ends and places kept, into and out of the row of a group. */
struct slu_jsonw;
struct core_memory; /* below */
void core_life_put(struct slu_core *c, const struct group *g, struct slu_jsonw *w);
int core_memory_read(struct core_memory *m, const struct slu_store_job *j);
int core_memory_pod(struct core_memory *m, const char *uid);
void core_memory_done(struct core_memory *m);
/* The group in the cluster is the one the store remembers, not another of its name. */
bool core_memory_is(const struct core_memory *m, const struct group *g);
/* Members that ended while no daemon watched. */
void core_memory_account(struct slu_core *c, struct core_memory *m);
void core_memory_over(struct slu_core *c, struct core_memory *m); /* so did the group */
/* The i-th node where a place was kept; NULL: no more. */
const char *core_recall_vacant(struct slu_core *c, const struct group *g, uint32_t i);
/* When it started, if it came after its gang; 0: it did not. */
int64_t core_recall_later(struct slu_core *c, const struct group *g, const struct pod *p);

/* ---- memory.c: what the store remembers, until the first cycle is over ---- */

struct core_names {
	char **p;
	uint32_t n, cap;
};

/* A member that came later, and when it started. */
struct core_later {
	char *uid;
	int64_t start_s;
};

struct core_memory {
	struct slu_entry e; /* key: the group's */
	char *key, *name, *user, *queue;
	bool named;                   /* the name is somebody's choice: it may come again */
	bool ran;                     /* it has begun: how it ended is of interest */
	bool other;                   /* the cluster has another life of that name */
	struct core_names maker, pod; /* uids; pods: those that were not seen to end */
	struct core_names vacant;     /* nodes with places kept for members to come */
	SLU_VEC(struct core_later) later;
	uint32_t size, ok, bad, alone; /* as in struct group */
	int64_t cpu, used, ended_us;
	uint64_t job;
	int64_t first_seen_us, planned_s, promised_s, start_s, state;
	const char *cause; /* of its planned start; NULL: unknown */
	uint64_t sum;
	bool cancelled, begun;
	bool has_priority; /* as in struct group */
	int32_t priority;
	int64_t limit_s;
	struct slu_json_doc *spec; /* of one with a promise: where; NULL: none */
	bool met;                  /* the cluster has it too */
	uint32_t at;               /* its group waits there to be settled */
};

/* A pod of an open intent.  One that was going to be evicted has no node. */
struct core_meant {
	struct slu_entry e; /* key: uid */
	char *uid, *node;
	uint64_t intent;
	const struct pod *by; /* it was meant for the stand-in of this one */
};

static inline struct core_memory *memory_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct core_memory, e) : NULL;
}

static inline struct core_meant *meant_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct core_meant, e) : NULL;
}

struct core_memory *core_remembered(struct slu_core *c, const struct group *g);
struct core_meant *core_meant_for(struct slu_core *c, const struct pod *p);
void core_memory_free(struct core_memory *m);
void core_meant_free(struct core_meant *m);
void core_recall(struct slu_core *c, struct group *g); /* what the store knows of a new group */
/* When it started, as it was promised to others; `otherwise_s`: the store does not say. */
int64_t core_recall_start(struct slu_core *c, const struct group *g, int64_t otherwise_s);
/* Node an open intent of the store has chosen for the pod; NULL. */
const char *core_recall_node(struct slu_core *c, const struct group *g, const struct pod *p);
/* Whether others of the intent that is open for its members have started, or even ended. */
bool core_recall_begun(struct slu_core *c, const struct group *g);
/* Whether it was being evicted, to take its gang back. */
bool core_recall_evict(struct slu_core *c, const struct pod *p);
/* Members of an open intent that are still there and wait; 0: none is open, or it cannot be carried
 * out as a whole any more. */
uint32_t core_recall_open(struct slu_core *c, const struct group *g);
void core_forget(struct slu_core *c);
