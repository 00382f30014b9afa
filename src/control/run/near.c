/* Which nodes a run may use.  If the gang had to be in one rack, block or zone, its later members stay there;
 * and no member goes to a node that has just refused a member of the group. */
#include "control/run/run.h"

#include "control/cluster/cluster.h"

/* Where the gang sits: the level's number and the name of its domain; NULL when no member is placed.
 */
static const char *home_domain(struct slu_core *c, const struct group *g, int *level)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	*level = *g->wish.level && g->wish.level_required ? slu_machine_level_find(m, g->wish.level)
							  : -1;
	for (uint32_t i = 0; *level >= 0 && i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->slot.n &&
		    slu_machine_node_is(m, g->run.p[i]->slot.p[0].node))
			return slu_machine_node_domain(m, g->run.p[i]->slot.p[0].node,
						       (uint32_t)*level);
	return NULL;
}

/* Fill the set with the nodes of the domain that the follower's shape may use. */
static int fill_near(struct slu_core *c, struct run *r, const char *domain, uint32_t level)
{
	const struct slu_machine *m = slu_queue_machine(c->q);
	const struct slu_nodeset *may = r->role.p[0].shape->where->set;

	core_shapes_look(c);
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		struct node *n = node_of(e);
		uint32_t i = slu_node_index(n->handle);
		const char *d;

		if (n->handle == SLU_NODE_NONE)
			continue;
		d = slu_machine_node_domain(m, n->handle, level);
		if (slu_nodeset_has(may, i) && d && !strcmp(d, domain)) {
			if (slu_nodeset_has(r->near, i))
				continue;
			if (slu_nodeset_add(r->near, i) < 0)
				return -ENOMEM;
			slu_qlog_set(c->log, r->near, i, true);
		} else if (slu_nodeset_has(r->near, i)) {
			slu_nodeset_del(r->near, i);
			slu_qlog_set(c->log, r->near, i, false);
		}
	}
	return 0;
}

int core_near_set(struct slu_core *c, struct run *r)
{
	int level = -1;
	const char *domain = r->gang || !r->role.n ? NULL : home_domain(c, r->g, &level);

	if (!domain) {
		core_near_free(c, r);
		return 0;
	}
	if (!r->near) {
		r->near = slu_nodeset_new(c->cluster->nodes.n);
		if (!r->near)
			return -ENOMEM;
		c->runs->near++;
	}
	return fill_near(c, r, domain, (uint32_t)level);
}

void core_near_free(struct slu_core *c, struct run *r)
{
	if (!r->near)
		return;
	slu_nodeset_unref(r->near);
	r->near = NULL;
	c->runs->near--;
}

void core_near_node(struct slu_core *c)
{
	for (struct slu_entry *e = c->runs->near ? slu_table_next(&c->runs->table, NULL) : NULL; e;
	     e = slu_table_next(&c->runs->table, e)) {
		struct run *r = run_of(e);
		int level = -1;
		const char *domain = r->near && r->state == RUN_QUEUED
					     ? home_domain(c, r->g, &level)
					     : NULL;

		if (domain && fill_near(c, r, domain, (uint32_t)level) < 0)
			slu_log(SLU_WARN, "out of memory: node not looked at again",
				SLU_STR("job", r->g->id.name));
	}
}

static bool is_avoided(const struct group *g, slu_node n)
{
	for (uint32_t i = 0; i < SLU_MIN(g->n_avoid, SLU_LEN(g->avoid)); i++)
		if (g->avoid[i] == n)
			return true;
	return false;
}

void core_avoid(struct slu_core *c, struct group *g, slu_node n, int64_t seconds)
{
	if (!is_avoided(g, n))
		g->avoid[g->n_avoid++ % SLU_LEN(g->avoid)] = n;
	g->avoid_until_s = SLU_MAX(g->avoid_until_s, c->now_s + seconds);
	core_due_by(c, CORE_AT_UNDO, c->now_us + 1000000);
}

struct slu_nodeset *core_avoid_nodes(const struct group *g, const struct slu_nodeset *all)
{
	struct slu_nodeset *s = g->n_avoid ? slu_nodeset_clone(all) : NULL;

	for (uint32_t i = 0; s && i < SLU_MIN(g->n_avoid, SLU_LEN(g->avoid)); i++)
		if (slu_nodeset_has(s, slu_node_index(g->avoid[i])))
			slu_nodeset_del(s, slu_node_index(g->avoid[i]));
	if (s && !slu_nodeset_count(s)) { /* rather there than nowhere */
		slu_nodeset_unref(s);
		s = NULL;
	}
	return s;
}
