/* Explain why a job does not run, from the plan itself. */
#include "base/buf.h"
#include "base/qty.h"
#include "queue/queue_internal.h"

#include <time.h>

#define SHADOW_MAX 2000u
#define VIRTUAL_S  1000000000 /* clocks of the world are past it since 2001 */

/* When the jobs of a queue that limits count are thought to run: those that do, those that have a
 * promise, and those of the line as they are booked. */
struct stay {
	int64_t from_s, to_s;
	uint32_t user;
};
struct stays {
	SLU_VEC(struct stay) v;
};

static int stay_add(struct stays *t, const struct job *job, int64_t from_s, int64_t to_s)
{
	struct stay s = { from_s, to_s, job->user };

	return job_is_free(job) ? 0 : slu_vec_push(&t->v, s);
}

static int stays_of(const struct slu_queue *q, uint32_t sub, int64_t now_s, struct stays *t)
{
	const struct subqueue *s = &q->sub.p[sub];
	int rc = 0;

	if (!s->conf.limit.max_running && !s->conf.limit.max_running_user)
		return 0;
	for (uint32_t j = q->list[SLU_JOB_RUNNING]; !rc && j != SLU_NIL; j = q->job.p[j].next)
		if (q->job.p[j].queue == sub)
			rc = stay_add(t, &q->job.p[j], INT64_MIN,
				      SLU_MAX(q->job.p[j].end_s, now_s + 1));
	for (uint32_t j = queue_order_first(q->job.p, s->reserved); !rc && j != SLU_NIL;
	     j = queue_order_next(q->job.p, s->reserved, &q->job.p[j]))
		rc = stay_add(t, &q->job.p[j], q->job.p[j].planned_s,
			      q->job.p[j].planned_s + q->job.p[j].limit_s);
	return rc;
}

/* The first moment from `at_s` on at which the running limits leave a place. */
static int64_t allowed_from(const struct slu_queue *q, uint32_t j, const struct stays *t,
			    int64_t at_s)
{
	const struct job *job = &q->job.p[j];
	const struct slu_queue_limits *l = &q->sub.p[job->queue].conf.limit;

	for (bool again = !job_is_free(job); again;) {
		uint32_t all = 0, mine = 0;
		int64_t end_s = SLU_TIME_EVER, my_end_s = SLU_TIME_EVER;

		for (uint32_t i = 0; i < t->v.n; i++) {
			const struct stay *s = &t->v.p[i];

			if (s->from_s > at_s || s->to_s <= at_s)
				continue;
			all++;
			end_s = SLU_MIN(end_s, s->to_s);
			if (s->user != job->user)
				continue;
			mine++;
			my_end_s = SLU_MIN(my_end_s, s->to_s);
		}
		bool crowd = l->max_running && all >= l->max_running;

		again = crowd || (l->max_running_user && mine >= l->max_running_user);
		if (again)
			at_s = crowd ? end_s : my_end_s;
		again &= at_s < SLU_FOREVER / 4;
	}
	return at_s;
}

#define TRIES 32

/* Plan this job on a copy of the machine as it stands, not before `from_s`; start or SLU_TIME_NONE. */
static int shadow(struct slu_queue *q, struct slu_machine *m, int64_t now_s, int64_t from_s,
		  uint32_t j, struct stays *t, struct slu_gang_place *place, int64_t *start_s)
{
	struct slu_gang_req req = queue_job_req(q, j);
	struct slu_gang_role role[SLU_ROLES_MAX];
	int64_t at_s = SLU_MAX(now_s, from_s);

	if (q->job.p[j].planned_s != SLU_TIME_NONE) {
		*start_s = q->job.p[j].planned_s;
		return 0;
	}
	*start_s = SLU_TIME_NONE;
	at_s = SLU_MAX(at_s, req.begin_s);
	queue_req_minimum(&req, role);
	for (uint32_t i = 0; i < TRIES; i++) {
		at_s = allowed_from(q, j, t, at_s);
		if (at_s >= SLU_FOREVER / 4)
			return 0;
		req.begin_s = at_s;
		int ans = slu_gang_match(m, SLU_GANG_ALLOCATE_OR_RESERVE, now_s, q->job.p[j].id,
					 &req, place, NULL);

		if (ans < 0)
			return ans;
		if (ans != SLU_GANG_NOW && ans != SLU_GANG_LATER)
			return 0;
		if (allowed_from(q, j, t, place->start_s) == place->start_s) {
			*start_s = place->start_s;
			return stay_add(t, &q->job.p[j], place->start_s,
					place->start_s + q->job.p[j].limit_s);
		}
		slu_gang_cancel(m, q->job.p[j].id);
		at_s = place->start_s;
	}
	return 0;
}

