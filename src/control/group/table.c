/* The table of groups: which exist, which pods join them, which are dirty. */
#include "control/group/group.h"

#include <stdio.h>

#include "control/cluster/cluster.h"

#define NOTED_BEFORE_US 30000000  /* the webhook writes its note just before the object exists */
#define MADE_AFTER_US   120000000 /* a pod made later was not submitted with the note */
#define FULL_KEY        600       /* bytes of a namespace and a key */

struct group *core_group_find(struct slu_core *c, const char *ns, const char *key)
{
	char full[FULL_KEY];
	int n = snprintf(full, sizeof full, "%s/%s", ns, key);

	return n > 0 && n < FULL_KEY ? group_of(slu_table_find(&c->groups->table, full, (size_t)n))
				     : NULL;
}

/* The arrival that the webhook noted; 0: there is none, or it cannot be true.  Any user who may make a pod
 * may write such a note, and an early one would be a place at the head of the queue.  So would the note
 * of a Deployment that was made long ago and is scaled up now: there the age of its pods counts. */
static int64_t noted_us(struct slu_core *c, const struct slu_group_source *src)
{
	const struct slu_kmeta *m;
	const char *noted = c->cfg->webhook.enabled ? slu_group_note(src, SLU_IN_SEEN, &m) : NULL;
	char *end = NULL;
	int64_t at = noted ? strtoll(noted, &end, 10) : 0;

	return at > 0 && !*end && at <= c->now_us && at < m->created_us + 2000000 &&
			       at > m->created_us - NOTED_BEFORE_US &&
			       src->pod->o.meta.created_us < at + MADE_AFTER_US
		       ? at
		       : 0;
}

/* Order of arrival, to the microsecond; objects older than this process are ordered by their creation. */
static int64_t first_seen(struct slu_core *c, const struct slu_group_source *src)
{
	const struct slu_kmeta *m = &src->pod->o.meta;
	int64_t at = noted_us(c, src);

	if (at)
		return at;
	if (m->created_us && m->created_us + 2000000 < c->now_us)
		return m->created_us;
	c->groups->last_seen_us = SLU_MAX(c->groups->last_seen_us + 1, c->now_us);
	return c->groups->last_seen_us;
}

static bool is_noted(const struct slu_group_source *src, const char *key)
{
	const char *v = slu_group_note(src, key, NULL);

	return v && !strcmp(v, "true");
}

/* `full` is the key with its namespace. */
static struct group *group_new(struct slu_core *c, struct pod *p,
			       const struct slu_group_source *src, const struct slu_group_id *id,
			       const char *full)
{
	const char *user = c->cfg->webhook.enabled ? slu_group_note(src, SLU_IN_USER, NULL) : NULL;
	const struct slu_kmeta *m = &p->k->o.meta;
	struct group *g = slu_calloc(1, sizeof *g);
	int64_t priority = 0;

	if (!g)
		return NULL;
	g->key = slu_strdup(full);
	g->e.n = strlen(full);
	g->e.key = g->key;
	g->ns = slu_strdup(m->ns);
	g->scheduler = slu_strdup(p->k->spec.scheduler);
	g->id = *id;
	g->first_seen_us = first_seen(c, src);
	g->cancelled = is_noted(src, SLU_CANCELLED);
	g->on_hold = is_noted(src, SLU_ON_HOLD);
	/* Users may write these two keys on their own objects.  The store has the values that
	 * were set by a request, so the objects count only without a store. */
	if (c->door && !slu_intents_kept(c->door)) {
		g->has_priority = slu_group_set(src, SLU_SET_PRIORITY, INT32_MIN, INT32_MAX,
						&priority);
		g->priority = g->has_priority ? (int32_t)priority : 0;
		slu_group_set(src, SLU_SET_LIMIT, 1, SLU_LIMIT_MAX, &g->limit_s);
	}
	g->user = slu_strdup(user && *user ? user : m->ns);
	g->told_start_s = SLU_TIME_NONE;
	if (!g->key || !g->ns || !g->user || !g->scheduler ||
	    slu_vec_reserve(&c->groups->born, c->groups->born.n + 1) < 0 ||
	    slu_table_add(&c->groups->table, &g->e) < 0) {
		slu_free(g->key);
		slu_free(g->ns);
		slu_free(g->user);
		slu_free(g->scheduler);
		slu_free(g);
		return NULL;
	}
	c->groups->born.p[c->groups->born.n++] = g;
	return g;
}

