/* Nodes: kubelets that start and end pods, and the default scheduler for pods that are not ours. */
#include <stdio.h>

#include "world.h"

/* ---- kubelets ---- */

static struct obj *home(struct world *w, const struct obj *pod)
{
	return *pod->pod.node ? kube_find(w, SLU_KIND_NODE, "", pod->pod.node) : NULL;
}

static void end_pod(struct world *w, uint64_t uid, uint64_t started)
{
	struct obj *p = kube_get(w, uid), *n = is_live(p) ? home(w, p) : NULL;

	if (!is_live(p) || p->pod.phase != RUNNING)
		return;
	if (!n || !n->node.ready) {
		world_at(w, w->now_us + 2 * SECOND, end_pod, uid, started);
		return;
	}
	p->pod.phase = world_span(w, uid * 77, 0, 1000) < p->pod.t.fail ? FAILED : SUCCEEDED;
	p->pod.end_us = w->now_us;
	kube_changed(w, p, false);
}

static void kill_pod(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *p = kube_get(w, uid), *n = is_live(p) ? home(w, p) : NULL;

	if (!is_live(p))
		return;
	if (n && !n->node.ready) /* nobody is there to confirm it */
		world_at(w, w->now_us + 2 * SECOND, kill_pod, uid, 0);
	else
		kube_remove(w, p);
}

/* What the kubelet has admitted already. */
static int64_t admitted(struct world *w, const char *node)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (!is_over(o) && o->pod.start_us && !strcmp(o->pod.node, node))
			sum += cpu_of(o);
	}
	return sum;
}

static void start_pod(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *p = kube_get(w, uid), *n = is_live(p) ? home(w, p) : NULL;

	if (!is_live(p) || p->pod.start_us || is_over(p) || p->deleted_us)
		return;
	if (!n || !n->node.ready || w->fault.start_slow_until_us > w->now_us) {
		world_at(w, w->now_us + SECOND, start_pod, uid, 0);
		return;
	}
	p->pod.start_us = w->now_us;
	if (admitted(w, p->pod.node) > n->node.cpu_m) {
		p->pod.phase = FAILED;
		p->pod.end_us = w->now_us;
		snprintf(p->pod.reason, sizeof p->pod.reason, "OutOfcpu");
		world_say(w, "pod %s is refused by its kubelet: OutOfcpu", p->name);
	} else if (w->fault.refuse > 0) {
		w->fault.refuse--;
		p->pod.phase = FAILED;
		p->pod.end_us = w->now_us;
		snprintf(p->pod.reason, sizeof p->pod.reason, "UnexpectedAdmissionError");
		world_say(w, "pod %s is refused by its kubelet", p->name);
	} else {
		p->pod.phase = RUNNING;
		rule_started(w, p);
		if (p->pod.t.run_s)
			world_at(w, w->now_us + p->pod.t.run_s * SECOND, end_pod, uid, 0);
	}
	kube_changed(w, p, false);
}

void kubelet_look(struct world *w, struct obj *p)
{
	if (!*p->pod.node)
		return;
	if (p->deleted_us)
		world_at(w, w->now_us + world_span(w, p->uid * 5, SECOND / 10, 3 * SECOND),
			 kill_pod, p->uid, 0);
	else if (!p->pod.start_us && !is_over(p))
		world_at(w, w->now_us + world_span(w, p->uid * 7, SECOND / 20, SECOND), start_pod,
			 p->uid, 0);
}

/* ---- the default scheduler ---- */

static bool suits(struct world *w, const struct obj *p, const struct obj *n)
{
	return n->node.ready && !n->node.cordoned && !n->deleted_us &&
	       (!n->node.taint || p->pod.t.tolerates) &&
	       (!*p->pod.t.pool || !strcmp(p->pod.t.pool, n->node.pool)) &&
	       (!*p->pod.pin || !strcmp(p->pod.pin, n->name)) &&
	       kube_used(w, n->name) + cpu_of(p) <= n->node.cpu_m;
}

static void try_again(struct world *w, uint64_t uid, uint64_t unused)
{
	struct obj *p = kube_get(w, uid);

	p->pod.trying = false;
	if (is_live(p) && !*p->pod.node && !p->deleted_us)
		scheduler_look(w, p);
}

void scheduler_look(struct world *w, struct obj *p)
{
	if (strcmp(p->pod.t.scheduler, "default-scheduler") || p->pod.t.gates || is_over(p))
		return;
	for (uint32_t i = w->obj[SLU_KIND_NODE].n; i-- > 0;)
		if (suits(w, p, w->obj[SLU_KIND_NODE].p[i])) {
			kube_bind(w, p, w->obj[SLU_KIND_NODE].p[i]->name, -1);
			return;
		}
	if (!p->pod.unschedulable) {
		p->pod.unschedulable = true;
		kube_changed(w, p, false);
		return; /* the change brings us back */
	}
	if (!p->pod.trying)
		world_at(w, w->now_us + 2 * SECOND, try_again, p->uid, 0);
	p->pod.trying = true;
}
