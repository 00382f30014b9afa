#include "sim/generate.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>

/* Standard normal (Box-Muller; the second number is thrown away, so that each draw uses the same
 * count of random numbers). */
static double normal(struct slu_rng *r)
{
	double u = 1 - slu_rng_unit(r), v = slu_rng_unit(r);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Gamma by Marsaglia and Tsang, for shapes of 1 and more. */
static double gamma_draw(struct slu_rng *r, double shape, double scale)
{
	double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = normal(r), v = 1 + c * x;

		if (v <= 0)
			continue;
		v = v * v * v;
		double u = 1 - slu_rng_unit(r);

		if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
			return d * v * scale;
	}
}

static uint32_t draw_size(struct slu_rng *r, const struct slu_generate_opts *o, uint32_t max)
{
	if (max == 1 || slu_rng_unit(r) < o->serial)
		return 1;
	/* Two-stage uniform in log2: low .. med with probability 0.86, else med .. high. */
	double high = log2(max), low = SLU_MIN(0.8, high), med = SLU_MAX(high - 2.5, low);
	double u = slu_rng_unit(r), x = slu_rng_unit(r);
	double l = u < 0.86 ? low + x * (med - low) : med + x * (high - med);
	double size = slu_rng_unit(r) < 0.75 ? exp2(floor(l + 0.5)) : floor(exp2(l) + 0.5);

	return (uint32_t)SLU_MIN(SLU_MAX(size, 1.0), (double)max);
}

static int64_t draw_run(struct slu_rng *r, uint32_t size, uint32_t max, int64_t max_run)
{
	/* The first, short gamma is the likelier the smaller the job (their pa, pb; scaled to 128).
	 */
	double nodes = (double)size * 128 / (double)SLU_MAX(max, 128u);
	double p = SLU_MIN(SLU_MAX(-0.0054 * nodes + 0.78, 0.05), 0.95);
	double l = slu_rng_unit(r) < p ? gamma_draw(r, 4.2, 0.94) : gamma_draw(r, 312, 0.03);
	double run = exp(SLU_MIN(l, 20.0));

	return SLU_MIN(SLU_MAX((int64_t)run, (int64_t)1), max_run);
}

static int64_t draw_limit(struct slu_rng *r, int64_t run)
{
	static const int64_t round[] = { 60,    300,    600,    900,    1800,   3600,
					 7200,  14400,  21600,  28800,  43200,  57600,
					 86400, 172800, 259200, 432000, 864000, 1728000 };
	int64_t want = (int64_t)ceil((double)run * (1 + 3 * slu_rng_unit(r)));

	for (size_t i = 0; i < SLU_LEN(round); i++)
		if (round[i] >= want)
			return round[i];
	return want;
}

/* How busy an hour is, relative to the mean: quiet nights, two humps by day. */
static double hour_weight(int64_t t)
{
	static const double w[24] = { 0.45, 0.4, 0.35, 0.35, 0.35, 0.4,  0.5,  0.75,
				      1.1,  1.5, 1.7,  1.7,  1.6,  1.6,  1.75, 1.8,
				      1.7,  1.4, 1.1,  0.95, 0.85, 0.75, 0.65, 0.55 };

	return w[(t / 3600) % 24];
}

static int draw_job(struct slu_trace *t, const struct slu_generate_opts *o, struct slu_rng *r,
		    const uint32_t *user, uint32_t nuser, const double *zipf, double *core_seconds)
{
	uint32_t max = o->max_cores ? o->max_cores : o->nodes * o->cores;
	uint32_t size = draw_size(r, o, max), u = 0;
	struct slu_trace_job j = { .id = t->job.n + 1,
				   .name = SLU_INTERN_NONE,
				   .queue = SLU_INTERN_NONE };
	struct slu_trace_role role = {
		.slots = size, .max_slots = size, .millicores = 1000, .property = SLU_INTERN_NONE
	};
	struct slu_trace_req req = { .nrole = 1, .within = SLU_INTERN_NONE };
	double x = slu_rng_unit(r) * zipf[nuser - 1], what = slu_rng_unit(r);

	while (u + 1 < nuser && zipf[u] < x)
		u++;
	j.user = user[u];
	j.run_s = draw_run(r, size, max, o->max_run_s ? o->max_run_s : 432000);
	j.limit_s = draw_limit(r, j.run_s);
	if (what < o->elastic && size > 1) {
		role.max_slots = (uint32_t)SLU_MIN((uint64_t)size * 4, (uint64_t)max);
	} else if (what < o->elastic + o->close && o->per_rack &&
		   size <= (uint64_t)o->per_rack * o->cores && size > 1) {
		req.within = slu_intern(&t->str, "rack");
		if (req.within == SLU_INTERN_NONE)
			return -ENOMEM;
	}
	int64_t q = slu_trace_intern_req(t, &req, &role);

	if (q < 0)
		return -ENOMEM;
	j.req = (uint32_t)q;
	*core_seconds += (double)size * (double)j.run_s;
	return slu_vec_push(&t->job, j);
}

