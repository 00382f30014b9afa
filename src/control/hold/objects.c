/* The table of held objects, the stand-ins of suspended Jobs, and holding objects that the webhook missed.
 *
 * A suspended Job has no pods to plan with.  So its group gets stand-ins, pods as the template of the Job
 * would make them: gathering, shapes and queue need not know the difference.  Once the stand-ins have places,
 * the core resumes the Job and removes them, and their slots wait for the real pods,
 * which appear with our gate and can start nowhere else. */
#include "control/hold/hold.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

/* ---- stand-ins ---- */

/* A Job of one line may ask for 100 000 pods, and any user may make many.  So a namespace has at most
 * SPACE_MAX stand-ins and all namespaces together ALL_MAX; but each namespace gets its first SPACE_FREE
 * whatever others do, and one that has none yet gets one Job of any legal size.  Other Jobs wait for
 * room. */
#define SPACE_FREE 1000u
#define SPACE_MAX  50000u
#define ALL_MAX    400000u
#define EACH_US    200     /* time that one stand-in costs its namespace (frame/pace.h) */
#define LATER_US   1000000 /* when a Job that came too fast is tried again */

/* A patch that is to hold an object may be lost or refused.  It is sent again while the object stays as it is, first
 * after ASK_US, then after twice as long each time, up to MAX_DOUBLED times. */
#define ASK_US      5000000
#define MAX_DOUBLED 6u

static uint64_t stands_of(const struct slu_core *c, const struct held *h)
{
	const uint64_t *n = slu_map_get(&c->holds->stands, (uintptr_t)h->obj->meta.ns);

	return n ? *n : 0;
}

static bool is_crowded(const struct slu_core *c, const struct held *h, int64_t more)
{
	uint64_t here = stands_of(c, h), n = (uint64_t)SLU_MAX(more, 0);

	if (!core_pace_allows(&c->holds->pace, h->obj->meta.ns, more, c->now_us))
		return true;
	if (!n || here + n <= SPACE_FREE)
		return false;
	return (here && here + n > SPACE_MAX) || c->holds->n_stands + n > ALL_MAX;
}

/* 0 or -ENOMEM. */
static int count_stands(struct slu_core *c, struct held *h, int64_t by)
{
	uint64_t key = (uintptr_t)h->obj->meta.ns, n = stands_of(c, h) + (uint64_t)by;

	if (n && slu_map_put(&c->holds->stands, key, n) < 0)
		return -ENOMEM;
	if (!n)
		slu_map_del(&c->holds->stands, key);
	c->holds->n_stands += (uint64_t)by;
	h->stands += (uint32_t)by;
	return 0;
}

static void stand_free(struct slu_core *c, struct pod *p)
{
	core_shape_put(c, p->shape);
	core_repels_put(c, &p->carries);
	slu_kobj_unref(&p->k->o);
	slu_free(p->stand_key);
	slu_free(p);
}

/* The pod leaves its group; a slot it has is kept for the pod it stood for. */
static void stand_down(struct slu_core *c, struct pod *p, bool keep_slot)
{
	struct slot *s = keep_slot ? core_slot_of(p) : NULL;
	struct group *g = p->group;

	if (s) {
		s->pod = NULL;
		core_slot_to(c, p->run, s, SLOT_VACANT);
		/* Vacancies are counted from here on and end after jobs.holdVacant. */
		s->vacant_us = c->now_us +
			       (c->cfg->held.appear_s - c->cfg->jobs.hold_vacant_s) * 1000000;
		core_due_by(c, CORE_AT_VACANCY, c->now_us + c->cfg->held.appear_s * 1000000);
		p->run = NULL;
		core_node_leave(c, p);
	}
	if (g)
		core_group_leave(c, p, false);
	core_node_leave(c, p);
	(void)count_stands(c, p->stand, -1 - (int64_t)p->others); /* lowering takes no memory */
	stand_free(c, p);
}

void core_held_leave(struct slu_core *c, struct held *h)
{
	while (h->stand.n)
		stand_down(c, h->stand.p[--h->stand.n], true);
}

