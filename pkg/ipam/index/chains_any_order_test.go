package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// neighbours are pools that are made, changed and removed at random: two that may be split, of which one may be split
// into too many blocks, what are their blocks or groups by then, and one that has no relatives.
func neighbours(t testing.TB) (names []string, draw func(*rapid.T, string) ipam.Pool) {
	t.Helper()
	cidrs := map[string]string{}
	subnets := map[string]string{"net": "10.0.0.0/24", "big": "10.0.0.0/12", "flat": "10.0.0.0/24"}
	names = slices.Sorted(maps.Keys(subnets))
	parents := map[string]string{"group-a": "net", "group-b": "net", "group-c": "flat"}
	for group := range parents {
		names = append(names, group)
	}
	for _, parent := range []string{"net", "big"} {
		for _, b := range []string{"10.0.0.0/29", "10.0.0.8/29", "10.0.0.16/29", "10.0.0.64/29"} {
			name := block.Name(parent, netip.MustParsePrefix(b))
			names, cidrs[name], parents[name] = append(names, name), b, parent
		}
	}
	slices.Sort(names)
	oneOf := func(r *rapid.T, what string, of ...string) string { return rapid.SampledFrom(of).Draw(r, what) }
	rarely := func(r *rapid.T, what string) bool { return rapid.IntRange(0, 7).Draw(r, what) == 0 }
	return names, func(r *rapid.T, name string) ipam.Pool {
		parent := parents[name]
		var available string
		subnet := subnets[name]
		switch {
		case cidrs[name] != "":
			available, subnet = cidrs[name], subnets[parent]
		case parent != "":
			available = oneOf(r, "available", "10.0.0.8-10.0.0.12", "10.0.0.12-10.0.0.20", "10.0.0.40", "10.0.0.0/26")
			subnet = subnets[parent]
		case name == "big":
			available = oneOf(r, "available", "10.0.0.0/26", "10.0.0.4-10.0.0.40", "10.0.0.0/12", "10.0.1.0/26")
		default:
			available = oneOf(r, "available", "10.0.0.0/26", "10.0.0.4-10.0.0.40", "10.0.0.0/25")
		}
		p := pool(t, name, subnet, []string{available}, created(rapid.IntRange(0, 3).Draw(r, "age")))
		p.Parent = parent
		p.Cordoned, p.Terminating = rarely(r, "cordoned"), rarely(r, "terminating")
		if rarely(r, "wrong") {
			p.Problem = "wrong"
			p.DropAddresses()
		}
		if cidrs[name] != "" {
			p.Hosts, p.Priority = nil, int32(rapid.IntRange(0, 2).Draw(r, "priority"))
			p.Namespaces = map[string]struct{}{oneOf(r, "owner", "shop", "bank"): {}}
			return p
		}
		hosts(rapid.SampledFrom([][]string{nil, {host1}, {host2}, {host1, host2}}).Draw(r, "hosts")...)(&p)
		if rarely(r, "host subnets") {
			hostSubnets("192.168.0.0/31")(&p)
		}
		if rarely(r, "host selector") {
			hostSelector("rack=" + oneOf(r, "rack", "1", "2"))(&p)
		}
		if rarely(r, "namespaces") {
			namespaces(oneOf(r, "namespace", "shop", "bank"))(&p)
		}
		if rarely(r, "namespace selector") {
			ofTier(oneOf(r, "tier", "gold", "lead"))(&p)
		}
		if parent != "" && rapid.Bool().Draw(r, "carved") {
			p.Carved = mustSet(t, oneOf(r, "carved", "10.0.0.8-10.0.0.12", "10.0.0.0/26"))
		}
		p.NotDefault, p.Network = rarely(r, "not default"), oneOf(r, "network", "", "", "blue", "red")
		p.Priority = int32(rapid.IntRange(0, 1).Draw(r, "priority"))
		p.MaxPerHost = max(0, rapid.IntRange(-6, 3).Draw(r, "per host"))
		p.MaxPerNamespace = max(0, rapid.IntRange(-6, 3).Draw(r, "per namespace"))
		p.Cooldown = time.Duration(max(0, rapid.IntRange(-3, 1).Draw(r, "cooldown"))) * time.Hour
		if parent == "" && name != "flat" && rapid.IntRange(0, 3).Draw(r, "split") > 0 {
			p.BlockSize, p.AutoAssign = 29, rapid.Bool().Draw(r, "by itself")
			p.Generation = int64(rapid.IntRange(1, 4).Draw(r, "generation")) / 2
			p.Carving = p.SplitLate()
		}
		return p
	}
}

