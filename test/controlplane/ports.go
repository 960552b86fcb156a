package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
)

// Ports are below the kernel's range for outgoing connections. Otherwise a client could get a port between its choice
// and its use, or while its server is restarted.
const firstPort, lastPort = 20000, 32000

// reserved has the reservations of this process, which last until it ends.
var reserved sync.Map

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// FreeAddress returns a loopback address with a port on which nobody listens. No other test gets this port while this
// process runs, so its server may start later or be restarted.
func FreeAddress() (netip.AddrPort, error) {
	addresses, err := freeAddresses(loopback, 1)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return addresses[0], nil
}

// freeAddresses returns n different free ports of an address of this machine.
func freeAddresses(at netip.Addr, n int) ([]netip.AddrPort, error) {
	var found []netip.AddrPort
	for range 100 * n {
		candidate := netip.AddrPortFrom(at, uint16(firstPort+rand.IntN(lastPort-firstPort)))
		// The kernel frees the name of an abstract socket when the process ends.
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
