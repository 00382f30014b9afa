/* picture.c — a queue as bytes and back, so that a log can begin in the middle of its life.
 *
 * One description serves both directions: each function below writes what it is given, or fills
 * it from what was written.  Everything keeps its number (index in a table, order in a list), since
 * ties are broken by it; trees, sums and counts follow from the rest and are made anew.  What is
 * read may come from a damaged file: every number is checked before it is used. */
#include "queue/state.h"

#include "base/bytes.h"
#include "queue/codec.h"

struct pic {
	struct slu_buf *out; /* writing, or */
	struct slu_bytes_in in;
	const struct slu_set_names *names;
	struct slu_queue *q;
};

static bool reads(const struct pic *p)
{
	return !p->out;
}

static void wrong(struct pic *p, int rc)
{
	if (!p->in.rc)
		p->in.rc = rc;
}

static bool must(struct pic *p, bool so)
{
	if (reads(p) && !so)
		wrong(p, -EINVAL);
	return !p->in.rc;
}

static uint64_t number(struct pic *p, uint64_t v)
{
	if (reads(p))
		return slu_bytes_get_u(&p->in);
	slu_bytes_put_u(p->out, v);
	return v;
}

static uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static int64_t zagzig(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* U: as it is.  N: an index or none.  I: signed.  T: a time or none. */
#define U(x)                                            \
	do {                                            \
		uint64_t v_ = number(p, (uint64_t)(x)); \
		if (reads(p)) {                         \
			(x) = (__typeof__(x))v_;        \
			must(p, (uint64_t)(x) == v_);   \
		}                                       \
	} while (0)
#define N(x)                                                  \
	do {                                                  \
		uint64_t v_ = number(p, (uint32_t)((x) + 1)); \
		if (reads(p)) {                               \
			(x) = (uint32_t)v_ - 1;               \
			must(p, v_ <= UINT32_MAX);            \
		}                                             \
	} while (0)
#define I(x)                                        \
	do {                                        \
		uint64_t v_ = number(p, zigzag(x)); \
		if (reads(p))                       \
			(x) = zagzig(v_);           \
	} while (0)
#define T(x)                                            \
	do {                                            \
		uint64_t v_ = number(p, zigzag(x) + 1); \
		if (reads(p))                           \
			(x) = zagzig(v_ - 1);           \
	} while (0)

/* How many follow; each takes a byte at least. */
static uint32_t count(struct pic *p, uint32_t n)
{
	if (reads(p))
		return slu_bytes_get_n(&p->in);
	slu_bytes_put_u(p->out, n);
	return n;
}

#define ROOM(v, want)                                         \
	do {                                                  \
		if (reads(p) && slu_vec_reserve(v, want) < 0) \
			wrong(p, -ENOMEM);                    \
	} while (0)

static bool time_ok(int64_t t)
{
	return t == SLU_TIME_NONE || (t > -(SLU_FOREVER / 4) && t < SLU_FOREVER / 4);
}

static void set(struct pic *p, struct slu_nodeset **s)
{
	uint64_t id = number(p, reads(p) ? 0 : p->names->id(p->names->arg, *s));

	if (reads(p) && must(p, true)) {
		*s = slu_nodeset_ref(p->names->find(p->names->arg, id));
		must(p, *s != NULL);
	}
}

/* Something that an event can say, said by one. */
static void event(struct pic *p, const struct slu_event *ev, struct slu_event_box *box)
{
	if (reads(p)) {
		size_t n;
		const uint8_t *at = slu_bytes_get_run(&p->in, &n);
		int rc = at ? slu_event_decode(at, n, p->names, box, NULL) : -EINVAL;

		if (rc < 0)
			wrong(p, rc);
		return;
	}
	struct slu_buf b = SLU_BUF_INIT(16u << 20);

	slu_event_encode(0, ev, p->names, &b);
	slu_bytes_put_u(p->out, b.n);
	slu_buf_add(p->out, b.p, b.n);
	if (b.error && !p->out->error)
		p->out->error = b.error;
	slu_buf_done(&b);
}

/* ---- the parts ---- */

static void cause(struct pic *p, struct cause *c)
{
	U(c->cause);
	U(c->job);
	U(c->node);
	must(p, c->cause <= SLU_CAUSE_DROPPED);
}

static void scalars(struct pic *p)
{
	struct slu_queue *q = p->q;

	T(q->now_s);
	U(q->freed);
	U(q->seen_freed);
	U(q->topology);
	U(q->topology_seen);
	U(q->span_seq);
	U(q->bucket_gen);
	U(q->rebuild);
	U(q->user_matters);
	U(q->grow_any);
	cause(p, &q->later);
	cause(p, &q->earlier);
	must(p, time_ok(q->now_s));
}

static void strings(struct pic *p)
{
	struct slu_intern *t = &p->q->str;
	uint32_t n = count(p, t->n);

	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		if (!reads(p)) {
			slu_bytes_put_s(p->out, slu_intern_str(t, i));
			continue;
		}
		slu_cleanup(slu_freep) char *s = slu_bytes_get_s(&p->in);

		if (must(p, s != NULL)) {
			uint32_t at = slu_intern(t, s);

			if (at != i)
				wrong(p, at == SLU_INTERN_NONE ? -ENOMEM : -EINVAL);
		}
	}
}

