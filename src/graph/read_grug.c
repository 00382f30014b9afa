#include "graph/read.h"
#include "graph/recipe.h"

typedef SLU_VEC(uint32_t) vertex_list;

struct generator {
	struct slu_graph *g;
	const struct slu_recipe *r;
	vertex_list *made;       /* per recipe vertex: what was generated for it */
	SLU_VEC(int32_t) scales; /* reversed: the reference inserts at the front */
	uint32_t start;          /* number of vertices in the graph before this recipe */
	uint32_t max;            /* and how many more the recipe may make */
	int32_t rank;
};

static int subsystem(struct generator *m, const char *name, uint8_t *out)
{
	uint32_t s = slu_graph_subsystem(m->g, name);

	if (s == SLU_NONE)
		return slu_graph_full(m->g);
	*out = (uint8_t)s;
	return 0;
}

/* Number of child i of the j-th parent. */
static int64_t child_id(const struct generator *m, const struct slu_recipe_edge *e, int32_t i,
			uint32_t j)
{
	uint64_t wrap = 1;
	uint32_t scope;

	if (e->scope < 0)
		return -1;
	if (!e->scope)
		return (int64_t)e->start + i;
	scope = SLU_MIN((uint32_t)e->scope, m->scales.n);
	/* A product above the number of parents makes no difference. */
	for (uint32_t k = 0; k < scope && wrap <= UINT32_MAX; k++)
		wrap *= (uint64_t)SLU_MAX(m->scales.p[m->scales.n - 1 - k], 0);
	if (!wrap)
		wrap = 1;
	return (int64_t)e->start + (int64_t)(j % wrap) * e->scale * e->stride +
	       (int64_t)i * e->stride;
}

/* A vertex of a recipe below `parent` (SLU_NONE: a root). */
static int make_vertex(struct generator *m, uint32_t u, uint32_t parent, int64_t id, uint32_t *out)
{
	const struct slu_recipe_vertex *rv = &m->r->v.p[u];
	struct slu_vertex_desc d = { .id = id,
				     .uniq_id = SLU_UNIQ_INDEX,
				     .rank = -1,
				     .name = SLU_NONE,
				     .size = (uint32_t)rv->size };
	uint8_t sub = 0;
	int rc = subsystem(m, rv->subsystem, &sub);

	if (rc < 0)
		return rc;
	if (m->g->v.n - m->start >= m->max)
		return -EFBIG;
	if (rv->size < 0 || rv->size > UINT32_MAX)
		return -ERANGE;
	d.type = slu_graph_type(m->g, rv->type);
	d.basename = slu_graph_string(m->g, rv->basename);
	d.unit = slu_graph_string(m->g, rv->unit);
	if (d.type == SLU_NONE)
		return slu_graph_full(m->g);
	if (d.basename == SLU_NONE || d.unit == SLU_NONE)
		return -ENOMEM;
	if (d.type == SLU_TYPE_NODE)
		d.rank = m->rank++;
	*out = slu_graph_add(m->g, &d);
	if (*out == SLU_NONE)
		return -ENOMEM;
	rc = slu_graph_path_under(m->g, *out, sub, parent);
	if (rc == -EINVAL) /* the parent is not in this subsystem */
		rc = slu_graph_path_under(m->g, *out, sub, SLU_NONE);
	if (!rc && parent == SLU_NONE)
		rc = slu_graph_root_set(m->g, sub, *out);
	return rc;
}

static int make_root(struct generator *m, uint32_t u)
{
	uint32_t v;
	uint8_t sub = 0;
	int rc = subsystem(m, m->r->v.p[u].subsystem, &sub);

	if (rc < 0)
		return rc;
	v = slu_graph_root(m->g, sub);
	if (v == SLU_NONE)
		rc = make_vertex(m, u, SLU_NONE, 0, &v);
	return rc < 0 ? rc : slu_vec_push(&m->made[u], v);
}

static int multiply(struct generator *m, const struct slu_recipe_edge *e)
{
	vertex_list *from = &m->made[e->src], *to = &m->made[e->dst];
	uint64_t total = (uint64_t)from->n * (uint64_t)SLU_MAX(e->scale, 0);
	uint8_t sub = 0;
	int rc = subsystem(m, e->subsystem, &sub);

	if (rc < 0)
		return rc;
	if (total > m->max)
		return -EFBIG;
	if (slu_vec_reserve(to, (uint32_t)total) < 0 ||
	    slu_graph_reserve(m->g, m->g->v.n + (uint32_t)total) < 0)
		return -ENOMEM;
	for (uint32_t j = 0; j < from->n; j++) {
		for (int32_t i = 0; i < e->scale; i++) {
			uint32_t v;

			rc = make_vertex(m, e->dst, from->p[j], child_id(m, e, i, j), &v);
			if (rc < 0)
				return rc;
			rc = slu_graph_link(m->g, from->p[j], v, sub);
			if (rc < 0)
				return rc;
			to->p[to->n++] = v;
		}
	}
	return slu_vec_push(&m->scales, e->scale);
}