/* New stand-in for n pods. */
static struct pod *stand_new(struct slu_core *c, struct held *h, const struct slu_kobj *k,
			     uint32_t n)
{
	struct pod *p = slu_calloc(1, sizeof *p);
	char key[CORE_STAND_KEY];

	if (!p)
		return NULL;
	core_stand_key(key, sizeof key, h->obj->meta.uid, h->stand.n);
	p->stand_key = slu_strdup(key);
	p->k = slu_kpod(slu_kobj_ref(k));
	p->stand = h;
	p->others = n - 1;
	p->managed = true;
	p->binds = core_binds(c, p->k);
	p->serial = ++c->serial;
	if (!p->stand_key || slu_vec_push(&h->stand, p) < 0) {
		stand_free(c, p);
		return NULL;
	}
	if (count_stands(c, h, n) < 0) {
		h->stand.n--;
		stand_free(c, p);
		return NULL;
	}
	p->group = core_group_join(c, p);
	if (!p->group) {
		h->stand.n--;
		(void)count_stands(c, h, -(int64_t)n);
		stand_free(c, p);
		return NULL;
	}
	core_pod_carries(c, p);
	core_held_link(h, p->group);
	return p;
}

/* A Job that was suspended again still has pods on their way out. */
static bool has_pods(const struct held *h)
{
	if (!h->group || h->group->pod.n == h->group->stands)
		return false; /* also with a thousand Jobs in one group */
	for (uint32_t i = 0; i < h->group->pod.n; i++) {
		const struct pod *p = h->group->pod.p[i];
		const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

		if (!p->stand && o && !strcmp(o->uid, h->obj->meta.uid))
			return true;
	}
	return false;
}

/* The lot at the end of the stand-ins, if there is one to add to: none of it has a place. */
static struct pod *open_lot(const struct held *h)
{
	struct pod *p = h->stand.n ? h->stand.p[h->stand.n - 1] : NULL;

	return p && (!p->run || p->run->state == RUN_QUEUED) ? p : NULL;
}

static void add_stands(struct slu_core *c, struct held *h, const struct slu_kobj *k, uint32_t n)
{
	struct pod *lot = open_lot(h);

	if (!lot)
		(void)stand_new(c, h, k, n); /* no memory: core/again.c looks at the Job again */
	else if (count_stands(c, h, n) == 0)
		core_lot_resize(c, lot, lot->others + n);
}

static void drop_stands(struct slu_core *c, struct held *h, uint32_t n, bool keep)
{
	while (n && h->stand.n) {
		struct pod *p = h->stand.p[h->stand.n - 1];
		uint32_t here = SLU_MIN(n, p->others);

		if (here) {
			(void)count_stands(c, h, -(int64_t)here);
			core_lot_resize(c, p, p->others - here);
			n -= here;
			continue;
		}
		h->stand.n--;
		stand_down(c, p, keep);
		n--;
	}
}

/* As many stand-ins as the Job would make pods at once; the pods of a Job that was resumed ahead
 * take their places one by one. */
static void stand_in(struct slu_core *c, struct held *h)
{
	const struct slu_kjob *j = slu_kjob(h->obj);
	bool ahead = core_ahead_is(c, h), keep;
	bool wait = (slu_held_waits(c->cfg, j) || ahead) && h->turn == TURN_NONE &&
		    slu_held_free(&j->tmpl.spec);
	int64_t want = wait ? slu_life_makes(h->obj) : 0;
	slu_cleanup(slu_kobj_unrefp) const struct slu_kobj *k = NULL;

	if (want > (int64_t)c->cfg->jobs.max_size)
		want = 1; /* its group is refused by its size, however many stand */
	want -= SLU_MIN(want, ahead ? (int64_t)core_ahead_pods(h) : 0);
	keep = wait ? ahead : !j->suspend;
	if (h->new_template && !ahead)
		drop_stands(c, h, h->stands, keep);
	else if (h->stands > want)
		drop_stands(c, h, h->stands - (uint32_t)want, keep);
	h->crowded = is_crowded(c, h, want - (int64_t)h->stands);
	if (ahead ||
	    (!h->crowded && h->stands < want)) /* one that is ahead may have to come back */
		core_due_by(c, CORE_AT_AHEAD, c->now_us);
	if (h->crowded)
		core_due_by(c, CORE_AT_HELD, c->now_us + LATER_US);
	if (h->crowded || h->stands >= want)
		return;
	core_pace_pay(&c->holds->pace, h->obj->meta.ns, want - (int64_t)h->stands, EACH_US,
		      c->now_us);
	k = core_admitted(c, h->obj, &j->tmpl);
	if (k)
		add_stands(c, h, k, (uint32_t)want - h->stands);
}

