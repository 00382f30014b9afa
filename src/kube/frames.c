/* frames.c — cut the body of a watch into events. */
#include "kube/codec.h"

/* Bytes of the first frame with its head, 0 if not complete; *skip leads to the payload, *len is
 * its length.  -EMSGSIZE. */
static int64_t whole_frame(const struct slu_kframes *f, const char *p, size_t n, size_t *skip,
			   size_t *len)
{
	const unsigned char *u = (const unsigned char *)p;
	const char *nl;

	if (f->enc == SLU_ENC_PROTOBUF) {
		if (n < 4)
			return 0;
		*skip = 4;
		*len = (size_t)u[0] << 24 | (size_t)u[1] << 16 | (size_t)u[2] << 8 | u[3];
		if (*len > SLU_KCODEC_MAX_FRAME)
			return -EMSGSIZE;
		return n - 4 >= *len ? (int64_t)(*len + 4) : 0;
	}
	nl = memchr(p, '\n', n);
	if (!nl)
		return n > SLU_KCODEC_MAX_FRAME ? -EMSGSIZE : 0;
	*skip = 0;
	*len = (size_t)(nl - p);
	return *len > SLU_KCODEC_MAX_FRAME ? -EMSGSIZE : (int64_t)(*len + 1);
}

/* Hand out every whole frame in p[0..n); *used is the number of bytes they take. */
static int cut_frame(const struct slu_kframes *f, const char *p, size_t n, size_t *used,
		     slu_kframe_fn *fn, void *arg, struct slu_error *err)
{
	*used = 0;
	while (*used < n) {
		size_t skip, len;
		int64_t all = whole_frame(f, p + *used, n - *used, &skip, &len);
		const char *payload = p + *used + skip;
		int rc;

		if (all < 0)
			return slu_fail(err, (int)all, "a watch frame is larger than %d bytes",
					SLU_KCODEC_MAX_FRAME);
		if (all == 0)
			return 0;
		*used += (size_t)all;
		if (f->enc == SLU_ENC_JSON && len == 0)
			continue;
		rc = fn(arg, payload, len);
		if (rc)
			return rc;
	}
	return 0;
}

int slu_kframes_feed(struct slu_kframes *f, const void *p, size_t n, slu_kframe_fn *fn, void *arg,
		     struct slu_error *err)
{
	const char *in = p;
	size_t used = 0;
	int rc;

	f->held.max = SLU_KCODEC_MAX_FRAME + (1u << 20) + n;
	if (f->held.n) {
		rc = slu_buf_add(&f->held, in, n);
		if (rc < 0)
			return slu_fail(err, rc, "no memory for a watch frame");
		rc = cut_frame(f, f->held.p, f->held.n, &used, fn, arg, err);
		slu_buf_shift(&f->held, used);
		return rc;
	}
	rc = cut_frame(f, in, n, &used, fn, arg, err);
	if (rc == 0 && used < n) {
		rc = slu_buf_add(&f->held, in + used, n - used);
		if (rc < 0)
			return slu_fail(err, rc, "no memory for a watch frame");
	}
	if (f->held.n == 0 && f->held.cap > (1u << 20))
		slu_buf_done(&f->held);
	return rc;
}

bool slu_kframes_partial(const struct slu_kframes *f)
{
	return f->held.n > 0;
}

void slu_kframes_done(struct slu_kframes *f)
{
	slu_buf_done(&f->held);
}
