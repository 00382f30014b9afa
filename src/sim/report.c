#include "sim/report.h"

#include "wire/jsonw.h"

#include <math.h>
#include <stdio.h>

enum form { COUNT, SECONDS, RATIO, PERCENT, PLAIN, MILLIS };

static const struct {
	size_t offset;
	enum { U64, I64, F64 } type;
	enum form form;
} field[] = {
#define F(name, type, form) { offsetof(struct slu_sim_metrics, name), type, form }
	F(jobs, U64, COUNT),
	F(avg_bounded_slowdown, F64, RATIO),
	F(max_bounded_slowdown, F64, RATIO),
	F(mean_wait, F64, SECONDS),
	F(p95_wait, I64, SECONDS),
	F(max_wait, I64, SECONDS),
	F(wait_width[SLU_NARROW], F64, SECONDS),
	F(wait_width[SLU_MEDIUM], F64, SECONDS),
	F(wait_width[SLU_WIDE], F64, SECONDS),
	F(mean_flow, F64, SECONDS),
	F(max_flow, I64, SECONDS),
	F(makespan, I64, SECONDS),
	F(utilisation, F64, PERCENT),
	F(backfilled, U64, COUNT),
	F(fairness, F64, RATIO),
	F(promises, U64, COUNT),
	F(promises_late, U64, COUNT),
	F(promise_error_mean, F64, SECONDS),
	F(restarts, U64, COUNT),
	F(unfinished, U64, COUNT),
	F(refused, U64, COUNT),
	F(seconds, F64, MILLIS),
#undef F
};

const struct slu_report_row slu_report_rows[] = {
	{ "jobs ended", "jobs", 0 },
	{ "average bounded slowdown", "avg_bounded_slowdown", -1 },
	{ "maximum bounded slowdown", "max_bounded_slowdown", -1 },
	{ "mean wait", "mean_wait", -1 },
	{ "95th percentile wait", "p95_wait", -1 },
	{ "maximum wait", "max_wait", -1 },
	{ "mean wait, to 1/16 wide", "wait_narrow", -1 },
	{ "mean wait, to 1/4 wide", "wait_medium", -1 },
	{ "mean wait, wider", "wait_wide", -1 },
	{ "mean flow (wait + run)", "mean_flow", -1 },
	{ "maximum flow", "max_flow", -1 },
	{ "makespan", "makespan", -1 },
	{ "utilisation", "utilisation", 1 },
	{ "backfilled", "backfilled", 0 },
	{ "fairness between users", "fairness", 1 },
	{ "promises made", "promises", 0 },
	{ "promises started later", "promises_late", -1 },
	{ "mean promise error", "promise_error_mean", -1 },
	{ "restarts after failures", "restarts", 0 },
	{ "unfinished", "unfinished", -1 },
	{ "refused or impossible", "refused", -1 },
	{ "simulated in", "seconds", 0 },
};
const uint32_t slu_report_nrow = SLU_LEN(slu_report_rows);

uint32_t slu_report_row(const char *key)
{
	uint32_t r = 0;

	while (strcmp(slu_report_rows[r].key, key))
		r++;
	return r;
}

double slu_report_value(const struct slu_sim_metrics *m, uint32_t row)
{
	const char *p = (const char *)m + field[row].offset;

	switch (field[row].type) {
	case U64:
		return (double)*(const uint64_t *)p;
	case I64:
		return (double)*(const int64_t *)p;
	default:
		return *(const double *)p;
	}
}

