package pools_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const busyCallers = 16

// What docs/architecture.md promises of status writes: no object more often than every 400 ms, but for what somebody
// waits for; all together ten changes of numbers a second, after ten at once.
const (
	statusSpacing              = 400 * time.Millisecond
	statusPerSecond, firstOnes = 10, 10
)

// TestOneBusyPoolHasFewStatusWrites: the controller's own status write does not bring about the next.
func TestOneBusyPoolHasFewStatusWrites(t *testing.T) {
	controlplane.TakesLong(t)
	p := newPool(t, "busy", nil, "10.41.0.0/24")
	wantStatus(t, p, 256, 256, 0)
	for i := range busyCallers {
		newPod(t, busyPod(i))
	}
	written := countWrites(t, &v1.BCSNetPoolList{}, client.MatchingFields{"metadata.name": p.Name})
	took := busy(t, 40, func(caller, _ int) wire.AllocateRequest {
		return wire.AllocateRequest{
			Host: host, ContainerID: "sandbox-" + busyPod(caller), PodName: busyPod(caller), PodNamespace: "default",
		}
	})
	wantStatus(t, p, 256, 256, 0)
	wantAtMost(t, written(), 2*busyCallers*40, int(took/statusSpacing)+4)
}

// TestOneBusyClaimHasFewStatusWrites: the same of a claim whose addresses come and go.
func TestOneBusyClaimHasFewStatusWrites(t *testing.T) {
	controlplane.TakesLong(t)
	p := newPool(t, "busy-claim", nil, "10.42.0.0/24")
	wantStatus(t, p, 256, 256, 0)
	c := &v1.BCSNetIPClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "busy"},
		Spec:       v1.BCSNetIPClaimSpec{ReleasePolicy: v1.ReleaseNever, Pool: p.Name},
	}
	if err := admin.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), c) })
	for i := range busyCallers {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: busyPod(i), Annotations: map[string]string{v1.GroupVersion.Group + "/claim": c.Name},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}
		if err := admin.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = admin.Delete(context.Background(), pod, client.GracePeriodSeconds(0)) })
	}
	written := countWrites(t, &v1.BCSNetIPClaimList{}, client.InNamespace("default"))
	took := busy(t, 40, func(caller, _ int) wire.AllocateRequest {
		return wire.AllocateRequest{
			Host: host, ContainerID: "sandbox-" + busyPod(caller), PodName: busyPod(caller), PodNamespace: "default",
		}
	})
	controlplane.EventuallyWithin(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if c.Status.Used != 0 || c.Status.Held != busyCallers {
			return fmt.Errorf("the claim says %s", c.Status.Usage)
		}
		return nil
	})
	// with its finalizer, its first status and its conditions
	wantAtMost(t, written(), 2*busyCallers*40, int(took/statusSpacing)+8)
}

// TestManyBusyPoolsShareTheStatusWrites: 500 pools that all change all the time are written no more often than the
// budget has it.
func TestManyBusyPoolsShareTheStatusWrites(t *testing.T) {
	controlplane.TakesLong(t)
	const pools, rounds = 500, 4
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	host := func(i int) string { return fmt.Sprintf("10.98.%d.%d", i/250, i%250+1) }
	all := make([]*v1.BCSNetPool, pools)
	for i := range all {
		all[i] = newPool(t, fmt.Sprintf("of-many-%d", i),
			func(s *v1.BCSNetPoolSpec) { s.Hosts = []string{host(i)}; s.Materialize = v1.MaterializeOnDemand },
			fmt.Sprintf("10.43.%d.%d/28", i/16, i%16*16))
	}
	for _, p := range all {
		wantCondition(t, p, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	}
	written := countWrites(t, &v1.BCSNetPoolList{})
	var next atomic.Int64
	began := time.Now()
	var wg sync.WaitGroup
	for range busyCallers {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < rounds*pools; n = int(next.Add(1)) - 1 {
				a, err := plugin.Ask(t.Context(), caller, http.MethodPost, controller.URL, wire.AllocateRequest{
					Host: host(n % pools), ContainerID: fmt.Sprintf("of-many-%d", n), Owner: fmt.Sprintf("of-many-%d", n),
				})
				if err != nil || a.Code != 0 {
					t.Errorf("allocation %d: %v %s", n, err, a.Message)
					return
				}
			}
		})
	}
	wg.Wait()
	wantAtMost(t, written(), rounds*pools, int(time.Since(began)*statusPerSecond/time.Second)+firstOnes+1)
}

func busyPod(caller int) string { return fmt.Sprintf("busy-%d", caller) }

// busy has callers take and give back an address so many times, and says how long that took.
func busy(t *testing.T, times int, request func(caller, n int) wire.AllocateRequest) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for i := range busyCallers {
		wg.Go(func() {
			for n := range times {
				for _, method := range []string{http.MethodPost, http.MethodDelete} {
					a, err := plugin.Ask(t.Context(), caller, method, controller.URL, request(i, n))
					if err != nil || a.Code != 0 {
						t.Errorf("%s %d of caller %d: %v %s", method, n, i, err, a.Message)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return time.Since(began)
}

// countWrites counts the changes of objects from now on, as a watch tells of them.
func countWrites(t *testing.T, list client.ObjectList, opts ...client.ListOption) (written func() int) {
	t.Helper()
	cfg := rest.CopyConfig(cluster.Config)
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: admin.Scheme(), HTTPClient: h})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), list, opts...); err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), list, append(opts,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})...)
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range w.ResultChan() {
			if e.Type == watch.Modified {
				n.Add(1)
			}
		}
	}()
	t.Cleanup(func() { w.Stop(); <-ended })
	return func() int { return int(n.Load()) }
}

func wantAtMost(t *testing.T, written, operations, most int) {
	t.Helper()
	t.Logf("%d status writes for %d operations, one for %.1f", written, operations,
		float64(operations)/max(1, float64(written)))
	if written > most {
		t.Errorf("%d status writes for %d operations, want at most %d in that time", written, operations, most)
	}
}
