/* object.h — the part of Kubernetes objects that placement needs, as compact immutable structs.
 *
 * Every object is one block of memory: the struct, then its arrays.  It is never changed after the
 * decoder made it; a newer version is a new object.  Objects are counted (slu_kobj_ref/unref, any
 * thread) and may be read from any thread while a reference is held.
 *
 * Strings come from a pool (strpool.h): never NULL ("" when the field is absent), valid while the
 * object is, and equal texts of one pool are equal pointers.  Use slu_kstr_is() against literals.
 *
 * Arrays are a pointer and a 16-bit count named n<array>; absent means n = 0.  Labels, annotations
 * and node selectors are sorted by key (memcmp) without duplicates: use slu_kpair_get().
 *
 * Times are microseconds since the epoch, 0 = absent.  Integers that may be absent hold SLU_KNONE.
 * Amounts are millicores for "cpu" and plain units for everything else (qty.h); an amount that does
 * not fit 64 bits is INT64_MAX and SLU_KOBJ_BAD_AMOUNT is set in the object's flags. */
#pragma once
#include <stdatomic.h>

#include "base/base.h"
#include "kube/strpool.h"

#define SLU_KNONE (-1)

enum slu_kkind {
	SLU_KIND_NONE,
	SLU_KIND_NODE,          /* v1 */
	SLU_KIND_POD,           /* v1 */
	SLU_KIND_NAMESPACE,     /* v1 */
	SLU_KIND_PVC,           /* v1 PersistentVolumeClaim */
	SLU_KIND_PV,            /* v1 PersistentVolume */
	SLU_KIND_JOB,           /* batch/v1 */
	SLU_KIND_REPLICASET,    /* apps/v1 */
	SLU_KIND_STATEFULSET,   /* apps/v1 */
	SLU_KIND_DEPLOYMENT,    /* apps/v1 */
	SLU_KIND_PRIORITYCLASS, /* scheduling.k8s.io/v1 */
	SLU_KIND_STORAGECLASS,  /* storage.k8s.io/v1 */
	SLU_KIND_LEASE,         /* coordination.k8s.io/v1 */
	SLU_KIND_PODGROUP_X,    /* scheduling.x-k8s.io/v1alpha1; JSON only */
	SLU_KIND_PODGROUP_SIGS, /* scheduling.sigs.k8s.io/v1alpha1; JSON only */
	SLU_KIND_PODGROUP,      /* scheduling.k8s.io/v1alpha2, the native one of Kubernetes 1.36 */
	SLU_KIND_FLUXJOB,       /* jobs.converged-computing.org/v1alpha1; JSON only */
	SLU_KIND_LIMITRANGE,    /* v1 */
	SLU_KIND_RUNTIMECLASS,  /* node.k8s.io/v1 */
	SLU_KIND_PODGROUP_BETA, /* scheduling.k8s.io/v1beta1, the native one from 1.37 on */
	SLU_KIND_RESERVATION,   /* sluice.sh/v1alpha1; JSON only */
	SLU_KIND_CSINODE,       /* storage.k8s.io/v1 */
	SLU_KIND_ATTACHMENT,    /* storage.k8s.io/v1 VolumeAttachment */
	SLU_KIND_TOPOLOGY,      /* topology.node.k8s.io/v1alpha2 NodeResourceTopology; JSON only */
	SLU_KIND_PARTIAL,       /* metadata of any kind (PartialObjectMetadata) */
	SLU_KIND_COUNT,
};

/* The names of a kind in the API. */
struct slu_kkind_info {
	const char *group;    /* "" for the core group */
	const char *version;  /* "v1" */
	const char *resource; /* plural, as in URLs: "pods" */
	const char *kind;     /* "Pod" */
	bool namespaced;
	bool json_only; /* custom resources have no protobuf form */
};
const struct slu_kkind_info *slu_kkind_info(enum slu_kkind k);

/* Kubernetes' own PodGroup, in either version; no server has both. */
static inline bool slu_kkind_is_native_group(enum slu_kkind k)
{
	return k == SLU_KIND_PODGROUP || k == SLU_KIND_PODGROUP_BETA;
}

/* ---- parts ---- */

struct slu_kpair {
	const char *key, *value;
};

/* An amount of a resource. */
struct slu_kamount {
	const char *name; /* "cpu", "memory", "nvidia.com/gpu", "pods", ... */
	int64_t amount;
};

