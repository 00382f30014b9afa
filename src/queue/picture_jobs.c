/* picture_jobs.c — the jobs in the picture of a queue: where they stand, which jobs they wait for, when
 * to look at them again. */
#include "queue/picture_internal.h"

void queue_pic_unused(struct pic *p, uint32_t *list, uint32_t *n_list, uint32_t n,
		      bool (*used)(const struct slu_queue *, uint32_t))
{
	uint32_t k = count(p, *n_list);

	if (!pic_must(p, k <= n))
		return;
	for (uint32_t i = 0; i < k && !p->in.rc; i++) {
		U(list[i]);
		pic_must(p, list[i] < n && !used(p->q, list[i]));
		*n_list = i + 1;
	}
	if (!pic_reads(p) || p->in.rc)
		return;
	/* All of them, each once: as many as there are, and no two alike. */
	uint32_t idle = 0;
	slu_cleanup(slu_freep) bool *seen = slu_calloc((size_t)n + 1, sizeof *seen);

	if (!seen) {
		wrong(p, -ENOMEM);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		idle += !used(p->q, i);
	for (uint32_t i = 0; i < k; i++) {
		pic_must(p, !seen[list[i]]);
		seen[list[i]] = true;
	}
	pic_must(p, idle == k);
}

static bool job_used(const struct slu_queue *q, uint32_t i)
{
	return q->job.p[i].used;
}

#define STANDS 256u /* among the flags of a job */

static void job_fields(struct pic *p, struct job *j)
{
	U(j->id);
	U(j->user);
	U(j->queue);
	U(j->shape);
	N(j->asked);
	N(j->bucket);
	N(j->tag);
	I(j->priority);
	I(j->first_seen_us);
	I(j->limit_s);
	T(j->begin_s);
	T(j->deadline_s);
	T(j->start_s);
	T(j->end_s);
	T(j->planned_s);
	T(j->promised_s);
	U(j->gen);
	U(j->block);
	uint32_t flags = j->flags | (j->stands ? STANDS : 0);

	U(flags);
	j->flags = (uint8_t)flags;
	j->stands = flags & STANDS;
	U(j->how);
	if (pic_reads(p))
		j->name = slu_bytes_get_s(&p->in);
	else
		slu_bytes_put_s(p->out, j->name);
}

static bool job_sane(const struct slu_queue *q, const struct job *j)
{
	bool line = j->state == SLU_JOB_WAITING;

	return j->id && j->id < SLU_JOB_ID_MAX && queue_job_find(q, j->id) == SLU_NIL &&
	       j->user < q->str.n && j->queue < q->sub.n && j->shape < q->shape.n &&
	       shape_used(q, j->shape) &&
	       (j->asked == SLU_NIL || (j->asked < q->shape.n && shape_used(q, j->asked))) &&
	       (j->asked != SLU_NIL) == !!(j->flags & JOB_AVOIDS) &&
	       (j->tag == SLU_INTERN_NONE || j->tag < q->str.n) && (j->bucket != SLU_NIL) == line &&
	       (!line || (j->bucket < q->bucket.n && bucket_used(q, j->bucket) &&
			  q->bucket.p[j->bucket].queue == j->queue &&
			  q->bucket.p[j->bucket].shape == j->shape)) &&
	       (line || j->planned_s == SLU_TIME_NONE) && j->limit_s > 0 &&
	       j->limit_s <= SLU_LIMIT_MAX && time_sane(j->begin_s) && time_sane(j->deadline_s) &&
	       time_sane(j->start_s) && (time_sane(j->end_s) || j->end_s == SLU_FOREVER) &&
	       time_sane(j->planned_s) && time_sane(j->promised_s) && j->block <= BLOCK_FULL &&
	       (j->block != BLOCK_FULL || j->state == SLU_JOB_BLOCKED) &&
	       j->how <= SLU_HOW_RESERVED;
}

/* Into the trees and sums. */
static int job_enter(struct slu_queue *q, uint32_t i)
{
	struct job *j = &q->job.p[i];
	struct subqueue *sub = &q->sub.p[j->queue];

	if (slu_map_put(&q->job_of, j->id, i) < 0 || queue_usage_make(q, j->queue, j->user) < 0)
		return -ENOMEM;

	q->shape.p[j->shape].refs++;
	if (j->asked != SLU_NIL)
		q->shape.p[j->asked].refs++;
	q->avoids |= j->asked != SLU_NIL;
	sub->n[j->state]++;
	if (j->block == BLOCK_FULL) {
		queue_order_insert(q->job.p, &queue_usage_of(q, j->queue, j->user)->full, i);
		sub->n_full++;
	} else {
		queue_tally(q, i, j->state == SLU_JOB_RUNNING ? TALLY_RUNNING : TALLY_WAITING, 1);
	}
	if (j->state != SLU_JOB_WAITING)
		return 0;
	q->bucket.p[j->bucket].refs++;
	j->due_s = queue_plan_due(&sub->conf, j);
	if (j->planned_s == SLU_TIME_NONE) {
		queue_order_insert(q->job.p, &q->bucket.p[j->bucket].root, i);
		return 0;
	}
	queue_order_insert(q->job.p, &sub->reserved, i);
	sub->n_reserved++;
	queue_tally(q, i, TALLY_RESERVED, 1);
	return 0;
}

/* Check that the job's booking names roles that the job has, and these name resources that exist. */
static bool booking_sane(struct slu_queue *q, const struct job *j)
{
	const struct slu_gang_req *req = &q->shape.p[j->shape].req;
	struct slu_gang_info info;

	if (slu_gang_info(q->m, j->id, &info, &q->place) < 0)
		return true;
	for (uint32_t i = 0; i < q->place.n; i++)
		if (q->place.part[i].role >= req->n_role)
			return false;
	for (uint32_t i = 0; i < req->n_role; i++)
		for (uint32_t k = 0; k < req->role[i].n_need; k++)
			if (req->role[i].need[k].resource >= slu_machine_resources(q->m) ||
			    req->role[i].need[k].n < 0 || req->role[i].need[k].n > SLU_AMOUNT_MAX)
				return false;
	return info.state != SLU_GANG_BLOCK;
}

static void job_in_list(struct pic *p, uint32_t state, uint32_t i)
{
	struct slu_queue *q = p->q;

	U(i);
	if (!pic_must(p, i < q->job.n && (!pic_reads(p) || !q->job.p[i].used)))
		return;
	struct job *j = &q->job.p[i];

	job_fields(p, j);
	if (!pic_reads(p) || p->in.rc)
		return;
	j->state = (uint8_t)state;
	j->dep = SLU_NIL;
	j->flags &= (uint8_t)~JOB_FRESH; /* see put_lines() */
	if (!pic_must(p, job_sane(q, j) && booking_sane(q, j)))
		return;
	j->used = true;
	queue_job_list(q, i);
	if (job_enter(q, i) < 0)
		wrong(p, -ENOMEM);
}

static void jobs(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->job.n);

	ROOM(&q->job, n);
	ROOM(&q->job_free, n + 1);
	ROOM(&q->fresh, n + 1);
	if (p->in.rc)
		return;
	if (pic_reads(p) && n)
		memset(q->job.p, 0, n * sizeof *q->job.p);
	if (pic_reads(p))
		q->job.n = n;
	for (uint32_t s = 0; s < SLU_LEN(q->list); s++) {
		uint32_t k = 0, at = q->list[s];

		for (uint32_t i = at; !pic_reads(p) && i != SLU_NIL; i = q->job.p[i].next)
			k++;
		k = count(p, k);
		for (; k && !p->in.rc; k--) {
			job_in_list(p, s, at);
			at = pic_reads(p) ? SLU_NIL : q->job.p[at].next;
		}
	}
	queue_pic_unused(p, q->job_free.p, &q->job_free.n, n, job_used);
	for (uint32_t i = 0; i < q->job_free.n && !p->in.rc; i++)
		U(q->job.p[q->job_free.p[i]].gen);
}

