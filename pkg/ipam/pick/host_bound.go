package pick

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// hostFull reports whether the host of a request has as many addresses of a pool as one host may have, with those that
// were chosen for the request already. A request by hand, and one that is ahead of all pods, is on no host.
func (x *bounds) hostFull(p *memory.PoolState, w ipam.PickRequest, chosen []memory.Choice) bool {
	if p.MaxPerHost == 0 || !w.Host.IsValid() || w.AnyHost {
		return false
	}
	n, coming := x.onHost(p, w, chosen)
	return n+coming >= p.MaxPerHost
}

// onHost returns how many addresses of a pool the host of a request has, and how many more it is to have: those that
// are being given to it, that were chosen for the request, and that are expected there. A machine with several
// addresses is one host, by whichever of them its requests come.
func (x *bounds) onHost(p *memory.PoolState, w ipam.PickRequest, chosen []memory.Choice) (n, coming int) {
	var held []netip.Addr
	pool := p.CountedAs()
	has := func(a netip.Addr) bool {
		for host := range x.state.Nodes.Machine(w.Host) {
			if x.state.Has(ledger.HostPool{Host: host, Pool: pool}, a) {
				return true
			}
		}
		return false
	}
	for host := range x.state.Nodes.Machine(w.Host) {
		at := ledger.HostPool{Host: host, Pool: pool}
		n += x.state.Hosts.InUse[at]
		for _, a := range x.state.Assumed.Coming[at] {
			held = append(held, a)
			if !has(a) { // the write may have arrived already
				coming++
			}
		}
	}
	isChosen := func(a netip.Addr) bool {
		return slices.ContainsFunc(chosen, func(c memory.Choice) bool { return c.Addr == a })
	}
	for _, c := range chosen {
		if c.Pool.Home() == p.Home() {
			coming++
		}
	}
	if w.Expected != nil {
		for _, a := range w.Expected(pool) {
			if !has(a) && !slices.Contains(held, a) && !isChosen(a) {
				coming++
			}
		}
	}
	return n, coming
}

// noneOnHost refuses an address of a pool of which the host has as many as it may have, with those that were chosen for
// the request already.
func (x *bounds) noneOnHost(p *memory.PoolState, w ipam.PickRequest, chosen []memory.Choice) *ipam.Refusal {
	share := x.hostShare(p, w, chosen)
	return ipam.RefuseFacts(ipam.ReasonHostFull, explain.Facts{
		Kind: explain.HostFull, Who: w.Who, Host: w.Host, Pool: p.Name, Whole: p.CountedAs(), Share: share,
	})
}

// hostShare returns how many addresses of a pool the host of a request has, how many are on their way there, and how
// many it may have.
func (x *bounds) hostShare(p *memory.PoolState, w ipam.PickRequest, chosen []memory.Choice) explain.Share {
	n, coming := x.onHost(p, w, chosen)
	return explain.Share{Has: n, Coming: coming, Limit: p.MaxPerHost}
}
