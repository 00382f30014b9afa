/* Events about jobs. */
#include "base/qty.h"
#include "queue/queue_internal.h"

static int find_job(struct slu_queue *q, slu_job_id id, uint32_t *j, struct slu_error *err)
{
	*j = queue_job_find(q, id);
	return *j == SLU_NIL ? slu_fail(err, -ENOENT, "no job %" PRIu64, id) : 0;
}

/* Limits and names of the queue.  0; 1: refused, the decision is in `out`; or an error. */
static int admit(struct slu_queue *q, const struct slu_job_spec *s, bool running, uint32_t *queue,
		 int64_t *limit_s, struct slu_decisions *out)
{
	struct slu_error why = { 0 };
	uint32_t i = 0;

	if (s->queue && *s->queue)
		while (i < q->sub.n && strcmp(q->sub.p[i].conf.name, s->queue))
			i++;
	if (i >= q->sub.n && running && q->sub.n)
		i = 0; /* its queue was renamed or removed: it runs all the same */
	if (i >= q->sub.n || (q->sub.p[i].conf.removed && !running && !s->member && !s->known)) {
		int rc = queue_decide_text(out, SLU_DEC_REFUSED, s->id, "queue (%s) doesn't exist",
					   s->queue ? s->queue : "default");

		return rc < 0 ? rc : 1;
	}
	const struct slu_queue_conf *c = &q->sub.p[i].conf;
	const struct slu_queue_limits *l = &c->limit;
	bool counts = !running && !s->member && !s->known;
	char asked[SLU_QTY_TEXT], most[SLU_QTY_TEXT];
	int64_t slots = 0;

	*limit_s = s->limit_s ? s->limit_s : c->default_duration;
	for (uint32_t r = 0; r < s->req->n_role; r++)
		slots += s->req->role[r].min;
	slots = SLU_MAX(slots, (int64_t)s->req->min);
	if (counts && l->max_slots && slots > l->max_slots)
		slu_fail(&why, -1,
			 "asks for %" PRId64 " slots; queue \"%s\" allows at most %" PRId64, slots,
			 c->name, l->max_slots);
	else if (counts && l->max_duration && *limit_s > l->max_duration)
		slu_fail(&why, -1,
			 "asks for %s; queue \"%s\" allows at most %s; give a shorter limit",
			 slu_duration_text(*limit_s, asked), c->name,
			 slu_duration_text(l->max_duration, most));
	else if (queue_dep_check(q, s, &why) == 0) {
		*queue = i;
		return 0;
	}
	int rc = queue_decide_text(out, SLU_DEC_REFUSED, s->id, "%s", why.text);

	return rc < 0 ? rc : 1;
}

/* The job runs where it does not fit: another scheduler put it there.  Mark its nodes so that
 * slu_queue_check() does not take it for a start of the queue. */
static void note_overfull(struct slu_queue *q, const struct slu_gang_part *part, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = slu_node_index(part[i].node);

		for (uint32_t k = 0; at < q->props.n && k < slu_machine_resources(q->m); k++)
			if (slu_machine_node_free(q->m, part[i].node, k) < 0)
				q->props.p[at].changed_s = q->now_s;
	}
}

