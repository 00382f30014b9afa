/* Release held work: resume Jobs, pin pods and remove their gate; then follow whether the pods start. */
#include "control/hold/hold.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/run/run.h"

#define HOSTNAME    "kubernetes.io/hostname"
#define LIST_MAX    (200u << 10) /* an object may carry 256 kB of annotations */
#define RETRY_US    5000000
#define LOOK_US     5000000  /* between two checks of Jobs whose pods do not exist yet */
#define NOTE_US     30000000 /* a Job that ends sooner never gets its places written */
#define AVOID_TIMES 10       /* how many times held.refusedFor a node is avoided */

/* ---- lists of nodes ---- */

static bool is_of(const struct pod *p, const struct held *h)
{
	const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

	return p->stand ? p->stand == h : o && !strcmp(o->uid, h->obj->meta.uid);
}

/* Distinct names in the order of the slots, from slot number `from` on; of `h` alone with counts, if
 * given.  The stand-ins of a Job lie together, and a run may have as many Jobs as members: so nothing behind
 * the last of them is looked at, unless the Job has pods already (hold/ahead.c). */
static void list_nodes(struct slu_core *c, const struct run *r, const struct held *h, uint32_t from,
		       struct slu_buf *b)
{
	struct slu_map count = { 0 };
	bool stands = h && h->stand.n && !core_ahead_is(c, h);
	uint32_t left = stands ? h->stand.n : UINT32_MAX, end;

	from = h && !stands ? 0 : from;
	for (end = from; end < r->slot.n && left; end++) {
		const struct slot *s = &r->slot.p[end];
		uint64_t *n;

		if (h && (!s->pod || !is_of(s->pod, h)))
			continue;
		left--;
		n = slu_map_get(&count, s->node);
		if (n)
			++*n;
		else if (slu_map_put(&count, s->node, 1) < 0)
			break;
	}
	for (uint32_t i = from; i < end; i++) {
		uint64_t *n = slu_map_get(&count, r->slot.p[i].node);

		if (!n || !*n)
			continue;
		if (b->n)
			slu_buf_putc(b, ',');
		slu_buf_puts(b, core_node_name(c, r->slot.p[i].node));
		if (h && *n > 1)
			slu_buf_printf(b, "*%" PRIu64, *n);
		*n = 0;
	}
	slu_map_done(&count);
}

/* A list that is too long for an annotation is cut behind a whole name. */
static const char *nodes_of(struct slu_core *c, struct run *r)
{
	struct slu_buf b = SLU_BUF_INIT(64u << 20);

	if (r->nodes)
		return r->nodes;
	list_nodes(c, r, NULL, 0, &b);
	if (b.n > LIST_MAX) {
		while (b.n && (b.n > LIST_MAX || b.p[b.n] != ','))
			b.n--;
		b.p[b.n] = 0;
	}
	r->nodes = slu_buf_take(&b);
	return r->nodes ? r->nodes : "";
}

/* ---- Jobs ---- */

static void send_resume(struct slu_core *c, struct held *h)
{
	const struct slu_kmeta *m = &h->obj->meta;

	core_held_turn_to(c, h, core_held_notes(h) ? TURN_NOTING : TURN_RESUMING);
	core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_PATCH,
					       .kind = SLU_KIND_JOB,
					       .run = h->run,
					       .serial = h->serial,
					       .ns = m->ns,
					       .name = m->name,
					       .uid = m->uid,
					       .text = h->resume,
					       .limit_ns = c->cfg->place.retry_s * 1000000000 });
}

static void resume_later(struct slu_core *c, struct held *h, int64_t us)
{
	core_held_turn_to(c, h, core_held_notes(h) ? TURN_NOTE_DUE : TURN_RETRYING);
	h->again_us = c->now_us + us;
	core_due_by(c, CORE_AT_RELEASED, h->again_us);
}

/* Remember the nodes of the Job's stand-ins before these are removed: an open intent may have to be
 * written once more. */
