/* The Job controller: pods for a Job, counted when they end, up to its completions. */
#include <stdio.h>

#include "world.h"

#define BACKOFF_US (2 * SECOND)

bool make_pod(struct world *w, struct obj *owner, const struct tmpl *t, const char *name,
	      int32_t index, bool tracked)
{
	struct obj *p = kube_new(w, SLU_KIND_POD, owner->ns, name);

	p->pod.t = *t;
	p->pod.by = -1;
	p->label = t->label;
	p->note = t->note;
	p->pod.index = index;
	if (!p->pod.t.cpu_m)
		p->pod.t.cpu_m = t->limit_m; /* as the server fills it in */
	p->edited = owner->edited;
	p->owner = owner->uid;
	p->owner_kind = owner->kind;
	snprintf(p->owner_name, sizeof p->owner_name, "%s", owner->name);
	p->fin = tracked ? FIN_JOB : 0;
	return kube_create(w, p);
}

/* Ends that were not counted yet; pods that are going lose their finalizer. */
static void count_ends(struct world *w, struct obj *o)
{
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];
		uint32_t n = w->obj[SLU_KIND_POD].n;

		if (p->owner != o->uid || !(p->fin & FIN_JOB))
			continue;
		if (is_over(p) && !p->pod.counted) {
			p->pod.counted = true;
			if (p->pod.phase == SUCCEEDED) {
				o->job.succeeded++;
				if (p->pod.index >= 0)
					o->job.done |= UINT64_C(1) << p->pod.index;
			} else if (!p->deleted_us) {
				o->job.failed += o->job.failure_ends      ? o->job.backoff + 1
						 : o->job.failure_ignored ? 0
									  : 1;
				o->job.quiet_us = w->now_us + BACKOFF_US;
			}
		}
		if (is_over(p) || (p->deleted_us && !*p->pod.node))
			kube_unfinalize(w, p, FIN_JOB);
		i -= w->obj[SLU_KIND_POD].n < n; /* it has gone from the list */
	}
}

static bool is_active(const struct obj *p, const struct obj *o)
{
	return p->owner == o->uid && !is_over(p) && !p->deleted_us;
}

/* Delete active pods, the newest first, until `keep` are left. */
static void delete_down_to(struct world *w, struct obj *o, uint32_t keep)
{
	for (uint32_t have = kube_alive(w, o->uid), i = w->obj[SLU_KIND_POD].n;
	     have > keep && i-- > 0;) {
		struct obj *p = w->obj[SLU_KIND_POD].p[i];

		if (!is_active(p, o))
			continue;
		have--;
		kube_delete(w, p, BACKGROUND);
		i = SLU_MIN(i, w->obj[SLU_KIND_POD].n);
	}
}

static int32_t free_index(struct world *w, const struct obj *o)
{
	uint64_t taken = o->job.done;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *p = w->obj[SLU_KIND_POD].p[i];

		if (p->pod.index >= 0 && is_active(p, o))
			taken |= UINT64_C(1) << p->pod.index;
	}
	return o->job.indexed ? (int32_t)__builtin_ctzll(~taken) : -1;
}

static void look_later(struct world *w, uint64_t uid, uint64_t unused)
{
	kube_look(w, kube_get(w, uid));
}

static void make_some(struct world *w, struct obj *o, uint32_t have, uint32_t want)
{
	/* In portions, as the real one: a gang gathers. */
	uint32_t most = 1 + (uint32_t)world_span(w, o->uid * 31 + o->job.made, 0, 16);

	for (uint32_t n = 0; have < want && n < most; n++, have++) {
		char name[48];

		o->job.made++;
		snprintf(name, sizeof name, "%.32s-%" PRIu64, o->name, ++w->next_name);
		if (!make_pod(w, o, &o->job.t, name, free_index(w, o), true)) {
			world_at(w, w->now_us + 5 * SECOND, look_later, o->uid, 0);
			return;
		}
	}
	if (have < want)
		kube_look(w, o);
}

static uint32_t wanted(const struct job *j)
{
	int32_t n = j->parallelism;

	if (j->suspend || j->complete || j->failed_cond)
		return 0;
	if (j->completions >= 0)
		n = SLU_MIN(n, j->completions - j->succeeded);
	else if (j->succeeded)
		n = 0; /* a work queue: the first success says there is nothing left */
	return (uint32_t)SLU_MAX(n, 0);
}

void job_look(struct world *w, struct obj *o)
{
	struct job was = o->job, *j = &o->job;
	uint32_t have, want;

	count_ends(w, o);
	if (!is_live(o) || o->deleted_us)
		return;
	have = kube_alive(w, o->uid);
	if (!j->complete && !j->failed_cond) {
		j->complete = j->completions >= 0 ? j->succeeded >= j->completions
						  : j->succeeded && !have;
		j->complete |= j->first_ends && (j->done & 1);
		j->failed_cond = !j->complete && j->failed > j->backoff;
	}
	if (!j->complete && !j->failed_cond) {
		j->suspended = j->suspend;
		j->start_us = j->suspend ? 0 : j->start_us ? j->start_us : w->now_us;
	}
	want = wanted(j);
	if (have > want && !(j->completions < 0 && j->succeeded && !j->suspend && !j->failed_cond))
		delete_down_to(w, o, want);
	else if (have < want && w->now_us < j->quiet_us)
		world_at(w, j->quiet_us, look_later, o->uid, 0);
	else if (have < want)
		make_some(w, o, have, want);
	j->active = (int32_t)kube_alive(w, o->uid);
	if (was.suspended != j->suspended || was.start_us != j->start_us ||
	    was.active != j->active || was.succeeded != j->succeeded || was.failed != j->failed ||
	    was.complete != j->complete || was.failed_cond != j->failed_cond)
		kube_changed(w, o, false);
}
