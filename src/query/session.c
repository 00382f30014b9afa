#include "query/session.h"

#include <float.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "graph/read.h"
#include "query/session_internal.h"

#define FILE_MAX   ((size_t)1 << 30)
#define RESULT_MAX ((size_t)1 << 31)

int64_t slu_session_clock(const struct slu_session *s)
{
	return s->io.clock_ns ? s->io.clock_ns() : slu_clock_ns();
}

int slu_session_read_quiet(struct slu_session *s, const char *path)
{
	slu_buf_reset(&s->text);
	return s->io.read ? s->io.read(s->io.arg, path, &s->text) : slu_file_read(path, &s->text);
}

int slu_session_read(struct slu_session *s, const char *path)
{
	int rc = slu_session_read_quiet(s, path);

	if (rc == -EMSGSIZE)
		slu_session_err(s, "ERROR: %s is too large\n", path);
	else if (rc < 0)
		slu_session_err(s, "ERROR: can't open %s\n", path);
	return rc;
}

void slu_session_err(struct slu_session *s, const char *fmt, ...)
{
	va_list ap;

	fflush(s->io.out);
	va_start(ap, fmt);
	vfprintf(s->io.err, fmt, ap);
	va_end(ap);
	fflush(s->io.err);
}

int slu_session_outcome(struct slu_session *s, int rc, struct slu_match_result *r)
{
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		r->code = -rc;
	s->preorder = r->preorder;
	s->postorder = r->postorder;
	return 0;
}

int slu_session_malformed(struct slu_session *s)
{
	slu_session_err(s, "ERROR: malformed command\n");
	return 0;
}

void slu_session_line(FILE *f)
{
	fputs("INFO: =============================\n", f);
}

void slu_session_counts(struct slu_session *s, const char *what)
{
	FILE *f = s->io.out;

	slu_session_line(f);
	fprintf(f, "INFO: %sCANCEL PREORDER COUNT=\"%" PRIu64 "\"\n", what, s->preorder);
	fprintf(f, "INFO: %sCANCEL POSTORDER COUNT=\"%" PRIu64 "\"\n", what, s->postorder);
	slu_session_line(f);
}

static int fail_with(struct slu_buf *msg, int rc, const char *text)
{
	slu_buf_puts(msg, text);
	slu_buf_putc(msg, '\n');
	return rc;
}

static int load_graph(struct slu_session *s, struct slu_buf *msg)
{
	struct slu_buf why = SLU_BUF_INIT(RESULT_MAX);
	int rc = slu_session_read_quiet(s, s->o.load_file), unread = rc;

	if (rc == -ENOMEM)
		return rc;
	if (rc == -EMSGSIZE)
		return fail_with(msg, -EINVAL,
				 "resource_query_t: ERROR: the graph file is too large");
	if (rc < 0) /* as an empty text */
		slu_buf_reset(&s->text);
	if (s->o.reserve && slu_graph_reserve(s->g, s->o.reserve) == -ENOMEM)
		return -ENOMEM;
	rc = slu_read(s->g, s->o.load_format, slu_buf_str(&s->text), s->text.n, s->o.allow, &why);
	if (rc < 0 && rc != -ENOMEM) {
		slu_buf_puts(msg, "resource_query_t: ERROR: ");
		slu_buf_puts(msg, slu_buf_str(&why));
		slu_buf_puts(msg, "\nERROR: error generating resources\n");
		if (unread)
			slu_buf_printf(msg, "ERROR: can't read %s: %s; -L names the graph\n",
				       s->o.load_file, strerror(-unread));
		rc = -EINVAL;
	}
	/* The empty string is a type that the reference knows from the start and no vertex has. */
	if (!rc && slu_graph_type(s->g, "") == SLU_NONE)
		rc = -ENOMEM;
	slu_buf_done(&why);
	/* Graphs may be large and are not read again. */
	slu_buf_done(&s->text);
	return rc;
}

static int make_matcher(struct slu_session *s, struct slu_buf *msg)
{
	struct slu_match_options mo = { .subsystems = s->o.subsystems,
					.policy = s->o.policy,
					.traverser = s->o.traverser,
					.filters = s->o.filters_twice ? ":" : s->o.filters,
					.count_visits = s->o.elapse,
					/* The reference asks before each command whether a
					 * pipe is a terminal. */
					.stale_error = isatty(STDIN_FILENO) ? 0 : ENOTTY };
	struct slu_error err = { 0 };
	int rc = slu_match_new(s->g, &mo, &s->m, &err);

	if (rc < 0 && rc != -ENOMEM) {
		slu_buf_puts(msg, "initialize_matchers_and_traversers: ERROR: ");
		return fail_with(msg, -EINVAL, err.text);
	}
	return rc;
}

