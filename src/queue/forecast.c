#include "queue/forecast.h"

#include "queue/queue_internal.h"

struct end {
	int64_t at_s;
	slu_job_id job;
};

struct slu_forecast {
	struct slu_queue *q;     /* the fork; NULL once it is complete */
	SLU_VEC(struct end) end; /* a heap: ends of the jobs that run in the fork */
	struct slu_decisions out;
	struct slu_map start; /* id -> start */
	struct slu_map rough; /* id -> 1 */
	int64_t from_s, now_s;
	uint64_t changes; /* of the queue, when the fork was made */
	uint32_t steps;
};

static bool ends_before(const struct end *a, const struct end *b)
{
	return a->at_s != b->at_s ? a->at_s < b->at_s : a->job < b->job;
}

static void swap(struct end *a, struct end *b)
{
	struct end tmp = *a;

	*a = *b;
	*b = tmp;
}

static int end_push(struct slu_forecast *f, int64_t at_s, slu_job_id job)
{
	struct end e = { at_s, job };

	if (at_s >= SLU_FOREVER / 4) /* no job waits for it */
		return 0;
	if (slu_vec_push(&f->end, e) < 0)
		return -ENOMEM;
	for (uint32_t i = f->end.n - 1; i && ends_before(&f->end.p[i], &f->end.p[(i - 1) / 2]);
	     i = (i - 1) / 2)
		swap(&f->end.p[i], &f->end.p[(i - 1) / 2]);
	return 0;
}

static struct end end_pop(struct slu_forecast *f)
{
	struct end *h = f->end.p, top = h[0];
	uint32_t n = --f->end.n;

	h[0] = h[n];
	for (uint32_t i = 0, c; (c = 2 * i + 1) < n; i = c) {
		if (c + 1 < n && ends_before(&h[c + 1], &h[c]))
			c++;
		if (!ends_before(&h[c], &h[i]))
			break;
		swap(&h[i], &h[c]);
	}
	return top;
}

int slu_forecast_of(struct slu_queue *fork, int64_t now_s, struct slu_forecast **out,
		    struct slu_error *err)
{
	struct slu_forecast *f = fork ? slu_calloc(1, sizeof *f) : NULL;
	int rc = f ? 0 : -ENOMEM;

	if (rc) {
		slu_queue_free(fork);
		return slu_fail(err, rc, "out of memory");
	}
	f->q = fork;
	f->from_s = f->now_s = SLU_MAX(now_s, fork->now_s);
	f->changes = fork->changes;
	/* Starts are the same without these, and plans in a fork are not read. */
	fork->opts.lazy = true;
	fork->opts.verify = false;
	for (uint32_t j = fork->list[SLU_JOB_RUNNING]; !rc && j != SLU_NIL; j = fork->job.p[j].next)
		rc = end_push(f, SLU_MAX(fork->job.p[j].end_s, f->now_s + 1), fork->job.p[j].id);
	if (rc < 0) {
		slu_forecast_free(f);
		return slu_fail(err, rc, "out of memory");
	}
	*out = f;
	return 0;
}

int slu_forecast_new(const struct slu_queue *q, int64_t now_s, struct slu_forecast **out,
		     struct slu_error *err)
{
	return slu_forecast_of(slu_queue_clone(q), now_s, out, err);
}

void slu_forecast_free(struct slu_forecast *f)
{
	if (!f)
		return;
	slu_queue_free(f->q);
	slu_vec_done(&f->end);
	slu_decisions_done(&f->out);
	slu_map_done(&f->start);
	slu_map_done(&f->rough);
	slu_free(f);
}

/* Whether some job could still start. */
static bool any_job_waits(const struct slu_queue *q)
{
	for (uint32_t i = 0; i < q->sub.n; i++)
		if (q->sub.p[i].n[SLU_JOB_WAITING] || q->sub.p[i].n[SLU_JOB_BLOCKED])
			return true;
	return false;
}

static int note_starts(struct slu_forecast *f)
{
	int rc = 0;

	for (uint32_t i = 0; i < f->out.v.n && !rc; i++) {
		const struct slu_decision *d = &f->out.v.p[i];

		if (d->kind != SLU_DEC_START)
			continue;
		rc = slu_map_put(&f->start, d->job, (uint64_t)d->start_s);
		if (!rc)
			rc = end_push(f, SLU_MAX(d->end_s, f->now_s + 1), d->job);
	}
	slu_decisions_clear(&f->out);
	return rc;
}

/* Move the fork to the next moment at which a job ends or is due, and let its queue decide.  Returns 1
 * if there is no such moment. */
static int forecast_pass(struct slu_forecast *f, struct slu_error *err)
{
	int64_t wake_s = slu_queue_wake_s(f->q), at_s = f->end.n ? f->end.p[0].at_s : SLU_TIME_EVER;
	int rc = 0;

	at_s = SLU_MIN(at_s, wake_s == SLU_TIME_EVER ? wake_s : SLU_MAX(wake_s, f->now_s + 1));
	if (at_s >= SLU_FOREVER / 4 || !any_job_waits(f->q))
		return 1;
	f->now_s = SLU_MAX(f->now_s, at_s);
	while (f->end.n && f->end.p[0].at_s <= f->now_s && !rc) {
		struct slu_event ev = { .kind = SLU_EV_END, .job = end_pop(f).job };

		rc = slu_queue_apply(f->q, f->now_s, &ev, &f->out, err);
	}
	if (!rc)
		rc = slu_queue_schedule(f->q, f->now_s, &f->out, err);
	return rc < 0 ? rc : note_starts(f);
}

