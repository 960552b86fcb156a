package neighbour

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
	"golang.org/x/sys/unix"
)

// Claim is the claim of a received message to an address.
type Claim struct {
	Addr netip.Addr
	MAC  net.HardwareAddr
	// Tentative reports whether the sender only probes for the address and does not have it yet.
	Tentative bool
}

// decode returns the claim in the payload of a frame from a MAC; false if there is none.
func decode(protocol int, payload []byte, source net.HardwareAddr) (Claim, bool) {
	if protocol == unix.ETH_P_ARP {
		return decodeARP(payload)
	}
	return decodeDiscovery(payload, source)
}

// decodeARP returns the claim of a request or reply for its sender. A probe, whose sender has no address, claims its
// target.
func decodeARP(payload []byte) (Claim, bool) {
	var p arp.Packet
	if err := p.UnmarshalBinary(payload); err != nil {
		return Claim{}, false
	}
	if p.HardwareType != 1 || p.ProtocolType != unix.ETH_P_IP || p.HardwareAddrLength != 6 || p.IPLength != 4 {
		return Claim{}, false
	}
	switch {
	case !unicast(p.SenderHardwareAddr):
		return Claim{}, false
	case !p.SenderIP.IsUnspecified():
		return Claim{Addr: p.SenderIP, MAC: p.SenderHardwareAddr}, true
	case p.Operation == arp.OperationRequest && !p.TargetIP.IsUnspecified():
		return Claim{Addr: p.TargetIP, MAC: p.SenderHardwareAddr, Tentative: true}, true
	default:
		return Claim{}, false
	}
}

// decodeDiscovery returns the claim of an advertisement to its target, and the claim of a solicitation to its sender. A
// solicitation without a source address claims its target.
func decodeDiscovery(payload []byte, source net.HardwareAddr) (Claim, bool) {
	if len(payload) < headerSize || payload[0]>>4 != 6 || payload[6] != icmp || payload[7] != hopLimit {
		return Claim{}, false
	}
	body := payload[headerSize:]
	n := int(binary.BigEndian.Uint16(payload[4:]))
	if n > len(body) {
		return Claim{}, false
	}
	from := netip.AddrFrom16([16]byte(payload[8:24]))
	message, err := ndp.ParseMessage(body[:n]) // the rest is padding of the frame
	if err != nil {
		return Claim{}, false
	}
	switch m := message.(type) {
	case *ndp.NeighborAdvertisement:
		return claim(m.TargetAddress, macOf(m.Options, ndp.Target, source), false)
	case *ndp.NeighborSolicitation:
		if from.IsUnspecified() {
			return claim(m.TargetAddress, source, true)
		}
		return claim(from, macOf(m.Options, ndp.Source, source), false)
	default:
		return Claim{}, false
	}
}

func claim(addr netip.Addr, mac net.HardwareAddr, tentative bool) (Claim, bool) {
	if addr.IsUnspecified() || addr.IsMulticast() || !unicast(mac) {
		return Claim{}, false
	}
	return Claim{Addr: addr, MAC: mac, Tentative: tentative}, true
}

// macOf returns the link-layer address in the options; without one, the source of the frame.
func macOf(options []ndp.Option, direction ndp.Direction, source net.HardwareAddr) net.HardwareAddr {
	for _, option := range options {
		if a, is := option.(*ndp.LinkLayerAddress); is && a.Direction == direction {
			return a.Addr
		}
	}
	return source
}

// unicast reports whether a MAC can be the address of an interface.
func unicast(mac net.HardwareAddr) bool {
	return len(mac) == 6 && mac[0]&1 == 0 && !bytes.Equal(mac, nobody())
}
