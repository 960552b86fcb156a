package cli

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// claimsOfLeases reads the claims that leases name, by namespace/name. One that is not there, or cannot be read, is left
// out: what the addresses say of it remains.
func claimsOfLeases(ctx context.Context, s *app.App, leases []ipam.Lease) map[string]*v1.BCSNetIPClaim {
	found := map[string]*v1.BCSNetIPClaim{}
	var api *resource.Claims
	for _, l := range leases {
		if _, known := found[l.Claim]; known || l.Claim == "" {
			continue
		}
		found[l.Claim] = nil
		if api == nil {
			var err error
			if api, err = resource.NewClaims(s); err != nil {
				return found
			}
		}
		c, err := findClaims(ctx, api, l.Claim)
		switch {
		case err == nil:
			found[l.Claim] = c.BCSNetIPClaim
		case !apierrors.IsNotFound(err):
			s.Say.Warn("claim %s cannot be read: %v", l.Claim, resource.Explain(s, err))
		}
	}
	return found
}

// findClaims reads the claim that an address names; the error is the API server's.
func findClaims(ctx context.Context, c *resource.Claims, name string) (resource.Claim, error) {
	namespace, name, _ := strings.Cut(name, "/")
	stored, err := c.API.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return resource.Claim{}, err
	}
	return resource.ReadClaim(stored)
}

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
		line("Policy", "%s", resource.PolicyText(a.claim.Spec.ReleasePolicy, a.claim.Spec.Keep, a.claim.Spec.Owner != nil))
	}
	if a.ExpiredTime != "" {
		line("Until", "%s", resource.UntilText(a.ExpiredTime))
	}
	if a.IsRetained() && a.PodName != "" {
		line("Last pod", "%s", podText(a.Lease))
	}
}
