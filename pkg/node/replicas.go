package node

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// maxReplicas bounds the number of replicas for the plugins, which accept no more.
const maxReplicas = 64

// endpointsOf returns the addresses of the replicas, sorted: the ready ones, or all if none is ready, because they may
// become ready before this node learns of it.
func endpointsOf(slicesOf []*discoveryv1.EndpointSlice, portName string) []string {
	var ready, others []netip.AddrPort
	for _, s := range slicesOf {
		port, ok := portOf(s, portName)
		if !ok || s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, e := range s.Endpoints {
			for _, text := range e.Addresses {
				addr, err := netip.ParseAddr(text)
				if err != nil {
					continue // the API server accepts no such address
				}
				at := netip.AddrPortFrom(addr.Unmap(), port)
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					ready = append(ready, at)
				} else {
					others = append(others, at)
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = others
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	ready = slices.Compact(ready)
	var texts []string
	for _, at := range ready[:min(len(ready), maxReplicas)] {
		texts = append(texts, net.JoinHostPort(at.Addr().String(), strconv.Itoa(int(at.Port()))))
	}
	return texts
}

// portOf returns the port with a name.
func portOf(s *discoveryv1.EndpointSlice, name string) (uint16, bool) {
	for _, p := range s.Ports {
		if p.Port != nil && p.Name != nil && *p.Name == name && *p.Port > 0 && *p.Port <= 1<<16-1 {
			return uint16(*p.Port), true
		}
	}
	return 0, false
}
