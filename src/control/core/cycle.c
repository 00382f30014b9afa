/* The cycle: everything the core does after it has taken the records that came, in this order. */
#include "control/core/core.h"

#include <time.h>

#include "control/ask/ask.h"
#include "control/claim/claim.h"
#include "control/core/again.h"
#include "control/core/objects.h"
#include "control/fluxjob/fluxjob.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/recover/recover.h"
#include "control/report/report.h"
#include "control/run/run.h"

/* What the first cycle left for later; its intents are durable sooner and come first. */
#define LATER_US 200000
#define SLOW_NS  1000000000u /* a step that takes longer is named in the log */

/* ---- steps that are more than one call ---- */

static void show_claims(struct slu_core *c)
{
	core_claims_show(c);
	core_phantoms_taken(c);
}

static void join_members(struct slu_core *c)
{
	core_members_join(c);
	core_joined(c);
}

static void look_at_held(struct slu_core *c)
{
	core_held_look(c);
	core_joined(c); /* stand-ins for pods that do not exist yet */
	core_look_for_selected(c);
}

static void begin_again(struct slu_core *c)
{
	c->hurry = !c->recovered;
	if (!core_recovery_awaits(c) && !c->recovered)
		core_recover_plan(c);
}

static void end_recovery(struct slu_core *c)
{
	if (!c->recovered)
		core_recovered(c);
	c->recovered = true;
}

static int schedule(struct slu_core *c, struct slu_error *err)
{
	int rc = core_awaits_ending(c) ? 0
				       : slu_qlog_schedule(c->log, c->q, c->now_s, &c->dec, err);

	core_decisions(c);
	return rc;
}

static void send_batch(struct slu_core *c)
{
	uint64_t ticket = 0;
	int rc;

	core_log_flush(c, false);
	rc = slu_intents_send(c->door, &ticket);
	if (!rc) {
		c->recovery->log_ticket = ticket;
		core_answers_sent(c, ticket);
	}
	for (uint32_t i = 0; !rc && i < c->runs->open.n; i++)
		if (c->runs->open.p[i]->ticket == UINT64_MAX)
			c->runs->open.p[i]->ticket = ticket;
}

static void place_phantoms(struct slu_core *c)
{
	core_phantoms_place(c);
	core_phantoms_taken(c);
}

static void tend_fluxjobs(struct slu_core *c)
{
	core_fluxjobs(c);
	core_phantoms_taken(c);
}

static void tend_claims(struct slu_core *c)
{
	if (core_claims(c))
		send_batch(c);
	core_phantoms_taken(c);
}

static void tell_people(struct slu_core *c)
{
	if (!core_hurries(c))
		core_status(c);
}

static int renew_log(struct slu_core *c, struct slu_error *err)
{
	(void)err;
	if (core_log_renew(c))
		send_batch(c);
	return 0;
}

static int verify(struct slu_core *c, struct slu_error *err)
{
	return c->verify && !c->runs->n_ending ? slu_queue_check(c->q, c->now_s, err) : 0;
}

static void reap(struct slu_core *c)
{
	core_runs_reap(c);
	core_groups_reap(c);
}

static void count_cycle(struct slu_core *c)
{
	c->count.cycles++;
	c->count.cycle_ns += c->spent_ns;
	c->count.cycle_ns_max = SLU_MAX(c->count.cycle_ns_max, c->spent_ns);
	if (c->count.cycles > 1)
		return;
	c->count.first_cycle_us = (int64_t)c->spent_ns / 1000;
	slu_log(SLU_INFO, "first cycle", SLU_I64("groups", c->groups->table.n),
		SLU_I64("started", c->count.gangs_started),
		SLU_I64("took_ms", c->count.first_cycle_us / 1000));
}

static void publish(struct slu_core *c)
{
	if (!core_hurries(c))
		core_snapshot_publish(c);
}

/* ---- when the plan itself wants to be looked at ---- */

static int64_t plan_wake_us(const struct slu_core *c)
{
	int64_t s = slu_queue_wake_s(c->q);

	return s != SLU_TIME_EVER && s < INT64_MAX / 1000000
		       ? SLU_MAX(s * 1000000, c->now_us + 1000)
		       : CORE_NEVER;
}

static int64_t hurry_wake_us(const struct slu_core *c)
{
	return core_hurries(c) ? c->now_us + LATER_US : CORE_NEVER;
}

/* ---- the table ---- */

enum {
	ALWAYS = 1, /* also while this replica stands by, or the lists are not complete */
	SOUND = 2,  /* only after everything before it succeeded */
};

struct step {
	const char *name, *why; /* why here */
	void (*run)(struct slu_core *c);
	int (*try)(struct slu_core *c, struct slu_error *err); /* instead, if it may fail */
	/* When it has something to do although no record came; NULL: its timer (frame/timer.h)
	 * tells, or it only follows from others. */
	int64_t (*wake_us)(const struct slu_core *c);
	unsigned flags;
};

