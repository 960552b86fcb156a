package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

type uninstall struct {
	*app.App
	crds         bool
	deleteLeases bool
	yes          bool
	timeout      time.Duration
}

// NewUninstall returns the command uninstall.
func NewUninstall(s *app.App) *cobra.Command {
	v := &uninstall{App: s}
	cmd := &cobra.Command{
		Use: "uninstall", GroupID: "other", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Remove the controller and its roles; pools and addresses stay",
		Long: `Remove the controller, its roles, what values of the chart have added, and the
namespace bcsnet-system with everything in it, after a question. Pools, claims
and addresses stay: nothing is allocated or freed until bcsnet is installed
again, which continues from there.

--crds removes the definitions of the objects, too, and with them every object.
That is refused while there are pools, claims, or addresses in use or reserved,
unless --delete-leases says that they may be deleted. Pods keep their addresses,
and nothing knows of them.`,
		Example: `  bcsnetctl uninstall --dry-run=client
  bcsnetctl uninstall --yes
  bcsnetctl uninstall --crds --delete-leases`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&v.crds, "crds", false, "remove the definitions of the objects, too")
	cmd.Flags().BoolVar(&v.deleteLeases, "delete-leases", false,
		"with --crds: delete pools, claims and addresses, whoever holds them")
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().DurationVar(&v.timeout, "timeout", 5*time.Minute,
		"how long to wait for the end of the definitions; 0 is for ever")
	s.DryRun.AddTo(cmd)
	return cmd
}

func (v *uninstall) Validate() error {
	switch {
	case v.deleteLeases && !v.crds:
		return app.Usagef("--delete-leases goes only with --crds: without it pools, claims and addresses stay")
	case v.timeout < 0:
		return app.Usagef("--timeout %s is negative", v.timeout)
	}
	return nil
}

func (v *uninstall) Run(ctx context.Context) error {
	c, err := v.Dynamic()
	if err != nil {
		return err
	}
	steps, err := v.plan(ctx, c)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		v.Say.Note("nothing to remove in %s", v.Where())
		return nil
	}
	v.Say.Start("%s in %s, and everything in the namespace %s", humanize.Plural(len(steps), "object"), v.Where(),
		resource.SystemNamespace)
	if slices.ContainsFunc(steps, func(s step) bool { return s.want.GetKind() == resource.KindDaemonSet }) {
		v.Say.Warn("the plugins stay on the nodes, and no pod that begins there gets an address; to remove them " +
			"first, have the DaemonSet do it (node-install in the documentation)")
	}
	if err := v.guard(ctx, c, steps); err != nil {
		return err
	}
	if err := v.Confirm(ctx, v.yes, "Remove them?"); err != nil {
		return err
	}
	return v.removeAll(ctx, c, steps)
}

// plan finds the installed objects in the order of their removal. The controller's rights come before the objects that
// it would write again.
func (v *uninstall) plan(ctx context.Context, c dynamic.Interface) ([]step, error) {
	all, err := resource.Render("default")
	if err != nil {
		return nil, err
	}
	node, err := resource.Render(resource.NodeFolder)
	if err != nil {
		return nil, err
	}
	all = append(all, node...)
	steps, err := v.findOptional(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, o := range slices.Backward(all) {
		if o.GetKind() == resource.KindCRD && !v.crds {
			continue
		}
		one, err := stepFor(ctx, v.App, c, o)
		if err != nil {
			return nil, err
		}
		if one.have != nil {
			steps = append(steps, one)
		}
	}
	return steps, nil
}

func (v *uninstall) removeAll(ctx context.Context, c dynamic.Interface, steps []step) error {
	checked := false
	for _, one := range steps {
		isCRD := one.want.GetKind() == resource.KindCRD
		if isCRD && !checked && !v.deleteLeases && v.DryRun == app.DryRunNone {
			// From here on the controller cannot allocate anything.
			if err := v.guard(ctx, c, steps); err != nil {
				return err
			}
			checked = true
		}
		if err := v.remove(ctx, one); err != nil {
			return fmt.Errorf("%s was not removed, nor what comes after it: %w", resource.Title(one.want), err)
		}
		switch {
		case isCRD && v.DryRun == app.DryRunNone:
			if err := v.finish(ctx, c, one); err != nil {
				return err
			}
		case one.want.GetKind() == resource.KindNamespace && v.DryRun == app.DryRunNone:
			v.Say.Done("deletion of %s requested", resource.Title(one.want))
			continue
		}
		v.Say.Done("%s deleted", resource.Title(one.want))
	}
	return nil
}

// remove deletes the object that was found, not a new one of the same name.
func (v *uninstall) remove(ctx context.Context, one step) error {
	if v.DryRun == app.DryRunClient {
		return nil
	}
	uid := one.have.GetUID()
	err := one.api.Delete(ctx, one.have.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, DryRun: v.DryRun.Options(),
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return needAdministrator(v.App, err)
}
