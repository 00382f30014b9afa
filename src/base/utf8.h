/* utf8.h — text that others can read: what leaves the program is UTF-8, whatever came in. */
#pragma once

#include <stddef.h>

/* As much of `s` as fits into `out`, up to the end of a character; a stray byte becomes '?'.
 * `out` may be `s` itself. */
void slu_utf8_cut(char *out, size_t size, const char *s);
