/* book.c — jobs on nodes: put them there and take them away, with everything that is derived from
 * it kept true.  Memory is reserved first, then nothing can fail. */
#include "gang/gang_internal.h"

#define SCRATCH_EVENTS_MIN 64

/* First place not before (t, job). */
static uint32_t when_find(const struct when *w, uint32_t n, int64_t t, uint32_t job)
{
	struct when key = { t, job };
	uint32_t lo = 0;

	while (lo < n) {
		uint32_t mid = lo + (n - lo) / 2;

		if (when_cmp(&w[mid], &key) < 0)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

#define when_add(v, at, id)                                                            \
	do {                                                                           \
		uint32_t i_ = when_find((v)->p, (v)->n, (at), (id));                   \
		memmove((v)->p + i_ + 1, (v)->p + i_, ((v)->n - i_) * sizeof *(v)->p); \
		(v)->p[i_] = (struct when){ (at), (id) };                              \
		(v)->n++;                                                              \
	} while (0)
#define when_del(v, at, id)                                                                \
	do {                                                                               \
		uint32_t i_ = when_find((v)->p, (v)->n, (at), (id));                       \
		assert(i_ < (v)->n && (v)->p[i_].t == (at) && (v)->p[i_].job == (id));     \
		memmove((v)->p + i_, (v)->p + i_ + 1, ((v)->n - i_ - 1) * sizeof *(v)->p); \
		(v)->n--;                                                                  \
	} while (0)

void slu_touch(struct slu_machine *m, uint32_t node)
{
	struct node *v = &m->node[node];

	v->least_ok = false;
	m->journal[m->changes & ((1u << JOURNAL_BITS) - 1)] = node;
	v->changed = m->changes++;
	m->version++;
}

struct job *slu_job_find(const struct slu_machine *m, uint64_t id)
{
	const uint64_t *at = slu_map_get(&m->by_id, id);

	return at ? &m->job[*at] : NULL;
}

static void future_more(struct slu_machine *m, uint32_t node)
{
	if (!m->node[node].future++ && m->order_ok)
		bit_set(m->future_bits, m->node[node].pos);
}

static void future_less(struct slu_machine *m, uint32_t node)
{
	if (!--m->node[node].future && m->order_ok)
		bit_clear(m->future_bits, m->node[node].pos);
}

/* The row of a node without blocks changes by `slots` slots, negative ones taken. */
static void row_add(struct slu_machine *m, uint32_t node, const struct need *n, int64_t slots)
{
	int64_t *row = row_free(m, node);
	const int64_t *total = m->total + (size_t)node * m->stride;
	bool up = node_up(&m->node[node]);

	row[0] += n->per_part ? (slots < 0 ? -n->per_part : n->per_part) : n->per_slot * slots;
	for (uint32_t i = 0; i < n->n; i++) {
		uint32_t k = n->a[i].resource;
		int64_t old = row[k];

		row[k] = slu_plus_mod(row[k], n->a[i].n, slots);
		if (up)
			m->sum[k] = slu_plus_mod(
				m->sum[k], sum_usable(row[k], total[k]) - sum_usable(old, total[k]),
				1);
	}
}

/* On a node with nothing left, a later booking changes no answer about now.  Plans put large jobs
 * on busy nodes again and again, so spare the fit maps these changes. */
static bool changes_no_answer(const struct slu_machine *m, uint32_t node, const struct need *n)
{
	const int64_t *row = row_free(m, node);

	if (n->per_part && row[0] > 0)
		return false;
	for (uint32_t k = 1; k < m->resource.n; k++) {
		if (row[k] > 0)
			return false;
	}
	return true;
}

/* A part that begins later comes or goes. */
static void touch_later(struct slu_machine *m, uint32_t node, const struct need *n)
{
	if (changes_no_answer(m, node, n)) {
		m->node[node].least_ok = false;
		m->version++;
	} else {
		slu_touch(m, node);
	}
}

static struct share *share_of(struct slu_machine *m, const struct part *p)
{
	return &m->node[p->node].share.p[p->pos];
}

/* The job's times, or whether it counts, have changed. */
static void shares_follow(struct slu_machine *m, const struct job *j)
{
	for (uint32_t i = 0; i < j->n_part; i++) {
		struct share *s = share_of(m, &j->part[i]);

		s->start = j->counted ? COUNTED : j->start;
		s->end = j->end;
	}
}

/* A part begins or ceases to count: books, then journal. */
static void part_enter(struct slu_machine *m, const struct job *j, const struct part *p,
		       uint32_t slots)
{
	struct node *v = &m->node[p->node];

	if (!j->counted) {
		future_more(m, p->node);
		touch_later(m, p->node, j->need[p->role]);
		return;
	}
	if (v->blocks)
		slu_node_recount(m, p->node);
	else
		row_add(m, p->node, j->need[p->role], -(int64_t)slots);
	slu_touch(m, p->node);
}

static void part_leave(struct slu_machine *m, const struct job *j, const struct part *p,
		       uint32_t slots)
{
	struct node *v = &m->node[p->node];

	if (!j->counted) {
		future_less(m, p->node);
		touch_later(m, p->node, j->need[p->role]);
		return;
	}
	if (v->blocks)
		slu_node_recount(m, p->node);
	else
		row_add(m, p->node, j->need[p->role], slots);
	slu_touch(m, p->node);
}

int slu_job_make(struct slu_machine *m, uint64_t id, uint32_t n_role, struct need *const *need,
		 const uint64_t *use, uint32_t n_use, struct job **out)
{
	uint32_t slot;
	struct job *j;

	if (m->job_empty.n) {
		slot = m->job_empty.p[m->job_empty.n - 1];
	} else {
		if (m->n_job == m->cap_job &&
		    slu_vec_grow((void **)&m->job, &m->cap_job, m->n_job + 1, sizeof *m->job) < 0)
			return -ENOMEM;
		slot = m->n_job;
		/* Room to put every slot back later without asking for memory. */
		if (slu_vec_reserve(&m->job_empty, m->n_job + 1) < 0)
			return -ENOMEM;
		m->job[slot] = (struct job){ 0 };
	}
	j = &m->job[slot];
	if (j->cap_role < n_role &&
	    slu_vec_grow((void **)&j->need, &j->cap_role, n_role, sizeof *j->need) < 0)
		goto nomem;
	if (j->cap_use < n_use &&
	    slu_vec_grow((void **)&j->use, &j->cap_use, n_use, sizeof *j->use) < 0)
		goto nomem;
	if (slu_map_put(&m->by_id, id, slot) < 0)
		goto nomem;
	if (slot == m->n_job)
		m->n_job++;
	else
		m->job_empty.n--;
	j->id = id;
	j->n_part = j->slots = 0;
	j->n_role = n_role;
	memcpy(j->need, need, n_role * sizeof *need);
	if (n_use)
		memcpy(j->use, use, n_use * sizeof *use);
	j->n_use = n_use;
	j->live = true;
	*out = j;
	return 0;
nomem:
	if (slot == m->n_job) { /* the slot was never part of the machine */
		slu_free(j->need);
		slu_free(j->use);
		*j = (struct job){ 0 };
	}
	return -ENOMEM;
}

/* The job leaves the tables; its memory waits for the next one in its slot. */
static void job_forget(struct slu_machine *m, struct job *j)
{
	for (uint32_t r = 0; r < j->n_role; r++)
		slu_need_put(m, j->need[r]);
	slu_map_del(&m->by_id, j->id);
	m->job_empty.p[m->job_empty.n++] = (uint32_t)(j - m->job);
	if (j->cap_part > 1024) {
		slu_free(j->part);
		j->part = NULL;
		j->cap_part = 0;
	}
	j->live = false;
	j->n_part = 0;
	m->version++;
}

/* Room for parts in the job and on every node. */
static int parts_reserve(struct slu_machine *m, struct job *j, const struct part *part, uint32_t n)
{
	uint32_t most = SCRATCH_EVENTS_MIN, i;
	int rc = 0;

	if (j->cap_part < j->n_part + n &&
	    slu_vec_grow((void **)&j->part, &j->cap_part, j->n_part + n, sizeof *part) < 0)
		return -ENOMEM;
	for (i = 0; i < n && !rc; i++) {
		struct node *v = &m->node[part[i].node];
		uint32_t want = v->share.n + ++v->coming;

		rc = slu_vec_reserve(&v->share, want);
		most = SLU_MAX(most, want * 2);
	}
	while (i-- > 0)
		m->node[part[i].node].coming = 0;
	return rc ? rc : slu_vec_reserve(&m->s.ev, most);
}

static void parts_add(struct slu_machine *m, struct job *j, const struct part *part, uint32_t n)
{
	uint32_t id = (uint32_t)(j - m->job);

	for (uint32_t i = 0; i < n; i++) {
		struct node *v = &m->node[part[i].node];
		struct part *p = &j->part[j->n_part];

		*p = part[i];
		p->pos = v->share.n;
		v->share.p[v->share.n++] = (struct share){ .start = j->counted ? COUNTED : j->start,
							   .end = j->end,
							   .job = id,
							   .part = j->n_part++ };
		j->slots += p->slots;
		if (j->state == SLU_GANG_BLOCK)
			v->blocks++;
		part_enter(m, j, p, p->slots);
	}
	m->n_share += n;
}

int slu_job_book(struct slu_machine *m, struct job *j, enum slu_gang_state state, int64_t start,
		 int64_t end, const struct part *part, uint32_t n_part)
{
	uint32_t id = (uint32_t)(j - m->job);

	if (parts_reserve(m, j, part, n_part) < 0 || slu_vec_reserve(&m->ends, m->ends.n + 1) < 0 ||
	    slu_vec_reserve(&m->starts, m->starts.n + 1) < 0) {
		/* Hand the needs back to the caller, who holds their references from now on. */
		j->n_role = 0;
		job_forget(m, j);
		return -ENOMEM;
	}
	j->state = (uint8_t)state;
	j->start = start;
	j->end = end;
	j->counted = state == SLU_GANG_RUNNING || start <= m->now;
	if (end != SLU_FOREVER)
		when_add(&m->ends, end, id);
	if (!m->starts.n)
		m->odd = false;
	if (!j->counted)
		when_add(&m->starts, start, id);
	if (state == SLU_GANG_BLOCK) {
		m->n_block++;
		m->block_end = SLU_MIN(m->block_end, end);
	} else if (state == SLU_GANG_RUNNING) {
		m->n_running++;
	} else {
		m->n_reserved++;
	}
	parts_add(m, j, part, n_part);
	m->version++;
	return 0;
}

int slu_job_extend(struct slu_machine *m, struct job *j, const struct part *part, uint32_t n_part)
{
	if (parts_reserve(m, j, part, n_part) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_part; i++) {
		struct part *p = NULL;

		for (uint32_t k = 0; k < m->node[part[i].node].share.n; k++) {
			struct share *s = &m->node[part[i].node].share.p[k];

			if (&m->job[s->job] == j && j->part[s->part].role == part[i].role)
				p = &j->part[s->part];
		}
		if (p) {
			uint32_t old = p->slots;

			part_leave(m, j, p, old);
			p->slots += part[i].slots;
			j->slots += part[i].slots;
			part_enter(m, j, p, p->slots);
		} else {
			parts_add(m, j, &part[i], 1);
		}
	}
	return 0;
}

/* Unhook part i from its node. */
static void part_unhook(struct slu_machine *m, struct job *j, uint32_t i)
{
	struct part *p = &j->part[i];
	struct node *v = &m->node[p->node];
	struct share *last = &v->share.p[v->share.n - 1];

	if (p->pos != v->share.n - 1) {
		m->job[last->job].part[last->part].pos = p->pos;
		v->share.p[p->pos] = *last;
	}
	v->share.n--;
	m->n_share--;
	if (j->state == SLU_GANG_BLOCK) {
		/* Without its last block the row is a plain one again: recount it. */
		if (j->counted)
			slu_node_recount(m, p->node);
		v->blocks--;
		if (j->counted)
			slu_touch(m, p->node);
		else
			part_leave(m, j, p, p->slots);
	} else {
		part_leave(m, j, p, p->slots);
	}
}

void slu_job_drop(struct slu_machine *m, struct job *j)
{
	uint32_t id = (uint32_t)(j - m->job);

	if (j->end != SLU_FOREVER)
		when_del(&m->ends, j->end, id);
	if (!j->counted)
		when_del(&m->starts, j->start, id);
	for (uint32_t i = j->n_part; i-- > 0;)
		part_unhook(m, j, i);
	if (j->state == SLU_GANG_BLOCK)
		m->n_block--;
	else if (j->state == SLU_GANG_RUNNING)
		m->n_running--;
	else
		m->n_reserved--;
	job_forget(m, j);
}

void slu_job_reduce(struct slu_machine *m, struct job *j, uint32_t i, uint32_t slots)
{
	struct part *p = &j->part[i];

	j->slots -= slots;
	if (slots < p->slots) {
		part_leave(m, j, p, p->slots);
		p->slots -= slots;
		part_enter(m, j, p, p->slots);
		return;
	}
	part_unhook(m, j, i);
	j->n_part--;
	/* Keep the order of placement: shrink gives back the last placed first. */
	for (; i < j->n_part; i++) {
		j->part[i] = j->part[i + 1];
		m->node[j->part[i].node].share.p[j->part[i].pos].part = i;
	}
}

void slu_machine_advance(struct slu_machine *m, int64_t now_s)
{
	if (now_s <= m->now)
		return;
	m->now = now_s;
	while (m->starts.n && m->starts.p[0].t <= now_s) {
		uint32_t id = m->starts.p[0].job;
		struct job *j = &m->job[id];

		memmove(m->starts.p, m->starts.p + 1, (m->starts.n - 1) * sizeof *m->starts.p);
		m->starts.n--;
		j->counted = true;
		shares_follow(m, j);
		for (uint32_t i = 0; i < j->n_part; i++) {
			future_less(m, j->part[i].node);
			part_enter(m, j, &j->part[i], j->part[i].slots);
		}
	}
	if (m->block_end > now_s)
		return;
	m->block_end = SLU_FOREVER;
	for (uint32_t i = m->n_job; i-- > 0;) {
		struct job *j = &m->job[i];

		if (!j->live || j->state != SLU_GANG_BLOCK)
			continue;
		if (j->end <= now_s)
			slu_job_drop(m, j);
		else
			m->block_end = SLU_MIN(m->block_end, j->end);
	}
}

int slu_gang_cancel(struct slu_machine *m, uint64_t job)
{
	struct job *j = slu_job_find(m, job);

	if (!j)
		return -ENOENT;
	slu_job_drop(m, j);
	return 0;
}

int slu_gang_start(struct slu_machine *m, int64_t now_s, uint64_t job)
{
	struct job *j = slu_job_find(m, job);
	uint32_t id;

	if (!j)
		return -ENOENT;
	if (j->state != SLU_GANG_RESERVED)
		return -EINVAL;
	slu_machine_advance(m, now_s);
	m->odd = true;
	id = (uint32_t)(j - m->job);
	if (j->end != SLU_FOREVER) {
		int64_t end = later(m->now, j->end - j->start);

		when_del(&m->ends, j->end, id);
		j->end = end;
		when_add(&m->ends, end, id);
	}
	if (!j->counted) {
		when_del(&m->starts, j->start, id);
		for (uint32_t i = 0; i < j->n_part; i++)
			future_less(m, j->part[i].node);
		j->counted = true;
		shares_follow(m, j);
		for (uint32_t i = 0; i < j->n_part; i++)
			part_enter(m, j, &j->part[i], j->part[i].slots);
	}
	j->start = m->now;
	shares_follow(m, j);
	j->state = SLU_GANG_RUNNING;
	m->n_reserved--;
	m->n_running++;
	m->version++;
	return 0;
}

int slu_gang_set_end(struct slu_machine *m, uint64_t job, int64_t end_s)
{
	struct job *j = slu_job_find(m, job);
	uint32_t id;

	if (!j)
		return -ENOENT;
	if (end_s <= j->start)
		return -EINVAL;
	m->odd = true;
	id = (uint32_t)(j - m->job);
	if (end_s != SLU_FOREVER && slu_vec_reserve(&m->ends, m->ends.n + 1) < 0)
		return -ENOMEM;
	if (j->end != SLU_FOREVER)
		when_del(&m->ends, j->end, id);
	j->end = end_s;
	if (end_s != SLU_FOREVER)
		when_add(&m->ends, end_s, id);
	if (j->state == SLU_GANG_BLOCK)
		m->block_end = SLU_MIN(m->block_end, end_s);
	shares_follow(m, j);
	for (uint32_t i = 0; i < j->n_part; i++)
		slu_touch(m, j->part[i].node);
	m->version++;
	return 0;
}
