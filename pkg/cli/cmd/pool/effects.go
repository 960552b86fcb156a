package pool

import (
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

// effects describes what a change of a pool means for leases and for other pools.
type effects struct {
	// more and fewer are the addresses that the pool would hand out beyond those of today, and no longer.
	more, fewer *netipx.IPSet
	// drains are the leases on addresses that the pool would lose.
	drains []lease.Lease
	// cutOff are the hosts that could no longer draw and hold addresses, with how many.
	cutOff []hostShare
	// hostless: the pool would lose its last host.
	hostless bool
	// newGateway: the gateway changes, to gateway, which is invalid for none; oldGateway is how many leases keep the old
	// one.
	newGateway bool
	gateway    netip.Addr
	oldGateway int
	overlaps   []resource.Share
	// shifts are what its parent and its groups get or lose by it.
	shifts []resource.Shift
	chain  chainEffects
}

type hostShare struct {
	host netip.Addr
	held int
}

// effectsOf compares a pool before and after a change, as it serves beside the others. before is empty for a pool that
// is new; leases are those of the pool that are Active or Reserved.
func effectsOf(before, after ipam.Pool, leases []lease.Lease, fit *resource.Fit) effects {
	was, is := before.Usable(), after.Usable()
	e := effects{
		more: ipaddr.Subtract(is, was), fewer: ipaddr.Subtract(was, is),
		hostless: !before.NoHosts() && after.NoHosts(),
	}
	held := map[netip.Addr]int{}
	e.gateway = after.Plan.Gateway
	e.newGateway = before.Plan.Subnet.IsValid() && before.Plan.Gateway != e.gateway
	for _, l := range leases {
		if e.fewer.Contains(l.Addr) {
			e.drains = append(e.drains, l)
		}
		if l.State != lease.Active {
			continue
		}
		held[l.Host]++
		if e.newGateway && l.Gateway != e.gateway {
			e.oldGateway++
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(held), netip.Addr.Compare) {
		if before.Draws(h) && !after.Draws(h) {
			e.cutOff = append(e.cutOff, hostShare{h, held[h]})
		}
	}
	e.overlaps, e.shifts = fit.Owners(after.Name, e.more), fit.Shifts(after.Name)
	return e
}

// touches reports whether the change touches something that is in use.
func (e effects) touches() bool { return len(e.drains)+len(e.cutOff)+e.oldGateway > 0 }

// effect is one of the effects in words; grave ones want to be read first.
type effect struct {
	text  string
	grave bool
}

// sayEffects prints effects.
func sayEffects(s *app.App, all []effect) {
	for _, line := range all {
		if line.grave {
			s.Say.Warn("%s", line.text)
		} else {
			s.Say.Note("  %s", line.text)
		}
	}
}

// say puts the effects into words.
func (e effects) say() (out []effect) {
	add := func(grave bool, format string, args ...any) {
		out = append(out, effect{fmt.Sprintf(format, args...), grave})
	}
	if n := len(e.drains); n > 0 {
		add(true, "%s held would drain: %s", humanize.Plural(n, "address")+humanize.OneOr(n, " that is", " that are"),
			humanize.List(resource.HeldBy(e.drains)))
	}
	for _, h := range e.cutOff {
		add(true, "host %s could no longer draw and holds %s, which %s until %s", h.host, humanize.Plural(h.held, "address"),
			humanize.OneOr(h.held, "stays", "stay"), humanize.OneOr(h.held, "its pod ends", "their pods end"))
	}
	for _, o := range e.overlaps {
		add(true, "%s would be in pool %s, too: %s", resource.Addresses(o.Addrs), o.Pool.Name, resource.Spell(o.Addrs))
	}
	if e.hostless {
		add(true, "no host could draw from the pool any more")
	}
	if e.newGateway {
		for _, l := range e.drains {
			if l.Addr == e.gateway {
				add(true, "%s, the gateway, is held by %s: pods with that gateway would send to it", l.Addr, l.UsedBy())
			}
		}
		text := "new leases would get no gateway"
		if e.gateway.IsValid() {
			text = fmt.Sprintf("new leases would get the gateway %s", e.gateway)
		}
		if e.oldGateway > 0 {
			text += fmt.Sprintf("; %s in use %s another until %s", humanize.Plural(e.oldGateway, "address"),
				humanize.OneOr(e.oldGateway, "keeps", "keep"), humanize.OneOr(e.oldGateway, "its pod ends", "their pods end"))
		}
		add(e.oldGateway > 0, "%s", text)
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
		}{{o.More, "would get"}, {o.Fewer, "would hand out no more"}} {
			if len(part.of.Ranges()) > 0 {
				add(false, "pool %s %s %s: %s", o.Pool, part.verb, resource.Addresses(part.of), resource.Spell(part.of))
			}
		}
	}
	return append(out, e.chain.say()...)
}
