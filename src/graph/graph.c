#include "graph/graph.h"

#include "graph/path_internal.h"

#define MANY_IN_EDGES 16

static const char *const first_types[] = { "cluster", "core", "socket",   "gpu", "node",
					   "rack",    "slot", "xor_slot", "ssd", "storage_node" };

struct slu_graph *slu_graph_new(void)
{
	struct slu_graph *g = slu_calloc(1, sizeof *g);
	bool good = g != NULL;

	if (!g)
		return NULL;
	for (uint32_t i = 0; i < SLU_SUBSYSTEM_MAX; i++)
		g->root[i] = SLU_NONE;
	for (uint32_t i = 0; i < SLU_LEN(first_types); i++)
		good = good && slu_intern(&g->types, first_types[i]) == i;
	good = good && slu_intern(&g->subsystems, "containment") == 0;
	good = good && slu_intern(&g->strings, "") == 0;
	if (!good) {
		slu_graph_free(g);
		return NULL;
	}
	return g;
}

void slu_graph_free(struct slu_graph *g)
{
	if (!g)
		return;
	slu_intern_done(&g->types);
	slu_intern_done(&g->subsystems);
	slu_intern_done(&g->strings);
	slu_vec_done(&g->v);
	slu_vec_done(&g->e);
	slu_vec_done(&g->path);
	slu_vec_done(&g->asked);
	slu_vec_done(&g->prop);
	slu_free(g->path_slot);
	slu_map_done(&g->edge_of);
	slu_free(g->by_rank);
	slu_free(g);
}

static int copy_words(struct slu_intern *to, const struct slu_intern *from)
{
	for (uint32_t i = to->n; i < from->n; i++)
		if (slu_intern_n(to, slu_intern_str(from, i), slu_intern_len(from, i)) != i)
			return -ENOMEM;
	return 0;
}

#define copy_vec(to, from)                                                         \
	({                                                                         \
		int rc_ = slu_vec_reserve(to, (from)->n);                          \
		if (!rc_ && (from)->n) {                                           \
			memcpy((to)->p, (from)->p, (from)->n * sizeof *(from)->p); \
			(to)->n = (from)->n;                                       \
		}                                                                  \
		rc_;                                                               \
	})

struct slu_graph *slu_graph_clone(const struct slu_graph *g)
{
	slu_cleanup(slu_graph_freep) struct slu_graph *c = slu_graph_new();

	if (!c || copy_words(&c->types, &g->types) < 0 ||
	    copy_words(&c->subsystems, &g->subsystems) < 0 ||
	    copy_words(&c->strings, &g->strings) < 0 || copy_vec(&c->v, &g->v) < 0 ||
	    copy_vec(&c->e, &g->e) < 0 || copy_vec(&c->path, &g->path) < 0 ||
	    copy_vec(&c->asked, &g->asked) < 0 || copy_vec(&c->prop, &g->prop) < 0)
		return NULL;
	for (uint32_t i = 0; i < g->edge_of.n; i++)
		if (slu_map_put(&c->edge_of, g->edge_of.e[i].key, g->edge_of.e[i].val) < 0)
			return NULL;
	if (g->path_slot) {
		size_t bytes = ((size_t)g->path_mask + 1) * sizeof *g->path_slot;

		c->path_slot = slu_malloc(bytes);
		if (!c->path_slot)
			return NULL;
		memcpy(c->path_slot, g->path_slot, bytes);
		c->path_mask = g->path_mask;
		c->path_used = g->path_used;
	}
	memcpy(c->root, g->root, sizeof c->root);
	c->live_v = g->live_v;
	c->live_e = g->live_e;
	c->change = g->change;
	return slu_take(c);
}

uint32_t slu_graph_type(struct slu_graph *g, const char *type)
{
	uint32_t t = slu_intern_find(&g->types, type);

	if (t == SLU_INTERN_NONE && g->types.n < SLU_TYPES_MAX)
		t = slu_intern(&g->types, type);
	return t;
}

uint32_t slu_graph_subsystem(struct slu_graph *g, const char *name)
{
	uint32_t s = slu_intern_find(&g->subsystems, name);

	if (s == SLU_INTERN_NONE && g->subsystems.n < SLU_SUBSYSTEM_MAX)
		s = slu_intern(&g->subsystems, name);
	return s;
}

int slu_graph_full(const struct slu_graph *g)
{
	return g->types.n >= SLU_TYPES_MAX || g->subsystems.n >= SLU_SUBSYSTEM_MAX ? -EFBIG
										   : -ENOMEM;
}

uint32_t slu_graph_string(struct slu_graph *g, const char *s)
{
	return slu_intern(&g->strings, s);
}

uint32_t slu_graph_string_n(struct slu_graph *g, const char *s, size_t n)
{
	return slu_intern_n(&g->strings, s, n);
}

int slu_graph_reserve(struct slu_graph *g, uint32_t n)
{
	if (n > SLU_GRAPH_MAX)
		return -EFBIG;
	if (slu_vec_reserve(&g->v, n) < 0 || slu_vec_reserve(&g->e, n) < 0 ||
	    slu_vec_reserve(&g->path, n) < 0)
		return -ENOMEM;
	return 0;
}

