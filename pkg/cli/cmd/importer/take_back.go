package importer

import (
	"context"
	"errors"
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// cordon makes pools allocate nothing.
func (v *revert) cordon(ctx context.Context, names []string) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := api.Edit(ctx, name, func(resource.Pool) (map[string]any, error) {
			return map[string]any{"cordoned": true}, nil
		}); err != nil {
			return err
		}
		v.Say.Done("pool %s cordoned", name)
	}
	return nil
}

// giveBack changes addresses that are as the import left them.
func (v *revert) giveBack(ctx context.Context, here importer.Here, all []lease.Lease) error {
	return leasing.GiveUp(ctx, v.App, &v.output, all, "returned", func(_ int, l lease.Lease) error {
		if v.DryRun == app.DryRunClient {
			return nil
		}
		_, stored, err := v.leases.Update(ctx, l, here.Back, func(now lease.Lease) bool {
			_, ok := here.Back(now)
			return ok
		})
		if err == nil && !stored {
			return leasing.LeftAlone("it changed meanwhile")
		}
		return resource.Explain(v.App, err)
	}, nil)
}

// remove deletes the claims and pools of which nothing is in use.
func (v *revert) remove(ctx context.Context, r importer.Reversal) error {
	claims, err := resource.NewClaims(v.App)
	if err != nil {
		return err
	}
	pools, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	var failed app.Several
	tell := func(what string, err error) {
		switch {
		case errors.Is(err, context.Canceled):
			failed = append(failed, err)
		case err != nil:
			failed = append(failed, fmt.Errorf("%s was not deleted: %w", what, err))
		default:
			v.Say.Done("deletion of %s requested", what)
		}
	}
	for _, c := range r.Claims {
		err := v.dry(func() error {
			return resource.Delete(ctx, v.App, claims.API.Namespace(c.Namespace), c.Name, c.UID)
		})
		tell("claim "+c.Namespace+"/"+c.Name, err)
	}
	for _, p := range r.Pools {
		tell("pool "+p.Name, v.dry(func() error { return resource.Delete(ctx, v.App, pools.API, p.Name, p.UID) }))
	}
	return failed.Compact()
}

// dry does something unless the client only plans.
func (v *revert) dry(do func() error) error {
	if v.DryRun == app.DryRunClient {
		return nil
	}
	return do()
}
