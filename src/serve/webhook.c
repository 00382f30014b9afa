#include "serve/webhook.h"

#include <time.h>

#include "base/base64.h"
#include "base/log.h"
#include "control/feed.h"
#include "control/group.h"
#include "control/held.h"
#include "kube/write.h"
#include "net/server.h"
#include "serve/admit.h"
#include "serve/certs.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define HOLD_PATH "/hold-v1-sluice" /* asked only about namespaces that are held */
#define BODY_MAX  (8u << 20)
#define RETRY_NS  (10 * SLU_NS_PER_S)
#define LOOK_NS   (6 * 3600 * SLU_NS_PER_S)

/* The Secret's keys, in the order of struct slu_certs. */
static const char *const secret_key[] = { "ca.crt", "ca.key", "tls.crt", "tls.key" };

struct slu_webhook {
	struct slu_loop *loop;
	struct slu_kube_client *client;
	const struct slu_config *config;
	const struct slu_feed *feed;
	struct slu_server *server;
	struct slu_addr addr;
	int listener; /* -1: not open yet */
	struct slu_certs certs;
	struct slu_timer again;
	bool busy; /* a request is under way: its answer will find us */
	bool dead; /* freed meanwhile: the answer frees the rest */
};

static void look(void *arg);

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void destroy(struct slu_webhook *w)
{
	slu_certs_done(&w->certs);
	slu_free(w);
}

/* The end of one round: look again after a while. */
static void rest(struct slu_webhook *w, int64_t ns)
{
	slu_timer_start(&w->again, w->loop, ns, look, w);
}

static void retry(struct slu_webhook *w, const char *doing, const char *why)
{
	slu_log(SLU_WARN, "webhook is not ready", SLU_STR("doing", doing), SLU_STR("err", why));
	rest(w, RETRY_NS);
}

/* Every answer begins here. */
static bool alive(struct slu_webhook *w)
{
	w->busy = false;
	if (w->dead)
		destroy(w);
	return !w->dead;
}

/* Every request ends here: rc as the sending returned it. */
static void sent(struct slu_webhook *w, int rc, const char *doing)
{
	if (!rc)
		w->busy = true;
	else
		retry(w, doing, strerror(-rc));
}

/* ---- the answers ---- */

static bool claim_bound(void *arg, const char *ns, const char *claim)
{
	const struct slu_webhook *w = arg;
	const struct slu_kobj *o = slu_feed_find(w->feed, SLU_KIND_PVC, ns, claim);

	return o && *slu_kpvc(o)->volume;
}

/* How work of the namespace is treated.  The API server asks at the held path only about namespaces
 * it knows to be held, perhaps before our mirror does. */
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

static void answer(struct slu_exchange *x, void *arg)
{
	struct slu_webhook *w = arg;
	const struct slu_http_request *q = slu_exchange_request(x);
	struct slu_admit_rules rules = { .scheduler = w->config->scheduler_names.p,
					 .n_scheduler = w->config->scheduler_names.n,
					 .claim_bound = claim_bound,
					 .arg = w,
					 .check = slu_group_check_pair };
	char space[256] = "";
	enum slu_held_mode mode;
	struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_error err = { 0 };
	int rc;

	if (q->method != SLU_HTTP_POST) {
		slu_http_reply_text(x, 405, "post an AdmissionReview\n");
		return;
	}
	/* What cannot be read is answered by slu_admit(). */
	(void)(slu_admit_namespace(q->body, q->body_len, space, sizeof space, &err) < 0);
	mode = mode_of(w, space, strcmp(q->path, HOLD_PATH) == 0);
	rules.hold = mode != SLU_HELD_OFF;
	rules.held_scheduler = mode == SLU_HELD_COMPATIBLE ? SLU_HELD_SCHEDULER : NULL;
	rc = slu_admit(q->body, q->body_len, &rules, now_us(), &b, &err);
	if (!rc)
		slu_http_reply(x, 200, "application/json", b.p, b.n);
	else
		slu_http_reply_text(x, rc == -EINVAL ? 400 : 500, "%s\n",
				    rc == -EINVAL ? err.text : strerror(-rc));
	slu_buf_done(&b);
}

/* ---- telling the API server whom to trust ---- */

