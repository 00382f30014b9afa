/* The patches that hold work and let it go, as strategic merge patches: what they do not name
 * stays, lists with a key (gates) are merged, lists without one (affinity terms) are replaced as a
 * whole.  All carry the uid, so they can never hit a later object of the same name, and all may be
 * sent twice. */
#include <stdio.h>

#include "control/rules/hold.h"
#include "wire/jsonw.h"

#define LABEL_MAX    63
#define LIST_ON_PODS (16u << 10) /* a longer list of nodes stands on the owner only */
#define HOSTNAME     "kubernetes.io/hostname"

static void key_obj(struct slu_jsonw *w, const char *key)
{
	slu_jsonw_key(w, key);
	slu_jsonw_obj(w);
}

/* Can `s` be the value of a label? */
static bool is_label(const char *s)
{
	size_t n = strlen(s);

	if (!n || n > LABEL_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = s[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9');

		if (!word && (i == 0 || i == n - 1 || !strchr("-_.", c)))
			return false;
	}
	return true;
}

/* The list with "__" between, as Fluxqueue wrote it, if a label can hold it. */
static bool flux_list(const char *nodes, char out[static LABEL_MAX + 1])
{
	size_t n = 0;

	for (; *nodes; nodes++) {
		size_t add = *nodes == ',' ? 2 : 1;

		if (n + add > LABEL_MAX)
			return false;
		memcpy(out + n, *nodes == ',' ? "__" : nodes, add);
		n += add;
	}
	out[n] = 0;
	return is_label(out);
}

static void flux_labels(struct slu_jsonw *w, const struct slu_held_place *at)
{
	char list[LABEL_MAX + 1], id[24];

	snprintf(id, sizeof id, "%" PRIu64, at->job);
	if (at->job)
		slu_jsonw_kstr(w, SLU_HELD_FLUX_JOBID, id);
	if (at->nodes && flux_list(at->nodes, list))
		slu_jsonw_kstr(w, SLU_HELD_FLUX_NODES, list);
}

/* ---- affinity ---- */

static const char *operator(uint8_t op)
{
	static const char *const name[] = {
		[SLU_SEL_OTHER] = "",
		[SLU_SEL_IN] = "In",
		[SLU_SEL_NOT_IN] = "NotIn",
		[SLU_SEL_EXISTS] = "Exists",
		[SLU_SEL_DOES_NOT_EXIST] = "DoesNotExist",
		[SLU_SEL_GT] = "Gt",
		[SLU_SEL_LT] = "Lt",
	};

	return op < SLU_LEN(name) ? name[op] : "";
}

static void expr(struct slu_jsonw *w, const struct slu_kexpr *e)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "key", e->key);
	slu_jsonw_kstr(w, "operator", operator(e->op));
	if (e->nvalues) {
		slu_jsonw_key(w, "values");
		slu_jsonw_arr(w);
		for (uint16_t i = 0; i < e->nvalues; i++)
			slu_jsonw_str(w, e->values[i]);
		slu_jsonw_end_arr(w);
	}
	slu_jsonw_end_obj(w);
}

/* Write one list of a term: its own entries, then the pin. */
static void exprs(struct slu_jsonw *w, const char *key, const struct slu_kexpr *e, uint16_t n,
		  const struct slu_kexpr *pin)
{
	if (!n && !pin)
		return;
	slu_jsonw_key(w, key);
	slu_jsonw_arr(w);
	for (uint16_t i = 0; i < n; i++)
		expr(w, &e[i]);
	if (pin)
		expr(w, pin);
	slu_jsonw_end_arr(w);
}

static void term(struct slu_jsonw *w, const struct slu_kterm *t, const struct slu_held_place *at)
{
	bool by_host = at->host && *at->host;
	const char *value[] = { by_host ? at->host : at->node };
	struct slu_kexpr pin = { .key = by_host ? HOSTNAME : "metadata.name",
				 .values = value,
				 .nvalues = 1,
				 .op = SLU_SEL_IN };

	slu_jsonw_obj(w);
	exprs(w, "matchExpressions", t->exprs, t->nexprs, by_host ? &pin : NULL);
	exprs(w, "matchFields", t->fields, t->nfields, by_host ? NULL : &pin);
	slu_jsonw_end_obj(w);
}

/* A term with neither expressions nor fields matches nothing; pinned, it would match its node. */
static bool matches_nothing(const struct slu_kterm *t)
{
	if (!t->nexprs && !t->nfields)
		return true;
	for (uint16_t i = 0; i < t->nexprs; i++)
		if (t->exprs[i].op == SLU_SEL_OTHER)
			return true;
	return false;
}

