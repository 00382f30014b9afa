/* Runs: the jobs of the queue.  A group's gang is one, each later member another. */
#include "control/run/run.h"

#include <stdio.h>

#include "control/cluster/cluster.h"
#include "control/group/group.h"

#define GATHER_US 200000 /* longest time between the ends of members that end together */

struct run *core_run_new(struct slu_core *c, struct group *g, bool gang)
{
	struct run *r = slu_calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->id = gang && g->reuse ? g->reuse : ++c->next_job;
	if (gang)
		g->reuse = 0;
	r->g = g;
	r->gang = gang;
	r->planned_s = SLU_TIME_NONE;
	if (gang) {
		r->promised_s = g->promised_s;
		r->cause = g->plan_cause;
		g->promised_s = 0;
		g->plan_cause = NULL;
	}
	r->e.key = &r->id;
	r->e.n = sizeof r->id;
	if (slu_vec_reserve(&g->run, g->run.n + 1) < 0 ||
	    slu_table_add(&c->runs->table, &r->e) < 0) {
		slu_free(r);
		return NULL;
	}
	g->run.p[g->run.n++] = r;
	if (gang)
		g->job = r->id;
	return r;
}

static void forget_roles(struct slu_core *c, struct run *r)
{
	for (uint32_t i = 0; i < r->role.n; i++)
		core_shape_put(c, r->role.p[i].shape);
	r->role.n = 0;
}

/* Note how many gangs are still ending; with the last of them the timer stops. */
static void still_ending(struct slu_core *c, uint32_t n)
{
	c->runs->n_ending = n;
	if (!n)
		core_due_at(c, CORE_AT_ENDING, CORE_NEVER);
}

/* ---- states ---- */

void core_run_to(struct slu_core *c, struct run *r, enum run_state to)
{
	static const uint32_t may[] = {
		[RUN_QUEUED] = CORE_BIT(RUN_QUEUED) | CORE_BIT(RUN_INTENT) | CORE_BIT(RUN_RUNNING) |
			       CORE_BIT(RUN_OVER),
		[RUN_INTENT] = CORE_BIT(RUN_QUEUED) | CORE_BIT(RUN_PLACING) | CORE_BIT(RUN_OVER),
		[RUN_PLACING] = CORE_BIT(RUN_QUEUED) | CORE_BIT(RUN_RUNNING) |
				CORE_BIT(RUN_UNDOING) | CORE_BIT(RUN_OVER),
		[RUN_RUNNING] = CORE_BIT(RUN_PLACING) | CORE_BIT(RUN_RUNNING) |
				CORE_BIT(RUN_UNDOING) | CORE_BIT(RUN_OVER),
		[RUN_UNDOING] = CORE_BIT(RUN_RUNNING) | CORE_BIT(RUN_OVER),
		[RUN_OVER] = 0,
	};

	core_changes(c, "run", may[r->state], r->state, to);
	r->state = to;
}

void core_slot_to(struct slu_core *c, struct run *r, struct slot *s, enum slot_state to)
{
	static const uint32_t may[] = {
		[SLOT_VACANT] = CORE_BIT(SLOT_CHOSEN),
		[SLOT_CHOSEN] = CORE_BIT(SLOT_BINDING) | CORE_BIT(SLOT_BOUND) |
				CORE_BIT(SLOT_FAILED) | CORE_BIT(SLOT_VACANT),
		[SLOT_BINDING] = CORE_BIT(SLOT_BINDING) | CORE_BIT(SLOT_BOUND) |
				 CORE_BIT(SLOT_FAILED) | CORE_BIT(SLOT_GONE) |
				 CORE_BIT(SLOT_VACANT),
		[SLOT_BOUND] = CORE_BIT(SLOT_VACANT),
		[SLOT_FAILED] = CORE_BIT(SLOT_BOUND) | CORE_BIT(SLOT_VACANT),
		[SLOT_GONE] = CORE_BIT(SLOT_BOUND) | CORE_BIT(SLOT_VACANT),
	};

	core_changes(c, "slot", may[s->state], s->state, to);
	r->n_slot[s->state]--;
	r->n_slot[to]++;
	s->state = to;
}

int core_slot_add(struct run *r, struct slot s)
{
	int rc = slu_vec_push(&r->slot, s);

	if (rc == 0)
		r->n_slot[s.state]++;
	return rc;
}

