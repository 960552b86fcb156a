package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// PickRequest is what a request wants of the index.
type PickRequest struct {
	// Host that asks; invalid for a request by hand, and for one that is Ahead.
	Host      netip.Addr
	Namespace string
	// Owner in place of a pod.
	Owner string
	// Pool restricts the request to one pool, and with it to the pool's family; empty for any.
	Pool string
	// Network restricts the request to the pools of one network; empty for any.
	Network string
	// Addrs are the addresses asked for, at most one per family.
	Addrs []netip.Addr
	// Have are the addresses that the attachment holds already, fewer than it takes together.
	Have []Lease
	// Claim and PodPrimaryKey are those of the terms that the addresses are taken on, IfName is the interface that
	// they are for: addresses that are kept for them come first. Without a claim all are empty.
	Claim, PodPrimaryKey, IfName string
	// Ahead: no pod asks yet. The claim is to have addresses that it does not keep already, of pools for any host.
	Ahead bool
	// Room is how many addresses of a family the claim may have in all; 0 for no bound, negative for none at all.
	Room int
	// Sets restrict the addresses: the request takes one of each set, or one of each family where a set has both.
	// None: one of each family of a network.
	Sets []*netipx.IPSet
	// Promised says of an address that it is as good as given to somebody else; nil for none. A request that is
	// served does not ask: the first that comes gets it.
	Promised func(netip.Addr) bool
	// Expected are the addresses of a pool that are as good as given to others on the host; nil for none. A request that
	// is served does not ask.
	Expected func(pool string) []netip.Addr
	// Coming counts the addresses of a family that others of the claim are as good as given beside those that it has; nil for
	// none. A request that is served does not ask.
	Coming func(f ipaddr.Family) int
	// ExpectedIn are the addresses of a pool that are as good as given to others and count for a namespace; nil for none. A
	// request that is served does not ask.
	ExpectedIn func(namespace, pool string) []netip.Addr
	// AnyHost: how many addresses of a pool its host may have does not matter.
	AnyHost bool
	// Key names the attachment. It also decides where in a pool the search begins.
	Key string
	// Who names the requester in messages, such as "pod a/b"; Holder is what histories call it, such as "a/b".
	Who, Holder string
}

// byHand is a request of an operator, who names the pool for an owner that is on no host: which hosts and
// namespaces the pool is for does not matter then.
func (w PickRequest) byHand() bool { return w.Owner != "" && w.Pool != "" && !w.Host.IsValid() }

// picker chooses addresses for a request, or refuses. It changes nothing but what has expired: that an address is chosen
// says nothing of the next request.
type picker struct{ bounds }

// need is one address that a request takes.
type need struct {
	slot   int
	family ipaddr.Family
	among  *netipx.IPSet // nil for any
}

