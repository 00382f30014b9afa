/* A JobSet: some Jobs that are one gang, made one after the other, and all again when one fails. */
#include <stdio.h>

#include "world.h"

static void look_later(struct world *w, uint64_t uid, uint64_t unused)
{
	kube_look(w, kube_get(w, uid));
}

static void make_job(struct world *w, struct obj *o)
{
	struct obj *j;
	char name[48];

	snprintf(name, sizeof name, "%.20s-%d-%d", o->name, o->jobset.restarts, o->jobset.made++);
	j = kube_new(w, SLU_KIND_JOB, o->ns, name);
	j->job.t = o->jobset.t;
	j->label = o->jobset.t.label;
	j->job.parallelism = j->job.completions = o->jobset.size;
	j->job.indexed = true;
	j->owner = o->uid;
	j->owner_kind = o->kind;
	snprintf(j->owner_name, sizeof j->owner_name, "%s", o->name);
	kube_create(w, j);
}

void jobset_look(struct world *w, struct obj *o)
{
	bool failed = false;
	uint32_t there = 0;

	if (!is_live(o) || o->deleted_us)
		return;
	for (uint32_t i = 0; i < w->obj[SLU_KIND_JOB].n; i++) {
		const struct obj *j = w->obj[SLU_KIND_JOB].p[i];

		there += j->owner == o->uid;
		failed |= j->owner == o->uid && j->job.failed_cond && !j->deleted_us;
	}
	if (failed && o->jobset.restarts) {
		world_say(w, "JobSet %s begins again", o->name);
		o->jobset.restarts--;
		for (uint32_t i = w->obj[SLU_KIND_JOB].n; i-- > 0;)
			if (w->obj[SLU_KIND_JOB].p[i]->owner == o->uid) {
				kube_delete(w, w->obj[SLU_KIND_JOB].p[i], BACKGROUND);
				i = SLU_MIN(i, w->obj[SLU_KIND_JOB].n);
			}
		o->jobset.made = 0;
		world_at(w, w->now_us + SECOND, look_later, o->uid, 0);
		return;
	}
	if (o->jobset.made < o->jobset.jobs && (o->jobset.made || !there)) {
		make_job(w, o);
		world_at(w,
			 w->now_us +
				 world_span(w, o->uid + (uint64_t)o->jobset.made, 5000, SECOND / 2),
			 look_later, o->uid, 0);
	} else if (o->jobset.made < o->jobset.jobs) {
		world_at(w, w->now_us + SECOND, look_later, o->uid, 0); /* the old ones go first */
	}
}
