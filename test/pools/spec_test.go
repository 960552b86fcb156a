package pools_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestInvalidSpec: what the schema cannot see is said in the Ready condition. Nothing is handed out and
// nothing is taken away until it is mended.
func TestInvalidSpec(t *testing.T) {
	newPod(t, "invalid")
	p := newPool(t, "invalid", func(s *v1.BCSNetPoolSpec) {
		s.Net, s.Mask, s.Gateway = "fd00:16::", 64, "fd00:16::1"
	}, "fd00:16::20-fd00:16::22")
	wantStatus(t, p, 3, 3, 0)
	a := ask(t, http.MethodPost, "invalid", "")
	if a.Code != 0 {
		t.Fatal(a.Message)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"fd00:16::22-fd00:16::20"} })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSpec, "fd00:16::22-fd00:16::20")
	wantObjectCount(t, p.Name, 3)
	newPod(t, "invalid-late")
	if late := ask(t, http.MethodPost, "invalid-late", ""); late.Code == 0 {
		t.Errorf("an invalid pool gave %s", late.Address.IPAddr)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"fd00:16::20-fd00:16::21"} })
	wantReady(t, p)
	if again := ask(t, http.MethodPost, "invalid", ""); again.Address.IPAddr != a.Address.IPAddr {
		t.Errorf("the lease moved from %s to %q: %s", a.Address.IPAddr, again.Address.IPAddr, again.Message)
	}
	if a := ask(t, http.MethodDelete, "invalid", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	wantObjectCount(t, p.Name, 2)
}

// TestObjectsMadeByHand: an object that people made is brought into line, or goes when it is outside
// its pool; one with a holder stays.
func TestObjectsMadeByHand(t *testing.T) {
	p := newPool(t, "by-hand", nil, "10.17.0.20-10.17.0.21")
	wantObjects(t, p.Name, "10.17.0.20", "10.17.0.21")
	hand := func(name string, status v1.IPPhase) {
		t.Helper()
		o := &v1.BCSNetIP{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1.BCSNetIPSpec{Pool: p.Name, Mask: 24, Gateway: "10.17.0.1"},
			Status:     v1.BCSNetIPStatus{Status: status},
		}
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	hand("10.17.0.22", v1.IPAvailable) // nobody's
	hand("10.17.0.23", v1.IPReserved)  // set aside by somebody: not ours to remove
	wantObjects(t, p.Name, "10.17.0.20", "10.17.0.21", "10.17.0.23")
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonAddressesRetire, "1 address ")

	// What is inside takes the pool's values, whoever wrote others.
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.17.0.20-10.17.0.23"} })
	controlplane.EventuallyWithin(t, patience, func() error {
		var o v1.BCSNetIP
		if err := admin.Get(t.Context(), client.ObjectKey{Name: "10.17.0.23"}, &o); err != nil {
			return err
		}
		if o.Spec.Mask != 8 || o.Spec.Gateway != p.Spec.Gateway || o.Status.Status != v1.IPReserved {
			return fmt.Errorf("the reserved address has mask %d, gateway %s, status %s", o.Spec.Mask, o.Spec.Gateway,
				o.Status.Status)
		}
		return nil
	})
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionFalse, v1.ReasonNothingToDrain)
	wantObjects(t, p.Name, "10.17.0.20", "10.17.0.21", "10.17.0.22", "10.17.0.23")
	wantStatus(t, p, 4, 3, 0)
}

// TestDrainingBeforeTheDeletion: the time that a deleted pool waits for requests under way counts from its
// deletion, also when it was draining long before.
func TestDrainingBeforeTheDeletion(t *testing.T) {
	newPod(t, "drains")
	p := newPool(t, "drains", nil, "10.20.0.20-10.20.0.21")
	wantStatus(t, p, 2, 2, 0)
	if a := ask(t, http.MethodPost, "drains", "10.20.0.20"); a.Code != 0 {
		t.Fatal(a.Message)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.20.0.21"} })
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonAddressesRetire)
	<-time.After(2 * time.Second) // conditions have whole seconds
	if err := admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted)
	since := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionDraining).LastTransitionTime
	if since.Before(p.DeletionTimestamp) {
		t.Errorf("the pool was deleted at %s and drains since %s", p.DeletionTimestamp, since)
	}
	if a := ask(t, http.MethodDelete, "drains", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	wantGone(t, p)
}

// TestPoolRemovedByForce: the address of a lease whose pool was removed by force goes with its lease.
func TestPoolRemovedByForce(t *testing.T) {
	newPod(t, "forced")
	p := newPool(t, "forced", nil, "10.21.0.20-10.21.0.21")
	wantStatus(t, p, 2, 2, 0)
	a := ask(t, http.MethodPost, "forced", "10.21.0.20")
	if a.Code != 0 {
		t.Fatal(a.Message)
	}
	wantStatus(t, p, 2, 1, 1)
	if err := admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted)
	if err := admin.Patch(t.Context(), p, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	wantGone(t, p)
	wantObjects(t, "forced", "10.21.0.20")
	if a := ask(t, http.MethodDelete, "forced", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	wantObjects(t, "forced")
}

// TestAddressOfANode: an address that a node itself has is not free as long as the node has it.
func TestAddressOfANode(t *testing.T) {
	p := newPool(t, "node-address", nil, "10.18.0.20-10.18.0.21")
	wantStatus(t, p, 2, 2, 0)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "in-the-pool"}}
	if err := admin.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.IgnoreNotFound(admin.Delete(context.Background(), node)) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.18.0.20"}}
	if err := admin.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, p, 2, 1, 0)
	newPod(t, "node-address")
	if a := ask(t, http.MethodPost, "node-address", "10.18.0.20"); a.Code == 0 {
		t.Errorf("a node's address was given to a pod")
	}
	if err := admin.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, p, 2, 2, 0)
}

// TestOverlapMovesWithTheLeases: an old lease that comes back in a pool moves what two pools share, and
// both say so.
func TestOverlapMovesWithTheLeases(t *testing.T) {
	older := newPool(t, "moves-older", nil, "10.19.0.20-10.19.0.22")
	wantObjects(t, older.Name, "10.19.0.20", "10.19.0.21", "10.19.0.22")
	younger := newPool(t, "moves-younger", nil, "10.19.0.20-10.19.0.21")
	wantCondition(t, younger, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedLost)
	wantStatus(t, younger, 0, 0, 0)

	var ip v1.BCSNetIP
	set := func(status v1.IPPhase, pool string) {
		t.Helper()
		controlplane.EventuallyWithin(t, patience, func() error {
			if err := admin.Get(t.Context(), client.ObjectKey{Name: "10.19.0.20"}, &ip); err != nil {
				return err
			}
			ip.Spec.Pool, ip.Status.Status = pool, status
			err := admin.Update(t.Context(), &ip)
			if err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			return err
		})
	}
	set(v1.IPReserved, younger.Name)
	wantCondition(t, younger, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedOwned)
	wantCondition(t, older, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedLost)
	wantObjects(t, younger.Name, "10.19.0.20", "10.19.0.21")
	wantObjects(t, older.Name, "10.19.0.22")
	set(v1.IPAvailable, younger.Name)
	wantCondition(t, older, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedOwned)
	wantObjects(t, older.Name, "10.19.0.20", "10.19.0.21", "10.19.0.22")
}
