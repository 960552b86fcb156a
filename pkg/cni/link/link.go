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
	// ErrNoNamespace is the error of a network namespace that is not there, or not any more.
	ErrNoNamespace = errors.New("no network namespace")
	// ErrNoInterface is the error of an interface that its namespace lacks.
	ErrNoInterface = errors.New("no such interface")
	// ErrNoCarrier is the error of a link that is down, or whose other end is.
	ErrNoCarrier = errors.New("the link has no carrier")
	// ErrNoNeighbours is the error of a link that resolves no addresses: a tunnel, a loopback, one of layer 3.
	ErrNoNeighbours = errors.New("the link has no Ethernet neighbours")
)

// carrierEvery is how often AwaitCarrier looks at the link.
const carrierEvery = 2 * time.Millisecond

// In runs a function in a container's network namespace with the interface of a name. The function's thread alone is
// there: it starts no goroutine that opens sockets.
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

// Neighbourly returns ErrNoNeighbours unless addresses are resolved on the link by ARP and neighbour discovery.
func Neighbourly(l netlink.Link) error {
	a := l.Attrs()
	if a.RawFlags&(unix.IFF_NOARP|unix.IFF_LOOPBACK) != 0 || len(a.HardwareAddr) != 6 {
		return fmt.Errorf("%w: %s, of type %s", ErrNoNeighbours, a.Name, l.Type())
	}
	return nil
}

// AwaitCarrier waits until the link of an index can carry frames, in the namespace of the caller's thread. The error is
// ErrNoCarrier when the context ends before, and ErrNoInterface when the link goes.
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

// Interface returns a link in the form of the standard library.
func Interface(l netlink.Link) *net.Interface {
	a := l.Attrs()
	return &net.Interface{
		Index: a.Index, Name: a.Name, MTU: a.MTU, HardwareAddr: a.HardwareAddr, Flags: a.Flags,
	}
}
