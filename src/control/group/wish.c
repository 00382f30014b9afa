/* Read what a group asks for from its members, owners and PodGroup, and report mistakes in it. */
#include "control/group/group.h"

#include <stdarg.h>
#include <stdio.h>

#include "control/cluster/cluster.h"

void core_group_wrong(struct slu_core *c, struct group *g, const char *fmt, ...)
{
	struct slu_error e;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.text, sizeof e.text, fmt, ap);
	va_end(ap);
	if (g->wrong && !strcmp(g->wrong, e.text))
		return;
	slu_free(g->wrong);
	g->wrong = slu_strdup(e.text);
	c->count.refused_objects++;
	slu_log(SLU_WARN, "group refused", SLU_STR("job", g->id.name), SLU_STR("ns", g->ns),
		SLU_STR("err", g->wrong));
	/* In a gang that runs as a whole every member has a place. */
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (!core_pod_at(g->pod.p[i])) {
			core_tell_maker(c, g->pod.p[i], "FailedScheduling", e.text);
			return;
		}
}

static bool waits_for_consumer(struct slu_core *c, const struct slu_kpvc *claim)
{
	const struct slu_kobj *o = core_lookup(c, SLU_KIND_STORAGECLASS, "", claim->storage_class);

	return o && slu_kstorageclass(o)->wait_for_consumer;
}

static bool claims_bound(struct slu_core *c, struct group *g, const struct pod *p)
{
	for (uint16_t i = 0; i < p->k->spec.nclaims; i++) {
		const struct slu_kobj *o = core_lookup(c, SLU_KIND_PVC, g->ns,
						       p->k->spec.claims[i]);

		/* The scheduler that binds the pod also chooses the volume. */
		if (o && !p->binds && waits_for_consumer(c, slu_kpvc(o)))
			continue;
		if (!o || !*slu_kpvc(o)->volume) {
			core_group_wrong(c, g, "pod %s: volume claim \"%s\" %s", p->k->o.meta.name,
					 p->k->spec.claims[i],
					 o ? "is not bound" : "does not exist");
			return false;
		}
	}
	return true;
}

/* Too long to be compared with those of others. */
static bool long_wishes(const struct slu_kpod *k)
{
	struct slu_buf b = SLU_BUF_INIT(SLU_REQUEST_MAX);
	bool yes = slu_request_where(k->o.meta.ns, &k->spec, &b) < 0;

	slu_buf_done(&b);
	return yes;
}

static bool wish_is_sound(struct slu_core *c, struct group *g, struct pod *p)
{
	const char *foreign = slu_predicate_foreign(&p->k->spec);
	struct slu_error err = { 0 };

	if (p->shape && core_shape_outdated(c, p)) {
		core_shape_put(c, p->shape);
		p->shape = NULL;
	}
	if (!p->shape)
		p->shape = core_shape_get(c, p);
	if (slu_request_check(p->k, CORE_AMOUNT_MAX, &err) < 0)
		core_group_wrong(c, g, "pod %s: %s", p->k->o.meta.name, err.text);
	else if (foreign && p->binds)
		core_group_wrong(
			c, g,
			"pod %s asks for %s, which only the default scheduler decides; give it "
			"schedulerName default-scheduler and hold it with the gate instead",
			p->k->o.meta.name, foreign);
	else if (!p->shape && core_repels_full(c, p->k))
		core_group_wrong(c, g,
				 "pod %s: its namespace, or all together, have more different "
				 "terms of required pod anti-affinity than Sluice can follow",
				 p->k->o.meta.name);
	else if (!p->shape && long_wishes(p->k))
		core_group_wrong(
			c, g,
			"pod %s: its node selector, affinity and tolerations take more than %u bytes",
			p->k->o.meta.name, SLU_REQUEST_MAX);
	else if (!p->shape)
		core_group_wrong(
			c, g,
			"pod %s asks for more kinds of resources that no node has than Sluice can count",
			p->k->o.meta.name);
	else
		return claims_bound(c, g, p);
	return false;
}

/* Members that need each other to start and share a claim for one pod only: the gang can never run. */
static bool shares_once(struct slu_core *c, struct group *g)
{
	struct core_shared_claim shared = { 0 };
	slu_cleanup(slu_freep) struct pod **pod = NULL;
	uint32_t n = 0, claims = 0, members = 0;

	for (uint32_t i = 0; i < g->pod.n; i++) {
		if (core_pod_at(g->pod.p[i]))
			return false; /* the group has begun: the others follow one by one */
		claims += g->pod.p[i]->k->spec.nclaims;
	}
	pod = claims ? slu_reallocarray(NULL, g->pod.n, sizeof *pod) : NULL;
	for (uint32_t i = 0; pod && i < g->pod.n; i++)
		if (core_pod_startable(g->pod.p[i]))
			pod[n++] = g->pod.p[i];
	n = pod ? core_claims_once(c, pod, n, &shared) : 0;
	for (uint32_t i = 0; i < n; i++) {
		const char *claim = pod[i]->others ? core_claim_alone(c, pod[i]) : NULL;

		if (claim)
			shared = (struct core_shared_claim){ claim, pod[i], pod[i] };
		members += claim ? 1 : 1 + pod[i]->others;
	}
	if (members >= g->life.asks || !shared.claim)
		return false;
	core_group_wrong(
		c, g,
		"pods %s and %s share volume claim \"%s\", which is ReadWriteOncePod: they can "
		"never run together",
		shared.first->k->o.meta.name, shared.second->k->o.meta.name, shared.claim);
	return true;
}

