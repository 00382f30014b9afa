/* The model as a client sees it, to be held against a real API server: scripts that
 * tests/world/test_honest.py runs there, too.  A line each: what was done, and what was seen. */
#include <stdio.h>

#include "kube/client.h"
#include "wire.h"

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

/* ---- watches ---- */

/* The events of one pod from a version on, as one word each. */
static void events(struct world *w, const char *what, const char *name, uint64_t rv)
{
	static const char *const word[] = { "ADDED", "MODIFIED", "DELETED" };
	const struct wlog *l = &w->log[SLU_KIND_POD];
	char text[200] = "";
	uint32_t at;

	if (!kube_since(w, SLU_KIND_POD, rv, &at)) {
		say(what, "410");
		return;
	}
	for (; at < l->line.n; at++)
		if (!strcmp(l->line.p[at].o->name, name))
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
				 *text ? " " : "", word[l->line.p[at].what]);
	say(what, text);
}

static void watches(struct world *w)
{
	uint64_t before = w->rv, second;
	struct obj *o = new_pod(w, "wa", 0, true);

	kube_create(w, o);
	answer("patch a pod",
	       requests_patch(w, o, "{\"metadata\":{\"annotations\":{\"x\":\"1\"}}}"));
	second = o->rv;
	kube_delete(w, o, BACKGROUND);
	kube_unfinalize(w, o, FIN_USER);
	events(w, "a watch sees", "wa", before);
	events(w, "from a later version", "wa", second);
	events(w, "from the last version", "wa", w->rv);
	for (int i = 0; i < 450; i++) { /* more than the log keeps */
		o = new_pod(w, "wb", 0, false);
		kube_create(w, o);
		kube_delete(w, o, BACKGROUND);
	}
	events(w, "from long ago", "wa", 1);
	w->buf.n = 0;
	wire_bookmark(w, SLU_KIND_POD, &w->buf);
	say("a bookmark has a version and no name",
	    strstr(slu_buf_str(&w->buf), "resourceVersion") && !strstr(slu_buf_str(&w->buf), "name")
		    ? "yes"
		    : "no");
}

/* ---- lists ---- */

static uint32_t occurs(const struct pages *p, const char *name)
{
	char key[40];
	uint32_t n = 0;

	snprintf(key, sizeof key, "\"name\":\"%s", name);
	for (uint32_t i = 0; i < p->page.n; i++)
		for (const char *s = slu_buf_str(&p->page.p[i]); (s = strstr(s, key)); s++)
			n++;
	return n;
}

static void lists(struct world *w)
{
	struct pages p = { 0 };
	struct obj *o[5];
	char name[8];

	while (w->obj[SLU_KIND_POD].n) {
		w->obj[SLU_KIND_POD].p[0]->fin = 0;
		kube_remove(w, w->obj[SLU_KIND_POD].p[0]);
	}
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "la%d", i);
		o[i] = new_pod(w, name, 0, false);
		kube_create(w, o[i]);
	}
	wire_list(w, SLU_KIND_POD, 2, &p); /* the second page is asked for after these changes */
	kube_delete(w, o[4], BACKGROUND);
	kube_create(w, new_pod(w, "lb0", 0, false));
	count("pages of two", p.page.n);
	count("pods in them", occurs(&p, "la"));
	count("one that was deleted meanwhile", occurs(&p, "la4"));
	count("one that was made meanwhile", occurs(&p, "lb"));
	wire_pages_done(&p);
}

/* ---- patches ---- */

static void patches(struct world *w)
{
	struct obj *p, *j, *k;
	char text[200];
	uint64_t old;

	p = new_pod(w, "pa", GATE_OTHER, false);
	kube_create(w, p);
	old = p->rv;
	snprintf(text, sizeof text,
		 "{\"metadata\":{\"resourceVersion\":\"%" PRIu64
		 "\",\"annotations\":{\"x\":\"1\"}}}",
		 old);
	answer("patch with its version", requests_patch(w, p, text));
	answer("patch with an old version", requests_patch(w, p, text));
	snprintf(text, sizeof text,
		 "{\"metadata\":{\"uid\":\"u999999\",\"annotations\":{\"x\":\"2\"}}}");
	answer("patch with another uid", requests_patch(w, p, text));
	count("its generation after patches of metadata", (int64_t)p->generation);
	j = new_job(w, "pj", 1, 600);
	k = kube_new(w, SLU_KIND_JOB, "ns", "pk");
	k->job = j->job;
	k->job.suspend = true;
	k->job.made = 0;
	k->job.start_us = 0;
	kube_create(w, k);
	world_pass(w, 20);
	answer("gate the template of a Job that runs",
	       requests_patch(
		       w, j,
		       "{\"spec\":{\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}]}}}}"));
	answer("gate the template of a suspended Job",
	       requests_patch(
		       w, k,
		       "{\"spec\":{\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}]}}}}"));
	answer("resume it", requests_patch(w, k, "{\"spec\":{\"suspend\":false}}"));
	world_pass(w, 20);
	count("its pods", pods_of(w, "pk-", true));
	for (uint32_t i = 0; i < w->obj[SLU_KIND_POD].n; i++)
		if (!strncmp(w->obj[SLU_KIND_POD].p[i]->name, "pk-", 3))
			say("they are gated",
			    w->obj[SLU_KIND_POD].p[i]->pod.t.gates & GATE_OURS ? "yes" : "no");
}