/* ---- which objects ---- */

static enum slu_held_mode space_mode(struct slu_core *c, const char *ns)
{
	const struct slu_kobj *o = core_lookup(c, SLU_KIND_NAMESPACE, "", ns);

	return o ? slu_held_space(c->cfg, &o->meta) : SLU_HELD_OFF;
}

static struct held *held_new(struct slu_core *c, const struct slu_kobj *obj)
{
	struct held *h = slu_calloc(1, sizeof *h);

	if (!h)
		return NULL;
	h->obj = slu_kobj_ref(obj);
	h->e.key = obj->meta.uid;
	h->e.n = strlen(obj->meta.uid);
	h->serial = ++c->serial;
	h->told_state = -1;
	h->asked_generation = -1;
	h->ask_us = CORE_NEVER;
	core_due_begin(c, CORE_AT_HELD);
	if (slu_table_add(&c->groups->held, &h->e) < 0) {
		slu_kobj_unref(h->obj);
		slu_free(h);
		return NULL;
	}
	return h;
}

static void held_free(struct slu_core *c, struct held *h, bool say)
{
	while (h->stand.n)
		stand_down(c, h->stand.p[--h->stand.n], false);
	core_held_part(h);
	for (uint32_t i = 0; h->listed && i < c->groups->look.n; i++)
		if (c->groups->look.p[i] == h)
			c->groups->look.p[i] = NULL;
	if (say && h->told_state >= 0 && c->holds->sink.gone)
		c->holds->sink.gone(c->holds->sink.arg, h->obj);
	slu_table_del(&c->groups->held, &h->e);
	slu_kobj_unref(h->obj);
	slu_vec_done(&h->stand);
	slu_free(h->resume);
	slu_vec_done(&h->place);
	slu_free(h);
}

static void renew(struct held *h, const struct slu_kobj *obj)
{
	slu_kobj_ref(obj);
	slu_kobj_unref(h->obj);
	h->obj = obj;
	h->e.key = obj->meta.uid; /* pooled: equal, but held by the new version */
}

/* The mirror shows the last write to the Job. */
static void job_seen(struct slu_core *c, struct held *h)
{
	const struct slu_kjob *j = slu_kjob(h->obj);
	bool waits = slu_held_waits(c->cfg, j);
	struct run *r;

	if (h->early == (waits ? EARLY_COMING_BACK : EARLY_GOING))
		core_held_early_to(c, h, EARLY_NONE);
	/* A Job that had all its pods when its turn came was not suspended.  If it is suspended
	 * now, a late write of ours or another program's write has done that since. */
	if (waits ? h->turn != TURN_TAKEN_BACK && (!core_held_notes(h) || h->early == EARLY_GOING)
		  : slu_held_ahead(c->cfg, j))
		return;
	if (h->early == EARLY_COMING_BACK)
		core_held_early_to(c, h, EARLY_NONE);
	if (h->turn == TURN_NONE)
		return;
	core_held_turn_to(c, h, TURN_NONE);
	r = run_of(slu_table_find(&c->runs->table, &h->run, sizeof h->run));
	if (r)
		core_run_settled(c, r);
}

void core_held_owner(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct held *h = core_held_find(c, obj->meta.ns, obj->meta.uid);
	const struct slu_ktemplate *t = slu_held_template(obj);
	bool ours = !gone && !slu_kind_owns(slu_kmeta_controller(&obj->meta)) &&
		    (slu_held_marked(c->cfg, obj, &t->spec) ||
		     space_mode(c, obj->meta.ns) != SLU_HELD_OFF);
	bool changed;

	if (!ours) {
		if (h)
			held_free(c, h, true);
		return;
	}
	if (!h) {
		char key[SLU_GROUP_NAME_MAX + 3];

		h = held_new(c, obj);
		if (!h) {
			slu_log(SLU_ERROR, "out of memory: held object not recorded",
				SLU_STR("name", obj->meta.name));
			return;
		}
		/* Pods that were listed before their owner. */
		snprintf(key, sizeof key, "u:%.250s", obj->meta.uid);
		core_held_link(h, core_group_find(c, obj->meta.ns, key));
	}
	changed = h->obj->meta.generation != obj->meta.generation;
	renew(h, obj);
	if (obj->kind == SLU_KIND_JOB) {
		job_seen(c, h);
		h->new_template |= changed;
		if (h->group)
			core_group_dirty(c, h->group);
	}
	core_held_again(c, h);
}

