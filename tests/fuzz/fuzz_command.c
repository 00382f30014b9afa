/* The command language: the first bytes pick policy, format and traverser, every line is a command.
 * When all jobs are cancelled, nothing is held; and if nobody changed the machine, all of it is
 * there. */
#include "session.h"

#include "match/jobspec.h"
#include "match/writer.h"
#include "query/internal.h"

static int count(void *n, const struct slu_graph *g, const struct slu_emit_vertex *x)
{
	++*(uint32_t *)n;
	return 0;
}

static uint32_t found(struct slu_session *s, const char *criteria)
{
	static const struct slu_writer_ops ops = { .vertex = count };
	struct slu_match_result r;
	uint32_t n = 0;
	struct slu_sink sink = { &ops, &n };

	must(slu_match_find(s->m, criteria, 0, &sink, &r) == 0 && !r.code);
	return n;
}

/* `same`: nobody attached or removed a vertex (what was below a removed one keeps its bookings, as
 * in the reference).  Whether nothing is left: a job that an update registered below the root alone
 * keeps its tags, as there. */
static bool cancel_all(struct slu_session *s, bool same)
{
	bool clean = same;

	for (uint32_t i = 0; i < s->jobs.n; i++) {
		struct slu_match_result r = { 0 };

		if (!slu_match_has_job(s->m, s->jobs.p[i].id))
			continue;
		must(slu_match_cancel(s->m, s->jobs.p[i].id, &r) == 0);
		must(!same || r.code == EINVAL || !slu_match_has_job(s->m, s->jobs.p[i].id));
		clean &= !r.code;
	}
	must(!clean || !found(s, "sched-now=allocated or sched-future=reserved"));
	return clean;
}

static void fits_whole(struct slu_session *s)
{
	struct slu_jobspec *spec = NULL;
	struct slu_match_result r;

	must(slu_jobspec_parse(fuzz_whole, sizeof fuzz_whole - 1, &s->g->types, &spec, NULL) == 0);
	must(slu_match_run(s->m, SLU_MATCH_ALLOCATE, spec, (int64_t)1 << 62, 0, NULL, &r) == 0);
	must(!r.code);
	slu_jobspec_free(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const policy[] = { "first",
					      "low",
					      "hinode",
					      "lonodex",
					      "locality",
					      "variation",
					      "high",
					      "lonode",
					      "hinodex",
					      "firstnodex",
					      "policy=high node_centric=true" };
	struct fuzz_files files = { fuzz_r, sizeof fuzz_r - 1 };
	struct slu_query_options o = { 0 };
	struct slu_session *s;
	char *text, *line, *rest;
	uint64_t change;
	bool same;
	int n = 0;

	if (size < 2)
		return 0;
	o.policy = policy[data[0] % SLU_LEN(policy)];
	o.traverser = data[0] & 128 ? "flexible" : "simple";
	o.format = (enum slu_format)(data[1] % (SLU_FORMAT_RV1_SHORTHAND + 1));
	o.elapse = data[1] & 128;
	s = fuzz_session_with(&files, &o);
	change = s->g->change;
	text = rest = strndup((const char *)data + 2, size - 2);
	must(text);
	while ((line = strsep(&rest, "\n")) && n++ < 50)
		if (slu_session_command(s, line))
			break;
	same = s->g->change == change;
	if (cancel_all(s, same) && !found(s, "status=down"))
		fits_whole(s);
	free(text);
	slu_session_free(s);
	return 0;
}
