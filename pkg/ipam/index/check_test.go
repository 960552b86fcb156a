package index

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
	"github.com/bcsnet/bcsnet/pkg/ipam/memory"
)

// check compares the index with the model.
func (m *machine) check(t *rapid.T) {
	known := m.model.known()
	if m.x.Feed.Seen() != m.model.seen {
		t.Fatalf("seen %d, want %d", m.x.Feed.Seen(), m.model.seen)
	}
	m.checkLeases(t, known)
	m.checkPools(t, known)
	checkFreeSets(t, m.x)
	checkPlaces(t, m.x)
	m.checkQuotas(t, known)
	for _, a := range universe {
		if node, _ := m.x.Pools.NodeOf(a); node != m.model.nodeOf(a) {
			t.Fatalf("NodeOf(%s) = %q, want %q", a, node, m.model.nodeOf(a))
		}
	}
	for _, a := range universe {
		want, ok := m.model.lost[a]
		if !ok {
			want = lease.Lease{Addr: a}
		}
		if got, lost := m.x.Leases.Missing(a); lost != ok || leaseDiff(want, got) != "" {
			t.Fatalf("Lost(%s) = %+v, %v; want %+v, %v", a, got, lost, want, ok)
		}
	}
	doubts := map[netip.Addr]ledger.Assumed{}
	for a, h := range m.model.holds {
		if h.Unknown {
			doubts[a] = h
		}
	}
	if diff := leaseDiff(doubts, m.x.Unknown("")); diff != "" {
		t.Fatalf("doubts (-model +index):\n%s", diff)
	}
}

func (m *machine) checkLeases(t *rapid.T, known map[netip.Addr]lease.Lease) {
	scan := func(match func(lease.Lease) bool) (out []lease.Lease) {
		for _, l := range known {
			if match(l) {
				out = append(out, l)
			}
		}
		return sorted(out)
	}
	held := func(match func(lease.Lease) bool) (out []lease.Lease) {
		for _, l := range known {
			if l, ok := l.From(match); ok && l.State != lease.Available {
				out = append(out, l)
			}
		}
		return sorted(out)
	}
	same := func(what string, want, got []lease.Lease) {
		t.Helper()
		if diff := leaseDiff(want, got); diff != "" {
			t.Fatalf("%s (-model +index):\n%s", what, diff)
		}
	}
	everything := scan(func(lease.Lease) bool { return true })
	same("all", everything, m.x.Leases.Find(func(lease.Lease) bool { return true }))
	told := make([]lease.Lease, 0, len(m.mirror))
	for _, l := range m.mirror {
		told = append(told, l)
	}
	same("what subscribers were told", everything, sorted(told))
	if m.x.Leases.Len() != len(known) {
		t.Fatalf("Len() = %d, want %d", m.x.Leases.Len(), len(known))
	}
	for _, a := range universe {
		want, ok := known[a]
		if !ok {
			want = lease.Lease{Addr: a}
		}
		got, found := m.x.Leases.Get(a)
		if diff := leaseDiff(want, got); diff != "" || found != ok {
			t.Fatalf("Get(%s), %v (-model +index):\n%s", a, found, diff)
		}
	}
	for _, id := range []string{"c1", "c2", "c3"} {
		same("ByContainer "+id, held(func(l lease.Lease) bool { return l.ContainerID == id }), m.x.Leases.ByContainer(id, ""))
		same("ByContainer "+id+" net1", held(func(l lease.Lease) bool { return l.ContainerID == id && l.IfName == "net1" }),
			m.x.Leases.ByContainer(id, "net1"))
	}
	if got := m.x.Leases.ByContainer("", ""); got != nil {
		t.Fatalf("no container holds %v", got)
	}
	for _, h := range []lease.Holder{
		{IfName: "eth0", PodUID: "u1"}, {IfName: "net1", PodUID: "u1"}, {IfName: "eth0", PodUID: "u2"},
		{IfName: "eth0", Owner: "vm-1"}, {IfName: "eth0", Owner: "vm-2", PodUID: "u1"}, {IfName: "eth0"},
		{PodUID: "u1"}, {Owner: "vm-1"}, {}, {PodUID: "u1", Namespace: "shop", PodName: "a"},
	} {
		same("ByAttachment", held(func(l lease.Lease) bool {
			return (h.IfName == "" || l.IfName == h.IfName) && l.Owner == h.Owner &&
				(h.Owner != "" || h.PodUID != "" && l.PodUID == h.PodUID) && !h.HasOtherName(l.Namespace, l.PodName)
		}), m.x.Leases.ByAttachment(h))
		inUse := slices.DeleteFunc(m.x.Leases.ByAttachment(h), func(l lease.Lease) bool { return l.State != lease.Active })
		if some, all := m.x.Leases.SomeInUse(h, 1); len(some) != min(1, len(inUse)) || all != (len(inUse) <= 1) {
			t.Fatalf("%+v has %d in use, SomeInUse has %d, all %t", h, len(inUse), len(some), all)
		}
		if some, all := m.x.Leases.SomeInUse(h, 100); !all {
			t.Fatalf("%+v has more than 100 in use", h)
		} else {
			same("SomeInUse", inUse, sorted(some))
		}
	}
	for _, claim := range []string{"shop/x", "shop/y", "bank/z", ""} {
		same("ByClaim "+claim, held(func(l lease.Lease) bool { return claim != "" && l.Claim == claim }), m.x.Leases.ByClaim(claim))
		m.checkClaim(t, claim)
		for _, key := range []string{"k1", "k2", ""} {
			same("ByKey "+claim+" "+key, held(func(l lease.Lease) bool {
				return claim != "" && l.Claim == claim && key != "" && l.PodPrimaryKey == key
			}), m.x.Leases.ByKey(claim, key))
		}
	}
	for _, host := range ips(host1, host2) {
		same("ByHost", held(func(l lease.Lease) bool { return l.Host == host }), m.x.Leases.ByHost(host))
	}
}

