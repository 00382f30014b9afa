/* The core against a cluster of a few lines (core_kit.h). */
#include <sys/stat.h>
#include <time.h>

#include "core_kit.h"

/* ---- scenarios ---- */

static void test_gang_waits_for_all(void)
{
	struct world w;
	char name[16];

	open_world(&w, 4, 2, "");
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "g-%d", i);
		add_pod(&w, name, "fluence", "2", GROUP("g", "4"));
	}
	turn(&w);
	ok(w.binds == 0, "three of four members: nothing is bound");
	add_pod(&w, "g-3", "fluence", "2", GROUP("g", "4"));
	turn(&w);
	ok(w.binds == 4 && bound(&w, "g-") == 4, "the fourth arrives: all four are bound");
	ok(strcmp(w.pod[0].node, w.pod[1].node) && strcmp(w.pod[2].node, w.pod[3].node),
	   "whole-node members are on different nodes");
	close_world(&w);
}

static void test_all_or_nothing(void)
{
	struct world w;
	struct fpod *other;
	char name[16];

	open_world(&w, 4, 2, "");
	other = add_pod(&w, "other", "default-scheduler", "1", "");
	snprintf(other->node, sizeof other->node, "n2");
	snprintf(other->phase, sizeof other->phase, "Running");
	feed_pod(&w, other, false);
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "g-%d", i);
		add_pod(&w, name, "fluence", "2", GROUP("g", "4"));
	}
	turn(&w);
	ok(w.binds == 0, "a foreign pod holds half a node: the gang of four waits as a whole");
	later(&w, 10);
	ok(w.conditions == 4, "after a while its members are told (%d)", w.conditions);
	ok(strstr(w.last_annotation, "sluice.sh/reason"),
	   "the reason a gang waits is on its first pod: %s", w.last_annotation);
	delete_pod(&w, other);
	turn(&w);
	ok(bound(&w, "g-") == 4, "the foreign pod goes: the gang starts at once");
	close_world(&w);
}

static void test_release_and_next(void)
{
	struct world w;
	char name[16];

	open_world(&w, 2, 2, "");
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "a-%d", i);
		add_pod(&w, name, "sluice", "2", GROUP("a", "2"));
		snprintf(name, sizeof name, "b-%d", i);
		add_pod(&w, name, "fluxnetes", "2", GROUP("b", "2"));
	}
	turn(&w);
	ok(bound(&w, "a-") == 2 && bound(&w, "b-") == 0, "a runs, b waits");
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	ok(bound(&w, "b-") == 0, "one member of a ended: b still lacks a node");
	end_pod(&w, &w.pod[2], "Succeeded");
	turn(&w);
	ok(bound(&w, "b-") == 2, "the second ended: b starts");
	close_world(&w);
}

/* Two nodes: a runs on both, wide waits for both, small would fit in front of it on either. */
static void open_ending(struct world *w)
{
	char name[16];

	open_world(w, 2, 2, FIRST_PROMISED);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "a-%d", i);
		add_pod(w, name, "sluice", "2",
			GROUP("a", "2") ",\"annotations\":{\"sluice.sh/duration\":\"600\"}");
	}
	turn(w);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "wide-%d", i);
		add_pod(w, name, "sluice", "2", GROUP("wide", "2"));
	}
	turn(w);
	add_pod(w, "small", "sluice", "2", "\"annotations\":{\"sluice.sh/duration\":\"60\"}");
	turn(w);
	ok(bound(w, "a-") == 2 && bound(w, "wide") + bound(w, "small") == 0,
	   "one gang runs, two gangs wait");
	end_pod(w, &w->pod[0], "Succeeded");
	turn(w);
}

static void test_members_end_together(void)
{
	struct world w;

	open_ending(&w);
	ok(bound(&w, "small") == 0 && slu_core_wake_us(w.core) <= w.now_us + 200000,
	   "one of two members ended: for a moment its node goes to no other job");
	w.now_us += 40000;
	end_pod(&w, &w.pod[1], "Succeeded");
	turn(&w);
	ok(bound(&w, "wide") == 2 && bound(&w, "small") == 0,
	   "the other member ends: the job that waits for both nodes gets both");
	close_world(&w);
	open_ending(&w);
	w.now_us += 200000;
	turn(&w);
	ok(bound(&w, "small") == 1, "the other one runs on: the moment passes");
	close_world(&w);
	open_ending(&w);
	feed(&w, SLU_KIND_NODE, true, "{\"metadata\":{\"name\":\"%s\",\"uid\":\"node-%s\"}}",
	     w.pod[1].node, w.pod[1].node);
	turn(&w); /* its cycles do not fail */
	w.now_us += 200000;
	turn(&w);
	ok(bound(&w, "wide") == 0, "a node lost in that moment is out of the plan after it");
	close_world(&w);
}

static void user_asks(struct world *w, enum slu_ask what, const char *name)
{
	take_ask(w, what, name, NULL);
	later(w, 61); /* members are told, and a fresh picture is made */
}

static void job_is(struct world *w, const char *name, const char *state, const char *reason)
{
	struct slu_snapshot *s = slu_core_snapshot(w->core);
	const struct slu_snap_job *j = NULL;

	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name))
			j = &s->job[i];
	ok(j && !strcmp(j->state, state) && strstr(j->reason, reason), "%s is %s: \"%s\"", name,
	   j ? j->state : "not there", j ? j->reason : "");
	slu_snapshot_unref(s);
}

static void seen(void *arg, int rc, const char *text)
{
}

static void test_not_in_line(void)
{
	struct world w;

	open_world(&w, 1, 2, "");
	add_pod(&w, "late-0", "sluice", "2",
		GROUP("late",
		      "1") ",\"annotations\":{\"sluice.sh/begin\":\"2030-01-01T00:00:00Z\"}");
	turn(&w);
	take_ask(&w, SLU_ASK_SNAPSHOT, "", seen);
	turn(&w);
	job_is(&w, "late", "waiting", "may not start before 2030");
	close_world(&w);
}

static void test_cancel_and_release(void)
{
	struct world w;

	open_world(&w, 1, 2, "");
	add_pod(&w, "a-0", "sluice", "2", GROUP("a", "1"));
	turn(&w);
	add_pod(&w, "b-0", "sluice", "2", GROUP("b", "1"));
	later(&w, 61);
	job_is(&w, "b", "waiting", "cpu");
	user_asks(&w, SLU_ASK_CANCEL, "b");
	job_is(&w, "b", "cancelled", "sluice release puts it back");
	ok(strstr(w.last_annotation, "sluice release"),
	   "the answer to sluice release says what became of the group: %s", w.last_annotation);
	user_asks(&w, SLU_ASK_RELEASE, "b");
	job_is(&w, "b", "waiting", "cpu");
	user_asks(&w, SLU_ASK_HOLD, "b");
	job_is(&w, "b", "held", "sluice release lets it wait");
	ok(strstr(w.last_annotation, "it is held"),
	   "the answer to sluice release says what became of the group: %s", w.last_annotation);
	user_asks(&w, SLU_ASK_RELEASE, "b");
	job_is(&w, "b", "waiting", "cpu");
	close_world(&w);
}

