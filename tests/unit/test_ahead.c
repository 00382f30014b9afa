/* Jobs that are resumed before their turn: their pods wait at the gate (hold/ahead.c). */
#include "held_kit.h"

#define AHEAD ",\"sluice.sh/ahead\":\"yes\""

static void user_asks(struct world *w, enum slu_ask what, const char *name)
{
	take_ask(w, what, name, NULL);
	turn(w);
}

/* One node for two pods: a Job runs there, and the next one waits. */
static void occupy(struct world *w, const char *yaml, struct fpod *p[2])
{
	begin_as(w, 1, yaml);
	feed_job(w, "first", 2, true, "yes", "");
	turn(w);
	feed_job(w, "first", 2, false, "released", "");
	p[0] = gated_pod(w, "first-0", "first");
	p[1] = gated_pod(w, "first-1", "first");
	turn(w);
	run_pod(w, p[0]);
	run_pod(w, p[1]);
	turn(w);
	memset(&seen, 0, sizeof seen);
}

static void make_room(struct world *w, struct fpod *p[2])
{
	end_pod(w, p[0], "Succeeded");
	end_pod(w, p[1], "Succeeded");
	later(w, 1);
}

static bool went_ahead(void)
{
	return strstr(seen.job, "\"sluice.sh/ahead\":\"yes\"") &&
	       strstr(seen.job, "\"suspend\":false") && !strstr(seen.job, "released");
}

/* Behind it a second one waits, and is resumed ahead; its pods are not there yet. */
static void next_ahead(struct world *w, const char *yaml, struct fpod *p[2])
{
	occupy(w, yaml, p);
	feed_job(w, "next", 2, true, "yes", "");
	later(w, 1);
	ok(seen.jobs == 1 && went_ahead(), "the next Job is resumed ahead: %s", seen.job);
	feed_job(w, "next", 2, false, "yes", AHEAD);
}

static void close_well(struct world *w)
{
	ok(differences(w) == 0, "the books are right");
	close_world(w);
}

static void test_pods_come_early(int early)
{
	struct world w;
	struct fpod *p[2];

	next_ahead(&w, "", p);
	for (int i = 0; i < early; i++) {
		gated_pod(&w, i ? "next-1" : "next-0", "next");
		later(&w, 1);
	}
	ok(seen.pods == 0 && seen.jobs == 1, "%d of its pods wait at the gate", early);
	make_room(&w, p);
	ok(seen.pods == (early < 2 ? 0 : 2),
	   "once there is room they are released, but not before all of them are there");
	ok(seen.jobs == 1, "a Job that was resumed ahead is not patched again");
	/* In the meantime the watch shows an older state of the Job. */
	feed_job(&w, "next", 2, false, "yes", AHEAD);
	turn(&w);
	gated_pod(&w, "other", NULL);
	for (int i = early; i < 2; i++)
		gated_pod(&w, i ? "next-1" : "next-0", "next");
	later(&w, 1);
	ok(seen.pods == 2 && seen.jobs == 1,
	   "the other pods are released when they appear, and no other pod is");
	for (int i = 0; i < 35; i++)
		later(&w, 1);
	ok(seen.jobs == 2 && strstr(seen.job, "\"sluice.sh/places\":\"n0*2\"") &&
		   strstr(seen.job, "\"sluice.sh/held\":\"released\""),
	   "the places of a Job that runs for long are noted on it: %s", seen.job);
	feed_job(&w, "next", 2, false, "released", AHEAD ",\"sluice.sh/places\":\"n0*2\"");
	later(&w, 1);
	close_well(&w);
}

/* The places of a Job whose pods were all there are noted when it runs for long, unless its user
 * has other plans by then. */
