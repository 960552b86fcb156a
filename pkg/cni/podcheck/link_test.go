package podcheck

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/bcsnet/bcsnet/pkg/nodecheck"
	"github.com/bcsnet/bcsnet/test/lan"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAskLink asks in a network with a gateway, and with somebody who has an address of the pod.
func TestAskLink(t *testing.T) {
	l := lan.New(t)
	gateway := l.Attached(t, "192.0.2.1/24", "2001:db8::1/64")
	other := l.Attached(t, "192.0.2.11/24", "2001:db8::11/64")
	pod := l.Attached(t, "192.0.2.10/24", "192.0.2.11/24", "2001:db8::10/64", "2001:db8::11/64")
	answering := nodecheck.Link{Gateway: true, GatewayMAC: gateway.MAC(t, "eth0").String()}
	duplicate := answering
	duplicate.Others = []string{other.MAC(t, "eth0").String()}
	for name, c := range map[string]struct {
		addr, gateway string
		want          nodecheck.Link
	}{
		"all well":           {addr: "192.0.2.10", gateway: "192.0.2.1", want: answering},
		"all well, IPv6":     {addr: "2001:db8::10", gateway: "2001:db8::1", want: answering},
		"a duplicate":        {addr: "192.0.2.11", gateway: "192.0.2.1", want: duplicate},
		"a duplicate, IPv6":  {addr: "2001:db8::11", gateway: "2001:db8::1", want: duplicate},
		"no gateway":         {addr: "192.0.2.10"},
		"a silent one":       {addr: "192.0.2.10", gateway: "192.0.2.99", want: nodecheck.Link{GatewayWhy: "no answer on eth0 within 2s"}},
		"a silent one, IPv6": {addr: "2001:db8::10", gateway: "2001:db8::99", want: nodecheck.Link{GatewayWhy: "no answer on eth0 within 2s"}},
		"not its address":    {addr: "192.0.2.77", want: nodecheck.Link{Unasked: "no interface of the pod has 192.0.2.77"}},
	} {
		t.Run(name, func(t *testing.T) {
			own := nodecheck.Own{Addr: netip.MustParseAddr(c.addr)}
			if c.gateway != "" {
				own.Gateway = netip.MustParseAddr(c.gateway)
			}
			var got nodecheck.Link
			pod.Do(t, func() error {
				got = AskLink(t.Context(), own)
				return nil
			})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestLoopback: an address on a link without neighbours cannot be asked for, and a gateway is asked for by the kernel.
func TestLoopback(t *testing.T) {
	got := AskLink(t.Context(), nodecheck.Own{Addr: netip.MustParseAddr("127.0.0.1"), Gateway: netip.MustParseAddr("127.0.0.2")})
	if diff := cmp.Diff(nodecheck.Link{Gateway: true, Unasked: "lo has no Ethernet neighbours"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAskByKernel asks as a pod does that may open no packet sockets.
func TestAskByKernel(t *testing.T) {
	l := lan.New(t)
	l.Attached(t, "192.0.2.1/24", "2001:db8::1/64")
	pod := l.Attached(t, "192.0.2.10/24", "2001:db8::10/64")
	pod.Do(t, func() error { // the kernel's errors come over it, as in a pod
		loopback, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(loopback)
	})
	for name, c := range map[string]struct{ gateway, want string }{
		"it refuses the connection":       {gateway: "192.0.2.1"},
		"it refuses the connection, IPv6": {gateway: "2001:db8::1"},
		"nobody has it":                   {gateway: "192.0.2.99", want: "no route to host"},
		"nobody has it, IPv6":             {gateway: "2001:db8::99", want: "no route to host"},
		"there is no way to it":           {gateway: "198.51.100.1", want: "network is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			var got error
			pod.Do(t, func() error {
				got = askByKernel(t.Context(), netip.MustParseAddr(c.gateway))
				return nil
			})
			if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
				t.Errorf("%v, want %q", got, c.want)
			}
		})
	}
}
