/* FluxJobs: what their jobspecs ask for, how held work is written as one, and their life. */
#include "control/cluster/cluster.h"
#include "control/fluxjob/fluxjob.h"
#include "control/rules/fluxjob.h"
#include "core_kit.h"

/* ---- jobspecs ---- */

#define HEAD "version: 1\nresources:\n"
#define TAIL(d)                                                                                      \
	"tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\nattributes: {system: {duration: " d \
	"}}\n"

struct want {
	const char *text;
	int rc;
	const char *roles, *words; /* "min-max cores memory gpus alone;"  words of the error */
};

static const struct want table[] = {
	/* the forms users of Fluxqueue wrote */
	{ HEAD "- type: node\n  count: 4\n  with:\n  - type: slot\n    count: 1\n    label: s\n"
	       "    with: [{type: core, count: 2}]\n" TAIL("0"),
	  0, "4-4 2 0 0 alone;", NULL },
	{ "version: 9999\nresources:\n- type: slot\n  count: 4\n  label: s\n  with:\n"
	  "  - {type: core, count: 2}\n  - {type: memory, count: 3072, unit: MB}\n"
	  "  - {type: gpu, count: 1}\n" TAIL("1800"),
	  0, "4-4 2 3221225472 1;", NULL },
	/* several slots in a node, sockets between, a slot of nodes, ranges, two kinds */
	{ HEAD "- type: node\n  count: 2\n  with:\n  - type: socket\n    count: 2\n    with:\n"
	       "    - {type: slot, count: 3, label: s, with: [{type: core, count: 4}]}\n" TAIL("0"),
	  0, "2-2 24 0 0 alone;", NULL },
	{ HEAD "- type: slot\n  count: 2\n  label: s\n  with:\n"
	       "  - {type: node, count: 3, with: [{type: core, count: 1}]}\n" TAIL("0"),
	  0, "6-6 1 0 0 alone;", NULL },
	{ HEAD "- type: slot\n  count: {min: 2, max: 5, operator: \"+\", operand: 1}\n  label: s\n"
	       "  with: [{type: core, count: 1}]\n" TAIL("0"),
	  0, "2-5 1 0 0;", NULL },
	{ HEAD "- {type: slot, count: {min: 2}, label: s, with: [{type: core, count: 1}]}\n"
	       "- {type: slot, count: 1, label: t, with: [{type: gpu, count: 1}]}\n" TAIL("0"),
	  0, "2-2 1 0 0;1-1 0 0 1;", NULL },
	{ HEAD "- type: rack\n  count: 1\n  with:\n  - type: slot\n    count: 2\n    label: s\n"
	       "    with: [{type: core, count: 1}]\n" TAIL("0"),
	  0, "2-2 1 0 0;@rack", NULL },
	/* what makes no sense */
	{ "", -EINVAL, NULL, "spec.jobspec is empty" },
	{ " \n\t", -EINVAL, NULL, "spec.jobspec is empty" },
	{ "version: [", -EINVAL, NULL, "spec.jobspec: yaml" },
	{ "resources: []", -EINVAL, NULL, "Missing key \"version\"" },
	{ HEAD "- {type: core, count: 2}\n" TAIL("0"), -EINVAL, NULL, "core outside a slot" },
	{ HEAD
	  "- type: rack\n  count: 2\n  with:\n  - {type: slot, count: 1, label: s}\n" TAIL("0"),
	  -EINVAL, NULL, "only one rack" },
	{ HEAD "- {type: llama, count: 2}\n" TAIL("0"), -EINVAL, NULL, "\"type\"" },
	{ HEAD
	  "- {type: slot, count: 4000000000, label: s, with: [{type: core, count: 1}]}\n" TAIL("0"),
	  -EINVAL, NULL, "outside 1..10000" },
	{ HEAD
	  "- {type: slot, count: 1, label: s, with: [{type: socket, count: 4000000000, with: "
	  "[{type: socket, count: 4000000000, with: [{type: core, count: 4000000000}]}]}]}\n" TAIL(
		  "0"),
	  -EINVAL, NULL, "more than can be counted" },
	{ HEAD
	  "- {type: slot, count: 1, label: s, with: [{type: memory, count: 1, unit: bushel}]}\n" TAIL(
		  "0"),
	  -EINVAL, NULL, "unit \"bushel\"" },
	{ "version: 1\nresources: []\n" TAIL("0"), -EINVAL, NULL, "asks for nothing" },
	{ HEAD "- {type: slot, count: 1, label: s, with: [{type: core, count: 1}]}\n" TAIL(
		  "0, queue: a-name-that-is-longer-than-any-queue-of-this-cluster-could-ever-be-called"),
	  -EINVAL, NULL, "is not a queue name" },
};

