//go:build linux

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// The networks that pods can have: that without a name is a bridge whose pods have the MAC of their address.
const (
	bridged = ""
	plain   = "plain"   // a bridge whose pods have a MAC of their own each time
	macvlan = "macvlan" // links of the node's bridge
)

// plugins are those of this module that the nodes have.
var plugins = []string{"bcsnet-ipam", "bcsnet-announce"}

var (
	shared bed.Shared
	// world is what the tests share beside the bed.
	world *fixture
)

// fixture is bcsnet in the cluster of the bed.
type fixture struct {
	*bed.Bed
	controller *controlplane.Controller
	door       *door  // between plugins and controller
	judge      *judge // asks who has which address
	kubeSystem types.UID
}

// Tests use the nodes n1 and n2; n3 is for one that has a node dead for long, while others go on.
func TestMain(m *testing.M) {
	os.Exit(shared.Main(m, bed.Setup{
		Nodes: 3, Networks: []string{plain, macvlan},
		Prepare: func(n *bed.Node) error { return world.equip(n) },
	}, setUp))
}

// setUp installs bcsnet: manifests, pools, the controller and the door to it.
func setUp(ctx context.Context, b *bed.Bed) (func() error, error) {
	cp := b.Cluster
	if err := cp.InstallManifests(ctx); err != nil {
		return nil, err
	}
	admin, err := cp.Admin()
	if err != nil {
		return nil, err
	}
	for _, pool := range pools() {
		if err := admin.Create(ctx, pool); err != nil {
			return nil, err
		}
	}
	system := &corev1.Namespace{}
	if err := admin.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		return nil, err
	}
	w := &fixture{Bed: b, kubeSystem: system.UID}
	w.controller, err = cp.StartController(ctx, controlplane.ControllerOptions{
		HTTPAddress: netip.AddrPortFrom(b.Gateway4(), 8090).String(),
	})
	if err != nil {
		return nil, err
	}
	if w.door, err = openDoor(netip.AddrPortFrom(b.Gateway4(), 8091).String(), w.controller.URL); err != nil {
		return nil, err
	}
	w.judge = startJudge(b)
	world = w
	return func() error {
		w.judge.stop()
		return errors.Join(w.door.close(), w.judge.verdict())
	}, nil
}

// first and last are the numbers of the addresses of the IPv4 pool.
const first, last = 100, 199

func pools() []*v1.BCSNetPool {
	hosts := []string{"192.168.77.11", "192.168.77.12", "192.168.77.13"}
	pool := func(name string, spec v1.BCSNetPoolSpec) *v1.BCSNetPool {
		spec.Hosts = hosts
		return &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return []*v1.BCSNetPool{
		pool("underlay4", v1.BCSNetPoolSpec{
			Net: "192.168.77.0", Mask: 24, Gateway: "192.168.77.1", Network: "underlay",
			AvailableIPs: []string{fmt.Sprintf("192.168.77.%d-192.168.77.%d", first, last)},
		}),
		pool("underlay6", v1.BCSNetPoolSpec{
			Net: "fd00:77::", Mask: 64, Gateway: "fd00:77::1", Network: "underlay",
			AvailableIPs: []string{"fd00:77::1:0/112"},
		}),
	}
}

// equip gives a node our plugins, what an installer writes for them, and a conflist for each network.
func (w *fixture) equip(n *bed.Node) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	for _, name := range plugins {
		program := filepath.Join(root, "bin", name)
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("%w; hint: run `make build`", err)
		}
		if err := n.InstallPlugin(name, program); err != nil {
			return err
		}
	}
	config, err := json.Marshal(map[string]any{
		"cluster": w.kubeSystem, "node": n.Name, "host": n.Address4.Addr(), "replicas": []string{w.door.url},
		"serverName": "bcsnet-controller.bcsnet-system.svc",
	})
	if err != nil {
		return err
	}
	dir := filepath.Join(n.EtcCNI(), "net.d", "bcsnet.d")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600)); err != nil {
		return err
	}
	for network, main := range map[string]string{
		bridged: `{"type": "bridge", "bridge": "br0", "ipam": {"type": "bcsnet-ipam"}}, {"type": "bcsnet-announce", "mac": true}`,
		plain:   `{"type": "bridge", "bridge": "br0", "ipam": {"type": "bcsnet-ipam"}}, {"type": "bcsnet-announce"}`,
		macvlan: `{"type": "macvlan", "master": "br0", "mode": "bridge", "ipam": {"type": "bcsnet-ipam"}},
			{"type": "bcsnet-announce"}`,
	} {
		text := fmt.Sprintf(`{"cniVersion": "1.1.0", "name": "underlay%s", "plugins": [%s]}`, network, main)
		if err := n.WriteConflist(network, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
