package http_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		Net: "10.61.0.0", Mask: 24, Gateway: "10.61.0.1", Hosts: []string{host},
		AvailableIPs: []string{"10.61.0.20-10.61.0.23"},
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
			cp.StopAPIServer, cp.StopEtcd, do,
			func() error { return cp.StartEtcd(ctx) }, func() error { return cp.StartAPIServer(ctx) },
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

// All replicas end while etcd is put back, and nobody knows of the address that a pod got after the copy. Its node
// shows what it was answered: from then on nothing is given for a while. What nobody has signed shows nothing.
func TestReceiptOfAForgottenAddress(t *testing.T) {
	t.Parallel()
	const host, receipt = "10.0.0.11", "Bcsnet-Receipt"
	cp := controlplane.ForTest(t)
	if err := cp.InstallManifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := adminFor(t, cp)
	before := startFor(t, account(t, cp), nil)
	if err := admin.Create(t.Context(), &v1.BCSNetPool{
		ObjectMeta: metav1.ObjectMeta{Name: "forgotten"}, Spec: v1.BCSNetPoolSpec{
			Net: "10.62.0.0", Mask: 24, Gateway: "10.62.0.1", Hosts: []string{host},
			AvailableIPs: []string{"10.62.0.20-10.62.0.29"},
		},
	}); err != nil {
		t.Fatal(err)
	}
	ask := func(c caller, name, addr string, headers ...string) (a answer) {
		t.Helper()
		controlplane.Eventually(t, func() error {
			a = c.do(t, "POST", prefix, object{"host": host, "owner": "default/" + name, "ipAddr": addr}, headers...)
			if a.Status != 200 && !strings.Contains(a.Message, "put back") &&
				!strings.Contains(a.Message, "as its node was answered") {
				return errors.New(a.Message)
			}
			return nil
		})
		return a
	}
	controlplane.Eventually(t, func() error {
		var addresses v1.BCSNetIPList
		if err := admin.List(t.Context(), &addresses); err != nil || len(addresses.Items) < 10 {
			return fmt.Errorf("%d addresses, %w", len(addresses.Items), err)
		}
		return nil
	})
	restore := copyEtcd(t, cp)
	first := ask(before.caller(), "vm-1", "10.62.0.20")
	first.done(t)
	shown := first.Header.Get(receipt)
	if shown == "" {
		t.Fatal("an ADD has no receipt")
	}
	before.End()
	<-before.Ended()
	restore()
	after := startFor(t, account(t, cp), nil).caller()
	forged := strings.Replace(shown, "10.62.0.20,", "10.62.0.21,", 1)
	ask(after, "vm-2", "10.62.0.22", receipt, forged).done(t)
	ask(after, "vm-2", "10.62.0.22", receipt, "nonsense").done(t)

	// The address is free as far as the store goes.
	if a := ask(after, "vm-3", "10.62.0.20", receipt, shown); a.Reason != ipam.ReasonUnavailable {
		t.Fatalf("an address that is in use is given to somebody else: %s", a.Raw)
	}
	// Its holder, too, gets no new one now.
	if a := ask(after, "vm-1", ""); a.Reason != ipam.ReasonUnavailable {
		t.Errorf("right after the restore was noticed: %s", a.Raw)
	}
	controlplane.Eventually(t, func() error { // what is held is answered, and the node shows the old receipt no more
		a := after.do(t, "POST", prefix, object{"host": host, "owner": "default/vm-2"}, receipt, shown)
		if a.Code != 0 || a.Header.Get(receipt) == "" || a.Header.Get(receipt) == shown {
			return fmt.Errorf("%s with receipt %q", a.Raw, a.Header.Get(receipt))
		}
		return nil
	})
}
