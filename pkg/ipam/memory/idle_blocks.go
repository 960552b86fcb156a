package memory

import (
	"cmp"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// IdleBlocks returns the blocks that nothing is in, as Pools.IdleBlocks says.
func (x *State) IdleBlocks() (idle []ipam.IdleBlock) {
	for _, p := range x.Pools.Roots {
		if p.Split == nil || p.Rebuilding != "" {
			continue
		}
		x.ExpireCooldowns(p)
		for number, b := range p.Split.All() {
			if len(p.Split.HeldIn(number)) == 0 && x.isIdle(b, p) {
				idle = append(idle, x.idleBlock(b, p))
			}
		}
		for name, given := range x.Pools.Children[p.Name] {
			b := x.Pools.Roots[name]
			if b != nil && block.IsName(name, p.Name, given.Plan.CIDR) && len(given.Namespaces) == 1 &&
				x.isIdle(b, p) && !x.Missing.AnyOf(name) {
				idle = append(idle, x.idleBlock(b, p))
			}
		}
	}
	slices.SortFunc(idle, func(a, b ipam.IdleBlock) int { return cmp.Compare(a.Block, b.Block) })
	return idle
}

// isIdle reports whether no lease that names a block keeps it. What was set aside by hand, and what cools, goes with
// the parent.
func (x *State) isIdle(b, parent *PoolState) bool {
	m := x.Members.ByPool[b.Name]
	switch {
	case b.Given.Terminating || b.Rebuilding != "":
		return false
	case m != nil && m.Active+m.Retained > 0:
		return false
	}
	return parent.Terminating || (m == nil || m.Reserved == 0) && b.cooling() == 0
}

func (x *State) idleBlock(b, parent *PoolState) ipam.IdleBlock {
	ns := b.Given.Owner()
	_, lives := x.Pools.Namespaces.Labels[ns]
	i := ipam.IdleBlock{
		Block: b.Name, Namespace: ns, Parent: parent.Name, Created: b.Created, Abandoned: !lives || parent.Terminating,
		ParentGoes: parent.Terminating, After: parent.ReclaimAfter,
	}
	if m := x.Members.ByPool[b.Name]; m != nil {
		for r := range m.Records {
			if t := ledger.FromNanos(r.Updated); t.After(i.Used) {
				i.Used = t
			}
		}
	}
	for _, o := range parent.Split.Owns(ns) {
		if o != b && !o.Given.Terminating {
			i.Others = append(i.Others, o.Name)
		}
	}
	return i
}
