#include "store/sql_internal.h"

#include <libpq-fe.h>
#include <stdio.h>

#define CONNECT_TIMEOUT_S "5"
/* A leader that is frozen in the middle of a transaction holds the row of the term, so the
 * server must end the transaction for another replica to take over. */
#define WRITER                                                 \
	"-c synchronous_commit=on -c statement_timeout=30000 " \
	"-c idle_in_transaction_session_timeout=3000"
#define READER "-c default_transaction_read_only=on"
/* Answers are collected after so many queued statements, so that neither side's buffer fills up
 * while both are writing. */
#define PIPELINE_DEPTH 256
/* An advisory lock of our own: the bytes "sluice". */
#define LOCK_SCHEMA "SELECT pg_advisory_xact_lock(126943969174373)"

/* The programs that Sluice replaces have tables with the names of our views.  If they were there,
 * Sluice lives beside them in a schema of its own, even after they are gone. */
#define LIVE_BESIDE                                                                      \
	"SELECT to_regclass('sluice_schema') IS NULL AND EXISTS (SELECT FROM pg_class c" \
	" JOIN pg_namespace n ON n.oid = c.relnamespace WHERE"                           \
	" (n.nspname = 'sluice' AND c.relname = 'sluice_schema') OR"                     \
	" (n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND c.relname IN"    \
	" ('pending_queue', 'reservations', 'pods_provisional', 'groups_provisional')))"
#define MAKE_OWN "CREATE SCHEMA IF NOT EXISTS sluice"
#define USE_OWN  " -c search_path=sluice"

struct pg {
	struct slu_sql q;
	PGconn *c;
	bool beside; /* in a schema of our own, beside tables of others */
	bool *prepared;
	uint32_t queued; /* statements sent whose results were not read, and what they must be */
	enum expected { ANY, ONE_ROW, COMMITTED } expected[PIPELINE_DEPTH];
	bool in_transaction;
};

static int code_of(struct pg *s, const PGresult *r)
{
	const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;

	if (PQstatus(s->c) != CONNECTION_OK || !state)
		return -EAGAIN;
	if (strcmp(state, "53100") == 0)
		return -ENOSPC;
	if (strcmp(state, "25006") == 0)
		return -EROFS;
	/* 08 connection, 40 serialization or deadlock, 53 resources, 55 locks, 57 operator
	 * intervention */
	if (!strncmp(state, "08", 2) || !strncmp(state, "40", 2) || !strncmp(state, "53", 2) ||
	    !strncmp(state, "55", 2) || !strncmp(state, "57", 2))
		return -EAGAIN;
	if (!strncmp(state, "XX", 2))
		return -EBADMSG;
	return -EIO;
}

/* The first line of libpq's message; it ends in a newline and may carry more. */
static int fail_libpq(struct pg *s, const PGresult *r, struct slu_error *err)
{
	const char *msg = r ? PQresultErrorMessage(r) : PQerrorMessage(s->c);
	int n = (int)strcspn(msg, "\n");

	return slu_fail(err, code_of(s, r), "postgresql: %.*s", n, n ? msg : "connection lost");
}

static void close_db(struct slu_sql *q)
{
	struct pg *s = (struct pg *)q;

	PQfinish(s->c);
	slu_free(s->prepared);
	slu_free(s);
}

/* Whether an answer is what its statement needs. */
static int judge(struct pg *s, PGresult *r, enum expected expected, struct slu_error *err)
{
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	ExecStatusType st = PQresultStatus(r);

	/* The fence divides by the number of rows it found, so it fails on the server before the
	 * statements sent after it are executed. */
	if (expected == ONE_ROW && state && strcmp(state, "22012") == 0)
		return slu_fail(err, -ESTALE, "a newer leader has taken the store");
	if (st != PGRES_COMMAND_OK && st != PGRES_TUPLES_OK)
		return fail_libpq(s, r, err);
	/* The server answers COMMIT of a failed transaction with ROLLBACK and reports success. */
	if (expected == COMMITTED && strcmp(PQcmdStatus(r), "COMMIT") != 0)
		return slu_fail(err, -EAGAIN, "postgresql: the transaction was rolled back");
	return 0;
}

