/* The virtual clock. */
#include "sim/world_internal.h"

#include "base/clock.h"
#include "base/rng.h"

#include <math.h>

void slu_sim_done(struct slu_sim *s)
{
	slu_vec_done(&s->job);
	slu_vec_done(&s->part);
	slu_vec_done(&s->user);
	memset(s, 0, sizeof *s);
}

/* ---- ends: a heap by time, then by place in the trace ---- */

static bool end_before(const struct end *a, const struct end *b)
{
	return a->at_s != b->at_s ? a->at_s < b->at_s : a->job < b->job;
}

static int end_push(struct world *w, int64_t at_s, uint32_t job)
{
	struct end e = { .at_s = at_s, .job = job, .gen = ++w->gen[job] };

	if (slu_vec_push(&w->end, e) < 0)
		return -ENOMEM;
	for (uint32_t i = w->end.n - 1; i > 0;) {
		uint32_t up = (i - 1) / 2;

		if (!end_before(&w->end.p[i], &w->end.p[up]))
			break;
		struct end tmp = w->end.p[i];

		w->end.p[i] = w->end.p[up];
		w->end.p[up] = tmp;
		i = up;
	}
	return 0;
}

static void end_pop(struct world *w)
{
	struct end *h = w->end.p;
	uint32_t n = --w->end.n;

	h[0] = h[n];
	for (uint32_t i = 0;;) {
		uint32_t c = 2 * i + 1;

		if (c >= n)
			return;
		if (c + 1 < n && end_before(&h[c + 1], &h[c]))
			c++;
		if (!end_before(&h[c], &h[i]))
			return;
		struct end tmp = h[i];

		h[i] = h[c];
		h[c] = tmp;
		i = c;
	}
}

/* Next end that still counts, or NULL. */
static const struct end *end_next(struct world *w)
{
	while (w->end.n && w->end.p[0].gen != w->gen[w->end.p[0].job])
		end_pop(w);
	return w->end.n ? &w->end.p[0] : NULL;
}

/* ---- carrying out decisions ---- */

static int64_t work_end(const struct world *w, uint32_t j)
{
	int64_t slots = SLU_MAX(w->s->job.p[j].slots, 1u);

	return w->since[j] + (w->left[j] + slots - 1) / slots;
}

static int on_start(struct world *w, const struct slu_decision *d)
{
	uint32_t j = (uint32_t)d->job - 1;
	struct slu_sim_job *r = &w->s->job.p[j];

	r->start_s = d->start_s;
	r->how = (uint8_t)d->how;
	r->fate = SLU_SIM_RUNNING;
	r->slots = (uint32_t)d->size;
	w->left[j] = w->t->job.p[j].run_s * slu_trace_slots(w->t, w->t->job.p[j].req);
	w->since[j] = d->start_s;
	if (w->o->keep_parts) {
		r->part = w->s->part.n;
		r->n_part = d->n_part;
		for (uint32_t i = 0; i < d->n_part; i++) {
			const struct slu_gang_part *p = &w->out.part.p[d->part + i];
			struct slu_sim_part own = { slu_node_index(p->node), p->slots };

			if (slu_vec_push(&w->s->part, own) < 0)
				return -ENOMEM;
		}
	}
	return end_push(w, work_end(w, j), j);
}

static int on_resized(struct world *w, const struct slu_decision *d, struct slu_error *err)
{
	uint32_t j = (uint32_t)d->job - 1;
	struct slu_sim_job *r = &w->s->job.p[j];

	w->left[j] -= (w->now_s - w->since[j]) * r->slots;
	w->since[j] = w->now_s;
	r->slots += (uint32_t)d->size;
	if (d->size < 0) {
		struct slu_event ev = { .kind = SLU_EV_END_SLOTS,
					.job = d->job,
					.part = w->out.part.p + d->part,
					.n_part = d->n_part };
		struct slu_decisions none = { 0 };
		int rc = slu_queue_apply(w->q, w->now_s, &ev, &none, err);

		slu_decisions_done(&none);
		if (rc < 0)
			return rc;
	}
	return end_push(w, work_end(w, j), j);
}

