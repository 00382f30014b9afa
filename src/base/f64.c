#include "base/f64.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* The locale "C" alone is a constant of the C library, so newlocale() allocates nothing. */
static locale_t c_locale(void)
{
	return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double slu_f64_parse(const char *s, char **end)
{
	locale_t c = c_locale();
	double v = c ? strtod_l(s, end, c) : strtod(s, end);

	if (c)
		freelocale(c);
	return v;
}

void slu_f64_print(char *out, size_t size, int digits, double v)
{
	locale_t c = c_locale(), own = uselocale(c);

	snprintf(out, size, "%.*g", digits, v);
	uselocale(own);
	if (c)
		freelocale(c);
}
