/* grpc_port.h — where the services of Fluence, Fluxnetes and Fluxion listen, and who may call them.
 *
 * On a loopback address (grpc.host) every caller may call, without TLS, as with the originals.  On any
 * other address the port speaks TLS with the certificate of the HTTPS
 * port, and a caller shows a certificate of grpc.clientCA, or a Kubernetes token whose owner may
 * "post" to the method's path (checked as on the HTTPS port: TokenReview, SubjectAccessReview on
 * nonResourceURLs). */
#pragma once
#include "control/config/config.h"
#include "fluxion/service.h"
#include "kube/client.h"

struct slu_grpc_port;

/* Open the port.  `client` is NULL without a cluster; then no token is accepted.  The configuration must outlive the
 * port.  0, -EINVAL (an address that no client could call safely), or as slu_server_listen(). */
int slu_grpc_port_new(struct slu_loop *loop, struct slu_kube_client *client,
		      const struct slu_config *config, const struct slu_flux_engine *engine,
		      struct slu_grpc_port **out, struct slu_error *err);
uint16_t slu_grpc_port_number(const struct slu_grpc_port *p);
/* Set the status that grpc.health.v1.Health reports. */
void slu_grpc_port_ready(struct slu_grpc_port *p, bool ready);
/* Accept no further calls and let the present ones end; then, or after `grace_ns` at the latest, call `fn`. */
void slu_grpc_port_drain(struct slu_grpc_port *p, int64_t grace_ns, slu_call_fn *fn, void *arg);
/* Call this after the engine has answered every question and the client was freed.  NULL is fine. */
void slu_grpc_port_free(struct slu_grpc_port *p);
SLU_DEFINE_CLEANUP(struct slu_grpc_port, slu_grpc_port_free)
