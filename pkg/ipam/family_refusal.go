package ipam

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// Offers reports whether any of some pools has addresses of a family, taken or not.
func Offers(pools []*PoolState, f ipaddr.Family) bool {
	return slices.ContainsFunc(pools, func(p *PoolState) bool { return p.Family() == f && p.Valid() })
}

// able returns those of the pools that fit which have the families that the request takes, together with the others of
// their network.
func (x *Picker) able(w PickRequest, fit []*PoolState) (able []*PoolState) {
	for _, p := range fit {
		together := x.state.Pools.together(p, w)
		lacks := func(f ipaddr.Family) bool { return !Offers(together, f) }
		if slices.Contains(w.try.families, p.Family()) && !slices.ContainsFunc(w.try.families, lacks) {
			able = append(able, p)
		}
	}
	return able
}

// nothingLeft returns why the pools that fit gave a request nothing: none has the families that it takes, or those that
// have them have no address left.
func (x *Picker) nothingLeft(w PickRequest, fit []*PoolState) *Refusal {
	if w.try.families == nil || len(w.Sets) > 0 {
		return x.exhausted(w, fit)
	}
	if able := x.able(w, fit); len(able) > 0 {
		return x.exhausted(w, able)
	}
	return x.familyMissing(w, fit)
}

// familyMissing refuses a request for families that the pools do not have. It names the pools, and what each has.
func (x *Picker) familyMissing(w PickRequest, fit []*PoolState) *Refusal {
	facts := explain.Facts{Kind: explain.FamilyMissing, Who: w.Who, Families: namesOf(w.try.families, " and ")}
	for _, p := range fit {
		has := p.Family().String()
		switch {
		case len(w.try.families) == 1:
		case p.Network == "":
			has += ", of no network"
		default:
			has += ", network " + p.Network
		}
		facts.Pools = append(facts.Pools, p.Name+" ("+has+")")
	}
	if len(w.try.families) > 1 {
		facts.Kind = explain.FamiliesApart
	}
	return RefuseFacts(ReasonFamilyNotServed, facts)
}

// unnamedFamily returns why the addresses that a request is restricted to are not of each family that it takes; nil
// where they are.
func (w PickRequest) unnamedFamily() *Refusal {
	if len(w.Sets) == 0 {
		return nil
	}
	needs := w.needs()
	for _, f := range w.try.families {
		if !slices.ContainsFunc(needs, func(n need) bool { return n.family == f }) {
			return RefuseFacts(ReasonClaimConflict, explain.Facts{
				Kind: explain.FamilyNotNamed, Who: w.Who, Claim: w.Claim, Families: f.String(),
			})
		}
	}
	return nil
}
