/* Held work that names Sluice and has no gate (mode "bind"): Jobs wait suspended, and Sluice binds their pods
 * once all of them exist. */
#include "held_kit.h"

static void begin_binding(struct world *w, int nodes)
{
	held_gate = "";
	held_name = "sluice";
	begin(w, nodes);
}

static void close_well(struct world *w)
{
	ok(differences(w) == 0, "the books are right");
	close_world(w);
}

static void make_pods(struct world *w, const char *job, int from, int to)
{
	for (int i = from; i < to; i++) {
		char name[16];

		snprintf(name, sizeof name, "%s-%d", job, i);
		gated_pod(w, name, job);
	}
	turn(w);
}

static void test_whole(void)
{
	struct world w;

	begin_binding(&w, 2);
	feed_job(&w, "j", 4, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 1 && strstr(seen.job, "\"suspend\":false") &&
		   strstr(seen.job, "\"sluice.sh/places\":\"n0*2,n1*2\""),
	   "the suspended Job is resumed in its turn: %s", seen.job);
	feed_job(&w, "j", 4, false, "released", ",\"sluice.sh/places\":\"n0*2,n1*2\"");
	make_pods(&w, "j", 0, 3);
	ok(!w.binds, "three of its four pods are bound nowhere");
	make_pods(&w, "j", 3, 4);
	ok(w.binds == 4 && bound(&w, "j-") == 4 && !seen.pods,
	   "all four are bound, by one write each");
	ok(!w.conditions, "no pod of held work is told that it cannot be scheduled");
	close_well(&w);
}

/* A quota lets the Job make two of its four pods. */
static void test_half(void)
{
	struct world w;

	begin_binding(&w, 2);
	feed_job(&w, "j", 4, true, "yes", "");
	turn(&w);
	feed_job(&w, "j", 4, false, "released", ",\"sluice.sh/places\":\"n0*2,n1*2\"");
	make_pods(&w, "j", 0, 2);
	for (int i = 0; i < 4; i++)
		later(&w, 10);
	ok(!w.binds && seen.jobs == 2 && strstr(seen.job, "\"suspend\":true"),
	   "a Job that makes half of its pods is suspended again, and nothing was bound: %s",
	   seen.job);
	feed_job(&w, "j", 4, true, "yes", "");
	delete_pod(&w, &w.pod[0]);
	delete_pod(&w, &w.pod[1]);
	add_pod(&w, "x", "sluice", "4", "");
	turn(&w);
	ok(bound(&w, "x") == 1, "its places are free for others");
	close_well(&w);
}

/* The Job goes ahead of its turn: its pods wait for Sluice, since nobody else binds them. */
static void test_ahead(void)
{
	struct world w;

	begin_binding(&w, 1);
	add_pod(&w, "x", "sluice", "4", "");
	turn(&w);
	feed_job(&w, "j", 2, true, "yes", "");
	later(&w, 1);
	ok(seen.jobs == 1 && strstr(seen.job, "\"sluice.sh/ahead\":\"yes\""),
	   "the next Job is resumed ahead of its turn: %s", seen.job);
	feed_job(&w, "j", 2, false, "yes", ",\"sluice.sh/ahead\":\"yes\"");
	make_pods(&w, "j", 0, 2);
	later(&w, 30);
	ok(w.binds == 1 && !w.conditions, "its pods wait");
	end_pod(&w, &w.pod[0], "Succeeded");
	later(&w, 1);
	ok(bound(&w, "j-") == 2 && seen.jobs == 1 && !seen.pods,
	   "once there is room both are bound, and nothing else is written");
	close_well(&w);
}

/* One of its pods was bound when the process ended.  The store is gone, the objects say enough. */
static void test_restart(void)
{
	struct world w;
	struct fpod *p;

	begin_binding(&w, 4);
	feed_job(&w, "j", 3, false, "released", ",\"sluice.sh/places\":\"n3*2,n1\"");
	p = gated_pod(&w, "j-0", "j");
	snprintf(p->node, sizeof p->node, "n3");
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(&w, p, false);
	gated_pod(&w, "j-1", "j");
	turn(&w);
	ok(!strcmp(w.pod[1].node, "n3") || !strcmp(w.pod[1].node, "n1"),
	   "the next pod goes to a place that the Job has: %s", w.pod[1].node);
	make_pods(&w, "j", 2, 3);
	ok(bound(&w, "j-") == 3 && (!strcmp(w.pod[2].node, "n3") || !strcmp(w.pod[2].node, "n1")),
	   "so does a pod that appears later: %s", w.pod[2].node);
	close_well(&w);
}

/* The namespace is not held any more (here: it never was); what is held gets its turn all the same. */
static void test_others(void)
{
	struct world w;

	begin_binding(&w, 1);
	feed_job(&w, "mine", 2, true, "user", "");
	turn(&w);
	ok(!seen.jobs, "a Job that its user suspended is not resumed");
	held_name = "volcano";
	feed_job(&w, "foreign", 2, true, "yes", "");
	turn(&w);
	ok(!seen.jobs, "nor is one that a third scheduler would start");
	held_name = "sluice";
	feed_job(&w, "ours", 2, true, "yes", "");
	turn(&w);
	ok(seen.jobs == 1, "a Job that the webhook suspended is, without a label on its namespace");
	close_well(&w);
}

int main(void)
{
	test_whole();
	test_half();
	test_ahead();
	test_restart();
	test_others();
	return tap_done();
}
