package memory

import (
	"maps"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/freeset"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// SetPool makes a pool known, or takes its changes: as a block of its parent, or as a pool with addresses of its own.
func (x *State) SetPool(p ipam.Pool) {
	was := ""
	if old := x.Pools.ByName[p.Name]; old != nil && old.Given.Parent != p.Parent {
		was = old.Given.Parent
		x.Pools.Disown(old.Given)
	}
	if p.Parent != "" {
		if x.Pools.Children[p.Parent] == nil {
			x.Pools.Children[p.Parent] = map[string]ipam.Pool{}
		}
		x.Pools.Children[p.Parent][p.Name] = p
	}
	if parent, number, _ := x.Pools.blockOf(p); parent != nil {
		x.setBlock(p, parent, number)
		return
	}
	s := x.root(p.Name)
	s.Given = p
	changed := x.place(x.Pools.arrange(s, was))
	x.serve(changed)
	x.adopt(s, slices.Contains(changed, s))
}

// root returns the state of a pool that is not a block, a new one where there is none.
func (x *State) root(name string) *PoolState {
	if s := x.Pools.Roots[name]; s != nil {
		return s
	}
	if block := x.Pools.ByName[name]; block != nil {
		x.Forget(block)
	}
	s := &PoolState{Set: freeset.New(0), Cooldowns: newCooldowns(0), Overlaps: map[string]*overlap{},
		HostCount: Uncounted}
	x.Pools.ByName[name], x.Pools.Roots[name] = s, s
	return s
}

// divide makes a pool a split one that has blocks, and undoes that where it has none any more. What are blocks of it no
// longer are pools with a problem from then on.
func (x *State) divide(p *PoolState, g block.Grid) {
	if p.Split != nil && p.Split.Grid == g {
		return
	}
	if p.Split != nil {
		for _, b := range p.Split.All() {
			x.forgetBlock(b)
		}
		x.Pools.splits-- // until then its leases count for it
		p.Split = nil
	}
	if g.Bits > 0 {
		x.Pools.splits++
		p.Split, p.OfBlocks = block.NewSplit[*PoolState](g), ledger.Tally{}
	}
}

// adopt brings the blocks of a pool up to date with it, and looks once more at what names it as its parent. Two pools
// that name each other are not blocks before and after.
func (x *State) adopt(p *PoolState, replanned bool) {
	for _, name := range slices.Collect(maps.Keys(x.Pools.Children[p.Name])) {
		b, child := x.Pools.ByName[name], x.Pools.Children[p.Name][name]
		if b != nil && b.Whole == p {
			if b.through(); replanned {
				x.findDraining(name)
			}
			continue
		}
		if parent, _, problem := x.Pools.blockOf(child); b == nil || parent != nil || p.BlockSize > 0 &&
			problem != b.Problem {
			x.SetPool(child)
		}
	}
}

// Disown forgets that a pool names its parent.
func (x *Catalogue) Disown(child ipam.Pool) {
	if delete(x.Children[child.Parent], child.Name); len(x.Children[child.Parent]) == 0 {
		delete(x.Children, child.Parent)
	}
}

// Forget drops a pool. Blocks that it had are pools with a problem from then on.
func (x *State) Forget(p *PoolState) {
	if p.Whole != nil {
		x.forgetBlock(p)
		x.countBlock(p, -1)
		return
	}
	x.Pools.unlist(p)
	if p.Split != nil {
		x.divide(p, block.Grid{})
	}
	p.Plan.Usable, p.UsableRanges = &netipx.IPSet{}, nil
	delete(x.Pools.ByName, p.Name)
	delete(x.Pools.Roots, p.Name)
	x.serve(append(x.place(x.Pools.arrange(p, "")), p))
	for _, name := range slices.Collect(maps.Keys(x.Pools.Children[p.Name])) {
		if child := x.Pools.Children[p.Name][name]; child.Name != p.Name {
			x.SetPool(child)
		}
	}
}