void core_run_over(struct slu_core *c, struct run *r)
{
	struct group *g = r->g;

	if (r->ending && r->ending == c->runs->ending_round && c->runs->n_ending)
		still_ending(c, c->runs->n_ending - 1);
	for (uint32_t i = 0; i < r->want.n; i++)
		if (r->want.p[i]->run == r)
			r->want.p[i]->run = NULL;
	for (uint32_t i = 0; i < r->slot.n; i++)
		if (r->slot.p[i].pod && r->slot.p[i].pod->run == r)
			r->slot.p[i].pod->run = NULL;
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i] == r) {
			memmove(&g->run.p[i], &g->run.p[i + 1],
				(--g->run.n - i) * sizeof(struct run *));
			break;
		}
	slu_table_del(&c->runs->table, &r->e);
	core_near_free(c, r);
	forget_roles(c, r);
	r->slot.n = r->want.n = r->intent.n = 0;
	memset(r->n_slot, 0, sizeof r->n_slot);
	core_run_to(c, r, RUN_OVER);
	r->next_over = c->runs->over;
	c->runs->over = r;
}

static void run_free(struct run *r)
{
	slu_vec_done(&r->role);
	slu_vec_done(&r->want);
	slu_vec_done(&r->slot);
	slu_vec_done(&r->intent);
	slu_free(r->nodes);
	slu_free(r->reason);
	slu_free(r);
}

void core_runs_reap(struct slu_core *c)
{
	uint32_t kept = 0;

	if (!c->runs->over)
		return;
	for (uint32_t i = 0; i < c->runs->open.n; i++)
		if (c->runs->open.p[i]->state != RUN_OVER)
			c->runs->open.p[kept++] = c->runs->open.p[i];
	c->runs->open.n = kept;
	for (struct run *r = c->runs->over, *next; r; r = next) {
		next = r->next_over;
		run_free(r);
	}
	c->runs->over = NULL;
}

void core_run_reason(struct run *r, const char *text)
{
	slu_free(r->reason);
	r->reason = text && *text ? slu_strdup(text) : NULL;
}

/* ---- what the queue is told ---- */

struct asked {
	struct slu_gang_role role[SLU_ROLES_MAX];
	struct slu_gang_req req;
	struct slu_job_spec spec;
	struct slu_nodeset *nodes[SLU_ROLES_MAX]; /* made for this one question */
	char name[400], reservation[400];
};

/* The limit of the group; 0: the queue's default.  A service has no end unless a user names one. */
static int64_t wish_limit(const struct slu_group_wish *w)
{
	return w->duration_s ? w->duration_s : w->serves ? SLU_LIMIT_MAX : 0;
}

/* The group was in its queue before the restart. */
static bool is_known(const struct slu_core *c, const struct group *g)
{
	const struct core_memory *m = c->recovered ? NULL : core_remembered(c, g);

	return m && m->met && !m->refused && m->state != SLU_STORE_GATHERING;
}

static void request_of(struct slu_core *c, struct run *r, struct asked *a)
{
	struct group *g = r->g;
	const struct slu_group_wish *w = &g->wish;
	int policy = slu_gang_policy_find(c->cfg->match.policy);

	*a = (struct asked){ 0 };
	for (uint32_t i = 0; i < r->role.n; i++) {
		const struct role *from = &r->role.p[i];
		struct slu_nodeset *all = r->near ? r->near : from->shape->where->set;

		a->nodes[i] = core_avoid_nodes(g, all);
		a->role[i] = (struct slu_gang_role){
			.min = from->min,
			.max = from->max,
			.need = from->shape->need,
			.n_need = from->shape->n_need,
			.nodes = a->nodes[i] ? a->nodes[i] : all,
			.prefer = from->shape->where->prefer,
			.flags = (from->shape->alone ? SLU_ROLE_ALONE : 0u) |
				 (w->exclusive ? SLU_ROLE_EXCLUSIVE : 0u),
		};
		for (uint32_t k = 0; k < r->role.n; k++)
			if (core_shapes_apart(from->shape, r->role.p[k].shape))
				a->role[i].apart |= UINT64_C(1) << k;
		if (a->role[i].apart)
			a->role[i].flags |= SLU_ROLE_APART;
	}
	a->req = (struct slu_gang_req){ .role = a->role,
					.n_role = r->role.n,
					.level = -1,
					.policy = policy < 0 ? SLU_GANG_FIRST
							     : (enum slu_gang_policy)policy };
	if (*w->level && r->gang) {
		a->req.level = slu_machine_level_find(slu_queue_machine(c->q), w->level);
		if (w->level_required)
			a->req.flags |= SLU_GANG_CLOSE_REQUIRED;
	}
	snprintf(a->name, sizeof a->name, "%s/%s", g->ns, g->id.name);
	snprintf(a->reservation, sizeof a->reservation, "%s/%s", g->ns, w->reservation);
	a->spec = (struct slu_job_spec){
		.id = r->id,
		.name = a->name,
		.user = g->user,
		.queue = *w->queue ? w->queue : c->cfg->queue[0].name,
		.priority = w->priority,
		.first_seen_us = g->first_seen_us,
		.limit_s = wish_limit(w),
		.begin_s = w->begin_s ? w->begin_s : SLU_TIME_NONE,
		.deadline_s = w->deadline_s ? w->deadline_s : SLU_TIME_NONE,
		.reservation = *w->reservation ? a->reservation : NULL,
		.held = g->on_hold,
		.member = !r->gang,
		.stands = r->stands,
		.known = is_known(c, g),
		.req = &a->req,
	};
}

