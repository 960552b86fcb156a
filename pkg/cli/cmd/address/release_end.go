package address

import (
	"cmp"
	"context"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// end releases addresses. For a selection without --force it waits, checks pods and hosts again, and releases only
// leases whose holders are still gone.
func (v *ipRelease) end(ctx context.Context, j *judgement) (err error) {
	var nodes *hosts.Table
	looks := v.by != nil && !v.force && first(j.ends, isGone) >= 0
	if looks {
		if nodes, err = v.waitAndReadNodes(ctx, j); err != nil {
			return err
		}
	}
	change := leasing.ReleaseBy(ctx, v.App, len(j.ends), v.reason)
	return leasing.GiveUp(ctx, v.App, &v.output, leasesOf(j.ends), "released", func(i int, l lease.Lease) error {
		change := change
		if f := j.ends[i]; looks && f.fate == isGone {
			change.Reason = cmp.Or(v.reason, string(f.pod.Check))
			kept, err := j.again.Release(ctx, l, f.pod.Check, gone.HostOf(nodes.At(l.Host)), change, v.kept)
			switch {
			case err != nil || kept == "":
				return err
			case v.by.single:
				return app.Refuse(app.ReasonLeaseChanged, "%s", kept).
					WithHint("see who has it now: bcsnetctl ip describe %s", l.Addr)
			}
			return leasing.LeftAlone(kept)
		}
		return leasing.GiveUpOne(ctx, v.App, v.leases, l, change, leasing.Giving{Free: v.kept, Side: v.by != nil})
	}, v.report)
}

// waitAndReadNodes waits for --settle and reads the nodes for the second check.
func (v *ipRelease) waitAndReadNodes(ctx context.Context, j *judgement) (*hosts.Table, error) {
	if v.DryRun == app.DryRunNone {
		if err := j.again.Wait(ctx, humanize.Plural(count(j.ends, isGone), "lease")); err != nil {
			return nil, &app.Failure{Message: "nothing was released", Cause: err}
		}
	}
	nodes, err := resource.ListNodes(ctx, v.App)
	return resource.Table(nodes), err
}

// report prints which addresses were released. It names those that are not free: a claim keeps them, or the other pod
// of a migrating virtual machine has them.
func (v *ipRelease) report(released []lease.Lease) {
	both := func(l lease.Lease) bool {
		return l.Other == nil || v.by == nil || slices.ContainsFunc(released, func(o lease.Lease) bool {
			return o.Addr == l.Addr && o.FromSecond != l.FromSecond
		})
	}
	var given, stay []lease.Lease
	for _, l := range released {
		switch {
		case !both(l):
			v.Say.Done("%s no longer has %s; %s has it", l.Who(), l.Addr, l.Other.Where())
			continue
		case l.State == lease.Active && l.KeptOnRelease() && !v.kept:
			stay = append(stay, l)
		}
		given = append(given, l)
	}
	if n := len(distinct(given)); n > 0 {
		v.Say.Done("%s released", humanize.Plural(n, "address"))
	}
	n := len(distinct(stay))
	if n == 0 {
		return
	}
	set := ipaddr.SetOfAddrs(distinct(stay)...)
	v.Say.Note("%s reserved for %s: %s", humanize.OneOr(n, "it stays", "they stay"),
		humanize.OneOr(n, "its claim", "their claims"), resource.Spell(set))
	v.Hint("to give %s back to %s pool, release %s again: bcsnetctl ip release %s", humanize.OneOr(n, "it", "them"),
		humanize.OneOr(n, "its", "their"), humanize.OneOr(n, "it", "them"), resource.Arguments(set))
}
