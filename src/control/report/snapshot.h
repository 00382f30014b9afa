/* snapshot.h — an immutable copy of the state after the last cycle, for readers: commands, metrics, page,
 * webhook.  Counted; any thread may hold one. */
#pragma once
#include "base/arena.h"
#include "control/frame/count.h"

struct slu_snap_pod {
	const char *name, *node, *state;
};

struct slu_snap_job {
	uint64_t id;
	const char *ns, *name, *queue, *state; /* gathering, waiting, placing, running, ... */
	const char *scheduler, *user;
	const char *reason; /* why it does not run; "" */
	const char *remedy; /* the smallest change that would help; "" */
	uint32_t size, min, ready, bound, position;
	int32_t priority;
	int64_t first_seen_us, start_s, end_s; /* 0: not yet */
	int64_t estimate_s;                    /* planned start; 0: none */
	bool promised;
	int64_t limit_s, begin_s, deadline_s; /* 0: none */
	struct slu_snap_pod *pod;
	uint32_t n_pods;
	/* Only for the job that the request names: the jobs that passed it, a line each, the most harmful first
	 * (of `passers` in all), and the changes that would help. */
	const char **passed, **help;
	uint32_t passers, n_passed, n_help;
};

/* A pod that another scheduler placed: running work in the plan, under a number of its own. */
struct slu_snap_foreign {
	uint64_t id;
	const char *ns, *name, *node, *scheduler;
	const char *needs; /* "2 cpu, 1Gi memory" */
	bool background;   /* of a DaemonSet: expected on every node */
};

struct slu_snap_amount {
	const char *name;
	int64_t total, free;
};

struct slu_snap_node {
	const char *name, *state;         /* up, down, cordoned, drained */
	int64_t drain_from_s, drain_to_s; /* 0: none; to: INT64_MAX */
	struct slu_snap_amount *amount;
	uint32_t n_amounts;
	uint32_t jobs, foreign;
};

struct slu_snap_queue {
	const char *name, *policy;
	uint32_t waiting, held, blocked, never, running;
	uint64_t started, ended, backfilled;
};

struct slu_snap_reservation {
	const char *ns, *name, *phase, *message, *every;
	const char **node, **user;
	uint32_t n_nodes, n_users;
	int64_t from_s, until_s; /* 0: not planned */
};

struct slu_snapshot {
	_Atomic uint32_t refs;
	int64_t at_us;
	bool synced;
	bool leader;            /* decides; otherwise it stands by */
	const char *store;      /* "ok", or the problem in words */
	bool store_ok;          /* also while it stands by: it needs none */
	uint32_t store_waiting; /* batches not yet durable */
	uint64_t store_commits, store_failures;
	struct slu_snap_job *job;
	uint32_t n_jobs;
	struct slu_snap_foreign *foreign; /* only if the request asked for them; else NULL */
	uint32_t n_foreign;
	struct slu_snap_node *node;
	uint32_t n_nodes;
	struct slu_snap_queue *queue;
	uint32_t n_queues;
	struct slu_snap_reservation *reservation;
	uint32_t n_reservations;
	uint32_t pods, pods_foreign, groups;
	struct slu_counters count;
	struct slu_arena arena;
};

struct slu_snapshot *slu_snapshot_ref(struct slu_snapshot *s);
void slu_snapshot_unref(struct slu_snapshot *s);
SLU_DEFINE_CLEANUP(struct slu_snapshot, slu_snapshot_unref)
