#include "store/dump.h"
#include "store/statement.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define LINE_MAX_BYTES (64u << 20)

/* ---- out ---- */

struct exporting {
	const struct slu_store_table *table;
	slu_dump_line_fn *fn;
	void *arg;
	struct slu_buf line;
	uint64_t rows;
};

static void hex(struct slu_jsonw *w, const void *p, size_t n)
{
	static const char digit[] = "0123456789abcdef";
	struct slu_buf b = SLU_BUF_INIT(LINE_MAX_BYTES);
	const unsigned char *s = p;

	for (size_t i = 0; i < n; i++) {
		slu_buf_putc(&b, digit[s[i] >> 4]);
		slu_buf_putc(&b, digit[s[i] & 15]);
	}
	if (b.error)
		w->b->error = b.error;
	slu_jsonw_strn(w, slu_buf_str(&b), b.n);
	slu_buf_done(&b);
}

static int emit(struct exporting *x)
{
	slu_buf_putc(&x->line, '\n');
	return x->line.error ? x->line.error : x->fn(x->arg, x->line.p, x->line.n);
}

static int export_row(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct exporting *x = arg;
	const struct slu_store_table *t = x->table;
	struct slu_jsonw w = slu_jsonw(&x->line, SLU_JSONW_COMPACT);
	uint32_t columns = (uint32_t)strlen(t->types);

	if (t->sum && slu_store_sum(v, columns) != v[columns].i)
		return slu_fail(err, -EBADMSG, "table %s: row %" PRId64 " is damaged (checksum)",
				t->name, v[0].i);
	slu_buf_reset(&x->line);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "table", t->name);
	for (uint32_t i = 0; i < columns; i++) {
		slu_jsonw_key(&w, t->column[i]);
		if (t->types[i] == 'i')
			slu_jsonw_i64(&w, v[i].i);
		else if (t->types[i] == 't')
			slu_jsonw_strn(&w, v[i].p, v[i].n);
		else
			hex(&w, v[i].p, v[i].n);
	}
	slu_jsonw_end_obj(&w);
	x->rows++;
	return emit(x);
}

static int export_head(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct exporting *x = arg;
	struct slu_jsonw w = slu_jsonw(&x->line, SLU_JSONW_COMPACT);

	slu_buf_reset(&x->line);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "sluice", "export");
	slu_jsonw_ki64(&w, "schema", slu_store_schema_version());
	slu_jsonw_kstr(&w, "cluster", v[0].p);
	slu_jsonw_end_obj(&w);
	return emit(x);
}

int slu_dump_export(struct slu_store *s, slu_dump_line_fn *fn, void *arg, uint64_t *rows,
		    struct slu_error *err)
{
	struct exporting x = { .fn = fn, .arg = arg, .line = SLU_BUF_INIT(LINE_MAX_BYTES) };
	struct slu_sql *q = slu_store_sql(s);
	int rc = q->ops->begin(q, err);

	if (!rc)
		rc = q->ops->query(q, ST_META, NULL, 0, export_head, &x, NULL, err);
	for (uint32_t i = 0; i < SLU_STORE_TABLES && !rc; i++) {
		x.table = &slu_store_tables[i];
		rc = q->ops->query(q, x.table->all, NULL, 0, export_row, &x, NULL, err);
	}
	q->ops->rollback(q);
	slu_buf_done(&x.line);
	if (!rc && rows)
		*rows = x.rows;
	return rc;
}

/* ---- in ---- */

struct slu_import {
	struct slu_store *s;
	struct slu_sql *q;
	uint64_t lines, rows;
	bool open, head;
};

static int any_row(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	return slu_fail(err, -EEXIST, "the store is not empty (table %s); import into a new one",
			(const char *)arg);
}

int slu_import_new(struct slu_store *s, struct slu_import **out, struct slu_error *err)
{
	slu_cleanup(slu_import_freep) struct slu_import *im = slu_calloc(1, sizeof *im);
	int rc;

	if (!im)
		return -ENOMEM;
	im->s = s;
	im->q = slu_store_sql(s);
	for (uint32_t i = 0; i < SLU_STORE_TABLES; i++) {
		rc = im->q->ops->query(im->q, slu_store_tables[i].all, NULL, 0, any_row,
				       (void *)slu_store_tables[i].name, NULL, err);
		if (rc < 0)
			return rc;
	}
	rc = im->q->ops->begin(im->q, err);
	if (rc < 0)
		return rc;
	im->open = true;
	*out = slu_take(im);
	return 0;
}

