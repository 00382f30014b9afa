/* The same tests on SQLite (always) and on PostgreSQL (when DATABASE_URL is set; see
 * tests/store/with-postgres). */
#include "base/buf.h"
#include "store/dump.h"
#include "store/journal.h"
#include "store/statement.h"
#include "tap.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/sluice-store.XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void remove_dir(void)
{
	nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *fresh_sqlite(void)
{
	static char path[128];
	static int n;

	snprintf(path, sizeof path, "%s/store-%d.db", dir, n++);
	return path;
}

static struct slu_store_job job(uint64_t id, int64_t priority, int64_t seen, const char *name)
{
	static char key[64];

	snprintf(key, sizeof key, "uid-%" PRIu64, id);
	return (struct slu_store_job){
		.id = id,
		.key = key,
		.space = "default",
		.name = name,
		.object = "",
		.kind = "Job",
		.user = "ada",
		.queue = "batch",
		.priority = priority,
		.first_seen_us = seen,
		.state = SLU_STORE_WAITING,
		.size = 4,
		.limit_s = 60,
		.cause = "",
		.spec = "{\"roles\":[\"größe\"]}",
	};
}

static struct slu_store *must_open(const char *url, unsigned flags)
{
	struct slu_error err = { 0 };
	struct slu_store *s = NULL;
	int rc = slu_store_open(url, flags, &s, &err);

	if (rc < 0)
		printf("# open %s: %d %s\n", url, rc, err.text);
	return s;
}

static int commit1(struct slu_store *s, int64_t term, struct slu_batch *b, struct slu_error *err)
{
	int rc = slu_store_commit(s, term, &b, 1, err);

	slu_batch_free(b);
	return rc;
}

struct seen {
	char order[256];
	int jobs, pods, spans, intents, intent_pods;
	int64_t size, seen_us;
	char spec[64], node[32];
};

static int see_job(void *arg, const struct slu_store_job *j)
{
	struct seen *s = arg;

	s->jobs++;
	if (strlen(s->order) < 200) {
		strcat(s->order, j->name);
		strcat(s->order, " ");
	}
	s->size = j->size;
	s->seen_us = j->first_seen_us;
	snprintf(s->spec, sizeof s->spec, "%s", j->spec);
	return 0;
}

static int see_pod(void *arg, const struct slu_store_pod *p)
{
	struct seen *s = arg;

	s->pods++;
	snprintf(s->node, sizeof s->node, "%s", p->node);
	return 0;
}

static int see_span(void *arg, const struct slu_store_span *p)
{
	((struct seen *)arg)->spans++;
	return 0;
}

static int see_intent(void *arg, const struct slu_store_intent *p)
{
	((struct seen *)arg)->intents++;
	return 0;
}

static int see_intent_pod(void *arg, const struct slu_store_intent_pod *p)
{
	((struct seen *)arg)->intent_pods++;
	return 0;
}

static int load(struct slu_store *s, struct seen *seen, struct slu_error *err)
{
	const struct slu_store_reader r = { see_job,    see_pod,        see_span,
					    see_intent, see_intent_pod, seen };

	*seen = (struct seen){ .jobs = 0 };
	return slu_store_load(s, &r, err);
}

static void put_life(struct slu_batch *b)
{
	struct slu_store_job j;

	j = job(1, 0, 2000, "late");
	slu_batch_put_job(b, &j);
	j = job(2, 0, 1000, "early");
	slu_batch_put_job(b, &j);
	j = job(3, 9, 3000, "urgent");
	slu_batch_put_job(b, &j);
	j = job(4, 0, 1000, "also-early");
	slu_batch_put_job(b, &j);
	for (int i = 0; i < 4; i++) {
		char uid[16];

		snprintf(uid, sizeof uid, "pod-%d", i);
		slu_batch_put_pod(b, &(struct slu_store_pod){ 1, uid, "default", uid, "", 0, 5 });
	}
	slu_batch_put_plan(b, &(struct slu_store_plan){ 1, 1, 10, 500, "submitted" });
	slu_batch_put_plan(b, &(struct slu_store_plan){ 1, 2, 20, 400, "job 7 ended early" });
	slu_batch_put_span(b, &(struct slu_store_span){ 1, "drain", "node-3", 100, 200, "{}" });
	slu_batch_put_intent(b, &(struct slu_store_intent){ 1, 3, 1, 30, SLU_INTENT_OPEN, "bind" });
	slu_batch_put_intent_pod(
		b, &(struct slu_store_intent_pod){ 1, "p", "default", "p", "node-1" });
	slu_batch_put_intent_pod(
		b, &(struct slu_store_intent_pod){ 1, "q", "default", "q", "node-2" });
	slu_batch_put_event(b, &(struct slu_store_event){ 1, 10, 3, "a\0b", 3 });
	slu_batch_put_event(b, &(struct slu_store_event){ 2, 20, 4, "", 0 });
}

static int count_event(void *arg, const struct slu_store_event *e)
{
	int *n = arg;

	if (e->seq == 1 && (e->size != 3 || memcmp(e->data, "a\0b", 3) != 0))
		return -EILSEQ;
	(*n)++;
	return 0;
}

static int last_plan(void *arg, const struct slu_store_plan *p)
{
	snprintf(arg, 64, "%" PRId64 " %s", p->planned_s, p->cause);
	return 0;
}

static int count_result(void *arg, const struct slu_store_result *r)
{
	(*(int *)arg)++;
	return 0;
}

static void test_life(const char *url, const char *backend)
{
	struct slu_error err = { 0 };
	struct slu_store *s = must_open(url, SLU_STORE_MIGRATE);
	struct slu_batch *b = slu_batch_new();
	struct slu_store_job j;
	struct seen seen;
	uint64_t seq = 0, rows = 0;
	int64_t bytes = 0;
	char plan[64] = "";
	int n = 0, rc;

	if (!ok(s != NULL, "%s: opens and migrates", backend))
		return;
	put_life(b);
	ok(commit1(s, 0, b, &err) == 0, "%s: one transaction for everything (%s)", backend,
	   err.text);
	rc = load(s, &seen, &err);
	ok(rc == 0 && strcmp(seen.order, "urgent also-early early late ") == 0,
	   "%s: jobs come back in queue order: %s(%s)", backend, seen.order, err.text);
	ok(seen.jobs == 4 && seen.pods == 4 && seen.spans == 1 && seen.intents == 1 &&
		   seen.intent_pods == 2,
	   "%s: pods, spans and open intents come back", backend);
	ok(strcmp(seen.spec, "{\"roles\":[\"größe\"]}") == 0 && seen.seen_us == 2000,
	   "%s: specification and microseconds are exact", backend);
	ok(slu_store_events(s, 1, count_event, &n, &err) == 0 && n == 2,
	   "%s: events with their bytes", backend);
	ok(slu_store_last_event(s, &seq, &err) == 0 && seq == 2, "%s: the last event number",
	   backend);
	ok(slu_store_plans(s, 1, last_plan, plan, &err) == 0 &&
		   strcmp(plan, "400 job 7 ended early") == 0,
	   "%s: the history of a planned start ends in \"%s\"", backend, plan);

	/* A put again replaces, a settled intent is no longer open, a deleted job takes its pods
	 * along. */
	b = slu_batch_new();
	j = job(2, 0, 1000, "early");
	j.size = 8;
	slu_batch_put_job(b, &j);
	slu_batch_put_pod(b, &(struct slu_store_pod){ 2, "x", "default", "x", "node-9", 0, 5 });
	slu_batch_put_intent(b, &(struct slu_store_intent){ 1, 3, 1, 30, SLU_INTENT_DONE, "bind" });
	slu_batch_del_job(b, 1);
	slu_batch_del_span(b, 1);
	slu_batch_put_result(b,
			     &(struct slu_store_result){ 1, "uid-1", "late", "ada", "batch",
							 "completed", 2000, 100, 160, 4, 240000 });
	ok(commit1(s, 0, b, &err) == 0, "%s: a second batch is committed", backend);
	load(s, &seen, &err);
	ok(seen.jobs == 3 && seen.pods == 1 && seen.intents == 0 && seen.spans == 0 &&
		   seen.size == 8 && strcmp(seen.node, "node-9") == 0,
	   "%s: replaced, settled, deleted", backend);
	n = 0;
	ok(slu_store_results(s, 0, count_result, &n, &err) == 0 && n == 1, "%s: the result is kept",
	   backend);
	ok(slu_store_check(s, &rows, &err) == 0 && rows == 3 + 1 + 1 + 2 + 1 + 2,
	   "%s: check passes over %" PRIu64 " rows (%s)", backend, rows, err.text);

	/* Two numbers for one key; the batches were committed unheard, and come again. */
	for (int times = 0; times < 2; times++) {
		b = slu_batch_new();
		j = job(2, 0, 1000, "early");
		slu_batch_put_job(b, &j);
		slu_batch_del_job(b, j.id);
		j.id = 77;
		slu_batch_put_job(b, &j);
		ok(commit1(s, 0, b, &err) == 0, "%s: a key has the number that it had last (%s)",
		   backend, err.text);
	}
	b = slu_batch_new();
	slu_batch_del_pods(b, 2);
	ok(commit1(s, 0, b, &err) == 0, "%s: the pods of a job are deleted", backend);

	/* Pruned in steps; the result leaves its sum. */
	ok(slu_store_prune(s, INT64_C(1000000000), 1, true, &err) == 1 + 1 + 1,
	   "%s: a step prunes one of each", backend);
	ok(slu_store_prune(s, INT64_C(1000000000), 100, true, &err) == 1 &&
		   slu_store_prune(s, INT64_C(1000000000), 100, true, &err) == 0,
	   "%s: the next step prunes the rest, and a further one nothing", backend);
	ok(slu_store_bytes(s, &bytes, &err) == 0 && bytes > 4096, "%s: occupies %" PRId64 " bytes",
	   backend, bytes);
	slu_store_close(s);
}

static int note_seq(void *arg, const struct slu_store_event *e)
{
	char *text = arg;

	snprintf(text + strlen(text), 200 - strlen(text), "%" PRIu64 " ", e->seq);
	return 0;
}

static bool events_are(struct slu_store *s, const char *want)
{
	char text[200] = "";

	slu_store_events(s, 0, note_seq, text, NULL);
	return !strcmp(text, want);
}

/* Four logs of three rows; each goes as a whole, one at a time, and only when the next one is old
 * as well. */
static void test_retention(const char *url, const char *backend)
{
	struct slu_error err = { 0 };
	struct slu_store *s = must_open(url, SLU_STORE_MIGRATE);
	struct slu_batch *b = slu_batch_new();
	struct slu_journal_setup setup = { .url = url, .cluster = "cluster-a", .holder = "me" };
	struct slu_journal_health h;
	struct slu_journal *j = NULL;
	int64_t used = 0;
	uint64_t begin = 0;

	for (int i = 0; i < 12; i++)
		slu_batch_put_event(b, &(struct slu_store_event){
					       (uint64_t)i + 11, 100 * (i / 3 + 1) + i,
					       i % 3 ? SLU_STORE_EVENT_ROW : SLU_STORE_EVENT_BEGIN,
					       "x", 1 });
	ok(commit1(s, 0, b, &err) == 0, "%s: four logs (%s)", backend, err.text);
	ok(slu_store_prune(s, INT64_MAX, 100, false, &err) == 3 &&
		   events_are(s, "14 15 16 17 18 19 20 21 22 "),
	   "%s: one log is removed at a time, because there may be room for the others", backend);
	ok(slu_store_log_begin(s, 350, &begin, &err) == 0 && begin == 17,
	   "%s: the second of the rest is under way at 350", backend);
	ok(slu_store_prune(s, 300, 100, false, &err) == 0, "%s: the first reaches beyond 300",
	   backend);
	ok(slu_store_prune(s, 350, 2, false, &err) == 2 && events_are(s, "16 17 18 19 20 21 22 "),
	   "%s: at 350 it is over: two rows go", backend);
	ok(slu_store_prune(s, 350, 2, false, &err) == 1 &&
		   slu_store_prune(s, 350, 2, false, &err) == 0,
	   "%s: the next step removes the third row, and a further one none", backend);
	ok(slu_store_used(s, &used, &err) == 0 && used > 0, "%s: rows need %" PRId64 " bytes",
	   backend, used);

	/* The journal's thread does the same, by age; the log under way stays. */
	ok(slu_journal_new(&setup, &j) == 0, "%s: the journal starts", backend);
	slu_journal_keep(j, 1000000, 0, false);
	slu_journal_health(j, &h);
	for (int i = 0; i < 6000 && h.pruned < 3; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		slu_journal_health(j, &h); /* counted after the rows are gone */
	}
	ok(events_are(s, "20 21 22 ") && h.pruned == 3,
	   "%s: the journal removes old rows by itself", backend);
	/* By size: one byte is too small for anything.  The log cannot go, and that is told. */
	slu_journal_keep(j, 0, 1, false);
	for (int i = 0; i < 6000 && !h.log_too_large; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		slu_journal_health(j, &h);
	}
	ok(h.log_too_large && events_are(s, "20 21 22 "), "%s: a log that is too large is reported",
	   backend);
	slu_journal_keep(j, 0, 1, true);
	for (int i = 0; i < 6000 && !events_are(s, ""); i++)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	ok(events_are(s, ""), "%s: a log that may be removed is removed", backend);
	slu_journal_free(j, 100);
	slu_store_close(s);
}

static void test_fence(const char *url, const char *backend)
{
	struct slu_error err = { 0 };
	struct slu_store *s = must_open(url, SLU_STORE_MIGRATE), *t;
	struct slu_store_job j = job(50, 0, 1, "fenced");
	struct slu_batch *b = slu_batch_new();
	struct seen seen;
	int64_t term = 0;

	ok(slu_store_take_term(s, 5, "one", &err) == 0, "%s: term 5 is taken", backend);
	ok(slu_store_take_term(s, 5, "one", &err) == 0,
	   "%s: the same holder may take its term again", backend);
	ok(slu_store_take_term(s, 5, "two", &err) == -ESTALE,
	   "%s: another holder may not take that term", backend);
	t = must_open(url, 0);
	ok(slu_store_take_term(t, 6, "two", &err) == 0 && slu_store_term(s, &term, &err) == 0 &&
		   term == 6,
	   "%s: a newer leader takes term 6", backend);
	slu_batch_put_job(b, &j);
	ok(commit1(s, 5, b, &err) == -ESTALE, "%s: the deposed leader cannot write (%s)", backend,
	   err.text);
	load(t, &seen, &err);
	ok(strstr(seen.order, "fenced") == NULL, "%s: nothing of the refused write is there",
	   backend);
	b = slu_batch_new();
	slu_batch_put_job(b, &j);
	slu_batch_del_job(b, 50);
	ok(commit1(t, 6, b, &err) == 0, "%s: the new leader can write", backend);
	ok(slu_store_raise_term(t, 5, "three", &err) == -ESTALE,
	   "%s: no leader goes above a term that is not the newest", backend);
	ok(slu_store_raise_term(t, 6, "three", &err) == 0 && slu_store_term(s, &term, &err) == 0 &&
		   term == 7,
	   "%s: a leader may go above the newest term", backend);
	slu_store_close(t);

	ok(slu_store_bind_cluster(s, "cluster-a", &err) == 0, "%s: bound to a cluster", backend);
	ok(slu_store_bind_cluster(s, "cluster-a", &err) == 0, "%s: the same one again", backend);
	ok(slu_store_bind_cluster(s, "cluster-b", &err) == -EXDEV && strstr(err.text, "cluster-a"),
	   "%s: another is refused: %s", backend, err.text);
	slu_store_close(s);
}

static struct slu_buf dumped = { .max = 1 << 20 };

static int collect(void *arg, const char *line, size_t n)
{
	return slu_buf_add(arg, line, n);
}

static int import(struct slu_store *s, const char *text, struct slu_error *err)
{
	slu_cleanup(slu_import_freep) struct slu_import *im = NULL;
	int rc = slu_import_new(s, &im, err);

	while (!rc && *text) {
		size_t n = strcspn(text, "\n");

		rc = slu_import_line(im, text, n, err);
		text += n + (text[n] == '\n');
	}
	return rc ? rc : slu_import_commit(im, NULL, err);
}

static void test_dump(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "empty" },
		{ "{}\n", "not an export" },
		{ "{\"sluice\":\"export\",\"schema\":99,\"cluster\":\"c\"}\n",
		  "schema version 99" },
		{ "{\"sluice\":\"export\",\"schema\":1,\"cluster\":\"c\"}\n{\"table\":\"spoons\"}\n",
		  "line 2: unknown table \"spoons\"" },
		{ "{\"sluice\":\"export\",\"schema\":1,\"cluster\":\"c\"}\n{\"table\":\"plans\",\"job\":1,"
		  "\"seq\":\"x\"}\n",
		  "line 2: table plans: column seq" },
		{ "{\"sluice\":\"export\",\"schema\":1,\"cluster\":\"c\"}\n{\"table\":\"events\",\"seq\":1,"
		  "\"at_us\":1,\"kind\":1,\"data\":\"0g\"}\n",
		  "column data" },
		{ "{\"sluice\":\"export\",\"schema\":1,\"cluster\":\"c\"}\n{\"table\":",
		  "line 2: line 1, column" },
	};
	struct slu_error err = { 0 };
	struct slu_store *s = must_open(fresh_sqlite(), SLU_STORE_MIGRATE), *t;
	struct slu_batch *b = slu_batch_new();
	struct slu_buf again = SLU_BUF_INIT(1 << 20);
	uint64_t rows = 0;

	put_life(b);
	commit1(s, 0, b, &err);
	slu_store_bind_cluster(s, "cluster-a", &err);
	ok(slu_dump_export(s, collect, &dumped, &rows, &err) == 0 &&
		   rows == 4 + 4 + 2 + 1 + 1 + 2 + 2,
	   "export writes %" PRIu64 " rows", rows);
	ok(import(s, slu_buf_str(&dumped), &err) == -EEXIST,
	   "a store that holds rows is not overwritten");
	slu_store_close(s);
	t = must_open(fresh_sqlite(), SLU_STORE_MIGRATE);
	ok(import(t, slu_buf_str(&dumped), &err) == 0, "import into a new one (%s)", err.text);
	slu_dump_export(t, collect, &again, &rows, &err);
	ok(again.n == dumped.n && memcmp(again.p, dumped.p, dumped.n) == 0,
	   "export of the import is the same text");
	slu_store_close(t);
	slu_buf_done(&again);
	for (size_t i = 0; i < SLU_LEN(bad); i++) {
		int rc;

		t = must_open(fresh_sqlite(), SLU_STORE_MIGRATE);
		rc = import(t, bad[i].text, &err);
		ok(rc < 0 && strstr(err.text, bad[i].says),
		   "an export with a mistake is refused: %s", err.text);
		ok(slu_store_check(t, &rows, &err) == 0 && rows == 0,
		   "nothing of a refused batch stays");
		slu_store_close(t);
	}
}

