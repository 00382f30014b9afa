#include "graph/graph.h"
#include "tap.h"

static uint32_t add(struct slu_graph *g, const char *type, int64_t id, const char *name)
{
	struct slu_vertex_desc d = {
		.type = slu_graph_type(g, type),
		.basename = slu_graph_string(g, type),
		.name = name ? slu_graph_string(g, name) : SLU_NONE,
		.id = id,
		.uniq_id = SLU_UNIQ_INDEX,
		.rank = -1,
		.size = 1,
	};

	return slu_graph_add(g, &d);
}

static bool path_is(const struct slu_graph *g, uint32_t v, uint8_t s, const char *want)
{
	struct slu_buf b = SLU_BUF_INIT(4096);
	bool good = slu_graph_path_put(g, v, s, &b) && strcmp(slu_buf_str(&b), want) == 0;

	slu_buf_done(&b);
	return good && slu_graph_has_path(g, v, s, want);
}

/* A path that is replaced is still counted and found, until its vertex is gone. */
static void test_replaced(void)
{
	slu_cleanup(slu_graph_freep) struct slu_graph *g = slu_graph_new();
	uint32_t root = add(g, "cluster", 0, NULL), v = add(g, "node", 1, NULL), cursor = 0;
	struct slu_graph_counts counts;

	slu_graph_path_under(g, root, 0, SLU_NONE);
	slu_graph_path_set(g, v, 0, "/cluster0/node1");
	slu_graph_path_set(g, v, 0, "/cluster0/rack0/node1");
	slu_vec_push(&g->asked, (uint16_t)slu_graph_type(g, "pdu"));
	ok(slu_graph_counts(g, &counts) == 0 && counts.by_path == 3 && counts.by_type == 3,
	   "both paths count, and a type that was only asked for: %u %u", counts.by_path,
	   counts.by_type);
	ok(slu_graph_by_path(g, "/cluster0/node1", &cursor) == v &&
		   path_is(g, v, 0, "/cluster0/rack0/node1"),
	   "the old path finds the vertex, the new one is its own");
	slu_graph_remove(g, v);
	cursor = 0;
	ok(slu_graph_by_path(g, "/cluster0/node1", &cursor) == SLU_NONE, "a dead one is not found");
}

static void test_build(void)
{
	slu_cleanup(slu_graph_freep) struct slu_graph *g = slu_graph_new();
	uint32_t root = add(g, "cluster", 0, NULL), cursor = 0, power, n;
	struct slu_buf b = SLU_BUF_INIT(64);
	struct slu_graph_counts counts;
	struct slu_graph_mark mark;

	ok(slu_graph_type(g, "cluster") == SLU_TYPE_CLUSTER &&
		   slu_graph_type(g, "storage_node") == SLU_TYPE_STORAGE_NODE,
	   "the first types have their numbers");
	ok(slu_graph_type(g, "memory") == SLU_TYPE_STORAGE_NODE + 1,
	   "further types are numbered after the first ones");
	slu_graph_path_under(g, root, 0, SLU_NONE);
	slu_graph_root_set(g, 0, root);
	for (int i = 0; i < 100; i++) {
		uint32_t v = add(g, "node", i, NULL), c;

		slu_graph_path_under(g, v, 0, root);
		slu_graph_link(g, root, v, 0);
		c = add(g, "core", 7, i % 2 ? "core7" : "odd");
		slu_graph_path_under(g, c, 0, v);
		slu_graph_link(g, v, c, 0);
	}
	ok(path_is(g, root, 0, "/cluster0") && path_is(g, 1, 0, "/cluster0/node0"),
	   "paths are derived from names");
	ok(slu_graph_by_path(g, "/cluster0/node99", &cursor) == 199,
	   "a vertex is found by its path");
	ok(slu_graph_by_path(g, "/cluster0/node99", &cursor) == SLU_NONE,
	   "exactly one vertex has the path");
	cursor = 0;
	ok(slu_graph_by_path(g, "/cluster0/node98/odd", &cursor) == 198, "an own name in the path");
	cursor = 0;
	ok(slu_graph_by_path(g, "/cluster0/node98/core7", &cursor) == SLU_NONE,
	   "a path that no vertex has finds none");
	ok(g->v.p[200].name == SLU_NONE && slu_graph_name_is(g, 200, "core7"),
	   "a name that is basename + id is not stored");
	ok(strcmp(slu_graph_name(g, 198, &b), "odd") == 0,
	   "a name that is not basename + id is stored");
	ok(slu_graph_link(g, root, 1, 3) == 0 && g->e.n == 200 && g->e.p[0].subsystem == 3,
	   "an edge that exists is re-used and changes its subsystem");

	power = slu_graph_subsystem(g, "power");
	ok(slu_graph_path_set(g, 1, (uint8_t)power, "/pdu3/x") == 0 &&
		   path_is(g, 1, 1, "/pdu3/x") && path_is(g, 1, 0, "/cluster0/node0"),
	   "a second path in another subsystem, given as text");
	ok(slu_graph_path_set(g, 3, (uint8_t)power, "/pdu3/x/node1") == 0 &&
		   g->path.p[g->path.n - 1].text == SLU_NONE && path_is(g, 3, 1, "/pdu3/x/node1"),
	   "a path below a known path is kept as derived");
	ok(slu_graph_path_set(g, 5, 0, "/cluster0/node0") == 0,
	   "two vertices may have the same path");
	cursor = 0;
	n = slu_graph_by_path(g, "/cluster0/node0", &cursor);
	ok(n == 1 && slu_graph_by_path(g, "/cluster0/node0", &cursor) == 5,
	   "vertices of one path are found in order of creation");

	ok(slu_graph_property_set(g, 1, "b", "2") == 0 &&
		   slu_graph_property_set(g, 1, "a", "1") == 0 &&
		   slu_graph_property_set(g, 1, "b", "3") == 0,
	   "properties are set and replaced");
	ok(strcmp(slu_graph_property(g, 1, "b"), "3") == 0 && !slu_graph_property(g, 1, "c"),
	   "the written vertices can be read");
	ok(strcmp(slu_graph_str(g, g->prop.p[g->v.p[1].props].key), "a") == 0,
	   "properties are sorted by key");

	ok(slu_graph_counts(g, &counts) == 0 && counts.vertices == 201 && counts.edges == 200 &&
		   counts.by_type == 3 && counts.by_name == 103 && counts.ranks == 1,
	   "counts: %u %u %u %u %u", counts.vertices, counts.edges, counts.by_type, counts.by_name,
	   counts.ranks);

	mark = slu_graph_mark(g);
	n = add(g, "gpu", 1, NULL);
	slu_graph_path_under(g, n, 0, 1);
	slu_graph_link(g, 1, n, 0);
	slu_graph_link(g, n, 2, 0);
	slu_graph_link(g, 1, add(g, "gpu", 2, NULL), 0);
	slu_graph_rollback(g, &mark);
	cursor = 0;
	ok(g->v.n == 201 && g->live_e == 200 &&
		   slu_graph_by_path(g, "/cluster0/node0/gpu1", &cursor) == SLU_NONE &&
		   g->e.p[g->v.p[1].out_first].next_out == SLU_NONE &&
		   g->v.p[1].out_last == g->v.p[1].out_first &&
		   g->e.p[g->v.p[2].in_first].next_in == SLU_NONE &&
		   g->v.p[2].in_last == g->v.p[2].in_first,
	   "rollback takes everything back");
	slu_graph_remove(g, 4);
	slu_graph_remove(g, 3);
	cursor = 0;
	ok(slu_graph_by_path(g, "/cluster0/node1", &cursor) == SLU_NONE && g->live_v == 199 &&
		   g->live_e == 198 && slu_graph_edge(g, root, 3) == SLU_NONE,
	   "removed vertices are gone");
	cursor = 0;
	ok(slu_graph_by_path(g, "/cluster0/node0", &cursor) == 1,
	   "other vertices keep their paths");
	slu_buf_done(&b);
}

