#include "serve/grpc_live.h"

#include <pthread.h>
#include <stdio.h>

#include "wire/json.h"
#include "wire/jsonw.h"

#define MATCH_MAX ((size_t)1 << 30)
#define ROOT      "/k8scluster0"
#define MB_OF(b)  ((b) >> 20)
#define CHUNK_MB  1024

struct slu_grpc_live {
	struct slu_loop *loop;
	struct slu_core *core;
	pthread_mutex_t lock;
	struct asked *done, **done_at; /* the core has answered these, the loop has not */
	struct slu_call back;          /* tells the loop that answers wait */
	struct slu_snapshot *drawn;    /* the snapshot from which `graph` was made */
	struct slu_buf graph;
};

/* A question that the core has yet to answer. */
struct asked {
	struct slu_grpc_live *l;
	struct slu_flux_ask *a;
	struct asked *next;
	char *jobspec, *text;
	int rc;
	int64_t began_ns;
};

/* ---- a graph of nodes with amounts, as JGF ---- */

struct jgf {
	struct slu_jsonw nodes, edges;
	struct slu_buf node_text, edge_text;
	int64_t next;
	bool both; /* edges in both directions, as graphs to be loaded have them */
};

static void jgf_begin(struct jgf *g, bool both)
{
	*g = (struct jgf){ .node_text = SLU_BUF_INIT(MATCH_MAX),
			   .edge_text = SLU_BUF_INIT(MATCH_MAX),
			   .both = both };
	g->nodes = slu_jsonw(&g->node_text, SLU_JSONW_SPACED);
	g->edges = slu_jsonw(&g->edge_text, SLU_JSONW_SPACED);
	slu_jsonw_arr(&g->nodes);
	slu_jsonw_arr(&g->edges);
}

static int64_t jgf_vertex(struct jgf *g, const char *type, const char *base, int64_t id,
			  int64_t size, bool exclusive, const char *path)
{
	struct slu_jsonw *w = &g->nodes;
	char number[24];

	snprintf(number, sizeof number, "%" PRId64, g->next);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "id", number);
	slu_jsonw_key(w, "metadata");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", type);
	slu_jsonw_kstr(w, "basename", base);
	slu_jsonw_kstr(w, "name", strrchr(path, '/') + 1);
	slu_jsonw_ki64(w, "id", id);
	slu_jsonw_ki64(w, "uniq_id", g->next);
	slu_jsonw_ki64(w, "rank", -1);
	slu_jsonw_key(w, "exclusive");
	slu_jsonw_bool(w, exclusive);
	slu_jsonw_kstr(w, "unit", !strcmp(type, "memory") ? "MB" : "");
	slu_jsonw_ki64(w, "size", size);
	slu_jsonw_key(w, "paths");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "containment", path);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	slu_jsonw_end_obj(w);
	return g->next++;
}

static void one_edge(struct jgf *g, int64_t from, int64_t to)
{
	char text[24];

	slu_jsonw_obj(&g->edges);
	snprintf(text, sizeof text, "%" PRId64, from);
	slu_jsonw_kstr(&g->edges, "source", text);
	snprintf(text, sizeof text, "%" PRId64, to);
	slu_jsonw_kstr(&g->edges, "target", text);
	slu_jsonw_key(&g->edges, "metadata");
	slu_jsonw_obj(&g->edges);
	slu_jsonw_kstr(&g->edges, "subsystem", "containment");
	slu_jsonw_end_obj(&g->edges);
	slu_jsonw_end_obj(&g->edges);
}

static void jgf_edge(struct jgf *g, int64_t parent, int64_t child)
{
	one_edge(g, parent, child);
	if (g->both)
		one_edge(g, child, parent);
}

static int jgf_end(struct jgf *g, struct slu_buf *out)
{
	int rc;

	slu_jsonw_end_arr(&g->nodes);
	slu_jsonw_end_arr(&g->edges);
	slu_buf_printf(out, "{\"graph\": {\"nodes\": ");
	slu_buf_add(out, slu_buf_str(&g->node_text), g->node_text.n);
	slu_buf_printf(out, ", \"edges\": ");
	slu_buf_add(out, slu_buf_str(&g->edge_text), g->edge_text.n);
	slu_buf_printf(out, "}}\n");
	rc = g->node_text.error   ? g->node_text.error
	     : g->edge_text.error ? g->edge_text.error
				  : out->error;
	slu_buf_done(&g->node_text);
	slu_buf_done(&g->edge_text);
	return rc;
}

/* The free amounts of a node, or the amounts that a match has taken on it. */
struct part {
	const char *name;
	int64_t cores, memory_mb, gpus;
};