/* Read the answers of everything queued. */
static int read_answers(struct pg *s, struct slu_error *err)
{
	uint32_t got = 0;
	int rc = 0;

	if (!s->queued)
		return 0;
	if (!PQpipelineSync(s->c))
		return fail_libpq(s, NULL, err);
	for (;;) {
		PGresult *r = PQgetResult(s->c);
		ExecStatusType st;

		if (!r) {
			if (PQstatus(s->c) != CONNECTION_OK) {
				s->queued = 0;
				return rc < 0 ? rc : fail_libpq(s, NULL, err);
			}
			continue; /* the end of one statement's results */
		}
		st = PQresultStatus(r);
		if (st == PGRES_PIPELINE_SYNC) {
			PQclear(r);
			break;
		}
		if (!rc)
			rc = judge(s, r, s->expected[got], err);
		got++;
		PQclear(r);
	}
	s->queued = 0;
	return rc;
}

static int leave_pipeline(struct pg *s, struct slu_error *err)
{
	int rc = read_answers(s, err);

	if (PQpipelineStatus(s->c) != PQ_PIPELINE_OFF && !PQexitPipelineMode(s->c) && !rc)
		rc = fail_libpq(s, NULL, err);
	return rc;
}

static int plain(struct pg *s, const char *text, struct slu_error *err)
{
	int rc = leave_pipeline(s, err);
	PGresult *r;

	if (rc < 0)
		return rc;
	r = PQexec(s->c, text);
	rc = judge(s, r, ANY, err);
	PQclear(r);
	return rc;
}

static int enter_pipeline(struct pg *s, struct slu_error *err)
{
	if (PQpipelineStatus(s->c) == PQ_PIPELINE_OFF && !PQenterPipelineMode(s->c))
		return fail_libpq(s, NULL, err);
	return 0;
}

static int queued(struct pg *s, int sent, enum expected expected, struct slu_error *err)
{
	if (!sent)
		return fail_libpq(s, NULL, err);
	s->expected[s->queued++] = expected;
	return s->queued == PIPELINE_DEPTH ? read_answers(s, err) : 0;
}

static int begin_transaction(struct slu_sql *q, struct slu_error *err)
{
	struct pg *s = (struct pg *)q;
	int rc;

	/* Open a broken connection again here, so that the daemon need not restart. */
	if (PQstatus(s->c) != CONNECTION_OK) {
		PQreset(s->c);
		memset(s->prepared, 0, s->q.n_stmts * sizeof *s->prepared);
		s->queued = 0;
		if (PQstatus(s->c) != CONNECTION_OK)
			return fail_libpq(s, NULL, err);
	}
	/* BEGIN is sent with the first statements, so a transaction is one round trip. */
	rc = enter_pipeline(s, err);
	if (!rc)
		rc = queued(s, PQsendQueryParams(s->c, "BEGIN", 0, NULL, NULL, NULL, NULL, 0), ANY,
			    err);
	s->in_transaction = rc == 0;
	return rc;
}

static int commit_transaction(struct slu_sql *q, struct slu_error *err)
{
	struct pg *s = (struct pg *)q;
	int rc = enter_pipeline(s, err);

	/* After a statement that failed the server executes nothing up to the end of the
	 * pipeline. */
	if (!rc)
		rc = queued(s, PQsendQueryParams(s->c, "COMMIT", 0, NULL, NULL, NULL, NULL, 0),
			    COMMITTED, err);
	if (!rc)
		rc = read_answers(s, err);
	if (!rc)
		s->in_transaction = false;
	return rc;
}

static void rollback(struct slu_sql *q)
{
	struct pg *s = (struct pg *)q;

	if (!s->in_transaction)
		return;
	read_answers(s, NULL);
	plain(s, "ROLLBACK", NULL);
	s->in_transaction = false;
}

static int prepare(struct pg *s, uint32_t n, char name[static 16], struct slu_error *err)
{
	const struct slu_sql_stmt *st = &s->q.stmts[n];
	PGresult *r;
	int rc = 0;

	assert(n < s->q.n_stmts);
	snprintf(name, 16, "s%u", n);
	if (s->prepared[n])
		return 0;
	/* Preparing a statement needs an answer of its own. */
	rc = leave_pipeline(s, err);
	if (rc < 0)
		return rc;
	r = PQprepare(s->c, name, st->pg ? st->pg : st->text, 0, NULL);
	if (PQresultStatus(r) != PGRES_COMMAND_OK)
		rc = fail_libpq(s, r, err);
	PQclear(r);
	if (!rc)
		s->prepared[n] = true;
	return rc;
}

