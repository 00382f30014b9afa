#include "control/config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gang/gang.h"
#include "wire/yaml.h"

#define FILE_MAX (1 << 20)
#define LIST_MAX 1024

enum type { STR, BOOL, U32, I32, REAL, SECONDS, CHOICE, STRS, LIST, SECTION };

struct row {
	const char *key;
	enum type type;
	size_t off;
	const char *def; /* as written in YAML; NULL: none */
	int64_t min, max;
	const char *const *choice;
	const struct row *sub; /* LIST, SECTION */
	size_t size;           /* LIST: of an element */
	size_t n_off;          /* LIST: where the count goes */
	bool restart;
	const char *help;
};

#define AT(field)  offsetof(struct slu_config, field)
#define ATQ(field) offsetof(struct slu_config_queue, field)
#define ATL(field) offsetof(struct slu_config_level, field)

static const char *const backfill_orders[] = { "submission", "shortest", "packed", NULL };
static const char *const queue_policies[] = { "fcfs",         "easy",      "hybrid",
					      "conservative", "first-fit", NULL };
static const char *const member_failure[] = { "replace", "restart", NULL };
static const char *const held_modes[] = { "own", "compatible", NULL };
static const char *const log_levels[] = { "debug", "info", "warn", "error", NULL };
static const char *const log_formats[] = { "text", "json", NULL };

static const struct row kube_rows[] = {
	{ "qps", REAL, AT(kube.qps), "500", 1, 100000, .restart = true,
	  .help = "requests per second to the API server, on average" },
	{ "burst", U32, AT(kube.burst), "1000", 1, 100000, .restart = true,
	  .help = "requests that may go out at once" },
	{ 0 },
};

static const struct row level_rows[] = {
	{ "name", STR, ATL(name), NULL, .help = "what sluice.sh/topology calls it" },
	{ "label", STR, ATL(label), NULL, .help = "node label whose value names the place" },
	{ 0 },
};

static const struct row nodes_rows[] = {
	{ "controlPlane", BOOL, AT(nodes.control_plane), "false", .restart = true,
	  .help = "use control-plane nodes too" },
	{ "includeLabel", STR, AT(nodes.include_label), "", .restart = true,
	  .help = "use only nodes with this label (key, or key=value)" },
	{ "excludeLabel", STR, AT(nodes.exclude_label), "", .restart = true,
	  .help = "leave out nodes with this label (key, or key=value)" },
	{ "topology", LIST, AT(nodes.level),
	  "[{name: zone, label: topology.kubernetes.io/zone}, {name: block, label: topology.sluice.sh/block}, "
	  "{name: rack, label: topology.sluice.sh/rack}]",
	  .sub = level_rows, .size = sizeof(struct slu_config_level), .n_off = AT(nodes.n_levels),
	  .restart = true, .help = "levels of closeness, coarsest first" },
	{ 0 },
};

static const struct row match_rows[] = {
	{ "policy", CHOICE, AT(match.policy), "lonode", .choice = slu_gang_policy_names,
	  .restart = true, .help = "which of the fitting nodes are taken" },
	{ 0 },
};

