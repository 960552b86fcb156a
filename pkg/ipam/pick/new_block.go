package pick

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// fromNewBlock chooses an address of the first block that could be made for a request and has one for it.
func (x *Picker) fromNewBlock(p *ipam.PoolState, n ipam.Need, w ipam.PickRequest, chosen []ipam.Choice, start uint64) (ipam.Choice, bool) {
	x.state.ExpireCooldowns(p)
	if !p.AutoAssign || !p.HasFree() || x.bounds.barred(p, w, netip.Addr{}, chosen) {
		return ipam.Choice{}, false
	}
	for number := range p.Split.Candidates(w.Namespace) {
		if n.Among != nil && !n.Among.OverlapsPrefix(p.Split.Prefix(number)) {
			continue
		}
		b := x.state.Pools.Propose(p, number, w.Namespace)
		if b == nil || !b.HasFree() {
			continue
		}
		var a netip.Addr
		var ok bool
		if n.Among != nil {
			a, ok = b.FirstAmong(n.Among, w, chosen)
		} else {
			a, ok = b.FirstAfter(b.Start(start), w)
		}
		if ok {
			return ipam.Choice{Pool: b, Addr: a, Slot: n.Slot}, true
		}
	}
	return ipam.Choice{}, false
}

// proposeWith returns a block that could be made for the namespace of a request and has an address; nil where it could
// not.
func (x *Picker) proposeWith(p *ipam.PoolState, a netip.Addr, w ipam.PickRequest) *ipam.PoolState {
	number, ok := p.Split.NumberOf(a)
	if !ok || !p.AutoAssign {
		return nil
	}
	return x.state.Pools.Propose(p, number, w.Namespace)
}
