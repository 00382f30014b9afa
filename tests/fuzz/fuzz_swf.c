/* An SWF log, line by line: whatever is in it, the trace holds only jobs that make sense. */
#include "fuzz.h"

#include "sim/swf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slu_trace t = { 0 };
	struct slu_swf s = { .trace = &t };
	struct slu_error err = { 0 };

	for (size_t at = 0; at < size;) {
		const uint8_t *nl = memchr(data + at, '\n', size - at);
		size_t n = nl ? (size_t)(nl - (data + at)) : size - at;

		must(slu_swf_line(&s, (const char *)data + at, n, &err) == 0);
		at += n + 1;
	}
	for (uint32_t j = 0; j < t.job.n; j++) {
		must(t.job.p[j].run_s > 0 && t.job.p[j].run_s <= t.job.p[j].limit_s);
		must(t.job.p[j].submit_s >= 0 && t.job.p[j].submit_s <= SLU_TRACE_MAX_TIME);
		must(slu_trace_slots(&t, t.job.p[j].req) > 0);
	}
	must(t.job.n + t.dropped + t.malformed == t.records);
	must(s.nnote <= SLU_SWF_NOTES && s.nnote <= t.malformed);
	must(slu_trace_sort(&t) == 0);
	slu_trace_done(&t);
	return 0;
}
