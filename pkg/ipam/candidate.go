package ipam

import "net/netip"

// Candidate finds the pool that serves an address, or refuses, as Index.Candidate says.
func (x *Picker) Candidate(a netip.Addr) (Pool, *Refusal) {
	p, _, ok := x.state.Pools.Serving(a)
	switch {
	case !ok:
		return Pool{}, x.notServed(PickRequest{}, a)
	case !p.Serves():
		return p.Pool, notGiven(a, p)
	}
	return p.Pool, x.taken(a, p, PickRequest{})
}
