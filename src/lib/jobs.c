/* jobs.c — the functions of sluice.h on jobs of a graph: match, register, cancel. */
#include "graph/read.h"
#include "lib/graph_internal.h"
#include "jobspec/jobspec.h"
#include "wire/json.h"
#include "wire/jsonw.h"

void sluice_match_done(struct sluice_match *r)
{
	slu_free(r->text);
	*r = (struct sluice_match){ 0 };
}

static bool op_books(enum sluice_op op)
{
	return op <= SLUICE_ALLOCATE_OR_RESERVE;
}

static int translate(enum sluice_op op, enum slu_match_op *out)
{
	static const enum slu_match_op to[] = {
		[SLUICE_ALLOCATE] = SLU_MATCH_ALLOCATE,
		[SLUICE_ALLOCATE_SATISFIABLE] = SLU_MATCH_ALLOCATE_SATISFIABILITY,
		[SLUICE_ALLOCATE_OR_RESERVE] = SLU_MATCH_ALLOCATE_ORELSE_RESERVE,
		[SLUICE_SATISFIABLE] = SLU_MATCH_SATISFIABILITY,
		[SLUICE_MATCH] = SLU_MATCH_WITHOUT_ALLOCATING,
		[SLUICE_MATCH_LATER] = SLU_MATCH_WITHOUT_ALLOCATING_FUTURE,
	};

	if (op < SLUICE_ALLOCATE || op > SLUICE_MATCH_LATER)
		return -EINVAL;
	*out = to[op];
	return 0;
}

/* After a match: keep the text, the job and the result; if memory runs out, cancel the match. */
static int keep_match(struct sluice_graph *g, enum sluice_op op, uint64_t id, int64_t now_s,
		      const struct slu_match_result *r, struct sluice_match *out,
		      struct sluice_error *err)
{
	struct slu_match_result undo = { 0 };
	char *text = NULL;
	int rc = 0;

	if (op != SLUICE_SATISFIABLE)
		rc = lib_text(g->w, &text);
	if (rc < 0) {
		if (op_books(op))
			slu_match_cancel(g->m, (int64_t)id, &undo);
		if (rc != -ENOMEM)
			lib_fail(g, err, rc, "match", "the result cannot be written: %s",
				 strerror(-rc));
		return rc;
	}
	if (op_books(op))
		lib_job_put(g, id, r->at_s > now_s ? SLUICE_RESERVED : SLUICE_ALLOCATED, r->at_s,
			    r->end_s);
	if (out) {
		slu_free(out->text);
		*out = (struct sluice_match){ .job = op_books(op) ? id : SLUICE_NO_JOB,
					      .start_s = r->at_s,
					      .end_s = r->end_s,
					      .text = text };
	} else {
		slu_free(text);
	}
	return op != SLUICE_SATISFIABLE && r->at_s > now_s ? SLUICE_LATER : SLUICE_NOW;
}

static int match_jobspec(struct sluice_graph *g, enum sluice_op op, int64_t now_s, uint64_t id,
			 const char *jobspec, size_t n, struct sluice_match *out,
			 struct sluice_error *err)
{
	slu_cleanup(slu_jobspec_freep) struct slu_jobspec *spec = NULL;
	struct slu_sink sink = slu_writer_sink(g->w);
	struct slu_match_result r = { 0 };
	struct slu_error e = { 0 };
	enum slu_match_op mop;
	int rc = translate(op, &mop);

	if (rc < 0)
		return lib_fail(g, err, rc, "match", "there is no operation %d", (int)op);
	rc = slu_jobspec_parse(jobspec, n, &g->g->types, &spec, &e);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		return lib_fail(g, err, -EINVAL, "match", "jobspec of job %" PRIu64 ": %s", id,
				e.text);
	if (op_books(op) && lib_job_room(g, id) < 0)
		return -ENOMEM;
	rc = slu_match_run(g->m, mop, spec, (int64_t)id, now_s,
			   op == SLUICE_SATISFIABLE ? NULL : &sink, &r);
	if (rc < 0) {
		slu_writer_reset(g->w);
		return rc;
	}
	if (!r.code)
		return keep_match(g, op, id, now_s, &r, out, err);
	slu_writer_reset(g->w);
	if (r.messages && *r.messages)
		lib_fail(g, err, 0, "match", "%s", r.messages);
	if (r.code == EBUSY)
		return SLUICE_BUSY;
	if (r.code == ENODEV)
		return SLUICE_NEVER;
	if (!r.messages || !*r.messages)
		lib_fail(g, err, 0, "match", "%s", strerror(r.code));
	return -r.code;
}

