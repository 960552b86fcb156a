package pools_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

func TestFollowsTheSpec(t *testing.T) {
	p := newPool(t, "10.10.0.0", nil, "10.10.0.20", "10.10.0.30-10.10.0.31") // named like an address
	newPod(t, "follows")
	wantObjects(t, p.Name, "10.10.0.20", "10.10.0.30", "10.10.0.31")
	wantStatus(t, p, 3, 3, 0)
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady, "3 addresses for 1 host")
	if a := ask(t, http.MethodPost, "follows", "10.10.0.30"); a.Code != 0 {
		t.Fatal(a.Message)
	}
	wantStatus(t, p, 3, 2, 1)

	// An address in use is taken out: it drains. Another is taken in.
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.10.0.20", "10.10.0.40"} })
	wantObjects(t, p.Name, "10.10.0.20", "10.10.0.30", "10.10.0.40")
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonAddressesRetire, "1 address ", "1 on "+host)
	wantStatus(t, p, 3, 2, 1) // of which one is in use, and no longer in the plan

	// The gateway changes on objects in use and free ones. A container that has its answer keeps to it.
	gateway := p.Spec.Gateway
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Gateway = "10.255.255.253" })
	controlplane.EventuallyWithin(t, patience, func() error {
		var list v1.BCSNetIPList
		if err := admin.List(t.Context(), &list, client.MatchingFields{"spec.pool": p.Name}); err != nil {
			return err
		}
		for _, ip := range list.Items {
			if ip.Spec.Gateway != "10.255.255.253" {
				return fmt.Errorf("%s still has gateway %s", ip.Name, ip.Spec.Gateway)
			}
		}
		return nil
	})
	if a := ask(t, http.MethodPost, "follows", ""); a.Address.IPAddr != "10.10.0.30" ||
		a.Address.Gateway != gateway {
		t.Errorf("the repeated request got %s by %s", a.Address.IPAddr, a.Address.Gateway)
	}

	// Released, the drained address goes and is not given again.
	if a := ask(t, http.MethodDelete, "follows", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	wantObjects(t, p.Name, "10.10.0.20", "10.10.0.40")
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionFalse, v1.ReasonNothingToDrain)
	if a := ask(t, http.MethodPost, "follows", "10.10.0.30"); a.Reason != "AddressNotInPool" {
		t.Errorf("a retired address: %+v", a)
	}

	// Cordoned, no hosts, no addresses: the condition says which.
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Cordoned = true })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCordoned, "bcsnetctl pool uncordon 10.10.0.0")
	if a := ask(t, http.MethodPost, "follows", ""); a.Reason != "PoolCordoned" {
		t.Errorf("a cordoned pool: %+v", a)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Cordoned, s.Hosts = false, nil })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoHosts)
	if a := ask(t, http.MethodPost, "follows", ""); a.Reason != "HostNotInPool" {
		t.Errorf("a pool without hosts: %+v", a)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = nil })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoAddresses)
	wantObjects(t, p.Name)
}

func TestObjectsComeBack(t *testing.T) {
	p := newPool(t, strings.Repeat("long-name.", 25)+"end", nil, "10.11.0.20", "10.11.0.21") // 253 characters
	wantObjects(t, p.Name, "10.11.0.20", "10.11.0.21")
	if err := admin.Delete(t.Context(), &v1.BCSNetIP{ObjectMeta: metav1.ObjectMeta{Name: "10.11.0.20"}}); err != nil {
		t.Fatal(err)
	}
	wantObjects(t, p.Name, "10.11.0.20", "10.11.0.21")
}

