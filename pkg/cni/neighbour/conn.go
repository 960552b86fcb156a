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

// Conn is open on one link. It belongs to one goroutine.
type Conn struct {
	mac   net.HardwareAddr
	arp   *packet.Conn
	icmp6 *packet.Conn
}

// Listen opens a link of the network namespace that the caller's thread is in.
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
		// An answer to who has no address goes to all nodes. Without an IPv6 address the link may not listen there.
		err = c.icmp6.JoinGroup(multicast(netip.IPv6LinkLocalAllNodes()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s for neighbour discovery: %w", i.Name, err), c.Close())
	}
	return c, nil
}

// neighbourDiscovery lets solicitations and advertisements through, so that the traffic of a busy link stays out.
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

// Close closes the link. The kernel takes some 10 ms to end a packet socket, so both end at the same time.
func (c *Conn) Close() error {
	if c.icmp6 == nil {
		return c.arp.Close()
	}
	done := make(chan error, 1)
	go func() { done <- c.icmp6.Close() }()
	return errors.Join(c.arp.Close(), <-done)
}

// Send sends the messages at once, and once more after each pause.
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
