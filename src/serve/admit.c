#include "base/base64.h"
#include "control/rules/keys.h"
#include "control/rules/kinds.h"
#include "serve/admit_internal.h"

#define REVIEW_MAX (16u << 20)

/* ---- reading the review ---- */

static int read_review(const char *text, size_t n, struct slu_json_doc **doc,
		       struct slu_admit_review *r, struct slu_error *err)
{
	const struct slu_json_limits limits = { .max_bytes = REVIEW_MAX, .max_depth = 128 };
	const struct slu_json *root;
	const char *version;
	int rc = slu_json_parse(text, n, &limits, doc, err);

	if (rc < 0)
		return rc == -ENOMEM ? rc : slu_fail_prefix(err, -EINVAL, "admission review");
	root = slu_json_root(*doc);
	version = slu_json_str(slu_json_get(root, "apiVersion"));
	*r = (struct slu_admit_review){ .request = slu_json_get(root, "request") };
	r->uid = slu_json_str(slu_json_get(r->request, "uid"));
	if (!version || strcmp(version, "admission.k8s.io/v1") != 0 || !r->uid)
		return slu_fail(
			err, -EINVAL,
			"admission review: not an admission.k8s.io/v1 review with a request.uid");
	r->object = slu_json_get(r->request, "object");
	r->meta = slu_json_get(r->object, "metadata");
	r->spec = slu_json_get(r->object, "spec");
	r->kind = slu_json_str(slu_json_dig(r->request, "kind", "kind", NULL));
	r->space = slu_json_str_or(slu_json_get(r->request, "namespace"), "");
	r->name = slu_json_str_or(slu_json_get(r->meta, "name"), "");
	if (r->kind && strcmp(r->kind, "Pod") == 0) {
		r->pod = r->spec;
	} else {
		r->template = slu_json_get(r->spec, "template");
		r->pod = slu_json_get(r->template, "spec");
	}
	return 0;
}

int slu_admit_namespace(const char *review, size_t n, char *out, size_t size, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_admit_review r;
	int rc = read_review(review, n, &doc, &r, err);
	size_t len;

	if (rc < 0)
		return rc;
	len = strlen(r.space);
	if (len >= size)
		return slu_fail(err, -EINVAL, "admission review: a namespace of %zu bytes", len);
	memcpy(out, r.space, len + 1);
	return 0;
}

static bool is_create(const struct slu_admit_review *r)
{
	const char *what = slu_json_str(slu_json_get(r->request, "operation"));

	return what && strcmp(what, "CREATE") == 0;
}

static bool asks_for_us(const struct slu_admit_review *r, const struct slu_admit_rules *rules)
{
	const char *name = slu_json_str(slu_json_get(r->pod, "schedulerName"));

	for (uint32_t i = 0; name && i < rules->n_scheduler; i++)
		if (strcmp(name, rules->scheduler[i]) == 0)
			return true;
	return false;
}

static const char *user_of(const struct slu_admit_review *r)
{
	return slu_json_str_or(slu_json_dig(r->request, "userInfo", "username", NULL), "");
}

static bool is_controller(const char *user, const struct slu_admit_rules *rules)
{
	for (uint32_t i = 0; i < rules->n_controller; i++) {
		const char *name = rules->controller[i];
		size_t n = strlen(name);
		bool all = n && name[n - 1] == ':';

		if (all ? !strncmp(user, name, n) : !strcmp(user, name))
			return true;
	}
	return false;
}

/* Whether a controller makes the pod or ReplicaSet: then the user's wishes are in the template already, and
 * the request comes from the controller, not from the user.  An owner reference alone proves nothing: any
 * user may write one, and name another user beside it. */
static bool is_made_by_controller(const struct slu_admit_review *r,
				  const struct slu_admit_rules *rules)
{
	if (!is_controller(user_of(r), rules))
		return false;
	slu_json_each (slu_json_get(r->meta, "ownerReferences"), it)
		if (slu_json_bool_or(slu_json_get(it.val, "controller"), false))
			return true;
	return false;
}

static int check_pairs(const struct slu_json *meta, const struct slu_admit_rules *rules,
		       bool submitted, struct slu_error *err)
{
	static const char *const where[] = { "labels", "annotations" };

	for (size_t i = 0; i < SLU_LEN(where); i++)
		slu_json_each (slu_json_get(meta, where[i]), it) {
			const char *value = slu_json_str(it.val);
			int rc = value ? rules->check(it.key, value, rules->max_size, err) : 0;

			if (!rc && submitted && rules->known)
				rc = rules->known(it.key, err);
			if (rc < 0)
				return rc;
		}
	return 0;
}

/* ---- writing the answer ---- */

