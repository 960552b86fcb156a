package address

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// maxOwner is the maximum length of an owner's name in bytes, as in the schema.
const maxOwner = 253

type ipAllocate struct {
	*app.App
	output               printer.Output
	pool, owner, address string
	request              allocator.Request
}

func newAllocate(s *app.App) *cobra.Command {
	v := &ipAllocate{App: s}
	cmd := &cobra.Command{
		Use: "allocate --pool POOL --for NAME", Aliases: []string{"alloc"}, Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Take an address for a machine that is not a pod",
		Long: `Take an address for a machine that is not a pod: a VM, an appliance, a virtual
address. The name given to --for holds it until somebody releases it. The same
name gets the same address again.

The pool's hosts and namespaces do not matter. The address goes to standard
output; with --no-headers it is the first word.`,
		Example: `  bcsnetctl ip allocate --pool blue --for vm-db-1
  bcsnetctl ip allocate --pool blue --for vip-web --address 10.0.0.20`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&v.pool, "pool", "", "the `POOL` to take it from")
	cmd.Flags().StringVar(&v.owner, "for", "", "the `NAME` that holds it")
	cmd.Flags().StringVar(&v.address, "address", "", "this `ADDRESS` and no other")
	app.CompleteWith(cmd, "pool", resource.CompletePools(s))
	app.Complete(cmd, "for")
	app.Complete(cmd, "address")
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return cmd
}

func (v *ipAllocate) Validate() error {
	switch {
	case v.pool == "":
		return app.Usagef("--pool is missing: it says where to take the address from")
	case v.owner == "":
		return app.Usagef("--for is missing: it says in whose name to hold the address")
	}
	if err := app.CheckText("--for", v.owner, maxOwner); err != nil {
		return err
	}
	v.request = allocator.Request{Owner: v.owner, Pool: v.pool}
	if v.address != "" {
		a, err := ipaddr.ParseAddr(resource.AddressWord(v.address))
		if err != nil {
			return app.Usagef("--address: %v", err)
		}
		v.request.Addrs = []netip.Addr{a}
	}
	return v.output.Validate()
}

func (v *ipAllocate) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, []string{v.address}); err != nil {
		return err
	}
	if _, err := resource.OnePool(ctx, v.App, v.pool); err != nil {
		return err
	}
	resource.OutlivePipes()
	a, err := leasing.Start(ctx, v.App, nil)
	if err != nil {
		return err
	}
	defer a.Stop()
	// A deleted pool waits this long for requests that do not know of its deletion. The time counts from the reading of
	// the pools.
	asking, cancel := context.WithTimeout(ctx, allocator.MaxRequestTime)
	defer cancel()
	if err := a.Open(asking, v.App); err != nil {
		return err
	}
	v.request.StartedAt = a.Leases.Now()
	if v.DryRun != app.DryRunNone {
		return v.propose(asking, a)
	}
	got, err := a.Adder.Allocate(asking, v.request)
	if err != nil {
		return v.unsettled(ctx, asking, err)
	}
	var held, fresh []lease.Lease
	for _, g := range got {
		if g.StartedAt.Equal(v.request.StartedAt) {
			fresh = append(fresh, g.Lease)
		} else {
			held = append(held, g.Lease)
		}
	}
	return v.report(held, fresh)
}

// unsettled returns an error with a hint how to find out whether an address is held, if the outcome is unknown: the
// user interrupted the request, its time was over, or the API server did not say.
func (v *ipAllocate) unsettled(ctx, asking context.Context, err error) error {
	f := (&app.Failure{Cause: err}).
		WithHint("run it again: the same name gets the same address; what it has: bcsnetctl ip find %q --for", v.owner)
	var r *ipam.Refusal
	switch {
	case ctx.Err() != nil:
		f.Cause = nil // that is said by itself
		f.Message = "whether " + v.owner + " has got an address is unknown"
	case asking.Err() != nil:
		f.Message, f.Code = fmt.Sprintf("whether %s has got an address is unknown: it took longer than %s", v.owner,
			allocator.MaxRequestTime), app.ExitTimeout
	case errors.As(err, &r) && (r.Reason == ipam.ReasonUnavailable || r.Reason == ipam.ReasonOutcomeUnknown):
		f.Reason, f.Message = r.Reason, r.Message
	default:
		return err
	}
	return f
}

// propose shows what would be allocated. With --dry-run=server, the API server checks it, too.
func (v *ipAllocate) propose(ctx context.Context, a *leasing.Allocator) error {
	held, fresh, err := a.Adder.Propose(ctx, v.request)
	if err != nil {
		return err
	}
	for _, l := range fresh {
		if v.DryRun != app.DryRunServer {
			continue
		}
		if _, err := a.Leases.Write(ctx, l); err != nil {
			return resource.Explain(v.App, err)
		}
	}
	return v.report(held, fresh)
}

// report prints the addresses that the owner has: as notes if the table cannot be printed.
func (v *ipAllocate) report(held, fresh []lease.Lease) error {
	err := resource.PrintLeases(v.App, &v.output, resource.LeaseColumns(v.App, false), append(held, fresh...))
	for _, l := range held {
		v.Say.Note("%s has %s of pool %s already", v.owner, l.Addr, l.Pool)
	}
	for _, l := range fresh {
		v.Say.Done("%s of pool %s allocated for %s", l.Addr, l.Pool, v.owner)
		if v.DryRun != app.DryRunNone {
			continue // there is nothing to give back
		}
		v.Hint("to release it: bcsnetctl ip release %s", l.Addr)
	}
	return err
}
