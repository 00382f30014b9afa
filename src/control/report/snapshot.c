/* The snapshot of the last cycle. */
#include "control/report/report.h"

#include "control/cluster/cluster.h"
#include "control/group/group.h"
#include "control/recover/recover.h"
#include "control/run/run.h"
#include "queue/explain.h"

struct slu_snapshot *slu_snapshot_ref(struct slu_snapshot *s)
{
	if (s)
		atomic_fetch_add(&s->refs, 1);
	return s;
}

void slu_snapshot_unref(struct slu_snapshot *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	slu_arena_done(&s->arena);
	slu_free(s);
}

/* Text in the arena; "" when memory runs out; the snapshot is usable without it. */
static const char *keep_text(struct slu_snapshot *s, const char *t)
{
	const char *k = t && *t ? slu_arena_strndup(&s->arena, t, strlen(t)) : "";

	return k ? k : "";
}

static const char *run_state(const struct group *g, const struct run *r)
{
	static const char *const name[] = { [RUN_QUEUED] = "waiting",
					    [RUN_INTENT] = "placing",
					    [RUN_PLACING] = "placing",
					    [RUN_RUNNING] = "running",
					    [RUN_UNDOING] = "undoing" };

	if (g->wrong && (!r || r->state == RUN_QUEUED))
		return "refused";
	if (!r && core_group_elsewhere(g))
		return "running";
	if (!r)
		return g->cancelled ? "cancelled" : g->after_text ? "blocked" : "gathering";
	if (r->state == RUN_QUEUED && g->on_hold)
		return "held";
	if (r->state == RUN_QUEUED && r->refused)
		return "refused";
	if (r->state == RUN_QUEUED && r->never)
		return "never";
	return name[r->state];
}

static void snap_pods(struct slu_core *c, struct slu_snapshot *s, struct group *g,
		      struct slu_snap_job *j)
{
	static const char *const phase[] = { "unknown", "pending", "running", "succeeded",
					     "failed" };

	j->pod = slu_arena_zalloc(&s->arena, g->pod.n * sizeof *j->pod + 1);
	for (uint32_t i = 0; j->pod && i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];
		struct slot *sl = core_slot_of(p);

		j->pod[i].name = keep_text(s, p->k->o.meta.name);
		j->pod[i].node = keep_text(s, *p->k->spec.node ? p->k->spec.node
					      : sl             ? core_node_name(c, sl->node)
							       : "");
		j->pod[i].state = p->k->phase <= SLU_PHASE_FAILED ? phase[p->k->phase] : "?";
		j->n_pods++;
		j->ready += core_pod_startable(p) ? 1 + p->others : 0;
		j->bound += *p->k->spec.node != 0;
	}
}

/* The first jobs of the queue get their reason from the plan as it is, the rest the reason written last. */
#define EXPLAINED 50

static void explain_job(struct slu_core *c, struct slu_snapshot *s, struct slu_snap_job *j)
{
	struct run *r = run_of(slu_table_find(&c->runs->table, &j->id, sizeof j->id));
	struct slu_buf b = SLU_BUF_INIT(8192);
	struct slu_why why = { 0 };

	if (slu_queue_why(c->q, c->now_s, j->id, &why, NULL) < 0)
		return;
	if (why.reason)
		slu_buf_puts(&b, why.reason);
	if (r)
		core_deadline_text(c, r->g, r, &why, &b);
	if (b.n && !b.error)
		j->reason = keep_text(s, slu_buf_str(&b));
	slu_buf_done(&b);
	j->remedy = keep_text(s, why.remedy);
	why.planned_s = core_estimate(c, why.planned_s);
	j->promised = why.promised && why.planned_s != SLU_TIME_NONE;
	j->estimate_s = why.planned_s != SLU_TIME_NONE ? why.planned_s : 0;
	slu_why_done(&why);
}

