package claim

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// claims are those of a test.
type claims struct {
	client.Reader
	all []v1.BCSNetIPClaim
}

func (c claims) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, o := range c.all {
		if o.Namespace == key.Namespace && o.Name == key.Name {
			o.DeepCopyInto(into.(*v1.BCSNetIPClaim))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: v1.ClaimResource}, key.Name)
}

// said is the policy of all pods of a test.
type said workload.Policy

func (s said) Resolve(context.Context, workload.Pod) (workload.Policy, error) {
	return workload.Policy(s), nil
}

func TestTerms(t *testing.T) {
	set := func(from, to string) *netipx.IPSet {
		var b netipx.IPSetBuilder
		b.AddRange(netipx.IPRangeFrom(netip.MustParseAddr(from), netip.MustParseAddr(to)))
		s, err := b.IPSet()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	web := workload.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	object := func(change func(*v1.BCSNetIPClaim)) v1.BCSNetIPClaim {
		o := v1.BCSNetIPClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held"},
			Spec:       v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleaseNever},
		}
		change(&o)
		return o
	}
	named := workload.Policy{Claim: "shop/held", Named: true, Workload: web, Sources: []workload.Source{
		{Object: "Pod shop/web-x", Key: "claim", Value: "held", Gave: "Claim"}, {Object: "Pod shop/web-x", Key: "pool", Value: "b", Gave: "Pool"},
		{Object: "Deployment shop/web", Key: "ip_pool", Value: "10.0.0.9/25", Gave: "Sets"}, {Object: "Pod shop/web-x", Key: "gateway", Value: "10.9.9.9", Gave: "Gateway"},
	}}
	with := func(p workload.Policy, change func(*workload.Policy)) workload.Policy { change(&p); return p }
	held := lease.Retention{Claim: "shop/held", Fixed: true}
	for name, tc := range map[string]struct {
		policy  workload.Policy
		claims  []v1.BCSNetIPClaim
		want    allocator.Constraints
		refusal string
		missing bool // the claim is to be made
	}{
		"nothing said": {policy: workload.Policy{Release: workload.ReleaseWithPod}},
		"a pool":       {policy: workload.Policy{Release: workload.ReleaseWithPod, Pools: []string{"a"}}, want: allocator.Constraints{Pools: []string{"a"}}},
		"a claim that is not made yet": {
			policy: workload.Policy{Claim: "shop/deploy-web", Release: workload.ReleaseImmutable},
			want:   allocator.Constraints{Retention: lease.Retention{Claim: "shop/deploy-web", Fixed: true}}, missing: true,
		},
		"of one pod": {
			policy: workload.Policy{
				Claim: "shop/sts-web", Release: workload.ReleaseNever, Identity: "web-0", Gateway: netip.MustParseAddr("10.0.0.3"),
			},
			want: allocator.Constraints{
				Retention: lease.Retention{Claim: "shop/sts-web", PodPrimaryKey: "web-0", Fixed: true},
				Gateway:   netip.MustParseAddr("10.0.0.3"),
			}, missing: true,
		},
		"a claim that keeps nothing, for its addresses": {
			policy: workload.Policy{Claim: "shop/deploy-web", Release: workload.ReleaseWithPod},
			want:   allocator.Constraints{Retention: lease.Retention{Claim: "shop/deploy-web"}}, missing: true,
		},
		"what the claim says": {
			policy: named, claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) {
				o.Spec.Replicas, o.Spec.Surge, o.Spec.Pool, o.Spec.Addresses = new(int32(3)), 1, "a", []string{"10.0.0.9-10.0.0.12"}
			})},
			want: allocator.Constraints{
				Retention: held, Room: 4, Pools: []string{"a"}, Sets: []*netipx.IPSet{set("10.0.0.9", "10.0.0.12")},
			},
		},
		"of another namespace": {
			policy: with(named, func(p *workload.Policy) { p.Claim = "other/held" }),
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) { o.Namespace, o.Spec.Namespaces = "other", []string{"shop"} })},
			want:   allocator.Constraints{Retention: lease.Retention{Claim: "other/held", Fixed: true}},
		},
		"one made from annotations that is being deleted": {
			policy: workload.Policy{Claim: "shop/held", Release: workload.ReleaseNever},
			claims: []v1.BCSNetIPClaim{object(
				func(o *v1.BCSNetIPClaim) { o.DeletionTimestamp = &metav1.Time{Time: time.Now()} })},
			want: allocator.Constraints{Retention: lease.Retention{Claim: "shop/held"}},
		},
		"one made from annotations that is being deleted, and made again": {
			policy: workload.Policy{Claim: "shop/held", Release: workload.ReleaseNever},
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) {
				o.DeletionTimestamp, o.Labels = &metav1.Time{Time: time.Now()}, map[string]string{Managed: "true"}
			})},
			want: allocator.Constraints{Retention: held}, missing: true,
		},
		"one made from annotations that keep nothing, and is being deleted": {
			policy: workload.Policy{Claim: "shop/held", Release: workload.ReleaseWithPod},
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) {
				o.DeletionTimestamp, o.Labels = &metav1.Time{Time: time.Now()}, map[string]string{Managed: "true"}
			})},
			want: allocator.Constraints{Retention: lease.Retention{Claim: "shop/held"}}, missing: true,
		},

		"named and not there": {
			policy: named,
			refusal: "ClaimNotFound: there is no claim shop/held, which annotation claim=held of Pod shop/web-x names; hint: " +
				"create it: bcsnetctl claim create held -n shop; or remove the annotation",
		},
		"not for this namespace": {
			policy: with(named, func(p *workload.Policy) { p.Claim = "other/held" }),
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) { o.Namespace = "other" })},
			refusal: "ClaimConflict: claim other/held does not serve namespace shop of pod shop/web-x; hint: add the " +
				"namespace to spec.namespaces of the claim",
		},
		"of another workload": {
			policy: named,
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) {
				o.Spec.Owner = &v1.ClaimOwner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
			})},
			refusal: "ClaimConflict: claim shop/held is for StatefulSet shop/web, pod shop/web-x is of Deployment shop/web; " +
				"hint: name another claim, or make one without an owner",
		},
		"made from annotations, of another kind with the same prefix": {
			policy: workload.Policy{Claim: "shop/held", Release: workload.ReleaseNever, Workload: web},
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) {
				o.Spec.Owner = &v1.ClaimOwner{APIVersion: "x.io/v1", Kind: "Deployment", Name: "web"}
			})},
			refusal: "ClaimConflict: claim shop/held has the name of the claim of Deployment shop/web, and is for Deployment shop/web " +
				"of group \"x.io\"; hint: name a claim of its own with the annotation networkextension.bkbcs.tencent.com/claim",
		},
		"named and being deleted": {
			policy: named,
			claims: []v1.BCSNetIPClaim{object(
				func(o *v1.BCSNetIPClaim) { o.DeletionTimestamp = &metav1.Time{Time: time.Now()} })},
			refusal: "ClaimConflict: claim shop/held is being deleted; hint: name another claim",
		},
		"another policy": {
			policy: with(named, func(p *workload.Policy) {
				p.Release, p.Sources = workload.ReleaseImmutable,
					append(p.Sources, workload.Source{
						Object: "Pod shop/web-x", Key: "networkextension.bkbcs.tencent.com/release-policy", Value: "immutable",
						Gave: "Release",
					})
			}),
			claims: []v1.BCSNetIPClaim{object(func(*v1.BCSNetIPClaim) {})},
			refusal: "ClaimConflict: claim shop/held has the policy Never, annotation " +
				"networkextension.bkbcs.tencent.com/release-policy=immutable of Pod shop/web-x says another; hint: remove one of the two",
		},
		"another time": {
			policy: with(named, func(p *workload.Policy) {
				p.Release, p.Keep = workload.ReleaseTimed, time.Hour
				p.Sources = append(p.Sources, workload.Source{
					Object: "Pod shop/web-x", Key: "networkextension.bkbcs.tencent.com/keep", Value: "1h", Gave: "Keep",
				})
			}),
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) {
				o.Spec.ReleasePolicy, o.Spec.Keep = v1.ReleaseTimed, &metav1.Duration{Duration: 2 * time.Hour}
			})},
			refusal: "ClaimConflict: claim shop/held has the policy Timed 2h, annotation " +
				"networkextension.bkbcs.tencent.com/keep=1h of Pod shop/web-x says another; hint: remove one of the two",
		},
		"another policy in the words of another system": {
			policy: with(named, func(p *workload.Policy) {
				p.Release, p.Keep = workload.ReleaseTimed, time.Hour
				p.Sources = append(p.Sources, workload.Source{
					Object: "Pod shop/web-x", Key: "netservicecontroller.bkbcs.tencent.com", Value: "fixed-ip", Gave: "Release",
				})
			}),
			claims: []v1.BCSNetIPClaim{object(func(*v1.BCSNetIPClaim) {})}, want: allocator.Constraints{Retention: held},
		},
		"other addresses": {
			policy: with(named, func(p *workload.Policy) { p.Sets = []*netipx.IPSet{set("10.0.0.9", "10.0.0.13")} }),
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) { o.Spec.Addresses = []string{"10.0.0.9-10.0.0.12"} })},
			refusal: "ClaimConflict: claim shop/held has other addresses than annotation ip_pool=10.0.0.9/25 of Deployment " +
				"shop/web; hint: add them to spec.addresses of the claim, or remove the annotation",
		},
		"another pool": {
			policy: with(named, func(p *workload.Policy) { p.Pools = []string{"b"} }),
			claims: []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) { o.Spec.Pool = "a" })},
			refusal: "ClaimConflict: claim shop/held is for pool a, annotation pool=b of Pod shop/web-x for pool b; hint: " +
				"remove one of the two",
		},
		"addresses that are none": {
			policy:  named,
			claims:  []v1.BCSNetIPClaim{object(func(o *v1.BCSNetIPClaim) { o.Spec.Addresses = []string{"10.0.0.9", "x"} })},
			refusal: `ClaimConflict: claim shop/held cannot be used: spec.addresses[1]: "x" is not an address, a range a-b or a CIDR; hint: correct it: kubectl edit bcsnetipclaim -n shop held`,
		},
		"a mask that is not the pool's": {
			policy: with(named, func(p *workload.Policy) { p.Mask, p.Sets = 25, []*netipx.IPSet{set("10.0.0.9", "10.0.0.9")} }),
			refusal: "ClaimConflict: annotation ip_pool=10.0.0.9/25 of Deployment shop/web has the mask /25, and pool a of " +
				"10.0.0.9 the mask /24; hint: write the mask of the pool",
		},
		"a gateway outside": {
			policy: with(named, func(p *workload.Policy) {
				p.Gateway, p.Sets = netip.MustParseAddr("10.9.9.9"), []*netipx.IPSet{set("10.0.0.9", "10.0.0.9")}
			}),
			refusal: "ClaimConflict: annotation gateway=10.9.9.9 of Pod shop/web-x is not in the subnet 10.0.0.0/24 of pool " +
				"a, which has 10.0.0.9 for pod shop/web-x; hint: name a gateway of that subnet, or none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := index.New()
			plan, err := ipam.NewPlan(ipam.PlanSpec{
				Net: "10.0.0.0", Mask: 24, Gateway: "10.0.0.1", Available: []string{"10.0.0.9-10.0.0.20"},
			})
			if err != nil {
				t.Fatal(err)
			}
			x.Pools.SetPool(ipam.Pool{Name: "a", Plan: plan})
			missing := false
			constraints := &ConstraintsFinder{
				Policies: said(tc.policy), Claims: claims{all: tc.claims}, Index: x, Missing: func(workload.Policy) { missing = true },
			}
			got, err := constraints.Of(t.Context(), workload.Pod{Namespace: "shop", Name: "web-x"})
			text := ""
			if err != nil {
				refusal, ok := err.(*ipam.Refusal) //nolint:errorlint // it is never wrapped
				if !ok {
					t.Fatal(err)
				}
				text = string(refusal.Reason) + ": " + refusal.Error()
			}
			if text != tc.refusal {
				t.Fatalf("refused:\n got %s\nwant %s", text, tc.refusal)
			}
			if missing != tc.missing {
				t.Errorf("the claim is to be made: %v, want %v", missing, tc.missing)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b *netipx.IPSet) bool { return a.Equal(b) }),
				cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Errorf("terms (-want +got):\n%s", diff)
			}
		})
	}
}

// A claim that may have no address is not one that may have any number.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ size, surge, want int }{{-1, 0, 0}, {-1, 5, 0}, {0, 0, -1}, {0, 1, 1}, {3, 1, 4}} {
		if got := (Claim{Size: c.size, Surge: c.surge}).Room(); got != c.want {
			t.Errorf("size %d, surge %d: %d, want %d", c.size, c.surge, got, c.want)
		}
	}
}
