/* statement.h — every SQL statement the store runs, by number.  Texts are fixed: nothing is ever
 * assembled at run time. */
#pragma once
#include "store/sql_internal.h"

enum slu_store_stmt {
	ST_PUT_JOB,
	ST_PUT_POD,
	ST_PUT_PLAN,
	ST_PUT_SPAN,
	ST_PUT_INTENT,
	ST_PUT_INTENT_POD,
	ST_PUT_RESULT,
	ST_PUT_EVENT,
	ST_PUT_PAST_USAGE,
	ST_DEL_POD,
	ST_DEL_SPAN,
	ST_DEL_JOB,
	ST_CLAIM_KEY,
	ST_DEL_JOB_PODS,
	ST_DEL_JOB_PLANS,
	ST_CLEAR_OPEN_PODS,
	ST_CLEAR_OPEN,
	ST_CLEAR_PODS,
	ST_CLEAR_PLANS,
	ST_CLEAR_SPANS,
	ST_CLEAR_JOBS,
	ST_ALL_JOBS,
	ST_ALL_PODS,
	ST_ALL_PLANS,
	ST_ALL_SPANS,
	ST_ALL_INTENTS,
	ST_ALL_INTENT_PODS,
	ST_ALL_RESULTS,
	ST_ALL_EVENTS,
	ST_ALL_PAST_USAGE,
	ST_LIVE_JOBS,
	ST_LIVE_PODS,
	ST_OPEN_INTENTS,
	ST_OPEN_INTENT_PODS,
	ST_EVENTS_FROM,
	ST_PLANS_OF,
	ST_RESULTS_AFTER,
	ST_RECENT_RESULTS,
	ST_LAST_EVENT,
	ST_LOG_BEGIN,
	ST_USAGE,
	ST_FENCE,
	ST_TAKE_TERM,
	ST_RAISE_TERM,
	ST_META,
	ST_SET_CLUSTER,
	ST_ORPHANS,
	ST_PRUNE_EVENTS,
	ST_PRUNE_LOG,
	ST_PRUNE_PLANS,
	ST_PRUNE_INTENT_PODS,
	ST_PRUNE_INTENTS,
	ST_ROLL_UP,
	ST_PRUNE_RESULTS,
	ST_ROWS,
	ST_BYTES,
	ST_USED,
	ST_COUNT
};

extern const struct slu_sql_stmt slu_store_stmts[ST_COUNT];

/* A table as the dump sees it. */
struct slu_store_table {
	const char *name;
	enum slu_store_stmt put, all;
	const char *types; /* a letter a column, without the checksum: integer, text, bytes */
	bool sum;          /* has a checksum as its last column */
	const char *column[SLU_SQL_MAX_COLUMNS];
};

#define SLU_STORE_TABLES 9
extern const struct slu_store_table slu_store_tables[SLU_STORE_TABLES];

/* Check sum over the values, in order. */
int64_t slu_store_sum(const struct slu_sql_val *v, uint32_t n);

/* The open database behind a store, for dump.c. */
struct slu_sql *slu_store_sql(struct slu_store *s);
