/* The public header, and nothing else of ours. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sluice/sluice.h>

#include "tap.h"

/* Cluster, `nodes` nodes, `cores` cores each, as JGF. */
/* `both`: each vertex has an edge to its parent, too. */
static char *jgf_edges(int nodes, int cores, bool both, size_t *n)
{
	static const char vertex[] =
		"%s{\"id\":\"%d\",\"metadata\":{\"type\":\"%s\",\"basename\":\"%s\",\"name\":\"%s%d\","
		"\"id\":%d,\"uniq_id\":%d,\"rank\":%d,\"exclusive\":false,\"unit\":\"\",\"size\":1,"
		"\"paths\":{\"containment\":\"/cluster0%s\"}}}";
	static const char edge[] =
		"%s{\"source\":\"%d\",\"target\":\"%d\",\"metadata\":{\"subsystem\":\"containment\"}}";
	size_t room = 1 << 20;
	char *s = malloc(room), path[64];
	int k = 0, at = 0;

	at += snprintf(s, room, "{\"graph\":{\"nodes\":[");
	at += snprintf(s + at, room - at, vertex, "", k++, "cluster", "cluster", "cluster", 0, 0, 0,
		       -1, "");
	for (int i = 0; i < nodes; i++) {
		snprintf(path, sizeof path, "/node%d", i);
		at += snprintf(s + at, room - at, vertex, ",", k, "node", "node", "node", i, i, k,
			       i, path);
		k++;
		for (int c = 0; c < cores; c++) {
			snprintf(path, sizeof path, "/node%d/core%d", i, c);
			at += snprintf(s + at, room - at, vertex, ",", k, "core", "core", "core", c,
				       c, k, i, path);
			k++;
		}
	}
	at += snprintf(s + at, room - at, "],\"edges\":[");
	for (int i = 0; i < nodes; i++) {
		int v = 1 + i * (cores + 1);

		at += snprintf(s + at, room - at, edge, i ? "," : "", 0, v);
		if (both)
			at += snprintf(s + at, room - at, edge, ",", v, 0);
		for (int c = 0; c < cores; c++) {
			at += snprintf(s + at, room - at, edge, ",", v, v + 1 + c);
			if (both)
				at += snprintf(s + at, room - at, edge, ",", v + 1 + c, v);
		}
	}
	at += snprintf(s + at, room - at, "]}}");
	*n = (size_t)at;
	return s;
}

static char *jgf(int nodes, int cores, size_t *n)
{
	return jgf_edges(nodes, cores, false, n);
}

static const char *spec(int nodes, int cores, int duration)
{
	static char s[1024];

	snprintf(
		s, sizeof s,
		"{\"version\":1,\"resources\":[{\"type\":\"node\",\"count\":%d,\"with\":[{\"type\":"
		"\"slot\",\"count\":1,\"label\":\"a\",\"with\":[{\"type\":\"core\",\"count\":%d}]}]}],"
		"\"attributes\":{\"system\":{\"duration\":%d}},\"tasks\":[{\"command\":[\"a\"],"
		"\"slot\":\"a\",\"count\":{\"per_slot\":1}}]}",
		nodes, cores, duration);
	return s;
}

static struct sluice_graph *load(int nodes, int cores, const char *options)
{
	struct sluice_error err = { 0 };
	struct sluice_graph *g = NULL;
	size_t n;
	char *text = jgf(nodes, cores, &n);

	if (sluice_graph_new(text, n, options, &g, &err) < 0)
		printf("# %s\n", err.text);
	free(text);
	return g;
}

#define R_OF(rank, cores)                                                           \
	"{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"" rank          \
	"\", \"children\": {\"core\": \"" cores "\"}}], \"nodelist\": [\"node" rank \
	"\"], \"starttime\": 0, \"expiration\": 100}}"

