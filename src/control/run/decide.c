/* From the queue's decisions to intents, from durable intents to bindings, and their answers. */
#include "control/run/run.h"

#include <stdio.h>

#include "base/qty.h"
#include "control/cluster/cluster.h"
#include "control/group/group.h"

#define EVICT_AGAIN_US INT64_C(10000000)

/* ---- decisions ---- */

/* The next member of a role that has no place yet. */
static struct pod *next_wanted(struct run *r, uint32_t role, uint32_t *from)
{
	for (uint32_t i = *from; i < r->want.n; i++) {
		struct pod *p = r->want.p[i];

		if (p && p->shape == r->role.p[role].shape) {
			r->want.p[i] = NULL;
			*from = i + 1;
			return p;
		}
	}
	*from = r->want.n;
	return NULL;
}

/* Nothing of the run is bound: put it back into the queue at its old place, away from these nodes for a
 * while. */
void core_run_take_back(struct slu_core *c, struct run *r)
{
	struct slu_gang_part *part = slu_reallocarray(NULL, r->slot.n + 1u, sizeof *part);
	struct slu_event ev = {
		.kind = SLU_EV_TAKE_BACK, .job = r->id, .part = part, .until_s = c->now_s + 30
	};
	struct group *g = r->g;

	c->count.taken_back++;
	for (uint32_t i = 0; i < r->slot.n; i++) {
		struct slot *s = &r->slot.p[i];

		if (part && s->state == SLOT_FAILED && *core_node_name(c, s->node))
			part[ev.n_part++] = (struct slu_gang_part){ s->node, s->role, 1 };
		if (s->pod) {
			core_node_leave(c, s->pod);
			if (slu_vec_push(&r->want, s->pod) < 0)
				s->pod->run = NULL;
		}
	}
	r->slot.n = 0;
	memset(r->n_slot, 0, sizeof r->n_slot);
	r->appears = false;
	r->start_s = r->end_s = r->decided_us = r->expect_us = 0;
	slu_free(r->nodes);
	r->nodes = NULL;
	core_run_to(c, r, RUN_QUEUED);
	core_group_stops(g, r);
	core_intents_settle(c, r, SLU_INTENT_UNDONE);
	core_apply(c, &ev);
	slu_free(part);
	slu_log(SLU_WARN, "gang taken back", SLU_STR("job", g->id.name), SLU_STR("ns", g->ns));
	core_group_dirty(c, g);
}

void core_runs_recall(struct slu_core *c, struct group *g)
{
	for (uint32_t i = g->run.n; i-- > 0;) {
		struct run *r = g->run.p[i];
		bool leaves = false;

		for (uint32_t k = 0; k < r->slot.n && !leaves; k++)
			leaves = r->slot.p[k].state == SLOT_CHOSEN && r->slot.p[k].pod &&
				 r->slot.p[k].pod->leaving;
		if (leaves && r->state == RUN_INTENT)
			core_run_take_back(c, r);
		for (uint32_t k = r->slot.n; leaves && r->state == RUN_RUNNING && k-- > 0;)
			if (r->slot.p[k].state == SLOT_CHOSEN && r->slot.p[k].pod->leaving) {
				core_slot_drop(c, r, k);
				core_run_settled(c, r);
				break; /* the group is looked at again */
			}
	}
}

bool core_run_short(const struct run *r)
{
	uint32_t need = 0;

	if (!r->appears)
		return false;
	for (uint32_t i = 0; i < r->role.n; i++)
		need += r->role.p[i].min;
	return r->slot.n - r->n_slot[SLOT_VACANT] < SLU_MIN(need, r->slot.n);
}

/* Whether two pods that the queue started at once may not share a node: it looked at each alone. */
static bool start_clashes(struct slu_core *c, struct run *r)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	bool any = false;

	for (uint32_t i = 0; i < r->slot.n; i++) {
		struct slot *s = &r->slot.p[i];
		struct node *n = (struct node *)(uintptr_t)slu_machine_node_tag(m, s->node);

		const struct pod *other = s->pod ? core_repels_clash(c, n, s->pod) : NULL;

		if (!s->pod || (!other && !core_pod_clashes(c, n, s->pod)))
			continue;
		any = true;
		/* Otherwise a pod of another gang has changed the node, or which nodes are
		 * eligible, since the decision. */
		if (core_ports_clash(c, n, s->pod) || core_zones_full(n, s->pod) ||
		    (other && other->run == r))
			core_slot_to(c, r, s, SLOT_FAILED); /* look elsewhere */
	}
	return any;
}

