/* Take over members that run already: after a restart, or bound by another scheduler.  Decisions from
 * before the restart that are not carried out yet go on, on the nodes they chose. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"

/* A run that is not registered yet.  A gang may have as many members as the cluster has places, so this
 * index answers questions about one member without a search among all. */
struct taking {
	struct run *r;
	struct slu_map sum;   /* node and kind: what its slots will take of it */
	struct slu_map slots; /* node (its address): how many of them are there */
	const char *places;   /* of its resumed Job, from the first node that may have one left */
};

static void taking_done(struct taking *t)
{
	slu_map_done(&t->sum);
	slu_map_done(&t->slots);
}

static uint64_t count_at(const struct slu_map *m, uint64_t key)
{
	const uint64_t *n = slu_map_get(m, key);

	return n ? *n : 0;
}

static uint64_t kind_at(slu_node node, uint32_t kind)
{
	return (uint64_t)slu_node_index(node) << 32 | kind;
}

/* 0 or -ENOMEM. */
static int add_place(struct taking *t, const struct node *n, struct slot s)
{
	struct role *role = &t->r->role.p[s.role];
	uint64_t here = count_at(&t->slots, (uintptr_t)n);

	if (slu_map_put(&t->slots, (uintptr_t)n, here + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < role->shape->n_need; i++) {
		uint64_t key = kind_at(s.node, role->shape->need[i].resource);

		if (slu_map_put(&t->sum, key,
				count_at(&t->sum, key) + (uint64_t)role->shape->need[i].n) < 0)
			return -ENOMEM;
	}
	if (core_slot_add(t->r, s) < 0)
		return -ENOMEM;
	role->min++;
	role->max++;
	return 0;
}

static int add_slot(struct taking *t, struct pod *p, const struct node *n, enum slot_state state)
{
	int role = core_run_role(t->r, p->shape);

	if (role < 0 || add_place(t, n,
				  (struct slot){ .node = n->handle,
						 .role = (uint32_t)role,
						 .pod = p,
						 .state = state }) < 0)
		return -ENOMEM;
	p->run = t->r;
	p->slot_at = t->r->slot.n - 1;
	return 0;
}

/* The node takes such pods now, whatever was decided. */
static bool may_use(struct slu_core *c, const struct node *n, const struct shape *s)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	return n && n->handle != SLU_NODE_NONE && s && !slu_machine_node_is_down(m, n->handle) &&
	       !slu_machine_node_is_cordoned(m, n->handle) && core_shape_allows(c, s, n);
}

static bool has_room(struct slu_core *c, const struct taking *t, const struct node *n,
		     const struct shape *s)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	if (!n || n->handle == SLU_NODE_NONE || !s)
		return false;
	for (uint32_t i = 0; i < s->n_need; i++) {
		uint32_t kind = s->need[i].resource;

		if (slu_machine_node_free(m, n->handle, kind) <
		    s->need[i].n + (int64_t)count_at(&t->sum, kind_at(n->handle, kind)))
			return false;
	}
	return true;
}

/* The store knows the pod as a member of a gang that had started.  It may be in another group now: its
 * owner was deleted without it while we were away. */
static bool was_placed(struct slu_core *c, const struct pod *p)
{
	const char *uid = core_pod_uid(p);

	return slu_map_get(&c->runs->placed, slu_hash_bytes(uid, strlen(uid)));
}

/* Whether the store confirms that members of the group were placed; without a store the objects alone
 * decide. */
static bool confirmed(struct slu_core *c, const struct group *g)
{
	const struct core_memory *m;

	if (!slu_intents_kept(c->door))
		return true;
	m = core_remembered(c, g);
	return m && (m->begun || m->state == SLU_STORE_STARTING || m->state == SLU_STORE_RUNNING);
}

/* An unbound pod that claims to be released takes room on a node only if Sluice released it. */
static bool is_forged(struct slu_core *c, const struct group *g, struct pod *p)
{
	if (c->recovered || *p->k->spec.node || !core_pod_at(p) || !slu_intents_kept(c->door) ||
	    was_placed(c, p) || core_meant_for(c, p))
		return false;
	core_foreign_remove(c, p);
	core_node_leave(c, p);
	p->vouched = false;
	return true;
}

void core_forged_leave(struct slu_core *c, struct group *g)
{
	for (uint32_t i = g->pod.n; i-- > 0;) {
		struct pod *p = g->pod.p[i];

		if (!is_forged(c, g, p) || p->binds || slu_held_gated(&p->k->spec))
			continue;
		p->managed = false;
		core_group_leave(c, p, false);
	}
}

