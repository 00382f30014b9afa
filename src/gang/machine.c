/* machine.c — resources, levels and nodes. */
#include "gang/gang_internal.h"

struct slu_machine *slu_machine_new(void)
{
	struct slu_machine *m = slu_calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->stride = 4;
	m->now = INT64_MIN;
	m->block_end = SLU_FOREVER;
	m->changes = 1;
	m->journal = slu_calloc((size_t)1 << JOURNAL_BITS, sizeof *m->journal);
	if (!m->journal || slu_machine_resource(m, "node") < 0) {
		slu_machine_free(m);
		return NULL;
	}
	return m;
}

static void names_done(struct names *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		slu_free(t->p[i]);
	slu_free(t->p);
}

void slu_machine_free(struct slu_machine *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n_fitmap; i++)
		slu_fitmap_free(m, m->fitmap[i]);
	names_done(&m->resource);
	names_done(&m->level_name);
	for (uint32_t i = 0; i < SLU_LEVELS_MAX; i++) {
		names_done(&m->level[i].domain);
		slu_map_done(&m->level[i].by_hash);
		slu_free(m->level[i].first);
		slu_free(m->level[i].list);
		slu_free(m->level[i].by_pos);
	}
	for (uint32_t i = 0; i < m->n_slot; i++) {
		slu_free(m->node[i].name);
		slu_vec_done(&m->node[i].share);
	}
	for (uint32_t i = 0; i < m->n_job; i++) {
		slu_free(m->job[i].part);
		slu_free(m->job[i].need);
		slu_free(m->job[i].use);
	}
	for (uint32_t i = 0; i < m->need_by_hash.n; i++)
		slu_free((void *)(uintptr_t)m->need_by_hash.e[i].val);
	slu_map_done(&m->need_by_hash);
	slu_map_done(&m->by_name);
	slu_map_done(&m->by_id);
	slu_free(m->node);
	slu_free(m->job);
	slu_vec_done(&m->empty);
	slu_vec_done(&m->job_empty);
	slu_vec_done(&m->ends);
	slu_vec_done(&m->starts);
	slu_free(m->total);
	slu_free(m->free);
	slu_free(m->least);
	slu_free(m->order);
	slu_free(m->future_bits);
	slu_free(m->journal);
	slu_scratch_done(&m->s);
	slu_free(m);
}

/* ---- names ---- */

static int names_find(const struct names *t, const char *name)
{
	for (uint32_t i = 0; i < t->n; i++) {
		if (!strcmp(t->p[i], name))
			return (int)i;
	}
	return -ENOENT;
}

static int names_add(struct names *t, const char *name)
{
	char *s;

	if (t->n == t->cap && slu_vec_grow((void **)&t->p, &t->cap, t->n + 1, sizeof *t->p) < 0)
		return -ENOMEM;
	s = slu_strdup(name);
	if (!s)
		return -ENOMEM;
	t->p[t->n] = s;
	return (int)t->n++;
}

/* Wider rows for more resources. */
static int restride(struct slu_machine *m, uint32_t stride)
{
	int64_t **col[] = { &m->total, &m->free, &m->least };
	int64_t *wide[3] = { 0 };

	for (int c = 0; c < 3; c++) {
		wide[c] = slu_calloc((size_t)SLU_MAX(m->cap_slot, 1u) * stride, sizeof **wide);
		if (!wide[c]) {
			while (c-- > 0)
				slu_free(wide[c]);
			return -ENOMEM;
		}
		for (uint32_t i = 0; i < m->n_slot; i++)
			memcpy(wide[c] + (size_t)i * stride, *col[c] + (size_t)i * m->stride,
			       m->stride * sizeof **wide);
	}
	for (int c = 0; c < 3; c++) {
		slu_free(*col[c]);
		*col[c] = wide[c];
	}
	m->stride = stride;
	m->s.n = 0; /* its rows have the old width: the next match makes them again */
	return 0;
}

