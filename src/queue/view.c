/* Reading: jobs, queues, lists. */
#include "queue/queue_internal.h"

static void fill_view(const struct slu_queue *q, uint32_t j, uint32_t position,
		      struct slu_job_view *out)
{
	const struct job *job = &q->job.p[j];
	struct slu_gang_info info = { 0 };

	if (job->state == SLU_JOB_RUNNING || job->planned_s != SLU_TIME_NONE)
		slu_gang_info(q->m, job->id, &info, NULL);
	*out = (struct slu_job_view){
		.id = job->id,
		.name = job_name(job),
		.user = slu_intern_str(&q->str, job->user),
		.queue = q->sub.p[job->queue].conf.name,
		.state = (enum slu_job_state)job->state,
		.priority = job->priority,
		.first_seen_us = job->first_seen_us,
		.limit_s = job->limit_s,
		.begin_s = job->begin_s,
		.deadline_s = job->deadline_s,
		.start_s = job->start_s,
		.end_s = job->end_s,
		.planned_s = job->planned_s,
		.promised_s = job->promised_s,
		.position = position,
		.slots = info.slots,
		.req = &q->shape.p[job->asked == SLU_NIL ? job->shape : job->asked].req,
	};
}

uint32_t queue_job_position(const struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	const struct subqueue *sub = &q->sub.p[job->queue];

	if (job->state != SLU_JOB_WAITING)
		return 0;
	uint32_t n = 1 + queue_order_rank(q->job.p, sub->reserved, job);

	for (uint32_t i = 0; i < sub->active.n; i++)
		n += queue_order_rank(q->job.p, q->bucket.p[sub->active.p[i]].root, job);
	return n;
}

int slu_queue_job(const struct slu_queue *q, slu_job_id id, struct slu_job_view *out)
{
	uint32_t j = queue_job_find(q, id);

	if (j == SLU_NIL)
		return -ENOENT;
	fill_view(q, j, queue_job_position(q, j), out);
	return 0;
}

/* Merges two runs of `from` that lie side by side, in queue order, into the same places of `to`. */
static void merge_runs(const struct job *t, const uint32_t *from, uint32_t *to, uint32_t a,
		       uint32_t b, uint32_t end)
{
	for (uint32_t i = a, j = b, k = a; k < end; k++)
		to[k] = j == end || (i < b && queue_order_before(&t[from[i]], &t[from[j]]))
				? from[i++]
				: from[j++];
}

/* Every tree is in order already: only the trees are merged, two by two. */
int queue_line_of(const struct slu_queue *q, uint32_t sub, uint32_t **out, uint32_t *n)
{
	const struct subqueue *s = &q->sub.p[sub];
	uint32_t runs = s->active.n + 1, k = 0;
	slu_cleanup(slu_freep) uint32_t *end = slu_reallocarray(NULL, runs, sizeof *end);
	slu_cleanup(slu_freep)
		uint32_t *v = slu_reallocarray(NULL, s->n[SLU_JOB_WAITING] + 1u, sizeof *v);
	slu_cleanup(slu_freep)
		uint32_t *w = slu_reallocarray(NULL, s->n[SLU_JOB_WAITING] + 1u, sizeof *w);

	if (!end || !v || !w)
		return -ENOMEM;
	end[0] = k = queue_order_list(q->job.p, s->reserved, v);
	for (uint32_t i = 0; i < s->active.n; i++) {
		k += queue_order_list(q->job.p, q->bucket.p[s->active.p[i]].root, v + k);
		end[i + 1] = k;
	}
	for (; runs > 1; runs = (runs + 1) / 2) {
		for (uint32_t i = 0; i < runs; i += 2) {
			uint32_t a = i ? end[i - 1] : 0, last = SLU_MIN(i + 1, runs - 1);

			merge_runs(q->job.p, v, w, a, end[i], end[last]);
		}
		for (uint32_t i = 0; i < runs; i += 2)
			end[i / 2] = end[SLU_MIN(i + 1, runs - 1)];
		uint32_t *merged = slu_take(w);

		w = slu_take(v);
		v = merged;
	}
	*out = slu_take(v);
	*n = k;
	return 0;
}

int slu_queue_each(const struct slu_queue *q, int (*fn)(const struct slu_job_view *, void *),
		   void *arg)
{
	static const enum slu_job_state aside[] = { SLU_JOB_HELD, SLU_JOB_BLOCKED, SLU_JOB_NEVER };
	struct slu_job_view v;
	int rc = 0;

	for (uint32_t j = q->list[SLU_JOB_RUNNING]; j != SLU_NIL && !rc; j = q->job.p[j].next) {
		fill_view(q, j, 0, &v);
		rc = fn(&v, arg);
	}
	for (uint32_t o = 0; o < q->sub_order.n && !rc; o++) {
		uint32_t *line, n;

		rc = queue_line_of(q, q->sub_order.p[o], &line, &n);
		if (rc < 0)
			return rc;
		for (uint32_t i = 0; i < n && !rc; i++) {
			fill_view(q, line[i], i + 1, &v);
			rc = fn(&v, arg);
		}
		slu_free(line);
	}
	for (size_t s = 0; s < SLU_LEN(aside); s++)
		for (uint32_t j = q->list[aside[s]]; j != SLU_NIL && !rc; j = q->job.p[j].next) {
			fill_view(q, j, 0, &v);
			rc = fn(&v, arg);
		}
	return rc;
}

uint32_t slu_queue_count(const struct slu_queue *q)
{
	return q->sub.n;
}

int slu_queue_view(const struct slu_queue *q, uint32_t i, struct slu_queue_view *out)
{
	if (i >= q->sub.n)
		return -ENOENT;
	const struct subqueue *s = &q->sub.p[i];

	*out = (struct slu_queue_view){ .conf = &s->conf,
					.waiting = s->n[SLU_JOB_WAITING],
					.held = s->n[SLU_JOB_HELD],
					.blocked = s->n[SLU_JOB_BLOCKED],
					.never = s->n[SLU_JOB_NEVER],
					.running = s->n[SLU_JOB_RUNNING],
					.started = s->started,
					.ended = s->ended,
					.backfilled = s->backfilled };
	return 0;
}