static const struct row queue_rows[] = {
	{ "name", STR, ATQ(name), NULL, .help = "what sluice.sh/queue names" },
	{ "policy", CHOICE, ATQ(policy), "easy", .choice = queue_policies,
	  .help = "order and reservations" },
	{ "backfill", CHOICE, ATQ(backfill), "packed", .choice = backfill_orders,
	  .help = "who fills the gaps first" },
	{ "depth", U32, ATQ(depth), "0", 0, 1000000, .help = "jobs looked at in a cycle; 0: all" },
	{ "reservationDepth", U32, ATQ(reservation_depth), "4", 1, 1000000,
	  .help = "jobs that get a reservation under hybrid" },
	{ "priority", I32, ATQ(priority), "0", -1000000000, 1000000000,
	  .help = "added to the priority of each job" },
	{ "defaultDuration", SECONDS, ATQ(default_duration_s), "0", 0, INT32_MAX,
	  .help = "assumed for jobs that name none; 0: jobs.defaultDuration" },
	{ "maxDuration", SECONDS, ATQ(max_duration_s), "0", 0, INT32_MAX,
	  .help = "longest duration accepted; 0: any" },
	{ "maxSize", U32, ATQ(max_size), "0", 0, INT32_MAX,
	  .help = "largest gang accepted; 0: any" },
	{ "maxRunning", U32, ATQ(max_running), "0", 0, INT32_MAX,
	  .help = "jobs running at once; 0: any number" },
	{ "maxWaiting", U32, ATQ(max_waiting), "0", 0, INT32_MAX,
	  .help = "jobs waiting at once; 0: any number" },
	{ "maxRunningPerUser", U32, ATQ(max_running_per_user), "0", 0, INT32_MAX,
	  .help = "as maxRunning, for each namespace" },
	{ "maxWaitingPerUser", U32, ATQ(max_waiting_per_user), "0", 0, INT32_MAX,
	  .help = "as maxWaiting, for each namespace" },
	{ "nodeLabel", STR, ATQ(node_label), "",
	  .help = "key=value the nodes of this queue carry; empty: all nodes" },
	{ 0 },
};

static const struct row jobs_rows[] = {
	{ "defaultDuration", SECONDS, AT(jobs.default_duration_s), "1h", 0, INT32_MAX,
	  .help = "planned for jobs that name no duration; 0: without end. Nothing is ended by it" },
	{ "maxSize", U32, AT(jobs.max_size), "100000", 1, 1000000,
	  .help = "larger gangs are refused as a mistake" },
	{ "onMemberFailure", CHOICE, AT(jobs.on_member_failure), "replace",
	  .choice = member_failure,
	  .help = "a member fails: replace it on a fitting node, or restart the whole gang" },
	{ "holdVacant", SECONDS, AT(jobs.hold_vacant_s), "30s", 0, 86400,
	  .help = "how long the place of an ended member is kept for its successor" },
	{ "enforceDeadlines", BOOL, AT(jobs.enforce_deadlines), "false",
	  .help = "evict members that run longer than the duration they named" },
	{ 0 },
};

static const struct row place_rows[] = {
	{ "parallel", U32, AT(place.parallel), "64", 1, 1000, .restart = true,
	  .help = "bindings in flight at once" },
	{ "retryFor", SECONDS, AT(place.retry_s), "30s", 0, 3600,
	  .help = "how long a failing binding is tried before the gang is taken back" },
	{ 0 },
};

static const struct row status_rows[] = {
	{ "annotate", BOOL, AT(status.annotate), "true",
	  .help = "write position, start estimate and reason to waiting pods and PodGroups" },
	{ "interval", SECONDS, AT(status.interval_s), "5s", 1, 3600,
	  .help = "least time between two such writes for one job" },
	{ "audit", SECONDS, AT(status.audit_s), "60s", 1, 86400,
	  .help = "how often the books are compared with the cluster" },
	{ 0 },
};

static const struct row serve_rows[] = {
	{ "socket", STR, AT(serve.socket), "/run/sluice/sluiced.sock", .restart = true,
	  .help = "unix socket that the command speaks to; empty: none" },
	{ "https", STR, AT(serve.https), ":8443", .restart = true,
	  .help = "address of the HTTPS port (the command, metrics); empty: none" },
	{ "certificate", STR, AT(serve.certificate), "", .restart = true,
	  .help = "PEM file with the certificate of the HTTPS port; empty: one of our own" },
	{ "key", STR, AT(serve.key), "", .restart = true, .help = "PEM file with its key" },
	{ "names", STRS, AT(serve.names), "[localhost, sluice.sluice-system.svc]", .restart = true,
	  .help = "DNS names in a certificate of our own" },
	{ "namespace", STR, AT(serve.ns), "sluice-system", .restart = true,
	  .help = "of the Secret" },
	{ "secret", STR, AT(serve.secret), "sluice-https", .restart = true,
	  .help = "Secret that keeps our own certificate and its authority; made when missing; "
		  "empty: a new certificate at each start" },
	{ "health", STR, AT(serve.health), ":8081", .restart = true,
	  .help = "address of /healthz, /readyz and /metrics in plain HTTP; empty: none" },
	{ 0 },
};

