/* core_i.h — the core's own structs; for the rooms of the core only.
 *
 * Who points at whom:
 *
 *	group ──► pods (members in the mirror)          node ──► pods (whoever sits there)
 *	  └─────► runs (jobs of the queue) ─► slots ─► pod or vacant
 *
 * Invariant (books): every pod that occupies a node of the machine is counted there exactly once,
 * either by the slot of its run or as foreign work under its own key. */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "control/core/core.h"
#include "control/fluxjob/spec.h"
#include "control/group/rules.h"
#include "control/hold/rules.h"
#include "control/cluster/predicate.h"
#include "control/cluster/request.h"
#include "base/table.h"
#include "queue/log.h"
#include "queue/queue.h"

/* Why a group that a user took out of the queue does not run. */
#define CORE_CANCELLED "it was cancelled; sluice release puts it back into the queue"
#define CORE_HELD      "it is held; sluice release lets it wait for its turn again"

/* What the store says of such a group (in `cause`). */
#define CORE_CAUSE_CANCELLED "cancelled"
#define CORE_CAUSE_BEGUN     "begun" /* members have started: the rest belongs to them */

struct pod;
struct held;
struct group;
struct run;

/* An intent that is not settled yet. */
struct core_intent {
	uint64_t id, job;
	int64_t made_us;
	const char *verb; /* "bind", "evict" */
};

/* What a person was told to be done, once it is durable. */
struct core_answer {
	struct slu_rec_ask *ask;
	uint64_t ticket; /* UINT64_MAX: not sent yet */
	char *text;
};

struct node {
	struct slu_entry e;        /* key: name */
	char *name;                /* own copy: pods may name a node nobody has seen */
	const struct slu_knode *k; /* NULL: not (or no longer) in the mirror */
	slu_node handle;           /* SLU_NODE_NONE: not in the machine */
	SLU_VEC(struct pod *) pod; /* bound here, or about to be */
	bool drained;              /* the queue knows that it takes no new work */
	uint64_t
		drain_id; /* of the drain in the store, whether the node is there or not; 0: none */
};

/* Which nodes a pod may use: shared by all pods with the same wishes. */
struct where {
	struct slu_entry e; /* key: signature */
	struct slu_nodeset *set;
	struct slu_nodeset *prefer; /* those it would like best; NULL when nothing is preferred */
	const struct slu_kobj *pod; /* an example, holds the specification */
	bool ports, volumes;
	uint32_t refs;
	char *nowhere; /* why the set is empty, once somebody asked */
};

/* A host port that is counted: see cluster/ports.c. */
struct port {
	uint32_t key, kind;
};

/* Amounts and nodes: pods of one shape are interchangeable slots. */
struct shape {
	struct slu_entry e;
	struct where *where;
	struct slu_amount *need;
	uint32_t n_need;
	bool alone; /* host ports that are not counted: one per node */
	uint32_t refs;
};

struct pod {
	struct slu_entry e; /* key: uid */
	const struct slu_kpod *k;
	struct group *group; /* NULL: not ours to place, or over */
	struct run *run;     /* that holds a slot for it, or queues for it */
	struct node *node;   /* on whose list it stands */
	struct shape *shape; /* ours only */
	uint64_t serial;     /* unique for the life of the process; key of foreign work */
	struct held *stand; /* it only stands for a pod this held Job will make; not in the table */
	char *stand_key;    /* ... under this name in intents */
	bool managed;       /* ours to place: by its schedulerName, or held */
	bool binds;         /* its schedulerName is one of ours: we bind it */
	bool foreign;       /* booked as foreign work */
	uint32_t said_size; /* on its own labels; 0: nothing */
	bool told;          /* PodScheduled=False was written */
	bool kept;          /* has a row in the store */
	int64_t met_us;     /* since when it waits for its controllers to be seen; 0: it does not */
	bool refused;       /* by its scheduler, on the node it was released to */
	int64_t released_us; /* released, but its scheduler has not bound it yet; 0: not so */
};

enum slot_state {
	SLOT_VACANT,  /* kept for a member to come */
	SLOT_CHOSEN,  /* decided, nothing written yet */
	SLOT_BINDING, /* binding on its way */
	SLOT_BOUND,
	SLOT_FAILED, /* cannot be bound */
};

struct slot {
	slu_node node;
	uint32_t role;
	struct pod *pod;
	enum slot_state state;
	int64_t vacant_us; /* since when; 0: never had a member */
};