void core_held_space(struct slu_core *c, const struct slu_kobj *ns)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->owners, NULL); e;
	     e = slu_table_next(&c->cluster->owners, e)) {
		const struct slu_kobj *o = slu_entry_of(e, struct lookup, e)->obj;

		if (!ns || !strcmp(o->meta.ns, ns->meta.name))
			core_held_owner(c, o, false);
	}
}

void core_held_templates(struct slu_core *c, const char *ns)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL); e;
	     e = slu_table_next(&c->groups->held, e)) {
		struct held *h = held_of(e);

		if (h->stand.n && (!ns || !strcmp(h->obj->meta.ns, ns))) {
			h->new_template = true;
			core_held_again(c, h);
		}
	}
}

/* A pod that no object of a known kind made is a held object by itself; any other belongs to the
 * outermost one above it. */
void core_held_pod(struct slu_core *c, struct pod *p, bool gone)
{
	const struct slu_kmeta *m = &p->k->o.meta;
	const struct slu_kowner *o = slu_kmeta_controller(m);
	bool held = slu_held_marked(c->cfg, &p->k->o, &p->k->spec) || slu_held_node(p->k);
	struct slu_group_source src;
	struct held *h;

	if (!slu_kind_owns(o)) {
		h = core_held_find(c, m->ns, m->uid);
		if (gone || (!h && !held)) {
			if (h)
				held_free(c, h, true);
			return;
		}
		if (h)
			renew(h, &p->k->o);
		else
			h = held_new(c, &p->k->o);
		if (h && p->group)
			core_held_link(h, p->group);
		return;
	}
	h = core_held_find(c, m->ns, o->uid);
	if (h && core_ahead_is(c, h))
		core_held_again(c, h); /* the object may need no stand-ins, or no longer any */
	/* Of a Job that was resumed ahead also a pod that has started: it needs no stand-in. */
	if (gone || !p->group || !(held || p->binds || (h && core_ahead_is(c, h))))
		return;
	core_source(c, p->k, &src);
	for (uint32_t i = src.n_owners; i-- > 0;) {
		h = core_held_find(c, m->ns, src.owner[i]->meta.uid);
		if (h) {
			core_held_link(h, p->group);
			return;
		}
	}
}

/* ---- holding objects that the webhook missed ---- */

/* The objects of a namespace that have a pod with a node, found once for all objects that are checked in a
 * cycle. */
struct begun {
	const char *ns;     /* NULL: none yet */
	struct slu_map uid; /* keyed hashes of them */
};

static uint64_t uid_hash(const char *uid)
{
	return slu_hash_keyed(uid, strlen(uid));
}

static int find_begun(struct slu_core *c, struct begun *b, const char *ns)
{
	b->ns = NULL;
	slu_map_clear(&b->uid);
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct pod *p = pod_of(e);
		struct slu_group_source src;

		if (!*p->k->spec.node || slu_kpod_ended(p->k) || strcmp(p->k->o.meta.ns, ns))
			continue;
		core_source(c, p->k, &src);
		for (uint32_t i = 0; i < src.n_owners; i++)
			if (slu_map_put(&b->uid, uid_hash(src.owner[i]->meta.uid), 1) < 0)
				return -ENOMEM;
	}
	b->ns = ns;
	return 0;
}

/* Whether a pod of the object has a node already: then the object is left alone.  1, 0 or -ENOMEM. */
static int has_begun(struct slu_core *c, struct begun *b, const struct slu_kobj *o)
{
	int rc = b->ns && !strcmp(b->ns, o->meta.ns) ? 0 : find_begun(c, b, o->meta.ns);

	return rc < 0 ? rc : slu_map_get(&b->uid, uid_hash(o->meta.uid)) != NULL;
}

/* Jobs: not finished, not the user's own suspension, and either not held at all or suspended by us
 * without the gate yet. */
static bool job_needs_hold(const struct slu_config *cfg, const struct slu_kjob *j)
{
	const char *mark = slu_kmeta_annotation(&j->o.meta, SLU_HELD_MARK);

	if (j->complete == SLU_TRI_TRUE || j->failed_cond == SLU_TRI_TRUE)
		return false;
	/* The template may change once the Job's controller has taken note. */
	if (mark && !strcmp(mark, "yes"))
		return j->suspend && !slu_held_kept(cfg, &j->tmpl.spec) &&
		       j->suspended == SLU_TRI_TRUE && !j->start_us;
	return !mark && !j->suspend;
}

