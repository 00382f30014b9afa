/* graph.c — the functions of sluice.h on graphs: load, copy, inspect, change. */
#include "lib/graph_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/idset.h"
#include "graph/read.h"
#include "wire/json.h"

#define MESSAGES_MAX ((size_t)1 << 20)

const char *sluice_version(void)
{
	return SLU_VERSION;
}

void sluice_free(void *p)
{
	slu_free(p);
}

const char *sluice_job_state_name(enum sluice_job_state s)
{
	return s == SLUICE_ALLOCATED ? "ALLOCATED" : s == SLUICE_RESERVED ? "RESERVED" : "CANCELED";
}

int lib_fail(struct sluice_graph *g, struct sluice_error *err, int code, const char *what,
	     const char *fmt, ...)
{
	struct slu_error e;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof e.text, fmt, ap);
	va_end(ap);
	for (n = strlen(e.text); n && e.text[n - 1] == '\n'; n--)
		e.text[n - 1] = '\0';
	if (g)
		slu_buf_printf(&g->messages, "%s: %s\n", what, e.text);
	if (err)
		memcpy(err->text, e.text, sizeof err->text);
	return code;
}

/* ---- jobs ---- */

struct lib_job *lib_job_find(const struct sluice_graph *g, uint64_t id)
{
	const uint64_t *at = slu_map_get(&g->by_id, id);

	return at ? &g->job.p[*at] : NULL;
}

int lib_job_room(struct sluice_graph *g, uint64_t id)
{
	uint32_t n = g->job.n;

	if (lib_job_find(g, id))
		return 0;
	if (slu_vec_reserve(&g->job, n + 1) < 0 || slu_map_put(&g->by_id, id, n) < 0)
		return -ENOMEM;
	/* The map has room now; lib_job_put() adds the entry. */
	slu_map_del(&g->by_id, id);
	return 0;
}

void lib_job_put(struct sluice_graph *g, uint64_t id, enum sluice_job_state state, int64_t start_s,
		 int64_t end_s)
{
	struct lib_job *j = lib_job_find(g, id);

	if (!j) {
		int rc = slu_map_put(&g->by_id, id, g->job.n);

		assert(rc == 0);
		(void)rc;
		j = &g->job.p[g->job.n++];
	}
	*j = (struct lib_job){ .id = id, .state = state, .start_s = start_s, .end_s = end_s };
	if (state == SLUICE_ALLOCATED)
		g->allocated++;
	else
		g->reserved++;
}

void lib_job_end(struct sluice_graph *g, struct lib_job *j)
{
	if (j->state == SLUICE_ALLOCATED)
		g->allocated--;
	else if (j->state == SLUICE_RESERVED)
		g->reserved--;
	j->state = SLUICE_CANCELED;
}

int sluice_graph_forget(struct sluice_graph *g, uint64_t job)
{
	const uint64_t *at = slu_map_get(&g->by_id, job);
	uint32_t i = at ? (uint32_t)*at : 0, last;

	if (!at || g->job.p[i].state != SLUICE_CANCELED)
		return -ENOENT;
	last = --g->job.n;
	slu_map_del(&g->by_id, job);
	if (i < last) { /* the last job fills the gap; its map entry exists, so this cannot fail */
		g->job.p[i] = g->job.p[last];
		*slu_map_get(&g->by_id, g->job.p[i].id) = i;
	}
	return 0;
}

int lib_text(struct slu_writer *w, char **text)
{
	struct slu_buf b = SLU_BUF_INIT(LIB_TEXT_MAX);
	int rc = slu_writer_emit(w, &b);

	slu_writer_reset(w);
	if (rc < 0) {
		slu_buf_done(&b);
		return rc;
	}
	*text = NULL;
	if (!b.n) {
		slu_buf_done(&b);
		return 0;
	}
	if (b.p[b.n - 1] == '\n')
		b.p[b.n - 1] = '\0';
	*text = slu_buf_take(&b);
	return *text ? 0 : -ENOMEM;
}

/* ---- birth and copy ---- */