static void machine(struct pic *p)
{
	struct slu_buf b = SLU_BUF_INIT(UINT32_MAX);
	struct slu_machine *m;
	size_t n;

	if (reads(p)) {
		const uint8_t *at = slu_bytes_get_run(&p->in, &n);
		int rc = at ? slu_machine_restore(at, n, &m) : -EINVAL;

		if (rc < 0) {
			wrong(p, rc);
			return;
		}
		slu_machine_free(p->q->m);
		p->q->m = m;
		return;
	}
	slu_machine_picture(p->q->m, &b);
	slu_bytes_put_u(p->out, b.n);
	slu_buf_add(p->out, b.p, b.n);
	if (b.error && !p->out->error)
		p->out->error = b.error;
	slu_buf_done(&b);
}

static void props(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->props.n);

	ROOM(&q->props, n);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		if (reads(p))
			q->props.p[q->props.n++] = (struct node_props){ 0 };
		struct node_props *x = &q->props.p[i];

		T(x->changed_s);
		uint32_t k = count(p, x->p.n);

		ROOM(&x->p, k);
		for (uint32_t a = 0; a < k && !p->in.rc; a++) {
			U(x->p.p[a]);
			must(p, x->p.p[a] < q->str.n);
			x->p.n = a + 1;
		}
	}
}

static void subs(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->sub.n);

	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		struct slu_event ev = { .kind = SLU_EV_QUEUE_SET };
		struct slu_event_box box = { 0 };

		if (!reads(p))
			ev.conf = &q->sub.p[i].conf;
		event(p, &ev, &box);
		if (p->in.rc)
			return;
		if (reads(p)) {
			int rc = ev_conf(q, &box.ev, NULL);

			slu_event_box_done(&box);
			if (rc < 0)
				wrong(p, rc);
			if (!must(p, q->sub.n == i + 1))
				return;
		}
		U(q->sub.p[i].n_noplan);
		U(q->sub.p[i].stale);
		U(q->sub.p[i].started);
		U(q->sub.p[i].ended);
		U(q->sub.p[i].backfilled);
	}
}

static void spans(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->span.n);

	ROOM(&q->span, n);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		if (reads(p))
			q->span.p[q->span.n++] = (struct span){ 0 };
		struct span *s = &q->span.p[i];

		U(s->kind);
		U(s->name);
		U(s->id);
		I(s->from_s);
		I(s->to_s);
		set(p, &s->nodes);
		must(p, s->kind <= SLU_SPAN_DRAIN && s->name < q->str.n);
		uint32_t k = count(p, s->user.n);

		ROOM(&s->user, k);
		for (uint32_t a = 0; a < k && !p->in.rc; a++) {
			U(s->user.p[a]);
			must(p, s->user.p[a] < q->str.n);
			s->user.n = a + 1;
		}
	}
}

static void shapes(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->shape.n);

	ROOM(&q->shape, n);
	ROOM(&q->shape_free, n + 1);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		struct slu_job_spec spec = { .req = reads(p) ? NULL : &q->shape.p[i].req };
		struct slu_event ev = { .kind = SLU_EV_REQUEST, .spec = &spec };
		struct slu_event_box box = { 0 };
		bool used = !reads(p) && q->shape.p[i].used;

		U(used);
		if (reads(p) && !p->in.rc)
			q->shape.p[q->shape.n++] = (struct shape){ 0 };
		if (!used || p->in.rc)
			continue;
		event(p, &ev, &box);
		if (!reads(p) || p->in.rc)
			continue;
		const struct slu_gang_req *req = box.ev.spec ? box.ev.spec->req : NULL;

		if (must(p, req && req->n_role && req->n_role <= SLU_ROLES_MAX) &&
		    shape_put_at(q, i, req) < 0)
			wrong(p, -ENOMEM);
		slu_event_box_done(&box);
	}
}