static void told(void *arg, const struct slu_kube_reply *r)
{
	struct slu_webhook *w = arg;

	if (!alive(w))
		return;
	if (r->outcome == SLU_KUBE_OK) {
		slu_log(SLU_INFO, "webhook answers", SLU_I64("port", slu_webhook_port(w)));
		rest(w, LOOK_NS);
	} else if (r->outcome == SLU_KUBE_NOT_FOUND) {
		retry(w, "telling the authority",
		      "no such MutatingWebhookConfiguration; apply deploy/webhook.yaml");
	} else {
		retry(w, "telling the authority", r->error);
	}
}

/* The authority goes into every webhook of the configuration that was read. */
static void tell(struct slu_webhook *w, const struct slu_json *hooks)
{
	const struct slu_ktarget t = { .group = "admissionregistration.k8s.io",
				       .version = "v1",
				       .resource = "mutatingwebhookconfigurations",
				       .name = w->config->webhook.configuration };
	struct slu_buf b = SLU_BUF_INIT(1 << 20), ca = SLU_BUF_INIT(1 << 18);
	struct slu_jsonw j = slu_jsonw(&b, SLU_JSONW_COMPACT);
	int rc = slu_base64_encode(w->certs.ca_cert, strlen(w->certs.ca_cert), &ca);

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
				    (struct slu_kdone){ told, w });
	sent(w, rc, "telling the authority");
	slu_buf_done(&b);
	slu_buf_done(&ca);
}

static void found(void *arg, const struct slu_kube_reply *r)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_webhook *w = arg;
	struct slu_error err = { 0 };

	if (r->outcome != SLU_KUBE_OK)
		told(arg, r);
	else if (!alive(w))
		return;
	else if (slu_json_parse(r->body, r->body_len, NULL, &doc, &err) < 0)
		retry(w, "telling the authority", err.text);
	else
		tell(w, slu_json_get(slu_json_root(doc), "webhooks"));
}

static void find_hooks(struct slu_webhook *w)
{
	const struct slu_ktarget t = { .group = "admissionregistration.k8s.io",
				       .version = "v1",
				       .resource = "mutatingwebhookconfigurations",
				       .name = w->config->webhook.configuration };

	sent(w, slu_kube_get(w->client, &t, NULL, (struct slu_kdone){ found, w }),
	     "reading the configuration");
}

/* ---- the port ---- */