static int running_add(struct slu_queue *q, uint32_t j, const struct slu_event *ev,
		       struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	const struct slu_gang_req *req = &q->shape.p[job->shape].req;
	int64_t end, slots = 0;

	if (slu_add_i64(ev->start_s, job->limit_s, &end) < 0)
		return slu_fail(err, -EINVAL, "job %" PRIu64 ": its end is out of range", job->id);
	/* An end in the past is only a wrong estimate: move it to where overruns would have moved
	 * it by now. */
	if (end < q->now_s)
		end += (q->now_s - end + q->opts.overrun_s) / (q->opts.overrun_s + 1) *
		       (q->opts.overrun_s + 1);
	struct slu_gang_booking b = { .job = job->id,
				      .start_s = SLU_MIN(ev->start_s, q->now_s),
				      .end_s = SLU_MAX(end, q->now_s + 1),
				      .role = req->role,
				      .n_role = req->n_role,
				      .part = ev->part,
				      .n_part = ev->n_part };
	int rc = queue_timer_add(q, b.end_s + 1, j);

	if (rc < 0)
		return rc;
	rc = slu_gang_register(q->m, q->now_s, &b, err);
	if (rc < 0)
		return rc;
	job->start_s = ev->start_s;
	job->end_s = b.end_s;
	job->how = SLU_HOW_IMMEDIATE;
	for (uint32_t i = 0; i < ev->n_part; i++)
		slots += ev->part[i].slots;
	if (slots < q->shape.p[job->shape].slots) /* the rest is where no node is */
		job->flags |= JOB_PARTIAL;
	queue_job_set_state(q, j, SLU_JOB_RUNNING);
	queue_note_start(q, j, (uint32_t)slots, true);
	q->grow_any |= (job->flags & JOB_GROW) && q->shape.p[job->shape].elastic;
	note_overfull(q, ev->part, ev->n_part);
	queue_plan_lost(q, SLU_CAUSE_FOREIGN, job->id, SLU_NODE_NONE);
	return 0;
}

/* None, or far enough from the ends of the scale for sums. */
static bool time_ok(int64_t t)
{
	return t == SLU_TIME_NONE || (t > -(SLU_FOREVER / 4) && t < SLU_FOREVER / 4);
}

int queue_ev_submit(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err)
{
	const struct slu_job_spec *s = ev->spec;
	bool running = ev->kind == SLU_EV_RUNNING;
	uint32_t queue, j;
	int64_t limit_s;

	if (!s || !s->req || !s->id || s->id >= SLU_JOB_ID_MAX)
		return slu_fail(err, -EINVAL, "a job needs an id below 2^62 and a request");
	if (queue_job_find(q, s->id) != SLU_NIL)
		return slu_fail(err, -EEXIST, "job %" PRIu64 " exists", s->id);
	if (s->limit_s < 0 || s->limit_s > SLU_LIMIT_MAX)
		return slu_fail(err, -EINVAL,
				"job %" PRIu64 ": a limit of %" PRId64 " s is outside 0..%" PRId64,
				s->id, s->limit_s, SLU_LIMIT_MAX);
	if (!s->req->n_role || s->req->n_role > SLU_ROLES_MAX)
		return slu_fail(err, -EINVAL, "job %" PRIu64 ": %u roles; must be 1 to %u", s->id,
				s->req->n_role, SLU_ROLES_MAX);
	if (!time_ok(s->begin_s) || !time_ok(s->deadline_s) ||
	    (running && (ev->start_s == SLU_TIME_NONE || !time_ok(ev->start_s))))
		return slu_fail(err, -EINVAL, "job %" PRIu64 ": a time is out of range", s->id);
	if (running && ev->start_s > q->now_s)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " runs, but starts in the future",
				s->id);
	int rc = admit(q, s, running, &queue, &limit_s, out);

	if (rc)
		return rc < 0 ? rc : 0;
	rc = queue_job_make(q, s, queue, limit_s, &j);
	if (rc < 0)
		return rc;
	if (!running && q->job.p[j].block == BLOCK_NONE && queue_full_for(q, j))
		rc = queue_full_enter(q, j, out);
	if (!rc)
		rc = running ? running_add(q, j, ev, err) : queue_job_settle(q, j, out);
	if (rc == -EINVAL && !running) {
		/* The matcher does not understand the request: the job's fault, not the caller's.
		 */
		struct slu_gang_req r = queue_job_req(q, j);
		struct slu_error why = { 0 };

		if (slu_gang_satisfiable(q->m, &r, &why) == -EINVAL)
			rc = queue_decide_text(out, SLU_DEC_REFUSED, s->id, "%s", why.text);
		queue_job_unmake(q, j);
		return rc;
	}
	if (rc < 0)
		queue_job_unmake(q, j);
	return rc;
}

