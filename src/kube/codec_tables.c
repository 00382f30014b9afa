/* The fields we read, by kind: JSON name and protobuf number side by side.
 *
 * Numbers: generated.proto of k8s.io/apimachinery pkg/apis/meta/v1 (ObjectMeta, ListMeta, Status,
 * Condition) and k8s.io/api core/v1, batch/v1, apps/v1, scheduling/v1, scheduling/v1alpha2,
 * storage/v1, coordination/v1, all v0.36; scheduling/v1beta1 of v0.37.  Pods are in codec_pod.c,
 * parts that several kinds share in codec_parts.c. */
#include "base/qty.h"
#include "kube/codec_internal.h"

#define METADATA [1] = K_MSG("metadata", slu_kobj, meta, slu_kmeta_msg)

/* ---- core/v1 Node ---- */

KMSG(taint_msg, "Taint",
     slu_ktaint, [1] = K_STR("key", slu_ktaint, key), [2] = K_STR("value", slu_ktaint, value),
     [3] = K_WORD("effect", slu_ktaint, effect, slu_keffect_words));
KMSG(node_cond_msg, "NodeCondition", slu_kcond, [1] = K_STR("type", slu_kcond, type),
     [2] = K_WORD("status", slu_kcond, status, slu_ktri_words),
     [4] = K_TIME("lastTransitionTime", slu_kcond, since_us),
     [5] = K_STR("reason", slu_kcond, reason));
KMSG(node_spec_msg, "NodeSpec", slu_knode, [4] = K_BOOL("unschedulable", slu_knode, unschedulable),
     [5] = K_MSGS("taints", slu_knode, taints, taint_msg));
KMSG_MAPS(node_status_msg, "NodeStatus",
	  slu_knode, [1] = K_AMOUNTS("capacity", slu_knode, capacity),
	  [2] = K_AMOUNTS("allocatable", slu_knode, allocatable),
	  [4] = K_MSGS("conditions", slu_knode, conds, node_cond_msg));
KMSG(node_msg, "Node", slu_knode,
     METADATA, [2] = K_PART("spec", node_spec_msg), [3] = K_PART("status", node_status_msg));

static uint8_t tri_of(const struct slu_kcond *c, uint16_t n, const char *type)
{
	for (uint16_t i = 0; i < n; i++) {
		if (c[i].type && strcmp(c[i].type, type) == 0)
			return c[i].status;
	}
	return SLU_TRI_ABSENT;
}

static int finish_node(struct slu_kcodec *c, void *raw)
{
	struct slu_knode *n = raw;

	n->ready = tri_of(n->conds, n->nconds, "Ready");
	return 0;
}

/* ---- core/v1 Namespace, PersistentVolumeClaim, PersistentVolume ---- */

static const struct kword ns_words[] = { { "Terminating", 1 }, { NULL, 0 } };
KMSG(ns_status_msg, "NamespaceStatus",
     slu_knamespace, [1] = K_WORD("phase", slu_knamespace, terminating, ns_words));
KMSG(ns_msg, "Namespace", slu_knamespace, METADATA, [3] = K_PART("status", ns_status_msg));

static const struct kword claim_words[] = {
	{ "Pending", SLU_CLAIM_PENDING },   { "Bound", SLU_CLAIM_BOUND },
	{ "Lost", SLU_CLAIM_LOST },         { "Available", SLU_CLAIM_AVAILABLE },
	{ "Released", SLU_CLAIM_RELEASED }, { "Failed", SLU_CLAIM_FAILED },
	{ NULL, SLU_CLAIM_UNKNOWN },
};
KMSG(pvc_spec_msg, "PersistentVolumeClaimSpec",
     slu_kpvc, [1] = K_STRS("accessModes", slu_kpvc, access_modes),
     [3] = K_STR("volumeName", slu_kpvc, volume),
     [5] = K_STR("storageClassName", slu_kpvc, storage_class));
KMSG(pvc_status_msg, "PersistentVolumeClaimStatus",
     slu_kpvc, [1] = K_WORD("phase", slu_kpvc, phase, claim_words));
KMSG(pvc_msg, "PersistentVolumeClaim", slu_kpvc,
     METADATA, [2] = K_PART("spec", pvc_spec_msg), [3] = K_PART("status", pvc_status_msg));

KMSG(pv_selector_msg, "NodeSelector",
     slu_kpv, [1] = K_MSGS("nodeSelectorTerms", slu_kpv, required, slu_kterm_msg));
