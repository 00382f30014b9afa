/* tap.h — tests print what they checked, in the Test Anything Protocol. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed;

/* `topic`: the function that checks; its name, without "test_", begins the line. */
__attribute__((format(printf, 5, 6), unused)) static bool
tap_check(bool good, const char *file, int line, const char *topic, const char *fmt, ...)
{
	char what[4096];
	int n = 0;
	va_list ap;

	if (strncmp(topic, "test_", 5) == 0)
		topic += 5;
	if (strcmp(topic, "main") != 0)
		n = snprintf(what, 100, "%s: ", topic);
	va_start(ap, fmt);
	vsnprintf(what + n, sizeof what - (size_t)n, fmt, ap);
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
#define ok(good, ...) tap_check((good), __FILE__, __LINE__, __func__, __VA_ARGS__)

/* At the end of main: return tap_done(); */
__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}