/* The members that got places need records of their own, in the order in which they were gathered.  0 or
 * -ENOMEM. */
static int divide_lots(struct slu_core *c, struct run *r, const struct slu_decision *d)
{
	uint32_t need[SLU_ROLES_MAX] = { 0 };
	uint32_t n = r->want.n;

	for (uint32_t i = 0; i < d->n_part; i++)
		need[c->dec.part.p[d->part + i].role] += c->dec.part.p[d->part + i].slots;
	for (uint32_t i = 0; i < n; i++) {
		struct pod *p = r->want.p[i];
		uint32_t k = 0;

		while (k < r->role.n && r->role.p[k].shape != p->shape)
			k++;
		if (k < r->role.n && core_lot_divide(c, p, need[k]) < 0)
			return -ENOMEM;
	}
	if (r->want.n > n)
		qsort(r->want.p, r->want.n, sizeof *r->want.p, core_by_age);
	return 0;
}

static void start_run(struct slu_core *c, struct run *r, const struct slu_decision *d)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	slu_cleanup(slu_freep) uint32_t *from = slu_calloc(r->role.n + 1u, sizeof *from);
	uint32_t slots = 0;

	for (uint32_t i = 0; i < d->n_part; i++)
		slots += c->dec.part.p[d->part + i].slots;
	if (!from || slu_vec_reserve(&r->slot, slots) < 0 || divide_lots(c, r, d) < 0) {
		struct slu_event ev = { .kind = SLU_EV_TAKE_BACK, .job = r->id };

		core_apply(c, &ev); /* no memory: waits again at its old place */
		return;
	}
	for (uint32_t i = 0; i < d->n_part; i++) {
		const struct slu_gang_part *part = &c->dec.part.p[d->part + i];
		struct node *n = (struct node *)(uintptr_t)slu_machine_node_tag(m, part->node);

		for (uint32_t k = 0; k < part->slots; k++) {
			struct pod *p = next_wanted(r, part->role, &from[part->role]);

			(void)core_slot_add(
				r, (struct slot){ /* there is room */
						  .node = part->node,
						  .role = part->role,
						  .pod = p,
						  .state = p ? SLOT_CHOSEN : SLOT_VACANT });
			if (p) {
				p->slot_at = r->slot.n - 1;
				core_node_enter(c, n, p);
			}
		}
	}
	for (uint32_t i = 0; i < r->want.n; i++)
		if (r->want.p[i])
			r->want.p[i]->run = NULL; /* more than fitted: they follow */
	r->want.n = 0;
	if (start_clashes(c, r)) {
		core_run_take_back(c, r);
		return;
	}
	core_run_to(c, r, RUN_INTENT);
	r->start_s = d->start_s;
	r->end_s = d->end_s;
	r->decided_us = c->now_us;
	core_group_starts(c, r->g, r);
	core_run_reason(r, NULL);
	core_after_news(c, r->g->ns);
	if (r->gang)
		c->count.gangs_started++;
	slu_log(SLU_INFO, "gang decided", SLU_STR("job", r->g->id.name), SLU_STR("ns", r->g->ns),
		SLU_I64("pods", r->slot.n), SLU_STR("how", slu_how_name(d->how)),
		SLU_I64("waited_ms", (c->now_us - r->g->first_seen_us) / 1000));
	core_run_intend(c, r);
	core_group_dirty(c, r->g);
}

static void plan_changed(struct slu_core *c, struct run *r, const struct slu_decision *d)
{
	struct slu_store_plan p = { .job = r->id,
				    .seq = c->runs->plan_seq = SLU_MAX(c->runs->plan_seq + 1,
								       c->now_us),
				    .at_us = c->now_us,
				    .planned_s = d->start_s == SLU_TIME_NONE ? 0 : d->start_s,
				    .cause = slu_cause_name(d->cause) };

	bool known = r->was_cause && d->start_s == r->was_s; /* no news after a restart */

	r->planned_s = d->start_s;
	r->cause = known ? r->was_cause : slu_cause_name(d->cause);
	r->was_cause = NULL;
	if (!r->promised_s && d->start_s != SLU_TIME_NONE)
		r->promised_s = d->start_s;
	if (d->cause != SLU_CAUSE_STARTED)
		core_group_keep(c, r->g);
	if (!r->gang || known)
		return;
	if (slu_batch_put_plan(slu_intents_batch(c->door), &p) < 0)
		slu_log(SLU_WARN, "plan not saved in the store", SLU_STR("job", r->g->id.name));
}

