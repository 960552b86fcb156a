package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// What is read of a Pod is all that decides about its addresses, here and at the leader, who is asked by what was read.
func TestReadPod(t *testing.T) {
	t.Parallel()
	whole := askingPod("p")
	whole.ResourceVersion, whole.GenerateName = "7", "p-"
	whole.CreationTimestamp = metav1.Unix(1_700_000_000, 0)
	whole.DeletionTimestamp, whole.DeletionGracePeriodSeconds = new(metav1.Unix(1_700_000_030, 0)), new(int64(30))
	whole.Labels = map[string]string{workload.VMLabel: "vm"}
	whole.Annotations = map[string]string{"k8s.v1.cni.galaxy.io/release-policy": "never"}
	whole.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u", Controller: new(true),
	}}
	whole.Spec.NodeName, whole.Spec.HostNetwork, whole.Status.Phase = "node-1", true, corev1.PodPending
	whole.Spec.InitContainers = whole.Spec.Containers
	whole.Spec.Resources = &corev1.ResourceRequirements{Limits: whole.Spec.Containers[0].Resources.Requests}
	q, err := readQuestion(marshal(extenderv1.ExtenderArgs{Pod: whole, NodeNames: &[]string{"a"}}))
	if err != nil {
		t.Fatal(err)
	}
	again, err := readQuestion(q.short())
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*corev1.Pod{"here": q.pod, "at the leader": again.pod} {
		if diff := cmp.Diff(workload.FromObject(whole), workload.FromObject(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for what, pair := range map[string][2]any{
			"containers": {whole.Spec.Containers[0].Resources, got.Spec.Containers[0].Resources}, "init": {whole.Spec.InitContainers[0].Resources, got.Spec.InitContainers[0].Resources},
			"pod": {whole.Spec.Resources, got.Spec.Resources},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s: resources of %s (-want +got):\n%s", name, what, diff)
			}
		}
	}
}

func TestCommas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][3]int{
		"": {}, "[]": {}, "[1,2]": {1, 1, 0}, `{"a":[1,2,3],"b":{}}`: {3, 1, 2}, `[",,\\",",\"",[[1,2]]]`: {3, 2, 0}, `["a\\\",",{"x":1,"y":2}]`: {2, 1, 1},
	} {
		if got := [3]int{commas([]byte(text), anyDepth), commas([]byte(text), 1), commas([]byte(text), 2)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// FuzzQuestion: any body is refused for a reason that is the caller's, or asks about a Pod and nodes within the bounds,
// which the leader reads as the same ones.
func FuzzQuestion(f *testing.F) {
	for _, body := range []string{
		`{"Pod":{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"a/b":"1"}}}]}},"NodeNames":["a","b"]}`,
		`{"pod":{},"Nodes":{"items":[{"metadata":{"name":"a"}},{}]}}`, `{"Pod":null,"NodeNames":null}`, `{"Pod":{},"Nodes":{}}`, `{"Pod":{"spec":null},"NodeNames":[]}`,
		`{}`, `null`, `[]`, `{"Pod":`, ``, `{"Pod":{},"NodeNames":["\ud800"]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		q, err := readQuestion(body)
		if err != nil {
			if reason := asRefusal(err).Reason; reason != ipam.ReasonBadRequest && reason != ipam.ReasonMissingField {
				t.Errorf("%q is refused as %s: %v", body, reason, err)
			}
			return
		}
		if q.pod == nil || len(q.names) > maxAsked || q.nodes != nil && len(q.nodes) != len(q.names) {
			t.Fatalf("%q is read as %+v", body, q)
		}
		again, err := readQuestion(q.short())
		// a time out of bounds cannot be written as it was read
		if err != nil && !strings.Contains(err.Error(), "cannot be read") {
			t.Fatalf("%q cannot be passed on: %v", body, err)
		}
		if err == nil && strings.Join(again.names, ",") != strings.Join(q.names, ",") {
			t.Errorf("%q is passed on as %q", body, again.names)
		}
	})
}

// TestPodOfManyParts: of a Pod with more parts than are counted for nothing is decoded, however small they are.
func TestPodOfManyParts(t *testing.T) {
	t.Parallel()
	for n, refused := range map[int]bool{maxPodParts: false, maxPodParts + 1: true, 10 * maxPodParts: true} {
		text := `{"metadata":{"finalizers":[` + strings.Repeat(`"",`, n) + `""]}}`
		_, err := readPod(span(text))
		want := fmt.Sprintf("Pod has %d parts, more than %d", n, maxPodParts)
		if refusal, ok := errors.AsType[*ipam.Refusal](err); ok != refused || ok && refusal.Message != want {
			t.Errorf("%d parts: %v", n, err)
		}
	}
}