/* Slots of a table that wait to be used again, the last first. */
static void unused(struct pic *p, uint32_t *list, uint32_t *n_list, uint32_t n,
		   bool (*used)(const struct slu_queue *, uint32_t))
{
	uint32_t k = count(p, *n_list);

	if (!must(p, k <= n))
		return;
	for (uint32_t i = 0; i < k && !p->in.rc; i++) {
		U(list[i]);
		must(p, list[i] < n && !used(p->q, list[i]));
		*n_list = i + 1;
	}
	if (!reads(p) || p->in.rc)
		return;
	/* All of them, each once: as many as there are, and no two alike. */
	uint32_t idle = 0;
	slu_cleanup(slu_freep) bool *seen = slu_calloc((size_t)n + 1, sizeof *seen);

	if (!seen) {
		wrong(p, -ENOMEM);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		idle += !used(p->q, i);
	for (uint32_t i = 0; i < k; i++) {
		must(p, !seen[list[i]]);
		seen[list[i]] = true;
	}
	must(p, idle == k);
}

static bool shape_used(const struct slu_queue *q, uint32_t i)
{
	return q->shape.p[i].used;
}

static bool bucket_used(const struct slu_queue *q, uint32_t i)
{
	return q->bucket.p[i].used;
}

static bool job_used(const struct slu_queue *q, uint32_t i)
{
	return q->job.p[i].used;
}

static void bucket(struct pic *p, struct bucket *b)
{
	struct slu_queue *q = p->q;

	U(b->queue);
	U(b->shape);
	N(b->user);
	N(b->tag);
	I(b->failed_limit);
	U(b->failed_at);
	U(b->generation);
	if (!must(p, b->queue < q->sub.n && b->shape < q->shape.n && shape_used(q, b->shape)))
		return;
	uint32_t k = count(p, b->n_use);

	if (reads(p) && k) {
		if (!must(p, k <= SLU_BLOCKS_USED_MAX))
			return;
		b->use = slu_calloc(k, sizeof *b->use);
		if (!b->use) {
			wrong(p, -ENOMEM);
			return;
		}
		b->n_use = k;
	}
	for (uint32_t i = 0; i < k; i++)
		U(b->use[i]);
}

static void buckets(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->bucket.n);

	ROOM(&q->bucket, n);
	ROOM(&q->bucket_free, n + 1);
	for (uint32_t i = 0; i < q->sub.n; i++)
		ROOM(&q->sub.p[i].active, n + 1);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		if (reads(p))
			q->bucket.p[q->bucket.n++] = (struct bucket){ 0 };
		struct bucket *b = &q->bucket.p[i];

		U(b->used);
		if (b->used && !p->in.rc)
			bucket(p, b);
		if (!reads(p) || !b->used || p->in.rc)
			continue;
		b->root = b->active = b->after = SLU_NIL;
		/* Who is in line asks for something that the matcher understands. */
		int rc = slu_gang_satisfiable(q->m, &q->shape.p[b->shape].req, NULL);

		if (rc >= 0)
			rc = bucket_link(q, i);
		if (rc < 0)
			wrong(p, rc);
	}
}

static void job_fields(struct pic *p, struct job *j)
{
	U(j->id);
	U(j->user);
	U(j->queue);
	U(j->shape);
	N(j->asked);
	N(j->bucket);
	N(j->tag);
	I(j->priority);
	I(j->first_seen_us);
	I(j->limit_s);
	T(j->begin_s);
	T(j->deadline_s);
	T(j->start_s);
	T(j->end_s);
	T(j->planned_s);
	T(j->promised_s);
	U(j->gen);
	U(j->block);
	U(j->flags);
	U(j->how);
	if (reads(p))
		j->name = slu_bytes_get_s(&p->in);
	else
		slu_bytes_put_s(p->out, j->name);
}