int slu_machine_resource(struct slu_machine *m, const char *name)
{
	int k = names_find(&m->resource, name);

	if (k >= 0)
		return k;
	if (m->resource.n == SLU_RESOURCES_MAX)
		return -ENOSPC;
	if (m->resource.n == m->stride && restride(m, m->stride + 2) < 0)
		return -ENOMEM;
	return names_add(&m->resource, name);
}

int slu_machine_level(struct slu_machine *m, const char *name)
{
	int l = names_find(&m->level_name, name);

	if (l >= 0)
		return l;
	if (m->level_name.n == SLU_LEVELS_MAX)
		return -ENOSPC;
	l = names_add(&m->level_name, name);
	if (l >= 0) {
		for (uint32_t i = 0; i < m->n_slot; i++)
			m->node[i].domain[l] = NONE;
		m->order_ok = false;
	}
	return l;
}

int slu_machine_resource_find(const struct slu_machine *m, const char *name)
{
	return names_find(&m->resource, name);
}

int slu_machine_level_find(const struct slu_machine *m, const char *name)
{
	return names_find(&m->level_name, name);
}

const char *slu_machine_resource_name(const struct slu_machine *m, uint32_t resource)
{
	return m->resource.p[resource];
}

const char *slu_machine_level_name(const struct slu_machine *m, uint32_t level)
{
	return m->level_name.p[level];
}

uint32_t slu_machine_resources(const struct slu_machine *m)
{
	return m->resource.n;
}

uint32_t slu_machine_levels(const struct slu_machine *m)
{
	return m->level_name.n;
}

int slu_domain_get(struct level *l, const char *name)
{
	for (uint64_t key = slu_hash_bytes(name, strlen(name));; key++) {
		const uint64_t *at = slu_map_get(&l->by_hash, key);
		int d;

		if (at && !strcmp(l->domain.p[*at], name))
			return (int)*at;
		if (at)
			continue;
		if (slu_map_put(&l->by_hash, key, l->domain.n) < 0)
			return -ENOMEM;
		d = names_add(&l->domain, name);
		if (d < 0)
			slu_map_del(&l->by_hash, key);
		return d;
	}
}

/* ---- nodes ---- */

int slu_node_slot(const struct slu_machine *m, slu_node node)
{
	uint32_t i = (uint32_t)node;

	if (i >= m->n_slot || !m->node[i].name || m->node[i].gen != (uint32_t)(node >> 32))
		return -ENOENT;
	return (int)i;
}

static slu_node handle_of(const struct slu_machine *m, uint32_t i)
{
	return (slu_node)m->node[i].gen << 32 | i;
}

slu_node slu_machine_node_find(const struct slu_machine *m, const char *name)
{
	const uint64_t *at = slu_map_get(&m->by_name, slu_hash_bytes(name, strlen(name)));

	for (uint32_t i = at ? (uint32_t)*at : NONE; i != NONE; i = m->node[i].same_hash) {
		if (!strcmp(m->node[i].name, name))
			return handle_of(m, i);
	}
	return SLU_NODE_NONE;
}

static int check_total(const struct slu_machine *m, const char *name, const struct slu_amount *a,
		       uint32_t n, struct slu_error *err)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!a[i].resource || a[i].resource >= m->resource.n)
			return slu_fail(err, -EINVAL, "node \"%s\": there is no resource %u", name,
					a[i].resource);
		if (seen >> a[i].resource & 1)
			return slu_fail(err, -EINVAL, "node \"%s\": %s is given twice", name,
					m->resource.p[a[i].resource]);
		seen |= 1u << a[i].resource;
		if (a[i].n < 0)
			return slu_fail(err, -EINVAL, "node \"%s\": %s is negative", name,
					m->resource.p[a[i].resource]);
		if (a[i].n > SLU_AMOUNT_MAX)
			return slu_fail(err, -ERANGE, "node \"%s\": %s is above %" PRId64, name,
					m->resource.p[a[i].resource], SLU_AMOUNT_MAX);
	}
	return 0;
}

