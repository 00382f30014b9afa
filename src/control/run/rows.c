/* Rows of the store: a job for each gang, whether it still gathers, waits or runs, with the members
 * it waits with; and what it has used when it is over. */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/rules/fluxjob.h"
#include "wire/jsonw.h"

#define SPEC_MAX (1u << 20)

/* The run that is promised the next start, of members that came later, too; NULL: none. */
static const struct run *planned_run(const struct group *g)
{
	const struct run *first = NULL;

	for (uint32_t i = 0; i < g->run.n; i++) {
		const struct run *r = g->run.p[i];

		if (r->state == RUN_QUEUED && r->planned_s != SLU_TIME_NONE &&
		    (!first || r->planned_s < first->planned_s))
			first = r;
	}
	return first;
}

/* Write the places of a promise ("NODE*SLOTS", or "NODE*SLOTS/ROLE" of other roles than the first), so that after a restart the promise stays on them. */
static void put_places(struct slu_core *c, const struct run *r, struct slu_jsonw *w)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct slu_gang_place place = { 0 };
	struct slu_gang_info info;

	if (slu_gang_info(m, r->id, &info, &place) == 0 && info.state == SLU_GANG_RESERVED) {
		slu_jsonw_key(w, CORE_SPEC_PLACES);
		slu_jsonw_arr(w);
		for (uint32_t i = 0; i < place.n; i++) {
			const struct slu_gang_part *p = &place.part[i];
			char text[300];

			snprintf(text, sizeof text, p->role ? "%s*%u/%u" : "%s*%u",
				 slu_machine_node_name(m, p->node), p->slots, p->role);
			slu_jsonw_str(w, text);
		}
		slu_jsonw_end_arr(w);
	}
	slu_gang_place_done(&place);
}

/* What it asks for, as the queue sees it. */
static void put_spec(struct slu_core *c, const struct group *g, const struct run *r,
		     struct slu_buf *b)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "roles");
	slu_jsonw_arr(&w);
	for (uint32_t i = 0; r && i < r->role.n; i++) {
		const struct role *a = &r->role.p[i];

		slu_jsonw_obj(&w);
		slu_jsonw_ki64(&w, "min", a->min);
		slu_jsonw_ki64(&w, "max", a->max);
		slu_jsonw_key(&w, "need");
		slu_jsonw_obj(&w);
		for (uint32_t k = 0; k < a->shape->n_need; k++)
			slu_jsonw_ki64(&w, slu_machine_resource_name(m, a->shape->need[k].resource),
				       a->shape->need[k].n);
		slu_jsonw_end_obj(&w);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_arr(&w);
	if (*g->wish.level)
		slu_jsonw_kstr(&w, g->wish.level_required ? "required" : "preferred",
			       g->wish.level);
	if (g->wish.exclusive) {
		slu_jsonw_key(&w, "exclusive");
		slu_jsonw_bool(&w, true);
	}
	if (r && r->refused) {
		slu_jsonw_key(&w, CORE_SPEC_REFUSED);
		slu_jsonw_bool(&w, true);
	}
	core_life_put(c, g, &w);
	if (planned_run(g))
		put_places(c, planned_run(g), &w);
	slu_jsonw_end_obj(&w);
}

/* The one object whose pods wait for us; NULL: there is none, or there are several. */
static const struct slu_kobj *held_object(const struct group *g)
{
	const struct slu_kobj *o = g->owned.n == 1 ? g->owned.p[0]->obj : NULL;

	return o && !core_phantom_is(o->meta.uid) ? o : NULL;
}

static const char *kind_of(const struct group *g)
{
	const struct slu_kobj *held = held_object(g);
	const struct slu_kowner *o = g->pod.n ? slu_kmeta_controller(&g->pod.p[0]->k->o.meta)
					      : NULL;

	if (held)
		return slu_kkind_info((enum slu_kkind)held->kind)->kind;
	return o ? o->kind : "Pod";
}

