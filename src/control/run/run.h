/* run.h — jobs of the queue and their places.
 *
 *	group ──► runs ─► slots ─► pod or vacant
 */
#pragma once
#include "control/group/held.h"

/* Values of the column `cause` of a group's row in the store. */
#define CORE_CAUSE_CANCELLED "cancelled"
#define CORE_CAUSE_BEGUN     "begun" /* members have started: the rest belongs to them */
/* Keys of the column `spec`: the nodes the group was promised; that its queue refused it. */
#define CORE_SPEC_PLACES  "places"
#define CORE_SPEC_REFUSED "refused"

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
	SLOT_VACANT,  /* kept for a member that does not exist yet */
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
 * Every state may change to OVER, which is final.  core_run_to() refuses every other change. */
enum run_state {
	RUN_QUEUED,
	RUN_INTENT, /* decided; waits until the intent is durable */
	RUN_PLACING,
	RUN_RUNNING,
	RUN_UNDOING, /* could not be bound as a whole: its bound pods are being evicted */
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
	/* A follower: nothing else of its group runs (but others that wait), so it counts as the gang
	 * against the limits of its queue; core_group_stands(). */
	bool stands;
	bool submitted;
	SLU_VEC(struct role) role;
	SLU_VEC(struct pod *) want;   /* QUEUED: pods it will take, by role */
	SLU_VEC(struct slot) slot;    /* core_slot_add(), core_slot_to(), core_slot_drop() */
	uint32_t n_slot[SLOT_STATES]; /* how many there are in each state */
	uint32_t answered;            /* the slot whose answer came last: the next one is near */
	SLU_VEC(struct core_intent) intent; /* not settled yet */
	uint64_t ticket;                    /* of the newest; UINT64_MAX: its batch is still open */
	bool waits;                         /* the run is on the list `open` */
	/* Pods of the run (of a resumed Job) do not exist yet: none is bound before all of them do. */
	bool appears;
	int64_t appear_us; /* since when pods are missing, or when the last one appeared */
	/* Until when bindings that the last process may have sent can still show; 0: there are none. */
	int64_t expect_us;
	int64_t decided_us, start_s, end_s;
	struct {                                                /* as last reported to the queue */
		int64_t priority, limit_s, begin_s, deadline_s; /* limit 0: the queue's default */
		char queue[64], level[32], reservation[64];
		bool required, exclusive;
		uint64_t slots; /* members that start together */
	} told;
	char *nodes;      /* of all its slots, for people; NULL: not asked for yet */
	int64_t whole_s;  /* since when enough members run; 0: never enough */
	int64_t evict_us; /* when members beyond its limit are evicted again; 0: it is within */
	uint32_t ending;  /* a member has ended: `ending_round` at that time; 0: none has */
	struct slu_nodeset *near; /* a follower that must be close to its gang; NULL */
	/* For people: */
	int64_t planned_s;     /* SLU_TIME_NONE: no start is planned */
	int64_t promised_s;    /* the first promise; 0: none */
	const char *cause;     /* of the present plan; "": none */
	int64_t was_s;         /* planned start before the restart */
	const char *was_cause; /* cause of that start; NULL: there was none */
	bool never, refused;
	char *reason;
	struct run *next_over; /* RUN_OVER: of those that are freed at the end of the cycle */
};

