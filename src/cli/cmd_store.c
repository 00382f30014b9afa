/* sluice store: look after a store, and carry it from one database to another. */
#include "base/buf.h"
#include "cli/commands.h"
#include "cli/term.h"
#include "store/dump.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES (64u << 20)
#define CHUNK          65536

struct conf {
	bool quiet;
};

/* The state of one run of the command. */
struct work {
	const struct conf *conf;
	const char *url, *file; /* file: NULL is standard input or output */
	char shown[256];        /* the URL, without its password */
	struct slu_progress bar;
	uint64_t total, done;
};

static const struct slu_option option[] = {
	{ "quiet", 'q', SLU_OPT_FLAG, NULL, "print only errors", offsetof(struct conf, quiet) },
	{ 0 },
};

static int open_store(struct work *w, unsigned flags, struct slu_store **out, struct slu_error *err)
{
	int rc = slu_store_open(w->url, flags, out, err);

	if (rc < 0 && !strstr(err->text, w->url))
		slu_fail_prefix(err, rc, "%s", w->shown);
	return rc;
}

/* ---- check, migrate ---- */

static int check_store(struct work *w, struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	uint64_t rows = 0;
	int64_t bytes = 0;
	int rc = open_store(w, SLU_STORE_READONLY, &s, err);

	if (rc < 0)
		return rc;
	slu_progress_start(&w->bar, "checking", !w->conf->quiet);
	slu_progress_show(&w->bar, 0, 0, "rows");
	rc = slu_store_check(s, &rows, err);
	if (!rc)
		rc = slu_store_bytes(s, &bytes, err);
	slu_progress_end(&w->bar);
	if (rc < 0)
		return slu_fail_prefix(err, rc, "%s", w->shown);
	if (!w->conf->quiet)
		printf("%s: %s, schema %d, %" PRIu64 " rows, %" PRId64 " bytes, nothing wrong\n",
		       w->shown, slu_store_backend(s), slu_store_found_version(s), rows, bytes);
	return 0;
}

static int migrate(struct work *w, struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	int rc = open_store(w, SLU_STORE_MIGRATE, &s, err), found, now = slu_store_schema_version();

	if (rc < 0 || w->conf->quiet)
		return rc;
	found = slu_store_found_version(s);
	if (found == now)
		printf("%s: schema %d is the newest, nothing to do\n", w->shown, now);
	else if (!found)
		printf("%s: created with schema %d\n", w->shown, now);
	else
		printf("%s: schema %d is now %d\n", w->shown, found, now);
	return 0;
}

/* ---- export ---- */

struct sink {
	struct work *w;
	FILE *f;
};

static int put_line(void *arg, const char *line, size_t n)
{
	struct sink *k = arg;

	if (fwrite(line, 1, n, k->f) != n)
		return errno ? -errno : -EIO;
	slu_progress_show(&k->w->bar, k->w->done++, SLU_MAX(k->w->total, k->w->done), "rows");
	return 0;
}

/* A device or a pipe is written to as it is; a file gets its name when it is complete. */
static bool in_place(const char *name)
{
	struct stat st;

	return !stat(name, &st) && !S_ISREG(st.st_mode);
}

/* Sync the file and give it its name; after an error no file is left. */
static int finish_file(FILE *f, const char *tmp, const char *name, int rc, struct slu_error *err)
{
	bool whole = strcmp(tmp, name);

	if (!rc && (fflush(f) || (whole && fsync(fileno(f)))))
		rc = slu_fail(err, -errno, "%s: %s", name, strerror(errno));
	if (fclose(f) && !rc)
		rc = slu_fail(err, -errno, "%s: %s", name, strerror(errno));
	if (!rc && whole && rename(tmp, name))
		rc = slu_fail(err, -errno, "%s: %s", name, strerror(errno));
	if (rc < 0 && whole)
		unlink(tmp);
	return rc;
}

static int export(struct work *w, struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	struct slu_buf tmp = SLU_BUF_INIT(8192);
	struct sink k = { w, stdout };
	uint64_t rows = 0;
	int rc = open_store(w, SLU_STORE_READONLY, &s, err);

	if (!rc)
		rc = slu_store_rows(s, &w->total, err);
	if (!rc && w->file) {
		slu_buf_printf(&tmp, "%s%s", w->file, in_place(w->file) ? "" : ".part");
		k.f = tmp.error ? NULL : fopen(slu_buf_str(&tmp), "we");
		if (!k.f)
			rc = slu_fail(err, -errno, "%s: %s", w->file, strerror(errno));
	}
	if (!rc) {
		slu_progress_start(&w->bar, "export", !w->conf->quiet);
		rc = slu_dump_export(s, put_line, &k, &rows, err);
		slu_progress_end(&w->bar);
		if (rc < 0 && !*err->text)
			slu_fail(err, rc, "%s: %s", w->file ? w->file : "standard output",
				 strerror(-rc));
		else if (rc < 0)
			slu_fail_prefix(err, rc, "%s", w->shown);
	}
	if (w->file && k.f)
		rc = finish_file(k.f, slu_buf_str(&tmp), w->file, rc, err);
	else if (!rc && fflush(stdout))
		rc = slu_fail(err, -errno, "standard output: %s", strerror(errno));
	slu_buf_done(&tmp);
	if (!rc && w->file && !w->conf->quiet)
		printf("%s: %" PRIu64 " rows in %s\n", w->shown, rows, w->file);
	return rc;
}

/* ---- import ---- */

