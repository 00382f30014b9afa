/* engine — how fast the matcher is: the table of operations on a cluster of N nodes with 32 cores.
 *
 *	engine [--json] [--nodes N,N] [--policy P,P] [--only WORD] [--count K]
 *
 * Every operation includes reading the jobspec (YAML) and writing the result (R); times are CPU
 * time of this process, per operation. */
#include "base/rng.h"
#include "graph/read.h"
#include "jobspec/jobspec.h"
#include "match/match.h"
#include "match/write.h"

#include <stdio.h>
#include <time.h>

#define CORES 32
#define KINDS 50

struct run {
	struct slu_graph *g;
	struct slu_match *m;
	struct slu_writer *w;
	const char *policy;
	uint32_t nodes;
	int64_t next; /* job id */
};

static bool json, first_row = true;
static const char *only;
static uint32_t count_wanted;

static void die(const char *what)
{
	fprintf(stderr, "engine: %s\n", what);
	exit(1);
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0, all;

	if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * 4;
}

/* What the reference (Fluxion 0.54, release build) needs on a machine like ours, us. */
static const struct {
	const char *what, *policy; /* policy NULL: all but first */
	double small, large;       /* at 1 000 and 10 000 nodes; 0 = not measured */
} reference[] = {
	{ "load", "first", 280000, 3000000 },
	{ "load", NULL, 280000, 3000000 },
	{ "resident memory", "first", 135000, 1027000 },
	{ "one whole node", "first", 300, 500 },
	{ "one whole node", NULL, 11000, 257000 },
	{ "one core anywhere", "first", 200, 400 },
	{ "one core anywhere", NULL, 31000, 495000 },
	{ "gang of 8 whole nodes", "first", 1000, 1200 },
	{ "gang of 8 whole nodes", NULL, 10000, 235000 },
	{ "gang of 64 whole nodes", "first", 13000, 8000 },
	{ "gang of 64 whole nodes", NULL, 22000, 237000 },
	{ "cancel of one whole node", "first", 70, 0 },
	{ "cancel of gang of 8 whole nodes", "first", 300, 0 },
	{ "reservation of 8 whole nodes", "first", 1400, 0 },
	{ "reservation of 8 whole nodes", NULL, 19000, 0 },
	{ "reservation of the full machine", "first", 400000, 0 },
	{ "  its resident memory", "first", 25000, 0 },
	{ "reservation of 400 among 200 jobs", "first", 1000000, 0 },
	{ "find sched-now=free", "first", 42000, 250000 },
};

static double reference_of(const char *what, const char *policy, uint32_t nodes)
{
	bool first = strncmp(policy, "first", 5) == 0;

	for (size_t i = 0; i < SLU_LEN(reference); i++)
		if (strcmp(reference[i].what, what) == 0 && (reference[i].policy != NULL) == first)
			return nodes == 1000    ? reference[i].small
			       : nodes == 10000 ? reference[i].large
						: 0;
	return 0;
}

/* Times of the smallest machine, to compare the others with. */
static struct seen {
	char policy[16], what[40];
	double us;
} seen[256];
static uint32_t nseen, smallest;

/* How many times slower than on the smallest machine; 0 = not known. */
static double growth(uint32_t nodes, const char *policy, const char *what, double us)
{
	for (uint32_t i = 0; i < nseen; i++)
		if (strcmp(seen[i].policy, policy) == 0 && strcmp(seen[i].what, what) == 0)
			return us / seen[i].us;
	if ((!smallest || nodes == smallest) && nseen < SLU_LEN(seen)) {
		smallest = nodes;
		snprintf(seen[nseen].policy, sizeof seen->policy, "%s", policy);
		snprintf(seen[nseen].what, sizeof seen->what, "%s", what);
		seen[nseen++].us = us;
	}
	return 0;
}

static void row(uint32_t nodes, const char *policy, const char *what, const char *unit,
		double value)
{
	double ref = reference_of(what, policy, nodes);
	double more = strcmp(unit, "us") == 0 ? growth(nodes, policy, what, value) : 0;

	if (json) {
		printf("%s{\"nodes\": %u, \"policy\": \"%s\", \"what\": \"%s\", \"unit\": \"%s\", \"value\": %.3f, \"reference\": %.0f, \"growth\": %.3f}",
		       first_row ? "[" : ",\n ", nodes, policy, what, unit, value, ref, more);
	} else {
		printf("%6u  %-10s %-34s %12.1f %-2s", nodes, policy, what, value, unit);
		if (ref > 0 && value > 0)
			printf("  %10.0f  %8.1fx", ref, ref / value);
		if (more > 0)
			printf("%*s %6.2f", ref > 0 && value > 0 ? 0 : 23, "", more);
		printf("\n");
	}
	first_row = false;
	fflush(stdout);
}

