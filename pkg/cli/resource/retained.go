package resource

import (
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Retained finds the addresses that claims keep and no pod has.
func Retained() LeaseQuery {
	return LeaseQuery{Status: lease.Reserved.String(), Selectors: Selectors{Fields: "status.claim!="}}
}

// SetAside finds the addresses that people set aside, and those that are quarantined.
func SetAside() LeaseQuery {
	return LeaseQuery{Status: lease.Reserved.String(), Selectors: Selectors{Fields: "status.claim="}}
}

// RetainedText describes for what an address is kept.
func RetainedText(l lease.Lease) string {
	text := "claim " + l.Claim + " keeps it"
	if l.PodPrimaryKey != "" {
		text += " for " + l.PodPrimaryKey
	}
	return text
}

// ClaimHolder returns who keeps a reserved address; empty for one that was set aside by hand.
func ClaimHolder(l lease.Lease) string {
	if !l.IsRetained() {
		return ""
	}
	return "claim " + l.Claim
}

// RetainedByClaim returns the error for an address that was to be set aside, or handed out again, although a claim
// keeps it.
func RetainedByClaim(l lease.Lease) *app.Failure {
	return app.Refuse(app.ReasonAddressKept, "address %s of pool %s is reserved, not by hand: %s", l.Addr, l.Pool,
		RetainedText(l)).
		WithHint("to give it back to its pool: bcsnetctl ip release %s", l.Addr)
}

// StayRetained formats how many of the addresses that were released from their holders stay with their claims; empty
// when none does.
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
