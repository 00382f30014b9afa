package main

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedv1 "k8s.io/api/scheduling/v1"
	schedv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

type fixture struct {
	name string
	obj  runtime.Object
}

func ptr[T any](v T) *T { return &v }

var epoch = time.Date(2026, 11, 15, 22, 17, 0, 0, time.UTC)

func at(s int) metav1.Time { return metav1.NewTime(epoch.Add(time.Duration(s) * time.Second)) }

func uid(n int) types.UID { return types.UID(fmt.Sprintf("8f14e45f-ceea-467f-a000-%012x", n)) }

func res(kv ...string) v1.ResourceList {
	l := v1.ResourceList{}
	for i := 0; i < len(kv); i += 2 {
		l[v1.ResourceName(kv[i])] = resource.MustParse(kv[i+1])
	}
	return l
}

func managed(who string, s int) []metav1.ManagedFieldsEntry {
	raw := `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:job-name":{}},"f:ownerReferences":{".":{},` +
		`"k:{\"uid\":\"8f14e45f\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},` +
		`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:requests":{".":{},` +
		`"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{}}},"f:dnsPolicy":{},` +
		`"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{}}}`
	t := at(s)
	return []metav1.ManagedFieldsEntry{{Manager: who, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: "v1", Time: &t, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(raw)}}}
}

