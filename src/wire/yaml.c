#include "wire/yaml.h"

#include <yaml.h>

#include "base/vec.h"
#include "wire/doc_internal.h"

#define MAX_BYTES  ((size_t)16 << 20)
#define MAX_DEPTH  128u
#define MAX_VALUES (4u << 20)

struct anchor {
	char *name;          /* in the document's arena */
	uint32_t first, end; /* values; end 0 while the anchored node is still open */
};

struct reader {
	struct slu_json_doc *doc;
	struct slu_error *err;
	yaml_parser_t parser;
	unsigned flags;
	uint32_t max_depth, max_values, cap;
	uint32_t open[MAX_DEPTH];  /* indices of the containers around the current place */
	uint32_t items[MAX_DEPTH]; /* values seen in each, keys counted too */
	uint32_t depth;
	SLU_VEC(struct anchor) anchors;
};

static int fail_at(struct reader *r, int code, yaml_mark_t at, const char *what)
{
	return slu_fail(r->err, code, "line %zu, column %zu: %s", at.line + 1, at.column + 1, what);
}

static int reserve(struct reader *r, uint32_t more, yaml_mark_t at)
{
	struct slu_json_doc *d = r->doc;
	uint32_t cap;
	void *p;

	if (more > r->max_values - d->n)
		return fail_at(r, -EMSGSIZE, at, "too many values");
	if (d->n + more <= r->cap)
		return 0;
	cap = SLU_MAX(r->cap * 2, (uint32_t)32);
	cap = SLU_MAX(cap, d->n + more);
	p = slu_reallocarray(d->val, cap, sizeof *d->val);
	if (!p)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	d->val = p;
	p = slu_reallocarray(d->mark, cap, sizeof *d->mark);
	if (!p)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	d->mark = p;
	r->cap = cap;
	return 0;
}

/* Called before a value is added at the current place. */
static int check_place(struct reader *r, bool scalar, yaml_mark_t at)
{
	if (!r->depth)
		return 0;
	if ((r->doc->val[r->open[r->depth - 1]].tag & 7) == TAG_OBJ &&
	    r->items[r->depth - 1] % 2 == 0 && !scalar)
		return fail_at(r, -EINVAL, at, "a mapping key must be a scalar");
	r->items[r->depth - 1]++;
	return 0;
}

static bool is_key(const struct reader *r)
{
	return r->depth && (r->doc->val[r->open[r->depth - 1]].tag & 7) == TAG_OBJ &&
	       r->items[r->depth - 1] % 2 == 1;
}

static struct slu_json *push_value(struct reader *r, yaml_mark_t at)
{
	struct slu_json_doc *d = r->doc;

	d->mark[d->n] = (struct mark){ (uint32_t)at.line + 1, (uint32_t)at.column + 1 };
	return &d->val[d->n++];
}

static int add_anchor(struct reader *r, const yaml_char_t *name, bool open)
{
	struct anchor a = { .first = r->doc->n, .end = open ? 0 : r->doc->n + 1 };
	const char *s = (const char *)name;

	if (!s)
		return 0;
	a.name = slu_arena_strndup(&r->doc->text, s, strlen(s));
	if (!a.name || slu_vec_push(&r->anchors, a) < 0)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	return 0;
}

static int on_scalar(struct reader *r, const yaml_event_t *e)
{
	const char *s = (const char *)e->data.scalar.value;
	const char *tag = (const char *)e->data.scalar.tag;
	size_t n = e->data.scalar.length;
	bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct slu_json v = { 0 }, *p;
	int rc;

	if (memchr(s, '\0', n))
		return fail_at(r, -EINVAL, e->start_mark, "a NUL character in a string");
	if ((rc = check_place(r, true, e->start_mark)) < 0 ||
	    (rc = reserve(r, 1, e->start_mark)) < 0 ||
	    (rc = add_anchor(r, e->data.scalar.anchor, false)) < 0)
		return rc;
	if (!plain || is_key(r) || (r->flags & SLU_YAML_TEXT) ||
	    (tag && !strcmp(tag, YAML_STR_TAG)) || !slu_yaml_resolve(s, &v)) {
		v.tag = TAG_STR | (uint64_t)n << 8;
		v.u.str = slu_arena_strndup(&r->doc->text, s, n);
		if (!v.u.str)
			return slu_fail(r->err, -ENOMEM, "out of memory");
	}
	p = push_value(r, e->start_mark);
	*p = v;
	if (plain)
		p->tag |= TAG_PLAIN;
	return 0;
}

static int on_open(struct reader *r, const yaml_event_t *e, uint64_t tag, const yaml_char_t *anchor)
{
	int rc;

	if (r->depth >= r->max_depth)
		return fail_at(r, -EMSGSIZE, e->start_mark, "nested too deeply");
	if ((rc = check_place(r, false, e->start_mark)) < 0 ||
	    (rc = reserve(r, 1, e->start_mark)) < 0 || (rc = add_anchor(r, anchor, true)) < 0)
		return rc;
	r->open[r->depth] = r->doc->n;
	r->items[r->depth] = 0;
	r->depth++;
	push_value(r, e->start_mark)->tag = tag;
	return 0;
}

static void on_close(struct reader *r)
{
	uint32_t at = r->open[--r->depth];
	struct slu_json *v = &r->doc->val[at];
	uint64_t n = r->items[r->depth];

	if ((v->tag & 7) == TAG_OBJ)
		n /= 2;
	v->tag |= n << 8;
	v->u.ofs = (r->doc->n - at) * sizeof *v;
	for (uint32_t i = r->anchors.n; i-- > 0;)
		if (r->anchors.p[i].first == at && !r->anchors.p[i].end)
			r->anchors.p[i].end = r->doc->n;
}

