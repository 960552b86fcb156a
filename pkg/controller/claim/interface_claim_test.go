package claim

import (
	"context"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// onePod is a cluster with one pod.
type onePod struct {
	client.Client
	pod corev1.Pod
}

func (c onePod) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.PodList).Items = []corev1.Pod{c.pod}
	return nil
}

// byInterface draws from a claim for each interface.
type byInterface map[string]string

func (p byInterface) Resolve(_ context.Context, pod workload.Pod) (workload.Policy, error) {
	return workload.Policy{Workload: web(), Claim: p[pod.IfName], Release: workload.ReleaseNever}, nil
}

func web() workload.Workload {
	return workload.Workload{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
}

// A workload has not migrated from the claim of one of its interfaces because the pod as a whole has another: what the
// claim keeps stays of use, for this interface. It has migrated from a claim that no interface draws from.
func TestClaimOfOneInterfaceStays(t *testing.T) {
	yes := true
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &yes}},
	}}
	const whole, own, earlier = "shop/deploy-web", "shop/deploy-web-net1-1", "shop/deploy-web-net1-0"
	x := index.New()
	for i, name := range []string{own, earlier} {
		x.Feed.Wrote(lease.Lease{
			Addr: netip.AddrFrom4([4]byte{10, 207, 0, byte(i + 1)}), State: lease.Reserved, Version: uint64(i + 1),
			Holder: lease.Holder{IfName: "net1"}, Retention: lease.Retention{Claim: name, Fixed: true},
		})
	}
	r := &Reconciler{Config: Config{
		Client: onePod{pod: pod}, Index: x, States: NewStates(nil), Policies: byInterface{"": whole, "eth0": whole, "net1": own},
	}}
	for name, migrated := range map[string]bool{whole: false, own: false, earlier: true} {
		r.States.change(name, func(of *state) { of.migrated = true })
		if err := r.checkMigrated(t.Context(), claim.Claim{Name: name, Managed: true, Workload: web()}); err != nil {
			t.Fatal(err)
		}
		if got := r.States.of(name).migrated; got != migrated {
			t.Errorf("%s: migrated is %t", name, got)
		}
	}
}