/* Why no node may take the first role that none may take. */
static const char *why_no_node(struct slu_core *c, const struct run *r)
{
	const char *text = "";

	for (uint32_t i = 0; i < r->role.n && !*text; i++)
		if (r->role.p[i].shape)
			text = core_nowhere(c, r->role.p[i].shape);
	return text;
}

/* Rewrite the queue's sentence for users, who gave their roles no numbers. */
static void cannot_run(struct slu_core *c, struct run *r, const char *text)
{
	struct slu_buf b = SLU_BUF_INIT(4096);

	if (r->role.n == 1 && !strncmp(text, "role 0: ", 8))
		text += 8;
	slu_buf_puts(&b, text);
	if (r->never)
		slu_buf_puts(&b, why_no_node(c, r));
	core_run_reason(r, b.p ? b.p : text);
	slu_log(SLU_INFO, "gang cannot run", SLU_STR("job", r->g->id.name), SLU_STR("ns", r->g->ns),
		SLU_STR("why", b.p ? b.p : text));
	slu_buf_done(&b);
}

/* The decision has bare seconds; people get the sentence with the date. */
static void expired(struct slu_core *c, struct run *r, const char *text)
{
	struct slu_why why = { 0 };

	if (slu_queue_why(c->q, c->now_s, r->id, &why, NULL) == 0 && why.reason)
		text = why.reason;
	cannot_run(c, r, text);
	slu_why_done(&why);
}

static void decided(struct slu_core *c, const struct slu_decision *d)
{
	struct run *r = run_of(slu_table_find(&c->runs->table, &d->job, sizeof d->job));
	const char *text = d->text == UINT32_MAX ? "" : slu_decision_text(&c->dec, d);

	if (!r)
		return;
	if (d->kind == SLU_DEC_REFUSED && r->state != RUN_QUEUED)
		return; /* no room to grow now; it runs on as it is */
	switch (d->kind) {
	case SLU_DEC_START:
		start_run(c, r, d);
		break;
	case SLU_DEC_PLAN:
		plan_changed(c, r, d);
		break;
	case SLU_DEC_NEVER:
	case SLU_DEC_REFUSED:
	case SLU_DEC_EXPIRED:
		r->never = d->kind != SLU_DEC_REFUSED;
		r->refused = d->kind == SLU_DEC_REFUSED;
		if (d->kind == SLU_DEC_EXPIRED)
			expired(c, r, text);
		else
			cannot_run(c, r, text);
		r->g->told_us = 0; /* say it at once */
		if (r->gang)
			core_group_keep(c, r->g);
		break;
	case SLU_DEC_STATE:
		r->never = r->refused = false;
		core_run_reason(r, text);
		if (r->gang)
			core_group_keep(c, r->g);
		break;
	case SLU_DEC_OVERRUN:
		slu_log(SLU_INFO, "gang has outlived its time limit", SLU_STR("job", r->g->id.name),
			SLU_STR("ns", r->g->ns));
		break;
	case SLU_DEC_RESIZED:
		core_elastic_grown(c, r, d);
		break;
	case SLU_DEC_MOVED: /* the store knows where it is promised */
		core_group_keep(c, r->g);
		break;
	case SLU_DEC_LOST:
		break; /* the cluster tells which pods are gone */
	}
}

void core_decisions(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->dec.v.n; i++) { /* carrying one out may append others */
		struct slu_decision d = c->dec.v.p[i];

		decided(c, &d);
	}
	slu_decisions_clear(&c->dec);
}

/* ---- bindings ---- */

int64_t core_place_limit_ns(const struct slu_core *c, const struct group *g)
{
	return (g->wish.timeout_s ? g->wish.timeout_s : c->cfg->place.retry_s) * 1000000000;
}