enum run_state {
	RUN_QUEUED,
	RUN_INTENT, /* decided; waits until the intent is durable */
	RUN_PLACING,
	RUN_RUNNING,
	RUN_UNDOING, /* could not be bound as a whole: what was is being evicted */
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
	SLU_VEC(struct pod *) want; /* QUEUED: pods it will take, by role */
	SLU_VEC(struct slot) slot;
	SLU_VEC(struct core_intent) intent; /* not settled yet */
	uint64_t ticket;                    /* of the newest; UINT64_MAX: its batch is still open */
	bool waits;                         /* is on the list `open` */
	int64_t decided_us, start_s, end_s;
	char *nodes;              /* of all its slots, for people; NULL: not asked for yet */
	bool overdue;             /* was ended for running too long */
	uint32_t ending;          /* a member has ended: `gathering` at that time; 0: none has */
	struct slu_nodeset *near; /* a follower that must be close to its gang; NULL */
	/* what people are told */
	int64_t planned_s;  /* SLU_TIME_NONE */
	int64_t promised_s; /* the first promise; 0: none */
	const char *cause;  /* of the present plan; "" */
	int64_t used;       /* millicore seconds of slots that were given back */
	bool never, refused;
	char *reason;
};

struct group {
	struct slu_entry e; /* key: ns '\0' id.key */
	char *key;
	char *ns;
	char *user; /* who submitted it, where the webhook noted it; else its namespace */
	struct slu_group_id id;
	struct slu_group_wish wish;
	SLU_VEC(struct pod *) pod;
	SLU_VEC(struct run *) run;
	SLU_VEC(struct held *) owned; /* held objects its members come from */
	int64_t first_seen_us;
	uint64_t job;            /* id of the gang's run, also when it is over */
	uint64_t reuse;          /* id a store remembers for the gang; 0: take a new one */
	uint64_t kept, kept_sum; /* id of its row in the store (0: none), and what is in it */
	int64_t promised_s;      /* recalled: the first promise of its gang; 0 */
	char *owner;             /* uid of the controller of its members; NULL */
	bool dirty;
	bool held, cancelled;
	bool begun; /* its gang has started, at least in part: who is left need not wait for all */
	uint32_t ended_ok, ended_bad;
	bool fills;        /* is on the list `fill` */
	bool disrupted;    /* it starts again because somebody took a member away */
	char *wrong;       /* what is wrong with its objects; NULL */
	slu_node avoid[8]; /* nodes that refused a member lately: run/undo.c */
	uint32_t n_avoid, undone;
	int64_t avoid_until_s, again_s;
	bool after_waits; /* for other groups: group/after.c */
	char *after_text;
	char *scheduler;
	/* status last written */
	int64_t told_us, told_start_s, waiting_us, status_us;
	uint32_t told_position, told_times;
	uint32_t told_least, told_most; /* sizes its members say */
	uint64_t told_cause;            /* in the last event */
	const char *told_phase;
	char *told_text; /* dropped when a user cancels, holds or releases the group */
};

/* Objects that are only looked up: owners by uid, the others by kind and name. */
struct thing {
	struct slu_entry e;
	char *key;
	const struct slu_kobj *obj;
};

/* An object that is held, or was: the outermost of a kind we know (hold/rules.h). */
struct held {
	struct slu_entry e; /* key: uid */
	const struct slu_kobj *obj;
	uint64_t serial;
	struct group *group;         /* of its members; NULL */
	SLU_VEC(struct pod *) stand; /* for the pods of a suspended Job */
	bool anew;                   /* its template may have changed */
	bool looks;                  /* is on the list `held_look` */
	bool resumed;                /* a resume is on its way, the mirror has not seen it yet */
	bool failed;                 /* ... and failed, or is to be noted only: at again_us */
	bool there;                  /* ... since all its pods are there */
	bool back;                   /* its turn is taken back: that is on its way */
	bool going, coming; /* a resume ahead of its turn is on its way; so is its taking back */
	char *resume;       /* the patch */
	uint64_t run;       /* for which it was resumed */
	SLU_VEC(slu_node) place; /* ... there */
	int64_t again_us;
	bool asked; /* a patch that holds it was sent for this generation */
	int64_t asked_generation;
	bool marked; /* carries the label fluxqueue/unschedulable */
	/* as last told */
	int64_t told_us;
	uint64_t told;
	int told_state;
};