int slu_queue_estimate(const struct slu_queue *cq, int64_t now_s, uint32_t depth,
		       int (*fn)(slu_job_id id, int64_t start_s, void *), void *arg,
		       struct slu_error *err)
{
	struct slu_queue *q = (struct slu_queue *)cq; /* only its machine is asked, on a copy */
	slu_cleanup(slu_machine_freep) struct slu_machine *m = slu_machine_clone(q->m);
	struct slu_gang_place place = { 0 };
	int rc = m ? 0 : -ENOMEM;

	for (uint32_t o = 0; o < q->sub_order.n && !rc; o++) {
		struct stays stays = { 0 };
		uint32_t *line = NULL, n = 0;

		rc = queue_line_of(q, q->sub_order.p[o], &line, &n);
		if (!rc)
			rc = stays_of(q, q->sub_order.p[o], now_s, &stays);
		for (uint32_t i = 0; !rc && i < n && (!depth || i < depth); i++) {
			int64_t start_s = SLU_TIME_NONE;

			rc = shadow(q, m, now_s, now_s, line[i], &stays, &place, &start_s);
			if (!rc)
				rc = fn(q->job.p[line[i]].id, start_s, arg);
		}
		slu_vec_done(&stays.v);
		slu_free(line);
	}
	slu_gang_place_done(&place);
	return rc == -ENOMEM ? slu_fail(err, rc, "out of memory") : rc;
}

/* ---- estimates for one job after the other ---- */

/* A machine on which the first `done` jobs of a queue's line are booked in their order.  It is kept
 * until the queue changes, so asking about many jobs costs one walk along the line. */
struct shadow {
	uint32_t sub;
	int64_t now_s;
	struct slu_machine *m;
	uint32_t *line, n, done;
	int64_t *start_s;
	struct stays stays;
};

void queue_shadow_drop(struct slu_queue *q)
{
	struct shadow *s = q->shadow;

	q->shadow = NULL;
	if (!s)
		return;
	slu_machine_free(s->m);
	slu_free(s->line);
	slu_free(s->start_s);
	slu_vec_done(&s->stays.v);
	slu_free(s);
}

static struct shadow *shadow_of(struct slu_queue *q, int64_t now_s, uint32_t sub)
{
	struct shadow *s = q->shadow;

	if (s && s->sub == sub && s->now_s == now_s)
		return s;
	queue_shadow_drop(q);
	s = q->shadow = slu_calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->sub = sub;
	s->now_s = now_s;
	s->m = slu_machine_clone(q->m);
	if (s->m && queue_line_of(q, sub, &s->line, &s->n) == 0 &&
	    stays_of(q, sub, now_s, &s->stays) == 0)
		s->start_s = slu_reallocarray(NULL, SLU_MIN(s->n, SHADOW_MAX) + 1u,
					      sizeof *s->start_s);
	if (s->start_s)
		return s;
	queue_shadow_drop(q);
	return NULL;
}

/* Book the first `n` of the line. */
static int shadow_walk(struct slu_queue *q, struct shadow *s, uint32_t n)
{
	for (; s->done < n; s->done++) {
		int rc = shadow(q, s->m, s->now_s, s->now_s, s->line[s->done], &s->stays, &q->place,
				&s->start_s[s->done]);

		if (rc < 0) {
			queue_shadow_drop(q);
			return rc;
		}
	}
	return 0;
}