struct slu_kowner {
	const char *api_version, *kind, *name, *uid;
	bool controller;
};

struct slu_kmeta {
	const char *name, *ns, *uid;
	const char *generate_name; /* prefix of a generated name, "" if none */
	uint64_t rv;               /* resourceVersion; 0 if absent or not a decimal number */
	int64_t generation;
	int64_t created_us, deleted_us; /* deleted: being deleted, finalizers may hold it */
	const struct slu_kpair *labels;
	/* Only the keys that the codec was told to keep (codec.h). */
	const struct slu_kpair *annotations;
	const struct slu_kowner *owners;
	const char *const *finalizers;
	uint16_t nlabels, nannotations, nowners, nfinalizers;
};

enum slu_ktri {
	SLU_TRI_UNKNOWN, /* "Unknown", or a phase that we do not know */
	SLU_TRI_TRUE,
	SLU_TRI_FALSE,
	SLU_TRI_ABSENT, /* no such condition on the object */
};

struct slu_kcond {
	const char *type, *reason;
	const char *message;
	int64_t since_us; /* lastTransitionTime */
	int64_t observed; /* observedGeneration, 0 if absent */
	uint8_t status;   /* enum slu_ktri */
};

enum slu_keffect {
	SLU_EFFECT_ANY, /* tolerations only: empty means every effect; a taint with it is unknown */
	SLU_EFFECT_NO_SCHEDULE,
	SLU_EFFECT_PREFER_NO_SCHEDULE,
	SLU_EFFECT_NO_EXECUTE,
	SLU_EFFECT_OTHER, /* a word we do not know: tolerates and repels nothing */
};

struct slu_ktaint {
	const char *key, *value;
	uint8_t effect; /* enum slu_keffect */
};

enum slu_ktol_op {
	SLU_TOL_EQUAL, /* also when empty */
	SLU_TOL_EXISTS,
	SLU_TOL_LT, /* numeric comparison, Kubernetes 1.35 and later */
	SLU_TOL_GT,
	SLU_TOL_OTHER,
};

struct slu_ktoleration {
	const char *key, *value; /* key "" with EXISTS tolerates everything */
	int64_t seconds;         /* tolerationSeconds or SLU_KNONE */
	uint8_t op;              /* enum slu_ktol_op */
	uint8_t effect;          /* enum slu_keffect */
};

enum slu_ksel_op {
	SLU_SEL_OTHER, /* an operator we do not know: matches nothing */
	SLU_SEL_IN,
	SLU_SEL_NOT_IN,
	SLU_SEL_EXISTS,
	SLU_SEL_DOES_NOT_EXIST,
	SLU_SEL_GT,
	SLU_SEL_LT,
};

struct slu_kexpr {
	const char *key;
	const char *const *values;
	uint16_t nvalues;
	uint8_t op; /* enum slu_ksel_op */
};

/* All expressions and all fields must hold; a term with neither matches nothing.  The only field is
 * "metadata.name". */
struct slu_kterm {
	const struct slu_kexpr *exprs, *fields;
	uint16_t nexprs, nfields;
};

struct slu_kpreferred {
	struct slu_kterm term;
	int32_t weight; /* 1..100 */
};

enum slu_kproto {
	SLU_PROTO_TCP, /* also when empty */
	SLU_PROTO_UDP,
	SLU_PROTO_SCTP,
	SLU_PROTO_OTHER,
};

/* A required anti-affinity term: no pod that it selects may be in the same domain of `topology`.
 * Label keys that must or must not match are in the expressions already (the server puts them
 * there). */
struct slu_kanti {
	const char *topology; /* label of nodes */
	const struct slu_kpair *labels;
	const struct slu_kexpr *exprs;
	const struct slu_kpair *ns_labels; /* of namespaces */
	const struct slu_kexpr *ns_exprs;
	const char *const *namespaces; /* none and no selector: the pod's own */
	uint16_t nlabels, nexprs, nns_labels, nns_exprs, nnamespaces;
	uint32_t bits; /* SLU_ANTI_* */
};
enum {
	SLU_ANTI_SELECTS = 1 << 0,    /* has a label selector; without one it selects nothing */
	SLU_ANTI_NAMESPACES = 1 << 1, /* has a namespace selector; an empty one selects all */
};

struct slu_khostport {
	const char *ip; /* "" = all addresses, same as 0.0.0.0 */
	int32_t port;
	uint8_t proto; /* enum slu_kproto */
};

