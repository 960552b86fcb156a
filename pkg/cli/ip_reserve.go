package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ipReserve sets addresses aside, or has them handed out again.
type ipReserve struct {
	*app.App
	output  printer.Output
	args    []string
	entries []resource.Entry
	reason  string
	reserve bool
	// again: addresses that were set aside by somebody before. What cannot be is left out and said.
	again bool
	by    string
}

func newIPReserve(s *app.App) *cobra.Command {
	v := &ipReserve{App: s, reserve: true}
	return v.command(&cobra.Command{
		Use: "reserve ADDRESS...", Short: "Set free addresses aside: nobody gets them",
		Long: `Set free addresses aside: single ones, ranges a-b with both ends, or CIDRs, up
to 4096 in one call. They stay in their pool, and nobody gets them until they
are unreserved. Addresses in use, addresses that a claim keeps and addresses of
no pool are refused before any is set aside; one that is set aside already is no
error.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl ip reserve 10.0.0.20 --reason "printer on floor 3"
  bcsnetctl ip reserve 10.0.0.64-10.0.0.79 10.0.0.128/28 --dry-run=client`,
		ValidArgsFunction: cobra.NoFileCompletions,
	})
}

func newIPUnreserve(s *app.App) *cobra.Command {
	return (&ipReserve{App: s}).command(&cobra.Command{
		Use: "unreserve ADDRESS...", Short: "Have reserved addresses handed out again",
		Long: `Have reserved addresses handed out again: single ones, ranges a-b with both
ends, or CIDRs, up to 4096 in one call. Addresses in use, and addresses that a
claim keeps, are refused before any is changed; one that is not reserved is no
error.

- reads addresses from standard input, one entry a line.`,
		Example: `  bcsnetctl ip unreserve 10.0.0.20
  bcsnetctl ip unreserve 10.0.0.64-10.0.0.79 --reason "lab closed"`,
		ValidArgsFunction: resource.CompleteLeases(s, resource.SetAside()),
	})
}

func (v *ipReserve) command(cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = app.Takes(1, 0), app.Runs(v)
	app.AddReason(cmd, &v.reason)
	v.DryRun.AddTo(cmd)
	v.output.AddToChange(cmd)
	return cmd
}

func (v *ipReserve) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipReserve) Validate() (err error) {
	if v.entries, err = resource.ParseEntries(resource.AddressWords(v.args)); err != nil {
		return err
	}
	if err := resource.NotTooMany(ipaddr.SetOf(resource.RangesOf(v.entries)...)); err != nil {
		return err
	}
	if err := app.CheckText("--reason", v.reason, ipam.MaxPastReason); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *ipReserve) Run(ctx context.Context) error {
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	x, err := resource.PoolPlans(ctx, v.App)
	if err != nil {
		return err
	}
	all, err := resource.ReadAddresses(ctx, v.App, leases, resource.AddressesOf(v.entries))
	if err != nil {
		return err
	}
	todo, err := v.check(x, all)
	if err != nil && !v.again {
		return err
	}
	return app.Several(append(app.Flatten(err), app.Flatten(v.write(ctx, x, leases, todo))...)).OrNil()
}

// check refuses, before anything is written, what cannot be done. It returns the addresses to change.
func (v *ipReserve) check(x *ipam.Index, all []ipam.Lease) (todo []ipam.Lease, err error) {
	var failed app.Several
	var outside, same []netip.Addr
	var why *ipam.Refusal
	for _, l := range all {
		pool, refusal := x.Candidate(l.Addr, v.Now())
		switch {
		case pool.Name == "" && (v.reserve || l.Version == 0):
			outside, why = append(outside, l.Addr), refusal
		case l.State == ipam.Active:
			failed = append(failed, v.inUse(l))
		case l.IsRetained():
			failed = append(failed, resource.RetainedByClaim(l))
		case l.Deleting:
			failed = append(failed, app.Refuse(ipam.ReasonUnavailable, "the object of address %s is being deleted", l.Addr).WithHint("try again in a moment"))
		case v.reserve && pool.Terminating:
			failed = append(failed, app.Refuse(app.ReasonPoolTerminating, "address %s is in pool %s, which is being deleted", l.Addr, pool.Name).
				WithHint("see what it waits for: bcsnetctl pool describe %s", pool.Name))
		case v.reserve && l.State == ipam.Available && x.Rebuilding(pool.Name) != "":
			failed = append(failed, app.Refuse(ipam.ReasonPoolRebuilding, "address %s is in pool %s, which is being rebuilt after its leases were lost, %s",
				l.Addr, pool.Name, x.Rebuilding(pool.Name)).WithHint("try again then; see: bcsnetctl pool describe %s", pool.Name))
		case (l.State == ipam.Reserved) == v.reserve:
			same = append(same, l.Addr)
		default:
			todo = append(todo, l)
		}
	}
	if failed = append(failed, noPool(outside, why)...); len(failed) > 0 && v.again {
		err = failed
	} else if len(failed) > 0 {
		return nil, resource.NoneDone(v.App, len(all), v.done(), failed)
	}
	if len(same) > 0 {
		state := map[bool]string{true: "reserved already", false: "not reserved"}[v.reserve]
		if v.reserve && v.reason != "" && !v.again {
			state += ", and the reason stays as it was"
		}
		v.Say.Note("%s: %s", state, resource.Spell(ipaddr.SetOfAddrs(same...)))
	}
	return todo, err
}