static struct {
	int rc;
	char text[300];
} said;

static void keep_answer(void *arg, int rc, const char *text)
{
	said.rc = rc;
	snprintf(said.text, sizeof said.text, "%s", text);
}

static void check_answer(struct world *w, enum slu_ask what, const char *name, int rc,
			 const char *text)
{
	said.rc = 1;
	take_ask(w, what, name, keep_answer);
	turn(w);
	ok(said.rc == rc && strstr(said.text, text), "%s: %s (%d)", name, said.text, said.rc);
}

/* The log has each request with its user and the answer. */
static void test_log_of_a_command(void)
{
	struct slu_rec_ask *a = slu_calloc(1, sizeof *a);
	char text[8192] = "";
	FILE *log = tmpfile();
	struct world w;

	open_world(&w, 1, 2, "");
	slu_log_setup(SLU_INFO, SLU_LOG_TEXT, fileno(log));
	a->base = (struct slu_record){ .kind = SLU_REC_ASK, .free = free_ask_record };
	a->what = SLU_ASK_CANCEL;
	a->answer = keep_answer;
	snprintf(a->ns, sizeof a->ns, "team-a");
	snprintf(a->name, sizeof a->name, "nosuch");
	snprintf(a->user, sizeof a->user, "alice@example.org");
	slu_core_take(w.core, &a->base, w.now_us);
	turn(&w);
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	rewind(log);
	text[fread(text, 1, sizeof text - 1, log)] = 0;
	fclose(log);
	ok(said.rc == -ENOENT &&
		   strstr(text,
			  "request answered what=cancel ns=team-a name=nosuch user=alice@example.org "
			  "answer="),
	   "the log of a command names user, namespace and answer");
	close_world(&w);
}

/* No person is told that a change is done before it is. */
static void test_answers_are_true(void)
{
	struct world w;

	open_world(&w, 2, 2, "");
	add_pod(&w, "a-0", "sluice", "2", GROUP("a", "1"));
	turn(&w);
	check_answer(&w, SLU_ASK_HOLD, "a", -EBUSY,
		     "is running already; only a waiting job can be held");
	check_answer(&w, SLU_ASK_CANCEL, "a", -EBUSY, "is running already; delete its object");
	check_answer(&w, SLU_ASK_RELEASE, "a", -EBUSY, "there is nothing to release");
	check_answer(&w, SLU_ASK_HOLD, "nosuch", -ENOENT, "no job");
	check_answer(&w, SLU_ASK_RELEASE, "nosuch", -ENOENT, "no job");
	check_answer(&w, SLU_ASK_CANCEL, "nosuch", -ENOENT, "no job");
	check_answer(&w, SLU_ASK_UNDRAIN, "nosuch", -ENOENT, "no node");
	add_pod(&w, "b-0", "sluice", "3", GROUP("b", "1"));
	later(&w, 1);
	check_answer(&w, SLU_ASK_RELEASE, "b", 0, "is not held");
	feed_node(&w, "n1", 2, "", "\"unschedulable\":true", "True");
	turn(&w);
	check_answer(&w, SLU_ASK_UNDRAIN, "n1", -EBUSY, "kubectl uncordon n1");
	check_answer(&w, SLU_ASK_DRAIN, "n1", 0, "takes no new work");
	check_answer(&w, SLU_ASK_UNDRAIN, "n1", 0, "takes no work until kubectl uncordon n1");
	check_answer(&w, SLU_ASK_UNDRAIN, "n0", 0, "in use already");
	close_world(&w);
}

