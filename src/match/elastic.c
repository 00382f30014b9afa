/* elastic.c — attach vertices to the live graph, and remove vertices from it. */
#include "match/match_internal.h"

int slu_match_attached(struct slu_match *m)
{
	return match_filter_prime(m);
}

int slu_match_attached_part(struct slu_match *m)
{
	return match_filter_reshape(m);
}

static int collect_subtree(struct slu_match *m, uint32_t u, uint8_t *seen, uint32_t depth,
			   uint32_t *list, uint32_t *n)
{
	if (seen[u])
		return 0;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	seen[u] = 1;
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		int rc = collect_subtree(m, m->g->e.p[m->kid[k]].dst, seen, depth + 1, list, n);

		if (rc < 0)
			return rc;
	}
	list[(*n)++] = u;
	return 0;
}

static void cut_vertex(struct slu_match *m, uint32_t v)
{
	match_led_clear_all(&m->led, v);
	slu_map_del(&m->labels, v);
	for (uint32_t s = 0; s < m->nsub; s++) {
		struct slu_multi **mu = &m->multi[(size_t)s * m->nv + v];

		if (*mu && s == 0)
			for (uint32_t i = 0; i < (*mu)->spans; i++)
				m->led.info.p[(*mu)->job[i]].refs--;
		slu_multi_free(*mu);
		*mu = NULL;
	}
	slu_graph_remove(m->g, v);
}

/* Remove these vertices from the graph, then rebuild the filters. */
static int cut_all(struct slu_match *m, const uint32_t *list, uint32_t n)
{
	int rc = match_family_drop(m);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		cut_vertex(m, list[i]);
	/* Drop the jobs whose last booking was on one of the vertices. */
	for (uint32_t j = 0; j < m->led.info.n; j++)
		match_led_job_drop(&m->led, j);
	return match_filter_prime(m);
}

/* Mark the vertices above this path as seen.  Graphs of Fluence and Fluxqueue have an edge from each vertex to
 * its parent, too, by which the way down from a vertex would reach the root. */
static int mark_above(const struct slu_match *m, const char *path, uint8_t *seen)
{
	slu_cleanup(slu_freep) char *above = slu_strdup(path);
	char *slash;

	if (!above)
		return -ENOMEM;
	while ((slash = strrchr(above, '/')) && slash != above) {
		uint32_t cursor = 0, v;

		*slash = '\0';
		while ((v = slu_graph_by_path(m->g, above, &cursor)) != SLU_NONE)
			seen[v] = 1;
	}
	return 0;
}

int slu_match_remove_path(struct slu_match *m, const char *path, struct slu_match_result *out)
{
	uint32_t cursor = 0, v, target = SLU_NONE, *list, n = 0;
	uint8_t *seen;
	int rc;

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	while ((v = slu_graph_by_path(m->g, path, &cursor)) != SLU_NONE)
		target = v;
	if (target == SLU_NONE || m->up[target] == SLU_NONE || target == m->g->root[m->sub[0]]) {
		out->code = EINVAL;
		return 0;
	}
	seen = slu_calloc(m->nv + 1, 1);
	list = slu_reallocarray(NULL, m->nv + 1, sizeof *list);
	rc = seen && list ? mark_above(m, path, seen) : -ENOMEM;
	if (!rc)
		rc = collect_subtree(m, target, seen, 0, list, &n);
	if (!rc)
		rc = cut_all(m, list, n);
	slu_free(seen);
	slu_free(list);
	return rc;
}

/* Whether a vertex of this rank was removed before. */
static bool was_there(const struct slu_graph *g, int64_t rank)
{
	for (uint32_t v = 0; v < g->v.n; v++)
		if (g->v.p[v].dead && g->v.p[v].rank == rank)
			return true;
	return false;
}

/* Whether a vertex below these does not leave with them. */
static int leaves_orphans(struct slu_match *m, const uint32_t *list, uint32_t n, bool *yes)
{
	uint8_t *gone = slu_calloc(m->nv + 1, 1);

	if (!gone)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		gone[list[i]] = 1;
	*yes = false;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = m->kid_off[list[i]]; k < m->kid_off[list[i] + 1]; k++)
			*yes |= !gone[m->g->e.p[m->kid[k]].dst];
	slu_free(gone);
	return 0;
}

int slu_match_remove_ranks(struct slu_match *m, const int64_t *ranks, uint32_t n,
			   struct slu_match_result *out)
{
	SLU_VEC(uint32_t) all = { 0 };
	bool fails = false; /* after the jobs were removed from the vertices, as in the reference */
	bool orphans = false;
	int rc = 0;

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	slu_arena_reset(&m->tmp);
	m->pre = m->post = 0;
	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t k;
		const uint32_t *v = slu_graph_by_rank(m->g, ranks[i], &k);

		if (!k && was_there(m->g, ranks[i])) {
			fails = true;
		} else if (!k) {
			slu_buf_printf(&m->msg, "remove: %" PRId64 " not found in by_rank map.\n",
				       ranks[i]);
			out->code = EINVAL;
			goto done;
		}
		for (uint32_t j = 0; j < k && !rc; j++) {
			fails |= v[j] == m->g->root[m->sub[0]];
			rc = slu_vec_push(&all, v[j]);
		}
	}
	if (!rc)
		rc = match_cancel_at(m, ranks, n);
	if (rc == -EINVAL) {
		out->code = EINVAL;
		rc = 0;
		goto done;
	}
	if (!rc && !fails)
		rc = leaves_orphans(m, all.p, all.n, &orphans);
	/* The way down from the root does not reach orphans, so their bookings are freed here. */
	for (uint32_t j = 0; orphans && j < m->led.info.n; j++)
		m->led.info.p[j].plain = false;
	if (fails)
		out->code = EINVAL;
	else if (!rc)
		rc = cut_all(m, all.p, all.n);
done:
	slu_vec_done(&all);
	out->messages = slu_buf_str(&m->msg);
	return rc;
}
