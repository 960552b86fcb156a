package address

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type ipRelease struct {
	*app.App
	output     printer.Output
	args       []string
	addrs      []netip.Addr
	reason     string
	force, yes bool
}

func newRelease(s *app.App, group string) *cobra.Command {
	v := &ipRelease{App: s}
	cmd := &cobra.Command{
		Use: "release ADDRESS...", Aliases: []string{"free"}, Args: app.Takes(1, 0), RunE: app.Runs(v),
		Short: "Free addresses that somebody holds",
		Long: `Free addresses, after a question: others may get them at once. ADDRESS is a
single one, a range a-b with both ends, or a CIDR; up to 4096 in one call. While
its pod lives, or containers of a pod that is gone may still run, an address is
released only with --force: the controller frees it by itself once that is over.
All addresses are looked at before any is released, and one that has a new
holder by then is left alone. What was released goes to standard output, as it
was before.

An address that a claim keeps and no pod has goes back to its pool; for a claim
that takes its addresses before pods ask, the controller takes another at once.
One that a pod has by a claim which keeps it stays reserved for the claim.

The quarantine of an address that somebody else answered for ends with it.

An address that is free already is no error; - reads addresses from standard
input, one entry a line. What fails can be run again: it does the rest.`,
		Example: `  bcsnetctl ip release 10.0.0.20 --dry-run=client
  bcsnetctl ip release 10.0.0.20 10.0.0.32-10.0.0.63 --force --yes --reason "node lost"
  bcsnetctl ip release 10.0.0.20 --force`,
		ValidArgsFunction: resource.CompleteLeases(s, resource.LeaseQuery{Status: lease.Active.String()},
			resource.Retained()),
	}
	cmd.Flags().BoolVarP(&v.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&v.force, "force", false, "also take the address of a pod that lives, or may still run")
	app.AddReason(cmd, &v.reason)
	s.DryRun.AddTo(cmd)
	v.output.AddTo(cmd)
	return resource.Under(group, cmd)
}

func (v *ipRelease) Complete(args []string) (err error) {
	v.args, err = resource.ArgsOrLines(v.App, "addresses", args)
	return err
}

func (v *ipRelease) Validate() (err error) {
	if v.addrs, err = resource.ParseSets(v.args); err != nil {
		return err
	}
	if err := app.CheckText("--reason", v.reason, lease.MaxPastReason); err != nil {
		return err
	}
	return v.output.Validate()
}

func (v *ipRelease) Run(ctx context.Context) error {
	if err := resource.FitLengths(ctx, v.App, v.args); err != nil {
		return err
	}
	if len(v.addrs) == 0 {
		v.Say.Note("standard input named no address: nothing to release")
		return resource.PrintLeases(v.App, &v.output, resource.LeaseColumns(v.App, false), nil)
	}
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	all, err := resource.ReadAddresses(ctx, v.App, leases, v.addrs)
	if err != nil {
		return err
	}
	held, err := v.check(ctx, all)
	if err != nil {
		return err
	}
	leasing.WarnRefill(ctx, v.App, held)
	if len(held) > 0 {
		if err := v.Confirm(ctx, v.yes, fmt.Sprintf("Release %s?", humanize.Plural(len(held), "address"))); err != nil {
			return err
		}
	}
	return leasing.GiveUp(ctx, v.App, leases, &v.output, held, "released", v.reason, v.noteRetained)
}

// check refuses, before anything is written, what must not be released. It returns what is held.
func (v *ipRelease) check(ctx context.Context, all []lease.Lease) (held []lease.Lease, err error) {
	var failed app.Several
	var free []lease.Lease
	var live []string
	pods, unread := resource.PodStates(ctx, v.App, all)
	for i, l := range all {
		switch {
		case l.IsRetained(), l.IsQuarantined():
			held = append(held, l)
		case l.State == lease.Reserved:
			failed = append(failed, app.Refuse(app.ReasonAddressReserved, "address %s is reserved: nobody holds it", l.Addr).
				WithHint("to have it handed out again: bcsnetctl ip unreserve %s", l.Addr))
		case l.State == lease.Available:
			free = append(free, l)
		case unread[i] != nil && !v.force:
			failed = append(failed, fmt.Errorf("whether the holder of %s lives is unknown: %w", l.Addr, unread[i]))
		case pods[i].Lives && !v.force:
			live = append(live, l.Who())
			failed = append(failed, app.Refuse(app.ReasonPodLives, "address %s is held by %s, and the pod %s", l.Addr,
				holders(l), pods[i].Text).
				WithHint("delete the pod, and the address is released; to take it from the running pod: bcsnetctl ip release %s --force",
					l.Addr))
		case pods[i].MayRun && !v.force:
			failed = append(failed, app.Refuse(app.ReasonPodLives, "address %s is held by %s; the pod %s", l.Addr, holders(l),
				pods[i].Text).
				WithHint(
					"the controller frees it once nobody surely has it; to take it away at once: bcsnetctl ip release %s --force",
					l.Addr))
		default:
			held = append(held, l)
		}
	}
	unknown, err := v.known(ctx, free)
	if err != nil {
		return nil, err
	}
	if failed = append(failed, unknown...); len(failed) > 0 {
		if n := len(live); n > 1 {
			v.Say.Warn("%d of the %s are of pods that live: %s", n, humanize.Plural(len(all), "address"), humanize.List(live))
		}
		return nil, resource.NoneDone(v.App, len(all), "released", failed)
	}
	var ends []leasing.Ending
	for i, l := range all {
		if l.State != lease.Available {
			ends = append(ends, ending(l, pods[i], unread[i]))
		}
	}
	leasing.Announce(v.App, ends)
	if n := len(free); n > 0 {
		var addrs []netip.Addr
		for _, l := range free {
			addrs = append(addrs, l.Addr)
		}
		v.Say.Note("%s %s free already", resource.Spell(ipaddr.SetOfAddrs(addrs...)), humanize.OneOr(n, "is", "are"))
	}
	return held, nil
}

