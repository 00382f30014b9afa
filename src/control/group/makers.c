/* The objects behind a group: which of them make its members, which members are leaving, and the answer
 * of life.h for them. */
#include "control/group/held.h"

#include "control/cluster/cluster.h"

#define CALM_JOIN_US  500000  /* after an object joined a group without a named size */
#define CALM_LEAVE_US 2000000 /* after one left: the others may follow it */
#define CALM_AGE_US   1500000 /* objects made together with an older one have appeared by now */
#define CALM_LED_US   2000000 /* a leader's workers are made at once, or only when it runs */
#define MAKERS_MAX    1024u   /* beyond this number, all further objects count as one */

/* The uid of the object that makes the pod, NULL: no object does; *obj: as the mirror has it. */
static const char *maker_of(struct slu_core *c, const struct pod *p, const struct slu_kobj **obj)
{
	const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta), *above;

	*obj = NULL;
	if (!o || !(p->stand || slu_kind_owns(o)))
		return NULL;
	*obj = core_owner(c, p->k->o.meta.ns, o->uid);
	above = *obj && (*obj)->kind == SLU_KIND_REPLICASET ? slu_kmeta_controller(&(*obj)->meta)
							    : NULL;
	if (!above || !slu_kind_owns(above))
		return o->uid;
	*obj = core_owner(c, p->k->o.meta.ns, above->uid);
	return above->uid;
}

static uint32_t find_maker(const struct group *g, const char *uid, uint32_t guess)
{
	if (guess < g->maker.n && !strcmp(g->maker.p[guess], uid))
		return guess;
	for (uint32_t i = 0; i < g->maker.n; i++)
		if (!strcmp(g->maker.p[i], uid))
			return i;
	return SLU_LIFE_ALONE;
}

static void calm(struct slu_core *c, struct group *g, int64_t until_us)
{
	if (!g->id.explicit || until_us <= c->now_us)
		return;
	g->calm_us = SLU_MAX(g->calm_us, until_us);
}

int core_maker_join(struct slu_core *c, struct group *g, const struct pod *p)
{
	const struct slu_kobj *obj;
	const char *uid = maker_of(c, p, &obj);
	char *own;

	if (!uid || g->maker.n >= MAKERS_MAX ||
	    find_maker(g, uid, g->maker.n - 1) !=
		    SLU_LIFE_ALONE) /* many such objects may come one after the other */
		return 0;
	own = slu_strdup(uid);
	if (!own || slu_vec_push(&g->maker, own) < 0) {
		slu_free(own);
		return -ENOMEM;
	}
	if (obj)
		calm(c, g, SLU_MIN(c->now_us + CALM_JOIN_US, obj->meta.created_us + CALM_AGE_US));
	return 0;
}

static bool is_held(struct slu_core *c, const struct group *g, const char *uid)
{
	const struct held *h = core_held_find(c, g->ns, uid);

	return h && h->group == g && h->obj->kind == SLU_KIND_JOB &&
	       (h->turn != TURN_NONE || h->early == EARLY_GOING ||
		slu_held_waits(c->cfg, slu_kjob(h->obj)));
}

/* Fill the scratch list with the makers of the group; false: no memory. */
static bool list_makers(struct slu_core *c, const struct group *g)
{
	struct groups *s = c->groups;

	s->makers.n = 0;
	if (slu_vec_reserve(&s->makers, g->maker.n) < 0)
		return false;
	for (uint32_t i = 0; i < g->maker.n; i++)
		s->makers.p[s->makers.n++] =
			(struct slu_life_maker){ .obj = core_owner(c, g->ns, g->maker.p[i]),
						 .held = is_held(c, g, g->maker.p[i]) };
	return true;
}

static struct slu_life_objects objects_of(struct slu_core *c, const struct group *g)
{
	const struct groups *s = c->groups;

	return (struct slu_life_objects){ .maker = s->makers.p,
					  .n_makers = s->makers.n,
					  .member = s->members.p,
					  .n_members = s->members.n,
					  .named = g->named,
					  .one_object = !g->id.explicit,
					  .led = g->id.led,
					  .led_index = g->id.led_index,
					  .lacks_podgroup = g->id.podgroup && !core_podgroup(c, g),
					  .row = { .size = g->life.size,
						   .finished = g->ended_ok - g->ended_alone,
						   .alone = g->ended_alone } };
}

/* Drop makers that are gone with all their members. */
static void forget_gone(struct group *g, const struct slu_life_objects *o)
{
	bool used[MAKERS_MAX] = { false };
	uint32_t kept = 0;

	if (g->run.n)
		return;
	for (uint32_t k = 0; k < o->n_members; k++)
		if (o->member[k].maker < g->maker.n)
			used[o->member[k].maker] = true;
	for (uint32_t i = 0; i < g->maker.n; i++) {
		if (o->maker[i].obj || used[i])
			g->maker.p[kept++] = g->maker.p[i];
		else
			slu_free(g->maker.p[i]);
	}
	g->maker.n = kept;
}

