package pick

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// Candidate finds the pool that serves an address, or refuses, as Index.Candidate says.
func (x *Picker) Candidate(a netip.Addr) (ipam.Pool, *ipam.Refusal) {
	p, _, ok := x.state.Pools.Serving(a)
	switch {
	case !ok:
		return ipam.Pool{}, x.notServed(ipam.PickRequest{}, a)
	case !p.Serves():
		return p.Pool, notGiven(a, p)
	}
	return p.Pool, x.taken(a, p, ipam.PickRequest{})
}

// whyNot returns why an address is not given to who asks for it, in whichever way it asks; nil if nothing about the
// address is in the way. Requests, annotations, claims and commands all have their words from here.
func (x *Picker) whyNot(w ipam.PickRequest, a netip.Addr) *ipam.Refusal {
	p, _, ok := x.state.Pools.Serving(a)
	switch {
	case !ok:
		return x.notServed(w, a)
	case !x.state.Pools.Fits(p, w):
		return x.unfit(w, a, p)
	case !p.Serves():
		return notGiven(a, p)
	}
	return x.taken(a, p, w)
}

// notGiven refuses an address of a pool that allocates nothing.
func notGiven(a netip.Addr, p *memory.PoolState) *ipam.Refusal {
	return ipam.RefuseFacts(p.Stopped(), explain.Facts{
		Kind: explain.AddressPoolStopped, Address: a, Pool: p.Name, Stop: p.Stop(),
	})
}

// notServed returns why no pool serves an address: somebody has it still, it has a role, or it is not listed. Of the
// pools around it, it names one that fits, unless only another one says why.
func (x *Picker) notServed(w ipam.PickRequest, a netip.Addr) *ipam.Refusal {
	if facts, by := x.drainingBy(a); by != nil {
		return ipam.RefuseHeld(ipam.ReasonAddressInUse, facts, *by)
	} else if facts.Kind != 0 {
		return ipam.RefuseFacts(ipam.ReasonAddressInUse, facts)
	}
	around := x.state.Pools.Around(a)
	if len(around) == 0 {
		return ipam.RefuseFacts(ipam.ReasonAddressNotInPool, explain.Facts{Kind: explain.AddressInNoPool, Address: a})
	}
	slices.SortStableFunc(around,
		func(p, q *memory.PoolState) int {
			return ipam.FalseFirst(x.state.Pools.Fits(q, w), x.state.Pools.Fits(p, w))
		})
	for _, p := range around {
		facts := explain.Facts{Address: a, Pool: p.Name, Subnet: p.Plan.Subnet}
		switch {
		case slices.Contains(p.Plan.Unusable(), a):
			facts.Kind, facts.Role = explain.AddressHasRole, p.Plan.Role(a)
		case p.Plan.Excluded.Contains(a):
			facts.Kind = explain.AddressExcluded
		default:
			continue
		}
		return ipam.RefuseFacts(ipam.ReasonAddressNotInPool, facts)
	}
	return ipam.RefuseFacts(ipam.ReasonAddressNotInPool, explain.Facts{
		Kind: explain.AddressNotListed, Address: a, Pool: around[0].Name, Subnet: around[0].Plan.Subnet,
	})
}

// drainingBy returns who keeps an address that its pool does not have any more; of no kind if nobody does. by is the
// holder that the facts name; nil for none.
func (x *Picker) drainingBy(a netip.Addr) (facts explain.Facts, by *lease.Holder) {
	r := x.state.Leases.Record(a)
	if r == nil || !x.state.Pools.Drains(r) {
		return facts, nil
	}
	facts = explain.Facts{
		Kind: explain.AddressDraining, Address: a, Pool: r.Params.Value().Pool, Claim: r.Claim(),
	}
	if r.State != lease.Active {
		return facts, nil
	}
	l := r.Lease()
	facts.By = l.Where()
	return facts, &l.Holder
}

// otherPool returns what an address that is asked for adds to the refusal of a request that no pool serves: the pool of
// that address is the one that would have to serve it. It is nil for a refusal that is about the host or about a pool
// that was named, and for an address that no pool serves.
func (x *Picker) otherPool(w ipam.PickRequest, a netip.Addr, unserved *ipam.Refusal) *ipam.Refusal {
	if len(w.Pools) > 0 || unserved.Reason != ipam.ReasonNamespaceNotServed &&
		unserved.Reason != ipam.ReasonNetworkNotFound {
		return nil
	}
	p, _, ok := x.state.Pools.Serving(a)
	if !ok || x.state.Pools.Fits(p, w) {
		return nil
	}
	return x.unfit(w, a, p)
}

