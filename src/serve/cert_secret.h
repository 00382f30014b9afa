/* cert_secret.h — a certificate that outlives the process: a bundle (certs.h) kept in a Secret.
 *
 * The Secret is read, made when it is missing, and put in order when its authority or leaf comes to
 * its end or lacks a name; all replicas end up with the same bundle.  Failures are logged and tried
 * again.  All on the io loop's thread. */
#pragma once
#include "kube/client.h"
#include "serve/certs.h"

struct slu_cert_secret;

struct slu_cert_secret_setup {
	struct slu_loop *loop;
	struct slu_kube_client *client;
	const char *ns, *secret; /* must outlive this, as the names */
	const char *const *dns;
	uint32_t n_dns;
	const char *what; /* "webhook", "https": for the log */
	/* Called when the bundle is there, or has been replaced.  Borrowed for the call. */
	void (*have)(void *arg, const struct slu_certs *c);
	void *arg;
};

/* Starts at once.  -EINVAL for a name that no certificate can carry. */
int slu_cert_secret_new(const struct slu_cert_secret_setup *setup, struct slu_cert_secret **out,
			struct slu_error *err);
/* No call of `have` after this.  NULL is fine. */
void slu_cert_secret_free(struct slu_cert_secret *k);
SLU_DEFINE_CLEANUP(struct slu_cert_secret, slu_cert_secret_free)
