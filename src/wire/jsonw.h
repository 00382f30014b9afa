/* jsonw.h — writing JSON as a stream into a buffer; no tree in between.
 *
 *	struct slu_jsonw w = slu_jsonw(&buf, SLU_JSONW_SPACED);
 *	slu_jsonw_obj(&w);
 *	slu_jsonw_key(&w, "id"), slu_jsonw_i64(&w, 7);
 *	slu_jsonw_end_obj(&w);			// {"id": 7}
 *
 * The writer places commas and colons; it does not check that keys and values alternate.  Errors
 * (memory, the buffer's ceiling) stick to the buffer: look at buf->error once at the end. */
#pragma once
#include "base/buf.h"

struct slu_json;

enum slu_jsonw_style {
	SLU_JSONW_COMPACT, /* {"a":1,"b":[2,3]} */
	SLU_JSONW_SPACED,  /* {"a": 1, "b": [2, 3]}, the form of Fluxion's writers */
	SLU_JSONW_INDENT,  /* two blanks per level, one item a line */
};

struct slu_jsonw {
	struct slu_buf *b;
	enum slu_jsonw_style style;
	uint32_t level;
	bool more;  /* the next item needs a comma before it */
	bool value; /* a key was just written */
};

static inline struct slu_jsonw slu_jsonw(struct slu_buf *b, enum slu_jsonw_style style)
{
	return (struct slu_jsonw){ .b = b, .style = style };
}

void slu_jsonw_obj(struct slu_jsonw *w);
void slu_jsonw_end_obj(struct slu_jsonw *w);
void slu_jsonw_arr(struct slu_jsonw *w);
void slu_jsonw_end_arr(struct slu_jsonw *w);
void slu_jsonw_key(struct slu_jsonw *w, const char *key);
void slu_jsonw_keyn(struct slu_jsonw *w, const char *key, size_t n);
/* NULL writes null. */
void slu_jsonw_str(struct slu_jsonw *w, const char *s);
void slu_jsonw_strn(struct slu_jsonw *w, const char *s, size_t n);
void slu_jsonw_i64(struct slu_jsonw *w, int64_t v);
void slu_jsonw_u64(struct slu_jsonw *w, uint64_t v);
/* The shortest of up to 17 digits that reads back the same; infinities and NaN become null. */
void slu_jsonw_f64(struct slu_jsonw *w, double v);
void slu_jsonw_bool(struct slu_jsonw *w, bool v);
void slu_jsonw_null(struct slu_jsonw *w);
/* A value that is JSON text already. */
void slu_jsonw_raw(struct slu_jsonw *w, const char *text, size_t n);
/* A parsed value with everything below it. */
void slu_jsonw_value(struct slu_jsonw *w, const struct slu_json *v);

/* The short forms: key and value in one call. */
static inline void slu_jsonw_kstr(struct slu_jsonw *w, const char *key, const char *s)
{
	slu_jsonw_key(w, key);
	slu_jsonw_str(w, s);
}

static inline void slu_jsonw_ki64(struct slu_jsonw *w, const char *key, int64_t v)
{
	slu_jsonw_key(w, key);
	slu_jsonw_i64(w, v);
}

static inline void slu_jsonw_kbool(struct slu_jsonw *w, const char *key, bool v)
{
	slu_jsonw_key(w, key);
	slu_jsonw_bool(w, v);
}

/* The quoted, escaped form of a string alone. */
int slu_json_quote(struct slu_buf *b, const char *s, size_t n);
