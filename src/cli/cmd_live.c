/* The commands that speak with a running sluiced: jobs, job, why, nodes, queues, cancel, hold,
 * release, resize, priority, limit, config, drain, undrain. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/client.h"
#include "cli/term.h"
#include "wire/json.h"
#include "wire/jsonw.h"

#define ANSWER_MAX (256u << 20)

struct conf {
	struct slu_client d;
	const char *ns, *output, *from, *until;
	const char *nodes, *label, *amounts, *users, *every;
	int64_t count;
	bool all;
};

static const char *const forms[] = { "table", "json", NULL };

#define COMMON                                                                              \
	{ "server",                                                                         \
	  's',                                                                              \
	  SLU_OPT_STRING,                                                                   \
	  "URL",                                                                            \
	  "unix:PATH or https://HOST:PORT ($SLUICE_SERVER, unix:/run/sluice/sluiced.sock)", \
	  offsetof(struct conf, d.server) },                                                \
		{ "token",                                                                  \
		  0,                                                                        \
		  SLU_OPT_STRING,                                                           \
		  "FILE",                                                                   \
		  "Kubernetes token for HTTPS ($SLUICE_TOKEN_FILE)",                        \
		  offsetof(struct conf, d.token) },                                         \
		{ "ca",                                                                     \
		  0,                                                                        \
		  SLU_OPT_STRING,                                                           \
		  "FILE",                                                                   \
		  "certificate to trust",                                                   \
		  offsetof(struct conf, d.ca) },                                            \
		{ "insecure",                                                               \
		  0,                                                                        \
		  SLU_OPT_FLAG,                                                             \
		  NULL,                                                                     \
		  "trust any certificate",                                                  \
		  offsetof(struct conf, d.insecure) },                                      \
	{                                                                                   \
		"output", 'o', SLU_OPT_STRING, "FORM", "table or json (table)",             \
			offsetof(struct conf, output), .choice = forms                      \
	}
#define SPACE                               \
	{ "namespace",                      \
	  'n',                              \
	  SLU_OPT_STRING,                   \
	  "NS",                             \
	  "namespace of the job (default)", \
	  offsetof(struct conf, ns) }

static const struct slu_option plain_option[] = { COMMON, { 0 } };
static const struct slu_option space_option[] = { COMMON, SPACE, { 0 } };
static const struct slu_option jobs_option[] = {
	COMMON,
	{ "namespace", 'n', SLU_OPT_STRING, "NS", "show only this namespace",
	  offsetof(struct conf, ns) },
	{ "all", 'a', SLU_OPT_FLAG, NULL, "also show pods of other schedulers",
	  offsetof(struct conf, all) },
	{ 0 },
};

static const struct slu_option reservations_option[] = {
	COMMON,
	{ "namespace", 'n', SLU_OPT_STRING, "NS", "namespace of the reservation",
	  offsetof(struct conf, ns) },
	{ 0 },
};
static const struct slu_option drain_option[] = {
	COMMON,
	{ "from", 0, SLU_OPT_STRING, "TIME", "start of the drain (now)",
	  offsetof(struct conf, from) },
	{ "until", 0, SLU_OPT_STRING, "TIME", "end of the drain (until undrain)",
	  offsetof(struct conf, until) },
	{ 0 },
};

static const struct slu_option reserve_option[] = {
	COMMON,
	{ "namespace", 'n', SLU_OPT_STRING, "NS", "namespace of the reservation (default)",
	  offsetof(struct conf, ns) },
	{ "from", 0, SLU_OPT_STRING, "TIME", "start of the reservation (now)",
	  offsetof(struct conf, from) },
	{ "until", 0, SLU_OPT_STRING, "TIME", "end of the reservation",
	  offsetof(struct conf, until) },
	{ "every", 0, SLU_OPT_STRING, "TIME", "repeat after this time: 12h, 1d, 7d (once)",
	  offsetof(struct conf, every) },
	{ "nodes", 0, SLU_OPT_STRING, "LIST", "names of the nodes, separated by commas",
	  offsetof(struct conf, nodes) },
	{ "count", 'c', SLU_OPT_INT, "N", "or number of nodes", offsetof(struct conf, count),
	  .min = 1, .max = 10000 },
	{ "label", 'l', SLU_OPT_STRING, "LABEL", "with --count: only nodes with this label",
	  offsetof(struct conf, label) },
	{ "amounts", 0, SLU_OPT_STRING, "LIST",
	  "amounts of each node: cpu=4,memory=8Gi (whole nodes)", offsetof(struct conf, amounts) },
	{ "users", 'u', SLU_OPT_STRING, "LIST",
	  "users who may use the reservation without naming it", offsetof(struct conf, users) },
	{ 0 },
};

/* ---- asking ---- */

