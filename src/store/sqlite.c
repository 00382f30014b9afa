#include "store/sql_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "store/checkpoint_internal.h"

#define BUSY_MS   5000
#define NFS_MAGIC 0x6969

struct sqlite {
	struct slu_sql q;
	sqlite3 *db;
	sqlite3_stmt **stmt;
	struct slu_checkpoint *checkpoint; /* NULL: read-only, or left to SQLite */
	bool readonly;
	char *path;
	struct stat at[2]; /* the file and its log, as they were opened */
};

/* SQLite's result as one of ours, with its own words. */
static int fail_sqlite(struct sqlite *s, const char *doing, struct slu_error *err)
{
	int rc = sqlite3_extended_errcode(s->db), code;

	switch (rc & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
		code = -EAGAIN;
		break;
	case SQLITE_FULL:
		code = -ENOSPC;
		break;
	case SQLITE_READONLY:
		code = -EROFS;
		break;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		code = -EBADMSG;
		break;
	case SQLITE_NOMEM:
		code = -ENOMEM;
		break;
	default:
		code = -EIO;
	}
	if (code == -EBADMSG)
		return slu_fail(
			err, code,
			"%s: the file is damaged (%s); move it away, and sluiced rebuilds its state from the cluster",
			doing, sqlite3_errmsg(s->db));
	if ((rc & 0xff) == SQLITE_CANTOPEN && sqlite3_system_errno(s->db))
		return slu_fail(err, code, "%s: %s: %s", doing, sqlite3_errmsg(s->db),
				strerror(sqlite3_system_errno(s->db)));
	return slu_fail(err, code, "%s: %s", doing, sqlite3_errmsg(s->db));
}

