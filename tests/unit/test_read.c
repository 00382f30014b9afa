/* Readers: what they refuse and in which words, that a refusal leaves the graph as it was, and that
 * every allocation may fail. */
#include <string.h>

#include "graph/read.h"
#include "jgf_pieces.h"
#include "tap.h"
#include "wire/jsonparts.h"

#define N(id, meta)    "{\"id\": \"" id "\", \"metadata\": {" meta "}}"
#define P(path)        "\"paths\": {\"containment\": \"" path "\"}"
#define ROOT           N("0", "\"type\": \"cluster\", " P("/c"))
#define JGF(nodes, ed) "{\"graph\": {\"nodes\": [" nodes "], \"edges\": [" ed "]}}"
#define R(x)           "{\"version\": 1, \"execution\": {" x "}}"

static const struct {
	const char *format, *text, *msg; /* msg NULL: accepted */
} row[] = {
	{ "jgf", JGF(ROOT, ""), NULL },
	{ "jgf", "{}", "fetch_jgf: JGF does not contain a required key (graph).\n" },
	{ "jgf", "[]", "fetch_jgf: JGF does not contain a required key (graph).\n" },
	{ "jgf", "{\"graph\": {}}", "fetch_jgf: JGF does not contain a required key (nodes).\n" },
	{ "jgf", "{\"graph\": {\"nodes\": []}}",
	  "fetch_jgf: JGF does not contain a required key (edges).\n" },
	{ "jgf", "{\"graph\": {\"nodes\": [], \"edges\": []}, \"free_ranks\": \"3-1\"}",
	  "fetch_jgf: failed to decode ranks.\n" },
	{ "jgf", "{\"graph\": {\"nodes\": [],}}",
	  "fetch_jgf: json_loads returned an error: trailing comma is not allowed: "
	  "<string>@1:23.\n" },
	{ "jgf", JGF("{\"metadata\": {}}", ""),
	  "fill_fetcher: JGF vertex id key is not found in a node.\n" },
	{ "jgf", JGF("5", ""), "fill_fetcher: JGF vertex id key is not found in a node.\n" },
	{ "jgf", JGF("{\"id\": \"7\"}", ""),
	  "fill_fetcher: key (metadata) is not found in an JGF node for 7.\n" },
	{ "jgf", JGF(N("7", P("/c")), ""),
	  "fill_fetcher: malformed metadata in an JGF node for 7\n" },
	{ "jgf", JGF(N("7", "\"type\": \"node\""), ""),
	  "fill_fetcher: malformed metadata in an JGF node for 7\n" },
	{ "jgf", JGF(N("7", "\"type\": \"node\", \"size\": 1.5, " P("/c")), ""),
	  "fill_fetcher: malformed metadata in an JGF node for 7\n" },
	{ "jgf", JGF(N("7", "\"type\": \"node\", \"exclusive\": 1, " P("/c")), ""),
	  "fill_fetcher: malformed metadata in an JGF node for 7\n" },
	{ "jgf", JGF(N("7", "\"type\": \"node\", \"properties\": [], " P("/c")), ""),
	  "fill_fetcher: key (properties) must be an object or null for 7.\n" },
	{ "jgf", JGF(N("x", "\"type\": \"node\", " P("/c")), ""),
	  "apply_defaults: value for key (uniq_id) could not be inferred from outer 'id' field x.\n" },
	{ "jgf", JGF(N("99999999999999999999", "\"type\": \"node\", " P("/c")), ""),
	  "apply_defaults: value for key (uniq_id) could not be inferred from outer 'id' field "
	  "99999999999999999999.\n" },
	{ "jgf", JGF(ROOT "," N("0", "\"type\": \"node\", " P("/c/n")), ""),
	  "add_vtx: found duplicate JGF node id for 0.\n" },
	{ "jgf", JGF(ROOT "," ROOT, ""), "update_vmap: can't insert into vmap for 0.\n" },
	{ "jgf", JGF(ROOT "," N("1", "\"type\": \"cluster\", " P("/d")), ""),
	  "add_graph_metadata: failed to add root metadata for containment subsystem. Possible "
	  "duplicate root.\n" },
	{ "jgf", JGF(ROOT, "{\"source\": \"0\"}"), "unpack_edge: encountered a malformed edge.\n" },
	{ "jgf", JGF(ROOT, "{\"source\": \"0\", \"target\": \"9\"}"),
	  "unpack_edge: source and/or target vertex not found0 -> 9.\n" },
	{ "jgf", JGF(ROOT, "{\"source\": \"0\", \"target\": \"0\", \"metadata\": 5}"),
	  "unpack_edge: could not unpack edge metadata.\n" },
	{ "jgf", JGF(N("7", "\"type\": \"node\", \"size\": -5, " P("/c")), ""),
	  "create_vtx: planner_new returned NULL.\nsize out of range for 7.\n" },
	{ "jgf", JGF(N("7", "\"type\": \"node\", \"rank\": 4294967296, " P("/c")), ""),
	  "create_vtx: rank out of range for 7.\n" },
	{ "rv1exec",
	  R("\"R_lite\": [{\"rank\": \"0-1\", \"children\": {\"core\": \"0-3\"}}], "
	    "\"nodelist\": [\"a[0-1]\"]"),
	  NULL },
	{ "rv1exec", "", "" },
	{ "rv1exec", "not JSON", "" },
	{ "rv1exec", "{\"version\": 2, \"execution\": {\"R_lite\": [], \"nodelist\": []}}", "" },
	{ "rv1exec", R("\"R_lite\": []"), "" },
	{ "rv1exec", R("\"R_lite\": [{\"rank\": 0, \"children\": {}}], \"nodelist\": [\"a\"]"),
	  "" },
	{ "rv1exec", R("\"R_lite\": [{\"rank\": \"0\"}], \"nodelist\": [\"a\"]"), "" },
	{ "rv1exec",
	  R("\"R_lite\": [{\"rank\": \"0\", \"children\": {\"core\": 1}}], "
	    "\"nodelist\": [\"a\"]"),
	  "" },
	{ "rv1exec",
	  R("\"R_lite\": [{\"rank\": \"0-1\", \"children\": {}}], \"nodelist\": [\"a\"]"), "" },
	{ "rv1exec",
	  R("\"R_lite\": [{\"rank\": \"0\", \"children\": {}}], \"nodelist\": "
	    "[\"a99999999999999999999\"]"),
	  "unpack_rank: error splitting hostname=a99999999999999999999; " },
	{ "rv1exec",
	  R("\"R_lite\": [{\"rank\": \"0\", \"children\": {}}, {\"rank\": \"0\", \"children\": "
	    "{}}], \"nodelist\": [\"a\"]"),
	  "add_or_update: found duplicate vertex in graph for a.\nunpack_rank: failed unpacking "
	  "rank for a.\n" },
	{ "grug", "", "error in reading grug string; " },
	{ "grug", "<xml/>", "error in reading grug string; " },
	{ "grug", "<graphml><graph edgedefault='undirected'/></graphml>",
	  "error in reading grug string; " },
	{ "grug", "<graphml><key id='s' for='ship' attr.name='size' attr.type='long'/></graphml>",
	  "error in reading grug string; " },
	{ "grug",
	  "<graphml><graph edgedefault='directed'><node id='a'><data key='x'>1</data></node></graph></graphml>",
	  "error in reading grug string; " },
	{ "grug",
	  "<graphml><key id='s' for='node' attr.name='size' attr.type='int'/><graph edgedefault='directed'><node id='a'><data "
	  "key='s'>1</data></node></graph></graphml>",
	  "error in reading grug string; " },
	{ "grug",
	  "<graphml><key id='s' for='node' attr.name='size' attr.type='long'/><graph edgedefault='directed'><node "
	  "id='a'><data key='s'>many</data></node></graph></graphml>",
	  "error in reading grug string; " },
	{ "grug", "<graphml><graph edgedefault='directed'><edge source='a'/></graph></graphml>",
	  "error in reading grug string; " },
	{ "hwloc", "<machine/>", "Error setting xmlbuffer; " },
	{ "hwloc", "<topology></topology>", "Error setting xmlbuffer; " },
	{ "hwloc",
	  "<topology><object type='Machine'><object type='OSDev' osdev_type='0' "
	  "name='sda'/></object></topology>",
	  "Error getting the size of block storage device; Error hwloc walk: rank -1; " },
	{ "hwloc", "<topology><object type='Machine'/></topology>", NULL },
};

