/* One step: timers first, then what the machine's changes mean, then the passes. */
#include "queue/queue_internal.h"

static int on_timer(struct slu_queue *q, const struct timer *t, struct slu_decisions *out)
{
	uint32_t j = t->job;
	struct job *job = j == SLU_NIL ? NULL : &q->job.p[j];
	int rc;

	if (!job) {
		uint32_t before = q->span.n;

		for (uint32_t i = q->span.n; i-- > 0;)
			if (q->span.p[i].to_s <= q->now_s)
				queue_span_drop(q, i);
		q->rebuild |= before != q->span.n;
		return 0;
	}
	if ((job->flags & JOB_AVOIDS) && job->state != SLU_JOB_RUNNING) {
		int64_t was = job->planned_s;

		if (was != SLU_TIME_NONE)
			queue_plan_freed(q, SLU_CAUSE_REPLAN, job->id, SLU_NODE_NONE);
		queue_job_leave_line(q, j);
		queue_shape_put(q, job->shape);
		job->shape = job->asked;
		job->asked = SLU_NIL;
		job->flags &= (uint8_t)~JOB_AVOIDS;
		rc = queue_plan_told(q, j, was, SLU_CAUSE_OWN, out);
		return rc < 0 ? rc : queue_job_settle(q, j, out);
	}
	switch (job->state) {
	case SLU_JOB_RUNNING:
		if (job->end_s >= q->now_s || job->end_s == SLU_FOREVER)
			return 0;
		rc = queue_timer_add(q, q->now_s + q->opts.overrun_s + 1, j);
		if (rc < 0)
			return rc;
		if (!(job->flags & JOB_OVERRUN)) {
			rc = queue_decide_text(out, SLU_DEC_OVERRUN, job->id,
					       "outlived its limit of %" PRId64 " s", job->limit_s);
			if (rc < 0)
				return rc;
		}
		job->flags |= JOB_OVERRUN;
		job->end_s = q->now_s + q->opts.overrun_s;
		queue_plan_lost(q, SLU_CAUSE_OVERRUN, job->id, SLU_NODE_NONE);
		return slu_gang_set_end(q->m, job->id, job->end_s);
	case SLU_JOB_BLOCKED:
		return job->block == BLOCK_BEGIN ? queue_job_settle(q, j, out) : 0;
	case SLU_JOB_WAITING:
		if (job->planned_s == SLU_TIME_NONE && job->due_s != SLU_TIME_NONE &&
		    job->due_s <= q->now_s)
			q->came_due = true;
		if (job->deadline_s == SLU_TIME_NONE || q->now_s <= job->deadline_s - job->limit_s)
			return 0;
		if (job->planned_s != SLU_TIME_NONE)
			queue_plan_freed(q, SLU_CAUSE_EARLY_END, job->id, SLU_NODE_NONE);
		queue_job_leave_line(q, j);
		return queue_job_settle(q, j, out);
	default:
		return 0;
	}
}

