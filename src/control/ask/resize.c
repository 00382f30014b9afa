/* sluice resize: give a group another size.
 *
 * If one object makes the members and has a field for their number (the parallelism of a Job, the replicas
 * of a Deployment, ReplicaSet or StatefulSet), the core patches that field.  The controller of the object
 * then ends or makes members, and the plan follows as after any other change of the object.  So the size
 * is in the cluster and survives the daemon.  Members without a maker can only be ended. */
#include "control/ask/ask.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/run/run.h"

#define RESIZE_RUN UINT64_MAX /* no run: the answer is for a person */

struct target {
	const struct slu_kobj *obj;
	const char *what; /* "job", for people */
	const char *unit; /* "parallelism" */
	int64_t now;
};

/* The outermost object above the pod whose size can be set; false when there is none. */
static bool find_target(struct slu_core *c, const struct pod *p, struct target *out)
{
	struct slu_group_source src;

	*out = (struct target){ 0 };
	core_source(c, p->k, &src);
	for (uint32_t i = 0; i < src.n_owners; i++) {
		const struct slu_kobj *o = src.owner[i];

		if (slu_kind_makes((enum slu_kkind)o->kind))
			*out = (struct target){ o, slu_kind((enum slu_kkind)o->kind)->word,
						slu_kind((enum slu_kkind)o->kind)->size, 0 };
	}
	if (!out->obj)
		return false;
	out->now = slu_life_makes(out->obj);
	if (out->obj->kind == SLU_KIND_JOB && slu_kjob(out->obj)->parallelism != SLU_KNONE)
		out->now = slu_kjob(out->obj)->parallelism;
	return true;
}

/* 1: all members have the same target; 0: none has one; -EINVAL: they differ. */
static int common_target(struct slu_core *c, const struct group *g, struct target *out,
			 struct slu_error *err)
{
	bool any = false;

	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct target t;
		bool has = find_target(c, g->pod.p[i], &t);

		if (i && (has != any || (has && strcmp(t.obj->meta.uid, out->obj->meta.uid))))
			return slu_fail(err, -EINVAL,
					"%s has members created by several objects; resize those",
					g->id.name);
		any = has;
		*out = t;
	}
	return any;
}

static int check_size(struct slu_core *c, const struct group *g, uint32_t size,
		      const struct target *t, struct slu_error *err)
{
	const struct slu_kjob *j = t->obj && t->obj->kind == SLU_KIND_JOB ? slu_kjob(t->obj) : NULL;

	if (size && size < g->wish.named_min)
		return slu_fail(err, -EINVAL, "%s cannot be smaller than its minimum of %u",
				g->id.name, g->wish.named_min);
	if (size > g->wish.max || size > c->cfg->jobs.max_size)
		return slu_fail(err, -EINVAL, "%s cannot be larger than %u", g->id.name,
				SLU_MIN(g->wish.max, c->cfg->jobs.max_size));
	if (j && j->completions != SLU_KNONE && (int64_t)size > j->completions &&
	    !(j->indexed && j->completions == j->parallelism))
		return slu_fail(err, -EINVAL,
				"job %s completes after %d pods, which Kubernetes does not let "
				"change: it cannot run more at once",
				t->obj->meta.name, j->completions);
	return 0;
}

/* ---- with an owner ---- */

static void patch_size(struct slu_core *c, struct slu_rec_ask *a, const struct group *g,
		       const struct target *t)
{
	const struct slu_kjob *j = t->obj->kind == SLU_KIND_JOB ? slu_kjob(t->obj) : NULL;
	bool both = j && a->size && j->indexed && j->completions == j->parallelism;
	struct resize r = { .serial = ++c->serial, .ask = a };
	char text[128];

	/* An indexed Job that runs all its indexes at once is resized with their number. */
	if (both)
		snprintf(text, sizeof text, "{\"parallelism\":%u,\"completions\":%u}", a->size,
			 a->size);
	else
		snprintf(text, sizeof text, "{\"%s\":%u}", t->unit, a->size);
	snprintf(r.text, sizeof r.text, "%s %.100s: %s%s %" PRId64 " becomes %u", t->what,
		 t->obj->meta.name, t->unit, both ? " and completions" : "", t->now, a->size);
	if (slu_vec_push(&c->asks->resize, r) < 0) {
		a->base.free(&a->base);
		return;
	}
	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_SPEC,
					       .kind = (enum slu_kkind)t->obj->kind,
					       .run = RESIZE_RUN,
					       .serial = r.serial,
					       .ns = g->ns,
					       .name = t->obj->meta.name,
					       .uid = t->obj->meta.uid,
					       .text = text });
}

