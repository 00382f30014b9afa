/* One look at the plan: repair the promises, start what can start, promise to those in front, fill
 * the gaps with the rest.
 *
 * A pass over a queue, when room may have appeared:
 *   1. every reserved job, by planned start, is taken out of the plan and put back at its earliest
 *      time.  Its old place is free meanwhile, so it never moves later unless capacity was lost.
 *   2. the others in order, while fewer reservations than the policy wants lie before them: start
 *      or reserve.  SELECTIVE: the jobs that are due, in the order in which they became due.
 *   3. the rest may start, if that disturbs no reservation (they are bookings like any other).
 *      Bucket by bucket: what fails for the shortest job of a bucket fails for all.
 * When no room appeared, only fresh jobs are looked at: for the others the answer is known. */
#include "queue/queue_internal.h"

/* By planned start: a job planned earlier leaves room to jobs planned later, so one sweep settles most of
 * them. */
int queue_pass_by_plan(const void *a, const void *b, void *arg)
{
	const struct job *x = (const struct job *)arg + *(const uint32_t *)a;
	const struct job *y = (const struct job *)arg + *(const uint32_t *)b;

	if (x->planned_s != y->planned_s)
		return x->planned_s < y->planned_s ? -1 : 1;
	return x == y ? 0 : queue_order_before(x, y) ? -1 : 1;
}

/* The job may no longer start; a decision says that its promise ends. */
static int take_promise(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	int64_t was = q->job.p[j].planned_s;

	slu_gang_cancel(q->m, q->job.p[j].id);
	queue_unreserve(q, j);
	queue_bucket_enter(q, j);
	return queue_plan_told(q, j, was, SLU_CAUSE_DROPPED, out);
}

/* A promise counts for limits as a start does: where a limit was lowered, those at the end of the line
 * lose theirs.  Their room is for others. */
static int keep_limits(struct slu_queue *q, struct slu_decisions *out)
{
	int rc = 0;

	for (uint32_t i = q->todo.n; !rc && i-- > 0;)
		if (queue_plan_user_beyond(q, q->todo.p[i])) {
			rc = take_promise(q, q->todo.p[i], out);
			memmove(&q->todo.p[i], &q->todo.p[i + 1],
				(--q->todo.n - i) * sizeof q->todo.p[0]);
			q->seen_freed += q->seen_freed == q->freed;
			queue_plan_look(q);
			q->moved = true;
		}
	return rc;
}

static int repair(struct slu_queue *q, struct subqueue *sub, struct slu_decisions *out,
		  struct slu_error *err)
{
	int kept;

	q->todo.n = 0;
	if (slu_vec_reserve(&q->todo, sub->n_reserved) < 0)
		return -ENOMEM;
	for (uint32_t j = queue_order_first(q->job.p, sub->reserved); j != SLU_NIL;
	     j = queue_order_next(q->job.p, sub->reserved, &q->job.p[j]))
		q->todo.p[q->todo.n++] = j;
	kept = sub->conf.stopped ? 0 : keep_limits(q, out);
	if (kept < 0)
		return kept;
	if (q->todo.n > 1)
		qsort_r(q->todo.p, q->todo.n, sizeof *q->todo.p, queue_pass_by_plan, q->job.p);
	for (uint32_t i = 0; i < q->todo.n; i++) {
		bool moved = true;
		int rc;

		rc = sub->conf.stopped || !queue_plan_depth(&sub->conf)
			     ? take_promise(q, q->todo.p[i], out)
			     : queue_replan(q, q->todo.p[i], &moved, out, err);
		if (rc < 0)
			return rc;
		if (!moved)
			continue;
		/* A job that failed before may fit now.  The jobs before it, here and in queues before
		 * this one, did not see that room. */
		q->seen_freed += q->seen_freed == q->freed;
		queue_plan_look(q);
		q->moved |= i || sub != &q->sub.p[q->sub_order.p[0]];
	}
	return 0;
}

/* First unreserved job in order of all buckets that are not `closed` this time. */
uint32_t queue_pass_first(const struct slu_queue *q, const struct subqueue *sub)
{
	uint32_t best = SLU_NIL;

	for (uint32_t i = 0; i < sub->active.n; i++) {
		const struct bucket *b = &q->bucket.p[sub->active.p[i]];

		if (b->closed)
			continue;
		uint32_t j = b->after == SLU_NIL
				     ? queue_order_first(q->job.p, b->root)
				     : queue_order_next(q->job.p, b->root, &q->job.p[b->after]);

		if (j != SLU_NIL &&
		    (best == SLU_NIL || queue_order_before(&q->job.p[j], &q->job.p[best])))
			best = j;
	}
	return best;
}

