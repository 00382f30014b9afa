/* Audits, members in an awkward order, groups after groups, gangs that are bound in part. */
#include "base/map.h"
#include "core_kit.h"

/* The rows of a fresh list of the pods. */
static struct slu_rec_census *census(const struct world *w)
{
	struct slu_rec_census *r = slu_rec_census_new(SLU_KIND_POD);

	r->rv = w->rv;
	for (int i = 0; i < w->n_pods; i++) {
		const struct fpod *p = &w->pod[i];
		struct slu_census_row row = { slu_hash_bytes(p->uid, strlen(p->uid)), p->rv };

		if (p->there && strcmp(p->phase, "Succeeded") && strcmp(p->phase, "Failed") &&
		    slu_vec_push(&r->row, row) < 0)
			ok(false, "the census has memory for its rows");
	}
	return r;
}

static void count(struct world *w)
{
	slu_core_take(w->core, &census(w)->base, w->now_us);
	turn(w);
}

/* The objects that the mirror sends when the core asks for all of them. */
static void resend(struct world *w)
{
	struct slu_rec_resent *r = slu_rec_resent_new(SLU_KIND_POD);

	for (int i = 0; i < w->n_pods; i++) {
		const struct slu_kobj *o = NULL;
		struct slu_error err = { 0 };
		char text[4096];

		if (!w->pod[i].there)
			continue;
		pod_text(&w->pod[i], text);
		if (slu_kcodec_object(w->codec, SLU_KIND_POD, SLU_ENC_JSON, text, strlen(text), &o,
				      &err) < 0 ||
		    slu_vec_push(&r->obj, o) < 0)
			ok(false, "object: %s", err.text);
	}
	slu_core_take(w->core, &r->base, w->now_us);
	turn(w);
}

static uint64_t found(struct world *w, int64_t *free_cpu)
{
	struct slu_snapshot *s;
	uint64_t n;

	w->now_us += 10000000;
	turn(w);
	s = slu_core_snapshot(w->core);
	n = s->count.audit_differences;
	*free_cpu = 0;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		for (uint32_t k = 0; k < s->node[i].n_amounts; k++)
			if (!strcmp(s->node[i].amount[k].name, "cpu"))
				*free_cpu += s->node[i].amount[k].free;
	slu_snapshot_unref(s);
	return n;
}

static void test_equal(void)
{
	struct world w;
	int64_t cpu;

	open_world(&w, 2, 4, "");
	add_pod(&w, "a", "sluice", "1", "");
	turn(&w);
	count(&w);
	later(&w, 5);
	count(&w);
	later(&w, 5);
	ok(w.recounts == 0 && w.resends == 0 && found(&w, &cpu) == 0,
	   "equal lists raise no suspicion");
	close_world(&w);
}

/* While members of a gang end, nothing is started for a moment.  A promise that is due in that moment takes
 * its room in the plan, and no run has it yet. */
static void test_promise_due(void)
{
	struct world w;
	struct fpod *g[30];
	int64_t cpu;

	open_world(&w, 2, 4,
		   "status: {audit: 1s}\nqueues: [{name: default, policy: conservative}]\n");
	for (int i = 0; i < 30; i++) {
		char name[8];

		snprintf(name, sizeof name, "g-%d", i);
		g[i] = add_pod(&w, name, "sluice", "100m", GROUP("g", "30"));
	}
	turn(&w);
	add_pod(&w, "a", "sluice", "4", "\"annotations\":{\"sluice.sh/duration\":\"20s\"}");
	turn(&w);
	add_pod(&w, "b", "sluice", "4", "\"annotations\":{\"sluice.sh/duration\":\"20s\"}");
	turn(&w);
	for (int i = 0; i < 28; i++) {
		w.now_us += 1000000;
		end_pod(&w, g[i], "Succeeded");
		turn(&w);
	}
	ok(found(&w, &cpu) == 0, "a promise that is due and has not started is no difference");
	close_world(&w);
}

