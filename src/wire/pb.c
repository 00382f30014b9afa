#include "wire/pb.h"

int slu_pb_varint_long(struct slu_pb *r, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t c;

		if (r->p == r->end)
			return -EPROTO;
		c = *r->p++;
		if (shift == 63 && c > 1)
			return -EPROTO;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80) {
			*out = v;
			return 0;
		}
	}
	return -EPROTO;
}

char *slu_pb_dup(const struct slu_pb_field *f)
{
	return slu_strndup((const char *)f->p, f->n);
}

static uint32_t encode(uint64_t v, uint8_t out[10])
{
	uint32_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

static void put_raw(struct slu_buf *b, uint64_t v)
{
	uint8_t t[10];

	slu_buf_add(b, t, encode(v, t));
}

static void put_tag(struct slu_buf *b, uint32_t num, enum slu_pb_wire wire)
{
	put_raw(b, (uint64_t)num << 3 | wire);
}

void slu_pb_put_varint(struct slu_buf *b, uint32_t num, uint64_t v)
{
	put_tag(b, num, SLU_PB_VARINT);
	put_raw(b, v);
}

void slu_pb_put_i64(struct slu_buf *b, uint32_t num, int64_t v)
{
	slu_pb_put_varint(b, num, (uint64_t)v);
}

void slu_pb_put_float(struct slu_buf *b, uint32_t num, float v)
{
	uint8_t t[4];
	uint32_t u;

	memcpy(&u, &v, sizeof u);
	for (uint32_t i = 0; i < sizeof t; i++)
		t[i] = (uint8_t)(u >> 8 * i);
	put_tag(b, num, SLU_PB_FIXED32);
	slu_buf_add(b, t, sizeof t);
}

void slu_pb_put_bytes(struct slu_buf *b, uint32_t num, const void *p, size_t n)
{
	put_tag(b, num, SLU_PB_BYTES);
	put_raw(b, n);
	slu_buf_add(b, p, n);
}

void slu_pb_put_str(struct slu_buf *b, uint32_t num, const char *s)
{
	if (s)
		slu_pb_put_bytes(b, num, s, strlen(s));
}

size_t slu_pb_begin(struct slu_buf *b, uint32_t num)
{
	put_tag(b, num, SLU_PB_BYTES);
	return b->n;
}

/* Insert the length in front of what was written since begin; those bytes move by the size of
 * the length. */
void slu_pb_end(struct slu_buf *b, size_t at)
{
	uint8_t t[10];
	size_t n;
	uint32_t len;

	if (b->error)
		return;
	n = b->n - at;
	len = encode(n, t);
	if (slu_buf_add(b, t, len) < 0)
		return;
	memmove(b->p + at + len, b->p + at, n);
	memcpy(b->p + at, t, len);
}
