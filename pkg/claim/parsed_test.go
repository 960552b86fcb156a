package claim

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// cached gives what it has, and copies it only for those who did not ask for no copy, as a cache does.
type cached struct {
	client.Reader
	o *v1.BCSNetIPClaim
}

func (c *cached) Get(_ context.Context, _ client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	var o client.GetOptions
	o.ApplyOptions(opts)
	if o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy {
		*into.(*v1.BCSNetIPClaim) = *c.o
		return nil
	}
	c.o.DeepCopyInto(into.(*v1.BCSNetIPClaim))
	return nil
}

// ofAddresses are the terms of pods of a claim that names and has so many addresses.
func ofAddresses(addresses int) (*ConstraintsFinder, *cached) {
	o := &v1.BCSNetIPClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "held", UID: "u", ResourceVersion: "1"},
		Spec:       v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleaseNever},
	}
	for i := range addresses {
		a := fmt.Sprintf("10.0.%d.%d", i/250, 2*i%250) // each apart from the others
		o.Spec.Addresses, o.Status.Addresses = append(o.Spec.Addresses, a), append(o.Status.Addresses, a)
	}
	c := &cached{o: o}
	return &ConstraintsFinder{
		Policies: said{Claim: "shop/held", Named: true, Release: workload.ReleaseNever}, Claims: c, Index: index.New(),
	}, c
}

var asking = workload.Pod{Namespace: "shop", Name: "web-x"}

// TestTermsOfALargeClaim: what the terms of a pod cost does not grow with its claim.
func TestTermsOfALargeClaim(t *testing.T) {
	allocs := func(addresses int) float64 {
		terms, _ := ofAddresses(addresses)
		return testing.AllocsPerRun(20, func() {
			if _, err := terms.Of(t.Context(), asking); err != nil {
				t.Fatal(err)
			}
		})
	}
	if small, large := allocs(1), allocs(1000); large > small+1 {
		t.Errorf("%.0f allocations for a claim of 1,000 addresses, %.0f for one of 1", large, small)
	}
}

// TestTermsOfAChangedClaim: a claim is read again when it is another, or another version.
func TestTermsOfAChangedClaim(t *testing.T) {
	terms, c := ofAddresses(1)
	room := func() int {
		got, err := terms.Of(t.Context(), asking)
		if err != nil {
			t.Fatal(err)
		}
		return got.Room
	}
	if n := room(); n != 0 {
		t.Fatalf("room for %d", n)
	}
	for i, change := range []func(*v1.BCSNetIPClaim){
		func(o *v1.BCSNetIPClaim) { o.ResourceVersion = "2" },
		func(o *v1.BCSNetIPClaim) { o.UID = types.UID("v") },
	} {
		next := c.o.DeepCopy()
		change(next)
		next.Spec.Replicas = new(int32(i + 1))
		c.o = next
		if n := room(); n != i+1 {
			t.Errorf("change %d: room for %d", i, n)
		}
	}
}

func BenchmarkTermsOf(b *testing.B) {
	for _, addresses := range []int{1, 32, 1024} {
		b.Run(fmt.Sprint(addresses), func(b *testing.B) {
			terms, _ := ofAddresses(addresses)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := terms.Of(b.Context(), asking); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
