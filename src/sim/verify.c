/* An independent ledger: it adds up the decisions without trusting the queue.
 *
 *   - no node over its size: starts and ends alone are counted here, per node and resource
 *   - no gang in part: a start names at least the minimum of every role
 *   - FCFS is never overtaken: the job that starts is the first in line (but a promise holds against
 *     jobs that came in front of it afterwards)
 *   - promises: a told start moves later only for lack of capacity, and a job starts no later than
 *     it was told last.  This covers EASY's head and every job under CONSERVATIVE, since every delay of
 *     theirs would be a broken promise.
 *   - the bound on the wait (verify_bound.c)
 * Every now and then, and at the end, the queue's own books are proven as a whole. */
#include "sim/world_internal.h"

#define CHECK_EVERY 1000

struct held {
	SLU_VEC(struct slu_gang_part) part;
};

struct verify {
	int64_t *used;     /* [node][3] */
	struct held *held; /* per job */
	uint32_t jobs;
	int64_t *told;          /* last reported start, per job */
	SLU_VEC(uint32_t) line; /* jobs in line, in order of submission (a heap by order) */
	uint8_t *in_line;
	uint64_t *entered, *promised; /* step at which a job came in line, was promised a start */
	uint64_t steps;
	struct bound *bound;
};

int sim_verify_new(struct world *w, struct verify **out)
{
	struct verify *v = slu_calloc(1, sizeof *v);
	uint32_t jobs = SLU_MAX(w->t->job.n, 1u);

	if (!v)
		return -ENOMEM;
	v->jobs = jobs;
	v->used = slu_calloc((size_t)SLU_MAX(w->t->node.n, 1u) * 3, sizeof *v->used);
	v->held = slu_calloc(jobs, sizeof *v->held);
	v->told = slu_calloc(jobs, sizeof *v->told);
	v->in_line = slu_calloc(jobs, 1);
	v->entered = slu_calloc(jobs, sizeof *v->entered);
	v->promised = slu_calloc(jobs, sizeof *v->promised);
	w->verify = v;
	if (!v->entered || !v->promised || !v->used || !v->held || !v->told || !v->in_line)
		return -ENOMEM;
	for (uint32_t j = 0; j < w->t->job.n; j++)
		v->told[j] = SLU_TIME_NONE;
	*out = v;
	return sim_bound_new(w, &v->bound);
}

void sim_verify_free(struct verify *v)
{
	if (!v)
		return;
	sim_bound_free(v->bound);
	slu_free(v->used);
	for (uint32_t j = 0; v->held && j < v->jobs; j++)
		slu_vec_done(&v->held[j].part); /* what --until left running */
	slu_free(v->held);
	slu_free(v->told);
	slu_free(v->in_line);
	slu_free(v->entered);
	slu_free(v->promised);
	slu_vec_done(&v->line);
	slu_free(v);
}

static void book_part(struct verify *v, const struct world *w, uint32_t j,
		      const struct slu_gang_part *p, int sign)
{
	const struct slu_trace_role *r =
		&w->t->role.p[w->t->req.p[w->t->job.p[j].req].role + p->role];
	int64_t *u = &v->used[(size_t)slu_node_index(p->node) * 3];

	u[0] += sign * r->millicores * p->slots;
	u[1] += sign * r->memory * p->slots;
	u[2] += sign * (int64_t)r->gpus * p->slots;
}

static int check_capacity(const struct verify *v, const struct world *w,
			  const struct slu_gang_part *p, slu_job_id job, struct slu_error *err)
{
	uint32_t i = slu_node_index(p->node);
	const struct slu_trace_node *n = &w->t->node.p[i];
	const int64_t *u = &v->used[(size_t)i * 3];
	const int64_t size[3] = { n->millicores, n->memory, n->gpus };
	static const char *const kind[3] = { "millicores", "bytes", "gpus" };

	for (int k = 0; k < 3; k++)
		if (u[k] > size[k])
			return slu_fail(err, -EUCLEAN,
					"verify: at %" PRId64 " job %" PRIu64 " puts %" PRId64
					" %s on node %u, which has %" PRId64,
					w->now_s, job, u[k], kind[k], i, size[k]);
	return 0;
}

