/* Groups: when is a gang whole, who follows it, which places are kept.
 *
 *	gathering ──(enough members)──► queued ──(decided)──► placing ──► running ──► over
 *	    ▲                             │                                 │
 *	    └──────(members went)─────────┘        later members: followers, or a vacant place
 */
#include "control/core_i.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- the table ---- */

struct group *core_group_find(struct slu_core *c, const char *ns, const char *key)
{
	char full[600];
	int n = snprintf(full, sizeof full, "%s/%s", ns, key);

	return n > 0 && n < 600 ? group_of(slu_table_find(&c->groups, full, (size_t)n)) : NULL;
}

/* Order of arrival, to the microsecond; what is older than we are is ordered by its creation. */
static int64_t core_first_seen(struct slu_core *c, const struct slu_group_source *src)
{
	const struct slu_kmeta *m = &src->pod->o.meta;
	const char *noted = slu_group_note(src, SLU_IN_SEEN);
	char *end = NULL;
	int64_t at = noted ? strtoll(noted, &end, 10) : 0;

	/* The webhook's note, unless it cannot be true. */
	if (at > 0 && !*end && at <= c->now_us && at < m->created_us + 2000000)
		return at;
	if (m->created_us && m->created_us + 2000000 < c->now_us)
		return m->created_us;
	c->last_seen_us = SLU_MAX(c->last_seen_us + 1, c->now_us);
	return c->last_seen_us;
}

static struct group *group_new(struct slu_core *c, struct pod *p,
			       const struct slu_group_source *src, const struct slu_group_id *id)
{
	const char *user = slu_group_note(src, SLU_IN_USER);
	const struct slu_kmeta *m = &p->k->o.meta;
	const struct slu_kowner *o = slu_kmeta_controller(m);
	struct slu_buf key = SLU_BUF_INIT(600);
	struct group *g = slu_calloc(1, sizeof *g);

	if (!g)
		return NULL;
	slu_buf_printf(&key, "%s/%s", m->ns, id->key);
	g->e.n = key.n;
	g->key = slu_buf_take(&key);
	g->e.key = g->key;
	g->ns = slu_strdup(m->ns);
	g->scheduler = slu_strdup(p->k->spec.scheduler);
	g->owner = o ? slu_strdup(o->uid) : NULL;
	g->id = *id;
	g->first_seen_us = core_first_seen(c, src);
	g->cancelled = core_cancel_noted(src);
	g->user = slu_strdup(user && *user ? user : m->ns);
	g->told_start_s = SLU_TIME_NONE;
	if (!g->key || !g->ns || !g->user || !g->scheduler ||
	    slu_table_add(&c->groups, &g->e) < 0) {
		slu_free(g->key);
		slu_free(g->ns);
		slu_free(g->user);
		slu_free(g->scheduler);
		slu_free(g->owner);
		slu_free(g);
		return NULL;
	}
	core_after_born(c, g);
	core_recall(c, g);
	return g;
}

void core_group_free(struct slu_core *c, struct group *g)
{
	while (g->run.n)
		core_run_free(c, g->run.p[0]);
	for (uint32_t i = 0; g->dirty && i < c->dirty.n; i++)
		if (c->dirty.p[i] == g)
			c->dirty.p[i] = NULL;
	core_elastic_forget(c, g);
	core_after_gone(c, g);
	slu_table_del(&c->groups, &g->e);
	slu_free(g->after_text);
	core_held_unlink(g);
	slu_vec_done(&g->pod);
	slu_vec_done(&g->run);
	slu_free(g->key);
	slu_free(g->ns);
	slu_free(g->user);
	slu_free(g->scheduler);
	slu_free(g->owner);
	slu_free(g->wrong);
	slu_free(g->told_text);
	slu_free(g);
}

void core_group_dirty(struct slu_core *c, struct group *g)
{
	if (g->dirty)
		return;
	if (slu_vec_push(&c->dirty, g) == 0)
		g->dirty = true;
}