/* Somebody asked for another size, and the owner was patched. */
struct resize {
	uint64_t serial;
	struct slu_rec_ask *ask;
	char text[256]; /* what it did, once the server says yes */
};

/* A slot of a user's FluxJob was given a node ("": it must go). */
struct phantom_place {
	char *uid, *node;
};

/* A FluxJob: one that wraps held work, or a user's own. */
struct fluxjob {
	struct slu_entry e; /* key: ns/name */
	char *key;
	const char *name;             /* in key */
	const struct slu_kfluxjob *k; /* NULL: not in the cluster (yet) */
	const struct slu_kobj *obj;   /* the held object it wraps; NULL: a user's own */
	bool own;
	bool refused, over, lives; /* a user's own: has phantoms */
	int64_t asked_us;          /* its creation; 0: not asked for */
	uint32_t pods;             /* its spec was last written for so many */
	struct slu_fluxjob_ask ask;
	uint64_t spec; /* hash of what `ask` was read from */
	/* status: as it should be, and since when it is not so */
	enum slu_held_state state;
	bool ok;
	uint64_t job;
	uint32_t position;
	int64_t planned_s, start_s;
	char *nodes, *places, *message;
	char *had_nodes; /* before it had none: told again at its end */
	int64_t had_start_s;
	uint64_t told;
	enum slu_held_state told_state, due_state;
	int64_t due_us, told_us;
	uint32_t told_times; /* in this state */
};

struct slu_core {
	const struct slu_config *cfg;
	struct slu_intents *door, *own_door; /* own: made by slu_core_lead() */
	enum slu_journal_state store;        /* as last logged */
	char store_why[SLU_ERROR_MAX];       /* what is wrong with it; "" */
	struct slu_journal_health store_health;
	struct slu_journal_setup lead; /* own copies */
	char leader[254];              /* another replica that leads; "": none is known */
	bool store_waits;     /* it could not be read, and nothing is decided before it is */
	int64_t next_keep_us; /* when to look for old rows */
	bool store_rewrite;   /* it knows less than we do */
	enum slu_journal_state snap_store; /* as in the last picture */
	struct slu_inbox *in, *out;
	struct slu_queue *q;
	struct slu_qlog *log; /* stands in front of the queue */
	uint64_t log_seq;     /* of the last row kept */
	int64_t log_since_us; /* what was noted is so old at most */
	/* bytes of the log: kept so far, at the mark, known to be durable; tickets */
	int64_t log_bytes, log_marked, log_durable;
	uint64_t log_ticket, log_mark;
	/* the log under way: its bytes, those of the picture it began with, when that was */
	int64_t log_size, log_picture, log_begun_us;
	bool log_due;      /* the next one is to begin */
	bool log_given_up; /* there is no room for one */
	enum {
		CORE_ANEW_NO,
		CORE_ANEW_MADE, /* the beginning is in the batch */
		CORE_ANEW_SENT, /* with a ticket not above this: */
	} log_anew;
	uint64_t log_anew_ticket;
	bool verify;
	uint32_t synced; /* bit per kind */