static void test_life(void)
{
	struct sluice_graph *g = load(
		2, 4, "{\"match_format\":\"rv1_nosched\",\"matcher_policy\":\"low\"}");
	struct sluice_match r = { 0 };
	struct sluice_error err = { 0 };
	struct sluice_graph *copy;
	struct sluice_job job;
	struct sluice_graph_stats st;
	const char *s = spec(1, 4, 100);
	static const char half[] =
		"version: 1\n"
		"resources:\n- {type: slot, count: 1, label: a, with: [{type: core, count: 1}]}\n"
		"attributes: {system: {duration: 10.5}}\n"
		"tasks:\n- {command: [a], slot: a, count: {per_slot: 1}}\n";

	ok(sluice_graph_match(g, SLUICE_ALLOCATE, 0, s, strlen(s), &r, &err) == SLUICE_NOW &&
		   r.job == 1 && r.start_s == 0 && r.end_s == 100 &&
		   !strcmp(r.text, R_OF("0", "0-3")),
	   "the job is allocated");
	ok(sluice_graph_match(g, SLUICE_MATCH, 0, half, strlen(half), &r, &err) == SLUICE_NOW &&
		   r.end_s == 11,
	   "a duration with a fraction is rounded up");
	ok(sluice_graph_match_as(g, SLUICE_ALLOCATE, 0, 77, s, strlen(s), &r, &err) == SLUICE_NOW &&
		   r.job == 77 && !strcmp(r.text, R_OF("1", "0-3")),
	   "a match under a number of our own");
	ok(sluice_graph_match_as(g, SLUICE_ALLOCATE, 0, 77, s, strlen(s), &r, &err) == -EEXIST,
	   "a job number that is taken is refused: %s", err.text);
	ok(sluice_graph_match(g, SLUICE_ALLOCATE, 0, s, strlen(s), &r, &err) == SLUICE_BUSY,
	   "the machine is full");
	ok(sluice_graph_match(g, SLUICE_MATCH_LATER, 0, s, strlen(s), &r, &err) == SLUICE_LATER &&
		   r.job == SLUICE_NO_JOB && r.start_s == 100,
	   "a match without allocating tells a later start and books nothing");
	ok(sluice_graph_allocate(g, true, 0, s, strlen(s), &r, &err) == SLUICE_LATER &&
		   r.start_s == 100 && r.job == 3,
	   "reserved; the busy one used up a number");
	ok(sluice_graph_info(g, 3, &job) == 0 && job.state == SLUICE_RESERVED &&
		   job.start_s == 100 && !strcmp(sluice_job_state_name(job.state), "RESERVED"),
	   "the caller is told that the job is reserved");
	ok(sluice_graph_info(g, 2, &job) == -ENOENT, "the busy one is no job");
	ok(sluice_graph_partial_cancel(g, 3, R_OF("0", "0-3"), strlen(R_OF("0", "0-3")), &err) ==
		   -ENOENT,
	   "a reservation cannot be given back in part");
	ok(sluice_graph_partial_cancel(g, 77, R_OF("1", "0-3"), strlen(R_OF("1", "0-3")), &err) ==
		   1,
	   "a whole one can, in one part");
	ok(sluice_graph_info(g, 77, &job) == 0 && job.state == SLUICE_CANCELED,
	   "a job that is given back whole is over");
	ok(sluice_graph_update(g, 5, R_OF("1", "0-3"), strlen(R_OF("1", "0-3")), &r, &err) == 0 &&
		   r.end_s == 100,
	   "running work can be registered");
	ok(sluice_graph_update(g, 5, R_OF("1", "0-3"), strlen(R_OF("1", "0-3")), &r, &err) ==
		   -EEXIST,
	   "running work is registered only once: %s", err.text);
	sluice_graph_stats(g, &st);
	ok(st.vertices == 11 && st.edges == 10 && st.allocated == 2 && st.reserved == 1,
	   "%" PRIu64 " vertices, %" PRIu64 " running, %" PRIu64 " reserved", st.vertices,
	   st.allocated, st.reserved);
	ok(sluice_graph_cancel(g, 1) == 0 && sluice_graph_cancel(g, 1) == -ENOENT &&
		   sluice_graph_cancel(g, 99) == -ENOENT,
	   "a job is cancelled once");
	copy = sluice_graph_clone(g);
	ok(copy && sluice_graph_info(copy, 1, &job) == 0 && sluice_graph_forget(copy, 1) == 0 &&
		   sluice_graph_info(copy, 1, &job) == -ENOENT &&
		   sluice_graph_info(copy, 3, &job) == 0 && job.job == 3 &&
		   sluice_graph_forget(copy, 1) == -ENOENT &&
		   sluice_graph_forget(copy, 3) == -ENOENT,
	   "a cancelled job is forgotten, no other");
	sluice_graph_free(copy);
	s = spec(3, 1, 10);
	ok(sluice_graph_satisfiable(g, s, strlen(s), &err) == 0,
	   "a request for three nodes of a graph with two can never run");
	s = spec(2, 1, 10);
	ok(sluice_graph_satisfiable(g, s, strlen(s), &err) == 1, "two nodes fit at some time");
	ok(sluice_graph_match(g, SLUICE_ALLOCATE, 0, "resources: [", 12, &r, &err) == -EINVAL &&
		   *err.text,
	   "bad jobspec: %s", err.text);
	ok(strstr(sluice_graph_messages(g), "jobspec of job"),
	   "the error is kept among the messages");
	sluice_graph_clear_messages(g);
	ok(!*sluice_graph_messages(g), "messages are gone after they were cleared");
	sluice_match_done(&r);
	sluice_graph_free(g);
}

