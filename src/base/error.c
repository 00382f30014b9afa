#include "base/error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int slu_fail(struct slu_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof err->text, fmt, ap);
		va_end(ap);
		slu_utf8_cut(err->text, sizeof err->text, err->text);
	}
	return code;
}

int slu_fail_prefix(struct slu_error *err, int code, const char *fmt, ...)
{
	char old[SLU_ERROR_MAX];
	va_list ap;
	int n;

	if (!err)
		return code;
	memcpy(old, err->text, sizeof old);
	va_start(ap, fmt);
	n = vsnprintf(err->text, sizeof err->text, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n + 3 < sizeof err->text)
		snprintf(err->text + n, sizeof err->text - (size_t)n, "%s%s", *old ? ": " : "",
			 old);
	slu_utf8_cut(err->text, sizeof err->text, err->text);
	return code;
}