/* Parameters as libpq wants them: numbers as text, blobs as they are. */
struct params {
	const char *p[SLU_SQL_MAX_COLUMNS];
	int len[SLU_SQL_MAX_COLUMNS], format[SLU_SQL_MAX_COLUMNS];
	char digits[SLU_SQL_MAX_COLUMNS][24];
};

static void fill_params(struct params *a, const struct slu_sql_val *v, uint32_t n)
{
	assert(n <= SLU_SQL_MAX_COLUMNS);
	for (uint32_t i = 0; i < n; i++) {
		a->format[i] = 0;
		a->len[i] = 0;
		switch (v[i].type) {
		case SLU_SQL_INT:
			snprintf(a->digits[i], sizeof a->digits[i], "%" PRId64, v[i].i);
			a->p[i] = a->digits[i];
			break;
		case SLU_SQL_TEXT:
			a->p[i] = v[i].p;
			break;
		case SLU_SQL_BLOB:
			a->p[i] = v[i].n ? v[i].p : "";
			a->len[i] = (int)v[i].n;
			a->format[i] = 1;
			break;
		default:
			a->p[i] = NULL;
		}
	}
}

static int run_statement(struct slu_sql *q, uint32_t stmt, const struct slu_sql_val *v, uint32_t n,
			 bool must_change, struct slu_error *err)
{
	struct pg *s = (struct pg *)q;
	struct params a;
	char name[16];
	int rc = prepare(s, stmt, name, err);

	if (!rc)
		rc = enter_pipeline(s, err);
	if (rc < 0)
		return rc;
	fill_params(&a, v, n);
	return queued(s, PQsendQueryPrepared(s->c, name, (int)n, a.p, a.len, a.format, 0),
		      must_change ? ONE_ROW : ANY, err);
}

enum { OID_INT8 = 20, OID_INT4 = 23, OID_BYTEA = 17, OID_BOOL = 16 };

static int put_row(PGresult *r, int at, slu_sql_row_fn *fn, void *arg, struct slu_error *err)
{
	struct slu_sql_val v[SLU_SQL_MAX_COLUMNS];
	void *blob[SLU_SQL_MAX_COLUMNS];
	int n = PQnfields(r), blobs = 0, rc;

	assert(n <= SLU_SQL_MAX_COLUMNS);
	for (int i = 0; i < n; i++) {
		v[i] = (struct slu_sql_val){ 0 };
		if (PQgetisnull(r, at, i))
			continue;
		switch (PQftype(r, i)) {
		case OID_INT8:
		case OID_INT4:
			v[i] = slu_sql_int(strtoll(PQgetvalue(r, at, i), NULL, 10));
			break;
		case OID_BYTEA:
			v[i].type = SLU_SQL_BLOB;
			v[i].p = blob[blobs] = PQunescapeBytea(
				(unsigned char *)PQgetvalue(r, at, i), &v[i].n);
			if (v[i].p)
				blobs++;
			break;
		default:
			v[i].type = SLU_SQL_TEXT;
			v[i].p = PQgetvalue(r, at, i);
			v[i].n = (size_t)PQgetlength(r, at, i);
		}
	}
	rc = fn(arg, v, (uint32_t)n, err);
	while (blobs)
		PQfreemem(blob[--blobs]);
	return rc;
}

static int query(struct slu_sql *q, uint32_t stmt, const struct slu_sql_val *v, uint32_t n,
		 slu_sql_row_fn *fn, void *arg, int64_t *changed, struct slu_error *err)
{
	struct pg *s = (struct pg *)q;
	struct params a;
	char name[16];
	PGresult *r;
	int rc = prepare(s, stmt, name, err);

	if (!rc)
		rc = leave_pipeline(s, err);
	if (rc < 0)
		return rc;
	fill_params(&a, v, n);
	/* Read one row at a time, so that a hundred thousand jobs are never in memory twice. */
	if (!PQsendQueryPrepared(s->c, name, (int)n, a.p, a.len, a.format, 0) ||
	    !PQsetSingleRowMode(s->c))
		return fail_libpq(s, NULL, err);
	while ((r = PQgetResult(s->c))) {
		ExecStatusType st = PQresultStatus(r);

		if (st == PGRES_SINGLE_TUPLE && !rc && fn)
			rc = put_row(r, 0, fn, arg, err);
		else if (!rc && st != PGRES_SINGLE_TUPLE && st != PGRES_TUPLES_OK &&
			 st != PGRES_COMMAND_OK)
			rc = fail_libpq(s, r, err);
		if (changed && st != PGRES_SINGLE_TUPLE)
			*changed = strtoll(PQcmdTuples(r), NULL, 10);
		PQclear(r);
	}
	if (!rc && PQstatus(s->c) != CONNECTION_OK)
		rc = fail_libpq(s, NULL, err);
	return rc;
}

