#include "match/write.h"

#include "match/write_internal.h"
#include "wire/jsonw.h"

#define TEXT_MAX ((size_t)1 << 31)

struct slu_writer {
	enum slu_format format;
	struct slu_buf lines; /* simple, pretty_simple */
	SLU_VEC(size_t) line; /* where each one begins */
	struct slu_jgf_part jgf;
	struct slu_rlite_part rlite;
	int64_t at_s, end_s;
	char *queue; /* stays for later jobs */
};

static const char *const names[] = {
	[SLU_FORMAT_SIMPLE] = "simple",
	[SLU_FORMAT_PRETTY_SIMPLE] = "pretty_simple",
	[SLU_FORMAT_JGF] = "jgf",
	[SLU_FORMAT_JGF_SHORTHAND] = "jgf_shorthand",
	[SLU_FORMAT_RLITE] = "rlite",
	[SLU_FORMAT_RV1] = "rv1",
	[SLU_FORMAT_RV1_NOSCHED] = "rv1_nosched",
	[SLU_FORMAT_RV1_SHORTHAND] = "rv1_shorthand",
};

int slu_format_parse(const char *name, enum slu_format *out)
{
	for (size_t i = 0; i < SLU_LEN(names); i++) {
		if (!strcmp(name, names[i])) {
			*out = (enum slu_format)i;
			return 0;
		}
	}
	return -EINVAL;
}

static bool has_rlite(const struct slu_writer *w)
{
	return w->format >= SLU_FORMAT_RLITE;
}

static bool has_jgf(const struct slu_writer *w)
{
	switch (w->format) {
	case SLU_FORMAT_JGF:
	case SLU_FORMAT_JGF_SHORTHAND:
	case SLU_FORMAT_RV1:
	case SLU_FORMAT_RV1_SHORTHAND:
		return true;
	default:
		return false;
	}
}

struct slu_writer *slu_writer_new(enum slu_format f)
{
	struct slu_writer *w = slu_calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->format = f;
	w->lines = SLU_BUF_INIT(TEXT_MAX);
	slu_jgf_part_init(&w->jgf, f == SLU_FORMAT_JGF_SHORTHAND || f == SLU_FORMAT_RV1_SHORTHAND);
	slu_rlite_part_init(&w->rlite);
	return w;
}

void slu_writer_free(struct slu_writer *w)
{
	if (!w)
		return;
	slu_buf_done(&w->lines);
	slu_vec_done(&w->line);
	slu_jgf_part_done(&w->jgf);
	slu_rlite_part_done(&w->rlite);
	slu_free(w->queue);
	slu_free(w);
}

static int simple_vertex(struct slu_writer *w, const struct slu_graph *g,
			 const struct slu_emit_vertex *x)
{
	bool pretty = w->format == SLU_FORMAT_PRETTY_SIMPLE;
	struct slu_buf *b = &w->lines;

	if (pretty && slu_vec_push(&w->line, b->n) < 0)
		return -ENOMEM;
	slu_buf_add(b, "      ", 6);
	for (uint32_t i = 0; i < x->level; i++)
		slu_buf_add(b, "---", 3);
	slu_graph_name_put(g, x->v, b);
	slu_buf_putc(b, '[');
	slu_buf_i64(b, x->needs);
	if (pretty)
		slu_buf_puts(b, x->exclusive ? ":exclusive]\n" : ":shared]\n");
	else
		slu_buf_puts(b, x->exclusive ? ":x]\n" : ":s]\n");
	return b->error;
}

static int on_vertex(void *arg, const struct slu_graph *g, const struct slu_emit_vertex *x)
{
	struct slu_writer *w = arg;
	int rc = 0;

	if (w->format <= SLU_FORMAT_PRETTY_SIMPLE)
		return simple_vertex(w, g, x);
	if (has_rlite(w))
		rc = slu_rlite_part_vertex(&w->rlite, g, x);
	if (!rc && has_jgf(w))
		rc = slu_jgf_part_vertex(&w->jgf, g, x);
	return rc;
}

static int on_edge(void *arg, const struct slu_graph *g, const struct slu_emit_edge *x)
{
	struct slu_writer *w = arg;

	return has_jgf(w) ? slu_jgf_part_edge(&w->jgf, g, x) : 0;
}

static int on_leaves(void *arg, const struct slu_graph *g, const struct slu_emit_leaves *x)
{
	struct slu_writer *w = arg;

	return slu_rlite_part_leaves(&w->rlite, g, x);
}

