#include "base/clock.h"
#include "control/core/core.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/crash.h"
#include "control/ask/ask.h"
#include "control/claim/claim.h"
#include "control/cluster/cluster.h"
#include "control/core/objects.h"
#include "control/fluxjob/fluxjob.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/recover/recover.h"
#include "control/report/report.h"
#include "control/run/run.h"

#define INBOX_MAX 65536u
#define BATCH     4096u

/* The frame, the rooms' states it points at, and the thread. */
struct whole {
	struct slu_core c;
	struct cluster cluster;
	struct groups groups;
	struct runs runs;
	struct holds holds;
	struct asks asks;
	struct fluxjobs fluxjobs;
	struct claims claims;
	struct recovery recovery;
	struct reports reports;
	struct slu_inbox *in;
	struct slu_clock clock; /* of the thread */
	int64_t first_us;       /* when the first record came */
	pthread_t thread;
	bool running;
	_Atomic bool stop;
};

static struct whole *whole_of(struct slu_core *c)
{
	return slu_entry_of(c, struct whole, c);
}

static struct slu_core *frame_new(void)
{
	struct whole *w = slu_calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->c.cluster = &w->cluster;
	w->c.groups = &w->groups;
	w->c.runs = &w->runs;
	w->c.holds = &w->holds;
	w->c.asks = &w->asks;
	w->c.fluxjobs = &w->fluxjobs;
	w->c.claims = &w->claims;
	w->c.recovery = &w->recovery;
	w->c.reports = &w->reports;
	pthread_mutex_init(&w->reports.snap_lock, NULL);
	return &w->c;
}

int slu_core_new(const struct slu_core_setup *setup, struct slu_core **out, struct slu_error *err)
{
	struct slu_queue_opts opts;
	slu_cleanup(slu_core_freep) struct slu_core *c = frame_new();
	int rc;

	if (!c)
		return slu_fail(err, -ENOMEM, "out of memory");
	c->cfg = slu_config_ref(setup->config);
	c->door = setup->door;
	c->out = setup->out;
	c->verify = setup->verify;
	c->claims->pool = setup->pool;
	c->claims->next_us = CORE_NEVER;
	for (int k = 0; k < CORE_TIMERS; k++)
		core_due_at(c, (enum core_timer)k, CORE_NEVER);
	core_due_at(c, CORE_AT_RELEASED, 0); /* the first cycle looks at held work */
	core_due_at(c, CORE_AT_AUDIT, 0);
	core_due_at(c, CORE_AT_KEEP, 0);
	c->next_job = setup->first_id;
	c->next_intent = setup->first_id;
	whole_of(c)->in = slu_inbox_new(setup->inbox_max ? setup->inbox_max : INBOX_MAX, NULL,
					NULL);
	c->log = slu_qlog_new();
	if (!whole_of(c)->in || !c->log)
		return slu_fail(err, -ENOMEM, "out of memory");
	opts = core_queue_opts(c);
	rc = slu_queue_new(&opts, &c->q, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < c->cfg->nodes.n_levels; i++) {
		rc = slu_queue_level(c->q, c->cfg->nodes.level[i].name);
		if (rc < 0)
			return slu_fail(err, rc, "nodes.topology: at most %u levels",
					SLU_LEVELS_MAX);
	}
	/* The kinds that all nodes have come first, so that others cannot crowd them out. */
	c->cluster->resource_pods = slu_queue_resource(c->q, "pods");
	if (c->cluster->resource_pods < 0 || slu_queue_resource(c->q, "cpu") < 0 ||
	    slu_queue_resource(c->q, "memory") < 0)
		return slu_fail(err, -ENOMEM, "out of memory");
	rc = c->door ? core_log_begin(c, err) : core_set_queues(c, err);
	if (rc < 0)
		return rc;
	*out = slu_take(c);
	return 0;
}

