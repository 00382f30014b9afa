/* The invariants, proven from the books: for verification and tests, not for speed. */
#include "queue/queue_internal.h"

static int check_job(const struct slu_queue *q, uint32_t j, struct slu_error *err)
{
	const struct job *job = &q->job.p[j];
	struct slu_gang_info info;
	int rc = slu_gang_info(q->m, job->id, &info, NULL);
	const char *state = slu_job_state_name((enum slu_job_state)job->state);

	if (queue_job_find(q, job->id) != j)
		return slu_fail(err, -EUCLEAN, "job %" PRIu64 " is not found by its id", job->id);
	if (job->state == SLU_JOB_RUNNING) {
		if (rc < 0)
			return job->flags & JOB_PARTIAL
				       ? 0
				       : slu_fail(err, -EUCLEAN, "job %" PRIu64 " runs on nothing",
						  job->id);
		if (info.state != SLU_GANG_RUNNING)
			return slu_fail(err, -EUCLEAN, "job %" PRIu64 " runs but is not booked so",
					job->id);
		if (!(job->flags & JOB_PARTIAL) && info.slots < q->shape.p[job->shape].slots)
			return slu_fail(err, -EUCLEAN,
					"job %" PRIu64 " runs with %u slots, it needs %" PRId64,
					job->id, info.slots, q->shape.p[job->shape].slots);
	} else if (job->state == SLU_JOB_WAITING && job->planned_s != SLU_TIME_NONE) {
		if (rc < 0 || info.state != SLU_GANG_RESERVED ||
		    (info.start_s != job->planned_s && job->planned_s != q->now_s))
			return slu_fail(err, -EUCLEAN,
					"job %" PRIu64 " is planned for %" PRId64
					" but the books say %" PRId64,
					job->id, job->planned_s,
					rc < 0 ? (int64_t)-1 : info.start_s);
		if (info.slots < q->shape.p[job->shape].slots)
			return slu_fail(err, -EUCLEAN, "job %" PRIu64 " is planned in part",
					job->id);
	} else if (!rc) {
		return slu_fail(err, -EUCLEAN, "job %" PRIu64 " is %s but holds room", job->id,
				state);
	}
	return 0;
}

/* Check one node over all times: at the start of every share, all shares at that moment must fit. */
static int check_node(const struct slu_queue *q, slu_node node, struct slu_error *err)
{
	uint32_t n = slu_machine_node_shares(q->m, node), index = slu_node_index(node);
	int64_t changed_s = index < q->props.n ? q->props.p[index].changed_s : INT64_MIN;
	bool checked_now = false; /* jobs that began before are checked only once */

	for (uint32_t a = 0; a < n; a++) {
		int64_t sum[SLU_RESOURCES_MAX] = { 0 };
		struct slu_node_share at, s;

		slu_machine_node_share(q->m, node, a, &at);
		if (at.job >= SLU_JOB_ID_MAX)
			continue;
		int64_t t = SLU_MAX(at.start_s, q->now_s);
		if (t == q->now_s && checked_now)
			continue;
		checked_now |= t == q->now_s;
		bool jobs_only = true, ours = false; /* something there begins now or later */

		for (uint32_t b = 0; b < n; b++) {
			slu_machine_node_share(q->m, node, b, &s);
			if (s.job >= SLU_JOB_ID_MAX) {
				jobs_only = false;
				continue;
			}
			uint32_t j = queue_job_find(q, s.job);

			if (j == SLU_NIL)
				return slu_fail(err, -EUCLEAN,
						"node %s is held by job %" PRIu64
						", which does not exist",
						slu_machine_node_name(q->m, node), s.job);
			/* A job beyond its end is about to be reported. */
			if (s.start_s > t || s.end_s <= t)
				continue;
			ours |= s.start_s >= q->now_s && s.start_s > changed_s;
			const struct slu_gang_role *r =
				&q->shape.p[q->job.p[j].shape].req.role[s.role];

			for (uint32_t k = 0; k < r->n_need; k++)
				sum[r->need[k].resource] = slu_plus_sat(sum[r->need[k].resource],
									r->need[k].n, s.slots);
		}
		/* Jobs that began before may need more than the node has: the node was made smaller, or
		 * another scheduler placed work there, perhaps in the very second of the start. */
		for (uint32_t k = 0; jobs_only && ours && k < slu_machine_resources(q->m); k++)
			if (sum[k] > slu_machine_node_total(q->m, node, k))
				return slu_fail(err, -EUCLEAN,
						"node %s: %" PRId64 " of %s booked at %" PRId64
						", it has %" PRId64,
						slu_machine_node_name(q->m, node), sum[k],
						slu_machine_resource_name(q->m, k), t,
						slu_machine_node_total(q->m, node, k));
	}
	return 0;
}

