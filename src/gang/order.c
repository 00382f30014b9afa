/* order.c — the order of the nodes, the members of the domains, and working memory as large as the
 * machine.  All of it is rebuilt when nodes come, go or move. */
#include "gang/gang_internal.h"

struct key {
	int64_t rank;
	const char *name;
	uint32_t index;
};

static int cmp_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strverscmp(x->name, y->name); /* n2 before n10 */
}

/* Members of every domain of a level, by counting. */
static int members(struct slu_machine *m, struct level *l, uint32_t number, const uint32_t *order,
		   uint32_t n)
{
	uint32_t *first = slu_calloc((size_t)l->domain.n + 2, sizeof *first);
	uint32_t *list = slu_malloc(SLU_MAX(n, 1u) * sizeof *list);
	uint32_t *by_pos = slu_malloc(((size_t)l->domain.n + 1) * sizeof *by_pos), k = 0;

	if (!first || !list || !by_pos) {
		slu_free(first);
		slu_free(list);
		slu_free(by_pos);
		return -ENOMEM;
	}
	for (uint32_t p = 0; p < n; p++) {
		uint32_t d = m->node[order[p]].domain[number];

		if (d != NONE)
			first[d + 2]++;
	}
	for (uint32_t d = 2; d < l->domain.n + 2; d++)
		first[d] += first[d - 1];
	for (uint32_t p = 0; p < n; p++) {
		uint32_t d = m->node[order[p]].domain[number];

		if (d != NONE)
			list[first[d + 1]++] = p;
	}
	for (uint32_t p = 0; p < n; p++) {
		uint32_t d = m->node[order[p]].domain[number];

		if (d != NONE && list[first[d]] == p)
			by_pos[k++] = d;
	}
	slu_free(l->first);
	slu_free(l->list);
	slu_free(l->by_pos);
	l->first = first;
	l->list = list;
	l->by_pos = by_pos;
	l->n_by_pos = k;
	return 0;
}

/* The keys of all nodes, those of the old order in that order. */
static int list_keys(const struct slu_machine *m, struct key *key)
{
	uint64_t *listed = slu_calloc(m->n_slot / 64 + 1, sizeof *listed);
	uint32_t k = 0;

	if (!listed)
		return -ENOMEM;
	for (uint32_t p = 0; m->order && p < m->n_pos; p++) {
		uint32_t i = m->order[p];

		if (i >= m->n_slot || !m->node[i].name)
			continue;
		bit_set(listed, i);
		key[k++] = (struct key){ m->node[i].rank, m->node[i].name, i };
	}
	for (uint32_t i = 0; i < m->n_slot; i++)
		if (m->node[i].name && !(listed[i / 64] >> i % 64 & 1))
			key[k++] = (struct key){ m->node[i].rank, m->node[i].name, i };
	slu_free(listed);
	return 0;
}

/* Sort keys of which most are in order already: names are slow to compare, and one node that comes or
 * goes should not have all of them compared many times.  Keys out of order are sorted separately and merged. */
static int sort_keys(struct key *key, uint32_t n)
{
	struct key *out = slu_malloc(SLU_MAX(n, 1u) * sizeof *out);
	uint32_t in = 0, b = 0;

	if (!out)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (in && cmp_key(&key[in - 1], &key[i]) > 0)
			out[b++] = key[i];
		else
			key[in++] = key[i];
	}
	qsort(out, b, sizeof *out, cmp_key);
	while (b) { /* from the back, where there is room */
		bool first = in && cmp_key(&key[in - 1], &out[b - 1]) > 0;

		key[in + b - 1] = first ? key[in - 1] : out[b - 1];
		in -= first;
		b -= !first;
	}
	slu_free(out);
	return 0;
}