static const struct slu_kobj *object(struct world *w, enum slu_kkind kind, const char *json)
{
	const struct slu_kobj *o = NULL;
	struct slu_error err = { 0 };

	if (slu_kcodec_object(w->codec, kind, SLU_ENC_JSON, json, strlen(json), &o, &err) < 0)
		ok(false, "%s: %s", err.text, json);
	return o;
}

static void quote(char *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n' || *text == '"' || *text == '\t') {
			*out++ = '\\';
			*out++ = *text == '\n' ? 'n' : *text == '\t' ? 't' : '"';
		} else {
			*out++ = *text;
		}
	}
	*out = 0;
}

static void test_jobspecs(void)
{
	struct world w;

	open_world(&w, 1, 1, "");
	for (size_t i = 0; i < SLU_LEN(table); i++) {
		const struct want *t = &table[i];
		struct slu_fluxjob_ask a;
		struct slu_error err = { 0 };
		char text[2000], json[3000], got[300] = "";
		const struct slu_kobj *o;
		int rc;

		quote(text, t->text);
		snprintf(json, sizeof json,
			 "{\"metadata\":{\"name\":\"f\"},\"spec\":{\"jobspec\":\"%s\"}}", text);
		o = object(&w, SLU_KIND_FLUXJOB, json);
		rc = slu_fluxjob_read(slu_kfluxjob(o), w.cfg, &a, &err);
		for (uint32_t k = 0; !rc && k < a.n_role; k++)
			snprintf(got + strlen(got), sizeof got - strlen(got),
				 "%u-%u %" PRId64 " %" PRId64 " %" PRId64 "%s;", a.role[k].min,
				 a.role[k].max, a.role[k].cores, a.role[k].memory, a.role[k].gpus,
				 a.role[k].alone ? " alone" : "");
		if (!rc && *a.level)
			snprintf(got + strlen(got), sizeof got - strlen(got), "@%s", a.level);
		ok(rc == t->rc && (rc ? !!strstr(err.text, t->words) : !strcmp(got, t->roles)),
		   "jobspec %zu: %s%s", i, got, err.text);
		slu_fluxjob_done(&a);
		slu_kobj_unref(o);
	}
	close_world(&w);
}

/* ---- wrapping ---- */

static void test_wrap(void)
{
	struct world w;
	struct slu_buf b = SLU_BUF_INIT(1 << 16);
	const struct slu_kobj *o, *back;
	struct slu_held_view v = { .pods = 4 };
	struct slu_fluxjob_ask a;
	struct slu_error err = { 0 };
	char name[SLU_FLUXJOB_NAME], json[1000], at[254];

	open_world(&w, 1, 1, "");
	o = object(
		&w, SLU_KIND_JOB,
		"{\"metadata\":{\"name\":\"solver\",\"namespace\":\"team-a\",\"uid\":\"u1\"},\"spec\":{\"parallelism\":4,"
		"\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":"
		"{\"cpu\":\"1500m\",\"memory\":\"3Gi\",\"nvidia.com/gpu\":\"1\"}}}]}}}}");
	v.obj = o;
	ok(slu_fluxjob_wrap(&v, 1800, &b) == 0, "a Job is wrapped");
	back = object(&w, SLU_KIND_FLUXJOB, slu_buf_str(&b));
	ok(slu_kstr_is(back->meta.name, "solver-job") && slu_kstr_is(back->meta.ns, "team-a") &&
		   back->meta.nowners == 1 && slu_kstr_is(back->meta.owners[0].uid, "u1") &&
		   slu_kstr_is(back->meta.owners[0].kind, "Job") && slu_kfluxjob(back)->type == 1 &&
		   slu_kfluxjob(back)->count == 4 && slu_kfluxjob(back)->cores == 2 &&
		   slu_fluxjob_is_ours(slu_kfluxjob(back)),
	   "name, owner, type, size: %s", slu_buf_str(&b));
	ok(slu_fluxjob_read(slu_kfluxjob(back), w.cfg, &a, &err) == 0 && a.n_role == 1 &&
		   a.min == 4 && a.role[0].cores == 2 && a.role[0].memory == INT64_C(3) << 30 &&
		   a.role[0].gpus == 1 && a.duration_s == 1800,
	   "the jobspec of held work reads back as the same request %s", err.text);
	slu_fluxjob_done(&a);
	slu_kobj_unref(back);
	slu_kobj_unref(o);
	slu_buf_done(&b);
	memset(at, 'x', 253);
	at[253] = 0;
	snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"%s\"}}", at);
	o = object(&w, SLU_KIND_STATEFULSET, json);
	slu_fluxjob_name(o, name);
	ok(strlen(name) <= 253 && strstr(name, "-statefulset"), "the longest name still is one: %s",
	   name + 220);
	slu_kobj_unref(o);
	close_world(&w);
}