KMSG(pv_affinity_msg, "VolumeNodeAffinity", slu_kpv, [1] = K_PART("required", pv_selector_msg));
KMSG(pv_claim_msg, "ObjectReference", slu_kpv, [2] = K_STR("namespace", slu_kpv, claim_ns),
     [3] = K_STR("name", slu_kpv, claim_name), [4] = K_STR("uid", slu_kpv, claim_uid));
KMSG(pv_csi_msg, "CSIPersistentVolumeSource",
     slu_kpv, [1] = K_STR("driver", slu_kpv, driver), [2] = K_STR("volumeHandle", slu_kpv, handle));
KMSG(pv_source_msg, "PersistentVolumeSource", slu_kpv, [22] = K_PART("csi", pv_csi_msg));
KMSG(pv_spec_msg, "PersistentVolumeSpec", slu_kpv, [2] = K_INLINE(pv_source_msg),
     [3] = K_STRS("accessModes", slu_kpv, access_modes), [4] = K_PART("claimRef", pv_claim_msg),
     [6] = K_STR("storageClassName", slu_kpv, storage_class),
     [9] = K_PART("nodeAffinity", pv_affinity_msg));
KMSG(pv_status_msg, "PersistentVolumeStatus",
     slu_kpv, [1] = K_WORD("phase", slu_kpv, phase, claim_words));
KMSG(pv_msg, "PersistentVolume", slu_kpv,
     METADATA, [2] = K_PART("spec", pv_spec_msg), [3] = K_PART("status", pv_status_msg));

/* ---- batch/v1 Job ---- */

struct raw_job {
	struct slu_kjob j;
	struct kraw_template tmpl;
};
static const struct kword indexed_words[] = { { "Indexed", 1 }, { NULL, 0 } };
KMSG(job_cond_msg, "JobCondition", slu_kcond, [1] = K_STR("type", slu_kcond, type),
     [2] = K_WORD("status", slu_kcond, status, slu_ktri_words),
     [4] = K_TIME("lastTransitionTime", slu_kcond, since_us),
     [5] = K_STR("reason", slu_kcond, reason), [6] = K_STR("message", slu_kcond, message));
KMSG(job_spec_msg, "JobSpec", raw_job, [1] = K_I32("parallelism", slu_kjob, parallelism),
     [2] = K_I32("completions", slu_kjob, completions),
     [3] = K_I64("activeDeadlineSeconds", slu_kjob, active_deadline_s),
     [6] = K_MSG("template", raw_job, tmpl, slu_ktemplate_msg),
     [7] = K_I32("backoffLimit", slu_kjob, backoff_limit),
     [9] = K_WORD("completionMode", slu_kjob, indexed, indexed_words),
     [10] = K_BOOL("suspend", slu_kjob, suspend), [15] = K_STR("managedBy", slu_kjob, managed_by));
KMSG(job_status_msg, "JobStatus",
     raw_job, [1] = K_MSGS("conditions", slu_kjob, conds, job_cond_msg),
     [2] = K_TIME("startTime", slu_kjob, start_us),
     [3] = K_TIME("completionTime", slu_kjob, completion_us),
     [4] = K_I32("active", slu_kjob, active), [5] = K_I32("succeeded", slu_kjob, succeeded),
     [6] = K_I32("failed", slu_kjob, failed),
     [7] = K_STR("completedIndexes", slu_kjob, completed_indexes),
     [10] = K_STR("failedIndexes", slu_kjob, failed_indexes), [9] = K_I32("ready", slu_kjob, ready),
     [11] = K_I32("terminating", slu_kjob, terminating));
KMSG(job_msg, "Job", raw_job,
     METADATA, [2] = K_PART("spec", job_spec_msg), [3] = K_PART("status", job_status_msg));
static const struct raw_job job_defaults = {
	.j = { .active_deadline_s = SLU_KNONE,
	       .parallelism = SLU_KNONE,
	       .completions = SLU_KNONE,
	       .backoff_limit = SLU_KNONE },
	.tmpl = { .spec = KRAW_PODSPEC_DEFAULTS },
};

static int finish_job(struct slu_kcodec *c, void *raw)
{
	struct raw_job *r = raw;
	struct slu_kjob *j = &r->j;

	j->complete = tri_of(j->conds, j->nconds, "Complete");
	j->failed_cond = tri_of(j->conds, j->nconds, "Failed");
	j->suspended = tri_of(j->conds, j->nconds, "Suspended");
	return slu_kdec_finish_template(c, &r->tmpl, &j->tmpl);
}

/* ---- apps/v1 ReplicaSet, StatefulSet, Deployment ---- */