/* A tree is in order and its sums are right; returns its size, or -1. */
static int64_t check_tree(const struct slu_queue *q, uint32_t root)
{
	if (root == SLU_NIL)
		return 0;
	const struct order_node *n = &q->job.p[root].ord;
	int64_t l = check_tree(q, n->left), r = check_tree(q, n->right);

	if (l < 0 || r < 0 || l + r + 1 != n->size)
		return -1;
	if ((n->left != SLU_NIL && !queue_order_before(&q->job.p[n->left], &q->job.p[root])) ||
	    (n->right != SLU_NIL && !queue_order_before(&q->job.p[root], &q->job.p[n->right])))
		return -1;
	return l + r + 1;
}

/* Whether some job could start while all others keep their places.  1, 0, or an error. */
static int overlooked_in(struct slu_queue *q, uint32_t s, struct slu_machine *m,
			 struct slu_gang_place *place, uint32_t *found, struct slu_error *err)
{
	const struct subqueue *sub = &q->sub.p[s];
	int rc = 0;

	for (uint32_t j = queue_order_first(q->job.p, sub->reserved); !rc && j != SLU_NIL;
	     j = queue_order_next(q->job.p, sub->reserved, &q->job.p[j])) {
		*found = j;
		rc = queue_plan_promise_fits(q, m, j, place, err);
	}
	for (uint32_t i = 0; !rc && i < sub->active.n; i++) {
		uint32_t j = queue_order_shortest(q->job.p, q->bucket.p[sub->active.p[i]].root,
						  NULL);

		if (!queue_pass_allows(q, j))
			continue;
		struct slu_gang_req req = queue_job_req(q, j);
		int ans = slu_gang_match(q->m, SLU_GANG_TRY, q->now_s, 0, &req, NULL, err);

		*found = j;
		rc = ans < 0 ? ans : ans == SLU_GANG_NOW;
	}
	return rc;
}

int slu_queue_overlooked(const struct slu_queue *cq, slu_job_id *job, struct slu_error *err)
{
	struct slu_queue *q = (struct slu_queue *)cq; /* the machine is asked, nothing is booked */
	slu_cleanup(slu_machine_freep) struct slu_machine *m = NULL;
	struct slu_gang_place place = { 0 };
	uint32_t found = SLU_NIL;
	int rc = 0;

	if (q->seen_freed != q->freed || q->fresh.n)
		return 0; /* the next pass looks at all of them */
	m = slu_machine_clone(q->m);
	if (!m)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (uint32_t s = 0; !rc && s < q->sub.n; s++)
		if (!q->sub.p[s].conf.stopped)
			rc = overlooked_in(q, s, m, &place, &found, err);
	slu_gang_place_done(&place);
	if (rc == 1)
		*job = q->job.p[found].id;
	return rc;
}

int slu_queue_check(const struct slu_queue *q, int64_t now_s, struct slu_error *err)
{
	uint64_t living = 0;

	for (uint32_t j = 0; j < q->job.n; j++) {
		if (!q->job.p[j].used)
			continue;
		living++;
		int rc = check_job(q, j, err);

		if (rc < 0)
			return rc;
	}
	if (living != q->job_of.n)
		return slu_fail(err, -EUCLEAN, "%" PRIu64 " jobs in the table, %u by id", living,
				q->job_of.n);
	for (uint32_t i = 0; i < q->sub.n; i++) {
		const struct subqueue *s = &q->sub.p[i];
		int64_t n = check_tree(q, s->reserved);

		if (n != s->n_reserved)
			return slu_fail(err, -EUCLEAN, "queue %s: the reserved tree is broken",
					s->conf.name);
		for (uint32_t k = 0; k < s->active.n; k++) {
			int64_t more = check_tree(q, q->bucket.p[s->active.p[k]].root);

			if (more < 1)
				return slu_fail(err, -EUCLEAN, "queue %s: a bucket is broken",
						s->conf.name);
			n += more;
		}
		if (n != s->n[SLU_JOB_WAITING])
			return slu_fail(err, -EUCLEAN,
					"queue %s: %" PRId64 " in the trees, %u waiting",
					s->conf.name, n, s->n[SLU_JOB_WAITING]);
	}
	for (uint32_t i = 0; i < slu_machine_node_slots(q->m); i++) {
		slu_node node = slu_machine_node_at(q->m, i);
		int rc = node == SLU_NODE_NONE ? 0 : check_node(q, node, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}
