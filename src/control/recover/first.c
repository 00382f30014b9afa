/* Read the store, and plan the first cycle in the order that was promised. */
#include "control/recover/recover.h"

#include "control/ask/ask.h"
#include "control/claim/claim.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"
#include "wire/json.h"

struct loading {
	struct slu_core *c;
	struct slu_map evicts; /* the ids of intents that evict pods */
	struct slu_map jobs;   /* id of a job -> struct core_memory */
};

/* The static text of the cause with this name; NULL if no cause has it. */
static const char *cause_named(const char *name)
{
	for (int i = SLU_CAUSE_NEW; i <= SLU_CAUSE_DROPPED; i++)
		if (!strcmp(slu_cause_name((enum slu_cause)i), name))
			return slu_cause_name((enum slu_cause)i);
	return NULL;
}

static bool is_configured(const struct slu_core *c, const char *queue)
{
	for (uint32_t i = 0; i < c->cfg->n_queues; i++)
		if (!strcmp(c->cfg->queue[i].name, queue))
			return true;
	return false;
}

/* Note the queue of a job if the settings no longer have that queue.  0 or -ENOMEM. */
static int read_queue(struct slu_core *c, const char *name)
{
	char *copy;

	if (!*name || is_configured(c, name))
		return 0;
	for (uint32_t i = 0; i < c->runs->queues.n; i++)
		if (!strcmp(c->runs->queues.p[i], name))
			return 0;
	copy = slu_strdup(name);
	if (!copy || slu_vec_push(&c->runs->queues, copy) < 0) {
		slu_free(copy);
		return -ENOMEM;
	}
	return 0;
}

static int read_job(void *arg, const struct slu_store_job *j)
{
	struct loading *l = arg;
	struct core_memory *m;

	l->c->next_job = SLU_MAX(l->c->next_job, j->id);
	if (j->state == SLU_STORE_ENDED || slu_table_finds(&l->c->runs->known, j->key))
		return 0;
	m = slu_calloc(1, sizeof *m);
	if (m)
		m->key = slu_strdup(j->key);
	if (!m || !m->key) {
		slu_free(m);
		return -ENOMEM;
	}
	m->job = j->id;
	m->first_seen_us = j->first_seen_us;
	m->planned_s = j->planned_s;
	m->promised_s = j->promised_s;
	m->cause = cause_named(j->cause);
	m->sum = core_keep_sum(j);
	if (j->planned_s > 0 &&
	    slu_json_parse(j->spec, strlen(j->spec), NULL, &m->spec, NULL) == -ENOMEM) {
		core_memory_free(m);
		return -ENOMEM;
	}
	m->start_s = j->start_s;
	m->state = j->state;
	m->cancelled = !strcmp(j->cause, CORE_CAUSE_CANCELLED);
	m->refused = strstr(j->spec, "\"" CORE_SPEC_REFUSED "\"");
	m->begun = j->state == SLU_STORE_RUNNING || !strcmp(j->cause, CORE_CAUSE_BEGUN);
	if (core_memory_read(m, j) < 0 || (!m->refused && read_queue(l->c, j->queue) < 0) ||
	    ((m->ran || m->named) && slu_map_put(&l->jobs, j->id, (uintptr_t)m) < 0)) {
		core_memory_free(m);
		return -ENOMEM;
	}
	m->e.key = m->key;
	m->e.n = strlen(m->key);
	if (slu_table_add(&l->c->runs->known, &m->e) < 0) {
		core_memory_free(m);
		return -ENOMEM;
	}
	return 0;
}

static int read_member(void *arg, const struct slu_store_pod *p)
{
	const struct loading *l = arg;
	const uint64_t *at = slu_map_get(&l->jobs, p->job);
	struct core_memory *m = at ? (struct core_memory *)(uintptr_t)*at : NULL;

	if (m && m->ran &&
	    slu_map_put(&l->c->runs->placed, slu_hash_bytes(p->uid, strlen(p->uid)), 1) < 0)
		return -ENOMEM;
	return m ? core_memory_pod(m, p->uid) : 0;
}

