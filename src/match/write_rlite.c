#include "match/write_internal.h"

#include "base/hostlist.h"
#include "wire/jsonw.h"

#define TEXT_MAX     ((size_t)1 << 31)
#define NAME_MAX_LEN ((size_t)1 << 20)
#define MANY         16u /* number of entries above which the map is worth its cost */

void slu_rlite_part_init(struct slu_rlite_part *r)
{
	*r = (struct slu_rlite_part){ .text = SLU_BUF_INIT(TEXT_MAX),
				      .scratch = SLU_BUF_INIT(TEXT_MAX) };
}

void slu_rlite_part_done(struct slu_rlite_part *r)
{
	slu_vec_done(&r->core);
	slu_vec_done(&r->gpu);
	slu_vec_done(&r->entries);
	slu_vec_done(&r->nodes);
	slu_vec_done(&r->props);
	slu_buf_done(&r->text);
	slu_buf_done(&r->scratch);
	slu_map_done(&r->by_hash);
	slu_vec_done(&r->last);
}

bool slu_rlite_part_empty(const struct slu_rlite_part *r)
{
	return !r->entries.n;
}

/* Forget the entries, which are written.  As in the reference, ids that no node took stay for the
 * next document: those beside nodes, and those of a node with an id below 0. */
static void drop_entries(struct slu_rlite_part *r)
{
	r->entries.n = r->nodes.n = r->props.n = r->last.n = 0;
	slu_buf_reset(&r->text);
	slu_map_clear(&r->by_hash);
}

