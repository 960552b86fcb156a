package ipam

import (
	"net/netip"
	"time"
)

// Candidate finds the pool that serves an address. A refusal says why nobody who asks gets the address now;
// the pool has no name where none serves it.
func (x *Index) Candidate(a netip.Addr, now time.Time) (Pool, *Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.now = now.UnixNano()
	return x.core.picker.candidate(a)
}

// candidate finds the pool that serves an address, or refuses, as Index.Candidate says.
func (x *picker) candidate(a netip.Addr) (Pool, *Refusal) {
	p, _, ok := x.state.pools.serving(a)
	switch {
	case !ok:
		return Pool{}, x.notServed(PickRequest{}, a)
	case !p.Serves():
		return p.Pool, notGiven(a, p)
	}
	return p.Pool, x.taken(a, p, PickRequest{})
}
