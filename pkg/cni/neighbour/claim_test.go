package neighbour

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func mac(t testing.TB, text string) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func must[T any](m T, err error) T {
	if err != nil {
		panic(err)
	}
	return m
}

const (
	ours   = "02:00:00:00:00:01"
	theirs = "02:00:00:00:00:02"
)

// TestDecode has what each message of ours says to those who read it.
func TestDecode(t *testing.T) {
	us, router := mac(t, ours), mac(t, theirs)
	four, six := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	announced4, announced6 := must(Announcements(four, us)), must(Announcements(six, us))
	for name, c := range map[string]struct {
		message Message
		want    Claim
	}{
		"ARP probe":                   {must(Probe(four, us)), Claim{Addr: four, MAC: us, Tentative: true}},
		"ARP request":                 {must(Query(netip.MustParseAddr("192.0.2.1"), four, us)), Claim{Addr: four, MAC: us}},
		"gratuitous ARP, request":     {announced4[0], Claim{Addr: four, MAC: us}},
		"gratuitous ARP, reply":       {announced4[1], Claim{Addr: four, MAC: us}},
		"solicitation from nobody":    {must(Probe(six, us)), Claim{Addr: six, MAC: us, Tentative: true}},
		"solicitation from somebody":  {must(Query(netip.MustParseAddr("fe80::1"), six, router)), Claim{Addr: six, MAC: router}},
		"unsolicited advertisement":   {announced6[0], Claim{Addr: six, MAC: us}},
		"advertisement through proxy": {must(Announcements(six, router))[0], Claim{Addr: six, MAC: router}},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := decode(int(c.message.Protocol), c.message.Payload, us)
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); !is || diff != "" {
				t.Errorf("decode = %v (-want +got):\n%s", is, diff)
			}
		})
	}
}

// TestDecodeNothing has messages that claim nothing, each made of a right one.
func TestDecodeNothing(t *testing.T) {
	us := mac(t, ours)
	probe4 := must(Probe(netip.MustParseAddr("192.0.2.7"), us))
	announced4 := must(Announcements(netip.MustParseAddr("192.0.2.7"), us))[0]
	announced6 := must(Announcements(netip.MustParseAddr("2001:db8::7"), us))[0]
	with := func(m Message, at int, octet byte) Message {
		m.Payload = append([]byte(nil), m.Payload...)
		m.Payload[at] = octet
		return m
	}
	cut := func(m Message, n int) Message {
		m.Payload = m.Payload[:n]
		return m
	}
	for name, m := range map[string]Message{
		"ARP: empty":                    cut(probe4, 0),
		"ARP: cut off":                  cut(probe4, 27),
		"ARP: another hardware":         with(probe4, 1, 6),
		"ARP: another protocol":         with(probe4, 2, 9),
		"ARP: other lengths":            with(with(probe4, 4, 4), 5, 6),
		"ARP: a sender of many":         with(announced4, 8, 1),
		"ARP: nobody about nobody":      with(with(with(with(probe4, 24, 0), 25, 0), 26, 0), 27, 0),
		"ARP: reply from nobody":        with(probe4, 7, 2),
		"IPv6: empty":                   cut(announced6, 0),
		"IPv6: no message":              cut(announced6, 40),
		"IPv6: cut off":                 cut(announced6, 60),
		"IPv6: another version":         with(announced6, 0, 0x40),
		"IPv6: another protocol":        with(announced6, 6, 17),
		"IPv6: came through a router":   with(announced6, 7, 254),
		"IPv6: an echo request":         with(announced6, 40, 128),
		"IPv6: target of many":          with(announced6, 48, 0xff),
		"IPv6: longer than the frame":   with(announced6, 5, 200),
		"IPv6: a router's solicitation": with(announced6, 40, 133),
	} {
		t.Run(name, func(t *testing.T) {
			if got, is := decode(int(m.Protocol), m.Payload, us); is {
				t.Errorf("decode = %+v", got)
			}
		})
	}
}

// TestMessageErrors has addresses and MACs that no message can be made of.
func TestMessageErrors(t *testing.T) {
	us := mac(t, ours)
	four, six := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	for name, build := range map[string]func() (Message, error){
		"no address":                 func() (Message, error) { return Probe(netip.Addr{}, us) },
		"a short MAC":                func() (Message, error) { return Probe(four, us[:4]) },
		"IPv4 asked from IPv6":       func() (Message, error) { return Query(four, six, us) },
		"IPv6 asked from IPv4":       func() (Message, error) { return Query(six, four, us) },
		"IPv6 asked with no address": func() (Message, error) { return Query(six, netip.Addr{}, us) },
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := build(); err == nil {
				t.Errorf("%+v", m)
			}
		})
	}
}

// FuzzDecode decodes what others may send: whatever it is, a claim is to an address by a MAC.
func FuzzDecode(f *testing.F) {
	us := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	for _, text := range []string{"192.0.2.7", "2001:db8::7"} {
		addr := netip.MustParseAddr(text)
		messages := append(must(Announcements(addr, us)), must(Probe(addr, us)), must(Query(addr, addr, us)))
		for _, m := range messages {
			f.Add(m.Protocol == unix.ETH_P_ARP, m.Payload)
		}
	}
	f.Fuzz(func(t *testing.T, arp bool, payload []byte) {
		protocol := unix.ETH_P_IPV6
		if arp {
			protocol = unix.ETH_P_ARP
		}
		got, is := decode(protocol, payload, us)
		if is && (!got.Addr.IsValid() || got.Addr.IsUnspecified() || !unicast(got.MAC) || got.Addr.Is4() != arp) {
			t.Errorf("decode = %+v", got)
		}
	})
}
