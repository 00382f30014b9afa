#include "sim/jsonl.h"

#include "base/qty.h"
#include "wire/json.h"

#include <stdio.h>

#define NO_TIME INT64_MIN

/* One line being read: the object, where it is, and what went wrong first. */
struct rd {
	struct slu_jsonl *r;
	const struct slu_json *o;
	struct slu_error *err;
	int rc;
};

static int bad_line(struct rd *d, int rc, const char *key, const char *what)
{
	if (!d->rc)
		d->rc = slu_fail(d->err, rc, "line %" PRIu64 ": \"%s\": %s", d->r->line, key, what);
	return d->rc;
}

/* Whole number in [lo, hi], or `otherwise` when the key is absent. */
static int64_t read_number(struct rd *d, const struct slu_json *o, const char *key, int64_t lo,
			   int64_t hi, int64_t otherwise)
{
	const struct slu_json *v = slu_json_get(o, key);
	int64_t x;

	if (!v)
		return otherwise;
	if (slu_json_i64(v, &x) < 0 || x < lo || x > hi) {
		bad_line(d, -EINVAL, key, "not a whole number in its range");
		return otherwise;
	}
	return x;
}

static bool flag(struct rd *d, const struct slu_json *o, const char *key)
{
	const struct slu_json *v = slu_json_get(o, key);
	bool x = false;

	if (v && slu_json_bool(v, &x) < 0)
		bad_line(d, -EINVAL, key, "not true or false");
	return x;
}

static uint32_t text(struct rd *d, const struct slu_json *o, const char *key)
{
	const struct slu_json *v = slu_json_get(o, key);
	const char *s = slu_json_str(v);

	if (!v)
		return SLU_INTERN_NONE;
	if (!s || !*s || slu_json_count(v) > 1024) {
		bad_line(d, -EINVAL, key, "not a text of 1 to 1024 bytes");
		return SLU_INTERN_NONE;
	}
	uint32_t id = slu_intern(&d->r->trace->str, s);

	if (id == SLU_INTERN_NONE)
		bad_line(d, -ENOMEM, key, "out of memory");
	return id;
}

static int64_t amount(struct rd *d, const struct slu_json *o, const char *key,
		      enum slu_qty_scale scale, int64_t otherwise)
{
	const struct slu_json *v = slu_json_get(o, key);
	int64_t x = 0;

	if (!v)
		return otherwise;
	if (slu_json_is_str(v)) {
		if (slu_qty_parse(slu_json_str(v), slu_json_count(v), scale, &x, NULL) < 0)
			x = -1;
	} else if (slu_json_i64(v, &x) < 0 || x > INT64_C(1) << 50) {
		x = -1;
	} else if (scale == SLU_QTY_MILLI) {
		x *= 1000;
	}
	if (x < 0 || x > INT64_C(1) << 50) {
		bad_line(d, -EINVAL, key, "not an amount");
		return otherwise;
	}
	return x;
}

/* Only these keys; the list is one string, each key between blanks. */
static void only_keys(struct rd *d, const struct slu_json *o, const char *keys)
{
	slu_json_each (o, it) {
		const char *p = keys + 1; /* a blank before and after each key */
		size_t n = strlen(it.key);
		bool known = n && !strchr(it.key, ' ');

		while (known && (p = strstr(p, it.key)) && !(p[-1] == ' ' && p[n] == ' '))
			p++;
		if (!known || !p) {
			bad_line(d, -EINVAL, n && n < 64 ? it.key : "?", "unknown key");
			return;
		}
	}
}

/* Interned texts of an array, appended to a list of the trace; returns how many. */
#define TEXTS(d, o, key, list)                                                         \
	({                                                                             \
		const struct slu_json *v_ = slu_json_get(o, key);                      \
		uint32_t n_ = 0;                                                       \
		if (v_ && !slu_json_is_arr(v_))                                        \
			bad_line(d, -EINVAL, key, "not a list");                       \
		slu_json_each (v_, it_) {                                              \
			const char *s_ = slu_json_str(it_.val);                        \
			uint32_t id_ = s_ && *s_ ? slu_intern(&(d)->r->trace->str, s_) \
						 : SLU_INTERN_NONE;                    \
			if (id_ == SLU_INTERN_NONE || slu_vec_push(list, id_) < 0) {   \
				bad_line(d, s_ && *s_ ? -ENOMEM : -EINVAL, key,        \
					 "not a list of texts");                       \
				break;                                                 \
			}                                                              \
			n_++;                                                          \
		}                                                                      \
		n_;                                                                    \
	})

