/* The daemon's time when the wall clock is set. */
#include "base/clock.h"
#include "tap.h"

#define S INT64_C(1000000)

int main(void)
{
	struct slu_clock k = { 0 };
	int64_t wall = 1767225600 * S, boot = 5000 * S, step, t, was;

	ok(slu_clock_at(&k, wall, boot, &step) == wall && !step,
	   "the time begins with the wall clock");
	ok(slu_clock_at(&k, wall + 10 * S, boot + 10 * S, &step) == wall + 10 * S && !step,
	   "the clock follows the wall clock");
	t = slu_clock_at(&k, wall - 589 * S, boot + 11 * S, &step);
	ok(step == -600 * S, "a clock set back by ten minutes is logged (%lld s)",
	   (long long)(step / S));
	ok(t > wall + 10 * S && t <= wall + 11 * S,
	   "time goes on although the wall clock was set back");
	was = t;
	for (int i = 1; i <= 3600; i++) {
		t = slu_clock_at(&k, wall + (i - 589) * S, boot + (11 + i) * S, &step);
		if (t <= was || step)
			break;
		was = t;
	}
	ok(t == was && t - (wall + 3011 * S) < 430 * S,
	   "forwards at every look, and closer to the wall clock (%lld s)",
	   (long long)((t - (wall + 3011 * S)) / S));
	k = (struct slu_clock){ 0 };
	slu_clock_at(&k, wall, boot, &step);
	t = slu_clock_at(&k, wall + 86401 * S, boot + S, &step);
	ok(step == 86400 * S && t < wall + 2 * S, "a day ahead does not make a day pass");
	t = slu_clock_at(&k, wall + 4 * S, boot + 4 * S, &step);
	ok(step == -86400 * S && t >= wall + 4 * S && t < wall + 5 * S,
	   "a wall clock that is put right leaves no trace");
	slu_clock_at(&k, wall + 7204 * S, boot + 7204 * S, &step);
	ok(!step, "a suspended machine was not set");
	return tap_done();
}