static int read_intent(void *arg, const struct slu_store_intent *i)
{
	struct loading *l = arg;
	struct core_intent k = { .id = i->id, .job = i->job, .made_us = i->made_us };

	l->c->next_intent = SLU_MAX(l->c->next_intent, i->id);
	if (i->state != SLU_INTENT_OPEN)
		return 0;
	k.verb = !strcmp(i->verb, "evict") ? "evict" : "bind";
	if (!strcmp(k.verb, "evict") && slu_map_put(&l->evicts, i->id, 1) < 0)
		return -ENOMEM;
	return slu_vec_push(&l->c->runs->left, k);
}

/* Of several intents about one pod the newest counts; the reader delivers them in order. */
static int read_pod(void *arg, const struct slu_store_intent_pod *p)
{
	struct loading *l = arg;
	struct core_meant *m = meant_of(slu_table_finds(&l->c->runs->meant, p->uid));
	char *node = slu_strdup(p->node);

	if (!node)
		return -ENOMEM;
	if (!m) {
		m = slu_calloc(1, sizeof *m);
		if (m)
			m->uid = slu_strdup(p->uid);
		if (!m || !m->uid) {
			slu_free(m);
			slu_free(node);
			return -ENOMEM;
		}
		m->e.key = m->uid;
		m->e.n = strlen(m->uid);
		if (slu_table_add(&l->c->runs->meant, &m->e) < 0) {
			core_meant_free(m);
			slu_free(node);
			return -ENOMEM;
		}
	}
	slu_free(m->node);
	m->node = node;
	m->evicted = slu_map_get(&l->evicts, p->intent);
	m->intent = p->intent;
	return 0;
}

static int read_span(void *arg, const struct slu_store_span *s)
{
	int rc = core_drain_recall(((struct loading *)arg)->c, s);

	if (!rc)
		rc = core_reservation_recall(((struct loading *)arg)->c, s);
	return rc < 0 ? rc : core_claim_recall(((struct loading *)arg)->c, s);
}

static int read_result(void *arg, const struct slu_store_result *r)
{
	core_after_recall(((struct loading *)arg)->c, r);
	return 0;
}

static int read_last_event(void *arg, uint64_t seq)
{
	((struct loading *)arg)->c->rows.seq = seq;
	return 0;
}

/* A store that was read in part counts as not read: forget everything read so far. */
static void forget_half(struct slu_core *c)
{
	core_forget(c);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e))
		if (!node_of(e)->drained)
			node_of(e)->drain_id = 0;
}

int core_recover(struct slu_core *c, struct slu_journal_setup *setup, struct slu_error *err)
{
	struct loading l = { .c = c };
	struct slu_store_reader r = { .job = read_job,
				      .pod = read_member,
				      .span = read_span,
				      .intent = read_intent,
				      .intent_pod = read_pod,
				      .arg = &l,
				      .last_event = read_last_event,
				      .result = read_result };
	int rc = slu_journal_recover(setup, &r, err);

	slu_map_done(&l.evicts);
	slu_map_done(&l.jobs);
	if (!rc)
		slu_log(SLU_INFO, "store read", SLU_I64("jobs", c->runs->known.n));
	else
		forget_half(c);
	return rc;
}

/* ---- the first cycle ---- */

/* Whether the group has its places already, or an intent has chosen them. */
static bool was_started(struct slu_core *c, const struct group *g)
{
	bool is = core_held_places(c, g);

	for (uint32_t i = 0; i < g->pod.n; i++) /* each takes what was meant for it */
		is |= core_meant_for(c, g->pod.p[i]) || core_pod_at(g->pod.p[i]);
	return is;
}

