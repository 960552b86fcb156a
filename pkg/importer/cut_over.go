package importer

import (
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// CutOver has what is decided from, during a cut-over of a node and on the way back. Both systems allocate addresses
// meanwhile; an address is ours only if the other one has withdrawn it.
type CutOver struct {
	Rows
	Seen

	// Before is what was withdrawn before the wait; nil if there was none. What was not, or may have gone back in
	// between, does not settle.
	Before *Seen

	// Node is the node whose pods' addresses move; empty for all nodes, on the way back.
	Node string
	// Stock is the number of free addresses that each pool here is to have.
	Stock uint64
	// InUse reports whether an address can be withdrawn that a pod has; ByName whether any pod of a name gets the
	// address there that an earlier one of the name had.
	InUse, ByName bool
	// Here are the pools here by name; Index has the leases.
	Here  map[string]*v1.BCSNetPool
	Index *index.Index
	Pods  []workload.Pod
}

// Seen is what the other system had withdrawn at a time.
type Seen struct {
	// Withdrawn has the withdrawn addresses of each pool. A pool that no object there speaks for is missing. Torn has
	// those that some objects withdraw and others do not: a run was killed between them.
	Withdrawn, Torn map[string]*netipx.IPSet
	// By names the objects that speak for each pool, with their generations.
	By map[string]string
}

// settles returns the addresses of a pool that were withdrawn for as long as the wait took.
func (c CutOver) settles(pool string) *netipx.IPSet {
	switch {
	case c.Before == nil:
		return c.Withdrawn[pool]
	case c.Before.Withdrawn[pool] == nil || c.Before.By[pool] != c.By[pool]:
		return ipaddr.SetOf()
	}
	return ipaddr.Intersect(c.Before.Withdrawn[pool], c.Withdrawn[pool])
}

// Share is a pool that both systems have, each with its own addresses.
type Share struct {
	// Pool is the pool as the other system has it; Made reports whether there is one here.
	Pool *v1.BCSNetPool
	Made bool
	// Moved and Taken are to be withdrawn: what pods of the node have, and free addresses.
	Moved, Taken *netipx.IPSet
	// Settled are withdrawn and belong into the pool here. Back were given to another pod before the withdrawal was
	// known everywhere: the other system gets them back.
	Settled, Back *netipx.IPSet
	// Torn are to go back: some objects withdraw them, and others do not.
	Torn *netipx.IPSet
	// Stay are addresses of pods of the node that cannot be withdrawn before the pods end; Named are those of pods
	// whose names come again, for which the other system keeps them.
	Stay, Named *netipx.IPSet
	// Hold are to be reserved here: they are free here, and the other system still has each for the holder of For. Lift
	// are reserved for that, and it has them no more.
	Hold, Lift []lease.Lease
	For        []string
	// Left is the number of free addresses that the other system keeps.
	Left uint64
}

// Pending reports whether something waits for the second look.
func (s Share) Pending() bool { return !empty(s.Settled) || !empty(s.Back) || len(s.Lift) > 0 }

// Withdraws reports whether the other system is to withdraw something, or to give it back.
func (s Share) Withdraws() bool { return !empty(s.Moved) || !empty(s.Taken) || !empty(s.Torn) }

func empty(s *netipx.IPSet) bool { return s == nil || len(s.Ranges()) == 0 }

// Union returns the addresses of some sets.
func Union(sets ...*netipx.IPSet) *netipx.IPSet {
	var all []netipx.IPRange
	for _, s := range sets {
		if s != nil {
			all = append(all, s.Ranges()...)
		}
	}
	return ipaddr.SetOf(all...)
}

// Shares decides what is done next for each pool. Pools of which an address could have two owners are left alone, and
// the remarks say why. That is every pool if an object of the other system cannot be read: it may have any address.
func (c CutOver) Shares() (all []Share, wrong []Remark) {
	if len(c.Conflicts) > 0 {
		return nil, c.Conflicts
	}
	s := newSight(c)
	for i := range c.Pools {
		p := &c.Pools[i]
		if cause := s.wrong(p); cause != "" {
			wrong = append(wrong, Remark{PoolObject(p.Name), cause})
			continue
		}
		all = append(all, s.share(p))
	}
	return all, wrong
}

// share decides for one pool.
func (s *sight) share(p *v1.BCSNetPool) Share {
	_, made := s.Here[p.Name]
	withdrawn, usable := s.Withdrawn[p.Name], s.usable(p)
	free := ipaddr.Subtract(usable, withdrawn, s.taken)
	out := Share{Pool: p, Made: made}
	var settled, back []netip.Addr
	stock, ours, settles := uint64(0), s.ours(p.Name), s.settles(p.Name)
	for a := range ipaddr.All(withdrawn) {
		late := !settles.Contains(a)
		l, _ := s.Index.Leases.Get(a)
		pending, free := !ours.Contains(a), !s.taken.Contains(a)
		row, there := s.holders[a]
		held := stillThere(s.System, l)
		switch {
		case !pending && there && l.State == lease.Available: // a pod of that name would get it there
			out.Hold, out.For = append(out.Hold, l), append(out.For, row.holder())
		case !pending && held && !there && !late:
			out.Lift = append(out.Lift, l)
		case !pending:
			if GivenBack(s.System, l) && !late && (!there || s.mine[a]) { // the way back broke off
				settled = append(settled, a)
			}
		case late: // the next run waits for it
		case s.mine[a] || free || l.State == lease.Active:
			settled = append(settled, a)
		default:
			back = append(back, a)
		}
		if free && (l.State == lease.Available || GivenBack(s.System, l) || held) {
			stock++
		}
	}
	out.Settled, out.Back = ipaddr.SetOfAddrs(settled...), ipaddr.SetOfAddrs(back...)
	mine := slices.Collect(maps.Keys(s.mine))
	out.Moved = ipaddr.Subtract(ipaddr.Intersect(ipaddr.SetOfAddrs(mine...), usable), withdrawn)
	out.Stay = ipaddr.SetOf()
	if !s.InUse {
		out.Moved, out.Stay = out.Stay, out.Moved
	}
	named := ipaddr.SetOfAddrs(slices.Collect(maps.Keys(s.named))...)
	out.Named = ipaddr.Subtract(ipaddr.Intersect(named, usable), withdrawn)
	out.Taken = last(free, max(s.Stock, stock)-stock)
	out.Torn = ipaddr.Subtract(Union(s.Torn[p.Name]), out.Moved, out.Taken)
	out.Left = ipaddr.SizeOfSet(free) - ipaddr.SizeOfSet(out.Taken)
	return out
}

// last returns the last n addresses of a set, or all if there are fewer: most systems begin at the first one.
func last(set *netipx.IPSet, n uint64) *netipx.IPSet {
	var out []netipx.IPRange
	ranges := set.Ranges()
	for i := len(ranges) - 1; i >= 0 && n > 0; i-- {
		r, size := ranges[i], ipaddr.Size(ranges[i])
		if size > n {
			r = netipx.IPRangeFrom(ipaddr.Advance(r.From(), size-n), r.To())
			size = n
		}
		out, n = append(out, r), n-size
	}
	return ipaddr.SetOf(out...)
}

// Leases returns the rows of the pods that bring their addresses with them. Plan them with pools that have Settled.
func (c CutOver) Leases(shares []Share) Rows {
	s, rows := newSight(c), Rows{System: c.System}
	for _, row := range c.Addresses {
		for _, share := range shares {
			if row.State == Held && s.mine[row.Addr] && share.Settled.Contains(row.Addr) {
				rows.Addresses = append(rows.Addresses, row)
			}
		}
	}
	return rows
}
