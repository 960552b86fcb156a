package ipam

import (
	"iter"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// hostUsage counts the addresses in use, and those missing that were, by host and pool; none that counts for nothing.
type hostUsage struct{ inUse map[hostPool]int }

// hostPool is a host, and a pool that it has addresses of.
type hostPool struct {
	host netip.Addr
	pool string
}

// hostPoolsOf yields where an address is in use: nowhere, on a host, or on two while a virtual machine migrates.
func (x *state) hostPoolsOf(r *record) iter.Seq[hostPool] {
	return func(yield func(hostPool) bool) {
		if r.state != lease.Active {
			return
		}
		pool := x.pools.countedAs(r.params.Value().Pool)
		for h := range r.hosts() {
			if !yield(hostPool{h, pool}) {
				return
			}
		}
	}
}

// adjustUsage counts an address that is in use, or that is missing and was, where it is.
func (x *state) adjustUsage(r *record, by int) {
	for at := range x.hostPoolsOf(r) {
		if x.hosts.inUse[at] += by; x.hosts.inUse[at] == 0 {
			delete(x.hosts.inUse, at)
		}
	}
}
