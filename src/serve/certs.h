/* certs.h — the webhook's own certificate authority: made in process, no cert-manager.
 *
 * A bundle is a CA and a leaf signed by it, each with its key, as PEM text.  It is kept in a
 * Secret; all replicas use the same one.  The CA's certificate goes into the webhook configuration,
 * so the API server trusts exactly this leaf.  P-256, SHA-256. */
#pragma once
#include "base/base.h"

struct slu_certs {
	char *ca_cert, *ca_key;
	char *cert, *key;
};

/* How long each lives, and how early the leaf is renewed. */
#define SLU_CERTS_CA_DAYS    3650
#define SLU_CERTS_LEAF_DAYS  365
#define SLU_CERTS_RENEW_DAYS 90

/* A new CA and a leaf for the given DNS names (at most 16), valid from `now_s` (a day of grace for
 * clocks that lag).  0, -EINVAL (no name, a name with odd characters), -ENOMEM, -EIO (OpenSSL). */
int slu_certs_make(struct slu_certs *out, const char *const *dns, uint32_t n, int64_t now_s,
		   struct slu_error *err);

/* A new leaf from the CA that is there. */
int slu_certs_renew(struct slu_certs *c, const char *const *dns, uint32_t n, int64_t now_s,
		    struct slu_error *err);

enum slu_certs_state {
	SLU_CERTS_GOOD,
	SLU_CERTS_LEAF_DUE, /* renew the leaf: near its end, or a name is missing */
	SLU_CERTS_UNUSABLE, /* make all again: the CA is near its end or broken, or a key does not fit */
};

/* What to do with a bundle that was read back; err holds the reason in words. */
enum slu_certs_state slu_certs_check(const struct slu_certs *c, const char *const *dns, uint32_t n,
				     int64_t now_s, struct slu_error *err);

/* Overwrites the keys before freeing them. */
void slu_certs_done(struct slu_certs *c);
