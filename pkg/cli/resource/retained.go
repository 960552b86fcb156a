package resource

import (
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

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