uint32_t slu_graph_add(struct slu_graph *g, const struct slu_vertex_desc *d)
{
	uint32_t v = g->v.n;
	uint32_t name = d->name != SLU_NONE && slu_path_name_derived(g, d) ? SLU_NONE : d->name;
	struct slu_vertex x = {
		.id = d->id,
		.uniq_id = d->uniq_id == SLU_UNIQ_INDEX ? (int64_t)v : d->uniq_id,
		.basename = d->basename,
		.name = name,
		.unit = d->unit,
		.size = d->size,
		.rank = d->rank,
		.type = (uint16_t)d->type,
		.status = d->status,
		.path = SLU_NONE,
		.props = SLU_NONE,
		.out_first = SLU_NONE,
		.out_last = SLU_NONE,
		.in_first = SLU_NONE,
		.in_last = SLU_NONE,
	};

	if (v >= SLU_GRAPH_MAX || slu_vec_push(&g->v, x) < 0)
		return SLU_NONE;
	g->live_v++;
	g->change++;
	return v;
}

/* --- edges --- */

int slu_graph_root_set(struct slu_graph *g, uint8_t subsystem, uint32_t v)
{
	if (g->root[subsystem] != SLU_NONE && g->root[subsystem] != v)
		return -EEXIST;
	g->root[subsystem] = v;
	g->change++;
	return 0;
}

uint32_t slu_graph_root(const struct slu_graph *g, uint8_t subsystem)
{
	return subsystem < SLU_SUBSYSTEM_MAX ? g->root[subsystem] : SLU_NONE;
}

static uint64_t edge_key(uint32_t src, uint32_t dst)
{
	return (uint64_t)src << 32 | dst;
}

uint32_t slu_graph_edge(const struct slu_graph *g, uint32_t src, uint32_t dst)
{
	uint32_t n = 0;

	slu_graph_each_in(g, dst, e)
	{
		if (g->e.p[e].src == src)
			return e;
		if (++n == MANY_IN_EDGES && slu_map_get(&g->edge_of, edge_key(SLU_NONE, dst))) {
			uint64_t *at = slu_map_get(&g->edge_of, edge_key(src, dst));

			return at ? (uint32_t)*at : SLU_NONE;
		}
	}
	return SLU_NONE;
}

/* Enter dst's in-edges into the map once there are many of them. */
static int note_edge(struct slu_graph *g, uint32_t e)
{
	uint32_t dst = g->e.p[e].dst, n = 0;

	if (slu_map_get(&g->edge_of, edge_key(SLU_NONE, dst)))
		return slu_map_put(&g->edge_of, edge_key(g->e.p[e].src, dst), e);
	slu_graph_each_in(g, dst, i) if (++n > MANY_IN_EDGES) break;
	if (n <= MANY_IN_EDGES)
		return 0;
	slu_graph_each_in(g, dst, i) if (slu_map_put(&g->edge_of, edge_key(g->e.p[i].src, dst), i) <
					 0) return -ENOMEM;
	return slu_map_put(&g->edge_of, edge_key(SLU_NONE, dst), 1);
}

static void unlink_edge(struct slu_graph *g, uint32_t e)
{
	struct slu_edge *x = &g->e.p[e];
	struct slu_vertex *s = &g->v.p[x->src], *d = &g->v.p[x->dst];
	uint32_t prev = SLU_NONE, i;

	for (i = s->out_first; i != e; i = g->e.p[i].next_out)
		prev = i;
	if (prev == SLU_NONE)
		s->out_first = x->next_out;
	else
		g->e.p[prev].next_out = x->next_out;
	if (s->out_last == e)
		s->out_last = prev;
	prev = SLU_NONE;
	for (i = d->in_first; i != e; i = g->e.p[i].next_in)
		prev = i;
	if (prev == SLU_NONE)
		d->in_first = x->next_in;
	else
		g->e.p[prev].next_in = x->next_in;
	if (d->in_last == e)
		d->in_last = prev;
	slu_map_del(&g->edge_of, edge_key(x->src, x->dst));
	if (!x->dead) {
		x->dead = 1;
		g->live_e--;
	}
	g->change++;
}

int slu_graph_link(struct slu_graph *g, uint32_t src, uint32_t dst, uint8_t subsystem)
{
	struct slu_edge x = { src, dst, SLU_NONE, SLU_NONE, subsystem, 0 };
	uint32_t e = slu_graph_edge(g, src, dst);

	g->change++;
	if (e != SLU_NONE) {
		g->e.p[e].subsystem = subsystem;
		return 0;
	}
	e = g->e.n;
	if (e >= SLU_GRAPH_MAX)
		return -EFBIG;
	if (slu_vec_push(&g->e, x) < 0)
		return -ENOMEM;
	if (g->v.p[src].out_last == SLU_NONE)
		g->v.p[src].out_first = e;
	else
		g->e.p[g->v.p[src].out_last].next_out = e;
	g->v.p[src].out_last = e;
	if (g->v.p[dst].in_last == SLU_NONE)
		g->v.p[dst].in_first = e;
	else
		g->e.p[g->v.p[dst].in_last].next_in = e;
	g->v.p[dst].in_last = e;
	g->live_e++;
	if (note_edge(g, e) < 0) {
		unlink_edge(g, e);
		g->e.n--;
		return -ENOMEM;
	}
	return 0;
}

