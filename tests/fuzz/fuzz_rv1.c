/* R as a graph and as a listing. */
#include "graph_check.h"

static int read_both(struct slu_graph *g, const char *text, size_t size, struct slu_buf *msg)
{
	struct slu_listing l = { 0 };
	int rc = slu_read_rv1(g, text, size, msg);

	must(slu_rv1_listing(&l, text, size) == 0);
	must(rc < 0 || (!l.broken && l.v.n == g->live_v && l.e.n == g->live_e));
	slu_listing_done(&l);
	l = (struct slu_listing){ 0 };
	must(slu_rv1_rank_listing(&l, text, size) == 0);
	must(rc < 0 || !l.broken);
	slu_listing_done(&l);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_graph *g = slu_graph_new();
	struct slu_buf msg = SLU_BUF_INIT((size_t)1 << 24);

	if (!fuzz_number(data, size, 5, 9))
		check_graph(g, read_both(g, (const char *)data, size, &msg));
	slu_buf_done(&msg);
	slu_graph_free(g);
	return 0;
}
