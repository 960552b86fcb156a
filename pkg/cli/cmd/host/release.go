package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

type releaseVerb struct {
	*app.App
	output printer.Output
	typed  int
	from   resource.HostArgs
	hosts  []netip.Addr
	reason string
	force  bool

	wait    bool
	timeout time.Duration
}

// NewReleaseHost returns the command release-host.
func NewReleaseHost(s *app.App) *cobra.Command {
	v := &releaseVerb{App: s}
	cmd := &cobra.Command{
		Use: "release-host HOST|NODE...", GroupID: "objects", Args: cobra.ArbitraryArgs, RunE: app.Runs(v),
		Short: "Free every address in use on hosts that are off",
		Long: `Free every address in use on hosts, only if the machines are powered off. Pods
that still exist lose their addresses, too: others may get them at once. Nothing
is asked, so that scripts can call this; look first with --dry-run=client. The
addresses that were released go to standard output, as they were before.

A Ready node is on: if a host with addresses in use is one, nothing is released
of any host without --force. Nodes that are not Ready, and hosts that are not
nodes, for example because the machine is gone, need no flag.

` + resource.HostArgsHelp + ` A host
that holds nothing is not an error. Several hosts are checked once more at the
end: addresses that a host got before its turn are freed, too. If the command
fails, run it again: it does the rest. With --wait the command does that itself,
and frees what a host takes meanwhile, until two checks in a row find nothing.`,
		Example: `  bcsnetctl release-host 10.0.0.11 --dry-run=client
  bcsnetctl release-host 10.0.0.11 10.0.0.12 -o name
  bcsnetctl host list -o jsonpath='` + goneHosts + `' | bcsnetctl release-host -`,
		ValidArgsFunction: resource.CompleteHosts(s),
	}
	v.from.AddTo(s, cmd)
	cmd.Flags().BoolVar(&v.force, "force", false, "also take the addresses of hosts that are Ready nodes")
	cmd.Flags().BoolVar(&v.wait, "wait", false, "go on until each host holds nothing; a dry run does not wait")
	cmd.Flags().DurationVar(&v.timeout, "timeout", time.Minute,
		"how long to wait once each host was tried; 0 is for ever")
	s.DryRun.AddTo(cmd)
	app.AddReason(cmd, &v.reason)
	v.output.AddTo(cmd)
	return cmd
}

// newRelease returns host release, another name of release-host.
func newRelease(s *app.App) *cobra.Command {
	cmd := NewReleaseHost(s)
	cmd.Use, cmd.GroupID = "release HOST|NODE...", ""
	cmd.Example = strings.ReplaceAll(cmd.Example, "release-host", "host release")
	return cmd
}

func (v *releaseVerb) Complete(args []string) error {
	v.typed = len(args)
	return v.from.Read(v.App, args)
}

func (v *releaseVerb) Validate() error {
	if err := v.from.Validate(v.typed); err != nil {
		return err
	}
	v.from.Nodes, v.from.Names = append(v.from.Nodes, v.from.Names...), nil
	if err := app.CheckText("--reason", v.reason, lease.MaxPastReason); err != nil {
		return err
	}
	if v.timeout < 0 {
		return app.Usagef("--timeout %s is negative", v.timeout)
	}
	return v.output.Validate()
}

func (v *releaseVerb) Run(ctx context.Context) error {
	leases, err := v.Leases()
	if err != nil {
		return err
	}
	nodes, err := v.from.Matched(ctx, v.App)
	if f, ok := errors.AsType[*app.Failure](err); ok && f.Reason == app.ReasonNodeNotFound {
		return f.WithHint("if the node is gone, name the machine by its IP; see them: bcsnetctl host list")
	} else if err != nil {
		return err
	}
	v.hosts = resource.WithAll(v.from.Hosts, nodes)
	resource.OutlivePipes()
	if len(v.hosts) == 0 {
		v.Say.Note("no host is named: nothing to release")
	}
	r := &releaseRun{releaseVerb: v, leases: leases, at: map[netip.Addr]*hostState{}}
	tried := r.first(ctx)
	if len(r.refused) > 0 {
		if n := len(v.hosts); n > 1 {
			v.Say.Warn("nothing was released on any of the %s:", humanize.Plural(n, "host"))
		}
		return r.refused
	}
	var failed app.Several
	switch {
	case v.DryRun == app.DryRunNone && v.wait && ctx.Err() == nil && !hopeless(r.unread):
		failed = r.untilQuiet(ctx)
	case v.DryRun == app.DryRunNone && tried == len(v.hosts) && tried > 1 && ctx.Err() == nil:
		failed = append(r.recheck(ctx), r.failures(ctx)...)
	default:
		failed = r.failures(ctx)
		if rest := len(v.hosts) - tried; rest > 0 {
			failed = append(failed, (&app.Failure{Message: humanize.Plural(rest, "more host") +
				" not tried"}).WithHint("%s", hintRest))
		}
	}
	slices.SortFunc(r.released, func(a, b lease.Lease) int { return a.Addr.Compare(b.Addr) })
	if err := resource.PrintLeases(v.App, &v.output, resource.LeaseColumns(v.App, false), r.released); err != nil {
		failed = append(failed, err)
	}
	return failed.OrNil()
}

// heldOn lists the addresses in use on hosts by one request, because standard input may name ten thousand hosts.
func (v *releaseVerb) heldOn(ctx context.Context, hosts []netip.Addr) (map[netip.Addr][]lease.Lease, error) {
	query := resource.LeaseQuery{Status: lease.Active.String()}
	if len(hosts) == 1 {
		query.Host = hosts[0].String()
	}
	out := make(map[netip.Addr][]lease.Lease, len(hosts))
	for _, h := range hosts {
		out[h] = nil
	}
	all, err := resource.HeldLeases(ctx, v.App, query,
		func(l lease.Lease) bool { _, wanted := out[l.Host]; return wanted })
	for _, l := range all {
		for l := range l.Attachments() {
			if _, wanted := out[l.Host]; wanted {
				out[l.Host] = append(out[l.Host], l)
			}
		}
	}
	return out, err
}

// partly returns the error for a host that still holds addresses.
func (v *releaseVerb) partly(ctx context.Context, h netip.Addr, gone, held int, err error) error {
	if isRefused(err) {
		return err
	}
	f := &app.Failure{
		Message: fmt.Sprintf("host %s: %d of %s released", h, gone, humanize.Plural(held, "address")), Cause: err,
	}
	f.Hint = hintRest
	var r *ipam.Refusal
	switch {
	case ctx.Err() != nil:
		f.Cause = nil
	case errors.As(err, &r):
		f.Reason = r.Reason
		f.Message += ": " + strings.TrimSuffix(err.Error(), "; hint: "+r.Hint)
		if r.Reason == ipam.ReasonForbidden {
			f.Hint = app.HintRights
		}
	default:
		f.Message += ": " + resource.Explain(v.App, err).Error()
	}
	return f
}
