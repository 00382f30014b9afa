/* Jobspecs: every refusal in its words, what is read, and how many units a count takes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "match/allowed.h"
#include "jobspec/jobspec.h"
#include "tap.h"

static struct slu_graph *graph;

static int parse(const char *text, struct slu_jobspec **out, struct slu_error *err)
{
	return slu_jobspec_parse(text, strlen(text), &graph->types, out, err);
}

#define TASKS   "tasks: [{command: [app], slot: s, count: {per_slot: 1}}]\n"
#define TAIL    TASKS "attributes:\n"
#define HEAD    "version: 9999\n"
#define RES(x)  HEAD "resources:\n- " x "\n" TAIL
#define CNT(x)  RES("{type: node, count: {" x "}}")
#define TASK(x) HEAD "resources: []\ntasks:\n- " x "\nattributes:\n"
#define SYS(x)  HEAD "resources: []\n" TASKS "attributes: {system: {" x "}}\n"
#define CON(x)  SYS("constraints: " x)

static const struct {
	const char *in, *err; /* err NULL: accepted */
} row[] = {
	{ "5", "Top level of jobspec is not a mapping" },
	{ "[]", "Top level of jobspec is not a mapping" },
	{ "", "Top level of jobspec is not a mapping" },
	{ "resources: []\n" TAIL, "Missing key \"version\" in top level mapping" },
	{ HEAD TAIL, "Missing key \"resource\" in top level mapping" },
	{ HEAD "resources: []\nattributes:\n", "Missing key \"tasks\" in top level mapping" },
	{ HEAD "resources: []\n" TASKS, "Missing key \"attributes\" in top level mapping" },
	{ HEAD "resources: []\nx: 1\n" TAIL,
	  "Top mapping in jobspec must have exactly four entries" },
	{ "version: [1]\nresources: []\n" TAIL, "\"version\" must be an unsigned integer" },
	{ "version: ~\nresources: []\n" TAIL, "\"version\" must be an unsigned integer" },
	{ "version: 0\nresources: []\n" TAIL, "Only jobspec \"version\" 1-9999 is supported" },
	{ "version: 10000\nresources: []\n" TAIL, "Only jobspec \"version\" 1-9999 is supported" },
	{ "version: -1\nresources: []\n" TAIL,
	  "yaml-cpp: error at line 1, column 10: bad conversion" },
	{ HEAD "resources: []\n" TASKS "attributes: 1\n", "\"attributes\" is not a map" },
	{ HEAD "resources: 1\n" TASKS "attributes: {foo: 1}\n", "Unknown key in \"attributes\"" },
	{ HEAD "resources: []\n" TASKS "attributes: {user: [1, {a: b}]}\n", NULL },
	{ SYS("duration: abc"), "yaml-cpp: error at line 4, column 33: bad conversion" },
	{ SYS("duration: 1.5, cwd: /tmp, environment: {A: b}, whatever: [1]"), NULL },
	{ CON("[]"), "constraint is not a mapping" },
	{ CON("{and: [], or: []}"), "constraint map may not contain > 1 operation" },
	{ CON("{and: 1}"), "and operator value must be an array" },
	{ CON("{xor: []}"), "unknown constraint operator: xor" },
	{ CON("{properties: [foo]}"), "non-string property specified" },
	{ CON("{properties: [\"f|oo\"]}"), "f|oo is invalid" },
	{ CON("{properties: [\"^a^\"]}"), "^a^ is invalid" },
	{ CON("{hostlist: [\"a[\"]}"), "Invalid hostlist `a['" },
	{ CON("{ranks: [\"3-1\"]}"), "Invalid idset `3-1'" },
	{ CON("{}"), NULL },
	{ HEAD "resources: {}\n" TAIL, "\"resources\" is not a sequence" },
	{ RES("[]"), "resource is not a mapping" },
	{ RES("{count: 1}"), "Key \"type\" missing from resource" },
	{ RES("{type: [node], count: 1}"), "Value of \"type\" must be a scalar" },
	{ RES("{type: warp, count: x}"),
	  "Value of \"type\" must be a resource type known to fluxion" },
	{ RES("{type: node}"), "Key \"count\" missing from resource" },
	{ RES("{type: node, count: [1]}"), "count is not a mapping" },
	{ RES("{type: node, count: ~}"), "count is not a mapping" },
	{ RES("{type: node, count: 1-2}"), "yaml-cpp: error at line 3, column 23: bad conversion" },
	{ RES("{type: node, count: 0}"), NULL },
	{ RES("{type: node, count: 0x10}"), NULL },
	{ RES("{type: node, count: 4294967296}"),
	  "yaml-cpp: error at line 3, column 23: bad conversion" },
	{ CNT("max: 1"), "Key \"min\" missing from count" },
	{ CNT("min: [1]"), "Value of \"min\" must be a scalar" },
	{ CNT("min: 1, max: 2"),
	  "All or none of \"max\", \"operator\", and \"operand\" must be specified" },
	{ CNT("min: 1, max: [2], operator: [+], operand: [1]"),
	  "Value of \"max\" must be a scalar" },
	{ CNT("min: 1, max: 2, operator: [+], operand: [1]"),
	  "Value of \"operator\" must be a scalar" },
	{ CNT("min: 1, max: 2, operator: +, operand: [1]"),
	  "Value of \"operand\" must be a scalar" },
	{ CNT("min: 0, max: 2, operator: /, operand: 0"), "\"min\" must be greater than zero" },
	{ CNT("min: 3, max: 2, operator: /, operand: 0"),
	  "\"max\" must be greater than or equal to \"min\"" },
	{ CNT("min: 1, max: 2, operator: +, operand: 0"),
	  "\"operand\" must be greater than zero for addition '+'" },
	{ CNT("min: 1, max: 2, operator: \"*\", operand: 1"),
	  "\"operand\" must be greater than one for multiplication '*'" },
	{ CNT("min: 1, max: 2, operator: ^, operand: 1"),
	  "\"operand\" must be greater than one for exponentiation '^'" },
	{ CNT("min: 1, max: 2, operator: ^, operand: 2"),
	  "\"min\" must be greater than one for exponentiation '^'" },
	{ CNT("min: 1, max: 2, operator: /, operand: 2"), "Invalid count operator" },
	{ RES("{type: node, count: 1, unit: []}"), "Value of \"unit\" must be a scalar" },
	{ RES("{type: node, count: 1, exclusive: []}"), "Value of \"exclusive\" must be a scalar" },
	{ RES("{type: node, count: 1, exclusive: yes}"),
	  "Value of \"exclusive\" must be either \"true\" or \"false\"" },
	{ RES("{type: node, count: 1, with: 1, label: []}"), "\"resources\" is not a sequence" },
	{ RES("{type: node, count: 1, label: []}"), "Value of \"label\" must be a scalar" },
	{ RES("{type: slot, count: 1}"), "All slots must be labeled" },
	{ RES("{type: xor_slot, count: 1}"), NULL },
	{ RES("{type: node, count: 1, id: {}}"), "Value of \"id\" must be a scalar" },
	{ RES("{type: node, count: 1, foo: 1}"), "Unrecognized key in resource mapping" },
	{ HEAD "resources: []\ntasks: {}\nattributes:\n", "\"tasks\" is not a sequence" },
	{ TASK("foo"), "task is not a mapping" },
	{ TASK("{slot: s}"), "Key \"command\" missing from task" },
	{ TASK("{command: app}"), "\"command\" value must be a sequence" },
	{ TASK("{command: [app]}"), "Key \"slot\" missing from task" },
	{ TASK("{command: [app], slot: []}"), "Value of task \"slot\" must be a YAML scalar" },
	{ TASK("{command: [app], slot: s, count: 1}"), "\"count\" in task is not a mapping" },
	{ TASK("{command: [app], slot: s, count: {a: 1, b: 2}}"),
	  "\"count\" in task must have exactly one entry" },
	{ TASK("{command: [app], slot: s, count: {a: 1}, distribution: []}"),
	  "Value of task \"distribution\" must be a YAML scalar" },
	{ TASK("{command: [app], slot: s, count: {a: 1}, attributes: 1}"),
	  "\"attributes\" in task is not a mapping" },
	{ TASK("{command: [app], slot: s}"), "impossible number of entries in task mapping" },
};

