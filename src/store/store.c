#include "base/crash.h"
#include "store/batch_internal.h"
#include "store/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

struct slu_store {
	struct slu_sql *q;
	int found; /* schema version at opening */
};

static bool is_pg(const char *url)
{
	return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

/* libpq quotes a URL that it cannot read, with its password. */
static void hide_password(const char *url, struct slu_error *err)
{
	char *at = err ? strstr(err->text, url) : NULL, shown[256];
	struct slu_error told;

	if (!at || !strstr(url, "://"))
		return;
	slu_store_url_shown(url, shown, sizeof shown);
	told = *err;
	snprintf(at, sizeof err->text - (size_t)(at - err->text), "%s%s", shown,
		 told.text + (at - err->text) + strlen(url));
}

int slu_store_claim(const char *url, struct slu_error *err)
{
	const char *path = strncmp(url, "sqlite:", 7) == 0 ? url + 7 : url;
	char lock[PATH_MAX];
	int fd;

	if (is_pg(url) || !strcmp(url, "memory:"))
		return -ENOTSUP;
	if (snprintf(lock, sizeof lock, "%s-lock", path) >= (int)sizeof lock)
		return slu_fail(err, -ENAMETOOLONG, "%.100s...: the name is too long", path);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EROFS)
		return -ENOTSUP; /* the folder cannot be written; the store reports that itself */
	if (fd < 0)
		return slu_fail(err, -errno, "%s: %s", lock, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int rc = errno == EWOULDBLOCK ? -EBUSY : -errno;

		close(fd);
		return slu_fail(err, rc,
				"%s: another sluiced uses this store; stop it, or give this one a "
				"store of its own",
				path);
	}
	return fd;
}

