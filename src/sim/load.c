#include "sim/load.h"

#include "base/buf.h"
#include "graph/read.h"
#include "sim/input.h"
#include "sim/jsonl.h"
#include "sim/swf.h"

#include <stdio.h>

struct load {
	enum { UNKNOWN, SWF, JSONL } kind;
	struct slu_swf swf;
	struct slu_jsonl jsonl;
};

static int one_line(const char *p, size_t n, void *arg, struct slu_error *err)
{
	struct load *l = arg;

	for (size_t i = 0; i < n && l->kind == UNKNOWN; i++) {
		if (p[i] == '{' || p[i] == '#')
			l->kind = JSONL;
		else if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
			l->kind = SWF;
	}
	return l->kind == JSONL ? slu_jsonl_line(&l->jsonl, p, n, err)
				: slu_swf_line(&l->swf, p, n, err);
}

int slu_load_trace(const char *path, const struct slu_load_opts *o, struct slu_trace *t,
		   void (*note)(const char *text, void *arg), void *arg, struct slu_error *err)
{
	struct load l = { .swf = { .trace = t, .procs = o->procs, .strict = o->strict },
			  .jsonl = { .trace = t } };
	int rc = slu_input_lines(path, SLU_TRACE_MAX_LINE, one_line, &l, err);

	for (uint32_t i = 0; i < l.swf.nnote && note; i++) {
		char text[512];

		snprintf(text, sizeof text, "%.300s: line %" PRIu64 ": %s", path,
			 l.swf.note[i].line, l.swf.note[i].text);
		note(text, arg);
	}
	if (!rc && l.kind == JSONL) {
		rc = slu_jsonl_finish(&l.jsonl, err);
		if (rc < 0)
			slu_fail_prefix(err, rc, "%s", path);
	} else if (!rc && slu_trace_sort(t) < 0) {
		rc = slu_fail(err, -ENOMEM, "%s: out of memory", path);
	}
	slu_jsonl_done(&l.jsonl);
	if (!rc && !t->job.n)
		rc = slu_fail(err, -EINVAL,
			      "%s: no jobs in it (%" PRIu64 " records, %" PRIu64
			      " dropped, %" PRIu64 " malformed)",
			      path, t->records, t->dropped, t->malformed);
	return rc;
}

/* ---- machines ---- */

struct below {
	int64_t cores, gpus, memory;
};

/* Sum up what lies under a vertex; nodes below nodes are not followed. */
static void sum_below(const struct slu_graph *g, uint32_t v, int depth, struct below *b)
{
	slu_graph_each_out(g, v, e)
	{
		uint32_t c = g->e.p[e].dst;
		const struct slu_vertex *x = &g->v.p[c];
		const char *type = slu_graph_type_name(g, x->type);

		if (g->e.p[e].dead || g->e.p[e].subsystem || x->dead || depth > 32)
			continue;
		if (x->type == SLU_TYPE_CORE)
			b->cores += x->size;
		else if (x->type == SLU_TYPE_GPU)
			b->gpus += x->size;
		else if (!strcmp(type, "memory"))
			b->memory += (int64_t)x->size *
				     (!strcmp(slu_graph_str(g, x->unit), "GB")   ? INT64_C(1) << 30
				      : !strcmp(slu_graph_str(g, x->unit), "MB") ? INT64_C(1) << 20
										 : 1);
		else if (x->type != SLU_TYPE_NODE)
			sum_below(g, c, depth + 1, b);
	}
}

/* Path of the nearest vertex of a type above, interned. */
static uint32_t path_above(const struct slu_graph *g, uint32_t v, const char *type,
			   struct slu_trace *t, struct slu_buf *b)
{
	for (int depth = 0; depth < 64 && v != SLU_NONE; depth++) {
		uint32_t up = SLU_NONE;

		slu_graph_each_in(g, v, e)
		{
			if (!g->e.p[e].dead && !g->e.p[e].subsystem && up == SLU_NONE)
				up = g->e.p[e].src;
		}
		v = up;
		if (v == SLU_NONE || strcmp(slu_graph_type_name(g, g->v.p[v].type), type))
			continue;
		slu_buf_reset(b);
		if (!slu_graph_path_put(g, v, 0, b))
			slu_graph_name_put(g, v, b);
		return slu_intern(&t->str, slu_buf_str(b));
	}
	return SLU_INTERN_NONE;
}

