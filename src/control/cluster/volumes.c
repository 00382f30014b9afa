/* Volumes: how many may be attached to a node, and claims that one pod at a time may use.
 *
 * Limits.  A CSINode says how many volumes of a driver its node takes.  Attached are the volumes of all
 * pods on the node and those of its VolumeAttachments, each volume once, as for the default scheduler
 * (its plugin NodeVolumeLimits).  In the books a driver is a resource: a slot takes as many as
 * its pod has volumes of the driver, and a node has
 *
 *	limit - volumes attached + what the slots of the pods on the node have taken
 *
 * so that the limit less the volumes attached is free, whichever scheduler placed the pods and however
 * many pods share a volume.  Only drivers that some CSINode limits and that a pod of ours asks for are counted.
 *
 * ReadWriteOncePod.  While a pod on a node uses a claim with that mode, no other pod may use it on any
 * node. */
#include "control/cluster/cluster.h"

#include <stdio.h>

#include "base/map.h"

#define NAMED_MAX 64u       /* drivers that are remembered */
#define UNLIMITED (1 << 30) /* volumes on a node that names no limit */

struct volume {
	const char *driver, *handle;
	const char *ns; /* of a claim that is not bound yet: then the handle is its name */
};

struct volumes {
	struct volume *p;
	uint32_t n, cap;
};

static bool is_same(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

static bool same_volume(const struct volume *a, const struct volume *b)
{
	return is_same(a->driver, b->driver) && is_same(a->handle, b->handle) &&
	       is_same(a->ns, b->ns);
}

static bool volume_of(struct slu_core *c, const char *ns, const char *name, struct volume *out)
{
	const struct slu_kobj *o = core_lookup(c, SLU_KIND_PVC, ns, name);
	const struct slu_kpvc *claim = o ? slu_kpvc(o) : NULL;

	if (!claim)
		return false;
	o = *claim->volume ? core_lookup(c, SLU_KIND_PV, "", claim->volume) : NULL;
	if (o) {
		*out = (struct volume){ slu_kpv(o)->driver, slu_kpv(o)->handle, "" };
		return *out->driver && *out->handle;
	}
	o = core_lookup(c, SLU_KIND_STORAGECLASS, "", claim->storage_class);
	if (!o || !*slu_kstorageclass(o)->provisioner)
		return false;
	*out = (struct volume){ slu_kstorageclass(o)->provisioner, name, ns };
	return true;
}

/* If memory is short the volume is not counted until the node is counted again. */
static void add_volume(struct volumes *v, const struct volume *x)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (same_volume(&v->p[i], x))
			return;
	(void)slu_vec_push(v, *x);
}

/* The pod's volumes of the driver; NULL: of all. */
static void add_pod(struct slu_core *c, const struct slu_kpod *k, const char *driver,
		    struct volumes *v)
{
	struct volume x;

	for (uint16_t i = 0; i < k->spec.nclaims; i++)
		if (volume_of(c, k->o.meta.ns, k->spec.claims[i], &x) &&
		    (!driver || is_same(x.driver, driver)))
			add_volume(v, &x);
}

/* ---- drivers ---- */

static struct driver *driver_named(struct slu_core *c, const char *name)
{
	for (uint32_t i = 0; i < c->cluster->driver.n; i++)
		if (!strcmp(c->cluster->driver.p[i].name, name))
			return &c->cluster->driver.p[i];
	return NULL;
}

bool core_driver_remember(struct slu_core *c, const char *name)
{
	struct driver d = { .resource = -1 };

	if (driver_named(c, name) || c->cluster->driver.n >= NAMED_MAX)
		return false;
	d.name = slu_strdup(name);
	if (!d.name || slu_vec_push(&c->cluster->driver, d) < 0) {
		slu_free(d.name);
		return false;
	}
	return true;
}

static int64_t limit_on(const struct node *n, const char *driver)
{
	for (uint16_t i = 0; n->csi && i < n->csi->ndrivers; i++)
		if (!strcmp(n->csi->drivers[i].name, driver))
			return n->csi->drivers[i].count;
	return SLU_KNONE;
}