/* Cycles until the store is told so, for some seconds of the journal's own thread. */
static bool store_becomes(struct world *w, const char *text, bool good)
{
	bool so = false;

	for (int i = 0; i < 6000 && !so; i++) {
		struct slu_snapshot *s;

		turn(w);
		s = slu_core_snapshot(w->core);
		so = s && s->store_ok == good && strstr(s->store, text);
		slu_snapshot_unref(s);
		if (!so)
			nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return so;
}

static void test_store_away(void)
{
	struct world w;
	char dir[] = "/tmp/sluice-core-XXXXXX", sub[64], file[80], other[100];

	if (!mkdtemp(dir)) {
		ok(false, "a directory for the store");
		return;
	}
	snprintf(sub, sizeof sub, "%s/store", dir);
	snprintf(file, sizeof file, "%s/x.db", sub);
	open_world_at(&w, file, 1, 2, "");
	ok(store_becomes(&w, "cannot be written, no gang starts until it can", false),
	   "a store without a directory is reported");
	add_pod(&w, "a-0", "sluice", "2", GROUP("a", "1"));
	turn(&w);
	ok(w.binds == 0, "without a store that can be written no pod is bound");
	mkdir(sub, 0700);
	ok(store_becomes(&w, "ok", true), "when the directory exists, the store recovers");
	for (int i = 0; i < 6000 && !w.binds; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		turn(&w);
	}
	ok(w.binds == 1, "the pod is bound once the store can be written");
	close_world(&w);
	for (int i = 0; i < 3; i++) {
		static const char *const end[] = { "", "-wal", "-shm" };

		snprintf(other, sizeof other, "%s%s", file, end[i]);
		unlink(other);
	}
	rmdir(sub);
	rmdir(dir);
}

static void test_job_waves(void)
{
	struct world w;
	const char *meta = OWNED("Job", "job-1", "pi");

	open_world(&w, 1, 2, "");
	job(&w, "job-1", "pi", "\"parallelism\":2,\"completions\":4", "");
	add_pod(&w, "pi-a", "fluence", "1", meta);
	turn(&w);
	ok(w.binds == 0, "a Job of parallelism 2 is a gang of 2");
	add_pod(&w, "pi-b", "fluence", "1", meta);
	turn(&w);
	ok(bound(&w, "pi-") == 2, "both gangs start at once");
	/* Another scheduler would take the room the moment it is free. */
	add_pod(&w, "x", "sluice", "1", "");
	turn(&w);
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	ok(!*w.pod[2].node, "the place of an ended member is kept for its successor");
	add_pod(&w, "pi-c", "fluence", "1", meta);
	turn(&w);
	ok(*w.pod[3].node && !*w.pod[2].node,
	   "the successor of an ended member takes the place that was kept");
	job(&w, "job-1", "pi", "\"parallelism\":2,\"completions\":4", "\"succeeded\":1");
	end_pod(&w, &w.pod[1], "Succeeded");
	add_pod(&w, "pi-d", "fluence", "1", meta);
	turn(&w);
	ok(*w.pod[4].node, "the wave after the next takes the place, too");
	end_pod(&w, &w.pod[3], "Succeeded");
	later(&w, 1);
	ok(*w.pod[2].node, "no member is to come: the place goes to a waiting gang");
	ok(differences(&w) == 0, "the books agree with the pods");
	close_world(&w);
}

/* Limits count gangs: also one of which only later members are left. */
static void test_limit_of_the_rest(void)
{
	struct world w;
	const char *meta = OWNED("Job", "job-1", "pi");

	open_world(&w, 2, 4, "queues: [{name: default, maxRunning: 1}]\njobs: {holdVacant: 0s}");
	job(&w, "job-1", "pi", "\"parallelism\":2,\"completions\":4", "");
	add_pod(&w, "pi-a", "sluice", "1", meta);
	add_pod(&w, "pi-b", "sluice", "1", meta);
	turn(&w);
	end_pod(&w, &w.pod[0], "Succeeded");
	later(&w, 1);
	add_pod(&w, "pi-c", "sluice", "1", meta); /* its gang runs */
	add_pod(&w, "x", "sluice", "1", "");
	turn(&w);
	ok(*w.pod[2].node && !*w.pod[3].node,
	   "limits: a later member starts, the next gang does not");
	job(&w, "job-1", "pi", "\"parallelism\":2,\"completions\":4", "\"succeeded\":1");
	end_pod(&w, &w.pod[1], "Succeeded");
	later(&w, 1);
	ok(!*w.pod[3].node, "limits: a gang counts when only a later member runs");
	end_pod(&w, &w.pod[2], "Succeeded");
	later(&w, 1);
	ok(*w.pod[3].node, "limits: the next gang starts when nothing of it runs");
	job(&w, "job-1", "pi", "\"parallelism\":2,\"completions\":4", "\"succeeded\":3");
	add_pod(&w, "pi-d", "sluice", "1", meta);
	later(&w, 1);
	ok(!*w.pod[4].node, "limits: no later member starts beyond the limit");
	end_pod(&w, &w.pod[3], "Succeeded");
	later(&w, 1);
	ok(*w.pod[4].node, "limits: it starts when its gang may run");
	ok(differences(&w) == 0, "limits: the books agree with the pods");
	close_world(&w);
}

/* A kubelet that refuses a member gets no other one of its group for a while. */
static void test_turned_away(void)
{
	struct world w;
	struct fpod *p, *next;

	open_world(&w, 2, 4, "");
	job(&w, "j-1", "j", "\"parallelism\":1,\"completions\":1", "");
	p = add_pod(&w, "j-a", "sluice", "1", OWNED("Job", "j-1", "j"));
	turn(&w);
	ok(!strcmp(p->node, "n0"), "a Job's pod goes to the first node");
	snprintf(p->status, sizeof p->status, ",\"reason\":\"OutOfcpu\"");
	end_pod(&w, p, "Failed");
	next = add_pod(&w, "j-b", "sluice", "1", OWNED("Job", "j-1", "j"));
	turn(&w);
	ok(!strcmp(next->node, "n1"),
	   "a pod whose predecessor was refused by a kubelet goes to another node (%s)",
	   next->node);
	snprintf(next->status, sizeof next->status, ",\"reason\":\"OutOfcpu\"");
	end_pod(&w, next, "Failed");
	p = add_pod(&w, "j-c", "sluice", "1", OWNED("Job", "j-1", "j"));
	turn(&w);
	ok(*p->node, "a pod that both nodes refused is still given a node (%s)", p->node);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

static void test_size_below_pods(void)
{
	struct world w;
	char name[16];

	open_world(&w, 3, 1, "");
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "g-%d", i);
		add_pod(&w, name, "fluence", "1", GROUP("g", "2"));
	}
	turn(&w);
	ok(bound(&w, "g-") == 3, "size 2 of 5 pods on 3 nodes: starts with what fits (%d)",
	   bound(&w, "g-"));
	for (int i = 0; i < 5; i++)
		if (*w.pod[i].node) {
			end_pod(&w, &w.pod[i], "Succeeded");
			break;
		}
	later(&w, 1);
	ok(bound(&w, "g-") == 3, "the rest follow as room allows");
	close_world(&w);
}

static void test_statefulset(void)
{
	struct world w;
	const char *meta = OWNED("StatefulSet", "ss-1", "db");

	open_world(&w, 3, 1, "");
	feed(&w, SLU_KIND_STATEFULSET, false,
	     "{\"metadata\":{\"name\":\"db\",\"namespace\":\"ns\",\"uid\":\"ss-1\",\"resourceVersion\":\"1\"},"
	     "\"spec\":{\"replicas\":3,\"template\":{}}}");
	add_pod(&w, "db-0", "fluence", "1", meta);
	turn(&w);
	ok(bound(&w, "db-") == 1, "the first of an OrderedReady StatefulSet starts alone");
	add_pod(&w, "x-0", "sluice", "1", "");
	turn(&w);
	ok(bound(&w, "x-") == 0, "the places of the other pods of the StatefulSet are held");
	add_pod(&w, "db-1", "fluence", "1", meta);
	turn(&w);
	add_pod(&w, "db-2", "fluence", "1", meta);
	turn(&w);
	ok(bound(&w, "db-") == 3, "the members of a StatefulSet are bound one by one");
	close_world(&w);
}

#define LED(member)                                                     \
	"\"labels\":{\"leaderworkerset.sigs.k8s.io/name\":\"serve\","   \
	"\"leaderworkerset.sigs.k8s.io/group-index\":\"1\","            \
	"\"leaderworkerset.sigs.k8s.io/group-key\":\"5f0c\","           \
	"\"leaderworkerset.sigs.k8s.io/worker-index\":\"" member "\"}," \
	"\"annotations\":{\"leaderworkerset.sigs.k8s.io/size\":\"3\"}"

static void led_sets(struct world *w, const char *leaders, bool workers)
{
	feed(w, SLU_KIND_STATEFULSET, false,
	     "{\"metadata\":{\"name\":\"serve\",\"namespace\":\"ns\",\"uid\":\"ss-1\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"spec\":{\"replicas\":%s,\"podManagementPolicy\":\"Parallel\",\"template\":{\"metadata\":{\"labels\":{"
	     "\"leaderworkerset.sigs.k8s.io/name\":\"serve\"}}}}}",
	     ++w->rv, leaders);
	if (workers)
		feed(w, SLU_KIND_STATEFULSET, false,
		     "{\"metadata\":{\"name\":\"serve-1\",\"namespace\":\"ns\",\"uid\":\"ss-2\",\"resourceVersion\":\"%" PRIu64
		     "\"," OWNED(
			     "Pod", "p-1",
			     "serve-1") "},\"spec\":{\"replicas\":2,"
					"\"podManagementPolicy\":\"Parallel\",\"template\":{}}}",
		     ++w->rv);
}

