/* Report the machine to the queue: its nodes, their amounts, and what the pods that the queue did not
 * place use there. */
#include "control/cluster/cluster.h"

#define AMOUNTS_MAX 32u
#define ASKED_MAX   8u /* resources that pods name and no node has */

struct node *core_node(struct slu_core *c, const char *name)
{
	struct node *n = node_of(slu_table_finds(&c->cluster->nodes, name));

	if (n)
		return n;
	n = slu_calloc(1, sizeof *n);
	if (n)
		n->name = slu_strdup(name);
	if (!n || !n->name) {
		slu_free(n);
		return NULL;
	}
	n->handle = SLU_NODE_NONE;
	n->e.key = n->name;
	n->e.n = strlen(name);
	if (slu_table_add(&c->cluster->nodes, &n->e) < 0) {
		slu_free(n->name);
		slu_free(n);
		return NULL;
	}
	return n;
}

void core_nodes_forget(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL), *next; e; e = next) {
		struct node *n = node_of(e);

		next = slu_table_next(&c->cluster->nodes, e);
		if (n->k || n->pod.n || n->drain_id || n->handle != SLU_NODE_NONE || n->csi ||
		    n->topology || n->attached.n || n->recount || n->look)
			continue;
		slu_table_del(&c->cluster->nodes, e);
		core_node_free(n);
	}
}

void core_node_free(struct node *n)
{
	if (n->k)
		slu_kobj_unref(&n->k->o);
	if (n->csi)
		slu_kobj_unref(&n->csi->o);
	if (n->topology)
		slu_kobj_unref(&n->topology->o);
	while (n->attached.n)
		slu_kobj_unref(n->attached.p[--n->attached.n]);
	slu_vec_done(&n->attached);
	slu_vec_done(&n->pod);
	slu_map_done(&n->ports);
	slu_free(n->name);
	slu_free(n);
}

const char *core_node_name(struct slu_core *c, slu_node n)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	return slu_machine_node_is(m, n) ? slu_machine_node_name(m, n) : "";
}

bool core_node_labelled(const struct slu_knode *k, const char *want)
{
	const char *eq = strchr(want, '='), *v;
	char key[320];

	if (!eq)
		return slu_kmeta_label(&k->o.meta, want);
	if ((size_t)(eq - want) >= sizeof key)
		return false;
	memcpy(key, want, (size_t)(eq - want));
	key[eq - want] = 0;
	v = slu_kmeta_label(&k->o.meta, key);
	return v && !strcmp(v, eq + 1);
}

/* The machine has room for few resources, and any user who may make a pod may invent names: resources that no node
 * has must not take the place of resources that a node may bring. */
static int asked_resource(struct slu_core *c, const char *name)
{
	int resource = slu_machine_resource_find(slu_queue_machine(c->q), name);

	if (resource >= 0)
		return resource;
	if (__builtin_popcountll(c->cluster->resources_asked) >= (int)ASKED_MAX)
		return -ENOSPC;
	resource = slu_queue_resource(c->q, name);
	if (resource >= 0)
		c->cluster->resources_asked |= UINT64_C(1) << resource;
	return resource;
}

/* A resource that a node has is counted from now on; pods that named it before are looked at again. */
static int node_resource(struct slu_core *c, const char *name)
{
	uint32_t before = slu_machine_resources(slu_queue_machine(c->q));
	int resource = slu_queue_resource(c->q, name);

	if (resource < 0)
		return resource;
	c->cluster->resources_asked &= ~(UINT64_C(1) << resource);
	c->cluster->new_resources |= (uint32_t)resource >= before;
	return resource;
}

int core_amounts(struct slu_core *c, const struct slu_kpodspec *s, struct slu_amount **out,
		 uint32_t *n)
{
	struct slu_amount *a = slu_reallocarray(NULL,
						(size_t)s->nrequests + s->nhost_ports + 1u +
							CORE_DRIVERS_MAX + CORE_ZONINGS_MAX,
						sizeof *a);
	uint32_t k = 0;
	int rc = 0;

	if (!a)
		return -ENOMEM;
	for (uint16_t i = 0; i < s->nrequests; i++) {
		int resource;

		if (s->requests[i].amount <= 0 || !strcmp(s->requests[i].name, "pods"))
			continue;
		resource = asked_resource(c, s->requests[i].name);
		if (resource < 0) {
			rc = resource; /* too many resources: the others still count */
			continue;
		}
		a[k++] = (struct slu_amount){ (uint32_t)resource,
					      SLU_MIN(s->requests[i].amount, CORE_AMOUNT_MAX) };
	}
	a[k++] = (struct slu_amount){ (uint32_t)c->cluster->resource_pods, 1 };
	k += core_ports_amounts(c, s, a + k);
	*out = a;
	*n = k;
	return rc;
}

int core_foreign_amounts(struct slu_core *c, const struct pod *p, struct slu_amount **out,
			 uint32_t *n)
{
	int rc = core_amounts(c, &p->k->spec, out, n);
	uint32_t kept = 0;

	if (rc == -ENOMEM)
		return rc;
	*n += core_zones_taken(c, p, &(*out)[*n]); /* there is room */
	if (!p->more)
		return rc;
	for (uint32_t i = 0; i < *n; i++) {
		struct slu_amount a = (*out)[i];

		for (uint32_t k = 0; k < p->more->n_need; k++)
			a.n -= p->more->need[k].resource == a.resource ? p->more->need[k].n : 0;
		if (a.n > 0)
			(*out)[kept++] = a;
	}
	*n = kept;
	return rc;
}