static void asked_done(struct asked *a)
{
	for (uint32_t i = 0; i < SLU_LEN(a->nodes); i++)
		slu_nodeset_unref(a->nodes[i]);
}

/* Members that start together. */
static uint64_t slots_of(const struct run *r)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < r->role.n; i++)
		n += r->role.p[i].min;
	return n;
}

static void note_told(const struct slu_core *c, struct run *r)
{
	const struct slu_group_wish *w = &r->g->wish;

	r->told.priority = w->priority;
	r->told.limit_s = wish_limit(w);
	r->told.begin_s = w->begin_s;
	r->told.deadline_s = w->deadline_s;
	snprintf(r->told.reservation, sizeof r->told.reservation, "%s", w->reservation);
	snprintf(r->told.queue, sizeof r->told.queue, "%s",
		 *w->queue ? w->queue : c->cfg->queue[0].name);
	memcpy(r->told.level, w->level, sizeof r->told.level);
	r->told.required = w->level_required;
	r->told.exclusive = w->exclusive;
	r->told.slots = slots_of(r);
}

int core_run_submit(struct slu_core *c, struct run *r)
{
	struct slu_event ev = { .kind = r->submitted ? SLU_EV_REQUEST : SLU_EV_SUBMIT,
				.job = r->id };
	/* A change of the request voids the promise; the queue is told its time, so that the
	 * promise stands if it still can. */
	int64_t promise_s = r->submitted && r->planned_s != SLU_TIME_NONE ? r->planned_s
									  : c->runs->promise_s;
	struct asked a;
	int rc = core_near_set(c, r);

	if (rc < 0)
		return rc;
	if (r->submitted && r->never) { /* of what it asked for before */
		r->never = false;
		core_run_reason(r, NULL);
	}
	request_of(c, r, &a);
	ev.spec = &a.spec;
	rc = core_apply(c, &ev);
	asked_done(&a);
	if (!rc && promise_s)
		core_apply(c, &(struct slu_event){ .kind = SLU_EV_PROMISE,
						   .job = r->id,
						   .start_s = promise_s,
						   .part = c->runs->promise.p,
						   .n_part = c->runs->promise.n });
	if (c->runs->promise_s) {
		r->was_s = promise_s;
		r->was_cause = c->runs->promise_cause;
	}
	c->runs->promise_s = 0; /* only the first of the group's has it */
	c->runs->promise.n = 0;
	if (rc)
		return rc;
	if (!r->submitted)
		note_told(c, r);
	r->submitted = true;
	return 0;
}

void core_run_hold(struct slu_core *c, struct run *r)
{
	struct slu_event ev = { .kind = r->g->on_hold ? SLU_EV_HOLD : SLU_EV_RELEASE,
				.job = r->id };

	if (r->never) { /* the queue says so again if it is so when the job is released */
		r->never = false;
		core_run_reason(r, NULL);
	}
	core_apply(c, &ev);
}

static struct run *stands_for(const struct group *g)
{
	struct run *best = NULL;

