/* index.c — the indexes that are built on first use: ranks, and the counts that -e prints. */
#include "graph/graph.h"

struct ranked {
	int32_t rank;
	uint32_t v;
};

static int ranked_cmp(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->v < y->v ? -1 : x->v > y->v;
}

static int make_by_rank(struct slu_graph *g)
{
	SLU_VEC(struct ranked) r = { 0 };
	uint32_t *list;
	bool sorted = true;

	if (g->by_rank && g->by_rank_at == g->change)
		return 0;
	for (uint32_t v = 0; v < g->v.n; v++) {
		if (g->v.p[v].dead)
			continue;
		if (slu_vec_push(&r, (struct ranked){ g->v.p[v].rank, v }) < 0) {
			slu_vec_done(&r);
			return -ENOMEM;
		}
		sorted = sorted && (r.n < 2 || ranked_cmp(&r.p[r.n - 2], &r.p[r.n - 1]) < 0);
	}
	list = slu_reallocarray(NULL, r.n + 1, sizeof *list);
	if (!list) {
		slu_vec_done(&r);
		return -ENOMEM;
	}
	if (!sorted)
		qsort(r.p, r.n, sizeof *r.p, ranked_cmp);
	for (uint32_t i = 0; i < r.n; i++)
		list[i] = r.p[i].v;
	slu_free(g->by_rank);
	g->by_rank = list;
	g->by_rank_n = r.n;
	g->by_rank_at = g->change;
	slu_vec_done(&r);
	return 0;
}

/* The first position whose rank is at least `rank`. */
static uint32_t first_of_rank(const struct slu_graph *g, int64_t rank)
{
	uint32_t lo = 0, hi = g->by_rank_n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->v.p[g->by_rank[mid]].rank < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const uint32_t *slu_graph_by_rank(struct slu_graph *g, int64_t rank, uint32_t *n)
{
	uint32_t lo, hi;

	*n = 0;
	if (rank < INT32_MIN || rank >= INT32_MAX || make_by_rank(g) < 0)
		return NULL;
	lo = first_of_rank(g, rank);
	hi = first_of_rank(g, rank + 1);
	*n = hi - lo;
	return hi > lo ? g->by_rank + lo : NULL;
}

int slu_graph_rank_counts(struct slu_graph *g, void (*fn)(void *arg, int64_t rank, uint32_t n),
			  void *arg)
{
	if (make_by_rank(g) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->by_rank_n;) {
		int32_t rank = g->v.p[g->by_rank[i]].rank;
		uint32_t first = i;

		while (i < g->by_rank_n && g->v.p[g->by_rank[i]].rank == rank)
			i++;
		fn(arg, rank, i - first);
	}
	return 0;
}

/* Count the different texts among all names, or among all paths that were ever given; texts with
 * equal 64-bit hashes count as one. */
static int distinct(struct slu_graph *g, bool paths, uint32_t *out)
{
	struct slu_map seen = { 0 };
	struct slu_buf text = SLU_BUF_INIT(1 << 20);
	int rc = 0;

	for (uint32_t i = 0; i < (paths ? g->path.n : g->v.n) && !rc; i++) {
		if (paths ? g->path.p[i].dead : g->v.p[i].dead)
			continue;
		slu_buf_reset(&text);
		if (paths)
			slu_graph_path_text(g, i, &text);
		else
			slu_graph_name_put(g, i, &text);
		rc = text.error ? text.error
				: slu_map_put(&seen, slu_hash_bytes(slu_buf_str(&text), text.n), 1);
	}
	*out = seen.n;
	slu_map_done(&seen);
	slu_buf_done(&text);
	return rc;
}

static void count_rank(void *arg, int64_t rank, uint32_t n)
{
	(*(uint32_t *)arg)++;
}

int slu_graph_counts(struct slu_graph *g, struct slu_graph_counts *out)
{
	struct slu_graph_counts c = { .vertices = g->live_v, .edges = g->live_e };
	uint8_t *used = slu_calloc(g->types.n, 1);
	int rc;

	if (!used)
		return -ENOMEM;
	for (uint32_t v = 0; v < g->v.n; v++)
		if (!g->v.p[v].dead)
			used[g->v.p[v].type] = 1;
	for (uint32_t i = 0; i < g->asked.n; i++)
		used[g->asked.p[i]] = 1;
	for (uint32_t t = 0; t < g->types.n; t++)
		c.by_type += used[t];
	slu_free(used);
	rc = distinct(g, false, &c.by_name);
	if (!rc)
		rc = distinct(g, true, &c.by_path);
	if (!rc)
		rc = slu_graph_rank_counts(g, count_rank, &c.ranks);
	if (!rc)
		*out = c;
	return rc;
}
