package follow

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// releasing returns what a deleted claim waits for.
func releasing(c resource.Claim) string {
	if c.DeletionTimestamp == nil {
		return waitsForSomebody
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1.ConditionReady && condition.Reason == v1.ReasonClaimReleasing {
			return condition.Message
		}
	}
	return WaitsForController
}

// UntilPoolGone waits until a pool is gone, and returns the last reason for waiting.
func UntilPoolGone(
	ctx context.Context, p *resource.Pools, gone resource.Pool, limit time.Duration,
) (what string, err error) {
	said := ""
	what = WaitsForController
	err = WaitSet[resource.Pool]{App: p.App, API: p.API, Fields: Named(gone.Name), Read: resource.ReadPool,
		See: func(set map[string]resource.Pool) (bool, error) {
			now, exists := set[gone.Name]
			if !exists || now.UID != gone.UID {
				return true, nil
			}
			if what = waitsFor(now.BCSNetPool); what == said {
				return false, nil
			}
			said = what
			if now.DeletionTimestamp == nil {
				p.Say.Wait("pool %s: waiting until it is deleted: %s", gone.Name, what)
			} else {
				p.Say.Wait("pool %s is being deleted: %s", gone.Name, p.Called(what))
			}
			return false, nil
		}}.Until(ctx, limit)
	return what, err
}

// Reasons of a pool's deletion to wait, if its status has none.
const (
	WaitsForController = "waiting for the controller to see that"
	waitsForSomebody   = "nobody has deleted it yet"
)

// waitsFor returns why a deleted pool still exists.
func waitsFor(p *v1.BCSNetPool) string {
	if p.DeletionTimestamp == nil {
		return waitsForSomebody
	}
	c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionDraining)
	if c != nil && c.Reason == v1.ReasonPoolDeleted {
		return c.Message
	}
	return WaitsForController
}

// UntilClaimGone waits until a claim is gone, and prints what it waits for.
func UntilClaimGone(
	ctx context.Context, c *resource.Claims, gone resource.Claim, limit time.Duration,
) (what string, err error) {
	said := ""
	what = WaitsForController
	err = WaitSet[resource.Claim]{App: c.App, API: c.API.Namespace(gone.Namespace), Fields: Named(gone.Name),
		Read: resource.ReadClaim, See: func(set map[string]resource.Claim) (bool, error) {
			now, exists := set[gone.FullName()]
			if !exists || now.UID != gone.UID {
				return true, nil
			}
			if what = releasing(now); what == said {
				return false, nil
			}
			said = what
			if now.DeletionTimestamp == nil {
				c.Say.Wait("claim %s: waiting until it is deleted: %s", gone.FullName(), what)
			} else {
				c.Say.Wait("claim %s is being deleted: %s", gone.FullName(), what)
			}
			return false, nil
		}}.Until(ctx, limit)
	return what, err
}