	for (uint32_t i = 0; i < g->run.n; i++) {
		struct run *r = g->run.p[i];

		if (r->state == RUN_QUEUED)
			continue;
		if (r->gang)
			return r;
		if (!best || (r->stands && !best->stands))
			best = r;
	}
	return best;
}

void core_group_stands(struct slu_core *c, struct group *g)
{
	const struct run *first = stands_for(g);

	for (uint32_t i = 0; i < g->run.n; i++) {
		struct run *r = g->run.p[i];
		struct slu_event ev = { .kind = SLU_EV_STANDS, .job = r->id };

		if (r->gang || r->stands == (!first || r == first))
			continue;
		r->stands = !r->stands;
		ev.size = r->stands;
		if (r->submitted && r->state == RUN_QUEUED)
			(void)core_run_submit(c, r); /* logged */
		else if (r->submitted)
			(void)core_apply(c, &ev);
	}
}

/* ---- wishes that change ---- */

int64_t core_run_limit(const struct slu_core *c, const struct run *r)
{
	struct slu_job_view v;

	return slu_queue_job(c->q, r->id, &v) == 0 ? v.limit_s : r->g->wish.duration_s;
}

/* What the queue takes for a limit that is not named. */
static int64_t default_limit(const struct slu_core *c, const char *queue)
{
	const struct slu_queue_conf *conf = core_queue_conf(c, queue);

	return conf ? conf->default_duration : SLU_LIMIT_MAX;
}

static int64_t longest(const struct slu_core *c, const char *queue)
{
	const struct slu_queue_conf *conf = core_queue_conf(c, queue);

	return conf && conf->limit.max_duration ? conf->limit.max_duration : SLU_LIMIT_MAX;
}

/* The history says why a plan changed, and when. */
static void keep_change(struct slu_core *c, const struct run *r, const char *fmt, int64_t was,
			int64_t is)
{
	char text[120];
	struct slu_store_plan p = { .job = r->id,
				    .seq = c->runs->plan_seq = SLU_MAX(c->runs->plan_seq + 1,
								       c->now_us),
				    .at_us = c->now_us,
				    .planned_s = r->planned_s == SLU_TIME_NONE ? 0 : r->planned_s,
				    .cause = text };

	snprintf(text, sizeof text, fmt, was, is);
	slu_log(SLU_INFO, "gang changed", SLU_STR("job", r->g->id.name), SLU_STR("ns", r->g->ns),
		SLU_STR("what", p.cause));
	if (r->gang && c->door && slu_batch_put_plan(slu_intents_batch(c->door), &p) < 0)
		slu_log(SLU_WARN, "plan not saved in the store", SLU_STR("job", r->g->id.name));
}

/* Cancel the job and submit it again at its old place, for changes that the queue has no event for. */
static void submit_again(struct slu_core *c, struct run *r)
{
	struct slu_job_view v;

	if (slu_queue_job(c->q, r->id, &v) == 0)
		core_apply(c, &(struct slu_event){ .kind = SLU_EV_CANCEL, .job = r->id });
	r->submitted = r->never = r->refused = false;
	r->planned_s = SLU_TIME_NONE;
	core_run_reason(r, NULL);
	(void)core_run_submit(c, r); /* logged; it is tried again when its group changes */
}

/* Whether the wish for whole nodes or for closeness has changed. */
static bool reshaped(const struct run *r)
{
	const struct slu_group_wish *w = &r->g->wish;

	return r->told.exclusive != w->exclusive || strcmp(r->told.level, w->level) ||
	       (*w->level && r->told.required != w->level_required);
}

/* Whether the run is in the queue and within the queue's size limit, which only new jobs are checked for. */
static bool admits(const struct slu_core *c, const struct run *r, const char *queue)
{
	const struct slu_queue_conf *conf = core_queue_conf(c, queue);
	struct slu_job_view j;

	if (slu_queue_job(c->q, r->id, &j) < 0)
		return false;
	return !conf || !conf->limit.max_slots || slots_of(r) <= (uint64_t)conf->limit.max_slots;
}

