package http_test

import (
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A pod that gets no address has one event that says why and what to do, however often it asks; one that gets
// its address has none.
func TestPodEvents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(1, nil)
	s.pod("served")
	s.pod("waits")
	s.add(s.request(newID(), "served")).done(t)
	var a answer
	for range 5 {
		a = s.add(s.request(newID(), "waits"))
		a.refusedWith(t, "PoolExhausted")
	}
	var all eventsv1.EventList
	controlplane.Eventually(t, func() error {
		if err := shared.admin.List(t.Context(), &all, client.InNamespace(s.Namespace)); err != nil {
			return err
		}
		if len(all.Items) == 0 || all.Items[0].Series == nil {
			return fmt.Errorf("the events are %+v, want one that was repeated", all.Items)
		}
		return nil
	})
	e := all.Items[0]
	if len(all.Items) != 1 || e.Regarding.Name != "waits" || e.Regarding.Kind != "Pod" || e.Type != "Warning" ||
		e.Reason != "AddressNotAllocated" ||
		!strings.Contains(e.Note, a.Message) || !strings.Contains(e.Note, a.Hint) {
		t.Errorf("the events are %+v; the refusal was %s", all.Items, a.Raw)
	}
}
