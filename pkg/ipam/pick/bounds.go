package pick

import (
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// bounds keeps hosts, namespaces and claims from getting more addresses than they may have.
type bounds struct{ state *memory.State }

// barred reports whether the request may get no further address of a pool, because its host or a namespace has as many
// as it may have. a is the address, if it is known already.
func (x *bounds) barred(p *memory.PoolState, w ipam.PickRequest, a netip.Addr, chosen []memory.Choice) bool {
	return x.hostFull(p, w, chosen) || x.overQuota(p, w, a, chosen) != "" || x.overKept(p, w, a)
}

// bars refuses a request that a pool is barred to, nil for any other.
func (x *bounds) bars(p *memory.PoolState, w ipam.PickRequest, a netip.Addr, chosen []memory.Choice) *ipam.Refusal {
	if x.hostFull(p, w, chosen) {
		return x.noneOnHost(p, w, chosen)
	}
	if ns := x.overQuota(p, w, a, chosen); ns != "" {
		return x.quotaExceeded(p, w, ns, chosen)
	}
	if x.overKept(p, w, a) {
		return x.keepsTooMany(p, w)
	}
	return nil
}

// full refuses a claim that has all the addresses of a family that it may have.
func (x *bounds) full(w ipam.PickRequest, f ipaddr.Family) *ipam.Refusal {
	if w.Claim == "" || w.Room == 0 {
		return nil
	}
	n := 0
	if c := x.state.Claims.ByClaim[w.Claim]; c != nil {
		n = c.N[f]
	}
	coming := 0
	if w.Coming != nil && n < w.Room {
		coming = w.Coming(f)
	}
	if n+coming < w.Room {
		return nil
	}
	share := explain.Share{Has: n, Coming: coming, Limit: max(w.Room, 0)}
	return ipam.RefuseFacts(ipam.ReasonClaimFull, explain.Facts{Kind: explain.ClaimFull, Who: w.Who, Claim: w.Claim,
		Share: share})
}