/* Take a waiting job out of line, change it, settle it again; its old promise is void. */
static int relocate(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	int64_t was = q->job.p[j].planned_s;

	if (was != SLU_TIME_NONE) {
		queue_plan_freed(q, SLU_CAUSE_REPLAN, q->job.p[j].id, SLU_NODE_NONE);
		int rc = queue_plan_told(q, j, was, SLU_CAUSE_OWN, out);

		if (rc < 0)
			return rc;
	}
	queue_job_leave_line(q, j);
	return 0;
}

static int set_priority(struct slu_queue *q, uint32_t j, int64_t priority,
			struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];

	if (job->priority == priority)
		return 0;
	if (job->block == BLOCK_FULL) {
		uint32_t *root = &queue_usage_of(q, job->queue, job->user)->full;

		queue_order_remove(q->job.p, root, j);
		job->priority = priority;
		queue_order_insert(q->job.p, root, j);
		return 0;
	}
	if (job->bucket == SLU_NIL) {
		job->priority = priority;
		return 0;
	}
	/* A promise made is kept: only the place in the tree changes. */
	if (job->planned_s != SLU_TIME_NONE) {
		uint32_t *root = &q->sub.p[job->queue].reserved;

		queue_order_remove(q->job.p, root, j);
		job->priority = priority;
		queue_order_insert(q->job.p, root, j);
		queue_plan_look(q); /* others may be before it now */
		return 0;
	}
	queue_bucket_leave(q, j);
	job->priority = priority;
	queue_bucket_enter(q, j);
	queue_plan_moved_up(q, j);
	if (!(job->flags & JOB_FRESH)) {
		job->flags |= JOB_FRESH;
		q->fresh.p[q->fresh.n++] = j;
	}
	return 0;
}

static int set_limit(struct slu_queue *q, uint32_t j, int64_t limit_s, struct slu_decisions *out,
		     struct slu_error *err)
{
	struct job *job = &q->job.p[j];

	if (limit_s < 1 || limit_s > SLU_LIMIT_MAX)
		return slu_fail(err, -EINVAL,
				"job %" PRIu64 ": a limit of %" PRId64 " s is outside 1..%" PRId64,
				job->id, limit_s, SLU_LIMIT_MAX);
	if (job->state == SLU_JOB_RUNNING) {
		int64_t end = SLU_MAX(job->start_s + limit_s, q->now_s + 1);
		int rc = queue_timer_add(q, end + 1, j);

		if (rc < 0)
			return rc;
		if (end < job->end_s)
			queue_plan_freed(q, SLU_CAUSE_EARLY_END, job->id, SLU_NODE_NONE);
		else
			queue_plan_lost(q, SLU_CAUSE_OVERRUN, job->id, SLU_NODE_NONE);
		job->limit_s = limit_s;
		job->end_s = end;
		return slu_gang_set_end(q->m, job->id, end);
	}
	if (job->bucket == SLU_NIL) {
		job->limit_s = limit_s;
		if (job->block == BLOCK_DEADLINE) {
			job->block = BLOCK_NONE;
			return queue_job_settle(q, j, out);
		}
		return 0;
	}
	int rc = relocate(q, j, out);

	job->limit_s = limit_s;
	return rc < 0 ? rc : queue_job_settle(q, j, out);
}

static int set_stands(struct slu_queue *q, uint32_t j, bool stands, struct slu_error *err)
{
	struct job *job = &q->job.p[j];

	if (job->state != SLU_JOB_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " does not run", job->id);
	if (job->stands == stands)
		return 0;
	queue_tally(q, j, TALLY_RUNNING, -1);
	job->stands = stands;
	queue_tally(q, j, TALLY_RUNNING, 1);
	if (!stands) /* a job that was beyond the limit may start */
		queue_plan_look(q);
	return 0;
}

