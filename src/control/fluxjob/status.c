/* The status of FluxJobs: its contents, and when it is worth a write.
 *
 * Work that starts at once passes four states in a second; they become one write.  A change of state waits
 * for a second after the last write, a passing state for three, an end not at all.  A new position or
 * estimate waits for status.interval; for a job that is not among the next in line, each further one waits
 * twice as long as the one before.
 *
 * If thousands of statuses were due at once, the server would answer slowly, and the Jobs would take many
 * seconds to start.  So the more FluxJobs there are, the longer a state must last to be written.  In
 * addition, the passing states of all held work are limited to so many writes per second.  A delayed write
 * has the state of the moment at which it is sent, so it includes what an earlier write would have said.
 * The first and the last state are always written, and so are all states of users' own FluxJobs. */
#include "control/fluxjob/fluxjob.h"

#include <stdio.h>
#include <time.h>

#include "base/hostlist.h"
#include "wire/jsonw.h"

#define GATHER_US 1000000
#define STARTS_US 3000000 /* states that pass within this are not worth telling */
#define EACH_US   10000   /* for each FluxJob that is not over, up to MOST_US */
#define MOST_US   30000000
#define WORD_US   500000 /* for each state between the first and the last */
#define WORDS     20     /* statuses that may be written at once */

static const char *state_name(const struct fluxjob *f)
{
	static const char *const name[] = {
		[SLU_HELD_HELD] = "Held",           [SLU_HELD_QUEUED] = "Queued",
		[SLU_HELD_RELEASED] = "Released",   [SLU_HELD_RUNNING] = "Running",
		[SLU_HELD_DONE] = "Finished",       [SLU_HELD_REFUSED] = "Refused",
		[SLU_HELD_CANCELLED] = "Cancelled",
	};

	return f->state == SLU_HELD_DONE && !f->ok ? "Failed" : name[f->state];
}

static const char *submit_name(const struct fluxjob *f)
{
	return f->state == SLU_HELD_HELD        ? "statusNew"
	       : f->state == SLU_HELD_REFUSED   ? "statusError"
	       : f->state == SLU_HELD_CANCELLED ? "statusCancel"
						: "statusSubmit";
}

bool core_fluxjob_over(const struct fluxjob *f)
{
	return f->state == SLU_HELD_DONE || f->state == SLU_HELD_REFUSED ||
	       f->state == SLU_HELD_CANCELLED;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	return slu_hash_u64(h ^ (s && *s ? slu_hash_bytes(s, strlen(s)) : 0));
}

uint64_t core_fluxjob_digest(const struct fluxjob *f)
{
	uint64_t h = slu_hash_u64(((uint64_t)f->state + 1) << 1 | f->ok); /* 0: never written */

	h = slu_hash_u64(h ^ f->job);
	h = slu_hash_u64(h ^ f->position);
	/* An estimate that moved by seconds counts as unchanged. */
	h = slu_hash_u64(h ^ (uint64_t)(f->planned_s / 10));
	h = slu_hash_u64(h ^ (uint64_t)f->start_s);
	return mix_text(mix_text(mix_text(h, f->nodes), f->places), f->message);
}

void core_fluxjob_due(struct slu_core *c, struct fluxjob *f)
{
	bool moved = f->told_us && f->state == f->told_state;
	int64_t last = SLU_MAX(f->told_us, f->asked_us);
	uint32_t times = SLU_MIN(f->told_times, f->position / 4); /* the next in line sooner */
	int64_t at = last + (moved ? core_patience_us(c, times) : GATHER_US);
	int64_t lasts = c->now_us + SLU_MIN((int64_t)c->fluxjobs->open * EACH_US, (int64_t)MOST_US);

	if (f->claim) /* a claim has no status in the cluster */
		return;
	c->fluxjobs->open -= f->open;
	f->open = !core_fluxjob_over(f);
	c->fluxjobs->open += f->open;
	if (core_fluxjob_digest(f) == f->told) {
		f->due_us = 0;
		return;
	}
	if (core_fluxjob_over(f) || !last)
		at = c->now_us;
	else if (f->state == SLU_HELD_RELEASED || (f->state == SLU_HELD_HELD && f->had_nodes))
		at = SLU_MAX(at, lasts + STARTS_US); /* on its way to another */
	else
		at = SLU_MAX(at, lasts);
	/* This write includes what the delayed write would have said. */
	if (!f->due_us || f->state != f->due_state || at < f->due_us)
		f->due_us = at;
	f->due_state = f->state;
	core_fluxjob_turn_by(c, f, f->due_us);
}

int64_t core_fluxjob_pace(struct slu_core *c, const struct fluxjob *f)
{
	int64_t *spent = &c->fluxjobs->words_us;

	if (f->own || core_fluxjob_over(f) || !f->told_us)
		return 0;
	*spent = SLU_MIN(*spent, c->now_us + WORDS * WORD_US); /* the clock may be set back */
	if (*spent > c->now_us + (WORDS - 1) * WORD_US)
		return *spent - (WORDS - 1) * WORD_US;
	*spent = SLU_MAX(*spent, c->now_us) + WORD_US;
	return 0;
}

