/* Events about the machine: nodes, foreign work, spans, queues. */
#include "queue/queue_internal.h"

static bool has_property(const struct slu_queue *q, uint32_t node, uint32_t prop)
{
	if (node >= q->props.n)
		return false;
	for (uint32_t i = 0; i < q->props.p[node].p.n; i++)
		if (q->props.p[node].p.p[i] == prop)
			return true;
	return false;
}

static int property_nodes(const struct slu_queue *q, const char *property, struct slu_nodeset **out)
{
	uint32_t n = slu_machine_node_slots(q->m), prop = slu_intern_find(&q->str, property);
	struct slu_nodeset *set = slu_nodeset_new(n);

	if (!set)
		return -ENOMEM;
	for (uint32_t i = 0; prop != SLU_INTERN_NONE && i < n; i++)
		if (slu_machine_node_at(q->m, i) != SLU_NODE_NONE && has_property(q, i, prop) &&
		    slu_nodeset_add(set, i) < 0) {
			slu_nodeset_unref(set);
			return -ENOMEM;
		}
	*out = set;
	return 0;
}

int queue_sub_nodes(struct slu_queue *q, uint32_t sub)
{
	struct subqueue *s = &q->sub.p[sub];
	struct slu_nodeset *set = NULL;

	if (s->conf.property && *s->conf.property) {
		int rc = property_nodes(q, s->conf.property, &set);

		if (rc < 0)
			return rc;
	}
	slu_nodeset_unref(s->nodes);
	s->nodes = set;
	return 0;
}