// checkClaim compares what is told of a claim at no cost with what a look at all addresses tells.
func (m *machine) checkClaim(t *rapid.T, claim string) {
	parts, all := m.x.Leases.ClaimUsage(claim), m.x.Leases.ByClaim(claim)
	for _, f := range ipaddr.Families() {
		n := 0
		for _, l := range all {
			if ipaddr.FamilyOf(l.Addr) == f {
				n++
			}
		}
		if parts.Of(f) != n {
			t.Fatalf("claim %q has %d addresses of a family, and parts %+v", claim, n, parts)
		}
		for _, host := range ips(host1, host2) {
			w := ipam.PickRequest{Host: host, Claim: claim, IfName: "eth0", Families: ipam.Families{Policy: ipam.SingleStack, Order: []ipaddr.Family{f}}}
			if got, want := m.keptIsPicked(w), m.keptForAny(w, f); got != want {
				t.Fatalf("for any pod of claim %q on host %s: %v, want %v", claim, host, got, want)
			}
		}
	}
	for _, p := range parts {
		if p.N < 1 || p.One.Claim != claim || p.One.Pool != p.Pool || p.One.IfName != p.IfName ||
			ipaddr.FamilyOf(p.One.Addr) != p.Family {
			t.Fatalf("claim %q: part %+v", claim, p)
		}
	}
	var pools []string
	for _, l := range all {
		if pool, served := m.x.Pools.PoolOf(l.Addr); served && l.State == lease.Reserved && l.PodPrimaryKey == "" && !l.Deleting {
			pools = append(pools, pool)
		}
	}
	slices.Sort(pools)
	if got, want := m.x.Leases.RetainedIn(claim, func(netip.Addr) bool { return false }),
		slices.Compact(pools); !slices.Equal(got, want) {
		t.Fatalf("kept for any pod of claim %q: pools %v, want %v", claim, got, want)
	}
}

// keptIsPicked returns the address that is kept for the claim of a request and that the request would get; invalid for
// none.
func (m *machine) keptIsPicked(w ipam.PickRequest) (kept netip.Addr) {
	picks, _ := m.x.Propose(w, m.model.now)
	if len(picks) > 0 && w.Claim != "" && picks[0].Current.Claim == w.Claim {
		kept = picks[0].Current.Addr
	}
	return kept
}

// keptForAny finds it in as many steps as there are addresses.
func (m *machine) keptForAny(w ipam.PickRequest, f ipaddr.Family) (kept netip.Addr) {
	known := m.model.known()
	serving := m.model.serving(known)
	var first lease.Lease
	for a, l := range known {
		_, assumed := m.model.holds[a]
		_, lost := m.model.lost[a]
		p, served := m.model.pools[serving[a]]
		switch {
		case w.Claim == "", l.Claim != w.Claim, l.State != lease.Reserved, l.PodPrimaryKey != "", l.Deleting,
			ipaddr.FamilyOf(a) != f, l.IfName != "" && (l.IfName != w.IfName || l.Slot != 0),
			assumed, lost, m.model.nodeOf(a) != "", !served, p.Terminating, !m.model.fits(p, w),
			m.model.hostFull(p, w, known, nil), m.model.overQuotaWith(p, w, a, known, nil):
			continue
		}
		if !kept.IsValid() || l.Updated.After(first.Updated) || l.Updated.Equal(first.Updated) && a.Less(kept) {
			first, kept = l, a
		}
	}
	return kept
}