static void test_rows(void)
{
	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_buf msg = SLU_BUF_INIT(4096);
		struct slu_graph *g = slu_graph_new();
		int rc = slu_read(g, row[i].format, row[i].text, strlen(row[i].text), NULL, &msg);
		bool good = row[i].msg ? rc == -EINVAL && !strcmp(slu_buf_str(&msg), row[i].msg) &&
						 g->live_v == 0 && g->root[0] == SLU_NONE
				       : rc == 0 && g->live_v > 0;

		ok(good, "%s %zu: %d %s", row[i].format, i, rc, slu_buf_str(&msg));
		slu_buf_done(&msg);
		slu_graph_free(g);
	}
}

#define NODE1          N("1", "\"type\": \"node\", " P("/c/n"))
#define EDGE(from, to) "{\"source\": \"" from "\", \"target\": \"" to "\"}"

/* Mistakes that a reader could make which forgets the text as it goes: order, keys that occur
 * twice, and which of two errors it reports. */
static const char *const odd[] = {
	"",
	" ",
	"{\"graph\": {\"edges\": [" EDGE("0", "1") "], \"nodes\": [" ROOT "," NODE1 "]}}",
	"{\"graph\": {\"edges\": [" EDGE("0", "2") "], \"nodes\": [" ROOT "," NODE1 "]}}",
	/* the last of two lists counts, and something else in its place has no items */
	"{\"graph\": {\"nodes\": [" NODE1 "," NODE1 "], \"edges\": [{}, {}], \"nodes\": [" ROOT
	"], \"edges\": []}}",
	"{\"graph\": {\"nodes\": [" ROOT "], \"nodes\": 5, \"edges\": []}}",
	"{\"graph\": {\"nodes\": [" ROOT "], \"edges\": [{}], \"edges\": {}}}",
	"{\"graph\": {\"nodes\": [" ROOT "], \"edges\": []}, \"graph\": {\"nodes\": [" NODE1
	"], \"edges\": []}}",
	"{\"graph\": {\"nodes\": [" ROOT "], \"edges\": []}, \"graph\": {\"nodes\": []}}",
	"{\"graph\": {\"nodes\": [" ROOT "], \"edges\": []}, \"graph\": 7}",
	"{\"graph\": {\"nodes\": [" ROOT "," NODE1
	"], \"edges\": [" EDGE("0", "1") "], \"nodes\": [" ROOT "]}}",
	"{\"gr\\u0061ph\": {\"nodes\": [" ROOT "], \"\\u0065dges\": []}}",
	"{\"more\": {\"nodes\": [" ROOT "], \"edges\": []}}",
	"{\"more\": {\"nodes\": [1], \"edges\": [2]}, \"graph\": {\"nodes\": [" ROOT
	"], \"labels\": [3], \"edges\": []}, \"graph2\": {\"nodes\": [4]}}",
	/* the text is wrong behind an item that is, too; an end that is missing before a name is */
	"{\"graph\": {\"nodes\": [" ROOT "," ROOT "], \"edges\": []}",
	"{\"graph\": {\"nodes\": [" ROOT "," ROOT "], \"edges\": [{}]}, \"free_ranks\": \"x\"}",
	JGF(ROOT, EDGE("0", "9") ", {}"),
	JGF(ROOT, "{\"source\": \"0\", \"target\": \"9\", \"metadata\": 5}"),
	JGF(ROOT "," NODE1, EDGE("0", "1") "," EDGE("0", "1")),
	JGF(ROOT "," NODE1,
	    EDGE("0", "1") ", {\"source\": \"0\", \"target\": \"0\", \"metadata\": 5}, {}"),
	JGF(ROOT "," NODE1 "," N("2", "\"type\": \"node\", " P("/c/n")) ", 5", EDGE("0", "1")),
	JGF(ROOT "," NODE1 "," N("2", "\"type\": \"node\", " P("/c/n")) ", 5", EDGE("0", "7")),
};

