package importer

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// imported returns what an import of some rows makes, beside a pool that was there before.
func imported(t *testing.T) Here {
	t.Helper()
	pool := func(name, third string) v1.BCSNetPool {
		o := Pool(name)
		o.Spec = v1.BCSNetPoolSpec{Net: "10.1." + third + ".0", Mask: 24, AvailableIPs: []string{"10.1." + third + ".20-10.1." + third + ".40"}}
		return o
	}
	x := index.New()
	before := pool("before", "2")
	x.Pools.SetPool(store.Pool(&before))
	held := func(addr, pod, container string) Address {
		return Address{Addr: netip.MustParseAddr(addr), Object: addr, State: Held,
			Holder: lease.Holder{Namespace: "shop", PodName: pod, ContainerID: container}}
	}
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	plan := Make(Input{
		Rows: Rows{
			System: "whereabouts", Pools: []v1.BCSNetPool{pool("lan", "0")},
			Claims: []Claim{
				{Namespace: "shop", Name: "db", Object: "claim db", Addr: netip.MustParseAddr("10.1.0.30"), Bound: true},
			},
			Addresses: []Address{
				held("10.1.0.20", "web", "0123456789abcdef"), held("10.1.0.21", "job", ""), held("10.1.2.20", "old", "c"),
				{Addr: netip.MustParseAddr("10.1.0.22"), Object: "x", State: Kept, Reason: "for a printer"},
				{Addr: netip.MustParseAddr("10.1.2.22"), Object: "y", State: Kept, Reason: "for a printer"},
			},
		},
		Index: x, Now: now, By: "me",
	})
	if len(plan.Conflicts) > 0 {
		t.Fatal(plan.Conflicts)
	}
	h := Here{System: "whereabouts", Now: now.Add(time.Hour), By: "me", Leases: plan.Leases,
		Pools: []*v1.BCSNetPool{&plan.Pools[0], &before}, Claims: []*v1.BCSNetIPClaim{&plan.Claims[0]}}
	for i := range h.Leases {
		h.Leases[i].Version = 1
	}
	return h
}

// change replaces the lease of an address.
func change(h *Here, addr string, to func(lease.Lease) (lease.Lease, bool)) {
	for i, l := range h.Leases {
		if l.Addr == netip.MustParseAddr(addr) {
			h.Leases[i], _ = to(l)
		}
	}
}