void core_foreign_more(struct slu_core *c, struct pod *p, const struct shape *booked)
{
	slu_cleanup(slu_freep) struct slu_amount *a = NULL;
	uint32_t n = 0;

	core_foreign_remove(c, p);
	p->more = booked;
	if (core_foreign_amounts(c, p, &a, &n) != -ENOMEM && n)
		core_foreign_add(c, p);
}

void core_foreign_add(struct slu_core *c, struct pod *p)
{
	slu_cleanup(slu_freep) struct slu_amount *a = NULL;
	struct slu_event ev = { .kind = SLU_EV_FOREIGN_ADD,
				.foreign = p->serial,
				.until_s = SLU_TIME_EVER };
	const struct slu_kowner *o = slu_kmeta_controller(&p->k->o.meta);

	if (p->foreign || !p->node || p->node->handle == SLU_NODE_NONE)
		return;
	if (core_foreign_amounts(c, p, &a, &ev.n_amount) == -ENOMEM)
		return;
	ev.amount = a;
	ev.node = p->node->handle;
	ev.background = o && !strcmp(o->kind, "DaemonSet");
	if (p->k->spec.active_deadline_s > 0) {
		int64_t from = p->k->start_us ? p->k->start_us : c->now_us;

		ev.until_s = from / 1000000 + p->k->spec.active_deadline_s;
	}
	p->foreign = core_apply(c, &ev) == 0;
	core_volumes_recount(c, p->node);
}

void core_foreign_remove(struct slu_core *c, struct pod *p)
{
	struct slu_event ev = { .kind = SLU_EV_FOREIGN_REMOVE, .foreign = p->serial };

	if (!p->foreign)
		return;
	p->foreign = false;
	core_apply(c, &ev);
	core_volumes_recount(c, p->node);
}

void core_node_describe(struct slu_core *c, struct node *n)
{
	const struct slu_config *cfg = c->cfg;
	const struct slu_knode *k = n->k;
	bool comes_back = core_drain_covers(c, n);
	struct slu_amount total[AMOUNTS_MAX];
	const char *domain[SLU_LEVELS_MAX], *prop[16];
	struct slu_node_spec spec = { .name = n->name,
				      .total = total,
				      .domain = domain,
				      .tag = (uintptr_t)n,
				      .down = k->ready != SLU_TRI_TRUE && !comes_back,
				      .cordoned = k->unschedulable && !comes_back };
	struct slu_event ev = { .kind = SLU_EV_NODE_ADD, .node_spec = &spec, .property = prop };

	for (uint16_t i = 0; i < k->nallocatable && spec.n_total < AMOUNTS_MAX; i++) {
		int resource = k->allocatable[i].amount > 0
				       ? node_resource(c, k->allocatable[i].name)
				       : -ENOENT;

		if (resource >= 0)
			total[spec.n_total++] = (struct slu_amount){
				(uint32_t)resource,
				SLU_MIN(k->allocatable[i].amount, CORE_AMOUNT_MAX)
			};
	}
	for (uint32_t i = 0; i < c->cluster->port.n && spec.n_total < AMOUNTS_MAX; i++)
		total[spec.n_total++] = (struct slu_amount){ c->cluster->port.p[i].resource, 1 };
	for (uint32_t i = 0; i < c->cluster->driver.n && spec.n_total < AMOUNTS_MAX; i++)
		if (c->cluster->driver.p[i].resource >= 0)
			total[spec.n_total++] = (struct slu_amount){
				(uint32_t)c->cluster->driver.p[i].resource,
				core_volumes_total(c, n, &c->cluster->driver.p[i])
			};
	for (uint32_t i = 0; i < c->cluster->zoning.n && spec.n_total < AMOUNTS_MAX; i++)
		total[spec.n_total++] =
			(struct slu_amount){ (uint32_t)c->cluster->zoning.p[i].resource,
					     core_zones_total(c, n, &c->cluster->zoning.p[i]) };
	spec.n_domain = SLU_MIN(cfg->nodes.n_levels, SLU_LEVELS_MAX);
	for (uint32_t i = 0; i < spec.n_domain; i++) {
		domain[i] = slu_kmeta_label(&k->o.meta, cfg->nodes.level[i].label);
		if (domain[i] && !*domain[i])
			domain[i] = NULL;
	}
	for (uint32_t i = 0; i < cfg->n_queues && ev.n_property < SLU_LEN(prop); i++)
		if (*cfg->queue[i].node_label && core_node_labelled(k, cfg->queue[i].node_label))
			prop[ev.n_property++] = cfg->queue[i].node_label;
	if (core_apply(c, &ev) < 0)
		return;
	n->handle = slu_machine_node_find(slu_queue_machine(c->q), n->name);
	core_drain_back(c, n);
}

void core_nodes_describe(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL); e;
	     e = slu_table_next(&c->cluster->nodes, e))
		if (node_of(e)->handle != SLU_NODE_NONE)
			core_node_describe(c, node_of(e));
}

static void rebook(struct slu_core *c, struct pod *p)
{
	core_foreign_remove(c, p);
	core_foreign_add(c, p);
}

void core_ports_introduce(struct slu_core *c)
{
	core_nodes_describe(c);
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e))
		if (pod_of(e)->foreign && pod_of(e)->k->spec.nhost_ports)
			rebook(c, pod_of(e));
}

void core_zones_introduce(struct slu_core *c)
{
	core_nodes_describe(c);
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL); e;
	     e = slu_table_next(&c->cluster->pods, e))
		if (pod_of(e)->foreign && (pod_of(e)->k->spec.flags & SLU_POD_PINS_CPUS))
			rebook(c, pod_of(e));
}
