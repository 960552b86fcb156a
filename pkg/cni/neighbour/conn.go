package neighbour

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Conn is an open connection to one link. It must be used by one goroutine.
type Conn struct {
	mac   net.HardwareAddr
	arp   *packet.Conn
	icmp6 *packet.Conn
}

// Listen opens a link in the network namespace of the caller's thread.
func Listen(i *net.Interface) (*Conn, error) {
	c := &Conn{mac: i.HardwareAddr}
	var err error
	if c.arp, err = packet.Listen(i, packet.Datagram, unix.ETH_P_ARP, nil); err != nil {
		return nil, fmt.Errorf("open %s for ARP: %w", i.Name, err)
	}
	filter, err := bpf.Assemble(neighbourDiscovery())
	if err == nil {
		c.icmp6, err = packet.Listen(i, packet.Datagram, unix.ETH_P_IPV6, &packet.Config{Filter: filter})
	}
	if err == nil {
		// The answer to a probe goes to all nodes. A link without an IPv6 address may not receive that group.
		err = c.icmp6.JoinGroup(multicast(netip.IPv6LinkLocalAllNodes()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s for neighbour discovery: %w", i.Name, err), c.Close())
	}
	return c, nil
}

// neighbourDiscovery returns a filter that passes only solicitations and advertisements, and drops the other traffic of
// a busy link.
func neighbourDiscovery() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: icmp, SkipTrue: 4},
		bpf.LoadAbsolute{Off: headerSize, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 135, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 136, SkipTrue: 1},
		bpf.RetConstant{Val: 1 << 16},
		bpf.RetConstant{Val: 0},
	}
}

// Close closes the connection. The kernel takes some 10 ms to close a packet socket, so both sockets are closed at the
// same time.
func (c *Conn) Close() error {
	if c.icmp6 == nil {
		return c.arp.Close()
	}
	done := make(chan error, 1)
	go func() { done <- c.icmp6.Close() }()
	return errors.Join(c.arp.Close(), <-done)
}

// Send sends the messages at once, and again after each pause.
func (c *Conn) Send(ctx context.Context, messages []Message, pauses ...time.Duration) error {
	for round := 0; ; round++ {
		for _, m := range messages {
			conn := c.arp
			if m.Protocol == unix.ETH_P_IPV6 {
				conn = c.icmp6
			}
			if _, err := conn.WriteTo(m.Payload, &packet.Addr{HardwareAddr: m.To}); err != nil {
				return fmt.Errorf("send: %w", err)
			}
		}
		if round == len(pauses) {
			return nil
		}
		timer := time.NewTimer(pauses[round])
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
