/* Requests of people: cancel, hold, release, drain.
 *
 * A request is answered when its change is in the store, so an answered change survives a crash in the next
 * moment. */
#include "control/ask/ask.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

/* ---- answers ---- */

bool core_answer_later(struct slu_core *c, struct slu_rec_ask *a, const char *text)
{
	struct core_answer x = { .ask = a, .ticket = UINT64_MAX };

	if (!a->answer || !slu_intents_kept(c->door) || c->store > SLU_JOURNAL_OK)
		return false;
	x.text = slu_strdup(text);
	if (!x.text || slu_vec_push(&c->asks->answer, x) < 0) {
		slu_free(x.text);
		return false;
	}
	return true;
}

void core_answers_sent(struct slu_core *c, uint64_t ticket)
{
	for (uint32_t i = 0; i < c->asks->answer.n; i++)
		if (c->asks->answer.p[i].ticket == UINT64_MAX)
			c->asks->answer.p[i].ticket = ticket;
}

static void answer_person(struct core_answer *x)
{
	x->ask->answer(x->ask->arg, 0, x->text);
	x->ask->answer = NULL;
	x->ask->base.free(&x->ask->base);
	slu_free(x->text);
}

/* During an outage no answer waits for the store: everything is written again afterwards. */
void core_answers(struct slu_core *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->asks->answer.n; i++) {
		struct core_answer *x = &c->asks->answer.p[i];

		if (c->store <= SLU_JOURNAL_OK &&
		    (x->ticket == UINT64_MAX || !slu_intents_durable(c->door, x->ticket)))
			c->asks->answer.p[kept++] = *x;
		else
			answer_person(x);
	}
	c->asks->answer.n = kept;
}

void core_answers_done(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->asks->answer.n; i++) {
		c->asks->answer.p[i].ask->base.free(&c->asks->answer.p[i].ask->base);
		slu_free(c->asks->answer.p[i].text);
	}
	slu_vec_done(&c->asks->answer);
}

/* ---- requests of people ---- */

/* Whether a run of the group is in the queue. */
static bool any_run_waits(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state == RUN_QUEUED)
			return true;
	return false;
}

/* Whether the group's objects say that it was taken out of the queue. */
static bool is_noted(struct slu_core *c, const struct group *g)
{
	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct slu_group_source src;

		core_source(c, g->pod.p[i]->k, &src);
		if (slu_group_note(&src, SLU_ON_HOLD, NULL) ||
		    slu_group_note(&src, SLU_CANCELLED, NULL))
			return true;
	}
	return false;
}

int core_ask_group(struct slu_core *c, const struct slu_rec_ask *a, struct slu_error *err)
{
	struct group *g = core_group_named(c, a->ns, a->name);
	bool was, was_held;

	if (!g)
		return slu_fail(err, -ENOENT, "no job \"%s\" in namespace %s", a->name, a->ns);
	was = g->cancelled;
	was_held = g->on_hold;
	/* The write that took the note off the objects was lost: the next group of these objects
	 * would be on hold again. */
	if (a->what == SLU_ASK_RELEASE && !was && !was_held && is_noted(c, g))
		core_ask_note(c, g);
	if (g->run.n && !any_run_waits(g) &&
	    !(a->what == SLU_ASK_RELEASE &&
	      (was || was_held))) /* nothing of it can wait: "on hold" would be untrue */
		return slu_fail(err, -EBUSY, "%s is running already; %s", a->name,
				a->what == SLU_ASK_CANCEL ? "delete its object to end it"
				: a->what == SLU_ASK_HOLD ? "only a waiting job can be held"
							  : "there is nothing to release");
	if (a->what == SLU_ASK_RELEASE && !was && !was_held)
		return slu_fail(err, 0, "%s is not held", a->name);
	if (a->what == SLU_ASK_CANCEL)
		g->cancelled = true;
	else
		g->on_hold = a->what == SLU_ASK_HOLD;
	if (a->what == SLU_ASK_RELEASE)
		g->cancelled = false;
	for (uint32_t i = g->run.n; i-- > 0;) {
		struct run *r = g->run.p[i];

		if (r->state != RUN_QUEUED)
			continue;
		if (a->what == SLU_ASK_CANCEL)
			core_run_end(c, r, SLU_RESULT_CANCELLED);
		else
			core_run_hold(c, r);
	}
	slu_free(g->told_text);
	g->told_text = NULL;
	g->told_cause = 0;
	core_group_keep(c, g);
	core_group_dirty(c, g);
	if (g->cancelled != was || g->on_hold != was_held)
		core_ask_note(c, g);
	slu_fail(err, 0, "%s %s", a->name,
		 a->what == SLU_ASK_CANCEL ? "was taken out of the queue; its objects are untouched"
		 : g->on_hold              ? "is held"
					   : "waits again");
	return 0;
}

/* Refuse a request on a replica that decides nothing: a standby, or a leader whose store cannot be read. */
static int refuse_standby(struct slu_core *c, struct slu_error *err)
{
	if (c->store_waits)
		return slu_fail(err, -EAGAIN,
				"the store cannot be read; sluiced decides nothing until it can");
	return slu_fail(err, -EAGAIN, "this replica is on standby; ask the leader%s%s",
			*c->leader ? ": " : "", c->leader);
}

bool core_asked(struct slu_core *c, struct slu_rec_ask *a)
{
	static const char *const what[] = {
		[SLU_ASK_CANCEL] = "cancel",       [SLU_ASK_HOLD] = "hold",
		[SLU_ASK_RELEASE] = "release",     [SLU_ASK_DRAIN] = "drain",
		[SLU_ASK_UNDRAIN] = "undrain",     [SLU_ASK_RESIZE] = "resize",
		[SLU_ASK_SNAPSHOT] = "picture",    [SLU_ASK_PRIORITY] = "priority",
		[SLU_ASK_LIMIT] = "limit",         [SLU_ASK_RESERVE] = "reserve",
		[SLU_ASK_UNRESERVE] = "unreserve",
	};
	struct slu_error err = { 0 };
	int rc = a->what == SLU_ASK_SNAPSHOT ? -ENOMEM
		 : !c->door                  ? refuse_standby(c, &err)
		 : !slu_core_synced(c)       ? slu_fail(&err, -EAGAIN,
							"sluiced has just started and does not know the "
							      "cluster yet; ask again in a moment")
		 : a->what == SLU_ASK_DRAIN || a->what == SLU_ASK_UNDRAIN
			 ? core_drain_ask(c, a->name, a->what == SLU_ASK_DRAIN, a->from_s,
					  a->until_s, &err)
		 : a->what == SLU_ASK_PRIORITY || a->what == SLU_ASK_LIMIT
			 ? core_ask_change(c, a, &err)
		 : a->what == SLU_ASK_RESERVE || a->what == SLU_ASK_UNRESERVE
			 ? core_ask_reserve(c, a, &err)
			 : core_ask_group(c, a, &err);

	if (rc > 0)
		return true;

	if (a->what != SLU_ASK_SNAPSHOT)
		slu_log(SLU_INFO, "request answered", SLU_STR("what", what[a->what]),
			SLU_STR("ns", a->ns), SLU_STR("name", a->name), SLU_STR("user", a->user),
			SLU_STR("answer", err.text));
	if (!rc && core_answer_later(c, a, err.text))
		return true;
	if (a->answer)
		a->answer(a->arg, rc, err.text);
	a->answer = NULL;
	return false;
}
