/* One job and the plan: match it, start it, promise it a start, move its promise. */
#include "queue/queue_internal.h"

void queue_plan_freed(struct slu_queue *q, enum slu_cause cause, slu_job_id job, slu_node node)
{
	q->freed++;
	q->earlier = (struct cause){ .cause = cause, .job = job, .node = node };
}

void queue_plan_lost(struct slu_queue *q, enum slu_cause cause, slu_job_id job, slu_node node)
{
	q->freed++;
	q->later = (struct cause){ .cause = cause, .job = job, .node = node };
}

void queue_plan_look(struct slu_queue *q)
{
	q->freed++;
}

void queue_plan_moved_up(struct slu_queue *q, uint32_t j)
{
	const struct slu_queue_conf *c = &q->sub.p[q->job.p[j].queue].conf;

	if (c->policy == SLU_POLICY_FCFS || c->queue_depth)
		queue_plan_look(q);
}

uint32_t queue_plan_depth(const struct slu_queue_conf *c)
{
	switch (c->policy) {
	case SLU_POLICY_FCFS:
	case SLU_POLICY_EASY:
		return 1;
	case SLU_POLICY_HYBRID:
		return c->reservation_depth;
	case SLU_POLICY_CONSERVATIVE:
		return UINT32_MAX;
	case SLU_POLICY_SELECTIVE:
		return SLU_PROMISES;
	case SLU_POLICY_FIRST_FIT:
	case SLU_POLICIES:
		break;
	}
	return 0;
}

int64_t queue_plan_due(const struct slu_queue_conf *c, const struct job *j)
{
	if (c->policy != SLU_POLICY_SELECTIVE)
		return SLU_TIME_NONE;
	int64_t since_s = j->first_seen_us / 1000000 - (j->first_seen_us % 1000000 < 0);
	int64_t patience_s = SLU_MAX(j->limit_s, (int64_t)SLU_STRETCH_FLOOR_S) *
			     (int64_t)c->max_stretch;

	if (j->begin_s != SLU_TIME_NONE)
		since_s = SLU_MAX(since_s, j->begin_s);
	return since_s + SLU_MIN(patience_s, c->max_wait_s);
}

bool queue_plan_user_free(struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	const struct subqueue *sub = &q->sub.p[job->queue];
	const struct slu_queue_limits *l = &sub->conf.limit;

	if (job_is_free(job))
		return true;
	if (l->max_running && sub->all.running + sub->all.reserved >= l->max_running)
		return false;
	if (!l->max_running_user)
		return true;
	const struct usage *u = queue_usage_of(q, job->queue, job->user);

	return u->running + u->reserved < l->max_running_user;
}

bool queue_plan_user_beyond(struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	const struct subqueue *sub = &q->sub.p[job->queue];
	const struct slu_queue_limits *l = &sub->conf.limit;

	if (job_is_free(job))
		return false;
	if (l->max_running && sub->all.running + sub->all.reserved > l->max_running)
		return true;
	if (!l->max_running_user)
		return false;
	const struct usage *u = queue_usage_of(q, job->queue, job->user);

	return u->running + u->reserved > l->max_running_user;
}

static int match_job(struct slu_queue *q, uint32_t j, bool reserve, struct slu_error *err)
{
	struct slu_gang_req req = queue_job_req(q, j);
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

	queue_req_minimum(&req, role);
	return slu_gang_match(q->m, SLU_GANG_ALLOCATE_OR_RESERVE, q->now_s, id, &req, &q->place,
			      err);
}

