/* Requests shared by equal jobs, and the buckets of waiting jobs that ask for the same. */
#include "queue/queue_internal.h"

static uint64_t mix_hash(uint64_t h, uint64_t v)
{
	return slu_hash_u64(h ^ (v + 0x9e3779b97f4a7c15ull));
}

static uint64_t req_hash(const struct slu_gang_req *r)
{
	uint64_t h = mix_hash(((uint64_t)r->min << 32) | r->max, r->n_role);

	h = mix_hash(h, ((uint64_t)(uint32_t)r->level << 32) | r->flags);
	h = mix_hash(h, r->policy);
	for (uint32_t i = 0; i < r->n_role; i++) {
		const struct slu_gang_role *a = &r->role[i];

		h = mix_hash(h, ((uint64_t)a->min << 32) | a->max);
		h = mix_hash(h, ((uint64_t)a->flags << 32) | a->n_need);
		for (uint32_t k = 0; k < a->n_need; k++)
			h = mix_hash(h ^ a->need[k].resource, (uint64_t)a->need[k].n);
		if (a->flags & SLU_ROLE_APART)
			h = mix_hash(h, a->apart);
		h = mix_hash(h, (uint64_t)(uintptr_t)a->nodes);
		h = mix_hash(h, (uint64_t)(uintptr_t)a->prefer);
		if (a->n_score)
			h = mix_hash(h, slu_hash_bytes(a->score, a->n_score * sizeof *a->score));
	}
	return h;
}

static bool role_equal(const struct slu_gang_role *a, const struct slu_gang_role *b)
{
	if (a->min != b->min || a->max != b->max || a->flags != b->flags || a->apart != b->apart ||
	    a->n_need != b->n_need || a->nodes != b->nodes || a->prefer != b->prefer ||
	    a->n_score != b->n_score)
		return false;
	for (uint32_t k = 0; k < a->n_need; k++)
		if (a->need[k].resource != b->need[k].resource || a->need[k].n != b->need[k].n)
			return false;
	if (strcmp(a->name ? a->name : "", b->name ? b->name : ""))
		return false;
	return !a->n_score || !memcmp(a->score, b->score, a->n_score * sizeof *a->score);
}

static bool req_equal(const struct slu_gang_req *a, const struct slu_gang_req *b)
{
	if (a->min != b->min || a->max != b->max || a->n_role != b->n_role ||
	    a->level != b->level || a->flags != b->flags || a->policy != b->policy)
		return false;
	for (uint32_t i = 0; i < a->n_role; i++)
		if (!role_equal(&a->role[i], &b->role[i]))
			return false;
	return true;
}

void queue_shape_done(struct shape *s)
{
	for (uint32_t i = 0; s->req.role && i < s->req.n_role; i++) {
		const struct slu_gang_role *r = &s->req.role[i];

		slu_free((void *)r->need);
		slu_free((void *)r->score);
		slu_free((void *)r->name);
		slu_nodeset_unref((struct slu_nodeset *)r->nodes);
		slu_nodeset_unref((struct slu_nodeset *)r->prefer);
	}
	slu_free((void *)s->req.role);
	memset(s, 0, sizeof *s);
}

static int copy_role(struct slu_gang_role *to, const struct slu_gang_role *from)
{
	*to = (struct slu_gang_role){
		.min = from->min, .max = from->max, .flags = from->flags, .apart = from->apart
	};
	to->nodes = slu_nodeset_ref(from->nodes);
	to->prefer = slu_nodeset_ref(from->prefer);
	if (from->name && !(to->name = slu_strdup(from->name)))
		return -ENOMEM;
	if (from->n_need) {
		void *p = slu_reallocarray(NULL, from->n_need, sizeof *from->need);

		if (!p)
			return -ENOMEM;
		to->need = memcpy(p, from->need, from->n_need * sizeof *from->need);
		to->n_need = from->n_need;
	}
	if (from->n_score) {
		void *p = slu_reallocarray(NULL, from->n_score, sizeof *from->score);

		if (!p)
			return -ENOMEM;
		to->score = memcpy(p, from->score, from->n_score * sizeof *from->score);
		to->n_score = from->n_score;
	}
	return 0;
}

