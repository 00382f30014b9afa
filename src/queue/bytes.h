/* bytes.h — numbers and strings of the event log as bytes; private to queue/.
 *
 * Numbers are little-endian base-128, signed ones zigzag; a string carries its length + 1, so that
 * NULL and "" differ. */
#pragma once
#include "base/buf.h"

static inline void bytes_put_u(struct slu_buf *b, uint64_t v)
{
	while (v >= 128) {
		slu_buf_putc(b, (char)(v | 128));
		v >>= 7;
	}
	slu_buf_putc(b, (char)v);
}

static inline void bytes_put_i(struct slu_buf *b, int64_t v)
{
	bytes_put_u(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline void bytes_put_s(struct slu_buf *b, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	bytes_put_u(b, s ? n + 1 : 0);
	slu_buf_add(b, s, n);
}

/* A cursor that remembers the first thing that went wrong. */
struct bytes_in {
	const uint8_t *p, *end;
	int rc;
};

static inline uint64_t bytes_get_u(struct bytes_in *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		uint8_t c = *r->p++;

		v |= (uint64_t)(c & 127) << shift;
		if (!(c & 128))
			return v;
	}
	if (!r->rc)
		r->rc = -EINVAL;
	return 0;
}

static inline int64_t bytes_get_i(struct bytes_in *r)
{
	uint64_t v = bytes_get_u(r);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint32_t bytes_get_u32(struct bytes_in *r)
{
	uint64_t v = bytes_get_u(r);

	if (v > UINT32_MAX && !r->rc)
		r->rc = -EINVAL;
	return r->rc ? 0 : (uint32_t)v;
}

/* Bytes that follow with their length in front; borrowed from the input. */
static inline const uint8_t *bytes_get_run(struct bytes_in *r, size_t *n)
{
	uint64_t len = bytes_get_u(r);
	const uint8_t *p = r->p;

	if (!r->rc && len > (size_t)(r->end - r->p))
		r->rc = -EINVAL;
	*n = r->rc ? 0 : (size_t)len;
	r->p += *n;
	return r->rc ? NULL : p;
}
