/* Nodes: the mirror's to the machine's, and everybody else's pods on them. */
#include "control/cluster/cluster.h"

#define CONTROL_PLANE "node-role.kubernetes.io/control-plane"
#define AMOUNTS_MAX   32u
#define ASKED_MAX     8u /* kinds of resources that pods name and no node has */

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

const char *core_node_name(struct slu_core *c, slu_node n)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	return slu_machine_node_is(m, n) ? slu_machine_node_name(m, n) : "";
}

/* "key" or "key=value". */
static bool has_label(const struct slu_knode *k, const char *want)
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

static bool is_used(const struct slu_core *c, const struct slu_knode *k)
{
	const struct slu_config *cfg = c->cfg;

	if (!cfg->nodes.control_plane && slu_kmeta_label(&k->o.meta, CONTROL_PLANE))
		return false;
	if (*cfg->nodes.exclude_label && has_label(k, cfg->nodes.exclude_label))
		return false;
	return !*cfg->nodes.include_label || has_label(k, cfg->nodes.include_label);
}

/* The machine has few kinds, and whoever may make a pod may invent names: those that no node has
 * shall not take the place of those a node may bring. */
static int asked_kind(struct slu_core *c, const char *name)
{
	int kind = slu_machine_kind_find(slu_queue_machine(c->q), name);

	if (kind >= 0)
		return kind;
	if (__builtin_popcountll(c->cluster->kinds_asked) >= (int)ASKED_MAX)
		return -ENOSPC;
	kind = slu_queue_kind(c->q, name);
	if (kind >= 0)
		c->cluster->kinds_asked |= UINT64_C(1) << kind;
	return kind;
}

/* Of a node: counted from now on, which is news for whoever named it in vain. */
static int node_kind(struct slu_core *c, const char *name)
{
	uint32_t before = slu_machine_kinds(slu_queue_machine(c->q));
	int kind = slu_queue_kind(c->q, name);

	if (kind < 0)
		return kind;
	c->cluster->kinds_asked &= ~(UINT64_C(1) << kind);
	c->cluster->new_kinds |= (uint32_t)kind >= before;
	return kind;
}