static void note_submission(const struct slu_admit_review *r, struct slu_admit_patch *p,
			    int64_t now_us)
{
	const char *user = user_of(r);
	char seen[24];
	struct slu_buf b = SLU_BUF_INIT(sizeof seen);
	const char *pair[2][2] = { { SLU_ADMIT_USER, user }, { SLU_ADMIT_SEEN, seen } };

	slu_buf_i64(&b, now_us);
	memcpy(seen, slu_buf_str(&b), b.n + 1);
	slu_buf_done(&b);
	slu_admit_pairs(p, slu_json_get(r->meta, "annotations"), "/metadata/annotations",
			(const char *const(*)[2])pair, 2);
}

static void remove_from(const struct slu_json *map, const char *path, size_t n,
			struct slu_admit_patch *p)
{
	static const char *const note[] = { SLU_SET_PRIORITY, SLU_SET_LIMIT, SLU_ADMIT_USER,
					    SLU_ADMIT_SEEN };

	for (size_t i = 0; i < n; i++)
		if (slu_json_get(map, note[i])) {
			slu_admit_op(p, "remove", path, note[i]);
			slu_jsonw_null(&p->w);
			slu_admit_op_end(p);
		}
}

/* Remove annotations that only Sluice may write.  An object that is just being created cannot have been
 * given another priority or limit yet, so both are forged.  An object that a controller makes copies the
 * annotations of its template, where the author may have written any user and any time of arrival; these two notes
 * count only on objects that people submit, where the webhook has just written them (`noted`). */
static void remove_notes(const struct slu_admit_review *r, struct slu_admit_patch *p, bool noted)
{
	remove_from(slu_json_get(r->meta, "annotations"), "/metadata/annotations", noted ? 2 : 4,
		    p);
	/* The API server does not ask about pods that their template holds. */
	remove_from(slu_json_dig(r->template, "metadata", "annotations", NULL),
		    "/spec/template/metadata/annotations", 4, p);
}

static int answer_review(struct slu_buf *out, const char *uid, const char *refusal,
			 const struct slu_admit_patch *p)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);
	struct slu_buf b = SLU_BUF_INIT(REVIEW_MAX);

	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "apiVersion", "admission.k8s.io/v1");
	slu_jsonw_kstr(&w, "kind", "AdmissionReview");
	slu_jsonw_key(&w, "response");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "uid", uid);
	slu_jsonw_kbool(&w, "allowed", !refusal);
	if (refusal) {
		slu_jsonw_key(&w, "status");
		slu_jsonw_obj(&w);
		slu_jsonw_ki64(&w, "code", 422);
		slu_jsonw_kstr(&w, "reason", "Invalid");
		slu_jsonw_kstr(&w, "message", refusal);
		slu_jsonw_end_obj(&w);
	} else if (p->ops) {
		slu_base64_encode(p->text.p, p->text.n, &b);
		slu_jsonw_kstr(&w, "patchType", "JSONPatch");
		slu_jsonw_kstr(&w, "patch", slu_buf_str(&b));
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	if (b.error)
		out->error = b.error;
	slu_buf_done(&b);
	return out->error;
}

int slu_admit(const char *review, size_t n, const struct slu_admit_rules *rules, int64_t now_us,
	      struct slu_buf *answer, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_admit_patch p = { .text = SLU_BUF_INIT(REVIEW_MAX) };
	struct slu_error refusal = { 0 };
	struct slu_admit_review r;
	bool ours, note;
	int rc = read_review(review, n, &doc, &r, err);

	if (rc < 0)
		return rc;
	p.w = slu_jsonw(&p.text, SLU_JSONW_COMPACT);
	ours = slu_admit_kind(r.kind) && slu_json_is_obj(r.pod) && slu_json_is_obj(r.meta);
	if (ours && (asks_for_us(&r, rules) || rules->hold)) {
		bool submitted = is_create(&r) && !is_made_by_controller(&r, rules);
		struct slu_error *say = &refusal;

		rc = check_pairs(r.meta, rules, submitted, say);
		if (!rc && r.template)
			rc = check_pairs(slu_json_get(r.template, "metadata"), rules, submitted,
					 say);
	} else {
		ours = false;
	}
	note = ours && !rc && is_create(&r) && !is_made_by_controller(&r, rules);
	slu_jsonw_arr(&p.w);
	if (note)
		note_submission(&r, &p, now_us);
	if (ours && !rc && is_create(&r)) {
		remove_notes(&r, &p, note);
		slu_admit_hold(&r, rules, &p, note);
	}
	slu_jsonw_end_arr(&p.w);
	rc = p.text.error ? p.text.error
			  : answer_review(answer, r.uid, rc < 0 ? refusal.text : NULL, &p);
	slu_buf_done(&p.text);
	return rc;
}