/* ---- life ---- */

#define NODES(n, d)                                                                                      \
	"version: 1\\nresources: [{type: node, count: " n                                                \
	", with: [{type: slot, count: 1, label: s, "                                                     \
	"with: [{type: core, count: 1}]}]}]\\ntasks: [{command: [x], slot: s, count: {per_slot: 1}}]\\n" \
	"attributes: {system: {duration: " d "}}\\n"

static void fluxjob(struct world *w, const char *name, const char *jobspec, const char *status,
		    bool gone)
{
	feed(w, SLU_KIND_FLUXJOB, gone,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"fj-%s\",\"resourceVersion\":\"%" PRIu64
	     "\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"jobspec\":\"%s\"},"
	     "\"status\":{%s}}",
	     name, name, ++w->rv, jobspec, status);
}

/* A FluxJob whose spec has more than the jobspec. */
static void fluxjob_with(struct world *w, const char *name, const char *jobspec, const char *more)
{
	feed(w, SLU_KIND_FLUXJOB, false,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"fj-%s\",\"resourceVersion\":\"%" PRIu64
	     "\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"jobspec\":\"%s\",%s}}",
	     name, name, ++w->rv, jobspec, more);
}

static bool says(const struct world *w, const char *what)
{
	return strstr(w->last_status, what);
}

static void test_own(void)
{
	struct world w;

	open_world(&w, 3, 2, "");
	fluxjob(&w, "a", NODES("2", "60"), "", false);
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Running\"") && says(&w, "\"nodeList\":\"n[0-1]\"") &&
		   says(&w, "\"places\":\"n0,n1\""),
	   "a jobspec runs on nodes of its own: %s", w.last_status);
	ok(says(&w, "\"type\":\"Scheduled\",\"status\":\"True\""),
	   "a FluxJob that runs has conditions");
	ok(w.binds == 0 && w.events == 0 && w.conditions == 0,
	   "a FluxJob of a user's own has no bindings, events or pod conditions");
	add_pod(&w, "p", "sluice", "2", "");
	add_pod(&w, "q", "sluice", "2", "");
	turn(&w);
	ok(bound(&w, "p") == 1 && bound(&w, "q") == 0,
	   "the nodes of a FluxJob are not given to pods");
	fluxjob(&w, "z", NODES("3", "60"), "", false);
	turn(&w);
	later(&w, 6);
	ok(says(&w, "\"state\":\"Queued\"") && says(&w, "\"position\":"), "the next one waits: %s",
	   w.last_status);
	ok(differences(&w) == 0, "the books are right");
	ok(bound(&w, "q") == 1, "pods start when the duration of a FluxJob is over");
	later(&w, 2);
	fluxjob(&w, "z", NODES("3", "60"), "", true);
	turn(&w);
	later(&w, 2);
	ok(differences(&w) == 0, "deleted while it waits: gone");
	close_world(&w);
}

static void test_own_refused(void)
{
	struct world w;

	open_world(&w, 3, 2, "");
	fluxjob(&w, "empty", "", "", false);
	turn(&w);
	ok(says(&w, "\"submitStatus\":\"statusError\"") && says(&w, "\"state\":\"Refused\"") &&
		   says(&w, "spec.jobspec is empty") &&
		   says(&w, "\"type\":\"Accepted\",\"status\":\"False\""),
	   "an empty one is refused: %s", w.last_status);
	fluxjob(&w, "big", NODES("9", "60"), "", false);
	turn(&w);
	later(&w, 1);
	ok(says(&w, "\"state\":\"Refused\"") && !says(&w, "is empty"),
	   "a FluxJob that can never run is refused, too: %s", w.last_status);
	feed_node(&w, "n3", 2, "", "", "True");
	for (int i = 4; i < 9; i++) {
		char name[8];

		snprintf(name, sizeof name, "n%d", i);
		feed_node(&w, name, 2, "", "", "True");
	}
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Running\""),
	   "a FluxJob that could never run starts when the cluster grows: %s", w.last_status);
	fluxjob(&w, "empty", NODES("1", "60"), "", false);
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Running\"") && says(&w, "\"places\":\"n0\""),
	   "a jobspec that is written later is queued: %s", w.last_status);
	close_world(&w);
}

