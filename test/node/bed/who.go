//go:build linux

package bed

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/arp"
)

// silence is the time for which answers may come after the last question. Those of a busy machine take some
// milliseconds.
const silence = 400 * time.Millisecond

// WhoHas asks by ARP, on the network of the fabric, which stations have some IPv4 addresses, and returns their MACs,
// sorted. Addresses that nobody answers for are not in the result. Each address is asked for three times. It knows
// nothing of what any object says.
func (b *Bed) WhoHas(ctx context.Context, addrs ...netip.Addr) (map[netip.Addr][]string, error) {
	link, err := net.InterfaceByName(bridgeName)
	if err != nil {
		return nil, err
	}
	socket, err := arp.Dial(link)
	if err != nil {
		return nil, err
	}
	found := map[netip.Addr][]string{}
	reading := make(chan error, 1)
	go func() { reading <- collect(socket, addrs, found) }()
	sendErr := ask(ctx, socket, addrs)
	err = socket.SetReadDeadline(time.Now().Add(silence))
	if err != nil {
		_ = socket.Close() // ends the reader
	}
	readErr := <-reading
	if err == nil {
		err = socket.Close()
	}
	for _, macs := range found {
		slices.Sort(macs)
	}
	return found, errors.Join(err, sendErr, readErr)
}

// ask sends three rounds of questions, a tenth of a second apart.
func ask(ctx context.Context, socket *arp.Client, addrs []netip.Addr) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 3 {
		for _, addr := range addrs {
			if err := socket.Request(addr); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// collect reads answers until the deadline of the socket.
func collect(socket *arp.Client, addrs []netip.Addr, found map[netip.Addr][]string) error {
	for {
		packet, _, err := socket.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		addr, mac := packet.SenderIP, strings.ToLower(packet.SenderHardwareAddr.String())
		if packet.Operation == arp.OperationReply && slices.Contains(addrs, addr) && !slices.Contains(found[addr],
			mac) {
			found[addr] = append(found[addr], mac)
		}
	}
}
