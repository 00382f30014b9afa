/* When drains begin and end: asked for, recalled, over.  (What a drain is: drains.c.) */
#include "control/cluster/cluster.h"

#include <stdio.h>

static void describe_node(struct slu_core *c, struct node *n)
{
	if (n->handle == SLU_NODE_NONE || !n->k)
		return;
	core_shapes_node(c, n);
	core_node_describe(c, n);
}

/* Let the node take work again.  The queue is told even if the drain is over: this runs before the pass
 * that would drop it from the plan. */
static void end_drain(struct slu_core *c, struct node *n)
{
	if (n->drained && core_node_drain(c, n, false) < 0)
		return;
	core_drain_put(c, n, false);
	n->drained = false;
	n->drain_id = 0;
	n->away = false;
	n->drain_from_s = n->drain_to_s = 0;
	describe_node(c, n); /* if it is not back, that counts from now on */
}

static bool is_back(const struct node *n)
{
	return n->away && n->k && n->k->ready == SLU_TRI_TRUE;
}

void core_drain_away(struct slu_core *c, struct node *n, const struct slu_knode *was)
{
	bool left = was && was->ready == SLU_TRI_TRUE && n->k && n->k->ready != SLU_TRI_TRUE;

	if (is_back(n))
		core_due_by(c, CORE_AT_DRAIN, c->now_us);
	if (!left || n->drain_id || !c->cfg->nodes.back_s || !c->door || n->handle == SLU_NODE_NONE)
		return;
	n->away = true;
	n->drain_id = ++c->next_job;
	n->drain_from_s = c->now_s;
	n->drain_to_s = c->now_s + c->cfg->nodes.back_s;
	core_drain_put(c, n, true);
	slu_log(SLU_INFO, "node is not ready; it is expected back", SLU_STR("node", n->name),
		SLU_I64("within_s", c->cfg->nodes.back_s));
}

void core_drains(struct slu_core *c)
{
	if (!core_is_due(c, CORE_AT_DRAIN))
		return;
	core_due_at(c, CORE_AT_DRAIN, CORE_NEVER);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		struct node *n = node_of(e);

		if (!n->drain_id)
			continue;
		if (core_drain_over(c, n) || is_back(n)) {
			slu_log(SLU_INFO,
				is_back(n) ? "node is back"
				: !n->away ? "drain is over"
					   : "node is not expected back any more",
				SLU_STR("node", n->name));
			end_drain(c, n);
			continue;
		}
		core_drain_timer(c, n);
		if (core_drain_covers(c, n))
			describe_node(c, n); /* the node may have been down before */
	}
}

static int drain_node(struct slu_core *c, struct node *n, int64_t from_s, int64_t to_s,
		      struct slu_error *err)
{
	char from[32] = "", to[32] = "";

	if (to_s <= c->now_s || to_s <= from_s)
		return slu_fail(err, -EINVAL, "the drain would be over before it begins");
	if (n->drained && core_node_drain(c, n, false) < 0) /* another window */
		return slu_fail(err, -EIO, "the queue refused");
	n->drained = n->away = false;
	n->drain_from_s = SLU_MAX(from_s, c->now_s);
	n->drain_to_s = to_s;
	if (!n->drain_id)
		n->drain_id = ++c->next_job;
	core_drain_back(c, n);
	if (!n->drained)
		return slu_fail(err, -EIO, "the queue refused");
	core_drain_put(c, n, true);
	describe_node(c, n);
	if (from_s > c->now_s)
		core_stamp(from, from_s);
	if (to_s != SLU_TIME_EVER)
		core_stamp(to, to_s);
	return slu_fail(err, 0, "%s takes no new work%s%s%s%s; pods that run there keep running",
			n->name, *from ? " from " : "", from, *to ? " until " : "", to);
}

int core_drain_ask(struct slu_core *c, const char *name, bool is, int64_t from_s, int64_t to_s,
		   struct slu_error *err)
{
	struct node *n = node_of(slu_table_finds(&c->cluster->nodes, name));

	/* The drain of a node that was deleted waits for it to come back, unless a person ends it. */
	if (!n || (n->handle == SLU_NODE_NONE && (is || !n->drain_id)))
		return slu_fail(err, -ENOENT, "no node \"%s\"", name);
	if (!is && n->k && n->k->unschedulable && !n->drain_id)
		return slu_fail(err, -EBUSY,
				"%s was not drained here but cordoned in Kubernetes; "
				"kubectl uncordon %s",
				name, name);
	if (is && !to_s)
		to_s = SLU_TIME_EVER;
	if (!is == !n->drain_id &&
	    (!is || (from_s <= c->now_s && n->drain_from_s <= c->now_s && to_s == n->drain_to_s)))
		return slu_fail(err, 0, "%s is %s already", name, is ? "drained" : "in use");
	if (is)
		return drain_node(c, n, from_s, to_s, err);
	end_drain(c, n);
	if (n->handle == SLU_NODE_NONE)
		return slu_fail(err, 0,
				"%s does not exist now; it takes work as soon as it is back", name);
	if (!n->drain_id && n->k && n->k->unschedulable)
		return slu_fail(
			err, 0,
			"%s is not drained any more, but cordoned in Kubernetes: it takes no "
			"work until kubectl uncordon %s",
			name, name);
	return n->drain_id ? slu_fail(err, -EIO, "the queue refused")
			   : slu_fail(err, 0, "%s takes work again", name);
}

int core_drain_recall(struct slu_core *c, const struct slu_store_span *s)
{
	struct node *n;

	c->next_job = SLU_MAX(c->next_job, s->id);
	if (strcmp(s->kind, "drain") ||
	    strncmp(s->name, CORE_DRAIN_PREFIX, strlen(CORE_DRAIN_PREFIX)))
		return 0;
	n = core_node(c, s->name + strlen(CORE_DRAIN_PREFIX));
	if (!n)
		return -ENOMEM;
	n->drain_id = s->id;
	n->away = s->spec && !strcmp(s->spec, CORE_DRAIN_AWAY);
	n->drain_from_s = s->from_s;
	n->drain_to_s = s->to_s;
	core_due_begin(c, CORE_AT_DRAIN); /* the drain may be over since */
	if (n->handle != SLU_NODE_NONE)
		core_drain_back(c, n);
	return 0;
}
