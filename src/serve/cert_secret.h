/* cert_secret.h — a certificate that outlives the process: a bundle (certs.h) kept in a Secret.
 *
 * The keeper reads the Secret, creates it if it is missing, and renews the bundle when its authority or leaf is about
 * to expire or lacks a name; all replicas end up with the same bundle.  The keeper logs failures and tries
 * again.  Everything runs on the io loop's thread. */
#pragma once
#include "kube/client.h"
#include "serve/certs.h"

struct slu_cert_secret;

struct slu_cert_secret_setup {
	struct slu_loop *loop;
	struct slu_kube_client *client;
	const char *ns, *secret; /* must outlive the keeper, as must `dns` */
	const char *const *dns;
	uint32_t n_dns;
	const char *what; /* "webhook", "https": for the log */
	/* Called when the bundle is available, and when it was replaced.  Borrowed for the call. */
	void (*have)(void *arg, const struct slu_certs *c);
	void *arg;
};

/* Make a keeper and start it.  -EINVAL for a name that no certificate can carry. */
int slu_cert_secret_new(const struct slu_cert_secret_setup *setup, struct slu_cert_secret **out,
			struct slu_error *err);
/* Free the keeper; `have` is not called afterwards.  NULL is fine. */
void slu_cert_secret_free(struct slu_cert_secret *k);
SLU_DEFINE_CLEANUP(struct slu_cert_secret, slu_cert_secret_free)