const char *core_held_places(struct slu_core *c, const struct group *g)
{
	const char *list = NULL;

	if (c->recovered || !confirmed(c, g))
		return NULL;
	for (uint32_t i = 0; i < g->owned.n && !list; i++)
		list = slu_kmeta_annotation(&g->owned.p[i]->obj->meta, SLU_HELD_PLACES);
	return list && *list ? list : NULL;
}

/* A node where a resumed Job had a place that the run does not hold; NULL: none. */
static struct node *next_place(struct slu_core *c, struct taking *t)
{
	while (t->places && *t->places) {
		size_t n = strcspn(t->places, ",*");
		long count = t->places[n] == '*' ? strtol(t->places + n + 1, NULL, 10) : 1;
		char name[256];
		struct node *at = NULL;

		if (n && n < sizeof name) {
			memcpy(name, t->places, n);
			name[n] = 0;
			at = core_node(c, name);
		}
		if (at && (int64_t)count_at(&t->slots, (uintptr_t)at) < count)
			return at;
		t->places += strcspn(t->places, ",");
		t->places += *t->places == ',';
	}
	return NULL;
}

/* A member of a gang that was being placed when we stopped: to the node it was meant for, if there
 * still is room. */
static void complete_run(struct slu_core *c, struct group *g, struct taking *t, struct pod *p)
{
	const char *name;
	struct node *n;

	if (p->run || !core_pod_startable(p))
		return;
	name = core_recall_node(c, g, p);
	n = name ? core_node(c, name) : NULL;
	if (!name && !p->stand)
		n = next_place(c, t);
	/* The patch that resumes a Job may be on its way, so its decision stands although a node is closed now:
	 * when the pods are there, they are planned again as they were before the restart. */
	if ((p->stand || may_use(c, n, p->shape)) && has_room(c, t, n, p->shape) &&
	    !core_pod_clashes(c, n, p) && add_slot(t, p, n, SLOT_CHOSEN) == 0)
		core_node_enter(c, n, p);
}

#define EXPECT_US \
	10000000 /* a binding that a process sent before it ended shows within that time */

static void expects(struct slu_core *c, struct run *r)
{
	r->expect_us = c->now_us + EXPECT_US;
	core_due_by(c, CORE_AT_UNDO, r->expect_us);
}

/* A member of an intent that cannot be carried out again, or of a gang that is being taken back: its binding
 * may be on its way all the same, so its place is kept for a while, whatever became of the node. */
static void expect(struct slu_core *c, struct group *g, struct taking *t, struct pod *p,
		   bool evicted)
{
	const struct core_meant *m = p->run || p->stand || core_pod_at(p) ? NULL
									  : core_meant_for(c, p);
	struct node *n = m && m->evicted == evicted ? core_node(c, m->node) : NULL;

	if (!n || !p->shape || slu_kpod_ended(p->k))
		return;
	if (!t->r)
		t->r = core_run_new(c, g, true);
	if (!t->r || add_slot(t, p, n, SLOT_BINDING) < 0)
		return;
	core_node_enter(c, n, p);
	expects(c, t->r);
}

/* The intent cannot be carried out as a whole any more; nothing of it is written again. */
static void expect_all(struct slu_core *c, struct group *g, struct taking *t)
{
	struct run *r = t->r;

	for (uint32_t i = 0; r && i < r->slot.n; i++)
		if (r->slot.p[i].state == SLOT_CHOSEN) {
			core_slot_to(c, r, &r->slot.p[i], SLOT_BINDING);
			expects(c, r);
		}
	for (uint32_t i = 0; i < g->pod.n; i++)
		expect(c, g, t, g->pod.p[i], false);
}

/* A member that came after its gang is a run of its own, as before. */
static bool adopt_later(struct slu_core *c, struct group *g, struct pod *p)
{
	int64_t start_s = p->run ? 0 : core_recall_later(c, g, p);
	const char *name = core_pod_at(p) ? NULL : core_recall_node(c, g, p);
	struct node *n = core_pod_at(p) ? p->node : name ? core_node(c, name) : NULL;
	struct taking t = { 0 };
	bool bound = core_pod_at(p), again;
	struct run *r;

	if (!start_s || !n || !p->shape)
		return false;
	r = t.r = core_run_new(c, g, false);
	if (!r)
		return false;
	if (bound)
		core_foreign_remove(c, p);
	again = core_pod_startable(p) && may_use(c, n, p->shape) && has_room(c, &t, n, p->shape) &&
		!core_pod_clashes(c, n, p);
	if (add_slot(&t, p, n, bound ? SLOT_BOUND : again ? SLOT_CHOSEN : SLOT_BINDING) == 0)
		core_run_register(c, r, SLU_MIN(start_s, c->now_s));
	taking_done(&t);
	if (r->state != RUN_RUNNING) {
		core_run_over(c, r);
		if (bound)
			core_foreign_add(c, p);
		return false;
	}
	if (!bound) {
		core_node_enter(c, n, p);
		core_run_to(c, r, RUN_PLACING);
		if (!again)
			expects(c, r);
		core_run_intend(c, r);
	}
	return true;
}

