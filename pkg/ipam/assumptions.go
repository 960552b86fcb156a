package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// assumptions has the addresses that are assumed, each for one attachment, and counts those whose outcome is unknown.
type assumptions struct {
	byAddr  map[netip.Addr]Assumed
	unknown int
	// coming are the addresses that are assumed for a host, by host and pool.
	coming map[hostPool][]netip.Addr
}

// newAssumptions returns a table in which nothing is assumed.
func newAssumptions() assumptions {
	return assumptions{byAddr: map[netip.Addr]Assumed{}, coming: map[hostPool][]netip.Addr{}}
}

// add enters an address that is assumed.
func (x *assumptions) add(a netip.Addr, h Assumed) {
	x.byAddr[a] = h
	if h.Host.IsValid() {
		at := hostPool{h.Host, h.Pool}
		x.coming[at] = append(x.coming[at], a)
	}
}

// remove takes out an address that was added.
func (x *assumptions) remove(a netip.Addr, h Assumed) {
	delete(x.byAddr, a)
	at := hostPool{h.Host, h.Pool}
	if x.coming[at] = slices.DeleteFunc(x.coming[at],
		func(b netip.Addr) bool { return b == a }); len(x.coming[at]) == 0 {
		delete(x.coming, at)
	}
}

// Assumed is an address that is kept for one attachment while a write for it is under way, or while the outcome of
// such a write is unknown. Nobody else is given the address meanwhile.
type Assumed struct {
	// Key names the attachment.
	Key string
	// Host that the attachment is on, invalid for one on none, and the pool that the address is picked from.
	Host netip.Addr
	Pool string
	// Charged are the namespaces that the address counts for meanwhile.
	Charged lease.ChargedNamespaces
	// Unknown: the outcome of the write is unknown. Version is that of the object that it would replace, 0 for none.
	Unknown bool
	Version uint64
	Since   time.Time
}
