#include "serve/cert_secret.h"

#include <time.h>

#include "base/base64.h"
#include "base/log.h"
#include "kube/write.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define RETRY_NS     (10 * SLU_NS_PER_S)
#define RETRY_MAX_NS (600 * SLU_NS_PER_S)
#define LOOK_NS      (6 * 3600 * SLU_NS_PER_S)

/* The Secret's keys, in the order of struct slu_certs. */
static const char *const secret_key[] = { "ca.crt", "ca.key", "tls.crt", "tls.key" };

struct slu_cert_secret {
	struct slu_cert_secret_setup s;
	struct slu_certs certs;
	struct slu_timer again;
	int64_t pause_ns; /* before the next attempt; doubles each time */
	bool busy;        /* a request is under way: its answer uses this struct */
	bool dead;        /* the owner has freed it: the answer frees the memory */
};

static void look_at_secret(void *arg);

static void free_secret(struct slu_cert_secret *k)
{
	slu_certs_done(&k->certs);
	slu_free(k);
}

static void retry_secret(struct slu_cert_secret *k, const char *doing, const char *why)
{
	slu_log(SLU_WARN, "certificate not saved to its Secret", SLU_STR("of", k->s.what),
		SLU_STR("doing", doing), SLU_STR("secret", k->s.secret), SLU_STR("ns", k->s.ns),
		SLU_STR("err", why));
	slu_timer_start(&k->again, k->s.loop, k->pause_ns, look_at_secret, k);
	k->pause_ns = SLU_MIN(k->pause_ns * 2, RETRY_MAX_NS);
}

/* Every callback of a request begins with this: false if the keeper was freed in the meantime. */
static bool keeper_is_alive(struct slu_cert_secret *k)
{
	bool dead = k->dead;

	k->busy = false;
	if (dead)
		free_secret(k);
	return !dead;
}

/* Called after every request was sent, with the result of sending. */
static void request_sent(struct slu_cert_secret *k, int rc, const char *doing)
{
	if (!rc)
		k->busy = true;
	else
		retry_secret(k, doing, strerror(-rc));
}

static void use_certs(struct slu_cert_secret *k)
{
	k->pause_ns = RETRY_NS;
	slu_timer_start(&k->again, k->s.loop, LOOK_NS, look_at_secret, k);
	k->s.have(k->s.arg, &k->certs);
}

static void on_written(void *arg, const struct slu_kube_reply *r)
{
	struct slu_cert_secret *k = arg;

	if (!keeper_is_alive(k))
		return;
	if (r->outcome == SLU_KUBE_OK)
		use_certs(k);
	else if (r->outcome == SLU_KUBE_EXISTS || r->outcome == SLU_KUBE_CONFLICT)
		look_at_secret(k); /* another replica was faster: take its bundle */
	else
		retry_secret(k, "writing", r->error);
}

/* Create the Secret or, given the version in which it was read, replace it. */
static void write_secret(struct slu_cert_secret *k, const char *version)
{
	const char *const pem[] = { k->certs.ca_cert, k->certs.ca_key, k->certs.cert,
				    k->certs.key };
	struct slu_ktarget t = { .version = "v1", .resource = "secrets", .ns = k->s.ns };
	struct slu_buf b = SLU_BUF_INIT(1 << 20), v = SLU_BUF_INIT(1 << 18);
	struct slu_jsonw j = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct slu_kdone done = { on_written, k };
	int rc = 0;

	slu_jsonw_obj(&j);
	slu_jsonw_kstr(&j, "apiVersion", "v1");
	slu_jsonw_kstr(&j, "kind", "Secret");
	slu_jsonw_key(&j, "metadata");
	slu_jsonw_obj(&j);
	slu_jsonw_kstr(&j, "name", k->s.secret);
	slu_jsonw_kstr(&j, "namespace", k->s.ns);
	if (version)
		slu_jsonw_kstr(&j, "resourceVersion", version);
	slu_jsonw_end_obj(&j);
	slu_jsonw_kstr(&j, "type", "Opaque");
	slu_jsonw_key(&j, "data");
	slu_jsonw_obj(&j);
	for (size_t i = 0; i < SLU_LEN(pem) && !rc; i++) {
		slu_buf_reset(&v);
		rc = slu_base64_encode(pem[i], strlen(pem[i]), &v);
		slu_jsonw_kstr(&j, secret_key[i], slu_buf_str(&v));
	}
	slu_jsonw_end_obj(&j);
	slu_jsonw_end_obj(&j);
	if (!rc)
		rc = b.error;
	if (!rc && !version)
		rc = slu_kube_create(k->s.client, &t, b.p, b.n, done);
	t.name = k->s.secret;
	if (!rc && version)
		rc = slu_kube_replace(k->s.client, &t, b.p, b.n, done);
	request_sent(k, rc, "writing");
	slu_buf_done(&b);
	slu_buf_done(&v);
}

