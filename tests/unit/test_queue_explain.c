/* Forecasts, who passed whom, and what would help: on forks, with the queue itself untouched. */
#include "queue/explain.h"
#include "queue/forecast.h"
#include "queue_kit.h"

/* A forecast is what happens if every job runs to its limit and no other job comes: play the
 * queue itself and compare, for every policy. */
static void comes_true(enum slu_policy policy, enum slu_backfill backfill)
{
	struct slu_queue_conf c = { .name = "batch", .policy = policy, .backfill = backfill };
	struct slu_forecast *f = NULL;
	struct kit k;
	int64_t said[KIT_JOBS], end[KIT_JOBS] = { 0 };
	int wrong = 0, said_n = 0, rc = 0;

	kit_new(&k, 6, 1, policy);
	kit_queue(&k, &c);
	for (slu_job_id j = 1; j <= 40; j++)
		kit_job(&k, j, 1 + (int)(j * 7 % 6), 10 + (int64_t)(j * 13 % 50), NULL);
	kit_at(&k, 0);
	is(slu_forecast_new(k.q, 0, &f, NULL), 0, "forecast: a forecast can be begun");
	for (int slices = 0; !rc && slices < 10000; slices++)
		rc = slu_forecast_run(f, 3, NULL);
	is(rc, 1, "forecast: complete, in slices");
	for (slu_job_id j = 1; j <= 40; j++) {
		said[j] = slu_forecast_start(f, j);
		said_n += said[j] != SLU_TIME_NONE;
		ok(!slu_forecast_rough(f, j) || said[j] == SLU_TIME_NONE,
		   "forecast: no start that was played is rough");
	}
	ok(!slu_forecast_stale(f, k.q), "forecast: a forecast of an unchanged queue is not stale");
	for (int64_t t = 0; t < 4000; t++) {
		for (slu_job_id j = 1; j <= 40; j++)
			if (k.start[j] != SLU_TIME_NONE && !end[j] &&
			    k.start[j] + 10 + (int64_t)(j * 13 % 50) <= t) {
				end[j] = t;
				k.now = t;
				kit_do(&k, SLU_EV_END, j);
			}
		kit_at(&k, t);
	}
	for (slu_job_id j = 1; j <= 40; j++) {
		bool at_once = k.start[j] == 0;

		wrong += at_once ? said[j] != SLU_TIME_NONE : said[j] != k.start[j];
	}
	is(wrong, 0, "forecast: every start as foretold under %s/%s", slu_policy_name(policy),
	   slu_backfill_name(backfill));
	ok(said_n > 25, "forecast: of all that waited (%d)", said_n);
	ok(slu_forecast_stale(f, k.q), "forecast: stale after so many events");
	slu_forecast_free(f);
	kit_done(&k);
}

/* More than is played: the rest is laid end to end, and everybody has an answer. */
static void beyond(void)
{
	struct slu_queue_conf c = { .name = "batch", .policy = SLU_POLICY_FCFS };
	struct slu_forecast *f = NULL;
	struct kit k;
	slu_job_id n = SLU_FORECAST_STEPS + 500;
	int64_t last;

	memset(&k, 0, sizeof k); /* not as kit_new(): without the proof after every step */
	slu_queue_new(NULL, &k.q, NULL);
	k.cpu = slu_queue_resource(k.q, "cpu");
	k.rack = slu_queue_level(k.q, "rack");
	kit_queue(&k, &c);
	kit_node(&k, "n0", 1, NULL, NULL);
	for (slu_job_id j = 1; j <= n; j++)
		kit_job(&k, j, 1, 10, NULL);
	kit_at(&k, 0);
	slu_forecast_new(k.q, 0, &f, NULL);
	is(slu_forecast_run(f, UINT32_MAX, NULL), 1, "beyond: the forecast is complete");
	is(slu_forecast_steps(f), SLU_FORECAST_STEPS,
	   "beyond: the forecast takes a bounded number of steps");
	is(slu_forecast_start(f, 1000), 9990, "beyond: the start of a job near the head is exact");
	ok(!slu_forecast_rough(f, 1000) && slu_forecast_rough(f, n),
	   "beyond: only jobs far behind have a rough start");
	last = slu_forecast_start(f, n);
	ok(llabs(last - (int64_t)(n - 1) * 10) <= 20, "beyond: the last at %" PRId64, last);
	slu_forecast_free(f);
	kit_done(&k);
}

static bool passed_by(const struct slu_explain *x, const char *name, enum slu_pass_rule rule,
		      int64_t harm_s, bool at_most)
{
	for (uint32_t i = 0; i < x->n_passer; i++)
		if (!strcmp(x->passer[i].name, name))
			return x->passer[i].rule == rule && x->passer[i].harm_s == harm_s &&
			       x->passer[i].at_most == at_most;
	return false;
}

