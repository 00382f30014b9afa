/* The cycle: everything the core does after it has taken the records that came, in this order. */
#include "control/core/core.h"

#include "base/clock.h"
#include "control/ask/ask.h"
#include "control/claim/claim.h"
#include "control/cluster/cluster.h"
#include "control/core/again.h"
#include "control/core/objects.h"
#include "control/fluxjob/fluxjob.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/recover/recover.h"
#include "control/report/report.h"
#include "control/run/run.h"

/* How long the work that the first cycle postpones waits, so that the intents of that cycle become durable
 * first. */
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

static void number_nodes(struct slu_core *c)
{
	if (!c->recovered)
		core_nodes_number(c);
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
	int rc;

	core_shapes_look(c);
	rc = core_awaits_ending(c) ? 0 : slu_qlog_schedule(c->log, c->q, c->now_s, &c->dec, err);
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

static int verify_books(struct slu_core *c, struct slu_error *err)
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

static void publish_snapshot(struct slu_core *c)
{
	if (!core_hurries(c))
		core_snapshot_publish(c);
}

/* ---- when the plan needs a cycle although no record arrived ---- */

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
	const char *name, *why; /* why the step stands at this place */
	void (*run)(struct slu_core *c);
	int (*try)(struct slu_core *c, struct slu_error *err); /* instead, if it may fail */
	/* When the step has something to do although no record arrived.  NULL: the step has a timer
	 * (frame/timer.h), or only follows other steps. */
	int64_t (*wake_us)(const struct slu_core *c);
	unsigned flags;
};

/* clang-format off */
static const struct step cycle[] = {
	{ "watch the store", "first: its state decides whether later steps may decide and place anything",
	  .run = core_store_watch, .flags = ALWAYS },
	{ "show claims", "the slots of stored claims must exist before members are joined",
	  .run = show_claims },
	{ "number nodes", "in the first cycle, before anything is booked on them", .run = number_nodes },
	{ "begin and end drains", "before planning: drains change which nodes the plan may use",
	  .run = core_drains },
	{ "plan reservations", "before planning: reserved room is not free for other gangs",
	  .run = core_reservations },
	{ "join members", "before settling: a group is judged by all its members", .run = join_members,
	  .wake_us = core_members_wake_us },
	{ "wake calmed groups", "before settling: groups whose pause is over are due again",
	  .run = core_calm_wake,
	  .wake_us = core_calm_wake_us },
	{ "look at held objects", "before settling: stand-ins of suspended Jobs are members, too",
	  .run = look_at_held },
	{ "end vacancies", "before settling, which gives back the places that were kept too long",
	  .run = core_vacancies },
	{ "wake followers", "before settling: groups whose dependencies started or ended are due",
	  .run = core_after_wake },
	{ "recall", "before settling, in the first cycle: running work and promises come before new work",
	  .run = begin_again, .wake_us = core_recovery_wake_us },
	{ "look again", "before settling: groups left undone when memory ran out are due again",
	  .run = core_look_again },
	{ "look at nodes", "before settling: where pods may go depends on the pods that came and went",
	  .run = core_shapes_look },
	{ "settle groups", "all changes are in: tell the queue what each group asks for now",
	  .run = core_groups_settle },
	{ "count volumes", "before scheduling: attached volumes follow the pods that came and went",
	  .run = core_volumes_count },
	{ "end recovery", "after settling: stored jobs that no object claimed have ended",
	  .run = end_recovery },
	{ "schedule", "the queue knows every change of this cycle",
	  .try = schedule, .wake_us = plan_wake_us },
	{ "settle again", "after scheduling: members without a place in their gang become followers",
	  .run = core_groups_settle },
	{ "schedule again", "the followers just made start in this cycle, too",
	  .try = schedule, .flags = SOUND },
	{ "grow", "after scheduling: elastic gangs take only room that no waiting job got",
	  .run = core_elastic },
	{ "note claims", "before sending: the places of claims go to the store with their intents",
	  .run = core_claims_placed },
	{ "send", "all decisions of the cycle are made: they go to the store in one batch",
	  .run = send_batch },
	{ "place", "after sending: carry out intents that are durable, from any cycle",
	  .run = core_place_durable },
	{ "answer", "after sending: answer requests whose changes are durable", .run = core_answers },
	{ "resume ahead", "after scheduling: the order of the queue says which Jobs come next",
	  .run = core_ahead },
	{ "place phantoms", "after placing: phantoms take the nodes that their slots were given",
	  .run = place_phantoms },
	{ "enforce limits", "after placing: work that is ended now makes room in the next cycle",
	  .run = core_deadlines },
	{ "undo again", "after placing: repeat refused evictions, use forgiven nodes again",
	  .run = core_undo_again },
	{ "watch released pods", "after placing: take back pods that their scheduler refused for too long",
	  .run = core_held_watch },
	{ "view held objects", "after all decisions, from which the status of a held object follows",
	  .run = core_held_report },
	{ "tend FluxJobs", "after the views, which decide what FluxJobs show", .run = tend_fluxjobs },
	{ "tend claims", "after placing: answer claims that were placed, end those without room",
	  .run = tend_claims, .wake_us = core_claims_wake_us },
	{ "look at nodes again", "all decisions are made: people are told, and books compared, with what they changed",
	  .run = core_shapes_look },
	{ "say how groups ended", "before reaping frees these groups", .run = core_podgroups_over },
	{ "tell people", "after placing: status writes must not delay bindings", .run = tell_people,
	  .wake_us = hurry_wake_us },
	{ "foretell", "everything is decided and sent, so there is time for a slice of the forecast",
	  .run = core_forecast, .wake_us = core_forecast_wake_us },
	{ "reap", "after the last step that may look at a run or group that is over", .run = reap },
	{ "audit", "after reaping: the books do not change until the next cycle", .run = core_audit },
	{ "settle the census", "after the audit: look up the differences that remain",
	  .run = core_census_settle, .wake_us = core_census_wake_us },
	{ "renew the log", "a new log begins between the decisions of two cycles",
	  .try = renew_log, .flags = SOUND },
	{ "verify", "with --verify: the queue's invariants hold after all changes",
	  .try = verify_books, .flags = SOUND },
	{ "watch memory", "after all work: an allocation that failed above left something undone",
	  .run = core_memory_watch,
	  .flags = ALWAYS },
	{ "count", "before the snapshot, which shows this cycle, too", .run = count_cycle },
	{ "publish", "last: readers see the cycle as a whole", .run = publish_snapshot, .flags = ALWAYS },
};
/* clang-format on */

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
		int64_t begin = slu_clock_ns(), took;

		if ((rc < 0 && (s->flags & SOUND)) ||
		    ((!leads(c) || c->recovery->awaits) && !(s->flags & ALWAYS)))
			continue;
		if (s->run)
			s->run(c);
		else
			rc = s->try(c, err);
		took = slu_clock_ns() - begin;
		c->spent_ns += s->flags & ALWAYS ? 0 : (uint64_t)took;
		if (took >= SLOW_NS)
			slu_log(SLU_WARN, "a step of the cycle took long", SLU_STR("step", s->name),
				SLU_STR("why", s->why), SLU_I64("took_ms", took / 1000000));
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