static void test_values(void)
{
	static const char text[] = "# a comment\n"
				   "version: 1\n"
				   "resources:\n"
				   "  - type: node\n"
				   "    count: {min: 2, max: 8, operator: \"*\", operand: 2}\n"
				   "    exclusive: true\n"
				   "    with:\n"
				   "      - type: slot\n"
				   "        label: default\n"
				   "        count: 3\n"
				   "        with:\n"
				   "        - {type: core, count: 4, unit: c}\n"
				   "        - {type: gpu, count: 1, exclusive: false}\n"
				   "tasks:\n"
				   "  - command: [ \"app\" ]\n"
				   "    slot: default\n"
				   "    count:\n"
				   "      per_slot: 1\n"
				   "attributes:\n"
				   "  system:\n"
				   "    duration: 3600.5\n"
				   "    queue: batch\n";
	struct slu_jobspec *j = NULL;
	struct slu_error err = { 0 };
	const struct slu_request *n, *s;

	if (!ok(parse(text, &j, &err) == 0, "block style (%s)", err.text))
		return;
	n = &j->resources[0];
	ok(j->version == 1 && j->nresources == 1 && j->nrequests == 4 && !j->constraint,
	   "version, resources and constraint are read");
	ok(j->duration == 3600.5 && !strcmp(j->queue, "batch"), "duration and queue are read");
	ok(n->type == SLU_TYPE_NODE && n->excl == SLU_EXCL_TRUE && n->nwith == 1 && n->index == 0,
	   "the node and its exclusive mark are read");
	ok(n->count.min == 2 && n->count.max == 8 && n->count.op == '*' && n->count.operand == 2,
	   "a count with min, max, operator and operand is read");
	s = n->with;
	ok(s->type == SLU_TYPE_SLOT && !strcmp(s->label, "default") && s->nwith == 2 &&
		   s->count.min == 3 && s->count.max == 3,
	   "the slot with its label and count is read");
	ok(s->with[0].index == 2 && s->with[1].index == 3 && !strcmp(s->with[0].unit, "c") &&
		   s->with[0].excl == SLU_EXCL_UNSAID && s->with[1].excl == SLU_EXCL_FALSE,
	   "children are numbered in pre-order");
	slu_jobspec_free(j);
}