static void test_note(void)
{
	static const struct {
		const char *what;
		const char *mark, *status;
		bool suspend, noted;
		const char *phase; /* of its pods in the end */
	} row[] = {
		{ "runs for long", "yes", "", false, true, NULL },
		{ "is over", "yes", "\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]",
		  false, false, NULL },
		{ "was suspended by its user", "yes", "", true, false, NULL },
		{ "has ended, as its controller will say later", "yes", "", false, false,
		  "Succeeded" },
		{ "has failed pods and will make others", "yes", "\"failed\":2", false, true,
		  "Failed" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct world w;
		struct fpod *p[2], *q[2];

		next_ahead(&w, "", p);
		q[0] = gated_pod(&w, "next-0", "next");
		q[1] = gated_pod(&w, "next-1", "next");
		later(&w, 1);
		make_room(&w, p);
		run_pod(&w, q[0]);
		run_pod(&w, q[1]);
		later(&w, 1);
		feed_job_as(&w, "next", 2, row[i].suspend, row[i].mark, AHEAD, "", "",
			    row[i].status);
		for (int k = 0; k < 2 && row[i].phase; k++)
			end_pod(&w, q[k], row[i].phase);
		for (int s = 0; s < 35; s++)
			later(&w, 1);
		ok(seen.pods == 2 && seen.jobs == 1 + row[i].noted, "a Job that %s: %d notes",
		   row[i].what, seen.jobs - 1);
		if (row[i].noted)
			ok(strstr(seen.job, "\"sluice.sh/places\":\"n0*2\"") &&
				   strstr(seen.job, "released") && !strstr(seen.job, "suspend"),
			   "the note of a Job resumed ahead changes nothing else: %s", seen.job);
		close_world(&w);
	}
}

/* The room comes while the resume is on its way: nothing is planned twice. */
static void test_overtaken(void)
{
	struct world w;
	struct fpod *p[2];

	occupy(&w, "", p);
	feed_job(&w, "next", 2, true, "yes", "");
	later(&w, 1);
	make_room(&w, p);
	ok(seen.jobs == 2 && strstr(seen.job, "released"), "released before the mirror knew");
	feed_job(&w, "next", 2, false, "yes", AHEAD);
	turn(&w);
	feed_job(&w, "next", 2, false, "released", AHEAD ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "next-0", "next");
	gated_pod(&w, "next-1", "next");
	later(&w, 1);
	ok(seen.pods == 2 && seen.jobs == 2, "both pods get the places of their stand-ins");
	close_well(&w);
}

static void test_bounds(void)
{
	static const struct {
		const char *yaml;
		int jobs, ahead;
		const char *what;
	} row[] = {
		{ "held: {ahead: 3}", 3, 2,
		  "Jobs of as many pods as held.ahead says go early, and the one that crosses the limit" },
		{ "held: {ahead: 1}", 1, 0, "none that is wider" },
		{ "held: {ahead: 0}", 1, 0, "none with 0" },
	};
	struct world w;
	struct fpod *p[2];

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		occupy(&w, row[i].yaml, p);
		for (int k = 0; k < row[i].jobs; k++)
			feed_job(&w, (const char *[]){ "a", "b", "c" }[k], 2, true, "yes", "");
		later(&w, 1);
		later(&w, 1);
		ok(seen.jobs == row[i].ahead, "%s: %d Jobs are resumed ahead", row[i].what,
		   seen.jobs);
		close_world(&w);
	}
	occupy(&w, "", p);
	feed_job_as(&w, "d", 2, true, "yes", "", "\"activeDeadlineSeconds\":5,", "", "");
	later(&w, 1);
	ok(seen.jobs == 0, "a Job whose deadline would already run waits for its turn");
	make_room(&w, p);
	ok(seen.jobs == 1 && strstr(seen.job, "released"), "a Job with a deadline gets its turn");
	close_world(&w);
}

static void test_cancel(void)
{
	struct world w;
	struct fpod *p[2], *q;

	next_ahead(&w, "", p);
	q = gated_pod(&w, "next-0", "next");
	turn(&w);
	user_asks(&w, SLU_ASK_CANCEL, "next");
	later(&w, 1);
	ok(seen.jobs == 2 && strstr(seen.job, "\"suspend\":true") &&
		   strstr(seen.job, "\"sluice.sh/ahead\":null"),
	   "a Job that is cancelled is suspended again: %s", seen.job);
	feed_job(&w, "next", 2, true, "yes", "");
	delete_pod(&w, q);
	later(&w, 1);
	make_room(&w, p);
	ok(seen.jobs == 2 && seen.pods == 0, "a cancelled Job stays suspended");
	user_asks(&w, SLU_ASK_RELEASE, "next");
	later(&w, 1);
	ok(seen.jobs == 3 && strstr(seen.job, "released"),
	   "a cancelled Job is resumed once it is put back: %s", seen.job);
	close_world(&w);
}

static void test_user_suspends(void)
{
	struct world w;
	struct fpod *p[2], *q;

	next_ahead(&w, "", p);
	q = gated_pod(&w, "next-0", "next");
	later(&w, 1);
	feed_job(&w, "next", 2, true, "yes", AHEAD);
	delete_pod(&w, q);
	make_room(&w, p);
	ok(seen.jobs == 1 && seen.pods == 0,
	   "a Job that its user suspends before its turn is not resumed");
	feed_job(&w, "next", 2, false, "yes", AHEAD);
	gated_pod(&w, "next-2", "next");
	gated_pod(&w, "next-3", "next");
	later(&w, 1);
	ok(seen.pods == 2, "a Job that its user resumes again starts");
	close_well(&w);
}

static void feed_urgent(struct world *w)
{
	feed(w, SLU_KIND_PRIORITYCLASS, false,
	     "{\"metadata\":{\"name\":\"high\",\"uid\":\"high\",\"resourceVersion\":\"9\"},\"value\":1000}");
	feed_job_as(w, "urgent", 2, true, "yes", "", "", "\"priorityClassName\":\"high\",", "");
}

