#include "kube/encode.h"

#include <stdio.h>

#include "kube/time.h"
#include "wire/jsonw.h"
#include "wire/pb.h"

/* The head of runtime.Unknown: 1 typeMeta {1 apiVersion, 2 kind}, 2 raw, which the caller fills and
 * ends. */
static size_t envelope(struct slu_buf *b, const char *api, const char *kind)
{
	size_t at;

	slu_buf_add(b, "k8s\0", 4);
	at = slu_pb_begin(b, 1);
	slu_pb_put_str(b, 1, api);
	slu_pb_put_str(b, 2, kind);
	slu_pb_end(b, at);
	return slu_pb_begin(b, 2);
}

int slu_kenc_binding(struct slu_buf *b, const char *ns, const char *pod, const char *uid,
		     const char *node)
{
	size_t raw, in;

	raw = envelope(b, "v1", "Binding"); /* {1 metadata, 2 target} */
	in = slu_pb_begin(b, 1);            /* ObjectMeta: 1 name, 3 namespace, 5 uid */
	slu_pb_put_str(b, 1, pod);
	slu_pb_put_str(b, 3, ns);
	slu_pb_put_str(b, 5, uid);
	slu_pb_end(b, in);
	in = slu_pb_begin(b, 2); /* ObjectReference: 1 kind, 3 name */
	slu_pb_put_str(b, 1, "Node");
	slu_pb_put_str(b, 3, node);
	slu_pb_end(b, in);
	slu_pb_end(b, raw);
	return b->error;
}

static void head(struct slu_jsonw *w, const char *api, const char *kind)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "apiVersion", api);
	slu_jsonw_kstr(w, "kind", kind);
}

static void opt(struct slu_jsonw *w, const char *key, const char *value)
{
	if (value)
		slu_jsonw_kstr(w, key, value);
}

static void ktime(struct slu_jsonw *w, const char *key, int64_t us, bool micro)
{
	char text[SLU_KTIME_TEXT];

	slu_ktime_format(us, micro, text);
	slu_jsonw_kstr(w, key, text);
}

static void krv(struct slu_jsonw *w, uint64_t rv)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, rv);
	slu_jsonw_kstr(w, "resourceVersion", text);
}

int slu_kenc_eviction(struct slu_buf *b, const char *ns, const char *pod, const char *uid,
		      int64_t grace_s)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	head(&w, "policy/v1", "Eviction");
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "name", pod);
	slu_jsonw_kstr(&w, "namespace", ns);
	slu_jsonw_end_obj(&w);
	if (uid || grace_s >= 0) {
		slu_jsonw_key(&w, "deleteOptions");
		slu_jsonw_obj(&w);
		if (grace_s >= 0)
			slu_jsonw_ki64(&w, "gracePeriodSeconds", grace_s);
		if (uid) {
			slu_jsonw_key(&w, "preconditions");
			slu_jsonw_obj(&w);
			slu_jsonw_kstr(&w, "uid", uid);
			slu_jsonw_end_obj(&w);
		}
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_end_obj(&w);
	return b->error;
}

int slu_kenc_pod_condition(struct slu_buf *b, const char *uid, const struct slu_kenc_condition *c,
			   const char *nominated)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	if (uid) {
		slu_jsonw_key(&w, "metadata");
		slu_jsonw_obj(&w);
		slu_jsonw_kstr(&w, "uid", uid);
		slu_jsonw_end_obj(&w);
	}
	slu_jsonw_key(&w, "status");
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "conditions");
	slu_jsonw_arr(&w);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "type", c->type);
	slu_jsonw_kstr(&w, "status", c->status);
	slu_jsonw_key(&w, "lastProbeTime");
	slu_jsonw_null(&w);
	ktime(&w, "lastTransitionTime", c->since_us, false);
	opt(&w, "reason", c->reason);
	opt(&w, "message", c->message);
	if (c->observed)
		slu_jsonw_ki64(&w, "observedGeneration", c->observed);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_arr(&w);
	if (nominated) {
		slu_jsonw_key(&w, "nominatedNodeName");
		if (nominated[0])
			slu_jsonw_str(&w, nominated);
		else
			slu_jsonw_null(&w);
	}
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return b->error;
}

struct slu_kregarding slu_kregarding(const struct slu_kobj *o)
{
	static const char *const api[SLU_KIND_COUNT] = {
		[SLU_KIND_NODE] = "v1",
		[SLU_KIND_POD] = "v1",
		[SLU_KIND_NAMESPACE] = "v1",
		[SLU_KIND_PVC] = "v1",
		[SLU_KIND_PV] = "v1",
		[SLU_KIND_JOB] = "batch/v1",
		[SLU_KIND_REPLICASET] = "apps/v1",
		[SLU_KIND_STATEFULSET] = "apps/v1",
		[SLU_KIND_DEPLOYMENT] = "apps/v1",
		[SLU_KIND_PRIORITYCLASS] = "scheduling.k8s.io/v1",
		[SLU_KIND_STORAGECLASS] = "storage.k8s.io/v1",
		[SLU_KIND_LEASE] = "coordination.k8s.io/v1",
		[SLU_KIND_PODGROUP_X] = "scheduling.x-k8s.io/v1alpha1",
		[SLU_KIND_PODGROUP_SIGS] = "scheduling.sigs.k8s.io/v1alpha1",
		[SLU_KIND_PODGROUP] = "scheduling.k8s.io/v1alpha2",
		[SLU_KIND_FLUXJOB] = "jobs.converged-computing.org/v1alpha1",
	};

