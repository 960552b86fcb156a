package cli

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// forClaim waits for a claim, which is written NAMESPACE/NAME.
func (v *waiting) forClaim(ctx context.Context, arg string) error {
	key, err := (&inNamespace{}).key(arg)
	if err != nil {
		return err
	}
	api, err := newClaims(v.App)
	if err != nil {
		return err
	}
	c, err := api.get(ctx, key)
	f, _ := errors.AsType[*app.Failure](err)
	what := "claim " + key.String()
	hint := "bcsnetctl claim describe " + key.String()
	switch {
	case v.goal.word == goalDeleted && f != nil && f.Reason == ipam.ReasonClaimNotFound:
		v.Say.Done("there is no %s", what)
		return nil
	case err != nil:
		return err
	case v.goal.word == goalDeleted:
		how, err := api.untilGone(ctx, c, v.left())
		return v.end(err, outcome{done: what + " is deleted", late: what + " is not deleted", what: how, hint: hint})
	case v.goal.word == goalReleased:
		return v.forRelease(ctx, what, leaseQuery{claim: c.name()}, "bcsnetctl lease list --claim "+c.name())
	}
	return forCondition(ctx, v, conditioned[ipClaim]{
		what: what, api: api.api.Namespace(c.Namespace), name: c.Name, key: c.name(), uid: c.UID, read: readClaim, state: stateOfClaim,
		object: func(c ipClaim) metav1.Object { return c.BCSNetIPClaim }, gone: ipam.ReasonClaimNotFound, deleting: ipam.ReasonClaimConflict, hint: hint,
	})
}

// untilGone waits until a claim is gone, and says what it waits for.
func (c *claims) untilGone(ctx context.Context, gone ipClaim, limit time.Duration) (what string, err error) {
	said := ""
	what = waitsForController
	err = waitSet[ipClaim]{session: c.App, api: c.api.Namespace(gone.Namespace), fields: named(gone.Name), read: readClaim, see: func(set map[string]ipClaim) (bool, error) {
		now, exists := set[gone.name()]
		if !exists || now.UID != gone.UID {
			return true, nil
		}
		if what = releasing(now); what == said {
			return false, nil
		}
		said = what
		if now.DeletionTimestamp == nil {
			c.Say.Wait("claim %s: waiting until it is deleted: %s", gone.name(), what)
		} else {
			c.Say.Wait("claim %s is being deleted: %s", gone.name(), what)
		}
		return false, nil
	}}.until(ctx, limit)
	return what, err
}
