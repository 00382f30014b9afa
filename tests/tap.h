/* tap.h — tests print what they checked, in the Test Anything Protocol. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5), unused)) static bool tap_check(bool good, const char *file,
								    int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", good ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
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
