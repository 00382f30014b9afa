/* held_kit.h — held Jobs and gated pods in the fake cluster of core_kit.h: nodes of 4 cpu, pods
 * of 2. */
#pragma once
#include "core_kit.h"

static struct {
	int jobs, pods;
	char job[4000], pod[4000];
	enum slu_kube_outcome outcome;
} seen;

/* How the webhook holds pods: by the gate, or with mode "bind" by the name of Sluice. */
static const char *held_gate = "\"schedulingGates\":[{\"name\":\"fluxqueue\"}],";
static const char *held_name = "default-scheduler";

/* `more` stands behind its mark, `spec` and `pod` in front of its spec and its template's, `status`
 * is all of that. */
static inline void feed_job_as(struct world *w, const char *name, int pods, bool suspend,
			       const char *mark, const char *more, const char *spec,
			       const char *pod, const char *status)
{
	w->rv++;
	feed(w, SLU_KIND_JOB, false,
	     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"job-%s\",\"generation\":%" PRIu64
	     ",\"resourceVersion\":\"%" PRIu64
	     "\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{\"sluice.sh/held\":\"%s\"%s}},"
	     "\"spec\":{%s\"parallelism\":%d,\"completions\":%d,\"suspend\":%s,\"template\":{\"spec\":{%s"
	     "\"schedulerName\":\"%s\",%s\"containers\":[{\"name\":\"c\",\"resources\":{"
	     "\"requests\":{\"cpu\":\"2\"}}}]}}},\"status\":{%s}}",
	     name, name, w->rv, w->rv, mark, more, spec, pods, pods, suspend ? "true" : "false",
	     pod, held_name, held_gate, status);
}

static inline void feed_job(struct world *w, const char *name, int pods, bool suspend,
			    const char *mark, const char *more)
{
	feed_job_as(w, name, pods, suspend, mark, more, "", "", "");
}

static inline struct fpod *gated_pod(struct world *w, const char *name, const char *job)
{
	struct fpod *p = make_pod(w, name, held_name, "2", "");

	if (job)
		snprintf(
			p->meta, sizeof p->meta,
			"\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"%s\","
			"\"uid\":\"job-%s\",\"controller\":true}]",
			job, job);
	/* What admission adds to every pod, and templates do not have. */
	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"%s\",%s\"tolerations\":[{\"key\":\"node.kubernetes.io/"
		"not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}],\"containers\":[{\"name\":\"c\","
		"\"resources\":{\"requests\":{\"cpu\":\"2\"}}}]",
		held_name, held_gate);
	feed_pod(w, p, false);
	return p;
}

/* Apply a release to the pod, as the API server does. */
static inline void pin_pod(struct world *w, struct fpod *p, const char *node)
{
	size_t n = strlen(p->meta);

	snprintf(p->meta + n, sizeof p->meta - n, "%s\"annotations\":{\"sluice.sh/node\":\"%s\"}",
		 n ? "," : "", node);
	snprintf(
		p->spec, sizeof p->spec,
		"\"schedulerName\":\"default-scheduler\",\"affinity\":{\"nodeAffinity\":{"
		"\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[{"
		"\"matchExpressions\":[{\"key\":\"kubernetes.io/hostname\",\"operator\":\"In\","
		"\"values\":[\"%s\"]}]}]}}},\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":"
		"{\"cpu\":\"2\"}}}]",
		node);
	feed_pod(w, p, false);
}

/* The server: Jobs are only noted, pods lose the gate and are pinned as the patch says. */
static inline void server(struct world *w, struct slu_rec_write *x)
{
	const char *at = strstr(x->text, "\"annotations\":{\"sluice.sh/node\":\"");
	char node[32] = "";

	if (x->kind == SLU_KIND_JOB) {
		seen.jobs++;
		snprintf(seen.job, sizeof seen.job, "%s", x->text);
	} else {
		seen.pods++;
		snprintf(seen.pod, sizeof seen.pod, "%s", x->text);
		if (at)
			sscanf(at + strlen("\"annotations\":{\"sluice.sh/node\":\""), "%31[^\"]",
			       node);
	}
	for (int i = 0; i < w->n_pods && *node && seen.outcome == SLU_KUBE_OK; i++)
		if (!strcmp(w->pod[i].uid, x->uid))
			pin_pod(w, &w->pod[i], node);
	if (x->run)
		slu_core_take(w->core, slu_rec_written_new(x, seen.outcome, false, "so it is"),
			      w->now_us);
}

static inline void begin_as(struct world *w, int nodes, const char *yaml)
{
	memset(&seen, 0, sizeof seen);
	seen.outcome = SLU_KUBE_OK;
	open_world(w, nodes, 4, yaml);
	w->patched = server;
}

static inline void begin(struct world *w, int nodes)
{
	begin_as(w, nodes, "");
}

/* The default scheduler does its part. */
static inline void run_pod(struct world *w, struct fpod *p)
{
	const char *at = strstr(p->meta, "\"sluice.sh/node\":\"");

	sscanf(at ? at + strlen("\"sluice.sh/node\":\"") : "", "%31[^\"]", p->node);
	snprintf(p->phase, sizeof p->phase, "Running");
	feed_pod(w, p, false);
}