/* flags of slu_kpodspec */
enum {
	SLU_POD_HOST_NETWORK = 1 << 0,
	/* Pod affinity: presence only; Sluice hands such pods to the default scheduler. */
	SLU_POD_AFFINITY_REQUIRED = 1 << 1,
	SLU_POD_AFFINITY_PREFERRED = 1 << 2,
	SLU_POD_ANTI_REQUIRED = 1 << 3,
	SLU_POD_ANTI_PREFERRED = 1 << 4,
	/* Topology spread with DoNotSchedule / ScheduleAnyway. */
	SLU_POD_SPREAD_HARD = 1 << 5,
	SLU_POD_SPREAD_SOFT = 1 << 6,
	SLU_POD_RESOURCE_CLAIMS = 1 << 7,
	/* A generic ephemeral volume: its claim is "<pod name>-<volume name>" and is in claims[] of
	 * a pod; in a template only this flag tells. */
	SLU_POD_EPHEMERAL_CLAIM = 1 << 8,
	/* preemptionPolicy: Never */
	SLU_POD_NEVER_PREEMPTS = 1 << 9,
	/* Required node affinity is given (nrequired may be 0: then no node matches). */
	SLU_POD_NODE_AFFINITY = 1 << 10,
	/* A volume that only some nodes can reach and that is no claim (in-line cloud disks,
	 * iscsi, rbd, fc): conflicts between pods are for the default scheduler. */
	SLU_POD_INLINE_DISK = 1 << 11,
	/* requests come from pod-level resources (spec.resources) at least in part */
	SLU_POD_LEVEL_RESOURCES = 1 << 12,
	/* never from the API: no two of its kind on one node (slots of a FluxJob that asks for
	 * nodes) */
	SLU_POD_ALONE = 1 << 13,
	/* QoS class Guaranteed, every container with whole cpus: a kubelet with static processors gives
	 * it some of its own. */
	SLU_POD_PINS_CPUS = 1 << 14,
};

enum slu_krestart {
	SLU_RESTART_ALWAYS, /* also when empty */
	SLU_RESTART_ON_FAILURE,
	SLU_RESTART_NEVER,
};

/* The requests of a pod, or of a template of pods. */
struct slu_kpodspec {
	const char *scheduler; /* schedulerName; "default-scheduler" is filled in by the server */
	const char *node;      /* nodeName; "" while unbound */
	const char *priority_class;
	const char *scheduling_group; /* schedulingGroup.podGroupName */
	int64_t active_deadline_s;    /* activeDeadlineSeconds or SLU_KNONE */
	int64_t grace_s;              /* terminationGracePeriodSeconds or SLU_KNONE */
	/* What the pod occupies, by the rules of Kubernetes: the larger of the sum of containers
	 * and sidecars and the highest moment of the init phase, pod-level amounts in their place
	 * where given, plus overhead; for running pods at least what the kubelet has allotted
	 * (in-place resize).  Zero amounts are left out.  Sorted by name. */
	const struct slu_kamount *requests;
	/* Sum over app containers of cpu rounded up to whole cores each (compatible mode). */
	int64_t whole_cpus;
	const struct slu_kpair *node_selector;
	const struct slu_kterm *required;       /* node affinity: one of these must match */
	const struct slu_kpreferred *preferred; /* node affinity: wishes */
	const struct slu_kanti *anti;           /* required pod anti-affinity */
	const struct slu_ktoleration *tolerations;
	const struct slu_khostport *host_ports; /* also of init containers that are sidecars */
	const char *const *gates;               /* schedulingGates */
	const char *const *claims;              /* names of PersistentVolumeClaims */
	uint16_t nrequests, nnode_selector, nrequired, npreferred, ntolerations, nhost_ports;
	uint16_t ngates, nclaims, nanti;
	int32_t priority; /* 0 if absent; has_priority tells */
	uint32_t flags;   /* SLU_POD_* */
	bool has_priority;
	uint8_t restart; /* enum slu_krestart */
};

enum slu_kcontainer_role {
	SLU_CONTAINER_APP,
	SLU_CONTAINER_INIT,
	SLU_CONTAINER_SIDECAR, /* an init container that lives on */
};

struct slu_kcontainer {
	const struct slu_kamount *requests; /* zero amounts included: they were asked for */
	uint16_t nrequests;
	uint8_t role; /* enum slu_kcontainer_role */
};