static int script(struct slu_sql *q, const char *text, struct slu_error *err)
{
	struct sqlite *s = (struct sqlite *)q;

	return sqlite3_exec(s->db, text, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : fail_sqlite(s, "store", err);
}

static void close_db(struct slu_sql *q)
{
	struct sqlite *s = (struct sqlite *)q;

	for (uint32_t i = 0; s->stmt && i < s->q.n_stmts; i++)
		sqlite3_finalize(s->stmt[i]);
	slu_free(s->stmt);
	slu_checkpoint_free(s->checkpoint);
	sqlite3_close(s->db);
	slu_free(s->path);
	slu_free(s);
}

static int begin_transaction(struct slu_sql *q, struct slu_error *err)
{
	struct sqlite *s = (struct sqlite *)q;

	return script(q, s->readonly ? "BEGIN" : "BEGIN IMMEDIATE", err);
}

/* Which files the names of the store and of its log mean now; false: one of them means none. */
static bool find_files(const struct sqlite *s, struct stat at[2])
{
	char log[PATH_MAX];

	return snprintf(log, sizeof log, "%s-wal", s->path) < (int)sizeof log &&
	       !stat(s->path, &at[0]) && !stat(log, &at[1]);
}

/* A file that was removed or replaced takes writes as before, and the next process finds nothing of them. */
static int check_files(const struct sqlite *s, struct slu_error *err)
{
	struct stat now[2];
	bool same = find_files(s, now);

	for (int i = 0; same && i < 2; i++)
		same = now[i].st_dev == s->at[i].st_dev && now[i].st_ino == s->at[i].st_ino;
	same = same && now[0].st_size >= s->at[0].st_size; /* SQLite never makes it smaller */
	return same ? 0
		    : slu_fail(
			      err, -EBADMSG,
			      "%s or its -wal file was removed, replaced or cut while sluiced used it; "
			      "sluiced writes its state to the file that is there now",
			      s->path);
}

static int commit_transaction(struct slu_sql *q, struct slu_error *err)
{
	const struct sqlite *s = (const struct sqlite *)q;
	int rc = script(q, "COMMIT", err);

	return rc < 0 || !s->at[0].st_ino ? rc : check_files(s, err);
}

static void rollback(struct slu_sql *q)
{
	struct sqlite *s = (struct sqlite *)q;

	if (!sqlite3_get_autocommit(s->db))
		sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

static int prepared(struct sqlite *s, uint32_t n, sqlite3_stmt **out, struct slu_error *err)
{
	assert(n < s->q.n_stmts);
	if (!s->stmt[n] &&
	    sqlite3_prepare_v3(s->db, s->q.stmts[n].text, -1, SQLITE_PREPARE_PERSISTENT,
			       &s->stmt[n], NULL) != SQLITE_OK)
		return fail_sqlite(s, "prepare", err);
	*out = s->stmt[n];
	return 0;
}

static int bind(struct sqlite *s, sqlite3_stmt *st, const struct slu_sql_val *v, uint32_t n,
		struct slu_error *err)
{
	for (uint32_t i = 0; i < n; i++) {
		int k = (int)i + 1, rc;

		switch (v[i].type) {
		case SLU_SQL_INT:
			rc = sqlite3_bind_int64(st, k, v[i].i);
			break;
		case SLU_SQL_TEXT:
			rc = sqlite3_bind_text64(st, k, v[i].p, v[i].n, SQLITE_STATIC, SQLITE_UTF8);
			break;
		case SLU_SQL_BLOB:
			/* A NULL pointer would bind NULL; an empty blob is not NULL. */
			rc = sqlite3_bind_blob64(st, k, v[i].n ? v[i].p : "", v[i].n,
						 SQLITE_STATIC);
			break;
		default:
			rc = sqlite3_bind_null(st, k);
		}
		if (rc != SQLITE_OK)
			return fail_sqlite(s, "bind", err);
	}
	return 0;
}

static int put_row(sqlite3_stmt *st, slu_sql_row_fn *fn, void *arg, struct slu_error *err)
{
	struct slu_sql_val v[SLU_SQL_MAX_COLUMNS];
	int n = sqlite3_column_count(st);

	assert(n <= SLU_SQL_MAX_COLUMNS);
	for (int i = 0; i < n; i++) {
		v[i] = (struct slu_sql_val){ 0 };
		switch (sqlite3_column_type(st, i)) {
		case SQLITE_INTEGER:
			v[i] = slu_sql_int(sqlite3_column_int64(st, i));
			break;
		case SQLITE_TEXT:
			v[i].type = SLU_SQL_TEXT;
			v[i].p = sqlite3_column_text(st, i);
			v[i].n = (size_t)sqlite3_column_bytes(st, i);
			break;
		case SQLITE_BLOB:
			v[i].type = SLU_SQL_BLOB;
			v[i].p = sqlite3_column_blob(st, i);
			v[i].n = (size_t)sqlite3_column_bytes(st, i);
			break;
		default:
			break;
		}
	}
	return fn(arg, v, (uint32_t)n, err);
}

static int query(struct slu_sql *q, uint32_t stmt, const struct slu_sql_val *v, uint32_t n,
		 slu_sql_row_fn *fn, void *arg, int64_t *changed, struct slu_error *err)
{
	struct sqlite *s = (struct sqlite *)q;
	sqlite3_stmt *st = NULL;
	int rc = prepared(s, stmt, &st, err), step;

	if (!rc)
		rc = bind(s, st, v, n, err);
	if (rc < 0)
		return rc;
	while ((step = sqlite3_step(st)) == SQLITE_ROW && rc >= 0)
		if (fn)
			rc = put_row(st, fn, arg, err);
	if (rc >= 0 && step != SQLITE_DONE)
		rc = fail_sqlite(s, "store", err);
	if (rc >= 0 && changed)
		*changed = sqlite3_changes(s->db);
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return rc < 0 ? rc : 0;
}

static int run_statement(struct slu_sql *q, uint32_t stmt, const struct slu_sql_val *v, uint32_t n,
			 bool must_change, struct slu_error *err)
{
	int64_t changed = 0;
	int rc = query(q, stmt, v, n, NULL, NULL, &changed, err);

	if (!rc && must_change && changed != 1)
		return slu_fail(err, -ESTALE, "a newer leader has taken the store");
	return rc;
}

static int lock(struct slu_sql *q, struct slu_error *err)
{
	return 0; /* BEGIN IMMEDIATE holds the one write lock already */
}

static int one_int(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	*(int64_t *)arg = v[0].i;
	return 0;
}

static int adhoc(struct sqlite *s, const char *text, slu_sql_row_fn *fn, void *arg,
		 struct slu_error *err)
{
	sqlite3_stmt *st;
	int rc = 0, step;

	if (sqlite3_prepare_v2(s->db, text, -1, &st, NULL) != SQLITE_OK)
		return fail_sqlite(s, "store", err);
	while ((step = sqlite3_step(st)) == SQLITE_ROW && rc >= 0)
		rc = put_row(st, fn, arg, err);
	if (rc >= 0 && step != SQLITE_DONE)
		rc = fail_sqlite(s, "store", err);
	sqlite3_finalize(st);
	return rc;
}

static int version(struct slu_sql *q, int *out, struct slu_error *err)
{
	int64_t v = 0;
	int rc = adhoc((struct sqlite *)q, "PRAGMA user_version", one_int, &v, err);

	if (!rc)
		*out = (int)v;
	return rc;
}

static int want_ok(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	if (v[0].type == SLU_SQL_TEXT && strcmp(v[0].p, "ok") == 0)
		return 0;
	return slu_fail(
		err, -EBADMSG,
		"the file is damaged (%s); move it away, and sluiced rebuilds its state from the cluster",
		v[0].type == SLU_SQL_TEXT ? (const char *)v[0].p : "?");
}

static int check_database(struct slu_sql *q, struct slu_error *err)
{
	return adhoc((struct sqlite *)q, "PRAGMA integrity_check(1)", want_ok, NULL, err);
}

static const struct slu_sql_ops sqlite_ops = {
	.name = "sqlite",
	.close = close_db,
	.begin = begin_transaction,
	.commit = commit_transaction,
	.rollback = rollback,
	.run = run_statement,
	.query = query,
	.script = script,
	.lock = lock,
	.version = version,
	.check = check_database,
};

/* WAL needs shared memory between processes, which network file systems do not give. */
static int refuse_network(const char *path, struct slu_error *err)
{
	struct statfs fs;

	if (statfs(path, &fs) == 0 && (unsigned long)fs.f_type == NFS_MAGIC)
		return slu_fail(
			err, -EINVAL,
			"%s is on a network file system, where SQLite cannot keep its promises: use PostgreSQL",
			path);
	return 0;
}

/* The submitters of jobs are private: only the daemon may read a new file.  SQLite gives its companions
 * (-wal, -shm) the same mode.  If the file cannot be made here, SQLite explains why. */
static void make_private(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
}

int slu_sqlite_open(const char *path, bool readonly, const struct slu_sql_stmt *stmts, uint32_t n,
		    struct slu_sql **out, struct slu_error *err)
{
	int flags = readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
	struct sqlite *s = slu_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return -ENOMEM;
	s->q = (struct slu_sql){ &sqlite_ops, stmts, n };
	s->readonly = readonly;
	s->stmt = slu_calloc(n, sizeof(sqlite3_stmt *));
	s->path = slu_strdup(path);
	if (!s->stmt || !s->path) {
		slu_free(s->stmt);
		slu_free(s->path);
		slu_free(s);
		return -ENOMEM;
	}
	if (!readonly)
		make_private(path);
	if (sqlite3_open_v2(path, &s->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
		rc = fail_sqlite(s, path, err);
		close_db(&s->q);
		return rc;
	}
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, BUSY_MS);
	rc = refuse_network(path, err);
	if (!rc && !readonly)
		rc = script(&s->q,
			    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			    "PRAGMA secure_delete = OFF; PRAGMA foreign_keys = OFF",
			    err);
	if (!rc && !readonly)
		s->checkpoint = slu_checkpoint_new(s->db);
	/* Notice a cut-off or overwritten file before any of its rows is used. */
	if (!rc)
		rc = adhoc(s, "PRAGMA quick_check(1)", want_ok, NULL, err);
	if (rc < 0) {
		close_db(&s->q);
		return slu_fail_prefix(err, rc, "%s", path);
	}
	if (readonly || !find_files(s, s->at))
		s->at[0].st_ino = 0; /* nothing to compare with */
	*out = &s->q;
	return 0;
}