func (m *machine) checkPools(t *rapid.T, known map[netip.Addr]lease.Lease) {
	serving := m.model.serving(known)
	for _, a := range universe {
		if got, _ := m.x.Pools.PoolOf(a); got != serving[a] {
			t.Fatalf("%s is served by %q, want %q", a, got, serving[a])
		}
	}
	for _, name := range slices.Concat(poolNames4, poolNames6, []string{"gone"}) {
		var want ipam.PoolCounts
		draining := map[netip.Addr]int{}
		for a, pool := range serving {
			if pool == name {
				want.Served++
				switch {
				case m.model.occupied(a, known):
				case m.model.rests(m.model.pools[name], known[a]):
					want.Cooling++
				default:
					want.Free++
				}
			}
		}
		p, exists := m.model.pools[name]
		var objects []lease.Lease
		for a, l := range known {
			if l.Pool != name {
				continue
			}
			objects = append(objects, l)
			want.Objects++
			switch l.State {
			case lease.Active:
				want.Active++
			case lease.Reserved:
				want.Reserved++
			}
			if l.State != lease.Available && serving[a] != name {
				want.Capacity++
			}
			if l.State != lease.Available && exists && p.Valid() && !m.model.usable(name)[a] {
				draining[l.Host]++
			}
		}
		want.Capacity += want.Served
		got := m.x.Pools.Counts(name, m.model.now)
		if (got.Cooling > 0) != got.NextFree.After(m.model.now) {
			t.Fatalf("pool %s has %d addresses cooling, the next is free at %s", name, got.Cooling, got.NextFree)
		}
		got.NextFree = time.Time{}
		if diff := leaseDiff(want, got); diff != "" {
			t.Fatalf("counts of pool %s (-model +index):\n%s", name, diff)
		}
		m.checkRanges(t, name, want)
		if got := m.x.Pools.Draining(name); !maps.Equal(draining, got) {
			t.Fatalf("draining addresses of pool %s: %v, want %v", name, got, draining)
		}
		if diff := leaseDiff(sorted(objects), m.x.Leases.ByPool(name)); diff != "" {
			t.Fatalf("objects of pool %s (-model +index):\n%s", name, diff)
		}
		for other := range m.model.pools {
			o, _ := m.x.Pools.Get(other)
			var in []lease.Lease
			for _, l := range objects {
				if o.Plan.Usable.Contains(l.Addr) {
					in = append(in, l)
				}
			}
			if diff := leaseDiff(in, m.x.Leases.ByPoolIn(name, o.Plan.Usable)); diff != "" {
				t.Fatalf("objects of pool %s among the addresses of %s (-model +index):\n%s", name, other, diff)
			}
		}
	}
}

// fataler is a test, or a run of a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkFreeSets looks at every address of every pool: one pool at most serves it, and it is free exactly when nothing
// occupies it.
func checkFreeSets(t fataler, x *Index) {
	t.Helper()
	checkRules(t, x)
	when := time.Unix(0, x.core.state.Now)
	served := map[netip.Addr]string{}
	for _, p := range x.Pools.All() {
		free, next := uint64(0), time.Time{}
		r, counts := x.Pools.Ranges(p.Name, when), x.Pools.Counts(p.Name, when)
		for a := range ipaddr.All(p.Plan.Usable) {
			if by, ok := x.Pools.PoolOf(a); !ok || by != p.Name {
				if r.Free.Contains(a) || r.Cooling.Contains(a) {
					t.Fatalf("%s is free in pool %s, and served by %q", a, p.Name, by)
				}
				continue
			}
			if other, twice := served[a]; twice {
				t.Fatalf("%s is served by %s and %s", a, other, p.Name)
			}
			served[a] = p.Name
			if p.Withheld != nil && !p.Carving && p.Withheld.Contains(a) {
				if r.Free.Contains(a) {
					t.Fatalf("%s of pool %s is withheld from it, and in its free set", a, p.Name)
				}
				continue
			}
			l, _ := x.Leases.Get(a)
			taken := occupied(x, a, l)
			ends := l.CoolsUntil(p.Cooldown)
			rests := !taken && l.Version > 0 && p.Cooldown > 0 && ends.After(when)
			isFree := r.Free.Contains(a)
			if isFree == (taken || rests) || r.Cooling.Contains(a) != rests {
				t.Fatalf("%s of pool %s: free is %v, occupied is %v, rests is %v", a, p.Name, isFree, taken, rests)
			}
			if rests && (next.IsZero() || ends.Before(next)) {
				next = ends
			}
			if isFree {
				free++
			}
		}
		if counts.Free != free || !counts.NextFree.Equal(next) {
			t.Fatalf("pool %s counts %d free, has %d; the next is at %s, not %s", p.Name, counts.Free, free, counts.NextFree,
				next)
		}
	}
	for _, p := range x.Pools.All() {
		for a := range ipaddr.All(p.Plan.Usable) {
			if _, ok := x.Pools.PoolOf(a); !ok && served[a] == "" && !losesInCircle(x, a) {
				t.Fatalf("%s of pool %s is served by nobody", a, p.Name)
			}
		}
	}
}