struct options {
	const char *load_format, *allow, *match_format;
	int64_t reserve;
	struct slu_match_options match;
};

static int read_options(const struct slu_json *o, struct options *out, struct sluice_error *err)
{
	const struct {
		const char *key;
		const char **to;
	} row[] = {
		{ "load_format", &out->load_format },
		{ "load_allowlist", &out->allow },
		{ "matcher_name", &out->match.subsystems },
		{ "matcher_policy", &out->match.policy },
		{ "traverser_policy", &out->match.traverser },
		{ "match_format", &out->match_format },
		{ "prune_filters", &out->match.filters },
	};

	if (!slu_json_is_obj(o))
		return lib_fail(NULL, err, -EINVAL, "", "options are not a JSON object");
	slu_json_each (o, it) {
		size_t i = 0;

		if (!strcmp(it.key, "reserve_vtx_vec")) {
			if (slu_json_i64(it.val, &out->reserve) < 0 || out->reserve < 0 ||
			    out->reserve > SLU_GRAPH_MAX)
				return lib_fail(NULL, err, -EINVAL, "",
						"option \"reserve_vtx_vec\" is outside 0..%u",
						SLU_GRAPH_MAX);
			continue;
		}
		while (i < SLU_LEN(row) && strcmp(row[i].key, it.key) != 0)
			i++;
		if (i == SLU_LEN(row))
			return lib_fail(NULL, err, -EINVAL, "", "there is no option \"%s\"",
					it.key);
		*row[i].to = slu_json_str(it.val);
		if (!*row[i].to)
			return lib_fail(NULL, err, -EINVAL, "", "option \"%s\" is not a string",
					it.key);
	}
	return 0;
}

struct sluice_loader {
	struct slu_jgf_loader *jgf;
};

/* Where a graph comes from: a text, or a loader that has read one. */
struct source {
	const char *text;
	size_t n;
	struct sluice_loader *loader; /* NULL: from the text */
};

static int read_source(struct sluice_graph *g, const struct source *from, const struct options *o,
		       struct slu_buf *msg)
{
	if (from->loader)
		return slu_jgf_loader_end(from->loader->jgf, &g->g, msg);
	g->g = slu_graph_new();
	if (!g->g || (o->reserve && slu_graph_reserve(g->g, (uint32_t)o->reserve) == -ENOMEM))
		return -ENOMEM;
	return slu_read(g->g, o->load_format, from->text, from->n, o->allow, msg);
}

static int load_graph(struct sluice_graph *g, const struct source *from, const struct options *o,
		      struct sluice_error *err)
{
	struct slu_buf msg = SLU_BUF_INIT(MESSAGES_MAX);
	struct slu_error e = { 0 };
	int rc = read_source(g, from, o, &msg);

	if (rc < 0 && rc != -ENOMEM)
		lib_fail(NULL, err, rc, "", "%s",
			 msg.n ? slu_buf_str(&msg) : "the graph cannot be read");
	slu_buf_done(&msg);
	if (rc < 0)
		return rc;
	rc = slu_match_new(g->g, &o->match, &g->m, &e);
	if (rc < 0 && rc != -ENOMEM)
		lib_fail(NULL, err, rc, "", "%s", e.text);
	return rc;
}

