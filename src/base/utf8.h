/* utf8.h — make valid UTF-8 of any input, so that other programs can read every output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Copy as many whole characters of `s` as fit into `out`; a stray byte becomes '?'. `out` may be
 * `s` itself. */
void slu_utf8_cut(char *out, size_t size, const char *s);
/* Whether all `n` bytes are UTF-8: no stray bytes, no overlong forms, no surrogates. */
bool slu_utf8_valid(const char *s, size_t n);