// occupied is the rule of what keeps an address from being handed out, its cooldown apart.
func occupied(x *Index, a netip.Addr, l lease.Lease) bool {
	_, missing := x.Leases.Missing(a)
	_, node := x.Pools.NodeOf(a)
	_, assumed := x.core.state.Assumed.ByAddr[a]
	return l.Version > 0 && (l.State != lease.Available || l.Deleting) || missing || node || assumed
}

// checkPlaces counts again what is in use and held on hosts, and what is in doubt.
func checkPlaces(t fataler, x *Index) {
	t.Helper()
	inUse, coming, doubts := map[ledger.HostPool]int{}, map[ledger.HostPool]int{}, 0
	add := func(l lease.Lease) {
		if l.State != lease.Active {
			return
		}
		places := map[ledger.HostPool]bool{{Host: l.Host, Pool: x.Pools.CountedAs(l.Pool)}: l.Host.IsValid()}
		if l.Other != nil && l.Other.Host.IsValid() {
			places[ledger.HostPool{Host: l.Other.Host, Pool: x.Pools.CountedAs(l.Pool)}] = true
		}
		for place, is := range places {
			if is {
				inUse[place]++
			}
		}
	}
	x.Leases.Each(add)
	for _, r := range x.core.state.Missing.Gone {
		add(r.Lease())
	}
	for _, h := range x.core.state.Assumed.ByAddr {
		if h.Host.IsValid() {
			coming[ledger.HostPool{Host: h.Host, Pool: h.Pool}]++
		}
		if h.Unknown {
			doubts++
		}
	}
	counted := map[ledger.HostPool]int{}
	for at, addrs := range x.core.state.Assumed.Coming {
		counted[at] = len(addrs)
	}
	if !maps.Equal(inUse, x.core.state.Hosts.InUse) || !maps.Equal(coming, counted) || doubts != x.core.state.Assumed.Unknown {
		t.Fatalf("in use %v, coming %v, %d doubts; counted are %v, %v, %d", inUse, coming, doubts, x.core.state.Hosts.InUse, counted,
			x.core.state.Assumed.Unknown)
	}
}

// checkRules compares what the index knows with the rules that its tables keep, seen from inside.
func checkRules(t fataler, x *Index) {
	t.Helper()
	if err := memory.Check(x.core.state); err != nil {
		t.Fatalf("%v", err)
	}
}

// losesInCircle reports whether three or more pools share an address and each loses it to another. The
// rule looks at two pools at a time; such an address is served by nobody until a lease comes or goes.
func losesInCircle(x *Index, a netip.Addr) bool {
	sharing := 0
	for _, p := range x.Pools.All() {
		if p.Plan.Usable.Contains(a) {
			sharing++
		}
	}
	return sharing > 2
}

// checkRanges compares the addresses of a pool by their state with its counts.
func (m *machine) checkRanges(t *rapid.T, name string, want ipam.PoolCounts) {
	r := m.x.Pools.Ranges(name, m.model.now)
	var sum uint64
	for _, of := range []struct {
		state string
		set   *netipx.IPSet
		want  uint64
	}{
		{"free", r.Free, want.Free}, {"cooling", r.Cooling, want.Cooling}, {"active", r.Active, uint64(want.Active)},
		{"reserved", r.Reserved, uint64(want.Reserved)},
		{"others", r.Others, want.Capacity - want.Free - want.Cooling - uint64(want.Active+want.Reserved)},
	} {
		n := ipaddr.SizeOfSet(of.set)
		if n != of.want {
			t.Fatalf("%d addresses of pool %s are %s: %s; want %d", n, name, of.state, ipaddr.FormatSet(of.set), of.want)
		}
		sum += n
	}
	all := ipaddr.SetOf(slices.Concat(r.Free.Ranges(), r.Cooling.Ranges(), r.Active.Ranges(), r.Reserved.Ranges(),
		r.Others.Ranges())...)
	if n := ipaddr.SizeOfSet(all); n != sum {
		t.Fatalf("pool %s has %d addresses in %d places", name, n, sum)
	}
}
