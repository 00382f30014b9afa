/* The life of a job: tables, states, dependencies, timers. */
#include "queue/queue_internal.h"

uint32_t queue_job_find(const struct slu_queue *q, slu_job_id id)
{
	uint64_t *v = slu_map_get(&q->job_of, id);

	return v ? (uint32_t)*v : SLU_NIL;
}

struct usage *queue_usage_of(struct slu_queue *q, uint32_t queue, uint32_t user)
{
	return &q->usage.p[*slu_map_get(&q->usage_of, ((uint64_t)queue << 32) | user)];
}

int queue_usage_make(struct slu_queue *q, uint32_t queue, uint32_t user)
{
	uint64_t key = ((uint64_t)queue << 32) | user;

	if (slu_map_get(&q->usage_of, key))
		return 0;
	if (slu_vec_reserve(&q->usage, q->usage.n + 1) < 0 ||
	    slu_map_put(&q->usage_of, key, q->usage.n) < 0)
		return -ENOMEM;
	q->usage.p[q->usage.n++] = (struct usage){ .full = SLU_NIL };
	return 0;
}

static void tally_in(struct usage *u, enum tally what, int by)
{
	uint32_t *n = what == TALLY_WAITING   ? &u->waiting
		      : what == TALLY_RUNNING ? &u->running
					      : &u->reserved;

	*n += (uint32_t)by;
}

void queue_tally(struct slu_queue *q, uint32_t j, enum tally what, int by)
{
	const struct job *job = &q->job.p[j];

	if (what == TALLY_WAITING ? job->flags & JOB_MEMBER : job_is_free(job))
		return;
	tally_in(queue_usage_of(q, job->queue, job->user), what, by);
	tally_in(&q->sub.p[job->queue].all, what, by);
}

/* ---- full queues ---- */

bool queue_full_for(struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	const struct subqueue *sub = &q->sub.p[job->queue];
	const struct slu_queue_limits *l = &sub->conf.limit;

	/* The job itself is counted. */
	if (job->flags & JOB_MEMBER)
		return false;
	return (l->max_waiting && sub->all.waiting > l->max_waiting) ||
	       (l->max_waiting_user &&
		queue_usage_of(q, job->queue, job->user)->waiting > l->max_waiting_user);
}

int queue_full_enter(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	const struct slu_queue_conf *c = &sub->conf;
	struct usage *u = queue_usage_of(q, job->queue, job->user);
	int rc = c->limit.max_waiting && sub->all.waiting > c->limit.max_waiting
			 ? queue_decide_text(out, SLU_DEC_REFUSED, job->id,
					     "queue \"%s\" is full: %u jobs wait", c->name,
					     sub->all.waiting - 1)
			 : queue_decide_text(
				   out, SLU_DEC_REFUSED, job->id,
				   "user \"%s\" has %u jobs waiting in queue \"%s\", as many as "
				   "allowed",
				   slu_intern_str(&q->str, job->user), u->waiting - 1, c->name);

	if (rc < 0)
		return rc;
	queue_tally(q, j, TALLY_WAITING, -1);
	job->block = BLOCK_FULL;
	queue_order_insert(q->job.p, &u->full, j);
	sub->n_full++;
	return 0;
}

void queue_full_leave(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];

	queue_order_remove(q->job.p, &queue_usage_of(q, job->queue, job->user)->full, j);
	q->sub.p[job->queue].n_full--;
	job->block = BLOCK_NONE;
	queue_tally(q, j, TALLY_WAITING, 1);
}

/* The first in order of all users of queue `s` that may have one more waiting. */
static uint32_t full_first(const struct slu_queue *q, uint32_t s)
{
	uint32_t most = q->sub.p[s].conf.limit.max_waiting_user, best = SLU_NIL;

	for (uint32_t i = 0; i < q->usage_of.n; i++) {
		const struct usage *u = &q->usage.p[q->usage_of.e[i].val];

		if (q->usage_of.e[i].key >> 32 != s || u->full == SLU_NIL ||
		    (most && u->waiting >= most))
			continue;
		uint32_t j = queue_order_first(q->job.p, u->full);

		if (best == SLU_NIL || queue_order_before(&q->job.p[j], &q->job.p[best]))
			best = j;
	}
	return best;
}

