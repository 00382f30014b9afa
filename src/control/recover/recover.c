/* What the store remembers, brought together with what the cluster shows.
 *
 * The cluster is the truth about what runs, the store about order and intents.  So a group that is
 * still there gets back its first-seen time and its number; an open intent is carried out on the
 * same nodes where that is still possible, whoever does not fit there any more is planned anew; and
 * what the cluster no longer has leaves the store. */
#include "control/recover/recover.h"

#include "control/claim/claim.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/run/run.h"

struct memory {
	struct slu_entry e; /* key: the group's */
	char *key;
	uint64_t job;
	int64_t first_seen_us, planned_s, promised_s, start_s, state;
	uint64_t sum;
	bool cancelled, begun;
	bool met;    /* the cluster has it too */
	uint32_t at; /* its group waits there to be settled */
};

/* A pod of an open intent.  One that was going to be evicted has no node. */
struct meant {
	struct slu_entry e; /* key: uid */
	char *uid, *node;
	uint64_t intent;
	const struct pod *by; /* it was meant for the stand-in of this one */
};

struct loading {
	struct slu_core *c;
	struct slu_map evicts; /* intents that take back */
};

static struct memory *memory_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct memory, e) : NULL;
}

static struct meant *meant_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct meant, e) : NULL;
}

static struct memory *remembered(struct slu_core *c, const struct group *g)
{
	return memory_of(slu_table_find(&c->runs->known, g->key, g->e.n));
}

/* What was meant for a stand-in counts for the pod that came in its place: those of a Job that
 * still stand have the lower numbers. */
static struct meant *stood_for(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *o = p->stand ? NULL : slu_kmeta_controller(&p->k->o.meta);
	struct slu_entry *e = o ? slu_table_finds(&c->holds->table, o->uid) : NULL;
	struct meant *m = NULL;
	char key[CORE_STAND_KEY];

	for (uint32_t i = e ? slu_entry_of(e, struct held, e)->stand.n : 0; e; i++) {
		core_stand_key(key, sizeof key, o->uid, i);
		m = meant_of(slu_table_finds(&c->runs->meant, key));
		if (!m || !m->by || m->by == p)
			break;
	}
	if (m)
		m->by = p;
	return m;
}

static struct meant *meant_for(struct slu_core *c, const struct pod *p)
{
	struct meant *m = meant_of(slu_table_finds(&c->runs->meant, core_pod_uid(p)));

	return m || !c->runs->meant.n ? m : stood_for(c, p);
}

/* The pod an intent speaks of; NULL: it is gone. */
static const struct pod *pod_meant(struct slu_core *c, const struct meant *m)
{
	const char *number = strrchr(m->uid, '#');
	struct slu_entry *e;
	uint32_t i;

	if (!number)
		return pod_of(slu_table_finds(&c->cluster->pods, m->uid));
	e = slu_table_find(&c->holds->table, m->uid, (size_t)(number - m->uid));
	i = (uint32_t)strtoul(number + 1, NULL, 10);
	return e && i < slu_entry_of(e, struct held, e)->stand.n
		       ? slu_entry_of(e, struct held, e)->stand.p[i]
		       : m->by;
}

static void memory_free(struct memory *m)
{
	slu_free(m->key);
	slu_free(m);
}

static void meant_free(struct meant *m)
{
	slu_free(m->uid);
	slu_free(m->node);
	slu_free(m);
}

