#include "base/crash.h"
#include "store/schema.h"

struct step {
	const char *sqlite, *pg;
};

/* Rows carry a checksum over their columns (store.c computes and verifies it): SQLite has none of
 * its own, and a flipped bit must never become a wrong plan.
 *
 * The four views at the end have the names and columns that users of Fluxnetes and Fluxqueue query.
 */
static const struct step steps[] = {
	{
		"CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), cluster TEXT NOT NULL,"
		" term INTEGER NOT NULL, holder TEXT NOT NULL, commits INTEGER NOT NULL) STRICT;"
		"INSERT INTO meta VALUES (1, '', 0, '', 0);"
		"CREATE TABLE jobs (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, space TEXT NOT NULL,"
		" name TEXT NOT NULL, object TEXT NOT NULL, kind TEXT NOT NULL, usr TEXT NOT NULL,"
		" queue TEXT NOT NULL, priority INTEGER NOT NULL, first_seen_us INTEGER NOT NULL,"
		" state INTEGER NOT NULL, size INTEGER NOT NULL, min_size INTEGER NOT NULL,"
		" max_size INTEGER NOT NULL, current_size INTEGER NOT NULL, limit_s INTEGER NOT NULL,"
		" begin_s INTEGER NOT NULL, deadline_s INTEGER NOT NULL, planned_s INTEGER NOT NULL,"
		" promised_s INTEGER NOT NULL, start_s INTEGER NOT NULL, end_s INTEGER NOT NULL,"
		" cause TEXT NOT NULL, spec TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;"
		"CREATE TABLE pods (job INTEGER NOT NULL, uid TEXT NOT NULL, space TEXT NOT NULL,"
		" name TEXT NOT NULL, node TEXT NOT NULL, role INTEGER NOT NULL, seen_us INTEGER NOT NULL,"
		" sum INTEGER NOT NULL, PRIMARY KEY (job, uid)) STRICT, WITHOUT ROWID;"
		"CREATE TABLE plans (job INTEGER NOT NULL, seq INTEGER NOT NULL, at_us INTEGER NOT NULL,"
		" planned_s INTEGER NOT NULL, cause TEXT NOT NULL, sum INTEGER NOT NULL,"
		" PRIMARY KEY (job, seq)) STRICT, WITHOUT ROWID;"
		"CREATE INDEX plans_age ON plans (at_us);"
		"CREATE TABLE spans (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,"
		" from_s INTEGER NOT NULL, to_s INTEGER NOT NULL, spec TEXT NOT NULL,"
		" sum INTEGER NOT NULL) STRICT;"
		"CREATE TABLE intents (id INTEGER PRIMARY KEY, job INTEGER NOT NULL, term INTEGER NOT NULL,"
		" made_us INTEGER NOT NULL, state INTEGER NOT NULL, verb TEXT NOT NULL,"
		" sum INTEGER NOT NULL) STRICT;"
		"CREATE INDEX intents_open ON intents (id) WHERE state = 0;"
		"CREATE INDEX intents_age ON intents (made_us);"
		"CREATE TABLE intent_pods (intent INTEGER NOT NULL, uid TEXT NOT NULL, space TEXT NOT NULL,"
		" name TEXT NOT NULL, node TEXT NOT NULL, sum INTEGER NOT NULL,"
		" PRIMARY KEY (intent, uid)) STRICT, WITHOUT ROWID;"
		"CREATE TABLE results (job INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL,"
		" usr TEXT NOT NULL, queue TEXT NOT NULL, outcome TEXT NOT NULL,"
		" first_seen_us INTEGER NOT NULL, start_s INTEGER NOT NULL, end_s INTEGER NOT NULL,"
		" size INTEGER NOT NULL, used INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;"
		"CREATE INDEX results_age ON results (end_s);"
		"CREATE TABLE past_usage (usr TEXT NOT NULL, queue TEXT NOT NULL, jobs INTEGER NOT NULL,"
		" used INTEGER NOT NULL, PRIMARY KEY (usr, queue)) STRICT, WITHOUT ROWID;"
		"CREATE TABLE events (seq INTEGER PRIMARY KEY, at_us INTEGER NOT NULL, kind INTEGER NOT NULL,"
		" data BLOB NOT NULL, sum INTEGER NOT NULL) STRICT;"
		"CREATE INDEX events_age ON events (at_us);"
		"CREATE VIEW usage AS SELECT usr AS user, queue, SUM(jobs) AS jobs, SUM(used) AS used FROM ("
		" SELECT usr, queue, 1 AS jobs, used FROM results UNION ALL"
		" SELECT usr, queue, jobs, used FROM past_usage) GROUP BY usr, queue;"
		"CREATE VIEW pods_provisional AS SELECT"
		" json_object('metadata', json_object('name', p.name, 'namespace', p.space, 'uid', p.uid))"
		" AS podspec, p.space AS namespace, p.name AS name, j.limit_s AS duration,"
		" strftime('%Y-%m-%dT%H:%M:%fZ', p.seen_us / 1e6, 'unixepoch') AS created_at,"
		" j.name AS group_name, j.size AS group_size"
		" FROM pods p JOIN jobs j ON j.id = p.job WHERE j.state <= 3;"
		"CREATE VIEW groups_provisional AS SELECT"
		" json_object('metadata', json_object('name', name, 'namespace', space)) AS podspec,"
		" space AS namespace, limit_s AS duration,"
		" strftime('%Y-%m-%dT%H:%M:%fZ', first_seen_us / 1e6, 'unixepoch') AS created_at,"
		" name AS group_name, size AS group_size, current_size FROM jobs WHERE state = 0;"
		"CREATE VIEW pending_queue AS SELECT name AS group_name, space AS namespace,"
		" size AS group_size, id AS flux_id, spec AS jobspec, object AS flux_job_name, name,"
		" CASE kind WHEN 'Pod' THEN 1 WHEN 'Job' THEN 2 WHEN 'Deployment' THEN 3"
		" WHEN 'ReplicaSet' THEN 4 WHEN 'StatefulSet' THEN 5 ELSE 0 END AS type,"
		" planned_s > 0 AS reservation, limit_s AS duration,"
		" strftime('%Y-%m-%dT%H:%M:%fZ', first_seen_us / 1e6, 'unixepoch') AS created_at, size"
		" FROM jobs WHERE state IN (1, 2, 3);"
		"CREATE VIEW reservations AS SELECT name AS group_name, name, id AS flux_id"
		" FROM jobs WHERE state = 1 AND planned_s > 0;",

		"CREATE TABLE meta (one INT PRIMARY KEY CHECK (one = 1), cluster TEXT NOT NULL,"
		" term BIGINT NOT NULL, holder TEXT NOT NULL, commits BIGINT NOT NULL);"
		"INSERT INTO meta VALUES (1, '', 0, '', 0);"
		"CREATE TABLE jobs (id BIGINT PRIMARY KEY, key TEXT NOT NULL UNIQUE, space TEXT NOT NULL,"
		" name TEXT NOT NULL, object TEXT NOT NULL, kind TEXT NOT NULL, usr TEXT NOT NULL,"
		" queue TEXT NOT NULL, priority BIGINT NOT NULL, first_seen_us BIGINT NOT NULL,"
		" state BIGINT NOT NULL, size BIGINT NOT NULL, min_size BIGINT NOT NULL,"
		" max_size BIGINT NOT NULL, current_size BIGINT NOT NULL, limit_s BIGINT NOT NULL,"
		" begin_s BIGINT NOT NULL, deadline_s BIGINT NOT NULL, planned_s BIGINT NOT NULL,"
		" promised_s BIGINT NOT NULL, start_s BIGINT NOT NULL, end_s BIGINT NOT NULL,"
		" cause TEXT NOT NULL, spec TEXT NOT NULL, sum BIGINT NOT NULL);"
		"CREATE TABLE pods (job BIGINT NOT NULL, uid TEXT NOT NULL, space TEXT NOT NULL,"
		" name TEXT NOT NULL, node TEXT NOT NULL, role BIGINT NOT NULL, seen_us BIGINT NOT NULL,"
		" sum BIGINT NOT NULL, PRIMARY KEY (job, uid));"
		"CREATE TABLE plans (job BIGINT NOT NULL, seq BIGINT NOT NULL, at_us BIGINT NOT NULL,"
		" planned_s BIGINT NOT NULL, cause TEXT NOT NULL, sum BIGINT NOT NULL,"
		" PRIMARY KEY (job, seq));"
		"CREATE INDEX plans_age ON plans (at_us);"
		"CREATE TABLE spans (id BIGINT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,"
		" from_s BIGINT NOT NULL, to_s BIGINT NOT NULL, spec TEXT NOT NULL, sum BIGINT NOT NULL);"
		"CREATE TABLE intents (id BIGINT PRIMARY KEY, job BIGINT NOT NULL, term BIGINT NOT NULL,"
		" made_us BIGINT NOT NULL, state BIGINT NOT NULL, verb TEXT NOT NULL, sum BIGINT NOT NULL);"
		"CREATE INDEX intents_open ON intents (id) WHERE state = 0;"
		"CREATE INDEX intents_age ON intents (made_us);"
		"CREATE TABLE intent_pods (intent BIGINT NOT NULL, uid TEXT NOT NULL, space TEXT NOT NULL,"
		" name TEXT NOT NULL, node TEXT NOT NULL, sum BIGINT NOT NULL, PRIMARY KEY (intent, uid));"
		"CREATE TABLE results (job BIGINT PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL,"
		" usr TEXT NOT NULL, queue TEXT NOT NULL, outcome TEXT NOT NULL,"
		" first_seen_us BIGINT NOT NULL, start_s BIGINT NOT NULL, end_s BIGINT NOT NULL,"
		" size BIGINT NOT NULL, used BIGINT NOT NULL, sum BIGINT NOT NULL);"
		"CREATE INDEX results_age ON results (end_s);"
		"CREATE TABLE past_usage (usr TEXT NOT NULL, queue TEXT NOT NULL, jobs BIGINT NOT NULL,"
		" used BIGINT NOT NULL, PRIMARY KEY (usr, queue));"
		"CREATE TABLE events (seq BIGINT PRIMARY KEY, at_us BIGINT NOT NULL, kind BIGINT NOT NULL,"
		" data BYTEA NOT NULL, sum BIGINT NOT NULL);"
		"CREATE INDEX events_age ON events (at_us);"
		"CREATE VIEW usage AS SELECT usr AS \"user\", queue, SUM(jobs)::BIGINT AS jobs,"
		" SUM(used)::BIGINT AS used FROM ("
		" SELECT usr, queue, 1 AS jobs, used FROM results UNION ALL"
		" SELECT usr, queue, jobs, used FROM past_usage) u GROUP BY usr, queue;"
		"CREATE VIEW pods_provisional AS SELECT json_build_object('metadata',"
		" json_build_object('name', p.name, 'namespace', p.space, 'uid', p.uid))::text AS podspec,"
		" p.space AS namespace, p.name AS name, j.limit_s AS duration,"
		" to_timestamp(p.seen_us / 1e6) AS created_at, j.name AS group_name, j.size AS group_size"
		" FROM pods p JOIN jobs j ON j.id = p.job WHERE j.state <= 3;"
		"CREATE VIEW groups_provisional AS SELECT json_build_object('metadata',"
		" json_build_object('name', name, 'namespace', space))::text AS podspec, space AS namespace,"
		" limit_s AS duration, to_timestamp(first_seen_us / 1e6) AS created_at, name AS group_name,"
		" size AS group_size, current_size FROM jobs WHERE state = 0;"
		"CREATE VIEW pending_queue AS SELECT name AS group_name, space AS namespace,"
		" size AS group_size, id AS flux_id, spec AS jobspec, object AS flux_job_name, name,"
		" CASE kind WHEN 'Pod' THEN 1 WHEN 'Job' THEN 2 WHEN 'Deployment' THEN 3"
		" WHEN 'ReplicaSet' THEN 4 WHEN 'StatefulSet' THEN 5 ELSE 0 END AS type,"
		" CASE WHEN planned_s > 0 THEN 1 ELSE 0 END AS reservation, limit_s AS duration,"
		" to_timestamp(first_seen_us / 1e6) AS created_at, size"
		" FROM jobs WHERE state IN (1, 2, 3);"
		"CREATE VIEW reservations AS SELECT name AS group_name, name, id AS flux_id"
		" FROM jobs WHERE state = 1 AND planned_s > 0;",
	},
	{
		/* Where logs begin: every search for old rows asks for it. */
		"CREATE INDEX events_begin ON events (seq) WHERE kind = 1;",
		"CREATE INDEX events_begin ON events (seq) WHERE kind = 1;",
	},
	{
		/* The view as the originals' tables are: their numbers of kinds, and the request as a
		 * jobspec in YAML instead of our own JSON.  A slot is a member; cores are whole ones,
		 * memory MB; version 1 of the jobspec knows no memory. */
		"DROP VIEW pending_queue;"
		"CREATE VIEW pending_queue AS SELECT name AS group_name, space AS namespace,"
		" size AS group_size, id AS flux_id, COALESCE((SELECT 'version: '"
		" || CASE WHEN MAX(json_extract(r.value, '$.need.memory')) > 0 THEN 9999 ELSE 1 END"
		" || char(10) || 'resources:' || char(10) || group_concat('- type: slot' || char(10)"
		" || '  count: ' || json_extract(r.value, '$.min') || char(10) || '  label: '"
		" || CASE r.key WHEN 0 THEN 'default' ELSE 'role' || r.key END || char(10) || '  with:'"
		" || char(10) || '  - {type: core, count: '"
		" || MAX(1, (COALESCE(json_extract(r.value, '$.need.cpu'), 0) + 999) / 1000) || '}'"
		" || char(10) || CASE WHEN json_extract(r.value, '$.need.memory') > 0"
		" THEN '  - {type: memory, count: '"
		" || ((json_extract(r.value, '$.need.memory') + 1048575) / 1048576) || ', unit: MB}'"
		" || char(10) ELSE '' END"
		" || CASE WHEN json_extract(r.value, '$.need.\"nvidia.com/gpu\"') > 0"
		" THEN '  - {type: gpu, count: ' || json_extract(r.value, '$.need.\"nvidia.com/gpu\"')"
		" || '}' || char(10) ELSE '' END, '')"
		" || 'tasks:' || char(10) || group_concat('- {command: [\"' || j.space || '/' || j.name"
		" || '\"], slot: ' || CASE r.key WHEN 0 THEN 'default' ELSE 'role' || r.key END"
		" || ', count: {per_slot: 1}}' || char(10), '')"
		" || 'attributes:' || char(10) || '  system: {'"
		" || CASE WHEN j.limit_s > 0 THEN 'duration: ' || j.limit_s ELSE '' END || '}' || char(10)"
		" FROM json_each(j.spec, '$.roles') r WHERE r.type = 'object'), '') AS jobspec,"
		" object AS flux_job_name, name,"
		" CASE kind WHEN 'Job' THEN 1 WHEN 'Deployment' THEN 2 WHEN 'ReplicaSet' THEN 3"
		" WHEN 'StatefulSet' THEN 4 ELSE 0 END AS type,"
		" planned_s > 0 AS reservation, limit_s AS duration,"
		" strftime('%Y-%m-%dT%H:%M:%fZ', first_seen_us / 1e6, 'unixepoch') AS created_at, size"
		" FROM jobs j WHERE state IN (1, 2, 3);",

		"DROP VIEW pending_queue;"
		"CREATE VIEW pending_queue AS SELECT name AS group_name, space AS namespace,"
		" size AS group_size, id AS flux_id, COALESCE((SELECT 'version: '"
		" || CASE WHEN MAX(memory) > 0 THEN 9999 ELSE 1 END"
		" || chr(10) || 'resources:' || chr(10) || string_agg('- type: slot' || chr(10)"
		" || '  count: ' || least || chr(10) || '  label: ' || label || chr(10) || '  with:'"
		" || chr(10) || '  - {type: core, count: '"
		" || GREATEST(1, (COALESCE(cpu, 0) + 999) / 1000) || '}'"
		" || chr(10) || CASE WHEN memory > 0 THEN '  - {type: memory, count: '"
		" || ((memory + 1048575) / 1048576) || ', unit: MB}' || chr(10) ELSE '' END"
		" || CASE WHEN gpu > 0 THEN '  - {type: gpu, count: ' || gpu || '}' || chr(10)"
		" ELSE '' END, '' ORDER BY n)"
		" || 'tasks:' || chr(10) || string_agg('- {command: [\"' || j.space || '/' || j.name"
		" || '\"], slot: ' || label || ', count: {per_slot: 1}}' || chr(10), '' ORDER BY n)"
		" || 'attributes:' || chr(10) || '  system: {'"
		" || CASE WHEN j.limit_s > 0 THEN 'duration: ' || j.limit_s ELSE '' END || '}' || chr(10)"
		" FROM (SELECT n, CASE n WHEN 1 THEN 'default' ELSE 'role' || n - 1 END AS label,"
		" (v->>'min')::BIGINT AS least, (v->'need'->>'cpu')::BIGINT AS cpu,"
		" (v->'need'->>'memory')::BIGINT AS memory,"
		" (v->'need'->>'nvidia.com/gpu')::BIGINT AS gpu"
		" FROM json_array_elements(j.spec::json->'roles') WITH ORDINALITY AS a (v, n)"
		" WHERE json_typeof(v) = 'object') r), '') AS jobspec,"
		" object AS flux_job_name, name,"
		" CASE kind WHEN 'Job' THEN 1 WHEN 'Deployment' THEN 2 WHEN 'ReplicaSet' THEN 3"
		" WHEN 'StatefulSet' THEN 4 ELSE 0 END AS type,"
		" CASE WHEN planned_s > 0 THEN 1 ELSE 0 END AS reservation, limit_s AS duration,"
		" to_timestamp(first_seen_us / 1e6) AS created_at, size"
		" FROM jobs j WHERE state IN (1, 2, 3);",
	},
};

