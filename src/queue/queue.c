/* Making, freeing and copying a queue, and its two entry points: apply and schedule. */
#include "queue/queue_internal.h"

int slu_queue_new(const struct slu_queue_opts *opts, struct slu_queue **out, struct slu_error *err)
{
	struct slu_queue *q = slu_calloc(1, sizeof *q);

	if (!q)
		return slu_fail(err, -ENOMEM, "out of memory");
	if (opts)
		q->opts = *opts;
	if (q->opts.overrun_s <= 0)
		q->opts.overrun_s = 60;
	if (!q->opts.keep_results)
		q->opts.keep_results = 1000000;
	q->now_s = INT64_MIN;
	q->dep_free = SLU_NIL;
	q->later.node = q->earlier.node = SLU_NODE_NONE;
	for (unsigned i = 0; i < SLU_LEN(q->list); i++)
		q->list[i] = q->list_end[i] = SLU_NIL;
	q->m = slu_machine_new();
	if (!q->m || queue_notes_new(q) < 0) {
		slu_queue_free(q);
		return slu_fail(err, -ENOMEM, "out of memory");
	}
	*out = q;
	return 0;
}

const struct slu_queue_opts *slu_queue_opts(const struct slu_queue *q)
{
	return &q->opts;
}

int64_t slu_queue_now_s(const struct slu_queue *q)
{
	return q->now_s;
}

void slu_queue_free(struct slu_queue *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < q->job.n; i++)
		slu_free(q->job.p[i].name);
	for (uint32_t i = 0; i < q->shape.n; i++)
		if (q->shape.p[i].used)
			queue_shape_done(&q->shape.p[i]);
	for (uint32_t i = 0; i < q->bucket.n; i++)
		slu_free(q->bucket.p[i].use);
	for (uint32_t i = 0; i < q->sub.n; i++) {
		slu_nodeset_unref(q->sub.p[i].nodes);
		slu_vec_done(&q->sub.p[i].active);
	}
	for (uint32_t i = 0; i < q->span.n; i++) {
		slu_nodeset_unref(q->span.p[i].nodes);
		slu_vec_done(&q->span.p[i].user);
	}
	for (uint32_t i = 0; i < q->props.n; i++)
		slu_vec_done(&q->props.p[i].p);
	slu_vec_done(&q->job);
	slu_vec_done(&q->job_free);
	slu_map_done(&q->job_of);
	slu_vec_done(&q->fresh);
	slu_vec_done(&q->shape);
	slu_vec_done(&q->shape_free);
	slu_map_done(&q->shape_of);
	slu_vec_done(&q->bucket);
	slu_vec_done(&q->bucket_free);
	slu_map_done(&q->bucket_of);
	slu_vec_done(&q->sub);
	slu_vec_done(&q->sub_order);
	slu_vec_done(&q->usage);
	slu_map_done(&q->usage_of);
	slu_vec_done(&q->dep);
	slu_map_done(&q->dep_on);
	slu_map_done(&q->result);
	slu_vec_done(&q->result_ring);
	slu_vec_done(&q->span);
	slu_vec_done(&q->props);
	slu_vec_done(&q->timer);
	slu_vec_done(&q->heap);
	slu_vec_done(&q->todo);
	slu_free(q->batch);
	slu_free(q->note);
	queue_shadow_drop(q);
	slu_gang_place_done(&q->place);
	slu_gang_place_done(&q->due);
	slu_intern_done(&q->str);
	slu_machine_free(q->m);
	slu_free(q);
}

/* Time first: every event happens at a moment. */
static int advance_clock(struct slu_queue *q, int64_t now_s, struct slu_error *err)
{
	if (now_s < q->now_s)
		return slu_fail(err, -EINVAL, "time runs backwards: %" PRId64 " after %" PRId64,
				now_s, q->now_s);
	if (now_s > SLU_FOREVER / 4 || now_s < -(SLU_FOREVER / 4))
		return slu_fail(err, -EINVAL, "time %" PRId64 " is out of range", now_s);
	q->now_s = now_s;
	queue_shadow_drop(q);
	return 0;
}

int slu_queue_apply(struct slu_queue *q, int64_t now_s, const struct slu_event *ev,
		    struct slu_decisions *out, struct slu_error *err)
{
	int rc = advance_clock(q, now_s, err);

