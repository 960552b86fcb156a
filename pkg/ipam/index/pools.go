package index

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Pools takes pools and nodes, and answers questions about them.
type Pools struct{ core *core }

// SetRebuilding keeps a pool, whether or not there is one of that name yet, from allocating addresses while it is not
// known which of them are in use. waiting says what has to happen first; empty ends the wait.
func (x *Pools) SetRebuilding(name, waiting string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if x.core.state.Pools.Rebuilding[name] = waiting; waiting == "" {
		delete(x.core.state.Pools.Rebuilding, name)
	}
	if p, ok := x.core.state.Pools.ByName[name]; ok && p.Rebuilding != waiting {
		p.Rebuilding = waiting
		x.core.state.Pools.Plans++
	}
}

// Rebuilding returns what a pool waits for; empty when it does not.
func (x *Pools) Rebuilding(name string) string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.Rebuilding[name]
}

// SetPool adds a pool or takes its changes.
func (x *Pools) SetPool(p ipam.Pool) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.takePool(p)
}

// takePool adds a pool or takes its changes. The caller holds the lock.
func (x *Pools) takePool(p ipam.Pool) {
	if p.Plan.Usable == nil || !p.Valid() {
		p.DropAddresses()
	}
	x.core.state.Pools.Plans++
	x.core.state.SetPool(p)
}

// RemovePool forgets a pool. Its addresses stay in the index while their objects do.
func (x *Pools) RemovePool(name string) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.dropPool(name)
}

// dropPool forgets a pool. The caller holds the lock.
func (x *Pools) dropPool(name string) {
	p, ok := x.core.state.Pools.ByName[name]
	if !ok {
		return
	}
	x.core.state.Pools.Plans++
	x.core.state.Pools.Making.Ended(p.Given)
	x.core.state.Pools.Disown(p.Given)
	x.core.state.Forget(p)
}

// All returns all pools, by name.
func (x *Pools) All() []ipam.Pool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	out := make([]ipam.Pool, 0, len(x.core.state.Pools.ByName))
	for _, p := range x.core.state.Pools.ByName {
		out = append(out, p.Pool)
	}
	slices.SortFunc(out, func(a, b ipam.Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Get returns one pool by name.
func (x *Pools) Get(name string) (ipam.Pool, bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if p, ok := x.core.state.Pools.ByName[name]; ok {
		return p.Pool, true
	}
	return ipam.Pool{}, false
}

// PoolOf names the pool that serves an address.
func (x *Pools) PoolOf(a netip.Addr) (string, bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p, _, ok := x.core.state.Pools.Serving(a)
	if !ok {
		return "", false
	}
	return p.Name, true
}

// OwnerOf names the pool by which somebody has an address whose lease is made from what is seen of it: the one that
// serves the address, or the parent of a group that has not taken it yet.
func (x *Pools) OwnerOf(a netip.Addr) (string, bool) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p, _, ok := x.core.state.Pools.Serving(a)
	switch {
	case !ok:
		return "", false
	case p.Parent != "" && p.Withheld != nil && p.Withheld.Contains(a):
		return p.Parent, true // the group is valid, and so is its parent
	}
	return p.Name, true
}

// PlansRevision returns another number whenever a pool has come, gone or changed.
func (x *Pools) PlansRevision() uint64 {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.Plans
}

// Overlap has the addresses that a pool shares with another pool.
type Overlap struct {
	Other  string
	Shared *netipx.IPSet
	// Served: this pool, not the other, allocates the shared addresses.
	Served bool
}

// Overlaps returns the pools that share addresses with one, by name.
func (x *Pools) Overlaps(name string) []Overlap {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	p, ok := x.core.state.Pools.ByName[name]
	if !ok {
		return nil
	}
	var out []Overlap
	for other, o := range p.Overlaps {
		out = append(out, Overlap{Other: other, Shared: o.Shared, Served: o.Winner == p})
	}
	slices.SortFunc(out, func(a, b Overlap) int { return cmp.Compare(a.Other, b.Other) })
	return out
}

// ServedRevision returns another number whenever it may be other addresses that a pool serves; 0 for one that is not
// there.
func (x *Pools) ServedRevision(name string) uint64 {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if p := x.core.state.Pools.ByName[name]; p != nil {
		return p.Revision
	}
	return 0
}

// Outside returns the part of some addresses that a pool does not serve; with an empty name, that none does.
func (x *Pools) Outside(some *netipx.IPSet, pools []string) *netipx.IPSet {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var served []netipx.IPRange
	for _, s := range x.core.state.Pools.Segments {
		if (len(pools) == 0 || slices.Contains(pools, s.Pool.Name)) && some.OverlapsRange(s.IPRange) {
			served = append(served, s.IPRange)
		}
	}
	return ipaddr.Subtract(some, ipaddr.SetOf(served...))
}

// QuotaUse returns what counts for the namespaces of a pool that bounds them, by namespace; nil for any other pool.
// Those that have a quota of their own are there also with nothing.
func (x *Pools) QuotaUse(pool string) []ipam.NamespaceUse {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if p := x.core.state.Pools.ByName[pool]; p != nil {
		return p.QuotaUse(x.core.state.Usage.Charged[p.CountedAs()])
	}
	return nil
}

// CountedAs names the pool whose counts are those of the leases that name a pool: the parent of a block, the pool
// itself for any other.
func (x *Pools) CountedAs(name string) string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.state.Pools.CountedAs(name)
}

// OfPool reports whether an address is of a pool that somebody named: of the pool itself, or of a block of it. Of a
// block that is not known here, as of one that was removed by force, that is shown by who has the address otherwise.
func (x *Pools) OfPool(l lease.Lease, pool string) bool {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if l.Pool == pool || x.core.state.Pools.CountedAs(l.Pool) == pool {
		return true
	}
	p, _, served := x.core.state.Pools.SegmentOf(l.Addr)
	return x.core.state.Pools.ByName[l.Pool] == nil && served && p.Split != nil && p.Name == pool
}

// OfPools reports whether a lease is of one of some pools, as OfPool does.
func (x *Pools) OfPools(l lease.Lease, pools []string) bool {
	return slices.ContainsFunc(pools, func(pool string) bool { return x.OfPool(l, pool) })
}