/* Four nodes.  a holds two until 100; b needs four and is promised 100; c (two, 80 s) passes it
 * harmlessly.  d needs one for 500 s. */
static void beside_a_promise(void)
{
	struct slu_explain x;
	char text[256];
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 100, KIT_SPEC(.name = "a"));
	kit_job(&k, 2, 4, 50, KIT_SPEC(.name = "b"));
	kit_at(&k, 0);
	kit_job(&k, 3, 2, 80, KIT_SPEC(.name = "c"));
	kit_at(&k, 0);
	is(k.start[3], 0, "beside: c has passed b");
	is(slu_queue_explain(k.q, 0, 2, 100, &x, NULL), 0, "beside: the waiting job is explained");
	ok(x.promised && x.start_s == 100 && x.n_passed == 1, "beside: promised 100, passed once");
	ok(passed_by(&x, "c", SLU_PASS_BESIDE, 0, false), "beside: passed by c, which costs 0 s");
	slu_passer_text(&x.passer[0], text, sizeof text);
	ok(!strcmp(text, "job c (2 slots) at 0: started beside its promise; delay 0s"), "%s (%s)",
	   "beside: the passer is described in words", text);
	is(slu_queue_explain(k.q, 0, 9, 100, &x, NULL), -ENOENT,
	   "beside: an unknown job has no explanation");
	is(slu_queue_explain(k.q, 0, 1, 100, &x, NULL), 0,
	   "beside: a running job can be asked about");
	ok(!x.n_passed && !x.n_help, "beside: a running job has nothing to explain");
	kit_done(&k);
}

/* After a restart, running jobs are registered as running and waiting jobs are submitted, in any
 * order.  Four nodes; `old` ran before `wide` came, `thin` (one node from 20 to 120) came after
 * `wide` and passed it. */
static void runs_since(struct kit *k, slu_job_id id, int64_t limit, int64_t start_s,
		       const struct slu_job_spec *more)
{
	struct slu_gang_part at = {
		.node = slu_machine_node_at(slu_queue_machine(k->q), (uint32_t)id), .slots = 1
	};
	struct slu_event ev = {
		.kind = SLU_EV_RUNNING, .part = &at, .n_part = 1, .start_s = start_s
	};

	is(kit_job_as(k, id, 1, limit, more, &ev), 0, "restart: a job runs");
}

static void after_restart(bool running_first)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_SELECTIVE,
				    .backfill = SLU_BACKFILL_SHORTEST };
	const struct slu_job_spec *wide = KIT_SPEC(.name = "wide", .first_seen_us = 10000000);
	struct slu_explain x;
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_SELECTIVE);
	kit_queue(&k, &c);
	k.now = 30;
	if (!running_first)
		kit_job(&k, 2, 4, 200, wide);
	runs_since(&k, 1, 50, 5, KIT_SPEC(.name = "old", .first_seen_us = 5000000));
	runs_since(&k, 3, 100, 20, KIT_SPEC(.name = "thin", .first_seen_us = 15000000));
	if (running_first)
		kit_job(&k, 2, 4, 200, wide);
	kit_at(&k, 30);
	is(slu_queue_explain(k.q, 30, 2, 100, &x, NULL), 0,
	   "restart: the waiting job is explained");
	is(x.n_passed, 1, "restart: passed by one, the other ran before it came");
	ok(passed_by(&x, "thin", SLU_PASS_SHORTER, 65, false),
	   "restart: by thin, which ends at 120; the other ends at 55");
	kit_done(&k);
}

/* No job has a promise at first: two of four nodes are busy until 10, and `wide` needs all four.
 * `thin` starts on the free ones, for 100 s, and keeps `wide` waiting from 10 to 100. */
