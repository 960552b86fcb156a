package index

import (
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Candidate finds the pool that serves an address. A refusal says why nobody who asks gets the address now;
// the pool has no name where none serves it.
func (x *Index) Candidate(a netip.Addr, now time.Time) (ipam.Pool, *ipam.Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Now = now.UnixNano()
	return x.core.picker.Candidate(a)
}

// Capacity returns how many addresses a request that is ahead of all pods could draw from in all, taken or not, of the
// family of which there are more; for any of some namespaces. It saturates at 2^64-1. The pools are in order of their
// names.
func (x *Index) Capacity(w ipam.PickRequest, namespaces []string) (n uint64, pools []string) {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	var by [2]uint64
	for _, w.Namespace = range namespaces {
		for p := range x.core.state.Pools.Fitting(w) {
			if !slices.Contains(pools, p.Name) {
				pools = append(pools, p.Name)
				by[p.Family()] = ipaddr.AddSaturated(by[p.Family()], p.CanGive())
			}
		}
	}
	slices.Sort(pools)
	return max(by[ipaddr.IPv4], by[ipaddr.IPv6]), pools
}

// Headrooms returns the headroom of all pools that can be used, as they are at a time. It counts nothing: its cost is
// that of the number of pools.
func (x *Index) Headrooms(now time.Time) map[string]ipam.Headroom {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Now = now.UnixNano()
	out := make(map[string]ipam.Headroom, len(x.core.state.Pools.Roots))
	for name, p := range x.core.state.Pools.Roots {
		if p.Valid() {
			out[name] = x.core.picker.Headroom(p)
		}
	}
	return out
}

// KindOf returns what decides the requests of a host: the pools that the host may draw from, and how many more
// addresses it may have of each pool with a bound per host. expected is as in a PickRequest. The result is empty if the
// host has no pools.
func (x *Index) KindOf(host netip.Addr, expected func(pool string) []netip.Addr) string {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.picker.KindOf(host, expected)
}

// RoomFor returns for how many pods like that of a request there are free addresses in the pools that it may draw from.
func (x *Index) RoomFor(w ipam.PickRequest, now time.Time) uint64 {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.Now = now.UnixNano()
	return x.core.picker.RoomFor(w)
}

// Pick chooses the addresses that a request lacks: one of each family that the pools of one network
// offer, or as its families say; when some are held already, those that are missing from the same network. Every
// address it returns is assumed. It returns none and no refusal in two cases: nothing is missing, or the pools of what
// is held serve the request no more.
func (x *Index) Pick(w ipam.PickRequest, now time.Time) ([]ipam.Pick, *ipam.Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	if refusal := x.core.picker.Compares(w); refusal != nil {
		return nil, refusal
	}
	picks, refusal := x.core.picker.Pick(w, now)
	for _, p := range picks {
		x.core.state.Assume(p.Current.Addr, ledger.Assumed{
			Key: w.Key, Host: w.Host, Pool: p.Pool.CountedAs(), Charged: w.ChargedTo(), Since: now,
		})
	}
	return picks, refusal
}

// Moving refuses that a lease moves to another container of its pod while no new address is given; nil if it may.
func (x *Index) Moving(who string) *ipam.Refusal {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	return x.core.picker.Moving(who)
}

// Propose returns what Pick would choose. It assumes nothing.
func (x *Index) Propose(w ipam.PickRequest, now time.Time) ([]ipam.Pick, *ipam.Refusal) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	return x.core.picker.Pick(w, now)
}
