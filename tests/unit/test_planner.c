#include "base/rng.h"
#include "planner/multi.h"
#include "planner/planner.h"
#include "tap.h"

#define HORIZON 200

static void test_small(void)
{
	struct slu_planner p;

	slu_planner_init(&p, 10);
	ok(slu_planner_during(&p, 5, 10) == 10 && slu_planner_at(&p, 0) == 10,
	   "a new planner has all units free");
	ok(slu_planner_first(&p, 0, 5, 10) == 0,
	   "the first time is 0, where the planner has a point");
	ok(slu_planner_first(&p, 1, 5, 1) == -ENOENT, "without a later point there is no answer");
	ok(slu_planner_first(&p, 0, 5, 11) == -ERANGE, "a request above the total is out of range");
	ok(slu_planner_add(&p, 10, 10, 6) == 0 && slu_planner_add(&p, 15, 10, 5) == -EINVAL,
	   "a span is booked, a second one finds no room");
	ok(slu_planner_add(&p, 15, 10, 4) == 0 && slu_planner_during(&p, 0, 16) == 0,
	   "overlapping spans add up");
	ok(slu_planner_during(&p, 0, 10) == 10 && slu_planner_during(&p, 0, 11) == 4,
	   "a span does not include its end");
	ok(slu_planner_first(&p, 1, 5, 4) == 10, "points 10, 15, 20, 25: 4 fit at 10");
	ok(slu_planner_next(&p) == 20 && slu_planner_next(&p) == 25 &&
		   slu_planner_next(&p) == -ENOENT,
	   "the next points where 4 fit are 20 and 25");
	ok(slu_planner_fits(&p, INT64_MAX - 5, 10, 1) == -ERANGE,
	   "no span goes beyond the end of time");
	slu_planner_reduce(&p, 10, 10, 2);
	ok(slu_planner_at(&p, 10) == 6 && slu_planner_at(&p, 15) == 2, "a span is reduced");
	slu_planner_remove(&p, 10, 10, 4);
	slu_planner_remove(&p, 15, 10, 4);
	ok(p.n == 1 && slu_planner_at(&p, 15) == 10, "points vanish with their spans");
	slu_planner_done(&p);
}

/* After a change of the total the search keeps its belief until the point is touched. */
static void test_resize(void)
{
	struct slu_planner p;

	slu_planner_init(&p, 4);
	slu_planner_add(&p, 0, 10, 4);
	slu_planner_resize(&p, 6);
	ok(slu_planner_at(&p, 5) == 2 && slu_planner_at(&p, 10) == 6, "all values follow at once");
	ok(slu_planner_first(&p, 1, 5, 5) == -ENOENT, "the search still believes 4 at time 10");
	ok(slu_planner_first(&p, 1, 5, 4) == 10, "a search for 4 finds time 10");
	ok(slu_planner_first(&p, 1, 5, 5) == 10,
	   "a search refreshes the points it passed for the next search");
	slu_planner_resize(&p, 1);
	ok(slu_planner_at(&p, 5) == 0, "units left never fall below 0");
	slu_planner_done(&p);
}

static void test_multi(void)
{
	uint16_t type[] = { 3, 1 };
	int64_t total[] = { 8, 2 };
	struct slu_multi *m = slu_multi_new(type, total, 2), *c;
	int64_t w[] = { 4, 1 }, big[] = { 2, 2 }, none[] = { 0, 0 };

	ok(slu_multi_add(m, 7, 0, 10, w) == 0 && slu_multi_fits(m, 5, 10, w) == 0,
	   "two amounts are booked");
	ok(slu_multi_add(m, 8, 5, 10, big) == -EINVAL && slu_planner_at(&m->p[0], 6) == 2,
	   "refused by the second: the first stays booked, as in the reference");
	ok(!slu_multi_span(m, 8) && slu_multi_span(m, 7)[0] == 4,
	   "a refused span of a multi-planner does not exist");
	ok(slu_multi_first(m, 1, 5, big) == 10, "both types fit at 10");
	c = slu_multi_copy(m);
	w[0] = 1;
	w[1] = 1;
	ok(slu_multi_reduce(m, 7, 0, 10, w) == 0 && slu_multi_span(m, 7)[1] == -1,
	   "a part that holds nothing any more is gone");
	ok(slu_multi_reduce(m, 7, 0, 10, none) == 0, "a reduction by nothing keeps the span");
	w[0] = 3;
	ok(slu_multi_reduce(m, 7, 0, 10, w) == 1 && !slu_multi_span(m, 7),
	   "a reduction by the rest removes the span");
	ok(slu_multi_span(c, 7)[1] == 1, "a copy keeps its spans");
	for (uint32_t j = 100; j < 160; j++)
		slu_multi_add(c, j, 100 + 10 * j, 10, none);
	ok(c->spans == 61 && slu_multi_span(c, 133) && !slu_multi_span(c, 50),
	   "many spans are added");
	for (uint32_t j = 100; j < 155; j++)
		if (!slu_multi_remove(c, j, 100 + 10 * j, 10))
			ok(false, "span %u is removed", j);
	ok(c->spans == 6 && slu_multi_span(c, 157) && slu_multi_span(c, 7), "few spans are left");
	slu_multi_free(c);
	slu_multi_free(m);
}