void core_slot_bind(struct slu_core *c, struct run *r, struct slot *s)
{
	const struct slu_kmeta *m = &s->pod->k->o.meta;
	struct slu_rec_write w = { .verb = SLU_WRITE_BIND,
				   .kind = SLU_KIND_POD,
				   .run = r->id,
				   .serial = s->pod->serial,
				   .ns = m->ns,
				   .name = m->name,
				   .uid = m->uid,
				   .node = core_node_name(c, s->node),
				   .reporter = s->pod->k->spec.scheduler,
				   .limit_ns = core_place_limit_ns(c, r->g) };

	if (!*w.node) { /* the node is gone in the meantime */
		core_slot_to(c, r, s, SLOT_FAILED);
		return;
	}
	core_slot_to(c, r, s, SLOT_BINDING);
	/* Without memory no answer comes: it counts as one that failed, and the gang is taken back
	 * once the others are answered. */
	if (core_write(c, &w) < 0)
		core_slot_to(c, r, s, SLOT_FAILED);
}

/* ---- answers ---- */

/* How many members make a run whole. */
static uint32_t whole_size(const struct run *r)
{
	return r->gang ? SLU_MAX((uint32_t)r->g->wish.min, 1u) : SLU_MAX(r->slot.n, 1u);
}

/* The times that kubelets report survive a restart, but their clocks differ from ours: a time before our
 * decision is not believed. */
static int64_t whole_at_us(const struct slu_core *c, const struct run *r, int64_t said_us)
{
	if (r->decided_us && said_us < r->decided_us)
		return c->now_us;
	return SLU_MIN(SLU_MAX(said_us, r->start_s * 1000000), c->now_us);
}

/* How many members of the run are running; `last_us` becomes the latest start among them. */
static uint32_t count_running(const struct slu_core *c, const struct run *r, int64_t *last_us)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->slot.n; i++) {
		const struct pod *p = r->slot.p[i].pod;

		if (!p || p->k->phase != SLU_PHASE_RUNNING)
			continue;
		n++;
		*last_us = SLU_MAX(*last_us, p->k->start_us ? p->k->start_us : c->now_us);
	}
	return n;
}

/* The moment at which enough members ran.  A member that took the place of a lost one on another node is a
 * follower: a gang is whole with its followers. */
static void note_whole(struct slu_core *c, struct run *r)
{
	uint32_t n = 0;
	int64_t last_us = 0;

	if (r->whole_s)
		return;
	if (r->gang)
		for (uint32_t i = 0; i < r->g->run.n; i++)
			n += count_running(c, r->g->run.p[i], &last_us);
	else
		n = count_running(c, r, &last_us);
	if (n >= whole_size(r))
		r->whole_s = whole_at_us(c, r, last_us) / 1000000;
}

/* Whether Sluice bound the pod, or the pod asked it to: Sluice ends no pod that another scheduler placed. */
static bool placed_by_us(const struct slu_core *c, const struct run *r, const struct pod *p)
{
	bool named = r->decided_us != 0;

	for (uint32_t i = 0; i < c->cfg->scheduler_names.n && !named; i++)
		named = !strcmp(p->k->spec.scheduler, c->cfg->scheduler_names.p[i]);
	return named;
}

/* Evict the members of a run that has reached its limit.  A disruption budget may refuse an eviction, and a
 * request may be lost: later calls evict again the members that are still there, without another event. */
static void evict_overdue(struct slu_core *c, struct run *r, int64_t limit)
{
	bool first = !r->evict_us;
	char text[SLU_QTY_TEXT];

	if (!first && c->now_us < r->evict_us) {
		core_due_by(c, CORE_AT_LIMIT, r->evict_us);
		return;
	}
	r->evict_us = c->now_us + EVICT_AGAIN_US;
	core_due_by(c, CORE_AT_LIMIT, r->evict_us);
	if (first)
		slu_log(SLU_INFO, "gang reached its time limit", SLU_STR("job", r->g->id.name),
			SLU_STR("ns", r->g->ns), SLU_I64("limit_s", limit));
	for (uint32_t i = 0; i < r->slot.n; i++) {
		struct pod *p = r->slot.p[i].pod;

		if (!p || p->k->o.meta.deleted_us || !placed_by_us(c, r, p))
			continue;
		if (first)
			core_tell(
				c, p, "DeadlineExceeded", true,
				"ran for its limit of %s; Sluice evicts it (jobs.enforceDeadlines)",
				slu_duration_text(limit, text));
		core_evict(c, p);
	}
}

