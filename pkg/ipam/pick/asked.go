package pick

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// asked checks the addresses asked for, except those that are held already.
func (x *Picker) asked(w ipam.PickRequest) (choices []memory.Choice, refusal *ipam.Refusal) {
	for _, a := range w.Addrs {
		if slices.ContainsFunc(w.Have, func(l lease.Lease) bool { return l.Addr == a }) {
			continue
		}
		if len(w.Have) == 0 && !x.state.Pools.Served(w) {
			refusal := x.unserved(w)
			if why := x.otherPool(w, a, refusal); why != nil {
				return nil, why
			}
			return nil, refusal
		}
		if refusal := x.whyNot(w, a); refusal != nil {
			return nil, refusal
		}
		p, _, _ := x.state.Pools.Serving(a)
		if p.Split != nil {
			block := p
			if p = x.proposeWith(p, a, w); p == nil {
				return nil, block.OutsideBlocks(a, w)
			}
		}
		if refusal := x.bounds.bars(p, w, a, choices); refusal != nil {
			return nil, refusal
		}
		choices = append(choices, memory.Choice{Pool: p, Addr: a, Slot: w.SlotOf(a)})
	}
	if refusal := x.apart(w, choices); refusal != nil {
		return nil, refusal
	}
	return choices, nil
}

// apart refuses addresses asked for that are of different networks, among themselves or with what is held.
func (x *Picker) apart(w ipam.PickRequest, asked []memory.Choice) *ipam.Refusal {
	beside := asked
	for _, l := range w.Have {
		if p, ok := x.state.Pools.ByName[l.Pool]; ok {
			beside = append(slices.Clip(beside), memory.Choice{Pool: p, Addr: l.Addr, Slot: l.Slot})
		}
	}
	for _, a := range asked {
		for _, b := range beside {
			if a.Pool.Network != b.Pool.Network {
				return ipam.RefuseFacts(ipam.ReasonNetworkNotFound, explain.Facts{
					Kind: explain.AddressesOfTwoNetworks, Address: a.Addr, Pool: a.Pool.Name, Beside: b.Addr,
					Other: b.Pool.Name,
				})
			}
		}
	}
	return nil
}