static int nodes_room(struct slu_machine *m)
{
	uint32_t cap = m->cap_slot + m->cap_slot / 4 + 16;
	int64_t **col[] = { &m->total, &m->free, &m->least };
	struct node *v;

	for (int c = 0; c < 3; c++) {
		int64_t *p = slu_reallocarray(*col[c], (size_t)cap * m->stride, sizeof *p);

		if (!p)
			return -ENOMEM;
		*col[c] = p;
	}
	v = slu_reallocarray(m->node, cap, sizeof *v);
	if (!v)
		return -ENOMEM;
	m->node = v;
	m->cap_slot = cap;
	return 0;
}

static void total_set(struct slu_machine *m, uint32_t i, const struct slu_amount *a, uint32_t n)
{
	int64_t *total = m->total + (size_t)i * m->stride;

	memset(total, 0, m->stride * sizeof *total);
	total[0] = WHOLE;
	for (uint32_t k = 0; k < n; k++)
		total[a[k].resource] = a[k].n;
}

int slu_machine_node_add(struct slu_machine *m, const struct slu_node_spec *spec, slu_node *out,
			 struct slu_error *err)
{
	uint64_t hash = slu_hash_bytes(spec->name, strlen(spec->name));
	uint32_t domain[SLU_LEVELS_MAX], i, gen = 0;
	const uint64_t *head;
	struct node *v;
	char *name;
	int rc = check_total(m, spec->name, spec->total, spec->n_total, err);

	if (rc < 0)
		return rc;
	if (spec->n_domain > m->level_name.n)
		return slu_fail(err, -EINVAL, "node \"%s\": there are %u levels, not %u",
				spec->name, m->level_name.n, spec->n_domain);
	if (slu_machine_node_find(m, spec->name) != SLU_NODE_NONE)
		return slu_fail(err, -EEXIST, "node \"%s\" exists already", spec->name);
	if (m->n_node == SLU_NODES_MAX)
		return slu_fail(err, -ENOSPC, "node \"%s\": there are %u nodes already", spec->name,
				m->n_node);
	if (!m->empty.n && m->n_slot == m->cap_slot && nodes_room(m) < 0)
		return -ENOMEM;
	/* So that removing a node never needs memory. */
	if (slu_vec_reserve(&m->empty, m->n_slot + 1) < 0)
		return -ENOMEM;
	for (uint32_t l = 0; l < SLU_LEVELS_MAX; l++) {
		domain[l] = NONE;
		if (l < spec->n_domain && spec->domain[l]) {
			rc = slu_domain_get(&m->level[l], spec->domain[l]);
			if (rc < 0)
				return rc;
			domain[l] = (uint32_t)rc;
		}
	}
	name = slu_strdup(spec->name);
	if (!name)
		return -ENOMEM;
	head = slu_map_get(&m->by_name, hash);
	i = m->empty.n ? m->empty.p[m->empty.n - 1] : m->n_slot;
	{
		uint32_t next = head ? (uint32_t)*head : NONE;

		if (slu_map_put(&m->by_name, hash, i) < 0) {
			slu_free(name);
			return -ENOMEM;
		}
		if (m->empty.n) {
			m->empty.n--;
			gen = m->node[i].gen;
		} else {
			m->n_slot++;
		}
		v = &m->node[i];
		*v = (struct node){ .name = name,
				    .rank = spec->rank,
				    .tag = spec->tag,
				    .gen = gen,
				    .same_hash = next,
				    .down = spec->down,
				    .cordoned = spec->cordoned };
	}
	memcpy(v->domain, domain, sizeof domain);
	total_set(m, i, spec->total, spec->n_total);
	memcpy(row_free(m, i), m->total + (size_t)i * m->stride, m->stride * sizeof *m->free);
	slu_sum_in(m, i);
	m->n_unfit += !node_up(v);
	m->n_node++;
	m->order_ok = false;
	m->size_gen++;
	m->version++;
	if (out)
		*out = handle_of(m, i);
	return 0;
}