bool core_run_wishes(struct slu_core *c, struct run *r)
{
	const struct slu_group_wish *w = &r->g->wish;
	bool queued = r->state == RUN_QUEUED;
	/* What runs stays in its queue, whatever its objects name now. */
	const char *queue = !queued ? r->told.queue : *w->queue ? w->queue : c->cfg->queue[0].name;
	int64_t was = r->told.limit_s ? r->told.limit_s : default_limit(c, r->told.queue);
	int64_t is = wish_limit(w) ? wish_limit(w) : default_limit(c, queue);
	struct slu_job_view v;

	if (!r->submitted)
		return false;
	if (queued &&
	    (reshaped(r) || (r->gang && slots_of(r) != r->told.slots && !admits(c, r, queue)) ||
	     r->told.begin_s != w->begin_s || r->told.deadline_s != w->deadline_s ||
	     strcmp(r->told.queue, queue) || strcmp(r->told.reservation, w->reservation) ||
	     (was != is && r->gang && is > longest(c, queue)) ||
	     (was != is && slu_queue_job(c->q, r->id, &v) < 0))) {
		if (was != is)
			keep_change(c, r, "limit %" PRId64 " s becomes %" PRId64 " s", was, is);
		submit_again(c, r);
		return true;
	}
	if (r->told.priority != w->priority && queued) {
		core_apply(c, &(struct slu_event){ .kind = SLU_EV_PRIORITY,
						   .job = r->id,
						   .priority = w->priority });
		keep_change(c, r, "priority %" PRId64 " becomes %" PRId64, r->told.priority,
			    w->priority);
		r->told.priority = w->priority;
	}
	if (was == is || slu_queue_job(c->q, r->id, &v) < 0)
		return false;
	keep_change(c, r, "limit %" PRId64 " s becomes %" PRId64 " s", was, is);
	if (core_apply(c, &(struct slu_event){
				  .kind = SLU_EV_LIMIT, .job = r->id, .limit_s = is }) < 0)
		return false;
	r->told.limit_s = wish_limit(w);
	if (!queued)
		r->end_s = r->start_s + is;
	return false;
}

void core_runs_again(struct slu_core *c, bool all)
{
	struct slu_job_view v;

	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL); e;
	     e = slu_table_next(&c->runs->table, e)) {
		struct run *r = run_of(e);
		bool out = r->refused && slu_queue_job(c->q, r->id, &v) == -ENOENT;

		if (r->state != RUN_QUEUED || !r->submitted || (!out && !all))
			continue;
		if (out) {
			r->submitted = r->refused = false;
			core_run_reason(r, NULL);
		}
		(void)core_run_submit(c, r); /* logged; it is tried again when its group changes */
		core_group_dirty(c, r->g);
	}
}

void core_run_register(struct slu_core *c, struct run *r, int64_t start_s)
{
	slu_cleanup(slu_freep) struct slu_gang_part *part = slu_reallocarray(NULL, r->slot.n + 1u,
									     sizeof *part);
	struct slu_event ev = { .kind = SLU_EV_RUNNING, .job = r->id, .start_s = start_s };
	struct asked a;
	int rc;

	if (!part)
		return;
	for (uint32_t i = 0; i < r->slot.n; i++)
		if (slu_machine_node_is(slu_queue_machine(c->q), r->slot.p[i].node))
			part[ev.n_part++] = (struct slu_gang_part){ r->slot.p[i].node,
								    r->slot.p[i].role, 1 };
	request_of(c, r, &a);
	ev.spec = &a.spec;
	ev.part = part;
	rc = core_apply(c, &ev);
	asked_done(&a);
	if (rc < 0)
		return;
	note_told(c, r);
	r->submitted = true;
	core_run_to(c, r, RUN_RUNNING);
	r->start_s = start_s;
	r->end_s = start_s + core_run_limit(c, r);
}

void core_run_end(struct slu_core *c, struct run *r, enum slu_result how)
{
	struct slu_event ev = { .kind = r->state == RUN_QUEUED ? SLU_EV_CANCEL : SLU_EV_END,
				.job = r->id,
				.result = how };
	struct group *g = r->g;
	int64_t start_s;
	bool back = r->state == RUN_UNDOING, ran = r->state != RUN_QUEUED && !back, gang = r->gang;

	if (r->submitted)
		core_apply(c, &ev);
	core_run_close(c, r);
	for (uint32_t i = 0; i < r->slot.n; i++)
		core_used(c, r, &r->slot.p[i]);
	start_s = r->start_s;
	c->count.gangs_ended += ran && gang;
	core_run_over(c, r);
	/* Members that came later are part of the same job and run on when their gang is taken
	 * back. */
	if (gang && (ran || (back && core_started(g))))
		g->started_s = start_s;
	core_group_dirty(c, g);
	/* Members that came later belong to their gang: it is over when they are. */
	if ((ran || (back && !gang)) && g->started_s && !core_started(g)) {
		core_result_keep(c, g, g->job, g->started_s, how);
		core_group_unkeep(c, g);
		g->used = g->ended_us = g->started_s = 0;
	} else if (gang && !ran && !core_started(g)) {
		core_group_unkeep(c, g);
	}
}