void slu_core_free(struct slu_core *c)
{
	if (!c)
		return;
	/* A decision outlives the process: the next leader reads it from the store.  So runs
	 * end here without settling their intents, and groups end after the store is closed. */
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		while (group_of(e)->run.n)
			core_run_over(c, group_of(e)->run.p[0]);
	slu_intents_free(c->recovery->own_door, 0);
	c->door = NULL;
	core_held_done(c);
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL), *next; e; e = next) {
		next = slu_table_next(&c->groups->table, e);
		core_group_end(c, group_of(e));
	}
	core_runs_reap(c);
	core_groups_done(c);
	core_after_done(c);
	slu_map_done(&c->runs->lived);
	core_forget(c);
	core_pods_done(c);
	core_repels_put(c, &c->cluster->new_repels);
	core_lookups_done(c);
	core_volumes_done(c);
	slu_vec_done(&c->cluster->zoning);
	core_admission_done(c);
	core_reservations_done(c);
	core_nodes_done(c);
	slu_table_done(&c->runs->table);
	slu_table_done(&c->cluster->wheres);
	slu_table_done(&c->cluster->shapes);
	slu_table_done(&c->cluster->repels);
	slu_map_done(&c->cluster->space_terms);
	slu_table_done(&c->cluster->chosen);
	slu_vec_done(&c->runs->open);
	slu_vec_done(&c->runs->promise);
	slu_vec_done(&c->cluster->port);
	slu_map_done(&c->recovery->audit.suspect[0]);
	slu_map_done(&c->recovery->audit.suspect[1]);
	slu_decisions_done(&c->dec);
	for (uint32_t i = 0; i < c->reports->viewer.n; i++)
		c->reports->viewer.p[i]->base.free(&c->reports->viewer.p[i]->base);
	slu_vec_done(&c->reports->viewer);
	core_answers_done(c);
	core_resize_done(c);
	slu_vec_done(&c->runs->fill);
	core_claims_done(c);
	core_fluxjobs_done(c);
	slu_queue_free(c->q);
	slu_qlog_free(c->log);
	core_store_done(c);
	slu_inbox_free(whole_of(c)->in);
	slu_snapshot_unref(c->reports->snap);
	core_foretold_done(c);
	pthread_mutex_destroy(&c->reports->snap_lock);
	slu_config_free(c->cfg);
	slu_free(whole_of(c));
}

struct slu_inbox *slu_core_inbox(struct slu_core *c)
{
	return whole_of(c)->in;
}

int slu_core_lead(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err)
{
	return core_lead(c, setup, err);
}

struct slu_snapshot *slu_core_snapshot(struct slu_core *c)
{
	return core_snapshot(c);
}

/* ---- records ---- */

/* Queues choose nodes by other labels than before. */
static bool other_labels(const struct slu_config *a, const struct slu_config *b)
{
	if (a->n_queues != b->n_queues)
		return true;
	for (uint32_t i = 0; i < a->n_queues; i++)
		if (strcmp(a->queue[i].node_label, b->queue[i].node_label))
			return true;
	return false;
}

/* Settings that need a restart are read once, at start (slu_config_keep()); the others apply from
 * now on. */
static void new_config(struct slu_core *c, const struct slu_config *cfg)
{
	const struct slu_config *old = c->cfg;
	bool labels = other_labels(old, cfg), policy = strcmp(old->match.policy, cfg->match.policy);
	struct slu_error err = { 0 };

	c->cfg = slu_config_ref(cfg);
	slu_config_free(old);
	if (labels)
		core_nodes_describe(c);
	if (core_set_queues(c, &err) < 0)
		slu_log(SLU_ERROR, "queues of the new configuration rejected",
			SLU_STR("err", err.text));
	core_runs_again(c, policy);
	core_groups_touch_wrong(c);
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e))
		if (group_of(e)->wish.exclusive) /* its queue may now forbid whole nodes */
			core_group_dirty(c, group_of(e));
	core_store_keep(c);
	core_held_space(c, NULL); /* other namespaces may be held now */
}

static void mirror_complete(struct slu_core *c)
{
	c->count.lists_us = c->now_us - whole_of(c)->first_us;
	slu_log(SLU_INFO, "mirror complete", SLU_I64("nodes", c->cluster->nodes.n),
		SLU_I64("pods", c->cluster->pods.n), SLU_I64("lists_ms", c->count.lists_us / 1000));
}

/* A request is about a gang as the store remembers it, so the first cycle runs before the request
 * is carried out, and then waits for no pods. */
static void recover_first(struct slu_core *c, int64_t now_us)
{
	struct slu_error err = { 0 };

	if (c->recovered || !c->door || !slu_core_synced(c))
		return;
	c->recovery->await_us = now_us;
	if (slu_core_cycle(c, now_us, &err) < 0)
		slu_log(SLU_ERROR, "cycle failed", SLU_STR("err", err.text));
}

