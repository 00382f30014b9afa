/* Drained nodes: a span in the plan, kept in the store, also while the node itself is away.
 *
 * A drain may have a window with a start and an end.  Before the start, only jobs that end in time are
 * planned on the node.  A drain with an end is a promise that the node comes back: during the window the
 * node may be cordoned, reboot and be down, and the plan uses the node after the end.  A node that is not
 * back by then counts as down, like any other.
 *
 * A node that stops being ready without a drain may be expected back, too (nodes.expectBack): the core
 * drains it from that moment on, until the node is ready or the time has passed. */
#include "control/cluster/cluster.h"

#include <stdio.h>

int core_node_drain(struct slu_core *c, struct node *n, bool drain)
{
	char name[300];
	const char *node = n->name;
	struct slu_span s = { .kind = SLU_SPAN_DRAIN,
			      .name = name,
			      .from_s = SLU_MAX(n->drain_from_s, c->now_s),
			      .to_s = n->drain_to_s,
			      .node = &node,
			      .nnode = 1 };
	struct slu_event ev = { .kind = drain ? SLU_EV_SPAN_ADD : SLU_EV_SPAN_REMOVE, .span = &s };

	snprintf(name, sizeof name, CORE_DRAIN_PREFIX "%s", n->name);
	return core_apply(c, &ev);
}

bool core_drain_over(const struct slu_core *c, const struct node *n)
{
	return n->drain_to_s <= c->now_s;
}

bool core_drain_covers(const struct slu_core *c, const struct node *n)
{
	return n->drain_id && n->drain_from_s <= c->now_s && n->drain_to_s != SLU_TIME_EVER &&
	       !core_drain_over(c, n);
}

void core_drain_timer(struct slu_core *c, const struct node *n)
{
	if (n->drain_id && n->drain_from_s > c->now_s)
		core_due_by(c, CORE_AT_DRAIN, n->drain_from_s * 1000000);
	if (n->drain_id && n->drain_to_s != SLU_TIME_EVER)
		core_due_by(c, CORE_AT_DRAIN, n->drain_to_s * 1000000);
}

void core_drain_back(struct slu_core *c, struct node *n)
{
	if (!n->drain_id || n->drained || core_drain_over(c, n))
		return;
	n->drained = core_node_drain(c, n, true) == 0;
	core_drain_timer(c, n);
}

void core_drain_put(struct slu_core *c, struct node *n, bool drain)
{
	char name[300];
	struct slu_store_span s = { .id = n->drain_id,
				    .kind = "drain",
				    .name = name,
				    .from_s = n->drain_from_s,
				    .to_s = n->drain_to_s,
				    .spec = n->away ? CORE_DRAIN_AWAY : "{}" };
	struct slu_batch *b = c->door ? slu_intents_batch(c->door) : NULL;

	snprintf(name, sizeof name, CORE_DRAIN_PREFIX "%s", n->name);
	if (b && (drain ? slu_batch_put_span(b, &s) : slu_batch_del_span(b, n->drain_id)) < 0)
		slu_log(SLU_WARN, "drain not saved in the store", SLU_STR("node", n->name));
}

void core_drain_keep(struct slu_core *c, struct node *n)
{
	if (n->drain_id)
		core_drain_put(c, n, true);
}