static const struct row webhook_rows[] = {
	{ "enabled", BOOL, AT(webhook.enabled), "false", .restart = true,
	  .help = "note who submits what when, and refuse what is plainly wrong (deploy/webhook.yaml)" },
	{ "listen", STR, AT(webhook.listen), ":9443", .restart = true,
	  .help = "address it answers on" },
	{ "names", STRS, AT(webhook.names), "[sluice-webhook.sluice-system.svc]", .restart = true,
	  .help = "DNS names the API server may call it by" },
	{ "namespace", STR, AT(webhook.ns), "sluice-system", .restart = true,
	  .help = "of the Secret" },
	{ "secret", STR, AT(webhook.secret), "sluice-webhook", .restart = true,
	  .help = "Secret that keeps its authority and certificate; made when missing" },
	{ "configuration", STR, AT(webhook.configuration), "sluice", .restart = true,
	  .help = "MutatingWebhookConfiguration that is told the authority" },
	{ 0 },
};

static const struct row held_rows[] = {
	{ "selector", STR, AT(held.selector), "",
	  .help = "hold everything in namespaces with this label (key, or key=value), besides those labelled sluice.sh/hold" },
	{ "mode", CHOICE, AT(held.mode), "own", .choice = held_modes,
	  .help = "own: held work keeps its schedulerName; compatible: it gets FluxionScheduler, as Fluxqueue did" },
	{ "never", STRS, AT(held.never),
	  "[kube-system, kube-public, kube-node-lease, sluice-system]",
	  .help = "namespaces in which nothing is ever held" },
	{ "refusedFor", SECONDS, AT(held.refused_s), "60s", 1, 86400,
	  .help = "a released pod that its scheduler refuses for so long gets another place" },
	{ "placeTimeout", SECONDS, AT(held.appear_s), "10m", 5, 604800,
	  .help = "how long places are kept for the pods of a resumed Job that do not appear" },
	{ "ahead", U32, AT(held.ahead), "128", 0, 10000,
	  .help = "Jobs at the head of the queue are resumed early, up to so many pods, which wait at their gates; 0: none" },
	{ 0 },
};

static const char *const store_outage[] = { "hold", "continue", NULL };

static const struct row store_rows[] = {
	{ "url", STR, AT(store.url), "/var/lib/sluice/sluice.db", .restart = true,
	  .help = "SQLite file, postgres:// URL (also from DATABASE_URL), or memory: for none" },
	{ "outage", CHOICE, AT(store.outage), "hold", .choice = store_outage,
	  .help = "a store that cannot be written: hold new placements back, or continue with the cluster as the only memory" },
	{ "log", BOOL, AT(store.log), "true", .restart = true,
	  .help = "keep every event and decision, for sluice replay" },
	{ "keepFor", SECONDS, AT(store.keep_s), "30d", 3600, INT32_MAX,
	  .help = "history that is older is removed" },
	{ "keepMegabytes", U32, AT(store.keep_mb), "4096", 16, 1000000000,
	  .help = "history is removed, the oldest first, while the store is larger" },
	{ 0 },
};

static const struct row leader_rows[] = {
	{ "elect", BOOL, AT(leader.elect), "false", .restart = true,
	  .help = "several replicas: one decides, the others stand by" },
	{ "namespace", STR, AT(leader.ns), "sluice-system", .restart = true,
	  .help = "of the lease" },
	{ "name", STR, AT(leader.name), "sluice", .restart = true, .help = "of the lease" },
	{ "lease", SECONDS, AT(leader.lease_s), "15s", 3, 3600, .restart = true,
	  .help = "a leader that was silent for so long is replaced" },
	{ 0 },
};

