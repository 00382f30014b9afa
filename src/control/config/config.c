/* Read the file of settings into struct slu_config; an error names the line. */
#include "control/config/rows_internal.h"

#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/file.h"
#include "base/near.h"
#include "control/config/foreign.h"
#include "gang/gang.h"
#include "queue/queue.h"
#include "wire/yaml.h"

#define LIST_MAX 1024

struct reader {
	const char *file;
	const struct slu_json_doc *doc; /* of the file; NULL while defaults are read */
	struct slu_config *c;
	struct slu_error *err;
	char path[256]; /* of the value being read */
	struct slu_buf ignored;
};

static int refuse_value(struct reader *r, const struct slu_json *v, int code, const char *fmt, ...)
	SLU_PRINTF(4, 5);

static int refuse_value(struct reader *r, const struct slu_json *v, int code, const char *fmt, ...)
{
	uint32_t line = r->doc && v ? slu_json_line(r->doc, v) : 0;
	char what[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (line)
		return slu_fail(r->err, code, "%s:%u: %s%s%s", r->file, line, r->path,
				*r->path ? ": " : "", what);
	return slu_fail(r->err, code, "%s: %s%s%s", r->file, r->path, *r->path ? ": " : "", what);
}

/* "1.5": whole and billionths, both >= 0; the end of the number, or NULL. */
static const char *read_decimal(const char *p, int64_t *whole, int64_t *billionths)
{
	const char *from = p;
	int64_t unit = 100000000;

	*whole = *billionths = 0;
	for (; *p >= '0' && *p <= '9'; p++)
		if (slu_mul_i64(*whole, 10, whole) || slu_add_i64(*whole, *p - '0', whole))
			*whole = INT64_MAX; /* stays too large */
	if (p == from)
		return NULL;
	if (*p != '.')
		return p;
	for (from = ++p; *p >= '0' && *p <= '9'; p++, unit /= 10)
		*billionths += (*p - '0') * unit;
	return p == from ? NULL : p;
}

/* "01:30:00" or "7-12:00:00", as batch systems write it; -EINVAL if it is not of that form. */
static int read_clock(const char *s, int64_t *out)
{
	int64_t part[4] = { 0 }, none;
	const char *p = read_decimal(s, &part[0], &none);
	int first = 0;

	if (p && *p == '-') {
		first = 1;
		p = read_decimal(p + 1, &part[1], &none);
	} else {
		part[1] = part[0];
		part[0] = 0;
	}
	for (int i = 2; i < 4; i++) {
		if (!p || *p != ':' || p[1] < '0' || p[1] > '5' || p[2] < '0' || p[2] > '9')
			return -EINVAL;
		part[i] = (p[1] - '0') * 10 + p[2] - '0';
		p += 3;
	}
	if (*p || (first && part[1] > 23) || memchr(s, '.', strlen(s)))
		return -EINVAL;
	if (slu_mul_i64(part[0], 86400, &part[0]) || slu_mul_i64(part[1], 3600, &part[1]) ||
	    slu_add_i64(part[0], part[1], &part[0]))
		return -ERANGE;
	return slu_add_i64(part[0], part[2] * 60 + part[3], out) ? -ERANGE : 0;
}

int slu_config_seconds(const char *s, int64_t *out)
{
	static const struct {
		char c;
		int64_t s;
	} unit[] = { { 'w', 604800 }, { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
	int64_t sum = 0, v, fine, finest = 0;
	size_t next = 0; /* units come in this order, each once */
	const char *p = s;

	if (strchr(s, ':'))
		return read_clock(s, out);
	do {
		size_t u = next;

		p = read_decimal(p, &v, &fine);
		if (!p)
			return -EINVAL;
		if (*p)
			while (u < SLU_LEN(unit) && unit[u].c != *p)
				u++;
		else if (!next)
			u = SLU_LEN(unit) - 1; /* a number alone is seconds */
		if (u >= SLU_LEN(unit) || (!*p && next))
			return -EINVAL;
		if (v == INT64_MAX || slu_mul_i64(v, unit[u].s, &v) || slu_add_i64(sum, v, &sum))
			return -ERANGE;
		finest += fine * unit[u].s;
		next = u + 1;
		p += *p != 0;
	} while (*p);
	/* A part of a second counts as one. */
	if (slu_add_i64(sum, finest / 1000000000 + (finest % 1000000000 != 0), &sum))
		return -ERANGE;
	*out = sum;
	return 0;
}

static int read_str(struct reader *r, const struct slu_json *v, const char **out)
{
	const char *s = slu_json_str(v);

	if (!s)
		return refuse_value(r, v, -EINVAL, "expected a string");
	*out = slu_arena_strndup(&r->c->arena, s, slu_json_count(v));
	return *out ? 0 : slu_fail(r->err, -ENOMEM, "out of memory");
}

static int read_choice(struct reader *r, const struct row *row, const struct slu_json *v,
		       const char **out)
{
	char list[200] = "";
	const char *s = slu_json_str(v);

	if (s && row->choice == slu_gang_policy_names)
		s = slu_foreign_policy(s);
	if (slu_json_str(v) && !s) {
		slu_buf_printf(&r->ignored, "%s%s: %s", r->ignored.n ? ", " : "", r->path,
			       slu_json_str(v));
		s = row->def;
	}
	for (const char *const *c = row->choice; *c; c++) {
		if (s && !strcmp(*c, s)) {
			*out = *c;
			return 0;
		}
		if (*list)
			strncat(list, ", ", sizeof list - strlen(list) - 1);
		strncat(list, *c, sizeof list - strlen(list) - 1);
	}
	return refuse_value(r, v, -EINVAL, "expected one of %s", list);
}

static int read_i64(struct reader *r, const struct row *row, const struct slu_json *v, int64_t *out)
{
	int64_t n;

	if (slu_json_i64(v, &n) < 0)
		return refuse_value(r, v, -EINVAL, "expected a whole number");
	if (n < row->min || n > row->max)
		return refuse_value(r, v, -ERANGE, "%" PRId64 " is outside %" PRId64 "..%" PRId64,
				    n, row->min, row->max);
	*out = n;
	return 0;
}

static int read_seconds(struct reader *r, const struct row *row, const struct slu_json *v,
			int64_t *out)
{
	int64_t n;

	if (slu_json_i64(v, &n) < 0) {
		const char *s = slu_json_str(v);
		int rc = s ? slu_config_seconds(s, &n) : -EINVAL;

		if (rc == -ERANGE)
			return refuse_value(r, v, rc, "too long");
		if (rc < 0)
			return refuse_value(
				r, v, rc,
				"expected a duration such as 90s, 15m, 1h30m, 7d, 01:30:00");
	}
	if (n < row->min || n > row->max)
		return refuse_value(r, v, -ERANGE, "%" PRId64 " s is outside %" PRId64 "..%" PRId64,
				    n, row->min, row->max);
	*out = n;
	return 0;
}

static int read_strs(struct reader *r, const struct slu_json *v, struct slu_config_strs *out)
{
	size_t n = slu_json_count(v);
	struct slu_config_strs s = { 0 };

	if (!slu_json_is_arr(v) || !n || n > LIST_MAX)
		return refuse_value(r, v, -EINVAL, "expected a list of 1 to %d strings", LIST_MAX);
	s.p = slu_arena_zalloc(&r->c->arena, n * sizeof *s.p);
	if (!s.p)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	slu_json_each (v, it) {
		int rc = read_str(r, it.val, &s.p[s.n++]);

		if (rc < 0)
			return rc;
	}
	*out = s;
	return 0;
}

static int read_rows(struct reader *r, const struct row *rows, const struct slu_json *v, void *to);

static int read_list(struct reader *r, const struct row *row, const struct slu_json *v, void *to)
{
	size_t n = slu_json_count(v), len = strlen(r->path);
	uint32_t i = 0;
	char *p;

	if (!slu_json_is_arr(v) || n > LIST_MAX)
		return refuse_value(r, v, -EINVAL, "expected a list of at most %d", LIST_MAX);
	p = slu_arena_zalloc(&r->c->arena, n * row->size + 1);
	if (!p)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	slu_json_each (v, it) {
		int rc;

		snprintf(r->path + len, sizeof r->path - len, "[%u]", i);
		rc = read_rows(r, row->sub, it.val, p + i * row->size);
		if (rc < 0)
			return rc;
		i++;
	}
	r->path[len] = 0;
	memcpy((char *)to + row->off, &p, sizeof p);
	memcpy((char *)to + row->n_off, &i, sizeof i);
	return 0;
}

static int read_value(struct reader *r, const struct row *row, const struct slu_json *v, void *to)
{
	void *at = (char *)to + row->off;
	int64_t n;
	int rc = 0;

	switch (row->type) {
	case STR:
		return read_str(r, v, at);
	case BOOL:
		if (slu_json_bool(v, at) < 0)
			return refuse_value(r, v, -EINVAL, "expected true or false");
		return 0;
	case U32:
		rc = read_i64(r, row, v, &n);
		if (!rc)
			*(uint32_t *)at = (uint32_t)n;
		return rc;
	case I32:
		rc = read_i64(r, row, v, &n);
		if (!rc)
			*(int32_t *)at = (int32_t)n;
		return rc;
	case REAL: {
		double d;

		if (slu_json_f64(v, &d) < 0 || !(d >= (double)row->min && d <= (double)row->max))
			return refuse_value(r, v, -ERANGE,
					    "expected a number in %" PRId64 "..%" PRId64, row->min,
					    row->max);
		*(double *)at = d;
		return 0;
	}
	case SECONDS:
		return read_seconds(r, row, v, at);
	case CHOICE:
		return read_choice(r, row, v, at);
	case STRS:
		return read_strs(r, v, at);
	case LIST:
		return read_list(r, row, v, to);
	case SECTION:
		return read_rows(r, row->sub, v, to);
	}
	return rc;
}

static int read_default(struct reader *r, const struct row *row, void *to)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json_doc *of = r->doc;
	int rc;

	if (!row->def)
		return row->type == SECTION ? read_rows(r, row->sub, NULL, to)
					    : refuse_value(r, NULL, -EINVAL, "is missing");
	if (row->type == STR) {
		memcpy((char *)to + row->off, &row->def, sizeof row->def);
		return 0;
	}
	rc = slu_yaml_parse(row->def, strlen(row->def), 0, NULL, &doc, r->err);
	if (rc < 0)
		return rc;
	r->doc = NULL;
	rc = read_value(r, row, slu_json_root(doc), to);
	r->doc = of;
	return rc;
}

static int unknown_key(struct reader *r, const struct row *rows, const struct slu_json *keyval,
		       const char *key)
{
	struct slu_near near = slu_near(key);

	for (const struct row *row = rows; row->key; row++)
		slu_near_try(&near, row->key);
	if (near.best)
		return refuse_value(r, keyval, -EINVAL,
				    "no setting \"%.60s\"; did you mean \"%s\"?", key, near.best);
	return refuse_value(r, keyval, -EINVAL, "no setting \"%.60s\"", key);
}

/* v NULL or null: everything at its default. */
static int read_rows(struct reader *r, const struct row *rows, const struct slu_json *v, void *to)
{
	size_t len = strlen(r->path);

	if (v && !slu_json_is_null(v) && !slu_json_is_obj(v))
		return refuse_value(r, v, -EINVAL, "expected settings, \"name: value\"");
	slu_json_each (v, it) {
		const struct row *row = rows;

		while (row->key && strcmp(row->key, it.key))
			row++;
		if (!row->key)
			return unknown_key(r, rows, it.keyval, it.key);
		/* A key that is given twice: which of the two values was meant is unknown. */
		if (slu_json_get(v, row->key) != it.val)
			return refuse_value(r, slu_json_get(v, row->key), -EINVAL,
					    "\"%s\" is set twice", row->key);
	}
	for (const struct row *row = rows; row->key; row++) {
		const struct slu_json *val = slu_json_get(v, row->key);
		int rc;

		snprintf(r->path + len, sizeof r->path - len, "%s%s", len ? "." : "", row->key);
		if (val && !slu_json_is_null(val))
			rc = read_value(r, row, val, to);
		else
			rc = read_default(r, row, to);
		if (rc < 0)
			return rc;
	}
	r->path[len] = 0;
	return 0;
}

int slu_config_policy(const struct slu_config_queue *q, struct slu_queue_conf *out,
		      struct slu_error *err)
{
	int rc = slu_objective_parse(q->objective, out, err);

	if (!rc && strcmp(q->policy, "auto")) {
		rc = slu_policy_parse(q->policy, &out->policy, err);
		out->backfill = out->policy == SLU_POLICY_EASY        ? SLU_BACKFILL_PACKED
				: out->policy == SLU_POLICY_SELECTIVE ? SLU_BACKFILL_BALANCED
								      : SLU_BACKFILL_SUBMISSION;
	}
	if (!rc && strcmp(q->backfill, "auto"))
		rc = slu_backfill_parse(q->backfill, &out->backfill, err);
	if (rc < 0)
		return rc;
	if ((q->max_stretch || q->max_wait_s) && out->policy != SLU_POLICY_SELECTIVE)
		return slu_fail(err, -EINVAL,
				"maxStretch and maxWait are bounds of the objectives balanced and "
				"response; this queue promises in order of arrival");
	out->max_stretch = q->max_stretch ? q->max_stretch : out->max_stretch;
	out->max_wait_s = q->max_wait_s ? q->max_wait_s : out->max_wait_s;
	return 0;
}

static int check_queues(struct reader *r)
{
	for (uint32_t i = 0; i < r->c->n_queues; i++) {
		const struct slu_config_queue *q = &r->c->queue[i];
		int64_t given = q->default_duration_s ? q->default_duration_s
						      : r->c->jobs.default_duration_s;
		struct slu_queue_conf conf = { 0 };
		struct slu_error why = { 0 };

		snprintf(r->path, sizeof r->path, "queues[%u]", i);
		if (q->max_duration_s && (given > q->max_duration_s || !given))
			return refuse_value(r, NULL, -EINVAL,
					    "maxDuration %" PRId64 " s is below %s %" PRId64
					    "%s: every job without a duration would be refused",
					    q->max_duration_s,
					    q->default_duration_s ? "defaultDuration"
								  : "jobs.defaultDuration",
					    given, given ? " s" : " (without end)");
		if (slu_config_policy(&r->c->queue[i], &conf, &why) < 0)
			return refuse_value(r, NULL, -EINVAL, "%s", why.text);
	}
	return 0;
}

static int check_names(struct reader *r)
{
	struct slu_config *c = r->c;

	snprintf(r->path, sizeof r->path, "queues");
	if (!c->n_queues)
		return refuse_value(r, NULL, -EINVAL, "at least one queue is needed");
	for (uint32_t i = 0; i < c->n_queues; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(c->queue[i].name, c->queue[j].name))
				return refuse_value(r, NULL, -EINVAL,
						    "two queues are called \"%s\"",
						    c->queue[i].name);
	snprintf(r->path, sizeof r->path, "nodes.topology");
	for (uint32_t i = 0; i < c->nodes.n_levels; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(c->nodes.level[i].name, c->nodes.level[j].name))
				return refuse_value(r, NULL, -EINVAL,
						    "two levels are called \"%s\"",
						    c->nodes.level[i].name);
	return 0;
}

/* A KubeSchedulerConfiguration is read as if it were Sluice's own file; its line numbers are lost
 * in the translation. */
static int read_foreign(struct reader *r, const struct slu_json *root)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	slu_cleanup(slu_buf_done) struct slu_buf ours = SLU_BUF_INIT(2 * SLU_CONFIG_FILE_MAX);
	int rc = slu_foreign_settings(root, &ours, &r->ignored);

	if (rc < 0)
		return slu_fail(r->err, rc, "%s: %s", r->file, strerror(-rc));
	rc = slu_json_parse(slu_buf_str(&ours), ours.n, NULL, &doc, r->err);
	r->doc = NULL;
	return rc ? rc : read_rows(r, slu_config_rows, slu_json_root(doc), r->c);
}

int slu_config_parse(const char *file, const char *text, size_t n, struct slu_config **out,
		     struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	slu_cleanup(slu_config_freep) struct slu_config *c = slu_calloc(1, sizeof *c);
	struct slu_yaml_limits lim = { .max_bytes = SLU_CONFIG_FILE_MAX,
				       .max_depth = 16,
				       .max_values = 100000 };
	struct reader r = { .file = file, .c = c, .err = err };
	int rc;

	r.ignored = SLU_BUF_INIT(4 * SLU_CONFIG_FILE_MAX);
	if (!c)
		return slu_fail(err, -ENOMEM, "out of memory");
	c->refs = 1;
	rc = slu_yaml_parse(text, n, 0, &lim, &doc, err);
	if (rc < 0)
		return slu_fail_prefix(err, rc, "%s", file);
	r.doc = doc;
	rc = slu_foreign_scheduler(slu_json_root(doc))
		     ? read_foreign(&r, slu_json_root(doc))
		     : read_rows(&r, slu_config_rows, slu_json_root(doc), c);
	if (!rc)
		rc = check_names(&r);
	if (!rc)
		rc = check_queues(&r);
	if (!rc && r.ignored.error)
		rc = slu_fail(err, r.ignored.error, "%s: %s", file, strerror(-r.ignored.error));
	if (!rc)
		c->ignored = slu_arena_strndup(&c->arena, slu_buf_str(&r.ignored), r.ignored.n);
	slu_buf_done(&r.ignored);
	if (!rc && !c->ignored)
		rc = slu_fail(err, -ENOMEM, "out of memory");
	if (rc < 0)
		return rc;
	*out = slu_take(c);
	return 0;
}

int slu_config_default(struct slu_config **out, struct slu_error *err)
{
	return slu_config_parse("defaults", "", 0, out, err);
}

int slu_config_read(const char *file, struct slu_config **out, struct slu_error *err)
{
	slu_cleanup(slu_buf_done) struct slu_buf text = SLU_BUF_INIT(SLU_CONFIG_FILE_MAX);
	int rc = slu_file_read(file, &text);

	if (rc == -EMSGSIZE)
		return slu_fail(err, rc, "%s: larger than %d bytes", file, SLU_CONFIG_FILE_MAX);
	if (rc < 0)
		return slu_fail(err, rc, "%s: %s", file, strerror(-rc));
	return slu_config_parse(file, slu_buf_str(&text), text.n, out, err);
}

const struct slu_config *slu_config_ref(const struct slu_config *c)
{
	atomic_fetch_add(&((struct slu_config *)c)->refs, 1);
	return c;
}

void slu_config_free(const struct slu_config *config)
{
	struct slu_config *c = (struct slu_config *)config;

	if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	slu_arena_done(&c->arena);
	slu_free(c);
}
