#include "graph/recipe.h"

#include "graph/xml.h"

#define MAX_RECIPE (1u << 16) /* vertices, edges, keys of a recipe */
#define MAX_TEXT   4096u      /* of one value */
#define MAX_XML    ((size_t)64 << 20)
#define MAX_ROOTS  64u /* root elements; the first <graphml> is the graph */

enum kind { KIND_STRING, KIND_INT, KIND_LONG, KIND_OTHER };

enum attr {
	A_ROOT,
	A_TYPE,
	A_BASENAME,
	A_SIZE,
	A_UNIT,
	A_SUBSYSTEM,
	A_E_SUBSYSTEM,
	A_RELATION,
	A_RRELATION,
	A_GEN_METHOD,
	A_ID_SCOPE,
	A_ID_START,
	A_ID_STRIDE,
	A_MULTI_SCALE,
	A_AS_TGT_SUBSYSTEM,
	A_AS_TGT_UPLVL,
	A_AS_SRC_UPLVL,
	A_UNKNOWN,
};

static const struct {
	const char *name;
	enum kind kind;
} attrs[] = {
	[A_ROOT] = { "root", KIND_INT },
	[A_TYPE] = { "type", KIND_STRING },
	[A_BASENAME] = { "basename", KIND_STRING },
	[A_SIZE] = { "size", KIND_LONG },
	[A_UNIT] = { "unit", KIND_STRING },
	[A_SUBSYSTEM] = { "subsystem", KIND_STRING },
	[A_E_SUBSYSTEM] = { "e_subsystem", KIND_STRING },
	[A_RELATION] = { "relation", KIND_STRING },
	[A_RRELATION] = { "rrelation", KIND_STRING },
	[A_GEN_METHOD] = { "gen_method", KIND_STRING },
	[A_ID_SCOPE] = { "id_scope", KIND_INT },
	[A_ID_START] = { "id_start", KIND_INT },
	[A_ID_STRIDE] = { "id_stride", KIND_INT },
	[A_MULTI_SCALE] = { "multi_scale", KIND_INT },
	[A_AS_TGT_SUBSYSTEM] = { "as_tgt_subsystem", KIND_STRING },
	[A_AS_TGT_UPLVL] = { "as_tgt_uplvl", KIND_INT },
	[A_AS_SRC_UPLVL] = { "as_src_uplvl", KIND_INT },
};

struct key {
	enum attr attr;
	enum kind kind;
	bool for_node, for_edge, for_graph, has_default;
	const char *dflt;
};

enum where { IN_NOTHING, IN_KEY, IN_DEFAULT, IN_NODE, IN_EDGE, IN_DATA };

struct reader {
	struct slu_recipe *r;
	struct slu_xml xml;
	enum where in, outer; /* outer: what a <data> belongs to */
	bool graph;           /* <graphml> was seen */
	bool active;          /* and we are in it */
	uint32_t depth;       /* elements open */
	uint32_t deep;        /* elements inside a value, which are not part of the value */
	struct slu_intern key_ids, node_ids;
	SLU_VEC(struct key) keys;
	struct slu_map node_of; /* id -> vertex; of equal ids, the last one */
	uint32_t key;           /* of the <data> or <key> being read */
	uint32_t vertex;        /* the <node> being read */
	struct slu_buf text;
};

static void stop_parser(struct reader *x, int rc)
{
	slu_xml_stop(&x->xml, rc);
}

