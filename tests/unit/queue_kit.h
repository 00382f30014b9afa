/* queue_kit.h — a queue on a small machine, driven by hand; used by the test_queue*.c programs. */
#pragma once
#include "queue/queue.h"
#include "tap.h"

#define KIT_JOBS 64

struct kit {
	struct slu_queue *q;
	struct slu_decisions out;
	struct slu_error err;
	int cpu, rack;
	int64_t now;
	/* What was decided about each job, by id. */
	int64_t start[KIT_JOBS], planned[KIT_JOBS], was[KIT_JOBS];
	enum slu_cause cause[KIT_JOBS];
	enum slu_how how[KIT_JOBS];
	int nplan[KIT_JOBS], never[KIT_JOBS], refused[KIT_JOBS], expired[KIT_JOBS], lost[KIT_JOBS],
		overrun[KIT_JOBS];
	int64_t resized[KIT_JOBS];
	char text[KIT_JOBS][256];
	uint32_t node[KIT_JOBS][16], nnode[KIT_JOBS]; /* where it started or is planned */
};

__attribute__((unused)) static void kit_read(struct kit *k)
{
	for (uint32_t i = 0; i < k->out.v.n; i++) {
		const struct slu_decision *d = &k->out.v.p[i];
		slu_job_id j = d->job < KIT_JOBS ? d->job : 0;

		if (d->text != UINT32_MAX)
			snprintf(k->text[j], sizeof k->text[j], "%s",
				 slu_decision_text(&k->out, d));
		if (d->kind == SLU_DEC_START || d->kind == SLU_DEC_PLAN) {
			k->nnode[j] = 0;
			for (uint32_t p = 0; p < d->n_part && k->nnode[j] < 16; p++)
				k->node[j][k->nnode[j]++] = slu_node_index(
					k->out.part.p[d->part + p].node);
		}
		switch (d->kind) {
		case SLU_DEC_START:
			k->start[j] = d->start_s;
			k->how[j] = d->how;
			break;
		case SLU_DEC_PLAN:
			k->planned[j] = d->start_s;
			k->was[j] = d->was_s;
			k->cause[j] = d->cause;
			k->nplan[j]++;
			break;
		case SLU_DEC_NEVER:
			k->never[j]++;
			break;
		case SLU_DEC_REFUSED:
			k->refused[j]++;
			break;
		case SLU_DEC_EXPIRED:
			k->expired[j]++;
			break;
		case SLU_DEC_LOST:
			k->lost[j]++;
			break;
		case SLU_DEC_OVERRUN:
			k->overrun[j]++;
			break;
		case SLU_DEC_RESIZED:
			k->resized[j] = d->size;
			break;
		default:
			break;
		}
	}
	slu_decisions_clear(&k->out);
}

__attribute__((unused)) static int kit_apply(struct kit *k, const struct slu_event *ev)
{
	memset(&k->err, 0, sizeof k->err);
	int rc = slu_queue_apply(k->q, k->now, ev, &k->out, &k->err);

	kit_read(k);
	return rc;
}

/* Run one pass at time t; timers that are due before it fire, too. */
__attribute__((unused)) static int kit_at(struct kit *k, int64_t t)
{
	int rc = 0;

	memset(&k->err, 0, sizeof k->err);
	for (bool last = false; !last && !rc;) {
		int64_t wake = slu_queue_wake_s(k->q);

		last = wake > t || wake <= k->now;
		k->now = last ? t : wake;
		rc = slu_queue_schedule(k->q, k->now, &k->out, &k->err);
		kit_read(k);
	}
	if (rc < 0)
		printf("# schedule: %s\n", k->err.text);
	return rc;
}

__attribute__((unused)) static int kit_queue(struct kit *k, const struct slu_queue_conf *c)
{
	struct slu_event ev = { .kind = SLU_EV_QUEUE_SET, .conf = c };

	return kit_apply(k, &ev);
}

__attribute__((unused)) static int kit_node(struct kit *k, const char *name, int64_t cores,
					    const char *rack, const char *prop)
{
	struct slu_amount total = { (uint32_t)k->cpu, cores };
	struct slu_node_spec spec = {
		.name = name, .total = &total, .n_total = 1, .domain = &rack, .n_domain = 1
	};
	struct slu_event ev = { .kind = SLU_EV_NODE_ADD,
				.node_spec = &spec,
				.property = &prop,
				.n_property = prop ? 1 : 0 };

	return kit_apply(k, &ev);
}

