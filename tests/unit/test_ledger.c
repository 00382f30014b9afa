/* The ledger with families against one that has a record for every leaf: whatever is booked, split,
 * given back, copied or regrouped in between, both answer every question in the same way. */
#include "base/mem.h"
#include "base/rng.h"
#include "match/ledger.h"
#include "tap.h"

#define NV      23
#define SIZE    2
#define JOBS    40
#define HORIZON 60
#define EVERY   (LED_HELD | LED_SHARED | LED_TAGGED)

static const struct led_family families[] = { { .first = 1, .n = 4 },
					      { .first = 5, .n = 2 },
					      { .first = 8, .n = 13 } };

struct books {
	struct ledger grouped, plain;
	int64_t id[JOBS]; /* 0 = free */
	int64_t next;
};

/* Whether both ledgers say the same about v. */
static bool same_at(struct books *b, uint32_t v, struct slu_rng *r)
{
	const struct ledger *g = &b->grouped, *p = &b->plain;
	int64_t at = (int64_t)slu_rng_below(r, HORIZON),
		end = at + 1 + (int64_t)slu_rng_below(r, 20);

	for (uint32_t k = 0; k < JOBS; k++) {
		int64_t x = b->id[k] ? match_led_job_find(g, b->id[k]) : -1;
		int64_t y = b->id[k] ? match_led_job_find(p, b->id[k]) : -1;
		struct led_rec c, d;

		if (x < 0 || y < 0) {
			if ((x < 0) != (y < 0))
				return false;
			continue;
		}
		c = match_led_get(g, v, (uint32_t)x);
		d = match_led_get(p, v, (uint32_t)y);
		if ((c.job & LED_EVERY) != (d.job & LED_EVERY) || c.units != d.units)
			return false;
	}
	if (led_over(g, v, at, true) && match_led_avail(p, v, SIZE, at, end) != SIZE)
		return false;
	return match_led_avail(g, v, SIZE, at, end) == match_led_avail(p, v, SIZE, at, end) &&
	       match_led_untouched(g, v, at, end) == match_led_untouched(p, v, at, end) &&
	       match_led_any(g, v, LED_HELD) == match_led_any(p, v, LED_HELD) &&
	       match_led_any(g, v, LED_PLANNED) == match_led_any(p, v, LED_PLANNED);
}

static bool same(struct books *b, struct slu_rng *r)
{
	int64_t at = (int64_t)slu_rng_below(r, HORIZON),
		end = at + 1 + (int64_t)slu_rng_below(r, 20);

	for (uint32_t v = 0; v < NV; v++)
		if (!same_at(b, v, r))
			return false;
	for (uint32_t i = 0; i < b->grouped.family.n; i++) {
		const struct led_family *f = &b->grouped.family.p[i];

		/* It may be too careful, but never wrong. */
		if (!match_led_all_free(&b->grouped, NV + i, SIZE, at, end, true))
			continue;
		for (uint32_t v = f->first; v < f->first + f->n; v++)
			if (match_led_avail(&b->plain, v, SIZE, at, end) != SIZE ||
			    !match_led_untouched(&b->plain, v, at, end))
				return false;
	}
	return true;
}

static void remember(struct ledger *l, uint32_t job, uint32_t at)
{
	if (slu_vec_push(&l->info.p[job].at, at) < 0)
		abort();
}

/* Book leaves [first, first + n) for both; all at once where they are a family. */
static bool take(struct books *b, uint32_t first, uint32_t n, uint32_t units, int64_t at,
		 int64_t duration, uint32_t flags)
{
	uint32_t k = 0, s = led_all(&b->grouped, first);
	uint32_t x, y;
	int rc = -EAGAIN, want;

	while (k < JOBS && b->id[k])
		k++;
	if (k == JOBS)
		return true;
	b->id[k] = ++b->next;
	x = (uint32_t)match_led_job_new(&b->grouped, b->id[k], at, duration);
	y = (uint32_t)match_led_job_new(&b->plain, b->id[k], at, duration);
	if (s != LED_NONE && led_family(&b->grouped, s)->first == first &&
	    led_family(&b->grouped, s)->n == n && units == SIZE) {
		rc = match_led_put_all(&b->grouped, s, SIZE, x, flags);
		if (!rc)
			remember(&b->grouped, x, s);
	}
	for (uint32_t v = first; v < first + n; v++) {
		want = match_led_put(&b->plain, v, SIZE, y, flags, units);
		if (!want)
			remember(&b->plain, y, v);
		if (rc == -EAGAIN) {
			if (match_led_put(&b->grouped, v, SIZE, x, flags, units) != want)
				return false;
			if (!want)
				remember(&b->grouped, x, v);
		} else if (want) {
			return false; /* refused alone, taken together */
		}
	}
	return true;
}

static void drop(struct ledger *l, int64_t id)
{
	uint32_t job = (uint32_t)match_led_job_find(l, id);

	slu_vec_each (&l->info.p[job].at, uint32_t, at) {
		const struct led_family *f = led_family(l, *at);

		match_led_clear(l, *at, job, LED_EVERY);
		for (uint32_t i = 0; f && i < f->n; i++)
			match_led_clear(l, f->first + i, job, LED_EVERY);
	}
	match_led_job_drop(l, job);
}

