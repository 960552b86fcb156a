package ipam

import (
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

// hostPoolOf returns where an address is in use; ok is false for one that nobody on a host has.
func hostPoolOf(r *record) (at hostPool, ok bool) {
	at = hostPool{r.host.Value(), r.params.Value().Pool}
	return at, r.state == lease.Active && at.host.IsValid()
}

// adjustUsage counts an address that is in use, or that is missing and was, where it is.
func (x *hostUsage) adjustUsage(r *record, by int) {
	at, ok := hostPoolOf(r)
	if !ok {
		return
	}
	if x.inUse[at] += by; x.inUse[at] == 0 {
		delete(x.inUse, at)
	}
}