/* Against a model that counts every second. */
struct span {
	int64_t at, len, n;
};

static bool model_fits(const int64_t *use, int64_t total, int64_t at, int64_t len, int64_t n)
{
	for (int64_t t = at; t < at + len && t < HORIZON; t++)
		if (use[t] + n > total)
			return false;
	return true;
}

static bool run_model(uint64_t seed)
{
	struct slu_rng r = { seed };
	struct slu_planner p;
	int64_t use[HORIZON] = { 0 }, total = 1 + (int64_t)slu_rng_below(&r, 12);
	struct span s[64];
	uint32_t n = 0;
	bool good = true;

	slu_planner_init(&p, total);
	for (int step = 0; step < 300 && good; step++) {
		int64_t at = (int64_t)slu_rng_below(&r, HORIZON - 40);
		int64_t len = 1 + (int64_t)slu_rng_below(&r, 39);
		int64_t want = 1 + (int64_t)slu_rng_below(&r, (uint64_t)total), first = -ENOENT,
			least = total;
		bool fits = model_fits(use, total, at, len, want);

		for (int64_t t = at; t < at + len; t++)
			least = SLU_MIN(least, total - use[t]);
		good = slu_planner_during(&p, at, len) == least &&
		       (slu_planner_fits(&p, at, len, want) == 0) == fits;
		/* Candidates are the times where a span starts or ends, and 0. */
		for (int64_t t = at; t < HORIZON && first < 0; t++) {
			bool point = t == 0;

			for (uint32_t i = 0; i < n; i++)
				point = point || s[i].at == t || s[i].at + s[i].len == t;
			if (point && model_fits(use, total, t, len, want))
				first = t;
		}
		good = good && slu_planner_first(&p, at, len, want) == first;
		if (n && slu_rng_below(&r, 3) == 0) {
			uint32_t k = (uint32_t)slu_rng_below(&r, n);

			slu_planner_remove(&p, s[k].at, s[k].len, s[k].n);
			for (int64_t t = s[k].at; t < s[k].at + s[k].len; t++)
				use[t] -= s[k].n;
			s[k] = s[--n];
		} else if (n < SLU_LEN(s)) {
			good = good && (slu_planner_add(&p, at, len, want) == 0) == fits;
			for (int64_t t = at; fits && t < at + len; t++)
				use[t] += want;
			if (fits)
				s[n++] = (struct span){ at, len, want };
		}
	}
	while (n) {
		n--;
		slu_planner_remove(&p, s[n].at, s[n].len, s[n].n);
	}
	good = good && slu_planner_during(&p, 0, HORIZON) == total && p.n <= 1;
	slu_planner_done(&p);
	return good;
}

static int fault_scenario(void)
{
	uint16_t type[] = { 0, 1 };
	int64_t total[] = { 100, 100 }, w[] = { 1, 1 };
	struct slu_multi *m = slu_multi_new(type, total, 2), *c;
	int rc = m ? 0 : -ENOMEM;

	for (uint32_t j = 0; j < 40 && !rc; j++)
		rc = slu_multi_add(m, j, j, 5, w);
	if (!rc) {
		c = slu_multi_copy(m);
		rc = c ? 0 : -ENOMEM;
		slu_multi_free(c);
	}
	for (uint32_t j = 0; m && j < 40; j++)
		slu_multi_remove(m, j, j, 5);
	if (m && (m->spans || slu_planner_during(&m->p[0], 0, 1000) != 100))
		rc = -EIO;
	slu_multi_free(m);
	return rc;
}

/* A copy has no room to spare, whatever the number of its points. */
static void test_copy_grows(void)
{
	for (int64_t spans = 0; spans < 5; spans++) {
		struct slu_planner p, c;
		bool good = true;

		slu_planner_init(&p, 3);
		for (int64_t i = 0; i < spans; i++)
			good &= slu_planner_add(&p, 10 + 10 * i, 5, 1) == 0;
		good &= slu_planner_copy(&c, &p) == 0;
		good &= slu_planner_add(&c, 100, 10, 2) == 0;
		for (int64_t i = 0; i < spans; i++)
			good &= slu_planner_at(&c, 12 + 10 * i) == 2;
		ok(good && slu_planner_at(&c, 105) == 1 && slu_planner_at(&c, 110) == 3 &&
			   slu_planner_at(&p, 105) == 3,
		   "a copy of %d spans takes another", (int)spans);
		slu_planner_done(&p);
		slu_planner_done(&c);
	}
}

int main(void)
{
	int bad = 0;

	test_small();
	test_copy_grows();
	test_resize();
	test_multi();
	for (uint64_t seed = 1; seed <= 300; seed++)
		if (!run_model(seed)) {
			ok(false, "random spans, seed %" PRIu64, seed);
			bad++;
		}
	ok(!bad, "300 random histories agree with counting every second");
	for (long k = 0;; k++) {
		int rc;

		slu_fault_arm(k);
		rc = fault_scenario();
		if (!slu_fault_disarm()) {
			ok(rc == 0, "clean after %ld faults", k);
			break;
		}
		if (rc != -ENOMEM)
			ok(false, "allocation %ld fails cleanly (%d)", k, rc);
	}
	return tap_done();
}
