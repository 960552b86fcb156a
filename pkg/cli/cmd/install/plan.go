package install

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// plan collects the checks, steps and outcomes of an upgrade, which -o prints.
type plan struct {
	checks []check
	steps  []step
	// outcomes has the results of the steps by title.
	outcomes map[string]string
	rollouts []rolled
}

// check is the result of a check before the first change.
type check struct{ name, outcome, message string }

// rolled is the result of waiting for a Deployment or DaemonSet.
type rolled struct {
	title         string
	wanted, ready int
	done          bool
}

// What is looked at.
const (
	checkRights      = "rights"
	checkOthers      = "others"
	checkDefinitions = "definitions"
	checkDoctor      = "doctor"
	checkTrial       = "trial"
)

// Outcomes of a check.
const (
	outcomePassed  = "passed"
	outcomeWarned  = "warned"
	outcomeRefused = "refused"
)

// checked records and, in an upgrade, prints the outcome of a check, and returns err. If err is nil and passed is
// empty, it records nothing.
func (v *install) checked(name, passed string, err error) error {
	switch {
	case err != nil:
		text, _ := v.Texts(err)
		v.plan.checks = append(v.plan.checks, check{name, outcomeRefused, text})
	case passed != "":
		v.plan.checks = append(v.plan.checks, check{name, outcomePassed, passed})
		if v.upgrade {
			v.Say.Note("checked %s: %s", name, passed)
		}
	}
	return err
}

// warned records a finding that does not stop an upgrade.
func (v *install) warned(name, what string) {
	v.plan.checks = append(v.plan.checks, check{name, outcomeWarned, what})
}

func (p *plan) applied(s step, outcome string) {
	if p.outcomes == nil {
		p.outcomes = map[string]string{}
	}
	p.outcomes[resource.Title(s.want)] = outcome
}

// planObject returns the plan and its results for -o json and similar formats. err is the upgrade's error.
func (v *install) planObject(err error) *unstructured.Unstructured {
	checks, steps, rollouts := []any{}, []any{}, []any{}
	for _, c := range v.plan.checks {
		checks = append(checks, map[string]any{"check": c.name, "outcome": c.outcome, "message": c.message})
	}
	for _, s := range v.plan.steps {
		one := map[string]any{
			"kind": s.want.GetKind(), "name": s.want.GetName(), "plan": s.intent(),
			"changes": resource.Values(s.changes),
			"outcome": v.plan.outcome(s, v.DryRun),
		}
		if ns := s.want.GetNamespace(); ns != "" {
			one["namespace"] = ns
		}
		if image := resource.Image(s.want); image != "" {
			one["image"] = image
		}
		steps = append(steps, one)
	}
	for _, r := range v.plan.rollouts {
		rollouts = append(rollouts, map[string]any{
			"object": r.title, "wanted": int64(r.wanted), "ready": int64(r.ready), "done": r.done,
		})
	}
	o := map[string]any{
		"dryRun": v.DryRun.String(), "checks": checks, "steps": steps, "rollouts": rollouts,
		"done": err == nil && v.DryRun == app.DryRunNone,
	}
	if err != nil {
		text, hint := v.Texts(err)
		o["error"] = map[string]any{"message": text, "hint": v.Called(hint)}
		if f, ok := errors.AsType[*app.Failure](err); ok && f.Reason != "" {
			o["reason"] = string(f.Reason)
		}
	}
	return printer.NewView("Upgrade", o)
}

// intent returns what a step will do with its object: create, change, none, or apply if nobody has asked what that
// changes.
func (s step) intent() string {
	switch {
	case s.have == nil:
		return "create"
	case !s.tried:
		return "apply"
	case len(s.changes) > 0:
		return "change"
	}
	return "none"
}

// outcome returns the result of a step; pending if it was not carried out.
func (p *plan) outcome(s step, dry app.DryRun) string {
	if outcome := p.outcomes[resource.Title(s.want)]; outcome != "" && dry == app.DryRunNone {
		return outcome
	}
	return "pending"
}

// changes returns a line for each field that differs between two versions of an object, except fields that every write
// changes.
func changes(before, after *unstructured.Unstructured) []string {
	return differences("", bare(before), bare(after))
}

func differences(path string, before, after any) (lines []string) {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	b, isMap := before.(map[string]any)
	a, both := after.(map[string]any)
	if isMap && both {
		keys := maps.Clone(b)
		maps.Copy(keys, a)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			lines = append(lines, differences(path+"."+key, b[key], a[key])...)
		}
		return lines
	}
	bl, isList := before.([]any)
	al, both := after.([]any)
	if isList && both && len(bl) == len(al) {
		for i := range bl {
			lines = append(lines, differences(fmt.Sprintf("%s[%d]", path, i), bl[i], al[i])...)
		}
		return lines
	}
	return []string{fmt.Sprintf("%s: %s -> %s", path, brief(before), brief(after))}
}

// brief formats a value in at most 60 characters. It gives only the length of a map or a long list.
func brief(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case map[string]any:
		return fmt.Sprintf("{%d}", len(v))
	case []any:
		const most = 60
		if text := fmt.Sprint(v); len(text) <= most {
			return text
		}
		return fmt.Sprintf("[%d]", len(v))
	default:
		return fmt.Sprintf("%.60v", v)
	}
}