struct raw_rs {
	struct slu_kreplicaset r;
	struct kraw_template tmpl;
};
KMSG(rs_spec_msg, "ReplicaSetSpec", raw_rs, [1] = K_I32("replicas", slu_kreplicaset, replicas),
     [3] = K_MSG("template", raw_rs, tmpl, slu_ktemplate_msg));
KMSG(rs_status_msg, "ReplicaSetStatus", raw_rs, [1] = K_I32("replicas", slu_kreplicaset, now),
     [4] = K_I32("readyReplicas", slu_kreplicaset, ready));
KMSG(rs_msg, "ReplicaSet", raw_rs,
     METADATA, [2] = K_PART("spec", rs_spec_msg), [3] = K_PART("status", rs_status_msg));
static const struct raw_rs rs_defaults = { .r = { .replicas = SLU_KNONE },
					   .tmpl = { .spec = KRAW_PODSPEC_DEFAULTS } };

static int finish_rs(struct slu_kcodec *c, void *raw)
{
	struct raw_rs *r = raw;

	return slu_kdec_finish_template(c, &r->tmpl, &r->r.tmpl);
}

struct raw_sts {
	struct slu_kstatefulset s;
	struct kraw_template tmpl;
};
struct named { /* an array of these is an array of strings */
	const char *name;
};
KMSG(named_meta_msg, "ObjectMeta", named, [1] = K_STR("name", named, name));
KMSG(named_msg, "PersistentVolumeClaim", named, [1] = K_PART("metadata", named_meta_msg));
static const struct kword parallel_words[] = { { "Parallel", 1 }, { NULL, 0 } };
KMSG(ordinals_msg, "StatefulSetOrdinals", raw_sts, [1] = K_I32("start", slu_kstatefulset, start));
KMSG(sts_spec_msg, "StatefulSetSpec", raw_sts, [1] = K_I32("replicas", slu_kstatefulset, replicas),
     [3] = K_MSG("template", raw_sts, tmpl, slu_ktemplate_msg),
     [4] = K_MSGS("volumeClaimTemplates", slu_kstatefulset, claim_templates, named_msg),
     [5] = K_STR("serviceName", slu_kstatefulset, service),
     [6] = K_WORD("podManagementPolicy", slu_kstatefulset, parallel, parallel_words),
     [11] = K_PART("ordinals", ordinals_msg));
KMSG(sts_status_msg, "StatefulSetStatus", raw_sts, [2] = K_I32("replicas", slu_kstatefulset, now),
     [3] = K_I32("readyReplicas", slu_kstatefulset, ready));
KMSG(sts_msg, "StatefulSet", raw_sts,
     METADATA, [2] = K_PART("spec", sts_spec_msg), [3] = K_PART("status", sts_status_msg));
static const struct raw_sts sts_defaults = { .s = { .replicas = SLU_KNONE },
					     .tmpl = { .spec = KRAW_PODSPEC_DEFAULTS } };

static int finish_sts(struct slu_kcodec *c, void *raw)
{
	struct raw_sts *r = raw;

	return slu_kdec_finish_template(c, &r->tmpl, &r->s.tmpl);
}

struct raw_deploy {
	struct slu_kdeployment d;
	struct kraw_template tmpl;
};
KMSG(deploy_spec_msg, "DeploymentSpec",
     raw_deploy, [1] = K_I32("replicas", slu_kdeployment, replicas),
     [3] = K_MSG("template", raw_deploy, tmpl, slu_ktemplate_msg),
     [7] = K_BOOL("paused", slu_kdeployment, paused));
KMSG(deploy_status_msg, "DeploymentStatus",
     raw_deploy, [2] = K_I32("replicas", slu_kdeployment, now),
     [3] = K_I32("updatedReplicas", slu_kdeployment, updated),
     [4] = K_I32("availableReplicas", slu_kdeployment, available),
     [7] = K_I32("readyReplicas", slu_kdeployment, ready));
KMSG(deploy_msg, "Deployment", raw_deploy,
     METADATA, [2] = K_PART("spec", deploy_spec_msg), [3] = K_PART("status", deploy_status_msg));
static const struct raw_deploy deploy_defaults = { .d = { .replicas = SLU_KNONE },
						   .tmpl = { .spec = KRAW_PODSPEC_DEFAULTS } };

static int finish_deploy(struct slu_kcodec *c, void *raw)
{
	struct raw_deploy *r = raw;

	return slu_kdec_finish_template(c, &r->tmpl, &r->d.tmpl);
}

/* ---- scheduling.k8s.io/v1 PriorityClass, storage.k8s.io/v1 StorageClass, coordination Lease ----
 */

