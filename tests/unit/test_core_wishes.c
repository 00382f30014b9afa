/* The wishes of groups: Sluice reports keys that mean nothing, sets that serve have no end, and
 * the plan follows changes while a group waits or runs. */
#include "control/report/snapshot.h"
#include "core_kit.h"

#define NOTES(text) "\"annotations\":{" text "}"
#define KEY(k, v)   "\"sluice.sh/" k "\":\"" v "\""

static void edit(struct world *w, struct fpod *p, const char *meta)
{
	snprintf(p->meta, sizeof p->meta, "%s", meta);
	feed_pod(w, p, false);
	turn(w);
}

/* The planned start of the job, in seconds from now; -1: it has none. */
static int64_t planned_in(struct world *w, const char *name)
{
	struct slu_snapshot *s;
	int64_t in = -1;

	later(w, 6); /* a fresh picture */
	s = slu_core_snapshot(w->core);
	for (uint32_t i = 0; i < s->n_jobs; i++)
		if (!strcmp(s->job[i].name, name) && s->job[i].estimate_s)
			in = s->job[i].estimate_s - w->now_us / 1000000;
	slu_snapshot_unref(s);
	return in;
}

static void test_misspelt(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 4, "");
	p = add_pod(&w, "p", "sluice", "1", NOTES(KEY("duraton", "5m")));
	turn(&w);
	ok(w.events == 1 && strstr(w.last_event, "did you mean sluice.sh/duration?"),
	   "a misspelt key is told: %s", w.last_event);
	ok(*p->node, "a misspelt key does not keep its gang from starting");
	edit(&w, p, NOTES(KEY("duraton", "6m")));
	ok(w.events == 1, "a misspelt key is told once");
	add_pod(&w, "q", "sluice", "1", NOTES("\"example.com/duraton\":\"5m\""));
	turn(&w);
	ok(w.events == 1, "keys of others are no business of ours");
	close_world(&w);
}

/* A set that serves is not planned to end after the default hour. */
static void test_serving(void)
{
	static const char *const kind[] = { "ReplicaSet", "StatefulSet", "Job" };

	for (int i = 0; i < 3; i++) {
		char meta[300];
		struct world w;
		struct fpod *p;
		int64_t in;

		open_world(&w, 1, 2, FIRST_PROMISED);
		if (i == 2)
			job(&w, "u", "set", "\"parallelism\":1", "");
		else
			feed(&w, i ? SLU_KIND_STATEFULSET : SLU_KIND_REPLICASET, false,
			     "{\"metadata\":{\"name\":\"set\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"%" PRIu64
			     "\"},\"spec\":{\"replicas\":1,\"template\":{}}}",
			     ++w.rv);
		snprintf(
			meta, sizeof meta,
			"\"ownerReferences\":[{\"apiVersion\":\"x\",\"kind\":\"%s\",\"name\":\"set\",\"uid\":\"u\",\"controller\":true}]",
			kind[i]);
		p = add_pod(&w, "p", "sluice", "2", meta);
		later(&w, 1);
		add_pod(&w, "next", "sluice", "2", "");
		in = planned_in(&w, "next");
		ok(*p->node && (i == 2 ? in > 3000 && in <= 3600 : in == -1 || in > 86400 * 3650LL),
		   "behind a %s the next start is %s (in %lld s)", kind[i],
		   i == 2 ? "in an hour" : "not promised", (long long)in);
		close_world(&w);
	}
}

/* What waits behind a set that serves has no start to tell, whoever asks: neither plan, forecast nor
 * explanation take the longest limit of a job for an end. */
static void test_behind_serving(void)
{
	static const char *const objective[] = { "balanced", "response", "order", "throughput" };

	for (size_t i = 0; i < SLU_LEN(objective); i++) {
		struct slu_snap_job j = { 0 };
		struct slu_snapshot *s;
		char yaml[80];
		struct world w;

		snprintf(yaml, sizeof yaml, "queues: [{name: default, objective: %s}]",
			 objective[i]);
		open_world(&w, 1, 2, yaml);
		feed(&w, SLU_KIND_STATEFULSET, false,
		     "{\"metadata\":{\"name\":\"set\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"%" PRIu64
		     "\"},\"spec\":{\"replicas\":1,\"template\":{}}}",
		     ++w.rv);
		add_pod(&w, "p", "sluice", "2",
			"\"ownerReferences\":[{\"apiVersion\":\"x\",\"kind\":\"StatefulSet\",\"name\":\"set\",\"uid\":\"u\",\"controller\":true}]");
		later(&w, 1);
		add_pod(&w, "next", "sluice", "2", "");
		later(&w, 3);
		take_ask(&w, SLU_ASK_SNAPSHOT, "next", ignore_answer);
		turn(&w);
		s = slu_core_snapshot(w.core);
		for (uint32_t k = 0; k < s->n_jobs; k++)
			if (!strcmp(s->job[k].name, "next"))
				j = s->job[k];
		ok(j.name && !j.promised && !j.estimate_s,
		   "%s: behind a set that serves no start is told (%" PRId64 ")", objective[i],
		   j.estimate_s);
		slu_snapshot_unref(s);
		close_world(&w);
	}
}

