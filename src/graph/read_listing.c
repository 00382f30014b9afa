/* read_listing.c — read JGF and R into listings, the input of `update` and `partial-cancel`. */
#include "graph/jgf.h"
#include "graph/read.h"
#include "graph/rv1.h"

#define MSG_MAX      ((size_t)1 << 20)
#define VERTICES_MAX (1u << 22)

static const char *keep_text(struct slu_listing *l, const char *s)
{
	return slu_arena_strndup(&l->text, s, strlen(s));
}

/* End the listing here with the messages so far. */
static int end_listing(struct slu_listing *l, int rc, struct slu_buf *msg)
{
	if (rc == -ENOMEM || msg->error) {
		slu_buf_done(msg);
		return -ENOMEM;
	}
	l->error = keep_text(l, slu_buf_str(msg));
	l->broken = rc < 0;
	slu_buf_done(msg);
	return l->error ? 0 : -ENOMEM;
}

/* --- JGF --- */

static const char *default_name(struct slu_listing *l, const struct slu_jgf_node *x)
{
	struct slu_buf b = SLU_BUF_INIT(MSG_MAX);
	const char *s;

	slu_buf_puts(&b, x->basename);
	slu_buf_i64(&b, x->id);
	s = b.error ? NULL : keep_text(l, slu_buf_str(&b));
	slu_buf_done(&b);
	return s;
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct slu_listing_prop *)a)->key,
		      ((const struct slu_listing_prop *)b)->key);
}

static int list_properties(struct slu_listing *l, const struct slu_json *props,
			   struct slu_listing_vertex *v)
{
	v->prop = l->props.n;
	slu_json_each (props, it) {
		struct slu_listing_prop p = { .key = keep_text(l, it.key) };

		p.val = slu_json_is_str(it.val) ? keep_text(l, slu_json_str(it.val)) : "";
		if (!p.key || !p.val || slu_vec_push(&l->props, p) < 0)
			return -ENOMEM;
	}
	v->nprops = l->props.n - v->prop;
	if (v->nprops > 1)
		qsort(l->props.p + v->prop, v->nprops, sizeof *l->props.p, by_key);
	return 0;
}

struct reader {
	struct slu_listing *l;
	struct slu_intern ids;    /* the file's ids */
	SLU_VEC(uint32_t) vertex; /* per id */
	struct slu_buf msg;
};

static int list_node(void *arg, const struct slu_json *el)
{
	struct reader *r = arg;
	struct slu_listing *l = r->l;
	struct slu_listing_vertex v = { .path = l->paths.n };
	struct slu_jgf_node x;
	int rc = slu_jgf_node(el, &x, &r->msg);

	if (rc < 0)
		return rc;
	if (slu_intern_find(&r->ids, x.ref) != SLU_INTERN_NONE) {
		slu_buf_puts(&r->msg, "find_vtx: found duplicate JGF node id for ");
		slu_buf_puts(&r->msg, x.ref);
		slu_buf_puts(&r->msg, ".\n");
		return -EINVAL;
	}
	v.ref = keep_text(l, x.ref);
	v.type = keep_text(l, x.type);
	v.basename = keep_text(l, x.basename);
	v.name = x.name ? keep_text(l, x.name) : default_name(l, &x);
	v.id = x.id;
	v.uniq_id = x.uniq_id;
	v.rank = x.rank;
	v.size = x.size;
	v.exclusive = x.exclusive;
	if (!v.ref || !v.type || !v.basename || !v.name)
		return -ENOMEM;
	slu_json_each (x.paths, it) {
		struct slu_listing_path p;

		if (!it.obj || !slu_json_is_str(it.val))
			continue;
		p.subsystem = keep_text(l, it.key);
		p.path = keep_text(l, slu_json_str(it.val));
		if (!p.subsystem || !p.path || slu_vec_push(&l->paths, p) < 0)
			return -ENOMEM;
	}
	v.npaths = l->paths.n - v.path;
	if (list_properties(l, x.properties, &v) < 0 || slu_vec_push(&l->v, v) < 0)
		return -ENOMEM;
	if (slu_listing_frees(l, x.rank))
		return 0;
	if (slu_intern(&r->ids, x.ref) == SLU_INTERN_NONE)
		return -ENOMEM;
	return slu_vec_push(&r->vertex, l->v.n - 1);
}

static int list_edge(void *arg, const struct slu_json *el)
{
	struct reader *r = arg;
	struct slu_listing_edge e;
	struct slu_jgf_edge x;
	const char *subsystem;
	uint32_t src, dst;
	int rc = slu_jgf_edge(el, &x, &r->msg);

	r->l->has_edges = true;
	if (rc < 0)
		return rc;
	src = slu_intern_find(&r->ids, x.src);
	dst = slu_intern_find(&r->ids, x.dst);
	if (src == SLU_INTERN_NONE || dst == SLU_INTERN_NONE) {
		if (r->l->has_free)
			return 0; /* an edge of a vertex that is not listed */
		slu_buf_puts(&r->msg, "unpack_edge: source and/or target vertex not found");
		slu_buf_puts(&r->msg, x.src);
		slu_buf_puts(&r->msg, " -> ");
		slu_buf_puts(&r->msg, x.dst);
		slu_buf_puts(&r->msg, ".\n");
		return -EINVAL;
	}
	rc = slu_jgf_edge_subsystem(el, &subsystem, &r->msg);
	if (rc < 0)
		return rc;
	e.src = r->vertex.p[src];
	e.dst = r->vertex.p[dst];
	return slu_vec_push(&r->l->e, e);
}

