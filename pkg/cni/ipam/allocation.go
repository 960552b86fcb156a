package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// Bounds of the values in an answer.
const (
	maxAddrs = 64
	maxMTU   = 65535
	maxVLAN  = 4094
)

// allocation is the answer to an ADD, with every value parsed.
type allocation struct {
	wire.Allocation
	addrs []address
}

// address is one address of an allocation.
type address struct {
	prefix  netip.Prefix
	gateway netip.Addr
	routes  []route
	wire.Address
}

type route struct {
	dst netip.Prefix
	gw  netip.Addr
}

// decodeAllocation parses the answer to an ADD. It returns an error if the answer is not about the container or has
// values that no interface can have.
func decodeAllocation(data []byte, asked wire.AllocateRequest, wish []netip.Addr) (*allocation, error) {
	var a allocation
	if err := json.Unmarshal(data, &a.Allocation); err != nil {
		return nil, err
	}
	switch {
	case a.ContainerID != asked.ContainerID || a.IfName != asked.IfName:
		return nil, fmt.Errorf("it is about interface %.20q of container %.80q", a.IfName, a.ContainerID)
	case a.PodName != asked.PodName || a.PodNamespace != asked.PodNamespace:
		return nil, fmt.Errorf("it is about pod %.80q of namespace %.80q", a.PodName, a.PodNamespace)
	case len(a.IPs) == 0 || len(a.IPs) > maxAddrs:
		return nil, fmt.Errorf("it has %d addresses", len(a.IPs))
	}
	for _, ip := range a.IPs {
		addr, err := decodeAddress(ip)
		if err != nil {
			return nil, err
		}
		a.addrs = append(a.addrs, addr)
	}
	for _, w := range wish {
		if !slices.ContainsFunc(a.addrs, func(x address) bool { return x.prefix.Addr() == w }) {
			return nil, fmt.Errorf("it lacks %s, which was asked for", w)
		}
	}
	return &a, nil
}

func decodeAddress(ip wire.Address) (a address, err error) {
	a.Address = ip
	addr, err := netip.ParseAddr(ip.IPAddr)
	if err != nil || addr.IsUnspecified() || addr.IsMulticast() || addr.Zone() != "" || addr.Is4In6() {
		return a, fmt.Errorf("address %.80q is none that an interface can have", ip.IPAddr)
	}
	if ip.Mask < 1 || ip.Mask > addr.BitLen() {
		return a, fmt.Errorf("mask %d of %s is not in 1-%d", ip.Mask, addr, addr.BitLen())
	}
	a.prefix = netip.PrefixFrom(addr, ip.Mask)
	if ip.Gateway != "" {
		if a.gateway, err = netip.ParseAddr(ip.Gateway); err != nil || a.gateway.Is4() != addr.Is4() {
			return a, fmt.Errorf("gateway %.80q of %s is not an address of its family", ip.Gateway, addr)
		}
	}
	if ip.MTU < 0 || ip.MTU > maxMTU {
		return a, fmt.Errorf("mtu %d of %s is not in 0-%d", ip.MTU, addr, maxMTU)
	}
	if ip.VLAN < 0 || ip.VLAN > maxVLAN {
		return a, fmt.Errorf("vlan %d of %s is not in 0-%d", ip.VLAN, addr, maxVLAN)
	}
	if ip.MacAddr != "" {
		if mac, err := net.ParseMAC(ip.MacAddr); err != nil || len(mac) != 6 || mac[0]&1 != 0 {
			return a, fmt.Errorf("macAddr %.80q of %s is not the MAC of one interface", ip.MacAddr, addr)
		}
	}
	for _, r := range ip.Routes {
		out, err := decodeRoute(r)
		if err != nil {
			return a, fmt.Errorf("a route of pool %.80q: %w", ip.Pool, err)
		}
		a.routes = append(a.routes, out)
	}
	return a, nil
}

func decodeRoute(r wire.Route) (out route, err error) {
	if out.dst, err = netip.ParsePrefix(r.Dst); err != nil {
		return out, errors.New("its dst is not a network")
	}
	out.dst = out.dst.Masked()
	if r.GW != "" {
		if out.gw, err = netip.ParseAddr(r.GW); err != nil || out.gw.Is4() != out.dst.Addr().Is4() {
			return out, errors.New("its gw is not an address of its family")
		}
	}
	return out, nil
}

// netips returns the addresses without their prefix lengths.
func (a *allocation) netips() (all []netip.Addr) {
	for _, x := range a.addrs {
		all = append(all, x.prefix.Addr())
	}
	return all
}

// texts returns the addresses in text form.
func (a *allocation) texts() (all []string) {
	for _, x := range a.addrs {
		all = append(all, x.prefix.Addr().String())
	}
	return all
}