/* What is wrong with it, once: an event names it, and it is not planned until mended. */
static void set_wrong(struct slu_core *c, struct group *g, const char *fmt, ...) SLU_PRINTF(3, 4);
static void set_wrong(struct slu_core *c, struct group *g, const char *fmt, ...)
{
	struct slu_error e;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof e.text, fmt, ap);
	va_end(ap);
	if (g->wrong && !strcmp(g->wrong, e.text))
		return;
	slu_free(g->wrong);
	g->wrong = slu_strdup(e.text);
	c->count.refused_objects++;
	slu_log(SLU_WARN, "group refused", SLU_STR("job", g->id.name), SLU_STR("ns", g->ns),
		SLU_STR("err", g->wrong));
	if (g->pod.n)
		core_tell(c, g->pod.p[0], "FailedScheduling", true, "%s", e.text);
}

struct group *core_group_join(struct slu_core *c, struct pod *p)
{
	struct slu_key_place place = slu_key_place_meta(&p->k->o.meta);
	const char *size = slu_key_value(&place, SLU_KEY_SIZE, NULL);
	struct slu_group_source src;
	struct slu_group_id id;
	struct slu_error err = { 0 };
	struct group *g;
	int rc;

	core_source(c, p->k, &src);
	rc = slu_group_identify(&src, &id, &err);
	g = core_group_find(c, p->k->o.meta.ns, id.key);
	if (!g)
		g = group_new(c, p, &src, &id);
	if (!g || slu_vec_push(&g->pod, p) < 0)
		return NULL;
	if (!p->shape)
		p->shape = core_shape_get(c, p);
	if (size)
		(void)(slu_group_parse_size("size", size, UINT32_MAX, &p->said_size, NULL) < 0);
	p->group = g;
	if (rc < 0)
		core_tell(c, p, "BadGroup", true, "%s", err.text);
	core_group_dirty(c, g);
	if (!p->stand)
		core_held_pod(c, p, false);
	return g;
}

/* ---- places kept for members to come ---- */

static uint32_t vacant(const struct group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->run.n; i++)
		for (uint32_t k = 0; k < g->run.p[i]->slot.n; k++)
			n += g->run.p[i]->slot.p[k].state == SLOT_VACANT;
	return n;
}

/* Members the controller still wants alive; what we saw end counts before its status says so. */
static int64_t wanted(struct slu_core *c, const struct group *g)
{
	struct slu_entry *e = g->owner ? slu_table_finds(&c->owners, g->owner) : NULL;
	const struct slu_kobj *o = e ? slu_entry_of(e, struct thing, e)->obj : NULL;
	int64_t n = core_held_wanted(g);

	if (n >= 0)
		return n;
	if (!o)
		return 0;
	n = slu_group_owner_wants(o);
	if (o->kind == SLU_KIND_JOB) {
		const struct slu_kjob *j = slu_kjob(o);

		if (j->completions != SLU_KNONE)
			n = SLU_MIN(n, (int64_t)j->completions - (int64_t)g->ended_ok);
		else if (g->ended_ok)
			n = 0;
	}
	return SLU_MAX(n, (int64_t)0);
}

static bool waits_for_ever(struct slu_core *c, const struct group *g)
{
	struct slu_entry *e = g->owner ? slu_table_finds(&c->owners, g->owner) : NULL;

	return e && slu_entry_of(e, struct thing, e)->obj->kind == SLU_KIND_STATEFULSET;
}

/* More places kept than members to come, or their time is over: give them back. */
static void trim(struct slu_core *c, struct group *g)
{
	int64_t extra = (int64_t)g->pod.n + vacant(g) - wanted(c, g);
	int64_t hold_us = c->cfg->jobs.hold_vacant_s * 1000000;
	bool ever = waits_for_ever(c, g);

	for (uint32_t i = g->run.n; i-- > 0;) {
		struct run *r = g->run.p[i];

		for (uint32_t k = r->slot.n; k-- > 0;) {
			struct slot *s = &r->slot.p[k];
			bool late = !ever && s->vacant_us && s->vacant_us + hold_us <= c->now_us;
			bool last = r->slot.n == 1;

			if (s->state != SLOT_VACANT)
				continue;
			if (extra <= 0 && !late) {
				if (s->vacant_us && !ever)
					c->next_vacancy_us = SLU_MIN(c->next_vacancy_us,
								     s->vacant_us + hold_us);
				continue;
			}
			extra--;
			core_slot_drop(c, r, k);
			if (last)
				break; /* the run went with it */
		}
	}
}

