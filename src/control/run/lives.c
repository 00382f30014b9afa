/* A second life under one name: all that have a node are leaving, and others wait.
 *
 * Leaving members keep what they hold and nothing else, in a nameless group of their own; waiting members
 * are a gang that has not begun.  If the same object made both (its pods were evicted, and it makes them
 * again), the waiting gang keeps its place in the queue; a new object of the same name goes to the end
 * of the queue. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"

static int rename_group(struct slu_core *c, struct group *g)
{
	struct slu_buf key = SLU_BUF_INIT(700);
	char *old = g->key;

	/* A number that no other process of the daemon gives out: the store may still hold such a
	 * row of the last one. */
	slu_buf_printf(&key, "%s%c%" PRIu64, g->key, CORE_RETIRED,
		       g->job ? g->job : (uint64_t)c->now_us);
	if (key.error) {
		slu_buf_done(&key);
		return -ENOMEM;
	}
	slu_table_del(&c->groups->table, &g->e);
	g->e.n = key.n;
	g->key = slu_buf_take(&key);
	g->e.key = g->key;
	if (slu_table_add(&c->groups->table, &g->e) < 0) {
		slu_free(g->key);
		g->key = old;
		g->e.key = old;
		g->e.n = strlen(old);
		return slu_table_add(&c->groups->table, &g->e) < 0 ? -ENOMEM : -EAGAIN;
	}
	slu_free(old);
	return 0;
}

static bool has_maker(const struct group *g, const char *uid)
{
	for (uint32_t i = 0; i < g->maker.n; i++)
		if (!strcmp(g->maker.p[i], uid))
			return true;
	return false;
}

/* Copy what the new life takes over when the same objects make it. */
static void inherit(struct slu_core *c, const struct group *old, struct group *g)
{
	bool same = false;

	for (uint32_t i = 0; i < g->maker.n; i++)
		same |= has_maker(old, g->maker.p[i]) && core_owner(c, g->ns, g->maker.p[i]);
	if (!same)
		return;
	g->first_seen_us = old->first_seen_us;
	g->on_hold = old->on_hold;
	g->cancelled = old->cancelled;
	g->ended_ok = old->ended_ok;
	g->ended_bad = old->ended_bad;
	g->ended_alone = old->ended_alone;
	g->life.size = old->life.size;
	g->avoid_until_s = old->avoid_until_s;
	g->n_avoid = old->n_avoid;
	memcpy(g->avoid, old->avoid, sizeof g->avoid);
}

/* Into the group that its objects name or, with a key, into that earlier life of it. */
static void move_pod(struct slu_core *c, struct pod *p, const char *retired)
{
	struct group *g = p->group;

	for (uint32_t i = 0; i < g->pod.n; i++)
		if (g->pod.p[i] == p) {
			memmove(&g->pod.p[i], &g->pod.p[i + 1], (--g->pod.n - i) * sizeof p);
			g->stands -= p->stand != NULL;
			g->others -= p->others;
			break;
		}
	core_pod_unkeep(c, p); /* the pod is a member of another row now */
	p->group = NULL;
	p->group = retired ? core_group_join_retired(c, p, retired) : core_group_join(c, p);
	core_groups_born(c);
	core_held_link_pod(c, p);
	if (!p->group)
		slu_log(SLU_ERROR, "out of memory: pod not recorded",
			SLU_STR("pod", p->k->o.meta.name));
}

void core_group_part(struct slu_core *c, struct group *g)
{
	struct group *next = NULL;

	for (uint32_t i = g->run.n; i-- > 0;)
		if (g->run.p[i]->state == RUN_QUEUED)
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
	if (rename_group(c, g) < 0)
		return; /* the next look */
	slu_log(SLU_INFO, "group begins again", SLU_STR("job", g->id.name), SLU_STR("ns", g->ns));
	core_group_retire(g);
	g->kept_sum = 0;
	for (uint32_t i = 0; i < g->pod.n;) {
		struct pod *p = g->pod.p[i];

		if (p->leaving || core_slot_of(p)) {
			i++;
			continue;
		}
		move_pod(c, p, NULL);
		next = p->group ? p->group : next;
	}
	core_group_keep(c, g); /* under its new key: the old one is the next life's */
	core_held_unlink(g);
	if (next)
		inherit(c, g, next);
	core_group_dirty(c, g);
}

/* ---- a member that was overlooked ---- */

#define GANGS_MAX 65536u /* that are remembered */
#define ALONE_MAX 0xffffffu

static uint64_t key_hash(const struct group *g)
{
	return slu_hash_keyed(g->key, g->e.n);
}

void core_life_over(struct slu_core *c, const struct group *g)
{
	struct slu_map *m = &c->runs->lived;

	if (g->retired || !g->ended_alone)
		return;
	if (m->n >= GANGS_MAX)
		slu_map_clear(m);
	/* Without memory a member that was overlooked waits for others, as if it began a new life. */
	(void)(slu_map_put(m, key_hash(g),
			   (uint64_t)(g->newest_us / 1000000) << 24 |
				   SLU_MIN(g->ended_alone, ALONE_MAX)) < 0);
}

void core_life_begun(struct slu_core *c, struct group *g)
{
	const uint64_t *was = g->retired ? NULL : slu_map_get(&c->runs->lived, key_hash(g));

	for (uint32_t i = 0; was && i < g->pod.n; i++)
		if (g->pod.p[i]->k->o.meta.created_us / 1000000 > (int64_t)(*was >> 24))
			return;
	if (was)
		g->ended_alone = g->ended_ok = (uint32_t)(*was & ALONE_MAX);
}

/* ---- after a start ---- */

/* Whether the memory is an earlier life of that group. */
static bool is_earlier(const struct core_memory *m, const struct group *g)
{
	return m->retired && !strncmp(m->key, g->key, g->e.n) && m->key[g->e.n] == CORE_RETIRED;
}

void core_lives_recall(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->runs->known, NULL); e;
	     e = slu_table_next(&c->runs->known, e)) {
		const struct core_memory *m = memory_of(e);

		for (uint32_t i = 0; m->retired && i < m->pod.n; i++) {
			struct pod *p = pod_of(slu_table_finds(&c->cluster->pods, m->pod.p[i]));
			struct group *g = p ? p->group : NULL;

			if (!g || !is_earlier(m, g))
				continue;
			move_pod(c, p, m->key);
			core_group_dirty(c, g);
		}
	}
}
