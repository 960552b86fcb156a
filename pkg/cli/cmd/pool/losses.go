package pool

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// losses has the networks, namespaces and hosts that have no pool any more after pools are deleted or serve less.
type losses struct {
	// families are networks that lose all pools of a family, such as "IPv6 of network prod".
	families []string
	// namespaces have the last pool that lists them removed, hosts the last pool that admits them.
	namespaces []string
	hosts      []netip.Addr
}

// lossesOf compares all pools before and after a change. Blocks count as part of their parents. Pools without addresses
// do not count.
func lossesOf(before, after []resource.Pool, nodes []resource.Node) losses {
	was, is := servicesOf(before, nodes), servicesOf(after, nodes)
	gone := func(was, is map[string]bool) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(was)), func(name string) bool { return is[name] })
	}
	l := losses{families: gone(was.families, is.families), namespaces: gone(was.namespaces, is.namespaces)}
	for _, p := range after {
		if resource.IsBlock(p) { // the owner of a block still has a pool
			l.namespaces = slices.DeleteFunc(l.namespaces, func(ns string) bool {
				return slices.Contains(p.Spec.Namespaces, ns)
			})
		}
	}
	for h := range was.hosts {
		if !is.hosts[h] {
			l.hosts = append(l.hosts, h)
		}
	}
	resource.SortAddrs(l.hosts)
	return l
}

// services are whom pools are for.
type services struct {
	families, namespaces map[string]bool
	hosts                map[netip.Addr]bool
}

func servicesOf(pools []resource.Pool, nodes []resource.Node) services {
	s := services{families: map[string]bool{}, namespaces: map[string]bool{}, hosts: map[netip.Addr]bool{}}
	for _, p := range resource.WithoutBlocks(resource.WithParents(pools)) {
		if len(p.Spec.AvailableIPs) == 0 {
			continue
		}
		if of := resource.NetworkOf(p); of != "" {
			s.families[familyOf(p)+" of network "+of] = true
		}
		for _, ns := range p.Spec.Namespaces {
			s.namespaces[ns] = true
		}
		for _, h := range append(resource.ListedHosts(p), resource.Covered(p, nodes)...) {
			s.hosts[h] = true
		}
	}
	return s
}

func familyOf(p resource.Pool) string {
	if strings.Contains(p.Spec.Net, ":") {
		return "IPv6"
	}
	return "IPv4"
}

func (l losses) warn(s *app.App) {
	for _, name := range l.families {
		s.Say.Warn("no pool would have %s: requests that name the network would get no such address", name)
	}
	if n := len(l.namespaces); n > 0 {
		s.Say.Warn("%s %s named by no other pool and may then draw from the default chain: %s",
			humanize.OneOr(n, "this namespace", "these namespaces"), humanize.OneOr(n, "is", "are"),
			humanize.List(l.namespaces))
	}
	if n := len(l.hosts); n > 0 {
		names := app.Map(l.hosts, netip.Addr.String)
		s.Say.Warn("%s no other pool, so new pods there will get no address: %s",
			humanize.OneOr(n, "this host has", humanize.Plural(n, "host")+" have"), humanize.List(names))
	}
}

// replaced returns the pools with one of them replaced by now.
func replaced(all []resource.Pool, now resource.Pool) []resource.Pool {
	out := slices.Clone(all)
	for i, p := range out {
		if p.Name == now.Name {
			out[i] = now
		}
	}
	return out
}
