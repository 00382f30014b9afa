/* store.h — what must outlive the process: jobs with their order and promises, intents, spans,
 * results, and the event log.  One interface over SQLite (a file) and PostgreSQL.
 *
 * The store is the truth about order, time and promises; the cluster is the truth about what runs.
 * The store interprets nothing of what it keeps: names, kinds, specifications and events are text
 * and bytes to it.
 *
 * A struct slu_store is owned by one thread and blocks; the daemon keeps it behind store/journal.h.
 * Strings handed to a callback are valid during the call only.
 *
 * Failures keep their kind:
 *	-EAGAIN   the database cannot be reached or is busy: try again later
 *	-ENOSPC   no room left        -EROFS   read-only
 *	-EBADMSG  damaged: a file that is no database, a row whose checksum is wrong
 *	-EPROTO   the schema is newer than this program
 *	-EXDEV    the store belongs to another cluster
 *	-ESTALE   fenced: a newer leader has taken the store
 */
#pragma once
#include "base/arena.h"
#include "base/vec.h"

struct slu_store;

enum slu_store_job_state {
	SLU_STORE_GATHERING, /* not all pods are there yet */
	SLU_STORE_WAITING,
	SLU_STORE_HELD,
	SLU_STORE_NEVER, /* cannot run on the machine as the machine is now */
	SLU_STORE_STARTING,
	SLU_STORE_RUNNING,
	SLU_STORE_ENDED,
};

struct slu_store_job {
	uint64_t id;
	const char *key; /* unique: uid of the object that makes the gang, or namespace/group */
	const char *space, *name; /* namespace and group name, as people know it */
	const char *object;       /* name of the queue object made for it (FluxJob), "" if none */
	const char *kind;         /* Pod, Job, Deployment, ... */
	const char *user, *queue;
	int64_t priority;
	int64_t first_seen_us; /* order within a priority; never changes */
	int64_t state;         /* enum slu_store_job_state */
	int64_t size, min_size, max_size, current_size;
	int64_t limit_s, begin_s, deadline_s;          /* 0 = none */
	int64_t planned_s, promised_s, start_s, end_s; /* 0 = none */
	const char *cause;                             /* of the present planned start */
	const char *spec; /* the whole request, JSON made by the queue's owner */
};

struct slu_store_pod {
	uint64_t job;
	const char *uid, *space, *name, *node; /* node "" until decided */
	int64_t role;
	int64_t seen_us;
};

/* One entry of the history of a planned start. */
struct slu_store_plan {
	uint64_t job;
	int64_t seq;       /* per job, ascending */
	int64_t at_us;     /* when the plan changed */
	int64_t planned_s; /* to what; 0 = no plan */
	const char *cause;
};

/* An advance reservation or a drain. */
struct slu_store_span {
	uint64_t id;
	const char *kind, *name;
	int64_t from_s, to_s;
	const char *spec;
};

enum slu_store_intent_state { SLU_INTENT_OPEN, SLU_INTENT_DONE, SLU_INTENT_UNDONE };

struct slu_store_intent {
	uint64_t id, job;
	int64_t term; /* of the leader that made it */
	int64_t made_us;
	int64_t state;    /* enum slu_store_intent_state */
	const char *verb; /* bind, release, ... */
};

struct slu_store_intent_pod {
	uint64_t intent;
	const char *uid, *space, *name, *node;
};

struct slu_store_result {
	uint64_t job;
	const char *key, *name, *user, *queue, *outcome;
	int64_t first_seen_us, start_s, end_s, size;
	int64_t usage; /* millicore seconds */
};

/* A row that begins a log is complete in itself; every other row builds on the one before it. */
enum slu_store_event_kind { SLU_STORE_EVENT_BEGIN = 1, SLU_STORE_EVENT_ROW };

struct slu_store_event {
	uint64_t seq; /* ascending; without gaps from one beginning to the next */
	int64_t at_us;
	int64_t kind; /* enum slu_store_event_kind */
	const void *data;
	size_t size;
};