static void note_places(const struct run *r, struct held *h, uint32_t from)
{
	if (!h->stand.n || slu_vec_reserve(&h->place, h->stand.n) < 0)
		return;
	h->place.n = 0;
	for (uint32_t i = from; i < r->slot.n && h->place.n < h->stand.n; i++)
		if (r->slot.p[i].pod && r->slot.p[i].pod->stand == h)
			h->place.p[h->place.n++] = r->slot.p[i].node;
}

/* Keep the Job's patch, and send it now or later.  `there`: all pods of the Job exist. */
static void begin_turn(struct slu_core *c, const struct run *r, struct held *h, bool there,
		       struct slu_buf *patch)
{
	/* A Job that was resumed ahead makes its pods without being told again, and until then the intent keeps its
	 * places. */
	bool is_going = h->early == EARLY_NONE && slu_held_ahead(c->cfg, slu_kjob(h->obj));

	slu_free(h->resume);
	h->resume = slu_buf_take(patch);
	h->run = r->id;
	slu_log(SLU_INFO, "job released", SLU_STR("job", h->obj->meta.name),
		SLU_STR("ns", h->obj->meta.ns), SLU_I64("pods", slu_life_makes(h->obj)));
	if (there) {
		core_held_turn_to(c, h, TURN_NOTE_DUE);
		resume_later(c, h, NOTE_US);
		return;
	}
	if (h->resume && !is_going)
		send_resume(c, h);
	else
		core_held_turn_to(c, h, TURN_RESUMING);
	if (is_going)
		resume_later(c, h, NOTE_US);
	else if (h->early ==
		 EARLY_COMING_BACK) /* its suspension may overtake this patch: say it again */
		resume_later(c, h, RETRY_US);
}

/* `from`: the first of its slots. */
static void resume(struct slu_core *c, struct run *r, struct held *h, uint32_t from, bool there)
{
	struct slu_buf places = SLU_BUF_INIT(LIST_MAX), b = SLU_BUF_INIT(1u << 20);
	struct slu_held_place at = { .job = r->g->job, .nodes = nodes_of(c, r) };
	int rc;

	there &= h->early != EARLY_COMING_BACK;
	list_nodes(c, r, h, from, &places);
	at.places = places.error ? "" : slu_buf_str(&places);
	if (h->turn == TURN_NONE) {
		rc = there ? slu_held_note_job(slu_kjob(h->obj), &at, &b)
			   : slu_held_release_job(slu_kjob(h->obj), &at, &b);
		if (rc == 0)
			begin_turn(c, r, h, there, &b);
	}
	slu_buf_done(&places);
	slu_buf_done(&b);
	if (h->turn != TURN_NONE) {
		note_places(r, h, from);
		if (h->stand.n && r->state == RUN_PLACING) {
			r->appears = true;
			r->appear_us = c->now_us;
			core_due_by(c, CORE_AT_RELEASED, c->now_us + LOOK_US);
		}
		core_held_leave(c, h);
	}
}

/* A controller makes all pods of a Job in one go: if one is missing long after the others appeared, a
 * quota or a webhook prevents it. */
#define STALL_US 30000000

static int64_t stalls_us(const struct slu_core *c, const struct run *r)
{
	bool any = r->slot.n > r->n_slot[SLOT_VACANT];

	return r->appear_us + (any ? SLU_MIN(STALL_US, c->cfg->held.appear_s * 1000000)
				   : c->cfg->held.appear_s * 1000000);
}

/* Note that the Job is being suspended again.  A Job that the mirror shows released has nothing on
 * its way. */
static void take_back_turn(struct slu_core *c, struct held *h)
{
	if (h->turn != TURN_NONE)
		core_held_turn_to(c, h, TURN_TAKEN_BACK);
}

