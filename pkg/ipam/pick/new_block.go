package pick

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// fromNewBlock chooses an address of the first block that could be made for a request and has one for it.
func (x *Picker) fromNewBlock(p *memory.PoolState, n ipam.Need, w ipam.PickRequest, chosen []memory.Choice,
	start uint64) (memory.Choice, bool) {
	x.state.ExpireCooldowns(p)
	if !p.AutoAssign || !p.HasFree() || x.bounds.barred(p, w, netip.Addr{}, chosen) {
		return memory.Choice{}, false
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
			return memory.Choice{Pool: b, Addr: a, Slot: n.Slot}, true
		}
	}
	return memory.Choice{}, false
}

// proposeWith returns a block that could be made for the namespace of a request and has an address; nil if it could
// not.
func (x *Picker) proposeWith(p *memory.PoolState, a netip.Addr, w ipam.PickRequest) *memory.PoolState {
	number, ok := p.Split.NumberOf(a)
	if !ok || !p.AutoAssign {
		return nil
	}
	return x.state.Pools.Propose(p, number, w.Namespace)
}
