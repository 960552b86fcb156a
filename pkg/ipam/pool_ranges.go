package ipam

import (
	"iter"
	"net/netip"
	"time"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Ranges are the addresses of a pool by their state, as PoolCounts counts them. No address is in two of the sets.
type Ranges struct {
	// Free can be handed out, Cooling could but for the cooldown.
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
	x.core.state.now = now.UnixNano()
	var active, reserved, cooling, others []netip.Addr
	p := x.core.state.pools.byName[name]
	for m := range x.core.state.namedBy(name, p) {
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
		home := p.home()
		x.core.state.expireCooldowns(home)
		for _, s := range p.segments {
			if served = append(served, s.IPRange); p.later > 0 && s.base >= p.set.Len() {
				withheld = append(withheld, s.IPRange)
			}
		}
		for a := range x.core.state.perhapsTaken() {
			by, i, ok := x.core.state.pools.segmentOf(a)
			if !ok || by != home || i < p.from || i-p.from >= p.n || !home.set.IsTaken(i) {
				continue
			}
			taken = append(taken, a)
			switch r := x.core.state.leases.Record(a); {
			case home.cooldowns.set.IsTaken(i):
				cooling = append(cooling, a)
			case r == nil || r.State == lease.Available || !x.core.state.names(r, name):
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

// namedBy returns the members of a pool and of its blocks; of one that is not there, those that name it.
func (x *state) namedBy(name string, p *poolState) iter.Seq[*ledger.Members] {
	if p != nil {
		return x.membersOf(p)
	}
	return func(yield func(*ledger.Members) bool) {
		if m := x.members.ByPool[name]; m != nil {
			yield(m)
		}
	}
}

// names reports whether a lease names a pool, or a block of it.
func (x *state) names(r *ledger.Record, name string) bool {
	of := r.Params.Value().Pool
	return of == name || x.pools.countedAs(of) == name
}

// perhapsTaken yields every address that may not be free, some of them more than once: nothing else can be.
func (x *state) perhapsTaken() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for r := range x.leases.ByAddr.All() {
			if !yield(r.Addr) {
				return
			}
		}
		for a := range x.assumed.ByAddr {
			if !yield(a) {
				return
			}
		}
		for a := range x.missing.Gone {
			if !yield(a) {
				return
			}
		}
		for a := range x.nodes.nodeIP {
			if !yield(a) {
				return
			}
		}
	}
}

// PoolsFor names the pools that pods of a namespace draw from where they name none, on whichever host, in the order in
// which these are tried.
func (x *Pools) PoolsFor(namespace string) (names []string) {
	for _, p := range x.Chain(namespace, netip.Addr{}) {
		// else it gives blocks by hand alone
		if of, _ := x.Get(p.Pool); p.Tried && (of.BlockSize == 0 || of.AutoAssign) {
			names = append(names, p.Pool)
		}
	}
	return names
}