// unfit returns why the pool of an address asked for does not fit.
func (x *Picker) unfit(w ipam.PickRequest, a netip.Addr, p *memory.PoolState) *ipam.Refusal {
	facts := explain.Facts{
		Address: a, Pool: p.Name, Other: strings.Join(w.Pools, ", "), Host: w.Host,
		Namespace: w.Namespace, Network: w.Network,
	}
	switch {
	case len(w.Pools) > 0 && !slices.Contains(w.Pools, p.Name):
		facts.Kind = explain.AddressInOtherPool
		return ipam.RefuseFacts(ipam.ReasonAddressNotInPool, facts)
	case !p.Lists(w):
		facts.Kind, facts.Whole = explain.AddressNotForHost, p.CountedAs()
		return ipam.RefuseFacts(ipam.ReasonHostNotInPool, facts)
	case !p.Bound() && p.NotDefault && !w.Names(p.Pool):
		facts.Kind = explain.AddressForWhoNamesPool
		return ipam.RefuseFacts(ipam.ReasonNamespaceNotServed, facts)
	case !x.state.Pools.ServesNamespace(p, w):
		facts.Kind, facts.Block = explain.AddressNotForNamespace, p.Block
		return ipam.RefuseFacts(ipam.ReasonNamespaceNotServed, facts)
	default:
		facts.Kind = explain.AddressNotOfNetwork
		return ipam.RefuseFacts(ipam.ReasonNetworkNotFound, facts)
	}
}

// taken returns why an address of a pool cannot be allocated to the request, nil if it can.
func (x *Picker) taken(a netip.Addr, p *memory.PoolState, w ipam.PickRequest) *ipam.Refusal {
	if facts, by := x.usedBy(a, w); facts.Kind != 0 {
		facts.Address, facts.Pool = a, p.Name
		if by == nil {
			return ipam.RefuseFacts(ipam.ReasonAddressInUse, facts)
		}
		return ipam.RefuseHeld(ipam.ReasonAddressInUse, facts, *by)
	}
	if p.Withholds(a) {
		return ipam.RefuseFacts(ipam.ReasonAddressInUse, explain.Facts{
			Kind: explain.AddressWithheld, Address: a, Pool: p.Name, Other: p.Parent,
		})
	}
	x.state.ExpireCooldowns(p)
	return x.cooling(a, p, w)
}

// usedBy returns why an address, its cooldown apart, is not to be had by who asks for it; of no kind if it is free. by
// is the holder that the facts name; nil for none.
func (x *Picker) usedBy(a netip.Addr, w ipam.PickRequest) (facts explain.Facts, by *lease.Holder) {
	if node, ok := x.state.Nodes.Of(a); ok {
		return explain.Facts{Kind: explain.AddressOfNode, By: node}, nil
	}
	if r := x.state.Leases.Record(a); r != nil {
		switch {
		case r.State == lease.Active:
			l := r.Lease()
			return explain.Facts{Kind: explain.AddressHeld, By: l.Where()}, &l.Holder
		case r.State == lease.Reserved && r.Claim() != "" && w.Admits(r.Lease()):
		case r.State == lease.Reserved && r.Claim() != "":
			return explain.Facts{Kind: explain.AddressKept, Claim: r.Claim()}, nil
		case r.State == lease.Reserved:
			return keptByNobody(r.Lease()), nil
		case r.Has(ledger.FlagDeleting):
			return explain.Facts{Kind: explain.AddressBeingDeleted}, nil
		case r.Has(ledger.FlagFinalizer):
			return explain.Facts{Kind: explain.AddressEmptied}, nil
		}
	}
	if r, ok := x.state.Missing.Gone[a]; ok {
		l := r.Lease()
		return explain.Facts{Kind: explain.AddressMissing, By: l.UsedBy()}, &l.Holder
	}
	if _, ok := x.state.Assumed.ByAddr[a]; ok {
		return explain.Facts{Kind: explain.AddressBeingGiven}, nil
	}
	return facts, nil
}

// keptByNobody returns why an address that no claim keeps is Reserved, and who set it aside.
func keptByNobody(l lease.Lease) explain.Facts {
	if l.IsQuarantined() {
		return explain.Facts{Kind: explain.AddressQuarantined, By: l.Conflict.MAC, Until: l.Conflict.Until}
	}
	facts, c := explain.Facts{Kind: explain.AddressReserved}, l.Reservation()
	if facts.By = c.By; c.Reason != "" {
		facts.Because = []string{c.Reason}
	}
	return facts
}

// cooling returns why an address that rests is not given to who asks for it by name; nil when it does not
// rest, and for the one who had it last: to everybody else the address still means them.
func (x *Picker) cooling(a netip.Addr, p *memory.PoolState, w ipam.PickRequest) *ipam.Refusal {
	_, number, _ := x.state.Pools.Serving(a)
	if !p.Home().Cooldowns.Set.IsTaken(number) {
		return nil
	}
	r := x.state.Leases.Record(a)
	last := r.History().LastHolder()
	if last != "" && last == w.Holder || hadLast(w, r) {
		return nil
	}
	left := x.state.Until(ledger.FromNanos(p.CoolsUntil(r)))
	namespace, _, _ := strings.Cut(last, "/")
	return ipam.RefuseHeld(ipam.ReasonAddressCooling, explain.Facts{
		Kind: explain.AddressCooling, Address: a, Pool: p.Name, By: last, In: left,
	}, lease.Holder{Namespace: namespace}) // its host is not known any more
}
