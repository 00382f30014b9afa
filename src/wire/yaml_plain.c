/* yaml_plain.c — a quick reader for plain YAML: printable ASCII, block and flow collections,
 * one-line scalars.  Nine jobspecs in ten are that, and libyaml needs forty times as long for them.
 *
 * It never decides that a text is wrong: whatever it does not know (anchors, tags, block scalars,
 * scalars over several lines, tabs, directives, several documents, anything malformed) makes it
 * return 0, and libyaml reads the text from the beginning.  What it does accept must give the very
 * tree libyaml gives; tests/fuzz/fuzz_yaml.c compares the two. */
#include "wire/doc_internal.h"
#include "wire/yaml.h"

struct quick {
	struct slu_json_doc *doc;
	const char *s, *p; /* the text, NUL-terminated, and the place in it */
	const char *line;  /* where the current line begins */
	char *t;           /* the second copy, where strings are cut */
	const char *empty; /* the end of it */
	uint32_t lineno;   /* from 1 */
	uint32_t cap, max_values, max_depth;
	int indent; /* of the line p stands in; -1 = end of text */
	unsigned flags;
	bool oom;
};

#define MAX_STRING 1000 /* libyaml accepts no longer keys */

enum { C_PRINT = 1, C_FLOW = 2, C_FIRST = 4 };

static const uint8_t cls[256] = {
	/* what may stand in a plain scalar of a flow collection, and what may begin any plain one
	 */
	[' '] = C_PRINT,
	['!' ... ')'] = C_PRINT,
	['*' ... '+'] = C_PRINT | C_FLOW,
	[','] = C_PRINT,
	['-' ... '/'] = C_PRINT | C_FLOW,
	['0' ... '9'] = C_PRINT | C_FLOW | C_FIRST,
	[':' ... '@'] = C_PRINT,
	['A' ... 'Z'] = C_PRINT | C_FLOW | C_FIRST,
	['[' ... ']'] = C_PRINT,
	['^'] = C_PRINT | C_FLOW | C_FIRST,
	['_'] = C_PRINT | C_FLOW | C_FIRST,
	['`'] = C_PRINT,
	['a' ... 'z'] = C_PRINT | C_FLOW | C_FIRST,
	['{' ... '}'] = C_PRINT,
	['~'] = C_PRINT | C_FLOW | C_FIRST,
};

static bool is_class(char c, unsigned what)
{
	return cls[(unsigned char)c] & what;
}

static bool is_end(char c)
{
	return c == '\n' || c == '\0';
}

static bool is_gap(char c)
{
	return c == ' ' || is_end(c);
}

static struct slu_json *push(struct quick *q, const char *at)
{
	struct slu_json_doc *d = q->doc;

	if (d->n == q->cap) {
		uint32_t cap = SLU_MIN(q->cap * 2, q->max_values);
		void *p;

		if (cap <= q->cap)
			return NULL;
		p = slu_reallocarray(d->val, cap, sizeof *d->val);
		if (p)
			d->val = p;
		else
			q->oom = true;
		p = q->oom ? NULL : slu_reallocarray(d->mark, cap, sizeof *d->mark);
		if (p)
			d->mark = p;
		else
			q->oom = true;
		if (q->oom)
			return NULL;
		q->cap = cap;
	}
	d->mark[d->n] = (struct mark){ q->lineno, (uint32_t)(at - q->line) + 1 };
	return &d->val[d->n++];
}

/* A scalar from `from`, n bytes cut out of the second copy. */
static bool add_scalar(struct quick *q, const char *from, char *text, size_t n, bool plain,
		       bool key)
{
	struct slu_json *v = push(q, from);

	if (!v)
		return false;
	text[n] = '\0';
	if (!plain || key || (q->flags & SLU_YAML_TEXT) || !slu_yaml_resolve(text, v)) {
		v->tag = TAG_STR | (uint64_t)n << 8;
		v->u.str = text;
	}
	if (plain)
		v->tag |= TAG_PLAIN;
	return true;
}

/* Move to the next line that is not empty, and set `indent`. */
static bool next_line(struct quick *q)
{
	for (;;) {
		const char *p = q->p;

		while (*p == ' ')
			p++;
		if (*p == '#' && (p == q->line || p[-1] == ' '))
			while (is_class(*p, C_PRINT))
				p++;
		if (*p == '\n') {
			q->p = q->line = p + 1;
			q->lineno++;
			continue;
		}
		q->p = p;
		if (*p == '\0') {
			q->indent = -1;
			return true;
		}
		if (!is_class(*p, C_PRINT))
			return false;
		q->indent = (int)(p - q->line);
		return q->indent ||
		       (*p != '%' && strncmp(p, "---", 3) != 0 && strncmp(p, "...", 3) != 0);
	}
}

