package ipam

import (
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
)

// drawn returns what a namespace draws from where it may draw from some pools: the pools themselves, but in place of
// one that is split, the namespace's blocks and then the pool, which stands for a block that could be made. The pool
// hands out nothing itself. Blocks in a given order stand in the place of the first pool that is split: those of all
// pools, whether they are among these or not.
func (x *catalogue) drawn(pools iter.Seq[*poolState], namespace string) iter.Seq[*poolState] {
	return func(yield func(*poolState) bool) {
		ordered := x.ordered[namespace]
		for p := range pools {
			if p.split != nil {
				for _, b := range ordered {
					if !yield(b) {
						return
					}
				}
				ordered = nil
				for _, b := range p.split.Owns(namespace) {
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

// canGive returns how many addresses a pool has for requests, taken or not: a pool that is split into blocks those of
// the blocks that can be made.
func (p *poolState) canGive() uint64 {
	switch {
	case p.split == nil:
		return p.n
	case !p.AutoAssign:
		return 0
	}
	return p.n - p.split.OwnedAddresses()
}

// growing returns how many free addresses the blocks of a pool have that can be made for anybody.
func (p *poolState) growing() uint64 {
	if !p.AutoAssign {
		return 0
	}
	blocks, h := p.split.Open(), p.split.HostBits()
	if h >= 64 || blocks<<h>>h != blocks {
		return p.free()
	}
	return min(p.free(), blocks<<h)
}

// propose returns a block that could be made for a namespace, nil where it could not. It is known to nobody: who makes
// it, makes it known. A name that another pool has already is passed over.
func (x *catalogue) propose(p *poolState, number uint64, namespace string) *poolState {
	if namespace == "" || !p.split.Available(number, namespace) {
		return nil
	}
	cidr := p.split.Prefix(number)
	name := block.Name(p.Name, cidr)
	if x.byName[name] != nil {
		return nil
	}
	given := Pool{Name: name, Parent: p.Name, Namespaces: map[string]struct{}{namespace: {}}}
	given.Plan.CIDR = cidr
	b := p.newBlock(number, given)
	b.proposed = true
	return b
}

// fromNewBlock chooses an address of the first block that could be made for a request and has one for it.
func (x *picker) fromNewBlock(p *poolState, n need, w PickRequest, chosen []choice, start uint64) (choice, bool) {
	x.state.expireCooldowns(p)
	if !p.AutoAssign || !p.hasFree() || x.bounds.barred(p, w, netip.Addr{}, chosen) {
		return choice{}, false
	}
	for number := range p.split.Candidates(w.Namespace) {
		if n.among != nil && !n.among.OverlapsPrefix(p.split.Prefix(number)) {
			continue
		}
		b := x.state.pools.propose(p, number, w.Namespace)
		if b == nil || !b.hasFree() {
			continue
		}
		var a netip.Addr
		var ok bool
		if n.among != nil {
			a, ok = b.firstAmong(n.among, w, chosen)
		} else {
			a, ok = b.firstAfter(b.start(start), w)
		}
		if ok {
			return choice{b, a, n.slot}, true
		}
	}
	return choice{}, false
}

// Blocks counts the blocks of a pool; none for one that is not split.
func (x *Pools) Blocks(name string) block.Counts {
	x.core.mu.RLock()
	defer x.core.mu.RUnlock()
	if p := x.core.state.pools.byName[name]; p != nil && p.split != nil {
		return p.split.Counts()
	}
	return block.Counts{}
}

// proposeWith returns a block that could be made for the namespace of a request and has an address; nil where it could
// not.
func (x *picker) proposeWith(p *poolState, a netip.Addr, w PickRequest) *poolState {
	number, ok := p.split.NumberOf(a)
	if !ok || !p.AutoAssign {
		return nil
	}
	return x.state.pools.propose(p, number, w.Namespace)
}

// outsideBlocks refuses an address that is in no block of the namespace that asks for it.
func (p *poolState) outsideBlocks(a netip.Addr, w PickRequest) *Refusal {
	facts := explain.Facts{Kind: explain.AddressInNoBlock, Address: a, Pool: p.Name, Namespace: w.Namespace}
	if number, ok := p.split.NumberOf(a); ok {
		facts.Other = p.split.Prefix(number).String()
	}
	return RefuseFacts(ReasonNamespaceNotServed, facts)
}
