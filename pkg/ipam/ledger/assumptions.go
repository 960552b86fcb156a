package ledger

import (
	"net/netip"
	"slices"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Assumptions has the addresses that are assumed, each for one attachment.
type Assumptions struct {
	ByAddr map[netip.Addr]Assumed
	// Unknown counts those whose outcome is unknown.
	Unknown int
	// Coming are the addresses that are assumed for a host, by host and pool.
	Coming map[HostPool][]netip.Addr
}

// NewAssumptions returns a table in which nothing is assumed.
func NewAssumptions() Assumptions {
	return Assumptions{ByAddr: map[netip.Addr]Assumed{}, Coming: map[HostPool][]netip.Addr{}}
}

// Add enters an address that is assumed.
func (x *Assumptions) Add(a netip.Addr, h Assumed) {
	x.ByAddr[a] = h
	if h.Host.IsValid() {
		at := HostPool{h.Host, h.Pool}
		x.Coming[at] = append(x.Coming[at], a)
	}
}

// Remove takes out an address that was added.
func (x *Assumptions) Remove(a netip.Addr, h Assumed) {
	delete(x.ByAddr, a)
	at := HostPool{h.Host, h.Pool}
	if x.Coming[at] = slices.DeleteFunc(x.Coming[at],
		func(b netip.Addr) bool { return b == a }); len(x.Coming[at]) == 0 {
		delete(x.Coming, at)
	}
}

// Assumed is an address that is kept for one attachment while a write for it is in progress, or while the outcome of
// such a write is unknown. No other request gets the address meanwhile.
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
