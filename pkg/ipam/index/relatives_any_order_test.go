package index

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// kinsfolk are pools of one subnet that are made, changed and removed at random: one that may be split, what are its
// blocks or its groups by then, and one that overlaps with it.
func kinsfolk(t testing.TB) (names []string, draw func(*rapid.T, string) ipam.Pool) {
	t.Helper()
	net := pool(t, "net", "10.0.0.0/24", []string{"10.0.0.0/26"}, splitInto(29))
	blocks := []string{"10.0.0.0/29", "10.0.0.8/29", "10.0.0.16/29", "10.0.0.40/29", "10.0.0.64/29"}
	names = []string{"net", "other", "group-a", "group-b"}
	cidrs := map[string]string{}
	for _, b := range blocks {
		name := block.Name("net", netip.MustParsePrefix(b))
		names, cidrs[name] = append(names, name), b
	}
	return names, func(r *rapid.T, name string) ipam.Pool {
		ages := created(rapid.IntRange(0, 3).Draw(r, "age"))
		var p ipam.Pool
		switch name {
		case "net":
			available := rapid.SampledFrom([]string{"10.0.0.0/26", "10.0.0.4-10.0.0.60", "10.0.0.0/25"}).Draw(r, "available")
			p = pool(t, name, "10.0.0.0/24", []string{available}, ages)
			if rapid.IntRange(0, 3).Draw(r, "split") > 0 {
				p.BlockSize, p.AutoAssign = net.BlockSize, rapid.Bool().Draw(r, "by itself")
			}
		case "other":
			available := rapid.SampledFrom([]string{"10.0.0.10-10.0.0.20", "10.0.0.38-10.0.0.90"}).Draw(r, "available")
			p = pool(t, name, "10.0.0.0/24", []string{available}, ages)
		case "group-a", "group-b":
			available := rapid.SampledFrom([]string{"10.0.0.8-10.0.0.12", "10.0.0.12-10.0.0.30"}).Draw(r, "available")
			p = pool(t, name, "10.0.0.0/24", []string{available}, ages, hosts())
			p.Parent = "net"
			if rapid.Bool().Draw(r, "carved") {
				p.Carved = p.Plan.Usable
			}
		default:
			p = aBlock(t, net, cidrs[name], rapid.SampledFrom([]string{"shop", "bank"}).Draw(r, "owner"), ages)
		}
		p.Terminating = rapid.IntRange(0, 7).Draw(r, "terminating") == 0
		return p
	}
}

// TestRelativesInAnyOrder: what is known of pools that are split, their blocks, groups and those that overlap with them
// follows from the pools and leases that there are, and not from the order in which they came.
func TestRelativesInAnyOrder(t *testing.T) {
	names, draw := kinsfolk(t)
	rapid.Check(t, func(r *rapid.T) {
		x := New()
		pools, leases := map[string]ipam.Pool{}, map[netip.Addr]lease.Lease{}
		version := uint64(0)
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			version++
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(2, 70).Draw(r, "address"))})
			switch rapid.IntRange(0, 9).Draw(r, "step") {
			case 0, 1, 2:
				p := draw(r, rapid.SampledFrom(names).Draw(r, "pool"))
				pools[p.Name] = p
				x.Pools.SetPool(p)
			case 3:
				name := rapid.SampledFrom(names).Draw(r, "pool")
				delete(pools, name)
				x.Pools.RemovePool(name)
			case 4, 5, 6, 7:
				l := leased(a.String(), rapid.SampledFrom(names).Draw(r, "pool"), version)
				l.Namespace = rapid.SampledFrom([]string{"shop", "bank"}).Draw(r, "namespace")
				switch rapid.IntRange(0, 3).Draw(r, "state") {
				case 0:
					l = available(a.String(), l.Pool, version)
				case 1:
					l = reserved(a.String(), l.Pool, version)
				}
				l.Updated = at(int(version)) // else it counts as emptied by hand
				leases[a] = l
				x.Feed.Watched(l)
			case 8:
				if l, ok := leases[a]; ok && l.State == lease.Available { // one that somebody has is missing from then on
					delete(leases, a)
					x.Feed.WatchedDelete(a, version)
				}
			case 9:
				w := want(inNamespace(rapid.SampledFrom([]string{"shop", "bank"}).Draw(r, "namespace")))
				picks, _ := x.Pick(w, now)
				for _, p := range picks {
					x.Forget(p.Current.Addr)
				}
			}
		}
		checkPlaces(r, x)
		y := New()
		for _, l := range byVersion(leases) {
			y.Feed.Watched(l)
		}
		for _, name := range slices.Backward(slices.Sorted(maps.Keys(pools))) {
			y.Pools.SetPool(pools[name])
		}
		z := New()
		for _, name := range slices.Sorted(maps.Keys(pools)) {
			z.Pools.SetPool(pools[name])
		}
		for _, l := range byVersion(leases) {
			z.Feed.Watched(l)
		}
		for what, o := range map[string]*Index{"leases first": y, "pools first": z} {
			if diff := leaseDiff(relatives(o, names), relatives(x, names)); diff != "" {
				r.Fatalf("- %s, + in the order in which they came:\n%s", what, diff)
			}
		}
	})
}

func byVersion(leases map[netip.Addr]lease.Lease) []lease.Lease {
	return slices.SortedFunc(maps.Values(leases), func(a, b lease.Lease) int { return cmp.Compare(a.Version, b.Version) })
}

// relatives writes what an index knows of pools, and who serves which address.
func relatives(x *Index, names []string) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, name := range names {
		p := x.core.state.Pools.ByName[name]
		if p == nil {
			continue
		}
		c := x.Pools.Counts(name, now)
		c.NextFree = now
		say("%s: serves %t (%s), %+v, blocks %+v, bound to %d, charged %v", name, p.Serves(), p.Problem, c,
			x.Pools.Blocks(name), len(p.Namespaces), x.core.state.Usage.Charged[name])
		for _, o := range x.Pools.Overlaps(name) {
			say("  overlaps with %s in %v: it serves them %t", o.Other, o.Shared.Ranges(), o.Served)
		}
		if p.Split != nil {
			for number := range uint64(x.Pools.Blocks(name).All) {
				say("  held of block %d: %v", number, p.Split.HeldIn(number))
			}
			say("  owned %d, members %+v", p.Split.OwnedAddresses(), p.OfBlocks)
		}
		say("  draining %d", len(x.Pools.Draining(name)))
	}
	for i := range 80 {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		owner, _ := x.Pools.PoolOf(a)
		free := false
		if s, n, ok := x.core.state.Pools.Serving(a); ok {
			set := s.Home().Set
			free = n < set.Len() && !set.IsTaken(n)
		}
		say("%s %s %t", a, owner, free)
	}
	for _, ns := range []string{"shop", "bank"} {
		say("%s: own %v", ns, x.Pools.Own(ns, ip(host1)))
	}
	return all
}
