#include "planner/multi.h"

#define FEW 16 /* up to this many spans are found by a linear search */

struct slu_multi *slu_multi_new(const uint16_t *type, const int64_t *total, uint32_t n)
{
	struct slu_multi *m = slu_calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->type = slu_reallocarray(NULL, n + 1, sizeof *m->type);
	m->p = slu_calloc(n + 1, sizeof *m->p);
	if (!m->type || !m->p) {
		slu_multi_free(m);
		return NULL;
	}
	m->n = n;
	if (n)
		memcpy(m->type, type, n * sizeof *type);
	for (uint32_t i = 0; i < n; i++)
		slu_planner_init(&m->p[i], total[i]);
	return m;
}

void slu_multi_free(struct slu_multi *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		slu_planner_done(&m->p[i]);
	slu_free(m->p);
	slu_free(m->type);
	slu_free(m->job);
	slu_free(m->amount);
	slu_map_done(&m->where);
	slu_free(m);
}

struct slu_multi *slu_multi_copy(const struct slu_multi *m)
{
	struct slu_multi *c = slu_calloc(1, sizeof *c);
	uint32_t i;

	if (!c)
		return NULL;
	c->type = slu_reallocarray(NULL, m->n + 1, sizeof *c->type);
	c->p = slu_calloc(m->n + 1, sizeof *c->p);
	c->job = slu_reallocarray(NULL, m->spans + 1, sizeof *c->job);
	c->amount = slu_reallocarray(NULL, (size_t)(m->spans + 1) * (m->n + 1), sizeof *c->amount);
	if (!c->type || !c->p || !c->job || !c->amount)
		goto fail;
	if (m->n)
		memcpy(c->type, m->type, m->n * sizeof *c->type);
	for (i = 0; i < m->n; i++) {
		if (slu_planner_copy(&c->p[i], &m->p[i]) < 0)
			goto fail;
		c->n = i + 1;
	}
	c->n = m->n;
	c->spans = c->cap = m->spans;
	if (m->spans) {
		memcpy(c->job, m->job, m->spans * sizeof *c->job);
		memcpy(c->amount, m->amount, (size_t)m->spans * m->n * sizeof *c->amount);
	}
	for (i = 0; i < m->where.n; i++)
		if (slu_map_put(&c->where, m->where.e[i].key, m->where.e[i].val) < 0)
			goto fail;
	return c;
fail:
	slu_multi_free(c);
	return NULL;
}

size_t slu_multi_memory(const struct slu_multi *m)
{
	size_t bytes = sizeof *m + m->n * (sizeof *m->p + sizeof *m->type) +
		       m->cap * (sizeof *m->job + m->n * sizeof *m->amount) +
		       m->where.cap * (sizeof *m->where.e + 2 * sizeof *m->where.slot);

	for (uint32_t i = 0; i < m->n; i++)
		bytes += slu_planner_memory(&m->p[i]);
	return bytes;
}

uint32_t slu_multi_index(const struct slu_multi *m, uint16_t type)
{
	uint32_t i = 0;

	while (i < m->n && m->type[i] != type)
		i++;
	return i;
}

