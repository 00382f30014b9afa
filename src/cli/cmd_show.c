/* The commands that show the state of a running sluiced: jobs, job, why, nodes, queues, reservations, config. */
#include "cli/live_internal.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/term.h"
#include "wire/jsonw.h"

static const struct slu_option plain_option[] = { LIVE_OPTIONS, { 0 } };
static const struct slu_option space_option[] = { LIVE_OPTIONS,
						  LIVE_NAMESPACE("namespace of the job (default)"),
						  { 0 } };
static const struct slu_option jobs_option[] = {
	LIVE_OPTIONS,
	LIVE_NAMESPACE("show only this namespace"),
	{ "all", 'a', SLU_OPT_FLAG, NULL, "also show pods of other schedulers",
	  offsetof(struct live, all) },
	{ 0 },
};

static const struct slu_option reservations_option[] = {
	LIVE_OPTIONS,
	LIVE_NAMESPACE("namespace of the reservation"),
	{ 0 },
};

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
static void print_table(struct table *t)
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

/* "in 4m", "2h ago" style from the stamp of the daemon. */
static const char *relative_time(const char *stamp, char out[32])
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

static int ask_job(const struct live *c, const char *name, bool why, struct slu_json_doc **doc,
		   struct slu_error *err)
{
	struct slu_buf path = SLU_BUF_INIT(2048);
	int rc = cli_live_job_path(c, name, NULL, &path);

	if (why)
		slu_buf_puts(&path, "?why=true");
	rc = rc ? rc : path.error;
	if (!rc)
		rc = cli_live_ask(c, SLU_HTTP_GET, path.p, doc, err);
	slu_buf_done(&path);
	return rc;
}

/* Fills a cell from field `key` of a job, or of a pod of another scheduler. */
typedef void cell_fn(struct table *t, const struct slu_json *o, const char *key);

static void text_cell(struct table *t, const struct slu_json *o, const char *key)
{
	cell(t, cli_live_field(o, key));
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
	const char *start = cli_live_field(j, key);
	char at[32] = "", about[34];

	if (*start) {
		cell(t, relative_time(start, at));
		return;
	}
	snprintf(about, sizeof about, "%s%s",
		 slu_json_bool_or(slu_json_get(j, "promised"), false) ? "" : "~",
		 relative_time(cli_live_field(j, "estimate"), at));
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

	snprintf(what, sizeof what, "%s on %s by %s", cli_live_field(f, key),
		 cli_live_field(f, "node"), cli_live_field(f, "scheduler"));
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
static_assert(SLU_LEN(job_column) <= COLUMNS_MAX, "print_table() has room for the columns");

static bool is_shown(const struct live *c, const struct slu_json *o)
{
	return !c->ns || !strcmp(cli_live_field(o, "namespace"), c->ns);
}

/* Print the answer as received, without the objects of other namespaces. */
static void print_json(const struct live *c, const struct slu_json *answer)
{
	struct slu_buf b = SLU_BUF_INIT(LIVE_ANSWER_MAX);
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
			if (is_shown(c, it.val))
				slu_jsonw_value(&w, it.val);
		slu_jsonw_end_arr(&w);
	}
	slu_jsonw_end_obj(&w);
	puts(slu_buf_str(&b));
	slu_buf_done(&b);
}

static int run_jobs(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct live *c = conf, whole = { .d = c->d };
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct table t = { .columns = SLU_LEN(job_column) };
	int rc = cli_live_ask(&whole, SLU_HTTP_GET, c->all ? "/v1/jobs?all=true" : "/v1/jobs", &doc,
			      err);

	if (rc < 0)
		return rc;
	if (cli_live_json(c)) {
		print_json(c, slu_json_root(doc));
		return 0;
	}
	for (size_t i = 0; i < SLU_LEN(job_column); i++)
		cell(&t, job_column[i].head);
	slu_json_each (slu_json_get(slu_json_root(doc), "jobs"), it)
		for (size_t i = 0; i < SLU_LEN(job_column) && is_shown(c, it.val); i++)
			job_column[i].job(&t, it.val, job_column[i].key);
	slu_json_each (slu_json_get(slu_json_root(doc), "foreign"), it)
		for (size_t i = 0; i < SLU_LEN(job_column) && is_shown(c, it.val); i++)
			if (job_column[i].foreign)
				job_column[i].foreign(&t, it.val, job_column[i].foreign_key);
			else
				cell(&t, "");
	print_table(&t);
	return 0;
}

