#include "match/write_internal.h"

#include "wire/jsonw.h"

#define TEXT_MAX     ((size_t)1 << 31)
#define NAME_MAX_LEN ((size_t)1 << 20)

void slu_jgf_part_init(struct slu_jgf_part *j, bool shorthand)
{
	*j = (struct slu_jgf_part){ .shorthand = shorthand,
				    .nodes = SLU_BUF_INIT(TEXT_MAX),
				    .edges = SLU_BUF_INIT(TEXT_MAX),
				    .scratch = SLU_BUF_INIT(NAME_MAX_LEN) };
}

void slu_jgf_part_done(struct slu_jgf_part *j)
{
	slu_buf_done(&j->nodes);
	slu_buf_done(&j->edges);
	slu_buf_done(&j->scratch);
}

bool slu_jgf_part_empty(const struct slu_jgf_part *j)
{
	return !j->nodes.n && !j->edges.n;
}

void slu_jgf_part_reset(struct slu_jgf_part *j)
{
	slu_buf_reset(&j->nodes);
	slu_buf_reset(&j->edges);
}

static void put_text(struct slu_buf *b, const char *before, const char *s)
{
	slu_buf_puts(b, before);
	slu_json_quote(b, s, strlen(s));
}

static void put_number(struct slu_buf *b, const char *before, int64_t v)
{
	slu_buf_puts(b, before);
	slu_buf_i64(b, v);
}

/* Is the name basename + id, also when the id is -1? */
static bool is_default_name(const struct slu_graph *g, const struct slu_vertex *v, const char *name)
{
	const char *base = slu_graph_str(g, v->basename);
	size_t n = slu_intern_len(&g->strings, v->basename);
	char id[24], *end = id + sizeof id, *s = end;
	uint64_t u = v->id < 0 ? -(uint64_t)v->id : (uint64_t)v->id;

	if (v->name == SLU_NONE && v->id != -1)
		return true;
	*--s = '\0';
	do
		*--s = (char)('0' + u % 10);
	while (u /= 10);
	if (v->id < 0)
		*--s = '-';
	return !strncmp(name, base, n) && !strcmp(name + n, s);
}

static void put_properties(struct slu_buf *b, const struct slu_graph *g, const struct slu_vertex *v)
{
	const char *before = ", \"properties\": {";

	if (v->props == SLU_NONE)
		return;
	for (uint32_t p = v->props; p != SLU_NONE; p = g->prop.p[p].next) {
		put_text(b, before, slu_graph_str(g, g->prop.p[p].key));
		put_text(b, ": ", slu_graph_str(g, g->prop.p[p].val));
		before = ", ";
	}
	slu_buf_putc(b, '}');
}

/* Paths by order of first use of the subsystem's name. */
static void put_paths(struct slu_jgf_part *j, const struct slu_graph *g, const struct slu_vertex *v)
{
	struct slu_buf *b = &j->nodes;
	const char *before = ", \"paths\": {";
	int last = -1;

	for (;;) {
		uint32_t best = SLU_NONE;

		for (uint32_t p = v->path; p != SLU_NONE; p = g->path.p[p].next)
			if ((int)g->path.p[p].subsystem > last &&
			    (best == SLU_NONE ||
			     g->path.p[p].subsystem < g->path.p[best].subsystem))
				best = p;
		if (best == SLU_NONE)
			break;
		last = g->path.p[best].subsystem;
		put_text(b, before, slu_graph_subsystem_name(g, (uint8_t)last));
		slu_buf_reset(&j->scratch);
		slu_graph_path_text(g, best, &j->scratch);
		slu_buf_puts(b, ": ");
		slu_json_quote(b, slu_buf_str(&j->scratch), j->scratch.n);
		before = ", ";
	}
	if (last >= 0)
		slu_buf_putc(b, '}');
}

