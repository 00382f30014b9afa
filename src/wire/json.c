#include "wire/json.h"

#include <stdarg.h>
#include <yyjson.h>

#include "wire/doc_internal.h"

static_assert(sizeof(struct slu_json) == sizeof(yyjson_val) &&
		      offsetof(struct slu_json, u) == offsetof(yyjson_val, uni),
	      "struct slu_json is a yyjson_val under another name");
static_assert(YYJSON_TYPE_STR == TAG_STR && YYJSON_TYPE_ARR == TAG_ARR &&
		      YYJSON_TYPE_OBJ == TAG_OBJ && YYJSON_TYPE_NULL == TAG_NULL &&
		      (YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT) == TAG_SINT &&
		      (YYJSON_TYPE_NUM | YYJSON_SUBTYPE_REAL) == TAG_REAL &&
		      (YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE) == TAG_TRUE,
	      "kind bits are yyjson's");

static void *yy_malloc(void *ctx, size_t n)
{
	return slu_malloc(n);
}

static void *yy_realloc(void *ctx, void *p, size_t old, size_t n)
{
	return slu_realloc(p, n);
}

static void yy_free(void *ctx, void *p)
{
	slu_free(p);
}

static const yyjson_alc alloc = { yy_malloc, yy_realloc, yy_free, NULL };

static void locate(const char *text, size_t n, size_t pos, struct slu_json_place *place)
{
	size_t start = 0;

	place->line = 1;
	for (size_t i = 0; i < pos && i < n; i++) {
		if (text[i] == '\n') {
			place->line++;
			start = i + 1;
		}
	}
	place->col = (uint32_t)(SLU_MIN(pos, n) - start) + 1;
}

/* yyjson reads any depth without recursion; code that walks the tree may recurse, so the ceiling is
 * checked here.  The values lie flat: a container ends where its sibling begins. */
static bool too_deep(const struct slu_json *val, size_t n, uint32_t max)
{
	const struct slu_json *end[SLU_JSON_DEPTH + 1], *last = val + n;
	uint32_t depth = 0;

	max = SLU_MIN(max, SLU_JSON_DEPTH);
	for (const struct slu_json *v = val; v < last; v++) {
		if ((v->tag & 7) < TAG_ARR)
			continue;
		while (depth && v >= end[depth - 1])
			depth--;
		if (depth >= max)
			return true;
		end[depth++] = slu_json_after(v);
	}
	return false;
}

static bool has_nul(const struct slu_json *val, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (slu_json_is_str(val + i) && memchr(val[i].u.str, '\0', slu_json_count(val + i)))
			return true;
	return false;
}

/* A NUL can only come from an escape. */
static const char *nul_escape(const char *text, size_t n)
{
	const char *first = memchr(text, '\\', n);

	return first ? memmem(first, n - (size_t)(first - text), "\\u0000", 6) : NULL;
}

int slu_json_parse_at(const char *text, size_t n, uint32_t max_depth, struct slu_json_doc **out,
		      struct slu_json_wrong *wrong)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = slu_calloc(1, sizeof *doc);
	yyjson_read_err e = { 0 };
	const char *nul;

	if (!doc)
		return -ENOMEM;
	doc->yy = yyjson_read_opts((char *)(uintptr_t)text, n, YYJSON_READ_NOFLAG, &alloc, &e);
	if (!doc->yy) {
		if (e.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
			return -ENOMEM;
		*wrong = (struct slu_json_wrong){ e.pos, e.msg };
		return -EINVAL;
	}
	doc->val = (struct slu_json *)yyjson_doc_get_root(doc->yy);
	doc->n = (uint32_t)SLU_MIN(yyjson_doc_get_val_count(doc->yy), (size_t)UINT32_MAX);
	if (too_deep(doc->val, doc->n, max_depth)) {
		*wrong = (struct slu_json_wrong){ 0, SLU_JSON_TOO_DEEP };
		return -EMSGSIZE;
	}
	nul = nul_escape(text, n);
	if (nul && has_nul(doc->val, doc->n)) {
		*wrong = (struct slu_json_wrong){ (size_t)(nul - text), SLU_JSON_HAS_NUL };
		return -EILSEQ;
	}
	*out = slu_take(doc);
	return 0;
}

int slu_json_parse_place(const char *text, size_t n, const struct slu_json_limits *lim,
			 struct slu_json_doc **out, struct slu_json_place *place)
{
	size_t max_bytes = lim && lim->max_bytes ? lim->max_bytes : SLU_JSON_BYTES;
	uint32_t max_depth = lim && lim->max_depth ? lim->max_depth : SLU_JSON_DEPTH;
	struct slu_json_wrong wrong;
	int rc;