static void test_pieces(void)
{
	static const size_t piece[] = { 1, 2, 7, 64, 1 << 20 };

	for (size_t i = 0; i < SLU_LEN(odd) + SLU_LEN(row); i++) {
		const char *text = i < SLU_LEN(odd) ? odd[i] : row[i - SLU_LEN(odd)].text;
		const char *what = NULL;

		for (size_t k = 0; k < SLU_LEN(piece) && !what; k++)
			what = pieces_differ(text, strlen(text), piece[k], piece[k]);
		for (size_t cut = 1; cut < strlen(text) && !what; cut++)
			what = pieces_differ(text, strlen(text), cut, strlen(text));
		ok(!what, "in pieces %zu: %s", i, what ? what : "the same");
	}
}

static const char recipe[] =
	"<graphml>"
	"<key id='root' for='node' attr.name='root' attr.type='int'><default>0</default></key>"
	"<key id='type' for='node' attr.name='type' attr.type='string'/>"
	"<key id='base' for='node' attr.name='basename' attr.type='string'/>"
	"<key id='size' for='node' attr.name='size' attr.type='long'><default>1</default></key>"
	"<key id='sub' for='node' attr.name='subsystem' attr.type='string'>"
	"<default>containment</default></key>"
	"<key id='esub' for='edge' attr.name='e_subsystem' attr.type='string'>"
	"<default>containment</default></key>"
	"<key id='gen' for='edge' attr.name='gen_method' attr.type='string'>"
	"<default>MULTIPLY</default></key>"
	"<key id='n' for='edge' attr.name='multi_scale' attr.type='int'><default>1</default></key>"
	"<graph edgedefault='directed'>"
	"<node id='c'><data key='root'>1</data><data key='type'>cluster</data>"
	"<data key='base'>c</data></node>"
	"<node id='n'><data key='type'>node</data><data key='base'>n</data></node>"
	"<node id='p'><data key='root'>1</data><data key='type'>pdu</data><data key='base'>p</data>"
	"<data key='sub'>power</data></node>"
	"<node id='m'><data key='type'>node</data><data key='base'>n</data></node>"
	"<edge source='c' target='n'><data key='n'>%s</data></edge>"
	"<edge source='p' target='m'><data key='esub'>power</data>"
	"<data key='gen'>ASSOCIATE_BY_PATH_IN</data></edge>"
	"</graph></graphml>";

