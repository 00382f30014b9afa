/* Pods and templates of pods: the decoded form is larger than the object that is kept.
 *
 * Field numbers: k8s.io/api core/v1 generated.proto, v0.36. */
#include "base/qty.h"
#include "kube/codec_internal.h"
#include "kube/requests.h"

#define SEEN_PRIORITY 1u
#define CS_TERMINATED 1u
#define CS_RESOURCES  2u
#define POD_RESOURCES 1u

struct kraw_port {
	const char *ip;
	int32_t host, container; /* container: of templates only */
	uint8_t proto;
};

struct kraw_volume {
	struct kslice name;
	const char *claim;
	uint32_t bits; /* SLU_POD_EPHEMERAL_CLAIM, SLU_POD_INLINE_DISK */
};

struct kraw_spread {
	uint8_t soft;
};

struct kraw_cond {
	struct kslice type, reason, message;
	int64_t since_us;
	uint8_t status;
};

struct kraw_cstatus {
	struct kslice name, waits;
	const struct slu_kamount *allocated, *requests;
	int64_t finished_us;
	int32_t restarts, exit_code;
	uint16_t nallocated, nrequests;
	uint32_t bits; /* CS_* */
};

static const struct kword restart_words[] = {
	{ "Always", SLU_RESTART_ALWAYS },
	{ "OnFailure", SLU_RESTART_ON_FAILURE },
	{ "Never", SLU_RESTART_NEVER },
	{ NULL, SLU_RESTART_ALWAYS },
};
static const struct kword sidecar_words[] = { { "Always", 1 }, { NULL, 0 } };
static const struct kword soft_words[] = { { "ScheduleAnyway", 1 }, { NULL, 0 } };
static const struct kword never_words[] = { { "Never", 1 }, { NULL, 0 } };
static const struct kword proto_words[] = {
	{ "TCP", SLU_PROTO_TCP }, { "UDP", SLU_PROTO_UDP },  { "SCTP", SLU_PROTO_SCTP },
	{ "", SLU_PROTO_TCP },    { NULL, SLU_PROTO_OTHER },
};
static const struct kword tolop_words[] = {
	{ "Equal", SLU_TOL_EQUAL }, { "", SLU_TOL_EQUAL }, { "Exists", SLU_TOL_EXISTS },
	{ "Lt", SLU_TOL_LT },       { "Gt", SLU_TOL_GT },  { NULL, SLU_TOL_OTHER },
};
static const struct kword qos_words[] = { { "Guaranteed", 1 }, { NULL, 0 } };
static const struct kword phase_words[] = {
	{ "Running", SLU_PHASE_RUNNING },     { "Pending", SLU_PHASE_PENDING },
	{ "Succeeded", SLU_PHASE_SUCCEEDED }, { "Failed", SLU_PHASE_FAILED },
	{ NULL, SLU_PHASE_UNKNOWN },
};

/* A struct of one string is an array of strings. */
struct named {
	const char *name;
};
KMSG(gate_msg, "PodSchedulingGate", named, [1] = K_STR("name", named, name));

KMSG_MAPS(container_res_msg, "ResourceRequirements",
	  kraw_container, [2] = K_AMOUNTS("requests", kraw_container, requests));
KMSG(port_msg, "ContainerPort", kraw_port, [2] = K_I32("hostPort", kraw_port, host),
     [4] = K_WORD("protocol", kraw_port, proto, proto_words), [5] = K_STR("hostIP", kraw_port, ip));
KMSG(container_msg, "Container", kraw_container, [1] = K_SLICE("name", kraw_container, name),
     [6] = K_MSGS("ports", kraw_container, ports, port_msg),
     [8] = K_PART("resources", container_res_msg),
     [24] = K_WORD("restartPolicy", kraw_container, sidecar, sidecar_words));
/* In a template the server has not yet filled in what limits and hostNetwork imply. */
KMSG_MAPS(tmpl_container_res_msg, "ResourceRequirements",
	  kraw_container, [1] = K_AMOUNTS("limits", kraw_container, limits),
	  [2] = K_AMOUNTS("requests", kraw_container, requests));