/* Write the children first and then the node: clients count the cores that come before a node. */
static void jgf_node(struct jgf *g, const struct part *p, int64_t id, bool taken, int64_t root)
{
	int64_t first = g->next, node;
	char path[400], leaf[440];
	int64_t memory = p->memory_mb;

	snprintf(path, sizeof path, ROOT "/%.253s%" PRId64, p->name, id);
	for (int64_t i = 0; i < p->gpus; i++) {
		snprintf(leaf, sizeof leaf, "%s/nvidiagpu%" PRId64, path, i);
		jgf_vertex(g, "gpu", "nvidiagpu", i, 1, taken, leaf);
	}
	for (int64_t i = 0; i < p->cores; i++) {
		snprintf(leaf, sizeof leaf, "%s/core%" PRId64, path, i);
		jgf_vertex(g, "core", "core", i, 1, taken, leaf);
	}
	for (int64_t i = 0; memory > 0; i++, memory -= CHUNK_MB) {
		snprintf(leaf, sizeof leaf, "%s/memory%" PRId64, path, i);
		jgf_vertex(g, "memory", "memory", i, SLU_MIN(memory, (int64_t)CHUNK_MB), taken,
			   leaf);
	}
	node = jgf_vertex(g, "node", p->name, id, 1, false, path);
	for (int64_t i = first; i < node; i++)
		jgf_edge(g, node, i);
	jgf_edge(g, root, node);
}

/* ---- answers ---- */

static int64_t number_at(const struct slu_json *o, const char *key)
{
	int64_t n;

	return slu_json_i64(slu_json_get(o, key), &n) < 0 ? 0 : n;
}

static int fill_nodes(struct slu_flux_ask *a, const struct slu_json *list)
{
	struct slu_flux_node *node = slu_arena_zalloc(&a->arena,
						      (slu_json_count(list) + 1) * sizeof *node);

	if (!node)
		return -ENOMEM;
	a->nodes = (struct slu_subs){ node, 0 };
	slu_json_each (list, it) {
		const char *name = slu_json_str(slu_json_get(it.val, "name"));

		name = slu_arena_strndup(&a->arena, name ? name : "", name ? strlen(name) : 0);
		if (!name)
			return -ENOMEM;
		node[a->nodes.n++] = (struct slu_flux_node){ slu_text(name),
							     (int32_t)(number_at(it.val, "cpu") /
								       1000 / SLU_MAX(a->cpu, 1)) };
	}
	return 0;
}

static int fill_graph(struct slu_flux_ask *a, const struct slu_json *list)
{
	struct jgf g;
	int64_t id = 0,
		root = INT32_MAX; /* the root comes last, with an id that no other vertex has */

	jgf_begin(&g, false);
	slu_json_each (list, it) {
		struct part p = { .name = slu_json_str(slu_json_get(it.val, "name")),
				  .cores = number_at(it.val, "cpu") / 1000,
				  .memory_mb = MB_OF(number_at(it.val, "memory")),
				  .gpus = number_at(it.val, "gpu") };

		jgf_node(&g, &p, id++, true, root);
	}
	g.next = root;
	jgf_vertex(&g, "cluster", "k8scluster", 0, 1, false, ROOT);
	return jgf_end(&g, &a->out);
}

static int matched(struct slu_flux_ask *a, const char *text)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	const struct slu_json *root, *list;
	int rc = slu_json_parse(text, strlen(text), NULL, &doc, NULL);

	if (rc < 0)
		return rc;
	root = slu_json_root(doc);
	list = slu_json_get(root, "nodes");
	a->got = (uint64_t)number_at(root, "job");
	a->at_s = number_at(root, "at");
	a->reserved = slu_json_bool_or(slu_json_get(root, "reserved"), false);
	return a->want_nodes ? fill_nodes(a, list) : fill_graph(a, list);
}

static void finish_asked(struct asked *q)
{
	struct slu_flux_ask *a = q->a;
	int rc = q->rc;

	if (!rc && a->op == SLU_FLUX_MATCH)
		rc = matched(a, q->text);
	a->outcome = !rc             ? SLU_FLUX_OK
		     : rc == -EBUSY  ? SLU_FLUX_NO_ROOM
		     : rc == -ENOENT ? SLU_FLUX_NO_JOB
		     : rc == -EINVAL ? SLU_FLUX_BAD
				     : SLU_FLUX_NOT_HERE;
	a->overhead_s = (double)(slu_clock_ns() - q->began_ns) / 1e9;
	slu_fail(&a->why, rc, "%s", q->rc && q->text ? q->text : rc ? strerror(-rc) : "");
	slu_flux_done(a);
	slu_free(q->jobspec);
	slu_free(q->text);
	slu_free(q);
}

