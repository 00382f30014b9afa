/* A JSON-lines trace: refused with a sentence, or good enough to be run for a while. */
#include "fuzz.h"

#include "sim/jsonl.h"
#include "sim/sim.h"

static int read_lines(struct slu_jsonl *r, const uint8_t *data, size_t size, struct slu_error *err)
{
	int rc = 0;

	for (size_t at = 0; at < size && !rc;) {
		const uint8_t *nl = memchr(data + at, '\n', size - at);
		size_t n = nl ? (size_t)(nl - (data + at)) : size - at;

		rc = slu_jsonl_line(r, (const char *)data + at, n, err);
		at += n + 1;
	}
	return rc ? rc : slu_jsonl_finish(r, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_trace t = { 0 };
	struct slu_jsonl r = { .trace = &t };
	struct slu_error err = { 0 };
	int rc = read_lines(&r, data, size, &err);

	must(rc <= 0 && (rc == 0 || *err.text));
	/* Small worlds are played too, with everything checked. */
	if (!rc && t.job.n && t.job.n < 50 && t.node.n && t.node.n < 64) {
		struct slu_sim_opts o = { .policy = SLU_POLICY_EASY,
					  .until_s = 100000,
					  .verify = true };
		struct slu_sim s;

		memset(&err, 0, sizeof err);
		rc = slu_sim_run(&t, &o, &s, &err);
		must(rc != -EUCLEAN && (rc == 0 || *err.text));
		if (!rc)
			slu_sim_done(&s);
	}
	slu_jsonl_done(&r);
	slu_trace_done(&t);
	return 0;
}
