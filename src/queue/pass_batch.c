/* The order of jobs that came together: from the line to the model of batch_internal.h and back. */
#include "queue/queue_internal.h"

/* Share of the machine, in 1024th of a node of average size, of so many slots of each role (NULL: as many
 * as it takes to start).  A slot that leaves no room for a second one takes the whole node. */
static int64_t share_of(const struct slu_machine *m, const struct shape *s, const uint32_t *slots)
{
	int64_t up = slu_machine_up(m);
	int64_t share = 0;

	for (uint32_t r = 0; r < s->req.n_role; r++) {
		const struct slu_gang_role *role = &s->req.role[r];
		int64_t per_node = 1 << 20;

		for (uint32_t i = 0; i < role->n_need; i++)
			if (role->need[i].n > 0)
				per_node = SLU_MIN(per_node,
						   slu_machine_whole(m, role->need[i].resource) /
							   up / role->need[i].n);
		if (role->flags & (SLU_ROLE_ALONE | SLU_ROLE_EXCLUSIVE) || per_node < 1)
			per_node = 1;
		share += ((int64_t)(slots ? slots[r] : role->min) * 1024 + per_node - 1) / per_node;
	}
	return SLU_MAX(share, 1);
}

/* What a running job holds now: members may have ended, or joined it since it started. */
static int64_t share_held(const struct slu_queue *q, const struct job *job)
{
	const struct shape *s = &q->shape.p[job->shape];
	uint32_t slots[SLU_ROLES_MAX] = { 0 };
	struct slu_gang_place place = { 0 };
	struct slu_gang_info info = { 0 };
	int64_t share;

	if (slu_gang_info(q->m, job->id, &info, s->req.n_role > 1 ? &place : NULL) < 0)
		return share_of(q->m, s, NULL);
	slots[0] = s->req.n_role > 1 ? 0 : info.slots;
	for (uint32_t i = 0; i < place.n; i++)
		slots[place.part[i].role] += place.part[i].slots;
	share = share_of(q->m, s, slots);
	slu_gang_place_done(&place);
	return share;
}

/* Add the jobs with a promise, by planned start. */
static void gather_promised(struct slu_queue *q, struct subqueue *sub, struct batch *b)
{
	b->n = 0;
	for (uint32_t j = queue_order_first(q->job.p, sub->reserved); j != SLU_NIL;
	     j = queue_order_next(q->job.p, sub->reserved, &q->job.p[j])) {
		uint32_t k = b->n++;

		for (; k && queue_pass_by_plan(&j, &b->item[k - 1].job, q->job.p) < 0; k--)
			b->item[k] = b->item[k - 1];
		b->item[k].job = j;
	}
	b->promised = b->n;
}

/* Whether the job belongs to the batch of the oldest job that waits. */
static bool came_with(const struct job *j, const struct job *oldest)
{
	return j->priority == oldest->priority &&
	       j->first_seen_us - oldest->first_seen_us <= SLU_BATCH_S * INT64_C(1000000);
}

/* The line in order, one bucket's next job in q->heap each.  There is room in it for all buckets. */
static void line_begin(struct slu_queue *q, const struct subqueue *sub)
{
	q->heap.n = 0;
	for (uint32_t i = 0; i < sub->active.n; i++) {
		const struct bucket *b = &q->bucket.p[sub->active.p[i]];
		uint32_t j = b->closed ? SLU_NIL : queue_order_first(q->job.p, b->root);

		if (j != SLU_NIL)
			q->heap.p[q->heap.n++] = j;
	}
}

/* The first that is left; SLU_NIL after the last. */
static uint32_t line_next(struct slu_queue *q)
{
	uint32_t best = 0, j, next;

	if (!q->heap.n)
		return SLU_NIL;
	for (uint32_t i = 1; i < q->heap.n; i++)
		if (queue_order_before(&q->job.p[q->heap.p[i]], &q->job.p[q->heap.p[best]]))
			best = i;
	j = q->heap.p[best];
	next = queue_order_next(q->job.p, q->bucket.p[q->job.p[j].bucket].root, &q->job.p[j]);
	q->heap.p[best] = next != SLU_NIL ? next : q->heap.p[q->heap.n - 1];
	q->heap.n -= next == SLU_NIL;
	return j;
}

/* The jobs whose order is to be chosen; false if there is nothing to choose.  PACKED: those that
 * came with the oldest one, which may have a promise already.  BALANCED: all. */
static bool gather_batch(struct slu_queue *q, struct subqueue *sub, const struct job *last,
			 struct batch *b)
{
	uint32_t head = queue_order_first(q->job.p, sub->reserved), j;
	uint32_t most = sub->n[SLU_JOB_WAITING] > BATCH_MAX ? BATCH_LONG : BATCH_MAX;
	const struct job *oldest;
	bool differ = false;

