#include "serve/webhook.h"

#include <stdio.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "control/io/feed.h"
#include "control/rules/group.h"
#include "control/rules/hold.h"
#include "kube/write.h"
#include "net/server.h"
#include "serve/admit.h"
#include "serve/budget.h"
#include "serve/cert_secret.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define HOLD_PATH "/hold-v1-sluice" /* called only for namespaces that are held */
#define BODY_MAX  (8u << 20)
#define PEM_MAX   (1u << 20)
#define RETRY_NS  (10 * SLU_NS_PER_S)

struct slu_webhook {
	struct slu_loop *loop;
	struct slu_kube_client *client;
	const struct slu_config *config;
	const struct slu_feed *feed;
	struct slu_server *server;
	struct slu_addr addr;
	int listener; /* -1: not open yet */
	struct slu_cert_secret *cert;
	struct slu_budget *budget; /* time for callers without a certificate */
	struct slu_buf client_ca;  /* PEM of webhook.clientCA; empty: callers need no certificate */
	char *ca;                  /* PEM of the authority in use; NULL: none yet */
	struct slu_timer again;
	bool busy; /* a request is under way: its answer uses this struct */
	bool dead; /* the owner has freed it: the answer frees the memory */
};

static void find_hooks(void *arg);

static void free_webhook(struct slu_webhook *w)
{
	slu_budget_free(w->budget);
	slu_buf_done(&w->client_ca);
	slu_free(w->ca);
	slu_free(w);
}

static void retry_setup(struct slu_webhook *w, const char *doing, const char *why)
{
	slu_log(SLU_WARN, "webhook not ready", SLU_STR("doing", doing), SLU_STR("err", why));
	slu_timer_start(&w->again, w->loop, RETRY_NS, find_hooks, w);
}

/* Every callback of a request begins with this: false if the webhook was freed in the meantime. */
static bool webhook_is_alive(struct slu_webhook *w)
{
	bool dead = w->dead;

	w->busy = false;
	if (dead)
		free_webhook(w);
	return !dead;
}

/* Called after every request was sent, with the result of sending. */
static void request_sent(struct slu_webhook *w, int rc, const char *doing)
{
	if (!rc)
		w->busy = true;
	else
		retry_setup(w, doing, strerror(-rc));
}

/* ---- the answers ---- */

static bool claim_bound(void *arg, const char *ns, const char *claim)
{
	const struct slu_webhook *w = arg;
	const struct slu_kobj *o = slu_feed_find(w->feed, SLU_KIND_PVC, ns, claim);

	return o && *slu_kpvc(o)->volume;
}

/* How work of the namespace is held.  The API server calls HOLD_PATH only for namespaces that it knows to be held,
 * perhaps before our watch has reported their label. */
static enum slu_held_mode mode_of(const struct slu_webhook *w, const char *space, bool asked)
{
	const struct slu_kobj *o = slu_feed_find(w->feed, SLU_KIND_NAMESPACE, "", space);
	enum slu_held_mode m = o ? slu_held_space(w->config, &o->meta) : SLU_HELD_OFF;
	struct slu_kpair said = { SLU_HELD_SPACE, "true" };
	struct slu_kmeta fresh = { .name = space, .labels = &said, .nlabels = 1 };

	if (m == SLU_HELD_OFF && asked && *space)
		m = slu_held_space(w->config, &fresh);
	return m;
}

/* Whether the caller has shown a certificate of webhook.clientCA (the handshake has checked that) with the name of the
 * permitted caller. */
static bool vouched_for(const struct slu_webhook *w, const struct slu_http_request *q)
{
	const char *name = w->config->webhook.client_name;

	return w->client_ca.n && q->client_cn && (!*name || !strcmp(name, q->client_cn));
}

static void review(struct slu_webhook *w, struct slu_exchange *x)
{
	const struct slu_http_request *q = slu_exchange_request(x);
	struct slu_admit_rules rules = { .scheduler = w->config->scheduler_names.p,
					 .n_scheduler = w->config->scheduler_names.n,
					 .controller = w->config->webhook.controllers.p,
					 .n_controller = w->config->webhook.controllers.n,
					 .claim_bound = claim_bound,
					 .arg = w,
					 .check = slu_group_check_pair,
					 .max_size = w->config->jobs.max_size,
					 .known = slu_key_check };
	char space[256] = "";
	enum slu_held_mode mode;
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_error err = { 0 };
	int rc;

	/* If the review cannot be read, slu_admit() will say so. */
	(void)(slu_admit_namespace(q->body, q->body_len, space, sizeof space, &err) < 0);
	mode = mode_of(w, space, strcmp(q->path, HOLD_PATH) == 0);
	rules.hold = mode != SLU_HELD_OFF;
	rules.binds = mode == SLU_HELD_BIND;
	rules.held_scheduler = mode == SLU_HELD_COMPATIBLE ? SLU_HELD_SCHEDULER : NULL;
	rc = slu_admit(q->body, q->body_len, &rules, slu_clock_wall_us(), &b, &err);
	if (!rc)
		slu_http_reply(x, 200, "application/json", b.p, b.n);
	else
		slu_http_reply_text(x, rc == -EINVAL ? 400 : 500, "%s\n",
				    rc == -EINVAL ? err.text : strerror(-rc));
	slu_buf_done(&b);
}

