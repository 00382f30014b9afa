#include "fluxion/service.h"

#include <stdio.h>

#include "rpc/health.h"
#include "rpc/reflect.h"

#define GRAPH_BYTES  ((size_t)384 << 20) /* a graph of 845 000 vertices has 267 MB */
#define ANSWER_BYTES ((size_t)1 << 30)

/* One method of one service in one dialect. */
struct slu_flux_rpc {
	const char *path; /* of dialect F if both dialects have it */
	size_t max;
	uint32_t graph; /* the field with a graph that is read while it arrives; 0: none */
	const struct slu_msg *in, *out;
	enum slu_flux_op op;
	/* Fill the question from the message; 0, or -EINVAL with the reason. */
	int (*ask)(struct slu_flux_ask *a, void *in, struct slu_error *err);
	/* Write the answer, or fail the call. */
	void (*answer)(struct slu_flux_ask *a);
	const char *failed;               /* the message of the original program */
	const struct slu_flux_rpc *other; /* dialect N */
	enum slu_flux_dialect (*dialect)(const void *p, size_t n);
};

struct slu_flux {
	struct slu_flux_engine engine;
	struct slu_health *health;
	struct slu_reflect *reflect;
	bool external;
	const char *name[4]; /* NULL-ended, as are the files */
	const struct slu_msg_file *file[5];
	struct slu_grpc_method method[16];
	struct bound {
		struct slu_flux *f;
		const struct slu_flux_rpc *rpc;
	} bound[16];
};

/* ---- the end of a question ---- */

static void ask_free(struct slu_flux_ask *a)
{
	slu_buf_done(&a->out);
	slu_buf_done(&a->own);
	if (a->graph)
		a->service->engine.graphs->drop(a->graph);
	slu_arena_done(&a->arena);
	slu_free(a);
}

static void reply(struct slu_flux_ask *a, const void *message)
{
	struct slu_buf b = SLU_BUF_INIT(ANSWER_BYTES);

	slu_msg_write(a->rpc->out, message, &b);
	slu_buf_done(&a->out); /* the text is in the message now, and may be large */
	slu_grpc_reply(a->call, &b);
}

static void end_with_status(struct slu_flux_ask *a, enum slu_grpc_code code, const char *text)
{
	slu_grpc_fail(a->call, code, "%s", text);
}

/* Fail the call with the message of the original program, followed by the engine's reason. */
static void fail_as_original(struct slu_flux_ask *a)
{
	slu_grpc_fail(a->call, SLU_GRPC_UNKNOWN, "%s%s%s", a->rpc->failed,
		      a->why.text[0] ? ": " : "", a->why.text);
}

/* Fail the call if the outcome has the same status in all services.  Returns true if the call is answered. */
static bool refused_everywhere(struct slu_flux_ask *a)
{
	if (a->outcome == SLU_FLUX_REFUSED)
		end_with_status(a, SLU_GRPC_FAILED_PRECONDITION, a->why.text);
	else if (a->outcome == SLU_FLUX_NOT_HERE)
		end_with_status(a, SLU_GRPC_UNAVAILABLE, a->why.text);
	else
		return false;
	return true;
}

void slu_flux_done(struct slu_flux_ask *a)
{
	struct slu_flux *f = a->service;
	bool matched = a->op == SLU_FLUX_MATCH && a->outcome == SLU_FLUX_OK;

	/* The client never learned of this match, so it would never cancel it: free it. */
	if (matched && slu_grpc_over(a->call)) {
		slu_buf_reset(&a->out);
		a->op = SLU_FLUX_CANCEL;
		a->job = a->got;
		a->undo = true;
		f->engine.ask(f->engine.arg, a);
		return;
	}
	if (a->undo)
		end_with_status(a, SLU_GRPC_CANCELLED, "");
	else if (!refused_everywhere(a))
		a->rpc->answer(a);
	ask_free(a);
}

/* ---- match ---- */

static int ask_pods(struct slu_flux_ask *a, const struct slu_flux_podspec *ps, int32_t count,
		    struct slu_error *err)
{
	int rc = slu_flux_jobspec(ps, count, &a->own, err);

	a->text = (struct slu_text){ a->own.p, a->own.n };
	a->want_nodes = true;
	a->cpu = ps->cpu;
	a->count = count;
	return rc;
}

