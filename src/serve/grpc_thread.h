/* grpc_thread.h — the thread that serves the Fluxion services in a cluster.
 *
 * Whoever may call the services may call them as often as a socket allows.  So they have a thread, a
 * loop and, for the tokens of their callers, a client of the API server of their own: no flood of
 * calls stands between the daemon's other sockets and the kernel, where watches come in and
 * bindings go out.  The core is reached by its inbox and its snapshots, as from any thread. */
#pragma once
#include "control/config/config.h"
#include "control/core/core.h"
#include "kube/config.h"

struct slu_grpc_thread;

/* Open the port of the configuration and serve it.  Configuration and core must outlive it.
 * 0 or as slu_kube_config_load(), slu_grpc_port_new() and pthread_create(). */
int slu_grpc_thread_new(const struct slu_kube_config_options *kube, const struct slu_config *config,
			struct slu_core *core, struct slu_grpc_thread **out, struct slu_error *err);
uint16_t slu_grpc_thread_port(const struct slu_grpc_thread *t);
/* End the thread: nobody is served any more.  What the core was asked must still be answered.
 * NULL is fine. */
void slu_grpc_thread_stop(struct slu_grpc_thread *t);
/* After slu_grpc_thread_stop(), and after the core was freed (so that everything is answered).  NULL
 * is fine. */
void slu_grpc_thread_free(struct slu_grpc_thread *t);
