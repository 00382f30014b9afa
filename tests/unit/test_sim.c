/* Readers, writers, generator, metrics, and the played world. */
#include "tap.h"

#include "sim/generate.h"
#include "sim/jsonl.h"
#include "sim/load.h"
#include "sim/chart.h"
#include "sim/swf.h"
#include "sim/write.h"

#include <expat.h>
#include <unistd.h>

static void swf(void)
{
	static const char *const line[] = {
		"; MaxProcs: 8",
		"1 0 5 10 4 -1 -1 4 20 -1 1 7 1 -1 1 -1 -1 -1",  /* kept */
		"2 1 5 30 4 -1 -1 -1 20 -1 1 7 1 -1 1 -1 -1 -1", /* kept: run cut to 20 */
		"3 2 5 10 9 -1 -1 4 20 -1 1 7 1 -1 1 -1 -1 -1",  /* allocated more than there is */
		"4 3 5 10 4 -1 -1 9 20 -1 1 7 1 -1 1 -1 -1 -1",  /* asks for more */
		"5 4 5 0 4 -1 -1 4 20 -1 1 7 1 -1 1 -1 -1 -1",   /* no run time */
		"6 5 5 10 4 -1 -1 4 -1 -1 1 7 1 -1 1 -1 -1 -1",  /* no estimate */
		"7 -1 5 10 4 -1 -1 4 20 -1 1 7 1 -1 1 -1 -1 -1", /* before all time */
		"8 6 5 10 -1 -1 -1 0 20 -1 1 7 1 -1 1 -1 -1 -1", /* no processors */
		"9 7 5 10 -1 -1 -1 3 20",                        /* kept: short line, one field */
		"",
		"  10 8 5 10.75 2 -1 -1 2 20 -1 0 8 1 -1 1 -1 -1 -1 \r", /* kept: fraction, failed
									  */
		"11 9 5 ten 2 -1 -1 2 20",                               /* malformed */
		"12 9 5",                                                /* malformed */
		"13 9 5 10 2 -1 -1 2 20 -1 1 7 1 -1 1 -1 -1 -1 99",      /* malformed */
		"14 9 5 99999999999999999999 2 -1 -1 2 20",              /* malformed */
	};
	struct slu_trace t = { 0 };
	struct slu_swf s = { .trace = &t };
	struct slu_error err = { 0 };

	for (size_t i = 0; i < SLU_LEN(line); i++)
		ok(slu_swf_line(&s, line[i], strlen(line[i]), &err) == 0, "swf: line %zu", i + 1);
	ok(t.job.n == 4 && t.dropped == 6 && t.malformed == 4,
	   "swf: 4 kept, 6 dropped, 4 malformed");
	ok(t.machine_procs == 8 && t.records == 14, "swf: the header's size, 14 records");
	ok(t.job.p[1].run_s == 20 && t.job.p[1].limit_s == 20, "swf: the run time is cut");
	ok(slu_trace_slots(&t, t.job.p[2].req) == 3, "swf: requested stands for both");
	ok(t.job.p[3].run_s == 10 && t.job.p[3].fails, "swf: fractions are cut, status 0 fails");
	ok(t.job.p[0].user == t.job.p[1].user && t.job.p[3].user != t.job.p[0].user,
	   "swf: users are told apart");
	ok(s.nnote == 4 && s.note[0].line == 13 && strstr(s.note[0].text, "run time"),
	   "swf: line %d: %s", (int)s.note[0].line, s.note[0].text);
	s.strict = true;
	ok(slu_swf_line(&s, line[12], strlen(line[12]), &err) == -EINVAL &&
		   strstr(err.text, "line 17"),
	   "swf: strict stops (%s)", err.text);
	slu_trace_done(&t);
}

/* Lines into a trace; the error of the first bad one, or of the end. */
static int read_all(struct slu_trace *t, const char *const *line, size_t n, struct slu_error *err)
{
	struct slu_jsonl r = { .trace = t };
	int rc = 0;

	memset(err, 0, sizeof *err);
	for (size_t i = 0; i < n && !rc; i++)
		rc = slu_jsonl_line(&r, line[i], strlen(line[i]), err);
	if (!rc)
		rc = slu_jsonl_finish(&r, err);
	slu_jsonl_done(&r);
	return rc;
}

