package install

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Examination returns what checks of doctor find, and which parts of the cluster they could not read.
type Examination func(ctx context.Context, skip ...string) (found []doctor.Finding, unread []doctor.Part, err error)

// looks is what an installation looks at before it changes something.
type looks struct {
	examine Examination
	// upgrade: there has to be a controller in the cluster.
	upgrade bool
	// force goes on although doctor finds errors.
	force bool
	// keepCRDs leaves the definitions of the objects alone.
	keepCRDs bool
}

const reasonErrorsFound ipam.Reason = "ErrorsFound"

// mostShown is how many findings and changes are written out; the others are counted.
const mostShown = 5

// prepare looks at the cluster, and returns what there is to do. It changes nothing.
func (v *install) prepare(ctx context.Context, c dynamic.Interface, all []unstructured.Unstructured) ([]step, error) {
	if v.keepCRDs {
		all = slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return o.GetKind() == resource.KindCRD })
	}
	verbs := []string{"get", "patch"}
	if v.DryRun == app.DryRunClient {
		verbs = verbs[:1]
	}
	if err := v.permitted(ctx, c, all, verbs...); err != nil {
		return nil, err
	}
	steps, err := v.plan(ctx, c, all)
	if err != nil {
		return nil, err
	}
	var fresh []unstructured.Unstructured
	for _, s := range steps {
		if s.have == nil {
			fresh = append(fresh, s.want)
		}
	}
	if v.DryRun != app.DryRunClient {
		if err := v.permitted(ctx, c, fresh, "create"); err != nil {
			return nil, err
		}
	}
	return steps, v.inspect(ctx, c, steps)
}

// inspect finds out whether the cluster is fit for what comes, and says what runs there. It changes nothing.
func (v *install) inspect(ctx context.Context, c dynamic.Interface, steps []step) error {
	if err := v.foreign(ctx, c); err != nil {
		return err
	}
	if err := v.newer(steps); err != nil {
		return err
	}
	controller := slices.IndexFunc(steps, isController)
	if controller < 0 {
		return nil
	}
	runs, err := controllerOf(ctx, c)
	if err != nil {
		return needAdministrator(v.App, err)
	}
	v.Say.Note("the controller that runs: %s", runs)
	if image := resource.Image(steps[controller].want); image != runs.Image {
		v.Say.Note("it is to run %s", image)
	}
	if err := v.keepPlainHTTP(ctx, c, steps[controller]); err != nil {
		return err
	}
	return v.healthy(ctx)
}

// isController reports whether a step is about the controller where there is one already.
func isController(s step) bool { return s.have != nil && s.want.GetKind() == resource.KindDeployment }

// healthy asks doctor. What it finds wrong with the installation is what may be mended now.
func (v *install) healthy(ctx context.Context) error {
	found, unread, err := v.examine(ctx, string(doctor.GroupInstall))
	if err != nil {
		return err
	}
	for _, part := range unread {
		v.Say.Warn("%s cannot be read, so doctor's checks of them were skipped: bcsnetctl doctor says why", part)
	}
	found = slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.Severity != doctor.Error })
	if len(found) == 0 {
		return nil
	}
	for _, f := range found[:min(len(found), mostShown)] {
		v.Say.Warn("doctor finds %s on %s: %s", f.Check, f.Object, f.Cause)
	}
	if n := len(found) - mostShown; n > 0 {
		v.Say.Note("  and %d more", n)
	}
	if v.force {
		return nil
	}
	return app.Refuse(reasonErrorsFound, "nothing was changed: doctor finds %s, to be mended first",
		humanize.Plural(len(found), "error")).
		WithHint("see them, and what mends them: bcsnetctl doctor --severity error; to go on all the same: --force")
}

// preview sends the objects of an upgrade as a dry run, and writes what would change. What is in a namespace or of a
// kind that is not there yet cannot be tried.
func (v *install) preview(ctx context.Context, steps []step) error {
	if v.DryRun == app.DryRunClient || !slices.ContainsFunc(steps, isController) {
		return nil
	}
	options := v.DryRun
	defer func() { v.DryRun = options }()
	v.DryRun = app.DryRunServer
	for _, one := range steps {
		if one.have == nil {
			v.Say.Note("  new: %s", resource.Title(one.want))
			continue
		}
		after, err := v.apply(ctx, one, false)
		if err != nil {
			return fmt.Errorf("nothing was changed: %s would not be applied: %w", resource.Title(one.want), err)
		}
		lines := changes(one.have, after)
		if len(lines) == 0 {
			continue
		}
		v.Say.Note("  changed: %s", resource.Title(one.want))
		for _, line := range lines[:min(len(lines), mostShown)] {
			v.Say.Note("    %s", line)
		}
		if n := len(lines) - mostShown; n > 0 {
			v.Say.Note("    and %d more", n)
		}
	}
	return nil
}
