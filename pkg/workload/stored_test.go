package workload_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"go4.org/netipx"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/claim" //nolint:depguard // what is made of a policy is what is tested
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// TestPoliciesCanBeStored: whatever annotations are read to, the API server takes the claim that is made of it and the
// lease that the pod gets, and the claim says what the annotations said. A claim that cannot be made would leave its
// addresses kept for nobody.
func TestPoliciesCanBeStored(t *testing.T) {
	if err := cluster.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := cluster.AdminFor(t)
	for _, name := range []string{"shop", "bcsnet-system"} {
		err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	dry := client.NewDryRunClient(admin)
	stored, made := 0, 0
	check := func(t interface {
		Context() context.Context
		Fatalf(format string, args ...any)
	}, p workload.Policy,
	) {
		stored++
		lease := &v1.BCSNetIP{
			ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.8"}, Spec: v1.BCSNetIPSpec{Pool: "blue", Mask: 24, Gateway: "10.0.0.1"},
		}
		lease.Finalizers = []string{v1.HeldFinalizer}
		lease.Status = v1.BCSNetIPStatus{
			Status: v1.IPActive, Host: "192.0.2.11", ContainerID: "c", PodNamespace: "shop", PodName: "web", PodUID: "u",
			Claim: p.Claim, PodPrimaryKey: p.Identity, SetSize: int32(needs(p)), Slot: int32(max(0, len(p.Sets)-1)),
		}
		if err := dry.Create(t.Context(), lease); err != nil {
			t.Fatalf("the lease of %+v: %v", p, err)
		}
		if p.Claim == "" || p.Named {
			return
		}
		made++
		o := &v1.BCSNetIPClaim{Spec: claim.Derive(p,
			func(w workload.Workload) string { return strings.Trim(w.Group+"/v1", "/") })}
		o.Namespace, o.Name, _ = strings.Cut(p.Claim, "/")
		if err := dry.Create(t.Context(), o); err != nil {
			t.Fatalf("the claim of %+v: %v", p, err)
		}
		c, err := claim.FromObject(o)
		switch {
		case err != nil:
			t.Fatalf("the claim of %+v: %v", p, err)
		case c.Keep != p.Keep || string(c.Release) != string(p.Release) || !slices.Equal(c.Pools, p.Pools) ||
			c.SharedName != p.Shared:
			t.Fatalf("claim %+v of policy %+v", c, p)
		case c.Addresses != nil && !c.Addresses.Equal(p.Sets[0]):
			t.Fatalf("claim for %v of policy for %v", c.Addresses.Ranges(), p.Sets[0].Ranges())
		}
	}
	for name, tc := range workload.LargestPolicies() {
		p, err := tc.Decide()
		if refused := err != nil; refused != tc.Refused {
			t.Errorf("%s: %v", name, err)
		} else if !refused {
			check(t, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 3 { // most that is drawn is refused
			if p, err := workload.AnyPolicy(t); err == nil {
				check(t, p)
			}
		}
	})
	if made == 0 || stored == made {
		t.Errorf("of %d policies %d have a claim", stored, made)
	}
}

// needs is the number of addresses that a pod takes: of each set one of each family.
func needs(p workload.Policy) (n int) {
	for _, s := range p.Sets {
		for _, is4 := range []bool{true, false} {
			if slices.ContainsFunc(s.Ranges(), func(r netipx.IPRange) bool { return r.From().Is4() == is4 }) {
				n++
			}
		}
	}
	return n
}