	struct slu_table nodes, pods, owners, things, groups, runs, wheres, shapes;
	struct slu_table held;
	struct slu_held_sink held_sink;
	SLU_VEC(struct held *) held_look; /* changed: may have to be held */
	SLU_VEC(struct pod *) released;   /* wait for the scheduler they name */
	int64_t next_held_us, next_report_us, next_moved_us, next_ahead_us;
	int32_t default_priority;
	/* What the store remembers, until the first cycle is over: groups, pods of open intents,
	 * those intents. */
	struct slu_table known, meant;
	SLU_VEC(struct core_intent) left;
	bool recovered;
	bool adopting;     /* only what has started is settled */
	int64_t promise_s; /* the next to be submitted was promised this; 0: nothing */
	bool hurry;        /* the cycle under way is the first */
	SLU_VEC(struct group *) dirty;
	SLU_VEC(struct pod *) unowned; /* wait for their controllers: group/members.c */
	SLU_VEC(struct run *) open;    /* wait for the ticket of an intent */
	struct slu_decisions dec;
	/* Gangs whose members are ending, and until when nothing is decided for their sake. */
	uint32_t gathering, n_ending;
	int64_t gather_us;
	SLU_VEC(struct slu_rec_ask *) viewer; /* wait for a fresh snapshot */
	SLU_VEC(struct core_answer) answer;   /* wait for the store */
	SLU_VEC(struct group *) fill;         /* elastic groups with members without a place */
	int64_t filled_us;
	SLU_VEC(struct resize) resize; /* wait for the API server */
	struct {
		struct slu_table job;
		bool absent, said;
		uint32_t open; /* not over, as of the last pass */
		int64_t next_us;
		struct slu_kcodec *codec;          /* makes phantoms */
		SLU_VEC(struct phantom_place) put; /* decided: shown as bound at the next moment */
	} flux;
	uint64_t serial, next_job, next_intent;
	int64_t now_us, now_s, last_seen_us;
	int64_t first_us;        /* when the first record came */
	int64_t plan_seq;        /* of the history of plans: ascends over restarts, too */
	int64_t next_vacancy_us; /* earliest end of a vacancy */
	int64_t next_audit_us, next_status_us, next_undo_us;
	uint32_t binding; /* bindings under way */
	uint32_t waiting; /* groups, as of the last status pass */
	uint32_t near;    /* runs with a set `near` */
	int kind_pods;
	uint64_t kinds_asked; /* bits: kinds that pods named and no node has had */
	SLU_VEC(struct port) port;
	struct {                              /* group/after.c */
		struct slu_map by_name, past; /* names to live groups; to how the others ended */
		SLU_VEC(struct group *) waits;
		bool news; /* a group came, started or ended */
	} after;
	struct { /* recover/census.c; [0]: nodes, [1]: pods */
		struct slu_map suspect[2];
		bool second[2];                  /* a second list is asked for */
		int64_t since_us[2];             /* of the suspicion, or of the asking */
		uint64_t lately[4096], n_lately; /* what went: a list may be older */
	} audit;
	struct slu_counters count;
	struct slu_buf scratch;

	pthread_t thread;
	bool running;
	_Atomic bool stop;
	pthread_mutex_t snap_lock;
	struct slu_snapshot *snap;
	int64_t snap_us;
};

static inline struct pod *pod_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct pod, e) : NULL;
}
static inline struct node *node_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct node, e) : NULL;
}
static inline struct group *group_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct group, e) : NULL;
}
static inline struct run *run_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct run, e) : NULL;
}
static inline struct where *where_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct where, e) : NULL;
}

int core_set_queues(struct slu_core *c, struct slu_error *err);

/* recover/log.c */
/* Apply one event to the queue and note it; a failure is logged (it means a mistake of ours or no
 * memory). */
/* Nobody waits for the end of another job here: no results are kept for that. */
static inline struct slu_queue_opts core_queue_opts(const struct slu_core *c)
{
	return (struct slu_queue_opts){ .verify = c->verify, .keep_results = 1 };
}
int core_apply(struct slu_core *c, struct slu_event *ev);
void core_object_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* A new queue, told again what the mirror holds, and with it a new log.  No run may be there. */
int core_log_begin(struct slu_core *c, struct slu_error *err);
/* What was noted goes into the batch if it matters (or if `all`). */
void core_log_flush(struct slu_core *c, bool all);
/* Between two cycles: begin a new log in the middle, if it is time.  Whether it did, and there is
 * something to send. */
bool core_log_renew(struct slu_core *c);

/* cluster/drains.c */
int core_node_drain(struct slu_core *c, struct node *n, bool drain); /* tell the queue */
int core_drain_ask(struct slu_core *c, const char *name, bool drain, struct slu_error *err);
int core_drain_recall(struct slu_core *c, const struct slu_store_span *s); /* from the store */
void core_drain_keep(struct slu_core *c, struct node *n); /* in the store, if it is drained */
void core_drain_back(struct slu_core *c, struct node *n); /* the node is (again) in the machine */

/* The first cycle after a start with a long queue: decisions first, explanations with the next. */
static inline bool core_hurries(const struct slu_core *c)
{
	return c->hurry && c->groups.n > 5000;
}

/* How long to wait with the next word about one thing that still waits: its position may change
 * with every start, and each word costs a write that competes with bindings.  So they come ever
 * more rarely. */
static inline int64_t core_patience_us(const struct slu_core *c, uint32_t told)
{
	return c->cfg->status.interval_s * 1000000 << SLU_MIN(told, 4u);
}

/* One look at the plan; what it decided is carried out. */
int core_schedule(struct slu_core *c, struct slu_error *err);
/* Hand a write to the io thread. */
void core_write(struct slu_core *c, const struct slu_rec_write *w);