struct runs {
	struct slu_table table;
	SLU_VEC(struct run *) open; /* runs that wait until an intent is durable */
	struct run *over;           /* runs that ended in this cycle */
	/* Gangs whose members are ending: the core waits a moment for the rest before it decides. */
	uint32_t ending_round, n_ending;
	SLU_VEC(struct group *) fill; /* elastic groups with members without a place */
	int64_t filled_us;
	int64_t plan_seq;  /* of the history of plans: ascends over restarts, too */
	uint32_t near;     /* runs with a set `near` */
	bool adopting;     /* only groups that have started are settled */
	int64_t promise_s; /* the start promised to the run submitted next; 0: none */
	const char *promise_cause;
	SLU_VEC(struct slu_gang_part) promise; /* the nodes of that promise that still exist */
	/* What the store remembers, until the first cycle is over: groups, pods of open intents,
	 * those intents, and hashes of the uids of members whose gangs had started. */
	struct slu_table known, meant;
	struct slu_map placed;
	/* Gangs that are over, by their keys: members without a controller that succeeded, and when
	 * the last of them was created (lives.c). */
	struct slu_map lived;
	SLU_VEC(struct core_intent) left;
	SLU_VEC(char *) queues; /* of those groups: the ones that are no longer configured */
	struct {                /* after.c, spaces.c */
		struct slu_map by_name; /* names to live groups */
		struct slu_map past;    /* names to the outcome of groups that are over */
		uint64_t steps;         /* of the check under way */
		struct slu_table spaces;
		SLU_VEC(struct after_space *) busy;   /* spaces with groups to check, or in debt */
		SLU_VEC(struct after_space *) viewed; /* spaces with a view of this cycle */
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

/* The run of the group's gang; NULL: the queue has none. */
static inline struct run *core_gang_of(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang)
			return g->run.p[i];
	return NULL;
}

/* The run that stands for the group: its gang, else its first follower; NULL: it has no run. */
static inline struct run *core_first_run(const struct group *g)
{
	struct run *gang = core_gang_of(g);

	return gang || !g->run.n ? gang : g->run.p[0];
}

/* Whether a run of the group has left the queue: a part of the group has places. */
static inline bool core_started(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state != RUN_QUEUED)
			return true;
	return false;
}

/* A member that came later, or the node of a place that such a member left, and when its run started. */
struct core_later {
	char *name;
	int64_t start_s;
};

/* ---- runs.c ---- */

struct run *core_run_new(struct slu_core *c, struct group *g, bool gang);
/* The one way to change a state; see the drawings above. */
void core_run_to(struct slu_core *c, struct run *r, enum run_state to);
void core_slot_to(struct slu_core *c, struct run *r, struct slot *s, enum slot_state to);
int core_slot_add(struct run *r, struct slot s); /* behind the others; 0 or -ENOMEM */
/* Take the run out of everything: it is RUN_OVER and holds no slots.  Nothing is freed before
 * core_runs_reap(), so callers may go on reading the run. */
void core_run_over(struct slu_core *c, struct run *r);
/* Free the runs that are over; called at the end of the cycle. */
void core_runs_reap(struct slu_core *c);
/* Submit the run to the queue, or report what changed if it was submitted before. */
int core_run_submit(struct slu_core *c, struct run *r);
/* Tell the queue which of the group's wishes changed, other than members and shapes: priority, limit
 * (also while it runs), queue, begin, deadline.  True: the run was submitted again with all of them. */
bool core_run_wishes(struct slu_core *c, struct run *r);
/* Report to the queue whether the waiting run is on hold, as its group is. */
void core_run_hold(struct slu_core *c, struct run *r);
/* The limit in force: the group's, else that of its queue.  Seconds. */
int64_t core_run_limit(const struct slu_core *c, const struct run *r);
/* The settings changed: submit refused runs again, and with `all` every waiting run. */
void core_runs_again(struct slu_core *c, bool all);
/* Report to the queue a run that runs already, since start_s. */
void core_run_register(struct slu_core *c, struct run *r, int64_t start_s);
void core_run_end(struct slu_core *c, struct run *r, enum slu_result how);
/* After either of these the caller calls core_run_settled().  A run without slots is RUN_OVER. */
void core_slot_vacate(struct slu_core *c, struct run *r, struct pod *p, bool keep);
void core_slot_drop(struct slu_core *c, struct run *r, uint32_t i);
/* Whether the core decides nothing for a moment because a gang is ending: until all its members have
 * ended, or the moment has passed. */
bool core_awaits_ending(struct slu_core *c);
/* Give a vacant place to a member, which may leave its own queued run for it. */
bool core_slot_take(struct slu_core *c, struct run *r, uint32_t i, struct pod *p);
struct slot *core_slot_of(struct pod *p);
/* Whether the pod has a slot that the queue's books count.  A slot on a node that was removed does not
 * count until core_slots_back(). */