static void test_queue_and_begin(void)
{
	struct fpod *a, *b;
	struct world w;

	open_world(&w, 1, 4, "queues: [{name: default}, {name: far, nodeLabel: pool=far}]");
	a = add_pod(&w, "a", "sluice", "1", NOTES(KEY("queue", "far")));
	b = add_pod(&w, "b", "sluice", "1", NOTES(KEY("begin", "2030-01-01T00:00:00Z")));
	turn(&w);
	ok(!*a->node && !*b->node, "one gang waits in a queue without nodes, one for its begin");
	edit(&w, a, NOTES(KEY("queue", "default")));
	later(&w, 1);
	ok(*a->node, "a gang starts in the queue that it is moved to");
	edit(&w, b, NOTES(KEY("begin", "2030-02-01T00:00:00Z")));
	later(&w, 1);
	ok(!*b->node, "a later begin is later");
	edit(&w, b, "");
	later(&w, 1);
	ok(*b->node, "a gang without a begin any more starts");
	close_world(&w);
}

/* A gang that was let in with a minute cannot grow to a week, nor one of two pods to a hundred. */
static void test_limits(void)
{
	struct fpod *full, *a, *j[3];
	struct world w;

	open_world(&w, 1, 4, "queues: [{name: default, maxDuration: 2h, maxSize: 2}]");
	full = add_pod(&w, "full", "sluice", "4", "");
	turn(&w);
	a = add_pod(&w, "a", "sluice", "1", NOTES(KEY("duration", "1m")));
	job(&w, "u-j", "j", "\"parallelism\":2", "");
	j[0] = add_pod(&w, "j-0", "sluice", "1", OWNED("Job", "u-j", "j"));
	j[1] = add_pod(&w, "j-1", "sluice", "1", OWNED("Job", "u-j", "j"));
	later(&w, 1);
	edit(&w, a, NOTES(KEY("duration", "1w")));
	job(&w, "u-j", "j", "\"parallelism\":3", "");
	j[2] = add_pod(&w, "j-2", "sluice", "1", OWNED("Job", "u-j", "j"));
	later(&w, 1);
	end_pod(&w, full, "Succeeded");
	later(&w, 1);
	ok(!*a->node, "a gang that became longer than its queue allows does not start");
	ok(!*j[0]->node && !*j[1]->node && !*j[2]->node,
	   "a gang that became larger than its queue allows does not start");
	edit(&w, a, NOTES(KEY("duration", "1h")));
	job(&w, "u-j", "j", "\"parallelism\":2", "");
	delete_pod(&w, j[2]);
	later(&w, 3);
	ok(*a->node, "a gang whose duration fits its queue again starts");
	ok(*j[0]->node && *j[1]->node, "a gang that is small again starts");
	close_world(&w);
}

static void test_close_and_alone(void)
{
	struct fpod *p[3], *a;
	struct world w;

	open_world(&w, 4, 2, "");
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof name, "g-%d", i);
		p[i] = add_pod(
			&w, name, "sluice", "2",
			NOTES(KEY("group", "g") "," KEY("size", "3") "," KEY("topology", "rack")));
	}
	turn(&w);
	ok(bound(&w, "g-") == 0, "three nodes are in no rack of two");
	for (int i = 0; i < 3; i++)
		edit(&w, p[i],
		     NOTES(KEY("group", "g") "," KEY("size", "3") "," KEY("topology",
									  "preferred:rack")));
	later(&w, 1);
	ok(bound(&w, "g-") == 3, "with preferred:rack the gang starts as near as it can");
	for (int i = 0; i < 3; i++)
		end_pod(&w, p[i], "Succeeded");
	for (int i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof name, "o-%d", i);
		p[i % 3] = add_pod(&w, name, "sluice", "1500m", "");
	}
	later(&w, 1);
	a = add_pod(&w, "alone", "sluice", "500m", NOTES(KEY("exclusive", "true")));
	later(&w, 1);
	ok(bound(&w, "o-") == 4 && !*a->node,
	   "a pod that wants a whole node waits while none is empty");
	edit(&w, a, "");
	later(&w, 1);
	ok(*a->node, "a pod that no longer wants a whole node starts on half a one");
	close_world(&w);
}