KMSG(tmpl_port_msg, "ContainerPort", kraw_port, [2] = K_I32("hostPort", kraw_port, host),
     [3] = K_I32("containerPort", kraw_port, container),
     [4] = K_WORD("protocol", kraw_port, proto, proto_words), [5] = K_STR("hostIP", kraw_port, ip));
KMSG(tmpl_container_msg, "Container", kraw_container, [1] = K_SLICE("name", kraw_container, name),
     [6] = K_MSGS("ports", kraw_container, ports, tmpl_port_msg),
     [8] = K_PART("resources", tmpl_container_res_msg),
     [24] = K_WORD("restartPolicy", kraw_container, sidecar, sidecar_words));

KMSG(claim_msg, "PersistentVolumeClaimVolumeSource",
     kraw_volume, [1] = K_STR("claimName", kraw_volume, claim));
#define DISK(j) K_HAS(j, kraw_volume, bits, SLU_POD_INLINE_DISK)
KMSG(source_msg, "VolumeSource", kraw_volume, [3] = DISK("gcePersistentDisk"),
     [4] = DISK("awsElasticBlockStore"), [8] = DISK("iscsi"),
     [10] = K_PART("persistentVolumeClaim", claim_msg), [11] = DISK("rbd"), [13] = DISK("cinder"),
     [17] = DISK("fc"), [20] = DISK("vsphereVolume"), [22] = DISK("azureDisk"),
     [29] = K_HAS("ephemeral", kraw_volume, bits, SLU_POD_EPHEMERAL_CLAIM));
KMSG(volume_msg, "Volume",
     kraw_volume, [1] = K_SLICE("name", kraw_volume, name), [2] = K_INLINE(source_msg));

static const struct slu_ktoleration toleration_defaults = { .seconds = SLU_KNONE };
KMSG_(, slu_ktoleration_msg, "Toleration", slu_ktoleration, false,
      &toleration_defaults, [1] = K_STR("key", slu_ktoleration, key),
      [2] = K_WORD("operator", slu_ktoleration, op, tolop_words),
      [3] = K_STR("value", slu_ktoleration, value),
      [4] = K_WORD("effect", slu_ktoleration, effect, slu_keffect_words),
      [5] = K_I64("tolerationSeconds", slu_ktoleration, seconds));

KMSG(spread_msg, "TopologySpreadConstraint",
     kraw_spread, [3] = K_WORD("whenUnsatisfiable", kraw_spread, soft, soft_words));

#define REQUIRED  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
KMSG(selector_msg, "NodeSelector",
     kraw_podspec, [1] = K_MSGS("nodeSelectorTerms", slu_kpodspec, required, slu_kterm_msg));
KMSG(preferred_msg, "PreferredSchedulingTerm",
     slu_kpreferred, [1] = K_I32("weight", slu_kpreferred, weight),
     [2] = K_MSG("preference", slu_kpreferred, term, slu_kterm_msg));
KMSG(node_affinity_msg, "NodeAffinity", kraw_podspec,
     [1] = { .json = REQUIRED,
	     .type = KF_MSG,
	     .sub = &selector_msg,
	     .noff = offsetof(struct slu_kpodspec, flags),
	     .bit = SLU_POD_NODE_AFFINITY },
     [2] = K_MSGS(PREFERRED, slu_kpodspec, preferred, preferred_msg));
KMSG(pod_affinity_msg, "PodAffinity",
     kraw_podspec, [1] = K_HAS(REQUIRED, slu_kpodspec, flags, SLU_POD_AFFINITY_REQUIRED),
     [2] = K_HAS(PREFERRED, slu_kpodspec, flags, SLU_POD_AFFINITY_PREFERRED));
KMSG_MAPS(anti_pods_msg, "LabelSelector",
	  slu_kanti, [1] = K_PAIRS("matchLabels", slu_kanti, labels),
	  [2] = K_MSGS("matchExpressions", slu_kanti, exprs, slu_kexpr_msg));
