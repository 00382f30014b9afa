/* Compare the books with the pods: for every node and kind of resource, the amount used in the plan must be
 * the sum over the pods on the node.  A difference is a bug of Sluice: it is counted and logged, and the
 * node's foreign work is booked again so that the difference does not last. */
#include "control/recover/recover.h"

#include "control/cluster/cluster.h"
#include "control/run/run.h"

static void sum_amounts(int64_t sum[SLU_RESOURCES_MAX], const struct slu_amount *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (a[i].resource < SLU_RESOURCES_MAX)
			sum[a[i].resource] = slu_plus_mod(sum[a[i].resource], a[i].n, 1);
}

/* Add the places of a promise that is due while another gang still runs there beyond its limit: the plan counts
 * them as used from the promised second on. */
static void add_promise(struct slu_core *c, const struct run *r, int64_t (*sum)[SLU_RESOURCES_MAX])
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	struct slu_gang_place place = { 0 };
	struct slu_gang_info info;

	if (slu_gang_info(m, r->id, &info, &place) == 0 && info.state == SLU_GANG_RESERVED &&
	    info.counted)
		for (uint32_t i = 0; i < place.n; i++) {
			const struct slu_gang_part *p = &place.part[i];
			const struct shape *s = r->role.p[p->role].shape;

			for (uint32_t k = 0; k < p->slots; k++)
				sum_amounts(sum[slu_node_index(p->node)], s->need, s->n_need);
		}
	slu_gang_place_done(&place);
}

/* Add the slots of all runs, vacant ones included.  `sum` has a row per node index. */
static void add_runs(struct slu_core *c, int64_t (*sum)[SLU_RESOURCES_MAX])
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	for (struct slu_entry *e = slu_table_next(&c->runs->table, NULL); e;
	     e = slu_table_next(&c->runs->table, e)) {
		const struct run *r = run_of(e);

		if (r->state == RUN_QUEUED && r->planned_s != SLU_TIME_NONE)
			add_promise(c, r, sum);
		for (uint32_t i = 0; i < r->slot.n; i++) {
			const struct shape *s = r->role.p[r->slot.p[i].role].shape;

			if (slu_machine_node_is(m, r->slot.p[i].node))
				sum_amounts(sum[slu_node_index(r->slot.p[i].node)], s->need,
					    s->n_need);
		}
	}
}

static void add_foreign(struct slu_core *c, const struct node *n, int64_t sum[SLU_RESOURCES_MAX])
{
	for (uint32_t i = 0; i < n->pod.n; i++) {
		struct slu_amount *a = NULL;
		uint32_t k = 0;

		if (core_slot_counts(c, n->pod.p[i]) && !n->pod.p[i]->more)
			continue;
		if (core_foreign_amounts(c, n->pod.p[i], &a, &k) != -ENOMEM)
			sum_amounts(sum, a, k);
		slu_free(a);
	}
}

static void book_again(struct slu_core *c, struct node *n)
{
	for (uint32_t i = 0; i < n->pod.n; i++) {
		struct pod *p = n->pod.p[i];

		core_foreign_remove(c, p);
		if (!core_slot_counts(c, p) || p->more)
			core_foreign_add(c, p);
	}
}

static bool audit_node(struct slu_core *c, struct node *n, int64_t sum[SLU_RESOURCES_MAX])
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	add_foreign(c, n, sum);
	for (uint32_t k = 0; k < slu_machine_resources(m); k++) {
		int64_t used = slu_machine_node_used(m, n->handle, k);

		/* The machine's own resource "node", for whole nodes, is no resource of the cluster. */
		if (used == sum[k] || !strcmp(slu_machine_resource_name(m, k), "node"))
			continue;
		c->count.audit_differences++;
		slu_log(SLU_ERROR, "plan and cluster disagree on a node", SLU_STR("node", n->name),
			SLU_STR("resource", slu_machine_resource_name(m, k)),
			SLU_I64("booked", used), SLU_I64("seen", sum[k]));
		return false;
	}
	return true;
}

/* Look for a job that could start now although no event would make the queue look at it: that is a bug of
 * Sluice, too. */
static void audit_waits(struct slu_core *c)
{
	struct slu_error err = { 0 };
	struct slu_job_view v;
	slu_job_id job = 0;

	if (slu_queue_overlooked(c->q, &job, &err) <= 0)
		return;
	c->count.overlooked++;
	slu_log(SLU_ERROR,
		"a bug: a job fits and is allowed to start, but no event would make the queue look at it",
		SLU_STR("job", slu_queue_job(c->q, job, &v) == 0 ? v.name : ""));
	core_apply(c, &(struct slu_event){ .kind = SLU_EV_LOOK });
	core_due_at(c, CORE_AT_AUDIT, c->now_us + 1000000); /* the core wakes then at the latest */
}

void core_audit(struct slu_core *c)
{
	if (!core_is_due(c, CORE_AT_AUDIT))
		return;
	core_due_at(c, CORE_AT_AUDIT, c->now_us + c->cfg->status.audit_s * 1000000);
	slu_cleanup(slu_freep) int64_t(*sum)[SLU_RESOURCES_MAX] = slu_calloc(
		slu_machine_node_slots(slu_queue_machine(c->q)) + 1u, sizeof *sum);
	if (!sum)
		return;
	c->count.audits++;
	core_nodes_forget(c);
	audit_waits(c);
	core_podgroups_audit(c);
	add_runs(c, sum);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		struct node *n = node_of(e);

		/* The span of a drain books the rest of the node, so the sums cannot agree. */
		if (n->handle != SLU_NODE_NONE && !n->drained &&
		    !audit_node(c, n, sum[slu_node_index(n->handle)]))
			book_again(c, n);
	}
}