/* ---- the body ---- */

static void format_stamp(char out[32], int64_t s)
{
	time_t t = (time_t)s;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void time_or_null(struct slu_jsonw *w, const char *key, int64_t s)
{
	char at[32];

	format_stamp(at, s);
	slu_jsonw_key(w, key);
	slu_jsonw_str(w, s ? at : NULL);
}

static void text_or_null(struct slu_jsonw *w, const char *key, const char *text)
{
	slu_jsonw_key(w, key);
	slu_jsonw_str(w, text && *text ? text : NULL);
}

static void condition(struct slu_core *c, const struct fluxjob *f, struct slu_jsonw *w,
		      const char *type, bool is, const char *reason, const char *message)
{
	const struct slu_kcond *was = slu_kcond_get(f->k->conds, f->k->nconds, type);
	bool same = was && was->status == (is ? SLU_TRI_TRUE : SLU_TRI_FALSE) && was->since_us;
	char at[32];

	format_stamp(at, same ? was->since_us / 1000000 : c->now_s);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", type);
	slu_jsonw_kstr(w, "status", is ? "True" : "False");
	slu_jsonw_kstr(w, "reason", reason);
	slu_jsonw_kstr(w, "message", message ? message : "");
	slu_jsonw_kstr(w, "lastTransitionTime", at);
	slu_jsonw_ki64(w, "observedGeneration", f->k->o.meta.generation);
	slu_jsonw_end_obj(w);
}

static void conditions(struct slu_core *c, const struct fluxjob *f, struct slu_jsonw *w)
{
	bool placed = f->state == SLU_HELD_RELEASED || f->state == SLU_HELD_RUNNING ||
		      f->state == SLU_HELD_DONE;
	bool refused = f->state == SLU_HELD_REFUSED, gone = f->state == SLU_HELD_CANCELLED;
	bool over = f->state == SLU_HELD_DONE;

	slu_jsonw_key(w, "conditions");
	slu_jsonw_arr(w);
	condition(c, f, w, "Accepted", !refused, refused ? "Refused" : "Accepted",
		  refused ? f->message : "");
	condition(c, f, w, "Scheduled", placed,
		  placed    ? "NodesChosen"
		  : refused ? "Refused"
		  : gone    ? "Cancelled"
			    : "Waiting",
		  placed ? "" : f->message);
	condition(c, f, w, "Finished", over || gone,
		  gone    ? "Cancelled"
		  : !over ? "NotFinished"
		  : f->ok ? "Succeeded"
			  : "Failed",
		  "");
	slu_jsonw_end_arr(w);
}

/* "a,b,c" in short form. */
static void short_list(const char *nodes, struct slu_buf *b)
{
	struct slu_hostlist l = { 0 };

	if (nodes && *nodes && (slu_hostlist_parse(&l, nodes) < 0 || slu_hostlist_put(&l, b) < 0)) {
		b->n = 0;
		slu_buf_puts(b, nodes);
	}
	slu_hostlist_done(&l);
}

/* After a start: whether the status in the cluster is right already. */
static bool says_so(const struct fluxjob *f, const char *nodes)
{
	const struct slu_kfluxjob *k = f->k;

	return slu_kstr_is(k->state, state_name(f)) &&
	       slu_kstr_is(k->message, f->message ? f->message : "") &&
	       (uint32_t)SLU_MAX(k->position, 0) == f->position &&
	       slu_kstr_is(k->node_list, nodes) &&
	       slu_kstr_is(k->places, f->places ? f->places : "") &&
	       llabs(k->estimate_us / 1000000 - f->planned_s) < 10;
}

void core_fluxjob_tell(struct slu_core *c, struct fluxjob *f)
{
	struct slu_buf b = SLU_BUF_INIT(1u << 20), nodes = SLU_BUF_INIT(1u << 20);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);

	short_list(f->nodes, &nodes);
	f->told = core_fluxjob_digest(f);
	f->told_times = f->told_state == f->state ? f->told_times + 1 : 0;
	f->told_state = f->state;
	f->due_us = 0;
	if (says_so(f, slu_buf_str(&nodes)))
		goto out;
	f->told_us = c->now_us;
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "submitStatus", submit_name(f));
	slu_jsonw_kstr(&w, "state", state_name(f));
	text_or_null(&w, "message", f->message);
	slu_jsonw_key(&w, "position");
	if (f->position)
		slu_jsonw_i64(&w, f->position);
	else
		slu_jsonw_null(&w);
	time_or_null(&w, "startEstimate", f->planned_s);
	time_or_null(&w, "startTime", f->start_s);
	if (f->job)
		slu_jsonw_ki64(&w, "jobid", (int64_t)f->job);
	text_or_null(&w, "nodeList", slu_buf_str(&nodes));
	text_or_null(&w, "places", f->places);
	conditions(c, f, &w);
	slu_jsonw_end_obj(&w);
	if (!b.error)
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_STATUS,
						       .kind = SLU_KIND_FLUXJOB,
						       .ns = f->k->o.meta.ns,
						       .name = f->name,
						       .text = b.p });
out:
	slu_buf_done(&b);
	slu_buf_done(&nodes);
}
