package podcheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bcsnet/bcsnet/pkg/cni/neighbour"
	"github.com/bcsnet/bcsnet/pkg/nodecheck"
)

const (
	// linkTime bounds the wait for answers, and linkPause is the time between the questions.
	linkTime  = 2 * time.Second
	linkPause = 300 * time.Millisecond
	rounds    = 4
	// kernelTime is longer than the three seconds after which the kernel gives up on a neighbour.
	kernelTime = 5 * time.Second
	// discard is a port on which gateways serve nothing. The check only tests whether the kernel finds the neighbour.
	discard = 9
)

// AskLink asks on the link of one of the pod's addresses who answers for the gateway, and whether another machine
// answers for the address itself. If the pod may not open packet sockets, the kernel resolves the gateway, and
// duplicates are not tested.
func AskLink(ctx context.Context, own nodecheck.Own) (l nodecheck.Link) {
	device, err := deviceOf(own.Addr)
	if err == nil && (device.Flags&net.FlagLoopback != 0 || len(device.HardwareAddr) != 6) {
		err = fmt.Errorf("%s has no Ethernet neighbours", device.Name)
	}
	if err == nil {
		l, err = askByFrames(ctx, device, own)
	}
	switch {
	case err == nil:
		if own.Gateway.IsValid() && !l.Gateway {
			l.GatewayWhy = fmt.Sprintf("no answer on %s within %s", device.Name, linkTime)
		}
		return l
	case own.Gateway.IsValid():
		if why := askByKernel(ctx, own.Gateway); why != nil {
			l.GatewayWhy = why.Error()
		}
		l.Gateway = l.GatewayWhy == ""
	}
	l.Unasked = unasked(err)
	return l
}

func unasked(err error) string {
	if errors.Is(err, unix.EPERM) {
		return "the pod may open no packet sockets: it lacks NET_RAW"
	}
	return err.Error()
}

// deviceOf returns the interface with an address.
func deviceOf(addr netip.Addr) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, device := range all {
		addrs, err := device.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == addr {
				return &device, nil
			}
		}
	}
	return nil, fmt.Errorf("no interface of the pod has %s", addr)
}

// askByFrames sends ARP or neighbour discovery questions.
func askByFrames(ctx context.Context, device *net.Interface, own nodecheck.Own) (l nodecheck.Link, err error) {
	conn, err := neighbour.Listen(device)
	if err != nil {
		return l, err
	}
	defer conn.Close()
	question, err := neighbour.Probe(own.Addr, device.HardwareAddr)
	if err != nil {
		return l, err
	}
	messages, addrs := []neighbour.Message{question}, []netip.Addr{own.Addr}
	if own.Gateway.IsValid() {
		if question, err = neighbour.Query(own.Gateway, own.Addr, device.HardwareAddr); err != nil {
			return l, err
		}
		messages, addrs = append(messages, question), append(addrs, own.Gateway)
	}
	within, stop := context.WithTimeout(ctx, linkTime)
	defer stop()
	claims, err := conn.Ask(within, messages, addrs, slices.Repeat([]time.Duration{linkPause}, rounds-1)...)
	if err != nil {
		return l, err
	}
	for _, claim := range claims {
		switch claim.Addr {
		case own.Addr:
			l.Others = append(l.Others, claim.MAC.String())
		case own.Gateway:
			l.Gateway, l.GatewayMAC = true, claim.MAC.String()
		}
	}
	return l, nil
}

// askByKernel opens a connection to an address, so that the kernel resolves it. It returns an error if the kernel finds
// no neighbour or no route. A refused or unanswered connection shows that the neighbour was found.
func askByKernel(ctx context.Context, addr netip.Addr) error {
	within, stop := context.WithTimeout(ctx, kernelTime)
	defer stop()
	conn, err := (&net.Dialer{}).DialContext(within, "tcp", netip.AddrPortFrom(addr, discard).String())
	if err == nil {
		return conn.Close()
	}
	var number syscall.Errno
	if !errors.As(err, &number) || number == unix.ECONNREFUSED || number == unix.ECONNRESET {
		return nil
	}
	return errors.New(number.Error())
}
