package ipam

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// asked checks the addresses asked for, except those that are held already.
func (x *Picker) asked(w PickRequest) (choices []choice, refusal *Refusal) {
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
				return nil, block.outsideBlocks(a, w)
			}
		}
		if refusal := x.bounds.bars(p, w, a, choices); refusal != nil {
			return nil, refusal
		}
		choices = append(choices, choice{p, a, w.slotOf(a)})
	}
	if refusal := x.apart(w, choices); refusal != nil {
		return nil, refusal
	}
	return choices, nil
}

// Served reports whether any pool fits.
func (x *Catalogue) Served(w PickRequest) bool {
	for range x.Fitting(w) {
		return true
	}
	return false
}

// apart refuses addresses asked for that are of different networks, among themselves or with what is held.
func (x *Picker) apart(w PickRequest, asked []choice) *Refusal {
	beside := asked
	for _, l := range w.Have {
		if p, ok := x.state.Pools.ByName[l.Pool]; ok {
			beside = append(slices.Clip(beside), choice{p, l.Addr, l.Slot})
		}
	}
	for _, a := range asked {
		for _, b := range beside {
			if a.pool.Network != b.pool.Network {
				return RefuseFacts(ReasonNetworkNotFound, explain.Facts{
					Kind: explain.AddressesOfTwoNetworks, Address: a.addr, Pool: a.pool.Name, Beside: b.addr,
					Other: b.pool.Name,
				})
			}
		}
	}
	return nil
}
