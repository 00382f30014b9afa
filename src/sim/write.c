#include "sim/write.h"

#include "wire/jsonw.h"

static int written_whole(FILE *f, struct slu_error *err)
{
	if (fflush(f) || ferror(f))
		return slu_fail(err, -EIO, "cannot write: %s", strerror(errno));
	return 0;
}

int slu_trace_write_swf(const struct slu_trace *t, const char *note, FILE *f, struct slu_error *err)
{
	if (t->event.n || t->extra.n || t->queue.n)
		return slu_fail(
			err, -ENOTSUP,
			"SWF cannot express failures, drains or dependencies; use --format jsonl");
	for (uint32_t i = 0; i < t->req.n; i++) {
		const struct slu_trace_role *r = &t->role.p[t->req.p[i].role];

		if (t->req.p[i].nrole != 1 || t->req.p[i].within != SLU_INTERN_NONE ||
		    r->max_slots != r->slots || r->millicores != 1000 || r->memory || r->gpus)
			return slu_fail(err, -ENOTSUP,
					"SWF cannot express gangs, closeness or elastic sizes; use "
					"--format jsonl");
	}
	fprintf(f,
		"; Version: 2.2\n; Computer: synthetic\n; MaxJobs: %u\n; MaxProcs: %" PRId64
		"\n; Note: %s\n",
		t->job.n, t->machine_procs, note);
	for (uint32_t j = 0; j < t->job.n; j++) {
		const struct slu_trace_job *b = &t->job.p[j];
		const char *user = b->user == SLU_INTERN_NONE ? ""
							      : slu_intern_str(&t->str, b->user);
		int64_t n = slu_trace_slots(t, b->req);

		fprintf(f,
			"%" PRIu64 " %" PRId64 " -1 %" PRId64 " %" PRId64 " -1 -1 %" PRId64
			" %" PRId64 " -1 %d %s -1 -1 -1 -1 -1 -1\n",
			b->id, b->submit_s, b->run_s, n, n, b->limit_s, b->fails ? 0 : 1,
			user[0] == 'u' && user[1] ? user + 1 : "-1");
	}
	return written_whole(f, err);
}

static void put_cores(struct slu_jsonw *w, int64_t millicores)
{
	char text[32];

	slu_jsonw_key(w, "cores");
	snprintf(text, sizeof text, "%" PRId64 "m", millicores);
	if (millicores % 1000)
		slu_jsonw_str(w, text);
	else
		slu_jsonw_i64(w, millicores / 1000);
}

static void put_role(struct slu_jsonw *w, const struct slu_trace *t, const struct slu_trace_role *r)
{
	slu_jsonw_ki64(w, "slots", r->slots);
	if (r->max_slots != r->slots)
		slu_jsonw_ki64(w, "max_slots", r->max_slots);
	put_cores(w, r->millicores);
	if (r->memory)
		slu_jsonw_ki64(w, "memory", r->memory);
	if (r->gpus)
		slu_jsonw_ki64(w, "gpus", r->gpus);
	if (r->property != SLU_INTERN_NONE)
		slu_jsonw_kstr(w, "property", slu_intern_str(&t->str, r->property));
	if (r->spread)
		slu_jsonw_kbool(w, "spread", true);
}

static void put_text(struct slu_jsonw *w, const struct slu_trace *t, const char *key, uint32_t id)
{
	if (id != SLU_INTERN_NONE)
		slu_jsonw_kstr(w, key, slu_intern_str(&t->str, id));
}

static void put_deps(struct slu_jsonw *w, const struct slu_trace *t,
		     const struct slu_trace_extra *x)
{
	static const char *const key[] = { "after", "after_ok", "after_notok", "after_start" };

	for (uint32_t k = 0; k < 4; k++) {
		bool any = false;

		for (uint32_t i = 0; i < x->ndep; i++) {
			const struct slu_trace_dep *d = &t->dep.p[x->dep + i];

			if (d->kind != k)
				continue;
			if (!any) {
				slu_jsonw_key(w, key[k]);
				slu_jsonw_arr(w);
			}
			any = true;
			slu_jsonw_u64(w, t->job.p[d->job - 1].id);
		}
		if (any)
			slu_jsonw_end_arr(w);
	}
}

static void put_extra(struct slu_jsonw *w, const struct slu_trace *t,
		      const struct slu_trace_extra *x)
{
	if (x->begin_s != INT64_MIN)
		slu_jsonw_ki64(w, "begin", x->begin_s);
	if (x->deadline_s != INT64_MIN)
		slu_jsonw_ki64(w, "deadline", x->deadline_s);
	put_text(w, t, "reservation", x->reservation);
	if (x->held)
		slu_jsonw_kbool(w, "held", true);
	if (x->grow)
		slu_jsonw_kbool(w, "grow", true);
	put_deps(w, t, x);
}

static void put_job(struct slu_jsonw *w, const struct slu_trace *t, const struct slu_trace_job *j)
{
	const struct slu_trace_req *q = &t->req.p[j->req];

	slu_jsonw_kstr(w, "kind", "job");
	slu_jsonw_ki64(w, "id", (int64_t)j->id);
	put_text(w, t, "name", j->name);
	put_text(w, t, "user", j->user);
	put_text(w, t, "queue", j->queue);
	slu_jsonw_ki64(w, "submit", j->submit_s);
	slu_jsonw_ki64(w, "run", j->run_s);
	slu_jsonw_ki64(w, "limit", j->limit_s);
	if (j->priority)
		slu_jsonw_ki64(w, "priority", j->priority);
	if (q->nrole == 1) {
		put_role(w, t, &t->role.p[q->role]);
	} else {
		slu_jsonw_key(w, "roles");
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < q->nrole; i++) {
			slu_jsonw_obj(w);
			put_role(w, t, &t->role.p[q->role + i]);
			slu_jsonw_end_obj(w);
		}
		slu_jsonw_end_arr(w);
	}
	put_text(w, t, "within", q->within);
	if (q->prefer)
		slu_jsonw_kbool(w, "prefer", true);
	if (q->exclusive)
		slu_jsonw_kbool(w, "exclusive", true);
	if (j->fails)
		slu_jsonw_kbool(w, "fails", true);
	if (j->extra)
		put_extra(w, t, &t->extra.p[j->extra - 1]);
}