/* The places that members left which came after their gang, each a run of its own, as before.  Returns how
 * many there are. */
static uint32_t keep_vacant_later(struct slu_core *c, struct group *g, struct shape *shape)
{
	const struct core_later *l;
	uint32_t kept = 0;

	for (uint32_t i = 0; shape && (l = core_recall_vacant_later(c, g, i)); i++) {
		const struct node *n = core_node(c, l->name);
		struct taking t = { 0 };
		int role;

		if (!n || n->handle == SLU_NODE_NONE)
			continue;
		t.r = core_run_new(c, g, false);
		if (!t.r)
			break;
		role = core_run_role(t.r, shape);
		if (role >= 0 && add_place(&t, n,
					   (struct slot){ .node = n->handle,
							  .role = (uint32_t)role,
							  .vacant_us = c->now_us }) == 0)
			core_run_register(c, t.r, SLU_MIN(l->start_s, c->now_s));
		taking_done(&t);
		if (t.r->state != RUN_RUNNING) {
			core_run_over(c, t.r);
			continue;
		}
		core_due_by(c, CORE_AT_VACANCY, c->now_us);
		kept++;
	}
	return kept;
}

/* The places of a resumed Job whose pods have not been seen yet. */
static void complete_vacant(struct slu_core *c, struct group *g, struct taking *t)
{
	const struct run *r = t->r;
	int64_t wanted = core_group_wanted(c, g);
	struct node *n;

	while (r->slot.n && (int64_t)r->slot.n < wanted && (n = next_place(c, t))) {
		uint32_t role = r->slot.p[0].role;

		if (!may_use(c, n, r->role.p[role].shape) ||
		    !has_room(c, t, n, r->role.p[role].shape) ||
		    add_place(t, n, (struct slot){ .node = n->handle, .role = role }) < 0)
			return;
	}
}

/* Places that were kept for members to come: a set that makes its pods one by one, a next wave.  They
 * are kept on, whatever happened on their nodes meanwhile: a member that cannot use its place gets
 * another. */
static void keep_vacant(struct slu_core *c, struct group *g, struct taking *t, int64_t later)
{
	const struct run *r = t->r;
	int64_t wanted = core_group_wanted(c, g) - later;
	const char *name;

	for (uint32_t i = 0;
	     r->role.n && (int64_t)r->slot.n < wanted && (name = core_recall_vacant(c, g, i));
	     i++) {
		struct node *n = core_node(c, name);
		struct slot s = { .role = r->slot.n ? r->slot.p[0].role : 0,
				  .vacant_us = c->now_us };

		if (!n || n->handle == SLU_NODE_NONE)
			continue;
		s.node = n->handle;
		if (add_place(t, n, s) < 0)
			return;
		core_due_by(c, CORE_AT_VACANCY, c->now_us);
	}
}

/* Members that wait although the gang was decided before we stopped; 0: it was not. */
static uint32_t decided_before(struct slu_core *c, const struct group *g)
{
	uint32_t n = 0;

	if (!core_held_places(c, g))
		return core_recall_open(c, g);
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_startable(g->pod.p[i]))
			n += 1 + g->pod.p[i]->others;
	return n;
}

/* The run is in the books: go on with its intent. */
static void adopted(struct slu_core *c, struct run *r)
{
	const struct core_memory *m = core_remembered(c, r->g);
	bool chosen = r->n_slot[SLOT_CHOSEN] || r->n_slot[SLOT_BINDING];
	bool bound = r->n_slot[SLOT_BOUND];

	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].pod && core_recall_evict(c, r->slot.p[i].pod)) {
			core_run_undo_on(c, r);
			return;
		}
	/* A gang is carried out whole or not at all: if the rest cannot be bound, the bound pods
	 * are evicted. */
	if ((chosen || r->appears) && (m || !bound) &&
	    (!r->g->begun || (m && m->state == SLU_STORE_STARTING)))
		core_run_to(c, r, RUN_PLACING);
	else
		r->g->begun |= bound;
	if (core_run_keep(c, r, chosen ? SLU_STORE_STARTING : SLU_STORE_RUNNING) < 0)
		slu_log(SLU_WARN, "job not saved in the store", SLU_STR("job", r->g->id.name));
	core_run_intend(c, r);
}

