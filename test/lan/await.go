package lan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

const (
	askEvery = 20 * time.Millisecond
	askFor   = time.Minute
)

// bridgeAddr is the address of each bridge. It is of the range for benchmarks, which no test has a use for.
func bridgeAddr() netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, 1}) }

// awaitBridge waits until the bridge answers over a link.
func (h *Host) awaitBridge(t testing.TB, name string) {
	t.Helper()
	var conn *packet.Conn
	var mac net.HardwareAddr
	h.Do(t, func() error {
		i, err := net.InterfaceByName(name)
		if err == nil {
			mac = i.HardwareAddr
			conn, err = packet.Listen(i, packet.Datagram, unix.ETH_P_ARP, nil)
		}
		return err
	})
	defer conn.Close()
	for end := time.Now().Add(askFor); ; {
		err := answered(conn, mac)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the bridge does not answer over %s: %v", name, err)
		}
	}
}

// answered asks the bridge for its MAC, and returns an error when it does not answer before the next question is due.
func answered(conn *packet.Conn, mac net.HardwareAddr) error {
	nobody := make(net.HardwareAddr, 6)
	question, err := arp.NewPacket(arp.OperationRequest, mac, netip.IPv4Unspecified(), nobody, bridgeAddr())
	if err != nil {
		return err
	}
	payload, err := question.MarshalBinary()
	if err != nil {
		return err
	}
	due := time.Now().Add(askEvery)
	everybody := &packet.Addr{HardwareAddr: net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	if _, err := conn.WriteTo(payload, everybody); err != nil && !errors.Is(err, unix.ENETDOWN) {
		return fmt.Errorf("ask: %w", err)
	}
	if err := conn.SetReadDeadline(due); err != nil {
		return err
	}
	frame := make([]byte, 128)
	for {
		n, _, err := conn.ReadFrom(frame)
		if err != nil {
			return fmt.Errorf("no answer: %w", err)
		}
		var answer arp.Packet
		if answer.UnmarshalBinary(frame[:n]) == nil && answer.SenderIP == bridgeAddr() {
			return nil
		}
	}
}