/* What `requests` of a pod are summed up from (requests.h). */
struct slu_kdemand {
	const struct slu_kcontainer *containers;        /* init containers in the order they run */
	const struct slu_kamount *level, *level_limits; /* pod-level requests and limits */
	const struct slu_kamount *overhead;
	uint16_t ncontainers, nlevel, nlevel_limits, noverhead;
};

/* spec.requests are what a pod made from the template asks for where no LimitRange and no
 * RuntimeClass adds anything: see slu_kpod_stand_in(). */
struct slu_ktemplate {
	const struct slu_kpair *labels, *annotations;
	uint16_t nlabels, nannotations;
	struct slu_kpodspec spec;
	struct slu_kdemand demand;
	const char *runtime_class;
};

/* ---- objects ---- */

enum {
	SLU_KOBJ_BAD_AMOUNT = 1 << 0, /* an amount was no quantity, negative, or beyond 64 bits */
	SLU_KOBJ_CUT = 1 << 1,        /* an array had more than 65535 elements */
};

/* Head of every object. */
struct slu_kobj {
	struct slu_strpool *pool;
	_Atomic uint32_t refs;
	uint32_t size; /* of the whole block */
	uint8_t kind;  /* enum slu_kkind */
	uint8_t flags; /* SLU_KOBJ_* */
	/* "" or the first field of the object that could not be taken, for an event:
	 * "PodGroupSpec.minMember is not an integer", "requests: cpu \"x\" is not a quantity". That
	 * field counts as absent. */
	const char *problem;
	struct slu_kmeta meta;
};

struct slu_knode {
	struct slu_kobj o;
	const struct slu_kamount *allocatable, *capacity; /* sorted by name */
	const struct slu_ktaint *taints;
	const struct slu_kcond *conds; /* without messages */
	uint16_t nallocatable, ncapacity, ntaints, nconds;
	bool unschedulable; /* cordoned */
	uint8_t ready;      /* enum slu_ktri of condition Ready */
};

enum slu_kphase {
	SLU_PHASE_UNKNOWN, /* also when absent */
	SLU_PHASE_PENDING,
	SLU_PHASE_RUNNING,
	SLU_PHASE_SUCCEEDED,
	SLU_PHASE_FAILED,
};

struct slu_kpod {
	struct slu_kobj o;
	struct slu_kpodspec spec;
	const char *reason;         /* status.reason: "Evicted", "OutOfcpu", ... */
	const char *nominated_node; /* status.nominatedNodeName */
	/* Why a container does not start: "ImagePullBackOff", ...; "" if all start. */
	const char *waits;
	/* condition PodScheduled */
	const char *sched_reason, *sched_message; /* "Unschedulable", "SchedulingGated", ... */
	int64_t sched_us;                         /* lastTransitionTime */
	int64_t start_us;                         /* status.startTime: the kubelet has it */
	int64_t finish_us; /* latest end of a container once all have ended */
	int32_t exit_code; /* first non-zero exit code of an app container, else 0 */
	int32_t restarts;  /* summed over app containers */
	uint8_t phase;     /* enum slu_kphase */
	uint8_t scheduled; /* enum slu_ktri of condition PodScheduled */
	uint8_t ready;     /* enum slu_ktri of condition Ready */
	uint8_t disrupted; /* enum slu_ktri of condition DisruptionTarget */
};

struct slu_knamespace {
	struct slu_kobj o;
	bool terminating; /* status.phase Terminating */
};

enum slu_kbinding {
	SLU_CLAIM_UNKNOWN,
	SLU_CLAIM_PENDING, /* claims */
	SLU_CLAIM_BOUND,
	SLU_CLAIM_LOST,
	SLU_CLAIM_AVAILABLE, /* volumes */
	SLU_CLAIM_RELEASED,
	SLU_CLAIM_FAILED,
};

struct slu_kpvc {
	struct slu_kobj o;
	const char *volume; /* spec.volumeName, "" while unbound */
	const char *storage_class;
	const char *const *access_modes;
	uint16_t naccess_modes;
	uint8_t phase; /* enum slu_kbinding */
};

struct slu_kpv {
	struct slu_kobj o;
	const char *storage_class;
	const char *claim_ns, *claim_name, *claim_uid; /* spec.claimRef */
	const char *driver, *handle;                   /* spec.csi; "": another kind of volume */
	/* nodeAffinity.required: one term must match; none: any node. */
	const struct slu_kterm *required;
	const char *const *access_modes;
	uint16_t nrequired, naccess_modes;
	uint8_t phase; /* enum slu_kbinding */
};