int slu_store_open(const char *url, unsigned flags, struct slu_store **out, struct slu_error *err)
{
	bool readonly = flags & SLU_STORE_READONLY;
	struct slu_store *s;
	int rc;

	if (!is_pg(url) && strstr(url, "://")) {
		char shown[256];

		slu_store_url_shown(url, shown, sizeof shown);
		return slu_fail(err, -EINVAL,
				"store: \"%s\" is neither a file (SQLite) nor postgres://", shown);
	}
	s = slu_calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	if (is_pg(url))
		rc = slu_pg_open(url, readonly, slu_store_stmts, ST_COUNT, &s->q, err);
	else
		rc = slu_sqlite_open(strncmp(url, "sqlite:", 7) == 0 ? url + 7 : url, readonly,
				     slu_store_stmts, ST_COUNT, &s->q, err);
	if (!rc)
		rc = slu_schema_settle(s->q, flags & SLU_STORE_MIGRATE, &s->found, err);
	if (rc < 0) {
		hide_password(url, err);
		slu_store_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void slu_store_close(struct slu_store *s)
{
	if (!s)
		return;
	if (s->q)
		s->q->ops->close(s->q);
	slu_free(s);
}

const char *slu_store_backend(const struct slu_store *s)
{
	return s->q->ops->name;
}

int slu_store_found_version(const struct slu_store *s)
{
	return s->found;
}

struct slu_sql *slu_store_sql(struct slu_store *s)
{
	return s->q;
}

void slu_store_url_shown(const char *url, char *out, size_t size)
{
	const char *host = strstr(url, "://"), *at, *colon, *query;

	if (!host) {
		snprintf(out, size, "%s", url);
		return;
	}
	host += 3;
	/* The part behind '?' may hold a password as well, so leave it out. */
	query = strchr(host, '?');
	at = memchr(host, '@', query ? (size_t)(query - host) : strlen(host));
	colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
	if (colon)
		snprintf(out, size, "%.*s:***%.*s", (int)(colon - url), url,
			 (int)(query ? query - at : (long)strlen(at)), at);
	else
		snprintf(out, size, "%.*s", (int)(query ? query - url : (long)strlen(url)), url);
}

/* ---- one row out ---- */

static int first_int(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	*(int64_t *)arg = v[0].i;
	return 0;
}

struct meta {
	char cluster[256];
	int64_t term;
	bool seen;
};

static int read_meta(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct meta *m = arg;

	snprintf(m->cluster, sizeof m->cluster, "%s", v[0].p ? (const char *)v[0].p : "");
	m->term = v[1].i;
	m->seen = true;
	return 0;
}

static int meta(struct slu_store *s, struct meta *m, struct slu_error *err)
{
	int rc = s->q->ops->query(s->q, ST_META, NULL, 0, read_meta, m, NULL, err);

	if (!rc && !m->seen)
		return slu_fail(err, -EBADMSG,
				"the store has lost its head row (table meta is empty)");
	return rc;
}

int slu_store_bind_cluster(struct slu_store *s, const char *cluster, struct slu_error *err)
{
	struct slu_sql_val v = slu_sql_text(cluster);
	struct meta m = { 0 };
	int rc = meta(s, &m, err);

	if (rc < 0)
		return rc;
	if (!*m.cluster) {
		int64_t changed = 0;

		slu_crash_point("store cluster: before");
		rc = s->q->ops->query(s->q, ST_SET_CLUSTER, &v, 1, NULL, NULL, &changed, err);
		slu_crash_point("store cluster: after");
		if (!rc)
			rc = meta(s, &m, err);
		if (rc < 0)
			return rc;
	}
	if (strcmp(m.cluster, cluster) != 0)
		return slu_fail(
			err, -EXDEV,
			"this store belongs to cluster %s, not to %s: give each cluster its own store",
			m.cluster, cluster);
	return 0;
}

int slu_store_take_term(struct slu_store *s, int64_t term, const char *holder,
			struct slu_error *err)
{
	struct slu_sql_val v[] = { slu_sql_int(term), slu_sql_text(holder) };
	int64_t changed = 0;
	int rc;

	slu_crash_point("store term: before");
	rc = s->q->ops->query(s->q, ST_TAKE_TERM, v, 2, NULL, NULL, &changed, err);
	slu_crash_point("store term: after");
	if (!rc && changed != 1)
		return slu_fail(err, -ESTALE,
				"a leader with term %" PRId64 " or newer has taken the store",
				term);
	return rc;
}

int slu_store_raise_term(struct slu_store *s, int64_t seen, const char *holder,
			 struct slu_error *err)
{
	struct slu_sql_val v[] = { slu_sql_int(seen + 1), slu_sql_text(holder), slu_sql_int(seen) };
	int64_t changed = 0;
	int rc;

	slu_crash_point("store raised term: before");
	rc = s->q->ops->query(s->q, ST_RAISE_TERM, v, 3, NULL, NULL, &changed, err);
	slu_crash_point("store raised term: after");
	if (!rc && changed != 1)
		return slu_fail(err, -ESTALE, "a newer leader has taken the store");
	return rc;
}

int slu_store_term(struct slu_store *s, int64_t *term, struct slu_error *err)
{
	struct meta m = { 0 };
	int rc = meta(s, &m, err);

	if (!rc)
		*term = m.term;
	return rc;
}

/* ---- writing ---- */

#define I(x) slu_sql_int((int64_t)(x))

/* Keys are unique: the row takes its key away from any other row that has it.  Without that, batches that were
 * committed unheard and come again would meet the row of a later number of the same key. */
static int claim_key(struct slu_sql *q, const struct op *put, struct slu_error *err)
{
	const struct slu_sql_val v[] = { put->v[1], put->v[0] };

	return q->ops->run(q, ST_CLAIM_KEY, v, SLU_LEN(v), false, err);
}

static int commit_ops(struct slu_sql *q, int64_t term, struct slu_batch *const *b, uint32_t n,
		      struct slu_error *err)
{
	struct slu_sql_val fence = I(term);
	int rc = 0;

	/* The check of the term and what it protects are one transaction: a deposed leader cannot
	 * slip a write in between. */
	if (term)
		rc = q->ops->run(q, ST_FENCE, &fence, 1, true, err);
	for (uint32_t i = 0; i < n && !rc; i++)
		for (uint32_t k = 0; k < b[i]->ops.n && !rc; k++) {
			const struct op *op = &b[i]->ops.p[k];

			slu_crash_point("store write");
			if (op->stmt == ST_PUT_JOB)
				rc = claim_key(q, op, err);
			if (!rc)
				rc = q->ops->run(q, op->stmt, op->v, op->n, false, err);
		}
	if (rc < 0)
		return rc;
	slu_crash_point("store before commit");
	rc = q->ops->commit(q, err);
	slu_crash_point("store after commit");
	return rc;
}

int slu_store_commit(struct slu_store *s, int64_t term, struct slu_batch *const *b, uint32_t n,
		     struct slu_error *err)
{
	int rc;

	slu_crash_point("store begin");
	rc = s->q->ops->begin(s->q, err);
	if (rc < 0)
		return rc;
	rc = commit_ops(s->q, term, b, n, err);
	if (rc < 0)
		s->q->ops->rollback(s->q);
	return rc;
}

/* ---- reading ---- */

/* The checksum of a row, its columns and then the sum itself. */
static int proven(const char *table, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].type == SLU_SQL_NULL)
			return slu_fail(err, -EBADMSG, "table %s: a row with an empty column",
					table);
	if (v[n - 1].i != slu_store_sum(v, n - 1))
		return slu_fail(
			err, -EBADMSG,
			"table %s: row %" PRId64
			" is damaged (checksum); move the store away, and sluiced rebuilds its state from the cluster",
			table, v[0].i);
	return 0;
}