int slu_multi_fits(const struct slu_multi *m, int64_t at, int64_t duration, const int64_t *want)
{
	for (uint32_t i = 0; i < m->n; i++) {
		int rc = slu_planner_fits(&m->p[i], at, duration, want[i]);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static uint32_t span_of(const struct slu_multi *m, uint32_t job)
{
	if (m->spans > FEW) {
		uint64_t *at = slu_map_get(&m->where, job);

		return at ? (uint32_t)*at : UINT32_MAX;
	}
	for (uint32_t i = m->spans; i-- > 0;)
		if (m->job[i] == job)
			return i;
	return UINT32_MAX;
}

static int span_room(struct slu_multi *m)
{
	uint32_t cap = m->cap ? m->cap * 2 : 1;
	uint32_t *job;
	int64_t *amount;

	if (m->spans < m->cap)
		return 0;
	job = slu_reallocarray(m->job, cap, sizeof *job);
	if (!job)
		return -ENOMEM;
	m->job = job;
	amount = slu_reallocarray(m->amount, (size_t)cap * m->n, sizeof *amount);
	if (!amount)
		return -ENOMEM;
	m->amount = amount;
	m->cap = cap;
	return 0;
}

static int index_spans(struct slu_multi *m)
{
	if (m->where.n == 0)
		for (uint32_t i = 0; i < m->spans; i++)
			if (slu_map_put(&m->where, m->job[i], i) < 0) {
				slu_map_clear(&m->where);
				return -ENOMEM;
			}
	return 0;
}

int slu_multi_add(struct slu_multi *m, uint32_t job, int64_t at, int64_t duration,
		  const int64_t *want)
{
	uint32_t k = m->spans;

	if (span_room(m) < 0)
		return -ENOMEM;
	if (k >= FEW && (index_spans(m) < 0 || slu_map_put(&m->where, job, k) < 0))
		return -ENOMEM;
	for (uint32_t i = 0; i < m->n; i++) {
		int rc = slu_planner_add(&m->p[i], at, duration, want[i]);

		if (rc < 0) {
			if (k >= FEW)
				slu_map_del(&m->where, job);
			/* The reference leaves the amounts in the planners before it booked, and
			 * so do we; lack of memory, which the reference does not handle, undoes
			 * them. */
			while (rc == -ENOMEM && i-- > 0)
				slu_planner_remove(&m->p[i], at, duration, want[i]);
			return rc;
		}
	}
	m->job[k] = job;
	if (m->n)
		memcpy(m->amount + (size_t)k * m->n, want, m->n * sizeof *want);
	m->spans++;
	return 0;
}

const int64_t *slu_multi_span(const struct slu_multi *m, uint32_t job)
{
	uint32_t k = span_of(m, job);

	return k == UINT32_MAX ? NULL : m->amount + (size_t)k * m->n;
}

static void drop_span(struct slu_multi *m, uint32_t k)
{
	uint32_t last = --m->spans;

	if (m->where.n) {
		slu_map_del(&m->where, m->job[k]);
		if (k != last) {
			uint64_t *at = slu_map_get(&m->where, m->job[last]);

			*at = k;
		}
		if (m->spans <= FEW)
			slu_map_clear(&m->where);
	}
	if (k != last) {
		m->job[k] = m->job[last];
		memcpy(m->amount + (size_t)k * m->n, m->amount + (size_t)last * m->n,
		       m->n * sizeof *m->amount);
	}
}

bool slu_multi_remove(struct slu_multi *m, uint32_t job, int64_t at, int64_t duration)
{
	uint32_t k = span_of(m, job);

	if (k == UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->amount[(size_t)k * m->n + i] >= 0)
			slu_planner_remove(&m->p[i], at, duration, m->amount[(size_t)k * m->n + i]);
	drop_span(m, k);
	return true;
}

int slu_multi_reduce(struct slu_multi *m, uint32_t job, int64_t at, int64_t duration,
		     const int64_t *less)
{
	uint32_t k = span_of(m, job);
	int64_t *has;
	bool left = false;

	if (k == UINT32_MAX)
		return -ENOENT;
	has = m->amount + (size_t)k * m->n;
	for (uint32_t i = 0; i < m->n; i++) {
		if (has[i] < 0)
			continue;
		if (less[i] > has[i])
			return -EINVAL;
		if (less[i] == has[i]) {
			slu_planner_remove(&m->p[i], at, duration, has[i]);
			has[i] = -1;
			continue;
		}
		if (less[i])
			slu_planner_reduce(&m->p[i], at, duration, less[i]);
		has[i] -= less[i];
		left = true;
	}
	if (left)
		return 0;
	drop_span(m, k);
	return 1;
}

int slu_multi_reshape(struct slu_multi *m, const uint16_t *type, const int64_t *total, uint32_t n)
{
	struct slu_multi *fresh;
	bool same = n == m->n;

	for (uint32_t i = 0; same && i < n; i++)
		same = type[i] == m->type[i];
	if (same) {
		for (uint32_t i = 0; i < n; i++)
			if (slu_planner_resize(&m->p[i], total[i]) < 0)
				return -ENOMEM;
		return 0;
	}
	fresh = slu_multi_new(type, total, n);
	if (!fresh)
		return -ENOMEM;
	fresh->cap = m->spans;
	fresh->amount = slu_reallocarray(NULL, (size_t)m->spans * n + 1, sizeof *fresh->amount);
	if (!fresh->amount) {
		slu_multi_free(fresh);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = slu_multi_index(m, type[i]);

		for (uint32_t k = 0; k < m->spans; k++)
			fresh->amount[(size_t)k * n + i] =
				old < m->n ? m->amount[(size_t)k * m->n + old] : -1;
		if (old == m->n)
			continue;
		slu_planner_done(&fresh->p[i]);
		fresh->p[i] = m->p[old];
		slu_planner_init(&m->p[old], 0);
		if (slu_planner_resize(&fresh->p[i], total[i]) < 0) {
			/* Without memory the points keep their numbers; the caller relies on the
			 * types alone. */
			fresh->p[i].total = total[i];
		}
	}
	fresh->job = slu_take(m->job);
	fresh->spans = m->spans;
	fresh->where = m->where;
	m->where = (struct slu_map){ 0 };
	/* The caller holds `m`: swap the contents. */
	struct slu_multi tmp = *m;

	*m = *fresh;
	*fresh = tmp;
	fresh->spans = 0;
	slu_multi_free(fresh);
	return 0;
}

static bool others_fit(const struct slu_multi *m, int64_t at, const int64_t *want)
{
	for (uint32_t i = 1; i < m->n; i++)
		if (slu_planner_fits(&m->p[i], at, m->p[0].duration, want[i]) < 0)
			return false;
	return true;
}

static int64_t settle_time(struct slu_multi *m, int64_t at, const int64_t *want)
{
	while (at >= 0 && !others_fit(m, at, want))
		at = slu_planner_next(&m->p[0]);
	return at;
}

int64_t slu_multi_first(struct slu_multi *m, int64_t from, int64_t duration, const int64_t *want)
{
	if (!m->n)
		return -ENOENT;
	for (uint32_t i = 0; i < m->n; i++)
		if (want[i] > m->p[i].total)
			return -ERANGE;
	return settle_time(m, slu_planner_first(&m->p[0], from, duration, want[0]), want);
}

int64_t slu_multi_next(struct slu_multi *m, const int64_t *want)
{
	return m->n ? settle_time(m, slu_planner_next(&m->p[0]), want) : -ENOENT;
}
