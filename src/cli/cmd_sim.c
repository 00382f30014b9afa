/* sluice sim: a trace through the queue, with a virtual clock. */
#include "cli/commands.h"
#include "cli/term.h"
#include "queue/explain.h"
#include "sim/load.h"
#include "sim/chart.h"

#include <stdio.h>

#define RUNS_MAX 16

struct conf {
	int64_t nodes, cores, per_rack;
	const char *machine, *machine_format;
	const char *policy, *backfill, *estimates;
	int64_t queue_depth, reservation_depth;
	int64_t max_stretch, max_wait_s;
	int64_t until_s, seed, why;
	double scale;
	bool verify, strict, json, quiet;
	const char *csv, *html, *svg;
};

static const struct slu_option option[] = {
#define O(name, letter, type, arg, help, field, ...) \
	{ name, letter, type, arg, help, offsetof(struct conf, field), ##__VA_ARGS__ }
	O("nodes", 'n', SLU_OPT_INT, "N", "nodes of the machine", nodes, 1, 1000000),
	O("cores", 'c', SLU_OPT_INT, "C", "cores of each node (1)", cores, 1, 100000),
	O("per-rack", 0, SLU_OPT_INT, "N", "nodes in a rack (no racks)", per_rack, 1, 1000000),
	O("machine", 'm', SLU_OPT_STRING, "FILE",
	  "machine from a resource graph (GRUG, JGF, R, hwloc)", machine),
	O("machine-format", 0, SLU_OPT_STRING, "F", "format of the machine file (guessed)",
	  machine_format),
	O("policy", 'p', SLU_OPT_STRING, "LIST",
	  "policies to run, comma separated (easy); see above", policy),
	O("backfill", 'b', SLU_OPT_STRING, "ORDER",
	  "submission, shortest, packed or balanced (submission)", backfill),
	O("queue-depth", 0, SLU_OPT_INT, "N", "number of jobs that a pass looks at (all)",
	  queue_depth, 1, 100000000),
	O("reservation-depth", 0, SLU_OPT_INT, "N", "number of reservations under hybrid (64)",
	  reservation_depth, 1, 100000000),
	O("max-stretch", 0, SLU_OPT_INT, "N",
	  "promise a job a start after it waited N times its limit (set by the objective)",
	  max_stretch, 1, SLU_STRETCH_MAX),
	O("max-wait", 0, SLU_OPT_INT, "S",
	  "promise a job a start after it waited S seconds (set by the objective)", max_wait_s, 1,
	  SLU_LIMIT_MAX),
	O("estimates", 'e', SLU_OPT_STRING, "E",
	  "user, perfect, or factor:F (run time times a random 1..F) (user)", estimates),
	O("scale", 's', SLU_OPT_REAL, "F", "load factor: submissions come F times as fast (1)",
	  scale),
	O("until", 'u', SLU_OPT_INT, "S", "stop the clock S seconds after the first submission",
	  until_s, 1, INT64_C(1) << 40),
	O("why", 0, SLU_OPT_INT, "JOB",
	  "explain this job when the clock stops: which jobs passed it, what would help", why, 1,
	  INT64_MAX),
	O("seed", 0, SLU_OPT_INT, "N", "seed of the random numbers (0)", seed),
	O("verify", 'v', SLU_OPT_FLAG, NULL, "check every invariant at each step", verify),
	O("strict", 0, SLU_OPT_FLAG, NULL, "stop at the first malformed line", strict),
	O("json", 'j', SLU_OPT_FLAG, NULL, "print the summary as JSON", json),
	O("csv", 0, SLU_OPT_STRING, "FILE", "write one line per job", csv),
	O("html", 0, SLU_OPT_STRING, "FILE", "write a page with pictures", html),
	O("svg", 0, SLU_OPT_STRING, "PREFIX", "write the pictures as PREFIX-....svg", svg),
	O("quiet", 'q', SLU_OPT_FLAG, NULL, "no progress bar, no notes", quiet),
#undef O
	{ 0 },
};

static void sim_defaults(void *p)
{
	struct conf *c = p;

	c->policy = "easy";
	c->backfill = "submission";
	c->estimates = "user";
	c->scale = 1;
}

/* One policy to run: "balanced", "easy", "hybrid:8", "easy/shortest". */
struct plan {
	char name[64];
	struct slu_sim_opts opts;
};

static bool is_objective(const char *word)
{
	for (const char *const *o = slu_objective_names; *o; o++)
		if (!strcmp(word, *o))
			return true;
	return false;
}

/* An objective stands for a policy, an order of backfilling and a bound on the wait. */
static int parse_objective(const char *word, struct slu_sim_opts *o, struct slu_error *err)
{
	struct slu_queue_conf c = { 0 };
	int rc = slu_objective_parse(word, &c, err);

	o->policy = c.policy;
	o->backfill = c.backfill;
	o->max_stretch = o->max_stretch ? o->max_stretch : c.max_stretch;
	o->max_wait_s = o->max_wait_s ? o->max_wait_s : c.max_wait_s;
	return rc;
}

static int parse_one(const char *s, size_t n, const struct conf *c, struct plan *p,
		     struct slu_error *err)
{
	char word[64], *slash, *colon;
	int rc;

	if (!n || n >= sizeof word)
		return slu_fail(err, SLU_WRONG, "--policy: \"%.*s\" is not a policy",
				(int)SLU_MIN(n, (size_t)64), s);
	memcpy(word, s, n);
	word[n] = 0;
	memcpy(p->name, word, n + 1);
	p->opts.queue_depth = (uint32_t)c->queue_depth;
	p->opts.reservation_depth = (uint32_t)c->reservation_depth;
	p->opts.max_stretch = (uint32_t)c->max_stretch;
	p->opts.max_wait_s = c->max_wait_s;
	if (is_objective(word))
		return parse_objective(word, &p->opts, err);
	slash = strchr(word, '/');
	if (slash)
		*slash++ = 0;
	rc = slu_backfill_parse(slash ? slash : c->backfill, &p->opts.backfill, err);
	if (rc < 0)
		return rc;
	colon = strchr(word, ':');
	if (colon) {
		char *end;
		long v = strtol(colon + 1, &end, 10);

		*colon = 0;
		if (end == colon + 1 || *end || v < 1 || v > 100000000 || strcmp(word, "hybrid"))
			return slu_fail(err, SLU_WRONG,
					"--policy: \"%s\": only hybrid:N takes a depth, 1 or more",
					p->name);
		p->opts.reservation_depth = (uint32_t)v;
	}
	return slu_policy_parse(word, &p->opts.policy, err);
}

static int parse_estimates(const char *s, struct slu_sim_opts *o, struct slu_error *err)
{
	char *end;

	if (!strcmp(s, "user")) {
		o->estimates = SLU_ESTIMATES_USER;
	} else if (!strcmp(s, "perfect")) {
		o->estimates = SLU_ESTIMATES_PERFECT;
	} else if (!strncmp(s, "factor", 6) && (!s[6] || s[6] == ':' || s[6] == '=')) {
		o->estimates = SLU_ESTIMATES_FACTOR;
		o->factor = 2;
		if (s[6]) {
			o->factor = strtod(s + 7, &end);
			if (end == s + 7 || *end)
				o->factor = 0;
		}
		if (!(o->factor >= 1 && o->factor <= 1000))
			return slu_fail(err, SLU_WRONG,
					"--estimates: the factor must be 1 to 1000");
	} else {
		return slu_fail(err, SLU_WRONG,
				"--estimates: \"%s\" is not one of user, perfect, factor:F", s);
	}
	return 0;
}

static int parse_policies(const struct conf *c, struct plan *plan, uint32_t *n,
			  struct slu_error *err)
{
	const char *s = !strcmp(c->policy, "objectives") ? "balanced,throughput,response,order"
							 : c->policy;

	for (*n = 0;; s++) {
		size_t len = strcspn(s, ",");
		struct plan *p = &plan[*n];

		if (*n == RUNS_MAX)
			return slu_fail(err, SLU_WRONG, "--policy: at most %d at once", RUNS_MAX);
		*p = (struct plan){ .opts = { .until_s = c->until_s,
					      .seed = (uint64_t)c->seed,
					      .scale = c->scale,
					      .verify = c->verify,
					      .keep_parts = c->html || c->svg } };
		int rc = parse_one(s, len, c, p, err);

		if (!rc)
			rc = parse_estimates(c->estimates, &p->opts, err);
		if (rc < 0)
			return rc;
		++*n;
		s += len;
		if (!*s)
			return 0;
	}
}

static void show_progress(const char *text, void *arg)
{
	if (!((const struct conf *)arg)->quiet)
		fprintf(stderr, "sluice sim: %s\n", text);
}

static int load_trace(struct conf *c, const char *path, struct slu_trace *t, struct slu_error *err)
{
	struct slu_load_opts o = { .strict = c->strict };
	int rc = 0;

	if (c->machine && c->nodes)
		return slu_fail(err, SLU_WRONG, "give --machine or --nodes, not both");
	if (c->nodes) {
		o.procs = c->nodes * SLU_MAX(c->cores, (int64_t)1);
	} else if (c->machine) {
		rc = slu_load_machine(c->machine, c->machine_format, t, err);
		for (uint32_t i = 0; i < t->node.n; i++)
			o.procs += t->node.p[i].millicores / 1000;
		if (!rc && !o.procs)
			rc = slu_fail(err, -EINVAL, "%s: the nodes have no cores", c->machine);
	}
	bool given = t->node.n;

	if (!rc)
		rc = slu_load_trace(path, &o, t, show_progress, c, err);
	if (rc < 0)
		return rc;
	if (t->malformed && !c->quiet)
		fprintf(stderr, "sluice sim: %s: %" PRIu64 " malformed lines left out\n", path,
			t->malformed);
	if (c->nodes && t->node.n)
		return slu_fail(err, -EINVAL, "%s describes its own machine; leave out --nodes",
				path);
	if (given && t->node.n && c->machine)
		return 0;
	if (t->node.n)
		return 0;
	if (!c->nodes) {
		if (!t->machine_procs)
			return slu_fail(
				err, -EINVAL,
				"%s does not say how large the machine is; give --nodes and "
				"--cores",
				path);
		c->nodes = (t->machine_procs + SLU_MAX(c->cores, (int64_t)1) - 1) /
			   SLU_MAX(c->cores, (int64_t)1);
	}
	return slu_trace_machine(t, (uint32_t)c->nodes, (uint32_t)SLU_MAX(c->cores, (int64_t)1),
				 (uint32_t)c->per_rack, err);
}

static void on_progress(uint64_t done, uint64_t total, void *arg)
{
	slu_progress_show(arg, done, total, "jobs");
}

static int write_file(const char *path, const struct slu_buf *b, struct slu_error *err)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return slu_fail(err, -errno, "%s: %s", path, strerror(errno));
	bool bad = fwrite(slu_buf_str(b), 1, b->n, f) != b->n;

	if (fclose(f) || bad)
		return slu_fail(err, -EIO, "%s: cannot write: %s", path, strerror(errno));
	return 0;
}

