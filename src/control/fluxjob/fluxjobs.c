/* FluxJobs: Sluice makes one for each piece of held work and keeps it current; FluxJobs of users have
 * a jobspec of their own and are queued as they are (fluxjob/phantom.c).
 *
 * Deleting a FluxJob cancels its work.  In a cluster that does not have the kind, everything else works without
 * FluxJobs. */
#include "control/fluxjob/fluxjob.h"

#include <stdio.h>

#include "base/hostlist.h"
#include "control/ask/ask.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/hold/hold.h"
#include "control/run/run.h"
#include "kube/codec.h"

#define PASS_US  250000
#define LOOK_US  100       /* a running FluxJob is checked again after this time for each one */
#define AWAY_US  300000000 /* a node may be away for this long, as pods tolerate it */
#define AGAIN_US 30000000  /* until one that could not be made is tried again */

static struct fluxjob *fluxjob_of(struct slu_entry *e)
{
	return e ? slu_entry_of(e, struct fluxjob, e) : NULL;
}

struct fluxjob *core_fluxjob_of(struct slu_core *c, const char *ns, const char *name)
{
	char key[600];
	int n = snprintf(key, sizeof key, "%s/%s", ns, name);

	return n > 0 && n < 600 ? fluxjob_of(slu_table_find(&c->fluxjobs->table, key, (size_t)n))
				: NULL;
}

static struct fluxjob *fluxjob_get(struct slu_core *c, const char *ns, const char *name)
{
	struct fluxjob *f = core_fluxjob_of(c, ns, name);
	struct slu_buf key = SLU_BUF_INIT(600);

	if (f)
		return f;
	f = slu_calloc(1, sizeof *f);
	if (!f)
		return NULL;
	slu_buf_printf(&key, "%s/%s", ns, name);
	f->e.n = key.n;
	f->key = slu_buf_take(&key);
	f->e.key = f->key;
	f->name = f->key ? strchr(f->key, '/') + 1 : NULL;
	f->claim = !strcmp(ns, SLU_CLAIM_SPACE);
	if (!f->key || core_fluxjob_turn_room(c) < 0 ||
	    slu_table_add(&c->fluxjobs->table, &f->e) < 0) {
		slu_free(f->key);
		slu_free(f);
		return NULL;
	}
	return f;
}

static void fluxjob_free(struct slu_core *c, struct fluxjob *f)
{
	slu_table_del(&c->fluxjobs->table, &f->e);
	core_fluxjob_turn_none(c, f);
	c->fluxjobs->open -= f->open;
	c->fluxjobs->crowded -= f->life == FLUXJOB_CROWDED;
	if (f->k)
		slu_kobj_unref(&f->k->o);
	slu_kobj_unref(f->obj);
	slu_free(f->nodes);
	slu_free(f->had_nodes);
	slu_free(f->places);
	slu_free(f->message);
	slu_fluxjob_done(&f->ask);
	slu_free(f->key);
	slu_free(f);
}

void core_fluxjob_to(struct slu_core *c, struct fluxjob *f, enum fluxjob_life to)
{
	static const uint32_t may[] = {
		[FLUXJOB_UNREAD] = CORE_BIT(FLUXJOB_UNREAD) | CORE_BIT(FLUXJOB_REFUSED) |
				   CORE_BIT(FLUXJOB_CROWDED) | CORE_BIT(FLUXJOB_LIVES) |
				   CORE_BIT(FLUXJOB_OVER),
		[FLUXJOB_REFUSED] = CORE_BIT(FLUXJOB_UNREAD),
		[FLUXJOB_CROWDED] = CORE_BIT(FLUXJOB_UNREAD) | CORE_BIT(FLUXJOB_CROWDED) |
				    CORE_BIT(FLUXJOB_LIVES),
		[FLUXJOB_LIVES] = CORE_BIT(FLUXJOB_UNREAD) | CORE_BIT(FLUXJOB_LIVES),
		[FLUXJOB_OVER] = CORE_BIT(FLUXJOB_UNREAD),
	};

	core_changes(c, "FluxJob", may[f->life], f->life, to);
	c->fluxjobs->crowded -= f->life == FLUXJOB_CROWDED;
	c->fluxjobs->crowded += to == FLUXJOB_CROWDED;
	f->life = to;
}