int queue_shape_copy(struct shape *s, const struct slu_gang_req *req)
{
	struct slu_gang_role *role = slu_calloc(SLU_MAX(req->n_role, 1u), sizeof *role);
	int rc = role ? 0 : -ENOMEM;

	*s = (struct shape){ .req = *req, .refs = 1, .used = true };
	s->req.role = role;
	s->req.use = NULL;
	s->req.nodes = NULL;
	s->req.n_use = 0;
	s->req.duration_s = s->req.begin_s = s->req.deadline_s = 0;
	s->req.flags |= SLU_GANG_TIME_FIT;
	for (uint32_t i = 0; !rc && i < req->n_role; i++) {
		rc = copy_role(&role[i], &req->role[i]);
		s->slots += req->role[i].min;
		s->elastic |= req->role[i].max > req->role[i].min;
	}
	if (req->min)
		s->slots = req->min;
	if (rc < 0)
		queue_shape_done(s);
	return rc;
}

int64_t queue_shape_get(struct slu_queue *q, const struct slu_gang_req *given)
{
	struct slu_gang_req req = *given;

	req.flags |= SLU_GANG_TIME_FIT;
	uint64_t h = req_hash(&req);
	uint64_t *found = slu_map_get(&q->shape_of, h);
	uint32_t first = found ? (uint32_t)*found : 0;

	for (uint32_t i = first; i; i = q->shape.p[i - 1].chain)
		if (req_equal(&q->shape.p[i - 1].req, &req)) {
			q->shape.p[i - 1].refs++;
			return i - 1;
		}
	if ((!q->shape_free.n && slu_vec_reserve(&q->shape, q->shape.n + 1) < 0) ||
	    slu_vec_reserve(&q->shape_free, q->shape.n + 1) < 0)
		return -ENOMEM;
	struct shape s;

	if (queue_shape_copy(&s, &req) < 0)
		return -ENOMEM;
	uint32_t i = q->shape_free.n ? q->shape_free.p[q->shape_free.n - 1] : q->shape.n;

	if (slu_map_put(&q->shape_of, h, i + 1) < 0) {
		queue_shape_done(&s);
		return -ENOMEM;
	}
	s.hash = h;
	s.chain = first;
	if (q->shape_free.n)
		q->shape_free.n--;
	else
		q->shape.n++;
	q->shape.p[i] = s;
	return i;
}

int queue_shape_put_at(struct slu_queue *q, uint32_t i, const struct slu_gang_req *req)
{
	struct shape s;

	if (queue_shape_copy(&s, req) < 0)
		return -ENOMEM;
	s.hash = req_hash(&s.req);
	s.refs = 0;
	uint64_t *found = slu_map_get(&q->shape_of, s.hash);

	s.chain = found ? (uint32_t)*found : 0;
	if (slu_map_put(&q->shape_of, s.hash, i + 1) < 0) {
		queue_shape_done(&s);
		return -ENOMEM;
	}
	q->shape.p[i] = s;
	return 0;
}

void queue_shape_put(struct slu_queue *q, uint32_t i)
{
	struct shape *s = &q->shape.p[i];

	if (--s->refs)
		return;
	uint64_t *head = slu_map_get(&q->shape_of, s->hash);
	uint32_t at = (uint32_t)*head;

	if (at == i + 1) {
		if (s->chain)
			*head = s->chain;
		else
			slu_map_del(&q->shape_of, s->hash);
	} else {
		while (q->shape.p[at - 1].chain != i + 1)
			at = q->shape.p[at - 1].chain;
		q->shape.p[at - 1].chain = s->chain;
	}
	queue_shape_done(s);
	q->shape_free.p[q->shape_free.n++] = i; /* reserved when it was made */
}