/* ---- jobs that are due for a promise ---- */

/* First in line for a promise of all buckets that are not `closed` this time. */
static uint32_t first_due(const struct slu_queue *q, const struct subqueue *sub)
{
	uint32_t best = SLU_NIL;

	for (uint32_t i = 0; i < sub->active.n; i++) {
		const struct bucket *b = &q->bucket.p[sub->active.p[i]];
		uint32_t j = b->closed ? SLU_NIL : queue_order_soonest(q->job.p, b->root);

		if (j != SLU_NIL &&
		    (best == SLU_NIL || queue_order_sooner(&q->job.p[j], &q->job.p[best])))
			best = j;
	}
	return best;
}

/* The least priority in line: a job with a higher one does not wait to become due. */
static int64_t least_priority(const struct slu_queue *q, const struct subqueue *sub)
{
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < sub->active.n; i++) {
		uint32_t j = queue_order_last(q->job.p, q->bucket.p[sub->active.p[i]].root);

		least = SLU_MIN(least, q->job.p[j].priority);
	}
	return least;
}

static bool pass_is_due(const struct slu_queue *q, uint32_t j, int64_t least)
{
	return q->job.p[j].due_s <= q->now_s || q->job.p[j].priority > least;
}

static void open_buckets(struct slu_queue *q, struct subqueue *sub)
{
	for (uint32_t i = 0; i < sub->active.n; i++) {
		struct bucket *b = &q->bucket.p[sub->active.p[i]];

		/* A job that may not start does not block others. */
		b->closed = !queue_plan_user_free(q, b->root);
		b->after = SLU_NIL;
		if (b->failed_at != q->freed) {
			b->failed_at = q->freed;
			b->failed_limit = INT64_MAX;
		}
	}
}

/* Start the jobs that are due, or promise them a start. */
static int promise_due(struct slu_queue *q, struct subqueue *sub, uint32_t *started,
		       struct slu_decisions *out, struct slu_error *err)
{
	int64_t least = least_priority(q, sub);

	while (sub->n_reserved < queue_plan_depth(&sub->conf)) {
		uint32_t j = first_due(q, sub);

		if (j == SLU_NIL || !pass_is_due(q, j, least))
			break;
		struct bucket *b = &q->bucket.p[q->job.p[j].bucket];

		if (!queue_plan_user_free(q, j)) {
			b->closed = true;
			continue;
		}
		int ans = queue_try_job(q, j, true, out, err);

		if (ans < 0)
			return ans;
		*started += ans == SLU_GANG_NOW;
		if (ans == SLU_GANG_BUSY) /* no time found for it, nor for those like it */
			b->closed = true;
	}
	open_buckets(q, sub);
	return 0;
}

/* ---- the gaps ---- */

static bool shortest_first(const struct subqueue *sub)
{
	return sub->conf.backfill == SLU_BACKFILL_SHORTEST ||
	       sub->conf.backfill == SLU_BACKFILL_BALANCED;
}

/* Candidate of a bucket for the gaps: limit below what failed, not after `last`. */
static uint32_t candidate(const struct slu_queue *q, const struct subqueue *sub,
			  const struct bucket *b, const struct job *last)
{
	uint32_t j;

	if (shortest_first(sub)) {
		j = queue_order_shortest(q->job.p, b->root, last);
		return j == SLU_NIL || q->job.p[j].limit_s >= b->failed_limit ? SLU_NIL : j;
	}
	j = queue_order_first_below(q->job.p, b->root, b->failed_limit);
	return j == SLU_NIL || (last && queue_order_before(last, &q->job.p[j])) ? SLU_NIL : j;
}

static bool heap_before(const struct slu_queue *q, const struct subqueue *sub, uint32_t a,
			uint32_t b)
{
	return shortest_first(sub) ? queue_order_shorter(&q->job.p[a], &q->job.p[b])
				   : queue_order_before(&q->job.p[a], &q->job.p[b]);
}

static void heap_down(struct slu_queue *q, const struct subqueue *sub, uint32_t i)
{
	uint32_t *h = q->heap.p, n = q->heap.n;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= n)
			return;
		if (c + 1 < n && heap_before(q, sub, h[c + 1], h[c]))
			c++;
		if (!heap_before(q, sub, h[c], h[i]))
			return;
		uint32_t tmp = h[i];

		h[i] = h[c];
		h[c] = tmp;
		i = c;
	}
}

