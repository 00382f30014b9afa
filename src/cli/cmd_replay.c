/* sluice replay: run the event log of a store through the engine and prove every decision. */
#include "base/buf.h"
#include "cli/commands.h"
#include "cli/term.h"
#include "kube/time.h"
#include "queue/log.h"
#include "store/store.h"
#include "wire/jsonw.h"

#include <stdio.h>

struct conf {
	const char *from, *to, *job, *output;
	bool verify, quiet;
};

static const char *const forms[] = { "table", "json", NULL };

static const struct slu_option option[] = {
#define O(name, letter, type, arg, help, field, ...) \
	{ name, letter, type, arg, help, offsetof(struct conf, field), ##__VA_ARGS__ }
	O("from", 0, SLU_OPT_STRING, "TIME", "start at this time (the beginning of the log)", from),
	O("to", 0, SLU_OPT_STRING, "TIME", "stop at this time (the end of the log)", to),
	O("job", 'j', SLU_OPT_STRING, "JOB", "show the decisions about this job", job),
	O("verify", 'v', SLU_OPT_FLAG, NULL, "check every invariant at each step", verify),
	O("output", 'o', SLU_OPT_STRING, "FORM", "table or json (table)", output, .choice = forms),
	O("quiet", 'q', SLU_OPT_FLAG, NULL, "print only errors", quiet),
#undef O
	{ 0 },
};

struct run {
	const struct conf *conf;
	struct slu_replay *r;
	struct slu_progress bar;
	int64_t from_us, to_us;
	uint64_t job, first, last;
	bool json, any, ended;
	uint64_t decisions; /* in the time asked for */
	uint64_t shown;     /* ... about the job asked for */
	int64_t first_us, last_us;
	struct slu_buf list; /* of the job, JSON */
	struct slu_jsonw w;
	struct slu_error err;
};

/* Seconds since 1970, or as Kubernetes writes it. */
static int parse_time(const char *name, const char *s, int64_t *us, struct slu_error *err)
{
	char *end;

	errno = 0;
	long long v = strtoll(s, &end, 10);

	if (end != s && !*end && !errno && v >= 0 && v < INT64_MAX / 1000000) {
		*us = v * 1000000;
		return 0;
	}
	if (slu_ktime_parse(s, strlen(s), us) < 0)
		return slu_fail(err, SLU_WRONG,
				"--%s: \"%s\" is not a time; write 2026-01-31T12:00:00Z or seconds",
				name, s);
	return 0;
}

static bool is_wanted(const struct run *x, const struct slu_queue *q, const struct slu_decision *d)
{
	struct slu_job_view v;

	if (!x->conf->job)
		return false;
	if (x->job)
		return d->job == x->job;
	return !slu_queue_job(q, d->job, &v) && v.name && !strcmp(v.name, x->conf->job);
}

static void show_decision(struct run *x, int64_t at_us, const char *text,
			  const struct slu_decision *d)
{
	char when[SLU_KTIME_TEXT];

	slu_ktime_format(at_us, true, when);
	if (!x->json) {
		printf("%s  %s\n", when, text);
		return;
	}
	slu_jsonw_obj(&x->w);
	slu_jsonw_kstr(&x->w, "at", when);
	slu_jsonw_ki64(&x->w, "job", (int64_t)d->job);
	slu_jsonw_kstr(&x->w, "kind", slu_decision_name(d->kind));
	slu_jsonw_kstr(&x->w, "text", text);
	slu_jsonw_end_obj(&x->w);
}

static int decision(void *arg, int64_t at_us, const struct slu_queue *q,
		    const struct slu_decisions *d, const struct slu_decision *x)
{
	struct slu_buf b = SLU_BUF_INIT(1 << 20);
	struct run *r = arg;

	if (at_us < r->from_us)
		return 0;
	r->decisions++;
	if (!is_wanted(r, q, x))
		return 0;
	r->shown++;
	slu_decision_describe(q, d, x, &b);
	show_decision(r, at_us, slu_buf_str(&b), x);
	slu_buf_done(&b);
	return 0;
}

static int replay_row(void *arg, const struct slu_store_event *e)
{
	struct run *x = arg;

	if (e->at_us > x->to_us) {
		x->ended = true;
		return -ECANCELED;
	}
	if (!x->any) {
		x->first_us = e->at_us;
		x->first = e->seq;
	}
	x->any = true;
	x->last_us = e->at_us;
	slu_progress_show(&x->bar, e->seq - x->first, x->last - x->first + 1, "rows");
	return slu_replay_row(x->r, e->seq, e->at_us, e->data, e->size, &x->err);
}

static void summary(struct run *x, int rc)
{
	const struct slu_replay_count *n = slu_replay_count(x->r);
	char from[SLU_KTIME_TEXT], to[SLU_KTIME_TEXT];
	struct slu_buf b = SLU_BUF_INIT(64 << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);

	slu_ktime_format(x->first_us, true, from);
	slu_ktime_format(x->last_us, true, to);
	if (!x->json && !rc && !x->conf->quiet)
		printf("%" PRIu64 " decisions replayed as recorded (%" PRIu64
		       " beginnings, %" PRIu64 " events, %" PRIu64 " passes, %s to %s)\n",
		       n->decisions, n->begins, n->events, n->passes, from, to);
	if (!x->json)
		return;
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "from", from);
	slu_jsonw_kstr(&w, "to", to);
	slu_jsonw_ki64(&w, "rows", (int64_t)n->rows);
	slu_jsonw_ki64(&w, "skipped", (int64_t)n->skipped);
	slu_jsonw_ki64(&w, "beginnings", (int64_t)n->begins);
	slu_jsonw_ki64(&w, "events", (int64_t)n->events);
	slu_jsonw_ki64(&w, "passes", (int64_t)n->passes);
	slu_jsonw_ki64(&w, "decisions", (int64_t)n->decisions);
	slu_jsonw_ki64(&w, "asked", (int64_t)x->decisions);
	slu_jsonw_key(&w, "reproduced");
	slu_jsonw_bool(&w, !rc);
	if (rc)
		slu_jsonw_kstr(&w, "difference", x->err.text);
	slu_jsonw_end_obj(&w);
	if (x->conf->job) { /* the list was written while it was found */
		b.n--;
		slu_buf_puts(&b, ",\"list\":");
		slu_buf_add(&b, x->list.p, x->list.n);
		slu_buf_putc(&b, '}');
	}
	printf("%s\n", slu_buf_str(&b));
	slu_buf_done(&b);
}