/* Any client that reaches the port may post reviews.  Reading one takes the io thread up to 0.15 s, so
 * callers without a certificate get only a share of that thread's time. */
static void answer_review(struct slu_exchange *x, void *arg)
{
	struct slu_webhook *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	bool known = vouched_for(w, q);
	int64_t from = slu_clock_ns();
	char peer[64];

	if (q->method != SLU_HTTP_POST) {
		slu_http_reply_text(x, 405, "post an AdmissionReview\n");
	} else if (w->client_ca.n && !known) {
		slu_http_reply_text(x, 403, "webhook.clientCA: a client certificate is needed\n");
	} else if (!known && !slu_budget_allows(w->budget, q->peer, from)) {
		slu_http_reply_text(x, 429, "too many reviews from this address\n");
	} else {
		snprintf(peer, sizeof peer, "%s", q->peer);
		review(w, x); /* answers, and so ends the exchange */
		if (!known)
			slu_budget_spend(w->budget, peer, slu_clock_ns() - from, from);
	}
}

/* ---- telling the API server which authority to trust ---- */

static void authority_written(void *arg, const struct slu_kube_reply *r)
{
	struct slu_webhook *w = arg;

	if (!webhook_is_alive(w))
		return;
	if (r->outcome == SLU_KUBE_OK) {
		slu_log(SLU_INFO, "webhook ready", SLU_I64("port", slu_webhook_port(w)));
	} else if (r->outcome == SLU_KUBE_NOT_FOUND) {
		retry_setup(w, "writing the authority",
			    "no such MutatingWebhookConfiguration; apply deploy/webhook.yaml");
	} else {
		retry_setup(w, "writing the authority", r->error);
	}
}

/* Write the authority into every webhook of the MutatingWebhookConfiguration that was read. */
static void write_authority(struct slu_webhook *w, const struct slu_json *hooks)
{
	const struct slu_ktarget t = { .group = "admissionregistration.k8s.io",
				       .version = "v1",
				       .resource = "mutatingwebhookconfigurations",
				       .name = w->config->webhook.configuration };
	struct slu_buf b = SLU_BUF_INIT(1 << 20), ca = SLU_BUF_INIT(1 << 18);
	struct slu_jsonw j = slu_jsonw(&b, SLU_JSONW_COMPACT);
	int rc = slu_base64_encode(w->ca, strlen(w->ca), &ca);

	slu_jsonw_obj(&j);
	slu_jsonw_key(&j, "webhooks");
	slu_jsonw_arr(&j);
	slu_json_each (hooks, it) {
		slu_jsonw_obj(&j);
		slu_jsonw_kstr(&j, "name", slu_json_str_or(slu_json_get(it.val, "name"), ""));
		slu_jsonw_key(&j, "clientConfig");
		slu_jsonw_obj(&j);
		slu_jsonw_kstr(&j, "caBundle", slu_buf_str(&ca));
		slu_jsonw_end_obj(&j);
		slu_jsonw_end_obj(&j);
	}
	slu_jsonw_end_arr(&j);
	slu_jsonw_end_obj(&j);
	if (!rc)
		rc = b.error;
	if (!rc)
		rc = slu_kube_patch(w->client, &t, SLU_KPATCH_STRATEGIC, b.p, b.n,
				    &(struct slu_kpatch_options){ 0 },
				    (struct slu_kdone){ authority_written, w });
	request_sent(w, rc, "writing the authority");
	slu_buf_done(&b);
	slu_buf_done(&ca);
}

static void on_hooks_found(void *arg, const struct slu_kube_reply *r)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_webhook *w = arg;
	struct slu_error err = { 0 };

	if (r->outcome != SLU_KUBE_OK)
		authority_written(arg, r);
	else if (!webhook_is_alive(w))
		return;
	else if (slu_json_parse(r->body, r->body_len, NULL, &doc, &err) < 0)
		retry_setup(w, "writing the authority", err.text);
	else
		write_authority(w, slu_json_get(slu_json_root(doc), "webhooks"));
}

