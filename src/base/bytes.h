/* bytes.h — numbers and strings as bytes and back, for the event log.
 *
 * Numbers are little-endian base-128, signed ones zigzag; a string carries its length + 1, so that
 * NULL and "" differ. */
#pragma once
#include "base/buf.h"

static inline void slu_bytes_put_u(struct slu_buf *b, uint64_t v)
{
	if ((b->cap < b->n + 11 || b->max < b->n + 10 || b->error) && slu_buf_room(b, 10) < 0)
		return;
	for (; v >= 128; v >>= 7)
		b->p[b->n++] = (char)(v | 128);
	b->p[b->n++] = (char)v;
	b->p[b->n] = 0;
}

static inline void slu_bytes_put_i(struct slu_buf *b, int64_t v)
{
	slu_bytes_put_u(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

static inline void slu_bytes_put_s(struct slu_buf *b, const char *s)
{
	size_t n = s ? strlen(s) : 0;

	slu_bytes_put_u(b, s ? n + 1 : 0);
	slu_buf_add(b, s, n);
}

/* A cursor that remembers the first thing that went wrong. */
struct slu_bytes_in {
	const uint8_t *p, *end;
	int rc;
};

static inline uint64_t slu_bytes_get_u(struct slu_bytes_in *r)
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

static inline int64_t slu_bytes_get_i(struct slu_bytes_in *r)
{
	uint64_t v = slu_bytes_get_u(r);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint32_t slu_bytes_get_u32(struct slu_bytes_in *r)
{
	uint64_t v = slu_bytes_get_u(r);

	if (v > UINT32_MAX && !r->rc)
		r->rc = -EINVAL;
	return r->rc ? 0 : (uint32_t)v;
}

/* The length of a list whose items take at least one byte each. */
static inline uint32_t slu_bytes_get_n(struct slu_bytes_in *r)
{
	uint32_t n = slu_bytes_get_u32(r);

	if (n > (size_t)(r->end - r->p) && !r->rc)
		r->rc = -EINVAL;
	return r->rc ? 0 : n;
}

/* A copy of the string, which the caller frees; NULL if NULL was written or the input is
 * damaged. */
static inline char *slu_bytes_get_s(struct slu_bytes_in *r)
{
	uint64_t n = slu_bytes_get_u(r);
	char *s;

	if (!n || r->rc)
		return NULL;
	if (n - 1 > (size_t)(r->end - r->p) || memchr(r->p, 0, n - 1)) {
		r->rc = -EINVAL;
		return NULL;
	}
	s = slu_malloc(n);
	if (!s) {
		r->rc = -ENOMEM;
		return NULL;
	}
	memcpy(s, r->p, n - 1);
	s[n - 1] = 0;
	r->p += n - 1;
	return s;
}

/* Bytes that follow with their length in front; borrowed from the input. */
static inline const uint8_t *slu_bytes_get_run(struct slu_bytes_in *r, size_t *n)
{
	uint64_t len = slu_bytes_get_u(r);
	const uint8_t *p = r->p;

	if (!r->rc && len > (size_t)(r->end - r->p))
		r->rc = -EINVAL;
	*n = r->rc ? 0 : (size_t)len;
	r->p += *n;
	return r->rc ? NULL : p;
}
