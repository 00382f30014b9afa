#include "base/utf8.h"

#include "base/base.h"

#include <string.h>

void slu_utf8_cut(char *out, size_t size, const char *s)
{
	size_t n = 0;

	while (*s) {
		const unsigned char *u = (const unsigned char *)s;
		size_t len = *u < 0x80                 ? 1
			     : *u >= 0xC2 && *u < 0xE0 ? 2
			     : *u >= 0xE0 && *u < 0xF0 ? 3
			     : *u >= 0xF0 && *u < 0xF5 ? 4
						       : 0;
		size_t have = 1;

		while (have < len && (u[have] & 0xC0) == 0x80)
			have++;
		if (n + SLU_MAX(len, (size_t)1) >= size)
			break;
		if (have == len) {
			memmove(out + n, s, len);
			n += len;
		} else {
			out[n++] = '?';
		}
		s += have;
	}
	out[n] = '\0';
}

bool slu_utf8_valid(const char *s, size_t n)
{
	const unsigned char *u = (const unsigned char *)s, *end = u + n;

	while (u < end) {
		unsigned char low = 0x80, high = 0xBF; /* of the second byte */
		size_t more;

		if (*u < 0x80) {
			u++;
			continue;
		}
		if (*u < 0xC2 || *u > 0xF4)
			return false;
		more = *u < 0xE0 ? 1 : *u < 0xF0 ? 2 : 3;
		low = *u == 0xE0 ? 0xA0 : *u == 0xF0 ? 0x90 : low;
		high = *u == 0xED ? 0x9F : *u == 0xF4 ? 0x8F : high;
		if ((size_t)(end - u) <= more || u[1] < low || u[1] > high)
			return false;
		for (size_t i = 2; i <= more; i++)
			if ((u[i] & 0xC0) != 0x80)
				return false;
		u += more + 1;
	}
	return true;
}
