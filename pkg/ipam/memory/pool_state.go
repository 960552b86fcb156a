package memory

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/freeset"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Uncounted stands for a count that is outdated, because nodes or hosts have changed.
const Uncounted = -1

// PoolState is a pool with what it serves and what of that is free.
type PoolState struct {
	ipam.Pool
	// Given is the pool as SetPool got it.
	Given        ipam.Pool
	UsableRanges []netipx.IPRange // of the plan
	Segments     []segment
	// Set and Cooldowns are nil for a block, which has the N numbers of its parent's that begin at From.
	Set       *freeset.Set
	Cooldowns *cooldowns
	From, N   uint64
	// Later counts the addresses that the pool serves and that are withheld from it: they are not in its free set.
	Later uint64
	// listed: requests find the pool by its hosts, namespaces and network.
	listed bool
	// Proposed: the block does not exist yet.
	Proposed bool
	// Whole is the parent of a block, and number the block's number in it. Whole is nil for any other pool.
	Whole  *PoolState
	number uint64
	// Split has the blocks of a pool that is split; nil for any other pool.
	Split *blockSplit
	// OfBlocks counts the leases that name one of its blocks.
	OfBlocks ledger.Tally
	// Overlaps are by the name of the other pool.
	Overlaps map[string]*overlap
	// HostCount is the number of hosts that may draw; Uncounted if they have to be counted again.
	HostCount int
	// matched are the namespaces whose labels the pool's selector matches.
	matched map[string]struct{}
	// Revision changes whenever the addresses that the pool serves are computed.
	Revision uint64
	// Rebuilding says what the pool waits for before it allocates addresses again; empty if it does not wait.
	Rebuilding string
}

// Serves reports whether the pool allocates addresses at present.
func (p *PoolState) Serves() bool {
	return p.Pool.Serves() && p.Rebuilding == "" && (p.Whole == nil || p.Whole.Rebuilding == "")
}

// Choice is an address and the pool that serves it.
type Choice struct {
	Pool *PoolState
	Addr netip.Addr
	Slot int
}

// segment is a range of addresses that one pool serves.
type segment struct {
	netipx.IPRange
	// Base is the number of the first address in the pool's free set.
	Base uint64
	Pool *PoolState
}

// assign gives a pool all its addresses but those that it loses to others.
func (p *PoolState) assign() {
	served := p.Plan.Usable
	for _, o := range p.Overlaps {
		if o.Winner != p {
			served = ipaddr.Subtract(served, o.Shared)
		}
	}
	p.Segments = nil
	var n uint64
	number := func(s *netipx.IPSet) {
		for _, r := range s.Ranges() {
			p.Segments = append(p.Segments, segment{IPRange: r, Base: n, Pool: p})
			n = ipaddr.AddSaturated(n, ipaddr.Size(r))
		}
	}
	grows := p.Withheld != nil && !p.Carving
	if !grows {
		number(served)
	} else {
		number(ipaddr.Subtract(served, p.Withheld))
	}
	p.Set, p.Cooldowns, p.N = freeset.New(n), newCooldowns(n), n
	if grows { // what is withheld has numbers behind those of the free set
		number(ipaddr.Intersect(served, p.Withheld))
	}
	p.Later = n - p.Set.Len()
}

// Free returns how many addresses of the pool are free.
func (p *PoolState) Free() uint64 {
	if p.Whole == nil {
		return p.Set.Free()
	}
	return p.Whole.Set.FreeIn(p.From, p.N)
}

// HasFree reports whether any address of the pool is free.
func (p *PoolState) HasFree() bool {
	_, ok := p.Home().Set.NextIn(p.From, p.N, 0)
	return ok
}

// cooling returns how many addresses of the pool would be free but for the cooldown.
func (p *PoolState) cooling() uint64 {
	if p.Whole == nil {
		return p.Cooldowns.Set.Used()
	}
	return p.N - p.Whole.Cooldowns.Set.FreeIn(p.From, p.N)
}

// address returns the address of a number that the pool has.
func (p *PoolState) address(i uint64) netip.Addr {
	at, exact := slices.BinarySearchFunc(p.Segments, i, func(s segment, i uint64) int { return cmp.Compare(s.Base, i) })
	if !exact {
		at--
	}
	return ipaddr.Advance(p.Segments[at].From(), i-p.Segments[at].Base)
}

// Among reports whether a pool serves any of some addresses.
func (p *PoolState) Among(some *netipx.IPSet) bool {
	return slices.ContainsFunc(p.Segments, func(s segment) bool { return some.OverlapsRange(s.IPRange) })
}