struct slu_gang_req queue_job_req(const struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	struct slu_gang_req r = q->shape.p[job->shape].req;

	r.nodes = q->only ? q->only : q->sub.p[job->queue].nodes;
	r.duration_s = job->limit_s;
	r.begin_s = job->begin_s == SLU_TIME_NONE ? 0 : job->begin_s;
	r.deadline_s = job->deadline_s == SLU_TIME_NONE ? 0 : job->deadline_s;
	if (job->bucket != SLU_NIL) {
		r.use = q->bucket.p[job->bucket].use;
		r.n_use = q->bucket.p[job->bucket].n_use;
	}
	return r;
}

void queue_req_minimum(struct slu_gang_req *req, struct slu_gang_role role[SLU_ROLES_MAX])
{
	for (uint32_t i = 0; i < req->n_role; i++) {
		role[i] = req->role[i];
		role[i].max = role[i].min;
	}
	req->role = role;
	req->max = req->min;
}

/* ---- buckets ---- */

static uint64_t bucket_hash(const struct bucket *b)
{
	return mix_hash(mix_hash(((uint64_t)b->queue << 32) | b->shape, b->user),
			((uint64_t)b->tag << 1) | b->member);
}

static bool span_allows(const struct span *s, const struct job *j)
{
	if (s->kind != SLU_SPAN_RESERVATION)
		return false;
	if (s->name == j->tag)
		return true;
	for (uint32_t i = 0; i < s->user.n; i++)
		if (s->user.p[i] == j->user)
			return true;
	return false;
}

static int bucket_use(struct slu_queue *q, struct bucket *b, const struct job *j)
{
	uint32_t n = 0;

	b->use = NULL;
	b->n_use = 0;
	for (uint32_t i = 0; i < q->span.n; i++)
		n += span_allows(&q->span.p[i], j);
	n = SLU_MIN(n, SLU_BLOCKS_USED_MAX);
	if (!n)
		return 0;
	b->use = slu_reallocarray(NULL, n, sizeof *b->use);
	if (!b->use)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->span.n && b->n_use < n; i++)
		if (span_allows(&q->span.p[i], j))
			b->use[b->n_use++] = q->span.p[i].id;
	return 0;
}

int64_t queue_bucket_get(struct slu_queue *q, uint32_t j)
{
	const struct job *job = &q->job.p[j];
	struct subqueue *sub = &q->sub.p[job->queue];
	struct bucket b = { .queue = job->queue,
			    .shape = job->shape,
			    .user = q->user_matters ? job->user : SLU_INTERN_NONE,
			    .tag = job->tag,
			    .member = job_is_free(job),
			    .root = SLU_NIL,
			    .generation = q->bucket_gen,
			    .active = SLU_NIL,
			    .after = SLU_NIL,
			    .failed_at = q->freed,
			    .failed_limit = INT64_MAX,
			    .used = true };
	uint64_t h = bucket_hash(&b);
	uint64_t *found = slu_map_get(&q->bucket_of, h);
	uint32_t first = found ? (uint32_t)*found : 0;

	for (uint32_t i = first; i; i = q->bucket.p[i - 1].chain) {
		const struct bucket *have = &q->bucket.p[i - 1];

		if (have->queue == b.queue && have->shape == b.shape && have->user == b.user &&
		    have->tag == b.tag && have->member == b.member &&
		    have->generation == b.generation)
			return i - 1;
	}
	b.chain = first;

	/* Room for every list the bucket may ever be put in, so that moving it cannot fail. */
	if ((!q->bucket_free.n && slu_vec_reserve(&q->bucket, q->bucket.n + 1) < 0) ||
	    slu_vec_reserve(&q->bucket_free, q->bucket.n + 1) < 0 ||
	    slu_vec_reserve(&sub->active, q->bucket.n + 1) < 0 || bucket_use(q, &b, job) < 0)
		return -ENOMEM;
	uint32_t i = q->bucket_free.n ? q->bucket_free.p[q->bucket_free.n - 1] : q->bucket.n;

	if (slu_map_put(&q->bucket_of, h, i + 1) < 0) {
		slu_free(b.use);
		return -ENOMEM;
	}
	if (q->bucket_free.n)
		q->bucket_free.n--;
	else
		q->bucket.n++;
	q->bucket.p[i] = b;
	return i;
}