static const struct {
	struct slu_count c;
	uint32_t avail, take;
} count_row[] = {
	{ { 1, 1, 1, '+' }, 5, 1 },
	{ { 2, 2, 1, '+' }, 1, 0 },
	{ { 0, 0, 1, '+' }, 5, 0 },
	{ { 2, 10, 3, '+' }, 9, 8 },
	{ { 2, 10, 3, '+' }, 100, 8 },
	{ { 2, 100, 2, '*' }, 33, 32 },
	{ { 3, 20, 2, '*' }, 100, 12 },
	{ { 3, 20, 1, '*' }, 100, 3 },
	{ { 2, 100, 2, '^' }, 100, 16 },
	{ { 2, 1000, 2, '^' }, 1000, 256 },
	{ { 3, 26, 3, '^' }, 1000, 3 },
	{ { 5, 4, 1, '+' }, 9, 0 },
	{ { 2, UINT32_MAX, 2, '*' }, UINT32_MAX, 1u << 31 },
	{ { 2, UINT32_MAX, 2, '^' }, UINT32_MAX, 65536 },
	{ { 2, UINT32_MAX, 2147483647, '^' }, UINT32_MAX, 2 },
};

static void test_constraint(void)
{
	static const struct {
		const char *text;
		bool want;
	} c[] = {
		{ "{properties: [\"big\"]}", true },
		{ "{properties: [\"big\", \"fast\"]}", false },
		{ "{properties: [\"^fast\"]}", true },
		{ "{properties: []}", true },
		{ "{hostlist: [\"a[1-3]\", \"b\"]}", true },
		{ "{hostlist: [\"a[3-9]\"]}", false },
		{ "{ranks: [\"0-3\", \"7\"]}", true },
		{ "{ranks: [\"0-6\"]}", false },
		{ "{and: []}", true },
		{ "{or: []}", false },
		{ "{not: []}", false },
		{ "{not: [{ranks: [\"1\"]}]}", true },
		{ "{not: [{properties: [\"big\"]}, {ranks: [\"1\"]}]}", true },
		{ "{or: [{ranks: [\"1\"]}, {hostlist: [\"a2\"]}]}", true },
		{ "{and: [{ranks: [\"7\"]}, {}, {hostlist: [\"a3\"]}]}", false },
	};
	struct slu_vertex_desc d = { .type = SLU_TYPE_NODE, .name = SLU_NONE, .id = 2, .size = 1 };
	uint32_t v;

	d.basename = slu_graph_string(graph, "a");
	d.uniq_id = SLU_UNIQ_INDEX;
	d.rank = 7;
	v = slu_graph_add(graph, &d);
	slu_graph_property_set(graph, v, "big", "");
	for (size_t i = 0; i < SLU_LEN(c); i++) {
		struct slu_jobspec *j = NULL;
		struct slu_error err = { 0 };
		char text[512];

		snprintf(text, sizeof text, CON("%s"), c[i].text);
		ok(parse(text, &j, &err) == 0 &&
			   slu_constraint_match(j->constraint, graph, v) == c[i].want,
		   "constraint %s %s", c[i].text, err.text);
		slu_jobspec_free(j);
	}
}

static void test_memory(void)
{
	static const char text[] = HEAD
		"resources: [{type: slot, count: 1, label: s, with: [{type: core, count: 1}]}]\n" TASKS
		"attributes: {system: {queue: q, constraints: {or: [{properties: [\"a\"]}, "
		"{hostlist: [\"b[1-2]\"]}, {ranks: [\"1\"]}]}}}\n";

	for (long k = 0;; k++) {
		struct slu_jobspec *j = NULL;
		int rc;

		slu_fault_arm(k);
		rc = parse(text, &j, NULL);
		slu_jobspec_free(j);
		if (!slu_fault_disarm()) {
			ok(rc == 0 && k > 3, "clean after %ld faults", k);
			break;
		}
		if (rc != -ENOMEM)
			ok(false, "allocation %ld fails cleanly (%d)", k, rc);
	}
}

int main(void)
{
	graph = slu_graph_new();
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_jobspec *j = NULL;
		struct slu_error err = { 0 };
		int rc = parse(row[i].in, &j, &err);

		ok(row[i].err ? rc == -EINVAL && !j && !strcmp(err.text, row[i].err) : rc == 0,
		   "row %zu: %s", i, err.text);
		slu_jobspec_free(j);
	}
	test_values();
	for (size_t i = 0; i < SLU_LEN(count_row); i++) {
		uint32_t n = slu_count_select(&count_row[i].c, count_row[i].avail);

		ok(n == count_row[i].take, "count %zu takes %u", i, n);
	}
	test_constraint();
	test_memory();
	slu_graph_free(graph);
	return tap_done();
}