KMSG_MAPS(anti_spaces_msg, "LabelSelector",
	  slu_kanti, [1] = K_PAIRS("matchLabels", slu_kanti, ns_labels),
	  [2] = K_MSGS("matchExpressions", slu_kanti, ns_exprs, slu_kexpr_msg));
KMSG(anti_msg, "PodAffinityTerm", slu_kanti,
     [1] = { .json = "labelSelector",
	     .type = KF_MSG,
	     .sub = &anti_pods_msg,
	     .noff = offsetof(struct slu_kanti, bits),
	     .bit = SLU_ANTI_SELECTS },
     [2] = K_STRS("namespaces", slu_kanti, namespaces),
     [3] = K_STR("topologyKey", slu_kanti, topology),
     [4] = { .json = "namespaceSelector",
	     .type = KF_MSG,
	     .sub = &anti_spaces_msg,
	     .noff = offsetof(struct slu_kanti, bits),
	     .bit = SLU_ANTI_NAMESPACES });
KMSG(pod_anti_msg, "PodAntiAffinity",
     kraw_podspec, [1] = K_MSGS(REQUIRED, slu_kpodspec, anti, anti_msg),
     [2] = K_HAS(PREFERRED, slu_kpodspec, flags, SLU_POD_ANTI_PREFERRED));
KMSG(affinity_msg, "Affinity", kraw_podspec, [1] = K_PART("nodeAffinity", node_affinity_msg),
     [2] = K_PART("podAffinity", pod_affinity_msg), [3] = K_PART("podAntiAffinity", pod_anti_msg));
KMSG(group_msg, "PodSchedulingGroup",
     kraw_podspec, [1] = K_STR("podGroupName", slu_kpodspec, scheduling_group));
KMSG_MAPS(pod_res_msg, "ResourceRequirements",
	  kraw_podspec, [1] = K_AMOUNTS("limits", kraw_podspec, pod_limits),
	  [2] = K_AMOUNTS("requests", kraw_podspec, pod_requests));

/* kraw_podspec begins with slu_kpodspec, so offsets in either are the same. */
#define PODSPEC_FIELDS(container)                                                      \
	[1] = K_MSGS("volumes", kraw_podspec, volumes, volume_msg),                    \
	[2] = K_MSGS("containers", kraw_podspec, containers, container),               \
	[3] = K_WORD("restartPolicy", slu_kpodspec, restart, restart_words),           \
	[4] = K_I64("terminationGracePeriodSeconds", slu_kpodspec, grace_s),           \
	[5] = K_I64("activeDeadlineSeconds", slu_kpodspec, active_deadline_s),         \
	[7] = K_PAIRS("nodeSelector", slu_kpodspec, node_selector),                    \
	[10] = K_STR("nodeName", slu_kpodspec, node),                                  \
	[11] = K_BOOL("hostNetwork", kraw_podspec, host_network),                      \
	[18] = K_PART("affinity", affinity_msg),                                       \
	[19] = K_STR("schedulerName", slu_kpodspec, scheduler),                        \
	[20] = K_MSGS("initContainers", kraw_podspec, inits, container),               \
	[22] = K_MSGS("tolerations", slu_kpodspec, tolerations, slu_ktoleration_msg),  \
	[24] = K_STR("priorityClassName", slu_kpodspec, priority_class),               \
	[25] = { .json = "priority",                                                   \
		 .type = KF_I32,                                                       \
		 KAT(slu_kpodspec, priority),                                          \
		 .noff = offsetof(struct kraw_podspec, seen),                          \
		 .bit = SEEN_PRIORITY },                                               \
	[31] = K_WORD("preemptionPolicy", kraw_podspec, never_preempts, never_words),  \
	[32] = K_AMOUNTS("overhead", kraw_podspec, overhead),                          \
	[33] = K_MSGS("topologySpreadConstraints", kraw_podspec, spreads, spread_msg), \
	[38] = K_MSGS("schedulingGates", slu_kpodspec, gates, gate_msg),               \
	[39] = K_HAS("resourceClaims", slu_kpodspec, flags, SLU_POD_RESOURCE_CLAIMS),  \
	[40] = K_PART("resources", pod_res_msg), [43] = K_PART("schedulingGroup", group_msg)
