#include "net/gzip.h"

#include <zlib.h>

struct slu_gunzip {
	z_stream z;
	bool ended;
};

static void *z_alloc(void *arg, unsigned n, unsigned size)
{
	(void)arg;
	return slu_calloc(n, size);
}

static void z_free(void *arg, void *p)
{
	(void)arg;
	slu_free(p);
}

struct slu_gunzip *slu_gunzip_new(void)
{
	struct slu_gunzip *z = slu_calloc(1, sizeof *z);

	if (!z)
		return NULL;
	z->z.zalloc = z_alloc;
	z->z.zfree = z_free;
	if (inflateInit2(&z->z, 16 + MAX_WBITS) != Z_OK) { /* gzip only */
		slu_free(z);
		return NULL;
	}
	return z;
}

void slu_gunzip_free(struct slu_gunzip *z)
{
	if (!z)
		return;
	inflateEnd(&z->z);
	slu_free(z);
}

int slu_gunzip_feed(struct slu_gunzip *z, const uint8_t *p, size_t n, slu_gunzip_fn *fn, void *arg)
{
	uint8_t out[32 << 10];

	z->z.next_in = (uint8_t *)p;
	z->z.avail_in = (unsigned)n;
	while (z->z.avail_in) {
		int r, rc;

		if (z->ended) {
			/* Another member may follow. */
			if (inflateReset(&z->z) != Z_OK)
				return -EPROTO;
			z->ended = false;
		}
		do {
			z->z.next_out = out;
			z->z.avail_out = sizeof out;
			r = inflate(&z->z, Z_NO_FLUSH);
			if (r == Z_MEM_ERROR)
				return -ENOMEM;
			if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
				return -EPROTO;
			if (sizeof out - z->z.avail_out) {
				rc = fn(arg, out, sizeof out - z->z.avail_out);
				if (rc < 0)
					return rc;
			}
		} while (r == Z_OK && !z->z.avail_out);
		z->ended = r == Z_STREAM_END;
		if (r == Z_BUF_ERROR && z->z.avail_in)
			return -EPROTO;
	}
	return 0;
}

bool slu_gunzip_complete(const struct slu_gunzip *z)
{
	return z->ended;
}

int slu_gzip(const void *p, size_t n, struct slu_buf *out)
{
	z_stream z = { .zalloc = z_alloc, .zfree = z_free };
	int r, rc;

	if (n > UINT32_MAX)
		return out->error = -EMSGSIZE;
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return out->error = -ENOMEM;
	rc = slu_buf_room(out, deflateBound(&z, n));
	if (!rc) {
		z.next_in = (uint8_t *)p;
		z.avail_in = (unsigned)n;
		z.next_out = (uint8_t *)out->p + out->n;
		z.avail_out = (unsigned)deflateBound(&z, n);
		r = deflate(&z, Z_FINISH);
		assert(r == Z_STREAM_END);
		(void)r;
		out->n += z.total_out;
		out->p[out->n] = '\0';
	}
	deflateEnd(&z);
	return rc;
}
