/* The queue against a dull planner that counts.
 *
 * On nodes of one core, jobs of one-core slots are mere counts: a reservation keeps so many cores,
 * whichever they are.  The dull planner recomputes everything at every event by looking at every
 * second; the queue must start each job at the same second.  Then all policies run with everything that
 * can happen (cancels, holds, priorities, failures, resizes, spans, foreign work).  There is no answer to
 * compare with, but every invariant is checked after every step; and a twin that receives the same events
 * in their encoded form decides the same, to the last node, even after it was rebuilt from a picture.
 *
 *	prop-queue [rounds [seed]] */
#include "tap.h"

#include "base/map.h"
#include "base/rng.h"
#include "queue/codec.h"

#define JOBS    20
#define HORIZON 4000

struct inst {
	int m, n;
	int64_t submit[JOBS], run[JOBS], limit[JOBS];
	int slots[JOBS];
	int priority[JOBS];
};

struct dull {
	const struct inst *in;
	enum slu_policy policy;
	enum slu_backfill backfill;
	int64_t start[JOBS];
	int state[JOBS]; /* 0 unseen, 1 waiting, 2 running, 3 ended */
	bool ties;       /* two jobs ended in the same second */
};

/* Instances with such ties in which the queue was within its rights to differ: between the two ends
 * a job whose time has come keeps the nodes it was promised, where the dull one would take others
 * for the same number. */
static int excused;

static bool first(const struct inst *in, int a, int b)
{
	if (in->priority[a] != in->priority[b])
		return in->priority[a] > in->priority[b];
	return in->submit[a] != in->submit[b] ? in->submit[a] < in->submit[b] : a < b;
}

/* Cores in use at second t by plan: limits, not run times. */
static int planned_at(const struct dull *d, int64_t t)
{
	int u = 0;

	for (int j = 0; j < d->in->n; j++)
		if (d->state[j] == 2 && t < d->start[j] + d->in->limit[j])
			u += d->in->slots[j];
	return u;
}

/* Cores in use now: who should have ended by now and has not said so yet counts. */
static int used(const struct dull *d)
{
	int u = 0;

	for (int j = 0; j < d->in->n; j++)
		u += d->state[j] == 2 ? d->in->slots[j] : 0;
	return u;
}

/* Is there room for j from s on by plan, with `head` (or -1) holding its cores from `at` on? */
static bool fits(const struct dull *d, int j, int64_t s, int head, int64_t at)
{
	for (int64_t t = s; t < s + d->in->limit[j]; t++) {
		int u = planned_at(d, t) + d->in->slots[j];

		if (head >= 0 && t >= at && t < at + d->in->limit[head])
			u += d->in->slots[head];
		if (u > d->in->m)
			return false;
	}
	return true;
}

static bool starts(const struct dull *d, int j, int64_t now, int head, int64_t at)
{
	return used(d) + d->in->slots[j] <= d->in->m && fits(d, j, now, head, at);
}

static int next_in_line(const struct dull *d, const bool *skip)
{
	int best = -1;

	for (int j = 0; j < d->in->n; j++)
		if (d->state[j] == 1 && !skip[j] && (best < 0 || first(d->in, j, best)))
			best = j;
	return best;
}

static int next_to_fill(const struct dull *d, const bool *skip)
{
	int best = -1;

	if (d->backfill == SLU_BACKFILL_SUBMISSION)
		return next_in_line(d, skip);
	for (int j = 0; j < d->in->n; j++)
		if (d->state[j] == 1 && !skip[j] &&
		    (best < 0 || d->in->limit[j] < d->in->limit[best] ||
		     (d->in->limit[j] == d->in->limit[best] && first(d->in, j, best))))
			best = j;
	return best;
}

static void dull_pass(struct dull *d, int64_t now)
{
	bool skip[JOBS] = { 0 };
	int head = -1, j;
	int64_t at = 0;

	while (d->policy != SLU_POLICY_FIRST_FIT && (j = next_in_line(d, skip)) >= 0) {
		if (starts(d, j, now, -1, 0)) {
			d->state[j] = 2;
			d->start[j] = now;
			continue;
		}
		head = j;
		break;
	}
	if (d->policy == SLU_POLICY_FCFS)
		return;
	if (head >= 0) {
		skip[head] = true;
		for (at = now; !fits(d, head, at, -1, 0); at++)
			;
	}
	while ((j = next_to_fill(d, skip)) >= 0) {
		skip[j] = true;
		if (starts(d, j, now, head, at)) {
			d->state[j] = 2;
			d->start[j] = now;
		}
	}
}

