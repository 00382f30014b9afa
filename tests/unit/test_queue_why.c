/* Explanations, estimates, and the settings of queues as text. */
#include "queue_kit.h"

static void why_is(struct kit *k, slu_job_id id, const char *reason, const char *remedy)
{
	struct slu_why w;
	int rc = slu_queue_why(k->q, k->now, id, &w, &k->err);

	if (!ok(rc == 0, "why: job %d (%s)", (int)id, k->err.text))
		return;
	if (!ok(strstr(w.reason, reason), "why: job %d: \"%s\"", (int)id, reason))
		printf("# %s\n", w.reason);
	if (remedy && !ok(w.remedy && strstr(w.remedy, remedy), "why: remedy \"%s\"", remedy))
		printf("# %s\n", w.remedy ? w.remedy : "(none)");
	slu_why_done(&w);
}

/* Four nodes.  1 holds two until 100; 2 needs four, is promised 100; 3 needs two for 200 s: there
 * is room now, but it is promised to 2.  It would start now with a limit of 100. */
static void waiting(void)
{
	struct kit k;
	struct slu_why w;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 100, KIT_SPEC(.name = "alpha"));
	kit_job(&k, 2, 4, 50, KIT_SPEC(.name = "beta"));
	kit_job(&k, 3, 2, 200, KIT_SPEC(.name = "gamma"));
	kit_at(&k, 0);
	why_is(&k, 1, "running since 0", NULL);
	why_is(&k, 2, "needs 4 slots of 1m cpu at once; only 2 fit now", "with 2 slots");
	why_is(&k, 2, "job alpha until 100", NULL);
	why_is(&k, 3, "promised to others", "a limit of 1m40s");
	ok(!slu_queue_why(k.q, 0, 2, &w, NULL) && w.promised && w.planned_s == 100 &&
		   w.position == 1 && w.place.slots == 4,
	   "why: 2 is first, promised 100 on four slots");
	slu_why_done(&w);
	ok(!slu_queue_why(k.q, 0, 3, &w, NULL) && !w.promised && w.planned_s == 150 &&
		   w.position == 2,
	   "why: 3 is second and estimated for 150, after 2");
	slu_why_done(&w);
	/* 2 starts within the longest limit, 200, then 3 within another. */
	why_is(&k, 3, "; starts by 400 at the latest unless more urgent work comes", NULL);
	is(slu_queue_why(k.q, 0, 9, &w, NULL), -ENOENT, "why: an unknown job has no reason");
	kit_done(&k);
}

static void aside(void)
{
	struct kit k;
	struct slu_dep on = { SLU_DEP_AFTER_OK, 40 };
	struct slu_queue_conf stop = { .name = "batch",
				       .policy = SLU_POLICY_FCFS,
				       .stopped = true };

	kit_new(&k, 2, 1, SLU_POLICY_FCFS);
	kit_job(&k, 1, 2, 10, NULL);
	kit_job(&k, 2, 2, 10, NULL);
	kit_job(&k, 3, 1, 10, NULL);
	kit_job(&k, 4, 1, 10, KIT_SPEC(.held = true));
	kit_job(&k, 5, 1, 10, KIT_SPEC(.begin_s = 500));
	kit_job(&k, 6, 1, 10, KIT_SPEC(.dep = &on, .ndep = 1));
	kit_job(&k, 7, 3, 10, NULL);
	kit_at(&k, 0);
	why_is(&k, 3, "1 jobs are ahead of it", NULL);
	why_is(&k, 4, "held", NULL);
	why_is(&k, 5, "may not start before 500", NULL);
	why_is(&k, 6, "waits for job 40 to succeed (not seen yet)", NULL);
	why_is(&k, 7, "can never run", NULL);
	kit_queue(&k, &stop);
	kit_at(&k, 1);
	why_is(&k, 2, "is stopped", NULL);
	kit_do(&k, SLU_EV_END, 1);
	kit_at(&k, 2);
	is(k.start[2], SLU_TIME_NONE, "stopped: nothing starts in a stopped queue");
	kit_done(&k);
}

struct est {
	int64_t at[KIT_JOBS];
};

static int take(slu_job_id id, int64_t start_s, void *arg)
{
	((struct est *)arg)->at[id] = start_s;
	return 0;
}

/* One node, ten jobs of 10 s: the shadow plan lays them one after another, and touches nothing. */
static void estimates(void)
{
	struct kit k;
	struct est e = { { 0 } };

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	for (slu_job_id j = 1; j <= 10; j++)
		kit_job(&k, j, 1, 10, NULL);
	kit_at(&k, 0);
	is(slu_queue_estimate(k.q, 0, 0, take, &e, NULL), 0, "estimate: every job has an estimate");
	for (slu_job_id j = 2; j <= 10; j++)
		is(e.at[j], (int64_t)(j - 1) * 10, "estimate: job %d", (int)j);
	memset(&e, 0, sizeof e);
	slu_queue_estimate(k.q, 0, 3, take, &e, NULL);
	ok(e.at[4] == 30 && e.at[5] == 0, "estimate: only as deep as asked");
	ok(!slu_queue_check(k.q, 0, &k.err), "estimate: the queue is as it was (%s)", k.err.text);
	kit_done(&k);
}

