/* filter.c — pruning filters: which types are counted at which vertices, and the planners that
 * count them; and the shape of the dominant subsystem as flat arrays. */
#include "match/match_internal.h"
#include "match/fast/fast.h"

static int type_room(struct slu_match *m)
{
	uint32_t n = m->g->types.n;
	uint16_t *at;

	if (n <= m->ntypes)
		return 0;
	at = slu_reallocarray(m->prune_at, n, sizeof *at);
	if (!at)
		return -ENOMEM;
	for (uint32_t i = m->ntypes; i < n; i++)
		at[i] = NO_PRUNE;
	m->prune_at = at;
	m->ntypes = n;
	return 0;
}

static int add_prune(struct slu_match *m, uint16_t type)
{
	if (type_room(m) < 0)
		return -ENOMEM;
	if (m->prune_at[type] != NO_PRUNE)
		return 0;
	if (slu_vec_push(&m->prune, type) < 0)
		return -ENOMEM;
	m->prune_at[type] = (uint16_t)(m->prune.n - 1);
	return 0;
}

static bool has_pair(const struct slu_match *m, uint32_t high, uint16_t low)
{
	for (uint32_t i = 0; i < m->filters.n; i++)
		if (m->filters.p[i].high == high && m->filters.p[i].low == low)
			return true;
	return false;
}

static int add_filter(struct slu_match *m, uint32_t high, uint16_t low)
{
	uint32_t n = 0;

	if (add_prune(m, low) < 0)
		return -ENOMEM;
	if (has_pair(m, high, low) || (high != SLU_NONE && has_pair(m, SLU_NONE, low)))
		return 0;
	if (high == SLU_NONE) {
		for (uint32_t i = 0; i < m->filters.n; i++)
			if (m->filters.p[i].low != low)
				m->filters.p[n++] = m->filters.p[i];
		m->filters.n = n;
	}
	return slu_vec_push(&m->filters, (struct filter){ high, low });
}

static int parse_part(struct slu_match *m, const char *s, size_t n)
{
	const char *colon = memchr(s, ':', n);
	uint32_t high, low;
	char *word;
	int rc = -EINVAL;

	if (!colon || colon == s || colon == s + n - 1)
		return -EINVAL;
	word = slu_strndup(s, n);
	if (!word)
		return -ENOMEM;
	word[colon - s] = '\0';
	high = strcmp(word, "ALL") == 0 ? SLU_NONE : slu_graph_type(m->g, word);
	low = slu_graph_type(m->g, word + (colon - s) + 1);
	if (low != SLU_NONE && (high != SLU_NONE || strcmp(word, "ALL") == 0))
		rc = add_filter(m, high, (uint16_t)low);
	slu_free(word);
	return rc;
}

int match_filter_parse(struct slu_match *m, const char *text)
{
	char *s = slu_strdup(text ? text : "");
	size_t n = 0, at = 0;
	int rc = 0;

	if (!s)
		return -ENOMEM;
	for (const char *c = s; *c; c++)
		if (!strchr(" \t\n\v\f\r", *c))
			s[n++] = *c;
	s[n] = '\0';
	if (!n) {
		slu_free(s);
		return match_filter_parse(m, "ALL:core,ALL:node");
	}
	while (!rc && at <= n) {
		size_t len = strcspn(s + at, ",");

		rc = parse_part(m, s + at, len);
		at += len + 1;
	}
	slu_free(s);
	return rc;
}

/* --- shape --- */

static int64_t order_key_cmp(const struct slu_match *m, uint32_t a, uint32_t b)
{
	int64_t ua = m->g->v.p[m->g->e.p[a].dst].uniq_id, ub = m->g->v.p[m->g->e.p[b].dst].uniq_id;

	if (m->weight[a] != m->weight[b])
		return m->weight[a] > m->weight[b] ? -1 : 1;
	return ua > ub ? -1 : ua < ub;
}

static int order_cmp(const void *a, const void *b, void *m)
{
	return (int)order_key_cmp(m, *(const uint32_t *)a, *(const uint32_t *)b);
}