/* The version is kept where a half-made database cannot show a wrong one: in SQLite's
 * user_version, or in a table of one row in PostgreSQL. Both change in the transaction of the
 * step. */
static const char *const set_version_sqlite[] = { "PRAGMA user_version = 1",
						  "PRAGMA user_version = 2",
						  "PRAGMA user_version = 3" };
static const char *const set_version_pg[] = {
	"CREATE TABLE IF NOT EXISTS sluice_schema (one INT PRIMARY KEY CHECK (one = 1), version INT NOT NULL);"
	"INSERT INTO sluice_schema VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET version = 1",
	"UPDATE sluice_schema SET version = 2",
	"UPDATE sluice_schema SET version = 3",
};

static_assert(SLU_LEN(set_version_sqlite) == SLU_LEN(steps), "one version text per step");
static_assert(SLU_LEN(set_version_pg) == SLU_LEN(steps), "one version text per step");

int slu_store_schema_version(void)
{
	return (int)SLU_LEN(steps);
}

static int refuse_version(int have, struct slu_error *err)
{
	int know = slu_store_schema_version();

	if (have > know)
		return slu_fail(
			err, -EPROTO,
			"the store has schema version %d, this program knows %d: use a newer sluice",
			have, know);
	return slu_fail(
		err, -EPROTO,
		"the store has schema version %d, this program wants %d: run \"sluice store migrate\"",
		have, know);
}

