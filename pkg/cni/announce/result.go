package announce

import (
	"net/netip"
	"slices"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
)

// attached is the result of the previous plugins, and the part of it that describes the container's interface.
type attached struct {
	result *types100.Result
	// iface is the interface's element of the result. Changes to it appear in the plugin's answer.
	iface *types100.Interface
	ips   []assigned
}

// assigned is an address of the interface. The gateway is invalid if there is none.
type assigned struct {
	addr    netip.Addr
	gateway netip.Addr
}

// attached returns the result in the configuration, with the elements for an interface of the container.
func (c *Config) attached(ifName string) (*attached, error) {
	if c.RawPrevResult == nil {
		return nil,
			invalid("bcsnet-announce has no prevResult: it goes into a conflist's plugins, after the main plugin")
	}
	if err := version.ParsePrevResult(&c.PluginConf); err != nil {
		return nil, invalid("bcsnet-announce cannot read the prevResult: %v", err)
	}
	result, err := types100.NewResultFromResult(c.PrevResult)
	if err != nil {
		return nil, invalid("bcsnet-announce cannot read the prevResult as version %s: %v", c.CNIVersion, err)
	}
	at := slices.IndexFunc(result.Interfaces, func(i *types100.Interface) bool {
		return i != nil && i.Name == ifName && i.Sandbox != ""
	})
	if at < 0 {
		return nil,
			invalid("the prevResult has no interface %s of the container: bcsnet-announce goes after the plugin "+
				"that makes it", ifName)
	}
	a := &attached{result: result, iface: result.Interfaces[at]}
	for _, ip := range result.IPs {
		if ip == nil || ip.Interface != nil && *ip.Interface != at {
			continue
		}
		addr, is := netip.AddrFromSlice(ip.Address.IP) //nolint:forbidigo // of the library's result
		if !is {
			return nil, invalid("the prevResult has %s, which is not an address", ip.Address.String())
		}
		gateway, _ := netip.AddrFromSlice(ip.Gateway)
		a.ips = append(a.ips, assigned{addr: addr.Unmap(), gateway: gateway.Unmap()})
	}
	if len(a.ips) == 0 {
		return nil, invalid("the prevResult has no address for %s: bcsnet-announce goes after a plugin whose ipam is "+
			"bcsnet-ipam", ifName)
	}
	return a, nil
}

// goesWith returns an error unless the result has the addresses that the allocator gave to the attachment.
func (a *attached) goesWith(x *attach.Attachment) error {
	for _, addr := range x.Addrs {
		if !slices.ContainsFunc(a.ips, func(ip assigned) bool { return ip.addr == addr }) {
			return invalid("the prevResult lacks %s, which the allocator gave %s: another plugin changed the result, "+
				"or it is of another network", addr, x.IfName)
		}
	}
	return nil
}

func (a *attached) addrs() (list []netip.Addr) {
	for _, ip := range a.ips {
		list = append(list, ip.addr)
	}
	return list
}