void core_vacancies(struct slu_core *c)
{
	if (c->next_vacancy_us > c->now_us)
		return;
	c->next_vacancy_us = INT64_MAX;
	for (struct slu_entry *e = slu_table_next(&c->groups, NULL); e;
	     e = slu_table_next(&c->groups, e))
		if (vacant(group_of(e)))
			core_group_dirty(c, group_of(e));
}

static bool keeps_place(struct slu_core *c, const struct pod *p)
{
	const struct group *g = p->group;
	const struct slu_knode *n = p->node ? p->node->k : NULL;

	if (!n || n->ready != SLU_TRI_TRUE || n->unschedulable || p->refused)
		return false;
	/* A kubelet that refused it would refuse the next one too. */
	if (p->k->phase == SLU_PHASE_FAILED &&
	    (!strncmp(p->k->reason, "OutOf", 5) || !strcmp(p->k->reason, "Evicted") ||
	     !strcmp(p->k->reason, "NodeAffinity") ||
	     !strcmp(p->k->reason, "UnexpectedAdmissionError")))
		return false;
	return wanted(c, g) > (int64_t)g->pod.n + vacant(g);
}

/* A member of a running gang failed or was taken away, and the gang is told to start again then. */
static bool lost_member(struct slu_core *c, const struct pod *p, bool ended)
{
	bool told = !strcmp(c->cfg->jobs.on_member_failure, "restart") ||
		    core_native_together(c, p);

	return told && p->run->gang && p->run->state == RUN_RUNNING && wanted(c, p->group) > 0 &&
	       !(ended && p->k->phase == SLU_PHASE_SUCCEEDED);
}

void core_group_leave(struct slu_core *c, struct pod *p, bool ended)
{
	struct group *g = p->group;
	struct run *r = p->run;
	uint64_t id = r ? r->id : 0;

	core_pod_unkeep(c, p);
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (g->pod.p[i] == p) {
			memmove(&g->pod.p[i], &g->pod.p[i + 1], (--g->pod.n - i) * sizeof p);
			break;
		}
	if (ended && p->k->phase == SLU_PHASE_SUCCEEDED)
		g->ended_ok++;
	else if (ended)
		g->ended_bad++;
	if (r && core_slot_of(p)) {
		bool again = lost_member(c, p, ended);

		core_slot_vacate(c, r, p, !again && r->state != RUN_UNDOING && keeps_place(c, p));
		if (again && slu_table_find(&c->runs, &id, sizeof id)) {
			slu_log(SLU_INFO, "gang lost a member, starts again",
				SLU_STR("job", g->id.name), SLU_STR("ns", g->ns));
			g->disrupted = p->k->disrupted == SLU_TRI_TRUE;
			core_run_undo(c, r);
		}
	} else if (r) {
		for (uint32_t i = 0; i < r->want.n; i++)
			if (r->want.p[i] == p) {
				r->want.p[i] = r->want.p[--r->want.n];
				break;
			}
		p->run = NULL;
	}
	p->group = NULL;
	core_group_dirty(c, g);
}

/* ---- wishes ---- */