struct slu_kjob {
	struct slu_kobj o;
	struct slu_ktemplate tmpl;
	const struct slu_kcond *conds; /* Complete, Failed, Suspended, ... */
	const char *managed_by;
	const char *completed_indexes;     /* "0-3,7" */
	const char *failed_indexes;        /* the same */
	int64_t active_deadline_s;         /* or SLU_KNONE */
	int64_t start_us, completion_us;   /* status */
	int32_t parallelism, completions;  /* or SLU_KNONE; server defaults parallelism to 1 */
	int32_t backoff_limit;             /* or SLU_KNONE */
	int32_t active, succeeded, failed; /* status */
	int32_t ready, terminating;
	uint16_t nconds;
	bool indexed; /* completionMode Indexed */
	bool suspend;
	uint8_t complete, failed_cond; /* enum slu_ktri of conditions Complete and Failed */
	uint8_t suspended;             /* enum slu_ktri of condition Suspended */
};

struct slu_kreplicaset {
	struct slu_kobj o;
	struct slu_ktemplate tmpl;
	int32_t replicas; /* or SLU_KNONE */
	int32_t now, ready;
};

struct slu_kstatefulset {
	struct slu_kobj o;
	struct slu_ktemplate tmpl;
	const char *service;
	int32_t replicas; /* or SLU_KNONE */
	int32_t start;    /* first ordinal */
	int32_t now, ready;
	bool parallel; /* podManagementPolicy Parallel, else one by one */
	uint16_t nclaim_templates;
	const char *const *claim_templates; /* names; pod claims are "<template>-<pod>" */
};

struct slu_kdeployment {
	struct slu_kobj o;
	struct slu_ktemplate tmpl;
	int32_t replicas; /* or SLU_KNONE */
	int32_t now, updated, ready, available;
	bool paused;
};

struct slu_kpriorityclass {
	struct slu_kobj o;
	int32_t value;
	bool global_default;
	bool never_preempts;
};

struct slu_kstorageclass {
	struct slu_kobj o;
	const char *provisioner;
	bool wait_for_consumer; /* volumeBindingMode WaitForFirstConsumer */
};

/* A driver of volumes on one node. */
struct slu_kdriver {
	const char *name;
	int32_t count; /* how many volumes may be attached there; SLU_KNONE: no limit is known */
};

/* Limits of the volume drivers on the node of the same name. */
struct slu_kcsinode {
	struct slu_kobj o;
	const struct slu_kdriver *drivers;
	uint16_t ndrivers;
};

/* A volume is attached to a node, or is to be. */
struct slu_kattachment {
	struct slu_kobj o;
	const char *attacher, *node;
	const char *volume; /* name of the PersistentVolume, "" if it is in-line */
};

struct slu_kzone {
	const char *name, *type;               /* "node-0", "Node" */
	const struct slu_kamount *allocatable; /* sorted by name */
	uint16_t nallocatable;
};

/* The NUMA zones of the node of the same name, as its agent publishes them. */
struct slu_ktopology {
	struct slu_kobj o;
	const struct slu_kzone *zones;
	const char *const *policies;        /* topologyPolicies, of older agents */
	const struct slu_kpair *attributes; /* "topologyManagerPolicy": "single-numa-node", ... */
	uint16_t nzones, npolicies, nattributes;
};

struct slu_klease {
	struct slu_kobj o;
	const char *holder;
	int64_t acquire_us, renew_us;
	int32_t duration_s; /* 0 if absent */
	int32_t transitions;
};

/* PodGroup of any of the three groups; o.kind tells which. */
struct slu_kpodgroup {
	struct slu_kobj o;
	/* min_member: spec.minMember, native: schedulingPolicy.gang.minCount; SLU_KNONE if absent
	 */
	int32_t min_member;
	/* scheduling.x-k8s.io and scheduling.sigs.k8s.io */
	int32_t schedule_timeout_s; /* or SLU_KNONE */
	const struct slu_kamount *min_resources;
	const char *phase, *occupied_by; /* status */
	int64_t schedule_start_us, creation_us;
	int32_t running, succeeded, failed, scheduled;
	/* native */
	bool gang; /* schedulingPolicy.gang is there */
	bool has_priority;
	bool resource_claims; /* spec.resourceClaims is not empty */
	bool all;             /* v1beta1: disruptionMode.all is there */
	int32_t priority;
	const char *priority_class;
	const char *disruption_mode;              /* v1alpha2: "Pod", "PodGroup" */
	const char *const *topology;              /* schedulingConstraints.topology[].key */
	const char *workload, *workload_template; /* podGroupTemplateRef.workload, workloadRef */
	const struct slu_kcond *conds;
	uint16_t nmin_resources, ntopology, nconds;
};

