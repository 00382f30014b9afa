/* JGF as a graph, read twice (the second time everything is there already), in pieces, and as a
 * listing. */
#include "graph_check.h"
#include "jgf_pieces.h"

static void check_listing(const char *text, size_t size)
{
	for (int i = 0; i < 2; i++) {
		struct slu_listing l = { 0 };

		must(slu_jgf_listing(&l, text, size, i, true) == 0);
		for (uint32_t e = 0; e < l.e.n; e++)
			must(l.e.p[e].src < l.v.n && l.e.p[e].dst < l.v.n);
		for (uint32_t v = 0; v < l.v.n; v++)
			must(l.v.p[v].path + l.v.p[v].npaths <= l.paths.n);
		must(l.error);
		slu_listing_done(&l);
	}
}

/* What an edge that is there already leaves behind is taken back. */
static int read_once(struct slu_graph *g, const char *text, size_t size, struct slu_buf *msg)
{
	struct slu_graph_mark mark = slu_graph_mark(g);
	int rc = slu_read_jgf(g, text, size, msg);

	if (rc == -EEXIST)
		slu_graph_rollback(g, &mark);
	return rc;
}

static int read_twice(struct slu_graph *g, const char *text, size_t size, struct slu_buf *msg)
{
	int rc = read_once(g, text, size, msg);
	uint32_t n = g->live_v, e = g->live_e;

	if (!rc) {
		int again = read_once(g, text, size, msg);

		must(again < 0 ? g->live_v == n && g->live_e == e : g->live_v >= n);
	}
	check_listing(text, size);
	must(!pieces_differ(text, size, 1, 1));
	must(!pieces_differ(text, size, size ? 1 + (uint8_t)text[size / 2] % size : 1, 40));
	return rc;
}

FUZZ_READER(read_twice(g, text, size, &msg))