/* When what it waits for has happened by plan; SLU_TIME_NONE: that cannot be said. */
static int64_t deps_by(const struct slu_queue *q, const struct shadow *s, uint32_t j)
{
	int64_t at_s = s->now_s;

	for (uint32_t d = q->job.p[j].dep; d != SLU_NIL; d = q->dep.p[d].next) {
		uint32_t on = q->dep.p[d].open ? queue_job_find(q, q->dep.p[d].on) : SLU_NIL;
		int64_t start_s = SLU_TIME_NONE;

		if (!q->dep.p[d].open)
			continue;
		if (on == SLU_NIL || q->dep.p[d].kind == SLU_DEP_AFTER_NOTOK)
			return SLU_TIME_NONE;
		if (q->job.p[on].state == SLU_JOB_RUNNING)
			start_s = q->job.p[on].end_s - q->job.p[on].limit_s;
		for (uint32_t i = 0; i < s->done && start_s == SLU_TIME_NONE; i++)
			if (s->line[i] == on)
				start_s = s->start_s[i];
		if (start_s == SLU_TIME_NONE)
			return SLU_TIME_NONE;
		at_s = SLU_MAX(at_s, q->dep.p[d].kind == SLU_DEP_AFTER_START
					     ? start_s
					     : start_s + q->job.p[on].limit_s);
	}
	return at_s;
}

/* Estimate a job that is not in line yet, because of its begin time or a dependency: behind the jobs in
 * line.  Nothing is left booked. */
static int estimate_aside(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_why *out)
{
	const struct job *job = &q->job.p[j];
	struct shadow *s = shadow_of(q, now_s, job->queue);
	uint32_t kept;
	int64_t from_s;
	int rc;

	if (!s)
		return -ENOMEM;
	rc = shadow_walk(q, s, SLU_MIN(s->n, SHADOW_MAX));
	if (rc < 0)
		return rc;
	from_s = deps_by(q, s, j);
	if (from_s == SLU_TIME_NONE)
		return 0;
	kept = s->stays.v.n;
	rc = shadow(q, s->m, now_s, from_s, j, &s->stays, &q->place, &out->planned_s);
	s->stays.v.n = kept;
	slu_gang_cancel(s->m, job->id); /* -ENOENT: no time was found */
	return rc;
}

/* Estimate a job in line: the jobs before it in its queue are booked first. */
static int estimate_one(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_why *out)
{
	struct shadow *s = shadow_of(q, now_s, q->job.p[j].queue);
	struct slu_gang_info info;
	uint32_t i = out->position - 1;

	if (!s)
		return -ENOMEM;
	if (i >= s->n || s->line[i] != j) /* just submitted: not counted by position yet */
		for (i = 0; i < s->n && s->line[i] != j;)
			i++;
	if (i >= s->n || i >= SHADOW_MAX)
		return 0;
	int rc = shadow_walk(q, s, i + 1);

	if (rc < 0)
		return rc;
	out->planned_s = s->start_s[i];
	return out->planned_s == SLU_TIME_NONE
		       ? 0
		       : slu_gang_info(s->m, q->job.p[j].id, &info, &out->place);
}

/* What people call n slots: pods, where the machine counts pods. */
static const char *slots_name(const struct slu_queue *q, const struct slu_gang_role *r, int64_t n)
{
	for (uint32_t k = 0; k < r->n_need; k++)
		if (!strcmp(slu_machine_resource_name(q->m, r->need[k].resource), "pods"))
			return n == 1 ? "pod" : "pods";
	return n == 1 ? "slot" : "slots";
}

static void put_fit(int64_t have, struct slu_buf *b)
{
	if (have)
		slu_buf_printf(b, "only %" PRId64 " %s", have, have == 1 ? "fits" : "fit");
	else
		slu_buf_puts(b, "none fits");
}

