package pools_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestKilledHalfWay: a controller that is killed while it makes or removes the objects of a pool goes on
// where it was, with one write per object in all.
func TestKilledHalfWay(t *testing.T) {
	const size = 1024
	p := newPool(t, "killed", nil)
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonNoAddresses)
	before := requests(t)
	crash := func() {
		t.Helper()
		if err := controller.Kill(); err != nil {
			t.Fatal(err)
		}
		<-controller.Done()
		n := at(t).CountObjects(p.Name)
		t.Logf("killed at %d of %d objects", n, size)
		if n == 0 || n == size {
			t.Errorf("the controller was not killed half way")
		}
		if err := controller.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.32.0.0/22"} })
	at(t).WaitForObjects(p.Name, func(n int) bool { return n > size/8 })
	crash()
	wantStatus(t, p, size, size, 0)
	wantObjectCount(t, p.Name, size)
	if n := requests(t)["POST bcsnetips"] - before["POST bcsnetips"]; n > size+64 { // what was under way at the kill
		t.Errorf("%v creates for %d objects", n, size)
	}

	if err := admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	at(t).WaitForObjects(p.Name, func(n int) bool { return n < size*7/8 })
	crash()
	wantGone(t, p)
	wantObjectCount(t, p.Name, 0)
}

// TestLeaderIsKilled: another replica takes over what the leader was at: here the deletion of a pool
// that waits for a lease.
func TestLeaderIsKilled(t *testing.T) {
	p := newPool(t, "failover", nil, "10.33.0.20-10.33.0.22")
	wantStatus(t, p, 3, 3, 0)
	newPod(t, "failover")
	if a := ask(t, http.MethodPost, "failover", ""); a.Code != 0 {
		t.Fatal(a.Message)
	}
	if err := admin.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, p, v1.ConditionDraining, metav1.ConditionTrue, v1.ReasonPoolDeleted)

	second, err := cluster.StartController(t.Context(), controlplane.ControllerOptions{Name: "second"})
	if err != nil {
		t.Fatal(err)
	}
	first := controller
	controller = second
	t.Cleanup(func() {
		controller = first
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
		if err := first.Start(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	if a := ask(t, http.MethodDelete, "failover", ""); a.Code != 0 { // the second serves without leading
		t.Error(a.Message)
	}
	wantGone(t, p)
	wantObjectCount(t, p.Name, 0)
	other := newPool(t, "failover-new", nil, "10.33.0.20")
	wantStatus(t, other, 1, 1, 0)
}

// TestAPIServerRestarts: what changes while the API server was away and after is followed, without a new
// start of the controller.
func TestAPIServerRestarts(t *testing.T) {
	p := newPool(t, "api-server", nil, "10.34.0.20")
	wantStatus(t, p, 1, 1, 0)
	if err := cluster.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	<-time.After(3 * time.Second) // the controller fails and backs off
	if err := cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.34.0.20-10.34.0.29"} })
	wantStatus(t, p, 10, 10, 0)
	wantObjectCount(t, p.Name, 10)
	select {
	case <-controller.Done():
		t.Error("the controller has ended")
	default:
	}
}

// TestManyPools: pools that come at once are all served, and cost nothing when nothing changes.
func TestManyPools(t *testing.T) {
	controlplane.TakesLong(t)
	const n = 100
	pools := make([]*v1.BCSNetPool, n)
	for i := range pools {
		pools[i] = newPool(t, fmt.Sprintf("many-%d", i), nil, fmt.Sprintf("10.35.%d.1-10.35.%d.4", i, i))
	}
	for _, p := range pools {
		wantStatus(t, p, 4, 4, 0)
		wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
		wantObjectCount(t, p.Name, 4)
	}
	controlplane.EventuallyWithin(t, patience, func() error { // pools of other tests go for a while
		var all v1.BCSNetPoolList
		if err := admin.List(t.Context(), &all); err != nil {
			return err
		}
		if len(all.Items) != n {
			return fmt.Errorf("there are %d pools, want %d", len(all.Items), n)
		}
		return nil
	})
	before := requests(t)
	<-time.After(3 * time.Second)
	after := requests(t)
	for _, what := range []string{
		"PATCH bcsnetpools", "PATCH bcsnetpools/status", "PUT bcsnetpools", "PUT bcsnetpools/status",
		"POST bcsnetips", "PUT bcsnetips", "PATCH bcsnetips", "DELETE bcsnetips", "LIST bcsnetips", "LIST bcsnetpools", "GET bcsnetpools",
	} {
		if d := after[what] - before[what]; d != 0 {
			t.Errorf("%v requests %s while nothing changed", d, what)
		}
	}
}