int queue_full_admit(struct slu_queue *q, struct slu_decisions *out)
{
	for (uint32_t s = 0; s < q->sub.n; s++) {
		const struct subqueue *sub = &q->sub.p[s];

		while (sub->n_full && (!sub->conf.limit.max_waiting ||
				       sub->all.waiting < sub->conf.limit.max_waiting)) {
			uint32_t j = full_first(q, s);

			if (j == SLU_NIL)
				break;
			int rc = queue_decide_text(out, SLU_DEC_STATE, q->job.p[j].id,
						   "queue \"%s\" has a place for it",
						   sub->conf.name);

			if (rc < 0)
				return rc;
			queue_full_leave(q, j);
			rc = queue_job_settle(q, j, out);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* ---- timers: a binary heap; entries of jobs that moved on are recognised by gen ---- */

static bool timer_before(const struct timer *a, const struct timer *b)
{
	if (a->at_s != b->at_s)
		return a->at_s < b->at_s;
	return a->job != b->job ? a->job < b->job : a->gen < b->gen;
}

static void timer_down(struct slu_queue *q, uint32_t i)
{
	struct timer *t = q->timer.p;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= q->timer.n)
			return;
		if (c + 1 < q->timer.n && timer_before(&t[c + 1], &t[c]))
			c++;
		if (!timer_before(&t[c], &t[i]))
			return;
		struct timer tmp = t[i];

		t[i] = t[c];
		t[c] = tmp;
		i = c;
	}
}

bool queue_timer_stale(const struct slu_queue *q, const struct timer *t)
{
	return t->job != SLU_NIL && (!q->job.p[t->job].used || q->job.p[t->job].gen != t->gen);
}

/* Most timers are for limits that are never reached: sweep when the stale ones are many. */
static void timer_sweep(struct slu_queue *q)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->timer.n; i++)
		if (!queue_timer_stale(q, &q->timer.p[i]))
			q->timer.p[n++] = q->timer.p[i];
	q->timer.n = n;
	for (uint32_t i = n / 2; i-- > 0;)
		timer_down(q, i);
}

int queue_timer_add(struct slu_queue *q, int64_t at_s, uint32_t j)
{
	struct timer t = { .at_s = at_s, .job = j, .gen = j == SLU_NIL ? 0 : q->job.p[j].gen };

	if (q->timer.n >= 1024 && q->timer.n >= 4 * q->job_of.n && q->timer.n == q->timer.cap)
		timer_sweep(q);
	if (slu_vec_push(&q->timer, t) < 0)
		return -ENOMEM;
	for (uint32_t i = q->timer.n - 1; i > 0;) {
		uint32_t up = (i - 1) / 2;

		if (!timer_before(&q->timer.p[i], &q->timer.p[up]))
			break;
		struct timer tmp = q->timer.p[i];

		q->timer.p[i] = q->timer.p[up];
		q->timer.p[up] = tmp;
		i = up;
	}
	return 0;
}

void queue_timer_pop(struct slu_queue *q)
{
	q->timer.p[0] = q->timer.p[--q->timer.n];
	timer_down(q, 0);
}

/* ---- states ---- */

static void list_del(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];

	if (job->prev != SLU_NIL)
		q->job.p[job->prev].next = job->next;
	else
		q->list[job->state] = job->next;
	if (job->next != SLU_NIL)
		q->job.p[job->next].prev = job->prev;
	else
		q->list_end[job->state] = job->prev;
}

