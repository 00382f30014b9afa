/* grpc_thread.h — the thread that serves the Fluxion services in a cluster.
 *
 * A caller of the services may call as often as a socket allows.  So the services have their own thread,
 * loop and, for the tokens of their callers, client of the API server: no flood of calls delays the
 * daemon's other sockets, where watches come in and bindings go out.  The services reach the core by its
 * inbox and its snapshots, as any thread does. */
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
/* End the thread: no call is served any more.  The core must still answer its open requests.  NULL is
 * fine. */
void slu_grpc_thread_stop(struct slu_grpc_thread *t);
/* After slu_grpc_thread_stop(), and after the core was freed (so that everything is answered).  NULL
 * is fine. */
void slu_grpc_thread_free(struct slu_grpc_thread *t);
