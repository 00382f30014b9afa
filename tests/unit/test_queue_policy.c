/* Small exact cases, worked out by hand, for each policy; run through the simulator with every
 * invariant checked at each step. */
#include "tap.h"

#include "sim/sim.h"

struct tj {
	int64_t submit, slots, run, limit;
};

#define MAX 20

struct tcase {
	const char *what;
	uint32_t nodes;
	struct slu_sim_opts o;
	struct tj job[MAX];
	int64_t start[MAX];
};

/* Four nodes.  a holds two until 10; b needs all four; c would just fit in front of b (2 + 8 = 10);
 * d needs one for long. */
#define GAP { { 0, 2, 10, 10 }, { 1, 4, 10, 10 }, { 2, 2, 8, 8 }, { 3, 1, 20, 20 } }

/* Four nodes.  a: three until 10.  b: three from 10 to 20.  c: all four, after b at 20.  d: one for
 * 30. */
#define QUEUE { { 0, 3, 10, 10 }, { 1, 3, 10, 10 }, { 2, 4, 5, 5 }, { 3, 1, 30, 30 } }

/* Three nodes.  a: two until 10; x: the third until 3; b (head) needs all three at 10.  When x
 * ends, c (7 s, 3 + 7 = 10) and d (4 s) both fit the gap. */
#define TWO_FIT \
	{ { 0, 2, 10, 10 }, { 0, 1, 3, 3 }, { 1, 3, 10, 10 }, { 1, 1, 7, 7 }, { 2, 1, 4, 4 } }

