/* grpc_port.h — where the services of Fluence, Fluxnetes and Fluxion listen, and who may call them.
 *
 * On a loopback address (grpc.host) every caller may, in the clear, as with the originals.  On any
 * other address the port speaks TLS with the identity of the HTTPS
 * port, and a caller shows a certificate of grpc.clientCA, or a Kubernetes token whose owner may
 * "post" to the method's path (as with the HTTPS port: TokenReview, SubjectAccessReview on
 * nonResourceURLs). */
#pragma once
#include "control/config/config.h"
#include "fluxion/service.h"
#include "kube/client.h"

struct slu_grpc_port;

/* `client`: NULL without a cluster; then tokens mean nothing.  The configuration must outlive it.
 * 0, -EINVAL (an address no client could call safely), or as slu_server_listen(). */
int slu_grpc_port_new(struct slu_loop *loop, struct slu_kube_client *client,
		      const struct slu_config *config, const struct slu_flux_engine *engine,
		      struct slu_grpc_port **out, struct slu_error *err);
uint16_t slu_grpc_port_number(const struct slu_grpc_port *p);
/* What grpc.health.v1.Health says. */
void slu_grpc_port_ready(struct slu_grpc_port *p, bool ready);
/* Take no further calls, let those under way end; fn follows, after `grace_ns` at the latest. */
void slu_grpc_port_drain(struct slu_grpc_port *p, int64_t grace_ns, slu_call_fn *fn, void *arg);
/* After the engine has answered everything and the client was freed.  NULL is fine. */
void slu_grpc_port_free(struct slu_grpc_port *p);
SLU_DEFINE_CLEANUP(struct slu_grpc_port, slu_grpc_port_free)
