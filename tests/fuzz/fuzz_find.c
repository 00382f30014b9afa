/* Find criteria over a graph with a job, a reservation, a property and a node down. */
#include "session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct slu_session *s;
	char *line = NULL, *text = strndup((const char *)data, size);

	must(text);
	if (!s) {
		s = fuzz_session(NULL, "low", SLU_FORMAT_JGF);
		slu_session_command(s, "match allocate job");
		slu_session_command(s, "update reserve rv1exec r 7 50 10");
		slu_session_command(s, "set-property /c0/n1 big=1");
		slu_session_command(s, "set-status /c0/n2 down");
	}
	must(asprintf(&line, "find %s", text) > 0);
	slu_session_command(s, line);
	free(line);
	free(text);
	return 0;
}