static int read_job(void *arg, const struct slu_store_job *j)
{
	struct loading *l = arg;
	struct memory *m;

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
	m->sum = core_keep_sum(j);
	m->start_s = j->start_s;
	m->state = j->state;
	m->cancelled = !strcmp(j->cause, CORE_CAUSE_CANCELLED);
	m->begun = j->state == SLU_STORE_RUNNING || !strcmp(j->cause, CORE_CAUSE_BEGUN);
	m->e.key = m->key;
	m->e.n = strlen(m->key);
	if (slu_table_add(&l->c->runs->known, &m->e) < 0) {
		memory_free(m);
		return -ENOMEM;
	}
	return 0;
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

/* Of several intents about one pod the newest counts; they come in order. */
static int read_pod(void *arg, const struct slu_store_intent_pod *p)
{
	struct loading *l = arg;
	struct meant *m = meant_of(slu_table_finds(&l->c->runs->meant, p->uid));
	char *node = slu_map_get(&l->evicts, p->intent) ? NULL : slu_strdup(p->node);

	if (!node && !slu_map_get(&l->evicts, p->intent))
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
			meant_free(m);
			slu_free(node);
			return -ENOMEM;
		}
	}
	slu_free(m->node);
	m->node = node;
	m->intent = p->intent;
	return 0;
}

static int read_span(void *arg, const struct slu_store_span *s)
{
	int rc = core_drain_recall(((struct loading *)arg)->c, s);

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

int core_recover(struct slu_core *c, struct slu_journal_setup *setup, struct slu_error *err)
{
	struct loading l = { .c = c };
	struct slu_store_reader r = { .job = read_job,
				      .span = read_span,
				      .intent = read_intent,
				      .intent_pod = read_pod,
				      .arg = &l,
				      .last_event = read_last_event,
				      .result = read_result };
	int rc = slu_journal_recover(setup, &r, err);

	slu_map_done(&l.evicts);
	if (!rc)
		slu_log(SLU_INFO, "store read", SLU_I64("jobs", c->runs->known.n));
	else
		core_forget(c); /* half a memory is none */
	return rc;
}

void core_recall(struct slu_core *c, struct group *g)
{
	struct memory *m = remembered(c, g);

	if (!m || m->met)
		return;
	m->met = true;
	g->first_seen_us = m->first_seen_us;
	g->reuse = g->kept = m->job;
	g->kept_sum = m->sum; /* what has not changed is not written again */
	g->promised_s = m->promised_s;
	g->held = m->state == SLU_STORE_HELD && !m->cancelled;
	g->cancelled = m->cancelled;
	g->begun = m->begun;
	/* Members may have gone meanwhile; those that are there and wait are noted again. */
	if (c->door && m->state <= SLU_STORE_NEVER &&
	    slu_batch_del_pods(slu_intents_batch(c->door), m->job) < 0)
		slu_log(SLU_WARN, "members not removed from the store", SLU_STR("job", g->id.name));
}

int64_t core_recall_start(struct slu_core *c, const struct group *g, int64_t otherwise_s)
{
	const struct memory *m = remembered(c, g);
	bool ran = m && (m->state == SLU_STORE_STARTING || m->state == SLU_STORE_RUNNING);

	return SLU_MIN(ran && m->start_s ? m->start_s : otherwise_s, c->now_s);
}

const char *core_recall_node(struct slu_core *c, const struct group *g, const struct pod *p)
{
	const struct meant *m = meant_for(c, p);

	(void)g;
	return m ? m->node : NULL;
}

bool core_recall_evict(struct slu_core *c, const struct pod *p)
{
	const struct meant *m = meant_for(c, p);

	return m && !m->node;
}

/* What became of those an intent names. */
static void fate(struct slu_core *c, uint64_t intent, uint32_t *gone, uint32_t *started)
{
	*gone = *started = 0;

	for (struct slu_entry *e = slu_table_next(&c->runs->meant, NULL); e;
	     e = slu_table_next(&c->runs->meant, e)) {
		const struct pod *p;

		if (meant_of(e)->intent != intent)
			continue;
		p = pod_meant(c, meant_of(e));
		*started += p && (core_pod_at(p) || slu_kpod_ended(p->k));
		*gone += !p || (!core_pod_at(p) && !core_pod_startable(p));
	}
}

/* Whether the intent can still be carried out whole: nobody it names is gone, or else some have
 * started, and the rest belongs to them. */
static bool still_whole(struct slu_core *c, uint64_t intent)
{
	uint32_t gone, started;

	fate(c, intent, &gone, &started);
	return !gone || started;
}

bool core_recall_begun(struct slu_core *c, const struct group *g)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; c->runs->meant.n && i < g->pod.n; i++) {
		const struct meant *m = meant_for(c, g->pod.p[i]);
		uint32_t gone, started = 0;

		if (m && m->node && m->intent != seen && !g->pod.p[i]->stand)
			fate(c, m->intent, &gone, &started);
		if (started)
			return true;
		seen = m ? m->intent : seen;
	}
	return false;
}

