#include "graph/jgf.h"
#include "graph/read.h"

struct reader {
	struct slu_graph *g;
	struct slu_buf *msg;
	struct slu_intern ids;    /* the file's ids */
	SLU_VEC(uint32_t) vertex; /* per id; SLU_NONE: only an edge named it so far */
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
	bool fresh, taken;
	int rc = slu_jgf_node(el, &x, r->msg);

	if (rc < 0)
		return rc;
	v = find_vertex(r, &x);
	fresh = v == SLU_NONE;
	id = slu_intern(&r->ids, x.ref);
	if (id == SLU_INTERN_NONE)
		return -ENOMEM;
	taken = id < r->vertex.n && r->vertex.p[id] != SLU_NONE;
	r->clash = taken && !fresh;
	if (taken)
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
	while (!rc && r->vertex.n <= id)
		rc = slu_vec_push(&r->vertex, SLU_NONE);
	while (!rc && r->fresh.n <= id)
		rc = slu_vec_push(&r->fresh, false);
	if (rc < 0)
		return rc;
	r->vertex.p[id] = v;
	r->fresh.p[id] = fresh;
	return 0;
}

static uint64_t out_key(const struct reader *r, uint32_t src, uint32_t dst)
{
	return slu_hash_u64((uint64_t)slu_graph_vertex(r->g, dst)->uniq_id) ^ src;
}

/* Note the edges that a vertex had before this file. */
static int note_old_edges(struct reader *r, uint32_t src)
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

	if (old && note_old_edges(r, src) < 0)
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

/* Whether a vertex of this id of the file is in the graph; SLU_INTERN_NONE has none. */
static bool has_vertex(const struct reader *r, uint32_t id)
{
	return id < r->vertex.n && r->vertex.p[id] != SLU_NONE;
}

static int no_vertex(struct reader *r, const char *src, const char *dst)
{
	bad_element(r, "unpack_edge: source and/or target vertex not found", src, " -> ");
	return bad_element(r, "", dst, ".\n");
}

/* The edge between two ids of the file. */
static int join_vertices(struct reader *r, uint32_t src, uint32_t dst, const char *subsystem)
{
	uint32_t from = r->vertex.p[src], to = r->vertex.p[dst], sub;
	int rc;

	if (!r->fresh.p[src] && !r->fresh.p[dst])
		return 0;
	sub = slu_graph_subsystem(r->g, subsystem);
	if (sub == SLU_NONE)
		return slu_graph_full(r->g);
	rc = check_parallel(r, from, to, !r->fresh.p[src]);
	if (!rc || (rc == -EEXIST && slu_graph_edge(r->g, from, to) == SLU_NONE)) {
		int linked = slu_graph_link(r->g, from, to, (uint8_t)sub);

		rc = linked < 0 ? linked : rc;
	}
	return rc;
}

static int read_edge(void *arg, const struct slu_json *el)
{
	struct reader *r = arg;
	struct slu_jgf_edge x;
	uint32_t src, dst;
	const char *name;
	int rc = slu_jgf_edge(el, &x, r->msg);

	if (rc < 0)
		return rc;
	src = slu_intern_find(&r->ids, x.src);
	dst = slu_intern_find(&r->ids, x.dst);
	if (!has_vertex(r, src) || !has_vertex(r, dst))
		return no_vertex(r, x.src, x.dst);
	rc = slu_jgf_edge_subsystem(el, &name, r->msg);
	return rc < 0 ? rc : join_vertices(r, src, dst, name);
}

/* In the reference a vertex that cannot be read only ends the list of vertices once one was found
 * that is in the graph already; the edges decide then. */
static int after_nodes(const struct reader *r, int rc)
{
	return rc == -EINVAL && r->known && !r->clash ? 0 : rc;
}

static void too_large(struct slu_buf *msg)
{
	slu_buf_puts(msg, "unpack: the graph is too large.\n");
}