void slu_rlite_part_reset(struct slu_rlite_part *r)
{
	r->core.n = r->gpu.n = 0;
	drop_entries(r);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Ids as a set: "0-3,7".  -EINVAL if one is below 0. */
static int put_ids(struct slu_buf *b, int64_t *id, uint32_t n)
{
	bool sorted = true;

	for (uint32_t i = 1; i < n; i++)
		sorted &= id[i - 1] <= id[i];
	if (!sorted)
		qsort(id, n, sizeof *id, by_value);
	if (n && id[0] < 0)
		return -EINVAL;
	for (uint32_t i = 0; i < n;) {
		uint32_t j = i;

		while (j + 1 < n && id[j + 1] <= id[j] + 1)
			j++;
		if (i)
			slu_buf_putc(b, ',');
		slu_buf_i64(b, id[i]);
		if (id[j] > id[i]) {
			slu_buf_putc(b, '-');
			slu_buf_i64(b, id[j]);
		}
		i = j + 1;
	}
	return b->error;
}

/* The text of what was collected since the last node, into scratch. */
static int children_text(struct slu_rlite_part *r)
{
	struct slu_buf *b = &r->scratch;
	int rc = 0;

	slu_buf_reset(b);
	slu_buf_putc(b, '{');
	if (r->core.n) {
		slu_buf_puts(b, "\"core\": \"");
		rc = put_ids(b, r->core.p, r->core.n);
		if (rc < 0)
			return rc;
		slu_buf_putc(b, '"');
		r->core.n = 0;
	}
	if (r->gpu.n) {
		slu_buf_puts(b, b->n > 1 ? ", \"gpu\": \"" : "\"gpu\": \"");
		rc = put_ids(b, r->gpu.p, r->gpu.n);
		if (rc < 0)
			return rc;
		slu_buf_putc(b, '"');
		r->gpu.n = 0;
	}
	slu_buf_putc(b, '}');
	return b->error;
}

static bool entry_is(const struct slu_rlite_part *r, uint32_t i, uint32_t hash)
{
	const struct rlite_entry *e = &r->entries.p[i];

	return e->hash == hash && e->len == r->scratch.n &&
	       !memcmp(r->text.p + e->text, r->scratch.p, e->len);
}

/* Find or make the entry for the text in scratch. */
static int find_entry(struct slu_rlite_part *r, uint32_t *out)
{
	uint32_t hash = (uint32_t)slu_hash_bytes(r->scratch.p, r->scratch.n);
	struct rlite_entry e = { .text = (uint32_t)r->text.n,
				 .len = (uint32_t)r->scratch.n,
				 .hash = hash };
	uint32_t n = r->entries.n;
	uint64_t *at = n > MANY ? slu_map_get(&r->by_hash, hash) : NULL;
	int rc;

	if (n && entry_is(r, n - 1, hash)) {
		*out = n - 1;
		return 0;
	}
	if (at && entry_is(r, (uint32_t)*at, hash)) {
		*out = (uint32_t)*at;
		return 0;
	}
	for (uint32_t i = 0; i < n && (n <= MANY || at); i++) {
		if (entry_is(r, i, hash)) {
			*out = i;
			return 0;
		}
	}
	rc = slu_buf_add(&r->text, r->scratch.p, r->scratch.n);
	if (!rc)
		rc = slu_vec_push(&r->entries, e);
	if (!rc && (!slu_map_get(&r->by_hash, hash)))
		rc = slu_map_put(&r->by_hash, hash, n);
	*out = n;
	return rc;
}

/* The entry for what was collected since the last node. */
static int entry_of(struct slu_rlite_part *r, uint32_t *out)
{
	bool plain = !r->gpu.n;
	uint32_t n = r->core.n;
	int rc;

	if (plain && n == r->last.n && !memcmp(r->core.p, r->last.p, n * sizeof *r->core.p)) {
		r->core.n = 0;
		*out = r->last_entry;
		return 0;
	}
	r->last.n = 0;
	if (plain) {
		if (slu_vec_reserve(&r->last, n) < 0)
			return -ENOMEM;
		memcpy(r->last.p, r->core.p, n * sizeof *r->core.p);
	}
	rc = children_text(r);
	if (!rc)
		rc = find_entry(r, out);
	if (!rc && plain) {
		r->last.n = n;
		r->last_entry = *out;
	}
	return rc;
}

static int gather_ranks(struct slu_rlite_part *r, const struct slu_graph *g, uint32_t u)
{
	const struct slu_vertex *v = slu_graph_vertex(g, u);
	struct rlite_node node = { .rank = v->rank };
	int rc;

	if (!r->core.n && !r->gpu.n)
		return 0;
	rc = entry_of(r, &node.entry);
	if (rc < 0)
		return rc;
	node.name = (uint32_t)r->text.n;
	slu_graph_name_put(g, u, &r->text);
	rc = slu_buf_add(&r->text, "", 1);
	if (!rc)
		rc = slu_vec_push(&r->nodes, node);
	for (uint32_t p = v->props; !rc && p != SLU_NONE; p = g->prop.p[p].next) {
		struct rlite_prop prop = { (uint32_t)r->text.n, v->rank };
		const char *val = slu_graph_str(g, g->prop.p[p].val);

		slu_buf_puts(&r->text, slu_graph_str(g, g->prop.p[p].key));
		if (*val) {
			slu_buf_putc(&r->text, '=');
			slu_buf_puts(&r->text, val);
		}
		rc = slu_buf_add(&r->text, "", 1);
		if (!rc)
			rc = slu_vec_push(&r->props, prop);
	}
	return rc;
}

int slu_rlite_part_vertex(struct slu_rlite_part *r, const struct slu_graph *g,
			  const struct slu_emit_vertex *x)
{
	const struct slu_vertex *v = slu_graph_vertex(g, x->v);

	switch (v->type) {
	case SLU_TYPE_CORE:
		return slu_vec_push(&r->core, v->id);
	case SLU_TYPE_GPU:
		return slu_vec_push(&r->gpu, v->id);
	case SLU_TYPE_NODE:
	case SLU_TYPE_STORAGE_NODE:
		return gather_ranks(r, g, x->v);
	default:
		return 0;
	}
}

int slu_rlite_part_leaves(struct slu_rlite_part *r, const struct slu_graph *g,
			  const struct slu_emit_leaves *x)
{
	const struct slu_vertex *v = slu_graph_vertex(g, x->first);
	struct slu_emit_vertex one = { .v = x->first };
	int rc = 0;

	if (v->type != SLU_TYPE_CORE) {
		for (; one.v < x->first + x->n && !rc; one.v++)
			rc = slu_rlite_part_vertex(r, g, &one);
		return rc;
	}
	if (slu_vec_reserve(&r->core, r->core.n + x->n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->n; i++)
		r->core.p[r->core.n++] = x->rising ? v->id + i : v[i].id;
	return 0;
}

/* --- emitting --- */

static int by_text(const void *a, const void *b, void *arg)
{
	const struct slu_rlite_part *r = arg;
	const struct rlite_entry *x = &r->entries.p[*(const uint32_t *)a];
	const struct rlite_entry *y = &r->entries.p[*(const uint32_t *)b];
	int c = memcmp(r->text.p + x->text, r->text.p + y->text, SLU_MIN(x->len, y->len));

	return c ? c : (x->len > y->len) - (x->len < y->len);
}

static int by_entry_rank(const void *a, const void *b, void *arg)
{
	const struct slu_rlite_part *r = arg;
	const struct rlite_node *x = a, *y = b;
	uint32_t ox = r->entries.p[x->entry].order, oy = r->entries.p[y->entry].order;

	if (ox != oy)
		return ox < oy ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int by_rank(const void *a, const void *b, void *arg)
{
	const struct slu_rlite_part *r = arg;
	const struct rlite_node *x = a, *y = b;

	return x->rank != y->rank ? (x->rank < y->rank ? -1 : 1) : by_entry_rank(a, b, (void *)r);
}

static int put_list(struct slu_rlite_part *r, struct slu_buf *out)
{
	slu_cleanup(slu_freep) uint32_t *order = NULL;
	slu_cleanup(slu_freep) int64_t *ranks = NULL;
	uint32_t n = r->entries.n;
	int rc = 0;

	order = slu_reallocarray(NULL, n, sizeof *order);
	ranks = slu_reallocarray(NULL, r->nodes.n, sizeof *ranks);
	if (!order || !ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	if (n > 1)
		qsort_r(order, n, sizeof *order, by_text, r);
	for (uint32_t i = 0; i < n; i++)
		r->entries.p[order[i]].order = i;
	if (r->nodes.n > 1)
		qsort_r(r->nodes.p, r->nodes.n, sizeof *r->nodes.p, by_entry_rank, r);
	slu_buf_putc(out, '[');
	for (uint32_t i = 0; i < r->nodes.n && !rc;) {
		const struct rlite_entry *e = &r->entries.p[r->nodes.p[i].entry];
		uint32_t k = 0, entry = r->nodes.p[i].entry;

		slu_buf_puts(out, i ? ", {\"rank\": \"" : "{\"rank\": \"");
		for (; i < r->nodes.n && r->nodes.p[i].entry == entry; i++)
			ranks[k++] = r->nodes.p[i].rank;
		rc = put_ids(out, ranks, k);
		slu_buf_puts(out, "\", \"children\": ");
		slu_buf_add(out, r->text.p + e->text, e->len);
		slu_buf_putc(out, '}');
	}
	slu_buf_putc(out, ']');
	return rc ? rc : out->error;
}

static int by_prop(const void *a, const void *b, void *arg)
{
	const struct slu_rlite_part *r = arg;
	const struct rlite_prop *x = a, *y = b;
	int c = strcmp(r->text.p + x->text, r->text.p + y->text);

	return c ? c : (x->rank > y->rank) - (x->rank < y->rank);
}

static int put_properties(struct slu_rlite_part *r, struct slu_buf *out)
{
	slu_cleanup(slu_freep) int64_t *ranks = NULL;
	int rc = 0;

	if (!r->props.n)
		return 0;
	ranks = slu_reallocarray(NULL, r->props.n, sizeof *ranks);
	if (!ranks)
		return -ENOMEM;
	qsort_r(r->props.p, r->props.n, sizeof *r->props.p, by_prop, r);
	slu_buf_puts(out, ", \"properties\": {");
	for (uint32_t i = 0; i < r->props.n && !rc;) {
		const char *name = r->text.p + r->props.p[i].text;
		uint32_t k = 0;

		if (i)
			slu_buf_puts(out, ", ");
		slu_json_quote(out, name, strlen(name));
		for (; i < r->props.n && !strcmp(name, r->text.p + r->props.p[i].text); i++)
			ranks[k++] = r->props.p[i].rank;
		slu_buf_puts(out, ": \"");
		rc = put_ids(out, ranks, k);
		slu_buf_putc(out, '"');
	}
	slu_buf_putc(out, '}');
	return rc ? rc : out->error;
}

/* Node names by rank.  A name goes through the host list's own syntax, as in the reference. */
static int put_hosts(struct slu_rlite_part *r, struct slu_buf *out)
{
	struct slu_hostlist l = { 0 };
	int rc = 0;

	slu_buf_reset(&r->scratch);
	if (r->nodes.n == 1 && !strpbrk(r->text.p + r->nodes.p[0].name, "[], \t\n")) {
		slu_buf_puts(&r->scratch, r->text.p + r->nodes.p[0].name);
		rc = r->scratch.n ? 0 : -EINVAL;
	} else {
		qsort_r(r->nodes.p, r->nodes.n, sizeof *r->nodes.p, by_rank, r);
		for (uint32_t i = 0; i < r->nodes.n && !rc; i++)
			rc = slu_hostlist_parse(&l, r->text.p + r->nodes.p[i].name);
		if (!rc)
			slu_hostlist_put(&l, &r->scratch);
		slu_hostlist_done(&l);
	}
	slu_buf_puts(out, ", \"nodelist\": [");
	if (!rc)
		slu_json_quote(out, slu_buf_str(&r->scratch), r->scratch.n);
	slu_buf_putc(out, ']');
	return rc ? rc : r->scratch.error ? r->scratch.error : out->error;
}

/* Remove from `out` what was written before the error. */
static int finish_list(struct slu_rlite_part *r, struct slu_buf *out, size_t start, int rc)
{
	if (rc < 0) {
		if (out->p) {
			out->n = start;
			out->p[start] = '\0';
		}
		return rc;
	}
	drop_entries(r);
	return 0;
}

int slu_rlite_part_emit(struct slu_rlite_part *r, struct slu_buf *out)
{
	size_t start = out->n;

	if (!r->entries.n)
		return -EINVAL;
	return finish_list(r, out, start, put_list(r, out));
}

int slu_rlite_part_emit_execution(struct slu_rlite_part *r, struct slu_buf *out)
{
	size_t start = out->n;
	int rc;

	if (!r->entries.n)
		return -EINVAL;
	slu_buf_puts(out, "\"R_lite\": ");
	rc = put_list(r, out);
	if (!rc)
		rc = put_hosts(r, out);
	if (!rc)
		rc = put_properties(r, out);
	return finish_list(r, out, start, rc);
}
