#include "graph/read.h"
#include "graph/rv1.h"

struct reader {
	struct slu_graph *g;
	struct slu_buf *msg;
	struct slu_map seen; /* ranks made already */
	uint32_t cluster, node, start;
	uint32_t type; /* of the children read last, as strings in the graph */
	uint32_t basename;
	const char *type_name;
};

static int add_vertex(struct reader *r, struct slu_vertex_desc *d, uint32_t parent, uint32_t *out)
{
	int rc;

	d->uniq_id = SLU_UNIQ_INDEX;
	d->size = 1;
	if (r->g->v.n - r->start >= SLU_READ_MAX)
		return -EFBIG;
	if (d->type == SLU_NONE)
		return slu_graph_full(r->g);
	if (d->basename == SLU_NONE)
		return -ENOMEM;
	*out = slu_graph_add(r->g, d);
	if (*out == SLU_NONE)
		return -ENOMEM;
	rc = slu_graph_path_under(r->g, *out, 0, parent);
	if (!rc)
		rc = parent == SLU_NONE ? slu_graph_root_set(r->g, 0, *out)
					: slu_graph_link(r->g, parent, *out, 0);
	return rc;
}

static int add_cluster(struct reader *r)
{
	struct slu_vertex_desc d = { .type = SLU_TYPE_CLUSTER, .name = SLU_NONE, .rank = -1 };

	d.basename = slu_graph_string(r->g, "cluster");
	return add_vertex(r, &d, SLU_NONE, &r->cluster);
}

static int on_node(void *arg, const struct slu_rv1_node *x)
{
	struct slu_vertex_desc d = { .type = SLU_TYPE_NODE, .id = x->id, .rank = (int32_t)x->rank };
	struct reader *r = arg;
	int rc;

	if (slu_map_get(&r->seen, x->rank)) {
		slu_buf_puts(r->msg, "add_or_update: found duplicate vertex in graph for ");
		slu_buf_puts(r->msg, x->host);
		slu_buf_puts(r->msg, ".\nunpack_rank: failed unpacking rank for ");
		slu_buf_puts(r->msg, x->host);
		slu_buf_puts(r->msg, ".\n");
		return -EINVAL;
	}
	rc = slu_map_put(&r->seen, x->rank, 0);
	if (rc < 0)
		return rc;
	d.basename = slu_graph_string_n(r->g, x->host, x->basename);
	d.name = slu_graph_string(r->g, x->host);
	if (d.name == SLU_NONE)
		return -ENOMEM;
	return add_vertex(r, &d, r->cluster, &r->node);
}

static int on_child(void *arg, const char *type, uint32_t id, uint32_t rank)
{
	struct slu_vertex_desc d = { .id = id, .rank = (int32_t)rank, .name = SLU_NONE };
	struct reader *r = arg;
	uint32_t v;

	if (r->type_name != type) {
		r->type = slu_graph_type(r->g, type);
		r->basename = slu_graph_string(r->g, type);
		r->type_name = type;
	}
	d.type = r->type;
	d.basename = r->basename;
	return add_vertex(r, &d, r->node, &v);
}

static int on_property(void *arg, const char *key)
{
	struct reader *r = arg;

	return *key ? slu_graph_property_set(r->g, r->node, key, "") : 0;
}

int slu_read_rv1(struct slu_graph *g, const char *text, size_t n, struct slu_buf *msg)
{
	struct slu_graph_mark mark = slu_graph_mark(g);
	struct reader r = { .g = g, .msg = msg, .start = g->v.n };
	struct slu_rv1_visitor v = { on_node, on_child, on_property, &r };
	int rc = n ? add_cluster(&r) : -EINVAL;

	if (!rc)
		rc = slu_rv1_walk(text, n, &v, msg);
	if (rc < 0)
		slu_graph_rollback(g, &mark);
	slu_map_done(&r.seen);
	return rc == -EEXIST ? -EINVAL : rc;
}