static int ask_cli_match(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	const struct slu_cli_match *q = in;

	a->name = q->ps.id;
	return ask_pods(a, &q->ps, q->count, err);
}

static void answer_cli_match(struct slu_flux_ask *a)
{
	struct slu_cli_matched r = { .pod = a->name, .nodes = a->nodes, .job = (int64_t)a->got };

	if (a->outcome == SLU_FLUX_OK)
		reply(a, &r);
	else if (a->outcome == SLU_FLUX_NO_ROOM)
		end_with_status(a, SLU_GRPC_UNKNOWN, "Allocation was not possible");
	else
		fail_as_original(a);
}

static int ask_n_match(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	const struct slu_n_match *q = in;

	a->name = q->job_name.n ? q->job_name : q->ps.id;
	a->reserve = q->reserve;
	return ask_pods(a, &q->ps, q->count, err);
}

static void answer_n_match(struct slu_flux_ask *a)
{
	struct slu_n_matched r = { 0 };

	if (a->outcome == SLU_FLUX_OK)
		r = (struct slu_n_matched){ .job = a->got,
					    .nodes = a->nodes,
					    .reserved = a->reserved,
					    .reserved_at = a->at_s,
					    .allocated = !a->reserved };
	if (a->outcome == SLU_FLUX_OK || a->outcome == SLU_FLUX_NO_ROOM)
		reply(a, &r);
	else
		fail_as_original(a);
}

/* The old client sends count=1 in field 3, which this dialect reads as a request for a reservation.  That is harmless:
 * a job that fits now is allocated now. */
static int ask_f_match(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	const struct slu_f_match *q = in;

	if (!q->jobspec.n)
		return slu_fail(err, -EINVAL, "MatchRequest.jobspec is empty");
	a->text = q->jobspec;
	a->reserve = q->reservation;
	return 0;
}

static void answer_f_match(struct slu_flux_ask *a)
{
	struct slu_f_matched r = { .allocation = { a->out.p, a->out.n },
				   .job = (int64_t)a->got,
				   .reserved = a->reserved,
				   .at = a->at_s,
				   .overhead = (float)a->overhead_s,
				   .status = SLU_F_SUCCESS };

	if (a->outcome == SLU_FLUX_OK)
		reply(a, &r);
	else if (a->outcome == SLU_FLUX_NO_ROOM)
		end_with_status(a, SLU_GRPC_UNKNOWN, "Allocation was not possible");
	else
		fail_as_original(a);
}

/* ---- cancel ---- */

static int ask_cli_cancel(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	(void)err;
	a->job = (uint64_t)((struct slu_cli_cancel *)in)->job;
	return 0;
}

static void answer_cli_cancel(struct slu_flux_ask *a)
{
	struct slu_cli_cancelled r = { .job = (int64_t)a->job };

	if (a->outcome == SLU_FLUX_OK || a->outcome == SLU_FLUX_NO_JOB)
		reply(a, &r);
	else
		fail_as_original(a);
}

static int ask_n_cancel(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	const struct slu_n_cancel *q = in;

	(void)err;
	a->job = q->job;
	a->no_exist_ok = q->no_exist_ok;
	return 0;
}

static void answer_n_cancel(struct slu_flux_ask *a)
{
	struct slu_n_cancelled r = { .job = a->job };

	if (a->outcome == SLU_FLUX_OK || (a->outcome == SLU_FLUX_NO_JOB && a->no_exist_ok))
		reply(a, &r);
	else
		fail_as_original(a);
}

static int ask_f_cancel(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	(void)err;
	a->job = (uint64_t)((struct slu_f_cancel *)in)->job;
	return 0;
}

static void answer_f_cancel(struct slu_flux_ask *a)
{
	struct slu_f_cancelled r = { .status = SLU_F_SUCCESS };

	if (a->outcome == SLU_FLUX_OK || a->outcome == SLU_FLUX_NO_JOB)
		reply(a, &r);
	else
		fail_as_original(a);
}

/* ---- init, grow, shrink ---- */

static int ask_init(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	const struct slu_f_init *q = in;

	(void)err;
	a->policy = q->policy;
	return 0;
}

static int ask_grow(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	(void)err;
	a->text = ((struct slu_f_grow *)in)->jgf;
	return 0;
}

static int ask_shrink(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	a->paths = ((struct slu_f_shrink *)in)->paths;
	return a->paths.n ? 0 : slu_fail(err, -EINVAL, "ShrinkRequest.nodepaths is empty");
}