// fullPod uses every field that the decoder looks at, and many that it must skip.
func fullPod() *v1.Pod {
	return &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "solver-0-x7k2p", GenerateName: "solver-0-", Namespace: "team-a", UID: uid(1),
			ResourceVersion: "184467440737", Generation: 3, CreationTimestamp: at(0),
			DeletionTimestamp: ptr(at(500)), DeletionGracePeriodSeconds: ptr(int64(30)),
			Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "solver", "app": "solver",
				"batch.kubernetes.io/job-completion-index": "0", "zeta": "", "Ünïcode/ok": "ß"},
			Annotations: map[string]string{"sluice.sh/size": "4", "fluence.flux-framework.org/group-size": "4",
				"kubectl.kubernetes.io/last-applied-configuration": "{\"a\":\"" + string(make([]byte, 300)) + "\"}",
				"sluice.sh/odd": "a\x00b"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: uid(8)},
				{APIVersion: "batch/v1", Kind: "Job", Name: "solver", UID: uid(9), Controller: ptr(true),
					BlockOwnerDeletion: ptr(true)}},
			Finalizers:    []string{"batch.kubernetes.io/job-tracking", "example.com/hold"},
			ManagedFields: managed("kube-controller-manager", 0),
		},
		Spec: v1.PodSpec{
			SchedulerName: "fluence", NodeName: "node-17", PriorityClassName: "high",
			Priority: ptr(int32(-7)), PreemptionPolicy: ptr(v1.PreemptNever),
			ActiveDeadlineSeconds: ptr(int64(3600)), TerminationGracePeriodSeconds: ptr(int64(0)),
			RestartPolicy: v1.RestartPolicyOnFailure, HostNetwork: true,
			NodeSelector: map[string]string{"zone": "z1", "disk": "ssd"},
			Affinity: &v1.Affinity{
				NodeAffinity: &v1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
						NodeSelectorTerms: []v1.NodeSelectorTerm{
							{MatchExpressions: []v1.NodeSelectorRequirement{
								{Key: "rack", Operator: v1.NodeSelectorOpIn, Values: []string{"r1", "r2"}},
								{Key: "gen", Operator: v1.NodeSelectorOpGt, Values: []string{"3"}},
								{Key: "old", Operator: v1.NodeSelectorOpDoesNotExist}},
								MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name",
									Operator: v1.NodeSelectorOpIn, Values: []string{"node-17"}}}},
							{MatchExpressions: []v1.NodeSelectorRequirement{
								{Key: "spare", Operator: v1.NodeSelectorOpExists}}}}},
					PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{
						{Weight: 42, Preference: v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{
							{Key: "fast", Operator: v1.NodeSelectorOpNotIn, Values: []string{"no"}}}}}}},
				PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{
					{Weight: 1, PodAffinityTerm: v1.PodAffinityTerm{TopologyKey: "zone"}}}},
				PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
					{TopologyKey: "kubernetes.io/hostname"}}}},
			Tolerations: []v1.Toleration{
				{Key: "worker", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule},
				{Key: "node.kubernetes.io/not-ready", Operator: v1.TolerationOpExists,
					Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(300))},
				{Key: "a", Value: "b"}, {Operator: v1.TolerationOpExists}},
			TopologySpreadConstraints: []v1.TopologySpreadConstraint{
				{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: v1.ScheduleAnyway},
				{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: v1.DoNotSchedule}},
			SchedulingGates: []v1.PodSchedulingGate{{Name: "fluxqueue"}, {Name: "example.com/other"}},
			ResourceClaims:  []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr("gpu-claim")}},
			SchedulingGroup: &v1.PodSchedulingGroup{PodGroupName: ptr("native-group")},
			Overhead:        res("cpu", "50m", "memory", "10Mi"),
			InitContainers: []v1.Container{
				{Name: "first", Image: "i", Resources: v1.ResourceRequirements{Requests: res("cpu", "3", "memory", "1Gi")}},
				{Name: "side", Image: "i", RestartPolicy: ptr(v1.ContainerRestartPolicyAlways),
					Ports:     []v1.ContainerPort{{ContainerPort: 9000, HostPort: 9000, Protocol: v1.ProtocolUDP}},
					Resources: v1.ResourceRequirements{Requests: res("cpu", "250m", "memory", "64Mi")}},
				{Name: "second", Image: "i", Resources: v1.ResourceRequirements{Requests: res("cpu", "2",
					"ephemeral-storage", "1G")}}},
			Containers: []v1.Container{
				{Name: "main", Image: "registry.example/solver:1", Command: []string{"sh", "-c", "x"},
					Env: []v1.EnvVar{{Name: "A", Value: "B"}},
					Ports: []v1.ContainerPort{{ContainerPort: 80, HostPort: 8080, HostIP: "10.0.0.1"},
						{ContainerPort: 81}},
					Resources: v1.ResourceRequirements{
						Limits:   res("nvidia.com/gpu", "1"),
						Requests: res("cpu", "1500m", "memory", "3Gi", "nvidia.com/gpu", "1")}},
				{Name: "log", Image: "i", Resources: v1.ResourceRequirements{Requests: res("cpu", "100m",
					"hugepages-2Mi", "4Mi")}}},
			Volumes: []v1.Volume{
				{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data-claim"}}},
				{Name: "cfg", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}},
				{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{
					VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{}}}},
				{Name: "disk", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{TargetPortal: "x"}}}},
		},
		Status: v1.PodStatus{
			Phase: v1.PodFailed, Reason: "OutOfcpu", Message: "Pod was rejected", NominatedNodeName: "node-18",
			StartTime: ptr(at(10)), HostIP: "10.0.0.1", PodIP: "10.1.0.1", QOSClass: v1.PodQOSBurstable,
			Conditions: []v1.PodCondition{
				{Type: v1.PodReady, Status: v1.ConditionFalse, LastTransitionTime: at(11), Reason: "PodFailed"},
				{Type: v1.PodScheduled, Status: v1.ConditionFalse, LastTransitionTime: at(9),
					Reason: "Unschedulable", Message: "0/3 nodes are available"},
				{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: at(12)}},
			ContainerStatuses: []v1.ContainerStatus{
				{Name: "log", RestartCount: 2, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
					ExitCode: 0, FinishedAt: at(90)}}},
				{Name: "main", RestartCount: 1, AllocatedResources: res("cpu", "1800m", "memory", "2Gi"),
					Resources: &v1.ResourceRequirements{Requests: res("cpu", "1700m", "memory", "4Gi")},
					State:     v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137, FinishedAt: at(80)}}}},
		},
	}
}

func template() v1.PodTemplateSpec {
	p := fullPod()
	p.Spec.NodeName = ""
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

func objectMeta(name, ns string, n int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: ns, UID: uid(n), ResourceVersion: fmt.Sprint(1000 + n),
		Generation: int64(n), CreationTimestamp: at(n), Labels: map[string]string{"b": "2", "a": "1"},
		ManagedFields: managed("kubectl", n)}
}

func tm(group, kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: group, Kind: kind} }

