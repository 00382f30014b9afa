/* Clocks that the core asks for its own pace: the processor's time that a thread has used, and the
 * time that a step of a cycle took.  In a world none passes, so that a seed runs in the same way on
 * every machine, and nobody goes to the kernel for it thirty times a cycle.  Linked instead of the C
 * library's; other clocks are asked as ever. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *t)
{
	if (id != CLOCK_THREAD_CPUTIME_ID && id != CLOCK_MONOTONIC)
		return (int)syscall(SYS_clock_gettime, id, t);
	*t = (struct timespec){ 0 };
	return 0;
}