int slu_jgf_listing(struct slu_listing *l, const char *text, size_t n, bool shorthand, bool edges)
{
	struct reader r = { .l = l, .msg = SLU_BUF_INIT(MSG_MAX) };
	struct slu_jgf j;
	int rc = slu_jgf_open(&j, text, n, &r.msg);

	l->kind = shorthand ? SLU_LISTING_JGF_SHORTHAND : SLU_LISTING_JGF;
	l->free_ranks = j.free_ranks;
	j.free_ranks = (struct slu_idset){ 0 };
	l->has_free = j.has_free;
	if (!rc)
		rc = slu_json_parts_each(&j.parts, j.nodes, list_node, &r);
	if (!rc && edges)
		rc = slu_json_parts_each(&j.parts, j.edges, list_edge, &r);
	slu_jgf_close(&j);
	slu_vec_done(&r.vertex);
	slu_intern_done(&r.ids);
	return end_listing(l, rc, &r.msg);
}

/* --- R --- */

struct lister {
	struct slu_listing *l;
	uint32_t node; /* position of the node visited last */
	struct slu_buf path;
};

static int push_vertex(struct lister *r, struct slu_listing_vertex v)
{
	struct slu_listing *l = r->l;
	struct slu_listing_path p = { .subsystem = "containment" };

	if (l->v.n >= VERTICES_MAX)
		return -EFBIG;
	v.size = 1;
	v.path = l->paths.n;
	v.npaths = 1;
	p.path = r->path.error ? NULL : keep_text(l, slu_buf_str(&r->path));
	if (!p.path || !v.type || !v.basename || !v.name || slu_vec_push(&l->paths, p) < 0 ||
	    slu_vec_push(&l->v, v) < 0)
		return -ENOMEM;
	return 0;
}

static int push_edge(struct lister *r, uint32_t src)
{
	return slu_vec_push(&r->l->e, (struct slu_listing_edge){ src, r->l->v.n - 1 });
}

static int list_rank(void *arg, const struct slu_rv1_node *x)
{
	struct lister *r = arg;
	struct slu_listing_vertex v = {
		.type = "node", .name = keep_text(r->l, x->host), .id = x->id, .rank = x->rank
	};
	int rc;

	v.basename = slu_arena_strndup(&r->l->text, x->host, x->basename);
	slu_buf_reset(&r->path);
	slu_buf_puts(&r->path, "/cluster0/");
	slu_buf_puts(&r->path, x->host);
	rc = push_vertex(r, v);
	r->node = r->l->v.n - 1;
	if (!rc)
		rc = push_edge(r, 0);
	return rc ? rc : slu_vec_push(&r->l->ranks, (int64_t)x->rank);
}

static int list_child(void *arg, const char *type, uint32_t id, uint32_t rank)
{
	struct lister *r = arg;
	struct slu_listing_vertex v = { .type = keep_text(r->l, type), .id = id, .rank = rank };
	size_t name;
	int rc;

	slu_buf_reset(&r->path);
	slu_buf_puts(&r->path, "/cluster0/");
	slu_buf_puts(&r->path, r->l->v.p[r->node].name);
	slu_buf_putc(&r->path, '/');
	name = r->path.n;
	slu_buf_puts(&r->path, type);
	slu_buf_i64(&r->path, id);
	v.basename = v.type;
	v.name = r->path.error ? NULL : keep_text(r->l, r->path.p + name);
	rc = push_vertex(r, v);
	return rc ? rc : push_edge(r, r->node);
}

int slu_rv1_listing(struct slu_listing *l, const char *text, size_t n)
{
	struct slu_buf msg = SLU_BUF_INIT(MSG_MAX);
	struct lister r = { .l = l, .path = SLU_BUF_INIT(MSG_MAX) };
	struct slu_rv1_visitor v = { list_rank, list_child, NULL, &r };
	struct slu_listing_vertex cluster = {
		.type = "cluster", .basename = "cluster", .name = "cluster0", .rank = -1
	};
	int rc;

	l->kind = SLU_LISTING_RV1;
	slu_buf_puts(&r.path, "/cluster0");
	rc = push_vertex(&r, cluster);
	if (!rc)
		rc = slu_rv1_walk(text, n, &v, &msg);
	slu_buf_done(&r.path);
	return end_listing(l, rc, &msg);
}

int slu_rv1_rank_listing(struct slu_listing *l, const char *text, size_t n)
{
	struct slu_buf msg = SLU_BUF_INIT(MSG_MAX);
	struct slu_idset s = { 0 };
	int rc = slu_rv1_ranks(text, n, &s);

	l->kind = SLU_LISTING_RV1;
	slu_idset_each (&s, id)
		rc = rc ? rc : slu_vec_push(&l->ranks, (int64_t)id);
	slu_idset_done(&s);
	return end_listing(l, rc, &msg);
}
