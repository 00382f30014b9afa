#include "serve/admit.h"
#include "base/base64.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define REVIEW_MAX (16u << 20)
#define LABEL_MAX  63
#define KEY_SEEN   "fluxqueue.seen"
#define KEY_SELECT "fluxqueue.selector"

/* ---- the patch ---- */

struct patch {
	struct slu_buf text;
	struct slu_jsonw w;
	uint32_t ops;
};

/* One operation up to its value. `path` holds ready pointers; `key`, if given, is escaped behind
 * it. */
static void op(struct patch *p, const char *what, const char *path, const char *key)
{
	struct slu_buf full = SLU_BUF_INIT(4096);

	slu_buf_puts(&full, path);
	if (key) {
		slu_buf_putc(&full, '/');
		for (; *key; key++) {
			if (*key == '~')
				slu_buf_puts(&full, "~0");
			else if (*key == '/')
				slu_buf_puts(&full, "~1");
			else
				slu_buf_putc(&full, *key);
		}
	}
	slu_jsonw_obj(&p->w);
	slu_jsonw_kstr(&p->w, "op", what);
	slu_jsonw_kstr(&p->w, "path", slu_buf_str(&full));
	slu_jsonw_key(&p->w, "value");
	slu_buf_done(&full);
	p->ops++;
}

static void op_end(struct patch *p)
{
	slu_jsonw_end_obj(&p->w);
}

static void set_str(struct patch *p, const char *path, const char *key, const char *value)
{
	op(p, "add", path, key);
	slu_jsonw_str(&p->w, value);
	op_end(p);
}

/* Pairs of a string map that may not be there yet. */
static void set_pairs(struct patch *p, const struct slu_json *map, const char *path,
		      const char *const (*pair)[2], uint32_t n)
{
	if (!slu_json_is_obj(map)) {
		op(p, "add", path, NULL);
		slu_jsonw_obj(&p->w);
		slu_jsonw_end_obj(&p->w);
		op_end(p);
	}
	for (uint32_t i = 0; i < n; i++)
		set_str(p, path, pair[i][0], pair[i][1]);
}

static bool has_gate(const struct slu_json *spec)
{
	slu_json_each (slu_json_get(spec, "schedulingGates"), it) {
		const char *name = slu_json_str(slu_json_get(it.val, "name"));

		if (name && strcmp(name, SLU_ADMIT_GATE) == 0)
			return true;
	}
	return false;
}

/* Add the gate to a pod spec found at `path`, unless it is there; other gates stay. */
static void set_gate(struct patch *p, const struct slu_json *spec, const char *path)
{
	bool list = slu_json_is_arr(slu_json_get(spec, "schedulingGates"));
	struct slu_buf at = SLU_BUF_INIT(256);

	if (has_gate(spec))
		return;
	slu_buf_puts(&at, path);
	slu_buf_puts(&at, list ? "/schedulingGates/-" : "/schedulingGates");
	op(p, "add", slu_buf_str(&at), NULL);
	if (!list)
		slu_jsonw_arr(&p->w);
	slu_jsonw_obj(&p->w);
	slu_jsonw_kstr(&p->w, "name", SLU_ADMIT_GATE);
	slu_jsonw_end_obj(&p->w);
	if (!list)
		slu_jsonw_end_arr(&p->w);
	op_end(p);
	slu_buf_done(&at);
}

/* ---- what came in ---- */

struct review {
	const struct slu_json *request, *object, *meta, *spec,
		*template;          /* template: NULL for a Pod */
	const struct slu_json *pod; /* the pod spec, wherever it is */
	const char *uid, *kind, *space, *name;
};

static const struct {
	const char *kind, *short_name;
} kinds[] = {
	{ "Pod", "pod" },
	{ "Job", "job" },
	{ "Deployment", "deployment" },
	{ "ReplicaSet", "replicaset" },
	{ "StatefulSet", "statefulset" },
};