static void jsonl_bad(void)
{
	static const struct {
		int rc;
		const char *says;
		const char *line[3];
	} row[] = {
		{ -EINVAL, "line 1, column", { "{\"kind\":" } },
		{ -EINVAL, "not an object", { "[1]" } },
		{ -EINVAL, "unknown kind", { "{\"kind\":\"cat\"}" } },
		{ -EINVAL, "unknown key", { "{\"kind\":\"job\",\"run\":5,\"limt\":5}" } },
		{ -EINVAL, "\"run\": is missing", { "{\"kind\":\"job\"}" } },
		{ -EINVAL, "not a whole number", { "{\"kind\":\"job\",\"run\":\"5\"}" } },
		{ -EINVAL, "not an amount", { "{\"kind\":\"job\",\"run\":5,\"cores\":\"many\"}" } },
		{ -EINVAL, "not a whole number", { "{\"kind\":\"job\",\"run\":5,\"slots\":0}" } },
		{ -EINVAL,
		  "line 2",
		  { "{\"kind\":\"job\",\"run\":5,\"id\":1}",
		    "{\"kind\":\"job\",\"run\":5,\"id\":1}" } },
		{ -ELOOP,
		  "cyclic",
		  { "{\"kind\":\"job\",\"run\":5,\"id\":1,\"after\":[2]}",
		    "{\"kind\":\"job\",\"run\":5,\"id\":2,\"after_ok\":[3]}",
		    "{\"kind\":\"job\",\"run\":5,\"id\":3,\"after_start\":[1]}" } },
		{ -ENOENT, "not in the trace", { "{\"kind\":\"job\",\"run\":5,\"after\":[9]}" } },
		{ -ENOENT, "no node", { "{\"kind\":\"down\",\"at\":1,\"node\":\"x\"}" } },
		{ -ENOENT, "no job", { "{\"kind\":\"cancel\",\"at\":1,\"job\":4}" } },
		{ -EINVAL,
		  "already",
		  { "{\"kind\":\"node\",\"name\":\"a\"}", "{\"kind\":\"node\",\"name\":\"a\"}" } },
		{ -EINVAL,
		  "ends before",
		  { "{\"kind\":\"drain\",\"name\":\"d\",\"count\":1,\"from\":5,\"to\":5}" } },
		{ -EINVAL, "no drain", { "{\"kind\":\"lift\",\"name\":\"d\",\"at\":5}" } },
	};

	for (size_t i = 0; i < SLU_LEN(row); i++) {
		struct slu_trace t = { 0 };
		struct slu_error err;
		size_t n = row[i].line[2] ? 3 : row[i].line[1] ? 2 : 1;
		int rc = read_all(&t, row[i].line, n, &err);

		ok(rc == row[i].rc && strstr(err.text, row[i].says), "jsonl: %d, %s", rc, err.text);
		slu_trace_done(&t);
	}
}

static const char *const world[] = {
	"# four nodes in two racks",
	"{\"kind\":\"node\",\"name\":\"n\",\"count\":4,\"cores\":2,\"per_rack\":2,\"memory\":\"4Gi\"}",
	"",
	"{\"kind\":\"queue\",\"name\":\"main\",\"policy\":\"easy\",\"backfill\":\"shortest\"}",
	/* 1: launcher and workers; holds n0 .. n3 in part from 0 to 10 */
	"{\"kind\":\"job\",\"id\":1,\"name\":\"mpi\",\"user\":\"ann\",\"submit\":0,\"run\":10,\"limit\":20,"
	"\"roles\":[{\"slots\":1,\"cores\":1,\"memory\":\"1Gi\"},{\"slots\":2,\"cores\":2}]}",
	/* 2: four cores in one rack: one rack is free */
	"{\"kind\":\"job\",\"id\":2,\"submit\":1,\"run\":10,\"slots\":4,\"within\":\"rack\"}",
	/* 3: elastic, 1 to 4 cores; at 2 there is one core left: 8 slot-seconds take 8 s */
	"{\"kind\":\"job\",\"id\":3,\"submit\":2,\"run\":8,\"slots\":1,\"max_slots\":4,\"limit\":20}",
	/* 4 after 1; 5 after 1 has failed: never */
	"{\"kind\":\"job\",\"id\":4,\"submit\":2,\"run\":3,\"after_ok\":[1]}",
	"{\"kind\":\"job\",\"id\":5,\"submit\":2,\"run\":3,\"after_notok\":[1]}",
	/* 6: asks for more than a rack has: never */
	"{\"kind\":\"job\",\"id\":6,\"submit\":3,\"run\":3,\"slots\":5,\"within\":\"rack\"}",
	/* 7: submitted at 40 when all is quiet; its node fails at 42, it starts again elsewhere */
	"{\"kind\":\"job\",\"id\":7,\"submit\":40,\"run\":5,\"slots\":1,\"limit\":9}",
	"{\"kind\":\"down\",\"at\":42,\"node\":\"n0\"}",
	"{\"kind\":\"up\",\"at\":60,\"node\":\"n0\"}",
	/* 8: cancelled while it runs */
	"{\"kind\":\"job\",\"id\":8,\"submit\":70,\"run\":50,\"slots\":1}",
	"{\"kind\":\"cancel\",\"at\":75,\"job\":8}",
};

