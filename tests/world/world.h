/* world.h — a cluster in a box: one thread, one seed, virtual time.
 *
 *	script (users, faults) ──► API server ──► watches ──► daemon: mirror ─► core ─► store
 *	                            ▲      ▲                                     │
 *	              controllers ──┘      └──────────── writes ◄────────────────┘
 *	              kubelets, schedulers
 *
 * The daemon's code is the real one; everything around it is a model that runs on a heap of ticks.
 * Whatever is random comes from the seed, whatever is harmful comes from the script, and the script
 * is a list: so a failure can be repeated, and made smaller by leaving entries out.
 *
 * Objects stay in memory until the world ends, also those that are gone: the invariants ask what a
 * daemon had been told about them. */
#pragma once
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "kube/object.h"

#define SECOND   INT64_C(1000000)
#define DAEMONS  2
#define EPOCH_US (INT64_C(1767225600) * SECOND)
#define NEVER    INT64_MAX

struct world;
struct obj;
struct daemon;

/* ---- objects (kube.c) ---- */

enum fin { FIN_FOREGROUND = 1, FIN_ORPHAN = 2, FIN_JOB = 4, FIN_USER = 8 };
enum gate { GATE_OURS = 1, GATE_OTHER = 2 };
enum phase { PENDING, RUNNING, SUCCEEDED, FAILED };

struct pair {
	char key[40], value[88];
};

struct pairs {
	struct pair p[8];
	uint32_t n;
};

/* What a pod is made from. */
struct tmpl {
	char scheduler[20];
	int32_t cpu_m, limit_m; /* requests; limit_m alone: the server fills in the request */
	int32_t run_s;          /* how long its work takes; 0: it serves until it is deleted */
	int32_t fail;           /* of a thousand runs so many fail */
	uint8_t gates;
	int32_t port;    /* of its node, which it needs for itself; 0: none */
	bool tolerates;  /* the taint that nodes may carry */
	char native[16]; /* schedulingGroup; "": none */
	char pool[8];    /* node selector; "": any */
	/* classes.c: names of classes and of a claim; what the runtime takes beside */
	char priority[8], runtime[8], claim[16];
	int32_t overhead_m;
	struct pairs label, note;
};

struct pod {
	struct tmpl t;
	char node[24], pin[24]; /* bound to; released to */
	enum phase phase;
	char reason[32];
	int32_t index; /* of an indexed Job; -1 */
	int32_t priority;
	int64_t start_us, end_us;
	bool unschedulable; /* condition PodScheduled=False */
	bool counted;       /* by its Job */
	int by;             /* who bound it: a daemon, or -1 for somebody else */
	int64_t bound_us;
	bool late;        /* bound or let go by a daemon that was dead by then */
	char sent[24];    /* the node that a bind on its way, or done, names ... */
	uint64_t sent_by; /* ... of that life */
	bool bad;         /* its text cannot be decoded */
	bool trying;      /* the default scheduler will look again */
};

struct node {
	int32_t cpu_m;
	bool cordoned, taint, ready;
	char pool[8], rack[8];
};

struct job {
	struct tmpl t;
	int32_t parallelism, completions, backoff; /* completions -1: a work queue */
	int32_t deadline_s;                        /* 0: none */
	bool indexed, suspend;
	int32_t active, succeeded, failed;
	bool complete, failed_cond, suspended; /* conditions */
	int64_t start_us;                      /* since when it may have pods */
	uint32_t made;                         /* pods, for their names */
	uint64_t done;                         /* indexes */
	int64_t quiet_us;                      /* backoff after a failure */
	bool first_ends;                       /* successPolicy: index 0 decides */
	bool failure_ends;                     /* podFailurePolicy: one failure fails the Job */
	bool by_user;                          /* its user suspended it when it was made */
	bool failure_ignored;                  /* ... or none counts */
};

struct set { /* ReplicaSet, Deployment, StatefulSet */
	struct tmpl t;
	int32_t replicas, now;
	uint32_t made, revision;
	bool parallel; /* StatefulSet: not one by one */
};

struct space {
	bool held;
};

/* Kinds whose spec and status are carried as they were written (custom.c). */
struct custom {
	char *spec, *status; /* JSON */
	int32_t min;         /* PodGroups: members that start together; classes: their number */
	bool own; /* FluxJobs: somebody's own, not one of held work; claims: they are bound */
};