int slu_machine_node_remove(struct slu_machine *m, slu_node node)
{
	int i = slu_node_slot(m, node);
	struct node *v;
	uint64_t hash, *head;

	if (i < 0)
		return i;
	v = &m->node[i];
	while (v->share.n) {
		struct share s = v->share.p[v->share.n - 1];
		struct job *j = &m->job[s.job];

		slu_job_reduce(m, j, s.part, j->part[s.part].slots);
	}
	slu_sum_out(m, (uint32_t)i);
	m->n_unfit -= !node_up(v);
	hash = slu_hash_bytes(v->name, strlen(v->name));
	head = slu_map_get(&m->by_name, hash);
	if (*head == (uint64_t)i && v->same_hash == NONE) {
		slu_map_del(&m->by_name, hash);
	} else if (*head == (uint64_t)i) {
		*head = v->same_hash;
	} else {
		uint32_t k = (uint32_t)*head;

		while (m->node[k].same_hash != (uint32_t)i)
			k = m->node[k].same_hash;
		m->node[k].same_hash = v->same_hash;
	}
	slu_free(v->name);
	slu_vec_done(&v->share);
	*v = (struct node){ .gen = v->gen + 1 };
	m->empty.p[m->empty.n++] = (uint32_t)i;
	m->n_node--;
	m->order_ok = false;
	m->size_gen++;
	m->version++;
	return 0;
}

int slu_machine_node_resize(struct slu_machine *m, slu_node node, const struct slu_amount *total,
			    uint32_t n_total, struct slu_error *err)
{
	int i = slu_node_slot(m, node), rc;
	int64_t *t, *f, used[SLU_RESOURCES_MAX];

	if (i < 0)
		return i;
	rc = check_total(m, m->node[i].name, total, n_total, err);
	if (rc < 0)
		return rc;
	t = m->total + (size_t)i * m->stride;
	f = row_free(m, (uint32_t)i);
	slu_sum_out(m, (uint32_t)i);
	for (uint32_t k = 0; k < m->stride; k++)
		used[k] = slu_plus_mod(t[k], f[k], -1);
	total_set(m, (uint32_t)i, total, n_total);
	for (uint32_t k = 0; k < m->stride; k++)
		f[k] = slu_plus_mod(t[k], used[k], -1);
	slu_sum_in(m, (uint32_t)i);
	m->odd = true;
	m->size_gen++;
	slu_touch(m, (uint32_t)i);
	return 0;
}

static int set_fit(struct slu_machine *m, slu_node node, bool down, bool cordoned)
{
	uint32_t i = slu_node_index(node);
	struct node *v = &m->node[i];

	slu_sum_out(m, i);
	m->n_unfit -= !node_up(v);
	v->down = down;
	v->cordoned = cordoned;
	m->n_unfit += !node_up(v);
	slu_sum_in(m, i);
	m->odd = true; /* later bookings on the node leave the sum, or come back into it */
	slu_touch(m, i);
	return 0;
}

int slu_machine_node_set_down(struct slu_machine *m, slu_node node, bool down)
{
	int i = slu_node_slot(m, node);

	return i < 0 ? i : set_fit(m, node, down, m->node[i].cordoned);
}

int slu_machine_node_set_cordoned(struct slu_machine *m, slu_node node, bool cordoned)
{
	int i = slu_node_slot(m, node);

	return i < 0 ? i : set_fit(m, node, m->node[i].down, cordoned);
}

int slu_machine_node_set_rank(struct slu_machine *m, slu_node node, int64_t rank)
{
	int i = slu_node_slot(m, node);

	if (i < 0)
		return i;
	if (m->node[i].rank != rank)
		m->order_ok = false;
	m->node[i].rank = rank;
	m->version++;
	return 0;
}

int slu_machine_node_set_tag(struct slu_machine *m, slu_node node, uint64_t tag)
{
	int i = slu_node_slot(m, node);

	if (i < 0)
		return i;
	m->node[i].tag = tag;
	return 0;
}

