/* hwloc's XML, with everything kept and with a list of kinds. */
#include "graph_check.h"

static int read_some(struct slu_graph *g, const char *text, size_t size, struct slu_buf *msg)
{
	struct slu_graph *h = slu_graph_new();

	check_graph(h, slu_read_hwloc(h, text, size, "node,socket,core,gpu,storage", msg));
	slu_graph_free(h);
	return slu_read_hwloc(g, text, size, NULL, msg);
}

FUZZ_READER(read_some(g, text, size, &msg))
