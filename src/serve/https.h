/* https.h — the identity of the HTTPS port: a certificate from files, or one of our own kept in a
 * Secret.
 *
 * If files are configured (serve.certificate, serve.key), the port uses them and follows their changes.
 * Otherwise an authority of our own signs the certificate, and both are kept in the Secret serve.secret,
 * so that callers can trust its ca.crt over restarts and replicas.  Until the Secret has been read, and
 * where the daemon may not read it, the port uses a certificate that lasts as long as the process. */
#pragma once
#include "control/config/config.h"
#include "kube/client.h"
#include "net/server.h"

struct slu_https;

/* Make the identity with which the port opens.  -EINVAL, with the setting named, if a file is unusable.
 * `client_ca`: file with the authorities whose client certificates are accepted; "": none are. */
int slu_https_first(const struct slu_config *config, const char *client_ca, struct slu_tls **out,
		    struct slu_error *err);

/* Keep the identity of a listener current.  The configuration must outlive the returned object. */
int slu_https_new(struct slu_loop *loop, struct slu_kube_client *client, struct slu_server *server,
		  int listener, const struct slu_config *config, const char *client_ca,
		  struct slu_https **out, struct slu_error *err);
/* Call this before server and client are freed.  NULL is fine. */
void slu_https_free(struct slu_https *h);
SLU_DEFINE_CLEANUP(struct slu_https, slu_https_free)
