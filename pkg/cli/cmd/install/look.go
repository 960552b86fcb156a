package install

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Examination runs the checks of doctor except skip. It returns the findings and the parts of the cluster that could
// not be read.
type Examination func(ctx context.Context, skip ...string) (found []doctor.Finding, unread []doctor.Part, err error)

// looks holds the settings and results of the examination before an installation changes something.
type looks struct {
	examine Examination
	// upgrade requires that the cluster has a controller.
	upgrade bool
	// force continues although doctor finds errors.
	force bool
	// keepCRDs leaves the definitions unchanged.
	keepCRDs bool
	// plan collects the checks, the steps and their outcomes.
	plan plan
}

const reasonErrorsFound ipam.Reason = "ErrorsFound"

// mostShown bounds the printed findings and changes. The others are counted.
const mostShown = 5

// prepare examines the cluster, and returns the steps of the installation. It changes nothing.
func (v *install) prepare(ctx context.Context, c dynamic.Interface, all []unstructured.Unstructured) ([]step, error) {
	defer v.Say.WaitLater("looking at what is in " + v.Where())()
	if v.keepCRDs {
		all = slices.DeleteFunc(all, func(o unstructured.Unstructured) bool { return o.GetKind() == resource.KindCRD })
	}
	verbs := []string{"get", "patch"}
	if v.DryRun == app.DryRunClient {
		verbs = verbs[:1]
	}
	missing, err := rightsTo(all, verbs...).Missing(ctx, v.App)
	if err != nil {
		return nil, v.checked(checkRights, "", err)
	}
	if slices.ContainsFunc(missing, func(r authorizationv1.ResourceAttributes) bool { return r.Verb == "get" }) {
		return nil, v.checked(checkRights, "", refusal(missing))
	}
	steps, err := v.stepsFor(ctx, c, all)
	if err != nil {
		return nil, err
	}
	v.plan.steps = steps
	var fresh []unstructured.Unstructured
	for _, s := range steps {
		if s.have == nil {
			fresh = append(fresh, s.want)
		}
	}
	allowed := "you may do all of it"
	if v.DryRun == app.DryRunClient {
		allowed = "you may read all of it"
	} else {
		more := rightsTo(fresh, "create")
		if len(releases(steps)) > 0 {
			more = append(more, rightsToForget()...)
		}
		if more, err = more.Missing(ctx, v.App); err == nil {
			err = refusal(append(missing, more...))
		}
	}
	if err := v.checked(checkRights, allowed, err); err != nil {
		return nil, err
	}
	return steps, v.inspect(ctx, c, steps)
}

// inspect checks that the cluster can take the installation, and says what runs there. It changes nothing.
func (v *install) inspect(ctx context.Context, c dynamic.Interface, steps []step) error {
	if err := v.foreign(ctx, c); err != nil {
		return err
	}
	if err := v.checked(checkDefinitions, "", v.leaving(steps)); err != nil {
		return err
	}
	err := v.checked(checkDefinitions, "none is newer than the definitions of this program", v.newer(steps))
	if err != nil {
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
	v.noteNodeImage(steps)
	if err := v.keepPlainHTTP(ctx, c, steps[controller]); err != nil {
		return err
	}
	return v.healthy(ctx)
}

// isController reports whether a step changes the existing controller.
func isController(s step) bool { return s.have != nil && s.want.GetKind() == resource.KindDeployment }

// healthy runs doctor. It skips the checks of the installation itself, which may be about to be repaired.
func (v *install) healthy(ctx context.Context) error {
	found, unread, err := v.examine(ctx, string(doctor.GroupInstall))
	if err != nil {
		return err
	}
	for _, part := range unread {
		what := fmt.Sprintf("%s cannot be read, so doctor's checks of them were skipped", part)
		v.Say.Warn("%s: bcsnetctl doctor says why", what)
		v.warned(checkDoctor, what)
	}
	found = slices.DeleteFunc(found, func(f doctor.Finding) bool { return f.Severity != doctor.Error })
	if len(found) == 0 {
		return v.checked(checkDoctor, "it finds no error", nil)
	}
	for i, f := range found {
		what := fmt.Sprintf("doctor finds %s on %s: %s", f.Check, f.Object, f.Cause)
		v.warned(checkDoctor, what)
		if i < mostShown {
			v.Say.Warn("%s", what)
		}
	}
	if n := len(found) - mostShown; n > 0 {
		v.Say.Note("  and %d more", n)
	}
	if v.force {
		return nil
	}
	refusal := app.Refuse(reasonErrorsFound, "nothing was changed: doctor finds %s, which must be fixed first",
		humanize.Plural(len(found), "error")).
		WithHint("see them, and how to fix them: bcsnetctl doctor --severity error; to go on all the same: --force")
	return v.checked(checkDoctor, "", refusal)
}

// preview sends an upgrade's objects as a dry run, and prints what would change. Objects whose namespace or kind does
// not exist yet cannot be tried.
func (v *install) preview(ctx context.Context, steps []step) error {
	if v.DryRun == app.DryRunClient || !slices.ContainsFunc(steps, isController) {
		return nil
	}
	defer v.Say.WaitLater("trying what would change")()
	options := v.DryRun
	defer func() { v.DryRun = options }()
	v.DryRun = app.DryRunServer
	for i, one := range steps {
		if one.have == nil {
			v.Say.Note("  new: %s", resource.Title(one.want))
			continue
		}
		after, err := v.apply(ctx, one, false)
		if err != nil {
			return v.checked(checkTrial, "",
				fmt.Errorf("nothing was changed: %s would not be applied: %w", resource.Title(one.want), err))
		}
		lines := changes(one.have, after)
		if steps[i].tried, steps[i].changes = true, lines; len(lines) == 0 {
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
	return v.checked(checkTrial, "the API server takes every object", nil)
}
