package pick

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// The cooldown keeps an address from others while the network remembers its last holder. That holder itself has nothing
// to wait for: when a node restarts, each of its pods comes back with the same UID and another container.

// hadLast reports whether the interface of the pod that asks had an address last. A pod of another name with the same
// UID is another pod.
func hadLast(w ipam.PickRequest, r *ledger.Record) bool {
	if w.PodUID == "" {
		return false
	}
	uid, ifName := r.History().LastAttachment()
	return uid == w.PodUID && ifName == w.IfName &&
		(w.Holder == "" || r.History().LastHolder() == lease.PastHolder(w.Holder))
}

// pickOwnCooling chooses, of the addresses that cool and that the request's own interface had last, one for each need
// that is open: the one given up last. They are of one network with what the request has.
func (x *Picker) pickOwnCooling(w ipam.PickRequest, chosen []memory.Choice) []memory.Choice {
	if w.PodUID == "" {
		return chosen
	}
	for _, n := range w.Needs() {
		if covers(w, n, chosen) || w.Families.Single() && len(chosen) > 0 &&
			ipaddr.FamilyOf(chosen[0].Addr) != n.Family {
			continue
		}
		var latest *ledger.Record
		var own memory.Choice
		for r := range x.state.Leases.LastHad(w.PodUID, w.IfName) {
			if !hadLast(w, r) || latest != nil && latest.Updated >= r.Updated {
				continue
			}
			if p := x.mayReturn(r, n, w, chosen); p != nil {
				latest, own = r, memory.Choice{Pool: p, Addr: r.Addr, Slot: n.Slot}
			}
		}
		if latest != nil {
			chosen = append(slices.Clip(chosen), own)
		}
	}
	return chosen
}

// mayReturn returns the pool by which an address that cools goes back to the request that had it last; nil if the
// request cannot have it.
func (x *Picker) mayReturn(r *ledger.Record, n ipam.Need, w ipam.PickRequest,
	chosen []memory.Choice) *memory.PoolState {
	if ipaddr.FamilyOf(r.Addr) != n.Family || n.Among != nil && !n.Among.Contains(r.Addr) {
		return nil
	}
	p, number, served := x.state.Pools.Serving(r.Addr)
	if !served || !p.Home().Cooldowns.Set.IsTaken(number) || !p.Serves() || p.Split != nil || !x.state.Pools.Fits(p,
		w) ||
		w.IsPromised(r.Addr) || x.taken(r.Addr, p, w) != nil || x.bounds.barred(p, w, r.Addr, chosen) ||
		x.apart(w, append(slices.Clip(chosen), memory.Choice{Pool: p, Addr: r.Addr})) != nil {
		return nil
	}
	return p
}