static const struct kword never_words[] = { { "Never", 1 }, { NULL, 0 } };
KMSG(pc_msg, "PriorityClass", slu_kpriorityclass,
     METADATA, [2] = K_I32("value", slu_kpriorityclass, value),
     [3] = K_BOOL("globalDefault", slu_kpriorityclass, global_default),
     [5] = K_WORD("preemptionPolicy", slu_kpriorityclass, never_preempts, never_words));

static const struct kword wait_words[] = { { "WaitForFirstConsumer", 1 }, { NULL, 0 } };
KMSG(sc_msg, "StorageClass", slu_kstorageclass,
     METADATA, [2] = K_STR("provisioner", slu_kstorageclass, provisioner),
     [7] = K_WORD("volumeBindingMode", slu_kstorageclass, wait_for_consumer, wait_words));

/* ---- storage.k8s.io/v1 CSINode, VolumeAttachment ---- */

static const struct slu_kdriver driver_defaults = { .count = SLU_KNONE };
KMSG(driver_room_msg, "VolumeNodeResources", slu_kdriver, [1] = K_I32("count", slu_kdriver, count));
KMSG_(static, driver_msg, "CSINodeDriver", slu_kdriver, false, &driver_defaults,
      [1] = K_STR("name", slu_kdriver, name), [4] = K_PART("allocatable", driver_room_msg));
KMSG(csinode_spec_msg, "CSINodeSpec",
     slu_kcsinode, [1] = K_MSGS("drivers", slu_kcsinode, drivers, driver_msg));
KMSG(csinode_msg, "CSINode", slu_kcsinode, METADATA, [2] = K_PART("spec", csinode_spec_msg));

KMSG(attach_source_msg, "VolumeAttachmentSource",
     slu_kattachment, [1] = K_STR("persistentVolumeName", slu_kattachment, volume));
KMSG(attach_spec_msg, "VolumeAttachmentSpec",
     slu_kattachment, [1] = K_STR("attacher", slu_kattachment, attacher),
     [2] = K_PART("source", attach_source_msg), [3] = K_STR("nodeName", slu_kattachment, node));
KMSG(attach_msg, "VolumeAttachment", slu_kattachment,
     METADATA, [2] = K_PART("spec", attach_spec_msg));

/* ---- topology.node.k8s.io/v1alpha2 NodeResourceTopology: JSON only, own numbers ---- */

struct zone_amount {
	const char *name;
	struct kslice allocatable;
};
struct raw_zone {
	const char *name, *type;
	struct zone_amount *amounts;
	uint16_t namounts;
};
struct raw_topology {
	struct slu_ktopology t;
	struct raw_zone *zones;
	uint16_t nzones;
};
KMSG(zone_amount_msg, "ResourceInfo", zone_amount, [1] = K_STR("name", zone_amount, name),
     [2] = K_SLICE("allocatable", zone_amount, allocatable));
KMSG(zone_msg, "Zone",
     raw_zone, [1] = K_STR("name", raw_zone, name), [2] = K_STR("type", raw_zone, type),
     [3] = K_MSGS("resources", raw_zone, amounts, zone_amount_msg));
KMSG(attribute_msg, "AttributeInfo",
     slu_kpair, [1] = K_STR("name", slu_kpair, key), [2] = K_STR("value", slu_kpair, value));
KMSG(topology_msg, "NodeResourceTopology", raw_topology,
     METADATA, [2] = K_MSGS("zones", raw_topology, zones, zone_msg),
     [3] = K_STRS("topologyPolicies", slu_ktopology, policies),
     [4] = K_MSGS("attributes", slu_ktopology, attributes, attribute_msg));

static int finish_topology(struct slu_kcodec *c, void *raw)
{
	struct raw_topology *r = raw;
	struct slu_kzone *zone = slu_arena_alloc(&c->scratch, (r->nzones + 1u) * sizeof *zone);

	if (!zone)
		return -ENOMEM;
	for (uint16_t i = 0; i < r->nzones; i++) {
		const struct raw_zone *z = &r->zones[i];
		struct slu_kamount *a = slu_arena_alloc(&c->scratch,
							(z->namounts + 1u) * sizeof *a);
		uint16_t n = 0;

		if (!a)
			return -ENOMEM;
		for (uint16_t k = 0; k < z->namounts; k++) {
			const struct zone_amount *x = &z->amounts[k];
			uint16_t at = n;
			int64_t v;

			if (!x->name || slu_qty_parse(x->allocatable.p, x->allocatable.n,
						      slu_qty_scale_of(x->name), &v, NULL) < 0)
				continue; /* an amount that cannot be read counts as missing */
			for (; at && strcmp(a[at - 1].name, x->name) > 0; at--)
				a[at] = a[at - 1];
			a[at] = (struct slu_kamount){ x->name, v };
			n++;
		}
		zone[i] = (struct slu_kzone){ z->name, z->type, a, n };
	}
	r->t.zones = zone;
	r->t.nzones = r->nzones;
	return 0;
}