static int64_t held_of(const struct verify *v, uint32_t j, uint32_t role)
{
	int64_t n = 0;

	for (uint32_t i = 0; i < v->held[j].part.n; i++)
		if (v->held[j].part.p[i].role == role)
			n += v->held[j].part.p[i].slots;
	return n;
}

static int take_decision(struct verify *v, const struct world *w, const struct slu_decision *d,
			 struct slu_error *err)
{
	uint32_t j = (uint32_t)d->job - 1;

	for (uint32_t i = 0; i < d->n_part; i++) {
		const struct slu_gang_part *p = &w->out.part.p[d->part + i];

		if (slu_vec_push(&v->held[j].part, *p) < 0)
			return -ENOMEM;
		book_part(v, w, j, p, 1);
		int rc = check_capacity(v, w, p, d->job, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- the line of FCFS: a heap in queue order ---- */

static bool submitted_before(const struct world *w, uint32_t a, uint32_t b)
{
	const struct slu_trace_job *x = &w->t->job.p[a], *y = &w->t->job.p[b];

	if (x->priority != y->priority)
		return x->priority > y->priority;
	if (w->s->job.p[a].submit_s != w->s->job.p[b].submit_s)
		return w->s->job.p[a].submit_s < w->s->job.p[b].submit_s;
	int c = strcmp(x->name == SLU_INTERN_NONE ? "" : slu_intern_str(&w->t->str, x->name),
		       y->name == SLU_INTERN_NONE ? "" : slu_intern_str(&w->t->str, y->name));

	return c ? c < 0 : a < b;
}

static void line_down(struct verify *v, const struct world *w, uint32_t i)
{
	uint32_t *h = v->line.p, n = v->line.n;

	for (uint32_t c = 2 * i + 1; c < n; i = c, c = 2 * i + 1) {
		if (c + 1 < n && submitted_before(w, h[c + 1], h[c]))
			c++;
		if (!submitted_before(w, h[c], h[i]))
			return;
		uint32_t tmp = h[i];

		h[i] = h[c];
		h[c] = tmp;
	}
}

static bool is_fcfs(const struct world *w)
{
	return w->o->policy == SLU_POLICY_FCFS && !w->t->queue.n;
}

int sim_verify_submit(struct verify *v, const struct world *w, uint32_t j)
{
	v->in_line[j] = 1;
	v->entered[j] = v->steps + 1;
	v->promised[j] = UINT64_MAX;
	if (sim_bound_submit(v->bound, w, j) < 0)
		return -ENOMEM;
	v->told[j] = SLU_TIME_NONE;
	if (!is_fcfs(w))
		return 0;
	if (slu_vec_push(&v->line, j) < 0)
		return -ENOMEM;
	for (uint32_t i = v->line.n - 1; i > 0;) {
		uint32_t up = (i - 1) / 2;

		if (!submitted_before(w, v->line.p[i], v->line.p[up]))
			break;
		uint32_t tmp = v->line.p[i];

		v->line.p[i] = v->line.p[up];
		v->line.p[up] = tmp;
		i = up;
	}
	return 0;
}

static int check_fcfs(struct verify *v, const struct world *w, uint32_t j, struct slu_error *err)
{
	while (v->line.n) {
		uint32_t top = v->line.p[0];
		struct slu_job_view view;

		if (v->in_line[top]) {
			/* Held, blocked or impossible jobs are not in line. */
			if (slu_queue_job(w->q, top + 1, &view) == 0 &&
			    view.state == SLU_JOB_WAITING && submitted_before(w, top, j) &&
			    v->promised[j] >= v->entered[top])
				return slu_fail(err, -EUCLEAN,
						"verify: at %" PRId64
						" job %u overtakes job %u under fcfs",
						w->now_s, j + 1, top + 1);
			if (!submitted_before(w, top, j))
				return 0;
			/* A held job is compared again once it is released. */
		}
		v->line.p[0] = v->line.p[--v->line.n];
		line_down(v, w, 0);
	}
	return 0;
}

void sim_verify_end(struct verify *v, const struct world *w, uint32_t j)
{
	for (uint32_t i = 0; i < v->held[j].part.n; i++)
		book_part(v, w, j, &v->held[j].part.p[i], -1);
	slu_vec_done(&v->held[j].part);
	v->in_line[j] = 0;
}

static int on_start(struct verify *v, const struct world *w, const struct slu_decision *d,
		    struct slu_error *err)
{
	uint32_t j = (uint32_t)d->job - 1;
	const struct slu_trace_req *q = &w->t->req.p[w->t->job.p[j].req];
	int rc = take_decision(v, w, d, err);

	v->in_line[j] = 0;
	for (uint32_t r = 0; !rc && r < q->nrole; r++)
		if (held_of(v, j, r) < w->t->role.p[q->role + r].slots && !w->t->event.n)
			return slu_fail(err, -EUCLEAN,
					"verify: at %" PRId64 " job %" PRIu64
					" starts in part: %" PRId64 " of %u slots",
					w->now_s, d->job, held_of(v, j, r),
					w->t->role.p[q->role + r].slots);
	if (!rc && v->told[j] != SLU_TIME_NONE && w->now_s > v->told[j])
		return slu_fail(err, -EUCLEAN,
				"verify: job %" PRIu64 " starts at %" PRId64
				", promised for %" PRId64,
				d->job, w->now_s, v->told[j]);
	if (!rc && is_fcfs(w))
		rc = check_fcfs(v, w, j, err);
	return rc ? rc : sim_bound_start(v->bound, w, j, err);
}

static bool lack_of_capacity(enum slu_cause c)
{
	return c == SLU_CAUSE_NODE_LOST || c == SLU_CAUSE_FOREIGN || c == SLU_CAUSE_OVERRUN ||
	       c == SLU_CAUSE_OWN;
}

static int on_plan(struct verify *v, const struct world *w, const struct slu_decision *d,
		   struct slu_error *err)
{
	uint32_t j = (uint32_t)d->job - 1;

	if (d->was_s != v->told[j])
		return slu_fail(err, -EUCLEAN,
				"verify: job %" PRIu64 " was told %" PRId64
				", the plan says it was told %" PRId64,
				d->job, v->told[j], d->was_s);
	bool later = v->told[j] != SLU_TIME_NONE && d->start_s != SLU_TIME_NONE &&
		     d->start_s > v->told[j];

	if (later && !lack_of_capacity(d->cause))
		return slu_fail(err, -EUCLEAN,
				"verify: at %" PRId64 " job %" PRIu64 " is moved from %" PRId64
				" to %" PRId64 " (%s)",
				w->now_s, d->job, v->told[j], d->start_s, slu_cause_name(d->cause));
	if (v->told[j] == SLU_TIME_NONE)
		v->promised[j] = v->steps;
	v->told[j] = d->start_s;
	return d->start_s == SLU_TIME_NONE ? 0 : sim_bound_promise(v->bound, w, j, err);
}

/* A job shrinks: the ledger gives back what the decision names. */
static void give_back(struct verify *v, const struct world *w, const struct slu_decision *d)
{
	uint32_t j = (uint32_t)d->job - 1;

	for (uint32_t i = 0; i < d->n_part; i++) {
		const struct slu_gang_part *p = &w->out.part.p[d->part + i];

		for (uint32_t k = v->held[j].part.n; k-- > 0;) {
			struct slu_gang_part *h = &v->held[j].part.p[k];

			if (h->node == p->node && h->role == p->role && h->slots >= p->slots) {
				h->slots -= p->slots;
				break;
			}
		}
		book_part(v, w, j, p, -1);
	}
}

int sim_verify_step(struct verify *v, const struct world *w, struct slu_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < w->out.v.n && !rc; i++) {
		const struct slu_decision *d = &w->out.v.p[i];

		if (d->kind == SLU_DEC_START)
			rc = on_start(v, w, d, err);
		else if (d->kind == SLU_DEC_PLAN)
			rc = on_plan(v, w, d, err);
		else if (d->kind == SLU_DEC_RESIZED && d->size > 0)
			rc = take_decision(v, w, d, err);
		else if (d->kind == SLU_DEC_RESIZED)
			give_back(v, w, d);
	}
	if (!rc)
		rc = sim_bound_step(v->bound, w, err);
	if (!rc && ++v->steps % CHECK_EVERY == 0)
		rc = slu_queue_check(w->q, w->now_s, err);
	return rc;
}