/* A JobSet as its controller sees it (jobset.c); the daemon knows no such kind. */
struct jobset {
	struct tmpl t;
	int32_t jobs, size, restarts, made;
};

struct obj {
	enum slu_kkind kind;
	char ns[12], name[48];
	uint64_t uid, rv, generation;
	int64_t created_us, deleted_us, gone_us; /* 0: not */
	uint8_t fin;
	bool due;        /* its controller has been told to look */
	bool orphan;     /* its owner was deleted without it, or the owner's */
	bool missed;     /* the webhook was not asked about it */
	bool asked;      /* somebody asked the daemon to hold or cancel it */
	bool ends_never; /* it serves, or is ended and begins again: it is deleted in the end */
	uint32_t big;    /* bytes of an annotation that means nothing to anybody */
	bool edited; /* somebody changed what it says: it is no longer said what should become of it */
	int64_t changed_us;
	struct pairs label, note;
	uint64_t owner; /* uid of its controller; 0: none */
	enum slu_kkind owner_kind;
	char owner_name[48];
	/* When each daemon was told: that it is going (or gone), of a pod that it is bound, of a
	 * node or an owner that something about it changed.  0: not yet. */
	int64_t told_doomed[DAEMONS], told_bound[DAEMONS], told_change[DAEMONS];
	uint64_t told_rv[DAEMONS]; /* the newest version it has seen */
	union {
		struct pod pod;
		struct node node;
		struct job job;
		struct set set;
		struct space space;
		struct custom custom;
		struct jobset jobset;
	};
};

/* ---- the server's log of one kind, which watches read ---- */

enum { LINE_ADDED, LINE_MODIFIED, LINE_DELETED };
struct line {
	uint64_t rv;
	int64_t at_us;
	struct obj *o;
	int what;
	bool doomed, bound;
	char *text;
	uint32_t n;
};
struct wlog {
	SLU_VEC(struct line) line;
	uint32_t first; /* older ones are gone: 410 */
};

/* ---- time ---- */

struct tick {
	int64_t at_us;
	uint64_t seq;
	void (*fn)(struct world *w, uint64_t a, uint64_t b);
	uint64_t a, b;
};

/* ---- the script ---- */

struct op {
	const char *name;
	unsigned weight;
	void (*fn)(struct world *w, struct slu_rng *r);
	unsigned since; /* the age of worlds it belongs to: older stories are told without it */
};
#define AGE_NOW 2u /* of worlds without --age; actions and rules of age 3 are asked for by name */

struct entry {
	int64_t at_us;
	uint32_t op;
	uint64_t seed;
};
/* One table per file, terminated by a row without a name; world.c lists them. */
extern const struct op user_ops[], fault_ops[], custom_ops[], edit_ops[], setting_ops[], disk_ops[],
	machine_ops[], class_ops[], client_ops[];

/* After the script: what was held is released for good; services go. */
void users_release(struct world *w);
void users_leave(struct world *w);
/* clients.c: they give back what they matched; whether they may hold room that no pod shows. */
void clients_leave(struct world *w);
bool clients_hold(const struct world *w);
/* settings.c: everything as it was. */
void settings_calm(struct world *w);
/* disk.c: once for the process; forget copies; a transaction begins (or is over), with whatever is to
 * happen to it; the daemon dies here. */
void disk_begin(void);
void disk_done(struct world *w);
void disk_tear(struct world *w, bool on);
void disk_die(struct world *w, int n);

/* What is wrong with the network, the servers and the clocks just now (faults.c). */
struct faults {
	int lose_before, lose_after, conflict, strained, fail, late, twice,
		answer_late; /* next so many writes */
	int64_t watch_delay_us[SLU_KIND_COUNT], watch_until_us[SLU_KIND_COUNT];
	int skip[SLU_KIND_COUNT];               /* watch events that vanish */
	int64_t stall_until_us[SLU_KIND_COUNT]; /* controllers by kind of what they look at */
	int64_t store_away_until_us, store_slow_until_us;
	int64_t miss_until_us;   /* calls of the webhook are lost */
	int64_t budget_until_us; /* evictions are refused: a PodDisruptionBudget */
	int64_t quota_until_us;  /* a namespace has at most so many pods */
	uint32_t quota;
	int64_t start_slow_until_us; /* kubelets take long to start pods */
	int refuse;                  /* next so many pods that a kubelet does not take */
	int store_forgets;           /* next so many commits are done, and nobody hears of it */
	int64_t store_full_until_us;
	int pages_gone; /* next so many pages of a list that are too old when they are asked for */
	int store_tears; /* next so many transactions that are interrupted, after so many steps each */
	uint32_t tear_after;
	int die_at_bind; /* next so many binds that take their time, and the daemon dies meanwhile */
	int die_at_commit; /* 1: the daemon dies before its next commit; 2: right after it */
};