/* Whether a request that waits for this snapshot asks for all details of this job. */
static bool is_asked(const struct slu_core *c, const struct slu_snap_job *j)
{
	for (uint32_t i = 0; i < c->reports->viewer.n; i++)
		if (*c->reports->viewer.p[i]->ns && !strcmp(c->reports->viewer.p[i]->ns, j->ns) &&
		    !strcmp(c->reports->viewer.p[i]->name, j->name))
			return true;
	return false;
}

/* Steps of each fork of the queue that is tried: the core waits for it. */
#define WHY_STEPS 100u

/* Add the jobs that passed this one, and the changes that would help it, found by trying them on forks of the
 * queue. */
static void explain_more(struct slu_core *c, struct slu_snapshot *s, struct slu_snap_job *j)
{
	struct slu_explain x;
	char line[512];

	if (slu_queue_explain(c->q, c->now_s, j->id, WHY_STEPS, &x, NULL) < 0)
		return;
	j->remedy = ""; /* the matcher's proposals know no order and no limits */
	if (core_estimate(c, x.start_s) != SLU_TIME_NONE)
		j->estimate_s = x.start_s;
	j->passers = x.n_passed;
	j->passed = slu_arena_zalloc(&s->arena, x.n_passer * sizeof *j->passed + 1);
	for (uint32_t i = 0; i < x.n_passer && j->passed; i++) {
		slu_passer_text(&x.passer[i], line, sizeof line);
		j->passed[j->n_passed++] = keep_text(s, line);
	}
	j->help = slu_arena_zalloc(&s->arena, x.n_help * sizeof *j->help + 1);
	for (uint32_t i = 0; i < x.n_help && j->help; i++) {
		slu_help_text(&x.help[i], c->now_s, line, sizeof line);
		j->help[j->n_help++] = keep_text(s, line);
	}
	if (j->n_help)
		j->remedy = j->help[0];
}

/* Why a gang that has its nodes does not run; "" for most. */
static const char *stuck(struct slu_snapshot *s, const struct group *g)
{
	struct slu_buf b = SLU_BUF_INIT(1024);
	const char *say = "";

	for (uint32_t i = 0; g->stuck_us && i < g->pod.n && !*say; i++) {
		const struct pod *p = g->pod.p[i];

		if (!core_pod_stuck(p))
			continue;
		slu_buf_printf(&b, "a container of pod %s does not start on %s: %s",
			       p->k->o.meta.name, p->k->spec.node, p->k->waits);
		say = keep_text(s, slu_buf_str(&b));
	}
	slu_buf_done(&b);
	return say;
}

static void snap_group(struct slu_core *c, struct slu_snapshot *s, struct group *g,
		       struct slu_snap_job *j)
{
	struct run *r = core_first_run(g);

	*j = (struct slu_snap_job){
		.id = r ? r->id : g->job,
		.ns = keep_text(s, g->ns),
		.name = keep_text(s, g->id.name),
		.queue = keep_text(s, *g->wish.queue ? g->wish.queue : c->cfg->queue[0].name),
		.state = run_state(g, r),
		.scheduler = keep_text(s, g->scheduler),
		.user = keep_text(s, g->user),
		.remedy = "",
		.size = SLU_MAX(core_members(g), g->wish.min),
		.min = g->wish.min,
		.priority = g->wish.priority,
		.first_seen_us = g->first_seen_us,
		.begin_s = g->wish.begin_s,
		.deadline_s = g->wish.deadline_s,
		.limit_s = g->wish.duration_s,
	};
	snap_pods(c, s, g, j);
	j->reason = keep_text(s, g->wrong              ? g->wrong
				 : r && r->reason      ? r->reason
				 : !r && g->cancelled  ? CORE_CANCELLED
				 : !r && g->after_text ? g->after_text
						       : g->told_text);
	if (r && r->state != RUN_QUEUED) {
		/* Of its gang, although only members that came later may be left of it. */
		j->start_s = !r->gang && g->started_s ? g->started_s : r->start_s;
		for (uint32_t i = 0; i < g->run.n; i++)
			if (g->run.p[i]->state != RUN_QUEUED)
				j->end_s = SLU_MAX(j->end_s, g->run.p[i]->end_s);
		j->reason = stuck(s, g);
	} else if (!strcmp(j->state, "held")) {
		j->reason = CORE_HELD;
	} else if (r) {
		j->estimate_s = g->told_start_s != SLU_TIME_NONE ? g->told_start_s : 0;
	}
}

