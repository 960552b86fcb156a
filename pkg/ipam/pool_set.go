package ipam

import (
	"maps"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/freeset"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// setPool makes a pool known, or takes its changes: as a block of its parent, or as a pool with addresses of its own.
func (x *state) setPool(p Pool) {
	was := ""
	if old := x.pools.byName[p.Name]; old != nil && old.given.Parent != p.Parent {
		was = old.given.Parent
		x.disown(old.given)
	}
	if p.Parent != "" {
		if x.pools.children[p.Parent] == nil {
			x.pools.children[p.Parent] = map[string]Pool{}
		}
		x.pools.children[p.Parent][p.Name] = p
	}
	if parent, number, _ := x.pools.blockOf(p); parent != nil {
		x.setBlock(p, parent, number)
		return
	}
	s := x.root(p.Name)
	s.given = p
	changed := x.place(x.pools.arrange(s, was))
	x.serve(changed)
	x.adopt(s, slices.Contains(changed, s))
}

// root returns the state of a pool that is no block, a new one where there is none.
func (x *state) root(name string) *poolState {
	if s := x.pools.roots[name]; s != nil {
		return s
	}
	if block := x.pools.byName[name]; block != nil {
		x.forget(block)
	}
	s := &poolState{set: freeset.New(0), cooldowns: newCooldowns(0), overlaps: map[string]*overlap{}, hosts: uncounted}
	x.pools.byName[name], x.pools.roots[name] = s, s
	return s
}

// divided returns the blocks of a pool that has a block size: those of the zero grid where it has none, or a Problem,
// which it gets where it cannot be split so.
func (p Pool) divided() (Pool, block.Grid) {
	if p.BlockSize == 0 || !p.Valid() {
		return p, block.Grid{}
	}
	g, err := block.NewGrid(p.Plan.Usable, p.Plan.Subnet, p.BlockSize)
	if err == nil {
		err = block.CheckNames(p.Name, p.Plan.Subnet, p.BlockSize)
	}
	if err != nil {
		p.Problem = err.Error()
		p.dropAddresses()
		return p, block.Grid{}
	}
	return p, g
}

// divide makes a pool a split one that has blocks, and undoes that where it has none any more. What are blocks of it no
// longer are pools with a problem from then on.
func (x *state) divide(p *poolState, g block.Grid) {
	if p.split != nil && p.split.Grid == g {
		return
	}
	if p.split != nil {
		for _, b := range p.split.All() {
			x.forgetBlock(b)
		}
		x.pools.splits-- // until then its leases count for it
		p.split = nil
	}
	if g.Bits > 0 {
		x.pools.splits++
		p.split, p.ofBlocks = block.NewSplit[*poolState](g), ledger.Tally{}
	}
}

// adopt brings the blocks of a pool up to date with it, and looks once more at what names it as its parent. Two pools
// that name each other are no blocks before and after.
func (x *state) adopt(p *poolState, replanned bool) {
	for _, name := range slices.Collect(maps.Keys(x.pools.children[p.Name])) {
		b, child := x.pools.byName[name], x.pools.children[p.Name][name]
		if b != nil && b.parent == p {
			if b.through(); replanned {
				x.findDraining(name)
			}
			continue
		}
		if parent, _, problem := x.pools.blockOf(child); b == nil || parent != nil || p.BlockSize > 0 &&
			problem != b.Problem {
			x.setPool(child)
		}
	}
}

// disown forgets that a pool names its parent.
func (x *state) disown(child Pool) {
	if delete(x.pools.children[child.Parent], child.Name); len(x.pools.children[child.Parent]) == 0 {
		delete(x.pools.children, child.Parent)
	}
}

// forget drops a pool. Blocks that it had are pools with a problem from then on.
func (x *state) forget(p *poolState) {
	if p.parent != nil {
		x.forgetBlock(p)
		x.countBlock(p, -1)
		return
	}
	x.pools.unlist(p)
	if p.split != nil {
		x.divide(p, block.Grid{})
	}
	p.Plan.Usable, p.usable = &netipx.IPSet{}, nil
	delete(x.pools.byName, p.Name)
	delete(x.pools.roots, p.Name)
	x.serve(append(x.place(x.pools.arrange(p, "")), p))
	for _, name := range slices.Collect(maps.Keys(x.pools.children[p.Name])) {
		if child := x.pools.children[p.Name][name]; child.Name != p.Name {
			x.setPool(child)
		}
	}
}
