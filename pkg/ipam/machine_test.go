package ipam

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestIndexAgainstModel drives an index as the watch, our own writes, the pools and the requests do,
// in any order that can happen, and compares it with the model after every step.
func TestIndexAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{x: NewIndex(), model: newModel()}
		m.x.Subscribe(m.changed)
		for range rapid.IntRange(0, 4).Draw(t, "pools") {
			m.setPool(t)
		}
		for range rapid.IntRange(0, 10).Draw(t, "objects") {
			m.othersWrite(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"others write":     m.othersWrite,
			"others delete":    m.othersDelete,
			"write":            m.write,
			"delete":           m.delete,
			"answer":           m.answer,
			"event":            m.event,
			"event again":      m.eventAgain,
			"bookmark":         m.bookmark,
			"list":             m.list,
			"list of the past": m.listOfThePast,
			"set pool":         m.setPool,
			"set pool again":   m.setPoolAgain,
			"remove pool":      m.removePool,
			"set node":         m.setNode,
			"pick":             m.pick,
			"doubt":            m.doubt,
			"drop":             m.drop,
			"":                 m.check,
		})
	})
}

type machine struct {
	x     *Index
	model *model
	// answers are own writes whose answers have not arrived; they may arrive in any order.
	answers []fact
	mirror  map[netip.Addr]Lease // what subscribers were told
}

var (
	universe4  = mustAddrs("10.0.0.2", 22)
	universe6  = mustAddrs("2001:db8::2", 8)
	universe   = slices.Concat(universe4, universe6, ips("172.16.0.1"))
	poolNames4 = []string{"a", "b", "c", "d"}
	poolNames6 = []string{"u", "v"}
)

func mustAddrs(first string, n uint64) (out []netip.Addr) {
	for i := range n {
		out = append(out, advance(ip(first), i))
	}
	return out
}

func anAddr(t *rapid.T) netip.Addr { return rapid.SampledFrom(universe).Draw(t, "address") }

func aLease(t *rapid.T, a netip.Addr) Lease {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	l := Lease{
		Addr: a, State: rapid.SampledFrom([]State{Available, Active, Active, Reserved}).Draw(t, "state"),
		Params:   Params{Pool: pick("pool", "a", "b", "c", "d", "u", "v", "gone"), Bits: rapid.IntRange(24, 26).Draw(t, "bits")},
		Deleting: rapid.IntRange(0, 9).Draw(t, "deleting") == 0,
	}
	if l.State == Available && rapid.Bool().Draw(t, "clean") {
		return l
	}
	l.Holder = Holder{
		ContainerID: pick("container", "", "c1", "c2", "c3"), IfName: pick("interface", "eth0", "net1"),
		Namespace: "shop", PodName: pick("pod", "x", "y"), PodUID: pick("uid", "", "u1", "u2"),
	}
	if host := pick("host", "", host1, host2); host != "" {
		l.Host = ip(host)
	}
	if rapid.IntRange(0, 5).Draw(t, "owner") == 0 {
		l.Owner = pick("owner name", "vm-1", "vm-2")
	}
	return l
}

func (m *machine) changed(old, new Lease) {
	if m.mirror == nil {
		m.mirror = map[netip.Addr]Lease{}
	}
	if diff := cmp.Diff(m.mirror[old.Addr], old, equal, cmpopts.IgnoreFields(Lease{}, "Addr")); diff != "" {
		panic("the lease before a change is not the one after the last:\n" + diff)
	}
	if delete(m.mirror, new.Addr); new.Version > 0 {
		m.mirror[new.Addr] = new
	}
}

func (m *machine) othersWrite(t *rapid.T) { m.model.commit(aLease(t, anAddr(t)), false) }

func (m *machine) write(t *rapid.T) {
	m.answers = append(m.answers, m.model.commit(aLease(t, anAddr(t)), false))
}

