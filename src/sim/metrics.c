#include "sim/sim.h"

double slu_bounded_slowdown(int64_t wait_s, int64_t run_s)
{
	double s = (double)(wait_s + run_s) / (double)SLU_MAX(run_s, (int64_t)10);

	return s > 1 ? s : 1;
}

static struct slu_sim_user *user_of(struct slu_sim *s, struct slu_map *at, uint32_t user)
{
	uint64_t *i = slu_map_get(at, user);

	if (i)
		return &s->user.p[*i];
	struct slu_sim_user u = { .user = user };

	if (slu_map_put(at, user, s->user.n) < 0 || slu_vec_push(&s->user, u) < 0)
		return NULL;
	return &s->user.p[s->user.n - 1];
}

static void measure_promise(struct slu_sim_metrics *m, const struct slu_sim_job *r, double *sum)
{
	if (r->promised_s == SLU_TIME_NONE)
		return;
	int64_t off = r->start_s - r->promised_s;

	m->promises++;
	m->promises_late += off > 0;
	off = off < 0 ? -off : off;
	*sum += (double)off;
	m->promise_error_max = SLU_MAX(m->promise_error_max, off);
}

static int by_length(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static unsigned width_of(const struct slu_trace *t, const struct slu_sim *s, uint32_t j)
{
	int64_t cores = slu_trace_millicores(t, t->job.p[j].req);

	return cores <= s->capacity / 16  ? SLU_NARROW
	       : cores <= s->capacity / 4 ? SLU_MEDIUM
					  : SLU_WIDE;
}

/* The distribution of waits, and which jobs wait. */
static int measure_waits(const struct slu_trace *t, struct slu_sim *s)
{
	slu_cleanup(slu_freep) int64_t *wait = slu_calloc(SLU_MAX(s->job.n, 1u), sizeof *wait);
	double sum[SLU_WIDTHS] = { 0 };
	uint64_t jobs[SLU_WIDTHS] = { 0 };
	uint32_t n = 0;

	if (!wait)
		return -ENOMEM;
	for (uint32_t j = 0; j < s->job.n; j++) {
		const struct slu_sim_job *r = &s->job.p[j];

		if (r->fate != SLU_SIM_ENDED)
			continue;
		unsigned width = width_of(t, s, j);

		wait[n] = r->start_s - r->submit_s;
		sum[width] += (double)wait[n++];
		jobs[width]++;
	}
	if (!n)
		return 0;
	qsort(wait, n, sizeof *wait, by_length);
	s->metrics.p95_wait = wait[(uint64_t)n * 95 / 100];
	for (unsigned i = 0; i < SLU_WIDTHS; i++)
		s->metrics.wait_width[i] = jobs[i] ? sum[i] / (double)jobs[i] : 0;
	return 0;
}

int slu_sim_measure(const struct slu_trace *t, struct slu_sim *s)
{
	struct slu_sim_metrics *m = &s->metrics;
	struct slu_map at = { 0 };
	double bsld = 0, flow = 0, wait = 0, busy = 0, error = 0;
	int64_t last = s->first_s;

	s->user.n = 0;
	for (uint32_t j = 0; j < s->job.n; j++) {
		const struct slu_sim_job *r = &s->job.p[j];

		m->restarts += r->restarts;
		m->refused += r->fate == SLU_SIM_REFUSED;
		m->cancelled += r->fate == SLU_SIM_CANCELLED;
		m->unfinished += r->fate == SLU_SIM_WAITING || r->fate == SLU_SIM_RUNNING ||
				 r->fate == SLU_SIM_UNSEEN;
		if (r->fate != SLU_SIM_ENDED)
			continue;
		int64_t w = r->start_s - r->submit_s, run = r->end_s - r->start_s;
		double b = slu_bounded_slowdown(w, run);
		int64_t slots = slu_trace_slots(t, t->job.p[j].req);
		double cores = (double)slu_trace_millicores(t, t->job.p[j].req) * r->slots /
			       (double)SLU_MAX(slots, (int64_t)1);
		struct slu_sim_user *u = user_of(s, &at, t->job.p[j].user);

		if (!u) {
			slu_map_done(&at);
			return -ENOMEM;
		}
		m->jobs++;
		m->backfilled += r->how == SLU_HOW_BACKFILL;
		m->reserved += r->how == SLU_HOW_RESERVED;
		bsld += b;
		flow += (double)(w + run);
		wait += (double)w;
		busy += cores * (double)run;
		m->max_bounded_slowdown = SLU_MAX(m->max_bounded_slowdown, b);
		m->max_flow = SLU_MAX(m->max_flow, w + run);
		m->max_wait = SLU_MAX(m->max_wait, w);
		last = SLU_MAX(last, r->end_s);
		measure_promise(m, r, &error);
		u->jobs++;
		u->wait += (double)w;
		u->bsld += b;
		u->core_seconds += cores / 1000 * (double)run;
	}
	slu_map_done(&at);
	s->last_s = last;
	m->makespan = last - s->first_s;
	double n = m->jobs ? (double)m->jobs : 1;

	m->avg_bounded_slowdown = bsld / n;
	m->mean_flow = flow / n;
	m->mean_wait = wait / n;
	if (m->makespan > 0 && s->capacity > 0)
		m->utilisation = busy / ((double)s->capacity * (double)m->makespan);
	if (m->promises)
		m->promise_error_mean = error / (double)m->promises;
	double sum = 0, square = 0;

	for (uint32_t i = 0; i < s->user.n; i++) {
		double x = s->user.p[i].bsld / (double)s->user.p[i].jobs;

		sum += x;
		square += x * x;
	}
	m->users = s->user.n;
	m->fairness = square > 0 ? sum * sum / ((double)s->user.n * square) : 1;
	return measure_waits(t, s);
}