static uint32_t depth_of(const struct slu_json *v, const struct slu_json *end)
{
	const struct slu_json *stop[MAX_DEPTH];
	uint32_t depth = 0, most = 0;

	for (; v < end; v++) {
		while (depth && v >= stop[depth - 1])
			depth--;
		if ((v->tag & 7) >= TAG_ARR)
			stop[depth++] = slu_json_after(v);
		most = SLU_MAX(most, depth);
	}
	return most;
}

/* The values lie flat and containers hold offsets, so an expansion is a copy of the range. */
static int on_alias(struct reader *r, const yaml_event_t *e)
{
	const char *name = (const char *)e->data.alias.anchor;
	struct slu_json_doc *d = r->doc;
	const struct anchor *a = NULL;
	uint32_t len;
	bool scalar;
	int rc;

	for (uint32_t i = r->anchors.n; i-- > 0 && !a;)
		if (!strcmp(r->anchors.p[i].name, name))
			a = &r->anchors.p[i];
	if (!a)
		return fail_at(r, -EINVAL, e->start_mark, "unknown alias");
	if (!a->end)
		return fail_at(r, -EINVAL, e->start_mark, "an alias inside its own anchor");
	len = a->end - a->first;
	scalar = (d->val[a->first].tag & 7) < TAG_ARR;
	if (r->depth + depth_of(d->val + a->first, d->val + a->end) > r->max_depth)
		return fail_at(r, -EMSGSIZE, e->start_mark, "nested too deeply");
	if ((rc = check_place(r, scalar, e->start_mark)) < 0 ||
	    (rc = reserve(r, len, e->start_mark)) < 0)
		return rc;
	if (is_key(r) && (d->val[a->first].tag & 7) != TAG_STR)
		return fail_at(r, -EINVAL, e->start_mark, "a mapping key must be a string");
	memcpy(d->val + d->n, d->val + a->first, len * sizeof *d->val);
	memcpy(d->mark + d->n, d->mark + a->first, len * sizeof *d->mark);
	d->n += len;
	return 0;
}

static int on_event(struct reader *r, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(r, e);
	case YAML_ALIAS_EVENT:
		return on_alias(r, e);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(r, e, TAG_ARR, e->data.sequence_start.anchor);
	case YAML_MAPPING_START_EVENT:
		return on_open(r, e, TAG_OBJ, e->data.mapping_start.anchor);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		on_close(r);
		return 0;
	case YAML_DOCUMENT_START_EVENT:
		r->anchors.n = 0;
		return 0;
	case YAML_DOCUMENT_END_EVENT:
		return !(r->flags & SLU_YAML_STREAM);
	case YAML_STREAM_END_EVENT:
		return 1;
	default:
		return 0;
	}
}

static int syntax_error(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;

	if (p->error == YAML_MEMORY_ERROR)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	if (p->error == YAML_READER_ERROR)
		return slu_fail(r->err, -EINVAL, "byte %zu: %s", p->problem_offset, p->problem);
	return fail_at(r, -EINVAL, p->problem_mark, p->problem ? p->problem : "not YAML");
}

static int read_events(struct reader *r, const char *text, size_t n)
{
	static const yaml_mark_t start;
	yaml_event_t stream = { .type = YAML_SEQUENCE_START_EVENT };
	int rc = 0;

	if ((r->flags & SLU_YAML_STREAM) && (rc = on_open(r, &stream, TAG_ARR, NULL)) < 0)
		return rc;
	yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, n);
	while (rc == 0) {
		yaml_event_t e;

		if (!yaml_parser_parse(&r->parser, &e))
			return syntax_error(r);
		rc = on_event(r, &e);
		yaml_event_delete(&e);
	}
	if (rc < 0)
		return rc;
	if (r->flags & SLU_YAML_STREAM)
		on_close(r);
	if (!r->doc->n) {
		rc = reserve(r, 1, start);
		if (rc < 0)
			return rc;
		*push_value(r, start) = (struct slu_json){ .tag = TAG_NULL };
	}
	return 0;
}

int slu_yaml_parse(const char *text, size_t n, unsigned flags, const struct slu_yaml_limits *lim,
		   struct slu_json_doc **out, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct reader r = { .err = err, .flags = flags };
	int rc;

	r.max_depth = SLU_MIN(lim && lim->max_depth ? lim->max_depth : MAX_DEPTH, MAX_DEPTH);
	r.max_values = lim && lim->max_values ? lim->max_values : MAX_VALUES;
	if (n > (lim && lim->max_bytes ? lim->max_bytes : MAX_BYTES))
		return slu_fail(err, -EMSGSIZE, "the text is too large");
	doc = slu_calloc(1, sizeof *doc);
	if (!doc)
		return slu_fail(err, -ENOMEM, "out of memory");
	rc = flags & SLU_YAML_LIBYAML
		     ? 0
		     : slu_yaml_plain(doc, text, n, flags, r.max_depth, r.max_values);
	if (rc < 0)
		return slu_fail(err, rc, "out of memory");
	if (rc) {
		*out = slu_take(doc);
		return 0;
	}
	if (!yaml_parser_initialize(&r.parser))
		return slu_fail(err, -ENOMEM, "out of memory");
	r.doc = doc;
	rc = read_events(&r, text, n);
	yaml_parser_delete(&r.parser);
	slu_vec_done(&r.anchors);
	if (rc < 0)
		return rc;
	*out = slu_take(doc);
	return 0;
}
