/* frames.c — the encodings of gRPC, without sockets: frames, timeouts, escaped messages. */
#include "rpc/grpc.h"

int slu_grpc_timeout(const char *s, int64_t *out)
{
	static const struct {
		char unit;
		int64_t ns;
	} units[] = {
		{ 'H', 3600 * SLU_NS_PER_S },
		{ 'M', 60 * SLU_NS_PER_S },
		{ 'S', SLU_NS_PER_S },
		{ 'm', SLU_NS_PER_MS },
		{ 'u', 1000 },
		{ 'n', 1 },
	};
	int64_t v = 0;
	int digits = 0;

	for (; *s >= '0' && *s <= '9'; s++, digits++)
		v = digits < 8 ? v * 10 + (*s - '0') : v;
	if (!digits || digits > 8 || !s[0] || s[1])
		return -EINVAL;
	for (size_t i = 0; i < SLU_LEN(units); i++)
		if (units[i].unit == *s) {
			if (slu_mul_i64(v, units[i].ns, out) < 0)
				*out = INT64_MAX / 4; /* longer than any client waits */
			return 0;
		}
	return -EINVAL;
}

int slu_grpc_escape(struct slu_buf *b, const char *s)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= 0x20 && c <= 0x7e && c != '%') {
			slu_buf_putc(b, (char)c);
			continue;
		}
		slu_buf_putc(b, '%');
		slu_buf_putc(b, hex[c >> 4]);
		slu_buf_putc(b, hex[c & 15]);
	}
	return b->error;
}

static int begin_frame(struct slu_grpc_frames *f)
{
	if (f->head[0] > 1)
		return -EPROTO;
	f->packed = f->head[0];
	f->want = (size_t)f->head[1] << 24 | (size_t)f->head[2] << 16 | (size_t)f->head[3] << 8 |
		  f->head[4];
	return f->want > f->max ? -EMSGSIZE : 0;
}

int slu_grpc_frames_feed(struct slu_grpc_frames *f, const uint8_t *p, size_t n, size_t *used)
{
	size_t at = 0, k;
	int rc;

	while (f->n_head < sizeof f->head) {
		if (at == n)
			goto more;
		f->head[f->n_head++] = p[at++];
		if (f->n_head == sizeof f->head && (rc = begin_frame(f)) < 0)
			return rc;
	}
	k = SLU_MIN(n - at, f->want - f->got);
	f->body.max = f->max;
	rc = !k ? 0 : f->take ? f->take(f->arg, p + at, k) : slu_buf_add(&f->body, p + at, k);
	if (rc < 0)
		return rc;
	at += k;
	f->got += k;
	if (f->got == f->want) {
		*used = at;
		return 1;
	}
more:
	*used = at;
	return 0;
}

void slu_grpc_frames_next(struct slu_grpc_frames *f)
{
	f->n_head = 0;
	f->want = f->got = 0;
	slu_buf_reset(&f->body);
}

bool slu_grpc_frames_cut(const struct slu_grpc_frames *f)
{
	return f->n_head && (f->n_head < sizeof f->head || f->got < f->want);
}

void slu_grpc_frames_done(struct slu_grpc_frames *f)
{
	slu_buf_done(&f->body);
}
