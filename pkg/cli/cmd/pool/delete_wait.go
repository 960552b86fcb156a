package pool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// waitGone waits until a pool is gone, and prints what it waits for when that changes.
func (v *poolDelete) waitGone(ctx context.Context, api *resource.Pools, p resource.Pool, limit time.Duration) error {
	what, err := follow.UntilPoolGone(ctx, api, p, limit)
	switch {
	case err == nil:
		v.Say.Done("pool %s deleted", p.Name)
		return nil
	case errors.Is(err, follow.ErrTooLong):
		f := &app.Failure{
			Code: app.ExitTimeout, Message: fmt.Sprintf("pool %s is not gone after %s: %s", p.Name, v.timeout, what),
			Cause: err,
		}
		if what == follow.WaitsForController {
			return f.WithHint(resource.HintController)
		}
		return f.WithHint("it goes without this command; see bcsnetctl pool describe %s", p.Name)
	case ctx.Err() != nil:
		return &app.Failure{Message: fmt.Sprintf("pool %s is still being deleted, and goes without this command: %s",
			p.Name, what)}
	default:
		return err
	}
}
