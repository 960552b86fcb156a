package pools_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestStoreIsPutBack: etcd is restored to a copy that knows nothing of later leases, pools and pods, while the
// controller runs. It notices, has all leases again, also those of pods that are newer than the copy, gives none of
// these addresses to anybody else, and follows what is made from then on.
func TestStoreIsPutBack(t *testing.T) {
	shared, sharedAdmin, sharedController := cluster, admin, controller
	t.Cleanup(func() { cluster, admin, controller = shared, sharedAdmin, sharedController })
	if err := prepared(); err != nil { // of the shared one: what follows is not its business
		t.Fatal(err)
	}
	cluster = controlplane.ForTest(t)
	if err := cluster.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if admin, err = client.New(cluster.Config, client.Options{Scheme: admin.Scheme()}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.ServiceAccountConfig(t.Context(), "default", "default"); err != nil {
		t.Fatal(err)
	}
	if controller, err = cluster.StartController(t.Context(), controlplane.ControllerOptions{}); err != nil {
		t.Fatal(err)
	}
	p := newPool(t, "put-back", nil, "10.39.0.1-10.39.0.8")
	wantStatus(t, p, 8, 8, 0)
	holders := map[string]string{}
	for i := range 4 { // the copy has the pods, but not their leases
		boundPod(t, fmt.Sprintf("put-back-%d", i))
	}
	data, backup := filepath.Join(cluster.Dir, "etcd"), filepath.Join(t.TempDir(), "etcd")
	must := func(steps ...func() error) {
		t.Helper()
		for _, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := func() error { return cluster.StartEtcd(t.Context()) }
	must(cluster.StopAPIServer, cluster.StopEtcd, func() error { return os.CopyFS(backup, os.DirFS(data)) }, start,
		func() error { return cluster.StartAPIServer(t.Context()) })
	wantStatus(t, p, 8, 8, 0)
	for i := range 4 {
		name := fmt.Sprintf("put-back-%d", i)
		controlplane.EventuallyWithin(t, patience, func() error {
			a := ask(t, http.MethodPost, name, "")
			if a.Code != 0 {
				return fmt.Errorf("%s: %s", a.Reason, a.Message)
			}
			holders[a.Address.IPAddr] = name
			return nil
		})
	}
	for i := range 2 { // the copy knows nothing of these pods: they run on all the same
		name := fmt.Sprintf("put-back-newer-%d", i)
		boundPod(t, name)
		a := ask(t, http.MethodPost, name, "")
		if a.Code != 0 {
			t.Fatalf("%s: %s", a.Reason, a.Message)
		}
		holders[a.Address.IPAddr] = name
	}
	edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Priority = 5 })
	wantStatus(t, p, 8, 2, 6)
	for i := range 300 { // so that the versions are well behind
		edit(t, p, func(s *v1.BCSNetPoolSpec) { s.Priority = int32(i) })
	}
	must(cluster.StopAPIServer, cluster.StopEtcd, func() error { return os.RemoveAll(data) },
		func() error { return os.CopyFS(data, os.DirFS(backup)) }, start, func() error { return cluster.StartAPIServer(t.Context()) })

	for addr, pod := range holders {
		controlplane.EventuallyWithin(t, patience, func() error {
			o := &v1.BCSNetIP{}
			if err := admin.Get(t.Context(), types.NamespacedName{Name: addr}, o); err != nil {
				return err
			}
			if o.Status.PodName != pod || o.Status.Status != v1.IPActive {
				return fmt.Errorf("%s is %s and held by %q, want %q", addr, o.Status.Status, o.Status.PodName, pod)
			}
			return nil
		})
	}
	controlplane.EventuallyWithin(t, patience, func() error { // pools are followed again
		edit(t, p, func(s *v1.BCSNetPoolSpec) { s.AvailableIPs = []string{"10.39.0.1-10.39.0.11"} })
		return nil
	})
	wantStatus(t, p, 11, 5, 6)
	wantReady(t, p)
	boundPod(t, "put-back-first")
	// other replicas may know more: there is nothing new for a while
	controlplane.EventuallyWithin(t, patience, func() error {
		a := ask(t, http.MethodPost, "put-back-first", "")
		if a.Code != 0 {
			return fmt.Errorf("%s: %s", a.Reason, a.Message)
		}
		if other, twice := holders[a.Address.IPAddr]; twice {
			t.Fatalf("put-back-first gets %s, which %s has", a.Address.IPAddr, other)
		}
		holders[a.Address.IPAddr] = "put-back-first"
		return nil
	})
	var asking sync.WaitGroup
	var mu sync.Mutex
	for i := range 4 {
		name := fmt.Sprintf("put-back-new-%d", i)
		boundPod(t, name)
		asking.Go(func() {
			a := ask(t, http.MethodPost, name, "")
			mu.Lock()
			defer mu.Unlock()
			if other, twice := holders[a.Address.IPAddr]; twice || a.Code != 0 {
				t.Errorf("%s gets %q (%s), which %q has", name, a.Address.IPAddr, a.Message, other)
			}
			holders[a.Address.IPAddr] = name
		})
	}
	asking.Wait()
}
