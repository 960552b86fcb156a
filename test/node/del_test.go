//go:build linux

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/bcsnet/bcsnet/test/controlplane"

	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/test/node/bed"
)

// TestDelWithTheBareType calls the IPAM plugin by hand, as a main plugin does, for a container that has gone: Multus
// hands DEL a configuration that has nothing but the type, and after the node was down there is no network namespace.
func TestDelWithTheBareType(t *testing.T) {
	controlplane.TakesLong(t)
	t.Parallel()
	x := newTenant(t)
	x.byHand(t)
	x.run(t, bed.Call{Args: []string{"ip", "netns", "add", "bare"}})
	t.Cleanup(func() { x.run(t, bed.Call{Args: []string{"ip", "netns", "del", "bare"}}) })
	added := x.call(t, "ADD", "/run/netns/bare", `{"cniVersion": "1.1.0", "name": "underlay", "type": "bridge", "ipam": {"type": "bcsnet-ipam"}}`)
	var result struct {
		IPs []struct {
			Address string `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(added, &result); err != nil || len(result.IPs) != 2 {
		t.Fatalf("ADD answered %q, %v", added, err)
	}
	bare := `{"cniVersion": "1.0.0", "name": "underlay", "ipam": {"type": "bcsnet-ipam"}}`
	x.call(t, "DEL", "", bare)
	if err := x.leaked(t); err != nil {
		t.Errorf("after the DEL: %v", err)
	}
	x.call(t, "DEL", "", bare) // once more: it has gone
}

// byHand makes the pod for which a test calls the plugin itself: the allocator wants to know whom an address is for,
// and that the pod is on the node that asks. Its kubelet makes no sandbox for it, as it waits for a volume.
func (x *tenant) byHand(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := bed.Pod(x.namespace, "by-hand", "n1")
	pod.Spec.Volumes = []corev1.Volume{{Name: "never", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "never"}},
	}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "never", MountPath: "/never"}}
	if err := x.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// call runs the IPAM plugin by hand, and returns what it printed.
func (x *tenant) call(t *testing.T, command, network, config string) []byte {
	t.Helper()
	out, err := x.tryCall(t, command, network, config)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryCall does what call does, and returns a refusal as an error. Each namespace has a container of its own.
func (x *tenant) tryCall(t *testing.T, command, network, config string) ([]byte, error) {
	t.Helper()
	container := "by-hand-" + x.namespace
	return x.inNode(t, x.Node("n1"), bed.Call{
		Args: []string{"/opt/cni/bin/bcsnet-ipam"}, Input: []byte(config),
		Env: []string{
			"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin",
			"CNI_NETNS=" + network, "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + x.namespace + ";K8S_POD_NAME=by-hand",
		},
	})
}

// run runs a command on n1, and returns what it printed.
func (x *tenant) run(t *testing.T, c bed.Call) []byte {
	t.Helper()
	out, err := x.inNode(t, x.Node("n1"), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// inNode runs a command on a node, and returns what it printed. An exit code is an error.
func (x *tenant) inNode(t *testing.T, n *bed.Node, c bed.Call) ([]byte, error) {
	t.Helper()
	r, err := n.Run(context.WithoutCancel(t.Context()), c)
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("%q: exit code %d: %s%s", c.Args, r.Code, r.Output, r.Errors)
	}
	return r.Output, err
}