static void test_changes(void)
{
	struct sluice_graph *g = load(2, 2, "{\"match_format\":\"rv1_nosched\"}"), *c;
	struct sluice_error err = { 0 };
	enum sluice_status st = SLUICE_UP;
	const char *s = spec(2, 2, 10);
	char *text = NULL, *more;
	size_t n;

	c = sluice_graph_clone(g);
	ok(sluice_graph_set_status(g, "/cluster0/node1", SLUICE_DOWN) == 0 &&
		   sluice_graph_status(g, "/cluster0/node1", &st) == 0 && st == SLUICE_DOWN,
	   "a node goes down");
	ok(sluice_graph_set_status(g, "/nowhere", SLUICE_DOWN) == -EINVAL,
	   "a path that does not exist is an error");
	ok(sluice_graph_rank_status(g, 1, &st) == 0 && st == SLUICE_DOWN &&
		   sluice_graph_rank_status(g, 7, &st) == -EINVAL,
	   "the status is seen by rank");
	ok(sluice_graph_match(g, SLUICE_MATCH, 0, s, strlen(s), NULL, &err) == SLUICE_BUSY &&
		   sluice_graph_match(c, SLUICE_ALLOCATE, 0, s, strlen(s), NULL, &err) ==
			   SLUICE_NOW,
	   "busy here, not in the copy");
	ok(sluice_graph_set_rank_status(g, "0-9", SLUICE_UP) == 0 &&
		   sluice_graph_status(g, "/cluster0/node1", &st) == 0 && st == SLUICE_UP,
	   "ranks are set up again");
	ok(sluice_graph_set_rank_status(g, "all", SLUICE_DOWN) == 0 &&
		   sluice_graph_rank_status(g, 0, &st) == 0 && st == SLUICE_DOWN,
	   "\"all\" sets every rank down");
	ok(sluice_graph_set_rank_status(g, "3-1", SLUICE_DOWN) == -EINVAL &&
		   sluice_graph_set_rank_status(g, "", SLUICE_DOWN) == -EINVAL,
	   "a text that is no ranks is refused");
	sluice_graph_set_rank_status(g, "all", SLUICE_UP);
	ok(sluice_graph_set_property(g, "/cluster0/node0", "class", "fast") == 0 &&
		   !strcmp(sluice_graph_property(g, "/cluster0/node0", "class"), "fast") &&
		   !sluice_graph_property(g, "/cluster0/node1", "class") &&
		   sluice_graph_set_property(g, "/cluster0/node0", "", "x") == -EINVAL,
	   "a property is set, read back, and needs a key");
	ok(sluice_graph_find(g, "sched-now=allocated", NULL, 0, &text, &err) == 0 && !text,
	   "find: an empty graph has nothing allocated");
	ok(sluice_graph_find(g, "colour=red", NULL, 0, &text, &err) == -EINVAL, "bad criteria: %s",
	   err.text);
	ok(sluice_graph_find(g, "status=up", "xml", 0, &text, &err) == -EINVAL,
	   "an unknown format is refused: %s", err.text);
	ok(sluice_graph_match(c, SLUICE_ALLOCATE, 0, s, strlen(s), NULL, &err) == SLUICE_BUSY &&
		   sluice_graph_cancel(c, 1) == 0 &&
		   sluice_graph_match(c, SLUICE_ALLOCATE, 0, s, strlen(s), NULL, &err) ==
			   SLUICE_NOW,
	   "jobs of a copy come and go");
	more = jgf(3, 2, &n);
	s = spec(3, 2, 10);
	ok(sluice_graph_satisfiable(g, s, strlen(s), &err) == 0,
	   "three nodes of two cores do not fit the graph yet");
	ok(sluice_graph_add_subgraph(g, more, n, &err) == 0 &&
		   sluice_graph_satisfiable(g, s, strlen(s), &err) == 1,
	   "a third node is attached");
	ok(sluice_graph_add_subgraph(g, more, n / 2, &err) == -EINVAL, "half a text is refused: %s",
	   err.text);
	ok(sluice_graph_remove_subgraph(g, "/cluster0/node2", &err) == 0 &&
		   sluice_graph_satisfiable(g, s, strlen(s), &err) == 0,
	   "a node that was added can be removed again");
	ok(sluice_graph_remove_subgraph(g, "/cluster0/node9", &err) < 0, "a node that is not: %s",
	   err.text);
	free(more);
	sluice_graph_free(g);
	sluice_graph_free(c);
}

