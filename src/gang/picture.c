/* picture.c — a machine as bytes and back, so that a log can begin in the middle.
 *
 * The picture has the nodes and the bookings with their numbers.  It has neither caches nor what follows
 * from the bookings (free amounts, orders, times).  The reader makes the same calls that booked them
 * first, so nothing in a file is taken on trust. */
#include "gang/gang_internal.h"

#include "base/bytes.h"

#define put_u slu_bytes_put_u
#define put_i slu_bytes_put_i
#define put_s slu_bytes_put_s
#define get_u slu_bytes_get_u
#define get_i slu_bytes_get_i
#define get_n slu_bytes_get_n

enum { NODE_DOWN = 1, NODE_CORDONED = 2 };
enum { NEED_BACKGROUND = 1, NEED_WHOLE = 2 };

/* ---- out ---- */

static void put_names(struct slu_buf *b, const struct names *t)
{
	put_u(b, t->n);
	for (uint32_t i = 0; i < t->n; i++)
		put_s(b, t->p[i]);
}

static void put_list(struct slu_buf *b, const uint32_t *p, uint32_t n)
{
	put_u(b, n);
	for (uint32_t i = 0; i < n; i++)
		put_u(b, p[i]);
}

static void put_node(struct slu_buf *b, const struct slu_machine *m, uint32_t i)
{
	const struct node *v = &m->node[i];

	put_s(b, v->name);
	put_u(b, v->gen);
	if (!v->name)
		return;
	put_i(b, v->rank);
	put_u(b, (v->down ? NODE_DOWN : 0) | (v->cordoned ? NODE_CORDONED : 0));
	for (uint32_t l = 0; l < m->level_name.n; l++)
		put_u(b, (uint32_t)(v->domain[l] + 1));
	for (uint32_t k = 1; k < m->resource.n; k++)
		put_i(b, m->total[(size_t)i * m->stride + k]);
}

static void put_job(struct slu_buf *b, const struct job *j)
{
	put_u(b, j->live);
	if (!j->live)
		return;
	put_u(b, j->id);
	put_u(b, j->state);
	put_i(b, j->start);
	put_i(b, j->end);
	put_u(b, j->n_use);
	for (uint32_t i = 0; i < j->n_use; i++)
		put_u(b, j->use[i]);
	put_u(b, j->n_role);
	for (uint32_t r = 0; r < j->n_role; r++) {
		const struct need *n = j->need[r];

		put_u(b, (n->per_slot ? 0 : NEED_BACKGROUND) | (n->per_part ? NEED_WHOLE : 0));
		put_u(b, n->n);
		for (uint32_t i = 0; i < n->n; i++) {
			put_u(b, n->a[i].resource);
			put_i(b, n->a[i].n);
		}
	}
	put_u(b, j->n_part);
	for (uint32_t i = 0; i < j->n_part; i++) {
		put_u(b, j->part[i].node);
		put_u(b, j->part[i].role);
		put_u(b, j->part[i].slots);
		put_u(b, j->part[i].pos);
	}
}

void slu_machine_picture(const struct slu_machine *m, struct slu_buf *b)
{
	put_names(b, &m->resource);
	put_names(b, &m->level_name);
	for (uint32_t l = 0; l < m->level_name.n; l++)
		put_names(b, &m->level[l].domain);
	put_u(b, m->n_slot);
	for (uint32_t i = 0; i < m->n_slot; i++)
		put_node(b, m, i);
	put_list(b, m->empty.p, m->empty.n);
	put_i(b, m->now);
	put_u(b, m->n_job);
	for (uint32_t i = 0; i < m->n_job; i++)
		put_job(b, &m->job[i]);
	put_list(b, m->job_empty.p, m->job_empty.n);
	put_i(b, m->block_end);
	put_u(b, m->odd);
}

/* ---- in ---- */

struct reading {
	struct slu_bytes_in in;
	struct slu_machine *m;
	struct slu_error err;  /* ignored, because a damaged picture is refused as a whole */
	SLU_VEC(uint32_t) pos; /* where the parts lie on their nodes, in the order of the jobs */
};

static int get_names(struct reading *r, int (*add)(void *, const char *), void *arg)
{
	uint32_t n = get_n(&r->in);

	for (uint32_t i = 0; i < n && !r->in.rc; i++) {
		slu_cleanup(slu_freep) char *name = slu_bytes_get_s(&r->in);
		int at = name ? add(arg, name) : r->in.rc ? r->in.rc : -EINVAL;

		if (at != (int)i)
			r->in.rc = at == -ENOMEM ? at : -EINVAL;
	}
	return r->in.rc;
}

static int add_resource(void *m, const char *name)
{
	return slu_machine_resource(m, name);
}

static int add_level(void *m, const char *name)
{
	return slu_machine_level(m, name);
}

static int add_domain(void *l, const char *name)
{
	return slu_domain_get(l, name);
}