// changed returns a pool that was another one before: as it is, or as it was but for one thing, as what does not change
// is not looked at anew.
func changed(r *rapid.T, was, is ipam.Pool) ipam.Pool {
	p := was
	switch rapid.IntRange(0, 11).Draw(r, "change") {
	case 0:
		p = is
	case 1:
		p.Plan, p.Problem = is.Plan, is.Problem
	case 2:
		p.Cordoned = is.Cordoned
	case 3:
		p.Terminating = is.Terminating
	case 4:
		p.Hosts, p.HostSubnets = is.Hosts, is.HostSubnets
	case 5:
		p.HostSelector = is.HostSelector
	case 6:
		p.Namespaces, p.NamespaceSelector = is.Namespaces, is.NamespaceSelector
	case 7:
		p.NotDefault, p.AutoAssign = is.NotDefault, is.AutoAssign
	case 8:
		p.Network, p.Priority = is.Network, is.Priority
	case 9:
		p.Carved, p.Created = is.Carved, is.Created
	case 10:
		p.MaxPerHost, p.MaxPerNamespace, p.Cooldown = is.MaxPerHost, is.MaxPerNamespace, is.Cooldown
	case 11:
		p.BlockSize, p.Carving = is.BlockSize, is.Carving
	}
	return p
}

// TestChainsInAnyOrder: what a namespace and a host draw from follows from the pools, nodes, namespaces and leases that
// there are, and not from how they came to be so.
func TestChainsInAnyOrder(t *testing.T) {
	names, draw := neighbours(t)
	rapid.Check(t, func(r *rapid.T) {
		x := New()
		pools, leases := map[string]ipam.Pool{}, map[netip.Addr]lease.Lease{}
		nodes, labels := map[string]ipam.Node{}, map[string]map[string]string{}
		version := uint64(0)
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			version++
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0, 1, 2, 3, 4:
				p := draw(r, rapid.SampledFrom(names).Draw(r, "pool"))
				if old, ok := pools[p.Name]; ok {
					p = changed(r, old, p)
				}
				pools[p.Name] = p
				x.Pools.SetPool(p)
			case 5:
				name := rapid.SampledFrom(names).Draw(r, "pool")
				delete(pools, name)
				x.Pools.RemovePool(name)
			case 6:
				name := rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(r, "node")
				n := inRack(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(r, "rack"),
					rapid.SampledFrom([]string{host1, host2, "10.0.0.9"}).Draw(r, "address"))
				if nodes[name] = n; rapid.IntRange(0, 3).Draw(r, "gone") == 0 {
					n = ipam.Node{}
					delete(nodes, name)
				}
				x.Pools.SetNode(name, n)
			case 7:
				ns := rapid.SampledFrom([]string{"shop", "bank"}).Draw(r, "namespace")
				tier := rapid.SampledFrom([]string{"gold", "lead", "gone"}).Draw(r, "tier")
				if tier == "gone" {
					delete(labels, ns)
					x.Pools.RemoveNamespace(ns)
					continue
				}
				labels[ns] = map[string]string{"tier": tier}
				x.Pools.SetNamespace(ns, labels[ns])
			default:
				a := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(2, 24).Draw(r, "address"))})
				l := leased(a.String(), rapid.SampledFrom(names).Draw(r, "pool"), version)
				l.Namespace = rapid.SampledFrom([]string{"shop", "bank"}).Draw(r, "namespace")
				switch rapid.IntRange(0, 3).Draw(r, "state") {
				case 0:
					l = available(a.String(), l.Pool, version)
				case 1:
					l = reserved(a.String(), l.Pool, version)
				}
				l.Updated = at(-int(version))
				leases[a] = l
				x.Feed.Watched(l)
			}
		}
		checkPlaces(r, x)
		y := New()
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(pools))) {
			y.Pools.SetPool(pools[name])
		}
		for _, l := range byVersion(leases) {
			y.Feed.Watched(l)
		}
		for name, n := range nodes {
			y.Pools.SetNode(name, n)
		}
		for ns, of := range labels {
			y.Pools.SetNamespace(ns, of)
		}
		z := New()
		for ns, of := range labels {
			z.Pools.SetNamespace(ns, of)
		}
		for name, n := range nodes {
			z.Pools.SetNode(name, n)
		}
		for _, l := range byVersion(leases) {
			z.Feed.Watched(l)
		}
		for _, name := range slices.Sorted(maps.Keys(pools)) {
			z.Pools.SetPool(pools[name])
		}
		for what, o := range map[string]*Index{"pools first": y, "pools last": z} {
			if diff := leaseDiff(chains(o, names), chains(x, names)); diff != "" {
				r.Fatalf("- %s, + in the order in which they came:\n%s", what, diff)
			}
		}
	})
}

