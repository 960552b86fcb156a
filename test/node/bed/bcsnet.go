//go:build linux

package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// AllocatorPort is the port of the controller's HTTP service, at an address of the fabric.
const AllocatorPort = 8090

// plugins are those of this module that nodes have.
var plugins = []string{"bcsnet-ipam", "bcsnet-announce"}

// Conflist is the network of pods by default, as a user would write it: ports of the node's bridge, with addresses of
// bcsnet, which are announced. Pods have the MAC of their address.
const Conflist = `{
  "cniVersion": "1.1.0",
  "name": "underlay",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "br0",
      "ipam": {"type": "bcsnet-ipam", "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}
    },
    {"type": "bcsnet-announce", "mac": true}
  ]
}
`

// InstallBcsnet gives the node our plugins, and config.json, CA and token, as the DaemonSet of config/node writes them.
// It does not write a conflist.
func (n *Node) InstallBcsnet(ctx context.Context, a Access) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	for _, name := range plugins {
		if err := n.InstallPlugin(name, filepath.Join(root, "bin", name)); err != nil {
			return fmt.Errorf("%w; hint: run `make build`", err)
		}
	}
	admin, err := n.bed.Cluster.Admin()
	if err != nil {
		return err
	}
	system := &corev1.Namespace{}
	if err := admin.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"cluster": system.UID, "node": n.Name, "host": n.Address4.Addr(), "replicas": a.Replicas,
		"serverName": ServerName,
	})
	if err != nil {
		return err
	}
	dir := filepath.Join(n.EtcCNI(), "net.d", "bcsnet.d")
	err = os.MkdirAll(dir, 0o700)
	for name, text := range map[string]string{"config.json": string(config), "ca.crt": a.CA, "token": a.Token} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return err
}