/* The controller of LeaderWorkerSets makes the workers with the leader, or when the leader runs. */
static void test_leader_and_workers(void)
{
	struct fpod *wall, *last;
	struct world w;

	open_world(&w, 3, 1, "");
	led_sets(&w, "2", false);
	add_pod(&w, "serve-1", "sluice", "1",
		LED("0") ",\"creationTimestamp\":\"2026-01-01T00:00:10Z\"," OWNED("StatefulSet",
										  "ss-1", "serve"));
	turn(&w);
	ok(bound(&w, "serve-1") == 0, "a leader waits a moment for its workers");
	led_sets(&w, "2", true);
	add_pod(&w, "serve-1-1", "sluice", "1",
		LED("1") "," OWNED("StatefulSet", "ss-2", "serve-1"));
	later(&w, 3);
	ok(bound(&w, "serve-1") == 0, "with one worker of two no member starts");
	add_pod(&w, "serve-1-2", "sluice", "1",
		LED("2") "," OWNED("StatefulSet", "ss-2", "serve-1"));
	turn(&w);
	ok(bound(&w, "serve-1") == 3,
	   "with all workers leader and workers start together, at once");
	close_world(&w);

	open_world(&w, 3, 1, "");
	wall = add_pod(&w, "wall", "sluice", "1", "");
	turn(&w);
	led_sets(&w, "2", false);
	add_pod(&w, "serve-1", "sluice", "1", LED("0") "," OWNED("StatefulSet", "ss-1", "serve"));
	later(&w, 3);
	ok(bound(&w, "serve-1") == 0, "no leader without places for the workers it will have");
	end_pod(&w, wall, "Succeeded");
	later(&w, 3);
	ok(bound(&w, "serve-1") == 1, "a leader whose workers wait for it starts alone");
	add_pod(&w, "x-0", "sluice", "1", "");
	later(&w, 700);
	ok(bound(&w, "x-") == 0, "the places of its workers are kept");
	led_sets(&w, "2", true);
	add_pod(&w, "serve-1-1", "sluice", "1",
		LED("1") "," OWNED("StatefulSet", "ss-2", "serve-1"));
	last = add_pod(&w, "serve-1-2", "sluice", "1",
		       LED("2") "," OWNED("StatefulSet", "ss-2", "serve-1"));
	turn(&w);
	ok(bound(&w, "serve-1") == 3, "the workers come to the places kept for them");
	delete_pod(&w, last);
	turn(&w);
	ok(bound(&w, "x-") == 0, "the place of a worker that is made again is kept");
	led_sets(&w, "1", true);
	turn(&w);
	ok(bound(&w, "x-") == 1, "a group whose number the set no longer makes keeps no place");
	close_world(&w);
}

static void test_constraints(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 4, "");
	feed_node(&w, "special", 4, "\"disk\":\"ssd\"",
		  "\"taints\":[{\"key\":\"only\",\"value\":\"me\",\"effect\":\"NoSchedule\"}]",
		  "True");
	feed_node(&w, "dead", 64, "", "", "False");
	feed_node(&w, "cordoned", 64, "", "\"unschedulable\":true", "True");
	feed_node(&w, "master", 64, "\"node-role.kubernetes.io/control-plane\":\"\"", "", "True");
	p = &w.pod[w.n_pods++];
	*p = (struct fpod){ .name = "sel", .uid = "u-sel", .phase = "Pending", .there = true };
	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"sluice\",\"nodeSelector\":{\"disk\":\"ssd\"},\"containers\":[]");
	feed_pod(&w, p, false);
	turn(&w);
	ok(!*p->node, "selected, but tainted: waits");
	p = &w.pod[w.n_pods++];
	*p = (struct fpod){ .name = "tol", .uid = "u-tol", .phase = "Pending", .there = true };
	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"sluice\",\"nodeSelector\":{\"disk\":\"ssd\"},\"tolerations\":[{\"key\":\"only\",\"operator\":\"Exists\"}],\"containers\":[]");
	feed_pod(&w, p, false);
	turn(&w);
	ok(!strcmp(p->node, "special"), "a pod that tolerates the taint runs on the tainted node");
	p = add_pod(&w, "big", "sluice", "8", "");
	turn(&w);
	ok(!*p->node, "down, cordoned and control-plane nodes are not used");
	feed_node(&w, "cordoned", 64, "", "", "True");
	turn(&w);
	ok(!strcmp(p->node, "cordoned"), "uncordoned: used at once");
	close_world(&w);
}

static void test_never_and_grow(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 4, "");
	p = add_pod(&w, "huge", "fluxnetes", "20", "");
	turn(&w);
	later(&w, 1);
	ok(w.events > 0 && w.conditions == 1,
	   "a gang that can never run is told so within a second: %s", w.last_event);
	feed_node(&w, "large", 32, "", "", "True");
	turn(&w);
	ok(!strcmp(p->node, "large"),
	   "a gang that could never run is tried again when a node comes");
	close_world(&w);
}

static void test_bind_fails(void)
{
	struct world w;

	open_world(&w, 2, 1, "");
	w.bind_outcome = SLU_KUBE_INVALID;
	add_pod(&w, "g-0", "fluence", "1", GROUP("g", "2"));
	add_pod(&w, "g-1", "fluence", "1", GROUP("g", "2"));
	turn(&w);
	ok(w.binds == 2 && bound(&w, "g-") == 0, "both bindings are refused for good (%d, %d)",
	   w.binds, bound(&w, "g-"));
	w.bind_outcome = SLU_KUBE_OK;
	later(&w, 40);
	ok(w.binds == 4 && bound(&w, "g-") == 2, "the gang was taken back whole and planned again");
	close_world(&w);
}

static void test_restart(void)
{
	struct world w;
	struct fpod *p;

	/* Two members run already, a third waits: the first cycle of a new process. */
	open_world(&w, 3, 2, "");
	for (int i = 0; i < 2; i++) {
		char name[16];

		snprintf(name, sizeof name, "g-%d", i);
		p = &w.pod[w.n_pods++];
		*p = (struct fpod){ .phase = "Running", .there = true };
		snprintf(p->name, sizeof p->name, "%s", name);
		snprintf(p->uid, sizeof p->uid, "u-%s", name);
		snprintf(p->node, sizeof p->node, "n%d", i);
		snprintf(p->meta, sizeof p->meta, GROUP("g", "3"));
		snprintf(
			p->spec, sizeof p->spec,
			"\"schedulerName\":\"fluence\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]");
		feed_pod(&w, p, false);
	}
	add_pod(&w, "g-2", "fluence", "2", GROUP("g", "3"));
	add_pod(&w, "x", "sluice", "2", "");
	turn(&w);
	ok(bound(&w, "g-") == 3 && bound(&w, "x") == 0,
	   "the rest of a gang that runs already is completed before anybody else");
	close_world(&w);
}