KMSG_MAPS(podspec_msg, "PodSpec", kraw_podspec, PODSPEC_FIELDS(container_msg));
KMSG_MAPS(tmpl_podspec_msg, "PodSpec", kraw_podspec, PODSPEC_FIELDS(tmpl_container_msg),
	  [29] = K_STR("runtimeClassName", kraw_podspec, runtime_class));

KMSG_PUB(slu_ktemplate_msg, "PodTemplateSpec",
	 kraw_template, [1] = K_MSG("metadata", kraw_template, meta, slu_kmeta_msg),
	 [2] = K_MSG("spec", kraw_template, spec, tmpl_podspec_msg));

KMSG(cond_msg, "PodCondition", kraw_cond, [1] = K_SLICE("type", kraw_cond, type),
     [2] = K_WORD("status", kraw_cond, status, slu_ktri_words),
     [4] = K_TIME("lastTransitionTime", kraw_cond, since_us),
     [5] = K_SLICE("reason", kraw_cond, reason), [6] = K_SLICE("message", kraw_cond, message));
KMSG(terminated_msg, "ContainerStateTerminated",
     kraw_cstatus, [1] = K_I32("exitCode", kraw_cstatus, exit_code),
     [6] = K_TIME("finishedAt", kraw_cstatus, finished_us));
KMSG(waiting_msg, "ContainerStateWaiting",
     kraw_cstatus, [1] = K_SLICE("reason", kraw_cstatus, waits));
KMSG(state_msg, "ContainerState", kraw_cstatus, [1] = K_PART("waiting", waiting_msg),
     [3] = { .json = "terminated",
	     .type = KF_MSG,
	     .sub = &terminated_msg,
	     .noff = offsetof(struct kraw_cstatus, bits),
	     .bit = CS_TERMINATED });
KMSG_MAPS(status_res_msg, "ResourceRequirements",
	  kraw_cstatus, [2] = K_AMOUNTS("requests", kraw_cstatus, requests));
KMSG_MAPS(cstatus_msg, "ContainerStatus", kraw_cstatus, [1] = K_SLICE("name", kraw_cstatus, name),
	  [2] = K_PART("state", state_msg), [5] = K_I32("restartCount", kraw_cstatus, restarts),
	  [10] = K_AMOUNTS("allocatedResources", kraw_cstatus, allocated),
	  [11] = { .json = "resources",
		   .type = KF_MSG,
		   .sub = &status_res_msg,
		   .noff = offsetof(struct kraw_cstatus, bits),
		   .bit = CS_RESOURCES });
KMSG_MAPS(pod_actual_msg, "ResourceRequirements",
	  kraw_pod, [2] = K_AMOUNTS("requests", kraw_pod, actual));
KMSG_MAPS(status_msg, "PodStatus", kraw_pod, [1] = K_WORD("phase", slu_kpod, phase, phase_words),
	  [2] = K_MSGS("conditions", kraw_pod, conds, cond_msg),
	  [4] = K_STR("reason", slu_kpod, reason), [7] = K_TIME("startTime", slu_kpod, start_us),
	  [8] = K_MSGS("containerStatuses", kraw_pod, cstatus, cstatus_msg),
	  [9] = K_WORD("qosClass", kraw_pod, guaranteed, qos_words),
	  [10] = K_MSGS("initContainerStatuses", kraw_pod, istatus, cstatus_msg),
	  [11] = K_STR("nominatedNodeName", slu_kpod, nominated_node),
	  [19] = K_AMOUNTS("allocatedResources", kraw_pod, allocated),
	  [20] = { .json = "resources",
		   .type = KF_MSG,
		   .sub = &pod_actual_msg,
		   .noff = offsetof(struct kraw_pod, bits),
		   .bit = POD_RESOURCES });
KMSG_PUB(slu_kpod_msg, "Pod", kraw_pod, [1] = K_MSG("metadata", slu_kobj, meta, slu_kmeta_msg),
	 [2] = K_MSG("spec", kraw_pod, spec, podspec_msg), [3] = K_PART("status", status_msg));

