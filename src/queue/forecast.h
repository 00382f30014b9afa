/* forecast.h — when every job in line will start, from a copy of the queue that is run ahead in time.
 *
 * A plan reaches as far as its promises.  A forecast goes on from there: it runs a fork of the queue, in
 * which running jobs end at their limit and no other job arrives, with all rules in force.  So it holds
 * for every place in line, under every policy and limit.
 *
 * The fork costs one copy, each step about as much as a decision; slu_forecast_run() takes as many steps
 * at a time as its caller can spare.  After SLU_FORECAST_STEPS the rest of the line is laid end to end on
 * a machine of one piece, so that every job gets an answer at a bounded price: those answers are rough
 * (slu_forecast_rough).
 *
 *	slu_forecast_new(q, now_s, &f, &err);
 *	while ((rc = slu_forecast_run(f, 100, &err)) == 0) ...;	// 1: done
 *	slu_forecast_start(f, id);
 *	if (slu_forecast_stale(f, q)) ...			// begin another one
 *
 * Threads: none of its own; a forecast shares nothing with the queue it came from. */
#pragma once
#include "queue/queue.h"

#define SLU_FORECAST_STEPS 20000u

struct slu_forecast;

int slu_forecast_new(const struct slu_queue *q, int64_t now_s, struct slu_forecast **out,
		     struct slu_error *err);
/* Forecast from a fork that the caller made and changed ("what if").  Takes over the fork, also on
 * failure. */
int slu_forecast_of(struct slu_queue *fork, int64_t now_s, struct slu_forecast **out,
		    struct slu_error *err);
void slu_forecast_free(struct slu_forecast *f);
SLU_DEFINE_CLEANUP(struct slu_forecast, slu_forecast_free)

/* Up to `steps` steps.  1: it is complete; 0: there is more to do; or an error. */
int slu_forecast_run(struct slu_forecast *f, uint32_t steps, struct slu_error *err);
/* The same, but stops once this job has a start. */
int slu_forecast_run_for(struct slu_forecast *f, slu_job_id id, uint32_t steps,
			 struct slu_error *err);

/* Start of a job that waited when the fork was made; SLU_TIME_NONE: not said yet, or it would not
 * start as things are (held, on nodes that are down, behind endless work). */
int64_t slu_forecast_start(const struct slu_forecast *f, slu_job_id id);
/* Whether the start of the job is rough: it lies beyond the steps that were run. */
bool slu_forecast_rough(const struct slu_forecast *f, slu_job_id id);
uint32_t slu_forecast_steps(const struct slu_forecast *f); /* taken so far */
int64_t slu_forecast_now_s(const struct slu_forecast *f);  /* when the fork was made */

/* Has the queue changed enough since the fork to make another one worth its price?  By more events than
 * a fiftieth of the line is long: a short line is cheap and asked again at once. */
bool slu_forecast_stale(const struct slu_forecast *f, const struct slu_queue *q);
