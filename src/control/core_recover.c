/* What the store remembers, brought together with what the cluster shows.
 *
 * The cluster is the truth about what runs, the store about order and intents.  So a group that is
 * still there gets back its first-seen time and its number; an open intent is carried out on the
 * same nodes where that is still possible, whoever does not fit there any more is planned anew; and
 * what the cluster no longer has leaves the store. */
#include "control/core_i.h"

struct memory_pod {
	uint64_t intent;
	char *uid, *node;
};

struct memory {
	struct slu_entry e; /* key: the group's */
	char *key;
	uint64_t job, intent;
	int64_t first_seen_us, made_us;
	SLU_VEC(struct memory_pod) pod;
	bool met; /* the cluster has it too */
};

struct loading {
	struct slu_core *c;
	struct slu_map by_job, by_intent; /* -> struct memory * */
};

static struct memory *memory_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct memory, e) : NULL;
}

static void memory_free(struct memory *m)
{
	for (uint32_t i = 0; i < m->pod.n; i++) {
		slu_free(m->pod.p[i].uid);
		slu_free(m->pod.p[i].node);
	}
	slu_vec_done(&m->pod);
	slu_free(m->key);
	slu_free(m);
}

static int read_job(void *arg, const struct slu_store_job *j)
{
	struct loading *l = arg;
	struct memory *m;

	l->c->next_job = SLU_MAX(l->c->next_job, j->id);
	if (j->state == SLU_STORE_ENDED || slu_table_finds(&l->c->known, j->key))
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
	m->e.key = m->key;
	m->e.n = strlen(m->key);
	if (slu_table_add(&l->c->known, &m->e) < 0) {
		memory_free(m);
		return -ENOMEM;
	}
	return slu_map_put(&l->by_job, m->job, (uintptr_t)m);
}

static int read_intent(void *arg, const struct slu_store_intent *i)
{
	struct loading *l = arg;
	uint64_t *at = slu_map_get(&l->by_job, i->job);
	struct memory *m = at ? (struct memory *)(uintptr_t)*at : NULL;

	l->c->next_intent = SLU_MAX(l->c->next_intent, i->id);
	if (!m || i->state != SLU_INTENT_OPEN)
		return 0;
	m->intent = i->id;
	m->made_us = i->made_us;
	return slu_map_put(&l->by_intent, i->id, (uintptr_t)m);
}

static int read_pod(void *arg, const struct slu_store_intent_pod *p)
{
	struct loading *l = arg;
	uint64_t *at = slu_map_get(&l->by_intent, p->intent);
	struct memory *m = at ? (struct memory *)(uintptr_t)*at : NULL;
	struct memory_pod k = { .intent = p->intent };

	if (!m)
		return 0;
	k.uid = slu_strdup(p->uid);
	k.node = slu_strdup(p->node);
	if (!k.uid || !k.node || slu_vec_push(&m->pod, k) < 0) {
		slu_free(k.uid);
		slu_free(k.node);
		return -ENOMEM;
	}
	return 0;
}

static int read_span(void *arg, const struct slu_store_span *s)
{
	return core_drain_recall(((struct loading *)arg)->c, s);
}

static int read_last_event(void *arg, uint64_t seq)
{
	((struct loading *)arg)->c->log_seq = seq;
	return 0;
}

static int recover(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err)
{
	struct loading l = { .c = c };
	struct slu_store_reader r = { .job = read_job,
				      .span = read_span,
				      .intent = read_intent,
				      .intent_pod = read_pod,
				      .arg = &l,
				      .last_event = read_last_event };
	int rc = slu_journal_recover(setup, &r, err);

	slu_map_done(&l.by_job);
	slu_map_done(&l.by_intent);
	if (!rc)
		slu_log(SLU_INFO, "store read", SLU_I64("jobs", c->known.n));
	return rc;
}

int slu_core_lead(struct slu_core *c, const struct slu_journal_setup *setup, struct slu_error *err)
{
	int rc = 0;

	if (strcmp(setup->url, "memory:"))
		rc = recover(c, setup, err);
	if (rc < 0 && rc != -EAGAIN)
		return slu_fail_prefix(err, rc, "store.url (--store)");
	if (rc < 0) {
		slu_log(SLU_WARN, "store not read", SLU_STR("err", err->text));
		c->log_seq = SLU_MAX(c->log_seq, c->next_job); /* above what is in it */
	}
	rc = slu_intents_new(setup, &c->own_door, err);
	if (rc < 0)
		return rc;
	c->door = c->own_door;
	rc = core_log_begin(c, err);
	if (rc < 0)
		return rc;
	for (struct slu_entry *e = slu_table_next(&c->groups, NULL); e;
	     e = slu_table_next(&c->groups, e))
		core_recall(c, group_of(e)); /* seen while standing by */
	slu_log(SLU_INFO, "leading", SLU_I64("term", setup->term));
	return 0;
}

void core_recall(struct slu_core *c, struct group *g)
{
	struct memory *m = memory_of(slu_table_find(&c->known, g->key, g->e.n));

	if (!m || m->met)
		return;
	m->met = true;
	g->first_seen_us = m->first_seen_us;
	g->reuse = m->job;
}

uint32_t core_recall_open(struct slu_core *c, const struct group *g)
{
	struct memory *m = memory_of(slu_table_find(&c->known, g->key, g->e.n));
	uint32_t n = 0;

	for (uint32_t i = 0; m && m->intent && i < g->pod.n; i++)
		n += core_pod_startable(g->pod.p[i]) && core_recall_node(c, g, g->pod.p[i]);
	return n;
}

const char *core_recall_node(struct slu_core *c, const struct group *g, const struct pod *p)
{
	struct memory *m = memory_of(slu_table_find(&c->known, g->key, g->e.n));

	for (uint32_t i = 0; m && i < m->pod.n; i++)
		if (!strcmp(m->pod.p[i].uid, p->k->o.meta.uid))
			return m->pod.p[i].node;
	return NULL;
}

/* The first cycle has met everything the cluster has: settle the rest. */
void core_recovered(struct slu_core *c)
{
	uint32_t gone = 0;

	for (struct slu_entry *e = slu_table_next(&c->known, NULL), *next; e; e = next) {
		struct memory *m = memory_of(e);

		next = slu_table_next(&c->known, e);
		if (m->intent && slu_intent_settle(c->door, m->intent, m->job, m->made_us,
						   SLU_INTENT_UNDONE) < 0)
			slu_log(SLU_WARN, "intent not settled", SLU_STR("job", m->key));
		if (!m->met) {
			gone++;
			if (slu_batch_del_job(slu_intents_batch(c->door), m->job) < 0)
				slu_log(SLU_WARN, "job not removed", SLU_STR("job", m->key));
		}
		memory_free(m);
	}
	slu_table_done(&c->known);
	if (gone)
		slu_log(SLU_INFO, "jobs of the store that the cluster no longer has",
			SLU_I64("jobs", gone));
}

void core_forget(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->known, NULL), *next; e; e = next) {
		next = slu_table_next(&c->known, e);
		memory_free(memory_of(e));
	}
	slu_table_done(&c->known);
}