void slu_core_take(struct slu_core *c, struct slu_record *r, int64_t now_us)
{
	if (!whole_of(c)->first_us)
		whole_of(c)->first_us = now_us;
	core_set_now(c, now_us);
	switch (r->kind) {
	case SLU_REC_OBJECT:
		core_object_changed(c, ((struct slu_rec_object *)r)->obj,
				    ((struct slu_rec_object *)r)->gone);
		break;
	case SLU_REC_SYNCED:
		if (((struct slu_rec_synced *)r)->kind == SLU_KIND_FLUXJOB)
			core_fluxjob_synced(c, ((struct slu_rec_synced *)r)->absent,
					    ((struct slu_rec_synced *)r)->refused);
		c->synced |= 1u << ((struct slu_rec_synced *)r)->kind;
		if (slu_core_synced(c))
			mirror_complete(c);
		break;
	case SLU_REC_WRITTEN:
		slu_crash_point("core answer: before");
		core_written(c, (struct slu_rec_written *)r);
		slu_crash_point("core answer: after");
		break;
	case SLU_REC_LEADER: {
		const struct slu_rec_leader *l = (struct slu_rec_leader *)r;
		struct slu_error err = { 0 };

		snprintf(c->leader, sizeof c->leader, "%s", l->other);
		if (l->setup && !c->door && !c->recovery->own_door &&
		    core_lead(c, l->setup, &err) < 0)
			slu_log(SLU_ERROR, "cannot lead", SLU_STR("err", err.text));
		break;
	}
	case SLU_REC_CENSUS:
		core_census(c, (struct slu_rec_census *)r);
		break;
	case SLU_REC_RESENT:
		core_kind_resent(c, (struct slu_rec_resent *)r);
		break;
	case SLU_REC_CONFIG:
		new_config(c, ((struct slu_rec_config *)r)->config);
		break;
	case SLU_REC_ASK:
		if (((struct slu_rec_ask *)r)->what == SLU_ASK_SNAPSHOT &&
		    slu_vec_push(&c->reports->viewer, (struct slu_rec_ask *)r) == 0)
			return;
		recover_first(c, now_us);
		if (((struct slu_rec_ask *)r)->what == SLU_ASK_RESIZE && c->door) {
			core_resize(c, (struct slu_rec_ask *)r);
			return;
		}
		if (core_claim_asked((struct slu_rec_ask *)r)) {
			core_claim_ask(c, (struct slu_rec_ask *)r);
			core_phantoms_taken(c);
			return;
		}
		if (core_asked(c, (struct slu_rec_ask *)r))
			return;
		break;
	default:
		break; /* SLU_REC_WAKE: the cycle is all it wants */
	}
	r->free(r);
}

/* ---- the thread ---- */

static int64_t now_us(struct slu_core *c)
{
	int64_t step_us, now = slu_clock_now(&whole_of(c)->clock, &step_us);

	if (step_us)
		slu_log(SLU_WARN,
			"the wall clock was set; planned times follow it at a twentieth of the speed",
			SLU_I64("step_s", step_us / 1000000));
	return now;
}

static void *core_thread(void *arg)
{
	struct slu_core *c = arg;
	struct slu_record **r = slu_reallocarray(NULL, BATCH, sizeof(struct slu_record *));
	bool begun = false;

	while (r && !atomic_load(&whole_of(c)->stop)) {
		struct slu_error err = { 0 };
		int64_t now = now_us(c), wake = slu_core_wake_us(c);
		uint32_t n;

		if (wake > now)
			slu_inbox_wait(whole_of(c)->in,
				       wake == INT64_MAX ? -1 : (wake - now) * 1000);
		n = slu_inbox_take(whole_of(c)->in, r, BATCH);
		now = now_us(c);
		for (uint32_t i = 0; i < n; i++)
			slu_core_take(c, r[i], now);
		if (n == BATCH && !slu_core_synced(c))
			continue; /* the first lists: take all of them before looking around */
		if (slu_core_cycle(c, now, &err) < 0) {
			slu_log(SLU_ERROR, "cycle failed", SLU_STR("err", err.text));
			nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		}
		/* Reading the first lists takes a tenth more than what is kept of them. */
		if (!begun && slu_core_synced(c)) {
			begun = true;
			malloc_trim(0);
		}
	}
	slu_free(r);
	return NULL;
}

int slu_core_start(struct slu_core *c, struct slu_error *err)
{
	int rc = pthread_create(&whole_of(c)->thread, NULL, core_thread, c);

	if (rc)
		return slu_fail(err, -rc, "cannot start the core thread");
	whole_of(c)->running = true;
	return 0;
}

void slu_core_stop(struct slu_core *c)
{
	if (!whole_of(c)->running)
		return;
	atomic_store(&whole_of(c)->stop, true);
	slu_inbox_close(whole_of(c)->in);
	pthread_join(whole_of(c)->thread, NULL);
	whole_of(c)->running = false;
	core_log_flush(c, true);
	slu_intents_free(c->recovery->own_door, 2000);
	c->recovery->own_door = c->door = NULL;
}
