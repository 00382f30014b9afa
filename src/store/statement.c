#include "store/statement.h"
#include "base/map.h"

#define JOB_COLUMNS                                                                               \
	"id, key, space, name, object, kind, usr, queue, priority, first_seen_us, state, size,"   \
	" min_size, max_size, current_size, limit_s, begin_s, deadline_s, planned_s, promised_s," \
	" start_s, end_s, cause, spec, sum"
#define POD_COLUMNS    "job, uid, space, name, node, role, seen_us, sum"
#define PLAN_COLUMNS   "job, seq, at_us, planned_s, cause, sum"
#define SPAN_COLUMNS   "id, kind, name, from_s, to_s, spec, sum"
#define INTENT_COLUMNS "id, job, term, made_us, state, verb, sum"
#define IPOD_COLUMNS   "intent, uid, space, name, node, sum"
#define RESULT_COLUMNS \
	"job, key, name, usr, queue, outcome, first_seen_us, start_s, end_s, size, used, sum"
#define EVENT_COLUMNS "seq, at_us, kind, data, sum"

/* Where rows are ordered by a text, PostgreSQL is told to compare bytes, as SQLite does: an export
 * is the same from both. */
const struct slu_sql_stmt slu_store_stmts[ST_COUNT] = {
	[ST_PUT_JOB] = { "INSERT INTO jobs (" JOB_COLUMNS
			 ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,"
			 " $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,"
			 " $25) ON CONFLICT (id) DO UPDATE SET key = excluded.key, space = excluded.space,"
			 " name = excluded.name, object = excluded.object, kind = excluded.kind,"
			 " usr = excluded.usr, queue = excluded.queue, priority = excluded.priority,"
			 " first_seen_us = excluded.first_seen_us, state = excluded.state,"
			 " size = excluded.size, min_size = excluded.min_size,"
			 " max_size = excluded.max_size, current_size = excluded.current_size,"
			 " limit_s = excluded.limit_s, begin_s = excluded.begin_s,"
			 " deadline_s = excluded.deadline_s, planned_s = excluded.planned_s,"
			 " promised_s = excluded.promised_s, start_s = excluded.start_s,"
			 " end_s = excluded.end_s, cause = excluded.cause, spec = excluded.spec,"
			 " sum = excluded.sum" },
	[ST_PUT_POD] = { "INSERT INTO pods (" POD_COLUMNS
			 ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
			 " ON CONFLICT (job, uid) DO UPDATE SET space = excluded.space,"
			 " name = excluded.name, node = excluded.node, role = excluded.role,"
			 " seen_us = excluded.seen_us, sum = excluded.sum" },
	[ST_PUT_PLAN] = { "INSERT INTO plans (" PLAN_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6)"
			  " ON CONFLICT (job, seq) DO NOTHING" },
	[ST_PUT_SPAN] = { "INSERT INTO spans (" SPAN_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7)"
			  " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, name = excluded.name,"
			  " from_s = excluded.from_s, to_s = excluded.to_s, spec = excluded.spec,"
			  " sum = excluded.sum" },
	[ST_PUT_INTENT] = { "INSERT INTO intents (" INTENT_COLUMNS
			    ") VALUES ($1, $2, $3, $4, $5, $6, $7)"
			    " ON CONFLICT (id) DO UPDATE SET job = excluded.job, term = excluded.term,"
			    " made_us = excluded.made_us, state = excluded.state, verb = excluded.verb,"
			    " sum = excluded.sum" },
	[ST_PUT_INTENT_POD] = { "INSERT INTO intent_pods (" IPOD_COLUMNS
				") VALUES ($1, $2, $3, $4, $5, $6)"
				" ON CONFLICT (intent, uid) DO UPDATE SET space = excluded.space,"
				" name = excluded.name, node = excluded.node, sum = excluded.sum" },
	[ST_PUT_RESULT] = { "INSERT INTO results (" RESULT_COLUMNS
			    ") VALUES ($1, $2, $3, $4, $5, $6, $7,"
			    " $8, $9, $10, $11, $12) ON CONFLICT (job) DO UPDATE SET key = excluded.key,"
			    " name = excluded.name, usr = excluded.usr, queue = excluded.queue,"
			    " outcome = excluded.outcome, first_seen_us = excluded.first_seen_us,"
			    " start_s = excluded.start_s, end_s = excluded.end_s, size = excluded.size,"
			    " used = excluded.used, sum = excluded.sum" },
	[ST_PUT_EVENT] = { "INSERT INTO events (" EVENT_COLUMNS ") VALUES ($1, $2, $3, $4, $5)"
			   " ON CONFLICT (seq) DO NOTHING" },
	[ST_PUT_PAST_USAGE] = { "INSERT INTO past_usage (usr, queue, jobs, used) VALUES ($1, $2, $3, $4)"
				" ON CONFLICT (usr, queue) DO UPDATE SET jobs = excluded.jobs,"
				" used = excluded.used" },
	[ST_DEL_POD] = { "DELETE FROM pods WHERE job = $1 AND uid = $2" },
	[ST_DEL_SPAN] = { "DELETE FROM spans WHERE id = $1" },
	[ST_DEL_JOB] = { "DELETE FROM jobs WHERE id = $1" },
	[ST_CLAIM_KEY] = { "DELETE FROM jobs WHERE key = $1 AND id <> $2" },
	[ST_DEL_JOB_PODS] = { "DELETE FROM pods WHERE job = $1" },
	[ST_DEL_JOB_PLANS] = { "DELETE FROM plans WHERE job = $1" },
	[ST_CLEAR_OPEN_PODS] = { "DELETE FROM intent_pods WHERE intent IN"
				 " (SELECT id FROM intents WHERE state = 0)" },
	[ST_CLEAR_OPEN] = { "DELETE FROM intents WHERE state = 0" },
	[ST_CLEAR_PODS] = { "DELETE FROM pods" },
	[ST_CLEAR_PLANS] = { "DELETE FROM plans" },
	[ST_CLEAR_SPANS] = { "DELETE FROM spans" },
	[ST_CLEAR_JOBS] = { "DELETE FROM jobs" },
	[ST_ALL_JOBS] = { "SELECT " JOB_COLUMNS " FROM jobs ORDER BY id" },
	[ST_ALL_PODS] = { "SELECT " POD_COLUMNS " FROM pods ORDER BY job, uid",
			  "SELECT " POD_COLUMNS " FROM pods ORDER BY job, uid COLLATE \"C\"" },
	[ST_ALL_PLANS] = { "SELECT " PLAN_COLUMNS " FROM plans ORDER BY job, seq" },
	[ST_ALL_SPANS] = { "SELECT " SPAN_COLUMNS " FROM spans ORDER BY id" },
	[ST_ALL_INTENTS] = { "SELECT " INTENT_COLUMNS " FROM intents ORDER BY id" },
	[ST_ALL_INTENT_PODS] = { "SELECT " IPOD_COLUMNS " FROM intent_pods ORDER BY intent, uid",
				 "SELECT " IPOD_COLUMNS
				 " FROM intent_pods ORDER BY intent, uid COLLATE \"C\"" },
	[ST_ALL_RESULTS] = { "SELECT " RESULT_COLUMNS " FROM results ORDER BY job" },
	[ST_ALL_EVENTS] = { "SELECT " EVENT_COLUMNS " FROM events ORDER BY seq" },
	[ST_ALL_PAST_USAGE] = { "SELECT usr, queue, jobs, used FROM past_usage ORDER BY usr, queue",
				"SELECT usr, queue, jobs, used FROM past_usage"
				" ORDER BY usr COLLATE \"C\", queue COLLATE \"C\"" },
	[ST_LIVE_JOBS] = { "SELECT " JOB_COLUMNS " FROM jobs"
			   " ORDER BY priority DESC, first_seen_us, name, id",
			   "SELECT " JOB_COLUMNS " FROM jobs"
			   " ORDER BY priority DESC, first_seen_us, name COLLATE \"C\", id" },
	[ST_LIVE_PODS] = { "SELECT " POD_COLUMNS " FROM pods ORDER BY job, seen_us, uid" },
	[ST_OPEN_INTENTS] = { "SELECT " INTENT_COLUMNS
			      " FROM intents WHERE state = 0 ORDER BY id" },
	[ST_OPEN_INTENT_PODS] = { "SELECT " IPOD_COLUMNS " FROM intent_pods WHERE intent IN"
				  " (SELECT id FROM intents WHERE state = 0) ORDER BY intent, uid" },
	[ST_EVENTS_FROM] = { "SELECT " EVENT_COLUMNS " FROM events WHERE seq >= $1 ORDER BY seq" },
	[ST_PLANS_OF] = { "SELECT " PLAN_COLUMNS " FROM plans WHERE job = $1 ORDER BY seq" },
	[ST_RESULTS_AFTER] = { "SELECT " RESULT_COLUMNS " FROM results WHERE end_s > $1"
			       " ORDER BY end_s, job" },
	[ST_RECENT_RESULTS] = { "SELECT " RESULT_COLUMNS
				" FROM results ORDER BY end_s DESC, job DESC LIMIT 20000" },
	[ST_LOG_BEGIN] = { "SELECT COALESCE(MAX(seq), 0) FROM events WHERE kind = 1 AND at_us <= $1" },
	[ST_USAGE] = { "SELECT user, queue, jobs, used FROM usage ORDER BY user, queue",
		       "SELECT \"user\", queue, jobs, used FROM usage"
		       " ORDER BY \"user\" COLLATE \"C\", queue COLLATE \"C\"" },
	[ST_LAST_EVENT] = { "SELECT COALESCE(MAX(seq), 0) FROM events" },
	/* In PostgreSQL the statement fails if it finds no row, so that nothing after it in the
	 * pipeline is executed. */
	[ST_FENCE] = { "UPDATE meta SET commits = commits + 1 WHERE one = 1 AND term = $1",
		       "WITH done AS (UPDATE meta SET commits = commits + 1"
		       " WHERE one = 1 AND term = $1::BIGINT RETURNING 1)"
		       " SELECT 1 / count(*) FROM done" },
	[ST_TAKE_TERM] = { "UPDATE meta SET term = $1, holder = $2"
			   " WHERE one = 1 AND (term < $1 OR (term = $1 AND holder = $2))",
			   "UPDATE meta SET term = $1::BIGINT, holder = $2::TEXT"
			   " WHERE one = 1 AND (term < $1 OR (term = $1 AND holder = $2))" },
	[ST_RAISE_TERM] = { "UPDATE meta SET term = $1, holder = $2 WHERE one = 1 AND term = $3",
			    "UPDATE meta SET term = $1::BIGINT, holder = $2::TEXT"
			    " WHERE one = 1 AND term = $3::BIGINT" },
	[ST_META] = { "SELECT cluster, term, holder FROM meta WHERE one = 1" },
	[ST_SET_CLUSTER] = { "UPDATE meta SET cluster = $1 WHERE one = 1 AND cluster = ''" },
	[ST_ORPHANS] = { "SELECT (SELECT COUNT(*) FROM pods WHERE job NOT IN (SELECT id FROM jobs)),"
			 " (SELECT COUNT(*) FROM intent_pods WHERE intent NOT IN"
			 " (SELECT id FROM intents)), (SELECT COUNT(*) FROM plans WHERE job NOT IN"
			 " (SELECT id FROM jobs))" },
	/* A log can only be replayed from its beginning, so it is removed as a whole, once the
	 * next log is old, too.  Only one log at a time, because that may free enough room. */
	[ST_PRUNE_EVENTS] = { "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <"
			      " COALESCE((SELECT MIN(seq) FROM events WHERE kind = 1 AND at_us < $1"
			      " AND seq > (SELECT MIN(seq) FROM events)), 0) ORDER BY seq LIMIT $2)" },
	[ST_PRUNE_LOG] = { "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE at_us < $1"
			   " ORDER BY seq LIMIT $2)" },
	[ST_PRUNE_PLANS] = { "DELETE FROM plans WHERE (job, seq) IN (SELECT job, seq FROM plans"
			     " WHERE at_us < $1 ORDER BY at_us, job, seq LIMIT $2)" },
	[ST_PRUNE_INTENT_PODS] = { "DELETE FROM intent_pods WHERE intent IN (SELECT id FROM intents"
				   " WHERE made_us < $1 AND state <> 0 ORDER BY made_us, id LIMIT $2)" },
	[ST_PRUNE_INTENTS] = { "DELETE FROM intents WHERE id IN (SELECT id FROM intents"
			       " WHERE made_us < $1 AND state <> 0 ORDER BY made_us, id LIMIT $2)" },
	[ST_ROLL_UP] = { "INSERT INTO past_usage (usr, queue, jobs, used)"
			 " SELECT usr, queue, COUNT(*), SUM(used) FROM (SELECT usr, queue, used"
			 " FROM results WHERE end_s < $1 ORDER BY end_s, job LIMIT $2) AS old"
			 " WHERE true GROUP BY usr, queue ON CONFLICT (usr, queue) DO UPDATE SET"
			 " jobs = past_usage.jobs + excluded.jobs, used = past_usage.used + excluded.used" },
	[ST_PRUNE_RESULTS] = { "DELETE FROM results WHERE job IN (SELECT job FROM results"
			       " WHERE end_s < $1 ORDER BY end_s, job LIMIT $2)" },
	[ST_ROWS] = { "SELECT (SELECT COUNT(*) FROM jobs) + (SELECT COUNT(*) FROM pods)"
		      " + (SELECT COUNT(*) FROM plans) + (SELECT COUNT(*) FROM spans)"
		      " + (SELECT COUNT(*) FROM intents) + (SELECT COUNT(*) FROM intent_pods)"
		      " + (SELECT COUNT(*) FROM results) + (SELECT COUNT(*) FROM events)"
		      " + (SELECT COUNT(*) FROM past_usage)" },
	[ST_BYTES] = { "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
		       "SELECT pg_database_size(current_database())" },
	/* The room that rows need; neither database returns room to the system when rows are
	 * removed. */
	[ST_USED] = { "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(),"
		      " pragma_freelist_count(), pragma_page_size()",
		      "SELECT ((SELECT COALESCE(SUM(octet_length(data)), 0) + COUNT(*) * 80 FROM events)"
		      " + (SELECT COALESCE(SUM(n_live_tup), 0) * 300 FROM pg_stat_user_tables"
		      " WHERE relname <> 'events'))::BIGINT" },
};