static void harm(void)
{
	struct slu_queue_conf c = { .name = "batch",
				    .policy = SLU_POLICY_SELECTIVE,
				    .backfill = SLU_BACKFILL_SHORTEST };
	struct slu_explain x;
	char text[256] = "";
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_SELECTIVE);
	kit_queue(&k, &c);
	kit_job(&k, 1, 2, 10, KIT_SPEC(.name = "first"));
	kit_job(&k, 2, 4, 200, KIT_SPEC(.name = "wide"));
	kit_at(&k, 0);
	kit_job(&k, 3, 1, 100, KIT_SPEC(.name = "thin"));
	kit_job(&k, 4, 1, 4, KIT_SPEC(.name = "brief"));
	kit_at(&k, 0);
	k.now = 3;
	kit_do(&k, SLU_EV_END, 4);
	kit_at(&k, 3);
	is(slu_queue_explain(k.q, 3, 2, 100, &x, NULL), 0, "harm: the waiting job is explained");
	is(x.n_passed, 2, "harm: two jobs have passed the waiting one");
	ok(passed_by(&x, "thin", SLU_PASS_SHORTER, 90, false), "harm: thin costs 90 s");
	ok(passed_by(&x, "brief", SLU_PASS_SHORTER, 3, true), "harm: brief at most 3 s");
	is(x.start_s, 100, "harm: starts when thin is over");
	ok(!x.promised, "harm: its start is no promise");
	if (ok(x.n_help > 0 && x.help[0].kind == SLU_HELP_SLOTS && x.help[0].value == 1 &&
		       x.help[0].start_s == 3,
	       "harm: fewer slots would help"))
		slu_help_text(&x.help[0], 3, text, sizeof text);
	ok(!strcmp(text, "with 1 slot: it would start now"), "%s (%s)",
	   "harm: the help is described in words", text);
	ok(!slu_queue_check(k.q, 3, &k.err), "harm: the queue is as it was (%s)", k.err.text);
	is(k.start[2], SLU_TIME_NONE, "harm: explaining starts no job");
	/* A start that was taken back passed no job. */
	kit_do(&k, SLU_EV_TAKE_BACK, 3);
	slu_queue_explain(k.q, 3, 2, 100, &x, NULL);
	is(x.n_passed, 1, "harm: a start that was taken back does not count");
	kit_done(&k);
}

/* Another queue, on nodes of its own, is free. */
static void elsewhere(void)
{
	struct slu_queue_conf slow = { .name = "batch",
				       .policy = SLU_POLICY_EASY,
				       .property = "old" };
	struct slu_queue_conf fast = { .name = "fast",
				       .policy = SLU_POLICY_EASY,
				       .property = "new" };
	struct slu_queue_conf shut = { .name = "shut", .policy = SLU_POLICY_EASY, .stopped = true };
	struct slu_explain x;
	bool found = false;
	char text[256];
	struct kit k;

	kit_new(&k, 0, 1, SLU_POLICY_EASY);
	kit_queue(&k, &slow);
	kit_queue(&k, &fast);
	kit_queue(&k, &shut);
	kit_node(&k, "o", 2, NULL, "old");
	kit_node(&k, "n", 2, NULL, "new");
	kit_job(&k, 1, 2, 100, NULL);
	kit_job(&k, 2, 2, 100, NULL);
	kit_at(&k, 0);
	is(slu_queue_explain(k.q, 0, 2, 100, &x, NULL), 0,
	   "elsewhere: the waiting job is explained");
	for (uint32_t i = 0; i < x.n_help; i++) {
		if (x.help[i].kind == SLU_HELP_QUEUE) {
			ok(!strcmp(x.help[i].name, "fast") && x.help[i].start_s == 0,
			   "elsewhere: in the other queue, now");
			slu_help_text(&x.help[i], 0, text, sizeof text);
			ok(!strcmp(text, "in queue \"fast\": it would start now"), "%s (%s)",
			   "elsewhere: the other queue is named in words", text);
			found = true;
		}
		ok(x.help[i].kind != SLU_HELP_LIMIT, "elsewhere: a shorter limit does not help");
	}
	ok(found, "elsewhere: another queue is proposed");
	kit_done(&k);
}

/* A shorter limit lets it slip in before a promise; it is tried, not guessed. */
static void shorter(void)
{
	struct slu_explain x;
	bool found = false;
	struct kit k;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 100, NULL);
	kit_job(&k, 2, 4, 50, NULL);
	kit_job(&k, 3, 2, 200, NULL);
	kit_at(&k, 0);
	slu_queue_explain(k.q, 0, 3, 100, &x, NULL);
	is(x.start_s, 150, "shorter: as it is, 150");
	for (uint32_t i = 0; i < x.n_help; i++)
		found |= x.help[i].kind == SLU_HELP_LIMIT && x.help[i].value == 100 &&
			 x.help[i].start_s == 0;
	ok(found, "shorter: with 100 s, now");
	kit_done(&k);
}

/* A job of 800 s on both nodes waits for the end of a reservation, at 1000.  From 100 to 400 the nodes
 * are free: half the limit does not fit there, a quarter does. */
