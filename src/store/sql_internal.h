/* sql_internal.h — the little of SQL that the two databases share: prepared statements by number, typed
 * values, transactions.  Private to store/. */
#pragma once
#include "store/store.h"

enum slu_sql_type { SLU_SQL_NULL, SLU_SQL_INT, SLU_SQL_TEXT, SLU_SQL_BLOB };

struct slu_sql_val {
	enum slu_sql_type type;
	int64_t i;
	const void *p; /* TEXT is NUL-terminated besides */
	size_t n;
};

#define SLU_SQL_MAX_COLUMNS 32

/* A row; values are valid during the call. */
typedef int slu_sql_row_fn(void *arg, const struct slu_sql_val *v, uint32_t n,
			   struct slu_error *err);

/* Statement texts: parameters are $1, $2, ... in order of first appearance, which both understand.
 */
struct slu_sql_stmt {
	const char *text;
	const char *pg; /* where PostgreSQL words it differently, else NULL */
};

struct slu_sql;

struct slu_sql_ops {
	const char *name;
	void (*close)(struct slu_sql *q);
	int (*begin)(struct slu_sql *q, struct slu_error *err);
	int (*commit)(struct slu_sql *q, struct slu_error *err);
	/* Never fails visibly; a lost connection is a rollback as well. */
	void (*rollback)(struct slu_sql *q);
	/* Run a statement without rows.  Inside a transaction it may be queued: its failure can
	 * then show at commit, which then does nothing.  `must_change`, for ST_FENCE alone: -ESTALE
	 * unless it changed a row. */
	int (*run)(struct slu_sql *q, uint32_t stmt, const struct slu_sql_val *v, uint32_t n,
		   bool must_change, struct slu_error *err);
	int (*query)(struct slu_sql *q, uint32_t stmt, const struct slu_sql_val *v, uint32_t n,
		     slu_sql_row_fn *fn, void *arg, int64_t *changed, struct slu_error *err);
	/* Fixed text of several statements: schema steps. */
	int (*script)(struct slu_sql *q, const char *text, struct slu_error *err);
	/* Keep writers of other processes out until the transaction ends. */
	int (*lock)(struct slu_sql *q, struct slu_error *err);
	/* Present schema version, 0 for an empty database. */
	int (*version)(struct slu_sql *q, int *version, struct slu_error *err);
	int (*check)(struct slu_sql *q, struct slu_error *err);
};

/* The first members of both drivers' structs. */
struct slu_sql {
	const struct slu_sql_ops *ops;
	const struct slu_sql_stmt *stmts;
	uint32_t n_stmts;
};

int slu_sqlite_open(const char *path, bool readonly, const struct slu_sql_stmt *stmts, uint32_t n,
		    struct slu_sql **out, struct slu_error *err);
int slu_pg_open(const char *url, bool readonly, const struct slu_sql_stmt *stmts, uint32_t n,
		struct slu_sql **out, struct slu_error *err);

static inline struct slu_sql_val slu_sql_int(int64_t i)
{
	return (struct slu_sql_val){ .type = SLU_SQL_INT, .i = i };
}
static inline struct slu_sql_val slu_sql_text(const char *s)
{
	return (struct slu_sql_val){ .type = SLU_SQL_TEXT, .p = s, .n = strlen(s) };
}
static inline struct slu_sql_val slu_sql_blob(const void *p, size_t n)
{
	return (struct slu_sql_val){ .type = SLU_SQL_BLOB, .p = p, .n = n };
}
