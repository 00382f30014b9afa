/* PodGroups, FluxJobs and Reservations: what people do with them, and what the server keeps of them.
 * Half of the worlds have a server that knows these kinds. */
#include <stdio.h>
#include <time.h>

#include "control/post/record.h"
#include "wire/json.h"
#include "wire/jsonw.h"
#include "coverage.h"

/* Kubernetes 1.37's own PodGroup; that of 1.36 is the same to us, and no server has both. */
bool is_custom(enum slu_kkind k)
{
	return k == SLU_KIND_PODGROUP_X || k == SLU_KIND_PODGROUP_SIGS ||
	       k == SLU_KIND_PODGROUP_BETA || k == SLU_KIND_FLUXJOB || k == SLU_KIND_RESERVATION;
}

void custom_text(const struct obj *o, struct slu_buf *b)
{
	slu_buf_printf(b, ",\"spec\":%s", o->custom.spec ? o->custom.spec : "{}");
	if (o->custom.status)
		slu_buf_printf(b, ",\"status\":%s", o->custom.status);
}

void custom_free(struct obj *o)
{
	if (is_custom(o->kind) || is_plain(o->kind)) {
		slu_free(o->custom.spec);
		slu_free(o->custom.status);
	}
	slu_free(o);
}

static char *keep(struct slu_buf *b)
{
	char *s = slu_malloc(b->n + 1);

	memcpy(s, slu_buf_str(b), b->n + 1);
	slu_buf_done(b);
	return s;
}

void custom_merge(struct obj *o, bool status, const struct slu_json *patch)
{
	char **text = status ? &o->custom.status : &o->custom.spec;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const char *state = slu_json_str(slu_json_get(patch, "state"));
	const char *phase = slu_json_str(slu_json_get(patch, "phase"));
	const char *old = *text ? *text : "{}";

	if (status && o->kind == SLU_KIND_FLUXJOB && state)
		cover_hit("FluxJob", state);
	else if (status && phase)
		cover_hit(slu_kkind_info(o->kind)->kind, phase);
	if (slu_json_parse(old, strlen(old), NULL, &doc, NULL) < 0)
		abort();
	slu_jsonw_obj(&w);
	slu_json_each (slu_json_root(doc), it) {
		if (slu_json_get(patch, it.key))
			continue;
		slu_jsonw_key(&w, it.key);
		slu_jsonw_value(&w, it.val);
	}
	slu_json_each (patch, it) {
		if (slu_json_is_null(it.val))
			continue;
		slu_jsonw_key(&w, it.key);
		slu_jsonw_value(&w, it.val);
	}
	slu_jsonw_end_obj(&w);
	slu_free(*text);
	*text = keep(&b);
}

int custom_create(struct world *w, enum slu_kkind kind, const char *text)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_jsonw out = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const struct slu_json *root, *meta, *owner;
	const char *uid;
	struct obj *o;

	if (!is_custom(kind) || !w->customs)
		return SLU_KUBE_NOT_FOUND;
	if (slu_json_parse(text, strlen(text), NULL, &doc, NULL) < 0)
		return SLU_KUBE_INVALID;
	root = slu_json_root(doc);
	meta = slu_json_get(root, "metadata");
	o = kube_new(w, kind, slu_json_str_or(slu_json_get(meta, "namespace"), "ns"),
		     slu_json_str_or(slu_json_get(meta, "name"), ""));
	slu_jsonw_value(&out, slu_json_get(root, "spec"));
	o->custom.spec = keep(&b);
	slu_json_each (slu_json_get(meta, "labels"), it)
		pairs_set(&o->label, it.key, slu_json_str_or(it.val, ""));
	slu_json_each (slu_json_get(meta, "annotations"), it)
		pairs_set(&o->note, it.key, slu_json_str_or(it.val, ""));
	owner = slu_json_item(slu_json_get(meta, "ownerReferences"), 0);
	uid = slu_json_str_or(slu_json_get(owner, "uid"), "");
	if (*uid == 'u' && kube_get(w, strtoull(uid + 1, NULL, 10))) {
		const struct obj *x = kube_get(w, strtoull(uid + 1, NULL, 10));

		o->owner = x->uid;
		o->owner_kind = x->kind;
		snprintf(o->owner_name, sizeof o->owner_name, "%s", x->name);
	}
	world_say(w, "%s %s is made by sluiced", slu_kkind_info(kind)->kind, o->name);
	return kube_create(w, o) ? SLU_KUBE_OK : SLU_KUBE_CONFLICT;
}

