/* listed.c — commands that read a file of a job's resources: update, partial-cancel. */
#include <stdio.h>

#include "graph/read.h"
#include "query/session_internal.h"

/* The file into s->text, if there is a reader of this name among those the command has. */
static int read_file(struct slu_session *s, const char *reader, const char *const *readers,
		     const char *file)
{
	for (; *readers; readers++)
		if (!strcmp(reader, *readers))
			return slu_session_read(s, file);
	slu_session_err(s, "ERROR: unsupported reader %s\n", reader);
	return -EINVAL;
}

/* --- update --- */

static int run_update(struct slu_session *s, const char *reader, const char *file, int64_t jobid,
		      int64_t at_s, int64_t duration_s)
{
	struct slu_sink sink = slu_writer_sink(s->w);
	struct slu_match_result r = { 0 };
	struct slu_listing l = { 0 };
	int64_t start = slu_session_clock(s);
	double took_s;
	int rc;

	rc = !strcmp(reader, "rv1exec") ? slu_rv1_listing(&l, slu_buf_str(&s->text), s->text.n)
					: slu_jgf_listing(&l, slu_buf_str(&s->text), s->text.n,
							  !strcmp(reader, "jgf_shorthand"), true);
	if (!rc)
		rc = slu_match_update(s->m, &l, jobid, at_s, duration_s, false, &sink, &r);
	slu_listing_done(&l);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		r.code = -rc;
	if (r.code) {
		slu_session_err(s, "ERROR: traverser run () returned error \n");
		if (r.messages && *r.messages)
			slu_session_err(s, "ERROR: %s", r.messages);
	}
	slu_buf_reset(&s->result);
	if (slu_writer_emit(s->w, &s->result) == -ENOMEM)
		return -ENOMEM;
	fwrite(slu_buf_str(&s->result), 1, s->result.n, s->io.out);
	took_s = (double)(slu_session_clock(s) - start) / 1e9;
	s->min_s = SLU_MIN(s->min_s, took_s);
	s->max_s = SLU_MAX(s->max_s, took_s);
	s->sum_s += took_s;
	if (r.code)
		slu_session_print_no_match(s, jobid, true, took_s);
	else
		slu_session_print_match(s, jobid, true, at_s, took_s);
	s->counter = slu_session_next_id(jobid);
	return r.code ? 0 : slu_session_job_set(s, jobid, at_s, file, took_s);
}

int slu_query_update(struct slu_session *s, const struct words *a)
{
	static const char *const readers[] = { "jgf", "rv1exec", "jgf_shorthand", NULL };
	int64_t jobid, at_s, duration_s;
	struct job *j;
	int rc;

	if (a->n != 7)
		return slu_session_malformed(s);
	if (strcmp(a->w[1], "allocate") != 0 && strcmp(a->w[1], "reserve") != 0) {
		slu_session_err(s, "ERROR: unknown subcmd %s\n", a->w[1]);
		return 0;
	}
	rc = read_file(s, a->w[2], readers, a->w[3]);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	jobid = strtoll(a->w[4], NULL, 10);
	j = slu_session_job(s, jobid);
	if (j && (j->allocated || j->reserved)) {
		slu_session_err(s, "ERROR: existing Jobid \n");
		return 0;
	}
	at_s = strtoll(a->w[5], NULL, 10);
	duration_s = strtoll(a->w[6], NULL, 10);
	if (at_s < 0 || duration_s == 0) {
		slu_session_err(s, "ERROR: invalid time (%" PRId64 ", %" PRIu64 ")\n", at_s,
				(uint64_t)duration_s);
		return 0;
	}
	return run_update(s, a->w[2], a->w[3], jobid, at_s, duration_s);
}

/* --- partial-cancel --- */

static int partial_cancel(struct slu_session *s, struct job *j, const char *reader)
{
	struct slu_match_result r = { 0 };
	struct slu_listing l = { 0 };
	bool full = false;
	int rc;

	rc = !strcmp(reader, "rv1exec")
		     ? slu_rv1_rank_listing(&l, slu_buf_str(&s->text), s->text.n)
		     : slu_jgf_listing(&l, slu_buf_str(&s->text), s->text.n, false, false);
	if (!rc)
		rc = slu_match_partial_cancel(s->m, j->id, &l, &full, &r);
	slu_listing_done(&l);
	rc = slu_session_outcome(s, rc, &r);
	if (rc < 0)
		return rc;
	if (r.code) {
		fputs(r.messages ? r.messages : "", s->io.std);
		fflush(s->io.std);
		slu_session_err(s, "ERROR: error encountered while removing job %" PRIu64 "\n",
				(uint64_t)j->id);
	} else if (full) {
		j->state = JOB_CANCELED;
		j->allocated = false;
	}
	return 0;
}

int slu_query_partial_cancel(struct slu_session *s, const struct words *a)
{
	static const char *const readers[] = { "jgf", "rv1exec", NULL };
	struct job *j;
	int64_t id;
	int rc;

	if (a->n < 4 || a->n > 5)
		return slu_session_malformed(s);
	rc = read_file(s, a->w[2], readers, a->w[3]);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	id = strtoll(a->w[1], NULL, 10);
	j = slu_session_job(s, id);
	if (j && j->allocated) {
		rc = partial_cancel(s, j, a->w[2]);
		if (rc < 0)
			return rc;
	} else if (j && j->reserved) {
		slu_session_err(s,
				"ERROR: reservations not currently supported by partial cancel\n");
		return 0;
	} else {
		slu_session_err(s, "ERROR: nonexistent job %" PRIu64 "\n", (uint64_t)id);
		return 0;
	}
	if (a->n == 5 && !strcmp(a->w[4], "stats"))
		slu_session_counts(s, "PARTIAL ");
	return 0;
}
