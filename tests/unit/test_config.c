#include "control/config/config.h"
#include "queue/queue.h"
#include "tap.h"
#include "wire/json.h"

static void test_defaults(void)
{
	struct slu_error err = { 0 };
	slu_cleanup(slu_config_freep) struct slu_config *c = NULL;

	ok(slu_config_default(&c, &err) == 0, "defaults are sound (%s)", err.text);
	ok(c->scheduler_names.n == 6 && !strcmp(c->scheduler_names.p[1], "fluence"),
	   "the compatible scheduler names are there");
	ok(c->n_queues == 1 && !strcmp(c->queue[0].name, "default") &&
		   !strcmp(c->queue[0].objective, "balanced"),
	   "by default there is one queue, with the objective balanced");
	ok(c->nodes.n_levels == 3 && !strcmp(c->nodes.level[2].label, "topology.sluice.sh/rack"),
	   "three levels of closeness");
	ok(c->jobs.default_duration_s == 3600 && c->place.parallel == 64,
	   "numbers and durations have their defaults");
}

/* An objective is a policy, an order and a bound; what is set beside it wins. */
static void test_objectives(void)
{
	static const struct {
		const char *set;
		enum slu_policy policy;
		enum slu_backfill backfill;
		uint32_t stretch;
		int64_t wait_s;
	} row[] = {
		{ "", SLU_POLICY_SELECTIVE, SLU_BACKFILL_BALANCED, 20, 172800 },
		{ ", objective: throughput", SLU_POLICY_EASY, SLU_BACKFILL_PACKED, 0, 0 },
		{ ", objective: response, maxStretch: 7", SLU_POLICY_SELECTIVE,
		  SLU_BACKFILL_SHORTEST, 7, 345600 },
		{ ", objective: order", SLU_POLICY_EASY, SLU_BACKFILL_SUBMISSION, 0, 0 },
		{ ", policy: easy", SLU_POLICY_EASY, SLU_BACKFILL_PACKED, 20, 172800 },
		{ ", policy: fcfs", SLU_POLICY_FCFS, SLU_BACKFILL_SUBMISSION, 20, 172800 },
		{ ", policy: easy, backfill: shortest", SLU_POLICY_EASY, SLU_BACKFILL_SHORTEST, 20,
		  172800 },
		{ ", maxWait: 1h", SLU_POLICY_SELECTIVE, SLU_BACKFILL_BALANCED, 20, 3600 },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		slu_cleanup(slu_config_freep) struct slu_config *c = NULL;
		struct slu_queue_conf conf = { 0 };
		struct slu_error err = { 0 };
		char text[128];

		snprintf(text, sizeof text, "queues:\n- {name: a%s}\n", row[i].set);
		int rc = slu_config_parse("f", text, strlen(text), &c, &err);

		if (!rc)
			rc = slu_config_policy(&c->queue[0], &conf, &err);
		ok(!rc && conf.policy == row[i].policy && conf.backfill == row[i].backfill &&
			   conf.max_stretch == row[i].stretch && conf.max_wait_s == row[i].wait_s,
		   "a queue with \"%s\": %s/%s, %u, %lld (%s)", row[i].set,
		   slu_policy_name(conf.policy), slu_backfill_name(conf.backfill), conf.max_stretch,
		   (long long)conf.max_wait_s, err.text);
	}
}

