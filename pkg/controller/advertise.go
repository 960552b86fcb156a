package controller

import (
	"net"
	"net/netip"
)

// noAddress is the value of --advertise-address for a replica that no other one calls.
const noAddress = "none"

// advertised returns the URL that other replicas call, empty for none. It is the option's; without one it is the
// address that the service listens on, with the pod's IP where that is any address of the machine. On its own machine a
// replica is called by plain HTTP.
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
