package address

import (
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// claimLines say which claim an address belongs to, for which of its pods, and how long it is kept.
func (a addressView) claimLines(line func(label, format string, args ...any)) {
	if a.Claim != "" {
		text := a.Claim
		if a.claim != nil {
			text += ", of " + resource.OwnerText(a.claim)
		} else {
			text += ", which does not exist"
		}
		line("Claim", "%s", text)
	}
	if a.PodPrimaryKey != "" {
		line("Kept for", "%s", a.PodPrimaryKey)
	}
	if a.claim != nil {
		line("Policy", "%s", resource.ClaimPolicyText(a.claim))
	}
	if a.ExpiredTime != "" {
		line("Until", "%s", resource.UntilText(a.ExpiredTime))
	}
	if a.IsRetained() && a.PodName != "" {
		line("Last pod", "%s", resource.PodText(a.Lease))
	}
}
