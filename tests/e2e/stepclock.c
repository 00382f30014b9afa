/* Preloaded into a daemon: shifts the wall clock by the offset that a file holds.
 *
 * SLUICE_STEP_CLOCK names a file of one int64_t, in microseconds.  A test that writes to the file sets
 * the clock of this daemon and of no other program.  The monotonic clocks stay as they are, as they do
 * when a real clock is set. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *off_us;

__attribute__((constructor)) static void find_file(void)
{
	const char *path = getenv("SLUICE_STEP_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd >= 0 ? mmap(NULL, sizeof *off_us, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

	if (fd >= 0)
		close(fd);
	off_us = p == MAP_FAILED ? NULL : p;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	long rc = syscall(SYS_clock_gettime, id, t);

	if (!rc && off_us && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t ns = t->tv_nsec + *off_us % 1000000 * 1000;

		t->tv_sec += *off_us / 1000000 + ns / 1000000000;
		t->tv_nsec = ns % 1000000000;
		if (t->tv_nsec < 0) {
			t->tv_nsec += 1000000000;
			t->tv_sec--;
		}
	}
	return (int)rc;
}
