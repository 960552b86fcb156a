package memory

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// inOrder reports whether a block has a priority of its own: its namespace draws from such blocks first, by that, and
// from the others as their parents are drawn from.
func (p *PoolState) inOrder() bool { return p.Whole != nil && p.Given.Priority > 0 }

// insertedBlock returns blocks of a namespace, which are in the order in which it draws from them, with one more.
func insertedBlock(list []*PoolState, b *PoolState) []*PoolState {
	at, _ := slices.BinarySearchFunc(list, b, func(a, b *PoolState) int {
		return cmp.Or(cmp.Compare(b.Rank(), a.Rank()), cmp.Compare(a.Whole.Name, b.Whole.Name),
			a.Whole.Split.Compare(a, b))
	})
	return slices.Insert(list, at, b)
}

// Home returns the pool whose numbers the addresses of a pool have: the parent of a block, the pool itself for any
// other.
func (p *PoolState) Home() *PoolState {
	if p.Whole != nil {
		return p.Whole
	}
	return p
}

// cut gives a block the addresses that its parent serves of its range.
func (p *PoolState) cut() {
	p.Segments, p.From, p.N = p.Whole.inside(p.Whole.Split.Prefix(p.number)), 0, 0
	for i := range p.Segments {
		p.Segments[i].Pool = p
		p.N = ipaddr.AddSaturated(p.N, ipaddr.Size(p.Segments[i].IPRange))
	}
	if len(p.Segments) > 0 {
		p.From = p.Segments[0].Base
	}
	p.Revision = p.Whole.Revision
}

// through reads the parent of a block again.
func (p *PoolState) through() {
	r := netipx.RangeOfPrefix(p.Whole.Split.Prefix(p.number))
	all := p.Whole.UsableRanges
	at, _ := slices.BinarySearchFunc(all, r.From(), func(o netipx.IPRange,
		a netip.Addr) int {
		return o.To().Compare(a)
	})
	var parts []netipx.IPRange
	for _, o := range all[at:] {
		if r.To().Less(o.From()) {
			break
		}
		from, to := o.From(), o.To()
		if from.Less(r.From()) {
			from = r.From()
		}
		if r.To().Less(to) {
			to = r.To()
		}
		parts = append(parts, netipx.IPRangeFrom(from, to))
	}
	usable := p.Given.Plan.Usable
	if usable == nil || !slices.Equal(usable.Ranges(), parts) {
		usable = ipaddr.SetOf(parts...)
	}
	p.Pool, p.UsableRanges = p.Given.AsBlock(p.Whole.Pool, usable), parts
}

// readThrough brings the blocks of a pool, if it has any, up to date with it.
func (p *PoolState) readThrough() {
	if p.Split == nil {
		return
	}
	for _, b := range p.Split.All() {
		b.through()
	}
}

// newBlock makes a block of a pool for a namespace; it is known to nobody yet.
func (p *PoolState) newBlock(number uint64, given ipam.Pool) *PoolState {
	b := &PoolState{Given: given, Whole: p, number: number, HostCount: Uncounted}
	b.cut()
	b.through()
	return b
}

// blockOf finds the pool that a pool is a block of. If it is none although it names a parent, problem says why.
func (x *Catalogue) blockOf(p ipam.Pool) (parent *PoolState, number uint64, problem string) {
	parent = x.ByName[p.Parent]
	switch {
	case p.Parent == "", parent == nil, parent.Given.BlockSize == 0: // no block, but a group perhaps
		return nil, 0, ""
	case parent.Split == nil:
		return nil, 0, ipam.UnusableParent(p.Parent, parent.Problem)
	}
	if number, problem = ipam.BlockIn(parent.Split.Grid, parent.Pool, p); problem != "" {
		return nil, 0, problem
	}
	return parent, number, ""
}

// setBlock makes a block known, or takes its changes.
func (x *State) setBlock(p ipam.Pool, parent *PoolState, number uint64) {
	if old := x.Pools.ByName[p.Name]; old != nil {
		x.Forget(old)
	}
	b := parent.newBlock(number, p)
	b.Rebuilding = x.Pools.Rebuilding[p.Name]
	x.recount(p.Name, func() {
		x.Pools.ByName[p.Name] = b
		parent.Split.Enter(b)
		if ns := b.Owner(); len(parent.Split.Owns(ns)) == 1 {
			x.Pools.owning[ns] = append(x.Pools.owning[ns], parent)
		}
		if b.inOrder() {
			x.Pools.ordered[b.Owner()] = insertedBlock(x.Pools.ordered[b.Owner()], b)
		}
	})
	x.findDraining(p.Name)
	x.countBlock(b, +1)
}

