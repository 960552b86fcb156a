package claim

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// TestProblems: what is in the way of a claim, and who.
func TestProblems(t *testing.T) {
	x := index.New()
	for name, spec := range map[string]ipam.PlanSpec{
		"a":   {Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.9-10.0.0.12"}},
		"b":   {Net: "10.0.1.0", Mask: 24, Gateway: "10.0.1.1", Available: []string{"10.0.1.9-10.0.1.12"}},
		"six": {Net: "2001:db8::", Mask: 64, Gateway: "2001:db8::1", Available: []string{"2001:db8::9-2001:db8::c"}},
	} {
		plan, err := ipam.NewPlan(spec)
		if err != nil {
			t.Fatal(err)
		}
		p := ipam.Pool{Name: name, Plan: plan, Hosts: map[netip.Addr]struct{}{netip.MustParseAddr("192.168.0.1"): {}}}
		if name == "b" {
			p.Namespaces = map[string]struct{}{"bound": {}}
		}
		x.Pools.SetPool(p)
	}
	hold := func(n byte, s lease.State, claim string) {
		l := address(n, s, "", 60, func(l *lease.Lease) { l.Claim, l.Fixed, l.Version = claim, claim != "", uint64(n) })
		if s == lease.Active {
			l.Namespace, l.PodName, l.PodUID = "other", "pod-0", "u"
		}
		x.Feed.Watched(l)
	}
	hold(10, lease.Active, "")
	hold(11, lease.Reserved, "other/web")
	hold(12, lease.Reserved, "shop/web")
	var b netipx.IPSetBuilder
	b.AddRange(netipx.MustParseIPRange("10.0.0.12-10.0.0.20"))
	rival, err := b.IPSet()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		namespace  string
		spec       v1.BCSNetIPClaimSpec
		deleting   bool
		forAll     bool
		rivals     map[string]*netipx.IPSet
		duplicates []string
		above      workload.Workload
		want       []Problem
	}{
		"nothing said":                                          {},
		"as many as there are":                                  {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(4)), Pool: "a"}},
		"more than its pool has":                                {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(5)), Pool: "a"}, want: []Problem{{"LargerThanPools", "it may have 5 addresses of a family, and its pools have 4 (a) in all"}}},
		"more than the pools have":                              {namespace: "bound", spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(5))}, want: []Problem{{"LargerThanPools", "it may have 5 addresses of a family, and its pools have 4 (b) in all"}}},
		"of several namespaces":                                 {namespace: "bound", spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(8)), Namespaces: []string{"shop"}}},
		"preallocated for several namespaces":                   {namespace: "bound", spec: v1.BCSNetIPClaimSpec{Preallocate: true, Replicas: new(int32(8)), Namespaces: []string{"shop"}}, want: []Problem{{"LargerThanPools", "it may have 8 addresses of a family, and its pools have 4 (b) in all"}}},
		"a pool that does not serve it":                         {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(1)), Pool: "b"}, want: []Problem{{"LargerThanPools", "it may have 1 address of a family, and its pools have none (no pool serves it) in all"}}},
		"no such pool":                                          {spec: v1.BCSNetIPClaimSpec{Pool: "c"}, want: []Problem{{"PoolNotFound", "there is no pool c"}}},
		"an address of its own":                                 {spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.0.0.9", "10.0.0.12"}}},
		"in no pool":                                            {spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.0.0.9", "10.0.0.13", "10.9.0.0/16"}}, want: []Problem{{"AddressNotInPool", "10.0.0.13, 10.9.0.0-10.9.255.255 are in no pool"}}},
		"held by a pod, and by a claim":                         {spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.0.0.9-10.0.0.11"}}, want: []Problem{{"AddressInUse", "10.0.0.10 is held by other/pod-0, 10.0.0.11 is kept for claim other/web"}}},
		"held, and enough beside that":                          {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(2)), Addresses: []string{"10.0.0.9-10.0.0.12"}}},
		"held, and not enough":                                  {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(3)), Addresses: []string{"10.0.0.9-10.0.0.12"}}, want: []Problem{{"AddressInUse", "10.0.0.10 is held by other/pod-0, 10.0.0.11 is kept for claim other/web"}}},
		"fewer named than it may have":                          {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(3)), Addresses: []string{"10.0.0.9"}}, want: []Problem{{"LargerThanPools", "it may have 3 addresses of a family, and names 1"}}},
		"of both families, held of one, and enough beside that": {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(2)), Addresses: []string{"10.0.0.9-10.0.0.12", "2001:db8::9-2001:db8::a"}}},
		"of both families, held of one, and not enough of that": {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(3)), Addresses: []string{"10.0.0.9-10.0.0.12", "2001:db8::9-2001:db8::c"}}, want: []Problem{{"AddressInUse", "10.0.0.10 is held by other/pod-0, 10.0.0.11 is kept for claim other/web"}}},
		"of both families, fewer of one":                        {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(2)), Addresses: []string{"10.0.0.9-10.0.0.12", "2001:db8::9"}}, want: []Problem{{"LargerThanPools", "it may have 2 addresses of a family, and names 1 of IPv6"}}},
		"of both families, too many of one to look": {spec: v1.BCSNetIPClaimSpec{Replicas: new(int32(3)), Addresses: []string{"10.0.0.9-10.0.0.11", "2001:db8::/64"}}, want: []Problem{
			{"AddressNotInPool", "2001:db8::-2001:db8::8, 2001:db8::d-2001:db8::ffff:ffff:ffff:ffff are in no pool"},
			{"AddressInUse", "10.0.0.10 is held by other/pod-0, 10.0.0.11 is kept for claim other/web"},
		}},
		"another claim names some":         {spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.0.0.9", "10.0.0.12"}}, rivals: map[string]*netipx.IPSet{"pay/gw": rival}, want: []Problem{{"AddressesShared", "claim pay/gw names 10.0.0.12, too"}}},
		"another claim names none of its":  {spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.0.0.9"}}, rivals: map[string]*netipx.IPSet{"pay/gw": rival}},
		"more than are looked at":          {spec: v1.BCSNetIPClaimSpec{Addresses: []string{"10.0.0.0/19"}}, want: []Problem{{"AddressNotInPool", "10.0.0.0-10.0.0.8, 10.0.0.13-10.0.1.8, 10.0.1.13-10.0.31.255 are in no pool"}}},
		"owned by what belongs to another": {above: workload.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, want: []Problem{{"OwnerControlled", "ReplicaSet shop/web-7d belongs to Deployment shop/web, and its pods draw from the claims of that: spec.owner has to name it"}}, spec: v1.BCSNetIPClaimSpec{Owner: &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d"}}},
		"others for its workload":          {duplicates: []string{"shop/a", "shop/b"}, want: []Problem{{"OwnerShared", "shop/a, shop/b are for Deployment shop/web, too: a pod draws from one, which an annotation has to name"}}, spec: v1.BCSNetIPClaimSpec{Owner: &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}},
		"in another pool than it says":     {spec: v1.BCSNetIPClaimSpec{Pool: "six", Addresses: []string{"10.0.0.9", "2001:db8::9"}}, want: []Problem{{"AddressNotInPool", "10.0.0.9 is not in pool six"}}},
		"a shared pool that no pod finds":  {spec: v1.BCSNetIPClaimSpec{SharedName: "blue"}, want: []Problem{{"SharedNameElsewhere", "pods that name the shared pool blue use claim shop/pool-blue, not this one"}}},
		"not the one that is for all":      {forAll: true, spec: v1.BCSNetIPClaimSpec{SharedName: "blue"}, want: []Problem{{"SharedNameElsewhere", "pods that name the shared pool blue use claim bcsnet-system/pool-blue, not this one"}}},
		"being deleted":                    {spec: v1.BCSNetIPClaimSpec{Pool: "c"}, deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1.BCSNetIPClaim{Spec: tc.spec}
			o.Namespace, o.Name = "shop", "web"
			if tc.namespace != "" {
				o.Namespace = tc.namespace
			}
			c, err := FromObject(o)
			if err != nil {
				t.Fatal(err)
			}
			c.Deleting = tc.deleting
			if diff := cmp.Diff(tc.want, Problems(c, x,
				Others{tc.rivals, tc.duplicates, tc.above, "bcsnet-system", tc.forAll})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