/* On the loop's thread. */
static void answer_all(void *arg)
{
	struct slu_grpc_live *l = arg;
	struct asked *q, *next;

	pthread_mutex_lock(&l->lock);
	q = l->done;
	l->done = NULL;
	l->done_at = &l->done;
	pthread_mutex_unlock(&l->lock);
	for (; q; q = next) {
		next = q->next;
		finish_asked(q);
	}
}

/* On the core's thread. */
static void core_answered(void *arg, int rc, const char *text)
{
	struct asked *q = arg;
	struct slu_grpc_live *l = q->l;

	q->rc = rc;
	q->text = slu_strdup(text);
	if (!q->text && !rc)
		q->rc = -ENOMEM;
	q->next = NULL;
	pthread_mutex_lock(&l->lock);
	*l->done_at = q;
	l->done_at = &q->next;
	slu_loop_call(l->loop, &l->back);
	pthread_mutex_unlock(&l->lock);
}

/* ---- questions ---- */

/* On the core's thread: whether the client has left, so that the core need not begin. */
static bool is_over(void *arg)
{
	const struct asked *q = arg;

	return slu_grpc_over(q->a->call);
}

static void refuse_ask(struct slu_flux_ask *a, enum slu_flux_outcome outcome, const char *why)
{
	a->outcome = outcome;
	slu_fail(&a->why, -EAGAIN, "%s", why);
	slu_flux_done(a);
}

static void free_ask(struct slu_record *r)
{
	struct slu_rec_ask *a = (struct slu_rec_ask *)r;

	if (a->answer)
		a->answer(a->arg, -EAGAIN, "the daemon is stopping");
	slu_free(a);
}

static void ask_core(struct slu_grpc_live *l, struct slu_flux_ask *a)
{
	struct asked *q = slu_calloc(1, sizeof *q);
	struct slu_rec_ask *r = slu_calloc(1, sizeof *r);
	int rc = -ENOMEM;

	if (q && r) {
		*q = (struct asked){ .l = l, .a = a, .began_ns = slu_clock_ns() };
		*r = (struct slu_rec_ask){ .base = { .kind = SLU_REC_ASK, .free = free_ask },
					   .what = a->op == SLU_FLUX_MATCH ? SLU_ASK_MATCH
									   : SLU_ASK_UNMATCH,
					   .size = a->reserve,
					   .over = is_over,
					   .answer = core_answered,
					   .arg = q };
		if (a->op == SLU_FLUX_MATCH) {
			q->jobspec = slu_strndup(a->text.p, a->text.n);
			r->text = q->jobspec;
			snprintf(r->name, sizeof r->name, "%.*s",
				 (int)SLU_MIN(a->name.n, sizeof r->name - 1),
				 a->name.p ? a->name.p : "");
		} else {
			snprintf(r->name, sizeof r->name, "%" PRIu64, a->job);
		}
		/* Cancel a match whose client has left even if the inbox is full. */
		if (a->undo)
			rc = slu_inbox_put_answer(slu_core_inbox(l->core), &r->base);
		else if (a->op != SLU_FLUX_MATCH || q->jobspec)
			rc = slu_inbox_put(slu_core_inbox(l->core), &r->base);
	}
	if (!rc)
		return;
	if (q)
		slu_free(q->jobspec);
	slu_free(q);
	slu_free(r);
	refuse_ask(a, SLU_FLUX_NOT_HERE,
		   rc == -ENOMEM ? "out of memory"
				 : "too many requests are in progress; try again");
}

/* Write the free amounts of the live cluster, in whole cores. */
static int put_resources(const struct slu_snapshot *s, struct slu_buf *out)
{
	struct jgf g;

	jgf_begin(&g, true);
	jgf_vertex(&g, "cluster", "k8scluster", 0, 1, false, ROOT);
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct part p = { .name = s->node[i].name };

		if (strcmp(s->node[i].state, "up") != 0)
			continue;
		for (uint32_t k = 0; k < s->node[i].n_amounts; k++) {
			const struct slu_snap_amount *m = &s->node[i].amount[k];
			int64_t n = SLU_MAX(m->free, (int64_t)0);

			if (!strcmp(m->name, "cpu"))
				p.cores = n / 1000;
			else if (!strcmp(m->name, "memory"))
				p.memory_mb = MB_OF(n) / CHUNK_MB * CHUNK_MB;
			else if (!strcmp(m->name, "nvidia.com/gpu"))
				p.gpus = n;
		}
		jgf_node(&g, &p, i, false, 0);
	}
	return jgf_end(&g, out);
}