void core_group_dirty(struct slu_core *c, struct group *g)
{
	if (g->dirty)
		return;
	if (slu_vec_push(&c->groups->dirty, g) == 0)
		g->dirty = true;
}

bool core_group_names(struct slu_core *c, const struct group *g, const struct pod *p)
{
	struct slu_group_source src;
	struct slu_group_id id;

	core_source(c, p->k, &src);
	(void)slu_group_identify(&src, &id, NULL); /* a bad name: the group of its owner */
	return !strcmp(id.key, g->id.key);
}

/* Let the pod join the group that its objects name or, with `retired`, the earlier life that has this
 * key. */
static struct group *join_pod(struct slu_core *c, struct pod *p, const char *retired)
{
	struct slu_key_place place = slu_key_place_meta(&p->k->o.meta);
	const char *size = slu_key_value(&place, SLU_KEY_SIZE, NULL);
	struct slu_group_source src;
	struct slu_group_id id;
	struct slu_error err = { 0 };
	char own[FULL_KEY];
	const char *key = retired ? retired : own;
	struct group *g;
	int rc;

	core_source(c, p->k, &src);
	rc = slu_group_identify(&src, &id, &err);
	if (snprintf(own, sizeof own, "%s/%s", p->k->o.meta.ns, id.key) >= (int)sizeof own)
		return NULL;
	g = group_of(slu_table_finds(&c->groups->table, key));
	if (!g)
		g = group_new(c, p, &src, &id, key);
	if (g && retired)
		core_group_retire(g);
	if (!g || core_maker_join(c, g, p) < 0 || slu_vec_push(&g->pod, p) < 0)
		return NULL;
	p->member_at = g->pod.n - 1;
	g->stands += p->stand != NULL;
	g->others += p->others;
	if (!p->shape)
		p->shape = core_shape_get(c, p);
	if (size)
		(void)(slu_group_parse_size("size", size, UINT32_MAX, &p->said_size, NULL) < 0);
	p->group = g;
	if (rc < 0)
		core_tell(c, p, "BadGroup", true, "%s", err.text);
	core_group_dirty(c, g);
	return g;
}

struct group *core_group_join(struct slu_core *c, struct pod *p)
{
	return join_pod(c, p, NULL);
}

struct group *core_group_join_retired(struct slu_core *c, struct pod *p, const char *key)
{
	return join_pod(c, p, key);
}

void core_group_retire(struct group *g)
{
	g->retired = true;
	g->id.podgroup = g->id.native = false;
}

bool core_group_elsewhere(const struct group *g)
{
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (!core_pod_at(g->pod.p[i]))
			return false;
	return g->pod.n && !g->run.n;
}

static void group_free(struct group *g)
{
	slu_free(g->after_text);
	slu_vec_done(&g->pod);
	slu_vec_done(&g->run);
	slu_vec_done(&g->owned);
	slu_free(g->key);
	slu_free(g->ns);
	slu_free(g->user);
	slu_free(g->scheduler);
	while (g->maker.n)
		slu_free(g->maker.p[--g->maker.n]);
	slu_vec_done(&g->maker);
	slu_free(g->wrong);
	slu_free(g->stall_text);
	slu_free(g->told_text);
	slu_free(g);
}

/* Out of the table and of every list of this room. */
void core_group_over(struct slu_core *c, struct group *g)
{
	for (uint32_t i = 0; g->dirty && i < c->groups->dirty.n; i++)
		if (c->groups->dirty.p[i] == g)
			c->groups->dirty.p[i] = NULL;
	g->dirty = true; /* so that it is not put on the list again */
	core_calm_forget(c, g);
	slu_table_del(&c->groups->table, &g->e);
	if (slu_vec_push(&c->groups->over, g) < 0)
		group_free(g);
}

void core_groups_reap(struct slu_core *c)
{
	while (c->groups->over.n)
		group_free(c->groups->over.p[--c->groups->over.n]);
}

void core_groups_done(struct slu_core *c)
{
	core_groups_reap(c);
	slu_table_done(&c->groups->table);
	slu_vec_done(&c->groups->dirty);
	slu_map_done(&c->groups->touched);
	slu_vec_done(&c->groups->unowned);
	slu_vec_done(&c->groups->joined);
	slu_vec_done(&c->groups->born);
	slu_vec_done(&c->groups->over);
	slu_vec_done(&c->groups->calm);
	slu_vec_done(&c->groups->makers);
	slu_vec_done(&c->groups->members);
}
