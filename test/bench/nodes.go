package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/node/bed"
)

// nodesPart is the part that has real nodes, and so a control plane of its own in the fabric of a bed.
const nodesPart = "nodes"

// The networks of pods on real nodes. Each is the node's bridge.
const (
	hostLocal = "host-local" // addresses of the reference plugin
	leased    = "leased"     // of bcsnet-ipam alone
	announced = "announced"  // the same with bcsnet-announce
	probed    = "probed"     // the same with the probe, too
	reused    = "reused"     // one address, announced
	silent    = "silent"     // the same address, and no announcement
)

// nodes measures pods on real nodes: this program a second time, in the fabric.
func nodes(ctx context.Context, r *report) error {
	if err := bed.Available(); err != nil {
		say("the part nodes is skipped: %v", err)
		return nil
	}
	cmd, err := bed.Command(os.Args[1:]...)
	if err != nil {
		return err
	}
	var t nodeTimes
	if err := again(ctx, cmd, &t); err != nil {
		return fmt.Errorf("%s: %w", nodesPart, err)
	}
	r.podsOnNodes(t)
	return nil
}

// again runs this program a second time, in other namespaces, and decodes what it prints. It ends with this process.
func again(ctx context.Context, cmd *exec.Cmd, printed any) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread() // the kernel ties the child to this thread
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close() // the bed alone holds its mark
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return err
	}
	return json.Unmarshal(out.Bytes(), printed)
}

// measureNodes makes the bed, measures, and prints the times.
func measureNodes(ctx context.Context, rounds int) (err error) {
	say("starting a control plane, the controller and two nodes")
	b, err := bed.Prepare()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, b.Down())
		if b.Cluster != nil {
			err = errors.Join(err, b.Cluster.Stop())
		}
		err = errors.Join(err, b.Close())
	}()
	if err := b.Start(ctx); err != nil {
		return err
	}
	if err := furnish(ctx, b); err != nil {
		return err
	}
	m, err := newPodMeter(ctx, b)
	if err != nil {
		return err
	}
	var t nodeTimes
	if t.Ready, err = m.starts(ctx, rounds*podsPerRound); err != nil {
		return err
	}
	if t.Sandbox, err = m.sandboxes(t.Ready); err != nil {
		return err
	}
	if t.Reused, err = m.reuses(ctx, rounds*reusesPerRound); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// furnish gives the control plane bcsnet, and nodes.
func furnish(ctx context.Context, b *bed.Bed) error {
	if err := b.Cluster.InstallManifests(ctx); err != nil {
		return err
	}
	admin, err := b.Cluster.Admin()
	if err != nil {
		return err
	}
	for name, spec := range map[string]v1.BCSNetPoolSpec{
		"underlay4": {
			Net: "192.168.77.0", Mask: 24, Gateway: "192.168.77.1", Network: "underlay",
			AvailableIPs: []string{"192.168.77.160-192.168.77.223"},
		},
		"underlay6": {
			Net: "fd00:77::", Mask: 64, Gateway: "fd00:77::1", Network: "underlay",
			AvailableIPs: []string{"fd00:77::1:0/112"},
		},
		reused: {
			Net: "192.168.77.0", Mask: 24, Gateway: "192.168.77.1", Network: reused,
			AvailableIPs: []string{reusedAddr}, Default: new(false),
		},
	} {
		spec.HostSubnets = []string{"192.168.77.0/27"} // the nodes'
		pool := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		if err := admin.Create(ctx, pool); err != nil {
			return err
		}
	}
	replica := netip.AddrPortFrom(b.Gateway4(), bed.AllocatorPort)
	_, err = b.Cluster.StartController(ctx, controlplane.ControllerOptions{HTTPAddress: replica.String()})
	if err != nil {
		return err
	}
	if err := b.ApplyRights(ctx); err != nil {
		return err
	}
	networks := []string{hostLocal, leased, announced, probed, reused, silent}
	return b.Up(ctx, bed.Setup{Nodes: 2, Networks: networks, Prepare: func(n *bed.Node) error {
		access, err := n.Access(ctx, "https://"+replica.String())
		err = errors.Join(err, n.InstallBcsnet(ctx, access), n.WriteConflist("", []byte(bed.Conflist)))
		for _, network := range networks {
			err = errors.Join(err, n.WriteConflist(network, conflist(n, network)))
		}
		return err
	}})
}

// conflist returns how a network is configured on a node.
func conflist(n *bed.Node, network string) []byte {
	const routes = `"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]`
	announce := `, {"type": "bcsnet-announce"}`
	ipam := `"type": "bcsnet-ipam", ` + routes
	switch network {
	case leased:
		announce = ""
	case hostLocal:
		announce = ""
		ipam = fmt.Sprintf(`"type": "host-local", %s, "ranges": [%s, %s]`, routes,
			localRange("192.168.77.0/24", "192.168.77.", n.Number, n.Gateway4),
			localRange("fd00:77::/64", "fd00:77::", n.Number, n.Gateway6))
	case probed:
		ipam += `, "probe": true`
	case reused:
		ipam += `, "network": "reused"`
	case silent:
		ipam += `, "network": "reused"`
		announce = ""
	}
	return fmt.Appendf(nil, `{"cniVersion": "1.1.0", "name": "%s", "plugins": [
		{"type": "bridge", "bridge": "br0", "ipam": {%s}}%s]}`, network, ipam, announce)
}

// localRange returns ten addresses for host-local that no other node has.
func localRange(subnet, prefix string, number byte, gateway netip.Addr) string {
	return fmt.Sprintf(`[{"subnet": %q, "rangeStart": "%s%d0", "rangeEnd": "%s%d9", "gateway": %q}]`,
		subnet, prefix, number, prefix, number, gateway)
}