/* ---- opening ---- */

enum slu_store_flags {
	SLU_STORE_READONLY = 1,
	SLU_STORE_MIGRATE = 2, /* bring the schema up to date, under a lock */
};

/* Keep other daemons from the same SQLite file for as long as the returned descriptor stays open: two
 * daemons would both decide.  Readers and `sluice store` are not kept out.  -EBUSY: another daemon has
 * the file; -ENOTSUP: the store is not SQLite (it fences by term), or its folder is read-only. */
int slu_store_claim(const char *url, struct slu_error *err);
/* `url`: a file path, "sqlite:PATH", or "postgres://..." / "postgresql://..." (empty host and user
 * come from the PG* variables).  Without SLU_STORE_MIGRATE an old schema is -EPROTO too. */
int slu_store_open(const char *url, unsigned flags, struct slu_store **out, struct slu_error *err);
void slu_store_close(struct slu_store *s);
SLU_DEFINE_CLEANUP(struct slu_store, slu_store_close)

/* "sqlite" or "postgresql". */
const char *slu_store_backend(const struct slu_store *s);
/* The newest schema this program knows. */
int slu_store_schema_version(void);
/* The schema version the store had before slu_store_open() updated it; 0: the store was empty. */
int slu_store_found_version(const struct slu_store *s);
/* A URL fit for a log line: the password, if there is one, reads ***.  Truncated to fit. */
void slu_store_url_shown(const char *url, char *out, size_t size);

/* Tie the store to a cluster (the uid of its kube-system namespace).  The first call writes it;
 * later ones with another value are -EXDEV. */
int slu_store_bind_cluster(struct slu_store *s, const char *cluster, struct slu_error *err);

/* Become leader number `term`; every later commit of an older term is -ESTALE, everywhere.
 * A term that is not above the stored one is -ESTALE here (the same holder may repeat its own). */
int slu_store_take_term(struct slu_store *s, int64_t term, const char *holder,
			struct slu_error *err);
/* Become leader with a term above `seen`, the stored term that slu_store_term() returned; -ESTALE if
 * the stored term has changed since. */
int slu_store_raise_term(struct slu_store *s, int64_t seen, const char *holder,
			 struct slu_error *err);
int slu_store_term(struct slu_store *s, int64_t *term, struct slu_error *err);

/* ---- writing: a batch is one transaction ---- */

struct slu_batch;
struct slu_batch *slu_batch_new(void);
void slu_batch_free(struct slu_batch *b);
SLU_DEFINE_CLEANUP(struct slu_batch, slu_batch_free)
uint32_t slu_batch_size(const struct slu_batch *b);

/* Each copies what it is given; -ENOMEM leaves the batch as it was.  A put writes the whole row,
 * new or not, so that a batch may be applied twice with the same outcome.  Of two rows of jobs with the same
 * key the one that was put last stays. */
int slu_batch_put_job(struct slu_batch *b, const struct slu_store_job *j);
int slu_batch_put_pod(struct slu_batch *b, const struct slu_store_pod *p);
int slu_batch_put_plan(struct slu_batch *b, const struct slu_store_plan *p);
int slu_batch_put_span(struct slu_batch *b, const struct slu_store_span *s);
int slu_batch_put_intent(struct slu_batch *b, const struct slu_store_intent *i);
int slu_batch_put_intent_pod(struct slu_batch *b, const struct slu_store_intent_pod *p);
int slu_batch_put_result(struct slu_batch *b, const struct slu_store_result *r);
int slu_batch_put_event(struct slu_batch *b, const struct slu_store_event *e);
int slu_batch_del_pod(struct slu_batch *b, uint64_t job, const char *uid);
int slu_batch_del_span(struct slu_batch *b, uint64_t id);
/* The job with its pods and plans; intents and results stay as history. */
int slu_batch_del_job(struct slu_batch *b, uint64_t id);
int slu_batch_del_pods(struct slu_batch *b, uint64_t job);
/* Delete everything that a restart needs: jobs, pods, plans, spans, open intents.  History stays. */
int slu_batch_clear(struct slu_batch *b);

