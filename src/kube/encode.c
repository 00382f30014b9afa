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

static void put_type(struct slu_jsonw *w, const char *api, const char *kind)
{
	slu_jsonw_obj(w);
	slu_jsonw_kstr(w, "apiVersion", api);
	slu_jsonw_kstr(w, "kind", kind);
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

int slu_kenc_eviction(struct slu_buf *b, const char *ns, const char *pod, const char *uid)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	put_type(&w, "policy/v1", "Eviction");
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "name", pod);
	slu_jsonw_kstr(&w, "namespace", ns);
	slu_jsonw_end_obj(&w);
	slu_jsonw_key(&w, "deleteOptions");
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "preconditions");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "uid", uid);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return b->error;
}

int slu_kenc_pod_condition(struct slu_buf *b, const char *uid, const struct slu_kenc_condition *c)
{
	struct slu_jsonw w = slu_jsonw(b, SLU_JSONW_COMPACT);

	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "metadata");
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "uid", uid);
	slu_jsonw_end_obj(&w);
	slu_jsonw_key(&w, "status");
	slu_jsonw_obj(&w);
	slu_jsonw_key(&w, "conditions");
	slu_jsonw_arr(&w);
	slu_jsonw_obj(&w);
	slu_jsonw_kstr(&w, "type", c->type);
	slu_jsonw_kstr(&w, "status", c->status);
	slu_jsonw_kstr(&w, "reason", c->reason);
	slu_jsonw_kstr(&w, "message", c->message);
	ktime(&w, "lastTransitionTime", c->since_us, false);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_arr(&w);
	slu_jsonw_end_obj(&w);
	slu_jsonw_end_obj(&w);
	return b->error;
}

int slu_kenc_event(struct slu_buf *b, const struct slu_kenc_event *e)
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

	put_type(&w, "coordination.k8s.io/v1", "Lease");
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