static void test_priority(void)
{
	struct fpod *full, *a, *b;
	struct world w;

	open_world(&w, 1, 2, "queues: [{name: default, policy: first-fit}]");
	full = add_pod(&w, "full", "sluice", "2", "");
	turn(&w);
	a = add_pod(&w, "a", "sluice", "2", "");
	later(&w, 1);
	b = add_pod(&w, "b", "sluice", "2", "");
	later(&w, 1);
	snprintf(b->spec + strlen(b->spec), sizeof b->spec - strlen(b->spec), ",\"priority\":1000");
	feed_pod(&w, b, false);
	later(&w, 1);
	end_pod(&w, full, "Succeeded");
	later(&w, 1);
	ok(*b->node && !*a->node, "the one that became more important goes first");
	close_world(&w);
}

/* The key stands on the Job; its number of annotations stays the same. */
static void test_owner(void)
{
	static const char job_text[] =
		"{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\",\"generation\":1,"
		"\"resourceVersion\":\"%" PRIu64 "\",\"annotations\":{\"sluice.sh/queue\":\"%s\"}},"
		"\"spec\":{\"parallelism\":1,\"template\":{}}}";
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 4, "queues: [{name: default}, {name: far, nodeLabel: pool=far}]");
	feed(&w, SLU_KIND_JOB, false, job_text, ++w.rv, "far");
	p = add_pod(&w, "j-0", "sluice", "1", OWNED("Job", "u", "j"));
	later(&w, 1);
	ok(!*p->node, "a pod whose Job is in a queue without nodes waits");
	feed(&w, SLU_KIND_JOB, false, job_text, ++w.rv, "default");
	later(&w, 1);
	ok(*p->node, "the Job is moved, and its pod starts");
	close_world(&w);
}

static void test_whole_nodes(void)
{
	struct fpod *a, *b;
	struct world w;

	open_world(&w, 2, 4, "queues: [{name: default, exclusive: false}, {name: whole}]");
	a = add_pod(&w, "a", "sluice", "1", NOTES(KEY("exclusive", "true")));
	b = add_pod(&w, "b", "sluice", "1",
		    NOTES(KEY("exclusive", "true") "," KEY("queue", "whole")));
	later(&w, 1);
	ok(!*a->node && strstr(w.last_event, "does not give whole nodes"),
	   "a queue that gives no whole nodes refuses the wish: %s", w.last_event);
	ok(*b->node, "a queue that gives whole nodes does");
	edit(&w, a, NOTES(KEY("exclusive", "false")));
	later(&w, 1);
	ok(*a->node, "a pod that no longer wants whole nodes starts");
	close_world(&w);
}

static void test_running(void)
{
	struct fpod *full;
	int64_t before, after;
	struct world w;

	open_world(&w, 1, 2, FIRST_PROMISED);
	full = add_pod(&w, "full", "sluice", "2", NOTES(KEY("duration", "10m")));
	turn(&w);
	add_pod(&w, "a", "sluice", "2", "");
	before = planned_in(&w, "a");
	edit(&w, full, NOTES(KEY("duration", "5m")));
	after = planned_in(&w, "a");
	ok(before > 500 && after > 200 && after <= 300,
	   "a gang that runs shorter than it said moves the next one up (%lld s, %lld s)",
	   (long long)before, (long long)after);
	edit(&w, full, "");
	after = planned_in(&w, "a");
	ok(after > 3000, "a group that names no duration has the default (%lld s)",
	   (long long)after);
	close_world(&w);
}

/* A user writes nonsense on a pod that runs. */
static void test_nonsense_while_running(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 4, "");
	p = add_pod(&w, "p", "sluice", "1", "");
	turn(&w);
	ok(*p->node, "a pod runs");
	edit(&w, p, NOTES(KEY("exclusive", "nonsense")));
	ok(w.events == 0, "no event is written about a pod that runs: %s", w.last_event);
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_misspelt();
	test_nonsense_while_running();
	test_serving();
	test_behind_serving();
	test_queue_and_begin();
	test_limits();
	test_close_and_alone();
	test_priority();
	test_owner();
	test_whole_nodes();
	test_running();
	return tap_done();
}
