package importer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// takeOver runs the subcommands of import.
type takeOver struct {
	*app.App
	system system.System
	words  words
	output printer.Output
	leases *store.Client
	yes    bool
	dirs   []string
	files  []string
	// roots has the directories by the name of their node.
	roots map[string]string
	// node is the node of --cut-over; empty for the whole cluster. stock and settle are its flags.
	node   string
	stock  uint16
	settle time.Duration
	lock   *lock
	// short permits a wait that is shorter than an allocation may take: for tests, in which no kubelet allocates.
	short bool
	// given reports whether the user gave a flag; nil for a command without flags of a cut-over.
	given func(flag string) bool
	// onlyPodsHere leaves out what a backup has of pods that are not here.
	onlyPodsHere bool
}

// words name an import or a restore in messages.
type words struct{ do, done, contradictions string }

func importing() words {
	return words{do: "take over", done: "taken over", contradictions: "keep the pools cordoned; correct the objects " +
		"of the other system, or free what was set aside: bcsnetctl ip unreserve ADDRESS; then run it again"}
}

func newTakeOver(s *app.App, of system.System) *cobra.Command {
	v := &takeOver{App: s, system: of, words: importing()}
	cmd := &cobra.Command{
		Use: of.Name, Aliases: of.Aliases, Args: app.Takes(0, 0),
		RunE:  app.Runs(v),
		Short: "Take over what " + of.Title + " has",
		Long: of.About + `

Nothing of the other system is changed. Stop it first, so that it does not
change meanwhile. Pools that are missing here are made and cordoned; a pool
whose addresses a pool here has already is left out.

It shows everything first, then asks; look with --dry-run=client. If objects
contradict each other, or a running pod, it says so, and exit code 3 tells of
it; such an address goes to the pod that reports it, or is reserved until you
decide. What is here already, or changed here since, is not changed: run it
again when it was interrupted, or when contradictions are resolved.` + cutOverHelp(of),
		Example:           of.Example + cutOverExample(of),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	if of.Dirs {
		cmd.Flags().StringArrayVar(&v.dirs, "dir", nil, "the directory `NODE=PATH` of a node; may be repeated")
	}
	if of.Files {
		cmd.Flags().StringArrayVar(&v.files, "file", nil, "the table at `PATH`; may be repeated")
	}
	cmd.Flags().StringVar(&v.node, "cut-over", "", "take over only the pods of this `NODE`, while both systems run")
	addStock(cmd, &v.stock)
	cmd.Flags().DurationVar(&v.settle, "settle", 5*time.Minute,
		"with --cut-over: the longest `DURATION` of an allocation in the other system, at least 4m30s")
	cmd.Flags().BoolVar(&v.short, "settle-short", false, "accept any --settle")
	cmd.Flag("settle-short").Hidden = true
	v.given = cmd.Flags().Changed
	app.CompleteWith(cmd, "cut-over", resource.CompleteNodes(s))
	v.addTo(cmd)
	return cmd
}

// addStock adds the flag for the free addresses that a pool here shall have during a cut-over.
func addStock(cmd *cobra.Command, stock *uint16) {
	cmd.Flags().Uint16Var(stock, "addresses", 16, "with --cut-over: the `NUMBER` of free addresses in each pool here")
}

// shortestSettle is the time that an allocation may take with the defaults of a kubelet, four minutes, and some seconds
// for watches.
const shortestSettle = 4*time.Minute + 30*time.Second

// onlyCutOver refuses flags of a cut-over without the node.
func onlyCutOver(node string, given func(flag string) bool, flags ...string) error {
	for _, name := range flags {
		if node == "" && given != nil && given(name) {
			return app.Usagef("--%s is for a cut-over by nodes", name).WithHint("name the node: --cut-over NODE")
		}
	}
	return nil
}

// addTo adds the flags that an import and a restore have.
func (v *takeOver) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	v.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
}

func (v *takeOver) Complete(args []string) error {
	if len(args) > 0 {
		v.system = v.from(args[0])
	}
	v.roots = map[string]string{}
	for _, d := range v.dirs {
		node, path, ok := strings.Cut(d, "=")
		if !ok || node == "" || path == "" {
			return app.Usagef("--dir %q is not NODE=PATH", d)
		}
		if v.roots[node] != "" {
			return app.Usagef("--dir names node %s twice", node)
		}
		v.roots[node] = path
	}
	return nil
}

func (v *takeOver) Validate() error {
	if err := onlyCutOver(v.node, v.given, "settle", "addresses"); err != nil {
		return err
	}
	switch {
	case v.node != "" && v.system.Withdrawer == nil:
		return app.Usagef("%s cannot withdraw addresses while it runs: there is no cut-over by nodes", v.system.Title).
			WithHint("switch the whole cluster at once: stop it, then bcsnetctl import %s", v.system.Name)
	case v.node != "" && v.settle < shortestSettle && !v.short:
		return app.Usagef("--settle %v is too short: an allocation of the other system may take four minutes",
			v.settle).WithHint(
			"%v is the shortest, and the default of five minutes fits a kubelet without special settings",
			shortestSettle)
	case v.system.Dirs && len(v.dirs) == 0:
		return app.Usagef("--dir is needed: the directory of each node, as NODE=PATH")
	case v.system.Files && len(v.files) == 0:
		return app.Usagef("--file is needed: the table to read")
	}
	return v.output.Validate()
}

func (v *takeOver) Run(ctx context.Context) error {
	if v.node != "" {
		return withLock(ctx, v.App, func(ctx context.Context, l *lock) error {
			v.lock = l
			return v.cutOver(ctx)
		})
	}
	var err error
	if v.leases, err = v.Leases(); err != nil {
		return err
	}
	j, err := v.plan(ctx)
	if err != nil {
		return err
	}
	if err := v.show(j); err != nil {
		return err
	}
	some := !j.empty()
	if some {
		if err := v.Confirm(ctx, v.yes, "Do you want to "+v.words.do+" this?"); err != nil {
			return err
		}
	}
	resource.OutlivePipes()
	failed := v.carryOut(ctx, j)
	j.plan.Leases = nil // there may be many, and reading back needs memory, too
	if some && failed.Compact() == nil {
		failed = append(failed, v.verify(ctx, j.rows))
	}
	if err := v.print(j); err != nil {
		failed = append(failed, err)
	}
	if failed.Compact() == nil && len(j.plan.Conflicts) == 0 {
		v.sayNext(j)
	}
	return append(failed, v.contradictions(j.plan.Conflicts)).Compact()
}

// sayNext prints the next commands.
func (v *takeOver) sayNext(j *job) {
	if v.DryRun != app.DryRunNone {
		return
	}
	v.Hint("next, the addresses of running pods that no object names: bcsnetctl rebuild")
	if names := j.cordoned(); len(names) > 0 && j.stored == nil {
		v.Hint("then let the pools allocate: bcsnetctl pool uncordon %s", strings.Join(names, " "))
	}
}

// contradictions returns the error for contradicting objects.
func (v *takeOver) contradictions(all []importer.Remark) error {
	if len(all) == 0 {
		return nil
	}
	f := &app.Failure{Code: app.ExitFindings,
		Message: fmt.Sprintf("%s %s to be resolved, %s first", humanize.Plural(len(all), "contradiction"),
			humanize.OneOr(len(all), "has", "have"), all[0].Object)}
	return f.WithHint("%s", v.words.contradictions)
}