static const struct row log_rows[] = {
	{ "level", CHOICE, AT(log.level), "info", .choice = log_levels,
	  .help = "least important line that is written" },
	{ "format", CHOICE, AT(log.format), "text", .choice = log_formats,
	  .help = "text for people, json for machines" },
	{ 0 },
};

static const struct row top_rows[] = {
	{ "schedulerNames", STRS, AT(scheduler_names),
	  "[sluice, fluence, fluxnetes, FluxionScheduler, kubeflux, scheduling-plugin]",
	  .restart = true, .help = "pods that name one of these are placed by Sluice" },
	{ "kube", SECTION, .sub = kube_rows, .help = "the API server" },
	{ "nodes", SECTION, .sub = nodes_rows, .help = "which nodes are used, and what is close" },
	{ "match", SECTION, .sub = match_rows, .help = "the choice of nodes" },
	{ "queues", LIST, AT(queue), "[{name: default}]", .sub = queue_rows,
	  .size = sizeof(struct slu_config_queue), .n_off = AT(n_queues), .restart = true,
	  .help = "the queues; the first takes jobs that name none" },
	{ "jobs", SECTION, .sub = jobs_rows, .help = "gangs" },
	{ "place", SECTION, .sub = place_rows, .help = "writing decisions to the cluster" },
	{ "status", SECTION, .sub = status_rows, .help = "what is told about waiting work" },
	{ "serve", SECTION, .sub = serve_rows, .help = "where the daemon listens" },
	{ "webhook", SECTION, .sub = webhook_rows, .help = "admission" },
	{ "held", SECTION, .sub = held_rows, .help = "work held at the door" },
	{ "store", SECTION, .sub = store_rows, .help = "what outlives the daemon" },
	{ "leader", SECTION, .sub = leader_rows, .help = "high availability" },
	{ "log", SECTION, .sub = log_rows, .help = "its own log" },
	{ 0 },
};

/* ---- reading ---- */

struct reader {
	const char *file;
	const struct slu_json_doc *doc; /* of the file; NULL while defaults are read */
	struct slu_config *c;
	struct slu_error *err;
	char path[256]; /* of the value being read */
};

static int wrong(struct reader *r, const struct slu_json *v, int code, const char *fmt, ...)
	SLU_PRINTF(4, 5);