static bool is_json(const struct conf *c)
{
	return c->output && !strcmp(c->output, "json");
}

/* One question; the answer as a document, or printed as it is with -o json (then *doc is NULL). */
static int ask_daemon(const struct conf *c, enum slu_http_method method, const char *path,
		      struct slu_json_doc **doc, struct slu_error *err)
{
	struct slu_buf body = SLU_BUF_INIT(ANSWER_MAX);
	int status = 0, rc = slu_client_ask(&c->d, method, path, &body, &status, err);

	*doc = NULL;
	if (!rc && status != 200) {
		slu_cleanup(slu_json_freep) struct slu_json_doc *why = NULL;
		const char *text = slu_buf_str(&body);

		if (slu_json_parse(text, body.n, NULL, &why, NULL) == 0)
			text = slu_json_str_or(slu_json_get(slu_json_root(why), "error"), text);
		rc = slu_fail(err, status == 404 ? -ENOENT : -EACCES, "%.*s",
			      (int)strcspn(text, "\n"), text);
	} else if (!rc && is_json(c)) {
		fwrite(body.p, 1, body.n, stdout);
	} else if (!rc) {
		rc = slu_json_parse(slu_buf_str(&body), body.n, NULL, doc, err);
	}
	slu_buf_done(&body);
	return rc;
}

static int job_path(const struct conf *c, const char *name, const char *verb, struct slu_buf *b)
{
	const char *slash = strchr(name, '/');
	const char *ns = c->ns ? c->ns : "default";

	slu_buf_puts(b, "/v1/jobs/");
	if (slash) { /* NAMESPACE/NAME, as the table prints it */
		slu_http_escape(b, name, (size_t)(slash - name));
		name = slash + 1;
	} else {
		slu_http_escape(b, ns, strlen(ns));
	}
	slu_buf_putc(b, '/');
	slu_http_escape(b, name, strlen(name));
	if (verb)
		slu_buf_printf(b, "/%s", verb);
	return b->error;
}

static int ask_job(const struct conf *c, const char *name, bool why, struct slu_json_doc **doc,
		   struct slu_error *err)
{
	struct slu_buf path = SLU_BUF_INIT(2048);
	int rc = job_path(c, name, NULL, &path);

	if (why)
		slu_buf_puts(&path, "?why=true");
	rc = rc ? rc : path.error;
	if (!rc)
		rc = ask_daemon(c, SLU_HTTP_GET, path.p, doc, err);
	slu_buf_done(&path);
	return rc;
}

/* ---- tables ---- */

#define COLUMNS_MAX 12

struct table {
	char **cell;
	uint32_t rows, columns, cap;
};

static void cell(struct table *t, const char *text)
{
	uint32_t n = t->rows;

	if (n == t->cap) {
		uint32_t cap = t->cap ? t->cap * 2 : 256;
		char **p = slu_reallocarray(t->cell, cap, sizeof *p);

		if (!p)
			return;
		t->cell = p;
		t->cap = cap;
	}
	t->cell[n] = slu_strdup(text && *text ? text : "-");
	if (t->cell[n]) {
		slu_term_tame(t->cell[n]);
		t->rows++;
	}
}

/* How many bytes the first `columns` characters have. */
static int bytes_of(const char *s, int columns)
{
	int n = 0;

	while (s[n] && (columns > 0 || ((unsigned char)s[n] & 0xc0) == 0x80))
		columns -= ((unsigned char)s[n++] & 0xc0) != 0x80;
	return n;
}