/* As people read it: two units, the seconds exactly as long as there are few. */
static void span_text(double v, bool whole, char out[48])
{
	static const struct {
		double s;
		char name, below;
		double part;
	} unit[] = { { 86400, 'd', 'h', 3600 }, { 3600, 'h', 'm', 60 }, { 60, 'm', 's', 1 } };

	for (size_t i = 0; i < SLU_LEN(unit); i++) {
		double parts = floor(v / unit[i].part + 0.5), per = unit[i].s / unit[i].part;

		if (parts < per || v >= 1e15)
			continue;
		snprintf(out, 48, "%.0f%c %.0f%c", floor(parts / per), unit[i].name,
			 fmod(parts, per), unit[i].below);
		return;
	}
	snprintf(out, 48, whole ? "%.0f s" : "%.2f s", v);
}

void slu_report_text(const struct slu_sim_metrics *m, uint32_t row, char out[48])
{
	double v = slu_report_value(m, row);

	switch (field[row].form) {
	case COUNT:
		snprintf(out, 48, "%.0f", v);
		break;
	case SECONDS:
		span_text(v, field[row].type == I64, out);
		break;
	case PERCENT:
		snprintf(out, 48, "%.2f %%", v * 100);
		break;
	case MILLIS:
		snprintf(out, 48, "%.3f s", v);
		break;
	default:
		snprintf(out, 48, v >= 100 ? "%.2f" : "%.4f", v);
		break;
	}
}

static bool is_best(const struct slu_run *run, uint32_t n, uint32_t i, uint32_t row)
{
	int better = slu_report_rows[row].better;
	double mine = slu_report_value(&run[i].sim.metrics, row);
	bool differs = false;

	for (uint32_t k = 0; k < n; k++) {
		double v = slu_report_value(&run[k].sim.metrics, row);

		if ((v - mine) * better > 0)
			return false;
		differs |= v != mine;
	}
	return better && differs;
}

int slu_report_table(const struct slu_trace *t, const struct slu_run *run, uint32_t n, bool colours,
		     struct slu_buf *out)
{
	slu_buf_printf(out,
		       "%u jobs (%" PRIu64 " records, %" PRIu64 " dropped, %" PRIu64
		       " malformed) on %u nodes, %" PRId64 " cores\n\n%-26s",
		       t->job.n, t->records, t->dropped, t->malformed, t->node.n,
		       n ? run[0].sim.capacity / 1000 : 0, "");
	for (uint32_t i = 0; i < n; i++)
		slu_buf_printf(out, " %18.18s", run[i].policy);
	slu_buf_putc(out, '\n');
	for (uint32_t r = 0; r < slu_report_nrow; r++) {
		slu_buf_printf(out, "%-26s", slu_report_rows[r].label);
		for (uint32_t i = 0; i < n; i++) {
			bool best = colours && is_best(run, n, i, r);
			char text[48];

			slu_report_text(&run[i].sim.metrics, r, text);
			slu_buf_printf(out, " %s%18s%s", best ? "\033[32m" : "", text,
				       best ? "\033[0m" : "");
		}
		slu_buf_putc(out, '\n');
	}
	return out->error;
}

int slu_report_json(const struct slu_trace *t, const struct slu_run *run, uint32_t n,
		    struct slu_buf *out)
{
	struct slu_jsonw w = slu_jsonw(out, SLU_JSONW_INDENT);

