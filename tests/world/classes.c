/* Objects that change what a pod asks for or where it may go: PriorityClasses, LimitRanges,
 * RuntimeClasses, volumes and their claims.  What the API server's own admission does with them, and
 * the people who make them and the Jobs that use them. */
#include <stdarg.h>
#include <stdio.h>

#include "world.h"

bool is_plain(enum slu_kkind k)
{
	return k == SLU_KIND_PRIORITYCLASS || k == SLU_KIND_LIMITRANGE ||
	       k == SLU_KIND_RUNTIMECLASS || k == SLU_KIND_PVC || k == SLU_KIND_PV;
}

static void set_body(struct obj *o, const char *fmt, ...) SLU_PRINTF(2, 3);
static void set_body(struct obj *o, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	slu_free(o->custom.spec);
	o->custom.spec = slu_strdup(text);
}

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

/* ---- the server's admission ---- */

static const struct obj *limits_of(struct world *w, const char *ns)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_LIMITRANGE].n; i++)
		if (!strcmp(w->obj[SLU_KIND_LIMITRANGE].p[i]->ns, ns))
			return w->obj[SLU_KIND_LIMITRANGE].p[i];
	return NULL;
}

int32_t classes_cpu(struct world *w, const char *ns, const struct tmpl *t)
{
	const struct obj *limits = limits_of(w, ns);
	const struct obj *rc = *t->runtime ? kube_find(w, SLU_KIND_RUNTIMECLASS, "", t->runtime)
					   : NULL;
	int32_t cpu = t->cpu_m ? t->cpu_m : t->limit_m;

	if (!cpu && limits)
		cpu = limits->custom.min;
	return cpu + (rc ? rc->custom.min : t->overhead_m);
}

void classes_admit(struct world *w, struct obj *pod)
{
	struct tmpl *t = &pod->pod.t;
	const struct obj *limits = limits_of(w, pod->ns);
	const struct obj *rc = *t->runtime ? kube_find(w, SLU_KIND_RUNTIMECLASS, "", t->runtime)
					   : NULL;
	const struct obj *pc = *t->priority ? kube_find(w, SLU_KIND_PRIORITYCLASS, "", t->priority)
					    : NULL;

	if (!t->cpu_m)
		t->cpu_m = t->limit_m;
	if (!t->cpu_m && limits)
		t->cpu_m = limits->custom.min;
	if (rc)
		t->overhead_m = rc->custom.min;
	if (pc)
		pod->pod.priority = pc->custom.min;
}

const char *classes_node(struct world *w, const char *ns, const struct tmpl *t)
{
	const struct obj *c = kube_find(w, SLU_KIND_PVC, ns, t->claim);
	const struct obj *v = c ? kube_find(w, SLU_KIND_PV, "", c->name) : NULL;

	return !*t->claim ? "" : v && c->custom.own ? v->label.p[0].value : NULL;
}

/* ---- people who make them ---- */

static void priority_class(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[16];

	snprintf(name, sizeof name, "pc%u", (unsigned)slu_rng_below(r, 4));
	if (kube_find(w, SLU_KIND_PRIORITYCLASS, "", name))
		return;
	o = kube_new(w, SLU_KIND_PRIORITYCLASS, "", name);
	o->custom.min = (int32_t)slu_rng_below(r, 1000) - 200;
	set_body(o, ",\"value\":%d", o->custom.min);
	w->mixed = true; /* who came first need not start first */
	world_say(w, "PriorityClass %s: %d", name, o->custom.min);
	kube_create(w, o);
}

static void runtime_class(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[16];

	snprintf(name, sizeof name, "rc%u", (unsigned)slu_rng_below(r, 3));
	if (kube_find(w, SLU_KIND_RUNTIMECLASS, "", name))
		return;
	o = kube_new(w, SLU_KIND_RUNTIMECLASS, "", name);
	o->custom.min = 50 << slu_rng_below(r, 4);
	set_body(o, ",\"handler\":\"h\",\"overhead\":{\"podFixed\":{\"cpu\":\"%dm\"}}",
		 o->custom.min);
	world_say(w, "RuntimeClass %s: %d millicores more", name, o->custom.min);
	kube_create(w, o);
}

static void limit_range(struct world *w, struct slu_rng *r)
{
	const char *ns = slu_rng_below(r, 2) ? "held" : "ns";
	struct obj *o = kube_find(w, SLU_KIND_LIMITRANGE, ns, "limits");

	if (o && slu_rng_below(r, 2)) {
		world_say(w, "the LimitRange of %s is deleted", ns);
		kube_delete(w, o, BACKGROUND);
		return;
	}
	if (!o)
		o = kube_new(w, SLU_KIND_LIMITRANGE, ns, "limits");
	o->custom.min = 250 << slu_rng_below(r, 4);
	set_body(
		o,
		",\"spec\":{\"limits\":[{\"type\":\"Container\",\"defaultRequest\":{\"cpu\":\"%dm\"}}]}",
		o->custom.min);
	world_say(w, "LimitRange of %s: %d millicores for who asks for nothing", ns, o->custom.min);
	if (o->rv)
		kube_changed(w, o, true);
	else
		kube_create(w, o);
}