const struct slu_store_table slu_store_tables[SLU_STORE_TABLES] = {
	{ "jobs",
	  ST_PUT_JOB,
	  ST_ALL_JOBS,
	  "itttttttiiiiiiiiiiiiiitt",
	  true,
	  { "id",        "key",        "space",    "name",    "object",  "kind",
	    "user",      "queue",      "priority", "seen_us", "state",   "size",
	    "min",       "max",        "current",  "limit_s", "begin_s", "deadline_s",
	    "planned_s", "promised_s", "start_s",  "end_s",   "cause",   "spec" } },
	{ "pods",
	  ST_PUT_POD,
	  ST_ALL_PODS,
	  "ittttii",
	  true,
	  { "job", "uid", "space", "name", "node", "role", "seen_us" } },
	{ "plans",
	  ST_PUT_PLAN,
	  ST_ALL_PLANS,
	  "iiiit",
	  true,
	  { "job", "seq", "at_us", "planned_s", "cause" } },
	{ "spans",
	  ST_PUT_SPAN,
	  ST_ALL_SPANS,
	  "ittiit",
	  true,
	  { "id", "kind", "name", "from_s", "to_s", "spec" } },
	{ "intents",
	  ST_PUT_INTENT,
	  ST_ALL_INTENTS,
	  "iiiiit",
	  true,
	  { "id", "job", "term", "made_us", "state", "verb" } },
	{ "intent_pods",
	  ST_PUT_INTENT_POD,
	  ST_ALL_INTENT_PODS,
	  "itttt",
	  true,
	  { "intent", "uid", "space", "name", "node" } },
	{ "results",
	  ST_PUT_RESULT,
	  ST_ALL_RESULTS,
	  "itttttiiiii",
	  true,
	  { "job", "key", "name", "user", "queue", "outcome", "seen_us", "start_s", "end_s", "size",
	    "used" } },
	{ "events", ST_PUT_EVENT, ST_ALL_EVENTS, "iiib", true, { "seq", "at_us", "kind", "data" } },
	{ "past_usage",
	  ST_PUT_PAST_USAGE,
	  ST_ALL_PAST_USAGE,
	  "ttii",
	  false,
	  { "user", "queue", "jobs", "used" } },
};

int64_t slu_store_sum(const struct slu_sql_val *v, uint32_t n)
{
	uint64_t h = n;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t part = v[i].type == SLU_SQL_INT ? slu_hash_u64((uint64_t)v[i].i + 1)
							 : slu_hash_bytes(v[i].p, v[i].n);

		h = slu_hash_u64(h * 31 + part);
	}
	return (int64_t)h;
}
