/* The store as the core sees it: when the core begins to lead, what an outage means, and the repair of a store
 * that lost rows in an outage.
 *
 *	            store read                      commit fails
 *	lead ──────────────────► leading ─────────────────────────► away ──┐
 *	  │ cannot be read          ▲   ▲        hold: intents wait        │ takes changes again;
 *	  │ hold: waits ────────────┘   │    continue: they count at once  │ what was dropped is
 *	  └ continue: leads from the    └──────────────────────────────────┘ written again
 *	    cluster alone
 */
#include "control/recover/recover.h"

#include <stdio.h>

#include "control/claim/claim.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define KEEP_US 60000000            /* between two searches for rows that are too old */
#define SLOW_NS INT64_C(5000000000) /* if a transaction takes longer, the store counts as away */

static bool outage_holds(const struct slu_core *c)
{
	return !strcmp(c->cfg->store.outage, "hold");
}

/* Whether waiting cannot cure the error (an operator's mistake, or no memory); all others are outages. */
static bool is_refusal(int rc)
{
	return rc == -EXDEV || rc == -EPROTO || rc == -ESTALE || rc == -EINVAL || rc == -ENOMEM;
}

/* ---- leading ---- */

static int begin_leading(struct slu_core *c, struct slu_error *err)
{
	int rc;

	c->door = c->recovery->own_door;
	rc = core_log_begin(c, err);
	if (rc < 0)
		return rc;
	core_store_keep(c);
	slu_log(SLU_INFO, "leading", SLU_I64("term", c->recovery->lead.term));
	return 0;
}

static void forget_lead(struct slu_core *c)
{
	slu_free((char *)(uintptr_t)c->recovery->lead.url);
	slu_free((char *)(uintptr_t)c->recovery->lead.cluster);
	slu_free((char *)(uintptr_t)c->recovery->lead.holder);
	c->recovery->lead = (struct slu_journal_setup){ 0 };
}

static int copy_lead(struct slu_core *c, const struct slu_journal_setup *setup)
{
	forget_lead(c);
	c->recovery->lead = *setup;
	c->recovery->lead.url = slu_strdup(setup->url);
	c->recovery->lead.cluster = slu_strdup(setup->cluster);
	c->recovery->lead.holder = slu_strdup(setup->holder);
	return c->recovery->lead.url && c->recovery->lead.cluster && c->recovery->lead.holder
		       ? 0
		       : -ENOMEM;
}

int core_lead(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err)
{
	int read, rc = copy_lead(c, setup);

	if (rc < 0)
		return slu_fail(err, rc, "out of memory");
	read = strcmp(setup->url, "memory:") ? core_recover(c, &c->recovery->lead, err) : 0;
	if (is_refusal(read)) {
		snprintf(c->recovery->store_why, sizeof c->recovery->store_why, "%s", err->text);
		return slu_fail_prefix(err, read, "store.url (--store)");
	}
	rc = slu_intents_new(&c->recovery->lead, &c->recovery->own_door, err);
	if (rc < 0)
		return rc;
	if (read < 0 && outage_holds(c)) {
		c->store_waits = true;
		c->store = SLU_JOURNAL_AWAY;
		snprintf(c->recovery->store_why, sizeof c->recovery->store_why, "%s", err->text);
		slu_log(SLU_ERROR, "cannot read the store: no gang starts until it can be read",
			SLU_STR("setting", "store.url (--store)"), SLU_STR("err", err->text));
		return 0;
	}
	if (read < 0) {
		c->recovery->store_rewrite = true;
		c->rows.seq = SLU_MAX(c->rows.seq, c->next_job); /* above the rows of the store */
		slu_log(SLU_ERROR,
			"the store cannot be read: continuing with the cluster as the only memory",
			SLU_STR("setting", "store.url (--store)"), SLU_STR("err", err->text));
	}
	return begin_leading(c, err);
}