static void print_line(const char *name, const char *value)
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
	print_line(name, text);
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
	print_line("Job", cli_live_field(j, "name"));
	print_line("Namespace", cli_live_field(j, "namespace"));
	print_line("State", cli_live_field(j, "state"));
	print_line("Queue", cli_live_field(j, "queue"));
	print_line("Scheduler", cli_live_field(j, "scheduler"));
	print_line("User", cli_live_field(j, "user"));
	print_line("Size", text);
	number_line("Priority", j, "priority", "");
	if (slu_json_i64_or(slu_json_get(j, "limitSeconds"), 0))
		number_line("Limit", j, "limitSeconds", " s");
	print_line("Not before", cli_live_field(j, "begin"));
	print_line("Deadline", cli_live_field(j, "deadline"));
	print_line("First seen", relative_time(cli_live_field(j, "firstSeen"), at));
	print_line("Started", relative_time(cli_live_field(j, "start"), at));
	print_line("Estimate", relative_time(cli_live_field(j, "estimate"), at));
	print_line("Reason", cli_live_field(j, "reason"));
	print_line("Remedy", cli_live_field(j, "remedy"));
	cell(&t, "POD");
	cell(&t, "STATE");
	cell(&t, "NODE");
	slu_json_each (slu_json_get(j, "pods"), it) {
		cell(&t, cli_live_field(it.val, "name"));
		cell(&t, cli_live_field(it.val, "state"));
		cell(&t, cli_live_field(it.val, "node"));
	}
	printf("\n");
	print_table(&t);
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
	state = cli_live_field(j, "state");
	reason = cli_live_field(j, "reason");
	start = relative_time(cli_live_field(j, "estimate"), at);
	place = slu_json_i64_or(slu_json_get(j, "position"), 0);
	if (!strcmp(state, "running") || !strcmp(state, "placing")) {
		printf("%s is %s", argv[0], state);
		printf(*cli_live_field(j, "start") ? ", since %s\n" : "\n",
		       relative_time(cli_live_field(j, "start"), at));
		print_line("but", reason);
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
	print_line("because", *reason ? reason : "it waits for its turn");
	passed = slu_json_i64_or(slu_json_get(j, "passers"), 0);
	slu_json_each (slu_json_get(j, "passedBy"), it) {
		print_line("passed by", slu_json_str_or(it.val, ""));
		passed--;
	}
	if (passed > 0) {
		snprintf(more, sizeof more, "%" PRId64 " others", passed);
		print_line("passed by", more);
	}
	slu_json_each (slu_json_get(j, "wouldHelp"), it)
		print_line("would help", slu_json_str_or(it.val, ""));
	if (!slu_json_get(j, "wouldHelp"))
		print_line("would help", cli_live_field(j, "remedy"));
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
	int rc = cli_live_ask(conf, SLU_HTTP_GET, "/v1/nodes", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	for (size_t i = 0; i < SLU_LEN(head); i++)
		cell(&t, head[i]);
	slu_json_each (slu_json_get(slu_json_root(doc), "nodes"), it) {
		const struct slu_json *r = slu_json_get(it.val, "resources");
		const struct slu_json *cpu = slu_json_get(r, "cpu"),
				      *mem = slu_json_get(r, "memory");
		char text[64];

		cell(&t, cli_live_field(it.val, "name"));
		snprintf(text, sizeof text, "%s%s%s", cli_live_field(it.val, "state"),
			 *cli_live_field(it.val, "drainUntil") ? " until " : "",
			 cli_live_field(it.val, "drainUntil"));
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
	print_table(&t);
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
	int rc = cli_live_ask(conf, SLU_HTTP_GET, "/v1/queues", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	for (size_t i = 0; i < SLU_LEN(head); i++)
		cell(&t, head[i]);
	slu_json_each (slu_json_get(slu_json_root(doc), "queues"), it) {
		cell(&t, cli_live_field(it.val, "name"));
		cell(&t, cli_live_field(it.val, "policy"));
		for (size_t i = 0; i < SLU_LEN(key); i++)
			number_cell(&t, it.val, key[i]);
	}
	print_table(&t);
	return 0;
}

/* ---- reservations ---- */

static int run_reservations(void *conf, int argc, char **argv, struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	static const char *const head[] = { "NAMESPACE", "RESERVATION", "PHASE", "FROM",
					    "UNTIL",     "EVERY",       "USERS", "NODES" };
	struct table t = { .columns = SLU_LEN(head) };
	int rc = cli_live_ask(conf, SLU_HTTP_GET, "/v1/reservations", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	for (size_t i = 0; i < SLU_LEN(head); i++)
		cell(&t, head[i]);
	slu_json_each (slu_json_get(slu_json_root(doc), "reservations"), it) {
		static const char *const list[] = { "users", "nodes" };

		if (!is_shown(conf, it.val))
			continue;
		cell(&t, cli_live_field(it.val, "namespace"));
		cell(&t, cli_live_field(it.val, "name"));
		cell(&t, cli_live_field(it.val, "phase"));
		cell(&t, cli_live_field(it.val, "from"));
		cell(&t, cli_live_field(it.val, "until"));
		cell(&t, cli_live_field(it.val, "every"));
		for (size_t i = 0; i < SLU_LEN(list); i++) {
			struct slu_buf b = SLU_BUF_INIT(LIVE_ANSWER_MAX);

			slu_json_each (slu_json_get(it.val, list[i]), one)
				slu_buf_printf(&b, "%s%s", b.n ? "," : "",
					       slu_json_str_or(one.val, ""));
			if (i && !b.n)
				slu_buf_puts(&b, cli_live_field(it.val, "message"));
			cell(&t, slu_buf_str(&b));
			slu_buf_done(&b);
		}
	}
	print_table(&t);
	return 0;
}

/* ---- settings ---- */

/* "queues[0].policy" and its value, one row for each setting. */
static void settings(struct table *t, const char *path, const struct slu_json *v)
{
	uint32_t i = 0;

	if (!slu_json_is_obj(v) && !slu_json_is_arr(v)) {
		struct slu_buf b = SLU_BUF_INIT(LIVE_ANSWER_MAX);
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
	int rc = cli_live_ask(conf, SLU_HTTP_GET, "/v1/config", &doc, err);

	if (rc < 0 || !doc)
		return rc;
	cell(&t, "SETTING");
	cell(&t, "VALUE");
	settings(&t, "", slu_json_root(doc));
	print_table(&t);
	return 0;
}

LIVE_COMMAND(jobs, "", "every gang: state, place in the queue, start", NULL, jobs_option, 0, 0);
LIVE_COMMAND(job, "NAME", "one gang with its pods",
	     "NAME is the name of the group, or NAMESPACE/NAME.", space_option, 1, 1);
LIVE_COMMAND(why, "NAME", "why a gang does not run yet, and what would help", NULL, space_option, 1,
	     1);
LIVE_COMMAND(nodes, "", "the nodes as the plan sees them", NULL, plain_option, 0, 0);
LIVE_COMMAND(queues, "", "the queues and what is in them", NULL, plain_option, 0, 0);
LIVE_COMMAND(config, "", "every setting of the daemon and its current value", NULL, plain_option, 0,
	     0);
LIVE_COMMAND(reservations, "", "the reservations: when, for whom, on which nodes", NULL,
	     reservations_option, 0, 0);