struct load {
	const struct slu_store_reader *r;
};

static int load_job(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	const struct slu_store_reader *r = ((struct load *)arg)->r;
	struct slu_store_job j;
	int rc = proven("jobs", v, n, err);

	if (rc < 0)
		return rc;
	j = (struct slu_store_job){
		.id = (uint64_t)v[0].i,
		.key = v[1].p,
		.space = v[2].p,
		.name = v[3].p,
		.object = v[4].p,
		.kind = v[5].p,
		.user = v[6].p,
		.queue = v[7].p,
		.priority = v[8].i,
		.first_seen_us = v[9].i,
		.state = v[10].i,
		.size = v[11].i,
		.min_size = v[12].i,
		.max_size = v[13].i,
		.current_size = v[14].i,
		.limit_s = v[15].i,
		.begin_s = v[16].i,
		.deadline_s = v[17].i,
		.planned_s = v[18].i,
		.promised_s = v[19].i,
		.start_s = v[20].i,
		.end_s = v[21].i,
		.cause = v[22].p,
		.spec = v[23].p,
	};
	return r->job(r->arg, &j);
}

static int load_pod(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	const struct slu_store_reader *r = ((struct load *)arg)->r;
	int rc = proven("pods", v, n, err);

	return rc ? rc
		  : r->pod(r->arg, &(struct slu_store_pod){ (uint64_t)v[0].i, v[1].p, v[2].p,
							    v[3].p, v[4].p, v[5].i, v[6].i });
}

static int load_span(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	const struct slu_store_reader *r = ((struct load *)arg)->r;
	int rc = proven("spans", v, n, err);

	return rc ? rc
		  : r->span(r->arg, &(struct slu_store_span){ (uint64_t)v[0].i, v[1].p, v[2].p,
							      v[3].i, v[4].i, v[5].p });
}

static int load_intent(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	const struct slu_store_reader *r = ((struct load *)arg)->r;
	int rc = proven("intents", v, n, err);

	return rc ? rc
		  : r->intent(r->arg,
			      &(struct slu_store_intent){ (uint64_t)v[0].i, (uint64_t)v[1].i,
							  v[2].i, v[3].i, v[4].i, v[5].p });
}

static int load_intent_pod(void *arg, const struct slu_sql_val *v, uint32_t n,
			   struct slu_error *err)
{
	const struct slu_store_reader *r = ((struct load *)arg)->r;
	int rc = proven("intent_pods", v, n, err);

	return rc ? rc
		  : r->intent_pod(r->arg, &(struct slu_store_intent_pod){ (uint64_t)v[0].i, v[1].p,
									  v[2].p, v[3].p, v[4].p });
}

struct results {
	slu_store_result_fn *fn;
	void *arg;
};

static int load_result(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct results *p = arg;
	int rc = proven("results", v, n, err);

	return rc ? rc
		  : p->fn(p->arg, &(struct slu_store_result){ .job = (uint64_t)v[0].i,
							      .key = v[1].p,
							      .name = v[2].p,
							      .user = v[3].p,
							      .queue = v[4].p,
							      .outcome = v[5].p,
							      .first_seen_us = v[6].i,
							      .start_s = v[7].i,
							      .end_s = v[8].i,
							      .size = v[9].i,
							      .usage = v[10].i });
}