static bool needs_hold(const struct slu_core *c, const struct slu_kobj *o, enum slu_held_mode mode)
{
	const struct slu_ktemplate *t = slu_held_template(o);

	return mode != SLU_HELD_OFF && t && !o->meta.deleted_us &&
	       (o->kind == SLU_KIND_JOB ? job_needs_hold(c->cfg, slu_kjob(o))
					: !slu_held_kept(c->cfg, &t->spec));
}

static void hold_object(struct slu_core *c, struct held *h, struct begun *begun)
{
	const struct slu_kobj *o = h->obj;
	enum slu_held_mode mode = space_mode(c, o->meta.ns);
	bool again = h->asked_generation == o->meta.generation;
	struct slu_buf b = SLU_BUF_INIT(4096);
	int rc = 0;

	if (again && c->now_us < h->ask_us)
		return;
	h->ask_us = CORE_NEVER;
	if (!needs_hold(c, o, mode))
		return;
	/* A new template leaves the pods of a ReplicaSet alone; for all other kinds it would
	 * replace what runs.  A Job that Sluice has suspended has nothing to lose: its last pods
	 * are on their way out. */
	if (o->kind != SLU_KIND_REPLICASET && !slu_kmeta_annotation(&o->meta, SLU_HELD_MARK))
		rc = has_begun(c, begun, o);
	if (rc >= 0)
		h->asked_generation = o->meta.generation;
	if (rc)
		return;
	h->asked = again ? h->asked + 1 : 0;
	h->ask_us = c->now_us + ((int64_t)ASK_US << SLU_MIN(h->asked, MAX_DOUBLED));
	core_due_by(c, CORE_AT_RELEASED, h->ask_us);
	if (slu_held_hold(o, mode, &b) == 0) {
		slu_log(SLU_INFO, "object held: the webhook had not held it",
			SLU_STR("kind", slu_kkind_info(o->kind)->kind), SLU_STR("ns", o->meta.ns),
			SLU_STR("name", o->meta.name));
		core_held_patch(c, h, b.p);
	}
	slu_buf_done(&b);
}

/* A Job whose template also has foreign gates cannot be planned before those are removed, and they cannot
 * be removed before the Job has pods: so the Job is resumed, and the gates hold its pods. */
static void let_through(struct slu_core *c, struct held *h)
{
	const struct slu_kjob *j = h->obj->kind == SLU_KIND_JOB ? slu_kjob(h->obj) : NULL;
	struct slu_buf b = SLU_BUF_INIT(4096);

	if (!j || !slu_held_waits(c->cfg, j) || h->turn != TURN_NONE ||
	    slu_held_free(&j->tmpl.spec))
		return;
	core_held_turn_to(c, h, TURN_RESUMING);
	if (slu_held_release_job(j, &(struct slu_held_place){ 0 }, &b) == 0)
		core_held_patch(c, h, b.p);
	slu_buf_done(&b);
}

void core_held_look(struct slu_core *c)
{
	struct begun begun = { 0 };
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->groups->look.n; i++) {
		struct held *h = c->groups->look.p[i];

		if (!h)
			continue;
		if (h->obj->kind == SLU_KIND_JOB && slu_held_waits(c->cfg, slu_kjob(h->obj)) &&
		    has_pods(h)) {
			c->groups->look.p[kept++] = h;
			continue;
		}
		h->listed = false;
		if (core_ahead_begun(c, h))
			core_held_turn_to(c, h, TURN_BEGUN);
		if (h->obj->kind == SLU_KIND_JOB)
			stand_in(c, h);
		h->new_template = false;
		if (h->crowded) { /* until others have left */
			h->listed = true;
			c->groups->look.p[kept++] = h;
		}
		hold_object(c, h, &begun);
		let_through(c, h);
	}
	c->groups->look.n = kept;
	slu_map_done(&begun.uid);
}

void core_held_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL), *next; e; e = next) {
		next = slu_table_next(&c->groups->held, e);
		held_free(c, held_of(e), false);
	}
	slu_table_done(&c->groups->held);
	slu_vec_done(&c->groups->look);
	slu_vec_done(&c->holds->released);
	slu_map_done(&c->holds->stands);
	slu_map_done(&c->holds->pace.paid);
}
