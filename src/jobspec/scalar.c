#include "jobspec/scalar.h"

#include <ctype.h>
#include <math.h>

#include "base/f64.h"

bool slu_scalar_is_null(const struct slu_json *v)
{
	const char *s = slu_json_str(v);

	if (!s || !slu_json_is_plain(v))
		return false;
	switch (slu_json_count(v)) {
	case 0:
		return true;
	case 1:
		return *s == '~';
	case 4:
		return !strcmp(s, "null") || !strcmp(s, "Null") || !strcmp(s, "NULL");
	default:
		return false;
	}
}

bool slu_scalar_is(const struct slu_json *v)
{
	return slu_json_is_str(v) && !slu_scalar_is_null(v);
}

int slu_scalar_i64(const struct slu_json *v, int64_t lo, int64_t hi, int64_t *out)
{
	const char *s = slu_json_str(v);
	char *end;
	long long n;

	if (!s || !slu_scalar_is(v) || !(isdigit((unsigned char)*s) || *s == '-' || *s == '+') ||
	    (*s == '-' && lo >= 0))
		return -EINVAL;
	/* The usual case, one to nine digits, without a call of the C library. */
	if (*s >= '1' && *s <= '9' && slu_json_count(v) < 10) {
		n = 0;
		for (; isdigit((unsigned char)*s); s++)
			n = n * 10 + (*s - '0');
		end = (char *)(uintptr_t)s;
	} else {
		if (!isdigit((unsigned char)s[*s == '-' || *s == '+']))
			return -EINVAL;
		errno = 0;
		n = strtoll(s, &end, 0);
		if (errno || end == s)
			return -EINVAL;
	}
	while (isspace((unsigned char)*end))
		end++;
	if (*end || n < lo || n > hi)
		return -EINVAL;
	*out = n;
	return 0;
}

static bool one_of(const char *s, const char *a, const char *b, const char *c)
{
	return !strcmp(s, a) || !strcmp(s, b) || !strcmp(s, c);
}

int slu_scalar_f64(const struct slu_json *v, double *out)
{
	const char *s = slu_json_str(v), *p;
	char *end;
	double d;

	if (!s || !slu_scalar_is(v))
		return -EINVAL;
	p = s + (*s == '-' || *s == '+');
	if (one_of(p, ".inf", ".Inf", ".INF") || one_of(p, "+.inf", "+.Inf", "+.INF")) {
		*out = *s == '-' ? -INFINITY : INFINITY;
		return 0;
	}
	if (one_of(s, ".nan", ".NaN", ".NAN")) {
		*out = NAN;
		return 0;
	}
	/* strtod would also take "inf", "nan" and hexadecimal numbers. */
	for (const char *c = p; *c && !isspace((unsigned char)*c); c++)
		if (!isdigit((unsigned char)*c) && !strchr(".eE+-", *c))
			return -EINVAL;
	if (!isdigit((unsigned char)*p) && *p != '.')
		return -EINVAL;
	errno = 0;
	d = slu_f64_parse(s, &end);
	if (end == s || isinf(d))
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	if (*end)
		return -EINVAL;
	*out = d;
	return 0;
}

int slu_scalar_char(const struct slu_json *v, char *out)
{
	const char *s = slu_json_str(v);

	if (!slu_scalar_is(v) || !*s)
		return -EINVAL;
	for (const char *p = s + 1; *p; p++)
		if (!isspace((unsigned char)*p))
			return -EINVAL;
	*out = *s;
	return 0;
}

const struct slu_json *slu_key(const struct slu_json *obj, const char *key)
{
	size_t n = strlen(key);

	slu_json_each (obj, it)
		if (it.obj && slu_json_count(it.keyval) == n && !memcmp(it.key, key, n))
			return it.val;
	return NULL;
}