static int by_age(const void *a, const void *b)
{
	const struct slu_kmeta *x = &(*(struct pod *const *)a)->k->o.meta;
	const struct slu_kmeta *y = &(*(struct pod *const *)b)->k->o.meta;

	if (x->created_us != y->created_us)
		return x->created_us < y->created_us ? -1 : 1;
	/* worker-2 before worker-10 */
	if (strlen(x->name) != strlen(y->name))
		return strlen(x->name) < strlen(y->name) ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool waits_for_consumer(struct slu_core *c, const struct slu_kpvc *claim)
{
	const struct slu_kobj *o = core_thing(c, SLU_KIND_STORAGECLASS, "", claim->storage_class);

	return o && slu_kstorageclass(o)->wait_for_consumer;
}

static bool claims_bound(struct slu_core *c, struct group *g, const struct pod *p)
{
	for (uint16_t i = 0; i < p->k->spec.nclaims; i++) {
		const struct slu_kobj *o = core_thing(c, SLU_KIND_PVC, g->ns, p->k->spec.claims[i]);

		/* The scheduler that binds the pod chooses the volume too. */
		if (o && !p->binds && waits_for_consumer(c, slu_kpvc(o)))
			continue;
		if (!o || !*slu_kpvc(o)->volume) {
			set_wrong(c, g, "pod %s: volume claim \"%s\" %s", p->k->o.meta.name,
				  p->k->spec.claims[i], o ? "is not bound" : "does not exist");
			return false;
		}
	}
	return true;
}

static bool sound(struct slu_core *c, struct group *g, struct pod *p)
{
	const char *foreign = slu_predicate_foreign(&p->k->spec);
	struct slu_error err = { 0 };

	if (slu_request_check(p->k, SLU_AMOUNT_MAX, &err) < 0)
		set_wrong(c, g, "pod %s: %s", p->k->o.meta.name, err.text);
	else if (foreign && p->binds)
		set_wrong(c, g,
			  "pod %s asks for %s, which only the default scheduler decides; give it "
			  "schedulerName default-scheduler and hold it with the gate instead",
			  p->k->o.meta.name, foreign);
	else if (!p->shape)
		set_wrong(c, g, "pod %s asks for more kinds of resources than can be counted",
			  p->k->o.meta.name);
	else
		return claims_bound(c, g, p);
	return false;
}

static bool read_wish(struct slu_core *c, struct group *g)
{
	struct slu_group_source src;
	struct slu_error err = { 0 };
	const struct slu_kpodgroup *pg = core_podgroup(c, g);
	uint32_t said = 0;

	core_source(c, g->pod.p[0]->k, &src);
	if (core_native_lacks(c, g)) { /* not wrong: it may be on its way */
		slu_free(g->wrong);
		g->wrong = NULL;
		return false;
	}
	if (slu_group_wish(&src, &g->id, pg, c->cfg->jobs.max_size, &g->wish, &err) < 0 ||
	    core_native_wish(c, pg, &g->wish, &err) < 0) {
		set_wrong(c, g, "%s", err.text);
		return false;
	}
	/* The server fills in the number; where it has not, the class tells it. */
	if (pg && *pg->priority_class && !pg->has_priority)
		g->wish.priority = core_priority(c, pg->priority_class);
	else if (!g->pod.p[0]->k->spec.has_priority && !(pg && pg->has_priority))
		g->wish.priority = core_priority(c, g->pod.p[0]->k->spec.priority_class);
	if (*g->wish.level && slu_machine_level_find(slu_queue_machine(c->q), g->wish.level) < 0) {
		set_wrong(c, g, "no topology level \"%s\" is configured", g->wish.level);
		return false;
	}
	for (uint32_t i = 0; i < g->pod.n; i++) {
		uint32_t s = g->pod.p[i]->said_size;

		if (core_pod_startable(g->pod.p[i]) && !sound(c, g, g->pod.p[i]))
			return false;
		if (s && said && s != said && !pg)
			core_tell(
				c, g->pod.p[i], "BadGroup", true,
				"members of group %s say different sizes, %u and %u; the larger counts",
				g->id.name, said, s);
		said = SLU_MAX(said, s);
	}
	if (!pg && g->id.explicit && said > g->wish.min && said <= c->cfg->jobs.max_size)
		g->wish.min = said;
	slu_free(g->wrong);
	g->wrong = NULL;
	return true;
}

/* ---- gathering ---- */

static struct run *queued_gang(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->state == RUN_QUEUED)
			return g->run.p[i];
	return NULL;
}

static bool started(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state != RUN_QUEUED)
			return true;
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_at(g->pod.p[i]))
			return true;
	return false;
}

static int add_role(struct run *r, struct shape *s)
{
	for (uint32_t i = 0; i < r->role.n; i++)
		if (r->role.p[i].shape == s)
			return (int)i;
	if (r->role.n == SLU_ROLES_MAX)
		return -E2BIG;
	if (slu_vec_push(&r->role, ((struct role){ .shape = s })) < 0)
		return -ENOMEM;
	s->refs++;
	return (int)r->role.n - 1;
}

static void clear_wants(struct slu_core *c, struct run *r)
{
	for (uint32_t i = 0; i < r->want.n; i++)
		r->want.p[i]->run = NULL;
	r->want.n = 0;
	for (uint32_t i = 0; i < r->role.n; i++)
		core_shape_put(c, r->role.p[i].shape);
	r->role.n = 0;
}

