/* path.c — names and paths of vertices: their texts, and the index by text. */
#include "graph/path_internal.h"

/* The number of decimal digits that the id adds to a name; 0 if it adds none. */
static size_t id_digits(int64_t id, char out[24])
{
	char tmp[24];
	size_t n = 0, k = 0;
	uint64_t u = id < 0 ? 0 - (uint64_t)id : (uint64_t)id;

	if (id == -1)
		return 0;
	do
		tmp[n++] = (char)('0' + u % 10);
	while (u /= 10);
	if (id < 0)
		tmp[n++] = '-';
	while (n)
		out[k++] = tmp[--n];
	return k;
}

bool slu_path_name_derived(const struct slu_graph *g, const struct slu_vertex_desc *d)
{
	const char *name = slu_graph_str(g, d->name);
	uint32_t len = slu_intern_len(&g->strings, d->name);
	uint32_t base = slu_intern_len(&g->strings, d->basename);
	char digits[24];
	size_t n = id_digits(d->id, digits);

	return len == base + n && memcmp(name, slu_graph_str(g, d->basename), base) == 0 &&
	       memcmp(name + base, digits, n) == 0;
}

/* --- texts --- */

#define FNV_START 2166136261u

static uint32_t fnv(uint32_t h, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 16777619u;
	return h;
}

static uint32_t hash_name(const struct slu_graph *g, uint32_t h, uint32_t v)
{
	const struct slu_vertex *x = &g->v.p[v];
	char digits[24];

	if (x->name != SLU_NONE)
		return fnv(h, slu_graph_str(g, x->name), slu_intern_len(&g->strings, x->name));
	h = fnv(h, slu_graph_str(g, x->basename), slu_intern_len(&g->strings, x->basename));
	return fnv(h, digits, id_digits(x->id, digits));
}

/* Length of the name if `text` of length n ends with it, else SIZE_MAX. */
static size_t ends_with_name(const struct slu_graph *g, uint32_t v, const char *text, size_t n)
{
	const struct slu_vertex *x = &g->v.p[v];
	uint32_t word = x->name != SLU_NONE ? x->name : x->basename;
	size_t len = slu_intern_len(&g->strings, word), k = 0;
	char digits[24];

	if (x->name == SLU_NONE)
		k = id_digits(x->id, digits);
	if (len + k > n || memcmp(text + n - k, digits, k) != 0 ||
	    memcmp(text + n - k - len, slu_graph_str(g, word), len) != 0)
		return SIZE_MAX;
	return len + k;
}

static bool path_is(const struct slu_graph *g, uint32_t p, const char *text, size_t n)
{
	for (;;) {
		const struct slu_path *x = &g->path.p[p];
		size_t k;

		if (x->text != SLU_NONE)
			return slu_intern_len(&g->strings, x->text) == n &&
			       memcmp(slu_graph_str(g, x->text), text, n) == 0;
		k = ends_with_name(g, x->vertex, text, n);
		if (k == SIZE_MAX || k == n || text[n - k - 1] != '/')
			return false;
		n -= k + 1;
		if (x->parent == SLU_NONE)
			return n == 0;
		p = x->parent;
	}
}

void slu_graph_name_put(const struct slu_graph *g, uint32_t v, struct slu_buf *out)
{
	const struct slu_vertex *x = &g->v.p[v];
	uint32_t word = x->name != SLU_NONE ? x->name : x->basename;
	char digits[24];

	slu_buf_add(out, slu_graph_str(g, word), slu_intern_len(&g->strings, word));
	if (x->name == SLU_NONE)
		slu_buf_add(out, digits, id_digits(x->id, digits));
}

const char *slu_graph_name(const struct slu_graph *g, uint32_t v, struct slu_buf *scratch)
{
	const struct slu_vertex *x = &g->v.p[v];

	if (x->name != SLU_NONE)
		return slu_graph_str(g, x->name);
	slu_buf_reset(scratch);
	slu_graph_name_put(g, v, scratch);
	return slu_buf_str(scratch);
}

bool slu_graph_name_is(const struct slu_graph *g, uint32_t v, const char *name)
{
	size_t n = strlen(name);

	return ends_with_name(g, v, name, n) == n;
}

void slu_graph_path_text(const struct slu_graph *g, uint32_t path, struct slu_buf *out)
{
	uint32_t chain[64], n = 0, p = path;

	/* Up to 64 levels at once; a deeper path recurses once per 64. */
	for (;;) {
		const struct slu_path *x = &g->path.p[p];

		if (x->text != SLU_NONE) {
			slu_buf_add(out, slu_graph_str(g, x->text),
				    slu_intern_len(&g->strings, x->text));
			break;
		}
		chain[n++] = x->vertex;
		p = x->parent;
		if (p == SLU_NONE)
			break;
		if (n == SLU_LEN(chain)) {
			slu_graph_path_text(g, p, out);
			break;
		}
	}
	while (n) {
		slu_buf_putc(out, '/');
		slu_graph_name_put(g, chain[--n], out);
	}
}

static uint32_t path_in(const struct slu_graph *g, uint32_t v, uint8_t subsystem)
{
	uint32_t p = g->v.p[v].path;

	while (p != SLU_NONE && g->path.p[p].subsystem != subsystem)
		p = g->path.p[p].next;
	return p;
}

bool slu_graph_path_put(const struct slu_graph *g, uint32_t v, uint8_t subsystem,
			struct slu_buf *out)
{
	uint32_t p = path_in(g, v, subsystem);

	if (p == SLU_NONE)
		return false;
	slu_graph_path_text(g, p, out);
	return true;
}