static void read_node(struct rd *d)
{
	struct slu_trace *t = d->r->trace;

	only_keys(d, d->o,
		  " kind name count cores memory gpus rack block zone per_rack properties ");
	uint32_t base = text(d, d->o, "name");
	int64_t count = read_number(d, d->o, "count", 1, SLU_TRACE_MAX_NODES, 1);
	int64_t per_rack = read_number(d, d->o, "per_rack", 1, SLU_TRACE_MAX_NODES, 0);
	struct slu_trace_node n = {
		.zone = text(d, d->o, "zone"),
		.block = text(d, d->o, "block"),
		.rack = text(d, d->o, "rack"),
		.millicores = amount(d, d->o, "cores", SLU_QTY_MILLI, 1000),
		.memory = amount(d, d->o, "memory", SLU_QTY_UNIT, 0),
		.gpus = (uint32_t)read_number(d, d->o, "gpus", 0, 1000000, 0),
		.prop = t->prop.n,
	};

	n.nprop = TEXTS(d, d->o, "properties", &t->prop);
	if (base == SLU_INTERN_NONE)
		bad_line(d, -EINVAL, "name", "is missing");
	if (!d->rc && t->node.n + count > SLU_TRACE_MAX_NODES)
		bad_line(d, -EFBIG, "count", "too many nodes");
	for (int64_t i = 0; i < count && !d->rc; i++) {
		char name[1100];

		n.name = base;
		if (count > 1) {
			snprintf(name, sizeof name, "%s%" PRId64, slu_intern_str(&t->str, base), i);
			n.name = slu_intern(&t->str, name);
		}
		if (per_rack) {
			snprintf(name, sizeof name, "%s-rack%" PRId64,
				 slu_intern_str(&t->str, base), i / per_rack);
			n.rack = slu_intern(&t->str, name);
		}
		if (n.name != SLU_INTERN_NONE && slu_map_get(&d->r->node, n.name))
			bad_line(d, -EINVAL, "name", "there is a node of that name already");
		else if (n.name == SLU_INTERN_NONE || slu_vec_push(&t->node, n) < 0 ||
			 slu_map_put(&d->r->node, n.name, t->node.n) < 0)
			bad_line(d, -ENOMEM, "name", "out of memory");
	}
}

static void read_queue(struct rd *d)
{
	only_keys(d, d->o,
		  " kind name policy backfill property queue_depth reservation_depth priority "
		  "default_duration max_duration max_slots max_running max_waiting "
		  "max_running_user max_waiting_user ");
	struct slu_trace_queue q = {
		.name = text(d, d->o, "name"),
		.policy = text(d, d->o, "policy"),
		.backfill = text(d, d->o, "backfill"),
		.property = text(d, d->o, "property"),
		.queue_depth = (uint32_t)read_number(d, d->o, "queue_depth", 1, 100000000, 0),
		.reservation_depth = (uint32_t)read_number(d, d->o, "reservation_depth", 1,
							   100000000, 0),
		.priority = (int32_t)read_number(d, d->o, "priority", -1000000000, 1000000000, 0),
		.default_s = read_number(d, d->o, "default_duration", 0, 100000000, 0),
		.max_s = read_number(d, d->o, "max_duration", 0, SLU_TRACE_MAX_TIME, 0),
		.max_slots = read_number(d, d->o, "max_slots", 0, SLU_TRACE_MAX_SLOTS, 0),
		.max_running = (uint32_t)read_number(d, d->o, "max_running", 0, UINT32_MAX, 0),
		.max_waiting = (uint32_t)read_number(d, d->o, "max_waiting", 0, UINT32_MAX, 0),
		.max_running_user = (uint32_t)read_number(d, d->o, "max_running_user", 0,
							  UINT32_MAX, 0),
		.max_waiting_user = (uint32_t)read_number(d, d->o, "max_waiting_user", 0,
							  UINT32_MAX, 0),
	};

	if (q.name == SLU_INTERN_NONE)
		bad_line(d, -EINVAL, "name", "is missing");
	else if (d->r->trace->queue.n >= 1000)
		bad_line(d, -EFBIG, "name", "too many queues");
	else if (!d->rc && slu_vec_push(&d->r->trace->queue, q) < 0)
		bad_line(d, -ENOMEM, "name", "out of memory");
}

