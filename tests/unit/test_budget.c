/* The time callers without a certificate may take of the thread that reads their reviews. */
#include "tap.h"

#include "serve/budget.h"

#include <stdio.h>

#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

/* How many reviews of `each_ns` are read for an address that posts as fast as it can for `s`
 * seconds. */
static int flood(struct slu_budget *b, const char *peer, int64_t each_ns, int64_t from_ns, int s)
{
	int served = 0;

	for (int64_t t = from_ns; t < from_ns + s * S;) {
		if (slu_budget_allows(b, peer, t)) {
			slu_budget_spend(b, peer, each_ns, t);
			served++;
			t += each_ns;
		} else {
			t += MS;
		}
	}
	return served;
}

int main(void)
{
	struct slu_budget *b = slu_budget_new();
	char peer[40];
	int64_t t = 1000 * S, spent = 0, from;
	int n = flood(b, "10.1.0.9:40000", 150 * MS, t, 20);
	bool honest = true;

	/* A second at once and a fifth of twenty seconds, at most one review more. */
	ok(n >= 30 && n <= 35, "one address gets a burst and a fifth of the thread (%d of 133)", n);
	t += 20 * S;
	ok(!slu_budget_allows(b, "10.1.0.9:40001", t), "another port of it is still refused");
	for (int i = 0; i < 1000; i++) {
		honest &= slu_budget_allows(b, "10.1.0.1:443", t);
		slu_budget_spend(b, "10.1.0.1:443", MS / 10, t);
		t += 5 * MS;
	}
	ok(honest, "200 small reviews a second of another address are all read");
	t += 100 * S;
	from = t;
	for (int i = 0; i < 400; i++) { /* four hundred addresses, one after the other */
		snprintf(peer, sizeof peer, "[fd00::%x]:9", i);
		for (int k = 0; k < 20; k++)
			if (slu_budget_allows(b, peer, t)) {
				slu_budget_spend(b, peer, 150 * MS, t);
				spent += 150 * MS;
				t += 150 * MS;
			} else {
				t += 10 * MS;
			}
	}
	ok(spent * 100 / (t - from) <= 55, "many addresses together get half of the thread");
	t += 1000 * S;
	ok(slu_budget_allows(b, "10.1.0.9:40000", t),
	   "an address that overdrew is allowed again after some time");
	slu_budget_free(b);
	return tap_done();
}
