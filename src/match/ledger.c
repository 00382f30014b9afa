#include "match/ledger.h"

int match_led_init(struct ledger *l, uint32_t nv)
{
	*l = (struct ledger){ 0 };
	return match_led_grow(l, nv);
}

/* Vertices and stand-ins. */
static uint32_t numbers(const struct ledger *l)
{
	return l->nv + l->family.n;
}

void match_led_done(struct ledger *l)
{
	for (uint32_t v = 0; v < numbers(l); v++)
		match_rec_done(&l->v[v]);
	slu_free(l->v);
	slu_free(l->all);
	slu_vec_done(&l->family);
	slu_vec_each (&l->info, struct led_jobinfo, i)
		slu_vec_done(&i->at);
	slu_vec_done(&l->job);
	slu_vec_done(&l->info);
	slu_vec_done(&l->unused);
	slu_map_done(&l->by_id);
	*l = (struct ledger){ 0 };
}

int match_led_grow(struct ledger *l, uint32_t nv)
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

int match_led_copy(struct ledger *to, const struct ledger *from)
{
	if (match_led_init(to, from->nv) < 0 ||
	    match_led_unite(to, from->family.p, from->family.n) < 0)
		goto fail;
	for (uint32_t v = 0; v < numbers(from); v++)
		if (match_rec_copy(&to->v[v], &from->v[v]) < 0)
			goto fail;
	for (uint32_t i = 0; i < from->family.n; i++)
		to->family.p[i] = from->family.p[i];
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
	/* Reserve an entry for every job, because match_led_job_drop() relies on
	 * match_led_job_new() for it. */
	if (slu_vec_reserve(&to->unused, from->job.n) < 0)
		goto fail;
	for (uint32_t i = 0; i < from->unused.n; i++)
		to->unused.p[to->unused.n++] = from->unused.p[i];
	for (uint32_t i = 0; i < from->by_id.n; i++)
		if (slu_map_put(&to->by_id, from->by_id.e[i].key, from->by_id.e[i].val) < 0)
			goto fail;
	return 0;
fail:
	match_led_done(to);
	return -ENOMEM;
}

size_t match_led_memory(const struct ledger *l)
{
	size_t bytes = numbers(l) * sizeof *l->v + (l->all ? l->nv * sizeof *l->all : 0) +
		       l->family.cap * sizeof *l->family.p + l->job.cap * sizeof *l->job.p +
		       l->info.cap * sizeof *l->info.p;

	for (uint32_t v = 0; v < numbers(l); v++)
		bytes += match_rec_memory(&l->v[v]);
	slu_vec_each (&l->info, struct led_jobinfo, i)
		bytes += i->at.cap * sizeof *i->at.p;
	return bytes;
}

/* --- jobs --- */

/* Give the number of job k back to the job that had it before, if there was one. */
static void forget_number(struct ledger *l, const struct led_jobinfo *i, uint32_t k)
{
	uint64_t *named = slu_map_get(&l->by_id, (uint64_t)i->id);
	const struct led_jobinfo *older = i->older ? &l->info.p[i->older - 1] : NULL;

	if (!named || *named != k)
		return;
	if (older && older->live && older->id == i->id)
		*named = i->older - 1;
	else
		slu_map_del(&l->by_id, (uint64_t)i->id);
}

int64_t match_led_job_new(struct ledger *l, int64_t id, int64_t start, int64_t duration)
{
	struct led_job t = { start, start + duration };
	struct led_jobinfo i = { .id = id, .live = true, .plain = true };
	uint32_t k = l->unused.n ? l->unused.p[l->unused.n - 1] : l->job.n;
	int64_t older = match_led_job_find(l, id);

	if (k >= SLU_JOB_MAX)
		return -EFBIG;
	i.older = (uint32_t)(older + 1);
	if (slu_map_put(&l->by_id, (uint64_t)id, k) < 0)
		return -ENOMEM;
	if (k < l->job.n) {
		l->job.p[k] = t;
		i.at = l->info.p[k].at; /* the next job reuses the memory */
		i.at.n = 0;
		l->info.p[k] = i;
		l->unused.n--;
		return k;
	}
	/* Room in `unused` for every job there is, so that dropping one never fails. */
	if (slu_vec_reserve(&l->unused, k + 1) < 0 || slu_vec_reserve(&l->info, k + 1) < 0 ||
	    slu_vec_push(&l->job, t) < 0) {
		forget_number(l, &i, k);
		return -ENOMEM;
	}
	l->info.p[l->info.n++] = i;
	return k;
}

int64_t match_led_job_find(const struct ledger *l, int64_t id)
{
	uint64_t *at = slu_map_get(&l->by_id, (uint64_t)id);

	return at ? (int64_t)*at : -1;
}

