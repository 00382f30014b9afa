/* Nodes: bring those of the mirror into the machine, with the pods that other schedulers put on them. */
#include "control/cluster/cluster.h"

#define CONTROL_PLANE "node-role.kubernetes.io/control-plane"

static bool is_used(const struct slu_core *c, const struct slu_knode *k)
{
	const struct slu_config *cfg = c->cfg;

	if (!cfg->nodes.control_plane && slu_kmeta_label(&k->o.meta, CONTROL_PLANE))
		return false;
	if (*cfg->nodes.exclude_label && core_node_labelled(k, cfg->nodes.exclude_label))
		return false;
	return !*cfg->nodes.include_label || core_node_labelled(k, cfg->nodes.include_label);
}

void core_node_enter(struct slu_core *c, struct node *n, struct pod *p)
{
	if (p->node == n)
		return;
	core_node_leave(c, p);
	if (slu_vec_reserve(&n->pod, n->pod.n + 1) < 0 || core_ports_enter(n, &p->k->spec) < 0)
		return;
	n->pod.p[n->pod.n++] = p;
	p->node = n;
	core_repel_enter(c, n, p);
	core_volumes_enter(c, n, p);
	core_zones_enter(n, p);
	if (!core_ports_counted(c, &p->k->spec))
		core_shapes_node_later(c, n, false);
}

void core_node_leave(struct slu_core *c, struct pod *p)
{
	struct node *n = p->node;

	if (!n)
		return;
	core_foreign_remove(c, p);
	p->more = NULL;
	for (uint32_t i = 0; i < n->pod.n; i++)
		if (n->pod.p[i] == p) {
			n->pod.p[i] = n->pod.p[--n->pod.n];
			break;
		}
	p->node = NULL;
	core_ports_leave(n, &p->k->spec);
	core_repel_leave(c, n, p);
	core_volumes_leave(c, n, p);
	p->zone = 0;
	if (!core_ports_counted(c, &p->k->spec))
		core_shapes_node_later(c, n, true);
}

static void remove_from_machine(struct slu_core *c, struct node *n)
{
	struct slu_event ev = { .kind = SLU_EV_NODE_REMOVE, .node = n->handle };

	if (n->handle == SLU_NODE_NONE)
		return;
	for (uint32_t i = 0; i < n->pod.n; i++) {
		core_foreign_remove(c, n->pod.p[i]);
		n->pod.p[i]->more = NULL; /* the booking of its slot goes with the node */
	}
	if (n->drained)
		core_node_drain(c, n, false);
	n->drained = false;
	core_reservations_leave(c, n);
	core_unindex_node(c, n, n->k);
	core_apply(c, &ev);
	n->handle = SLU_NODE_NONE;
}

/* Whether the two are equal in every field that placement reads. */
static bool same_for_us(const struct slu_knode *a, const struct slu_knode *b)
{
	if (a->ready != b->ready || a->unschedulable != b->unschedulable ||
	    a->ntaints != b->ntaints || a->nallocatable != b->nallocatable ||
	    a->o.meta.nlabels != b->o.meta.nlabels)
		return false;
	for (uint16_t i = 0; i < a->ntaints; i++)
		if (strcmp(a->taints[i].key, b->taints[i].key) ||
		    strcmp(a->taints[i].value, b->taints[i].value) ||
		    a->taints[i].effect != b->taints[i].effect)
			return false;
	for (uint16_t i = 0; i < a->nallocatable; i++)
		if (strcmp(a->allocatable[i].name, b->allocatable[i].name) ||
		    a->allocatable[i].amount != b->allocatable[i].amount)
			return false;
	for (uint16_t i = 0; i < a->o.meta.nlabels; i++)
		if (strcmp(a->o.meta.labels[i].key, b->o.meta.labels[i].key) ||
		    strcmp(a->o.meta.labels[i].value, b->o.meta.labels[i].value))
			return false;
	return true;
}

enum core_node_news core_node_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct node *n = core_node(c, obj->meta.name);
	const struct slu_knode *old, *now = gone ? NULL : slu_knode(obj);
	enum core_node_news news = CORE_NODE_CHANGED;

	if (!n)
		return CORE_NODE_SAME;
	old = n->k;
	n->k = now ? slu_knode(slu_kobj_ref(obj)) : NULL;
	if (old && now && same_for_us(old, now)) {
		slu_kobj_unref(&old->o);
		return CORE_NODE_SAME; /* a heartbeat */
	}
	core_unindex_node(c, n, old);
	if (now)
		core_zones_changed(c, n);
	core_drain_away(c, n, old);
	if (!now || !is_used(c, now)) {
		remove_from_machine(c, n);
		core_shapes_node(c, n);
	} else if (n->handle == SLU_NODE_NONE) {
		core_node_describe(c, n);
		core_shapes_node(c, n);
		news = CORE_NODE_ADDED;
		slu_log(SLU_DEBUG, "node added", SLU_STR("node", n->name));
	} else {
		core_shapes_node(c, n);
		core_node_describe(c, n);
	}
	if (old)
		slu_kobj_unref(&old->o);
	return news;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct node *const *)a)->name, (*(struct node *const *)b)->name);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = slu_node_index((*(struct node *const *)a)->handle),
		 y = slu_node_index((*(struct node *const *)b)->handle);

	return x < y ? -1 : x > y;
}

static void number_again(struct slu_core *c, struct node *n)
{
	core_node_describe(c, n);
	core_shapes_node(c, n);
	for (uint32_t i = 0; i < n->pod.n; i++)
		core_foreign_add(c, n->pod.p[i]);
}

void core_nodes_number(struct slu_core *c)
{
	slu_cleanup(slu_freep) struct node **all = slu_reallocarray(NULL, c->cluster->nodes.n + 1u,
								    sizeof(struct node *));
	bool sorted = true;
	uint32_t n = 0;

	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); all && e;
	     e = slu_table_next(&c->cluster->nodes, e))
		if (node_of(e)->handle != SLU_NODE_NONE)
			all[n++] = node_of(e);
	if (n < 2) /* or no memory: any order will do */
		return;
	qsort(all, n, sizeof(struct node *), by_name);
	for (uint32_t i = 1; i < n; i++)
		sorted &= slu_node_index(all[i - 1]->handle) < slu_node_index(all[i]->handle);
	if (sorted)
		return;
	qsort(all, n, sizeof(struct node *), by_number);
	for (uint32_t i = n; i-- > 0;) /* the number that is given back last is used first */
		remove_from_machine(c, all[i]);
	qsort(all, n, sizeof(struct node *), by_name);
	for (uint32_t i = 0; i < n; i++)
		number_again(c, all[i]);
	core_reservations_look(c);
}

void core_nodes_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL), *next; e; e = next) {
		struct node *n = node_of(e);

		next = slu_table_next(&c->cluster->nodes, e);
		core_node_free(n);
	}
	slu_table_done(&c->cluster->nodes);
	core_index_clear(&c->cluster->index);
}
