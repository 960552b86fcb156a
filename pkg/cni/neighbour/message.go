package neighbour

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
	"golang.org/x/sys/unix"
)

const (
	headerSize = 40 // of IPv6
	icmp       = 58 // the next header of ICMPv6
	// hopLimit proves that a message comes from the link itself: a router would have decreased it.
	hopLimit = 255
)

// Message is the payload of a frame, its EtherType, and the destination MAC.
type Message struct {
	Protocol uint16           `json:"protocol"`
	To       net.HardwareAddr `json:"to"`
	Payload  []byte           `json:"payload"`
}

// Probe returns a message that asks who has an address, from an interface that does not have the address yet. It
// changes no neighbour table of its receivers.
func Probe(addr netip.Addr, mac net.HardwareAddr) (Message, error) {
	if addr.Is4() {
		return arpMessage(arp.OperationRequest, mac, netip.IPv4Unspecified(), nobody(), addr)
	}
	return solicitation(addr, netip.IPv6Unspecified(), nil)
}

// Query returns a message that asks who has an address, from an interface with the address from.
func Query(addr, from netip.Addr, mac net.HardwareAddr) (Message, error) {
	if addr.Is4() {
		return arpMessage(arp.OperationRequest, mac, from, nobody(), addr)
	}
	return solicitation(addr, from, []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: mac}})
}

// Announcements returns the messages that make all machines on the link store a MAC for an address: a gratuitous ARP
// request and reply, because some systems accept only one of the two, or an unsolicited neighbour advertisement.
func Announcements(addr netip.Addr, mac net.HardwareAddr) ([]Message, error) {
	if addr.Is4() {
		request, err := arpMessage(arp.OperationRequest, mac, addr, nobody(), addr)
		if err != nil {
			return nil, err
		}
		// Linux treats a reply as gratuitous, and thus as newer than its entry, only if the target is the sender.
		reply, err := arpMessage(arp.OperationReply, mac, addr, mac, addr)
		return []Message{request, reply}, err
	}
	m, err := discovery(addr, netip.IPv6LinkLocalAllNodes(), &ndp.NeighborAdvertisement{
		Override:      true,
		TargetAddress: addr,
		Options:       []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: mac}},
	})
	return []Message{m}, err
}

func broadcast() net.HardwareAddr { return net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

func nobody() net.HardwareAddr { return make(net.HardwareAddr, 6) }

func arpMessage(op arp.Operation, mac net.HardwareAddr, sender netip.Addr, target net.HardwareAddr, addr netip.Addr) (
	Message, error) {
	packet, err := arp.NewPacket(op, mac, sender, target, addr)
	if err != nil {
		return Message{}, fmt.Errorf("ARP about %s from %s at %s: %w", addr, sender, mac, err)
	}
	payload, err := packet.MarshalBinary()
	return Message{Protocol: unix.ETH_P_ARP, To: broadcast(), Payload: payload}, err
}

func solicitation(addr, from netip.Addr, options []ndp.Option) (Message, error) {
	group, err := ndp.SolicitedNodeMulticast(addr)
	if err != nil {
		return Message{}, fmt.Errorf("neighbour solicitation for %s: %w", addr, err)
	}
	return discovery(from, group, &ndp.NeighborSolicitation{TargetAddress: addr, Options: options})
}

// discovery returns a message of neighbour discovery to a multicast group.
func discovery(from, to netip.Addr, m ndp.Message) (Message, error) {
	if !from.Is6() || !to.Is6() {
		return Message{}, fmt.Errorf("neighbour discovery from %s to %s: these are not IPv6 addresses", from, to)
	}
	body, err := ndp.MarshalMessageChecksum(m, from, to)
	if err != nil {
		return Message{}, fmt.Errorf("neighbour discovery from %s: %w", from, err)
	}
	header := make([]byte, 8, headerSize+len(body))
	header[0] = 6 << 4
	binary.BigEndian.PutUint16(header[4:], uint16(len(body)))
	header[6], header[7] = icmp, hopLimit
	payload := append(append(append(header, from.AsSlice()...), to.AsSlice()...), body...)
	return Message{Protocol: unix.ETH_P_IPV6, To: multicast(to), Payload: payload}, nil
}

// multicast returns the MAC of an IPv6 multicast group.
func multicast(group netip.Addr) net.HardwareAddr {
	octets := group.As16()
	return net.HardwareAddr{0x33, 0x33, octets[12], octets[13], octets[14], octets[15]}
}