static bool is_ended(const struct obj *o)
{
	static const char *const over[] = { "Finished", "Failed", "Refused", "Cancelled" };
	char state[32];

	for (size_t i = 0; o->custom.status && i < SLU_LEN(over); i++) {
		snprintf(state, sizeof state, "\"state\":\"%s\"", over[i]);
		if (strstr(o->custom.status, state))
			return true;
	}
	return false;
}

bool custom_holds(const struct world *w)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_FLUXJOB].n; i++)
		if (w->obj[SLU_KIND_FLUXJOB].p[i]->custom.own &&
		    !is_ended(w->obj[SLU_KIND_FLUXJOB].p[i]))
			return true;
	return false;
}

/* ---- PodGroups ---- */

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

static void set_min(struct obj *o, int32_t min)
{
	struct slu_buf b = SLU_BUF_INIT(4096);

	o->custom.min = min;
	slu_buf_printf(&b,
		       o->kind == SLU_KIND_PODGROUP_BETA
			       ? "{\"schedulingPolicy\":{\"gang\":{\"minCount\":%d}}}"
			       : "{\"minMember\":%d,\"scheduleTimeoutSeconds\":20}",
		       min);
	slu_free(o->custom.spec);
	o->custom.spec = keep(&b);
}

static void appear(struct world *w, uint64_t number, uint64_t of)
{
	struct obj *o;
	char name[16];

	snprintf(name, sizeof name, "p%" PRIu64, number);
	o = kube_new(w, (enum slu_kkind)(of & 0xff), "ns", name);
	set_min(o, (int32_t)(of >> 8));
	world_say(w, "PodGroup %s: %d members", name, o->custom.min);
	kube_create(w, o);
}

static const enum slu_kkind group_kinds[] = { SLU_KIND_PODGROUP_X, SLU_KIND_PODGROUP_SIGS,
					      SLU_KIND_PODGROUP_BETA };

/* Its pods come before it or after it, and may be more than it names. */
static void submit_group(struct world *w, struct slu_rng *r)
{
	static const char *const key[] = { "scheduling.x-k8s.io/pod-group",
					   "pod-group.scheduling.sigs.k8s.io" };
	uint64_t k = slu_rng_below(r, SLU_LEN(group_kinds));
	int32_t n = 1 + (int32_t)slu_rng_below(r, 6), more = (int32_t)slu_rng_below(r, 2);
	int64_t late = slu_rng_below(r, 2) ? 0 : (int64_t)slu_rng_below(r, 6000) * 1000;
	struct tmpl t = { .cpu_m = 500 << slu_rng_below(r, 3),
			  .run_s = 1 + (int32_t)slu_rng_below(r, 40),
			  .tolerates = true };
	uint64_t of = (uint64_t)group_kinds[k] | (uint64_t)n << 8;
	char name[16];

	if (!w->customs)
		return;
	snprintf(name, sizeof name, "p%" PRIu64, ++w->next_name);
	snprintf(t.scheduler, sizeof t.scheduler, "sluice");
	if (k < SLU_LEN(key))
		pairs_set(&t.label, key[k], name);
	else
		snprintf(t.native, sizeof t.native, "%s", name);
	if (late)
		world_at(w, w->now_us + late, appear, w->next_name, of);
	else
		appear(w, w->next_name, of);
	world_say(w, "%d pods of PodGroup %s, %d millicores for %d s", n + more, name, t.cpu_m,
		  t.run_s);
	for (int32_t i = 0; i < n + more; i++) {
		char pod[32];
		struct obj *o;

		snprintf(pod, sizeof pod, "%s-%d", name, i);
		o = kube_new(w, SLU_KIND_POD, "ns", pod);
		o->pod.t = t;
		o->pod.by = o->pod.index = -1;
		o->label = t.label;
		kube_create(w, o);
	}
}