	line_begin(q, sub);
	j = line_next(q);
	if (j == SLU_NIL)
		return false;
	oldest = &q->job.p[j];
	gather_promised(q, sub, b);
	if (head != SLU_NIL && queue_order_before(&q->job.p[head], oldest))
		oldest = &q->job.p[head];
	for (; j != SLU_NIL && b->n < most; j = line_next(q)) {
		const struct job *job = &q->job.p[j];

		if ((b->goal == BATCH_DONE && !came_with(job, oldest)) ||
		    (last && queue_order_before(last, job)))
			break;
		if (!queue_plan_user_free(q, j))
			continue;
		differ |= b->n && (job->bucket != q->job.p[b->item[b->n - 1].job].bucket ||
				   job->limit_s != q->job.p[b->item[b->n - 1].job].limit_s);
		b->item[b->n++].job = j;
	}
	return differ;
}

/* What the model needs to know; false if it cannot say anything. */
static bool describe_batch(struct slu_queue *q, struct batch *b)
{
	if (!slu_machine_up(q->m))
		return false;
	b->now_s = q->now_s;
	b->free = (int64_t)slu_machine_up(q->m) * 1024;
	b->n_busy = 0;
	for (uint32_t j = q->list[SLU_JOB_RUNNING]; j != SLU_NIL; j = q->job.p[j].next) {
		const struct job *job = &q->job.p[j];

		if (b->n_busy == BATCH_BUSY)
			return false;
		b->busy[b->n_busy] = (struct batch_busy){ job->end_s, share_held(q, job) };
		b->free -= b->busy[b->n_busy++].share;
	}
	b->free = SLU_MAX(b->free, 0);
	for (uint32_t i = 0; i < b->n; i++) {
		const struct job *job = &q->job.p[b->item[i].job];

		b->item[i].share = share_of(q->m, &q->shape.p[job->shape], NULL);
		b->item[i].limit_s = job->limit_s;
		b->item[i].priority = job->priority;
		b->item[i].due_s = job->due_s;
	}
	return true;
}

/* Is there a batch to be ordered?  PACKED plans one at a time; BALANCED plays the whole line. */
static bool has_batch(const struct subqueue *sub)
{
	return queue_pass_plays(sub) ||
	       (sub->conf.backfill == SLU_BACKFILL_PACKED && sub->conf.policy == SLU_POLICY_EASY &&
		sub->n_reserved <= 1);
}

/* Whether any job in line could start now.  Remembers the jobs that could not. */
static int any_job_fits(struct slu_queue *q, struct subqueue *sub, struct slu_error *err)
{
	int fits = 0;

	for (uint32_t i = 0; i < sub->active.n && !fits; i++)
		fits = queue_pass_fits(q, &q->bucket.p[sub->active.p[i]], err);
	return fits;
}

/* Try a batch in the order that serves it best.  *packed tells whether there was one. */
int queue_pass_batch(struct slu_queue *q, struct subqueue *sub, const struct job *last,
		     uint32_t *started, bool *packed, struct slu_decisions *out,
		     struct slu_error *err)
{
	bool promises = sub->conf.policy == SLU_POLICY_EASY;
	struct batch *b;

	*packed = false;
	if (!has_batch(sub))
		return 0;
	if (!promises) {
		int fits = any_job_fits(q, sub, err);

		if (fits <= 0)
			return fits;
	}
	if (!q->batch)
		q->batch = slu_malloc(sizeof *q->batch);
	b = q->batch;
	if (!b || slu_vec_reserve(&q->heap, sub->active.n) < 0)
		return -ENOMEM;
	b->goal = promises ? BATCH_DONE : BATCH_BALANCED;
	if (!gather_batch(q, sub, last, b) || !describe_batch(q, b))
		return 0;
	*packed = true;
	queue_batch_choose(b);
	for (uint32_t i = 0; i < b->n_order; i++) {
		uint32_t j = b->item[b->order[i]].job, bi = q->job.p[j].bucket;
		int64_t limit_s = q->job.p[j].limit_s;
		bool reserve = b->hold && !sub->n_reserved;
		int ans;

		if (!reserve && limit_s >= q->bucket.p[bi].failed_limit)
			continue;
		if (!queue_plan_user_free(q, j))
			continue;
		ans = queue_try_job(q, j, reserve, out, err);
		if (ans < 0)
			return ans;
		*started += ans == SLU_GANG_NOW;
		if (ans == SLU_GANG_BUSY)
			q->bucket.p[bi].failed_limit = SLU_MIN(q->bucket.p[bi].failed_limit,
							       limit_s);
	}
	return 0;
}