/* One event at a time: ends before submissions, as the simulator does. */
static void dull_run(struct dull *d)
{
	for (int64_t now = 0; now < HORIZON; now++) {
		int ends = 0;

		for (int j = 0; j < d->in->n; j++)
			if (d->state[j] == 2 && d->start[j] + d->in->run[j] == now) {
				d->state[j] = 3;
				d->ties |= ends++ > 0;
				dull_pass(d, now);
			}
		for (int j = 0; j < d->in->n; j++)
			if (d->in->submit[j] == now) {
				d->state[j] = 1;
				dull_pass(d, now);
			}
	}
}

/* ---- the queue on the same instance ---- */

struct rig {
	struct slu_queue *q;
	struct slu_decisions out;
	struct slu_error err;
	uint32_t cpu;
	int64_t start[JOBS + 1];
	bool full;              /* make every pass a full one */
	struct slu_queue *twin; /* replays what is recorded */
	struct slu_decisions twin_out;
	struct slu_queue_conf conf;
	int64_t cores;
	bool crowd; /* jobs of three users in two queues */
};

/* Bound on the wait in the rigs made from now on. */
static uint32_t stretch;

/* Through the codec to the twin; 0 if it went the same way. */
static int replay(struct rig *r, int64_t now, const struct slu_event *ev, int rc)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_event_box box = { 0 };
	int same = -EUCLEAN;

	if (!slu_event_encode(now, ev, NULL, &b) &&
	    !slu_event_decode(b.p, b.n, NULL, &box, &r->err)) {
		struct slu_error err = { 0 };

		if (slu_queue_apply(r->twin, box.now_s, &box.ev, &r->twin_out, &err) == rc)
			same = 0;
		else
			slu_fail(&r->err, same, "the twin differs: %s", err.text);
	}
	slu_event_box_done(&box);
	slu_buf_done(&b);
	return same;
}

static int rig_apply(struct rig *r, int64_t now, const struct slu_event *ev)
{
	int rc = slu_queue_apply(r->q, now, ev, &r->out, &r->err);

	if (r->twin && replay(r, now, ev, rc) < 0)
		return -EUCLEAN;
	return rc;
}

static int twin_pass(struct rig *r, int64_t now)
{
	int rc = slu_queue_schedule(r->twin, now, &r->twin_out, &r->err);

	if (!rc && slu_decisions_digest(&r->out) != slu_decisions_digest(&r->twin_out))
		rc = slu_fail(&r->err, -EUCLEAN, "at %d the twin decides otherwise", (int)now);
	slu_decisions_clear(&r->twin_out);
	return rc;
}

/* ---- pictures ---- */

struct sets {
	SLU_VEC(struct slu_nodeset *) v;
};

static uint64_t set_id(void *arg, const struct slu_nodeset *s)
{
	struct sets *t = arg;

	for (uint32_t i = 0; i < t->v.n; i++)
		if (t->v.p[i] == s)
			return i;
	(void)slu_vec_push(&t->v, slu_nodeset_ref(s));
	return t->v.n - 1;
}

static struct slu_nodeset *set_find(void *arg, uint64_t id)
{
	struct sets *t = arg;

	return id < t->v.n ? t->v.p[id] : NULL;
}

/* A picture with some wrong bytes is refused, or is one of another queue that can be used. */
static void damaged(const struct slu_queue_opts *opts, const struct slu_set_names *names,
		    struct slu_buf *b, struct slu_rng *g)
{
	struct slu_queue_opts o = *opts;
	struct slu_queue *q = NULL;
	struct slu_decisions out = { 0 };
	uint64_t n = 1 + slu_rng_below(g, 3);

