/* Hold work at admission: add the gate to pods and templates, suspend Jobs, and give work that depends on decisions
 * of the default scheduler to that scheduler, gated so that Sluice still decides when and where. */
#include "control/rules/kinds.h"
#include "serve/admit_internal.h"

#define LABEL_MAX  63
#define KEY_SEEN   "fluxqueue.seen"
#define KEY_SELECT "fluxqueue.selector"
#define DEFAULT    "default-scheduler"

/* ---- the gate ---- */

static bool has_gate(const struct slu_json *spec)
{
	slu_json_each (slu_json_get(spec, "schedulingGates"), it) {
		const char *name = slu_json_str(slu_json_get(it.val, "name"));

		if (name && strcmp(name, SLU_ADMIT_GATE) == 0)
			return true;
	}
	return false;
}

/* Add the gate to the pod spec at `path`, unless it has the gate; other gates stay. */
static void set_gate(struct slu_admit_patch *p, const struct slu_json *spec, const char *path)
{
	bool list = slu_json_is_arr(slu_json_get(spec, "schedulingGates"));
	struct slu_buf at = SLU_BUF_INIT(256);

	if (has_gate(spec))
		return;
	slu_buf_puts(&at, path);
	slu_buf_puts(&at, list ? "/schedulingGates/-" : "/schedulingGates");
	slu_admit_op(p, "add", slu_buf_str(&at), NULL);
	if (!list)
		slu_jsonw_arr(&p->w);
	slu_jsonw_obj(&p->w);
	slu_jsonw_kstr(&p->w, "name", SLU_ADMIT_GATE);
	slu_jsonw_end_obj(&p->w);
	if (!list)
		slu_jsonw_end_arr(&p->w);
	slu_admit_op_end(p);
	slu_buf_done(&at);
}

/* ---- requests that Sluice does not decide ---- */

static bool has_terms(const struct slu_json *spec, const char *which)
{
	return slu_json_count(slu_json_dig(spec, "affinity", which,
					   "requiredDuringSchedulingIgnoredDuringExecution",
					   NULL)) > 0;
}

/* Whether the pod has anti-affinity by another topology than the host; Sluice decides that by host itself. */
static bool repels_widely(const struct slu_json *spec)
{
	slu_json_each (slu_json_dig(spec, "affinity", "podAntiAffinity",
				    "requiredDuringSchedulingIgnoredDuringExecution", NULL),
		       it) {
		const char *key = slu_json_str(slu_json_get(it.val, "topologyKey"));

		if (!key || strcmp(key, "kubernetes.io/hostname") != 0)
			return true;
	}
	return false;
}

static bool spreads_hard(const struct slu_json *spec)
{
	slu_json_each (slu_json_get(spec, "topologySpreadConstraints"), it) {
		const char *how = slu_json_str(slu_json_get(it.val, "whenUnsatisfiable"));

		if (!how || strcmp(how, "ScheduleAnyway") != 0)
			return true;
	}
	return false;
}

/* Whether the pod uses disks that only some nodes reach, or claims that are not bound yet. */
static bool needs_volumes(const struct slu_admit_review *r, const struct slu_admit_rules *rules)
{
	static const char *const disk[] = { "ephemeral",
					    "awsElasticBlockStore",
					    "gcePersistentDisk",
					    "azureDisk",
					    "cinder",
					    "iscsi",
					    "rbd",
					    "fc",
					    "vsphereVolume",
					    "portworxVolume" };

	if (slu_json_count(slu_json_get(r->spec, "volumeClaimTemplates")) > 0 && r->template)
		return true;
	slu_json_each (slu_json_get(r->pod, "volumes"), it) {
		const char *claim = slu_json_str(
			slu_json_dig(it.val, "persistentVolumeClaim", "claimName", NULL));

		for (size_t i = 0; i < SLU_LEN(disk); i++)
			if (slu_json_is_obj(slu_json_get(it.val, disk[i])))
				return true;
		if (claim &&
		    !(rules->claim_bound && rules->claim_bound(rules->arg, r->space, claim)))
			return true;
	}
	return false;
}

