package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

type poolEdit struct {
	*session
	output output
	name   string
	yes    bool
}

func newPoolEdit(s *session) *cobra.Command {
	v := &poolEdit{session: s}
	cmd := &cobra.Command{
		Use: "edit POOL", Args: takes(1, 1), RunE: runs(v),
		Short: "Edit a pool in an editor",
		Long: `Edit a pool in an editor: KUBE_EDITOR, EDITOR or vi. The editor opens again with
the reason where the text is not accepted; leaving it without a change ends the
command. It says what the change does to leases, and asks when it touches
something that is in use. If somebody else changes the pool meanwhile, nothing
is stored. Without a terminal, EDITOR has to be a program that needs none.`,
		Example: `  bcsnetctl pool edit blue
  KUBE_EDITOR="code --wait" bcsnetctl pool edit blue --dry-run=server -o yaml`,
		ValidArgsFunction: s.completePoolFirst(nil),
	}
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	s.dry.addTo(cmd)
	v.output.addToChange(cmd)
	return cmd
}

func (v *poolEdit) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *poolEdit) Validate() error {
	if v.editorNeedsTerminal() {
		return usagef("standard input is no terminal, and the editor %s needs one", v.editor()).
			withHint("have a program edit: EDITOR='sed -i s/old/new/' bcsnetctl pool edit %s; or: bcsnetctl pool export %s > FILE, and kubectl apply --server-side -f FILE", v.name, v.name)
	}
	return v.output.validate()
}

func (v *poolEdit) Run(ctx context.Context) error {
	api, err := v.pools()
	if err != nil {
		return err
	}
	live, err := api.get(ctx, v.name)
	switch {
	case err != nil:
		return err
	case live.DeletionTimestamp != nil:
		return terminating(v.name)
	}
	draft, err := v.newDraft(live)
	if err != nil {
		return err
	}
	defer draft.drop()
	var next pool
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
			return draft.keep(err)
		}
		draft.refused = err
	}
	return draft.keepUnless(v.apply(ctx, api, live, next))
}

// cancelled ends an edit that left the text as it was.
func (v *poolEdit) cancelled(d *draft) error {
	if d.refused != nil {
		return d.keep(d.refused)
	}
	v.say.note("not edited: pool %s stays as it is", v.name)
	return nil
}

// checked is the pool that the draft asks for, once the API server has found nothing wrong with it.
func (v *poolEdit) checked(ctx context.Context, api *pools, live pool, d *draft) (pool, error) {
	wanted, err := d.parse()
	if err != nil {
		return pool{}, err
	}
	next := live.stored.DeepCopy()
	next.SetLabels(wanted.stored.GetLabels())
	next.Object["spec"] = wanted.stored.Object["spec"]
	annotations := wanted.stored.GetAnnotations()
	if last, ok := live.Annotations[lastApplied]; ok {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[lastApplied] = last
	}
	next.SetAnnotations(annotations)
	p, err := readPool(next)
	if err != nil {
		return pool{}, err
	}
	if err := heldBack(live, p); err != nil {
		return pool{}, err
	}
	if _, err := api.api.Update(ctx, next, metav1.UpdateOptions{FieldManager: programName, DryRun: []string{metav1.DryRunAll}}); err != nil {
		return pool{}, v.changed(err)
	}
	return p, nil
}

// changed explains why a pool was not stored.
func (v *poolEdit) changed(err error) error {
	if apierrors.IsConflict(err) {
		return refuse(ipam.ReasonUnavailable, "pool %s was changed by somebody else meanwhile: nothing was stored", v.name).
			withHint("edit it again: bcsnetctl pool edit %s", v.name)
	}
	return v.explain(err)
}

// apply says what the change does, asks where that touches something in use, and stores it.
func (v *poolEdit) apply(ctx context.Context, api *pools, live, next pool) error {
	if samePool(live, next) {
		v.say.note("not edited: pool %s stays as it is", v.name)
		return v.output.object(v.Out, live.stored)
	}
	list, err := api.list(ctx)
	if err != nil {
		return err
	}
	all := map[string]ipam.Pool{}
	for _, p := range list {
		all[p.Name] = store.Pool(p.BCSNetPool)
	}
	e, err := v.effects(ctx, live, next, all)
	if err != nil {
		return err
	}
	for _, line := range e.say() {
		if line.grave {
			v.say.warn("%s", line.text)
		} else {
			v.say.note("  %s", line.text)
		}
	}
	if e.touches() && v.dry == dryRunNone && !v.yes {
		if err := v.confirm(ctx, fmt.Sprintf("Change pool %s?", v.name)); err != nil {
			return err
		}
	}
	stored := next.stored
	if v.dry != dryRunClient {
		stored, err = v.store(ctx, api, next.stored)
	}
	if err != nil {
		return err
	}
	v.say.done("pool %s edited", v.name)
	v.warnKept(live, differsIn(live, next))
	return v.output.object(v.Out, stored)
}

func (v *poolEdit) store(ctx context.Context, api *pools, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored, err := api.api.Update(ctx, o, metav1.UpdateOptions{FieldManager: programName, DryRun: v.dry.options()})
	if err != nil {
		return nil, v.changed(err)
	}
	return stored, nil
}