static void test_messages(void)
{
	static const struct {
		const char *yaml;
		int rc;
		const char *text;
	} row[] = {
		{ "jobs:\n  defaultDuration: 2h\n", 0, "" },
		{ "", 0, "" },
		{ "jobs: {defaultDuration: 15x}", -EINVAL,
		  "f.yaml:1: jobs.defaultDuration: expected a duration such as 90s, 15m, 1h30m, 7d, 01:30:00" },
		{ "place:\n  paralel: 3\n", -EINVAL,
		  "f.yaml:2: place: no setting \"paralel\"; did you mean \"parallel\"?" },
		{ "a: 1\n", -EINVAL, "f.yaml:1: no setting \"a\"" },
		{ "place:\n  parallel: 0\n", -ERANGE,
		  "f.yaml:2: place.parallel: 0 is outside 1..1000" },
		{ "queues:\n- name: a\n- name: b\n  policy: best\n", -EINVAL,
		  "f.yaml:4: queues[1].policy: expected one of auto, fcfs, easy, hybrid, conservative, first-fit, selective" },
		{ "queues:\n- {name: a, objective: fast}\n", -EINVAL,
		  "f.yaml:2: queues[0].objective: expected one of balanced, throughput, response, order" },
		{ "queues:\n- {name: a, objective: response, maxStretch: 5, maxWait: 12h}\n", 0,
		  "" },
		{ "queues:\n- {name: a, policy: selective, maxStretch: 5}\n", 0, "" },
		{ "queues:\n- {name: a, objective: order, maxStretch: 5}\n", -EINVAL,
		  "f.yaml: queues[0]: maxStretch and maxWait are bounds of the objectives balanced and "
		  "response; this queue promises in order of arrival" },
		{ "queues:\n- policy: easy\n", -EINVAL, "f.yaml: queues[0].name: is missing" },
		{ "queues:\n- name: a\n- name: a\n", -EINVAL,
		  "f.yaml: queues: two queues are called \"a\"" },
		{ "queues: []\n", -EINVAL, "f.yaml: queues: at least one queue is needed" },
		{ "match: {policy: spread}\n", 0, "" },
		{ "match: {policy: lonodex}\n", 0, "" },
		{ "match: {policy: best}\n", -EINVAL,
		  "f.yaml:1: match.policy: expected one of first, low, high, lonode, hinode, "
		  "firstnodex, lonodex, hinodex, locality, pack, spread" },
		{ "- a\n", -EINVAL, "f.yaml:1: expected settings, \"name: value\"" },
		{ "nodes: {controlPlane: perhaps}\n", -EINVAL,
		  "f.yaml:1: nodes.controlPlane: expected true or false" },
		{ "log: {level: debug}\nqueues: [{name: a}]\nlog: {format: json}\n", -EINVAL,
		  "f.yaml:3: \"log\" is set twice" },
		{ "queues:\n- {name: a, depth: 1, depth: 1}\n", -EINVAL,
		  "f.yaml:2: queues[0]: \"depth\" is set twice" },
		{ "queues:\n- name: a\n  maxDuration: 10m\n", -EINVAL,
		  "f.yaml: queues[0]: maxDuration 600 s is below jobs.defaultDuration 3600 s: "
		  "every job without a duration would be refused" },
		{ "queues:\n- name: a\n  maxDuration: 10m\n  defaultDuration: 11m\n", -EINVAL,
		  "f.yaml: queues[0]: maxDuration 600 s is below defaultDuration 660 s: "
		  "every job without a duration would be refused" },
		{ "jobs: {defaultDuration: 0}\nqueues:\n- {name: a, maxDuration: 10m}\n", -EINVAL,
		  "f.yaml: queues[0]: maxDuration 600 s is below jobs.defaultDuration 0 (without end): "
		  "every job without a duration would be refused" },
		{ "jobs: {defaultDuration: 5m}\nqueues:\n- {name: a, maxDuration: 10m}\n", 0, "" },
		{ "schedulerNames: []\n", -EINVAL,
		  "f.yaml:1: schedulerNames: expected a list of 1 to 1024 strings" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_error err = { 0 };
		slu_cleanup(slu_config_freep) struct slu_config *c = NULL;
		int rc = slu_config_parse("f.yaml", row[i].yaml, strlen(row[i].yaml), &c, &err);

		ok(rc == row[i].rc && !strcmp(err.text, row[i].text), "row %zu: \"%s\"", i,
		   err.text);
	}
}

static void test_seconds(void)
{
	static const struct {
		const char *in;
		int rc;
		int64_t s;
	} row[] = {
		{ "90", 0, 90 },
		{ "90s", 0, 90 },
		{ "15m", 0, 900 },
		{ "12h", 0, 43200 },
		{ "7d", 0, 604800 },
		{ "1w", 0, 604800 },
		{ "1h30m", 0, 5400 },
		{ "1d12h30m5s", 0, 131405 },
		{ "1.5h", 0, 5400 },
		{ "0.5s", 0, 1 },
		{ "1.25", 0, 2 },
		{ "01:30:00", 0, 5400 },
		{ "100:00:01", 0, 360001 },
		{ "7-12:00:00", 0, 648000 },
		{ "30m1h", -EINVAL, -1 },
		{ "1h1h", -EINVAL, -1 },
		{ "1h30", -EINVAL, -1 },
		{ "1.h", -EINVAL, -1 },
		{ ".5h", -EINVAL, -1 },
		{ "1:30", -EINVAL, -1 },
		{ "01:60:00", -EINVAL, -1 },
		{ "1-24:00:00", -EINVAL, -1 },
		{ "01:30:00s", -EINVAL, -1 },
		{ "1.5:30:00", -EINVAL, -1 },
		{ "9223372036854775807:00:00", -ERANGE, -1 },
		{ "", -EINVAL, -1 },
		{ "s", -EINVAL, -1 },
		{ "1hh", -EINVAL, -1 },
		{ "-1", -EINVAL, -1 },
		{ "99999999999999999999", -ERANGE, -1 },
		{ "9223372036854775807d", -ERANGE, -1 },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		int64_t s = -1;
		int rc = slu_config_seconds(row[i].in, &s);

		ok(rc == row[i].rc && s == row[i].s, "the duration \"%s\" is read as it should be",
		   row[i].in);
	}
}

static void test_visible(void)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20), diff = SLU_BUF_INIT(1000);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	const char *text = "log: {level: debug}\nserve: {health: \":9\"}\n";
	slu_cleanup(slu_config_freep) struct slu_config *a = NULL, *c = NULL;
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;

	ok(!slu_config_default(&a, NULL) && !slu_config_parse("f", text, strlen(text), &c, NULL),
	   "two configurations can be read");
	slu_config_write(c, &w);
	ok(!slu_json_parse(b.p, b.n, NULL, &doc, NULL), "the printed form is JSON");
	ok(!strcmp(slu_json_str_or(slu_json_dig(slu_json_root(doc), "log", "level", NULL), ""),
		   "debug") &&
		   slu_json_i64_or(slu_json_dig(slu_json_root(doc), "status", "interval", NULL),
				   0) == 5,
	   "values in force are visible, defaults too");
	slu_config_needs_restart(a, c, &diff);
	ok(!strcmp(slu_buf_str(&diff), "serve.health"), "a reload names what needs a restart (%s)",
	   slu_buf_str(&diff));
	a->store.url = "postgres://ada:first@db/x";
	c->store.url = "postgres://ada:second@db/x";
	slu_buf_reset(&b);
	slu_buf_reset(&diff);
	w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	slu_config_write(c, &w);
	slu_config_needs_restart(a, c, &diff);
	ok(!strstr(slu_buf_str(&b), "second") && strstr(slu_buf_str(&b), "postgres://ada:***@db/x"),
	   "the password of a store is not shown");
	ok(strstr(slu_buf_str(&diff), "store.url"), "a new one is noticed all the same");
	slu_buf_reset(&b);
	w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	slu_config_schema(&w);
	slu_json_free(slu_take(doc));
	ok(!slu_json_parse(b.p, b.n, NULL, &doc, NULL) &&
		   slu_json_dig(slu_json_root(doc), "properties", "queues", "items", "properties",
				"policy", "enum", NULL),
	   "the schema is JSON and goes down to the policies");
	slu_buf_done(&b);
	slu_buf_done(&diff);
}

