package ipam

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// asked checks the addresses asked for, except those that are held already.
func (x *picker) asked(w PickRequest) (choices []choice, refusal *Refusal) {
	for _, a := range w.Addrs {
		if slices.ContainsFunc(w.Have, func(l lease.Lease) bool { return l.Addr == a }) {
			continue
		}
		if len(w.Have) == 0 && !x.served(w) {
			return nil, x.unserved(w)
		}
		p, _, ok := x.serving(a)
		switch {
		case !ok:
			return nil, x.notServed(w, a)
		case !x.fits(p, w):
			return nil, x.unfit(w, a, p)
		case !p.Serves():
			return nil, RefuseFacts(p.stopped(), explain.Facts{
				Kind: explain.AddressPoolStopped, Address: a, Pool: p.Name, Stop: p.stop(),
			})
		}
		if refusal := x.taken(a, p, w); refusal != nil {
			return nil, refusal
		}
		if p.split != nil {
			block := p
			if p = x.proposeWith(p, a, w); p == nil {
				return nil, block.outsideBlocks(a, w)
			}
		}
		if refusal := x.bars(p, w, a, choices); refusal != nil {
			return nil, refusal
		}
		choices = append(choices, choice{p, a, w.slotOf(a)})
	}
	if refusal := x.apart(w, choices); refusal != nil {
		return nil, refusal
	}
	return choices, nil
}

// served reports whether any pool fits.
func (x *catalogue) served(w PickRequest) bool {
	for range x.fitting(w) {
		return true
	}
	return false
}

// notServed returns why no pool serves an address; of several pools around it, it names one that fits.
func (x *picker) notServed(w PickRequest, a netip.Addr) *Refusal {
	var around []*poolState
	for _, p := range x.roots {
		if p.Valid() && p.Plan.Subnet.Contains(a) {
			around = append(around, p)
		}
	}
	if len(around) == 0 {
		return RefuseFacts(ReasonAddressNotInPool, explain.Facts{Kind: explain.AddressInNoPool, Address: a})
	}
	slices.SortFunc(around, preference)
	p := around[max(0, slices.IndexFunc(around, func(p *poolState) bool { return x.fits(p, w) }))]
	facts := explain.Facts{Kind: explain.AddressNotListed, Address: a, Pool: p.Name, Subnet: p.Plan.Subnet}
	switch {
	case slices.Contains(p.Plan.unusable(), a):
		facts.Kind, facts.Role = explain.AddressHasRole, p.Plan.role(a)
	case p.Plan.Excluded.Contains(a):
		facts.Kind = explain.AddressExcluded
	}
	return RefuseFacts(ReasonAddressNotInPool, facts)
}

// unfit returns why the pool of an address asked for does not fit.
func (x *picker) unfit(w PickRequest, a netip.Addr, p *poolState) *Refusal {
	facts := explain.Facts{
		Address: a, Pool: p.Name, Other: strings.Join(w.Pools, ", "), Host: w.Host, Namespace: w.Namespace, Network: w.Network,
	}
	switch {
	case len(w.Pools) > 0 && !slices.Contains(w.Pools, p.Name):
		facts.Kind = explain.AddressInOtherPool
		return RefuseFacts(ReasonAddressNotInPool, facts)
	case !p.lists(w):
		facts.Kind, facts.Whole = explain.AddressNotForHost, p.CountedAs()
		return RefuseFacts(ReasonHostNotInPool, facts)
	case !p.Bound() && p.NotDefault && !w.names(p):
		facts.Kind = explain.AddressForWhoNamesPool
		return RefuseFacts(ReasonNamespaceNotServed, facts)
	case !x.servesNamespace(p, w):
		facts.Kind, facts.Block = explain.AddressNotForNamespace, p.Block
		return RefuseFacts(ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.AddressNotOfNetwork
		return RefuseFacts(ReasonNetworkNotFound, facts)
	}
}

// taken returns why an address of a pool cannot be handed out to who asks for it, nil when it can.
func (x *picker) taken(a netip.Addr, p *poolState, w PickRequest) *Refusal {
	if facts := x.usedBy(a, w); facts.Kind != 0 {
		facts.Address, facts.Pool = a, p.Name
		return RefuseFacts(ReasonAddressInUse, facts)
	}
	if p.withholds(a) {
		return RefuseFacts(ReasonAddressInUse, explain.Facts{
			Kind: explain.AddressWithheld, Address: a, Pool: p.Name, Other: p.Parent,
		})
	}
	x.expireCooldowns(p)
	return x.cooling(a, p, w.Holder)
}

// usedBy returns why an address, its cooldown apart, is not to be had by who asks for it; of no kind where it is.
func (x *picker) usedBy(a netip.Addr, w PickRequest) (facts explain.Facts) {
	if node, ok := x.nodeOf(a); ok {
		return explain.Facts{Kind: explain.AddressOfNode, By: node}
	}
	if r := x.record(a); r != nil {
		switch {
		case r.state == lease.Active:
			l := r.lease()
			return explain.Facts{Kind: explain.AddressHeld, By: l.Where()}
		case r.state == lease.Reserved && r.claim() != "" && w.admitted(r.lease()):
		case r.state == lease.Reserved && r.claim() != "":
			return explain.Facts{Kind: explain.AddressKept, Claim: r.claim()}
		case r.state == lease.Reserved:
			return keptByNobody(r.lease())
		case r.has(flagDeleting):
			return explain.Facts{Kind: explain.AddressBeingDeleted}
		}
	}
	if r, ok := x.missing[a]; ok {
		return explain.Facts{Kind: explain.AddressMissing, By: r.lease().UsedBy()}
	}
	if _, ok := x.assumed[a]; ok {
		return explain.Facts{Kind: explain.AddressBeingGiven}
	}
	return facts
}

// keptByNobody returns why an address that no claim keeps is Reserved.
func keptByNobody(l lease.Lease) explain.Facts {
	if l.IsQuarantined() {
		return explain.Facts{Kind: explain.AddressQuarantined, By: l.Conflict.MAC, Until: l.Conflict.Until}
	}
	return explain.Facts{Kind: explain.AddressReserved}
}

// apart refuses addresses asked for that are of different networks, among themselves or with what is held.
func (x *picker) apart(w PickRequest, asked []choice) *Refusal {
	beside := asked
	for _, l := range w.Have {
		if p, ok := x.pools[l.Pool]; ok {
			beside = append(slices.Clip(beside), choice{p, l.Addr, l.Slot})
		}
	}
	for _, a := range asked {
		for _, b := range beside {
			if a.pool.Network != b.pool.Network {
				return RefuseFacts(ReasonNetworkNotFound, explain.Facts{
					Kind: explain.AddressesOfTwoNetworks, Address: a.addr, Pool: a.pool.Name, Beside: b.addr, Other: b.pool.Name,
				})
			}
		}
	}
	return nil
}

// cooling returns why an address that rests is not given to who asks for it by name; nil when it does not
// rest, and for the one who had it last: to everybody else the address still means them.
func (x *picker) cooling(a netip.Addr, p *poolState, who string) *Refusal {
	_, number, _ := x.serving(a)
	if !p.home().cooldowns.set.isTaken(number) {
		return nil
	}
	r := x.record(a)
	last := r.history().LastHolder()
	if last != "" && last == who {
		return nil
	}
	left := x.until(fromNanos(p.coolsUntil(r)))
	return RefuseFacts(ReasonAddressCooling, explain.Facts{
		Kind: explain.AddressCooling, Address: a, Pool: p.Name, By: last, In: left,
	})
}