/* A change that is on its way is no difference. */
static void test_late(void)
{
	struct world w;
	struct fpod *a, *b;
	int64_t cpu;

	open_world(&w, 2, 4, "");
	a = add_pod(&w, "a", "sluice", "1", "");
	turn(&w);
	a->rv = ++w.rv; /* the list has a newer one, and one that is not here yet */
	b = make_pod(&w, "b", "sluice", "1", "");
	b->there = true;
	b->rv = ++w.rv;
	count(&w);
	feed_pod(&w, a, false);
	feed_pod(&w, b, false);
	later(&w, 5);
	ok(w.recounts == 0, "pods that arrived meanwhile are no difference");
	count(&w);
	delete_pod(&w, b);
	later(&w, 5);
	ok(w.recounts == 0 && w.resends == 0, "a pod that went before the census is not missed");
	/* A list that is older than a deletion we have seen. */
	b->there = true;
	b->rv = w.rv;
	count(&w);
	later(&w, 5);
	ok(w.recounts == 0 && found(&w, &cpu) == 0, "a list older than the pod is no disagreement");
	close_world(&w);
}

/* The watch has lost an event: an end, a deletion, an arrival. */
static void test_lost(void)
{
	struct world w;
	struct fpod *a, *b, *c, *d;
	int64_t cpu;

	open_world(&w, 2, 4, "");
	a = add_pod(&w, "a", "sluice", "1", "");
	b = add_pod(&w, "b", "sluice", "1", "");
	c = add_pod(&w, "c", "default-scheduler", "1", "");
	strcpy(c->node, "n0");
	feed_pod(&w, c, false);
	turn(&w);
	found(&w, &cpu);
	ok(cpu == 5000, "three of eight processors are in use: %d are free", (int)cpu);
	strcpy(a->phase, "Succeeded");
	a->rv = ++w.rv;
	b->there = false;
	w.rv++;
	d = make_pod(&w, "d", "default-scheduler", "2", "");
	strcpy(d->node, "n1");
	d->there = true;
	d->rv = ++w.rv;
	count(&w);
	ok(w.recounts == 0, "a suspicion waits a moment");
	later(&w, 4);
	ok(w.recounts == 1 && w.resends == 0, "a suspicion that stays asks for a second list");
	count(&w);
	ok(w.resends == 1, "the second list confirms the disagreement");
	ok(found(&w, &cpu) == 3, "three differences are counted");
	resend(&w);
	found(&w, &cpu);
	ok(cpu == 5000, "a foreign pod that stays counts, and a new total counts: %d are free",
	   (int)cpu);
	count(&w);
	later(&w, 5);
	ok(w.recounts == 1 && w.resends == 1 && found(&w, &cpu) == 3,
	   "after the repair the audit finds no difference");
	ok(differences(&w) == 3, "the books agree with the cluster, too");
	close_world(&w);
}

static void test_node_lost(void)
{
	struct slu_rec_census *r;
	struct world w;

	open_world(&w, 3, 4, "");
	turn(&w);
	for (int i = 0; i < 2; i++) {
		r = slu_rec_census_new(SLU_KIND_NODE);
		r->rv = w.rv;
		for (uint64_t k = 0; k < 2; k++) { /* n2 is gone, and no watch event said so */
			char uid[20];

			snprintf(uid, sizeof uid, "node-n%d", (int)k);
			if (slu_vec_push(&r->row,
					 ((struct slu_census_row){ slu_hash_bytes(uid, strlen(uid)),
								   k + 1 })) < 0)
				ok(false, "the census has memory for its rows");
		}
		slu_core_take(w.core, &r->base, w.now_us);
		turn(&w);
		later(&w, 4);
	}
	ok(w.resends == 1, "a node that is gone is noticed");
	close_world(&w);
}

#define OWNED_BY_JOB OWNED("Job", "uid-job", "j")