static void test_own_restart(void)
{
	struct world w;

	open_world(&w, 3, 1, "");
	fluxjob(&w, "a", NODES("2", "60"),
		"\"state\":\"Running\",\"places\":\"n1,n2\",\"nodeList\":\"n[1-2]\","
		"\"startTime\":\"2026-01-01T00:00:05Z\"",
		false);
	fluxjob(&w, "done", NODES("2", "60"), "\"state\":\"Finished\"", false);
	add_pod(&w, "p", "sluice", "1", "");
	add_pod(&w, "q", "sluice", "1", "");
	turn(&w);
	later(&w, 2);
	ok(w.statuses == 0, "a status that is the same already is not written again");
	ok(bound(&w, "p") == 1 && bound(&w, "q") == 0 && !strcmp(w.pod[0].node, "n0"),
	   "a FluxJob that ran before keeps its nodes");
	later(&w, 54);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Finished\"") && bound(&w, "q") == 1,
	   "a FluxJob that ran before ends at its time, counted from its start: %s", w.last_status);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* Constraints choose nodes, alone and in every combination: of n0 (zone a, fast), n1 (a), n2 (b,
 * fast), n3. */
static void test_constraints(void)
{
	static const struct {
		const char *constraint,
			*nodes; /* that satisfy it; otherwise words of the refusal */
	} row[] = {
		{ "{properties: [\"fast\"]}", "02" },
		{ "{properties: [\"^fast\"]}", "13" },
		{ "{properties: [\"zone=a\", \"^fast\"]}", "1" },
		{ "{properties: []}", "0123" },
		{ "{}", "0123" },
		{ "{hostlist: [\"n[1-2]\", n3]}", "123" },
		{ "{not: [{hostlist: [n0]}]}", "123" },
		{ "{not: [{properties: [\"zone=a\", \"fast\"]}]}", "123" },
		{ "{or: [{properties: [\"zone=b\"]}, {hostlist: [n3]}]}", "23" },
		{ "{and: [{or: [{properties: [\"zone=a\"]}, {properties: [\"zone=b\"]}]}, {properties: [\"fast\"]}]}",
		  "02" },
		{ "{not: [{or: [{properties: [\"zone=a\"]}, {properties: [\"zone=b\"]}]}]}", "3" },
		{ "{and: [{not: [{and: [{properties: [\"fast\"]}, {properties: [\"zone=a\"]}]}]}, {hostlist: [\"n[0-2]\"]}]}",
		  "12" },
		{ "{or: []}", "no node can satisfy" },
		{ "{ranks: [\"0-3\"]}", "no ranks" },
		{ "{and: [{or: [{properties: [\"a\"]}, {properties: [\"b\"]}]}, {or: [{properties: [\"c\"]}, {properties: [\"d\"]}]},"
		  "{or: [{properties: [\"e\"]}, {properties: [\"f\"]}]}, {or: [{properties: [\"g\"]}, {properties: [\"h\"]}]},"
		  "{or: [{properties: [\"i\"]}, {properties: [\"j\"]}]}, {or: [{properties: [\"k\"]}, {properties: [\"l\"]}]},"
		  "{or: [{properties: [\"m\"]}, {properties: [\"o\"]}]}]}",
		  "more than 64 alternatives" },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		char text[1500], quoted[3000], got[8] = "", *to = got;
		struct world w;

		open_world(&w, 0, 2, "");
		feed_node(&w, "n0", 1, "\"zone\":\"a\",\"fast\":\"yes\"", "", "True");
		feed_node(&w, "n1", 1, "\"zone\":\"a\"", "", "True");
		feed_node(&w, "n2", 1, "\"zone\":\"b\",\"fast\":\"\"", "", "True");
		feed_node(&w, "n3", 1, "", "", "True");
		snprintf(
			text, sizeof text,
			"version: 1\nresources: [{type: slot, count: {min: 1, max: 4, operator: \"+\", operand: 1}, "
			"label: s, with: [{type: core, count: 1}]}]\ntasks: [{command: [x], slot: s, count: {per_slot: 1}}]\n"
			"attributes: {system: {duration: 60, constraints: %s}}\n",
			row[i].constraint);
		quote(quoted, text);
		fluxjob(&w, "f", quoted, "", false);
		turn(&w);
		later(&w, 6);
		later(&w, 6);
		later(&w, 6);
		for (int k = 0; k < 4; k++) {
			char name[16];

			snprintf(name, sizeof name, "n%d", k);
			if (strstr(w.last_status, "\"places\":\"") &&
			    strstr(strstr(w.last_status, "\"places\":\""), name))
				*to++ = (char)('0' + k);
		}
		*to = 0;
		ok(*row[i].nodes <= '9' ? !strcmp(got, row[i].nodes)
					: !!strstr(w.last_status, row[i].nodes),
		   "%s: %s %s", row[i].constraint, got, *got ? "" : w.last_status);
		close_world(&w);
	}
}