bool core_slot_counts(const struct slu_core *c, struct pod *p);
/* Whether the slot is on the node, which may have been removed from the machine since. */
bool core_slot_on(const struct slu_core *c, const struct slot *s, const struct node *n);
/* The node is in the machine (again): book the pods that are there, in their slots or as foreign work. */
void core_slots_back(struct slu_core *c, struct node *n);
void core_run_reason(struct run *r, const char *text);
/* The slot whose pod a write was about; NULL: the pod or the run (which may be NULL) has gone. */
struct slot *core_slot_written(struct run *r, const struct slu_rec_written *w);

/* ---- intents.c ---- */

/* Make an intent of the chosen slots. */
void core_run_intend(struct slu_core *c, struct run *r);
/* Make an intent to bind the run or, with `evict`, to evict it; -ENOMEM: nothing may be written. */
int core_intend(struct slu_core *c, struct run *r, bool evict);
void core_intents_settle(struct slu_core *c, struct run *r, enum slu_store_intent_state how);
/* The run is over: settle all its intents. */
void core_run_close(struct slu_core *c, struct run *r);

/* ---- decide.c ---- */

/* Carry out the decisions of the queue. */
void core_decisions(struct slu_core *c);
void core_slot_bind(struct slu_core *c, struct run *r, struct slot *s);
/* The API server answered the binding of a slot. */
void core_slot_answered(struct slu_core *c, const struct slu_rec_written *w);
/* A slot of the run changed: if all of them are settled, take the step that follows. */
void core_run_settled(struct slu_core *c, struct run *r);
/* Take back decisions that are not written yet, for members that are leaving now. */
void core_runs_recall(struct slu_core *c, struct group *g);
/* Whether some pods of the run do not exist yet: then none of them is released. */
bool core_run_short(const struct run *r);
/* Put the run, of which nothing is bound, back into the queue at its old position. */
void core_run_take_back(struct slu_core *c, struct run *r);
/* How long a chosen place may fail before the gang is taken back. */
int64_t core_place_limit_ns(const struct slu_core *c, const struct group *g);
/* Evict members that run beyond their limit, where jobs.enforceDeadlines is set. */
void core_deadlines(struct slu_core *c);

/* ---- vacant.c ---- */

/* Whether the kubelet refused or evicted the pod: a replacement on that node would fail, too, for a
 * while. */
bool core_pod_turned_away(const struct pod *p);
/* Whether the slot of the pod stays, vacant, when the pod is gone. */
bool core_vacant_kept(struct slu_core *c, const struct pod *p);
/* Give vacant slots of the group to members without a place. */
void core_vacant_fill(struct slu_core *c, struct group *g);
/* Give back vacant slots that exceed the members still to come, or whose time or node is gone.  Returns
 * whether there were any. */
bool core_vacant_trim(struct slu_core *c, struct group *g);
/* A node is gone, which may have had vacant slots. */
void core_vacant_node_gone(struct slu_core *c);
/* Look for vacant slots to give back. */
void core_vacancies(struct slu_core *c);

/* ---- adopt.c ---- */

/* Make runs of the members that run already. */
void core_adopt(struct slu_core *c, struct group *g);
/* After a start: drop from the group pods that claim to be released if the store does not confirm it. */
void core_forged_leave(struct slu_core *c, struct group *g);
/* After a start: the places in the annotation of a released Job of the group; NULL: none. */
const char *core_held_places(struct slu_core *c, const struct group *g);

/* ---- undo.c ---- */

/* Take the run back: evict its bound pods, then gather its group again. */
void core_run_undo(struct slu_core *c, struct run *r);
/* The intent to evict is durable: send the evictions. */
void core_undo_evict(struct slu_core *c, struct run *r);