static void set_text(char **at, const char *text)
{
	if (*at && text && !strcmp(*at, text))
		return;
	slu_free(*at);
	*at = text && *text ? slu_strdup(text) : NULL;
}

/* ---- held work ---- */

/* Create the FluxJob, or update its size to that of its object. */
static void write_it(struct slu_core *c, struct fluxjob *f, const struct slu_held_view *v)
{
	const struct group *g = core_group_find(c, v->obj->meta.ns, v->group);
	int64_t duration = g ? g->wish.duration_s : 0;
	struct slu_buf b = SLU_BUF_INIT(64u << 10);
	int rc = f->k ? slu_fluxjob_spec(v, duration, &b) : slu_fluxjob_wrap(v, duration, &b);

	if (rc == 0)
		core_write(c, &(struct slu_rec_write){ .verb = f->k ? SLU_WRITE_SPEC
								    : SLU_WRITE_CREATE,
						       .kind = SLU_KIND_FLUXJOB,
						       .ns = v->obj->meta.ns,
						       .name = f->name,
						       .uid = f->k ? f->k->o.meta.uid : NULL,
						       .text = b.p });
	f->pods = v->pods;
	slu_buf_done(&b);
}

static void held_seen(void *arg, const struct slu_held_view *v)
{
	struct slu_core *c = arg;
	char name[SLU_FLUXJOB_NAME];
	struct fluxjob *f;

	if (c->fluxjobs->absent || core_phantom_is(v->obj->meta.uid))
		return;
	slu_fluxjob_name(v->obj, name);
	f = fluxjob_get(c, v->obj->meta.ns, name);
	if (!f || f->own) /* a user has one of that name: it is left alone */
		return;
	slu_kobj_ref(v->obj);
	slu_kobj_unref(f->obj);
	f->obj = v->obj;
	f->wanted = v->pods;
	f->state = v->state;
	f->ok = v->ok;
	f->job = v->job ? v->job : f->job;
	f->position = v->position;
	f->planned_s = v->planned_s;
	if (*v->nodes) {
		set_text(&f->had_nodes, v->nodes);
		f->had_start_s = v->start_s;
	}
	f->start_s = v->state == SLU_HELD_DONE ? f->had_start_s : v->start_s;
	set_text(&f->nodes, v->state == SLU_HELD_DONE ? f->had_nodes : v->nodes);
	set_text(&f->message, v->reason);
	/* A deleted FluxJob of cancelled or ended work is not made again. */
	if (!f->k && v->state != SLU_HELD_CANCELLED && v->state != SLU_HELD_DONE &&
	    (!f->asked_us || c->now_us - f->asked_us > AGAIN_US)) {
		f->asked_us = c->now_us;
		write_it(c, f, v);
	} else if (f->k && v->state != SLU_HELD_DONE && f->k->count != (int32_t)v->pods &&
		   f->pods != v->pods) {
		write_it(c, f, v);
	}
	core_fluxjob_due(c, f);
}

static void held_gone(void *arg, const struct slu_kobj *obj)
{
	struct slu_core *c = arg;
	char name[SLU_FLUXJOB_NAME];
	struct fluxjob *f;

	slu_fluxjob_name(obj, name);
	f = core_fluxjob_of(c, obj->meta.ns, name);
	if (!f || f->own || !f->obj || strcmp(f->obj->meta.uid, obj->meta.uid))
		return;
	slu_kobj_unref(f->obj);
	f->obj = NULL;
	f->due_us = 0;
	if (!f->k) /* otherwise the server collects it with its owner */
		fluxjob_free(c, f);
}