void queue_job_list(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];

	job->prev = q->list_end[job->state];
	job->next = SLU_NIL;
	if (job->prev != SLU_NIL)
		q->job.p[job->prev].next = j;
	else
		q->list[job->state] = j;
	q->list_end[job->state] = j;
}

void queue_job_set_state(struct slu_queue *q, uint32_t j, enum slu_job_state s)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];

	if (job->state == s)
		return;
	list_del(q, j);
	sub->n[job->state]--;
	if (job->state == SLU_JOB_RUNNING) {
		queue_note_undo(q, j);
		queue_tally(q, j, TALLY_RUNNING, -1);
		queue_tally(q, j, TALLY_WAITING, 1);
	}
	if (s == SLU_JOB_WAITING)
		job->line_from = q->notes;
	job->state = (uint8_t)s;
	if (s == SLU_JOB_RUNNING) {
		queue_tally(q, j, TALLY_WAITING, -1);
		queue_tally(q, j, TALLY_RUNNING, 1);
	}
	sub->n[s]++;
	queue_job_list(q, j);
}

/* A new job in the table, in no tree, state BLOCKED until it is settled.  SLU_NIL: no memory. */
static uint32_t job_new(struct slu_queue *q, slu_job_id id)
{
	if (!q->job_free.n && (slu_vec_reserve(&q->job, q->job.n + 1) < 0 ||
			       slu_vec_reserve(&q->job_free, q->job.n + 1) < 0 ||
			       slu_vec_reserve(&q->fresh, q->job.n + 1) < 0))
		return SLU_NIL;
	uint32_t j = q->job_free.n ? q->job_free.p[q->job_free.n - 1] : q->job.n;

	if (slu_map_put(&q->job_of, id, j) < 0)
		return SLU_NIL;
	uint32_t gen = 0;

	if (q->job_free.n) {
		q->job_free.n--;
		gen = q->job.p[j].gen + 1;
	} else {
		q->job.n++;
	}
	q->job.p[j] = (struct job){ .id = id,
				    .bucket = SLU_NIL,
				    .asked = SLU_NIL,
				    .dep = SLU_NIL,
				    .gen = gen,
				    .planned_s = SLU_TIME_NONE,
				    .promised_s = SLU_TIME_NONE,
				    .start_s = SLU_TIME_NONE,
				    .end_s = SLU_TIME_NONE,
				    .state = SLU_JOB_BLOCKED,
				    .used = true };
	return j;
}

/* Out of its tree and, if it was reserved, out of the machine's books. */
void queue_job_leave_line(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];

	if (job->bucket == SLU_NIL)
		return;
	if (job->planned_s != SLU_TIME_NONE) {
		queue_order_remove(q->job.p, &sub->reserved, j);
		slu_gang_cancel(q->m, job->id);
		job->planned_s = SLU_TIME_NONE;
		sub->n_reserved--;
		queue_tally(q, j, TALLY_RESERVED, -1);
	} else {
		queue_bucket_leave(q, j);
		queue_plan_moved_up(q, j);
	}
	if (job->flags & JOB_NOPLAN) {
		job->flags &= (uint8_t)~JOB_NOPLAN;
		sub->n_noplan--;
	}
	queue_bucket_detach(q, j);
}

int queue_plan_told(struct slu_queue *q, uint32_t j, int64_t was_s, enum slu_cause cause,
		    struct slu_decisions *out)
{
	if (was_s == SLU_TIME_NONE)
		return 0;
	struct slu_decision *d = queue_decide(out, SLU_DEC_PLAN, q->job.p[j].id);

	if (!d)
		return -ENOMEM;
	d->was_s = was_s;
	d->cause = cause;
	return 0;
}