/* Fluence, Fluxnetes and Fluxqueue write graphs with edges in both directions. */
static void test_edges_to_parents(void)
{
	static const char options[] =
		"{\"match_format\":\"rv1_nosched\",\"matcher_policy\":\"lonode\"}";
	struct sluice_graph *g = NULL;
	struct sluice_match r = { 0 };
	struct sluice_error err = { 0 };
	struct sluice_graph_stats st;
	size_t n;
	char *text = jgf_edges(3, 2, true, &n);
	const char *s = spec(1, 2, 100);

	ok(sluice_graph_new(text, n, options, &g, &err) == 0, "the graph is read (%s)", err.text);
	ok(sluice_graph_match(g, SLUICE_ALLOCATE, 0, s, strlen(s), &r, &err) == SLUICE_NOW &&
		   !strcmp(r.text, R_OF("0", "0-1")),
	   "a job gets the first node");
	ok(sluice_graph_set_status(g, "/cluster0/node1", SLUICE_DOWN) == 0 &&
		   sluice_graph_match(g, SLUICE_ALLOCATE, 0, s, strlen(s), &r, &err) ==
			   SLUICE_NOW &&
		   !strcmp(r.text, R_OF("2", "0-1")),
	   "while one node is down, the next job gets another");
	ok(sluice_graph_remove_subgraph(g, "/cluster0", &err) < 0, "the root cannot be removed: %s",
	   err.text);
	ok(sluice_graph_remove_subgraph(g, "/cluster0/node1", &err) == 0 &&
		   (sluice_graph_stats(g, &st), st.vertices == 1 + 2 * 3),
	   "a node is removed with its cores, and nothing else");
	ok(sluice_graph_cancel(g, 1) == 0 &&
		   sluice_graph_match(g, SLUICE_ALLOCATE, 0, s, strlen(s), &r, &err) ==
			   SLUICE_NOW &&
		   !strcmp(r.text, R_OF("0", "0-1")),
	   "the other nodes take jobs as before");
	sluice_match_done(&r);
	sluice_graph_free(g);
	free(text);
}