/* Flip bytes all over the file, one at a time: whatever is loaded afterwards is right or refused.
 */
static void test_damage(void)
{
	struct slu_error err = { 0 };
	char good_path[128];
	struct slu_store *s;
	struct slu_batch *b = slu_batch_new();
	struct seen seen;
	struct stat st;
	char *image;
	int fd, refused = 0, right = 0, wrong = 0;

	snprintf(good_path, sizeof good_path, "%s", fresh_sqlite());
	s = must_open(good_path, SLU_STORE_MIGRATE);
	put_life(b);
	commit1(s, 0, b, &err);
	slu_store_close(s); /* the last connection folds the log into the file */
	fd = open(good_path, O_RDONLY);
	fstat(fd, &st);
	image = malloc((size_t)st.st_size);
	ok(read(fd, image, (size_t)st.st_size) == st.st_size, "the store is one file of %ld bytes",
	   (long)st.st_size);
	close(fd);
	for (off_t at = 0; at < st.st_size; at += 61) {
		const char *path = fresh_sqlite();
		ssize_t w;
		int rc;

		fd = open(path, O_CREAT | O_WRONLY, 0600);
		image[at] ^= 0x10;
		w = write(fd, image, (size_t)st.st_size);
		image[at] ^= 0x10;
		close(fd);
		s = NULL;
		rc = w == st.st_size ? slu_store_open(path, SLU_STORE_MIGRATE, &s, &err) : -EIO;
		if (!rc)
			rc = load(s, &seen, &err);
		if (rc < 0)
			refused++;
		else if (strcmp(seen.order, "urgent also-early early late ") == 0 &&
			 seen.pods == 4 && seen.spans == 1 && seen.intents == 1 &&
			 seen.intent_pods == 2)
			right++;
		else
			wrong++;
		slu_store_close(s);
		unlink(path);
	}
	ok(wrong == 0 && refused > 0 && right > 0,
	   "flipped bytes: %d refused, %d harmless, %d loaded wrongly", refused, right, wrong);
	for (off_t keep = 0; keep < st.st_size; keep += 4096 + 700) {
		const char *path = fresh_sqlite();
		bool good;
		int rc;

		fd = open(path, O_CREAT | O_WRONLY, 0600);
		good = write(fd, image, (size_t)keep) == keep;
		close(fd);
		s = NULL;
		rc = slu_store_open(path, SLU_STORE_MIGRATE, &s, &err);
		if (!rc)
			rc = load(s, &seen, &err);
		/* The last page may end in nothing but zeros, which are not missed. */
		good &= keep ? rc < 0 || (seen.jobs == 4 && seen.pods == 4 && seen.intents == 1)
			     : rc == 0 && seen.jobs == 0;
		ok(good, "cut to %ld bytes: %s", (long)keep,
		   rc      ? err.text
		   : !keep ? "a new store"
			   : "only zeros");
		slu_store_close(s);
		unlink(path);
	}
	free(image);
}