static void stalled(struct slu_core *c, struct run *r)
{
	struct group *g = r->g;
	uint32_t want = r->slot.n, have = want - r->n_slot[SLOT_VACANT];
	char text[200];

	slu_log(SLU_WARN, "a resumed job did not create all its pods; it is held again",
		SLU_STR("job", g->id.name), SLU_STR("ns", g->ns), SLU_I64("pods", have),
		SLU_I64("of", want));
	g->stalled = SLU_MIN(g->stalled + 1, 6u);
	g->again_s = c->now_s + (30 << g->stalled);
	core_due_by(c, CORE_AT_UNDO, c->now_us + 1000000);
	snprintf(text, sizeof text,
		 "its Job created only %u of %u pods (its events say why; a quota?); "
		 "Sluice tries again soon",
		 have, want);
	slu_free(g->stall_text);
	g->stall_text = slu_strdup(text);
	for (uint32_t i = 0; i < g->owned.n; i++) {
		struct held *h = g->owned.p[i];
		struct slu_buf b = SLU_BUF_INIT(4096);

		if (h->obj->kind == SLU_KIND_JOB && !slu_kjob(h->obj)->suspend &&
		    slu_held_again(slu_kjob(h->obj), &b) == 0) {
			take_back_turn(c, h);
			core_held_patch(c, h, b.p);
		}
		slu_buf_done(&b);
	}
	core_run_take_back(c, r);
}

static void resume_jobs(struct slu_core *c, struct run *r)
{
	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].state == SLOT_CHOSEN && r->slot.p[i].pod &&
		    r->slot.p[i].pod->stand)
			resume(c, r, r->slot.p[i].pod->stand, i, false);
	/* Jobs that were resumed ahead have all their pods: the places are only noted on them. */
	for (uint32_t i = 0; i < r->g->owned.n; i++)
		if (r->g->owned.p[i]->turn == TURN_NONE && core_ahead_is(c, r->g->owned.p[i]))
			resume(c, r, r->g->owned.p[i], 0, true);
}

/* ---- pods ---- */

static void release_pod(struct slu_core *c, struct run *r, struct slot *s)
{
	const struct slu_kmeta *m = &s->pod->k->o.meta;
	struct node *n = node_of(slu_table_finds(&c->cluster->nodes, core_node_name(c, s->node)));
	struct slu_held_place at = {
		.node = core_node_name(c, s->node),
		.host = n && n->k ? slu_kmeta_label(&n->k->o.meta, HOSTNAME) : NULL,
		.nodes = nodes_of(c, r),
		.job = r->g->job,
		.binds = s->pod->binds,
	};
	struct slu_buf b = SLU_BUF_INIT(1u << 20);

	if (!*at.node) { /* the node is gone in the meantime */
		core_slot_to(c, r, s, SLOT_FAILED);
		return;
	}
	core_slot_to(c, r, s, SLOT_BINDING);
	slu_free(s->pod->sent_to);
	s->pod->sent_to = slu_strdup(at.node);
	if (slu_held_release_pod(s->pod->k, &at, &b) < 0) {
		core_slot_to(c, r, s, SLOT_FAILED);
		core_tell(c, s->pod, "FailedScheduling", true,
			  "its node affinity cannot be narrowed to node %s", at.node);
	} else {
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_PATCH,
						       .kind = SLU_KIND_POD,
						       .run = r->id,
						       .serial = s->pod->serial,
						       .ns = m->ns,
						       .name = m->name,
						       .uid = m->uid,
						       .text = b.p,
						       .limit_ns = core_place_limit_ns(c, r->g) });
	}
	slu_buf_done(&b);
}

static bool may_place(const struct slu_core *c, const struct run *r)
{
	if (r->ticket != UINT64_MAX && slu_intents_durable(c->door, r->ticket))
		return true;
	return strcmp(c->cfg->store.outage, "hold") &&
	       (c->store == SLU_JOURNAL_AWAY || c->store == SLU_JOURNAL_BROKEN);
}