// needs are the addresses that the request takes, whether or not it has them; of a family that no pool has it
// takes none. Those with the least choice come first.
func (w PickRequest) needs() (all []need) {
	if len(w.Sets) == 0 {
		return []need{{family: ipaddr.IPv4}, {family: ipaddr.IPv6}}
	}
	for slot, set := range w.Sets {
		for _, f := range ipaddr.Families() {
			if ipaddr.HasFamily(set, f) {
				all = append(all, need{slot, f, set})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b need) int { return cmp.Compare(ipaddr.SizeOfSet(a.among), ipaddr.SizeOfSet(b.among)) }) // sets may overlap
	return all
}

// needFor is the need that an address of the request is for.
func (w PickRequest) needFor(l Lease) need {
	n := need{slot: l.Slot, family: ipaddr.FamilyOf(l.Addr)}
	if l.Slot < len(w.Sets) {
		n.among = w.Sets[l.Slot]
	}
	return n
}

// promised says whether an address is as good as given to somebody else.
func (w PickRequest) promised(a netip.Addr) bool { return w.Promised != nil && w.Promised(a) }

// covers says whether the request has an address of a need, or gets one of those chosen for it.
func (w PickRequest) covers(n need, chosen []choice) bool {
	return slices.ContainsFunc(w.Have, func(l Lease) bool { return ipaddr.FamilyOf(l.Addr) == n.family && l.Slot == n.slot }) ||
		slices.ContainsFunc(chosen, func(c choice) bool { return ipaddr.FamilyOf(c.addr) == n.family && c.slot == n.slot })
}

// slotOf is the first of the request's sets that has an address.
func (w PickRequest) slotOf(a netip.Addr) int {
	return max(0, slices.IndexFunc(w.Sets, func(s *netipx.IPSet) bool { return s.Contains(a) }))
}

// admitted says whether an address that is kept for a claim may go to the request.
func (w PickRequest) admitted(l Lease) bool {
	return l.admits(Holder{IfName: w.IfName, Slot: w.slotOf(l.Addr)}, Retention{Claim: w.Claim, PodPrimaryKey: w.PodPrimaryKey})
}

// Pick is an address chosen for a request. It is assumed for the request until Forget.
type Pick struct {
	Pool Pool
	// Current is the address as it is now; version 0 when it has no object.
	Current Lease
	// Slot is which of the request's sets the address is from.
	Slot int
}

// Pick chooses the addresses that a request lacks: one of each family that the pools of one network
// offer; when some are held already, those that are missing from the same network. Every address it
// returns is assumed. It returns none, and no refusal, when nothing is missing, and when what is held
// comes from pools that the request cannot draw from any more: then there is nothing to add.
func (x *Index) Pick(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	picks, refusal := x.pick(w, now)
	for _, p := range picks {
		x.assume(p.Current.Addr, Assumed{Key: w.Key, Host: w.Host, Pool: p.Pool.Name, Charged: w.chargedTo(), Since: now})
	}
	return picks, refusal
}

// Propose is what Pick would choose. It assumes nothing.
func (x *Index) Propose(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pick(w, now)
}

func (x *picker) pick(w PickRequest, now time.Time) ([]Pick, *Refusal) {
	x.now = now.UnixNano()
	if refusal := x.returns(w); refusal != nil {
		return nil, refusal
	}
	asked, refusal := x.asked(w)
	if refusal != nil {
		return nil, refusal
	}
	if !w.Ahead {
		if asked, refusal = x.pickRetained(w, asked); refusal != nil {
			return nil, refusal
		}
	}
	choices, refusal := x.complete(w, asked)
	if refusal != nil {
		return nil, refusal
	}
	var picks []Pick
	for _, c := range choices {
		current := Lease{Addr: c.addr, Epoch: x.epoch}
		if r := x.record(c.addr); r != nil {
			current = r.lease()
		}
		picks = append(picks, Pick{Pool: c.pool.Pool, Current: current, Slot: c.slot})
	}
	return picks, nil
}

// choice is an address and the pool that serves it.
type choice struct {
	pool *poolState
	addr netip.Addr
	slot int
}

// complete adds to the addresses asked for what the request lacks beside them: from the network of
// what it holds, else from that of what it asked for, else from the first one that has it all.
func (x *picker) complete(w PickRequest, asked []choice) ([]choice, *Refusal) {
	var together []*poolState
	switch {
	case len(w.Sets) > 0: // they say themselves what belongs together
		if together = slices.Collect(x.fitting(w)); len(together) == 0 {
			return nil, x.unserved(w)
		}
	case len(w.Have) > 0:
		together = x.heldTogether(w)
	case len(asked) > 0:
		together = x.together(asked[0].pool, w)
	default:
		return x.firstComplete(w)
	}
	choices, ok, refusal := x.pickFrom(together, w, asked)
	if !ok {
		if refusal == nil {
			refusal = x.exhausted(w, together)
		}
		return nil, refusal
	}
	return choices, nil
}

func (x *picker) firstComplete(w PickRequest) ([]choice, *Refusal) {
	for p := range x.fitting(w) {
		together := x.together(p, w)
		if together[0] != p {
			continue // tried before
		}
		choices, ok, refusal := x.pickFrom(together, w, nil)
		switch {
		case refusal != nil:
			return nil, refusal
		case ok && len(choices) > 0:
			return choices, nil
		}
	}
	fit := slices.Collect(x.fitting(w))
	if len(fit) == 0 {
		return nil, x.unserved(w)
	}
	return nil, x.exhausted(w, fit)
}

// pickFrom chooses from the pools of one network what the request lacks; ok is false when they offer
// a family that it lacks and have no address of it, with the refusal where the claim may have no more.
func (x *picker) pickFrom(pools []*poolState, w PickRequest, asked []choice) (choices []choice, ok bool, refusal *Refusal) {
	choices = asked
	for _, n := range w.needs() {
		offered := n.among != nil || slices.ContainsFunc(pools, func(p *poolState) bool { return p.Family() == n.family && p.Valid() })
		if w.covers(n, choices) || !offered {
			continue
		}
		if refusal := x.full(w, n.family); refusal != nil {
			return nil, false, refusal
		}
		c, ok := x.firstFree(pools, n, w, choices)
		switch {
		case !ok && n.among != nil:
			return nil, false, x.noneAmong(w, n, pools, choices)
		case !ok:
			return nil, false, nil
		}
		choices = append(choices, c)
	}
	return choices, true, nil
}

func (x *picker) firstFree(pools []*poolState, n need, w PickRequest, chosen []choice) (choice, bool) {
	start := xxhash.Sum64String(w.Key)
	for _, p := range pools {
		if p.Family() != n.family || !p.Serves() || p.set.n == 0 {
			continue
		}
		if x.expireCooldowns(p); p.set.free() == 0 || x.barred(p, w, netip.Addr{}, chosen) {
			continue
		}
		if n.among != nil {
			if a, ok := p.firstAmong(n.among, w, chosen); ok {
				return choice{p, a, n.slot}, true
			}
			continue
		}
		if a, ok := p.firstAfter(start%p.set.n, w); ok {
			return choice{p, a, n.slot}, true
		}
	}
	return choice{}, false
}

// firstAfter is the first free address of a pool at or after a number, going round at the end, that is promised to
// nobody.
func (p *poolState) firstAfter(start uint64, w PickRequest) (a netip.Addr, ok bool) {
	for free := p.set.free(); free > 0; free-- {
		i, _ := p.set.next(start)
		if a = p.address(i); !w.promised(a) {
			return a, true
		}
		start = i + 1
	}
	return a, false
}

// among says whether a pool serves any of some addresses.
func (p *poolState) among(some *netipx.IPSet) bool {
	return slices.ContainsFunc(p.segments, func(s segment) bool { return some.OverlapsRange(s.IPRange) })
}

// firstAmong is the first free address of a pool that is one of some, and not chosen already: sets may overlap.
func (p *poolState) firstAmong(some *netipx.IPSet, w PickRequest, chosen []choice) (a netip.Addr, ok bool) {
	for _, r := range some.Ranges() {
		for _, s := range p.segments {
			if !s.Overlaps(r) {
				continue
			}
			from, to := s.From(), s.To()
			if from.Less(r.From()) {
				from = r.From()
			}
			if r.To().Less(to) {
				to = r.To()
			}
			first, last := s.base+ipaddr.Distance(s.From(), from), s.base+ipaddr.Distance(s.From(), to)
			for i := p.set.after(first); i <= last && i < p.set.n; i = p.set.after(i + 1) {
				a := p.address(i)
				if !w.promised(a) && !slices.ContainsFunc(chosen, func(c choice) bool { return c.addr == a }) {
					return a, true
				}
			}
		}
	}
	return a, false
}