static void test_restart_policy(void)
{
	struct world w;
	const char *meta = OWNED("Job", "job-1", "mpi");

	open_world(&w, 2, 1, "jobs: {onMemberFailure: restart}");
	job(&w, "job-1", "mpi", "\"parallelism\":2,\"completions\":2", "");
	add_pod(&w, "m-a", "fluence", "1", meta);
	add_pod(&w, "m-b", "fluence", "1", meta);
	turn(&w);
	ok(bound(&w, "m-") == 2, "the gang runs");
	end_pod(&w, &w.pod[0], "Failed");
	add_pod(&w, "m-c", "fluence", "1", meta);
	turn(&w);
	ok(w.evictions == 1 && !*w.pod[2].node,
	   "a member failed: the other is evicted, its successor waits (%d)", w.evictions);
	delete_pod(&w, &w.pod[1]);
	turn(&w);
	ok(!*w.pod[2].node, "one member of two does not start alone");
	add_pod(&w, "m-d", "fluence", "1", meta);
	turn(&w);
	ok(*w.pod[2].node && *w.pod[3].node, "whole again, it starts again");
	ok(differences(&w) == 0, "the books agree with the pods");
	close_world(&w);
}

static void test_deadline(void)
{
	struct world w;

	open_world(&w, 1, 2, "jobs: {enforceDeadlines: true}");
	struct fpod *lasts = add_pod(&w, "long", "sluice", "1",
				     "\"annotations\":{\"sluice.sh/duration\":\"60\"}");

	add_pod(&w, "free", "sluice", "1", "");
	w.slow_kubelets = true;
	turn(&w);
	later(&w, 100);
	ok(*lasts->node && w.evictions == 0, "a pod that does not run yet has not used its time");
	end_pod(&w, lasts, "Running");
	turn(&w);
	later(&w, 30);
	ok(w.evictions == 0, "a pod within its limit is left alone");
	later(&w, 40);
	ok(w.evictions == 1, "a pod beyond its limit is evicted once (%d)", w.evictions);
	later(&w, 5);
	ok(w.evictions == 1, "an evicted pod has time to go before it is evicted again");
	later(&w, 10);
	ok(w.evictions == 2, "an eviction that is lost or refused is asked for again (%d)",
	   w.evictions);
	end_pod(&w, lasts, "Failed");
	turn(&w);
	later(&w, 40);
	ok(w.evictions == 2, "a pod that named no limit is never evicted for its time");
	close_world(&w);
}

/* A kubelet refuses a member before the gang runs whole: its successor goes to another node. */
static void test_deadline_of_refused(void)
{
	const char *meta = OWNED("Job", "job-1",
				 "mpi") ",\"annotations\":{\"sluice.sh/duration\":\"60\"}";
	struct world w;

	open_world(&w, 3, 1, "jobs: {enforceDeadlines: true}");
	job(&w, "job-1", "mpi", "\"parallelism\":2,\"completions\":2", "");
	w.slow_kubelets = true;
	add_pod(&w, "m-a", "fluence", "1", meta);
	add_pod(&w, "m-b", "fluence", "1", meta);
	turn(&w);
	end_pod(&w, &w.pod[0], "Running");
	snprintf(w.pod[1].status, sizeof w.pod[1].status, ",\"reason\":\"OutOfcpu\"");
	end_pod(&w, &w.pod[1], "Failed");
	add_pod(&w, "m-c", "fluence", "1", meta);
	turn(&w);
	later(&w, 5);
	ok(*w.pod[2].node && strcmp(w.pod[2].node, w.pod[1].node),
	   "the successor of a member that a kubelet refused goes to another node (%s, %s)",
	   w.pod[1].node, w.pod[2].node);
	later(&w, 100);
	ok(w.evictions == 0, "one member of two that runs does not use the gang's time");
	end_pod(&w, &w.pod[2], "Running");
	turn(&w);
	later(&w, 50);
	ok(w.evictions == 0, "within its limit the gang is left alone");
	later(&w, 15);
	ok(w.evictions == 2, "beyond it, both members are evicted (%d)", w.evictions);
	close_world(&w);
}

static void reload(struct world *w, const char *yaml)
{
	struct slu_config *now = NULL;
	struct slu_error err = { 0 };

	if (slu_config_parse("test", yaml, strlen(yaml), &now, &err) < 0)
		ok(false, "reload: %s", err.text);
	slu_config_keep(now, w->cfg);
	slu_core_take(w->core, slu_rec_config_new(now), w->now_us);
	slu_config_free(now);
	turn(w);
	later(w, 1);
}

#define IN_QUEUE(q) "\"annotations\":{\"sluice.sh/queue\":\"" q "\"}"

/* Queues are added, removed, given other nodes and limits while work waits and runs. */
static void test_reload_queues(void)
{
	struct fpod *a, *b, *c;
	struct world w;

	open_world(&w, 1, 4, "queues: [{name: default}, {name: old}]");
	a = add_pod(&w, "a", "sluice", "1", IN_QUEUE("old"));
	b = add_pod(&w, "b", "sluice", "1", IN_QUEUE("new"));
	turn(&w);
	ok(*a->node && !*b->node, "reload: one runs, the other names a queue that is not there");
	reload(&w, "queues: [{name: default}, {name: new}]");
	ok(*b->node, "reload: a queue is added, and the job that named it starts");
	c = add_pod(&w, "c", "sluice", "1", IN_QUEUE("old"));
	turn(&w);
	ok(!*c->node && differences(&w) == 0,
	   "reload: a removed queue starts no job, and its running jobs count");
	reload(&w, "queues: [{name: default}, {name: new}, {name: old, nodeLabel: pool=x}]");
	ok(!*c->node, "reload: a queue that is back without nodes starts no job");
	reload(&w, "queues: [{name: default}, {name: new}, {name: old, maxRunning: 1}]");
	ok(!*c->node, "reload: with a limit below the running jobs, no further job starts");
	reload(&w, "queues: [{name: default}, {name: new}, {name: old}]");
	ok(*c->node, "reload: without a limit the job starts");
	close_world(&w);
}

#define GANG_OF(n) "\"labels\":{\"sluice.sh/group\":\"" n "\",\"sluice.sh/size\":\"2\"}"