/* The node was deleted: its pods, and those that are bound to it by then, are collected after a while. */
void faults_node_gone(struct world *w, const struct obj *node);
/* A bind takes its time, and the daemon that sent it dies. */
void faults_at_bind(struct world *w);

struct world {
	uint64_t seed;
	int64_t now_us, end_us, limit_us; /* of the script; until when all must be over */
	uint64_t events;
	struct slu_rng rng;
	SLU_VEC(struct tick) heap;
	uint64_t seq;
	SLU_VEC(struct entry) script;
	const bool *off; /* entries to leave out; NULL: none */
	uint32_t n_off;
	const char *only;     /* names of actions, with commas between; NULL: all */
	unsigned age;         /* actions and rules that came later are left out */
	bool protobuf;        /* the server's encoding; else JSON */
	bool bookmarks;       /* watches have them */
	uint32_t page;        /* items of a list that come at once; 0: all */
	bool customs;         /* the server knows PodGroups, FluxJobs and Reservations */
	bool lives;           /* compare lives; see lives.c */
	uint64_t recorded;    /* kinds whose lists and watches are a recording; see recorded.c */
	const char *postgres; /* URL of a server for the stores of other lives; NULL: in memory */
	uint64_t compared, handed_over;
	bool hooked; /* somebody answers the webhook's calls though no daemon lives */
	bool calm;
	bool restart; /* jobs.onMemberFailure */
	bool leased;  /* a store that is shared, and a Lease with terms; else a file with a lock */
	int64_t term; /* of whoever leads */
	/* API server */
	SLU_VEC(struct obj *) obj[SLU_KIND_COUNT];
	struct slu_map by_uid;
	struct wlog log[SLU_KIND_COUNT];
	uint64_t rv, next_uid, next_name;
	struct slu_buf buf;
	/* the rest */
	struct daemon *daemon[DAEMONS];
	struct faults fault;
	void *disk; /* keeps the store's file in memory alive */
	char store[40];
	struct settings {
		uint8_t policy[2];  /* of the queues */
		bool renamed;       /* the second queue has another name */
		bool enforce;       /* jobs.enforceDeadlines */
		bool removed;       /* the second queue is not there */
		bool racks;         /* false: no level of topology has their label */
		uint32_t running;   /* maxRunning of the second queue */
		uint32_t per_user;  /* maxRunningPerUser of the first */
		uint32_t max_size;  /* of the second */
		int vacant_s;       /* jobs.holdVacant */
		bool other_name;    /* schedulerNames has another name than that of all pods */
	} set, first_set;           /* now; as the world began */
	int64_t set_us;             /* changed at that time */
	bool restarted;             /* w->restart has been true */
	int64_t stepped_us;         /* a daemon's clock was set for the first time; 0: never */
	bool limits_set;            /* somebody asked for another limit of a job */
	bool mixed;                 /* queues or policies were changed */
	bool forgot;                /* a daemon lost the rows of groups that had begun */
	uint64_t writes, wrote[12]; /* by daemons; by verb */
	bool resting;               /* nothing happens any more */
	bool slow;                  /* hours pass, with no more actions than else in minutes */
	uint32_t matches;           /* that clients of the Fluxion services asked for, ... */
	SLU_VEC(uint64_t) match;    /* ... and the numbers of those they were given */

	struct due {
		uint64_t job; /* 0: none */
		char ns[12], name[48];
		int64_t planned_s, lead_us;
	} due; /* the first promise that a new life finds in the store; see promises.c */

	struct slu_strpool *pool;
	struct slu_map gangs;
	/* verdict */
	bool failed;
	char rule[40], what[600];
	FILE *story;     /* told as it goes; NULL: nobody listens */
	uint64_t digest; /* of everything that happened */
};

/* ---- world.c ---- */