/* The last column is cut at the edge of a terminal; everywhere else, names can be copied. */
static void print(struct table *t)
{
	int width[COLUMNS_MAX] = { 0 }, room = isatty(1) ? slu_term_width() : 0;

	for (uint32_t i = 0; i < t->rows; i++) {
		int n = slu_term_columns(t->cell[i]);

		width[i % t->columns] = SLU_MAX(width[i % t->columns], n);
	}
	for (uint32_t c = 0; c + 1 < t->columns; c++)
		room -= width[c] + 2;
	for (uint32_t i = 0; i < t->rows; i++) {
		const char *s = t->cell[i];

		if (i % t->columns < t->columns - 1)
			printf("%s%*s", s, width[i % t->columns] - slu_term_columns(s) + 2, "");
		else if (room >= 10 && slu_term_columns(s) > room)
			printf("%.*s...\n", bytes_of(s, room - 3), s);
		else
			printf("%s\n", s);
		slu_free(t->cell[i]);
	}
	slu_free(t->cell);
}

static const char *field(const struct slu_json *o, const char *key)
{
	return slu_json_str_or(slu_json_get(o, key), "");
}

/* "in 4m", "2h ago" style from the stamp of the daemon. */
static const char *when(const char *stamp, char out[32])
{
	struct tm tm = { 0 };
	char span[32];
	int64_t d;

	if (!*stamp || !strptime(stamp, "%Y-%m-%dT%H:%M:%S", &tm))
		return "";
	d = (int64_t)timegm(&tm) - (int64_t)time(NULL);
	if (llabs(d) < 120)
		snprintf(span, sizeof span, "%" PRId64 "s", (int64_t)llabs(d));
	else if (llabs(d) < 7200)
		snprintf(span, sizeof span, "%" PRId64 "m", (int64_t)llabs(d) / 60);
	else if (llabs(d) < 172800)
		snprintf(span, sizeof span, "%" PRId64 "h", (int64_t)llabs(d) / 3600);
	else
		snprintf(span, sizeof span, "%" PRId64 "d", (int64_t)llabs(d) / 86400);
	snprintf(out, 32, d >= 0 ? "in %s" : "%s ago", span);
	return out;
}

static void number_cell(struct table *t, const struct slu_json *o, const char *key)
{
	char text[32];
	int64_t v = slu_json_i64_or(slu_json_get(o, key), 0);

	snprintf(text, sizeof text, "%" PRId64, v);
	cell(t, text);
}

/* ---- jobs ---- */

/* Fills a cell from field `key` of a job, or of a pod of another scheduler. */
typedef void cell_fn(struct table *t, const struct slu_json *o, const char *key);

static void text_cell(struct table *t, const struct slu_json *o, const char *key)
{
	cell(t, field(o, key));
}

static void position_cell(struct table *t, const struct slu_json *j, const char *key)
{
	if (slu_json_i64_or(slu_json_get(j, key), 0))
		number_cell(t, j, key);
	else
		cell(t, "");
}

/* When it started, or will; "~" before a start that is not promised. */
static void start_cell(struct table *t, const struct slu_json *j, const char *key)
{
	const char *start = field(j, key);
	char at[32] = "", about[34];

	if (*start) {
		cell(t, when(start, at));
		return;
	}
	snprintf(about, sizeof about, "%s%s",
		 slu_json_bool_or(slu_json_get(j, "promised"), false) ? "" : "~",
		 when(field(j, "estimate"), at));
	cell(t, *at ? about : "");
}

/* The cell is the key itself. */
static void word_cell(struct table *t, const struct slu_json *o, const char *key)
{
	(void)o;
	cell(t, key);
}

static void use_cell(struct table *t, const struct slu_json *f, const char *key)
{
	char what[700];

	snprintf(what, sizeof what, "%s on %s by %s", field(f, key), field(f, "node"),
		 field(f, "scheduler"));
	cell(t, what);
}