void core_run_undo(struct slu_core *c, struct run *r); /* evict what is bound, then gather again */
void core_run_undo_on(struct slu_core *c, struct run *r); /* ... as the last process began to */
void core_undo_evict(struct slu_core *c, struct run *r);  /* its intent is durable */
void core_undo_answered(struct slu_core *c, struct run *r);
/* Send evictions again that had no effect, and let groups use nodes again that they avoided. */
void core_undo_again(struct slu_core *c);

/* ---- elastic.c ---- */

/* Whether the pod can get a place only by growing the group's gang. */
bool core_elastic_takes(const struct group *g, const struct pod *p);
/* A member of the group has no place: try to grow its gang. */
void core_elastic_wait(struct slu_core *c, struct group *g);
void core_elastic_forget(struct slu_core *c, struct group *g);
/* Grow elastic gangs into room that is left after the queue has decided. */
void core_elastic(struct slu_core *c);
void core_elastic_grown(struct slu_core *c, struct run *r, const struct slu_decision *d);

/* ---- near.c ---- */

/* Compute the set `near` of the run, before the run is submitted. */
int core_near_set(struct slu_core *c, struct run *r);
void core_near_free(struct slu_core *c, struct run *r);
/* A node changed: compute the sets again. */
void core_near_node(struct slu_core *c);
/* Keep members of the group off the node for this many seconds. */
void core_avoid(struct slu_core *c, struct group *g, slu_node n, int64_t seconds);
/* A new set: `all` without the nodes that the group avoids; NULL: it avoids none, or no memory. */
struct slu_nodeset *core_avoid_nodes(const struct group *g, const struct slu_nodeset *all);

/* ---- gather.c: when a gang is whole, which pods follow it ---- */

/* Recall what the store knows of the new groups. */
void core_groups_born(struct slu_core *c);
void core_group_leave(struct slu_core *c, struct pod *p, bool ended);
/* The objects of a pod that runs name another group: it leaves its gang, which goes on without it.  False: they
 * do not, or its gang is just being placed. */
bool core_group_yield(struct slu_core *c, struct pod *p);
/* Settle every dirty group; the i-th of them. */
void core_groups_settle(struct slu_core *c);
void core_group_settle(struct slu_core *c, uint32_t i);
/* The group has no members left. */
void core_group_end(struct slu_core *c, struct group *g);
/* The number of the run's role with this shape, which is added if need be; -E2BIG, -ENOMEM. */
int core_run_role(struct run *r, struct shape *s);

/* ---- lots.c: members that are alike, on one record (`others` in struct pod) ---- */

/* Give the first n members of the lot records of their own, which queue with it; the rest of it goes with
 * one more.  0 or -ENOMEM: only some of them got one. */
int core_lot_divide(struct slu_core *c, struct pod *p, uint32_t n);
void core_lot_resize(struct slu_core *c, struct pod *p, uint32_t others);
/* For qsort() of pointers to members: the order in which they are gathered. */
int core_by_age(const void *a, const void *b);
/* The uid that the i-th member of the lot has, or will have. */
void core_lot_uid(char *buf, size_t n, const struct pod *p, uint32_t i);

/* ---- lives.c ---- */

/* Split the group in two: members that are leaving belong to an earlier life of its name, members that
 * wait to a new one. */
void core_group_part(struct slu_core *c, struct group *g);
/* In the key of an earlier life, before its number; no name of a Kubernetes object has it. */
#define CORE_RETIRED '~'
/* After a start, before groups are recalled: members of lives that had been split off belong to them
 * again. */
void core_lives_recall(struct slu_core *c);
/* The group is over.  A watch may have lost one of its members: if a pod of its name appears that is no
 * younger than those that succeeded, that pod begins no new life, and waits only for the missing ones. */
void core_life_over(struct slu_core *c, const struct group *g);
void core_life_begun(struct slu_core *c, struct group *g);

/* ---- after.c: groups that wait for others ---- */

void core_after_born(struct slu_core *c, struct group *g);
void core_after_recall(struct slu_core *c, const struct slu_store_result *r);
void core_after_gone(struct slu_core *c, struct group *g);
/* Whether the group waits for another group. */
bool core_after_blocks(struct slu_core *c, struct group *g);
void core_after_done(struct slu_core *c);

