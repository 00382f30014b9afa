/* What was reached: changes of state, decisions and their causes, answers to writes, states that
 * people see, reasons, events, lines of the log.  The linker sends the calls of the functions below
 * through here (--wrap, meson.build), so the daemon's code is as it is.
 *
 * `world --coverage` prints it all; reach.txt has seeds that together reach it. */
#include "coverage.h"

#include <ctype.h>
#include <stdio.h>

#include "base/log.h"
#include "control/frame/frame.h"
#include "queue/log.h"

struct run;

struct mark {
	char name[96];
	uint64_t times, worlds, last; /* last: number of the world, for counting worlds */
	uint64_t seed;                /* of the first world that reached it */
	bool excused;                 /* it is said never to be reached */
};

static struct {
	SLU_VEC(struct mark) mark;
	struct slu_map by_name;
	uint64_t number;
	struct world *w;
} cover;

void cover_world(struct world *w)
{
	cover.number++;
	cover.w = w;
}

uint32_t cover_seen(bool *hit, uint32_t max)
{
	uint32_t n = SLU_MIN(cover.mark.n, max);

	for (uint32_t i = 0; i < n; i++)
		hit[i] = cover.mark.p[i].times && cover.mark.p[i].last == cover.number;
	return n;
}

static struct mark *mark_of(const char *name)
{
	uint64_t key = slu_hash_bytes(name, strlen(name)), *p = slu_map_get(&cover.by_name, key);
	struct mark m = { 0 };

	if (p)
		return &cover.mark.p[*p];
	snprintf(m.name, sizeof m.name, "%s", name);
	if (slu_map_put(&cover.by_name, key, cover.mark.n) < 0 || slu_vec_push(&cover.mark, m) < 0)
		abort();
	return &cover.mark.p[cover.mark.n - 1];
}

void cover_expect(const char *name)
{
	mark_of(name);
}

void cover_excuse(const char *name)
{
	mark_of(name)->excused = true;
}

uint32_t cover_unreached(FILE *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < cover.mark.n; i++) {
		const struct mark *m = &cover.mark.p[i];

		if (!m->times == m->excused)
			continue;
		n++;
		fprintf(to, m->excused ? "# %s is reached, by seed %" PRIu64 "\n" : "- %s | ?\n",
			m->name, m->seed);
	}
	return n;
}

void cover_hit(const char *kind, const char *what)
{
	char name[96];
	struct mark *m;

	snprintf(name, sizeof name, "%s: %s", kind, what);
	m = mark_of(name);
	if (!m->times++)
		m->seed = cover.w ? cover.w->seed : 0;
	m->worlds += m->last != cover.number;
	m->last = cover.number;
}

/* A sentence without its names and numbers: words of small letters up to the first colon or comma. */
void cover_words(const char *kind, const char *text)
{
	char out[64];
	size_t n = 0;

	while (*text && n + 12 < sizeof out && *text != ':' && *text != ';' && *text != ',') {
		size_t k = strcspn(text, " :;,");
		bool word = k > 0;

		for (size_t i = 0; i < k; i++)
			word &= islower((unsigned char)text[i]) || text[i] == '\'';
		if (n)
			out[n++] = ' ';
		n += (size_t)snprintf(out + n, sizeof out - n, "%.*s",
				      word ? (int)SLU_MIN(k, 20u) : 1, word ? text : "#");
		n = SLU_MIN(n, sizeof out - 1);
		text += k + (text[k] == ' ');
	}
	out[n] = 0;
	cover_hit(kind, out);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct mark *)a)->name, ((const struct mark *)b)->name);
}

uint32_t cover_print(FILE *to)
{
	uint32_t missed = 0;

	if (cover.mark.n)
		qsort(cover.mark.p, cover.mark.n, sizeof cover.mark.p[0], by_name);
	for (uint32_t i = 0; i < cover.mark.n; i++) {
		const struct mark *m = &cover.mark.p[i];

		missed += !m->times;
		fprintf(to, "# %10" PRIu64 " times in %6" PRIu64 " worlds (seed %" PRIu64 ")  %s\n",
			m->times, m->worlds, m->seed, m->name);
	}
	return missed;
}

void cover_done(void)
{
	slu_vec_done(&cover.mark);
	slu_map_done(&cover.by_name);
}

/* ---- calls that come through here ---- */

void __real_core_changes(const struct slu_core *c, const char *what, uint32_t may, unsigned from,
			 unsigned to);
void __wrap_core_changes(const struct slu_core *c, const char *what, uint32_t may, unsigned from,
			 unsigned to);
void __real_core_run_reason(struct run *r, const char *text);
void __wrap_core_run_reason(struct run *r, const char *text);
void __real_slu_log_fields(enum slu_log_level level, const char *msg, const struct slu_log_field *f,
			   size_t n);
void __wrap_slu_log_fields(enum slu_log_level level, const char *msg, const struct slu_log_field *f,
			   size_t n);
bool __wrap_slu_log_enabled(enum slu_log_level level);
bool __real_slu_log_enabled(enum slu_log_level level);
int __real_slu_qlog_apply(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
			  const struct slu_event *ev, struct slu_decisions *out,
			  struct slu_error *err);
int __wrap_slu_qlog_apply(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
			  const struct slu_event *ev, struct slu_decisions *out,
			  struct slu_error *err);
int __real_slu_qlog_schedule(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
			     struct slu_decisions *out, struct slu_error *err);
