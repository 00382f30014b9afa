/* listed.c — the vertices that a file of a job's resources names, found in the graph. */
#include "match/listed_internal.h"

uint32_t match_listed_at(const struct slu_match *m, const char *path, int64_t rank)
{
	uint32_t cursor = 0, v;

	while ((v = slu_graph_by_path(m->g, path, &cursor)) != SLU_NONE)
		if (m->g->v.p[v].rank == rank)
			return v;
	return SLU_NONE;
}

static void report_difference(struct slu_match *m, const char *key, const char *graph,
			      const char *file)
{
	slu_buf_printf(&m->msg, "%s=(%s, %s)", key, graph, file);
}

static void differ_num(struct slu_match *m, const char *key, int64_t graph, int64_t file)
{
	slu_buf_printf(&m->msg, "%s=(%" PRId64 ", %" PRId64 ")", key, graph, file);
}

/* Whether the listing and the vertex have the same properties. */
static bool same_properties(const struct slu_graph *g, const struct slu_vertex *y,
			    const struct slu_listing *l, const struct slu_listing_vertex *x)
{
	uint32_t p = y->props;

	for (uint32_t i = 0; i < x->nprops; i++, p = g->prop.p[p].next) {
		const struct slu_listing_prop *q = &l->props.p[x->prop + i];

		if (p == SLU_NONE || strcmp(slu_graph_str(g, g->prop.p[p].key), q->key) != 0 ||
		    strcmp(slu_graph_str(g, g->prop.p[p].val), q->val) != 0)
			return false;
	}
	return p == SLU_NONE;
}

static void differ_properties(struct slu_match *m, const struct slu_vertex *y,
			      const struct slu_listing *l, const struct slu_listing_vertex *x)
{
	const struct slu_graph *g = m->g;

	slu_buf_puts(&m->msg, " properties=(");
	for (uint32_t p = y->props; p != SLU_NONE; p = g->prop.p[p].next)
		slu_buf_printf(&m->msg, "%s=%s ", slu_graph_str(g, g->prop.p[p].key),
			       slu_graph_str(g, g->prop.p[p].val));
	slu_buf_puts(&m->msg, ", ");
	for (uint32_t i = 0; i < x->nprops; i++)
		slu_buf_printf(&m->msg, "%s=%s ", l->props.p[x->prop + i].key,
			       l->props.p[x->prop + i].val);
	slu_buf_puts(&m->msg, ")");
}

static bool same_paths(const struct slu_graph *g, uint32_t v, const struct slu_listing *l,
		       const struct slu_listing_vertex *x)
{
	uint32_t paths = 0;

	for (uint32_t p = g->v.p[v].path; p != SLU_NONE; p = g->path.p[p].next)
		paths++;
	for (uint32_t i = 0; i < x->npaths; i++) {
		const struct slu_listing_path *p = &l->paths.p[x->path + i];
		uint32_t s = slu_intern_find(&g->subsystems, p->subsystem);

		if (s == SLU_INTERN_NONE || !slu_graph_has_path(g, v, (uint8_t)s, p->path))
			return false;
	}
	return paths == x->npaths;
}

/* Compare both sides in the order of the subsystems' numbers. */
static void differ_paths(struct slu_match *m, uint32_t v, const struct slu_listing *l,
			 const struct slu_listing_vertex *x)
{
	const struct slu_graph *g = m->g;

	slu_buf_puts(&m->msg, " paths=(");
	for (uint32_t s = 0; s < g->subsystems.n; s++) {
		for (uint32_t p = g->v.p[v].path; p != SLU_NONE; p = g->path.p[p].next) {
			if (g->path.p[p].subsystem != s)
				continue;
			slu_buf_printf(&m->msg, "%s=", slu_graph_subsystem_name(g, (uint8_t)s));
			slu_graph_path_text(g, p, &m->msg);
			slu_buf_putc(&m->msg, ' ');
		}
	}
	slu_buf_puts(&m->msg, ", ");
	for (uint32_t s = 0; s <= g->subsystems.n; s++) {
		for (uint32_t i = 0; i < x->npaths; i++) {
			const struct slu_listing_path *p = &l->paths.p[x->path + i];
			uint32_t at = slu_intern_find(&g->subsystems, p->subsystem);

			if (SLU_MIN(at, g->subsystems.n) == s)
				slu_buf_printf(&m->msg, "%s=%s ", p->subsystem, p->path);
		}
	}
	slu_buf_puts(&m->msg, ")");
}

/* Everything that the file says about the vertex must be true of it, except the properties,
 * which may change. */
static bool agrees(struct slu_match *m, const struct slu_listing *l,
		   const struct slu_listing_vertex *x, uint32_t v)
{
	const struct slu_graph *g = m->g;
	const struct slu_vertex *y = &g->v.p[v];
	const char *type = slu_graph_type_name(g, y->type), *base = slu_graph_str(g, y->basename);
	struct slu_buf name = SLU_BUF_INIT(1 << 20);
	bool paths = same_paths(g, v, l, x), named = slu_graph_name_is(g, v, x->name);

	if (!strcmp(type, x->type) && !strcmp(base, x->basename) && y->size == x->size &&
	    y->rank == x->rank && y->id == x->id && named && paths)
		return true;
	slu_buf_printf(&m->msg, "find_vtx: inconsistent input vertex for %s.\n",
		       x->ref ? x->ref : "");
	if (strcmp(type, x->type) != 0)
		report_difference(m, "type", type, x->type);
	if (strcmp(base, x->basename) != 0)
		report_difference(m, " basename", base, x->basename);
	if (y->size != x->size)
		differ_num(m, " size", y->size, x->size);
	if (y->id != x->id)
		differ_num(m, " id", y->id, x->id);
	if (!named)
		report_difference(m, " name", slu_graph_name(g, v, &name), x->name);
	if (!same_properties(g, y, l, x))
		differ_properties(m, y, l, x);
	if (!paths)
		differ_paths(m, v, l, x);
	slu_buf_puts(&m->msg, ".\n");
	slu_buf_done(&name);
	return false;
}

int match_listed_find(struct slu_match *m, const struct slu_listing *l,
		      const struct slu_listing_vertex *x, uint32_t *out)
{
	uint32_t v = SLU_NONE;

	for (uint32_t i = 0; i < x->npaths; i++) {
		const char *path = l->paths.p[x->path + i].path;
		uint32_t u = match_listed_at(m, path, x->rank);

		if (u != SLU_NONE && v != SLU_NONE && u != v) {
			slu_buf_printf(&m->msg,
				       "find_vtx: inconsistent input vertex for %s (id=%s).\n"
				       "%" PRIu32 " != %" PRIu32 ".\n",
				       path, x->ref ? x->ref : "", u, v);
			return -EINVAL;
		}
		if (u == SLU_NONE) {
			slu_buf_printf(
				&m->msg,
				"exist: inconsistent input vertex: nonexistent path (%s) %s.\n",
				path, x->ref ? x->ref : "");
			return -EINVAL;
		}
		v = u;
	}
	if (v == SLU_NONE || !agrees(m, l, x, v))
		return -EINVAL;
	*out = v;
	return 0;
}
