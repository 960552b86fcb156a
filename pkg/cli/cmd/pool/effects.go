package pool

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// effects describes the effects of a change of a pool on leases and on other pools.
type effects struct {
	// more has the addresses that the pool would newly allocate, fewer those that it would no longer allocate.
	more, fewer *netipx.IPSet
	// drains has the leases whose addresses the pool would lose.
	drains []lease.Lease
	// cutOff has the hosts that hold addresses but could no longer draw, with the number of addresses.
	cutOff []hostShare
	// hostless: no host could draw any more.
	hostless bool
	// settings are those of new leases, changed the names of the settings that differ. Existing leases keep theirs.
	settings lease.Settings
	changed  []string
	kept     *lease.Outdated
	overlaps []resource.Share
	// shifts are the addresses that its parent and its groups would gain or lose.
	shifts []resource.Shift
	// full has the namespaces that a changed quota stops.
	full  []ipam.NamespaceUse
	chain chainEffects
}

type hostShare struct {
	host netip.Addr
	held int
}

// effectsOf compares a pool before and after a change; fit has the other pools. A new pool has an empty before. leases
// are the pool's Active and Reserved ones.
func effectsOf(before, after ipam.Pool, leases []lease.Lease, fit *resource.Fit) effects {
	was, is := before.Usable(), after.Usable()
	e := effects{
		more: ipaddr.Subtract(is, was), fewer: ipaddr.Subtract(was, is),
		hostless: !before.NoHosts() && after.NoHosts(),
	}
	held, charged := map[netip.Addr]int{}, map[string]int{}
	e.settings, e.kept = after.Settings(), lease.NewOutdated(after.Settings())
	if before.Plan.Subnet.IsValid() {
		e.changed = before.Settings().Differ(e.settings)
	}
	for _, l := range leases {
		e.kept.Add(l)
		for _, ns := range l.ChargedTo() {
			charged[ns]++
		}
		if e.fewer.Contains(l.Addr) {
			e.drains = append(e.drains, l)
		}
		if l.State != lease.Active {
			continue
		}
		held[l.Host]++
	}
	for _, h := range slices.SortedFunc(maps.Keys(held), netip.Addr.Compare) {
		if before.Draws(h) && !after.Draws(h) {
			e.cutOff = append(e.cutOff, hostShare{h, held[h]})
		}
	}
	for _, u := range after.QuotaUse(charged) {
		if limit, bounded := before.Quota(u.Namespace); u.Has >= u.Quota && (!bounded || limit != u.Quota) {
			e.full = append(e.full, u)
		}
	}
	e.overlaps, e.shifts = fit.Owners(after.Name, e.more), fit.Shifts(after.Name)
	return e
}

// touches reports whether the change affects leases. Pods with another gateway than the new one may lose it.
func (e effects) touches() bool {
	gateway := slices.Contains(e.changed, lease.SettingGateway) && e.kept.By[lease.SettingGateway]+e.kept.Unknown > 0
	return gateway || len(e.drains)+len(e.cutOff) > 0
}

// unknown returns the number of leases with settings of unknown age, if a setting changes.
func (e effects) unknown() int {
	if len(e.changed) == 0 {
		return 0
	}
	return e.kept.Unknown
}

// effect is one effect as a sentence. Grave ones are printed as warnings.
type effect struct {
	text  string
	grave bool
}

func sayEffects(s *app.App, all []effect) {
	for _, line := range all {
		if line.grave {
			s.Say.Warn("%s", line.text)
		} else {
			s.Say.Note("  %s", line.text)
		}
	}
}