static struct slu_trace_role read_role(struct rd *d, const struct slu_json *o)
{
	struct slu_trace_role role = {
		.slots = (uint32_t)read_number(d, o, "slots", 1, SLU_TRACE_MAX_SLOTS, 1),
		.millicores = amount(d, o, "cores", SLU_QTY_MILLI, 1000),
		.memory = amount(d, o, "memory", SLU_QTY_UNIT, 0),
		.gpus = (uint32_t)read_number(d, o, "gpus", 0, 1000000, 0),
		.property = text(d, o, "property"),
		.spread = flag(d, o, "spread"),
	};

	role.max_slots = (uint32_t)read_number(d, o, "max_slots", role.slots, SLU_TRACE_MAX_SLOTS,
					       role.slots);
	return role;
}

static void read_deps(struct rd *d, struct slu_trace_extra *x, const char *key, uint32_t kind)
{
	const struct slu_json *v = slu_json_get(d->o, key);

	if (v && !slu_json_is_arr(v))
		bad_line(d, -EINVAL, key, "not a list of job ids");
	slu_json_each (v, it) {
		struct slu_trace_dep dep = { .kind = kind };

		if (slu_json_u64(it.val, &dep.job) < 0 || !dep.job || dep.job > SLU_TRACE_MAX_JOBS)
			bad_line(d, -EINVAL, key, "not a list of job ids");
		else if (x->ndep == 64)
			bad_line(d, -EFBIG, key, "more than 64 dependencies");
		else if (slu_vec_push(&d->r->trace->dep, dep) < 0)
			bad_line(d, -ENOMEM, key, "out of memory");
		else
			x->ndep++;
		if (d->rc)
			return;
	}
}

static void read_extra(struct rd *d, struct slu_trace_job *j)
{
	struct slu_trace *t = d->r->trace;
	struct slu_trace_extra x = {
		.begin_s = read_number(d, d->o, "begin", 0, SLU_TRACE_MAX_TIME, NO_TIME),
		.deadline_s = read_number(d, d->o, "deadline", 0, SLU_TRACE_MAX_TIME, NO_TIME),
		.reservation = text(d, d->o, "reservation"),
		.held = flag(d, d->o, "held"),
		.grow = flag(d, d->o, "grow"),
		.dep = t->dep.n,
	};

	read_deps(d, &x, "after", SLU_TRACE_AFTER);
	read_deps(d, &x, "after_ok", SLU_TRACE_AFTER_OK);
	read_deps(d, &x, "after_notok", SLU_TRACE_AFTER_NOTOK);
	read_deps(d, &x, "after_start", SLU_TRACE_AFTER_START);
	if (d->rc || (x.begin_s == NO_TIME && x.deadline_s == NO_TIME && !x.ndep && !x.held &&
		      !x.grow && x.reservation == SLU_INTERN_NONE))
		return;
	if (slu_vec_push(&t->extra, x) < 0)
		bad_line(d, -ENOMEM, "id", "out of memory");
	j->extra = t->extra.n;
}

static void read_job(struct rd *d)
{
	struct slu_trace *t = d->r->trace;
	struct slu_trace_role role[SLU_TRACE_MAX_ROLES];
	const struct slu_json *roles = slu_json_get(d->o, "roles");

	only_keys(d, d->o,
		  " kind id name user queue submit run limit priority slots max_slots cores memory "
		  "gpus property spread exclusive within prefer begin deadline after after_ok "
		  "after_notok after_start reservation held grow fails roles ");
	struct slu_trace_req req = { .nrole = 1,
				     .within = text(d, d->o, "within"),
				     .prefer = flag(d, d->o, "prefer"),
				     .exclusive = flag(d, d->o, "exclusive") };
	struct slu_trace_job j = {
		.id = (uint64_t)read_number(d, d->o, "id", 1, SLU_TRACE_MAX_JOBS, t->job.n + 1),
		.submit_s = read_number(d, d->o, "submit", 0, SLU_TRACE_MAX_TIME, 0),
		.run_s = read_number(d, d->o, "run", 1, 300000000, 0),
		.limit_s = read_number(d, d->o, "limit", 1, 300000000, 0),
		.priority = (int32_t)read_number(d, d->o, "priority", -1000000000, 1000000000, 0),
		.name = text(d, d->o, "name"),
		.user = text(d, d->o, "user"),
		.queue = text(d, d->o, "queue"),
		.fails = flag(d, d->o, "fails"),
	};

	if (!j.run_s)
		bad_line(d, -EINVAL, "run", "is missing");
	if (!j.limit_s)
		j.limit_s = j.run_s;
	j.run_s = SLU_MIN(j.run_s, j.limit_s);
	if (roles && (!slu_json_is_arr(roles) || !slu_json_count(roles) ||
		      slu_json_count(roles) > SLU_TRACE_MAX_ROLES))
		bad_line(d, -EINVAL, "roles", "not a list of 1 to 16 roles");
	if (!roles) {
		role[0] = read_role(d, d->o);
	} else if (!d->rc) {
		req.nrole = 0;
		slu_json_each (roles, it) {
			only_keys(d, it.val, " slots max_slots cores memory gpus property spread ");
			role[req.nrole++] = read_role(d, it.val);
		}
	}
	if (!d->rc && slu_map_get(&d->r->id, j.id))
		bad_line(d, -EINVAL, "id", "there is a job of that id already");
	read_extra(d, &j);
	if (d->rc)
		return;
	int64_t q = slu_trace_intern_req(t, &req, role);

	if (t->job.n >= SLU_TRACE_MAX_JOBS)
		bad_line(d, -EFBIG, "id", "too many jobs");
	else if (q < 0 || slu_map_put(&d->r->id, j.id, t->job.n + 1) < 0)
		bad_line(d, -ENOMEM, "id", "out of memory");
	j.req = (uint32_t)q;
	if (!d->rc && slu_vec_push(&t->job, j) < 0)
		bad_line(d, -ENOMEM, "id", "out of memory");
}

