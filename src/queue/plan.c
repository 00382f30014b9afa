/* One look at the plan: repair the promises, start what can start, promise to those in front, fill
 * the gaps with the rest.
 *
 * A pass over a queue, when room may have appeared:
 *   1. every reserved job, by planned start, is taken out of the plan and put back at its earliest
 * time. Its old place is free while it looks, so it never moves later unless capacity was lost.
 *   2. the others in order, while fewer reservations than the policy wants lie before them: start
 *      or reserve.
 *   3. the rest may start, if that disturbs no reservation (they are bookings like any other).
 *      Bucket by bucket: what fails for the shortest job of a bucket fails for all.
 * When no room appeared, only fresh jobs are looked at: for the others the answer is known. */
#include "queue/state.h"

void plan_freed(struct slu_queue *q, enum slu_cause cause, slu_job_id job, slu_node node)
{
	q->freed++;
	q->earlier = (struct cause){ .cause = cause, .job = job, .node = node };
}

void plan_lost(struct slu_queue *q, enum slu_cause cause, slu_job_id job, slu_node node)
{
	q->freed++;
	q->later = (struct cause){ .cause = cause, .job = job, .node = node };
}

uint32_t plan_depth(const struct slu_queue_conf *c)
{
	switch (c->policy) {
	case SLU_POLICY_FCFS:
	case SLU_POLICY_EASY:
		return 1;
	case SLU_POLICY_HYBRID:
		return c->reservation_depth;
	case SLU_POLICY_CONSERVATIVE:
		return UINT32_MAX;
	case SLU_POLICY_FIRST_FIT:
		break;
	}
	return 0;
}

bool plan_user_free(struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	const struct subqueue *sub = &q->sub.p[job->queue];
	const struct slu_queue_limits *l = &sub->conf.limit;

	if (l->max_running && sub->n[SLU_JOB_RUNNING] + sub->n_reserved >= l->max_running)
		return false;
	if (!l->max_running_user)
		return true;
	const struct usage *u = usage_of(q, job->queue, job->user);

	return u->running + u->reserved < l->max_running_user;
}

/* ---- one job ---- */

static int match(struct slu_queue *q, uint32_t j, bool reserve, struct slu_error *err)
{
	struct slu_gang_req req = job_req(q, j);
	slu_job_id id = q->job.p[j].id;

	if (!reserve || !q->shape.p[q->job.p[j].shape].elastic)
		return slu_gang_match(q->m,
				      reserve ? SLU_GANG_ALLOCATE_OR_RESERVE : SLU_GANG_ALLOCATE,
				      q->now_s, id, &req, &q->place, err);
	/* Elastic: now with what there is, later with the minimum. */
	int rc = slu_gang_match(q->m, SLU_GANG_ALLOCATE, q->now_s, id, &req, &q->place, err);

	if (rc != SLU_GANG_BUSY)
		return rc;
	struct slu_gang_role role[SLU_ROLES_MAX];

	for (uint32_t i = 0; i < req.n_role; i++) {
		role[i] = req.role[i];
		role[i].max = role[i].min;
	}
	req.role = role;
	req.max = req.min;
	return slu_gang_match(q->m, SLU_GANG_ALLOCATE_OR_RESERVE, q->now_s, id, &req, &q->place,
			      err);
}

/* The booking is made; take the job out of line and tell.  It is in no tree. */
static int start(struct slu_queue *q, uint32_t j, enum slu_how how, int64_t was_s,
		 struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	struct slu_decision *d = decide(out, SLU_DEC_START, job->id);

	if (!d || decide_parts(out, d, q->place.part, q->place.n) < 0 ||
	    timer_add(q, q->place.end_s == SLU_FOREVER ? SLU_FOREVER : q->place.end_s + 1, j) < 0) {
		if (d)
			out->v.n--;
		return -ENOMEM;
	}
	job->start_s = q->now_s;
	job->end_s = q->place.end_s;
	job->how = (uint8_t)how;
	d->start_s = q->now_s;
	d->end_s = job->end_s;
	d->was_s = was_s;
	d->how = how;
	d->cause = SLU_CAUSE_STARTED;
	d->size = q->place.slots;
	job_set_state(q, j, SLU_JOB_RUNNING);
	sub->started++;
	sub->backfilled += how == SLU_HOW_BACKFILL;
	job->flags &= (uint8_t)~JOB_NOPLAN;
	q->grow_any |= (job->flags & JOB_GROW) && q->shape.p[job->shape].elastic;
	return dep_fire(q, job->id, true, SLU_RESULT_OK, out);
}