static int associate(struct generator *m, const struct slu_recipe_edge *e, uint8_t sub,
		     uint32_t src, uint32_t dst)
{
	int rc = slu_graph_path_under(m->g, dst, sub, src);

	if (rc == -EINVAL)
		rc = slu_graph_path_under(m->g, dst, sub, SLU_NONE);
	if (!rc)
		rc = slu_graph_link(m->g, src, dst, sub);
	if (!rc && m->made[e->dst].n >= m->max)
		rc = -EFBIG;
	return rc < 0 ? rc : slu_vec_push(&m->made[e->dst], dst);
}

/* The length of the path without its last `up` components; 0 if the path has no more than that. */
static size_t prefix(const char *path, int32_t up)
{
	size_t n = strlen(path);
	int64_t slashes = 0;

	for (size_t i = 0; i < n; i++)
		slashes += path[i] == '/';
	if (up >= slashes)
		return 0;
	for (; up > 0; up--)
		while (n && path[--n] != '/')
			;
	return n;
}

static int path_prefix(struct generator *m, uint32_t v, uint8_t sub, int32_t up,
		       struct slu_buf *out)
{
	slu_buf_reset(out);
	slu_graph_path_put(m->g, v, sub, out);
	if (out->error)
		return out->error;
	if (out->p) {
		out->n = prefix(out->p, up);
		out->p[out->n] = '\0';
	}
	return 0;
}

