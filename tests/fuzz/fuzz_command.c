/* The command language: the first bytes pick policy, format and traverser, every line is a
 * command.  Walking as the reference does, vertex by vertex, prints the same as the short ways.
 * When all jobs are cancelled, no vertex has bookings; and if no command changed the machine,
 * all of it is free. */
#include "session.h"

#include "jobspec/jobspec.h"
#include "match/writer.h"
#include "query/session_internal.h"

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

/* `same`: no command removed a vertex or freed a part of a job (vertices below keep their
 * bookings then, as in the reference).  Returns whether no booking is left.  A job that an
 * update registered below the root alone keeps its tags, as in the reference. */
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

/* All commands; what was printed. */
static char *run(const struct slu_query_options *o, const char *commands, bool wide)
{
	struct fuzz_files files = { fuzz_r, sizeof fuzz_r - 1 };
	char *printed = NULL, *text = strdup(commands), *line, *rest = text;
	size_t size;
	FILE *out = open_memstream(&printed, &size);
	struct slu_session *s;
	uint64_t change;
	bool same;
	int n = 0;

	must(text && out);
	s = fuzz_session_with(&files, o, out);
	s->o.elapse = false; /* it walks as it was told to, and prints the same */
	change = s->g->change;
	while ((line = strsep(&rest, "\n")) && n++ < 50)
		if (slu_session_command(s, line))
			break;
	same = s->g->change == change && !strstr(commands, "pc") && !strstr(commands, "partial");
	if (cancel_all(s, same) && !wide && !found(s, "status=down"))
		fits_whole(s);
	slu_session_free(s);
	fclose(out);
	free(text);
	return printed;
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
	struct slu_query_options o = { 0 };
	bool wide = size > 1 && data[1] & 64;
	char *text, *short_way, *long_way;

	if (size < 2)
		return 0;
	o.load_file = wide ? "wide" : "graph";
	o.policy = policy[data[0] % SLU_LEN(policy)];
	o.traverser = data[0] & 128 ? "flexible" : "simple";
	o.format = (enum slu_format)(data[1] % 64 % (SLU_FORMAT_RV1_SHORTHAND + 1));
	text = strndup((const char *)data + 2, size - 2);
	must(text);
	short_way = run(&o, text, wide);
	o.elapse = true;
	long_way = run(&o, text, wide);
	must(!strcmp(short_way, long_way));
	free(short_way);
	free(long_way);
	free(text);
	return 0;
}