static int on_times(void *arg, int64_t at_s, int64_t end_s)
{
	slu_writer_times(arg, at_s, end_s);
	return 0;
}

static int on_queue(void *arg, const char *queue)
{
	struct slu_writer *w = arg;
	char *q = slu_strdup(queue);

	if (!q)
		return -ENOMEM;
	slu_free(w->queue);
	w->queue = q;
	return 0;
}

struct slu_sink slu_writer_sink(struct slu_writer *w)
{
	static const struct slu_writer_ops ops = {
		.vertex = on_vertex, .edge = on_edge, .times = on_times, .queue = on_queue
	};
	static const struct slu_writer_ops brief = {
		.vertex = on_vertex, .leaves = on_leaves, .times = on_times, .queue = on_queue
	};

	return (struct slu_sink){ has_rlite(w) && !has_jgf(w) ? &brief : &ops, w };
}

void slu_writer_times(struct slu_writer *w, int64_t at_s, int64_t end_s)
{
	w->at_s = at_s;
	w->end_s = end_s;
}

static int emit_lines(struct slu_writer *w, struct slu_buf *out)
{
	if (w->lines.error)
		return w->lines.error;
	if (w->format == SLU_FORMAT_SIMPLE) {
		slu_buf_add(out, slu_buf_str(&w->lines), w->lines.n);
	} else {
		size_t end = w->lines.n;

		for (uint32_t i = w->line.n; i-- > 0;) {
			slu_buf_add(out, w->lines.p + w->line.p[i], end - w->line.p[i]);
			end = w->line.p[i];
		}
	}
	if (!out->error) {
		slu_buf_reset(&w->lines);
		w->line.n = 0;
	}
	return out->error;
}

static int emit_rv1(struct slu_writer *w, struct slu_buf *out)
{
	size_t start = out->n;
	int rc;

	slu_buf_puts(out, "{\"version\": 1, \"execution\": {");
	rc = slu_rlite_part_emit_execution(&w->rlite, out);
	if (!rc) {
		slu_buf_puts(out, ", \"starttime\": ");
		slu_buf_i64(out, w->at_s);
		slu_buf_puts(out, ", \"expiration\": ");
		slu_buf_i64(out, w->end_s);
		slu_buf_putc(out, '}');
		if (has_jgf(w)) {
			slu_buf_puts(out, ", \"scheduling\": ");
			rc = slu_jgf_part_emit(&w->jgf, out);
		}
	}
	if (rc < 0) {
		if (out->p) {
			out->n = start;
			out->p[start] = '\0';
		}
		return rc;
	}
	if (has_jgf(w) && w->queue) {
		slu_buf_puts(out, ", \"attributes\": {\"system\": {\"scheduler\": {\"queue\": ");
		slu_json_quote(out, w->queue, strlen(w->queue));
		slu_buf_puts(out, "}}}");
	}
	slu_buf_puts(out, "}\n");
	return out->error;
}

int slu_writer_emit(struct slu_writer *w, struct slu_buf *out)
{
	int rc = 0;

	switch (w->format) {
	case SLU_FORMAT_SIMPLE:
	case SLU_FORMAT_PRETTY_SIMPLE:
		return emit_lines(w, out);
	case SLU_FORMAT_JGF:
	case SLU_FORMAT_JGF_SHORTHAND:
		if (slu_jgf_part_empty(&w->jgf))
			return 0;
		rc = slu_jgf_part_emit(&w->jgf, out);
		break;
	case SLU_FORMAT_RLITE:
		rc = slu_rlite_part_emit(&w->rlite, out);
		break;
	case SLU_FORMAT_RV1:
	case SLU_FORMAT_RV1_SHORTHAND:
		if (slu_rlite_part_empty(&w->rlite) || slu_jgf_part_empty(&w->jgf))
			return 0;
		return emit_rv1(w, out);
	case SLU_FORMAT_RV1_NOSCHED:
		return slu_rlite_part_empty(&w->rlite) ? 0 : emit_rv1(w, out);
	}
	if (!rc)
		slu_buf_putc(out, '\n');
	return rc ? rc : out->error;
}

void slu_writer_reset(struct slu_writer *w)
{
	slu_buf_reset(&w->lines);
	w->line.n = 0;
	slu_jgf_part_reset(&w->jgf);
	slu_rlite_part_reset(&w->rlite);
}