/* The other rows of the table in sluiced.yaml(5): limits for those that wait and that come, whole nodes, policies. */
static void test_reload_limits(void)
{
	struct fpod *run, *wait, *more, *two, *whole;
	struct world w;

	open_world(&w, 1, 4, "queues: [{name: default, exclusive: true}]");
	run = add_pod(&w, "run", "sluice", "4", "");
	turn(&w);
	wait = add_pod(&w, "wait", "sluice", "1", "");
	turn(&w);
	reload(&w, "queues: [{name: default, exclusive: true, maxWaiting: 1}]");
	more = add_pod(&w, "more", "sluice", "1", "");
	turn(&w);
	ok(!strcmp(pictured(&w, "wait").state, "waiting") &&
		   !strcmp(pictured(&w, "more").state, "refused"),
	   "reload: maxWaiting lowered: waiting jobs stay, and no further job enters (%s)",
	   pictured(&w, "more").state);
	reload(&w, "queues: [{name: default, exclusive: true, maxSize: 1, policy: fcfs}]");
	ok(!strcmp(pictured(&w, "more").state, "waiting"),
	   "reload: without it, a refused job waits (%s)", pictured(&w, "more").state);
	two = add_pod(&w, "two-0", "sluice", "1", GANG_OF("two"));
	add_pod(&w, "two-1", "sluice", "1", GANG_OF("two"));
	whole = add_pod(&w, "whole", "sluice", "1",
			"\"annotations\":{\"sluice.sh/exclusive\":\"true\"}");
	turn(&w);
	ok(!strcmp(pictured(&w, "two").state, "refused"),
	   "reload: maxSize lowered counts for new jobs (%s)", pictured(&w, "two").state);
	ok(!strcmp(pictured(&w, "whole").state, "waiting"), "reload: whole nodes are allowed (%s)",
	   pictured(&w, "whole").state);
	reload(&w, "queues: [{name: default, exclusive: false, policy: conservative}]");
	ok(!strcmp(pictured(&w, "two").state, "waiting"),
	   "reload: maxSize raised: a refused job is tried again (%s)", pictured(&w, "two").state);
	ok(strcmp(pictured(&w, "whole").state, "waiting"),
	   "reload: exclusive switched off refuses jobs that wait for whole nodes (%s: %s)",
	   pictured(&w, "whole").state, pictured(&w, "whole").reason);
	ok(pictured(&w, "two").promised, "reload: the new policy promises at once");
	reload(&w, "queues: [{name: default, exclusive: true, policy: first-fit}]");
	ok(!pictured(&w, "two").promised, "reload: promises that the new policy does not give end");
	ok(!strcmp(pictured(&w, "whole").state, "waiting"),
	   "reload: exclusive switched on takes that back (%s)", pictured(&w, "whole").state);
	end_pod(&w, run, "Succeeded");
	later(&w, 1);
	ok(*wait->node && *more->node && *two->node && !*whole->node,
	   "reload: all that fits starts when there is room");
	close_world(&w);
}

/* A queue goes while a job waits in it. */
static void test_reload_removed(void)
{
	struct fpod *run, *p, *last;
	struct world w;

	open_world(&w, 1, 2, "queues: [{name: default}, {name: old}]");
	run = add_pod(&w, "run", "sluice", "2", "");
	turn(&w);
	p = add_pod(&w, "p", "sluice", "2", IN_QUEUE("old"));
	turn(&w);
	reload(&w, "queues: [{name: default}, {name: new}]");
	end_pod(&w, run, "Succeeded");
	later(&w, 2);
	ok(!*p->node && strstr(pictured(&w, "p").reason, "old"),
	   "reload: a job whose queue was removed waits with that reason: %s",
	   pictured(&w, "p").reason);
	last = add_pod(&w, "last", "sluice", "2", "");
	later(&w, 1);
	ok(*last->node, "reload: it keeps nobody else waiting");
	reload(&w, "queues: [{name: default}, {name: old}]");
	end_pod(&w, last, "Succeeded");
	later(&w, 1);
	ok(*p->node, "reload: the queue is back, and the job starts");
	close_world(&w);
}

/* Limits of a user and of a job's time are lowered and raised; all pods of this namespace are one user's. */
static void test_reload_user_limits(void)
{
	struct fpod *a, *b, *c, *d;
	struct world w;

	open_world(&w, 1, 4, "queues: [{name: default}]");
	a = add_pod(&w, "a", "sluice", "1", "");
	b = add_pod(&w, "b", "sluice", "1", "");
	turn(&w);
	reload(&w, "queues: [{name: default, maxRunningPerUser: 1}]");
	c = add_pod(&w, "c", "sluice", "1", "");
	later(&w, 1);
	ok(*a->node && *b->node && !w.evictions && !*c->node,
	   "reload: maxRunningPerUser lowered: running jobs stay, and no further job starts");
	end_pod(&w, a, "Succeeded");
	later(&w, 1);
	ok(!*c->node, "reload: no job starts until fewer run than the limit allows");
	reload(&w, "queues: [{name: default, maxRunningPerUser: 1, maxWaitingPerUser: 1}]");
	add_pod(&w, "d", "sluice", "1", "");
	later(&w, 1);
	ok(!strcmp(pictured(&w, "c").state, "waiting") &&
		   !strcmp(pictured(&w, "d").state, "refused"),
	   "reload: maxWaitingPerUser lowered: the waiting job stays, no other enters (%s, %s)",
	   pictured(&w, "c").state, pictured(&w, "d").state);
	end_pod(&w, b, "Succeeded");
	later(&w, 1);
	ok(*c->node && !strcmp(pictured(&w, "d").state, "waiting"),
	   "reload: one starts, and the refused one enters in its place (%s)",
	   pictured(&w, "d").state);
	reload(&w, "jobs: {defaultDuration: 60}\nqueues: [{name: default, maxDuration: 60}]");
	d = add_pod(&w, "e", "sluice", "1", "\"annotations\":{\"sluice.sh/duration\":\"2m\"}");
	later(&w, 1);
	ok(!strcmp(pictured(&w, "e").state, "refused"),
	   "reload: maxDuration lowered counts for new jobs (%s)", pictured(&w, "e").state);
	reload(&w, "jobs: {defaultDuration: 60}\nqueues: [{name: default, maxDuration: 120}]");
	ok(*d->node, "reload: maxDuration raised: the job that it refused is tried again");
	close_world(&w);
}

/* A queue gets other nodes, and jobs are matched by another policy: what runs stays, what waits keeps its place. */
static void test_reload_nodes(void)
{
	struct fpod *run, *first, *second;
	struct world w;

	open_world(&w, 4, 2, "queues: [{name: default, nodeLabel: topology.sluice.sh/rack=r0}]");
	run = add_pod(&w, "run-0", "sluice", "2", GANG_OF("run"));
	add_pod(&w, "run-1", "sluice", "2", GANG_OF("run"));
	turn(&w);
	first = add_pod(&w, "first", "sluice", "2", "");
	turn(&w);
	w.now_us += 1000000;
	second = add_pod(&w, "second", "sluice", "2", "");
	turn(&w);
	ok(*run->node && !*first->node && !*second->node, "reload: two wait for the rack");
	reload(&w,
	       "match: {policy: high}\nqueues: [{name: default, nodeLabel: topology.sluice.sh/rack=r0}]");
	ok(pictured(&w, "first").position == 1 && pictured(&w, "second").position == 2,
	   "reload: another match.policy leaves the order as it was (%u, %u)",
	   pictured(&w, "first").position, pictured(&w, "second").position);
	reload(&w, "queues: [{name: default, nodeLabel: topology.sluice.sh/rack=r1}]");
	ok(!strcmp(first->node, "n2") && !strcmp(second->node, "n3") && bound(&w, "run") == 2 &&
		   !w.evictions && differences(&w) == 0,
	   "reload: with another nodeLabel they start there, and what runs stays (%s, %s)",
	   first->node, second->node);
	close_world(&w);
}