/* ---- slots ---- */

/* Search from the last known place downwards, then upwards.  Callers ask this several times for each
 * member of a large gang, so it must not search through all slots. */
static uint32_t slot_index(struct pod *p)
{
	uint32_t n = p->run ? p->run->slot.n : 0, from = SLU_MIN(p->slot_at, n ? n - 1 : 0);

	for (uint32_t i = from + 1; n && i-- > 0;)
		if (p->run->slot.p[i].pod == p)
			return p->slot_at = i;
	for (uint32_t i = from + 1; i < n; i++)
		if (p->run->slot.p[i].pod == p)
			return p->slot_at = i;
	return UINT32_MAX;
}

struct slot *core_slot_of(struct pod *p)
{
	uint32_t i = slot_index(p);

	return i == UINT32_MAX ? NULL : &p->run->slot.p[i];
}

bool core_slot_counts(const struct slu_core *c, struct pod *p)
{
	const struct slot *s = core_slot_of(p);

	return s && slu_machine_node_is(slu_queue_machine(c->q), s->node);
}

bool core_slot_on(const struct slu_core *c, const struct slot *s, const struct node *n)
{
	if (slu_machine_node_is(slu_queue_machine(c->q), s->node))
		return s->node == n->handle;
	return s->pod && s->pod->node == n;
}

/* A slot of the node that was removed and is back.  The pod may have been resized since it got its place. */
static bool regain_slot(struct slu_core *c, struct node *n, struct slot *s)
{
	struct pod *p = s->pod;
	struct slu_gang_part part = { n->handle, s->role, 1 };
	struct slu_event ev = {
		.kind = SLU_EV_REGAIN, .job = p->run->id, .part = &part, .n_part = 1
	};

	if (core_apply(c, &ev) < 0)
		return false;
	s->node = n->handle;
	core_foreign_more(c, p, p->run->role.p[s->role].shape);
	if (!p->foreign)
		p->more = NULL;
	return true;
}

void core_slots_back(struct slu_core *c, struct node *n)
{
	for (uint32_t i = 0; i < n->pod.n; i++) {
		struct pod *p = n->pod.p[i];
		struct slot *s = core_slot_of(p);

		if (s ? !core_slot_counts(c, p) && !regain_slot(c, n, s) : true)
			core_foreign_add(c, p);
	}
}

struct slot *core_slot_written(struct run *r, const struct slu_rec_written *w)
{
	for (uint32_t k = 0; r && k < r->slot.n; k++) {
		uint32_t i = (r->answered + k) % r->slot.n;

		if (r->slot.p[i].pod && r->slot.p[i].pod->serial == w->serial) {
			r->answered = i;
			return &r->slot.p[i];
		}
	}
	return NULL;
}

static bool any_job_waits(const struct slu_core *c)
{
	struct slu_queue_view v;

	for (uint32_t i = 0; i < slu_queue_count(c->q); i++)
		if (slu_queue_view(c->q, i, &v) == 0 && v.waiting)
			return true;
	return false;
}

/* The members of a gang end some milliseconds apart.  The room that the first of them frees would go to a
 * small job, and a wide gang that waits for all of them would find too little.  So the core decides
 * nothing until the others have ended too, for a moment, once for each gang. */
static void note_ending(struct slu_core *c, struct run *r)
{
	if (r->ending || r->state != RUN_RUNNING || !c->recovered || !any_job_waits(c))
		return;
	if (!c->runs->n_ending++) {
		c->runs->ending_round++;
		core_due_at(c, CORE_AT_ENDING, c->now_us + GATHER_US);
	}
	r->ending = c->runs->ending_round;
}

bool core_awaits_ending(struct slu_core *c)
{
	if (c->runs->n_ending && core_is_due(c, CORE_AT_ENDING)) {
		still_ending(c, 0);
		c->runs->ending_round++;
	}
	return c->runs->n_ending;
}