static int wrong(struct reader *r, const struct slu_json *v, int code, const char *fmt, ...)
{
	uint32_t line = r->doc && v ? slu_json_line(r->doc, v) : 0;
	char what[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (line)
		return slu_fail(r->err, code, "%s:%u: %s%s%s", r->file, line, r->path,
				*r->path ? ": " : "", what);
	return slu_fail(r->err, code, "%s: %s%s%s", r->file, r->path, *r->path ? ": " : "", what);
}

int slu_config_seconds(const char *s, int64_t *out)
{
	static const struct {
		char c;
		int64_t s;
	} unit[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	int64_t v = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++)
		if (slu_mul_i64(v, 10, &v) || slu_add_i64(v, *p - '0', &v))
			return -ERANGE;
	if (p == s)
		return -EINVAL;
	if (*p) {
		int64_t factor = 0;

		for (size_t i = 0; i < SLU_LEN(unit); i++)
			if (unit[i].c == *p)
				factor = unit[i].s;
		if (!factor || p[1])
			return -EINVAL;
		if (slu_mul_i64(v, factor, &v))
			return -ERANGE;
	}
	*out = v;
	return 0;
}

static int read_str(struct reader *r, const struct slu_json *v, const char **out)
{
	const char *s = slu_json_str(v);

	if (!s)
		return wrong(r, v, -EINVAL, "expected a string");
	*out = slu_arena_strndup(&r->c->arena, s, slu_json_count(v));
	return *out ? 0 : slu_fail(r->err, -ENOMEM, "out of memory");
}

static int read_choice(struct reader *r, const struct row *row, const struct slu_json *v,
		       const char **out)
{
	char list[200] = "";
	const char *s = slu_json_str(v);

	for (const char *const *c = row->choice; *c; c++) {
		if (s && !strcmp(*c, s)) {
			*out = *c;
			return 0;
		}
		if (*list)
			strncat(list, ", ", sizeof list - strlen(list) - 1);
		strncat(list, *c, sizeof list - strlen(list) - 1);
	}
	return wrong(r, v, -EINVAL, "expected one of %s", list);
}

static int read_i64(struct reader *r, const struct row *row, const struct slu_json *v, int64_t *out)
{
	int64_t n;

	if (slu_json_i64(v, &n) < 0)
		return wrong(r, v, -EINVAL, "expected a whole number");
	if (n < row->min || n > row->max)
		return wrong(r, v, -ERANGE, "%" PRId64 " is outside %" PRId64 "..%" PRId64, n,
			     row->min, row->max);
	*out = n;
	return 0;
}

static int read_seconds(struct reader *r, const struct row *row, const struct slu_json *v,
			int64_t *out)
{
	int64_t n;

	if (slu_json_i64(v, &n) < 0) {
		const char *s = slu_json_str(v);
		int rc = s ? slu_config_seconds(s, &n) : -EINVAL;

		if (rc == -ERANGE)
			return wrong(r, v, rc, "too long");
		if (rc < 0)
			return wrong(r, v, rc, "expected a duration such as 90s, 15m, 12h, 7d");
	}
	if (n < row->min || n > row->max)
		return wrong(r, v, -ERANGE, "%" PRId64 " s is outside %" PRId64 "..%" PRId64, n,
			     row->min, row->max);
	*out = n;
	return 0;
}

static int read_strs(struct reader *r, const struct slu_json *v, struct slu_config_strs *out)
{
	size_t n = slu_json_count(v);
	struct slu_config_strs s = { 0 };

	if (!slu_json_is_arr(v) || !n || n > LIST_MAX)
		return wrong(r, v, -EINVAL, "expected a list of 1 to %d strings", LIST_MAX);
	s.p = slu_arena_zalloc(&r->c->arena, n * sizeof *s.p);
	if (!s.p)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	slu_json_each (v, it) {
		int rc = read_str(r, it.val, &s.p[s.n++]);

		if (rc < 0)
			return rc;
	}
	*out = s;
	return 0;
}

static int read_rows(struct reader *r, const struct row *rows, const struct slu_json *v, void *to);

static int read_list(struct reader *r, const struct row *row, const struct slu_json *v, void *to)
{
	size_t n = slu_json_count(v), len = strlen(r->path);
	uint32_t i = 0;
	char *p;

	if (!slu_json_is_arr(v) || n > LIST_MAX)
		return wrong(r, v, -EINVAL, "expected a list of at most %d", LIST_MAX);
	p = slu_arena_zalloc(&r->c->arena, n * row->size + 1);
	if (!p)
		return slu_fail(r->err, -ENOMEM, "out of memory");
	slu_json_each (v, it) {
		int rc;

		snprintf(r->path + len, sizeof r->path - len, "[%u]", i);
		rc = read_rows(r, row->sub, it.val, p + i * row->size);
		if (rc < 0)
			return rc;
		i++;
	}
	r->path[len] = 0;
	memcpy((char *)to + row->off, &p, sizeof p);
	memcpy((char *)to + row->n_off, &i, sizeof i);
	return 0;
}

static int read_value(struct reader *r, const struct row *row, const struct slu_json *v, void *to)
{
	void *at = (char *)to + row->off;
	int64_t n;
	int rc = 0;

	switch (row->type) {
	case STR:
		return read_str(r, v, at);
	case BOOL:
		if (slu_json_bool(v, at) < 0)
			return wrong(r, v, -EINVAL, "expected true or false");
		return 0;
	case U32:
		rc = read_i64(r, row, v, &n);
		if (!rc)
			*(uint32_t *)at = (uint32_t)n;
		return rc;
	case I32:
		rc = read_i64(r, row, v, &n);
		if (!rc)
			*(int32_t *)at = (int32_t)n;
		return rc;
	case REAL: {
		double d;

		if (slu_json_f64(v, &d) < 0 || !(d >= (double)row->min && d <= (double)row->max))
			return wrong(r, v, -ERANGE, "expected a number in %" PRId64 "..%" PRId64,
				     row->min, row->max);
		*(double *)at = d;
		return 0;
	}
	case SECONDS:
		return read_seconds(r, row, v, at);
	case CHOICE:
		return read_choice(r, row, v, at);
	case STRS:
		return read_strs(r, v, at);
	case LIST:
		return read_list(r, row, v, to);
	case SECTION:
		return read_rows(r, row->sub, v, to);
	}
	return rc;
}

static int read_default(struct reader *r, const struct row *row, void *to)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json_doc *of = r->doc;
	int rc;

	if (!row->def)
		return row->type == SECTION ? read_rows(r, row->sub, NULL, to)
					    : wrong(r, NULL, -EINVAL, "is missing");
	if (row->type == STR) {
		memcpy((char *)to + row->off, &row->def, sizeof row->def);
		return 0;
	}
	rc = slu_yaml_parse(row->def, strlen(row->def), 0, NULL, &doc, r->err);
	if (rc < 0)
		return rc;
	r->doc = NULL;
	rc = read_value(r, row, slu_json_root(doc), to);
	r->doc = of;
	return rc;
}