const struct kraw_pod slu_kraw_pod_defaults = {
	.spec = KRAW_PODSPEC_DEFAULTS,
	.p = { .scheduled = SLU_TRI_ABSENT, .ready = SLU_TRI_ABSENT, .disrupted = SLU_TRI_ABSENT },
};

/* ---- sums -------------------------------------------------------------------------------------
 */

/* Find the status of a container by its name.  The kubelet keeps statuses in order of name, so
 * with many containers only the same position is compared. */
static const struct kraw_cstatus *status_of(const struct kraw_container *k, uint16_t at,
					    const struct kraw_cstatus *st, uint16_t n)
{
	if (n > 64) {
		st += SLU_MIN(at, n - 1);
		n = 1;
	}
	for (uint16_t i = 0; i < n; i++) {
		if (st[i].name.n == k->name.n && memcmp(st[i].name.p, k->name.p, k->name.n) == 0)
			return &st[i];
	}
	return NULL;
}

/* A list that is being put together in scratch memory. */
struct amounts {
	struct slu_kamount *a;
	uint16_t n;
};

static int raise_to(struct slu_kcodec *c, struct amounts *s, const struct slu_kamount *a,
		    uint16_t n)
{
	for (uint16_t i = 0; i < n; i++) {
		struct slu_kamount *t = NULL;
		bool full = false;

		for (uint16_t k = 0; k < s->n && !t; k++)
			t = s->a[k].name == a[i].name ? &s->a[k] : NULL;
		if (!t) {
			t = slu_kdec_push(c, &s->a, &s->n, sizeof *t, &full);
			if (!t)
				return full ? 0 : -ENOMEM;
			*t = a[i];
		}
		t->amount = SLU_MAX(t->amount, a[i].amount);
	}
	return 0;
}

/* In-place resize: the amounts requested (unless `infeasible`: they can never be met), those that the kubelet
 * has allocated and those in force; the largest counts. */
struct resize {
	const struct slu_kamount *asked, *allocated, *actual;
	uint16_t nasked, nallocated, nactual;
	bool infeasible;
};

static int largest(struct slu_kcodec *c, const struct resize *z, struct amounts *out)
{
	int rc = z->infeasible ? 0 : raise_to(c, out, z->asked, z->nasked);

	if (!rc)
		rc = raise_to(c, out, z->allocated, z->nallocated);
	return rc ? rc : raise_to(c, out, z->actual, z->nactual);
}

/* Condition PodResizePending with reason Infeasible. */
static bool resize_infeasible(const struct kraw_pod *pod)
{
	for (uint16_t i = 0; pod && i < pod->nconds; i++) {
		if (kslice_is(pod->conds[i].type, "PodResizePending"))
			return kslice_is(pod->conds[i].reason, "Infeasible");
	}
	return false;
}

static bool has_amount(const struct slu_kamount *a, uint16_t n, const char *name)
{
	for (uint16_t i = 0; i < n; i++)
		if (a[i].name == name)
			return true;
	return false;
}

/* The amounts that a container requests or holds; in a template, a limit counts where no request is given. */
static int demand_of(struct slu_kcodec *c, const struct kraw_container *k,
		     const struct kraw_cstatus *st, bool infeasible, struct slu_kcontainer *out)
{
	struct amounts all = { 0 };
	int rc = 0;

	out->requests = k->requests;
	out->nrequests = k->nrequests;
	if (st && st->bits & CS_RESOURCES) {
		struct resize z = { .asked = k->requests,
				    .nasked = k->nrequests,
				    .allocated = st->allocated,
				    .nallocated = st->nallocated,
				    .actual = st->requests,
				    .nactual = st->nrequests,
				    .infeasible = infeasible };

		rc = largest(c, &z, &all);
	} else if (k->nlimits) {
		rc = raise_to(c, &all, k->requests, k->nrequests);
		for (uint16_t i = 0; !rc && i < k->nlimits; i++)
			if (!has_amount(k->requests, k->nrequests, k->limits[i].name))
				rc = raise_to(c, &all, &k->limits[i], 1);
	} else {
		return 0;
	}
	out->requests = all.a;
	out->nrequests = all.n;
	return rc;
}

