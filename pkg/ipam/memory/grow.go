package memory

import (
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// drawn returns what a namespace draws from where it may draw from some pools: the pools themselves, but in place of
// one that is split, the namespace's blocks and then the pool, which stands for a block that could be made. The pool
// allocates nothing itself. Blocks in a given order stand in the place of the first pool that is split: those of all
// pools, whether they are among these or not.
func (x *Catalogue) drawn(pools iter.Seq[*PoolState], namespace string) iter.Seq[*PoolState] {
	return func(yield func(*PoolState) bool) {
		ordered := x.ordered[namespace]
		for p := range pools {
			if p.Split != nil {
				for _, b := range ordered {
					if !yield(b) {
						return
					}
				}
				ordered = nil
				for _, b := range p.Split.Owns(namespace) {
					if !b.inOrder() && !yield(b) {
						return
					}
				}
			}
			if !yield(p) {
				return
			}
		}
	}
}

// CanGive returns how many addresses a pool has for requests, taken or not: a pool that is split into blocks those of
// the blocks that can be made.
func (p *PoolState) CanGive() uint64 {
	switch {
	case p.Split == nil:
		return p.N
	case !p.AutoAssign:
		return 0
	}
	return p.N - p.Split.OwnedAddresses()
}

// Growing returns how many free addresses the blocks of a pool have that can be made for anybody.
func (p *PoolState) Growing() uint64 {
	if !p.AutoAssign {
		return 0
	}
	blocks, h := p.Split.Open(), p.Split.HostBits()
	if h >= 64 || blocks<<h>>h != blocks {
		return p.Free()
	}
	return min(p.Free(), blocks<<h)
}

// Propose returns a block that could be made for a namespace, nil if it could not. It is known to nobody: who makes
// it, makes it known. A name that another pool has already is passed over.
func (x *Catalogue) Propose(p *PoolState, number uint64, namespace string) *PoolState {
	if namespace == "" || !p.Split.Available(number, namespace) {
		return nil
	}
	cidr := p.Split.Prefix(number)
	name := block.Name(p.Name, cidr)
	if x.ByName[name] != nil {
		return nil
	}
	given := ipam.Pool{Name: name, Parent: p.Name, Namespaces: map[string]struct{}{namespace: {}}}
	given.Plan.CIDR = cidr
	b := p.newBlock(number, given)
	b.Proposed = true
	return b
}

// OutsideBlocks refuses an address that is in no block of the namespace that asks for it.
func (p *PoolState) OutsideBlocks(a netip.Addr, w ipam.PickRequest) *ipam.Refusal {
	facts := explain.Facts{Kind: explain.AddressInNoBlock, Address: a, Pool: p.Name, Namespace: w.Namespace}
	if number, ok := p.Split.NumberOf(a); ok {
		facts.Other = p.Split.Prefix(number).String()
	}
	return ipam.RefuseFacts(ipam.ReasonNamespaceNotServed, facts)
}
