/* What happens on nodes and in namespaces beside the daemon: an autoscaler, drains by kubectl,
 * budgets, quotas, kubelets that refuse, are slow, or run out of memory. */
#include <stdio.h>

#include "world.h"

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

static int64_t seconds(struct slu_rng *r, uint64_t most)
{
	return (int64_t)(1 + slu_rng_below(r, most * 1000)) * 1000;
}

/* ---- the autoscaler ---- */

static void add_node(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	if (w->obj[SLU_KIND_NODE].n > 14)
		return;
	snprintf(name, sizeof name, "a%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_NODE, "", name);
	o->node.cpu_m = 4000;
	o->node.ready = true;
	snprintf(o->node.pool, sizeof o->node.pool, "%s", slu_rng_below(r, 2) ? "a" : "b");
	pairs_set(&o->label, "kubernetes.io/hostname", name);
	pairs_set(&o->label, "topology.sluice.sh/rack", "r9");
	pairs_set(&o->label, "pool", o->node.pool);
	world_say(w, "the autoscaler adds node %s", name);
	kube_create(w, o);
}

/* It takes a node away that it takes for empty: somebody may have been bound to it just now. */
static void take_node(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o) || w->calm)
		return;
	if (kube_used(w, o->name)) {
		o->node.taint = false;
		kube_changed(w, o, true);
		return;
	}
	world_say(w, "the autoscaler removes node %s", o->name);
	kube_delete(w, o, BACKGROUND);
	faults_node_gone(w, o);
}

static void remove_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || *o->name != 'a' || kube_used(w, o->name))
		return;
	o->node.taint = true;
	world_say(w, "the autoscaler wants node %s to be empty", o->name);
	kube_changed(w, o, true);
	world_at(w, w->now_us + seconds(r, 6), take_node, o->uid, 0);
}

/* ---- people with kubectl ---- */

static void evict_rest(struct world *w, uint64_t uid, uint64_t tries)
{
	struct obj *n = kube_get(w, uid);
	bool left = false;

	for (uint32_t i = w->obj[SLU_KIND_POD].n; i-- > 0 && is_live(n);) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];

		if (strcmp(p->pod.node, n->name) || is_over(p) || p->deleted_us)
			continue;
		left |= kube_evict(w, p) != 0;
		i = SLU_MIN(i, w->obj[SLU_KIND_POD].n);
	}
	if (left && tries < 20)
		world_at(w, w->now_us + 5 * SECOND, evict_rest, uid, tries + 1);
}

static void uncordon(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *o = kube_get(w, uid);

	if (!is_live(o) || !o->node.cordoned)
		return;
	o->node.cordoned = false;
	kube_changed(w, o, true);
}

static void kubectl_drain(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o || o->node.cordoned)
		return;
	o->node.cordoned = true;
	world_say(w, "kubectl drain %s", o->name);
	kube_changed(w, o, true);
	evict_rest(w, o->uid, 0);
	world_at(w, w->now_us + seconds(r, 40), uncordon, o->uid, 0);
}

/* A taint that pods which do not tolerate it must leave at once; it stays. */
static void taint_evicts(struct world *w, struct slu_rng *r)
{
	struct obj *n = any(w, SLU_KIND_NODE, r);

	if (!n || n->node.taint)
		return;
	n->node.taint = true;
	world_say(w, "node %s is tainted, and its pods go", n->name);
	kube_changed(w, n, true);
	for (uint32_t i = w->obj[SLU_KIND_POD].n; i-- > 0;) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];

		if (!strcmp(p->pod.node, n->name) && !is_over(p) && !p->pod.t.tolerates)
			kube_delete(w, p, BACKGROUND);
		i = SLU_MIN(i, w->obj[SLU_KIND_POD].n);
	}
}

static void evict_pod(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r);

	if (o && !o->deleted_us)
		kube_evict(w, o);
}

static void budget(struct world *w, struct slu_rng *r)
{
	w->fault.budget_until_us = w->now_us + seconds(r, 30);
	world_say(w, "a PodDisruptionBudget allows no evictions");
}

static void quota(struct world *w, struct slu_rng *r)
{
	w->fault.quota_until_us = w->now_us + seconds(r, 40);
	w->fault.quota = 2 + (uint32_t)slu_rng_below(r, 12);
	world_say(w, "a ResourceQuota allows %u pods in a namespace", w->fault.quota);
}

