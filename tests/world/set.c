/* ReplicaSets, Deployments, StatefulSets: so many pods, always. */
#include <stdio.h>

#include "world.h"

static void look_later(struct world *w, uint64_t uid, uint64_t unused)
{
	kube_look(w, kube_get(w, uid));
}

static void replicaset(struct world *w, struct obj *o)
{
	uint32_t have = kube_alive(w, o->uid), want = (uint32_t)o->set.replicas;

	for (uint32_t i = w->obj[SLU_KIND_POD].n; have > want && i-- > 0;) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];

		if (p->owner != o->uid || is_over(p) || p->deleted_us)
			continue;
		have--;
		kube_delete(w, p, BACKGROUND);
		i = SLU_MIN(i, w->obj[SLU_KIND_POD].n);
	}
	for (; have < want; have++) {
		char name[48];

		snprintf(name, sizeof name, "%.32s-%" PRIu64, o->name, ++w->next_name);
		if (!make_pod(w, o, &o->set.t, name, -1, false)) {
			world_at(w, w->now_us + 5 * SECOND, look_later, o->uid, 0);
			return;
		}
	}
}

static bool is_ready(const struct obj *p)
{
	return p && p->pod.phase == RUNNING && !p->deleted_us;
}

static void statefulset(struct world *w, struct obj *o)
{
	struct obj *last = NULL;
	int32_t highest = -1;
	char name[64];

	for (int32_t i = 0; i < o->set.replicas; i++) {
		struct obj *p;

		snprintf(name, sizeof name, "%.40s-%d", o->name, i);
		p = kube_find(w, SLU_KIND_POD, o->ns, name);
		if (p && is_over(p) && !p->deleted_us)
			kube_delete(w, p, BACKGROUND); /* made anew once it is gone */
		if (!p && !make_pod(w, o, &o->set.t, name, -1, false)) {
			world_at(w, w->now_us + 5 * SECOND, look_later, o->uid, 0);
			return;
		}
		if (!o->set.parallel && !is_ready(p))
			return;
	}
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];
		int32_t ordinal = 0;

		if (p->owner == o->uid && sscanf(strrchr(p->name, '-'), "-%d", &ordinal) == 1 &&
		    ordinal >= SLU_MAX(o->set.replicas, highest)) {
			last = p;
			highest = ordinal;
		}
	}
	if (last)
		kube_delete(w, last, BACKGROUND);
}

static void deployment(struct world *w, struct obj *o)
{
	struct obj *rs = NULL;
	char name[48];

	for (uint32_t i = 0; i < w->obj[SLU_KIND_REPLICASET].n && !rs; i++)
		if (w->obj[SLU_KIND_REPLICASET].p[i]->owner == o->uid &&
		    w->obj[SLU_KIND_REPLICASET].p[i]->set.revision == o->set.revision)
			rs = w->obj[SLU_KIND_REPLICASET].p[i];
	for (uint32_t i = 0; i < w->obj[SLU_KIND_REPLICASET].n; i++) {
		struct obj *old = w->obj[SLU_KIND_REPLICASET].p[i];

		/* A roll-out: the old ones go one by one. */
		if (old->owner == o->uid && old != rs && old->set.replicas) {
			old->set.replicas--;
			kube_changed(w, old, true);
			kube_look(w, o);
		}
	}
	if (!rs) {
		snprintf(name, sizeof name, "%.32s-r%u", o->name, o->set.revision);
		rs = kube_new(w, SLU_KIND_REPLICASET, o->ns, name);
		rs->set = o->set;
		rs->owner = o->uid;
		rs->owner_kind = o->kind;
		snprintf(rs->owner_name, sizeof rs->owner_name, "%s", o->name);
		kube_create(w, rs);
	} else if (rs->set.replicas != o->set.replicas && !rs->deleted_us) {
		rs->set.replicas = o->set.replicas;
		kube_changed(w, rs, true);
	}
}

void set_look(struct world *w, struct obj *o)
{
	int32_t was = o->set.now;

	if (!is_live(o) || o->deleted_us)
		return;
	if (o->kind == SLU_KIND_REPLICASET)
		replicaset(w, o);
	else if (o->kind == SLU_KIND_STATEFULSET)
		statefulset(w, o);
	else
		deployment(w, o);
	o->set.now = o->kind == SLU_KIND_DEPLOYMENT ? o->set.replicas
						    : (int32_t)kube_alive(w, o->uid);
	if (was != o->set.now)
		kube_changed(w, o, false);
}
