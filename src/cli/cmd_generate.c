/* sluice generate: synthetic traces. */
#include "base/buf.h"
#include "cli/commands.h"
#include "sim/generate.h"
#include "sim/write.h"

#include <stdio.h>

struct conf {
	int64_t jobs, nodes, cores, seed, max_cores, users, max_run_s, per_rack;
	double load, serial, elastic, close, failures;
	const char *format, *output;
};

static const char *const formats[] = { "swf", "jsonl", NULL };

static const struct slu_option option[] = {
#define O(name, letter, type, arg, help, field, ...) \
	{ name, letter, type, arg, help, offsetof(struct conf, field), ##__VA_ARGS__ }
	O("jobs", 'j', SLU_OPT_INT, "N", "number of jobs (1000)", jobs, 1, SLU_TRACE_MAX_JOBS),
	O("nodes", 'n', SLU_OPT_INT, "N", "nodes of the machine (100)", nodes, 1,
	  SLU_TRACE_MAX_NODES),
	O("cores", 'c', SLU_OPT_INT, "C", "cores of each node (1)", cores, 1, 100000),
	O("load", 'l', SLU_OPT_REAL, "F", "offered load (0.9)", load),
	O("seed", 's', SLU_OPT_INT, "N", "same seed, same trace (0)", seed),
	O("serial", 0, SLU_OPT_REAL, "F", "share of one-core jobs (0.24)", serial),
	O("max-size", 0, SLU_OPT_INT, "N", "largest gang, in cores (the whole machine)", max_cores,
	  1, SLU_TRACE_MAX_SLOTS),
	O("max-run", 0, SLU_OPT_INT, "S", "longest run time (432000)", max_run_s, 1, 31622400),
	O("users", 'u', SLU_OPT_INT, "N", "number of users (64)", users, 1, 1000000),
	O("per-rack", 0, SLU_OPT_INT, "N", "nodes in a rack; JSON lines only", per_rack, 1,
	  1000000),
	O("elastic", 0, SLU_OPT_REAL, "F", "share of elastic jobs; JSON lines only", elastic),
	O("close", 0, SLU_OPT_REAL, "F", "share of jobs bound to one rack; JSON lines only", close),
	O("failures", 0, SLU_OPT_REAL, "F", "failures per node and year; JSON lines only",
	  failures),
	O("format", 'f', SLU_OPT_STRING, "F",
	  "swf or jsonl (swf; jsonl if the file name ends in it)", format, .choice = formats),
	O("output", 'o', SLU_OPT_STRING, "FILE", "file to write (standard output)", output),
#undef O
	{ 0 },
};

static void generate_defaults(void *p)
{
	struct conf *c = p;

	c->jobs = 1000;
	c->nodes = 100;
	c->cores = 1;
	c->load = 0.9;
	c->serial = 0.24;
}

/* The command that makes this trace again: the options that differ from their defaults, and five
 * that are always shown. */
static void put_note(const struct conf *c, struct slu_buf *b)
{
	struct conf d = { 0 };

	generate_defaults(&d);
	slu_buf_puts(b, "sluice generate");
	for (const struct slu_option *o = option; o->name; o++) {
		const char *at = (const char *)c + o->offset, *was = (const char *)&d + o->offset;
		bool usual = o->offset <= offsetof(struct conf, seed) ||
			     o->offset == offsetof(struct conf, load);

		if (o->type == SLU_OPT_INT && (usual || memcmp(at, was, sizeof(int64_t))))
			slu_buf_printf(b, " --%s %" PRId64, o->name, *(const int64_t *)at);
		else if (o->type == SLU_OPT_REAL && (usual || memcmp(at, was, sizeof(double))))
			slu_buf_printf(b, " --%s %.15g", o->name, *(const double *)at);
	}
}

static int run_generate(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct conf *c = conf;
	struct slu_generate_opts o = { .jobs = (uint32_t)c->jobs,
				       .nodes = (uint32_t)c->nodes,
				       .cores = (uint32_t)c->cores,
				       .load = c->load,
				       .seed = (uint64_t)c->seed,
				       .serial = c->serial,
				       .max_cores = (uint32_t)c->max_cores,
				       .users = (uint32_t)c->users,
				       .max_run_s = c->max_run_s,
				       .per_rack = (uint32_t)c->per_rack,
				       .elastic = c->elastic,
				       .close = c->close,
				       .failures = c->failures };
	size_t n = c->output ? strlen(c->output) : 0;
	bool jsonl = c->format ? !strcmp(c->format, "jsonl")
			       : n > 6 && !strcmp(c->output + n - 6, ".jsonl");
	struct slu_trace t = { 0 };
	struct slu_buf note = SLU_BUF_INIT(1024);

	if (c->load <= 0 || c->serial < 0)
		return slu_fail(err, SLU_WRONG, "--load must be above 0, --serial not below 0");
	int rc = slu_generate(&o, &t, err);
	FILE *f = rc ? NULL : c->output ? fopen(c->output, "we") : stdout;

	if (!rc && !f)
		rc = slu_fail(err, -errno, "%s: %s", c->output, strerror(errno));
	put_note(c, &note);
	if (!rc)
		rc = jsonl ? slu_trace_write_jsonl(&t, slu_buf_str(&note), f, err)
			   : slu_trace_write_swf(&t, slu_buf_str(&note), f, err);
	slu_buf_done(&note);
	if (f && f != stdout && fclose(f) && !rc)
		rc = slu_fail(err, -EIO, "%s: cannot write", c->output);
	slu_trace_done(&t);
	return rc == -ERANGE || rc == -ENOTSUP ? SLU_WRONG : rc; /* there is no other input */
}

const struct slu_command slu_cmd_generate = {
	.name = "generate",
	.args = "",
	.summary = "write a synthetic workload trace",
	.details =
		"Sizes and run times follow Lublin and Feitelson (2003), submissions follow a working day;\n"
		"limits are round times above the run time. The trace has the load that you ask for.",
	.option = option,
	.conf_size = sizeof(struct conf),
	.defaults = generate_defaults,
	.max_args = 0,
	.run = run_generate,
};