/* The node of a slot is gone or takes no such pods any more, or others took the room on it. */
static bool place_is_lost(struct slu_core *c, const struct run *r, const struct slot *s)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	const struct shape *shape = r->role.p[s->role].shape;
	const struct node *n = node_of(
		slu_table_finds(&c->cluster->nodes, core_node_name(c, s->node)));

	if (!n || !n->k || n->away || slu_machine_node_is_down(m, s->node) ||
	    slu_machine_node_is_cordoned(m, s->node))
		return true;
	if (s->pod &&
	    slu_predicate_node(&s->pod->k->spec, n->k, core_drain_covers(c, n)) != SLU_NO_NOT)
		return true;
	for (uint32_t i = 0; i < shape->n_need; i++)
		if (slu_machine_node_free(m, s->node, shape->need[i].resource) < 0)
			return true;
	return false;
}

static bool lost_a_place(struct slu_core *c, const struct run *r)
{
	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].state == SLOT_CHOSEN && place_is_lost(c, r, &r->slot.p[i]))
			return true;
	return false;
}

void core_place_durable(struct slu_core *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < c->runs->open.n; i++) {
		struct run *r = c->runs->open.p[i];

		if (r->state == RUN_OVER)
			continue;
		if (!may_place(c, r)) {
			c->runs->open.p[kept++] = r;
			continue;
		}
		r->waits = false;
		if (r->state == RUN_UNDOING) {
			core_undo_evict(c, r);
			continue;
		}
		/* The decision is outdated: a node or its room went while the store took its time.
		 * Nothing was written to the cluster yet, so the gang is planned again. */
		if (r->state == RUN_INTENT && lost_a_place(c, r)) {
			core_run_take_back(c, r);
			continue;
		}
		if (r->state == RUN_INTENT)
			core_run_to(c, r, RUN_PLACING);
		resume_jobs(c, r);
		for (uint32_t k = 0, n = core_run_short(r) ? 0 : r->slot.n; k < n; k++) {
			struct slot *s = &r->slot.p[k];

			if (s->state == SLOT_CHOSEN && slu_held_gated(&s->pod->k->spec))
				release_pod(c, r, s);
			else if (s->state == SLOT_CHOSEN)
				core_slot_bind(c, r, s);
		}
		core_run_settled(c, r);
	}
	c->runs->open.n = kept;
}

/* ---- answers ---- */

static struct held *find_serial(struct slu_core *c, uint64_t serial)
{
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL); e;
	     e = slu_table_next(&c->groups->held, e))
		if (slu_entry_of(e, struct held, e)->serial == serial)
			return slu_entry_of(e, struct held, e);
	return NULL;
}

static void job_written(struct slu_core *c, const struct slu_rec_written *w)
{
	struct held *h;

	if (w->outcome == SLU_KUBE_OK || w->outcome == SLU_KUBE_NOT_FOUND) /* the watch says so */
		return;
	/* A conflict means that another Job has the name, which the watch tells as well, or that
	 * too many writers met: try again as long as the Job exists. */
	h = find_serial(c, w->serial);
	if (!h || core_ahead_written(c, h, w) || h->turn == TURN_NONE || h->turn == TURN_BEGUN ||
	    h->turn == TURN_TAKEN_BACK)
		return;
	slu_log(SLU_WARN, "job not released; trying again", SLU_STR("job", h->obj->meta.name),
		SLU_STR("ns", h->obj->meta.ns), SLU_STR("err", w->text));
	resume_later(c, h, RETRY_US);
}

