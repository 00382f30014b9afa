#include "graph/jgf.h"
#include "graph/read.h"

struct reader {
	struct slu_graph *g;
	struct slu_buf *msg;
	struct slu_intern ids;    /* the file's ids */
	SLU_VEC(uint32_t) vertex; /* per id */
	SLU_VEC(bool) fresh;      /* per id: made by this file */
	struct slu_map uniq;      /* uniq_id -> seen */
	struct slu_map out;       /* (source, uniq_id of target), once uniq_ids repeat */
	struct slu_map primed;    /* earlier vertices whose edges have been entered into `out` */
	bool repeats;
	bool clash; /* the id of the last vertex already names another vertex */
	bool known; /* the file named a vertex that was in the graph already */
	uint32_t start;
};

static int bad_element(struct reader *r, const char *what, const char *id, const char *end)
{
	slu_buf_puts(r->msg, what);
	slu_buf_puts(r->msg, id);
	slu_buf_puts(r->msg, end);
	return -EINVAL;
}

static bool is_root(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash && !strchr(slash + 1, '/');
}

/* A vertex of this rank under one of the paths, or SLU_NONE. */
static uint32_t find_vertex(struct reader *r, const struct slu_jgf_node *x)
{
	slu_json_each (x->paths, it) {
		const char *path = it.obj ? slu_json_str(it.val) : NULL;
		uint32_t cursor = 0, v;

		if (!path)
			continue;
		while ((v = slu_graph_by_path(r->g, path, &cursor)) != SLU_NONE)
			if (slu_graph_vertex(r->g, v)->rank == x->rank)
				return v;
	}
	return SLU_NONE;
}