/* Roles and members of a queued run, from the pods it shall take. */
static int fill_run(struct run *r, struct pod **pod, uint32_t n, uint32_t min, uint32_t places)
{
	for (uint32_t i = 0; i < n; i++) {
		int k = add_role(r, pod[i]->shape);

		if (k < 0)
			return k;
		if (slu_vec_push(&r->want, pod[i]) < 0)
			return -ENOMEM;
		pod[i]->run = r;
		r->role.p[k].max++;
		if (i < min)
			r->role.p[k].min++;
	}
	if (places > n) { /* members that are made one by one: hold their places too */
		r->role.p[0].min += places - n;
		r->role.p[0].max += places - n;
	}
	return 0;
}

static uint64_t fingerprint(const struct run *r)
{
	uint64_t h = r->want.n + ((uint64_t)r->g->n_avoid << 32);

	for (uint32_t i = 0; i < r->role.n; i++)
		h = slu_hash_u64(h ^ (uintptr_t)r->role.p[i].shape) + r->role.p[i].min * 31u +
		    r->role.p[i].max;
	return h;
}

/* How many it takes to start; those who have done their part already are not waited for, nor those
 * who run because they came before anything was held. */
static uint32_t needed(struct slu_core *c, const struct group *g)
{
	uint32_t done = core_members_done(c, g);

	if (g->owned.n && g->pod.n < g->wish.min)
		done += core_held_strangers(c, g);
	return g->wish.min - SLU_MIN(done, g->wish.min - 1);
}

/* Fewer are left than a gang would need: the others have started, and ended. */
static bool few(struct slu_core *c, const struct group *g)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->pod.n; i++)
		n += core_pod_startable(g->pod.p[i]);
	return n < needed(c, g);
}

static void gather(struct slu_core *c, struct group *g)
{
	struct run *r = queued_gang(g);
	slu_cleanup(slu_freep) struct pod **pod = slu_reallocarray(NULL, g->pod.n + 1u,
								   sizeof *pod);
	uint32_t n = 0, need = needed(c, g);
	uint64_t was = r ? fingerprint(r) : 0;
	int rc;

	if (!pod)
		return;
	for (uint32_t i = g->run.n; i-- > 0;) /* nobody follows a gang that was taken back */
		if (!g->run.p[i]->gang && g->run.p[i]->state == RUN_QUEUED)
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_startable(g->pod.p[i]))
			pod[n++] = g->pod.p[i];
	if ((n < need && !(g->wish.one_by_one && n)) || core_after_blocks(c, g) ||
	    c->now_s < g->again_s) {
		if (r)
			core_run_end(c, r, SLU_RESULT_CANCELLED);
		if (!g->kept)
			core_group_keep(c, g);
		return;
	}
	qsort(pod, n, sizeof *pod, by_age);
	n = SLU_MIN(n, g->wish.max);
	if (!r)
		r = core_run_new(c, g, true);
	if (!r)
		return;
	clear_wants(c, r);
	rc = fill_run(r, pod, n, need, SLU_MAX(need, n));
	if (rc == -E2BIG) {
		set_wrong(c, g, "more than %u different kinds of members", SLU_ROLES_MAX);
		core_run_end(c, r, SLU_RESULT_CANCELLED);
	} else if (rc < 0 || fingerprint(r) != was || !r->submitted) {
		core_run_submit(c, r);
	}
}

static void follow(struct slu_core *c, struct group *g)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < g->pod.n; i++)
		alive += g->pod.p[i]->run || core_pod_at(g->pod.p[i]);
	for (uint32_t i = 0; i < g->pod.n && alive < g->wish.max; i++) {
		struct pod *p = g->pod.p[i];
		struct run *r;

		if (p->run || !core_pod_startable(p))
			continue;
		if (core_elastic_takes(g, p)) {
			core_elastic_wait(c, g);
			continue;
		}
		r = core_run_new(c, g, false);
		if (!r)
			return;
		alive++;
		if (fill_run(r, &p, 1, 1, 1) < 0 || core_run_submit(c, r) < 0)
			core_run_free(c, r);
	}
}

/* ---- members that run already (after a restart, or bound by somebody else) ---- */

static int add_slot(struct run *r, struct pod *p, slu_node node, enum slot_state state)
{
	int role = add_role(r, p->shape);

	if (role < 0 || slu_vec_push(&r->slot, ((struct slot){ .node = node,
							       .role = (uint32_t)role,
							       .pod = p,
							       .state = state })) < 0)
		return -ENOMEM;
	r->role.p[role].min++;
	r->role.p[role].max++;
	p->run = r;
	return 0;
}

