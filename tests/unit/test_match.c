#include "jobspec/jobspec.h"
#include "match/match.h"
#include "tap.h"

/* cluster0 -> 2 racks -> 2 nodes each -> 2 cores and a memory of 4 units. */
static uint32_t add(struct slu_graph *g, uint32_t parent, const char *type, int64_t id,
		    uint32_t size, int32_t rank)
{
	struct slu_vertex_desc d = {
		.type = slu_graph_type(g, type),
		.basename = slu_graph_string(g, type),
		.name = SLU_NONE,
		.id = id,
		.uniq_id = SLU_UNIQ_INDEX,
		.rank = rank,
		.size = size,
	};
	uint32_t v = slu_graph_add(g, &d);

	slu_graph_path_under(g, v, 0, parent);
	if (parent == SLU_NONE)
		slu_graph_root_set(g, 0, v);
	else
		slu_graph_link(g, parent, v, 0);
	return v;
}

static struct slu_graph *machine(void)
{
	struct slu_graph *g = slu_graph_new();
	uint32_t root = add(g, SLU_NONE, "cluster", 0, 1, -1);

	for (int r = 0; r < 2; r++) {
		uint32_t rack = add(g, root, "rack", r, 1, -1);

		for (int n = 0; n < 2; n++) {
			int32_t rank = r * 2 + n;
			uint32_t node = add(g, rack, "node", rank, 1, rank);

			add(g, node, "core", 0, 1, rank);
			add(g, node, "core", 1, 1, rank);
			add(g, node, "memory", 0, 4, rank);
		}
	}
	return g;
}

/* Names of what was taken, in order of emission: "core0[1:x] node0[1:s] ...". */
static int on_vertex(void *w, const struct slu_graph *g, const struct slu_emit_vertex *x)
{
	struct slu_buf *b = w;

	slu_graph_name_put(g, x->v, b);
	slu_buf_printf(b, "[%" PRId64 ":%c] ", x->needs, x->exclusive ? 'x' : 's');
	return b->error;
}

static const struct slu_writer_ops ops = { .vertex = on_vertex };

#define HEAD(d)                                           \
	"version: 1\nattributes: {system: {duration: " #d \
	"}}\ntasks: [{command: [x], slot: a, count: {per_slot: 1}}]\n"
static const char whole[] = HEAD(
	10) "resources: [{type: node, count: 1, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]";
static const char four[] = HEAD(
	10) "resources: [{type: node, count: 4, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]";
static const char five[] = HEAD(
	10) "resources: [{type: node, count: 5, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 2}]}]}]";
static const char core[] = HEAD(
	10) "resources: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]";
static const char mine[] = HEAD(10) "resources: [{type: node, count: 1, exclusive: true}]";
static const char memory[] = HEAD(
	10) "resources: [{type: slot, count: 1, label: a, with: [{type: memory, count: 1}]}]";

struct world {
	struct slu_graph *g;
	struct slu_match *m;
	struct slu_buf text;
	struct slu_match_result res;
};

static int open_world(struct world *w, const char *policy)
{
	struct slu_match_options o = { .policy = policy };

	*w = (struct world){ .g = machine(), .text = SLU_BUF_INIT(1 << 16) };
	return slu_match_new(w->g, &o, &w->m, NULL);
}

static void close_world(struct world *w)
{
	slu_match_free(w->m);
	slu_graph_free(w->g);
	slu_buf_done(&w->text);
}

static int run(struct world *w, enum slu_match_op op, const char *text, int64_t job)
{
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *j = NULL;
	struct slu_sink sink = { &ops, &w->text };
	int rc;

	slu_buf_reset(&w->text);
	rc = slu_jobspec_parse(text, strlen(text), &w->g->types, &j, NULL);
	return rc < 0 ? rc : slu_match_run(w->m, op, j, job, 0, &sink, &w->res);
}

