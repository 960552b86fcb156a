package http_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A released address rests at every replica, also at one whose clock is hours ahead and at one that starts
// in the middle; the pool's status counts it, and says so when the rest ends.
func TestCooldown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.call = startFor(t, account(t, shared.cluster), func(o *controller.Options) {
		o.Now = func() time.Time { return time.Now().Add(5 * time.Hour) }
	}).caller()
	pool := s.pool(1, func(p *v1.BCSNetPool) { p.Spec.Cooldown = &metav1.Duration{Duration: time.Hour} })
	s.pod("web-0")
	s.pod("web-1")
	first, next := s.request(newID(), "web-0"), s.request(newID(), "web-1")
	s.add(first).done(t)
	s.del(first).done(t)
	restarted := startFor(t, account(t, shared.cluster), func(o *controller.Options) {
		o.Now = func() time.Time { return time.Now().Add(-5 * time.Hour) }
	}).caller()
	for _, call := range []caller{s.call, allocatorOf(t), restarted} {
		controlplane.Eventually(t, func() error { // the watch has to bring the pool and the release
			if a := call.do(t, "POST", prefix, next); a.Reason != "PoolExhausted" {
				return fmt.Errorf("%s", a.Raw)
			}
			return nil
		})
		call.do(t, "POST", prefix, next).refusedWith(t, "PoolExhausted", "pool "+pool.Name, "0 of 1",
			"1 is cooling and free in ")
		call.do(t, "POST", prefix, with(next, "ipAddr", s.ip(20))).
			refusedWith(t, "AddressCooling", "address "+s.ip(20), "after "+s.Namespace+"/web-0")
	}
	again := with(first, "containerID", newID()) // the pod whose it was does not wait
	s.add(again).done(t)
	s.del(again).done(t)
	status := func(available, cooling int64) func() error {
		return func() error {
			var p v1.BCSNetPool
			if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(pool), &p); err != nil {
				return err
			}
			if p.Status.Available != available || p.Status.Cooling != cooling {
				return fmt.Errorf("status %+v", p.Status)
			}
			return nil
		}
	}
	controlplane.Eventually(t, status(0, 1))
	short := pool.DeepCopy()
	short.Spec.Cooldown = &metav1.Duration{Duration: 3 * time.Second}
	if err := shared.admin.Patch(t.Context(), short, client.MergeFrom(pool)); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, status(1, 0)) // although nothing happens to the address
	for _, call := range []caller{s.call, restarted} {
		controlplane.Eventually(t, func() error {
			if a := call.do(t, "POST", prefix, next); a.Code != 0 {
				return fmt.Errorf("%s", a.Raw)
			}
			return nil
		})
	}
}
