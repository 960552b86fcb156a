package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// CountedAs names the pool whose counts and bounds are those of the pool: the parent of a block, the pool itself for
// any other.
func (p Pool) CountedAs() string {
	if p.Block {
		return p.Parent
	}
	return p.Name
}

// Owner returns the namespace that a block belongs to.
func (p Pool) Owner() string {
	for ns := range p.Namespaces {
		return ns
	}
	return ""
}

// asBlock returns a block with all that it takes from its parent: it has its range and its namespace alone.
func (p Pool) asBlock(parent Pool, usable *netipx.IPSet) Pool {
	b := parent
	b.Name, b.Created, b.Generation, b.Carved = p.Name, p.Created, p.Generation, p.Carved
	b.Parent, b.Block, b.BlockSize, b.AutoAssign, b.ReclaimAfter = parent.Name, true, 0, false, 0
	b.Namespaces, b.NamespaceSelector, b.NotDefault = p.Namespaces, nil, false
	b.Cordoned, b.Terminating = p.Cordoned || parent.Cordoned, p.Terminating || parent.Terminating
	b.Plan.CIDR, b.Plan.Usable, b.Plan.Ranged, b.Plan.Single = p.Plan.CIDR, usable, usable, &netipx.IPSet{}
	return b
}

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
	p.Pool, p.UsableRanges = p.Given.asBlock(p.Whole.Pool, usable), parts
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
func (p *PoolState) newBlock(number uint64, given Pool) *PoolState {
	b := &PoolState{Given: given, Whole: p, number: number, HostCount: Uncounted}
	b.cut()
	b.through()
	return b
}

// blockOf finds the pool that a pool is a block of. Where it is none although it names a parent, problem says why.
func (x *Catalogue) blockOf(p Pool) (parent *PoolState, number uint64, problem string) {
	parent = x.ByName[p.Parent]
	switch {
	case p.Parent == "", parent == nil, parent.Given.BlockSize == 0: // no block, but a group perhaps
		return nil, 0, ""
	case parent.Split == nil:
		return nil, 0, unusableParent(p.Parent, parent.Problem)
	}
	if number, problem = blockIn(parent.Split.Grid, parent.Pool, p); problem != "" {
		return nil, 0, problem
	}
	return parent, number, ""
}

// unusableParent returns the problem of a child whose parent cannot be used.
func unusableParent(name, why string) string {
	return fmt.Sprintf("its parent, pool %s, is not usable: %s", name, why)
}

// blockIn returns the number of the block that a child of a split pool is. Where it is none, problem says why.
func blockIn(g block.Grid, parent, p Pool) (number uint64, problem string) {
	must := func(format string, args ...any) (uint64, string) {
		return 0, fmt.Sprintf("it is no block of pool %s: ", parent.Name) + fmt.Sprintf(format, args...)
	}
	if p.Problem != "" {
		return 0, p.Problem
	}
	cidr := p.Plan.CIDR
	if cidr.Bits() != parent.BlockSize {
		return must("availableIPs of a block are one CIDR of length %d, its blockSize", parent.BlockSize)
	}
	number, ok := g.NumberOf(cidr.Addr())
	if name := block.Name(parent.Name, cidr); p.Name != name {
		return must("the block %s is called %s", cidr, name)
	}
	if !ok {
		return must("the pool has no address in %s", cidr)
	}
	if len(p.Namespaces) != 1 {
		return must("a block has one namespace, it has %d", len(p.Namespaces))
	}
	return number, ""
}

// strangers returns those of the children of a split pool that are no blocks of it, with the problem of each.
func strangers(parent Pool, children []Pool) (out []Pool) {
	parent, g := parent.divided()
	for _, c := range children {
		_, problem := blockIn(g, parent, c)
		if !parent.Valid() {
			problem = unusableParent(parent.Name, parent.Problem)
		}
		if problem != "" {
			out = append(out, c.misfit(problem))
		}
	}
	return out
}

// misfit returns a child that does not fit its parent: it has no addresses. What is wrong with its own spec comes
// first.
func (p Pool) misfit(problem string) Pool {
	if p.Valid() {
		p.Problem, p.BadParent = problem, true
	}
	p.DropAddresses()
	return p
}

// setBlock makes a block known, or takes its changes.
func (x *State) setBlock(p Pool, parent *PoolState, number uint64) {
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
