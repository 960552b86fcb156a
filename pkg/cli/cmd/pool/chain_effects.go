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
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// chainEffects describes how a change of a pool alters the chains of namespaces.
type chainEffects struct {
	pool string
	// leave has the namespaces that leave the default chain, join those that return to it. leaveThere and joinThere do
	// so only on the hosts of pools with autoAssign.
	leave, join, leaveThere, joinThere []string
	// unserved has the hosts on which a leaving namespace gets no address any more.
	unserved []unservedHosts
	// shadows has the pools of the default chain that newly serve fewer hosts or none, because other pools give blocks
	// there.
	shadows []index.Shadow
	// poolLeaves and poolJoins: the pool itself leaves or joins the default chain. onlyByName: it serves only requests
	// that name it.
	poolLeaves, poolJoins, onlyByName bool
	// cutOff has the namespaces that the pool no longer serves although they hold addresses of it, with their number.
	cutOff []namespaceShare
}

type unservedHosts struct {
	namespace string
	hosts     *netipx.IPSet
}

type namespaceShare struct {
	namespace string
	held      int
}

// sameChains reports whether two states of a pool are equivalent for the chains of all namespaces, whatever their
// labels: both select the same namespaces, and both or neither give blocks automatically.
func sameChains(a, b ipam.Pool) bool {
	return a.NotDefault == b.NotDefault && gives(a) == gives(b) && selectorText(a.NamespaceSelector) ==
		selectorText(b.NamespaceSelector) &&
		maps.EqualFunc(a.Namespaces, b.Namespaces, func(struct{}, struct{}) bool { return true })
}

// sameShadows reports whether two states of a pool leave the same hosts to the pools of the default chain.
func sameShadows(a, b ipam.Pool, others []ipam.Pool) bool {
	return !slices.ContainsFunc(append(others, a, b), gives) || gives(a) == gives(b) &&
		maps.Equal(a.Hosts, b.Hosts) && maps.Equal(a.HostSubnets, b.HostSubnets)
}

// gives reports whether a pool gives blocks automatically.
func gives(p ipam.Pool) bool { return p.BlockSize > 0 && p.AutoAssign }