/* A setting that is read at start stays as it was after a reload. */
static void test_reload_waits(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 4, "nodes: {excludeLabel: gone=yes}");
	reload(&w, "nodes: {excludeLabel: touched=yes}");
	feed_node(&w, "n0", 4, "\"touched\":\"yes\"", "", "True");
	p = add_pod(&w, "p", "sluice", "4", "");
	turn(&w);
	ok(*p->node, "reload: a setting that is read at start does not act before");
	close_world(&w);
}

static void test_bad_objects(void)
{
	struct world w;
	struct fpod *good;

	open_world(&w, 2, 4, "");
	add_pod(&w, "b1", "fluence", "1", GROUP("b1", "many"));
	add_pod(&w, "b2", "fluence", "1", GROUP("b2", "99999999999"));
	add_pod(&w, "b3", "fluence", "1", "\"annotations\":{\"sluice.sh/duration\":\"a while\"}");
	add_pod(&w, "b4", "fluence", "1", "\"annotations\":{\"sluice.sh/topology\":\"moon\"}");
	good = add_pod(&w, "good", "fluence", "1",
		       "\"annotations\":{\"fluence.note\":\"caf\\u00e9 ' \\\" ; --\"}");
	turn(&w);
	ok(w.events >= 4, "each bad object is named in an event (%d)", w.events);
	ok(*good->node && w.binds == 1, "a bad object does not keep other gangs from starting");
	close_world(&w);
}

/* Another scheduler put the pod on a node that is not ours: Sluice leaves the pod alone and
 * reports no failure. */
static void test_elsewhere(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 1, "");
	p = make_pod(&w, "x", "sluice", "1", "");
	snprintf(p->node, sizeof p->node, "nowhere");
	feed_pod(&w, p, false);
	later(&w, 10);
	later(&w, 10);
	ok(!w.events && !w.binds && !w.conditions, "no event is written about the pod (%s)",
	   w.last_event);
	job_is(&w, "x", "running", "");
	close_world(&w);
}

/* Members that contradict each other: said once for each two sizes. */
static void test_sizes_differ(void)
{
	struct world w;
	int events;

	open_world(&w, 2, 4, "");
	add_pod(&w, "s0", "fluence", "1", GROUP("s", "4"));
	add_pod(&w, "s1", "fluence", "1", GROUP("s", "2"));
	turn(&w);
	ok(!w.binds && strstr(w.last_event, "different sizes, 2 and 4; the larger counts"),
	   "sizes 4 and 2: the larger counts (%s)", w.last_event);
	events = w.events;
	for (int i = 0; i < 10; i++) {
		struct fpod *p = add_pod(&w, "s9", "fluence", "1", GROUP("s", "2"));

		turn(&w);
		delete_pod(&w, p);
		turn(&w);
		w.n_pods--;
	}
	ok(w.events == events, "said once, however often they are looked at (%d)",
	   w.events - events);
	add_pod(&w, "s2", "fluence", "1", GROUP("s", "2"));
	turn(&w);
	ok(!w.binds, "three of four wait");
	add_pod(&w, "s3", "fluence", "1", GROUP("s", "2"));
	turn(&w);
	ok(bound(&w, "s") == 4, "four of four start together");
	close_world(&w);
}

/* A user who may create a pod may invent resources; invented resources take no place from those
 * that nodes have. */
static void test_invented_resources(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 2, 4, "");
	for (int i = 0; i < 40; i++) {
		p = make_pod(&w, "bad", "sluice", "1", "");
		snprintf(
			p->spec, sizeof p->spec,
			"\"schedulerName\":\"sluice\",\"containers\":[{\"name\":\"c\",\"resources\":{"
			"\"requests\":{\"made.up/r%d\":\"1\"}}}]",
			i);
		feed_pod(&w, p, false);
	}
	p = make_pod(&w, "gpu", "sluice", "1", "");
	snprintf(p->spec, sizeof p->spec,
		 "\"schedulerName\":\"sluice\",\"containers\":[{\"name\":\"c\",\"resources\":{"
		 "\"requests\":{\"cpu\":\"1\",\"example.com/gpu\":\"2\"}}}]");
	feed_pod(&w, p, false);
	turn(&w);
	ok(!w.binds, "no node has what the pods ask for");
	add_pod(&w, "plain", "sluice", "1", "");
	turn(&w);
	ok(bound(&w, "plain") == 1, "a gang that asks for nothing special is not hurt");
	feed(&w, SLU_KIND_NODE, false,
	     "{\"metadata\":{\"name\":\"g0\",\"uid\":\"g0\",\"resourceVersion\":\"%" PRIu64
	     "\"},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\","
	     "\"example.com/gpu\":\"4\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
	     ++w.rv);
	turn(&w);
	ok(!strcmp(p->node, "g0"), "a node brings the resource: it starts there (%s; %s)", p->node,
	   w.last_event);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* The webhook notes when an object was created; a note that another program wrote is ignored. */
static void test_forged_notes(void)
{
	static const struct {
		const char *yaml, *note, *first, *what;
	} row[] = {
		{ "", "1767225599500000", "a", "without a webhook no note counts" },
		{ "webhook: {enabled: true}", "1767225599500000", "b",
		  "with a webhook its note counts" },
		{ "webhook: {enabled: true}", "1", "a", "a note from long ago does not count" },
		{ "webhook: {enabled: true}", "9999999999999999", "a",
		  "a note from the future does not count" },
		{ "webhook: {enabled: true}", "1767225599500000x", "a",
		  "a note that is not a number does not count" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct fpod *first, *a, *b;
		char meta[100];
		struct world w;

		open_world(&w, 1, 1, row[i].yaml);
		first = add_pod(&w, "first", "sluice", "1", "");
		turn(&w);
		a = add_pod(&w, "a", "sluice", "1", "");
		snprintf(meta, sizeof meta, "\"annotations\":{\"sluice.sh/seen-us\":\"%s\"}",
			 row[i].note);
		b = add_pod(&w, "b", "sluice", "1", meta);
		turn(&w);
		end_pod(&w, first, "Succeeded");
		turn(&w);
		ok(!strcmp(*a->node ? "a" : *b->node ? "b" : "", row[i].first), "%s", row[i].what);
		close_world(&w);
	}
}

static void test_topology(void)
{
	struct world w;
	char name[16];

	open_world(&w, 6, 1, "");
	add_pod(&w, "x", "sluice", "1", ""); /* takes a node of rack r0 */
	turn(&w);
	for (int i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "t-%d", i);
		add_pod(&w, name, "sluice", "1",
			"\"labels\":{\"sluice.sh/group\":\"t\",\"sluice.sh/size\":\"2\"},"
			"\"annotations\":{\"sluice.sh/topology\":\"rack\"}");
	}
	turn(&w);
	ok(bound(&w, "t-") == 2 && (w.pod[1].node[1] - '0') / 2 == (w.pod[2].node[1] - '0') / 2,
	   "both members are in one rack (%s, %s)", w.pod[1].node, w.pod[2].node);
	close_world(&w);
}