/* The columns of `sluice jobs`, the widest last.  `foreign` fills the rows of --all. */
static const struct column {
	const char *head;
	cell_fn *job;
	const char *key;
	cell_fn *foreign; /* NULL: "-" */
	const char *foreign_key;
} job_column[] = {
	{ "NAMESPACE", text_cell, "namespace", text_cell, "namespace" },
	{ "JOB", text_cell, "name", text_cell, "pod" },
	{ "STATE", text_cell, "state", word_cell, "foreign" },
	{ "SIZE", number_cell, "size", word_cell, "1" },
	{ "BOUND", number_cell, "bound", word_cell, "1" },
	{ "PLACE", position_cell, "position" },
	{ "START", start_cell, "start" },
	{ "QUEUE", text_cell, "queue" },
	{ "WHY", text_cell, "reason", use_cell, "needs" },
};
static_assert(SLU_LEN(job_column) <= COLUMNS_MAX, "print() has room for the columns");

static bool shown(const struct conf *c, const struct slu_json *o)
{
	return !c->ns || !strcmp(field(o, "namespace"), c->ns);
}

/* The answer as it came, but for what lies in other namespaces. */
static void print_json(const struct conf *c, const struct slu_json *answer)
{
	struct slu_buf b = SLU_BUF_INIT(ANSWER_MAX);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	slu_json_each (answer, part) {
		slu_jsonw_key(&w, part.key);
		if (!slu_json_is_arr(part.val)) {
			slu_jsonw_value(&w, part.val);
			continue;
		}
		slu_jsonw_arr(&w);
		slu_json_each (part.val, it)
			if (shown(c, it.val))
				slu_jsonw_value(&w, it.val);
		slu_jsonw_end_arr(&w);
	}
	slu_jsonw_end_obj(&w);
	puts(slu_buf_str(&b));
	slu_buf_done(&b);
}

static int run_jobs(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct conf *c = conf, whole = { .d = c->d };
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct table t = { .columns = SLU_LEN(job_column) };
	int rc = ask_daemon(&whole, SLU_HTTP_GET, c->all ? "/v1/jobs?all=true" : "/v1/jobs", &doc,
			    err);

	if (rc < 0)
		return rc;
	if (is_json(c)) {
		print_json(c, slu_json_root(doc));
		return 0;
	}
	for (size_t i = 0; i < SLU_LEN(job_column); i++)
		cell(&t, job_column[i].head);
	slu_json_each (slu_json_get(slu_json_root(doc), "jobs"), it)
		for (size_t i = 0; i < SLU_LEN(job_column) && shown(c, it.val); i++)
			job_column[i].job(&t, it.val, job_column[i].key);
	slu_json_each (slu_json_get(slu_json_root(doc), "foreign"), it)
		for (size_t i = 0; i < SLU_LEN(job_column) && shown(c, it.val); i++)
			if (job_column[i].foreign)
				job_column[i].foreign(&t, it.val, job_column[i].foreign_key);
			else
				cell(&t, "");
	print(&t);
	return 0;
}

static void line(const char *name, const char *value)
{
	char *text = value && *value ? slu_strdup(value) : NULL;

	if (text)
		printf("%-12s %s\n", name, slu_term_tame(text));
	slu_free(text);
}

static void number_line(const char *name, const struct slu_json *o, const char *key,
			const char *unit)
{
	char text[40];

	snprintf(text, sizeof text, "%" PRId64 "%s", slu_json_i64_or(slu_json_get(o, key), 0),
		 unit);
	line(name, text);
}

