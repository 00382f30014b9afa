/* Ordinary changes that users make to a waiting or running gang: it starts as a whole or not at
 * all. */
#include "held_kit.h"

static struct fpod *crowd(struct world *w, const char *prefix, int n, const char *cpu,
			  const char *meta)
{
	struct fpod *first = NULL;

	for (int i = 0; i < n; i++) {
		char name[32];
		struct fpod *p;

		snprintf(name, sizeof name, "%s-%d", prefix, i);
		p = add_pod(w, name, "sluice", cpu, meta);
		first = first ? first : p;
	}
	return first;
}

static struct fpod *occupy(struct world *w, const char *node)
{
	struct fpod *p = make_pod(w, "busy", "default-scheduler", "2", "");

	snprintf(p->node, sizeof p->node, "%s", node);
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(w, p, false);
	return p;
}

static void owner(struct world *w, enum slu_kkind kind, bool gone, const char *meta,
		  const char *spec)
{
	feed(w, kind, gone,
	     "{\"metadata\":{\"namespace\":\"ns\",\"resourceVersion\":\"%" PRIu64
	     "\",\"generation\":%" PRIu64 ",%s},\"spec\":{%s}}",
	     w->rv + 1, w->rv + 1, meta, spec);
	w->rv++;
}

#define META(kind, uid) "\"name\":\"" kind "\",\"uid\":\"" uid "\""
#define TMPL            ",\"template\":{}"

static void test_waiting_gang_deleted(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 12, 2, "");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"),
	      "\"parallelism\":16,\"completions\":16" TMPL);
	p = crowd(&w, "g", 16, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "g") == 0, "a gang of 16 waits where 12 fit");
	owner(&w, SLU_KIND_JOB, true, META("j", "j1"),
	      "\"parallelism\":16,\"completions\":16" TMPL);
	turn(&w);
	for (int i = 0; i < 16; i++) {
		delete_pod(&w, p + i);
		turn(&w);
	}
	ok(w.binds == 0,
	   "after a Job is deleted none of its pods starts, whatever pod goes first (%d)", w.binds);
	close_world(&w);
}

static void test_owner_with_finalizer(void)
{
	struct world w;
	struct fpod *busy;

	open_world(&w, 2, 2, "");
	busy = occupy(&w, "n0");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":2" TMPL);
	crowd(&w, "g", 2, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	owner(&w, SLU_KIND_JOB, false,
	      META("j", "j1") ",\"deletionTimestamp\":\"2026-01-01T00:01:00Z\","
			      "\"finalizers\":[\"x/y\"]",
	      "\"parallelism\":2" TMPL);
	delete_pod(&w, busy);
	turn(&w);
	ok(w.binds == 0, "pods of a Job that is being deleted are not started");
	close_world(&w);
}

static void test_suspended_by_its_user(void)
{
	struct world w;
	struct fpod *busy;

	open_world(&w, 3, 2, "");
	busy = occupy(&w, "n0");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":3" TMPL);
	crowd(&w, "g", 3, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":3,\"suspend\":true" TMPL);
	later(&w, 5);
	ok(w.binds == 0, "pods of a Job that its user suspended do not start one by one (%d)",
	   w.binds);
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":3" TMPL);
	delete_pod(&w, busy);
	later(&w, 5);
	ok(bound(&w, "g") == 3, "it is resumed before its pods went: they start together (%d)",
	   bound(&w, "g"));
	close_world(&w);
}

/* Background deletion: the Deployment goes first, then its ReplicaSet, then the pods. */
static void test_deployment_deleted(void)
{
	static const char rs[] = META("d-r", "r1") "," OWNED("Deployment", "d1", "d");
	struct world w;
	struct fpod *busy;

	open_world(&w, 3, 2, "");
	busy = occupy(&w, "n0");
	owner(&w, SLU_KIND_DEPLOYMENT, false, META("d", "d1"), "\"replicas\":3" TMPL);
	owner(&w, SLU_KIND_REPLICASET, false, rs, "\"replicas\":3" TMPL);
	crowd(&w, "g", 3, "2", OWNED("ReplicaSet", "r1", "d-r"));
	turn(&w);
	owner(&w, SLU_KIND_DEPLOYMENT, true, META("d", "d1"), "\"replicas\":3" TMPL);
	turn(&w);
	owner(&w, SLU_KIND_REPLICASET, true, rs, "\"replicas\":3" TMPL);
	delete_pod(&w, busy);
	later(&w, 5);
	ok(w.binds == 0, "pods whose ReplicaSet went with its Deployment do not start (%d)",
	   w.binds);
	close_world(&w);
}