static int play_trace(struct world *w, struct slu_error *err)
{
	int rc = w->verify ? sim_verify_step(w->verify, w, err) : 0;

	for (uint32_t i = 0; i < w->out.v.n && !rc; i++) {
		const struct slu_decision *d = &w->out.v.p[i];
		struct slu_sim_job *r = d->job && d->job <= w->s->job.n ? &w->s->job.p[d->job - 1]
									: NULL;

		switch (d->kind) {
		case SLU_DEC_START:
			rc = on_start(w, d);
			break;
		case SLU_DEC_PLAN:
			if (d->start_s == SLU_TIME_NONE)
				break;
			if (r->promised_s == SLU_TIME_NONE)
				r->promised_s = d->start_s;
			else
				w->s->metrics.plan_changes++;
			break;
		case SLU_DEC_RESIZED:
			rc = on_resized(w, d, err);
			break;
		case SLU_DEC_LOST:
			rc = slu_vec_push(&w->killed, (uint32_t)d->job - 1);
			break;
		case SLU_DEC_REFUSED:
			if (r->fate != SLU_SIM_RUNNING)
				r->fate = SLU_SIM_REFUSED;
			break;
		case SLU_DEC_NEVER:
		case SLU_DEC_EXPIRED:
			r->fate = SLU_SIM_REFUSED;
			break;
		default:
			break;
		}
	}
	slu_decisions_clear(&w->out);
	return rc;
}

/* Apply one event and run one pass; jobs that the event killed go back in line and are looked at again. */
static int step_queue(struct world *w, const struct slu_event *ev, struct slu_error *err)
{
	int rc = ev ? slu_queue_apply(w->q, w->now_s, ev, &w->out, err) : 0;

	w->s->metrics.steps++;
	if (!rc)
		rc = slu_queue_schedule(w->q, w->now_s, &w->out, err);
	if (!rc)
		rc = play_trace(w, err);
	for (bool again = w->killed.n > 0; again && !rc; again = w->killed.n > 0) {
		for (uint32_t i = 0; i < w->killed.n && !rc; i++) {
			uint32_t j = w->killed.p[i];
			struct slu_sim_job *r = &w->s->job.p[j];
			struct slu_event back = { .kind = SLU_EV_TAKE_BACK, .job = j + 1 };

			if (r->fate != SLU_SIM_RUNNING)
				continue;
			r->fate = SLU_SIM_WAITING;
			r->restarts++;
			r->promised_s = SLU_TIME_NONE;
			w->gen[j]++;
			if (w->verify)
				sim_verify_end(w->verify, w, j);
			rc = slu_queue_apply(w->q, w->now_s, &back, &w->out, err);
			if (w->verify && !rc)
				rc = sim_verify_submit(w->verify, w, j);
		}
		w->killed.n = 0;
		if (!rc)
			rc = slu_queue_schedule(w->q, w->now_s, &w->out, err);
		if (!rc)
			rc = play_trace(w, err);
	}
	return rc;
}

/* ---- events of the trace ---- */

static int64_t estimate(const struct world *w, uint32_t j)
{
	const struct slu_trace_job *t = &w->t->job.p[j];

	if (w->o->estimates == SLU_ESTIMATES_USER)
		return t->limit_s;
	if (w->o->estimates == SLU_ESTIMATES_PERFECT)
		return t->run_s;
	struct slu_rng r = { slu_hash_u64(w->o->seed * 0x9e3779b97f4a7c15ull + t->id) };
	double f = 1 + slu_rng_unit(&r) * (w->o->factor - 1);

	return SLU_MIN((int64_t)ceil((double)t->run_s * f), SLU_LIMIT_MAX);
}

static int submit(struct world *w, uint32_t j, struct slu_error *err)
{
	const struct slu_trace_job *t = &w->t->job.p[j];
	const struct slu_trace_extra *x = t->extra ? &w->t->extra.p[t->extra - 1] : NULL;
	struct slu_sim_job *r = &w->s->job.p[j];
	struct slu_dep dep[64];
	char name[32] = "";
	struct slu_job_spec spec = {
		.id = j + 1,
		.name = t->name == SLU_INTERN_NONE ? name : slu_intern_str(&w->t->str, t->name),
		.user = t->user == SLU_INTERN_NONE ? "" : slu_intern_str(&w->t->str, t->user),
		.queue = t->queue == SLU_INTERN_NONE ? NULL : slu_intern_str(&w->t->str, t->queue),
		.priority = t->priority,
		.first_seen_us = w->now_s * 1000000,
		.limit_s = r->limit_s,
		.begin_s = x ? x->begin_s : SLU_TIME_NONE,
		.deadline_s = x ? x->deadline_s : SLU_TIME_NONE,
		.reservation = x && x->reservation != SLU_INTERN_NONE
				       ? slu_intern_str(&w->t->str, x->reservation)
				       : NULL,
		.held = x && x->held,
		.grow = x && x->grow,
		.dep = dep,
		.req = &w->req.p[t->req],
	};
	struct slu_event ev = { .kind = SLU_EV_SUBMIT, .spec = &spec };

	for (uint32_t i = 0; x && i < x->ndep && i < SLU_LEN(dep); i++) {
		const struct slu_trace_dep *d = &w->t->dep.p[x->dep + i];

		dep[spec.ndep++] = (struct slu_dep){ (enum slu_dep_kind)d->kind, d->job };
	}
	r->fate = SLU_SIM_WAITING;
	if (w->verify && sim_verify_submit(w->verify, w, j) < 0)
		return -ENOMEM;
	return step_queue(w, &ev, err);
}