KMSG(lease_spec_msg, "LeaseSpec", slu_klease, [1] = K_STR("holderIdentity", slu_klease, holder),
     [2] = K_I32("leaseDurationSeconds", slu_klease, duration_s),
     [3] = K_TIME("acquireTime", slu_klease, acquire_us),
     [4] = K_TIME("renewTime", slu_klease, renew_us),
     [5] = K_I32("leaseTransitions", slu_klease, transitions));
KMSG(lease_msg, "Lease", slu_klease, METADATA, [2] = K_PART("spec", lease_spec_msg));

/* ---- scheduling.k8s.io/v1alpha2 PodGroup ---- */

struct raw_pg {
	struct slu_kpodgroup g;
	uint32_t bits;
};
#define PG_GANG     1u
#define PG_PRIORITY 2u
#define PG_CLAIMS   4u
#define PG_ALL      8u
KMSG(pg_cond_msg, "Condition", slu_kcond, [1] = K_STR("type", slu_kcond, type),
     [2] = K_WORD("status", slu_kcond, status, slu_ktri_words),
     [3] = K_I64("observedGeneration", slu_kcond, observed),
     [4] = K_TIME("lastTransitionTime", slu_kcond, since_us),
     [5] = K_STR("reason", slu_kcond, reason), [6] = K_STR("message", slu_kcond, message));
KMSG(pg_topology_msg, "TopologyConstraint", named, [1] = K_STR("key", named, name));
KMSG(pg_constraints_msg, "PodGroupSchedulingConstraints",
     raw_pg, [1] = K_MSGS("topology", slu_kpodgroup, topology, pg_topology_msg));
KMSG(pg_gang_msg, "GangSchedulingPolicy",
     raw_pg, [1] = K_I32("minCount", slu_kpodgroup, min_member));
KMSG(pg_policy_msg, "PodGroupSchedulingPolicy", raw_pg,
     [2] = { .json = "gang",
	     .type = KF_MSG,
	     .sub = &pg_gang_msg,
	     .noff = offsetof(struct raw_pg, bits),
	     .bit = PG_GANG });
KMSG(pg_workload_msg, "WorkloadPodGroupTemplateReference",
     raw_pg, [1] = K_STR("workloadName", slu_kpodgroup, workload),
     [2] = K_STR("podGroupTemplateName", slu_kpodgroup, workload_template));
KMSG(pg_ref_msg, "PodGroupTemplateReference", raw_pg, [1] = K_PART("workload", pg_workload_msg));
KMSG(pg_spec_msg, "PodGroupSpec", raw_pg, [1] = K_PART("podGroupTemplateRef", pg_ref_msg),
     [2] = K_PART("schedulingPolicy", pg_policy_msg),
     [3] = K_PART("schedulingConstraints", pg_constraints_msg),
     [4] = K_HAS("resourceClaims", raw_pg, bits, PG_CLAIMS),
     [5] = K_STR("disruptionMode", slu_kpodgroup, disruption_mode),
     [6] = K_STR("priorityClassName", slu_kpodgroup, priority_class),
     [7] = { .json = "priority",
	     .type = KF_I32,
	     .off = offsetof(struct slu_kpodgroup, priority),
	     .noff = offsetof(struct raw_pg, bits),
	     .bit = PG_PRIORITY });
KMSG(pg_status_msg, "PodGroupStatus",
     raw_pg, [1] = K_MSGS("conditions", slu_kpodgroup, conds, pg_cond_msg));
KMSG(pg_msg, "PodGroup", raw_pg,
     METADATA, [2] = K_PART("spec", pg_spec_msg), [3] = K_PART("status", pg_status_msg));

/* ---- scheduling.k8s.io/v1beta1 PodGroup: other numbers, and a mode that is a union ---- */

KMSG(pgb_mode_msg, "DisruptionMode", raw_pg, [2] = K_HAS("all", raw_pg, bits, PG_ALL));
KMSG(pgb_ref_msg, "WorkloadReference", raw_pg, [1] = K_STR("workloadName", slu_kpodgroup, workload),
     [2] = K_STR("templateName", slu_kpodgroup, workload_template));
