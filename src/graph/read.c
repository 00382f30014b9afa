#include "graph/read.h"

bool slu_read_knows(const char *format)
{
	static const char *const known[] = { "grug",          "hwloc",   "jgf",
					     "jgf_shorthand", "rv1exec", "rv1exec_force" };

	for (size_t i = 0; i < SLU_LEN(known); i++)
		if (!strcmp(format, known[i]))
			return true;
	return false;
}

int slu_read(struct slu_graph *g, const char *format, const char *text, size_t n, const char *allow,
	     struct slu_buf *msg)
{
	if (!strcmp(format, "hwloc"))
		return slu_read_hwloc(g, text, n, allow, msg);
	if (!strncmp(format, "jgf", 3)) {
		struct slu_graph_mark mark = slu_graph_mark(g);
		int rc = slu_read_jgf(g, text, n, msg);

		if (rc == -EEXIST)
			slu_graph_rollback(g, &mark);
		return rc == -EEXIST ? -EINVAL : rc;
	}
	if (!strncmp(format, "rv1exec", 7))
		return slu_read_rv1(g, text, n, msg);
	return slu_read_grug(g, text, n, msg);
}