// FirstAfter returns the first free address of a pool at or after a number, going round at the end, that is promised to
// nobody.
func (p *PoolState) FirstAfter(start uint64, w ipam.PickRequest) (a netip.Addr, ok bool) {
	set := p.Home().Set
	i, ok := set.NextIn(p.From, p.N, start)
	if !ok {
		return a, false
	}
	for first := i; ; {
		if a = p.address(i); !w.IsPromised(a) {
			return a, true
		}
		if i, _ = set.NextIn(p.From, p.N, i+1-p.From); i == first {
			return a, false
		}
	}
}

// FirstAmong returns the first free address of a pool that is one of some, and not chosen already: sets may overlap.
func (p *PoolState) FirstAmong(some *netipx.IPSet, w ipam.PickRequest, chosen []Choice) (a netip.Addr, ok bool) {
	for _, r := range some.Ranges() {
		for _, s := range p.Segments {
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
			first, last := s.Base+ipaddr.Distance(s.From(), from), s.Base+ipaddr.Distance(s.From(), to)
			set := p.Home().Set
			for i := set.After(first); i <= last && i < set.Len(); i = set.After(i + 1) {
				a := p.address(i)
				if !w.IsPromised(a) && !slices.ContainsFunc(chosen, func(c Choice) bool { return c.Addr == a }) {
					return a, true
				}
			}
		}
	}
	return a, false
}

// Lists reports whether the requester's host may draw from the pool. Ahead of all pods any host may be theirs, where
// the pool has one or was named. An object is on no host, and draws only from what it names.
func (p *PoolState) Lists(w ipam.PickRequest) bool {
	switch {
	case w.Ahead && w.Owner != "":
		return w.NameOf(p.Pool) >= 0
	case w.Ahead:
		return len(w.Pools) > 0 || len(w.Sets) > 0 || !p.NoHosts()
	}
	return p.Draws(w.Host) || w.ByHand()
}

// Stop returns what keeps a pool from allocating addresses.
func (p *PoolState) Stop() explain.Stop {
	switch {
	case p.Serves():
		return explain.Stop{}
	case !p.Valid():
		return explain.Stop{Cause: explain.NotUsable, Detail: p.Problem}
	case p.Terminating:
		return explain.Stop{Cause: explain.Terminating}
	case p.Whole != nil && p.Cordoned && !p.Given.Cordoned:
		return explain.Stop{Cause: explain.ByParent, Detail: explain.Stop{Cause: explain.Cordoned}.OfParent(p.Parent)}
	case p.Cordoned:
		return explain.Stop{Cause: explain.Cordoned}
	case p.ByParent != explain.Serves:
		return explain.Stop{Cause: explain.ByParent, Detail: explain.Stop{Cause: p.ByParent}.OfParent(p.Parent)}
	case p.Carving && p.Home().Split != nil:
		return explain.Stop{Cause: explain.Splitting, Detail: p.Home().Name}
	case p.Carving:
		return explain.Stop{Cause: explain.Carving, Detail: p.Parent}
	default:
		return explain.Stop{Cause: explain.Rebuilding, Detail: cmp.Or(p.Rebuilding, p.Home().Rebuilding)}
	}
}

// Stopped returns the reason of a refusal by a pool that allocates nothing.
func (p *PoolState) Stopped() ipam.Reason {
	if p.Pool.Serves() {
		return ipam.ReasonPoolRebuilding
	}
	return ipam.ReasonPoolCordoned
}

// Withholds reports whether an address of the pool was not handed over to it yet. One of which nothing was handed over
// does not serve at all.
func (p *PoolState) Withholds(a netip.Addr) bool {
	return p.Withheld != nil && !p.Carving && p.Withheld.Contains(a)
}

// LosesAddresses reports whether another pool serves addresses that this one has, too.
func (p *PoolState) LosesAddresses() bool {
	for _, o := range p.Overlaps {
		if o.Winner != p {
			return true
		}
	}
	return false
}

// ServedByOthers counts the addresses of a pool that other pools, which have them too, serve.
func (p *PoolState) ServedByOthers() map[string]uint64 {
	if !p.LosesAddresses() {
		return nil
	}
	to := map[string]uint64{}
	for other, o := range p.Overlaps {
		if o.Winner != p {
			to[other] = ipaddr.SizeOfSet(o.Shared)
		}
	}
	return to
}

// PoolNames names pools, in their order.
func PoolNames(pools []*PoolState) (names []string) {
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names
}
