package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/internal/suggest"
)

type verb struct {
	*app.App
	output     printer.Output
	only, skip []string
	severity   string
	pool       string
	all, list  bool
	fix, yes   bool
	// failOnSkipped makes a check that could not run as bad as a finding.
	failOnSkipped bool
	settle        time.Duration
	checks        []doctor.Check
}

// New returns the command doctor.
func New(s *app.App) *cobra.Command {
	v := &verb{App: s}
	cmd := &cobra.Command{
		Use: "doctor", GroupID: "other", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Look for what is wrong: leaks, overlaps, full pools, lost hosts",
		Long: `Look for problems of the installation, pools, addresses and hosts: what was
found, why, its consequences, and the command that fixes it. It changes nothing
without --fix, which releases leaked addresses: it asks for each, reads the pod
and the address again first, and skips addresses on hosts that are not Ready
nodes.

Exit code 3 says that there are findings of severity error. Checks whose objects
you may not read are skipped and named; with --fail-on-skipped the exit code is
then 4, unless there are errors. See the checks with --list; --only and --skip
take their ids and groups.`,
		Example: `  bcsnetctl doctor
  bcsnetctl doctor --only leaks --fix
  bcsnetctl doctor --fail-on-skipped
  bcsnetctl doctor --skip install,node-in-no-pool --severity warning -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringSliceVar(&v.only, "only", nil, "run only these checks: `IDS` or groups, separated by commas")
	f.StringSliceVar(&v.skip, "skip", nil, "leave out these checks: `IDS` or groups, separated by commas")
	f.StringVar(&v.severity, "severity", string(doctor.Info),
		"show findings of this `SEVERITY` and graver: error, warning or info")
	f.StringVar(&v.pool, "pool", "", "show only findings about this `POOL`")
	f.BoolVar(&v.all, "all", false, "show all findings of a check, not only the first ten")
	f.BoolVar(&v.failOnSkipped, "fail-on-skipped", false, "exit with 4 if a check was skipped and no error was found")
	f.BoolVar(&v.list, "list", false, "list the checks; the cluster is not asked")
	f.BoolVar(&v.fix, "fix", false, "release leaked addresses")
	f.BoolVarP(&v.yes, "yes", "y", false, "with --fix: do not ask")
	f.DurationVar(&v.settle, "settle", time.Minute,
		"with --fix: how long pods must be gone before what they held is released")
	s.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	app.CompleteWith(cmd, "only", completeChecks)
	app.CompleteWith(cmd, "skip", completeChecks)
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	app.Complete(cmd, "severity", severities()...)
	return cmd
}

func severities() (names []string) {
	for _, s := range doctor.Severities() {
		names = append(names, string(s))
	}
	return names
}

// completeChecks offers the groups and IDs of checks after a list of them.
func completeChecks(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	named := strings.Split(before, ",")
	var out []string
	group := doctor.Group("")
	for _, c := range doctor.Checks() {
		if c.Group != group {
			group = c.Group
			if !slices.Contains(named, string(group)) {
				out = append(out, cobra.CompletionWithDesc(before+string(group), "all checks of the group"))
			}
		}
		if !slices.Contains(named, c.ID) {
			out = append(out, cobra.CompletionWithDesc(before+c.ID, c.Title))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (v *verb) Validate() error {
	var unknown string
	if v.checks, unknown = doctor.Select(v.only, v.skip); unknown != "" {
		f := app.Usagef("there is no check or group %q", unknown)
		if near := suggest.Nearest(unknown, doctor.Names()); near != "" {
			return f.WithHint("did you mean %s? All checks: bcsnetctl doctor --list", near)
		}
		return f.WithHint("see all checks: bcsnetctl doctor --list")
	}
	switch {
	case len(v.checks) == 0:
		return app.Usagef("--skip leaves no check of --only")
	case !slices.Contains(severities(), v.severity):
		return app.Usagef("--severity %q is not error, warning or info", v.severity)
	case v.list && v.fix:
		return app.Usagef("--list only lists the checks, --fix runs them")
	case v.fix && len(leakChecks(v.checks)) == 0:
		return app.Usagef("--fix releases only leaks, and --only and --skip exclude all checks of leaks")
	case v.settle < 0:
		return app.Usagef("--settle %s is negative", v.settle)
	case !v.fix && (v.yes || v.DryRun != app.DryRunNone):
		return app.Usagef("--yes and --dry-run go with --fix: nothing is changed without it")
	case v.fix && v.DryRun == app.DryRunNone && !v.yes && !terminal.Is(v.In):
		return app.Usagef("cannot ask for confirmation: standard input is not a terminal").
			WithHint("to do it without a question: --yes; to see what would be done: --dry-run=client")
	}
	return v.output.Validate()
}

func (v *verb) Run(ctx context.Context) error {
	if v.list {
		return v.listChecks()
	}
	snapshot, err := view.Snapshot(ctx, v.App, doctor.Reads(v.checks))
	if err != nil {
		return err
	}
	report := doctor.Examine(snapshot, v.checks)
	if err := v.skipped(snapshot, report); err != nil {
		return err
	}
	found, err := v.chosen(ctx, report.Findings)
	if err != nil {
		return err
	}
	if err := v.print(snapshot, report, found); err != nil {
		return err
	}
	looked := v.looked(snapshot, report)
	if v.fix {
		fixer := &leakFixer{verb: v, snapshot: snapshot}
		found, err = fixer.run(ctx, found)
		if err != nil {
			return err
		}
		if v.DryRun == app.DryRunNone {
			looked = "after the releases"
		}
	}
	n := notRun(report)
	if n > 0 {
		looked += fmt.Sprintf(", %d skipped", n)
	}
	if err := v.sumUp(looked, found, n); err != nil || n == 0 || !v.failOnSkipped {
		return err
	}
	return &app.Failure{Code: app.ExitSkipped, Message: humanize.Plural(n, "check") + humanize.OneOr(n, " was",
		" were") +
		" skipped"}
}

// chosen returns the findings that --severity and --pool select. A pool that does not exist is an error.
func (v *verb) chosen(ctx context.Context, all []doctor.Finding) (out []doctor.Finding, err error) {
	for _, f := range all {
		if f.Severity.AtLeast(doctor.Severity(v.severity)) && (v.pool == "" || slices.Contains(f.Pools, v.pool)) {
			out = append(out, f)
		}
	}
	if len(out) > 0 || v.pool == "" {
		return out, nil
	}
	api, err := resource.NewPools(v.App)
	if err == nil {
		_, err = api.Get(ctx, v.pool)
	}
	return nil, err
}

// skipped warns which parts could not be read and which checks were skipped for that. It fails if no check could run.
func (v *verb) skipped(s *doctor.Snapshot, r doctor.Report) error {
	for _, part := range doctor.Reads(v.checks) {
		if why := s.Missing[part]; why != nil && len(r.Ran) == 0 {
			return fmt.Errorf("no check could run: %s cannot be read: %w", part, why)
		}
	}
	for _, part := range doctor.Reads(v.checks) {
		if ids := r.Skipped[part]; len(ids) > 0 {
			v.Say.Warn("%s cannot be read, so %s skipped: %s", part,
				humanize.OneOr(len(ids), "this check was", "these checks were"), strings.Join(ids, ", "))
			v.Say.Note("  %s", s.Missing[part])
		}
	}
	return nil
}

// sumUp counts the findings by severity. It returns the counts as an error if one finding is an error, else it prints
// them on standard error.
func (v *verb) sumUp(looked string, found []doctor.Finding, skipped int) error {
	counts := countSeverities(found)
	var parts []string
	for _, s := range []struct {
		severity doctor.Severity
		noun     string
	}{{doctor.Error, "error"}, {doctor.Warning, "warning"}, {doctor.Info, "note"}} {
		if n := counts[s.severity]; n > 0 {
			parts = append(parts, humanize.Plural(n, s.noun))
		}
	}
	text := looked + ": " + strings.Join(parts, ", ")
	switch {
	case counts[doctor.Error] > 0:
		return &app.Failure{Message: text, Code: app.ExitFindings}
	case len(found) > 0:
		v.Say.Warn("%s", text)
	case skipped > 0:
		v.Say.Warn("%s: no findings", looked)
	default:
		v.Say.Line(terminal.Green, "✔", "+", "%s: no findings", looked)
	}
	return nil
}

func notRun(r doctor.Report) (n int) {
	for _, ids := range r.Skipped {
		n += len(ids)
	}
	return n
}

func countSeverities(found []doctor.Finding) map[doctor.Severity]int {
	counts := map[doctor.Severity]int{}
	for _, f := range found {
		counts[f.Severity]++
	}
	return counts
}

// Examine returns a function for commands that change nothing if the cluster has problems. The function runs all checks
// except skip, and returns the findings and the parts of the cluster that could not be read.
func Examine(s *app.App) func(ctx context.Context, skip ...string) ([]doctor.Finding, []doctor.Part, error) {
	return func(ctx context.Context, skip ...string) ([]doctor.Finding, []doctor.Part, error) {
		checks, _ := doctor.Select(nil, skip)
		snapshot, err := view.Snapshot(ctx, s, doctor.Reads(checks))
		if err != nil {
			return nil, nil, err
		}
		report := doctor.Examine(snapshot, checks)
		return report.Findings, slices.Sorted(maps.Keys(report.Skipped)), nil
	}
}