/* Number of letters to change, for "did you mean". */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[64], n = (unsigned)strlen(b);

	if (n >= SLU_LEN(row))
		return UINT32_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diag = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			unsigned sub = diag + (*a != b[j - 1]);
			unsigned one = SLU_MIN(row[j], row[j - 1]) + 1;

			diag = row[j];
			row[j] = SLU_MIN(sub, one);
		}
	}
	return row[n];
}

static int unknown_key(struct reader *r, const struct row *rows, const struct slu_json *keyval,
		       const char *key)
{
	const char *near = NULL;
	unsigned best = 4;

	for (const struct row *row = rows; row->key; row++) {
		unsigned d = distance(key, row->key);

		if (d < best) {
			best = d;
			near = row->key;
		}
	}
	if (near)
		return wrong(r, keyval, -EINVAL, "no setting \"%.60s\"; did you mean \"%s\"?", key,
			     near);
	return wrong(r, keyval, -EINVAL, "no setting \"%.60s\"", key);
}

/* v NULL or null: everything at its default. */
static int read_rows(struct reader *r, const struct row *rows, const struct slu_json *v, void *to)
{
	size_t len = strlen(r->path);

	if (v && !slu_json_is_null(v) && !slu_json_is_obj(v))
		return wrong(r, v, -EINVAL, "expected settings, \"name: value\"");
	slu_json_each (v, it) {
		const struct row *row = rows;

		while (row->key && strcmp(row->key, it.key))
			row++;
		if (!row->key)
			return unknown_key(r, rows, it.keyval, it.key);
	}
	for (const struct row *row = rows; row->key; row++) {
		const struct slu_json *val = slu_json_get(v, row->key);
		int rc;

		snprintf(r->path + len, sizeof r->path - len, "%s%s", len ? "." : "", row->key);
		if (val && !slu_json_is_null(val))
			rc = read_value(r, row, val, to);
		else
			rc = read_default(r, row, to);
		if (rc < 0)
			return rc;
	}
	r->path[len] = 0;
	return 0;
}