/* The head of the queue has a promise; behind it the order may change. */
static void test_order_changes(void)
{
	struct world w;
	struct fpod *p[2], *q[2];

	next_ahead(&w, "queues: [{name: default, policy: easy}]", p);
	feed_job(&w, "second", 2, true, "yes", "");
	later(&w, 1);
	ok(seen.jobs == 2 && went_ahead(), "two Jobs are resumed ahead of their turn");
	feed_job(&w, "second", 2, false, "yes", AHEAD);
	q[0] = gated_pod(&w, "next-0", "next");
	q[1] = gated_pod(&w, "next-1", "next");
	gated_pod(&w, "second-0", "second");
	gated_pod(&w, "second-1", "second");
	later(&w, 1);
	feed_urgent(&w);
	later(&w, 1);
	make_room(&w, p);
	ok(seen.pods == 2, "the first has its turn");
	feed_job(&w, "next", 2, false, "released", AHEAD);
	run_pod(&w, q[0]);
	run_pod(&w, q[1]);
	turn(&w);
	make_room(&w, q);
	ok(seen.pods == 2 && strstr(seen.job, "job-urgent") && strstr(seen.job, "released"),
	   "a more urgent Job goes first although the second's pods exist: %s", seen.job);
	close_world(&w);
}

/* The pods of a Job differ slightly from their stand-ins: the Job keeps its promise. */
static void test_promise_stays(void)
{
	struct world w;
	struct fpod *p[2];

	occupy(&w, FIRST_PROMISED, p);
	feed_job(&w, "next", 2, true, "yes", "");
	later(&w, 1);
	feed_urgent(&w);
	later(&w, 1);
	feed_job(&w, "next", 2, false, "yes", AHEAD);
	gated_pod(&w, "next-0", "next");
	gated_pod(&w, "next-1", "next");
	later(&w, 1);
	make_room(&w, p);
	ok(seen.pods == 2,
	   "the Job that was promised the room gets it, not the more urgent one (%d)", seen.pods);
	close_world(&w);
}

/* The process ended while a Job was ahead and one of its pods was not made yet. */
static void test_restart(void)
{
	struct world w;

	begin(&w, 1);
	feed_job(&w, "j", 2, false, "yes", AHEAD);
	gated_pod(&w, "j-0", "j");
	turn(&w);
	ok(seen.pods == 0 && seen.jobs == 0,
	   "after the restart the Job is planned as a whole, and waits for its other pod");
	gated_pod(&w, "x", NULL);
	gated_pod(&w, "j-1", "j");
	later(&w, 1);
	ok(seen.pods == 2 && strstr(seen.pod, "\"sluice.sh/node\":\"n0\""),
	   "the other pod of the Job follows");
	close_well(&w);
}

/* ... or after it had its turn, and before that was noted. */
static void test_restart_later(void)
{
	for (int n = 0; n < 2; n++) {
		struct world w;
		struct fpod *p[2];

		begin(&w, 1);
		feed_job_as(&w, "j", 2, false, "yes", AHEAD, "", "",
			    n ? "\"succeeded\":1" : "\"startTime\":\"2026-01-01T00:00:00Z\"");
		for (int i = 0; i < 2; i++) {
			p[i] = gated_pod(&w, i ? "j-1" : "j-0", "j");
			pin_pod(&w, p[i], "n0");
			run_pod(&w, p[i]);
		}
		end_pod(&w, p[1], "Succeeded");
		gated_pod(&w, "x", NULL);
		turn(&w);
		later(&w, 1);
		ok(seen.pods == 1 && seen.jobs == 0, "a pod that has ended has no stand-in");
		close_well(&w);
	}
}

static void test_refused(void)
{
	struct world w;
	struct fpod *p[2];

	occupy(&w, "", p);
	seen.outcome = SLU_KUBE_FAILED;
	feed_job(&w, "next", 2, true, "yes", "");
	later(&w, 1);
	ok(seen.jobs == 1, "a Job is resumed ahead, and the patch fails");
	later(&w, 6);
	ok(seen.jobs == 2, "is tried again after a while");
	seen.outcome = SLU_KUBE_OK;
	make_room(&w, p);
	ok(strstr(seen.job, "released"), "a Job whose early resume failed is released in its turn");
	close_world(&w);
}

/* Places are kept for pods that a quota keeps from appearing, but not for ever. */
static void test_timeout(void)
{
	struct world w;

	begin_as(&w, 1, "held: {placeTimeout: 90s}");
	feed_job(&w, "j", 2, true, "yes", "");
	turn(&w);
	feed_job(&w, "j", 2, false, "released", ",\"sluice.sh/places\":\"n0*2\"");
	gated_pod(&w, "x", NULL);
	later(&w, 80);
	ok(seen.jobs == 1 && seen.pods == 0, "the places are kept");
	later(&w, 11);
	later(&w, 1);
	ok(seen.pods == 1, "the places are given back after held.placeTimeout");
	close_well(&w);
}

int main(void)
{
	for (int early = 0; early <= 2; early++)
		test_pods_come_early(early);
	test_overtaken();
	test_bounds();
	test_cancel();
	test_user_suspends();
	test_order_changes();
	test_promise_stays();
	test_restart();
	test_restart_later();
	test_note();
	test_refused();
	test_timeout();
	return tap_done();
}
