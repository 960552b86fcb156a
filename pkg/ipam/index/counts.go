package index

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Counts counts a pool as it is at a time, at no cost.
func (x *Pools) Counts(name string, now time.Time) ipam.PoolCounts {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Now = now.UnixNano()
	return x.core.state.CountsOf(name)
}

// SetGone says how many leases of each pool are held for pods that are gone. Refusals tell it, and nothing goes by it.
func (x *Pools) SetGone(byPool map[string]int) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Gone = byPool
}

// Draining counts, per host, the held addresses of a pool that are no longer in its plan.
func (x *Pools) Draining(name string) map[netip.Addr]int {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p, by := x.core.state.Pools.ByName[name], map[netip.Addr]int{}
	if p == nil || x.core.state.TallyOf(name).Draining == 0 {
		return nil
	}
	for m := range x.core.state.MembersOf(p) {
		for r := range m.Draining {
			by[r.Host.Value()]++
		}
	}
	return by
}