int queue_bucket_link(struct slu_queue *q, uint32_t i)
{
	struct bucket *b = &q->bucket.p[i];
	uint64_t h = bucket_hash(b);
	uint64_t *found = slu_map_get(&q->bucket_of, h);

	b->chain = found ? (uint32_t)*found : 0;
	return slu_map_put(&q->bucket_of, h, i + 1);
}

static void bucket_drop(struct slu_queue *q, uint32_t i)
{
	struct bucket *b = &q->bucket.p[i];
	uint64_t h = bucket_hash(b);
	uint64_t *head = slu_map_get(&q->bucket_of, h);
	uint32_t at = (uint32_t)*head;

	if (at == i + 1) {
		if (b->chain)
			*head = b->chain;
		else
			slu_map_del(&q->bucket_of, h);
	} else {
		while (q->bucket.p[at - 1].chain != i + 1)
			at = q->bucket.p[at - 1].chain;
		q->bucket.p[at - 1].chain = b->chain;
	}
	slu_free(b->use);
	memset(b, 0, sizeof *b);
	q->bucket_free.p[q->bucket_free.n++] = i;
}

void queue_bucket_enter(struct slu_queue *q, uint32_t j)
{
	uint32_t i = q->job.p[j].bucket;
	struct bucket *b = &q->bucket.p[i];
	struct subqueue *sub = &q->sub.p[b->queue];

	if (b->active == SLU_NIL) {
		b->active = sub->active.n;
		sub->active.p[sub->active.n++] = i; /* room was made in queue_bucket_get() */
	}
	q->job.p[j].due_s = queue_plan_due(&sub->conf, &q->job.p[j]);
	queue_order_insert(q->job.p, &b->root, j);
}

void queue_bucket_leave(struct slu_queue *q, uint32_t j)
{
	struct bucket *b = &q->bucket.p[q->job.p[j].bucket];
	struct subqueue *sub = &q->sub.p[b->queue];

	queue_order_remove(q->job.p, &b->root, j);
	if (b->root != SLU_NIL)
		return;
	uint32_t last = sub->active.p[--sub->active.n];

	sub->active.p[b->active] = last;
	q->bucket.p[last].active = b->active;
	b->active = SLU_NIL;
}

int queue_bucket_attach(struct slu_queue *q, uint32_t j)
{
	int64_t i = queue_bucket_get(q, j);

	if (i < 0)
		return (int)i;
	q->bucket.p[i].refs++;
	q->job.p[j].bucket = (uint32_t)i;
	return 0;
}

void queue_bucket_detach(struct slu_queue *q, uint32_t j)
{
	uint32_t i = q->job.p[j].bucket;

	q->job.p[j].bucket = SLU_NIL;
	if (!--q->bucket.p[i].refs)
		bucket_drop(q, i);
}

int queue_bucket_rebuild(struct slu_queue *q)
{
	q->rebuild = true; /* until it has come to its end */
	/* Buckets of older generations are not found again: their spans may be others now. */
	q->bucket_gen++;
	/* Bucket by bucket would move jobs twice; the table is the simplest list of all jobs. */
	for (uint32_t j = 0; j < q->job.n; j++) {
		struct job *job = &q->job.p[j];

		if (!job->used || job->bucket == SLU_NIL)
			continue;
		uint32_t old = job->bucket;
		bool in_tree = job->planned_s == SLU_TIME_NONE;

		if (in_tree)
			queue_bucket_leave(q, j);
		int rc = queue_bucket_attach(q, j);

		if (rc < 0) {
			job->bucket = old;
			if (in_tree)
				queue_bucket_enter(q, j);
			return rc;
		}
		if (!--q->bucket.p[old].refs)
			bucket_drop(q, old);
		if (in_tree)
			queue_bucket_enter(q, j);
	}
	q->rebuild = false;
	return 0;
}