	if (rc < 0)
		return rc;
	q->changes += ev->kind != SLU_EV_TICK;
	switch (ev->kind) {
	case SLU_EV_SUBMIT:
	case SLU_EV_RUNNING:
		rc = queue_ev_submit(q, ev, out, err);
		break;
	case SLU_EV_CANCEL:
	case SLU_EV_END:
	case SLU_EV_END_SLOTS:
	case SLU_EV_REGAIN:
	case SLU_EV_TAKE_BACK:
		rc = queue_ev_end(q, ev, out, err);
		break;
	case SLU_EV_HOLD:
	case SLU_EV_RELEASE:
	case SLU_EV_PRIORITY:
	case SLU_EV_LIMIT:
	case SLU_EV_REQUEST:
	case SLU_EV_PROMISE:
	case SLU_EV_STANDS:
		rc = queue_ev_change(q, ev, out, err);
		break;
	case SLU_EV_RESIZE:
		rc = queue_ev_resize(q, ev, out, err);
		break;
	case SLU_EV_NODE_ADD:
	case SLU_EV_NODE_REMOVE:
	case SLU_EV_NODE_UP:
	case SLU_EV_NODE_DOWN:
		rc = queue_ev_node(q, ev, out, err);
		break;
	case SLU_EV_FOREIGN_ADD:
	case SLU_EV_FOREIGN_REMOVE:
		rc = queue_ev_foreign(q, ev, err);
		break;
	case SLU_EV_SPAN_ADD:
	case SLU_EV_SPAN_REMOVE:
		rc = queue_ev_span(q, ev, err);
		break;
	case SLU_EV_QUEUE_SET:
		rc = queue_ev_conf(q, ev, err);
		break;
	case SLU_EV_TICK:
		break;
	case SLU_EV_LOOK:
		q->topology++; /* jobs that could never run are looked at again, too: node sets may have grown */
		queue_plan_look(q);
		break;
	default:
		return slu_fail(err, -EINVAL, "unknown event %d", (int)ev->kind);
	}
	if (rc == -ENOMEM)
		slu_fail(err, rc, "out of memory");
	else if (rc < 0 && err && !*err->text)
		slu_fail(err, rc, "the event is not valid here: %s", strerror(-rc));
	return rc;
}

static int verify_queue(const struct slu_queue *q, int64_t now_s, struct slu_error *err)
{
	slu_job_id job;
	int rc = slu_queue_check(q, now_s, err);

	if (!rc)
		rc = slu_queue_overlooked(q, &job, err);
	if (rc <= 0)
		return rc;
	return slu_fail(err, -EUCLEAN,
			"job %" PRIu64 " fits and is allowed, but nothing would look at it", job);
}

int slu_queue_schedule(struct slu_queue *q, int64_t now_s, struct slu_decisions *out,
		       struct slu_error *err)
{
	int rc = advance_clock(q, now_s, err);

	if (rc < 0)
		return rc;
	rc = queue_jobs_settle(q, out);
	if (rc == 0)
		rc = queue_plan_step(q, out, err);
	if (rc < 0)
		return rc == -ENOMEM ? slu_fail(err, rc, "out of memory") : rc;
	return q->opts.verify ? verify_queue(q, now_s, err) : 0;
}

int64_t slu_queue_wake_s(const struct slu_queue *q)
{
	return q->timer.n ? q->timer.p[0].at_s : SLU_TIME_EVER;
}

const struct slu_machine *slu_queue_machine(const struct slu_queue *q)
{
	return q->m;
}

int slu_queue_resource(struct slu_queue *q, const char *name)
{
	return slu_machine_resource(q->m, name);
}

int slu_queue_level(struct slu_queue *q, const char *name)
{
	return slu_machine_level(q->m, name);
}

/* ---- copies ---- */

/* Same elements, same room: what was reserved there is reserved here. */
#define COPY_VEC(to, from)                                                   \
	({                                                                   \
		int slu_rc_ = 0;                                             \
		memset(&(to), 0, sizeof(to));                                \
		if ((from).cap)                                              \
			slu_rc_ = slu_vec_reserve(&(to), (from).cap);        \
		if (!slu_rc_ && (from).n) {                                  \
			memcpy((to).p, (from).p, (from).n * sizeof *(to).p); \
			(to).n = (from).n;                                   \
		}                                                            \
		slu_rc_;                                                     \
	})

static int copy_map(struct slu_map *to, const struct slu_map *from)
{
	/* Entry by entry keeps the order of the entries, which is all that can be seen of it. */
	for (uint32_t i = 0; i < from->n; i++)
		if (slu_map_put(to, from->e[i].key, from->e[i].val) < 0)
			return -ENOMEM;
	return 0;
}