static int run_job(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct table t = { .columns = 3 };
	const struct slu_json *j;
	char at[32], text[64];
	int rc = ask_job(conf, argv[0], false, &doc, err);

	if (rc < 0 || !doc)
		return rc;
	j = slu_json_root(doc);
	snprintf(text, sizeof text, "%" PRId64 " (at least %" PRId64 ", %" PRId64 " bound)",
		 slu_json_i64_or(slu_json_get(j, "size"), 0),
		 slu_json_i64_or(slu_json_get(j, "minSize"), 0),
		 slu_json_i64_or(slu_json_get(j, "bound"), 0));
	line("Job", field(j, "name"));
	line("Namespace", field(j, "namespace"));
	line("State", field(j, "state"));
	line("Queue", field(j, "queue"));
	line("Scheduler", field(j, "scheduler"));
	line("User", field(j, "user"));
	line("Size", text);
	number_line("Priority", j, "priority", "");
	if (slu_json_i64_or(slu_json_get(j, "limitSeconds"), 0))
		number_line("Limit", j, "limitSeconds", " s");
	line("Not before", field(j, "begin"));
	line("Deadline", field(j, "deadline"));
	line("First seen", when(field(j, "firstSeen"), at));
	line("Started", when(field(j, "start"), at));
	line("Estimate", when(field(j, "estimate"), at));
	line("Reason", field(j, "reason"));
	line("Remedy", field(j, "remedy"));
	cell(&t, "POD");
	cell(&t, "STATE");
	cell(&t, "NODE");
	slu_json_each (slu_json_get(j, "pods"), it) {
		cell(&t, field(it.val, "name"));
		cell(&t, field(it.val, "state"));
		cell(&t, field(it.val, "node"));
	}
	printf("\n");
	print(&t);
	return 0;
}

static int run_why(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *j;
	const char *state, *reason, *start;
	char at[32], more[40];
	int64_t place, passed;
	int rc = ask_job(conf, argv[0], true, &doc, err);

	if (rc < 0 || !doc)
		return rc;
	j = slu_json_root(doc);
	state = field(j, "state");
	reason = field(j, "reason");
	start = when(field(j, "estimate"), at);
	place = slu_json_i64_or(slu_json_get(j, "position"), 0);
	if (!strcmp(state, "running") || !strcmp(state, "placing")) {
		printf("%s is %s", argv[0], state);
		printf(*field(j, "start") ? ", since %s\n" : "\n", when(field(j, "start"), at));
		line("but", reason);
		return 0;
	}
	if (!strcmp(state, "never"))
		printf("%s can never run as it is", argv[0]);
	else
		printf("%s is %s", argv[0], state);
	if (place)
		printf(", place %" PRId64, place);
	if (*start)
		printf(", %s %s",
		       slu_json_bool_or(slu_json_get(j, "promised"), false) ? "starts"
									    : "should start",
		       start);
	printf("\n");
	line("because", *reason ? reason : "it waits for its turn");
	passed = slu_json_i64_or(slu_json_get(j, "passers"), 0);
	slu_json_each (slu_json_get(j, "passedBy"), it) {
		line("passed by", slu_json_str_or(it.val, ""));
		passed--;
	}
	if (passed > 0) {
		snprintf(more, sizeof more, "%" PRId64 " others", passed);
		line("passed by", more);
	}
	slu_json_each (slu_json_get(j, "wouldHelp"), it)
		line("would help", slu_json_str_or(it.val, ""));
	if (!slu_json_get(j, "wouldHelp"))
		line("would help", field(j, "remedy"));
	return 0;
}

/* ---- nodes, queues ---- */

