#include "base/clock.h"

#include "base/base.h"

#include <time.h>

#define STEP_US 1000000
#define DRIFT   20

static int64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t slu_clock_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t slu_clock_wall_us(void)
{
	return read_ns(CLOCK_REALTIME) / 1000;
}

int64_t slu_clock_cpu_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t slu_clock_at(struct slu_clock *k, int64_t wall_us, int64_t boot_us, int64_t *step_us)
{
	int64_t passed = boot_us - k->boot_us, set = wall_us - k->wall_us - passed;
	bool first = !k->now_us;

	*step_us = !first && (set >= STEP_US || set <= -STEP_US) ? set : 0;
	if (first) {
		k->now_us = wall_us;
	} else if (passed > 0) {
		int64_t most = passed / DRIFT, off = wall_us - (k->now_us + passed);

		off = SLU_MIN(off, most);
		k->now_us += passed + SLU_MAX(-most, off);
	}
	k->wall_us = wall_us;
	k->boot_us = boot_us;
	return k->now_us;
}

int64_t slu_clock_now(struct slu_clock *k, int64_t *step_us)
{
	return slu_clock_at(k, slu_clock_wall_us(), read_ns(CLOCK_BOOTTIME) / 1000, step_us);
}
