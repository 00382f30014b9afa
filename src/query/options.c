#include "query/options.h"

#include <getopt.h>
#include <strings.h>
#include <sys/stat.h>

#include "graph/read.h"

#define RESERVE_MAX 2000000

static const struct {
	const char *name, *arg;
	char letter;
	const char *text;
} options[] = {
	{ "load-file", "FILE", 'L', "the graph to load (default conf/default)" },
	{ "load-format", "FORMAT", 'f',
	  "its format: grug, hwloc, jgf, jgf_shorthand, rv1exec, rv1exec_force (default grug)" },
	{ "load-allowlist", "A,B,..", 'W',
	  "keep only these kinds when loading hwloc: node, group, numanode, socket, L1cache,\n"
	  "L2cache, L3cache, core, pu, gpu, storage" },
	{ "match-subsystems", "NAME", 'S',
	  "subsystems to match in, the first one walked: CA (default), IBA, IBBA, PA, PFS1BA,\n"
	  "C+IBA, C+IBBA, C+PA, C+PFS1BA, IB+IBBA, C+P+IBA, VA, V+PFS1BA, ALL" },
	{ "match-policy", "POLICY", 'P',
	  "which resources to prefer: first (default), firstnodex, high, low, hinode, lonode,\n"
	  "hinodex, lonodex, locality, variation, or \"policy=high|low node_centric=true|false\n"
	  "node_exclusive=true|false stop_on_1_matches=true|false\"" },
	{ "match-format", "FORMAT", 'F',
	  "how results are printed: simple (default), pretty_simple, jgf, jgf_shorthand, rlite,\n"
	  "rv1, rv1_nosched, rv1_shorthand" },
	{ "traverser-policy", "NAME", 'T', "simple (default) or flexible (alternative slots)" },
	{ "prune-filters", "HIGH:LOW,..", 'p',
	  "count units of type LOW below each vertex of type HIGH (ALL: any type) to cut the\n"
	  "search short (default ALL:core,ALL:node)" },
	{ "graph-format", "FORMAT", 'g', "dot (default) or graphml; accepted for compatibility" },
	{ "graph-output", "BASE", 'o', "accepted for compatibility; nothing is written" },
	{ "test-output", "FILE", 't', "write results to FILE (default: standard output)" },
	{ "reserve-vtx-vec", "N", 'r', "expect N vertices, up to 2000000" },
	{ "elapse-time", NULL, 'e', "print times, graph sizes and visit counts" },
	{ "disable-prompt", NULL, 'd', "no prompt" },
	{ "help", NULL, 'h', "this text" },
};

void slu_query_usage(FILE *f, const char *program)
{
	fprintf(f,
		"usage: resource-query [OPTIONS...]\n"
		"\n"
		"This is %s, a stand-in for Fluxion's resource-query.\n"
		"Match resource requests (jobspecs) against a resource graph, interactively or from a\n"
		"file of commands on standard input.  Type \"help\" for the commands, \"quit\" to end.\n"
		"\n"
		"    %s -L machine.graphml -P low\n"
		"    resource-query> match allocate job.yaml\n"
		"\n",
		program, program);
	for (size_t i = 0; i < SLU_LEN(options); i++) {
		fprintf(f, "  -%c, --%s%s%s\n", options[i].letter, options[i].name,
			options[i].arg ? "=" : "", options[i].arg ? options[i].arg : "");
		for (const char *s = options[i].text; *s;) {
			int n = (int)strcspn(s, "\n");

			fprintf(f, "          %.*s\n", n, s);
			s += n + (s[n] == '\n');
		}
	}
	fputs("    --version\n          the program's version\n", f);
}

#define OPT_VERSION 256 /* no letter */

static bool is_blank(const char *s)
{
	return !s[strspn(s, " ")];
}

static int bad_option(FILE *err, const char *program, const char *what, const char *arg)
{
	if (what)
		fprintf(err, "[ERROR] %s: %s\n", what, arg);
	slu_query_usage(err, program);
	return -EINVAL;
}

static const char *check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return "file does not exist for --load-file";
	if (S_ISDIR(st.st_mode))
		return "path passed to --load-file is a directory";
	return NULL;
}

static int take_option(struct slu_query_options *o, int c, const char *arg, FILE *err,
		       const char *program)
{
	const char *what;
	int n;

	switch (c) {
	case 'L':
		o->load_file = arg;
		what = check_file(arg);
		return what ? bad_option(err, program, what, arg) : 0;
	case 'f':
		o->load_format = arg;
		return slu_read_knows(arg)
			       ? 0
			       : bad_option(err, program, "unknown format for --load-format", arg);
	case 'W':
		if (!is_blank(arg))
			o->allow = arg;
		return 0;
	case 'S':
		o->subsystems = arg;
		return 0;
	case 'P':
		o->policy = arg;
		return 0;
	case 'T':
		o->traverser = arg;
		if (strcmp(arg, "simple") != 0 && strcmp(arg, "flexible") != 0)
			return bad_option(err, program, "unknown policy for --traverser-policy",
					  arg);
		return 0;
	case 'F':
		return slu_format_parse(arg, &o->format) < 0
			       ? bad_option(err, program, "unknown format for --match-format", arg)
			       : 0;
	case 'g':
		if (strcasecmp(arg, "dot") != 0 && strcasecmp(arg, "graphml") != 0)
			return bad_option(err, program, "unknown format for --graph-format", arg);
		return 0;
	case 'p':
		if (is_blank(arg))
			return 0;
		o->filters_twice = o->filters;
		o->filters = arg;
		return 0;
	case 't':
		o->output = arg;
		return 0;
	case 'r':
		n = atoi(arg);
		if (n < 0 || n > RESERVE_MAX)
			fprintf(err, "WARN: out of range specified for --reserve-vtx-vec: %s\n",
				arg);
		else
			o->reserve = (uint32_t)n;
		return 0;
	case 'e':
		o->elapse = true;
		return 0;
	case 'd':
		o->no_prompt = true;
		return 0;
	case 'o':
		return 0;
	case OPT_VERSION:
		printf("sluice-query %s\n", SLU_VERSION);
		return 1;
	case 'h':
		slu_query_usage(err, program);
		return 1;
	default:
		return bad_option(err, program, NULL, NULL);
	}
}

int slu_query_options_parse(struct slu_query_options *o, int argc, char **argv, FILE *err)
{
	struct option longs[SLU_LEN(options) + 2] = { 0 };
	char shorts[2 * SLU_LEN(options) + 1], *s = shorts;
	const char *program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	int c, rc = 0;

	*o = (struct slu_query_options){ .load_file = "conf/default",
					 .load_format = "grug",
					 .subsystems = "CA",
					 .policy = "first",
					 .traverser = "simple" };
	for (size_t i = 0; i < SLU_LEN(options); i++) {
		longs[i].name = options[i].name;
		longs[i].has_arg = options[i].arg ? required_argument : no_argument;
		longs[i].val = options[i].letter;
		*s++ = options[i].letter;
		if (options[i].arg)
			*s++ = ':';
	}
	*s = '\0';
	longs[SLU_LEN(options)] = (struct option){ "version", no_argument, NULL, OPT_VERSION };
	optind = 1;
	while (!rc && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		rc = take_option(o, c, optarg, err, program);
	if (!rc && optind != argc)
		rc = bad_option(err, program, NULL, NULL);
	return rc;
}