// noPool is the error for addresses that no pool hands out; why is that for the last of them.
func noPool(outside []netip.Addr, why *ipam.Refusal) app.Several {
	switch len(outside) {
	case 0:
		return nil
	case 1:
		return app.Several{why}
	default:
		return app.Several{app.Refuse(ipam.ReasonAddressNotInPool, "%s no pool hands out: %s", humanize.Plural(len(outside), "address"), resource.Spell(ipaddr.SetOfAddrs(outside...))).
			WithHint("see what pools have: bcsnetctl pool list")}
	}
}

func (v *ipReserve) inUse(l ipam.Lease) error {
	if v.reserve {
		return app.Refuse(ipam.ReasonAddressInUse, "address %s of pool %s is held by %s", l.Addr, l.Pool, l.Where()).
			WithHint("see what would free it: bcsnetctl ip describe %s", l.Addr)
	}
	return app.Refuse(ipam.ReasonAddressInUse, "address %s of pool %s is not reserved but held by %s", l.Addr, l.Pool, l.Where()).
		WithHint("to take it away: bcsnetctl ip release %s", l.Addr)
}

func (v *ipReserve) write(ctx context.Context, x *ipam.Index, leases *store.Client, todo []ipam.Lease) error {
	verb := ipam.VerbReserve
	if !v.reserve {
		verb = ipam.VerbUnreserve
	}
	change := ipam.Change{Verb: verb, Reason: v.reason}
	if v.DryRun != app.DryRunClient && len(todo) > 0 {
		change = v.Change(ctx, verb, v.reason)
		change.By = cmp.Or(v.by, change.By)
	}
	changed := make([]ipam.Lease, len(todo))
	failed := resource.InBulk(ctx, v.App, todo, v.done(), func(i int, l ipam.Lease) (err error) {
		if v.reserve {
			changed[i], err = v.set(ctx, x, leases, l, change)
		} else {
			changed[i], err = v.unset(ctx, leases, l, change)
		}
		return err
	})
	var stored []ipam.Lease
	var addrs []netip.Addr
	for i, l := range changed {
		if failed[i] == nil {
			stored, addrs = append(stored, l), append(addrs, l.Addr)
		}
	}
	if len(addrs) > 0 {
		v.Say.Done("%s %s: %s", humanize.Plural(len(addrs), "address"), v.done(), resource.Spell(ipaddr.SetOfAddrs(addrs...)))
	}
	var printed error
	if v.output.Printer != nil {
		printed = printLeases(v.App, &v.output, nil, stored)
	}
	return app.Several{resource.Unfinished(ctx, v.done(), todo, failed), printed}.Compact()
}

// done is what becomes of addresses.
func (v *ipReserve) done() string {
	if v.reserve {
		return "reserved"
	}
	return "unreserved"
}

// set sets one address aside.
func (v *ipReserve) set(ctx context.Context, x *ipam.Index, leases *store.Client, l ipam.Lease, c ipam.Change) (ipam.Lease, error) {
	pool, _ := x.Candidate(l.Addr, v.Now())
	if v.DryRun == app.DryRunClient {
		next, _ := ipam.Reserve(l, pool.Params(), leases.Now(), c) // check has seen that it can be
		return next, nil
	}
	now, reserved, err := allocator.ReserveLease(ctx, leases, l, pool.Params(), c)
	if err != nil || reserved || now.State == ipam.Reserved {
		return now, err
	}
	if now.Deleting {
		return now, fmt.Errorf("the object of address %s is being deleted", l.Addr)
	}
	return now, v.inUse(now)
}

// unset has one address handed out again, unless somebody else was faster.
func (v *ipReserve) unset(ctx context.Context, leases *store.Client, l ipam.Lease, c ipam.Change) (ipam.Lease, error) {
	next, _ := ipam.Release(l, leases.Now(), c)
	if v.DryRun == app.DryRunClient {
		return next, nil
	}
	released, err := allocator.ReleaseLease(ctx, leases, l, c, func(now ipam.Lease) bool {
		return now.State == ipam.Reserved && now.Updated.Equal(l.Updated)
	})
	if err == nil && !released {
		err = app.Refuse(app.ReasonLeaseChanged, "%s was not unreserved: it has changed hands meanwhile", l.Addr).
			WithHint("see who has it: bcsnetctl ip describe %s", l.Addr)
	}
	return next, err
}