func selectorText(s ipam.Selector) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// chainEffectsOf compares the chains of namespaces before and after a change of a pool. A new pool has a before without
// a name. labels has the existing namespaces, leases the pool's leases that are not free.
func chainEffectsOf(
	before, after ipam.Pool, others []ipam.Pool, labels map[string]map[string]string, leases []lease.Lease,
) chainEffects {
	e := chainEffects{pool: after.Name, onlyByName: !after.Bound() && after.NotDefault}
	if before.Name != "" {
		e.poolLeaves = before.InDefaultChain() && !after.InDefaultChain()
		e.poolJoins = !before.InDefaultChain() && after.InDefaultChain()
	}
	was, is := index.New(), index.New()
	names := map[string]bool{}
	for _, x := range []*index.Index{was, is} {
		for ns, of := range labels {
			x.Pools.SetNamespace(ns, of)
			names[ns] = true
		}
		for _, p := range others {
			x.Pools.SetPool(p)
		}
	}
	if before.Name != "" {
		was.Pools.SetPool(before)
	}
	is.Pools.SetPool(after)
	for _, p := range []ipam.Pool{before, after} {
		for ns := range p.Namespaces {
			names[ns] = true
		}
	}
	var anyHost netip.Addr
	for _, ns := range slices.Sorted(maps.Keys(names)) {
		had, has := len(was.Pools.Own(ns, anyHost)) > 0, len(is.Pools.Own(ns, anyHost)) > 0
		hadAll, hasAll := was.Pools.OwnsEverywhere(ns), is.Pools.OwnsEverywhere(ns)
		switch {
		case hasAll && !hadAll:
			e.leave = append(e.leave, ns)
			if hosts := ipaddr.Subtract(is.Pools.Unserved(ns), was.Pools.Unserved(ns)); len(hosts.Ranges()) > 0 {
				e.unserved = append(e.unserved, unservedHosts{ns, hosts})
			}
		case hadAll && !hasAll && !has:
			e.join = append(e.join, ns)
		case has && !had:
			e.leaveThere = append(e.leaveThere, ns)
		case had && !has || hadAll && !hasAll:
			e.joinThere = append(e.joinThere, ns)
		}
	}
	known := was.Pools.Shadows()
	for _, o := range is.Pools.Shadows() {
		if !slices.ContainsFunc(known, func(k index.Shadow) bool {
			return k.Pool == o.Pool && k.Whole == o.Whole && slices.Equal(k.By, o.By)
		}) {
			e.shadows = append(e.shadows, o)
		}
	}
	held := map[string]int{}
	for _, l := range leases {
		if l.State == lease.Active && l.Namespace != "" {
			held[l.Namespace]++
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(held)) {
		if was.Pools.ServesNamespace(after.Name, ns) && !is.Pools.ServesNamespace(after.Name, ns) {
			e.cutOff = append(e.cutOff, namespaceShare{ns, held[ns]})
		}
	}
	return e
}

func (e chainEffects) say() (out []effect) {
	add := func(grave bool, format string, args ...any) {
		out = append(out, effect{fmt.Sprintf(format, args...), grave})
	}
	switch {
	case e.poolJoins:
		add(true, "pool %s joins the default chain: it serves every namespace without its own pools", e.pool)
	case e.poolLeaves && e.onlyByName:
		add(false, "pool %s leaves the default chain: it serves only requests that name it", e.pool)
	case e.poolLeaves:
		add(false, "pool %s leaves the default chain: it serves only the namespaces that are bound to it", e.pool)
	}
	if n := len(e.leave); n > 0 {
		add(false, "%s %s %s the default chain: %s", humanize.OneOr(n, "namespace", "namespaces"),
			humanize.List(e.leave),
			humanize.OneOr(n, "leaves", "leave"), humanize.OneOr(n, "it draws only from its own pools",
				"they draw only from their own pools"))
	}
	for _, u := range e.unserved {
		add(true, "namespace %s gets no addresses on hosts that none of its own pools admits: %s",
			u.namespace, resource.Spell(u.hosts))
	}
	if n := len(e.join); n > 0 {
		add(false, "%s %s %s the default chain: %s", humanize.OneOr(n, "namespace", "namespaces"),
			humanize.List(e.join), humanize.OneOr(n, "joins", "join"), humanize.OneOr(n, "it has no pools of its own",
				"they have no pools of their own"))
	}
	if n := len(e.leaveThere); n > 0 {
		add(false, "%s %s %s from %s blocks on the hosts of pool %s, and %s in the default chain only on others",
			humanize.OneOr(n, "namespace", "namespaces"), humanize.List(e.leaveThere), humanize.OneOr(n, "draws",
				"draw"),
			humanize.OneOr(n, "its", "their"), e.pool, humanize.OneOr(n, "is", "are"))
	}
	if n := len(e.joinThere); n > 0 {
		add(false, "%s %s %s the default chain on hosts for which %s no pools of %s own",
			humanize.OneOr(n, "namespace", "namespaces"), humanize.List(e.joinThere), humanize.OneOr(n, "joins",
				"join"),
			humanize.OneOr(n, "it has", "they have"), humanize.OneOr(n, "its", "their"))
	}
	for _, o := range e.shadows {
		where := fmt.Sprintf("on the hosts of %s", app.Those("pool", o.By))
		if o.Whole {
			where = fmt.Sprintf("on any of its hosts, which are hosts of %s", app.Those("pool", o.By))
		}
		add(true,
			"pool %s of the default chain serves no namespace %s: there, every namespace gets blocks automatically",
			o.Pool, where)
	}
	if len(e.cutOff) > 0 {
		total := 0
		var names []string
		for _, n := range e.cutOff {
			total += n.held
			names = append(names, fmt.Sprintf("%s (%d)", n.namespace, n.held))
		}
		add(false, "%s in use by namespaces that pool %s no longer serves %s until %s: %s", humanize.Plural(total,
			"address"),
			e.pool, humanize.OneOr(total, "stays", "stay"), humanize.OneOr(total, "its pod ends", "their pods end"),
			humanize.List(names))
	}
	return out
}
