// objgen of Kubernetes 1.37, for what its version of the libraries has and the one beside does not:
//
//	go run . DIR             the fixture podgroup-beta in both encodings
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"time"

	schedv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func main() {
	priority := int32(5)
	obj := &schedv1beta1.PodGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup"},
		ObjectMeta: metav1.ObjectMeta{Name: "pg", Namespace: "team-a", UID: "u-12", ResourceVersion: "12", Generation: 7},
		Spec: schedv1beta1.PodGroupSpec{
			WorkloadRef:      &schedv1beta1.WorkloadReference{WorkloadName: "w", TemplateName: "t"},
			SchedulingPolicy: schedv1beta1.PodGroupSchedulingPolicy{Gang: &schedv1beta1.GangSchedulingPolicy{MinCount: 4}},
			SchedulingConstraints: &schedv1beta1.PodGroupSchedulingConstraints{
				Topology: []schedv1beta1.TopologyConstraint{{Key: "rack"}}},
			ResourceClaims:    []schedv1beta1.PodGroupResourceClaim{{Name: "c"}},
			DisruptionMode:    &schedv1beta1.DisruptionMode{All: &schedv1beta1.AllDisruptionMode{}},
			PriorityClassName: "high", Priority: &priority,
		},
		Status: schedv1beta1.PodGroupStatus{Conditions: []metav1.Condition{{
			Type: schedv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled", ObservedGeneration: 7,
			LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0).UTC())}}},
	}
	var b bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(obj, &b); err != nil {
		log.Fatal(err)
	}
	text, err := json.MarshalIndent(obj, "", " ")
	if err != nil {
		log.Fatal(err)
	}
	for ext, data := range map[string][]byte{"pb": b.Bytes(), "json": append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(os.Args[1], "podgroup-beta."+ext), data, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
