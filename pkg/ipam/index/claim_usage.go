package index

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// ClaimPart are the addresses of a claim of one pool, as their objects say, for one interface, empty for any, and of
// one family.
type ClaimPart struct {
	Pool, IfName string
	Family       ipaddr.Family
	// N is their number, at least one; One is any of them.
	N   int
	One lease.Lease
}

// ClaimUsage are all parts of a claim.
type ClaimUsage []ClaimPart

// ClaimUsage counts the addresses of a claim, those in use and those that are kept for it, at a cost that does not
// grow with them. The parts are in the order of pools, interfaces and families.
func (x *Leases) ClaimUsage(claim string) (all ClaimUsage) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	c := x.core.state.Claims.ByClaim[claim]
	if c == nil {
		return nil
	}
	for _, p := range c.Parts {
		one, _ := p.All.Min()
		all = append(all, ClaimPart{p.Of.Pool, p.Of.IfName, p.Of.Family, p.All.Len(), one.Lease()})
	}
	slices.SortFunc(all, func(a, b ClaimPart) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.IfName, b.IfName), cmp.Compare(a.Family, b.Family))
	})
	return all
}

// CountClaimed returns how many addresses a claim has, those in use and those that are kept for it.
func (x *Leases) CountClaimed(claim string) (n int) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if c := x.core.state.Claims.ByClaim[claim]; c != nil {
		for _, p := range c.Parts {
			n += p.All.Len()
		}
	}
	return n
}

// Of returns how many there are of a family.
func (all ClaimUsage) Of(f ipaddr.Family) (n int) {
	for _, p := range all {
		if p.Family == f {
			n += p.N
		}
	}
	return n
}

// All returns how many there are of both families.
func (all ClaimUsage) All() int { return all.Of(ipaddr.IPv4) + all.Of(ipaddr.IPv6) }

// Most returns how many there are of the family of which there are more.
func (all ClaimUsage) Most() int { return max(all.Of(ipaddr.IPv4), all.Of(ipaddr.IPv6)) }

// RetainedIn returns the pools that serve addresses which are kept for whichever pod of a claim comes, less those that
// are promised.
func (x *Leases) RetainedIn(claim string, promised func(netip.Addr) bool) (pools []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	c := x.core.state.Claims.ByClaim[claim]
	if c == nil {
		return nil
	}
	for _, part := range c.Parts {
		alone := x.core.state.ServesItsOwn(part.Of.Pool)
		part.All.Ascend(func(r *ledger.Record) bool {
			if !r.ForAny() {
				return false
			}
			p, _, served := x.core.state.Pools.Serving(r.Addr)
			if !served || promised(r.Addr) {
				return true
			}
			if !slices.Contains(pools, p.Name) {
				pools = append(pools, p.Name)
			}
			return !alone // else all others are served by it, too
		})
	}
	slices.Sort(pools)
	return pools
}
