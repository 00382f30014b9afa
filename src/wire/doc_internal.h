/* doc_internal.h — the memory layout of a parsed document; for the readers in wire/ only. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "wire/json.h"

/* Kind bits as yyjson lays them out, and one of ours. */
#define TAG_NULL  2u
#define TAG_FALSE 3u
#define TAG_TRUE  (3u | 8u)
#define TAG_UINT  4u
#define TAG_SINT  (4u | 8u)
#define TAG_REAL  (4u | 16u)
#define TAG_STR   5u
#define TAG_ARR   6u
#define TAG_OBJ   7u
#define TAG_PLAIN 32u

struct mark {
	uint32_t line, col;
};

struct yyjson_doc;

struct slu_json_doc {
	struct yyjson_doc *yy; /* JSON: owns everything */
	struct slu_json *val;  /* the values, flat, in text order; the first is the root */
	uint32_t n;
	struct mark *mark;     /* YAML: one per value */
	struct slu_arena text; /* YAML: the strings */
};

/* The error in a JSON text, and the byte at which it is. */
struct slu_json_wrong {
	size_t pos;
	const char *what; /* constant text */
};

#define SLU_JSON_TOO_DEEP "nested too deeply"
#define SLU_JSON_HAS_NUL  "a NUL character in a string"

/* Read one document.  0; -EINVAL: not JSON; -EMSGSIZE: SLU_JSON_TOO_DEEP; -EILSEQ:
 * SLU_JSON_HAS_NUL, at the first escape of one; -ENOMEM. */
int slu_json_parse_at(const char *text, size_t n, uint32_t max_depth, struct slu_json_doc **out,
		      struct slu_json_wrong *wrong);

/* A plain scalar by the rules of YAML 1.1; false: it is a string, *v is undefined. */
bool slu_yaml_resolve(const char *s, struct slu_json *v);

/* The quick reader: 1 if it read the text, 0 if the text is not simple enough (the document is
 * empty), -ENOMEM. */
int slu_yaml_plain(struct slu_json_doc *doc, const char *text, size_t n, unsigned flags,
		   uint32_t max_depth, uint32_t max_values);
