#include "bin/standalone.h"

#include <signal.h>

#include "base/file.h"
#include "base/log.h"
#include "fluxion/standalone.h"
#include "serve/grpc_port.h"

#define GRAPH_MAX ((size_t)1 << 30)
#define GRACE_NS  (2 * SLU_NS_PER_S)
#define FLUX_PORT 4242

struct alone {
	struct slu_loop *loop;
	struct slu_standalone *engine;
	struct slu_grpc_port *port;
};

static int load_graph(struct slu_standalone *engine, const char *file, struct slu_error *err)
{
	struct slu_buf text = SLU_BUF_INIT(GRAPH_MAX);
	int rc = slu_file_read(file, &text);

	if (rc < 0)
		slu_fail(err, rc, "--graph: %s: %s", file, strerror(-rc));
	else if ((rc = slu_standalone_load(engine, slu_buf_str(&text), text.n, err)) < 0)
		slu_fail_prefix(err, rc, "--graph: %s", file);
	slu_buf_done(&text);
	return rc;
}

static int start_standalone(struct alone *s, struct slu_config *c, const char *graph,
			    const char *policy, struct slu_error *err)
{
	struct slu_flux_engine engine;
	int rc;

	s->loop = slu_loop_new();
	if (!s->loop)
		return slu_fail(err, -ENOMEM, "cannot create an event loop");
	if (!c->grpc.port)
		c->grpc.port = FLUX_PORT;
	rc = slu_standalone_new(s->loop, policy, &s->engine, err);
	if (!rc && graph)
		rc = load_graph(s->engine, graph, err);
	if (rc < 0)
		return rc;
	engine = slu_standalone_engine(s->engine);
	rc = slu_grpc_port_new(s->loop, NULL, c, &engine, &s->port, err);
	if (!rc)
		slu_grpc_port_ready(s->port, true);
	return rc;
}

static void stop_loop(void *arg)
{
	slu_loop_stop(arg);
}

/* Answer the calls that are under way first. */
static void on_stop(void *arg)
{
	struct alone *s = arg;

	slu_log(SLU_INFO, "stopping");
	slu_grpc_port_ready(s->port, false);
	slu_grpc_port_drain(s->port, GRACE_NS, stop_loop, s->loop);
}

static void end_service(struct alone *s)
{
	slu_standalone_free(s->engine);
	slu_grpc_port_free(s->port);
	slu_loop_free(s->loop);
}

int run_standalone(struct slu_config *config, const char *graph, const char *policy)
{
	struct alone s = { 0 };
	struct slu_error err = { 0 };

	if (start_standalone(&s, config, graph, policy, &err) < 0) {
		slu_log(SLU_ERROR, "cannot start", SLU_STR("err", err.text));
		end_service(&s);
		return 1;
	}
	slu_loop_signal(s.loop, SIGTERM, on_stop, &s);
	slu_loop_signal(s.loop, SIGINT, on_stop, &s);
	slu_log(SLU_INFO, "sluiced started without a cluster", SLU_STR("version", SLU_VERSION),
		SLU_STR("graph", graph ? graph : "none yet"),
		SLU_I64("grpc_port", slu_grpc_port_number(s.port)));
	slu_loop_run(s.loop);
	end_service(&s);
	slu_log(SLU_INFO, "stopped");
	return 0;
}