static const char *known_kind(const char *kind)
{
	for (size_t i = 0; kind && i < SLU_LEN(kinds); i++)
		if (strcmp(kind, kinds[i].kind) == 0)
			return kinds[i].short_name;
	return NULL;
}

static int read_review(const char *text, size_t n, struct slu_json_doc **doc, struct review *r,
		       struct slu_error *err)
{
	const struct slu_json_limits limits = { .max_bytes = REVIEW_MAX, .max_depth = 128 };
	const struct slu_json *root;
	const char *version;
	int rc = slu_json_parse(text, n, &limits, doc, err);

	if (rc < 0)
		return rc == -ENOMEM ? rc : slu_fail_prefix(err, -EINVAL, "admission review");
	root = slu_json_root(*doc);
	version = slu_json_str(slu_json_get(root, "apiVersion"));
	*r = (struct review){ .request = slu_json_get(root, "request") };
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
	struct review r;
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

static bool is_create(const struct review *r)
{
	const char *what = slu_json_str(slu_json_get(r->request, "operation"));

	return what && strcmp(what, "CREATE") == 0;
}

static bool asks_for_us(const struct review *r, const struct slu_admit_rules *rules)
{
	const char *name = slu_json_str(slu_json_get(r->pod, "schedulerName"));

	for (uint32_t i = 0; name && i < rules->n_scheduler; i++)
		if (strcmp(name, rules->scheduler[i]) == 0)
			return true;
	return false;
}

/* A pod or ReplicaSet that some controller makes: what it was told is in the template already, and
 * its maker, not the user, is the one who asks. */
static bool is_made_by_controller(const struct review *r)
{
	slu_json_each (slu_json_get(r->meta, "ownerReferences"), it)
		if (slu_json_bool_or(slu_json_get(it.val, "controller"), false))
			return true;
	return false;
}

static int check_pairs(const struct slu_json *meta, const struct slu_admit_rules *rules,
		       struct slu_error *err)
{
	static const char *const where[] = { "labels", "annotations" };

	for (size_t i = 0; i < SLU_LEN(where); i++)
		slu_json_each (slu_json_get(meta, where[i]), it) {
			const char *value = slu_json_str(it.val);
			int rc = value ? rules->check(it.key, value, err) : 0;

			if (rc < 0)
				return rc;
		}
	return 0;
}

/* ---- what goes out ---- */

static void note_submission(const struct review *r, struct patch *p, int64_t now_us)
{
	const char *user = slu_json_str_or(slu_json_dig(r->request, "userInfo", "username", NULL),
					   "");
	char seen[24];
	struct slu_buf b = SLU_BUF_INIT(sizeof seen);
	const char *pair[2][2] = { { SLU_ADMIT_USER, user }, { SLU_ADMIT_SEEN, seen } };

	slu_buf_i64(&b, now_us);
	memcpy(seen, slu_buf_str(&b), b.n + 1);
	slu_buf_done(&b);
	set_pairs(p, slu_json_get(r->meta, "annotations"), "/metadata/annotations",
		  (const char *const(*)[2])pair, 2);
}

/* "<kind>-<name>-<namespace>", if that can be a label's value. */
static bool selector(const struct review *r, char out[static LABEL_MAX + 1])
{
	struct slu_buf b = SLU_BUF_INIT(LABEL_MAX);
	bool fits;

	slu_buf_puts(&b, known_kind(r->kind));
	slu_buf_putc(&b, '-');
	slu_buf_puts(&b, r->name);
	slu_buf_putc(&b, '-');
	slu_buf_puts(&b, r->space);
	fits = !b.error && *r->name;
	if (fits)
		memcpy(out, b.p, b.n + 1);
	slu_buf_done(&b);
	return fits;
}

static void hold_template(const struct review *r, const struct slu_admit_rules *rules,
			  struct patch *p)
{
	char select[LABEL_MAX + 1];
	const char *pair[2][2] = { { KEY_SEEN, "yes" }, { KEY_SELECT, select } };
	bool job = strcmp(r->kind, "Job") == 0;
	uint32_t n = 1;