void match_led_job_drop(struct ledger *l, uint32_t job)
{
	struct led_jobinfo *i = &l->info.p[job];

	if (!i->live || i->refs)
		return;
	i->live = false;
	if (i->at.cap > 1024)
		slu_vec_done(&i->at);
	forget_number(l, i, job);
	l->unused.p[l->unused.n++] = job;
}

/* --- one vertex --- */

const struct led_rec *match_led_records(const struct ledger *l, uint32_t v, uint32_t *n)
{
	return match_rec_list(&l->v[v], n);
}

/* The stand-in's records, NULL if there are none from `at` on. */
static const struct led_vertex *stand_in_of(const struct ledger *l, uint32_t v, int64_t at)
{
	uint32_t s = led_all(l, v);

	return s == LED_NONE || rec_over(&l->v[s], at) ? NULL : &l->v[s];
}

int64_t match_led_avail(const struct ledger *l, uint32_t v, uint32_t size, int64_t at, int64_t end)
{
	const struct led_vertex *s = stand_in_of(l, v, at);
	int64_t n = match_rec_avail(l->job.p, &l->v[v], size, at, end);

	/* At any moment the units are taken either by a record of v or by one of its family,
	 * never by both, so the smaller of the two numbers is right. */
	return s ? SLU_MIN(n, match_rec_avail(l->job.p, s, size, at, end)) : n;
}

bool match_led_untouched(const struct ledger *l, uint32_t v, int64_t at, int64_t end)
{
	const struct led_vertex *s = stand_in_of(l, v, at);

	return match_rec_untouched(l->job.p, &l->v[v], at, end) &&
	       (!s || match_rec_untouched(l->job.p, s, at, end));
}

bool match_led_starts_after(const struct ledger *l, uint32_t v, int64_t at)
{
	const struct led_vertex *s = stand_in_of(l, v, at);

	return match_rec_starts_after(l->job.p, &l->v[v], at) ||
	       (s && match_rec_starts_after(l->job.p, s, at));
}

bool match_led_any(const struct ledger *l, uint32_t v, uint32_t flag)
{
	const struct led_vertex *s = stand_in_of(l, v, INT64_MIN);

	return match_rec_any(&l->v[v], flag) || (s && match_rec_any(s, flag));
}

struct led_rec match_led_get(const struct ledger *l, uint32_t v, uint32_t job)
{
	const struct led_vertex *s = stand_in_of(l, v, l->job.p[job].start);
	struct led_rec r = match_rec_get(l->job.p, &l->v[v], job);

	return r.job || !s ? r : match_rec_get(l->job.p, s, job);
}

/* Count that v got a record of its own, or lost one. */
static void count_record(struct ledger *l, uint32_t v, uint32_t job, bool made)
{
	uint32_t s = led_all(l, v);
	struct led_family *f;

	l->info.p[job].refs += made ? 1 : -1u;
	if (s == LED_NONE)
		return;
	f = &l->family.p[s - l->nv];
	f->own += made ? 1 : -1u;
	f->own_end = !f->own ? 0 : made ? SLU_MAX(f->own_end, l->job.p[job].end) : f->own_end;
}

int match_led_put(struct ledger *l, uint32_t v, uint32_t size, uint32_t job, uint32_t flags,
		  uint32_t units)
{
	const struct led_job *j = &l->job.p[job];
	const struct led_vertex *s = stand_in_of(l, v, j->start);
	int rc = 0;

	if (s && flags & LED_UNITS && match_rec_avail(l->job.p, s, size, j->start, j->end) < units)
		return -EINVAL;
	if (s)
		rc = match_led_split(l, v, job);
	if (!rc)
		rc = match_rec_put(l->job.p, &l->v[v], size, job, flags, units);
	if (rc > 0)
		count_record(l, v, job, true);
	return SLU_MIN(rc, 0);
}

void match_led_clear(struct ledger *l, uint32_t v, uint32_t job, uint32_t flags)
{
	if (match_rec_clear(l->job.p, &l->v[v], job, flags))
		count_record(l, v, job, false);
}

void match_led_clear_all(struct ledger *l, uint32_t v)
{
	uint32_t n;
	const struct led_rec *r = match_led_records(l, v, &n);

	for (uint32_t i = 0; i < n; i++)
		l->info.p[led_job(r[i])].refs--;
	match_rec_done(&l->v[v]);
}

/* --- families --- */

