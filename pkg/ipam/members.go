package ipam

import (
	"iter"

	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// membersOf returns the members of a pool, and those of its blocks.
func (x *state) membersOf(p *poolState) iter.Seq[*ledger.Members] {
	return func(yield func(*ledger.Members) bool) {
		if m := x.members.ByPool[p.Name]; m != nil && !yield(m) || p.split == nil {
			return
		}
		for _, b := range p.split.All() {
			if m := x.members.ByPool[b.Name]; m != nil && !yield(m) {
				return
			}
		}
	}
}
