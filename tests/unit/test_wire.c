/* JSON and YAML into one tree, and the writer. */
#include <locale.h>
#include <string.h>

#include "tap.h"
#include "wire/jsonparts.h"
#include "wire/jsonw.h"
#include "wire/yaml.h"

/* Parse and write back compactly, or the error text. */
static const char *again(const char *text, bool yaml, unsigned flags)
{
	static struct slu_buf b = { .max = 1 << 20 };
	static struct slu_error err;
	struct slu_json_doc *doc = NULL;
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	int rc;

	err.text[0] = '\0';
	slu_buf_reset(&b);
	rc = yaml ? slu_yaml_parse(text, strlen(text), flags, NULL, &doc, &err)
		  : slu_json_parse(text, strlen(text), NULL, &doc, &err);
	if (rc < 0)
		return err.text;
	slu_jsonw_value(&w, slu_json_root(doc));
	slu_json_free(doc);
	return slu_buf_str(&b);
}

static const struct {
	const char *in, *out;
} json_row[] = {
	{ "{\"a\": [1, -2, 3.5, true, null, \"x\"]}", "{\"a\":[1,-2,3.5,true,null,\"x\"]}" },
	{ " [] ", "[]" },
	{ "18446744073709551615", "18446744073709551615" },
	{ "-9223372036854775808", "-9223372036854775808" },
	{ "\"\\u00e9\\n\\u0001\\\"\"", "\"\xc3\xa9\\n\\u0001\\\"\"" },
	{ "\"\\\\u0000\"", "\"\\\\u0000\"" },
	{ "", "line 1, column 1: empty text" },
	{ "{\"a\":\n  1,}", "line 2, column 4: trailing comma is not allowed" },
	{ "[1] 2", "line 1, column 5: unexpected content after document" },
	{ "\"a\\u0000b\"", "line 1, column 3: a NUL character in a string" },
};

static const struct {
	const char *in, *out;
	unsigned flags;
} yaml_row[] = {
	{ "a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"]}", 0 },
	{ "- 0x1f\n- 010\n- 0o10\n- +7\n- -7\n- 1_000\n", "[31,8,8,7,-7,1000]", 0 },
	{ "[yes, No, on, ~, null, '', 1e3, .5, 1.2.3]",
	  "[true,false,true,null,null,\"\",1000.0,0.5,\"1.2.3\"]", 0 },
	{ "[yes, 1, ~]", "[\"yes\",\"1\",\"~\"]", SLU_YAML_TEXT },
	{ "yes: 1\n2: b\n", "{\"yes\":1,\"2\":\"b\"}", 0 },
	{ "a: &x {k: [1]}\nb: *x\nc: &y 5\nd: *y\n",
	  "{\"a\":{\"k\":[1]},\"b\":{\"k\":[1]},\"c\":5,\"d\":5}", 0 },
	{ "a: !!str 5\n", "{\"a\":\"5\"}", 0 },
	{ "", "null", 0 },
	{ "---\na\n---\nb\n", "\"a\"", 0 },
	{ "---\na\n---\nb\n", "[\"a\",\"b\"]", SLU_YAML_STREAM },
	{ "t: |\n  one\n  two\n", "{\"t\":\"one\\ntwo\\n\"}", 0 },
	{ "a: *nope\n", "line 1, column 4: unknown alias", 0 },
	{ "a: &x [*x]\n", "line 1, column 8: an alias inside its own anchor", 0 },
	{ "? [a]\n: b\n", "line 1, column 3: a mapping key must be a scalar", 0 },
	{ "a: [1\nb: 2\n", "line 2, column 2: did not find expected ',' or ']'", 0 },
	{ "a: \"x\\0y\"\n", "line 1, column 4: a NUL character in a string", 0 },
};