static void test_open_errors(void)
{
	static const char *const wrong[] = { "mysql://ada:secret@db/x",
					     "postgres://ada:secret@[::1]x/db" };
	struct slu_error err = { 0 };
	struct slu_store *s = NULL;
	char shown[128], path[128];
	struct stat st = { 0 };
	FILE *f;

	ok(slu_store_open("/nowhere/at/all.db", SLU_STORE_MIGRATE, &s, &err) == -EAGAIN &&
		   strstr(err.text, "/nowhere"),
	   "a missing folder is an error that names it: %s", err.text);
	snprintf(path, sizeof path, "%s", fresh_sqlite());
	f = fopen(path, "w");
	for (int i = 0; i < 500; i++)
		fputs("this is a letter, not a database\n", f);
	fclose(f);
	ok(slu_store_open(path, SLU_STORE_MIGRATE, &s, &err) == -EBADMSG,
	   "a file that is not a database is refused: %s", err.text);
	ok(slu_store_open(fresh_sqlite(), 0, &s, &err) == -EPROTO &&
		   strstr(err.text, "sluice store migrate"),
	   "an old schema is refused without SLU_STORE_MIGRATE: %s", err.text);
	snprintf(path, sizeof path, "%s", fresh_sqlite());
	umask(0);
	ok(slu_store_open(path, SLU_STORE_MIGRATE, &s, &err) == 0 && stat(path, &st) == 0 &&
		   (st.st_mode & 0777) == 0600,
	   "a new store is its owner's alone");
	slu_store_close(s);
	s = NULL;
	slu_store_url_shown("postgres://ada:secret@db:5432/x?password=secret", shown, sizeof shown);
	ok(strcmp(shown, "postgres://ada:***@db:5432/x") == 0, "a shown URL hides the password: %s",
	   shown);
	slu_store_url_shown("postgres://db/x", shown, sizeof shown);
	ok(strcmp(shown, "postgres://db/x") == 0, "a URL without a password is shown as it is");
	for (size_t i = 0; i < SLU_LEN(wrong); i++)
		ok(slu_store_open(wrong[i], 0, &s, &err) < 0 && !strstr(err.text, "secret") &&
			   strstr(err.text, "ada:***@"),
		   "the password is not in the error of a wrong URL: %s", err.text);
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int wakes;
};