/* cluster/nodes.c */
struct node *core_node(struct slu_core *c, const char *name); /* made if need be; NULL: no memory */
void core_node_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
void core_node_enter(struct slu_core *c, struct node *n, struct pod *p);
void core_node_leave(struct slu_core *c, struct pod *p);
void core_node_describe(struct slu_core *c, struct node *n); /* (again) to the queue */
void core_foreign_add(struct slu_core *c, struct pod *p);
void core_foreign_remove(struct slu_core *c, struct pod *p);
const char *core_node_name(struct slu_core *c, slu_node n);
int core_amounts(struct slu_core *c, const struct slu_kpodspec *s, struct slu_amount **out,
		 uint32_t *n);
void core_nodes_done(struct slu_core *c);

/* cluster/shapes.c */
struct shape *core_shape_get(struct slu_core *c, struct pod *p); /* a reference; NULL: no memory */
void core_shape_put(struct slu_core *c, struct shape *s);
void core_shapes_node(struct slu_core *c, struct node *n); /* the node changed: look again */
void core_shapes_thing(struct slu_core *c);                /* a volume changed: look again */
void core_shapes_anew(struct slu_core *c);                 /* nodes have new indices */

/* cluster/ports.c */
int core_port_kind(const struct slu_core *c, const struct slu_khostport *p); /* or -ENOENT */
void core_ports_want(struct slu_core *c, const struct slu_kpodspec *s); /* count them from now on */
bool core_ports_counted(const struct slu_core *c, const struct slu_kpodspec *s); /* all of them */
/* A port of the pod that is not counted is taken by another pod there. */
bool core_ports_clash(const struct slu_core *c, const struct node *n, const struct pod *p);
/* At most nhost_ports amounts. */
uint32_t core_ports_amounts(const struct slu_core *c, const struct slu_kpodspec *s,
			    struct slu_amount *out);

/* cluster/pods.c */
void core_pod_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
void core_owner_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
void core_thing_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
const struct slu_kobj *core_thing(struct slu_core *c, enum slu_kkind kind, const char *ns,
				  const char *name);
/* What a PriorityClass gives; "", or one that is not there: the default. */
int32_t core_priority(struct slu_core *c, const char *class);
const struct slu_kobj *core_owner(struct slu_core *c, const char *uid); /* NULL: not seen */
void core_source(struct slu_core *c, const struct slu_kpod *k, struct slu_group_source *out);
const struct slu_kpodgroup *core_podgroup(struct slu_core *c, const struct group *g);
bool core_binds(const struct slu_core *c, const struct slu_kpod *k); /* we, not another */
void core_pods_done(struct slu_core *c);

/* group/members.c */
void core_member_meet(struct slu_core *c, struct pod *p); /* ours and alive: joins, or waits to */
void core_member_forget(struct slu_core *c, struct pod *p);
void core_members_join(struct slu_core *c); /* who has waited long enough */
int64_t core_members_wake_us(const struct slu_core *c);
/* Members that have done their part, as their Jobs say. */
uint32_t core_members_done(struct slu_core *c, const struct group *g);

/* group/groups.c: gathering, following, who belongs to which group */
struct group *core_group_find(struct slu_core *c, const char *ns, const char *key);
struct group *core_group_join(struct slu_core *c, struct pod *p);
void core_group_leave(struct slu_core *c, struct pod *p, bool ended);
void core_group_dirty(struct slu_core *c, struct group *g);
void core_groups_settle(struct slu_core *c);            /* look at every dirty group */
void core_group_settle(struct slu_core *c, uint32_t i); /* at the i-th of them */
bool core_pod_startable(const struct pod *p);
void core_group_free(struct slu_core *c, struct group *g);
/* All its members are where somebody else put them: on nodes that are not ours to use. */
bool core_group_elsewhere(const struct group *g);
int core_run_role(struct run *r, struct shape *s); /* its number, new if need be; -E2BIG, -ENOMEM */

/* group/wish.c */
/* Read what the group asks for into g->wish; false: it is wrong, or cannot be said yet. */
bool core_wish_read(struct slu_core *c, struct group *g);
/* What is wrong with it, once: an event names it, and it is not planned until mended. */
void core_group_wrong(struct slu_core *c, struct group *g, const char *fmt, ...) SLU_PRINTF(3, 4);

/* run/adopt.c */
void core_adopt(struct slu_core *c, struct group *g); /* a group without runs: what runs, runs */

