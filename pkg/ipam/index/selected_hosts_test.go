package index

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// drawn returns which of some hosts find a pool in the tables, and makes sure that Draws says the same of them.
func drawn(t *testing.T, x *Index, name string, of ...string) (found []string) {
	t.Helper()
	p, _ := x.Pools.Get(name)
	for _, h := range of {
		listed := slices.Contains(x.Pools.PoolsOf(ip(h)), name)
		if listed != p.Draws(ip(h)) {
			t.Errorf("host %s of pool %s: in the tables %t, Draws %t", h, name, listed, p.Draws(ip(h)))
		}
		if listed {
			found = append(found, h)
		}
	}
	return found
}

// The hosts of a host selector follow nodes and pools, in whichever order they come.
func TestHostSelector(t *testing.T) {
	const h1, h2, h3, outside = "192.168.0.1", "192.168.0.2", "192.168.0.3", "203.0.113.1"
	rack7 := func(options ...option) ipam.Pool {
		return poolOf(t, "a", append([]option{hosts(), hostSelector("rack=7")}, options...)...)
	}
	external := inRack("7", h1)
	external.Addrs = append(external.Addrs, ip(outside))
	type step = func(*Index) []string
	node := func(name string, n ipam.Node) step {
		return func(x *Index) []string { return x.Pools.SetNode(name, n) }
	}
	set := func(p ipam.Pool) step { return func(x *Index) []string { x.Pools.SetPool(p); return nil } }
	for name, tc := range map[string]struct {
		steps []step
		want  []string
		// count is HostCount; told is whether the last step named the pool.
		count int
		told  bool
	}{
		"nodes, then the pool":             {steps: []step{node("n1", inRack("7", h1)), node("n2", inRack("8", h2)), set(rack7())}, want: []string{h1}, count: 1},
		"the pool, then nodes":             {steps: []step{set(rack7()), node("n2", inRack("8", h2)), node("n1", inRack("7", h1))}, want: []string{h1}, count: 1, told: true},
		"a node that does not match":       {steps: []step{set(rack7()), node("n2", inRack("8", h2))}},
		"a node gets the label":            {steps: []step{set(rack7()), node("n1", inRack("", h1)), node("n1", inRack("7", h1))}, want: []string{h1}, count: 1, told: true},
		"a node loses the label":           {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n1", inRack("8", h1))}, told: true},
		"a node is gone":                   {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n1", ipam.Node{})}, told: true},
		"another label changes":            {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n1", ipam.Node{Addrs: ips(h1), Internal: ips(h1), Labels: map[string]string{"rack": "7", "b": "c"}})}, want: []string{h1}, count: 1},
		"a node gets another address":      {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n1", inRack("7", h2))}, want: []string{h2}, count: 1, told: true},
		"a node has two addresses":         {steps: []step{set(rack7()), node("n1", inRack("7", h1, h2))}, want: []string{h1, h2}, count: 1, told: true},
		"an ExternalIP does not count":     {steps: []step{set(rack7()), node("n1", external)}, want: []string{h1}, count: 1, told: true},
		"no address at all":                {steps: []step{set(rack7()), node("n1", inRack("7"))}, told: true},
		"two nodes of one address":         {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n2", inRack("7", h1))}, want: []string{h1}, count: 2, told: true},
		"one of two goes":                  {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n2", inRack("7", h1)), node("n1", ipam.Node{})}, want: []string{h1}, count: 1, told: true},
		"one of two is relabelled":         {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n2", inRack("7", h1)), node("n2", inRack("8", h1))}, want: []string{h1}, count: 2, told: true},
		"both of two go":                   {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n2", inRack("7", h1)), node("n1", ipam.Node{}), node("n2", ipam.Node{})}, told: true},
		"listed, too":                      {steps: []step{set(rack7(hosts(h1, h3))), node("n1", inRack("7", h1))}, want: []string{h1, h3}, count: 2, told: true},
		"listed, and the label goes":       {steps: []step{set(rack7(hosts(h1))), node("n1", inRack("7", h1)), node("n1", inRack("8", h1))}, want: []string{h1}, count: 1, told: true},
		"in a subnet, too":                 {steps: []step{set(rack7(hostSubnets(h2 + "/32"))), node("n1", inRack("7", h1)), node("n2", inRack("7", h2))}, want: []string{h1, h2}, count: 2, told: true},
		"the pool lists it now":            {steps: []step{set(rack7()), node("n1", inRack("7", h1)), set(rack7(hosts(h1)))}, want: []string{h1}, count: 1},
		"the pool lists it no more":        {steps: []step{set(rack7(hosts(h1))), node("n1", inRack("7", h1)), set(rack7())}, want: []string{h1}, count: 1},
		"another selector":                 {steps: []step{set(rack7()), node("n1", inRack("7", h1)), node("n2", inRack("8", h2)), set(rack7(hostSelector("rack=8")))}, want: []string{h2}, count: 1},
		"no selector any more":             {steps: []step{set(rack7()), node("n1", inRack("7", h1)), set(poolOf(t, "a", hosts())), node("n2", inRack("7", h2))}},
		"the pool is bound to a namespace": {steps: []step{set(rack7()), node("n1", inRack("7", h1)), set(rack7(namespaces("bank"))), node("n2", inRack("7", h2))}, want: []string{h1, h2}, count: 2, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			x := indexOf()
			var told []string
			for _, s := range tc.steps {
				told = s(x)
			}
			if diff := cmp.Diff(tc.want, drawn(t, x, "a", h1, h2, h3, outside)); diff != "" {
				t.Errorf("hosts (-want +got):\n%s", diff)
			}
			if n := x.Pools.HostCount("a"); n != tc.count {
				t.Errorf("HostCount = %d, want %d", n, tc.count)
			}
			if got := slices.Contains(told, "a"); got != tc.told {
				t.Errorf("the last step names %v, want the pool: %t", told, tc.told)
			}
			p, _ := x.Pools.Get("a")
			if p.NoHosts() != (len(tc.want) == 0) {
				t.Errorf("NoHosts = %t", p.NoHosts())
			}
			for _, h := range tc.want {
				if _, listed := p.Hosts[ip(h)]; !listed && !slices.Contains(x.Pools.Covering(ips(h)), "a") {
					t.Errorf("Covering does not name the pool for %s", h)
				}
			}
			if len(tc.want) > 0 {
				if h, ok := x.Pools.HostOf("a"); !ok || !p.Draws(h) {
					t.Errorf("HostOf = %s, %t", h, ok)
				}
			}
			x.Pools.RemovePool("a")
			for _, h := range tc.want {
				if got := x.Pools.PoolsOf(ip(h)); len(got) > 0 {
					t.Errorf("host %s draws from pools that are gone: %v", h, got)
				}
			}
			checkRules(t, x)
		})
	}
}

// A pool as it was handed out stays as it was, and one that is worked out from the nodes is the same.
func TestSelectedIsNotChanged(t *testing.T) {
	x := indexOf(poolOf(t, "a", hosts(), hostSelector("rack=7")))
	nodes := map[string]ipam.Node{}
	var seen []ipam.Pool
	var texts []string
	for i := range 40 {
		name := fmt.Sprint("n", (i*7)%20)
		nodes[name] = inRack(fmt.Sprint(7+i%2), fmt.Sprintf("192.168.1.%d", (i*7)%20))
		x.Pools.SetNode(name, nodes[name])
		p, _ := x.Pools.Get("a")
		if diff := cmp.Diff(p.WithNodes(maps.Values(nodes)).Selected, p.Selected, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Fatalf("after node %d (-worked out +kept):\n%s", i, diff)
		}
		seen, texts = append(seen, p), append(texts, fmt.Sprint(p.Selected))
	}
	for i, p := range seen {
		if fmt.Sprint(p.Selected) != texts[i] {
			t.Errorf("hosts of pool %d were %s, and are %v", i, texts[i], p.Selected)
		}
	}
	if nodes, internal := x.Pools.Selection("a"); nodes != 10 || internal != 10 {
		t.Errorf("Selection = %d, %d", nodes, internal)
	}
}

func TestRefusalOfAHostBesideTheSelector(t *testing.T) {
	x := indexOf(poolOf(t, "a", hosts(), hostSelector("rack=7")))
	x.Pools.SetNode("n", inRack("8", "172.16.0.1"))
	_, refusal := x.Pick(want(onHost("172.16.0.1"), func(w *ipam.PickRequest) { w.Pools = []string{"a"} }), now)
	const text = "HostNotInPool: host 172.16.0.1 may not draw from pool a, nor does its host selector rack=7 match the " +
		"host's node; hint: add the host with: bcsnetctl pool add-host a 172.16.0.1"
	if diff := cmp.Diff(text, refused(refusal)); diff != "" {
		t.Error(diff)
	}
	x.Pools.SetNode("n", inRack("7", "172.16.0.1"))
	if picks, refusal := x.Pick(want(onHost("172.16.0.1")), now); len(picks) != 1 {
		t.Errorf("the node has the label: %s", refused(refusal))
	}
}

// poolOf returns a pool of ten addresses.
func poolOf(t *testing.T, name string, options ...option) ipam.Pool {
	t.Helper()
	return pool(t, name, "10.0.0.0/24", []string{"10.0.0.10-10.0.0.19"}, options...)
}