int queue_job_never(struct slu_queue *q, uint32_t j, struct slu_error *why)
{
	struct job *job = &q->job.p[j];
	uint32_t own = job->asked == SLU_NIL ? job->shape : job->asked;
	struct shape *s = &q->shape.p[own];

	if (s->sat_topology == q->topology + 1 && s->sat_queue == job->queue)
		return 0;
	struct slu_gang_req r = queue_job_req(q, j);

	r.role = s->req.role; /* nodes it avoids for a while it may use again */
	int rc = slu_gang_satisfiable(q->m, &r, why);

	if (rc == SLU_GANG_NOW) {
		s->sat_topology = q->topology + 1;
		s->sat_queue = job->queue;
		return 0;
	}
	return rc < 0 ? rc : 1;
}

static int settle_job(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	struct slu_error why = { 0 };
	int rc;

	if (job->block == BLOCK_FULL)
		return 0; /* queue_full_admit() looks at it */
	if (job->block == BLOCK_DEADLINE || job->block == BLOCK_DEP_DEAD) {
		queue_job_set_state(q, j, SLU_JOB_NEVER);
		return 0;
	}
	if (job->deadline_s != SLU_TIME_NONE && q->now_s > job->deadline_s - job->limit_s) {
		rc = queue_decide_text(out, SLU_DEC_EXPIRED, job->id,
				       "needs %" PRId64 " s and must have ended by %" PRId64
				       ": too late to start",
				       job->limit_s, job->deadline_s);
		if (rc < 0)
			return rc;
		job->block = BLOCK_DEADLINE;
		queue_job_set_state(q, j, SLU_JOB_NEVER);
		return 0;
	}
	job->block = BLOCK_NONE;
	if (job->flags & JOB_HELD) {
		queue_job_set_state(q, j, SLU_JOB_HELD);
		return 0;
	}
	if (job->ndep) {
		job->block = BLOCK_DEP;
		queue_job_set_state(q, j, SLU_JOB_BLOCKED);
		return 0;
	}
	rc = queue_job_never(q, j, &why);
	if (rc < 0)
		return rc;
	if (rc) {
		rc = queue_decide_text(out, SLU_DEC_NEVER, job->id, "%s", why.text);
		if (rc < 0)
			return rc;
		job->block = BLOCK_NEVER;
		queue_job_set_state(q, j, SLU_JOB_NEVER);
		return 0;
	}
	if (job->begin_s != SLU_TIME_NONE && job->begin_s > q->now_s) {
		rc = queue_timer_add(q, job->begin_s, j);
		if (rc < 0)
			return rc;
		job->block = BLOCK_BEGIN;
		queue_job_set_state(q, j, SLU_JOB_BLOCKED);
		return 0;
	}
	if (job->deadline_s != SLU_TIME_NONE) {
		rc = queue_timer_add(q, job->deadline_s - job->limit_s + 1, j);
		if (rc < 0)
			return rc;
	}
	if (queue_plan_due(&q->sub.p[job->queue].conf, job) > q->now_s) {
		rc = queue_timer_add(q, queue_plan_due(&q->sub.p[job->queue].conf, job), j);
		if (rc < 0)
			return rc;
	}
	rc = queue_bucket_attach(q, j);
	if (rc < 0)
		return rc;
	queue_bucket_enter(q, j);
	queue_job_set_state(q, j, SLU_JOB_WAITING);
	if (!(job->flags & JOB_FRESH)) {
		job->flags |= JOB_FRESH;
		q->fresh.p[q->fresh.n++] = j; /* room was made with the table */
	}
	return 0;
}

int queue_job_settle(struct slu_queue *q, uint32_t j, struct slu_decisions *out)
{
	int rc = settle_job(q, j, out);

	q->unsettled |= rc < 0;
	return rc;
}

int queue_jobs_settle(struct slu_queue *q, struct slu_decisions *out)
{
	for (uint32_t j = 0; q->unsettled && j < q->job.n; j++) {
		const struct job *job = &q->job.p[j];
		int rc = 0;

		if (job->used && job->bucket == SLU_NIL && job->block == BLOCK_NONE &&
		    (job->state == SLU_JOB_WAITING || job->state == SLU_JOB_BLOCKED))
			rc = settle_job(q, j, out);
		if (rc < 0)
			return rc;
	}
	q->unsettled = false;
	return 0;
}

