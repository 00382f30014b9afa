/* People who change what objects say, by kubectl edit: keys removed or forged, gates, sizes, owners.
 * Nobody says what should become of such an object any more (obj.edited), only what must not. */
#include <stdio.h>

#include "world.h"

static struct obj *any(struct world *w, enum slu_kkind kind, struct slu_rng *r)
{
	uint32_t n = w->obj[kind].n;

	return n ? w->obj[kind].p[slu_rng_below(r, n)] : NULL;
}

static struct obj *job_or_pod(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, slu_rng_below(r, 2) ? SLU_KIND_POD : SLU_KIND_JOB, r);

	return o && !o->deleted_us ? o : NULL;
}

/* So is everything that starts together with it. */
static void mark(struct world *w, struct obj *o)
{
	struct obj *owner = kube_get(w, o->owner);

	if (o->edited)
		return;
	o->edited = true;
	if (owner)
		mark(w, owner);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++)
		if (o->kind == SLU_KIND_PARTIAL && w->obj[SLU_KIND_JOB].p[i]->owner == o->uid)
			mark(w, w->obj[SLU_KIND_JOB].p[i]);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];
		const char *set = pairs_get(&p->label, "jobset.sigs.k8s.io/jobset-name");

		if (o->kind == SLU_KIND_POD
			    ? rule_gang(w, p) == rule_gang(w, o)
			    : o->kind == SLU_KIND_PARTIAL && set && !strcmp(set, o->name))
			mark(w, p);
	}
}

static void remove_key(struct world *w, struct slu_rng *r)
{
	struct obj *o = job_or_pod(w, r);
	char key[40];

	if (!o || !o->note.n)
		return;
	snprintf(key, sizeof key, "%s", o->note.p[slu_rng_below(r, o->note.n)].key);
	world_say(w, "annotation %s of %s is removed", key, o->name);
	mark(w, o);
	pairs_set(&o->note, key, NULL);
	kube_changed(w, o, false);
}

static void forge_key(struct world *w, struct slu_rng *r)
{
	static const char *const key[] = {
		"sluice.sh/node",         "sluice.sh/nodes",      "sluice.sh/places",
		"sluice.sh/held",         "sluice.sh/ahead",      "sluice.sh/user",
		"sluice.sh/on-hold",      "sluice.sh/cancelled",  "sluice.sh/seen-us",
		"sluice.sh/set-priority", "sluice.sh/set-limit",  "sluice.sh/queue",
		"sluice.sh/duration",     "sluice.sh/after",      "sluice.sh/begin",
		"sluice.sh/topology",     "sluice.sh/deadline",   "sluice.sh/exclusive",
		"sluice.sh/max-size",     "sluice.sh/reservation"
	};
	static const char *const value[] = {
		"true", "n0",    "[\"n0\",\"n1\"]",       "-1", "", "99999999999", "other", "rack",
		"2",    "ok:j1", "9999999999999999999999"
	};
	struct obj *o = job_or_pod(w, r);
	const char *k = key[slu_rng_below(r, SLU_LEN(key))];
	const char *v = value[slu_rng_below(r, SLU_LEN(value))];

	if (!o)
		return;
	world_say(w, "annotation %s of %s becomes \"%s\"", k, o->name, v);
	mark(w, o);
	pairs_set(&o->note, k, v);
	kube_changed(w, o, false);
}

/* A group's name and size are changed on some of its pods. */
static void change_group(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r);
	char size[12];

	if (!o || o->deleted_us || !pairs_get(&o->label, "sluice.sh/group"))
		return;
	snprintf(size, sizeof size, "%d", 1 + (int)slu_rng_below(r, 7));
	world_say(w, "pod %s says that its group has %s members", o->name, size);
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		if (pairs_get(&w->obj[SLU_KIND_POD].p[i]->label, "sluice.sh/group"))
			w->obj[SLU_KIND_POD].p[i]->edited = true;
	pairs_set(&o->label, "sluice.sh/size", size);
	kube_changed(w, o, false);
}

