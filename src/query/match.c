/* match.c — match, multi-match, find. */
#include <stdio.h>
#include <time.h>

#include "graph/read.h"
#include "jobspec/jobspec.h"
#include "query/session_internal.h"

static const struct {
	const char *name;
	enum slu_match_op op;
} ops[] = {
	{ "allocate", SLU_MATCH_ALLOCATE },
	{ "allocate_with_satisfiability", SLU_MATCH_ALLOCATE_SATISFIABILITY },
	{ "allocate_orelse_reserve", SLU_MATCH_ALLOCATE_ORELSE_RESERVE },
	{ "satisfiability", SLU_MATCH_SATISFIABILITY },
	{ "without_allocating", SLU_MATCH_WITHOUT_ALLOCATING },
	{ "without_allocating_future", SLU_MATCH_WITHOUT_ALLOCATING_FUTURE },
};

static bool find_op(struct slu_session *s, const char *name, enum slu_match_op *out)
{
	for (size_t i = 0; i < SLU_LEN(ops); i++) {
		if (!strcmp(name, ops[i].name)) {
			*out = ops[i].op;
			return true;
		}
	}
	slu_session_err(s, "ERROR: unknown subcmd %s\n", name);
	return false;
}

static bool match_books(enum slu_match_op op)
{
	return op <= SLU_MATCH_ALLOCATE_ORELSE_RESERVE;
}

static void print_visits(struct slu_session *s)
{
	fprintf(s->io.std, "INFO: PREORDER VISIT COUNT=%" PRIu64 "\n", s->preorder);
	fprintf(s->io.std, "INFO: POSTORDER VISIT COUNT=%" PRIu64 "\n", s->postorder);
}

/* In the order in which the lines were written, whatever stream they go to. */
static void print_elapse(struct slu_session *s, FILE *f, double took_s)
{
	if (!s->o.elapse)
		return;
	fprintf(f, "INFO: ELAPSE=%f\n", took_s);
	print_visits(s);
}

static void print_satisfiability(struct slu_session *s, bool yes, double took_s)
{
	slu_session_line(s->io.out);
	fprintf(s->io.out, "INFO: %s request\n", yes ? "Satisfiable" : "Unsatisfiable");
	slu_session_line(s->io.out);
	print_elapse(s, s->io.std, took_s);
}

void slu_session_print_match(struct slu_session *s, int64_t jobid, bool booked, int64_t at_s,
			     double took_s)
{
	FILE *f = s->io.out;

	slu_session_line(f);
	fprintf(f, "INFO: JOBID=%" PRIu64 "\n", (uint64_t)jobid);
	fprintf(f, "INFO: RESOURCES=%s\n",
		!booked     ? "MATCHED"
		: at_s == 0 ? "ALLOCATED"
			    : "RESERVED");
	if (at_s == 0)
		fputs("INFO: SCHEDULED AT=Now\n", f);
	else
		fprintf(f, "INFO: SCHEDULED AT=%" PRId64 "\n", at_s);
	print_elapse(s, s->io.std, took_s);
	slu_session_line(f);
}

void slu_session_print_no_match(struct slu_session *s, int64_t jobid, bool satisfiable,
				double took_s)
{
	FILE *f = s->io.out;

	slu_session_line(f);
	fputs("INFO: No matching resources found\n", f);
	if (!satisfiable)
		fputs("INFO: Unsatisfiable request\n", f);
	fprintf(f, "INFO: JOBID=%" PRIu64 "\n", (uint64_t)jobid);
	print_elapse(s, f, took_s);
	slu_session_line(f);
}

/* Match the jobspec in s->text.  Returns 0 or the errno value that decides what is printed;
 * -ENOMEM. */