static int set_request(struct slu_queue *q, uint32_t j, const struct slu_job_spec *s,
		       struct slu_decisions *out, struct slu_error *err)
{
	const struct slu_gang_req *req = s ? s->req : NULL;
	struct job *job = &q->job.p[j];

	if (job->state == SLU_JOB_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " runs; resize it instead", job->id);
	if (!req || !req->n_role || req->n_role > SLU_ROLES_MAX)
		return slu_fail(err, -EINVAL, "job %" PRIu64 ": no roles", job->id);
	int64_t shape = queue_shape_get(q, req);

	if (shape < 0)
		return -ENOMEM;
	int rc = relocate(q, j, out);

	if (rc < 0) {
		queue_shape_put(q, (uint32_t)shape);
		return rc;
	}
	queue_shape_put(q, job->shape);
	if (job->asked != SLU_NIL)
		queue_shape_put(q, job->asked);
	job->asked = SLU_NIL;
	job->flags &= (uint8_t)~JOB_AVOIDS;
	job->shape = (uint32_t)shape;
	job->stands = s->stands;
	if (job->block == BLOCK_NEVER)
		job->block = BLOCK_NONE;
	rc = queue_job_settle(q, j, out);
	if (rc == -EINVAL) {
		rc = queue_decide_text(out, SLU_DEC_NEVER, job->id, "the request is invalid");
		job->block = BLOCK_NEVER;
		queue_job_set_state(q, j, SLU_JOB_NEVER);
	}
	return rc;
}

/* The nodes of the parts that its queue still has; NULL: none, or no memory, which is as good. */
static struct slu_nodeset *part_nodes(const struct slu_queue *q, uint32_t j,
				      const struct slu_gang_part *part, uint32_t n)
{
	const struct slu_nodeset *may = q->sub.p[q->job.p[j].queue].nodes;
	struct slu_nodeset *set = n ? slu_nodeset_new(slu_machine_node_slots(q->m)) : NULL;

	for (uint32_t i = 0; set && i < n; i++) {
		uint32_t at = slu_node_index(part[i].node);

		if (!slu_machine_node_is(q->m, part[i].node) ||
		    (may && !slu_nodeset_has(may, at)) || slu_nodeset_add(set, at) < 0) {
			slu_nodeset_unref(set);
			return NULL;
		}
	}
	return set;
}

/* Book a promise on the nodes it had.  SLU_GANG_LATER: it has them, at that time; SLU_GANG_BUSY: it
 * has nothing. */
static int promise_there(struct slu_queue *q, uint32_t j, int64_t start_s,
			 const struct slu_event *ev, struct slu_decisions *out,
			 struct slu_error *err)
{
	uint32_t n = out->v.n, n_part = out->part.n;
	int64_t promised_s = q->job.p[j].promised_s;
	int rc;

	q->only = part_nodes(q, j, ev->part, ev->n_part);
	if (!q->only)
		return SLU_GANG_BUSY;
	rc = queue_try_job(q, j, true, out, err);
	slu_nodeset_unref(q->only);
	q->only = NULL;
	if (rc != SLU_GANG_LATER || q->job.p[j].planned_s <= start_s)
		return rc;
	slu_gang_cancel(q->m, q->job.p[j].id);
	queue_unreserve(q, j);
	queue_bucket_enter(q, j);
	q->job.p[j].promised_s = promised_s;
	out->v.n = n;
	out->part.n = n_part;
	return SLU_GANG_BUSY;
}

/* The job does not start now: before all promises are back the queue cannot know which of them its start
 * would delay. */