// stored draws an object that the API server has.
func (m *machine) stored(t *rapid.T) Lease {
	all := m.model.stored()
	if len(all) == 0 {
		t.Skip("no objects")
	}
	addrs := slices.SortedFunc(maps.Keys(all), netip.Addr.Compare)
	return all[rapid.SampledFrom(addrs).Draw(t, "object")]
}

func (m *machine) othersDelete(t *rapid.T) { m.model.commit(m.stored(t), true) }

func (m *machine) delete(t *rapid.T) {
	l := m.stored(t)
	m.model.commit(l, true)
	m.answers = append(m.answers, fact{version: l.Version, after: true, lease: l, gone: true})
}

func (m *machine) answer(t *rapid.T) {
	if len(m.answers) == 0 {
		t.Skip("no answers under way")
	}
	i := rapid.IntRange(0, len(m.answers)-1).Draw(t, "answer")
	f := m.answers[i]
	m.answers = slices.Delete(m.answers, i, i+1)
	m.model.told[f.lease.Addr] = append(m.model.told[f.lease.Addr], f)
	if f.gone {
		m.x.WroteDelete(f.lease.Addr, f.version)
	} else {
		m.x.Wrote(f.lease)
	}
}

func (m *machine) deliver(f fact) {
	if f.gone {
		m.x.WatchedDelete(f.lease.Addr, f.version)
	} else {
		m.x.Watched(f.lease)
	}
}

func (m *machine) event(t *rapid.T) {
	n := rapid.IntRange(1, 5).Draw(t, "events")
	for range n {
		if m.model.seen < uint64(len(m.model.log)) {
			m.deliver(m.model.log[m.model.seen])
			m.model.seen++
		}
	}
}

func (m *machine) eventAgain(t *rapid.T) {
	if m.model.seen == 0 {
		t.Skip("no events yet")
	}
	m.deliver(m.model.log[rapid.Uint64Range(0, m.model.seen-1).Draw(t, "old event")])
}

func (m *machine) bookmark(*rapid.T) { m.x.Reached(m.model.seen) }

func (m *machine) list(t *rapid.T) {
	m.replace(rapid.Uint64Range(m.model.seen, uint64(len(m.model.log))).Draw(t, "version"))
}

func (m *machine) listOfThePast(t *rapid.T) {
	m.replace(rapid.Uint64Range(0, m.model.seen).Draw(t, "version"))
}

func (m *machine) replace(version uint64) {
	m.model.seen = max(m.model.seen, version)
	m.x.Replace(slices.Collect(maps.Values(m.model.at(version))), version)
}

func (m *machine) setPool(t *rapid.T) {
	var p Pool
	entries := func(of []netip.Addr) (list []string) {
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			from := rapid.IntRange(0, len(of)-1).Draw(t, "from")
			to := rapid.IntRange(from, min(len(of)-1, from+9)).Draw(t, "to")
			list = append(list, of[from].String()+"-"+of[to].String())
		}
		return list
	}
	spec := PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: entries(universe4)}
	p.Name = rapid.SampledFrom(slices.Concat(poolNames4, poolNames6)).Draw(t, "pool")
	if slices.Contains(poolNames6, p.Name) {
		spec = PlanSpec{Net: "2001:db8::", Mask: 64, Gateway: "2001:db8::1", Available: entries(universe6)}
	}
	plan, err := NewPlan(spec)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p.Plan = plan
	if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
		p.Problem = "bad"
	}
	m.change(t, p)
}

// setPoolAgain changes a pool, not its addresses.
func (m *machine) setPoolAgain(t *rapid.T) {
	if len(m.model.pools) == 0 {
		t.Skip("no pools")
	}
	m.change(t, m.model.pools[rapid.SampledFrom(slices.Sorted(maps.Keys(m.model.pools))).Draw(t, "pool")])
}

