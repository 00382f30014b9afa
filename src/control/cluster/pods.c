/* Pods of all schedulers. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#include "control/rules/life.h"

/* ---- what a pod's group is read from ---- */

void core_source(struct slu_core *c, const struct slu_kpod *k, struct slu_group_source *out)
{
	const struct slu_kmeta *m = &k->o.meta;

	*out = (struct slu_group_source){ .pod = k };
	while (out->n_owners < SLU_GROUP_OWNERS) {
		const struct slu_kowner *o = slu_kmeta_controller(m);
		const struct slu_kobj *obj = o ? core_owner(c, m->ns, o->uid) : NULL;

		if (!obj)
			return;
		out->owner[out->n_owners++] = obj;
		m = &obj->meta;
	}
}

/* ---- pods ---- */

bool core_binds(const struct slu_core *c, const struct slu_kpod *k)
{
	for (uint32_t i = 0; i < c->cfg->scheduler_names.n; i++)
		if (!strcmp(k->spec.scheduler, c->cfg->scheduler_names.p[i]))
			return true;
	return false;
}

const char *core_pod_at(const struct pod *p)
{
	if (*p->k->spec.node)
		return p->k->spec.node;
	return p->binds || p->stand || !p->vouched ? NULL : slu_held_node(p->k);
}

bool core_pod_startable(const struct pod *p)
{
	return !*p->k->spec.node && slu_held_free(&p->k->spec) && !p->k->o.meta.deleted_us &&
	       !p->leaving && !slu_kpod_ended(p->k) && (p->binds || slu_held_gated(&p->k->spec));
}

bool core_pod_stuck(const struct pod *p)
{
	return *p->k->spec.node && *p->k->waits && p->k->phase == SLU_PHASE_PENDING;
}

const char *core_pod_uid(const struct pod *p)
{
	return p->stand ? p->stand_key : p->k->o.meta.uid;
}

void core_stand_key(char *buf, size_t n, const char *job, uint32_t i)
{
	snprintf(buf, n, "%.80s#%u", job, i);
}

struct pod *core_pod_new(struct slu_core *c, const struct slu_kpod *k)
{
	struct pod *p = slu_calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->k = slu_kpod(slu_kobj_ref(&k->o));
	p->serial = ++c->serial;
	p->binds = core_binds(c, k);
	/* While Sluice runs it knows of every pod before releasing it; after a start the store has
	 * to confirm the release. */
	p->vouched = !c->recovered;
	p->managed = p->binds || slu_held_gated(&k->spec) || (p->vouched && slu_held_node(k));
	p->e.key = k->o.meta.uid; /* pooled: the same text as long as a version of it is held */
	p->e.n = strlen(k->o.meta.uid);
	if (slu_table_add(&c->cluster->pods, &p->e) < 0) {
		slu_kobj_unref(&p->k->o);
		slu_free(p);
		return NULL;
	}
	if (p->managed)
		core_pod_carries(c, p);
	return p;
}

void core_pod_carries(struct slu_core *c, struct pod *p)
{
	/* If memory is short, the terms are read again when the pod gets its shape. */
	(void)core_repels_carried(c, &p->k->o, &p->carries);
}

bool core_pod_clashes(struct slu_core *c, struct node *n, const struct pod *p)
{
	return core_ports_clash(c, n, p) || core_repels_clash(c, n, p) ||
	       core_claims_taken(c, p->k, p->node) || core_volumes_full(c, n, p->k, true) ||
	       core_zones_full(n, p);
}

void core_pod_free(struct slu_core *c, struct pod *p)
{
	slu_table_del(&c->cluster->pods, &p->e);
	core_shape_put(c, p->shape);
	core_repels_put(c, &p->carries);
	slu_kobj_unref(&p->k->o);
	slu_free(p->sent_to);
	slu_free(p);
}

void core_pods_done(struct slu_core *c)
{
	for (struct slu_entry *e = slu_table_next(&c->cluster->pods, NULL), *next; e; e = next) {
		struct pod *p = pod_of(e);

		next = slu_table_next(&c->cluster->pods, e);
		while (p->repels.n)
			core_repel_unref(c, p->repels.p[--p->repels.n].repel);
		slu_vec_done(&p->repels);
		core_shape_put(c, p->shape);
		core_repels_put(c, &p->carries);
		slu_kobj_unref(&p->k->o);
		slu_free(p->sent_to);
		slu_free(p);
	}
	slu_table_done(&c->cluster->pods);
}