static char *keep_text(struct reader *x, const char *s, size_t n)
{
	char *p = slu_arena_strndup(&x->r->text, s, n);

	if (!p)
		stop_parser(x, -ENOMEM);
	return p;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* A whole decimal number, no blanks. */
static bool parse_number(const char *s, int64_t lo, int64_t hi, int64_t *out)
{
	char *end;
	long long v;

	if (!*s || is_blank(*s))
		return false;
	errno = 0;
	v = strtoll(s, &end, 10);
	if (errno || *end || v < lo || v > hi)
		return false;
	*out = v;
	return true;
}

static enum slu_gen_method method(const char *s)
{
	if (!strcmp(s, "MULTIPLY"))
		return SLU_GEN_MULTIPLY;
	if (!strcmp(s, "ASSOCIATE_IN"))
		return SLU_GEN_ASSOCIATE_IN;
	if (!strcmp(s, "ASSOCIATE_BY_PATH_IN"))
		return SLU_GEN_ASSOCIATE_BY_PATH_IN;
	return SLU_GEN_UNKNOWN;
}

/* Types and subsystems must be words. */
static const char *check_word(struct reader *x, const char *s)
{
	return strpbrk(s, " \t\n\r") ? NULL : keep_text(x, s, strlen(s));
}

static bool set_vertex(struct reader *x, struct slu_recipe_vertex *v, enum attr a, const char *s,
		       int64_t num)
{
	switch (a) {
	case A_ROOT:
		v->root = num != 0;
		return true;
	case A_TYPE:
		return (v->type = check_word(x, s));
	case A_BASENAME:
		return (v->basename = keep_text(x, s, strlen(s)));
	case A_SIZE:
		v->size = num;
		return true;
	case A_UNIT:
		return (v->unit = keep_text(x, s, strlen(s)));
	case A_SUBSYSTEM:
		return (v->subsystem = check_word(x, s));
	default:
		return false;
	}
}

static bool set_edge(struct reader *x, struct slu_recipe_edge *e, enum attr a, const char *s,
		     int64_t num)
{
	switch (a) {
	case A_E_SUBSYSTEM:
		return (e->subsystem = check_word(x, s));
	case A_RELATION:
	case A_RRELATION:
		return true;
	case A_GEN_METHOD:
		e->method = method(s);
		return true;
	case A_ID_SCOPE:
		e->scope = (int32_t)num;
		return true;
	case A_ID_START:
		e->start = (int32_t)num;
		return true;
	case A_ID_STRIDE:
		e->stride = (int32_t)num;
		return true;
	case A_MULTI_SCALE:
		e->scale = (int32_t)num;
		return true;
	case A_AS_TGT_SUBSYSTEM:
		return (e->tgt_subsystem = check_word(x, s));
	case A_AS_TGT_UPLVL:
		e->tgt_uplevel = (int32_t)num;
		return true;
	case A_AS_SRC_UPLVL:
		e->src_uplevel = (int32_t)num;
		return true;
	default:
		return false;
	}
}

/* Set one value of the newest vertex or edge.  The type that the key declares must be that of the
 * attribute; a string is converted. */
static void set_value(struct reader *x, const struct key *k, const char *s, bool edge)
{
	enum kind want = k->attr == A_UNKNOWN ? KIND_OTHER : attrs[k->attr].kind;
	int64_t num = 0;
	bool good;

	good = want != KIND_OTHER && (k->kind == want || k->kind == KIND_STRING);
	if (good && want != KIND_STRING && !(k->kind == KIND_STRING && !*s))
		good = want == KIND_INT ? parse_number(s, INT32_MIN, INT32_MAX, &num)
					: parse_number(s, INT64_MIN, INT64_MAX, &num);
	if (good)
		good = edge ? set_edge(x, &x->r->e.p[x->r->e.n - 1], k->attr, s, num)
			    : set_vertex(x, &x->r->v.p[x->vertex], k->attr, s, num);
	if (!good)
		stop_parser(x, -EINVAL);
}

static void set_defaults(struct reader *x, bool edge)
{
	for (uint32_t i = 0; i < x->keys.n && !x->xml.rc; i++) {
		const struct key *k = &x->keys.p[i];

		if (k->has_default && (edge ? k->for_edge : k->for_node))
			set_value(x, k, k->dflt, edge);
	}
}

static enum kind kind_of(const char *s)
{
	if (!strcmp(s, "string"))
		return KIND_STRING;
	if (!strcmp(s, "int"))
		return KIND_INT;
	return !strcmp(s, "long") ? KIND_LONG : KIND_OTHER;
}

/* The elements that a key may be declared for in GraphML. */
static bool known_target(const char *s)
{
	static const char *const known[] = { "graph", "node",     "edge", "hyperedge",
					     "port",  "endpoint", "all" };

	for (size_t i = 0; i < SLU_LEN(known); i++)
		if (!strcmp(s, known[i]))
			return true;
	return false;
}

static void on_key(struct reader *x, const XML_Char **a)
{
	const char *id = slu_xml_attribute(a, "id"), *to = slu_xml_attribute(a, "for");
	const char *name = slu_xml_attribute(a, "attr.name");
	const char *type = slu_xml_attribute(a, "attr.type");
	struct key k = { .attr = A_UNKNOWN };

	if (!to || !name || !type || !known_target(to)) {
		stop_parser(x, -EINVAL);
		return;
	}
	k.kind = kind_of(type);
	k.for_node = !strcmp(to, "node");
	k.for_edge = !strcmp(to, "edge");
	k.for_graph = !strcmp(to, "graph");
	for (size_t i = 0; i < SLU_LEN(attrs); i++)
		if (!strcmp(name, attrs[i].name))
			k.attr = (enum attr)i;
	x->key = slu_intern(&x->key_ids, id ? id : "");
	if (x->key == SLU_INTERN_NONE)
		stop_parser(x, -ENOMEM);
	else if (x->key >= MAX_RECIPE)
		stop_parser(x, -EFBIG);
	else if (x->key < x->keys.n)
		x->keys.p[x->key] = k;
	else if (slu_vec_push(&x->keys, k) < 0)
		stop_parser(x, -ENOMEM);
}

/* Find or make the vertex of an id.  A later <node> with the same id describes the same vertex,
 * and a vertex that only an edge names exists, too. */
static void open_vertex(struct reader *x, const char *id)
{
	struct slu_recipe_vertex v = {
		"", "", "", "", .first_edge = SLU_NONE, .last_edge = SLU_NONE
	};
	uint32_t key = slu_intern(&x->node_ids, id);
	uint64_t *known;

	if (key == SLU_INTERN_NONE) {
		stop_parser(x, -ENOMEM);
		return;
	}
	known = slu_map_get(&x->node_of, key);
	if (known) {
		x->vertex = (uint32_t)*known;
		return;
	}
	if (x->r->v.n >= MAX_RECIPE) {
		stop_parser(x, -EFBIG);
		return;
	}
	x->vertex = x->r->v.n;
	if (slu_map_put(&x->node_of, key, x->r->v.n) < 0 || slu_vec_push(&x->r->v, v) < 0)
		stop_parser(x, -ENOMEM);
	else
		set_defaults(x, false);
}

static void on_node(struct reader *x, const XML_Char **a)
{
	const char *id = slu_xml_attribute(a, "id");

	if (id)
		open_vertex(x, id);
	else
		stop_parser(x, -EINVAL);
}

/* Keep the ends as ids until all vertices are read. */
static void on_edge(struct reader *x, const XML_Char **a)
{
	const char *src = slu_xml_attribute(a, "source"), *dst = slu_xml_attribute(a, "target");
	struct slu_recipe_edge e = {
		.next = SLU_NONE, .subsystem = "", .tgt_subsystem = "", .method = SLU_GEN_UNKNOWN
	};

	if (!src || !dst) {
		stop_parser(x, -EINVAL);
		return;
	}
	if (x->r->e.n >= MAX_RECIPE) {
		stop_parser(x, -EFBIG);
		return;
	}
	e.src = slu_intern(&x->node_ids, src);
	e.dst = slu_intern(&x->node_ids, dst);
	if (e.src == SLU_INTERN_NONE || e.dst == SLU_INTERN_NONE || slu_vec_push(&x->r->e, e) < 0) {
		stop_parser(x, -ENOMEM);
		return;
	}
	set_defaults(x, true);
}

static void link_edges(struct reader *x)
{
	for (uint32_t i = 0; i < x->r->e.n && !x->xml.rc; i++) {
		struct slu_recipe_edge *e = &x->r->e.p[i];
		struct slu_recipe_vertex *v;

		open_vertex(x, slu_intern_str(&x->node_ids, e->src));
		e->src = x->vertex;
		open_vertex(x, slu_intern_str(&x->node_ids, e->dst));
		e->dst = x->vertex;
		if (x->xml.rc)
			break;
		v = &x->r->v.p[e->src];
		if (v->last_edge == SLU_NONE)
			v->first_edge = i;
		else
			x->r->e.p[v->last_edge].next = i;
		v->last_edge = i;
	}
}

static void on_data(struct reader *x, const XML_Char **a)
{
	const char *key = slu_xml_attribute(a, "key");

	x->key = key ? slu_intern_find(&x->key_ids, key) : SLU_INTERN_NONE;
	if (x->key == SLU_INTERN_NONE)
		stop_parser(x, -EINVAL);
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **a)
{
	struct reader *x = arg;

	if (x->xml.rc)
		return;
	if (!x->depth++) {
		x->active = !x->graph && !strcmp(name, "graphml");
		x->graph = x->graph || x->active;
	}
	if (!x->active)
		return;
	if (x->in == IN_DATA || x->in == IN_DEFAULT) {
		x->deep++;
		return;
	}
	slu_buf_reset(&x->text);
	if (!strcmp(name, "graph")) {
		const char *edges = slu_xml_attribute(a, "edgedefault");

		if (!edges || strcmp(edges, "directed") != 0)
			stop_parser(x, -EINVAL);
	} else if (!strcmp(name, "key")) {
		x->in = IN_KEY;
		on_key(x, a);
	} else if (!strcmp(name, "default") && x->in == IN_KEY) {
		x->in = IN_DEFAULT;
	} else if (!strcmp(name, "node")) {
		x->in = IN_NODE;
		on_node(x, a);
	} else if (!strcmp(name, "edge")) {
		x->in = IN_EDGE;
		on_edge(x, a);
	} else if (!strcmp(name, "data")) {
		x->outer = x->in;
		x->in = IN_DATA;
		if (x->outer == IN_NODE || x->outer == IN_EDGE)
			on_data(x, a);
	}
}

/* The collected text without the blanks around it. */
static const char *trimmed(struct reader *x)
{
	struct slu_buf *b = &x->text;
	const char *s;

	while (b->n && is_blank(b->p[b->n - 1]))
		b->p[--b->n] = '\0';
	for (s = slu_buf_str(b); is_blank(*s);)
		s++;
	return s;
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
	struct reader *x = arg;

	if (x->xml.rc)
		return;
	x->depth--;
	if (!x->active)
		return;
	if (x->deep) {
		x->deep--;
		return;
	}
	switch (x->in) {
	case IN_DEFAULT: {
		const char *s = trimmed(x);

		/* The graph itself has no attributes that could take the value. */
		if (x->keys.p[x->key].for_graph)
			stop_parser(x, -EINVAL);
		x->keys.p[x->key].has_default = true;
		x->keys.p[x->key].dflt = keep_text(x, s, strlen(s));
		x->in = IN_KEY;
		break;
	}
	case IN_DATA:
		if (x->outer == IN_NODE || x->outer == IN_EDGE)
			set_value(x, &x->keys.p[x->key], trimmed(x), x->outer == IN_EDGE);
		x->in = x->outer;
		break;
	case IN_KEY:
	case IN_NODE:
	case IN_EDGE:
		if (!strcmp(name, "key") || !strcmp(name, "node") || !strcmp(name, "edge"))
			x->in = IN_NOTHING;
		break;
	case IN_NOTHING:
		break;
	}
}

static void XMLCALL on_text(void *arg, const XML_Char *s, int n)
{
	struct reader *x = arg;

	if (x->xml.rc || x->deep || (x->in != IN_DATA && x->in != IN_DEFAULT))
		return;
	if (slu_buf_add(&x->text, s, (size_t)n) < 0)
		stop_parser(x, x->text.error == -ENOMEM ? -ENOMEM : -EFBIG);
}

int slu_recipe_parse(struct slu_recipe *r, const char *text, size_t n)
{
	struct reader x = { .r = r, .text = SLU_BUF_INIT(MAX_TEXT) };
	size_t at = 0;

	for (uint32_t i = 0; i < MAX_ROOTS; i++, at += x.xml.at) {
		slu_xml_parse(&x.xml, &x, text + at, n - at, MAX_XML, on_start, on_end, on_text);
		if (!x.xml.next || x.depth)
			break;
	}
	if (!x.xml.rc && !x.graph)
		x.xml.rc = -EINVAL;
	if (!x.xml.rc)
		link_edges(&x);
	slu_intern_done(&x.key_ids);
	slu_intern_done(&x.node_ids);
	slu_map_done(&x.node_of);
	slu_vec_done(&x.keys);
	slu_buf_done(&x.text);
	return x.xml.rc;
}

void slu_recipe_done(struct slu_recipe *r)
{
	slu_vec_done(&r->v);
	slu_vec_done(&r->e);
	slu_arena_done(&r->text);
}