static void test_bad_options(void)
{
	static const char *const row[] = {
		"[]",
		"{\"load_format\":\"xml\"}",
		"{\"matcher_policy\":\"best\"}",
		"{\"match_format\":\"xml\"}",
		"{\"colour\":\"red\"}",
		"{\"load_format\":7}",
		"{\"reserve_vtx_vec\":-1}",
		"{",
		"{\"matcher_name\":\"ZZ\"}",
	};
	struct sluice_graph *g = NULL;
	size_t n;
	char *text = jgf(1, 1, &n);

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct sluice_error err = { 0 };

		ok(sluice_graph_new(text, n, row[i], &g, &err) == -EINVAL && *err.text, "%s: %s",
		   row[i], err.text);
	}
	for (size_t k = 0; k < n; k += 97) {
		struct sluice_error err = { 0 };

		if (sluice_graph_new(text, k, NULL, &g, &err) != -EINVAL)
			ok(false, "%zu bytes of the text are taken for a graph", k);
	}
	free(text);
}

static void test_gangs(void)
{
	struct sluice_machine *m = sluice_machine_new(), *c;
	struct sluice_amount total = { 1, 4 }, one = { 1, 1 };
	struct sluice_role role = { .name = "w", .min = 6, .need = &one, .n_need = 1 };
	struct sluice_gang gang = { .role = &role, .n_role = 1, .level = -1, .duration_s = 10 };
	struct sluice_place p = { 0 };
	struct sluice_error err = { 0 };
	struct sluice_nodeset *set = sluice_nodeset_new();
	struct sluice_machine_stats st;
	enum sluice_job_state state;
	sluice_node a, b;

	sluice_machine_resource(m, "cpu");
	sluice_machine_level(m, "rack");
	sluice_machine_add(m,
			   &(struct sluice_node_spec){ .name = "a", .total = &total, .n_total = 1 },
			   &a, NULL);
	sluice_machine_add(
		m,
		&(struct sluice_node_spec){ .name = "b", .rank = 1, .total = &total, .n_total = 1 },
		&b, NULL);
	ok(sluice_machine_find(m, "b") == b && !strcmp(sluice_machine_name(m, b), "b") &&
		   sluice_machine_find(m, "c") == SLUICE_NO_NODE && sluice_machine_slots(m) == 2 &&
		   sluice_machine_at(m, 0) == a && sluice_machine_total(m, a, 1) == 4,
	   "the machine has two nodes");
	ok(sluice_gang_match(m, SLUICE_ALLOCATE, 0, 1, &gang, &p, &err) == SLUICE_NOW && p.n == 2 &&
		   p.part[0].node == a && p.part[0].slots == 4 && p.part[1].slots == 2,
	   "the gang gets six slots");
	ok(sluice_machine_free_amount(m, b, 1, 0, 10) == 2 &&
		   sluice_machine_free_amount(m, b, 1, 10, 20) == 4,
	   "free now and later");
	ok(sluice_gang_match(m, SLUICE_ALLOCATE_OR_RESERVE, 0, 2, &gang, &p, &err) ==
			   SLUICE_LATER &&
		   p.start_s == 10 && sluice_gang_info(m, 2, &state, &p) == 0 &&
		   state == SLUICE_RESERVED,
	   "six more slots get a later start");
	ok(sluice_gang_match(m, SLUICE_SATISFIABLE, 0, 3, &gang, &p, &err) == -EINVAL,
	   "an operation that gangs do not have is refused: %s", err.text);
	gang.policy = "best";
	ok(sluice_gang_match(m, SLUICE_MATCH, 0, 3, &gang, &p, &err) == -EINVAL,
	   "an unknown policy is refused: %s", err.text);
	gang.policy = "spread";
	c = sluice_machine_clone(m);
	ok(sluice_gang_cancel(c, 1) == 0 && sluice_gang_start(c, 1, 2) == 0 &&
		   sluice_gang_set_end(c, 2, 50) == 0,
	   "in a copy of the machine the second gang starts");
	role.min = 1;
	ok(sluice_gang_grow(c, 1, 2, &gang, &p, &err) == SLUICE_NOW && p.slots == 1 &&
		   sluice_gang_shrink(c, 2, 0, 2, &p) == 0 && p.slots == 2 &&
		   sluice_gang_release(c, 2, 0, a, 4) == 1,
	   "a gang grows and shrinks");
	role.min = 9;
	ok(sluice_gang_satisfiable(m, &gang, &err) == 0 && *err.text,
	   "a gang that can never run is told why: %s", err.text);
	role.min = 3;
	ok(sluice_gang_explain(m, 0, &gang, &err, NULL) == SLUICE_LATER && *err.text,
	   "a gang that waits is told why: %s", err.text);
	ok(sluice_gang_register(m, 0, 9, &gang, 0, SLUICE_FOREVER, &(struct sluice_part){ b, 0, 3 },
				1, &err) == 0,
	   "work that overbooks is booked");
	sluice_machine_stats(m, &st);
	ok(st.nodes == 2 && st.overbooked == 1 && st.running == 2 && st.reserved == 1,
	   "overbooked work shows in the totals");
	ok(sluice_nodeset_add(set, a) == 0 && sluice_nodeset_add(set, SLUICE_NO_NODE) == -EINVAL &&
		   sluice_nodeset_has(set, a) && !sluice_nodeset_has(set, b) &&
		   sluice_gang_block(m, 0, 20, 100, 200, set, NULL, 0, &err) == 0,
	   "a node can be blocked for a time");
	ok(sluice_machine_set_down(m, b, true) == 0 && sluice_machine_remove(m, b) == 0 &&
		   sluice_machine_set_down(m, b, true) == -ENOENT && !sluice_machine_name(m, b) &&
		   sluice_machine_total(m, b, 1) == 0,
	   "a removed node is noticed");
	ok(sluice_machine_set_domain(m, a, 0, "r0") == 0 &&
		   sluice_machine_resize(m, a, &total, 1, &err) == 0,
	   "the other one is changed");
	sluice_nodeset_unref(set);
	sluice_place_done(&p);
	sluice_machine_free(c);
	sluice_machine_free(m);
}