static void put_amounts(const struct slu_queue *q, const struct slu_gang_role *r, struct slu_buf *b)
{
	const char *sep = " of ";

	for (uint32_t k = 0; k < r->n_need; k++) {
		const char *resource = slu_machine_resource_name(q->m, r->need[k].resource);
		char text[SLU_QTY_TEXT];

		if (r->need[k].n == 1 && !strcmp(resource, "pods"))
			continue; /* a slot is a pod: saying so does not help */
		slu_qty_format(r->need[k].n, slu_qty_scale_of(resource), SLU_QTY_BINARY, text);
		slu_buf_printf(b, "%s%s %s", sep, text, resource);
		sep = ", ";
	}
}

/* A date, or the bare seconds of a clock that began at 0, as those of simulations do. */
static void put_time(int64_t s, struct slu_buf *b)
{
	time_t t = (time_t)s;
	char text[32];
	struct tm tm;

	if (s < VIRTUAL_S || !gmtime_r(&t, &tm) ||
	    !strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		slu_buf_printf(b, "%" PRId64, s);
	else
		slu_buf_puts(b, text);
}

static void put_job(const struct slu_queue *q, uint64_t id, struct slu_buf *b)
{
	uint32_t j = id < SLU_JOB_ID_MAX ? queue_job_find(q, id) : SLU_NIL;

	if (id & SLU_BOOKING_FOREIGN) {
		slu_buf_puts(b, "work of others");
	} else if (id & SLU_BOOKING_SPAN) {
		for (uint32_t i = 0; i < q->span.n; i++)
			if (q->span.p[i].id == id)
				slu_buf_printf(b, "%s \"%s\"",
					       q->span.p[i].kind == SLU_SPAN_DRAIN ? "drain"
										   : "reservation",
					       slu_intern_str(&q->str, q->span.p[i].name));
	} else if (j != SLU_NIL && q->job.p[j].name) {
		slu_buf_printf(b, "%s %s",
			       q->job.p[j].state == SLU_JOB_RUNNING ? "job" : "waiting job",
			       job_name(&q->job.p[j]));
	} else {
		slu_buf_printf(b, "%s %" PRIu64,
			       j != SLU_NIL && q->job.p[j].state != SLU_JOB_RUNNING ? "waiting job"
										    : "job",
			       id);
	}
}

static void put_lack(const struct slu_queue *q, const struct slu_gang_req *req,
		     const struct slu_gang_why *w, struct slu_buf *b)
{
	const struct slu_gang_role *r = &req->role[w->role < req->n_role ? w->role : 0];

	slu_buf_printf(b, "needs %" PRId64 " %s", w->want, slots_name(q, r, w->want));
	if (r->name && *r->name)
		slu_buf_printf(b, " for %s", r->name);
	put_amounts(q, r, b);
	slu_buf_puts(b, " at once; ");
	switch (w->limit) {
	case SLU_LIMIT_RESOURCE:
		put_fit(w->have, b);
		slu_buf_printf(b, " now: not enough %s",
			       slu_machine_resource_name(q->m, w->resource));
		break;
	case SLU_LIMIT_NODES:
		put_fit(w->have, b);
		slu_buf_puts(b, ": too few of the nodes it may use are up");
		break;
	case SLU_LIMIT_ALONE:
		put_fit(w->have, b);
		slu_buf_puts(b, " now, each on a node of its own");
		break;
	case SLU_LIMIT_EXCLUSIVE:
		put_fit(w->have, b);
		slu_buf_puts(b, " now: too few nodes are empty");
		break;
	case SLU_LIMIT_CLOSE:
		slu_buf_printf(b, "there is room, but not within one %s",
			       req->level >= 0 ? slu_machine_level_name(q->m, (uint32_t)req->level)
					       : "domain");
		break;
	case SLU_LIMIT_TIME:
		slu_buf_puts(b, "there is room now, but it is promised to others before this "
				"job would end");
		break;
	case SLU_LIMIT_MIX:
		slu_buf_puts(b, "each role fits now, but not all of them together");
		break;
	case SLU_LIMIT_BEGIN:
		slu_buf_puts(b, "it may not start yet");
		break;
	case SLU_LIMIT_DEADLINE:
		slu_buf_puts(b, "it could not end before its deadline");
		break;
	case SLU_LIMIT_NONE:
		slu_buf_puts(b, "it fits now");
		break;
	}
	for (uint32_t i = 0; i < w->n_holder && i < 4; i++) {
		slu_buf_puts(b, i ? ", " : "; held by ");
		put_job(q, w->holder[i].job, b);
		if (w->holder[i].start_s > q->now_s) {
			slu_buf_puts(b, " from ");
			put_time(w->holder[i].start_s, b);
		}
		if (w->holder[i].end_s != SLU_FOREVER) {
			slu_buf_puts(b, " until ");
			put_time(w->holder[i].end_s, b);
		}
	}
}

static void put_remedy(const struct slu_queue *q, const struct slu_gang_role *r,
		       const struct slu_gang_why *w, struct slu_buf *b)
{
	const char *sep = "would start now with ";
	char limit[SLU_QTY_TEXT];

	if (w->fewer_slots) {
		slu_buf_printf(b, "%s%u %s", sep, w->fewer_slots, slots_name(q, r, w->fewer_slots));
		sep = ", or with ";
	}
	if (w->shorter_s) {
		slu_buf_printf(b, "%sa limit of %s", sep, slu_duration_text(w->shorter_s, limit));
		sep = ", or with ";
	}
	if (w->without_close)
		slu_buf_printf(b, "%sa looser topology", sep);
}

/* Ask the matcher, without the job's own reservation in the way. */
static int ask_matcher(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_buf *reason,
		       struct slu_buf *remedy, struct slu_error *err)
{
	slu_cleanup(slu_machine_freep) struct slu_machine *copy = NULL;
	struct slu_machine *m = q->m;
	struct slu_gang_req req = queue_job_req(q, j);
	struct slu_gang_why *w = slu_calloc(1, sizeof *w);
	int rc = w ? 0 : -ENOMEM;

	if (!rc && q->job.p[j].planned_s != SLU_TIME_NONE) {
		m = copy = slu_machine_clone(q->m);
		rc = m ? 0 : -ENOMEM;
		if (m)
			slu_gang_cancel(m, q->job.p[j].id);
	}
	if (!rc)
		rc = slu_gang_explain(m, now_s, &req, w, err);
	if (!rc && w->answer == SLU_GANG_NOW) {
		slu_buf_puts(reason, "it fits now");
	} else if (!rc) {
		put_lack(q, &req, w, reason);
		put_remedy(q, &req.role[w->role < req.n_role ? w->role : 0], w, remedy);
	}
	slu_free(w);
	return rc;
}

/* Under a policy that starts jobs in order, all jobs before this one start one after the other,
 * each within the longest limit.  Where the order of jobs that came together is chosen, all of
 * those count as before it.  Known as far as the shadow goes. */
static void put_bound_in_order(const struct slu_queue *q, uint32_t j, uint32_t position,
			       struct slu_buf *b)
{
	const struct shadow *s = q->shadow;
	const struct job *job = &q->job.p[j];
	bool packed = q->sub.p[job->queue].conf.backfill == SLU_BACKFILL_PACKED;
	int64_t longest_s = 0, until_us = job->first_seen_us + SLU_BATCH_S * INT64_C(1000000);
	uint32_t n = position;

	if (!s || s->sub != job->queue || position > SLU_MIN(s->n, SHADOW_MAX) || q->sub.n > 1)
		return;
	while (packed && n < s->n && q->job.p[s->line[n]].first_seen_us <= until_us)
		n++;
	for (uint32_t i = 0; i < n; i++)
		longest_s = SLU_MAX(longest_s, q->job.p[s->line[i]].limit_s);
	for (uint32_t r = q->list[SLU_JOB_RUNNING]; r != SLU_NIL; r = q->job.p[r].next)
		longest_s = SLU_MAX(longest_s, q->job.p[r].end_s - q->now_s);
	if (longest_s > SLU_LIMIT_MAX) /* something runs without end */
		return;
	slu_buf_puts(b, "; starts by ");
	put_time(q->now_s + (int64_t)n * longest_s, b);
	slu_buf_puts(b, " at the latest unless more urgent work comes");
}

/* What a job that has no promise yet can count on. */
static void put_bound(const struct slu_queue *q, uint32_t j, uint32_t position, struct slu_buf *b)
{
	const struct job *job = &q->job.p[j];
	const struct subqueue *sub = &q->sub.p[job->queue];

	if (sub->conf.stopped)
		return;
	if ((sub->conf.policy == SLU_POLICY_EASY || sub->conf.policy == SLU_POLICY_FCFS) &&
	    position && !sub->conf.limit.max_running && !sub->conf.limit.max_running_user)
		put_bound_in_order(q, j, position, b);
	if (sub->conf.policy != SLU_POLICY_SELECTIVE)
		return;
	if (job->due_s > q->now_s) {
		slu_buf_puts(b, "; it gets a promised start by ");
		put_time(job->due_s, b);
		slu_buf_puts(b, " at the latest");
	} else if (sub->n_reserved >= SLU_PROMISES) {
		slu_buf_puts(b, "; it has been due for a promise since ");
		put_time(job->due_s, b);
		slu_buf_printf(b, ", after %u others that have one", sub->n_reserved);
	}
}

static int why_waiting(struct slu_queue *q, int64_t now_s, uint32_t j, struct slu_why *out,
		       struct slu_buf *reason, struct slu_buf *remedy, struct slu_error *err)
{
	const struct job *job = &q->job.p[j];
	const struct slu_queue_conf *c = &q->sub.p[job->queue].conf;
	int rc = 0;

	out->position = queue_job_position(q, j);
	if (job->planned_s != SLU_TIME_NONE) {
		struct slu_gang_info info;

		out->planned_s = job->planned_s;
		out->promised = true;
		slu_gang_info(q->m, job->id, &info, &out->place);
	} else {
		rc = estimate_one(q, now_s, j, out);
	}
	if (rc < 0)
		return rc;
	if (c->removed)
		slu_buf_printf(reason, "queue \"%s\" is no longer configured; ", c->name);
	else if (c->stopped)
		slu_buf_printf(reason, "queue \"%s\" is stopped; ", c->name);
	else if (job->planned_s == SLU_TIME_NONE && !queue_plan_user_free(q, j))
		slu_buf_printf(reason, "the running limit of queue \"%s\" is reached; ", c->name);
	else if (c->policy == SLU_POLICY_FCFS && out->position > 1)
		slu_buf_printf(reason,
			       "%u jobs are ahead of it, and queue \"%s\" lets no job overtake; ",
			       out->position - 1, c->name);
	else if (c->queue_depth && out->position > c->queue_depth)
		slu_buf_printf(reason,
			       "it is at place %u, and only the first %u jobs are considered; ",
			       out->position, c->queue_depth);
	rc = ask_matcher(q, now_s, j, reason, remedy, err);
	if (!rc && job->planned_s == SLU_TIME_NONE)
		put_bound(q, j, out->position, reason);
	return rc;
}

static void why_dep(const struct slu_queue *q, uint32_t j, struct slu_buf *b)
{
	static const char *const verb[] = { "end", "succeed", "fail", "start" };
	uint32_t n = 0;

	slu_buf_puts(b, "waits for ");
	for (uint32_t d = q->job.p[j].dep; d != SLU_NIL; d = q->dep.p[d].next) {
		if (!q->dep.p[d].open)
			continue;
		if (n++ == 4) {
			slu_buf_puts(b, " and others");
			break;
		}
		slu_buf_puts(b, n > 1 ? ", " : "");
		put_job(q, q->dep.p[d].on, b);
		slu_buf_printf(b, " to %s", verb[q->dep.p[d].kind]);
		if (queue_job_find(q, q->dep.p[d].on) == SLU_NIL)
			slu_buf_puts(b, " (not seen yet)");
	}
}

static int why_aside(struct slu_queue *q, uint32_t j, struct slu_buf *b)
{
	const struct job *job = &q->job.p[j];
	char limit[SLU_QTY_TEXT];

	switch (job->block) {
	case BLOCK_BEGIN:
		slu_buf_puts(b, "may not start before ");
		put_time(job->begin_s, b);
		break;
	case BLOCK_DEP:
		why_dep(q, j, b);
		break;
	case BLOCK_DEADLINE:
		slu_buf_printf(b, "needs %s and must have ended by ",
			       slu_duration_text(job->limit_s, limit));
		put_time(job->deadline_s, b);
		slu_buf_puts(b, ": too late to start");
		break;
	case BLOCK_FULL:
		slu_buf_printf(b,
			       "queue \"%s\" takes no more waiting jobs (%u wait, %u of user "
			       "\"%s\"); this one enters when one of them starts or leaves",
			       q->sub.p[job->queue].conf.name, q->sub.p[job->queue].all.waiting,
			       queue_usage_of(q, job->queue, job->user)->waiting,
			       slu_intern_str(&q->str, job->user));
		break;
	case BLOCK_DEP_DEAD:
		slu_buf_puts(
			b,
			"waits for a job that can no longer end or start as its dependency requires");
		break;
	case BLOCK_NEVER: {
		struct slu_gang_req r = queue_job_req(q, j);
		struct slu_error e = { 0 };
		int rc = slu_gang_satisfiable(q->m, &r, &e);

		if (rc < 0 && rc != -EINVAL)
			return rc;
		slu_buf_printf(b, "can never run: %s", e.text);
		break;
	}
	default:
		slu_buf_puts(b, "held");
		break;
	}
	return 0;
}

int slu_queue_why(const struct slu_queue *cq, int64_t now_s, slu_job_id id, struct slu_why *out,
		  struct slu_error *err)
{
	struct slu_queue *q = (struct slu_queue *)cq; /* asking changes caches, not answers */
	uint32_t j = queue_job_find(q, id);
	struct slu_buf reason = SLU_BUF_INIT(64 << 10), remedy = SLU_BUF_INIT(4 << 10);
	int rc = 0;

	if (j == SLU_NIL)
		return slu_fail(err, -ENOENT, "no job %" PRIu64, id);
	*out = (struct slu_why){ .state = (enum slu_job_state)q->job.p[j].state,
				 .planned_s = SLU_TIME_NONE };
	if (out->state == SLU_JOB_RUNNING) {
		slu_buf_puts(&reason, "running since ");
		put_time(q->job.p[j].start_s, &reason);
		slu_buf_printf(&reason, " (%s)", slu_how_name((enum slu_how)q->job.p[j].how));
	} else if (out->state == SLU_JOB_WAITING) {
		rc = why_waiting(q, now_s, j, out, &reason, &remedy, err);
	} else {
		rc = why_aside(q, j, &reason);
		if (!rc && (q->job.p[j].block == BLOCK_BEGIN || q->job.p[j].block == BLOCK_DEP))
			rc = estimate_aside(q, now_s, j, out);
	}
	if (!rc)
		rc = reason.error ? reason.error : remedy.error;
	if (!rc) {
		out->reason = slu_buf_take(&reason);
		out->remedy = remedy.n ? slu_buf_take(&remedy) : NULL;
		if (!out->reason)
			rc = -ENOMEM;
	}
	slu_buf_done(&reason);
	slu_buf_done(&remedy);
	if (rc < 0)
		slu_why_done(out);
	return rc;
}

void slu_why_done(struct slu_why *w)
{
	slu_free(w->reason);
	slu_free(w->remedy);
	slu_gang_place_done(&w->place);
	memset(w, 0, sizeof *w);
}
