/* update.c — book the resources that a file lists for a job that runs or is planned already. */
#include "match/match_internal.h"
#include "match/fast/fast.h"
#include "match/listed_internal.h"

#include <stdio.h>

struct update {
	struct slu_match *m;
	const struct slu_listing *l;
	uint32_t job;
	uint32_t *v; /* by position in the listing; SLU_NONE = skipped */
	bool beyond; /* the job ends after the time of every planner, so no span can be added */
	bool root;   /* the root was marked */
	int64_t root_needs;
	bool root_excl;
};

static void fail_at_vertex(struct slu_match *m, const char *before, uint32_t v, const char *after)
{
	slu_buf_puts(&m->msg, before);
	slu_graph_name_put(m->g, v, &m->msg);
	slu_buf_puts(&m->msg, after);
}

/* Take the whole vertex for the job. */
static int hold_vertex(struct update *u, uint32_t v)
{
	struct slu_match *m = u->m;
	int rc = u->beyond ? -EINVAL : slu_vec_push(&m->led.info.p[u->job].at, v);

	if (!rc)
		rc = match_led_put(&m->led, v, m->g->v.p[v].size, u->job, LED_HELD,
				   m->g->v.p[v].size);
	if (!rc)
		match_fast_touch(m, v, true);
	return rc;
}

static bool is_free(const struct update *u, uint32_t v)
{
	const struct led_job *j = &u->m->led.job.p[u->job];

	return match_led_avail(&u->m->led, v, u->m->g->v.p[v].size, j->start, j->end) >=
	       u->m->g->v.p[v].size;
}

static void mark_edge(struct update *u, uint32_t e, int64_t needs, bool excl)
{
	match_mark_put(u->m, e, (uint32_t)needs, excl);
}

/* An id in the file may stand for one vertex only, whether the vertex is listed or implied. */
static int claim(struct update *u, struct slu_intern *seen, const char *ref)
{
	if (slu_intern_find(seen, ref) != SLU_INTERN_NONE) {
		slu_buf_printf(&u->m->msg, "find_vtx: found duplicate JGF node id for %s.\n", ref);
		return -EINVAL;
	}
	return slu_intern(seen, ref) == SLU_INTERN_NONE ? -ENOMEM : 0;
}