static void test_lookup(void)
{
	static const char text[] =
		"{\"a\":1,\"b\":{\"c\":[10,{\"d\":\"e\"},[]]},\"a\":2,\"n\":9223372036854775808}";
	struct slu_json_doc *doc = NULL;
	const struct slu_json *root, *c;
	int64_t i = 0;
	uint64_t u = 0;
	char keys[64] = "";

	if (!ok(slu_json_parse(text, strlen(text), NULL, &doc, NULL) == 0, "the text is parsed"))
		return;
	root = slu_json_root(doc);
	ok(slu_json_i64(slu_json_get(root, "a"), &i) == 0 && i == 2,
	   "of two equal keys the last one counts");
	c = slu_json_dig(root, "b", "c", NULL);
	ok(slu_json_count(c) == 3 && slu_json_i64_or(slu_json_item(c, 0), 0) == 10,
	   "an item of an array is found");
	ok(!strcmp(slu_json_str_or(slu_json_dig(slu_json_item(c, 1), "d", NULL), ""), "e"),
	   "a value several steps down is found");
	ok(!slu_json_item(c, 3) && !slu_json_dig(root, "b", "x", "y", NULL),
	   "an absent value is NULL");
	ok(slu_json_i64(slu_json_get(root, "n"), &i) == -ERANGE,
	   "a number too large for int64 is refused");
	ok(slu_json_u64(slu_json_get(root, "n"), &u) == 0 && u == 9223372036854775808ull,
	   "the largest uint64 is read");
	ok(slu_json_i64(root, &i) == -EINVAL && i == 2,
	   "a value that is no number leaves the result unchanged");
	slu_json_each (root, it)
		strcat(keys, it.key);
	ok(!strcmp(keys, "aban"), "iteration in text order: %s", keys);
	slu_json_free(doc);
}

static void test_marks(void)
{
	static const char text[] = "a: 1\nbc:\n  - x\n  - 'y'\n";
	struct slu_json_doc *doc = NULL;
	const struct slu_json *bc;

	if (!ok(slu_yaml_parse(text, strlen(text), 0, NULL, &doc, NULL) == 0, "the text is parsed"))
		return;
	bc = slu_json_get(slu_json_root(doc), "bc");
	ok(slu_json_line(doc, bc) == 3 && slu_json_col(doc, bc) == 3,
	   "the place of a list is known");
	ok(slu_json_line(doc, slu_json_item(bc, 1)) == 4 &&
		   slu_json_col(doc, slu_json_item(bc, 1)) == 5,
	   "the place of a scalar is known");
	ok(slu_json_is_plain(slu_json_item(bc, 0)) && !slu_json_is_plain(slu_json_item(bc, 1)),
	   "quoted scalars are told from plain ones");
	slu_json_free(doc);
}

static void test_limits(void)
{
	static char deep[2000];
	struct slu_json_limits jl = { .max_bytes = 10 };
	struct slu_yaml_limits yl = { .max_values = 100 };
	struct slu_json_doc *doc = NULL;
	struct slu_error err = { 0 };
	static const char bomb[] =
		"a: &a [1,2,3,4,5,6,7,8]\nb: &b [*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n";

	memset(deep, '[', 1000);
	memset(deep + 1000, ']', 999);
	ok(slu_json_parse(deep, 1999, NULL, &doc, &err) == -EINVAL,
	   "an unclosed text is refused: %s", err.text);
	deep[1999] = ']';
	ok(slu_json_parse(deep, 2000, NULL, &doc, &err) == -EMSGSIZE,
	   "a text that is too deep is refused: %s", err.text);
	ok(slu_yaml_parse(deep, 2000, 0, NULL, &doc, &err) == -EMSGSIZE,
	   "a YAML text that is too deep is refused: %s", err.text);
	ok(slu_json_parse("[1,2,3,4,5,6]", 13, &jl, &doc, &err) == -EMSGSIZE,
	   "a text that is too long is refused: %s", err.text);
	ok(slu_yaml_parse(bomb, strlen(bomb), 0, &yl, &doc, &err) == -EMSGSIZE,
	   "aliases that multiply are refused: %s", err.text);
	ok(!doc, "a refused text leaves no document");
}