static void put_agfilter(struct slu_buf *b, const struct slu_graph *g,
			 const struct slu_emit_vertex *x)
{
	const char *before = ", \"agfilter\": {";

	if (!x->ag || !x->nag)
		return;
	for (uint32_t i = 0; i < x->nag; i++) {
		put_text(b, before, slu_graph_type_name(g, x->ag[i].type));
		slu_buf_printf(b, ": \"used:%" PRId64 ", total:%" PRId64 "\"", x->ag[i].used,
			       x->ag[i].total);
		before = ", ";
	}
	slu_buf_putc(b, '}');
}

int slu_jgf_part_vertex(struct slu_jgf_part *j, const struct slu_graph *g,
			const struct slu_emit_vertex *x)
{
	const struct slu_vertex *v = slu_graph_vertex(g, x->v);
	const char *type = slu_graph_type_name(g, v->type), *base = slu_graph_str(g, v->basename);
	struct slu_buf *b = &j->nodes;
	const char *name;

	if (j->shorthand && x->parent_exclusive) {
		j->incomplete = true;
		return 0;
	}
	name = slu_graph_name(g, x->v, &j->scratch);
	put_number(b, b->n ? ", {\"id\": \"" : "{\"id\": \"", v->uniq_id);
	put_text(b, "\", \"metadata\": {\"type\": ", type);
	if (strcmp(base, type) != 0)
		put_text(b, ", \"basename\": ", base);
	if (!is_default_name(g, v, name))
		put_text(b, ", \"name\": ", name);
	put_number(b, ", \"id\": ", v->id);
	put_number(b, ", \"rank\": ", v->rank);
	put_properties(b, g, v);
	if (*slu_graph_str(g, v->unit))
		put_text(b, ", \"unit\": ", slu_graph_str(g, v->unit));
	if (x->exclusive)
		slu_buf_puts(b, ", \"exclusive\": true");
	if (x->needs != 1)
		put_number(b, ", \"size\": ", x->needs);
	put_paths(j, g, v);
	if (x->label) {
		put_text(b, ", \"ephemeral\": {\"label\": ", x->label);
		slu_buf_putc(b, '}');
	}
	put_agfilter(b, g, x);
	slu_buf_puts(b, "}}");
	return b->error;
}

int slu_jgf_part_edge(struct slu_jgf_part *j, const struct slu_graph *g,
		      const struct slu_emit_edge *x)
{
	struct slu_buf *b = &j->edges;

	if (j->shorthand && x->src_exclusive) {
		j->incomplete = true;
		return 0;
	}
	put_number(b, b->n ? ", {\"source\": \"" : "{\"source\": \"",
		   slu_graph_vertex(g, x->src)->uniq_id);
	put_number(b, "\", \"target\": \"", slu_graph_vertex(g, x->dst)->uniq_id);
	slu_buf_putc(b, '"');
	if (x->subsystem) {
		put_text(b, ", \"metadata\": {\"subsystem\": ",
			 slu_graph_subsystem_name(g, x->subsystem));
		slu_buf_putc(b, '}');
	}
	slu_buf_putc(b, '}');
	return b->error;
}

int slu_jgf_part_emit(struct slu_jgf_part *j, struct slu_buf *out)
{
	if (j->nodes.error || j->edges.error)
		return j->nodes.error ? j->nodes.error : j->edges.error;
	if (!j->nodes.n || !j->edges.n)
		return -ENOENT;
	slu_buf_puts(out, "{\"graph\": {\"nodes\": [");
	slu_buf_add(out, j->nodes.p, j->nodes.n);
	slu_buf_puts(out, "], \"edges\": [");
	slu_buf_add(out, j->edges.p, j->edges.n);
	slu_buf_puts(out, "]}");
	if (j->incomplete)
		slu_buf_puts(out, ", \"writer\": \"fluxion:jgf_shorthand\"");
	slu_buf_putc(out, '}');
	if (!out->error)
		slu_jgf_part_reset(j);
	return out->error;
}