static int make_graph(const struct source *from, const char *options, struct sluice_graph **out,
		      struct sluice_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct options o = { .load_format = "jgf", .match_format = "jgf" };
	struct sluice_graph *g;
	int rc = 0;

	if (options) {
		rc = slu_json_parse(options, strlen(options), NULL, &doc, lib_err(err));
		if (rc < 0) {
			slu_fail_prefix(lib_err(err), rc, "options");
			return rc;
		}
		rc = read_options(slu_json_root(doc), &o, err);
		if (rc < 0)
			return rc;
	}
	if (!slu_read_knows(o.load_format))
		return lib_fail(NULL, err, -EINVAL, "", "there is no load format \"%s\"",
				o.load_format);
	if (from->loader && strcmp(o.load_format, "jgf") != 0)
		return lib_fail(NULL, err, -EINVAL, "", "a loader reads \"jgf\", not \"%s\"",
				o.load_format);
	if (o.match.policy && !slu_match_policy_valid(o.match.policy))
		return lib_fail(NULL, err, -EINVAL, "", "there is no policy \"%s\"",
				o.match.policy);
	g = slu_calloc(1, sizeof *g);
	if (!g)
		return -ENOMEM;
	g->next = 1;
	g->messages = SLU_BUF_INIT(MESSAGES_MAX);
	snprintf(g->load_format, sizeof g->load_format, "%s", o.load_format);
	if (slu_format_parse(o.match_format, &g->format) < 0) {
		rc = lib_fail(NULL, err, -EINVAL, "", "there is no match format \"%s\"",
			      o.match_format);
	} else {
		g->w = slu_writer_new(g->format);
		rc = g->w ? load_graph(g, from, &o, err) : -ENOMEM;
	}
	if (rc < 0) {
		sluice_graph_free(g);
		return rc;
	}
	*out = g;
	return 0;
}

int sluice_graph_new(const char *text, size_t n, const char *options, struct sluice_graph **out,
		     struct sluice_error *err)
{
	return make_graph(&(struct source){ .text = text, .n = n }, options, out, err);
}

