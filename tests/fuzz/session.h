/* session.h — a small session without files and without output, for targets that run commands. */
#pragma once
#include "fuzz.h"
#include "query/session.h"

/* Files a command may name: `f` is the fuzzed text, the others are fixed. */
struct fuzz_files {
	const char *text;
	size_t n;
};

static const char fuzz_grug[] =
	"<graphml>"
	"<key id='root' for='node' attr.name='root' attr.type='int'><default>0</default></key>"
	"<key id='type' for='node' attr.name='type' attr.type='string'/>"
	"<key id='basename' for='node' attr.name='basename' attr.type='string'/>"
	"<key id='size' for='node' attr.name='size' attr.type='long'><default>1</default></key>"
	"<key id='unit' for='node' attr.name='unit' attr.type='string'/>"
	"<key id='subsystem' for='node' attr.name='subsystem' attr.type='string'>"
	"<default>containment</default></key>"
	"<key id='e_subsystem' for='edge' attr.name='e_subsystem' attr.type='string'>"
	"<default>containment</default></key>"
	"<key id='gen_method' for='edge' attr.name='gen_method' attr.type='string'>"
	"<default>MULTIPLY</default></key>"
	"<key id='id_scope' for='edge' attr.name='id_scope' attr.type='int'><default>0</default></key>"
	"<key id='id_start' for='edge' attr.name='id_start' attr.type='int'><default>0</default></key>"
	"<key id='id_stride' for='edge' attr.name='id_stride' attr.type='int'><default>1</default></key>"
	"<key id='multi_scale' for='edge' attr.name='multi_scale' attr.type='int'>"
	"<default>1</default></key>"
	"<graph edgedefault='directed'>"
	"<node id='c'><data key='root'>1</data><data key='type'>cluster</data>"
	"<data key='basename'>c</data></node>"
	"<node id='n'><data key='type'>node</data><data key='basename'>n</data></node>"
	"<node id='k'><data key='type'>core</data><data key='basename'>core</data></node>"
	"<node id='m'><data key='type'>memory</data><data key='basename'>memory</data>"
	"<data key='size'>4</data></node>"
	"<edge id='a' source='c' target='n'><data key='multi_scale'>3</data></edge>"
	"<edge id='b' source='n' target='k'><data key='multi_scale'>4</data></edge>"
	"<edge id='d' source='n' target='m'><data key='multi_scale'>2</data></edge>"
	"</graph></graphml>";

static const char fuzz_job[] = "version: 1\n"
			       "resources:\n"
			       "- {type: node, count: 1, with: [{type: slot, count: 1, label: s, "
			       "with: [{type: core, count: 2}]}]}\n"
			       "tasks: [{command: [a], slot: s, count: {per_slot: 1}}]\n"
			       "attributes: {system: {duration: 100}}\n";

/* The machine as a whole. */
static const char fuzz_whole[] = "version: 1\n"
				 "resources:\n"
				 "- {type: node, count: 3, exclusive: true, with: [{type: slot, "
				 "count: 1, label: s, with: [{type: core, count: 4}]}]}\n"
				 "tasks: [{command: [a], slot: s, count: {per_slot: 1}}]\n"
				 "attributes: {system: {duration: 50}}\n";

/* Three cores wherever, with memory and a choice for the flexible traverser. */
static const char fuzz_loose[] =
	"version: 9999\n"
	"resources:\n"
	"- {type: slot, count: {min: 1, max: 3, operator: '+', operand: 1}, label: s, with: "
	"[{type: core, count: 1}, {type: memory, count: 3}]}\n"
	"tasks: [{command: [a], slot: s, count: {per_slot: 1}}]\n"
	"attributes: {system: {duration: 30, constraints: {not: [{properties: [big]}]}}}\n";

/* A node more, and a part of what is there, as JGF. */
#define FUZZ_ROOT                                                                              \
	"{\"id\":\"0\",\"metadata\":{\"type\":\"cluster\",\"basename\":\"c\",\"name\":\"c0\"," \
	"\"id\":0,\"uniq_id\":0,\"rank\":-1,\"size\":1,\"paths\":{\"containment\":\"/c0\"}}}"
