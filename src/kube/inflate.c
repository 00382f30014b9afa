#include "kube/client_internal.h"

#include <zlib.h>

struct kube_inflate {
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

struct kube_inflate *kube_inflate_new(void)
{
	struct kube_inflate *z = slu_calloc(1, sizeof *z);

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

void kube_inflate_free(struct kube_inflate *z)
{
	if (!z)
		return;
	inflateEnd(&z->z);
	slu_free(z);
}

int kube_inflate_feed(struct kube_inflate *z, const uint8_t *p, size_t n, kube_inflate_fn *fn,
		      void *arg)
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

bool kube_inflate_complete(const struct kube_inflate *z)
{
	return z->ended;
}