static char *recipe(uint32_t nodes)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);

	slu_buf_puts(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			 "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n");
	static const char *const key[][4] = {
		{ "root", "node", "int", "0" },
		{ "type", "node", "string", NULL },
		{ "basename", "node", "string", NULL },
		{ "size", "node", "long", "1" },
		{ "unit", "node", "string", NULL },
		{ "subsystem", "node", "string", "containment" },
		{ "e_subsystem", "edge", "string", "containment" },
		{ "relation", "edge", "string", "contains" },
		{ "rrelation", "edge", "string", "in" },
		{ "id_scope", "edge", "int", "0" },
		{ "id_start", "edge", "int", "0" },
		{ "id_stride", "edge", "int", "1" },
		{ "gen_method", "edge", "string", "MULTIPLY" },
		{ "multi_scale", "edge", "int", "1" },
		{ "as_tgt_subsystem", "edge", "string", "containment" },
		{ "as_tgt_uplvl", "edge", "int", "1" },
		{ "as_src_uplvl", "edge", "int", "1" },
	};
	for (size_t i = 0; i < SLU_LEN(key); i++) {
		slu_buf_printf(&b, "<key id=\"%s\" for=\"%s\" attr.name=\"%s\" attr.type=\"%s\">",
			       key[i][0], key[i][1], key[i][0], key[i][2]);
		if (key[i][3])
			slu_buf_printf(&b, "<default>%s</default>", key[i][3]);
		slu_buf_puts(&b, "</key>\n");
	}
	slu_buf_puts(
		&b,
		"<graph id=\"g\" edgedefault=\"directed\">\n"
		"<node id=\"cluster\"><data key=\"root\">1</data><data key=\"type\">cluster</data>"
		"<data key=\"basename\">cluster</data></node>\n"
		"<node id=\"node\"><data key=\"type\">node</data><data key=\"basename\">node</data></node>\n"
		"<node id=\"core\"><data key=\"type\">core</data><data key=\"basename\">core</data></node>\n");
	slu_buf_printf(
		&b,
		"<edge id=\"a\" source=\"cluster\" target=\"node\"><data key=\"multi_scale\">%u</data></edge>\n"
		"<edge id=\"b\" source=\"node\" target=\"core\"><data key=\"multi_scale\">%u</data></edge>\n"
		"</graph></graphml>\n",
		nodes, CORES);
	return slu_buf_take(&b);
}

static char *timed_spec(uint32_t nodes, uint32_t cores, uint32_t seconds)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);

	slu_buf_printf(
		&b,
		"version: 9999\nresources:\n  - type: node\n    count: %u\n    with:\n"
		"      - type: slot\n        count: 1\n        label: default\n        with:\n"
		"          - type: core\n            count: %u\n"
		"attributes:\n  system:\n    duration: %u\n"
		"tasks:\n  - command: [ \"app\" ]\n    slot: default\n    count:\n      per_slot: 1\n",
		nodes, cores, seconds);
	return slu_buf_take(&b);
}

static char *node_spec(uint32_t nodes, uint32_t cores)
{
	return timed_spec(nodes, cores, 3600);
}

static char *slot_spec(uint32_t slots, uint32_t cores)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16);

	slu_buf_printf(
		&b,
		"version: 9999\nresources:\n  - type: slot\n    count: %u\n    label: default\n    with:\n"
		"      - type: core\n        count: %u\n"
		"attributes:\n  system:\n    duration: 3600\n"
		"tasks:\n  - command: [ \"app\" ]\n    slot: default\n    count:\n      per_slot: 1\n",
		slots, cores);
	return slu_buf_take(&b);
}

static void load(struct run *r, uint32_t nodes, const char *policy)
{
	struct slu_match_options o = { .policy = policy };
	struct slu_buf msg = SLU_BUF_INIT(1 << 16);
	struct slu_error err = { 0 };
	char *text = recipe(nodes);

	*r = (struct run){ .policy = policy, .nodes = nodes, .next = 1 };
	r->g = slu_graph_new();
	if (!r->g || slu_read_grug(r->g, text, strlen(text), &msg) < 0)
		die("cannot read the recipe");
	if (slu_match_new(r->g, &o, &r->m, &err) < 0)
		die(err.text);
	r->w = slu_writer_new(SLU_FORMAT_RV1_NOSCHED);
	slu_buf_done(&msg);
	slu_free(text);
}

