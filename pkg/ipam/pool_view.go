package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"
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

// Rebuilding is what a pool waits for; empty when it does not.
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

// Pools are all pools, by name.
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

// Pool is one pool by name.
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