static int read_head(struct slu_import *im, const struct slu_json *o, struct slu_error *err)
{
	const char *what = slu_json_str(slu_json_get(o, "sluice"));
	const char *cluster = slu_json_str(slu_json_get(o, "cluster"));
	int64_t schema = slu_json_i64_or(slu_json_get(o, "schema"), 0);
	struct slu_sql_val v;

	if (!what || strcmp(what, "export") != 0 || !cluster)
		return slu_fail(err, -EINVAL,
				"not an export of a sluice store: the first line is wrong");
	if (schema < 1 || schema > slu_store_schema_version())
		return slu_fail(err, -EPROTO,
				"the export has schema version %" PRId64 ", this program knows %d",
				schema, slu_store_schema_version());
	im->head = true;
	if (!*cluster)
		return 0;
	v = slu_sql_text(cluster);
	return im->q->ops->run(im->q, ST_SET_CLUSTER, &v, 1, false, err);
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int unhex(struct slu_arena *mem, const struct slu_json *f, struct slu_sql_val *out)
{
	const char *s = slu_json_str(f);
	size_t n = slu_json_count(f);
	unsigned char *p;

	if (!s || n % 2)
		return -EINVAL;
	p = slu_arena_alloc(mem, n / 2 + 1);
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < n / 2; i++) {
		int hi = nibble(s[2 * i]), lo = nibble(s[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return -EINVAL;
		p[i] = (unsigned char)(hi << 4 | lo);
	}
	*out = slu_sql_blob(p, n / 2);
	return 0;
}

static const struct slu_store_table *find_table(const char *name)
{
	for (uint32_t i = 0; name && i < SLU_STORE_TABLES; i++)
		if (strcmp(slu_store_tables[i].name, name) == 0)
			return &slu_store_tables[i];
	return NULL;
}

static int read_row(struct slu_import *im, const struct slu_json *o, struct slu_error *err)
{
	const char *name = slu_json_str(slu_json_get(o, "table"));
	const struct slu_store_table *t = find_table(name);
	struct slu_sql_val v[SLU_SQL_MAX_COLUMNS];
	struct slu_arena mem = { 0 };
	uint32_t n;
	int rc = 0;

	if (!t)
		return slu_fail(err, -EINVAL, "unknown table \"%s\"", name ? name : "");
	n = (uint32_t)strlen(t->types);
	for (uint32_t i = 0; i < n && !rc; i++) {
		const struct slu_json *f = slu_json_get(o, t->column[i]);

		v[i] = slu_sql_int(0);
		if (t->types[i] == 'i')
			rc = slu_json_i64(f, &v[i].i);
		else if (t->types[i] == 'b')
			rc = unhex(&mem, f, &v[i]);
		else if (slu_json_is_str(f))
			v[i] = slu_sql_text(slu_json_str(f));
		else
			rc = -EINVAL;
		if (rc < 0)
			slu_fail(err, rc, "table %s: column %s is missing or of the wrong kind",
				 t->name, t->column[i]);
	}
	if (!rc && t->sum) {
		v[n] = slu_sql_int(slu_store_sum(v, n));
		n++;
	}
	if (!rc)
		rc = im->q->ops->run(im->q, t->put, v, n, false, err);
	slu_arena_done(&mem);
	if (!rc)
		im->rows++;
	return rc;
}

int slu_import_line(struct slu_import *im, const char *line, size_t n, struct slu_error *err)
{
	const struct slu_json_limits limits = { .max_bytes = LINE_MAX_BYTES, .max_depth = 8 };
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	int rc;

	im->lines++;
	rc = slu_json_parse(line, n, &limits, &doc, err);
	if (!rc)
		rc = im->head ? read_row(im, slu_json_root(doc), err)
			      : read_head(im, slu_json_root(doc), err);
	return rc ? slu_fail_prefix(err, rc, "line %" PRIu64, im->lines) : 0;
}

int slu_import_commit(struct slu_import *im, uint64_t *rows, struct slu_error *err)
{
	int rc;

	if (!im->head)
		return slu_fail(err, -EINVAL, "the export is empty");
	rc = im->q->ops->commit(im->q, err);
	if (rc < 0)
		return rc;
	im->open = false;
	if (rows)
		*rows = im->rows;
	return 0;
}

void slu_import_free(struct slu_import *im)
{
	if (!im)
		return;
	if (im->open)
		im->q->ops->rollback(im->q);
	slu_free(im);
}