	o.verify = false; /* it need not make sense */
	for (; n; n--) {
		size_t at = (size_t)slu_rng_below(g, b->n);

		b->p[at] = (char)(slu_rng_below(g, 2) ? b->p[at] + 1 : (int)slu_rng_below(g, 256));
	}
	if (!slu_queue_restore(&o, b->p, b->n, names, &q, NULL)) {
		struct slu_event node = { .kind = SLU_EV_NODE_DOWN,
					  .node = slu_machine_node_at(slu_queue_machine(q), 0) };
		int64_t now = slu_queue_now_s(q);

		(void)slu_queue_check(q, now, NULL);
		for (slu_job_id i = 0; i < 40; i++) {
			struct slu_event ev = { .kind = i % 3 ? SLU_EV_END : SLU_EV_HOLD,
						.job = i };

			if (i % 8 == 0)
				(void)slu_queue_schedule(q, now + (int64_t)i, &out, NULL);
			(void)slu_queue_apply(q, now + (int64_t)i, i == 20 ? &node : &ev, &out,
					      NULL);
		}
	}
	slu_decisions_done(&out);
	slu_queue_free(q);
}

/* The twin is rebuilt from a picture of the other queue, and looks the same. */
static int twin_from_picture(struct rig *r, struct slu_rng *g)
{
	struct slu_buf a = SLU_BUF_INIT(1 << 24), b = SLU_BUF_INIT(1 << 24);
	struct slu_queue_opts o = *slu_queue_opts(r->q);
	struct slu_queue *twin = NULL;
	struct sets t = { 0 };
	const struct slu_set_names names = { set_id, set_find, &t };
	int rc;

	slu_queue_picture(r->q, &names, &a);
	rc = a.error ? a.error : slu_queue_restore(&o, a.p, a.n, &names, &twin, &r->err);
	if (!rc) {
		slu_queue_picture(twin, &names, &b);
		if (a.n != b.n || memcmp(a.p, b.p, a.n))
			rc = slu_fail(&r->err, -EUCLEAN, "the picture of a picture differs");
	}
	if (!rc)
		rc = slu_queue_check(twin, slu_queue_now_s(twin), &r->err);
	/* A picture that lacks a byte is none. */
	for (size_t n = 0; !rc && n < a.n; n += 1 + n / 8) {
		struct slu_queue *none = NULL;

		if (slu_queue_restore(&o, a.p, n, &names, &none, NULL) != -EINVAL)
			rc = slu_fail(&r->err, -EUCLEAN, "%zu of %zu bytes are taken", n, a.n);
		slu_queue_free(none);
	}
	for (int i = 0; !rc && i < 20; i++) {
		slu_buf_reset(&b);
		slu_buf_add(&b, a.p, a.n);
		damaged(&o, &names, &b, g);
	}
	slu_queue_free(r->twin);
	r->twin = twin;
	for (uint32_t i = 0; i < t.v.n; i++)
		slu_nodeset_unref(t.v.p[i]);
	slu_vec_done(&t.v);
	slu_buf_done(&a);
	slu_buf_done(&b);
	return rc;
}

static int rig_node(struct rig *r, int64_t now, int i, int64_t cores)
{
	char name[16];
	struct slu_amount total = { r->cpu, cores };
	struct slu_node_spec spec = { .name = name, .total = &total, .n_total = 1 };
	struct slu_event ev = { .kind = SLU_EV_NODE_ADD, .node_spec = &spec };

	snprintf(name, sizeof name, "n%d", i);
	return rig_apply(r, now, &ev);
}

static int rig_new(struct rig *r, int nodes, int64_t cores, enum slu_policy policy,
		   enum slu_backfill backfill, bool full, bool twin)
{
	struct slu_queue_opts o = { .verify = true, .lazy = !full };
	int rc;

	memset(r, 0, sizeof *r);
	r->full = full;
	r->conf = (struct slu_queue_conf){
		.name = "q",
		.policy = policy,
		.backfill = backfill,
		.reservation_depth = 3,
		.max_stretch = stretch,
	};
	for (int j = 0; j <= JOBS; j++)
		r->start[j] = SLU_TIME_NONE;
	rc = slu_queue_new(&o, &r->q, &r->err);
	if (!rc && twin)
		rc = slu_queue_new(&o, &r->twin, &r->err);
	struct slu_event conf = { .kind = SLU_EV_QUEUE_SET, .conf = &r->conf };

	if (rc < 0)
		return rc;
	r->cpu = (uint32_t)slu_queue_resource(r->q, "cpu");
	if (r->twin)
		slu_queue_resource(r->twin, "cpu");
	rc = rig_apply(r, 0, &conf);
	r->cores = cores;
	for (int i = 0; i < nodes && !rc; i++)
		rc = rig_node(r, 0, i, cores);
	return rc;
}

