/* From the records of a trace to what the queue understands. */
#include "sim/world_internal.h"

static const char *text_of(const struct slu_trace *t, uint32_t id)
{
	return id == SLU_INTERN_NONE ? NULL : slu_intern_str(&t->str, id);
}

static int add_node(struct world *w, uint32_t i, struct slu_error *err)
{
	const struct slu_trace_node *n = &w->t->node.p[i];
	struct slu_amount total[3] = { { (uint32_t)w->resource_cpu, n->millicores },
				       { (uint32_t)w->resource_mem, n->memory },
				       { (uint32_t)w->resource_gpu, n->gpus } };
	const char *domain[3] = { text_of(w->t, n->zone), text_of(w->t, n->block),
				  text_of(w->t, n->rack) };
	const char *by_level[3];
	const char *prop[64];
	uint32_t nprop = SLU_MIN(n->nprop, (uint32_t)SLU_LEN(prop));

	for (int l = 0; l < 3; l++)
		by_level[w->level[l]] = domain[l];
	for (uint32_t p = 0; p < nprop; p++)
		prop[p] = text_of(w->t, w->t->prop.p[n->prop + p]);
	struct slu_node_spec spec = { .name = text_of(w->t, n->name),
				      .rank = i,
				      .total = total,
				      .n_total = 3,
				      .domain = by_level,
				      .n_domain = 3,
				      .tag = i };
	struct slu_event ev = {
		.kind = SLU_EV_NODE_ADD, .node_spec = &spec, .property = prop, .n_property = nprop
	};

	w->s->capacity += n->millicores;
	return slu_queue_apply(w->q, w->now_s, &ev, &w->out, err);
}

static int add_queue(struct world *w, const struct slu_trace_queue *tq, struct slu_error *err)
{
	struct slu_queue_conf c = { .name = tq ? text_of(w->t, tq->name) : "default",
				    .policy = w->o->policy,
				    .backfill = w->o->backfill,
				    .queue_depth = w->o->queue_depth,
				    .reservation_depth = w->o->reservation_depth,
				    .max_stretch = w->o->max_stretch,
				    .max_wait_s = w->o->max_wait_s };
	struct slu_event ev = { .kind = SLU_EV_QUEUE_SET, .conf = &c };
	int rc = 0;

	if (tq) {
		if (tq->policy != SLU_INTERN_NONE)
			rc = slu_policy_parse(text_of(w->t, tq->policy), &c.policy, err);
		if (!rc && tq->backfill != SLU_INTERN_NONE)
			rc = slu_backfill_parse(text_of(w->t, tq->backfill), &c.backfill, err);
		if (tq->queue_depth)
			c.queue_depth = tq->queue_depth;
		if (tq->reservation_depth)
			c.reservation_depth = tq->reservation_depth;
		c.priority = tq->priority;
		c.default_duration = tq->default_s;
		c.property = text_of(w->t, tq->property);
		c.limit = (struct slu_queue_limits){ .max_slots = tq->max_slots,
						     .max_duration = tq->max_s,
						     .max_running = tq->max_running,
						     .max_waiting = tq->max_waiting,
						     .max_running_user = tq->max_running_user,
						     .max_waiting_user = tq->max_waiting_user };
	}
	return rc < 0 ? rc : slu_queue_apply(w->q, w->now_s, &ev, &w->out, err);
}

/* The set of nodes with a property, shared by all requests for it. */
static int property_set(struct world *w, uint32_t prop, const struct slu_nodeset **out)
{
	const struct slu_machine *m = slu_queue_machine(w->q);

	while (w->set.n <= prop) {
		struct slu_nodeset *none = NULL;

		if (slu_vec_push(&w->set, none) < 0)
			return -ENOMEM;
	}
	if (!w->set.p[prop]) {
		struct slu_nodeset *set = slu_nodeset_new(w->t->node.n);

		if (!set)
			return -ENOMEM;
		w->set.p[prop] = set;
		for (uint32_t i = 0; i < w->t->node.n; i++) {
			const struct slu_trace_node *n = &w->t->node.p[i];

			for (uint32_t p = 0; p < n->nprop; p++)
				if (w->t->prop.p[n->prop + p] == prop &&
				    slu_nodeset_add(set, slu_node_index(slu_machine_node_find(
								 m, text_of(w->t, n->name)))) < 0)
					return -ENOMEM;
		}
	}
	*out = w->set.p[prop];
	return 0;
}

