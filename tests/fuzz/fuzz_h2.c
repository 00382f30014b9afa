/* Bytes of a peer to the HTTP/2 machine, as server (even first byte; the preface is ours) or as
 * client (odd).  Every stream is closed exactly once. */
#include "fuzz.h"
#include "net/h2.h"

static long opened, closed;

static void on_head(void *arg, struct slu_h2_stream *s)
{
	must(slu_h2_headers(s)->text.n <= 4096);
	slu_h2_set_user(s, arg);
}
static void on_data(void *arg, struct slu_h2_stream *s, const uint8_t *p, size_t n)
{
	(void)arg, (void)p;
	slu_h2_consume(s, n);
}
static void server_end(void *arg, struct slu_h2_stream *s)
{
	struct slu_h2_header h[] = { { ":status", "200", 3, false }, { "x", "y", 1, false } };
	struct slu_headers trailers = { 0 };

	(void)arg;
	slu_headers_put(&trailers, "sum", "1");
	if (!slu_h2_respond(s, h, 2, true)) {
		must(!slu_h2_body(s, "hello", 5));
		must(!slu_h2_body_end(s, &trailers));
	}
	slu_headers_done(&trailers);
}
static void client_end(void *arg, struct slu_h2_stream *s)
{
	(void)arg;
	must(slu_h2_status(s) >= 200);
}
static void on_closed(void *arg, struct slu_h2_stream *s, uint32_t code, bool refused)
{
	(void)arg, (void)s, (void)code, (void)refused;
	closed++;
}
static void nothing(void *arg)
{
	(void)arg;
}
static void on_goaway(void *arg, uint32_t code, const char *text)
{
	(void)arg;
	must(slu_h2_code_name(code) && text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	struct slu_h2_options o = { .max_header_bytes = 4096, .max_streams = 10 };
	struct slu_h2_ops ops = { .head = on_head,
				  .data = on_data,
				  .end = client_end,
				  .closed = on_closed,
				  .goaway = on_goaway,
				  .pong = nothing,
				  .settings = nothing };
	struct slu_buf out = SLU_BUF_INIT(64 << 20);
	struct slu_h2 *h;
	size_t step;
	int rc = 0;

	if (size < 2)
		return 0;
	o.server = !(data[0] & 1);
	step = data[1] ? data[1] : size;
	data += 2;
	size -= 2;
	opened = closed = 0;
	if (o.server)
		ops.end = server_end;
	h = slu_h2_new(&o, &ops, NULL);
	must(h);
	if (o.server) {
		rc = slu_h2_recv(h, (const uint8_t *)preface, sizeof preface - 1, NULL);
	} else {
		struct slu_h2_header q[] = { { ":method", "POST", 4, false },
					     { ":scheme", "https", 5, false },
					     { ":authority", "h", 1, false },
					     { ":path", "/", 1, false } };

		for (int i = 0; i < 3; i++) {
			struct slu_h2_stream *s;

			must(!slu_h2_request(h, q, 4, "body", 4, false, NULL, &s));
			opened++;
		}
	}
	for (size_t i = 0; i < size && !rc; i += step) {
		if (slu_h2_send(h, &out, 64 << 10, NULL) < 0)
			break;
		slu_buf_reset(&out);
		rc = slu_h2_recv(h, data + i, SLU_MIN(size - i, step), NULL);
	}
	slu_h2_send(h, &out, 1 << 20, NULL);
	slu_h2_free(h);
	must(o.server || closed == opened);
	slu_buf_done(&out);
	return 0;
}