/* The next node.  One that is gone is added, too, and goes when all are there. */
static int get_node(struct reading *r, uint32_t *gen)
{
	slu_cleanup(slu_freep) char *name = slu_bytes_get_s(&r->in);
	struct slu_machine *m = r->m;
	struct slu_amount total[SLU_RESOURCES_MAX];
	const char *domain[SLU_LEVELS_MAX] = { 0 };
	char gone[16];
	struct slu_node_spec s = {
		.name = name, .total = total, .domain = domain, .n_domain = m->level_name.n
	};

	*gen = slu_bytes_get_u32(&r->in);
	if (!name) {
		snprintf(gone, sizeof gone, "\1%u", m->n_slot);
		s.name = gone;
		return r->in.rc ? r->in.rc : slu_machine_node_add(m, &s, NULL, &r->err);
	}
	s.rank = get_i(&r->in);
	uint32_t flags = slu_bytes_get_u32(&r->in);

	s.down = flags & NODE_DOWN;
	s.cordoned = flags & NODE_CORDONED;
	for (uint32_t l = 0; l < s.n_domain; l++) {
		uint32_t d = slu_bytes_get_u32(&r->in);

		if (d > m->level[l].domain.n)
			return -EINVAL;
		domain[l] = d ? m->level[l].domain.p[d - 1] : NULL;
	}
	for (uint32_t k = 1; k < m->resource.n; k++)
		total[s.n_total++] = (struct slu_amount){ k, get_i(&r->in) };
	return r->in.rc ? r->in.rc : slu_machine_node_add(m, &s, NULL, &r->err);
}

static int get_nodes(struct reading *r)
{
	slu_cleanup(slu_freep) uint32_t *gen = NULL;
	uint32_t n = get_n(&r->in), gone;
	struct slu_machine *m = r->m;
	int rc = r->in.rc;

	gen = slu_reallocarray(NULL, (size_t)n + 1, sizeof *gen);
	if (!gen)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = get_node(r, &gen[i]);
	if (rc < 0)
		return rc;
	gone = get_n(&r->in);
	for (uint32_t i = 0; i < gone && !rc; i++) {
		uint32_t at = slu_bytes_get_u32(&r->in);

		if (at >= n || !m->node[at].name || *m->node[at].name != '\1')
			return -EINVAL;
		rc = slu_machine_node_remove(m, slu_machine_node_at(m, at));
	}
	for (uint32_t i = 0; i < n; i++) {
		if (m->node[i].name && *m->node[i].name == '\1')
			return -EINVAL;
		m->node[i].gen = gen[i];
	}
	return rc ? rc : r->in.rc;
}

static int get_needs(struct reading *r, struct need **need, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t flags = slu_bytes_get_u32(&r->in), k = get_n(&r->in);
		struct slu_amount a[SLU_RESOURCES_MAX];
		struct slu_gang_role role = { .need = a,
					      .n_need = k,
					      .min = 1,
					      .flags = flags & NEED_WHOLE ? SLU_ROLE_EXCLUSIVE
									  : 0 };
		int rc;

		if (r->in.rc || k >= SLU_RESOURCES_MAX)
			return r->in.rc ? r->in.rc : -EINVAL;
		for (uint32_t x = 0; x < k; x++) {
			a[x].resource = slu_bytes_get_u32(&r->in);
			a[x].n = get_i(&r->in);
		}
		rc = r->in.rc ? r->in.rc : slu_role_check(r->m, &role, i, &r->err);
		if (rc < 0)
			return rc;
		need[i] = slu_need_get(r->m, a, k, role.flags, flags & NEED_BACKGROUND);
		if (!need[i])
			return -ENOMEM;
	}
	return 0;
}

