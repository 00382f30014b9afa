#include "planner/planner.h"

void slu_planner_init(struct slu_planner *p, int64_t total)
{
	*p = (struct slu_planner){ .total = total, .last = -1 };
}

void slu_planner_done(struct slu_planner *p)
{
	slu_free(p->t); /* one block for all arrays */
	slu_free(p->seen);
	slu_free(p->passed);
	*p = (struct slu_planner){ 0 };
}

size_t slu_planner_memory(const struct slu_planner *p)
{
	return p->cap * (2 * sizeof(int64_t) + sizeof(uint32_t) + (p->seen ? 9 : 0));
}

/* Arrays for cap points, with the old contents. */
static int grow_points(struct slu_planner *p, uint32_t cap)
{
	int64_t *t, *left, *seen = NULL;
	uint8_t *passed = NULL;
	uint32_t *ref;

	if (cap > UINT32_MAX / 64)
		return -ENOMEM;
	t = slu_malloc(cap * (2 * sizeof *t + sizeof *ref));
	if (!t)
		return -ENOMEM;
	left = t + cap;
	ref = (uint32_t *)(left + cap);
	if (p->seen) {
		seen = slu_reallocarray(NULL, cap, sizeof *seen);
		passed = slu_malloc(cap);
		if (!seen || !passed) {
			slu_free(t);
			slu_free(seen);
			slu_free(passed);
			return -ENOMEM;
		}
		memcpy(seen, p->seen, p->n * sizeof *seen);
		memcpy(passed, p->passed, p->n);
		slu_free(p->seen);
		slu_free(p->passed);
		p->seen = seen;
		p->passed = passed;
	}
	if (p->n) {
		memcpy(t, p->t, p->n * sizeof *t);
		memcpy(left, p->left, p->n * sizeof *left);
		memcpy(ref, p->ref, p->n * sizeof *ref);
	} else {
		t[0] = 0;
		left[0] = p->total;
		ref[0] = 1; /* the first point is never removed */
		if (seen)
			seen[0] = p->total, passed[0] = 0;
		p->n = 1;
	}
	slu_free(p->t);
	p->t = t;
	p->left = left;
	p->ref = ref;
	p->cap = cap;
	return 0;
}

int slu_planner_copy(struct slu_planner *to, const struct slu_planner *from)
{
	slu_planner_init(to, from->total);
	to->want = from->want;
	to->duration = from->duration;
	to->last = from->last;
	if (!from->n)
		return 0;
	if (grow_points(to, from->n) < 0)
		return -ENOMEM;
	to->n = from->n;
	memcpy(to->t, from->t, from->n * sizeof *to->t);
	memcpy(to->left, from->left, from->n * sizeof *to->left);
	memcpy(to->ref, from->ref, from->n * sizeof *to->ref);
	if (from->seen) {
		to->seen = slu_reallocarray(NULL, to->cap, sizeof *to->seen);
		to->passed = slu_malloc(to->cap);
		if (!to->seen || !to->passed) {
			slu_planner_done(to);
			return -ENOMEM;
		}
		memcpy(to->seen, from->seen, from->n * sizeof *to->seen);
		memcpy(to->passed, from->passed, from->n);
	}
	return 0;
}

/* The last point not after `at`.  n > 0. */
static uint32_t point_at(const struct slu_planner *p, int64_t at)
{
	uint32_t lo = 0, n = p->n;

	while (n > 1) {
		uint32_t half = n / 2;

		if (p->t[lo + half] <= at)
			lo += half;
		n -= half;
	}
	return lo;
}

int64_t slu_planner_at(const struct slu_planner *p, int64_t at)
{
	return p->n ? p->left[point_at(p, at)] : p->total;
}

int64_t slu_planner_during(const struct slu_planner *p, int64_t at, int64_t duration)
{
	int64_t end, least;

	if (at < 0 || duration < 1 || __builtin_add_overflow(at, duration, &end))
		return -ERANGE;
	if (!p->n)
		return p->total;
	uint32_t i = point_at(p, at);

	least = p->left[i];
	for (i++; i < p->n && p->t[i] < end; i++)
		least = p->left[i] < least ? p->left[i] : least;
	return least;
}

int slu_planner_fits(const struct slu_planner *p, int64_t at, int64_t duration, int64_t n)
{
	int64_t end;
	uint32_t i;

	if (n > p->total || at < 0 || duration < 1 || __builtin_add_overflow(at, duration, &end))
		return -ERANGE;
	if (!p->n)
		return 0;
	i = point_at(p, at);
	if (p->left[i] < n)
		return -EBUSY;
	for (i++; i < p->n && p->t[i] < end; i++)
		if (p->left[i] < n)
			return -EBUSY;
	return 0;
}

/* Let the search for a time see the present numbers of the points that the last search passed
 * over. */
static void refresh_totals(struct slu_planner *p)
{
	bool same = true;

	if (!p->seen)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		if (p->passed[i])
			p->seen[i] = p->left[i];
		p->passed[i] = 0;
		same = same && p->seen[i] == p->left[i];
	}
	if (!same)
		return;
	slu_free(p->seen);
	slu_free(p->passed);
	p->seen = NULL;
	p->passed = NULL;
}