static int affinity(struct slu_jsonw *w, const struct slu_kpodspec *s,
		    const struct slu_held_place *at)
{
	const struct slu_kterm any = { 0 };
	bool given = s->flags & SLU_POD_NODE_AFFINITY;

	for (uint16_t i = 0; given && i < s->nrequired; i++)
		if (matches_nothing(&s->required[i]))
			return -EINVAL;
	if (given && !s->nrequired)
		return -EINVAL;
	key_obj(w, "affinity");
	key_obj(w, "nodeAffinity");
	key_obj(w, "requiredDuringSchedulingIgnoredDuringExecution");
	slu_jsonw_key(w, "nodeSelectorTerms");
	slu_jsonw_arr(w);
	for (uint16_t i = 0; given && i < s->nrequired; i++)
		term(w, &s->required[i], at);
	if (!given)
		term(w, &any, at);
	slu_jsonw_end_arr(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	return 0;
}

/* ---- the patches ---- */

static void uid(struct slu_jsonw *w, const struct slu_kmeta *m)
{
	if (*m->uid)
		slu_jsonw_kstr(w, "uid", m->uid);
}

int slu_held_release_pod(const struct slu_kpod *p, const struct slu_held_place *at,
			 struct slu_buf *out)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);
	int rc;

	slu_jsonw_obj(&w);
	key_obj(&w, "metadata");
	uid(&w, &p->o.meta);
	key_obj(&w, "labels");
	if (is_label(at->node))
		slu_jsonw_kstr(&w, SLU_HELD_NODE, at->node);
	flux_labels(&w, at);
	slu_jsonw_end_obj(&w);
	key_obj(&w, "annotations");
	slu_jsonw_kstr(&w, SLU_HELD_NODE, at->node);
	if (at->nodes && strlen(at->nodes) <= LIST_ON_PODS)
		slu_jsonw_kstr(&w, SLU_HELD_NODES, at->nodes);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	key_obj(&w, "spec");
	rc = at->binds ? 0 : affinity(&w, &p->spec, at);
	slu_jsonw_key(&w, "schedulingGates");
	slu_jsonw_arr(&w);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "$patch", "delete");
	slu_jsonw_kstr(&w, "name", SLU_HELD_GATE);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return rc ? rc : out->error;
}

/* A patch of a Job: its annotations up to here, and what comes behind them. */
static struct slu_jsonw job_patch(const struct slu_kjob *j, struct slu_buf *out)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	key_obj(&w, "metadata");
	uid(&w, &j->o.meta);
	key_obj(&w, "annotations");
	return w;
}

static int job_patch_end(struct slu_jsonw *w, bool suspend)
{
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	key_obj(w, "spec");
	slu_jsonw_kbool(w, "suspend", suspend);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	return w->b->error;
}

static struct slu_jsonw job_places(const struct slu_kjob *j, const struct slu_held_place *at,
				   struct slu_buf *out)
{
	struct slu_jsonw w = job_patch(j, out);

	slu_jsonw_kstr(&w, SLU_HELD_MARK, "released");
	if (at->places && *at->places)
		slu_jsonw_kstr(&w, SLU_HELD_PLACES, at->places);
	if (at->nodes && *at->nodes)
		slu_jsonw_kstr(&w, SLU_HELD_NODES, at->nodes);
	return w;
}

int slu_held_release_job(const struct slu_kjob *j, const struct slu_held_place *at,
			 struct slu_buf *out)
{
	struct slu_jsonw w = job_places(j, at, out);

	return job_patch_end(&w, false);
}

int slu_held_note_job(const struct slu_kjob *j, const struct slu_held_place *at,
		      struct slu_buf *out)
{
	struct slu_jsonw w = job_places(j, at, out);

	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return out->error;
}

int slu_held_go_ahead(const struct slu_kjob *j, struct slu_buf *out)
{
	struct slu_jsonw w = job_patch(j, out);

	slu_jsonw_kstr(&w, SLU_HELD_AHEAD, "yes");
	return job_patch_end(&w, false);
}

int slu_held_again(const struct slu_kjob *j, struct slu_buf *out)
{
	static const char *const gone[] = { SLU_HELD_AHEAD, SLU_HELD_PLACES, SLU_HELD_NODES };
	struct slu_jsonw w = job_patch(j, out);

	slu_jsonw_kstr(&w, SLU_HELD_MARK, "yes");
	for (size_t i = 0; i < SLU_LEN(gone); i++) {
		slu_jsonw_key(&w, gone[i]);
		slu_jsonw_null(&w);
	}
	return job_patch_end(&w, true);
}

int slu_held_hold(const struct slu_kobj *o, enum slu_held_mode mode, struct slu_buf *out)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_COMPACT);
	const struct slu_ktemplate *t = slu_held_template(o);
	bool job = o->kind == SLU_KIND_JOB, running = job && !slu_kjob(o)->suspend;

	if (!t)
		return -EINVAL;
	slu_jsonw_obj(&w);
	key_obj(&w, "metadata");
	uid(&w, &o->meta);
	key_obj(&w, "annotations");
	slu_jsonw_kstr(&w, SLU_HELD_MARK, "yes");
	if (job) { /* a Job that was released before this late patch arrives waits again */
		slu_jsonw_key(&w, SLU_HELD_AHEAD);
		slu_jsonw_null(&w);
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	key_obj(&w, "spec");
	if (job)
		slu_jsonw_kbool(&w, "suspend", true);
	/* The template of a Job may change only while it is suspended: that is the second step. */
	if (!running) {
		key_obj(&w, "template");
		key_obj(&w, "spec");
		slu_jsonw_key(&w, "schedulingGates");
		slu_jsonw_arr(&w);
		slu_jsonw_obj(&w);
		slu_jsonw_kstr(&w, "name", SLU_HELD_GATE);
		slu_jsonw_end_obj(&w);
		slu_jsonw_end_arr(&w);
		/* A Job's scheduler cannot be changed any more. */
		if (mode == SLU_HELD_COMPATIBLE && !job)
			slu_jsonw_kstr(&w, "schedulerName", SLU_HELD_SCHEDULER);
		slu_jsonw_end_obj(&w);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return out->error;
}