static void played(void)
{
	struct slu_trace t = { 0 };
	struct slu_sim s = { 0 };
	struct slu_error err;
	struct slu_sim_opts o = { .verify = true };

	ok(read_all(&t, world, SLU_LEN(world), &err) == 0, "world: read (%s)", err.text);
	bool ran = ok(slu_sim_run(&t, &o, &s, &err) == 0, "world: run (%s)", err.text);

	if (ran) {
		const struct slu_sim_job *j = s.job.p;

		ok(j[0].start_s == 0 && j[0].end_s == 10 && j[0].slots == 3,
		   "world: the mixed gang");
		ok(j[1].start_s == 10 || j[1].start_s == 1, "world: 2 within one rack, at %d",
		   (int)j[1].start_s);
		ok(j[2].fate == SLU_SIM_ENDED && (j[2].end_s - j[2].start_s) * j[2].slots >= 8 &&
			   (j[2].end_s - j[2].start_s - 1) * j[2].slots < 8,
		   "world: the elastic job did its 8 slot-seconds with %u slots", j[2].slots);
		ok(j[3].start_s >= 10, "world: 4 after 1");
		ok(j[4].fate == SLU_SIM_REFUSED && j[5].fate == SLU_SIM_REFUSED,
		   "world: 5 and 6 can never run");
		ok(j[6].restarts <= 1 && j[6].fate == SLU_SIM_ENDED &&
			   j[6].end_s == (j[6].restarts ? 47 : 45),
		   "world: 7 ends at %d after %u restarts", (int)j[6].end_s, j[6].restarts);
		ok(j[7].fate == SLU_SIM_CANCELLED && j[7].end_s == 75, "world: 8 is cancelled");
	}
	slu_sim_done(&s);
	slu_trace_done(&t);
}

