package ipam

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/freeset"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// uncounted stands for a count that nodes or hosts have changed since.
const uncounted = -1

// poolState is a pool with what it serves and what of that is free.
type poolState struct {
	Pool
	// given is the pool as SetPool got it.
	given    Pool
	usable   []netipx.IPRange // of the plan
	segments []segment
	// set and cooldowns are nil for a block: it has n numbers of those of its parent, one behind the other.
	set       *freeset.Set
	cooldowns *cooldowns
	from, n   uint64
	// later is how many addresses the pool serves that are withheld from it: they are not in its free set.
	later uint64
	// listed: requests find the pool by its hosts, namespaces and network.
	listed bool
	// proposed: nobody has made the block yet.
	proposed bool
	// parent and number are those of a block; split is what a pool that is cut into blocks knows of them.
	parent *poolState
	number uint64
	split  *blockSplit
	// ofBlocks counts the leases that name one of its blocks.
	ofBlocks ledger.Tally
	overlaps map[string]*overlap
	// hosts is how many hosts may draw, uncounted where that has to be found out.
	hosts int
	// matched are the namespaces whose labels the pool's selector matches.
	matched map[string]struct{}
	// revision is another number whenever what the pool serves was worked out anew.
	revision uint64
	// rebuilding says what the pool waits for before it hands out again; empty when it does not wait.
	rebuilding string
}

// Serves reports whether the pool hands out addresses at present.
func (p *poolState) Serves() bool {
	return p.Pool.Serves() && p.rebuilding == "" && (p.parent == nil || p.parent.rebuilding == "")
}

// choice is an address and the pool that serves it.
type choice struct {
	pool *poolState
	addr netip.Addr
	slot int
}

// segment is a run of addresses that one pool serves; base is the number of its first address in the
// pool's free set.
type segment struct {
	netipx.IPRange
	base uint64
	pool *poolState
}

// assign gives a pool all its addresses but those that it loses to others.
func (p *poolState) assign() {
	served := p.Plan.Usable
	for _, o := range p.overlaps {
		if o.winner != p {
			served = ipaddr.Subtract(served, o.shared)
		}
	}
	p.segments = nil
	var n uint64
	number := func(s *netipx.IPSet) {
		for _, r := range s.Ranges() {
			p.segments = append(p.segments, segment{IPRange: r, base: n, pool: p})
			n = ipaddr.AddSaturated(n, ipaddr.Size(r))
		}
	}
	grows := p.Withheld != nil && !p.Carving
	if !grows {
		number(served)
	} else {
		number(ipaddr.Subtract(served, p.Withheld))
	}
	p.set, p.cooldowns, p.n = freeset.New(n), newCooldowns(n), n
	if grows { // what is withheld has numbers behind those of the free set
		number(ipaddr.Intersect(served, p.Withheld))
	}
	p.later = n - p.set.Len()
}

// free returns how many addresses of the pool are free.
func (p *poolState) free() uint64 {
	if p.parent == nil {
		return p.set.Free()
	}
	return p.parent.set.FreeIn(p.from, p.n)
}

// hasFree reports whether any address of the pool is free.
func (p *poolState) hasFree() bool {
	_, ok := p.home().set.NextIn(p.from, p.n, 0)
	return ok
}

// cooling returns how many addresses of the pool would be free but for the cooldown.
func (p *poolState) cooling() uint64 {
	if p.parent == nil {
		return p.cooldowns.set.Used()
	}
	return p.n - p.parent.cooldowns.set.FreeIn(p.from, p.n)
}

// address returns the address of a number that the pool has.
func (p *poolState) address(i uint64) netip.Addr {
	at, exact := slices.BinarySearchFunc(p.segments, i, func(s segment, i uint64) int { return cmp.Compare(s.base, i) })
	if !exact {
		at--
	}
	return ipaddr.Advance(p.segments[at].From(), i-p.segments[at].base)
}