static void unload(struct run *r)
{
	slu_match_free(r->m);
	slu_graph_free(r->g);
	slu_writer_free(r->w);
}

/* One match from text to text; its code. */
static int match(struct run *r, enum slu_match_op op, const char *text)
{
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *j = NULL;
	struct slu_sink sink = slu_writer_sink(r->w);
	struct slu_match_result res;
	struct slu_buf out = SLU_BUF_INIT(64 << 20);
	struct slu_error err = { 0 };

	if (slu_jobspec_parse(text, strlen(text), &r->g->types, &j, &err) < 0)
		die(err.text);
	if (slu_match_run(r->m, op, j, r->next++, 0, &sink, &res) < 0)
		die("out of memory");
	if (!res.code && op != SLU_MATCH_SATISFIABILITY &&
	    (slu_writer_emit(r->w, &out) < 0 || !out.n))
		die("no result");
	slu_buf_done(&out);
	return res.code;
}

static void cancel(struct run *r, int64_t job)
{
	struct slu_match_result res;

	if (slu_match_cancel(r->m, job, &res) < 0 || res.code)
		die("cannot cancel");
}

static bool wanted(const char *what)
{
	return !only || strstr(what, only);
}

/* n times the same request on an empty machine, then cancel them all. */
static void place(struct run *r, const char *what, const char *spec, uint32_t n, bool also_cancel)
{
	int64_t from = r->next;
	double t, first = 0;
	char name[64];

	if (!wanted(what))
		return;
	if (count_wanted)
		n = count_wanted;
	t = cpu_us();
	for (uint32_t i = 0; i < n; i++) {
		if (match(r, SLU_MATCH_ALLOCATE, spec))
			die("does not fit");
		if (!i)
			first = cpu_us() - t;
	}
	row(r->nodes, r->policy, what, "us", (cpu_us() - t) / n);
	snprintf(name, sizeof name, "  the first %s", what);
	row(r->nodes, r->policy, name, "us", first);
	t = cpu_us();
	for (uint32_t i = 0; i < n; i++)
		cancel(r, from + i);
	if (also_cancel) {
		snprintf(name, sizeof name, "cancel of %s", what);
		row(r->nodes, r->policy, name, "us", (cpu_us() - t) / n);
	}
}

/* Fifty different requests in turn, twice: nearly every match is the first of its kind. */
static void kinds(struct run *r, const char *what)
{
	int64_t from = r->next;
	double t = cpu_us();

	if (!wanted(what))
		return;
	for (uint32_t i = 0; i < 2 * KINDS; i++) {
		uint32_t k = i % KINDS, cores = 1 + k / 2;
		char *spec = k % 2 ? slot_spec(1, cores) : node_spec(1, cores);

		if (match(r, SLU_MATCH_ALLOCATE, spec))
			die("does not fit");
		slu_free(spec);
	}
	row(r->nodes, r->policy, what, "us", (cpu_us() - t) / (2 * KINDS));
	while (from < r->next)
		cancel(r, from++);
}

static void satisfy(struct run *r, const char *what, const char *spec, uint32_t n)
{
	double t = cpu_us();

	if (!wanted(what))
		return;
	if (count_wanted)
		n = count_wanted;
	for (uint32_t i = 0; i < n; i++)
		if (match(r, SLU_MATCH_SATISFIABILITY, spec))
			die("cannot be");
	row(r->nodes, r->policy, what, "us", (cpu_us() - t) / n);
}

static void reserve(struct run *r, const char *what, const char *spec, uint32_t n)
{
	char *all = node_spec(r->nodes, CORES);
	int64_t from = r->next;
	long before;
	size_t mem;
	double t;
	char name[64];

	if (!wanted(what)) {
		slu_free(all);
		return;
	}
	if (count_wanted)
		n = count_wanted;
	if (match(r, SLU_MATCH_ALLOCATE, all))
		die("cannot fill the machine");
	slu_free(all);
	before = resident_kb();
	mem = slu_match_memory(r->m);
	t = cpu_us();
	for (uint32_t i = 0; i < n; i++)
		if (match(r, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, spec))
			die("cannot reserve");
	row(r->nodes, r->policy, what, "us", (cpu_us() - t) / n);
	snprintf(name, sizeof name, "  its bookings (%u held)", n);
	row(r->nodes, r->policy, name, "KB", (double)(slu_match_memory(r->m) - mem) / 1024 / n);
	snprintf(name, sizeof name, "  its resident memory");
	row(r->nodes, r->policy, name, "KB", (double)(resident_kb() - before) / n);
	while (from < r->next)
		cancel(r, from++);
}