bool core_volumes_want(struct slu_core *c, const struct slu_kpod *k)
{
	struct volumes v = { 0 };
	uint32_t counted = 0;
	bool news = false;

	add_pod(c, k, NULL, &v);
	for (uint32_t i = 0; i < c->cluster->driver.n; i++)
		counted += c->cluster->driver.p[i].resource >= 0;
	for (uint32_t i = 0; i < v.n && counted < CORE_DRIVERS_MAX; i++) {
		struct driver *d = driver_named(c, v.p[i].driver);
		char text[300];

		if (!d || d->resource >= 0)
			continue;
		snprintf(text, sizeof text, "volumes of %.250s", d->name);
		d->resource = slu_queue_resource(c->q, text);
		counted += d->resource >= 0;
		news |= d->resource >= 0;
	}
	slu_vec_done(&v);
	return news;
}

uint32_t core_volumes_amounts(struct slu_core *c, const struct slu_kpod *k,
			      struct slu_amount out[CORE_DRIVERS_MAX])
{
	struct volumes v = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; k->spec.nclaims && i < c->cluster->driver.n; i++) {
		const struct driver *d = &c->cluster->driver.p[i];

		if (d->resource < 0)
			continue;
		v.n = 0;
		add_pod(c, k, d->name, &v);
		if (v.n && n < CORE_DRIVERS_MAX)
			out[n++] = (struct slu_amount){ (uint32_t)d->resource, v.n };
	}
	slu_vec_done(&v);
	return n;
}

static int64_t taken_of(const struct shape *s, int resource)
{
	for (uint32_t i = 0; i < s->n_need; i++)
		if ((int)s->need[i].resource == resource)
			return s->need[i].n;
	return 0;
}

bool core_volumes_stale(struct slu_core *c, const struct pod *p)
{
	struct slu_amount now[CORE_DRIVERS_MAX];
	uint32_t n = core_volumes_amounts(c, p->k, now), same = 0, had = 0;

	for (uint32_t i = 0; i < c->cluster->driver.n; i++)
		had += c->cluster->driver.p[i].resource >= 0 &&
		       taken_of(p->shape, c->cluster->driver.p[i].resource) > 0;
	for (uint32_t i = 0; i < n; i++)
		same += taken_of(p->shape, (int)now[i].resource) == now[i].n;
	return same != n || had != n;
}

/* ---- what is attached ---- */

static void add_attached(struct slu_core *c, const struct node *n, const char *driver,
			 struct volumes *v)
{
	for (uint32_t i = 0; i < n->pod.n; i++)
		add_pod(c, n->pod.p[i]->k, driver, v);
	for (uint32_t i = 0; i < n->attached.n; i++) {
		const struct slu_kattachment *a = slu_kattachment(n->attached.p[i]);
		const struct slu_kobj *o = *a->volume ? core_lookup(c, SLU_KIND_PV, "", a->volume)
						      : NULL;

		if (o && is_same(slu_kpv(o)->driver, driver))
			add_volume(v,
				   &(struct volume){ slu_kpv(o)->driver, slu_kpv(o)->handle, "" });
	}
}

int64_t core_volumes_total(struct slu_core *c, const struct node *n, const struct driver *d)
{
	int64_t limit = limit_on(n, d->name), total;
	struct volumes v = { 0 };

	if (limit < 0)
		return UNLIMITED;
	add_attached(c, n, d->name, &v);
	total = limit - v.n;
	for (uint32_t i = 0; i < n->pod.n; i++)
		if (n->pod.p[i]->run && n->pod.p[i]->shape)
			total += taken_of(n->pod.p[i]->shape, d->resource);
	slu_vec_done(&v);
	return SLU_MAX(total, 0);
}

bool core_volumes_full(struct slu_core *c, const struct node *n, const struct slu_kpod *k,
		       bool counted)
{
	struct volumes own = { 0 }, v = { 0 };
	bool full = false;

	add_pod(c, k, NULL, &own);
	for (uint32_t i = 0; i < own.n && !full; i++) {
		const struct driver *d = driver_named(c, own.p[i].driver);
		int64_t limit = d ? limit_on(n, d->name) : SLU_KNONE;

		if (limit < 0 || (!counted && d->resource >= 0))
			continue;
		v.n = 0;
		add_attached(c, n, d->name, &v);
		add_pod(c, k, d->name, &v);
		full = v.n > limit;
	}
	slu_vec_done(&own);
	slu_vec_done(&v);
	return full;
}

