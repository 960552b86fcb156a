package view

import (
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// claimFacts adds the claim of an address, the pod for which it is kept, and until when.
func (a Address) claimFacts(f *Facts) {
	if a.Claim != "" {
		text := a.Claim
		if a.claim != nil {
			text += ", of " + resource.OwnerText(a.claim)
		} else {
			text += ", which does not exist"
		}
		f.add("Claim", "%s", text)
	}
	if a.PodPrimaryKey != "" {
		f.add("Kept for", "%s", a.PodPrimaryKey)
	}
	if a.claim != nil {
		f.add("Policy", "%s", resource.ClaimPolicyText(a.claim))
	}
	if a.ExpiredTime != "" {
		f.add("Until", "%s", resource.UntilText(a.ExpiredTime))
	}
	if a.IsRetained() && a.PodName != "" {
		f.add("Last pod", "%s", resource.PodText(a.Lease))
	}
}
