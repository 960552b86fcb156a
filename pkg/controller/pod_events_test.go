package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// A refusal of a pod that the watch has not brought yet, or of which it has the one before, is noted all the same.
func TestRefusedBeforeTheWatchKnows(t *testing.T) {
	pod := func(uid string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: types.UID(uid)}}
	}
	reader := func(pods ...client.Object) client.Reader { return fake.NewClientBuilder().WithObjects(pods...).Build() }
	for name, tc := range map[string]struct {
		cached, live client.Reader
		noted        int
	}{
		"both know it":            {reader(pod("new")), reader(pod("new")), 1},
		"the watch is late":       {reader(), reader(pod("new")), 1},
		"the watch has the older": {reader(pod("old")), reader(pod("new")), 1},
		"it went":                 {reader(pod("new")), reader(), 1},
		"it went for everybody":   {reader(), reader(), 0},
		"another has its name":    {reader(pod("old")), reader(pod("old")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1)
			e := newPodEvents(tc.cached, tc.live, recorder)
			noted := 0
			e.note = func(workload.Pod, *ipam.Refusal) { noted++ }
			e.refused(allocator.Request{Namespace: "shop", PodName: "web-0", PodUID: "new"},
				&ipam.Refusal{Reason: ipam.ReasonPoolExhausted, Message: "full"})
			e.handle(t.Context(), <-e.waiting)
			if noted != tc.noted || len(recorder.Events) != tc.noted {
				t.Errorf("noted %d times with %d events, want %d", noted, len(recorder.Events), tc.noted)
			}
		})
	}
}