static const struct tcase cases[] = {
	/* FCFS, no job overtakes: b at 10, then c and d together when b ends. */
	{ "fcfs: no job overtakes", 4, { .policy = SLU_POLICY_FCFS }, GAP, { 0, 10, 20, 20 } },
	/* EASY: c ends at 10, the second b starts: allowed.  d would hold a node of b: not. */
	{ "easy: the gap is filled, the head is not delayed",
	  4,
	  { .policy = SLU_POLICY_EASY },
	  GAP,
	  { 0, 10, 2, 20 } },
	/* One second longer and c does not fit the gap any more. */
	{ "easy: a second too long for the gap",
	  4,
	  { .policy = SLU_POLICY_EASY },
	  { { 0, 2, 10, 10 }, { 1, 4, 10, 10 }, { 2, 2, 8, 9 }, { 3, 1, 20, 20 } },
	  { 0, 10, 20, 20 } },
	/* First fit: d slips in at 10 before b, who now waits for d: 10 + 20 = 30. */
	{ "first-fit: the large one waits",
	  4,
	  { .policy = SLU_POLICY_FIRST_FIT },
	  GAP,
	  { 0, 30, 2, 10 } },
	/* EASY promises only b; of four nodes one is spare at 10, so d may start at 3 and runs
	 * until 33: c has to wait for it. */
	{ "easy: only the head is safe",
	  4,
	  { .policy = SLU_POLICY_EASY },
	  QUEUE,
	  { 0, 10, 33, 3 } },
	/* Conservative promises c its start at 20, so d cannot start before c has ended. */
	{ "conservative: everybody is safe",
	  4,
	  { .policy = SLU_POLICY_CONSERVATIVE },
	  QUEUE,
	  { 0, 10, 20, 25 } },
	{ "hybrid with one reservation is easy",
	  4,
	  { .policy = SLU_POLICY_HYBRID, .reservation_depth = 1 },
	  QUEUE,
	  { 0, 10, 33, 3 } },
	{ "hybrid with two reservations protects the second",
	  4,
	  { .policy = SLU_POLICY_HYBRID, .reservation_depth = 2 },
	  QUEUE,
	  { 0, 10, 20, 25 } },
	/* By submission c takes the gap; d waits until b has ended at 20. */
	{ "backfill by submission",
	  3,
	  { .policy = SLU_POLICY_EASY },
	  TWO_FIT,
	  { 0, 0, 10, 3, 20 } },
	/* Shortest first: d takes it until 7; then c would end at 14, too late: 20. */
	{ "backfill shortest first",
	  3,
	  { .policy = SLU_POLICY_EASY, .backfill = SLU_BACKFILL_SHORTEST },
	  TWO_FIT,
	  { 0, 0, 10, 20, 3 } },
	/* Two nodes, a holds both until 10.  b is promised 10.  Of the others the long one, x, goes
	 * first: all are done at 30, in the order of submission at 40. */
	{ "packed: the long one is not left to the end",
	  2,
	  { .policy = SLU_POLICY_EASY, .backfill = SLU_BACKFILL_PACKED },
	  { { 0, 2, 10, 10 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 2, 1, 20, 20 } },
	  { 0, 10, 15, 20, 25, 10 } },
	/* The same with a job that comes a minute after the oldest waiting job, and a second
	 * later than that: the job is then outside the batch and overtakes no other. */
	{ "packed: a minute is one batch",
	  2,
	  { .policy = SLU_POLICY_EASY, .backfill = SLU_BACKFILL_PACKED },
	  { { 0, 2, 100, 100 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 61, 1, 20, 20 } },
	  { 0, 100, 105, 110, 115, 100 } },
	{ "packed: a job that came later overtakes no other",
	  2,
	  { .policy = SLU_POLICY_EASY, .backfill = SLU_BACKFILL_PACKED },
	  { { 0, 2, 100, 100 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 1, 1, 5, 5 },
	    { 62, 1, 20, 20 } },
	  { 0, 100, 100, 105, 105, 110 } },
	/* A wide one is reserved for, and the others fill in where they do not delay it. */
	{ "packed: the promised one is not delayed",
	  4,
	  { .policy = SLU_POLICY_EASY, .backfill = SLU_BACKFILL_PACKED },
	  GAP,
	  { 0, 10, 2, 20 } },
	/* Both orders end at 40; with the wide job first, the idle node is idle at the end, when
	 * a job that has come by then can still use it. */
	{ "packed: of equal ends the one with the work done earlier",
	  2,
	  { .policy = SLU_POLICY_EASY, .backfill = SLU_BACKFILL_PACKED },
	  { { 0, 2, 10, 10 }, { 1, 2, 10, 10 }, { 2, 1, 10, 10 }, { 3, 2, 10, 10 } },
	  { 0, 10, 30, 20 } },
	/* Two nodes.  b (both, limit 10) came at 1 and is due at 11; until then it delays no
	 * other job: c and d take what is free.  At 11 it is promised 32, when c has ended.  f
	 * (8 s) fits before that at 22, e (20 s) does not. */
	{ "selective: a job that has waited long is no longer passed",
	  2,
	  { .policy = SLU_POLICY_SELECTIVE, .backfill = SLU_BACKFILL_SHORTEST, .max_stretch = 1 },
	  { { 0, 1, 10, 10 },
	    { 1, 2, 10, 10 },
	    { 2, 1, 30, 30 },
	    { 5, 1, 12, 12 },
	    { 12, 1, 20, 20 },
	    { 13, 1, 8, 8 } },
	  { 0, 32, 2, 10, 42, 22 } },
	/* The same with five times the patience: b is due at 51.  f takes d's node at 22, e follows
	 * at 30 and ends at 50; then b finds both nodes. */
	{ "selective: before it is due whatever fits goes first",
	  2,
	  { .policy = SLU_POLICY_SELECTIVE, .backfill = SLU_BACKFILL_SHORTEST, .max_stretch = 5 },
	  { { 0, 1, 10, 10 },
	    { 1, 2, 10, 10 },
	    { 2, 1, 30, 30 },
	    { 5, 1, 12, 12 },
	    { 12, 1, 20, 20 },
	    { 13, 1, 8, 8 } },
	  { 0, 50, 2, 10, 30, 22 } },
	/* By the clock: 4 s of patience at most make b due at 5; it is promised 10.  Neither c nor d
	 * would end before that; they start when b has ended. */
	{ "selective: a bound on the wait itself",
	  2,
	  { .policy = SLU_POLICY_SELECTIVE,
	    .backfill = SLU_BACKFILL_SHORTEST,
	    .max_stretch = 5,
	    .max_wait_s = 4 },
	  { { 0, 1, 10, 10 }, { 1, 2, 10, 10 }, { 6, 1, 30, 30 }, { 7, 1, 9, 9 } },
	  { 0, 10, 20, 20 } },
	/* Four nodes.  x ends at 10, y at 12; then the third, of three nodes, could run for 100 s.  Without a
	 * hold two short ones start at 10 and one at 12, the long one waits until 30 and all is done
	 * at 130: 120 s for each of four, and 22 s of waiting.  Held for, it starts at 12 with one
	 * short one after the other beside it: 102 s for each, and 62 s of waiting. */
	{ "balanced: room is held for the wide and long",
	  4,
	  { .policy = SLU_POLICY_SELECTIVE, .backfill = SLU_BACKFILL_BALANCED },
	  { { 0, 2, 10, 10 },
	    { 0, 2, 12, 12 },
	    { 1, 3, 100, 100 },
	    { 1, 1, 20, 20 },
	    { 1, 1, 20, 20 },
	    { 1, 1, 20, 20 } },
	  { 0, 0, 12, 10, 30, 50 } },
	/* The same with a wide one of 10 s: it is no gain to hold room for it. */
	{ "balanced: no room is held where that does not pay",
	  4,
	  { .policy = SLU_POLICY_SELECTIVE, .backfill = SLU_BACKFILL_BALANCED },
	  { { 0, 2, 10, 10 },
	    { 0, 2, 12, 12 },
	    { 1, 3, 10, 10 },
	    { 1, 1, 20, 20 },
	    { 1, 1, 20, 20 },
	    { 1, 1, 20, 20 } },
	  { 0, 0, 30, 10, 10, 12 } },
	/* One node, a holds it until 100.  All of the others wait; the order with the least sum of
	 * end and mean wait is the shortest first: c, d, b. */
	{ "balanced: of equal ends the least waiting",
	  1,
	  { .policy = SLU_POLICY_SELECTIVE, .backfill = SLU_BACKFILL_BALANCED },
	  { { 0, 1, 100, 100 }, { 1, 1, 50, 50 }, { 2, 1, 10, 10 }, { 3, 1, 20, 20 } },
	  { 0, 130, 100, 110 } },
	/* Two nodes, both busy until 10.  Shortest first (three of 10 s, then the long one) would end
	 * at 60 with waits of 9, 9, 19, 19; the long one first ends at 50 with 9, 9, 19, 29: a mean
	 * of 2.5 s more against 10 s of everybody's machine. */
	{ "balanced: the long one is not left to the end",
	  2,
	  { .policy = SLU_POLICY_SELECTIVE, .backfill = SLU_BACKFILL_BALANCED },
	  { { 0, 2, 10, 10 },
	    { 1, 1, 10, 10 },
	    { 1, 1, 10, 10 },
	    { 1, 1, 10, 10 },
	    { 1, 1, 40, 40 } },
	  { 0, 10, 20, 30, 10 } },
	/* a ends at 4 instead of 10: the plan moves forward at once. */
	{ "an early end moves the plan",
	  4,
	  { .policy = SLU_POLICY_EASY },
	  { { 0, 2, 4, 10 }, { 1, 4, 10, 10 }, { 5, 1, 1, 5 } },
	  { 0, 4, 14 } },
	/* The same with perfect estimates: limits are the run times; c (9 s) fits before 10 only
	 * because its limit of 20 is not believed. */
	{ "perfect estimates",
	  4,
	  { .policy = SLU_POLICY_EASY, .estimates = SLU_ESTIMATES_PERFECT },
	  { { 0, 2, 10, 30 }, { 1, 4, 10, 10 }, { 1, 2, 9, 20 } },
	  { 0, 10, 1 } },
	/* Depth 1: only the head is looked at, so EASY cannot fill anything. */
	{ "queue depth 1: no backfilling",
	  4,
	  { .policy = SLU_POLICY_EASY, .queue_depth = 1 },
	  GAP,
	  { 0, 10, 20, 20 } },
	/* Depth 2: head and the next; c is the next at 2, d never gets a look before 20. */
	{ "queue depth 2",
	  4,
	  { .policy = SLU_POLICY_EASY, .queue_depth = 2 },
	  GAP,
	  { 0, 10, 2, 20 } },
	/* Twice the load: submissions at 0, 1, 2 instead of 0, 2, 4. */
	{ "scale",
	  1,
	  { .policy = SLU_POLICY_FCFS, .scale = 2 },
	  { { 0, 1, 1, 1 }, { 2, 1, 1, 1 }, { 4, 1, 5, 5 } },
	  { 0, 1, 2 } },
};

