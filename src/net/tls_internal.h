/* tls_internal.h — between tls.c and conn.c only. */
#pragma once
#include "net/tls.h"

#include <openssl/ssl.h>

/* A session for one connection; `host` is what the client verifies (name or literal IP). */
SSL *slu_tls_session(struct slu_tls *t, const char *host, struct slu_error *err);
void slu_tls_session_free(SSL *ssl);

/* Turn a failed SSL call into a negative errno and a sentence; clears the error queue.
 * `ret` is what the call returned, `what` "handshake", "read" or "write". */
int slu_tls_explain(SSL *ssl, int ret, const char *what, struct slu_error *err);

/* Subject CN of the peer's verified certificate (malloc'ed) or NULL. */
char *slu_tls_peer_cn(SSL *ssl);
