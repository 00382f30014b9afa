#include "serve/auth.h"

#include <stdio.h>

#include "base/map.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define KEEP_NS  (10 * SLU_NS_PER_S)
#define KEPT_MAX 1024u

struct slu_auth {
	struct slu_kube_client *client;
	struct slu_map kept; /* hash of (token, method, path) -> until, ns; allowed ones only */
};

struct check {
	struct slu_auth *a;
	struct slu_exchange *x;
	slu_auth_fn *fn;
	void *arg;
	uint64_t key;
};

struct slu_auth *slu_auth_new(struct slu_kube_client *client)
{
	struct slu_auth *a = slu_calloc(1, sizeof *a);

	if (a)
		a->client = client;
	return a;
}

void slu_auth_free(struct slu_auth *a)
{
	if (!a)
		return;
	slu_map_done(&a->kept);
	slu_free(a);
}

static void finish(struct check *c, int status, const char *why)
{
	if (status == 200) {
		if (c->a->kept.n >= KEPT_MAX)
			slu_map_clear(&c->a->kept);
		(void)(slu_map_put(&c->a->kept, c->key, (uint64_t)(slu_clock_ns() + KEEP_NS)) < 0);
	}
	c->fn(c->arg, c->x, status, why);
	slu_free(c);
}

static const char *verb_of(const struct slu_http_request *q)
{
	return q->method == SLU_HTTP_GET ? "get" : q->method == SLU_HTTP_POST ? "post" : "other";
}

static void refuse(struct check *c)
{
	const struct slu_http_request *q = slu_exchange_request(c->x);
	char why[300];

	snprintf(
		why, sizeof why,
		"not allowed; a ClusterRole with nonResourceURLs \"%.150s\" and verb \"%s\" is needed",
		q->path, verb_of(q));
	finish(c, 403, why);
}

static int post(struct check *c, const char *group, const char *plural, struct slu_buf *body,
		slu_kube_done_fn *done)
{
	struct slu_buf path = SLU_BUF_INIT(256);
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .done = done,
				      .arg = c,
				      .repeatable = true,
				      .timeout_ns = 5 * SLU_NS_PER_S };
	int rc = slu_kube_path(&path, group, "v1", NULL, plural, NULL, NULL);

	if (!rc)
		rc = body->error;
	q.path = path.p;
	q.body = body->p;
	q.body_len = body->n;
	if (!rc)
		rc = slu_kube_send(c->a->client, &q, NULL);
	slu_buf_done(&path);
	slu_buf_done(body);
	return rc;
}

static void access_done(void *arg, const struct slu_kube_reply *r)
{
	struct check *c = arg;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *st;

	if (r->outcome != SLU_KUBE_OK ||
	    slu_json_parse(r->body, r->body_len, NULL, &doc, NULL) < 0) {
		finish(c, 503, "the API server does not say whether this is allowed");
		return;
	}
	st = slu_json_get(slu_json_root(doc), "status");
	if (slu_json_bool_or(slu_json_get(st, "allowed"), false))
		finish(c, 200, "");
	else
		refuse(c);
}

static void token_done(void *arg, const struct slu_kube_reply *r)
{
	struct check *c = arg;
	const struct slu_http_request *q = slu_exchange_request(c->x);
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const struct slu_json *st, *user;

	if (r->outcome != SLU_KUBE_OK ||
	    slu_json_parse(r->body, r->body_len, NULL, &doc, NULL) < 0) {
		finish(c, 503, "the API server does not say whose token this is");
		return;
	}
	st = slu_json_get(slu_json_root(doc), "status");
	user = slu_json_get(st, "user");
	if (!slu_json_bool_or(slu_json_get(st, "authenticated"), false)) {
		finish(c, 401, "the token is not valid in this cluster");
		return;
	}
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "authorization.k8s.io/v1");
	slu_jsonw_kstr(&w, "kind", "SubjectAccessReview");
	slu_jsonw_key(&w, "spec");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "user", slu_json_str_or(slu_json_get(user, "username"), ""));
	if (slu_json_get(user, "groups")) {
		slu_jsonw_key(&w, "groups");
		slu_jsonw_value(&w, slu_json_get(user, "groups"));
	}
	slu_jsonw_key(&w, "nonResourceAttributes");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "path", q->path);
	slu_jsonw_kstr(&w, "verb", verb_of(q));
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	if (post(c, "authorization.k8s.io", "subjectaccessreviews", &b, access_done) < 0)
		finish(c, 503, "cannot ask the API server");
}

void slu_auth_check(struct slu_auth *a, struct slu_exchange *x, slu_auth_fn *fn, void *arg)
{
	const struct slu_http_request *q = slu_exchange_request(x);
	const char *h = slu_headers_get(q->headers, "authorization");
	const char *token = h && !strncasecmp(h, "Bearer ", 7) ? h + 7 : NULL;
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct check *c;
	uint64_t *until;

	if (!token || !*token) {
		fn(arg, x, 401, "a Kubernetes bearer token is needed");
		return;
	}
	c = slu_calloc(1, sizeof *c);
	if (!c) {
		fn(arg, x, 503, "out of memory");
		return;
	}
	*c = (struct check){ .a = a, .x = x, .fn = fn, .arg = arg };
	c->key = slu_hash_bytes(token, strlen(token)) * 31 ^
		 slu_hash_bytes(q->path, strlen(q->path)) ^ (uint64_t)q->method;
	until = slu_map_get(&a->kept, c->key);
	if (until && (int64_t)*until > slu_clock_ns()) {
		fn(arg, x, 200, "");
		slu_free(c);
		return;
	}
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "authentication.k8s.io/v1");
	slu_jsonw_kstr(&w, "kind", "TokenReview");
	slu_jsonw_key(&w, "spec");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "token", token);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	if (post(c, "authentication.k8s.io", "tokenreviews", &b, token_done) < 0)
		finish(c, 503, "cannot ask the API server");
}
