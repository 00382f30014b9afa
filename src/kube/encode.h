/* encode.h — the bodies we send.  Errors stick to the buffer. */
#pragma once
#include "base/buf.h"
#include "kube/object.h"

/* v1 Binding in Kubernetes protobuf, envelope included.  uid may be NULL. */
int slu_kenc_binding(struct slu_buf *b, const char *ns, const char *pod, const char *uid,
		     const char *node);
/* policy/v1 Eviction, JSON, of the pod with that uid. */
int slu_kenc_eviction(struct slu_buf *b, const char *ns, const char *pod, const char *uid);

/* Strategic merge patch of pods/status: one condition.  With a uid that is not the pod's the
 * outcome is INVALID. The caller sets the time, because lastTransitionTime must stay while the
 * status does not change. */
struct slu_kenc_condition {
	const char *type, *status, *reason, *message;
	int64_t since_us;
};
int slu_kenc_pod_condition(struct slu_buf *b, const char *uid, const struct slu_kenc_condition *c);

/* The object that an event is about. */
struct slu_kregarding {
	const char *api_version, *kind, *ns, *name, *uid;
};

/* events.k8s.io/v1 Event in Kubernetes protobuf, envelope included, which costs the server less
 * than JSON. */
struct slu_kenc_event {
	const char *name; /* of the Event object */
	struct slu_kregarding regarding;
	const char *type, *reason, *action, *note;
	const char *controller, *instance; /* reportingController, reportingInstance */
	int64_t time_us;
};
int slu_kenc_event(struct slu_buf *b, const struct slu_kenc_event *e);

/* coordination.k8s.io/v1 Lease: a whole new one, and a merge patch of one at version rv. */
struct slu_kenc_lease {
	const char *holder;
	int32_t duration_s, transitions;
	int64_t acquire_us, renew_us;
};
int slu_kenc_lease(struct slu_buf *b, const char *ns, const char *name,
		   const struct slu_kenc_lease *l);
int slu_kenc_lease_patch(struct slu_buf *b, uint64_t rv, const struct slu_kenc_lease *l);