static int script(struct slu_sql *q, const char *text, struct slu_error *err)
{
	return plain((struct pg *)q, text, err);
}

static int lock(struct slu_sql *q, struct slu_error *err)
{
	struct pg *s = (struct pg *)q;
	int rc = plain(s, LOCK_SCHEMA, err);

	return !rc && s->beside ? plain(s, MAKE_OWN, err) : rc;
}

static int version(struct slu_sql *q, int *out, struct slu_error *err)
{
	struct pg *s = (struct pg *)q;
	int rc = leave_pipeline(s, err);
	PGresult *r;

	if (rc < 0)
		return rc;
	r = PQexec(s->c, "SELECT to_regclass('sluice_schema') IS NOT NULL");
	if (PQresultStatus(r) != PGRES_TUPLES_OK)
		rc = fail_libpq(s, r, err);
	else if (strcmp(PQgetvalue(r, 0, 0), "t") != 0)
		*out = 0;
	else {
		PQclear(r);
		r = PQexec(s->c, "SELECT version FROM sluice_schema");
		if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
			rc = fail_libpq(s, r, err);
		else
			*out = atoi(PQgetvalue(r, 0, 0));
	}
	PQclear(r);
	return rc;
}

static int check_database(struct slu_sql *q, struct slu_error *err)
{
	return 0; /* the server checks its own pages; rows are checked by store.c */
}

static const struct slu_sql_ops pg_ops = {
	.name = "postgresql",
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

static void quiet(void *arg, const char *msg)
{
}

/* A connection to the database; `own`: to our schema in it, also after a PQreset(). */
static int dial(struct pg *s, const char *url, bool readonly, bool own, struct slu_error *err)
{
	static const char *const key[] = { "dbname",          "fallback_application_name",
					   "connect_timeout", "options",
					   "keepalives_idle", NULL };
	static const char *const options[2][2] = { { WRITER, WRITER USE_OWN },
						   { READER, READER USE_OWN } };
	const char *const val[] = { url,  "sluice", CONNECT_TIMEOUT_S, options[readonly][own],
				    "30", NULL };

	PQfinish(s->c);
	s->c = PQconnectdbParams(key, val, 1);
	if (PQstatus(s->c) != CONNECTION_OK)
		return fail_libpq(s, NULL, err);
	PQsetNoticeProcessor(s->c, quiet, NULL);
	if (PQserverVersion(s->c) < 150000)
		return slu_fail(err, -EPROTO, "postgresql: server version %d is older than 15",
				PQserverVersion(s->c) / 10000);
	return 0;
}

static int look_beside(struct pg *s, struct slu_error *err)
{
	PGresult *r = PQexec(s->c, LIVE_BESIDE);
	int rc = PQresultStatus(r) == PGRES_TUPLES_OK ? 0 : fail_libpq(s, r, err);

	if (!rc)
		s->beside = strcmp(PQgetvalue(r, 0, 0), "t") == 0;
	PQclear(r);
	return rc;
}

int slu_pg_open(const char *url, bool readonly, const struct slu_sql_stmt *stmts, uint32_t n,
		struct slu_sql **out, struct slu_error *err)
{
	struct pg *s = slu_calloc(1, sizeof *s);
	int rc;

	if (!s)
		return -ENOMEM;
	s->q = (struct slu_sql){ &pg_ops, stmts, n };
	s->prepared = slu_calloc(n, sizeof *s->prepared);
	if (!s->prepared) {
		slu_free(s);
		return -ENOMEM;
	}
	rc = dial(s, url, readonly, false, err);
	if (!rc)
		rc = look_beside(s, err);
	if (!rc && s->beside)
		rc = dial(s, url, readonly, true, err);
	if (rc < 0) {
		close_db(&s->q);
		return rc;
	}
	*out = &s->q;
	return 0;
}