/* ---- spaces.c: the share of time in which after.c checks the groups of a namespace ---- */

struct after_space {
	struct slu_entry e;            /* key: the namespace */
	struct group *first, *last;    /* its groups, by age; linked by space_next */
	SLU_VEC(struct group *) waits; /* those that wait for others */
	uint32_t next, left;           /* index of the next to check; how many are to be checked */
	int64_t paid_us;               /* until when its checks are paid for */
	bool busy, viewed;
	/* What core_space_view() found: its Jobs; its pods that have ended. */
	SLU_VEC(const struct slu_kobj *) job, ended;
};

struct after_space *core_space(struct slu_core *c, const char *ns); /* NULL: no group is in it */
void core_space_enter(struct slu_core *c, struct group *g);
void core_space_leave(struct slu_core *c, struct group *g);
/* Note whether the group waits for others. */
void core_space_waits(struct slu_core *c, struct group *g, bool waits);
/* A group of the namespace came, started or ended, or a Job changed: check the groups that wait. */
void core_after_news(struct slu_core *c, const char *ns);
/* Check which of the waiting groups may start. */
void core_after_wake(struct slu_core *c);
/* Whether another check is paid for; if not, the waiting groups are checked later. */
bool core_space_may_look(struct slu_core *c, struct after_space *s);
void core_space_pay(struct slu_core *c, struct after_space *s, uint64_t steps);
/* Find s->job and s->ended, which are good until the end of the cycle.  0 or -ENOMEM. */
int core_space_view(struct slu_core *c, struct after_space *s);
void core_spaces_done(struct slu_core *c);

/* ---- rows.c: rows of the store ---- */

/* A hash of the row; if it equals that of the last one, the row need not be written. */
uint64_t core_keep_sum(const struct slu_store_job *j);
int core_run_keep(struct slu_core *c, const struct run *r, enum slu_store_job_state state);
/* Write the rows of the group that changed since the last time; all its rows. */
void core_group_keep(struct slu_core *c, struct group *g);
int core_group_keep_all(struct slu_core *c, struct group *g);
/* Remove the rows of a group that is gone, of a pod that is gone. */
void core_group_unkeep(struct slu_core *c, struct group *g);
void core_pod_unkeep(struct slu_core *c, struct pod *p);

/* A later member starts, or is taken back.  If the gang it follows is over, the members that come after it
 * are one more entry in the history, from the start of the first to the end of the last. */
void core_group_starts(struct slu_core *c, struct group *g, const struct run *r);
void core_group_stops(struct group *g, const struct run *r);
/* Of a gang whose first members have ended, one later member that runs counts against the limits of the
 * queue; if none runs, each that waits does. */
void core_group_stands(struct slu_core *c, struct group *g);

/* ---- ends.c ---- */

/* The member of the slot leaves: add its usage to its group. */
void core_used(struct slu_core *c, struct run *r, const struct slot *s);
enum slu_result core_outcome(struct slu_core *c, const struct group *g);
/* The group is over: store how it ended and what it has used. */
void core_result_keep(struct slu_core *c, const struct group *g, uint64_t job, int64_t start_s,
		      enum slu_result how);
/* Write makers, ended members and kept places into the row of a group; read them from it. */
struct slu_jsonw;
struct core_memory; /* below */
void core_life_put(struct slu_core *c, const struct group *g, struct slu_jsonw *w);
int core_memory_read(struct core_memory *m, const struct slu_store_job *j);
int core_memory_pod(struct core_memory *m, const char *uid);
void core_memory_done(struct core_memory *m);
/* Whether the group in the cluster is the one the store remembers, not another of its name. */
bool core_memory_is(const struct core_memory *m, const struct group *g);
/* Count members that ended while no daemon watched; the whole group ended so. */
void core_memory_account(struct slu_core *c, struct core_memory *m);
void core_memory_over(struct slu_core *c, struct core_memory *m);
/* The i-th node where a place was kept; NULL: there are fewer. */
const char *core_recall_vacant(struct slu_core *c, const struct group *g, uint32_t i);
/* ... that a member left which came later. */
const struct core_later *core_recall_vacant_later(struct slu_core *c, const struct group *g,
						  uint32_t i);