KMSG(pgb_spec_msg, "PodGroupSpec", raw_pg, [2] = K_PART("workloadRef", pgb_ref_msg),
     [3] = K_PART("schedulingPolicy", pg_policy_msg),
     [4] = K_PART("schedulingConstraints", pg_constraints_msg),
     [5] = K_HAS("resourceClaims", raw_pg, bits, PG_CLAIMS),
     [6] = K_PART("disruptionMode", pgb_mode_msg),
     [7] = K_STR("priorityClassName", slu_kpodgroup, priority_class),
     [8] = { .json = "priority",
	     .type = KF_I32,
	     .off = offsetof(struct slu_kpodgroup, priority),
	     .noff = offsetof(struct raw_pg, bits),
	     .bit = PG_PRIORITY });
KMSG(pgb_msg, "PodGroup", raw_pg,
     METADATA, [2] = K_PART("spec", pgb_spec_msg), [3] = K_PART("status", pg_status_msg));

static const struct raw_pg pg_defaults = { .g = { .min_member = SLU_KNONE,
						  .schedule_timeout_s = SLU_KNONE } };

static int finish_pg(struct slu_kcodec *c, void *raw)
{
	struct raw_pg *r = raw;

	r->g.gang = r->bits & PG_GANG;
	r->g.has_priority = r->bits & PG_PRIORITY;
	r->g.resource_claims = r->bits & PG_CLAIMS;
	r->g.all = r->bits & PG_ALL;
	return 0;
}

/* ---- scheduling.x-k8s.io and scheduling.sigs.k8s.io PodGroup: JSON only, own numbers ---- */

KMSG_MAPS(pgx_spec_msg, "PodGroupSpec", raw_pg, [1] = K_I32("minMember", slu_kpodgroup, min_member),
	  [2] = K_AMOUNTS("minResources", slu_kpodgroup, min_resources),
	  [3] = K_I32("scheduleTimeoutSeconds", slu_kpodgroup, schedule_timeout_s));
KMSG(pgx_status_msg, "PodGroupStatus", raw_pg, [1] = K_STR("phase", slu_kpodgroup, phase),
     [2] = K_STR("occupiedBy", slu_kpodgroup, occupied_by),
     [3] = K_I32("running", slu_kpodgroup, running),
     [4] = K_I32("succeeded", slu_kpodgroup, succeeded),
     [5] = K_I32("failed", slu_kpodgroup, failed),
     [6] = K_I32("scheduled", slu_kpodgroup, scheduled),
     [7] = K_TIME("scheduleStartTime", slu_kpodgroup, schedule_start_us),
     [8] = K_TIME("creationTime", slu_kpodgroup, creation_us),
     [9] = K_MSGS("conditions", slu_kpodgroup, conds, pg_cond_msg));
KMSG(pgx_msg, "PodGroup", raw_pg,
     METADATA, [2] = K_PART("spec", pgx_spec_msg), [3] = K_PART("status", pgx_status_msg));

/* ---- jobs.converged-computing.org/v1alpha1 FluxJob: JSON only, own numbers ---- */

KMSG(fj_res_msg, "Resources", slu_kfluxjob, [1] = K_STRS("nodes", slu_kfluxjob, nodes));
KMSG(fj_spec_msg, "FluxJobSpec", slu_kfluxjob, [1] = K_STR("jobspec", slu_kfluxjob, jobspec),
     [2] = K_I32("type", slu_kfluxjob, type), [3] = K_STR("name", slu_kfluxjob, name),
     [4] = K_I32("duration", slu_kfluxjob, duration_s),
     [5] = K_BOOL("reservation", slu_kfluxjob, reservation),
     [6] = K_I32("nodes", slu_kfluxjob, count), [7] = K_I32("cores", slu_kfluxjob, cores),
     [8] = K_PART("resources", fj_res_msg));
KMSG(fj_status_msg, "FluxJobStatus",
     slu_kfluxjob, [1] = K_STR("submitStatus", slu_kfluxjob, submit_status),
     [2] = K_STR("state", slu_kfluxjob, state), [3] = K_STR("message", slu_kfluxjob, message),
     [4] = K_I64("jobid", slu_kfluxjob, job_id), [5] = K_STR("nodeList", slu_kfluxjob, node_list),
     [6] = K_STR("places", slu_kfluxjob, places),
     [7] = K_TIME("startEstimate", slu_kfluxjob, estimate_us),
     [8] = K_TIME("startTime", slu_kfluxjob, start_us),
     [9] = K_I32("position", slu_kfluxjob, position),
     [10] = K_MSGS("conditions", slu_kfluxjob, conds, pg_cond_msg));
KMSG(fj_msg, "FluxJob", slu_kfluxjob,
     METADATA, [2] = K_PART("spec", fj_spec_msg), [3] = K_PART("status", fj_status_msg));