static void read_event(struct rd *d, enum slu_trace_event_kind kind)
{
	struct slu_trace *t = d->r->trace;
	bool value = kind == SLU_TRACE_PRIORITY || kind == SLU_TRACE_RESIZE;
	struct slu_trace_event e = { .kind = kind, .seq = t->event.n };

	if (kind == SLU_TRACE_DOWN || kind == SLU_TRACE_UP) {
		only_keys(d, d->o, " kind at node ");
		e.job = text(d, d->o, "node"); /* by name until all nodes are known */
		if (e.job == SLU_INTERN_NONE)
			bad_line(d, -EINVAL, "node", "is missing");
	} else {
		only_keys(d, d->o, value ? " kind at job value " : " kind at job ");
		e.job = (uint64_t)read_number(d, d->o, "job", 1, SLU_TRACE_MAX_JOBS, 0);
		e.value = read_number(d, d->o, "value", -1000000000, 1000000000, 0);
		if (!e.job)
			bad_line(d, -EINVAL, "job", "is missing");
		if (kind == SLU_TRACE_RESIZE && e.value < 0)
			bad_line(d, -EINVAL, "value", "a job cannot have fewer than 0 slots");
	}
	e.at_s = read_number(d, d->o, "at", 0, SLU_TRACE_MAX_TIME, 0);
	e.span = (uint32_t)SLU_MIN(d->r->line, (uint64_t)UINT32_MAX); /* for messages */
	if (!d->rc && slu_vec_push(&t->event, e) < 0)
		bad_line(d, -ENOMEM, "at", "out of memory");
}

static void read_span(struct rd *d, bool drain)
{
	struct slu_trace *t = d->r->trace;

	only_keys(d, d->o,
		  drain ? " kind at name from to nodes count cores memory gpus "
			: " kind at name from to nodes count users cores memory gpus ");
	struct slu_trace_span s = {
		.drain = drain,
		.name = text(d, d->o, "name"),
		.from_s = read_number(d, d->o, "from", 0, SLU_TRACE_MAX_TIME, 0),
		.to_s = read_number(d, d->o, "to", 1, SLU_TRACE_MAX_TIME, INT64_MAX),
		.count = (uint32_t)read_number(d, d->o, "count", 1, SLU_TRACE_MAX_NODES, 0),
		.node = t->span_node.n,
		.user = t->span_user.n,
		.millicores = amount(d, d->o, "cores", SLU_QTY_MILLI, 0),
		.memory = amount(d, d->o, "memory", SLU_QTY_UNIT, 0),
		.gpus = (uint32_t)read_number(d, d->o, "gpus", 0, 1000000, 0),
	};
	struct slu_trace_event e = { .kind = SLU_TRACE_SPAN,
				     .at_s = read_number(d, d->o, "at", 0, SLU_TRACE_MAX_TIME, 0),
				     .span = t->span.n,
				     .seq = t->event.n };

	s.nnode = TEXTS(d, d->o, "nodes", &t->span_node);
	s.nuser = TEXTS(d, d->o, "users", &t->span_user);
	if (s.name == SLU_INTERN_NONE)
		bad_line(d, -EINVAL, "name", "is missing");
	if (!s.nnode && !s.count)
		bad_line(d, -EINVAL, "nodes", "no nodes named, and no count");
	if (s.to_s <= s.from_s || s.to_s <= e.at_s)
		bad_line(d, -EINVAL, "to", "it ends before it begins");
	if (d->rc)
		return;
	if (slu_map_get(&d->r->span, s.name))
		bad_line(d, -EINVAL, "name",
			 "there is a drain or reservation of that name already");
	else if (slu_map_put(&d->r->span, s.name, t->span.n + 1) < 0 ||
		 slu_vec_push(&t->span, s) < 0 || slu_vec_push(&t->event, e) < 0)
		bad_line(d, -ENOMEM, "name", "out of memory");
}

