/* The checks of `--verify` can fail: each rule is broken once, and obeyed once. */
#include "tap.h"

#include "sim/world_internal.h"

#define JOBS 12

struct kit {
	struct slu_trace t;
	struct slu_sim s;
	struct slu_sim_opts o;
	struct world w;
	struct slu_error err;
};

/* Twelve jobs of 100 s, all submitted at 0. */
static void begin(struct kit *k, enum slu_policy policy)
{
	*k = (struct kit){ .o = { .policy = policy, .max_stretch = 2 } };
	for (uint32_t i = 0; i < JOBS; i++) {
		struct slu_trace_job j = { .id = i + 1, .limit_s = 100, .run_s = 100 };
		struct slu_sim_job r = { .limit_s = 100 };

		if (slu_vec_push(&k->t.job, j) < 0 || slu_vec_push(&k->s.job, r) < 0)
			exit(1);
	}
	k->w.t = &k->t;
	k->w.s = &k->s;
	k->w.o = &k->o;
}

static void done(struct kit *k)
{
	slu_vec_done(&k->t.job);
	slu_vec_done(&k->s.job);
	slu_decisions_done(&k->w.out);
}

static struct bound *submitted(struct kit *k, uint32_t n)
{
	struct bound *b = NULL;

	k->w.now_s = 0;
	if (sim_bound_new(&k->w, &b) < 0)
		exit(1);
	for (uint32_t j = 0; j < n; j++)
		if (sim_bound_submit(b, &k->w, j) < 0)
			exit(1);
	return b;
}

/* Due after 2 times 100 s. */
static void test_due(void)
{
	struct kit k;
	struct bound *b;

	begin(&k, SLU_POLICY_SELECTIVE);
	b = submitted(&k, 2);
	k.w.now_s = 199;
	ok(sim_bound_step(b, &k.w, &k.err) == 0, "before its bound no job is due");
	k.w.now_s = 200;
	ok(sim_bound_step(b, &k.w, &k.err) == -EUCLEAN && strstr(k.err.text, "has no promise"),
	   "due without a promise: %s", k.err.text);
	ok(sim_bound_promise(b, &k.w, 1, &k.err) == -EUCLEAN &&
		   strstr(k.err.text, "is promised a start before job 1"),
	   "promised out of order: %s", k.err.text);
	sim_bound_free(b);
	b = submitted(&k, 2);
	k.w.now_s = 200;
	ok(sim_bound_promise(b, &k.w, 0, &k.err) == 0 &&
		   sim_bound_promise(b, &k.w, 1, &k.err) == 0 &&
		   sim_bound_step(b, &k.w, &k.err) == 0,
	   "jobs promised in order pass the check");
	sim_bound_free(b);
	/* eight promises are all there are: the others wait for one */
	b = submitted(&k, JOBS);
	k.w.now_s = 200;
	for (uint32_t j = 0; j < SLU_PROMISES; j++)
		(void)(sim_bound_promise(b, &k.w, j, &k.err) < 0);
	ok(sim_bound_step(b, &k.w, &k.err) == 0, "eight are promised a start");
	ok(sim_bound_start(b, &k.w, 0, &k.err) == 0 && sim_bound_step(b, &k.w, &k.err) == -EUCLEAN,
	   "a job without a promise after the first started is reported: %s", k.err.text);
	sim_bound_free(b);
	done(&k);
}

static int start_at(enum slu_policy policy, uint32_t job, int64_t at_s, struct kit *k)
{
	struct bound *b;
	int rc;

	begin(k, policy);
	b = submitted(k, 3);
	k->w.now_s = 200;
	for (uint32_t j = 0; j < 3; j++)
		(void)(sim_bound_promise(b, &k->w, j, &k->err) < 0);
	rc = sim_bound_step(b, &k->w, &k->err);
	k->w.now_s = at_s;
	if (!rc)
		rc = sim_bound_start(b, &k->w, job, &k->err);
	sim_bound_free(b);
	done(k);
	return rc;
}

/* Due at 200 with two others promised a start: within 3 times 100 s.  In order: the third within 300 s. */
static void test_bound(void)
{
	struct kit k;

	ok(start_at(SLU_POLICY_SELECTIVE, 2, 500, &k) == 0, "selective: at its bound");
	ok(start_at(SLU_POLICY_SELECTIVE, 2, 501, &k) == -EUCLEAN, "a second later: %s",
	   k.err.text);
	ok(start_at(SLU_POLICY_EASY, 2, 300, &k) == 0, "easy: at its bound");
	ok(start_at(SLU_POLICY_EASY, 2, 301, &k) == -EUCLEAN, "a second later: %s", k.err.text);
	ok(start_at(SLU_POLICY_EASY, 0, 101, &k) == -EUCLEAN, "the first in line: %s", k.err.text);
}

/* A promise is moved; `cause` is what the decision says. */
static int move(int64_t was_s, int64_t to_s, enum slu_cause cause, struct kit *k)
{
	struct slu_decision d = {
		.kind = SLU_DEC_PLAN, .job = 1, .was_s = was_s, .start_s = to_s, .cause = cause
	};
	struct slu_decision first = { .kind = SLU_DEC_PLAN,
				      .job = 1,
				      .was_s = SLU_TIME_NONE,
				      .start_s = 50,
				      .cause = SLU_CAUSE_NEW };
	struct verify *v = NULL;
	int rc;

	begin(k, SLU_POLICY_EASY);
	if (sim_verify_new(&k->w, &v) < 0 || slu_vec_push(&k->w.out.v, first) < 0 ||
	    slu_vec_push(&k->w.out.v, d) < 0)
		exit(1);
	rc = sim_verify_step(v, &k->w, &k->err);
	sim_verify_free(v);
	done(k);
	return rc;
}

static void test_promises(void)
{
	struct kit k;

	ok(move(50, 40, SLU_CAUSE_EARLY_END, &k) == 0, "a promise may move earlier");
	ok(move(50, 60, SLU_CAUSE_NODE_LOST, &k) == 0,
	   "a promise may move later when a node was lost");
	ok(move(50, 60, SLU_CAUSE_OVERRUN, &k) == 0,
	   "a promise may move later when a job outlived its limit");
	ok(move(50, 60, SLU_CAUSE_EARLY_END, &k) == -EUCLEAN,
	   "a promise that moves later without such a cause is found: %s", k.err.text);
	ok(move(50, 51, SLU_CAUSE_REPLAN, &k) == -EUCLEAN,
	   "a promise that moves later by a second is found: %s", k.err.text);
	ok(move(45, 40, SLU_CAUSE_EARLY_END, &k) == -EUCLEAN,
	   "a promise that moves from a start never told is found: %s", k.err.text);
}

int main(void)
{
	test_due();
	test_bound();
	test_promises();
	return tap_done();
}