// chains writes what requests find in an index.
func chains(x *Index, names []string) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	some := []netip.Addr{ip(host1), ip(host2), ip("192.168.0.9")}
	for _, ns := range []string{"shop", "bank", "else"} {
		say("%s: own %v, pools %v", ns, x.Pools.Own(ns, netip.Addr{}), x.Pools.PoolsFor(ns))
		for _, h := range append([]netip.Addr{{}}, some...) {
			say("%s on %s: own %v, chain %+v", ns, h, x.Pools.Own(ns, h), x.Pools.Chain(ns, h))
		}
		for _, h := range some {
			for _, pool := range append([]string{""}, names...) {
				for _, network := range []string{"", "blue", "red"} {
					if pool != "" && network != "" {
						continue
					}
					w := want(inNamespace(ns), onHost(h.String()), ofNetwork(network))
					if pool != "" {
						w.Pools = []string{pool}
					}
					picks, refusal := x.Propose(w, now)
					say("%s on %s of %q %q: %v %s", ns, h, pool, network, picked(picks), refused(refusal))
				}
			}
		}
	}
	for _, h := range some {
		say("%s: pools %v, covered by %v", h, x.Pools.PoolsOf(h), x.Pools.Covering([]netip.Addr{h}))
	}
	for _, name := range names {
		p := x.core.state.Pools.ByName[name]
		if p == nil {
			continue
		}
		named, matched := x.Pools.NamespacesOf(name)
		nodes, internal := x.Pools.Selection(name)
		say("%s: %d hosts, %d and %d namespaces, %d and %d nodes, %+v", name, x.Pools.HostCount(name), named, matched, nodes,
			internal, p.Stop())
		say("%s: children %v, blocks %v %+v, carved %v, %v", name, x.Pools.Children(name), x.Pools.BlocksOf(name), x.Pools.Blocks(name),
			x.Leases.StillCarved(name).Ranges(), x.Pools.QuotaUse(name))
		in, next := x.Leases.Obstacles(name, p.Plan.Usable, now)
		say("%s: %v %s", name, in, next)
		r := x.Pools.Ranges(name, now)
		say("%s: %v %v %v %v %v", name, r.Free.Ranges(), r.Cooling.Ranges(), r.Active.Ranges(), r.Reserved.Ranges(),
			r.Others.Ranges())
	}
	for _, i := range x.Pools.IdleBlocks(now) {
		say("idle: %+v", i)
	}
	return all
}
