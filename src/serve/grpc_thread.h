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

/* Open the port of the configuration and start the thread that serves it.  Configuration and core must outlive the
 * thread.  0, or an error of slu_kube_config_load(), slu_grpc_port_new() or pthread_create(). */
int slu_grpc_thread_new(const struct slu_kube_config_options *kube, const struct slu_config *config,
			struct slu_core *core, struct slu_grpc_thread **out, struct slu_error *err);
uint16_t slu_grpc_thread_port(const struct slu_grpc_thread *t);
/* End the thread, which serves no further calls.  The core must still answer the open questions.  NULL is
 * fine. */
void slu_grpc_thread_stop(struct slu_grpc_thread *t);
/* Call this after slu_grpc_thread_stop(), and after the core was freed (which answers every question).  NULL
 * is fine. */
void slu_grpc_thread_free(struct slu_grpc_thread *t);