func (m *machine) change(t *rapid.T, p Pool) {
	set := func(label string, of ...string) map[string]struct{} {
		out := map[string]struct{}{}
		for _, s := range of {
			if rapid.Bool().Draw(t, label+" "+s) {
				out[s] = struct{}{}
			}
		}
		return out
	}
	p.Hosts = map[netip.Addr]struct{}{}
	for h := range set("host", host1, host2) {
		p.Hosts[ip(h)] = struct{}{}
	}
	if rapid.IntRange(0, 2).Draw(t, "bound") == 0 {
		p.Namespaces = set("namespace", "shop", "bank")
	} else {
		p.Namespaces = nil
	}
	p.Created = at(rapid.IntRange(0, 2).Draw(t, "age"))
	p.Network = rapid.SampledFrom([]string{"", "blue", "red"}).Draw(t, "network")
	p.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
	p.Cordoned = rapid.IntRange(0, 5).Draw(t, "cordoned") == 0
	p.Terminating = rapid.IntRange(0, 5).Draw(t, "terminating") == 0
	m.model.pools[p.Name] = p
	m.x.SetPool(p)
}

func (m *machine) removePool(t *rapid.T) {
	name := rapid.SampledFrom(slices.Concat(poolNames4, poolNames6)).Draw(t, "pool")
	delete(m.model.pools, name)
	m.x.RemovePool(name)
}

func (m *machine) setNode(t *rapid.T) {
	name := rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(t, "node")
	addrs := rapid.SliceOfN(rapid.SampledFrom(universe[:4]), 0, 3).Draw(t, "addresses")
	m.model.nodes[name] = addrs
	m.x.SetNode(name, addrs)
}

func (m *machine) pick(t *rapid.T) {
	w := Want{
		Host:      ip(rapid.SampledFrom([]string{host1, host2}).Draw(t, "host")),
		Namespace: rapid.SampledFrom([]string{"shop", "bank", ""}).Draw(t, "namespace"),
		Network:   rapid.SampledFrom([]string{"", "", "blue"}).Draw(t, "network"),
		Key:       fmt.Sprint("pod", rapid.IntRange(0, 50).Draw(t, "pod")), Who: "pod shop/a",
	}
	some := func(label string) bool { return rapid.IntRange(0, 3).Draw(t, label) == 0 }
	for _, of := range [][]netip.Addr{universe4, universe6} {
		if some("ask") {
			w.Addrs = append(w.Addrs, rapid.SampledFrom(of).Draw(t, "asked"))
		}
		if some("have") {
			l := aLease(t, rapid.SampledFrom(of).Draw(t, "held"))
			w.Have = append(w.Have, l)
		}
	}
	known := m.model.known()
	want, ok := m.model.pick(w)
	picks, refusal := m.x.Pick(w, now)
	if (refusal == nil) != ok {
		t.Fatalf("Pick gives %v, %s; the model says %v, %v", picked(picks), refused(refusal), want, ok)
	}
	if diff := cmp.Diff(want, picked(picks), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("picks (-model +index):\n%s", diff)
	}
	if refusal != nil && (refusal.Message == "" || refusal.Hint == "") {
		t.Fatalf("refusal without message or hint: %s", refused(refusal))
	}
	for _, p := range picks {
		a := p.Current.Addr
		current := Lease{Addr: a}
		if l, ok := known[a]; ok {
			current = l
		}
		if diff := cmp.Diff(current, p.Current, equal); diff != "" {
			t.Fatalf("current lease of a pick (-model +index):\n%s", diff)
		}
		m.model.holds[a] = Hold{Key: w.Key, Since: now}
	}
}

func (m *machine) doubt(t *rapid.T) {
	a := anAddr(t)
	m.model.holds[a] = Hold{Key: "doubt", Doubt: true, Since: now}
	m.x.Doubt(a, "doubt", now)
}

func (m *machine) drop(t *rapid.T) {
	a := anAddr(t)
	if len(m.model.holds) > 0 {
		a = rapid.SampledFrom(slices.SortedFunc(maps.Keys(m.model.holds), netip.Addr.Compare)).Draw(t, "held")
	}
	delete(m.model.holds, a)
	m.x.Drop(a)
}