int slu_machine_node_set_domain(struct slu_machine *m, slu_node node, uint32_t level,
				const char *domain)
{
	int i = slu_node_slot(m, node), d = -1;

	if (i < 0)
		return i;
	if (level >= m->level_name.n)
		return -EINVAL;
	if (domain) {
		d = slu_domain_get(&m->level[level], domain);
		if (d < 0)
			return d;
	}
	m->node[i].domain[level] = domain ? (uint32_t)d : NONE;
	m->order_ok = false;
	m->size_gen++;
	m->version++;
	return 0;
}

uint32_t slu_machine_node_slots(const struct slu_machine *m)
{
	return m->n_slot;
}

slu_node slu_machine_node_at(const struct slu_machine *m, uint32_t index)
{
	return index < m->n_slot && m->node[index].name ? handle_of(m, index) : SLU_NODE_NONE;
}

bool slu_machine_node_is(const struct slu_machine *m, slu_node node)
{
	return slu_node_slot(m, node) >= 0;
}

const char *slu_machine_node_name(const struct slu_machine *m, slu_node node)
{
	return m->node[slu_node_index(node)].name;
}

uint64_t slu_machine_node_tag(const struct slu_machine *m, slu_node node)
{
	return m->node[slu_node_index(node)].tag;
}

bool slu_machine_node_is_down(const struct slu_machine *m, slu_node node)
{
	return m->node[slu_node_index(node)].down;
}

bool slu_machine_node_is_cordoned(const struct slu_machine *m, slu_node node)
{
	return m->node[slu_node_index(node)].cordoned;
}

const char *slu_machine_node_domain(const struct slu_machine *m, slu_node node, uint32_t level)
{
	uint32_t d = m->node[slu_node_index(node)].domain[level];

	return d == NONE ? NULL : m->level[level].domain.p[d];
}

int64_t slu_machine_node_total(const struct slu_machine *m, slu_node node, uint32_t resource)
{
	return m->total[(size_t)slu_node_index(node) * m->stride + resource];
}

int64_t slu_machine_node_free(const struct slu_machine *m, slu_node node, uint32_t resource)
{
	return row_free(m, slu_node_index(node))[resource];
}

int64_t slu_machine_node_used(const struct slu_machine *m, slu_node node, uint32_t resource)
{
	const struct node *v = &m->node[slu_node_index(node)];
	int64_t used = 0;

	if (!v->blocks)
		return slu_plus_mod(slu_machine_node_total(m, node, resource),
				    slu_machine_node_free(m, node, resource), -1);
	for (uint32_t i = 0; i < v->share.n; i++) {
		const struct job *j = &m->job[v->share.p[i].job];
		const struct part *p = &j->part[v->share.p[i].part];
		const struct need *need = j->need[p->role];

		for (uint32_t k = 0; j->counted && j->state != SLU_GANG_BLOCK && k < need->n; k++)
			if (need->a[k].resource == resource)
				used = slu_plus_mod(used, need->a[k].n, p->slots);
	}
	return used;
}

int64_t slu_machine_node_free_during(const struct slu_machine *m, slu_node node, uint32_t resource,
				     int64_t at_s, int64_t end_s)
{
	int64_t row[SLU_RESOURCES_MAX];

	slu_window(m, slu_node_index(node), SLU_MAX(at_s, m->now), end_s, NULL, 0, row);
	return row[resource];
}

uint32_t slu_machine_node_shares(const struct slu_machine *m, slu_node node)
{
	return m->node[slu_node_index(node)].share.n;
}

void slu_machine_node_share(const struct slu_machine *m, slu_node node, uint32_t i,
			    struct slu_node_share *out)
{
	const struct share *s = &m->node[slu_node_index(node)].share.p[i];
	const struct job *j = &m->job[s->job];

	*out = (struct slu_node_share){ .job = j->id,
					.role = j->part[s->part].role,
					.slots = j->part[s->part].slots,
					.start_s = j->start,
					.end_s = j->end };
}

uint64_t slu_machine_version(const struct slu_machine *m)
{
	return m->version;
}