static int set_paths(struct reader *r, const struct slu_jgf_node *x, uint32_t v)
{
	slu_json_each (x->paths, it) {
		const char *path = it.obj ? slu_json_str(it.val) : NULL;
		uint32_t sub;
		int rc;

		if (!it.obj)
			break;
		if (!path)
			return bad_element(r,
					   "fill_fetcher: malformed metadata in an JGF node for ",
					   x->ref, "\n");
		sub = slu_graph_subsystem(r->g, it.key);
		if (sub == SLU_NONE)
			return slu_graph_full(r->g);
		if (is_root(path) && slu_graph_root_set(r->g, (uint8_t)sub, v) < 0)
			return bad_element(r,
					   "add_graph_metadata: failed to add root metadata for ",
					   it.key, " subsystem. Possible duplicate root.\n");
		rc = slu_graph_path_set(r->g, v, (uint8_t)sub, path);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int set_properties(struct reader *r, const struct slu_jgf_node *x, uint32_t v)
{
	slu_json_each (x->properties, it) {
		const char *val = slu_json_str(it.val);
		int rc;

		if (!val)
			return bad_element(r,
					   "fill_fetcher: malformed metadata in an JGF node for ",
					   x->ref, "\n");
		rc = slu_graph_property_set(r->g, v, it.key, val);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int make_vertex(struct reader *r, const struct slu_jgf_node *x, uint32_t *out)
{
	struct slu_vertex_desc d = { .id = x->id,
				     .uniq_id = x->uniq_id,
				     .name = SLU_NONE,
				     .rank = (int32_t)x->rank,
				     .size = (uint32_t)x->size,
				     .status = (uint8_t)x->status };
	int rc;

	if (x->size < 0 || x->size > UINT32_MAX)
		return bad_element(r,
				   "create_vtx: planner_new returned NULL.\nsize out of range for ",
				   x->ref, ".\n");
	if (x->rank < -1 || x->rank > INT32_MAX)
		return bad_element(r, "create_vtx: rank out of range for ", x->ref, ".\n");
	if (r->g->v.n - r->start >= SLU_READ_MAX)
		return -EFBIG;
	d.type = slu_graph_type(r->g, x->type);
	d.basename = slu_graph_string(r->g, x->basename);
	if (x->name) {
		d.name = slu_graph_string(r->g, x->name);
	} else if (x->id == -1) {
		/* the default name ends in the id, even if the id is -1 */
		struct slu_buf b = SLU_BUF_INIT(1 << 20);

		slu_buf_printf(&b, "%s-1", x->basename);
		d.name = b.error ? SLU_NONE : slu_graph_string(r->g, slu_buf_str(&b));
		slu_buf_done(&b);
	}
	if (d.type == SLU_NONE)
		return slu_graph_full(r->g);
	if (d.basename == SLU_NONE || ((x->name || x->id == -1) && d.name == SLU_NONE))
		return -ENOMEM;
	*out = slu_graph_add(r->g, &d);
	if (*out == SLU_NONE)
		return -ENOMEM;
	rc = set_paths(r, x, *out);
	if (!rc)
		rc = set_properties(r, x, *out);
	if (!rc && slu_map_get(&r->uniq, (uint64_t)x->uniq_id))
		r->repeats = true;
	return rc ? rc : slu_map_put(&r->uniq, (uint64_t)x->uniq_id, 1);
}

static int read_node(void *arg, const struct slu_json *el)
{
	struct reader *r = arg;
	struct slu_jgf_node x;
	uint32_t v, id;
	bool fresh;
	int rc = slu_jgf_node(el, &x, r->msg);

	if (rc < 0)
		return rc;
	v = find_vertex(r, &x);
	fresh = v == SLU_NONE;
	id = slu_intern(&r->ids, x.ref);
	if (id == SLU_INTERN_NONE)
		return -ENOMEM;
	r->clash = id < r->vertex.n && !fresh;
	if (id < r->vertex.n)
		return fresh ? bad_element(r, "add_vtx: found duplicate JGF node id for ", x.ref,
					   ".\n")
			     : bad_element(r, "update_vmap: can't insert into vmap for ", x.ref,
					   ".\n");
	r->known |= !fresh;
	if (fresh) {
		struct slu_graph_mark mark = slu_graph_mark(r->g);

		rc = make_vertex(r, &x, &v);
		if (rc < 0)
			slu_graph_rollback(r->g, &mark);
	}
	if (!rc)
		rc = slu_vec_push(&r->vertex, v);
	return rc ? rc : slu_vec_push(&r->fresh, fresh);
}

static uint32_t find_id(const struct reader *r, const char *id)
{
	uint32_t i = slu_intern_find(&r->ids, id);

	return i < r->vertex.n ? i : SLU_INTERN_NONE;
}

static uint64_t out_key(const struct reader *r, uint32_t src, uint32_t dst)
{
	return slu_hash_u64((uint64_t)slu_graph_vertex(r->g, dst)->uniq_id) ^ src;
}

/* Note the edges that a vertex had before this file. */
static int prime(struct reader *r, uint32_t src)
{
	if (slu_map_get(&r->primed, src))
		return 0;
	slu_graph_each_out(r->g, src, e) if (slu_map_put(&r->out, out_key(r, src, r->g->e.p[e].dst),
							 1) < 0) return -ENOMEM;
	return slu_map_put(&r->primed, src, 1);
}

/* The reference keeps the out-edges of a vertex by the target's uniq_id, so it refuses two edges
 * with the same uniq_id. */
static int check_parallel(struct reader *r, uint32_t src, uint32_t dst, bool old)
{
	uint64_t key = out_key(r, src, dst);
	struct slu_buf b = SLU_BUF_INIT(1 << 20);

	if (old && prime(r, src) < 0)
		return -ENOMEM;
	old |= r->repeats;
	if (slu_graph_edge(r->g, src, dst) == SLU_NONE && !(old && slu_map_get(&r->out, key)))
		return old ? slu_map_put(&r->out, key, 1) : 0;
	slu_buf_puts(r->msg, "error inserting an edge to outedge metadata map: ");
	slu_buf_puts(r->msg, slu_graph_name(r->g, src, &b));
	slu_buf_puts(r->msg, " -> ");
	slu_buf_puts(r->msg, slu_graph_name(r->g, dst, &b));
	slu_buf_puts(r->msg, "; ");
	slu_buf_done(&b);
	return -EEXIST;
}

static int read_edge(void *arg, const struct slu_json *el)
{
	struct reader *r = arg;
	struct slu_jgf_edge x;
	uint32_t src, dst, sub;
	const char *name;
	int rc = slu_jgf_edge(el, &x, r->msg);

	if (rc < 0)
		return rc;
	src = find_id(r, x.src);
	dst = find_id(r, x.dst);
	if (src == SLU_INTERN_NONE || dst == SLU_INTERN_NONE) {
		bad_element(r, "unpack_edge: source and/or target vertex not found", x.src, " -> ");
		return bad_element(r, "", x.dst, ".\n");
	}
	rc = slu_jgf_edge_subsystem(el, &name, r->msg);
	if (rc < 0)
		return rc;
	if (!r->fresh.p[src] && !r->fresh.p[dst])
		return 0;
	sub = slu_graph_subsystem(r->g, name);
	if (sub == SLU_NONE)
		return slu_graph_full(r->g);
	rc = check_parallel(r, r->vertex.p[src], r->vertex.p[dst], !r->fresh.p[src]);
	if (!rc || (rc == -EEXIST &&
		    slu_graph_edge(r->g, r->vertex.p[src], r->vertex.p[dst]) == SLU_NONE)) {
		int linked = slu_graph_link(r->g, r->vertex.p[src], r->vertex.p[dst], (uint8_t)sub);

		rc = linked < 0 ? linked : rc;
	}
	return rc;
}

int slu_read_jgf(struct slu_graph *g, const char *text, size_t n, struct slu_buf *msg)
{
	struct slu_graph_mark mark = slu_graph_mark(g);
	struct reader r = { .g = g, .msg = msg, .start = g->v.n };
	struct slu_jgf j;
	int rc = slu_jgf_open(&j, text, n, msg);

	if (!rc) {
		size_t count = slu_json_parts_count(&j.parts, j.nodes);

		if (count < SLU_READ_MAX)
			rc = slu_graph_reserve(g, g->v.n + (uint32_t)count);
		if (!rc)
			rc = slu_json_parts_each(&j.parts, j.nodes, read_node, &r);
		/* In the reference a vertex that cannot be read only ends the list of vertices once
		 * one was found that is in the graph already; the edges decide then. */
		if (rc == -EINVAL && r.known && !r.clash)
			rc = 0;
		if (!rc)
			rc = slu_json_parts_each(&j.parts, j.edges, read_edge, &r);
		if (rc < 0 && rc != -EEXIST)
			slu_graph_rollback(g, &mark);
	}
	if (rc == -EFBIG)
		slu_buf_puts(msg, "unpack: the graph is too large.\n");
	slu_jgf_close(&j);
	slu_intern_done(&r.ids);
	slu_vec_done(&r.vertex);
	slu_vec_done(&r.fresh);
	slu_map_done(&r.uniq);
	slu_map_done(&r.out);
	slu_map_done(&r.primed);
	return rc;
}
