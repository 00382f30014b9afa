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
