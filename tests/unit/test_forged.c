/* What a user may write on the own objects, and nobody believes: members of others' work, places in
 * gangs that run, owners in other namespaces. */
#include "lives_kit.h"

/* A pod of another namespace. */
static void stranger(struct world *w, const char *name, const char *meta, const char *spec)
{
	feed(w, SLU_KIND_POD, false,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"mal\",\"uid\":\"mal-%s\",\"resourceVersion\":\"%" PRIu64
	     "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",%s},\"spec\":{%s"
	     "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]},"
	     "\"status\":{\"phase\":\"Pending\"}}",
	     name, name, ++w->rv, meta, spec);
}

#define OF_JOB                                                                                                 \
	"\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"j\",\"uid\":\"job-j\"," \
	"\"controller\":true}]"

/* An owner counts in its own namespace alone, whoever knows its uid. */
static void test_owner_elsewhere(void)
{
	struct world w;
	char gated[200];

	snprintf(gated, sizeof gated, "\"schedulerName\":\"default-scheduler\",%s", held_gate);
	begin_as(&w, 1, "held: {ahead: 0}");
	turn(&w);
	add_pod(&w, "x", "sluice", "4", "");
	turn(&w);
	feed_job(&w, "j", 2, true, "yes", "");
	turn(&w);
	for (int i = 0; i < 2; i++) {
		stranger(&w, i ? "e-1" : "e-0", OF_JOB, gated);
		turn(&w);
	}
	later(&w, 5);
	end_pod(&w, &w.pod[0], "Succeeded");
	turn(&w);
	ok(seen.jobs == 1 && strstr(seen.job, "\"sluice.sh/places\":\"n0*2\"") && !seen.pods,
	   "a Job goes on although pods of another namespace name it as their owner (%d, %d)",
	   seen.jobs, seen.pods);
	feed_job(&w, "j", 2, false, "released", ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "j-0", "j");
	gated_pod(&w, "j-1", "j");
	turn(&w);
	ok(strstr(w.pod[1].spec, "hostname") && strstr(w.pod[2].spec, "hostname"),
	   "the pods of the Job get its places");
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* The name of somebody's running group, and a release that nobody wrote: in the next life, too. */
static void test_member_of_a_running_group(void)
{
	struct world w;
	struct fpod *p;

	first_life(&w, 1, 4, "");
	add_pod(&w, "x-0", "sluice", "1", GROUP("x", "1"));
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "x-0")->node, "a gang of one runs");
	die(&w);
	for (int i = 0; i < 2; i++) {
		p = make_pod(&w, i ? "f-1" : "f-0", "default-scheduler", "2", GROUP("x", "1"));
		p->there = false; /* seen below */
	}
	live(&w, 1, 4);
	for (int i = 0; i < 2; i++) {
		p = &w.pod[1 + i];
		p->there = true;
		pin_pod(&w, p, "n0");
	}
	add_pod(&w, "v", "sluice", "3", "");
	go_on(&w, NONE, NULL);
	ok(*pod(&w, "v")->node, "pods that say they were released as members of it take no room");
	last_life_over(&w);
}

/* A ReplicaSet that was made long ago with no replicas, and scaled up now: its pods arrive now. */
static void test_old_and_scaled_up(void)
{
	static const char of[] =
		"\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"old\","
		"\"uid\":\"rs-old\",\"controller\":true}]";
	struct fpod *first, *a, *b;
	struct world w;

	open_world(&w, 1, 1, "webhook: {enabled: true}");
	first = add_pod(&w, "first", "sluice", "1", "");
	turn(&w);
	/* A year before everything else, with the note that the webhook wrote then. */
	feed(&w, SLU_KIND_REPLICASET, false,
	     "{\"metadata\":{\"name\":\"old\",\"namespace\":\"ns\",\"uid\":\"rs-old\",\"generation\":2,"
	     "\"resourceVersion\":\"%" PRIu64 "\",\"creationTimestamp\":\"2025-01-01T00:00:00Z\","
	     "\"annotations\":{\"sluice.sh/seen-us\":\"1735689600000000\"}},\"spec\":{\"replicas\":1,"
	     "\"template\":{\"spec\":{\"schedulerName\":\"sluice\",\"containers\":[{\"name\":\"c\"}]}}}}",
	     ++w.rv);
	a = add_pod(&w, "a", "sluice", "1", "");
	turn(&w);
	w.now_us += 1000000;
	b = add_pod(&w, "b", "sluice", "1", of);
	turn(&w);
	end_pod(&w, first, "Succeeded");
	turn(&w);
	ok(*a->node && !*b->node, "an old object that is scaled up does not bring its old arrival");
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_owner_elsewhere();
	test_member_of_a_running_group();
	test_old_and_scaled_up();
	return tap_done();
}