static void bind_claim(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o))
		return;
	o->custom.own = true;
	set_body(
		o,
		",\"spec\":{\"volumeName\":\"%s\",\"storageClassName\":\"local\"},\"status\":{\"phase\":\"Bound\"}",
		o->name);
	world_say(w, "claim %s is bound to its volume", o->name);
	kube_changed(w, o, false);
}

/* A volume on one node, its claim, and a Job that uses it. */
static void claim(struct world *w, struct slu_rng *r)
{
	const struct obj *n = any(w, SLU_KIND_NODE, r);
	struct obj *v, *c, *o;
	char name[16], job[24];

	if (!n)
		return;
	snprintf(name, sizeof name, "vol%" PRIu64, ++w->next_name);
	v = kube_new(w, SLU_KIND_PV, "", name);
	pairs_set(&v->label, "kubernetes.io/hostname", n->name);
	set_body(
		v,
		",\"spec\":{\"claimRef\":{\"namespace\":\"ns\",\"name\":\"%s\"},\"storageClassName\":\"local\","
		"\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":"
		"\"kubernetes.io/hostname\",\"operator\":\"In\",\"values\":[\"%s\"]}]}]}}},"
		"\"status\":{\"phase\":\"Bound\"}",
		name, n->name);
	kube_create(w, v);
	c = kube_new(w, SLU_KIND_PVC, "ns", name);
	set_body(c,
		 ",\"spec\":{\"storageClassName\":\"local\"},\"status\":{\"phase\":\"Pending\"}");
	kube_create(w, c);
	world_at(w, w->now_us + (int64_t)slu_rng_below(r, 8000) * 1000, bind_claim, c->uid, 0);
	snprintf(job, sizeof job, "v%" PRIu64, w->next_name);
	o = kube_new(w, SLU_KIND_JOB, "ns", job);
	o->job.t = (struct tmpl){ .cpu_m = 500, .run_s = 1 + (int32_t)slu_rng_below(r, 30) };
	o->job.t.tolerates = true;
	snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "sluice");
	snprintf(o->job.t.claim, sizeof o->job.t.claim, "%s", name);
	o->job.parallelism = o->job.completions = 1 + (int32_t)slu_rng_below(r, 4);
	o->job.backoff = 6;
	world_say(w, "Job %s: %d pods with a volume on %s", job, o->job.parallelism, n->name);
	kube_create(w, o);
}

static void submit_with_classes(struct world *w, struct slu_rng *r)
{
	const struct obj *pc = any(w, SLU_KIND_PRIORITYCLASS, r);
	const struct obj *rc = any(w, SLU_KIND_RUNTIMECLASS, r);
	bool held = slu_rng_below(r, 2);
	const char *ns = held ? "held" : "ns";
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "s%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_JOB, ns, name);
	o->job.t = (struct tmpl){ .cpu_m = 500 << slu_rng_below(r, 3),
				  .run_s = 1 + (int32_t)slu_rng_below(r, 40),
				  .tolerates = true };
	snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "%s",
		 held && slu_rng_below(r, 2) ? "default-scheduler" : "sluice");
	if (pc && slu_rng_below(r, 2))
		snprintf(o->job.t.priority, sizeof o->job.t.priority, "%.7s", pc->name);
	if (rc && slu_rng_below(r, 2))
		snprintf(o->job.t.runtime, sizeof o->job.t.runtime, "%.7s", rc->name);
	if (limits_of(w, ns) && slu_rng_below(r, 2))
		o->job.t.cpu_m = 0;
	o->job.parallelism = o->job.completions = 1 + (int32_t)slu_rng_below(r, 6);
	o->job.backoff = 6;
	world_say(
		w,
		"%sJob %s: %d pods of %d millicores for %d s, priority class \"%s\", runtime class \"%s\"",
		held ? "held " : "", name, o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s,
		o->job.t.priority, o->job.t.runtime);
	kube_create(w, o);
}

const struct op class_ops[] = {
	{ "a PriorityClass", 3, priority_class, 2 },
	{ "a RuntimeClass", 3, runtime_class, 2 },
	{ "a LimitRange", 3, limit_range, 2 },
	{ "a volume and its claim", 4, claim, 2 },
	{ "submit a Job with classes", 8, submit_with_classes, 2 },
	{ 0 },
};