static int check_names(struct reader *r)
{
	struct slu_config *c = r->c;

	snprintf(r->path, sizeof r->path, "queues");
	if (!c->n_queues)
		return wrong(r, NULL, -EINVAL, "at least one queue is needed");
	for (uint32_t i = 0; i < c->n_queues; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(c->queue[i].name, c->queue[j].name))
				return wrong(r, NULL, -EINVAL, "two queues are called \"%s\"",
					     c->queue[i].name);
	snprintf(r->path, sizeof r->path, "nodes.topology");
	for (uint32_t i = 0; i < c->nodes.n_levels; i++)
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(c->nodes.level[i].name, c->nodes.level[j].name))
				return wrong(r, NULL, -EINVAL, "two levels are called \"%s\"",
					     c->nodes.level[i].name);
	return 0;
}

int slu_config_parse(const char *file, const char *text, size_t n, struct slu_config **out,
		     struct slu_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	slu_cleanup(slu_config_freep) struct slu_config *c = slu_calloc(1, sizeof *c);
	struct slu_yaml_limits lim = { .max_bytes = FILE_MAX,
				       .max_depth = 16,
				       .max_values = 100000 };
	struct reader r = { .file = file, .c = c, .err = err };
	int rc;

	if (!c)
		return slu_fail(err, -ENOMEM, "out of memory");
	rc = slu_yaml_parse(text, n, 0, &lim, &doc, err);
	if (rc < 0)
		return slu_fail_prefix(err, rc, "%s", file);
	r.doc = doc;
	rc = read_rows(&r, top_rows, slu_json_root(doc), c);
	if (!rc)
		rc = check_names(&r);
	if (rc < 0)
		return rc;
	*out = slu_take(c);
	return 0;
}

int slu_config_default(struct slu_config **out, struct slu_error *err)
{
	return slu_config_parse("defaults", "", 0, out, err);
}

int slu_config_read(const char *file, struct slu_config **out, struct slu_error *err)
{
	slu_cleanup(slu_freep) char *text = NULL;
	size_t n = 0;
	ssize_t got = 0;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return slu_fail(err, -errno, "%s: %s", file, strerror(errno));
	text = slu_malloc(FILE_MAX + 1);
	while (text && n <= FILE_MAX && (got = read(fd, text + n, FILE_MAX + 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	if (!text)
		return slu_fail(err, -ENOMEM, "out of memory");
	if (got < 0)
		return slu_fail(err, -EIO, "%s: cannot be read", file);
	if (n > FILE_MAX)
		return slu_fail(err, -EMSGSIZE, "%s: larger than %d bytes", file, FILE_MAX);
	return slu_config_parse(file, text, n, out, err);
}

void slu_config_free(struct slu_config *c)
{
	if (!c)
		return;
	slu_arena_done(&c->arena);
	slu_free(c);
}

/* ---- printing ---- */

static void write_rows(const struct row *rows, const void *from, struct slu_jsonw *w);

static void write_value(const struct row *row, const void *from, struct slu_jsonw *w)
{
	const void *at = (const char *)from + row->off;

	switch (row->type) {
	case STR:
	case CHOICE:
		slu_jsonw_str(w, *(const char *const *)at);
		break;
	case BOOL:
		slu_jsonw_bool(w, *(const bool *)at);
		break;
	case U32:
		slu_jsonw_u64(w, *(const uint32_t *)at);
		break;
	case I32:
		slu_jsonw_i64(w, *(const int32_t *)at);
		break;
	case REAL:
		slu_jsonw_f64(w, *(const double *)at);
		break;
	case SECONDS:
		slu_jsonw_i64(w, *(const int64_t *)at);
		break;
	case STRS: {
		const struct slu_config_strs *s = at;

		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < s->n; i++)
			slu_jsonw_str(w, s->p[i]);
		slu_jsonw_end_arr(w);
		break;
	}
	case LIST: {
		const char *p;
		uint32_t n;

		memcpy(&p, at, sizeof p);
		memcpy(&n, (const char *)from + row->n_off, sizeof n);
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < n; i++)
			write_rows(row->sub, p + i * row->size, w);
		slu_jsonw_end_arr(w);
		break;
	}
	case SECTION:
		write_rows(row->sub, from, w);
		break;
	}
}

static void write_rows(const struct row *rows, const void *from, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	for (const struct row *row = rows; row->key; row++) {
		slu_jsonw_key(w, row->key);
		write_value(row, from, w);
	}
	slu_jsonw_end_obj(w);
}

void slu_config_write(const struct slu_config *c, struct slu_jsonw *w)
{
	write_rows(top_rows, c, w);
}

static void schema_rows(const struct row *rows, struct slu_jsonw *w);

static void schema_row(const struct row *row, struct slu_jsonw *w)
{
	static const char *const name[] = {
		[STR] = "string",  [BOOL] = "boolean", [U32] = "integer",
		[I32] = "integer", [REAL] = "number",  [CHOICE] = "string",
		[STRS] = "array",  [LIST] = "array",   [SECTION] = "object",
	};

	slu_jsonw_key(w, row->key);
	if (row->type == SECTION) {
		schema_rows(row->sub, w);
		return;
	}
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "description", row->help);
	if (row->type == SECONDS) {
		slu_jsonw_key(w, "type");
		slu_jsonw_arr(w);
		slu_jsonw_str(w, "integer");
		slu_jsonw_str(w, "string");
		slu_jsonw_end_arr(w);
		slu_jsonw_kstr(w, "pattern", "^[0-9]+[smhd]?$");
	} else {
		slu_jsonw_kstr(w, "type", name[row->type]);
	}
	if (row->def)
		slu_jsonw_kstr(w, "x-default", row->def);
	if (row->max) {
		slu_jsonw_ki64(w, "minimum", row->min);
		slu_jsonw_ki64(w, "maximum", row->max);
	}
	if (row->type == CHOICE) {
		slu_jsonw_key(w, "enum");
		slu_jsonw_arr(w);
		for (const char *const *c = row->choice; *c; c++)
			slu_jsonw_str(w, *c);
		slu_jsonw_end_arr(w);
	}
	if (row->type == STRS || row->type == LIST) {
		slu_jsonw_key(w, "items");
		if (row->type == LIST) {
			schema_rows(row->sub, w);
		} else {
			slu_jsonw_obj(w);
			slu_jsonw_kstr(w, "type", "string");
			slu_jsonw_end_obj(w);
		}
	}
	slu_jsonw_kbool(w, "x-restart", row->restart);
	slu_jsonw_end_obj(w);
}

