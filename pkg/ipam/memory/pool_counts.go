package memory

import (
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// CountsOf counts a pool.
func (x *State) CountsOf(name string) (c ipam.PoolCounts) {
	if p := x.Pools.ByName[name]; p != nil {
		x.ExpireCooldowns(p)
		c.Served, c.Free = ipaddr.AddSaturated(p.N, p.Later), p.Free()
		c.Cooling, c.NextFree = p.cooling(), x.NextCooled(p)
	}
	all := x.TallyOf(name)
	c.Objects, c.Active, c.Reserved = all.Objects, all.Active, all.Reserved
	c.Capacity = ipaddr.AddSaturated(c.Served, uint64(x.heldElsewhere(name)))
	return c
}

// heldElsewhere counts the held addresses of a pool that it does not serve. There is none to look at unless it loses
// addresses to another, and all that it has only where it loses some to several: an address may be among those of
// each.
func (x *State) heldElsewhere(name string) (n int) {
	p, all := x.Pools.ByName[name], x.TallyOf(name)
	if p == nil || !p.Valid() {
		return all.Active + all.Reserved
	}
	lost := 0
	for _, o := range p.Overlaps {
		if o.Winner == p {
			continue
		}
		lost++
		n += o.heldBy(p)
	}
	if lost < 2 || n == 0 {
		return n + all.Draining
	}
	n = 0
	for m := range x.MembersOf(p) {
		for r := range m.Records {
			if r.State != lease.Available {
				if by, _, ok := x.Pools.SegmentOf(r.Addr); !ok || by != p {
					n++
				}
			}
		}
	}
	return n
}

// TallyOf counts the leases that name a pool, and those that name one of its blocks.
func (x *State) TallyOf(name string) (t ledger.Tally) {
	if m := x.Members.ByPool[name]; m != nil {
		t.Add(m, +1)
	}
	if p := x.Pools.ByName[name]; p != nil && p.Split != nil {
		b := p.OfBlocks
		t.Objects, t.Active, t.Reserved = t.Objects+b.Objects, t.Active+b.Active, t.Reserved+b.Reserved
		t.Retained, t.Draining = t.Retained+b.Retained, t.Draining+b.Draining
	}
	return t
}
