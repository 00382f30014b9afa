/* Which jobs passed a waiting one, by which rule, and how much later it starts because of them. */
#include "queue/passed_internal.h"

#include <stdio.h>

#define TRIED 32u /* passers whose harm is measured: the latest ones */

/* Whether the job that started stood behind this one. */
static bool stood_behind(const struct slu_queue *q, const struct job *job, const struct note *n)
{
	int32_t mine = q->sub.p[job->queue].conf.priority, its = q->sub.p[n->queue].conf.priority;

	if (n->queue != job->queue && mine != its)
		return mine > its;
	if (n->priority != job->priority)
		return n->priority < job->priority;
	if (n->first_seen_us != job->first_seen_us)
		return n->first_seen_us > job->first_seen_us;
	int c = strcmp(n->name, job_name(job));

	return c ? c > 0 : n->id > job->id;
}

/* Whether the noted job started while this one was in line.  After a restart the queue learns of jobs in
 * any order, so only a start after this job was first seen counts. */
static bool started_since(const struct job *job, const struct note *n)
{
	return n->told ? n->at_s * 1000000 >= job->first_seen_us : n->seq >= job->line_from;
}

static enum slu_pass_rule rule_of(const struct slu_queue *q, const struct job *job,
				  const struct note *n)
{
	const struct slu_queue_conf *c = &q->sub.p[job->queue].conf;

	if (job->planned_s != SLU_TIME_NONE && n->seq >= job->told_from && !n->told)
		return SLU_PASS_BESIDE;
	if (n->queue != job->queue)
		return SLU_PASS_QUEUE;
	if (n->member)
		return SLU_PASS_MEMBER;
	if (c->backfill == SLU_BACKFILL_PACKED && c->policy == SLU_POLICY_EASY &&
	    n->first_seen_us - job->first_seen_us <= SLU_BATCH_S * INT64_C(1000000))
		return SLU_PASS_PACKED;
	if (n->played)
		return SLU_PASS_BALANCED;
	if ((c->backfill == SLU_BACKFILL_SHORTEST || c->backfill == SLU_BACKFILL_BALANCED) &&
	    n->limit_s < job->limit_s)
		return SLU_PASS_SHORTER;
	return SLU_PASS_GAP;
}

/* Where this job would start on `m`, which is left as it was. */
static int earliest(struct slu_queue *q, struct slu_machine *m, int64_t now_s, uint32_t j,
		    int64_t *start_s)
{
	struct slu_gang_req req = queue_job_req(q, j);
	struct slu_gang_role role[SLU_ROLES_MAX];

	queue_req_minimum(&req, role);
	int ans = slu_gang_match(m, SLU_GANG_ALLOCATE_OR_RESERVE, now_s, q->job.p[j].id, &req,
				 &q->place, NULL);

	*start_s = SLU_TIME_EVER;
	if (ans != SLU_GANG_NOW && ans != SLU_GANG_LATER)
		return ans < 0 ? ans : 0;
	*start_s = q->place.start_s;
	return slu_gang_cancel(m, q->job.p[j].id);
}

/* The harm of a job that runs: take it out of the copy, look for the earliest start, put it back. */
static int harm_of(struct slu_queue *q, struct slu_machine *m, int64_t now_s, uint32_t j,
		   int64_t with_s, struct slu_passer *p, struct slu_gang_place *place)
{
	uint32_t other = queue_job_find(q, p->id);
	struct slu_gang_info info;
	int64_t without_s;
	int rc = slu_gang_info(m, p->id, &info, place);

	if (!rc)
		rc = slu_gang_cancel(m, p->id);
	if (rc == -ENOENT || other == SLU_NIL) /* the other job holds nothing any more */
		return 0;
	if (!rc)
		rc = earliest(q, m, now_s, j, &without_s);
	if (rc < 0)
		return rc;
	if (without_s != SLU_TIME_EVER)
		p->harm_s = with_s == SLU_TIME_EVER ? with_s
						    : SLU_MAX(with_s - without_s, INT64_C(0));
	const struct slu_gang_req *req = &q->shape.p[q->job.p[other].shape].req;
	struct slu_gang_booking b = { .job = p->id,
				      .start_s = info.start_s,
				      .end_s = info.end_s,
				      .role = req->role,
				      .n_role = req->n_role,
				      .part = place->part,
				      .n_part = place->n };

	return slu_gang_register(m, now_s, &b, NULL);
}

static int more_harm(const void *a, const void *b)
{
	const struct slu_passer *x = a, *y = b;

	if (x->at_most != y->at_most) /* jobs whose delay is known come first */
		return x->at_most - y->at_most;
	if (x->harm_s != y->harm_s)
		return x->harm_s > y->harm_s ? -1 : 1;
	if (x->at_s != y->at_s)
		return x->at_s > y->at_s ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int queue_passers(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_explain *out)
{
	const struct job *job = &q->job.p[j];
	uint64_t kept = SLU_MIN(q->notes, (uint64_t)SLU_PASS_KEPT);
	slu_cleanup(slu_machine_freep) struct slu_machine *m = NULL;
	struct slu_gang_place place = { 0 };
	struct slu_passer p[TRIED];
	int64_t with_s = SLU_TIME_EVER;
	uint32_t n = 0;
	int rc = 0;

	for (uint64_t i = 0; i < kept && !rc; i++) { /* the latest first */
		const struct note *x = &q->note[(q->notes - 1 - i) % SLU_PASS_KEPT];

		if (!x->id || x->id == job->id || !started_since(job, x) ||
		    !stood_behind(q, job, x))
			continue;
		out->n_passed++;
		if (n == TRIED)
			continue;
		struct slu_passer *a = &p[n++];

		*a = (struct slu_passer){ .id = x->id,
					  .at_s = x->at_s,
					  .end_s = x->end_s,
					  .slots = x->slots,
					  .rule = rule_of(q, job, x) };
		memcpy(a->name, x->name, sizeof a->name);
		if (a->rule == SLU_PASS_BESIDE)
			continue;
		a->at_most = x->end_s != SLU_TIME_NONE;
		if (a->at_most) {
			a->harm_s = x->end_s - x->at_s;
			continue;
		}
		if (!m) {
			m = slu_machine_clone(q->m);
			rc = m ? 0 : -ENOMEM;
			if (m)
				slu_gang_cancel(m, job->id); /* its own promise */
			if (!rc)
				rc = earliest(q, m, now_s, j, &with_s);
		}
		if (!rc)
			rc = harm_of(q, m, now_s, j, with_s, a, &place);
	}
	slu_gang_place_done(&place);
	if (rc < 0)
		return rc;
	if (n)
		qsort(p, n, sizeof *p, more_harm);
	out->n_passer = SLU_MIN(n, SLU_PASS_SHOWN);
	if (n)
		memcpy(out->passer, p, out->n_passer * sizeof *p);
	return 0;
}