/* A graph that arrives in pieces is the one that is there at once. */
static void test_loader(void)
{
	static const char text[] =
		"{\"graph\": {\"edges\": [{\"source\": \"0\", \"target\": \"1\"}], \"nodes\": ["
		"{\"id\": \"0\", \"metadata\": {\"type\": \"cluster\", \"paths\": {\"containment\": \"/c\"}}}, "
		"{\"id\": \"1\", \"metadata\": {\"type\": \"node\", \"paths\": {\"containment\": \"/c/n\"}}}]}}";
	struct sluice_graph_stats stats = { 0 };
	struct sluice_error whole = { 0 }, err = { 0 };
	struct sluice_graph *g = NULL;
	struct sluice_loader *l = NULL;
	int rc = sluice_loader_new(&l);

	for (size_t i = 0; i < sizeof text - 1 && !rc; i++)
		rc = sluice_loader_feed(l, text + i, 1);
	if (!rc)
		rc = sluice_loader_graph(l, "{\"matcher_policy\": \"low\"}", &g, &err);
	if (!rc)
		sluice_graph_stats(g, &stats);
	ok(rc == 0 && stats.vertices == 2 && stats.edges == 1, "a graph is read in pieces: %s",
	   err.text);
	sluice_loader_free(l);
	sluice_graph_free(g);
	g = NULL;
	sluice_loader_new(&l);
	sluice_loader_feed(l, text, 100);
	rc = sluice_loader_graph(l, NULL, &g, &err);
	ok(rc == sluice_graph_new(text, 100, NULL, &g, &whole) && rc == -EINVAL && !g &&
		   !strcmp(err.text, whole.text),
	   "a broken graph in pieces is refused in the same words: %s", err.text);
	sluice_loader_free(l);
	sluice_loader_new(&l);
	ok(sluice_loader_graph(l, "{\"load_format\": \"grug\"}", &g, &err) == -EINVAL,
	   "a loader takes no format but JGF: %s", err.text);
	sluice_loader_free(l);
	sluice_loader_free(NULL);
}

int main(void)
{
	char version[32];

	setlocale(LC_ALL, ""); /* see tests/lib/comma */
	snprintf(version, sizeof version, "%d.%d.%d", SLUICE_VERSION_MAJOR, SLUICE_VERSION_MINOR,
		 SLUICE_VERSION_PATCH);
	ok(!strcmp(version, sluice_version()), "header and library agree on %s", version);
	test_life();
	test_changes();
	test_edges_to_parents();
	test_bad_options();
	test_gangs();
	test_loader();
	return tap_done();
}