static void test_memory_of(const char *text)
{
	for (long k = 0;; k++) {
		struct slu_config *c = NULL;
		int rc;

		slu_fault_arm(k);
		rc = slu_config_parse("f", text, strlen(text), &c, NULL);
		if (!slu_fault_disarm()) {
			ok(rc == 0, "clean after %ld faults", k);
			slu_config_free(c);
			return;
		}
		if (rc != -ENOMEM || c) {
			ok(false, "allocation %ld: rc %d", k, rc);
			return;
		}
	}
}

/* The file of the scheduler that was there before, and its names of policies. */
static void test_foreign(void)
{
	static const char file[] =
		"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
		"leaderElection: {leaderElect: true, resourceName: fluence, leaseDuration: 20s,\n"
		"  retryPeriod: 2s}\n"
		"clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 50, burst: 70}\n"
		"profiles:\n- schedulerName: fluence\n  plugins: {multiPoint: {enabled: [{name: Fluence}]}}\n"
		"- schedulerName: other\n";
	static const struct {
		const char *text, *policy, *ignored;
	} row[] = {
		{ "match: {policy: hi}", "high", "" },
		{ "match: {policy: high}", "high", "" },
		{ "match: {policy: variation}", "lonode", "match.policy: variation" },
	};
	static const struct {
		const char *text, *err;
	} bad[] = {
		{ "kind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: maybe}",
		  "leader.elect: " },
		{ "kind: KubeSchedulerConfiguration\nclientConnection: {qps: fast}", "kube.qps: " },
		{ "kind: SomethingElse\n", "kind" },
		{ "match: {policy: highest}", "match.policy: expected one of first" },
	};
	struct slu_config *c = NULL;
	struct slu_error err = { 0 };

	ok(slu_config_parse("f", file, strlen(file), &c, &err) == 0,
	   "a KubeSchedulerConfiguration is read (%s)", err.text);
	if (!c)
		return;
	ok(c->scheduler_names.n == 2 && !strcmp(c->scheduler_names.p[0], "fluence") &&
		   !strcmp(c->scheduler_names.p[1], "other"),
	   "the scheduler names are taken over");
	ok(c->leader.elect && !strcmp(c->leader.name, "fluence") && c->leader.lease_s == 20,
	   "the lease of the original's file is read");
	ok(c->kube.qps == 50 && c->kube.burst == 70, "the rates of the original's file are read");
	ok(!strcmp(c->ignored,
		   "leaderElection.retryPeriod, clientConnection.kubeconfig, profiles.plugins"),
	   "an option without meaning here is named: %s", c->ignored);
	slu_config_free(c);
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		c = NULL;
		ok(slu_config_parse("f", row[i].text, strlen(row[i].text), &c, &err) == 0 &&
			   !strcmp(c->match.policy, row[i].policy) &&
			   !strcmp(c->ignored, row[i].ignored),
		   "%s: %s, ignored: \"%s\"", row[i].text, c ? c->match.policy : err.text,
		   c ? c->ignored : "");
		slu_config_free(c);
	}
	for (size_t i = 0; i < SLU_LEN(bad); i++) {
		c = NULL;
		ok(slu_config_parse("f", bad[i].text, strlen(bad[i].text), &c, &err) < 0 &&
			   strstr(err.text, bad[i].err) && !strchr(err.text, '\n'),
		   "a file with a mistake is refused in one line: %s", err.text);
		slu_config_free(c);
	}
}

int main(void)
{
	test_defaults();
	test_objectives();
	test_messages();
	test_seconds();
	test_visible();
	test_foreign();
	test_memory_of("queues:\n- {name: a, policy: fcfs}\nschedulerNames: [one, two]\n");
	test_memory_of(
		"kind: KubeSchedulerConfiguration\nprofiles:\n- {schedulerName: a, plugins: {}}\n");
	return tap_done();
}
