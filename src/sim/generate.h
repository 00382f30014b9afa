/* generate.h — synthetic traces: same options, same seed, same trace.
 *
 * Sizes and run times follow Lublin and Feitelson ("The workload on parallel supercomputers", JPDC
 * 2003): a share of serial jobs, otherwise log2 of the size from a two-stage uniform distribution,
 * rounded to a power of two three times out of four; the logarithm of the run time is
 * hyper-gamma, longer for larger jobs.  Simpler than theirs: submissions are a Poisson process
 * whose rate follows the hours of a working day, stretched so that the offered load comes out as
 * asked; limits are the next value of a list of round times above 1 to 4 times the run time; users
 * are drawn from a Zipf distribution. */
#pragma once
#include "sim/trace.h"

struct slu_generate_opts {
	uint32_t jobs, nodes, cores;
	double load; /* offered: core-seconds asked over those there are; 0: 0.9 */
	uint64_t seed;
	double serial;      /* share of one-core jobs; below 0: 0.24 */
	uint32_t max_cores; /* largest job; 0: the machine */
	uint32_t users;     /* 0: 64 */
	int64_t max_run_s;  /* 0: 5 days */
	/* What only the JSON-lines trace can say. */
	uint32_t per_rack; /* nodes in a rack; 0: none */
	double elastic;    /* share of jobs that may have up to four times their slots */
	double close;      /* share of jobs that must lie in one rack (if it can hold them) */
	double failures;   /* node failures per node and year; each lasts 1 to 8 hours */
};

int slu_generate(const struct slu_generate_opts *o, struct slu_trace *out, struct slu_error *err);