/* Index of a point at exactly `at`, made if absent; room is there. */
static uint32_t make_point(struct slu_planner *p, int64_t at)
{
	uint32_t i = point_at(p, at), tail;

	if (p->t[i] == at)
		return i;
	i++;
	tail = p->n - i;
	memmove(p->t + i + 1, p->t + i, tail * sizeof *p->t);
	memmove(p->left + i + 1, p->left + i, tail * sizeof *p->left);
	memmove(p->ref + i + 1, p->ref + i, tail * sizeof *p->ref);
	p->t[i] = at;
	p->left[i] = p->left[i - 1];
	p->ref[i] = 0;
	if (p->seen) {
		memmove(p->seen + i + 1, p->seen + i, tail * sizeof *p->seen);
		memmove(p->passed + i + 1, p->passed + i, tail);
		p->seen[i] = p->left[i];
		p->passed[i] = 0;
	}
	p->n++;
	return i;
}

static void drop_point(struct slu_planner *p, uint32_t i)
{
	uint32_t tail = p->n - i - 1;

	memmove(p->t + i, p->t + i + 1, tail * sizeof *p->t);
	memmove(p->left + i, p->left + i + 1, tail * sizeof *p->left);
	memmove(p->ref + i, p->ref + i + 1, tail * sizeof *p->ref);
	if (p->seen) {
		memmove(p->seen + i, p->seen + i + 1, tail * sizeof *p->seen);
		memmove(p->passed + i, p->passed + i + 1, tail);
	}
	p->n--;
}

int slu_planner_add(struct slu_planner *p, int64_t at, int64_t duration, int64_t n)
{
	uint32_t a, b;

	if (slu_planner_fits(p, at, duration, n) < 0)
		return -EINVAL;
	if (p->n + 2 > p->cap && grow_points(p, SLU_MAX(p->cap * 2, 4u)) < 0)
		return -ENOMEM;
	refresh_totals(p);
	a = make_point(p, at);
	b = make_point(p, at + duration);
	p->ref[a]++;
	p->ref[b]++;
	for (uint32_t i = a; i < b; i++)
		p->left[i] -= n;
	if (p->seen)
		memcpy(p->seen + a, p->left + a, (b - a) * sizeof *p->seen);
	return 0;
}

void slu_planner_reduce(struct slu_planner *p, int64_t at, int64_t duration, int64_t n)
{
	uint32_t a = point_at(p, at), b = point_at(p, at + duration);

	refresh_totals(p);
	for (uint32_t i = a; i < b; i++)
		p->left[i] += n;
	if (p->seen)
		memcpy(p->seen + a, p->left + a, (b - a) * sizeof *p->seen);
}

void slu_planner_remove(struct slu_planner *p, int64_t at, int64_t duration, int64_t n)
{
	uint32_t a, b;

	slu_planner_reduce(p, at, duration, n);
	a = point_at(p, at);
	b = point_at(p, at + duration);
	if (--p->ref[b] == 0)
		drop_point(p, b);
	if (--p->ref[a] == 0)
		drop_point(p, a);
}

int slu_planner_resize(struct slu_planner *p, int64_t total)
{
	int64_t by = total - p->total;

	if (!by)
		return 0;
	p->total = total;
	if (!p->n)
		return 0;
	if (!p->seen) {
		int64_t *seen = slu_reallocarray(NULL, p->cap, sizeof *seen);
		uint8_t *passed = slu_calloc(p->cap, 1);

		if (!seen || !passed) {
			slu_free(seen);
			slu_free(passed);
			p->total -= by;
			return -ENOMEM;
		}
		memcpy(seen, p->left, p->n * sizeof *seen);
		p->seen = seen;
		p->passed = passed;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		p->left[i] += by;
		if (p->left[i] < 0)
			p->left[i] = 0;
	}
	return 0;
}

/* Earliest answer among the points from index i on. */
static int64_t search_points(struct slu_planner *p, uint32_t i)
{
	const int64_t *believed = p->seen ? p->seen : p->left;

	while (i < p->n) {
		int64_t end;
		uint32_t j;

		if (believed[i] < p->want) {
			i++;
			continue;
		}
		if (p->seen)
			p->passed[i] = 1;
		if (__builtin_add_overflow(p->t[i], p->duration, &end))
			return p->last = -ENOENT;
		for (j = i; j < p->n && p->t[j] < end && p->left[j] >= p->want; j++)
			;
		if (j >= p->n || p->t[j] >= end) {
			p->last = p->t[i];
			return p->last;
		}
		/* Every start between here and point j fails for the lack of units at j. */
		i = j > i && !p->seen ? j : i + 1;
	}
	return p->last = -ENOENT;
}

int64_t slu_planner_first(struct slu_planner *p, int64_t from, int64_t duration, int64_t n)
{
	uint32_t i;

	refresh_totals(p);
	p->want = n;
	p->duration = duration;
	if (n > p->total || duration < 1)
		return p->last = -ERANGE;
	if (!p->n) {
		/* The point at 0 is the only one. */
		p->last = from <= 0 ? 0 : -ENOENT;
		return p->last;
	}
	i = from <= 0 ? 0 : point_at(p, from);
	if (p->t[i] < from)
		i++;
	if (p->seen)
		for (uint32_t k = 0; k < i; k++)
			p->passed[k] = p->seen[k] >= n;
	return search_points(p, i);
}

int64_t slu_planner_next(struct slu_planner *p)
{
	if (p->last < 0)
		return p->last;
	if (!p->n)
		return p->last = -ENOENT;
	return search_points(p, point_at(p, p->last) + 1);
}