/* Shorthand: an exclusive vertex stands for everything below it in containment. */
static int hold_below(struct update *u, uint32_t v, uint32_t depth, struct slu_intern *seen)
{
	struct slu_match *m = u->m;

	if (depth > DEPTH_MAX)
		return -ELOOP;
	slu_graph_each_out(m->g, v, e)
	{
		uint32_t c = m->g->e.p[e].dst;
		char ref[24];
		int rc;

		if (m->g->e.p[e].subsystem != 0 || slu_listing_frees(u->l, m->g->v.p[c].rank))
			continue;
		snprintf(ref, sizeof ref, "%" PRId64, m->g->v.p[c].uniq_id);
		rc = claim(u, seen, ref);
		if (rc < 0)
			return rc;
		mark_edge(u, e, m->g->v.p[c].size, true);
		rc = hold_vertex(u, c);
		if (rc == -EINVAL)
			fail_at_vertex(m, "update_vtx_plan: can't add span into ", c, ".\n");
		if (!rc)
			rc = hold_below(u, c, depth + 1, seen);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int jgf_vertex(struct update *u, uint32_t i, struct slu_intern *seen)
{
	const struct slu_listing_vertex *x = &u->l->v.p[i];
	bool shorthand = u->l->kind == SLU_LISTING_JGF_SHORTHAND;
	struct slu_match *m = u->m;
	uint32_t v;
	int rc;

	u->v[i] = SLU_NONE;
	rc = match_listed_find(m, u->l, x, &v);
	if (rc < 0 || slu_listing_frees(u->l, x->rank))
		return rc;
	rc = shorthand ? claim(u, seen, x->ref) : 0;
	if (rc < 0)
		return rc;
	u->v[i] = v;
	if (!x->exclusive) {
		if (is_free(u, u->v[i]))
			return 0;
		fail_at_vertex(m, "update_vtx_plan: ", u->v[i], " is unavailable.\n");
		return -EINVAL;
	}
	rc = hold_vertex(u, u->v[i]);
	if (rc == -EINVAL)
		fail_at_vertex(m, "update_vtx_plan: can't add span into ", u->v[i], ".\n");
	return rc || !shorthand ? rc : hold_below(u, u->v[i], 0, seen);
}

static int jgf_vertices(struct update *u)
{
	struct slu_intern seen = { 0 };
	int rc = 0;

	for (uint32_t i = 0; i < u->l->v.n && !rc; i++)
		rc = jgf_vertex(u, i, &seen);
	slu_intern_done(&seen);
	return rc;
}

static int jgf_edges(struct update *u)
{
	struct slu_match *m = u->m;
	uint32_t root = m->g->root[m->sub[0]];

	/* Without any edge the reference fails without a message. */
	if (!u->l->has_edges)
		return -EINVAL;
	for (uint32_t i = 0; i < u->l->e.n; i++) {
		const struct slu_listing_edge *x = &u->l->e.p[i];
		const struct slu_listing_vertex *src = &u->l->v.p[x->src],
						*dst = &u->l->v.p[x->dst];
		uint32_t s = u->v[x->src], t = u->v[x->dst], e;

		if (s == SLU_NONE || t == SLU_NONE)
			continue;
		e = slu_graph_edge(m->g, s, t);
		if (e == SLU_NONE) {
			slu_buf_printf(
				&m->msg,
				"update_tgt_edge: JGF edge from %s to %s not found in resource graph.\n",
				src->ref, dst->ref);
			return -EINVAL;
		}
		mark_edge(u, e, dst->size, dst->exclusive);
		if (s == root) {
			u->root = true;
			u->root_needs = src->size;
			u->root_excl = src->exclusive;
		}
	}
	return 0;
}

/* --- R --- */

/* R names no paths: its nodes are children of the graph's root, whatever the root is called. */
static int rv1_find(struct update *u, const struct slu_listing_vertex *x, uint32_t parent,
		    uint32_t *out)
{
	struct slu_match *m = u->m;
	struct slu_buf path = SLU_BUF_INIT((size_t)1 << 20);
	const struct slu_vertex *y = NULL;
	uint32_t v = SLU_NONE;
	int rc;

	slu_graph_path_put(m->g, parent, 0, &path);
	slu_buf_putc(&path, '/');
	rc = slu_buf_puts(&path, x->name);
	if (!rc)
		v = match_listed_at(m, slu_buf_str(&path), x->rank);
	slu_buf_done(&path);
	if (rc < 0)
		return rc;
	*out = v;
	if (v != SLU_NONE)
		y = &m->g->v.p[v];
	if (!y || y->id != x->id || y->size != x->size ||
	    strcmp(slu_graph_type_name(m->g, y->type), x->type) != 0) {
		slu_buf_printf(&m->msg, "add_or_update: couldn't find vertex in graph for %s.\n",
			       x->name);
		return -EINVAL;
	}
	return 0;
}

/* A node whose vertices are all booked is booked itself. */
static int rv1_node(struct update *u, uint32_t node, uint32_t booked)
{
	struct slu_match *m = u->m;
	uint32_t all;

	slu_graph_by_rank(m->g, m->g->v.p[node].rank, &all);
	if (!booked) {
		slu_buf_puts(&m->msg, "update_exclusivity: rank not found in agfilters map.\n");
		fail_at_vertex(m, "unpack_rank: exclusive filter update failed for ", node, ".\n");
		return -EINVAL;
	}
	return booked + 1 == all ? hold_vertex(u, node) : 0;
}

/* The listing has the cluster first, then every node followed by what is in it; edge i - 1 leads to
 * vertex i. */
static int rv1_vertices(struct update *u)
{
	const struct slu_listing *l = u->l;
	struct slu_match *m = u->m;
	uint32_t node = SLU_NONE, booked = 0;
	int rc = 0;

	if (!l->v.n || m->g->root[0] == SLU_NONE)
		return -EINVAL;
	u->v[0] = m->g->root[0];
	for (uint32_t i = 1; i < l->v.n && !rc; i++) {
		const struct slu_listing_vertex *x = &l->v.p[i];
		bool is_node = l->e.p[i - 1].src == 0;

		if (is_node) {
			if (node != SLU_NONE)
				rc = rv1_node(u, node, booked);
			if (rc < 0)
				return rc;
			booked = 0;
		}
		rc = rv1_find(u, x, u->v[l->e.p[i - 1].src], &u->v[i]);
		if (!rc && !is_free(u, u->v[i])) {
			slu_buf_printf(&m->msg, "update_vertex: %s is unavailable.\n", x->name);
			rc = -EINVAL;
		}
		if (is_node) {
			node = u->v[i];
		} else if (!rc) {
			rc = hold_vertex(u, u->v[i]);
			if (rc == -EINVAL)
				slu_buf_printf(&m->msg, "update_vertex: can't add span into %s.\n",
					       x->name);
		}
		booked += !is_node;
		if (rc == -EINVAL)
			slu_buf_printf(&m->msg,
				       is_node ? "unpack_rank: failed unpacking rank for %s.\n"
					       : "unpack_child: failed unpacking child for %s.\n",
				       x->name);
	}
	if (!rc && node != SLU_NONE)
		rc = rv1_node(u, node, booked);
	return rc;
}

static int rv1_edges(struct update *u)
{
	struct slu_match *m = u->m;
	const struct slu_listing *l = u->l;

	for (uint32_t i = 0; i < l->e.n; i++) {
		uint32_t s = u->v[l->e.p[i].src], t = u->v[l->e.p[i].dst];
		uint32_t e = slu_graph_edge(m->g, s, t);

		if (e == SLU_NONE) {
			slu_buf_puts(&m->msg,
				     "update_edges: rv1exec edge not found in resource graph.\n");
			return -EINVAL;
		}
		mark_edge(u, e, m->g->v.p[t].size, true);
	}
	u->root = true;
	u->root_needs = 1;
	u->root_excl = false;
	return 0;
}

static int walk_update(struct update *u, int64_t now, const struct slu_sink *sink,
		       struct slu_match_result *out)
{
	struct slu_match *m = u->m;
	uint8_t *types = slu_arena_zalloc(&m->tmp, m->g->types.n + 1);
	const struct led_job *j = &m->led.job.p[u->job];
	struct booking b = {
		.m = m,
		.sink = sink,
		.excl_types = types,
		.now = -1, /* the reference does not know it here: what is booked weighs nothing */
		.job = u->job,
		.weights = m->policy.stop,
	};
	int64_t n;
	int rc = 0;

	if (!types)
		return -ENOMEM;
	match_exclusive_always(m, types);
	out->at_s = j->start;
	out->end_s = j->end;
	out->reserved = j->start > now;
	if (!u->root)
		return 0;
	n = match_book_run(&b, m->g->root[m->sub[0]], u->root_needs, u->root_excl);
	if (n <= 0)
		return n ? (int)n : -EINVAL; /* no vertex in the listing is taken */
	if (sink && sink->ops && sink->ops->times)
		rc = sink->ops->times(sink->w, j->start, j->end);
	return rc;
}

int slu_match_update(struct slu_match *m, const struct slu_listing *l, int64_t jobid, int64_t at_s,
		     int64_t duration_s, bool reserve, const struct slu_sink *sink,
		     struct slu_match_result *out)
{
	struct update u = { .m = m, .l = l };
	int64_t end, job;
	int rc;

	(void)reserve; /* the reference remembers an allocation in either case */
	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	slu_arena_reset(&m->tmp);
	out->messages = slu_buf_str(&m->msg);
	if (at_s < 0 || !duration_s || match_led_job_find(&m->led, jobid) >= 0) {
		out->code = EINVAL;
		return 0;
	}
	u.beyond = duration_s < 0 || __builtin_add_overflow(at_s, duration_s, &end);
	if (u.beyond)
		duration_s = INT64_MAX - at_s; /* nothing will be booked */
	u.v = slu_arena_alloc(&m->tmp, (l->v.n + 1) * sizeof *u.v);
	if (!u.v)
		return -ENOMEM;
	job = match_led_job_new(&m->led, jobid, at_s, duration_s);
	if (job < 0)
		return (int)job;
	u.job = (uint32_t)job;
	match_mark_tick(m);
	rc = l->kind == SLU_LISTING_RV1 ? rv1_vertices(&u) : jgf_vertices(&u);
	if (!rc && l->broken) {
		slu_buf_puts(&m->msg, l->error ? l->error : "");
		rc = -EINVAL;
	}
	if (!rc)
		rc = l->kind == SLU_LISTING_RV1 ? rv1_edges(&u) : jgf_edges(&u);
	if (!rc)
		rc = walk_update(&u, 0, sink, out);
	m->inexact = true;
	for (uint32_t i = 0; i < m->led.info.p[u.job].at.n && !rc && !m->odd; i++)
		m->odd = !(match_led_get(&m->led, m->led.info.p[u.job].at.p[i], u.job).job &
			   LED_TAGGED);
	if (rc < 0) {
		match_cancel_job(m, u.job);
		match_led_job_drop(&m->led, u.job);
	} else if (!m->led.info.p[u.job].refs) {
		match_led_job_drop(&m->led, u.job);
	}
	out->messages = slu_buf_str(&m->msg);
	if (rc == -EINVAL || rc == -ELOOP) {
		out->code = -rc;
		rc = 0;
	}
	return rc;
}
