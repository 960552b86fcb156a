package pool

import (
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// TestDueSweepsLargePools: a pool that makes its objects on demand keeps 4,096 that nobody holds, those that
// were used last; what the spec wants to exist is never removed.
func TestDueSweepsLargePools(t *testing.T) {
	const extra = 7
	for name, test := range map[string]struct {
		spec   v1.BCSNetPoolSpec
		remove int
	}{
		"IPv6, on demand": {v1.BCSNetPoolSpec{
			Net: "fd00::", Mask: 64, Gateway: "fd00::1", AvailableIPs: []string{"fd00::/64"},
		}, extra},
		"IPv6, on demand, oldest named singly": {v1.BCSNetPoolSpec{
			Net: "fd00::", Mask: 64, Gateway: "fd00::1",
			AvailableIPs: []string{"fd00::100", "fd00::101", "fd00::1:0/112", "fd00::102-fd00::ffff"},
		}, extra - 2},
		"IPv6, always": {v1.BCSNetPoolSpec{
			Net: "fd00::", Mask: 64, Gateway: "fd00::1", AvailableIPs: []string{"fd00::100-fd00::1106"},
			Materialize: v1.MaterializeAlways,
		}, 0},
		"IPv4, not large": {v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 8, Gateway: "10.0.0.1", AvailableIPs: []string{"10.0.0.0/16"},
		}, 0},
		"IPv4, large": {v1.BCSNetPoolSpec{
			Net: "10.0.0.0", Mask: 8, Gateway: "10.0.0.1", AvailableIPs: []string{"10.0.0.0/15"},
		}, extra},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Spec: test.spec}
			p := store.Pool(o)
			if !p.Valid() {
				t.Fatal(p.Problem)
			}
			index := index.New()
			index.Pools.SetPool(p)
			first := netip.MustParseAddr("fd00::100")
			if p.Plan.Subnet.Addr().Is4() {
				first = netip.MustParseAddr("10.0.1.0")
			}
			a := first
			for i := range sweepKeep + extra {
				index.Feed.Watched(lease.Lease{
					Addr: a, Params: p.Params(), State: lease.Available, Version: uint64(i + 1),
					Updated: time.Unix(int64(1_700_000_000+i), 0),
				})
				a = a.Next()
			}
			var removed []netip.Addr
			for _, w := range (&Reconciler{Config: Config{Index: index}}).due(o, p, time.Unix(1_800_000_000, 0)) {
				if !w.remove {
					t.Fatalf("a write of %s is due", w.lease.Addr)
				}
				removed = append(removed, w.lease.Addr)
			}
			if len(removed) != test.remove {
				t.Fatalf("%d objects go, want %d", len(removed), test.remove)
			}
			for _, a := range removed { // the oldest
				if l, _ := index.Leases.Get(a); l.Version > extra {
					t.Errorf("%s goes, and was used after others that stay", a)
				}
			}
		})
	}
}

// TestDueSparesWhatRests: the object of an address that was given up is all that knows of its rest, so it
// stays as long: in a large pool that keeps too many, and when the pool no longer has the address.
func TestDueSparesWhatRests(t *testing.T) {
	given := time.Unix(1_700_000_000, 0)
	for name, addresses := range map[string][]string{"swept": {"fd00::/64"}, "taken out of the pool": {"fd00::1:0/112"}} {
		t.Run(name, func(t *testing.T) {
			p := store.Pool(&v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Spec: v1.BCSNetPoolSpec{
				Net: "fd00::", Mask: 64, Gateway: "fd00::1", AvailableIPs: addresses,
				Cooldown: &metav1.Duration{Duration: time.Minute},
			}})
			index := index.New()
			index.Pools.SetPool(p)
			a := netip.MustParseAddr("fd00::100")
			for i := range sweepKeep + 1 {
				index.Feed.Watched(lease.Lease{Addr: a, Params: p.Params(), Version: uint64(i + 1), Updated: given})
				a = a.Next()
			}
			r := &Reconciler{Config: Config{Index: index}}
			if writes := r.due(&v1.BCSNetPool{}, p, given.Add(time.Minute-1)); len(writes) != 0 {
				t.Errorf("%d writes are due while the addresses rest", len(writes))
			}
			if writes := r.due(&v1.BCSNetPool{}, p, given.Add(time.Minute)); len(writes) == 0 || !writes[0].remove {
				t.Errorf("no object goes when the addresses have rested: %+v", writes)
			}
		})
	}
}
