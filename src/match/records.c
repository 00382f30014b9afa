#include "match/records.h"

#include "base/map.h"
#include "base/vec.h"

#define FEW         16
#define TOUCH_TOTAL 0x40000000 /* jobs at one vertex at a time, as in the reference */

struct led_heavy {
	struct slu_planner taken; /* total = UINT32_MAX; the units that are not free are taken */
	struct slu_planner touch;
	SLU_VEC(struct led_rec) r;
	struct slu_map where; /* job -> position in r */
	uint32_t held, planned;
	int64_t last_start; /* not before any start */
};

static void heavy_free(struct led_heavy *h)
{
	slu_planner_done(&h->taken);
	slu_planner_done(&h->touch);
	slu_vec_done(&h->r);
	slu_map_done(&h->where);
	slu_free(h);
}

void match_rec_done(struct led_vertex *x)
{
	if (x->heavy)
		heavy_free(x->h);
	else if (x->cap)
		slu_free(x->p);
	*x = (struct led_vertex){ 0 };
}

static struct led_heavy *heavy_copy(const struct led_heavy *h)
{
	struct led_heavy *c = slu_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->held = h->held;
	c->planned = h->planned;
	c->last_start = h->last_start;
	if (slu_planner_copy(&c->taken, &h->taken) < 0 ||
	    slu_planner_copy(&c->touch, &h->touch) < 0 || slu_vec_reserve(&c->r, h->r.n) < 0)
		goto fail;
	if (h->r.n)
		memcpy(c->r.p, h->r.p, h->r.n * sizeof *h->r.p);
	c->r.n = h->r.n;
	for (uint32_t i = 0; i < h->r.n; i++)
		if (slu_map_put(&c->where, led_job(h->r.p[i]), i) < 0)
			goto fail;
	return c;
fail:
	heavy_free(c);
	return NULL;
}

int match_rec_copy(struct led_vertex *to, const struct led_vertex *from)
{
	if (from->heavy) {
		struct led_heavy *h = heavy_copy(from->h);

		if (!h)
			return -ENOMEM;
		to->h = h;
		to->heavy = 1;
	} else if (from->cap) {
		to->p = slu_reallocarray(NULL, from->n + 1, sizeof *to->p);
		if (!to->p)
			return -ENOMEM;
		memcpy(to->p, from->p, from->n * sizeof *to->p);
		to->cap = from->n + 1;
		to->overlap = from->overlap;
	} else {
		to->one = from->one;
	}
	to->n = from->n;
	to->last_end = from->last_end;
	return 0;
}

size_t match_rec_memory(const struct led_vertex *x)
{
	if (!x->heavy)
		return x->cap * sizeof *x->p;
	return sizeof *x->h + slu_planner_memory(&x->h->taken) + slu_planner_memory(&x->h->touch) +
	       x->h->r.cap * sizeof *x->h->r.p + x->h->where.cap * (sizeof *x->h->where.e + 8);
}

/* --- reading --- */

const struct led_rec *match_rec_list(const struct led_vertex *x, uint32_t *n)
{
	*n = x->n;
	return x->heavy ? x->h->r.p : x->cap ? x->p : &x->one;
}

/* First record of a sorted array that does not start before `at`. */
static uint32_t first_from(const struct led_job *t, const struct led_rec *r, uint32_t n, int64_t at)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t[led_job(r[mid])].start < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The part of a sorted array that may overlap the window. */
static void window(const struct led_job *t, const struct led_vertex *x, const struct led_rec *r,
		   int64_t at, int64_t end, uint32_t *a, uint32_t *b)
{
	uint32_t n = x->n;

	*a = 0;
	*b = n;
	if (x->overlap)
		return;
	if (n > FEW) {
		*a = first_from(t, r, n, at);
		if (*a && t[led_job(r[*a - 1])].end > at)
			--*a;
	}
	for (*b = *a; *b < n && t[led_job(r[*b])].start < end;)
		++*b;
}

