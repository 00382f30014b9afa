/* What the store remembers, brought together with what the cluster shows.
 *
 * The cluster is the truth about what runs, the store about order and intents.  So a group that is
 * still there gets back its first-seen time and its number; an open intent is carried out on the
 * same nodes where that is still possible, members that do not fit there any more are planned again; and
 * what the cluster no longer has leaves the store. */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "wire/json.h"

/* An intent for a stand-in counts for the pod that took its place: the stand-ins of a Job that are left
 * have the lower numbers. */
static struct core_meant *stood_for(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *o = p->stand ? NULL : slu_kmeta_controller(&p->k->o.meta);
	const struct held *h = o ? core_held_find(c, p->k->o.meta.ns, o->uid) : NULL;
	struct core_meant *m = NULL;
	char key[CORE_STAND_KEY];

	for (uint32_t i = h ? h->stands : 0; h; i++) {
		core_stand_key(key, sizeof key, o->uid, i);
		m = meant_of(slu_table_finds(&c->runs->meant, key));
		if (!m || !m->by || m->by == p)
			break;
	}
	if (m)
		m->by = p;
	return m;
}

struct core_meant *core_meant_for(struct slu_core *c, const struct pod *p)
{
	struct core_meant *m = meant_of(slu_table_finds(&c->runs->meant, core_pod_uid(p)));

	return m || !c->runs->meant.n ? m : stood_for(c, p);
}

/* The pod an intent speaks of; NULL: it is gone. */
static const struct pod *pod_meant(struct slu_core *c, const struct core_meant *m)
{
	const char *number = strrchr(m->uid, '#');
	const struct held *h;
	uint32_t i;

	if (!number)
		return pod_of(slu_table_finds(&c->cluster->pods, m->uid));
	h = held_of(slu_table_find(&c->groups->held, m->uid, (size_t)(number - m->uid)));
	i = (uint32_t)strtoul(number + 1, NULL, 10);
	return h && i < h->stands ? h->stand.p[SLU_MIN(i, h->stand.n - 1)] : m->by;
}

void core_memory_free(struct core_memory *m)
{
	core_memory_done(m);
	slu_json_free(m->spec);
	slu_free(m->key);
	slu_free(m);
}

void core_meant_free(struct core_meant *m)
{
	slu_free(m->uid);
	slu_free(m->node);
	slu_free(m);
}

/* The nodes that refused a member are avoided for as long as before. */
static void recall_refused(struct slu_core *c, struct group *g, const struct core_memory *m)
{
	for (uint32_t i = 0; i < m->avoid.n && m->avoid_until_s > c->now_s; i++) {
		const struct node *n = core_node(c, m->avoid.p[i]);

		if (n && n->handle != SLU_NODE_NONE)
			core_avoid(c, g, n->handle, m->avoid_until_s - c->now_s);
	}
	g->again_s = m->again_s > c->now_s ? m->again_s : 0;
	g->undone = m->undone;
	if (g->again_s)
		core_due_by(c, CORE_AT_UNDO, c->now_us + 1000000);
}

/* In force until its objects say something else; they say nothing if they have become wrong. */
static void recall_wish(struct group *g, const struct core_memory *m)
{
	g->wish.min = m->size;
	g->wish.max = m->max_size;
	g->wish.priority = (int32_t)m->wish_priority;
	g->wish.duration_s = m->duration_s;
	g->wish.begin_s = m->begin_s;
	g->wish.deadline_s = m->deadline_s;
	if (m->queue)
		snprintf(g->wish.queue, sizeof g->wish.queue, "%s", m->queue);
}

void core_recall(struct slu_core *c, struct group *g)
{
	struct core_memory *m = core_remembered(c, g);

	if (!m || m->met)
		return;
	if (!core_memory_is(m, g)) {
		m->other = true;
		return;
	}
	m->met = true;
	core_memory_account(c, m);
	for (uint32_t i = 0; i < g->pod.n; i++)
		for (uint32_t k = 0; k < m->pod.n && !g->pod.p[i]->kept; k++)
			g->pod.p[i]->kept = m->state > SLU_STORE_NEVER &&
					    !strcmp(m->pod.p[k], core_pod_uid(g->pod.p[i]));
	g->ended_ok = m->ok;
	g->ended_bad = m->bad;
	g->ended_alone = m->alone;
	g->used = m->used;
	g->ended_us = m->ended_us;
	g->life.size = m->size;
	g->first_seen_us = m->first_seen_us;
	g->reuse = g->kept = m->job;
	g->kept_sum = m->sum; /* what has not changed is not written again */
	g->promised_s = m->promised_s;
	g->plan_cause = m->cause;
	g->on_hold = !m->cancelled && (m->state == SLU_STORE_HELD || m->on_hold);
	g->cancelled = m->cancelled;
	g->has_priority = m->has_priority;
	g->priority = m->priority;
	g->limit_s = m->limit_s;
	g->begun = m->begun;
	recall_refused(c, g, m);
	recall_wish(g, m);
	/* Members may have gone since; those that exist and wait are noted again. */
	if (c->door && m->state <= SLU_STORE_NEVER &&
	    slu_batch_del_pods(slu_intents_batch(c->door), m->job) < 0)
		slu_log(SLU_WARN, "members not removed from the store", SLU_STR("job", g->id.name));
}