/* Report each pair of sizes once, however often the group is settled. */
static void tell_sizes(struct slu_core *c, struct group *g, struct pod *odd, uint32_t said)
{
	uint32_t least = odd->said_size;

	if (least != said && (g->told_least != least || g->told_most != said))
		core_tell(c, odd, "BadGroup", true,
			  "members of group %s name different sizes, %u and %u; the larger counts",
			  g->id.name, least, said);
	g->told_least = least;
	g->told_most = said;
}

/* The first member that stays: members that are leaving say nothing about the others. */
static const struct pod *spokesman(const struct group *g)
{
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (!g->pod.p[i]->leaving)
			return g->pod.p[i];
	return g->pod.p[0];
}

/* The size an annotation or PodGroup names; 0: none does. */
static uint32_t named_size(const struct slu_core *c, const struct group *g,
			   const struct slu_kpodgroup *pg, uint32_t said)
{
	if (pg && slu_kkind_is_native_group(pg->o.kind) && pg->min_member <= 0)
		return 1; /* the basic policy: each member for itself */
	if (!pg && g->id.explicit && said > g->wish.named_min && said <= c->cfg->jobs.max_size)
		return said;
	return g->wish.named_min;
}

/* Whether the Reservation that the group names exists and is not over; a gang that has started no longer needs
 * it. */
static bool uses_reservation(struct slu_core *c, struct group *g)
{
	const struct reservation *r;

	if (!*g->wish.reservation)
		return true;
	for (uint32_t i = 0; i < g->pod.n; i++)
		if (core_pod_at(g->pod.p[i]))
			return true;
	r = core_reservation(c, g->ns, g->wish.reservation);
	if (!r)
		core_group_wrong(c, g, "there is no Reservation \"%s\" in namespace %s",
				 g->wish.reservation, g->ns);
	else if (!strcmp(r->phase, "Ended") || !strcmp(r->phase, "Refused"))
		core_group_wrong(c, g, "Reservation \"%s\" %s", g->wish.reservation,
				 *r->phase == 'E' ? "is over" : "is refused; its status says why");
	else
		return true;
	return false;
}

void core_wish_set(struct group *g)
{
	if (g->has_priority)
		g->wish.priority = g->priority;
	if (g->limit_s)
		g->wish.duration_s = g->limit_s;
}

/* A queue must allow whole nodes: a gang that takes them uses more than a quota of processors
 * counts. */
static bool may_have_whole_nodes(const struct slu_core *c, const struct group *g)
{
	for (uint32_t i = 0; i < c->cfg->n_queues; i++)
		if (*g->wish.queue ? !strcmp(c->cfg->queue[i].name, g->wish.queue) : i == 0)
			return c->cfg->queue[i].exclusive;
	return true; /* there is no such queue: the queue reports that itself */
}

/* A misspelt key has no effect: tell the user so in one event. */
static void tell_stranger(struct slu_core *c, struct group *g, const struct slu_group_source *src)
{
	struct slu_error err = { 0 };

	if (g->keys_read)
		return;
	g->keys_read = true;
	if (slu_group_check_keys(src, &err) < 0)
		core_tell_maker(c, g->pod.p[0], "BadKey", err.text);
}

bool core_wish_read(struct slu_core *c, struct group *g)
{
	const struct pod *first = spokesman(g);
	struct slu_group_source src;
	struct slu_error err = { 0 };
	const struct slu_kpodgroup *pg = core_podgroup(c, g);
	struct pod *odd = NULL; /* the pod with the smallest size */
	uint32_t said = 0;

	core_source(c, first->k, &src);
	tell_stranger(c, g, &src);
	if (core_native_lacks(c, g)) { /* not wrong: it may be on its way */
		slu_free(g->wrong);
		g->wrong = NULL;
		return false;
	}
	if (slu_group_wish(&src, &g->id, pg, c->cfg->jobs.max_size, &g->wish, &err) < 0 ||
	    core_native_wish(c, pg, &g->wish, &err) < 0) {
		core_group_wrong(c, g, "%s", err.text);
		return false;
	}
	/* The server fills in the priority of a pod; where it has not, the PriorityClass gives it. */
	if (pg && *pg->priority_class && !pg->has_priority)
		g->wish.priority = core_priority(c, pg->priority_class);
	else if (!first->k->spec.has_priority && !(pg && pg->has_priority))
		g->wish.priority = core_priority(c, first->k->spec.priority_class);
	core_wish_set(g);
	if (*g->wish.level && slu_machine_level_find(slu_queue_machine(c->q), g->wish.level) < 0) {
		core_group_wrong(c, g, "no topology level \"%s\" is configured", g->wish.level);
		return false;
	}
	if (g->wish.exclusive && !may_have_whole_nodes(c, g)) {
		core_group_wrong(c, g,
				 "sluice.sh/exclusive: queue \"%s\" does not give whole nodes",
				 *g->wish.queue ? g->wish.queue : c->cfg->queue[0].name);
		return false;
	}
	if (!uses_reservation(c, g))
		return false;
	for (uint32_t i = 0; i < g->pod.n; i++) {
		struct pod *p = g->pod.p[i];

		if (core_pod_startable(p) && !wish_is_sound(c, g, p))
			return false;
		if (p->said_size && (!odd || p->said_size < odd->said_size))
			odd = p;
		said = SLU_MAX(said, p->said_size);
	}
	if (odd && !pg)
		tell_sizes(c, g, odd, said);
	core_life_size(c, g, named_size(c, g, pg, said));
	if (shares_once(c, g))
		return false;
	if (g->id.led)
		g->wish.one_by_one = core_led_alone(c, g);
	slu_free(g->wrong);
	g->wrong = NULL;
	return true;
}
