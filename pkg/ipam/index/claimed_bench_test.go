package index

import (
	"fmt"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// claimOf is an index of a pool of 65,536 addresses, of which a claim has so many: all kept for whichever pod of it
// comes, or all but one in use.
func claimOf(t testing.TB, size int, inUse bool) *Index {
	t.Helper()
	p := benchPool(t, 65536)
	x := New()
	x.Pools.SetPool(p)
	leases := fleet(p, size)
	for i := range leases {
		leases[i].Retention = lease.Retention{Claim: "shop/web", Fixed: true}
		if !inUse || i == 0 {
			leases[i], _ = lease.Release(leases[i], at(-i), lease.Change{})
		}
	}
	x.Feed.Replace(leases, uint64(size))
	return x
}

// giveAndTake is one allocation of a claim's pod and its release, without their writes.
func giveAndTake(t testing.TB, x *Index, w ipam.PickRequest, version *uint64) {
	t.Helper()
	picks, refusal := x.Pick(w, now)
	if refusal != nil || len(picks) != 1 {
		t.Fatal(refusal, picks)
	}
	l, ok := lease.Bind(picks[0].Current, picks[0].Pool.Params(),
		lease.Holder{Host: w.Host, ContainerID: "c", IfName: w.IfName}, lease.Retention{Claim: w.Claim, Fixed: true}, now)
	if !ok {
		t.Fatal("not bound")
	}
	*version++
	l.Version = *version
	x.Feed.Watched(l)
	x.Forget(l.Addr)
	l, _ = lease.Release(l, now, lease.Change{})
	*version++
	l.Version = *version
	x.Feed.Watched(l)
}

// BenchmarkClaim is one allocation of a claim and its release: the cost must not grow with what the claim has.
func BenchmarkClaim(b *testing.B) {
	for _, size := range []int{64, 4096, 65535} {
		for what, inUse := range map[string]bool{"kept": false, "in use but one": true} {
			b.Run(fmt.Sprintf("%d addresses/%s", size, what), func(b *testing.B) {
				x := claimOf(b, size, inUse)
				w := want(func(w *ipam.PickRequest) { w.Claim, w.IfName, w.Room = "shop/web", lease.DefaultIfName, size })
				version := uint64(size)
				b.ReportAllocs()
				for b.Loop() {
					giveAndTake(b, x, w, &version)
				}
			})
		}
	}
}
