/* A whole session with every allocation failing in turn: it says so, leaks nothing, and a session
 * that was refused memory once still answers. */
#include <string.h>

#include "query/session.h"
#include "tap.h"

static const char graph[] =
	"{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"0-2\", \"children\": {\"core\": "
	"\"0-1\"}}], \"nodelist\": [\"n[0-2]\"], \"properties\": {\"big\": \"1\"}}}";
static const char job[] = "version: 1\n"
			  "resources:\n"
			  "- {type: node, count: 1, with: [{type: slot, count: 1, label: s, with: "
			  "[{type: core, count: 1}]}]}\n"
			  "tasks: [{command: [a], slot: s, count: {per_slot: 1}}]\n"
			  "attributes: {system: {duration: 100, queue: q}}\n";
static const char part[] = "{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"2\", "
			   "\"children\": {\"core\": \"0\"}}], \"nodelist\": [\"n2\"]}}";

static int read_file(void *arg, const char *path, struct slu_buf *out)
{
	return slu_buf_puts(out, !strcmp(path, "graph") ? graph
				 : !strcmp(path, "job") ? job
							: part);
}

static int run(const char *const *lines, FILE *nowhere, const char *policy)
{
	struct slu_query_options o = { .load_file = "graph",
				       .load_format = "rv1exec",
				       .subsystems = "CA",
				       .policy = policy,
				       .traverser = "simple",
				       .format = SLU_FORMAT_RV1 };
	struct slu_session_io io = {
		.out = nowhere, .std = nowhere, .err = nowhere, .read = read_file
	};
	slu_cleanup(slu_session_freep) struct slu_session *s = NULL;
	struct slu_buf msg = SLU_BUF_INIT(4096);
	int rc = slu_session_new(&o, &io, &s, &msg);

	slu_buf_done(&msg);
	for (; !rc && *lines; lines++)
		rc = slu_session_command(s, *lines);
	return rc;
}

int main(void)
{
	static const char *const lines[] = {
		"match allocate job",
		"match allocate_orelse_reserve job",
		"match satisfiability job",
		"update allocate rv1exec part 9 0 10",
		"find sched-now=allocated and (names=n0 or property=big)",
		"set-property /cluster0/n0 a=b",
		"set-status /cluster0/n1 down",
		"partial-cancel 9 rv1exec part",
		"cancel 1",
		"remove 1 false",
		"list",
		NULL,
	};
	static const char *const policy[] = { "first", "low" };
	FILE *nowhere = fopen("/dev/null", "w");

	for (size_t p = 0; p < SLU_LEN(policy); p++) {
		for (long k = 0;; k++) {
			int rc;

			slu_fault_arm(k);
			rc = run(lines, nowhere, policy[p]);
			if (!slu_fault_disarm()) {
				ok(rc == 0 && k > 50, "%s: clean after %ld faults", policy[p], k);
				break;
			}
			if (rc != -ENOMEM)
				ok(false, "%s: allocation %ld: %d", policy[p], k, rc);
		}
	}
	fclose(nowhere);
	return tap_done();
}