/* Damaged history must not keep the daemon from starting. */
static int load_recent(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	const struct slu_store_reader *r = ((struct load *)arg)->r;
	struct results p = { r->result, r->arg };

	return proven("results", v, n, NULL) < 0 ? 0 : load_result(&p, v, n, err);
}

int slu_store_load(struct slu_store *s, const struct slu_store_reader *r, struct slu_error *err)
{
	const struct {
		bool wanted;
		enum slu_store_stmt stmt;
		slu_sql_row_fn *fn;
	} part[] = {
		{ r->job, ST_LIVE_JOBS, load_job },
		{ r->pod, ST_LIVE_PODS, load_pod },
		{ r->span, ST_ALL_SPANS, load_span },
		{ r->intent, ST_OPEN_INTENTS, load_intent },
		{ r->intent_pod, ST_OPEN_INTENT_PODS, load_intent_pod },
		{ r->result, ST_RECENT_RESULTS, load_recent },
	};
	struct load l = { r };
	int rc = s->q->ops->begin(s->q, err);

	/* One transaction: jobs, pods and intents of the same moment. */
	for (size_t i = 0; i < SLU_LEN(part) && !rc; i++)
		if (part[i].wanted)
			rc = s->q->ops->query(s->q, part[i].stmt, NULL, 0, part[i].fn, &l, NULL,
					      err);
	if (!rc && r->last_event) {
		uint64_t seq = 0;

		rc = slu_store_last_event(s, &seq, err);
		if (!rc)
			rc = r->last_event(r->arg, seq);
	}
	s->q->ops->rollback(s->q);
	return rc;
}

struct events {
	slu_store_event_fn *fn;
	void *arg;
};

static int load_event(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct events *e = arg;
	int rc = proven("events", v, n, err);

	return rc ? rc
		  : e->fn(e->arg, &(struct slu_store_event){ (uint64_t)v[0].i, v[1].i, v[2].i,
							     v[3].p, v[3].n });
}

int slu_store_events(struct slu_store *s, uint64_t from, slu_store_event_fn *fn, void *arg,
		     struct slu_error *err)
{
	struct slu_sql_val v = I(from);
	struct events e = { fn, arg };

	return s->q->ops->query(s->q, ST_EVENTS_FROM, &v, 1, load_event, &e, NULL, err);
}

struct plans {
	slu_store_plan_fn *fn;
	void *arg;
};

static int load_plan(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct plans *p = arg;
	int rc = proven("plans", v, n, err);

	return rc ? rc
		  : p->fn(p->arg, &(struct slu_store_plan){ (uint64_t)v[0].i, v[1].i, v[2].i,
							    v[3].i, v[4].p });
}

int slu_store_plans(struct slu_store *s, uint64_t job, slu_store_plan_fn *fn, void *arg,
		    struct slu_error *err)
{
	struct slu_sql_val v = I(job);
	struct plans p = { fn, arg };

	return s->q->ops->query(s->q, ST_PLANS_OF, &v, 1, load_plan, &p, NULL, err);
}

int slu_store_results(struct slu_store *s, int64_t ended_after_s, slu_store_result_fn *fn,
		      void *arg, struct slu_error *err)
{
	struct slu_sql_val v = I(ended_after_s);
	struct results p = { fn, arg };

	return s->q->ops->query(s->q, ST_RESULTS_AFTER, &v, 1, load_result, &p, NULL, err);
}

struct usages {
	slu_store_usage_fn *fn;
	void *arg;
};

static int load_usage(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct usages *u = arg;

	return u->fn(u->arg, &(struct slu_store_usage){ v[0].p, v[1].p, v[2].i, v[3].i });
}

int slu_store_usage(struct slu_store *s, slu_store_usage_fn *fn, void *arg, struct slu_error *err)
{
	struct usages u = { fn, arg };

	return s->q->ops->query(s->q, ST_USAGE, NULL, 0, load_usage, &u, NULL, err);
}

