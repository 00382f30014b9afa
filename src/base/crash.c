#include "base/crash.h"

#ifdef SLU_CRASH_POINTS
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void slu_crash_point(const char *name)
{
	static _Atomic long count;
	long n = ++count;
	const char *at = getenv("SLUICE_CRASH_AT"), *log = getenv("SLUICE_CRASH_LOG");
	bool now = at && n == atol(at);

	if (log) {
		char line[160];
		int fd = open(log, O_WRONLY | O_APPEND | O_CREAT, 0600);
		int len = snprintf(line, sizeof line, "%ld %s%s\n", n, name, now ? " KILLED" : "");

		if (fd >= 0) {
			if (write(fd, line, (size_t)len) < 0)
				perror(log);
			close(fd);
		}
	}
	if (now)
		raise(SIGKILL);
}
#else
/* An empty translation unit is not C. */
typedef int slu_crash_unused;
#endif