/* ---- dependencies ---- */

static bool dep_met(enum slu_dep_kind kind, enum slu_result r)
{
	return kind == SLU_DEP_AFTER || kind == SLU_DEP_AFTER_START ||
	       (kind == SLU_DEP_AFTER_OK) == (r == SLU_RESULT_OK);
}

static uint32_t dep_new(struct slu_queue *q)
{
	if (q->dep_free != SLU_NIL) {
		uint32_t d = q->dep_free;

		q->dep_free = q->dep.p[d].next;
		return d;
	}
	struct dep fresh = { 0 };

	return slu_vec_push(&q->dep, fresh) < 0 ? SLU_NIL : q->dep.n - 1;
}

/* Whether a job that waits for `on` would wait for `self`, directly or through others. */
static bool reaches(struct slu_queue *q, slu_job_id on, slu_job_id self, uint32_t *budget)
{
	if (on == self)
		return true;
	uint32_t j = queue_job_find(q, on);

	if (j == SLU_NIL || !*budget)
		return false;
	--*budget;
	for (uint32_t d = q->job.p[j].dep; d != SLU_NIL; d = q->dep.p[d].next)
		if (q->dep.p[d].open && reaches(q, q->dep.p[d].on, self, budget))
			return true;
	return false;
}

#define DEP_WALK_MAX 100000u
#define DEP_MAX      1024u

int queue_dep_check(struct slu_queue *q, const struct slu_job_spec *s, struct slu_error *err)
{
	uint32_t budget = DEP_WALK_MAX;

	if (s->ndep > DEP_MAX)
		return slu_fail(err, -EINVAL, "%u dependencies; at most %u", s->ndep, DEP_MAX);
	for (uint32_t i = 0; i < s->ndep; i++) {
		if ((unsigned)s->dep[i].kind > SLU_DEP_AFTER_START || !s->dep[i].job)
			return slu_fail(err, -EINVAL, "dependency %u is invalid", i);
		if (reaches(q, s->dep[i].job, s->id, &budget))
			return slu_fail(err, -ELOOP,
					"cyclic dependency: waits for job %" PRIu64
					", which waits for it",
					s->dep[i].job);
	}
	return 0;
}

/* Link the open dependencies of a new job.  Sets block if one cannot come true any more. */
static int dep_link(struct slu_queue *q, uint32_t j, const struct slu_job_spec *s)
{
	for (uint32_t i = 0; i < s->ndep; i++) {
		uint64_t *r = slu_map_get(&q->result, s->dep[i].job);
		uint32_t on = queue_job_find(q, s->dep[i].job);

		if (on == SLU_NIL && r) {
			if (!dep_met(s->dep[i].kind, (enum slu_result) * r))
				q->job.p[j].block = BLOCK_DEP_DEAD;
			continue;
		}
		if (on != SLU_NIL && s->dep[i].kind == SLU_DEP_AFTER_START &&
		    q->job.p[on].state == SLU_JOB_RUNNING)
			continue;
		uint32_t d = dep_new(q);
		uint64_t *head = slu_map_get(&q->dep_on, s->dep[i].job);

		if (d == SLU_NIL || (!head && slu_map_put(&q->dep_on, s->dep[i].job, 0) < 0)) {
			if (d != SLU_NIL) {
				q->dep.p[d].next = q->dep_free;
				q->dep_free = d;
			}
			return -ENOMEM;
		}
		head = slu_map_get(&q->dep_on, s->dep[i].job);
		q->dep.p[d] = (struct dep){ .next = q->job.p[j].dep,
					    .next_for = (uint32_t)*head,
					    .job = j,
					    .on = s->dep[i].job,
					    .kind = (uint8_t)s->dep[i].kind,
					    .open = true };
		*head = d + 1;
		q->job.p[j].dep = d;
		q->job.p[j].ndep++;
	}
	return 0;
}

