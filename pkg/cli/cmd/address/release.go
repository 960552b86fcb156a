package address

import (
	"context"
	"fmt"
	"net/netip"
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

// ipRelease releases named addresses, or the addresses of a selection whose holders are gone.
type ipRelease struct {
	*app.App
	output printer.Output
	args   []string
	addrs  []netip.Addr
	// by is the selection whose flag is set, and word the flag's value. by is nil if addresses are named.
	by               *selection
	words            map[string]*string
	word             string
	reason           string
	force, yes, kept bool
	settle           time.Duration
	leases           *store.Client
}

func newRelease(s *app.App, group string) *cobra.Command {
	v := &ipRelease{App: s, words: map[string]*string{}}
	cmd := &cobra.Command{
		Use: "release ADDRESS...", RunE: app.Runs(v),
		Short: "Free addresses that somebody holds",
		Long: `Free addresses, after a question: others may get them at once. ADDRESS is a
single one, a range a-b with both ends, or a CIDR; up to 4096 in one call. While
its pod lives, or containers of a pod that is gone may still run, an address is
released only with --force: the controller releases it automatically when the
containers have certainly ended. The command checks all addresses before it
releases any, and skips one that has a new holder by then. The released
addresses go to standard output, as they were before.

An address that a claim keeps and no pod has returns to its pool; for a claim
that preallocates, the controller takes another one at once. An address that a
pod has by a claim which keeps it stays reserved for the claim.

The release of a quarantined address ends its quarantine.

Releasing a free address is not an error; - reads addresses from standard input,
one entry a line. If the command fails, run it again: it does the rest.

With --network, --pool, --group, --host or --endpoint in place of addresses, the
command releases the addresses whose holders are gone: what the controller would
collect, at once. A holder is gone if its pod is gone and no container of it can
run: its node is Ready, and the pod has been gone for --settle, in two checks. A
shorter --settle is your word that the containers of forcibly deleted pods have
ended. Other addresses are not released but counted, as are those of running
pods and of owners that are not pods; --force releases them, too, at once, and
names the pods. Addresses that claims keep are released only with --kept.`,
		Example: `  bcsnetctl ip release 10.0.0.20 --dry-run=client
  bcsnetctl ip release 10.0.0.20 10.0.0.32-10.0.0.63 --force --yes --reason "node lost"
  bcsnetctl ip release --network prod --dry-run=client
  bcsnetctl ip release --endpoint shop/web-0`,
		ValidArgsFunction: resource.CompleteLeases(s, resource.LeaseQuery{Status: lease.Active.String()},
			resource.Retained()),
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if v.selected() != nil {
			return app.Takes(0, 0)(cmd, args)
		}
		return app.Takes(1, 0)(cmd, args)
	}
	f := cmd.Flags()
	f.BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&v.force, "force", false, "also take the address of a pod that lives, or may still run")
	var names []string
	for _, by := range selections(s) {
		names = append(names, by.name)
		v.words[by.name] = f.String(by.name, "", by.usage)
		app.CompleteWith(cmd, by.name, by.completes)
	}
	cmd.MarkFlagsMutuallyExclusive(names...)
	f.BoolVar(&v.kept, "kept", false, "of a selection, also what claims keep and no pod has")
	f.DurationVar(&v.settle, "settle", time.Minute,
		"how long the pods of a selection must be gone before what they held is released")
	app.AddReason(cmd, &v.reason)
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return resource.Under(group, cmd)
}

// selected returns the selection whose flag is set; nil if none is.
func (v *ipRelease) selected() *selection {
	for _, by := range selections(v.App) {
		if *v.words[by.name] != "" {
			return &by
		}
	}
	return nil
}

func (v *ipRelease) Complete(args []string) (err error) {
	if v.by = v.selected(); v.by != nil {
		v.word = *v.words[v.by.name]
	}
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipRelease) Validate() (err error) {
	switch {
	case v.by == nil && v.kept:
		return app.Usagef("--kept goes with a selection, such as --pool: named addresses are released without it")
	case v.settle < 0:
		return app.Usagef("--settle %s is negative", v.settle)
	case v.by != nil && v.by.check != nil:
		if err := v.by.check(v.word); err != nil {
			return err
		}
	}
	if v.addrs, err = resource.ParseSets(v.args); err != nil {
		return err
	}
	if err := app.CheckText("--reason", v.reason, lease.MaxPastReason); err != nil {
		return err
	}
	return v.output.Validate()
}

// Run reads the leases, judges their holders, asks for confirmation and releases the leases.
func (v *ipRelease) Run(ctx context.Context) (err error) {
	if v.leases, err = v.Leases(); err != nil {
		return err
	}
	all, err := v.find(ctx)
	if err != nil {
		return err
	}
	j := v.judge(ctx, all)
	if err := v.check(ctx, j); err != nil {
		return err
	}
	held := leasesOf(j.ends)
	leasing.WarnRefill(ctx, v.App, held)
	if len(held) > 0 {
		if err := v.Confirm(ctx, v.yes, fmt.Sprintf("Release %s?", humanize.Plural(len(held), "address"))); err != nil {
			return err
		}
	}
	return v.end(ctx, j)
}

func (v *ipRelease) find(ctx context.Context) ([]lease.Lease, error) {
	if v.by != nil {
		return v.by.find(ctx, v)
	}
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return nil, err
	}
	if len(v.addrs) == 0 {
		v.Say.Note("standard input named no address: nothing to release")
	}
	return resource.ReadAddresses(ctx, v.App, v.leases, v.addrs)
}
