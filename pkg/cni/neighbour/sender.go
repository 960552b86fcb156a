package neighbour

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Sender sends on one link and receives nothing.
type Sender struct {
	file  *os.File
	index int
}

// OpenSender opens a link in the network namespace of the caller's thread.
func OpenSender(i *net.Interface) (*Sender, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s to send: %w", i.Name, err)
	}
	s := NewSender(os.NewFile(uintptr(fd), i.Name), i.Index)
	// Without a protocol, the socket receives nothing. For a bound socket, the kernel reports the MAC of its link.
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind to %s: %w", i.Name, err), s.file.Close())
	}
	return s, nil
}

// NewSender returns a Sender with a socket inherited from another process, for the link with an index.
func NewSender(file *os.File, index int) *Sender { return &Sender{file: file, index: index} }

// File returns the socket, for a process that continues to send. The kernel takes some 10 ms to close a packet socket;
// the last process that has it open waits for that.
func (s *Sender) File() *os.File { return s.file }

// Index returns the index of the link in its namespace.
func (s *Sender) Index() int { return s.index }

// MAC returns the current MAC of the link. The error is ENODEV if the link is gone.
func (s *Sender) MAC() (net.HardwareAddr, error) {
	at, err := unix.Getsockname(int(s.file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read the MAC: %w", err)
	}
	link, is := at.(*unix.SockaddrLinklayer)
	if !is || link.Halen == 0 || int(link.Halen) > len(link.Addr) {
		return nil, fmt.Errorf("read the MAC: %w", unix.ENODEV)
	}
	return net.HardwareAddr(link.Addr[:link.Halen]), nil
}

// Send sends the messages. The error is ENXIO or ENODEV if the link is gone.
func (s *Sender) Send(messages []Message) error {
	for _, m := range messages {
		to := &unix.SockaddrLinklayer{Protocol: networkOrder(m.Protocol), Ifindex: s.index, Halen: uint8(len(m.To))}
		copy(to.Addr[:], m.To)
		if err := unix.Sendto(int(s.file.Fd()), m.Payload, 0, to); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// networkOrder returns an EtherType in the byte order that the kernel expects in an address.
func networkOrder(etherType uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
}