/* After a value: nothing but blanks and a comment may follow in the line. */
static bool finish_line(struct quick *q)
{
	while (*q->p == ' ')
		q->p++;
	if (*q->p == '#' && q->p[-1] != ' ')
		return false;
	return (*q->p == '#' || is_end(*q->p)) && next_line(q);
}

static bool read_quoted(struct quick *q, bool key)
{
	const char *from = q->p, *p = from + 1;
	char quote = *from, *t = q->t + (p - q->s), *w = t;

	for (;; p++) {
		char c = *p;

		if (!is_class(c, C_PRINT) || w - t > MAX_STRING)
			return false;
		if (c == quote) {
			if (quote == '"' || p[1] != '\'')
				break;
			p++;
		} else if (c == '\\' && quote == '"') {
			static const char in[] = "\"\\/ntr", out[] = "\"\\/\n\t\r";
			const char *k = p[1] ? strchr(in, p[1]) : NULL;

			if (!k)
				return false;
			c = out[k - in];
			p++;
		}
		*w++ = c;
	}
	q->p = p + 1;
	return add_scalar(q, from, t, (size_t)(w - t), false, key);
}

/* A plain scalar in block context, up to ": ", " #" or the end of the line. */
static bool plain_block(struct quick *q, bool key)
{
	const char *from = q->p, *p = from, *end;

	if (!is_class(*p, C_FIRST) &&
	    !((*p == '-' || *p == '.' || *p == '/' || *p == '+') && is_class(p[1], C_FIRST)))
		return false;
	for (; is_class(*p, C_PRINT); p++) {
		if (*p == ':' && is_gap(p[1]))
			break;
		if (*p == '#' && p[-1] == ' ')
			break;
	}
	if (!is_end(*p) && *p != ':' && *p != '#')
		return false;
	for (end = p; end[-1] == ' ';)
		end--;
	if (end - from > MAX_STRING)
		return false;
	q->p = p;
	return add_scalar(q, from, q->t + (from - q->s), (size_t)(end - from), true, key);
}

static bool plain_flow(struct quick *q, bool key)
{
	const char *from = q->p, *p = from;

	if (!is_class(*p, C_FIRST) &&
	    !((*p == '-' || *p == '.' || *p == '/' || *p == '+') && is_class(p[1], C_FIRST)))
		return false;
	while (is_class(*p, C_FLOW))
		p++;
	if (p - from > MAX_STRING || !(is_gap(*p) || strchr(",:]}", *p)))
		return false;
	q->p = p;
	return add_scalar(q, from, q->t + (from - q->s), (size_t)(p - from), true, key);
}

static bool flow_space(struct quick *q)
{
	for (;; q->p++) {
		if (*q->p == '\n') {
			q->line = q->p + 1;
			q->lineno++;
			if (!strncmp(q->line, "---", 3) || !strncmp(q->line, "...", 3))
				return false;
		} else if (*q->p != ' ') {
			return *q->p != '#' && is_class(*q->p, C_PRINT);
		}
	}
}

static void close_at(struct quick *q, uint32_t at, uint64_t n)
{
	q->doc->val[at].tag |= n << 8;
	q->doc->val[at].u.ofs = (q->doc->n - at) * sizeof *q->doc->val;
}

static bool flow_scalar(struct quick *q, bool key)
{
	return *q->p == '"' || *q->p == '\'' ? read_quoted(q, key) : plain_flow(q, key);
}

static bool flow(struct quick *q, uint32_t depth)
{
	bool map = *q->p == '{';
	uint32_t at = q->doc->n;
	struct slu_json *v;
	uint64_t n = 0;

	if (*q->p != '{' && *q->p != '[')
		return flow_scalar(q, false);
	if (depth >= q->max_depth || !(v = push(q, q->p)))
		return false;
	v->tag = map ? TAG_OBJ : TAG_ARR;
	q->p++;
	if (!flow_space(q))
		return false;
	while (*q->p != (map ? '}' : ']')) {
		if (map) {
			bool quote = *q->p == '"' || *q->p == '\'';

			if (!flow_scalar(q, true) || *q->p != ':' || (!quote && !is_gap(q->p[1])))
				return false;
			q->p++;
			if (!flow_space(q))
				return false;
		}
		if (!flow(q, depth + 1) || !flow_space(q))
			return false;
		n++;
		if (*q->p == ',') {
			q->p++;
			if (!flow_space(q) || *q->p == ']' || *q->p == '}')
				return false;
		} else if (*q->p != (map ? '}' : ']')) {
			return false;
		}
	}
	q->p++;
	close_at(q, at, n);
	return true;
}

static bool block(struct quick *q, uint32_t depth);

static bool at_dash(const struct quick *q)
{
	return q->p[0] == '-' && is_gap(q->p[1]);
}

