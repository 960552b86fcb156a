package attach

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/cni/nodefile"
)

const (
	// maxMTU is the largest length that the header of an IP packet can express.
	maxMTU = 65535
	// maxVLAN is the highest VLAN ID of IEEE 802.1Q.
	maxVLAN = 4094
	// maxAddrs bounds the addresses of one attachment.
	maxAddrs = 64
)

// Attachment is the allocator's answer for one interface of one container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
	// CNINetwork is the name of the network configuration of the ADD.
	CNINetwork string `json:"cniNetwork,omitempty"`
	// Pod is namespace/name of the container's pod, and PodUID its UID; empty if the runtime names none.
	Pod    string `json:"pod,omitempty"`
	PodUID string `json:"podUID,omitempty"`
	// MAC is the MAC derived from the address; empty if the allocator names none, as for only IPv6.
	MAC string `json:"mac,omitempty"`
	// MTU is the pool's MTU in octets; 0 if the pool has none.
	MTU int `json:"mtu,omitempty"`
	// VLAN is the pool's VLAN ID; 0 without one.
	VLAN int `json:"vlan,omitempty"`
	// Pool is the pool of the first address.
	Pool string `json:"pool,omitempty"`
	// Addrs are all addresses of the attachment.
	Addrs []netip.Addr `json:"addrs"`
	// Migration reports whether a virtual machine migrates live, so that its other pod still uses the addresses.
	Migration bool `json:"migration,omitempty"`
}

// HardwareAddr returns the MAC; nil if there is none.
func (a *Attachment) HardwareAddr() (net.HardwareAddr, error) {
	if a.MAC == "" {
		return nil, nil
	}
	mac, err := net.ParseMAC(a.MAC)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 {
		return nil, fmt.Errorf("mac %q is not the MAC address of one Ethernet interface", a.MAC)
	}
	return mac, nil
}

// Attachment returns the container's ID and the name of the interface.
func (a *Attachment) Attachment() (id, ifName string) { return a.ContainerID, a.IfName }

// Validate returns an error that names the first invalid field.
func (a *Attachment) Validate() error {
	if err := nodefile.ValidNames(a.ContainerID, a.IfName); err != nil {
		return err
	}
	if _, err := a.HardwareAddr(); err != nil {
		return err
	}
	switch {
	case a.MTU < 0 || a.MTU > maxMTU:
		return fmt.Errorf("mtu %d is not in 0-%d", a.MTU, maxMTU)
	case a.VLAN < 0 || a.VLAN > maxVLAN:
		return fmt.Errorf("vlan %d is not in 0-%d", a.VLAN, maxVLAN)
	case len(a.Addrs) == 0:
		return fmt.Errorf("addrs is empty")
	case len(a.Addrs) > maxAddrs:
		return fmt.Errorf("addrs has %d addresses, %d at most are possible", len(a.Addrs), maxAddrs)
	}
	for _, addr := range a.Addrs {
		if !addr.IsValid() || addr.IsUnspecified() || addr.Zone() != "" {
			return fmt.Errorf("addrs has %q, which no interface can have", addr)
		}
	}
	return nil
}