/* A user deleted the FluxJob of held work: the work leaves the queue. */
static void cancel(struct slu_core *c, const struct fluxjob *f)
{
	struct slu_rec_ask a = { .what = SLU_ASK_CANCEL };
	struct slu_error err = { 0 };
	const struct slu_kobj *o = f->obj;

	if (!o || o->meta.deleted_us || f->state == SLU_HELD_DONE || !c->door)
		return;
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e;
	     e = slu_table_next(&c->groups->table, e)) {
		struct group *g = group_of(e);

		for (uint32_t i = 0; i < g->owned.n; i++)
			if (!strcmp(g->owned.p[i]->obj->meta.uid, o->meta.uid)) {
				snprintf(a.ns, sizeof a.ns, "%s", g->ns);
				snprintf(a.name, sizeof a.name, "%s", g->id.key + 2);
				core_ask_group(c, &a, &err);
				slu_log(SLU_INFO, "FluxJob deleted", SLU_STR("name", f->name),
					SLU_STR("ns", g->ns), SLU_STR("what", err.text));
				return;
			}
	}
}

/* ---- a user's own ---- */

static uint64_t hash_spec(const struct slu_kfluxjob *k)
{
	uint64_t h = slu_hash_u64(slu_hash_bytes(k->jobspec, strlen(k->jobspec)) ^
				  (uint64_t)k->duration_s);

	for (uint16_t i = 0; i < k->nnodes; i++)
		h = slu_hash_u64(h ^ slu_hash_bytes(k->nodes[i], strlen(k->nodes[i])));
	return k->reservation ? slu_hash_u64(h) : h;
}

static bool is_over(const struct slu_kfluxjob *k)
{
	return slu_kstr_is(k->state, "Finished") || slu_kstr_is(k->state, "Failed");
}

/* Another replica leads: follow the status that the leader wrote. */
static void follow_leader(struct slu_core *c, struct fluxjob *f)
{
	if (is_over(f->k)) {
		core_phantoms_end(c, f, f->k, true);
		core_fluxjob_to(c, f, FLUXJOB_OVER);
	} else if (!f->start_s && core_phantoms_make(c, f) < 0) {
		slu_log(SLU_WARN, "out of memory: FluxJob not followed", SLU_STR("name", f->name));
	}
}

/* Make the slots of the FluxJob, or let it wait for room. */
static void own_begin(struct slu_core *c, struct fluxjob *f, struct slu_error *err)
{
	if (core_phantoms_crowded(c, f)) {
		core_fluxjob_to(c, f, FLUXJOB_CROWDED);
		slu_fail(
			err, 0,
			"waits: the FluxJobs of namespace %s, or of all namespaces, already have as many "
			"slots as Sluice plans at once, or too many of the slots have just changed",
			f->k->o.meta.ns);
		core_fluxjob_due(c, f);
	} else if (core_phantoms_make(c, f) < 0) {
		core_phantoms_end(c, f, f->k, false);
		slu_fail(err, 0, "out of memory");
		core_fluxjob_to(c, f, FLUXJOB_REFUSED);
	}
}

static void own_changed(struct slu_core *c, struct fluxjob *f)
{
	uint64_t spec = hash_spec(f->k);
	struct slu_error err = { 0 };

	if (!c->door && f->life == FLUXJOB_LIVES && f->spec == spec)
		follow_leader(c, f);
	if (f->spec == spec || f->start_s) /* running work keeps running */
		return;
	if (!f->spec && is_over(f->k)) { /* the FluxJob was over before this daemon started */
		core_fluxjob_to(c, f, FLUXJOB_OVER);
		f->spec = spec;
		return;
	}
	core_phantoms_end(c, f, f->k, false);
	core_fluxjob_to(c, f, FLUXJOB_UNREAD);
	f->spec = spec;
	slu_fluxjob_done(&f->ask);
	if (slu_fluxjob_read(f->k, c->cfg, &f->ask, &err) < 0)
		core_fluxjob_to(c, f, FLUXJOB_REFUSED);
	else
		own_begin(c, f, &err);
	f->state = f->life == FLUXJOB_REFUSED ? SLU_HELD_REFUSED : SLU_HELD_HELD;
	set_text(&f->message, *err.text ? err.text : NULL);
	if (f->life == FLUXJOB_REFUSED) {
		slu_log(SLU_WARN, "FluxJob refused", SLU_STR("name", f->name),
			SLU_STR("ns", f->k->o.meta.ns), SLU_STR("err", err.text));
		core_fluxjob_due(c, f);
	}
}