/* run/vacant.c: places kept for members to come */
uint32_t core_vacant(const struct group *g);
/* Members the controller still wants alive; what we saw end counts before its status says so. */
int64_t core_group_wanted(struct slu_core *c, const struct group *g);
/* Its kubelet refused it or threw it out: the next one would fare no better there for a while. */
bool core_pod_turned_away(const struct pod *p);
bool core_vacant_kept(struct slu_core *c, const struct pod *p); /* one who leaves leaves a place */
void core_vacant_fill(struct slu_core *c, struct group *g);
/* More places kept than members to come, or their time is over: give them back. */
void core_vacant_trim(struct slu_core *c, struct group *g);
void core_vacancies(struct slu_core *c); /* let those go whose time is over */

/* run/runs.c */
struct run *core_run_new(struct slu_core *c, struct group *g, bool gang);
void core_run_free(struct slu_core *c, struct run *r);
int core_run_submit(struct slu_core *c, struct run *r); /* or tell the queue what changed */
void core_run_register(struct slu_core *c, struct run *r, int64_t start_s); /* it runs already */
void core_run_end(struct slu_core *c, struct run *r, enum slu_result how);
void core_slot_vacate(struct slu_core *c, struct run *r, struct pod *p, bool keep);
void core_slot_drop(struct slu_core *c, struct run *r, uint32_t i);
/* A gang is just ending: no decision before all of it has ended, or the moment has passed. */
bool core_gathers(struct slu_core *c);
/* Give a vacant place to a member, which may leave its own queued run for it. */
bool core_slot_take(struct slu_core *c, struct run *r, uint32_t i, struct pod *p);
struct slot *core_slot_of(struct pod *p);
/* The place whose pod was written to; NULL: the pod or the run (which may be NULL) has gone. */
struct slot *core_slot_written(struct run *r, const struct slu_rec_written *w);

/* run/decide.c */
void core_decisions(struct slu_core *c);                 /* carry out what the queue decided */
void core_run_intend(struct slu_core *c, struct run *r); /* what was chosen becomes an intent */
/* ... or what is bound goes back; -ENOMEM: nothing of it may be written. */
int core_intend(struct slu_core *c, struct run *r, bool evict);
void core_slot_bind(struct slu_core *c, struct run *r, struct slot *s);
void core_place_durable(struct slu_core *c); /* and is carried out once that is durable */
void core_written(struct slu_core *c, const struct slu_rec_written *w);
void core_intents_settle(struct slu_core *c, struct run *r, enum slu_store_intent_state how);
void core_run_settled(struct slu_core *c, struct run *r);
void core_evict(struct slu_core *c, const struct pod *p);
/* Why no node may take pods of one of its roles, where that is so: ": node selector on 16, ...". */
const char *core_nowhere(struct slu_core *c, const struct run *r);
/* How long a chosen place may fail before the gang is taken back. */
int64_t core_place_limit_ns(const struct slu_core *c, const struct group *g);
void core_deadlines(struct slu_core *c); /* end what runs too long, where told to */
/* The run is over: whatever was intended is settled. */
void core_run_close(struct slu_core *c, struct run *r);

/* hold/objects.c */
void core_held_owner(struct slu_core *c, const struct slu_kobj *obj, bool gone);
/* Look again at all objects of the namespace (NULL: of all). */
void core_held_space(struct slu_core *c, const struct slu_kobj *ns);
void core_held_pod(struct slu_core *c, struct pod *p, bool gone);
void core_held_look(struct slu_core *c); /* hold what the webhook did not see */
void core_held_unlink(struct group *g);  /* the group goes */
void core_held_done(struct slu_core *c);
/* Members its held Jobs want alive; -1: none of its members comes from one. */
int64_t core_held_wanted(const struct group *g);
/* Pods of its owners that somebody else placed, and that live. */
uint32_t core_held_strangers(struct slu_core *c, const struct group *g);
void core_held_leave(struct slu_core *c, struct held *h); /* let go of its stand-ins */
void core_held_again(struct slu_core *c, struct held *h); /* look at it in the next cycle */

/* hold/ahead.c: Jobs that are resumed before their turn */
bool core_ahead_is(const struct held *h);
uint32_t core_ahead_pods(const struct held *h); /* of its members that exist and may start */
/* It is ahead by the cluster, but has had its turn. */
bool core_ahead_begun(struct slu_core *c, const struct held *h);
void core_ahead(struct slu_core *c); /* who may go, who must come back */
/* What an answer to a patch of the Job means; true: that was all of it. */
bool core_ahead_written(struct slu_core *c, struct held *h, const struct slu_rec_written *w);

