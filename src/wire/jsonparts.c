#include "wire/jsonparts.h"

#include "wire/doc_internal.h"

#define LIST_AT 2u /* containers around a list */

/* Read the items at the beginning of the text as an array, a document of its own; *used does not
 * count brackets. */
static int parse(const char *items, size_t n, struct slu_buf *b, struct slu_json_doc **out,
		 size_t *used)
{
	int rc;

	slu_buf_reset(b);
	slu_buf_putc(b, '[');
	slu_buf_add(b, items, n);
	slu_buf_putc(b, ']');
	/* The brackets stand for the list's. */
	rc = slu_json_parse_first(b, SLU_JSON_DEPTH - LIST_AT, out, used);
	*used -= rc ? 0 : 2;
	return rc;
}

struct cutter {
	struct slu_json_parts *p;
	const char *text;
	size_t n, part;
	struct slu_buf outline, items;
};

/* From the quote at the beginning of a string to the one at its end, or to the text's end. */
static size_t skip_string(const char *text, size_t n, size_t i)
{
	for (i++; i < n && text[i] != '"'; i++)
		i += text[i] == '\\';
	return i;
}

static bool is_space(char x)
{
	return x == ' ' || x == '\n' || x == '\r' || x == '\t';
}

/* The last comma between two texts that look like objects, or 0. */
static size_t guess(const char *p, size_t n)
{
	for (const char *at; (at = memrchr(p, ',', n)); n = (size_t)(at - p)) {
		const char *before = at - 1, *after = at + 1;

		while (before > p && is_space(*before))
			before--;
		while (after < p + n && is_space(*after))
			after++;
		if (before >= p && *before == '}' && after < p + n && *after == '{')
			return (size_t)(at - p);
	}
	return 0;
}

/* From the beginning of an item to the comma after one that makes the part long enough, or to the
 * list's end; the text's end if there is neither. */
static size_t scan(const struct cutter *c, size_t at)
{
	size_t depth = 0, i;

	for (i = at; i < c->n; i++) {
		char x = c->text[i];

		if (x == '"')
			i = skip_string(c->text, c->n, i);
		else if (x == '{' || x == '[')
			depth++;
		else if ((x == '}' || x == ']') && !depth--)
			break;
		else if (x == ',' && !depth && i - at >= c->part)
			break;
	}
	return SLU_MIN(i, c->n);
}

/* Read the part at *at and move *at to the comma or bracket after it.  A wrong guess of where the
 * part ends is noticed, because a text cut in the wrong place does not parse as a list of whole
 * items. */
static int take_part(struct cutter *c, size_t *at, bool first)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_json_part x = { .at = *at };
	/* Do not guess for the first part: with many short lists, each guess would scan the rest
	 * of the text. */
	size_t n = first ? 0 : guess(c->text + x.at, SLU_MIN(c->part, c->n - x.at));
	int rc = n ? parse(c->text + x.at, n, &c->items, &doc, &x.n) : -EINVAL;

	if (rc < 0 && rc != -ENOMEM) {
		n = scan(c, x.at) - x.at;
		if (x.at + n == c->n)
			return -EINVAL;
		rc = parse(c->text + x.at, n, &c->items, &doc, &x.n);
	}
	if (rc < 0)
		return rc;
	*at += x.n;
	x.count = slu_json_count(slu_json_root(doc));
	/* An empty place between commas is an error, an empty list is not. */
	if (!x.count && !(first && c->text[*at] == ']'))
		return -EINVAL;
	return slu_vec_push(&c->p->part, x);
}

/* The list that opens at *i, which moves to its end; a number stands for it in the outline. */
static int take_list(struct cutter *c, size_t *i)
{
	int rc = slu_buf_i64(&c->outline, c->p->list.n);
	bool first = true;

	if (!rc)
		rc = slu_vec_push(&c->p->list, c->p->part.n);
	do {
		++*i;
		if (!rc)
			rc = take_part(c, i, first);
		first = false;
	} while (!rc && c->text[*i] == ',');
	return rc;
}