static void answer_status(struct slu_flux_ask *a)
{
	struct slu_f_status r = { SLU_F_SUCCESS };

	if (a->outcome == SLU_FLUX_OK)
		reply(a, &r);
	else
		fail_as_original(a);
}

/* ---- service.ExternalPluginService ---- */

static int ask_nothing(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	(void)a, (void)in, (void)err;
	return 0;
}

static void answer_resources(struct slu_flux_ask *a)
{
	struct slu_ext_resources r = { .graph = { a->out.p, a->out.n } };

	if (a->outcome == SLU_FLUX_OK)
		reply(a, &r);
	else
		fail_as_original(a);
}

static int ask_group(struct slu_flux_ask *a, void *in, struct slu_error *err)
{
	(void)err;
	a->text = ((struct slu_ext_ask *)in)->group;
	return 0;
}

static void answer_group(struct slu_flux_ask *a)
{
	struct slu_ext_group r = { .name = { a->out.p, a->out.n }, .size = (int64_t)a->got };

	if (a->outcome == SLU_FLUX_OK)
		reply(a, &r);
	else if (a->outcome == SLU_FLUX_NO_JOB)
		slu_grpc_fail(a->call, SLU_GRPC_NOT_FOUND, "there is no group \"%.*s\"",
			      (int)SLU_MIN(a->text.n, (size_t)200), a->text.p ? a->text.p : "");
	else
		fail_as_original(a);
}

/* ---- the table ---- */

static const struct slu_flux_rpc n_match = {
	.in = &slu_n_match,
	.out = &slu_n_matched,
	.op = SLU_FLUX_MATCH,
	.ask = ask_n_match,
	.answer = answer_n_match,
	.failed = "[Fluxnetes] Error in ReapiCliMatchAllocate"
};
static const struct slu_flux_rpc n_cancel = { .in = &slu_n_cancel,
					      .out = &slu_n_cancelled,
					      .op = SLU_FLUX_CANCEL,
					      .ask = ask_n_cancel,
					      .answer = answer_n_cancel,
					      .failed = "issue resource api client cancel -1" };

static const struct slu_flux_rpc rpcs[] = {
	{ .path = "/fluxcli.FluxcliService/Match",
	  .in = &slu_cli_match,
	  .out = &slu_cli_matched,
	  .op = SLU_FLUX_MATCH,
	  .ask = ask_cli_match,
	  .answer = answer_cli_match,
	  .failed = "[Fluence] Error in ReapiCliMatchAllocate" },
	{ .path = "/fluxcli.FluxcliService/Cancel",
	  .in = &slu_cli_cancel,
	  .out = &slu_cli_cancelled,
	  .op = SLU_FLUX_CANCEL,
	  .ask = ask_cli_cancel,
	  .answer = answer_cli_cancel,
	  .failed = "issue resource api client cancel -1" },
	{ .path = "/fluxion.FluxionService/Init",
	  .max = GRAPH_BYTES,
	  .graph = 2,
	  .in = &slu_f_init,
	  .out = &slu_f_initialized,
	  .op = SLU_FLUX_INIT,
	  .ask = ask_init,
	  .answer = answer_status,
	  .failed = "issue initializing resource api client -1" },
	{ .path = "/fluxion.FluxionService/Match",
	  .in = &slu_f_match,
	  .out = &slu_f_matched,
	  .op = SLU_FLUX_MATCH,
	  .ask = ask_f_match,
	  .answer = answer_f_match,
	  .failed = "[Fluxion] Error in ReapiCliMatchAllocate",
	  .other = &n_match,
	  .dialect = slu_flux_match_dialect },
	{ .path = "/fluxion.FluxionService/Cancel",
	  .in = &slu_f_cancel,
	  .out = &slu_f_cancelled,
	  .op = SLU_FLUX_CANCEL,
	  .ask = ask_f_cancel,
	  .answer = answer_f_cancel,
	  .failed = "issue resource api client cancel -1",
	  .other = &n_cancel,
	  .dialect = slu_flux_cancel_dialect },
	{ .path = "/fluxion.FluxionService/Grow",
	  .max = GRAPH_BYTES,
	  .in = &slu_f_grow,
	  .out = &slu_f_grown,
	  .op = SLU_FLUX_GROW,
	  .ask = ask_grow,
	  .answer = answer_status,
	  .failed = "issue resource api client grow -1" },
	{ .path = "/fluxion.FluxionService/Shrink",
	  .in = &slu_f_shrink,
	  .out = &slu_f_shrunk,
	  .op = SLU_FLUX_SHRINK,
	  .ask = ask_shrink,
	  .answer = answer_status,
	  .failed = "issue resource api client shrink -1" },
};