static int rig_pass(struct rig *r, int64_t now)
{
	struct slu_event again = { .kind = SLU_EV_NODE_UP,
				   .node = slu_machine_node_at(slu_queue_machine(r->q), 0) };
	int rc = r->full ? rig_apply(r, now, &again) : 0;

	if (!rc)
		rc = slu_queue_schedule(r->q, now, &r->out, &r->err);
	if (!rc && r->twin)
		rc = twin_pass(r, now);
	if (getenv("PROP_TRACE"))
		for (uint32_t i = 0; i < r->out.v.n; i++)
			printf("# %d: %s job %d at %d was %d cause %s\n", (int)now,
			       slu_decision_name(r->out.v.p[i].kind), (int)r->out.v.p[i].job,
			       (int)r->out.v.p[i].start_s, (int)r->out.v.p[i].was_s,
			       slu_cause_name(r->out.v.p[i].cause));
	for (uint32_t i = 0; i < r->out.v.n; i++)
		if (r->out.v.p[i].kind == SLU_DEC_START && r->out.v.p[i].job <= JOBS)
			r->start[r->out.v.p[i].job] = now;
	slu_decisions_clear(&r->out);
	return rc;
}

static int rig_submit(struct rig *r, int64_t now, slu_job_id id, uint32_t slots, uint32_t max,
		      int64_t limit, int64_t priority, const struct slu_dep *dep)
{
	struct slu_amount need = { r->cpu, 1 };
	struct slu_gang_role role = { .min = slots, .max = max, .need = &need, .n_need = 1 };
	struct slu_gang_req req = { .role = &role, .n_role = 1, .level = -1 };
	static const char *const user[] = { "ann", "bob", "cyd" };
	struct slu_job_spec s = { .id = id,
				  .user = r->crowd ? user[id % 3] : NULL,
				  .queue = r->crowd && id % 2 ? "p" : "q",
				  .priority = priority,
				  .member = r->crowd && id % 7 == 0,
				  .first_seen_us = now * 1000000,
				  .limit_s = limit,
				  .begin_s = SLU_TIME_NONE,
				  .deadline_s = SLU_TIME_NONE,
				  .grow = max > slots,
				  .dep = dep,
				  .ndep = dep != NULL,
				  .req = &req };
	struct slu_event ev = { .kind = SLU_EV_SUBMIT, .spec = &s };

	return rig_apply(r, now, &ev);
}

static int rig_run(struct rig *r, const struct inst *in)
{
	bool ended[JOBS] = { 0 };
	int rc = 0;

	for (int64_t now = 0; now < HORIZON && !rc; now++) {
		for (int j = 0; j < in->n && !rc; j++)
			if (!ended[j] && r->start[j + 1] != SLU_TIME_NONE &&
			    r->start[j + 1] + in->run[j] == now) {
				struct slu_event ev = { .kind = SLU_EV_END,
							.job = (slu_job_id)j + 1 };

				ended[j] = true;
				rc = rig_apply(r, now, &ev);
				if (!rc)
					rc = rig_pass(r, now);
			}
		for (int j = 0; j < in->n && !rc; j++)
			if (in->submit[j] == now) {
				rc = rig_submit(r, now, (slu_job_id)j + 1, (uint32_t)in->slots[j],
						0, in->limit[j], in->priority[j], NULL);
				if (!rc)
					rc = rig_pass(r, now);
			}
	}
	return rc;
}

static void rig_done(struct rig *r)
{
	slu_queue_free(r->q);
	slu_queue_free(r->twin);
	slu_decisions_done(&r->out);
	slu_decisions_done(&r->twin_out);
}

static void draw(struct inst *in, struct slu_rng *g)
{
	in->m = 1 + (int)slu_rng_below(g, 8);
	in->n = 5 + (int)slu_rng_below(g, JOBS - 4);
	for (int j = 0; j < in->n; j++) {
		in->submit[j] = (int64_t)slu_rng_below(g, 40);
		in->slots[j] = 1 + (int)slu_rng_below(g, (uint64_t)in->m);
		in->run[j] = 1 + (int64_t)slu_rng_below(g, 15);
		in->limit[j] = in->run[j] +
			       (slu_rng_below(g, 2) ? (int64_t)slu_rng_below(g, 10) : 0);
		/* Two seconds at least: in the very second in which a job should have ended and
		 * has not, the queue plans for the next second, the dull planner for this one. */
		in->limit[j] = SLU_MAX(in->limit[j], (int64_t)2);
		in->priority[j] = 0;
	}
}