/* When the pod started, if it joined after its gang had started; 0: it did not. */
int64_t core_recall_later(struct slu_core *c, const struct group *g, const struct pod *p);

/* ---- memory.c: what the store remembers, until the first cycle is over ---- */

struct core_names {
	char **p;
	uint32_t n, cap;
};

struct core_memory {
	struct slu_entry e; /* key: the group's */
	char *key, *name, *user, *queue;
	bool named;                   /* a user chose the name: it may come again */
	bool retired;                 /* an earlier life of a name: its members only leave */
	bool ran;                     /* the group has begun: its outcome is recorded */
	bool other;                   /* the cluster has another life of that name */
	struct core_names maker, pod; /* uids; pods: those that were not seen to end */
	struct core_names vacant;     /* nodes with places kept for members to come */
	struct core_names avoid;      /* nodes that refused a member lately */
	int64_t avoid_until_s, again_s;
	uint32_t undone;
	SLU_VEC(struct core_later) later, vacant_later;
	uint32_t size, ok, bad, alone; /* as in struct group */
	int64_t cpu, used, ended_us;
	uint64_t job;
	int64_t first_seen_us, planned_s, promised_s, start_s, state;
	const char *cause; /* of its planned start; NULL: unknown */
	uint64_t sum;
	bool cancelled, on_hold, begun;
	bool refused;      /* by its queue, in which it was not */
	bool has_priority; /* as in struct group */
	int32_t priority;
	int64_t limit_s;
	/* What the group asked for last; its objects may have become wrong since. */
	uint32_t max_size;
	int64_t wish_priority, duration_s, begin_s, deadline_s;
	struct slu_json_doc *spec; /* of a group with a promise: its nodes; NULL: none */
	bool met;                  /* the cluster has the group, too */
	uint32_t at;               /* index of its group on the list of groups to settle */
};

/* A pod of an open intent: it goes to the node, or is evicted from there. */
struct core_meant {
	struct slu_entry e; /* key: uid */
	char *uid, *node;
	bool evicted;
	uint64_t intent;
	const struct pod *by; /* the pod that took the place meant for its stand-in */
};

static inline struct core_memory *memory_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct core_memory, e) : NULL;
}

static inline struct core_meant *meant_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct core_meant, e) : NULL;
}

static inline struct core_memory *core_remembered(const struct slu_core *c, const struct group *g)
{
	struct core_memory *m = memory_of(slu_table_find(&c->runs->known, g->key, g->e.n));

	return m && !m->other ? m : NULL;
}

struct core_meant *core_meant_for(struct slu_core *c, const struct pod *p);
void core_memory_free(struct core_memory *m);
void core_meant_free(struct core_meant *m);
/* Apply what the store knows of a new group. */
void core_recall(struct slu_core *c, struct group *g);
/* When the group started, by the store's row; `otherwise_s` if the store does not say. */
int64_t core_recall_start(struct slu_core *c, const struct group *g, int64_t otherwise_s);
/* Members of a lot that an open intent names get records of their own. */
void core_recall_lots(struct slu_core *c, struct group *g);
/* The node that an open intent of the store chose for the pod; NULL: none. */
const char *core_recall_node(struct slu_core *c, const struct group *g, const struct pod *p);
/* Whether some pods of the group's open intent have started, or even ended. */
bool core_recall_begun(struct slu_core *c, const struct group *g);
/* Whether the pod was being evicted because its gang was taken back. */
bool core_recall_evict(struct slu_core *c, const struct pod *p);
/* Number of members of an open intent that still exist and wait; 0: no intent is open, or it cannot be
 * carried out as a whole any more: a member is gone, and no place is kept for its successor. */
uint32_t core_recall_open(struct slu_core *c, const struct group *g);
/* Free all that the store remembered: the first cycle is over. */
void core_forget(struct slu_core *c);