/* Run the world of a seed to its end or to the first broken rule (w->failed).  The caller frees. */
void world_run(struct world *w);
void world_free(struct world *w);
void world_at(struct world *w, int64_t at_us, void (*fn)(struct world *, uint64_t, uint64_t),
	      uint64_t a, uint64_t b);
/* Microseconds in [lo, hi), from the seed and a number that tells the occasion. */
int64_t world_span(struct world *w, uint64_t occasion, int64_t lo, int64_t hi);
/* One line of the story. */
void world_say(struct world *w, const char *fmt, ...) SLU_PRINTF(2, 3);
/* A rule is broken; the first one counts. */
void world_broken(struct world *w, const char *rule, const char *fmt, ...) SLU_PRINTF(3, 4);
/* The configuration file as it is now. */
void world_config(const struct world *w, char *text, size_t size);
const struct op *world_op(uint32_t i);
uint32_t world_ops(void);

/* ---- kube.c: the API server ---- */

struct obj *kube_new(struct world *w, enum slu_kkind kind, const char *ns, const char *name);
/* Publish a new object; false: one of that name exists (the caller's object is gone). */
bool kube_create(struct world *w, struct obj *o);
void kube_changed(struct world *w, struct obj *o, bool spec); /* spec: the generation moves */
enum cascade { BACKGROUND, FOREGROUND, ORPHAN };
void kube_delete(struct world *w, struct obj *o, enum cascade how);
/* The deletion of a pod as its kubelet confirms it. */
void kube_remove(struct world *w, struct obj *o);
void kube_unfinalize(struct world *w, struct obj *o, uint8_t fin);
struct obj *kube_get(struct world *w, uint64_t uid);
struct obj *kube_find(struct world *w, enum slu_kkind kind, const char *ns, const char *name);
/* Pods of a controller that are neither over nor going. */
uint32_t kube_alive(struct world *w, uint64_t owner);
static inline bool is_live(const struct obj *o)
{
	return o && !o->gone_us;
}
static inline bool is_over(const struct obj *pod)
{
	return pod->pod.phase >= SUCCEEDED;
}
void pairs_set(struct pairs *p, const char *key, const char *value); /* NULL removes */
const char *pairs_get(const struct pairs *p, const char *key);
/* Bind a pod: the outcome as an API server answers it (enum slu_kube_outcome). */
int kube_bind(struct world *w, struct obj *pod, const char *node, int by);
int kube_evict(struct world *w, struct obj *pod);
/* The first line of the kind's log behind that version; false: 410, lines behind it are gone. */
bool kube_since(struct world *w, enum slu_kkind kind, uint64_t rv, uint32_t *at);
/* A controller shall look at the object. */
void kube_look(struct world *w, struct obj *o);
int64_t kube_used(struct world *w, const char *node); /* millicores */
static inline int32_t cpu_of(const struct obj *pod)
{
	return pod->pod.t.cpu_m + pod->pod.t.overhead_m;
}

/* admission.c: ask the webhook about a new object; false: it refuses. */
extern bool admit_binds; /* of all worlds: held work names Sluice instead of the gate (--bind) */
bool admit(struct world *w, struct obj *o);

/* ---- kube_text.c ---- */

void kube_text(const struct obj *o, struct slu_buf *b);

/* ---- controllers by kind; called some time after something changed ---- */

void job_look(struct world *w, struct obj *o);
void set_look(struct world *w, struct obj *o);
void jobset_look(struct world *w, struct obj *o);
/* custom.c: the fields of an object whose spec is text; patches of the daemon. */
bool is_custom(enum slu_kkind k);
void custom_text(const struct obj *o, struct slu_buf *b);
void custom_free(struct obj *o);
struct slu_json;
void custom_merge(struct obj *o, bool status, const struct slu_json *patch);
/* One the daemon made, from its text; an outcome as of kube_bind(). */
int custom_create(struct world *w, enum slu_kkind kind, const char *text);
/* A FluxJob of somebody's own holds nodes, as its status says. */
bool custom_holds(const struct world *w);
/* classes.c: kinds whose fields are text beside the metadata (custom.spec). */
bool is_plain(enum slu_kkind k);
/* Millicores a pod of the template asks for, all told. */
int32_t classes_cpu(struct world *w, const char *ns, const struct tmpl *t);
/* The server's own admission of a new pod. */
void classes_admit(struct world *w, struct obj *pod);
/* The one node where its volume is; "": it has none; NULL: its claim is not bound yet. */
const char *classes_node(struct world *w, const char *ns, const struct tmpl *t);
void kubelet_look(struct world *w, struct obj *pod);
void scheduler_look(struct world *w, struct obj *pod);
void gc_owner_gone(struct world *w, struct obj *owner);
void gc_tick(struct world *w, uint64_t a, uint64_t b);
/* false: a quota is in the way. */
bool make_pod(struct world *w, struct obj *owner, const struct tmpl *t, const char *name,
	      int32_t index, bool tracked);

