package pools_test

import (
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestAllObjectsAreLost: every object of a pool's addresses goes while no controller runs. The next start makes the
// leases of running pods again, and hands nothing out before the pods that have not told yet do.
func TestAllObjectsAreLost(t *testing.T) {
	const running = 4
	p := newPool(t, "all-lost", nil, "10.37.0.1-10.37.0.6")
	healthy := newPool(t, "all-lost-not", func(s *v1.BCSNetPoolSpec) { s.Hosts = []string{"10.0.0.99"} }, "10.37.1.1")
	wantStatus(t, p, 6, 6, 0)
	holders := map[string]string{}
	for i := range running + 1 { // the last one does not tell
		name := fmt.Sprintf("all-lost-%d", i)
		boundPod(t, name)
		a := ask(t, http.MethodPost, name, "")
		if a.Code != 0 {
			t.Fatal(a.Message)
		}
		holders[a.Address.IPAddr] = name
		if i < running {
			report(t, name, a.Address.IPAddr)
		}
	}
	wantStatus(t, p, 6, 1, running+1)
	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}
	loseAll(t, slices.Collect(maps.Keys(holders))...)
	if err := controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRebuilding, "default/all-lost-4")
	wantReady(t, healthy)
	boundPod(t, "all-lost-new")
	if a := ask(t, http.MethodPost, "all-lost-new", ""); a.Reason != "PoolRebuilding" {
		t.Errorf("the pool answers %q: %s", a.Reason, a.Message)
	}
	for addr, pod := range holders {
		o := &v1.BCSNetIP{}
		if err := admin.Get(t.Context(), types.NamespacedName{Name: addr}, o); err != nil {
			t.Fatal(err)
		}
		want := pod
		if pod == "all-lost-4" {
			want = ""
		}
		if o.Status.PodName != want {
			t.Errorf("%s is held by %q, want %q", addr, o.Status.PodName, want)
		}
	}
	// The last two tell, or end: the pool serves again.
	silent := ""
	for addr, pod := range holders {
		if pod == "all-lost-4" {
			silent = addr
		}
	}
	report(t, "all-lost-4", silent)
	_ = admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all-lost-new"}},
		client.GracePeriodSeconds(0))
	wantReady(t, p)
	wantStatus(t, p, 6, 1, running+1)
	for addr, pod := range holders { // the container that asks again has its address as before
		if a := ask(t, http.MethodPost, pod, ""); a.Code != 0 || a.Address.IPAddr != addr {
			t.Errorf("%s gets %q (%s), want %s", pod, a.Address.IPAddr, a.Message, addr)
		}
	}
	for _, pod := range holders {
		if a := ask(t, http.MethodDelete, pod, ""); a.Code != 0 {
			t.Error(a.Message)
		}
	}
	wantStatus(t, p, 6, 6, 0)
}

// TestRebuiltByHand: an operator makes the leases of running pods again while no controller runs. One that starts then
// hands out nothing before the pods have told that the operator's command could not know of. So does a replica that
// starts when another one has made them and ended before it told.
func TestRebuiltByHand(t *testing.T) {
	p := newPool(t, "by-hand", nil, "10.37.2.1-10.37.2.2")
	wantStatus(t, p, 2, 2, 0)
	holders := map[string]string{}
	for _, name := range []string{"by-hand-told", "by-hand-silent"} {
		boundPod(t, name)
		a := ask(t, http.MethodPost, name, "")
		if a.Code != 0 {
			t.Fatal(a.Message)
		}
		holders[name] = a.Address.IPAddr
	}
	report(t, "by-hand-told", holders["by-hand-told"])
	wantStatus(t, p, 2, 0, 2)
	if err := controller.Stop(); err != nil {
		t.Fatal(err)
	}
	loseAll(t, slices.Collect(maps.Values(holders))...)
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "bcsnetctl"), "--kubeconfig", kubeconfig,
		"rebuild", "--yes", "-o", "name").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "/"+holders["by-hand-told"]) {
		t.Fatalf("rebuild: %v: %s", err, out)
	}
	if err := controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	boundPod(t, "by-hand-new")
	if a := ask(t, http.MethodPost, "by-hand-new", ""); a.Reason != "PoolRebuilding" {
		t.Errorf("the pool answers %q: %s%s", a.Reason, a.Address.IPAddr, a.Message)
	}
	wantCondition(t, p, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRebuilding, "default/by-hand-silent")
	_ = admin.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-hand-new"}},
		client.GracePeriodSeconds(0))
	report(t, "by-hand-silent", holders["by-hand-silent"])
	wantReady(t, p)
	for name, addr := range holders {
		if a := ask(t, http.MethodPost, name, ""); a.Code != 0 || a.Address.IPAddr != addr {
			t.Errorf("%s gets %q (%s), want %s", name, a.Address.IPAddr, a.Message, addr)
		}
		if a := ask(t, http.MethodDelete, name, ""); a.Code != 0 {
			t.Error(a.Message)
		}
	}
	wantStatus(t, p, 2, 2, 0)
}

// TestAllObjectsAreLostMeanwhile: the same while a controller runs: it makes all of them again from memory.
func TestAllObjectsAreLostMeanwhile(t *testing.T) {
	const size = 16
	p := newPool(t, "lost-live", nil, "10.38.0.1-10.38.0.16")
	wantStatus(t, p, size, size, 0)
	holders := map[string]string{}
	for i := range size {
		name := fmt.Sprintf("lost-live-%d", i)
		boundPod(t, name)
		a := ask(t, http.MethodPost, name, "")
		if a.Code != 0 {
			t.Fatal(a.Message)
		}
		holders[a.Address.IPAddr] = name
		if i%2 == 0 { // the others have told nothing yet
			report(t, name, a.Address.IPAddr)
		}
	}
	loseAll(t, slices.Collect(maps.Keys(holders))...)
	for addr, pod := range holders {
		controlplane.EventuallyWithin(t, patience, func() error {
			o := &v1.BCSNetIP{}
			if err := admin.Get(t.Context(), types.NamespacedName{Name: addr}, o); err != nil {
				return err
			}
			if o.Status.PodName != pod || o.Status.ContainerID != "sandbox-"+pod {
				return fmt.Errorf("%s is held by %q, want %q", addr, o.Status.PodName, pod)
			}
			return nil
		})
	}
	wantStatus(t, p, size, 0, size)
	for _, pod := range holders {
		if a := ask(t, http.MethodDelete, pod, ""); a.Code != 0 {
			t.Error(a.Message)
		}
	}
}
