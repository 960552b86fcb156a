//go:build linux

package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
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
		Nodes: 2, Images: []string{"bcsnet-node.tar"},
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
	if err := admin.Create(ctx, endpoints(replica)); err != nil {
		return nil, err
	}
	return func() error { return nil }, apply(ctx, b, "node")
}

// endpoints returns an EndpointSlice of the Service. The controller is no pod here, so the Service has none of its own.
func endpoints(replica netip.AddrPort) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: controlplane.SystemNamespace, Name: "bcsnet-controller-by-hand",
			Labels: map[string]string{discoveryv1.LabelServiceName: "bcsnet-controller"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{replica.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("allocator"), Port: new(int32(replica.Port()))}},
	}
}

// overlay is a folder of config with where the API server is: there is no kube-proxy.
const overlay = `
resources: [%s]
patches:
- target: {kind: DaemonSet}
  patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: bcsnet-node}
    spec: {template: {spec: {containers: [{name: node, env: [
      {name: KUBERNETES_SERVICE_HOST, value: "%s"}, {name: KUBERNETES_SERVICE_PORT, value: "%s"}]}]}}}
`

// apply applies a folder of config.
func apply(ctx context.Context, b *bed.Bed, folder string) (err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	server, err := url.Parse(b.Cluster.Config.Host)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "overlay-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	base, err := filepath.Rel(dir, filepath.Join(root, "config", folder))
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, overlay, base, server.Hostname(), server.Port())
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		return err
	}
	manifests, err := kubectl(ctx, b, nil, "kustomize", dir)
	if err != nil {
		return err
	}
	_, err = kubectl(ctx, b, manifests, "apply", "--server-side", "--filename", "-")
	return err
}

// kubectl runs kubectl as the administrator and returns its output.
func kubectl(ctx context.Context, b *bed.Bed, input []byte, args ...string) ([]byte, error) {
	cmd := b.Cluster.Kubectl(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("kubectl %v: %w", args, err), errors.New(stderr.String()))
	}
	return stdout.Bytes(), nil
}
