/* pb.h — the protobuf wire format: a forward reader over bytes that stay where they are, and a
 * small writer.  No schema: the caller switches on field numbers, and skipping what it does not
 * know costs nothing.
 *
 *	struct slu_pb r = slu_pb(bytes, n);
 *	struct slu_pb_field f;
 *	int rc;
 *	while ((rc = slu_pb_next(&r, &f)) > 0)
 *		if (f.num == 3 && f.wire == SLU_PB_BYTES)
 *			name = slu_pb_dup(&f);
 *	if (rc < 0) ...	// -EPROTO: truncated, a number above 2^29, a group, a varint over 10 bytes
 *
 * The reader never reads outside its bytes and never allocates.  Nested messages are slices: make a
 * reader over f.p, f.n; the depth is the caller's recursion, bounded by the caller's schema. */
#pragma once
#include "base/buf.h"

enum slu_pb_wire {
	SLU_PB_VARINT = 0,
	SLU_PB_FIXED64 = 1,
	SLU_PB_BYTES = 2,
	SLU_PB_FIXED32 = 5,
};

struct slu_pb {
	const uint8_t *p, *end;
};

struct slu_pb_field {
	uint32_t num;
	uint8_t wire;
	uint64_t u;       /* VARINT, FIXED32, FIXED64 */
	const uint8_t *p; /* BYTES: borrowed from the input */
	size_t n;
};

static inline struct slu_pb slu_pb(const void *p, size_t n)
{
	return (struct slu_pb){ p, p ? (const uint8_t *)p + n : NULL };
}

/* The slow half of slu_pb_varint: more than one byte, or the end. */
int slu_pb_varint_long(struct slu_pb *r, uint64_t *out);

static inline int slu_pb_varint(struct slu_pb *r, uint64_t *out)
{
	if (__builtin_expect(r->p < r->end && *r->p < 0x80, 1)) {
		*out = *r->p++;
		return 0;
	}
	return slu_pb_varint_long(r, out);
}

static inline uint64_t slu_pb_load(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* The next field: 1, 0 at the end, -EPROTO. */
static inline int slu_pb_next(struct slu_pb *r, struct slu_pb_field *f)
{
	uint64_t tag, n;

	if (r->p == r->end)
		return 0;
	if (slu_pb_varint(r, &tag) < 0 || tag >> 3 == 0 || tag >> 32)
		return -EPROTO;
	f->num = (uint32_t)(tag >> 3);
	f->wire = tag & 7;
	switch (f->wire) {
	case SLU_PB_VARINT:
		return slu_pb_varint(r, &f->u) < 0 ? -EPROTO : 1;
	case SLU_PB_BYTES:
		if (slu_pb_varint(r, &n) < 0 || n > (size_t)(r->end - r->p))
			return -EPROTO;
		f->p = r->p;
		f->n = (size_t)n;
		r->p += n;
		return 1;
	case SLU_PB_FIXED64:
	case SLU_PB_FIXED32:
		n = f->wire == SLU_PB_FIXED64 ? 8 : 4;
		if (n > (size_t)(r->end - r->p))
			return -EPROTO;
		f->u = slu_pb_load(r->p, (uint32_t)n);
		r->p += n;
		return 1;
	default:
		return -EPROTO;
	}
}

/* A reader over a BYTES field. */
static inline struct slu_pb slu_pb_sub(const struct slu_pb_field *f)
{
	return slu_pb(f->p, f->n);
}

/* sint32, sint64 */
static inline int64_t slu_pb_zigzag(uint64_t u)
{
	return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

/* float, double from a FIXED32 or FIXED64 field. */
static inline double slu_pb_real(const struct slu_pb_field *f)
{
	double d;
	float s;
	uint32_t u32 = (uint32_t)f->u;

	if (f->wire == SLU_PB_FIXED32) {
		memcpy(&s, &u32, sizeof s);
		return (double)s;
	}
	memcpy(&d, &f->u, sizeof d);
	return d;
}

/* A NUL-terminated copy (slu_free); NULL when memory runs out. */
char *slu_pb_dup(const struct slu_pb_field *f);

/* ---- writing; errors stick to the buffer, look at b->error once at the end ---- */

void slu_pb_put_varint(struct slu_buf *b, uint32_t num, uint64_t v);
void slu_pb_put_i64(struct slu_buf *b, uint32_t num, int64_t v); /* int32, int64 */
void slu_pb_put_float(struct slu_buf *b, uint32_t num, float v);
void slu_pb_put_bytes(struct slu_buf *b, uint32_t num, const void *p, size_t n);
/* NULL writes nothing. */
void slu_pb_put_str(struct slu_buf *b, uint32_t num, const char *s);
/* A nested message: everything written between begin and end is inside it.
 *	size_t at = slu_pb_begin(b, 2);
 *	slu_pb_put_str(b, 1, name);
 *	slu_pb_end(b, at);
 */
size_t slu_pb_begin(struct slu_buf *b, uint32_t num);
void slu_pb_end(struct slu_buf *b, size_t at);
