package cleanup

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// New returns the command cleanup.
func New(s *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cleanup", GroupID: "objects",
		Short: "End the leases of holders that are gone",
		Long: `End the leases of a network, a pool, a group, a host or one endpoint whose
holders are gone: what the controller would collect, at once. Leases of pods
that live end only with --force, which names them.`,
		Example: `  bcsnetctl cleanup network prod --dry-run=client
  bcsnetctl cleanup host 10.0.0.11
  bcsnetctl cleanup endpoint shop/web-0 --force`,
	}
	for _, k := range kinds(s) {
		cmd.AddCommand(k.command(s))
	}
	return cmd
}

// kind is what can be cleaned up.
type kind struct {
	name, arg, short, long, example string
	completes                       cobra.CompletionFunc
	// check refuses words that cannot name one; nil where the API server tells.
	check func(word string) error
	// find lists the addresses that are in use or kept there.
	find func(ctx context.Context, v *cleanup) ([]lease.Lease, error)
	// single: it is one holder, and it is an error that it is not gone.
	single bool
}

func (k kind) command(s *app.App) *cobra.Command {
	v := &cleanup{App: s, kind: k}
	cmd := &cobra.Command{
		Use: k.name + " " + k.arg, Args: app.Takes(1, 1), RunE: app.Runs(v), Short: k.short,
		Long: k.long + `

A holder is gone when its pod is, and no container of it can run any more: its
node is ready, and the pod has been gone for --settle, at two looks. A shorter
--settle is your word that the containers of pods that were deleted by force are
no more. What is not sure is left alone and counted, as are pods that live and
owners that are no pod; --force ends their leases, too, and at once, and names
the pods. An address that a claim keeps stays reserved for the claim, unless
--kept gives it back as well. Each address is released by itself, if it has not
changed hands meanwhile: an interrupted call is done by another one. What was
released goes to standard output, as it was before.`,
		Example: k.example, ValidArgsFunction: k.completes,
	}
	f := cmd.Flags()
	f.BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&v.force, "force", false, "also end leases of pods that live, or may still run")
	f.BoolVar(&v.kept, "kept", false, "also give back what claims keep and no pod has")
	f.DurationVar(&v.between, "settle", time.Minute, "how long pods must be gone before what they held is released")
	app.AddReason(cmd, &v.reason)
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return cmd
}

// cleanup is one call of the command.
type cleanup struct {
	*app.App
	output           printer.Output
	kind             kind
	name             string
	reason           string
	yes, force, kept bool
	between          time.Duration
	leases           *store.Client
}

func (v *cleanup) Complete(args []string) error {
	v.name = args[0]
	return nil
}

func (v *cleanup) Validate() error {
	if v.kind.check != nil {
		if err := v.kind.check(v.name); err != nil {
			return err
		}
	}
	if v.between < 0 {
		return app.Usagef("--settle %s is negative", v.between)
	}
	if err := app.CheckText("--reason", v.reason, lease.MaxPastReason); err != nil {
		return err
	}
	return v.output.Validate()
}

// Run finds the leases, judges them, asks, and ends those that it may.
func (v *cleanup) Run(ctx context.Context) (err error) {
	if v.leases, err = v.Leases(); err != nil {
		return err
	}
	found, err := v.kind.find(ctx, v)
	if err != nil {
		return err
	}
	if v.kind.single && len(found) == 0 {
		return resource.PrintLeases(v.App, &v.output, resource.LeaseColumns(v.App, false), nil)
	}
	j, err := v.judge(ctx, found)
	if err != nil {
		return err
	}
	v.announce(j)
	if v.kind.single && len(j.ends) == 0 && len(j.stays) > 0 {
		return j.refused(v)
	}
	if len(j.ends) == 0 {
		v.Say.Note("nothing to end")
		return resource.PrintLeases(v.App, &v.output, resource.LeaseColumns(v.App, false), nil)
	}
	leasing.WarnRefill(ctx, v.App, j.leases())
	question := "End " + humanize.Plural(len(j.ends), "lease") + "?"
	if err := v.Confirm(ctx, v.yes, question); err != nil {
		return err
	}
	return v.end(ctx, j)
}
