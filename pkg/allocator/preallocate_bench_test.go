package allocator

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// BenchmarkAhead is a claim that takes its addresses before any pod asks, without the writes: the cost of each must not
// grow with how many there are.
func BenchmarkAhead(b *testing.B) {
	for _, size := range []int{64, 4096, 65_536} {
		b.Run(fmt.Sprint(size, " addresses"), func(b *testing.B) {
			for b.Loop() {
				preallocated(b, size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/address")
		})
	}
}

// preallocated takes so many addresses for a claim of an index of its own, by writes that all succeed at once.
func preallocated(t testing.TB, size int) {
	t.Helper()
	index := index.New()
	leases, err := store.New(&rest.Config{Host: "127.0.0.1:1"}, index, store.NewClock(nil)) // nothing is sent
	if err != nil {
		t.Fatal(err)
	}
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: "10.0.0.0", Mask: 14, Gateway: "10.0.0.1", Available: []string{"10.1.0.0/16"},
	})
	if err != nil {
		t.Fatal(err)
	}
	index.Pools.SetPool(ipam.Pool{
		Name: "large", Plan: plan, Hosts: map[netip.Addr]struct{}{netip.MustParseAddr("192.168.0.1"): {}},
	})
	a := New(index, leases, nil, nil, gone.Default(), slog.New(slog.DiscardHandler)).Stocker
	r := Preallocation{Claim: "default/large", Namespaces: []string{"default"}, Size: size}
	version := uint64(0)
	for {
		picks, stock := a.pickLacking(r)
		if len(picks) == 0 {
			if stock.Has != size || stock.Missing != 0 {
				t.Fatalf("it has %+v", stock)
			}
			return
		}
		var taken []lease.Lease
		for _, p := range picks {
			next, ok := lease.ReserveFor(p.Current, p.Pool.Params(), r.retention(), leases.Now(),
				lease.Change{Verb: lease.VerbReserve, By: r.Claim, Reason: "preallocated"})
			if !ok {
				t.Fatal("taken by nobody, and not free")
			}
			version++
			next.Version = version
			index.Feed.Watched(next)
			index.Forget(next.Addr)
			taken = append(taken, next)
		}
		if err := a.giveBackSurplus(context.Background(), r, taken); err != nil {
			t.Fatal(err)
		}
	}
}
