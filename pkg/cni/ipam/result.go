package ipam

import (
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
)

// result returns the main plugin's result: addresses, routes and DNS. The interfaces are added by the main plugin, as
// the CNI specification says for delegated plugins.
func (c *call) result(a *allocation) *types100.Result {
	r := &types100.Result{CNIVersion: types100.ImplementedSpecVersion}
	for _, addr := range a.addrs {
		ip := &types100.IPConfig{Address: ipNet(addr.prefix)}
		if addr.gateway.IsValid() {
			ip.Gateway = addr.gateway.AsSlice()
		}
		r.IPs = append(r.IPs, ip)
	}
	r.Routes, r.DNS = c.routes(a), a.dns()
	for _, route := range r.Routes {
		if route.GW == nil && (route.Scope == nil || *route.Scope == unix.RT_SCOPE_UNIVERSE) {
			route.GW = a.gatewayOf(route)
		}
	}
	return r
}

// gatewayOf returns the gateway for a route without one; nil if there is none. Main plugins would choose the same
// gateway, but others, such as Multus, show the result as it is.
func (a *allocation) gatewayOf(r *types.Route) net.IP { //nolint:forbidigo // the library wants it
	for _, addr := range a.addrs {
		if addr.gateway.IsValid() && addr.gateway.BitLen() == 8*len(r.Dst.IP) { //nolint:forbidigo // as above
			return addr.gateway.AsSlice()
		}
	}
	return nil
}

// routes returns the routes of the network configuration, then those of the pools to other networks. A route is left
// out if the interface has no address of its family, so that one configuration with two families also serves pods with
// one. A default route without a gateway is left out if the address has no gateway either.
func (c *call) routes(a *allocation) (all []*types.Route) {
	var seen []netip.Prefix
	usable := func(dst netip.Prefix, gw netip.Addr) bool {
		return slices.ContainsFunc(a.addrs, func(x address) bool {
			return x.prefix.Addr().Is4() == dst.Addr().Is4() && (dst.Bits() > 0 || gw.IsValid() || x.gateway.IsValid())
		})
	}
	for _, r := range c.conf.Routes {
		if !usable(r.Dst, r.GW) {
			continue
		}
		seen = append(seen, r.Dst)
		out := &types.Route{
			Dst: ipNet(r.Dst), MTU: r.MTU, AdvMSS: r.AdvMSS, Priority: r.Priority, Table: r.Table, Scope: r.Scope,
		}
		if r.GW.IsValid() {
			out.GW = r.GW.AsSlice()
		}
		all = append(all, out)
	}
	for _, addr := range a.addrs {
		for _, r := range addr.routes {
			if !usable(r.dst, r.gw) || slices.Contains(seen, r.dst) {
				continue
			}
			seen = append(seen, r.dst)
			out := &types.Route{Dst: ipNet(r.dst)}
			if r.gw.IsValid() {
				out.GW = r.gw.AsSlice()
			}
			all = append(all, out)
		}
	}
	return all
}

// dns returns the DNS settings of the pools, in the order of the addresses.
func (a *allocation) dns() (all types.DNS) {
	for _, addr := range a.addrs {
		if addr.DNS == nil {
			continue
		}
		all.Nameservers = union(all.Nameservers, addr.DNS.Nameservers)
		all.Search = union(all.Search, addr.DNS.Search)
		all.Options = union(all.Options, addr.DNS.Options)
		if all.Domain == "" {
			all.Domain = addr.DNS.Domain
		}
	}
	return all
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// ipNet returns a prefix as a type of the CNI library.
func ipNet(p netip.Prefix) net.IPNet { //nolint:forbidigo // the library wants it
	//nolint:forbidigo // the library wants it
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
