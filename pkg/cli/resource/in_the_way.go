package resource

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// InTheWay sorts the addresses that a command takes from a pool, a host or a claim by what keeps them. All commands
// that take something away count and name them in these words.
type InTheWay struct {
	// InUse have a holder. Kept are for the next pods of claims, and SetAside were reserved by hand.
	InUse, Kept, SetAside []lease.Lease
}

// SortOut sorts addresses; those that are free are in nobody's way.
func SortOut(all []lease.Lease) (w InTheWay) {
	for _, l := range all {
		switch {
		case l.State == lease.Active:
			w.InUse = append(w.InUse, l)
		case l.IsRetained():
			w.Kept = append(w.Kept, l)
		case l.State == lease.Reserved:
			w.SetAside = append(w.SetAside, l)
		}
	}
	return w
}

// Holders names the first few who use addresses, with these and their hosts, and counts the others.
func (w InTheWay) Holders() string { return humanize.List(HeldBy(w.InUse)) }

// Keepers describes for which claims addresses are kept: "2 for shop/sts-db".
func (w InTheWay) Keepers() string {
	by := map[string]int{}
	for _, l := range w.Kept {
		by[l.Claim]++
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%d for %s", by[name], name))
	}
	return humanize.List(parts)
}

// Reserved writes the addresses that were set aside as ranges.
func (w InTheWay) Reserved() string {
	var addrs []netip.Addr
	for _, l := range w.SetAside {
		addrs = append(addrs, l.Addr)
	}
	return Spell(ipaddr.SetOfAddrs(addrs...))
}
