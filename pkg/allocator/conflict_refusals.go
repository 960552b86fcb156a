package allocator

import (
	"net/netip"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// kept refuses the report of a holder that keeps its address.
func (r ConflictReport) kept(l lease.Lease) *ipam.Refusal {
	why := "which " + l.Who() + " asked for by name"
	switch {
	case l.Other != nil:
		why = "which pods " + l.Other.Who() + " and " + l.Who() + " both have while their virtual machine migrates"
	case l.KeptOnRelease():
		why = "which claim " + l.Claim + " keeps for " + l.Who()
	}
	return ipam.Refuse(ipam.ReasonAddressConflict, "%s answers for address %s, %s", r.MAC, l.Addr, why).
		WithHint("mostly it is an earlier instance on a node that is cut off: find %s in the network, and stop it; "+
			"the address stays, and is tried again", r.MAC)
}

// tooManyReports refuses the report of a host whose containers have reported many conflicts in the last hour.
func tooManyReports(l lease.Lease, earlier []netip.Addr) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonTooManyConflicts,
		"host %s has reported conflicts of %d addresses within an hour (%s); the report of %s changes nothing", l.Host,
		len(earlier), ipaddr.FormatSet(ipaddr.SetOfAddrs(earlier...)), l.Addr).
		WithHint("bcsnetctl doctor --only proxy-arp,address-quarantined names who answers; it is tried again within %s",
			lease.ConflictWindow.Round(time.Minute))
}