/* The pods of a Job come before the Job: the group's name stands on the Job. */
static void test_pods_before_their_job(void)
{
	struct slu_snapshot *s;
	struct world w;

	open_world(&w, 4, 4, "");
	for (int i = 0; i < 2; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%d", i);
		add_pod(&w, name, "sluice", "1", OWNED_BY_JOB);
	}
	turn(&w);
	ok(bound(&w, "p") == 0, "pods wait until their controller is seen");
	feed(&w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"uid-job\","
	     "\"resourceVersion\":\"%" PRIu64 "\",\"labels\":{\"sluice.sh/group\":\"crew\","
	     "\"sluice.sh/size\":\"3\"}},\"spec\":{\"parallelism\":3,\"completions\":3,"
	     "\"template\":{}},\"status\":{}}",
	     ++w.rv);
	turn(&w);
	ok(bound(&w, "p") == 0, "the gang is one of three, as the Job's labels say");
	add_pod(&w, "p2", "sluice", "1", OWNED_BY_JOB);
	turn(&w);
	ok(bound(&w, "p") == 3, "the gang of three starts with its third pod");
	later(&w, 10);
	s = slu_core_snapshot(w.core);
	ok(s->n_jobs == 1 && !strcmp(s->job[0].name, "crew"), "under the name on the Job");
	slu_snapshot_unref(s);
	/* A controller that never comes. */
	add_pod(&w, "lone", "sluice", "1", OWNED("Job", "uid-never", "never"));
	turn(&w);
	ok(bound(&w, "lone") == 0, "a pod whose controller was never seen waits for it");
	later(&w, 4);
	ok(bound(&w, "lone") == 0, "a pod whose controller is gone is not started");
	job(&w, "uid-never", "never", "\"parallelism\":1", "");
	turn(&w);
	ok(bound(&w, "lone") == 1, "a pod starts as soon as its controller is seen");
	add_pod(&w, "volcano", "sluice", "1",
		"\"ownerReferences\":[{\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"kind\":\"Job\","
		"\"name\":\"v\",\"uid\":\"uid-v\",\"controller\":true}]");
	turn(&w);
	ok(bound(&w, "volcano") == 1, "a Job of another API is not waited for");
	close_world(&w);
}

/* Four of six members have ended well, two were taken away, and no record of the gang is left. */
static void test_rest_of_a_job(void)
{
	struct world w;

	open_world(&w, 4, 4, "");
	job(&w, "uid-job", "j", "\"parallelism\":6,\"completions\":6", "\"succeeded\":4");
	for (int i = 0; i < 2; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%d", i);
		add_pod(&w, name, "sluice", "1", OWNED_BY_JOB "," GROUP("crew", "6"));
	}
	turn(&w);
	ok(bound(&w, "p") == 2, "the rest of a gang does not wait for who is done");
	/* The same name and size, a new Job: a new gang. */
	job(&w, "uid-next", "k", "\"parallelism\":2,\"completions\":2", "");
	add_pod(&w, "q0", "sluice", "1", OWNED("Job", "uid-next", "k") "," GROUP("other", "2"));
	turn(&w);
	ok(bound(&w, "q") == 0, "one member of two of a new gang waits");
	close_world(&w);
}

/* ---- sluice.sh/after ---- */

static const char *reason_of(struct world *w, const char *name, char out[300])
{
	struct slu_snapshot *s;

	later(w, 6);
	s = slu_core_snapshot(w->core);
	snprintf(out, 300, "nothing");
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name))
			snprintf(out, 300, "%s: %s", s->job[i].state,
				 s->job[i].reason ? s->job[i].reason : "");
	slu_snapshot_unref(s);
	return out;
}

#define AFTER(what) "\"annotations\":{\"sluice.sh/after\":\"" what "\"}"

static void test_after(void)
{
	struct world w;
	struct fpod *a;
	char why[300];

	open_world(&w, 4, 4, "");
	add_pod(&w, "b", "sluice", "1", AFTER("a"));
	add_pod(&w, "s", "sluice", "1", AFTER("start:a"));
	turn(&w);
	ok(bound(&w, "b") == 0, "a group that nobody has seen is waited for");
	ok(!strcmp(reason_of(&w, "b", why),
		   "blocked: waits for group a, which has not been submitted yet"),
	   "a blocked group says what it waits for: %s", why);
	a = add_pod(&w, "a", "sluice", "1", "");
	turn(&w);
	turn(&w);
	ok(bound(&w, "a") == 1 && bound(&w, "s") == 1, "start: waits for the start");
	ok(bound(&w, "b") == 0, "a group after the end of another waits for the end");
	ok(!strcmp(reason_of(&w, "b", why), "blocked: waits for group a to end"),
	   "the reason names the group it waits for: %s", why);
	end_pod(&w, a, "Succeeded");
	turn(&w);
	turn(&w);
	ok(bound(&w, "b") == 1, "a group starts when the group it waits for has ended");
	add_pod(&w, "ok", "sluice", "1", AFTER("ok:a"));
	add_pod(&w, "bad", "sluice", "1", AFTER("failed:a"));
	add_pod(&w, "self", "sluice", "1", AFTER("self"));
	add_pod(&w, "both", "sluice", "1", AFTER("ok:a,ok:b"));
	turn(&w);
	ok(bound(&w, "ok") == 1, "ok: starts after a success");
	ok(bound(&w, "bad") == 0 && strstr(reason_of(&w, "bad", why), "but it has succeeded"),
	   "failed: never starts after a success: %s", why);
	ok(bound(&w, "self") == 0 && strstr(reason_of(&w, "self", why), "names itself"),
	   "a group after itself never starts: %s", why);
	ok(bound(&w, "both") == 0 && strstr(reason_of(&w, "both", why), "group b to succeed"),
	   "a group after two others waits for the second: %s", why);
	add_pod(&w, "x", "sluice", "1", AFTER("y"));
	add_pod(&w, "y", "sluice", "1", AFTER("z"));
	add_pod(&w, "z", "sluice", "1", AFTER("x"));
	turn(&w);
	for (const char *name = "xyz"; *name; name++)
		ok(strstr(reason_of(&w, (char[]){ *name, 0 }, why), "which waits for this one"),
		   "group %c of a cycle says that it waits for itself: %s", *name, why);
	close_world(&w);
}