static void remove_gate(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r);

	if (!o || o->deleted_us || !(o->pod.t.gates & GATE_OURS))
		return;
	world_say(w, "somebody removes the gate of pod %s", o->name);
	mark(w, o);
	o->pod.t.gates &= (uint8_t)~GATE_OURS;
	kube_changed(w, o, true);
}

static void swap_owner(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r), *to = any(w, SLU_KIND_JOB, r);

	if (!o || !to || o->deleted_us || to->deleted_us || strcmp(o->ns, to->ns) ||
	    !o->pod.t.run_s)
		return;
	world_say(w, "pod %s belongs to Job %s from now on", o->name, to->name);
	mark(w, o);
	mark(w, to);
	o->owner = to->uid;
	o->owner_kind = SLU_KIND_JOB;
	snprintf(o->owner_name, sizeof o->owner_name, "%s", to->name);
	kube_changed(w, o, false);
}

/* In place, as kubelets can: smaller, or larger where there is room. */
static void resize_pod(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r), *n;
	int32_t to = 500 << slu_rng_below(r, 3);

	if (!o || o->deleted_us || o->pod.phase != RUNNING)
		return;
	n = kube_find(w, SLU_KIND_NODE, "", o->pod.node);
	if (!n || kube_used(w, n->name) - o->pod.t.cpu_m + to > n->node.cpu_m)
		return;
	world_say(w, "pod %s is resized in place from %d to %d millicores", o->name, o->pod.t.cpu_m,
		  to);
	o->pod.t.cpu_m = to;
	kube_changed(w, o, true);
}

static void relabel_node(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_NODE, r);

	if (!o)
		return;
	snprintf(o->node.pool, sizeof o->node.pool, "%s", strcmp(o->node.pool, "a") ? "a" : "b");
	pairs_set(&o->label, "pool", o->node.pool);
	world_say(w, "node %s is in pool %s now", o->name, o->node.pool);
	kube_changed(w, o, false);
}

/* As large as a server stores them, in bytes; kubectl apply leaves such annotations. */
static void enormous(struct world *w, struct slu_rng *r)
{
	static const enum slu_kkind kind[] = { SLU_KIND_POD, SLU_KIND_JOB, SLU_KIND_NODE };
	struct obj *o = any(w, kind[slu_rng_below(r, SLU_LEN(kind))], r);

	if (!o || o->deleted_us)
		return;
	o->big = 256u << slu_rng_below(r, 11);
	world_say(w, "%s %s becomes %u bytes larger", slu_kkind_info(o->kind)->kind, o->name,
		  o->big);
	kube_changed(w, o, false);
}

static void let_go(struct world *w, uint64_t uid, uint64_t unused)
{
	kube_unfinalize(w, kube_get(w, uid), FIN_USER);
}

/* Deleted, and kept by a finalizer of somebody who takes a while. */
static void half_delete(struct world *w, struct slu_rng *r)
{
	struct obj *o = any(w, SLU_KIND_POD, r);

	if (!o || o->deleted_us)
		return;
	world_say(w, "pod %s is deleted, and stays for a while", o->name);
	o->fin |= FIN_USER;
	kube_delete(w, o, BACKGROUND);
	world_at(w, w->now_us + (int64_t)(1 + slu_rng_below(r, 40)) * SECOND, let_go, o->uid, 0);
}

const struct op edit_ops[] = {
	{ "an annotation is removed", 3, remove_key, 1 },
	{ "an annotation is forged", 5, forge_key, 1 },
	{ "a group's size is changed", 2, change_group, 1 },
	{ "a gate is removed", 3, remove_gate, 1 },
	{ "an owner is swapped", 2, swap_owner, 1 },
	{ "a pod is resized in place", 3, resize_pod, 1 },
	{ "a node is relabelled", 2, relabel_node, 1 },
	{ "an object becomes enormous", 1, enormous, 3 },
	{ "a pod is half deleted", 4, half_delete, 3 },
	{ 0 },
};
