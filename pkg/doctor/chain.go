package doctor

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// index returns an index of the pools, including blocks, for the rules of requests; nil if all pools serve every
// namespace, because then there is nothing to find.
func (f *facts) index() *index.Index {
	if !slices.ContainsFunc(f.Pools, func(p Pool) bool { return p.Bound() || p.BlockSize > 0 }) {
		return nil
	}
	x := index.New()
	for _, p := range f.given {
		x.Pools.SetPool(p.Pool)
	}
	for _, n := range f.Nodes {
		x.Pools.SetNode(n.Name, ipam.Node{Addrs: n.Addrs, Internal: n.Internal, Labels: n.Labels})
	}
	return x
}

// poolsShadowed finds pools of the default chain that serve nobody, because other pools assign blocks on all of their
// hosts.
func poolsShadowed(f *facts) (out []Finding) {
	x := f.index()
	if x == nil {
		return nil
	}
	for _, s := range x.Pools.Shadows() {
		if s.Whole {
			out = append(out, onPool(f.pools[s.Pool],
				fmt.Sprintf("it serves no namespace: on each of its hosts every namespace gets "+
					"blocks of %s automatically", humanize.List(s.By)), "bcsnetctl pool describe "+s.By[0]))
		}
	}
	return out
}

// namespacesCutOff finds namespaces that hold addresses on hosts on which no pool serves them any more.
func namespacesCutOff(f *facts) (out []Finding) {
	x := f.index()
	if x == nil {
		return nil
	}
	held := map[string]map[netip.Addr]int{}
	for i := range f.Leases {
		l := &f.Leases[i]
		p := f.pools[l.Pool]
		if l.State != lease.Active || l.PodName == "" || !l.Host.IsValid() || p == nil || p.NotDefault && !p.Bound() {
			continue
		}
		if held[l.Namespace] == nil {
			held[l.Namespace] = map[netip.Addr]int{}
		}
		held[l.Namespace][l.Host]++
	}
	for _, ns := range slices.Sorted(maps.Keys(held)) {
		n, hosts := 0, []string{}
		for _, h := range inOrder(held[ns]) {
			if f.drawsFrom(h) && !x.Pools.Serves(ns, h) && !f.choosesByLabels(h) {
				n, hosts = n+held[ns][h], append(hosts, h.String())
			}
		}
		if n > 0 {
			out = append(out, Finding{
				Object: Object{"namespace", ns}, Fix: "bcsnetctl explain namespace " + ns,
				Cause: fmt.Sprintf("it has %s on %s %s, and no pool serves it there", humanize.Plural(n,
					"address"),
					humanize.OneOr(len(hosts), "host", "hosts"), humanize.List(hosts)),
			})
		}
	}
	return out
}

// choosesByLabels reports whether a pool of a host selects namespaces by labels, which a snapshot does not have.
func (f *facts) choosesByLabels(h netip.Addr) bool {
	return f.blind || slices.ContainsFunc(f.Pools, func(p Pool) bool {
		return p.NamespaceSelector != nil && p.Draws(h)
	})
}