/* clang-format off */
static const struct step cycle[] = {
	{ "watch the store", "whether we may decide, and whether intents are waited for",
	  .run = core_store_watch, .flags = ALWAYS },
	{ "show claims", "what the store remembers of them: their slots join below",
	  .run = show_claims },
	{ "begin and end drains", "which nodes there are is known before anybody is planned",
	  .run = core_drains },
	{ "plan reservations", "what is set aside is not planned with below",
	  .run = core_reservations },
	{ "join members", "groups must be complete before they are looked at", .run = join_members,
	  .wake_us = core_members_wake_us },
	{ "wake calmed groups", "their pause is over: they are settled below", .run = core_calm_wake,
	  .wake_us = core_calm_wake_us },
	{ "look at held objects", "stand-ins join before their groups are settled",
	  .run = look_at_held },
	{ "end vacancies", "places kept too long are given back when their groups are settled",
	  .run = core_vacancies },
	{ "wake followers", "groups that waited for others which have started or ended",
	  .run = core_after_wake },
	{ "recall", "in the first cycle: what runs, then what was promised, before anything new",
	  .run = begin_again, .wake_us = core_recovery_wake_us },
	{ "look again", "after memory ran out: what was left undone is settled below",
	  .run = core_look_again },
	{ "settle groups", "everything that changed is in: what each group asks of the queue now",
	  .run = core_groups_settle },
	{ "end recovery", "what the store knew and no object claimed is over", .run = end_recovery },
	{ "schedule", "the queue has been told everything", .try = schedule, .wake_us = plan_wake_us },
	{ "settle again", "members that found no place in their gang follow it at once",
	  .run = core_groups_settle },
	{ "schedule again", "for those followers", .try = schedule, .flags = SOUND },
	{ "grow", "elastic gangs take what the queue left", .run = core_elastic },
	{ "note claims", "where they were placed goes to the store with their intents",
	  .run = core_claims_placed },
	{ "send", "all decisions are made: one batch for the store", .run = send_batch },
	{ "place", "intents that are durable, of this cycle or earlier ones, are carried out",
	  .run = core_place_durable },
	{ "answer", "what people asked for is durable, too", .run = core_answers },
	{ "resume ahead", "the order of the queue is known until the next event", .run = core_ahead },
	{ "place phantoms", "slots of users' FluxJobs that were placed above", .run = place_phantoms },
	{ "enforce limits", "after placing: what ends now makes room in the next cycle",
	  .run = core_deadlines },
	{ "undo again", "evictions that were refused, nodes that are forgiven",
	  .run = core_undo_again },
	{ "watch released pods", "their scheduler has had its time since they were placed",
	  .run = core_held_watch },
	{ "view held objects", "what FluxJobs say follows from all of the above",
	  .run = core_held_report },
	{ "tend FluxJobs", "after their views", .run = tend_fluxjobs },
	{ "tend claims", "those that were placed are answered, those without room go",
	  .run = tend_claims, .wake_us = core_claims_wake_us },
	{ "say how groups ended", "before they are freed", .run = core_podgroups_over },
	{ "tell people", "words cost writes: bindings were first", .run = tell_people,
	  .wake_us = hurry_wake_us },
	{ "foretell", "everything is decided and sent: a slice of the forecast",
	  .run = core_forecast, .wake_us = core_forecast_wake_us },
	{ "reap", "no step looks at a run or a group that is over after this", .run = reap },
	{ "audit", "the books are at rest", .run = core_audit },
	{ "settle the census", "differences that are still there are looked up again",
	  .run = core_census_settle, .wake_us = core_census_wake_us },
	{ "renew the log", "between two cycles' decisions", .try = renew_log, .flags = SOUND },
	{ "verify", "the queue's invariants, where told to", .try = verify, .flags = SOUND },
	{ "watch memory", "whether anything above was left undone", .run = core_memory_watch,
	  .flags = ALWAYS },
	{ "count", "the snapshot shows this cycle, too", .run = count_cycle },
	{ "publish", "readers see the cycle as a whole", .run = publish, .flags = ALWAYS },
};
/* clang-format on */

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool leads(const struct slu_core *c)
{
	return slu_core_synced(c) && c->door;
}

int slu_core_cycle(struct slu_core *c, int64_t now_us, struct slu_error *err)
{
	int rc = 0;

	core_set_now(c, now_us);
	c->spent_ns = 0;
	c->recovery->awaits = false; /* "recall" looks again */
	for (size_t i = 0; i < SLU_LEN(cycle); i++) {
		const struct step *s = &cycle[i];
		uint64_t begin = clock_ns(), took;

		if ((rc < 0 && (s->flags & SOUND)) ||
		    ((!leads(c) || c->recovery->awaits) && !(s->flags & ALWAYS)))
			continue;
		if (s->run)
			s->run(c);
		else
			rc = s->try(c, err);
		took = clock_ns() - begin;
		c->spent_ns += s->flags & ALWAYS ? 0 : took;
		if (took >= SLOW_NS)
			slu_log(SLU_WARN, "a step of the cycle takes long",
				SLU_STR("step", s->name), SLU_STR("why", s->why),
				SLU_I64("took_ms", took / 1000000));
	}
	return rc;
}

int64_t slu_core_wake_us(const struct slu_core *c)
{
	int64_t at = core_next_due_us(c);

	if (!leads(c))
		return CORE_NEVER;
	for (size_t i = 0; i < SLU_LEN(cycle); i++)
		if (cycle[i].wake_us)
			at = SLU_MIN(at, cycle[i].wake_us(c));
	return at;
}
