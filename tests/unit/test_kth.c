/* The published result on a real log: KTH-SP2-1996 under EASY.
 *
 * Gaussier, Glesser, Reis, Trystram, "Improving Backfilling by using Machine Learning to predict
 * Running Times", SC'15.  The log lies beside the repository (../shared/traces); without it the
 * test says so and is skipped, but under CI it must be there. */
#include "tap.h"

#include "sim/load.h"
#include "sim/sim.h"

#include <math.h>
#include <unistd.h>

static bool near(double got, double want, double share)
{
	return fabs(got - want) <= want * share;
}

int main(void)
{
	const char *log = getenv("SLUICE_KTH_LOG");
	struct slu_trace t = { 0 };
	struct slu_error err = { 0 };
	struct slu_load_opts lo = { .procs = 100 };
	struct slu_sim s;

	if (!log)
		log = KTH_LOG;
	if (access(log, R_OK)) {
		if (getenv("CI")) {
			ok(false, "%s is missing, and this is CI", log);
			return tap_done();
		}
		printf("1..0 # SKIP %s is not there\n", log);
		return 0;
	}
	ok(!slu_load_trace(log, &lo, &t, NULL, NULL, &err) && t.job.n == 28481,
	   "28481 jobs after the filter (%s)", err.text);
	slu_trace_machine(&t, 100, 1, 0, &err);
	static const struct {
		const char *what;
		enum slu_backfill backfill;
		enum slu_estimates estimates;
		double bsld, share;
	} row[] = {
		{ "EASY", SLU_BACKFILL_SUBMISSION, SLU_ESTIMATES_USER, 92.5765, 0.001 },
		{ "EASY, shortest first", SLU_BACKFILL_SHORTEST, SLU_ESTIMATES_USER, 69.405, 0.01 },
		{ "EASY, shortest first, perfect estimates", SLU_BACKFILL_SHORTEST,
		  SLU_ESTIMATES_PERFECT, 49.848, 0.01 },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_sim_opts o = { .policy = SLU_POLICY_EASY,
					  .backfill = row[i].backfill,
					  .estimates = row[i].estimates,
					  .verify = true };

		if (!ok(!slu_sim_run(&t, &o, &s, &err), "%s: runs, verified (%s)", row[i].what,
			err.text))
			continue;
		ok(s.metrics.jobs == 28481 && !s.metrics.promises_late,
		   "%s: all jobs ended, no promise broken", row[i].what);
		ok(near(s.metrics.avg_bounded_slowdown, row[i].bsld, row[i].share),
		   "%s: average bounded slowdown %.4f, published %.4f", row[i].what,
		   s.metrics.avg_bounded_slowdown, row[i].bsld);
		if (!i) {
			ok(near(s.metrics.mean_flow, 15696.80, 0.001), "mean flow %.2f",
			   s.metrics.mean_flow);
			ok(s.metrics.max_flow == 309231, "maximum flow %lld",
			   (long long)s.metrics.max_flow);
			ok(near(s.metrics.max_bounded_slowdown, 14805.2, 0.00001),
			   "maximum bounded slowdown %.1f", s.metrics.max_bounded_slowdown);
		}
		slu_sim_done(&s);
	}
	slu_trace_done(&t);
	return tap_done();
}
