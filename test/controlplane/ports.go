package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// Ports come from below the range that the kernel takes for outgoing connections: there, a port
// would be lost to some client between its choice and its use, or while its server is restarted.
const firstPort, lastPort = 20000, 32000

// reserved are the reservations of this process, which are never given up.
var reserved sync.Map

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// FreeAddress returns a loopback address and port that nobody listens on. No other test is given the port as long as
// this one runs: its server may come later, or be restarted.
func FreeAddress() (netip.AddrPort, error) {
	addresses, err := freeAddresses(loopback, 1)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return addresses[0], nil
}

// freeAddresses returns n different ports of an address of this machine.
func freeAddresses(at netip.Addr, n int) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	for range 100 * n {
		candidate := netip.AddrPortFrom(at, uint16(firstPort+rand.IntN(lastPort-firstPort)))
		// An abstract socket is a name that the kernel takes back when the process ends.
		reservation, err := net.Listen("unix", fmt.Sprintf("@bcsnet-test-port-%d", candidate.Port()))
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", candidate.String())
		if err != nil {
			_ = reservation.Close()
			continue
		}
		_ = listener.Close()
		reserved.Store(candidate.Port(), reservation)
		if found = append(found, candidate); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s between %d and %d", at, firstPort, lastPort)
}