/* It is booked for later; tell when that is news.  `job->planned_s` is what was told before. */
static int planned(struct slu_queue *q, uint32_t j, int64_t was_s, struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	int64_t at = q->place.start_s;

	/* Due now, but those who should have ended by now have not said so yet: no change to tell.
	 */
	if (was_s == q->now_s && at > was_s && q->later.cause == SLU_CAUSE_NONE)
		at = was_s;
	if (at != was_s) {
		struct slu_decision *d = decide(out, SLU_DEC_PLAN, job->id);
		const struct cause *c = at > was_s ? &q->later : &q->earlier;

		if (!d || decide_parts(out, d, q->place.part, q->place.n) < 0) {
			if (d)
				out->v.n--;
			return -ENOMEM;
		}
		d->start_s = at;
		d->end_s = q->place.end_s;
		d->was_s = was_s;
		d->size = q->place.slots;
		d->cause = was_s == SLU_TIME_NONE ? SLU_CAUSE_NEW
			   : c->cause             ? c->cause
			   : was_s < q->now_s     ? SLU_CAUSE_LATE
						  : SLU_CAUSE_REPLAN;
		if (was_s != SLU_TIME_NONE) {
			d->cause_job = c->job;
			d->cause_node = c->node;
		}
	}
	job->planned_s = at;
	if (job->promised_s == SLU_TIME_NONE)
		job->promised_s = at;
	return 0;
}

static enum slu_how how_now(const struct subqueue *sub)
{
	return sub->n_reserved ? SLU_HOW_BACKFILL : SLU_HOW_IMMEDIATE;
}

static void set_noplan(struct slu_queue *q, uint32_t j, bool on)
{
	struct job *job = &q->job.p[j];

	if (on == !!(job->flags & JOB_NOPLAN))
		return;
	job->flags ^= JOB_NOPLAN;
	q->sub.p[job->queue].n_noplan += on ? 1 : -1u;
}

/* An unreserved job in line: start it, or reserve for it if asked to.
 * SLU_GANG_NOW, _LATER (it has moved to the reserved tree) or _BUSY. */
static int try_job(struct slu_queue *q, uint32_t j, bool reserve, struct slu_decisions *out,
		   struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	int ans = match(q, j, reserve, err), rc = 0;

	if (ans < 0 || ans == SLU_GANG_BUSY || ans == SLU_GANG_NEVER) {
		if (ans >= 0 && reserve)
			set_noplan(q, j, true);
		return ans < 0 ? ans : SLU_GANG_BUSY;
	}
	if (job->flags & JOB_NOPLAN)
		set_noplan(q, j, false);
	bucket_leave(q, j);
	if (ans == SLU_GANG_NOW) {
		rc = start(q, j, how_now(sub), SLU_TIME_NONE, out);
		if (job->state == SLU_JOB_RUNNING)
			bucket_detach(q, j);
	} else {
		rc = planned(q, j, SLU_TIME_NONE, out);
		if (!rc) {
			order_insert(q->job.p, &sub->reserved, j);
			sub->n_reserved++;
			usage_of(q, job->queue, job->user)->reserved++;
		}
	}
	if (rc < 0 && job->state == SLU_JOB_WAITING) {
		slu_gang_cancel(q->m, job->id);
		job->planned_s = SLU_TIME_NONE;
		bucket_enter(q, j);
	}
	return rc < 0 ? rc : ans;
}

/* Back from the reserved tree to the bucket; the booking is gone already. */
static void unreserve(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];

	order_remove(q->job.p, &sub->reserved, j);
	sub->n_reserved--;
	usage_of(q, job->queue, job->user)->reserved--;
	job->planned_s = SLU_TIME_NONE;
}

/* Its time has come, but those who should have ended by now have not said so: keep the booking as
 * it is.  Looking for another place would lose one that ends just before somebody else's start. */
