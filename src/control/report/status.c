/* Information for people: events, the PodScheduled condition, start estimates, PodGroup status.
 *
 * Every piece of it is a write, and writes compete with bindings.  So a gang that starts soon gets only
 * its Scheduled event.  A gang that has waited for status.interval gets its estimate and reason on its
 * PodGroup (or its first pod), and its members get the condition once per kind of reason.  The core
 * writes again only after a change and after the interval, which grows with each write. */
#include "control/report/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "control/cluster/cluster.h"
#include "control/fluxjob/fluxjob.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/run/run.h"
#include "wire/jsonw.h"

void core_deadline_text(struct slu_core *c, const struct group *g, const struct run *r,
			const struct slu_why *why, struct slu_buf *b)
{
	int64_t by = g->wish.deadline_s;
	char at[32];

	if (!by || !r || r->never || r->refused || g->on_hold ||
	    (why->planned_s != SLU_TIME_NONE && why->planned_s + core_run_limit(c, r) <= by))
		return;
	core_stamp(at, by);
	slu_buf_printf(b, "%sas planned now, it cannot end by its deadline %s", b->n ? "; " : "",
		       at);
}

static struct run *waiting_run(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state == RUN_QUEUED)
			return g->run.p[i];
	return NULL;
}

/* Why the group does not run, in one sentence; `why` is filled if its run is in the queue. */
static void sentence(struct slu_core *c, struct group *g, struct run *r, struct slu_why *why,
		     struct slu_buf *b)
{
	uint32_t have = 0, gated = 0;

	if (g->wrong) {
		slu_buf_puts(b, g->wrong);
		return;
	}
	if (r) {
		if (r->reason && (r->never || r->refused))
			slu_buf_puts(b, r->reason);
		else if (g->on_hold)
			slu_buf_puts(b, CORE_HELD);
		else if (slu_queue_why(c->q, c->now_s, r->id, why, NULL) == 0 && why->reason)
			slu_buf_puts(b, why->reason);
		else if (r->reason)
			slu_buf_puts(b, r->reason);
		core_deadline_text(c, g, r, why, b);
		return;
	}
	if (g->cancelled) {
		slu_buf_puts(b, CORE_CANCELLED);
		return;
	}
	if (g->again_s && g->stall_text) {
		slu_buf_puts(b, g->stall_text);
		return;
	}
	if (g->again_s) {
		slu_buf_printf(
			b, "its members could not all be bound, %u times; Sluice tries again soon",
			g->undone);
		return;
	}
	if (g->after_text) {
		slu_buf_puts(b, g->after_text);
		return;
	}
	if (core_native_lacks(c, g)) {
		slu_buf_printf(b, "PodGroup %s does not exist", g->id.key + 2);
		return;
	}
	if (g->life.ending) {
		slu_buf_printf(b, "group %s is being deleted; its pods are not started",
			       g->id.name);
		return;
	}
	for (uint32_t i = 0; i < g->pod.n; i++) {
		uint32_t n = 1 + g->pod.p[i]->others;

		have += core_pod_startable(g->pod.p[i]) ? n : 0;
		gated += slu_held_free(&g->pod.p[i]->k->spec) ? 0 : n;
	}
	slu_buf_printf(b, "group %s has %u of %u members", g->id.name, have, g->wish.min);
	if (gated)
		slu_buf_printf(b, ", %u more are held by scheduling gates", gated);
}

static void annotate(struct slu_core *c, struct group *g, const struct slu_why *why,
		     const char *text)
{
	const struct slu_kpodgroup *pg = core_podgroup(c, g);
	const struct slu_kmeta *m = pg ? &pg->o.meta : &g->pod.p[0]->k->o.meta;
	struct slu_buf b = SLU_BUF_INIT(8192);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	char at[32] = "";

	if (why->planned_s != SLU_TIME_NONE)
		core_stamp(at, why->planned_s);
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, SLU_OUT_START);
	slu_jsonw_str(&w, *at ? at : NULL);
	slu_jsonw_key(&w, SLU_OUT_POSITION);
	if (why->position) {
		char n[16];

		snprintf(n, sizeof n, "%u", why->position);
		slu_jsonw_str(&w, n);
	} else {
		slu_jsonw_null(&w);
	}
	slu_jsonw_kstr(&w, SLU_OUT_REASON, text);
	slu_jsonw_end_obj(&w);
	if (!b.error)
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_ANNOTATE,
						       .kind = pg                   ? pg->o.kind
							       : g->pod.p[0]->stand ? SLU_KIND_JOB
										    : SLU_KIND_POD,
						       .ns = m->ns,
						       .name = m->name,
						       .uid = m->uid,
						       .text = b.p });
	slu_buf_done(&b);
}

/* The sentence without its names and numbers: "waits for 3 cpu" is no news after "waits for 4 cpu".
 */
static uint64_t hash_cause(const char *text)
{
	uint64_t h = 1;

	while (*text) {
		size_t n = strcspn(text, " "), digit = strcspn(text, "0123456789");

		if (digit >= n && n)
			h = slu_hash_u64(h ^ slu_hash_bytes(text, n));
		text += n + (text[n] == ' ');
	}
	return h;
}

/* Without a promise the forecast gives the start; deep in the queue, only the answer to `sluice why` has one. */
#define FORETOLD_PLACES 500

