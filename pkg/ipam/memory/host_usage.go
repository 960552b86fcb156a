package memory

import (
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// Has reports whether an address is among those that adjustUsage counts at a place.
func (x *State) Has(at ledger.HostPool, a netip.Addr) bool {
	for _, r := range []*ledger.Record{x.Leases.Record(a), x.Missing.Gone[a]} {
		if r == nil {
			continue
		}
		for is := range x.Pools.hostPoolsOf(r) {
			if is == at {
				return true
			}
		}
	}
	return false
}

// hostPoolsOf yields the hosts on which an address is in use, with its pool: none, one, or two while a virtual machine
// migrates.
func (x *Catalogue) hostPoolsOf(r *ledger.Record) iter.Seq[ledger.HostPool] {
	return func(yield func(ledger.HostPool) bool) {
		if r.State != lease.Active {
			return
		}
		pool := x.CountedAs(r.Params.Value().Pool)
		for h := range r.EachHost() {
			if !yield(ledger.HostPool{Host: h, Pool: pool}) {
				return
			}
		}
	}
}

// adjustUsage counts an address that is in use, or is missing and was in use, for each of its hosts.
func (x *State) adjustUsage(r *ledger.Record, by int) {
	for at := range x.Pools.hostPoolsOf(r) {
		if x.Hosts.InUse[at] += by; x.Hosts.InUse[at] == 0 {
			delete(x.Hosts.InUse, at)
		}
	}
}
