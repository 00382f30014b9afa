/* NUMA zones: where the kubelet keeps a pod within one zone of its node, or refuses it.
 *
 * A kubelet whose topology manager has the policy single-numa-node (or restricted) refuses a pod of QoS
 * class Guaranteed with whole cpus (SLU_POD_PINS_CPUS) with a TopologyAffinityError if no zone has room for
 * it.  Zones and policy are read from the node's NodeResourceTopology or, where there is none, from
 * labels of the node; nodes without either take such pods like all others.
 *
 * Three things keep such a pod from being refused:
 *   - Nodes no zone of which could take it, were it empty, are not eligible.
 *   - Nodes with equal zones share a resource, SHARE for each zone.  If N slots fit on such a
 *     node, zone by zone, each takes N-th part of all its shares.  So plans count zones over time.  For slots
 *     of one size that is exact.
 *   - Slots of several sizes may leave gaps in every zone that are large enough only together.  So each
 *     pod on a node is noted in a zone, the lowest that has room, as the kubelet chooses, and stays
 *     there; a decision that finds no zone is taken back (core_pod_clashes()).
 */
#include "control/cluster/cluster.h"

#include <stdio.h>

#define SHARE     INT64_C(1000000)
#define UNLIMITED (INT64_C(1) << 30) /* shares of nodes with other zones, or none */

#define LABEL_ZONES  "topology.sluice.sh/numa-zones"
#define LABEL_POLICY "topology.sluice.sh/numa-policy"

static bool is_zone(const struct slu_kzone *z)
{
	return !strcmp(z->type, "Node");
}

static uint32_t zones_listed(const struct slu_ktopology *t)
{
	uint32_t n = 0;

	for (uint16_t i = 0; i < t->nzones; i++)
		n += is_zone(&t->zones[i]);
	return n;
}

static const struct slu_kzone *zone_at(const struct slu_ktopology *t, uint32_t z)
{
	for (uint16_t i = 0; i < t->nzones; i++)
		if (is_zone(&t->zones[i]) && !z--)
			return &t->zones[i];
	return NULL;
}

static enum zone_policy policy_named(const char *s)
{
	if (!strcmp(s, "single-numa-node") || !strncmp(s, "SingleNUMANode", 14))
		return ZONES_SINGLE;
	if (!strcmp(s, "restricted") || !strncmp(s, "Restricted", 10))
		return ZONES_RESTRICTED;
	return ZONES_FREE;
}

static enum zone_policy policy_of(const struct slu_ktopology *t)
{
	for (uint16_t i = 0; i < t->nattributes; i++)
		if (!strcmp(t->attributes[i].key, "topologyManagerPolicy"))
			return policy_named(t->attributes[i].value);
	return t->npolicies ? policy_named(t->policies[0]) : ZONES_FREE;
}

/* Zones of the node that bind pods; 0: none do. */
static uint32_t zones_of(const struct node *n, enum zone_policy *policy)
{
	const char *count = n->k ? slu_kmeta_label(&n->k->o.meta, LABEL_ZONES) : NULL;
	const char *said = n->k ? slu_kmeta_label(&n->k->o.meta, LABEL_POLICY) : NULL;
	uint32_t z = 0;

	*policy = ZONES_FREE;
	if (n->topology) {
		z = zones_listed(n->topology);
		*policy = policy_of(n->topology);
	} else if (count && said) {
		z = (uint32_t)strtoul(count, NULL, 10);
		*policy = policy_named(said);
	}
	return *policy != ZONES_FREE && z >= 2 && z <= CORE_ZONES_MAX ? z : 0;
}

/* Whether zones tell how much of the resource they have. */
static bool is_zoned(const struct node *n, const char *name)
{
	if (!n->topology)
		return !strcmp(name, "cpu") || !strcmp(name, "memory");
	for (uint16_t i = 0; i < n->topology->nzones; i++) {
		const struct slu_kzone *z = &n->topology->zones[i];

		for (uint16_t k = 0; is_zone(z) && k < z->nallocatable; k++)
			if (!strcmp(z->allocatable[k].name, name))
				return true;
	}
	return false;
}