/* One reservation of 400 nodes on a machine full of jobs of all sizes and lengths, running and
 * reserved: the cores are there long before 400 whole nodes are. */
static void reserve_among_others(struct run *r, const char *what, uint32_t others)
{
	struct slu_rng rng = { 1 };
	char *spec = node_spec(400, CORES);
	int64_t from = r->next, last;
	uint32_t n = count_wanted ? count_wanted : 10;
	double us = 0;

	for (uint32_t i = 0; i < others; i++) {
		uint32_t nodes = 1 + (uint32_t)slu_rng_below(&rng, 16);
		uint32_t cores = slu_rng_below(&rng, 2) ? CORES : nodes * 2 - 1;
		char *other = timed_spec(nodes, cores, 600 + (uint32_t)slu_rng_below(&rng, 86400));

		if (match(r, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, other))
			die("cannot place the others");
		slu_free(other);
	}
	last = r->next;
	for (uint32_t i = 0; i < n; i++) {
		double t = cpu_us();

		if (match(r, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, spec))
			die("cannot reserve");
		us += cpu_us() - t;
		cancel(r, r->next - 1);
	}
	row(r->nodes, r->policy, what, "us", us / n);
	while (from < last)
		cancel(r, from++);
	slu_free(spec);
}

static void find(struct run *r)
{
	struct slu_writer *w = slu_writer_new(SLU_FORMAT_SIMPLE);
	struct slu_sink sink = slu_writer_sink(w);
	struct slu_buf out = SLU_BUF_INIT(256 << 20);
	struct slu_match_result res;
	double t = cpu_us();

	if (slu_match_find(r->m, "sched-now=free", 0, &sink, &res) < 0 || res.code ||
	    slu_writer_emit(w, &out) < 0)
		die("cannot find");
	row(r->nodes, r->policy, "find sched-now=free", "us", cpu_us() - t);
	slu_buf_done(&out);
	slu_writer_free(w);
}

static void bench(uint32_t nodes, const char *policy)
{
	struct run r;
	char *one = node_spec(1, CORES), *core = node_spec(1, 1), *bare = slot_spec(1, 1);
	char *eight = node_spec(8, CORES), *many = node_spec(64, CORES),
	     *all = node_spec(nodes, CORES);
	long before = resident_kb();
	double t = cpu_us();

	load(&r, nodes, policy);
	if (wanted("load")) {
		row(nodes, policy, "load", "us", cpu_us() - t);
		row(nodes, policy, "resident memory", "KB", (double)(resident_kb() - before));
	}
	place(&r, "one whole node", one, nodes / 2, true);
	place(&r, "one core of a node", core, nodes / 2, true);
	place(&r, "one core anywhere", bare, nodes / 10, true);
	place(&r, "gang of 8 whole nodes", eight, nodes / 16, true);
	place(&r, "gang of 64 whole nodes", many, nodes / 128, false);
	kinds(&r, "50 kinds of jobs in turn");
	satisfy(&r, "satisfiability of 8 whole nodes", eight, 100);
	reserve(&r, "reservation of 8 whole nodes", eight, 1000);
	reserve(&r, "reservation of the full machine", all, nodes > 2000 ? 10 : 100);
	/* More others on more nodes take minutes to place. */
	if (nodes <= 1000 && wanted("reservation of 400 among 200 jobs"))
		reserve_among_others(&r, "reservation of 400 among 200 jobs", 200);
	if (wanted("find"))
		find(&r);
	unload(&r);
	slu_free(one);
	slu_free(core);
	slu_free(bare);
	slu_free(eight);
	slu_free(many);
	slu_free(all);
}

int main(int argc, char **argv)
{
	const char *nodes = "1000,10000", *policies = "first,low,high,lonode,hinode,locality";

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			json = true;
		else if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc)
			nodes = argv[++i];
		else if (strcmp(argv[i], "--policy") == 0 && i + 1 < argc)
			policies = argv[++i];
		else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
			only = argv[++i];
		else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc)
			count_wanted = (uint32_t)strtoul(argv[++i], NULL, 10);
		else
			die("usage: engine [--json] [--nodes N,N] [--policy P,P] [--only WORD] [--count K]");
	}
	if (!json)
		printf(" nodes  policy     operation                               this engine     reference    faster  growth\n");
	for (const char *n = nodes; *n; n += strcspn(n, ","), n += *n == ',')
		for (const char *p = policies; *p; p += strcspn(p, ","), p += *p == ',') {
			char *policy = slu_strndup(p, strcspn(p, ","));

			bench((uint32_t)strtoul(n, NULL, 10), policy);
			slu_free(policy);
		}
	if (json)
		printf("]\n");
	return 0;
}