/* ---- kubelets ---- */

static void slow_starts(struct world *w, struct slu_rng *r)
{
	w->fault.start_slow_until_us = w->now_us + seconds(r, 30);
	world_say(w, "kubelets start no pods for a while");
}

static void refuse(struct world *w, struct slu_rng *r)
{
	w->fault.refuse += 1 + (int)slu_rng_below(r, 3);
}

static void out_of_memory(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r);

	if (!o || o->pod.phase != RUNNING)
		return;
	o->pod.phase = FAILED;
	o->pod.end_us = w->now_us;
	snprintf(o->pod.reason, sizeof o->pod.reason, "OOMKilled");
	world_say(w, "pod %s is out of memory", o->name);
	kube_changed(w, o, false);
}

/* A kubelet that begins again says once more what it runs. */
static void kubelet_restarts(struct world *w, struct slu_rng *r)
{
	struct obj *n = any(w, SLU_KIND_NODE, r);

	if (!n)
		return;
	world_say(w, "the kubelet of %s begins again", n->name);
	kube_changed(w, n, false);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		if (!strcmp(w->obj[SLU_KIND_POD].p[i]->pod.node, n->name))
			kube_changed(w, w->obj[SLU_KIND_POD].p[i], false);
}

/* ---- Jobs that end in other ways ---- */

static void job_policies(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "y%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_JOB, "ns", name);
	o->job.t = (struct tmpl){ .cpu_m = 500 << slu_rng_below(r, 3),
				  .run_s = 1 + (int32_t)slu_rng_below(r, 30),
				  .fail = 150,
				  .tolerates = true };
	snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "sluice");
	o->job.parallelism = 1 + (int32_t)slu_rng_below(r, 6);
	o->job.completions = slu_rng_below(r, 4) ? o->job.parallelism : -1;
	o->job.indexed = o->job.completions >= 0;
	o->job.backoff = (int32_t)slu_rng_below(r, 4);
	o->job.first_ends = o->job.indexed && slu_rng_below(r, 2);
	o->job.failure_ends = slu_rng_below(r, 2);
	world_say(w, "Job %s: %d pods of %d millicores for %d s, backoffLimit %d%s%s", name,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s, o->job.backoff,
		  o->job.first_ends ? ", a success policy" : "",
		  o->job.failure_ends ? ", a failure policy" : "");
	kube_create(w, o);
}

/* Failures do not count, however many there are: half of the runs fail. */
static void ignores_failures(struct world *w, struct slu_rng *r)
{
	struct obj *o;
	char name[24];

	snprintf(name, sizeof name, "i%" PRIu64, ++w->next_name);
	o = kube_new(w, SLU_KIND_JOB, "ns", name);
	o->job.t = (struct tmpl){ .cpu_m = 500 << slu_rng_below(r, 2),
				  .run_s = 1 + (int32_t)slu_rng_below(r, 10),
				  .fail = 500,
				  .tolerates = true };
	snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "sluice");
	o->job.parallelism = o->job.completions = 1 + (int32_t)slu_rng_below(r, 4);
	o->job.indexed = slu_rng_below(r, 2);
	o->job.failure_ignored = true;
	world_say(w, "Job %s: %d pods of %d millicores for %d s, failures are ignored", name,
		  o->job.parallelism, o->job.t.cpu_m, o->job.t.run_s);
	kube_create(w, o);
}

const struct op machine_ops[] = {
	{ "autoscaler adds a node", 3, add_node, 1 },
	{ "autoscaler removes a node", 4, remove_node, 1 },
	{ "kubectl drain", 2, kubectl_drain, 1 },
	{ "a pod is evicted", 3, evict_pod, 1 },
	{ "a taint that evicts", 3, taint_evicts, 4 },
	{ "disruption budget", 3, budget, 1 },
	{ "quota of pods", 2, quota, 1 },
	{ "pods start slowly", 3, slow_starts, 1 },
	{ "kubelet refuses pods", 2, refuse, 1 },
	{ "pod out of memory", 3, out_of_memory, 1 },
	{ "kubelet begins again", 2, kubelet_restarts, 1 },
	{ "submit a Job with policies", 6, job_policies, 1 },
	{ "submit a Job that ignores failures", 4, ignores_failures, 3 },
	{ 0 },
};
