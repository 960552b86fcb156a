package memory

import (
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// NamedBy returns the members of a pool and of its blocks; of one that is not there, those that name it.
func (x *State) NamedBy(name string, p *PoolState) iter.Seq[*ledger.Members] {
	if p != nil {
		return x.MembersOf(p)
	}
	return func(yield func(*ledger.Members) bool) {
		if m := x.Members.ByPool[name]; m != nil {
			yield(m)
		}
	}
}

// Names reports whether a lease names a pool, or a block of it.
func (x *Catalogue) Names(r *ledger.Record, name string) bool {
	of := r.Params.Value().Pool
	return of == name || x.CountedAs(of) == name
}

// PerhapsTaken yields every address that may not be free, some of them more than once: nothing else can be.
func (x *State) PerhapsTaken() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for r := range x.Leases.ByAddr.All() {
			if !yield(r.Addr) {
				return
			}
		}
		for a := range x.Assumed.ByAddr {
			if !yield(a) {
				return
			}
		}
		for a := range x.Missing.Gone {
			if !yield(a) {
				return
			}
		}
		for a := range x.Nodes.Addresses() {
			if !yield(a) {
				return
			}
		}
	}
}