/* The booking is made: take the job, which is in no tree, out of line and report its start. */
static int start_job(struct slu_queue *q, uint32_t j, enum slu_how how, int64_t was_s,
		     struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	struct slu_decision *d = queue_decide(out, SLU_DEC_START, job->id);

	if (!d || queue_decide_parts(out, d, q->place.part, q->place.n) < 0 ||
	    queue_timer_add(q, q->place.end_s == SLU_FOREVER ? SLU_FOREVER : q->place.end_s + 1,
			    j) < 0) {
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
	queue_note_start(q, j, q->place.slots, false);
	queue_job_set_state(q, j, SLU_JOB_RUNNING);
	sub->started++;
	sub->backfilled += how == SLU_HOW_BACKFILL;
	job->flags &= (uint8_t)~JOB_NOPLAN;
	q->grow_any |= (job->flags & JOB_GROW) && q->shape.p[job->shape].elastic;
	return queue_dep_fire(q, job->id, true, SLU_RESULT_OK, out);
}

/* The job is booked for later: report the start if it differs from `job->planned_s`, reported before. */
static int report_planned(struct slu_queue *q, uint32_t j, int64_t was_s, struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	int64_t at = q->place.start_s;

	/* Due now, but the end of jobs that should be over is not reported yet: no change to tell.
	 */
	if (was_s == q->now_s && at > was_s && q->later.cause == SLU_CAUSE_NONE)
		at = was_s;
	if (at != was_s) {
		struct slu_decision *d = queue_decide(out, SLU_DEC_PLAN, job->id);
		const struct cause *c = at > was_s ? &q->later : &q->earlier;

		if (!d || queue_decide_parts(out, d, q->place.part, q->place.n) < 0) {
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
	if (job->planned_s == SLU_TIME_NONE)
		job->told_from = q->notes;
	job->planned_s = at;
	if (job->promised_s == SLU_TIME_NONE)
		job->promised_s = at;
	return 0;
}

/* The job is booked on other nodes, for the same time. */
static int moved_to(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	struct slu_decision *d = queue_decide(out, SLU_DEC_MOVED, q->job.p[j].id);

	if (d && queue_decide_parts(out, d, q->place.part, q->place.n) == 0)
		return 0;
	if (d)
		out->v.n--;
	return -ENOMEM;
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

/* The job is booked for later and in no tree.  SLU_GANG_LATER. */
static int report_reserved(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	int rc = report_planned(q, j, SLU_TIME_NONE, out);

	if (rc < 0) {
		slu_gang_cancel(q->m, job->id);
		job->planned_s = SLU_TIME_NONE;
		queue_bucket_enter(q, j);
		return rc;
	}
	queue_order_insert(q->job.p, &sub->reserved, j);
	sub->n_reserved++;
	queue_tally(q, j, TALLY_RESERVED, 1);
	return SLU_GANG_LATER;
}

/* An unreserved job in line: start it, or reserve for it if asked to.
 * SLU_GANG_NOW, _LATER (it has moved to the reserved tree) or _BUSY. */
int queue_try_job(struct slu_queue *q, uint32_t j, bool reserve, struct slu_decisions *out,
		  struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	int ans = match_job(q, j, reserve, err), rc = 0;

	if (ans < 0 || ans == SLU_GANG_BUSY || ans == SLU_GANG_NEVER) {
		if (ans >= 0 && reserve)
			set_noplan(q, j, true);
		return ans < 0 ? ans : SLU_GANG_BUSY;
	}
	if (job->flags & JOB_NOPLAN)
		set_noplan(q, j, false);
	queue_bucket_leave(q, j);
	if (ans == SLU_GANG_NOW) {
		rc = start_job(q, j, how_now(sub), SLU_TIME_NONE, out);
		if (job->state == SLU_JOB_RUNNING)
			queue_bucket_detach(q, j);
	} else {
		return report_reserved(q, j, out);
	}
	if (rc < 0 && job->state == SLU_JOB_WAITING) {
		slu_gang_cancel(q->m, job->id);
		job->planned_s = SLU_TIME_NONE;
		queue_bucket_enter(q, j);
	}
	return rc < 0 ? rc : ans;
}

/* A role for each part, on the node of that part alone.  false: the job may not be there like that. */
static bool part_roles(const struct slu_queue *q, const struct slu_gang_req *req,
		       const struct slu_gang_part *part, uint32_t n, struct slu_gang_role *role)
{
	uint64_t slots[SLU_ROLES_MAX] = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = slu_node_index(part[i].node);
		const struct slu_gang_role *of;
		struct slu_nodeset *one;

		if (part[i].role >= req->n_role || !slu_machine_node_is(q->m, part[i].node))
			return false;
		of = &req->role[part[i].role];
		if ((of->flags & SLU_ROLE_APART) || (of->nodes && !slu_nodeset_has(of->nodes, at)))
			return false;
		one = slu_nodeset_new(slu_machine_node_slots(q->m));
		role[i] = *of;
		role[i].nodes = one;
		role[i].min = role[i].max = part[i].slots;
		if (!one || slu_nodeset_add(one, at) < 0)
			return false;
		slots[part[i].role] += part[i].slots;
	}
	for (uint32_t i = 0; i < req->n_role; i++)
		if (slots[i] < req->role[i].min || slots[i] > req->role[i].max)
			return false;
	return true;
}

/* Book what the match has found for the parts, for the roles that the job has. */
static int book_parts(struct slu_queue *q, uint32_t j, const struct slu_gang_part *part, uint32_t n,
		      struct slu_error *err)
{
	const struct slu_gang_req *req = &q->shape.p[q->job.p[j].shape].req;
	struct slu_gang_booking b = { .job = q->job.p[j].id,
				      .start_s = q->place.start_s,
				      .end_s = q->place.end_s,
				      .role = req->role,
				      .n_role = req->n_role,
				      .part = part,
				      .n_part = n,
				      .flags = SLU_BOOK_RESERVED };
	struct slu_gang_info info;
	int rc = slu_gang_cancel(q->m, b.job);

	if (!rc)
		rc = slu_gang_register(q->m, q->now_s, &b, err);
	return rc ? rc : slu_gang_info(q->m, b.job, &info, &q->place);
}

int queue_try_parts(struct slu_queue *q, uint32_t j, int64_t start_s,
		    const struct slu_gang_part *part, uint32_t n, struct slu_decisions *out,
		    struct slu_error *err)
{
	struct slu_gang_role role[SLU_ROLES_MAX] = { 0 };
	struct slu_gang_req req = queue_job_req(q, j);
	slu_job_id id = q->job.p[j].id;
	int ans = SLU_GANG_BUSY, rc;

	if (!n || n > SLU_ROLES_MAX)
		return SLU_GANG_BUSY;
	if (part_roles(q, &req, part, n, role)) {
		req.role = role;
		req.n_role = n;
		req.level = -1; /* they are close enough: they were chosen so */
		req.flags &= ~(unsigned)SLU_GANG_CLOSE_REQUIRED;
		req.min = req.max = 0;
		ans = slu_gang_match(q->m, SLU_GANG_ALLOCATE_OR_RESERVE, q->now_s, id, &req,
				     &q->place, err);
	}
	for (uint32_t i = 0; i < n; i++)
		slu_nodeset_unref((struct slu_nodeset *)(uintptr_t)role[i].nodes);
	if (ans < 0)
		return ans;
	if (ans != SLU_GANG_LATER || q->place.start_s != start_s) {
		if (ans == SLU_GANG_LATER || ans == SLU_GANG_NOW)
			slu_gang_cancel(q->m, id);
		return SLU_GANG_BUSY;
	}
	rc = book_parts(q, j, part, n, err);
	if (rc < 0)
		return rc;
	queue_bucket_leave(q, j);
	return report_reserved(q, j, out);
}

/* Back from the reserved tree to the bucket; the booking is gone already. */
void queue_unreserve(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];

	queue_order_remove(q->job.p, &sub->reserved, j);
	sub->n_reserved--;
	queue_tally(q, j, TALLY_RESERVED, -1);
	job->planned_s = SLU_TIME_NONE;
}

/* The job's time has come, but jobs that should have ended by now have not been reported: keep the booking
 * as it is.  A search for another place would lose one that ends just before another job's start. */
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

/* Is the new place where the old one was, and at the same time? */
static bool same_place(const struct slu_gang_place *a, const struct slu_gang_place *b)
{
	if (a->start_s != b->start_s || a->end_s != b->end_s || a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->part[i].node != b->part[i].node || a->part[i].role != b->part[i].role ||
		    a->part[i].slots != b->part[i].slots)
			return false;
	return true;
}

int queue_replan(struct slu_queue *q, uint32_t j, bool *moved, struct slu_decisions *out,
		 struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	int64_t was = job->planned_s;
	bool due = was == q->now_s && q->later.cause == SLU_CAUSE_NONE;
	struct slu_gang_info info;
	int rc = slu_gang_info(q->m, job->id, &info, &q->due);

	if (!rc)
		rc = slu_gang_cancel(q->m, job->id);
	if (rc < 0 && rc != -ENOENT) /* gone with its node: fine */
		return rc;
	due &= !rc;
	int ans = match_job(q, j, !due, err);

	*moved = rc < 0 || ans < 0 || ans == SLU_GANG_BUSY || ans == SLU_GANG_NEVER ||
		 !same_place(&q->due, &q->place);
	if (ans == SLU_GANG_LATER) {
		rc = report_planned(q, j, was, out);
		return rc < 0 || !*moved || job->planned_s != was ? rc : moved_to(q, j, out);
	}
	if (ans == SLU_GANG_BUSY && due) {
		*moved = false;
		return keep_due(q, j, err);
	}
	queue_unreserve(q, j);
	if (ans == SLU_GANG_NOW) {
		rc = start_job(q, j, SLU_HOW_RESERVED, was, out);
		if (job->state == SLU_JOB_RUNNING) {
			queue_bucket_detach(q, j);
			return rc;
		}
		slu_gang_cancel(q->m, job->id);
	}
	queue_bucket_enter(q, j);
	if (ans == SLU_GANG_NOW || ans < 0)
		return rc < 0 ? rc : ans;
	set_noplan(q, j, true);
	return queue_plan_told(q, j, was, q->later.cause ? q->later.cause : SLU_CAUSE_DROPPED, out);
}

int queue_plan_promise_fits(const struct slu_queue *q, struct slu_machine *m, uint32_t j,
			    struct slu_gang_place *place, struct slu_error *err)
{
	const struct job *job = &q->job.p[j];
	struct slu_gang_req req = queue_job_req(q, j);
	struct slu_gang_info info;
	int rc = slu_gang_info(m, job->id, &info, place);

	if (!rc)
		rc = slu_gang_cancel(m, job->id);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	int ans = slu_gang_match(m, SLU_GANG_TRY, q->now_s, 0, &req, NULL, err);
	struct slu_gang_booking b = { .job = job->id,
				      .start_s = info.start_s,
				      .end_s = info.end_s,
				      .role = req.role,
				      .n_role = req.n_role,
				      .part = place->part,
				      .n_part = place->n,
				      .flags = SLU_BOOK_RESERVED };

	rc = slu_gang_register(m, q->now_s, &b, err);
	return ans < 0 ? ans : rc < 0 ? rc : ans == SLU_GANG_NOW;
}
