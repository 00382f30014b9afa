/* Growing and shrinking, on request and by themselves. */
#include "queue/queue_internal.h"

static uint32_t role_max(const struct slu_gang_role *r)
{
	return SLU_MAX(r->max, r->min);
}

/* `by` more slots of one role for a running job, or as many as fit when `some`. */
static int grow_job(struct slu_queue *q, uint32_t j, uint32_t role, uint32_t by, bool some)
{
	struct job *job = &q->job.p[j];
	struct slu_gang_req req = q->shape.p[job->shape].req;
	struct slu_gang_role r[SLU_ROLES_MAX];

	for (uint32_t i = 0; i < req.n_role; i++) {
		r[i] = req.role[i];
		r[i].min = i == role ? (some ? 1 : by) : 0;
		r[i].max = i == role ? by : 0;
	}
	req.role = r;
	req.min = req.max = 0;
	req.nodes = q->sub.p[job->queue].nodes;
	return slu_gang_grow(q->m, q->now_s, job->id, &req, &q->place, NULL);
}

static int told_grown(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	struct slu_decision *d = queue_decide(out, SLU_DEC_RESIZED, q->job.p[j].id);

	if (!d)
		return -ENOMEM;
	d->size = q->place.slots;
	return queue_decide_parts(out, d, q->place.part, q->place.n);
}

/* Slots of a role a running job has. */
static int64_t held(struct slu_queue *q, uint32_t j, uint32_t role)
{
	struct slu_gang_info info;
	int64_t n = 0;

	if (slu_gang_info(q->m, q->job.p[j].id, &info, &q->place) < 0)
		return 0;
	for (uint32_t i = 0; i < q->place.n; i++)
		if (q->place.part[i].role == role)
			n += q->place.part[i].slots;
	return n;
}

static int shrink(struct slu_queue *q, uint32_t j, uint32_t role, int64_t by,
		  struct slu_decisions *out)
{
	struct slu_decision *d = queue_decide(out, SLU_DEC_RESIZED, q->job.p[j].id);

	if (!d)
		return -ENOMEM;
	d->size = -by;
	d->part = out->part.n;
	/* Last placed, first to go; place holds the job's parts (see held()). */
	for (uint32_t i = q->place.n; i-- > 0 && by;) {
		struct slu_gang_part p = q->place.part[i];

		if (p.role != role)
			continue;
		p.slots = (uint32_t)SLU_MIN((int64_t)p.slots, by);
		by -= p.slots;
		if (slu_vec_push(&out->part, p) < 0) {
			out->v.n--;
			return -ENOMEM;
		}
		d->n_part++;
	}
	return 0;
}

static int resize_waiting(struct slu_queue *q, uint32_t j, const struct slu_event *ev,
			  struct slu_decisions *out, struct slu_error *err)
{
	struct job *job = &q->job.p[j];
	struct slu_gang_req req = q->shape.p[job->asked == SLU_NIL ? job->shape : job->asked].req;
	struct slu_gang_role r[SLU_ROLES_MAX];
	struct slu_job_spec spec = { .req = &req };
	struct slu_event change = { .kind = SLU_EV_REQUEST, .job = job->id, .spec = &spec };

	memcpy(r, req.role, req.n_role * sizeof *r);
	r[ev->role].min = r[ev->role].max = (uint32_t)ev->size;
	req.role = r;
	req.min = req.max = 0;
	return queue_ev_change(q, &change, out, err);
}

/* Without a plan it is not known whether room is needed: waiting jobs come first. */
static bool wanted_by_line(const struct subqueue *sub)
{
	return sub->conf.policy == SLU_POLICY_SELECTIVE &&
	       sub->n[SLU_JOB_WAITING] > sub->n_reserved;
}

int queue_ev_resize(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err)
{
	uint32_t j = queue_job_find(q, ev->job);

	if (j == SLU_NIL)
		return slu_fail(err, -ENOENT, "no job %" PRIu64, ev->job);
	const struct slu_gang_req *req = &q->shape.p[q->job.p[j].shape].req;

	if (ev->role >= req->n_role || ev->size < 0 || ev->size > SLU_SLOTS_MAX)
		return slu_fail(err, -EINVAL,
				"job %" PRIu64 ": cannot have %" PRId64 " slots in role %u",
				ev->job, ev->size, ev->role);
	if (!ev->size && req->n_role == 1)
		return queue_job_gone(q, j, SLU_RESULT_CANCELLED, out);
	if (q->job.p[j].state != SLU_JOB_RUNNING)
		return resize_waiting(q, j, ev, out, err);
	int64_t have = held(q, j, ev->role);

	if (ev->size == have)
		return 0;
	if (ev->size < have)
		return shrink(q, j, ev->role, have - ev->size, out);
	if (wanted_by_line(&q->sub.p[q->job.p[j].queue]))
		return queue_decide_text(out, SLU_DEC_REFUSED, ev->job,
					 "jobs in line come before more slots for one that runs");
	int rc = grow_job(q, j, ev->role, (uint32_t)(ev->size - have), false);

	if (rc == SLU_GANG_NOW) {
		queue_plan_lost(q, SLU_CAUSE_OWN, ev->job, SLU_NODE_NONE);
		return told_grown(q, j, out);
	}
	if (rc < 0)
		return slu_fail(err, rc, "job %" PRIu64 " cannot grow", ev->job);
	return queue_decide_text(out, SLU_DEC_REFUSED, ev->job,
				 "no room for %" PRId64
				 " more slots until its end beside what is promised "
				 "to others",
				 ev->size - have);
}

/* Running elastic jobs, oldest first, get what no plan needs. */
int queue_grow_all(struct slu_queue *q, struct slu_decisions *out)
{
	if (!q->grow_any)
		return 0;
	q->grow_any = false;
	for (uint32_t j = q->list[SLU_JOB_RUNNING]; j != SLU_NIL; j = q->job.p[j].next) {
		struct job *job = &q->job.p[j];

		if (!(job->flags & JOB_GROW) || !q->shape.p[job->shape].elastic)
			continue;
		if (wanted_by_line(&q->sub.p[job->queue])) {
			q->grow_any = true;
			continue;
		}
		const struct slu_gang_req *req = &q->shape.p[job->shape].req;

		q->grow_any = true;
		for (uint32_t r = 0; r < req->n_role; r++) {
			int64_t have = held(q, j, r), want = role_max(&req->role[r]);

			if (have >= want)
				continue;
			int rc = grow_job(q, j, r, (uint32_t)(want - have), true);

			if (rc < 0)
				return rc;
			if (rc == SLU_GANG_NOW && (rc = told_grown(q, j, out)) < 0)
				return rc;
		}
	}
	return 0;
}
