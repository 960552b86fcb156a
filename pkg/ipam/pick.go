package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Want is a request for addresses.
type Want struct {
	Host      netip.Addr
	Namespace string
	// Network restricts the request to the pools of one network; empty for any.
	Network string
	// Addrs are the addresses asked for, at most one per family.
	Addrs []netip.Addr
	// Have are the addresses that the attachment holds already, fewer than it takes together.
	Have []Lease
	// Key names the attachment. It also decides where in a pool the search begins.
	Key string
	// Who names the requester in messages, such as "pod a/b".
	Who string
}

// Pick is an address chosen for a request. It is held for the request until Drop.
type Pick struct {
	Pool Pool
	// Current is the address as it is now; version 0 when it has no object.
	Current Lease
}

// Pick chooses the addresses that a request lacks: one of each family that the pools of one network
// offer; when some are held already, those that are missing from the same network. Every address it
// returns is held.
func (x *Index) Pick(w Want, now time.Time) ([]Pick, *Refusal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	fit, refusal := x.fitting(w)
	if refusal != nil {
		return nil, refusal
	}
	asked, group, refusal := x.asked(w, fit)
	if refusal != nil {
		return nil, refusal
	}
	var picks []Pick
	for _, g := range groups(fit, group) {
		picks, refusal = x.pickFrom(g, w, asked)
		if refusal == nil {
			break
		}
	}
	if refusal != nil {
		return nil, x.exhausted(w, fit)
	}
	for _, p := range picks {
		x.holds[p.Current.Addr] = Hold{Key: w.Key, Since: now}
		x.refresh(p.Current.Addr)
	}
	return picks, nil
}

// fitting are the pools that the host may draw from for the namespace and network, in order.
func (x *Index) fitting(w Want) ([]*poolState, *Refusal) {
	of := x.hosts[w.Host]
	if len(of) == 0 {
		return nil, Refuse(ReasonHostNotInPool, "host %s does not exist in pools", w.Host).
			WithHint("add it with: bcsnetctl pool add-host POOL %s", w.Host)
	}
	serving := slices.DeleteFunc(slices.Clone(of), func(p *poolState) bool { return !x.servesNamespace(p, w.Namespace) })
	if len(serving) == 0 {
		return nil, Refuse(ReasonNamespaceNotServed, "host %s draws from %s, which does not serve namespace %s",
			w.Host, poolNames(of), w.Namespace).
			WithHint("see spec.namespaces in: bcsnetctl pool describe %s", of[0].Name)
	}
	if w.Network == "" {
		return serving, nil
	}
	of = serving
	serving = slices.DeleteFunc(serving, func(p *poolState) bool { return p.Network != w.Network })
	if len(serving) == 0 {
		return nil, Refuse(ReasonNetworkNotFound, "no pool that host %s may draw from is part of network %s", w.Host, w.Network).
			WithHint("set spec.network of a pool, or ask for another network")
	}
	return serving, nil
}

// servesNamespace: a namespace with pools of its own draws from these alone.
func (x *Index) servesNamespace(p *poolState, ns string) bool {
	if x.bound[ns] > 0 {
		_, ok := p.Namespaces[ns]
		return ok
	}
	return len(p.Namespaces) == 0
}

// asked checks the addresses asked for. The group that they, or else the addresses held, come from is
// the one that the rest must come from; empty when any will do.
func (x *Index) asked(w Want, fit []*poolState) (picks []Pick, group string, refusal *Refusal) {
	for _, l := range w.Have {
		if p, ok := x.pools[l.Pool]; ok {
			group = p.group()
		}
	}
	for _, a := range w.Addrs {
		if slices.ContainsFunc(w.Have, func(l Lease) bool { return l.Addr == a }) {
			continue
		}
		p, _, ok := x.serving(a)
		switch {
		case !ok:
			return nil, "", x.notServed(a)
		case !slices.Contains(fit, p):
			return nil, "", x.unfit(w, a, p)
		case !p.Serves():
			return nil, "", Refuse(ReasonPoolCordoned, "address %s is in pool %s, which hands out nothing: it is %s", a, p.Name, p.why())
		}
		if refusal := x.taken(a); refusal != nil {
			return nil, "", refusal
		}
		if group == "" {
			group = p.group()
		}
		picks = append(picks, x.pick(p, a))
	}
	return picks, group, nil
}