static int keep_due(struct slu_queue *q, uint32_t j, struct slu_error *err)
{
	const struct job *job = &q->job.p[j];
	const struct slu_gang_req *req = &q->shape.p[job->shape].req;
	struct slu_gang_booking b = { .job = job->id,
				      .start_s = q->now_s,
				      .end_s = q->due.end_s,
				      .role = req->role,
				      .n_role = req->n_role,
				      .part = q->due.part,
				      .n_part = q->due.n,
				      .flags = SLU_BOOK_RESERVED };

	return slu_gang_register(q->m, q->now_s, &b, err);
}

/* Take a reserved job out of the plan and put it back at its earliest time. */
static int replan(struct slu_queue *q, uint32_t j, struct slu_decisions *out, struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	int64_t was = job->planned_s;
	bool due = was == q->now_s && q->later.cause == SLU_CAUSE_NONE;
	struct slu_gang_info info;
	int rc = due ? slu_gang_info(q->m, job->id, &info, &q->due) : 0;

	if (!rc)
		rc = slu_gang_cancel(q->m, job->id);
	if (rc < 0 && rc != -ENOENT) /* gone with its node: fine */
		return rc;
	due &= !rc;
	int ans = match(q, j, !due, err);

	if (ans == SLU_GANG_LATER)
		return planned(q, j, was, out);
	if (ans == SLU_GANG_BUSY && due)
		return keep_due(q, j, err);
	unreserve(q, j);
	if (ans == SLU_GANG_NOW) {
		rc = start(q, j, SLU_HOW_RESERVED, was, out);
		if (job->state == SLU_JOB_RUNNING) {
			bucket_detach(q, j);
			return rc;
		}
		slu_gang_cancel(q->m, job->id);
	}
	bucket_enter(q, j);
	if (ans == SLU_GANG_NOW || ans < 0)
		return rc < 0 ? rc : ans;
	set_noplan(q, j, true);
	return plan_told(q, j, was, q->later.cause ? q->later.cause : SLU_CAUSE_DROPPED, out);
}

/* ---- one queue ---- */

/* By planned start: who is planned earlier leaves room to who is planned later, so one sweep goes a
 * long way. */
static int by_plan(const void *a, const void *b, void *arg)
{
	const struct job *x = (const struct job *)arg + *(const uint32_t *)a;
	const struct job *y = (const struct job *)arg + *(const uint32_t *)b;

	if (x->planned_s != y->planned_s)
		return x->planned_s < y->planned_s ? -1 : 1;
	return x == y ? 0 : order_before(x, y) ? -1 : 1;
}