static void test_recipe(void)
{
	static const struct {
		const char *scale;
		int rc;
		uint32_t v;
	} c[] = { { "3", 0, 5 }, { "0", 0, 2 }, { "-3", 0, 2 }, { "2147483647", -EFBIG, 0 } };

	for (size_t i = 0; i < SLU_LEN(c); i++) {
		struct slu_buf msg = SLU_BUF_INIT(4096), text = SLU_BUF_INIT(1 << 16);
		struct slu_graph *g = slu_graph_new();
		int rc;

		slu_buf_printf(&text, recipe, c[i].scale);
		rc = slu_read_grug(g, text.p, text.n, &msg);
		ok(rc == c[i].rc && g->live_v == c[i].v, "%s children: %d, %u vertices %s",
		   c[i].scale, rc, g->live_v, slu_buf_str(&msg));
		slu_buf_done(&msg);
		slu_buf_done(&text);
		slu_graph_free(g);
	}
}

/* Longer than the part that is read at once: edges first, `blanks` and `last` behind the vertices.
 */
static void put_large(struct slu_buf *b, uint32_t n, int blanks, const char *last)
{
	slu_buf_puts(b, "{\"graph\": {\"edges\": [");
	for (uint32_t i = 1; i <= n; i++)
		slu_buf_printf(b, "%s{\"source\": \"0\", \"target\": \"%u\"}", i > 1 ? ",\n" : "",
			       i);
	slu_buf_puts(b, "], \"nodes\": [" ROOT);
	for (uint32_t i = 1; i <= n; i++)
		slu_buf_printf(b,
			       ", %*s\n{\"id\": \"%u\", \"metadata\": {\"type\": \"node\", "
			       "\"name\": \"n%u\", \"rank\": %u, " P("/c/n%u") "}}",
			       blanks, "", i, i, i, i);
	slu_buf_puts(b, last);
}