static void read_lift(struct rd *d)
{
	only_keys(d, d->o, " kind at name ");
	uint32_t name = text(d, d->o, "name");
	uint64_t *at = name == SLU_INTERN_NONE ? NULL : slu_map_get(&d->r->span, name);
	struct slu_trace_event e = { .kind = SLU_TRACE_UNSPAN,
				     .at_s = read_number(d, d->o, "at", 0, SLU_TRACE_MAX_TIME, 0),
				     .seq = d->r->trace->event.n };

	if (!at) {
		bad_line(d, -EINVAL, "name",
			 "no drain or reservation of that name was named before");
		return;
	}
	const struct slu_trace_span *s = &d->r->trace->span.p[*at - 1];

	e.span = (uint32_t)*at - 1;
	if (e.at_s >= s->to_s)
		bad_line(d, -EINVAL, "at", "it is over by then");
	if (!d->rc && slu_vec_push(&d->r->trace->event, e) < 0)
		bad_line(d, -ENOMEM, "name", "out of memory");
}

int slu_jsonl_line(struct slu_jsonl *r, const char *p, size_t n, struct slu_error *err)
{
	static const struct {
		const char *name;
		enum slu_trace_event_kind kind;
	} event[] = {
		{ "down", SLU_TRACE_DOWN },       { "up", SLU_TRACE_UP },
		{ "cancel", SLU_TRACE_CANCEL },   { "hold", SLU_TRACE_HOLD },
		{ "release", SLU_TRACE_RELEASE }, { "priority", SLU_TRACE_PRIORITY },
		{ "resize", SLU_TRACE_RESIZE },
	};
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_limits lim = { .max_bytes = SLU_TRACE_MAX_LINE, .max_depth = 16 };
	struct slu_json_place place = { 0 };
	struct rd d = { .r = r, .err = err };
	size_t skip = 0;

	r->line++;
	while (skip < n && (p[skip] == ' ' || p[skip] == '\t' || p[skip] == '\r'))
		skip++;
	if (skip == n || p[skip] == '#')
		return 0;
	int rc = slu_json_parse_place(p, n, &lim, &doc, &place);

	if (rc < 0)
		return slu_fail(err, rc, "line %" PRIu64 ", column %u: %s", r->line, place.col,
				place.what ? place.what : "out of memory");
	d.o = slu_json_root(doc);
	const char *kind = slu_json_str(slu_json_get(d.o, "kind"));

	if (!slu_json_is_obj(d.o) || !kind)
		return slu_fail(err, -EINVAL, "line %" PRIu64 ": not an object with a \"kind\"",
				r->line);
	r->trace->records++;
	if (!strcmp(kind, "job"))
		read_job(&d);
	else if (!strcmp(kind, "node"))
		read_node(&d);
	else if (!strcmp(kind, "queue"))
		read_queue(&d);
	else if (!strcmp(kind, "drain") || !strcmp(kind, "reserve"))
		read_span(&d, *kind == 'd');
	else if (!strcmp(kind, "lift"))
		read_lift(&d);
	else {
		size_t i = 0;

		while (i < SLU_LEN(event) && strcmp(kind, event[i].name))
			i++;
		if (i == SLU_LEN(event))
			return slu_fail(err, -EINVAL, "line %" PRIu64 ": unknown kind \"%.40s\"",
					r->line, kind);
		read_event(&d, event[i].kind);
	}
	return d.rc;
}

/* ---- after the last line ---- */