/* The node of each slot in order, "-" for one without; and the distinct ones. */
static void own_places(struct slu_core *c, struct fluxjob *f)
{
	struct slu_buf at = SLU_BUF_INIT(1u << 20), all = SLU_BUF_INIT(1u << 20);
	struct slu_hostlist seen = { 0 };

	for (uint32_t i = 0; i < f->ask.max; i++) {
		char uid[256];
		struct slu_entry *e;
		const char *node;

		snprintf(uid, sizeof uid, "%.200s#%u", f->k->o.meta.uid, i);
		e = slu_table_finds(&c->cluster->pods, uid);
		node = e && *pod_of(e)->k->spec.node ? pod_of(e)->k->spec.node : "-";
		slu_buf_printf(&at, "%s%s", i ? "," : "", node);
		if (*node == '-' || slu_hostlist_find(&seen, node) >= 0)
			continue;
		slu_buf_printf(&all, "%s%s", all.n ? "," : "", node);
		if (slu_hostlist_add(&seen, node) < 0)
			break;
	}
	set_text(&f->places, slu_buf_str(&at));
	set_text(&f->nodes, slu_buf_str(&all));
	slu_hostlist_done(&seen);
	slu_buf_done(&at);
	slu_buf_done(&all);
}

static void own_waits(struct slu_core *c, struct fluxjob *f, const struct group *g,
		      const struct run *r)
{
	struct slu_job_view v;

	f->state = g->wrong || (r && (r->never || r->refused)) ? SLU_HELD_REFUSED
		   : r                                         ? SLU_HELD_QUEUED
		   : g->cancelled                              ? SLU_HELD_CANCELLED
							       : SLU_HELD_HELD;
	f->position = 0;
	f->planned_s = 0;
	set_text(&f->message, g->wrong         ? g->wrong
			      : r && r->reason ? r->reason
			      : g->cancelled   ? CORE_CANCELLED
					       : g->told_text);
	if (r && slu_queue_job(c->q, r->id, &v) == 0) {
		f->position = v.position;
		v.planned_s = core_estimate(c, v.planned_s);
		/* Without a promise: the forecast that was last written for the group. */
		f->planned_s = v.planned_s != SLU_TIME_NONE       ? v.planned_s
			       : g->told_start_s != SLU_TIME_NONE ? g->told_start_s
								  : 0;
	}
}

/* A node of the FluxJob that is gone, or has been away for so long that Kubernetes gives up the
 * node's pods too; NULL: none. */
static const char *lost_node(struct slu_core *c, const struct fluxjob *f)
{
	for (uint32_t i = 0; i < f->ask.max; i++) {
		char uid[256];
		struct slu_entry *e;
		const struct slu_kcond *ready;
		const struct node *n;

		snprintf(uid, sizeof uid, "%.200s#%u", f->k->o.meta.uid, i);
		e = slu_table_finds(&c->cluster->pods, uid);
		n = e && *pod_of(e)->k->spec.node ? pod_of(e)->node : NULL;
		if (!n)
			continue;
		if (!n->k)
			return n->name;
		ready = slu_kcond_get(n->k->conds, n->k->nconds, "Ready");
		if (n->k->ready == SLU_TRI_TRUE || !ready || !ready->since_us)
			continue;
		if (ready->since_us + AWAY_US <= c->now_us)
			return n->name;
	}
	return NULL;
}

uint64_t core_claim_number(const char *name)
{
	const char *dash = strrchr(name, '-');

	return strtoull(dash ? dash + 1 : name, NULL, 10);
}

static void own_end(struct slu_core *c, struct fluxjob *f, bool ok, const char *why)
{
	f->state = SLU_HELD_DONE;
	f->ok = ok;
	set_text(&f->message, why);
	set_text(&f->places, NULL);
	core_phantoms_end(c, f, f->k, true);
	core_fluxjob_to(c, f, FLUXJOB_OVER);
	/* If memory is short, the sweep over all claims finds it later. */
	if (f->claim)
		(void)slu_vec_push(&c->fluxjobs->claims_over, core_claim_number(f->name));
}

/* When its duration is over; CORE_NEVER: it has none. */
static int64_t own_end_us(const struct fluxjob *f)
{
	return f->start_s && f->ask.duration_s ? (f->start_s + f->ask.duration_s) * 1000000
					       : CORE_NEVER;
}

