package ipam

import (
	"cmp"
	"slices"
	"time"
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
// it is not known what is in them. It looks at all blocks.
func (x *poolView) IdleBlocks(now time.Time) (idle []IdleBlock) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = now.UnixNano()
	for _, p := range x.roots {
		if p.split == nil {
			continue
		}
		x.expireCooldowns(p)
		for number, b := range p.split.blocks {
			if b.given.Terminating || b.rebuilding != "" || p.rebuilding != "" || len(p.split.held[number]) > 0 {
				continue
			}
			// What was set aside by hand, and what cools, goes with the parent.
			if m := x.byPool[b.Name]; !p.Terminating && (m != nil && m.reserved > 0 || b.cooling() > 0) {
				continue
			}
			idle = append(idle, x.idleBlock(b))
		}
	}
	slices.SortFunc(idle, func(a, b IdleBlock) int { return cmp.Compare(a.Block, b.Block) })
	return idle
}

func (x *state) idleBlock(b *poolState) IdleBlock {
	ns := b.Owner()
	_, lives := x.labels[ns]
	i := IdleBlock{
		Block: b.Name, Namespace: ns, Parent: b.Parent, Created: b.Created, Abandoned: !lives || b.parent.Terminating,
		ParentGoes: b.parent.Terminating,
		After:      b.parent.ReclaimAfter,
	}
	if m := x.byPool[b.Name]; m != nil {
		for r := range m.records {
			if t := fromNanos(r.updated); t.After(i.Used) {
				i.Used = t
			}
		}
	}
	for _, o := range b.parent.split.of[ns] {
		if o != b && !o.given.Terminating {
			i.Others = append(i.Others, o.Name)
		}
	}
	return i
}
