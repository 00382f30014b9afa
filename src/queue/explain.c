/* Find out what would help a waiting job, by trying it on forks of the queue; and put it into words. */
#include "queue/explain.h"

#include <stdio.h>
#include <time.h>

#include "base/qty.h"
#include "queue/forecast.h"
#include "queue/passed_internal.h"

#define OTHER_QUEUES 4u
#define SPANS_TRIED  4u
#define LESS_TRIES   3u         /* a half, a quarter, an eighth */
#define VIRTUAL_S    1000000000 /* clocks of the world are past it since 2001 */

/* ---- what if ---- */

/* Ask for so many slots in all, the roles scaled alike. */
static int ask_fewer(struct slu_queue *fork, const struct slu_queue *q, int64_t now_s, uint32_t j,
		     int64_t slots, struct slu_decisions *dec)
{
	const struct shape *s = &q->shape.p[q->job.p[j].shape];
	struct slu_gang_req req = s->req;
	struct slu_gang_role role[SLU_ROLES_MAX];
	struct slu_job_spec spec = { .req = &req };
	struct slu_event ev = { .kind = SLU_EV_REQUEST, .job = q->job.p[j].id, .spec = &spec };

	for (uint32_t i = 0; i < req.n_role; i++) {
		role[i] = req.role[i];
		int64_t min = role[i].min * slots / s->slots;

		role[i].min = (uint32_t)SLU_MAX(min, INT64_C(1));
		role[i].max = role[i].min;
	}
	req.role = role;
	req.min = req.max = 0;
	return slu_queue_apply(fork, now_s, &ev, dec, NULL);
}

static int ask_elsewhere(struct slu_queue *fork, const struct slu_queue *q, int64_t now_s,
			 uint32_t j, const char *queue, struct slu_decisions *dec)
{
	const struct job *job = &q->job.p[j];
	struct slu_job_spec spec = {
		.id = job->id,
		.name = job_name(job),
		.user = slu_intern_str(&q->str, job->user),
		.queue = queue,
		.priority = job->priority,
		.first_seen_us = job->first_seen_us,
		.limit_s = job->limit_s,
		.begin_s = job->begin_s,
		.deadline_s = job->deadline_s,
		.reservation = job->tag == SLU_INTERN_NONE ? NULL
							   : slu_intern_str(&q->str, job->tag),
		.grow = job->flags & JOB_GROW,
		.member = job->flags & JOB_MEMBER,
		.stands = job->stands,
		.req = &q->shape.p[job->shape].req,
	};
	struct slu_event leave = { .kind = SLU_EV_CANCEL, .job = job->id };
	struct slu_event enter = { .kind = SLU_EV_SUBMIT, .spec = &spec };
	int rc = slu_queue_apply(fork, now_s, &leave, dec, NULL);

	return rc < 0 ? rc : slu_queue_apply(fork, now_s, &enter, dec, NULL);
}

static int try_change(struct slu_queue *fork, const struct slu_queue *q, int64_t now_s, uint32_t j,
		      const struct slu_help *h, struct slu_decisions *dec)
{
	struct slu_event limit = { .kind = SLU_EV_LIMIT,
				   .job = q->job.p[j].id,
				   .limit_s = h->value };
	struct slu_span span = { .name = h->name };
	struct slu_event without = { .kind = SLU_EV_SPAN_REMOVE, .span = &span };

	switch (h->kind) {
	case SLU_HELP_SLOTS:
		return ask_fewer(fork, q, now_s, j, h->value, dec);
	case SLU_HELP_LIMIT:
		return slu_queue_apply(fork, now_s, &limit, dec, NULL);
	case SLU_HELP_QUEUE:
		return ask_elsewhere(fork, q, now_s, j, h->name, dec);
	case SLU_HELP_RESERVATION:
	case SLU_HELP_DRAIN:
		return slu_queue_apply(fork, now_s, &without, dec, NULL);
	}
	return 0;
}

/* When the job would start with this change; SLU_TIME_NONE: not within `steps`, or never.  `h` NULL: as
 * it is. */
static int what_if(const struct slu_queue *q, int64_t now_s, uint32_t j, const struct slu_help *h,
		   uint32_t steps, int64_t *start_s)
{
	slu_cleanup(slu_forecast_freep) struct slu_forecast *f = NULL;
	struct slu_queue *fork = slu_queue_clone(q);
	struct slu_decisions dec = { 0 };
	slu_job_id id = q->job.p[j].id;
	int rc = fork ? 0 : -ENOMEM;

	*start_s = SLU_TIME_NONE;
	if (!rc && h)
		rc = try_change(fork, q, now_s, j, h, &dec);
	if (!rc)
		rc = slu_queue_schedule(fork, now_s, &dec, NULL);
	for (uint32_t i = 0; i < dec.v.n && !rc; i++)
		if (dec.v.p[i].kind == SLU_DEC_START && dec.v.p[i].job == id)
			*start_s = now_s;
	slu_decisions_done(&dec);
	if (rc < 0 || *start_s != SLU_TIME_NONE) {
		slu_queue_free(fork);
		return rc == -ENOMEM ? rc : 0; /* a change that the queue refuses does not help */
	}
	rc = slu_forecast_of(fork, now_s, &f, NULL);
	if (!rc)
		rc = slu_forecast_run_for(f, id, steps, NULL);
	if (rc >= 0)
		*start_s = slu_forecast_start(f, id);
	return rc == -ENOMEM ? rc : 0;
}