/* Depth first over dependencies; colour 1 is on the way, 2 is done. */
static int cycle_from(const struct slu_trace *t, const struct slu_map *id, uint8_t *colour,
		      uint32_t *stack, uint32_t start, struct slu_error *err)
{
	uint32_t n = 0;

	stack[n++] = start;
	while (n) {
		uint32_t j = stack[n - 1];
		uint32_t x = t->job.p[j].extra;
		bool pushed = false;

		colour[j] = 1;
		for (uint32_t i = 0; x && i < t->extra.p[x - 1].ndep && !pushed; i++) {
			uint64_t on = t->dep.p[t->extra.p[x - 1].dep + i].job;
			uint32_t k = (uint32_t)*slu_map_get(id, on) - 1;

			if (colour[k] == 1)
				return slu_fail(err, -ELOOP,
						"cyclic dependency: job %" PRIu64
						" waits for job %" PRIu64 ", which waits for it",
						t->job.p[j].id, on);
			if (!colour[k]) {
				stack[n++] = k;
				pushed = true;
			}
		}
		if (!pushed) {
			colour[j] = 2;
			n--;
		}
	}
	return 0;
}

static int check_deps(struct slu_jsonl *r, struct slu_error *err)
{
	const struct slu_trace *t = r->trace;
	int rc = 0;

	if (!t->dep.n)
		return 0;
	for (uint32_t j = 0; j < t->job.n; j++) {
		uint32_t x = t->job.p[j].extra;

		for (uint32_t i = 0; x && i < t->extra.p[x - 1].ndep; i++) {
			uint64_t on = t->dep.p[t->extra.p[x - 1].dep + i].job;

			if (!slu_map_get(&r->id, on))
				return slu_fail(err, -ENOENT,
						"job %" PRIu64 " waits for job %" PRIu64
						", which is not in the trace",
						t->job.p[j].id, on);
		}
	}
	slu_cleanup(slu_freep) uint8_t *colour = slu_calloc(t->job.n, 1);
	slu_cleanup(slu_freep) uint32_t *stack = slu_reallocarray(NULL, t->job.n, sizeof *stack);

	if (!colour || !stack)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (uint32_t j = 0; j < t->job.n && !rc; j++)
		if (!colour[j])
			rc = cycle_from(t, &r->id, colour, stack, j, err);
	return rc;
}

static int settle_events(struct slu_jsonl *r, struct slu_error *err)
{
	struct slu_trace *t = r->trace;

	for (uint32_t i = 0; i < t->event.n; i++) {
		struct slu_trace_event *e = &t->event.p[i];

		if (e->kind == SLU_TRACE_DOWN || e->kind == SLU_TRACE_UP) {
			uint64_t *at = slu_map_get(&r->node, e->job);

			if (!at)
				return slu_fail(err, -ENOENT, "line %u: there is no node \"%s\"",
						e->span, slu_intern_str(&t->str, (uint32_t)e->job));
			e->node = (uint32_t)*at - 1;
			e->job = 0;
		} else if (e->job && !slu_map_get(&r->id, e->job)) {
			return slu_fail(err, -ENOENT, "line %u: there is no job %" PRIu64, e->span,
					e->job);
		}
	}
	for (uint32_t i = 0; i < t->span_node.n; i++)
		if (!slu_map_get(&r->node, t->span_node.p[i]))
			return slu_fail(err, -ENOENT,
					"a drain or reservation names node \"%s\", "
					"which does not exist",
					slu_intern_str(&t->str, t->span_node.p[i]));
	return 0;
}

int slu_jsonl_finish(struct slu_jsonl *r, struct slu_error *err)
{
	struct slu_trace *t = r->trace;
	int rc = check_deps(r, err);

	if (!rc)
		rc = settle_events(r, err);
	if (!rc && slu_trace_sort(t) < 0)
		rc = slu_fail(err, -ENOMEM, "out of memory");
	/* From here on a job is known by its place in the order of submission, counted from 1. */
	for (uint32_t j = 0; j < t->job.n && !rc; j++)
		*slu_map_get(&r->id, t->job.p[j].id) = j + 1;
	for (uint32_t i = 0; i < t->dep.n && !rc; i++) {
		uint64_t *at = slu_map_get(&r->id, t->dep.p[i].job);

		if (at)
			t->dep.p[i].job = *at;
	}
	for (uint32_t i = 0; i < t->event.n && !rc; i++)
		if (t->event.p[i].job)
			t->event.p[i].job = *slu_map_get(&r->id, t->event.p[i].job);
	return rc;
}

void slu_jsonl_done(struct slu_jsonl *r)
{
	slu_map_done(&r->id);
	slu_map_done(&r->span);
	slu_map_done(&r->node);
}
