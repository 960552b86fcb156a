package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/bcsnet/bcsnet/test/lan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func isUp(t *testing.T, h *lan.Host) bool {
	t.Helper()
	return h.Link(t, "eth0").Attrs().Flags&net.FlagUp != 0
}

// TestProbe asks in a network where others have addresses. The pod has none yet and its link is down, as an IPAM plugin
// finds it.
func TestProbe(t *testing.T) {
	l := lan.New(t)
	other := l.Attached(t, "192.0.2.10/24", "2001:db8::10/64")
	third := l.Attached(t, "192.0.2.11/24")
	at := func(h *lan.Host, addr string) Answer {
		return Answer{Addr: netip.MustParseAddr(addr), MAC: h.MAC(t, "eth0")}
	}
	for name, c := range map[string]struct {
		ask  []netip.Addr
		want []Answer
	}{
		"free":                      {ask: addrs("192.0.2.99")},
		"free, IPv6":                {ask: addrs("2001:db8::99")},
		"free, both":                {ask: addrs("192.0.2.99", "2001:db8::99")},
		"taken":                     {ask: addrs("192.0.2.10"), want: []Answer{at(other, "192.0.2.10")}},
		"taken, IPv6":               {ask: addrs("2001:db8::10"), want: []Answer{at(other, "2001:db8::10")}},
		"one of two":                {ask: addrs("192.0.2.99", "2001:db8::10"), want: []Answer{at(other, "2001:db8::10")}},
		"each by somebody else":     {ask: addrs("192.0.2.11", "192.0.2.10"), want: []Answer{at(other, "192.0.2.10"), at(third, "192.0.2.11")}},
		"nothing is asked":          {},
		"an address of two by one":  {ask: addrs("192.0.2.10", "2001:db8::10"), want: []Answer{at(other, "192.0.2.10"), at(other, "2001:db8::10")}},
		"taken twice in one demand": {ask: addrs("192.0.2.10", "192.0.2.10"), want: []Answer{at(other, "192.0.2.10")}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := l.Host(t)
			l.Attach(t, pod, "eth0")
			got, err := Probe(t.Context(), Request{NetNS: pod.Path(), IfName: "eth0", Addrs: c.ask})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
				cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if isUp(t, pod) {
				t.Error("the link was down before, and is up now")
			}
		})
	}
}

func TestProbeLeavesALinkUp(t *testing.T) {
	l := lan.New(t)
	pod := l.Attached(t, "192.0.2.20/24", "2001:db8::20/64")
	got, err := Probe(t.Context(), Request{NetNS: pod.Path(), IfName: "eth0", Addrs: addrs("192.0.2.20", "2001:db8::20")})
	if err != nil || len(got) != 0 {
		t.Errorf("the pod's own addresses are answered by %v, %v", got, err)
	}
	if !isUp(t, pod) {
		t.Error("the link was up before, and is down now")
	}
	found := pod.Link(t, "eth0")
	pod.Do(t, func() error {
		has, err := netlink.AddrList(found, 0)
		if err == nil && len(has) < 2 {
			err = errors.New("the pod has lost its addresses")
		}
		return err
	})
}

// TestProbeOnMacvlan asks over a link that shares the node's: pods of one node, and the network around it.
func TestProbeOnMacvlan(t *testing.T) {
	l := lan.New(t)
	outside := l.Attached(t, "192.0.2.10/24", "2001:db8::10/64")
	node := l.Attached(t, "192.0.2.1/24")
	beside := l.Host(t)
	beside.Macvlan(t, node, "eth0")
	beside.Up(t, "eth0")
	beside.Address(t, "eth0", "192.0.2.11/24")
	pod := l.Host(t)
	pod.Macvlan(t, node, "eth0")
	got, err := Probe(t.Context(), Request{
		NetNS: pod.Path(), IfName: "eth0", Addrs: addrs("192.0.2.10", "2001:db8::10", "192.0.2.11", "192.0.2.99"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Answer{
		{netip.MustParseAddr("192.0.2.10"), outside.MAC(t, "eth0")},
		{netip.MustParseAddr("192.0.2.11"), beside.MAC(t, "eth0")},
		{netip.MustParseAddr("2001:db8::10"), outside.MAC(t, "eth0")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if isUp(t, pod) {
		t.Error("the link was down before, and is up now")
	}
}

// TestProbeProxyARP has a router that answers for every address: it is reported like any other.
func TestProbeProxyARP(t *testing.T) {
	l := lan.New(t)
	router := l.Attached(t, "192.0.2.1/24")
	router.AnswerAll(t)
	pod := l.Host(t)
	l.Attach(t, pod, "eth0")
	got, err := Probe(t.Context(), Request{NetNS: pod.Path(), IfName: "eth0", Addrs: addrs("198.51.100.7", "198.51.100.8")})
	if err != nil {
		t.Fatal(err)
	}
	want := []Answer{
		{netip.MustParseAddr("198.51.100.7"), router.MAC(t, "eth0")}, {netip.MustParseAddr("198.51.100.8"), router.MAC(t, "eth0")},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestProbeWithoutALink(t *testing.T) {
	l := lan.New(t)
	empty := l.Host(t)
	unplugged := l.Host(t)
	unplugged.Do(t, func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "other"})
	})
	for name, r := range map[string]Request{
		"no namespace named":           {NetNS: "", IfName: "eth0"},
		"the namespace is gone":        {NetNS: "/proc/1/fd/9999", IfName: "eth0"},
		"the interface comes later":    {NetNS: empty.Path(), IfName: "eth0"},
		"a link without neighbours":    {NetNS: empty.Path(), IfName: "lo"},
		"the other end is not plugged": {NetNS: unplugged.Path(), IfName: "eth0"},
	} {
		t.Run(name, func(t *testing.T) {
			r.Addrs = addrs("192.0.2.10", "2001:db8::10")
			got, err := Probe(t.Context(), r)
			if !errors.Is(err, ErrNoLink) || got != nil {
				t.Errorf("Probe = %v, %v, want ErrNoLink", got, err)
			}
		})
	}
	if isUp(t, unplugged) {
		t.Error("the link without a carrier was down before, and is up now")
	}
}

func TestProbeErrors(t *testing.T) {
	l := lan.New(t)
	pod := l.Attached(t)
	if _, err := Probe(t.Context(), Request{NetNS: "/etc/hostname", IfName: "eth0"}); err == nil || errors.Is(err, ErrNoLink) {
		t.Errorf("a path that is no namespace: %v", err)
	}
	if _, err := Probe(t.Context(), Request{NetNS: pod.Path(), IfName: "eth0", Addrs: []netip.Addr{{}}}); err == nil {
		t.Error("no address: no error")
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Probe(over, Request{NetNS: pod.Path(), IfName: "eth0", Addrs: addrs("192.0.2.10")}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over: %v", err)
	}
}
