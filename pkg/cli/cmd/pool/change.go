package pool

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// poolChange changes one pool: it checks the change, prints its effects, asks for confirmation if addresses in use are
// affected, and stores the pool.
type poolChange struct {
	*app.App
	output printer.Output
	name   string
	yes    bool
	// done is the participle for the change in messages. again is the hint if somebody else changed the pool meanwhile.
	done, again string
	// fit compares the change with the other pools.
	fit *resource.Fit
}

func (v *poolChange) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
}

// read reads the pool. It refuses a pool that is being deleted.
func (v *poolChange) read(ctx context.Context) (*resource.Pools, resource.Pool, error) {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return nil, resource.Pool{}, err
	}
	live, err := api.Get(ctx, v.name)
	if err == nil && live.DeletionTimestamp != nil {
		err = resource.Terminating(v.name)
	}
	return api, live, err
}

// checked returns the pool of an object. It fails if held addresses forbid a new subnet, the API server refuses the
// pool in a dry run, or the pool does not fit its parent and groups.
func (v *poolChange) checked(
	ctx context.Context, api *resource.Pools, live resource.Pool, next *unstructured.Unstructured,
) (resource.Pool, error) {
	p, err := resource.ReadPool(next)
	if err != nil {
		return resource.Pool{}, err
	}
	if err := heldBack(live, p); err != nil {
		return resource.Pool{}, err
	}
	if _, err := api.API.Update(ctx, next, metav1.UpdateOptions{
		FieldManager: app.ProgramName, DryRun: []string{metav1.DryRunAll},
	}); err != nil {
		return resource.Pool{}, v.refused(err)
	}
	list, err := api.List(ctx)
	if err != nil {
		return resource.Pool{}, err
	}
	v.fit = resource.NewFit(resource.Given(list), store.Pool(p.BCSNetPool))
	return p, v.fit.Check(ctx, v.App)
}

func (v *poolChange) refused(err error) error {
	if apierrors.IsConflict(err) {
		return app.Refuse(ipam.ReasonUnavailable, "pool %s was changed by somebody else meanwhile: nothing was stored",
			v.name).
			WithHint("%s %s", v.again, v.name)
	}
	return resource.Explain(v.App, err)
}

func (v *poolChange) unchanged() { v.Say.Note("not %s: pool %s stays as it is", v.done, v.name) }

// apply prints the effects of the change, asks if something in use is affected, and stores the pool.
func (v *poolChange) apply(ctx context.Context, api *resource.Pools, live, next resource.Pool) error {
	if samePool(live, next) {
		v.unchanged()
		return v.output.Object(v.Out, live.Stored)
	}
	e, err := changeEffects(ctx, v.App, live, next, v.fit)
	if err != nil {
		return err
	}
	sayEffects(v.App, e.say())
	if e.touches() {
		if err := v.Confirm(ctx, v.yes, fmt.Sprintf("Change pool %s?", v.name)); err != nil {
			return err
		}
	}
	stored := next.Stored
	if v.DryRun != app.DryRunClient {
		stored, err = api.API.Update(ctx, next.Stored, metav1.UpdateOptions{FieldManager: app.ProgramName,
			DryRun: v.DryRun.Options()})
	}
	if err != nil {
		return v.refused(err)
	}
	v.Say.Done("pool %s %s", v.name, v.done)
	resource.WarnReverted(v.App, live, resource.DiffersIn(live, next))
	return v.output.Object(v.Out, stored)
}
