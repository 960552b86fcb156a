package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// waitGone waits until a pool is gone, and says what it waits for whenever that changes.
func (v *poolDelete) waitGone(ctx context.Context, api *resource.Pools, p resource.Pool, limit time.Duration) error {
	what, err := untilPoolGone(ctx, api, p, limit)
	switch {
	case err == nil:
		v.Say.Done("pool %s deleted", p.Name)
		return nil
	case errors.Is(err, follow.ErrTooLong):
		f := &app.Failure{Code: app.ExitTimeout, Message: fmt.Sprintf("pool %s is not gone after %s: %s", p.Name, v.timeout, what), Cause: err}
		if what == waitsForController {
			return f.WithHint(resource.HintController)
		}
		return f.WithHint("it goes without this command; see bcsnetctl pool describe %s", p.Name)
	case ctx.Err() != nil:
		return &app.Failure{Message: fmt.Sprintf("pool %s is still being deleted, and goes without this command: %s", p.Name, what)}
	default:
		return err
	}
}

// untilPoolGone waits until a pool is gone, and returns what it waited for last.
func untilPoolGone(ctx context.Context, p *resource.Pools, gone resource.Pool, limit time.Duration) (what string, err error) {
	said := ""
	what = waitsForController
	err = follow.WaitSet[resource.Pool]{App: p.App, API: p.API, Fields: follow.Named(gone.Name), Read: resource.ReadPool, See: func(set map[string]resource.Pool) (bool, error) {
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

const (
	waitsForController = "waiting for the controller to see that"
	waitsForSomebody   = "nobody has deleted it yet"
)

// waitsFor is why a pool is still there.
func waitsFor(p *v1.BCSNetPool) string {
	if p.DeletionTimestamp == nil {
		return waitsForSomebody
	}
	c := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionDraining)
	if c != nil && c.Reason == v1.ReasonPoolDeleted {
		return c.Message
	}
	return waitsForController
}
