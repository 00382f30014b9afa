/* sluice-query — the matcher by hand: a stand-in for Fluxion's resource-query. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "query/edit.h"
#include "query/options.h"
#include "query/session.h"

int main(int argc, char **argv)
{
	slu_cleanup(slu_session_freep) struct slu_session *s = NULL;
	struct slu_session_io io = {
		.out = stdout, .std = stdout, .err = stderr, .person = isatty(STDIN_FILENO)
	};
	struct slu_buf msg = SLU_BUF_INIT((size_t)1 << 20);
	struct slu_query_options o;
	int rc = slu_query_options_parse(&o, argc, argv, stderr);

	if (rc)
		return rc > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	rc = slu_session_new(&o, &io, &s, &msg);
	if (rc < 0) {
		if (rc == -ENOMEM)
			fputs("Memory error\n", stderr);
		else
			fprintf(stderr, ": Runtime error: %s\n", slu_buf_str(&msg));
		slu_buf_done(&msg);
		return EXIT_FAILURE;
	}
	slu_buf_done(&msg);
	if (o.elapse)
		slu_session_print_load(s);
	if (o.output && !slu_session_output(s, o.output)) {
		fprintf(stderr, "[ERROR] can't write to --test-output: %s: %s\n", o.output,
			strerror(errno));
		return EXIT_FAILURE;
	}
	rc = slu_query_loop(s, stdin, !o.no_prompt);
	if (rc < 0) {
		fputs("Memory error\n", stderr);
		return EXIT_FAILURE;
	}
	if (!slu_session_written(s)) {
		fprintf(stderr, "[ERROR] can't write all results to %s\n",
			o.output ? o.output : "standard output");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