/* Existing vertices of the target's type, in order of creation. */
static int targets(struct generator *m, const struct slu_recipe_edge *e, vertex_list *out)
{
	uint32_t type = slu_graph_type(m->g, m->r->v.p[e->dst].type);

	if (type == SLU_NONE ||
	    (m->made[e->src].n && slu_vec_push(&m->g->asked, (uint16_t)type) < 0))
		return -ENOMEM;
	for (uint32_t v = 0; v < m->g->v.n; v++) {
		const struct slu_vertex *x = slu_graph_vertex(m->g, v);

		if (x->type == type && !x->dead && slu_vec_push(out, v) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int associate_all(struct generator *m, const struct slu_recipe_edge *e)
{
	vertex_list *from = &m->made[e->src];
	vertex_list to = { 0 };
	uint8_t sub = 0;
	int rc = subsystem(m, e->subsystem, &sub);

	if (!rc)
		rc = targets(m, e, &to);
	for (uint32_t j = 0; j < from->n; j++)
		for (uint32_t i = 0; !rc && i < to.n; i++)
			rc = associate(m, e, sub, from->p[j], to.p[i]);
	slu_vec_done(&to);
	return rc;
}

/* Link only pairs with equal prefixes; to find them, chain the targets by prefix first. */
static int associate_by_path(struct generator *m, const struct slu_recipe_edge *e)
{
	vertex_list *from = &m->made[e->src];
	vertex_list to = { 0 }, next = { 0 }, head = { 0 }, tail = { 0 };
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct slu_intern prefixes = { 0 };
	uint8_t sub = 0, in = 0;
	int rc = subsystem(m, e->subsystem, &sub);

	if (!rc)
		rc = subsystem(m, e->tgt_subsystem, &in);
	if (!rc)
		rc = targets(m, e, &to);
	for (uint32_t i = 0; !rc && i < to.n; i++) {
		uint32_t p;

		rc = path_prefix(m, to.p[i], in, e->tgt_uplevel, &b);
		if (rc < 0)
			break;
		p = slu_intern_n(&prefixes, slu_buf_str(&b), b.n);
		if (p == SLU_INTERN_NONE || slu_vec_push(&next, SLU_NONE) < 0) {
			rc = -ENOMEM;
		} else if (p == head.n) {
			rc = slu_vec_push(&head, i) < 0 || slu_vec_push(&tail, i) < 0 ? -ENOMEM : 0;
		} else {
			next.p[tail.p[p]] = i;
			tail.p[p] = i;
		}
	}
	for (uint32_t j = 0; !rc && j < from->n; j++) {
		uint32_t p;

		rc = path_prefix(m, from->p[j], in, e->src_uplevel, &b);
		p = slu_intern_find_n(&prefixes, slu_buf_str(&b), b.n);
		for (uint32_t i = p == SLU_INTERN_NONE ? SLU_NONE : head.p[p]; !rc && i != SLU_NONE;
		     i = next.p[i])
			rc = associate(m, e, sub, from->p[j], to.p[i]);
	}
	slu_vec_done(&to);
	slu_vec_done(&next);
	slu_vec_done(&head);
	slu_vec_done(&tail);
	slu_buf_done(&b);
	slu_intern_done(&prefixes);
	return rc;
}

/* The edge leads to a recipe vertex that was not expanded yet: expand it for all parents at
 * once. */
static int tree_edge(struct generator *m, const struct slu_recipe_edge *e)
{
	int rc = 0;

	if (m->r->v.p[e->src].root && !m->made[e->src].n)
		rc = make_root(m, e->src);
	if (rc < 0)
		return rc;
	switch (e->method) {
	case SLU_GEN_MULTIPLY:
		return multiply(m, e);
	case SLU_GEN_ASSOCIATE_IN:
		return associate_all(m, e);
	case SLU_GEN_ASSOCIATE_BY_PATH_IN:
		return associate_by_path(m, e);
	case SLU_GEN_UNKNOWN:
		break; /* generates nothing and is not reported, as in the reference */
	}
	return 0;
}

/* Depth first over the recipe, without recursion: next[] is where each open vertex goes on. */
static int walk_recipe(struct generator *m, uint32_t start, bool *seen, uint32_t *next,
		       vertex_list *open)
{
	seen[start] = true;
	next[start] = m->r->v.p[start].first_edge;
	if (slu_vec_push(open, start) < 0)
		return -ENOMEM;
	while (open->n) {
		uint32_t u = open->p[open->n - 1], at = next[u];
		const struct slu_recipe_edge *e;
		int rc;

		if (at == SLU_NONE) {
			if (m->scales.n)
				m->scales.n--;
			open->n--;
			continue;
		}
		e = &m->r->e.p[at];
		next[u] = e->next;
		if (seen[e->dst])
			continue;
		rc = tree_edge(m, e);
		if (rc < 0)
			return rc;
		seen[e->dst] = true;
		next[e->dst] = m->r->v.p[e->dst].first_edge;
		if (slu_vec_push(open, e->dst) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Types are numbered in the order of the recipe's vertices. */
static int intern_types(struct generator *m)
{
	for (uint32_t i = 0; i < m->r->v.n; i++) {
		uint8_t sub;

		if (slu_graph_type(m->g, m->r->v.p[i].type) == SLU_NONE ||
		    subsystem(m, m->r->v.p[i].subsystem, &sub) < 0)
			return slu_graph_full(m->g);
	}
	return 0;
}

static int generate(struct generator *m)
{
	uint32_t n = m->r->v.n;
	bool *seen = slu_calloc(n + 1, sizeof *seen);
	uint32_t *next = slu_calloc(n + 1, sizeof *next);
	vertex_list open = { 0 };
	int rc = intern_types(m);

	m->made = slu_calloc(n + 1, sizeof *m->made);
	if (!seen || !next || !m->made)
		rc = -ENOMEM;
	for (uint32_t u = 0; !rc && u < n; u++)
		if (!seen[u])
			rc = walk_recipe(m, u, seen, next, &open);
	for (uint32_t u = 0; m->made && u < n; u++)
		slu_vec_done(&m->made[u]);
	slu_free(m->made);
	slu_free(seen);
	slu_free(next);
	slu_vec_done(&open);
	slu_vec_done(&m->scales);
	return rc;
}

int slu_read_grug_max(struct slu_graph *g, const char *text, size_t n, uint32_t max,
		      struct slu_buf *msg)
{
	struct slu_graph_mark mark = slu_graph_mark(g);
	struct slu_recipe r = { 0 };
	struct generator m = { .g = g, .r = &r, .start = g->v.n, .max = max };
	int rc = slu_recipe_parse(&r, text, n);

	if (rc == -EINVAL)
		slu_buf_puts(msg, "error in reading grug string; ");
	if (!rc) {
		rc = generate(&m);
		if (rc < 0)
			slu_graph_rollback(g, &mark);
	}
	if (rc == -EFBIG)
		slu_buf_puts(msg, "the recipe makes too many resources; ");
	else if (rc == -ERANGE)
		slu_buf_puts(msg, "the size of a resource is outside 0..4294967295; ");
	slu_recipe_done(&r);
	return rc == -ERANGE ? -EINVAL : rc;
}

int slu_read_grug(struct slu_graph *g, const char *text, size_t n, struct slu_buf *msg)
{
	return slu_read_grug_max(g, text, n, SLU_READ_MAX, msg);
}