static void count_whole(struct kraw_podspec *raw, const struct slu_kcontainer *k)
{
	for (uint16_t i = 0; i < k->nrequests; i++) {
		const struct slu_kamount *a = &k->requests[i];

		if (strcmp(a->name, "cpu") == 0 &&
		    slu_add_i64(raw->s.whole_cpus, a->amount / 1000 + !!(a->amount % 1000),
				&raw->s.whole_cpus) < 0)
			raw->s.whole_cpus = INT64_MAX;
	}
}

static int64_t amount_of(const struct slu_kamount *a, uint16_t n, const char *name)
{
	for (uint16_t i = 0; i < n; i++)
		if (!strcmp(a[i].name, name))
			return a[i].amount;
	return 0;
}

/* Whether a pod of the template will be of QoS class Guaranteed: limits of cpu and memory everywhere, and
 * no request below its limit. */
static bool is_guaranteed(const struct kraw_container *k, uint16_t n)
{
	static const char *const name[] = { "cpu", "memory" };

	for (uint16_t i = 0; i < n; i++)
		for (size_t j = 0; j < SLU_LEN(name); j++) {
			int64_t limit = amount_of(k[i].limits, k[i].nlimits, name[j]);
			int64_t asked = amount_of(k[i].requests, k[i].nrequests, name[j]);

			if (!limit || (asked && asked != limit))
				return false;
		}
	return true;
}

/* Every container that lives on asks for whole processors. */
static bool asks_whole_cpus(const struct slu_kdemand *d)
{
	for (uint16_t i = 0; i < d->ncontainers; i++) {
		const struct slu_kcontainer *k = &d->containers[i];
		int64_t cpu = amount_of(k->requests, k->nrequests, "cpu");

		if (k->role != SLU_CONTAINER_INIT && (!cpu || cpu % 1000))
			return false;
	}
	return d->ncontainers;
}

static bool sets_level(const struct slu_kamount *a, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		if (!strcmp(a[i].name, "cpu") || !strcmp(a[i].name, "memory") ||
		    !strncmp(a[i].name, "hugepages-", 10))
			return true;
	return false;
}

static int sum_requests(struct slu_kcodec *c, struct kraw_podspec *raw, const struct kraw_pod *pod,
			struct slu_kdemand *d)
{
	bool infeasible = resize_infeasible(pod), bad = false;
	size_t n = (size_t)raw->ncontainers + raw->ninits;
	struct slu_kcontainer *k = slu_arena_alloc(&c->scratch, (n + 1) * sizeof *k);
	struct slu_kamount *out = slu_arena_alloc(&c->scratch, SLU_KREQUESTS_MAX * sizeof *out);
	int rc = 0;

	if (!k || !out)
		return -ENOMEM;
	n = SLU_MIN(n, (size_t)UINT16_MAX);
	memset(k, 0, (n + 1) * sizeof *k);
	for (uint16_t i = 0; rc == 0 && i < n; i++) {
		bool app = i < raw->ncontainers;
		uint16_t at = app ? i : i - raw->ncontainers;
		const struct kraw_container *from = app ? &raw->containers[at] : &raw->inits[at];
		const struct kraw_cstatus *st = NULL;

		/* of init containers only sidecars live on and can be resized */
		if (pod && app)
			st = status_of(from, at, pod->cstatus, pod->ncstatus);
		else if (pod && from->sidecar)
			st = status_of(from, at, pod->istatus, pod->nistatus);
		k[i].role = app             ? SLU_CONTAINER_APP
			    : from->sidecar ? SLU_CONTAINER_SIDECAR
					    : SLU_CONTAINER_INIT;
		rc = demand_of(c, from, st, infeasible, &k[i]);
		if (app)
			count_whole(raw, &k[i]);
	}
	*d = (struct slu_kdemand){ .containers = k,
				   .ncontainers = (uint16_t)n,
				   .level = raw->pod_requests,
				   .nlevel = raw->npod_requests,
				   .level_limits = raw->pod_limits,
				   .nlevel_limits = raw->npod_limits,
				   .overhead = raw->overhead,
				   .noverhead = raw->noverhead };
	if (rc == 0 && pod && pod->bits & POD_RESOURCES && raw->npod_requests) {
		struct amounts level = { 0 };
		struct resize z = { .asked = raw->pod_requests,
				    .nasked = raw->npod_requests,
				    .allocated = pod->allocated,
				    .nallocated = pod->nallocated,
				    .actual = pod->actual,
				    .nactual = pod->nactual,
				    .infeasible = infeasible };

		rc = largest(c, &z, &level);
		d->level = level.a;
		d->nlevel = level.n;
	}
	if (rc < 0)
		return rc;
	if (sets_level(d->level, d->nlevel))
		raw->s.flags |= SLU_POD_LEVEL_RESOURCES;
	if ((pod ? pod->guaranteed
		 : is_guaranteed(raw->containers, raw->ncontainers) &&
			     is_guaranteed(raw->inits, raw->ninits)) &&
	    asks_whole_cpus(d))
		raw->s.flags |= SLU_POD_PINS_CPUS;
	raw->s.nrequests = slu_krequests(d, NULL, 0, out, &bad);
	raw->s.requests = out;
	if (bad)
		c->flags |= SLU_KOBJ_BAD_AMOUNT;
	return 0;
}