int sluice_graph_match(struct sluice_graph *g, enum sluice_op op, int64_t now_s,
		       const char *jobspec, size_t n, struct sluice_match *out,
		       struct sluice_error *err)
{
	int rc;

	/* Skip the numbers that the caller chose for jobs of its own. */
	while (op_books(op) && slu_match_has_job(g->m, (int64_t)g->next))
		g->next++;
	rc = match_jobspec(g, op, now_s, g->next, jobspec, n, out, err);
	if (rc >= 0 && op_books(op))
		g->next++;
	return rc;
}

int sluice_graph_match_as(struct sluice_graph *g, enum sluice_op op, int64_t now_s, uint64_t job,
			  const char *jobspec, size_t n, struct sluice_match *out,
			  struct sluice_error *err)
{
	if (job > INT64_MAX)
		return lib_fail(g, err, -EINVAL, "match", "job %" PRIu64 " is above 2^63", job);
	if (op_books(op) && slu_match_has_job(g->m, (int64_t)job))
		return lib_fail(g, err, -EEXIST, "match", "job %" PRIu64 " is known", job);
	return match_jobspec(g, op, now_s, job, jobspec, n, out, err);
}

int sluice_graph_allocate(struct sluice_graph *g, bool reserve, int64_t now_s, const char *jobspec,
			  size_t n, struct sluice_match *out, struct sluice_error *err)
{
	return sluice_graph_match(g, reserve ? SLUICE_ALLOCATE_OR_RESERVE : SLUICE_ALLOCATE, now_s,
				  jobspec, n, out, err);
}

int sluice_graph_satisfiable(struct sluice_graph *g, const char *jobspec, size_t n,
			     struct sluice_error *err)
{
	int rc = sluice_graph_match(g, SLUICE_SATISFIABLE, 0, jobspec, n, NULL, err);

	return rc < 0 ? rc : rc == SLUICE_NOW;
}

/* ---- R ---- */

/* The contents of an R: resources, and a time. */
struct r_text {
	struct slu_listing l;
	int64_t start_s, duration_s;
};

static int list_as(struct r_text *r, const char *format, const char *text, size_t n, bool part)
{
	if (!strcmp(format, "rv1exec") || !strcmp(format, "rv1exec_force"))
		return part ? slu_rv1_rank_listing(&r->l, text, n)
			    : slu_rv1_listing(&r->l, text, n);
	if (!strcmp(format, "jgf") || !strcmp(format, "jgf_shorthand"))
		return slu_jgf_listing(&r->l, text, n, !part && !strcmp(format, "jgf_shorthand"),
				       !part);
	return -ENOTSUP;
}

/* The reader for the scheduling section that `writer` wrote; NULL if there is none. */
static const char *reader_of(const char *writer)
{
	if (!writer || !strcmp(writer, "fluxion") || !strcmp(writer, "fluxion:jgf"))
		return "jgf";
	if (!strcmp(writer, "fluxion:jgf_shorthand"))
		return "jgf_shorthand";
	return NULL;
}

static int read_envelope(struct sluice_graph *g, struct r_text *r, const struct slu_json *root,
			 const char *text, size_t n, bool part, const char *what,
			 struct sluice_error *err)
{
	const struct slu_json *exec = slu_json_get(root, "execution");
	const struct slu_json *sched = slu_json_get(root, "scheduling");
	struct slu_buf b = SLU_BUF_INIT(LIB_TEXT_MAX);
	double start = 0, end = 0;
	const char *reader;
	struct slu_jsonw w;
	int rc;

	slu_json_f64(slu_json_get(exec, "starttime"), &start);
	slu_json_f64(slu_json_get(exec, "expiration"), &end);
	if (!(start >= 0 && start < 9e15 && end < 9e15))
		return lib_fail(g, err, -EINVAL, what, "the times of R make no sense");
	r->start_s = (int64_t)start;
	if (end > start && (int64_t)(end - start))
		r->duration_s = (int64_t)(end - start);
	if (!sched)
		return list_as(r, "rv1exec", text, n, part);
	reader = reader_of(slu_json_str(slu_json_get(sched, "writer")));
	if (!reader)
		return lib_fail(g, err, -EINVAL, what, "no reader for what \"%s\" wrote",
				slu_json_str(slu_json_get(sched, "writer")));
	w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	slu_jsonw_value(&w, sched);
	rc = b.error ? b.error : list_as(r, reader, slu_buf_str(&b), b.n, part);
	slu_buf_done(&b);
	return rc;
}