void core_deadlines(struct slu_core *c)
{
	if (core_is_due(c, CORE_AT_LIMIT))
		core_due_at(c, CORE_AT_LIMIT, CORE_NEVER);
	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL);
	     e && c->cfg->jobs.enforce_deadlines; e = slu_table_next(&c->runs->table, e)) {
		struct run *r = run_of(e);
		int64_t limit = r->g->wish.duration_s;

		if (r->state != RUN_RUNNING || !limit)
			continue;
		note_whole(c, r);
		if (!r->whole_s || c->now_s < r->whole_s + limit)
			continue;
		evict_overdue(c, r, limit);
	}
}

/* Whether a Job of the run was resumed and the mirror does not show that yet: its intent stays open. */
static bool resumes(const struct slu_core *c, const struct run *r)
{
	for (uint32_t i = 0; i < r->g->owned.n; i++) {
		const struct held *h = r->g->owned.p[i];

		if (core_held_resumed(h, r->id) && !slu_held_ahead(c->cfg, slu_kjob(h->obj)))
			return true;
	}
	return false;
}

void core_run_settled(struct slu_core *c, struct run *r)
{
	uint32_t failed = r->n_slot[SLOT_FAILED], bound = r->n_slot[SLOT_BOUND];

	if (r->state == RUN_UNDOING) {
		core_undo_answered(c, r);
		return;
	}
	if (r->state == RUN_QUEUED || r->state == RUN_INTENT || r->state == RUN_OVER ||
	    r->n_slot[SLOT_CHOSEN] || r->n_slot[SLOT_BINDING] || core_run_short(r))
		return;
	if (failed && r->state == RUN_PLACING) {
		if (bound)
			core_run_undo(c, r);
		else
			core_run_take_back(c, r);
		return;
	}
	for (uint32_t i = r->slot.n; failed && i-- > 0;) /* replacements that cannot be bound */
		if (r->slot.p[i].state == SLOT_FAILED) {
			core_group_dirty(c, r->g);
			core_slot_drop(c, r, i);
		}
	if (r->state == RUN_OVER)
		return;
	if (r->state == RUN_PLACING) {
		core_run_to(c, r, RUN_RUNNING);
		r->appears = false;
		r->g->undone = r->g->stalled = 0;
		r->g->begun |= r->gang;
		slu_log(SLU_INFO, "gang placed", SLU_STR("job", r->g->id.name),
			SLU_STR("ns", r->g->ns), SLU_I64("pods", bound),
			SLU_I64("took_us", c->now_us - r->decided_us));
		if (r->gang && core_run_keep(c, r, SLU_STORE_RUNNING) < 0)
			slu_log(SLU_WARN, "job not saved in the store",
				SLU_STR("job", r->g->id.name));
	}
	if (!resumes(c, r))
		core_intents_settle(c, r, SLU_INTENT_DONE);
}

void core_slot_answered(struct slu_core *c, const struct slu_rec_written *w)
{
	struct run *r = run_of(slu_table_find(&c->runs->table, &w->run, sizeof w->run));
	struct slot *s = core_slot_written(r, w);

	if (w->outcome == SLU_KUBE_OK)
		c->count.pods_bound++;
	if (!s || s->state != SLOT_BINDING)
		return; /* gone, or seen bound in the meantime */
	switch (w->outcome) {
	case SLU_KUBE_OK:
	case SLU_KUBE_CONFLICT: /* bound already: the watch says where */
	case SLU_KUBE_EXISTS:
		core_slot_to(c, r, s, SLOT_BOUND);
		break;
	case SLU_KUBE_NOT_FOUND:
		core_slot_to(c, r, s, SLOT_GONE);
		break;
	default:
		c->count.bind_failures++;
		core_slot_to(c, r, s, SLOT_FAILED);
		slu_log(SLU_WARN, "binding failed", SLU_STR("pod", s->pod->k->o.meta.name),
			SLU_STR("ns", r->g->ns), SLU_STR("err", w->text));
		core_tell(c, s->pod, "FailedScheduling", true, "binding failed: %s", w->text);
	}
	core_run_settled(c, r);
}
