package gc

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestRefusalsTellOfSuspects: who finds a pool exhausted hears how many of its addresses are held for pods that are
// gone, as long as the passes see that.
func TestRefusalsTellOfSuspects(t *testing.T) {
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.20"},
	})
	if err != nil {
		t.Fatal(err)
	}
	host := netip.MustParseAddr("192.168.0.1")
	held := lease.Lease{
		Addr: netip.MustParseAddr("10.0.0.20"), State: lease.Active, Version: 1,
		Params: lease.Params{Pool: "blue", Bits: 24},
		Holder: lease.Holder{ContainerID: "c", PodName: "web-0", Namespace: "shop"},
	}
	c := Collector{Config: Config{Index: index.New()}}
	c.Index.Pools.SetPool(ipam.Pool{Name: "blue", Plan: plan, Hosts: map[netip.Addr]struct{}{host: {}}})
	c.Index.Feed.Watched(held)
	for _, tells := range []bool{true, false} {
		var suspects map[spot]suspect
		if tells {
			suspects = map[spot]suspect{spotOf(held): {lease: held}}
		}
		c.setSuspects(suspects, nil)
		_, refusal := c.Index.Pick(ipam.PickRequest{Host: host, Namespace: "shop", Key: "k", Who: "pod shop/web-1"}, time.Now())
		if refusal == nil || strings.Contains(refusal.Error(), "1 active (1 for pods that are gone)") != tells {
			t.Errorf("with suspects %t: %v", tells, refusal)
		}
	}
}

// TestWaitsOutliveAPoolsEdit: a pool whose gateway changes has all of its leases written anew. Those whose pods are
// gone have waited all the same; a lease that was bound anew begins to wait.
func TestWaitsOutliveAPoolsEdit(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	params := lease.Params{Pool: "blue", Bits: 24, Gateway: netip.MustParseAddr("10.0.0.1")}
	before := lease.Lease{
		Addr: netip.MustParseAddr("10.0.0.20"), State: lease.Active, Params: params, Version: 7, Updated: at,
		Holder: lease.Holder{ContainerID: "c", PodUID: "u", PodName: "web-0", Namespace: "shop"},
	}
	params.Gateway = netip.MustParseAddr("10.0.0.254")
	edited, changed := lease.Refresh(before, params)
	edited.Version = 9
	rebound := edited
	rebound.ContainerID, rebound.Updated, rebound.BoundVersion = "d", at.Add(time.Second), 0
	w := waits{object: &corev1.ConfigMap{Data: map[string]string{waitKey(before): "2026-01-02T03:05:00Z 7"}}}
	for name, tc := range map[string]struct {
		lease lease.Lease
		same  bool
	}{
		"as it was": {before, true}, "after the edit": {edited, true}, "bound anew": {rebound, false},
	} {
		_, known := w.since(tc.lease)
		if got := sameHolding(before, tc.lease); got != tc.same || known != tc.same || !changed {
			t.Errorf("%s: the same holding is %t, waiting is known %t, want %t", name, got, known, tc.same)
		}
	}
}