/* ---- beyond the steps of the fork ---- */

/* Seconds of the whole machine that a job needs, by what it needs most of. */
static double machine_seconds(const struct slu_queue *q, const struct slu_machine_stats *m,
			      uint32_t j)
{
	const struct slu_gang_req *req = &q->shape.p[q->job.p[j].shape].req;
	double most = 0;

	for (uint32_t k = 0; k < SLU_RESOURCES_MAX; k++) {
		double need = 0;

		for (uint32_t r = 0; r < req->n_role; r++)
			for (uint32_t i = 0; i < req->role[r].n_need; i++)
				if (req->role[r].need[i].resource == k)
					need += (double)req->role[r].need[i].n *
						(double)req->role[r].min;
		if (need > 0 && m->total[k] > 0)
			most = SLU_MAX(most, need / (double)m->total[k]);
	}
	return SLU_MIN(most, 1.0) * (double)q->job.p[j].limit_s;
}

/* Lay the remaining jobs of each queue end to end, on a machine without node boundaries. */
static int lay_rest(struct slu_forecast *f)
{
	struct slu_queue *q = f->q;
	struct slu_machine_stats m;
	double before = 0;
	int rc = 0;

	slu_machine_stats(q->m, &m);
	for (uint32_t j = q->list[SLU_JOB_RUNNING]; j != SLU_NIL; j = q->job.p[j].next)
		if (q->job.p[j].end_s < SLU_FOREVER / 4 && q->job.p[j].end_s > f->now_s)
			before += machine_seconds(q, &m, j) *
				  (double)(q->job.p[j].end_s - f->now_s) /
				  (double)SLU_MAX(q->job.p[j].limit_s, INT64_C(1));
	for (uint32_t o = 0; o < q->sub_order.n && !rc; o++) {
		uint32_t *line = NULL, n = 0;

		rc = queue_line_of(q, q->sub_order.p[o], &line, &n);
		for (uint32_t i = 0; i < n && !rc; i++) {
			const struct job *job = &q->job.p[line[i]];
			int64_t at_s = f->now_s + (int64_t)SLU_MIN(before, 1e15);

			if (job->planned_s != SLU_TIME_NONE)
				at_s = job->planned_s;
			before += machine_seconds(q, &m, line[i]);
			rc = slu_map_put(&f->start, job->id, (uint64_t)at_s);
			if (!rc && job->planned_s == SLU_TIME_NONE)
				rc = slu_map_put(&f->rough, job->id, 1);
		}
		slu_free(line);
	}
	return rc;
}

static int run_forecast(struct slu_forecast *f, slu_job_id until, uint32_t steps,
			struct slu_error *err)
{
	int rc = f->q ? 0 : 1;

	for (uint32_t i = 0; i < steps && !rc && f->steps < SLU_FORECAST_STEPS; i++) {
		rc = forecast_pass(f, err);
		f->steps += !rc;
		if (until && slu_map_get(&f->start, until))
			return rc < 0 ? rc : 1;
	}
	if (!rc && f->steps >= SLU_FORECAST_STEPS) {
		rc = lay_rest(f);
		rc = rc < 0 ? rc : 1;
	}
	if (rc == -ENOMEM)
		return slu_fail(err, rc, "out of memory");
	if (rc > 0 && f->q) { /* only the answers are kept */
		slu_queue_free(f->q);
		f->q = NULL;
	}
	return rc;
}

int slu_forecast_run(struct slu_forecast *f, uint32_t steps, struct slu_error *err)
{
	return run_forecast(f, 0, steps, err);
}

int slu_forecast_run_for(struct slu_forecast *f, slu_job_id id, uint32_t steps,
			 struct slu_error *err)
{
	return run_forecast(f, id, steps, err);
}

int64_t slu_forecast_start(const struct slu_forecast *f, slu_job_id id)
{
	const uint64_t *at = slu_map_get(&f->start, id);

	return at ? (int64_t)*at : SLU_TIME_NONE;
}

bool slu_forecast_rough(const struct slu_forecast *f, slu_job_id id)
{
	return slu_map_get(&f->rough, id) != NULL;
}

uint32_t slu_forecast_steps(const struct slu_forecast *f)
{
	return f->steps;
}

int64_t slu_forecast_now_s(const struct slu_forecast *f)
{
	return f->from_s;
}

bool slu_forecast_stale(const struct slu_forecast *f, const struct slu_queue *q)
{
	uint64_t waiting = 0;

	for (uint32_t i = 0; i < q->sub.n; i++)
		waiting += q->sub.p[i].n[SLU_JOB_WAITING] + q->sub.p[i].n[SLU_JOB_BLOCKED];
	return q->changes - f->changes > waiting / 50;
}