func TestOverlap(t *testing.T) {
	newPod(t, "overlap-1")
	newPod(t, "overlap-2")
	older := newPool(t, "overlap-older", func(s *v1.BCSNetPoolSpec) { s.Priority = -1 }, "10.12.0.20-10.12.0.21")
	wantStatus(t, older, 2, 2, 0)
	younger := newPool(t, "overlap-younger", nil, "10.12.0.21-10.12.0.22")

	// Nobody holds a shared address: the older pool serves it.
	wantCondition(t, older, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedOwned, "10.12.0.21", younger.Name)
	wantCondition(t, younger, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedLost, "10.12.0.21", older.Name)
	wantCondition(t, younger, v1.ConditionReady, metav1.ConditionTrue, v1.ConditionOverlap) // a column shows it
	wantStatus(t, younger, 1, 1, 0)
	wantObjects(t, younger.Name, "10.12.0.22")
	if a := ask(t, http.MethodPost, "overlap-1", "10.12.0.21"); a.Address.Pool != older.Name {
		t.Fatalf("the shared address came from %q: %s", a.Address.Pool, a.Message)
	}

	// The one that holds leases keeps serving, whatever the other is; here the older goes away from it.
	edit(t, older, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.12.0.20"} })
	wantCondition(t, older, v1.ConditionOverlap, metav1.ConditionFalse, v1.ReasonNoOverlap)
	wantCondition(t, younger, v1.ConditionOverlap, metav1.ConditionFalse, v1.ReasonNoOverlap)
	wantReady(t, younger)
	wantStatus(t, younger, 2, 1, 0) // it serves the address, which is still in use
	if a := ask(t, http.MethodDelete, "overlap-1", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	wantObjects(t, younger.Name, "10.12.0.21", "10.12.0.22") // it moved
	if a := ask(t, http.MethodPost, "overlap-2", "10.12.0.21"); a.Address.Pool != younger.Name {
		t.Fatalf("the address that moved came from %q: %s", a.Address.Pool, a.Message)
	}

	// Back in both: the younger holds a lease on it, so the younger serves it.
	edit(t, older, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.12.0.20-10.12.0.21"} })
	wantCondition(t, younger, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedOwned)
	wantCondition(t, older, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedLost)
	if a := ask(t, http.MethodDelete, "overlap-2", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	wantCondition(t, older, v1.ConditionOverlap, metav1.ConditionTrue, v1.ReasonSharedOwned) // age decides again
}

func TestDeletionWaits(t *testing.T) {
	newPod(t, "deletion")
	p := newPool(t, "deletion", nil, "10.13.0.20-10.13.0.22")
	wantStatus(t, p, 3, 3, 0)
	a := ask(t, http.MethodPost, "deletion", "")
	if a.Code != 0 {
		t.Fatal(a.Message)
	}
	if err := admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted, "1 address ", "1 on "+host)
	if p.Status.Status != v1.PoolTerminating {
		t.Errorf("the pool is %s", p.Status.Status)
	}
	wantObjects(t, p.Name, a.Address.IPAddr)
	newPod(t, "deletion-late")
	if late := ask(t, http.MethodPost, "deletion-late", ""); late.Reason != "PoolCordoned" ||
		!strings.Contains(late.Message, "being deleted") {
		t.Errorf("a pool that is being deleted: %+v", late)
	}
	if a := ask(t, http.MethodDelete, "deletion", ""); a.Code != 0 {
		t.Error(a.Message)
	}
	controlplane.EventuallyWithin(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("pool %s is still there: %w", p.Name, err)
		}
		return nil
	})
	wantObjects(t, p.Name)
}

// TestWrites counts what the reconciler costs by the API server's own metrics: one write per object that it
// creates and per one that it retires, and none when nothing changes.
func TestWrites(t *testing.T) {
	p := newPool(t, "writes", nil)
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoAddresses)
	before := requests(t)
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.14.0.0-10.14.0.199"} })
	wantStatus(t, p, 200, 200, 0)
	controlplane.EventuallyWithin(t, patience, func() error {
		if n := requests(t)["POST bcsnetips"] - before["POST bcsnetips"]; n != 200 {
			return fmt.Errorf("%v creates for 200 objects", n)
		}
		return nil
	})
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.14.0.0-10.14.0.49"} })
	wantStatus(t, p, 50, 50, 0)
	controlplane.EventuallyWithin(t, patience, func() error {
		if n := requests(t)["DELETE bcsnetips"] - before["DELETE bcsnetips"]; n != 150 {
			return fmt.Errorf("%v deletes for 150 objects", n)
		}
		return nil
	})
	after := requests(t)
	for _, verb := range []string{"PUT", "PATCH"} {
		if n := after[verb+" bcsnetips"] - before[verb+" bcsnetips"]; n != 0 {
			t.Errorf("%v %s of bcsnetips", n, verb)
		}
	}
	// One change of the spec that moves no address: one write, of the status.
	settled := requests(t)
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Cordoned = true })
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCordoned)
	// What another pool goes through meanwhile is no reason to write this one.
	other := newPool(t, "writes-other", nil, "10.15.0.1")
	wantStatus(t, other, 1, 1, 0)
	idle := requests(t)
	for what, want := range map[string]float64{"POST bcsnetips": 1, "PUT bcsnetips": 0, "DELETE bcsnetips": 0} {
		if n := idle[what] - settled[what]; n != want {
			t.Errorf("%v %s, want %v", n, what, want)
		}
	}
	var now v1.BCSNetPool
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), &now); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != p.ResourceVersion {
		t.Error("the pool was written although nothing changed")
	}
}

// requests are the API server's counts, "VERB resource" to number.
func requests(t *testing.T) map[string]float64 {
	t.Helper()
	set, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	text, err := set.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok || !strings.Contains(rest, `group="networkextension.bkbcs.tencent.com"`) {
			continue
		}
		resource := label(rest, "resource")
		if sub := label(rest, "subresource"); sub != "" {
			resource += "/" + sub
		}
		var n float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(strings.TrimSpace(rest), ' '):], &n); err != nil {
			t.Fatal(err)
		}
		out[label(rest, "verb")+" "+resource] += n
	}
	return out
}

func label(line, name string) string {
	_, rest, _ := strings.Cut(line, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// TestLargePoolAtOnce: 65,536 addresses can be drawn from before any of them has an object, and, with
// Always, while the objects are being created.
func TestLargePoolAtOnce(t *testing.T) {
	controlplane.TakesLong(t)
	newPod(t, "large")
	for i, mode := range []v1.Materialize{v1.MaterializeOnDemand, v1.MaterializeAlways} {
		p := newPool(t, "large-"+strings.ToLower(string(mode)), func(s *v1.BCSNetPoolSpec) { s.Materialize = mode },
			fmt.Sprintf("10.%d.0.0/16", 20+i))
		controlplane.EventuallyWithin(t, patience, func() error {
			if a := ask(t, http.MethodPost, "large", ""); a.Code != 0 || a.Address.Pool != p.Name {
				return fmt.Errorf("%+v", a)
			}
			return nil
		})
		wantStatus(t, p, 65536, 65535, 1)
		if a := ask(t, http.MethodDelete, "large", ""); a.Code != 0 {
			t.Error(a.Message)
		}
		edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Hosts, s.AvailableIPs = nil, nil })
	}
}
