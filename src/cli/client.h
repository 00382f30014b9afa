/* client.h — a question to a running sluiced and its answer: over its unix socket, or over HTTPS
 * with a Kubernetes token. */
#pragma once
#include "base/buf.h"
#include "net/http.h"

struct slu_client {
	const char
		*server; /* "unix:PATH", "https://HOST:PORT"; NULL: $SLUICE_SERVER or the socket */
	const char *token; /* file with the bearer token; NULL: $SLUICE_TOKEN_FILE or none */
	const char *ca;    /* file with the certificate to trust; NULL: the system's */
	bool insecure;     /* trust any certificate */
};

/* Send the request, wait for the whole answer.  0 for any answer (*status tells); -ECONNREFUSED,
 * -ETIMEDOUT, -EINVAL ... with a sentence that names the server. */
int slu_client_ask(const struct slu_client *d, enum slu_http_method method, const char *path,
		   struct slu_buf *body, int *status, struct slu_error *err);