/* Could the shortest job of this bucket start now?  Remembers a no. */
int queue_pass_fits(struct slu_queue *q, struct bucket *b, struct slu_error *err)
{
	uint32_t j = queue_order_shortest(q->job.p, b->root, NULL);

	if (q->job.p[j].limit_s >= b->failed_limit)
		return 0;
	struct slu_gang_req req = queue_job_req(q, j);
	int ans = slu_gang_match(q->m, SLU_GANG_TRY, q->now_s, 0, &req, NULL, err);

	if (ans < 0)
		return ans;
	if (ans == SLU_GANG_NOW)
		return 1;
	b->failed_limit = q->job.p[j].limit_s;
	return 0;
}

/* The job at `depth` in order (reserved ones included), or NULL if the line is shorter. */
static const struct job *depth_bound(struct slu_queue *q, struct subqueue *sub, uint32_t depth)
{
	uint32_t at = queue_order_first(q->job.p, sub->reserved), last = SLU_NIL;

	if (!depth || sub->n[SLU_JOB_WAITING] <= depth)
		return NULL;
	/* A merge of the buckets; `after` is where each one stands. */
	for (uint32_t k = 0; k < depth; k++) {
		uint32_t j = queue_pass_first(q, sub);

		if (j != SLU_NIL &&
		    (at == SLU_NIL || queue_order_before(&q->job.p[j], &q->job.p[at]))) {
			q->bucket.p[q->job.p[j].bucket].after = j;
			last = j;
		} else if (at == SLU_NIL) { /* the others are at a limit */
			last = SLU_NIL;
			break;
		} else {
			last = at;
			at = queue_order_next(q->job.p, sub->reserved, &q->job.p[at]);
		}
	}
	for (uint32_t i = 0; i < sub->active.n; i++)
		q->bucket.p[sub->active.p[i]].after = SLU_NIL;
	return last == SLU_NIL ? NULL : &q->job.p[last];
}