/* ---- the rest of a specification --------------------------------------------------------------
 */

static int add_ports(struct slu_kcodec *c, struct kraw_podspec *raw, const struct kraw_container *k)
{
	for (uint16_t i = 0; i < k->nports; i++) {
		struct slu_khostport *e;
		bool full = false;

		int32_t port = k->ports[i].host;

		if (port <= 0 && raw->host_network)
			port = k->ports[i].container;
		if (port <= 0)
			continue;
		e = slu_kdec_push(c, &raw->s.host_ports, &raw->s.nhost_ports, sizeof *e, &full);
		if (!e)
			return full ? 0 : -ENOMEM;
		*e = (struct slu_khostport){ k->ports[i].ip, port, k->ports[i].proto };
	}
	return 0;
}

/* An ephemeral volume's claim is named after pod and volume. */
static int add_claims(struct slu_kcodec *c, struct kraw_podspec *raw, const char *pod)
{
	for (uint16_t i = 0; i < raw->nvolumes; i++) {
		const struct kraw_volume *v = &raw->volumes[i];
		const char *claim = v->claim, **e;
		bool full = false;

		raw->s.flags |= v->bits;
		if (v->bits & SLU_POD_EPHEMERAL_CLAIM && pod) {
			size_t n = strlen(pod) + 1 + v->name.n;
			char *name = slu_arena_alloc(&c->scratch, n + 1);

			if (!name)
				return -ENOMEM;
			memcpy(mempcpy(name, pod, strlen(pod)), "-", 1);
			if (v->name.n)
				memcpy(name + n - v->name.n, v->name.p, v->name.n);
			claim = slu_kdec_str(c, name, n);
			if (!claim)
				return -ENOMEM;
		}
		if (!claim)
			continue;
		e = slu_kdec_push(c, &raw->s.claims, &raw->s.nclaims, sizeof *e, &full);
		if (!e)
			return full ? 0 : -ENOMEM;
		*e = claim;
	}
	return 0;
}

static int finish_spec(struct slu_kcodec *c, struct kraw_podspec *raw, const struct kraw_pod *pod,
		       struct slu_kdemand *demand)
{
	const char *name = pod ? pod->p.o.meta.name : NULL;
	int rc = 0;

	for (uint16_t i = 0; i < raw->nspreads; i++)
		raw->s.flags |= raw->spreads[i].soft ? SLU_POD_SPREAD_SOFT : SLU_POD_SPREAD_HARD;
	if (raw->host_network)
		raw->s.flags |= SLU_POD_HOST_NETWORK;
	if (raw->s.nanti)
		raw->s.flags |= SLU_POD_ANTI_REQUIRED;
	if (raw->never_preempts)
		raw->s.flags |= SLU_POD_NEVER_PREEMPTS;
	raw->s.has_priority = raw->seen & SEEN_PRIORITY;
	for (uint16_t i = 0; rc == 0 && i < raw->ncontainers; i++)
		rc = add_ports(c, raw, &raw->containers[i]);
	for (uint16_t i = 0; rc == 0 && i < raw->ninits; i++) {
		if (raw->inits[i].sidecar)
			rc = add_ports(c, raw, &raw->inits[i]);
	}
	if (rc == 0)
		rc = add_claims(c, raw, name && name[0] ? name : NULL);
	return rc < 0 ? rc : sum_requests(c, raw, pod, demand);
}

