package neighbour

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

const (
	maxFrame = 2048 // larger than any message of ARP or neighbour discovery on Ethernet
	// maxLate bounds the number of frames that are read after the deadline.
	maxLate = 1024
)

// receive delivers the claims of other machines until the read deadline. Frames that arrived before the deadline count
// even if a busy machine reads them later.
func (c *Conn) receive(conn *packet.Conn, protocol int, claims chan<- Claim) error {
	frame := make([]byte, maxFrame)
	for {
		n, from, err := conn.ReadFrom(frame)
		switch source, is := from.(*packet.Addr); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return c.receiveLate(conn, protocol, claims)
		case err != nil:
			return fmt.Errorf("receive: %w", err)
		case is:
			c.deliver(protocol, frame[:n], source.HardwareAddr, claims)
		}
	}
}

// receiveLate delivers the frames that have already arrived, without waiting.
func (c *Conn) receiveLate(conn *packet.Conn, protocol int, claims chan<- Claim) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		frame := make([]byte, maxFrame)
		for range maxLate {
			n, from, err := unix.Recvfrom(int(fd), frame, unix.MSG_DONTWAIT)
			if err != nil {
				return // EAGAIN: there are no more
			}
			if source, is := from.(*unix.SockaddrLinklayer); is && int(source.Halen) <= len(source.Addr) {
				c.deliver(protocol, frame[:n], source.Addr[:source.Halen], claims)
			}
		}
	})
}

// deliver passes the claim of a frame on, unless the frame is our own.
func (c *Conn) deliver(protocol int, payload []byte, source net.HardwareAddr, claims chan<- Claim) {
	if string(source) == string(c.mac) {
		return
	}
	if x, is := decode(protocol, payload, source); is && string(x.MAC) != string(c.mac) {
		x.MAC = append(net.HardwareAddr(nil), x.MAC...) // the buffer of the frame is reused
		claims <- x
	}
}