static int match_text(struct slu_session *s, enum slu_match_op op, int64_t *at_s)
{
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *spec = NULL;
	struct slu_sink sink = slu_writer_sink(s->w);
	struct slu_match_result r = { 0 };
	struct slu_error err = { 0 };
	int rc = slu_jobspec_parse(slu_buf_str(&s->text), s->text.n, &s->g->types, &spec, &err);

	if (rc == -ENOMEM)
		return rc;
	if (rc < 0) {
		slu_session_err(s, "match_allocate: ERROR: Jobspec error for %" PRIu64 ": %s\n",
				(uint64_t)s->counter, err.text);
		return EINVAL;
	}
	rc = slu_match_run(s->m, op, spec, s->counter, 0, &sink, &r);
	rc = slu_session_outcome(s, rc, &r);
	if (rc < 0)
		return rc;
	*at_s = r.at_s;
	if (r.code) {
		if (r.messages && *r.messages)
			slu_session_err(s, "match_allocate: ERROR: %s\n", r.messages);
		else if (r.code != EBUSY && r.code != ENODEV)
			slu_session_err(s, "match_allocate: ERROR: traverser: %s\n",
					strerror(r.code));
		if (r.code != EBUSY && r.code != ENODEV)
			return r.code;
	}
	rc = slu_writer_emit(s->w, &s->result);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0) {
		slu_session_err(s, "match_allocate: ERROR: match writer emit: %s\n", strerror(-rc));
		return -rc;
	}
	if (match_books(op))
		s->counter = slu_session_next_id(s->counter);
	return r.code;
}

/* Returns the errno value of the match, 0 also when the file cannot be read; -ENOMEM. */
static int run_match(struct slu_session *s, enum slu_match_op op, const char *file)
{
	int64_t jobid = s->counter, at_s = 0, start;
	double took_s;
	int code, rc = slu_session_read(s, file);

	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	start = slu_session_clock(s);
	slu_buf_reset(&s->result);
	code = match_text(s, op, &at_s);
	if (code < 0)
		return code;
	took_s = (double)(slu_session_clock(s) - start) / 1e9;
	fwrite(slu_buf_str(&s->result), 1, s->result.n, s->io.out);
	if (op == SLU_MATCH_SATISFIABILITY) {
		print_satisfiability(s, code != ENODEV && code != ENOENT, took_s);
	} else if (code) {
		slu_session_print_no_match(s, jobid, code != ENODEV && code != ENOENT, took_s);
	} else {
		slu_session_print_match(s, jobid, match_books(op), at_s, took_s);
		if (match_books(op) && slu_session_job_set(s, jobid, at_s, file, took_s) < 0)
			return -ENOMEM;
	}
	return code;
}

int slu_query_match(struct slu_session *s, const struct words *a)
{
	enum slu_match_op op;
	int rc;

	if (a->n != 3)
		return slu_session_malformed(s);
	if (!find_op(s, a->w[1], &op))
		return 0;
	rc = run_match(s, op, a->w[2]);
	return rc < 0 ? rc : 0;
}

int slu_query_multi_match(struct slu_session *s, const struct words *a)
{
	enum slu_match_op op;

	if (a->n <= 3)
		return slu_session_malformed(s);
	if (!find_op(s, a->w[1], &op))
		return 0;
	for (uint32_t i = 2; i < a->n; i++) {
		int rc = run_match(s, op, a->w[i]);

		if (rc)
			return rc < 0 ? rc : 0;
	}
	return 0;
}

/* --- find --- */

int slu_query_find(struct slu_session *s, const struct words *a)
{
	struct slu_buf criteria = SLU_BUF_INIT((size_t)16 << 20);
	struct slu_sink sink = slu_writer_sink(s->w);
	struct slu_match_result r = { 0 };
	int rc;

	if (a->n < 2) {
		slu_session_err(s, "ERROR: malformed command: \n");
		return 0;
	}
	for (uint32_t i = 1; i < a->n; i++)
		slu_buf_printf(&criteria, "%s%s", i > 1 ? " " : "", a->w[i]);
	slu_writer_times(s->w, 0, 0);
	rc = criteria.error
		     ? criteria.error
		     : slu_match_find(s->m, slu_buf_str(&criteria), (int64_t)time(NULL), &sink, &r);
	if (rc < 0 && rc != -ENOMEM)
		r.code = -rc;
	slu_buf_reset(&s->result);
	if (rc == -ENOMEM)
		goto out;
	if (r.code) {
		if (r.messages && *r.messages)
			slu_session_err(s, "find%s", r.messages);
		rc = 0;
		goto out;
	}
	rc = slu_writer_emit(s->w, &s->result);
	if (rc < 0) {
		if (rc != -ENOMEM) {
			slu_session_err(s, "find: ERROR: find writer emit: %s\n", strerror(-rc));
			rc = 0;
		}
		goto out;
	}
	fwrite(slu_buf_str(&s->result), 1, s->result.n, s->io.out);
	slu_session_line(s->io.out);
	fprintf(s->io.out, "INFO: EXPRESSION=\"%s\"\n", slu_buf_str(&criteria));
	slu_session_line(s->io.out);
out:
	slu_buf_done(&criteria);
	return rc;
}
