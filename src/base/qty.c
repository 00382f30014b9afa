#include "base/qty.h"

#include <stdio.h>

#define EXP_MAX 100000 /* a larger exponent over- or underflows whatever the digits are */

/* The value is 0.d0d1d2... * 10^point * 2^bits, without leading zeros in front of the point. */
struct parts {
	bool neg;
	uint32_t nd;
	int32_t point;
	uint32_t bits;
	uint8_t d[SLU_QTY_MAX];
};

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "e3", "E-3"; what follows the letter must be a number. */
static int parse_exponent(const char *s, const char *end, int32_t *out)
{
	bool neg = false;
	int32_t v = 0;

	if (s < end && (*s == '+' || *s == '-'))
		neg = *s++ == '-';
	if (s == end)
		return -EINVAL;
	for (; s < end; s++) {
		if (!digit(*s))
			return -EINVAL;
		if (v < EXP_MAX)
			v = v * 10 + (*s - '0');
	}
	*out = neg ? -v : v;
	return 0;
}

static int parse_suffix(const char *s, const char *end, struct parts *q)
{
	static const char dec[] = "num kMGTPE"; /* -9, -6, -3, 0, 3 ... 18 */
	static const char bin[] = "KMGTPE";
	const char *at;
	int32_t e;

	if (s == end)
		return 0;
	if (end - s == 2 && s[1] == 'i' && (at = strchr(bin, s[0]))) {
		q->bits = 10 * (uint32_t)(at - bin + 1);
		return 0;
	}
	if (end - s == 1 && s[0] != ' ' && s[0] && (at = strchr(dec, s[0]))) {
		q->point += 3 * (int32_t)(at - dec) - 9;
		return 0;
	}
	if (s[0] != 'e' && s[0] != 'E')
		return -EINVAL;
	if (parse_exponent(s + 1, end, &e) < 0)
		return -EINVAL;
	q->point += e;
	return 0;
}

static int split_quantity(const char *s, size_t n, struct parts *q)
{
	const char *end = s + n;
	bool any = false;

	*q = (struct parts){ 0 };
	if (s < end && (*s == '+' || *s == '-'))
		q->neg = *s++ == '-';
	for (; s < end && digit(*s); s++) {
		any = true;
		if (*s != '0' || q->nd)
			q->d[q->nd++] = (uint8_t)(*s - '0');
	}
	q->point = (int32_t)q->nd;
	if (s < end && *s == '.') {
		for (s++; s < end && digit(*s); s++) {
			any = true;
			q->d[q->nd++] = (uint8_t)(*s - '0');
		}
	}
	if (!any)
		return -EINVAL;
	while (q->nd && !q->d[q->nd - 1] && q->nd > (q->point > 0 ? (uint32_t)q->point : 0))
		q->nd--; /* "1.500" */
	return parse_suffix(s, end, q);
}

/* Integer part into *v (at most one step beyond what fits), the rest stays as digits f[0..nf). */
static bool integer_part(struct parts *q, unsigned __int128 *v, const unsigned __int128 limit)
{
	int32_t i;

	*v = 0;
	for (i = 0; i < q->point; i++) {
		uint8_t d = (uint32_t)i < q->nd ? q->d[i] : 0;

		if ((uint32_t)i >= q->nd && !*v)
			break; /* zeros only */
		*v = *v * 10 + d;
		if (*v > limit)
			return false;
	}
	return true;
}

int slu_qty_parse(const char *s, size_t n, enum slu_qty_scale scale, int64_t *out,
		  struct slu_error *err)
{
	struct parts q;
	unsigned __int128 v, limit;
	bool fits, frac = false;
	uint32_t at;

	if (n > SLU_QTY_MAX)
		return slu_fail(err, -EINVAL, "a quantity of %zu characters is too long", n);
	if (split_quantity(s, n, &q) < 0)
		return slu_fail(err, -EINVAL, "\"%.*s\" is not a quantity", (int)n, s);
	if (scale == SLU_QTY_MILLI)
		q.point += 3;
	limit = (unsigned __int128)INT64_MAX + (q.neg ? 1 : 0);
	fits = integer_part(&q, &v, limit);
	at = q.point > 0 ? SLU_MIN((uint32_t)q.point, q.nd) : 0;
	/* Binary suffixes come without an exponent, so the fraction starts at digit `at` exactly.
	 * Doubling it digit by digit carries bits into the integer part: exact at any length. */
	for (uint32_t b = 0; fits && b < q.bits; b++) {
		uint8_t carry = 0;

		for (uint32_t i = q.nd; i-- > at;) {
			uint8_t d = (uint8_t)(q.d[i] * 2 + carry);

			carry = d >= 10;
			q.d[i] = (uint8_t)(d - 10 * carry);
		}
		v = v * 2 + carry;
		fits = v <= limit;
	}
	for (uint32_t i = at; i < q.nd; i++)
		frac |= q.d[i] != 0;
	if (fits && frac)
		fits = ++v <= limit;
	if (!fits) {
		*out = q.neg ? INT64_MIN : INT64_MAX;
		return slu_fail(err, -EOVERFLOW, "quantity \"%.*s\" does not fit 64 bits%s", (int)n,
				s, scale == SLU_QTY_MILLI ? " in thousandths" : "");
	}
	*out = q.neg ? (int64_t)(0 - (uint64_t)v) : (int64_t)v;
	return 0;
}

enum slu_qty_scale slu_qty_scale_of(const char *resource)
{
	return strcmp(resource, "cpu") == 0 ? SLU_QTY_MILLI : SLU_QTY_UNIT;
}

size_t slu_qty_format(int64_t v, enum slu_qty_scale scale, enum slu_qty_format form,
		      char text[SLU_QTY_TEXT])
{
	static const char *const dec[] = { "", "k", "M", "G", "T", "P", "E" };
	static const char *const bin[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei" };
	const char *suffix = "";
	int64_t unit = v;

	if (scale == SLU_QTY_MILLI) {
		if (v % 1000)
			return (size_t)snprintf(text, SLU_QTY_TEXT, "%" PRId64 "m", v);
		unit = v / 1000;
	}
	if (unit) {
		bool two = form == SLU_QTY_BINARY && (unit <= -1024 || unit >= 1024);
		int64_t base = two ? 1024 : 1000;
		const char *const *name = two ? bin : dec;

		for (uint32_t i = 0; i < SLU_LEN(dec) && (i == 0 || unit % base == 0); i++) {
			if (i)
				unit /= base;
			suffix = name[i];
		}
	}
	return (size_t)snprintf(text, SLU_QTY_TEXT, "%" PRId64 "%s", unit, suffix);
}

const char *slu_duration_text(int64_t s, char text[SLU_QTY_TEXT])
{
	static const struct {
		int64_t s;
		char name;
	} unit[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	int n = 0;

	for (uint32_t i = 0; i < SLU_LEN(unit); i++) {
		if (s >= unit[i].s || (!n && i == SLU_LEN(unit) - 1))
			n += snprintf(text + n, SLU_QTY_TEXT - (size_t)n, "%" PRId64 "%c",
				      s / unit[i].s, unit[i].name);
		s %= unit[i].s;
	}
	return text;
}
