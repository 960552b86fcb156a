package sticky_test

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const ownPool = "networkextension.bkbcs.tencent.com/pool"

// moving makes a StatefulSet whose template names a pool, and then another one. It returns both pools.
func (f *fixture) moving(
	t *testing.T, name, policy string, how appsv1.StatefulSetUpdateStrategy,
) (a *app, from, to string) {
	t.Helper()
	s := f.newSite(t, name, replicas, sharedNodes)
	next := *s
	next.block, next.pool = f.kubelet.number(), s.pool+"-next"
	f.create(t, &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: next.pool}, Spec: v1.BCSNetPoolSpec{
		Net: plan, Mask: mask, Gateway: gateway, HostSubnets: []string{nodeNet}, Namespaces: []string{s.namespace},
		AvailableIPs: []string{next.address(1) + "-" + next.address(replicas)},
	}})
	a = s.newApp(statefulSet, asks(policy, statefulSet, s.pool), replicas)
	a.update, a.podAnnotations = how, map[string]string{ownPool: s.pool}
	a.apply(t)
	a.draw(t, "all to run", map[string]string{"app-0": s.pool, "app-1": s.pool, "app-2": s.pool})
	a.podAnnotations, a.rev = map[string]string{ownPool: next.pool}, a.rev+1
	a.apply(t)
	return a, s.pool, next.pool
}

// draw waits until each pod has an address of its pool, and no other address is in use or kept.
func (a *app) draw(t *testing.T, what string, want map[string]string) {
	t.Helper()
	eventually(t, what, func() error {
		got := map[string]string{}
		for _, pool := range []string{a.pool, a.pool + "-next"} {
			var all v1.BCSNetIPList
			if err := a.admin.List(t.Context(), &all, client.MatchingFields{"spec.pool": pool}); err != nil {
				return err
			}
			for _, o := range all.Items {
				switch o.Status.Status {
				case v1.IPActive:
					got[o.Status.PodName] += pool
				case v1.IPReserved:
					got["kept: "+o.Name] = pool
				case v1.IPAvailable:
				}
			}
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("%s", cmp.Diff(want, got))
		}
		return nil
	})
}

// poolOnDelete: a pod follows its template to another pool when it is deleted, and not before.
func (f *fixture) poolOnDelete(t *testing.T) {
	t.Helper()
	a, from, to := f.moving(t, "on-delete", plain,
		appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType})
	stay := map[string]string{"app-0": from, "app-1": from, "app-2": from}
	a.draw(t, "all to stay", stay)
	for _, name := range []string{"app-1", "app-0", "app-2"} {
		if err := f.admin.Delete(t.Context(), a.pod(t, name)); err != nil {
			t.Fatal(err)
		}
		stay[name] = to
		a.draw(t, name+" to follow", stay)
	}
}

// poolByPartition: pods from the partition on follow their template to another pool. The others keep their addresses.
func (f *fixture) poolByPartition(t *testing.T) {
	t.Helper()
	at := func(ordinal int32) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &ordinal},
		}
	}
	a, from, to := f.moving(t, "partition", plain, at(2))
	a.draw(t, "the last to follow", map[string]string{"app-0": from, "app-1": from, "app-2": to})
	a.update = at(0)
	a.apply(t)
	a.draw(t, "all to follow", map[string]string{"app-0": to, "app-1": to, "app-2": to})
}

// poolOfImmutable: an immutable address is stronger than a template that names another pool. The pod is told so, and
// follows when the address was given up.
func (f *fixture) poolOfImmutable(t *testing.T) {
	t.Helper()
	a, from, to := f.moving(t, "immutable-moves", immutable,
		appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType})
	had := a.pod(t, "app-1")
	address := had.Status.PodIP
	if err := f.admin.Delete(t.Context(), had); err != nil {
		t.Fatal(err)
	}
	a.draw(t, "the address to be kept", map[string]string{"app-0": from, "app-2": from, "kept: " + address: from})
	eventually(t, "the refusal", func() error {
		why, _ := f.kubelet.lastRefusal(a.namespace, "app-1")
		if why.reason != string(ipam.ReasonClaimConflict) || !strings.Contains(why.message, address) {
			return fmt.Errorf("the last refusal is %+v", why)
		}
		return nil
	})
	cfg, err := cluster.ControllerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leases, err := store.New(cfg, nil, store.NewClock(nil))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := leases.Get(t.Context(), netip.MustParseAddr(address))
	if err != nil {
		t.Fatal(err)
	}
	freed, err := allocator.FreeLease(t.Context(), leases, kept, lease.Change{Verb: lease.VerbRelease},
		func(lease.Lease) bool { return true })
	if err != nil || !freed {
		t.Fatalf("the address is freed: %t, %v", freed, err)
	}
	a.draw(t, "the pod to follow", map[string]string{"app-0": from, "app-1": to, "app-2": from})
}
