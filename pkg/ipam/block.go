package ipam

import (
	"fmt"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
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

// AsBlock returns a block with all that it takes from its parent: only its range and its namespace are its own.
func (p Pool) AsBlock(parent Pool, usable *netipx.IPSet) Pool {
	b := parent
	b.Name, b.Created, b.Generation, b.Carved = p.Name, p.Created, p.Generation, p.Carved
	b.Parent, b.Block, b.BlockSize, b.AutoAssign, b.ReclaimAfter = parent.Name, true, 0, false, 0
	b.Namespaces, b.NamespaceSelector, b.NotDefault = p.Namespaces, nil, false
	b.Cordoned, b.Terminating = p.Cordoned || parent.Cordoned, p.Terminating || parent.Terminating
	b.Plan.CIDR, b.Plan.Usable, b.Plan.Ranged, b.Plan.Single = p.Plan.CIDR, usable, usable, &netipx.IPSet{}
	return b
}

// UnusableParent returns the problem of a child whose parent cannot be used.
func UnusableParent(name, why string) string {
	return fmt.Sprintf("its parent, pool %s, is not usable: %s", name, why)
}

// BlockIn returns the number of the block that a child of a split pool is. If it is none, problem says why.
func BlockIn(g block.Grid, parent, p Pool) (number uint64, problem string) {
	must := func(format string, args ...any) (uint64, string) {
		return 0, fmt.Sprintf("it is not a block of pool %s: ", parent.Name) + fmt.Sprintf(format, args...)
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

// strangers returns those of the children of a split pool that are not blocks of it, with the problem of each.
func strangers(parent Pool, children []Pool) (out []Pool) {
	parent, g := parent.Divided()
	for _, c := range children {
		_, problem := BlockIn(g, parent, c)
		if !parent.Valid() {
			problem = UnusableParent(parent.Name, parent.Problem)
		}
		if problem != "" {
			out = append(out, c.Misfit(problem))
		}
	}
	return out
}

// Misfit returns a child that does not fit its parent: it has no addresses. What is wrong with its own spec comes
// first.
func (p Pool) Misfit(problem string) Pool {
	if p.Valid() {
		p.Problem, p.BadParent = problem, true
	}
	p.DropAddresses()
	return p
}

// Divided returns the blocks of a pool that has a block size: those of the zero grid where it has none, or a Problem,
// which it gets where it cannot be split so.
func (p Pool) Divided() (Pool, block.Grid) {
	if p.BlockSize == 0 || !p.Valid() {
		return p, block.Grid{}
	}
	g, err := block.NewGrid(p.Plan.Usable, p.Plan.Subnet, p.BlockSize)
	if err == nil {
		err = block.CheckNames(p.Name, p.Plan.Subnet, p.BlockSize)
	}
	if err != nil {
		p.Problem = err.Error()
		p.DropAddresses()
		return p, block.Grid{}
	}
	return p, g
}

// SplitLate reports whether a pool has been split that allocated addresses itself before, and whose blocks nobody may
// have yet: a replica that has not heard of the split could give an address to another namespace than the one that is
// given its block. Once a pool was made with blocks, or no request can be under way that takes it for a whole one, its
// status says so (Carved). A pool that is changed before its first status waits once without need.
func (p Pool) SplitLate() bool { return p.BlockSize > 0 && p.Generation > 1 && p.Carved == nil }