static void put_node(struct slu_jsonw *w, const struct slu_trace *t, const struct slu_trace_node *n)
{
	slu_jsonw_kstr(w, "kind", "node");
	put_text(w, t, "name", n->name);
	put_cores(w, n->millicores);
	if (n->memory)
		slu_jsonw_ki64(w, "memory", n->memory);
	if (n->gpus)
		slu_jsonw_ki64(w, "gpus", n->gpus);
	put_text(w, t, "rack", n->rack);
	put_text(w, t, "block", n->block);
	put_text(w, t, "zone", n->zone);
	if (n->nprop) {
		slu_jsonw_key(w, "properties");
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < n->nprop; i++)
			slu_jsonw_str(w, slu_intern_str(&t->str, t->prop.p[n->prop + i]));
		slu_jsonw_end_arr(w);
	}
}

static void put_names(struct slu_jsonw *w, const struct slu_trace *t, const char *key,
		      const uint32_t *id, uint32_t n)
{
	if (!n)
		return;
	slu_jsonw_key(w, key);
	slu_jsonw_arr(w);
	for (uint32_t i = 0; i < n; i++)
		slu_jsonw_str(w, slu_intern_str(&t->str, id[i]));
	slu_jsonw_end_arr(w);
}

static void put_event(struct slu_jsonw *w, const struct slu_trace *t,
		      const struct slu_trace_event *e)
{
	static const char *const kind[] = { "down",    "up",       "cancel", "hold",
					    "release", "priority", "resize" };

	if (e->kind == SLU_TRACE_SPAN || e->kind == SLU_TRACE_UNSPAN) {
		const struct slu_trace_span *s = &t->span.p[e->span];
		bool lift = e->kind == SLU_TRACE_UNSPAN;

		slu_jsonw_kstr(w, "kind", lift ? "lift" : s->drain ? "drain" : "reserve");
		slu_jsonw_ki64(w, "at", e->at_s);
		put_text(w, t, "name", s->name);
		if (lift)
			return;
		slu_jsonw_ki64(w, "from", s->from_s);
		if (s->to_s != INT64_MAX)
			slu_jsonw_ki64(w, "to", s->to_s);
		if (s->count)
			slu_jsonw_ki64(w, "count", s->count);
		if (s->millicores)
			put_cores(w, s->millicores);
		if (s->memory)
			slu_jsonw_ki64(w, "memory", s->memory);
		if (s->gpus)
			slu_jsonw_ki64(w, "gpus", s->gpus);
		put_names(w, t, "nodes", t->span_node.p + s->node, s->nnode);
		put_names(w, t, "users", t->span_user.p + s->user, s->nuser);
		return;
	}
	slu_jsonw_kstr(w, "kind", kind[e->kind]);
	slu_jsonw_ki64(w, "at", e->at_s);
	if (e->kind == SLU_TRACE_DOWN || e->kind == SLU_TRACE_UP)
		put_text(w, t, "node", t->node.p[e->node].name);
	else
		slu_jsonw_ki64(w, "job", (int64_t)t->job.p[e->job - 1].id);
	if (e->kind == SLU_TRACE_PRIORITY || e->kind == SLU_TRACE_RESIZE)
		slu_jsonw_ki64(w, "value", e->value);
}

static void put_queue(struct slu_jsonw *w, const struct slu_trace *t,
		      const struct slu_trace_queue *q)
{
	const struct {
		const char *key;
		int64_t v;
	} number[] = {
		{ "priority", q->priority },
		{ "queue_depth", q->queue_depth },
		{ "reservation_depth", q->reservation_depth },
		{ "default_duration", q->default_s },
		{ "max_duration", q->max_s },
		{ "max_slots", q->max_slots },
		{ "max_running", q->max_running },
		{ "max_waiting", q->max_waiting },
		{ "max_running_user", q->max_running_user },
		{ "max_waiting_user", q->max_waiting_user },
	};

	slu_jsonw_kstr(w, "kind", "queue");
	put_text(w, t, "name", q->name);
	put_text(w, t, "policy", q->policy);
	put_text(w, t, "backfill", q->backfill);
	put_text(w, t, "property", q->property);
	for (size_t i = 0; i < SLU_LEN(number); i++)
		if (number[i].v)
			slu_jsonw_ki64(w, number[i].key, number[i].v);
}

int slu_trace_write_jsonl(const struct slu_trace *t, const char *note, FILE *f,
			  struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(SLU_TRACE_MAX_LINE * 4);

	fprintf(f, "# %s\n", note);
#define LINES(list, put)                                               \
	for (uint32_t i = 0; i < t->list.n && !b.error; i++) {         \
		struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT); \
		slu_jsonw_obj(&w);                                     \
		put(&w, t, &t->list.p[i]);                             \
		slu_jsonw_end_obj(&w);                                 \
		fprintf(f, "%s\n", slu_buf_str(&b));                   \
		slu_buf_reset(&b);                                     \
	}
	LINES(node, put_node)
	LINES(queue, put_queue)
	LINES(job, put_job)
	LINES(event, put_event)
#undef LINES
	int rc = b.error;

	slu_buf_done(&b);
	return rc ? slu_fail(err, rc, "cannot write: out of memory") : written_whole(f, err);
}