bool core_volumes_beyond(const struct slu_core *c)
{
	for (uint32_t i = 0; i < c->cluster->driver.n; i++)
		if (c->cluster->driver.p[i].resource < 0)
			return true;
	return false;
}

void core_volumes_recount(struct slu_core *c, struct node *n)
{
	if (n->recount || !c->cluster->driver.n)
		return;
	n->recount = slu_vec_push(&c->cluster->recount, n) == 0;
}

/* ---- claims that one pod at a time may use ---- */

bool core_claim_is_once(struct slu_core *c, const char *ns, const char *claim)
{
	const struct slu_kobj *o = core_lookup(c, SLU_KIND_PVC, ns, claim);

	for (uint16_t i = 0; o && i < slu_kpvc(o)->naccess_modes; i++)
		if (!strcmp(slu_kpvc(o)->access_modes[i], "ReadWriteOncePod"))
			return true;
	return false;
}

bool core_claim_key(char out[CORE_CLAIM_KEY], const char *ns, const char *claim)
{
	int n = snprintf(out, CORE_CLAIM_KEY, "%s/%s", ns, claim);

	return n > 0 && n < CORE_CLAIM_KEY;
}

struct claim_use *core_claim_use(struct slu_core *c, const char *ns, const char *claim)
{
	char key[CORE_CLAIM_KEY];
	struct slu_entry *e = core_claim_key(key, ns, claim)
				      ? slu_table_finds(&c->cluster->claims_used, key)
				      : NULL;

	return e ? slu_entry_of(e, struct claim_use, e) : NULL;
}

bool core_claims_taken(struct slu_core *c, const struct slu_kpod *k, bool placed)
{
	for (uint16_t i = 0; i < k->spec.nclaims; i++) {
		const struct claim_use *u = core_claim_use(c, k->o.meta.ns, k->spec.claims[i]);

		if (u && u->pods > (placed ? 1u : 0u) &&
		    core_claim_is_once(c, k->o.meta.ns, k->spec.claims[i]))
			return true;
	}
	return false;
}

/* The first of the pod's claims for one pod only that an earlier pod uses.  Its own are noted as used by
 * pod number `at`, unless it shares one.  Names are pooled: equal names are equal pointers. */
static const char *note_claims(struct slu_core *c, struct slu_map *seen, const struct pod *p,
			       uint32_t at, uint64_t *earlier)
{
	const struct slu_kpodspec *s = &p->k->spec;

	for (uint16_t i = 0; i < s->nclaims; i++) {
		const uint64_t *who = slu_map_get(seen, (uintptr_t)s->claims[i]);

		if (who) {
			*earlier = *who;
			return s->claims[i];
		}
	}
	for (uint16_t i = 0; i < s->nclaims; i++)
		if (core_claim_is_once(c, p->k->o.meta.ns, s->claims[i]))
			(void)slu_map_put(seen, (uintptr_t)s->claims[i], at);
	return NULL;
}

const char *core_claim_alone(struct slu_core *c, const struct pod *p)
{
	const struct slu_kpodspec *s = &p->k->spec;

	for (uint16_t i = 0; i < s->nclaims; i++)
		if (core_claim_is_once(c, p->k->o.meta.ns, s->claims[i]))
			return s->claims[i];
	return NULL;
}

uint32_t core_claims_once(struct slu_core *c, struct pod **pod, uint32_t n,
			  struct core_shared_claim *shared)
{
	struct slu_map seen = { 0 };
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t earlier = 0;
		const char *claim = note_claims(c, &seen, pod[i], kept, &earlier);

		if (claim && shared)
			*shared = (struct core_shared_claim){ claim, pod[earlier], pod[i] };
		if (!claim)
			pod[kept++] = pod[i];
	}
	slu_map_done(&seen);
	return kept;
}