/* Buckets that have jobs in line, and jobs that came since the last pass. */
static void put_lines(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t listed = 0, full = 0;

	for (uint32_t i = 0; i < q->sub.n; i++) {
		struct subqueue *s = &q->sub.p[i];
		uint32_t k = count(p, s->active.n);

		if (!pic_must(p, k <= q->bucket.n))
			return;
		for (uint32_t a = 0; a < k; a++) {
			U(s->active.p[a]);
			if (!pic_must(p, s->active.p[a] < q->bucket.n))
				return;
			struct bucket *b = &q->bucket.p[s->active.p[a]];

			if (!pic_reads(p))
				continue;
			if (!pic_must(p, b->used && b->root != SLU_NIL && b->active == SLU_NIL &&
						 b->queue == i))
				return;
			b->active = a;
			s->active.n = a + 1;
			listed++;
		}
	}
	for (uint32_t i = 0; i < q->bucket.n; i++) {
		full += q->bucket.p[i].used && q->bucket.p[i].root != SLU_NIL;
		pic_must(p, !q->bucket.p[i].used || q->bucket.p[i].refs);
	}
	for (uint32_t i = 0; i < q->shape.n; i++)
		pic_must(p, !q->shape.p[i].used || q->shape.p[i].refs);
	pic_must(p, full == listed);
	uint32_t k = count(p, q->fresh.n);

	for (uint32_t i = 0; i < k && !p->in.rc; i++) {
		U(q->fresh.p[i]);
		if (!pic_reads(p) || !pic_must(p, q->fresh.p[i] < q->job.n))
			continue;
		struct job *j = &q->job.p[q->fresh.p[i]];

		pic_must(p, j->used && !(j->flags & JOB_FRESH));
		j->flags |= JOB_FRESH;
		q->fresh.n = i + 1;
	}
}