static int by_promise(const void *a, const void *b)
{
	const struct core_memory *x = *(struct core_memory *const *)a,
				 *y = *(struct core_memory *const *)b;

	if (x->planned_s != y->planned_s)
		return x->planned_s < y->planned_s ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* Groups that waited inside their queue come before groups that had to stay outside, each in order of
 * arrival, so that a full queue takes in the same groups again. */
static int by_arrival(const void *a, const void *b)
{
	const struct core_memory *x = *(struct core_memory *const *)a,
				 *y = *(struct core_memory *const *)b;
	bool in_x = x->state != SLU_STORE_NEVER, in_y = y->state != SLU_STORE_NEVER;

	if (in_x != in_y)
		return in_x ? -1 : 1;
	if (x->first_seen_us != y->first_seen_us)
		return x->first_seen_us < y->first_seen_us ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* Read one promised place, "node*slots/role"; a store of an older version has only the node. */
static bool read_place(const struct slu_machine *m, const char *s, struct slu_gang_part *p)
{
	size_t n = strcspn(s, "*");
	char name[256];

	if (n >= sizeof name)
		return false;
	memcpy(name, s, n);
	name[n] = 0;
	p->node = slu_machine_node_find(m, name);
	p->slots = s[n] ? (uint32_t)strtoul(s + n + 1, NULL, 10) : 1;
	p->role = strchr(s, '/') ? (uint32_t)strtoul(strchr(s, '/') + 1, NULL, 10) : 0;
	return p->node != SLU_NODE_NONE && p->slots;
}

/* Read the promised places of a job into `runs->promise`: all of them or, if a node is gone, none. */
static void promise_places(struct slu_core *c, const struct core_memory *m)
{
	const struct slu_machine *machine = slu_queue_machine(c->q);
	const struct slu_json *list = m->spec ? slu_json_get(slu_json_root(m->spec),
							     CORE_SPEC_PLACES)
					      : NULL;

	c->runs->promise.n = 0;
	for (struct slu_json_it it = slu_json_first(list); it.val; slu_json_next(&it)) {
		struct slu_gang_part p = { 0 };

		if (!slu_json_is_str(it.val) || !read_place(machine, slu_json_str(it.val), &p) ||
		    slu_vec_push(&c->runs->promise, p) < 0) {
			c->runs->promise.n = 0;
			return;
		}
	}
}

/* Collect the dirty groups that the store remembers: all of them, or those with a promise. */
static uint32_t remembered_dirty(struct slu_core *c, struct core_memory **all, uint32_t max,
				 bool promised)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->groups->dirty.n && n < max; i++) {
		struct core_memory *m = c->groups->dirty.p[i]
						? core_remembered(c, c->groups->dirty.p[i])
						: NULL;

		if (!m || (promised && m->planned_s <= 0))
			continue;
		m->at = i;
		all[n++] = m;
	}
	return n;
}

/* Take over the state of a group from its row.  The former process may have stopped before it wrote that state
 * on the objects; then write it now. */
static void recall_group(struct slu_core *c, struct group *g)
{
	bool on_hold = g->on_hold, cancelled = g->cancelled;

	core_recall(c, g);
	if (c->door && (g->on_hold != on_hold || g->cancelled != cancelled))
		core_ask_note(c, g);
}

/* Jobs of queues that were removed while they waited go on waiting there, as after a reload.  A reload since
 * the store was read may have brought a queue back. */
static void removed_queues(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->runs->queues.n; i++) {
		struct slu_queue_conf conf = { .name = c->runs->queues.p[i],
					       .default_duration = c->cfg->jobs.default_duration_s,
					       .removed = true };

		if (is_configured(c, c->runs->queues.p[i]))
			continue;
		core_apply(c, &(struct slu_event){ .kind = SLU_EV_QUEUE_SET, .conf = &conf });
	}
}

/* First all groups that have started take their places; then each promise takes its own in the plan (also
 * promises to later members of running gangs); then the others enter in order; only then may a job
 * start. */
