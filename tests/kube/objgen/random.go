package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"path/filepath"
	"sort"
	"strings"
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
	"k8s.io/apimachinery/pkg/util/intstr"
	helpers "k8s.io/component-helpers/resource"
	"sigs.k8s.io/randfill"
)

// random fills objects of every kind at random, unknown fields and all, and writes each in both encodings:
// RESOURCE.jsonl and RESOURCE.frames (4-byte lengths).
func random(seed int64, n int, dir string) {
	kinds := []struct {
		resource string
		make     func() runtime.Object
	}{
		{"pods", func() runtime.Object { return &v1.Pod{} }},
		{"nodes", func() runtime.Object { return &v1.Node{} }},
		{"namespaces", func() runtime.Object { return &v1.Namespace{} }},
		{"persistentvolumeclaims", func() runtime.Object { return &v1.PersistentVolumeClaim{} }},
		{"persistentvolumes", func() runtime.Object { return &v1.PersistentVolume{} }},
		{"jobs", func() runtime.Object { return &batchv1.Job{} }},
		{"replicasets", func() runtime.Object { return &appsv1.ReplicaSet{} }},
		{"statefulsets", func() runtime.Object { return &appsv1.StatefulSet{} }},
		{"deployments", func() runtime.Object { return &appsv1.Deployment{} }},
		{"priorityclasses", func() runtime.Object { return &schedv1.PriorityClass{} }},
		{"storageclasses", func() runtime.Object { return &storagev1.StorageClass{} }},
		{"csinodes", func() runtime.Object { return &storagev1.CSINode{} }},
		{"volumeattachments", func() runtime.Object { return &storagev1.VolumeAttachment{} }},
		{"limitranges", func() runtime.Object { return &v1.LimitRange{} }},
		{"runtimeclasses", func() runtime.Object { return &nodev1.RuntimeClass{} }},
		{"leases", func() runtime.Object { return &coordv1.Lease{} }},
		{"podgroups", func() runtime.Object { return &schedv1alpha2.PodGroup{} }},
	}
	words := []string{"True", "False", "Unknown", "Ready", "PodScheduled", "DisruptionTarget", "Always", "Never", "Exists",
		"In", "NoSchedule", "NoExecute", "Running", "Failed", "Complete", "cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi",
		"sluice.sh/size", "UDP", "Indexed", "Parallel", "Bound", "DoNotSchedule", "ScheduleAnyway", "main", ""}
	// Whole numbers only: Kubernetes adds first and rounds then, we round each amount up before.
	amounts := []string{"0", "1", "2", "3Gi", "12e6", "1Ki", "7", "9007199254740"}
	f := randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 3).MaxDepth(30).Funcs(
		func(s *string, c randfill.Continue) {
			if c.Intn(3) > 0 {
				*s = words[c.Intn(len(words))]
			} else {
				*s = c.String(12)
			}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(amounts[c.Intn(len(amounts))])
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(time.Unix(c.Int63n(4e9), 0).UTC()) },
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63n(4e9), c.Int63n(1e6)*1000).UTC())
		},
		func(m *metav1.FieldsV1, c randfill.Continue) { m.Raw = []byte(`{"f:a":{}}`) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{}`) },
		func(i *intstr.IntOrString, c randfill.Continue) { *i = intstr.FromInt32(c.Int31()) },
	)
	var want bytes.Buffer
	r := rand.New(rand.NewSource(seed))
	for _, k := range kinds {
		var js strings.Builder
		var pb []byte
		for i := 0; i < n; i++ {
			obj := k.make()
			f.Fill(obj)
			if p, ok := obj.(*v1.Pod); ok {
				tidy(p)
			}
			m := obj.(metav1.Object)
			m.SetResourceVersion(map[bool]string{true: "", false: "123456"}[r.Intn(5) == 0])
			obj.GetObjectKind().SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Any"))
			j, err := json.Marshal(obj)
			if err != nil {
				log.Fatal(err)
			}
			js.Write(j)
			js.WriteByte('\n')
			if p, ok := obj.(*v1.Pod); ok {
				want.Write(requests(p))
			}
			b := protobufOf(obj)
			pb = append(binary.BigEndian.AppendUint32(pb, uint32(len(b))), b...)
		}
		write(filepath.Join(dir, k.resource+".jsonl"), []byte(js.String()))
		write(filepath.Join(dir, k.resource+".frames"), pb)
	}
	write(filepath.Join(dir, "pods.requests"), want.Bytes())
}

// tidy gives containers and their statuses names that are unique and fit, as the API demands.
func tidy(p *v1.Pod) {
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Name = fmt.Sprintf("c%d", i)
	}
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Name = fmt.Sprintf("i%d", i)
	}
	for i := range p.Status.ContainerStatuses {
		p.Status.ContainerStatuses[i].Name = fmt.Sprintf("c%d", i)
	}
	for i := range p.Status.InitContainerStatuses {
		p.Status.InitContainerStatuses[i].Name = fmt.Sprintf("i%d", i)
	}
}

// requests is what the scheduler of Kubernetes counts for a pod: one line of {"name":...,"amount":...} as
// our decoder prints them, cpu in thousandths.
func requests(p *v1.Pod) []byte {
	l := helpers.PodRequests(p, helpers.PodResourcesOptions{UseStatusResources: true})
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, string(name))
	}
	sort.Strings(names)
	var b bytes.Buffer
	b.WriteString(`"requests":[`)
	comma := ""
	for _, name := range names {
		q := l[v1.ResourceName(name)]
		v := q.Value()
		if name == "cpu" {
			v = q.MilliValue()
		}
		if v == 0 {
			continue
		}
		var quoted bytes.Buffer
		e := json.NewEncoder(&quoted)
		e.SetEscapeHTML(false)
		if err := e.Encode(name); err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(&b, `%s{"name":%s,"amount":%d}`, comma, bytes.TrimSpace(quoted.Bytes()), v)
		comma = ","
	}
	b.WriteString("]\n")
	return b.Bytes()
}
