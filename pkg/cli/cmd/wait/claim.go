package wait

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// forClaim waits for the claim NAMESPACE/NAME.
func (v *waiting) forClaim(ctx context.Context, arg string) error {
	key, err := (&resource.InNamespace{}).Key(arg)
	if err != nil {
		return err
	}
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return err
	}
	c, err := api.Get(ctx, key)
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
		how, err := follow.UntilClaimGone(ctx, api, c, v.left())
		return v.end(err, outcome{done: what + " is deleted", late: what + " is not deleted", what: how, hint: hint})
	case v.goal.word == goalReleased:
		return v.forRelease(ctx, what, resource.LeaseQuery{Claim: c.FullName()},
			"bcsnetctl lease list --claim "+c.FullName())
	}
	return forCondition(ctx, v, conditioned[resource.Claim]{
		what: what, api: api.API.Namespace(c.Namespace), name: c.Name, key: c.FullName(), uid: c.UID,
		read: resource.ReadClaim, state: stateOfClaim,
		object: func(c resource.Claim) metav1.Object { return c.BCSNetIPClaim }, gone: ipam.ReasonClaimNotFound,
		deleting: ipam.ReasonClaimConflict, hint: hint,
	})
}