uint32_t core_recall_open(struct slu_core *c, const struct group *g)
{
	uint64_t sound = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; c->runs->meant.n && i < g->pod.n; i++) {
		const struct meant *m = meant_for(c, g->pod.p[i]);

		if (!m || !m->node || !core_pod_startable(g->pod.p[i]))
			continue;
		if (!g->pod.p[i]->stand && m->intent != sound && !still_whole(c, m->intent))
			return 0;
		sound = m->intent;
		n++;
	}
	return n;
}

/* ---- the first cycle ---- */

/* It has its places already, or they are chosen. */
static bool was_started(struct slu_core *c, const struct group *g)
{
	bool is = core_held_place(c, g, NULL);

	for (uint32_t i = 0; i < g->pod.n; i++) /* each takes what was meant for it */
		is |= meant_for(c, g->pod.p[i]) || core_pod_at(g->pod.p[i]);
	return is;
}

static int by_promise(const void *a, const void *b)
{
	const struct memory *x = *(struct memory *const *)a, *y = *(struct memory *const *)b;

	if (x->planned_s != y->planned_s)
		return x->planned_s < y->planned_s ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* First all that has started takes its places, then each promise its own in the plan (those to
 * later members of what runs, too), and only then anybody starts. */
void core_recover_plan(struct slu_core *c)
{
	uint32_t n = c->runs->known.n ? c->groups->dirty.n : 0, promised = 0;
	slu_cleanup(slu_freep) struct memory **all = slu_reallocarray(NULL, n + 1u, sizeof *all);

	c->runs->adopting = true;
	for (uint32_t i = 0; i < n; i++)
		if (c->groups->dirty.p[i] && was_started(c, c->groups->dirty.p[i]))
			core_group_settle(c, i);
	c->runs->adopting = false;
	for (uint32_t i = 0; n && all && i < c->groups->dirty.n; i++) {
		struct memory *m = c->groups->dirty.p[i] ? remembered(c, c->groups->dirty.p[i])
							 : NULL;

		if (m && m->planned_s > 0 && promised < n) {
			m->at = i;
			all[promised++] = m;
		}
	}
	if (promised)
		qsort(all, promised, sizeof(struct memory *), by_promise);
	for (uint32_t i = 0; i < promised; i++) {
		c->runs->promise_s = all[i]->planned_s;
		core_group_settle(c, all[i]->at);
	}
	c->runs->promise_s = 0;
}

/* The first cycle has met everything the cluster has: settle the rest. */
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
		if (slu_batch_del_job(slu_intents_batch(c->door), memory_of(e)->job) < 0)
			slu_log(SLU_WARN, "job not removed", SLU_STR("job", memory_of(e)->key));
	}
	core_forget(c);
	if (gone)
		slu_log(SLU_INFO, "jobs of the store that the cluster no longer has",
			SLU_I64("jobs", gone));
}

void core_forget(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->runs->known, NULL), *next; e; e = next) {
		next = slu_table_next(&c->runs->known, e);
		memory_free(memory_of(e));
	}
	slu_table_done(&c->runs->known);
	for (struct slu_entry *e = slu_table_next(&c->runs->meant, NULL), *next; e; e = next) {
		next = slu_table_next(&c->runs->meant, e);
		meant_free(meant_of(e));
	}
	slu_table_done(&c->runs->meant);
	slu_vec_done(&c->runs->left);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e))
		if (!node_of(e)->drained)
			node_of(e)->drain_id = 0;
}