/* What the slots of a run that is not registered yet will take of a node. */
static int64_t unbooked(const struct run *r, slu_node node, uint32_t kind)
{
	int64_t sum = 0;

	for (uint32_t k = 0; k < r->slot.n; k++) {
		const struct shape *s = r->role.p[r->slot.p[k].role].shape;

		for (uint32_t i = 0; r->slot.p[k].node == node && i < s->n_need; i++)
			sum += s->need[i].kind == kind ? s->need[i].n : 0;
	}
	return sum;
}

static bool has_room(struct slu_core *c, const struct run *r, const struct node *n,
		     const struct shape *s)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	if (!n || n->handle == SLU_NODE_NONE || !s || slu_machine_node_is_down(m, n->handle) ||
	    slu_machine_node_is_cordoned(m, n->handle))
		return false;
	for (uint32_t i = 0; i < s->n_need; i++) {
		uint32_t kind = s->need[i].kind;

		if (slu_machine_node_free(m, n->handle, kind) <
		    s->need[i].n + unbooked(r, n->handle, kind))
			return false;
	}
	return true;
}

/* A member of a gang that was being placed when we stopped: to the node it was meant for, if there
 * still is room. */
static void complete(struct slu_core *c, struct group *g, struct run *r, struct pod *p)
{
	const char *name;
	struct node *n;

	if (p->run || !core_pod_startable(p))
		return;
	name = core_recall_node(c, g, p);
	if (!name && slu_held_gated(&p->k->spec) && !p->stand)
		name = core_held_place(c, g, r);
	n = name ? core_node(c, name) : NULL;
	if (has_room(c, r, n, p->shape) && add_slot(r, p, n->handle, SLOT_CHOSEN) == 0)
		core_node_enter(c, n, p);
}

/* The places of a resumed Job whose pods have not been seen yet. */
static void complete_vacant(struct slu_core *c, struct group *g, struct run *r)
{
	const char *name;

	while (r->slot.n && (int64_t)r->slot.n < wanted(c, g) &&
	       (name = core_held_place(c, g, r))) {
		struct node *n = core_node(c, name);
		uint32_t role = r->slot.p[0].role;

		if (!has_room(c, r, n, r->role.p[role].shape) ||
		    slu_vec_push(&r->slot, ((struct slot){ .node = n->handle, .role = role })) < 0)
			return;
		r->role.p[role].min++;
		r->role.p[role].max++;
	}
}

/* Members that wait although the gang was decided before we stopped; 0: it was not. */
static uint32_t decided_before(struct slu_core *c, const struct group *g)
{
	uint32_t n = 0;

	if (!core_held_place(c, g, NULL))
		return core_recall_open(c, g);
	for (uint32_t i = 0; i < g->pod.n; i++)
		n += core_pod_startable(g->pod.p[i]);
	return n;
}

/* It is in the books: go on with what was intended. */
static void adopted(struct slu_core *c, struct run *r)
{
	bool chosen = false;

	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].pod && core_recall_evict(c, r->slot.p[i].pod)) {
			core_run_undo(c, r);
			return;
		}
	for (uint32_t i = 0; i < r->slot.n; i++) {
		chosen |= r->slot.p[i].state == SLOT_CHOSEN;
		r->g->begun |= r->slot.p[i].state == SLOT_BOUND;
	}
	if (chosen && !r->g->begun)
		r->state = RUN_PLACING; /* as a whole or not at all, as before */
	if (core_run_keep(c, r, chosen ? SLU_STORE_STARTING : SLU_STORE_RUNNING) < 0)
		slu_log(SLU_WARN, "job not kept", SLU_STR("job", r->g->id.name));
	core_run_intend(c, r);
}

/* It cannot be taken over after all. */
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
	core_run_free(c, r);
}