#define LABEL(what) "\"labels\":{" what "}"

/* Everybody with a label, as they are now. */
static void test_after_labels(void)
{
	struct world w;
	struct fpod *a, *b;
	char why[300];

	open_world(&w, 4, 4, "");
	a = add_pod(&w, "a", "sluice", "1", LABEL("\"app\":\"prep\",\"stage\":\"1\""));
	b = add_pod(&w, "b", "sluice", "1", LABEL("\"app\":\"prep\",\"stage\":\"2\""));
	turn(&w);
	add_pod(&w, "end", "sluice", "1", AFTER("app=prep"));
	add_pod(&w, "start", "sluice", "1", AFTER("start:app=prep"));
	add_pod(&w, "one", "sluice", "1", AFTER("app=prep&stage=1"));
	add_pod(&w, "none", "sluice", "1", AFTER("app=prep&stage=3"));
	add_pod(&w, "same", "sluice", "1", LABEL("\"app\":\"self\"") "," AFTER("app=self"));
	turn(&w);
	ok(bound(&w, "start") == 1, "after labels: all have started");
	ok(bound(&w, "none") == 1, "a group after labels that no group has starts at once");
	ok(bound(&w, "same") == 1, "a group after its own labels does not wait for itself");
	ok(bound(&w, "end") == 0,
	   "a group after labels waits until all groups with them have ended");
	ok(!strncmp(reason_of(&w, "end", why), "blocked: waits for group ", 25) &&
		   strstr(why, " (app=prep) to end"),
	   "a group that waits for labels says for which group: %s", why);
	end_pod(&w, a, "Succeeded");
	turn(&w);
	turn(&w);
	ok(bound(&w, "one") == 1,
	   "a group after two labels starts when the only group with both has ended");
	ok(bound(&w, "end") == 0 && strstr(reason_of(&w, "end", why), "group b (app=prep) to end"),
	   "a group with the label that has not ended is waited for: %s", why);
	end_pod(&w, b, "Failed");
	turn(&w);
	turn(&w);
	ok(bound(&w, "end") == 1, "a gang starts after the last of the labelled groups");
	add_pod(&w, "good", "sluice", "1", AFTER("ok:app=prep"));
	add_pod(&w, "bad", "sluice", "1", AFTER("failed:app=prep"));
	add_pod(&w, "fine", "sluice", "1", AFTER("ok:stage=1,failed:stage=2"));
	turn(&w);
	ok(bound(&w, "fine") == 1, "each kind of end by its own label");
	ok(bound(&w, "good") == 0 && strstr(reason_of(&w, "good", why),
					    "group b (app=prep) to succeed, but it has failed"),
	   "ok: one of them failed: %s", why);
	ok(bound(&w, "bad") == 0 && strstr(reason_of(&w, "bad", why),
					   "group a (app=prep) to fail, but it has succeeded"),
	   "failed: one of them did not: %s", why);
	delete_pod(&w, b);
	turn(&w);
	turn(&w);
	ok(bound(&w, "good") == 1, "a deleted group does not count as a dependency");
	add_pod(&w, "x", "sluice", "1", LABEL("\"ring\":\"1\"") "," AFTER("ring=2"));
	add_pod(&w, "y", "sluice", "1", LABEL("\"ring\":\"2\"") "," AFTER("ring=1"));
	turn(&w);
	turn(&w);
	ok(bound(&w, "x") + bound(&w, "y") < 2, "a circle of labels");
	close_world(&w);
}

