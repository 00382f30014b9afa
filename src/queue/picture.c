/* picture.c — a queue as bytes and back, so that a log can begin in the middle of its life.
 *
 * Everything keeps its number (index in a table, order in a list), since ties are broken by it;
 * trees, sums and counts follow from the rest and are computed again. */
#include "queue/picture_internal.h"

static void put_nodeset(struct pic *p, struct slu_nodeset **s)
{
	uint64_t id = pic_number(p, pic_reads(p) ? 0 : p->names->id(p->names->arg, *s));

	if (pic_reads(p) && pic_must(p, true)) {
		*s = slu_nodeset_ref(p->names->find(p->names->arg, id));
		pic_must(p, *s != NULL);
	}
}

/* Write or read, in the form of an event, what an event can express. */
static void put_event(struct pic *p, const struct slu_event *ev, struct slu_event_box *box)
{
	if (pic_reads(p)) {
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

static void put_cause(struct pic *p, struct cause *c)
{
	U(c->cause);
	U(c->job);
	U(c->node);
	pic_must(p, c->cause <= SLU_CAUSE_DROPPED);
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
	put_cause(p, &q->later);
	put_cause(p, &q->earlier);
	pic_must(p, time_sane(q->now_s));
}

static void strings(struct pic *p)
{
	struct slu_intern *t = &p->q->str;
	uint32_t n = count(p, t->n);

	for (uint32_t i = 0; i < n && !p->in.rc; i++) {
		if (!pic_reads(p)) {
			slu_bytes_put_s(p->out, slu_intern_str(t, i));
			continue;
		}
		slu_cleanup(slu_freep) char *s = slu_bytes_get_s(&p->in);

		if (pic_must(p, s != NULL)) {
			uint32_t at = slu_intern(t, s);

			if (at != i)
				wrong(p, at == SLU_INTERN_NONE ? -ENOMEM : -EINVAL);
		}
	}
}

static void put_machine(struct pic *p)
{
	struct slu_buf b = SLU_BUF_INIT(UINT32_MAX);
	struct slu_machine *m;
	size_t n;

	if (pic_reads(p)) {
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
		if (pic_reads(p))
			q->props.p[q->props.n++] = (struct node_props){ 0 };
		struct node_props *x = &q->props.p[i];

		T(x->changed_s);
		uint32_t k = count(p, x->p.n);

		ROOM(&x->p, k);
		for (uint32_t a = 0; a < k && !p->in.rc; a++) {
			U(x->p.p[a]);
			pic_must(p, x->p.p[a] < q->str.n);
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

		if (!pic_reads(p))
			ev.conf = &q->sub.p[i].conf;
		put_event(p, &ev, &box);
		if (p->in.rc)
			return;
		if (pic_reads(p)) {
			int rc = queue_ev_conf(q, &box.ev, NULL);

			slu_event_box_done(&box);
			if (rc < 0)
				wrong(p, rc);
			if (!pic_must(p, q->sub.n == i + 1))
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
		if (pic_reads(p))
			q->span.p[q->span.n++] = (struct span){ 0 };
		struct span *s = &q->span.p[i];

		U(s->kind);
		U(s->name);
		U(s->id);
		I(s->from_s);
		I(s->to_s);
		put_nodeset(p, &s->nodes);
		pic_must(p, s->kind <= SLU_SPAN_DRAIN && s->name < q->str.n);
		uint32_t k = count(p, s->user.n);

		ROOM(&s->user, k);
		for (uint32_t a = 0; a < k && !p->in.rc; a++) {
			U(s->user.p[a]);
			pic_must(p, s->user.p[a] < q->str.n);
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
		struct slu_job_spec spec = { .req = pic_reads(p) ? NULL : &q->shape.p[i].req };
		struct slu_event ev = { .kind = SLU_EV_REQUEST, .spec = &spec };
		struct slu_event_box box = { 0 };
		bool used = !pic_reads(p) && q->shape.p[i].used;

		U(used);
		if (pic_reads(p) && !p->in.rc)
			q->shape.p[q->shape.n++] = (struct shape){ 0 };
		if (!used || p->in.rc)
			continue;
		put_event(p, &ev, &box);
		if (!pic_reads(p) || p->in.rc)
			continue;
		const struct slu_gang_req *req = box.ev.spec ? box.ev.spec->req : NULL;

		if (pic_must(p, req && req->n_role && req->n_role <= SLU_ROLES_MAX) &&
		    queue_shape_put_at(q, i, req) < 0)
			wrong(p, -ENOMEM);
		slu_event_box_done(&box);
	}
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
	if (!pic_must(p, b->queue < q->sub.n && b->shape < q->shape.n && shape_used(q, b->shape)))
		return;
	uint32_t k = count(p, b->n_use);

	if (pic_reads(p) && k) {
		if (!pic_must(p, k <= SLU_BLOCKS_USED_MAX))
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
		if (pic_reads(p))
			q->bucket.p[q->bucket.n++] = (struct bucket){ 0 };
		struct bucket *b = &q->bucket.p[i];
		unsigned kind = (b->used ? 1u : 0u) | (b->member ? 2u : 0u);

		U(kind);
		pic_must(p, kind < 4 && kind != 2);
		b->used = kind & 1;
		b->member = kind & 2;
		if (b->used && !p->in.rc)
			bucket(p, b);
		if (!pic_reads(p) || !b->used || p->in.rc)
			continue;
		b->root = b->active = b->after = SLU_NIL;
		/* Check that the requests of jobs in line are valid for the matcher. */
		int rc = slu_gang_satisfiable(q->m, &q->shape.p[b->shape].req, NULL);

		if (rc >= 0)
			rc = queue_bucket_link(q, i);
		if (rc < 0)
			wrong(p, rc);
	}
}

static void put_whole_queue(struct pic *p)
{
	static void (*const part[])(struct pic *) = { strings, put_machine, props, subs, spans };
	struct slu_queue *q = p->q;

	for (size_t i = 0; i < SLU_LEN(part) && !p->in.rc; i++)
		part[i](p);
	if (p->in.rc)
		return;
	shapes(p);
	if (!p->in.rc)
		queue_pic_unused(p, q->shape_free.p, &q->shape_free.n, q->shape.n, shape_used);
	if (!p->in.rc)
		buckets(p);
	if (!p->in.rc)
		queue_pic_unused(p, q->bucket_free.p, &q->bucket_free.n, q->bucket.n, bucket_used);
	if (!p->in.rc)
		queue_pic_jobs(p);
	if (!p->in.rc)
		scalars(p); /* last: making the queues has changed them */
}

void slu_queue_picture(const struct slu_queue *q, const struct slu_set_names *names,
		       struct slu_buf *out)
{
	struct pic p = { .out = out,
			 .names = names,
			 .q = (struct slu_queue *)(uintptr_t)q }; /* only read */

	put_whole_queue(&p);
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
	put_whole_queue(&p);
	pic_must(&p, p.in.p == p.in.end);
	if (p.in.rc < 0)
		return slu_fail(err, p.in.rc,
				p.in.rc == -ENOMEM ? "out of memory" : "not a picture of a queue");
	*out = slu_take(q);
	return 0;
}
