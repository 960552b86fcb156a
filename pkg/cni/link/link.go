package link

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

var (
	// ErrNoNamespace is the error for a network namespace that does not exist, or no longer exists.
	ErrNoNamespace = errors.New("no network namespace")
	// ErrNoInterface is the error for an interface that does not exist in its namespace.
	ErrNoInterface = errors.New("no such interface")
	// ErrNoCarrier is the error for a link that is down or whose other end is down.
	ErrNoCarrier = errors.New("the link has no carrier")
	// ErrNoNeighbours is the error for a link without address resolution: a tunnel, a loopback, or a link of layer 3.
	ErrNoNeighbours = errors.New("the link has no Ethernet neighbours")
)

// carrierEvery is the interval in which AwaitCarrier checks the link.
const carrierEvery = 2 * time.Millisecond

// In calls a function with a container's interface, in the container's network namespace. Only the function's own
// thread is in the namespace, so the function must not start goroutines that open sockets.
func In(netNS, ifName string, do func(netlink.Link) error) error {
	if netNS == "" {
		return ErrNoNamespace
	}
	namespace, err := ns.GetNS(netNS)
	var absent ns.NSPathNotExistErr
	switch {
	case errors.As(err, &absent), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w at %s", ErrNoNamespace, netNS)
	case err != nil:
		return fmt.Errorf("network namespace %s: %w", netNS, err)
	}
	defer namespace.Close()
	return namespace.Do(func(ns.NetNS) error {
		found, err := netlink.LinkByName(ifName)
		var absent netlink.LinkNotFoundError
		switch {
		case errors.As(err, &absent):
			return fmt.Errorf("%w: %s in %s", ErrNoInterface, ifName, netNS)
		case err != nil:
			return fmt.Errorf("interface %s in %s: %w", ifName, netNS, err)
		}
		return do(found)
	})
}

// Neighbourly returns ErrNoNeighbours unless the link resolves addresses by ARP and neighbour discovery.
func Neighbourly(l netlink.Link) error {
	a := l.Attrs()
	if a.RawFlags&(unix.IFF_NOARP|unix.IFF_LOOPBACK) != 0 || len(a.HardwareAddr) != 6 {
		return fmt.Errorf("%w: %s, of type %s", ErrNoNeighbours, a.Name, l.Type())
	}
	return nil
}

// AwaitCarrier waits until the link with an index can carry frames, in the network namespace of the caller's thread. It
// returns ErrNoCarrier if the context ends first, and ErrNoInterface if the link disappears.
func AwaitCarrier(ctx context.Context, index int) error {
	ticker := time.NewTicker(carrierEvery)
	defer ticker.Stop()
	for {
		found, err := netlink.LinkByIndex(index)
		var absent netlink.LinkNotFoundError
		switch {
		case errors.As(err, &absent):
			return ErrNoInterface
		case err != nil:
			return fmt.Errorf("read the link: %w", err)
		case found.Attrs().RawFlags&unix.IFF_RUNNING != 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ErrNoCarrier, found.Attrs().Name)
		case <-ticker.C:
		}
	}
}

// Interface returns a link as a type of the standard library.
func Interface(l netlink.Link) *net.Interface {
	a := l.Attrs()
	return &net.Interface{
		Index: a.Index, Name: a.Name, MTU: a.MTU, HardwareAddr: a.HardwareAddr, Flags: a.Flags,
	}
}
