package ipam

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	// MaxReportsOfHost is for how many addresses the containers of one host may report conflicts in an hour.
	MaxReportsOfHost = 5
	// ProxyARPAddresses is the number of addresses that one MAC answers for in an hour that answers for every address.
	ProxyARPAddresses = 3
	// leastQuarantines are quarantined in an hour in a pool of any size; in a large one, a hundredth of it.
	leastQuarantines = 3
)

// Contested are leases with a report that somebody else answers for their addresses, in the order of these.
type Contested []lease.Lease

// By returns the addresses that a MAC answered for in the last hour.
func (c Contested) By(mac string, now time.Time) (all []netip.Addr) {
	for _, l := range c {
		if l.Conflict.Recent(now) && l.Conflict.MAC == mac {
			all = append(all, l.Addr)
		}
	}
	return all
}

// From returns the addresses that the containers of a host lost by their reports of the last hour.
func (c Contested) From(host netip.Addr, now time.Time) (all []netip.Addr) {
	for _, l := range c {
		if l.Conflict.Recent(now) && l.Conflict.Host == host && l.Conflict.Outcome != lease.ConflictKept {
			all = append(all, l.Addr)
		}
	}
	return all
}

// QuarantinedIn returns the addresses of a pool that were quarantined in the last hour.
func (c Contested) QuarantinedIn(pool string, now time.Time) (all []netip.Addr) {
	for _, l := range c {
		if l.Pool == pool && l.Conflict.Recent(now) && l.Conflict.Outcome == lease.ConflictQuarantined {
			all = append(all, l.Addr)
		}
	}
	return all
}

// Except returns those of other addresses.
func (c Contested) Except(a netip.Addr) (others Contested) {
	for _, l := range c {
		if l.Addr != a {
			others = append(others, l)
		}
	}
	return others
}

// MaxQuarantines returns how many addresses of a pool of the given size are quarantined in an hour: no more follow.
func MaxQuarantines(size uint64) int {
	return int(max(leastQuarantines, min(size, 1<<32)/100))
}

// Braked reports whether the report that a MAC answered for an address of a pool, whose size is given, is followed by
// no quarantine: the MAC answers for every address, or as many of the pool are quarantined as may be. The reports of
// other addresses are those of c.
func (c Contested) Braked(a netip.Addr, mac, pool string, size uint64, now time.Time) bool {
	c = c.Except(a)
	return len(c.By(mac, now)) >= ProxyARPAddresses-1 || len(c.QuarantinedIn(pool, now)) >= MaxQuarantines(size)
}