/* Submissions: exponential steps in a time that runs faster by day; then stretched to the load. */
static void draw_times(struct slu_trace *t, const struct slu_generate_opts *o, struct slu_rng *r,
		       double core_seconds)
{
	double load = o->load > 0 ? o->load : 0.9;
	double span = core_seconds / (load * (double)o->nodes * (double)o->cores);
	double mean = span / (double)t->job.n, at = 0;

	for (uint32_t j = 0; j < t->job.n; j++) {
		t->job.p[j].submit_s = (int64_t)at;
		at += -log(1 - slu_rng_unit(r)) * mean / hour_weight((int64_t)at);
	}
	double got = at > 0 ? at : 1, stretch = span / got;

	for (uint32_t j = 0; j < t->job.n; j++)
		t->job.p[j].submit_s = (int64_t)((double)t->job.p[j].submit_s * stretch);
}

static int draw_failures(struct slu_trace *t, const struct slu_generate_opts *o, struct slu_rng *r)
{
	int64_t end = t->job.p[t->job.n - 1].submit_s;
	double mean = 365.0 * 86400 / o->failures;

	for (uint32_t n = 0; n < o->nodes; n++)
		for (double at = -log(1 - slu_rng_unit(r)) * mean; at < (double)end;
		     at += -log(1 - slu_rng_unit(r)) * mean) {
			int64_t last = 3600 + (int64_t)slu_rng_below(r, 7 * 3600);
			struct slu_trace_event down = { .at_s = (int64_t)at,
							.kind = SLU_TRACE_DOWN,
							.node = n,
							.seq = t->event.n };
			struct slu_trace_event up = { .at_s = (int64_t)at + last,
						      .kind = SLU_TRACE_UP,
						      .node = n,
						      .seq = t->event.n + 1 };

			if (slu_vec_push(&t->event, down) < 0 || slu_vec_push(&t->event, up) < 0)
				return -ENOMEM;
			at += (double)last;
		}
	return 0;
}

static int check_options(const struct slu_generate_opts *o, struct slu_error *err)
{
	if (o->jobs < 1 || o->jobs > SLU_TRACE_MAX_JOBS)
		return slu_fail(err, -ERANGE, "%u jobs: must be 1 to %u", o->jobs,
				SLU_TRACE_MAX_JOBS);
	if ((uint64_t)o->nodes * o->cores > SLU_TRACE_MAX_SLOTS)
		return slu_fail(err, -ERANGE, "%u nodes of %u cores: at most %u cores in all",
				o->nodes, o->cores, SLU_TRACE_MAX_SLOTS);
	if (o->max_cores > o->nodes * o->cores)
		return slu_fail(err, -ERANGE, "jobs of %u cores do not fit a machine of %u",
				o->max_cores, o->nodes * o->cores);
	if (o->load < 0 || o->load > 100)
		return slu_fail(err, -ERANGE, "a load of %g: must be above 0, at most 100",
				o->load);
	if (o->elastic < 0 || o->close < 0 || o->elastic + o->close > 1 || o->serial > 1 ||
	    o->failures < 0 || o->failures > 10000 || o->users > 1000000)
		return slu_fail(err, -ERANGE,
				"shares must lie between 0 and 1, and sum to at most 1");
	return 0;
}

int slu_generate(const struct slu_generate_opts *given, struct slu_trace *t, struct slu_error *err)
{
	struct slu_generate_opts o = *given;
	struct slu_rng r = { slu_hash_u64(o.seed + 1) };
	uint32_t nuser = o.users ? o.users : 64;
	double core_seconds = 0, sum = 0;
	int rc;

	if (o.serial < 0)
		o.serial = 0.24;
	rc = slu_trace_machine(t, o.nodes, o.cores, o.per_rack, err);
	if (!rc)
		rc = check_options(&o, err);
	if (rc < 0)
		return rc;
	slu_cleanup(slu_freep) uint32_t *user = slu_reallocarray(NULL, nuser, sizeof *user);
	slu_cleanup(slu_freep) double *zipf = slu_reallocarray(NULL, nuser, sizeof *zipf);

	if (!user || !zipf || slu_vec_reserve(&t->job, o.jobs) < 0)
		return slu_fail(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < nuser; i++) {
		char name[16];

		snprintf(name, sizeof name, "u%u", i + 1);
		user[i] = slu_intern(&t->str, name);
		if (user[i] == SLU_INTERN_NONE)
			return slu_fail(err, -ENOMEM, "out of memory");
		sum += 1 / (double)(i + 1);
		zipf[i] = sum;
	}
	for (uint32_t i = 0; i < o.jobs && !rc; i++)
		rc = draw_job(t, &o, &r, user, nuser, zipf, &core_seconds);
	if (!rc)
		draw_times(t, &o, &r, core_seconds);
	if (!rc && o.failures > 0)
		rc = draw_failures(t, &o, &r);
	if (!rc)
		rc = slu_trace_sort(t);
	t->machine_procs = (int64_t)o.nodes * o.cores;
	t->records = t->job.n;
	return rc < 0 ? slu_fail(err, rc, "out of memory") : 0;
}
