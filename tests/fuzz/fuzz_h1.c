/* Bytes of a client to the HTTP/1.1 machine, in pieces; every request is answered. */
#include "fuzz.h"
#include "net/h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_h1_options o = { .max_body = 4096, .max_header_bytes = 2048 };
	struct slu_h1 *h;
	struct slu_buf out = SLU_BUF_INIT(64 << 20);
	size_t step, answers = 0;
	bool open = true;

	if (!size)
		return 0;
	step = data[0] ? data[0] : size;
	data++;
	size--;
	h = slu_h1_new(&o);
	must(h);
	for (size_t i = 0; i < size && open; i += step) {
		int rc = slu_h1_recv(h, data + i, SLU_MIN(size - i, step));

		if (rc < 0)
			break;
		while (open && slu_h1_state(h) == SLU_H1_READY) {
			bool chunked = answers++ % 2;

			must(slu_h1_body(h)->n <= o.max_body);
			must(slu_h1_headers(h)->text.n <= o.max_header_bytes);
			must(slu_h1_target(h) && slu_h1_method(h));
			must(!slu_h1_respond(h, 200, NULL, chunked ? -1 : 2));
			must(!slu_h1_write(h, "ok", 2) && !slu_h1_end(h, NULL));
			open = slu_h1_keep_alive(h);
			must(!slu_h1_send(h, &out));
			slu_buf_reset(&out);
			if (open && slu_h1_next(h) < 0)
				open = false;
		}
		if (slu_h1_state(h) == SLU_H1_BAD) {
			must(slu_h1_bad_status(h) >= 400 && slu_h1_bad_status(h) < 600);
			must(!slu_h1_keep_alive(h) && *slu_h1_bad_reason(h));
			break;
		}
	}
	slu_h1_free(h);
	slu_buf_done(&out);
	return 0;
}
