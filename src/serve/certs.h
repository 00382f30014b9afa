/* certs.h — the webhook's own certificate authority: the daemon makes it and needs no cert-manager.
 *
 * A bundle is a CA and a leaf signed by it, each with its key, as PEM text.  cert_secret.h keeps the bundle in a
 * Secret that all replicas use.  The CA's certificate goes into the webhook configuration,
 * so the API server trusts exactly this leaf.  Keys are P-256, digests SHA-256. */
#pragma once
#include "base/base.h"

struct slu_certs {
	char *ca_cert, *ca_key;
	char *cert, *key;
};

/* How long CA and leaf are valid, and how long before its end the leaf is renewed. */
#define SLU_CERTS_CA_DAYS    3650
#define SLU_CERTS_LEAF_DAYS  365
#define SLU_CERTS_RENEW_DAYS 90

/* Make a CA and a leaf for the given DNS names (at most 16), valid from a day before `now_s` (for clocks that are
 * slow).  0, -EINVAL (no name, or a name with odd characters), -ENOMEM, or -EIO (OpenSSL). */
int slu_certs_make(struct slu_certs *out, const char *const *dns, uint32_t n, int64_t now_s,
		   struct slu_error *err);

/* Make a new leaf with the CA of the bundle. */
int slu_certs_renew(struct slu_certs *c, const char *const *dns, uint32_t n, int64_t now_s,
		    struct slu_error *err);

enum slu_certs_state {
	SLU_CERTS_GOOD,
	SLU_CERTS_LEAF_DUE, /* renew the leaf: near its end, or a name is missing */
	SLU_CERTS_UNUSABLE, /* make a new bundle: the CA is near its end or broken, or a key does not match */
};

/* What has to be done with a bundle from the Secret; `err` has the reason. */
enum slu_certs_state slu_certs_check(const struct slu_certs *c, const char *const *dns, uint32_t n,
				     int64_t now_s, struct slu_error *err);

/* Overwrite the keys and free the bundle. */
void slu_certs_done(struct slu_certs *c);
