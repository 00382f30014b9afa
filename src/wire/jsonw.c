#include "wire/jsonw.h"

#include <math.h>
#include <stdio.h>

#include "base/f64.h"
#include "wire/json.h"

static void write_line_break(struct slu_jsonw *w)
{
	slu_buf_putc(w->b, '\n');
	for (uint32_t i = 0; i < w->level; i++)
		slu_buf_add(w->b, "  ", 2);
}

/* Write the comma and the white space that precede a key or an item of an array. */
static void write_separator(struct slu_jsonw *w)
{
	if (w->value) {
		w->value = false;
		return;
	}
	if (w->more)
		slu_buf_add(w->b, ", ", w->style == SLU_JSONW_SPACED ? 2 : 1);
	if (w->style == SLU_JSONW_INDENT && w->level)
		write_line_break(w);
}

static void open(struct slu_jsonw *w, char c)
{
	write_separator(w);
	slu_buf_putc(w->b, c);
	w->more = false;
	w->level++;
}

static void close_bracket(struct slu_jsonw *w, char c)
{
	w->level--;
	if (w->style == SLU_JSONW_INDENT && w->more)
		write_line_break(w);
	slu_buf_putc(w->b, c);
	w->more = true;
	w->value = false;
}

void slu_jsonw_obj(struct slu_jsonw *w)
{
	open(w, '{');
}

void slu_jsonw_end_obj(struct slu_jsonw *w)
{
	close_bracket(w, '}');
}

void slu_jsonw_arr(struct slu_jsonw *w)
{
	open(w, '[');
}

void slu_jsonw_end_arr(struct slu_jsonw *w)
{
	close_bracket(w, ']');
}

int slu_json_quote(struct slu_buf *b, const char *s, size_t n)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t from = 0;

	if (slu_buf_room(b, n + 2) < 0)
		return b->error;
	slu_buf_putc(b, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		char esc[6] = { '\\', 0, '0', '0' };
		size_t len = 2;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		switch (c) {
		case '"':
		case '\\':
			esc[1] = (char)c;
			break;
		case '\b':
			esc[1] = 'b';
			break;
		case '\f':
			esc[1] = 'f';
			break;
		case '\n':
			esc[1] = 'n';
			break;
		case '\r':
			esc[1] = 'r';
			break;
		case '\t':
			esc[1] = 't';
			break;
		default:
			esc[1] = 'u';
			esc[4] = hex[c >> 4];
			esc[5] = hex[c & 15];
			len = 6;
		}
		slu_buf_add(b, s + from, i - from);
		slu_buf_add(b, esc, len);
		from = i + 1;
	}
	slu_buf_add(b, s + from, n - from);
	return slu_buf_putc(b, '"');
}

void slu_jsonw_keyn(struct slu_jsonw *w, const char *key, size_t n)
{
	write_separator(w);
	slu_json_quote(w->b, key, n);
	slu_buf_add(w->b, ": ", w->style == SLU_JSONW_COMPACT ? 1 : 2);
	w->value = true;
}

void slu_jsonw_key(struct slu_jsonw *w, const char *key)
{
	slu_jsonw_keyn(w, key, strlen(key));
}

void slu_jsonw_raw(struct slu_jsonw *w, const char *text, size_t n)
{
	write_separator(w);
	slu_buf_add(w->b, text, n);
	w->more = true;
}

void slu_jsonw_strn(struct slu_jsonw *w, const char *s, size_t n)
{
	write_separator(w);
	slu_json_quote(w->b, s, n);
	w->more = true;
}

void slu_jsonw_null(struct slu_jsonw *w)
{
	slu_jsonw_raw(w, "null", 4);
}

void slu_jsonw_str(struct slu_jsonw *w, const char *s)
{
	if (s)
		slu_jsonw_strn(w, s, strlen(s));
	else
		slu_jsonw_null(w);
}

void slu_jsonw_i64(struct slu_jsonw *w, int64_t v)
{
	write_separator(w);
	slu_buf_i64(w->b, v);
	w->more = true;
}

void slu_jsonw_u64(struct slu_jsonw *w, uint64_t v)
{
	write_separator(w);
	slu_buf_printf(w->b, "%" PRIu64, v);
	w->more = true;
}

void slu_jsonw_f64(struct slu_jsonw *w, double v)
{
	char t[40];

	if (!isfinite(v)) {
		slu_jsonw_null(w);
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		slu_f64_print(t, sizeof t, digits, v);
		if (slu_f64_parse(t, NULL) == v)
			break;
	}
	if (!strpbrk(t, ".e"))
		memcpy(t + strlen(t), ".0", 3);
	slu_jsonw_raw(w, t, strlen(t));
}

void slu_jsonw_bool(struct slu_jsonw *w, bool v)
{
	if (v)
		slu_jsonw_raw(w, "true", 4);
	else
		slu_jsonw_raw(w, "false", 5);
}

void slu_jsonw_value(struct slu_jsonw *w, const struct slu_json *v)
{
	bool b = false;
	double f = 0;

	switch (slu_json_kind(v)) {
	case SLU_JSON_NONE:
	case SLU_JSON_NULL:
		slu_jsonw_null(w);
		break;
	case SLU_JSON_BOOL:
		slu_json_bool(v, &b);
		slu_jsonw_bool(w, b);
		break;
	case SLU_JSON_INT:
		if (v->tag & 8)
			slu_jsonw_i64(w, v->u.i64);
		else
			slu_jsonw_u64(w, v->u.u64);
		break;
	case SLU_JSON_REAL:
		slu_json_f64(v, &f);
		slu_jsonw_f64(w, f);
		break;
	case SLU_JSON_STR:
		slu_jsonw_strn(w, v->u.str, slu_json_count(v));
		break;
	case SLU_JSON_ARR:
		slu_jsonw_arr(w);
		slu_json_each (v, it)
			slu_jsonw_value(w, it.val);
		slu_jsonw_end_arr(w);
		break;
	case SLU_JSON_OBJ:
		slu_jsonw_obj(w);
		slu_json_each (v, it) {
			slu_jsonw_keyn(w, it.key, slu_json_count(it.keyval));
			slu_jsonw_value(w, it.val);
		}
		slu_jsonw_end_obj(w);
		break;
	}
}
