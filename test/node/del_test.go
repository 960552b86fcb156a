//go:build linux

package node

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/bcsnet/bcsnet/test/node/bed"
)

// TestDelWithTheBareType calls the IPAM plugin by hand, as a main plugin does, for a container that has gone: Multus hands DEL a
// configuration that has nothing but the type, and after the node was down there is no network namespace.
func TestDelWithTheBareType(t *testing.T) {
	x := newTenant(t)
	const container = "0123456789abcdef-by-hand"
	call := func(command, config string) bed.Result {
		t.Helper()
		r, err := x.Node("n1").Run(t.Context(), bed.Call{
			Args: []string{"/opt/cni/bin/bcsnet-ipam"}, Input: []byte(config),
			Env: []string{
				"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin", "CNI_NETNS=",
				"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + x.namespace + ";K8S_POD_NAME=by-hand;K8S_POD_INFRA_CONTAINER_ID=" + container,
			},
		})
		if err != nil || r.Code != 0 {
			t.Fatalf("%s: exit code %d, %v: %s%s", command, r.Code, err, r.Output, r.Errors)
		}
		return r
	}
	// skel wants a namespace of ADD; the plugin finds no link in that of process 1, and has nobody to ask.
	added := x.addByHand(t, container)
	if len(added) == 0 {
		t.Fatal("the ADD gave no address")
	}
	bare := `{"cniVersion": "1.0.0", "name": "underlay", "ipam": {"type": "bcsnet-ipam"}}`
	call("DEL", bare)
	if err := x.leaked(t); err != nil {
		t.Errorf("after the DEL: %v", err)
	}
	call("DEL", bare) // once more: it has gone
}

// addByHand calls the IPAM plugin for a container, and returns its addresses.
func (x *tenant) addByHand(t *testing.T, container string) []string {
	t.Helper()
	r, err := x.Node("n1").Run(t.Context(), bed.Call{
		Args:  []string{"/opt/cni/bin/bcsnet-ipam"},
		Input: []byte(`{"cniVersion": "1.1.0", "name": "underlay", "type": "bridge", "ipam": {"type": "bcsnet-ipam"}}`),
		Env: []string{
			"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + container, "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin",
			"CNI_NETNS=/proc/1/ns/net", "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + x.namespace + ";K8S_POD_NAME=by-hand",
		},
	})
	if err != nil || r.Code != 0 {
		t.Fatalf("ADD: exit code %d, %v: %s%s", r.Code, err, r.Output, r.Errors)
	}
	var result struct{ IPs []struct{ Address string } }
	if err := json.Unmarshal(r.Output, &result); err != nil {
		t.Fatal(fmt.Errorf("ADD answered %q: %w", r.Output, err))
	}
	var addrs []string
	for _, ip := range result.IPs {
		addrs = append(addrs, ip.Address)
	}
	return addrs
}
