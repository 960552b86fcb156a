//go:build linux

package node

import (
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/test/node/bed"
)

func mustAddr(t *testing.T, text string) netip.Addr {
	t.Helper()
	addr, err := netip.ParseAddr(text)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// TestVLANsStopAtTheConfiguration calls the IPAM plugin as main plugins do that put pods into another VLAN than that of
// the pool: it refuses, with a sentence, and keeps nothing. Pods are not tried: the kernels that this runs on have
// links of the types vlan and ipvlan, and bridges that filter VLANs, or have not; the test says which.
func TestVLANsStopAtTheConfiguration(t *testing.T) {
	t.Parallel()
	x := newTenant(t)
	for _, link := range []string{"vlan", "ipvlan"} {
		// In a namespace that goes with the command.
		out, err := exec.Command("unshare", "--net", "sh", "-c",
			"ip link set lo up; ip link add probe link lo type "+link+map[string]string{"vlan": " id 7", "ipvlan": ""}[link]).CombinedOutput()
		if err != nil {
			t.Logf("this kernel has no links of the type %s: the test stops at the configuration (%s)", link, strings.TrimSpace(string(out)))
		}
	}
	pod := x.byHand(t)
	for name, config := range map[string]string{
		"vlan":   `{"cniVersion": "1.1.0", "name": "underlay", "type": "vlan", "master": "br0", "vlanId": 7, "ipam": {"type": "bcsnet-ipam", "network": "tagged"}}`,
		"bridge": `{"cniVersion": "1.1.0", "name": "underlay", "type": "bridge", "bridge": "br0", "vlan": 7, "ipam": {"type": "bcsnet-ipam", "network": "tagged"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			namespace := "vlan-" + name
			x.run(t, bed.Call{Args: []string{"ip", "netns", "add", namespace}})
			t.Cleanup(func() { x.run(t, bed.Call{Args: []string{"ip", "netns", "del", namespace}}) })
			_, err := x.tryCall(t, "ADD", "/run/netns/"+namespace, config)
			if err == nil || !strings.Contains(err.Error(), "VLAN") {
				t.Errorf("the ADD: %v, want a refusal that names the VLAN", err)
			}
			if left := x.leasesOf(t, pod.Name); len(left) > 0 {
				t.Errorf("%s is held after the refusal", left[0].Name)
			}
		})
	}
}