/* A phantom exists only in the core, so it cannot be evicted: a node that is lost ends its
 * FluxJob. */
static void test_named_nodes(void)
{
	struct world w;

	open_world(&w, 4, 2, "");
	fluxjob_with(&w, "far", NODES("2", "60"),
		     "\"resources\":{\"nodes\":[\"n3\",\"n1\",\"n2\"]}");
	turn(&w);
	later(&w, 6);
	ok(says(&w, "\"state\":\"Running\"") && !says(&w, "n0") && !says(&w, "n[0"),
	   "a FluxJob is given nodes that it named: %s", w.last_status);
	fluxjob_with(&w, "two", NODES("2", "60"), "\"resources\":{\"nodes\":[\"n0\"]}");
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Refused\""), "two nodes are not to be had of one: %s",
	   w.last_status);
	fluxjob_with(&w, "two", NODES("2", "60"), "\"resources\":{\"nodes\":[\"n0\",\"n3\"]}");
	turn(&w);
	later(&w, 6);
	ok(says(&w, "\"state\":\"Running\"") && says(&w, "\"places\":\"n0,n3\""),
	   "with other nodes named, the FluxJob starts: %s", w.last_status);
	fluxjob_with(&w, "none", NODES("1", "60"), "\"resources\":{\"nodes\":[\"n0\",\"\"]}");
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Refused\"") &&
		   says(&w, "spec.resources.nodes: item 1 is not the name of a node"),
	   "a name without a letter: %s", w.last_status);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* A FluxJob that insists on a promise does not wait in a queue that never gives one. */
static void test_reservation(void)
{
	static const char both[] = "queues:\n- {name: firm, objective: order}\n"
				   "- {name: loose, policy: first-fit}\n";
	struct world w;

	open_world(&w, 2, 1, both);
	fluxjob_with(&w, "a", NODES("2", "60"), "\"reservation\":true");
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Running\""), "the first queue promises: %s", w.last_status);
	fluxjob_with(&w, "b", NODES("2", "60, queue: loose"), "\"reservation\":false");
	turn(&w);
	later(&w, 6);
	ok(says(&w, "\"state\":\"Queued\""),
	   "a FluxJob that does not insist on a promise waits: %s", w.last_status);
	fluxjob_with(&w, "b", NODES("2", "60, queue: loose"), "\"reservation\":true");
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Refused\"") &&
		   says(&w, "spec.reservation: queue \\\"loose\\\" promises no job a start"),
	   "a FluxJob that insists on a promise is told: %s", w.last_status);
	close_world(&w);
}

static void test_node_lost(void)
{
	static const char away[] =
		"{\"metadata\":{\"name\":\"n0\",\"uid\":\"n0\",\"resourceVersion\":\"77\"},\"status\":{"
		"\"allocatable\":{\"cpu\":\"2\",\"pods\":\"100\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
		"\"Unknown\",\"lastTransitionTime\":\"2026-01-01T00:00:12Z\"}]}}";
	struct world w;

	open_world(&w, 3, 2, "");
	fluxjob(&w, "a", NODES("2", "6000"), "", false);
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Running\"") && says(&w, "\"places\":\"n0,n1\""),
	   "the FluxJob runs on both nodes");
	feed(&w, SLU_KIND_NODE, false, away);
	turn(&w);
	later(&w, 200);
	ok(says(&w, "\"state\":\"Running\""), "a node that is away may come back");
	later(&w, 110);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Failed\"") && says(&w, "node n0 was lost"),
	   "a node that stays away fails the FluxJob: %s", w.last_status);
	ok(differences(&w) == 0, "the books are right");
	fluxjob(&w, "b", NODES("2", "6000"), "", false);
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Running\"") && says(&w, "\"places\":\"n1,n2\""),
	   "the others are free again: %s", w.last_status);
	feed(&w, SLU_KIND_NODE, true,
	     "{\"metadata\":{\"name\":\"n2\",\"uid\":\"n2\",\"resourceVersion\":\"78\"}}");
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Failed\"") && says(&w, "node n2 was lost"),
	   "a slot on a deleted node is lost at once: %s", w.last_status);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