static void adopt(struct slu_core *c, struct group *g)
{
	struct run *r = NULL;
	int64_t start_us = c->now_us;
	bool bound;

	if (g->run.n)
		return;
	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];

		if (!core_pod_at(p) || !p->node || p->node->handle == SLU_NODE_NONE || !p->shape)
			continue;
		if (!r)
			r = core_run_new(c, g, true);
		core_foreign_remove(c,
				    p); /* counted as somebody else's until the group was known */
		if (!r || add_slot(r, p, p->node->handle, SLOT_BOUND) < 0) {
			core_foreign_add(c, p);
			continue;
		}
		if (p->k->start_us)
			start_us = SLU_MIN(start_us, p->k->start_us);
	}
	/* A binding we sent before we stopped may still arrive: an open intent is carried out again
	 * rather than planned anew, so that it can only go where it was meant to. */
	bound = r;
	g->begun |= core_recall_begun(c, g);
	if (!r && decided_before(c, g))
		r = core_run_new(c, g, true);
	for (uint32_t i = 0; r && i < g->pod.n; i++)
		complete(c, g, r, g->pod.p[i]);
	if (r && !bound && (!r->slot.n || (!g->begun && r->slot.n < decided_before(c, g)))) {
		disown(c, g, r); /* no longer as a whole */
		return;
	}
	if (!r)
		return;
	complete_vacant(c, g, r);
	core_run_register(c, r, core_recall_start(c, g, start_us / 1000000));
	if (r->state == RUN_RUNNING) {
		adopted(c, r);
		return;
	}
	disown(c, g, r);
}

static void cancel_queued(struct slu_core *c, struct group *g)
{
	for (uint32_t i = g->run.n; i-- > 0;)
		if (g->run.p[i]->state == RUN_QUEUED)
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
}

static void fill_vacancies(struct slu_core *c, struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++) {
		struct run *r = g->run.p[i];
		bool filled = false;

		for (uint32_t k = 0; k < r->slot.n && r->state != RUN_UNDOING; k++)
			for (uint32_t j = 0; j < g->pod.n && r->slot.p[k].state == SLOT_VACANT;
			     j++) {
				struct pod *p = g->pod.p[j];

				if (core_pod_startable(p) &&
				    (!p->run || p->run->state == RUN_QUEUED))
					filled |= core_slot_take(c, r, k, p);
			}
		if (filled)
			core_run_intend(c, r);
	}
}

/* Nobody starts while the rest of the old gang is on its way out. */
static bool is_undoing(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->state == RUN_UNDOING)
			return true;
	return false;
}

/* A member was bound behind our back while its gang waited: the gang runs, then. */
static void yield_to_bound(struct slu_core *c, struct group *g)
{
	struct run *r = queued_gang(g);

	for (uint32_t i = 0; r && i < r->want.n; i++)
		if (core_pod_at(r->want.p[i])) {
			core_run_end(c, r, SLU_RESULT_CANCELLED);
			return;
		}
}

static void settle(struct slu_core *c, struct group *g)
{
	bool sound;

	if (!g->pod.n) {
		cancel_queued(c, g);
		trim(c, g);
	}
	/* A follower whose pod went waits for nothing. */
	for (uint32_t i = g->run.n; i-- > 0;)
		if (g->run.p[i]->state == RUN_QUEUED && !g->run.p[i]->want.n)
			core_run_end(c, g->run.p[i], SLU_RESULT_CANCELLED);
	if (!g->pod.n) {
		if (!g->run.n) {
			core_group_unkeep(c, g);
			if (g->id.explicit)
				core_podgroup_status(c, g); /* how it ended */
			core_group_free(c, g);
		}
		return;
	}
	g->told_times = 0; /* something about itself has changed */
	yield_to_bound(c, g);
	sound = read_wish(c, g); /* also of what runs: how long, which queue */
	adopt(c, g);
	if (!sound) {
		cancel_queued(c, g);
		trim(c, g);
		return;
	}
	fill_vacancies(c, g);
	trim(c, g);
	if (g->cancelled || is_undoing(g))
		return;
	if (started(g) || (g->begun && few(c, g)))
		follow(c, g);
	else
		gather(c, g);
	core_group_keep(c, g);
}

void core_group_settle(struct slu_core *c, uint32_t i)
{
	struct group *g = c->dirty.p[i];

	if (!g)
		return;
	g->dirty = false;
	c->dirty.p[i] = NULL;
	settle(c, g);
}

void core_groups_settle(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->dirty.n; i++) /* settling may make others dirty */
		core_group_settle(c, i);
	c->dirty.n = 0;
}