static const struct slu_flux_rpc external_rpcs[] = {
	{ .path = "/service.ExternalPluginService/GetResources",
	  .in = &slu_ext_nothing,
	  .out = &slu_ext_resources,
	  .op = SLU_FLUX_RESOURCES,
	  .ask = ask_nothing,
	  .answer = answer_resources,
	  .failed = "the graph cannot be written" },
	{ .path = "/service.ExternalPluginService/ListGroups",
	  .in = &slu_ext_ask,
	  .out = &slu_ext_group,
	  .op = SLU_FLUX_GROUPS,
	  .ask = ask_group,
	  .answer = answer_group,
	  .failed = "the groups cannot be listed" },
	{ .path = "/service.ExternalPluginService/GetGroup",
	  .in = &slu_ext_ask,
	  .out = &slu_ext_group,
	  .op = SLU_FLUX_GROUP,
	  .ask = ask_group,
	  .answer = answer_group,
	  .failed = "the group cannot be found" },
};

/* ---- a call arrives ---- */

union any_request {
	struct slu_cli_match cli_match;
	struct slu_cli_cancel cli_cancel;
	struct slu_ext_nothing nothing;
	struct slu_ext_ask group;
	struct slu_n_match n_match;
	struct slu_n_cancel n_cancel;
	struct slu_f_init init;
	struct slu_f_match f_match;
	struct slu_f_cancel f_cancel;
	struct slu_f_grow grow;
	struct slu_f_shrink shrink;
};

static void begin_ask(struct slu_flux_ask *a, struct slu_flux *f, const struct slu_flux_rpc *rpc,
		      struct slu_grpc_call *c)
{
	a->call = c;
	a->service = f;
	a->rpc = rpc;
	a->op = rpc->op;
	a->out = SLU_BUF_INIT(ANSWER_BYTES);
	a->own = SLU_BUF_INIT(64 << 10);
}

/* After the message was read (`rc`): pass the question to the engine, or refuse the call. */
static void put_ask(struct slu_flux_ask *a, int rc, union any_request *in, struct slu_error *err)
{
	if (!rc)
		rc = a->rpc->ask(a, in, err);
	if (rc < 0) {
		slu_grpc_fail(a->call,
			      rc == -ENOMEM ? SLU_GRPC_RESOURCE_EXHAUSTED
					    : SLU_GRPC_INVALID_ARGUMENT,
			      "%s", rc == -ENOMEM ? "out of memory" : err->text);
		ask_free(a);
		return;
	}
	a->service->engine.ask(a->service->engine.arg, a);
}