/* A held Job in a namespace that holds everything. */
static void test_wrapped(void)
{
	static const char text[] =
		"{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"j1\",\"resourceVersion\":\"%" PRIu64
		"\",\"generation\":1,\"annotations\":{\"sluice.sh/held\":\"yes\"%s}},\"spec\":{\"parallelism\":2,"
		"\"completions\":2,\"suspend\":true,\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}}}";
	struct world w;

	open_world(&w, 1, 1, "");
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"sluice.sh/hold\":\"true\"}}}");
	feed(&w, SLU_KIND_JOB, false, text, ++w.rv, "");
	turn(&w);
	later(&w, 1);
	ok(w.creates == 1 && strstr(w.last_create, "\"name\":\"j-job\"") &&
		   strstr(w.last_create, "\"uid\":\"j1\""),
	   "a held Job gets its FluxJob: %s", w.last_create);
	ok(w.statuses == 0, "the status of a FluxJob waits until the object exists");
	feed(&w, SLU_KIND_FLUXJOB, false,
	     "{\"metadata\":{\"name\":\"j-job\",\"namespace\":\"ns\",\"uid\":\"f1\",\"resourceVersion\":\"9\","
	     "\"labels\":{\"app.kubernetes.io/managed-by\":\"sluice\"}},\"spec\":{}}");
	turn(&w);
	later(&w, 2);
	ok(says(&w, "\"state\":\"Refused\"") && w.statuses == 1,
	   "a held object that can never run has a refused FluxJob: %s", w.last_status);
	feed_node(&w, "n1", 1, "", "\"unschedulable\":true", "True");
	turn(&w);
	later(&w, 2);
	feed(&w, SLU_KIND_FLUXJOB, true,
	     "{\"metadata\":{\"name\":\"j-job\",\"namespace\":\"ns\",\"uid\":\"f1\",\"resourceVersion\":\"10\","
	     "\"labels\":{\"app.kubernetes.io/managed-by\":\"sluice\"}},\"spec\":{}}");
	turn(&w);
	ok(strstr(w.last_annotation, "\"sluice.sh/cancelled\":\"true\""),
	   "deleting it takes the Job out of the queue, for good: %s", w.last_annotation);
	later(&w, 60);
	ok(w.creates == 1, "a deleted FluxJob of a cancelled Job is not made again");
	close_world(&w);
	open_world(&w, 2, 1, "");
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"sluice.sh/hold\":\"true\"}}}");
	feed(&w, SLU_KIND_JOB, false, text, ++w.rv, ",\"sluice.sh/cancelled\":\"true\"");
	turn(&w);
	later(&w, 2);
	ok(w.creates == 0 && w.patches == 0,
	   "a cancelled Job is not held again by a daemon that starts later");
	close_world(&w);
}

/* The server learns the kind only after the work was held. */
static void test_kind_comes_later(void)
{
	struct world w;
	struct slu_record *r = slu_rec_synced_new(SLU_KIND_FLUXJOB);

	open_world(&w, 1, 1, "");
	((struct slu_rec_synced *)r)->absent = true;
	slu_core_take(w.core, r, w.now_us);
	feed(&w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"j1\",\"resourceVersion\":\"%" PRIu64
	     "\",\"generation\":1,\"annotations\":{\"sluice.sh/held\":\"yes\"}},\"spec\":{\"parallelism\":1,"
	     "\"completions\":1,\"suspend\":true,\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
	     "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}}}",
	     ++w.rv);
	turn(&w);
	later(&w, 10);
	ok(w.creates == 0 && w.patches == 1, "without the kind the Job is released all the same");
	slu_core_take(w.core, slu_rec_synced_new(SLU_KIND_FLUXJOB), w.now_us);
	turn(&w);
	later(&w, 1);
	ok(w.creates == 1 && strstr(w.last_create, "\"name\":\"j-job\""),
	   "once the server knows it the Job has its FluxJob: %s", w.last_create);
	close_world(&w);
}

/* A Job of another API makes the pod, and that kind is not watched: the pod is held by itself. */
static void test_wrapped_foreign(void)
{
	struct world w;
	struct fpod *p;

	open_world(&w, 1, 1, "");
	p = make_pod(&w, "v-0", "default-scheduler", "2",
		     "\"ownerReferences\":[{\"apiVersion\":\"batch.volcano.sh/v1alpha1\","
		     "\"kind\":\"Job\",\"name\":\"v\",\"uid\":\"uid-v\",\"controller\":true}]");
	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"default-scheduler\",\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]");
	feed_pod(&w, p, false);
	turn(&w);
	later(&w, 1);
	ok(w.creates == 1 && strstr(w.last_create, "\"name\":\"v-0-pod\""),
	   "a gated pod of another API's Job is held work of its own: %s", w.last_create);
	close_world(&w);
}