static int copy_owned(struct slu_queue *c, const struct slu_queue *q)
{
	for (uint32_t i = 0; i < q->job.n; i++)
		c->job.p[i].name = NULL;
	for (uint32_t i = 0; i < q->job.n; i++)
		if (q->job.p[i].name && !(c->job.p[i].name = slu_strdup(q->job.p[i].name)))
			return -ENOMEM;
	for (uint32_t i = 0; i < q->bucket.n; i++) {
		const struct bucket *b = &q->bucket.p[i];

		if (!b->n_use)
			continue;
		c->bucket.p[i].use = slu_reallocarray(NULL, b->n_use, sizeof *b->use);
		if (!c->bucket.p[i].use)
			return -ENOMEM;
		memcpy(c->bucket.p[i].use, b->use, b->n_use * sizeof *b->use);
	}
	for (uint32_t i = 0; i < q->sub.n; i++) {
		struct subqueue *s = &c->sub.p[i];

		s->nodes = slu_nodeset_ref(q->sub.p[i].nodes);
		if (COPY_VEC(s->active, q->sub.p[i].active) < 0)
			return -ENOMEM;
		s->conf.name = slu_intern_str(&c->str, slu_intern_find(&c->str, s->conf.name));
		if (s->conf.property)
			s->conf.property = slu_intern_str(
				&c->str, slu_intern_find(&c->str, s->conf.property));
	}
	for (uint32_t i = 0; i < q->span.n; i++) {
		c->span.p[i].nodes = slu_nodeset_ref(q->span.p[i].nodes);
		if (COPY_VEC(c->span.p[i].user, q->span.p[i].user) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < q->props.n; i++)
		c->props.p[i].changed_s = q->props.p[i].changed_s;
	for (uint32_t i = 0; i < q->props.n; i++)
		if (COPY_VEC(c->props.p[i].p, q->props.p[i].p) < 0)
			return -ENOMEM;
	return 0;
}

static int copy_shapes(struct slu_queue *c, const struct slu_queue *q)
{
	if (slu_vec_reserve(&c->shape, q->shape.cap) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < q->shape.n; i++) {
		struct shape s = { 0 };

		if (q->shape.p[i].used) {
			int rc = queue_shape_copy(&s, &q->shape.p[i].req);

			if (rc < 0)
				return rc;
			s.hash = q->shape.p[i].hash;
			s.refs = q->shape.p[i].refs;
			s.chain = q->shape.p[i].chain;
			s.sat_topology = q->shape.p[i].sat_topology;
			s.sat_queue = q->shape.p[i].sat_queue;
		}
		c->shape.p[c->shape.n++] = s;
	}
	return 0;
}

static int copy_tables(struct slu_queue *c, const struct slu_queue *q)
{
	for (uint32_t i = 0; i < q->str.n; i++)
		if (slu_intern_n(&c->str, slu_intern_str(&q->str, i), slu_intern_len(&q->str, i)) ==
		    SLU_INTERN_NONE)
			return -ENOMEM;
	/* Pointers inside are cleared before anything can fail and be freed. */
	if (COPY_VEC(c->job, q->job) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->job.n; i++)
		c->job.p[i].name = NULL;
	if (COPY_VEC(c->bucket, q->bucket) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->bucket.n; i++)
		c->bucket.p[i].use = NULL;
	if (COPY_VEC(c->sub, q->sub) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->sub.n; i++) {
		c->sub.p[i].nodes = NULL;
		memset(&c->sub.p[i].active, 0, sizeof c->sub.p[i].active);
	}
	if (COPY_VEC(c->span, q->span) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->span.n; i++) {
		c->span.p[i].nodes = NULL;
		memset(&c->span.p[i].user, 0, sizeof c->span.p[i].user);
	}
	if (COPY_VEC(c->props, q->props) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->props.n; i++)
		memset(&c->props.p[i], 0, sizeof c->props.p[i]);
	if (COPY_VEC(c->fresh, q->fresh) < 0 || COPY_VEC(c->job_free, q->job_free) < 0 ||
	    COPY_VEC(c->shape_free, q->shape_free) < 0 ||
	    COPY_VEC(c->bucket_free, q->bucket_free) < 0 ||
	    COPY_VEC(c->sub_order, q->sub_order) < 0 || COPY_VEC(c->usage, q->usage) < 0 ||
	    COPY_VEC(c->dep, q->dep) < 0 || COPY_VEC(c->result_ring, q->result_ring) < 0 ||
	    COPY_VEC(c->timer, q->timer) < 0)
		return -ENOMEM;
	if (copy_map(&c->job_of, &q->job_of) < 0 || copy_map(&c->shape_of, &q->shape_of) < 0 ||
	    copy_map(&c->bucket_of, &q->bucket_of) < 0 ||
	    copy_map(&c->usage_of, &q->usage_of) < 0 || copy_map(&c->dep_on, &q->dep_on) < 0 ||
	    copy_map(&c->result, &q->result) < 0)
		return -ENOMEM;
	return copy_shapes(c, q) < 0 ? -ENOMEM : copy_owned(c, q);
}

struct slu_queue *slu_queue_clone(const struct slu_queue *q)
{
	struct slu_queue *c = slu_calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->opts = q->opts;
	c->now_s = q->now_s;
	memcpy(c->list, q->list, sizeof c->list);
	memcpy(c->list_end, q->list_end, sizeof c->list_end);
	c->dep_free = q->dep_free;
	c->result_next = q->result_next;
	c->span_seq = q->span_seq;
	c->bucket_gen = q->bucket_gen;
	c->rebuild = q->rebuild;
	c->freed = q->freed;
	c->seen_freed = q->seen_freed;
	c->changes = q->changes;
	c->topology = q->topology;
	c->topology_seen = q->topology_seen;
	c->user_matters = q->user_matters;
	c->grow_any = q->grow_any;
	c->later = q->later;
	c->earlier = q->earlier;
	c->notes = q->notes;
	c->m = slu_machine_clone(q->m);
	if (!c->m || copy_tables(c, q) < 0 || queue_notes_new(c) < 0) {
		slu_queue_free(c);
		return NULL;
	}
	memcpy(c->note, q->note, SLU_PASS_KEPT * sizeof *q->note);
	return c;
}