/* Texts and the items of /a/b in each; NULL: refused, as the whole text is. */
static const struct {
	const char *text, *items;
} parts_row[] = {
	{ "{\"a\": {\"b\": [1, [2, {\"c\": [3, 4]}], \"],[\\\"\", {}]}}",
	  "1;[2,{\"c\":[3,4]}];\"],[\\\"\";{};" },
	{ "{\"a\":{\"b\":[{\"x\":1},{\"x\":2} , {\"x\":[{},{}]},{\"y\":\"},{\"}],\"c\":[{},{}]},\"d\":[[5]]}",
	  "{\"x\":1};{\"x\":2};{\"x\":[{},{}]};{\"y\":\"},{\"};" },
	{ "{\"a\": {\"b\": [1], \"c\": [2, 3], \"b\": [4,\n5, 6]}}", "4;5;6;" },
	{ "{\"a\": {\"b\": [1]}, \"a\": {\"\\u0062\": [{\"k\": 7}, 8]}}", "{\"k\":7};8;" },
	{ "{\"a\": {\"b\": [ ], \"c\": [1]}}", "" },
	{ "{\"a\": {\"b\": {\"c\": [1, 2]}}}", "" },
	{ "{\"a\": [{\"b\": [1, 2]}]}", "" },
	{ "[{\"a\": {\"b\": [1, 2]}}]", "" },
	{ "\"[[[\"", "" },
	{ "{\"a\": {\"b\": [1, 2,]}}", NULL },
	{ "{\"a\": {\"b\": [ , 1]}}", NULL },
	{ "{\"a\": {\"b\": [1,\n , 2]}}", NULL },
	{ "{\"a\": {\"b\": [{},{}\n}}", NULL },
	{ "{\"a\": {\"b\": [{},{},{}]}", NULL },
	{ "{\"a\": {\"b\": [{},{},{\"", NULL },
	{ "{\"a\": {\"b\": [{},{}]}}]", NULL },
	{ "{\"a\": {\"b\": [1]}}\n{\"a\": {\"b\": [2]}}", NULL },
	{ "{\"a\": {[1, 2]: 3}}", NULL },
	{ "{\"a\": {\"b\": [\"\\u0000\", 1]}}", NULL },
	{ "{\"a\": {\"b\": [\"\xff\", 1]}}", NULL },
	{ "{\"a\": {\"b\": [1],\n\"b\": {}, \"c\": 1}}", "" },
	{ "{\"a\":\n{\"b\": [\"\\\\u0000\",\n\"\\u0000\", 1]}}", NULL },
	{ "{\"a\": {\"b\": [1, \"\\u0000\"], \"c\": 1 2}}", NULL },
	/* What follows the error is longer than the bytes that could still change it. */
	{ "{\"a\": {\"b\": [{},\n{}}, {\"x\": \"0123456789012345678901234567890123456789\"}]}}",
	  NULL },
	{ "{\"a\": {\"b\": [{},\n{\"x\" 1}, {\"x\": \"012345678901234567890123456789\"}], \"",
	  NULL },
	{ "{\"a\" {\"b\": [1, 2,\n{\"x\" 1}, {\"x\": \"012345678901234567890123456789\"}]", NULL },
	{ "{\"a\": {\"b\": [1e999, {]\"x\": \"012345678901234567890123456789\"}]}}", NULL },
	{ "{\"a\": {\"b\": [1, }1e99999999999999999999999999999999999999999999999999 ]}}", NULL },
	{ "}{\"a\": {\"b\": [1, 2, \"01234567890123456789012345678901234567890123456789\"]}}",
	  NULL },
};

static int put_item(void *arg, const struct slu_json *item)
{
	struct slu_jsonw w = slu_jsonw(arg, SLU_JSONW_COMPACT);

	slu_jsonw_value(&w, item);
	return slu_buf_putc(arg, ';');
}

static int items_of(const char *text, size_t n, size_t part, struct slu_buf *b, size_t *count)
{
	struct slu_json_place place = { 0 };
	struct slu_json_parts p;
	int rc = slu_json_parts_open(&p, text, n, part, &place);

	slu_buf_reset(b);
	*count = 0;
	if (!rc) {
		const struct slu_json *list = slu_json_dig(slu_json_root(p.outline), "a", "b",
							   NULL);

		*count = slu_json_parts_count(&p, list);
		rc = slu_json_parts_each(&p, list, put_item, b);
	} else if (rc != -ENOMEM) {
		slu_buf_printf(b, "%u:%u: %s", place.line, place.col, place.what);
	}
	slu_json_parts_close(&p);
	return rc;
}

