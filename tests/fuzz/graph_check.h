/* graph_check.h — a graph that was read holds together; one that was refused is empty. */
#pragma once
#include "fuzz.h"
#include "graph/read.h"

static void check_graph(struct slu_graph *g, int rc)
{
	struct slu_buf b = SLU_BUF_INIT((size_t)1 << 24);
	struct slu_graph_counts c;

	if (rc < 0) {
		must(g->live_v == 0 && g->live_e == 0);
		for (uint32_t s = 0; s < SLU_SUBSYSTEM_MAX; s++)
			must(g->root[s] == SLU_NONE);
		return;
	}
	must(slu_graph_counts(g, &c) == 0);
	must(c.vertices == g->live_v && c.edges == g->live_e);
	for (uint32_t v = 0; v < g->v.n && v < 1000; v++) {
		const struct slu_vertex *x = slu_graph_vertex(g, v);
		uint32_t cursor = 0, u, found = 0;

		slu_buf_reset(&b);
		slu_graph_name_put(g, v, &b);
		if (x->path != SLU_NONE) {
			slu_buf_reset(&b);
			slu_graph_path_text(g, x->path, &b);
			must(!b.error);
			while ((u = slu_graph_by_path(g, slu_buf_str(&b), &cursor)) != SLU_NONE)
				found += u == v;
			must(found > 0);
		}
		slu_graph_each_out(g, v, e) must(g->e.p[e].src == v && g->e.p[e].dst < g->v.n);
	}
	slu_buf_done(&b);
}

/* Read with one reader into a new graph. */
#define FUZZ_READER(call)                                            \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) \
	{                                                            \
		struct slu_graph *g = slu_graph_new();               \
		struct slu_buf msg = SLU_BUF_INIT((size_t)1 << 24);  \
		const char *text = (const char *)data;               \
		int rc = call;                                       \
                                                                     \
		check_graph(g, rc);                                  \
		slu_buf_done(&msg);                                  \
		slu_graph_free(g);                                   \
		return 0;                                            \
	}