/* All batches in one durable transaction, or nothing.  `term` 0 = not fenced (tools). */
int slu_store_commit(struct slu_store *s, int64_t term, struct slu_batch *const *b, uint32_t n,
		     struct slu_error *err);

/* ---- reading ---- */

/* Any callback may be NULL; a negative return stops the load and is handed back. */
struct slu_store_reader {
	int (*job)(void *arg, const struct slu_store_job *j);
	int (*pod)(void *arg, const struct slu_store_pod *p);
	int (*span)(void *arg, const struct slu_store_span *s);
	int (*intent)(void *arg, const struct slu_store_intent *i);
	int (*intent_pod)(void *arg, const struct slu_store_intent_pod *p);
	void *arg;
	int (*last_event)(void *arg, uint64_t seq); /* the highest number of an event; 0: none */
	/* The last 20 000 results, newest first; one that is damaged is left out. */
	int (*result)(void *arg, const struct slu_store_result *r);
};

/* Everything needed to go on: jobs in order (priority, first seen, name), then pods, spans, open
 * intents with their pods, the end of the event log, recent results.  Every row's checksum is
 * verified; -EBADMSG names the first bad row. */
int slu_store_load(struct slu_store *s, const struct slu_store_reader *r, struct slu_error *err);

typedef int slu_store_event_fn(void *arg, const struct slu_store_event *e);
typedef int slu_store_plan_fn(void *arg, const struct slu_store_plan *p);
typedef int slu_store_result_fn(void *arg, const struct slu_store_result *r);
/* Events from seq `from` on, ascending. */
int slu_store_events(struct slu_store *s, uint64_t from, slu_store_event_fn *fn, void *arg,
		     struct slu_error *err);
int slu_store_plans(struct slu_store *s, uint64_t job, slu_store_plan_fn *fn, void *arg,
		    struct slu_error *err);
int slu_store_results(struct slu_store *s, int64_t ended_after_s, slu_store_result_fn *fn,
		      void *arg, struct slu_error *err);
struct slu_store_usage {
	const char *user, *queue;
	int64_t jobs, used; /* millicore seconds */
};
typedef int slu_store_usage_fn(void *arg, const struct slu_store_usage *u);
/* Per user and queue, also of jobs whose results are no longer kept. */
int slu_store_usage(struct slu_store *s, slu_store_usage_fn *fn, void *arg, struct slu_error *err);
/* Number of the last row up to `at_us` that begins a log; 0: none. */
int slu_store_log_begin(struct slu_store *s, int64_t at_us, uint64_t *seq, struct slu_error *err);
/* Highest event number, 0 if none. */
int slu_store_last_event(struct slu_store *s, uint64_t *seq, struct slu_error *err);

/* ---- keeping house ---- */

/* Structure of the file, checksums of all rows, references; -EBADMSG with the first fault. */
int slu_store_check(struct slu_store *s, uint64_t *rows, struct slu_error *err);

/* Remove at most `step` events and as many results, plans and settled intents older than
 * `before_us`; results leave their sum in the usage table.  A log is removed as a whole, once the
 * next log began before `before_us`, and one log at a time, unless `log` says that the log under way
 * is worth nothing.  Returns the number of rows removed (0 = nothing left). */
int slu_store_prune(struct slu_store *s, int64_t before_us, uint32_t step, bool log,
		    struct slu_error *err);
/* Bytes the rows need, approximately. */
int slu_store_used(struct slu_store *s, int64_t *bytes, struct slu_error *err);
/* Rows in all tables. */
int slu_store_rows(struct slu_store *s, uint64_t *rows, struct slu_error *err);
/* Bytes the store occupies. */
int slu_store_bytes(struct slu_store *s, int64_t *bytes, struct slu_error *err);