func TestRevert(t *testing.T) {
	bind := func(container string) func(lease.Lease) (lease.Lease, bool) {
		return func(l lease.Lease) (lease.Lease, bool) {
			h := l.Holder
			h.PodUID, h.ContainerID = "u", container
			l.PodUID = "u"
			return lease.Bind(l, l.Params, h, l.Retention, l.Updated)
		}
	}
	release := func(l lease.Lease) (lease.Lease, bool) {
		return lease.Release(l, l.Updated.Add(time.Minute), lease.Change{})
	}
	for name, c := range map[string]struct {
		since func(*Here)
		want  string
	}{
		"nothing happened since": {func(*Here) {}, `
10.1.0.20 Reserved whereabouts: returned to it
10.1.0.21 Reserved whereabouts: returned to it
10.1.0.30 Reserved whereabouts: returned to it
10.1.2.20 Reserved whereabouts: returned to it
delete [shop/db] [lan], 2 stay reserved`},
		"the same container asked again": {func(h *Here) { change(h, "10.1.0.20", bind("0123456789abcdef")) }, `
10.1.0.20 Reserved whereabouts: returned to it
10.1.0.21 Reserved whereabouts: returned to it
10.1.0.30 Reserved whereabouts: returned to it
10.1.2.20 Reserved whereabouts: returned to it
delete [shop/db] [lan], 2 stay reserved`},
		"other containers of the pods got theirs here": {func(h *Here) {
			change(h, "10.1.0.20", bind("later"))
			change(h, "10.1.0.21", bind("first"))
			change(h, "10.1.2.20", bind("later"))
		}, `
10.1.0.30 Reserved whereabouts: returned to it
BCSNetIP 10.1.0.20: shop/web got it here since
BCSNetIP 10.1.0.21: shop/job got it here since
BCSNetPool lan: 10.1.0.21 of it stays
delete [shop/db] [], 1 stay reserved`},
		"a pod ended": {func(h *Here) {
			change(h, "10.1.0.20", release)
			h.Leases = append(h.Leases[:0], h.Leases[1:]...) // it is held no more
		}, `
10.1.0.21 Reserved whereabouts: returned to it
10.1.0.30 Reserved whereabouts: returned to it
10.1.2.20 Reserved whereabouts: returned to it
delete [shop/db] [lan], 2 stay reserved`},
		"a pod of the claim got its address here": {func(h *Here) {
			change(h, "10.1.0.30", func(l lease.Lease) (lease.Lease, bool) {
				return lease.Bind(l, l.Params, lease.Holder{Namespace: "shop", PodName: "db-0", ContainerID: "x", IfName: "eth0"},
					l.Retention, l.Updated)
			})
		}, `
10.1.0.20 Reserved whereabouts: returned to it
10.1.0.21 Reserved whereabouts: returned to it
10.1.2.20 Reserved whereabouts: returned to it
BCSNetIP 10.1.0.30: shop/db-0 got it here since
BCSNetIPClaim shop/db: 10.1.0.30 of it stays
BCSNetPool lan: 10.1.0.30 of it stays
delete [] [], 2 stay reserved`},
		"it runs again": {func(h *Here) {
			for i, l := range h.Leases {
				if next, ok := h.Back(l); ok {
					h.Leases[i] = next
				}
			}
			h.Claims, h.Pools = nil, h.Pools[1:]
		}, "delete [] [], 6 stay reserved"},
		"the pool was opened and has a block": {func(h *Here) {
			h.Pools[0].Spec.Cordoned = false
			child := Pool("lan-block")
			child.Spec.Parent = "lan"
			h.Pools = append(h.Pools, &child)
		}, `
cordon [lan]
10.1.0.20 Reserved whereabouts: returned to it
10.1.0.21 Reserved whereabouts: returned to it
10.1.0.30 Reserved whereabouts: returned to it
10.1.2.20 Reserved whereabouts: returned to it
BCSNetPool lan: pool lan-block is carved from it
delete [shop/db] [], 2 stay reserved`},
		"a table": {func(h *Here) { h.Table = true }, `
10.1.0.20 Reserved whereabouts: returned to it
10.1.0.21 Reserved whereabouts: returned to it
10.1.0.22 Available 
10.1.0.30 Reserved whereabouts: returned to it
10.1.2.20 Reserved whereabouts: returned to it
10.1.2.22 Available 
delete [shop/db] [lan], 0 stay reserved`},
		"an import of another system": {func(h *Here) { h.System = "calico" }, "delete [] [], 0 stay reserved"},
	} {
		t.Run(name, func(t *testing.T) {
			h := imported(t)
			c.since(&h)
			r := Revert(h)
			var lines, claims, pools []string
			if len(r.Cordon) > 0 {
				lines = append(lines, fmt.Sprintf("cordon %v", r.Cordon))
			}
			for _, l := range r.Leases {
				next, _ := h.Back(l)
				lines = append(lines, fmt.Sprintf("%s %s %s", next.Addr, next.State, next.Reservation().Reason))
			}
			for _, s := range r.Stay {
				lines = append(lines, s.Object+": "+s.Cause)
			}
			for _, o := range r.Claims {
				claims = append(claims, o.Namespace+"/"+o.Name)
			}
			for _, o := range r.Pools {
				pools = append(pools, o.Name)
			}
			lines = append(lines, fmt.Sprintf("delete %v %v, %d stay reserved", claims, pools, r.Reserved))
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), strings.Join(lines, "\n")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
