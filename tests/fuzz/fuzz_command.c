/* The command language: the first line picks policy and format, every other line is a command. */
#include "session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const policy[] = { "first",   "low",      "hinode",
					      "lonodex", "locality", "variation" };
	struct fuzz_files files = { fuzz_r, sizeof fuzz_r - 1 };
	struct slu_session *s;
	char *text, *line, *rest;
	int n = 0;

	if (size < 2)
		return 0;
	s = fuzz_session(&files, policy[data[0] % SLU_LEN(policy)],
			 (enum slu_format)(data[1] % (SLU_FORMAT_RV1_SHORTHAND + 1)));
	text = rest = strndup((const char *)data + 2, size - 2);
	must(text);
	while ((line = strsep(&rest, "\n")) && n++ < 50)
		if (slu_session_command(s, line))
			break;
	free(text);
	slu_session_free(s);
	return 0;
}