int slu_session_new(const struct slu_query_options *o, const struct slu_session_io *io,
		    struct slu_session **out, struct slu_buf *msg)
{
	slu_cleanup(slu_session_freep) struct slu_session *s = slu_calloc(1, sizeof *s);
	int64_t start;
	int rc;

	if (!s)
		return -ENOMEM;
	s->o = *o;
	s->io = *io;
	s->text = SLU_BUF_INIT(FILE_MAX);
	s->result = SLU_BUF_INIT(RESULT_MAX);
	s->counter = 1;
	s->min_s = DBL_MAX;
	start = slu_session_clock(s);
	if (!slu_match_policy_valid(o->policy))
		return fail_with(msg, -EINVAL, "resource_query_t: ERROR: can't create matcher");
	s->g = slu_graph_new();
	s->w = slu_writer_new(o->format);
	if (!s->g || !s->w)
		return -ENOMEM;
	rc = load_graph(s, msg);
	if (!rc)
		rc = make_matcher(s, msg);
	if (rc < 0)
		return rc;
	s->load_s = (double)(slu_session_clock(s) - start) / 1e9;
	*out = slu_take(s);
	return 0;
}

void slu_session_free(struct slu_session *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->jobs.n; i++)
		slu_free(s->jobs.p[i].file);
	slu_vec_done(&s->jobs);
	slu_match_free(s->m);
	slu_graph_free(s->g);
	slu_writer_free(s->w);
	slu_buf_done(&s->text);
	slu_buf_done(&s->result);
	if (s->own_out)
		fclose(s->own_out);
	slu_free(s);
}

bool slu_session_output(struct slu_session *s, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		return false;
	if (s->own_out)
		fclose(s->own_out);
	s->io.out = s->own_out = f;
	return true;
}

bool slu_session_written(struct slu_session *s)
{
	fflush(s->io.out);
	fflush(s->io.std);
	return !ferror(s->io.out) && !ferror(s->io.std);
}

struct slu_graph *slu_session_graph(struct slu_session *s)
{
	return s->g;
}

static void print_rank(void *arg, int64_t rank, uint32_t n)
{
	fprintf(arg, "INFO: number of vertices with rank %" PRId64 ": %" PRIu32 "\n", rank, n);
}

void slu_session_print_load(struct slu_session *s)
{
	struct slu_graph_counts c;
	FILE *f = s->io.std;

	if (slu_graph_counts(s->g, &c) < 0)
		return;
	fprintf(f, "INFO: Graph Load Time: %g\n", s->load_s);
	fprintf(f, "INFO: Vertex Count: %" PRIu32 "\n", c.vertices);
	fprintf(f, "INFO: Edge Count: %" PRIu32 "\n", c.edges);
	fprintf(f, "INFO: by_type Key-Value Pairs: %" PRIu32 "\n", c.by_type);
	fprintf(f, "INFO: by_name Key-Value Pairs: %" PRIu32 "\n", c.by_name);
	fprintf(f, "INFO: by_path Key-Value Pairs: %" PRIu32 "\n", c.by_path);
	slu_graph_rank_counts(s->g, print_rank, f);
	fflush(f);
}

/* --- jobs, kept sorted by id; new ones mostly come at the end --- */

static uint32_t job_position(const struct slu_session *s, int64_t id)
{
	uint32_t lo = 0, hi = s->jobs.n;

	if (hi && (uint64_t)s->jobs.p[hi - 1].id < (uint64_t)id)
		return hi;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if ((uint64_t)s->jobs.p[mid].id < (uint64_t)id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct job *slu_session_job(struct slu_session *s, int64_t id)
{
	uint32_t i = job_position(s, id);

	return i < s->jobs.n && s->jobs.p[i].id == id ? &s->jobs.p[i] : NULL;
}

int slu_session_job_set(struct slu_session *s, int64_t id, int64_t at_s, const char *file,
			double overhead_s)
{
	uint32_t i = job_position(s, id);
	char *name = slu_strdup(file);
	struct job *j;

	if (!name || slu_vec_reserve(&s->jobs, s->jobs.n + 1) < 0) {
		slu_free(name);
		return -ENOMEM;
	}
	j = &s->jobs.p[i];
	if (i < s->jobs.n && j->id == id) {
		slu_free(j->file);
	} else {
		memmove(j + 1, j, (s->jobs.n - i) * sizeof *j);
		s->jobs.n++;
		*j = (struct job){ .id = id };
	}
	j->file = name;
	j->state = at_s == 0 ? JOB_ALLOCATED : JOB_RESERVED;
	j->allocated |= at_s == 0;
	j->reserved |= at_s != 0;
	j->at_s = at_s;
	j->overhead_s = overhead_s;
	return 0;
}