static char *written(const struct slu_trace *t, bool json, size_t *n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, n);
	struct slu_error err = { 0 };
	int rc = json ? slu_trace_write_jsonl(t, "note", f, &err)
		      : slu_trace_write_swf(t, "note", f, &err);

	fclose(f);
	if (rc < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int reread(const char *text, bool json, struct slu_trace *t)
{
	struct slu_jsonl r = { .trace = t };
	struct slu_swf s = { .trace = t };
	int rc = 0;

	for (const char *p = text; *p && !rc;) {
		size_t n = strcspn(p, "\n");

		rc = json ? slu_jsonl_line(&r, p, n, NULL) : slu_swf_line(&s, p, n, NULL);
		p += n + (p[n] == '\n');
	}
	if (json && !rc)
		rc = slu_jsonl_finish(&r, NULL);
	slu_jsonl_done(&r);
	return rc;
}

/* A written trace reads back as the same text. */
static void round_trip(void)
{
	struct slu_trace a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
	struct slu_generate_opts o = { .jobs = 300,
				       .nodes = 16,
				       .cores = 4,
				       .load = 0.8,
				       .serial = 0.2,
				       .seed = 3,
				       .per_rack = 4,
				       .elastic = 0.2,
				       .close = 0.2,
				       .failures = 400 };
	struct slu_error err = { 0 };
	size_t n;

	ok(slu_generate(&o, &a, &err) == 0 && a.job.n == 300 && a.event.n > 0,
	   "round trip: a trace is generated (%s)", err.text);
	char *x = written(&a, true, &n);

	ok(x && !reread(x, true, &b), "round trip: JSON lines are read");
	char *y = written(&b, true, &n);

	ok(x && y && !strcmp(x, y), "round trip: JSON lines");
	free(x);
	free(y);
	ok(!written(&a, false, &n), "round trip: SWF cannot express that");
	o.elastic = o.close = o.failures = 0;
	slu_generate(&o, &c, &err);
	x = written(&c, false, &n);
	ok(x && !reread(x, false, &d) && d.job.n == 300 && d.machine_procs == 64,
	   "round trip: SWF is read");
	d.machine_procs = c.machine_procs;
	y = written(&d, false, &n);
	ok(x && y && !strcmp(x, y), "round trip: SWF");
	free(x);
	free(y);
	x = written(&c, true, &n);
	slu_trace_done(&d);
	slu_generate(&o, &d, &err);
	y = written(&d, true, &n);
	ok(x && y && !strcmp(x, y), "generate: same seed, same trace");
	free(y);
	o.seed++;
	slu_trace_done(&d);
	slu_generate(&o, &d, &err);
	y = written(&d, true, &n);
	ok(x && y && strcmp(x, y), "generate: another seed, another trace");
	free(x);
	free(y);
	slu_trace_done(&a);
	slu_trace_done(&b);
	slu_trace_done(&c);
	slu_trace_done(&d);
}

static void generator(void)
{
	struct slu_trace t = { 0 };
	struct slu_generate_opts o = {
		.jobs = 5000, .nodes = 100, .cores = 1, .load = 0.7, .serial = 0.3, .max_cores = 40
	};
	struct slu_error err = { 0 };
	double work = 0;
	uint32_t serial = 0, wrong = 0;

	slu_generate(&o, &t, &err);
	for (uint32_t j = 0; j < t.job.n; j++) {
		int64_t n = slu_trace_slots(&t, t.job.p[j].req);

		serial += n == 1;
		wrong += n > 40 || t.job.p[j].run_s < 1 || t.job.p[j].limit_s < t.job.p[j].run_s;
		work += (double)n * (double)t.job.p[j].run_s;
	}
	double load = work / (100.0 * (double)t.job.p[t.job.n - 1].submit_s);

	ok(load > 0.68 && load < 0.72, "generate: load %.3f", load);
	ok(serial > 1350 && serial < 1750, "generate: %u serial jobs", serial);
	ok(!wrong, "generate: sizes and limits");
	slu_trace_done(&t);
	o.max_cores = 101;
	ok(slu_generate(&o, &t, &err) == -ERANGE, "generate: too large (%s)", err.text);
	slu_trace_done(&t);
	o.nodes = 0;
	ok(slu_generate(&o, &t, &err) == -ERANGE, "generate: no machine (%s)", err.text);
	slu_trace_done(&t);
}

/* Two jobs on one node: waits 0 and 9, runs 10 and 5 s; users a and b.
 * bounded slowdown 1 and (9 + 5) / 10 = 1.4; flow 10 and 14; utilisation 15 / 15. */
static void metrics(void)
{
	struct slu_trace t = { 0 };
	struct slu_sim s = { 0 };
	struct slu_error err = { 0 };
	struct slu_sim_opts o = { .policy = SLU_POLICY_EASY, .keep_parts = true };
	static const char *const line[] = {
		"{\"kind\":\"node\",\"name\":\"n\"}",
		"{\"kind\":\"job\",\"user\":\"a\",\"submit\":0,\"run\":10,\"limit\":12}",
		"{\"kind\":\"job\",\"user\":\"b<&>\",\"submit\":1,\"run\":5}",
	};

	ok(!read_all(&t, line, 3, &err) && !slu_sim_run(&t, &o, &s, &err), "metrics: run (%s)",
	   err.text);
	const struct slu_sim_metrics *m = &s.metrics;

	ok(m->jobs == 2 && m->avg_bounded_slowdown == 1.2 && m->max_bounded_slowdown == 1.4,
	   "metrics: slowdown %g, %g", m->avg_bounded_slowdown, m->max_bounded_slowdown);
	ok(m->mean_flow == 12 && m->max_flow == 14 && m->mean_wait == 4.5 && m->max_wait == 9,
	   "metrics: flow and wait");
	ok(m->makespan == 15 && m->utilisation == 1, "metrics: makespan, utilisation %g",
	   m->utilisation);
	/* Jain: (1 + 1.4)^2 / (2 * (1 + 1.96)) = 5.76 / 5.92 */
	ok(m->users == 2 && m->fairness > 0.9729 && m->fairness < 0.9731, "metrics: fairness %g",
	   m->fairness);
	/* b was promised 12 and started at 10. */
	ok(m->promises == 1 && !m->promises_late && m->promise_error_max == 2,
	   "metrics: a start before its promise is not late");

	struct slu_run run = {
		.policy = "easy", .backfill = "submission", .estimates = "user", .sim = s
	};
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	XML_Parser x = XML_ParserCreate(NULL);

	ok(!slu_chart_gantt(&t, &run, &b) && XML_Parse(x, b.p, (int)b.n, 1) == XML_STATUS_OK,
	   "pictures: the Gantt chart is good XML");
	XML_ParserFree(x);
	slu_buf_reset(&b);
	x = XML_ParserCreate(NULL);
	ok(!slu_chart_load(&t, &run, 1, &b) && XML_Parse(x, b.p, (int)b.n, 1) == XML_STATUS_OK,
	   "pictures: the chart of the load is well-formed");
	XML_ParserFree(x);
	slu_buf_reset(&b);
	x = XML_ParserCreate(NULL);
	ok(!slu_chart_compare(&run, 1, &b) && XML_Parse(x, b.p, (int)b.n, 1) == XML_STATUS_OK,
	   "pictures: the chart of the comparison is well-formed");
	XML_ParserFree(x);
	slu_buf_reset(&b);
	ok(!slu_chart_page(&t, &run, 1, "a <title>", &b) && strstr(b.p, "a &lt;title&gt;") &&
		   !strstr(b.p, "http://www.w3.org/1999/xlink") && !strstr(b.p, "src="),
	   "pictures: the page needs nothing from outside");
	slu_buf_done(&b);
	slu_sim_done(&s);
	slu_trace_done(&t);
}

/* The same run twice, and a run cut short. */
static void reproducible(void)
{
	struct slu_trace t = { 0 };
	struct slu_generate_opts g = {
		.jobs = 800, .nodes = 32, .cores = 4, .load = 1, .serial = 0.2
	};
	struct slu_sim_opts o = {
		.policy = SLU_POLICY_EASY, .estimates = SLU_ESTIMATES_FACTOR, .factor = 4, .seed = 9
	};
	struct slu_sim a, b, c;
	struct slu_error err = { 0 };

	slu_generate(&g, &t, &err);
	ok(!slu_sim_run(&t, &o, &a, &err) && !slu_sim_run(&t, &o, &b, &err),
	   "reproducible: a trace runs twice (%s)", err.text);
	uint32_t differ = a.job.n != b.job.n;

	for (uint32_t j = 0; j < a.job.n && !differ; j++) {
		const struct slu_sim_job *x = &a.job.p[j], *y = &b.job.p[j];

		differ = x->start_s != y->start_s || x->end_s != y->end_s ||
			 x->promised_s != y->promised_s || x->limit_s != y->limit_s ||
			 x->slots != y->slots || x->how != y->how || x->n_part != y->n_part;
		for (uint32_t i = 0; i < x->n_part && !differ; i++)
			differ = a.part.p[x->part + i].node != b.part.p[y->part + i].node ||
				 a.part.p[x->part + i].slots != b.part.p[y->part + i].slots;
	}
	ok(!differ, "two runs of one trace agree to the last node");
	o.until_s = t.job.p[400].submit_s;
	ok(!slu_sim_run(&t, &o, &c, &err) && c.metrics.jobs < a.metrics.jobs &&
		   c.metrics.unfinished,
	   "--until: %d jobs ended, %d not", (int)c.metrics.jobs, (int)c.metrics.unfinished);
	slu_sim_done(&a);
	slu_sim_done(&b);
	slu_sim_done(&c);
	slu_trace_done(&t);
}

int main(void)
{
	swf();
	jsonl_bad();
	played();
	round_trip();
	generator();
	metrics();
	reproducible();
	return tap_done();
}