/* Collects the positions of waiting jobs in one walk over the queue: asking for each job would search every
 * tree. */
struct lines {
	struct slu_core *c;
	struct slu_snapshot *s;
	struct slu_map of; /* queue's id -> s->job */
	uint32_t news;     /* explained although they are not in line */
};

static int snap_line(const struct slu_job_view *v, void *arg)
{
	struct lines *l = arg;
	const uint64_t *at = v->state == SLU_JOB_RUNNING ? NULL : slu_map_get(&l->of, v->id);
	struct slu_snap_job *j = at ? &l->s->job[*at] : NULL;

	if (!j)
		return 0;
	j->position = v->position;
	j->promised = core_estimate(l->c, v->planned_s) != SLU_TIME_NONE;
	if (j->promised)
		j->estimate_s = v->planned_s;
	if (core_hurries(l->c))
		return 0;
	bool asked = is_asked(l->c, j);

	/* A job that is not in line (before its begin time, for example) is explained until its
	 * status was written. */
	if (asked ||
	    (v->position ? v->position <= EXPLAINED : !*j->reason && l->news++ < EXPLAINED))
		explain_job(l->c, l->s, j);
	int64_t at_s = j->promised ? SLU_TIME_NONE : core_foretold(l->c, v->id);

	if (at_s != SLU_TIME_NONE)
		j->estimate_s = at_s;
	else if (v->state == SLU_JOB_NEVER)
		j->estimate_s = 0; /* its reason may be from the time when it could run */
	if (asked)
		explain_more(l->c, l->s, j);
	return 0;
}

static int by_age(const void *a, const void *b)
{
	const struct slu_snap_job *x = a, *y = b;

	if (x->first_seen_us != y->first_seen_us)
		return x->first_seen_us < y->first_seen_us ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void snap_groups(struct slu_core *c, struct slu_snapshot *s)
{
	struct lines l = { c, s };

	s->job = slu_arena_alloc(&s->arena, c->groups->table.n * sizeof *s->job + 1);
	for (struct slu_entry *e = slu_table_next(&c->groups->table, NULL); e && s->job;
	     e = slu_table_next(&c->groups->table, e)) {
		const struct run *r = core_first_run(group_of(e));

		if (r && r->state == RUN_QUEUED)
			slu_map_put(&l.of, r->id, s->n_jobs);
		snap_group(c, s, group_of(e), &s->job[s->n_jobs++]);
	}
	if (!s->job)
		return;
	slu_queue_each(c->q, snap_line, &l);
	slu_map_done(&l.of);
	qsort(s->job, s->n_jobs, sizeof *s->job, by_age);
}

static void snap_node(struct slu_core *c, struct slu_snapshot *s, struct node *n,
		      struct slu_snap_node *out)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	uint32_t resources = slu_machine_resources(m);

	*out = (struct slu_snap_node){ .name = keep_text(s, n->name),
				       .drain_from_s = n->drain_id ? n->drain_from_s : 0,
				       .drain_to_s = n->drain_id ? n->drain_to_s : 0,
				       .state = n->away ? "down"
						: n->drained && n->drain_from_s <= c->now_s
							? "drained"
						: n->k->unschedulable         ? "cordoned"
						: n->k->ready != SLU_TRI_TRUE ? "down"
									      : "up" };
	out->amount = slu_arena_zalloc(&s->arena, resources * sizeof *out->amount + 1);
	for (uint32_t i = 0; out->amount && i < resources; i++) {
		int64_t total = slu_machine_node_total(m, n->handle, i);

		if (!total || !strcmp(slu_machine_resource_name(m, i), "node"))
			continue; /* the machine's own resource, for whole nodes */
		out->amount[out->n_amounts++] =
			(struct slu_snap_amount){ keep_text(s, slu_machine_resource_name(m, i)),
						  total, slu_machine_node_free(m, n->handle, i) };
	}
	for (uint32_t i = 0; i < n->pod.n; i++) {
		out->jobs += n->pod.p[i]->run != NULL;
		out->foreign += core_pod_is_foreign(n->pod.p[i]);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct slu_snap_node *)a)->name,
		      ((const struct slu_snap_node *)b)->name);
}

