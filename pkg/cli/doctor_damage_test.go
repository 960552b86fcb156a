package cli

import (
	"context"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// aged ADDRESS... has addresses be held for ninety days.
func (f *fixture) aged(ctx context.Context, _ *testscript.TestScript, args []string) error {
	for _, arg := range args {
		name := ipaddr.ObjectName(netip.MustParseAddr(arg))
		err := eventually(ctx, func(ctx context.Context) (bool, error) {
			var o v1.BCSNetIP
			if err := f.client.Get(ctx, client.ObjectKey{Name: name}, &o); err != nil {
				return false, err
			}
			o.Status.UpdateTime = store.FormatTime(time.Now().AddDate(0, 0, -90))
			err := f.client.Update(ctx, &o)
			return err == nil, client.IgnoreNotFound(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leader DURATION has somebody lead the controllers until the end of the script, and have said so that
// long ago.
func (f *fixture) leader(ctx context.Context, ts *testscript.TestScript, args []string) error {
	ago, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: doctor.ControllerNamespace, Name: doctor.ControllerName,
	}}
	leases := f.kubernetes.CoordinationV1().Leases(doctor.ControllerNamespace)
	err = leases.Delete(ctx, lease.Name, metav1.DeleteOptions{})
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	ts.Defer(func() {
		ts.Check(client.IgnoreNotFound(leases.Delete(context.Background(), lease.Name, metav1.DeleteOptions{})))
	})
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new("replica-a_b7c2_http://10.0.0.11:8090"), LeaseDurationSeconds: new(int32(3600)),
		RenewTime: &metav1.MicroTime{Time: time.Now().Add(-ago)},
	}
	_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	return err
}

// outdated has the cluster have an old CRD of addresses until the end of the script.
func (f *fixture) outdated(ctx context.Context, ts *testscript.TestScript, _ []string) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	ts.Defer(func() { ts.Check(f.cluster.InstallCRDs(context.Background(), filepath.Join(root, "config", "crd"))) })
	return f.cluster.Kubectl(ctx, "patch", "crd", "bcsnetips."+v1.GroupVersion.Group, "--type=json",
		"--patch", `[{"op": "replace", "path": "/spec/versions/0/additionalPrinterColumns/0/name", "value": "Old"}]`).Run()
}