static int build(const struct tcase *c, struct slu_trace *t)
{
	for (int i = 0; i < MAX && c->job[i].slots; i++) {
		struct slu_trace_job j = { .id = (uint64_t)i + 1,
					   .submit_s = c->job[i].submit,
					   .run_s = c->job[i].run,
					   .limit_s = c->job[i].limit,
					   .name = SLU_INTERN_NONE,
					   .user = SLU_INTERN_NONE,
					   .queue = SLU_INTERN_NONE };
		int64_t req = slu_trace_cores_req(t, (uint32_t)c->job[i].slots);

		j.req = (uint32_t)req;
		if (req < 0 || slu_vec_push(&t->job, j) < 0)
			return -ENOMEM;
	}
	return slu_trace_machine(t, c->nodes, 1, 0, NULL);
}

int main(void)
{
	for (size_t k = 0; k < SLU_LEN(cases); k++) {
		const struct tcase *c = &cases[k];
		struct slu_trace t = { 0 };
		struct slu_sim s = { 0 };
		struct slu_error err = { 0 };
		struct slu_sim_opts o = c->o;

		o.verify = true;
		ok(build(c, &t) == 0, "%s: the trace is built", c->what);
		bool ran = ok(slu_sim_run(&t, &o, &s, &err) == 0, "%s: runs (%s)", c->what,
			      err.text);

		for (uint32_t i = 0; ran && i < t.job.n; i++)
			ok(s.job.p[i].start_s == c->start[i],
			   "%s: job %c starts at %lld, should at %lld", c->what, 'a' + (int)i,
			   (long long)s.job.p[i].start_s, (long long)c->start[i]);
		slu_sim_done(&s);
		slu_trace_done(&t);
	}
	return tap_done();
}