static int get_parts(struct reading *r, uint32_t n_role, struct part **out, uint32_t *n)
{
	uint64_t slots = 0;

	*n = get_n(&r->in);
	*out = slu_reallocarray(NULL, (size_t)*n + 1, sizeof **out);
	if (!*out || slu_vec_reserve(&r->pos, r->pos.n + *n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < *n; i++) {
		struct part *p = &(*out)[i];

		p->node = slu_bytes_get_u32(&r->in);
		p->role = slu_bytes_get_u32(&r->in);
		p->slots = slu_bytes_get_u32(&r->in);
		r->pos.p[r->pos.n++] = slu_bytes_get_u32(&r->in);
		slots += p->slots;
		if (r->in.rc || p->node >= r->m->n_slot || !r->m->node[p->node].name ||
		    p->role >= n_role || !p->slots || slots > SLU_SLOTS_MAX)
			return -EINVAL;
	}
	return r->in.rc;
}

/* Far enough from the ends of the scale for sums. */
static bool sane(int64_t t)
{
	return t > -(SLU_FOREVER / 4) && t < SLU_FOREVER / 4;
}

/* The next slot of the table. */
static int get_job(struct reading *r)
{
	slu_cleanup(slu_freep) struct part *part = NULL;
	struct slu_machine *m = r->m;
	struct need *need[SLU_ROLES_MAX];
	uint64_t id, use[SLU_BLOCKS_USED_MAX];
	uint32_t state, n_use, n_role, n_part = 0;
	int64_t start, end;
	struct job *j;
	int rc;

	if (!get_u(&r->in)) {
		if (slu_vec_reserve(&m->job_empty, m->n_job + 1) < 0 ||
		    (m->n_job == m->cap_job &&
		     slu_vec_grow((void **)&m->job, &m->cap_job, m->n_job + 1, sizeof *m->job) < 0))
			return -ENOMEM;
		m->job[m->n_job++] = (struct job){ 0 };
		return r->in.rc;
	}
	id = get_u(&r->in);
	state = slu_bytes_get_u32(&r->in);
	start = get_i(&r->in);
	end = get_i(&r->in);
	n_use = get_n(&r->in);
	if (r->in.rc || state > SLU_GANG_BLOCK || end <= start || n_use > SLU_BLOCKS_USED_MAX ||
	    (state != SLU_GANG_BLOCK && !sane(start)) || slu_job_find(m, id))
		return -EINVAL;
	for (uint32_t i = 0; i < n_use; i++)
		use[i] = get_u(&r->in);
	n_role = get_n(&r->in);
	if (r->in.rc || !n_role || n_role > SLU_ROLES_MAX)
		return -EINVAL;
	rc = get_needs(r, need, n_role);
	if (!rc)
		rc = get_parts(r, n_role, &part, &n_part);
	if (!rc)
		rc = slu_job_make(m, id, n_role, need, use, n_use, &j);
	if (!rc)
		rc = slu_job_book(m, j, (enum slu_gang_state)state, start, end, part, n_part);
	return rc;
}

/* Parts lie on their nodes in the order in which they came to lie there. */
static int place_shares(struct reading *r)
{
	struct slu_machine *m = r->m;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_slot; i++)
		for (uint32_t k = 0; k < m->node[i].share.n; k++)
			m->node[i].share.p[k].job = NONE;
	for (uint32_t i = 0; i < m->n_job; i++) {
		struct job *j = &m->job[i];

		for (uint32_t k = 0; j->live && k < j->n_part; k++) {
			struct node *v = &m->node[j->part[k].node];
			uint32_t at = r->pos.p[n++];

			if (at >= v->share.n || v->share.p[at].job != NONE)
				return -EINVAL;
			v->share.p[at] = (struct share){ .start = j->counted ? COUNTED : j->start,
							 .end = j->end,
							 .job = i,
							 .part = k };
			j->part[k].pos = at;
		}
	}
	return 0;
}

static int get_jobs(struct reading *r)
{
	uint32_t n = get_n(&r->in), gone;
	struct slu_machine *m = r->m;
	int rc = r->in.rc;

	for (uint32_t i = 0; i < n && !rc; i++)
		rc = get_job(r);
	if (!rc)
		rc = place_shares(r);
	if (rc < 0)
		return rc;
	gone = get_n(&r->in);
	for (uint32_t i = 0; i < gone; i++) {
		uint32_t at = slu_bytes_get_u32(&r->in);

		if (r->in.rc || at >= n || m->job[at].live || m->job[at].counted)
			return -EINVAL;
		m->job[at].counted = true; /* named */
		m->job_empty.p[m->job_empty.n++] = at;
	}
	for (uint32_t i = 0; i < gone; i++)
		m->job[m->job_empty.p[i]].counted = false;
	return r->in.rc ? r->in.rc : m->by_id.n + gone == n ? 0 : -EINVAL;
}

int slu_machine_restore(const void *p, size_t n, struct slu_machine **out)
{
	slu_cleanup(slu_machine_freep) struct slu_machine *m = slu_machine_new();
	struct reading r = { .in = { p, (const uint8_t *)p + n, 0 }, .m = m };
	int rc = m ? 0 : -ENOMEM;

	if (!rc)
		rc = get_names(&r, add_resource, m);
	if (!rc)
		rc = get_names(&r, add_level, m);
	for (uint32_t l = 0; !rc && l < m->level_name.n; l++)
		rc = get_names(&r, add_domain, &m->level[l]);
	if (!rc)
		rc = get_nodes(&r);
	if (!rc) {
		int64_t now = get_i(&r.in);

		slu_machine_advance(m, now);
		rc = now == INT64_MIN || sane(now) ? get_jobs(&r) : -EINVAL;
	}
	if (!rc) {
		m->block_end = get_i(&r.in);
		m->odd = get_u(&r.in);
		rc = r.in.rc ? r.in.rc : r.in.p == r.in.end ? 0 : -EINVAL;
	}
	slu_vec_done(&r.pos);
	if (!rc)
		*out = slu_take(m);
	return rc == 0 || rc == -ENOMEM ? rc : -EINVAL;
}
