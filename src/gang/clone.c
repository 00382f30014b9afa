/* clone.c — the copy for "what if", and the figures about the whole. */
#include "gang/gang_internal.h"

/* Returns NULL for an empty array, too; callers test the count. */
static void *copy_array(const void *p, size_t n, size_t size)
{
	void *c = slu_malloc(SLU_MAX(n * size, (size_t)1));

	if (c && n)
		memcpy(c, p, n * size);
	return c;
}

static int copy_names(struct names *to, const struct names *from)
{
	to->p = slu_calloc(SLU_MAX(from->n, 1u), sizeof *to->p);
	if (!to->p)
		return -ENOMEM;
	to->cap = SLU_MAX(from->n, 1u);
	for (; to->n < from->n; to->n++) {
		to->p[to->n] = slu_strdup(from->p[to->n]);
		if (!to->p[to->n])
			return -ENOMEM;
	}
	return 0;
}

/* Entries in the same order, so that walks agree. */
static int copy_map(struct slu_map *to, const struct slu_map *from)
{
	for (uint32_t i = 0; i < from->n; i++) {
		if (slu_map_put(to, from->e[i].key, from->e[i].val) < 0)
			return -ENOMEM;
	}
	return 0;
}

#define COPY_VEC(to, from, field)                                                      \
	({                                                                             \
		(to)->field.p = copy_array((from)->field.p, (from)->field.n,           \
					   sizeof *(from)->field.p);                   \
		(to)->field.n = (to)->field.cap = (to)->field.p ? (from)->field.n : 0; \
		(to)->field.p ? 0 : -ENOMEM;                                           \
	})

static int copy_nodes(struct slu_machine *c, const struct slu_machine *m)
{
	size_t rows = (size_t)SLU_MAX(m->cap_slot, 1u) * m->stride;

	c->node = slu_calloc(SLU_MAX(m->cap_slot, 1u), sizeof *c->node);
	c->total = slu_calloc(rows, sizeof *c->total);
	c->free = slu_calloc(rows, sizeof *c->free);
	c->least = slu_calloc(rows, sizeof *c->least);
	if (!c->node || !c->total || !c->free || !c->least)
		return -ENOMEM;
	c->cap_slot = m->cap_slot;
	c->stride = m->stride;
	if (m->n_slot) { /* a machine without nodes has no rows */
		memcpy(c->total, m->total, (size_t)m->n_slot * m->stride * sizeof *c->total);
		memcpy(c->free, m->free, (size_t)m->n_slot * m->stride * sizeof *c->free);
	}
	for (; c->n_slot < m->n_slot; c->n_slot++) {
		const struct node *from = &m->node[c->n_slot];
		struct node *to = &c->node[c->n_slot];

		*to = *from;
		to->share.p = NULL;
		to->share.n = to->share.cap = 0;
		to->name = NULL;
		to->least_ok = false;
		to->changed = 0;
		if (!from->name)
			continue;
		to->name = slu_strdup(from->name);
		if (!to->name || slu_vec_reserve(&to->share, from->share.n) < 0) {
			c->n_slot++;
			return -ENOMEM;
		}
		if (from->share.n)
			memcpy(to->share.p, from->share.p, from->share.n * sizeof *to->share.p);
		to->share.n = from->share.n;
	}
	c->n_node = m->n_node;
	if (copy_map(&c->by_name, &m->by_name) < 0 || COPY_VEC(c, m, empty) < 0)
		return -ENOMEM;
	return slu_vec_reserve(&c->empty, m->n_slot + 1);
}

static struct need *copy_need(struct slu_machine *c, const struct need *n)
{
	const uint64_t *at;
	struct need *x;

	for (uint64_t key = n->hash;; key++) {
		at = slu_map_get(&c->need_by_hash, key);
		if (!at)
			break;
		x = (struct need *)(uintptr_t)*at;
		if (slu_need_same(x, n)) {
			x->refs++;
			return x;
		}
	}
	x = copy_array(n, 1, sizeof *n + n->n * sizeof *n->a);
	if (!x)
		return NULL;
	x->refs = 1;
	for (uint64_t key = n->hash;; key++) {
		if (slu_map_get(&c->need_by_hash, key))
			continue;
		if (slu_map_put(&c->need_by_hash, key, (uint64_t)(uintptr_t)x) == 0)
			return x;
		slu_free(x);
		return NULL;
	}
}