// countBlock counts the leases of a block, of which some may have come before it, for its parent where that shares
// addresses with other pools.
func (x *State) countBlock(b *PoolState, by int) {
	if m := x.Members.ByPool[b.Name]; m != nil && len(b.Whole.Overlaps) > 0 {
		for r := range m.Records {
			if r.State != lease.Available {
				x.countOverlaps(b.Whole.Name, r.Addr, by)
			}
		}
		x.resolveOverlaps()
	}
}

// forgetBlock forgets a block. What it had is its parent's to give away again.
func (x *State) forgetBlock(b *PoolState) {
	parent := b.Whole
	x.recount(b.Name, func() {
		delete(x.Pools.ByName, b.Name)
		parent.Split.Leave(b)
		if ns := b.Owner(); len(parent.Split.Owns(ns)) == 0 {
			leave(x.Pools.owning, ns, parent)
		}
		if b.inOrder() {
			leave(x.Pools.ordered, b.Owner(), b)
		}
	})
}

// recount makes a change by which the leases that name a pool count for another one, as those of a block do for its
// parent.
func (x *State) recount(name string, change func()) {
	addrs := map[netip.Addr]struct{}{}
	m := x.Members.ByPool[name]
	if m != nil {
		for r := range m.Records {
			addrs[r.Addr] = struct{}{}
		}
	}
	for a, r := range x.Missing.Gone {
		if r.Params.Value().Pool == name {
			addrs[a] = struct{}{}
		}
	}
	adjust := func(by int) {
		for a := range addrs {
			r := x.Leases.Record(a)
			x.adjustCharges(a, r, by)
			for _, r := range []*ledger.Record{r, x.Missing.Gone[a]} {
				if r != nil {
					x.adjustUsage(r, by)
				}
			}
		}
		if p := x.Pools.ByName[name]; p != nil && p.Whole != nil && m != nil {
			p.Whole.OfBlocks.Add(m, by)
		}
	}
	adjust(-1)
	change()
	adjust(+1)
}

// CountedAs names the pool whose counts and bounds are those of the leases that name a pool.
func (x *Catalogue) CountedAs(name string) string {
	if x.splits == 0 { // as nearly always
		return name
	}
	if p := x.ByName[name]; p != nil && p.Whole != nil {
		return p.Whole.Name
	}
	return name
}

// adjustHeld counts an address for the block that it lies in.
func (x *State) adjustHeld(a netip.Addr, r *ledger.Record, by int) {
	if x.Pools.splits == 0 {
		return
	}
	p, _, ok := x.Pools.SegmentOf(a)
	if !ok || p.Split == nil {
		return
	}
	number, ok := p.Split.NumberOf(a)
	if !ok {
		return
	}
	all := x.tenants(a, r)
	for _, ns := range all.of[:all.n] {
		p.Split.Hold(number, ns, by)
	}
}

// tenants are the namespaces that have an address, or are being given it, each once; the empty string stands for an
// owner that is in none.
type tenants struct {
	n  int
	of [6]string
}

func (t *tenants) add(namespace string) {
	if !slices.Contains(t.of[:t.n], namespace) {
		t.of[t.n] = namespace
		t.n++
	}
}

// tenants returns those of an address. What an operator set aside nobody has.
func (x *State) tenants(a netip.Addr, r *ledger.Record) (all tenants) {
	for _, r := range [...]*ledger.Record{r, x.Missing.Gone[a]} {
		if r == nil || r.State == lease.Available {
			continue
		}
		if r.State == lease.Active {
			all.add(r.Namespace.Value())
		}
		if ns := lease.ClaimNamespace(r.Claim()); ns != "" {
			all.add(ns)
		}
	}
	if h, ok := x.Assumed.ByAddr[a]; ok {
		charged := h.Charged
		for _, ns := range charged {
			if ns != "" {
				all.add(ns)
			}
		}
		if charged == (lease.ChargedNamespaces{}) {
			all.add("")
		}
	}
	return all
}

// findHeld looks at all addresses that somebody has or is being given for the blocks of a pool.
func (x *State) findHeld(p *PoolState) {
	look := func(a netip.Addr, r *ledger.Record) {
		if at, _, ok := x.Pools.SegmentOf(a); ok && at == p {
			x.adjustHeld(a, r, +1)
		}
	}
	for r := range x.Leases.ByAddr.All() {
		look(r.Addr, r)
	}
	for a := range x.Missing.Gone {
		if x.Leases.Record(a) == nil {
			look(a, nil)
		}
	}
	for a := range x.Assumed.ByAddr {
		if _, lost := x.Missing.Gone[a]; !lost && x.Leases.Record(a) == nil {
			look(a, nil)
		}
	}
}