static int build_requests(struct world *w)
{
	const struct slu_trace *t = w->t;

	if (slu_vec_reserve(&w->req, t->req.n) < 0 || slu_vec_reserve(&w->role, t->role.n) < 0 ||
	    slu_vec_reserve(&w->need, t->role.n * 3) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->role.n; i++) {
		const struct slu_trace_role *r = &t->role.p[i];
		struct slu_gang_role role = { .min = r->slots, .max = r->max_slots };

		role.need = w->need.p + w->need.n;
		if (r->millicores)
			w->need.p[w->need.n++] = (struct slu_amount){ (uint32_t)w->resource_cpu,
								      r->millicores };
		if (r->memory)
			w->need.p[w->need.n++] = (struct slu_amount){ (uint32_t)w->resource_mem,
								      r->memory };
		if (r->gpus)
			w->need.p[w->need.n++] = (struct slu_amount){ (uint32_t)w->resource_gpu,
								      r->gpus };
		role.n_need = (uint32_t)(w->need.p + w->need.n - role.need);
		if (r->spread)
			role.flags |= SLU_ROLE_ALONE;
		if (r->property != SLU_INTERN_NONE && property_set(w, r->property, &role.nodes) < 0)
			return -ENOMEM;
		w->role.p[w->role.n++] = role;
	}
	for (uint32_t i = 0; i < t->req.n; i++) {
		const struct slu_trace_req *r = &t->req.p[i];
		struct slu_gang_req req = { .role = w->role.p + r->role,
					    .n_role = r->nrole,
					    .level = -1 };

		if (r->within != SLU_INTERN_NONE) {
			req.level = slu_queue_level(w->q, text_of(t, r->within));
			if (req.level < 0)
				return req.level;
			req.flags |= r->prefer ? 0 : SLU_GANG_CLOSE_REQUIRED;
		}
		for (uint32_t k = 0; r->exclusive && k < r->nrole; k++)
			w->role.p[r->role + k].flags |= SLU_ROLE_EXCLUSIVE;
		w->req.p[w->req.n++] = req;
	}
	return 0;
}

int sim_world_build(struct world *w, struct slu_error *err)
{
	static const char *const level[3] = { "zone", "block", "rack" };
	struct slu_queue_opts qo = { .lazy = true };
	int rc = slu_queue_new(&qo, &w->q, err);

	if (rc < 0)
		return rc;
	w->resource_cpu = slu_queue_resource(w->q, "cpu");
	w->resource_mem = slu_queue_resource(w->q, "memory");
	w->resource_gpu = slu_queue_resource(w->q, "gpu");
	for (int l = 0; l < 3; l++) {
		w->level[l] = slu_queue_level(w->q, level[l]);
		rc = SLU_MIN(rc, w->level[l]);
	}
	if (w->resource_cpu < 0 || w->resource_mem < 0 || w->resource_gpu < 0 || rc < 0)
		return slu_fail(err, -ENOMEM, "out of memory");
	rc = 0;
	if (!w->t->node.n)
		return slu_fail(err, -EINVAL, "the machine has no nodes; give --nodes and --cores");
	for (uint32_t i = 0; i < w->t->node.n && !rc; i++)
		rc = add_node(w, i, err);
	for (uint32_t i = 0; i < w->t->queue.n && !rc; i++)
		rc = add_queue(w, &w->t->queue.p[i], err);
	if (!rc && !w->t->queue.n)
		rc = add_queue(w, NULL, err);
	if (rc < 0)
		return rc;
	rc = build_requests(w);
	return rc == -ENOMEM ? slu_fail(err, rc, "out of memory") : rc;
}

void sim_world_done(struct world *w)
{
	slu_queue_free(w->q);
	slu_decisions_done(&w->out);
	slu_vec_done(&w->end);
	slu_free(w->gen);
	slu_free(w->left);
	slu_free(w->since);
	slu_vec_done(&w->killed);
	slu_vec_done(&w->req);
	slu_vec_done(&w->role);
	slu_vec_done(&w->need);
	for (uint32_t i = 0; i < w->set.n; i++)
		slu_nodeset_unref(w->set.p[i]);
	slu_vec_done(&w->set);
	sim_verify_free(w->verify);
}