static void schema_rows(const struct row *rows, struct slu_jsonw *w)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", "object");
	slu_jsonw_kbool(w, "additionalProperties", false);
	slu_jsonw_key(w, "properties");
	slu_jsonw_obj(w);
	for (const struct row *row = rows; row->key; row++)
		schema_row(row, w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
}

void slu_config_schema(struct slu_jsonw *w)
{
	schema_rows(top_rows, w);
}

static void diff_rows(const struct row *rows, const char *section, const void *a, const void *b,
		      struct slu_buf *out)
{
	for (const struct row *row = rows; row->key; row++) {
		struct slu_buf x = SLU_BUF_INIT(FILE_MAX), y = SLU_BUF_INIT(FILE_MAX);
		struct slu_jsonw wx = slu_jsonw(&x, SLU_JSONW_COMPACT);
		struct slu_jsonw wy = slu_jsonw(&y, SLU_JSONW_COMPACT);

		if (row->type == SECTION) {
			diff_rows(row->sub, row->key, a, b, out);
			continue;
		}
		if (!row->restart)
			continue;
		write_value(row, a, &wx);
		write_value(row, b, &wy);
		if (strcmp(slu_buf_str(&x), slu_buf_str(&y)))
			slu_buf_printf(out, "%s%s%s%s", out->n ? ", " : "", section,
				       *section ? "." : "", row->key);
		slu_buf_done(&x);
		slu_buf_done(&y);
	}
}

void slu_config_needs_restart(const struct slu_config *old, const struct slu_config *now,
			      struct slu_buf *out)
{
	diff_rows(top_rows, "", old, now, out);
}
