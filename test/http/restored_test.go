package http_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// A replica begins after etcd was put back to a copy that knows nothing of some leases, and another one, which does, is
// cut off from the API server and has not noticed. The new one gives none of these addresses to anybody. Both know them
// when the other one is back, and what is free is given again.
func TestStartsAfterARestore(t *testing.T) {
	t.Parallel()
	const host, pool = "10.0.0.11", "restored"
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, p := adminFor(t, cp), newProxy(t, cp)
	before := startFor(t, p.config(), nil).caller()
	leads(t, before)
	o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: v1.BCSNetPoolSpec{
		Net: "10.61.0.0", Mask: 24, Gateway: "10.61.0.1", Hosts: []string{host}, AvailableIPs: []string{"10.61.0.20-10.61.0.23"},
	}}
	if err := admin.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, func() error { // the copy knows that the first one is there, and all addresses as free
		var replicas coordinationv1.LeaseList
		var addresses v1.BCSNetIPList
		err := errors.Join(admin.List(t.Context(), &addresses),
			admin.List(t.Context(), &replicas, client.InNamespace(controlplane.SystemNamespace)))
		if err == nil && (len(replicas.Items) < 2 || len(addresses.Items) < 4) {
			err = fmt.Errorf("%d Leases, %d addresses", len(replicas.Items), len(addresses.Items))
		}
		return err
	})
	restore := copyEtcd(t, cp)
	var held []string
	for i := range 3 {
		a := before.untilAnswered(t.Context(), object{"host": host, "owner": fmt.Sprintf("default/vm-%d", i)}).must(t)
		held = append(held, ips(a.done(t))...)
	}
	p.silence(away)
	restore()
	// Else the new one might have the other one answer.
	controlplane.Eventually(t, func() error {
		l := &coordinationv1.Lease{}
		l.Namespace, l.Name = controlplane.SystemNamespace, leadership.LeaseName
		return client.IgnoreNotFound(admin.Delete(t.Context(), l))
	})
	after := startFor(t, account(t, cp), nil).caller()
	wants := object{"host": host, "owner": "default/vm-new", "ipAddr": held[0]}
	if a := after.do(t, "POST", prefix, wants); a.Reason != ipam.ReasonUnavailable {
		t.Fatalf("%s, which is held, is asked for at the new replica: %s", held[0], a.Raw)
	}
	p.set(nil)
	for i, addr := range held {
		controlplane.Eventually(t, func() error {
			o := &v1.BCSNetIP{}
			err := admin.Get(t.Context(), types.NamespacedName{Name: addr}, o)
			if want := fmt.Sprintf("default/vm-%d", i); err == nil && o.Status.Owner != want {
				err = fmt.Errorf("%s is %s and held by %q, want %q", addr, o.Status.Status, o.Status.Owner, want)
			}
			return err
		})
	}
	if a := after.untilAnswered(t.Context(), wants).must(t); a.Code == 0 {
		t.Errorf("%s is given twice: %s", held[0], a.Raw)
	}
	delete(wants, "ipAddr")
	if got := ips(after.untilAnswered(t.Context(), wants).must(t).done(t)); slices.Contains(held, got[0]) {
		t.Errorf("%s is given twice", got[0])
	}
}

// copyEtcd makes a copy of etcd's data, and returns what puts it back.
func copyEtcd(t *testing.T, cp *controlplane.ControlPlane) (restore func()) {
	t.Helper()
	data, backup := filepath.Join(cp.Dir, "etcd"), filepath.Join(t.TempDir(), "etcd")
	ctx := context.WithoutCancel(t.Context())
	swap := func(do func() error) {
		t.Helper()
		for _, step := range []func() error{
			cp.StopAPIServer, cp.StopEtcd, do, func() error { return cp.StartEtcd(ctx) }, func() error { return cp.StartAPIServer(ctx) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	swap(func() error { return os.CopyFS(backup, os.DirFS(data)) })
	return func() {
		t.Helper()
		swap(func() error { return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(backup))) })
	}
}