static int run_nodes(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	static const char *const head[] = {
		"NODE", "STATE", "CPU", "MEMORY", "GANG-PODS", "OTHERS"
	};
	struct table t = { .columns = SLU_LEN(head) };
	int rc = ask_daemon(conf, SLU_HTTP_GET, "/v1/nodes", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	for (size_t i = 0; i < SLU_LEN(head); i++)
		cell(&t, head[i]);
	slu_json_each (slu_json_get(slu_json_root(doc), "nodes"), it) {
		const struct slu_json *r = slu_json_get(it.val, "resources");
		const struct slu_json *cpu = slu_json_get(r, "cpu"),
				      *mem = slu_json_get(r, "memory");
		char text[64];

		cell(&t, field(it.val, "name"));
		snprintf(text, sizeof text, "%s%s%s", field(it.val, "state"),
			 *field(it.val, "drainUntil") ? " until " : "",
			 field(it.val, "drainUntil"));
		cell(&t, text);
		snprintf(text, sizeof text, "%.4g of %.4g free",
			 (double)slu_json_i64_or(slu_json_get(cpu, "free"), 0) / 1000,
			 (double)slu_json_i64_or(slu_json_get(cpu, "total"), 0) / 1000);
		cell(&t, text);
		snprintf(text, sizeof text, "%.4g of %.4g Gi free",
			 (double)slu_json_i64_or(slu_json_get(mem, "free"), 0) / (1 << 30),
			 (double)slu_json_i64_or(slu_json_get(mem, "total"), 0) / (1 << 30));
		cell(&t, text);
		number_cell(&t, it.val, "gangPods");
		number_cell(&t, it.val, "foreignPods");
	}
	print(&t);
	return 0;
}

static int run_queues(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	static const char *const head[] = { "QUEUE",   "POLICY", "WAITING", "RUNNING",   "HELD",
					    "BLOCKED", "NEVER",  "STARTED", "BACKFILLED" };
	static const char *const key[] = { "waiting", "running", "held",      "blocked",
					   "never",   "started", "backfilled" };
	struct table t = { .columns = SLU_LEN(head) };
	int rc = ask_daemon(conf, SLU_HTTP_GET, "/v1/queues", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	for (size_t i = 0; i < SLU_LEN(head); i++)
		cell(&t, head[i]);
	slu_json_each (slu_json_get(slu_json_root(doc), "queues"), it) {
		cell(&t, field(it.val, "name"));
		cell(&t, field(it.val, "policy"));
		for (size_t i = 0; i < SLU_LEN(key); i++)
			number_cell(&t, it.val, key[i]);
	}
	print(&t);
	return 0;
}

/* ---- reservations ---- */

static int run_reservations(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	static const char *const head[] = { "NAMESPACE", "RESERVATION", "PHASE", "FROM",
					    "UNTIL",     "EVERY",       "USERS", "NODES" };
	struct table t = { .columns = SLU_LEN(head) };
	int rc = ask_daemon(conf, SLU_HTTP_GET, "/v1/reservations", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	for (size_t i = 0; i < SLU_LEN(head); i++)
		cell(&t, head[i]);
	slu_json_each (slu_json_get(slu_json_root(doc), "reservations"), it) {
		static const char *const list[] = { "users", "nodes" };

		if (!shown(conf, it.val))
			continue;
		cell(&t, field(it.val, "namespace"));
		cell(&t, field(it.val, "name"));
		cell(&t, field(it.val, "phase"));
		cell(&t, field(it.val, "from"));
		cell(&t, field(it.val, "until"));
		cell(&t, field(it.val, "every"));
		for (size_t i = 0; i < SLU_LEN(list); i++) {
			struct slu_buf b = SLU_BUF_INIT(ANSWER_MAX);

			slu_json_each (slu_json_get(it.val, list[i]), one)
				slu_buf_printf(&b, "%s%s", b.n ? "," : "",
					       slu_json_str_or(one.val, ""));
			if (i && !b.n)
				slu_buf_puts(&b, field(it.val, "message"));
			cell(&t, slu_buf_str(&b));
			slu_buf_done(&b);
		}
	}
	print(&t);
	return 0;
}

/* ---- doing ---- */

static int post(void *conf, const char *path, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	int rc = ask_daemon(conf, SLU_HTTP_POST, path, &doc, err);

	if (!rc && doc)
		printf("%s\n", field(slu_json_root(doc), "message"));
	return rc;
}

static int post_job(void *conf, const char *name, const char *verb, struct slu_error *err)
{
	struct slu_buf path = SLU_BUF_INIT(2048);
	int rc = job_path(conf, name, verb, &path);

	if (!rc)
		rc = post(conf, path.p, err);
	slu_buf_done(&path);
	return rc;
}

static int post_node(void *conf, const char *name, const char *verb, struct slu_error *err)
{
	const struct conf *c = conf;
	struct slu_buf path = SLU_BUF_INIT(2048), query = SLU_BUF_INIT(1000);
	int rc;

	slu_buf_puts(&path, "/v1/nodes/");
	slu_http_escape(&path, name, strlen(name));
	slu_buf_printf(&path, "/%s", verb);
	if (c->from)
		slu_http_query_add(&query, "from", c->from);
	if (c->until)
		slu_http_query_add(&query, "until", c->until);
	if (query.n)
		slu_buf_printf(&path, "?%s", query.p);
	slu_buf_done(&query);
	rc = path.error ? path.error : post(conf, path.p, err);
	slu_buf_done(&path);
	return rc;
}

static int run_cancel(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_job(conf, argv[0], "cancel", err);
}

static int run_hold(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_job(conf, argv[0], "hold", err);
}

static int run_release(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_job(conf, argv[0], "release", err);
}

static int run_resize(void *conf, int argc, char **argv, struct slu_error *err)
{
	char verb[40];
	size_t n = strspn(argv[1], "0123456789");

	if (!n || n > 9 || argv[1][n])
		return slu_fail(err, SLU_WRONG, "\"%s\" is not a number of members", argv[1]);
	snprintf(verb, sizeof verb, "resize/%.20s", argv[1]);
	return post_job(conf, argv[0], verb, err);
}

/* `verb` and the user's word for it, one part of the path. */
static int post_change(void *conf, const char *name, const char *verb, const char *value,
		       struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(1000);
	int rc;

	slu_buf_printf(&b, "%s/", verb);
	slu_http_escape(&b, value, strlen(value));
	rc = b.error ? b.error : post_job(conf, name, slu_buf_str(&b), err);
	slu_buf_done(&b);
	return rc;
}

static int run_priority(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_change(conf, argv[0], "priority", argv[1], err);
}

static int run_limit(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_change(conf, argv[0], "limit", argv[1], err);
}

static void reservation_path(const struct conf *c, const char *name, struct slu_buf *b)
{
	const char *ns = c->ns ? c->ns : "default";

	slu_buf_puts(b, "/v1/reservations/");
	slu_http_escape(b, ns, strlen(ns));
	slu_buf_putc(b, '/');
	slu_http_escape(b, name, strlen(name));
}

static int run_reserve(void *conf, int argc, char **argv, struct slu_error *err)
{
	const struct conf *c = conf;
	const char *const word[][2] = { { "from", c->from },   { "until", c->until },
					{ "every", c->every }, { "nodes", c->nodes },
					{ "label", c->label }, { "amounts", c->amounts },
					{ "users", c->users } };
	struct slu_buf path = SLU_BUF_INIT(64u << 10), query = SLU_BUF_INIT(32u << 10);
	int rc;

	if (!c->until)
		return slu_fail(err, SLU_WRONG, "a reservation needs an end: give --until");
	if (!c->nodes == !c->count)
		return slu_fail(err, SLU_WRONG, "give one of --nodes and --count");
	if (c->label && !c->count)
		return slu_fail(err, SLU_WRONG, "--label goes with --count");
	reservation_path(c, argv[0], &path);
	for (size_t i = 0; i < SLU_LEN(word); i++)
		if (word[i][1])
			slu_http_query_add(&query, word[i][0], word[i][1]);
	if (c->count) {
		char n[24];

		snprintf(n, sizeof n, "%" PRId64, c->count);
		slu_http_query_add(&query, "count", n);
	}
	slu_buf_printf(&path, "?%s", slu_buf_str(&query));
	rc = path.error ? path.error : query.error ? query.error : post(conf, path.p, err);
	slu_buf_done(&path);
	slu_buf_done(&query);
	return rc;
}

static int run_unreserve(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct slu_buf path = SLU_BUF_INIT(4096);
	int rc;

	reservation_path(conf, argv[0], &path);
	slu_buf_puts(&path, "/end");
	rc = path.error ? path.error : post(conf, path.p, err);
	slu_buf_done(&path);
	return rc;
}

static int run_drain(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_node(conf, argv[0], "drain", err);
}

static int run_undrain(void *conf, int argc, char **argv, struct slu_error *err)
{
	return post_node(conf, argv[0], "undrain", err);
}

/* "queues[0].policy" and its value, one row for each setting. */
static void settings(struct table *t, const char *path, const struct slu_json *v)
{
	uint32_t i = 0;

	if (!slu_json_is_obj(v) && !slu_json_is_arr(v)) {
		struct slu_buf b = SLU_BUF_INIT(ANSWER_MAX);
		struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);

		if (!slu_json_is_str(v))
			slu_jsonw_value(&w, v);
		cell(t, path);
		cell(t, slu_json_is_str(v) ? slu_json_str(v) : slu_buf_str(&b));
		slu_buf_done(&b);
		return;
	}
	slu_json_each (v, it) {
		char below[300];

		if (it.key)
			snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", it.key);
		else
			snprintf(below, sizeof below, "%s[%u]", path, i++);
		settings(t, below, it.val);
	}
}

static int run_config(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct table t = { .columns = 2 };
	int rc = ask_daemon(conf, SLU_HTTP_GET, "/v1/config", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	cell(&t, "SETTING");
	cell(&t, "VALUE");
	settings(&t, "", slu_json_root(doc));
	print(&t);
	return 0;
}

#define COMMAND(id, words, text, longer, options, least, most)                      \
	const struct slu_command slu_cmd_##id = { .name = #id,                      \
						  .args = words,                    \
						  .summary = text,                  \
						  .details = longer,                \
						  .option = options,                \
						  .conf_size = sizeof(struct conf), \
						  .min_args = least,                \
						  .max_args = most,                 \
						  .run = run_##id }

COMMAND(jobs, "", "every gang: state, place in the queue, start", NULL, jobs_option, 0, 0);
COMMAND(job, "NAME", "one gang with its pods", "NAME is the name of the group, or NAMESPACE/NAME.",
	space_option, 1, 1);
COMMAND(why, "NAME", "why a gang does not run yet, and what would help", NULL, space_option, 1, 1);
COMMAND(nodes, "", "the nodes as the plan sees them", NULL, plain_option, 0, 0);
COMMAND(queues, "", "the queues and what is in them", NULL, plain_option, 0, 0);
COMMAND(cancel, "NAME", "take a waiting gang out of the queue",
	"The gang's objects stay as they are; sluice release puts the gang back. To end a running gang, delete its object.",
	space_option, 1, 1);
COMMAND(hold, "NAME", "keep a gang waiting", NULL, space_option, 1, 1);
COMMAND(release, "NAME", "put a held or cancelled gang back into the queue", NULL, space_option, 1,
	1);
COMMAND(resize, "NAME N", "give a gang another number of members",
	"Sets the size of the Job, Deployment, ReplicaSet or StatefulSet that makes the members; if no object makes them, evicts the newest pods. 0 cancels the gang.",
	space_option, 2, 2);
COMMAND(priority, "NAME N", "give a waiting gang another priority",
	"The higher priority goes first. It overrides the PriorityClass until you set it to \"own\". Write -- before a negative number.",
	space_option, 2, 2);
COMMAND(limit, "NAME TIME", "give a waiting or running gang another time limit",
	"TIME is 90, 15m, 12h, 7d, or \"own\" for the limit that the gang's objects name. If a Job has activeDeadlineSeconds, sluiced sets that field.",
	space_option, 2, 2);
COMMAND(config, "", "every setting of the daemon and its current value", NULL, plain_option, 0, 0);
COMMAND(reserve, "NAME", "set nodes aside for some time",
	"Creates a Reservation. Gangs of its namespace that name it (sluice.sh/reservation) and gangs of --users may use it. TIME is 2026-01-31T14:00:00Z, +15m, or seconds since 1970.",
	reserve_option, 1, 1);
COMMAND(reservations, "", "the reservations: when, for whom, on which nodes", NULL,
	reservations_option, 0, 0);
COMMAND(unreserve, "NAME", "end a reservation now", NULL, reservations_option, 1, 1);
COMMAND(drain, "NODE", "start nothing new on a node; running pods keep running",
	"With --from, gangs that end before that time may still use the node. With --until, the plan counts on the node again from that time, even if the node is down or cordoned until then. TIME is 2026-01-31T14:00:00Z, +15m, or seconds since 1970.",
	drain_option, 1, 1);
COMMAND(undrain, "NODE", "use a drained node again", NULL, plain_option, 1, 1);
