package lan

import (
	"net"
	"testing"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// AnswerAll makes a host answer every ARP request with its own MAC, whatever the address, as some routers with proxy
// ARP do. Linux itself does not count: its proxy leaves probes without an answer.
func (h *Host) AnswerAll(t testing.TB) {
	t.Helper()
	var client *arp.Client
	h.Do(t, func() error {
		i, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		conn, err := packet.Listen(i, packet.Raw, unix.ETH_P_ARP, nil)
		if err != nil {
			return err
		}
		client, err = arp.New(i, conn)
		return err
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			request, _, err := client.Read()
			if err != nil {
				return // closed
			}
			if request.Operation == arp.OperationRequest {
				_ = client.Reply(request, client.HardwareAddr(), request.TargetIP)
			}
		}
	}()
	t.Cleanup(func() {
		_ = client.Close()
		<-done
	})
}