static void test_many_in(void)
{
	slu_cleanup(slu_graph_freep) struct slu_graph *g = slu_graph_new();
	slu_cleanup(slu_graph_freep) struct slu_graph *c = NULL;
	uint32_t hub = add(g, "cluster", 0, NULL), n;
	const uint32_t *r;

	for (int i = 0; i < 300; i++) {
		uint32_t v = add(g, "node", i, NULL);

		g->v.p[v].rank = i % 7;
		slu_graph_link(g, v, hub, 0);
	}
	ok(slu_graph_edge(g, 300, hub) == 299 && slu_graph_edge(g, 5, hub) == 4,
	   "edges of a vertex with many neighbours are found");
	slu_graph_link(g, 200, hub, 0);
	ok(g->e.n == 300, "a freed number is re-used");
	r = slu_graph_by_rank(g, 3, &n);
	ok(n == 43 && r[0] == 4 && r[42] == 298, "vertices of a rank come in order of creation");
	ok(slu_graph_by_rank(g, 9, &n) == NULL && n == 0, "a rank that no vertex has finds none");
	c = slu_graph_clone(g);
	slu_graph_remove(g, 4);
	r = slu_graph_by_rank(g, 3, &n);
	ok(n == 42 && r[0] == 11, "a removed vertex is not found by its rank");
	r = slu_graph_by_rank(c, 3, &n);
	ok(n == 43 && slu_graph_edge(c, 4, hub) == 3, "a clone keeps its vertices and edges");
}

static int fault_scenario(void)
{
	slu_cleanup(slu_graph_freep) struct slu_graph *g = slu_graph_new();
	struct slu_graph *c;
	uint32_t prev = SLU_NONE;

	if (!g)
		return -ENOMEM;
	for (int i = 0; i < 90; i++) {
		struct slu_vertex_desc d = { .type = SLU_TYPE_CORE, .id = i, .name = SLU_NONE };
		uint32_t v;

		d.basename = slu_graph_string(g, "core");
		if (d.basename == SLU_NONE)
			return -ENOMEM;
		v = slu_graph_add(g, &d);
		if (v == SLU_NONE || slu_graph_path_under(g, v, 0, prev) < 0 ||
		    slu_graph_property_set(g, v, "k", "v") < 0 ||
		    (prev != SLU_NONE && slu_graph_link(g, prev, v, 0) < 0))
			return -ENOMEM;
		if (i % 20 == 0)
			prev = v;
	}
	c = slu_graph_clone(g);
	slu_graph_free(c);
	return c ? 0 : -ENOMEM;
}

int main(void)
{
	test_build();
	test_replaced();
	test_many_in();
	for (long k = 0;; k++) {
		int rc;

		slu_fault_arm(k);
		rc = fault_scenario();
		if (!slu_fault_disarm()) {
			ok(rc == 0, "clean after %ld faults", k);
			break;
		}
		if (rc != -ENOMEM)
			ok(false, "allocation %ld fails cleanly", k);
	}
	return tap_done();
}