/* hold/release.c */
/* Where a pod is or must go: its node, or the one it was released to; NULL: undecided. */
const char *core_pod_at(const struct pod *p);
const char *core_pod_uid(const struct pod *p); /* in intents */
/* As which the i-th stand-in of a held Job is known there. */
#define CORE_STAND_KEY 120
void core_stand_key(char *buf, size_t n, const char *job, uint32_t i);
void core_held_resume(struct slu_core *c, struct run *r); /* Jobs whose stand-ins have a slot */
void core_held_release(struct slu_core *c, struct run *r, struct slot *s);
/* A Job of its (this one) was resumed, and is not seen to be yet: the intent is not carried out. */
bool core_held_resumes(const struct run *r);
bool core_held_resumed(const struct run *r, const struct held *h);
void core_held_written(struct slu_core *c, const struct slu_rec_written *w);
void core_held_watch(struct slu_core *c); /* released pods that are refused, resumes that failed */
void core_held_released(struct slu_core *c, struct pod *p); /* (or not any more) */
void core_held_gone(struct slu_core *c, struct pod *p);
/* After a start: a place a released Job of the group had that `r` does not hold; NULL.  Borrowed
 * until the next call. */
const char *core_held_place(struct slu_core *c, const struct group *g, const struct run *r);

/* hold/view.c */
void core_held_report(struct slu_core *c);

/* recover/store.c */
void core_store_watch(struct slu_core *c);
void core_store_keep(struct slu_core *c); /* how much history stays */
/* Its intent is durable, or the settings say not to wait for a store that is away. */
bool core_may_place(const struct slu_core *c, const struct run *r);
/* In words; `buf` is used if need be. */
const char *core_store_text(const struct slu_core *c, char *buf, size_t n);
void core_store_rewrite(struct slu_core *c); /* everything, in place of what is there */
void core_store_done(struct slu_core *c);

/* recover/keep.c: rows of the store */
uint64_t core_keep_sum(const struct slu_store_job *j); /* equal: the row need not be written */
int core_run_keep(struct slu_core *c, const struct run *r, enum slu_store_job_state state);
void core_group_keep(struct slu_core *c, struct group *g); /* what changed since the last time */
int core_group_keep_anew(struct slu_core *c, struct group *g);
void core_group_unkeep(struct slu_core *c, struct group *g); /* it is gone */
void core_pod_unkeep(struct slu_core *c, struct pod *p);
void core_used(struct slu_core *c, struct run *r, const struct slot *s); /* a slot is given back */

/* recover/recover.c */
int core_recover(struct slu_core *c, struct slu_journal_setup *setup, struct slu_error *err);
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
/* Settle what runs, then what was promised a start; the others come after. */
void core_recover_plan(struct slu_core *c);
void core_recovered(struct slu_core *c); /* settle what is left, forget the rest */
void core_forget(struct slu_core *c);

/* report/status.c */
void core_tell(struct slu_core *c, struct pod *p, const char *reason, bool warning, const char *fmt,
	       ...) SLU_PRINTF(5, 6);
void core_podgroup_status(struct slu_core *c, struct group *g);
void core_status(struct slu_core *c); /* write what waiting work is told */
void core_run_reason(struct run *r, const char *text);

/* core.c */
struct group *core_group_named(struct slu_core *c, const char *ns, const char *name);
int core_ask_group(struct slu_core *c, const struct slu_rec_ask *a, struct slu_error *err);

/* ask/ask.c */
void core_cancel_note(struct slu_core *c,
		      struct group *g); /* its cancelled or not, in the cluster */
bool core_cancel_noted(const struct slu_group_source *src);
/* Answer when it is in the store; true: the record is kept until then. */
bool core_answer_later(struct slu_core *c, struct slu_rec_ask *a, const char *text);
void core_answers_sent(struct slu_core *c, uint64_t ticket);
void core_answers(struct slu_core *c);
void core_answers_done(struct slu_core *c);
/* Do it and answer; true: the record is kept for the answer. */
bool core_asked(struct slu_core *c, struct slu_rec_ask *a);

