#include "serve/grpc_thread.h"

#include <pthread.h>
#include <time.h>

#include "serve/grpc_live.h"
#include "serve/grpc_port.h"

struct slu_grpc_thread {
	struct slu_loop *loop;
	struct slu_kube_client *client; /* checks the tokens of callers */
	struct slu_grpc_live *live;     /* the engine of the port */
	struct slu_grpc_port *port;
	uint16_t number;
	pthread_t thread;
	bool running;
};

static void *serve_thread(void *arg)
{
	struct slu_grpc_thread *t = arg;

	slu_loop_run(t->loop);
	return NULL;
}

static int open_port(struct slu_grpc_thread *t, const struct slu_kube_config_options *kube,
		     const struct slu_config *config, struct slu_core *core, struct slu_error *err)
{
	struct slu_kube_client_options o = { .qps = config->kube.qps, .burst = config->kube.burst };
	slu_cleanup(slu_kube_config_unrefp) struct slu_kube_config *where = NULL;
	struct slu_flux_engine engine;
	int rc;

	t->loop = slu_loop_new();
	if (!t->loop)
		return slu_fail(err, -ENOMEM, "cannot create an event loop");
	rc = slu_kube_config_load(kube, &where, err);
	if (!rc)
		rc = slu_kube_client_new(t->loop, where, &o, &t->client, err);
	if (rc < 0)
		return rc;
	rc = slu_grpc_live_new(t->loop, core, &t->live);
	if (rc < 0)
		return slu_fail(err, rc, "out of memory");
	engine = slu_grpc_live_engine(t->live);
	rc = slu_grpc_port_new(t->loop, t->client, config, &engine, &t->port, err);
	if (rc < 0)
		return rc;
	t->number = slu_grpc_port_number(t->port);
	slu_grpc_port_ready(t->port, true);
	return 0;
}

int slu_grpc_thread_new(const struct slu_kube_config_options *kube, const struct slu_config *config,
			struct slu_core *core, struct slu_grpc_thread **out, struct slu_error *err)
{
	struct slu_grpc_thread *t = slu_calloc(1, sizeof *t);
	int rc = t ? open_port(t, kube, config, core, err)
		   : slu_fail(err, -ENOMEM, "out of memory");

	if (!rc) {
		rc = -pthread_create(&t->thread, NULL, serve_thread, t);
		if (rc < 0)
			slu_fail(err, rc, "cannot start the thread of the gRPC services");
	}
	if (rc < 0) {
		slu_grpc_thread_stop(t);
		slu_grpc_thread_free(t);
		return rc;
	}
	t->running = true;
	*out = t;
	return 0;
}

uint16_t slu_grpc_thread_port(const struct slu_grpc_thread *t)
{
	return t->number;
}

static void stop_loop(void *arg)
{
	slu_loop_stop(arg);
}

void slu_grpc_thread_stop(struct slu_grpc_thread *t)
{
	if (!t)
		return;
	if (t->running) {
		while (slu_loop_post(t->loop, stop_loop, t->loop) < 0) /* out of memory */
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		pthread_join(t->thread, NULL);
		t->running = false;
	}
	slu_kube_client_free(t->client); /* ends the checks of tokens */
	t->client = NULL;
}

void slu_grpc_thread_free(struct slu_grpc_thread *t)
{
	if (!t)
		return;
	slu_grpc_live_free(t->live);
	slu_grpc_port_free(t->port);
	slu_loop_free(t->loop);
	slu_free(t);
}