void core_recover_plan(struct slu_core *c)
{
	slu_cleanup(slu_freep) struct core_memory **all = NULL;
	uint32_t n, k;

	removed_queues(c);
	core_lives_recall(c);
	n = c->runs->known.n ? c->groups->dirty.n : 0;
	all = slu_reallocarray(NULL, n + 1u, sizeof(struct core_memory *));
	/* The mirror is complete, so each row can be told apart: it belongs to a group, or to an earlier
	 * life with the same name. */
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		recall_group(c, group_of(e));
		core_forged_leave(c, group_of(e));
	}
	c->runs->adopting = true;
	for (uint32_t i = 0; i < n; i++)
		if (c->groups->dirty.p[i] && was_started(c, c->groups->dirty.p[i]))
			core_group_settle(c, i);
	c->runs->adopting = false;
	if (!all)
		return;
	k = remembered_dirty(c, all, n, true);
	if (k)
		qsort(all, k, sizeof(struct core_memory *), by_promise);
	for (uint32_t i = 0; i < k; i++) {
		c->runs->promise_s = all[i]->planned_s;
		c->runs->promise_cause = all[i]->cause;
		promise_places(c, all[i]);
		core_group_settle(c, all[i]->at);
	}
	c->runs->promise_s = 0;
	c->runs->promise.n = 0;
	k = remembered_dirty(c, all, n, false);
	if (k)
		qsort(all, k, sizeof(struct core_memory *), by_arrival);
	for (uint32_t i = 0; i < k; i++)
		core_group_settle(c, all[i]->at);
}

#define AWAIT_US 2000000

static bool is_awaited(struct slu_core *c, const struct core_memory *m)
{
	if (!m->ran || m->retired || slu_table_finds(&c->groups->table, m->key))
		return false;
	for (uint32_t i = 0; i < m->maker.n; i++) {
		const struct slu_kobj *o = core_owner(c, m->key, m->maker.p[i]);

		if (o && slu_life_wants(o) > 0)
			return true;
	}
	return false;
}

/* End the groups whose members all ended while this process was a standby: the store's row tells what became of
 * such a group. */
static void end_empty(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL), *next; e; e = next) {
		struct group *g = group_of(e);

		next = slu_table_next(&c->groups->table, e);
		if (!g->pod.n && !g->run.n)
			core_group_end(c, g);
	}
}

bool core_recovery_awaits(struct slu_core *c)
{
	struct recovery *v = c->recovery;

	if (c->recovered)
		return false;
	end_empty(c);
	if (!v->await_us)
		v->await_us = c->now_us + AWAIT_US;
	for (struct slu_entry *e = slu_table_next(&c->runs->known, NULL);
	     e && !v->awaits && c->now_us < v->await_us; e = slu_table_next(&c->runs->known, e))
		v->awaits = is_awaited(c, memory_of(e));
	return v->awaits;
}

int64_t core_recovery_wake_us(const struct slu_core *c)
{
	return c->recovery->awaits ? c->recovery->await_us : CORE_NEVER;
}

/* The first cycle has met every object of the cluster: undo the intents that are left, and remove the rows of jobs
 * that no longer exist. */
void core_recovered(struct slu_core *c)
{
	uint32_t gone = 0;

	for (uint32_t i = 0; i < c->runs->left.n; i++) {
		const struct core_intent *k = &c->runs->left.p[i];

		if (slu_intent_settle(c->door, k->id, k->job, k->made_us, k->verb,
				      SLU_INTENT_UNDONE) < 0)
			slu_log(SLU_WARN, "intent not settled", SLU_I64("intent", k->id));
	}
	for (struct slu_entry *e = slu_table_next(&c->runs->known, NULL); e;
	     e = slu_table_next(&c->runs->known, e)) {
		if (memory_of(e)->met)
			continue;
		gone++;
		core_memory_over(c, memory_of(e));
		if (slu_batch_del_job(slu_intents_batch(c->door), memory_of(e)->job) < 0)
			slu_log(SLU_WARN, "job not removed from the store",
				SLU_STR("job", memory_of(e)->key));
	}
	core_forget(c);
	if (gone)
		slu_log(SLU_INFO,
			"jobs removed from the store: they no longer exist in the cluster",
			SLU_I64("jobs", gone));
}