void match_order_move(struct slu_match *m, uint32_t u, uint32_t e, uint64_t weight)
{
	uint32_t *o = m->ord + m->kid_off[u], n = m->kid_off[u + 1] - m->kid_off[u], i, lo, hi;

	if (m->weight[e] == weight)
		return;
	/* Find the present position by binary search; the key is unique unless uniq_ids repeat. */
	for (lo = 0, hi = n; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (order_key_cmp(m, o[mid], e) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (i = lo; i < n && o[i] != e; i++)
		;
	if (i == n)
		for (i = 0; o[i] != e; i++)
			;
	m->weight[e] = weight;
	memmove(o + i, o + i + 1, (n - i - 1) * sizeof *o);
	for (lo = 0, hi = n - 1; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (order_key_cmp(m, o[mid], e) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	memmove(o + lo + 1, o + lo, (n - 1 - lo) * sizeof *o);
	o[lo] = e;
}

/* Make room for n + 1 elements; without memory the old array stays. */
#define fresh(p, n)                                                               \
	({                                                                        \
		void *fresh_ = slu_reallocarray(p, (size_t)(n) + 1, sizeof *(p)); \
                                                                                  \
		if (fresh_)                                                       \
			(p) = fresh_;                                             \
		fresh_ != NULL;                                                   \
	})

/* Whether a node of the tree is inside another. */
static bool nodes_nest(const struct slu_match *m)
{
	const struct slu_graph *g = m->g;

	for (uint32_t v = 0; v < g->v.n; v++) {
		uint32_t left = g->v.p[v].type == SLU_TYPE_NODE ? DEPTH_MAX : 0;

		for (uint32_t e = m->up[v]; e != SLU_NONE && left--; e = m->up[g->e.p[e].src])
			if (g->v.p[g->e.p[e].src].type == SLU_TYPE_NODE)
				return true;
	}
	return false;
}

/* List the edges of the dominant subsystem by their source, but for those that lead back: `via` has the vertex
 * by which each vertex is reached from the root, NULL: list all.  Returns how many are listed. */
static uint32_t list_edges(struct slu_match *m, const uint32_t *via)
{
	const struct slu_graph *g = m->g;
	uint8_t dom = m->sub[0];
	uint32_t n = 0;

	m->tree = true;
	for (uint32_t v = 0; v < g->v.n; v++) {
		m->kid_off[v] = n;
		slu_graph_each_out(g, v, e) if (g->e.p[e].subsystem == dom &&
						!(via && via[v] == g->e.p[e].dst)) m->kid[n++] = e;
		m->up[v] = SLU_NONE;
		slu_graph_each_in(g, v, e)
		{
			if (g->e.p[e].subsystem != dom || (via && via[g->e.p[e].src] == v))
				continue;
			if (m->up[v] == SLU_NONE)
				m->up[v] = e;
			else
				m->tree = false;
		}
	}
	m->kid_off[g->v.n] = n;
	if (g->root[dom] == SLU_NONE || m->up[g->root[dom]] != SLU_NONE)
		m->tree = false;
	return n;
}

/* Fluence, Fluxnetes and Fluxqueue write an edge from each vertex to its parent, too.  A walk from the root never
 * takes such an edge, since it comes from the parent.  If the graph is a tree without these edges, leave them out;
 * otherwise keep all.  Changes the number of edges listed; 0 or -ENOMEM. */
static int leave_out_parents(struct slu_match *m, uint32_t *n)
{
	const struct slu_graph *g = m->g;
	uint32_t nv = g->v.n, root = g->root[m->sub[0]], at = 0, end = 0;
	slu_cleanup(slu_freep) uint32_t *via = slu_reallocarray(NULL, nv + 1, sizeof *via);
	slu_cleanup(slu_freep) uint32_t *line = slu_reallocarray(NULL, nv + 1, sizeof *line);

	if (!via || !line)
		return -ENOMEM;
	memset(via, 0xff, nv * sizeof *via); /* SLU_NONE */
	if (root != SLU_NONE)
		line[end++] = root;
	for (; at < end; at++) {
		uint32_t u = line[at];

		for (uint32_t k = m->kid_off[u]; k < m->kid_off[u + 1]; k++) {
			uint32_t v = g->e.p[m->kid[k]].dst;

			if (v == root || via[v] != SLU_NONE)
				continue;
			via[v] = u;
			line[end++] = v;
		}
	}
	*n = list_edges(m, via);
	m->no_parents = m->tree;
	if (!m->tree)
		*n = list_edges(m, NULL);
	return 0;
}

/* Whether the vertex has no edge but one to its parent that is left out. */
static bool has_no_edges(const struct slu_match *m, uint32_t u)
{
	const struct slu_graph *g = m->g;
	uint32_t parent = m->no_parents && m->up[u] != SLU_NONE ? g->e.p[m->up[u]].src : SLU_NONE;

	slu_graph_each_out(g, u, e) if (g->e.p[e].subsystem != m->sub[0] ||
					g->e.p[e].dst != parent) return false;
	return true;
}

static int make_shape(struct slu_match *m)
{
	const struct slu_graph *g = m->g;
	uint32_t nv = g->v.n, ne = g->e.n, n, old = m->ne;

	if (!fresh(m->kid_off, nv) || !fresh(m->kid, ne) || !fresh(m->up, nv) ||
	    !fresh(m->kidtypes, nv) || !fresh(m->mark, ne))
		return -ENOMEM;
	memset(m->mark, 0, ne * sizeof *m->mark);
	m->depth = 0;
	for (uint32_t v = 0; v < nv; v++) {
		m->kidtypes[v] = 0;
		slu_graph_each_out(g, v, e)
		{
			uint16_t t = g->v.p[g->e.p[e].dst].type;

			m->kidtypes[v] |= 1ull << (t < 63 ? t : 63);
		}
	}
	m->no_parents = false;
	n = list_edges(m, NULL);
	if (!m->tree && leave_out_parents(m, &n) < 0)
		return -ENOMEM;
	m->nested = m->tree && m->policy.node_centric && nodes_nest(m);
	if (m->tree) {
		slu_free(m->colour);
		m->colour = NULL;
	} else {
		if (!fresh(m->colour, nv))
			return -ENOMEM;
		memset(m->colour, 0, nv * sizeof *m->colour);
	}
	if (m->policy.stop) {
		if (!fresh(m->weight, ne) || !fresh(m->ord, n))
			return -ENOMEM;
		for (uint32_t e = old; e < ne; e++)
			m->weight[e] = UINT64_MAX;
		memcpy(m->ord, m->kid, n * sizeof *m->ord);
		for (uint32_t v = 0; v < nv; v++) {
			uint32_t a = m->kid_off[v], b = m->kid_off[v + 1];
			bool rising = true;

			for (uint32_t i = a + 1; rising && i < b; i++)
				rising = order_key_cmp(m, m->ord[i], m->ord[i - 1]) < 0;
			if (rising)
				for (uint32_t i = a, j = b; i + 1 < j; i++) {
					uint32_t t = m->ord[--j];

					m->ord[j] = m->ord[i];
					m->ord[i] = t;
				}
			else
				qsort_r(m->ord + a, b - a, sizeof *m->ord, order_cmp, m);
		}
	}
	m->ne = ne;
	return 0;
}

/* --- aggregates --- */

struct prime {
	struct slu_match *m;
	uint32_t s; /* subsystem, as position in m->sub */
	uint8_t *seen;
	SLU_VEC(int64_t *) row; /* by depth: aggregates by type */
	uint32_t width;
};

static int row_at(struct prime *p, uint32_t depth)
{
	while (p->row.n <= depth) {
		int64_t *r = slu_calloc(p->width, sizeof *r);

		if (!r || slu_vec_push(&p->row, r) < 0) {
			slu_free(r);
			return -ENOMEM;
		}
	}
	memset(p->row.p[depth], 0, p->width * sizeof(int64_t));
	return 0;
}

static int cmp_type(const void *a, const void *b)
{
	return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* Types counted at a vertex of type t: its own, then those of ALL without t itself. */
static uint32_t types_at(const struct slu_match *m, uint16_t t, uint16_t *out)
{
	uint32_t n = 0, own;

	for (uint32_t i = 0; i < m->filters.n; i++)
		if (m->filters.p[i].high == t)
			out[n++] = m->filters.p[i].low;
	qsort(out, n, sizeof *out, cmp_type);
	own = n;
	for (uint32_t i = 0; i < m->filters.n; i++)
		if (m->filters.p[i].high == SLU_NONE && m->filters.p[i].low != t)
			out[n++] = m->filters.p[i].low;
	qsort(out + own, n - own, sizeof *out, cmp_type);
	return n;
}

static int give_multi(struct prime *p, uint32_t u, const int64_t *sum)
{
	struct slu_match *m = p->m;
	struct slu_multi **at = &m->multi[(size_t)p->s * m->nv + u];
	uint16_t stack[32], *type = stack;
	int64_t amounts[32], *total = amounts;
	uint32_t n;
	int rc = 0;

	if (m->filters.n > SLU_LEN(stack)) {
		type = slu_reallocarray(NULL, m->filters.n, sizeof *type);
		total = slu_reallocarray(NULL, m->filters.n, sizeof *total);
	}
	if (!type || !total) {
		rc = -ENOMEM;
		goto out;
	}
	n = types_at(m, m->g->v.p[u].type, type);
	for (uint32_t i = 0; i < n; i++)
		total[i] = type[i] < p->width ? sum[type[i]] : 0;
	if (*at)
		rc = slu_multi_reshape(*at, type, total, n);
	else if (n && !(*at = slu_multi_new(type, total, n)))
		rc = -ENOMEM;
out:
	if (type != stack) {
		slu_free(type);
		slu_free(total);
	}
	return rc;
}

static int prime_subtree(struct prime *p, uint32_t u, uint32_t depth, int64_t *parent)
{
	struct slu_match *m = p->m;
	const struct slu_graph *g = m->g;
	const struct slu_vertex *x = &g->v.p[u];
	uint16_t t = x->type;
	bool leaf = has_no_edges(m, u);
	int64_t *sum;
	int rc;

	p->seen[u] = 1;
	if (depth >= DEPTH_MAX)
		return -ELOOP;
	if (p->s == 0 && depth > m->depth)
		m->depth = depth;
	if (t < m->ntypes && m->prune_at[t] != NO_PRUNE) {
		if (parent)
			parent[t] += x->size;
	} else if (leaf) {
		if (add_filter(m, SLU_TYPE_CLUSTER, t) < 0)
			return -ENOMEM;
		if (parent)
			parent[t] += x->size;
	}
	if (leaf)
		return 0;
	if (row_at(p, depth) < 0)
		return -ENOMEM;
	sum = p->row.p[depth];
	slu_graph_each_out(g, u, e)
	{
		uint32_t v = g->e.p[e].dst;

		if (g->e.p[e].subsystem != m->sub[p->s] || p->seen[v])
			continue;
		rc = prime_subtree(p, v, depth + 1, sum);
		if (rc < 0)
			return rc;
	}
	if (parent)
		for (uint32_t i = 0; i < m->prune.n; i++)
			parent[m->prune.p[i]] += sum[m->prune.p[i]];
	rc = give_multi(p, u, sum);
	if (!rc && p->s == 0)
		match_alike_put(m, u);
	return rc;
}

static int grow_multi(struct slu_match *m)
{
	uint32_t nv = m->g->v.n;
	struct slu_multi **fresh_multi;

	if (m->multi && nv == m->nv)
		return 0;
	fresh_multi = slu_calloc((size_t)nv * m->nsub + 1, sizeof *fresh_multi);
	if (!fresh_multi)
		return -ENOMEM;
	for (uint32_t s = 0; m->multi && s < m->nsub; s++)
		memcpy(fresh_multi + (size_t)s * nv, m->multi + (size_t)s * m->nv,
		       m->nv * sizeof *fresh_multi);
	slu_free(m->multi);
	m->multi = fresh_multi;
	m->nv = nv;
	return match_led_grow(&m->led, nv);
}

/* The graph has changed: forget what was derived from it, then derive its shape again. */
static int shape_again(struct slu_match *m)
{
	int rc;

	match_fast_drop(m);
	rc = match_family_drop(m);
	if (!rc)
		rc = grow_multi(m);
	return rc ? rc : make_shape(m);
}

int match_filter_reshape(struct slu_match *m)
{
	int rc = shape_again(m);

	if (!rc)
		rc = type_room(m);
	if (!rc)
		rc = match_family_make(m);
	m->depth = DEPTH_MAX; /* not counted */
	slu_free(m->like);
	m->like = NULL;
	m->odd = true;
	return rc;
}

int match_filter_prime(struct slu_match *m)
{
	struct prime p = { .m = m, .width = m->g->types.n };
	int rc = shape_again(m);

	if (!rc)
		rc = match_alike_begin(m);
	if (rc < 0)
		return rc;
	p.seen = slu_malloc(m->nv + 1);
	if (!p.seen)
		return -ENOMEM;
	rc = type_room(m);
	for (p.s = 0; p.s < m->nsub && !rc; p.s++) {
		memset(p.seen, 0, m->nv);
		rc = prime_subtree(&p, m->g->root[m->sub[p.s]], 0, NULL);
	}
	if (!m->tree)
		m->depth = DEPTH_MAX;
	for (uint32_t i = 0; i < p.row.n; i++)
		slu_free(p.row.p[i]);
	slu_vec_done(&p.row);
	slu_free(p.seen);
	if (!rc)
		rc = match_family_make(m);
	if (!rc)
		match_fast_begin(m);
	return rc;
}

void match_filter_done(struct slu_match *m)
{
	for (size_t i = 0; m->multi && i < (size_t)m->nv * m->nsub; i++)
		slu_multi_free(m->multi[i]);
	match_fast_drop(m);
	slu_free(m->multi);
	slu_vec_done(&m->filters);
	slu_vec_done(&m->prune);
	slu_free(m->prune_at);
	slu_free(m->kid_off);
	slu_free(m->kid);
	slu_free(m->ord);
	slu_free(m->weight);
	slu_free(m->up);
	slu_free(m->kidtypes);
	slu_free(m->like);
	slu_free(m->mark);
	slu_vec_done(&m->wide);
	slu_free(m->colour);
	slu_vec_done(&m->family);
}
