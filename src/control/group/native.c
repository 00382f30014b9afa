/* PodGroups of scheduling.k8s.io: what they ask for beyond a number, and their conditions.
 *
 * The server keeps two conditions: PodGroupScheduled, which becomes True once and stays so (members
 * that come later do not take it back), and DisruptionTarget, which is there only while the group
 * is being ended because somebody took a member away. */
#include "control/group/group.h"

#include <time.h>

#include "control/cluster/cluster.h"
#include "control/run/run.h"
#include "wire/jsonw.h"

#define SCHEDULED "PodGroupScheduled"
#define DISRUPTED "DisruptionTarget"

const struct slu_kpodgroup *core_podgroup(struct slu_core *c, const struct group *g)
{
	static const enum slu_kkind order[] = { SLU_KIND_PODGROUP_X, SLU_KIND_PODGROUP_SIGS };
	const struct slu_kobj *o;

	if (!g->id.explicit)
		return NULL;
	if (g->id.native) {
		o = core_thing(c, SLU_KIND_PODGROUP, g->ns, g->id.key + 2);
		return o ? slu_kpodgroup(o) : NULL;
	}
	for (size_t i = 0; i < SLU_LEN(order); i++) {
		o = core_thing(c, order[i], g->ns, g->id.key + 2);
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
	if (!pg || pg->o.kind != SLU_KIND_PODGROUP || !pg->ntopology)
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

	return pg && !strcmp(pg->disruption_mode, "PodGroup") && p->k->disrupted == SLU_TRI_TRUE;
}

/* ---- conditions ---- */

struct verdict {
	enum slu_ktri status;
	const char *reason, *text;
};

static bool runs(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->state == RUN_RUNNING)
			return true;
	return false;
}

static struct verdict judge(const struct slu_core *c, const struct group *g)
{
	if (runs(g))
		return (struct verdict){ SLU_TRI_TRUE, "Scheduled", "" };
	if (g->wrong)
		return (struct verdict){ SLU_TRI_FALSE, "SchedulerError", g->wrong };
	/* What waits only for its turn says so once people are told at all. */
	if (g->told_text && g->waiting_us)
		return (struct verdict){ SLU_TRI_FALSE, "Unschedulable", g->told_text };
	return (struct verdict){ SLU_TRI_ABSENT, NULL, NULL };
}

static bool differs(const struct slu_kpodgroup *pg, const struct slu_kcond *now,
		    const struct verdict *v)
{
	if (v->status == SLU_TRI_ABSENT)
		return false;
	if (!now)
		return true;
	if (now->status == SLU_TRI_TRUE)
		return false; /* for good */
	return now->status != v->status || strcmp(now->reason, v->reason) ||
	       strcmp(now->message, v->text) || now->observed != pg->o.meta.generation;
}

static void write_condition(struct slu_jsonw *w, const struct slu_kpodgroup *pg, const char *type,
			    const struct verdict *v, int64_t since_s)
{
	time_t t = (time_t)since_s;
	struct tm tm;
	char at[32];

	gmtime_r(&t, &tm);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", &tm);
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "type", type);
	slu_jsonw_kstr(w, "status", v->status == SLU_TRI_TRUE ? "True" : "False");
	slu_jsonw_kstr(w, "reason", v->reason);
	slu_jsonw_kstr(w, "message", v->text);
	slu_jsonw_ki64(w, "observedGeneration", pg->o.meta.generation);
	slu_jsonw_kstr(w, "lastTransitionTime", at);
	slu_jsonw_end_obj(w);
}

void core_native_status(struct slu_core *c, struct group *g, const struct slu_kpodgroup *pg)
{
	static const struct verdict taken = {
		SLU_TRI_TRUE, "MemberDisrupted",
		"a member was taken away: the group starts again as a whole"
	};
	const struct slu_kcond *now = slu_kcond_get(pg->conds, pg->nconds, SCHEDULED);
	bool target = slu_kcond_get(pg->conds, pg->nconds, DISRUPTED);
	struct verdict v = judge(c, g);
	struct slu_buf b = SLU_BUF_INIT(8192);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	bool news = differs(pg, now, &v);

	if (v.status == SLU_TRI_TRUE)
		g->disrupted = false;
	if (!news && target == g->disrupted)
		return;
	/* What was written last is still on its way back. */
	if (c->now_us - g->status_us < 1000000)
		return;
	g->status_us = c->now_us;
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "conditions");
	slu_jsonw_arr(&w);
	if (news)
		write_condition(&w, pg, SCHEDULED, &v,
				now && now->status == v.status ? now->since_us / 1000000
							       : c->now_s);
	if (g->disrupted && !target) {
		write_condition(&w, pg, DISRUPTED, &taken, c->now_s);
	} else if (target && !g->disrupted) {
		slu_jsonw_obj(&w);
		slu_jsonw_kstr(&w, "$patch", "delete");
		slu_jsonw_kstr(&w, "type", DISRUPTED);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	if (!b.error)
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_STATUS,
						       .kind = pg->o.kind,
						       .ns = g->ns,
						       .name = pg->o.meta.name,
						       .text = b.p });
	slu_buf_done(&b);
}