static void reader_done(struct reader *r)
{
	slu_intern_done(&r->ids);
	slu_vec_done(&r->vertex);
	slu_vec_done(&r->fresh);
	slu_map_done(&r->uniq);
	slu_map_done(&r->out);
	slu_map_done(&r->primed);
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
		rc = after_nodes(&r, rc);
		if (!rc)
			rc = slu_json_parts_each(&j.parts, j.edges, read_edge, &r);
		if (rc < 0 && rc != -EEXIST)
			slu_graph_rollback(g, &mark);
	}
	if (rc == -EFBIG)
		too_large(msg);
	slu_jgf_close(&j);
	reader_done(&r);
	return rc;
}

/* ---- a text that arrives in pieces ---- */

#define NO_LIST   UINT32_MAX
#define MSG_MAX   ((size_t)1 << 20)
#define MALFORMED UINT32_MAX /* a subsystem that is no string */

/* An edge by the file's ids and names; what they mean is known when all vertices are. */
struct pending {
	uint32_t src, dst, subsystem;
};

/* One of the two lists of the graph. */
struct list {
	uint32_t
		number; /* of the one read last, NO_LIST before the first; a later one replaces it */
	int rc;         /* the items behind a wrong one do not count */
	struct slu_buf msg;
};

struct slu_jgf_loader {
	struct slu_json_stream *text;
	struct reader r;
	struct list nodes, edges;
	struct list *now; /* the list under way; NULL: one of no interest */
	struct slu_intern subsystems;
	SLU_VEC(struct pending) edge;
};

static int begin_again(struct list *l, uint32_t number)
{
	l->number = number;
	l->rc = 0;
	slu_buf_reset(&l->msg);
	return 0;
}

/* Forget the vertices; edges that were read may name others of the same ids. */
static int clear_nodes(struct slu_jgf_loader *l)
{
	struct reader fresh = { .ids = l->r.ids, .g = slu_graph_new(), .msg = &l->nodes.msg };

	if (!fresh.g)
		return -ENOMEM;
	l->r.ids = (struct slu_intern){ 0 };
	reader_done(&l->r);
	slu_graph_free(l->r.g);
	l->r = fresh;
	return 0;
}

static int load_list(void *arg, uint32_t number, const char *outer, const char *inner)
{
	struct slu_jgf_loader *l = arg;

	l->now = NULL;
	if (strcmp(outer, "graph") != 0)
		return 0;
	if (!strcmp(inner, "nodes")) {
		l->now = &l->nodes;
		begin_again(l->now, number);
		return l->r.g && !l->r.vertex.n && !l->r.g->v.n ? 0 : clear_nodes(l);
	}
	if (!strcmp(inner, "edges")) {
		l->now = &l->edges;
		l->edge.n = 0;
		begin_again(l->now, number);
	}
	return 0;
}

static int load_edge(struct slu_jgf_loader *l, const struct slu_json *el)
{
	struct pending e = { .subsystem = MALFORMED };
	struct slu_jgf_edge x;
	const char *name;
	int rc = slu_jgf_edge(el, &x, &l->edges.msg);

	if (rc < 0)
		return rc;
	e.src = slu_intern(&l->r.ids, x.src);
	e.dst = slu_intern(&l->r.ids, x.dst);
	if (e.src == SLU_INTERN_NONE || e.dst == SLU_INTERN_NONE)
		return -ENOMEM;
	/* Report a wrong subsystem only if both ends exist. */
	rc = slu_jgf_edge_subsystem(el, &name, &l->edges.msg);
	if (!rc) {
		e.subsystem = slu_intern(&l->subsystems, name);
		if (e.subsystem == SLU_INTERN_NONE)
			return -ENOMEM;
	}
	return slu_vec_push(&l->edge, e) < 0 ? -ENOMEM : rc;
}

static int load_part(void *arg, const struct slu_json *items, size_t at, size_t n)
{
	struct slu_jgf_loader *l = arg;
	struct list *now = l->now;

	(void)at, (void)n;
	if (!now)
		return 0;
	for (struct slu_json_it it = slu_json_first(items); it.val && !now->rc; slu_json_next(&it))
		now->rc = now == &l->nodes ? read_node(&l->r, it.val) : load_edge(l, it.val);
	return now->rc == -ENOMEM ? -ENOMEM : 0;
}

