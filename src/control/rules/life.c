#include "control/rules/life.h"

#include "control/rules/kinds.h"

static int64_t or_one(int32_t n)
{
	return n == SLU_KNONE ? 1 : n;
}

int64_t slu_life_makes(const struct slu_kobj *o)
{
	const struct slu_kind *row = slu_kind((enum slu_kkind)o->kind);

	if (o->kind == SLU_KIND_JOB) {
		const struct slu_kjob *j = slu_kjob(o);
		int64_t n = or_one(j->parallelism);

		return j->completions == SLU_KNONE ? n : SLU_MIN(n, (int64_t)j->completions);
	}
	if (!row || !row->wants)
		return -1;
	return or_one(*(const int32_t *)(const void *)((const char *)o + row->wants));
}

/* How many indexes "0-3,7" names: 5. */
static int64_t count_indexes(const char *s)
{
	int64_t n = 0;

	while (*s) {
		char *end;
		int64_t from = strtoll(s, &end, 10), to = from;

		if (end == s)
			return n;
		if (*end == '-')
			to = strtoll(end + 1, &end, 10);
		n += to >= from && to <= INT32_MAX ? to - from + 1 : 0;
		s = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return n;
	}
	return n;
}

/* Completions that are still to come; a work queue (no completions) has no more after the first. */
static int64_t completions_left(const struct slu_kjob *j)
{
	if (j->completions == SLU_KNONE)
		return j->succeeded > 0 ? 0 : INT64_MAX;
	return (int64_t)j->completions - j->succeeded - count_indexes(j->failed_indexes);
}

/* Were it not suspended. */
static int64_t would_want(const struct slu_kobj *o)
{
	int64_t n = slu_life_makes(o);

	if (o->meta.deleted_us)
		return 0;
	if (o->kind == SLU_KIND_JOB) {
		const struct slu_kjob *j = slu_kjob(o);

		if (j->complete == SLU_TRI_TRUE || j->failed_cond == SLU_TRI_TRUE)
			return 0;
		n = SLU_MIN(n, completions_left(j));
	}
	return SLU_MAX(n, (int64_t)0);
}

int64_t slu_life_wants(const struct slu_kobj *o)
{
	return o->kind == SLU_KIND_JOB && slu_kjob(o)->suspend ? 0 : would_want(o);
}

static bool is_leaving(const struct slu_life_maker *k)
{
	return !k->obj || k->obj->meta.deleted_us;
}

/* Whether its user suspended the Job: the pods it has made are about to be deleted. */
static bool is_suspended(const struct slu_life_maker *k)
{
	return k->obj && k->obj->kind == SLU_KIND_JOB && slu_kjob(k->obj)->suspend && !k->held;
}

bool slu_life_leaves(const struct slu_life_objects *o, const struct slu_life_member *m)
{
	const struct slu_life_maker *k = m->maker == SLU_LIFE_ALONE ? NULL : &o->maker[m->maker];

	return m->pod->o.meta.deleted_us ||
	       (k && (is_leaving(k) || (!m->placed && is_suspended(k))));
}

struct sizes {
	int64_t makes;   /* of all makers that stay */
	int64_t wants;   /* ... now */
	int64_t fewer;   /* than they make, as they say themselves */
	int64_t bounded; /* completions of the Jobs among them; INT64_MAX: one has none */
	bool any;
};

/* The set that makes the leader makes those of other groups too.  The workers are made by a set of
 * their own, perhaps only once the leader runs; while the leader is wanted, so are they. */
static int64_t wants_led(const struct slu_life_objects *o, const struct slu_life_maker *k)
{
	const struct slu_kowner *above = slu_kmeta_controller(&k->obj->meta);

	if (above && slu_kstr_is(above->kind, "Pod"))
		return 0;
	return would_want(k->obj) > o->led_index ? SLU_MAX(o->named, 1u) : 0;
}

static struct sizes sizes_of(const struct slu_life_objects *o)
{
	struct sizes s = { 0 };

	for (uint32_t i = 0; i < o->n_makers; i++) {
		const struct slu_life_maker *k = &o->maker[i];
		bool job = k->obj && k->obj->kind == SLU_KIND_JOB;

		if (is_leaving(k) || slu_life_makes(k->obj) < 0)
			continue;
		s.any = true;
		if (o->led) {
			s.wants += wants_led(o, k);
			s.makes = s.wants;
			s.bounded = INT64_MAX;
			continue;
		}
		s.makes += slu_life_makes(k->obj);
		s.wants += k->held ? would_want(k->obj) : slu_life_wants(k->obj);
		if (!job || slu_kjob(k->obj)->completions == SLU_KNONE)
			s.bounded = INT64_MAX;
		else if (s.bounded < INT64_MAX)
			s.bounded += slu_kjob(k->obj)->completions;
	}
	s.fewer = SLU_MAX(s.makes - s.wants, (int64_t)0);
	/* A member that succeeded counts before its Job reports it.  (Not for the size: the member
	 * may have belonged to an object that is gone.) */
	if (s.any && s.bounded < INT64_MAX)
		s.wants = SLU_MIN(s.wants, s.bounded - (int64_t)o->row.finished);
	s.wants = SLU_MAX(s.wants, (int64_t)0);
	return s;
}

static uint32_t at_least_one(int64_t n)
{
	return (uint32_t)SLU_MIN(SLU_MAX(n, (int64_t)1), (int64_t)UINT32_MAX);
}

static void count_members(const struct slu_life_objects *o, struct slu_life *l)
{
	for (uint32_t i = 0; i < o->n_members; i++) {
		const struct slu_life_member *m = &o->member[i];

		if (slu_life_leaves(o, m)) {
			l->leaving += 1 + m->others;
			l->left += m->placed;
		} else if (m->placed) {
			l->placed++;
		} else {
			l->waiting += 1 + m->others;
		}
	}
}

void slu_life(const struct slu_life_objects *o, struct slu_life *out)
{
	struct slu_life l = { 0 };
	struct sizes s = sizes_of(o);
	int64_t size = o->named;

	if (!size && o->lacks_podgroup)
		size = o->row.size; /* its absence says nothing about the size */
	if (!size)
		size = s.any ? s.makes : 1;
	if (o->one_object && s.any && s.makes > 0)
		size = SLU_MIN(size, s.makes); /* no other maker will create a member */
	l.size = at_least_one(size);
	l.asks = at_least_one(size - s.fewer - o->row.alone);
	l.wants = (uint32_t)SLU_MIN(s.wants, (int64_t)UINT32_MAX);
	count_members(o, &l);
	l.begun = l.placed;
	l.whole = l.waiting + l.placed >= l.asks;
	l.ending = l.leaving && !l.waiting && !l.placed;
	l.again = l.left && !l.placed && l.waiting;
	l.over = !o->n_members && !l.wants;
	*out = l;
}