static int flush_csv(struct slu_buf *b, void *arg)
{
	size_t n = fwrite(slu_buf_str(b), 1, b->n, arg);

	if (n != b->n)
		return -EIO;
	slu_buf_reset(b);
	return 0;
}

static int write_csv(const char *path, const struct slu_trace *t, const struct slu_run *run,
		     uint32_t n, struct slu_error *err)
{
	FILE *f = fopen(path, "we");
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	int rc = 0;

	if (!f)
		return slu_fail(err, -errno, "%s: %s", path, strerror(errno));
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = slu_report_csv(t, &run[i], i == 0, &b, flush_csv, f);
	slu_buf_done(&b);
	if (fclose(f) && !rc)
		rc = -EIO;
	return rc < 0 ? slu_fail(err, rc, "%s: cannot write", path) : 0;
}

static int write_svg(const char *prefix, const struct slu_trace *t, const struct slu_run *run,
		     uint32_t n, struct slu_error *err)
{
	for (uint32_t i = 0; i < n + 3; i++) {
		struct slu_buf b = SLU_BUF_INIT(64 << 20);
		char path[4096], policy[64] = "";
		int rc;

		for (size_t k = 0; i < n && run[i].policy[k]; k++)
			policy[k] = strchr("/:", run[i].policy[k]) ? '-' : run[i].policy[k];
		snprintf(path, sizeof path, "%s-%s%s.svg", prefix,
			 i < n        ? "gantt-"
			 : i == n     ? "load"
			 : i == n + 1 ? "compare"
				      : "frontier",
			 policy);
		rc = i < n        ? slu_chart_gantt(t, &run[i], &b)
		     : i == n     ? slu_chart_load(t, run, n, &b)
		     : i == n + 1 ? slu_chart_compare(run, n, &b)
				  : slu_chart_frontier(run, n, &b);
		if (!rc)
			rc = write_file(path, &b, err);
		else
			slu_fail(err, rc, "%s: out of memory", path);
		slu_buf_done(&b);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int write_reports(const struct conf *c, const char *path, const struct slu_trace *t,
			 const struct slu_run *run, uint32_t n, struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(256 << 20);
	int rc = 0;

	if (c->csv)
		rc = write_csv(c->csv, t, run, n, err);
	if (!rc && c->svg)
		rc = write_svg(c->svg, t, run, n, err);
	if (!rc && c->html) {
		const char *base = strrchr(path, '/');

		rc = slu_chart_page(t, run, n, base ? base + 1 : path, &b);
		rc = rc < 0 ? slu_fail(err, rc, "%s: out of memory", c->html)
			    : write_file(c->html, &b, err);
		slu_buf_reset(&b);
	}
	if (!rc) {
		rc = c->json ? slu_report_json(t, run, n, &b)
			     : slu_report_table(t, run, n, slu_term_colours(), &b);
		if (rc < 0)
			slu_fail(err, rc, "out of memory");
		else
			fwrite(slu_buf_str(&b), 1, b.n, stdout);
	}
	if (!rc && c->html && !c->json)
		printf("\npage: %s\n", c->html);
	slu_buf_done(&b);
	return rc;
}

/* ---- why ---- */

#define WHY_STEPS 2000u /* of each fork that is tried */

struct asked {
	const struct slu_trace *t;
	const char *policy;
	uint32_t job; /* in the trace */
};

static void print_why(const struct asked *a, int64_t now_s, const struct slu_why *w,
		      const struct slu_explain *x)
{
	char text[512];

	printf("%s: job %" PRIu64 " at %" PRId64 " is %s", a->policy, a->t->job.p[a->job].id, now_s,
	       slu_job_state_name(w->state));
	if (w->position)
		printf(", place %u", w->position);
	if (x->start_s != SLU_TIME_NONE)
		printf(x->promised ? ", starts %" PRId64 " at the latest"
				   : ", should start %" PRId64,
		       x->start_s);
	printf("\n  because %s\n", w->reason);
	for (uint32_t i = 0; i < x->n_passer; i++) {
		struct slu_passer p = x->passer[i];

		if (!*p.name && p.id <= a->t->job.n)
			snprintf(p.name, sizeof p.name, "%" PRIu64, a->t->job.p[p.id - 1].id);
		slu_passer_text(&p, text, sizeof text);
		printf("  passed by %s\n", text);
	}
	if (x->n_passed > x->n_passer)
		printf("  passed by %u others\n", x->n_passed - x->n_passer);
	for (uint32_t i = 0; i < x->n_help; i++) {
		slu_help_text(&x->help[i], now_s, text, sizeof text);
		printf("  would help: %s\n", text);
	}
}

static int explain_job(const struct slu_queue *q, int64_t now_s, void *arg, struct slu_error *err)
{
	struct asked *a = arg;
	struct slu_explain x = { 0 };
	struct slu_why w = { 0 };
	int rc = slu_queue_why(q, now_s, a->job + 1, &w, err);

	if (rc == -ENOENT) {
		printf("%s: job %" PRIu64 " at %" PRId64 " was not submitted yet, or has ended\n",
		       a->policy, a->t->job.p[a->job].id, now_s);
		return 0;
	}
	if (!rc)
		rc = slu_queue_explain(q, now_s, a->job + 1, WHY_STEPS, &x, err);
	if (!rc)
		print_why(a, now_s, &w, &x);
	slu_why_done(&w);
	return rc;
}

/* Find the position in the trace of the job that --why names. */
static int find_asked(const struct conf *c, const struct slu_trace *t, struct asked *a,
		      struct slu_error *err)
{
	a->t = t;
	for (a->job = 0; a->job < t->job.n; a->job++)
		if (t->job.p[a->job].id == (uint64_t)c->why)
			return 0;
	return slu_fail(err, SLU_WRONG, "--why: the log has no job %" PRId64, c->why);
}

static int run_simulation(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct asked asked = { 0 };
	struct conf *c = conf;
	struct plan plan[RUNS_MAX];
	struct slu_run res[RUNS_MAX] = { 0 };
	struct slu_trace t = { 0 };
	uint32_t n = 0, done = 0;
	int rc = parse_policies(c, plan, &n, err) < 0 ? SLU_WRONG : 0;

	if (!rc && !(c->scale > 0 && c->scale <= 1000))
		rc = slu_fail(err, SLU_WRONG, "--scale: must be above 0, at most 1000");
	if (!rc)
		rc = load_trace(c, argv[0], &t, err);
	if (!rc && c->why && c->json)
		rc = slu_fail(err, SLU_WRONG, "--why: not with --json");
	if (!rc && c->why)
		rc = find_asked(c, &t, &asked, err);
	for (; done < n && !rc; done++) {
		struct slu_progress bar;

		slu_progress_start(&bar, plan[done].name, !c->quiet && !c->json);
		plan[done].opts.progress = on_progress;
		plan[done].opts.progress_arg = &bar;
		asked.policy = plan[done].name;
		plan[done].opts.look = c->why ? explain_job : NULL;
		plan[done].opts.look_arg = &asked;
		rc = slu_sim_run(&t, &plan[done].opts, &res[done].sim, err);
		slu_progress_end(&bar);
		res[done].policy = plan[done].name;
		res[done].backfill = slu_backfill_name(plan[done].opts.backfill);
		res[done].estimates = c->estimates;
		res[done].verified = c->verify;
		if (rc < 0)
			slu_fail_prefix(err, rc, "%s", plan[done].name);
	}
	if (!rc)
		rc = write_reports(c, argv[0], &t, res, n, err);
	for (uint32_t i = 0; i < done; i++)
		slu_sim_done(&res[i].sim);
	slu_trace_done(&t);
	return rc;
}

const struct slu_command slu_cmd_sim = {
	.name = "sim",
	.args = "LOG",
	.summary = "run a workload trace through the queue with a virtual clock",
	.details =
		"LOG is a Standard Workload Format log or a JSON-lines trace, plain or .gz; - is standard "
		"input.\n"
		"Objectives: balanced, throughput, response, order; \"objectives\" runs all four.\n"
		"Policies: fcfs, easy, hybrid[:RESERVATIONS], conservative, first-fit, selective; each may\n"
		"be followed by its backfill order: easy/shortest. Example:\n\n"
		"  sluice sim KTH-SP2-1996.swf.gz --nodes 100 --policy easy,easy/shortest,fcfs --html "
		"out.html",
	.option = option,
	.conf_size = sizeof(struct conf),
	.defaults = sim_defaults,
	.min_args = 1,
	.max_args = 1,
	.run = run_simulation,
};
