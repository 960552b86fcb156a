package follow

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// Reasons of a deletion to wait, if the status of the object has none.
const (
	WaitsForController = "waiting for the controller to see that"
	waitsForSomebody   = "nobody has deleted it yet"
)

// UntilPoolGone waits until a pool is gone, and returns the last reason for waiting.
func UntilPoolGone(
	ctx context.Context, p *resource.Pools, gone resource.Pool, limit time.Duration,
) (what string, err error) {
	set := WaitSet[resource.Pool]{App: p.App, API: p.API, Read: resource.ReadPool}
	return untilGone(ctx, set, "pool "+gone.Name, gone, func(now resource.Pool) string {
		return messageOf(now.Status.Conditions, v1.ConditionDraining, v1.ReasonPoolDeleted)
	}, limit)
}

// UntilClaimGone waits until a claim is gone, and returns the last reason for waiting.
func UntilClaimGone(
	ctx context.Context, c *resource.Claims, gone resource.Claim, limit time.Duration,
) (what string, err error) {
	set := WaitSet[resource.Claim]{App: c.App, API: c.API.Namespace(gone.Namespace), Read: resource.ReadClaim}
	return untilGone(ctx, set, "claim "+gone.FullName(), gone, func(now resource.Claim) string {
		return messageOf(now.Status.Conditions, v1.ConditionReady, v1.ReasonClaimReleasing)
	}, limit)
}

// messageOf returns the message of a condition that has a reason; else it is empty.
func messageOf(all []metav1.Condition, kind, reason string) string {
	if c := meta.FindStatusCondition(all, kind); c != nil && c.Reason == reason {
		return c.Message
	}
	return ""
}

// untilGone waits until an object of a set is gone. It prints what it waits for when that changes. why returns what the
// status of a deleted object says it waits for; empty if it says nothing.
func untilGone[T metav1.Object](
	ctx context.Context, set WaitSet[T], title string, gone T, why func(T) string, limit time.Duration,
) (what string, err error) {
	said := ""
	what = WaitsForController
	set.Fields = Named(gone.GetName())
	set.See = func(all map[string]T) (bool, error) {
		now, exists := all[cache.MetaObjectToName(gone).String()]
		if !exists || now.GetUID() != gone.GetUID() {
			return true, nil
		}
		deleting := now.GetDeletionTimestamp() != nil
		if what = waitsForSomebody; deleting {
			what = cmp.Or(why(now), WaitsForController)
		}
		switch {
		case what == said:
		case deleting:
			set.App.Say.Wait("%s is being deleted: %s", title, set.App.Called(what))
		default:
			set.App.Say.Wait("%s: waiting until it is deleted: %s", title, what)
		}
		said = what
		return false, nil
	}
	err = set.Until(ctx, limit)
	return what, err
}