uint64_t core_keep_sum(const struct slu_store_job *j)
{
	const int64_t n[] = { (int64_t)j->id, j->priority,  j->first_seen_us, j->state,
			      j->size,        j->max_size,  j->current_size,  j->limit_s,
			      j->begin_s,     j->planned_s, j->promised_s,    j->start_s,
			      j->deadline_s };
	uint64_t h = slu_hash_bytes(n, sizeof n);

	h = slu_hash_u64(h ^ slu_hash_bytes(j->spec, strlen(j->spec)));
	h = slu_hash_u64(h ^ slu_hash_bytes(j->object, strlen(j->object)));
	return slu_hash_u64(h ^ slu_hash_bytes(j->cause, strlen(j->cause)));
}

/* Pods of a resumed Job that have not been seen yet. */
static uint32_t to_come(const struct run *r)
{
	return r && r->appears ? r->n_slot[SLOT_VACANT] : 0;
}

/* Write the row if it differs from the one that is there. */
static int put_row(struct slu_core *c, struct group *g, const struct run *r, uint64_t id,
		   enum slu_store_job_state state)
{
	struct slu_buf spec = SLU_BUF_INIT(SPEC_MAX);
	char object[SLU_FLUXJOB_NAME] = "";
	struct slu_store_job j = { .id = id,
				   .key = g->key,
				   .space = g->ns,
				   .name = g->id.name,
				   .object = object,
				   .kind = kind_of(g),
				   .user = g->user,
				   .queue = g->wish.queue,
				   .priority = g->wish.priority,
				   .first_seen_us = g->first_seen_us,
				   .state = state,
				   .size = g->wish.min,
				   .min_size = g->wish.min,
				   .max_size = g->wish.max,
				   .current_size = core_members(g) + to_come(r),
				   .limit_s = g->wish.duration_s,
				   .begin_s = g->wish.begin_s,
				   .deadline_s = g->wish.deadline_s };
	uint64_t sum;
	int rc = 0;

	if (held_object(g))
		slu_fluxjob_name(held_object(g), object);
	put_spec(c, g, r, &spec);
	j.spec = spec.error ? "{}" : slu_buf_str(&spec);
	j.planned_s = planned_run(g) ? planned_run(g)->planned_s : 0;
	j.promised_s = r ? r->promised_s : 0;
	j.start_s = r ? r->start_s : g->started_s;
	j.cause = !r && g->cancelled                       ? CORE_CAUSE_CANCELLED
		  : g->begun && state != SLU_STORE_WAITING ? CORE_CAUSE_BEGUN
		  : r && r->cause                          ? r->cause
							   : "";
	sum = core_keep_sum(&j);
	if (g->kept && g->kept != id)
		core_group_unkeep(c, g); /* its gang has another number now */
	if (g->kept != id || g->kept_sum != sum)
		rc = slu_batch_put_job(slu_intents_batch(c->door), &j);
	if (!rc) {
		g->kept = id;
		g->kept_sum = sum;
	}
	slu_buf_done(&spec);
	return rc;
}

int core_run_keep(struct slu_core *c, const struct run *r, enum slu_store_job_state state)
{
	return put_row(c, r->g, r, r->id, state);
}

/* Members that wait are named, so that people can ask the store for them. */
static int put_pods(struct slu_core *c, struct group *g)
{
	int rc = 0;

	for (uint32_t i = 0; i < g->pod.n && !rc; i++) {
		struct pod *p = g->pod.p[i];
		struct slu_store_pod row = { .job = g->kept,
					     .uid = core_pod_uid(p),
					     .space = g->ns,
					     .name = p->k->o.meta.name,
					     .node = "",
					     .seen_us = SLU_MAX(p->k->o.meta.created_us,
								g->first_seen_us) };

		if (p->kept || p->stand)
			continue;
		rc = slu_batch_put_pod(slu_intents_batch(c->door), &row);
		p->kept = !rc;
	}
	return rc;
}

