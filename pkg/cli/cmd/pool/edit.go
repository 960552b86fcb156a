package pool

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolEdit struct {
	*app.App
	output printer.Output
	name   string
	yes    bool
	// fit is the change among the other pools.
	fit *resource.Fit
}

func newEdit(s *app.App) *cobra.Command {
	v := &poolEdit{App: s}
	cmd := &cobra.Command{
		Use: "edit POOL", Args: app.Takes(1, 1), RunE: app.Runs(v),
		Short: "Edit a pool in an editor",
		Long: `Edit a pool in an editor: KUBE_EDITOR, EDITOR or vi. The editor opens again with
the reason where the text is not accepted; leaving it without a change ends the
command. It says what the change does to leases, and asks when it touches
something that is in use. If somebody else changes the pool meanwhile, nothing
is stored. Without a terminal, EDITOR has to be a program that needs none.`,
		Example: `  bcsnetctl pool edit blue
  KUBE_EDITOR="code --wait" bcsnetctl pool edit blue --dry-run=server -o yaml`,
		ValidArgsFunction: resource.CompletePoolFirst(s, nil),
	}
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *poolEdit) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolEdit) Validate() error {
	if v.EditorNeedsTerminal() {
		return app.Usagef("standard input is no terminal, and the editor %s needs one", v.Editor()).
			WithHint(
				"have a program edit: EDITOR='sed -i s/old/new/' bcsnetctl pool edit %s; or: bcsnetctl pool export "+
					"%s > FILE, and kubectl apply --server-side -f FILE", v.name, v.name)
	}
	return v.output.Validate()
}

func (v *poolEdit) Run(ctx context.Context) error {
	api, err := resource.NewPools(v.App)
	if err != nil {
		return err
	}
	live, err := api.Get(ctx, v.name)
	switch {
	case err != nil:
		return err
	case live.DeletionTimestamp != nil:
		return resource.Terminating(v.name)
	}
	draft, err := newDraft(v.App, live)
	if err != nil {
		return err
	}
	defer draft.drop()
	var next resource.Pool
	for {
		edited, err := draft.open(ctx)
		if err != nil {
			return err
		}
		if !edited {
			return v.cancelled(draft)
		}
		if next, err = v.checked(ctx, api, live, draft); err == nil {
			break
		}
		if !isRefusal(err) {
			return draft.save(err)
		}
		draft.refused = err
	}
	return draft.saveUnlessStored(v.apply(ctx, api, live, next))
}

// cancelled ends an edit that left the text as it was.
func (v *poolEdit) cancelled(d *draft) error {
	if d.refused != nil {
		return d.save(d.refused)
	}
	v.Say.Note("not edited: pool %s stays as it is", v.name)
	return nil
}

// checked returns the pool that the draft asks for, once the API server has found nothing wrong with it.
func (v *poolEdit) checked(
	ctx context.Context, api *resource.Pools, live resource.Pool, d *draft,
) (resource.Pool, error) {
	wanted, err := d.parse()
	if err != nil {
		return resource.Pool{}, err
	}
	next := live.Stored.DeepCopy()
	next.SetLabels(wanted.Stored.GetLabels())
	next.Object["spec"] = wanted.Stored.Object["spec"]
	annotations := wanted.Stored.GetAnnotations()
	for _, name := range []string{lastApplied, v1.ChangedByAnnotation} {
		if value, ok := live.Annotations[name]; ok {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[name] = value
		}
	}
	next.SetAnnotations(annotations)
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
		return resource.Pool{}, v.changed(err)
	}
	list, err := api.List(ctx)
	if err != nil {
		return resource.Pool{}, err
	}
	v.fit = resource.NewFit(resource.Given(list), store.Pool(p.BCSNetPool))
	return p, v.fit.Check(ctx, v.App)
}

// changed explains why a pool was not stored.
func (v *poolEdit) changed(err error) error {
	if apierrors.IsConflict(err) {
		return app.Refuse(ipam.ReasonUnavailable, "pool %s was changed by somebody else meanwhile: nothing was stored",
			v.name).
			WithHint("edit it again: bcsnetctl pool edit %s", v.name)
	}
	return resource.Explain(v.App, err)
}

// apply shows what the change does, asks where that touches something in use, and stores it.
func (v *poolEdit) apply(ctx context.Context, api *resource.Pools, live, next resource.Pool) error {
	if samePool(live, next) {
		v.Say.Note("not edited: pool %s stays as it is", v.name)
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
		stored, err = v.store(ctx, api, next.Stored)
	}
	if err != nil {
		return err
	}
	v.Say.Done("pool %s edited", v.name)
	resource.WarnReverted(v.App, live, resource.DiffersIn(live, next))
	return v.output.Object(v.Out, stored)
}

func (v *poolEdit) store(
	ctx context.Context, api *resource.Pools, o *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	stored, err := api.API.Update(ctx, o, metav1.UpdateOptions{FieldManager: app.ProgramName,
		DryRun: v.DryRun.Options()})
	if err != nil {
		return nil, v.changed(err)
	}
	return stored, nil
}