static bool job_sane(const struct slu_queue *q, const struct job *j)
{
	bool line = j->state == SLU_JOB_WAITING;

	return j->id && j->id < SLU_JOB_ID_MAX && job_find(q, j->id) == SLU_NIL &&
	       j->user < q->str.n && j->queue < q->sub.n && j->shape < q->shape.n &&
	       shape_used(q, j->shape) &&
	       (j->asked == SLU_NIL || (j->asked < q->shape.n && shape_used(q, j->asked))) &&
	       (j->asked != SLU_NIL) == !!(j->flags & JOB_AVOIDS) &&
	       (j->tag == SLU_INTERN_NONE || j->tag < q->str.n) && (j->bucket != SLU_NIL) == line &&
	       (!line || (j->bucket < q->bucket.n && bucket_used(q, j->bucket) &&
			  q->bucket.p[j->bucket].queue == j->queue &&
			  q->bucket.p[j->bucket].shape == j->shape)) &&
	       (line || j->planned_s == SLU_TIME_NONE) && j->limit_s > 0 &&
	       j->limit_s <= SLU_LIMIT_MAX && time_ok(j->begin_s) && time_ok(j->deadline_s) &&
	       time_ok(j->start_s) && (time_ok(j->end_s) || j->end_s == SLU_FOREVER) &&
	       time_ok(j->planned_s) && time_ok(j->promised_s) && j->block <= BLOCK_DEP_DEAD &&
	       j->flags < 2 * JOB_PARTIAL && j->how <= SLU_HOW_RESERVED;
}

/* Into the trees and sums. */
static int job_enter(struct slu_queue *q, uint32_t i)
{
	struct job *j = &q->job.p[i];
	struct subqueue *sub = &q->sub.p[j->queue];

	if (slu_map_put(&q->job_of, j->id, i) < 0 || usage_make(q, j->queue, j->user) < 0)
		return -ENOMEM;
	struct usage *u = usage_of(q, j->queue, j->user);

	q->shape.p[j->shape].refs++;
	if (j->asked != SLU_NIL)
		q->shape.p[j->asked].refs++;
	sub->n[j->state]++;
	if (j->state == SLU_JOB_RUNNING)
		u->running++;
	else
		u->waiting++;
	if (j->state != SLU_JOB_WAITING)
		return 0;
	q->bucket.p[j->bucket].refs++;
	if (j->planned_s == SLU_TIME_NONE) {
		order_insert(q->job.p, &q->bucket.p[j->bucket].root, i);
		return 0;
	}
	order_insert(q->job.p, &sub->reserved, i);
	sub->n_reserved++;
	u->reserved++;
	return 0;
}

/* Its booking speaks of roles that it has, and they of kinds that there are. */
static bool booking_sane(struct slu_queue *q, const struct job *j)
{
	const struct slu_gang_req *req = &q->shape.p[j->shape].req;
	struct slu_gang_info info;

	if (slu_gang_info(q->m, j->id, &info, &q->place) < 0)
		return true;
	for (uint32_t i = 0; i < q->place.n; i++)
		if (q->place.part[i].role >= req->n_role)
			return false;
	for (uint32_t i = 0; i < req->n_role; i++)
		for (uint32_t k = 0; k < req->role[i].n_need; k++)
			if (req->role[i].need[k].kind >= slu_machine_kinds(q->m) ||
			    req->role[i].need[k].n < 0 || req->role[i].need[k].n > SLU_AMOUNT_MAX)
				return false;
	return info.state != SLU_GANG_BLOCK;
}

static void job_in_list(struct pic *p, uint32_t state, uint32_t i)
{
	struct slu_queue *q = p->q;

	U(i);
	if (!must(p, i < q->job.n && (!reads(p) || !q->job.p[i].used)))
		return;
	struct job *j = &q->job.p[i];

	job_fields(p, j);
	if (!reads(p) || p->in.rc)
		return;
	j->state = (uint8_t)state;
	j->dep = SLU_NIL;
	j->flags &= (uint8_t)~JOB_FRESH; /* see lines() */
	if (!must(p, job_sane(q, j) && booking_sane(q, j)))
		return;
	j->used = true;
	job_list(q, i);
	if (job_enter(q, i) < 0)
		wrong(p, -ENOMEM);
}

