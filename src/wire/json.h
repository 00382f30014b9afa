/* json.h — reading JSON (yyjson behind our limits and errors) and the one tree type that JSON and
 * YAML share; a streaming writer is in jsonw.h.
 *
 *	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
 *	int rc = slu_json_parse(text, n, NULL, &doc, err);
 *	const struct slu_json *meta = slu_json_get(slu_json_root(doc), "metadata");
 *	const char *name = slu_json_str(slu_json_get(meta, "name"));	// NULL: absent, or no string
 *
 * A document owns its values and strings; values are borrowed, immutable, valid until the document
 * is freed.  Every reading function takes NULL for "absent", so lookups chain without tests.
 * Duplicate keys: the last one wins in slu_json_get(); iteration shows all of them in text order.
 * Strings are valid UTF-8, NUL-terminated and hold no NUL inside (a text with one is refused). */
#pragma once
#include "base/base.h"

struct slu_json_doc;

/* The layout is private to wire/; use the functions below. */
struct slu_json {
	uint64_t tag; /* low byte: kind bits; above: string length or number of children */
	union {
		uint64_t u64;
		int64_t i64;
		double f64;
		const char *str;
		size_t ofs;
	} u;
};

enum slu_json_kind {
	SLU_JSON_NONE, /* absent (NULL) */
	SLU_JSON_NULL,
	SLU_JSON_BOOL,
	SLU_JSON_INT,  /* fits int64 or uint64 */
	SLU_JSON_REAL, /* has a point or exponent, or is too large for 64 bits */
	SLU_JSON_STR,
	SLU_JSON_ARR,
	SLU_JSON_OBJ,
};

#define SLU_JSON_BYTES ((size_t)1 << 30)
#define SLU_JSON_DEPTH 256u

/* 0 in a field means its default. */
struct slu_json_limits {
	size_t max_bytes;   /* default SLU_JSON_BYTES */
	uint32_t max_depth; /* default SLU_JSON_DEPTH */
};

/* The place and the kind of an error, for callers that write the message themselves. */
struct slu_json_place {
	uint32_t line, col; /* from 1 */
	const char *what;   /* constant text */
};

/* Parse one document; nothing but white space may follow it.  The text is copied.
 * 0; -EINVAL (not JSON, not UTF-8, a NUL in a string), -EMSGSIZE (too large or too deep), -ENOMEM.
 * err reads "line 3, column 14: unexpected character". */
int slu_json_parse(const char *text, size_t n, const struct slu_json_limits *lim,
		   struct slu_json_doc **out, struct slu_error *err);
/* The same, the place in parts; `place` is filled on -EINVAL and -EMSGSIZE. */
int slu_json_parse_place(const char *text, size_t n, const struct slu_json_limits *lim,
			 struct slu_json_doc **out, struct slu_json_place *place);

void slu_json_free(struct slu_json_doc *doc);
SLU_DEFINE_CLEANUP(struct slu_json_doc, slu_json_free)

/* NULL for a NULL document. */
const struct slu_json *slu_json_root(const struct slu_json_doc *doc);

/* Line and column (from 1) of a value, key or container of a YAML document; 0 if not known, as for
 * all of JSON. */
uint32_t slu_json_line(const struct slu_json_doc *doc, const struct slu_json *v);
uint32_t slu_json_col(const struct slu_json_doc *doc, const struct slu_json *v);

static inline enum slu_json_kind slu_json_kind(const struct slu_json *v)
{
	static const uint8_t kind[32] = {
		[2] = SLU_JSON_NULL,     [3] = SLU_JSON_BOOL,     [3 + 8] = SLU_JSON_BOOL,
		[4] = SLU_JSON_INT,      [4 + 8] = SLU_JSON_INT,  [4 + 16] = SLU_JSON_REAL,
		[5] = SLU_JSON_STR,      [5 + 8] = SLU_JSON_STR,  [5 + 16] = SLU_JSON_STR,
		[5 + 24] = SLU_JSON_STR, [6] = SLU_JSON_ARR,      [6 + 8] = SLU_JSON_ARR,
		[6 + 16] = SLU_JSON_ARR, [6 + 24] = SLU_JSON_ARR, [7] = SLU_JSON_OBJ,
		[7 + 8] = SLU_JSON_OBJ,  [7 + 16] = SLU_JSON_OBJ, [7 + 24] = SLU_JSON_OBJ,
	};

	return v ? (enum slu_json_kind)kind[v->tag & 31] : SLU_JSON_NONE;
}