struct slu_kfluxjob {
	struct slu_kobj o;
	const char *jobspec;       /* YAML text */
	const char *name;          /* of the wrapped object */
	const char *const *nodes;  /* spec.resources.nodes */
	const char *submit_status; /* status.submitStatus: "statusNew", "statusSubmit", ... */
	/* status, ours */
	const char *state, *message;
	const char *node_list, *places; /* distinct names; one for each slot, in order */
	int64_t job_id;                 /* jobid or SLU_KNONE */
	int64_t estimate_us, start_us;  /* startEstimate, startTime */
	int32_t position;               /* 0: none */
	const struct slu_kcond *conds;
	/* spec */
	int32_t type;       /* 0 pod, 1 job, 2 deployment, 3 replicaset, 4 statefulset */
	int32_t duration_s; /* 0 = unset */
	int32_t count;      /* spec.nodes: pods wanted */
	int32_t cores;
	uint16_t nnodes, nconds;
	bool reservation;
};

/* Defaults for containers: those of other types (Pod, PersistentVolumeClaim) have none. */
struct slu_klimitrange {
	struct slu_kobj o;
	const struct slu_kamount *requests; /* defaultRequest; of several items the last counts */
	uint16_t nrequests;
};

struct slu_kruntimeclass {
	struct slu_kobj o;
	const struct slu_kamount *overhead; /* overhead.podFixed */
	const struct slu_kpair *node_selector;
	const struct slu_ktoleration *tolerations;
	uint16_t noverhead, nnode_selector, ntolerations;
};

/* Room that is set aside for some users, for some time. */
struct slu_kreservation {
	struct slu_kobj o;
	const char *const *nodes;          /* by name; or */
	int32_t count;                     /* so many of them, */
	const char *node_label;            /* with this label ("key" or "key=value"); "": any */
	const struct slu_kamount *amounts; /* of each node; none: the whole node */
	int64_t start_us, end_us;
	const char *every; /* "24h": again and again; "": once */
	const char *const *users;
	/* status */
	const char *phase, *message;
	const char *const *held; /* the nodes it has */
	int64_t from_us, until_us;
	const struct slu_kcond *conds;
	uint16_t nnodes, namounts, nusers, nheld, nconds;
};

struct slu_kpartial {
	struct slu_kobj o;
};

/* ---- using them ---- */

/* One more reference; returns its argument. */
const struct slu_kobj *slu_kobj_ref(const struct slu_kobj *o);
/* Give a reference back.  NULL is fine. */
void slu_kobj_unref(const struct slu_kobj *o);
static inline void slu_kobj_unrefp(const struct slu_kobj **p)
{
	slu_kobj_unref(*p);
}

/* Typed views; the kind must fit (asserted), NULL stays NULL. */
#define SLU_KOBJ_AS(name, type, test)                                   \
	static inline const struct type *name(const struct slu_kobj *o) \
	{                                                               \
		assert(!o || (test));                                   \
		return (const struct type *)o;                          \
	}
SLU_KOBJ_AS(slu_knode, slu_knode, o->kind == SLU_KIND_NODE)
SLU_KOBJ_AS(slu_kpod, slu_kpod, o->kind == SLU_KIND_POD)
SLU_KOBJ_AS(slu_knamespace, slu_knamespace, o->kind == SLU_KIND_NAMESPACE)
SLU_KOBJ_AS(slu_kpvc, slu_kpvc, o->kind == SLU_KIND_PVC)
SLU_KOBJ_AS(slu_kpv, slu_kpv, o->kind == SLU_KIND_PV)
SLU_KOBJ_AS(slu_kjob, slu_kjob, o->kind == SLU_KIND_JOB)
SLU_KOBJ_AS(slu_kreplicaset, slu_kreplicaset, o->kind == SLU_KIND_REPLICASET)
SLU_KOBJ_AS(slu_kstatefulset, slu_kstatefulset, o->kind == SLU_KIND_STATEFULSET)
SLU_KOBJ_AS(slu_kdeployment, slu_kdeployment, o->kind == SLU_KIND_DEPLOYMENT)
SLU_KOBJ_AS(slu_kpriorityclass, slu_kpriorityclass, o->kind == SLU_KIND_PRIORITYCLASS)
SLU_KOBJ_AS(slu_kstorageclass, slu_kstorageclass, o->kind == SLU_KIND_STORAGECLASS)
SLU_KOBJ_AS(slu_klease, slu_klease, o->kind == SLU_KIND_LEASE)
SLU_KOBJ_AS(slu_kpodgroup, slu_kpodgroup,
	    o->kind == SLU_KIND_PODGROUP_X || o->kind == SLU_KIND_PODGROUP_SIGS ||
		    slu_kkind_is_native_group(o->kind))