	slu_jsonw_arr(&w);
	for (uint32_t i = 0; i < n; i++) {
		const struct slu_sim_metrics *m = &run[i].sim.metrics;

		slu_jsonw_obj(&w);
		slu_jsonw_kstr(&w, "policy", run[i].policy);
		slu_jsonw_kstr(&w, "backfill", run[i].backfill);
		slu_jsonw_kstr(&w, "estimates", run[i].estimates);
		for (uint32_t r = 0; r < slu_report_nrow; r++) {
			slu_jsonw_key(&w, slu_report_rows[r].key);
			if (field[r].type == F64)
				slu_jsonw_f64(&w, slu_report_value(m, r));
			else
				slu_jsonw_i64(&w, (int64_t)slu_report_value(m, r));
		}
		slu_jsonw_ki64(&w, "promise_error_max", m->promise_error_max);
		slu_jsonw_ki64(&w, "reserved", (int64_t)m->reserved);
		slu_jsonw_ki64(&w, "cancelled", (int64_t)m->cancelled);
		slu_jsonw_ki64(&w, "users", (int64_t)m->users);
		slu_jsonw_ki64(&w, "plan_changes", (int64_t)m->plan_changes);
		slu_jsonw_ki64(&w, "steps", (int64_t)m->steps);
		slu_jsonw_ki64(&w, "records", (int64_t)t->records);
		slu_jsonw_ki64(&w, "dropped", (int64_t)t->dropped);
		slu_jsonw_ki64(&w, "malformed", (int64_t)t->malformed);
		slu_jsonw_kbool(&w, "verified", run[i].verified);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_arr(&w);
	slu_buf_putc(out, '\n');
	return out->error;
}

/* A CSV field; quoted where it must be. */
static void put_field(struct slu_buf *b, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		slu_buf_puts(b, s);
		return;
	}
	slu_buf_putc(b, '"');
	for (; *s; s++) {
		if (*s == '"')
			slu_buf_putc(b, '"');
		slu_buf_putc(b, *s);
	}
	slu_buf_putc(b, '"');
}

static void put_time(struct slu_buf *b, int64_t v)
{
	slu_buf_putc(b, ',');
	if (v != SLU_TIME_NONE)
		slu_buf_i64(b, v);
}

int slu_report_csv(const struct slu_trace *t, const struct slu_run *run, bool header,
		   struct slu_buf *b, int (*flush)(struct slu_buf *b, void *arg), void *arg)
{
	static const char *const fate[] = { "unseen", "waiting",   "running",
					    "ended",  "cancelled", "refused" };
	const struct slu_sim *s = &run->sim;

	if (header)
		slu_buf_puts(b, "policy,job,name,user,queue,slots,submit,start,end,wait,run,limit,"
				"promised,how,bounded_slowdown,restarts,fate\n");
	for (uint32_t j = 0; j < s->job.n; j++) {
		const struct slu_sim_job *r = &s->job.p[j];
		const struct slu_trace_job *q = &t->job.p[j];
		bool ended = r->fate == SLU_SIM_ENDED;

		put_field(b, run->policy);
		slu_buf_printf(b, ",%" PRIu64 ",", q->number ? q->number : q->id);
		put_field(b, q->name == SLU_INTERN_NONE ? "" : slu_intern_str(&t->str, q->name));
		slu_buf_putc(b, ',');
		put_field(b, q->user == SLU_INTERN_NONE ? "" : slu_intern_str(&t->str, q->user));
		slu_buf_putc(b, ',');
		put_field(b, q->queue == SLU_INTERN_NONE ? "" : slu_intern_str(&t->str, q->queue));
		slu_buf_printf(b, ",%" PRId64,
			       r->slots ? (int64_t)r->slots : slu_trace_slots(t, q->req));
		put_time(b, r->submit_s);
		put_time(b, r->start_s);
		put_time(b, r->end_s);
		put_time(b, ended ? r->start_s - r->submit_s : SLU_TIME_NONE);
		put_time(b, ended ? r->end_s - r->start_s : SLU_TIME_NONE);
		put_time(b, r->limit_s);
		put_time(b, r->promised_s);
		slu_buf_printf(b, ",%s,",
			       r->start_s == SLU_TIME_NONE ? ""
							   : slu_how_name((enum slu_how)r->how));
		if (ended)
			slu_buf_printf(b, "%.6g",
				       slu_bounded_slowdown(r->start_s - r->submit_s,
							    r->end_s - r->start_s));
		slu_buf_printf(b, ",%u,%s\n", r->restarts, fate[r->fate]);
		if (b->n > 1 << 16) {
			int rc = b->error ? b->error : flush(b, arg);

			if (rc < 0)
				return rc;
		}
	}
	return b->error ? b->error : flush(b, arg);
}