/* Held work that is not in the queue yet says so, too. */
static void test_wrapped_held(void)
{
	struct world w;

	open_world(&w, 1, 1, "");
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"sluice.sh/hold\":\"true\"}}}");
	feed(&w, SLU_KIND_REPLICASET, false,
	     "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"r1\",\"resourceVersion\":\"3\"},"
	     "\"spec\":{\"replicas\":0,\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
	     "\"containers\":[{\"name\":\"c\"}]}}}}");
	turn(&w);
	later(&w, 1);
	feed(&w, SLU_KIND_FLUXJOB, false,
	     "{\"metadata\":{\"name\":\"r-replicaset\",\"namespace\":\"ns\",\"uid\":\"f1\",\"resourceVersion\":\"9\","
	     "\"labels\":{\"app.kubernetes.io/managed-by\":\"sluice\"}},\"spec\":{}}");
	turn(&w);
	later(&w, 2);
	ok(w.creates == 1 && says(&w, "\"state\":\"Held\"") &&
		   says(&w, "\"submitStatus\":\"statusNew\""),
	   "a set of no pods is held: %s", w.last_status);
	feed(&w, SLU_KIND_REPLICASET, false,
	     "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"r1\",\"resourceVersion\":\"4\"},"
	     "\"spec\":{\"replicas\":3,\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
	     "\"containers\":[{\"name\":\"c\"}]}}}}");
	later(&w, 6);
	later(&w, 6);
	ok(strstr(w.last_spec, "r-replicaset {") && strstr(w.last_spec, "\"nodes\":3") &&
		   w.specs == 1,
	   "a new size is written to its spec, once: %s", w.last_spec);
	close_world(&w);
}

/* Held work that is scaled while its FluxJob is being made. */
static void test_wrapped_scaled_early(void)
{
	static const char *const sized[] = { "2", "3" };
	struct world w;

	open_world(&w, 1, 1, "");
	feed(&w, SLU_KIND_NAMESPACE, false,
	     "{\"metadata\":{\"name\":\"ns\",\"uid\":\"ns1\",\"resourceVersion\":\"1\",\"labels\":{\"sluice.sh/hold\":\"true\"}}}");
	for (size_t i = 0; i < SLU_LEN(sized); i++) {
		feed(&w, SLU_KIND_REPLICASET, false,
		     "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"r1\",\"resourceVersion\":\"%zu\"},"
		     "\"spec\":{\"replicas\":%s,\"template\":{\"spec\":{\"schedulingGates\":[{\"name\":\"fluxqueue\"}],"
		     "\"containers\":[{\"name\":\"c\"}]}}}}",
		     i + 3, sized[i]);
		turn(&w);
		later(&w, 6);
	}
	ok(w.creates == 1 && w.specs == 0 && strstr(w.last_create, "\"nodes\":2"),
	   "the FluxJob of a set is made with the first size: %s", w.last_create);
	feed(&w, SLU_KIND_FLUXJOB, false,
	     "{\"metadata\":{\"name\":\"r-replicaset\",\"namespace\":\"ns\",\"uid\":\"f1\",\"resourceVersion\":\"9\","
	     "\"labels\":{\"app.kubernetes.io/managed-by\":\"sluice\"}},\"spec\":{\"nodes\":2}}");
	turn(&w);
	later(&w, 6);
	later(&w, 6);
	ok(w.specs == 1 && strstr(w.last_spec, "\"nodes\":3"),
	   "the FluxJob of a set that was scaled gets the new size, once: %s", w.last_spec);
	close_world(&w);
}

/* Another replica leads: this one follows what it writes, and takes over without moving anything.
 */
static void test_standby(void)
{
	struct world w;
	struct slu_journal_setup js = { .url = "memory:", .cluster = "c", .holder = "test" };
	struct slu_error err = { 0 };

	open_world(&w, 3, 1, "");
	slu_core_free(w.core);
	struct slu_core_setup cs = { .verify = true, .config = w.cfg, .out = w.out };

	ok(slu_core_new(&cs, &w.core, &err) == 0, "a standby starts");
	for (int i = 0; i < 3; i++) {
		char name[8];

		snprintf(name, sizeof name, "n%d", i);
		feed_node(&w, name, 1, "", "", "True");
	}
	for (int k = 0; k < SLU_KIND_COUNT; k++)
		slu_core_take(w.core, slu_rec_synced_new((enum slu_kkind)k), w.now_us);
	fluxjob(&w, "a", NODES("2", "60"), "", false);
	fluxjob(&w, "b", NODES("1", "60"), "", false);
	turn(&w);
	fluxjob(&w, "a", NODES("2", "60"),
		"\"state\":\"Running\",\"places\":\"n2,n0\",\"nodeList\":\"n[2,0]\",\"jobid\":1,"
		"\"startTime\":\"2026-01-01T00:00:10Z\"",
		false);
	fluxjob(&w, "b", NODES("1", "60"), "\"state\":\"Finished\"", false);
	turn(&w);
	ok(w.statuses == 0, "a standby writes no status");
	ok(slu_core_lead(w.core, &js, &err) == 0, "the standby takes the lead: %s", err.text);
	add_pod(&w, "p", "sluice", "1", "");
	turn(&w);
	later(&w, 2);
	ok(w.statuses == 0 && bound(&w, "p") == 1 && !strcmp(w.pod[0].node, "n1"),
	   "the nodes of the one are kept, those of the other are free: %s %s", w.pod[0].node,
	   w.last_status);
	close_world(&w);
}