static int copy_jobs(struct slu_machine *c, const struct slu_machine *m)
{
	c->job = slu_calloc(SLU_MAX(m->n_job, 1u), sizeof *c->job);
	if (!c->job)
		return -ENOMEM;
	c->cap_job = SLU_MAX(m->n_job, 1u);
	c->n_job = m->n_job;
	for (uint32_t i = 0; i < m->n_job; i++) {
		const struct job *from = &m->job[i];
		struct job *to = &c->job[i];

		if (!from->live)
			continue;
		*to = *from;
		to->part = copy_array(from->part, from->n_part, sizeof *to->part);
		to->need = slu_calloc(SLU_MAX(from->n_role, 1u), sizeof *to->need);
		to->use = copy_array(from->use, from->n_use, sizeof *to->use);
		to->cap_part = from->n_part;
		to->cap_role = SLU_MAX(from->n_role, 1u);
		to->cap_use = from->n_use;
		if (!to->part || !to->need || !to->use)
			return -ENOMEM;
		for (uint32_t r = 0; r < from->n_role; r++) {
			to->need[r] = copy_need(c, from->need[r]);
			if (!to->need[r])
				return -ENOMEM;
		}
	}
	if (copy_map(&c->by_id, &m->by_id) < 0 || COPY_VEC(c, m, job_empty) < 0 ||
	    COPY_VEC(c, m, ends) < 0 || COPY_VEC(c, m, starts) < 0)
		return -ENOMEM;
	return slu_vec_reserve(&c->job_empty, m->n_job + 1);
}

struct slu_machine *slu_machine_clone(const struct slu_machine *m)
{
	slu_cleanup(slu_machine_freep) struct slu_machine *c = slu_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->journal = slu_calloc((size_t)1 << JOURNAL_BITS, sizeof *c->journal);
	c->changes = 1;
	c->now = m->now;
	c->version = m->version;
	c->block_end = m->block_end;
	c->n_running = m->n_running;
	c->n_reserved = m->n_reserved;
	c->n_block = m->n_block;
	c->n_share = m->n_share;
	c->odd = m->odd;
	c->n_unfit = m->n_unfit;
	memcpy(c->sum, m->sum, sizeof c->sum);
	memcpy(c->whole, m->whole, sizeof c->whole);
	if (!c->journal || copy_names(&c->resource, &m->resource) < 0 ||
	    copy_names(&c->level_name, &m->level_name) < 0)
		return NULL;
	for (uint32_t l = 0; l < m->level_name.n; l++) {
		if (copy_names(&c->level[l].domain, &m->level[l].domain) < 0 ||
		    copy_map(&c->level[l].by_hash, &m->level[l].by_hash) < 0)
			return NULL;
	}
	if (copy_nodes(c, m) < 0 || copy_jobs(c, m) < 0 ||
	    slu_vec_reserve(&c->s.ev, m->s.ev.cap) < 0)
		return NULL;
	return slu_take(c);
}

/* ---- figures ---- */

static size_t map_bytes(const struct slu_map *t)
{
	return (size_t)t->cap * (sizeof *t->e + 2 * sizeof *t->slot);
}

static size_t bytes(const struct slu_machine *m)
{
	size_t n = sizeof *m + ((size_t)sizeof *m->journal << JOURNAL_BITS);

	n += (size_t)m->cap_slot * (sizeof *m->node + 3 * m->stride * sizeof *m->free);
	n += (size_t)m->n_pos * (sizeof *m->order + sizeof *m->level[0].list * m->level_name.n);
	n += (size_t)m->cap_job * sizeof *m->job;
	n += ((size_t)m->ends.cap + m->starts.cap) * sizeof *m->ends.p;
	n += map_bytes(&m->by_id) + map_bytes(&m->by_name) + map_bytes(&m->need_by_hash);
	for (uint32_t i = 0; i < m->n_slot; i++) {
		n += m->node[i].share.cap * sizeof(struct share);
		n += m->node[i].name ? strlen(m->node[i].name) + 1 : 0;
	}
	for (uint32_t i = 0; i < m->n_job; i++)
		n += m->job[i].cap_part * sizeof(struct part) + m->job[i].cap_role * sizeof(void *);
	for (uint32_t i = 0; i < m->n_fitmap; i++)
		n += sizeof(struct fitmap) + (size_t)m->fitmap[i]->n_pos * 67 / 8;
	n += (size_t)m->s.n * (2 * m->stride * sizeof(int64_t) + 2 * sizeof(struct cand) + 32);
	return n;
}

uint32_t slu_machine_up(const struct slu_machine *m)
{
	return m->n_node - m->n_unfit;
}

int64_t slu_machine_whole(const struct slu_machine *m, uint32_t resource)
{
	return m->whole[resource];
}

void slu_machine_stats(const struct slu_machine *m, struct slu_machine_stats *out)
{
	*out = (struct slu_machine_stats){ .nodes = m->n_node,
					   .jobs = m->by_id.n,
					   .running = m->n_running,
					   .reserved = m->n_reserved,
					   .blocks = m->n_block,
					   .shares = m->n_share,
					   .bytes = bytes(m) };
	for (uint32_t i = 0; i < m->n_slot; i++) {
		const struct node *v = &m->node[i];
		const int64_t *total = m->total + (size_t)i * m->stride, *f = row_free(m, i);
		bool over = false;

		if (!v->name)
			continue;
		for (uint32_t k = 0; k < m->resource.n; k++) {
			over |= f[k] < 0 && k > 0;
			if (v->down || v->cordoned)
				continue;
			out->total[k] = slu_plus_sat(out->total[k], total[k], 1);
			out->free[k] = slu_plus_sat(
				out->free[k], SLU_MAX(SLU_MIN(f[k], total[k]), (int64_t)0), 1);
		}
		out->overbooked += over;
		out->up += !v->down && !v->cordoned;
	}
}
