/* Rows of an event log: refused, or replayed to the end; whatever they hold, one sentence says what
 * is wrong. */
#include "fuzz.h"

#include "queue/log.h"

static int seen(void *arg, int64_t at_us, const struct slu_queue *q, const struct slu_decisions *d,
		const struct slu_decision *x)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);

	slu_decision_describe(q, d, x, &b);
	must(b.n > 0);
	slu_buf_done(&b);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slu_replay_opts o = { .decision = seen };
	struct slu_replay *r = NULL;
	uint64_t seq = 1;
	int rc = 0;

	must(slu_replay_new(&o, &r) == 0);
	/* Several rows: two bytes of length before each. */
	while (size > 2 && !rc) {
		size_t n = data[0] | (size_t)data[1] << 8;
		struct slu_error err = { 0 };

		data += 2;
		size -= 2;
		n = n > size ? size : n;
		rc = slu_replay_row(r, seq++, 0, data, n, &err);
		must(rc <= 0 && (rc == 0 || *err.text));
		data += n;
		size -= n;
	}
	must(slu_replay_count(r)->rows >= slu_replay_count(r)->skipped);
	slu_replay_free(r);
	return 0;
}