func node() *v1.Node {
	return &v1.Node{TypeMeta: tm("v1", "Node"), ObjectMeta: objectMeta("node-17", "", 17),
		Spec: v1.NodeSpec{Unschedulable: true, PodCIDR: "10.0.0.0/24", Taints: []v1.Taint{
			{Key: "worker", Value: "true", Effect: v1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/unschedulable", Effect: v1.TaintEffectNoSchedule, TimeAdded: ptr(at(1))},
			{Key: "x", Effect: v1.TaintEffectPreferNoSchedule}, {Key: "y", Effect: v1.TaintEffectNoExecute}}},
		Status: v1.NodeStatus{
			Capacity:    res("cpu", "64", "memory", "256Gi", "pods", "110", "nvidia.com/gpu", "8", "ephemeral-storage", "1Ti"),
			Allocatable: res("cpu", "63500m", "memory", "270582939648", "pods", "110", "nvidia.com/gpu", "8", "ephemeral-storage", "1Ti"),
			Conditions: []v1.NodeCondition{
				{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, LastHeartbeatTime: at(5), LastTransitionTime: at(2)},
				{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: at(5), LastTransitionTime: at(3),
					Reason: "KubeletReady", Message: "kubelet is posting ready status"}},
			Images: []v1.ContainerImage{{Names: []string{"a", "b"}, SizeBytes: 12345}}}}
}

func fixtures() []fixture {
	tr := metav1.NewMicroTime(epoch.Add(123456 * time.Microsecond))
	pl := &v1.PodList{TypeMeta: tm("v1", "PodList"), ListMeta: metav1.ListMeta{ResourceVersion: "777", Continue: "tok+/=&x",
		RemainingItemCount: ptr(int64(12))}, Items: []v1.Pod{*fullPod(), *pod(1)}}
	level := pod(3)
	level.TypeMeta = tm("v1", "Pod")
	level.Spec.Resources = &v1.ResourceRequirements{Requests: res("cpu", "4", "hugepages-2Mi", "8Mi")}
	plain := pod(2)
	plain.TypeMeta = tm("v1", "Pod")
	return []fixture{
		{"pod-full", fullPod()}, {"pod-plain", plain}, {"pod-level", level},
		{"pod-empty", &v1.Pod{TypeMeta: tm("v1", "Pod")}},
		{"node", node()},
		{"podlist", pl},
		{"namespace", &v1.Namespace{TypeMeta: tm("v1", "Namespace"), ObjectMeta: objectMeta("team-a", "", 2),
			Status: v1.NamespaceStatus{Phase: v1.NamespaceTerminating}}},
		{"pvc", &v1.PersistentVolumeClaim{TypeMeta: tm("v1", "PersistentVolumeClaim"), ObjectMeta: objectMeta("data", "team-a", 3),
			Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pv-1", StorageClassName: ptr("fast"),
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod, v1.ReadOnlyMany}},
			Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}}},
		{"pv", &v1.PersistentVolume{TypeMeta: tm("v1", "PersistentVolume"), ObjectMeta: objectMeta("pv-1", "", 4),
			Spec: v1.PersistentVolumeSpec{StorageClassName: "fast", AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				ClaimRef:               &v1.ObjectReference{Namespace: "team-a", Name: "data", UID: uid(3)},
				PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "vol-7"}},
				NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
					{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{"z1"}}}}}}}},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeReleased}}},
		{"job", &batchv1.Job{TypeMeta: tm("batch/v1", "Job"), ObjectMeta: objectMeta("solver", "team-a", 5),
			Spec: batchv1.JobSpec{Parallelism: ptr(int32(4)), Completions: ptr(int32(8)), BackoffLimit: ptr(int32(0)),
				ActiveDeadlineSeconds: ptr(int64(1800)), CompletionMode: ptr(batchv1.IndexedCompletion), Suspend: ptr(true),
				ManagedBy: ptr("example.com/mgr"), Template: template(),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
			Status: batchv1.JobStatus{Active: 1, Succeeded: 2, Failed: 3, Ready: ptr(int32(4)), Terminating: ptr(int32(5)),
				CompletedIndexes: "0-3,7", StartTime: ptr(at(20)), CompletionTime: ptr(at(40)),
				Conditions: []batchv1.JobCondition{
					{Type: batchv1.JobSuspended, Status: v1.ConditionFalse, LastTransitionTime: at(21), Reason: "JobResumed"},
					{Type: batchv1.JobComplete, Status: v1.ConditionTrue, LastTransitionTime: at(40), Message: "done"}}}}},
		{"job-empty", &batchv1.Job{TypeMeta: tm("batch/v1", "Job")}},
		{"replicaset", &appsv1.ReplicaSet{TypeMeta: tm("apps/v1", "ReplicaSet"), ObjectMeta: objectMeta("rs", "team-a", 6),
			Spec: appsv1.ReplicaSetSpec{Replicas: ptr(int32(0)), Template: template()}, Status: appsv1.ReplicaSetStatus{Replicas: 3, ReadyReplicas: 2}}},
		{"statefulset", &appsv1.StatefulSet{TypeMeta: tm("apps/v1", "StatefulSet"), ObjectMeta: objectMeta("sts", "team-a", 7),
			Spec: appsv1.StatefulSetSpec{Replicas: ptr(int32(3)), Template: template(), ServiceName: "svc",
				PodManagementPolicy: appsv1.ParallelPodManagement, Ordinals: &appsv1.StatefulSetOrdinals{Start: 2},
				VolumeClaimTemplates: []v1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "www"}}, {ObjectMeta: metav1.ObjectMeta{Name: "db"}}}},
			Status: appsv1.StatefulSetStatus{Replicas: 2, ReadyReplicas: 1}}},
		{"deployment", &appsv1.Deployment{TypeMeta: tm("apps/v1", "Deployment"), ObjectMeta: objectMeta("web", "team-a", 8),
			Spec:   appsv1.DeploymentSpec{Replicas: ptr(int32(5)), Template: template(), Paused: true},
			Status: appsv1.DeploymentStatus{Replicas: 4, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 1}}},
		{"priorityclass", &schedv1.PriorityClass{TypeMeta: tm("scheduling.k8s.io/v1", "PriorityClass"), ObjectMeta: objectMeta("high", "", 9),
			Value: -10, GlobalDefault: true, Description: "d", PreemptionPolicy: ptr(v1.PreemptNever)}},
		{"storageclass", &storagev1.StorageClass{TypeMeta: tm("storage.k8s.io/v1", "StorageClass"), ObjectMeta: objectMeta("fast", "", 10),
			Provisioner: "example.com/p", VolumeBindingMode: ptr(storagev1.VolumeBindingWaitForFirstConsumer)}},
		{"csinode", &storagev1.CSINode{TypeMeta: tm("storage.k8s.io/v1", "CSINode"), ObjectMeta: objectMeta("node-1", "", 23),
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
				{Name: "disk.example.com", NodeID: "n", TopologyKeys: []string{"zone"}, Allocatable: &storagev1.VolumeNodeResources{Count: ptr(int32(25))}},
				{Name: "files.example.com", NodeID: "n"},
				{Name: "none.example.com", NodeID: "n", Allocatable: &storagev1.VolumeNodeResources{Count: ptr(int32(0))}}}}}},
		{"attachment", &storagev1.VolumeAttachment{TypeMeta: tm("storage.k8s.io/v1", "VolumeAttachment"), ObjectMeta: objectMeta("csi-1", "", 24),
			Spec: storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com", NodeName: "node-1",
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr("pv-1")}},
			Status: storagev1.VolumeAttachmentStatus{Attached: true}}},
		{"limitrange", &v1.LimitRange{TypeMeta: tm("v1", "LimitRange"), ObjectMeta: objectMeta("limits", "team-a", 21),
			Spec: v1.LimitRangeSpec{Limits: []v1.LimitRangeItem{
				{Type: v1.LimitTypePod, DefaultRequest: v1.ResourceList{"cpu": resource.MustParse("64")}},
				{Type: v1.LimitTypeContainer, Default: v1.ResourceList{"cpu": resource.MustParse("9")},
					DefaultRequest: v1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi")}},
				{Type: v1.LimitTypeContainer, DefaultRequest: v1.ResourceList{"cpu": resource.MustParse("2")}}}}}},
		{"runtimeclass", &nodev1.RuntimeClass{TypeMeta: tm("node.k8s.io/v1", "RuntimeClass"), ObjectMeta: objectMeta("kata", "", 22),
			Handler: "kata", Overhead: &nodev1.Overhead{PodFixed: v1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("120Mi")}},
			Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kata": "yes"},
				Tolerations: []v1.Toleration{{Key: "kata", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}}}}},
		{"lease", &coordv1.Lease{TypeMeta: tm("coordination.k8s.io/v1", "Lease"), ObjectMeta: objectMeta("sluice", "sluice-system", 11),
			Spec: coordv1.LeaseSpec{HolderIdentity: ptr("me"), LeaseDurationSeconds: ptr(int32(15)), AcquireTime: &tr, RenewTime: &tr,
				LeaseTransitions: ptr(int32(3))}}},
		{"podgroup", &schedv1alpha2.PodGroup{TypeMeta: tm("scheduling.k8s.io/v1alpha2", "PodGroup"), ObjectMeta: objectMeta("pg", "team-a", 12),
			Spec: schedv1alpha2.PodGroupSpec{
				PodGroupTemplateRef:   &schedv1alpha2.PodGroupTemplateReference{Workload: &schedv1alpha2.WorkloadPodGroupTemplateReference{WorkloadName: "w", PodGroupTemplateName: "t"}},
				SchedulingPolicy:      schedv1alpha2.PodGroupSchedulingPolicy{Gang: &schedv1alpha2.GangSchedulingPolicy{MinCount: 4}},
				SchedulingConstraints: &schedv1alpha2.PodGroupSchedulingConstraints{Topology: []schedv1alpha2.TopologyConstraint{{Key: "rack"}}},
				ResourceClaims:        []schedv1alpha2.PodGroupResourceClaim{{Name: "c"}},
				DisruptionMode:        ptr(schedv1alpha2.DisruptionModePodGroup), PriorityClassName: "high", Priority: ptr(int32(0))},
			Status: schedv1alpha2.PodGroupStatus{Conditions: []metav1.Condition{{Type: "PodGroupScheduled", Status: metav1.ConditionTrue,
				ObservedGeneration: 7, LastTransitionTime: at(30), Reason: "Scheduled", Message: "all"}}}}},
		{"partial", &metav1.PartialObjectMetadata{TypeMeta: tm("meta.k8s.io/v1", "PartialObjectMetadata"), ObjectMeta: objectMeta("any", "team-a", 13)}},
		{"status", &metav1.Status{TypeMeta: tm("v1", "Status"), Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired,
			Message: "too old resource version: 5 (900)", Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}},
	}
}