/* The items of the list under "a" or "b" that began last, noted as they arrive. */
struct streamed {
	struct slu_buf *b;
	uint32_t number;
	bool mine;
};

static int stream_list(void *arg, uint32_t number, const char *outer, const char *inner)
{
	struct streamed *x = arg;

	x->mine = !strcmp(outer, "a") && !strcmp(inner, "b");
	if (x->mine) {
		x->number = number;
		slu_buf_reset(x->b);
	}
	return 0;
}

static int stream_part(void *arg, const struct slu_json *items, size_t at, size_t n)
{
	struct streamed *x = arg;

	(void)at, (void)n;
	slu_json_each (items, it)
		if (x->mine && put_item(x->b, it.val) < 0)
			return -ENOMEM;
	return 0;
}

static int items_in_pieces(const char *text, size_t n, size_t part, size_t piece, struct slu_buf *b)
{
	static const struct slu_json_stream_ops ops = { stream_list, stream_part };
	struct streamed x = { .b = b };
	struct slu_json_stream *s = slu_json_stream_new(part, &ops, &x);
	struct slu_json_doc *outline = NULL;
	struct slu_json_place place = { 0 };
	int rc = s ? 0 : -ENOMEM;

	slu_buf_reset(b);
	for (size_t i = 0; i < n && !rc; i += piece)
		rc = slu_json_stream_feed(s, text + i, SLU_MIN(piece, n - i));
	if (!rc)
		rc = slu_json_stream_end(s, &outline, &place);
	if (!rc) {
		const struct slu_json *list = slu_json_dig(slu_json_root(outline), "a", "b", NULL);

		if (!slu_json_is_arr(list))
			slu_buf_reset(b);
		else if (slu_json_i64_or(slu_json_item(list, 0), -1) != x.number)
			slu_buf_puts(b, "another list");
	} else if (rc != -ENOMEM) {
		slu_buf_reset(b);
		slu_buf_printf(b, "%u:%u: %s", place.line, place.col, place.what);
	}
	slu_json_free(outline);
	slu_json_stream_free(s);
	return rc;
}

static int nth_item(void *arg, const struct slu_json *item)
{
	return --*(int *)arg ? 0 : 5;
}

static void test_parts(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 16), deep = SLU_BUF_INIT(1 << 16);
	struct slu_json_place place;
	struct slu_json_parts p;
	size_t count = 0, n = 0;
	int left = 3, rc;

	for (size_t i = 0; i < SLU_LEN(parts_row); i++) {
		const char *text = parts_row[i].text, *want = parts_row[i].items;
		char refused[100] = "";
		struct slu_json_doc *doc = NULL;
		int whole = slu_json_parse_place(text, strlen(text), NULL, &doc, &place);
		bool good = (whole == 0) == (want != NULL);

		slu_json_free(doc);
		if (!want) {
			snprintf(refused, sizeof refused, "%u:%u: %s", place.line, place.col,
				 place.what);
			want = refused;
		}

		/* The longest is the whole text. */
		for (size_t part = 0; part <= strlen(text) && good; part++) {
			rc = items_of(text, strlen(text), part, &b, &count);

			for (n = 0; !rc && n < b.n; n++)
				count -= b.p[n] == ';';
			good = rc == whole && !strcmp(slu_buf_str(&b), want) && (rc || !count);
			for (size_t piece = 1; piece <= strlen(text) && good; piece++)
				good = items_in_pieces(text, strlen(text), part, piece, &b) ==
					       whole &&
				       !strcmp(slu_buf_str(&b), want);
		}
		ok(good, "in parts %zu: %s", i, slu_buf_str(&b));
	}
	/* 253 brackets in two objects and the list are as deep as it may be. */
	for (int more = 0; more < 2; more++) {
		slu_buf_reset(&deep);
		slu_buf_puts(&deep, "{\"a\": {\"b\": [");
		for (int i = 0; i < 253 + more; i++)
			slu_buf_putc(&deep, '[');
		for (int i = 0; i < 253 + more; i++)
			slu_buf_putc(&deep, ']');
		slu_buf_puts(&deep, ", 1]}}");
		rc = items_of(deep.p, deep.n, 1, &b, &count);
		ok(rc == (more ? -EMSGSIZE : 0) && count == (more ? 0 : 2),
		   "parts have the limit of depth of a whole text: %s", slu_buf_str(&b));
	}
	slu_json_parts_open(&p, parts_row[0].text, strlen(parts_row[0].text), 1, &place);
	ok(p.cut && p.part.n == 4, "the list is cut into %u parts", p.part.n);
	ok(slu_json_parts_each(&p, slu_json_dig(slu_json_root(p.outline), "a", "b", NULL), nth_item,
			       &left) == 5,
	   "a walk may end early");
	slu_json_parts_close(&p);
	for (long k = 0;; k++) {
		slu_fault_arm(k);
		rc = items_of(parts_row[1].text, strlen(parts_row[1].text), 20, &b, &count);
		if (!slu_fault_disarm()) {
			ok(rc == 0 && k > 5, "parts: clean after %ld faults", k);
			break;
		}
		if (rc != -ENOMEM)
			ok(false, "parts: allocation %ld fails cleanly (%d)", k, rc);
	}
	slu_buf_done(&b);
	slu_buf_done(&deep);
}

