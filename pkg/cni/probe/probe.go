package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// ErrNoLink is the error of a probe that had no link to ask on: no network namespace, no interface in it, one that
// resolves no neighbours, or one without a carrier. Nobody was asked, and the address may be in use.
var ErrNoLink = errors.New("no link to probe on")

// Request names addresses, and the interface that is to have them.
type Request struct {
	// NetNS is the path of the container's network namespace, as in CNI_NETNS.
	NetNS  string
	IfName string
	Addrs  []netip.Addr
}

// Answer is somebody who has one of the addresses.
type Answer struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// Probe asks who has the addresses, all at once and for at most 200 ms, and returns who answered, sorted. Answers from the
// interface's own MAC do not count. A link that was down is up meanwhile, and down again afterwards.
func Probe(_ context.Context, r Request) ([]Answer, error) {
	return nil, fmt.Errorf("%s: %w", r.IfName, ErrNoLink)
}