static const struct slu_kfluxjob fj_defaults = { .job_id = SLU_KNONE };

/* ---- core/v1 LimitRange, node.k8s.io/v1 RuntimeClass ---- */

struct limit_item {
	struct kslice type;
	const struct slu_kamount *requests;
	uint16_t nrequests;
};
struct raw_limits {
	struct slu_klimitrange l;
	struct limit_item *items;
	uint16_t nitems;
};
KMSG_MAPS(limit_item_msg, "LimitRangeItem", limit_item, [1] = K_SLICE("type", limit_item, type),
	  [5] = K_AMOUNTS("defaultRequest", limit_item, requests));
KMSG(limits_spec_msg, "LimitRangeSpec",
     raw_limits, [1] = K_MSGS("limits", raw_limits, items, limit_item_msg));
KMSG(limits_msg, "LimitRange", raw_limits, METADATA, [2] = K_PART("spec", limits_spec_msg));

/* One list for containers; a later item overrides an earlier one. */
static int finish_limits(struct slu_kcodec *c, void *raw)
{
	struct raw_limits *r = raw;
	struct slu_kamount *all = NULL;
	uint16_t n = 0;

	for (uint16_t i = 0; i < r->nitems; i++) {
		const struct limit_item *it = &r->items[i];

		for (uint16_t k = 0; kslice_is(it->type, "Container") && k < it->nrequests; k++) {
			struct slu_kamount *e = NULL;
			bool full = false;

			for (uint16_t j = 0; j < n && !e; j++)
				e = all[j].name == it->requests[k].name ? &all[j] : NULL;
			if (!e)
				e = slu_kdec_push(c, &all, &n, sizeof *e, &full);
			if (!e)
				return full ? 0 : -ENOMEM;
			*e = it->requests[k];
		}
	}
	r->l.requests = all;
	r->l.nrequests = n;
	return 0;
}

KMSG_MAPS(rc_overhead_msg, "Overhead",
	  slu_kruntimeclass, [1] = K_AMOUNTS("podFixed", slu_kruntimeclass, overhead));
KMSG_MAPS(rc_scheduling_msg, "Scheduling",
	  slu_kruntimeclass, [1] = K_PAIRS("nodeSelector", slu_kruntimeclass, node_selector),
	  [2] = K_MSGS("tolerations", slu_kruntimeclass, tolerations, slu_ktoleration_msg));
KMSG(rc_msg, "RuntimeClass", slu_kruntimeclass, METADATA, [3] = K_PART("overhead", rc_overhead_msg),
     [4] = K_PART("scheduling", rc_scheduling_msg));

/* ---- sluice.sh/v1alpha1 Reservation: JSON only, own numbers ---- */

KMSG_MAPS(res_spec_msg, "ReservationSpec",
	  slu_kreservation, [1] = K_STRS("nodes", slu_kreservation, nodes),
	  [2] = K_I32("count", slu_kreservation, count),
	  [3] = K_STR("nodeLabel", slu_kreservation, node_label),
	  [4] = K_AMOUNTS("amounts", slu_kreservation, amounts),
	  [5] = K_TIME("start", slu_kreservation, start_us),
	  [6] = K_TIME("end", slu_kreservation, end_us),
	  [7] = K_STR("every", slu_kreservation, every),
	  [8] = K_STRS("users", slu_kreservation, users));
KMSG(res_status_msg, "ReservationStatus",
     slu_kreservation, [1] = K_STR("phase", slu_kreservation, phase),
     [2] = K_STR("message", slu_kreservation, message),
     [3] = K_STRS("nodes", slu_kreservation, held), [4] = K_TIME("from", slu_kreservation, from_us),
     [5] = K_TIME("until", slu_kreservation, until_us),
     [6] = K_MSGS("conditions", slu_kreservation, conds, pg_cond_msg));
KMSG(res_msg, "Reservation", slu_kreservation,
     METADATA, [2] = K_PART("spec", res_spec_msg), [3] = K_PART("status", res_status_msg));

/* ---- meta.k8s.io/v1 PartialObjectMetadata ---- */

KMSG(partial_msg, "PartialObjectMetadata", slu_kpartial, METADATA);

#define KIND(g, v, r, k, ns, js, m, T, def, fin) \
	{ { g, v, r, k, ns, js }, &m, sizeof(struct T), def, fin }