bool slu_graph_has_path(const struct slu_graph *g, uint32_t v, uint8_t subsystem, const char *path)
{
	uint32_t p = path_in(g, v, subsystem);

	return p != SLU_NONE && path_is(g, p, path, strlen(path));
}

/* --- index by path --- */

static uint32_t home_slot(const struct slu_graph *g, uint32_t hash)
{
	return (hash * 0x9e3779b1u) >> 7 & g->path_mask;
}

static void index_path(struct slu_graph *g, uint32_t p)
{
	uint32_t i = home_slot(g, g->path.p[p].hash);

	while (g->path_slot[i] != SLU_NONE)
		i = (i + 1) & g->path_mask;
	g->path_slot[i] = p;
}

static int path_room(struct slu_graph *g)
{
	uint32_t slots = g->path_slot ? g->path_mask + 1 : 0, want = slots ? slots * 2 : 64;
	uint32_t *slot;

	/* Load at most 3/4. */
	if (slots && g->path_used + 1 <= slots - slots / 4)
		return 0;
	slot = slu_reallocarray(NULL, want, sizeof *slot);
	if (!slot)
		return -ENOMEM;
	memset(slot, 0xff, want * sizeof *slot);
	slu_free(g->path_slot);
	g->path_slot = slot;
	g->path_mask = want - 1;
	for (uint32_t p = 0; p < g->path.n; p++)
		if (!g->path.p[p].dead)
			index_path(g, p);
	return 0;
}

void slu_path_unindex(struct slu_graph *g, uint32_t p)
{
	uint32_t i = home_slot(g, g->path.p[p].hash), j;

	while (g->path_slot[i] != p)
		i = (i + 1) & g->path_mask;
	/* Close the gap; equal keys keep their order because they share a home. */
	for (j = (i + 1) & g->path_mask; g->path_slot[j] != SLU_NONE; j = (j + 1) & g->path_mask) {
		uint32_t h = home_slot(g, g->path.p[g->path_slot[j]].hash);

		if (((j - h) & g->path_mask) >= ((j - i) & g->path_mask)) {
			g->path_slot[i] = g->path_slot[j];
			i = j;
		}
	}
	g->path_slot[i] = SLU_NONE;
	g->path_used--;
	g->path.p[p].dead = 1;
}

/* Path records with this text, one after another. */
static uint32_t find_path(const struct slu_graph *g, const char *text, size_t n, uint32_t *cursor)
{
	uint32_t hash = fnv(FNV_START, text, n), i;

	if (!g->path_slot)
		return SLU_NONE;
	for (i = (home_slot(g, hash) + *cursor) & g->path_mask; g->path_slot[i] != SLU_NONE;
	     i = (i + 1) & g->path_mask) {
		uint32_t p = g->path_slot[i];

		(*cursor)++;
		if (g->path.p[p].hash == hash && path_is(g, p, text, n))
			return p;
	}
	return SLU_NONE;
}

uint32_t slu_graph_by_path(const struct slu_graph *g, const char *path, uint32_t *cursor)
{
	uint32_t p;

	/* A path that was replaced stays in the index, even after the vertex is removed. */
	do
		p = find_path(g, path, strlen(path), cursor);
	while (p != SLU_NONE && g->v.p[g->path.p[p].vertex].dead);
	return p == SLU_NONE ? SLU_NONE : g->path.p[p].vertex;
}

static int add_path(struct slu_graph *g, uint32_t v, uint8_t subsystem, uint32_t parent,
		    uint32_t text, uint32_t hash)
{
	struct slu_path x = { .vertex = v,
			      .next = SLU_NONE,
			      .parent = parent,
			      .text = text,
			      .hash = hash,
			      .subsystem = subsystem };
	uint32_t p = g->path.n, *at = &g->v.p[v].path;

	if (path_room(g) < 0 || slu_vec_push(&g->path, x) < 0)
		return -ENOMEM;
	while (*at != SLU_NONE && g->path.p[*at].subsystem != subsystem)
		at = &g->path.p[*at].next;
	if (*at != SLU_NONE)
		g->path.p[p].next = g->path.p[*at].next;
	*at = p;
	index_path(g, p);
	g->path_used++;
	g->change++;
	return 0;
}

int slu_graph_path_under(struct slu_graph *g, uint32_t v, uint8_t subsystem, uint32_t parent)
{
	uint32_t above = SLU_NONE, hash = FNV_START;

	if (parent != SLU_NONE) {
		above = path_in(g, parent, subsystem);
		if (above == SLU_NONE)
			return -EINVAL;
		hash = g->path.p[above].hash;
	}
	return add_path(g, v, subsystem, above, SLU_NONE, hash_name(g, fnv(hash, "/", 1), v));
}

int slu_graph_path_set(struct slu_graph *g, uint32_t v, uint8_t subsystem, const char *path)
{
	size_t n = strlen(path), k = ends_with_name(g, v, path, n);
	uint32_t hash = fnv(FNV_START, path, n), text, cursor = 0, p;

	if (k != SIZE_MAX && k < n && path[n - k - 1] == '/') {
		if (k + 1 == n)
			return add_path(g, v, subsystem, SLU_NONE, SLU_NONE, hash);
		while ((p = find_path(g, path, n - k - 1, &cursor)) != SLU_NONE)
			if (g->path.p[p].subsystem == subsystem)
				return add_path(g, v, subsystem, p, SLU_NONE, hash);
	}
	text = slu_intern_n(&g->strings, path, n);
	if (text == SLU_NONE)
		return -ENOMEM;
	return add_path(g, v, subsystem, SLU_NONE, text, hash);
}