/* The text is made once for each snapshot of the cluster, however many clients ask for it. */
static int add_resources(struct slu_grpc_live *l, struct slu_snapshot *s, struct slu_buf *out)
{
	if (l->drawn != s || !l->graph.n) {
		slu_snapshot_unref(l->drawn);
		l->drawn = slu_snapshot_ref(s);
		slu_buf_done(&l->graph);
		l->graph = SLU_BUF_INIT(MATCH_MAX);
		if (put_resources(s, &l->graph) < 0)
			slu_buf_done(&l->graph);
	}
	return l->graph.n ? slu_buf_add(out, l->graph.p, l->graph.n) : -ENOMEM;
}

static bool is_named(const struct slu_snap_job *j, struct slu_text name)
{
	char full[400];

	snprintf(full, sizeof full, "%s/%s", j->ns, j->name);
	return (strlen(j->name) == name.n && !memcmp(j->name, name.p, name.n)) ||
	       (strlen(full) == name.n && !memcmp(full, name.p, name.n));
}

static void ask_groups(const struct slu_snapshot *s, struct slu_flux_ask *a)
{
	a->outcome = a->op == SLU_FLUX_GROUP ? SLU_FLUX_NO_JOB : SLU_FLUX_OK;
	for (uint32_t i = 0; i < s->n_jobs; i++) {
		const struct slu_snap_job *j = &s->job[i];

		if ((a->text.n || a->op == SLU_FLUX_GROUP) && !is_named(j, a->text))
			continue;
		slu_buf_printf(&a->out, "%s%s/%s", a->out.n ? "\n" : "", j->ns, j->name);
		if (a->op == SLU_FLUX_GROUP) {
			a->got = j->min;
			a->outcome = SLU_FLUX_OK;
			return;
		}
		a->got++;
	}
}

static void ask_snapshot(struct slu_grpc_live *l, struct slu_flux_ask *a)
{
	slu_cleanup(slu_snapshot_unrefp) struct slu_snapshot *s = slu_core_snapshot(l->core);

	if (!s || !s->synced) {
		refuse_ask(a, SLU_FLUX_NOT_HERE, "the cluster has not been listed yet; try again");
		return;
	}
	a->outcome = SLU_FLUX_OK;
	if (a->op != SLU_FLUX_RESOURCES)
		ask_groups(s, a);
	else if (add_resources(l, s, &a->out) < 0)
		a->outcome = SLU_FLUX_NOT_HERE;
	slu_flux_done(a);
}

static void pass_on(void *arg, struct slu_flux_ask *a)
{
	struct slu_grpc_live *l = arg;

	switch (a->op) {
	case SLU_FLUX_MATCH:
	case SLU_FLUX_CANCEL:
		if (l->core)
			ask_core(l, a);
		else
			refuse_ask(a, SLU_FLUX_NOT_HERE, "the daemon is stopping");
		break;
	case SLU_FLUX_INIT: /* the cluster is the graph: the client's is ignored */
		a->outcome = SLU_FLUX_OK;
		slu_flux_done(a);
		break;
	case SLU_FLUX_GROW:
	case SLU_FLUX_SHRINK:
		refuse_ask(a, SLU_FLUX_REFUSED,
			   "the graph is the live cluster: add or remove nodes there");
		break;
	default:
		ask_snapshot(l, a);
	}
}

/* ---- life ---- */

int slu_grpc_live_new(struct slu_loop *loop, struct slu_core *core, struct slu_grpc_live **out)
{
	struct slu_grpc_live *l = slu_calloc(1, sizeof *l);

	if (!l)
		return -ENOMEM;
	l->loop = loop;
	l->core = core;
	l->back = (struct slu_call){ .fn = answer_all, .arg = l };
	l->done_at = &l->done;
	pthread_mutex_init(&l->lock, NULL);
	*out = l;
	return 0;
}

struct slu_flux_engine slu_grpc_live_engine(struct slu_grpc_live *l)
{
	return (struct slu_flux_engine){ pass_on, l, NULL };
}

void slu_grpc_live_free(struct slu_grpc_live *l)
{
	if (!l)
		return;
	l->core = NULL;
	slu_loop_call_off(l->loop, &l->back);
	answer_all(l);
	slu_snapshot_unref(l->drawn);
	slu_buf_done(&l->graph);
	pthread_mutex_destroy(&l->lock);
	slu_free(l);
}
