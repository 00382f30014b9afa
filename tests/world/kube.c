/* The API server: objects with versions, finalizers and owners, and a log that watches read. */
#include <stdio.h>
#include <string.h>

#include "kube/client.h"
#include "wire.h"

#define LOG_KEEP 400u /* lines of a kind a watch may be behind; then 410 */

void pairs_set(struct pairs *p, const char *key, const char *value)
{
	uint32_t i = 0;

	while (i < p->n && strcmp(p->p[i].key, key))
		i++;
	if (!value) {
		if (i < p->n)
			memmove(&p->p[i], &p->p[i + 1], (--p->n - i) * sizeof p->p[0]);
		return;
	}
	if (i == SLU_LEN(p->p))
		return;
	snprintf(p->p[i].key, sizeof p->p[i].key, "%s", key);
	snprintf(p->p[i].value, sizeof p->p[i].value, "%s", value);
	p->n = SLU_MAX(p->n, i + 1);
}

const char *pairs_get(const struct pairs *p, const char *key)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!strcmp(p->p[i].key, key))
			return p->p[i].value;
	return NULL;
}

struct obj *kube_get(struct world *w, uint64_t uid)
{
	uint64_t *p = uid ? slu_map_get(&w->by_uid, uid) : NULL;

	return p ? (struct obj *)(uintptr_t)*p : NULL;
}

struct obj *kube_find(struct world *w, enum slu_kkind kind, const char *ns, const char *name)
{
	for (uint32_t i = w->obj[kind].n; i-- > 0;) {
		struct obj *o = w->obj[kind].p[i];

		if (is_live(o) && !strcmp(o->name, name) && !strcmp(o->ns, ns))
			return o;
	}
	return NULL;
}

struct obj *kube_new(struct world *w, enum slu_kkind kind, const char *ns, const char *name)
{
	struct obj *o = slu_calloc(1, sizeof *o);

	o->kind = kind;
	o->uid = ++w->next_uid;
	snprintf(o->ns, sizeof o->ns, "%s", ns);
	snprintf(o->name, sizeof o->name, "%s", name);
	o->created_us = w->now_us;
	o->generation = 1;
	if (slu_map_put(&w->by_uid, o->uid, (uint64_t)(uintptr_t)o) < 0 ||
	    slu_vec_push(&w->obj[kind], o) < 0)
		abort();
	return o;
}

/* It is in no list any more; by_uid keeps it. */
static void unlist(struct world *w, struct obj *o)
{
	uint32_t i = w->obj[o->kind].n;

	while (i-- > 0 && w->obj[o->kind].p[i] != o)
		;
	memmove(&w->obj[o->kind].p[i], &w->obj[o->kind].p[i + 1],
		(--w->obj[o->kind].n - i) * sizeof o);
}

/* ---- the log ---- */

static void publish(struct world *w, struct obj *o, int what)
{
	struct wlog *l = &w->log[o->kind];
	struct line x = { .rv = ++w->rv, .at_us = w->now_us, .o = o, .what = what };

	o->rv = x.rv;
	o->changed_us = w->now_us;
	x.doomed = o->deleted_us || what == LINE_DELETED;
	x.bound = o->kind == SLU_KIND_POD && *o->pod.node;
	w->buf.n = 0;
	wire_event(w, o, what, &w->buf);
	x.n = (uint32_t)w->buf.n;
	x.text = slu_malloc(x.n + 1);
	memcpy(x.text, slu_buf_str(&w->buf), x.n + 1);
	w->digest = slu_hash_u64(w->digest ^ slu_hash_bytes(x.text, x.n));
	if (slu_vec_push(&l->line, x) < 0)
		abort();
	while (l->line.n - l->first > LOG_KEEP) {
		slu_free(l->line.p[l->first].text);
		l->line.p[l->first++].text = NULL;
	}
	daemon_news(w, o->kind);
}

bool kube_since(struct world *w, enum slu_kkind kind, uint64_t rv, uint32_t *at)
{
	const struct wlog *l = &w->log[kind];

	if (l->first && l->line.p[l->first - 1].rv > rv)
		return false;
	for (*at = l->line.n; *at > l->first && l->line.p[*at - 1].rv > rv;)
		--*at;
	return true;
}

/* ---- who looks at a change ---- */

static void look(struct world *w, uint64_t uid, uint64_t kind)
{
	struct obj *o = kube_get(w, uid);
	int64_t until = o ? w->fault.stall_until_us[o->kind] : 0;

	if (!o)
		return;
	if (until > w->now_us) {
		world_at(w, until, look, uid, kind);
		return;
	}
	o->due = false;
	switch (o->kind) {
	case SLU_KIND_JOB:
		job_look(w, o);
		break;
	case SLU_KIND_REPLICASET:
	case SLU_KIND_DEPLOYMENT:
	case SLU_KIND_STATEFULSET:
		set_look(w, o);
		break;
	case SLU_KIND_PARTIAL:
		jobset_look(w, o);
		break;
	case SLU_KIND_POD:
		if (!is_live(o))
			break;
		kubelet_look(w, o);
		if (is_live(o) && !*o->pod.node && !o->deleted_us)
			scheduler_look(w, o);
		break;
	default:
		break;
	}
}

void kube_look(struct world *w, struct obj *o)
{
	if (!o || o->due || o->kind == SLU_KIND_NODE || o->kind == SLU_KIND_NAMESPACE)
		return;
	o->due = true;
	world_at(w, w->now_us + world_span(w, o->uid ^ o->rv << 20, 2000, 40000), look, o->uid, 0);
}

