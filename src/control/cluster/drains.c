/* Drained nodes: a span in the plan, kept in the store, also while the node itself is away. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#define PREFIX "drain:"

int core_node_drain(struct slu_core *c, struct node *n, bool drain)
{
	char name[300];
	const char *node = n->name;
	struct slu_span s = { .kind = SLU_SPAN_DRAIN,
			      .name = name,
			      .from_s = c->now_s,
			      .to_s = SLU_TIME_EVER,
			      .node = &node,
			      .nnode = 1 };
	struct slu_event ev = { .kind = drain ? SLU_EV_SPAN_ADD : SLU_EV_SPAN_REMOVE, .span = &s };

	snprintf(name, sizeof name, PREFIX "%s", n->name);
	return core_apply(c, &ev);
}

void core_drain_back(struct slu_core *c, struct node *n)
{
	if (n->drain_id && !n->drained)
		n->drained = core_node_drain(c, n, true) == 0;
}

/* In the store: a row for each drained node. */
static void keep_drain(struct slu_core *c, struct node *n, bool drain)
{
	char name[300];
	struct slu_store_span s = { .id = n->drain_id,
				    .kind = "drain",
				    .name = name,
				    .from_s = c->now_s,
				    .to_s = SLU_TIME_EVER,
				    .spec = "{}" };
	struct slu_batch *b = c->door ? slu_intents_batch(c->door) : NULL;

	snprintf(name, sizeof name, PREFIX "%s", n->name);
	if (b && (drain ? slu_batch_put_span(b, &s) : slu_batch_del_span(b, n->drain_id)) < 0)
		slu_log(SLU_WARN, "drain not saved in the store", SLU_STR("node", n->name));
}

void core_drain_keep(struct slu_core *c, struct node *n)
{
	if (n->drain_id)
		keep_drain(c, n, true);
}

int core_drain_ask(struct slu_core *c, const char *name, bool drain, struct slu_error *err)
{
	struct node *n = node_of(slu_table_finds(&c->cluster->nodes, name));
	bool cordoned;

	if (!n || n->handle == SLU_NODE_NONE)
		return slu_fail(err, -ENOENT, "no node \"%s\"", name);
	cordoned = slu_machine_node_is_cordoned(slu_queue_machine(c->q), n->handle);
	if (!drain && !n->drained && cordoned)
		return slu_fail(err, -EBUSY,
				"%s was not drained here but cordoned in Kubernetes; "
				"kubectl uncordon %s",
				name, name);
	if (n->drained == drain)
		return slu_fail(err, 0, "%s is %s already", name, drain ? "drained" : "in use");
	if (core_node_drain(c, n, drain) < 0)
		return slu_fail(err, -EIO, "the queue refused");
	n->drained = drain;
	if (drain)
		n->drain_id = ++c->next_job;
	keep_drain(c, n, drain);
	if (!drain)
		n->drain_id = 0;
	if (!drain && cordoned)
		slu_fail(err, 0,
			 "%s is not drained any more, but cordoned in Kubernetes: it takes no work "
			 "until kubectl uncordon %s",
			 name, name);
	else
		slu_fail(err, 0,
			 drain ? "%s takes no new work; what runs there keeps running"
			       : "%s takes work again",
			 name);
	return 0;
}

int core_drain_recall(struct slu_core *c, const struct slu_store_span *s)
{
	struct node *n;

	c->next_job = SLU_MAX(c->next_job, s->id);
	if (strcmp(s->kind, "drain") || strncmp(s->name, PREFIX, strlen(PREFIX)))
		return 0;
	n = core_node(c, s->name + strlen(PREFIX));
	if (!n)
		return -ENOMEM;
	n->drain_id = s->id;
	if (n->handle != SLU_NODE_NONE)
		core_drain_back(c, n);
	return 0;
}