static int replay(struct run *x, struct slu_store *s, struct slu_error *err)
{
	struct slu_replay_opts o = { .decision = decision, .arg = x, .verify = x->conf->verify };
	uint64_t begin = 0;
	int rc = slu_store_last_event(s, &x->last, err);

	if (!rc)
		rc = slu_store_log_begin(s, x->from_us, &begin, err);
	if (!rc)
		rc = slu_replay_new(&o, &x->r);
	if (rc < 0)
		return rc;
	slu_progress_start(&x->bar, "replay", !x->conf->quiet);
	rc = slu_store_events(s, begin, replay_row, x, err);
	slu_progress_end(&x->bar);
	if (rc == -ECANCELED && x->ended)
		rc = 0;
	if (rc < 0 && *x->err.text)
		slu_fail(err, rc, "%s", x->err.text);
	if (!rc && !x->any)
		return slu_fail(err, -ENOENT,
				"the store has no event log, or none of that time (see store.log)");
	if (!rc && !slu_replay_count(x->r)->begins)
		return slu_fail(err, -ENOENT,
				"the beginning of the log of that time has been deleted");
	return rc;
}

static int run_replay(void *conf, int argc, char **argv, struct slu_error *err)
{
	struct conf *c = conf;
	slu_cleanup(slu_store_closep) struct slu_store *s = NULL;
	struct run x = { .conf = c, .to_us = INT64_MAX, .list = SLU_BUF_INIT(64 << 20) };
	const char *url = argc ? argv[0] : getenv("DATABASE_URL");
	char shown[256], *end;
	int rc = 0;

	if (!url || !*url)
		return slu_fail(err, SLU_WRONG, SLU_WHICH_STORE);
	x.json = c->output && !strcmp(c->output, "json");
	x.w = slu_jsonw(&x.list, SLU_JSONW_COMPACT);
	if (c->from)
		rc = parse_time("from", c->from, &x.from_us, err);
	if (!rc && c->to)
		rc = parse_time("to", c->to, &x.to_us, err);
	if (rc < 0)
		return rc;
	if (c->job) {
		x.job = strtoull(c->job, &end, 10);
		x.job = *end ? 0 : x.job;
	}
	slu_store_url_shown(url, shown, sizeof shown);
	rc = slu_store_open(url, SLU_STORE_READONLY, &s, err);
	if (!rc) {
		slu_jsonw_arr(&x.w);
		rc = replay(&x, s, err);
		slu_jsonw_end_arr(&x.w);
	}
	if (!rc && c->job && !x.shown)
		rc = slu_fail(err, -ENOENT, "nothing was decided about a job \"%s\"%s", c->job,
			      c->from || c->to ? " in that time" : "");
	else if (x.r && (!rc || rc == -EUCLEAN))
		summary(&x, rc);
	if (rc < 0 && !strstr(err->text, url))
		slu_fail_prefix(err, rc, "%s", shown);
	slu_replay_free(x.r);
	slu_buf_done(&x.list);
	return rc;
}

const struct slu_command slu_cmd_replay = {
	.name = "replay",
	.args = "[STORE]",
	.summary = "check past decisions against the event log",
	.details =
		"Runs every recorded event through the engine again and compares its decisions with the recorded\n"
		"ones, byte by byte. The first difference is an error that says what differs.\n\n"
		"STORE is a file (SQLite) or postgres://...; default: DATABASE_URL. JOB is a number or\n"
		"NAMESPACE/NAME. TIME is 2026-01-31T12:00:00Z or seconds since 1970. May run beside the daemon.",
	.option = option,
	.conf_size = sizeof(struct conf),
	.max_args = 1,
	.run = run_replay,
};