static int node_of(const struct slu_graph *g, uint32_t v, struct slu_trace *t, struct slu_buf *b)
{
	struct slu_trace_node n = { .zone = path_above(g, v, "zone", t, b),
				    .block = path_above(g, v, "block", t, b),
				    .rack = path_above(g, v, "rack", t, b),
				    .prop = t->prop.n };
	struct below sum = { 0 };

	sum_below(g, v, 0, &sum);
	n.millicores = sum.cores * 1000;
	n.memory = sum.memory;
	n.gpus = (uint32_t)SLU_MIN(sum.gpus, (int64_t)1000000);
	slu_buf_reset(b);
	slu_graph_name_put(g, v, b);
	n.name = slu_intern(&t->str, slu_buf_str(b));
	for (uint32_t p = g->v.p[v].props; p != SLU_NONE; p = g->prop.p[p].next) {
		uint32_t id = slu_intern(&t->str, slu_graph_str(g, g->prop.p[p].key));

		if (id == SLU_INTERN_NONE || slu_vec_push(&t->prop, id) < 0)
			return -ENOMEM;
		n.nprop++;
	}
	if (n.name == SLU_INTERN_NONE || b->error || slu_vec_push(&t->node, n) < 0)
		return -ENOMEM;
	return 0;
}

static int add_text(const char *p, size_t n, void *arg, struct slu_error *err)
{
	struct slu_buf *b = arg;

	if (slu_buf_add(b, p, n) < 0 || slu_buf_putc(b, '\n') < 0)
		return slu_fail(err, b->error, "the file is too large");
	return 0;
}

static const char *guess(const char *path, const char *text)
{
	size_t n = strlen(path);

	if (n > 8 && !strcmp(path + n - 8, ".graphml"))
		return "grug";
	if (strstr(text, "<topology"))
		return "hwloc";
	if (strstr(text, "<graphml"))
		return "grug";
	if (strstr(text, "\"R_lite\""))
		return "rv1exec";
	return "jgf";
}

int slu_load_machine(const char *path, const char *format, struct slu_trace *t,
		     struct slu_error *err)
{
	struct slu_buf text = SLU_BUF_INIT((size_t)1 << 30), msg = SLU_BUF_INIT(64 << 10);
	slu_cleanup(slu_graph_freep) struct slu_graph *g = slu_graph_new();
	int rc = g ? slu_input_lines(path, (size_t)1 << 30, add_text, &text, err) : -ENOMEM;

	if (!rc && !format)
		format = guess(path, slu_buf_str(&text));
	if (!rc && !slu_read_knows(format))
		rc = slu_fail(err, -EINVAL, "%s: unknown format \"%s\"", path, format);
	else if (!rc) {
		rc = slu_read(g, format, slu_buf_str(&text), text.n, NULL, &msg);
		if (rc < 0)
			slu_fail(err, rc, "%s: not a machine in format %s: %.*s", path, format,
				 (int)strcspn(slu_buf_str(&msg), "\n"), slu_buf_str(&msg));
	}
	for (uint32_t v = 0; !rc && v < g->v.n; v++)
		if (!g->v.p[v].dead && g->v.p[v].type == SLU_TYPE_NODE)
			rc = node_of(g, v, t, &msg);
	if (!rc && !t->node.n)
		rc = slu_fail(err, -EINVAL, "%s: there is no node in this machine", path);
	slu_buf_done(&text);
	slu_buf_done(&msg);
	return rc == -ENOMEM ? slu_fail(err, rc, "%s: out of memory", path) : rc;
}