/* ---- daemon.c ---- */

struct daemon *daemon_start(struct world *w, int n);
void daemon_kill(struct world *w, int n, const char *how);
bool daemon_alive(const struct world *w, int n);
/* A promise on the node is due in this second: the plan counts its room already. */
bool daemon_promised(const struct world *w, int n, const char *node);
/* It leads, and has read the store and the cluster: whoever asks it something is not put off. */
bool daemon_answers(const struct world *w, int n);
/* Its view was cut off: list again. */
void daemon_relist(struct world *w, int n, enum slu_kkind kind);
/* Its watch of the kind breaks, in the middle of an event if one is on its way, and goes on later. */
void daemon_break(struct world *w, int n, enum slu_kkind kind, int64_t for_us);
void daemon_expire(struct world *w, int n, enum slu_kkind kind);
void daemon_pause(struct world *w, int n, int64_t until_us);
void daemon_step_clock(struct world *w, int n, int64_t by_us);
void daemon_ask(struct world *w, int n, int what, const char *ns, const char *name);
/* ... with whatever belongs to it; text is copied. */
struct slu_rec_ask;
void daemon_ask_for(struct world *w, int n, const struct slu_rec_ask *like);
/* The configuration is read again. */
void daemon_reload(struct world *w, int n);
/* Something new is in the log of a kind. */
void daemon_news(struct world *w, enum slu_kkind kind);
/* The books of the daemon that leads: free millicores of a node; -1: it does not know it. */
struct slu_snapshot *daemon_picture(struct world *w, int n);
/* Nothing it was told so lately counts against it. */
int64_t daemon_excuse_us(const struct world *w, int n);

/* requests.c: forget what is on its way; a patch (JSON) of somebody, an outcome as of kube_bind(). */
void requests_drop(struct world *w);
int requests_patch(struct world *w, struct obj *o, const char *text);

/* ---- lives.c ---- */

/* Is what another life would make of the same store and cluster the same? */
void lives_compare(struct world *w, struct slu_rng *r);
bool lives_wants(const struct world *w, const struct op *o);

/* ---- recorded.c ---- */

/* Whether all was as the recording says; the text tells how much was compared, or what differs. */
bool recorded_run(const char *file, bool story, char *text, size_t size);

/* ---- honest.c ---- */

void honest_run(void);
/* world.c: a server with nodes and nobody else; so many seconds pass. */
void world_bare(struct world *w);
void world_pass(struct world *w, int64_t seconds);

/* ---- promises.c ---- */

void rule_leads(struct world *w); /* a daemon is about to read the store */

/* ---- invariants.c ---- */

void rule_bind(struct world *w, int by, int64_t issued_us, struct obj *pod, const char *node);
/* `meant`: the uid of the pod that the daemon decided to evict; `other`: the request names another. */
void rule_evict(struct world *w, int by, struct obj *pod, uint64_t meant, bool other);
/* A bind has left the daemon; or it says something about an object. */
void rule_sent(struct world *w, int by, uint64_t life, struct obj *pod, const char *node);
void rule_said(struct world *w, int by, const struct obj *o, const char *reason);
void rule_commit(struct world *w, int by, int64_t term); /* something is in the store */
void rule_writes(struct world *w, uint64_t since); /* it wrote so many in a long while of rest */
void rule_overdue(struct world *w, const struct obj *pod);  /* it is said to have run too long */
void rule_started(struct world *w, const struct obj *pod);  /* its kubelet has started it */
uint64_t rule_gang(struct world *w, const struct obj *pod); /* equal: they start together */
void rule_quiet(struct world *w, bool replay); /* replay: the event log, too, which takes long */
/* Whether everything that can run has run. */
bool rule_drained(struct world *w);
void rule_not_drained(struct world *w);
int64_t rule_work_us(struct world *w); /* that is left, one after the other */
void rule_done(struct world *w);