/* Where only labels describe a node, its zones are taken to be equal parts of it with whole
 * processors. */
static int64_t amount_in(const struct node *n, uint32_t zones, uint32_t z, const char *name)
{
	const struct slu_kzone *zone = n->topology ? zone_at(n->topology, z) : NULL;
	int64_t all;

	if (n->topology)
		return zone ? slu_kamount_get(zone->allocatable, zone->nallocatable, name) : 0;
	all = slu_kamount_get(n->k->allocatable, n->k->nallocatable, name);
	return strcmp(name, "cpu") ? all / zones : all / 1000 / zones * 1000;
}

static bool pins(const struct slu_kpodspec *s)
{
	return s->flags & SLU_POD_PINS_CPUS;
}

/* ---- one node now ---- */

/* Whether zone z has room for the pod beside the pods noted there; `empty`: as if none were. */
static bool fits_in(const struct node *n, uint32_t zones, uint32_t z, const struct slu_kpodspec *s,
		    const struct pod *self, bool empty)
{
	for (uint16_t i = 0; i < s->nrequests; i++) {
		const char *name = s->requests[i].name;
		int64_t have;

		if (!is_zoned(n, name))
			continue;
		have = amount_in(n, zones, z, name);
		for (uint32_t k = 0; !empty && k < n->pod.n; k++) {
			const struct pod *p = n->pod.p[k];

			if (p != self && p->zone == z + 1)
				have -= slu_kamount_get(p->k->spec.requests, p->k->spec.nrequests,
							name);
		}
		if (have < s->requests[i].amount)
			return false;
	}
	return true;
}

/* The lowest zone that has room for the pod, plus one; 0: none has. */
static uint8_t zone_for(const struct node *n, const struct slu_kpodspec *s, const struct pod *self,
			bool empty)
{
	enum zone_policy policy;
	uint32_t zones = zones_of(n, &policy);

	for (uint32_t z = 0; z < zones; z++)
		if (fits_in(n, zones, z, s, self, empty))
			return (uint8_t)(z + 1);
	return 0;
}

bool core_zones_allow(const struct node *n, const struct slu_kpodspec *s)
{
	enum zone_policy policy;

	if (!pins(s) || !zones_of(n, &policy) || policy == ZONES_RESTRICTED)
		return true; /* a restricted pod that needs several zones may have them */
	return zone_for(n, s, NULL, true);
}

bool core_zones_full(const struct node *n, const struct pod *p)
{
	const struct slu_kpodspec *s = &p->k->spec;
	enum zone_policy policy;

	if (!pins(s) || !zones_of(n, &policy) || (p->node == n && p->zone))
		return false;
	if (policy == ZONES_RESTRICTED && !zone_for(n, s, NULL, true))
		return false;
	return !zone_for(n, s, p, false);
}

void core_zones_enter(const struct node *n, struct pod *p)
{
	p->zone = pins(&p->k->spec) ? zone_for(n, &p->k->spec, p, false) : 0;
}

/* ---- kinds: nodes with equal zones ---- */

static bool read_zoning(const struct node *n, struct zoning *out)
{
	enum zone_policy policy;

	*out = (struct zoning){ .n = zones_of(n, &policy), .resource = -1 };
	for (uint32_t z = 0; z < out->n; z++)
		out->cpu[z] = amount_in(n, out->n, z, "cpu");
	return out->n;
}

static const struct zoning *zoning_of(const struct slu_core *c, const struct node *n)
{
	struct zoning want;

	if (!c->cluster->zoning.n || !read_zoning(n, &want))
		return NULL;
	for (uint32_t i = 0; i < c->cluster->zoning.n; i++) {
		const struct zoning *z = &c->cluster->zoning.p[i];

		if (z->n == want.n && !memcmp(z->cpu, want.cpu, want.n * sizeof *want.cpu))
			return z;
	}
	return NULL;
}

