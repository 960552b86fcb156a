package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// poolView takes pools and nodes, and answers questions about them.
type poolView struct{ *guarded }

// SetRebuilding keeps a pool, whether or not there is one of that name yet, from handing out addresses while it
// is not known which of them are in use. waiting says what has to happen first; empty ends the wait.
func (x *poolView) SetRebuilding(name, waiting string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.rebuilding[name] = waiting; waiting == "" {
		delete(x.rebuilding, name)
	}
	if p, ok := x.pools[name]; ok && p.rebuilding != waiting {
		p.rebuilding = waiting
		x.plans++
	}
}

// Rebuilding returns what a pool waits for; empty when it does not.
func (x *poolView) Rebuilding(name string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.rebuilding[name]
}

// SetPool adds a pool or takes its changes.
func (x *poolView) SetPool(p Pool) {
	if p.Plan.Usable == nil || !p.Valid() {
		none := &netipx.IPSet{}
		p.Plan.Usable, p.Plan.Single, p.Plan.Ranged = none, none, none
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s, exists := x.pools[p.Name]
	if !exists {
		s = &poolState{set: newFreeSet(0), cooldowns: newCooldowns(0), overlaps: map[string]*overlap{}}
		x.pools[p.Name] = s
	} else {
		x.unlist(s)
	}
	same := exists && s.Plan.Usable.Equal(p.Plan.Usable) && s.Plan.Subnet == p.Plan.Subnet &&
		s.Created.Equal(p.Created) && s.Terminating == p.Terminating && s.Cooldown == p.Cooldown && s.Valid() == p.Valid()
	s.Pool, s.usable, s.rebuilding, s.hosts = p, p.Plan.Usable.Ranges(), x.rebuilding[p.Name], uncounted
	x.list(s)
	x.plans++
	if !same {
		x.findDraining(p.Name)
		x.rebuild(append(x.findOverlaps(s), s)...)
	}
}

// RemovePool forgets a pool. Its addresses stay in the index while their objects do.
func (x *poolView) RemovePool(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p, ok := x.pools[name]
	if !ok {
		return
	}
	x.unlist(p)
	p.Plan.Usable, p.usable = &netipx.IPSet{}, nil
	delete(x.pools, name)
	x.plans++
	x.findDraining(name)
	x.rebuild(append(x.findOverlaps(p), p)...)
}

// Pools returns all pools, by name.
func (x *poolView) Pools() []Pool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make([]Pool, 0, len(x.pools))
	for _, p := range x.pools {
		out = append(out, p.Pool)
	}
	slices.SortFunc(out, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Pool returns one pool by name.
func (x *poolView) Pool(name string) (Pool, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p, ok := x.pools[name]; ok {
		return p.Pool, true
	}
	return Pool{}, false
}

// PoolOf names the pool that serves an address.
func (x *poolView) PoolOf(a netip.Addr) (string, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, _, ok := x.serving(a)
	if !ok {
		return "", false
	}
	return p.Name, true
}

// PlansRevision returns another number whenever a pool has come, gone or changed.
func (x *poolView) PlansRevision() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.plans
}

// Overlap is what a pool shares with another.
type Overlap struct {
	Other  string
	Shared *netipx.IPSet
	// Served: this pool, not the other, hands out the shared addresses.
	Served bool
}

// Overlaps returns the pools that share addresses with one, by name.
func (x *poolView) Overlaps(name string) []Overlap {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, ok := x.pools[name]
	if !ok {
		return nil
	}
	var out []Overlap
	for other, o := range p.overlaps {
		out = append(out, Overlap{Other: other, Shared: o.shared, Served: o.winner == p})
	}
	slices.SortFunc(out, func(a, b Overlap) int { return cmp.Compare(a.Other, b.Other) })
	return out
}

// ServedRevision returns another number whenever it may be other addresses that a pool serves; 0 for one that is not
// there.
func (x *poolView) ServedRevision(name string) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.pools[name]; p != nil {
		return p.revision
	}
	return 0
}

// Outside returns the part of some addresses that a pool does not serve; with an empty name, that none does.
func (x *poolView) Outside(some *netipx.IPSet, pool string) *netipx.IPSet {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var served []netipx.IPRange
	for _, s := range x.segments {
		if (pool == "" || s.pool.Name == pool) && some.OverlapsRange(s.IPRange) {
			served = append(served, s.IPRange)
		}
	}
	return ipaddr.Subtract(some, ipaddr.SetOf(served...))
}

// QuotaUse returns what counts for the namespaces of a pool that bounds them, by namespace; nil for any other pool.
// Those that have a quota of their own are there also with nothing.
func (x *poolView) QuotaUse(pool string) []NamespaceUse {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if p := x.pools[pool]; p != nil {
		return p.QuotaUse(x.charged[pool])
	}
	return nil
}
