package memory

import (
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// A block exists while a namespace owns it. Its addresses are consecutive numbers of its parent's free set. So a block
// is created and deleted without a look at any other pool, and the counts of the parent include its blocks.

// blockSplit has the blocks of a pool that is split.
type blockSplit = block.Split[*PoolState]

// Number returns the number of a block among those of its parent.
func (p *PoolState) Number() uint64 { return p.number }

// Rank returns the priority that a block has itself.
func (p *PoolState) Rank() int32 { return p.Given.Priority }

// Size returns how many addresses a block has.
func (p *PoolState) Size() uint64 { return p.N }

// inside returns what a pool serves of the addresses of a block, with their numbers in the pool.
func (p *PoolState) inside(block netip.Prefix) (parts []segment) {
	r := netipx.RangeOfPrefix(block)
	at, _ := slices.BinarySearchFunc(p.Segments, r.From(), func(s segment,
		a netip.Addr) int {
		return s.To().Compare(a)
	})
	for _, s := range p.Segments[at:] {
		if r.To().Less(s.From()) {
			break
		}
		from, to := s.From(), s.To()
		if from.Less(r.From()) {
			from = r.From()
		}
		if r.To().Less(to) {
			to = r.To()
		}
		parts = append(parts, segment{
			IPRange: netipx.IPRangeFrom(from, to), Base: s.Base + ipaddr.Distance(s.From(), from), Pool: p,
		})
	}
	return parts
}

// EachRange yields the ranges that a pool serves in the order of their addresses, and the withheld ranges last.
func (p *PoolState) EachRange() iter.Seq[netipx.IPRange] {
	return func(yield func(netipx.IPRange) bool) {
		for _, s := range p.Segments {
			if !yield(s.IPRange) {
				return
			}
		}
	}
}

// resplit computes the blocks of a pool anew after it was worked out what it serves.
func (p *PoolState) resplit() {
	for _, b := range p.Split.All() {
		b.cut()
	}
	p.Split.Reset(p.EachRange())
}