static void tell(struct world *w, struct obj *o)
{
	kube_look(w, o);
	if (o->owner)
		kube_look(w, kube_get(w, o->owner));
}

/* ---- writing ---- */

/* A ResourceQuota of pods: controllers are refused, and try again. */
static bool is_over_quota(struct world *w, const struct obj *o)
{
	uint32_t n = 0;

	if (o->kind != SLU_KIND_POD || w->fault.quota_until_us <= w->now_us)
		return false;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		n += w->obj[SLU_KIND_POD].p[i] != o && !is_over(w->obj[SLU_KIND_POD].p[i]) &&
		     !strcmp(w->obj[SLU_KIND_POD].p[i]->ns, o->ns);
	if (n < w->fault.quota)
		return false;
	world_say(w, "pod %s is not made: the quota of %s is %u pods", o->name, o->ns,
		  w->fault.quota);
	return true;
}

bool kube_create(struct world *w, struct obj *o)
{
	struct obj *old = NULL;

	for (uint32_t i = 0; i + 1 < w->obj[o->kind].n && !old; i++) {
		struct obj *x = w->obj[o->kind].p[i];

		if (is_live(x) && !strcmp(x->name, o->name) && !strcmp(x->ns, o->ns))
			old = x;
	}
	if (o->kind == SLU_KIND_POD && w->age >= 2)
		classes_admit(w, o);
	if (old || is_over_quota(w, o) || !admit(w, o)) {
		o->gone_us = w->now_us;
		unlist(w, o);
		return false;
	}
	publish(w, o, LINE_ADDED);
	tell(w, o);
	return true;
}

void kube_changed(struct world *w, struct obj *o, bool spec)
{
	if (!is_live(o))
		return;
	o->generation += spec;
	publish(w, o, LINE_MODIFIED);
	tell(w, o);
}

static void vanish(struct world *w, struct obj *o)
{
	o->gone_us = w->now_us;
	if (!o->deleted_us)
		o->deleted_us = w->now_us;
	unlist(w, o);
	publish(w, o, LINE_DELETED);
	if (o->owner)
		kube_look(w, kube_get(w, o->owner));
	gc_owner_gone(w, o);
}

void kube_unfinalize(struct world *w, struct obj *o, uint8_t fin)
{
	bool had = o->fin & fin;

	o->fin &= (uint8_t)~fin;
	if (!is_live(o) || !had)
		return;
	if (o->deleted_us && !o->fin && !(o->kind == SLU_KIND_POD && *o->pod.node && !is_over(o)))
		vanish(w, o);
	else
		kube_changed(w, o, false);
}

void kube_remove(struct world *w, struct obj *o)
{
	if (!is_live(o))
		return;
	if (!o->fin) {
		vanish(w, o);
		return;
	}
	if (o->kind == SLU_KIND_POD && !is_over(o)) {
		o->pod.phase = FAILED;
		o->pod.end_us = w->now_us;
	}
	if (!o->deleted_us)
		o->deleted_us = w->now_us;
	kube_changed(w, o, false);
}

void kube_delete(struct world *w, struct obj *o, enum cascade how)
{
	if (!is_live(o) || o->deleted_us)
		return;
	if (how == FOREGROUND && o->kind != SLU_KIND_POD)
		o->fin |= FIN_FOREGROUND;
	if (how == ORPHAN && o->kind != SLU_KIND_POD)
		o->fin |= FIN_ORPHAN;
	if (o->kind == SLU_KIND_POD && *o->pod.node && !is_over(o)) {
		o->deleted_us = w->now_us; /* the kubelet ends it first */
		kube_changed(w, o, true);
		return;
	}
	if (!o->fin) {
		vanish(w, o);
		return;
	}
	o->deleted_us = w->now_us;
	kube_changed(w, o, true);
	if (o->fin & (FIN_FOREGROUND | FIN_ORPHAN))
		gc_owner_gone(w, o);
}

int64_t kube_used(struct world *w, const char *node)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		if (is_live(o) && !is_over(o) && !strcmp(o->pod.node, node))
			sum += cpu_of(o);
	}
	return sum;
}

uint32_t kube_alive(struct world *w, uint64_t owner)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		n += is_live(o) && o->owner == owner && !is_over(o) && !o->deleted_us;
	}
	return n;
}

int kube_bind(struct world *w, struct obj *pod, const char *node, int by)
{
	if (!is_live(pod))
		return SLU_KUBE_NOT_FOUND;
	if (!*node)
		return SLU_KUBE_INVALID;
	if (pod->deleted_us || *pod->pod.node || pod->pod.t.gates)
		return SLU_KUBE_CONFLICT;
	snprintf(pod->pod.node, sizeof pod->pod.node, "%s", node);
	pod->pod.by = by;
	pod->pod.bound_us = w->now_us;
	pod->pod.unschedulable = false;
	world_say(w, "pod %s is bound to %s by %s", pod->name, node,
		  by < 0 ? "the default scheduler" : "sluiced");
	kube_changed(w, pod, false);
	return SLU_KUBE_OK;
}

int kube_evict(struct world *w, struct obj *pod)
{
	if (!is_live(pod))
		return SLU_KUBE_NOT_FOUND;
	if (w->fault.budget_until_us > w->now_us) {
		world_say(w, "pod %s is not evicted: its PodDisruptionBudget", pod->name);
		return SLU_KUBE_RETRYABLE;
	}
	world_say(w, "pod %s is evicted", pod->name);
	kube_delete(w, pod, BACKGROUND);
	return SLU_KUBE_OK;
}