static int repair(struct slu_queue *q, struct subqueue *sub, struct slu_decisions *out,
		  struct slu_error *err)
{
	q->todo.n = 0;
	if (slu_vec_reserve(&q->todo, sub->n_reserved) < 0)
		return -ENOMEM;
	for (uint32_t j = order_first(q->job.p, sub->reserved); j != SLU_NIL;
	     j = order_next(q->job.p, sub->reserved, &q->job.p[j]))
		q->todo.p[q->todo.n++] = j;
	if (q->todo.n > 1)
		qsort_r(q->todo.p, q->todo.n, sizeof *q->todo.p, by_plan, q->job.p);
	for (uint32_t i = 0; i < q->todo.n; i++) {
		int rc;

		if (sub->conf.stopped) {
			uint32_t j = q->todo.p[i];
			int64_t was = q->job.p[j].planned_s;

			slu_gang_cancel(q->m, q->job.p[j].id);
			unreserve(q, j);
			bucket_enter(q, j);
			rc = plan_told(q, j, was, SLU_CAUSE_DROPPED, out);
		} else {
			rc = replan(q, q->todo.p[i], out, err);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* First unreserved job in order of all buckets that are not `closed` this time. */
static uint32_t first_in_line(const struct slu_queue *q, const struct subqueue *sub)
{
	uint32_t best = SLU_NIL;

	for (uint32_t i = 0; i < sub->active.n; i++) {
		const struct bucket *b = &q->bucket.p[sub->active.p[i]];

		if (b->closed)
			continue;
		uint32_t j = b->after == SLU_NIL
				     ? order_first(q->job.p, b->root)
				     : order_next(q->job.p, b->root, &q->job.p[b->after]);

		if (j != SLU_NIL &&
		    (best == SLU_NIL || order_before(&q->job.p[j], &q->job.p[best])))
			best = j;
	}
	return best;
}

/* Candidate of a bucket for the gaps: limit below what failed, not after `last`. */
static uint32_t candidate(const struct slu_queue *q, const struct subqueue *sub,
			  const struct bucket *b, const struct job *last)
{
	uint32_t j;

	if (sub->conf.backfill == SLU_BACKFILL_SHORTEST) {
		j = order_shortest(q->job.p, b->root, last);
		return j == SLU_NIL || q->job.p[j].limit_s >= b->failed_limit ? SLU_NIL : j;
	}
	j = order_first_below(q->job.p, b->root, b->failed_limit);
	return j == SLU_NIL || (last && order_before(last, &q->job.p[j])) ? SLU_NIL : j;
}

static bool heap_before(const struct slu_queue *q, const struct subqueue *sub, uint32_t a,
			uint32_t b)
{
	return sub->conf.backfill == SLU_BACKFILL_SHORTEST
		       ? order_shorter(&q->job.p[a], &q->job.p[b])
		       : order_before(&q->job.p[a], &q->job.p[b]);
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
static int bucket_fits(struct slu_queue *q, struct bucket *b, struct slu_error *err)
{
	uint32_t j = order_shortest(q->job.p, b->root, NULL);

	if (q->job.p[j].limit_s >= b->failed_limit)
		return 0;
	struct slu_gang_req req = job_req(q, j);
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
	uint32_t at = order_first(q->job.p, sub->reserved), last = SLU_NIL;

	if (!depth || sub->n[SLU_JOB_WAITING] <= depth)
		return NULL;
	/* A merge of the buckets; `after` is where each one stands. */
	for (uint32_t k = 0; k < depth; k++) {
		uint32_t j = first_in_line(q, sub);

		if (j != SLU_NIL && (at == SLU_NIL || order_before(&q->job.p[j], &q->job.p[at]))) {
			q->bucket.p[q->job.p[j].bucket].after = j;
			last = j;
		} else {
			last = at;
			at = order_next(q->job.p, sub->reserved, &q->job.p[at]);
		}
	}
	for (uint32_t i = 0; i < sub->active.n; i++)
		q->bucket.p[sub->active.p[i]].after = SLU_NIL;
	return &q->job.p[last];
}

static void open_buckets(struct slu_queue *q, struct subqueue *sub)
{
	for (uint32_t i = 0; i < sub->active.n; i++) {
		struct bucket *b = &q->bucket.p[sub->active.p[i]];

		b->closed = false;
		b->after = SLU_NIL;
		if (b->failed_at != q->freed) {
			b->failed_at = q->freed;
			b->failed_limit = INT64_MAX;
		}
	}
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
			int fits = bucket_fits(q, b, err);

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
		bool limited = !plan_user_free(q, j);
		int64_t limit_s = q->job.p[j].limit_s;
		int ans = limited ? SLU_GANG_BUSY : try_job(q, j, false, out, err);
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

static int pass_full(struct slu_queue *q, struct subqueue *sub, struct slu_decisions *out,
		     struct slu_error *err)
{
	uint32_t depth = plan_depth(&sub->conf), started;
	int rc = repair(q, sub, out, err);

	if (rc < 0 || sub->conf.stopped)
		return rc;
	do {
		started = 0;
		open_buckets(q, sub);
		const struct job *last = depth_bound(q, sub, sub->conf.queue_depth);

		for (bool stop = false; depth && !stop;) {
			uint32_t j = first_in_line(q, sub);

			if (j == SLU_NIL || (last && order_before(last, &q->job.p[j])))
				break;
			if (order_rank(q->job.p, sub->reserved, &q->job.p[j]) >= depth)
				break;
			if (!plan_user_free(q, j)) {
				q->bucket.p[q->job.p[j].bucket].closed = true;
				continue;
			}
			int ans = try_job(q, j, true, out, err);

			if (ans < 0)
				return ans;
			started += ans == SLU_GANG_NOW;
			/* No time found for it: the next one is the first then, but for FCFS. */
			if (ans == SLU_GANG_BUSY) {
				q->bucket.p[q->job.p[j].bucket].after = j;
				stop = sub->conf.policy == SLU_POLICY_FCFS;
			}
		}
		for (uint32_t i = 0; i < sub->active.n; i++)
			q->bucket.p[sub->active.p[i]].after = SLU_NIL;
		if (sub->conf.policy != SLU_POLICY_FCFS) {
			rc = backfill(q, sub, last, &started, out, err);
			if (rc < 0)
				return rc;
		}
	} while (started && sub->conf.queue_depth &&
		 sub->n[SLU_JOB_WAITING] > sub->conf.queue_depth);
	return 0;
}

/* How many are before it in line, counted up to `enough`. */
static uint32_t ahead(const struct slu_queue *q, const struct subqueue *sub, uint32_t j,
		      uint32_t enough)
{
	const struct job *job = &q->job.p[j];
	uint32_t n = order_rank(q->job.p, sub->reserved, job);

	for (uint32_t i = 0; i < sub->active.n && n < enough; i++)
		n += order_rank(q->job.p, q->bucket.p[sub->active.p[i]].root, job);
	return n;
}

/* No room has appeared: only this new job needs a look. */
static int pass_one(struct slu_queue *q, struct subqueue *sub, uint32_t j,
		    struct slu_decisions *out, struct slu_error *err)
{
	const struct slu_queue_conf *c = &sub->conf;
	uint32_t depth = plan_depth(c);
	uint32_t enough = c->queue_depth ? c->queue_depth : depth;
	uint32_t n = enough == UINT32_MAX ? 0 : ahead(q, sub, j, enough);
	struct bucket *b = &q->bucket.p[q->job.p[j].bucket];

	if ((c->queue_depth && n >= c->queue_depth) || (c->policy == SLU_POLICY_FCFS && n))
		return 0;
	if (!plan_user_free(q, j))
		return 0;
	bool reserve = n < depth;
	int64_t limit_s = q->job.p[j].limit_s;

	if (b->failed_at != q->freed) {
		b->failed_at = q->freed;
		b->failed_limit = INT64_MAX;
	}
	if (!reserve && limit_s >= b->failed_limit)
		return 0;
	uint32_t bi = q->job.p[j].bucket;
	int ans = try_job(q, j, reserve, out, err);

	if (ans == SLU_GANG_BUSY && q->bucket.p[bi].failed_limit > limit_s)
		q->bucket.p[bi].failed_limit = limit_s;
	return ans < 0 ? ans : 0;
}

static int pass_fresh(struct slu_queue *q, struct slu_decisions *out, struct slu_error *err)
{
	/* A handful at most; in queue order, as a full pass would take them. */
	for (uint32_t i = 1; i < q->fresh.n; i++)
		for (uint32_t k = i;
		     k && order_before(&q->job.p[q->fresh.p[k]], &q->job.p[q->fresh.p[k - 1]]);
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

/* ---- the step ---- */

static int on_timer(struct slu_queue *q, const struct timer *t, struct slu_decisions *out)
{
	uint32_t j = t->job;
	struct job *job = j == SLU_NIL ? NULL : &q->job.p[j];
	int rc;

	if (!job) {
		uint32_t before = q->span.n;

		for (uint32_t i = q->span.n; i-- > 0;)
			if (q->span.p[i].to_s <= q->now_s)
				span_drop(q, i);
		return before == q->span.n ? 0 : bucket_rebuild(q);
	}
	if ((job->flags & JOB_AVOIDS) && job->state != SLU_JOB_RUNNING) {
		int64_t was = job->planned_s;

		job_leave_line(q, j);
		shape_put(q, job->shape);
		job->shape = job->asked;
		job->asked = SLU_NIL;
		job->flags &= (uint8_t)~JOB_AVOIDS;
		rc = plan_told(q, j, was, SLU_CAUSE_OWN, out);
		return rc < 0 ? rc : job_settle(q, j, out);
	}
	switch (job->state) {
	case SLU_JOB_RUNNING:
		if (job->end_s >= q->now_s || job->end_s == SLU_FOREVER)
			return 0;
		rc = timer_add(q, q->now_s + q->opts.overrun_s + 1, j);
		if (rc < 0)
			return rc;
		if (!(job->flags & JOB_OVERRUN)) {
			rc = decide_text(out, SLU_DEC_OVERRUN, job->id,
					 "outlived its limit of %" PRId64 " s", job->limit_s);
			if (rc < 0)
				return rc;
		}
		job->flags |= JOB_OVERRUN;
		job->end_s = q->now_s + q->opts.overrun_s;
		plan_lost(q, SLU_CAUSE_OVERRUN, job->id, SLU_NODE_NONE);
		return slu_gang_set_end(q->m, job->id, job->end_s);
	case SLU_JOB_BLOCKED:
		return job->block == BLOCK_BEGIN ? job_settle(q, j, out) : 0;
	case SLU_JOB_WAITING:
		if (job->deadline_s == SLU_TIME_NONE || q->now_s <= job->deadline_s - job->limit_s)
			return 0;
		if (job->planned_s != SLU_TIME_NONE)
			plan_freed(q, SLU_CAUSE_EARLY_END, job->id, SLU_NODE_NONE);
		job_leave_line(q, j);
		return job_settle(q, j, out);
	default:
		return 0;
	}
}

/* Nodes came or went for good: who could never run may now, and the other way round. */
static int look_again(struct slu_queue *q, struct slu_decisions *out)
{
	q->topology_seen = q->topology;
	q->todo.n = 0;
	for (uint32_t j = q->list[SLU_JOB_NEVER]; j != SLU_NIL; j = q->job.p[j].next)
		if (q->job.p[j].block == BLOCK_NEVER && slu_vec_push(&q->todo, j) < 0)
			return -ENOMEM;
	for (uint32_t i = 0; i < q->todo.n; i++) {
		uint32_t text = out->v.n;
		int rc = job_settle(q, q->todo.p[i], out);

		if (rc < 0)
			return rc;
		/* "Never" was said before; once is enough. */
		if (q->job.p[q->todo.p[i]].state == SLU_JOB_NEVER && out->v.n > text)
			out->v.n = text;
	}
	q->todo.n = 0;
	for (uint32_t b = 0; b < q->bucket.n; b++) {
		uint32_t j = q->bucket.p[b].used ? q->bucket.p[b].root : SLU_NIL;

		if (j == SLU_NIL)
			continue;
		struct slu_gang_req r = job_req(q, j);
		int rc = slu_gang_satisfiable(q->m, &r, NULL);

		if (rc < 0)
			return rc;
		if (rc == SLU_GANG_NEVER)
			for (j = order_first(q->job.p, q->bucket.p[b].root); j != SLU_NIL;
			     j = order_next(q->job.p, q->bucket.p[b].root, &q->job.p[j]))
				if (slu_vec_push(&q->todo, j) < 0)
					return -ENOMEM;
	}
	for (uint32_t i = 0; i < q->todo.n; i++) {
		job_leave_line(q, q->todo.p[i]);
		int rc = job_settle(q, q->todo.p[i], out);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int plan_step(struct slu_queue *q, struct slu_decisions *out, struct slu_error *err)
{
	int rc = 0;

	while (q->timer.n && q->timer.p[0].at_s <= q->now_s) {
		struct timer t = q->timer.p[0];

		timer_pop(q);
		if (!timer_stale(q, &t)) {
			rc = on_timer(q, &t, out);
			if (rc < 0)
				return rc;
		}
	}
	if (q->topology_seen != q->topology) {
		rc = look_again(q, out);
		if (rc < 0)
			return rc;
	}
	bool full = q->freed != q->seen_freed || q->fresh.n > 64, grow = full;

	for (uint32_t i = 0; i < q->sub.n; i++)
		full |= q->sub.p[i].n_noplan > 0 && q->fresh.n;
	q->seen_freed = q->freed;
	while (full || q->fresh.n) {
		/* Starting a job may put those who waited for that in line: another round. */
		uint32_t n = q->fresh.n;

		for (uint32_t o = 0; full && !rc && o < q->sub_order.n; o++)
			rc = pass_full(q, &q->sub.p[q->sub_order.p[o]], out, err);
		if (!full)
			rc = pass_fresh(q, out, err);
		if (rc < 0) {
			q->seen_freed = q->freed - 1; /* look again next time */
			return rc;
		}
		for (uint32_t i = 0; i < n; i++)
			q->job.p[q->fresh.p[i]].flags &= (uint8_t)~JOB_FRESH;
		if (n && n < q->fresh.n)
			memmove(q->fresh.p, q->fresh.p + n, (q->fresh.n - n) * sizeof *q->fresh.p);
		q->fresh.n -= n;
		full = q->fresh.n > 64;
	}
	if (grow)
		rc = grow_all(q, out);
	while (q->timer.n && timer_stale(q, &q->timer.p[0]))
		timer_pop(q);
	q->later = q->earlier = (struct cause){ .node = SLU_NODE_NONE };
	return rc;
}