static void dep_unlink(struct slu_queue *q, uint32_t d)
{
	uint64_t *head = slu_map_get(&q->dep_on, q->dep.p[d].on);
	uint32_t at = (uint32_t)*head;

	if (at == d + 1) {
		if (q->dep.p[d].next_for)
			*head = q->dep.p[d].next_for;
		else
			slu_map_del(&q->dep_on, q->dep.p[d].on);
		return;
	}
	while (q->dep.p[at - 1].next_for != d + 1)
		at = q->dep.p[at - 1].next_for;
	q->dep.p[at - 1].next_for = q->dep.p[d].next_for;
}

static void dep_free_all(struct slu_queue *q, uint32_t j)
{
	for (uint32_t d = q->job.p[j].dep; d != SLU_NIL;) {
		uint32_t next = q->dep.p[d].next;

		if (q->dep.p[d].open)
			dep_unlink(q, d);
		q->dep.p[d].next = q->dep_free;
		q->dep_free = d;
		d = next;
	}
	q->job.p[j].dep = SLU_NIL;
	q->job.p[j].ndep = 0;
}

/* Job `on` started or ended: settle the jobs that wait for it.  started: only AFTER_START. */
int queue_dep_fire(struct slu_queue *q, slu_job_id on, bool started, enum slu_result r,
		   struct slu_decisions *out)
{
	uint64_t *head = slu_map_get(&q->dep_on, on);
	int rc = 0;

	for (uint32_t at = head ? (uint32_t)*head : 0; at && !rc;) {
		uint32_t d = at - 1, j = q->dep.p[d].job;
		struct job *job = &q->job.p[j];

		at = q->dep.p[d].next_for;
		if (started && q->dep.p[d].kind != SLU_DEP_AFTER_START)
			continue;
		dep_unlink(q, d);
		q->dep.p[d].open = false;
		job->ndep--;
		if (!dep_met((enum slu_dep_kind)q->dep.p[d].kind, r)) {
			if (job->block == BLOCK_FULL)
				queue_full_leave(q, j);
			job->block = BLOCK_DEP_DEAD;
			rc = queue_decide_text(
				out, SLU_DEC_EXPIRED, job->id,
				"waits for job %" PRIu64 " to %s, which cannot happen any more", on,
				q->dep.p[d].kind == SLU_DEP_AFTER_OK ? "succeed" : "fail");
		}
		if (!rc && (job->state == SLU_JOB_BLOCKED || job->block == BLOCK_DEP_DEAD))
			rc = queue_job_settle(q, j, out);
	}
	return rc;
}

/* ---- birth and death ---- */

static void job_delete(struct slu_queue *q, uint32_t j)
{
	struct job *job = &q->job.p[j];

	if (job->block == BLOCK_FULL)
		queue_full_leave(q, j);
	list_del(q, j);
	q->sub.p[job->queue].n[job->state]--;
	queue_tally(q, j, job->state == SLU_JOB_RUNNING ? TALLY_RUNNING : TALLY_WAITING, -1);
	dep_free_all(q, j);
	queue_shape_put(q, job->shape);
	if (job->asked != SLU_NIL)
		queue_shape_put(q, job->asked);
	slu_free(job->name);
	job->name = NULL;
	slu_map_del(&q->job_of, job->id);
	job->used = false;
	if (job->flags & JOB_FRESH) {
		/* The list must not name a slot twice once it is used again. */
		uint32_t n = 0;

		for (uint32_t i = 0; i < q->fresh.n; i++)
			if (q->fresh.p[i] != j)
				q->fresh.p[n++] = q->fresh.p[i];
		q->fresh.n = n;
	}
	q->job_free.p[q->job_free.n++] = j;
}

