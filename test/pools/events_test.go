package pools_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestEventsOfTransitions: a pool has an event for every condition that turned, and none for other changes.
func TestEventsOfTransitions(t *testing.T) {
	p := newPool(t, "events", func(s *v1.BCSNetPoolSpec) { s.Hosts = nil }, "10.40.0.20")
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoHosts)
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Hosts = []string{host} })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Priority = 7 })
	wantStatus(t, p, 1, 1, 0)
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = append(s.AvailableIPs, "10.40.0.21") })
	wantStatus(t, p, 2, 2, 0)
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Cordoned = true })
	const want = "Warning NoHosts, Normal Ready, Normal Cordoned"
	controlplane.EventuallyWithin(t, patience, func() error {
		if got := strings.Join(eventsOf(t, p), ", "); got != want {
			return fmt.Errorf("the events are %s; want %s", got, want)
		}
		return nil
	})
}

// eventsOf are the events about a pool in their order.
func eventsOf(t *testing.T, p *v1.BCSNetPool) (out []string) {
	t.Helper()
	var all eventsv1.EventList
	if err := admin.List(t.Context(), &all, client.InNamespace(metav1.NamespaceDefault),
		client.MatchingFields{"regarding.uid": string(p.UID)}); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b eventsv1.Event) int {
		return cmp.Compare(a.EventTime.UnixMicro(),
			b.EventTime.UnixMicro())
	})
	for _, e := range all.Items {
		out = append(out, e.Type+" "+e.Reason)
	}
	return out
}