type event struct {
	kind string
	obj  runtime.Object
}

func events() []event {
	a, b := pod(1), pod(1)
	a.TypeMeta, b.TypeMeta = tm("v1", "Pod"), tm("v1", "Pod")
	b.ResourceVersion = "2001"
	mark := &v1.Pod{TypeMeta: tm("v1", "Pod"), ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2002",
		Annotations: map[string]string{"k8s.io/initial-events-end": "true"}}}
	gone := &metav1.Status{TypeMeta: tm("v1", "Status"), Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired,
		Message: "too old resource version: 5 (900)"}
	return []event{{"ADDED", a}, {"MODIFIED", b}, {"BOOKMARK", mark}, {"DELETED", b}, {"ERROR", gone}}
}

// pod is what a running pod of a Job looks like in a real cluster.
func pod(i int) *v1.Pod {
	job := i / 20
	name := fmt.Sprintf("train-%06d-%d-%05x", job, i%20, (i*2654435761)&0xfffff)
	node := fmt.Sprintf("node-%05d", i%5000)
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, GenerateName: fmt.Sprintf("train-%06d-%d-", job, i%20),
			Namespace: fmt.Sprintf("team-%02d", job%40), UID: uid(100000 + i), ResourceVersion: fmt.Sprint(5000000 + i),
			Generation: 1, CreationTimestamp: at(i / 100),
			Labels: map[string]string{"batch.kubernetes.io/controller-uid": string(uid(job)), "controller-uid": string(uid(job)),
				"batch.kubernetes.io/job-name": fmt.Sprintf("train-%06d", job), "job-name": fmt.Sprintf("train-%06d", job),
				"batch.kubernetes.io/job-completion-index": fmt.Sprint(i % 20), "app": "train"},
			Annotations:     map[string]string{"batch.kubernetes.io/job-completion-index": fmt.Sprint(i % 20), "cni.example/ip": fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: fmt.Sprintf("train-%06d", job), UID: uid(job), Controller: ptr(true), BlockOwnerDeletion: ptr(true)}},
			Finalizers:      []string{"batch.kubernetes.io/job-tracking"},
			ManagedFields:   append(managed("kube-controller-manager", i/100), append(managed("kube-scheduler", i/100), managed("kubelet", i/100)...)...)},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: "default-scheduler", RestartPolicy: v1.RestartPolicyNever,
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", DNSPolicy: v1.DNSClusterFirst,
			EnableServiceLinks: ptr(true), Priority: ptr(int32(0)), PreemptionPolicy: ptr(v1.PreemptLowerPriority),
			TerminationGracePeriodSeconds: ptr(int64(30)), SecurityContext: &v1.PodSecurityContext{},
			Containers: []v1.Container{{Name: "main", Image: "registry.example/team/train:2026.11", Command: []string{"python", "-m", "train"},
				Args: []string{"--rank", fmt.Sprint(i % 20), "--world", "20"},
				Env: []v1.EnvVar{{Name: "MASTER_ADDR", Value: fmt.Sprintf("train-%06d-0", job)}, {Name: "JOB_COMPLETION_INDEX",
					ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}}},
				Resources:              v1.ResourceRequirements{Requests: res("cpu", "3500m", "memory", "12Gi"), Limits: res("memory", "12Gi")},
				VolumeMounts:           []v1.VolumeMount{{Name: "kube-api-access-abcde", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile, ImagePullPolicy: v1.PullIfNotPresent}},
			Volumes: []v1.Volume{{Name: "kube-api-access-abcde", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: ptr(int32(420)),
				Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{ExpirationSeconds: ptr(int64(3607)), Path: "token"}},
					{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}}}}}}},
			Tolerations: []v1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(300))},
				{Key: "node.kubernetes.io/unreachable", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(300))}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, HostIP: "10.0.0.1", PodIP: "10.1.2.3", StartTime: ptr(at(i/100 + 1)), QOSClass: v1.PodQOSBurstable,
			HostIPs: []v1.HostIP{{IP: "10.0.0.1"}}, PodIPs: []v1.PodIP{{IP: "10.1.2.3"}},
			Conditions: []v1.PodCondition{
				{Type: "PodReadyToStartContainers", Status: v1.ConditionTrue, LastTransitionTime: at(i/100 + 2)},
				{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: at(i/100 + 1)},
				{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: at(i/100 + 3)},
				{Type: v1.ContainersReady, Status: v1.ConditionTrue, LastTransitionTime: at(i/100 + 3)},
				{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: at(i/100 + 1)}},
			ContainerStatuses: []v1.ContainerStatus{{Name: "main", Ready: true, Started: ptr(true), Image: "registry.example/team/train:2026.11",
				ImageID:     "registry.example/team/train@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
				ContainerID: fmt.Sprintf("containerd://%064x", i), State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: at(i/100 + 2)}},
				AllocatedResources: res("cpu", "3500m", "memory", "12Gi"),
				Resources:          &v1.ResourceRequirements{Requests: res("cpu", "3500m", "memory", "12Gi"), Limits: res("memory", "12Gi")}}}},
	}
}