static void against_dull(uint64_t seed, int round)
{
	static const struct {
		enum slu_policy policy;
		enum slu_backfill backfill;
	} way[] = { { SLU_POLICY_FCFS, SLU_BACKFILL_SUBMISSION },
		    { SLU_POLICY_EASY, SLU_BACKFILL_SUBMISSION },
		    { SLU_POLICY_EASY, SLU_BACKFILL_SHORTEST },
		    { SLU_POLICY_FIRST_FIT, SLU_BACKFILL_SUBMISSION },
		    { SLU_POLICY_FIRST_FIT, SLU_BACKFILL_SHORTEST },
		    /* No job becomes due within the horizon: no promises. */
		    { SLU_POLICY_SELECTIVE, SLU_BACKFILL_SHORTEST } };
	struct slu_rng g = { slu_hash_u64(seed + (uint64_t)round) };
	struct inst in;
	int wrong = 0, tied = 0;
	char what[700] = "";

	stretch = SLU_STRETCH_MAX;
	draw(&in, &g);
	for (int j = 0; j < in.n && getenv("PROP_TRACE"); j++)
		printf("# job %d: submit %d slots %d run %d limit %d\n", j, (int)in.submit[j],
		       in.slots[j], (int)in.run[j], (int)in.limit[j]);
	for (size_t w = 0; w < SLU_LEN(way); w++) {
		struct dull d = { .in = &in, .policy = way[w].policy, .backfill = way[w].backfill };

		if (d.policy == SLU_POLICY_SELECTIVE)
			d.policy = SLU_POLICY_FIRST_FIT;
		dull_run(&d);
		for (int j = 0; j < in.n && getenv("PROP_TRACE"); j++)
			printf("# dull %d: job %d starts %d\n", (int)w, j, (int)d.start[j]);
		/* Twice: with the short cuts, and with every pass a full one. */
		for (int full = 0; full < 2; full++) {
			struct rig r;
			int rc = rig_new(&r, in.m, 1, way[w].policy, way[w].backfill, full, false);

			if (!rc)
				rc = rig_run(&r, &in);
			for (int j = 0; j < in.n && !wrong; j++)
				if (rc < 0 || r.start[j + 1] != d.start[j]) {
					snprintf(what, sizeof what,
						 "%s/%s%s, job %d: %d, should be %d (%s)",
						 slu_policy_name(way[w].policy),
						 slu_backfill_name(way[w].backfill),
						 full ? ", full passes" : "", j,
						 (int)r.start[j + 1], (int)d.start[j], r.err.text);
					wrong++;
				}
			if (wrong && d.ties && !rc) {
				tied = 1;
				wrong = 0;
			}
			rig_done(&r);
		}
	}
	excused += tied;
	ok(!wrong, "seed %llu: %d jobs on %d cores as counted %s",
	   (unsigned long long)seed + (unsigned)round, in.n, in.m, what);
}

/* ---- everything that can happen ---- */