/* Tell every running job that has parts on this node. */
static int lost_parts(struct slu_queue *q, slu_node node, struct slu_decisions *out)
{
	uint32_t n = slu_machine_node_shares(q->m, node);

	for (uint32_t i = 0; i < n; i++) {
		struct slu_node_share s;

		slu_machine_node_share(q->m, node, i, &s);
		uint32_t j = s.job < SLU_JOB_ID_MAX ? queue_job_find(q, s.job) : SLU_NIL;

		if (j == SLU_NIL || q->job.p[j].state != SLU_JOB_RUNNING)
			continue;
		q->job.p[j].flags |= JOB_PARTIAL;
		struct slu_gang_part p = { .node = node, .role = s.role, .slots = s.slots };
		struct slu_decision *d = queue_decide(out, SLU_DEC_LOST, s.job);

		if (!d)
			return -ENOMEM;
		d->cause = SLU_CAUSE_NODE_LOST;
		d->cause_node = node;
		int rc = queue_decide_parts(out, d, &p, 1);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Reserved jobs planned on this node have to be planned again from scratch. */
static int unplan_node(struct slu_queue *q, slu_node node)
{
	q->todo.n = 0;
	for (uint32_t i = 0; i < slu_machine_node_shares(q->m, node); i++) {
		struct slu_node_share s;

		slu_machine_node_share(q->m, node, i, &s);
		uint32_t j = s.job < SLU_JOB_ID_MAX ? queue_job_find(q, s.job) : SLU_NIL;

		if (j != SLU_NIL && q->job.p[j].state == SLU_JOB_WAITING &&
		    slu_vec_push(&q->todo, j) < 0)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < q->todo.n; i++)
		slu_gang_cancel(q->m, q->job.p[q->todo.p[i]].id);
	return 0;
}

static int set_props(struct slu_queue *q, uint32_t index, const struct slu_event *ev)
{
	while (q->props.n <= index) {
		struct node_props none = { .changed_s = INT64_MIN };

		if (slu_vec_push(&q->props, none) < 0)
			return -ENOMEM;
	}
	struct node_props *p = &q->props.p[index];

	if (slu_vec_reserve(&p->p, ev->n_property) < 0)
		return -ENOMEM;
	p->p.n = 0;
	for (uint32_t i = 0; i < ev->n_property; i++) {
		uint32_t id = slu_intern(&q->str, ev->property[i]);

		if (id == SLU_INTERN_NONE)
			return -ENOMEM;
		p->p.p[p->p.n++] = id;
	}
	return 0;
}

static int topology_changed(struct slu_queue *q)
{
	q->topology++;
	for (uint32_t i = 0; i < q->sub.n; i++) {
		int rc = q->sub.p[i].conf.property ? queue_sub_nodes(q, i) : 0;

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int node_update(struct slu_queue *q, slu_node node, const struct slu_node_spec *s,
		       struct slu_decisions *out, struct slu_error *err)
{
	bool down = slu_machine_node_is_down(q->m, node);
	int rc = slu_machine_node_resize(q->m, node, s->total, s->n_total, err);

	if (!rc)
		rc = slu_machine_node_set_rank(q->m, node, s->rank);
	if (!rc)
		rc = slu_machine_node_set_tag(q->m, node, s->tag);
	for (uint32_t l = 0; !rc && l < s->n_domain; l++) {
		const char *old = slu_machine_node_domain(q->m, node, l);
		const char *new = s->domain[l];

		if ((old || new) && (!old || !new || strcmp(old, new)))
			rc = slu_machine_node_set_domain(q->m, node, l, new);
	}
	if (!rc)
		rc = slu_machine_node_set_cordoned(q->m, node, s->cordoned);
	if (!rc && s->down && !down)
		rc = lost_parts(q, node, out);
	if (!rc)
		rc = slu_machine_node_set_down(q->m, node, s->down);
	return rc;
}

static int node_add(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		    struct slu_error *err)
{
	const struct slu_node_spec *s = ev->node_spec;

	if (!s || !s->name || !*s->name)
		return slu_fail(err, -EINVAL, "a node needs a description with a name");
	slu_node node = slu_machine_node_find(q->m, s->name);
	bool old = node != SLU_NODE_NONE;
	int rc = old ? node_update(q, node, s, out, err)
		     : slu_machine_node_add(q->m, s, &node, err);

	if (rc < 0)
		return rc;
	rc = set_props(q, slu_node_index(node), ev);
	if (rc < 0)
		return rc;
	q->props.p[slu_node_index(node)].changed_s = old ? q->now_s : INT64_MIN;
	/* New room, or less of it: both causes may be needed to explain what moves. */
	queue_plan_freed(q, SLU_CAUSE_GREW, 0, node);
	if (old)
		queue_plan_lost(q, SLU_CAUSE_NODE_LOST, 0, node);
	return topology_changed(q);
}

int queue_ev_node(struct slu_queue *q, const struct slu_event *ev, struct slu_decisions *out,
		  struct slu_error *err)
{
	int rc;

	if (ev->kind == SLU_EV_NODE_ADD)
		return node_add(q, ev, out, err);
	if (!slu_machine_node_is(q->m, ev->node))
		return slu_fail(err, -ENOENT, "there is no such node");
	switch (ev->kind) {
	case SLU_EV_NODE_REMOVE:
		rc = lost_parts(q, ev->node, out);
		if (!rc)
			rc = unplan_node(q, ev->node);
		if (!rc)
			rc = slu_machine_node_remove(q->m, ev->node);
		if (rc < 0)
			return rc;
		queue_plan_lost(q, SLU_CAUSE_NODE_LOST, 0, ev->node);
		return topology_changed(q);
	case SLU_EV_NODE_UP:
		queue_plan_freed(q, SLU_CAUSE_GREW, 0, ev->node);
		slu_machine_node_set_cordoned(q->m, ev->node, false);
		return slu_machine_node_set_down(q->m, ev->node, false);
	default:
		if (slu_machine_node_is_down(q->m, ev->node))
			return 0;
		rc = lost_parts(q, ev->node, out);
		if (rc < 0)
			return rc;
		queue_plan_lost(q, SLU_CAUSE_NODE_LOST, 0, ev->node);
		return slu_machine_node_set_down(q->m, ev->node, true);
	}
}

int queue_ev_foreign(struct slu_queue *q, const struct slu_event *ev, struct slu_error *err)
{
	uint64_t id = SLU_BOOKING_FOREIGN | ev->foreign;

	if (ev->foreign >= SLU_JOB_ID_MAX)
		return slu_fail(err, -EINVAL, "keys of foreign work must be below 2^62");
	if (ev->kind == SLU_EV_FOREIGN_REMOVE) {
		int rc = slu_gang_cancel(q->m, id);

		if (rc < 0)
			return slu_fail(err, rc, "no foreign work %" PRIu64, ev->foreign);
		queue_plan_freed(q, SLU_CAUSE_EARLY_END, 0, SLU_NODE_NONE);
		return 0;
	}
	if (!slu_machine_node_is(q->m, ev->node))
		return slu_fail(err, -ENOENT, "foreign work %" PRIu64 ": there is no such node",
				ev->foreign);
	struct slu_gang_role role = { .min = 1, .need = ev->amount, .n_need = ev->n_amount };
	struct slu_gang_part part = { .node = ev->node, .slots = 1 };
	struct slu_gang_booking b = { .job = id,
				      .start_s = q->now_s,
				      .end_s = ev->until_s > q->now_s ? ev->until_s : SLU_FOREVER,
				      .role = &role,
				      .n_role = 1,
				      .part = &part,
				      .n_part = 1,
				      .flags = ev->background ? SLU_BOOK_BACKGROUND : 0 };
	int rc = slu_gang_register(q->m, q->now_s, &b, err);

	if (!rc)
		queue_plan_lost(q, SLU_CAUSE_FOREIGN, 0, ev->node);
	return rc;
}

/* `count` whole nodes for a span: those that no plan needs, and if they are too few, the first. */
static int choose_nodes(struct slu_queue *q, const struct slu_span *s, struct slu_nodeset *set,
			struct slu_error *err)
{
	slu_cleanup(slu_nodeset_unrefp) struct slu_nodeset *may = NULL;
	uint32_t slots = slu_machine_node_slots(q->m), have = 0;
	int rc = 0;

	if (s->property && *s->property)
		rc = property_nodes(q, s->property, &may);
	if (rc < 0)
		return rc;
	for (int busy = 0; busy < 2; busy++)
		for (uint32_t i = 0; i < slots && have < s->count; i++) {
			slu_node node = slu_machine_node_at(q->m, i);
			bool clear = true;

			if (node == SLU_NODE_NONE || (may && !slu_nodeset_has(may, i)) ||
			    slu_nodeset_has(set, i))
				continue;
			for (uint32_t k = 0; clear && k < slu_machine_node_shares(q->m, node);
			     k++) {
				struct slu_node_share sh;

				slu_machine_node_share(q->m, node, k, &sh);
				clear = sh.end_s <= s->from_s || sh.start_s >= s->to_s;
			}
			if (!clear && !busy)
				continue;
			rc = slu_nodeset_add(set, i);
			if (rc < 0)
				return rc;
			have++;
		}
	if (have < s->count)
		return slu_fail(err, -ENOENT, "span \"%s\": %u nodes wanted, there are %u", s->name,
				s->count, have);
	return 0;
}

static int span_add(struct slu_queue *q, const struct slu_span *s, struct slu_error *err)
{
	struct span own = { .kind = s->kind, .from_s = s->from_s, .to_s = s->to_s };
	slu_cleanup(slu_nodeset_unrefp) struct slu_nodeset *set = slu_nodeset_new(
		slu_machine_node_slots(q->m));
	int rc = 0;

	if (!set || slu_vec_reserve(&q->span, q->span.n + 1) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nnode; i++) {
		slu_node node = slu_machine_node_find(q->m, s->node[i]);

		if (node == SLU_NODE_NONE)
			return slu_fail(err, -ENOENT, "span \"%s\": there is no node \"%s\"",
					s->name, s->node[i]);
		rc = slu_nodeset_add(set, slu_node_index(node));
		if (rc < 0)
			return rc;
	}
	if (!s->nnode)
		rc = choose_nodes(q, s, set, err);
	if (rc < 0)
		return rc;
	own.name = slu_intern(&q->str, s->name);
	own.id = SLU_BOOKING_SPAN | (q->span_seq + 1);
	if (own.name == SLU_INTERN_NONE || slu_vec_reserve(&own.user, s->nuser) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nuser; i++) {
		uint32_t user = slu_intern(&q->str, s->user[i]);

		if (user == SLU_INTERN_NONE) {
			slu_vec_done(&own.user);
			return -ENOMEM;
		}
		own.user.p[own.user.n++] = user;
	}
	struct slu_gang_block b = { .id = own.id,
				    .from_s = s->from_s,
				    .to_s = s->to_s,
				    .nodes = set,
				    .amount = s->amount,
				    .n_amount = s->n_amount };

	rc = queue_timer_add(q, s->to_s, SLU_NIL);
	if (!rc)
		rc = slu_gang_block_add(q->m, q->now_s, &b, err);
	if (rc < 0) {
		slu_vec_done(&own.user);
		return rc;
	}
	own.nodes = slu_take(set);
	q->span_seq++;
	q->span.p[q->span.n++] = own;
	q->user_matters |= own.user.n > 0;
	queue_plan_lost(q, SLU_CAUSE_NODE_LOST, 0, SLU_NODE_NONE);
	(void)queue_bucket_rebuild(q); /* if memory runs out, the next pass goes on with it */
	return 0;
}

void queue_span_drop(struct slu_queue *q, uint32_t i)
{
	slu_gang_cancel(q->m, q->span.p[i].id); /* -ENOENT: its time is over */
	slu_nodeset_unref(q->span.p[i].nodes);
	slu_vec_done(&q->span.p[i].user);
	memmove(q->span.p + i, q->span.p + i + 1, (q->span.n - i - 1) * sizeof *q->span.p);
	q->span.n--;
	queue_plan_freed(q, SLU_CAUSE_GREW, 0, SLU_NODE_NONE);
}

/* Whether a span of this name stands in the way of `s`.  Occurrences of one reservation share its name. */
static bool span_clashes(const struct slu_queue *q, const struct slu_span *s)
{
	for (uint32_t i = 0; i < q->span.n; i++) {
		const struct span *x = &q->span.p[i];

		if (strcmp(slu_intern_str(&q->str, x->name), s->name))
			continue;
		if (x->kind != SLU_SPAN_RESERVATION || s->kind != SLU_SPAN_RESERVATION ||
		    (s->from_s < x->to_s && x->from_s < s->to_s))
			return true;
	}
	return false;
}

static int span_remove(struct slu_queue *q, const char *name, struct slu_error *err)
{
	uint32_t had = q->span.n;

	for (uint32_t i = q->span.n; i-- > 0;)
		if (!strcmp(slu_intern_str(&q->str, q->span.p[i].name), name))
			queue_span_drop(q, i);
	if (q->span.n == had)
		return slu_fail(err, -ENOENT, "no span \"%s\"", name);
	(void)queue_bucket_rebuild(q); /* if memory runs out, the next pass goes on with it */
	return 0;
}

int queue_ev_span(struct slu_queue *q, const struct slu_event *ev, struct slu_error *err)
{
	const struct slu_span *s = ev->span;

	if (!s || !s->name || !*s->name)
		return slu_fail(err, -EINVAL, "a span needs a name");
	if (ev->kind == SLU_EV_SPAN_REMOVE)
		return span_remove(q, s->name, err);
	if (span_clashes(q, s))
		return slu_fail(err, -EEXIST, "span \"%s\" exists", s->name);
	if (s->to_s <= s->from_s || s->to_s <= q->now_s)
		return slu_fail(err, -EINVAL, "span \"%s\" ends before it begins, or is over",
				s->name);
	if (!s->nnode && !s->count)
		return slu_fail(err, -EINVAL, "span \"%s\": no nodes named", s->name);
	return span_add(q, s, err);
}

static int sub_order(struct slu_queue *q)
{
	if (slu_vec_reserve(&q->sub_order, q->sub.n) < 0)
		return -ENOMEM;
	q->sub_order.n = 0;
	for (uint32_t i = 0; i < q->sub.n; i++) {
		uint32_t k = q->sub_order.n++;

		for (;
		     k && q->sub.p[q->sub_order.p[k - 1]].conf.priority < q->sub.p[i].conf.priority;
		     k--)
			q->sub_order.p[k] = q->sub_order.p[k - 1];
		q->sub_order.p[k] = i;
	}
	return 0;
}

int queue_ev_conf(struct slu_queue *q, const struct slu_event *ev, struct slu_error *err)
{
	struct slu_queue_conf c;
	uint32_t i = 0;

	if (!ev->conf || !ev->conf->name || !*ev->conf->name)
		return slu_fail(err, -EINVAL, "a queue needs a name");
	c = *ev->conf;
	if ((unsigned)c.policy >= SLU_POLICIES || (unsigned)c.backfill > SLU_BACKFILL_BALANCED)
		return slu_fail(err, -EINVAL, "queue \"%s\": unknown policy", c.name);
	if (c.max_stretch > SLU_STRETCH_MAX || c.max_wait_s < 0 || c.max_wait_s > SLU_LIMIT_MAX)
		return slu_fail(err, -EINVAL, "queue \"%s\": bound on the wait out of range",
				c.name);
	if (!c.max_stretch)
		c.max_stretch = SLU_STRETCH;
	if (!c.max_wait_s)
		c.max_wait_s = SLU_WAIT_S;
	if (c.default_duration < 0 || c.default_duration > SLU_LIMIT_MAX)
		return slu_fail(err, -EINVAL, "queue \"%s\": default duration out of range",
				c.name);
	if (!c.default_duration)
		c.default_duration = 3600;
	if (!c.reservation_depth)
		c.reservation_depth = 64;
	c.stopped |= c.removed;
	uint32_t name = slu_intern(&q->str, c.name);
	uint32_t prop = c.property && *c.property ? slu_intern(&q->str, c.property)
						  : SLU_INTERN_NONE;

	if (name == SLU_INTERN_NONE || (c.property && *c.property && prop == SLU_INTERN_NONE))
		return -ENOMEM;
	c.name = slu_intern_str(&q->str, name);
	c.property = prop == SLU_INTERN_NONE ? NULL : slu_intern_str(&q->str, prop);
	while (i < q->sub.n && q->sub.p[i].conf.name != c.name)
		i++;
	/* Room for the timers of all waiting jobs: the times when their promises are due may change. */
	if (i < q->sub.n &&
	    slu_vec_reserve(&q->timer, q->timer.n + q->sub.p[i].n[SLU_JOB_WAITING]) < 0)
		return -ENOMEM;
	if (i == q->sub.n) {
		struct subqueue s = { .reserved = SLU_NIL };

		if (slu_vec_push(&q->sub, s) < 0)
			return -ENOMEM;
	}
	q->sub.p[i].conf = c;
	q->user_matters |= c.limit.max_running_user > 0;
	int rc = queue_sub_nodes(q, i);

	if (!rc)
		rc = sub_order(q);
	if (rc < 0)
		return rc;
	queue_plan_freed(q, SLU_CAUSE_REPLAN, 0, SLU_NODE_NONE);
	queue_plan_lost(q, SLU_CAUSE_REPLAN, 0, SLU_NODE_NONE);
	q->topology++;
	(void)queue_bucket_rebuild(q); /* if memory runs out, the next pass goes on with it */
	for (uint32_t j = q->list[SLU_JOB_WAITING]; j != SLU_NIL; j = q->job.p[j].next)
		if (q->job.p[j].queue == i &&
		    queue_plan_due(&q->sub.p[i].conf, &q->job.p[j]) > q->now_s)
			(void)queue_timer_add(q, queue_plan_due(&q->sub.p[i].conf, &q->job.p[j]),
					      j);
	return 0;
}
