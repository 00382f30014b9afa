/* What changes about the inside of nodes: volumes that pods bring and take away, CSINodes and
 * VolumeAttachments (volumes.c), NUMA zones (zones.c). */
#include "control/cluster/cluster.h"

/* ---- volumes ---- */

/* Whether the queue has other totals. */
static bool totals_differ(struct slu_core *c, const struct node *n)
{
	const struct slu_machine *m = slu_queue_machine(c->q);

	for (uint32_t i = 0; i < c->cluster->driver.n; i++) {
		const struct driver *d = &c->cluster->driver.p[i];

		if (d->resource >= 0 &&
		    slu_machine_node_total(m, n->handle, (uint32_t)d->resource) !=
			    core_volumes_total(c, n, d))
			return true;
	}
	return false;
}

void core_volumes_count(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->cluster->recount.n; i++) {
		struct node *n = c->cluster->recount.p[i];

		n->recount = false;
		if (n->handle == SLU_NODE_NONE || !n->k)
			continue;
		core_shapes_node(c, n); /* drivers that have no resource */
		if (totals_differ(c, n))
			core_node_describe(c, n);
	}
	c->cluster->recount.n = 0;
}

bool core_csinode_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct node *n = core_node(c, obj->meta.name);
	bool news = false;

	if (!n)
		return false;
	if (n->csi)
		slu_kobj_unref(&n->csi->o);
	n->csi = gone ? NULL : slu_kcsinode(slu_kobj_ref(obj));
	for (uint16_t i = 0; n->csi && i < n->csi->ndrivers; i++)
		if (n->csi->drivers[i].count >= 0)
			news |= core_driver_remember(c, n->csi->drivers[i].name);
	core_volumes_recount(c, n);
	return news;
}

static void detach_volume(struct slu_core *c, struct node *n, const char *uid)
{
	for (uint32_t i = 0; i < n->attached.n; i++)
		if (!strcmp(n->attached.p[i]->meta.uid, uid)) {
			slu_kobj_unref(n->attached.p[i]);
			n->attached.p[i] = n->attached.p[--n->attached.n];
			core_volumes_recount(c, n);
			return;
		}
}

void core_attachment_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct node *n = core_node(c, slu_kattachment(obj)->node);

	if (!n)
		return;
	detach_volume(c, n, obj->meta.uid);
	if (!gone && slu_vec_push(&n->attached, obj) == 0)
		slu_kobj_ref(obj);
	core_volumes_recount(c, n);
}

static void use_claim(struct slu_core *c, const char *ns, const char *claim)
{
	struct claim_use *u = core_claim_use(c, ns, claim);
	char key[CORE_CLAIM_KEY];

	if (!u && core_claim_key(key, ns, claim)) {
		u = slu_calloc(1, sizeof *u);
		if (u)
			u->key = slu_strdup(key);
		if (!u || !u->key) {
			slu_free(u);
			return;
		}
		u->e.key = u->key;
		u->e.n = strlen(key);
		if (slu_table_add(&c->cluster->claims_used, &u->e) < 0) {
			slu_free(u->key);
			slu_free(u);
			return;
		}
	}
	if (u && !u->pods++ && core_claim_is_once(c, ns, claim))
		core_shapes_claim(c, ns, claim);
}

static void free_use(struct slu_core *c, struct claim_use *u)
{
	slu_table_del(&c->cluster->claims_used, &u->e);
	slu_free(u->key);
	slu_free(u);
}

static void leave_claim(struct slu_core *c, const char *ns, const char *claim)
{
	struct claim_use *u = core_claim_use(c, ns, claim);

	if (!u || --u->pods)
		return;
	free_use(c, u);
	if (core_claim_is_once(c, ns, claim))
		core_shapes_claim(c, ns, claim);
}

void core_volumes_enter(struct slu_core *c, struct node *n, const struct pod *p)
{
	const struct slu_kpod *k = p->k;

	for (uint16_t i = 0; i < k->spec.nclaims; i++)
		use_claim(c, k->o.meta.ns, k->spec.claims[i]);
	if (k->spec.nclaims)
		core_volumes_recount(c, n);
}

void core_volumes_leave(struct slu_core *c, struct node *n, const struct pod *p)
{
	const struct slu_kpod *k = p->k;

	for (uint16_t i = 0; i < k->spec.nclaims; i++)
		leave_claim(c, k->o.meta.ns, k->spec.claims[i]);
	if (k->spec.nclaims)
		core_volumes_recount(c, n);
}

void core_volumes_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->claims_used, NULL), *next; e;
	     e = next) {
		next = slu_table_next(&c->cluster->claims_used, e);
		free_use(c, slu_entry_of(e, struct claim_use, e));
	}
	slu_table_done(&c->cluster->claims_used);
	for (uint32_t i = 0; i < c->cluster->driver.n; i++)
		slu_free(c->cluster->driver.p[i].name);
	slu_vec_done(&c->cluster->driver);
	slu_vec_done(&c->cluster->recount);
	slu_vec_done(&c->cluster->look);
}

/* ---- zones ---- */

void core_zones_changed(struct slu_core *c, struct node *n)
{
	c->cluster->zones_changed = true;
	for (uint32_t i = 0; i < n->pod.n; i++)
		n->pod.p[i]->zone = 0;
	for (uint32_t i = 0; i < n->pod.n; i++) {
		struct pod *p = n->pod.p[i];

		core_zones_enter(n, p);
		if (p->foreign && p->k->spec.flags & SLU_POD_PINS_CPUS) {
			core_foreign_remove(c, p);
			core_foreign_add(c, p);
		}
	}
}

bool core_topology_changed(struct slu_core *c, const struct slu_kobj *obj, bool gone)
{
	struct node *n = core_node(c, obj->meta.name);
	const struct slu_ktopology *old, *now = gone ? NULL : slu_ktopology(obj);
	bool same;

	if (!n)
		return false;
	old = n->topology;
	same = (!old && !now) || (old && now && core_zones_same(old, now));
	n->topology = now ? slu_ktopology(slu_kobj_ref(obj)) : NULL;
	if (old)
		slu_kobj_unref(&old->o);
	if (same || !n->k)
		return false; /* only free amounts differ, written after every pod */
	core_zones_changed(c, n);
	if (n->handle != SLU_NODE_NONE) {
		core_shapes_node(c, n);
		core_node_describe(c, n);
	}
	return true;
}