int slu_store_log_begin(struct slu_store *s, int64_t at_us, uint64_t *seq, struct slu_error *err)
{
	struct slu_sql_val v = I(at_us);
	int64_t n = 0;
	int rc = s->q->ops->query(s->q, ST_LOG_BEGIN, &v, 1, first_int, &n, NULL, err);

	if (!rc)
		*seq = (uint64_t)n;
	return rc;
}

int slu_store_last_event(struct slu_store *s, uint64_t *seq, struct slu_error *err)
{
	int64_t v = 0;
	int rc = s->q->ops->query(s->q, ST_LAST_EVENT, NULL, 0, first_int, &v, NULL, err);

	if (!rc)
		*seq = (uint64_t)v;
	return rc;
}

/* ---- keeping house ---- */

struct checking {
	const char *table;
	bool sum;
	uint64_t rows;
};

static int check_row(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	struct checking *c = arg;

	c->rows++;
	return c->sum ? proven(c->table, v, n, err) : 0;
}

static int check_orphans(void *arg, const struct slu_sql_val *v, uint32_t n, struct slu_error *err)
{
	static const char *const what[] = { "pods without a job", "intent pods without an intent",
					    "plans without a job" };

	for (uint32_t i = 0; i < n; i++)
		if (v[i].i)
			return slu_fail(err, -EBADMSG, "%" PRId64 " %s", v[i].i, what[i]);
	return 0;
}

int slu_store_check(struct slu_store *s, uint64_t *rows, struct slu_error *err)
{
	struct checking c = { 0 };
	int rc = s->q->ops->check(s->q, err);

	for (uint32_t i = 0; i < SLU_STORE_TABLES && !rc; i++) {
		c.table = slu_store_tables[i].name;
		c.sum = slu_store_tables[i].sum;
		rc = s->q->ops->query(s->q, slu_store_tables[i].all, NULL, 0, check_row, &c, NULL,
				      err);
	}
	if (!rc)
		rc = s->q->ops->query(s->q, ST_ORPHANS, NULL, 0, check_orphans, NULL, NULL, err);
	if (!rc && rows)
		*rows = c.rows;
	return rc;
}

int slu_store_prune(struct slu_store *s, int64_t before_us, uint32_t step, bool log,
		    struct slu_error *err)
{
	const struct {
		enum slu_store_stmt stmt;
		bool seconds, counts;
	} part[] = {
		{ log ? ST_PRUNE_LOG : ST_PRUNE_EVENTS, false, true },
		{ ST_PRUNE_PLANS, false, true },
		{ ST_PRUNE_INTENT_PODS, false, false },
		{ ST_PRUNE_INTENTS, false, true },
		{ ST_ROLL_UP, true, false },
		{ ST_PRUNE_RESULTS, true, true },
	};
	int64_t gone = 0;
	int rc = s->q->ops->begin(s->q, err);

	for (size_t i = 0; i < SLU_LEN(part) && !rc; i++) {
		struct slu_sql_val v[] = { I(part[i].seconds ? before_us / 1000000 : before_us),
					   I(step) };
		int64_t changed = 0;

		rc = s->q->ops->query(s->q, part[i].stmt, v, 2, NULL, NULL, &changed, err);
		if (part[i].counts)
			gone += changed;
	}
	slu_crash_point("store prune: before commit");
	if (!rc)
		rc = s->q->ops->commit(s->q, err);
	slu_crash_point("store prune: after commit");
	if (rc < 0) {
		s->q->ops->rollback(s->q);
		return rc;
	}
	return (int)SLU_MIN(gone, (int64_t)INT32_MAX);
}

int slu_store_used(struct slu_store *s, int64_t *bytes, struct slu_error *err)
{
	return s->q->ops->query(s->q, ST_USED, NULL, 0, first_int, bytes, NULL, err);
}

int slu_store_rows(struct slu_store *s, uint64_t *rows, struct slu_error *err)
{
	int64_t n = 0;
	int rc = s->q->ops->query(s->q, ST_ROWS, NULL, 0, first_int, &n, NULL, err);

	if (!rc)
		*rows = (uint64_t)n;
	return rc;
}

int slu_store_bytes(struct slu_store *s, int64_t *bytes, struct slu_error *err)
{
	return s->q->ops->query(s->q, ST_BYTES, NULL, 0, first_int, bytes, NULL, err);
}