static bool needs_default(const struct slu_admit_review *r, const struct slu_admit_rules *rules)
{
	return has_terms(r->pod, "podAffinity") || repels_widely(r->pod) || spreads_hard(r->pod) ||
	       slu_json_count(slu_json_get(r->pod, "resourceClaims")) > 0 ||
	       needs_volumes(r, rules);
}

static bool names_ours(const struct slu_admit_review *r, const struct slu_admit_rules *rules)
{
	const char *name = slu_json_str(slu_json_get(r->pod, "schedulerName"));

	for (uint32_t i = 0; name && i < rules->n_scheduler; i++)
		if (strcmp(name, rules->scheduler[i]) == 0)
			return true;
	return false;
}

/* ---- which objects ---- */

const char *slu_admit_kind(const char *kind)
{
	const struct slu_kind *row = slu_kind_named(kind);

	return row ? row->word : NULL;
}

static const struct slu_json *controller(const struct slu_admit_review *r)
{
	slu_json_each (slu_json_get(r->meta, "ownerReferences"), it)
		if (slu_json_bool_or(slu_json_get(it.val, "controller"), false))
			return it.val;
	return NULL;
}

/* Whether the pod is made for one node, as those of a DaemonSet and static pods are. */
static bool is_bound(const struct slu_admit_review *r)
{
	const char *kind = slu_json_str(slu_json_get(controller(r), "kind"));
	const char *node = slu_json_str(slu_json_get(r->pod, "nodeName"));

	return (node && *node) || (kind && (!strcmp(kind, "DaemonSet") || !strcmp(kind, "Node")));
}

static bool suspends(const struct slu_admit_review *r)
{
	const struct slu_kind *row = slu_kind_named(r->kind);

	return row && row->suspends;
}

/* Whether the template may be changed: in every object that a person wrote, and in every Job.  A controller that
 * finds its own object changed may make it again and again; the webhook holds the pods of such objects instead. */
static bool may_change(const struct slu_admit_review *r)
{
	if (!r->template)
		return !is_bound(r);
	return suspends(r) || !controller(r);
}

/* ---- holding ---- */