/* The run cannot be taken over after all: drop it. */
static void disown(struct slu_core *c, struct group *g, struct run *r)
{
	while (r->slot.n) {
		struct pod *p = r->slot.p[--r->slot.n].pod;

		if (!p)
			continue;
		p->run = NULL;
		if (core_pod_at(p))
			core_foreign_add(c, p);
		else
			core_node_leave(c, p);
	}
	g->reuse = r->id; /* the same job, in the store too */
	core_run_over(c, r);
}

/* The first members have ended: the members that came later are the gang now. */
static void only_later(struct slu_core *c, struct group *g, bool begun)
{
	g->begun = begun;
	g->job = g->reuse;
	g->started_s = core_recall_start(c, g, c->now_s);
	g->reuse = 0;
}

static void adopt_run(struct slu_core *c, struct group *g, struct taking *t)
{
	struct run *r = NULL;
	int64_t start_us = c->now_us;
	struct shape *shape = NULL;
	uint32_t later = 0;
	bool bound, begun;

	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];

		if (!is_forged(c, g, p) && adopt_later(c, g, p)) {
			later++;
			shape = p->shape;
			continue;
		}
		/* Its node may be gone, and come back: it is a member all the same. */
		if (is_forged(c, g, p) || !core_pod_at(p) || !p->node || !p->shape)
			continue;
		if (!r)
			r = t->r = core_run_new(c, g, true);
		core_foreign_remove(c, p); /* counted as foreign work until the group was known */
		if (!r || add_slot(t, p, p->node, SLOT_BOUND) < 0) {
			core_foreign_add(c, p);
			continue;
		}
		if (p->k->start_us)
			start_us = SLU_MIN(start_us, p->k->start_us);
	}
	for (uint32_t i = 0; !c->recovered && i < g->pod.n; i++) {
		expect(c, g, t, g->pod.p[i], true);
		shape = shape ? shape : g->pod.p[i]->shape;
	}
	later += keep_vacant_later(c, g, shape);
	r = t->r;
	/* A binding we sent before we stopped may still arrive: an open intent is carried out again
	 * rather than planned again, so that it can only go where it was meant to. */
	bound = r;
	begun = g->begun || core_recall_begun(c, g);
	if (later && !r && core_recall_vacant(c, g, 0)) { /* of those there are only places left */
		r = t->r = core_run_new(c, g, true);
		bound = r && core_run_role(r, shape) >= 0;
	} else if (later && !r && !decided_before(c, g)) {
		only_later(c, g, begun);
		return;
	}
	if (!r && decided_before(c, g))
		r = t->r = core_run_new(c, g, true);
	t->places = core_held_places(c, g);
	for (uint32_t i = 0; r && i < g->pod.n; i++)
		complete_run(c, g, t, g->pod.p[i]);
	if (!g->owned.n && !c->recovered) {
		if (!bound && !begun && (!r || r->slot.n < decided_before(c, g)))
			expect_all(c, g, t);
		for (uint32_t i = 0; (bound || begun) && i < g->pod.n; i++)
			expect(c, g, t, g->pod.p[i], false);
		r = t->r;
	}
	if (r && !bound &&
	    (!r->slot.n || (!begun && !r->expect_us && r->slot.n < decided_before(c, g)))) {
		g->begun = begun;
		disown(c, g, r); /* no longer as a whole */
		if (later)
			only_later(c, g, begun);
		return;
	}
	if (!r) {
		g->begun = begun;
		return;
	}
	complete_vacant(c, g, t);
	r->appears |= !bound && r->n_slot[SLOT_VACANT];
	r->appear_us = c->now_us;
	keep_vacant(c, g, t, later);
	/* What may not have been written yet is not written before the successor of a deleted member
	 * is there, too. */
	r->appears |= !bound && !begun && !g->wish.one_by_one && r->n_slot[SLOT_VACANT];
	if (!r->slot.n) { /* nor places */
		disown(c, g, r);
		only_later(c, g, begun);
		return;
	}
	core_run_register(c, r, core_recall_start(c, g, start_us / 1000000));
	if (r->state == RUN_RUNNING) {
		adopted(c, r);
		return;
	}
	disown(c, g, r);
}

void core_adopt(struct slu_core *c, struct group *g)
{
	struct taking t = { 0 };

	if (g->run.n)
		return;
	core_recall_lots(c, g);
	adopt_run(c, g, &t);
	taking_done(&t);
}
