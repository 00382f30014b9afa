/* RFC 3339 times, as Kubernetes writes them in JSON. */
#include "kube/time.h"

#include <stdio.h>

/* Days from 1970-01-01 to a date of the Gregorian calendar (Hinnant, "chrono-compatible low-level
 * date algorithms"). */
static int64_t days_from_civil(int64_t y, int m, int d)
{
	int64_t era, yoe, doy;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = y - era * 400;
	doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
	return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static int parse_digits(const char *p, int digits, int lo, int hi, int *out)
{
	int v = 0;

	for (int i = 0; i < digits; i++) {
		if (p[i] < '0' || p[i] > '9')
			return -EINVAL;
		v = v * 10 + (p[i] - '0');
	}
	if (v < lo || v > hi)
		return -EINVAL;
	*out = v;
	return 0;
}

int slu_ktime_parse(const char *p, size_t n, int64_t *us)
{
	static const int8_t len[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, mo, d, h, mi, s, oh = 0, om = 0;
	int64_t frac = 0, t;
	size_t i = 19;
	bool leap;

	if (n < 20 || n > 40 || p[4] != '-' || p[7] != '-' || (p[10] != 'T' && p[10] != 't') ||
	    p[13] != ':' || p[16] != ':')
		return -EINVAL;
	if (parse_digits(p, 4, 1, 9999, &y) || parse_digits(p + 5, 2, 1, 12, &mo) ||
	    parse_digits(p + 8, 2, 1, 31, &d) || parse_digits(p + 11, 2, 0, 23, &h) ||
	    parse_digits(p + 14, 2, 0, 59, &mi) || parse_digits(p + 17, 2, 0, 60, &s))
		return -EINVAL;
	leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
	if (d > len[mo - 1] + (mo == 2 && leap))
		return -EINVAL;
	if (p[i] == '.') {
		int64_t unit = 100000;

		for (i++; i < n && p[i] >= '0' && p[i] <= '9'; i++, unit /= 10)
			frac += unit * (p[i] - '0');
		if (i == 20)
			return -EINVAL;
	}
	if (i == n)
		return -EINVAL;
	t = days_from_civil(y, mo, d) * 86400 + h * 3600 + mi * 60 + s;
	if (p[i] == 'Z' || p[i] == 'z') {
		if (i + 1 != n)
			return -EINVAL;
	} else {
		if ((p[i] != '+' && p[i] != '-') || i + 6 != n || p[i + 3] != ':' ||
		    parse_digits(p + i + 1, 2, 0, 23, &oh) ||
		    parse_digits(p + i + 4, 2, 0, 59, &om))
			return -EINVAL;
		t -= (p[i] == '-' ? -1 : 1) * (oh * 3600 + om * 60);
	}
	*us = t * 1000000 + frac;
	return 0;
}

/* The inverse of days_from_civil, same source. */
static void civil_from_days(int64_t z, int64_t *y, int *m, int *d)
{
	int64_t era, doe, yoe, doy, mp;

	z += 719468;
	era = (z >= 0 ? z : z - 146096) / 146097;
	doe = z - era * 146097;
	yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	mp = (5 * doy + 2) / 153;
	*d = (int)(doy - (153 * mp + 2) / 5 + 1);
	*m = (int)(mp < 10 ? mp + 3 : mp - 9);
	*y = yoe + era * 400 + (*m <= 2);
}

void slu_ktime_format(int64_t us, bool micro, char text[SLU_KTIME_TEXT])
{
	int64_t s = us / 1000000, frac = us % 1000000, days, sec, y;
	int m, d;

	if (frac < 0) {
		frac += 1000000;
		s--;
	}
	days = s / 86400;
	sec = s % 86400;
	if (sec < 0) {
		sec += 86400;
		days--;
	}
	civil_from_days(days, &y, &m, &d);
	if (micro)
		snprintf(text, SLU_KTIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (int)y, m, d,
			 (int)(sec / 3600), (int)(sec / 60 % 60), (int)(sec % 60), (int)frac);
	else
		snprintf(text, SLU_KTIME_TEXT, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)y, m, d,
			 (int)(sec / 3600), (int)(sec / 60 % 60), (int)(sec % 60));
}
