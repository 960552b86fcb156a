package index

import (
	"net/netip"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Ranges are the addresses of a pool by their state, as PoolCounts counts them. No address is in two of the sets.
type Ranges struct {
	// Free can be allocated, Cooling could but for the cooldown.
	Free, Cooling *netipx.IPSet
	// Active and Reserved have leases that name the pool, also on addresses that it does not serve.
	Active, Reserved *netipx.IPSet
	// Others are served by the pool and taken without being its own: a node has them, they are leases of another pool,
	// or they are withheld from a group that grows.
	Others *netipx.IPSet
}

// Ranges sorts the addresses of a pool by their state at a time. Free ones are what is left of what the pool serves:
// the cost is that of the addresses that have an object, and not of the size of the pool. Those of a pool that is split
// have those of its blocks.
func (x *Pools) Ranges(name string, now time.Time) Ranges {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Now = now.UnixNano()
	var active, reserved, cooling, others []netip.Addr
	p := x.core.state.Pools.ByName[name]
	for m := range x.core.state.NamedBy(name, p) {
		for r := range m.Records {
			switch r.State {
			case lease.Active:
				active = append(active, r.Addr)
			case lease.Reserved:
				reserved = append(reserved, r.Addr)
			case lease.Available:
			}
		}
	}
	var served, withheld []netipx.IPRange
	var taken []netip.Addr
	if p != nil {
		home := p.Home()
		x.core.state.ExpireCooldowns(home)
		for _, s := range p.Segments {
			if served = append(served, s.IPRange); p.Later > 0 && s.Base >= p.Set.Len() {
				withheld = append(withheld, s.IPRange)
			}
		}
		for a := range x.core.state.PerhapsTaken() {
			by, i, ok := x.core.state.Pools.SegmentOf(a)
			if !ok || by != home || i < p.From || i-p.From >= p.N || !home.Set.IsTaken(i) {
				continue
			}
			taken = append(taken, a)
			switch r := x.core.state.Leases.Record(a); {
			case home.Cooldowns.Set.IsTaken(i):
				cooling = append(cooling, a)
			case r == nil || r.State == lease.Available || !x.core.state.Pools.Names(r, name):
				others = append(others, a)
			}
		}
	}
	later := ipaddr.SetOf(withheld...)
	r := Ranges{
		Free:    ipaddr.Subtract(ipaddr.SetOf(served...), ipaddr.SetOfAddrs(taken...), later),
		Cooling: ipaddr.SetOfAddrs(cooling...), Active: ipaddr.SetOfAddrs(active...),
		Reserved: ipaddr.SetOfAddrs(reserved...), Others: ipaddr.SetOfAddrs(others...),
	}
	if len(withheld) > 0 {
		r.Others = ipaddr.SetOf(append(r.Others.Ranges(), ipaddr.Subtract(later, r.Active, r.Reserved).Ranges()...)...)
	}
	return r
}
