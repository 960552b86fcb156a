package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// pollEvery is how often a pool is looked at while it is waited for.
const pollEvery = 500 * time.Millisecond

// waitGone waits until a pool is gone, and says what it waits for whenever that changes.
func (v *poolDelete) waitGone(ctx context.Context, api *pools, p pool) error {
	said, what := "", waitsForController
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		stored, err := api.api.Get(ctx, p.Name, metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case apierrors.IsNotFound(err), err == nil && stored.GetUID() != p.UID:
			return true, nil
		case err != nil:
			return false, v.explain(err)
		}
		now, err := readPool(stored)
		if err != nil {
			return false, err
		}
		if what = waitsFor(now.BCSNetPool); what != said {
			v.say.wait("pool %s is being deleted: %s", p.Name, v.called(what))
			said = what
		}
		return false, nil
	})
	switch {
	case err == nil:
		v.say.done("pool %s deleted", p.Name)
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f := &failure{code: exitTimeout, message: fmt.Sprintf("pool %s is not gone after %s: %s", p.Name, v.timeout, what), cause: err}
		if what == waitsForController {
			return f.withHint(hintController)
		}
		return f.withHint("it goes without this command; see bcsnetctl pool describe %s", p.Name)
	case ctx.Err() != nil:
		return &failure{message: fmt.Sprintf("pool %s is still being deleted, and goes without this command: %s", p.Name, what)}
	default:
		return err
	}
}

const waitsForController = "waiting for the controller to see that"

// waitsFor is why a deleted pool is still there.
func waitsFor(p *v1.BCSNetPool) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionDraining)
	if c != nil && c.Reason == v1.ReasonPoolDeleted {
		return c.Message
	}
	return waitsForController
}