static void test_namespaces_and_podgroup(void)
{
	struct world w;

	open_world(&w, 4, 1, "");
	feed(&w, SLU_KIND_PODGROUP_X, false,
	     "{\"metadata\":{\"name\":\"pg\",\"namespace\":\"ns\",\"uid\":\"pg-1\",\"resourceVersion\":\"1\"},\"spec\":{\"minMember\":3,\"scheduleTimeoutSeconds\":7}}");
	for (int i = 0; i < 2; i++) {
		char name[16];

		snprintf(name, sizeof name, "p-%d", i);
		add_pod(&w, name, "fluence", "1",
			"\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"pg\",\"fluence.group-size\":\"2\"}");
	}
	turn(&w);
	ok(bound(&w, "p-") == 0, "a PodGroup's minMember wins over the size label");
	add_pod(&w, "p-2", "fluence", "1", "\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"pg\"}");
	turn(&w);
	later(&w, 1);
	ok(bound(&w, "p-") == 3 && strstr(w.last_status, "\"phase\":\"Running\""),
	   "with three members the gang runs, and the PodGroup's status says so: %s",
	   w.last_status);
	ok(w.last_limit_ns == 7000000000,
	   "scheduleTimeoutSeconds of the PodGroup bounds how long a binding is tried");
	add_pod(&w, "alone", "fluence", "1", "");
	turn(&w);
	ok(w.last_limit_ns == 30000000000,
	   "a gang without a limit of its own is tried for place.retryFor");
	close_world(&w);
}

/* A busy host port is waited for like anything else that is busy: planned, not refused. */
static void test_host_ports(void)
{
	static const char ports[] =
		"\"schedulerName\":\"%s\",\"activeDeadlineSeconds\":%d,\"containers\":[{\"name\":\"c\","
		"\"ports\":[{\"containerPort\":80,\"hostPort\":%d}],"
		"\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]";
	struct world w;
	struct fpod *other, *p[16];

	open_world(&w, 2, 8, "");
	other = add_pod(&w, "other", "default-scheduler", "1", "");
	snprintf(other->spec, sizeof other->spec, ports, "default-scheduler", 600, 8080);
	strcpy(other->node, "n0");
	strcpy(other->phase, "Running");
	feed_pod(&w, other, false);
	for (int i = 0; i < 3; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%d", i);
		p[i] = &w.pod[w.n_pods++];
		*p[i] = (struct fpod){ .there = true, .phase = "Pending" };
		snprintf(p[i]->name, sizeof p[i]->name, "%s", name);
		snprintf(p[i]->uid, sizeof p[i]->uid, "uid-%s", name);
		snprintf(p[i]->spec, sizeof p[i]->spec, ports, "sluice", 300, 8080);
		feed_pod(&w, p[i], false);
	}
	turn(&w);
	ok(bound(&w, "p") == 1 && !strcmp(p[0]->node, "n1"),
	   "one pod with the port on the node where it is free");
	later(&w, 6);
	ok(strstr(w.last_annotation, "sluice.sh/start-estimate\":\"2026-01-01T00:"),
	   "the next ones have a time: %s", w.last_annotation);
	ok(!strstr(w.last_event, "never") && !strstr(w.last_event, "No node"),
	   "gangs on uncounted ports are not refused: %s", w.last_event);
	delete_pod(&w, other);
	turn(&w);
	ok(bound(&w, "p") == 2, "a freed port is taken at once");
	end_pod(&w, p[0], "Succeeded");
	turn(&w);
	ok(bound(&w, "p") == 2 && *p[2]->node, "the next freed port is taken at once, too");
	/* More ports than are counted: each still once per node. */
	for (int i = 0; i < 13; i++) {
		p[i] = &w.pod[w.n_pods++];
		*p[i] = (struct fpod){ .there = true, .phase = "Pending" };
		snprintf(p[i]->name, sizeof p[i]->name, "q%d", i);
		snprintf(p[i]->uid, sizeof p[i]->uid, "uid-q%d", i);
		snprintf(p[i]->spec, sizeof p[i]->spec, ports, "sluice", 300, 9000 + i);
		feed_pod(&w, p[i], false);
	}
	turn(&w);
	ok(bound(&w, "q") == 13, "thirteen more ports, each free: %d", bound(&w, "q"));
	for (int i = 0; i < 2; i++) {
		p[i] = &w.pod[w.n_pods++];
		*p[i] = (struct fpod){ .there = true, .phase = "Pending" };
		snprintf(p[i]->name, sizeof p[i]->name, "r%d", i);
		snprintf(p[i]->uid, sizeof p[i]->uid, "uid-r%d", i);
		snprintf(p[i]->spec, sizeof p[i]->spec, ports, "sluice", 300, 9012);
		feed_pod(&w, p[i], false);
	}
	turn(&w);
	ok(bound(&w, "r") == 1, "a pod with a port that is not counted goes to the second node");
	for (int i = 0; i < w.n_pods; i++)
		if (*w.pod[i].node && w.pod[i].there && strcmp(w.pod[i].name, "q12"))
			end_pod(&w, &w.pod[i], "Succeeded");
	turn(&w);
	ok(bound(&w, "r") == 1 && bound(&w, "q12") == 1,
	   "a pod waits for an uncounted port although there is room for more");
	for (int i = 0; i < 3; i++) {
		p[i] = &w.pod[w.n_pods++];
		*p[i] = (struct fpod){ .there = true, .phase = "Pending" };
		snprintf(p[i]->name, sizeof p[i]->name, "t%d", i);
		snprintf(p[i]->uid, sizeof p[i]->uid, "uid-t%d", i);
		snprintf(p[i]->spec, sizeof p[i]->spec, ports, "sluice", 300, 9100);
		feed_pod(&w, p[i], false);
	}
	turn(&w);
	ok(bound(&w, "t") == 2 && strcmp(p[0]->node, p[1]->node),
	   "of three pods with one port each node takes one (%s, %s)", p[0]->node, p[1]->node);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_gang_waits_for_all();
	test_all_or_nothing();
	test_release_and_next();
	test_members_end_together();
	test_not_in_line();
	test_cancel_and_release();
	test_answers_are_true();
	test_log_of_a_command();
	test_store_away();
	test_job_waves();
	test_limit_of_the_rest();
	test_turned_away();
	test_size_below_pods();
	test_statefulset();
	test_leader_and_workers();
	test_constraints();
	test_never_and_grow();
	test_bind_fails();
	test_restart();
	test_restart_policy();
	test_deadline();
	test_deadline_of_refused();
	test_reload_queues();
	test_reload_limits();
	test_reload_waits();
	test_reload_removed();
	test_reload_user_limits();
	test_reload_nodes();
	test_bad_objects();
	test_elsewhere();
	test_sizes_differ();
	test_forged_notes();
	test_invented_resources();
	test_host_ports();
	test_topology();
	test_namespaces_and_podgroup();
	return tap_done();
}