static int result_keep(struct slu_queue *q, slu_job_id id, enum slu_result r)
{
	uint32_t max = q->opts.keep_results;

	if (q->result_ring.n < max) {
		if (slu_vec_reserve(&q->result_ring, q->result_ring.n + 1) < 0 ||
		    slu_map_put(&q->result, id, (uint64_t)r) < 0)
			return -ENOMEM;
		q->result_ring.p[q->result_ring.n++] = id;
		return 0;
	}
	if (slu_map_put(&q->result, id, (uint64_t)r) < 0)
		return -ENOMEM;
	if (q->result_ring.p[q->result_next] != id)
		slu_map_del(&q->result, q->result_ring.p[q->result_next]);
	q->result_ring.p[q->result_next] = id;
	q->result_next = (q->result_next + 1) % max;
	return 0;
}

int queue_job_gone(struct slu_queue *q, uint32_t j, enum slu_result r, struct slu_decisions *out)
{
	struct job *job = &q->job.p[j];
	slu_job_id id = job->id;
	int rc = result_keep(q, id, r);

	if (rc < 0)
		return rc;
	if (job->state == SLU_JOB_RUNNING) {
		slu_gang_cancel(q->m, id); /* -ENOENT: its last slot was released before */
		queue_note_end(q, j);
		queue_plan_freed(q, SLU_CAUSE_EARLY_END, id, SLU_NODE_NONE);
		q->sub.p[job->queue].ended++;
	} else if (job->state == SLU_JOB_WAITING) {
		if (job->planned_s != SLU_TIME_NONE)
			queue_plan_freed(q, SLU_CAUSE_EARLY_END, id, SLU_NODE_NONE);
		queue_job_leave_line(q, j);
	}
	job_delete(q, j);
	return queue_dep_fire(q, id, false, r, out);
}

/* All that a job needs before it is settled or registered; *out_j is in no tree, BLOCKED. */
int queue_job_make(struct slu_queue *q, const struct slu_job_spec *s, uint32_t queue,
		   int64_t limit_s, uint32_t *out_j)
{
	uint32_t user = slu_intern(&q->str, s->user ? s->user : "");
	uint32_t tag = SLU_INTERN_NONE;

	if (user == SLU_INTERN_NONE)
		return -ENOMEM;
	if (s->reservation && *s->reservation) {
		tag = slu_intern(&q->str, s->reservation);
		if (tag == SLU_INTERN_NONE)
			return -ENOMEM;
	}
	if (queue_usage_make(q, queue, user) < 0)
		return -ENOMEM;
	int64_t shape = queue_shape_get(q, s->req);

	if (shape < 0)
		return -ENOMEM;
	uint32_t j = job_new(q, s->id);

	if (j == SLU_NIL) {
		queue_shape_put(q, (uint32_t)shape);
		return -ENOMEM;
	}
	struct job *job = &q->job.p[j];

	job->user = user;
	job->queue = queue;
	job->shape = (uint32_t)shape;
	job->tag = tag;
	job->priority = s->priority;
	job->first_seen_us = s->first_seen_us;
	job->limit_s = limit_s;
	job->begin_s = s->begin_s;
	job->deadline_s = s->deadline_s;
	job->flags = (s->held ? JOB_HELD : 0) | (s->grow ? JOB_GROW : 0) |
		     (s->member ? JOB_MEMBER : 0);
	job->stands = s->stands;
	q->sub.p[queue].n[job->state]++;
	queue_tally(q, j, TALLY_WAITING, 1);
	queue_job_list(q, j);
	if ((s->name && *s->name && !(job->name = slu_strdup(s->name))) || dep_link(q, j, s) < 0) {
		job_delete(q, j);
		return -ENOMEM;
	}
	*out_j = j;
	return 0;
}

void queue_job_unmake(struct slu_queue *q, uint32_t j)
{
	queue_job_leave_line(q, j);
	job_delete(q, j);
}
