/* report.h — the status written on objects, and the snapshots that people read. */
#pragma once
#include <pthread.h>

#include "control/report/snapshot.h"
#include "control/run/run.h"
#include "queue/forecast.h"

/* When each job in line is expected to start (forecast.c). */
struct foretold {
	struct slu_forecast *last, *next; /* complete; being made */
	int64_t again_us;                 /* no new one before */
	int64_t spent_ns;                 /* on the snapshot being made */
};

struct reports {
	SLU_VEC(struct slu_rec_ask *) viewer; /* wait for a fresh snapshot */
	enum slu_journal_state snap_store;    /* as in the last snapshot */
	pthread_mutex_t snap_lock;
	struct slu_snapshot *snap;
	int64_t snap_us;
	struct foretold foretold;
};

/* ---- forecast.c ---- */

void core_forecast(struct slu_core *c); /* a slice of it */
int64_t core_forecast_wake_us(const struct slu_core *c);
/* When a job of the queue that has no promise should start; SLU_TIME_NONE: that is not known. */
int64_t core_foretold(const struct slu_core *c, slu_job_id id);
void core_foretold_done(struct slu_core *c);

/* ---- status.c ---- */

void core_status(struct slu_core *c); /* write reasons and estimates of waiting work */

/* ---- podgroup.c ---- */

void core_podgroup_status(struct slu_core *c, struct group *g);
void core_podgroups_over(struct slu_core *c); /* how the groups ended that are over */

/* ---- snapshot.c ---- */

/* Publish a snapshot if a request waits for it or the last one is old. */
void core_snapshot_publish(struct slu_core *c);
/* The newest snapshot, for any thread; NULL before the first cycle.  The caller releases it with
 * slu_snapshot_unref(). */
struct slu_snapshot *core_snapshot(struct slu_core *c);
/* Append to a reason that the group cannot end by its deadline as things are planned now. */
void core_deadline_text(struct slu_core *c, const struct group *g, const struct run *r,
			const struct slu_why *why, struct slu_buf *b);
