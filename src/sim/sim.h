/* sim.h — run a trace through the queue with a virtual clock, and measure.
 *
 * The very same queue and machine as in the daemon; only the clock and the outside world are
 * played.  One scheduling pass per event; at the same second ends come before node events and
 * other requests, those before submissions, each in the order of the file.  The same trace and
 * options give the same result, bit for bit.
 *
 * The played world: a job ends after its run time (never later than its limit).  The run time of an
 * elastic job is that of its minimum size; with more slots it is shorter in proportion.  When a
 * node goes down, the jobs on it are killed, wait again at their old place and start from the
 * beginning.
 */
#pragma once
#include "queue/queue.h"
#include "sim/trace.h"

enum slu_estimates {
	SLU_ESTIMATES_USER,    /* the limits of the trace */
	SLU_ESTIMATES_PERFECT, /* the run times */
	SLU_ESTIMATES_FACTOR,  /* run time times a number drawn evenly from 1 to factor (seeded) */
};

struct slu_sim_opts {
	enum slu_policy policy; /* of the queue, where the trace does not say */
	enum slu_backfill backfill;
	uint32_t queue_depth, reservation_depth;
	uint32_t max_stretch; /* of SLU_POLICY_SELECTIVE; as in slu_queue_conf */
	int64_t max_wait_s;
	enum slu_estimates estimates;
	double factor; /* of SLU_ESTIMATES_FACTOR */
	double scale;  /* load: the time between submissions is divided by it; 0 is 1 */
	uint64_t seed;
	int64_t until_s; /* stop the clock there, seconds after the first submission; 0: never */
	bool verify;     /* check the invariants at each step */
	bool keep_parts; /* remember which job ran where, for pictures */
	/* Shown the queue as it stands when the clock stops; may be NULL.  Job i of the trace is
	 * i + 1 there. */
	int (*look)(const struct slu_queue *q, int64_t now_s, void *arg, struct slu_error *err);
	void *look_arg;
	/* Called every few thousand jobs; may be NULL. */
	void (*progress)(uint64_t ended, uint64_t total, void *arg);
	void *progress_arg;
};

enum slu_sim_fate {
	SLU_SIM_UNSEEN, /* the clock stopped before its submission */
	SLU_SIM_WAITING,
	SLU_SIM_RUNNING,
	SLU_SIM_ENDED,
	SLU_SIM_CANCELLED,
	SLU_SIM_REFUSED, /* or can never run */
};

struct slu_sim_job {
	int64_t submit_s; /* after scaling */
	int64_t start_s, end_s;
	int64_t promised_s; /* first promise; SLU_TIME_NONE */
	int64_t limit_s;
	uint32_t slots; /* with which the job ran */
	uint32_t restarts;
	uint32_t part, n_part; /* range in slu_sim.part */
	uint8_t how, fate;
};

struct slu_sim_part {
	uint32_t node, slots;
};

struct slu_sim_user {
	uint32_t user; /* interned in the trace */
	uint64_t jobs;
	double wait, bsld, core_seconds; /* sums; wait in seconds */
};

enum {
	SLU_NARROW, /* at most a sixteenth of the machine */
	SLU_MEDIUM, /* at most a quarter */
	SLU_WIDE,
	SLU_WIDTHS,
};

struct slu_sim_metrics {
	uint64_t jobs; /* ended */
	uint64_t unfinished, refused, cancelled, restarts;
	uint64_t backfilled, reserved;
	double avg_bounded_slowdown, max_bounded_slowdown;
	double mean_flow, mean_wait;
	int64_t max_flow, max_wait, p95_wait, makespan;
	/* Mean wait by the share of the machine a job asks for; 0 where there was none. */
	double wait_width[SLU_WIDTHS];
	double utilisation;
	/* Jain's index of the users' mean bounded slowdown: 1 is equal for all, 1/n one pays. */
	double fairness;
	uint64_t users;
	/* First promise against real start, over the jobs that got one. */
	uint64_t promises, promises_late;
	double promise_error_mean;
	int64_t promise_error_max;
	uint64_t steps, plan_changes;
	double seconds; /* CPU time of the simulator; not part of the reproducible result */
};

struct slu_sim {
	SLU_VEC(struct slu_sim_job) job; /* as in the trace */
	SLU_VEC(struct slu_sim_part) part;
	SLU_VEC(struct slu_sim_user) user;
	struct slu_sim_metrics metrics;
	int64_t first_s, last_s; /* first submission, last end */
	int64_t capacity;        /* millicores of the machine */
};
void slu_sim_done(struct slu_sim *s);

/* Run it.  -EINVAL, -ENOMEM; -EUCLEAN: an invariant was broken (verify). */
int slu_sim_run(const struct slu_trace *t, const struct slu_sim_opts *o, struct slu_sim *out,
		struct slu_error *err);

/* Bounded slowdown with the usual threshold of 10 s. */
double slu_bounded_slowdown(int64_t wait_s, int64_t run_s);

/* Fill s->metrics (but for what only the run knows) and s->user from s->job. */
int slu_sim_measure(const struct slu_trace *t, struct slu_sim *s);
