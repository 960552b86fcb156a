package ipam

import (
	"net"
	"net/netip"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"
)

// result returns what the main plugin gets: addresses, routes and DNS. The interfaces are the main plugin's, as the
// CNI specification has it for delegated plugins.
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

// gatewayOf returns the one that a route without one goes by: main plugins take it, and others, such as Multus, show
// what the result says. It is nil for none.
func (a *allocation) gatewayOf(r *types.Route) net.IP { //nolint:forbidigo // the library wants it
	for _, addr := range a.addrs {
		if addr.gateway.IsValid() && addr.gateway.BitLen() == 8*len(r.Dst.IP) { //nolint:forbidigo // as above
			return addr.gateway.AsSlice()
		}
	}
	return nil
}

// routes returns those of the network configuration, then those of the pools to other networks. A route of a family
// that the interface has no address of is left out: a configuration of two families serves pods of one. So is a default
// route by the gateway of an address that has none: it would lead nowhere.
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

// dns returns what the pools say, in the order of the addresses.
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

// ipNet returns a prefix in the form of CNI's types.
func ipNet(p netip.Prefix) net.IPNet { //nolint:forbidigo // the library wants it
	//nolint:forbidigo // the library wants it
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