static int finish_job(struct world *w, uint32_t j, struct slu_error *err)
{
	struct slu_sim_job *r = &w->s->job.p[j];
	struct slu_event ev = { .kind = SLU_EV_END,
				.job = j + 1,
				.result = w->t->job.p[j].fails ? SLU_RESULT_FAILED
							       : SLU_RESULT_OK };

	r->end_s = w->now_s;
	r->fate = SLU_SIM_ENDED;
	w->gen[j]++;
	if (w->verify)
		sim_verify_end(w->verify, w, j);
	w->ended++;
	if (w->o->progress && w->ended % 1024 == 0)
		w->o->progress(w->ended, w->t->job.n, w->o->progress_arg);
	return step_queue(w, &ev, err);
}

static int span_event(struct world *w, const struct slu_trace_event *e, struct slu_error *err)
{
	const struct slu_trace_span *ts = &w->t->span.p[e->span];
	const char **name = slu_reallocarray(NULL, ts->nnode + ts->nuser + 1, sizeof *name);
	struct slu_amount amount[3];
	struct slu_span span = { .kind = ts->drain ? SLU_SPAN_DRAIN : SLU_SPAN_RESERVATION,
				 .name = slu_intern_str(&w->t->str, ts->name),
				 .from_s = ts->from_s,
				 .to_s = ts->to_s == INT64_MAX ? SLU_TIME_EVER : ts->to_s,
				 .nnode = ts->nnode,
				 .count = ts->count,
				 .nuser = ts->nuser };
	struct slu_event ev = { .kind = e->kind == SLU_TRACE_SPAN ? SLU_EV_SPAN_ADD
								  : SLU_EV_SPAN_REMOVE,
				.span = &span };

	if (!name)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < ts->nnode; i++)
		name[i] = slu_intern_str(&w->t->str, w->t->span_node.p[ts->node + i]);
	for (uint32_t i = 0; i < ts->nuser; i++)
		name[ts->nnode + i] = slu_intern_str(&w->t->str, w->t->span_user.p[ts->user + i]);
	if (ts->millicores)
		amount[span.n_amount++] = (struct slu_amount){ (uint32_t)w->resource_cpu,
							       ts->millicores };
	if (ts->memory)
		amount[span.n_amount++] = (struct slu_amount){ (uint32_t)w->resource_mem,
							       ts->memory };
	if (ts->gpus)
		amount[span.n_amount++] = (struct slu_amount){ (uint32_t)w->resource_gpu,
							       ts->gpus };
	span.amount = amount;
	span.node = name;
	span.user = name + ts->nnode;
	int rc = step_queue(w, &ev, err);

	slu_free(name);
	return rc;
}

static int trace_event(struct world *w, const struct slu_trace_event *e, struct slu_error *err)
{
	static const enum slu_event_kind kind[] = {
		[SLU_TRACE_DOWN] = SLU_EV_NODE_DOWN,  [SLU_TRACE_UP] = SLU_EV_NODE_UP,
		[SLU_TRACE_CANCEL] = SLU_EV_CANCEL,   [SLU_TRACE_HOLD] = SLU_EV_HOLD,
		[SLU_TRACE_RELEASE] = SLU_EV_RELEASE, [SLU_TRACE_PRIORITY] = SLU_EV_PRIORITY,
		[SLU_TRACE_RESIZE] = SLU_EV_RESIZE,
	};
	struct slu_job_view v;

	if (e->kind == SLU_TRACE_SPAN || e->kind == SLU_TRACE_UNSPAN)
		return span_event(w, e, err);
	struct slu_event ev = {
		.kind = kind[e->kind], .job = e->job, .priority = e->value, .size = e->value
	};

	if (e->kind == SLU_TRACE_DOWN || e->kind == SLU_TRACE_UP) {
		ev.node = slu_machine_node_find(
			slu_queue_machine(w->q),
			slu_intern_str(&w->t->str, w->t->node.p[e->node].name));
		return step_queue(w, &ev, err);
	}
	/* A request about a job that is not submitted yet or has ended comes too late, as in life. */
	if (slu_queue_job(w->q, e->job, &v) < 0)
		return 0;
	if (e->kind == SLU_TRACE_CANCEL || (e->kind == SLU_TRACE_RESIZE && !e->value)) {
		struct slu_sim_job *r = &w->s->job.p[e->job - 1];

		if (w->verify)
			sim_verify_end(w->verify, w, (uint32_t)e->job - 1);
		r->fate = SLU_SIM_CANCELLED;
		r->end_s = w->now_s;
		w->gen[e->job - 1]++;
	}
	return step_queue(w, &ev, err);
}