void core_held_written(struct slu_core *c, const struct slu_rec_written *w)
{
	struct run *r = run_of(slu_table_find(&c->runs->table, &w->run, sizeof w->run));
	struct slot *s = core_slot_written(r, w);

	if (w->kind == SLU_KIND_JOB) {
		job_written(c, w);
		return;
	}
	if (w->outcome == SLU_KUBE_OK)
		c->count.pods_released++;
	if (!s || s->state != SLOT_BINDING)
		return;
	if (w->outcome == SLU_KUBE_OK && s->pod->binds) {
		/* While the answer was on its way the place was lost, or the Job was deleted. */
		if (place_is_lost(c, r, s) || s->pod->leaving || s->pod->k->o.meta.deleted_us)
			core_slot_to(c, r, s, SLOT_FAILED);
		else
			core_slot_bind(c, r, s);
		if (s->state == SLOT_FAILED)
			core_run_settled(c, r);
		return;
	}
	if (w->outcome == SLU_KUBE_OK || w->outcome == SLU_KUBE_CONFLICT) {
		core_slot_to(c, r, s, SLOT_BOUND);
	} else if (w->outcome == SLU_KUBE_NOT_FOUND) {
		core_slot_to(c, r, s, SLOT_GONE);
	} else {
		c->count.bind_failures++;
		core_slot_to(c, r, s, SLOT_FAILED);
		slu_log(SLU_WARN, "release failed", SLU_STR("pod", s->pod->k->o.meta.name),
			SLU_STR("ns", r->g->ns), SLU_STR("err", w->text));
		core_tell(c, s->pod, "FailedScheduling", true, "release failed: %s", w->text);
	}
	core_run_settled(c, r);
}

/* ---- the answer of the named scheduler ---- */

void core_held_released(struct slu_core *c, struct pod *p)
{
	bool is = p->k && !*p->k->spec.node && core_pod_at(p) && !slu_kpod_ended(p->k) &&
		  !p->k->o.meta.deleted_us;

	if (is == (p->released_us != 0))
		return;
	if (is) {
		if (slu_vec_push(&c->holds->released, p) < 0)
			return;
		p->released_us = c->now_us;
		core_due_by(c, CORE_AT_RELEASED, c->now_us + c->cfg->held.refused_s * 1000000);
		return;
	}
	core_held_gone(c, p);
}

void core_held_gone(struct slu_core *c, struct pod *p)
{
	for (uint32_t i = 0; p->released_us && i < c->holds->released.n; i++)
		if (c->holds->released.p[i] == p) {
			c->holds->released.p[i] = c->holds->released.p[--c->holds->released.n];
			break;
		}
	p->released_us = 0;
}

/* The Job that made the pod, if it can be suspended without ending anything that runs. */
static struct held *idle_job(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);
	struct held *h = o ? core_held_find(c, p->k->o.meta.ns, o->uid) : NULL;
	const struct group *g = p->group;

	if (!h || h->obj->kind != SLU_KIND_JOB || slu_kjob(h->obj)->suspend || !g ||
	    slu_kjob(h->obj)->succeeded > 0)
		return NULL;
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (g->pod.p[i]->k->phase == SLU_PHASE_RUNNING)
			return NULL;
	return h;
}

/* A Job counts a deleted pod as failed.  So a Job that does not run yet is suspended again and
 * planned as a whole; of a Job that runs, a member is given up only if its failure does not end the
 * Job. */
static bool may_evict(struct slu_core *c, const struct pod *p)
{
	const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);
	const struct slu_kobj *owner = o ? core_owner(c, p->k->o.meta.ns, o->uid) : NULL;

	if (!o)
		return false;
	if (!owner || owner->kind != SLU_KIND_JOB)
		return true;
	return slu_kjob(owner)->failed < slu_kjob(owner)->backoff_limit;
}

/* The pod's scheduler refuses its node.  A pin cannot be removed, so another pod must take its place; if that is
 * impossible, an event says so. */
