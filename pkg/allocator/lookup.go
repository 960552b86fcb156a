package allocator

import (
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// lookup finds what the attachment of a request holds, and makes sure that it is still the request's.
func (a *Adder) lookup(ctx context.Context, t *attempt) error {
	t.progress = progress{}
	held, err := a.holdings.of(ctx, t.holder)
	if err != nil {
		return err
	}
	if refusal := holdsOther(t.Request, held, a.engine.index); refusal != nil {
		return refusal
	}
	if l, missing := a.engine.index.Leases.MissingOf(t.holder); missing {
		return ipam.Refuse(ipam.ReasonUnavailable,
			"the object of address %s, which %s holds, was deleted and is being restored", l.Addr, t.who()).
			WithHint("ask again in a moment")
	}
	if t.refused != nil && !complete(held) {
		return t.refused
	}
	t.held, err = a.verify(ctx, t, held)
	return err
}

// holdsOther refuses a request for something else than what is held.
func holdsOther(r Request, held []lease.Lease, x *index.Index) *ipam.Refusal {
	if lacks, ok := lackingFamily(r.Families, held); ok {
		return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds only address %s, the request is for %s (%s)",
			r.who(), held[0].Addr, lacks, r.Families).
			WithHint("release %s first, or ask for what it holds", held[0].Addr)
	}
	for _, l := range held {
		for _, want := range r.Addrs {
			missing := !slices.ContainsFunc(held, func(o lease.Lease) bool { return o.Addr == want })
			if missing && (complete(held) || want.Is4() == l.Addr.Is4()) {
				return ipam.Refuse(ipam.ReasonContainerHoldsOther, "%s holds address %s, the request is for %s",
					r.who(), l.Addr, want).
					WithHint("release %s first, or ask without an address; %s", l.Addr, explain.NameInterface)
			}
		}
		if r.Pool != "" && !x.Pools.OfPool(l, r.Pool) {
			return ipam.Refuse(ipam.ReasonContainerHoldsOther,
				"%s holds address %s of pool %s, the request is for pool %s",
				r.who(), l.Addr, l.Pool, r.Pool).WithHint("release %s first, or ask in another name", l.Addr)
		}
		if p, ok := x.Pools.Get(l.Pool); ok && r.Network != "" && p.Network != r.Network {
			return ipam.Refuse(ipam.ReasonContainerHoldsOther,
				"%s holds address %s of pool %s, the request is for network %s",
				r.who(), l.Addr, l.Pool, r.Network).WithHint("release %s first, or use another ifName", l.Addr)
		}
	}
	return nil
}

// lackingFamily returns a family that a request has to have and that what it holds, where that is whole, is not of.
func lackingFamily(f ipam.Families, held []lease.Lease) (lacks ipaddr.Family, ok bool) {
	if !complete(held) {
		return lacks, false
	}
	for _, family := range ipaddr.Families() {
		of := func(l lease.Lease) bool { return ipaddr.FamilyOf(l.Addr) == family }
		wanted := f.Required() || f.Single() && len(f.Order) > 0 && f.Wants(family)
		if wanted && !slices.ContainsFunc(held, of) {
			return family, true
		}
	}
	return lacks, false
}