func podList(n int) *v1.PodList {
	l := &v1.PodList{TypeMeta: tm("v1", "PodList"), ListMeta: metav1.ListMeta{ResourceVersion: "6000000"}}
	for i := 0; i < n; i++ {
		l.Items = append(l.Items, *pod(i))
	}
	return l
}

func nodeList(n int) *v1.NodeList {
	l := &v1.NodeList{TypeMeta: tm("v1", "NodeList"), ListMeta: metav1.ListMeta{ResourceVersion: "6000000"}}
	for i := 0; i < n; i++ {
		o := node()
		name := fmt.Sprintf("node-%05d", i)
		o.TypeMeta, o.Name, o.UID, o.ResourceVersion = metav1.TypeMeta{}, name, uid(i), fmt.Sprint(4000000+i)
		o.Labels = map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
			"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "c64",
			"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%4), "topology.kubernetes.io/region": "here",
			"sluice.sh/block": fmt.Sprintf("block-%d", i/256), "sluice.sh/rack": fmt.Sprintf("rack-%d", i/32)}
		o.Annotations = map[string]string{"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"}
		o.Spec.Unschedulable, o.Spec.Taints = false, nil
		for k := 0; k < 30; k++ {
			o.Status.Images = append(o.Status.Images, v1.ContainerImage{Names: []string{fmt.Sprintf("registry.example/image-%d@sha256:%064x", k, k), fmt.Sprintf("registry.example/image-%d:1", k)}, SizeBytes: 1 << 28})
		}
		for _, t := range []v1.NodeConditionType{v1.NodeDiskPressure, v1.NodePIDPressure} {
			o.Status.Conditions = append(o.Status.Conditions, v1.NodeCondition{Type: t, Status: v1.ConditionFalse, LastTransitionTime: at(2), LastHeartbeatTime: at(5), Reason: "Kubelet"})
		}
		l.Items = append(l.Items, *o)
	}
	return l
}