int sluice_loader_new(struct sluice_loader **out)
{
	struct sluice_loader *l = slu_calloc(1, sizeof *l);

	if (!l)
		return -ENOMEM;
	l->jgf = slu_jgf_loader_new();
	if (!l->jgf) {
		slu_free(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

int sluice_loader_feed(struct sluice_loader *l, const char *text, size_t n)
{
	return slu_jgf_loader_feed(l->jgf, text, n);
}

int sluice_loader_graph(struct sluice_loader *l, const char *options, struct sluice_graph **out,
			struct sluice_error *err)
{
	return make_graph(&(struct source){ .loader = l }, options, out, err);
}

void sluice_loader_free(struct sluice_loader *l)
{
	if (!l)
		return;
	slu_jgf_loader_free(l->jgf);
	slu_free(l);
}

void sluice_graph_free(struct sluice_graph *g)
{
	if (!g)
		return;
	slu_match_free(g->m);
	slu_graph_free(g->g);
	slu_writer_free(g->w);
	slu_map_done(&g->by_id);
	slu_vec_done(&g->job);
	slu_buf_done(&g->messages);
	slu_free(g);
}

struct sluice_graph *sluice_graph_clone(const struct sluice_graph *g)
{
	struct sluice_graph *c = slu_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->format = g->format;
	memcpy(c->load_format, g->load_format, sizeof c->load_format);
	c->next = g->next;
	c->allocated = g->allocated;
	c->reserved = g->reserved;
	c->messages = SLU_BUF_INIT(MESSAGES_MAX);
	c->w = slu_writer_new(g->format);
	c->g = slu_graph_clone(g->g);
	c->m = c->g ? slu_match_clone(g->m, c->g) : NULL;
	if (!c->w || !c->m || slu_vec_reserve(&c->job, g->job.n) < 0)
		goto nomem;
	for (; c->job.n < g->job.n; c->job.n++) {
		c->job.p[c->job.n] = g->job.p[c->job.n];
		if (slu_map_put(&c->by_id, c->job.p[c->job.n].id, c->job.n) < 0)
			goto nomem;
	}
	return c;
nomem:
	sluice_graph_free(c);
	return NULL;
}

/* ---- inspecting ---- */

int sluice_graph_info(const struct sluice_graph *g, uint64_t job, struct sluice_job *out)
{
	const struct lib_job *j = lib_job_find(g, job);

	if (!j)
		return -ENOENT;
	*out = (struct sluice_job){
		.job = job, .state = j->state, .start_s = j->start_s, .end_s = j->end_s
	};
	return 0;
}

int sluice_graph_find(struct sluice_graph *g, const char *criteria, const char *format,
		      int64_t now_s, char **text, struct sluice_error *err)
{
	slu_cleanup(slu_writer_freep) struct slu_writer *own = NULL;
	struct slu_match_result r = { 0 };
	enum slu_format f = g->format;
	struct slu_sink sink;
	int rc;

	if (format && slu_format_parse(format, &f) < 0)
		return lib_fail(g, err, -EINVAL, "find", "there is no match format \"%s\"", format);
	own = slu_writer_new(f);
	if (!own)
		return -ENOMEM;
	sink = slu_writer_sink(own);
	slu_writer_times(own, 0, 0);
	rc = slu_match_find(g->m, criteria, now_s, &sink, &r);
	if (rc < 0)
		return rc;
	if (r.code)
		return lib_fail(g, err, -r.code, "find", "%s",
				r.messages && *r.messages ? r.messages : strerror(r.code));
	rc = lib_text(own, text);
	if (rc == -EINVAL && f == SLU_FORMAT_RLITE) { /* this writer has nothing to write */
		*text = NULL;
		return 0;
	}
	return rc;
}

void sluice_graph_stats(const struct sluice_graph *g, struct sluice_graph_stats *out)
{
	*out = (struct sluice_graph_stats){ .vertices = g->g->live_v,
					    .edges = g->g->live_e,
					    .allocated = g->allocated,
					    .reserved = g->reserved,
					    .booking_bytes = slu_match_memory(g->m) };
}

const char *sluice_graph_messages(const struct sluice_graph *g)
{
	return slu_buf_str(&g->messages);
}

void sluice_graph_clear_messages(struct sluice_graph *g)
{
	slu_buf_reset(&g->messages);
}

/* ---- changing ---- */

int sluice_graph_add_subgraph(struct sluice_graph *g, const char *jgf, size_t n,
			      struct sluice_error *err)
{
	struct slu_buf msg = SLU_BUF_INIT(MESSAGES_MAX);
	struct slu_graph_mark mark = slu_graph_mark(g->g);
	int rc = slu_read_jgf(g->g, jgf, n, &msg);

	if (rc == -EEXIST)
		slu_graph_rollback(g->g, &mark);
	if (rc < 0 && rc != -ENOMEM)
		lib_fail(g, err, rc, "add_subgraph", "%s",
			 msg.n ? slu_buf_str(&msg) : "the graph cannot be read");
	slu_buf_done(&msg);
	if (rc < 0)
		return rc;
	rc = slu_match_attached(g->m);
	if (rc < 0)
		slu_graph_rollback(g->g, &mark);
	return rc;
}

int sluice_graph_remove_subgraph(struct sluice_graph *g, const char *path, struct sluice_error *err)
{
	struct slu_match_result r = { 0 };
	int rc = slu_match_remove_path(g->m, path, &r);

	if (rc < 0)
		return rc;
	if (r.code)
		return lib_fail(g, err, -r.code, "remove_subgraph",
				"there is no vertex \"%.200s\", or it is the root", path);
	return 0;
}

int sluice_graph_set_status(struct sluice_graph *g, const char *path, enum sluice_status s)
{
	uint32_t cursor = 0, v;
	bool found = false;

	if (s != SLUICE_UP && s != SLUICE_DOWN)
		return -EINVAL;
	while ((v = slu_graph_by_path(g->g, path, &cursor)) != SLU_NONE) {
		slu_match_status_set(g->m, v, s == SLUICE_UP ? SLU_UP : SLU_DOWN);
		found = true;
	}
	return found ? 0 : -EINVAL;
}

int sluice_graph_status(const struct sluice_graph *g, const char *path, enum sluice_status *out)
{
	uint32_t cursor = 0, v = slu_graph_by_path(g->g, path, &cursor);

	if (v == SLU_NONE)
		return -EINVAL;
	*out = slu_graph_vertex(g->g, v)->status == SLU_UP ? SLUICE_UP : SLUICE_DOWN;
	return 0;
}

/* Count the steps from the root to a vertex along its containment path. */
static int depth_of(const struct sluice_graph *g, uint32_t v, uint32_t *out)
{
	struct slu_buf b = SLU_BUF_INIT(MESSAGES_MAX);
	int rc;

	*out = UINT32_MAX;
	if (slu_graph_path_put(g->g, v, 0, &b)) {
		*out = 0;
		for (const char *s = slu_buf_str(&b); (s = strchr(s, '/')); s++)
			++*out;
	}
	rc = b.error;
	slu_buf_done(&b);
	return rc;
}

static int set_rank(struct sluice_graph *g, int64_t rank, enum slu_status status)
{
	uint32_t n, best = SLU_NONE, least = UINT32_MAX;
	const uint32_t *v = slu_graph_by_rank(g->g, rank, &n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t d;

		if (depth_of(g, v[i], &d) < 0)
			return -ENOMEM;
		if (best == SLU_NONE || d < least) {
			best = v[i];
			least = d;
		}
	}
	if (best != SLU_NONE)
		slu_match_status_set(g->m, best, status);
	return 0;
}

struct ranks {
	SLU_VEC(int64_t) r;
	int rc;
};

static void note_rank(void *arg, int64_t rank, uint32_t n)
{
	struct ranks *all = arg;

	if (!all->rc && rank >= 0 && n)
		all->rc = slu_vec_push(&all->r, rank);
}

int sluice_graph_set_rank_status(struct sluice_graph *g, const char *ranks, enum sluice_status s)
{
	enum slu_status status = s == SLUICE_UP ? SLU_UP : SLU_DOWN;
	struct slu_idset set = { 0 };
	struct ranks all = { 0 };
	int rc;

	if ((s != SLUICE_UP && s != SLUICE_DOWN) || !*ranks)
		return -EINVAL;
	if (strcmp(ranks, "all") != 0) {
		rc = slu_idset_parse(&set, ranks);
		if (rc < 0)
			return rc == -ENOMEM ? rc : -EINVAL;
	}
	/* Visit only the ranks that exist, so that "0-16777215" costs no more than the graph is large. */
	rc = slu_graph_rank_counts(g->g, note_rank, &all);
	rc = rc ? rc : all.rc;
	for (uint32_t i = 0; i < all.r.n && !rc; i++) {
		if (!strcmp(ranks, "all") ||
		    (all.r.p[i] <= UINT32_MAX && slu_idset_has(&set, (uint32_t)all.r.p[i])))
			rc = set_rank(g, all.r.p[i], status);
	}
	slu_idset_done(&set);
	slu_vec_done(&all.r);
	return rc;
}

int sluice_graph_rank_status(struct sluice_graph *g, uint32_t rank, enum sluice_status *out)
{
	struct ranks all = { 0 };
	const uint32_t *v;
	uint32_t n;
	int rc = slu_graph_rank_counts(g->g, note_rank,
				       &all); /* makes the index, or returns why it cannot */

	slu_vec_done(&all.r);
	if (rc < 0 || all.rc < 0)
		return -ENOMEM;
	v = slu_graph_by_rank(g->g, rank, &n);
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_vertex *x = slu_graph_vertex(g->g, v[i]);

		if (x->type == SLU_TYPE_NODE || x->type == SLU_TYPE_STORAGE_NODE) {
			*out = x->status == SLU_UP ? SLUICE_UP : SLUICE_DOWN;
			return 0;
		}
	}
	return -EINVAL;
}

int sluice_graph_set_property(struct sluice_graph *g, const char *path, const char *key,
			      const char *value)
{
	uint32_t cursor = 0, v;
	bool found = false;

	if (!*key)
		return -EINVAL;
	while ((v = slu_graph_by_path(g->g, path, &cursor)) != SLU_NONE) {
		int rc = slu_match_property_set(g->m, v, key, value);

		if (rc < 0)
			return rc;
		found = true;
	}
	return found ? 0 : -EINVAL;
}

const char *sluice_graph_property(const struct sluice_graph *g, const char *path, const char *key)
{
	uint32_t cursor = 0, v = slu_graph_by_path(g->g, path, &cursor);

	return v == SLU_NONE ? NULL : slu_graph_property(g->g, v, key);
}