/* The group of an object, whatever else has its name. */
static void test_after_kinds(void)
{
	static const char rs[] =
		"{\"metadata\":{\"name\":\"db-1\",\"namespace\":\"ns\",\"uid\":\"r1\","
		"\"resourceVersion\":\"%" PRIu64 "\"," OWNED(
			"Deployment", "d1", "db") "},\"spec\":{\"replicas\":1,\"template\":{}}}";
	struct world w;
	struct fpod *p;
	char why[300];

	open_world(&w, 4, 4, "");
	job(&w, "uid-db", "db", "\"parallelism\":1,\"completions\":1", "");
	add_pod(&w, "first", "sluice", "1", AFTER("start:deployment/db"));
	add_pod(&w, "second", "sluice", "1", AFTER("ok:Job/db"));
	add_pod(&w, "third", "sluice", "1", AFTER("pod/lone"));
	add_pod(&w, "fourth", "sluice", "1", AFTER("statefulset/never"));
	p = add_pod(&w, "db-x", "sluice", "1", OWNED("Job", "uid-db", "db"));
	turn(&w);
	turn(&w);
	ok(bound(&w, "db-x") == 1 && bound(&w, "first") == 0,
	   "a Job of that name has started, the Deployment has not: %s",
	   reason_of(&w, "first", why));
	ok(strstr(why, "Deployment db, which has not been submitted yet"),
	   "a Deployment that does not exist is named: %s", why);
	ok(strstr(reason_of(&w, "second", why), "Job db to succeed"),
	   "a Job that still runs is named: %s", why);
	ok(strstr(reason_of(&w, "third", why), "Pod lone, which has not"),
	   "a Pod that does not exist is named: %s", why);
	feed(&w, SLU_KIND_DEPLOYMENT, false,
	     "{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\",\"uid\":\"d1\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"replicas\":1,\"template\":{}}}",
	     w.rv + 1);
	feed(&w, SLU_KIND_REPLICASET, false, rs, w.rv + 1);
	add_pod(&w, "db-1-x", "sluice", "1", OWNED("ReplicaSet", "r1", "db-1"));
	later(&w, 3);
	turn(&w);
	ok(bound(&w, "db-1-x") == 1 && bound(&w, "first") == 1,
	   "a group starts after the start of a Deployment");
	end_pod(&w, p, "Succeeded");
	job(&w, "uid-db", "db", "\"parallelism\":1,\"completions\":1",
	    "\"succeeded\":1,\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]");
	turn(&w);
	turn(&w);
	ok(bound(&w, "second") == 1,
	   "a gang starts after the success of a Job while the Deployment still runs");
	p = add_pod(&w, "lone", "sluice", "1", "");
	turn(&w);
	ok(bound(&w, "third") == 0, "a pod named by its kind that still runs is waited for");
	end_pod(&w, p, "Failed");
	turn(&w);
	turn(&w);
	ok(bound(&w, "third") == 1, "a gang starts after the Deployment has ended");
	ok(bound(&w, "fourth") == 0, "nobody has seen such a StatefulSet");
	close_world(&w);
}

/* Members that ended before this process started are known from their Job or from the pods that
 * are left. */
static void test_after_a_restart(void)
{
	struct world w;
	struct fpod *p;
	char why[300];

	open_world(&w, 4, 4, "");
	job(&w, "uid-one", "one", "\"parallelism\":1,\"completions\":1",
	    "\"succeeded\":1,\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]");
	job(&w, "uid-two", "two", "\"parallelism\":1,\"completions\":1",
	    "\"failed\":1,\"conditions\":[{\"type\":\"Failed\",\"status\":\"True\"}]");
	job(&w, "uid-three", "three", "\"parallelism\":1,\"completions\":1", "");
	p = make_pod(&w, "old", "sluice", "1", "");
	strcpy(p->phase, "Succeeded");
	feed_pod(&w, p, false);
	add_pod(&w, "a", "sluice", "1", AFTER("ok:one,failed:two,ok:old"));
	add_pod(&w, "b", "sluice", "1", AFTER("ok:two"));
	add_pod(&w, "c", "sluice", "1", AFTER("three"));
	add_pod(&w, "d", "sluice", "1", AFTER("ok:job/one,failed:job/two,ok:pod/old"));
	add_pod(&w, "e", "sluice", "1", AFTER("job/three"));
	turn(&w);
	ok(bound(&w, "d") == 1 && bound(&w, "e") == 0, "groups named by kind are remembered, too");
	ok(bound(&w, "a") == 1, "a starts when all three it names are over");
	ok(bound(&w, "b") == 0 && strstr(reason_of(&w, "b", why), "but it has failed"),
	   "a failure before the restart is remembered: %s", why);
	ok(bound(&w, "c") == 0 && strstr(reason_of(&w, "c", why), "three to end"),
	   "a group that has not ended is waited for: %s", why);
	close_world(&w);
}