static void test_large(void)
{
	static const struct {
		const char *last, *msg;
	} c[] = {
		{ "]}}", "" },
		{ ", {\"id\": \"7\"}]}}",
		  "fill_fetcher: key (metadata) is not found in an JGF node for 7.\n" },
		{ ", " N("5", "\"type\": \"node\", " P("/c/m")) "]}}",
		  "add_vtx: found duplicate JGF node id for 5.\n" },
		{ "\n], \"edges\": [{\"source\": \"0\", \"target\": \"2001\"}]}}",
		  "unpack_edge: source and/or target vertex not found0 -> 2001.\n" },
		/* 1 999 line ends between edges, 2 000 before vertices. */
		{ ", {\"id\": \"7\"}\n\n]}}}",
		  "fetch_jgf: json_loads returned an error: unexpected content after document: "
		  "<string>@4002:4.\n" },
	};

	for (size_t i = 0; i < SLU_LEN(c); i++) {
		struct slu_buf text = SLU_BUF_INIT(1 << 22), msg = SLU_BUF_INIT(4096);
		struct slu_graph *g = slu_graph_new();
		struct slu_listing l = { 0 };
		bool good = !*c[i].msg;
		int rc;

		put_large(&text, 2000, 1, c[i].last);
		rc = slu_read_jgf(g, text.p, text.n, &msg);
		ok(text.n > SLU_JSON_PART * 3 && rc == (good ? 0 : -EINVAL) &&
			   !strcmp(slu_buf_str(&msg), c[i].msg) && g->live_v == good * 2001 &&
			   g->live_e == good * 2000,
		   "large %zu: %d, %u vertices %s", i, rc, g->live_v, slu_buf_str(&msg));
		ok(!pieces_differ(text.p, text.n, 100, 4096) &&
			   !pieces_differ(text.p, text.n, SLU_JSON_PART, 60 << 10),
		   "large %zu: the same in pieces", i);
		rc = slu_jgf_listing(&l, text.p, text.n, false, true);
		ok(rc == 0 && l.broken == !good && (!good || (l.v.n == 2001 && l.e.n == 2000)),
		   "large %zu as a listing: %u vertices, %u edges %s", i, l.v.n, l.e.n, l.error);
		slu_listing_done(&l);
		slu_graph_free(g);
		slu_buf_done(&msg);
		slu_buf_done(&text);
	}
}

