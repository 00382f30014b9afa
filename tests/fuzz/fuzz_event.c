/* Frames of an event log: refused, or an event that encodes to the same again and that a small
 * queue survives. */
#include "fuzz.h"

#include "queue/codec.h"

static struct slu_queue *small_queue(void)
{
	struct slu_queue_conf c = { .name = "q",
				    .policy = SLU_POLICY_HYBRID,
				    .reservation_depth = 2 };
	struct slu_event conf = { .kind = SLU_EV_QUEUE_SET, .conf = &c };
	struct slu_queue_opts o = { .verify = true };
	struct slu_decisions out = { 0 };
	struct slu_queue *q = NULL;

	must(slu_queue_new(&o, &q, NULL) == 0);
	struct slu_amount total = { (uint32_t)slu_queue_resource(q, "cpu"), 4 };
	struct slu_node_spec n = { .name = "n0", .total = &total, .n_total = 1 };
	struct slu_event node = { .kind = SLU_EV_NODE_ADD, .node_spec = &n };

	must(slu_queue_apply(q, 0, &conf, &out, NULL) == 0);
	must(slu_queue_apply(q, 0, &node, &out, NULL) == 0);
	slu_decisions_done(&out);
	return q;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_queue *q = small_queue();
	struct slu_decisions out = { 0 };

	/* Several frames: two bytes of length before each. */
	while (size > 2) {
		size_t n = data[0] | (size_t)data[1] << 8;
		struct slu_event_box box = { 0 }, back = { 0 };
		struct slu_buf a = SLU_BUF_INIT(1 << 22), b = SLU_BUF_INIT(1 << 22);
		struct slu_error err = { 0 };

		data += 2;
		size -= 2;
		n = n > size ? size : n;
		if (slu_event_decode(data, n, NULL, &box, &err) == 0) {
			must(slu_event_encode(box.now_s, &box.ev, NULL, &a) == 0);
			must(slu_event_decode(a.p, a.n, NULL, &back, &err) == 0);
			must(slu_event_encode(back.now_s, &back.ev, NULL, &b) == 0);
			must(a.n == b.n && !memcmp(a.p, b.p, a.n));
			int rc = slu_queue_apply(q, box.now_s, &box.ev, &out, &err);

			must(rc <= 0 && (rc == 0 || *err.text));
			if (slu_queue_schedule(q, box.now_s, &out, &err) == -EUCLEAN) {
				fprintf(stderr, "%s\n", err.text);
				abort();
			}
			slu_decisions_clear(&out);
		} else {
			must(*err.text);
		}
		slu_event_box_done(&box);
		slu_event_box_done(&back);
		slu_buf_done(&a);
		slu_buf_done(&b);
		data += n;
		size -= n;
	}
	slu_decisions_done(&out);
	slu_queue_free(q);
	return 0;
}