static void settings(void)
{
	static const struct {
		const char *text;
		int rc;
		uint32_t depth, res;
	} row[] = {
		{ "", 0, 5, 6 },
		{ "queue-depth=32", 0, 32, 6 },
		{ "queue-depth=32,reservation-depth=8", 0, 32, 8 },
		{ "queue-depth=9,max-queue-depth=4", 0, 4, 6 },
		{ "reservation-depth=8,max-reservation-depth=8", 0, 5, 6 },
		{ "queue-depth=0", -ERANGE, 5, 6 },
		{ "queue-depth=", -EINVAL, 5, 6 },
		{ "queue-depth=1x", -EINVAL, 5, 6 },
		{ "queue-depth=-1", -EINVAL, 5, 6 },
		{ "queue-depth=99999999999", -ERANGE, 5, 6 },
		{ "depth=1", -EINVAL, 5, 6 },
		{ "queue-depth", -EINVAL, 5, 6 },
	};
	enum slu_policy p = SLU_POLICY_FCFS;
	struct slu_error err = { 0 };

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_queue_conf c = { .queue_depth = 5, .reservation_depth = 6 };
		int rc = slu_queue_conf_params(&c, row[i].text, &err);

		ok(rc == row[i].rc && c.queue_depth == row[i].depth &&
			   c.reservation_depth == row[i].res,
		   "params \"%s\": %d, %u, %u", row[i].text, rc, c.queue_depth,
		   c.reservation_depth);
	}
	for (int i = SLU_POLICY_FCFS; i <= SLU_POLICY_FIRST_FIT; i++)
		ok(!slu_policy_parse(slu_policy_name((enum slu_policy)i), &p, &err) && (int)p == i,
		   "the policy %s is read back from its name", slu_policy_name((enum slu_policy)i));
	is(slu_policy_parse("sjf", &p, &err), -EINVAL, "no such policy (%s)", err.text);
}

/* The clock of the world: 1 700 000 000 was 2023-11-14 22:13:20 UTC. */
static void dates(void)
{
	struct kit k;

	kit_new(&k, 1, 1, SLU_POLICY_EASY);
	kit_at(&k, 1700000000);
	kit_job(&k, 1, 1, 100, KIT_SPEC(.name = "alpha"));
	kit_job(&k, 2, 1, 50, KIT_SPEC(.name = "beta"));
	kit_at(&k, 1700000000);
	why_is(&k, 1, "running since 2023-11-14T22:13:20Z", NULL);
	why_is(&k, 2, "job alpha until 2023-11-14T22:15:00Z", NULL);
	kit_done(&k);
}

/* The answer does not depend on earlier questions: a clone has never been asked. */
static bool same_as_fresh(struct kit *k, slu_job_id id)
{
	slu_cleanup(slu_queue_freep) struct slu_queue *fresh = slu_queue_clone(k->q);
	struct slu_why a = { 0 }, b = { 0 };
	bool same = fresh && slu_queue_why(k->q, k->now, id, &a, NULL) == 0 &&
		    slu_queue_why(fresh, k->now, id, &b, NULL) == 0 && a.planned_s == b.planned_s &&
		    a.position == b.position && a.place.slots == b.place.slots &&
		    a.place.n == b.place.n && !strcmp(a.reason, b.reason);

	for (uint32_t i = 0; same && i < a.place.n; i++)
		same = a.place.part[i].node == b.place.part[i].node;
	slu_why_done(&a);
	slu_why_done(&b);
	return same;
}

static void asked_for_many(void)
{
	struct kit k;
	struct slu_why w;
	bool same = true;

	kit_new(&k, 4, 2, SLU_POLICY_EASY);
	for (slu_job_id id = 1; id <= 40; id++)
		kit_job(&k, id, 1 + (uint32_t)(id * 7 % 8), 10 + (int64_t)(id * 13 % 50), NULL);
	kit_at(&k, 0);
	for (uint32_t i = 0; i < 40; i++)
		same &= same_as_fresh(&k, 1 + (i * 17 + 39) % 40);
	ok(same,
	   "why: the answer for each of forty jobs does not depend on the order of the questions");
	kit_do(&k, SLU_EV_CANCEL, 20);
	for (slu_job_id id = 1; id <= 40; id++)
		same &= id == 20 || same_as_fresh(&k, id);
	ok(same, "why: nor does it after a change");
	kit_job(&k, 41, 8, 10, NULL);
	same = same_as_fresh(&k, 41);
	kit_at(&k, 5);
	ok(same && same_as_fresh(&k, 41) && same_as_fresh(&k, 40),
	   "why: nor does it for a new job");
	ok(slu_queue_why(k.q, 5, 41, &w, NULL) == 0 && w.planned_s > 5 && w.place.slots == 8,
	   "why: with the nodes it is estimated for");
	slu_why_done(&w);
	kit_done(&k);
}

/* Limits, begin times and those it waits for are in the estimate. */
static void estimates_know(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_EASY,
				    .limit = { .max_running = 1 } };
	struct slu_dep dep = { SLU_DEP_AFTER, 3 };
	struct slu_why w;
	struct kit k;

	kit_new(&k, 4, 4, SLU_POLICY_EASY);
	kit_queue(&k, &c);
	kit_job(&k, 1, 1, 3600, NULL);
	kit_at(&k, 0);
	kit_job(&k, 2, 1, 600, NULL);
	kit_job(&k, 3, 1, 600, NULL);
	kit_job(&k, 4, 1, 60, KIT_SPEC(.begin_s = 9000));
	kit_job(&k, 5, 1, 60, KIT_SPEC(.dep = &dep, .ndep = 1));
	kit_at(&k, 10);
	static const int64_t at[] = { 3600, 4200, 9000, 4800 };

	for (slu_job_id j = 2; j <= 5; j++) {
		is(slu_queue_why(k.q, 10, j, &w, &k.err), 0, "estimate: job %d is asked for",
		   (int)j);
		is(w.planned_s, at[j - 2], "estimate: job %d (%s)", (int)j, w.reason);
		slu_why_done(&w);
	}
	kit_done(&k);
}

int main(void)
{
	estimates_know();
	waiting();
	dates();
	aside();
	estimates();
	asked_for_many();
	settings();
	return tap_done();
}