static enum slu_store_job_state state_of(const struct group *g, const struct run *r)
{
	if (!r)
		return g->on_hold || g->cancelled ? SLU_STORE_HELD : SLU_STORE_GATHERING;
	switch (r->state) {
	case RUN_QUEUED:
		return g->on_hold               ? SLU_STORE_HELD
		       : r->never || r->refused ? SLU_STORE_NEVER
						: SLU_STORE_WAITING;
	case RUN_RUNNING:
		return SLU_STORE_RUNNING;
	default:
		return SLU_STORE_STARTING;
	}
}

void core_group_starts(struct slu_core *c, struct group *g, const struct run *r)
{
	if (core_gang_of(g) || g->started_s)
		return;
	g->started_s = r->start_s;
	g->job = g->reuse ? g->reuse : ++c->next_job;
	g->reuse = 0;
}

void core_group_stops(struct group *g, const struct run *r)
{
	if (r->gang || core_gang_of(g) || core_started(g))
		return;
	g->started_s = 0;
	g->reuse = g->job;
}

/* A member that may start one day.  Its Job may be suspended and resumed before the Job's controller
 * deletes its pods. */
static bool pod_stays(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *k = slu_kmeta_controller(&p->k->o.meta);
	const struct slu_kobj *o = p->leaving && k ? core_owner(c, p->k->o.meta.ns, k->uid) : NULL;

	return core_pod_startable(p) || (o && !o->meta.deleted_us && !p->k->o.meta.deleted_us &&
					 !core_pod_at(p) && !slu_kpod_ended(p->k));
}

static int store_group(struct slu_core *c, struct group *g)
{
	const struct run *r = core_gang_of(g);
	enum slu_store_job_state state = state_of(g, r);
	int rc;

	if (c->door && !r && g->started_s && core_started(g)) {
		/* Members that came later run on: their gang is over when they are. */
		rc = put_row(c, g, NULL, g->kept ? g->kept : g->job, SLU_STORE_RUNNING);
		return rc ? rc : put_pods(c, g);
	}
	if (!c->door || (!r && ((g->run.n && !g->begun) || !g->pod.n || core_started(g))))
		return 0; /* only members beyond a gang that is over */
	if (!r) {
		bool any = g->cancelled;

		for (uint32_t i = 0; i < g->pod.n; i++)
			any |= pod_stays(c, g->pod.p[i]);
		if (!any) {
			if (g->begun) /* no member is left to follow those that started */
				core_group_unkeep(c, g);
			rc = g->kept ? put_row(c, g, NULL, g->kept, state) : 0;
			return rc || !g->kept ? rc : put_pods(c, g);
		}
		if (!g->reuse)
			g->reuse = ++c->next_job; /* the gang will have it */
	}
	rc = put_row(c, g, r, r ? r->id : g->reuse, state);
	return rc ? rc : put_pods(c, g);
}

void core_group_keep(struct slu_core *c, struct group *g)
{
	if (store_group(c, g) < 0)
		slu_log(SLU_WARN, "job not saved in the store", SLU_STR("job", g->id.name));
}

int core_group_keep_all(struct slu_core *c, struct group *g)
{
	g->kept = 0;
	for (uint32_t i = 0; i < g->pod.n; i++)
		g->pod.p[i]->kept = false;
	return store_group(c, g);
}

void core_group_unkeep(struct slu_core *c, struct group *g)
{
	if (c->door && g->kept && slu_batch_del_job(slu_intents_batch(c->door), g->kept) < 0)
		slu_log(SLU_WARN, "job not removed from the store", SLU_STR("job", g->id.name));
	g->kept = 0;
	for (uint32_t i = 0; i < g->pod.n; i++)
		g->pod.p[i]->kept = false;
}

void core_pod_unkeep(struct slu_core *c, struct pod *p)
{
	const struct group *g = p->group;

	if (p->kept && c->door && g && g->kept &&
	    slu_batch_del_pod(slu_intents_batch(c->door), g->kept, core_pod_uid(p)) < 0)
		slu_log(SLU_WARN, "pod not removed from the store",
			SLU_STR("pod", p->k->o.meta.name));
	p->kept = false;
}