static int read_secret(const struct slu_json *secret, struct slu_certs *out)
{
	char **const field[] = { &out->ca_cert, &out->ca_key, &out->cert, &out->key };

	for (size_t i = 0; i < SLU_LEN(field); i++) {
		const struct slu_json *v = slu_json_dig(secret, "data", secret_key[i], NULL);
		struct slu_buf b = SLU_BUF_INIT(1 << 18);
		int rc = slu_json_is_str(v)
				 ? slu_base64_decode(slu_json_str(v), slu_json_count(v), &b)
				 : 0;

		/* A Secret that cannot be read counts as missing: make a new one. */
		if (rc == -EINVAL)
			slu_buf_reset(&b);
		*field[i] = slu_buf_take(&b);
		if (!*field[i])
			return -ENOMEM;
	}
	return 0;
}

/* Check the bundle and, if necessary, renew it; version NULL: there is no Secret. */
static void settle_bundle(struct slu_cert_secret *k, const char *version)
{
	struct slu_error err = { 0 };
	int64_t now_s = time(NULL);
	int rc = 0;

	switch (slu_certs_check(&k->certs, k->s.dns, k->s.n_dns, now_s, &err)) {
	case SLU_CERTS_GOOD:
		use_certs(k);
		return;
	case SLU_CERTS_LEAF_DUE:
		rc = slu_certs_renew(&k->certs, k->s.dns, k->s.n_dns, now_s, &err);
		break;
	case SLU_CERTS_UNUSABLE:
		slu_certs_done(&k->certs);
		rc = slu_certs_make(&k->certs, k->s.dns, k->s.n_dns, now_s, &err);
		break;
	}
	if (rc < 0)
		retry_secret(k, "making", err.text);
	else
		write_secret(k, version);
}

static void read_back(void *arg, const struct slu_kube_reply *r)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_cert_secret *k = arg;
	struct slu_error err = { 0 };
	const struct slu_json *root;
	int rc;

	if (!keeper_is_alive(k))
		return;
	slu_certs_done(&k->certs);
	if (r->outcome == SLU_KUBE_NOT_FOUND) {
		settle_bundle(k, NULL);
		return;
	}
	if (r->outcome != SLU_KUBE_OK) {
		retry_secret(k, "reading", r->error);
		return;
	}
	rc = slu_json_parse(r->body, r->body_len, NULL, &doc, &err);
	root = slu_json_root(doc);
	if (!rc)
		rc = read_secret(root, &k->certs);
	if (rc < 0)
		retry_secret(k, "reading", *err.text ? err.text : strerror(-rc));
	else
		settle_bundle(
			k, slu_json_str_or(slu_json_dig(root, "metadata", "resourceVersion", NULL),
					   ""));
}

static void look_at_secret(void *arg)
{
	struct slu_cert_secret *k = arg;
	const struct slu_ktarget t = {
		.version = "v1", .resource = "secrets", .ns = k->s.ns, .name = k->s.secret
	};

	request_sent(k, slu_kube_get(k->s.client, &t, NULL, (struct slu_kdone){ read_back, k }),
		     "reading");
}

int slu_cert_secret_new(const struct slu_cert_secret_setup *setup, struct slu_cert_secret **out,
			struct slu_error *err)
{
	struct slu_cert_secret *k = slu_calloc(1, sizeof *k);
	struct slu_certs probe = { 0 };
	int rc;

	if (!k)
		return slu_fail(err, -ENOMEM, "out of memory");
	k->s = *setup;
	k->pause_ns = RETRY_NS;
	/* Refuse names that no certificate can carry at start, rather than in the log later. */
	rc = slu_certs_make(&probe, setup->dns, setup->n_dns, time(NULL), err);
	slu_certs_done(&probe);
	if (rc < 0) {
		free_secret(k);
		return rc;
	}
	look_at_secret(k);
	*out = k;
	return 0;
}

void slu_cert_secret_free(struct slu_cert_secret *k)
{
	if (!k)
		return;
	slu_timer_stop(&k->again);
	k->dead = true;
	if (!k->busy)
		free_secret(k);
}