static void answer_resize(struct slu_rec_ask *a, int rc, const char *text)
{
	slu_log(SLU_INFO, "request answered",
		SLU_STR("what", a->what == SLU_ASK_RESIZE ? "resize" : "change"),
		SLU_STR("name", a->name), SLU_STR("answer", text));
	if (a->answer)
		a->answer(a->arg, rc, text);
	a->answer = NULL;
	a->base.free(&a->base);
}

void core_resize_written(struct slu_core *c, const struct slu_rec_written *w)
{
	for (uint32_t i = 0; i < c->asks->resize.n; i++) {
		struct resize r = c->asks->resize.p[i];
		struct slu_error err;

		if (r.serial != w->serial)
			continue;
		c->asks->resize.p[i] = c->asks->resize.p[--c->asks->resize.n];
		if (w->outcome == SLU_KUBE_OK) {
			answer_resize(r.ask, 0, r.text);
			return;
		}
		slu_fail(&err, 0, "the API server refused: %s", w->text);
		answer_resize(r.ask, w->outcome == SLU_KUBE_NOT_FOUND ? -ENOENT : -EIO, err.text);
		return;
	}
}

void core_resize_done(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->asks->resize.n; i++)
		c->asks->resize.p[i].ask->base.free(&c->asks->resize.p[i].ask->base);
	slu_vec_done(&c->asks->resize);
}

/* ---- without ---- */

/* The order in which members are ended: first those without a place, then the newest. */
static int by_worth(const void *a, const void *b)
{
	const struct pod *x = *(struct pod *const *)a, *y = *(struct pod *const *)b;

	if (!core_pod_at(x) != !core_pod_at(y))
		return core_pod_at(x) ? 1 : -1;
	if (x->k->o.meta.created_us != y->k->o.meta.created_us)
		return x->k->o.meta.created_us > y->k->o.meta.created_us ? -1 : 1;
	return x->serial > y->serial ? -1 : 1;
}

static int end_members(struct slu_core *c, struct group *g, uint32_t size, struct slu_error *err)
{
	slu_cleanup(slu_freep) struct pod **pod = slu_reallocarray(NULL, g->pod.n + 1u,
								   sizeof *pod);
	uint32_t n = 0;

	if (!pod)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (!g->pod.p[i]->k->o.meta.deleted_us && !g->pod.p[i]->stand)
			pod[n++] = g->pod.p[i];
	if (size > n)
		return slu_fail(
			err, -EINVAL,
			"%s has %u members, and no object makes more of them: create the pods",
			g->id.name, n);
	qsort(pod, n, sizeof *pod, by_worth);
	for (uint32_t i = 0; i < n - size; i++) {
		core_tell(c, pod[i], "Resized", false, "group %s was resized to %u members",
			  g->id.name, size);
		core_evict(c, pod[i]);
	}
	slu_fail(err, 0, "%s: %u of %u members are evicted", g->id.name, n - size, n);
	return 0;
}

void core_resize(struct slu_core *c, struct slu_rec_ask *a)
{
	struct group *g = core_group_named(c, a->ns, a->name);
	struct slu_error err = { 0 };
	struct target t = { 0 };
	int rc;

	if (!g)
		rc = slu_fail(&err, -ENOENT, "no job \"%s\" in namespace %s", a->name, a->ns);
	else
		rc = common_target(c, g, &t, &err);
	if (rc >= 0 && !a->size && !core_started(g)) { /* to nothing, and nothing runs: a cancel */
		a->what = SLU_ASK_CANCEL;
		rc = core_ask_group(c, a, &err);
		answer_resize(a, rc, err.text);
		return;
	}
	if (rc >= 0 && check_size(c, g, a->size, &t, &err) < 0)
		rc = -EINVAL;
	if (rc > 0 && t.now != a->size) {
		patch_size(c, a, g, &t);
		return;
	}
	if (rc > 0)
		rc = slu_fail(&err, 0, "%s %s has this size already", t.what, t.obj->meta.name);
	else if (rc == 0)
		rc = end_members(c, g, a->size, &err);
	answer_resize(a, rc, err.text);
}