/* Write "<kind>-<name>-<namespace>" to `out`; false if that cannot be the value of a label. */
static bool selector(const struct slu_admit_review *r, char out[static LABEL_MAX + 1])
{
	struct slu_buf b = SLU_BUF_INIT(LABEL_MAX);
	bool fits;

	slu_buf_puts(&b, slu_admit_kind(r->kind));
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

static void template_meta(const struct slu_admit_review *r, struct slu_admit_patch *p)
{
	if (!slu_json_is_obj(slu_json_get(r->template, "metadata"))) {
		slu_admit_op(p, "add", "/spec/template/metadata", NULL);
		slu_jsonw_obj(&p->w);
		slu_jsonw_end_obj(&p->w);
		slu_admit_op_end(p);
	}
}

static void seen_template(const struct slu_admit_review *r, struct slu_admit_patch *p, bool job)
{
	char select[LABEL_MAX + 1];
	const char *pair[2][2] = { { KEY_SEEN, "yes" }, { KEY_SELECT, select } };
	uint32_t n = !job && selector(r, select) ? 2 : 1;

	template_meta(r, p);
	slu_admit_pairs(p, slu_json_dig(r->template, "metadata", "labels", NULL),
			"/spec/template/metadata/labels", (const char *const(*)[2])pair, n);
}

/* Mark the template, so that the API server need not ask about its pods (deploy/webhook.yaml). */
static void mark_template(const struct slu_admit_review *r, struct slu_admit_patch *p)
{
	const char *held[1][2] = { { SLU_ADMIT_HELD, "yes" } };

	template_meta(r, p);
	slu_admit_pairs(p, slu_json_dig(r->template, "metadata", "annotations", NULL),
			"/spec/template/metadata/annotations", (const char *const(*)[2])held, 1);
}

static void mark(const struct slu_admit_review *r, struct slu_admit_patch *p, const char *value,
		 bool noted)
{
	const char *held[1][2] = { { SLU_ADMIT_HELD, value } };

	/* note_submission() has added the map of annotations if the object had none. */
	if (noted)
		slu_admit_set(p, "/metadata/annotations", held[0][0], held[0][1]);
	else
		slu_admit_pairs(p, slu_json_get(r->meta, "annotations"), "/metadata/annotations",
				(const char *const(*)[2])held, 1);
}

static void hold_at_admission(const struct slu_admit_review *r, const char *scheduler, bool gate,
			      bool compatible, struct slu_admit_patch *p, bool noted)
{
	bool job = suspends(r);
	bool by_user = slu_json_bool_or(slu_json_get(r->spec, "suspend"), false);
	const char *seen[1][2] = { { KEY_SEEN, "yes" } };

	if (r->template && compatible)
		seen_template(r, p, job);
	if (scheduler)
		slu_admit_set(p,
			      r->template ? "/spec/template/spec/schedulerName"
					  : "/spec/schedulerName",
			      NULL, scheduler);
	if (gate)
		set_gate(p, r->pod, r->template ? "/spec/template/spec" : "/spec");
	else if (r->template)
		mark_template(r, p);
	if (job) {
		slu_admit_op(p, "add", "/spec/suspend", NULL);
		slu_jsonw_bool(&p->w, true);
		slu_admit_op_end(p);
	}
	mark(r, p, job && by_user ? "user" : "yes", noted);
	if (compatible)
		slu_admit_pairs(p, slu_json_get(r->meta, "labels"), "/metadata/labels",
				(const char *const(*)[2])seen, 1);
}

/* Whether the object is held already, by an earlier call of the webhook or through its template.  A Job must be
 * suspended, too. */
static bool is_held(const struct slu_admit_review *r, const struct slu_admit_rules *rules)
{
	if (suspends(r) && !slu_json_bool_or(slu_json_get(r->spec, "suspend"), false))
		return false;
	if (!rules->binds || !names_ours(r, rules))
		return has_gate(r->pod);
	return has_gate(r->pod) ||
	       slu_json_get(slu_json_get(r->meta, "annotations"), SLU_ADMIT_HELD);
}

/* Whether Sluice binds the pods of the held object itself, so that they need no gate. */
static bool is_bound_by_us(const struct slu_admit_review *r, const struct slu_admit_rules *rules)
{
	const char *name = slu_json_str_or(slu_json_get(r->pod, "schedulerName"), "");

	return rules->binds && rules->n_scheduler && !needs_default(r, rules) &&
	       (names_ours(r, rules) || !*name || !strcmp(name, DEFAULT));
}

void slu_admit_hold(const struct slu_admit_review *r, const struct slu_admit_rules *rules,
		    struct slu_admit_patch *p, bool noted)
{
	bool compatible = rules->hold && rules->held_scheduler;
	bool other = (names_ours(r, rules) || compatible) && needs_default(r, rules);

	if (!may_change(r))
		return;
	if (rules->hold && !is_held(r, rules)) {
		bool bound = is_bound_by_us(r, rules);
		const char *name = bound && !names_ours(r, rules) ? rules->scheduler[0]
								  : rules->held_scheduler;

		hold_at_admission(r, other ? DEFAULT : name, !bound, compatible, p, noted);
	} else if (!rules->hold && other && !has_gate(r->pod)) {
		slu_admit_set(p,
			      r->template ? "/spec/template/spec/schedulerName"
					  : "/spec/schedulerName",
			      NULL, DEFAULT);
		set_gate(p, r->pod, r->template ? "/spec/template/spec" : "/spec");
	}
}
