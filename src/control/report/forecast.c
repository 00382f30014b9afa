/* Forecast the start of each job in line (queue/forecast.h), in the background: a slice in each cycle, after
 * the decisions of the cycle have been sent.  A new forecast begins when the queue has changed enough, but
 * not before a pause of REST times the length of the last one. */
#include "control/report/report.h"

#include "base/clock.h"
#include "control/group/group.h"

#define SLICE_NS 2000000
#define SLICE    4u /* steps between two looks at the clock */
#define PAUSE_US 1000000
#define REST     20
#define NEXT_US  1000 /* to the next slice: records come first */

static bool any_start_to_forecast(const struct slu_core *c)
{
	struct slu_queue_view v;

	for (uint32_t i = 0; i < slu_queue_count(c->q); i++)
		if (slu_queue_view(c->q, i, &v) == 0 && (v.waiting || v.blocked))
			return true;
	return false;
}

static bool forecast_wanted(const struct slu_core *c)
{
	const struct foretold *f = &c->reports->foretold;

	return any_start_to_forecast(c) && (!f->last || slu_forecast_stale(f->last, c->q));
}

void core_forecast(struct slu_core *c)
{
	struct foretold *f = &c->reports->foretold;
	int64_t begin = slu_clock_cpu_ns();
	int rc = 0;

	if (core_hurries(c) || (!f->next && (c->now_us < f->again_us || !forecast_wanted(c))))
		return;
	if (!f->next) {
		f->spent_ns = 0;
		rc = slu_forecast_new(c->q, c->now_s, &f->next, NULL);
	}
	while (!rc && slu_clock_cpu_ns() - begin < SLICE_NS)
		rc = slu_forecast_run(f->next, SLICE, NULL);
	f->spent_ns += slu_clock_cpu_ns() - begin;
	if (!rc)
		return;
	if (rc > 0) {
		slu_forecast_free(f->last);
		f->last = f->next;
	} else { /* no memory: later */
		slu_forecast_free(f->next);
	}
	f->next = NULL;
	f->again_us = c->now_us + PAUSE_US + f->spent_ns * REST / 1000;
}

int64_t core_forecast_wake_us(const struct slu_core *c)
{
	const struct foretold *f = &c->reports->foretold;

	if (core_hurries(c) || (!f->next && !forecast_wanted(c)))
		return CORE_NEVER;
	return SLU_MAX(c->now_us + NEXT_US, f->next ? 0 : f->again_us);
}

int64_t core_foretold(const struct slu_core *c, slu_job_id id)
{
	const struct slu_forecast *f = c->reports->foretold.last;
	int64_t at_s = f ? core_estimate(c, slu_forecast_start(f, id)) : SLU_TIME_NONE;

	/* A start that was forecast for a time before now has not happened. */
	return at_s != SLU_TIME_NONE && at_s > c->now_s ? at_s : SLU_TIME_NONE;
}

void core_foretold_done(struct slu_core *c)
{
	slu_forecast_free(c->reports->foretold.last);
	slu_forecast_free(c->reports->foretold.next);
}