/* Pods of a ReplicaSet that a roll-out replaces: the newer ones start first. */
static void mark_stale(struct slu_core *c, struct group *g)
{
	int64_t newest = 0;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < g->pod.n; i++) {
			const struct slu_kowner *o = slu_kmeta_controller(&g->pod.p[i]->k->o.meta);
			const struct slu_kobj *rs = o ? core_owner(c, g->ns, o->uid) : NULL;
			const char *text = NULL;
			int64_t revision;

			if (!rs || rs->kind != SLU_KIND_REPLICASET)
				return;
			text = slu_kmeta_annotation(&rs->meta, "deployment.kubernetes.io/revision");
			revision = text ? strtoll(text, NULL, 10) : 0;
			if (!pass)
				newest = SLU_MAX(newest, revision);
			else
				g->pod.p[i]->stale = revision < newest;
		}
}

bool core_life_look(struct slu_core *c, struct group *g)
{
	struct groups *s = c->groups;
	struct slu_life_objects o;
	uint32_t stay = 0;

	s->members.n = 0;
	if (slu_vec_reserve(&s->members, g->pod.n) < 0)
		return false;
	for (uint32_t i = 0; i < g->pod.n; i++) {
		const struct slu_kobj *obj;
		struct pod *p = g->pod.p[i];
		const char *uid = maker_of(c, p, &obj);
		bool beyond = p->maker_at == SLU_LIFE_ALONE && g->maker.n >= MAKERS_MAX;
		uint32_t at = uid && !beyond ? find_maker(g, uid, p->maker_at) : SLU_LIFE_ALONE;

		/* When a Deployment is deleted its ReplicaSet goes too: the pod names a ReplicaSet
		 * that the mirror lacks, and still does not count as a pod without a maker. */
		if (uid && !beyond && at == SLU_LIFE_ALONE && core_maker_join(c, g, p) == 0)
			at = find_maker(g, uid, g->maker.n - 1);
		p->maker_at = at;
		s->members.p[s->members.n++] = (struct slu_life_member){
			.pod = p->k, .maker = at, .placed = core_pod_at(p), .others = p->others
		};
	}
	if (!list_makers(c, g))
		return false;
	o = objects_of(c, g);
	for (uint32_t i = 0; i < g->pod.n; i++)
		g->pod.p[i]->leaving = slu_life_leaves(&o, &o.member[i]);
	for (uint32_t i = 0; i < o.n_makers; i++)
		stay += o.maker[i].obj && !o.maker[i].obj->meta.deleted_us;
	if (stay < g->staying)
		calm(c, g, c->now_us + CALM_LEAVE_US);
	g->staying = stay;
	mark_stale(c, g);
	slu_life(&o, &g->life);
	forget_gone(g, &o);
	return true;
}

void core_life_size(struct slu_core *c, struct group *g, uint32_t named)
{
	struct slu_life_objects o;

	g->named = named;
	o = objects_of(c, g);
	slu_life(&o, &g->life);
	g->life.size = SLU_MIN(g->life.size, c->cfg->jobs.max_size + 1);
	g->life.asks = SLU_MIN(g->life.asks, g->life.size);
	g->wish.min = g->life.size;
	g->wish.max = SLU_MAX(g->wish.max, g->wish.min);
}

int64_t core_group_wanted(struct slu_core *c, const struct group *g)
{
	struct slu_life_objects o;
	struct slu_life l;

	c->groups->members.n = 0;
	if (g->retired || !list_makers(c, g))
		return 0;
	o = objects_of(c, g);
	slu_life(&o, &l);
	return l.wants;
}

bool core_group_ordered(struct slu_core *c, const struct group *g)
{
	for (uint32_t i = 0; i < g->maker.n; i++) {
		const struct slu_kobj *o = core_owner(c, g->ns, g->maker.p[i]);

		if (o && o->kind == SLU_KIND_STATEFULSET)
			return true;
	}
	return false;
}

bool core_led_alone(struct slu_core *c, struct group *g)
{
	const struct slu_kpod *leader = core_members(g) == 1 ? g->pod.p[0]->k : NULL;
	int64_t from_us = g->first_seen_us;

	if (!leader || !slu_group_leads(&g->id, leader))
		return false;
	if (leader->o.meta.created_us <= c->now_us) /* another leader; clocks differ */
		from_us = SLU_MAX(from_us, leader->o.meta.created_us);
	calm(c, g, from_us + CALM_LED_US);
	return true;
}

/* ---- a pause until a group of unknown size has all its objects ---- */

bool core_calm_waits(struct slu_core *c, struct group *g)
{
	bool open = g->id.led ? g->wish.one_by_one : !g->named;

	if (!open || c->now_us >= g->calm_us)
		return false;
	if (!g->calms && slu_vec_push(&c->groups->calm, g) == 0)
		g->calms = true;
	return g->calms;
}

void core_calm_forget(struct slu_core *c, struct group *g)
{
	for (uint32_t i = 0; g->calms && i < c->groups->calm.n; i++)
		if (c->groups->calm.p[i] == g)
			c->groups->calm.p[i--] = c->groups->calm.p[--c->groups->calm.n];
	g->calms = false;
}

void core_calm_wake(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->groups->calm.n; i++) {
		struct group *g = c->groups->calm.p[i];

		if (c->now_us < g->calm_us)
			continue;
		g->calms = false;
		c->groups->calm.p[i--] = c->groups->calm.p[--c->groups->calm.n];
		core_group_dirty(c, g);
	}
}

int64_t core_calm_wake_us(const struct slu_core *c)
{
	int64_t at = INT64_MAX;

	for (uint32_t i = 0; i < c->groups->calm.n; i++)
		at = SLU_MIN(at, c->groups->calm.p[i]->calm_us);
	return at;
}