static int read_r(struct sluice_graph *g, struct r_text *r, const char *text, size_t n, bool part,
		  const char *what, struct sluice_error *err)
{
	slu_cleanup(slu_json_freep) struct slu_json_doc *doc = NULL;
	struct slu_error e = { 0 };
	const struct slu_json *root;
	int64_t version = 0;
	int rc = slu_json_parse(text, n, NULL, &doc, &e);

	r->duration_s = SLU_GRAPH_END;
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		return lib_fail(g, err, -EINVAL, what, "R is not JSON: %s", e.text);
	root = slu_json_root(doc);
	if (slu_json_i64(slu_json_get(root, "version"), &version) == 0 && version == 1 &&
	    slu_json_is_obj(slu_json_get(root, "execution")))
		return read_envelope(g, r, root, text, n, part, what, err);
	rc = list_as(r, g->load_format, text, n, part);
	if (rc == -ENOTSUP)
		return lib_fail(g, err, -EINVAL, what, "R has no reader for %s", g->load_format);
	return rc;
}

int sluice_graph_update(struct sluice_graph *g, uint64_t job, const char *r, size_t n,
			struct sluice_match *out, struct sluice_error *err)
{
	struct slu_sink sink = slu_writer_sink(g->w);
	struct slu_match_result res = { 0 };
	struct r_text rt = { 0 };
	int rc;

	if (job > INT64_MAX)
		return lib_fail(g, err, -EINVAL, "update", "job %" PRIu64 " is above 2^63", job);
	if (slu_match_has_job(g->m, (int64_t)job))
		return lib_fail(g, err, -EEXIST, "update", "job %" PRIu64 " is known", job);
	rc = lib_job_room(g, job);
	if (!rc)
		rc = read_r(g, &rt, r, n, false, "update", err);
	if (!rc)
		rc = slu_match_update(g->m, &rt.l, (int64_t)job, rt.start_s, rt.duration_s, false,
				      &sink, &res);
	slu_listing_done(&rt.l);
	if (rc < 0) {
		slu_writer_reset(g->w);
		return rc;
	}
	if (res.code) {
		slu_writer_reset(g->w);
		return lib_fail(g, err, -res.code, "update", "%s",
				res.messages && *res.messages ? res.messages : strerror(res.code));
	}
	res.at_s = rt.start_s;
	res.end_s = rt.start_s + rt.duration_s;
	/* The job runs already, whatever start the R has. */
	rc = keep_match(g, SLUICE_ALLOCATE, job, rt.start_s, &res, out, err);
	return rc < 0 ? rc : 0;
}

int sluice_graph_cancel(struct sluice_graph *g, uint64_t job)
{
	struct slu_match_result r = { 0 };
	struct lib_job *j = lib_job_find(g, job);
	int rc;

	if (!j || j->state == SLUICE_CANCELED)
		return -ENOENT;
	rc = slu_match_cancel(g->m, (int64_t)job, &r);
	if (rc < 0)
		return rc;
	lib_job_end(g, j);
	return 0;
}

int sluice_graph_partial_cancel(struct sluice_graph *g, uint64_t job, const char *r, size_t n,
				struct sluice_error *err)
{
	struct slu_match_result res = { 0 };
	struct lib_job *j = lib_job_find(g, job);
	struct r_text rt = { 0 };
	bool full = false;
	int rc;

	if (!j || j->state != SLUICE_ALLOCATED)
		return lib_fail(g, err, -ENOENT, "partial_cancel", "job %" PRIu64 " does not run",
				job);
	rc = read_r(g, &rt, r, n, true, "partial_cancel", err);
	if (!rc)
		rc = slu_match_partial_cancel(g->m, (int64_t)job, &rt.l, &full, &res);
	slu_listing_done(&rt.l);
	if (rc < 0)
		return rc;
	if (res.code)
		return lib_fail(g, err, -res.code, "partial_cancel", "%s",
				res.messages && *res.messages ? res.messages : strerror(res.code));
	if (full)
		lib_job_end(g, j);
	return full;
}