int slu_kdec_finish_template(struct slu_kcodec *c, struct kraw_template *raw,
			     struct slu_ktemplate *out)
{
	struct slu_kdemand demand;
	int rc = finish_spec(c, &raw->spec, NULL, &demand);

	if (rc < 0)
		return rc;
	*out = (struct slu_ktemplate){
		.labels = raw->meta.labels,
		.nlabels = raw->meta.nlabels,
		.annotations = raw->meta.annotations,
		.nannotations = raw->meta.nannotations,
		.spec = raw->spec.s,
		.demand = demand,
		.runtime_class = raw->spec.runtime_class,
	};
	return 0;
}

static int finish_conditions(struct slu_kcodec *c, struct kraw_pod *raw)
{
	struct slu_kpod *p = &raw->p;

	for (uint16_t i = 0; i < raw->nconds; i++) {
		const struct kraw_cond *k = &raw->conds[i];

		if (kslice_is(k->type, "Ready")) {
			p->ready = k->status;
		} else if (kslice_is(k->type, "DisruptionTarget")) {
			p->disrupted = k->status;
		} else if (kslice_is(k->type, "PodScheduled")) {
			p->scheduled = k->status;
			p->sched_us = k->since_us;
			if (k->status == SLU_TRI_TRUE)
				continue;
			p->sched_reason = slu_kdec_str(c, k->reason.p, k->reason.n);
			p->sched_message = slu_kdec_str(c, k->message.p, k->message.n);
			if (!p->sched_reason || !p->sched_message)
				return -ENOMEM;
		}
	}
	return 0;
}

/* The reason why a container does not start; the usual steps of a start are no reasons. */
static int finish_waits(struct slu_kcodec *c, struct slu_kpod *p, const struct kraw_cstatus *s,
			uint16_t n)
{
	for (uint16_t i = 0; i < n && (!p->waits || !*p->waits); i++) {
		const struct kslice *w = &s[i].waits;

		if (!w->n || kslice_is(*w, "ContainerCreating") || kslice_is(*w, "PodInitializing"))
			continue;
		p->waits = slu_kdec_str(c, w->p, w->n);
		if (!p->waits)
			return -ENOMEM;
	}
	return 0;
}

int slu_kdec_finish_pod(struct slu_kcodec *c, void *raw_pod)
{
	struct kraw_pod *raw = raw_pod;
	struct slu_kpod *p = &raw->p;
	int64_t last = 0, restarts = 0;
	bool all = raw->ncstatus > 0;
	struct slu_kdemand demand;
	int rc;

	for (uint16_t i = 0; i < raw->ncstatus; i++) {
		const struct kraw_cstatus *s = &raw->cstatus[i];

		restarts += s->restarts;
		all &= s->bits & CS_TERMINATED;
		last = SLU_MAX(last, s->finished_us);
		if (s->bits & CS_TERMINATED && s->exit_code && !p->exit_code)
			p->exit_code = s->exit_code;
	}
	p->restarts = (int32_t)SLU_MIN(SLU_MAX(restarts, (int64_t)0), (int64_t)INT32_MAX);
	p->finish_us = all ? last : 0;
	rc = finish_conditions(c, raw);
	if (rc == 0)
		rc = finish_waits(c, p, raw->istatus, raw->nistatus);
	if (rc == 0)
		rc = finish_waits(c, p, raw->cstatus, raw->ncstatus);
	if (rc == 0)
		rc = finish_spec(c, &raw->spec, raw, &demand);
	p->spec = raw->spec.s;
	return rc;
}