static void test_memory(void)
{
	struct slu_buf grug = SLU_BUF_INIT(1 << 16), large = SLU_BUF_INIT(1 << 20);
	const struct {
		const char *format, *text;
	} c[] = {
		{ "grug", (slu_buf_printf(&grug, recipe, "3"), grug.p) },
		{ "jgf", JGF(ROOT "," N("1", "\"type\": \"node\", \"name\": \"n07\", \"rank\": 0, "
					     "\"properties\": {\"a\": \"b\"}, " P("/c/n07")),
			     "{\"source\": \"0\", \"target\": \"1\"}") },
		{ "jgf", (put_large(&large, 3, SLU_JSON_PART, "]}}"), large.p) },
		{ "rv1exec", R("\"R_lite\": [{\"rank\": \"0-1\", \"children\": {\"core\": "
			       "\"0-3\"}}], \"nodelist\": [\"a[0-1]\"], \"properties\": {\"x\": "
			       "\"1\"}") },
		{ "hwloc", "<topology><object type='Machine'><info name='HostName' value='n1'/>"
			   "<object type='NUMANode' cpuset='1'><object type='Core'/></object>"
			   "</object></topology>" },
	};

	for (size_t i = 0; i < SLU_LEN(c); i++) {
		for (long k = 0;; k++) {
			struct slu_graph *g = slu_graph_new();
			struct slu_buf msg = SLU_BUF_INIT(4096);
			uint32_t left;
			int rc;

			slu_fault_arm(k);
			rc = slu_read(g, c[i].format, c[i].text, strlen(c[i].text), NULL, &msg);
			left = g->live_v;
			slu_buf_done(&msg);
			if (!slu_fault_disarm()) {
				ok(rc == 0 && k > 5, "%s: clean after %ld faults", c[i].format, k);
				slu_graph_free(g);
				break;
			}
			if (rc != -ENOMEM || left)
				ok(false, "%s: allocation %ld: %d, %u left", c[i].format, k, rc,
				   left);
			slu_graph_free(g);
		}
	}
	for (long k = 0;; k++) {
		struct slu_buf msg = SLU_BUF_INIT(4096);
		struct slu_graph *g = NULL;
		struct slu_jgf_loader *l;
		int rc = -ENOMEM;

		slu_fault_arm(k);
		l = slu_jgf_loader_new();
		for (size_t i = 0; l && i < large.n; i += 5000)
			slu_jgf_loader_feed(l, large.p + i, SLU_MIN(large.n - i, (size_t)5000));
		if (l)
			rc = slu_jgf_loader_end(l, &g, &msg);
		slu_jgf_loader_free(l);
		slu_graph_free(g);
		slu_buf_done(&msg);
		if (!slu_fault_disarm()) {
			ok(rc == 0 && k > 5, "in pieces: clean after %ld faults", k);
			break;
		}
		if (rc != -ENOMEM || g)
			ok(false, "in pieces: allocation %ld: %d", k, rc);
	}
	slu_buf_done(&grug);
	slu_buf_done(&large);
}

static void test_hostname(void)
{
	static const struct {
		const char *host;
		size_t base;
		int64_t id;
		int rc;
	} c[] = {
		{ "node017", 4, 17, 0 },
		{ "login", 5, -1, 0 },
		{ "000", 3, 0, 0 },
		{ "12", 2, 12, 0 },
		{ "a0b00", 3, 0, 0 },
		{ "", 0, -1, 0 },
		{ "x9223372036854775807", 1, INT64_MAX, 0 },
		{ "x9223372036854775808", 1, 0, -EOVERFLOW },
	};

	for (size_t i = 0; i < SLU_LEN(c); i++) {
		size_t base = 0;
		int64_t id = 0;
		int rc = slu_split_hostname(c[i].host, &base, &id);

		ok(rc == c[i].rc && base == c[i].base && (rc || id == c[i].id),
		   "the host name \"%s\" is split as it should be", c[i].host);
	}
}

int main(void)
{
	test_rows();
	test_pieces();
	test_recipe();
	test_large();
	test_memory();
	test_hostname();
	return tap_done();
}