static void find_hooks(void *arg)
{
	struct slu_webhook *w = arg;
	const struct slu_ktarget t = { .group = "admissionregistration.k8s.io",
				       .version = "v1",
				       .resource = "mutatingwebhookconfigurations",
				       .name = w->config->webhook.configuration };

	if (!w->busy)
		request_sent(
			w,
			slu_kube_get(w->client, &t, NULL, (struct slu_kdone){ on_hooks_found, w }),
			"reading the configuration");
}

/* ---- the port ---- */

static int open_port(struct slu_webhook *w, const struct slu_certs *c, struct slu_error *err)
{
	struct slu_tls_server_options o = {
		.cert = { c->cert, strlen(c->cert) },
		.key = { c->key, strlen(c->key) },
		.cert_from = "the webhook's Secret",
		.key_from = "the webhook's Secret",
		.client_ca = { slu_buf_str(&w->client_ca), w->client_ca.n },
		.ca_from = w->config->webhook.client_ca,
	};
	slu_cleanup(slu_tls_unrefp) struct slu_tls *tls = NULL;
	int rc = slu_tls_server_new(&o, &tls, err);

	if (rc < 0)
		return rc;
	if (w->listener >= 0) {
		slu_server_tls(w->server, w->listener, tls);
		return 0;
	}
	rc = slu_server_listen(w->server, &w->addr, tls, 0, err);
	if (rc < 0)
		return rc;
	w->listener = rc;
	return 0;
}

static void use_certificate(void *arg, const struct slu_certs *c)
{
	struct slu_webhook *w = arg;
	struct slu_error err = { 0 };
	char *ca = slu_strdup(c->ca_cert);

	if (!ca || open_port(w, c, &err) < 0) {
		slu_log(SLU_ERROR, "webhook not ready", SLU_STR("doing", "opening the port"),
			SLU_STR("err", ca ? err.text : "no memory"));
		slu_free(ca);
		return;
	}
	slu_free(w->ca);
	w->ca = ca;
	find_hooks(w);
}

/* ---- starting and stopping ---- */

int slu_webhook_new(struct slu_loop *loop, struct slu_kube_client *client,
		    const struct slu_config *config, const struct slu_feed *feed,
		    struct slu_webhook **out, struct slu_error *err)
{
	struct slu_webhook *w = slu_calloc(1, sizeof *w);
	int rc;

	if (!w)
		return slu_fail(err, -ENOMEM, "out of memory");
	w->loop = loop;
	w->client = client;
	w->config = config;
	w->feed = feed;
	w->listener = -1;
	w->client_ca = SLU_BUF_INIT(PEM_MAX);
	rc = slu_addr_parse(config->webhook.listen, &w->addr, err);
	if (rc < 0)
		rc = slu_fail_prefix(err, rc, "webhook.listen");
	if (!rc && *config->webhook.client_ca) {
		rc = slu_file_read(config->webhook.client_ca, &w->client_ca);
		if (!rc && !w->client_ca.n)
			rc = -ENODATA;
		if (rc < 0)
			slu_fail(err, rc, "webhook.clientCA: %s: %s", config->webhook.client_ca,
				 strerror(-rc));
	}
	if (!rc) {
		w->budget = slu_budget_new();
		rc = w->budget ? 0 : slu_fail(err, -ENOMEM, "out of memory");
	}
	if (!rc) {
		w->server = slu_server_new(
			loop, &(struct slu_server_options){
				      .handler = answer_review, .arg = w, .max_body = BODY_MAX });
		rc = w->server ? 0 : slu_fail(err, -ENOMEM, "out of memory");
	}
	if (!rc)
		rc = slu_cert_secret_new(
			&(struct slu_cert_secret_setup){ .loop = loop,
							 .client = client,
							 .ns = config->webhook.ns,
							 .secret = config->webhook.secret,
							 .dns = config->webhook.names.p,
							 .n_dns = config->webhook.names.n,
							 .what = "webhook",
							 .have = use_certificate,
							 .arg = w },
			&w->cert, err);
	if (rc < 0) {
		slu_server_free(w->server);
		free_webhook(w);
		return rc;
	}
	*out = w;
	return 0;
}

void slu_webhook_free(struct slu_webhook *w)
{
	if (!w)
		return;
	slu_timer_stop(&w->again);
	slu_cert_secret_free(w->cert);
	slu_server_free(w->server);
	w->server = NULL;
	w->dead = true;
	if (!w->busy)
		free_webhook(w);
}

uint16_t slu_webhook_port(const struct slu_webhook *w)
{
	return w && w->listener >= 0 ? slu_server_port(w->server, w->listener) : 0;
}

void slu_webhook_config(struct slu_webhook *w, const struct slu_config *config)
{
	if (w)
		w->config = config;
}