static bool got(const struct world *w, int code, int64_t at, const char *text)
{
	bool good = w->res.code == code && (code || w->res.at_s == at) &&
		    strcmp(slu_buf_str(&w->text), text) == 0;

	if (!good)
		printf("# code %d at %" PRId64 ": %s\n", w->res.code, w->res.at_s,
		       slu_buf_str(&w->text));
	return good;
}

static void test_policies(void)
{
	static const struct {
		const char *name;
		bool valid;
	} row[] = {
		{ "first", true },
		{ "lonodex", true },
		{ "worst", false },
		{ "policy=high", true },
		{ "policy=mid", false },
		{ "node_centric=true", false },
		{ "", false },
		{ "policy=low node_centric=true stop_on_1_matches=false", true },
		/* What makes no sense ends the list; what was said before it counts. */
		{ "policy=low nodes=true", true },
		{ "policy=low node_exclusive=yes", true },
		{ "nodes=true policy=low", false },
		{ " policy=low", false },
	};
	struct world w;

	for (size_t i = 0; i < SLU_LEN(row); i++)
		ok(slu_match_policy_valid(row[i].name) == row[i].valid,
		   "the policy name \"%s\" is judged as it should be", row[i].name);
	ok(open_world(&w, "low") == 0, "a matcher is made");
	run(&w, SLU_MATCH_ALLOCATE, core, 1);
	ok(got(&w, 0, 0, "core0[1:x] node0[1:s] rack0[1:s] cluster0[1:s] "), "low takes core 0");
	close_world(&w);
	open_world(&w, "hinode");
	run(&w, SLU_MATCH_ALLOCATE, core, 1);
	ok(got(&w, 0, 0, "core1[1:x] node3[1:s] rack1[1:s] cluster0[1:s] "),
	   "hinode the last core of the last node");
	close_world(&w);
	open_world(&w, "lonodex");
	run(&w, SLU_MATCH_ALLOCATE, core, 1);
	ok(got(&w, 0, 0, "core0[1:x] core1[1:x] memory0[4:x] node0[1:x] rack0[1:s] cluster0[1:s] "),
	   "lonodex all of a node");
	close_world(&w);
	open_world(&w, "first");
	run(&w, SLU_MATCH_ALLOCATE, memory, 1);
	ok(got(&w, 0, 0, "memory0[4:x] node3[1:s] rack1[1:s] cluster0[1:s] "),
	   "a slot takes a whole memory");
	close_world(&w);
}

static void test_time(void)
{
	struct world w;
	struct slu_match_result res;

	open_world(&w, "low");
	for (int i = 1; i <= 4; i++)
		run(&w, SLU_MATCH_ALLOCATE, whole, i);
	ok(got(&w, 0, 0, "core0[1:x] core1[1:x] node3[1:s] rack1[1:s] cluster0[1:s] "),
	   "four jobs fill the machine");
	run(&w, SLU_MATCH_ALLOCATE, core, 5);
	ok(w.res.code == EBUSY, "no core is left on a full machine");
	run(&w, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, four, 5);
	ok(w.res.code == 0 && w.res.at_s == 10 && w.res.end_s == 20 && w.res.reserved,
	   "all nodes: reserved for the time they end");
	run(&w, SLU_MATCH_WITHOUT_ALLOCATING_FUTURE, core, 6);
	ok(w.res.code == 0 && w.res.at_s == 20,
	   "a core is planned behind the reservation of all nodes");
	run(&w, SLU_MATCH_ALLOCATE_SATISFIABILITY, five, 6);
	ok(w.res.code == ENODEV, "a request for five of four nodes never fits");
	run(&w, SLU_MATCH_SATISFIABILITY, four, 0);
	ok(w.res.code == 0, "a request for four of four nodes can fit");
	slu_match_cancel(w.m, 2, &res);
	ok(res.code == 0 && !slu_match_has_job(w.m, 2), "a job is cancelled");
	run(&w, SLU_MATCH_ALLOCATE, mine, 7);
	ok(got(&w, 0, 0, "core0[1:x] core1[1:x] memory0[4:x] node1[1:x] rack0[1:s] cluster0[1:s] "),
	   "a reserved node is free until the reservation begins");
	slu_match_status_set(w.m, 1, SLU_DOWN);
	run(&w, SLU_MATCH_SATISFIABILITY, four, 0);
	ok(w.res.code == 0, "a rack that is down still counts for what can be");
	run(&w, SLU_MATCH_ALLOCATE, four, 8);
	ok(w.res.code == EBUSY, "a rack that is down does not count for an allocation");
	close_world(&w);
}

