/* Whatever parses is written and parsed again to the same text; a text in parts is the same as in
 * one piece, and so is one that arrives in pieces. */
#include "fuzz.h"
#include "wire/jsonparts.h"
#include "wire/jsonw.h"

static void write_again(const struct slu_json_doc *doc, struct slu_buf *out,
			enum slu_jsonw_style style)
{
	struct slu_jsonw w = slu_jsonw(out, style);

	slu_jsonw_value(&w, slu_json_root(doc));
	must(!out->error);
}

static int put_item(void *arg, const struct slu_json *item)
{
	struct slu_jsonw w = slu_jsonw(arg, SLU_JSONW_COMPACT);

	slu_jsonw_value(&w, item);
	return slu_buf_putc(arg, ',');
}

/* Every list two objects deep, in both. */
static void same_lists(const struct slu_json *whole, const struct slu_json_parts *p)
{
	struct slu_json_it out = slu_json_first(slu_json_root(p->outline));

	slu_json_each (whole, it) {
		struct slu_json_it list = slu_json_first(out.val);

		must(slu_json_kind(it.val) == slu_json_kind(out.val));
		slu_json_each (it.val, item) {
			struct slu_buf a = SLU_BUF_INIT((size_t)1 << 26),
				       b = SLU_BUF_INIT((size_t)1 << 26);

			must(slu_json_kind(item.val) == slu_json_kind(list.val));
			if (it.obj && item.obj && slu_json_is_arr(item.val)) {
				must(slu_json_count(item.val) == slu_json_parts_count(p, list.val));
				slu_json_each (item.val, x)
					put_item(&a, x.val);
				must(slu_json_parts_each(p, list.val, put_item, &b) == 0);
				must(!a.error && !b.error && a.n == b.n &&
				     !strcmp(slu_buf_str(&a), slu_buf_str(&b)));
			}
			slu_buf_done(&a);
			slu_buf_done(&b);
			slu_json_next(&list);
		}
		slu_json_next(&out);
	}
}

static void check_parts(const char *text, size_t n, size_t part)
{
	struct slu_json_doc *doc = NULL;
	struct slu_json_place a = { 0 }, b = { 0 };
	struct slu_json_parts p;
	int rc = slu_json_parse_place(text, n, NULL, &doc, &a);

	must(slu_json_parts_open(&p, text, n, part, &b) == rc);
	if (rc < 0)
		must(a.line == b.line && a.col == b.col && !strcmp(a.what, b.what));
	else
		same_lists(slu_json_root(doc), &p);
	slu_json_parts_close(&p);
	slu_json_free(doc);
}

/* All items of all lists, in order. */
static int put_part(void *arg, const struct slu_json *items, size_t at, size_t n)
{
	(void)at, (void)n;
	slu_json_each (items, it)
		put_item(arg, it.val);
	return 0;
}

/* A text that arrives in pieces, the first of them `cut` bytes long and the rest `piece`, is taken or
 * refused as the whole is. */
static void check_pieces(const char *text, size_t n, size_t part, size_t cut, size_t piece)
{
	static const struct slu_json_stream_ops ops = { .part = put_part };
	struct slu_json_doc *doc = NULL, *outline = NULL;
	struct slu_json_place a = { 0 }, b = { 0 };
	struct slu_buf items = SLU_BUF_INIT((size_t)1 << 26), want = SLU_BUF_INIT((size_t)1 << 26);
	struct slu_json_stream *s = slu_json_stream_new(part, &ops, &items);
	int rc = slu_json_parse_place(text, n, NULL, &doc, &a);

	must(s != NULL);
	for (size_t i = 0, k = cut; i < n; i += k, k = piece) {
		k = SLU_MIN(k, n - i);
		must(slu_json_stream_feed(s, text + i, k) == 0);
	}
	must(slu_json_stream_end(s, &outline, &b) == rc);
	if (rc < 0)
		must(a.line == b.line && a.col == b.col && !strcmp(a.what, b.what));
	slu_json_each (slu_json_root(doc), it)
		slu_json_each (it.val, list)
			if (it.obj && list.obj && slu_json_is_arr(list.val))
				put_part(&want, list.val, 0, 0);
	must(rc < 0 || (items.n == want.n && !strcmp(slu_buf_str(&items), slu_buf_str(&want))));
	slu_json_stream_free(s);
	slu_json_free(doc);
	slu_json_free(outline);
	slu_buf_done(&items);
	slu_buf_done(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_json_doc *doc = NULL, *again = NULL;
	struct slu_buf a = SLU_BUF_INIT((size_t)1 << 26), b = SLU_BUF_INIT((size_t)1 << 26);
	struct slu_error err = { 0 };
	int rc = slu_json_parse((const char *)data, size, NULL, &doc, &err);

	must(rc == 0 ? doc != NULL : !doc && err.text[0]);
	if (!rc) {
		for (int style = SLU_JSONW_COMPACT; style <= SLU_JSONW_INDENT; style++) {
			slu_buf_reset(&a);
			slu_buf_reset(&b);
			write_again(doc, &a, (enum slu_jsonw_style)style);
			must(slu_json_parse(a.p, a.n, NULL, &again, &err) == 0);
			write_again(again, &b, (enum slu_jsonw_style)style);
			must(a.n == b.n && !memcmp(a.p, b.p, a.n));
			slu_json_free(again);
			again = NULL;
		}
	}
	check_parts((const char *)data, size, 0);
	check_parts((const char *)data, size, 40);
	check_pieces((const char *)data, size, 0, 1, 1);
	check_pieces((const char *)data, size, 0, size ? 1 + data[0] % 61 : 1, 17);
	check_pieces((const char *)data, size, 40, 5, 64 << 10);
	slu_json_free(doc);
	slu_buf_done(&a);
	slu_buf_done(&b);
	return 0;
}