	*place = (struct slu_json_place){ 1, 1, "the text is too large" };
	if (n > max_bytes)
		return -EMSGSIZE;
	place->what = "empty text";
	if (!n)
		return -EINVAL;
	rc = slu_json_parse_at(text, n, max_depth, out, &wrong);
	if (rc < 0 && rc != -ENOMEM) {
		locate(text, n, wrong.pos, place);
		place->what = wrong.what;
	}
	return rc == -EILSEQ ? -EINVAL : rc;
}

int slu_json_parse(const char *text, size_t n, const struct slu_json_limits *lim,
		   struct slu_json_doc **out, struct slu_error *err)
{
	struct slu_json_place place;
	int rc = slu_json_parse_place(text, n, lim, out, &place);

	if (rc == -ENOMEM)
		return slu_fail(err, rc, "out of memory");
	if (rc < 0)
		return slu_fail(err, rc, "line %" PRIu32 ", column %" PRIu32 ": %s", place.line,
				place.col, place.what);
	return rc;
}

void slu_json_free(struct slu_json_doc *doc)
{
	if (!doc)
		return;
	if (doc->yy)
		yyjson_doc_free(doc->yy);
	else
		slu_free(doc->val);
	slu_free(doc->mark);
	slu_arena_done(&doc->text);
	slu_free(doc);
}

const struct slu_json *slu_json_root(const struct slu_json_doc *doc)
{
	return doc ? doc->val : NULL;
}

static struct mark mark_of(const struct slu_json_doc *doc, const struct slu_json *v)
{
	if (!doc || !doc->mark || v < doc->val || v >= doc->val + doc->n)
		return (struct mark){ 0 };
	return doc->mark[v - doc->val];
}

uint32_t slu_json_line(const struct slu_json_doc *doc, const struct slu_json *v)
{
	return mark_of(doc, v).line;
}

uint32_t slu_json_col(const struct slu_json_doc *doc, const struct slu_json *v)
{
	return mark_of(doc, v).col;
}

int slu_json_i64(const struct slu_json *v, int64_t *out)
{
	if (slu_json_kind(v) != SLU_JSON_INT)
		return -EINVAL;
	if (!(v->tag & 8) && v->u.u64 > INT64_MAX)
		return -ERANGE;
	*out = v->u.i64;
	return 0;
}

int slu_json_u64(const struct slu_json *v, uint64_t *out)
{
	if (slu_json_kind(v) != SLU_JSON_INT)
		return -EINVAL;
	if ((v->tag & 8) && v->u.i64 < 0)
		return -ERANGE;
	*out = v->u.u64;
	return 0;
}

int slu_json_f64(const struct slu_json *v, double *out)
{
	switch (slu_json_kind(v)) {
	case SLU_JSON_REAL:
		*out = v->u.f64;
		return 0;
	case SLU_JSON_INT:
		*out = v->tag & 8 ? (double)v->u.i64 : (double)v->u.u64;
		return 0;
	default:
		return -EINVAL;
	}
}

int slu_json_bool(const struct slu_json *v, bool *out)
{
	if (slu_json_kind(v) != SLU_JSON_BOOL)
		return -EINVAL;
	*out = v->tag & 8;
	return 0;
}

int64_t slu_json_i64_or(const struct slu_json *v, int64_t otherwise)
{
	slu_json_i64(v, &otherwise);
	return otherwise;
}

bool slu_json_bool_or(const struct slu_json *v, bool otherwise)
{
	slu_json_bool(v, &otherwise);
	return otherwise;
}

const char *slu_json_str_or(const struct slu_json *v, const char *otherwise)
{
	return slu_json_is_str(v) ? v->u.str : otherwise;
}

const struct slu_json *slu_json_getn(const struct slu_json *obj, const char *key, size_t n)
{
	const struct slu_json *found = NULL;

	if (!slu_json_is_obj(obj))
		return NULL;
	for (struct slu_json_it it = slu_json_first(obj); it.val; slu_json_next(&it))
		if (slu_json_count(it.keyval) == n && !memcmp(it.key, key, n))
			found = it.val;
	return found;
}

const struct slu_json *slu_json_get(const struct slu_json *obj, const char *key)
{
	return slu_json_getn(obj, key, strlen(key));
}

const struct slu_json *slu_json_dig(const struct slu_json *obj, ...)
{
	const char *key;
	va_list ap;

	va_start(ap, obj);
	while (obj && (key = va_arg(ap, const char *)))
		obj = slu_json_get(obj, key);
	va_end(ap);
	return obj;
}

const struct slu_json *slu_json_item(const struct slu_json *arr, size_t i)
{
	if (!slu_json_is_arr(arr) || i >= slu_json_count(arr))
		return NULL;
	for (arr++; i; i--)
		arr = slu_json_after(arr);
	return arr;
}
