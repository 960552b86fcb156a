//go:build linux

package bed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// NodeImage is the archive of the image of config/node, for Setup.Images.
const NodeImage = "bcsnet-node.tar"

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

// ApplyNodes applies a folder of config that is about nodes, such as node.
func (b *Bed) ApplyNodes(ctx context.Context, folder string) (err error) {
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
	manifests, err := b.Kubectl(ctx, nil, "kustomize", dir)
	if err != nil {
		return err
	}
	_, err = b.Kubectl(ctx, manifests, "apply", "--server-side", "--filename", "-")
	return err
}

// Kubectl runs kubectl as the administrator and returns its output.
func (b *Bed) Kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	cmd := b.Cluster.Kubectl(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("kubectl %v: %w", args, err), errors.New(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// Publish makes an EndpointSlice of the controller's Service, by which nodes find a replica that is no pod: the Service
// has none of its own then.
func (b *Bed) Publish(ctx context.Context, replica netip.AddrPort) error {
	admin, err := b.Cluster.Admin()
	if err != nil {
		return err
	}
	return admin.Create(ctx, Endpoints(controlplane.ControllerName, replica))
}

// Endpoints returns an EndpointSlice of a Service in the controller's namespace.
func Endpoints(service string, replica netip.AddrPort) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: controlplane.SystemNamespace, Name: service + "-by-hand",
			Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{replica.Addr().String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("allocator"), Port: new(int32(replica.Port()))}},
	}
}