static void test_shrink(void)
{
	struct world w;
	struct slu_listing part = { .kind = SLU_LISTING_RV1 };
	struct slu_match_result res;
	struct slu_match *copy;
	struct slu_graph *g;
	bool full;

	open_world(&w, "low");
	run(&w, SLU_MATCH_ALLOCATE, four, 1);
	slu_vec_push(&part.ranks, 2);
	ok(slu_match_partial_cancel(w.m, 1, &part, &full, &res) == 0 && !res.code && !full,
	   "a partial cancel frees rank 2");
	g = slu_graph_clone(w.g);
	copy = slu_match_clone(w.m, g);
	run(&w, SLU_MATCH_ALLOCATE, whole, 2);
	ok(got(&w, 0, 0, "core0[1:x] core1[1:x] node2[1:s] rack1[1:s] cluster0[1:s] "),
	   "the rank that was given back is taken again");
	slu_match_remove_path(w.m, "/cluster0/rack1", &res);
	run(&w, SLU_MATCH_ALLOCATE_SATISFIABILITY, four, 3);
	ok(!res.code && w.res.code == ENODEV, "without its rack the machine is too small");
	slu_match_cancel(w.m, 1, &res);
	run(&w, SLU_MATCH_ALLOCATE, whole, 3);
	ok(got(&w, 0, 0, "core0[1:x] core1[1:x] node0[1:s] rack0[1:s] cluster0[1:s] "),
	   "what is left of the graph is allocated after a removal");
	{
		struct world c = { g, copy, SLU_BUF_INIT(1 << 16), { 0 } };

		run(&c, SLU_MATCH_ALLOCATE, whole, 2);
		ok(got(&c, 0, 0, "core0[1:x] core1[1:x] node2[1:s] rack1[1:s] cluster0[1:s] "),
		   "a copy made before has its own future");
		close_world(&c);
	}
	slu_listing_done(&part);
	close_world(&w);
}

/* Each allocation fails in turn; afterwards the answer is that of a world without failures. */
static void test_faults(const char *policy)
{
	char *expect;
	struct world w;
	bool good = true;
	long k;

	open_world(&w, policy);
	run(&w, SLU_MATCH_ALLOCATE, whole, 1);
	run(&w, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, four, 2);
	expect = slu_strdup(slu_buf_str(&w.text));
	close_world(&w);
	for (k = 0; good; k++) {
		int rc;

		open_world(&w, policy);
		run(&w, SLU_MATCH_ALLOCATE, whole, 1);
		slu_fault_arm(k);
		rc = run(&w, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, four, 2);
		if (!slu_fault_disarm()) {
			close_world(&w);
			break;
		}
		/* Some failures only cost speed. */
		good = rc == -ENOMEM || (!rc && !w.res.code);
		if (rc == -ENOMEM) {
			good = good && !slu_match_has_job(w.m, 2);
			run(&w, SLU_MATCH_ALLOCATE_ORELSE_RESERVE, four, 2);
		}
		good = good && got(&w, 0, 10, expect);
		if (!good)
			printf("# allocation %ld: %d\n", k, rc);
		close_world(&w);
	}
	ok(good && k > 10, "%s: %ld failing allocations leave no trace", policy, k);
	slu_free(expect);
}

int main(void)
{
	test_policies();
	test_time();
	test_shrink();
	test_faults("low");
	test_faults("first");
	test_faults("locality");
	return tap_done();
}
