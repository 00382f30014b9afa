#include "match/ledger.h"

#define FEW         16
#define TOUCH_TOTAL 0x40000000 /* jobs at one vertex at a time, as in the reference */

struct led_heavy {
	struct slu_planner taken; /* total = UINT32_MAX; what is missing is taken */
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

int led_init(struct ledger *l, uint32_t nv)
{
	*l = (struct ledger){ 0 };
	return led_grow(l, nv);
}

static void vertex_done(struct led_vertex *x)
{
	if (x->heavy)
		heavy_free(x->h);
	else if (x->cap)
		slu_free(x->p);
	*x = (struct led_vertex){ 0 };
}

void led_done(struct ledger *l)
{
	for (uint32_t v = 0; v < l->nv; v++)
		vertex_done(&l->v[v]);
	slu_free(l->v);
	slu_vec_each (&l->info, struct led_jobinfo, i)
		slu_vec_done(&i->at);
	slu_vec_done(&l->job);
	slu_vec_done(&l->info);
	slu_vec_done(&l->unused);
	slu_map_done(&l->by_id);
	*l = (struct ledger){ 0 };
}

int led_grow(struct ledger *l, uint32_t nv)
{
	struct led_vertex *v;

	if (nv <= l->nv)
		return 0;
	v = slu_reallocarray(l->v, nv, sizeof *v);
	if (!v)
		return -ENOMEM;
	memset(v + l->nv, 0, (nv - l->nv) * sizeof *v);
	l->v = v;
	l->nv = nv;
	return 0;
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

int led_copy(struct ledger *to, const struct ledger *from)
{
	if (led_init(to, from->nv) < 0)
		return -ENOMEM;
	for (uint32_t v = 0; v < from->nv; v++) {
		const struct led_vertex *a = &from->v[v];
		struct led_vertex *b = &to->v[v];

		if (a->heavy) {
			struct led_heavy *h = heavy_copy(a->h);

			if (!h)
				goto fail;
			b->h = h;
			b->heavy = 1;
		} else if (a->cap) {
			b->p = slu_reallocarray(NULL, a->n + 1, sizeof *b->p);
			if (!b->p)
				goto fail;
			memcpy(b->p, a->p, a->n * sizeof *b->p);
			b->cap = a->n + 1;
			b->overlap = a->overlap;
		} else {
			b->one = a->one;
		}
		b->n = a->n;
		b->last_end = a->last_end;
	}
	for (uint32_t i = 0; i < from->job.n; i++) {
		struct led_jobinfo c = from->info.p[i];

		c.at.p = NULL;
		c.at.n = c.at.cap = 0;
		if (slu_vec_push(&to->info, c) < 0 || slu_vec_push(&to->job, from->job.p[i]) < 0 ||
		    slu_vec_reserve(&to->info.p[i].at, from->info.p[i].at.n) < 0)
			goto fail;
		to->info.p[i].at.n = from->info.p[i].at.n;
		if (from->info.p[i].at.n)
			memcpy(to->info.p[i].at.p, from->info.p[i].at.p,
			       from->info.p[i].at.n * sizeof(uint32_t));
	}
	/* Room for every job there is, as led_job_new() promises to led_job_drop(). */
	if (slu_vec_reserve(&to->unused, from->job.n) < 0)
		goto fail;
	for (uint32_t i = 0; i < from->unused.n; i++)
		to->unused.p[to->unused.n++] = from->unused.p[i];
	for (uint32_t i = 0; i < from->by_id.n; i++)
		if (slu_map_put(&to->by_id, from->by_id.e[i].key, from->by_id.e[i].val) < 0)
			goto fail;
	return 0;
fail:
	led_done(to);
	return -ENOMEM;
}

size_t led_memory(const struct ledger *l)
{
	size_t bytes = l->nv * sizeof *l->v + l->job.cap * sizeof *l->job.p +
		       l->info.cap * sizeof *l->info.p;

	for (uint32_t v = 0; v < l->nv; v++) {
		const struct led_vertex *x = &l->v[v];

		if (x->heavy)
			bytes += sizeof *x->h + slu_planner_memory(&x->h->taken) +
				 slu_planner_memory(&x->h->touch) +
				 x->h->r.cap * sizeof *x->h->r.p +
				 x->h->where.cap * (sizeof *x->h->where.e + 8);
		else
			bytes += x->cap * sizeof *x->p;
	}
	slu_vec_each (&l->info, struct led_jobinfo, i)
		bytes += i->at.cap * sizeof *i->at.p;
	return bytes;
}

/* --- jobs --- */

int64_t led_job_new(struct ledger *l, int64_t id, int64_t start, int64_t duration)
{
	struct led_job t = { start, start + duration };
	struct led_jobinfo i = { .id = id, .live = true, .plain = true };
	uint32_t k = l->unused.n ? l->unused.p[l->unused.n - 1] : l->job.n;

	if (k >= SLU_JOB_MAX)
		return -EFBIG;
	if (slu_map_put(&l->by_id, (uint64_t)id, k) < 0)
		return -ENOMEM;
	if (k < l->job.n) {
		l->job.p[k] = t;
		i.at = l->info.p[k].at; /* its memory is used again */
		i.at.n = 0;
		l->info.p[k] = i;
		l->unused.n--;
		return k;
	}
	/* Room in `unused` for every job there is, so that dropping one never fails. */
	if (slu_vec_reserve(&l->unused, k + 1) < 0 || slu_vec_reserve(&l->info, k + 1) < 0 ||
	    slu_vec_push(&l->job, t) < 0) {
		slu_map_del(&l->by_id, (uint64_t)id);
		return -ENOMEM;
	}
	l->info.p[l->info.n++] = i;
	return k;
}

int64_t led_job_find(const struct ledger *l, int64_t id)
{
	uint64_t *at = slu_map_get(&l->by_id, (uint64_t)id);

	return at ? (int64_t)*at : -1;
}

void led_job_drop(struct ledger *l, uint32_t job)
{
	struct led_jobinfo *i = &l->info.p[job];

	if (!i->live || i->refs)
		return;
	i->live = false;
	if (i->at.cap > 1024)
		slu_vec_done(&i->at);
	slu_map_del(&l->by_id, (uint64_t)i->id);
	l->unused.p[l->unused.n++] = job;
}

/* --- reading --- */

const struct led_rec *led_records(const struct ledger *l, uint32_t v, uint32_t *n)
{
	const struct led_vertex *x = &l->v[v];

	*n = x->n;
	return x->heavy ? x->h->r.p : x->cap ? x->p : &x->one;
}

/* First record of a sorted array that does not start before `at`. */
static uint32_t lower(const struct ledger *l, const struct led_rec *r, uint32_t n, int64_t at)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (l->job.p[led_job(r[mid])].start < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The part of a sorted array that may overlap the window. */
static void window(const struct ledger *l, const struct led_vertex *x, const struct led_rec *r,
		   int64_t at, int64_t end, uint32_t *a, uint32_t *b)
{
	uint32_t n = x->n;

	*a = 0;
	*b = n;
	if (x->overlap)
		return;
	if (n > FEW) {
		*a = lower(l, r, n, at);
		if (*a && l->job.p[led_job(r[*a - 1])].end > at)
			--*a;
	}
	for (*b = *a; *b < n && l->job.p[led_job(r[*b])].start < end;)
		++*b;
}

int64_t led_avail(const struct ledger *l, uint32_t v, uint32_t size, int64_t at, int64_t end)
{
	const struct led_vertex *x = &l->v[v];
	const struct led_rec *r;
	uint32_t a, b, hits = 0;
	int64_t most = 0;

	if (!x->n || (!x->heavy && x->last_end <= at))
		return size;
	if (x->heavy)
		return (int64_t)size -
		       (UINT32_MAX - slu_planner_during(&x->h->taken, at, end - at));
	r = x->cap ? x->p : &x->one;
	window(l, x, r, at, end, &a, &b);
	for (uint32_t i = a; i < b; i++) {
		const struct led_job *j = &l->job.p[led_job(r[i])];

		if (!(r[i].job & LED_UNITS) || j->start >= end || j->end <= at)
			continue;
		hits++;
		most = SLU_MAX(most, (int64_t)r[i].units);
	}
	if (hits < 2 || !x->overlap)
		return size - most;
	/* The most taken at any moment where a booking begins. */
	for (uint32_t i = a; i < b; i++) {
		const struct led_job *j = &l->job.p[led_job(r[i])];
		int64_t t = SLU_MAX(j->start, at), sum = 0;

		if (!(r[i].job & LED_UNITS) || j->start >= end || j->end <= at)
			continue;
		for (uint32_t k = a; k < b; k++) {
			const struct led_job *o = &l->job.p[led_job(r[k])];

			if ((r[k].job & LED_UNITS) && o->start <= t && t < o->end)
				sum += r[k].units;
		}
		most = SLU_MAX(most, sum);
	}
	return size - most;
}

bool led_untouched(const struct ledger *l, uint32_t v, int64_t at, int64_t end)
{
	const struct led_vertex *x = &l->v[v];
	const struct led_rec *r;
	uint32_t a, b;

	if (!x->n || (!x->heavy && x->last_end <= at))
		return true;
	if (x->heavy)
		return slu_planner_during(&x->h->touch, at, end - at) == TOUCH_TOTAL;
	r = x->cap ? x->p : &x->one;
	window(l, x, r, at, end, &a, &b);
	for (uint32_t i = a; i < b; i++) {
		const struct led_job *j = &l->job.p[led_job(r[i])];

		if ((r[i].job & LED_SHARED) && j->start < end && j->end > at)
			return false;
	}
	return true;
}

bool led_starts_after(const struct ledger *l, uint32_t v, int64_t at)
{
	const struct led_vertex *x = &l->v[v];

	if (!x->n)
		return false;
	if (x->heavy)
		return x->h->last_start > at;
	/* Sorted by start. */
	return l->job.p[led_job(x->cap ? x->p[x->n - 1] : x->one)].start > at;
}

bool led_any(const struct ledger *l, uint32_t v, uint32_t flag)
{
	const struct led_vertex *x = &l->v[v];
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
static uint32_t find(const struct ledger *l, const struct led_vertex *x, uint32_t job)
{
	const struct led_rec *r = x->cap ? x->p : &x->one;

	if (x->last_end <= l->job.p[job].start)
		return x->n;
	if (x->n > FEW && !x->overlap) {
		uint32_t i = lower(l, r, x->n, l->job.p[job].start);

		return i < x->n && led_job(r[i]) == job ? i : x->n;
	}
	for (uint32_t i = 0; i < x->n; i++)
		if (led_job(r[i]) == job)
			return i;
	return x->n;
}

struct led_rec led_get(const struct ledger *l, uint32_t v, uint32_t job)
{
	const struct led_vertex *x = &l->v[v];
	uint32_t i;

	if (x->heavy) {
		uint64_t *at = slu_map_get(&x->h->where, job);

		return at ? x->h->r.p[*at] : (struct led_rec){ 0 };
	}
	i = find(l, x, job);
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

static int make_heavy(struct ledger *l, struct led_vertex *x)
{
	struct led_heavy *h = slu_calloc(1, sizeof *h);
	const struct led_rec *r = x->cap ? x->p : &x->one;

	if (!h)
		return -ENOMEM;
	slu_planner_init(&h->taken, UINT32_MAX);
	slu_planner_init(&h->touch, TOUCH_TOTAL);
	for (uint32_t i = 0; i < x->n; i++) {
		if (slu_vec_push(&h->r, r[i]) < 0 || slu_map_put(&h->where, led_job(r[i]), i) < 0 ||
		    heavy_note(h, &l->job.p[led_job(r[i])], r[i].job, r[i].units) < 0) {
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

static int light_insert(struct ledger *l, struct led_vertex *x, uint32_t job, uint32_t units)
{
	const struct led_job *j = &l->job.p[led_job((struct led_rec){ job, 0 })];
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
	while (i && l->job.p[led_job(r[i - 1])].start > j->start)
		i--;
	if ((i && l->job.p[led_job(r[i - 1])].end > j->start) ||
	    (i < x->n && l->job.p[led_job(r[i])].start < j->end))
		x->overlap = 1;
	memmove(r + i + 1, r + i, (x->n - i) * sizeof *r);
	r[i] = (struct led_rec){ job, units };
	x->n++;
	x->last_end = SLU_MAX(x->last_end, j->end);
	return 0;
}

int led_put(struct ledger *l, uint32_t v, uint32_t size, uint32_t job, uint32_t flags,
	    uint32_t units)
{
	struct led_vertex *x = &l->v[v];
	const struct led_job *j = &l->job.p[job];
	uint32_t i;

	if (!x->heavy && (!x->n || x->last_end <= j->start)) {
		/* After everything that is there: nothing to compare with. */
		if ((flags & LED_UNITS) && units > size)
			return -EINVAL;
		if (light_insert(l, x, job | flags, flags & LED_UNITS ? units : 0) < 0)
			return -ENOMEM;
		l->info.p[job].refs++;
		return 0;
	}
	if ((flags & LED_UNITS) && led_avail(l, v, size, j->start, j->end) < (int64_t)units)
		return -EINVAL;
	if (!x->heavy && x->n >= FEW && x->overlap && make_heavy(l, x) < 0)
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
			l->info.p[job].refs++;
			return 0;
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
	i = find(l, x, job);
	if (i < x->n) {
		struct led_rec *r = x->cap ? &x->p[i] : &x->one;

		r->job |= flags;
		if (flags & LED_UNITS)
			r->units = units;
		return 0;
	}
	if (light_insert(l, x, job | flags, flags & LED_UNITS ? units : 0) < 0)
		return -ENOMEM;
	l->info.p[job].refs++;
	return 0;
}

static void heavy_clear(struct ledger *l, struct led_vertex *x, uint32_t job, uint32_t flags)
{
	struct led_heavy *h = x->h;
	uint64_t *at = slu_map_get(&h->where, job);
	const struct led_job *j = &l->job.p[job];
	struct led_rec *r;
	uint32_t k, last;

	if (!at)
		return;
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
		return;
	last = h->r.n - 1;
	slu_map_del(&h->where, job);
	if (k != last) {
		*slu_map_get(&h->where, led_job(h->r.p[last])) = k;
		h->r.p[k] = h->r.p[last];
	}
	h->r.n--;
	l->info.p[job].refs--;
	if (--x->n == 0)
		vertex_done(x);
}

void led_clear(struct ledger *l, uint32_t v, uint32_t job, uint32_t flags)
{
	struct led_vertex *x = &l->v[v];
	struct led_rec *r;
	uint32_t i;

	if (x->heavy) {
		heavy_clear(l, x, job, flags);
		return;
	}
	i = find(l, x, job);
	if (i == x->n)
		return;
	r = x->cap ? &x->p[i] : &x->one;
	r->job &= ~flags;
	if (r->job >> SLU_JOB_BITS) {
		if (!(r->job & LED_UNITS))
			r->units = 0;
		return;
	}
	l->info.p[job].refs--;
	x->n--;
	if (x->cap)
		memmove(r, r + 1, (x->n - i) * sizeof *r);
	if (!x->n) {
		vertex_done(x);
		return;
	}
	if (x->n == 1)
		x->overlap = 0;
	if (l->job.p[job].end < x->last_end)
		return;
	/* The one with the latest end is gone. */
	x->last_end = l->job.p[led_job(x->p[x->n - 1])].end;
	for (i = 0; x->overlap && i < x->n; i++)
		x->last_end = SLU_MAX(x->last_end, l->job.p[led_job(x->p[i])].end);
}

void led_clear_all(struct ledger *l, uint32_t v)
{
	uint32_t n;
	const struct led_rec *r = led_records(l, v, &n);

	for (uint32_t i = 0; i < n; i++)
		l->info.p[led_job(r[i])].refs--;
	vertex_done(&l->v[v]);
}