/* ---- admission ---- */

/* The webhook fails open: an object that it was not asked about is made as it was written. */
static void admission(struct world *w)
{
	struct obj *space = kube_new(w, SLU_KIND_NAMESPACE, "", "held"), *j;

	space->space.held = true;
	kube_create(w, space);
	j = kube_new(w, SLU_KIND_JOB, "held", "ha");
	j->job.parallelism = j->job.completions = 1;
	snprintf(j->job.t.scheduler, sizeof j->job.t.scheduler, "default-scheduler");
	say("a Job whose webhook does not answer", kube_create(w, j) ? "ok" : "refused");
	say("it is suspended", j->job.suspend ? "yes" : "no");
	w->hooked = true;
	j = kube_new(w, SLU_KIND_JOB, "held", "hb");
	j->job.parallelism = j->job.completions = 1;
	snprintf(j->job.t.scheduler, sizeof j->job.t.scheduler, "default-scheduler");
	say("a Job whose webhook answers", kube_create(w, j) ? "ok" : "refused");
	say("this one is suspended", j->job.suspend ? "yes" : "no");
	say("and its template gated", j->job.t.gates & GATE_OURS ? "yes" : "no");
	world_pass(w, 20);
	w->hooked = false;
	count("its pods after a while", pods_of(w, "hb-", true));
}

/* ---- StatefulSets ---- */

static struct obj *new_set(struct world *w, const char *name, bool parallel)
{
	struct obj *o = kube_new(w, SLU_KIND_STATEFULSET, "ns", name);

	o->set.t = (struct tmpl){ .cpu_m = 500 };
	snprintf(o->set.t.scheduler, sizeof o->set.t.scheduler, "default-scheduler");
	o->set.replicas = 3;
	o->set.parallel = parallel;
	kube_create(w, o);
	return o;
}

/* Whether each pod was made after the one before was bound, by the order of events. */
static const char *one_by_one(struct world *w, const char *prefix)
{
	const struct wlog *l = &w->log[SLU_KIND_POD];
	int made = 0, ready = 0;

	for (uint32_t i = l->first; i < l->line.n; i++) {
		const struct line *x = &l->line.p[i];

		if (strncmp(x->o->name, prefix, strlen(prefix)) || x->what == LINE_DELETED)
			continue;
		if (x->what == LINE_ADDED && made++ > ready)
			return "no";
		ready += x->what == LINE_MODIFIED &&
			 strstr(x->text, "\"Ready\",\"status\":\"True\"") && ready < made;
	}
	return "yes";
}

static void statefulsets(struct world *w)
{
	struct obj *a = new_set(w, "sa", false), *p;
	const struct wlog *l = &w->log[SLU_KIND_POD];
	char order[100] = "";
	uint32_t at;
	uint64_t uid, rv;

	world_pass(w, 60);
	count("a StatefulSet, pods", pods_of(w, "sa-", true));
	say("each after the one before was ready", one_by_one(w, "sa-"));
	p = kube_find(w, SLU_KIND_POD, "ns", "sa-0");
	uid = p ? p->uid : 0;
	kube_delete(w, p, BACKGROUND);
	world_pass(w, 60);
	p = kube_find(w, SLU_KIND_POD, "ns", "sa-0");
	say("a pod of it that is deleted comes again", p && p->uid != uid ? "yes" : "no");
	rv = w->rv;
	a->set.replicas = 1;
	kube_changed(w, a, true);
	world_pass(w, 60);
	kube_since(w, SLU_KIND_POD, rv, &at);
	for (; at < l->line.n; at++)
		if (l->line.p[at].what == LINE_DELETED && !strncmp(l->line.p[at].o->name, "sa-", 3))
			snprintf(order + strlen(order), sizeof order - strlen(order), "%s%s",
				 *order ? " " : "", l->line.p[at].o->name);
	say("scaled down, they go", order);
	new_set(w, "sb", true);
	world_pass(w, 60);
	count("a parallel one, pods", pods_of(w, "sb-", true));
	kube_delete(w, a, BACKGROUND);
	world_pass(w, 60);
	count("pods left of a deleted one", pods_of(w, "sa-", false));
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
	watches(&w);
	lists(&w);
	patches(&w);
	admission(&w);
	statefulsets(&w);
	world_free(&w);
}