int slu_order_make(struct slu_machine *m)
{
	uint32_t n = m->n_node;
	struct key *key;
	uint32_t *order;
	uint64_t *bits;
	int rc = 0;

	if (m->order_ok)
		return 0;
	key = slu_malloc(SLU_MAX(n, 1u) * sizeof *key);
	order = slu_malloc(SLU_MAX(n, 1u) * sizeof *order);
	bits = slu_calloc(n / 64 + 1, sizeof *bits);
	if (!key || !order || !bits || list_keys(m, key) < 0 || sort_keys(key, n) < 0) {
		rc = -ENOMEM;
		goto out;
	}
	for (uint32_t p = 0; p < n; p++)
		order[p] = key[p].index;
	for (uint32_t l = 0; l < m->level_name.n && !rc; l++)
		rc = members(m, &m->level[l], l, order, n);
	if (rc)
		goto out;
	for (uint32_t p = 0; p < n; p++) {
		m->node[order[p]].pos = p;
		if (m->node[order[p]].future)
			bit_set(bits, p);
	}
	slu_free(m->order);
	slu_free(m->future_bits);
	m->order = slu_take(order);
	m->future_bits = slu_take(bits);
	m->n_pos = n;
	m->order_gen++;
	m->order_ok = true;
out:
	slu_free(key);
	slu_free(order);
	slu_free(bits);
	return rc;
}

void slu_scratch_done(struct scratch *s)
{
	for (uint32_t r = 0; r < SLU_ROLES_MAX; r++) {
		slu_free(s->cap[r]);
		slu_free(s->bits[r]);
	}
	slu_free(s->row);
	slu_free(s->stamp);
	slu_free(s->dirty_stamp);
	slu_free(s->dirty);
	slu_free(s->left);
	slu_free(s->mark);
	slu_free(s->here);
	slu_free(s->taken);
	slu_free(s->cand);
	slu_free(s->cand2);
	slu_free(s->fit_cap);
	slu_free(s->fit_bits);
	slu_vec_done(&s->touched);
	slu_vec_done(&s->undo);
	slu_vec_done(&s->out);
	slu_vec_done(&s->ev);
	*s = (struct scratch){ 0 };
}

int slu_scratch_make(struct slu_machine *m, uint32_t n_role)
{
	struct scratch *s = &m->s;
	uint32_t n = SLU_MAX(m->n_pos, 1u);

	if (s->n < n) {
		SLU_VEC(struct when) ev = { 0 }; /* stays: bookings rely on its size */

		memcpy(&ev, &s->ev, sizeof ev);
		memset(&s->ev, 0, sizeof s->ev);
		slu_scratch_done(s);
		memcpy(&s->ev, &ev, sizeof ev);
		n += n / 8;
		s->row = slu_malloc((size_t)n * m->stride * sizeof *s->row);
		s->stamp = slu_calloc(n, sizeof *s->stamp);
		s->dirty_stamp = slu_calloc(n, sizeof *s->dirty_stamp);
		s->dirty = slu_malloc(n * sizeof *s->dirty);
		s->left = slu_malloc((size_t)n * m->stride * sizeof *s->left);
		s->mark = slu_calloc(n, sizeof *s->mark);
		s->here = slu_malloc(n * sizeof *s->here);
		s->taken = slu_calloc(n, sizeof *s->taken);
		s->cand = slu_malloc(n * sizeof *s->cand);
		s->cand2 = slu_malloc(n * sizeof *s->cand2);
		s->fit_cap = slu_malloc(n * sizeof *s->fit_cap);
		s->fit_bits = slu_malloc((n / 64 + 1) * sizeof *s->fit_bits);
		if (!s->left || !s->mark || !s->here || !s->fit_cap || !s->fit_bits || !s->row ||
		    !s->stamp || !s->dirty_stamp || !s->dirty || !s->taken || !s->cand || !s->cand2)
			return -ENOMEM; /* n is still 0, so the next call starts from the beginning */
		s->n = n;
	}
	for (uint32_t r = 0; r < n_role; r++) {
		if (!s->cap[r])
			s->cap[r] = slu_malloc(s->n * sizeof **s->cap);
		if (!s->bits[r])
			s->bits[r] = slu_malloc((s->n / 64 + 1) * sizeof **s->bits);
		if (!s->cap[r] || !s->bits[r])
			return -ENOMEM;
	}
	return 0;
}