int __wrap_slu_qlog_schedule(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
			     struct slu_decisions *out, struct slu_error *err);

/* States as the drawings in run.h, held.h and fluxjob.h name them. */
static const struct machine {
	const char *what, *state[8];
} machines[] = {
	{ "run", { "queued", "intent", "placing", "running", "undoing", "over" } },
	{ "slot", { "vacant", "chosen", "binding", "bound", "failed", "gone" } },
	{ "turn of a held Job",
	  { "none", "resuming", "retrying", "note due", "noting", "begun", "taken back" } },
	{ "early resume of a held Job", { "none", "going", "coming back" } },
	{ "FluxJob", { "unread", "refused", "crowded", "lives", "over" } },
};

static const char *state_name(size_t m, unsigned k)
{
	return m < SLU_LEN(machines) && k < 8 && machines[m].state[k] ? machines[m].state[k] : "?";
}

/* Whatever may follow a state is expected, once that state was reached. */
void __wrap_core_changes(const struct slu_core *c, const char *what, uint32_t may, unsigned from,
			 unsigned to)
{
	static uint32_t known[SLU_LEN(machines) + 1][8];
	size_t m = 0;
	char name[96];

	while (m < SLU_LEN(machines) && strcmp(machines[m].what, what))
		m++;
	for (unsigned i = 0; known[m][from & 7] != may && i < 8; i++)
		if (may >> i & 1) {
			snprintf(name, sizeof name, "%s: %s to %s", what, state_name(m, from),
				 state_name(m, i));
			cover_expect(name);
		}
	known[m][from & 7] = may;
	snprintf(name, sizeof name, "%s to %s", state_name(m, from), state_name(m, to));
	cover_hit(what, name);
	__real_core_changes(c, what, may, from, to);
}

void __wrap_core_run_reason(struct run *r, const char *text)
{
	if (text && *text)
		cover_words("reason", text);
	__real_core_run_reason(r, text);
}

bool __wrap_slu_log_enabled(enum slu_log_level level)
{
	return level >= SLU_WARN || __real_slu_log_enabled(level);
}

void __wrap_slu_log_fields(enum slu_log_level level, const char *msg, const struct slu_log_field *f,
			   size_t n)
{
	if (level >= SLU_WARN)
		cover_hit("log", msg);
	if (level >= SLU_WARN && cover.w)
		rule_logged(cover.w, msg);
	if (__real_slu_log_enabled(level))
		__real_slu_log_fields(level, msg, f, n);
}

/* Room that appeared in front of the next pass of that queue. */
static struct {
	const struct slu_queue *q;
	const char *what;
} room;

static void note_room(const struct slu_queue *q, const struct slu_event *ev)
{
	room.what = ev->kind == SLU_EV_NODE_ADD || ev->kind == SLU_EV_NODE_UP ? "a node was changed"
		    : ev->kind == SLU_EV_FOREIGN_REMOVE                       ? "other work ended"
		    : room.q == q && ev->kind != SLU_EV_QUEUE_SET             ? room.what
									      : NULL;
	room.q = q;
}

static void decided(const struct slu_decisions *d, uint32_t from)
{
	for (uint32_t i = from; i < d->v.n; i++) {
		const struct slu_decision *x = &d->v.p[i];

		cover_hit("decision", slu_decision_name(x->kind));
		if (x->kind == SLU_DEC_PLAN)
			cover_hit("cause", slu_cause_name(x->cause));
		if (cover.w) {
			rule_decided(cover.w, x);
			rule_kept(cover.w, x);
		}
	}
}

int __wrap_slu_qlog_apply(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
			  const struct slu_event *ev, struct slu_decisions *out,
			  struct slu_error *err)
{
	uint32_t n = out->v.n;
	int rc = __real_slu_qlog_apply(l, q, now_s, ev, out, err);

	decided(out, SLU_MIN(n, out->v.n));
	if (!rc)
		note_room(q, ev);
	return rc;
}

int __wrap_slu_qlog_schedule(struct slu_qlog *l, struct slu_queue *q, int64_t now_s,
			     struct slu_decisions *out, struct slu_error *err)
{
	uint32_t n = out->v.n;
	int rc = __real_slu_qlog_schedule(l, q, now_s, out, err);

	decided(out, SLU_MIN(n, out->v.n));
	for (uint32_t i = SLU_MIN(n, out->v.n); cover.w && room.q == q && i < out->v.n; i++)
		rule_earlier(cover.w, &out->v.p[i], room.what);
	room.what = NULL;
	return rc;
}

void cover_begin(unsigned age)
{
	char name[64];

	for (int i = 0; i <= SLU_DEC_MOVED; i++) {
		snprintf(name, sizeof name, "decision: %s",
			 slu_decision_name((enum slu_decision_kind)i));
		cover_expect(name);
	}
	for (int i = SLU_CAUSE_NEW; i <= SLU_CAUSE_DROPPED; i++) {
		if (i == SLU_CAUSE_STARTED) /* of a start, which is no plan */
			continue;
		snprintf(name, sizeof name, "cause: %s", slu_cause_name((enum slu_cause)i));
		cover_expect(name);
	}
	for (uint32_t i = 0; i < world_ops(); i++) {
		if (world_op(i)->since > age || world_op(i)->fn == lives_compare)
			continue;
		snprintf(name, sizeof name, "action: %s", world_op(i)->name);
		cover_expect(name);
	}
}