// known refuses addresses that are in no pool and have no object: they are misspelt.
func (v *ipRelease) known(ctx context.Context, free []lease.Lease) (failed app.Several, err error) {
	var x *ipam.Index
	var outside []netip.Addr
	var why *ipam.Refusal
	for _, l := range free {
		if l.Version != 0 {
			continue
		}
		if x == nil {
			if x, err = resource.PoolIndex(ctx, v.App); err != nil {
				return nil, err
			}
		}
		if pool, refusal := x.Candidate(l.Addr, v.Now()); pool.Name == "" {
			outside, why = append(outside, l.Addr), refusal
		}
	}
	return leasing.NoPool(outside, why), nil
}

// ending says what releasing an address does.
func ending(l lease.Lease, pod resource.PodState, unread error) leasing.Ending {
	what := fmt.Sprintf("%s of pool %s: %s", l.Addr, l.Pool, holders(l))
	if l.State == lease.Active && l.KeptOnRelease() {
		what += ", by claim " + l.Claim + ", for which it stays reserved"
	}
	switch {
	case l.IsQuarantined():
		return leasing.Ending{Text: fmt.Sprintf("%s of pool %s: quarantined, as %s answered for it; it goes back to the pool",
			l.Addr, l.Pool, l.Conflict.MAC)}
	case l.State == lease.Reserved:
		return leasing.Ending{Text: fmt.Sprintf("%s of pool %s: %s; no pod has it, and it goes back to the pool", l.Addr,
			l.Pool, resource.RetainedText(l))}
	case unread != nil:
		return leasing.Ending{
			Text: fmt.Sprintf("%s; it is unknown whether the pod lives: %v", what, unread), Grave: true, Loser: l.Who(),
		}
	case pod.MayRun:
		return leasing.Ending{Text: what + "; the pod " + pod.Text, Grave: true}
	case pod.Lives:
		return leasing.Ending{Text: what + "; the pod " + pod.Text + " and loses the address", Grave: true, Loser: l.Who()}
	case pod.Text != "":
		return leasing.Ending{Text: what + "; the pod " + pod.Text}
	case l.Owner != "":
		return leasing.Ending{Text: what + ", which is no pod"}
	}
	return leasing.Ending{Text: what + "; its pod is unknown"}
}

// holders names who has an address, and where: two pods while a virtual machine migrates live.
func holders(l lease.Lease) string {
	var all []string
	for side := range l.Attachments() {
		all = append(all, side.Where())
	}
	return strings.Join(all, " and ")
}

// noteRetained notes which of the addresses that were released are not free.
func (v *ipRelease) noteRetained(released []lease.Lease) {
	var addrs []netip.Addr
	for _, l := range released {
		if l.State == lease.Active && l.KeptOnRelease() {
			addrs = append(addrs, l.Addr)
		}
	}
	if len(addrs) == 0 {
		return
	}
	set := ipaddr.SetOfAddrs(addrs...)
	v.Say.Note("%s reserved for %s: %s", humanize.OneOr(len(addrs), "it stays", "they stay"),
		humanize.OneOr(len(addrs), "its claim", "their claims"), resource.Spell(set))
	v.Hint("to give %s back to %s pool, release %s again: bcsnetctl ip release %s",
		humanize.OneOr(len(addrs), "it", "them"), humanize.OneOr(len(addrs), "its", "their"),
		humanize.OneOr(len(addrs), "it", "them"), resource.Arguments(set))
}