/* Nodes came or went for good: jobs that could never run may now, and the other way round. */
static int look_again(struct slu_queue *q, struct slu_decisions *out)
{
	q->topology_seen = q->topology;
	q->todo.n = 0;
	for (uint32_t j = q->list[SLU_JOB_NEVER]; j != SLU_NIL; j = q->job.p[j].next)
		if (q->job.p[j].block == BLOCK_NEVER && slu_vec_push(&q->todo, j) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < q->todo.n; i++) {
		uint32_t text = out->v.n;
		int rc = queue_job_settle(q, q->todo.p[i], out);

		if (rc < 0)
			return rc;
		/* "Never" was said before; once is enough. */
		if (q->job.p[q->todo.p[i]].state == SLU_JOB_NEVER && out->v.n > text)
			out->v.n = text;
		else if (q->job.p[q->todo.p[i]].state != SLU_JOB_NEVER)
			rc = queue_decide_text(out, SLU_DEC_STATE, q->job.p[q->todo.p[i]].id, "%s",
					       "");
		if (rc < 0)
			return rc;
	}
	q->todo.n = 0;
	for (uint32_t b = 0; b < q->bucket.n; b++) {
		uint32_t j = q->bucket.p[b].used ? q->bucket.p[b].root : SLU_NIL;
		int rc = j == SLU_NIL ? 0 : queue_job_never(q, j, NULL);

		if (rc < 0)
			return rc;
		for (j = rc ? queue_order_first(q->job.p, q->bucket.p[b].root) : SLU_NIL;
		     j != SLU_NIL;
		     j = queue_order_next(q->job.p, q->bucket.p[b].root, &q->job.p[j]))
			if (slu_vec_push(&q->todo, j) < 0)
				return -ENOMEM;
	}
	/* A job with a promise is in no bucket's tree. */
	for (uint32_t i = 0; i < q->sub.n; i++)
		for (uint32_t j = queue_order_first(q->job.p, q->sub.p[i].reserved); j != SLU_NIL;
		     j = queue_order_next(q->job.p, q->sub.p[i].reserved, &q->job.p[j])) {
			int rc = queue_job_never(q, j, NULL);

			if (rc < 0 || (rc && slu_vec_push(&q->todo, j) < 0))
				return rc < 0 ? rc : -ENOMEM;
		}
	for (uint32_t i = 0; i < q->todo.n; i++) {
		uint32_t j = q->todo.p[i];
		int64_t was = q->job.p[j].planned_s;

		if (was != SLU_TIME_NONE)
			queue_plan_freed(q, SLU_CAUSE_REPLAN, q->job.p[j].id, SLU_NODE_NONE);
		queue_job_leave_line(q, j);
		int rc = queue_plan_told(q, j, was, SLU_CAUSE_NODE_LOST, out);

		if (!rc)
			rc = queue_job_settle(q, j, out);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A job that avoids nodes has its own copy of its node sets: nodes that left the original leave the copy. */
static void narrow(struct slu_queue *q)
{
	bool any = false;

	for (uint32_t j = 0; q->avoids && j < q->job.n; j++) {
		const struct job *job = &q->job.p[j];

		if (!job->used || !(job->flags & JOB_AVOIDS))
			continue;
		any = true;
		for (uint32_t r = 0; r < q->shape.p[job->asked].req.n_role; r++) {
			const struct slu_nodeset *own = q->shape.p[job->asked].req.role[r].nodes;
			struct slu_nodeset *copy =
				(struct slu_nodeset *)q->shape.p[job->shape].req.role[r].nodes;

			for (uint32_t w = 0; own && w < copy->n_word; w++)
				for (uint64_t gone =
					     copy->word[w] & ~(w < own->n_word ? own->word[w] : 0);
				     gone; gone &= gone - 1)
					slu_nodeset_del(copy,
							w * 64 + (uint32_t)__builtin_ctzll(gone));
		}
	}
	q->avoids = any;
}

/* Promises that give way to each other settle in two rounds or three; the rest waits a second. */
#define ROUNDS_MAX 8u

int queue_plan_step(struct slu_queue *q, struct slu_decisions *out, struct slu_error *err)
{
	int rc = 0;

	q->came_due = false;
	narrow(q);
	while (q->timer.n && q->timer.p[0].at_s <= q->now_s) {
		struct timer t = q->timer.p[0];

		queue_timer_pop(q);
		if (!queue_timer_stale(q, &t)) {
			rc = on_timer(q, &t, out);
			if (rc < 0)
				return rc;
		}
	}
	if (q->rebuild) {
		rc = queue_bucket_rebuild(q);
		if (rc < 0)
			return rc;
	}
	if (q->topology_seen != q->topology) {
		rc = look_again(q, out);
		if (rc < 0)
			return rc;
	}
	rc = queue_full_admit(q, out);
	if (rc < 0)
		return rc;
	bool full = q->freed != q->seen_freed || q->fresh.n > 64, grow = full;

	full |= q->came_due;
	for (uint32_t i = 0; i < q->sub.n; i++)
		full |= (q->sub.p[i].n_noplan > 0 && q->fresh.n) ||
			(q->fresh.n > 1 && queue_pass_plays(&q->sub.p[i]));
	q->seen_freed = q->freed;
	for (uint32_t rounds = 0; full || q->fresh.n; rounds++) {
		/* Starting a job may put jobs that waited for its start in line: another round. */
		uint32_t n = q->fresh.n;

		q->moved = false;

		for (uint32_t o = 0; full && !rc && o < q->sub_order.n; o++)
			rc = queue_pass_full(q, &q->sub.p[q->sub_order.p[o]], out, err);
		if (!full)
			rc = queue_pass_fresh(q, out, err);
		if (rc < 0) {
			q->seen_freed = q->freed - 1; /* look again next time */
			return rc;
		}
		for (uint32_t i = 0; i < n; i++)
			q->job.p[q->fresh.p[i]].flags &= (uint8_t)~JOB_FRESH;
		if (n && n < q->fresh.n)
			memmove(q->fresh.p, q->fresh.p + n, (q->fresh.n - n) * sizeof *q->fresh.p);
		q->fresh.n -= n;
		rc = queue_full_admit(q, out); /* jobs that started have left a place */
		if (rc < 0)
			return rc;
		full = q->fresh.n > 64 || q->freed != q->seen_freed;
		q->seen_freed = q->freed;
		if (!full && q->moved && rounds < ROUNDS_MAX) {
			int may = queue_pass_may_start(q, err);

			if (may < 0)
				return may;
			full = may;
		}
	}
	if (grow)
		rc = queue_grow_all(q, out);
	while (q->timer.n && queue_timer_stale(q, &q->timer.p[0]))
		queue_timer_pop(q);
	q->later = q->earlier = (struct cause){ .node = SLU_NODE_NONE };
	return rc;
}
