package pick

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// able returns those of the pools that fit which have the families that the request takes, together with the others of
// their network.
func (x *Picker) able(w ipam.PickRequest, fit []*memory.PoolState) (able []*memory.PoolState) {
	for _, p := range fit {
		together := x.state.Pools.Together(p, w)
		lacks := func(f ipaddr.Family) bool { return !memory.Offers(together, f) }
		if slices.Contains(w.Try.Families, p.Family()) && !slices.ContainsFunc(w.Try.Families, lacks) {
			able = append(able, p)
		}
	}
	return able
}

// nothingLeft returns why the pools that fit gave a request nothing: none has the families that it takes, or those that
// have them have no address left.
func (x *Picker) nothingLeft(w ipam.PickRequest, fit []*memory.PoolState) *ipam.Refusal {
	if w.Try.Families == nil || len(w.Sets) > 0 {
		return x.exhausted(w, fit)
	}
	if able := x.able(w, fit); len(able) > 0 {
		return x.exhausted(w, able)
	}
	return x.familyMissing(w, fit)
}

// familyMissing refuses a request for families that the pools do not have. It names the pools, and what each has.
func (x *Picker) familyMissing(w ipam.PickRequest, fit []*memory.PoolState) *ipam.Refusal {
	facts := explain.Facts{Kind: explain.FamilyMissing, Who: w.Who, Families: ipam.NamesOfFamilies(w.Try.Families,
		" and ")}
	for _, p := range fit {
		has := p.Family().String()
		switch {
		case len(w.Try.Families) == 1:
		case p.Network == "":
			has += ", of no network"
		default:
			has += ", network " + p.Network
		}
		facts.Pools = append(facts.Pools, p.Name+" ("+has+")")
	}
	if len(w.Try.Families) > 1 {
		facts.Kind = explain.FamiliesApart
	}
	return ipam.RefuseFacts(ipam.ReasonFamilyNotServed, facts)
}
