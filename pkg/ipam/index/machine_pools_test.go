package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/ipam/ledger"
)

func (m *machine) setPool(t *rapid.T) {
	var p ipam.Pool
	entries := func(of []netip.Addr) (list []string) {
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			from := rapid.IntRange(0, len(of)-1).Draw(t, "from")
			to := rapid.IntRange(from, min(len(of)-1, from+9)).Draw(t, "to")
			list = append(list, of[from].String()+"-"+of[to].String())
		}
		return list
	}
	spec := ipam.PlanSpec{Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: entries(universe4)}
	p.Name = rapid.SampledFrom(slices.Concat(poolNames4, poolNames6)).Draw(t, "pool")
	if slices.Contains(poolNames6, p.Name) {
		spec = ipam.PlanSpec{Net: "2001:db8::", Mask: 64, Gateway: "2001:db8::1", Available: entries(universe6)}
	}
	plan, err := ipam.NewPlan(spec)
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

func (m *machine) change(t *rapid.T, p ipam.Pool) {
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
	p.HostSubnets = ipam.Networks{}
	for n := range set("host subnet", host1+"/32", "192.168.0.2/31", "192.168.0.0/16", "0.0.0.0/0", "2001:db8::/32") {
		p.HostSubnets[netip.MustParsePrefix(n)] = struct{}{}
	}
	p.HostSelector = nil
	if rack := rapid.SampledFrom([]string{"", "", "1", "2"}).Draw(t, "host selector"); rack != "" {
		p.HostSelector = oneLabel("rack=" + rack)
	}
	if rapid.IntRange(0, 2).Draw(t, "narrow") == 0 {
		p.HostSubnets = nil
	}
	if rapid.IntRange(0, 2).Draw(t, "bound") == 0 {
		p.Namespaces = set("namespace", "shop", "bank")
	} else {
		p.Namespaces = nil
	}
	p.NamespaceSelector, p.NotDefault = nil, rapid.IntRange(0, 3).Draw(t, "not default") == 0
	if rapid.IntRange(0, 3).Draw(t, "selects") == 0 {
		ofTier(rapid.SampledFrom([]string{"gold", "lead", ""}).Draw(t, "tier"))(&p)
	}
	p.Created = at(rapid.IntRange(0, 2).Draw(t, "age"))
	p.Network = rapid.SampledFrom([]string{"", "blue", "red"}).Draw(t, "network")
	p.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
	p.Cooldown = time.Duration(rapid.IntRange(0, 3).Draw(t, "cooldown")) * 15 * time.Second
	p.MaxPerHost = max(0, rapid.IntRange(-2, 3).Draw(t, "per host"))
	p.MaxPerNamespace, p.Quotas = max(0, rapid.IntRange(-2, 3).Draw(t, "per namespace")), map[string]int{}
	for ns := range set("quota", "shop", "bank") {
		p.Quotas[ns] = rapid.IntRange(0, 4).Draw(t, "quota of "+ns)
	}
	p.Cordoned = rapid.IntRange(0, 5).Draw(t, "cordoned") == 0
	p.Terminating = rapid.IntRange(0, 5).Draw(t, "terminating") == 0
	m.model.pools[p.Name] = p
	m.x.Pools.SetPool(p)
}

func (m *machine) removePool(t *rapid.T) {
	name := rapid.SampledFrom(slices.Concat(poolNames4, poolNames6)).Draw(t, "pool")
	delete(m.model.pools, name)
	m.x.Pools.RemovePool(name)
}

func (m *machine) setNode(t *rapid.T) {
	name := rapid.SampledFrom([]string{"node-1", "node-2"}).Draw(t, "node")
	n := ipam.Node{Labels: map[string]string{"rack": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "rack")}}
	n.Addrs = rapid.SliceOfN(rapid.SampledFrom(slices.Concat(universe[:4], ips(host1, host2))), 0, 3).Draw(t, "addresses")
	n.Internal = n.Addrs[:rapid.IntRange(0, len(n.Addrs)).Draw(t, "internal")]
	m.model.nodes[name] = n
	m.x.Pools.SetNode(name, n)
}

func (m *machine) setNamespace(t *rapid.T) {
	name := rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace")
	tier := rapid.SampledFrom([]string{"gold", "lead", "", "gone"}).Draw(t, "tier")
	if tier == "gone" {
		delete(m.model.labels, name)
		m.x.Pools.RemoveNamespace(name)
		return
	}
	m.model.labels[name] = map[string]string{"tier": tier}
	m.x.Pools.SetNamespace(name, m.model.labels[name])
}

func (m *machine) pick(t *rapid.T) {
	w := ipam.PickRequest{
		Host:      ip(rapid.SampledFrom([]string{host1, host2}).Draw(t, "host")),
		Namespace: rapid.SampledFrom([]string{"shop", "bank", ""}).Draw(t, "namespace"),
		Network:   rapid.SampledFrom([]string{"", "", "blue"}).Draw(t, "network"),
		Key:       fmt.Sprint("pod", rapid.IntRange(0, 50).Draw(t, "pod")), Who: "pod shop/a",
		Holder: rapid.SampledFrom([]string{"shop/x", "shop/z"}).Draw(t, "holder"),
	}
	w.Claim = rapid.SampledFrom([]string{"", "", "shop/none", "bank/none"}).Draw(t, "claim") // one that has no address
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
	picks, refusal := m.x.Pick(w, m.model.now)
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
		current := lease.Lease{Addr: a}
		if l, ok := known[a]; ok {
			current = l
		}
		if diff := leaseDiff(current, p.Current); diff != "" {
			t.Fatalf("current lease of a pick (-model +index):\n%s", diff)
		}
		m.model.holds[a] = ledger.Assumed{
			Key: w.Key, Host: w.Host, Pool: p.Pool.Name,
			Charged: lease.ChargedNamespaces{w.Namespace, lease.ClaimNamespace(w.Claim)}, Since: now,
		}
	}
}

func (m *machine) doubt(t *rapid.T) {
	a := anAddr(t)
	h := m.model.holds[a] // of whom it was picked for it remains
	m.model.holds[a] = ledger.Assumed{Key: "doubt", Host: h.Host, Pool: h.Pool, Charged: h.Charged, Unknown: true, Since: now}
	m.x.MarkUnknown(a, 0, "doubt", now)
}

func (m *machine) drop(t *rapid.T) {
	a := anAddr(t)
	if len(m.model.holds) > 0 {
		a = rapid.SampledFrom(slices.SortedFunc(maps.Keys(m.model.holds), netip.Addr.Compare)).Draw(t, "held")
	}
	delete(m.model.holds, a)
	m.x.Forget(a)
}