/* Worth a word: now, or earlier by a tenth of the wait that is left. */
static bool helps(int64_t now_s, int64_t is_s, int64_t would_s)
{
	if (would_s == SLU_TIME_NONE)
		return false;
	return is_s == SLU_TIME_NONE || would_s <= is_s - SLU_MAX((is_s - now_s) / 10, INT64_C(1));
}

static int by_start(const void *a, const void *b)
{
	const struct slu_help *x = a, *y = b;

	if (x->start_s != y->start_s)
		return x->start_s < y->start_s ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static int try_help(const struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_help h,
		    uint32_t steps, struct slu_explain *out)
{
	int rc = out->n_help < SLU_HELP_MAX ? what_if(q, now_s, j, &h, steps, &h.start_s) : 0;

	if (!rc && out->n_help < SLU_HELP_MAX && helps(now_s, out->start_s, h.start_s))
		out->help[out->n_help++] = h;
	return rc;
}

/* The value of the proposal, else half of it, and so on: the first that helps.  The gap before a
 * reservation, or before another job's promise, may be much shorter than the limit. */
static int try_less(const struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_help h,
		    uint32_t steps, struct slu_explain *out)
{
	uint32_t had = out->n_help;
	int rc = 0;

	for (uint32_t i = 0; i < LESS_TRIES && h.value > 0 && !rc && out->n_help == had; i++) {
		rc = try_help(q, now_s, j, h, steps, out);
		h.value /= 2;
	}
	return rc;
}

/* Could the job start earlier without this span?  Only one that begins before the job would end matters,
 * and not the occurrence of a reservation that was tried already. */
static bool may_delay(const struct slu_queue *q, uint32_t i, uint32_t j, int64_t now_s,
		      int64_t start_s)
{
	const struct span *s = &q->span.p[i];

	if (s->to_s <= now_s ||
	    (start_s != SLU_TIME_NONE && s->from_s >= start_s + q->job.p[j].limit_s))
		return false;
	for (uint32_t k = 0; k < i; k++)
		if (q->span.p[k].name == s->name && q->span.p[k].to_s > now_s)
			return false;
	return true;
}

static int find_spans(const struct slu_queue *q, int64_t now_s, uint32_t j, uint32_t steps,
		      struct slu_explain *out)
{
	uint32_t tried = 0;
	int rc = 0;

	for (uint32_t i = 0; i < q->span.n && !rc && tried < SPANS_TRIED; i++) {
		const struct span *s = &q->span.p[i];
		struct slu_help h = {
			.kind = s->kind == SLU_SPAN_DRAIN ? SLU_HELP_DRAIN : SLU_HELP_RESERVATION,
			.name = slu_intern_str(&q->str, s->name),
		};

		if (!may_delay(q, i, j, now_s, out->start_s))
			continue;
		tried++;
		rc = try_help(q, now_s, j, h, steps, out);
	}
	return rc;
}

static int find_help(struct slu_queue *q, int64_t now_s, uint32_t j, uint32_t steps,
		     struct slu_explain *out)
{
	const struct job *job = &q->job.p[j];
	int64_t slots = q->shape.p[job->shape].slots, fewer, shorter;
	struct slu_gang_req req = queue_job_req(q, j);
	struct slu_gang_why *w = slu_calloc(1, sizeof *w);
	uint32_t others = 0;
	int rc = w ? slu_gang_explain(q->m, now_s, &req, w, NULL) : -ENOMEM;

	/* What would fit now, else half of it, or a smaller part. */
	fewer = rc < 0 || !w->fewer_slots ? slots / 2 : w->fewer_slots;
	shorter = rc < 0 || !w->shorter_s ? job->limit_s / 2 : w->shorter_s;
	slu_free(w);
	if (rc == -ENOMEM)
		return rc;
	rc = 0;
	if (fewer < slots)
		rc = try_less(q, now_s, j,
			      (struct slu_help){ .kind = SLU_HELP_SLOTS, .value = fewer }, steps,
			      out);
	if (!rc && shorter < job->limit_s)
		rc = try_less(q, now_s, j,
			      (struct slu_help){ .kind = SLU_HELP_LIMIT, .value = shorter }, steps,
			      out);
	for (uint32_t i = 0; i < q->sub.n && !rc && others < OTHER_QUEUES; i++) {
		const struct slu_queue_conf *c = &q->sub.p[i].conf;

		if (i == job->queue || c->stopped || c->removed)
			continue;
		others++;
		rc = try_help(q, now_s, j,
			      (struct slu_help){ .kind = SLU_HELP_QUEUE, .name = c->name }, steps,
			      out);
	}
	if (!rc)
		rc = find_spans(q, now_s, j, steps, out);
	if (out->n_help)
		qsort(out->help, out->n_help, sizeof *out->help, by_start);
	return rc;
}

int slu_queue_explain(const struct slu_queue *cq, int64_t now_s, slu_job_id id, uint32_t steps,
		      struct slu_explain *out, struct slu_error *err)
{
	struct slu_queue *q = (struct slu_queue *)cq; /* scratch is used, nothing else */
	uint32_t j = queue_job_find(q, id);
	int rc;

	*out = (struct slu_explain){ .start_s = SLU_TIME_NONE };
	if (j == SLU_NIL)
		return slu_fail(err, -ENOENT, "no job %" PRIu64, id);
	if (q->job.p[j].state != SLU_JOB_WAITING)
		return 0;
	now_s = SLU_MAX(now_s, q->now_s);
	out->promised = q->job.p[j].planned_s != SLU_TIME_NONE;
	out->start_s = q->job.p[j].planned_s;
	rc = queue_passers(q, now_s, j, out);
	if (!rc && !out->promised)
		rc = what_if(q, now_s, j, NULL, steps, &out->start_s);
	if (!rc)
		rc = find_help(q, now_s, j, steps, out);
	return rc < 0 ? slu_fail(err, rc, "%s", rc == -ENOMEM ? "out of memory" : strerror(-rc))
		      : 0;
}

/* ---- in words ---- */

const char *slu_pass_rule_text(enum slu_pass_rule r)
{
	static const char *const text[] = {
		[SLU_PASS_BESIDE] = "started beside its promise",
		[SLU_PASS_GAP] = "fits a gap that is too small for this job",
		[SLU_PASS_SHORTER] = "is shorter, and the shortest goes first",
		[SLU_PASS_PACKED] = "goes first so that the jobs submitted together end sooner",
		[SLU_PASS_BALANCED] =
			"goes first so that the whole queue ends sooner and waits less",
		[SLU_PASS_MEMBER] = "belongs to a gang that was already running",
		[SLU_PASS_QUEUE] = "is in another queue",
	};

	return (unsigned)r < SLU_LEN(text) ? text[r] : "?";
}

static void put_moment(int64_t s, char out[32])
{
	time_t t = (time_t)s;
	struct tm tm;

	if (s < VIRTUAL_S || !gmtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(out, 32, "%" PRId64, s);
}

void slu_passer_text(const struct slu_passer *p, char *out, size_t size)
{
	char at[32], who[SLU_PASS_NAME], harm[64], delay[SLU_QTY_TEXT];

	put_moment(p->at_s, at);
	if (*p->name)
		snprintf(who, sizeof who, "%s", p->name);
	else
		snprintf(who, sizeof who, "%" PRIu64, p->id);
	if (p->harm_s == SLU_TIME_EVER)
		snprintf(harm, sizeof harm, "this job cannot start while that one runs");
	else
		snprintf(harm, sizeof harm, "delay %s%s%s", p->at_most ? "at most " : "",
			 slu_duration_text(p->harm_s, delay),
			 p->at_most ? "; that job has ended" : "");
	snprintf(out, size, "job %s (%u slot%s) at %s: %s; %s", who, p->slots,
		 p->slots == 1 ? "" : "s", at, slu_pass_rule_text(p->rule), harm);
}

void slu_help_text(const struct slu_help *h, int64_t now_s, char *out, size_t size)
{
	static const char *const preposition[] = { "with", "with", "in", "without", "without" };
	static const char *const named[] = { [SLU_HELP_QUEUE] = "queue",
					     [SLU_HELP_RESERVATION] = "reservation",
					     [SLU_HELP_DRAIN] = "drain" };
	char at[32], what[300], when[48] = "now", limit[SLU_QTY_TEXT];

	put_moment(h->start_s, at);
	if (h->start_s > now_s)
		snprintf(when, sizeof when, "at %s", at);
	if (h->kind == SLU_HELP_SLOTS)
		snprintf(what, sizeof what, "%" PRId64 " slot%s", h->value,
			 h->value == 1 ? "" : "s");
	else if (h->kind == SLU_HELP_LIMIT)
		snprintf(what, sizeof what, "a limit of %s", slu_duration_text(h->value, limit));
	else
		snprintf(what, sizeof what, "%s \"%s\"", named[h->kind], h->name);
	snprintf(out, size, "%s %s: it would start %s", preposition[h->kind], what, when);
}
