package pick

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// noneAmong returns why none of the addresses that a request is restricted to could be had.
func (x *Picker) noneAmong(w ipam.PickRequest, n ipam.Need, fit []*memory.PoolState,
	chosen []memory.Choice) *ipam.Refusal {
	none := !slices.ContainsFunc(fit, func(p *memory.PoolState) bool { return p.Among(n.Among) })
	if !none && !w.Ahead {
		for _, p := range fit {
			if p.Family() != n.Family || !p.Valid() || !x.bounds.barred(p, w, netip.Addr{}, chosen) {
				continue
			}
			x.state.ExpireCooldowns(p)
			a, free := p.FirstAmong(n.Among, w, chosen)
			if !free || !p.Serves() {
				if a = x.retainedFor(p, w, n); !a.IsValid() {
					continue
				}
			}
			if refusal := x.bounds.bars(p, w, a, chosen); refusal != nil {
				return refusal
			}
		}
	}
	why := x.whyFew(w, n.Among)
	facts := restricted(w, n.Among, why)
	switch {
	case none && len(why) > 0:
	case none && w.Ahead:
		facts.Kind = explain.RangesInNoPool
	case none:
		facts.Kind, facts.Pools = explain.RangesNotOnHost, memory.PoolNames(fit)
	case w.Ahead:
		facts.Kind = explain.RangesHeld
	case w.Claim != "": // it knows more of who has them
		facts.Next = ""
	}
	if none {
		return ipam.RefuseBecause(ipam.ReasonAddressNotInPool, facts, why)
	}
	return ipam.RefuseBecause(ipam.ReasonPoolExhausted, facts, why)
}

// restricted returns the facts of a request that gets none of some addresses for the reasons given.
func restricted(w ipam.PickRequest, among *netipx.IPSet, why []*ipam.Refusal) explain.Facts {
	facts := explain.Facts{
		Kind: explain.RangesNotFree, Who: w.Who, Host: w.Host, Namespace: w.Namespace, Claim: w.Claim,
		Ranges: ipaddr.FormatSet(among), Size: ipaddr.SizeOfSet(among),
	}
	if len(why) > 0 {
		facts.Next = why[0].Hint
	}
	if len(why) == 1 && facts.Size == 1 {
		facts.Kind = explain.RangeNotFree
	}
	return facts
}

// whyFew explains for each of some addresses why it cannot be had, if these addresses are few. It leaves out those that
// no pool has anything to do with.
func (x *Picker) whyFew(w ipam.PickRequest, among *netipx.IPSet) (why []*ipam.Refusal) {
	if ipaddr.SizeOfSet(among) > explain.MaxNamed {
		return nil
	}
	for a := range ipaddr.All(among) {
		if _, _, served := x.state.Pools.Serving(a); !served && len(x.state.Pools.Around(a)) == 0 {
			continue
		}
		if refusal := x.whyNot(w, a); refusal != nil {
			why = append(why, refusal)
		}
	}
	return why
}

// unservedAmong returns why no pool serves a request that is restricted to some addresses.
func (x *Picker) unservedAmong(w ipam.PickRequest) *ipam.Refusal {
	refusal := x.unserved(w)
	among := w.Sets[0]
	if ipaddr.SizeOfSet(among) > explain.MaxNamed {
		return refusal
	}
	var why []*ipam.Refusal
	for a := range ipaddr.All(among) {
		if other := x.otherPool(w, a, refusal); other != nil {
			why = append(why, other)
		}
	}
	if len(why) == 0 {
		return refusal
	}
	return ipam.RefuseBecause(why[0].Reason, restricted(w, among, why), why)
}
