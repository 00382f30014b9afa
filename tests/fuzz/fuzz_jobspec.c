/* A jobspec through every match operation on a small graph. */
#include "session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const lines[] = {
		"match satisfiability f",
		"match without_allocating f",
		"match allocate f",
		"match allocate_orelse_reserve f",
		"cancel 1",
		"match allocate_with_satisfiability f",
	};
	static const char *const policy[] = { "first", "low" };
	struct fuzz_files files = { (const char *)data, size };

	for (size_t p = 0; p < SLU_LEN(policy); p++) {
		struct slu_session *s = fuzz_session(&files, policy[p], SLU_FORMAT_RV1);

		for (size_t i = 0; i < SLU_LEN(lines); i++)
			must(slu_session_command(s, lines[i]) == 0);
		slu_session_free(s);
	}
	return 0;
}
