/* The model as a client sees it, to be held against a real API server: scripts that
 * tests/world/test_honest.py runs there, too.  A line each: what was done, and what was seen. */
#include <stdio.h>

#include "kube/client.h"
#include "world.h"

static void say(const char *what, const char *seen)
{
	printf("%s: %s\n", what, seen);
}

static void answer(const char *what, int outcome)
{
	say(what, slu_kube_outcome_name((enum slu_kube_outcome)outcome));
}

static struct obj *new_pod(struct world *w, const char *name, uint8_t gates, bool fin)
{
	struct obj *o = kube_new(w, SLU_KIND_POD, "ns", name);

	o->pod.t = (struct tmpl){ .cpu_m = 1000, .run_s = 2, .gates = gates };
	snprintf(o->pod.t.scheduler, sizeof o->pod.t.scheduler, "nobody");
	o->pod.by = o->pod.index = -1;
	o->fin = fin ? FIN_USER : 0;
	return o;
}

static const char *presence(const struct obj *o)
{
	return !is_live(o) ? "gone" : o->deleted_us ? "going" : "there";
}

static uint32_t pods_of(struct world *w, const char *prefix, bool owned)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++) {
		const struct obj *o = w->obj[SLU_KIND_POD].p[i];

		n += !strncmp(o->name, prefix, strlen(prefix)) && (!owned || o->owner) &&
		     !o->deleted_us;
	}
	return n;
}

static void count(const char *what, int64_t n)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, n);
	say(what, text);
}

static void binding(struct world *w)
{
	struct obj *a = new_pod(w, "a", 0, false), *b = new_pod(w, "b", GATE_OTHER, false);
	struct obj *c = new_pod(w, "c", 0, true), *d = new_pod(w, "d", 0, false), *again;

	/* The list's last is the new one: each is published before the next is made. */
	w->obj[SLU_KIND_POD].n -= 4;
	for (int i = 0; i < 4; i++) {
		struct obj *o = i == 0 ? a : i == 1 ? b : i == 2 ? c : d;

		if (slu_vec_push(&w->obj[SLU_KIND_POD], o) < 0 || !kube_create(w, o))
			abort();
	}
	answer("bind a pod", kube_bind(w, a, "n0", -1));
	answer("bind it again", kube_bind(w, a, "n0", -1));
	answer("bind it to another node", kube_bind(w, a, "n1", -1));
	answer("bind a pod with a gate", kube_bind(w, b, "n0", -1));
	again = new_pod(w, "a", 0, false);
	say("make a pod of the same name", kube_create(w, again) ? "ok" : "conflict");
	kube_delete(w, c, BACKGROUND);
	say("delete a pod with a finalizer", presence(c));
	count("its generation", (int64_t)c->generation);
	answer("bind a pod that is going", kube_bind(w, c, "n0", -1));
	kube_unfinalize(w, c, FIN_USER);
	say("remove the finalizer", presence(c));
	kube_delete(w, d, BACKGROUND);
	say("delete a pod without a node", presence(d));
	answer("bind a pod that is gone", kube_bind(w, d, "n0", -1));
	answer("evict a pod without a node", kube_evict(w, b));
	say("it is then", presence(b));
	world_pass(w, 30);
	say("a pod that was bound ends", a->pod.phase == SUCCEEDED ? "Succeeded" : "not");
}

static struct obj *new_job(struct world *w, const char *name, int32_t n, int32_t run_s)
{
	struct obj *o = kube_new(w, SLU_KIND_JOB, "ns", name);

	o->job.t = (struct tmpl){ .cpu_m = 500, .run_s = run_s };
	snprintf(o->job.t.scheduler, sizeof o->job.t.scheduler, "default-scheduler");
	o->job.parallelism = o->job.completions = n;
	o->job.backoff = 0;
	kube_create(w, o);
	return o;
}

static void jobs(struct world *w)
{
	struct obj *a = new_job(w, "ja", 3, 1), *b = new_job(w, "jb", 2, 600);
	struct obj *c = new_job(w, "jc", 2, 600), *d = new_job(w, "jd", 2, 600);
	struct obj *e = new_job(w, "je", 2, 600);
	int64_t last;

	world_pass(w, 60);
	count("a Job completes, succeeded", a->job.succeeded);
	say("its condition", a->job.complete ? "Complete" : "none");
	count("its pods are kept", pods_of(w, "ja-", true));
	count("pods of a Job that runs, active", b->job.active);
	kube_delete(w, b, BACKGROUND);
	say("delete a Job, background", presence(b));
	kube_delete(w, c, FOREGROUND);
	say("delete a Job, foreground", presence(c));
	kube_delete(w, d, ORPHAN);
	say("delete a Job, orphan", presence(d));
	world_pass(w, 60);
	count("pods left, background", pods_of(w, "jb-", false));
	say("the Job, foreground, in the end", presence(c));
	last = 0;
	for (uint32_t i = 0; i < w->by_uid.n; i++) {
		const struct obj *o = (struct obj *)(uintptr_t)w->by_uid.e[i].val;

		if (o->owner == c->uid)
			last = SLU_MAX(last, o->gone_us);
	}
	say("its pods went before it", last && last <= c->gone_us ? "yes" : "no");
	say("the Job, orphan, in the end", presence(d));
	count("its pods are there", pods_of(w, "jd-", false));
	count("with an owner", pods_of(w, "jd-", true));
	e->job.suspend = true;
	kube_changed(w, e, true);
	world_pass(w, 60);
	count("suspend a Job that runs, pods", pods_of(w, "je-", false));
	count("active", e->job.active);
	say("condition Suspended", e->job.suspended ? "True" : "False");
	say("startTime", e->job.start_us ? "there" : "none");
	e->job.suspend = false;
	kube_changed(w, e, true);
	world_pass(w, 60);
	count("resume it, active", e->job.active);
	say("startTime again", e->job.start_us ? "there" : "none");
}

static void sets(struct world *w)
{
	struct obj *o = kube_new(w, SLU_KIND_DEPLOYMENT, "ns", "da");
	const struct obj *rs;

	o->set.t = (struct tmpl){ .cpu_m = 500 };
	snprintf(o->set.t.scheduler, sizeof o->set.t.scheduler, "default-scheduler");
	o->set.replicas = 3;
	kube_create(w, o);
	world_pass(w, 60);
	count("a Deployment, pods", pods_of(w, "da-", true));
	count("ReplicaSets", w->obj[SLU_KIND_REPLICASET].n);
	rs = w->obj[SLU_KIND_REPLICASET].n ? w->obj[SLU_KIND_REPLICASET].p[0] : NULL;
	count("replicas of the ReplicaSet", rs ? rs->set.replicas : -1);
	o->set.replicas = 1;
	kube_changed(w, o, true);
	world_pass(w, 60);
	count("scaled down, pods", pods_of(w, "da-", true));
	kube_delete(w, o, BACKGROUND);
	say("delete it", presence(o));
	world_pass(w, 60);
	count("ReplicaSets left", w->obj[SLU_KIND_REPLICASET].n);
	count("pods left", pods_of(w, "da-", false));
}

void honest_run(void)
{
	struct world w = { .seed = 1 };

	world_bare(&w);
	for (int i = 0; i < 2; i++) {
		struct obj *o = kube_new(&w, SLU_KIND_NODE, "", i ? "n1" : "n0");

		o->node = (struct node){ .cpu_m = 8000, .ready = true };
		kube_create(&w, o);
	}
	binding(&w);
	jobs(&w);
	sets(&w);
	world_free(&w);
}
