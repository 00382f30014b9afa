/* Plain scalars of YAML: which of them are numbers, truth values or null. */
#include <ctype.h>
#include <math.h>

#include "base/f64.h"
#include "wire/doc_internal.h"

static bool in_set(const char *s, const char *const *set)
{
	for (; *set; set++)
		if (!strcmp(s, *set))
			return true;
	return false;
}

/* Digits of one base with underscores; whole text. */
static bool parse_digits(const char *s, unsigned base, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s || *s == '_')
		return false;
	for (; *s; s++) {
		unsigned d;

		if (*s == '_')
			continue;
		d = isdigit((unsigned char)*s) ? (unsigned)(*s - '0')
		    : isxdigit((unsigned char)*s)
			    ? (unsigned)(tolower((unsigned char)*s) - 'a' + 10)
			    : 99;
		if (d >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, d, &v))
			return false;
	}
	*out = v;
	return true;
}

static bool parse_int(const char *s, struct slu_json *v)
{
	bool neg = *s == '-';
	unsigned base = 10;
	uint64_t u;

	if (*s == '-' || *s == '+')
		s++;
	if (s[0] == '0' && s[1]) {
		char c = s[1];

		base = c == 'x'                    ? 16
		       : c == 'o'                  ? 8
		       : c == 'b'                  ? 2
		       : isdigit((unsigned char)c) ? 8
						   : 10;
		s += c == 'x' || c == 'o' || c == 'b' ? 2 : 0;
	}
	if (!parse_digits(s, base, &u))
		return false;
	if (neg) {
		if (u > (uint64_t)INT64_MAX + 1)
			return false;
		v->tag = TAG_SINT;
		v->u.i64 = (int64_t)(0 - u);
	} else {
		v->tag = TAG_UINT;
		v->u.u64 = u;
	}
	return true;
}

static bool parse_real(const char *s, struct slu_json *v)
{
	static const char *const inf[] = { ".inf", ".Inf", ".INF", NULL };
	static const char *const nan[] = { ".nan", ".NaN", ".NAN", NULL };
	const char *p = s + (*s == '-' || *s == '+');
	size_t digits = 0;

	v->tag = TAG_REAL;
	if (in_set(p, inf)) {
		v->u.f64 = *s == '-' ? -INFINITY : INFINITY;
		return true;
	}
	if (in_set(s, nan)) {
		v->u.f64 = NAN;
		return true;
	}
	for (; isdigit((unsigned char)*p); p++)
		digits++;
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++)
			digits++;
	if (!digits)
		return false;
	if (*p == 'e' || *p == 'E') {
		p++;
		if (*p == '-' || *p == '+')
			p++;
		if (!isdigit((unsigned char)*p))
			return false;
		while (isdigit((unsigned char)*p))
			p++;
	}
	if (*p)
		return false;
	v->u.f64 = slu_f64_parse(s, NULL);
	return true;
}

/* YAML 1.1 as Kubernetes reads it.  False: it is a string. */
bool slu_yaml_resolve(const char *s, struct slu_json *v)
{
	static const char *const null[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const yes[] = { "true", "True", "TRUE", "yes", "Yes", "YES",
					   "on",   "On",   "ON",   "y",   "Y",   NULL };
	static const char *const no[] = { "false", "False", "FALSE", "no", "No", "NO",
					  "off",   "Off",   "OFF",   "n",  "N",  NULL };

	if (isdigit((unsigned char)*s) || *s == '-' || *s == '+' || *s == '.')
		return parse_int(s, v) || parse_real(s, v);
	v->u.u64 = 0;
	v->tag = TAG_NULL;
	if (in_set(s, null))
		return true;
	v->tag = TAG_TRUE;
	if (in_set(s, yes))
		return true;
	v->tag = TAG_FALSE;
	return in_set(s, no);
}
