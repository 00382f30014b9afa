/* How often Sluice writes about waiting work: rarely, and first about the jobs that are next. */
#include "held_kit.h"

#define MANY 600

static struct {
	int n[MANY]; /* statuses of the FluxJob of Job j<i> */
	char text[2][1500];
} told;

static void read_status(struct world *w, struct slu_rec_write *x)
{
	int i = -1;

	if (sscanf(x->name, "j%d-job", &i) == 1 && i >= 0 && i < MANY) {
		told.n[i]++;
		if (i < 2)
			snprintf(told.text[i], sizeof told.text[i], "%s", x->text);
	}
}

static const char *name_of(int i)
{
	static char name[16];

	snprintf(name, sizeof name, "j%03d", i); /* the order of the queue, too */
	return name;
}

static void feed_fluxjob(struct world *w, int i)
{
	feed(w, SLU_KIND_FLUXJOB, false,
	     "{\"metadata\":{\"name\":\"j%03d-job\",\"namespace\":\"ns\",\"uid\":\"f%d\",\"resourceVersion\":\"%" PRIu64
	     "\",\"labels\":{\"app.kubernetes.io/managed-by\":\"sluice\"}},\"spec\":{}}",
	     i, i, ++w->rv);
}

/* Let time pass in steps as small as the daemon's own. */
static void pass(struct world *w, int seconds)
{
	for (int i = 0; i < seconds * 4; i++) {
		w->now_us += 250000;
		turn(w);
	}
}

/* A Job of two pods that fill the node, from the queue to its end, half a second each. */
static void run_job(struct world *w, int i)
{
	struct fpod *p[2];
	char name[24];

	feed_job(w, name_of(i), 2, false, "released", "");
	for (int k = 0; k < 2; k++) {
		snprintf(name, sizeof name, "%s-%d", name_of(i), k);
		p[k] = gated_pod(w, name, name_of(i));
	}
	for (int step = 0; step < 4; step++) {
		w->now_us += 500000;
		turn(w);
		for (int k = 0; k < 2 && step < 2; k++)
			if (step == 0)
				run_pod(w, p[k]);
			else
				end_pod(w, p[k], "Succeeded");
		if (step == 2)
			feed_job_as(w, name_of(i), 2, false, "released", "", "", "",
				    "\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]");
	}
}

static void test_many(void)
{
	struct world w;
	int all = 0, first = 0;

	memset(&told, 0, sizeof told);
	begin_as(&w, 1, "held: {ahead: 0}\nstatus: {interval: 5s}");
	w.told = read_status;
	for (int i = 0; i < MANY; i++)
		feed_job(&w, name_of(i), 2, true, "yes", "");
	turn(&w);
	pass(&w, 1);
	ok(w.creates == MANY, "each Job has its FluxJob: %d", w.creates);
	for (int i = 0; i < MANY; i++)
		feed_fluxjob(&w, i);
	pass(&w, 6);
	for (int i = 1; i < MANY; i++)
		first += told.n[i] >= 1;
	ok(first == MANY - 1, "each waiting gang gets its status: %d", first);
	pass(&w, 60);

	for (int i = 0; i < 2; i++) {
		memset(&told, 0, sizeof told); /* the next in line may hear that it moved up */
		run_job(&w, i);
		ok(told.n[i] == 1 && strstr(told.text[i], "\"state\":\"Finished\""),
		   "a gang that is over in two seconds gets one status write: %d, %s", told.n[i],
		   told.text[i]);
	}
	memset(&told, 0, sizeof told);
	pass(&w, 20);
	for (int i = 0; i < MANY; i++)
		all += told.n[i];
	ok(all > 20 && all <= 2 * 21, "of the gangs that moved two a second get a status write: %d",
	   all);
	ok(told.n[3], "the next in line among them");
	close_world(&w);
}

/* Held work has a FluxJob that says why it waits; where the server does not know the kind, it is
 * told as other work is. */
static void test_fluxjob_tells(bool absent)
{
	struct world w;
	struct slu_record *r = slu_rec_synced_new(SLU_KIND_FLUXJOB);

	begin_as(&w, 1, "held: {ahead: 0}");
	((struct slu_rec_synced *)r)->absent = absent;
	slu_core_take(w.core, r, w.now_us);
	for (int i = 0; i < 2; i++) {
		feed_job(&w, name_of(i), 2, true, "yes", "");
		turn(&w);
	}
	if (!absent)
		feed_fluxjob(&w, 1);
	for (int i = 0; i < 60; i++)
		later(&w, 1);
	ok(absent ? w.annotations == 1 && w.events == 1 && !w.statuses
		  : !w.annotations && !w.events &&
			    strstr(w.last_status, "\"position\":1,\"startEstimate\""),
	   "%s FluxJobs: %d annotations, %d events, %s", absent ? "without" : "with", w.annotations,
	   w.events, w.last_status);
	feed_job_as(&w, "vast", 5, true, "yes", "", "", "", "");
	for (int i = 0; i < 10; i++)
		later(&w, 1);
	ok(strstr(w.last_event, "5 slots requested"), "a gang that can never run gets an event: %s",
	   w.last_event);
	close_world(&w);
}

/* The same reason with another number causes no second event. */
static void test_one_event_a_cause(void)
{
	struct world w;

	open_world(&w, 1, 4, "");
	add_pod(&w, "full", "sluice", "4", "");
	add_pod(&w, "a", "sluice", "1", GROUP("g", "3"));
	turn(&w);
	for (int i = 0; i < 60; i++)
		later(&w, 1);
	ok(w.events == 1 && strstr(w.last_event, "has 1 of 3"),
	   "the event names how many members are there: %s", w.last_event);
	add_pod(&w, "b", "sluice", "1", GROUP("g", "3"));
	for (int i = 0; i < 120; i++)
		later(&w, 1);
	ok(w.events == 1, "two are: %d events", w.events);
	ok(strstr(w.last_annotation, "has 2 of 3"), "though the annotation says so: %s",
	   w.last_annotation);
	add_pod(&w, "c", "sluice", "1", GROUP("g", "3"));
	for (int i = 0; i < 240; i++)
		later(&w, 1);
	ok(w.events == 2 && strstr(w.last_event, "cpu"), "all three, and no room: %s",
	   w.last_event);
	close_world(&w);
}

int main(void)
{
	test_many();
	test_fluxjob_tells(false);
	test_fluxjob_tells(true);
	test_one_event_a_cause();
	return tap_done();
}