/* Fill the gaps.  *started counts. */
static int backfill(struct slu_queue *q, struct subqueue *sub, const struct job *last,
		    uint32_t *started, struct slu_decisions *out, struct slu_error *err)
{
	q->heap.n = 0;
	if (slu_vec_reserve(&q->heap, sub->active.n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < sub->active.n; i++) {
		struct bucket *b = &q->bucket.p[sub->active.p[i]];
		uint32_t j = b->closed ? SLU_NIL : candidate(q, sub, b, last);

		if (j == SLU_NIL)
			continue;
		/* One question for the whole bucket, where there is more than one job in it. */
		if (q->job.p[b->root].ord.size > 1) {
			int fits = queue_pass_fits(q, b, err);

			if (fits < 0)
				return fits;
			if (!fits)
				continue;
		}
		q->heap.p[q->heap.n++] = j;
	}
	for (uint32_t i = q->heap.n / 2; i-- > 0;)
		heap_down(q, sub, i);
	while (q->heap.n) {
		uint32_t j = q->heap.p[0], bi = q->job.p[j].bucket;
		bool limited = !queue_plan_user_free(q, j);
		int64_t limit_s = q->job.p[j].limit_s;
		int ans = limited ? SLU_GANG_BUSY : queue_try_job(q, j, false, out, err);
		uint32_t next = SLU_NIL;

		if (ans < 0)
			return ans;
		if (ans == SLU_GANG_NOW)
			++*started;
		if (ans == SLU_GANG_BUSY && !limited)
			q->bucket.p[bi].failed_limit = limit_s;
		/* The bucket may have gone with its last job. */
		if (!limited && q->bucket.p[bi].used && q->bucket.p[bi].root != SLU_NIL &&
		    q->bucket.p[bi].queue == (uint32_t)(sub - q->sub.p))
			next = candidate(q, sub, &q->bucket.p[bi], last);
		if (next != SLU_NIL)
			q->heap.p[0] = next;
		else
			q->heap.p[0] = q->heap.p[--q->heap.n];
		heap_down(q, sub, 0);
	}
	return 0;
}

/* Is there room at this moment for this job, whatever comes later? */
static int room_now(struct slu_queue *q, uint32_t j, struct slu_error *err)
{
	struct slu_gang_req req = queue_job_req(q, j);

	req.duration_s = 1;
	req.deadline_s = 0;
	int ans = slu_gang_match(q->m, SLU_GANG_TRY, q->now_s, 0, &req, NULL, err);

	return ans < 0 ? ans : ans == SLU_GANG_NOW;
}

/* Whether some job fits now: a job that was tried before a promise moved may fit in the room it left. */
int queue_pass_may_start(struct slu_queue *q, struct slu_error *err)
{
	int rc = 0;

	for (uint32_t s = 0; s < q->sub.n; s++) {
		const struct subqueue *sub = &q->sub.p[s];

		if (sub->conf.stopped)
			continue;
		for (uint32_t j = queue_order_first(q->job.p, sub->reserved); !rc && j != SLU_NIL;
		     j = queue_order_next(q->job.p, sub->reserved, &q->job.p[j])) {
			rc = q->job.p[j].planned_s <= q->now_s ? 1 : room_now(q, j, err);
			if (rc > 0)
				rc = queue_plan_promise_fits(q, q->m, j, &q->due, err);
		}
		for (uint32_t i = 0; !rc && q->sub.n > 1 && i < sub->active.n; i++)
			rc = room_now(q, q->bucket.p[sub->active.p[i]].root, err);
	}
	return rc;
}

/* Whether no job could start in a pass.  Then the plan of a policy with one reservation may stay
 * as it is until some job could start (opts.lazy): no start depends on the plan before. */
static int none_could_start(struct slu_queue *q, struct subqueue *sub, struct slu_error *err)
{
	uint32_t head = queue_order_first(q->job.p, sub->reserved);
	int rc;

	if (!q->opts.lazy || sub->n_reserved != 1 || queue_plan_depth(&sub->conf) != 1 ||
	    q->later.cause || q->job.p[head].planned_s <= q->now_s)
		return 0;
	/* The head is first in line, or else a more urgent one wants a reservation of its own. */
	uint32_t first = queue_pass_first(q, sub);

	if (first != SLU_NIL && queue_order_before(&q->job.p[first], &q->job.p[head]))
		return 0;
	rc = room_now(q, head, err);
	for (uint32_t i = 0; !rc && i < sub->active.n && sub->conf.policy != SLU_POLICY_FCFS; i++)
		rc = room_now(q, q->bucket.p[sub->active.p[i]].root, err);
	return rc < 0 ? rc : !rc;
}

/* Start or promise, in order, while the policy has reservations to give. */
static int promise_first(struct slu_queue *q, struct subqueue *sub, const struct job *last,
			 bool packed, uint32_t *started, struct slu_decisions *out,
			 struct slu_error *err)
{
	const struct slu_queue_limits *l = &sub->conf.limit;
	bool limited = l->max_running || l->max_running_user;
	uint32_t depth = queue_plan_depth(&sub->conf);

	for (bool stop = false; depth && !stop;) {
		uint32_t j = queue_pass_first(q, sub);

		if (packed && sub->n_reserved >= depth)
			break;
		if (j == SLU_NIL || (last && queue_order_before(last, &q->job.p[j])))
			break;
		if (queue_order_rank(q->job.p, sub->reserved, &q->job.p[j]) >= depth)
			break;
		if (!queue_plan_user_free(q, j)) {
			q->bucket.p[q->job.p[j].bucket].closed = true;
			continue;
		}
		int ans = queue_try_job(q, j, true, out, err);

		if (ans < 0)
			return ans;
		/* A promise counts for limits as a start does. */
		*started += ans == SLU_GANG_NOW || (ans == SLU_GANG_LATER && limited);
		/* No time was found for the job: the next job counts as the first then, except
		 * under FCFS. */
		if (ans == SLU_GANG_BUSY) {
			q->bucket.p[q->job.p[j].bucket].after = j;
			stop = sub->conf.policy == SLU_POLICY_FCFS;
		}
	}
	for (uint32_t i = 0; i < sub->active.n; i++)
		q->bucket.p[sub->active.p[i]].after = SLU_NIL;
	return 0;
}

int queue_pass_full(struct slu_queue *q, struct subqueue *sub, struct slu_decisions *out,
		    struct slu_error *err)
{
	bool selective = sub->conf.policy == SLU_POLICY_SELECTIVE;
	uint32_t started;

	open_buckets(q, sub);
	int rc = none_could_start(q, sub, err);

	if (rc < 0)
		return rc;
	sub->stale = rc;
	if (rc)
		return 0;
	rc = repair(q, sub, out, err);

	if (rc < 0 || sub->conf.stopped)
		return rc;
	const struct job *last;

	do {
		started = 0;
		open_buckets(q, sub);
		last = depth_bound(q, sub, sub->conf.queue_depth);
		bool packed;

		rc = selective ? promise_due(q, sub, &started, out, err) : 0;
		if (!rc)
			rc = queue_pass_batch(q, sub, last, &started, &packed, out, err);
		if (!rc && !selective)
			rc = promise_first(q, sub, last, packed, &started, out, err);
		if (rc < 0)
			return rc;
		if (sub->conf.policy != SLU_POLICY_FCFS) {
			rc = backfill(q, sub, last, &started, out, err);
			if (rc < 0)
				return rc;
		}
	} while (started && last); /* the jobs behind the last one have moved up */
	return 0;
}

/* How many of those that may start are before it in line, counted up to `enough`. */
static uint32_t ahead(struct slu_queue *q, const struct subqueue *sub, uint32_t j, uint32_t enough)
{
	const struct job *job = &q->job.p[j];
	uint32_t n = queue_order_rank(q->job.p, sub->reserved, job);

	for (uint32_t i = 0; i < sub->active.n && n < enough; i++) {
		uint32_t root = q->bucket.p[sub->active.p[i]].root;

		if (queue_plan_user_free(q, root))
			n += queue_order_rank(q->job.p, root, job);
	}
	return n;
}

bool queue_pass_allows(struct slu_queue *q, uint32_t j)
{
	const struct subqueue *sub = &q->sub.p[q->job.p[j].queue];
	const struct slu_queue_conf *c = &sub->conf;

	if (!queue_plan_user_free(q, j))
		return false;
	if (c->policy == SLU_POLICY_FCFS && ahead(q, sub, j, 1))
		return false;
	return !c->queue_depth || ahead(q, sub, j, c->queue_depth) < c->queue_depth;
}

/* No room has appeared: only this new job needs a look. */
static int pass_one(struct slu_queue *q, struct subqueue *sub, uint32_t j,
		    struct slu_decisions *out, struct slu_error *err)
{
	const struct slu_queue_conf *c = &sub->conf;
	uint32_t depth = queue_plan_depth(c);
	uint32_t enough = c->queue_depth ? c->queue_depth : depth;
	bool counts = enough != UINT32_MAX && (c->queue_depth || c->policy != SLU_POLICY_SELECTIVE);
	uint32_t n = counts ? ahead(q, sub, j, enough) : 0;
	struct bucket *b = &q->bucket.p[q->job.p[j].bucket];

	if ((c->queue_depth && n >= c->queue_depth) || (c->policy == SLU_POLICY_FCFS && n))
		return 0;
	if (!queue_plan_user_free(q, j))
		return 0;
	/* The first reservation may be out of date: plan again before relying on it. */
	if (sub->stale) {
		int room = room_now(q, j, err);

		return room <= 0 && n ? room : queue_pass_full(q, sub, out, err);
	}
	/* As a full pass would: those before it that have no promise could not be given one. */
	bool reserve = queue_order_rank(q->job.p, sub->reserved, &q->job.p[j]) < depth;
	int64_t limit_s = q->job.p[j].limit_s;

	if (c->policy == SLU_POLICY_SELECTIVE)
		reserve = sub->n_reserved < depth && pass_is_due(q, j, least_priority(q, sub));

	if (b->failed_at != q->freed) {
		b->failed_at = q->freed;
		b->failed_limit = INT64_MAX;
	}
	if (!reserve && limit_s >= b->failed_limit)
		return 0;
	uint32_t bi = q->job.p[j].bucket;
	int ans = queue_try_job(q, j, reserve, out, err);

	if (ans == SLU_GANG_BUSY && q->bucket.p[bi].failed_limit > limit_s)
		q->bucket.p[bi].failed_limit = limit_s;
	if (ans == SLU_GANG_NOW || ans == SLU_GANG_LATER)
		queue_plan_moved_up(q,
				    j); /* and its user may be at a limit now: others are first */
	return ans < 0 ? ans : 0;
}

int queue_pass_fresh(struct slu_queue *q, struct slu_decisions *out, struct slu_error *err)
{
	/* A handful at most; in queue order, as a full pass would take them. */
	for (uint32_t i = 1; i < q->fresh.n; i++)
		for (uint32_t k = i; k && queue_order_before(&q->job.p[q->fresh.p[k]],
							     &q->job.p[q->fresh.p[k - 1]]);
		     k--) {
			uint32_t tmp = q->fresh.p[k];

			q->fresh.p[k] = q->fresh.p[k - 1];
			q->fresh.p[k - 1] = tmp;
		}
	for (uint32_t o = 0; o < q->sub_order.n; o++) {
		uint32_t s = q->sub_order.p[o];

		for (uint32_t i = 0; i < q->fresh.n; i++) {
			uint32_t j = q->fresh.p[i];
			int rc;

			if (q->job.p[j].queue != s || q->job.p[j].state != SLU_JOB_WAITING ||
			    q->job.p[j].planned_s != SLU_TIME_NONE || q->sub.p[s].conf.stopped)
				continue;
			rc = pass_one(q, &q->sub.p[s], j, out, err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}