	return (struct slu_kregarding){
		.api_version = api[o->kind],
		.kind = slu_kkind_info(o->kind)->kind,
		.ns = o->meta.ns,
		.name = o->meta.name,
		.uid = o->meta.uid,
		.rv = o->meta.rv,
	};
}

static void regarding(struct slu_jsonw *w, const struct slu_kregarding *r)
{
	slu_jsonw_key(w, "regarding");
	slu_jsonw_obj(w);
	opt(w, "apiVersion", r->api_version);
	opt(w, "kind", r->kind);
	if (r->ns && r->ns[0])
		slu_jsonw_kstr(w, "namespace", r->ns);
	opt(w, "name", r->name);
	opt(w, "uid", r->uid);
	if (r->rv)
		krv(w, r->rv);
	slu_jsonw_end_obj(w);
}

static void series(struct slu_jsonw *w, int32_t count, int64_t last_us)
{
	slu_jsonw_key(w, "series");
	slu_jsonw_obj(w);
	slu_jsonw_ki64(w, "count", count);
	ktime(w, "lastObservedTime", last_us, true);
	slu_jsonw_end_obj(w);
}

int slu_kenc_event(struct slu_buf *b, const struct slu_kenc_event *e)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	head(&w, "events.k8s.io/v1", "Event");
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "name", e->name);
	/* events about cluster-wide objects live in "default" */
	slu_jsonw_kstr(&w, "namespace",
		       e->regarding.ns && e->regarding.ns[0] ? e->regarding.ns : "default");
	slu_jsonw_end_obj(&w);
	ktime(&w, "eventTime", e->time_us, true);
	opt(&w, "type", e->type);
	opt(&w, "reason", e->reason);
	opt(&w, "action", e->action);
	opt(&w, "note", e->note);
	opt(&w, "reportingController", e->controller);
	opt(&w, "reportingInstance", e->instance);
	regarding(&w, &e->regarding);
	if (e->count > 1)
		series(&w, e->count, e->last_us);
	slu_jsonw_end_obj(&w);
	return b->error;
}

int slu_kenc_event_pb(struct slu_buf *b, const struct slu_kenc_event *e)
{
	const struct slu_kregarding *r = &e->regarding;
	size_t raw = envelope(b, "events.k8s.io/v1", "Event"), in;

	in = slu_pb_begin(b, 1); /* ObjectMeta: 1 name, 3 namespace */
	slu_pb_put_str(b, 1, e->name);
	slu_pb_put_str(b, 3, r->ns && r->ns[0] ? r->ns : "default");
	slu_pb_end(b, in);
	in = slu_pb_begin(b, 2); /* MicroTime: 1 seconds, 2 nanos */
	slu_pb_put_i64(b, 1, e->time_us / 1000000);
	slu_pb_put_i64(b, 2, e->time_us % 1000000 * 1000);
	slu_pb_end(b, in);
	slu_pb_put_str(b, 4, e->controller);
	slu_pb_put_str(b, 5, e->instance);
	slu_pb_put_str(b, 6, e->action);
	slu_pb_put_str(b, 7, e->reason);
	in = slu_pb_begin(
		b, 8); /* ObjectReference: 1 kind, 2 namespace, 3 name, 4 uid, 5 apiVersion */
	slu_pb_put_str(b, 1, r->kind);
	slu_pb_put_str(b, 2, r->ns);
	slu_pb_put_str(b, 3, r->name);
	slu_pb_put_str(b, 4, r->uid);
	slu_pb_put_str(b, 5, r->api_version);
	slu_pb_end(b, in);
	slu_pb_put_str(b, 10, e->note);
	slu_pb_put_str(b, 11, e->type);
	slu_pb_end(b, raw);
	return b->error;
}

int slu_kenc_event_series(struct slu_buf *b, int32_t count, int64_t last_us)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	series(&w, count, last_us);
	slu_jsonw_end_obj(&w);
	return b->error;
}

static void lease_spec(struct slu_jsonw *w, const struct slu_kenc_lease *l)
{
	slu_jsonw_key(w, "spec");
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "holderIdentity", l->holder);
	slu_jsonw_ki64(w, "leaseDurationSeconds", l->duration_s);
	ktime(w, "acquireTime", l->acquire_us, true);
	ktime(w, "renewTime", l->renew_us, true);
	slu_jsonw_ki64(w, "leaseTransitions", l->transitions);
	slu_jsonw_end_obj(w);
}

int slu_kenc_lease(struct slu_buf *b, const char *ns, const char *name,
		   const struct slu_kenc_lease *l)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	head(&w, "coordination.k8s.io/v1", "Lease");
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "name", name);
	slu_jsonw_kstr(&w, "namespace", ns);
	slu_jsonw_end_obj(&w);
	lease_spec(&w, l);
	slu_jsonw_end_obj(&w);
	return b->error;
}

int slu_kenc_lease_patch(struct slu_buf *b, uint64_t rv, const struct slu_kenc_lease *l)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	krv(&w, rv);
	slu_jsonw_end_obj(&w);
	lease_spec(&w, l);
	slu_jsonw_end_obj(&w);
	return b->error;
}