void core_slot_drop(struct slu_core *c, struct run *r, uint32_t i)
{
	struct slot s = r->slot.p[i];
	struct slu_gang_part part = { s.node, s.role, 1 };
	struct slu_event ev = { .kind = SLU_EV_END_SLOTS,
				.job = r->id,
				.part = &part,
				.n_part = 1,
				.size = (int64_t)r->slot.n - 1 };
	struct group *g = r->g;

	core_used(c, r, &s);
	if (s.pod) {
		s.pod->run = NULL;
		core_node_leave(c, s.pod);
	}
	r->n_slot[s.state]--;
	if (r->slot.n == 1) { /* the last one: the whole run is over */
		r->slot.n = 0;
		core_run_end(c, r, core_outcome(c, g));
		return;
	}
	if (slu_machine_node_is(slu_queue_machine(c->q), s.node))
		core_apply(c, &ev); /* else the booking went with the node */
	if (s.pod && slu_kpod_ended(s.pod->k))
		note_ending(c, r);
	memmove(&r->slot.p[i], &r->slot.p[i + 1], (--r->slot.n - i) * sizeof s);
}

void core_slot_vacate(struct slu_core *c, struct run *r, struct pod *p, bool keep)
{
	uint32_t i = p->run == r ? slot_index(p) : UINT32_MAX;
	struct slot *s = i == UINT32_MAX ? NULL : &r->slot.p[i];

	if (!s)
		return;
	if (!keep) {
		core_slot_drop(c, r, i);
		return;
	}
	core_used(c, r, s);
	s->pod = NULL;
	core_slot_to(c, r, s, SLOT_VACANT);
	s->vacant_us = c->now_us;
	p->run = NULL;
	core_node_leave(c, p);
	core_due_by(c, CORE_AT_VACANCY, c->now_us + c->cfg->jobs.hold_vacant_s * 1000000);
}

/* Equal amounts, and the node is one the pod may use now: it may have been tainted since the place was
 * taken.  A pod differs from the stand-in that was planned for it by what admission adds (tolerations).
 */
static bool fits_slot(struct slu_core *c, const struct shape *have, const struct shape *want,
		      const struct node *n)
{
	if (!want || !core_shape_allows(c, want, n))
		return false;
	if (have == want)
		return true;
	if (have->n_need != want->n_need || have->alone != want->alone)
		return false;
	for (uint32_t i = 0; i < have->n_need; i++)
		if (have->need[i].resource != want->need[i].resource ||
		    have->need[i].n != want->need[i].n)
			return false;
	return true;
}

/* Whether the node of a booked slot is overbooked: it may have shrunk, or other pods were put there. */
static bool is_overbooked(const struct slu_machine *m, slu_node node, const struct shape *s)
{
	for (uint32_t i = 0; i < s->n_need; i++)
		if (slu_machine_node_free(m, node, s->need[i].resource) < 0)
			return true;
	return false;
}

static bool fill_slot(struct slu_core *c, struct run *r, uint32_t i, struct pod *p)
{
	struct slot *s = &r->slot.p[i];
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct node *n;

	if (s->state != SLOT_VACANT || !slu_machine_node_is(m, s->node) ||
	    slu_machine_node_is_down(m, s->node) || slu_machine_node_is_cordoned(m, s->node))
		return false;
	n = (struct node *)(uintptr_t)slu_machine_node_tag(m, s->node);
	if (!fits_slot(c, r->role.p[s->role].shape, p->shape, n) ||
	    is_overbooked(m, s->node, p->shape) || core_pod_clashes(c, n, p))
		return false;
	s->pod = p;
	core_slot_to(c, r, s, SLOT_CHOSEN);
	p->run = r;
	p->slot_at = i;
	core_node_enter(c, n, p);
	return true;
}

bool core_slot_take(struct slu_core *c, struct run *r, uint32_t i, struct pod *p)
{
	struct run *old = p->run;

	if (!fill_slot(c, r, i, p))
		return false;
	for (uint32_t k = 0; old && k < old->want.n; k++)
		if (old->want.p[k] == p) {
			old->want.p[k] = old->want.p[--old->want.n];
			break;
		}
	if (old && !old->want.n)
		core_run_end(c, old, SLU_RESULT_CANCELLED);
	return true;
}