/* kubectl delete --cascade=orphan: the Job goes, its pods lose their owner and stay. */
static void test_orphaned(void)
{
	struct world w;
	struct fpod *busy, *p;

	open_world(&w, 2, 2, "");
	busy = occupy(&w, "n0");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":2" TMPL);
	p = crowd(&w, "g", 2, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	owner(&w, SLU_KIND_JOB, true, META("j", "j1"), "\"parallelism\":2" TMPL);
	turn(&w);
	ok(w.binds == 0, "the Job is gone, and its pods wait");
	for (int i = 0; i < 2; i++) {
		*p[i].meta = 0;
		feed_pod(&w, &p[i], false);
	}
	delete_pod(&w, busy);
	later(&w, 5);
	ok(bound(&w, "g") == 2, "pods that were set free start, each for itself (%d)",
	   bound(&w, "g"));
	ok(differences(&w) == 0, "the books agree with the pods");
	close_world(&w);
}

/* A Job's next wave finds its place kept, on a node that it may not use any more. */
static void test_kept_place_tainted(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 2, "");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":1,\"completions\":9" TMPL);
	p = crowd(&w, "g", 1, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(!strcmp(p->node, "n0") || !strcmp(p->node, "n1"), "the first wave runs on %s", p->node);
	feed_node(&w, p->node, 2, "", "\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]",
		  "True");
	turn(&w);
	end_pod(&w, p, "Succeeded");
	p = add_pod(&w, "next", "sluice", "2", OWNED("Job", "j1", "j"));
	later(&w, 5);
	ok(*p->node && strcmp(p->node, w.pod[0].node), "the next goes elsewhere, to %s", p->node);
	close_world(&w);
}

/* Our clock is a minute ahead of the kubelets': their times lie before our decision. */
static uint32_t foreign_on(struct world *w, const char *node)
{
	struct slu_snapshot *s = picture(w);

	for (uint32_t i = 0; i < s->n_nodes; i++)
		if (!strcmp(s->node[i].name, node))
			return s->node[i].foreign;
	return UINT32_MAX;
}

/* The Node object is deleted and created again (a kubelet that registers again); the containers
 * keep running. */
static void test_node_remade(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 2, FIRST_PROMISED);
	p = crowd(&w, "g", 2, "2", GROUP("g", "2"));
	turn(&w);
	ok(bound(&w, "g") == 2, "a gang runs on two nodes");
	feed(&w, SLU_KIND_NODE, true, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"node-%s\"}}",
	     p[1].node, p[1].node);
	feed_pod(&w, &p[1], false); /* a heartbeat of its status */
	turn(&w);
	ok(pictured(&w, "g").bound == 2, "one node is deleted: the pods are its members still (%u)",
	   pictured(&w, "g").bound);
	end_pod(&w, &p[0], "Succeeded");
	later(&w, 1);
	ok(!strcmp(pictured(&w, "g").state, "running"),
	   "the member on the other node ends: the gang runs on (%s)", pictured(&w, "g").state);
	feed_node(&w, p[1].node, 2, "", "", "True");
	turn(&w);
	ok(foreign_on(&w, p[1].node) == 0, "the node is made again: its pod is not work of others");
	ok(differences(&w) == 0, "the books agree with the pods");
	add_pod(&w, "h", "sluice", "1", GROUP("h", "1"));
	add_pod(&w, "i", "sluice", "2", GROUP("i", "1"));
	turn(&w);
	ok(bound(&w, "h") + bound(&w, "i") == 1, "the other node alone has room");
	end_pod(&w, &p[1], "Succeeded");
	later(&w, 1);
	ok(!*pictured(&w, "g").state && bound(&w, "h") && bound(&w, "i"),
	   "when the last member has ended, its room is used");
	close_world(&w);
}

static void test_limit_with_skewed_clocks(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 2, "jobs: {enforceDeadlines: true}");
	w.slow_kubelets = true;
	p = add_pod(&w, "p", "sluice", "1", "\"annotations\":{\"sluice.sh/duration\":\"30\"}");
	turn(&w);
	snprintf(p->status, sizeof p->status, ",\"startTime\":\"2025-12-31T23:59:00Z\"");
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(&w, p, false);
	later(&w, 10);
	ok(w.evictions == 0,
	   "a limit of 30 s has not passed after 10, whatever the kubelet's clock "
	   "says (%d)",
	   w.evictions);
	later(&w, 31);
	ok(w.evictions > 0, "a limit of 30 s has passed after 41: members are evicted");
	close_world(&w);
}