static int random_event(struct rig *r, struct slu_rng *g, int64_t now, slu_job_id *next,
			uint64_t *foreign, int nodes)
{
	slu_job_id some = 1 + slu_rng_below(g, *next);
	const struct slu_machine *m = slu_queue_machine(r->q);
	uint32_t index = (uint32_t)slu_rng_below(g, (uint64_t)nodes);
	struct slu_event ev = { .job = some, .node = slu_machine_node_at(m, index) };
	if (ev.node == SLU_NODE_NONE) { /* it went some time ago: now it is back */
		for (int i = 0; i < nodes; i++) {
			char gone[16];

			snprintf(gone, sizeof gone, "n%d", i);
			if (slu_machine_node_find(m, gone) == SLU_NODE_NONE)
				return rig_node(r, now, i, r->cores);
		}
		return 0;
	}
	const char *name = slu_machine_node_name(m, ev.node);
	struct slu_gang_part avoid = { ev.node, 0, 1 };
	struct slu_amount one = { r->cpu, 1 };
	char span_name[24];
	struct slu_span span = { .kind = slu_rng_below(g, 2) ? SLU_SPAN_DRAIN
							     : SLU_SPAN_RESERVATION,
				 .name = span_name,
				 .from_s = now + (int64_t)slu_rng_below(g, 20),
				 .node = &name,
				 .nnode = 1 };
	struct slu_job_view v;
	bool known = slu_queue_job(r->q, some, &v) == 0;

	span.to_s = span.from_s + 1 + (int64_t)slu_rng_below(g, 30);
	snprintf(span_name, sizeof span_name, "s%d", (int)slu_rng_below(g, 6));
	switch (slu_rng_below(g, 22)) {
	case 0:
		ev.kind = SLU_EV_CANCEL;
		break;
	case 1:
		ev.kind = SLU_EV_HOLD;
		break;
	case 2:
		ev.kind = SLU_EV_RELEASE;
		break;
	case 3:
		ev.kind = SLU_EV_PRIORITY;
		ev.priority = (int64_t)slu_rng_below(g, 5);
		break;
	case 4:
		ev.kind = SLU_EV_LIMIT;
		ev.limit_s = 1 + (int64_t)slu_rng_below(g, 30);
		break;
	case 5:
		ev.kind = SLU_EV_NODE_DOWN;
		return rig_apply(r, now, &ev);
	case 6:
	case 7:
		ev.kind = SLU_EV_NODE_UP;
		return rig_apply(r, now, &ev);
	case 8:
		ev.kind = SLU_EV_FOREIGN_ADD;
		ev.foreign = ++*foreign;
		ev.amount = &one;
		ev.n_amount = 1;
		ev.until_s = SLU_TIME_EVER;
		/* Others take only what is free: overbooking by them is theirs to answer for. */
		return slu_machine_node_free_during(m, ev.node, r->cpu, now, SLU_FOREVER) > 0
			       ? rig_apply(r, now, &ev)
			       : 0;
	case 9: {
		ev.kind = SLU_EV_FOREIGN_REMOVE;
		ev.foreign = 1 + slu_rng_below(g, *foreign + 1);
		int rc = rig_apply(r, now, &ev);

		return rc == -ENOENT ? 0 : rc;
	}
	case 10:
		ev.kind = SLU_EV_SPAN_ADD;
		ev.span = &span;
		return rig_apply(r, now, &ev) == -ENOMEM ? -ENOMEM : 0;
	case 11:
		ev.kind = SLU_EV_SPAN_REMOVE;
		ev.span = &span;
		return rig_apply(r, now, &ev) == -ENOMEM ? -ENOMEM : 0;
	case 12:
		ev.kind = SLU_EV_RESIZE;
		ev.size = 1 + (int64_t)slu_rng_below(g, 4);
		break;
	case 13:
		ev.kind = SLU_EV_TAKE_BACK;
		if (!known || v.state != SLU_JOB_RUNNING)
			return 0;
		if (slu_rng_below(g, 2)) {
			ev.part = &avoid;
			ev.n_part = 1;
			ev.until_s = now + 1 + (int64_t)slu_rng_below(g, 9);
		}
		break;
	case 20: /* seldom: most of what runs has lost something then */
		ev.kind = SLU_EV_NODE_REMOVE;
		return slu_rng_below(g, 4) ? 0 : rig_apply(r, now, &ev);
	case 21: /* a node is back with a slot of what runs */
		ev.kind = SLU_EV_REGAIN;
		ev.part = &avoid;
		ev.n_part = 1;
		if (!known || v.state != SLU_JOB_RUNNING ||
		    slu_machine_node_free_during(m, ev.node, r->cpu, now, SLU_FOREVER) < 1)
			return 0;
		break;
	case 14:
	case 15:
	case 16:
		ev.kind = SLU_EV_END;
		if (!known || v.state != SLU_JOB_RUNNING)
			return 0;
		break;
	default: {
		uint32_t slots = 1 + (uint32_t)slu_rng_below(g, 6);
		struct slu_dep dep = { (enum slu_dep_kind)slu_rng_below(g, 4), some };

		++*next;
		return rig_submit(r, now, *next, slots,
				  slu_rng_below(g, 4) ? 0 : slots + (uint32_t)slu_rng_below(g, 4),
				  1 + (int64_t)slu_rng_below(g, 25), (int64_t)slu_rng_below(g, 3),
				  slu_rng_below(g, 6) ? NULL : &dep);
	}
	}
	if (known && getenv("PROP_TRACE"))
		printf("# %d: event %d job %d limit %d\n", (int)now, (int)ev.kind, (int)some,
		       (int)v.limit_s);
	return known ? rig_apply(r, now, &ev) : 0;
}

