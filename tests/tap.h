/* tap.h — tests print what they checked, in the Test Anything Protocol. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5), unused)) static bool tap_check(bool good, const char *file,
								    int line, const char *fmt, ...)
{
	char what[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	/* One check, one line, whatever text it speaks of; '#' would begin a directive. */
	for (char *p = what; *p; p++)
		if ((unsigned char)*p < ' ' || *p == '#')
			*p = *p == '#' ? '*' : ' ';
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, what);
	if (!good) {
		tap_failed++;
		printf("# at %s:%d\n", file, line);
	}
	fflush(stdout);
	return good;
}

/* ok(condition, "what it means", ...) */
#define ok(good, ...) tap_check((good), __FILE__, __LINE__, __VA_ARGS__)

/* At the end of main: return tap_done(); */
__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}