int64_t core_recall_start(struct slu_core *c, const struct group *g, int64_t otherwise_s)
{
	const struct core_memory *m = core_remembered(c, g);
	bool ran = m && (m->state == SLU_STORE_STARTING || m->state == SLU_STORE_RUNNING);

	return SLU_MIN(ran && m->start_s ? m->start_s : otherwise_s, c->now_s);
}

void core_recall_lots(struct slu_core *c, struct group *g)
{
	char uid[256];

	for (uint32_t i = 0; c->runs->meant.n && g->others && i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];
		uint32_t n = 0;

		for (; p->others && n <= p->others; n++) {
			core_lot_uid(uid, sizeof uid, p, n);
			if (!slu_table_finds(&c->runs->meant, uid))
				break;
		}
		(void)core_lot_divide(c, p, n); /* no memory: they are planned again */
	}
}

const char *core_recall_node(struct slu_core *c, const struct group *g, const struct pod *p)
{
	const struct core_meant *m = core_meant_for(c, p);

	(void)g;
	return m && !m->evicted ? m->node : NULL;
}

bool core_recall_evict(struct slu_core *c, const struct pod *p)
{
	const struct core_meant *m = core_meant_for(c, p);

	return m && m->evicted;
}

/* What became of the pods that an intent names. */
static void fate_of_memory(struct slu_core *c, uint64_t intent, uint32_t *gone, uint32_t *started)
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

/* Whether the intent can still be carried out whole: no pod it names is gone, or else some have
 * started, and the rest belongs to them. */
static bool still_whole(struct slu_core *c, uint64_t intent)
{
	uint32_t gone, started;

	fate_of_memory(c, intent, &gone, &started);
	return !gone || started;
}

bool core_recall_begun(struct slu_core *c, const struct group *g)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; c->runs->meant.n && i < g->pod.n; i++) {
		const struct core_meant *m = core_meant_for(c, g->pod.p[i]);
		uint32_t gone, started = 0;

		if (m && !m->evicted && m->intent != seen && !g->pod.p[i]->stand)
			fate_of_memory(c, m->intent, &gone, &started);
		if (started)
			return true;
		seen = m ? m->intent : seen;
	}
	return false;
}

uint32_t core_recall_open(struct slu_core *c, const struct group *g)
{
	const struct core_memory *known = core_remembered(c, g);
	uint64_t sound = 0;
	uint32_t n = 0, kept = known ? known->vacant.n : 0;
	bool whole = true;

	for (uint32_t i = 0; c->runs->meant.n && i < g->pod.n; i++) {
		const struct core_meant *m = core_meant_for(c, g->pod.p[i]);

		if (!m || m->evicted || !core_pod_startable(g->pod.p[i]))
			continue;
		if (!g->pod.p[i]->stand && m->intent != sound)
			whole &= still_whole(c, m->intent);
		sound = m->intent;
		n++;
	}
	/* A member that was deleted left its place to a successor, who has it already or is to come. */
	return whole || n + kept >= g->life.asks ? n : 0;
}

void core_forget(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->runs->known, NULL), *next; e; e = next) {
		next = slu_table_next(&c->runs->known, e);
		core_memory_free(memory_of(e));
	}
	slu_table_done(&c->runs->known);
	for (struct slu_entry *e = slu_table_next(&c->runs->meant, NULL), *next; e; e = next) {
		next = slu_table_next(&c->runs->meant, e);
		core_meant_free(meant_of(e));
	}
	slu_table_done(&c->runs->meant);
	slu_map_done(&c->runs->placed);
	slu_vec_done(&c->runs->left);
	while (c->runs->queues.n)
		slu_free(c->runs->queues.p[--c->runs->queues.n]);
	slu_vec_done(&c->runs->queues);
}
