/* base64.h — base64 (RFC 4648, with padding), as certificates and patches travel in JSON. */
#pragma once
#include "base/buf.h"

/* Append the decoded bytes; white space between digits is skipped. -EINVAL if the text is not
 * base64; otherwise the buffer's error. */
int slu_base64_decode(const char *s, size_t n, struct slu_buf *out);
int slu_base64_encode(const void *p, size_t n, struct slu_buf *out);