#define SLOTS(n)                                                                                 \
	"version: 1\\nresources: [{type: slot, count: " n                                        \
	", label: s, with: [{type: core, count: 1}]}]\\ntasks: [{command: [x], slot: s, count: " \
	"{per_slot: 1}}]\\nattributes: {system: {duration: 60}}\\n"

/* A thousand FluxJobs of the largest legal size: Sluice plans a few of them, and no other job
 * waits for them. */
static void test_many_large(void)
{
	struct fpod *v[2];
	char name[16];
	struct world w;

	open_world(&w, 2, 2, "");
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "m%d", i);
		fluxjob(&w, name, SLOTS("10000"), "", false);
	}
	ok(w.core->fluxjobs->n_slots == 20000 && w.core->cluster->pods.n == 2,
	   "%" PRIu64 " slots of 10 000 000 are planned with, in %u records",
	   w.core->fluxjobs->n_slots, w.core->cluster->pods.n);
	turn(&w);
	later(&w, 2);
	ok(says(&w, "waits: the FluxJobs"), "the others say so: %s", w.last_status);
	v[0] = add_pod(&w, "v-0", "sluice", "2", GROUP("v", "2"));
	v[1] = add_pod(&w, "v-1", "sluice", "2", GROUP("v", "2"));
	turn(&w);
	ok(*v[0]->node && *v[1]->node, "a gang of another user starts");
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "m%d", i);
		if (core_fluxjob_of(w.core, "ns", name)->life == FLUXJOB_LIVES)
			fluxjob(&w, name, SLOTS("10000"), "", true);
	}
	later(&w, 2);
	ok(w.core->fluxjobs->n_slots <= 10000,
	   "two go, and no more than one comes at once (%" PRIu64 ")", w.core->fluxjobs->n_slots);
	for (int i = 0; i < 20; i++)
		later(&w, 1);
	ok(w.core->fluxjobs->n_slots == 20000,
	   "the next large FluxJob gets its slots after a while (%" PRIu64 ")",
	   w.core->fluxjobs->n_slots);
	close_world(&w);
}

/* After a restart a running FluxJob is listed after those that wait: its nodes are still taken. */
static void test_runs_in_a_crowd(void)
{
	struct world w;

	open_world(&w, 2, 2, "");
	fluxjob(&w, "m0", SLOTS("10000"), "", false);
	fluxjob(&w, "m1", SLOTS("10000"), "", false);
	fluxjob(&w, "r", NODES("1", "6000"),
		"\"state\":\"Running\",\"places\":\"n0\",\"nodeList\":\"n0\","
		"\"startTime\":\"2026-01-01T00:00:00Z\"",
		false);
	turn(&w);
	add_pod(&w, "v", "sluice", "2", "");
	add_pod(&w, "x", "sluice", "2", "");
	turn(&w);
	ok(bound(&w, "v") == 1 && !bound(&w, "x") && !strcmp(w.pod[0].node, "n1"),
	   "the node of a FluxJob that runs is not given away: %s %s", w.pod[0].node,
	   w.pod[1].node);
	ok(differences(&w) == 0, "the books are right");
	close_world(&w);
}

int main(void)
{
	slu_log_setup(SLU_ERROR, SLU_LOG_TEXT, 2);
	test_jobspecs();
	test_wrap();
	test_own();
	test_own_refused();
	test_own_restart();
	test_constraints();
	test_named_nodes();
	test_reservation();
	test_node_lost();
	test_kind_comes_later();
	test_wrapped();
	test_wrapped_foreign();
	test_wrapped_held();
	test_wrapped_scaled_early();
	test_standby();
	test_many_large();
	test_runs_in_a_crowd();
	return tap_done();
}