int64_t match_rec_avail(const struct led_job *t, const struct led_vertex *x, uint32_t size,
			int64_t at, int64_t end)
{
	const struct led_rec *r;
	uint32_t a, b, hits = 0;
	int64_t most = 0;

	if (!x->n || (!x->heavy && x->last_end <= at))
		return size;
	if (x->heavy)
		return (int64_t)size -
		       (UINT32_MAX - slu_planner_during(&x->h->taken, at, end - at));
	r = x->cap ? x->p : &x->one;
	window(t, x, r, at, end, &a, &b);
	for (uint32_t i = a; i < b; i++) {
		const struct led_job *j = &t[led_job(r[i])];

		if (!(r[i].job & LED_UNITS) || j->start >= end || j->end <= at)
			continue;
		hits++;
		most = SLU_MAX(most, (int64_t)r[i].units);
	}
	if (hits < 2 || !x->overlap)
		return size - most;
	/* The largest number of units taken at any moment at which a booking begins. */
	for (uint32_t i = a; i < b; i++) {
		const struct led_job *j = &t[led_job(r[i])];
		int64_t when = SLU_MAX(j->start, at), sum = 0;

		if (!(r[i].job & LED_UNITS) || j->start >= end || j->end <= at)
			continue;
		for (uint32_t k = a; k < b; k++) {
			const struct led_job *o = &t[led_job(r[k])];

			if ((r[k].job & LED_UNITS) && o->start <= when && when < o->end)
				sum += r[k].units;
		}
		most = SLU_MAX(most, sum);
	}
	return size - most;
}

bool match_rec_untouched(const struct led_job *t, const struct led_vertex *x, int64_t at,
			 int64_t end)
{
	const struct led_rec *r;
	uint32_t a, b;

	if (!x->n || (!x->heavy && x->last_end <= at))
		return true;
	if (x->heavy)
		return slu_planner_during(&x->h->touch, at, end - at) == TOUCH_TOTAL;
	r = x->cap ? x->p : &x->one;
	window(t, x, r, at, end, &a, &b);
	for (uint32_t i = a; i < b; i++) {
		const struct led_job *j = &t[led_job(r[i])];

		if ((r[i].job & LED_SHARED) && j->start < end && j->end > at)
			return false;
	}
	return true;
}

bool match_rec_starts_after(const struct led_job *t, const struct led_vertex *x, int64_t at)
{

	if (!x->n)
		return false;
	if (x->heavy)
		return x->h->last_start > at;
	/* Sorted by start. */
	return t[led_job(x->cap ? x->p[x->n - 1] : x->one)].start > at;
}

bool match_rec_any(const struct led_vertex *x, uint32_t flag)
{
	const struct led_rec *r;

	if (!x->n)
		return false;
	if (x->heavy)
		return flag == LED_HELD ? x->h->held > 0 : x->h->planned > 0;
	r = x->cap ? x->p : &x->one;
	for (uint32_t i = 0; i < x->n; i++)
		if (r[i].job & flag)
			return true;
	return false;
}

/* Position of the job's record in a vertex that is not heavy, or n. */
static uint32_t find_record(const struct led_job *t, const struct led_vertex *x, uint32_t job)
{
	const struct led_rec *r = x->cap ? x->p : &x->one;

	if (x->last_end <= t[job].start)
		return x->n;
	if (x->n > FEW && !x->overlap) {
		uint32_t i = first_from(t, r, x->n, t[job].start);

		return i < x->n && led_job(r[i]) == job ? i : x->n;
	}
	for (uint32_t i = 0; i < x->n; i++)
		if (led_job(r[i]) == job)
			return i;
	return x->n;
}

struct led_rec match_rec_get(const struct led_job *t, const struct led_vertex *x, uint32_t job)
{
	uint32_t i;

	if (x->heavy) {
		uint64_t *at = slu_map_get(&x->h->where, job);

		return at ? x->h->r.p[*at] : (struct led_rec){ 0 };
	}
	i = find_record(t, x, job);
	return i == x->n ? (struct led_rec){ 0 } : x->cap ? x->p[i] : x->one;
}

