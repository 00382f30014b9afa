/* Write settings as JSON, write their schema, and tell which changes need a restart. */
#include "control/config/rows_internal.h"

static void write_rows(const struct row *rows, const void *from, struct slu_jsonw *w);

static void write_value(const struct row *row, const void *from, struct slu_jsonw *w)
{
	const void *at = (const char *)from + row->off;

	switch (row->type) {
	case STR:
	case CHOICE:
		slu_jsonw_str(w, *(const char *const *)at);
		break;
	case BOOL:
		slu_jsonw_bool(w, *(const bool *)at);
		break;
	case U32:
		slu_jsonw_u64(w, *(const uint32_t *)at);
		break;
	case I32:
		slu_jsonw_i64(w, *(const int32_t *)at);
		break;
	case REAL:
		slu_jsonw_f64(w, *(const double *)at);
		break;
	case SECONDS:
		slu_jsonw_i64(w, *(const int64_t *)at);
		break;
	case STRS: {
		const struct slu_config_strs *s = at;

		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < s->n; i++)
			slu_jsonw_str(w, s->p[i]);
		slu_jsonw_end_arr(w);
		break;
	}
	case LIST: {
		const char *p;
		uint32_t n;

		memcpy(&p, at, sizeof p);
		memcpy(&n, (const char *)from + row->n_off, sizeof n);
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < n; i++)
			write_rows(row->sub, p + i * row->size, w);
		slu_jsonw_end_arr(w);
		break;
	}
	case SECTION:
		write_rows(row->sub, from, w);
		break;
	}
}

static void write_rows(const struct row *rows, const void *from, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	for (const struct row *row = rows; row->key; row++) {
		slu_jsonw_key(w, row->key);
		if (row->shown) {
			char text[4096];

			row->shown(*(const char *const *)((const char *)from + row->off), text,
				   sizeof text);
			slu_jsonw_str(w, text);
		} else {
			write_value(row, from, w);
		}
	}
	slu_jsonw_end_obj(w);
}

void slu_config_write(const struct slu_config *c, struct slu_jsonw *w)
{
	write_rows(slu_config_rows, c, w);
}

static void schema_rows(const struct row *rows, struct slu_jsonw *w);

static void schema_row(const struct row *row, struct slu_jsonw *w)
{
	static const char *const name[] = {
		[STR] = "string",  [BOOL] = "boolean", [U32] = "integer",
		[I32] = "integer", [REAL] = "number",  [CHOICE] = "string",
		[STRS] = "array",  [LIST] = "array",   [SECTION] = "object",
	};

	slu_jsonw_key(w, row->key);
	if (row->type == SECTION) {
		schema_rows(row->sub, w);
		return;
	}
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "description", row->help);
	if (row->type == SECONDS) {
		slu_jsonw_key(w, "type");
		slu_jsonw_arr(w);
		slu_jsonw_str(w, "integer");
		slu_jsonw_str(w, "string");
		slu_jsonw_end_arr(w);
		slu_jsonw_kstr(w, "pattern", "^[0-9]+[smhd]?$");
	} else {
		slu_jsonw_kstr(w, "type", name[row->type]);
	}
	if (row->def)
		slu_jsonw_kstr(w, "x-default", row->def);
	if (row->max) {
		slu_jsonw_ki64(w, "minimum", row->min);
		slu_jsonw_ki64(w, "maximum", row->max);
	}
	if (row->type == CHOICE) {
		slu_jsonw_key(w, "enum");
		slu_jsonw_arr(w);
		for (const char *const *c = row->choice; *c; c++)
			slu_jsonw_str(w, *c);
		slu_jsonw_end_arr(w);
	}
	if (row->type == STRS || row->type == LIST) {
		slu_jsonw_key(w, "items");
		if (row->type == LIST) {
			schema_rows(row->sub, w);
		} else {
			slu_jsonw_obj(w);
			slu_jsonw_kstr(w, "type", "string");
			slu_jsonw_end_obj(w);
		}
	}
	slu_jsonw_kbool(w, "x-restart", row->restart);
	slu_jsonw_end_obj(w);
}

static void schema_rows(const struct row *rows, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", "object");
	slu_jsonw_kbool(w, "additionalProperties", false);
	slu_jsonw_key(w, "properties");
	slu_jsonw_obj(w);
	for (const struct row *row = rows; row->key; row++)
		schema_row(row, w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
}

void slu_config_schema(struct slu_jsonw *w)
{
	schema_rows(slu_config_rows, w);
}

static void diff_rows(const struct row *rows, const char *section, const void *a, const void *b,
		      struct slu_buf *out)
{
	for (const struct row *row = rows; row->key; row++) {
		struct slu_buf x = SLU_BUF_INIT(SLU_CONFIG_FILE_MAX),
			       y = SLU_BUF_INIT(SLU_CONFIG_FILE_MAX);
		struct slu_jsonw wx = slu_jsonw(&x, SLU_JSONW_COMPACT);
		struct slu_jsonw wy = slu_jsonw(&y, SLU_JSONW_COMPACT);

		if (row->type == SECTION) {
			diff_rows(row->sub, row->key, a, b, out);
			continue;
		}
		if (!row->restart)
			continue;
		write_value(row, a, &wx);
		write_value(row, b, &wy);
		if (strcmp(slu_buf_str(&x), slu_buf_str(&y)))
			slu_buf_printf(out, "%s%s%s%s", out->n ? ", " : "", section,
				       *section ? "." : "", row->key);
		slu_buf_done(&x);
		slu_buf_done(&y);
	}
}

static size_t value_size(const struct row *row)
{
	switch (row->type) {
	case BOOL:
		return sizeof(bool);
	case U32:
	case I32:
		return sizeof(uint32_t);
	case REAL:
		return sizeof(double);
	case SECONDS:
		return sizeof(int64_t);
	case STRS:
		return sizeof(struct slu_config_strs);
	default:
		return sizeof(void *); /* strings and lists */
	}
}

static void keep_rows(const struct row *rows, char *now, const char *first)
{
	for (const struct row *row = rows; row->key; row++) {
		if (row->type == SECTION) {
			keep_rows(row->sub, now, first);
			continue;
		}
		if (!row->restart)
			continue;
		memcpy(now + row->off, first + row->off, value_size(row));
		if (row->type == LIST)
			memcpy(now + row->n_off, first + row->n_off, sizeof(uint32_t));
	}
}

void slu_config_keep(struct slu_config *now, const struct slu_config *first)
{
	keep_rows(slu_config_rows, (char *)now, (const char *)first);
}

void slu_config_needs_restart(const struct slu_config *old, const struct slu_config *now,
			      struct slu_buf *out)
{
	diff_rows(slu_config_rows, "", old, now, out);
}