SLU_KOBJ_AS(slu_kfluxjob, slu_kfluxjob, o->kind == SLU_KIND_FLUXJOB)
SLU_KOBJ_AS(slu_klimitrange, slu_klimitrange, o->kind == SLU_KIND_LIMITRANGE)
SLU_KOBJ_AS(slu_kruntimeclass, slu_kruntimeclass, o->kind == SLU_KIND_RUNTIMECLASS)
SLU_KOBJ_AS(slu_kreservation, slu_kreservation, o->kind == SLU_KIND_RESERVATION)
SLU_KOBJ_AS(slu_kcsinode, slu_kcsinode, o->kind == SLU_KIND_CSINODE)
SLU_KOBJ_AS(slu_kattachment, slu_kattachment, o->kind == SLU_KIND_ATTACHMENT)
SLU_KOBJ_AS(slu_ktopology, slu_ktopology, o->kind == SLU_KIND_TOPOLOGY)
SLU_KOBJ_AS(slu_kpartial, slu_kpartial, o->kind == SLU_KIND_PARTIAL)

/* Value of a key in a sorted array of pairs (labels, annotations, selectors); NULL if absent. */
const char *slu_kpair_get(const struct slu_kpair *p, uint16_t n, const char *key);
static inline const char *slu_kmeta_label(const struct slu_kmeta *m, const char *key)
{
	return slu_kpair_get(m->labels, m->nlabels, key);
}
static inline const char *slu_kmeta_annotation(const struct slu_kmeta *m, const char *key)
{
	return slu_kpair_get(m->annotations, m->nannotations, key);
}
/* Amount of a resource in an array sorted by name; 0 if absent. */
int64_t slu_kamount_get(const struct slu_kamount *a, uint16_t n, const char *name);
/* The owner with controller: true, or NULL. */
const struct slu_kowner *slu_kmeta_controller(const struct slu_kmeta *m);
/* The condition of that type, or NULL. */
const struct slu_kcond *slu_kcond_get(const struct slu_kcond *c, uint16_t n, const char *type);
/* Whether the pod has ended and no longer uses any resource. */
static inline bool slu_kpod_ended(const struct slu_kpod *p)
{
	return p->phase == SLU_PHASE_SUCCEEDED || p->phase == SLU_PHASE_FAILED;
}
static inline bool slu_kstr_is(const char *s, const char *literal)
{
	return strcmp(s, literal) == 0;
}

/* The objects from which admission adds to a pod when it is created. */
struct slu_kadmission {
	int32_t priority;                   /* of its class, where the template has no number */
	const struct slu_kruntimeclass *rc; /* the template's; NULL: none, or it is not there */
	/* Requests that the LimitRanges of the namespace give to a container without them. */
	const struct slu_kamount *missing;
	uint16_t nmissing;
};

/* A pod as `from` would make it from its template and the server would admit it: named and
 * numbered (uid) as the owner, pending, with the owner as its controller.  NULL: no memory. */
const struct slu_kobj *slu_kpod_stand_in(const struct slu_kobj *from, const struct slu_ktemplate *t,
					 const struct slu_kadmission *a);

/* A copy of a pod with another name, uid, node, phase and start (0 before it runs).  NULL: no memory. */
const struct slu_kobj *slu_kpod_like(const struct slu_kpod *like, const char *name, const char *uid,
				     const char *node, enum slu_kphase phase, int64_t start_us);

/* One JSON object with every field that is kept, keys in a fixed order: for tests, logs, debugging.
 */
struct slu_buf;
int slu_kobj_dump(const struct slu_kobj *o, struct slu_buf *out);
