package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
)

// Ports come from below the range that the kernel takes for outgoing connections: there, a port
// would be lost to some client between its choice and its use, or while its server is restarted.
const firstPort, lastPort = 20000, 32000

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// FreeAddress returns a loopback address and port that nobody listens on.
func FreeAddress() (netip.AddrPort, error) {
	addresses, err := freeAddresses(1)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return addresses[0], nil
}

// freeAddresses returns n different ones.
func freeAddresses(n int) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	for range 100 * n {
		candidate := netip.AddrPortFrom(loopback, uint16(firstPort+rand.IntN(lastPort-firstPort)))
		listener, err := net.Listen("tcp", candidate.String())
		if err != nil {
			continue
		}
		defer listener.Close() //nolint:gocritic // only at the end, so that none is found twice
		if found = append(found, candidate); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s between %d and %d", loopback, firstPort, lastPort)
}
