package ipam

import (
	"net/netip"
	"slices"
)

// asked checks the addresses asked for, except those that are held already.
func (x *Index) asked(w PickRequest) (choices []choice, refusal *Refusal) {
	for _, a := range w.Addrs {
		if slices.ContainsFunc(w.Have, func(l Lease) bool { return l.Addr == a }) {
			continue
		}
		if len(w.Have) == 0 && !x.served(w) {
			return nil, x.unserved(w)
		}
		p, _, ok := x.serving(a)
		switch {
		case !ok:
			return nil, x.notServed(w, a)
		case !x.fits(p, w):
			return nil, x.unfit(w, a, p)
		case !p.Serves():
			return nil, Refuse(p.stopped(), "address %s is in pool %s, which hands out nothing: it is %s", a, p.Name, p.why()).
				WithHint("%s", p.cure())
		}
		if refusal := x.taken(a, p, w); refusal != nil {
			return nil, refusal
		}
		if refusal := x.bars(p, w, a, choices); refusal != nil {
			return nil, refusal
		}
		choices = append(choices, choice{p, a, w.slotOf(a)})
	}
	if refusal := x.apart(w, choices); refusal != nil {
		return nil, refusal
	}
	return choices, nil
}

// served says whether any pool fits.
func (x *Index) served(w PickRequest) bool {
	for range x.fitting(w) {
		return true
	}
	return false
}

// notServed says why no pool serves an address; of several pools around it, it names one that fits.
func (x *Index) notServed(w PickRequest, a netip.Addr) *Refusal {
	var around []*poolState
	for _, p := range x.pools {
		if p.Valid() && p.Plan.Subnet.Contains(a) {
			around = append(around, p)
		}
	}
	if len(around) == 0 {
		return Refuse(ReasonAddressNotInPool, "address %s is in no pool", a).WithHint("see: bcsnetctl pool list")
	}
	slices.SortFunc(around, preference)
	p := around[max(0, slices.IndexFunc(around, func(p *poolState) bool { return x.fits(p, w) }))]
	if p.Plan.unusable().Contains(a) {
		what := "broadcast address"
		switch a {
		case p.Plan.Gateway:
			what = "gateway"
		case p.Plan.Subnet.Addr():
			what = "network address"
		}
		return Refuse(ReasonAddressNotInPool, "address %s is the %s of pool %s (%s)", a, what, p.Name, p.Plan.Subnet).
			WithHint("ask for another address")
	}
	if p.Plan.Excluded.Contains(a) {
		return Refuse(ReasonAddressNotInPool, "address %s is among the excludeIPs of pool %s (%s)", a, p.Name, p.Plan.Subnet).
			WithHint("ask for another address, or take it out of spec.excludeIPs")
	}
	return Refuse(ReasonAddressNotInPool, "address %s is not one of the addresses of pool %s (%s)", a, p.Name, p.Plan.Subnet).
		WithHint("add it with: bcsnetctl pool add-ip %s %s", p.Name, a)
}

// unfit says why the pool of an address asked for does not fit.
func (x *Index) unfit(w PickRequest, a netip.Addr, p *poolState) *Refusal {
	switch {
	case w.Pool != "" && w.Pool != p.Name:
		return Refuse(ReasonAddressNotInPool, "address %s is in pool %s, not in pool %s", a, p.Name, w.Pool).
			WithHint("ask for it there, or for another address")
	case !p.lists(w):
		return Refuse(ReasonHostNotInPool, "address %s is in pool %s, which host %s may not draw from", a, p.Name, w.Host).
			WithHint("add the host with: bcsnetctl pool add-host %s %s", p.Name, w.Host)
	case !x.servesNamespace(p, w):
		return Refuse(ReasonNamespaceNotServed, "address %s is in pool %s, which does not serve namespace %s", a, p.Name, w.Namespace).
			WithHint("see spec.namespaces in: bcsnetctl pool describe %s", p.Name)
	default:
		return Refuse(ReasonNetworkNotFound, "address %s is in pool %s, which is not part of network %s", a, p.Name, w.Network).
			WithHint("ask for another address or network")
	}
}

// taken says why an address of a pool cannot be handed out to who asks for it, nil when it can.
func (x *Index) taken(a netip.Addr, p *poolState, w PickRequest) *Refusal {
	if node, ok := x.nodeOf(a); ok {
		return Refuse(ReasonAddressInUse, "address %s of pool %s is the own address of node %s", a, p.Name, node).
			WithHint("take it out of the pool: bcsnetctl pool remove-ip %s %s", p.Name, a)
	}
	if r := x.record(a); r != nil {
		switch {
		case r.state == Active:
			l := r.lease()
			return Refuse(ReasonAddressInUse, "address %s of pool %s is held by %s", a, p.Name, l.Where()).
				WithHint("ask for another address, or wait until it is released")
		case r.state == Reserved && r.claim() != "" && w.admitted(r.lease()):
		case r.state == Reserved && r.claim() != "":
			return Refuse(ReasonAddressInUse, "address %s of pool %s is kept for claim %s", a, p.Name, r.claim()).
				WithHint("ask for another address; see for whom: bcsnetctl ip describe %s", a)
		case r.state == Reserved:
			return Refuse(ReasonAddressInUse, "address %s of pool %s is reserved", a, p.Name).
				WithHint("ask for another address; see by whom and why: bcsnetctl ip describe %s", a)
		case r.has(flagDeleting):
			return Refuse(ReasonAddressInUse, "the object of address %s of pool %s is being deleted", a, p.Name).
				WithHint("ask again in a moment")
		}
	}
	if r, ok := x.missing[a]; ok {
		return Refuse(ReasonAddressInUse, "the object of address %s of pool %s was deleted while the address was in use (%s); it is being restored", a, p.Name, r.lease().use()).
			WithHint("ask for another address, or again in a moment")
	}
	if _, ok := x.assumed[a]; ok {
		return Refuse(ReasonAddressInUse, "address %s of pool %s is being given to another request", a, p.Name).
			WithHint("ask again in a moment")
	}
	x.expireCooldowns(p)
	return x.cooling(a, p, w.Holder)
}

// apart refuses addresses asked for that are of different networks, among themselves or with what is held.
func (x *Index) apart(w PickRequest, asked []choice) *Refusal {
	beside := asked
	for _, l := range w.Have {
		if p, ok := x.pools[l.Pool]; ok {
			beside = append(slices.Clip(beside), choice{p, l.Addr, l.Slot})
		}
	}
	for _, a := range asked {
		for _, b := range beside {
			if a.pool.Network != b.pool.Network {
				return Refuse(ReasonNetworkNotFound, "address %s of pool %s and address %s of pool %s are not of one network", a.addr, a.pool.Name, b.addr, b.pool.Name).
					WithHint("ask for addresses of one network; see: bcsnetctl pool list -o wide")
			}
		}
	}
	return nil
}