static void own_look(struct slu_core *c, struct fluxjob *f)
{
	char key[300], why[320];
	const struct group *g;
	const struct run *r;
	bool was = f->start_s;
	const char *lost = NULL;

	snprintf(key, sizeof key, "u:%.250s", f->k->o.meta.uid);
	g = core_group_find(c, f->k->o.meta.ns, key);
	r = g ? core_gang_of(g) : NULL;
	if (g && g->job)
		f->job = g->job;
	if (r && r->state == RUN_RUNNING) {
		f->state = SLU_HELD_RUNNING;
		f->start_s = r->start_s;
		f->position = 0;
		f->planned_s = 0;
		set_text(&f->message, NULL);
		if (!f->claim) /* the client of the claim has its answer */
			own_places(c, f);
	} else if (g && !was) {
		own_waits(c, f, g, r);
	}
	if (was && (!r || (f->ask.duration_s && c->now_s >= f->start_s + f->ask.duration_s))) {
		own_end(c, f, r, r ? NULL : "its slots were taken away");
	} else if (was && (lost = lost_node(c, f))) {
		snprintf(why, sizeof why, "node %.253s was lost", lost);
		own_end(c, f, false, why);
	} else if (was) { /* thousands may run while others come and go */
		f->look_us = c->now_us + PASS_US + (int64_t)c->fluxjobs->table.n * LOOK_US;
	}
	core_fluxjob_due(c, f);
}

/* A FluxJob whose work keeps running is not checked in every turn; one that waits may have another position in the
 * queue. */
static void own_turn(struct slu_core *c, struct fluxjob *f)
{
	if (f->look_us <= c->now_us || own_end_us(f) <= c->now_us)
		own_look(c, f);
	if (f->life == FLUXJOB_LIVES && f->start_s)
		core_fluxjob_turn_by(
			c, f,
			SLU_MIN(f->look_us ? f->look_us : c->now_us + PASS_US, own_end_us(f)));
	else if (f->life == FLUXJOB_LIVES)
		core_fluxjob_turn_by(c, f, c->now_us + PASS_US);
}

static void run_turn(struct slu_core *c, struct fluxjob *f)
{
	int64_t again_us = 0;

	if (f->own && f->life == FLUXJOB_LIVES)
		own_turn(c, f);
	if (!f->due_us || !f->k)
		return;
	if (f->due_us <= c->now_us)
		again_us = core_fluxjob_pace(c, f);
	if (f->due_us <= c->now_us && !again_us)
		core_fluxjob_tell(c, f);
	else
		core_fluxjob_turn_by(c, f, SLU_MAX(f->due_us, again_us));
}

/* Some slots went: FluxJobs that wait for room try again. */
static void try_crowded(struct slu_core *c)
{
	c->fluxjobs->freed = false;
	c->fluxjobs->try_us = 0;
	if (!c->fluxjobs->crowded)
		return;
	for (struct slu_entry *e = slu_table_next(&c->fluxjobs->table, NULL); e;
	     e = slu_table_next(&c->fluxjobs->table, e)) {
		struct fluxjob *f = fluxjob_of(e);
		struct slu_error err = { 0 };

		if (f->life != FLUXJOB_CROWDED || !f->k || core_phantoms_crowded(c, f))
			continue;
		own_begin(c, f, &err);
		set_text(&f->message, *err.text ? err.text : NULL);
	}
}

/* ---- the cluster's side ---- */

void core_fluxjob_synced(struct slu_core *c, bool absent, bool refused)
{
	/* The kind was installed later: make the FluxJobs of work that is held already. */
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL);
	     e && c->fluxjobs->absent && !absent; e = slu_table_next(&c->groups->held, e))
		slu_entry_of(e, struct held, e)->told_state = -1;
	c->fluxjobs->absent = absent;
	c->holds->sink = (struct slu_held_sink){ held_seen, held_gone, c };
	core_due_begin(c, CORE_AT_HELD);
	if (!absent || refused || c->fluxjobs->said) /* the feed has reported a refusal already */
		return;
	c->fluxjobs->said = true;
	slu_log(SLU_INFO, "no FluxJobs: the server does not know the kind",
		SLU_STR("see", "deploy/crds/fluxjobs.jobs.converged-computing.org.yaml"));
}