const struct kkind slu_kkinds[SLU_KIND_COUNT] = {
	[SLU_KIND_NODE] = KIND("", "v1", "nodes", "Node", false, false, node_msg, slu_knode, NULL,
			       finish_node),
	[SLU_KIND_POD] = KIND("", "v1", "pods", "Pod", true, false, slu_kpod_msg, kraw_pod,
			      &slu_kraw_pod_defaults, slu_kdec_finish_pod),
	[SLU_KIND_NAMESPACE] = KIND("", "v1", "namespaces", "Namespace", false, false, ns_msg,
				    slu_knamespace, NULL, NULL),
	[SLU_KIND_PVC] = KIND("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true,
			      false, pvc_msg, slu_kpvc, NULL, NULL),
	[SLU_KIND_PV] = KIND("", "v1", "persistentvolumes", "PersistentVolume", false, false,
			     pv_msg, slu_kpv, NULL, NULL),
	[SLU_KIND_JOB] = KIND("batch", "v1", "jobs", "Job", true, false, job_msg, raw_job,
			      &job_defaults, finish_job),
	[SLU_KIND_REPLICASET] = KIND("apps", "v1", "replicasets", "ReplicaSet", true, false, rs_msg,
				     raw_rs, &rs_defaults, finish_rs),
	[SLU_KIND_STATEFULSET] = KIND("apps", "v1", "statefulsets", "StatefulSet", true, false,
				      sts_msg, raw_sts, &sts_defaults, finish_sts),
	[SLU_KIND_DEPLOYMENT] = KIND("apps", "v1", "deployments", "Deployment", true, false,
				     deploy_msg, raw_deploy, &deploy_defaults, finish_deploy),
	[SLU_KIND_PRIORITYCLASS] = KIND("scheduling.k8s.io", "v1", "priorityclasses",
					"PriorityClass", false, false, pc_msg, slu_kpriorityclass,
					NULL, NULL),
	[SLU_KIND_STORAGECLASS] = KIND("storage.k8s.io", "v1", "storageclasses", "StorageClass",
				       false, false, sc_msg, slu_kstorageclass, NULL, NULL),
	[SLU_KIND_LEASE] = KIND("coordination.k8s.io", "v1", "leases", "Lease", true, false,
				lease_msg, slu_klease, NULL, NULL),
	[SLU_KIND_PODGROUP_X] = KIND("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup",
				     true, true, pgx_msg, raw_pg, &pg_defaults, NULL),
	[SLU_KIND_PODGROUP_SIGS] = KIND("scheduling.sigs.k8s.io", "v1alpha1", "podgroups",
					"PodGroup", true, true, pgx_msg, raw_pg, &pg_defaults,
					NULL),
	[SLU_KIND_PODGROUP] = KIND("scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", true,
				   false, pg_msg, raw_pg, &pg_defaults, finish_pg),
	[SLU_KIND_PODGROUP_BETA] = KIND("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup",
					true, false, pgb_msg, raw_pg, &pg_defaults, finish_pg),
	[SLU_KIND_FLUXJOB] = KIND("jobs.converged-computing.org", "v1alpha1", "fluxjobs", "FluxJob",
				  true, true, fj_msg, slu_kfluxjob, &fj_defaults, NULL),
	[SLU_KIND_LIMITRANGE] = KIND("", "v1", "limitranges", "LimitRange", true, false, limits_msg,
				     raw_limits, NULL, finish_limits),
	[SLU_KIND_RUNTIMECLASS] = KIND("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false,
				       false, rc_msg, slu_kruntimeclass, NULL, NULL),
	[SLU_KIND_RESERVATION] = KIND("sluice.sh", "v1alpha1", "reservations", "Reservation", true,
				      true, res_msg, slu_kreservation, NULL, NULL),
	[SLU_KIND_CSINODE] = KIND("storage.k8s.io", "v1", "csinodes", "CSINode", false, false,
				  csinode_msg, slu_kcsinode, NULL, NULL),
	[SLU_KIND_ATTACHMENT] = KIND("storage.k8s.io", "v1", "volumeattachments",
				     "VolumeAttachment", false, false, attach_msg, slu_kattachment,
				     NULL, NULL),
	[SLU_KIND_TOPOLOGY] = KIND("topology.node.k8s.io", "v1alpha2", "noderesourcetopologies",
				   "NodeResourceTopology", false, true, topology_msg, raw_topology,
				   NULL, finish_topology),
	[SLU_KIND_PARTIAL] = KIND("", "", "", "PartialObjectMetadata", true, false, partial_msg,
				  slu_kpartial, NULL, NULL),
};

const struct slu_kkind_info *slu_kkind_info(enum slu_kkind k)
{
	return (size_t)k < SLU_LEN(slu_kkinds) ? &slu_kkinds[k].info : NULL;
}
