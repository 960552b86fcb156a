package ipam

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
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
	checkLeftovers(t, m.x)
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
	doubts := map[netip.Addr]Assumed{}
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
		{PodUID: "u1"}, {Owner: "vm-1"}, {},
	} {
		same("ByAttachment", held(func(l lease.Lease) bool {
			return (h.IfName == "" || l.IfName == h.IfName) && l.Owner == h.Owner &&
				(h.Owner != "" || h.PodUID != "" && l.PodUID == h.PodUID)
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
			w, n := PickRequest{Host: host, Claim: claim, IfName: "eth0"}, need{family: f}
			if got, want := m.x.core.picker.retainedForAny(w, n, nil), m.lookAtAll(w, n); got != want {
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

// lookAtAll is keptForAny in as many steps as there are addresses.
func (m *machine) lookAtAll(w PickRequest, n need) (best choice) {
	var first *record
	for r := range m.x.core.state.leases.byAddr.all() {
		p, _, served := m.x.core.state.pools.serving(r.addr)
		if r.claim() != w.Claim || w.Claim == "" || r.key() != "" || !waits(r, w, n) || m.x.core.state.busy(r) || !served ||
			p.Terminating || !m.x.core.state.pools.fits(p, w) || m.model.hostFull(p.Pool, w, m.model.known(), nil) ||
			m.model.overQuotaWith(p.Pool, w, r.addr, m.model.known(), nil) {
			continue
		}
		if first == nil || r.updated > first.updated || r.updated == first.updated && r.addr.Less(first.addr) {
			first, best = r, choice{p, r.addr, n.slot}
		}
	}
	return best
}

func (m *machine) checkPools(t *rapid.T, known map[netip.Addr]lease.Lease) {
	serving := m.model.serving(known)
	for _, a := range universe {
		if got, _ := m.x.Pools.PoolOf(a); got != serving[a] {
			t.Fatalf("%s is served by %q, want %q", a, got, serving[a])
		}
	}
	for _, name := range slices.Concat(poolNames4, poolNames6, []string{"gone"}) {
		var want PoolCounts
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

// checkFreeSets looks at every address of every pool: one pool at most serves it, and it is free
// exactly when nothing occupies it.
func checkFreeSets(t fataler, x *Index) {
	t.Helper()
	served := map[netip.Addr]string{}
	for name, p := range x.core.state.pools.byName {
		free := uint64(0)
		for i := range p.set.len() {
			a := p.address(i)
			if other, twice := served[a]; twice {
				t.Fatalf("%s is served by %s and %s", a, other, name)
			}
			served[a] = name
			if p.withholds(a) {
				t.Fatalf("%s of pool %s is withheld from it, and in its free set", a, name)
			}
			if !p.Plan.Usable.Contains(a) {
				t.Fatalf("%s is served by %s, which does not have it", a, name)
			}
			if q, n, ok := x.core.state.pools.serving(a); !ok || q != p || n != i {
				t.Fatalf("%s is number %d of %s, and is looked for elsewhere", a, i, name)
			}
			next, ok := p.set.next(i)
			isFree := ok && next == i
			rests := !x.core.state.occupied(a) && p.coolsUntil(x.core.state.leases.record(a)) > x.core.state.now
			if isFree == (x.core.state.occupied(a) || rests) || p.cooldowns.set.isTaken(i) != rests {
				t.Fatalf("%s of pool %s: free is %v, occupied is %v, rests is %v", a, name, isFree, x.core.state.occupied(a), rests)
			}
			if rests && !slices.Contains(p.cooldowns.queue, cooldown{p.coolsUntil(x.core.state.leases.record(a)), i}) {
				t.Fatalf("%s of pool %s rests, and nothing ends that", a, name)
			}
			if isFree {
				free++
			}
		}
		if n := uint64(len(p.cooldowns.queue)); n > 2*p.cooldowns.set.used()+64 {
			t.Fatalf("%d ends of rests are kept for %d addresses of pool %s", n, p.cooldowns.set.used(), name)
		}
		if p.set.free() != free {
			t.Fatalf("pool %s counts %d free, has %d", name, p.set.free(), free)
		}
	}
	for _, p := range x.core.state.pools.byName {
		for _, r := range p.Plan.Usable.Ranges() {
			for a := r.From(); a.Compare(r.To()) <= 0; a = a.Next() {
				if q, _, ok := x.core.state.pools.serving(a); ok && q.withholds(a) { // p itself, or a group that p loses it to
					continue
				}
				if served[a] == "" && !losesInCircle(x, a) {
					t.Fatalf("%s of pool %s is served by nobody", a, p.Name)
				}
			}
		}
	}
}

// checkPlaces counts again what is in use and held on hosts, and what is in doubt.
func checkPlaces(t fataler, x *Index) {
	t.Helper()
	inUse, coming, doubts := map[hostPool]int{}, map[hostPool]int{}, 0
	for _, r := range slices.AppendSeq(slices.Collect(x.core.state.leases.byAddr.all()), maps.Values(x.core.state.missing.gone)) {
		for at := range x.core.state.hostPoolsOf(r) {
			inUse[at]++
		}
	}
	for _, h := range x.core.state.assumed.byAddr {
		if h.Host.IsValid() {
			coming[hostPool{h.Host, h.Pool}]++
		}
		if h.Unknown {
			doubts++
		}
	}
	counted := map[hostPool]int{}
	for at, addrs := range x.core.state.assumed.coming {
		counted[at] = len(addrs)
	}
	if !maps.Equal(inUse, x.core.state.hosts.inUse) || !maps.Equal(coming, counted) || doubts != x.core.state.assumed.unknown {
		t.Fatalf("in use %v, coming %v, %d doubts; counted are %v, %v, %d", inUse, coming, doubts, x.core.state.hosts.inUse, counted,
			x.core.state.assumed.unknown)
	}
}

// checkLeftovers looks for entries that nothing is left of.
func checkLeftovers(t fataler, x *Index) {
	t.Helper()
	for name, table := range map[string]table{
		"addresses": x.core.state.leases.byAddr, "containers": x.core.state.leases.byContainer, "attachments": x.core.state.leases.byAttachment,
	} {
		if n := len(slices.Collect(table.all())); n != table.size || n > len(table.heads) {
			t.Fatalf("the table of %s holds %d, counts %d, has room for %d", name, n, table.size, len(table.heads))
		}
	}
	for h, of := range x.core.state.leases.byHost {
		if len(of) == 0 {
			t.Fatalf("byHost keeps nothing of %s", h)
		}
	}
	for name, of := range x.core.state.members.byPool {
		if len(of.records) == 0 {
			t.Fatalf("byPool keeps nothing of %s", name)
		}
	}
	if len(x.core.state.staleOverlaps) > 0 {
		t.Fatalf("%d overlaps are not settled", len(x.core.state.staleOverlaps))
	}
}

// losesInCircle reports whether three or more pools share an address and each loses it to another. The
// rule looks at two pools at a time; such an address is served by nobody until a lease comes or goes.
func losesInCircle(x *Index, a netip.Addr) bool {
	sharing := 0
	for _, p := range x.core.state.pools.byName {
		if p.Plan.Usable.Contains(a) {
			sharing++
		}
	}
	return sharing > 2
}

// checkRanges compares the addresses of a pool by their state with its counts.
func (m *machine) checkRanges(t *rapid.T, name string, want PoolCounts) {
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
