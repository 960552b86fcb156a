package recovery

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// What objects say counts in pools that lost leases, where nobody else has the address.
func TestMakeOfObjects(t *testing.T) {
	object := func(name, addr string) Object {
		return Object{Owner: "capi/shop/" + name, Namespace: "shop", Addr: ip(addr)}
	}
	owned := func(owner, addr string) lease.Lease {
		return lease.Lease{Addr: ip(addr), State: lease.Active, Version: 1, Params: lease.Params{Pool: "a"},
			Holder: lease.Holder{Owner: owner, IfName: "eth0"}}
	}
	for name, tc := range map[string]struct {
		objects           []Object
		leases            []lease.Lease
		pods              []workload.Pod
		whole             bool // the pool lost nothing
		create, conflicts []string
	}{
		"one":                {objects: []Object{object("m", "10.0.0.10")}, create: []string{"10.0.0.10 capi/shop/m"}},
		"nothing was lost":   {objects: []Object{object("m", "10.0.0.10")}, whole: true},
		"in no pool":         {objects: []Object{object("m", "10.0.1.10")}},
		"it has the address": {objects: []Object{object("m", "10.0.0.10")}, leases: []lease.Lease{owned("capi/shop/m", "10.0.0.10")}},
		"another has it": {
			objects: []Object{object("m", "10.0.0.10")}, leases: []lease.Lease{owned("capi/shop/n", "10.0.0.10")},
			conflicts: []string{"10.0.0.10 capi/shop/n holds it"},
		},
		"it is reserved": {
			objects: []Object{object("m", "10.0.0.10")}, leases: []lease.Lease{{Addr: ip("10.0.0.10"), State: lease.Reserved, Version: 1}},
			conflicts: []string{"10.0.0.10 it is reserved"},
		},
		"it holds another": {
			objects: []Object{object("m", "10.0.0.10")}, leases: []lease.Lease{owned("capi/shop/m", "10.0.0.11")},
			conflicts: []string{"10.0.0.10 capi/shop/m has 10.0.0.11"},
		},
		"two say so": {
			objects: []Object{object("m", "10.0.0.10"), object("n", "10.0.0.10")}, create: []string{"10.0.0.10 capi/shop/m"},
			conflicts: []string{"10.0.0.10 capi/shop/m has 10.0.0.10"},
		},
		"a pod reports it, too": {
			objects: []Object{object("m", "10.0.0.10")}, pods: []workload.Pod{aPod("x", has("eth0", "10.0.0.10"))},
			create: []string{"10.0.0.10 capi/shop/m"}, conflicts: []string{"10.0.0.10 capi/shop/m says that it has it, too"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			plan, err := ipam.NewPlan(ipam.PlanSpec{Net: "10.0.0.0", Mask: 24, Available: []string{"10.0.0.10-10.0.0.20"}})
			if err != nil {
				t.Fatal(err)
			}
			x.Pools.SetPool(ipam.Pool{Name: "a", Plan: plan, Hosts: map[netip.Addr]struct{}{onHost: {}}})
			for _, l := range tc.leases {
				x.Feed.Watched(l)
			}
			got := Make(Input{
				Now: now, Index: x, Pods: slices.Values(tc.pods), Objects: slices.Values(tc.objects),
				Hosts: func(p workload.Pod) []netip.Addr { return p.HostIPs }, Lost: func(string) bool { return !tc.whole },
			})
			var create, conflicts []string
			for _, l := range got.Objects {
				create = append(create, l.Addr.String()+" "+l.Owner)
				if l.State != lease.Active || !l.HeldFinalizer || l.Namespace != "shop" || l.Pool != "a" || !l.Updated.Equal(now) {
					t.Errorf("lease %+v", l)
				}
			}
			for _, c := range got.Conflicts {
				conflicts = append(conflicts, c.Addr.String()+" "+c.Cause)
			}
			if diff := cmp.Diff(tc.create, create); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.conflicts, conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
		})
	}
}