static void snap_foreign(struct slu_core *c, struct slu_snapshot *s)
{
	bool asked = false;

	for (uint32_t i = 0; i < c->reports->viewer.n; i++)
		asked |= !strcmp(c->reports->viewer.p[i]->name, SLU_ASK_ALL);
	s->foreign = asked ? slu_arena_alloc(&s->arena, s->pods_foreign * sizeof *s->foreign + 1)
			   : NULL;
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e && s->foreign;
	     e = slu_table_next(&c->cluster->pods, e)) {
		const struct pod *p = pod_of(e);
		const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);
		struct slu_buf b = SLU_BUF_INIT(4096);

		if (!core_pod_is_foreign(p) || s->n_foreign == s->pods_foreign)
			continue;
		slu_request_text(&p->k->spec, &b);
		s->foreign[s->n_foreign++] = (struct slu_snap_foreign){
			.id = p->serial,
			.ns = keep_text(s, p->k->o.meta.ns),
			.name = keep_text(s, p->k->o.meta.name),
			.node = keep_text(s, p->node ? p->node->name : ""),
			.scheduler = keep_text(s, p->k->spec.scheduler),
			.needs = keep_text(s, slu_buf_str(&b)),
			.background = o && !strcmp(o->kind, "DaemonSet"),
		};
		slu_buf_done(&b);
	}
}

static int by_place(const void *a, const void *b)
{
	const struct slu_snap_reservation *x = a, *y = b;
	int d = strcmp(x->ns, y->ns);

	return d ? d : strcmp(x->name, y->name);
}

static void snap_reservation(struct slu_snapshot *s, const struct reservation *r,
			     struct slu_snap_reservation *out)
{
	*out = (struct slu_snap_reservation){ .ns = keep_text(s, r->k->o.meta.ns),
					      .name = keep_text(s, r->k->o.meta.name),
					      .phase = r->phase,
					      .message = keep_text(s, r->message),
					      .every = keep_text(s, r->k->every),
					      .from_s = r->from_s,
					      .until_s = r->to_s };
	out->node = slu_arena_alloc(&s->arena, (r->node.n + 1u) * sizeof *out->node);
	out->user = slu_arena_alloc(&s->arena, (r->k->nusers + 1u) * sizeof *out->user);
	for (uint32_t i = 0; out->node && i < r->node.n; i++)
		out->node[out->n_nodes++] = keep_text(s, r->node.p[i].name);
	for (uint32_t i = 0; out->user && i < r->k->nusers; i++)
		out->user[out->n_users++] = keep_text(s, r->k->users[i]);
}

static void snap_reservations(struct slu_core *c, struct slu_snapshot *s)
{
	const struct slu_table *t = &c->cluster->reservations;

	s->reservation = slu_arena_alloc(&s->arena, t->n * sizeof *s->reservation + 1);
	for (struct slu_entry *e = slu_table_next(t, NULL); e && s->reservation;
	     e = slu_table_next(t, e)) {
		const struct reservation *r = slu_entry_of(e, struct reservation, e);

		if (r->k)
			snap_reservation(s, r, &s->reservation[s->n_reservations++]);
	}
	if (s->reservation)
		qsort(s->reservation, s->n_reservations, sizeof *s->reservation, by_place);
}

