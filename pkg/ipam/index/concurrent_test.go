package index

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Requests, the watch, and changes of pools and nodes at once: no address is picked twice at a time,
// and in the end everything is free again.
func TestConcurrentUse(t *testing.T) {
	const workers, rounds = 8, 200
	addresses := []string{"10.0.0.10-10.0.0.29"}
	x := indexOf(pool(t, "a", "10.0.0.0/24", addresses))
	var mu sync.Mutex
	version, inUse, log := uint64(0), map[netip.Addr]bool{}, make(chan func(), workers)

	var told sync.Map
	x.Feed.Subscribe(func(_, l lease.Lease) { told.Store(l.Addr, l.Version) })

	// commit is the API server: it gives a change its version and sends its event, in order.
	commit := func(l lease.Lease, in bool) lease.Lease {
		mu.Lock()
		defer mu.Unlock()
		if in && inUse[l.Addr] {
			t.Errorf("%s is given out twice", l.Addr)
		}
		inUse[l.Addr] = in
		version++
		l.Version = version
		log <- func() { x.Feed.Watched(l) }
		return l
	}

	var requests, others sync.WaitGroup
	for worker := range workers {
		requests.Go(func() {
			for round := range rounds {
				h := lease.Holder{
					Host: ip(host1), ContainerID: fmt.Sprintf("c%d-%d", worker, round), IfName: lease.DefaultIfName,
					PodUID: fmt.Sprintf("u%d", worker),
				}
				picks, _ := x.Pick(want(func(w *ipam.PickRequest) { w.Key = h.ContainerID }), now)
				for _, p := range picks {
					next, ok := lease.Bind(p.Current, p.Pool.Params(), h, lease.Retention{}, now)
					if !ok {
						t.Errorf("picked %+v, which cannot be bound", p.Current)
					}
					stored := commit(next, true)
					x.Feed.Wrote(stored)
					x.Forget(stored.Addr)
					if err := x.Feed.WaitSeen(t.Context(), stored.Version); err != nil {
						t.Error(err)
					}
					if held := x.Leases.ByContainer(h.ContainerID, ""); len(held) != 1 || len(x.Leases.ByAttachment(h)) != 1 {
						t.Errorf("container %s holds %v", h.ContainerID, held)
					}
					free, _ := lease.Release(stored, now, lease.Change{})
					x.Feed.Wrote(commit(free, false))
				}
			}
		})
	}
	done := make(chan struct{})
	others.Go(func() { // the watch
		for event := range log {
			event()
		}
	})
	others.Go(func() { // operators, and who looks on
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			x.Pools.SetPool(pool(t, "a", "10.0.0.0/24", addresses, priority(int32(i%2))))
			x.Pools.SetPool(pool(t, "b", "10.0.0.0/24", []string{"10.0.0.20-10.0.0.39"}, hosts(host2)))
			x.Pools.RemovePool("b")
			x.Pools.SetNode("node-1", node("10.0.0.39"))
			x.Pools.SetNode("node-1", ipam.Node{})
			x.Pools.Counts("a", now)
			x.Pools.Draining("a")
			x.Pools.All()
			x.Pools.Overlaps("a")
			x.Leases.ByHost(ip(host1))
			x.Leases.ByPool("a")
			x.Unknown("")
			x.Leases.Find(func(l lease.Lease) bool { return l.State == lease.Active })
		}
	})
	requests.Wait()
	close(done)
	close(log)
	others.Wait()

	checkFreeSets(t, x)
	if got := x.Pools.Counts("a", now); got.Active != 0 || got.Free != got.Capacity || got.Capacity != 20 {
		t.Errorf("in the end: %+v", got)
	}
	for _, l := range x.Leases.Find(func(lease.Lease) bool { return true }) {
		if v, _ := told.Load(l.Addr); v == nil {
			t.Errorf("nobody was told of %s", l.Addr)
		}
	}
}