/* Dependencies, by the job that is waited for, in the order in which waiting jobs are settled. */
static void deps(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->dep_on.n);

	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		slu_job_id on = pic_reads(p) ? 0 : q->dep_on.e[i].key;
		uint32_t at = pic_reads(p) ? 0 : (uint32_t)q->dep_on.e[i].val, k = 0,
			 last = SLU_NIL;

		for (uint32_t d = at; d; d = q->dep.p[d - 1].next_for)
			k++;
		U(on);
		k = count(p, k);
		pic_must(p, on && k && !slu_map_get(&q->dep_on, on));
		for (; k && !p->in.rc; k--) {
			struct dep x = { .on = on, .open = true };

			if (!pic_reads(p))
				x = q->dep.p[at - 1];
			U(x.job);
			U(x.kind);
			at = x.next_for;
			if (!pic_reads(p) ||
			    !pic_must(p, x.job < q->job.n && q->job.p[x.job].used &&
						 q->job.p[x.job].state != SLU_JOB_WAITING &&
						 q->job.p[x.job].state != SLU_JOB_RUNNING &&
						 x.kind <= SLU_DEP_AFTER_START))
				continue;
			x.next = q->job.p[x.job].dep;
			if (slu_vec_push(&q->dep, x) < 0 ||
			    (last == SLU_NIL && slu_map_put(&q->dep_on, on, q->dep.n) < 0)) {
				wrong(p, -ENOMEM);
				return;
			}
			if (last != SLU_NIL)
				q->dep.p[last].next_for = q->dep.n;
			last = q->dep.n - 1;
			q->job.p[x.job].dep = last;
			q->job.p[x.job].ndep++;
		}
	}
}

/* How jobs ended that others may wait for; 0: an earlier job of the same number was forgotten. */
static void results(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->result_ring.n);

	if (!pic_must(p, n <= q->opts.keep_results))
		return;
	ROOM(&q->result_ring, n);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		uint64_t *r = pic_reads(p) ? NULL : slu_map_get(&q->result, q->result_ring.p[i]);
		uint64_t how = r ? *r + 1 : 0;

		U(q->result_ring.p[i]);
		U(how);
		pic_must(p, how <= SLU_RESULT_CANCELLED + 1);
		if (!pic_reads(p) || p->in.rc)
			continue;
		if (how && slu_map_put(&q->result, q->result_ring.p[i], how - 1) < 0)
			wrong(p, -ENOMEM);
		q->result_ring.n = i + 1;
	}
	U(q->result_next);
	pic_must(p, q->result_next < q->opts.keep_results &&
			    (!q->result_next || n == q->opts.keep_results));
}

static int by_time(const void *a, const void *b)
{
	const struct timer *x = a, *y = b;

	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* Timers in order of time, which is a valid heap, too. */
static void timers(struct pic *p)
{
	struct slu_queue *q = p->q;
	SLU_VEC(struct timer) t = { 0 };
	uint32_t n = 0;

	if (!pic_reads(p)) {
		if (slu_vec_reserve(&t, q->timer.n) < 0) {
			p->out->error = -ENOMEM;
			return;
		}
		for (uint32_t i = 0; i < q->timer.n; i++)
			if (!queue_timer_stale(q, &q->timer.p[i]))
				t.p[t.n++] = q->timer.p[i];
		if (t.n)
			qsort(t.p, t.n, sizeof *t.p, by_time);
	}
	n = count(p, t.n);
	ROOM(&q->timer, n);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		struct timer x = pic_reads(p) ? (struct timer){ 0 } : t.p[i];

		I(x.at_s);
		N(x.job);
		if (!pic_reads(p) ||
		    !pic_must(p, x.job == SLU_NIL || (x.job < q->job.n && q->job.p[x.job].used)))
			continue;
		x.gen = x.job == SLU_NIL ? 0 : q->job.p[x.job].gen;
		pic_must(p, !i || by_time(&q->timer.p[i - 1], &x) <= 0);
		q->timer.p[q->timer.n++] = x;
	}
	slu_vec_done(&t);
}

void queue_pic_jobs(struct pic *p)
{
	static void (*const part[])(struct pic *) = { jobs, put_lines, deps, results, timers };

	for (size_t i = 0; i < SLU_LEN(part) && !p->in.rc; i++)
		part[i](p);
}