func (x *Index) notServed(a netip.Addr) *Refusal {
	for _, p := range x.pools {
		if p.Valid() && p.Plan.Subnet.Contains(a) {
			return Refuse(ReasonAddressNotInPool, "address %s is not one of the addresses of pool %s (%s)", a, p.Name, p.Plan.Subnet).
				WithHint("add it with: bcsnetctl pool add-ip %s %s", p.Name, a)
		}
	}
	return Refuse(ReasonAddressNotInPool, "address %s is in no pool", a).WithHint("see: bcsnetctl pool list")
}

func (x *Index) unfit(w Want, a netip.Addr, p *poolState) *Refusal {
	if _, ok := p.Hosts[w.Host]; !ok {
		return Refuse(ReasonHostNotInPool, "address %s is in pool %s, which host %s may not draw from", a, p.Name, w.Host).
			WithHint("add the host with: bcsnetctl pool add-host %s %s", p.Name, w.Host)
	}
	if !x.servesNamespace(p, w.Namespace) {
		return Refuse(ReasonNamespaceNotServed, "address %s is in pool %s, which does not serve namespace %s", a, p.Name, w.Namespace)
	}
	return Refuse(ReasonNetworkNotFound, "address %s is in pool %s, which is not part of network %s", a, p.Name, w.Network)
}

// taken says why an address cannot be handed out, nil when it can.
func (x *Index) taken(a netip.Addr) *Refusal {
	if !x.occupied(a) {
		return nil
	}
	if node, ok := x.nodeOf(a); ok {
		return Refuse(ReasonAddressInUse, "address %s is the own address of node %s", a, node).
			WithHint("take it out of the pool: bcsnetctl pool remove-ip POOL %s", a)
	}
	r, ok := x.byAddr[a]
	switch {
	case ok && r.state == Active:
		l := r.lease()
		return Refuse(ReasonAddressInUse, "address %s is held by %s on host %s", a, l.Who(), l.Host).
			WithHint("ask for another address, or wait until it is released")
	case ok && r.state == Reserved:
		return Refuse(ReasonAddressInUse, "address %s is reserved", a)
	case ok && r.flags&flagDeleting != 0:
		return Refuse(ReasonAddressInUse, "the object of address %s is being deleted", a).WithHint("ask again in a moment")
	default:
		return Refuse(ReasonAddressInUse, "address %s is being given to another request", a).WithHint("ask again in a moment")
	}
}

// groups splits pools by the network that they are part of, in the order of each one's first pool;
// only the named group when there is a name.
func groups(pools []*poolState, only string) [][]*poolState {
	var order []string
	by := map[string][]*poolState{}
	for _, p := range pools {
		g := p.group()
		if only != "" && g != only {
			continue
		}
		if by[g] == nil {
			order = append(order, g)
		}
		by[g] = append(by[g], p)
	}
	out := make([][]*poolState, 0, len(order))
	for _, g := range order {
		out = append(out, by[g])
	}
	return out
}

// pickFrom chooses from the pools of one group what the request lacks.
func (x *Index) pickFrom(group []*poolState, w Want, asked []Pick) ([]Pick, *Refusal) {
	picks := slices.Clone(asked)
	for _, is4 := range []bool{true, false} {
		covered := slices.ContainsFunc(w.Have, func(l Lease) bool { return l.Addr.Is4() == is4 }) ||
			slices.ContainsFunc(picks, func(p Pick) bool { return p.Current.Addr.Is4() == is4 })
		offered := slices.ContainsFunc(group, func(p *poolState) bool { return p.is4() == is4 && p.Plan.Subnet.IsValid() })
		if covered || !offered {
			continue
		}
		p, a, ok := x.firstFree(group, is4, w.Key)
		if !ok {
			return nil, Refuse(ReasonPoolExhausted, "none free")
		}
		picks = append(picks, x.pick(p, a))
	}
	if len(picks) == 0 && len(w.Have) == 0 {
		return nil, Refuse(ReasonPoolExhausted, "none free")
	}
	return picks, nil
}

func (x *Index) firstFree(group []*poolState, is4 bool, key string) (*poolState, netip.Addr, bool) {
	for _, p := range group {
		if p.is4() != is4 || !p.Serves() || p.set.n == 0 {
			continue
		}
		if i, ok := p.set.next(xxhash.Sum64String(key) % p.set.n); ok {
			return p, p.address(i), true
		}
	}
	return nil, netip.Addr{}, false
}

func (x *Index) pick(p *poolState, a netip.Addr) Pick {
	current := Lease{Addr: a}
	if r, ok := x.byAddr[a]; ok {
		current = r.lease()
	}
	return Pick{Pool: p.Pool, Current: current}
}