static void fill_snapshot(struct slu_core *c, struct slu_snapshot *s)
{
	char why[SLU_ERROR_MAX + 100];

	s->at_us = c->now_us;
	s->synced = slu_core_synced(c);
	s->leader = c->door;
	s->store = keep_text(s, core_store_text(c, why, sizeof why));
	s->store_ok = c->door ? c->store == SLU_JOURNAL_OK
			      : !c->store_waits && !*c->recovery->store_why;
	s->store_waiting = c->recovery->store_health.waiting;
	s->store_commits = c->recovery->store_health.commits;
	s->store_failures = c->recovery->store_health.failures;
	s->pods = c->cluster->pods.n;
	s->groups = c->groups->table.n;
	s->count = c->count;
	snap_groups(c, s);
	s->node = slu_arena_alloc(&s->arena, c->cluster->nodes.n * sizeof *s->node + 1);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e && s->node;
	     e = slu_table_next(&c->cluster->nodes, e))
		if (node_of(e)->handle != SLU_NODE_NONE && node_of(e)->k) {
			snap_node(c, s, node_of(e), &s->node[s->n_nodes]);
			s->pods_foreign += s->node[s->n_nodes++].foreign;
		}
	snap_foreign(c, s);
	snap_reservations(c, s);
	if (s->node)
		qsort(s->node, s->n_nodes, sizeof *s->node, by_name);
	s->queue = slu_arena_alloc(&s->arena, slu_queue_count(c->q) * sizeof *s->queue + 1);
	for (uint32_t i = 0; s->queue && i < slu_queue_count(c->q); i++) {
		struct slu_queue_view v;

		if (slu_queue_view(c->q, i, &v) < 0)
			continue;
		s->queue[s->n_queues++] =
			(struct slu_snap_queue){ .name = keep_text(s, v.conf->name),
						 .policy = slu_policy_name(v.conf->policy),
						 .waiting = v.waiting,
						 .held = v.held,
						 .blocked = v.blocked,
						 .never = v.never,
						 .running = v.running,
						 .started = v.started,
						 .ended = v.ended,
						 .backfilled = v.backfilled };
	}
}

#define IDLE_US 5000000

void core_snapshot_publish(struct slu_core *c)
{
	struct slu_snapshot *s, *old;

	if (c->reports->snap && !c->reports->viewer.n &&
	    c->now_us - c->reports->snap_us < IDLE_US &&
	    c->reports->snap->synced == slu_core_synced(c) &&
	    c->reports->snap->leader == !!c->door && c->reports->snap_store == c->store)
		return;
	s = slu_calloc(1, sizeof *s);
	if (s) {
		s->refs = 1;
		fill_snapshot(c, s);
		c->reports->snap_us = c->now_us;
		c->reports->snap_store = c->store;
		pthread_mutex_lock(&c->reports->snap_lock);
		old = c->reports->snap;
		c->reports->snap = s;
		pthread_mutex_unlock(&c->reports->snap_lock);
		slu_snapshot_unref(old);
	}
	for (uint32_t i = 0; i < c->reports->viewer.n; i++) {
		struct slu_rec_ask *a = c->reports->viewer.p[i];

		a->answer(a->arg, s ? 0 : -ENOMEM, "");
		a->answer = NULL;
		a->base.free(&a->base);
	}
	c->reports->viewer.n = 0;
}

struct slu_snapshot *core_snapshot(struct slu_core *c)
{
	struct slu_snapshot *s;

	pthread_mutex_lock(&c->reports->snap_lock);
	s = slu_snapshot_ref(c->reports->snap);
	pthread_mutex_unlock(&c->reports->snap_lock);
	return s;
}