static void resize_group(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, group_kinds[slu_rng_below(r, SLU_LEN(group_kinds))], r);

	if (!o || o->deleted_us)
		return;
	set_min(o, 1 + (int32_t)slu_rng_below(r, 7));
	world_say(w, "PodGroup %s: %d members", o->name, o->custom.min);
	kube_changed(w, o, true);
}

static void delete_group(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, group_kinds[slu_rng_below(r, SLU_LEN(group_kinds))], r);

	if (!o || o->deleted_us)
		return;
	world_say(w, "PodGroup %s is deleted", o->name);
	kube_delete(w, o, BACKGROUND);
}

/* ---- FluxJobs ---- */

static void submit_fluxjob(struct world *w, struct slu_rng *r)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16), spec = SLU_BUF_INIT(1 << 16);
	struct slu_jsonw j = slu_jsonw(&spec, SLU_JSONW_COMPACT);
	int32_t slots = 1 + (int32_t)slu_rng_below(r, 6), cores = 1 << slu_rng_below(r, 3);
	int32_t run = 1 + (int32_t)slu_rng_below(r, 40);
	struct obj *o;
	char name[24];

	if (!w->customs)
		return;
	snprintf(name, sizeof name, "x%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_FLUXJOB, "ns", name);
	slu_buf_printf(
		&b,
		"version: 1\nresources:\n- type: slot\n  count: %d\n  label: default\n  with:\n"
		"  - {type: core, count: %d}\ntasks:\n- {command: [\"x\"], slot: default, count: "
		"{per_slot: 1}}\nattributes:\n  system: {duration: %d}\n",
		slots, cores, run);
	slu_jsonw_obj(&j);
	slu_jsonw_kstr(&j, "jobspec",
		       slu_rng_below(r, 8) ? slu_buf_str(&b) : "version: 1\nrubbish");
	slu_jsonw_end_obj(&j);
	o->custom.spec = keep(&spec);
	o->custom.own = true;
	slu_buf_done(&b);
	world_say(w, "FluxJob %s: %d slots of %d cores for %d s", name, slots, cores, run);
	kube_create(w, o);
}

/* Somebody's own, or the one of held work: then the work is cancelled. */
static void delete_fluxjob(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_FLUXJOB, r), *owner;

	if (!o || o->deleted_us)
		return;
	owner = kube_get(w, o->owner);
	if (owner)
		owner->edited = true;
	world_say(w, "FluxJob %s is deleted", o->name);
	kube_delete(w, o, BACKGROUND);
}

/* ---- Reservations ---- */

static void stamp(int64_t us, char *text, size_t size)
{
	time_t s = (time_t)(us / SECOND);
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void reserve(struct world *w, struct slu_rng *r)
{
	int64_t from = w->now_us + (int64_t)slu_rng_below(r, 40) * SECOND;
	struct slu_rec_ask a = { .what = SLU_ASK_RESERVE };
	char start[32], end[32], text[700];

	if (!w->customs)
		return;
	stamp(from, start, sizeof start);
	stamp(from + (1 + (int64_t)slu_rng_below(r, 60)) * SECOND, end, sizeof end);
	snprintf(a.ns, sizeof a.ns, "ns");
	snprintf(a.name, sizeof a.name, "v%" PRIu64, ++w->next_name);
	snprintf(text, sizeof text,
		 "{\"apiVersion\":\"sluice.sh/v1alpha1\",\"kind\":\"Reservation\",\"metadata\":{"
		 "\"name\":\"%s\",\"namespace\":\"ns\"},\"spec\":{\"count\":%d,\"start\":\"%s\","
		 "\"end\":\"%s\",\"users\":[\"ada\"]%s}}",
		 a.name, 1 + (int)slu_rng_below(r, 2), start, end,
		 slu_rng_below(r, 3) ? "" : ",\"every\":\"2m\"");
	a.text = text;
	world_say(w, "sluice reserve %s, from %s until %s", a.name, start, end);
	if (slu_rng_below(r, 2))
		daemon_ask_for(w, 0, &a);
	else
		custom_create(w, SLU_KIND_RESERVATION, text); /* kubectl apply */
}

static void unreserve(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_RESERVATION, r);

	if (!o || o->deleted_us)
		return;
	if (slu_rng_below(r, 2)) {
		world_say(w, "sluice unreserve %s", o->name);
		daemon_ask(w, 0, SLU_ASK_UNRESERVE, o->ns, o->name);
	} else {
		world_say(w, "Reservation %s is deleted", o->name);
		kube_delete(w, o, BACKGROUND);
	}
}