/* ---- the run ---- */

static int prepare_world(struct world *w)
{
	uint32_t n = w->t->job.n;
	double scale = w->o->scale > 0 ? w->o->scale : 1;

	w->gen = slu_calloc(SLU_MAX(n, 1u), sizeof *w->gen);
	w->left = slu_calloc(SLU_MAX(n, 1u), sizeof *w->left);
	w->since = slu_calloc(SLU_MAX(n, 1u), sizeof *w->since);
	if (!w->gen || !w->left || !w->since || slu_vec_reserve(&w->s->job, n) < 0)
		return -ENOMEM;
	int64_t first = n ? w->t->job.p[0].submit_s : 0;

	w->s->first_s = first;
	for (uint32_t j = 0; j < n; j++) {
		struct slu_sim_job r = { .start_s = SLU_TIME_NONE,
					 .end_s = SLU_TIME_NONE,
					 .promised_s = SLU_TIME_NONE };
		int64_t since = w->t->job.p[j].submit_s - first;

		r.submit_s = first + (scale == 1 ? since : (int64_t)floor((double)since / scale));
		r.limit_s = estimate(w, j);
		w->s->job.p[w->s->job.n++] = r;
	}
	return 0;
}

static int clock_run(struct world *w, struct slu_error *err)
{
	const struct slu_trace *t = w->t;
	uint32_t next = 0, ev = 0;
	int64_t stop = w->o->until_s > 0 ? w->s->first_s + w->o->until_s : INT64_MAX;
	int rc = 0;

	while (!rc) {
		const struct end *e = end_next(w);
		int64_t at_end = e ? e->at_s : INT64_MAX;
		int64_t at_ev = ev < t->event.n ? t->event.p[ev].at_s : INT64_MAX;
		int64_t at_sub = next < t->job.n ? w->s->job.p[next].submit_s : INT64_MAX;
		int64_t at_wake = slu_queue_wake_s(w->q);
		bool work = e || next < t->job.n || ev < t->event.n;

		/* With no job running and nothing left in the trace, only a timer can still start
		 * something. */
		int64_t at = SLU_MIN(at_end, at_ev);

		at = SLU_MIN(at, at_sub);
		at = SLU_MIN(at, at_wake);

		if (at == INT64_MAX || at > stop || (!work && !w->s->job.n))
			break;
		w->now_s = SLU_MAX(w->now_s, at);
		if (at_end == at)
			rc = finish_job(w, e->job, err);
		else if (at_ev == at)
			rc = trace_event(w, &t->event.p[ev++], err);
		else if (at_sub == at)
			rc = submit(w, next++, err);
		else
			rc = step_queue(w, NULL, err);
	}
	return rc;
}

/* The CPU time of this thread: other work on the machine does not count. */
static double seconds_now(void)
{
	return (double)slu_clock_cpu_ns() * 1e-9;
}

int slu_sim_run(const struct slu_trace *t, const struct slu_sim_opts *o, struct slu_sim *out,
		struct slu_error *err)
{
	struct world w = { .t = t, .o = o, .s = out };
	double began = seconds_now();

	memset(out, 0, sizeof *out);
	w.now_s = t->job.n ? t->job.p[0].submit_s : 0;
	if (t->event.n)
		w.now_s = SLU_MIN(w.now_s, t->event.p[0].at_s);
	int rc = sim_world_build(&w, err);

	if (!rc)
		rc = prepare_world(&w);
	if (!rc && o->verify)
		rc = sim_verify_new(&w, &w.verify);
	if (!rc)
		rc = clock_run(&w, err);
	if (!rc && o->verify)
		rc = slu_queue_check(w.q, w.now_s, err);
	if (!rc && o->look)
		rc = o->look(w.q, o->until_s > 0 ? out->first_s + o->until_s : w.now_s, o->look_arg,
			     err);
	if (!rc)
		rc = slu_sim_measure(t, out);
	if (rc == -ENOMEM)
		slu_fail(err, rc, "out of memory");
	out->metrics.seconds = seconds_now() - began;
	sim_world_done(&w);
	if (rc < 0)
		slu_sim_done(out);
	return rc;
}