/* The held object was scaled after the creation of its FluxJob was requested and before the FluxJob appeared.  The
 * FluxJob has the old size; reporting the object again corrects it. */
static void catch_up(struct slu_core *c, const struct fluxjob *f)
{
	struct held *h = f->obj && f->wanted != f->pods
				 ? core_held_find(c, f->obj->meta.ns, f->obj->meta.uid)
				 : NULL;

	if (h)
		h->told = 0;
}

/* The FluxJob belonged to an earlier object of that name: the server has collected it. */
static bool is_anothers(const struct slu_kfluxjob *k, const struct slu_kobj *o)
{
	for (uint32_t i = 0; i < k->o.meta.nowners; i++)
		if (!strcmp(k->o.meta.owners[i].uid, o->meta.uid))
			return false;
	return k->o.meta.nowners > 0;
}

static void fluxjob_gone(struct slu_core *c, struct fluxjob *f)
{
	const struct slu_kfluxjob *k = f->k;
	bool other = f->obj && is_anothers(k, f->obj);

	if (f->own)
		core_phantoms_end(c, f, k, false);
	f->k = NULL;
	f->asked_us = 0;
	slu_kobj_unref(&k->o);
	if (f->own || !f->obj)
		fluxjob_free(c, f);
	else if (!other)
		cancel(c, f);
}

void core_fluxjob_changed(struct slu_core *c, const struct slu_kobj *obj, bool is_gone)
{
	const struct slu_kfluxjob *k = slu_kfluxjob(obj);
	struct fluxjob *f = is_gone ? core_fluxjob_of(c, obj->meta.ns, obj->meta.name)
				    : fluxjob_get(c, obj->meta.ns, obj->meta.name);

	core_phantom_forget(c);
	if (!f)
		return;
	if (f->k && (is_gone || strcmp(f->k->o.meta.uid, obj->meta.uid))) {
		fluxjob_gone(c, f);
		f = is_gone ? NULL : fluxjob_get(c, obj->meta.ns, obj->meta.name);
	}
	if (!f || is_gone)
		return;
	slu_kobj_ref(obj);
	if (f->k)
		slu_kobj_unref(&f->k->o);
	else
		catch_up(c, f);
	f->k = k;
	f->own = !slu_fluxjob_is_ours(k);
	if (f->own && !obj->meta.deleted_us)
		own_changed(c, f);
	if (f->due_us)
		core_fluxjob_turn_by(c, f, f->due_us);
}

void core_fluxjobs(struct slu_core *c)
{
	struct fluxjob *f;

	if (!core_is_due(c, CORE_AT_FLUXJOBS))
		return;
	if (c->fluxjobs->freed || (c->fluxjobs->try_us && c->fluxjobs->try_us <= c->now_us))
		try_crowded(c);
	while ((f = core_fluxjob_turn(c)))
		run_turn(c, f);
	if (c->fluxjobs->freed)
		core_due_by(c, CORE_AT_FLUXJOBS, c->now_us);
	if (c->fluxjobs->try_us)
		core_due_by(c, CORE_AT_FLUXJOBS, c->fluxjobs->try_us);
}

void core_fluxjobs_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->fluxjobs->table, NULL), *next; e; e = next) {
		next = slu_table_next(&c->fluxjobs->table, e);
		fluxjob_free(c, fluxjob_of(e));
	}
	slu_table_done(&c->fluxjobs->table);
	slu_vec_done(&c->fluxjobs->turns);
	slu_vec_done(&c->fluxjobs->claims_over);
	for (uint32_t i = 0; i < c->here.n; i++) {
		slu_free(c->here.p[i].uid);
		slu_free(c->here.p[i].node);
	}
	slu_vec_done(&c->here);
	core_phantom_forget(c);
	for (uint32_t i = 0; i < c->fluxjobs->shown.n; i++)
		slu_kobj_unref(c->fluxjobs->shown.p[i].obj);
	slu_vec_done(&c->fluxjobs->shown);
	slu_map_done(&c->fluxjobs->slots);
	slu_map_done(&c->fluxjobs->pace.paid);
	slu_kcodec_free(c->fluxjobs->codec);
}