static void jobs(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->job.n);

	ROOM(&q->job, n);
	ROOM(&q->job_free, n + 1);
	ROOM(&q->fresh, n + 1);
	if (p->in.rc)
		return;
	if (reads(p) && n)
		memset(q->job.p, 0, n * sizeof *q->job.p);
	if (reads(p))
		q->job.n = n;
	for (uint32_t s = 0; s < SLU_LEN(q->list); s++) {
		uint32_t k = 0, at = q->list[s];

		for (uint32_t i = at; !reads(p) && i != SLU_NIL; i = q->job.p[i].next)
			k++;
		k = count(p, k);
		for (; k && !p->in.rc; k--) {
			job_in_list(p, s, at);
			at = reads(p) ? SLU_NIL : q->job.p[at].next;
		}
	}
	unused(p, q->job_free.p, &q->job_free.n, n, job_used);
	for (uint32_t i = 0; i < q->job_free.n && !p->in.rc; i++)
		U(q->job.p[q->job_free.p[i]].gen);
}

/* Buckets that have somebody in line, and jobs that came since the last pass. */
static void lines(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t listed = 0, full = 0;

	for (uint32_t i = 0; i < q->sub.n; i++) {
		struct subqueue *s = &q->sub.p[i];
		uint32_t k = count(p, s->active.n);

		if (!must(p, k <= q->bucket.n))
			return;
		for (uint32_t a = 0; a < k; a++) {
			U(s->active.p[a]);
			if (!must(p, s->active.p[a] < q->bucket.n))
				return;
			struct bucket *b = &q->bucket.p[s->active.p[a]];

			if (!reads(p))
				continue;
			if (!must(p, b->used && b->root != SLU_NIL && b->active == SLU_NIL &&
					     b->queue == i))
				return;
			b->active = a;
			s->active.n = a + 1;
			listed++;
		}
	}
	for (uint32_t i = 0; i < q->bucket.n; i++) {
		full += q->bucket.p[i].used && q->bucket.p[i].root != SLU_NIL;
		must(p, !q->bucket.p[i].used || q->bucket.p[i].refs);
	}
	for (uint32_t i = 0; i < q->shape.n; i++)
		must(p, !q->shape.p[i].used || q->shape.p[i].refs);
	must(p, full == listed);
	uint32_t k = count(p, q->fresh.n);

	for (uint32_t i = 0; i < k && !p->in.rc; i++) {
		U(q->fresh.p[i]);
		if (!reads(p) || !must(p, q->fresh.p[i] < q->job.n))
			continue;
		struct job *j = &q->job.p[q->fresh.p[i]];

		must(p, j->used && !(j->flags & JOB_FRESH));
		j->flags |= JOB_FRESH;
		q->fresh.n = i + 1;
	}
}

/* Who waits for whom: by whom, in the order in which they are told. */
static void deps(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->dep_on.n);

	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		slu_job_id on = reads(p) ? 0 : q->dep_on.e[i].key;
		uint32_t at = reads(p) ? 0 : (uint32_t)q->dep_on.e[i].val, k = 0, last = SLU_NIL;

		for (uint32_t d = at; d; d = q->dep.p[d - 1].next_for)
			k++;
		U(on);
		k = count(p, k);
		must(p, on && k && !slu_map_get(&q->dep_on, on));
		for (; k && !p->in.rc; k--) {
			struct dep x = { .on = on, .open = true };

			if (!reads(p))
				x = q->dep.p[at - 1];
			U(x.job);
			U(x.kind);
			at = x.next_for;
			if (!reads(p) ||
			    !must(p, x.job < q->job.n && q->job.p[x.job].used &&
					     q->job.p[x.job].state != SLU_JOB_WAITING &&
					     q->job.p[x.job].state != SLU_JOB_RUNNING &&
					     x.kind <= SLU_DEP_AFTER_START))
				continue;
			x.next = q->job.p[x.job].dep;
			if (slu_vec_push(&q->dep, x) < 0 ||
			    (last == SLU_NIL && slu_map_put(&q->dep_on, on, q->dep.n) < 0)) {
				wrong(p, -ENOMEM);
				return;
			}
			if (last != SLU_NIL)
				q->dep.p[last].next_for = q->dep.n;
			last = q->dep.n - 1;
			q->job.p[x.job].dep = last;
			q->job.p[x.job].ndep++;
		}
	}
}