func (e effects) say() (out []effect) {
	add := func(grave bool, format string, args ...any) {
		out = append(out, effect{fmt.Sprintf(format, args...), grave})
	}
	if n := len(e.drains); n > 0 {
		add(true, "%s held would drain: %s", humanize.Plural(n, "address")+humanize.OneOr(n, " that is", " that are"),
			humanize.List(resource.HeldBy(e.drains)))
	}
	for _, h := range e.cutOff {
		add(true, "host %s could no longer draw and holds %s, which %s until %s", h.host, humanize.Plural(h.held,
			"address"),
			humanize.OneOr(h.held, "stays", "stay"), humanize.OneOr(h.held, "its pod ends", "their pods end"))
	}
	for _, o := range e.overlaps {
		add(true, "%s would be in pool %s, too: %s", resource.Addresses(o.Addrs), o.Pool.Name, resource.Spell(o.Addrs))
	}
	if e.hostless {
		add(true, "no host could draw from the pool")
	}
	for _, name := range e.changed {
		for _, l := range e.drains {
			if name == lease.SettingGateway && l.Addr == e.settings.Gateway {
				add(true, "%s, the gateway, is held by %s: pods with that gateway would send to it", l.Addr, l.UsedBy())
			}
		}
		text, n := "new leases would get "+resource.SettingText(e.settings, name), e.kept.By[name]
		if name == lease.SettingGateway && e.settings.Gateway.IsValid() {
			text = fmt.Sprintf("new leases would get the gateway %s", e.settings.Gateway)
		}
		if n > 0 {
			text += fmt.Sprintf("; %s in use %s what %s given until %s", humanize.Plural(n, "address"),
				humanize.OneOr(n, "keeps", "keep"), humanize.OneOr(n, "it was", "they were"),
				humanize.OneOr(n, "its pod ends", "their pods end"))
		}
		add(n > 0, "%s", text)
	}
	if n := e.unknown(); n > 0 {
		add(true, "%s: %s that until %s", resource.UnknownGiven(n), humanize.OneOr(n, "it keeps", "they keep"),
			humanize.OneOr(n, "its pod ends", "their pods end"))
	}
	for _, u := range e.full {
		text := fmt.Sprintf("namespace %s has %d of the %d that it may have: it would get no further address",
			u.Namespace, u.Has, u.Quota)
		if u.Has > 0 {
			text += ", and keeps what it has"
		}
		add(u.Over(), "%s", text)
	}
	if len(e.more.Ranges()) > 0 {
		add(false, "%s more: %s", resource.Addresses(e.more), resource.Spell(e.more))
	}
	if len(e.fewer.Ranges()) > 0 {
		add(false, "%s fewer: %s", resource.Addresses(e.fewer), resource.Spell(e.fewer))
	}
	for _, o := range e.shifts {
		for _, part := range []struct {
			of   *netipx.IPSet
			verb string
		}{{o.More, "would get"}, {o.Fewer, "would stop allocating"}} {
			if len(part.of.Ranges()) > 0 {
				add(false, "pool %s %s %s: %s", o.Pool, part.verb, resource.Addresses(part.of), resource.Spell(part.of))
			}
		}
	}
	return append(out, e.chain.say()...)
}

// addChildren adds to kept the outdated leases of the pool's groups and blocks, which inherit settings.
func (e *effects) addChildren(ctx context.Context, s *app.App, pool string, fit *resource.Fit) error {
	if len(e.changed) == 0 {
		return nil
	}
	counts, changed := map[string]*lease.Outdated{}, map[string][]string{}
	for _, child := range fit.Children(pool) {
		was, is := fit.Settings(child)
		if names := was.Differ(is); len(names) > 0 {
			counts[child], changed[child] = lease.NewOutdated(is), names
		}
	}
	if len(counts) == 0 {
		return nil
	}
	leases, err := s.Leases()
	if err != nil {
		return err
	}
	query := resource.LeaseQuery{Status: lease.Active.String()}
	if err := leases.Each(ctx, query.Selector(), func(l lease.Lease) error {
		if of := counts[l.Pool]; of != nil {
			of.Add(l)
		}
		return nil
	}); err != nil {
		return resource.Explain(s, err)
	}
	for child, of := range counts {
		e.kept.Unknown += of.Unknown
		for _, name := range changed[child] {
			e.kept.By[name] += of.By[name]
		}
	}
	return nil
}