static void much_shorter(void)
{
	const char *ann = "ann";
	struct slu_span res = { .kind = SLU_SPAN_RESERVATION,
				.name = "class",
				.from_s = 400,
				.to_s = 1000,
				.count = 2,
				.user = &ann,
				.nuser = 1 };
	struct slu_event add = { .kind = SLU_EV_SPAN_ADD, .span = &res };
	struct slu_explain x;
	bool found = false;
	struct kit k;

	kit_new(&k, 2, 1, SLU_POLICY_EASY);
	is(kit_apply(&k, &add), 0, "much shorter: a reservation is accepted");
	kit_job(&k, 1, 2, 100, NULL);
	kit_job(&k, 2, 2, 800, NULL);
	kit_at(&k, 0);
	slu_queue_explain(k.q, 0, 2, 100, &x, NULL);
	is(x.start_s, 1000, "much shorter: as it is, after the reservation");
	for (uint32_t i = 0; i < x.n_help; i++)
		found |= x.help[i].kind == SLU_HELP_LIMIT && x.help[i].value == 200 &&
			 x.help[i].start_s == 100;
	ok(found, "much shorter: with a quarter of the limit, before it");
	kit_done(&k);
}

/* A job waits for the end of a drain, another span lies too far ahead to matter: the first is named, the
 * second is not; a job that both leave alone names neither. */
static void spans_named(void)
{
	const char *ann = "ann";
	struct slu_span drain = {
		.kind = SLU_SPAN_DRAIN, .name = "repair", .from_s = 0, .to_s = 600, .count = 2
	};
	struct slu_span res = { .kind = SLU_SPAN_RESERVATION,
				.name = "class",
				.from_s = 5000,
				.to_s = 6000,
				.count = 2,
				.user = &ann,
				.nuser = 1 };
	struct slu_event add[] = { { .kind = SLU_EV_SPAN_ADD, .span = &drain },
				   { .kind = SLU_EV_SPAN_ADD, .span = &res } };
	uint32_t drains = 0, reservations = 0;
	struct slu_explain x;
	char text[300] = "";
	struct kit k;

	kit_new(&k, 2, 1, SLU_POLICY_EASY);
	for (size_t i = 0; i < SLU_LEN(add); i++)
		is(kit_apply(&k, &add[i]), 0, "spans: span %zu is accepted", i);
	kit_job(&k, 1, 2, 100, NULL);
	kit_at(&k, 0);
	slu_queue_explain(k.q, 0, 1, 100, &x, NULL);
	is(x.start_s, 600, "spans: as it is, the job starts when the drain ends");
	for (uint32_t i = 0; i < x.n_help; i++) {
		if (x.help[i].kind == SLU_HELP_DRAIN)
			slu_help_text(&x.help[i], 0, text, sizeof text);
		drains += x.help[i].kind == SLU_HELP_DRAIN && x.help[i].start_s == 0;
		reservations += x.help[i].kind == SLU_HELP_RESERVATION;
	}
	is(drains, 1, "spans: without the drain it would start now");
	ok(!strcmp(text, "without drain \"repair\": it would start now"), "spans: in words: %s",
	   text);
	is(reservations, 0, "spans: a reservation after its end is not named");
	kit_done(&k);
}

/* Every allocation fails once; the queue then behaves as if the question had not been asked. */
static void faults(void)
{
	struct kit k;
	int fails = 0;

	kit_new(&k, 4, 1, SLU_POLICY_EASY);
	kit_job(&k, 1, 2, 100, NULL);
	kit_job(&k, 2, 4, 50, NULL);
	kit_job(&k, 3, 2, 80, NULL);
	kit_job(&k, 4, 3, 80, NULL);
	kit_at(&k, 0);
	for (long i = 0; i < 5000; i++) {
		struct slu_forecast *f = NULL;
		struct slu_explain x;

		slu_fault_arm(i);
		int rc = slu_queue_explain(k.q, 0, 4, 50, &x, NULL);
		int rf = slu_forecast_new(k.q, 0, &f, NULL);

		if (!rf)
			rf = slu_forecast_run(f, 100, NULL);
		bool over = !slu_fault_disarm();

		slu_forecast_free(f);
		fails += rc < 0 || rf < 0;
		if (over)
			break;
	}
	ok(fails > 20, "faults: allocations fail in %d places", fails);
	ok(!slu_queue_check(k.q, 0, &k.err), "faults: the queue is whole (%s)", k.err.text);
	kit_done(&k);
}

int main(void)
{
	comes_true(SLU_POLICY_EASY, SLU_BACKFILL_SUBMISSION);
	comes_true(SLU_POLICY_FCFS, SLU_BACKFILL_SUBMISSION);
	comes_true(SLU_POLICY_EASY, SLU_BACKFILL_PACKED);
	comes_true(SLU_POLICY_CONSERVATIVE, SLU_BACKFILL_SUBMISSION);
	comes_true(SLU_POLICY_SELECTIVE, SLU_BACKFILL_SHORTEST);
	after_restart(true);
	after_restart(false);
	comes_true(SLU_POLICY_SELECTIVE, SLU_BACKFILL_BALANCED);
	beyond();
	beside_a_promise();
	harm();
	elsewhere();
	shorter();
	much_shorter();
	spans_named();
	faults();
	return tap_done();
}