/* ---- bound in part ---- */

static void make_job(struct world *w, int from, int n)
{
	for (int i = from; i < from + n; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%d", i);
		add_pod(w, name, "sluice", "4", OWNED_BY_JOB);
	}
}

static void test_taken_back_whole(void)
{
	struct world w;
	int was;

	open_world(&w, 4, 4, "");
	job(&w, "uid-job", "j", "\"parallelism\":3,\"completions\":3", "");
	strcpy(w.bad_node, "n1");
	make_job(&w, 0, 3);
	turn(&w);
	ok(w.evictions == 2, "members that were bound are evicted: %d", w.evictions);
	ok(bound(&w, "p") == 2, "the evictions are refused for now");
	was = w.evictions;
	later(&w, 11);
	ok(w.evictions == was + 2, "refused evictions are asked for again");
	for (int i = 0; i < w.n_pods; i++)
		if (w.pod[i].there)
			delete_pod(&w, &w.pod[i]);
	make_job(&w, 3, 3);
	turn(&w);
	ok(bound(&w, "p") == 3, "the gang starts as a whole, elsewhere: %d", bound(&w, "p"));
	for (int i = 0; i < w.n_pods; i++)
		if (w.pod[i].there)
			ok(strcmp(w.pod[i].node, "n1") != 0, "%s is on %s", w.pod[i].name,
			   w.pod[i].node);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_without_a_controller(void)
{
	struct world w;

	open_world(&w, 4, 4, "");
	strcpy(w.bad_node, "n1");
	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%d", i);
		add_pod(&w, name, "sluice", "4", GROUP("crew", "3"));
	}
	turn(&w);
	ok(w.evictions == 0, "nobody would make these again: none is evicted");
	ok(bound(&w, "p") == 3, "the rest of the gang goes elsewhere: %d", bound(&w, "p"));
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* ---- priority ---- */

static void test_priority_class(void)
{
	struct world w;

	open_world(&w, 1, 4, "");
	feed(&w, SLU_KIND_PRIORITYCLASS, false,
	     "{\"metadata\":{\"name\":\"high\",\"uid\":\"pc1\",\"resourceVersion\":\"1\"},"
	     "\"value\":1000}");
	add_pod(&w, "first", "sluice", "4", "");
	turn(&w);
	add_pod(&w, "low", "sluice", "4", "");
	struct fpod *p = make_pod(&w, "urgent", "sluice", "4", "");
	snprintf(p->spec + strlen(p->spec), sizeof p->spec - strlen(p->spec),
		 ",\"priorityClassName\":\"high\"");
	feed_pod(&w, p, false);
	turn(&w);
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	ok(bound(&w, "urgent") == 1 && bound(&w, "low") == 0,
	   "the class of a pod without a number gives its priority");
	close_world(&w);
}

/* ---- PodGroups ---- */

static void podgroup(struct world *w, const char *status)
{
	feed(w, SLU_KIND_PODGROUP_X, false,
	     "{\"metadata\":{\"name\":\"crew\",\"namespace\":\"ns\",\"uid\":\"pg\","
	     "\"resourceVersion\":\"%" PRIu64 "\"},\"spec\":{\"minMember\":2},\"status\":{%s}}",
	     ++w->rv, status);
}

/* Its members ended while no watch was open. */
static void test_podgroup_ended_before(void)
{
	struct world w;
	struct fpod *p[2];

	open_world(&w, 2, 4, "");
	podgroup(&w, "\"phase\":\"Running\",\"running\":2");
	for (int i = 0; i < 2; i++) {
		p[i] = make_pod(&w, i ? "p1" : "p0", "sluice", "1", GROUP("crew", "2"));
		strcpy(p[i]->phase, i ? "Failed" : "Succeeded");
		feed_pod(&w, p[i], false);
	}
	later(&w, 61);
	ok(strstr(w.last_status, "\"phase\":\"Failed\"") &&
		   strstr(w.last_status, "\"succeeded\":1,\"failed\":1"),
	   "the audit says how it ended: %s", w.last_status);
	close_world(&w);
}

/* Of a gang in part, which is Pending, one member ran when the daemon stopped; it is gone. */
static void test_podgroup_in_part_before(void)
{
	struct world w;

	open_world(&w, 1, 4, "");
	podgroup(&w, "\"phase\":\"Pending\",\"running\":1");
	later(&w, 61);
	ok(strstr(w.last_status, "\"phase\":\"Pending\",\"running\":0"),
	   "the audit says that no member runs: %s", w.last_status);
	close_world(&w);
}

/* A member fails and is replaced: the group runs. */
static void test_podgroup_phases(void)
{
	struct world w;
	struct fpod *a, *b;

	open_world(&w, 2, 4, "");
	podgroup(&w, "");
	a = add_pod(&w, "a", "sluice", "1", GROUP("crew", "2"));
	later(&w, 2);
	ok(strstr(w.last_status, "\"phase\":\"Pending\""),
	   "a PodGroup without all its pods is Pending: %s", w.last_status);
	b = add_pod(&w, "b", "sluice", "1", GROUP("crew", "2"));
	later(&w, 2);
	later(&w, 2);
	ok(strstr(w.last_status, "\"phase\":\"Running\",\"running\":2"),
	   "a PodGroup whose pods run is Running: %s", w.last_status);
	end_pod(&w, a, "Failed");
	later(&w, 2);
	ok(strstr(w.last_status, "\"phase\":\"Failed\",\"running\":1"),
	   "a PodGroup with a failed pod is Failed: %s", w.last_status);
	a = add_pod(&w, "a2", "sluice", "1", GROUP("crew", "2"));
	later(&w, 2);
	later(&w, 2);
	ok(strstr(w.last_status, "\"phase\":\"Running\",\"running\":2"),
	   "a PodGroup whose pod was replaced is Running again: %s", w.last_status);
	end_pod(&w, a, "Succeeded");
	end_pod(&w, b, "Succeeded");
	later(&w, 2);
	ok(strstr(w.last_status, "\"phase\":\"Finished\"") && strstr(w.last_status, "\"failed\":1"),
	   "a PodGroup whose pods have ended is Finished: %s", w.last_status);
	close_world(&w);
}

/* Control-plane nodes are used when asked for. */
static void test_control_plane(void)
{
	struct world w;

	for (int asked = 0; asked < 2; asked++) {
		open_world(&w, 0, 4, asked ? "nodes: {controlPlane: true}" : "");
		feed_node(&w, "cp", 4, "\"node-role.kubernetes.io/control-plane\":\"\"", "",
			  "True");
		add_pod(&w, "p", "sluice", "1", "");
		turn(&w);
		ok(bound(&w, "p") == asked,
		   asked ? "a control-plane node, asked for" : "is left out unless asked for");
		close_world(&w);
	}
}

/* A node is deleted and made again under its name while its pods are still there. */
static void test_node_made_again(void)
{
	struct world w;
	struct fpod *old, *next;

	open_world(&w, 1, 2, "status: {audit: 10s}");
	old = add_pod(&w, "old", "sluice", "2", "");
	turn(&w);
	ok(*old->node, "node made again: a pod runs there");
	feed(&w, SLU_KIND_NODE, true, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"node-%s\"}}",
	     old->node, old->node);
	turn(&w);
	feed_node(&w, old->node, 2, "", "", "True");
	next = add_pod(&w, "next", "sluice", "2", "");
	turn(&w);
	later(&w, 30);
	ok(!*next->node, "node made again: it is not given away a second time");
	ok(differences(&w) == 0, "node made again: the audit counts the pod");
	delete_pod(&w, old);
	turn(&w);
	ok(*next->node, "node made again: when the pod is gone, it is free");
	close_world(&w);
}

int main(void)
{
	test_node_made_again();
	slu_log_setup(SLU_ERROR + 1, SLU_LOG_TEXT, 2);
	test_equal();
	test_promise_due();
	test_late();
	test_lost();
	test_node_lost();
	test_pods_before_their_job();
	test_rest_of_a_job();
	test_after();
	test_after_labels();
	test_after_kinds();
	test_after_a_restart();
	test_taken_back_whole();
	test_without_a_controller();
	test_priority_class();
	test_podgroup_ended_before();
	test_podgroup_in_part_before();
	test_podgroup_phases();
	test_control_plane();
	return tap_done();
}