int core_amounts(struct slu_core *c, const struct slu_kpodspec *s, struct slu_amount **out,
		 uint32_t *n)
{
	struct slu_amount *a = slu_reallocarray(NULL, (size_t)s->nrequests + s->nhost_ports + 1u,
						sizeof *a);
	uint32_t k = 0;
	int rc = 0;

	if (!a)
		return -ENOMEM;
	for (uint16_t i = 0; i < s->nrequests; i++) {
		int kind;

		if (s->requests[i].amount <= 0 || !strcmp(s->requests[i].name, "pods"))
			continue;
		kind = asked_kind(c, s->requests[i].name);
		if (kind < 0) {
			rc = kind; /* too many kinds: the others still count */
			continue;
		}
		a[k++] = (struct slu_amount){ (uint32_t)kind,
					      SLU_MIN(s->requests[i].amount, SLU_AMOUNT_MAX) };
	}
	a[k++] = (struct slu_amount){ (uint32_t)c->cluster->kind_pods, 1 };
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

	if (rc == -ENOMEM || !p->more)
		return rc;
	for (uint32_t i = 0; i < *n; i++) {
		struct slu_amount a = (*out)[i];

		for (uint32_t k = 0; k < p->more->n_need; k++)
			a.n -= p->more->need[k].kind == a.kind ? p->more->need[k].n : 0;
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
}

void core_foreign_remove(struct slu_core *c, struct pod *p)
{
	struct slu_event ev = { .kind = SLU_EV_FOREIGN_REMOVE, .foreign = p->serial };

	if (!p->foreign)
		return;
	p->foreign = false;
	core_apply(c, &ev);
}

void core_node_enter(struct slu_core *c, struct node *n, struct pod *p)
{
	if (p->node == n)
		return;
	core_node_leave(c, p);
	if (slu_vec_push(&n->pod, p) < 0)
		return;
	p->node = n;
	core_repel_enter(c, n, p);
	if (!core_ports_counted(c, &p->k->spec))
		core_shapes_node(c, n);
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
	core_repel_leave(c, n, p);
	if (!core_ports_counted(c, &p->k->spec) && n->handle != SLU_NODE_NONE) {
		core_shapes_node(c, n);
		core_node_describe(c, n); /* a freed port is news for who waits for it */
	}
}

void core_node_describe(struct slu_core *c, struct node *n)
{
	const struct slu_config *cfg = c->cfg;
	const struct slu_knode *k = n->k;
	struct slu_amount total[AMOUNTS_MAX];
	const char *domain[SLU_LEVELS_MAX], *prop[16];
	struct slu_node_spec spec = { .name = n->name,
				      .total = total,
				      .domain = domain,
				      .tag = (uintptr_t)n,
				      .down = k->ready != SLU_TRI_TRUE,
				      .cordoned = k->unschedulable };
	struct slu_event ev = { .kind = SLU_EV_NODE_ADD, .node_spec = &spec, .property = prop };

	for (uint16_t i = 0; i < k->nallocatable && spec.n_total < AMOUNTS_MAX; i++) {
		int kind = k->allocatable[i].amount > 0 ? node_kind(c, k->allocatable[i].name)
							: -ENOENT;

		if (kind >= 0)
			total[spec.n_total++] = (struct slu_amount){
				(uint32_t)kind, SLU_MIN(k->allocatable[i].amount, SLU_AMOUNT_MAX)
			};
	}
	for (uint32_t i = 0; i < c->cluster->port.n && spec.n_total < AMOUNTS_MAX; i++)
		total[spec.n_total++] = (struct slu_amount){ c->cluster->port.p[i].kind, 1 };
	spec.n_domain = SLU_MIN(cfg->nodes.n_levels, SLU_LEVELS_MAX);
	for (uint32_t i = 0; i < spec.n_domain; i++) {
		domain[i] = slu_kmeta_label(&k->o.meta, cfg->nodes.level[i].label);
		if (domain[i] && !*domain[i])
			domain[i] = NULL;
	}
	for (uint32_t i = 0; i < cfg->n_queues && ev.n_property < SLU_LEN(prop); i++)
		if (*cfg->queue[i].node_label && has_label(k, cfg->queue[i].node_label))
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

static void remove_from_machine(struct slu_core *c, struct node *n)
{
	struct slu_event ev = { .kind = SLU_EV_NODE_REMOVE, .node = n->handle };

	if (n->handle == SLU_NODE_NONE)
		return;
	for (uint32_t i = 0; i < n->pod.n; i++)
		core_foreign_remove(c, n->pod.p[i]);
	if (n->drained)
		core_node_drain(c, n, false);
	n->drained = false;
	core_apply(c, &ev);
	n->handle = SLU_NODE_NONE;
}

static void set_down(struct slu_core *c, struct node *n, bool was, bool is)
{
	struct slu_event ev = { .kind = is ? SLU_EV_NODE_DOWN : SLU_EV_NODE_UP, .node = n->handle };

	if (was != is)
		core_apply(c, &ev);
}

/* What placement looks at is the same in both. */
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
	bool was_down;

	if (!n)
		return CORE_NODE_SAME;
	old = n->k;
	was_down = old && old->ready != SLU_TRI_TRUE;
	n->k = now ? slu_knode(slu_kobj_ref(obj)) : NULL;
	if (old && now && same_for_us(old, now)) {
		slu_kobj_unref(&old->o);
		return CORE_NODE_SAME; /* a heartbeat */
	}
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
		set_down(c, n, was_down, now->ready != SLU_TRI_TRUE);
	}
	if (old)
		slu_kobj_unref(&old->o);
	return news;
}

void core_nodes_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL), *next; e; e = next) {
		struct node *n = node_of(e);

		next = slu_table_next(&c->cluster->nodes, e);
		if (n->k)
			slu_kobj_unref(&n->k->o);
		slu_vec_done(&n->pod);
		slu_free(n->name);
		slu_free(n);
	}
	slu_table_done(&c->cluster->nodes);
}
