package recovery

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// fixture is a cluster of a few pods that report a few addresses, of which some objects are left.
type fixture struct {
	index  *index.Index
	leases map[netip.Addr]lease.Lease
	pods   []workload.Pod
}

func drawFixture(t *rapid.T) fixture {
	f := fixture{index: index.New(), leases: map[netip.Addr]lease.Lease{}}
	// The pool serves .10 to .15; of what is drawn, .16 and .17 are in none.
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.254", Available: []string{"10.0.0.10-10.0.0.15"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.index.Pools.SetPool(ipam.Pool{Name: "a", Network: "net", Plan: plan, Hosts: map[netip.Addr]struct{}{onHost: {}}})
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		return ip(fmt.Sprintf("10.0.0.%d", rapid.IntRange(10, 17).Draw(t, "last byte")))
	})
	often := func(what string) bool { return rapid.IntRange(0, 3).Draw(t, what) > 0 }
	for n := range rapid.IntRange(0, 5).Draw(t, "pods") {
		p := aPod(fmt.Sprintf("p%d", n), func(p *workload.Pod) {
			p.Started = now.Add(-time.Duration(rapid.IntRange(1, 3).Draw(t, "age")) * time.Hour)
			p.Deleting, p.Ended, p.HostNetwork = !often("stays"), !often("runs"), !often("has a network of its own")
		})
		for _, a := range rapid.SliceOfNDistinct(addr, 0, 2, rapid.ID[netip.Addr]).Draw(t, "reports") {
			has(rapid.SampledFrom([]string{"eth0", "net1", ""}).Draw(t, "interface"), a.String())(&p)
		}
		f.pods = append(f.pods, p)
	}
	version := uint64(0)
	for _, a := range rapid.SliceOfDistinct(addr, rapid.ID[netip.Addr]).Draw(t, "objects") {
		version++
		l := lease.Lease{Addr: a, Version: version, Params: lease.Params{Pool: "a", Bits: 24}}
		l.State = rapid.SampledFrom([]lease.State{lease.Available, lease.Active, lease.Reserved}).Draw(t, "state")
		who := fmt.Sprintf("p%d", rapid.IntRange(0, 5).Draw(t, "whose"))
		switch l.State {
		case lease.Active:
			l.Holder = lease.Holder{ContainerID: "c-" + who, IfName: "eth0", Namespace: "shop", PodName: who,
				PodUID: "u-" + who}
		case lease.Available:
			if !often("never held") {
				until := now.Add(-time.Duration(rapid.IntRange(0, 4).Draw(t, "since")) * time.Hour)
				l.History = lease.NewHistory([]lease.Past{{Holder: "shop/" + who, Since: until.Add(-time.Hour),
					Until: until}})
			}
		}
		f.leases[a] = l
		f.index.Feed.Watched(l)
	}
	return f
}

func (f fixture) plan(pods []workload.Pod) Plan {
	return Make(Input{
		Now: now, Index: f.index, Pods: slices.Values(pods),
		Hosts: func(p workload.Pod) []netip.Addr { return p.HostIPs },
	})
}

// A plan gives no address twice and none that somebody has, makes leases for pods that run and report them
// alone, leaves out no pod that is there to stay without saying why, and does not depend on the order of the pods.
func TestMakeAnyScene(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFixture(t)
		plan := f.plan(f.pods)

		made := map[netip.Addr]lease.Lease{}
		for _, l := range plan.Create {
			if _, twice := made[l.Addr]; twice {
				t.Errorf("%s is made twice", l.Addr)
			}
			made[l.Addr] = l
			if old := f.leases[l.Addr]; old.State != lease.Available || old.Version != l.Version {
				t.Errorf("%s is made over %+v", l.Addr, old)
			}
			if _, served := f.index.Pools.PoolOf(l.Addr); !served {
				t.Errorf("%s is in no pool", l.Addr)
			}
			if !slices.ContainsFunc(f.pods, func(p workload.Pod) bool {
				return p.UID == l.PodUID && !p.Ended && !p.HostNetwork && slices.Contains(p.Addrs, l.Addr) &&
					!GaveUp(f.leases[l.Addr], p)
			}) {
				t.Errorf("%s is made for %s, which does not have it", l.Addr, l.Who())
			}
		}
		for _, p := range f.pods {
			if p.Ended || p.HostNetwork || p.Deleting {
				continue
			}
			for _, a := range p.Addrs {
				_, served := f.index.Pools.PoolOf(a)
				old := f.leases[a]
				its := made[a].PodUID == p.UID || old.State == lease.Active && old.PodUID == p.UID ||
					old.State != lease.Active &&
						GaveUp(old, p)
				told := slices.IndexFunc(plan.Conflicts, func(c Conflict) bool {
					return c.Addr == a &&
						c.Pod == "shop/"+p.Name
				})
				if served && !its && told < 0 {
					t.Errorf("%s of %s is left out without a word", a, p.Name)
				}
				if told >= 0 && slices.ContainsFunc(f.pods, func(o workload.Pod) bool {
					return o.Deleting && plan.Conflicts[told].Cause == "shop/"+o.Name+" reports it, too"
				}) {
					t.Errorf("%s of %s is another's that is being deleted: %s", a, p.Name, plan.Conflicts[told].Cause)
				}
			}
		}
		if diff := cmp.Diff(plan, f.plan(rapid.Permutation(f.pods).Draw(t, "another order")),
			cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("in another order:\n%s", diff)
		}
	})
}
