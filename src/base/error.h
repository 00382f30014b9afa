/* error.h — a sentence for people beside the negative errno for code. */
#pragma once

#define SLU_ERROR_MAX 512

/* Filled on failure only.  Zero-initialise it; passing NULL instead is always fine. */
struct slu_error {
	char text[SLU_ERROR_MAX];
};

/* Write the sentence (truncated to fit, never within a character) and return `code`, so that a
 * failure is one line: return slu_fail(err, -EINVAL, "group size \"%s\" is not a number", s);
 */
int slu_fail(struct slu_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put "prefix: " in front of the present text; returns `code`. */
int slu_fail_prefix(struct slu_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
