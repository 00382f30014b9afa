/* gRPC's frames in pieces of any size: the same messages come out, whatever the pieces; timeouts and
 * sentences, too.  First byte: the size of the pieces. */
#include "fuzz.h"
#include "rpc/grpc.h"

#define MAX 4096

static int take(void *arg, const uint8_t *p, size_t n)
{
	must(n > 0);
	return slu_buf_add(arg, p, n);
}

/* Feeds everything in pieces, kept or taken; the number of messages, or what went wrong.  `sum` mixes
 * their bytes. */
static long feed(const uint8_t *p, size_t n, size_t piece, bool takes, uint64_t *sum)
{
	struct slu_buf taken = SLU_BUF_INIT(MAX);
	struct slu_grpc_frames f = { .max = MAX, .take = takes ? take : NULL, .arg = &taken };
	struct slu_buf *body = takes ? &taken : &f.body;
	long messages = 0;
	int rc = 0;

	*sum = 0;
	while (n && rc >= 0) {
		size_t k = n < piece ? n : piece, used = 0;

		rc = slu_grpc_frames_feed(&f, p, k, &used);
		if (rc < 0)
			break;
		must(used <= k && (rc == 1 || used == k));
		must(body->n <= MAX && body->n <= f.want);
		p += used;
		n -= used;
		if (rc == 1) {
			must(body->n == f.want && !slu_grpc_frames_cut(&f));
			for (size_t i = 0; i < body->n; i++)
				*sum = *sum * 31 + (uint8_t)body->p[i];
			*sum = *sum * 31 + f.packed;
			messages++;
			slu_grpc_frames_next(&f);
			slu_buf_reset(&taken);
		}
	}
	slu_grpc_frames_done(&f);
	slu_buf_done(&taken);
	return rc < 0 ? rc : messages;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	uint64_t whole, pieces;
	char text[64];
	int64_t ns = 0;
	size_t n;

	if (!size)
		return 0;
	for (int takes = 0; takes < 2; takes++) {
		must(feed(data + 1, size - 1, size, false, &whole) ==
		     feed(data + 1, size - 1, 1 + data[0] % 7, takes, &pieces));
		must(whole == pieces);
	}
	n = size - 1 < sizeof text - 1 ? size - 1 : sizeof text - 1;
	memcpy(text, data + 1, n);
	text[n] = '\0';
	must(slu_grpc_timeout(text, &ns) < 0 || ns >= 0);
	must(slu_grpc_escape(&b, text) == 0);
	for (size_t i = 0; i < b.n; i++)
		must(b.p[i] >= 0x20 && b.p[i] <= 0x7e);
	slu_buf_done(&b);
	return 0;
}
