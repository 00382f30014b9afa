/* clock.h — the time of a daemon: the time of the wall clock, at the pace of the boot clock.
 *
 * Plans, limits and timers must neither stop when the wall clock is set back nor jump when it is set
 * ahead for a moment.  So the time follows the boot clock (suspend counts) and drifts towards the wall
 * clock by a twentieth at most: five minutes of difference are gone after a hundred.  It never runs
 * backwards.  The struct is the caller's, zero at first; one thread. */
#pragma once
#include <stdint.h>

struct slu_clock {
	int64_t now_us, wall_us, boot_us;
};

/* The time now, in microseconds since the epoch.  *step_us: by how much the wall clock was set since
 * the last call; 0: it was not (less than a second is no step). */
int64_t slu_clock_now(struct slu_clock *k, int64_t *step_us);
/* The same with both clocks given. */
int64_t slu_clock_at(struct slu_clock *k, int64_t wall_us, int64_t boot_us, int64_t *step_us);

/* The system's clocks as they are: the monotonic clock, the wall clock (since the epoch), and the
 * CPU time of the calling thread, in which other work on the machine does not count. */
int64_t slu_clock_ns(void);
int64_t slu_clock_wall_us(void);
int64_t slu_clock_cpu_ns(void);