/* The journal has reached the store, which could not be read at the start: read it now and begin to lead. */
static void read_at_last(struct slu_core *c)
{
	struct slu_error err = { 0 };
	int rc;

	c->recovery->lead.term = c->recovery->store_health.term; /* as the journal took it */
	c->recovery->lead.held = NULL;
	rc = core_recover(c, &c->recovery->lead, &err);
	if (!rc) {
		c->store_waits = false;
		rc = begin_leading(c, &err);
	}
	if (rc < 0) {
		if (strcmp(c->recovery->store_why, err.text))
			slu_log(SLU_ERROR,
				"cannot read the store: no gang starts until it can be read",
				SLU_STR("err", err.text));
		snprintf(c->recovery->store_why, sizeof c->recovery->store_why, "%s", err.text);
	}
}

void core_store_keep(struct slu_core *c)
{
	core_due_at(c, CORE_AT_KEEP, c->now_us + KEEP_US);
	if (c->door)
		slu_intents_keep(c->door, c->now_us - c->cfg->store.keep_s * 1000000,
				 (int64_t)c->cfg->store.keep_mb << 20,
				 slu_intents_kept(c->door) && !slu_qlog_on(c->log));
}

/* ---- outages ---- */

static void say_outage(struct slu_core *c, bool was_bad)
{
	if (c->store == SLU_JOURNAL_OK && was_bad)
		slu_log(SLU_INFO, "store recovered");
	else if (c->store > SLU_JOURNAL_OK)
		slu_log(SLU_ERROR,
			outage_holds(c)
				? "the store cannot be written: no gang starts until it can"
				: "the store cannot be written: continuing with the cluster as the only memory",
			SLU_STR("setting", "store.url (--store)"),
			SLU_STR("err", c->recovery->store_why));
}

/* The journal retries by itself.  The log has one line when an outage begins and one when it ends. */
void core_store_watch(struct slu_core *c)
{
	struct slu_intents *door = c->door ? c->door : c->recovery->own_door;
	struct slu_journal_health *h = &c->recovery->store_health;
	enum slu_journal_state was = c->store;

	if (!door)
		return;
	slu_intents_health(door, h);
	if (c->store_waits) {
		if (h->state == SLU_JOURNAL_OK)
			read_at_last(c);
		else if (*h->why)
			snprintf(c->recovery->store_why, sizeof c->recovery->store_why, "%s",
				 h->why);
		if (c->store_waits)
			return;
		c->store = SLU_JOURNAL_OK;
		say_outage(c, true);
		return;
	}
	c->store = h->state;
	snprintf(c->recovery->store_why, sizeof c->recovery->store_why, "%s", h->why);
	if (h->state == SLU_JOURNAL_OK && h->busy_ns > SLOW_NS) {
		c->store = SLU_JOURNAL_AWAY;
		snprintf(c->recovery->store_why, sizeof c->recovery->store_why,
			 "a transaction has been running for %d s", (int)(h->busy_ns / 1000000000));
	}
	if (c->store != was)
		say_outage(c, was > SLU_JOURNAL_OK);
	if (h->lost && slu_qlog_on(c->log)) {
		slu_qlog_stop(c->log);
		slu_qlog_clear(c->log); /* rows before these are lost: no reader could use them */
		slu_log(SLU_WARN, "event log interrupted until the store has been rewritten");
	}
	if (core_is_due(c, CORE_AT_KEEP))
		core_store_keep(c);
	if (h->log_too_large && slu_qlog_on(c->log) &&
	    c->recovery->log_renewal == CORE_RENEWAL_NO &&
	    c->rows.size > 4 * c->recovery->log_picture) {
		c->recovery->log_due = true; /* a new log is much smaller than this one */
	} else if (h->log_too_large && slu_qlog_on(c->log) &&
		   c->recovery->log_renewal == CORE_RENEWAL_NO) {
		slu_qlog_stop(c->log);
		c->recovery->log_given_up = true;
		core_store_keep(c);
		slu_log(SLU_WARN,
			"event log interrupted until the next start: it has filled store.keepMegabytes");
	}
	if (c->store == SLU_JOURNAL_OK && slu_core_synced(c) && c->recovered &&
	    (c->recovery->store_rewrite || h->lost || was == SLU_JOURNAL_BROKEN))
		core_store_rewrite(c);
}