/* run/elastic.c: members beyond the minimum, with room that is left */
bool core_elastic_takes(const struct group *g, const struct pod *p); /* it follows no other way */
void core_elastic_wait(struct slu_core *c, struct group *g);         /* some member has no place */
void core_elastic_forget(struct slu_core *c, struct group *g);
void core_elastic(struct slu_core *c); /* after the queue had its turn */
void core_elastic_grown(struct slu_core *c, struct run *r, const struct slu_decision *d);

/* fluxjob/fluxjobs.c */
void core_fluxjob_synced(struct slu_core *c, bool absent);
void core_fluxjob_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone);
struct fluxjob *core_fluxjob_of(struct slu_core *c, const char *ns, const char *name);
void core_fluxjobs(struct slu_core *c); /* write what changed, end what is over */
void core_fluxjobs_done(struct slu_core *c);

/* fluxjob/status.c */
void core_fluxjob_due(struct slu_core *c, struct fluxjob *f); /* it differs: write it, but when? */
void core_fluxjob_tell(struct slu_core *c, struct fluxjob *f);
uint64_t core_fluxjob_digest(const struct fluxjob *f);
bool core_fluxjob_over(const struct fluxjob *f); /* its state is the last one */

/* fluxjob/phantom.c: pods that exist only here, one for each slot of a user's FluxJob */
bool core_phantom_is(const char *uid);
int core_phantoms_make(struct slu_core *c, struct fluxjob *f);
void core_phantoms_end(struct slu_core *c, struct fluxjob *f, const struct slu_kfluxjob *k,
		       bool ok);
void core_phantom_write(struct slu_core *c, const struct slu_rec_write *w);
void core_phantoms_place(struct slu_core *c);

/* ask/resize.c */
void core_resize(struct slu_core *c, struct slu_rec_ask *a); /* takes it over */
void core_resize_written(struct slu_core *c, const struct slu_rec_written *w);
void core_resize_done(struct slu_core *c);

/* group/native.c: PodGroups of scheduling.k8s.io */
bool core_native_lacks(struct slu_core *c, const struct group *g); /* its PodGroup is not there */
/* What its PodGroup asks for beyond slu_group_wish(); pg may be NULL or of another kind. */
int core_native_wish(struct slu_core *c, const struct slu_kpodgroup *pg, struct slu_group_wish *w,
		     struct slu_error *err);
/* The member was disrupted, and its group can only be disrupted as a whole. */
bool core_native_together(struct slu_core *c, const struct pod *p);
void core_native_status(struct slu_core *c, struct group *g, const struct slu_kpodgroup *pg);

/* run/near.c: members that come later stay in the gang's rack, where that was required */
int core_near_set(struct slu_core *c, struct run *r); /* before it is submitted */
void core_near_free(struct slu_core *c, struct run *r);
void core_near_node(struct slu_core *c); /* some node changed: look again */

/* recover/audit.c */
void core_audit(struct slu_core *c);

/* report/podgroups.c */
void core_podgroups_audit(struct slu_core *c);

/* run/undo.c */
void core_run_undo(struct slu_core *c, struct run *r);   /* evict what is bound, then gather anew */
void core_undo_evict(struct slu_core *c, struct run *r); /* its intent is durable */
void core_undo_answered(struct slu_core *c, struct run *r);
void core_undo_again(struct slu_core *c);
/* Nobody of the group goes there for so many seconds. */
void core_undo_avoid(struct slu_core *c, struct group *g, slu_node n, int64_t seconds);
/* The nodes without those that are avoided, a new set; NULL: all of them, or no memory. */
struct slu_nodeset *core_undo_nodes(const struct group *g, const struct slu_nodeset *all);

/* group/after.c */
void core_after_born(struct slu_core *c, struct group *g);
void core_after_recall(struct slu_core *c, const struct slu_store_result *r);
void core_after_gone(struct slu_core *c, struct group *g);
void core_after_wake(struct slu_core *c);                    /* look again who may start */
bool core_after_blocks(struct slu_core *c, struct group *g); /* it waits for another group */
void core_after_done(struct slu_core *c);

/* recover/census.c */
void core_census(struct slu_core *c, const struct slu_rec_census *r);
void core_census_gone(struct slu_core *c, const struct slu_kobj *o);
void core_census_settle(struct slu_core *c);
int64_t core_census_wake_us(const struct slu_core *c);
void core_resent(struct slu_core *c, const struct slu_rec_resent *r);

/* report/snapshot.c */
/* Publish if somebody waits for it or the last one is old. */
void core_snapshot_publish(struct slu_core *c);