/* --- properties --- */

int slu_graph_property_set(struct slu_graph *g, uint32_t v, const char *key, const char *val)
{
	uint32_t k = slu_graph_string(g, key), w = slu_graph_string(g, val), p = g->v.p[v].props;
	uint32_t prev = SLU_NONE;
	int c = 1;

	if (k == SLU_NONE || w == SLU_NONE)
		return -ENOMEM;
	for (; p != SLU_NONE; prev = p, p = g->prop.p[p].next) {
		c = strcmp(slu_graph_str(g, g->prop.p[p].key), key);
		if (c >= 0)
			break;
	}
	if (p != SLU_NONE && c == 0) {
		g->prop.p[p].val = w;
		return 0;
	}
	if (slu_vec_push(&g->prop, (struct slu_prop){ k, w, p }) < 0)
		return -ENOMEM;
	if (prev == SLU_NONE)
		g->v.p[v].props = g->prop.n - 1;
	else
		g->prop.p[prev].next = g->prop.n - 1;
	return 0;
}

const char *slu_graph_property(const struct slu_graph *g, uint32_t v, const char *key)
{
	for (uint32_t p = g->v.p[v].props; p != SLU_NONE; p = g->prop.p[p].next)
		if (strcmp(slu_graph_str(g, g->prop.p[p].key), key) == 0)
			return slu_graph_str(g, g->prop.p[p].val);
	return NULL;
}

/* --- removing --- */

void slu_graph_remove(struct slu_graph *g, uint32_t v)
{
	struct slu_vertex *x = &g->v.p[v];

	if (x->dead)
		return;
	while (x->out_first != SLU_NONE)
		unlink_edge(g, x->out_first);
	while (x->in_first != SLU_NONE)
		unlink_edge(g, x->in_first);
	for (uint32_t p = 0; p < SLU_SUBSYSTEM_MAX; p++)
		if (g->root[p] == v)
			g->root[p] = SLU_NONE;
	for (uint32_t p = x->path; p != SLU_NONE; p = g->path.p[p].next)
		slu_path_unindex(g, p);
	x->path = SLU_NONE;
	x->dead = 1;
	g->live_v--;
	g->change++;
}

struct slu_graph_mark slu_graph_mark(const struct slu_graph *g)
{
	struct slu_graph_mark m = {
		.v = g->v.n, .e = g->e.n, .path = g->path.n, .prop = g->prop.n
	};

	memcpy(m.root, g->root, sizeof m.root);
	return m;
}

/* Remove from a vertex its edges from number `mark` on, which stand last in its lists. */
static void cut_edges(struct slu_graph *g, uint32_t v, uint32_t mark)
{
	struct slu_vertex *x = &g->v.p[v];
	uint32_t out = SLU_NONE, in = SLU_NONE;

	if (x->out_last != SLU_NONE && x->out_last >= mark) {
		for (uint32_t i = x->out_first; i < mark; i = g->e.p[i].next_out)
			out = i;
		*(out == SLU_NONE ? &x->out_first : &g->e.p[out].next_out) = SLU_NONE;
		x->out_last = out;
	}
	if (x->in_last != SLU_NONE && x->in_last >= mark) {
		for (uint32_t i = x->in_first; i < mark; i = g->e.p[i].next_in)
			in = i;
		*(in == SLU_NONE ? &x->in_first : &g->e.p[in].next_in) = SLU_NONE;
		x->in_last = in;
	}
}

void slu_graph_rollback(struct slu_graph *g, const struct slu_graph_mark *m)
{
	for (uint32_t e = m->e; e < g->e.n; e++) {
		const struct slu_edge *x = &g->e.p[e];

		if (x->dead)
			continue;
		cut_edges(g, x->src, m->e);
		cut_edges(g, x->dst, m->e);
		slu_map_del(&g->edge_of, edge_key(x->src, x->dst));
		g->live_e--;
	}
	g->e.n = m->e;
	while (g->path.n > m->path) {
		uint32_t p = g->path.n - 1, v = g->path.p[p].vertex, *at;

		if (!g->path.p[p].dead) {
			for (at = &g->v.p[v].path; *at != SLU_NONE && *at != p;
			     at = &g->path.p[*at].next)
				;
			if (*at == p)
				*at = g->path.p[p].next;
			slu_path_unindex(g, p);
		}
		g->path.n--;
	}
	while (g->v.n > m->v) {
		if (!g->v.p[g->v.n - 1].dead)
			g->live_v--;
		g->v.n--;
	}
	g->prop.n = m->prop;
	memcpy(g->root, m->root, sizeof g->root);
	g->change++;
}