/* How those ended who may be waited for; 0: somebody of the same number was forgotten. */
static void results(struct pic *p)
{
	struct slu_queue *q = p->q;
	uint32_t n = count(p, q->result_ring.n);

	if (!must(p, n <= q->opts.keep_results))
		return;
	ROOM(&q->result_ring, n);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		uint64_t *r = reads(p) ? NULL : slu_map_get(&q->result, q->result_ring.p[i]);
		uint64_t how = r ? *r + 1 : 0;

		U(q->result_ring.p[i]);
		U(how);
		must(p, how <= SLU_RESULT_CANCELLED + 1);
		if (!reads(p) || p->in.rc)
			continue;
		if (how && slu_map_put(&q->result, q->result_ring.p[i], how - 1) < 0)
			wrong(p, -ENOMEM);
		q->result_ring.n = i + 1;
	}
	U(q->result_next);
	must(p, q->result_next < q->opts.keep_results &&
			(!q->result_next || n == q->opts.keep_results));
}

static int by_time(const void *a, const void *b)
{
	const struct timer *x = a, *y = b;

	if (x->at_s != y->at_s)
		return x->at_s < y->at_s ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

/* In order; which is a heap, too. */
static void timers(struct pic *p)
{
	struct slu_queue *q = p->q;
	SLU_VEC(struct timer) t = { 0 };
	uint32_t n = 0;

	if (!reads(p)) {
		if (slu_vec_reserve(&t, q->timer.n) < 0) {
			p->out->error = -ENOMEM;
			return;
		}
		for (uint32_t i = 0; i < q->timer.n; i++)
			if (!timer_stale(q, &q->timer.p[i]))
				t.p[t.n++] = q->timer.p[i];
		if (t.n)
			qsort(t.p, t.n, sizeof *t.p, by_time);
	}
	n = count(p, t.n);
	ROOM(&q->timer, n);
	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		struct timer x = reads(p) ? (struct timer){ 0 } : t.p[i];

		I(x.at_s);
		N(x.job);
		if (!reads(p) ||
		    !must(p, x.job == SLU_NIL || (x.job < q->job.n && q->job.p[x.job].used)))
			continue;
		x.gen = x.job == SLU_NIL ? 0 : q->job.p[x.job].gen;
		must(p, !i || by_time(&q->timer.p[i - 1], &x) <= 0);
		q->timer.p[q->timer.n++] = x;
	}
	slu_vec_done(&t);
}

static void all(struct pic *p)
{
	static void (*const part[])(struct pic *) = { strings, machine, props, subs, spans };
	struct slu_queue *q = p->q;

	for (size_t i = 0; i < SLU_LEN(part) && !p->in.rc; i++)
		part[i](p);
	if (p->in.rc)
		return;
	shapes(p);
	if (!p->in.rc)
		unused(p, q->shape_free.p, &q->shape_free.n, q->shape.n, shape_used);
	if (!p->in.rc)
		buckets(p);
	if (!p->in.rc)
		unused(p, q->bucket_free.p, &q->bucket_free.n, q->bucket.n, bucket_used);
	if (!p->in.rc)
		jobs(p);
	if (!p->in.rc)
		lines(p);
	if (!p->in.rc)
		deps(p);
	if (!p->in.rc)
		results(p);
	if (!p->in.rc)
		timers(p);
	if (!p->in.rc)
		scalars(p); /* last: making the queues has changed them */
}

void slu_queue_picture(const struct slu_queue *q, const struct slu_set_names *names,
		       struct slu_buf *out)
{
	struct pic p = { .out = out,
			 .names = names,
			 .q = (struct slu_queue *)(uintptr_t)q }; /* only read */

	all(&p);
}

int slu_queue_restore(const struct slu_queue_opts *opts, const void *at, size_t n,
		      const struct slu_set_names *names, struct slu_queue **out,
		      struct slu_error *err)
{
	slu_cleanup(slu_queue_freep) struct slu_queue *q = NULL;
	struct pic p = { .in = { at, (const uint8_t *)at + n, 0 }, .names = names };
	int rc = slu_queue_new(opts, &q, err);

	if (rc < 0)
		return rc;
	p.q = q;
	all(&p);
	must(&p, p.in.p == p.in.end);
	if (p.in.rc < 0)
		return slu_fail(err, p.in.rc,
				p.in.rc == -ENOMEM ? "out of memory" : "not a picture of a queue");
	*out = slu_take(q);
	return 0;
}