static int open_port(struct slu_webhook *w, struct slu_error *err)
{
	struct slu_tls_server_options o = {
		.cert = { w->certs.cert, strlen(w->certs.cert) },
		.key = { w->certs.key, strlen(w->certs.key) },
		.cert_from = "the webhook's Secret",
		.key_from = "the webhook's Secret",
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

static void use(struct slu_webhook *w)
{
	struct slu_error err = { 0 };

	if (open_port(w, &err) < 0)
		retry(w, "opening the port", err.text);
	else
		find_hooks(w);
}

/* ---- the certificate in its Secret ---- */

static void kept(void *arg, const struct slu_kube_reply *r)
{
	struct slu_webhook *w = arg;

	if (!alive(w))
		return;
	if (r->outcome == SLU_KUBE_OK)
		use(w);
	else if (r->outcome == SLU_KUBE_EXISTS || r->outcome == SLU_KUBE_CONFLICT)
		look(w); /* another replica was faster: take its certificate */
	else
		retry(w, "keeping the certificate", r->error);
}

/* Write the bundle: a new Secret, or (with the version it was read in) in place of the old one. */
static void keep(struct slu_webhook *w, const char *version)
{
	const struct slu_config *c = w->config;
	const char *const pem[] = { w->certs.ca_cert, w->certs.ca_key, w->certs.cert,
				    w->certs.key };
	struct slu_ktarget t = { .version = "v1", .resource = "secrets", .ns = c->webhook.ns };
	struct slu_buf b = SLU_BUF_INIT(1 << 20), v = SLU_BUF_INIT(1 << 18);
	struct slu_jsonw j = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct slu_kdone done = { kept, w };
	int rc = 0;

	slu_jsonw_obj(&j);
	slu_jsonw_kstr(&j, "apiVersion", "v1");
	slu_jsonw_kstr(&j, "kind", "Secret");
	slu_jsonw_key(&j, "metadata");
	slu_jsonw_obj(&j);
	slu_jsonw_kstr(&j, "name", c->webhook.secret);
	slu_jsonw_kstr(&j, "namespace", c->webhook.ns);
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
		rc = slu_kube_create(w->client, &t, b.p, b.n, done);
	t.name = c->webhook.secret;
	if (!rc && version)
		rc = slu_kube_replace(w->client, &t, b.p, b.n, done);
	sent(w, rc, "keeping the certificate");
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

		/* What cannot be read is as good as missing: it is made anew. */
		if (rc == -EINVAL)
			slu_buf_reset(&b);
		*field[i] = slu_buf_take(&b);
		if (!*field[i])
			return -ENOMEM;
	}
	return 0;
}

/* Bring the bundle into order; *version is that of the Secret it came from, NULL: there is none. */
static void settle(struct slu_webhook *w, const char *version)
{
	const char *const *dns = w->config->webhook.names.p;
	uint32_t n = w->config->webhook.names.n;
	struct slu_error err = { 0 };
	int64_t now_s = time(NULL);
	int rc = 0;

	switch (slu_certs_check(&w->certs, dns, n, now_s, &err)) {
	case SLU_CERTS_GOOD:
		use(w);
		return;
	case SLU_CERTS_LEAF_DUE:
		rc = slu_certs_renew(&w->certs, dns, n, now_s, &err);
		break;
	case SLU_CERTS_UNUSABLE:
		slu_certs_done(&w->certs);
		rc = slu_certs_make(&w->certs, dns, n, now_s, &err);
		break;
	}
	if (rc < 0)
		retry(w, "making a certificate", err.text);
	else
		keep(w, version);
}

static void read_back(void *arg, const struct slu_kube_reply *r)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_webhook *w = arg;
	struct slu_error err = { 0 };
	const struct slu_json *root;
	int rc = 0;

	if (!alive(w))
		return;
	slu_certs_done(&w->certs);
	if (r->outcome == SLU_KUBE_NOT_FOUND) {
		settle(w, NULL);
		return;
	}
	if (r->outcome != SLU_KUBE_OK) {
		retry(w, "reading the certificate", r->error);
		return;
	}
	rc = slu_json_parse(r->body, r->body_len, NULL, &doc, &err);
	root = slu_json_root(doc);
	if (!rc)
		rc = read_secret(root, &w->certs);
	if (rc < 0)
		retry(w, "reading the certificate", *err.text ? err.text : strerror(-rc));
	else
		settle(w, slu_json_str_or(slu_json_dig(root, "metadata", "resourceVersion", NULL),
					  ""));
}

static void look(void *arg)
{
	struct slu_webhook *w = arg;
	const struct slu_ktarget t = { .version = "v1",
				       .resource = "secrets",
				       .ns = w->config->webhook.ns,
				       .name = w->config->webhook.secret };

	sent(w, slu_kube_get(w->client, &t, NULL, (struct slu_kdone){ read_back, w }),
	     "reading the certificate");
}

/* ---- the whole ---- */

int slu_webhook_new(struct slu_loop *loop, struct slu_kube_client *client,
		    const struct slu_config *config, const struct slu_feed *feed,
		    struct slu_webhook **out, struct slu_error *err)
{
	struct slu_webhook *w = slu_calloc(1, sizeof *w);
	struct slu_certs probe = { 0 };
	int rc;

	if (!w)
		return slu_fail(err, -ENOMEM, "out of memory");
	w->loop = loop;
	w->client = client;
	w->config = config;
	w->feed = feed;
	w->listener = -1;
	rc = slu_addr_parse(config->webhook.listen, &w->addr, err);
	if (rc < 0)
		rc = slu_fail_prefix(err, rc, "webhook.listen");
	/* Names that no certificate can carry are told at start, not in the log later. */
	if (!rc)
		rc = slu_certs_make(&probe, config->webhook.names.p, config->webhook.names.n,
				    time(NULL), err);
	slu_certs_done(&probe);
	if (!rc) {
		w->server = slu_server_new(
			loop, &(struct slu_server_options){
				      .handler = answer, .arg = w, .max_body = BODY_MAX });
		rc = w->server ? 0 : slu_fail(err, -ENOMEM, "out of memory");
	}
	if (rc < 0) {
		destroy(w);
		return rc;
	}
	look(w);
	*out = w;
	return 0;
}

void slu_webhook_free(struct slu_webhook *w)
{
	if (!w)
		return;
	slu_timer_stop(&w->again);
	slu_server_free(w->server);
	w->server = NULL;
	w->dead = true;
	if (!w->busy)
		destroy(w);
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
