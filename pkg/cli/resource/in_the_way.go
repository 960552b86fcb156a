package resource

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
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
	parts := app.Map(slices.Sorted(maps.Keys(by)),
		func(name string) string { return fmt.Sprintf("%d for %s", by[name], name) })
	return humanize.List(parts)
}

// Reserved returns the SetAside addresses as ranges.
func (w InTheWay) Reserved() string {
	addrs := app.Map(w.SetAside, func(l lease.Lease) netip.Addr { return l.Addr })
	return Spell(ipaddr.SetOfAddrs(addrs...))
}

// Retained selects the addresses that claims keep and no pod has.
func Retained() LeaseQuery {
	return LeaseQuery{Status: lease.Reserved.String(), Selectors: Selectors{Fields: "status.claim!="}}
}

// SetAside selects the addresses that were reserved by hand or are quarantined.
func SetAside() LeaseQuery {
	return LeaseQuery{Status: lease.Reserved.String(), Selectors: Selectors{Fields: "status.claim="}}
}

// RetainedText names the claim, and the primary key, for which an address is kept.
func RetainedText(l lease.Lease) string {
	text := "claim " + l.Claim + " keeps it"
	if l.PodPrimaryKey != "" {
		text += " for " + l.PodPrimaryKey
	}
	return text
}

// ClaimHolder names the claim that keeps an address; empty if none does.
func ClaimHolder(l lease.Lease) string {
	if !l.IsRetained() {
		return ""
	}
	return "claim " + l.Claim
}

// RetainedByClaim returns the error for reserving or unreserving an address that a claim keeps.
func RetainedByClaim(l lease.Lease) *app.Failure {
	return app.Refuse(app.ReasonAddressKept, "address %s of pool %s is not a reservation: %s", l.Addr, l.Pool,
		RetainedText(l)).
		WithHint("to return it to its pool: bcsnetctl ip release %s", l.Addr)
}

// StayRetained counts the released addresses that claims keep; empty if there are none.
func StayRetained(released []lease.Lease) string {
	n := 0
	for _, l := range released {
		if l.KeptOnRelease() {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", of which %d %s reserved for %s", n, humanize.OneOr(n, "stays", "stay"),
		humanize.OneOr(n, "its claim", "their claims"))
}