/* Take flags of one job off one leaf, in both.  Memory is short every now and then. */
static bool nibble(struct books *b, uint32_t k, uint32_t v, uint32_t flags, struct slu_rng *r)
{
	uint32_t x = (uint32_t)match_led_job_find(&b->grouped, b->id[k]);
	uint32_t y = (uint32_t)match_led_job_find(&b->plain, b->id[k]);

	if (slu_rng_below(r, 4) == 0) {
		bool failed;
		int rc;

		slu_fault_arm((long)slu_rng_below(r, 8));
		rc = match_led_split(&b->grouped, v, x);
		failed = slu_fault_disarm();
		if (rc < 0 && (!failed || !same(b, r)))
			return false;
	}
	if (match_led_split(&b->grouped, v, x) < 0)
		return false;
	match_led_clear(&b->grouped, v, x, flags);
	match_led_clear(&b->plain, v, y, flags);
	return true;
}

/* A job can be found from any of its leaves, whatever it has booked there. */
static bool tag(struct books *b, uint32_t k, uint32_t v)
{
	uint32_t x = (uint32_t)match_led_job_find(&b->grouped, b->id[k]);
	uint32_t y = (uint32_t)match_led_job_find(&b->plain, b->id[k]);

	remember(&b->grouped, x, v);
	remember(&b->plain, y, v);
	return match_led_put(&b->grouped, v, SIZE, x, LED_TAGGED, 0) == 0 &&
	       match_led_put(&b->plain, v, SIZE, y, LED_TAGGED, 0) == 0;
}

static bool regroup(struct books *b, struct slu_rng *r)
{
	struct ledger copy;
	int rc;

	if (match_led_copy(&copy, &b->grouped) < 0)
		return false;
	match_led_done(&b->grouped);
	b->grouped = copy;
	if (slu_rng_below(r, 2))
		return true;
	slu_fault_arm((long)slu_rng_below(r, 12));
	rc = match_led_disband(&b->grouped);
	slu_fault_disarm();
	if (rc < 0 && (!same(b, r) || match_led_disband(&b->grouped) < 0))
		return false;
	return !b->grouped.family.n && same(b, r) &&
	       match_led_unite(&b->grouped, families, SLU_LEN(families)) == 0;
}

static bool step(struct books *b, struct slu_rng *r)
{
	const struct led_family *f = &families[slu_rng_below(r, SLU_LEN(families))];
	uint32_t k = (uint32_t)slu_rng_below(r, JOBS), v = (uint32_t)slu_rng_below(r, NV);
	int64_t at = (int64_t)slu_rng_below(r, HORIZON), length = 1 + (int64_t)slu_rng_below(r, 12);
	uint32_t flags = slu_rng_below(r, 2) ? EVERY : LED_PLANNED | LED_SHARED | LED_TAGGED;

	switch (slu_rng_below(r, 11)) {
	case 0:
	case 1:
	case 2:
	case 3:
		return take(b, f->first, f->n, SIZE, at, length, flags);
	case 4:
		return take(b, v, 1, 1 + (uint32_t)slu_rng_below(r, SIZE), at, length, flags);
	case 5:
		return take(b, v, 1, 0, at, length, LED_SHARED | LED_TAGGED);
	case 6:
		return !b->id[k] || nibble(b, k, v, slu_rng_below(r, 2) ? LED_EVERY : LED_UNITS, r);
	case 7:
		return !b->id[k] || tag(b, k, v);
	case 8:
		return slu_rng_below(r, 10) || regroup(b, r);
	default:
		if (b->id[k]) {
			drop(&b->grouped, b->id[k]);
			drop(&b->plain, b->id[k]);
			b->id[k] = 0;
		}
		return true;
	}
}

int main(void)
{
	uint32_t bad = 0, lasting = 0;

	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct slu_rng r = { seed };
		struct books b = { 0 };
		bool good = match_led_init(&b.grouped, NV) == 0 &&
			    match_led_init(&b.plain, NV) == 0 &&
			    match_led_unite(&b.grouped, families, SLU_LEN(families)) == 0;

		for (uint32_t i = 0; i < 400 && good; i++) {
			good = step(&b, &r) && same(&b, &r);
			for (uint32_t s = NV; s < NV + b.grouped.family.n; s++)
				lasting += b.grouped.v[s].n;
			if (!good)
				printf("# seed %u step %u\n", (unsigned)seed, i);
		}
		bad += !good;
		for (uint32_t k = 0; k < JOBS; k++)
			if (good && b.id[k]) {
				drop(&b.grouped, b.id[k]);
				drop(&b.plain, b.id[k]);
			}
		for (uint32_t v = 0; v < NV + b.grouped.family.n && good; v++)
			bad += b.grouped.v[v].n != 0;
		for (uint32_t i = 0; i < b.grouped.family.n && good; i++)
			bad += b.grouped.family.p[i].own != 0;
		match_led_done(&b.grouped);
		match_led_done(&b.plain);
	}
	ok(!bad, "families answer as their leaves do (%u sessions do not)", bad);
	ok(lasting > 30 * 400, "the run had records of families (%u)", lasting);
	return tap_done();
}