/* Follow only as much of the grammar as is needed to find the lists.  The outline and the parts
 * are parsed afterwards; if they are correct, so is the text they were cut from. */
static int cut(struct cutter *c)
{
	bool obj[LIST_AT] = { false };
	size_t depth = 0, from = 0;
	int rc = 0;

	for (size_t i = 0; i < c->n && !rc; i++) {
		char x = c->text[i];

		if (x == '"') {
			i = skip_string(c->text, c->n, i);
		} else if (x == '[' && depth == LIST_AT && obj[0] && obj[1]) {
			slu_buf_add(&c->outline, c->text + from, i + 1 - from);
			rc = take_list(c, &i);
			from = i;
		} else if (x == '{' || x == '[') {
			if (depth < LIST_AT)
				obj[depth] = x == '{';
			depth++;
		} else if (x == '}' || x == ']') {
			if (!depth--)
				return -EINVAL;
		}
	}
	return rc ? rc : slu_buf_add(&c->outline, c->text + from, c->n - from);
}

int slu_json_parts_open(struct slu_json_parts *p, const char *text, size_t n, size_t part,
			struct slu_json_place *place)
{
	struct cutter c = { p, text, n, part, SLU_BUF_INIT(n * 2), SLU_BUF_INIT(SIZE_MAX / 2) };
	int rc = -EINVAL;

	*p = (struct slu_json_parts){ .text = text };
	if (n > part && n <= SLU_JSON_BYTES) {
		rc = cut(&c);
		if (!rc)
			rc = slu_json_parse_place(c.outline.p, c.outline.n, NULL, &p->outline,
						  place);
		p->cut = !rc;
		slu_buf_done(&c.outline);
		slu_buf_done(&c.items);
	}
	/* Report the error and its place in the whole text. */
	return !rc || rc == -ENOMEM ? rc : slu_json_parse_place(text, n, NULL, &p->outline, place);
}

void slu_json_parts_close(struct slu_json_parts *p)
{
	slu_json_free(p->outline);
	slu_vec_done(&p->part);
	slu_vec_done(&p->list);
	*p = (struct slu_json_parts){ 0 };
}

/* The numbers of its parts, from *first up to the one returned. */
static uint32_t parts_of(const struct slu_json_parts *p, const struct slu_json *list,
			 uint32_t *first)
{
	uint32_t k = (uint32_t)slu_json_i64_or(slu_json_item(list, 0), 0);

	*first = p->list.p[k];
	return k + 1 < p->list.n ? p->list.p[k + 1] : p->part.n;
}

size_t slu_json_parts_count(const struct slu_json_parts *p, const struct slu_json *list)
{
	uint32_t i, end;
	size_t n = 0;

	if (!slu_json_is_arr(list))
		return 0;
	if (!p->cut)
		return slu_json_count(list);
	for (end = parts_of(p, list, &i); i < end; i++)
		n += p->part.p[i].count;
	return n;
}

static int each(const struct slu_json *list, int (*fn)(void *arg, const struct slu_json *item),
		void *arg)
{
	int rc = 0;

	for (struct slu_json_it it = slu_json_first(list); it.val && !rc; slu_json_next(&it))
		rc = fn(arg, it.val);
	return rc;
}

int slu_json_parts_each(const struct slu_json_parts *p, const struct slu_json *list,
			int (*fn)(void *arg, const struct slu_json *item), void *arg)
{
	struct slu_buf b = SLU_BUF_INIT(SIZE_MAX / 2);
	uint32_t i, end;
	size_t used;
	int rc = 0;

	if (!slu_json_is_arr(list))
		return 0;
	if (!p->cut)
		return each(list, fn, arg);
	for (end = parts_of(p, list, &i); i < end && !rc; i++) {
		slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;

		rc = parse(p->text + p->part.p[i].at, p->part.p[i].n, &b, &doc, &used);
		if (!rc)
			rc = each(slu_json_root(doc), fn, arg);
	}
	slu_buf_done(&b);
	return rc;
}