/* The value after "key:" or "-" of a collection at column `col`. */
static bool read_value(struct quick *q, int col, uint32_t depth, bool in_map)
{
	const char *after = q->p;
	uint32_t lineno = q->lineno;
	const char *line = q->line;

	while (*q->p == ' ')
		q->p++;
	if (is_end(*q->p) || (*q->p == '#' && q->p > after)) {
		struct slu_json *v;

		if (!next_line(q))
			return false;
		if (q->indent > col || (in_map && q->indent == col && at_dash(q)))
			return block(q, depth);
		v = push(q, q->p);
		if (!v)
			return false;
		q->doc->mark[q->doc->n - 1] = (struct mark){ lineno, (uint32_t)(after - line) + 1 };
		*v = (struct slu_json){ .tag = TAG_STR | TAG_PLAIN, .u.str = q->empty };
		if (!(q->flags & SLU_YAML_TEXT))
			v->tag = TAG_NULL | TAG_PLAIN;
		return true;
	}
	if (*q->p == '[' || *q->p == '{') {
		if (!flow(q, depth) || !finish_line(q))
			return false;
	} else if (!in_map) {
		/* "- - x" and "- key: x" begin a collection at this column. */
		const char *p = q->p;
		uint32_t n = q->doc->n;

		if (!at_dash(q)) {
			if (!(*p == '"' || *p == '\'' ? read_quoted(q, false)
						      : plain_block(q, false)))
				return false;
			if (*q->p != ':')
				goto scalar;
			q->doc->n = n;
		}
		q->p = p;
		q->indent = (int)(p - q->line);
		return block(q, depth);
	} else {
		if (!(*q->p == '"' || *q->p == '\'' ? read_quoted(q, false)
						    : plain_block(q, false)))
			return false;
	scalar:
		if (!finish_line(q))
			return false;
	}
	return q->indent <= col;
}

static bool block_seq(struct quick *q, uint32_t depth)
{
	int col = q->indent;
	uint32_t at = q->doc->n;
	struct slu_json *v = push(q, q->p);
	uint64_t n = 0;

	if (!v)
		return false;
	v->tag = TAG_ARR;
	while (q->indent == col && at_dash(q)) {
		q->p++;
		if (!read_value(q, col, depth + 1, false))
			return false;
		n++;
	}
	close_at(q, at, n);
	return q->indent <= col;
}

static bool block_map(struct quick *q, uint32_t depth)
{
	int col = q->indent;
	uint32_t at = q->doc->n;
	struct slu_json *v = push(q, q->p);
	uint64_t n = 0;

	if (!v)
		return false;
	v->tag = TAG_OBJ;
	while (q->indent == col) {
		if (!(*q->p == '"' || *q->p == '\'' ? read_quoted(q, true)
						    : plain_block(q, true)) ||
		    *q->p != ':' || !is_gap(q->p[1]))
			return false;
		q->p++;
		if (!read_value(q, col, depth + 1, true))
			return false;
		n++;
	}
	close_at(q, at, n);
	return q->indent < col;
}

static bool block(struct quick *q, uint32_t depth)
{
	if (depth >= q->max_depth)
		return false;
	return at_dash(q) ? block_seq(q, depth) : block_map(q, depth);
}

int slu_yaml_plain(struct slu_json_doc *doc, const char *text, size_t n, unsigned flags,
		   uint32_t max_depth, uint32_t max_values)
{
	struct quick q = { .doc = doc, .flags = flags, .lineno = 1 };
	char *copy;
	bool good;

	if (n > 1u << 20 || (flags & SLU_YAML_STREAM))
		return 0;
	q.max_depth = max_depth;
	q.max_values = max_values;
	q.cap = SLU_MIN((uint32_t)(n / 8 + 16), max_values);
	copy = slu_arena_alloc(&doc->text, 2 * n + 2);
	doc->val = slu_reallocarray(NULL, q.cap, sizeof *doc->val);
	doc->mark = slu_reallocarray(NULL, q.cap, sizeof *doc->mark);
	if (!copy || !doc->val || !doc->mark)
		return -ENOMEM;
	memcpy(copy, text, n);
	copy[n] = '\0';
	memcpy(copy + n + 1, copy, n + 1);
	q.s = q.p = q.line = copy;
	q.t = copy + n + 1;
	q.empty = q.t + n;
	good = next_line(&q) && q.indent >= 0;
	if (good && (*q.p == '{' || *q.p == '['))
		good = flow(&q, 0) && finish_line(&q);
	else if (good)
		good = block(&q, 0);
	if (good && q.indent < 0 && q.p == copy + n)
		return 1;
	slu_free(doc->val);
	slu_free(doc->mark);
	doc->val = NULL;
	doc->mark = NULL;
	doc->n = 0;
	return q.oom ? -ENOMEM : 0;
}