int slu_schema_settle(struct slu_sql *q, bool migrate, int *found, struct slu_error *err)
{
	bool pg = strcmp(q->ops->name, "postgresql") == 0;
	int know = slu_store_schema_version(), have, rc;

	rc = q->ops->version(q, &have, err);
	if (rc < 0)
		return rc;
	*found = have;
	if (have == know)
		return 0;
	if (have > know || !migrate)
		return refuse_version(have, err);
	rc = q->ops->begin(q, err);
	if (rc < 0)
		return rc;
	rc = q->ops->lock(q, err);
	/* Another process may have migrated while we waited for the lock. */
	if (!rc)
		rc = q->ops->version(q, &have, err);
	for (; !rc && have < know; have++) {
		slu_crash_point("store migrate: step");
		rc = q->ops->script(q, pg ? steps[have].pg : steps[have].sqlite, err);
		if (!rc)
			rc = q->ops->script(q, pg ? set_version_pg[have] : set_version_sqlite[have],
					    err);
	}
	if (!rc && have > know)
		rc = refuse_version(have, err);
	slu_crash_point("store migrate: before commit");
	if (!rc)
		rc = q->ops->commit(q, err);
	slu_crash_point("store migrate: after commit");
	if (rc < 0)
		q->ops->rollback(q);
	return rc;
}
