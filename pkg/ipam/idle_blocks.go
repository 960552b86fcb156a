package ipam

import (
	"cmp"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// IdleBlock is a block in which nobody has an address, none is reserved and none cools.
type IdleBlock struct {
	Block, Namespace, Parent string
	Created                  time.Time
	// Used is when an address of it was given up last; zero where none ever was.
	Used time.Time
	// Abandoned: its namespace is gone, or, with ParentGoes, its parent is being deleted.
	Abandoned, ParentGoes bool
	// After is how long it stays while its namespace lives; 0 for ever.
	After time.Duration
	// Others are the blocks of its namespace in the same parent that stay, in the order in which it draws from them.
	Others []string
}

// IdleBlocks returns the blocks that nothing is in at a time, by name. Those whose leases were lost are none of them:
// it is not known what is in them. What the parent has shrunk away from is still a block that goes back. It looks at
// all blocks.
func (x *Pools) IdleBlocks(now time.Time) (idle []IdleBlock) {
	x.core.mu.Lock()
	defer x.core.mu.Unlock()
	x.core.state.now = now.UnixNano()
	return x.core.state.idleBlocks()
}

// idleBlocks returns the blocks that nothing is in, as Pools.IdleBlocks says.
func (x *state) idleBlocks() (idle []IdleBlock) {
	for _, p := range x.pools.roots {
		if p.split == nil || p.rebuilding != "" {
			continue
		}
		x.expireCooldowns(p)
		for number, b := range p.split.All() {
			if len(p.split.HeldIn(number)) == 0 && x.isIdle(b, p) {
				idle = append(idle, x.idleBlock(b, p))
			}
		}
		for name, given := range x.pools.children[p.Name] {
			b := x.pools.roots[name]
			if b != nil && block.IsName(name, p.Name, given.Plan.CIDR) && len(given.Namespaces) == 1 &&
				x.isIdle(b, p) && !x.missing.AnyOf(name) {
				idle = append(idle, x.idleBlock(b, p))
			}
		}
	}
	slices.SortFunc(idle, func(a, b IdleBlock) int { return cmp.Compare(a.Block, b.Block) })
	return idle
}

// isIdle reports whether no lease that names a block keeps it. What was set aside by hand, and what cools, goes with
// the parent.
func (x *state) isIdle(b, parent *poolState) bool {
	m := x.members.ByPool[b.Name]
	switch {
	case b.given.Terminating || b.rebuilding != "":
		return false
	case m != nil && m.Active+m.Retained > 0:
		return false
	}
	return parent.Terminating || (m == nil || m.Reserved == 0) && b.cooling() == 0
}

func (x *state) idleBlock(b, parent *poolState) IdleBlock {
	ns := b.given.Owner()
	_, lives := x.pools.namespaces.labels[ns]
	i := IdleBlock{
		Block: b.Name, Namespace: ns, Parent: parent.Name, Created: b.Created, Abandoned: !lives || parent.Terminating,
		ParentGoes: parent.Terminating, After: parent.ReclaimAfter,
	}
	if m := x.members.ByPool[b.Name]; m != nil {
		for r := range m.Records {
			if t := ledger.FromNanos(r.Updated); t.After(i.Used) {
				i.Used = t
			}
		}
	}
	for _, o := range parent.split.Owns(ns) {
		if o != b && !o.given.Terminating {
			i.Others = append(i.Others, o.Name)
		}
	}
	return i
}
