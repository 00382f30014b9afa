/* The status of PodGroups.
 *
 * Of those of scheduling.k8s.io the server keeps two conditions: PodGroupScheduled (from Kubernetes
 * 1.37 on PodGroupInitiallyScheduled), which becomes True once and stays so (members that come later
 * do not take it back), and DisruptionTarget, which is there only while the group is being ended
 * because a member was taken away. */
#include "control/report/report.h"

#include <time.h>

#include "control/group/group.h"
#include "control/run/run.h"
#include "wire/jsonw.h"

#define SCHEDULED "PodGroupScheduled"          /* v1alpha2 */
#define INITIALLY "PodGroupInitiallyScheduled" /* v1beta1 */
#define DISRUPTED "DisruptionTarget"

struct verdict {
	enum slu_ktri status;
	const char *reason, *text;
};

static bool any_run_runs(const struct group *g)
{
	for (uint32_t i = 0; i < g->run.n; i++)
		if (g->run.p[i]->gang && g->run.p[i]->state == RUN_RUNNING)
			return true;
	return false;
}

static struct verdict judge_group(const struct slu_core *c, const struct group *g)
{
	if (any_run_runs(g))
		return (struct verdict){ SLU_TRI_TRUE, "Scheduled", "" };
	if (g->wrong)
		return (struct verdict){ SLU_TRI_FALSE, "SchedulerError", g->wrong };
	/* A job that only waits for its turn gets this reason, once a reason is due at all. */
	if (g->told_text && g->waiting_us)
		return (struct verdict){ SLU_TRI_FALSE, "Unschedulable", g->told_text };
	return (struct verdict){ SLU_TRI_ABSENT, NULL, NULL };
}

static bool status_differs(const struct slu_kpodgroup *pg, const struct slu_kcond *now,
			   const struct verdict *v)
{
	if (v->status == SLU_TRI_ABSENT)
		return false;
	if (!now)
		return true;
	if (now->status == SLU_TRI_TRUE)
		return false; /* the condition stays True */
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

/* Write the status of a PodGroup that `b` holds, and be done with `b`. */
static void send_status(struct slu_core *c, const struct slu_kpodgroup *pg, struct slu_buf *b)
{
	if (!b->error)
		core_write(c, &(struct slu_rec_write){ .verb = SLU_WRITE_STATUS,
						       .kind = pg->o.kind,
						       .ns = pg->o.meta.ns,
						       .name = pg->o.meta.name,
						       .text = b->p });
	slu_buf_done(b);
}

static void native_status(struct slu_core *c, struct group *g, const struct slu_kpodgroup *pg)
{
	static const struct verdict taken = {
		SLU_TRI_TRUE, "MemberDisrupted",
		"a member was taken away: the group starts again as a whole"
	};
	const char *type = pg->o.kind == SLU_KIND_PODGROUP ? SCHEDULED : INITIALLY;
	const struct slu_kcond *now = slu_kcond_get(pg->conds, pg->nconds, type);
	bool target = slu_kcond_get(pg->conds, pg->nconds, DISRUPTED);
	struct verdict v = judge_group(c, g);
	struct slu_buf b = SLU_BUF_INIT(8192);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	bool news = status_differs(pg, now, &v);

	if (v.status == SLU_TRI_TRUE)
		g->disrupted = false;
	if (!news && target == g->disrupted)
		return;
	/* The status written last has not come back through the watch yet. */
	if (c->now_us - g->status_us < 1000000)
		return;
	g->status_us = c->now_us;
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "conditions");
	slu_jsonw_arr(&w);
	if (news)
		write_condition(&w, pg, type, &v,
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
	send_status(c, pg, &b);
}

/* ---- PodGroups of other API groups ---- */

static void count_pods(const struct group *g, uint32_t *running, uint32_t *bound)
{
	*running = *bound = 0;
	for (uint32_t i = 0; i < g->pod.n; i++) {
		*running += g->pod.p[i]->k->phase == SLU_PHASE_RUNNING;
		*bound += *g->pod.p[i]->k->spec.node != 0;
	}
}

static const char *phase_of(const struct group *g, uint32_t running)
{
	if (core_members(g) + g->ended_ok + g->ended_bad < g->wish.min)
		return "Pending";
	if (g->ended_ok >= g->wish.min)
		return "Finished";
	if (running + g->ended_ok >= g->wish.min)
		return "Running";
	/* Short of members, and no maker replaces them. */
	return g->ended_bad && running == core_members(g) ? "Failed" : "Scheduling";
}

void core_podgroup_status(struct slu_core *c, struct group *g)
{
	const struct slu_kpodgroup *pg = core_podgroup(c, g);
	struct slu_buf b = SLU_BUF_INIT(1024);
	struct slu_jsonw w = slu_jsonw(&b, SLU_JSONW_COMPACT);
	uint32_t running, bound;
	const char *phase;
	char at[32];

	if (!pg)
		return;
	if (slu_kkind_is_native_group(pg->o.kind)) {
		native_status(c, g, pg);
		return;
	}
	count_pods(g, &running, &bound);
	phase = phase_of(g, running);
	if (!strcmp(pg->phase, phase) && pg->running == (int32_t)running &&
	    pg->succeeded == (int32_t)g->ended_ok && pg->failed == (int32_t)g->ended_bad)
		return;
	if (g->pod.n && g->told_phase == phase && g->told_us && c->now_us - g->status_us < 1000000)
		return;
	g->told_phase = phase;
	g->status_us = c->now_us;
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "phase", phase);
	slu_jsonw_ki64(&w, "running", running);
	slu_jsonw_ki64(&w, "succeeded", g->ended_ok);
	slu_jsonw_ki64(&w, "failed", g->ended_bad);
	if (pg->o.kind == SLU_KIND_PODGROUP_SIGS)
		slu_jsonw_ki64(&w, "scheduled", bound);
	if (!pg->schedule_start_us) {
		core_stamp(at, g->first_seen_us / 1000000);
		slu_jsonw_kstr(&w, "scheduleStartTime", at);
	}
	slu_jsonw_end_obj(&w);
	send_status(c, pg, &b);
}

void core_podgroups_over(struct slu_core *c)
{
	for (uint32_t i = 0; i < c->groups->over.n; i++)
		if (c->groups->over.p[i]->id.explicit)
			core_podgroup_status(c, c->groups->over.p[i]);
}