static void foretell(struct slu_core *c, const struct run *r, struct slu_why *why)
{
	int64_t at_s = r && !why->promised ? core_foretold(c, r->id) : SLU_TIME_NONE;

	if (at_s != SLU_TIME_NONE)
		why->planned_s = at_s;
	if (!why->promised && why->position > FORETOLD_PLACES)
		why->planned_s = SLU_TIME_NONE;
}

/* The member that gets the event for all waiting members; NULL: none waits.  Other members may run already. */
static struct pod *who_waits(const struct group *g)
{
	struct pod *other = NULL;

	for (uint32_t i = g->pod.n; i-- > 0;) {
		struct pod *p = g->pod.p[i];

		if (core_pod_at(p))
			continue;
		if (core_pod_startable(p) || !other || !core_pod_startable(other))
			other = p;
	}
	return other;
}

static void tell_waiting(struct slu_core *c, struct group *g)
{
	struct run *r = waiting_run(g);
	struct slu_why why = { .planned_s = SLU_TIME_NONE };
	struct slu_buf b = SLU_BUF_INIT(1000);
	bool grave = g->wrong || (r && (r->never || r->refused)), news;
	bool fluxjob = g->owned.n && c->holds->sink.seen && !c->fluxjobs->absent; /* reports it */
	struct pod *who = who_waits(g);
	int64_t slack = 10;

	sentence(c, g, r, &why, &b);
	foretell(c, r, &why);
	why.planned_s = core_estimate(c, why.planned_s);
	if (!b.n)
		slu_buf_puts(&b, "waits for its turn");
	news = !g->told_text || strcmp(g->told_text, slu_buf_str(&b));
	if (why.planned_s == g->told_start_s) /* also: there is none, as before */
		slack = 0;
	else if (why.planned_s != SLU_TIME_NONE && g->told_start_s != SLU_TIME_NONE)
		slack = llabs(why.planned_s - g->told_start_s);
	if (news || slack >= 10 || why.position != g->told_position) {
		if (c->cfg->status.annotate && !fluxjob)
			annotate(c, g, &why, slu_buf_str(&b));
		g->told_start_s = why.planned_s;
		g->told_position = why.position;
	}
	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];

		/* The server marks gated pods as such, and that condition stays true.  Of held work that
		 * names Sluice the FluxJob tells. */
		if (!core_pod_startable(p) || (p->told && !(grave && news)) ||
		    slu_held_gated(&p->k->spec) || (fluxjob && !grave))
			continue;
		core_tell_unschedulable(c, p, slu_buf_str(&b));
	}
	if (who && !g->wrong &&
	    (grave ? news : !fluxjob && hash_cause(slu_buf_str(&b)) != g->told_cause)) {
		core_tell_maker(c, who, "FailedScheduling", slu_buf_str(&b));
		g->told_cause = hash_cause(slu_buf_str(&b));
	}
	if (news) {
		slu_free(g->told_text);
		g->told_text = slu_buf_take(&b);
	}
	slu_buf_done(&b);
	slu_why_done(&why);
	g->told_us = c->now_us;
	g->told_times++;
}

/* Status writes yield to bindings: a pass sends a bounded number, and the more groups wait the rarer each is
 * written again.  To tell when a job deep in a long queue will start costs a plan of all jobs before it:
 * so a pass ends when it has taken PASS_NS, and the next one waits for REST times as long. */
#define PASS_US    500000
#define PASS_NS    20000000
#define REST       20
#define BUDGET     100
#define BUSY       5
#define TOLD_A_SEC 10

void core_status(struct slu_core *c)
{
	int64_t interval = c->cfg->status.interval_s * 1000000, again;
	uint64_t limit = c->count.writes_all + (c->binding ? BUSY : BUDGET);
	int64_t begin = slu_clock_cpu_ns(), took = 0;
	uint32_t waiting = 0;

	if (!core_is_due(c, CORE_AT_STATUS))
		return;
	again = SLU_MAX(interval, (int64_t)c->groups->waiting * 1000000 / TOLD_A_SEC);
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		struct group *g = group_of(e);
		struct run *r = waiting_run(g);
		bool waits = g->pod.n && (r || g->wrong || (!g->run.n && !core_group_elsewhere(g)));
		bool grave = r && (r->never || r->refused);

		waiting += waits;
		if ((c->count.writes_all >= limit || took >= PASS_NS) && !grave)
			continue;
		if (g->id.explicit)
			core_podgroup_status(c, g);
		if (!waits) {
			g->waiting_us = 0;
			g->told_times = 0;
			continue;
		}
		if (!g->waiting_us)
			g->waiting_us = c->now_us;
		if (g->told_us ? c->now_us - g->told_us >=
					 SLU_MAX(again, core_patience_us(c, g->told_times))
			       : grave || c->now_us - g->waiting_us >= interval ||
					 (r && g->wish.deadline_s))
			tell_waiting(c, g);
		took = slu_clock_cpu_ns() - begin;
	}
	c->groups->waiting = waiting;
	core_due_at(c, CORE_AT_STATUS,
		    c->groups->table.n ? c->now_us + SLU_MAX((int64_t)PASS_US, took * REST / 1000)
				       : CORE_NEVER);
}
