// Package pools_test checks what the pool reconciler promises, on a real API server and with the
// controller as it is shipped.
package pools_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const host = "10.0.0.11"

var (
	cluster    *controlplane.ControlPlane
	controller *controlplane.Controller
	admin      client.Client
	caller     = &http.Client{Transport: &http.Transport{}}
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

var prepared = sync.OnceValue(func() error {
	ctx := context.Background()
	if err := cluster.InstallManifests(ctx); err != nil {
		return err
	}
	var err error
	if admin, err = cluster.Admin(); err != nil {
		return err
	}
	controller, err = cluster.StartController(ctx, controlplane.ControllerOptions{})
	return err
})

// newPool makes a pool in 10.0.0.0/8 and lets it go after the test, with whatever it still holds.
func newPool(t *testing.T, name string, change func(*v1.BCSNetPoolSpec), addresses ...string) *v1.BCSNetPool {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdleConnections)
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: "10.0.0.0", Mask: 8, Gateway: "10.255.255.254", Hosts: []string{host}, AvailableIPs: addresses,
	}}
	if change != nil {
		change(&p.Spec)
	}
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A deleted pool stays for a while; it is no pool of the next test's host.
		noHosts := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hosts":null}}`))
		err := errors.Join(
			client.IgnoreNotFound(admin.Patch(context.Background(), p, noHosts)),
			client.IgnoreNotFound(admin.Delete(context.Background(), p)))
		if err != nil {
			t.Error(err)
		}
	})
	return p
}

// edit changes a pool's spec.
func edit(t *testing.T, p *v1.BCSNetPool, change func(*v1.BCSNetPoolSpec)) {
	t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		change(&p.Spec)
		return admin.Update(t.Context(), p)
	}); err != nil {
		t.Fatal(err)
	}
}

// patience is for what must come, however slow the machine is.
const patience = 5 * time.Minute

// wantStatus waits for the counts of a pool.
func wantStatus(t *testing.T, p *v1.BCSNetPool, capacity, available, active int64) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		s := p.Status
		if s.Capacity != capacity || s.Available != available || s.Active != active || s.ObservedGeneration != p.Generation {
			return fmt.Errorf("pool %s: capacity %d, available %d, active %d of generation %d; want %d, %d, %d of %d",
				p.Name, s.Capacity, s.Available, s.Active, s.ObservedGeneration, capacity, available, active, p.Generation)
		}
		return nil
	})
}

// wantCondition waits for a condition whose message holds some words.
func wantCondition(
	t *testing.T, p *v1.BCSNetPool, kind string, status metav1.ConditionStatus, reason string, words ...string,
) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		c := meta.FindStatusCondition(p.Status.Conditions, kind)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("pool %s: condition %s is %+v; want %s, %s", p.Name, kind, c, status, reason)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Errorf("pool %s: condition %s says %q; want %q in it", p.Name, kind, c.Message, w)
			}
		}
		return nil
	})
}

// wantReady waits until hosts can draw from a pool, which may be full or drain.
func wantReady(t *testing.T, p *v1.BCSNetPool) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1.ConditionReady) {
			return fmt.Errorf("pool %s is not ready: %+v", p.Name, p.Status.Conditions)
		}
		return nil
	})
}

// wantObjects waits until exactly these addresses have an object that names the pool.
func wantObjects(t *testing.T, pool string, want ...string) {
	t.Helper()
	controlplane.EventuallyWithin(t, patience, func() error {
		var list v1.BCSNetIPList
		if err := admin.List(t.Context(), &list, client.MatchingFields{"spec.pool": pool}); err != nil {
			return err
		}
		var got []string
		for _, ip := range list.Items {
			got = append(got, ip.Name)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			return fmt.Errorf("pool %s has the objects %v, want %v", pool, got, want)
		}
		return nil
	})
}

// newPod makes a pod that may ask for an address.
func newPod(t *testing.T, name string) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
}

// ask sends an ADD or a DEL for a pod.
func ask(t *testing.T, method, pod, ipAddr string) plugin.Answer {
	t.Helper()
	a, err := plugin.Ask(t.Context(), caller, method, controller.URL, httpapi.AllocateRequest{
		Host: host, ContainerID: "sandbox-" + pod, PodName: pod, PodNamespace: "default", IPAddr: ipAddr,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
