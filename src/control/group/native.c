/* PodGroups: which one a group has, and what those of scheduling.k8s.io ask for beyond a number. */
#include "control/group/group.h"

#include "control/cluster/cluster.h"

const struct slu_kpodgroup *core_podgroup(struct slu_core *c, const struct group *g)
{
	static const enum slu_kkind order[] = { SLU_KIND_PODGROUP_X, SLU_KIND_PODGROUP_SIGS };
	const struct slu_kobj *o;

	if (!g->id.explicit)
		return NULL;
	if (g->id.native) {
		o = core_lookup(c, SLU_KIND_PODGROUP, g->ns, g->id.key + 2);
		if (!o)
			o = core_lookup(c, SLU_KIND_PODGROUP_BETA, g->ns, g->id.key + 2);
		return o ? slu_kpodgroup(o) : NULL;
	}
	for (size_t i = 0; i < SLU_LEN(order); i++) {
		o = core_lookup(c, order[i], g->ns, g->id.key + 2);
		if (o)
			return slu_kpodgroup(o);
	}
	return NULL;
}

bool core_native_lacks(struct slu_core *c, const struct group *g)
{
	return g->id.native && !core_podgroup(c, g);
}

int core_native_wish(struct slu_core *c, const struct slu_kpodgroup *pg, struct slu_group_wish *w,
		     struct slu_error *err)
{
	if (!pg || !slu_kkind_is_native_group(pg->o.kind) || !pg->ntopology)
		return 0;
	for (uint32_t i = 0; i < c->cfg->nodes.n_levels; i++) {
		const struct slu_config_level *l = &c->cfg->nodes.level[i];

		if (strcmp(l->label, pg->topology[0]) || strlen(l->name) >= sizeof w->level)
			continue;
		strcpy(w->level, l->name);
		w->level_required = true;
		return 0;
	}
	return slu_fail(err, -EINVAL,
			"PodGroup %s: no level of nodes.topology has the label \"%.100s\"",
			pg->o.meta.name, pg->topology[0]);
}

bool core_native_together(struct slu_core *c, const struct pod *p)
{
	const struct slu_kpodgroup *pg = core_podgroup(c, p->group);

	return pg && p->k->disrupted == SLU_TRI_TRUE &&
	       (!strcmp(pg->disruption_mode, "PodGroup") || pg->all);
}