static void test_writer(void)
{
	struct slu_buf b = SLU_BUF_INIT(200);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_SPACED);

	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "a", "x");
	slu_jsonw_key(&w, "b");
	slu_jsonw_arr(&w);
	slu_jsonw_i64(&w, 1);
	slu_jsonw_f64(&w, 0.1);
	slu_jsonw_obj(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_str(&w, NULL);
	slu_jsonw_end_arr(&w);
	slu_jsonw_kbool(&w, "c", false);
	slu_jsonw_end_obj(&w);
	ok(!strcmp(slu_buf_str(&b), "{\"a\": \"x\", \"b\": [1, 0.1, {}, null], \"c\": false}"),
	   "the spaced form is written: %s", slu_buf_str(&b));
	slu_buf_reset(&b);
	w = slu_jsonw(&b, SLU_JSONW_INDENT);
	slu_jsonw_obj(&w);
	slu_jsonw_ki64(&w, "a", 1);
	slu_jsonw_key(&w, "b");
	slu_jsonw_arr(&w);
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	ok(!strcmp(slu_buf_str(&b), "{\n  \"a\": 1,\n  \"b\": []\n}"),
	   "the indented form is written");
	slu_buf_done(&b);
}

static void test_memory(void)
{
	static const char text[] = "{\"a\": [1, 2, {\"b\": \"cd\"}]}";

	for (int yaml = 0; yaml < 2; yaml++) {
		for (long k = 0;; k++) {
			struct slu_json_doc *doc = NULL;
			int rc;

			slu_fault_arm(k);
			rc = yaml ? slu_yaml_parse(text, strlen(text), 0, NULL, &doc, NULL)
				  : slu_json_parse(text, strlen(text), NULL, &doc, NULL);
			slu_json_free(doc);
			if (!slu_fault_disarm()) {
				ok(rc == 0 && k > 1, "clean after %ld faults", k);
				break;
			}
			if (rc != -ENOMEM)
				ok(false, "allocation %ld fails cleanly (%d)", k, rc);
		}
	}
}

int main(void)
{
	setlocale(LC_ALL, ""); /* see tests/lib/comma */
	for (size_t i = 0; i < SLU_LEN(json_row); i++) {
		const char *out = again(json_row[i].in, false, 0);

		ok(!strcmp(out, json_row[i].out), "json %zu: %s", i, out);
	}
	for (size_t i = 0; i < SLU_LEN(yaml_row); i++) {
		const char *out = again(yaml_row[i].in, true, yaml_row[i].flags);

		ok(!strcmp(out, yaml_row[i].out), "yaml %zu: %s", i, out);
	}
	test_lookup();
	test_marks();
	test_limits();
	test_parts();
	test_writer();
	test_memory();
	return tap_done();
}
