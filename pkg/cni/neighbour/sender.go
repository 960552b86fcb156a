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

// OpenSender opens a link of the network namespace that the caller's thread is in.
func OpenSender(i *net.Interface) (*Sender, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s to send: %w", i.Name, err)
	}
	s := NewSender(os.NewFile(uintptr(fd), i.Name), i.Index)
	// Without a protocol it receives nothing. The kernel says of a bound socket which MAC its link has.
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: i.Index}); err != nil {
		return nil, errors.Join(fmt.Errorf("bind to %s: %w", i.Name, err), s.file.Close())
	}
	return s, nil
}

// NewSender returns a Sender of another one's file, which a process has got from that one's, for the link of an index.
func NewSender(file *os.File, index int) *Sender { return &Sender{file: file, index: index} }

// File returns the socket, for a process that goes on sending. The kernel ends a packet socket after a pause of some
// 10 ms, which the last process pays that has it open.
func (s *Sender) File() *os.File { return s.file }

// Index returns the index of the link in its namespace.
func (s *Sender) Index() int { return s.index }

// MAC returns the MAC that the link has now. The error is ENODEV when the link has gone.
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

// Send sends the messages. The error is ENXIO or ENODEV when the link has gone.
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

// networkOrder returns an EtherType as the kernel wants it in an address, the octets exchanged where they have to be.
func networkOrder(etherType uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
}
