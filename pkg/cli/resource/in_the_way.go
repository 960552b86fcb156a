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

// InTheWay sorts the addresses that a command would take from a pool, host or claim by their state. All such commands
// describe them in the same words.
type InTheWay struct {
	// InUse addresses have a holder. Kept ones are kept by claims, SetAside ones reserved by hand or quarantined.
	InUse, Kept, SetAside []lease.Lease
}

// SortOut sorts addresses. It omits free ones.
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

// Holders names the first few holders with their addresses and hosts, and counts the others.
func (w InTheWay) Holders() string { return humanize.List(HeldBy(w.InUse)) }

// Keepers counts the kept addresses by claim: "2 for shop/sts-db".
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

// Reserved returns the SetAside addresses as ranges.
func (w InTheWay) Reserved() string {
	var addrs []netip.Addr
	for _, l := range w.SetAside {
		addrs = append(addrs, l.Addr)
	}
	return Spell(ipaddr.SetOfAddrs(addrs...))
}