	if (rules->held_scheduler) {
		if (!job && selector(r, select))
			n = 2;
		if (!slu_json_is_obj(slu_json_get(r->template, "metadata"))) {
			op(p, "add", "/spec/template/metadata", NULL);
			slu_jsonw_obj(&p->w);
			slu_jsonw_end_obj(&p->w);
			op_end(p);
		}
		set_pairs(p, slu_json_dig(r->template, "metadata", "labels", NULL),
			  "/spec/template/metadata/labels", (const char *const(*)[2])pair, n);
		set_str(p, "/spec/template/spec/schedulerName", NULL, rules->held_scheduler);
	}
	set_gate(p, r->pod, "/spec/template/spec");
	if (job) {
		op(p, "add", "/spec/suspend", NULL);
		slu_jsonw_bool(&p->w, true);
		op_end(p);
	}
}

static void hold(const struct review *r, const struct slu_admit_rules *rules, struct patch *p,
		 bool noted)
{
	bool by_user = slu_json_bool_or(slu_json_get(r->spec, "suspend"), false);
	const char *held[1][2] = { { SLU_ADMIT_HELD, by_user ? "user" : "yes" } };
	const char *seen[1][2] = { { KEY_SEEN, "yes" } };

	if (r->template) {
		hold_template(r, rules, p);
	} else {
		set_gate(p, r->pod, "/spec");
		if (rules->held_scheduler)
			set_str(p, "/spec/schedulerName", NULL, rules->held_scheduler);
	}
	/* note_submission() has made the map of annotations if it was missing. */
	if (noted)
		set_str(p, "/metadata/annotations", held[0][0], held[0][1]);
	else
		set_pairs(p, slu_json_get(r->meta, "annotations"), "/metadata/annotations",
			  (const char *const(*)[2])held, 1);
	if (rules->held_scheduler)
		set_pairs(p, slu_json_get(r->meta, "labels"), "/metadata/labels",
			  (const char *const(*)[2])seen, 1);
}

/* Held already: by an earlier pass, or because its template was. A Job counts only when suspended
 * too. */
static bool is_held(const struct review *r)
{
	const char *seen = slu_json_str(slu_json_dig(r->meta, "labels", KEY_SEEN, NULL));

	if (seen && strcmp(seen, "yes") == 0)
		return true;
	if (strcmp(r->kind, "Job") == 0 &&
	    !slu_json_bool_or(slu_json_get(r->spec, "suspend"), false))
		return false;
	return has_gate(r->pod);
}

static int answer_review(struct slu_buf *out, const char *uid, const char *refusal,
			 const struct patch *p)
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
	struct patch p = { .text = SLU_BUF_INIT(REVIEW_MAX) };
	struct slu_error refusal = { 0 };
	struct review r;
	bool ours, note, take;
	int rc = read_review(review, n, &doc, &r, err);

	if (rc < 0)
		return rc;
	p.w = slu_jsonw(&p.text, SLU_JSONW_COMPACT);
	ours = known_kind(r.kind) && slu_json_is_obj(r.pod) && slu_json_is_obj(r.meta);
	if (ours && (asks_for_us(&r, rules) || rules->hold)) {
		struct slu_error *say = &refusal;

		rc = check_pairs(r.meta, rules, say);
		if (!rc && r.template)
			rc = check_pairs(slu_json_get(r.template, "metadata"), rules, say);
	} else {
		ours = false;
	}
	note = ours && !rc && is_create(&r) && !is_made_by_controller(&r);
	take = ours && !rc && rules->hold && is_create(&r) && !is_held(&r);
	slu_jsonw_arr(&p.w);
	if (note)
		note_submission(&r, &p, now_us);
	if (take)
		hold(&r, rules, &p, note);
	slu_jsonw_end_arr(&p.w);
	rc = p.text.error ? p.text.error
			  : answer_review(answer, r.uid, rc < 0 ? refusal.text : NULL, &p);
	slu_buf_done(&p.text);
	return rc;
}