/* --- writing --- */

static int heavy_note(struct led_heavy *h, const struct led_job *j, uint32_t flags, uint32_t units)
{
	h->last_start = SLU_MAX(h->last_start, j->start);
	if (flags & LED_UNITS) {
		if (slu_planner_add(&h->taken, j->start, j->end - j->start, units) < 0)
			return -ENOMEM;
		h->held += !!(flags & LED_HELD);
		h->planned += !!(flags & LED_PLANNED);
	}
	if (flags & LED_SHARED && slu_planner_add(&h->touch, j->start, j->end - j->start, 1) < 0) {
		if (flags & LED_UNITS) {
			slu_planner_remove(&h->taken, j->start, j->end - j->start, units);
			h->held -= !!(flags & LED_HELD);
			h->planned -= !!(flags & LED_PLANNED);
		}
		return -ENOMEM;
	}
	return 0;
}

static int make_heavy(const struct led_job *t, struct led_vertex *x)
{
	struct led_heavy *h = slu_calloc(1, sizeof *h);
	const struct led_rec *r = x->cap ? x->p : &x->one;

	if (!h)
		return -ENOMEM;
	slu_planner_init(&h->taken, UINT32_MAX);
	slu_planner_init(&h->touch, TOUCH_TOTAL);
	for (uint32_t i = 0; i < x->n; i++) {
		if (slu_vec_push(&h->r, r[i]) < 0 || slu_map_put(&h->where, led_job(r[i]), i) < 0 ||
		    heavy_note(h, &t[led_job(r[i])], r[i].job, r[i].units) < 0) {
			heavy_free(h);
			return -ENOMEM;
		}
	}
	if (x->cap)
		slu_free(x->p);
	x->h = h;
	x->cap = 0;
	x->heavy = 1;
	return 0;
}

static int light_insert(const struct led_job *t, struct led_vertex *x, uint32_t job, uint32_t units)
{
	const struct led_job *j = &t[led_job((struct led_rec){ job, 0 })];
	struct led_rec *r;
	uint32_t i;

	if (!x->n && !x->cap) {
		x->one = (struct led_rec){ job, units };
		x->n = 1;
		x->last_end = j->end;
		return 0;
	}
	if (x->n >= (x->cap ? x->cap : 1)) {
		uint32_t cap = x->cap ? x->cap + x->cap / 2 + 1 : 3;

		r = slu_reallocarray(x->cap ? x->p : NULL, cap, sizeof *r);
		if (!r)
			return -ENOMEM;
		if (!x->cap)
			r[0] = x->one;
		x->p = r;
		x->cap = cap;
	}
	r = x->p;
	i = x->n;
	if (x->last_end <= j->start) {
		r[i] = (struct led_rec){ job, units };
		x->n++;
		x->last_end = j->end;
		return 0;
	}
	while (i && t[led_job(r[i - 1])].start > j->start)
		i--;
	if ((i && t[led_job(r[i - 1])].end > j->start) ||
	    (i < x->n && t[led_job(r[i])].start < j->end))
		x->overlap = 1;
	memmove(r + i + 1, r + i, (x->n - i) * sizeof *r);
	r[i] = (struct led_rec){ job, units };
	x->n++;
	x->last_end = SLU_MAX(x->last_end, j->end);
	return 0;
}

