//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// The networks that pods can have: that without a name is a bridge whose pods have the MAC of their address.
const (
	bridged = ""
	plain   = "plain"   // a bridge whose pods have a MAC of their own each time
	macvlan = "macvlan" // links of the node's bridge
	killed  = "killed"  // as plain, by plugins that die where a test wants it
	pointed = "ptp"     // routed by the node
	meta    = "meta"    // two interfaces: of the default network, and of macvlan
)

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
}

// Tests use the nodes n1 and n2; n3 is for one that has a node dead for long, while others go on.
func TestMain(m *testing.M) {
	play()
	os.Exit(shared.Main(m, bed.Setup{
		Nodes: 3, Networks: []string{plain, macvlan, killed, pointed, meta},
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
	w := &fixture{Bed: b}
	w.controller, err = cp.StartController(ctx, controlplane.ControllerOptions{})
	if err != nil {
		return nil, err
	}
	if err := b.ApplyRights(ctx); err != nil {
		return nil, err
	}
	if w.door, err = openDoor(ctx, b, w.controller.URL); err != nil {
		return nil, err
	}
	w.judge = startJudge(b, poolAddresses())
	world = w
	return func() error {
		w.judge.stop()
		return errors.Join(w.door.close(), w.judge.verdict())
	}, nil
}

// first and last are the numbers of the addresses of the IPv4 pool.
const first, last = 64, 223

func pools() []*v1.BCSNetPool {
	pool := func(name string, spec v1.BCSNetPoolSpec) *v1.BCSNetPool {
		spec.HostSubnets = []string{"192.168.77.0/27"} // the nodes'
		return &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return []*v1.BCSNetPool{
		pool("underlay4", v1.BCSNetPoolSpec{
			Net: "192.168.77.0", Mask: 24, Gateway: "192.168.77.1", Network: "underlay",
			AvailableIPs: []string{fmt.Sprintf("192.168.77.%d-192.168.77.%d", first, last)},
		}),
		pool("tagged", v1.BCSNetPoolSpec{
			Net: "192.168.78.0", Mask: 24, Gateway: "192.168.78.1", VLAN: 8, Network: "tagged",
			AvailableIPs: []string{"192.168.78.64/28"}, Default: new(false),
		}),
		// ptp gives the node the gateway's address, which must not be that of anybody else.
		pool("routed", v1.BCSNetPoolSpec{
			Net: "192.168.79.0", Mask: 24, Gateway: "192.168.79.1", Network: "routed",
			AvailableIPs: []string{"192.168.79.64/28"}, Default: new(false),
		}),
		pool("underlay6", v1.BCSNetPoolSpec{
			Net: "fd00:77::", Mask: 64, Gateway: "fd00:77::1", Network: "underlay",
			AvailableIPs: []string{"fd00:77::1:0/112"},
		}),
	}
}

// equip gives a node bcsnet, and a conflist for each network.
func (w *fixture) equip(n *bed.Node) error {
	access, err := n.Access(context.Background(), w.door.url)
	if err != nil {
		return err
	}
	if err := n.InstallBcsnet(context.Background(), access); err != nil {
		return err
	}
	for network, text := range map[string]string{
		bridged: bed.Conflist,
		plain: `{"cniVersion": "1.1.0", "name": "plain", "plugins": [
			{"type": "bridge", "bridge": "br0", "ipam": {"type": "bcsnet-ipam"}}, {"type": "bcsnet-announce"}]}`,
		killed: `{"cniVersion": "1.1.0", "name": "killed", "plugins": [
			{"type": "bridge", "bridge": "br0", "ipam": {"type": "killed-ipam"}}, {"type": "killed-announce"}]}`,
		pointed: `{"cniVersion": "1.1.0", "name": "ptp", "plugins": [
			{"type": "ptp", "ipam": {"type": "bcsnet-ipam", "network": "routed", "routes": [{"dst": "0.0.0.0/0"}]}}]}`,
		meta: `{"cniVersion": "1.1.0", "name": "meta", "plugins": [{"type": "` + playMeta + `", "networks": ["net", "macvlan"]}]}`,
		macvlan: `{"cniVersion": "1.1.0", "name": "macvlan", "plugins": [
			{"type": "macvlan", "master": "br0", "mode": "bridge", "ipam": {"type": "bcsnet-ipam"}}, {"type": "bcsnet-announce"}]}`,
	} {
		if err := n.WriteConflist(network, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