/* Import every whole line in `b`; the beginning of the next line stays there. */
static int import_lines(struct slu_import *im, struct slu_buf *b, bool end, struct slu_error *err)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && at < b->n) {
		const char *nl = memchr(b->p + at, '\n', b->n - at);
		size_t n = nl ? (size_t)(nl - (b->p + at)) : b->n - at;

		if (!nl && !end)
			break;
		if (n)
			rc = slu_import_line(im, b->p + at, n, err);
		at += n + (nl ? 1 : 0);
	}
	slu_buf_shift(b, at);
	return rc;
}

static int read_all(struct work *w, FILE *f, struct slu_import *im, struct slu_error *err)
{
	struct slu_buf b = SLU_BUF_INIT(LINE_MAX_BYTES);
	char *chunk = slu_malloc(CHUNK);
	size_t n = 0;
	int rc = chunk ? 0 : -ENOMEM;

	while (!rc && (n = fread(chunk, 1, CHUNK, f)) > 0) {
		rc = slu_buf_add(&b, chunk, n);
		if (rc == -EMSGSIZE)
			slu_fail(err, rc, "a line is longer than %u bytes", LINE_MAX_BYTES);
		if (!rc && memchr(chunk, '\n', n))
			rc = import_lines(im, &b, false, err);
		w->done += n;
		slu_progress_show(&w->bar, w->done, w->total, "bytes");
	}
	if (!rc && ferror(f))
		rc = slu_fail(err, -errno, "%s", strerror(errno));
	if (!rc)
		rc = import_lines(im, &b, true, err);
	slu_free(chunk);
	slu_buf_done(&b);
	return rc;
}

static int import(struct work *w, struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	slu_cleanup(slu_import_freep) struct slu_import *im = NULL;
	FILE *f = w->file ? fopen(w->file, "re") : stdin;
	uint64_t rows = 0;
	int rc;

	if (!f)
		return slu_fail(err, -errno, "%s: %s", w->file, strerror(errno));
	if (w->file && !fseek(f, 0, SEEK_END)) {
		w->total = (uint64_t)SLU_MAX(ftell(f), 0L);
		fseek(f, 0, SEEK_SET);
	}
	rc = open_store(w, SLU_STORE_MIGRATE, &s, err);
	if (!rc) {
		rc = slu_import_new(s, &im, err);
		if (rc < 0)
			slu_fail_prefix(err, rc, "%s", w->shown);
	}
	if (!rc) {
		slu_progress_start(&w->bar, "import", !w->conf->quiet);
		rc = read_all(w, f, im, err);
		if (!rc)
			rc = slu_import_commit(im, &rows, err);
		slu_progress_end(&w->bar);
		if (rc < 0)
			slu_fail_prefix(err, rc, "%s", w->file ? w->file : "standard input");
	}
	if (f != stdin)
		fclose(f);
	if (!rc && !w->conf->quiet)
		printf("%s: %" PRIu64 " rows imported\n", w->shown, rows);
	return rc;
}

/* ---- usage ---- */

static int put_usage(void *arg, const struct slu_store_usage *u)
{
	bool *head = arg;

	if (!*head)
		printf("%-24s %-16s %10s %16s\n", "USER", "QUEUE", "JOBS", "CPU-SECONDS");
	*head = true;
	printf("%-24s %-16s %10" PRId64 " %16.3f\n", u->user, *u->queue ? u->queue : "(first)",
	       u->jobs, (double)u->used / 1000);
	return 0;
}

static int usage(struct work *w, struct slu_error *err)
{
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	bool head = false;
	int rc = open_store(w, SLU_STORE_READONLY, &s, err);

	if (!rc)
		rc = slu_store_usage(s, put_usage, &head, err);
	if (!rc && !head && !w->conf->quiet)
		printf("%s: no usage recorded yet\n", w->shown);
	return rc;
}

/* ---- the command ---- */

static const struct verb {
	const char *name;
	int (*run)(struct work *w, struct slu_error *err);
	bool file;
} verbs[] = {
	{ "check", check_store, false }, { "migrate", migrate, false }, { "export", export, true },
	{ "import", import, true },      { "usage", usage, false },
};

static int run_store(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct work w = { .conf = conf, .url = getenv("DATABASE_URL") };
	const struct verb *v = NULL;

	for (size_t i = 0; i < SLU_LEN(verbs); i++)
		if (!strcmp(verbs[i].name, argv[0]))
			v = &verbs[i];
	if (!v)
		return slu_fail(
			err, SLU_WRONG,
			"expected check, migrate, export, import or usage; see sluice store --help");
	if (argc > 1)
		w.url = argv[1];
	if (!w.url || !*w.url)
		return slu_fail(err, SLU_WRONG, SLU_WHICH_STORE);
	if (argc > 2 && !v->file)
		return slu_fail(err, SLU_WRONG,
				"too many arguments; only export and import take a file");
	if (argc > 2 && strcmp(argv[2], "-"))
		w.file = argv[2];
	slu_store_url_shown(w.url, w.shown, sizeof w.shown);
	return v->run(&w, err);
}

const struct slu_command slu_cmd_store = {
	.name = "store",
	.args = "check|migrate|export|import|usage [STORE [FILE]]",
	.summary = "check, upgrade, export or import a store; usage",
	.details =
		"check    read every row and verify its checksum; changes nothing\n"
		"migrate  bring the schema up to date; creates a missing store\n"
		"export   write all rows of one moment as JSON lines to FILE\n"
		"import   read such a file into an empty store, all or nothing\n"
		"usage    what each user has used of each queue, in total\n\n"
		"STORE is a file (SQLite) or postgres://...; default: DATABASE_URL. FILE is - (the default)\n"
		"for standard output and input. Stop the daemon before you import into its store.",
	.option = option,
	.conf_size = sizeof(struct conf),
	.min_args = 1,
	.max_args = 3,
	.run = run_store,
};