static void on_call(void *arg, struct slu_grpc_call *c)
{
	const struct bound *b = arg;
	const struct slu_flux_rpc *rpc = b->rpc;
	struct slu_flux_ask *a = slu_calloc(1, sizeof *a);
	union any_request in;
	struct slu_error err = { 0 };
	size_t n;
	const void *p = slu_grpc_message(c, &n);

	if (!a) {
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	if (rpc->dialect && rpc->dialect(p, n) == SLU_DIALECT_N)
		rpc = rpc->other;
	memset(&in, 0, sizeof in);
	begin_ask(a, b->f, rpc, c);
	put_ask(a, slu_msg_read(rpc->in, p, n, &in, &a->arena, &err), &in, &err);
}

/* ---- a call with a graph arrives ---- */

/* A message that is still arriving. */
struct incoming {
	struct slu_flux *f;
	struct slu_msg_stream in;
	void *graph;
};

/* The text of the graph begins.  A field that occurs twice begins it a second time. */
static int begin_graph(void *arg)
{
	struct incoming *x = arg;
	const struct slu_flux_graphs *g = x->f->engine.graphs;

	if (!g)
		return 0;
	if (x->graph)
		g->drop(x->graph);
	x->graph = g->begin(x->f->engine.arg);
	return x->graph ? 0 : -ENOMEM;
}

static int add_to_graph(void *arg, const char *p, size_t n)
{
	struct incoming *x = arg;

	if (x->graph)
		x->f->engine.graphs->text(x->graph, p, n);
	return 0;
}

static void drop_incoming(void *taken)
{
	struct incoming *x = taken;

	if (x->graph)
		x->f->engine.graphs->drop(x->graph);
	slu_buf_done(&x->in.rest);
	slu_free(x);
}

static void *begin_incoming(void *arg)
{
	const struct bound *b = arg;
	struct incoming *x = slu_calloc(1, sizeof *x);

	if (!x)
		return NULL;
	x->f = b->f;
	x->in = (struct slu_msg_stream){ .m = b->rpc->in,
					 .num = b->rpc->graph,
					 .begin = begin_graph,
					 .text = add_to_graph,
					 .arg = x,
					 .rest = SLU_BUF_INIT(b->rpc->max) };
	if (begin_graph(x) < 0) { /* a message without a graph counts as one with an empty graph */
		drop_incoming(x);
		return NULL;
	}
	return x;
}

static int take_incoming(void *taken, const void *p, size_t n)
{
	struct incoming *x = taken;

	return slu_msg_stream_feed(&x->in, p, n);
}

static const struct slu_grpc_taker incoming_taker = { begin_incoming, take_incoming,
						      drop_incoming };

static void on_taken(void *arg, struct slu_grpc_call *c)
{
	const struct bound *b = arg;
	struct slu_flux_ask *a = slu_calloc(1, sizeof *a);
	struct incoming *x = slu_grpc_taken(c);
	struct slu_error err = { 0 };
	union any_request in;
	int rc;

	if (!a) {
		slu_grpc_fail(c, SLU_GRPC_RESOURCE_EXHAUSTED, "out of memory");
		drop_incoming(x);
		return;
	}
	memset(&in, 0, sizeof in);
	begin_ask(a, b->f, b->rpc, c);
	rc = slu_msg_stream_end(&x->in, &in, &a->arena, &err);
	a->own = x->in.rest; /* the strings of the message lie in it */
	a->graph = slu_take(x->graph);
	x->in.rest = (struct slu_buf){ 0 };
	drop_incoming(x);
	put_ask(a, rc, &in, &err);
}

/* ---- life ---- */

struct slu_flux *slu_flux_new(const struct slu_flux_engine *engine, bool external)
{
	struct slu_flux *f = slu_calloc(1, sizeof *f);

	if (!f)
		return NULL;
	f->engine = *engine;
	f->external = external;
	f->name[0] = "fluxcli.FluxcliService";
	f->name[1] = "fluxion.FluxionService";
	f->name[2] = external ? "service.ExternalPluginService" : NULL;
	f->file[0] = &slu_flux_cli_file;
	f->file[1] = &slu_flux_f_file;
	f->file[2] = &slu_health_file;
	f->file[3] = external ? &slu_flux_ext_file : NULL;
	f->health = slu_health_new(f->name);
	f->reflect = slu_reflect_new(f->file);
	if (!f->health || !f->reflect) {
		slu_flux_free(f);
		return NULL;
	}
	return f;
}

static uint32_t bind_methods(struct slu_flux *f, uint32_t at, const struct slu_flux_rpc *rpc,
			     uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, at++) {
		f->bound[at].f = f;
		f->bound[at].rpc = &rpc[i];
		f->method[at] =
			(struct slu_grpc_method){ .path = rpc[i].path,
						  .max_message = rpc[i].max,
						  .message = rpc[i].graph ? on_taken : on_call,
						  .taker = rpc[i].graph ? &incoming_taker : NULL,
						  .arg = &f->bound[at] };
	}
	return at;
}

int slu_flux_serve(struct slu_flux *f, struct slu_grpc *g)
{
	uint32_t n = bind_methods(f, 0, rpcs, SLU_LEN(rpcs));
	int rc;

	if (f->external)
		n = bind_methods(f, n, external_rpcs, SLU_LEN(external_rpcs));
	rc = slu_grpc_serve(g, f->method, n);
	if (!rc)
		rc = slu_health_serve(f->health, g);
	if (!rc)
		rc = slu_reflect_serve(f->reflect, g);
	return rc;
}

void slu_flux_ready(struct slu_flux *f, bool ready)
{
	slu_health_set(f->health, ready);
}

void slu_flux_free(struct slu_flux *f)
{
	if (!f)
		return;
	slu_health_free(f->health);
	slu_reflect_free(f->reflect);
	slu_free(f);
}
