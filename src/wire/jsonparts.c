#include "wire/jsonparts.h"

#include "base/buf.h"

static int note_list(void *arg, uint32_t number, const char *outer, const char *inner)
{
	struct slu_json_parts *p = arg;

	(void)number, (void)outer, (void)inner;
	return slu_vec_push(&p->list, p->part.n);
}

static int note_part(void *arg, const struct slu_json *items, size_t at, size_t n)
{
	struct slu_json_parts *p = arg;

	return slu_vec_push(&p->part, (struct slu_json_part){ at, n, slu_json_count(items) });
}

int slu_json_parts_open(struct slu_json_parts *p, const char *text, size_t n, size_t part,
			struct slu_json_place *place)
{
	static const struct slu_json_stream_ops ops = { note_list, note_part };
	slu_cleanup(slu_json_stream_freep) struct slu_json_stream *s = NULL;
	int rc;

	*p = (struct slu_json_parts){ .text = text };
	if (n <= part)
		return slu_json_parse_place(text, n, NULL, &p->outline, place);
	s = slu_json_stream_new(part, &ops, p);
	if (!s)
		return -ENOMEM;
	rc = slu_json_stream_feed(s, text, n);
	if (!rc)
		rc = slu_json_stream_end(s, &p->outline, place);
	p->cut = !rc;
	return rc;
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

static int each_item(const struct slu_json *list, int (*fn)(void *arg, const struct slu_json *item),
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
	int rc = 0;

	if (!slu_json_is_arr(list))
		return 0;
	if (!p->cut)
		return each_item(list, fn, arg);
	for (end = parts_of(p, list, &i); i < end && !rc; i++) {
		slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;

		slu_buf_reset(&b);
		slu_buf_putc(&b, '[');
		slu_buf_add(&b, p->text + p->part.p[i].at, p->part.p[i].n);
		rc = slu_buf_putc(&b, ']');
		if (!rc)
			rc = slu_json_parse(b.p, b.n, NULL, &doc, NULL);
		if (!rc)
			rc = each_item(slu_json_root(doc), fn, arg);
	}
	slu_buf_done(&b);
	return rc;
}
