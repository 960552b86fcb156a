package resource

import (
	"net/netip"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// States of a host.
const (
	HostReady    = "ready"
	HostNotReady = "not-ready"
	HostGone     = "gone"
)

// HostIndex returns the index of a host in a list, in any notation; -1 if the list does not have it.
func HostIndex(list []string, h netip.Addr) int {
	return slices.IndexFunc(list, func(s string) bool { a, err := ipaddr.ParseAddr(s); return err == nil && a == h })
}

// HostAddrs returns the valid hosts of a list.
func HostAddrs(list []string) (out []netip.Addr) {
	for _, text := range list {
		if h, err := ipaddr.ParseAddr(text); err == nil {
			out = append(out, h)
		}
	}
	return out
}
