package memory

import (
	"iter"

	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// MembersOf returns the members of a pool, and those of its blocks.
func (x *State) MembersOf(p *PoolState) iter.Seq[*ledger.Members] {
	return func(yield func(*ledger.Members) bool) {
		if m := x.Members.ByPool[p.Name]; m != nil && !yield(m) || p.Split == nil {
			return
		}
		for _, b := range p.Split.All() {
			if m := x.Members.ByPool[b.Name]; m != nil && !yield(m) {
				return
			}
		}
	}
}