static void wake(void *arg)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	w->wakes++;
	pthread_cond_broadcast(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/* Wait until the journal reports the state (and the ticket); false after a minute. */
static bool await(struct waiter *w, struct slu_journal *j, enum slu_journal_state state,
		  uint64_t ticket)
{
	struct slu_journal_health h;
	struct timespec until;
	bool there;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	pthread_mutex_lock(&w->lock);
	for (;;) {
		slu_journal_health(j, &h);
		there = h.state == state && slu_journal_durable(j) >= ticket;
		if (there || pthread_cond_timedwait(&w->cond, &w->lock, &until) == ETIMEDOUT)
			break;
	}
	pthread_mutex_unlock(&w->lock);
	return there;
}

static struct slu_batch *one_job(uint64_t id)
{
	struct slu_batch *b = slu_batch_new();
	struct slu_store_job j = job(id, 0, (int64_t)id, "queued");

	slu_batch_put_job(b, &j);
	return b;
}

static void test_journal(const char *url, const char *backend)
{
	struct waiter w = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	struct slu_journal_setup setup = { .url = url,
					   .cluster = "cluster-a",
					   .holder = "me",
					   .term = 100,
					   .wake = wake,
					   .arg = &w };
	struct seen seen = { .jobs = 0 };
	const struct slu_store_reader r = { .job = see_job, .arg = &seen };
	struct slu_journal_health h;
	struct slu_error err = { 0 };
	struct slu_journal *j = NULL;
	struct slu_store *other;
	uint64_t ticket = 0;
	bool good = true;

	ok(slu_journal_new(&setup, &j) == 0, "%s: journal starts", backend);
	for (uint64_t i = 0; i < 500; i++)
		good &= slu_journal_submit(j, one_job(1000 + i), &ticket) == 0 && ticket == i + 1;
	ok(good && await(&w, j, SLU_JOURNAL_OK, 500), "%s: 500 batches become durable", backend);
	slu_journal_health(j, &h);
	ok(h.ops == 500 && h.commits < 500 && h.waiting == 0, "%s: in %" PRIu64 " transactions",
	   backend, h.commits);

	other = must_open(url, 0);
	ok(slu_store_take_term(other, 101, "you", &err) == 0, "%s: another leader appears",
	   backend);
	slu_store_close(other);
	slu_journal_submit(j, one_job(5000), &ticket);
	ok(await(&w, j, SLU_JOURNAL_FENCED, 0), "%s: the journal of the old leader is fenced",
	   backend);
	ok(slu_journal_submit(j, one_job(5001), &ticket) == -ESTALE,
	   "%s: a fenced journal takes no batch", backend);
	ok(slu_journal_free(j, 10) == 1, "%s: one batch is given up", backend);
	setup.term = 102;
	ok(slu_journal_recover(&setup, &r, &err) == 0 && seen.jobs >= 500,
	   "%s: recovery reads them back (%s)", backend, err.text);
}

static bool leads(void *arg)
{
	return true;
}

static bool deposed(void *arg)
{
	return false;
}

/* A Lease that was deleted counts from zero again; the store remembers the higher terms. */
static void test_terms_anew(const char *url, const char *backend)
{
	struct waiter w = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	struct slu_journal_setup setup = { .url = url,
					   .cluster = "cluster-a",
					   .holder = "new",
					   .term = 1,
					   .held = deposed,
					   .wake = wake,
					   .arg = &w };
	struct slu_store_reader r = { .arg = NULL };
	struct slu_journal_health h;
	struct slu_error err = { 0 };
	struct slu_journal *j = NULL, *k = NULL;
	uint64_t ticket = 0;

	ok(slu_journal_recover(&setup, &r, &err) == -ESTALE && setup.term == 1,
	   "%s: a low term of a replica that no longer leads is refused", backend);
	setup.held = leads;
	ok(slu_journal_recover(&setup, &r, &err) == 0 && setup.term == 103,
	   "%s: the leader goes on with a term above the store's (%" PRId64 ")", backend,
	   setup.term);
	ok(slu_journal_new(&setup, &j) == 0 && slu_journal_submit(j, one_job(7000), &ticket) == 0 &&
		   await(&w, j, SLU_JOURNAL_OK, 1),
	   "%s: a leader with such a term can write", backend);
	/* the store was away when the next one began: its journal finds out by itself */
	setup.term = 2;
	setup.holder = "newer";
	ok(slu_journal_new(&setup, &k) == 0 && slu_journal_submit(k, one_job(7001), &ticket) == 0 &&
		   await(&w, k, SLU_JOURNAL_OK, 1),
	   "%s: the next one, too", backend);
	slu_journal_health(k, &h);
	ok(h.term == 104, "%s: with term %" PRId64, backend, h.term);
	slu_journal_submit(j, one_job(7002), &ticket);
	ok(await(&w, j, SLU_JOURNAL_FENCED, 0), "%s: the leader before it is fenced", backend);
	ok(slu_journal_submit(k, one_job(7003), &ticket) == 0 && await(&w, k, SLU_JOURNAL_OK, 2),
	   "%s: the new one writes on", backend);
	slu_journal_free(j, 0);
	slu_journal_free(k, 1000);
}

/* The folder appears only later: the journal starts all the same, holds back, and catches up. */
static void test_journal_outage(void)
{
	struct waiter w = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	char sub[96], url[128];
	struct slu_journal_setup setup = { .url = url,
					   .cluster = "c",
					   .holder = "me",
					   .term = 1,
					   .max_waiting = 3,
					   .wake = wake,
					   .arg = &w };
	struct slu_journal_health h;
	struct slu_journal *j = NULL;
	uint64_t ticket = 0;

	snprintf(sub, sizeof sub, "%s/later", dir);
	snprintf(url, sizeof url, "%s/store.db", sub);
	slu_journal_new(&setup, &j);
	ok(await(&w, j, SLU_JOURNAL_AWAY, 0), "a database that is not there yet is waited for");
	slu_journal_health(j, &h);
	ok(strstr(h.why, "later/store.db") != NULL, "a database that is not there yet is named: %s",
	   h.why);
	for (uint64_t i = 0; i < 3; i++)
		slu_journal_submit(j, one_job(i + 1), &ticket);
	ok(slu_journal_submit(j, one_job(9), &ticket) == -EAGAIN,
	   "a journal with a full queue refuses the next batch");
	ok(slu_journal_durable(j) == 0, "during the outage no batch is called durable");
	mkdir(sub, 0700);
	ok(await(&w, j, SLU_JOURNAL_OK, 3), "when it comes, the journal catches up");
	ok(slu_journal_free(j, 1000) == 0, "no batch is given up");
}

static int fault_scenario(void)
{
	struct slu_batch *b = slu_batch_new();
	struct slu_store_job j = job(1, 0, 1, "x");
	int rc = -ENOMEM;

	if (b)
		rc = slu_batch_put_job(b, &j);
	if (!rc)
		rc = slu_batch_del_job(b, 1);
	slu_batch_free(b);
	return rc;
}

static void test_faults(void)
{
	for (long k = 0;; k++) {
		int rc;

		slu_fault_arm(k);
		rc = fault_scenario();
		if (!slu_fault_disarm()) {
			ok(rc == 0, "clean after %ld failing allocations", k);
			break;
		}
		if (rc != -ENOMEM)
			ok(false, "allocation %ld: %d", k, rc);
	}
}

/* A leader that stopped in the middle of a transaction has the row of the term. */
static void test_frozen(const char *url)
{
	struct slu_store *s = must_open(url, 0), *t = must_open(url, 0);
	struct slu_sql *q = slu_store_sql(s);
	struct slu_sql_val v[2] = { slu_sql_int(1000), slu_sql_text("frozen") };
	struct slu_error err = { 0 };

	ok(slu_store_take_term(s, 1000, "frozen", &err) == 0 && q->ops->begin(q, &err) == 0 &&
		   q->ops->query(q, ST_TAKE_TERM, v, 2, NULL, NULL, NULL, &err) == 0,
	   "postgresql: a leader is frozen in its transaction");
	ok(slu_store_take_term(t, 1001, "next", &err) == 0,
	   "postgresql: the next one is not held up for ever (%s)", err.text);
	q->ops->rollback(q);
	slu_store_close(s);
	slu_store_close(t);
}

static void test_claim(void)
{
	char path[80], lock[100];
	struct slu_error err = { 0 };
	int fd;

	snprintf(path, sizeof path, "/tmp/sluice-claim-%d.db", (int)getpid());
	snprintf(lock, sizeof lock, "%s-lock", path);
	fd = slu_store_claim(path, &err);
	ok(fd >= 0, "claim: the first daemon has the file (%s)", err.text);
	ok(slu_store_claim(path, &err) == -EBUSY && strstr(err.text, "another sluiced"),
	   "claim: the second is told (%s)", err.text);
	close(fd);
	fd = slu_store_claim(path, &err);
	ok(fd >= 0, "claim: when the first has gone, the second may");
	close(fd);
	ok(slu_store_claim("postgres://db/x", &err) == -ENOTSUP,
	   "claim: PostgreSQL fences by term");
	unlink(lock);
}

/* Somebody removes the file, or puts another in its place, while a process writes to it: writes succeed as
 * before, and no other process would ever see them. */
static void test_pulled_away(void)
{
	static const char *const ends[] = { "", "-wal" };

	for (size_t i = 0; i < SLU_LEN(ends); i++) {
		const char *path = fresh_sqlite();
		struct slu_store_job j = job(1, 0, 1, "one");
		struct slu_error err = { 0 };
		struct slu_store *s = must_open(path, SLU_STORE_MIGRATE);
		struct slu_batch *b = slu_batch_new();
		char name[160];

		slu_batch_put_job(b, &j);
		ok(s && commit1(s, 0, b, &err) == 0, "a store takes a batch (%s)", err.text);
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
		b = slu_batch_new();
		slu_batch_put_job(b, &j);
		ok(commit1(s, 0, b, &err) == -EBADMSG &&
			   strstr(err.text, "was removed, replaced or cut"),
		   "a write to a removed \"%s\" is not called durable (%s)", ends[i], err.text);
		slu_store_close(s);
		s = must_open(path, SLU_STORE_MIGRATE);
		b = slu_batch_new();
		slu_batch_put_job(b, &j);
		ok(s && commit1(s, 0, b, &err) == 0, "the file that is there then is used (%s)",
		   err.text);
		slu_store_close(s);
	}
}

/* ---- the view that users of the originals query ---- */

static int see_pending(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	slu_buf_printf(arg, "%s %" PRId64 " \"%s\" %s|", (const char *)v[0].p, v[1].i,
		       (const char *)v[2].p, (const char *)v[3].p);
	return 0;
}

static struct slu_store_job pending(uint64_t id, const char *kind, const char *object,
				    const char *spec)
{
	struct slu_store_job j = job(id, 0, (int64_t)id, kind);

	j.kind = kind;
	j.object = object;
	j.spec = spec;
	return j;
}

static void test_pending(const char *url, const char *backend)
{
	static const struct slu_sql_stmt stmt[] = {
		{ "SELECT name, type, flux_job_name, jobspec FROM pending_queue ORDER BY flux_id",
		  NULL }
	};
	static const char *const kind[] = { "Pod",        "Job",         "Deployment",
					    "ReplicaSet", "StatefulSet", "MPIJob" };
	static const char want[] =
		"Pod 0 \"\" |Job 1 \"\" |Deployment 2 \"\" |ReplicaSet 3 \"\" |StatefulSet 4 \"\" |"
		"MPIJob 0 \"\" |"
		"solver 1 \"solver-job\" version: 9999\nresources:\n"
		"- type: slot\n  count: 4\n  label: default\n  with:\n"
		"  - {type: core, count: 2}\n  - {type: memory, count: 3072, unit: MB}\n"
		"  - {type: gpu, count: 1}\n"
		"- type: slot\n  count: 1\n  label: role1\n  with:\n  - {type: core, count: 1}\n"
		"tasks:\n"
		"- {command: [\"default/solver\"], slot: default, count: {per_slot: 1}}\n"
		"- {command: [\"default/solver\"], slot: role1, count: {per_slot: 1}}\n"
		"attributes:\n  system: {duration: 1800}\n|"
		"plain 0 \"plain-pod\" version: 1\nresources:\n"
		"- type: slot\n  count: 2\n  label: default\n  with:\n  - {type: core, count: 4}\n"
		"tasks:\n- {command: [\"default/plain\"], slot: default, count: {per_slot: 1}}\n"
		"attributes:\n  system: {}\n|";
	struct slu_store *s = must_open(url, SLU_STORE_MIGRATE);
	struct slu_batch *b = slu_batch_new();
	struct slu_buf got = SLU_BUF_INIT(1 << 16);
	struct slu_error err = { 0 };
	struct slu_store_job j;
	struct slu_sql *q = NULL;

	slu_batch_clear(b);
	for (uint64_t i = 0; i < SLU_LEN(kind); i++) {
		j = pending(i + 1, kind[i], "", "{}");
		slu_batch_put_job(b, &j);
	}
	j = pending(7, "solver", "solver-job",
		    "{\"roles\":[{\"min\":4,\"max\":4,\"need\":{\"pods\":1,\"cpu\":1500,"
		    "\"memory\":3221225472,\"nvidia.com/gpu\":1}},{\"min\":1,\"max\":1,"
		    "\"need\":{\"pods\":1}}],\"exclusive\":true}");
	j.kind = "Job";
	j.limit_s = 1800;
	slu_batch_put_job(b, &j);
	j = pending(8, "plain", "plain-pod", "{\"roles\":[{\"min\":2,\"need\":{\"cpu\":4000}}]}");
	j.kind = "Pod";
	j.limit_s = 0;
	slu_batch_put_job(b, &j);
	ok(commit1(s, 0, b, &err) == 0, "%s: jobs of every kind wait (%s)", backend, err.text);
	slu_store_close(s);
	if (!strcmp(backend, "sqlite"))
		slu_sqlite_open(url, true, stmt, 1, &q, &err);
	else
		slu_pg_open(url, true, stmt, 1, &q, &err);
	ok(q && q->ops->query(q, 0, NULL, 0, see_pending, &got, NULL, &err) == 0,
	   "%s: the view answers (%s)", backend, err.text);
	ok(!strcmp(slu_buf_str(&got), want),
	   "%s: pending_queue has the originals' numbers of kinds, FluxJobs and jobspecs", backend);
	if (strcmp(slu_buf_str(&got), want) != 0)
		fprintf(stderr, "%s", slu_buf_str(&got));
	if (q)
		q->ops->close(q);
	slu_buf_done(&got);
}

/* ---- a database that the programs before us have used ---- */

static int see_text(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	slu_buf_printf(arg, "%s ", (const char *)v[0].p);
	return 0;
}

static void test_beside(const char *url)
{
	enum { OLD, OURS };
	static const struct slu_sql_stmt stmt[] = {
		[OLD] = { "SELECT group_name FROM public.pending_queue", NULL },
		[OURS] = { "SELECT group_name FROM sluice.pending_queue", NULL },
	};
	struct slu_buf got = SLU_BUF_INIT(1 << 10);
	struct slu_error err = { 0 };
	struct slu_store *s;
	struct slu_batch *b = slu_batch_new();
	struct slu_store_job j = job(1, 0, 1, "ours");
	struct slu_sql *q = NULL;
	char there[400];
	int round;

	ok(slu_pg_open(url, false, stmt, SLU_LEN(stmt), &q, &err) == 0 &&
		   q->ops->script(q, "CREATE DATABASE used", &err) == 0,
	   "a database of its own (%s)", err.text);
	q->ops->close(q);
	snprintf(there, sizeof there, "%.*sused%s", (int)(strstr(url, "postgres?") - url), url,
		 strchr(url, '?'));
	ok(slu_pg_open(there, false, stmt, SLU_LEN(stmt), &q, &err) == 0 &&
		   q->ops->script(q,
				  "CREATE TABLE pending_queue (group_name text, namespace text,"
				  " group_size int, flux_id int);"
				  "CREATE TABLE reservations (group_name text, flux_id int);"
				  "INSERT INTO pending_queue VALUES ('theirs', 'default', 2, 7)",
				  &err) == 0,
	   "the originals' tables are there (%s)", err.text);
	q->ops->close(q);
	ok(slu_store_open(there, 0, &s, &err) == -EPROTO,
	   "a database without tables of Sluice is refused and stays as it is (%s)", err.text);
	s = must_open(there, SLU_STORE_MIGRATE);
	slu_batch_put_job(b, &j);
	ok(s && commit1(s, 0, b, &err) == 0, "we live beside them (%s)", err.text);
	slu_store_close(s);
	/* With them and, later, without. */
	for (round = 0; round < 2; round++) {
		struct seen seen;

		s = must_open(there, SLU_STORE_READONLY);
		ok(s && load(s, &seen, &err) == 0 && seen.jobs == 1, "found again, tables %s (%s)",
		   round ? "gone" : "there", err.text);
		slu_store_close(s);
		if (slu_pg_open(there, false, stmt, SLU_LEN(stmt), &q, &err) < 0)
			break;
		if (!round)
			q->ops->query(q, OLD, NULL, 0, see_text, &got, NULL, &err);
		q->ops->query(q, OURS, NULL, 0, see_text, &got, NULL, &err);
		q->ops->script(q, "DROP TABLE IF EXISTS public.pending_queue, public.reservations",
			       &err);
		q->ops->close(q);
	}
	ok(!strcmp(slu_buf_str(&got), "theirs ours ours "), "theirs stays as it is: %s",
	   slu_buf_str(&got));
	slu_buf_done(&got);
}

/* Bytes that this thread, or all threads of the process, have written. */
static int64_t written(const char *of)
{
	char path[64], line[64];
	int64_t n = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%s/io", of);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "wchar: %" SCNd64, &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static int64_t length(const char *path, const char *end)
{
	struct stat st;
	char name[160];

	snprintf(name, sizeof name, "%s%s", path, end);
	return stat(name, &st) < 0 ? 0 : st.st_size;
}

/* Stands before the C library's: counts the syncs of a database file by the thread that commits and by others.
 * A disk that takes a moment lets the threads overlap as they do on a real one. */
static struct {
	const char *path; /* the file; NULL: sync and count nothing */
	pthread_t committer;
	_Atomic int by_committer, by_others;
} syncs;

int fdatasync(int fd)
{
	struct stat a, b;

	if (!syncs.path)
		return (int)syscall(SYS_fdatasync, fd);
	if (fstat(fd, &a) == 0 && stat(syncs.path, &b) == 0 && a.st_ino == b.st_ino) {
		if (pthread_equal(pthread_self(), syncs.committer))
			syncs.by_committer++;
		else
			syncs.by_others++;
	}
	usleep(100);
	return 0;
}

/* 12 000 pages of rows: much more than the log is to hold before they are moved. */
static void test_checkpoint(void)
{
	struct slu_error err = { 0 };
	char path[128], spec[4000];
	struct slu_store *s;
	struct slu_store_job j = job(1, 0, 1, "large");
	int64_t all = written("self"), mine = written("thread-self"), rows;
	int rc = 0;

	snprintf(path, sizeof path, "%s", fresh_sqlite());
	s = must_open(path, SLU_STORE_MIGRATE);
	syncs.path = path;
	syncs.committer = pthread_self();
	memset(spec, 'x', sizeof spec - 1);
	spec[sizeof spec - 1] = '\0';
	j.spec = spec;
	for (uint64_t i = 1; i <= 6000 && !rc; i++) {
		struct slu_batch *b = slu_batch_new();

		j = job(i, 0, 1, "large");
		j.spec = spec;
		slu_batch_put_job(b, &j);
		rc = commit1(s, 0, b, &err);
	}
	rows = length(path, "");
	all = written("self") - all;
	mine = written("thread-self") - mine;
	ok(rc == 0 && rows > 8 << 20,
	   "pages go from the log to the file while it is open: %" PRId64, rows);
	ok(length(path, "-wal") < 40 << 20, "the log does not grow for ever: %" PRId64,
	   length(path, "-wal"));
	ok(all - mine > rows / 2,
	   "the committing thread does not move them: %" PRId64 " of %" PRId64
	   " bytes were written by another thread",
	   all - mine, all);
	ok(syncs.by_others >= syncs.by_committer && syncs.by_committer <= all / (16 << 20),
	   "a commit waits for the file once in 16 MB, after another thread did: %d of %d syncs",
	   syncs.by_committer, syncs.by_committer + syncs.by_others);
	syncs.path = NULL;
	slu_store_close(s);
	ok(length(path, "-wal") == 0, "nothing is left of the log in the end");
}

int main(void)
{
	test_claim();
	const char *pg = getenv("DATABASE_URL");

	if (!mkdtemp(dir))
		return 1;
	if (pg) {
		test_life(pg, "postgresql");
		test_retention(pg, "postgresql");
		test_fence(pg, "postgresql");
		test_journal(pg, "postgresql");
		test_terms_anew(pg, "postgresql");
		test_frozen(pg);
		test_pending(pg, "postgresql");
		test_beside(pg);
	} else {
		const char *path = fresh_sqlite();
		char copy[128];

		snprintf(copy, sizeof copy, "%s", path);
		test_life(copy, "sqlite");
		test_retention(copy, "sqlite");
		test_fence(copy, "sqlite");
		test_journal(copy, "sqlite");
		test_terms_anew(copy, "sqlite");
		test_pulled_away();
		test_pending(copy, "sqlite");
		test_journal_outage();
		test_dump();
		test_checkpoint();
		test_damage();
		test_open_errors();
		test_faults();
	}
	slu_buf_done(&dumped);
	remove_dir();
	return tap_done();
}