int match_led_unite(struct ledger *l, const struct led_family *list, uint32_t n)
{
	struct led_vertex *v;

	if (!n)
		return 0;
	v = slu_reallocarray(l->v, (size_t)l->nv + n, sizeof *v);
	if (!v)
		return -ENOMEM;
	l->v = v;
	l->all = slu_reallocarray(NULL, l->nv, sizeof *l->all);
	if (!l->all || slu_vec_reserve(&l->family, n) < 0) {
		slu_free(l->all);
		l->all = NULL;
		return -ENOMEM;
	}
	memset(v + l->nv, 0, n * sizeof *v);
	memset(l->all, 0xff, l->nv * sizeof *l->all);
	for (uint32_t i = 0; i < n; i++) {
		struct led_family f = { .first = list[i].first, .n = list[i].n };

		for (uint32_t c = f.first; c < f.first + f.n; c++) {
			const struct led_rec *r;
			uint32_t k;

			l->all[c] = l->nv + i;
			if (!l->v[c].n)
				continue;
			r = match_led_records(l, c, &k);
			f.own += k;
			while (k--)
				f.own_end = SLU_MAX(f.own_end, l->job.p[led_job(r[k])].end);
		}
		l->family.p[l->family.n++] = f;
	}
	return 0;
}

bool match_led_all_free(const struct ledger *l, uint32_t s, uint32_t size, int64_t at, int64_t end,
			bool later)
{
	const struct led_family *f = led_family(l, s);
	const struct led_vertex *x = &l->v[s];

	if (f->own && (!later || f->own_end > at))
		return false;
	if (rec_over(x, later ? at : INT64_MIN))
		return true;
	return (later || !match_rec_any(x, LED_HELD)) &&
	       match_rec_untouched(l->job.p, x, at, end) &&
	       match_rec_avail(l->job.p, x, size, at, end) == size;
}

int match_led_put_all(struct ledger *l, uint32_t s, uint32_t size, uint32_t job, uint32_t flags)
{
	int rc;

	if (led_family(l, s)->own_end > l->job.p[job].start)
		return -EAGAIN;
	rc = match_rec_put(l->job.p, &l->v[s], size, job, flags, size);
	if (rc > 0)
		count_record(l, s, job, true);
	return rc == -EINVAL ? -EAGAIN : SLU_MIN(rc, 0);
}

int match_led_split(struct ledger *l, uint32_t v, uint32_t job)
{
	uint32_t s = led_all(l, v), i;
	struct led_rec r = s == LED_NONE ? (struct led_rec){ 0 } : match_led_get(l, s, job);
	struct led_family f;

	if (!r.job)
		return 0;
	f = *led_family(l, s);
	for (i = 0; i < f.n; i++)
		if (match_rec_put(l->job.p, &l->v[f.first + i], r.units, job, r.job & LED_EVERY,
				  r.units) < 0)
			break;
	if (i < f.n) {
		while (i--)
			match_rec_clear(l->job.p, &l->v[f.first + i], job, LED_EVERY);
		return -ENOMEM;
	}
	while (i--)
		count_record(l, f.first + i, job, true);
	match_led_clear(l, s, job, LED_EVERY);
	return 0;
}

/* Replace stand-ins in the list of a job's places by their leaves. 0 or -ENOMEM. */
static int name_leaves(struct ledger *l, struct led_jobinfo *i)
{
	uint64_t n = 0;
	uint32_t k = 0, *at;

	slu_vec_each (&i->at, uint32_t, p)
		n += *p < l->nv ? 1 : led_family(l, *p)->n;
	if (n == i->at.n)
		return 0; /* a family has at least two leaves */
	at = n > UINT32_MAX ? NULL : slu_reallocarray(NULL, n, sizeof *at);
	if (!at)
		return -ENOMEM;
	slu_vec_each (&i->at, uint32_t, p) {
		const struct led_family *f = led_family(l, *p);

		if (!f)
			at[k++] = *p;
		for (uint32_t c = 0; f && c < f->n; c++)
			at[k++] = f->first + c;
	}
	slu_free(i->at.p);
	i->at.p = at;
	i->at.n = i->at.cap = k;
	return 0;
}

int match_led_disband(struct ledger *l)
{
	/* Each step leaves all bookings as they are. */
	for (uint32_t s = l->nv; s < numbers(l); s++) {
		uint32_t n;
		const struct led_rec *r;

		while (r = match_led_records(l, s, &n), n)
			if (match_led_split(l, led_family(l, s)->first, led_job(r[n - 1])) < 0)
				return -ENOMEM;
	}
	slu_vec_each (&l->info, struct led_jobinfo, i)
		if (i->live && name_leaves(l, i) < 0)
			return -ENOMEM;
	slu_free(l->all);
	l->all = NULL;
	slu_vec_done(&l->family);
	return 0;
}
