#include "base/crash.h"

#ifdef SLU_CRASH_POINTS
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_LEN 120

/* Read-only after the first point; `passed` is guarded by the lock. */
static struct {
	pthread_mutex_t lock;
	bool ready;
	char name[NAME_MAX_LEN]; /* "": any */
	long at, last;           /* 0: the process does not die */
	long points, passed;     /* points passed in all, and points passed with this `name` */
	int log;
} crash = { .lock = PTHREAD_MUTEX_INITIALIZER, .log = -1 };

static void read_environment(void)
{
	const char *at = getenv("SLUICE_CRASH_AT"), *log = getenv("SLUICE_CRASH_LOG");
	const char *last = getenv("SLUICE_CRASH_LAST"), *hash = at ? strrchr(at, '#') : NULL;

	crash.ready = true;
	if (log)
		crash.log = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (hash)
		snprintf(crash.name, sizeof crash.name, "%.*s", (int)(hash - at), at);
	if (at)
		crash.at = strtol(hash ? hash + 1 : at, NULL, 10);
	if (last)
		crash.last = strtol(last, NULL, 10);
}

void slu_crash_point(const char *name)
{
	char line[NAME_MAX_LEN + 40];
	bool now;
	int n;

	pthread_mutex_lock(&crash.lock);
	if (!crash.ready)
		read_environment();
	crash.points++;
	crash.passed += !*crash.name || !strcmp(name, crash.name);
	now = crash.points == crash.last;
	now |= crash.at && crash.passed == crash.at && (!*crash.name || !strcmp(name, crash.name));
	n = snprintf(line, sizeof line, "%ld %.*s%s\n", crash.points, NAME_MAX_LEN, name,
		     now ? " KILLED" : "");
	if (crash.log >= 0 && write(crash.log, line, (size_t)n) < 0)
		perror("SLUICE_CRASH_LOG");
	if (now)
		raise(SIGKILL); /* the lock is held, so no other thread passes a point */
	pthread_mutex_unlock(&crash.lock);
}
#else
/* An empty translation unit is not C. */
typedef int slu_crash_unused;
#endif
