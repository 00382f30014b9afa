/* sluice priority, sluice limit: give a group another priority or another time limit.
 *
 * Both override what the objects say, until they are set to "own".  The core notes them on the objects
 * that make the members, as it notes a hold, and keeps them in the store.  The queue learns of the change
 * when the group is settled, so the history has the new value and the old one.  If a Job has
 * activeDeadlineSeconds, Kubernetes ends the Job by that field; then the core sets the field, and the
 * plan follows as after any other change of it. */
#include "control/ask/ask.h"

#include <stdio.h>

#include "base/qty.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"

#define NO_RUN UINT64_MAX /* no run: the answer is for a person */

/* The one Job that makes the members and has a deadline of its own, or NULL. */
static const struct slu_kobj *timed_job(struct slu_core *c, const struct group *g)
{
	for (uint32_t i = 0; i < g->maker.n; i++) {
		const struct slu_kobj *o = core_owner(c, g->ns, g->maker.p[i]);

		if (o && o->kind == SLU_KIND_JOB && slu_kjob(o)->active_deadline_s > 0)
			return o;
	}
	return NULL;
}

static int check_limit(struct slu_core *c, const struct group *g, int64_t limit_s,
		       struct slu_error *err)
{
	const char *queue = *g->wish.queue ? g->wish.queue : c->cfg->queue[0].name;
	const struct slu_queue_conf *conf;
	char most[SLU_QTY_TEXT];

	if (limit_s > SLU_LIMIT_MAX)
		return slu_fail(err, -EINVAL, "a limit is at most %s",
				slu_duration_text(SLU_LIMIT_MAX, most));
	for (uint32_t i = 0; i < g->pod.n; i++) {
		int64_t pod_s = g->pod.p[i]->k->spec.active_deadline_s;

		if (pod_s > 0 && limit_s > pod_s)
			return slu_fail(err, -EINVAL,
					"the pods of %s have activeDeadlineSeconds %" PRId64
					", which Kubernetes does not allow to grow",
					g->id.name, pod_s);
	}
	conf = !core_started(g) ? core_queue_conf(c, queue) : NULL;
	if (conf && conf->limit.max_duration && limit_s > conf->limit.max_duration)
		return slu_fail(err, -EINVAL,
				"queue \"%s\" allows at most %s; give a shorter limit", queue,
				slu_duration_text(conf->limit.max_duration, most));
	return 0;
}

/* Kubernetes enforces the Job's own deadline: that one is set, and answers. */
static int set_deadline(struct slu_core *c, struct slu_rec_ask *a, const struct slu_kobj *job,
			struct slu_error *err)
{
	struct resize r = { .serial = ++c->serial, .ask = a };
	char text[64];

	snprintf(text, sizeof text, "{\"activeDeadlineSeconds\":%" PRId64 "}", a->value);
	snprintf(r.text, sizeof r.text,
		 "job %.100s: activeDeadlineSeconds %" PRId64 " becomes %" PRId64, job->meta.name,
		 slu_kjob(job)->active_deadline_s, a->value);
	if (slu_vec_push(&c->asks->resize, r) < 0)
		return slu_fail(err, -ENOMEM, "out of memory");
	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_SPEC,
					       .kind = SLU_KIND_JOB,
					       .run = NO_RUN,
					       .serial = r.serial,
					       .ns = job->meta.ns,
					       .name = job->meta.name,
					       .uid = job->meta.uid,
					       .text = text });
	return 1;
}

static int set_limit(struct slu_core *c, struct slu_rec_ask *a, struct group *g,
		     struct slu_error *err)
{
	const struct slu_kobj *job = timed_job(c, g);
	int rc = a->value == SLU_ASK_OWN ? 0 : check_limit(c, g, a->value, err);
	char text[SLU_QTY_TEXT];

	if (rc < 0)
		return rc;
	if (a->value == SLU_ASK_OWN) {
		g->limit_s = 0;
		return slu_fail(err, 0, "%s has the limit that its objects name now", a->name);
	}
	if (job)
		return set_deadline(c, a, job, err);
	g->limit_s = a->value;
	return slu_fail(err, 0, "%s has a limit of %s now", a->name,
			slu_duration_text(a->value, text));
}

static int set_priority(struct slu_rec_ask *a, struct group *g, struct slu_error *err)
{
	g->has_priority = a->value != SLU_ASK_OWN;
	g->priority = g->has_priority ? (int32_t)a->value : 0;
	if (!g->has_priority)
		return slu_fail(err, 0, "%s has the priority of its objects now", a->name);
	return slu_fail(err, 0, "%s has priority %d now%s", a->name, g->priority,
			core_started(g) ? "; running pods are not affected" : "");
}

int core_ask_change(struct slu_core *c, struct slu_rec_ask *a, struct slu_error *err)
{
	struct group *g = core_group_named(c, a->ns, a->name);
	int rc;

	if (!g)
		return slu_fail(err, -ENOENT, "no job \"%s\" in namespace %s", a->name, a->ns);
	rc = a->what == SLU_ASK_LIMIT ? set_limit(c, a, g, err) : set_priority(a, g, err);
	if (rc)
		return rc;
	core_ask_note(c, g);
	core_group_dirty(c, g);
	return 0;
}