/* Join the vertices by the edges in the order of the text; a wrong one was the last to be read. */
static int join_pending(struct slu_jgf_loader *l)
{
	struct reader *r = &l->r;

	slu_vec_each (&l->edge, struct pending, e) {
		int rc;

		if (!has_vertex(r, e->src) || !has_vertex(r, e->dst))
			return no_vertex(r, slu_intern_str(&r->ids, e->src),
					 slu_intern_str(&r->ids, e->dst));
		if (e->subsystem == MALFORMED)
			break;
		rc = join_vertices(r, e->src, e->dst, slu_intern_str(&l->subsystems, e->subsystem));
		if (rc < 0)
			return rc;
	}
	slu_buf_add(r->msg, slu_buf_str(&l->edges.msg), l->edges.msg.n);
	return l->edges.rc;
}

/* Whether the list that was read last is the one that counts: it may have been replaced by something
 * that is no list and so has no items. */
static bool is_chosen(const struct list *l, const struct slu_json *chosen)
{
	return l->number != NO_LIST && slu_json_is_arr(chosen) &&
	       slu_json_i64_or(slu_json_item(chosen, 0), -1) == l->number;
}

static int finish(struct slu_jgf_loader *l, struct slu_buf *msg)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *outline = NULL;
	struct slu_json_place place;
	struct slu_jgf j = { 0 };
	int rc = slu_json_stream_end(l->text, &outline, &place);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		return slu_jgf_not_json(&place, msg);
	rc = slu_jgf_outline(&j, slu_json_root(outline), msg);
	if (!rc && !is_chosen(&l->nodes, j.nodes)) {
		begin_again(&l->nodes, NO_LIST);
		rc = clear_nodes(l);
	}
	if (!rc && !is_chosen(&l->edges, j.edges)) {
		begin_again(&l->edges, NO_LIST);
		l->edge.n = 0;
	}
	slu_jgf_close(&j);
	if (rc < 0)
		return rc;
	slu_buf_add(msg, slu_buf_str(&l->nodes.msg), l->nodes.msg.n);
	l->r.msg = msg;
	rc = after_nodes(&l->r, l->nodes.rc);
	if (!rc)
		rc = join_pending(l);
	if (rc == -EFBIG)
		too_large(msg);
	return rc == -EEXIST ? -EINVAL : rc;
}

struct slu_jgf_loader *slu_jgf_loader_new(void)
{
	static const struct slu_json_stream_ops ops = { load_list, load_part };
	struct slu_jgf_loader *l = slu_calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->nodes = l->edges = (struct list){ .number = NO_LIST, .msg = SLU_BUF_INIT(MSG_MAX) };
	l->text = slu_json_stream_new(SLU_JSON_PART, &ops, l);
	if (!l->text || clear_nodes(l) < 0) {
		slu_jgf_loader_free(l);
		return NULL;
	}
	return l;
}

int slu_jgf_loader_feed(struct slu_jgf_loader *l, const char *p, size_t n)
{
	return slu_json_stream_feed(l->text, p, n);
}

static void forget_tables(struct slu_jgf_loader *l)
{
	slu_json_stream_free(slu_take(l->text));
	reader_done(&l->r);
	slu_intern_done(&l->subsystems);
	slu_vec_done(&l->edge);
	slu_buf_done(&l->nodes.msg);
	slu_buf_done(&l->edges.msg);
}

int slu_jgf_loader_end(struct slu_jgf_loader *l, struct slu_graph **out, struct slu_buf *msg)
{
	int rc = finish(l, msg);

	if (!rc)
		*out = slu_take(l->r.g);
	forget_tables(l); /* the user of the finished graph may need the memory */
	return rc;
}

void slu_jgf_loader_free(struct slu_jgf_loader *l)
{
	if (!l)
		return;
	forget_tables(l);
	slu_graph_free(l->r.g);
	slu_free(l);
}
