/* elastic.c — the live graph grows and shrinks. */
#include "match/core.h"
#include "match/listed.h"

int slu_match_attached(struct slu_match *m)
{
	return filter_prime(m);
}

static int collect(struct slu_match *m, uint32_t u, uint8_t *seen, uint32_t depth, uint32_t *list,
		   uint32_t *n)
{
	if (seen[u])
		return 0;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	seen[u] = 1;
	for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
		int rc = collect(m, m->g->e.p[m->kid[k]].dst, seen, depth + 1, list, n);

		if (rc < 0)
			return rc;
	}
	list[(*n)++] = u;
	return 0;
}

static void cut(struct slu_match *m, uint32_t v)
{
	led_clear_all(&m->led, v);
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

/* Cut out the vertices given and all below them, then prime. */
static int cut_all(struct slu_match *m, const uint32_t *v, uint32_t n)
{
	uint8_t *seen = slu_calloc(m->nv + 1, 1);
	uint32_t *list = slu_reallocarray(NULL, m->nv + 1, sizeof *list), k = 0;
	int rc = seen && list ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < n && !rc; i++)
		rc = collect(m, v[i], seen, 0, list, &k);
	for (uint32_t i = 0; i < k && !rc; i++)
		cut(m, list[i]);
	slu_free(seen);
	slu_free(list);
	/* Jobs that lost their last booking with the vertices. */
	for (uint32_t j = 0; j < m->led.info.n && !rc; j++)
		led_job_drop(&m->led, j);
	return rc ? rc : filter_prime(m);
}

int slu_match_remove_path(struct slu_match *m, const char *path, struct slu_match_result *out)
{
	uint32_t cursor = 0, v = slu_graph_by_path(m->g, path, &cursor);
	int rc;

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	if (v == SLU_NONE || v == m->g->root[m->sub[0]]) {
		slu_buf_printf(&m->msg, "remove_subgraph: can't find vertex for path %s.\n", path);
		out->code = EINVAL;
		out->messages = slu_buf_str(&m->msg);
		return 0;
	}
	rc = cut_all(m, &v, 1);
	return rc;
}

int slu_match_remove_ranks(struct slu_match *m, const int64_t *ranks, uint32_t n,
			   struct slu_match_result *out)
{
	SLU_VEC(uint32_t) all = { 0 };
	int rc = 0;

	*out = (struct slu_match_result){ .messages = "" };
	slu_buf_reset(&m->msg);
	slu_arena_reset(&m->tmp);
	for (uint32_t i = 0; i < n && !rc; i++) {
		uint32_t k;
		const uint32_t *v = slu_graph_by_rank(m->g, ranks[i], &k);

		if (!k) {
			slu_buf_printf(&m->msg, "remove_subgraph: rank %" PRId64 " not found.\n",
				       ranks[i]);
			out->code = EINVAL;
			out->messages = slu_buf_str(&m->msg);
			slu_vec_done(&all);
			return 0;
		}
		for (uint32_t j = 0; j < k && !rc; j++) {
			if (v[j] == m->g->root[m->sub[0]])
				continue;
			rc = slu_vec_push(&all, v[j]);
		}
	}
	if (!rc)
		rc = cancel_at(m, all.p, all.n);
	if (!rc)
		rc = cut_all(m, all.p, all.n);
	slu_vec_done(&all);
	return rc;
}
