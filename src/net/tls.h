/* tls.h — trusted authorities and our own identity, for both ends of a connection.  Uses OpenSSL. */
#pragma once
#include "base/base.h"

struct slu_tls; /* immutable once made, reference-counted, one thread */

struct slu_pem {
	const char *p;
	size_t n;
};

struct slu_tls_client_options {
	struct slu_pem ca; /* trusted roots; empty: the system's */
	struct slu_pem cert, key;
	const char *cert_from, *key_from, *ca_from; /* for messages: file or field they came from */
	const char *server_name; /* name to ask for and to verify instead of the host; NULL */
	bool insecure;           /* verify nothing */
	const char *alpn;        /* "h2"; NULL: none */
};

/* A client context.  -EINVAL with the place named when certificate or key cannot be read or do
 * not belong together. */
int slu_tls_client_new(const struct slu_tls_client_options *o, struct slu_tls **out,
		       struct slu_error *err);

struct slu_tls_server_options {
	struct slu_pem cert, key; /* certificate chain, leaf first */
	const char *cert_from, *key_from, *ca_from;
	struct slu_pem client_ca; /* empty: client certificates are not asked for */
	bool require_client;
};

/* A server context offering "h2" and "http/1.1".  To reload certificates make a new one and hand
 * it to slu_server_tls(): open connections keep the old one. */
int slu_tls_server_new(const struct slu_tls_server_options *o, struct slu_tls **out,
		       struct slu_error *err);

struct slu_tls *slu_tls_ref(struct slu_tls *t);
void slu_tls_unref(struct slu_tls *t);
SLU_DEFINE_CLEANUP(struct slu_tls, slu_tls_unref)

/* When our own certificate expires, in seconds since the epoch; INT64_MAX without one. */
int64_t slu_tls_not_after_s(const struct slu_tls *t);