static void pod_refused(struct slu_core *c, struct pod *p)
{
	const struct slu_kmeta *m = &p->k->o.meta;
	const char *why = *p->k->sched_message ? p->k->sched_message : "no reason given";
	struct held *h = idle_job(c, p);
	struct slu_buf b = SLU_BUF_INIT(4096);

	c->count.pods_refused++;
	if (!h && !may_evict(c, p)) {
		core_tell(c, p, "FailedScheduling", true,
			  "scheduler %s refuses it on node %s; delete the pod and make it again: "
			  "it will then be planned again (%s)",
			  p->k->spec.scheduler, core_pod_at(p), why);
		return;
	}
	core_tell(c, p, "Replanned", true, "scheduler %s refuses it on node %s: %s",
		  p->k->spec.scheduler, core_pod_at(p), why);
	slu_log(SLU_WARN, "released pod was refused; its gang is planned again",
		SLU_STR("pod", m->name), SLU_STR("ns", m->ns), SLU_STR("node", core_pod_at(p)),
		SLU_STR("why", why));
	p->refused = true;
	if (p->group && p->node && p->node->handle != SLU_NODE_NONE)
		core_avoid(c, p->group, p->node->handle, AVOID_TIMES * c->cfg->held.refused_s);
	if (h)
		take_back_turn(c, h);
	if (h && slu_held_again(slu_kjob(h->obj), &b) == 0)
		core_held_patch(c, h, b.p);
	else
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_EVICT,
						       .kind = SLU_KIND_POD,
						       .ns = m->ns,
						       .name = m->name,
						       .uid = m->uid });
	slu_buf_done(&b);
}

/* Take back, as a whole, runs whose pods do not appear: none of their pods was released. */
static void watch_appearing(struct slu_core *c, const struct group *g)
{
	for (uint32_t i = g->run.n; i-- > 0;) {
		struct run *r = g->run.p[i];

		if (r->state != RUN_PLACING || !core_run_short(r))
			continue;
		if (stalls_us(c, r) <= c->now_us)
			stalled(c, r);
		else
			core_due_by(c, CORE_AT_RELEASED, c->now_us + LOOK_US);
	}
}

/* Whether all pods of the Job have succeeded while its controller, which may be busy, has not recorded that yet: then
 * no program needs the note of its places. */
static bool note_is_idle(struct slu_core *c, const struct held *h)
{
	return (h->turn == TURN_NOTE_DUE || slu_held_ahead(c->cfg, slu_kjob(h->obj))) &&
	       !slu_kjob(h->obj)->failed &&
	       !slu_table_find(&c->runs->table, &h->run, sizeof h->run);
}

void core_held_watch(struct slu_core *c)
{
	int64_t limit_us = c->cfg->held.refused_s * 1000000;

	if (!core_is_due(c, CORE_AT_RELEASED))
		return;
	core_due_at(c, CORE_AT_RELEASED, CORE_NEVER);
	for (uint32_t i = 0; i < c->holds->released.n; i++) {
		struct pod *p = c->holds->released.p[i];

		if (!p->refused && p->released_us + limit_us <= c->now_us) {
			if (p->k->scheduled == SLU_TRI_FALSE &&
			    !strcmp(p->k->sched_reason, "Unschedulable"))
				pod_refused(c, p);
			p->released_us =
				c->now_us; /* reported already, or its scheduler has not tried it yet */
		}
		if (!p->refused)
			core_due_by(c, CORE_AT_RELEASED, p->released_us + limit_us);
	}
	for (struct slu_entry *e = slu_table_next(&c->groups->held, NULL); e;
	     e = slu_table_next(&c->groups->held, e)) {
		struct held *h = slu_entry_of(e, struct held, e);

		if (h->group && h->obj->kind == SLU_KIND_JOB)
			watch_appearing(c, h->group);
		if (h->ask_us <= c->now_us)
			core_held_again(c, h);
		if (h->ask_us != CORE_NEVER)
			core_due_by(c, CORE_AT_RELEASED, SLU_MAX(h->ask_us, c->now_us + RETRY_US));
		if (h->turn != TURN_RETRYING && h->turn != TURN_NOTE_DUE)
			continue;
		if (h->again_us <= c->now_us && note_is_idle(c, h))
			resume_later(c, h, NOTE_US);
		else if (h->again_us <= c->now_us && h->resume)
			send_resume(c, h);
		else
			core_due_by(c, CORE_AT_RELEASED, h->again_us);
	}
}

/* ---- after a restart ---- */