/* A binding of a daemon before us arrives late: the pod waited to follow its gang. */
static void test_follower_bound_by_others(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 2, "");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":1,\"completions\":9" TMPL);
	crowd(&w, "g", 1, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "g") == 1, "a gang of one starts");
	occupy(&w, "n1");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":2,\"completions\":9" TMPL);
	p = add_pod(&w, "late", "sluice", "1", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "late") == 0, "a further member waits for room");
	snprintf(p->node, sizeof p->node, "n1");
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(&w, p, false);
	turn(&w);
	end_pod(&w, &w.pod[0], "Succeeded"); /* there is room on n0 now */
	later(&w, 60);
	ok(w.binds == 1, "a pod that was bound without us is not bound again (%d)", w.binds);
	ok(differences(&w) == 0, "the books say where a pod bound by another is");
	close_world(&w);
}

static void test_two_jobs(void)
{
	struct world w;
	struct fpod *busy;

	open_world(&w, 4, 2, "");
	busy = occupy(&w, "n0");
	owner(&w, SLU_KIND_JOB, false, META("a", "a1"), "\"parallelism\":2" TMPL);
	owner(&w, SLU_KIND_JOB, false, META("b", "b1"), "\"parallelism\":2" TMPL);
	crowd(&w, "a", 2, "2", OWNED("Job", "a1", "a") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
	crowd(&w, "b", 2, "2", OWNED("Job", "b1", "b") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
	turn(&w);
	ok(w.binds == 0, "two Jobs of two with one group are four (%d)", w.binds);
	delete_pod(&w, busy);
	turn(&w);
	ok(bound(&w, "a") == 2 && bound(&w, "b") == 2,
	   "four pods of two Jobs with one group start together");
	close_world(&w);
}

/* Two Jobs are made one after the other, and the watch shows the second 100 ms later. */
static void test_second_job_late(void)
{
	struct world w;
	char meta[200];

	open_world(&w, 3, 2, "");
	for (int i = 0; i < 2; i++) {
		snprintf(
			meta, sizeof meta,
			"\"name\":\"j%d\",\"uid\":\"u%d\",\"creationTimestamp\":\"2026-01-01T00:00:10Z\"",
			i, i);
		owner(&w, SLU_KIND_JOB, false, meta, "\"parallelism\":2" TMPL);
		if (i)
			crowd(&w, "b", 2, "2",
			      OWNED("Job", "u1", "j1") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
		else
			crowd(&w, "a", 2, "2",
			      OWNED("Job", "u0", "j0") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
		turn(&w);
		w.now_us += 100000;
		turn(&w);
	}
	later(&w, 5);
	ok(w.binds == 0, "the first of two Jobs does not start before the second is seen (%d)",
	   w.binds);
	close_world(&w);
}

static void test_second_leaves_first(void)
{
	struct world w;

	open_world(&w, 3, 2, "");
	owner(&w, SLU_KIND_JOB, false, META("a", "a1"), "\"parallelism\":2" TMPL);
	owner(&w, SLU_KIND_JOB, false, META("b", "b1"), "\"parallelism\":2" TMPL);
	crowd(&w, "a", 2, "2", OWNED("Job", "a1", "a") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
	crowd(&w, "b", 2, "2", OWNED("Job", "b1", "b") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
	turn(&w);
	owner(&w, SLU_KIND_JOB, true, META("b", "b1"), "\"parallelism\":2" TMPL);
	turn(&w);
	w.now_us += 1000000;
	turn(&w);
	ok(w.binds == 0, "when one of two Jobs is deleted, the other waits a moment");
	owner(&w, SLU_KIND_JOB, true, META("a", "a1"), "\"parallelism\":2" TMPL);
	later(&w, 10);
	ok(w.binds == 0, "after the deletion of the second Job nothing starts");
	close_world(&w);
}

static void test_name_used_again(void)
{
	struct world w;
	struct fpod *old;
	struct slu_snapshot *s;
	int again = 0;

	open_world(&w, 4, 2, "");
	occupy(&w, "n3");
	owner(&w, SLU_KIND_JOB, false, META("old", "o1"), "\"parallelism\":2" TMPL);
	old = crowd(&w, "old", 2, "2",
		    OWNED("Job", "o1", "old") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
	turn(&w);
	ok(bound(&w, "old") == 2, "the first life runs");
	owner(&w, SLU_KIND_JOB, true, META("old", "o1"), "\"parallelism\":2" TMPL);
	delete_softly(&w, old);
	delete_softly(&w, old + 1);
	owner(&w, SLU_KIND_JOB, false, META("new", "n1"), "\"parallelism\":4" TMPL);
	crowd(&w, "new", 4, "2",
	      OWNED("Job", "n1", "new") ",\"labels\":{\"sluice.sh/group\":\"g\"}");
	later(&w, 5);
	ok(bound(&w, "new") == 0, "a new Job of the same group waits for room for all its members");
	s = slu_core_snapshot(w.core);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		again += !strcmp(s->job[i].name, "g");
	ok(again == 2, "both lives of the gang are shown (%d)", again);
	slu_snapshot_unref(s);
	delete_pod(&w, old);
	delete_pod(&w, old + 1);
	turn(&w);
	ok(bound(&w, "new") == 0, "three nodes are free: it waits");
	delete_pod(&w, &w.pod[0]);
	turn(&w);
	ok(bound(&w, "new") == 4, "a gang of four starts when the fourth node is free");
	ok(differences(&w) == 0, "the books agree with the pods");
	close_world(&w);
}

/* All pods of a Job are evicted at once; it makes them again while the old ones end. */
static void test_all_replaced(void)
{
	struct world w;
	struct fpod *old;

	open_world(&w, 3, 2, "");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":2,\"completions\":2" TMPL);
	old = crowd(&w, "a", 2, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	delete_softly(&w, old);
	delete_softly(&w, old + 1);
	crowd(&w, "b", 2, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "b") == 0, "replacements of a whole gang start as a whole");
	delete_pod(&w, old);
	delete_pod(&w, old + 1);
	turn(&w);
	ok(bound(&w, "b") == 2, "replacements start as soon as all of them fit");
	close_world(&w);
}

static void podgroup(struct world *w, bool gone)
{
	owner(w, SLU_KIND_PODGROUP_X, gone, META("pg", "pg1"), "\"minMember\":4");
}

static void test_podgroup_deleted(void)
{
	struct world w;
	struct fpod *busy;

	open_world(&w, 4, 2, "");
	busy = occupy(&w, "n0");
	podgroup(&w, false);
	crowd(&w, "m", 4, "2", "\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"pg\"}");
	turn(&w);
	podgroup(&w, true);
	later(&w, 3);
	ok(w.binds == 0, "the PodGroup of a waiting gang is deleted: it stays a gang of 4");
	podgroup(&w, false);
	turn(&w);
	ok(w.binds == 0, "a PodGroup that is made again leaves the gang as it is");
	podgroup(&w, true);
	delete_pod(&w, busy);
	turn(&w);
	ok(bound(&w, "m") == 4, "room for four: they start");
	close_world(&w);
}

/* A watch loses one of the five pods of a gang of four; it comes to light when the others have ended.
 * A pod that is made after that begins a new life of the group, and waits for three more. */
static void test_overlooked(void)
{
	static const char meta[] = "\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"pg\"}";
	struct world w;
	struct fpod *p;

	open_world(&w, 4, 2, "");
	podgroup(&w, false);
	p = crowd(&w, "m", 4, "2", meta);
	turn(&w);
	ok(bound(&w, "m") == 4, "the four that are known start");
	for (int i = 0; i < 4; i++)
		end_pod(&w, &p[i], "Succeeded");
	later(&w, 5);
	add_pod(&w, "o-0", "sluice", "2", meta);
	later(&w, 5);
	ok(bound(&w, "o") == 1, "the fifth belongs to them, and starts");
	end_pod(&w, &w.pod[w.n_pods - 1], "Succeeded");
	later(&w, 5);
	p = make_pod(&w, "n-0", "sluice", "2", meta);
	snprintf(p->created, sizeof p->created, "2026-01-01T00:01:00Z");
	feed_pod(&w, p, false);
	later(&w, 5);
	ok(bound(&w, "n") == 0, "one of the next four does not start alone");
	close_world(&w);
}

#define REPLICAS(n, rev, uid)                                                                \
	"\"name\":\"" uid "\",\"uid\":\"" uid                                                \
	"\",\"annotations\":{\"deployment.kubernetes.io/revision\":\"" rev "\"},"            \
	"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":" \
	"\"d\",\"uid\":\"d1\",\"controller\":true}]",                                        \
		"\"replicas\":" n TMPL

static void test_deployment_edited(void)
{
	struct world w;
	struct fpod *busy;

	open_world(&w, 4, 2, "");
	busy = occupy(&w, "n0");
	owner(&w, SLU_KIND_DEPLOYMENT, false, META("d", "d1"), "\"replicas\":4" TMPL);
	owner(&w, SLU_KIND_REPLICASET, false, REPLICAS("4", "1", "rs1"));
	crowd(&w, "a", 4, "2", OWNED("ReplicaSet", "rs1", "rs1"));
	turn(&w);
	/* The roll-out stops at three old ones and two new ones, none of which is available. */
	owner(&w, SLU_KIND_REPLICASET, false, REPLICAS("3", "1", "rs1"));
	owner(&w, SLU_KIND_REPLICASET, false, REPLICAS("2", "2", "rs2"));
	delete_pod(&w, &w.pod[1]);
	crowd(&w, "b", 2, "2", OWNED("ReplicaSet", "rs2", "rs2"));
	turn(&w);
	ok(w.binds == 0, "a waiting Deployment is edited: its size stays its replicas (%d)",
	   w.binds);
	delete_pod(&w, busy);
	turn(&w);
	ok(bound(&w, "a") + bound(&w, "b") == 4,
	   "four pods of the edited Deployment start together");
	ok(bound(&w, "b") == 2, "two of the four started pods have the new template");
	close_world(&w);
}

static void test_hold_stays(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 2, "");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":1" TMPL);
	p = add_pod(&w, "a", "sluice", "4", OWNED("Job", "j1", "j"));
	turn(&w);
	take_ask(&w, SLU_ASK_HOLD, "j", NULL);
	turn(&w);
	ok(strstr(w.last_annotation, "\"sluice.sh/on-hold\":\"true\""),
	   "a hold is noted on the object that makes the pods: %s", w.last_annotation);
	owner(&w, SLU_KIND_JOB, false,
	      META("j", "j1") ",\"annotations\":{\"sluice.sh/on-hold\":\"true\"}",
	      "\"parallelism\":1" TMPL);
	delete_pod(&w, p);
	turn(&w);
	add_pod(&w, "b", "sluice", "1", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(w.binds == 0, "a held gang whose pods are replaced is still held");
	take_ask(&w, SLU_ASK_RELEASE, "j", NULL);
	turn(&w);
	ok(bound(&w, "b") == 1, "a held group whose pods were replaced starts when it is released");
	ok(strstr(w.last_annotation, "\"sluice.sh/on-hold\":null"),
	   "the note of the hold is removed from the Job");
	close_world(&w);
}

/* Nodes of 4 cpu, pods of 2: the Job takes both nodes. */
static void open_resumed(struct world *w)
{
	memset(&seen, 0, sizeof seen);
	open_world(w, 2, 4, "");
	w->patched = server;
	feed_job(w, "j", 4, true, "yes", "");
	turn(w);
	ok(seen.jobs == 1 && strstr(seen.job, "\"suspend\":false"), "a held Job is resumed");
	feed_job(w, "j", 4, false, "released", ",\"sluice.sh/places\":\"n0*2,n1*2\"");
	turn(w);
}

static void test_quota(void)
{
	struct world w;
	struct fpod *p;

	open_resumed(&w);
	p = gated_pod(&w, "j-0", "j");
	gated_pod(&w, "j-1", "j");
	turn(&w);
	ok(seen.pods == 0, "half of its pods are there: none is let go (%d)", seen.pods);
	add_pod(&w, "other", "sluice", "4", "");
	later(&w, 20);
	ok(seen.pods == 0 && bound(&w, "other") == 0,
	   "the places of a Job below its quota are kept for a while");
	later(&w, 15);
	ok(seen.jobs == 2 && strstr(seen.job, "\"suspend\":true"),
	   "a Job that makes no more pods goes back into the queue: %s", seen.job);
	ok(bound(&w, "other") == 1, "the places of a Job that went back go to others");
	feed_job(&w, "j", 4, true, "yes", "");
	delete_pod(&w, p);
	delete_pod(&w, p + 1);
	later(&w, 1);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_quota_lifted(void)
{
	struct world w;

	open_resumed(&w);
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "j-%d", i);
		ok(seen.pods == 0, "%d of 4 pods are there: none is let go", i);
		gated_pod(&w, name, "j");
		later(&w, 10);
	}
	ok(seen.pods == 4, "all members exist: all are released");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* A webhook gives the pods more than their template says: only one fits a node. */
static void test_pods_differ(void)
{
	struct world w;

	open_resumed(&w);
	for (int i = 0; i < 4; i++) {
		struct fpod *p = make_pod(
			&w,
			i == 0   ? "j-0"
			: i == 1 ? "j-1"
			: i == 2 ? "j-2"
				 : "j-3",
			"default-scheduler", "2",
			"\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":"
			"\"Job\",\"name\":\"j\",\"uid\":\"job-j\",\"controller\":true}]");

		snprintf(
			p->spec, sizeof p->spec,
			"\"schedulerName\":\"default-scheduler\",%s\"containers\":[{\"name\":\"c\","
			"\"resources\":{\"requests\":{\"cpu\":\"3\"}}}]",
			held_gate);
		feed_pod(&w, p, false);
		turn(&w);
	}
	later(&w, 1);
	ok(seen.pods == 0, "pods that are larger than their template are not started in part (%d)",
	   seen.pods);
	feed_node(&w, "n2", 4, "\"kubernetes.io/hostname\":\"n2\"", "", "True");
	feed_node(&w, "n3", 4, "\"kubernetes.io/hostname\":\"n3\"", "", "True");
	later(&w, 1);
	ok(seen.pods == 4, "two more nodes: all are let go (%d)", seen.pods);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_held_limits_only(void)
{
	struct world w;

	memset(&seen, 0, sizeof seen);
	open_world(&w, 2, 4, "");
	w.patched = server;
	feed(&w, SLU_KIND_LIMITRANGE, false, "%s",
	     "{\"metadata\":{\"name\":\"l\",\"namespace\":\"ns\",\"uid\":\"l\"},\"spec\":{\"limits\":[{"
	     "\"type\":\"Container\",\"defaultRequest\":{\"cpu\":\"4\"}}]}}");
	feed(&w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"job-j\",\"generation\":1,"
	     "\"resourceVersion\":\"%" PRIu64
	     "\",\"annotations\":{\"sluice.sh/held\":\"yes\"}},\"spec\":{\"parallelism\":3,"
	     "\"completions\":3,\"suspend\":true,\"template\":{\"spec\":{%s\"containers\":[{"
	     "\"name\":\"c\"}]}}}}",
	     ++w.rv, held_gate);
	turn(&w);
	ok(seen.jobs == 0, "a held Job is planned with what a LimitRange gives its pods");
	feed(&w, SLU_KIND_LIMITRANGE, false, "%s",
	     "{\"metadata\":{\"name\":\"l\",\"namespace\":\"ns\",\"uid\":\"l\"},\"spec\":{\"limits\":[{"
	     "\"type\":\"Container\",\"defaultRequest\":{\"cpu\":\"2\"}}]}}");
	turn(&w);
	ok(seen.jobs == 1, "a held Job is planned again when the LimitRange changes");
	close_world(&w);
}

static void resize_pod(struct world *w, struct fpod *p, const char *cpu)
{
	snprintf(p->spec, sizeof p->spec,
		 "\"schedulerName\":\"%s\",\"nodeSelector\":{\"kubernetes.io/hostname\":\"%s\"},"
		 "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]",
		 *p->name == 'm' ? "sluice" : "default-scheduler", *p->name == 'm' ? "n1" : "n0",
		 cpu);
	feed_pod(w, p, false);
}

static void test_resized_in_place(void)
{
	struct world w;
	struct fpod *mine, *other;

	open_world(&w, 2, 8, "");
	other = occupy(&w, "n0");
	mine = make_pod(&w, "mine", "sluice", "1", "");
	resize_pod(&w, mine, "9");
	turn(&w);
	ok(bound(&w, "mine") == 0, "a pod of ours is too large");
	resize_pod(&w, mine, "1");
	turn(&w);
	ok(bound(&w, "mine") == 1, "a pod that is resized while it waits starts with the new size");
	resize_pod(&w, mine, "7");
	resize_pod(&w, other, "7");
	turn(&w);
	crowd(&w, "g", 2, "2", GROUP("g", "2"));
	turn(&w);
	ok(bound(&w, "g") == 0, "ours and one of others grew in place: what they hold counts (%d)",
	   bound(&w, "g"));
	ok(differences(&w) == 0, "the audit agrees after pods were resized");
	resize_pod(&w, other, "2");
	turn(&w);
	ok(bound(&w, "g") == 2, "the other one shrank: there is room");
	ok(differences(&w) == 0, "the audit agrees after pods were resized");
	delete_pod(&w, mine);
	crowd(&w, "h", 1, "8", "");
	turn(&w);
	ok(bound(&w, "h") == 1, "ours went, with all it had");
	ok(differences(&w) == 0, "the audit agrees after pods were resized");
	close_world(&w);
}

#define ANTI(key)                                                                     \
	"\"schedulerName\":\"default-scheduler\",\"affinity\":{\"podAntiAffinity\":{" \
	"\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"labelSelector\":{"    \
	"\"matchLabels\":{\"app\":\"batch\"}},\"topologyKey\":\"" key "\"}]}},"       \
	"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]"

static struct fpod *repel(struct world *w, const char *node, const char *spec)
{
	struct fpod *p = make_pod(w, "db", "default-scheduler", "1", "");

	snprintf(p->spec, sizeof p->spec, "%s", spec);
	snprintf(p->node, sizeof p->node, "%s", node);
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(w, p, false);
	return p;
}

/* Nodes n0 and n1 are in rack r0, n2 and n3 in r1. */
static void test_repelled(void)
{
	struct world w;
	struct fpod *db[3];

	open_world(&w, 4, 8, "");
	db[0] = repel(&w, "n0", ANTI("kubernetes.io/hostname"));
	db[1] = repel(&w, "n1", ANTI("kubernetes.io/hostname"));
	db[2] = repel(&w, "n2", ANTI("topology.sluice.sh/rack"));
	crowd(&w, "a", 1, "1", "\"labels\":{\"app\":\"batch\"}");
	crowd(&w, "b", 1, "1", "\"labels\":{\"app\":\"other\"}");
	turn(&w);
	ok(bound(&w, "a") == 0,
	   "required anti-affinity of running pods keeps a pod off every node");
	ok(bound(&w, "b") == 1, "anti-affinity does not keep off a pod it does not select");
	delete_pod(&w, db[1]);
	turn(&w);
	ok(bound(&w, "a") == 1 && !strcmp(w.pod[3].node, "n1"),
	   "when one of the members goes, its node is free (%s)", w.pod[3].node);
	delete_pod(&w, db[2]);
	crowd(&w, "c", 2, "8", "\"labels\":{\"app\":\"batch\"}");
	turn(&w);
	ok(bound(&w, "c") == 2, "when another repelling pod goes its whole rack is free");
	ok(differences(&w) == 0, "the books are right");
	(void)db;
	close_world(&w);
}

/* The pod waits when the first pod that repels it comes. */
static void test_repelled_later(void)
{
	struct world w;
	struct fpod *busy;

	open_world(&w, 1, 2, "");
	busy = occupy(&w, "n0");
	crowd(&w, "a", 1, "1", "\"labels\":{\"app\":\"batch\"}");
	turn(&w);
	repel(&w, "n0", ANTI("kubernetes.io/hostname"));
	delete_pod(&w, busy);
	turn(&w);
	ok(bound(&w, "a") == 0, "a waiting gang stays away from a node whose new pod repels it");
	close_world(&w);
}

/* A gang that has its nodes and whose image cannot be had. */
static void test_stuck(void)
{
	struct slu_snapshot *s;
	struct world w;
	struct fpod *p;
	int told;

	open_world(&w, 2, 2, "");
	w.slow_kubelets = true;
	p = crowd(&w, "a", 2, "1",
		  "\"labels\":{\"sluice.sh/group\":\"g\",\"sluice.sh/size\":\"2\"}");
	turn(&w);
	ok(w.binds == 2, "the gang has its nodes");
	snprintf(
		p->status, sizeof p->status,
		",\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"waiting\":{\"reason\":\"%s\"}}}]",
		"ContainerCreating");
	told = w.events;
	feed_pod(&w, p, false);
	turn(&w);
	ok(w.events == told, "a container that is being made is nothing to speak of");
	for (int i = 0; i < 2; i++) {
		snprintf(
			p[i].status, sizeof p[i].status,
			",\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"waiting\":{\"reason\":\"%s\"}}}]",
			"ImagePullBackOff");
		feed_pod(&w, &p[i], false);
	}
	turn(&w);
	ok(w.events == told + 1 && strstr(w.last_event, "does not start on n") &&
		   strstr(w.last_event, "ImagePullBackOff"),
	   "an image that cannot be had is told once for the group: %s", w.last_event);
	later(&w, 60);
	s = slu_core_snapshot(w.core);
	ok(s->n_jobs == 1 && strstr(s->job[0].reason, "ImagePullBackOff"),
	   "the snapshot shows the image that cannot be pulled: %s", s->job[0].reason);
	slu_snapshot_unref(s);
	for (int i = 0; i < 2; i++) {
		*p[i].status = 0;
		end_pod(&w, &p[i], "Running");
	}
	later(&w, 60);
	s = slu_core_snapshot(w.core);
	ok(s->n_jobs == 1 && !*s->job[0].reason, "a gang that runs has no reason to wait: %s",
	   s->job[0].reason);
	slu_snapshot_unref(s);
	close_world(&w);
}

static void give_owner(struct world *w, struct fpod *p, const char *meta)
{
	snprintf(p->meta, sizeof p->meta, "%s", meta);
	feed_pod(w, p, false);
}

/* A StatefulSet is deleted without its pods and made again, to change what cannot be changed: its pods run on and
 * are members of the new one. */
static void check_set_made_again(bool one_by_one)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 4, 2, "");
	owner(&w, SLU_KIND_STATEFULSET, false, META("s", "s1"), "\"replicas\":3" TMPL);
	p = crowd(&w, "s", 3, "2", OWNED("StatefulSet", "s1", "s"));
	turn(&w);
	ok(bound(&w, "s") == 3, "a set of three runs");
	for (int i = 0; i < 3; i++)
		give_owner(&w, p + i, "");
	owner(&w, SLU_KIND_STATEFULSET, true, META("s", "s1"), "\"replicas\":3" TMPL);
	turn(&w);
	ok(bound(&w, "s") == 3 && !w.evictions && !differences(&w), "its pods run on without it");
	owner(&w, SLU_KIND_STATEFULSET, false, META("s", "s2"), "\"replicas\":3" TMPL);
	for (int i = 0; i < 3; i++) {
		give_owner(&w, p + i, OWNED("StatefulSet", "s2", "s"));
		if (one_by_one)
			turn(&w);
	}
	turn(&w);
	ok(!strcmp(pictured(&w, "s").state, "running") && pictured(&w, "s").bound == 3,
	   "they are members of the set that was made again (%s, %u)", pictured(&w, "s").state,
	   pictured(&w, "s").bound);
	owner(&w, SLU_KIND_STATEFULSET, false, META("s", "s2"), "\"replicas\":4" TMPL);
	add_pod(&w, "s-3", "sluice", "2", OWNED("StatefulSet", "s2", "s"));
	turn(&w);
	ok(bound(&w, "s") == 4 && !differences(&w), "a fourth one follows them (%d)",
	   bound(&w, "s"));
	close_world(&w);
}

/* The successor of a member that is being deleted waits to follow its gang.  When the member has ended, the gang
 * is taken back: the room that this frees is not for the successor alone. */
static void test_no_follower_of_undone(void)
{
	struct world w;
	struct fpod *p, *late;

	open_world(&w, 3, 2, "jobs: {onMemberFailure: restart}\n");
	owner(&w, SLU_KIND_JOB, false, META("j", "j1"), "\"parallelism\":3,\"completions\":3" TMPL);
	p = crowd(&w, "g", 3, "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(bound(&w, "g") == 3, "a gang of three runs");
	delete_softly(&w, p);
	late = add_pod(&w, "g-3", "sluice", "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(!*late->node, "the successor of a member that is being deleted waits for its room");
	end_pod(&w, p, "Failed");
	turn(&w);
	later(&w, 1);
	ok(w.evictions == 2 && !*late->node,
	   "the gang is taken back, and the successor does not start alone (%d, %s)", w.evictions,
	   late->node);
	delete_pod(&w, p);
	delete_pod(&w, p + 1);
	delete_pod(&w, p + 2);
	add_pod(&w, "g-4", "sluice", "2", OWNED("Job", "j1", "j"));
	turn(&w);
	ok(!*late->node, "two of three do not start");
	add_pod(&w, "g-5", "sluice", "2", OWNED("Job", "j1", "j"));
	turn(&w);
	later(&w, 11);
	ok(bound(&w, "g") == 3, "three do (%d)", bound(&w, "g"));
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR + 1, SLU_LOG_TEXT, 2);
	test_waiting_gang_deleted();
	test_owner_with_finalizer();
	test_suspended_by_its_user();
	test_follower_bound_by_others();
	test_deployment_deleted();
	test_orphaned();
	test_kept_place_tainted();
	test_node_remade();
	test_limit_with_skewed_clocks();
	test_two_jobs();
	test_second_job_late();
	test_second_leaves_first();
	test_name_used_again();
	test_all_replaced();
	test_podgroup_deleted();
	test_overlooked();
	test_deployment_edited();
	test_hold_stays();
	test_quota();
	test_quota_lifted();
	test_pods_differ();
	test_held_limits_only();
	test_resized_in_place();
	test_repelled();
	test_repelled_later();
	test_stuck();
	test_no_follower_of_undone();
	check_set_made_again(false);
	check_set_made_again(true);
	return tap_done();
}
