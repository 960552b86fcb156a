package index

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

// TestIndexAgainstModel drives an index as the watch, our own writes, the pools and the requests do,
// in any order that can happen, and compares it with the model after every step.
func TestIndexAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{x: New(), model: newModel()}
		m.x.Feed.Subscribe(m.changed)
		for range rapid.IntRange(0, 4).Draw(t, "pools") {
			m.setPool(t)
		}
		for range rapid.IntRange(0, 10).Draw(t, "objects") {
			m.othersWrite(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"others write":     m.othersWrite,
			"others release":   m.othersRelease,
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
			"set namespace":    m.setNamespace,
			"pick":             m.pick,
			"doubt":            m.doubt,
			"drop":             m.drop,
			"time passes":      m.timePasses,
			"":                 m.check,
		})
	})
}

type machine struct {
	x     *Index
	model *model
	// answers are own writes whose answers have not arrived; they may arrive in any order.
	answers []fact
	mirror  map[netip.Addr]lease.Lease // what subscribers were told
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
		out = append(out, ipaddr.Advance(ip(first), i))
	}
	return out
}

func anAddr(t *rapid.T) netip.Addr { return rapid.SampledFrom(universe).Draw(t, "address") }

func aLease(t *rapid.T, a netip.Addr) lease.Lease {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
	l := lease.Lease{
		Addr: a, State: rapid.SampledFrom([]lease.State{lease.Available, lease.Active, lease.Active, lease.Reserved}).
			Draw(t, "state"),
		Params: lease.Params{
			Pool: pick("pool", "a", "b", "c", "d", "u", "v", "gone"), Bits: rapid.IntRange(24, 26).Draw(t, "bits"),
		},
		Deleting: rapid.IntRange(0, 9).Draw(t, "deleting") == 0,
	}
	if l.State == lease.Available && rapid.Bool().Draw(t, "clean") {
		return l
	}
	if rapid.Bool().Draw(t, "used") {
		l.Updated, l.History = at(rapid.IntRange(0, 60).Draw(t, "updated")), aHistory(t)
	}
	l.Holder = lease.Holder{
		ContainerID: pick("container", "", "c1", "c2", "c3"), IfName: pick("interface", "eth0", "net1"),
		Namespace: pick("namespace", "shop", "shop", "bank", ""), PodName: pick("pod", "x", "y"),
		PodUID: pick("uid", "", "u1", "u2"),
	}
	if host := pick("host", "", host1, host2); host != "" {
		l.Host = ip(host)
	}
	if l.State != lease.Available && rapid.Bool().Draw(t, "claimed") {
		l.Retention = lease.Retention{
			Claim: pick("claim", "shop/x", "shop/y", "bank/z"), PodPrimaryKey: pick("key", "", "k1", "k2"), Fixed: rapid.Bool().
				Draw(t, "fixed"),
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "owner") == 0 {
		l.Owner = pick("owner name", "vm-1", "vm-2")
	}
	if l.State == lease.Active && l.Owner == "" && rapid.IntRange(0, 3).Draw(t, "migrates") == 0 {
		o := l.Holder
		o.ContainerID, o.PodUID = pick("second container", "c1", "c2", "c3"), pick("second uid", "u1", "u2")
		o.Host, o.UIDNamed = ip(pick("second host", host1, host2)), true
		if o.ContainerID != l.ContainerID && o.PodUID != l.PodUID {
			l.Other = &o
		}
	}
	return l
}

// aHistory has holders and changes by hand in any order.
func aHistory(t *rapid.T) lease.History {
	var entries []lease.Past
	for range rapid.IntRange(0, lease.MaxHistory).Draw(t, "entries") {
		entries = append(entries, lease.Past{
			Holder: rapid.SampledFrom([]string{"", "", "shop/x", "shop/y"}).Draw(t, "earlier holder"),
			Until:  at(rapid.IntRange(0, 60).Draw(t, "until")),
		})
	}
	return lease.NewHistory(entries)
}

func (m *machine) timePasses(t *rapid.T) {
	m.model.now = m.model.now.Add(time.Duration(rapid.Int64Range(1, int64(20*time.Second)).Draw(t, "passed")))
}

func (m *machine) changed(old, new lease.Lease) {
	if m.mirror == nil {
		m.mirror = map[netip.Addr]lease.Lease{}
	}
	before, ok := m.mirror[old.Addr]
	if !ok {
		before.Addr = old.Addr
	}
	if diff := leaseDiff(before, old); diff != "" {
		panic("the lease before a change is not the one after the last:\n" + diff)
	}
	if delete(m.mirror, new.Addr); new.Version > 0 {
		m.mirror[new.Addr] = new
	}
	switch {
	case new.Version > 0 && old.State != lease.Available && ledger.Emptied(ledger.Pack(old), ledger.Pack(new)):
		m.model.lost[old.Addr] = old
	case new.Version > 0:
		// A release that came after the loss says that there is none.
		if l, ok := m.model.lost[new.Addr]; ok && (new.State != lease.Available || ledger.Nanos(new.Updated) > ledger.Nanos(l.Updated)) {
			delete(m.model.lost, new.Addr)
		}
	case new.Version == 0 && old.State != lease.Available:
		m.model.lost[old.Addr] = old
	}
}

func (m *machine) othersWrite(t *rapid.T) { m.model.commit(m.next(t), false) }

func (m *machine) write(t *rapid.T) {
	m.answers = append(m.answers, m.model.commit(m.next(t), false))
}

// next draws what somebody writes. A held address has no earlier time than it had before: that happens only where the
// store is put back, which TestRestartToEarlierHolders is about. A container that had it before gets it at a later
// time: what others write of a lease that stays is for TestBoundOfWhatOthersWrite.
func (m *machine) next(t *rapid.T) lease.Lease {
	l := aLease(t, anAddr(t))
	for _, f := range m.model.log {
		if l.State == lease.Available || f.lease.Addr != l.Addr {
			continue
		}
		if f.lease.Updated.After(l.Updated) {
			l.Updated = f.lease.Updated
		}
		switch again := f.lease.ContainerID == l.ContainerID && f.lease.Updated.Equal(l.Updated); {
		case again && l.Updated.IsZero():
			l.Updated = at(0)
		case again:
			l.Updated = l.Updated.Add(time.Second)
		}
	}
	return l
}

// stored draws an object that the API server has.
func (m *machine) stored(t *rapid.T) lease.Lease {
	all := m.model.stored()
	if len(all) == 0 {
		t.Skip("no objects")
	}
	addrs := slices.SortedFunc(maps.Keys(all), netip.Addr.Compare)
	return all[rapid.SampledFrom(addrs).Draw(t, "object")]
}

// othersRelease gives up an object's address now, whoever held it; that it was held may be news to the index.
func (m *machine) othersRelease(t *rapid.T) {
	l := m.stored(t)
	l.State = lease.Active
	at := m.model.now
	for _, f := range m.model.log { // no earlier than what was written before, as in next
		if f.lease.Addr == l.Addr && f.lease.Updated.After(at) {
			at = f.lease.Updated
		}
	}
	l, _ = lease.Release(l, at, lease.Change{})
	m.model.commit(l, false)
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
		m.x.Feed.WroteDelete(f.lease.Addr, f.version, 0)
	} else {
		m.x.Feed.Wrote(f.lease)
	}
}

func (m *machine) deliver(f fact) {
	if f.gone {
		m.x.Feed.WatchedDelete(f.lease.Addr, f.version)
	} else {
		m.x.Feed.Watched(f.lease)
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

func (m *machine) bookmark(*rapid.T) { m.x.Feed.Reached(m.model.seen) }

func (m *machine) list(t *rapid.T) {
	m.replace(rapid.Uint64Range(m.model.seen, uint64(len(m.model.log))).Draw(t, "version"))
}

func (m *machine) listOfThePast(t *rapid.T) {
	m.replace(rapid.Uint64Range(0, m.model.seen).Draw(t, "version"))
}

func (m *machine) replace(version uint64) {
	m.model.seen = max(m.model.seen, version)
	m.x.Feed.Replace(slices.Collect(maps.Values(m.model.at(version))), version)
}