// among reports whether a pool serves any of some addresses.
func (p *poolState) among(some *netipx.IPSet) bool {
	return slices.ContainsFunc(p.segments, func(s segment) bool { return some.OverlapsRange(s.IPRange) })
}

// firstAfter returns the first free address of a pool at or after a number, going round at the end, that is promised to
// nobody.
func (p *poolState) firstAfter(start uint64, w PickRequest) (a netip.Addr, ok bool) {
	set := p.home().set
	i, ok := set.NextIn(p.from, p.n, start)
	if !ok {
		return a, false
	}
	for first := i; ; {
		if a = p.address(i); !w.promised(a) {
			return a, true
		}
		if i, _ = set.NextIn(p.from, p.n, i+1-p.from); i == first {
			return a, false
		}
	}
}

// firstAmong returns the first free address of a pool that is one of some, and not chosen already: sets may overlap.
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
			set := p.home().set
			for i := set.After(first); i <= last && i < set.Len(); i = set.After(i + 1) {
				a := p.address(i)
				if !w.promised(a) && !slices.ContainsFunc(chosen, func(c choice) bool { return c.addr == a }) {
					return a, true
				}
			}
		}
	}
	return a, false
}

// lists reports whether the requester's host may draw from the pool. Ahead of all pods any host may be theirs, where
// the pool has one or was named.
func (p *poolState) lists(w PickRequest) bool {
	if w.Ahead {
		return len(w.Pools) > 0 || len(w.Sets) > 0 || !p.NoHosts()
	}
	return p.Draws(w.Host) || w.byHand()
}

// stop returns what keeps a pool from handing out addresses.
func (p *poolState) stop() explain.Stop {
	switch {
	case p.Serves():
		return explain.Stop{}
	case !p.Valid():
		return explain.Stop{Cause: explain.NotUsable, Detail: p.Problem}
	case p.Terminating:
		return explain.Stop{Cause: explain.Terminating}
	case p.parent != nil && p.Cordoned && !p.given.Cordoned:
		return explain.Stop{Cause: explain.ByParent, Detail: explain.Stop{Cause: explain.Cordoned}.OfParent(p.Parent)}
	case p.Cordoned:
		return explain.Stop{Cause: explain.Cordoned}
	case p.ByParent != explain.Serves:
		return explain.Stop{Cause: explain.ByParent, Detail: explain.Stop{Cause: p.ByParent}.OfParent(p.Parent)}
	case p.Carving && p.home().split != nil:
		return explain.Stop{Cause: explain.Splitting, Detail: p.home().Name}
	case p.Carving:
		return explain.Stop{Cause: explain.Carving, Detail: p.Parent}
	default:
		return explain.Stop{Cause: explain.Rebuilding, Detail: cmp.Or(p.rebuilding, p.home().rebuilding)}
	}
}

// stopped returns the reason of a refusal by a pool that hands out nothing.
func (p *poolState) stopped() Reason {
	if p.Pool.Serves() {
		return ReasonPoolRebuilding
	}
	return ReasonPoolCordoned
}

// withholds reports whether an address of the pool was not handed over to it yet. One of which nothing was handed over
// does not serve at all.
func (p *poolState) withholds(a netip.Addr) bool {
	return p.Withheld != nil && !p.Carving && p.Withheld.Contains(a)
}

// losesAddresses reports whether another pool serves addresses that this one has, too.
func (p *poolState) losesAddresses() bool {
	for _, o := range p.overlaps {
		if o.winner != p {
			return true
		}
	}
	return false
}

// servedByOthers counts the addresses of a pool that other pools, which have them too, serve.
func (p *poolState) servedByOthers() map[string]uint64 {
	if !p.losesAddresses() {
		return nil
	}
	to := map[string]uint64{}
	for other, o := range p.overlaps {
		if o.winner != p {
			to[other] = ipaddr.SizeOfSet(o.shared)
		}
	}
	return to
}

// poolNames names pools, in their order.
func poolNames(pools []*poolState) (names []string) {
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names
}