const char *core_store_text(const struct slu_core *c, char *buf, size_t n)
{
	if (!c->door && !c->store_waits && !*c->recovery->store_why)
		return "standing by";
	if (c->door && c->store == SLU_JOURNAL_OK)
		return "ok";
	if (c->door && c->store == SLU_JOURNAL_STARTING)
		return "starting";
	snprintf(buf, n, "cannot be %s, %s: %s", c->door ? "written" : "read",
		 c->door && !outage_holds(c) ? "the cluster is the only memory"
					     : "no gang starts until it can",
		 c->recovery->store_why);
	return buf;
}

/* ---- writing everything again ---- */

/* Add to the `n` entries of `p` the places of Jobs that the core has resumed while the mirror does not show it yet:
 * their stand-ins are gone, but the decision still stands.  Returns the number of entries.  If `p` is NULL, only
 * counts them. */
static uint32_t let_go(struct slu_core *c, const struct run *r, struct slu_intent_pod *p,
		       char (*key)[CORE_STAND_KEY], uint32_t n)
{
	for (uint32_t i = 0; i < r->g->owned.n; i++) {
		const struct held *h = r->g->owned.p[i];

		for (uint32_t k = 0; core_held_resumed(h, r->id) && k < h->place.n; k++, n++) {
			if (!p)
				continue;
			core_stand_key(key[n], sizeof key[n], h->obj->meta.uid, k);
			p[n] = (struct slu_intent_pod){ key[n], r->g->ns, h->obj->meta.name,
							core_node_name(c, h->place.p[k]) };
		}
	}
	return n;
}

/* Propose the newest intent of a run again; it covers every write that is under way. */
static int propose_again(struct slu_core *c, struct run *r)
{
	uint32_t most = let_go(c, r, NULL, NULL, r->slot.n), n = 0;
	slu_cleanup(slu_freep) struct slu_intent_pod *p = slu_reallocarray(NULL, most + 1u,
									   sizeof *p);
	slu_cleanup(slu_freep) char(*key)[CORE_STAND_KEY] = slu_reallocarray(NULL, most + 1u,
									     sizeof *key);
	struct core_intent *in = &r->intent.p[0];
	bool evict;

	if (!p || !key)
		return -ENOMEM;
	*in = r->intent.p[r->intent.n - 1];
	r->intent.n = 1;
	evict = !strcmp(in->verb, "evict");
	for (uint32_t i = 0; i < r->slot.n; i++) {
		const struct slot *s = &r->slot.p[i];

		if (s->pod && (evict ? s->state == SLOT_BOUND
				     : s->state == SLOT_CHOSEN || s->state == SLOT_BINDING))
			p[n++] = (struct slu_intent_pod){ core_pod_uid(s->pod), r->g->ns,
							  s->pod->k->o.meta.name,
							  core_node_name(c, s->node) };
	}
	if (!evict)
		n = let_go(c, r, p, key, n);
	return n ? slu_intent_propose(c->door, in->id, r->id, in->made_us, in->verb, p, n) : 0;
}

void core_store_rewrite(struct slu_core *c)
{
	int rc = slu_batch_clear(slu_intents_batch(c->door));

	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e && !rc;
	     e = slu_table_next(&c->groups->table, e))
		rc = core_group_keep_all(c, group_of(e));
	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL); e && !rc;
	     e = slu_table_next(&c->runs->table, e))
		if (run_of(e)->intent.n)
			rc = propose_again(c, run_of(e));
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e && !rc;
	     e = slu_table_next(&c->cluster->nodes, e))
		core_drain_keep(c, node_of(e));
	core_reservations_keep(c);
	core_claims_keep(c);
	if (rc < 0) {
		slu_log(SLU_WARN, "store not rewritten: out of memory");
		return;
	}
	for (uint32_t i = 0; i < c->runs->open.n; i++)
		c->runs->open.p[i]->ticket = UINT64_MAX; /* the ticket of the present batch */
	c->recovery->store_rewrite = false;
	slu_intents_lost(c->door, false);
	slu_log(SLU_INFO, "store rewritten from memory", SLU_I64("jobs", c->groups->table.n));
}

void core_store_done(struct slu_core *c)
{
	forget_lead(c);
}
