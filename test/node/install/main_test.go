//go:build linux

package install

import (
	"context"
	"net/netip"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// conflist is the name of the conflist on nodes.
const conflist = "10-bcsnet.conflist"

var shared bed.Shared

func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, bed.Setup{
		Nodes: 2, Images: []string{bed.NodeImage},
		// Nodes become Ready by what the DaemonSet gives them.
		Prepare: func(*bed.Node) error { return nil },
	}, setUp))
}

// setUp installs bcsnet as a user does, before there are nodes.
func setUp(ctx context.Context, b *bed.Bed) (func() error, error) {
	if err := b.Cluster.InstallManifests(ctx); err != nil {
		return nil, err
	}
	admin, err := b.Cluster.Admin()
	if err != nil {
		return nil, err
	}
	pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "underlay"}, Spec: v1.BCSNetPoolSpec{
		Net: "192.168.77.0", Mask: 24, Gateway: "192.168.77.1", HostSubnets: []string{"192.168.77.0/27"},
		AvailableIPs: []string{"192.168.77.64-192.168.77.223"},
	}}
	if err := admin.Create(ctx, pool); err != nil {
		return nil, err
	}
	replica := netip.AddrPortFrom(b.Gateway4(), bed.AllocatorPort)
	_, err = b.Cluster.StartController(ctx, controlplane.ControllerOptions{HTTPAddress: replica.String()})
	if err != nil {
		return nil, err
	}
	if err := b.Publish(ctx, replica); err != nil {
		return nil, err
	}
	return func() error { return nil }, b.ApplyNodes(ctx, "node")
}
