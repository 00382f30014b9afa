/* TokenReview and SubjectAccessReview: who is calling, and what the caller may do. */
#include "base/vec.h"
#include "kube/write.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define BODY_MAX (1u << 20)

/* A review creates nothing, so it may be sent again; its callers do not wait long. */
static int ask_review(struct slu_kube_client *c, const char *group, const char *plural,
		      const struct slu_buf *body, slu_kube_done_fn *done, void *arg)
{
	slu_cleanup(slu_buf_done) struct slu_buf path = SLU_BUF_INIT(256);
	struct slu_kube_request q = { .method = SLU_HTTP_POST,
				      .body = body->p,
				      .body_len = body->n,
				      .repeatable = true,
				      .timeout_ns = 5 * SLU_NS_PER_S,
				      .done = done,
				      .arg = arg };
	int rc = body->error;

	if (!rc)
		rc = slu_kube_path(&path, group, "v1", NULL, plural, NULL, NULL);
	q.path = path.p;
	return rc ? rc : slu_kube_send(c, &q, NULL);
}

struct token_ask {
	slu_ktoken_fn *fn;
	void *arg;
};

static void token_done(void *arg, const struct slu_kube_reply *r)
{
	slu_cleanup(slu_freep) struct token_ask *a = arg;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	SLU_VEC(const char *) groups = { 0 };
	const struct slu_json *status, *user;
	struct slu_kuser u;
	int rc = 0;

	if (r->outcome != SLU_KUBE_OK) {
		a->fn(a->arg, -EIO, NULL, r->error);
		return;
	}
	if (slu_json_parse(r->body, r->body_len, NULL, &doc, NULL) < 0) {
		a->fn(a->arg, -EPROTO, NULL, "the answer to a TokenReview is not JSON");
		return;
	}
	status = slu_json_get(slu_json_root(doc), "status");
	user = slu_json_get(status, "user");
	if (!slu_json_bool_or(slu_json_get(status, "authenticated"), false) || !user) {
		a->fn(a->arg, 0, NULL, slu_json_str_or(slu_json_get(status, "error"), ""));
		return;
	}
	slu_json_each (slu_json_get(user, "groups"), it) {
		if (slu_json_is_str(it.val) && rc == 0)
			rc = slu_vec_push(&groups, slu_json_str(it.val));
	}
	u = (struct slu_kuser){
		.name = slu_json_str_or(slu_json_get(user, "username"), ""),
		.uid = slu_json_str_or(slu_json_get(user, "uid"), ""),
		.groups = groups.p,
		.ngroups = groups.n,
	};
	if (rc < 0)
		a->fn(a->arg, -ENOMEM, NULL, "no memory for a TokenReview");
	else
		a->fn(a->arg, 1, &u, "");
	slu_vec_done(&groups);
}

int slu_kube_token_review(struct slu_kube_client *c, const char *token, const char *audience,
			  slu_ktoken_fn *fn, void *arg)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct token_ask *a = slu_malloc(sizeof *a);
	int rc;

	if (!a)
		return -ENOMEM;
	*a = (struct token_ask){ fn, arg };
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "authentication.k8s.io/v1");
	slu_jsonw_kstr(&w, "kind", "TokenReview");
	slu_jsonw_key(&w, "spec");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "token", token);
	if (audience) {
		slu_jsonw_key(&w, "audiences");
		slu_jsonw_arr(&w);
		slu_jsonw_str(&w, audience);
		slu_jsonw_end_arr(&w);
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	rc = ask_review(c, "authentication.k8s.io", "tokenreviews", &b, token_done, a);
	/* the token must not stay in memory */
	if (b.p)
		explicit_bzero(b.p, b.n);
	if (rc < 0)
		slu_free(a);
	return rc;
}

struct access_ask {
	slu_kaccess_fn *fn;
	void *arg;
};

static void access_done(void *arg, const struct slu_kube_reply *r)
{
	slu_cleanup(slu_freep) struct access_ask *a = arg;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *status;
	const char *reason;

	if (r->outcome != SLU_KUBE_OK) {
		a->fn(a->arg, -EIO, r->error);
		return;
	}
	if (slu_json_parse(r->body, r->body_len, NULL, &doc, NULL) < 0) {
		a->fn(a->arg, -EPROTO, "the answer to a SubjectAccessReview is not JSON");
		return;
	}
	status = slu_json_get(slu_json_root(doc), "status");
	reason = slu_json_str_or(slu_json_get(status, "reason"), "");
	if (!reason[0])
		reason = slu_json_str_or(slu_json_get(status, "evaluationError"), "");
	a->fn(a->arg, slu_json_bool_or(slu_json_get(status, "allowed"), false), reason);
}

static void put_optional(struct slu_jsonw *w, const char *key, const char *value)
{
	if (value && value[0])
		slu_jsonw_kstr(w, key, value);
}

int slu_kube_access_review(struct slu_kube_client *c, const struct slu_kuser *user,
			   const struct slu_kaccess *what, slu_kaccess_fn *fn, void *arg)
{
	slu_cleanup(slu_buf_done) struct slu_buf b = SLU_BUF_INIT(BODY_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	struct access_ask *a = slu_malloc(sizeof *a);
	int rc;

	if (!a)
		return -ENOMEM;
	*a = (struct access_ask){ fn, arg };
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "authorization.k8s.io/v1");
	slu_jsonw_kstr(&w, "kind", "SubjectAccessReview");
	slu_jsonw_key(&w, "spec");
	slu_jsonw_obj(&w);
	put_optional(&w, "user", user->name);
	put_optional(&w, "uid", user->uid);
	slu_jsonw_key(&w, "groups");
	slu_jsonw_arr(&w);
	for (uint32_t i = 0; i < user->ngroups; i++)
		slu_jsonw_str(&w, user->groups[i]);
	slu_jsonw_end_arr(&w);
	slu_jsonw_key(&w, what->path ? "nonResourceAttributes" : "resourceAttributes");
	slu_jsonw_obj(&w);
	put_optional(&w, "verb", what->verb);
	if (what->path) {
		put_optional(&w, "path", what->path);
	} else {
		put_optional(&w, "group", what->group);
		put_optional(&w, "resource", what->resource);
		put_optional(&w, "subresource", what->sub);
		put_optional(&w, "namespace", what->ns);
		put_optional(&w, "name", what->name);
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	rc = ask_review(c, "authorization.k8s.io", "subjectaccessreviews", &b, access_done, a);
	if (rc < 0)
		slu_free(a);
	return rc;
}