static const char fuzz_more[] =
	"{\"graph\":{\"nodes\":[" FUZZ_ROOT ",{\"id\":\"90\",\"metadata\":{\"type\":\"node\","
	"\"basename\":\"n\",\"name\":\"n3\",\"id\":3,\"uniq_id\":90,\"rank\":3,\"size\":1,\"paths\":"
	"{\"containment\":\"/c0/n3\"}}},{\"id\":\"91\",\"metadata\":{\"type\":\"core\",\"basename\":"
	"\"core\",\"name\":\"core0\",\"id\":0,\"uniq_id\":91,\"rank\":3,\"size\":1,\"paths\":"
	"{\"containment\":\"/c0/n3/core0\"}}}],\"edges\":[{\"source\":\"0\",\"target\":\"90\"},"
	"{\"source\":\"90\",\"target\":\"91\"}]}}";
static const char fuzz_part[] =
	"{\"graph\":{\"nodes\":[" FUZZ_ROOT ",{\"id\":\"1\",\"metadata\":{\"type\":\"node\","
	"\"basename\":\"n\",\"name\":\"n0\",\"id\":0,\"uniq_id\":1,\"rank\":0,\"size\":1,\"paths\":"
	"{\"containment\":\"/c0/n0\"}}},{\"id\":\"2\",\"metadata\":{\"type\":\"core\",\"basename\":"
	"\"core\",\"name\":\"core0\",\"id\":0,\"uniq_id\":4,\"rank\":0,\"size\":1,\"exclusive\":true,"
	"\"paths\":{\"containment\":\"/c0/n0/core0\"}}}],\"edges\":[{\"source\":\"0\",\"target\":\"1\"},"
	"{\"source\":\"1\",\"target\":\"2\"}]}}";

static const char fuzz_r[] = "{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"0\", "
			     "\"children\": {\"core\": \"0-1\"}}], \"nodelist\": [\"n0\"]}}";

static int fuzz_read(void *arg, const char *path, struct slu_buf *out)
{
	static const struct {
		const char *path, *text;
	} fixed[] = {
		{ "graph", fuzz_grug },  { "job", fuzz_job },     { "r", fuzz_r },
		{ "whole", fuzz_whole }, { "loose", fuzz_loose }, { "more", fuzz_more },
		{ "part", fuzz_part },
	};
	const struct fuzz_files *f = arg;
	const char *three = strstr(fuzz_grug, ">3<");

	/* As many nodes as are not looked at one by one. */
	if (!strcmp(path, "wide")) {
		slu_buf_add(out, fuzz_grug, (size_t)(three - fuzz_grug) + 1);
		slu_buf_puts(out, "70");
		return slu_buf_puts(out, three + 2);
	}
	for (size_t i = 0; i < SLU_LEN(fixed); i++)
		if (!strcmp(path, fixed[i].path))
			return slu_buf_puts(out, fixed[i].text);
	if (!strcmp(path, "f") && f)
		return slu_buf_add(out, f->text, f->n);
	return -ENOENT;
}

/* Results and errors go to `out`, NULL = nowhere. */
static struct slu_session *fuzz_session_with(struct fuzz_files *files,
					     const struct slu_query_options *with, FILE *out)
{
	static FILE *nowhere;
	struct slu_query_options o = *with;
	struct slu_session_io io = { .read = fuzz_read, .arg = files };
	struct slu_buf msg = SLU_BUF_INIT(4096);
	struct slu_session *s = NULL;

	if (!o.load_file)
		o.load_file = "graph";
	o.load_format = "grug";
	o.subsystems = "CA";
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	must(nowhere);
	io.std = nowhere;
	io.out = io.err = out ? out : nowhere;
	must(slu_session_new(&o, &io, &s, &msg) == 0);
	slu_buf_done(&msg);
	return s;
}

static inline struct slu_session *fuzz_session(struct fuzz_files *files, const char *policy,
					       enum slu_format format)
{
	struct slu_query_options o = { .policy = policy, .traverser = "simple", .format = format };

	return fuzz_session_with(files, &o, NULL);
}