static int promise_start(struct slu_queue *q, uint32_t j, const struct slu_event *ev,
			 struct slu_decisions *out, struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	int64_t begin_s = job->begin_s, start_s = ev->start_s;
	int rc;

	if (start_s == SLU_TIME_NONE || !time_ok(start_s))
		return slu_fail(err, -EINVAL, "job %" PRIu64 ": a time is out of range", job->id);
	if (job->state != SLU_JOB_WAITING || job->planned_s != SLU_TIME_NONE ||
	    !queue_plan_depth(&q->sub.p[job->queue].conf) || q->sub.p[job->queue].conf.stopped ||
	    !queue_plan_user_free(q, j))
		return 0;
	start_s = SLU_MAX(start_s, q->now_s + 1);
	job->begin_s = SLU_MAX(begin_s, start_s);
	rc = queue_try_parts(q, j, start_s, ev->part, ev->n_part, out, err);
	if (rc == SLU_GANG_BUSY)
		rc = promise_there(q, j, start_s, ev, out, err);
	if (rc == SLU_GANG_BUSY)
		rc = queue_try_job(q, j, true, out, err);
	q->job.p[j].begin_s = begin_s;
	if (rc == SLU_GANG_LATER)
		queue_plan_freed(q, SLU_CAUSE_REPLAN, q->job.p[j].id, SLU_NODE_NONE);
	return rc < 0 ? rc : 0;
}

int queue_ev_change(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err)
{
	uint32_t j;
	int rc = find_job(q, ev->job, &j, err);

	if (rc < 0)
		return rc;
	struct job *job = &q->job.p[j];

	switch (ev->kind) {
	case SLU_EV_HOLD:
		job->flags |= JOB_HELD;
		if (job->state == SLU_JOB_RUNNING || job->state == SLU_JOB_HELD)
			return 0;
		rc = relocate(q, j, out);
		return rc < 0 ? rc : queue_job_settle(q, j, out);
	case SLU_EV_RELEASE:
		if (!(job->flags & JOB_HELD))
			return 0;
		job->flags &= (uint8_t)~JOB_HELD;
		rc = job->state == SLU_JOB_HELD ? queue_job_settle(q, j, out) : 0;
		if (rc < 0) /* as it was: it can be released again */
			job->flags |= JOB_HELD;
		return rc;
	case SLU_EV_PRIORITY:
		return set_priority(q, j, ev->priority, out);
	case SLU_EV_LIMIT:
		return set_limit(q, j, ev->limit_s, out, err);
	case SLU_EV_REQUEST:
		return set_request(q, j, ev->spec, out, err);
	case SLU_EV_STANDS:
		return set_stands(q, j, ev->size != 0, err);
	case SLU_EV_PROMISE:
		return promise_start(q, j, ev, out, err);
	default:
		return slu_fail(err, -EINVAL, "event %d is not one of a job", (int)ev->kind);
	}
}

/* The same request without some nodes.  Index of the shape or an error. */
static int64_t shape_without(struct slu_queue *q, uint32_t shape, const struct slu_gang_part *part,
			     uint32_t n)
{
	struct slu_gang_req req = q->shape.p[shape].req;
	struct slu_gang_role *role = slu_reallocarray(NULL, req.n_role, sizeof *role);
	uint32_t made = 0;
	int64_t rc = role ? 0 : -ENOMEM;

	for (; !rc && made < req.n_role; made++) {
		struct slu_nodeset *set;

		role[made] = req.role[made];
		if (role[made].nodes) {
			set = slu_nodeset_clone(role[made].nodes);
		} else {
			set = slu_nodeset_new(slu_machine_node_slots(q->m));
			for (uint32_t i = 0; set && i < slu_machine_node_slots(q->m); i++)
				if (slu_nodeset_add(set, i) < 0) {
					slu_nodeset_unref(set);
					set = NULL;
				}
		}
		role[made].nodes = set;
		if (!set) {
			rc = -ENOMEM;
			break;
		}
		for (uint32_t k = 0; k < n; k++)
			slu_nodeset_del(set, slu_node_index(part[k].node));
	}
	if (!rc) {
		req.role = role;
		rc = queue_shape_get(q, &req);
	}
	for (uint32_t i = 0; i < made; i++)
		slu_nodeset_unref((struct slu_nodeset *)role[i].nodes);
	slu_free(role);
	return rc;
}