int match_rec_put(const struct led_job *t, struct led_vertex *x, uint32_t size, uint32_t job,
		  uint32_t flags, uint32_t units)
{
	const struct led_job *j = &t[job];
	uint32_t i;

	if (!x->heavy && (!x->n || x->last_end <= j->start)) {
		/* The new record starts after all others, so there is nothing to compare. */
		if ((flags & LED_UNITS) && units > size)
			return -EINVAL;
		if (light_insert(t, x, job | flags, flags & LED_UNITS ? units : 0) < 0)
			return -ENOMEM;
		return 1;
	}
	if ((flags & LED_UNITS) && match_rec_avail(t, x, size, j->start, j->end) < (int64_t)units)
		return -EINVAL;
	if (!x->heavy && x->n >= FEW && x->overlap && make_heavy(t, x) < 0)
		return -ENOMEM;
	if (x->heavy) {
		uint64_t *at = slu_map_get(&x->h->where, job);
		struct led_rec *r;

		if (!at) {
			if (slu_vec_reserve(&x->h->r, x->h->r.n + 1) < 0 ||
			    slu_map_put(&x->h->where, job, x->h->r.n) < 0)
				return -ENOMEM;
			if (heavy_note(x->h, j, flags, units) < 0) {
				slu_map_del(&x->h->where, job);
				return -ENOMEM;
			}
			x->h->r.p[x->h->r.n++] = (struct led_rec){ job | flags, units };
			x->n++;
			return 1;
		}
		r = &x->h->r.p[*at];
		flags &= ~r->job;
		if (heavy_note(x->h, j, flags, units) < 0)
			return -ENOMEM;
		r->job |= flags;
		if (flags & LED_UNITS)
			r->units = units;
		return 0;
	}
	i = find_record(t, x, job);
	if (i < x->n) {
		struct led_rec *r = x->cap ? &x->p[i] : &x->one;

		r->job |= flags;
		if (flags & LED_UNITS)
			r->units = units;
		return 0;
	}
	if (light_insert(t, x, job | flags, flags & LED_UNITS ? units : 0) < 0)
		return -ENOMEM;
	return 1;
}

static bool heavy_clear(const struct led_job *t, struct led_vertex *x, uint32_t job, uint32_t flags)
{
	struct led_heavy *h = x->h;
	uint64_t *at = slu_map_get(&h->where, job);
	const struct led_job *j = &t[job];
	struct led_rec *r;
	uint32_t k, last;

	if (!at)
		return false;
	k = (uint32_t)*at;
	r = &h->r.p[k];
	flags &= r->job;
	if (flags & LED_UNITS) {
		slu_planner_remove(&h->taken, j->start, j->end - j->start, r->units);
		h->held -= !!(flags & LED_HELD);
		h->planned -= !!(flags & LED_PLANNED);
	}
	if (flags & LED_SHARED)
		slu_planner_remove(&h->touch, j->start, j->end - j->start, 1);
	r->job &= ~flags;
	if (r->job >> SLU_JOB_BITS)
		return false;
	last = h->r.n - 1;
	slu_map_del(&h->where, job);
	if (k != last) {
		*slu_map_get(&h->where, led_job(h->r.p[last])) = k;
		h->r.p[k] = h->r.p[last];
	}
	h->r.n--;
	if (--x->n == 0)
		match_rec_done(x);
	return true;
}

bool match_rec_clear(const struct led_job *t, struct led_vertex *x, uint32_t job, uint32_t flags)
{
	struct led_rec *r;
	uint32_t i;

	if (x->heavy)
		return heavy_clear(t, x, job, flags);
	i = find_record(t, x, job);
	if (i == x->n)
		return false;
	r = x->cap ? &x->p[i] : &x->one;
	r->job &= ~flags;
	if (r->job >> SLU_JOB_BITS) {
		if (!(r->job & LED_UNITS))
			r->units = 0;
		return false;
	}
	x->n--;
	if (x->cap)
		memmove(r, r + 1, (x->n - i) * sizeof *r);
	if (!x->n) {
		match_rec_done(x);
		return true;
	}
	if (x->n == 1)
		x->overlap = 0;
	if (t[job].end < x->last_end)
		return true;
	/* The record with the latest end is gone: find the next latest. */
	x->last_end = t[led_job(x->p[x->n - 1])].end;
	for (i = 0; x->overlap && i < x->n; i++)
		x->last_end = SLU_MAX(x->last_end, t[led_job(x->p[i])].end);
	return true;
}