/* Settings of one of two queues, as an operator might change them while work waits. */
static int settings(struct rig *r, struct slu_rng *g, int64_t now)
{
	struct slu_queue_conf c = r->conf;
	struct slu_event ev = { .kind = SLU_EV_QUEUE_SET, .conf = &c };

	c.name = slu_rng_below(g, 2) ? "p" : "q";
	c.policy = (enum slu_policy)slu_rng_below(g, 5);
	c.backfill = (enum slu_backfill)slu_rng_below(g, 3);
	c.priority = (int32_t)slu_rng_below(g, 3);
	c.queue_depth = slu_rng_below(g, 2) ? 0 : 1 + (uint32_t)slu_rng_below(g, 4);
	c.limit.max_running = slu_rng_below(g, 3) ? 0 : 1 + (uint32_t)slu_rng_below(g, 4);
	c.limit.max_running_user = slu_rng_below(g, 2) ? 0 : 1 + (uint32_t)slu_rng_below(g, 3);
	c.limit.max_waiting = slu_rng_below(g, 3) ? 0 : 1 + (uint32_t)slu_rng_below(g, 6);
	c.limit.max_waiting_user = slu_rng_below(g, 3) ? 0 : 1 + (uint32_t)slu_rng_below(g, 3);
	c.stopped = !slu_rng_below(g, 6);
	return rig_apply(r, now, &ev);
}

static void everything(uint64_t seed, int round)
{
	struct slu_rng g = { slu_hash_u64(~(seed + (uint64_t)round)) };
	enum slu_policy policy = (enum slu_policy)(round % 6);
	enum slu_backfill other = policy == SLU_POLICY_SELECTIVE ? SLU_BACKFILL_BALANCED
								 : SLU_BACKFILL_SUBMISSION;
	int nodes = 1 + (int)slu_rng_below(&g, 5);
	slu_job_id next = 1;
	uint64_t foreign = 0;
	int64_t now = 0;
	struct rig r;

	stretch = 1 + (uint32_t)slu_rng_below(&g, 3);
	int rc = rig_new(&r, nodes, 1 + (int64_t)slu_rng_below(&g, 4), policy,
			 slu_rng_below(&g, 2) ? SLU_BACKFILL_SHORTEST : other, false, true);
	int steps = 0;

	r.crowd = round % 4 == 3;
	if (r.crowd && !rc) {
		struct slu_queue_conf second = { .name = "p", .policy = policy };

		rc = rig_apply(&r, 0,
			       &(struct slu_event){ .kind = SLU_EV_QUEUE_SET, .conf = &second });
	}
	for (; steps < 150 && !rc; steps++) {
		if (r.crowd && !slu_rng_below(&g, 20))
			rc = settings(&r, &g, now);
		for (uint64_t n = 1 + slu_rng_below(&g, 3); n && !rc; n--)
			rc = random_event(&r, &g, now, &next, &foreign, nodes);
		if (!rc)
			rc = rig_pass(&r, now);
		/* Half-way a copy takes over: it must be as good as the original. */
		if (!rc && steps == 75) {
			struct slu_queue *c = slu_queue_clone(r.q);

			slu_queue_free(r.q);
			r.q = c;
		}
		if (!rc && (steps == 40 || steps == 110))
			rc = twin_from_picture(&r, &g);
		/* Woken in time in two rounds of three. */
		int64_t then = now + (int64_t)slu_rng_below(&g, 4);

		for (int64_t wake; round % 3 && !rc && (wake = slu_queue_wake_s(r.q)) <= then;
		     rc = rig_pass(&r, now))
			now = SLU_MAX(now, wake);
		now = then;
	}
	ok(!rc, "seed %llu: %s survives everything, step %d (%s)",
	   (unsigned long long)seed + (unsigned)round, slu_policy_name(policy), steps, r.err.text);
	rig_done(&r);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 60;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	for (int i = 0; i < rounds; i++)
		against_dull(seed, i);
	ok(excused * 100 <= rounds, "%d of %d differ by ties", excused, rounds);
	for (int i = 0; i < rounds * 2; i++)
		everything(seed, i);
	return tap_done();
}
