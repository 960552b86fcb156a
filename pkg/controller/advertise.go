package controller

import (
	"net"
	"net/netip"
)

// noAddress is the value of --advertise-address for a replica that others do not call.
const noAddress = "none"

// advertised returns the URL that other replicas call; empty for none. It is the option's; without one, it is the
// listen address, with the pod's IP if the service listens on all addresses of the machine. On its own machine, a
// replica is called over plain HTTP.
func advertised(o Options, listen net.Addr) string {
	switch o.AdvertiseAddress {
	case noAddress:
		return ""
	case "":
	default:
		return o.AdvertiseAddress
	}
	at, err := netip.ParseAddrPort(listen.String())
	if err != nil {
		return ""
	}
	host := at.Addr().Unmap()
	if host.IsUnspecified() {
		if host, err = netip.ParseAddr(o.PodIP); err != nil {
			return ""
		}
	}
	scheme := "https://"
	if host.IsLoopback() {
		scheme = "http://"
	}
	return scheme + netip.AddrPortFrom(host.WithZone(""), at.Port()).String()
}