/* `n` nodes n0, n1 ... of `cores`, one queue; invariants are checked at every step. */
__attribute__((unused)) static int kit_new(struct kit *k, int n, int64_t cores,
					   enum slu_policy policy)
{
	struct slu_queue_opts o = { .verify = true };
	struct slu_queue_conf c = { .name = "batch", .policy = policy };
	int rc;

	memset(k, 0, sizeof *k);
	for (int i = 0; i < KIT_JOBS; i++)
		k->start[i] = k->planned[i] = k->was[i] = SLU_TIME_NONE;
	rc = slu_queue_new(&o, &k->q, &k->err);
	if (rc < 0)
		return rc;
	k->cpu = slu_queue_resource(k->q, "cpu");
	k->rack = slu_queue_level(k->q, "rack");
	rc = kit_queue(k, &c);
	for (int i = 0; i < n && !rc; i++) {
		char name[16];

		snprintf(name, sizeof name, "n%d", i);
		rc = kit_node(k, name, cores, NULL, NULL);
	}
	return rc;
}

__attribute__((unused)) static void kit_done(struct kit *k)
{
	slu_queue_free(k->q);
	slu_decisions_done(&k->out);
}

/* Submit `slots` slots of one core; the rest from *more (may be NULL). */
static int kit_job_as(struct kit *k, slu_job_id id, uint32_t slots, int64_t limit,
		      const struct slu_job_spec *more, const struct slu_event *how)
{
	struct slu_amount need = { (uint32_t)k->cpu, 1 };
	struct slu_gang_role role = { .min = slots, .need = &need, .n_need = 1 };
	struct slu_gang_req req = { .role = &role, .n_role = 1, .level = -1 };
	struct slu_job_spec s = more ? *more
				     : (struct slu_job_spec){ .begin_s = SLU_TIME_NONE,
							      .deadline_s = SLU_TIME_NONE };
	struct slu_event ev = *how;

	ev.spec = &s;
	s.id = id;
	s.limit_s = limit;
	s.begin_s = s.begin_s ? s.begin_s : SLU_TIME_NONE;
	s.deadline_s = s.deadline_s ? s.deadline_s : SLU_TIME_NONE;
	if (!s.req)
		s.req = &req;
	if (!s.first_seen_us)
		s.first_seen_us = k->now * 1000000 + (int64_t)id;
	return kit_apply(k, &ev);
}

__attribute__((unused)) static int kit_job(struct kit *k, slu_job_id id, uint32_t slots,
					   int64_t limit, const struct slu_job_spec *more)
{
	struct slu_event ev = { .kind = SLU_EV_SUBMIT };

	return kit_job_as(k, id, slots, limit, more, &ev);
}

/* The job runs on the first node since now. */
__attribute__((unused)) static int kit_runs(struct kit *k, slu_job_id id, uint32_t slots,
					    int64_t limit)
{
	struct slu_gang_part part = { .node = slu_machine_node_at(slu_queue_machine(k->q), 0),
				      .slots = slots };
	struct slu_event ev = {
		.kind = SLU_EV_RUNNING, .part = &part, .n_part = 1, .start_s = k->now
	};

	return kit_job_as(k, id, slots, limit, NULL, &ev);
}

__attribute__((unused)) static int kit_do(struct kit *k, enum slu_event_kind kind, slu_job_id id)
{
	struct slu_event ev = { .kind = kind, .job = id };

	return kit_apply(k, &ev);
}

__attribute__((unused)) static int kit_node_do(struct kit *k, enum slu_event_kind kind,
					       const char *name)
{
	struct slu_event ev = { .kind = kind,
				.node = slu_machine_node_find(slu_queue_machine(k->q), name) };

	return kit_apply(k, &ev);
}

/* A job with more than a size and a limit; begin and deadline 0: none. */
#define KIT_SPEC(...) (&(struct slu_job_spec){ __VA_ARGS__ })

#define is(got, want, ...)                                                                      \
	do {                                                                                    \
		int64_t kit_got_ = (got), kit_want_ = (want);                                   \
		if (!ok(kit_got_ == kit_want_, __VA_ARGS__))                                    \
			printf("# got %" PRId64 ", wanted %" PRId64 "\n", kit_got_, kit_want_); \
	} while (0)