/* ---- JobSets ---- */

static void submit_jobset(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "q%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_PARTIAL, "ns", name);
	o->jobset.t = (struct tmpl){ .cpu_m = 500 << slu_rng_below(r, 2),
				     .run_s = 1 + (int32_t)slu_rng_below(r, 30),
				     .fail = slu_rng_below(r, 4) ? 0 : 150,
				     .tolerates = true };
	snprintf(o->jobset.t.scheduler, sizeof o->jobset.t.scheduler, "sluice");
	pairs_set(&o->jobset.t.label, "jobset.sigs.k8s.io/jobset-name", name);
	o->jobset.jobs = 1 + (int32_t)slu_rng_below(r, 3);
	o->jobset.size = 1 + (int32_t)slu_rng_below(r, 4);
	o->jobset.restarts = 1;
	world_say(w, "JobSet %s: %d Jobs of %d pods, %d millicores for %d s", name, o->jobset.jobs,
		  o->jobset.size, o->jobset.t.cpu_m, o->jobset.t.run_s);
	kube_create(w, o);
}

static void delete_jobset(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_PARTIAL, r);
	bool before = slu_rng_below(r, 2);

	if (!o || o->deleted_us)
		return;
	world_say(w, "JobSet %s is deleted", o->name);
	kube_delete(w, o, before ? FOREGROUND : BACKGROUND);
}

/* ---- Jobs that wait for others ---- */

static void submit_after(struct world *w, struct slu_rng *r)
{
	const struct obj *before = any(w, SLU_KIND_JOB, r);
	struct obj *o;
	char name[24];

	if (!before || strcmp(before->ns, "ns") || before->deleted_us)
		return;
	snprintf(name, sizeof name, "c%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_JOB, "ns", name);
	o->job.t = (struct tmpl){ .cpu_m = 500, .run_s = 5, .tolerates = true };
	snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "sluice");
	pairs_set(&o->job.t.note, "sluice.sh/after", before->name);
	o->job.parallelism = o->job.completions = 1 + (int32_t)slu_rng_below(r, 3);
	o->job.backoff = 6;
	o->edited = true; /* what it waits for may never end */
	world_say(w, "Job %s: %d pods, after %s", name, o->job.parallelism, before->name);
	kube_create(w, o);
}

const struct op custom_ops[] = {
	{ "a PodGroup", 8, submit_group, 1 },
	{ "a PodGroup is resized", 2, resize_group, 1 },
	{ "a PodGroup is deleted", 2, delete_group, 1 },
	{ "a FluxJob", 5, submit_fluxjob, 1 },
	{ "a FluxJob is deleted", 2, delete_fluxjob, 1 },
	{ "a Reservation", 3, reserve, 1 },
	{ "a Reservation ends", 2, unreserve, 1 },
	{ "a JobSet", 5, submit_jobset, 1 },
	{ "a JobSet is deleted", 2, delete_jobset, 1 },
	{ "a Job after another", 4, submit_after, 1 },
	{ 0 },
};
