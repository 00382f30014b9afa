/* frame.h — what all rooms of the core share: the settings, the clock, the queue with its log,
 * the channels to the other threads (writes to the cluster, intents to the store), and the counters.
 *
 * Each room keeps its own state behind one pointer here.  A room sees the state of those below it,
 * whose headers it includes, and not of those above (tools/layers).  The core thread owns all of
 * it; nothing here locks. */
#pragma once
#include "base/log.h"
#include "base/table.h"
#include "base/vec.h"
#include "control/config/config.h"
#include "control/frame/count.h"
#include "control/frame/timer.h"
#include "control/post/intent.h"
#include "control/post/record.h"
#include "queue/log.h"
#include "queue/queue.h"

/* A phantom (fluxjob/phantom.c) was given a node; "": the phantom is to be removed. */
struct core_here {
	char *uid, *node;
};

/* The namespace of the FluxJobs of claims (claim/claim.h): no namespace of a cluster has a dot in its name. */
#define SLU_CLAIM_SPACE "fluxion.grpc"

struct slu_core {
	const struct slu_config *cfg;
	int64_t now_us, now_s;
	int64_t due_us[CORE_TIMERS];
	uint64_t spent_ns; /* in the cycle under way */
	struct slu_queue *q;
	struct slu_qlog *log;     /* stands in front of the queue */
	struct slu_decisions dec; /* of the queue, not carried out yet */
	struct slu_intents *door; /* NULL: a standby, which decides and writes nothing */
	struct slu_inbox *out;    /* writes for the io thread */
	uint32_t binding;         /* bindings under way */
	uint64_t serial, next_job, next_intent;
	uint32_t synced; /* bit per kind that has been listed */
	bool verify;
	uint64_t mem_failures;        /* of this thread, as of the last cycle */
	bool recovered;               /* the first cycle has applied the rows of the store */
	bool hurry;                   /* the cycle under way is the first */
	enum slu_journal_state store; /* as last logged */
	bool store_waits; /* the store could not be read, and nothing is decided before it is */
	char leader[254]; /* another replica that leads; "": none is known */
	struct slu_counters count;
	SLU_VEC(struct core_here) here; /* writes about phantoms, carried out by the core itself */
	struct {                        /* of the event log */
		uint64_t seq;           /* of the last row kept */
		int64_t since_us;       /* when the oldest event not yet in a row was noted */
		int64_t size, bytes;    /* of the log under way; of all rows kept so far */
	} rows;

	struct cluster *cluster;
	struct groups *groups;
	struct runs *runs;
	struct holds *holds;
	struct asks *asks;
	struct fluxjobs *fluxjobs;
	struct claims *claims;
	struct recovery *recovery;
	struct reports *reports;
};

/* The clock may be set back; the plan may not. */
static inline void core_set_now(struct slu_core *c, int64_t now_us)
{
	c->now_us = SLU_MAX(c->now_us, now_us);
	c->now_s = c->now_us / 1000000;
}

static inline bool core_is_due(const struct slu_core *c, enum core_timer k)
{
	return c->now_us >= c->due_us[k];
}

/* Set the timer to `us`, earlier or later than it was; CORE_NEVER stops it. */
static inline void core_due_at(struct slu_core *c, enum core_timer k, int64_t us)
{
	c->due_us[k] = us;
}

/* Set the timer to `us` unless it is due earlier. */
static inline void core_due_by(struct slu_core *c, enum core_timer k, int64_t us)
{
	c->due_us[k] = SLU_MIN(c->due_us[k], us);
}

/* Set the timer to now if it was stopped; a timer that is set keeps its moment. */
static inline void core_due_begin(struct slu_core *c, enum core_timer k)
{
	if (c->due_us[k] == CORE_NEVER)
		c->due_us[k] = c->now_us;
}

static inline int64_t core_next_due_us(const struct slu_core *c)
{
	int64_t at = CORE_NEVER;

	for (int k = 0; k < CORE_TIMERS; k++)
		at = SLU_MIN(at, c->due_us[k]);
	return at;
}

/* Check a state machine's step from `from` to `to`; `may` has a bit for each state that `from` may
 * lead to.  A forbidden step is a bug in Sluice: it is logged, and ends a daemon that verifies itself. */
#define CORE_BIT(state) (1u << (state))
void core_changes(const struct slu_core *c, const char *what, uint32_t may, unsigned from,
		  unsigned to);

/* All kinds the core needs have been listed. */
bool slu_core_synced(const struct slu_core *c);

/* The daemon resolves dependencies itself (run/after.c), so the queue keeps no results for them. */
static inline struct slu_queue_opts core_queue_opts(const struct slu_core *c)
{
	return (struct slu_queue_opts){ .verify = c->verify, .keep_results = 1 };
}
int core_set_queues(struct slu_core *c, struct slu_error *err);
/* The settings of the queue of that name; NULL: there is none. */
const struct slu_queue_conf *core_queue_conf(const struct slu_core *c, const char *name);
/* Apply one event to the queue and note it for the log.  A failure, which means a bug or no memory, is logged. */
int core_apply(struct slu_core *c, struct slu_event *ev);
/* Put the noted events into this cycle's batch; returns the number of bytes. */
int64_t core_log_row(struct slu_core *c);

/* The uid of a phantom contains a character that no API server uses in a uid. */
#define SLU_PHANTOM_MARK '#'
bool core_phantom_is(const char *uid);
/* Hand a write to the io thread.  0, or -ENOMEM: no answer to it will come. */
int core_write(struct slu_core *c, const struct slu_rec_write *w);

/* The estimate to show for a planned start: SLU_TIME_NONE if the start is behind work without an end. */
static inline int64_t core_estimate(const struct slu_core *c, int64_t start_s)
{
	return start_s != SLU_TIME_NONE && start_s - c->now_s > SLU_LIMIT_MAX / 2 ? SLU_TIME_NONE
										  : start_s;
}

/* How long to wait before the next status write about a job that still waits, after `told` of them.
 * Its position may change with every start, and each write competes with bindings, so the writes
 * become rarer. */
static inline int64_t core_patience_us(const struct slu_core *c, uint32_t told)
{
	return c->cfg->status.interval_s * 1000000 << SLU_MIN(told, 4u);
}