/* What a slot takes of the shares of nodes with these zones; rounded down, so that `fit` slots fit. */
static int64_t shares(const struct zoning *z, const struct slu_kpodspec *s)
{
	int64_t cpu = slu_kamount_get(s->requests, s->nrequests, "cpu"), fit = 0;

	for (uint32_t i = 0; cpu > 0 && i < z->n; i++)
		fit += z->cpu[i] / cpu;
	return fit ? z->n * SHARE / fit : z->n * SHARE;
}

static bool name_zoning(struct slu_core *c, struct zoning *z)
{
	char text[200] = "NUMA zones of ";

	for (uint32_t i = 0; i < z->n; i++) {
		size_t at = strlen(text);

		snprintf(text + at, sizeof text - at, "%s%" PRId64, i ? "+" : "", z->cpu[i] / 1000);
	}
	snprintf(text + strlen(text), sizeof text - strlen(text), " cpu");
	z->resource = slu_queue_resource(c->q, text);
	return z->resource >= 0 && slu_vec_push(&c->cluster->zoning, *z) == 0;
}

bool core_zones_want(struct slu_core *c, const struct slu_kpodspec *s)
{
	bool news = false;

	if (!pins(s) || !c->cluster->zones_changed)
		return false;
	c->cluster->zones_changed = false;
	for (struct slu_entry *e = slu_table_next(&c->cluster->nodes, NULL);
	     e && c->cluster->zoning.n < CORE_ZONINGS_MAX;
	     e = slu_table_next(&c->cluster->nodes, e)) {
		struct zoning z;

		if (node_of(e)->handle != SLU_NODE_NONE && read_zoning(node_of(e), &z) &&
		    !zoning_of(c, node_of(e)))
			news |= name_zoning(c, &z);
	}
	return news;
}

uint32_t core_zones_amounts(const struct slu_core *c, const struct slu_kpodspec *s,
			    struct slu_amount out[CORE_ZONINGS_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; pins(s) && i < c->cluster->zoning.n; i++)
		out[n++] = (struct slu_amount){ (uint32_t)c->cluster->zoning.p[i].resource,
						shares(&c->cluster->zoning.p[i], s) };
	return n;
}

bool core_zones_taken(const struct slu_core *c, const struct pod *p, struct slu_amount *out)
{
	const struct zoning *z = pins(&p->k->spec) && p->node ? zoning_of(c, p->node) : NULL;

	if (z)
		*out = (struct slu_amount){ (uint32_t)z->resource, shares(z, &p->k->spec) };
	return z;
}

int64_t core_zones_total(const struct slu_core *c, const struct node *n, const struct zoning *z)
{
	return zoning_of(c, n) == z ? z->n * SHARE : UNLIMITED;
}

bool core_zones_stale(const struct slu_core *c, const struct pod *p)
{
	uint32_t had = 0;

	for (uint32_t i = 0; i < c->cluster->zoning.n; i++)
		for (uint32_t k = 0; k < p->shape->n_need; k++)
			had += (int)p->shape->need[k].resource == c->cluster->zoning.p[i].resource;
	return pins(&p->k->spec) && (c->cluster->zones_changed || had != c->cluster->zoning.n);
}

bool core_zones_same(const struct slu_ktopology *a, const struct slu_ktopology *b)
{
	if (zones_listed(a) != zones_listed(b) || policy_of(a) != policy_of(b))
		return false;
	for (uint32_t z = 0; z < zones_listed(a); z++) {
		const struct slu_kzone *x = zone_at(a, z), *y = zone_at(b, z);

		if (x->nallocatable != y->nallocatable)
			return false;
		for (uint16_t i = 0; i < x->nallocatable; i++)
			if (strcmp(x->allocatable[i].name, y->allocatable[i].name) ||
			    x->allocatable[i].amount != y->allocatable[i].amount)
				return false;
	}
	return true;
}