static inline bool slu_json_is_null(const struct slu_json *v)
{
	return v && (v->tag & 7) == 2;
}

static inline bool slu_json_is_str(const struct slu_json *v)
{
	return v && (v->tag & 7) == 5;
}

static inline bool slu_json_is_arr(const struct slu_json *v)
{
	return v && (v->tag & 7) == 6;
}

static inline bool slu_json_is_obj(const struct slu_json *v)
{
	return v && (v->tag & 7) == 7;
}

/* The text of a string value, else NULL. */
static inline const char *slu_json_str(const struct slu_json *v)
{
	return slu_json_is_str(v) ? v->u.str : NULL;
}

/* Length of a string in bytes, number of items of an array, of pairs of an object; else 0. */
static inline size_t slu_json_count(const struct slu_json *v)
{
	return v && (v->tag & 7) >= 5 ? (size_t)(v->tag >> 8) : 0;
}

/* Was this scalar of a YAML document written without quotes?  False for JSON and containers. */
static inline bool slu_json_is_plain(const struct slu_json *v)
{
	return v && (v->tag & 32);
}

/* 0; -EINVAL if it is no integer, -ERANGE if it does not fit. *out is untouched on failure. */
int slu_json_i64(const struct slu_json *v, int64_t *out);
int slu_json_u64(const struct slu_json *v, uint64_t *out);
/* Integers are converted.  0 or -EINVAL. */
int slu_json_f64(const struct slu_json *v, double *out);
/* 0 or -EINVAL. */
int slu_json_bool(const struct slu_json *v, bool *out);
/* The value or `otherwise` when absent or of another kind. */
int64_t slu_json_i64_or(const struct slu_json *v, int64_t otherwise);
bool slu_json_bool_or(const struct slu_json *v, bool otherwise);
const char *slu_json_str_or(const struct slu_json *v, const char *otherwise);

/* The value of a key; NULL if absent or `obj` is no object. */
const struct slu_json *slu_json_get(const struct slu_json *obj, const char *key);
const struct slu_json *slu_json_getn(const struct slu_json *obj, const char *key, size_t n);
/* Several steps at once: slu_json_dig(pod, "spec", "nodeName", NULL). */
const struct slu_json *slu_json_dig(const struct slu_json *obj, ...) __attribute__((sentinel));
/* i-th item of an array; NULL if there is none. */
const struct slu_json *slu_json_item(const struct slu_json *arr, size_t i);

/* Walk over an array or object (anything else is empty):
 *	slu_json_each (obj, it)
 *		use(it.key, it.val); */
struct slu_json_it {
	const struct slu_json *val; /* NULL at the end */
	const char *key;            /* NULL in arrays */
	const struct slu_json *keyval;
	size_t left;
	bool obj;
};

static inline const struct slu_json *slu_json_after(const struct slu_json *v)
{
	return (v->tag & 7) >= 6 ? (const struct slu_json *)((const char *)v + v->u.ofs) : v + 1;
}

static inline void slu_json_it_at(struct slu_json_it *it, const struct slu_json *p)
{
	if (!it->left) {
		it->val = NULL;
		return;
	}
	it->left--;
	if (it->obj) {
		it->keyval = p;
		it->key = p->u.str;
		p++;
	}
	it->val = p;
}

static inline struct slu_json_it slu_json_first(const struct slu_json *c)
{
	struct slu_json_it it = { 0 };

	if (slu_json_is_arr(c) || slu_json_is_obj(c)) {
		it.obj = slu_json_is_obj(c);
		it.left = slu_json_count(c);
		slu_json_it_at(&it, c + 1);
	}
	return it;
}

static inline void slu_json_next(struct slu_json_it *it)
{
	slu_json_it_at(it, slu_json_after(it->val));
}

#define slu_json_each(c, it) \
	for (struct slu_json_it it = slu_json_first(c); it.val; slu_json_next(&it))