static int take_back(struct slu_queue *q, uint32_t j, const struct slu_event *ev,
		     struct slu_decisions *out, struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	int64_t shape = -1;
	int rc;

	if (job->state != SLU_JOB_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " was not started", job->id);
	if (ev->n_part) {
		shape = shape_without(q, job->asked == SLU_NIL ? job->shape : job->asked, ev->part,
				      ev->n_part);
		if (shape < 0)
			return (int)shape;
		job->gen++; /* the timer of its limit belongs to a start that was taken back */
		rc = queue_timer_add(q, ev->until_s, j);
		if (rc < 0) {
			job->gen--;
			queue_shape_put(q, (uint32_t)shape);
			return rc;
		}
	}
	slu_gang_cancel(q->m, job->id);
	queue_plan_freed(q, SLU_CAUSE_EARLY_END, job->id, SLU_NODE_NONE);
	if (shape >= 0) {
		if (job->asked == SLU_NIL)
			job->asked = job->shape;
		else
			queue_shape_put(q, job->shape);
		job->shape = (uint32_t)shape;
		job->flags |= JOB_AVOIDS;
		q->avoids = true;
	}
	job->start_s = job->end_s = SLU_TIME_NONE;
	job->promised_s = SLU_TIME_NONE;
	job->flags &= (uint8_t)~(JOB_OVERRUN | JOB_NOPLAN);
	queue_job_set_state(q, j, SLU_JOB_BLOCKED);
	return queue_job_settle(q, j, out);
}

static int end_slots(struct slu_queue *q, uint32_t j, const struct slu_event *ev,
		     struct slu_decisions *out, struct slu_error *err)
{
	slu_job_id id = q->job.p[j].id;
	int64_t left = 1;

	if (q->job.p[j].state != SLU_JOB_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " does not run", id);
	for (uint32_t i = 0; i < ev->n_part && left; i++) {
		left = slu_gang_give_back(q->m, id, ev->part[i].role, ev->part[i].node,
					  ev->part[i].slots);
		if (left < 0)
			return slu_fail(err, (int)left,
					"job %" PRIu64
					" does not hold %u slots of role %u on node %s",
					id, ev->part[i].slots, ev->part[i].role,
					slu_machine_node_is(q->m, ev->part[i].node)
						? slu_machine_node_name(q->m, ev->part[i].node)
						: "(gone)");
	}
	if (!left && ev->size <= 0)
		return queue_job_gone(q, j, ev->result, out);
	q->job.p[j].flags |= JOB_PARTIAL;
	queue_plan_freed(q, SLU_CAUSE_EARLY_END, id, SLU_NODE_NONE);
	return 0;
}

static int regain_part(struct slu_queue *q, uint32_t j, const struct slu_event *ev,
		       struct slu_error *err)
{
	const struct job *job = &q->job.p[j];
	int rc;

	if (job->state != SLU_JOB_RUNNING)
		return slu_fail(err, -EINVAL, "job %" PRIu64 " does not run", job->id);
	rc = slu_gang_regain(q->m, q->now_s, job->id, ev->part, ev->n_part, err);
	if (rc < 0)
		return rc;
	note_overfull(q, ev->part, ev->n_part);
	queue_plan_lost(q, SLU_CAUSE_FOREIGN, job->id, SLU_NODE_NONE);
	return 0;
}

int queue_ev_end(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		 struct slu_error *err)
{
	uint32_t j;
	int rc = find_job(q, ev->job, &j, err);

	if (rc < 0)
		return rc;
	switch (ev->kind) {
	case SLU_EV_CANCEL:
		return queue_job_gone(q, j, SLU_RESULT_CANCELLED, out);
	case SLU_EV_END_SLOTS:
		return end_slots(q, j, ev, out, err);
	case SLU_EV_REGAIN:
		return regain_part(q, j, ev, err);
	case SLU_EV_TAKE_BACK:
		return take_back(q, j, ev, out, err);
	default:
		return queue_job_gone(q, j, ev->result, out);
	}
}
