package ipam

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

var asked = wire.AllocateRequest{
	Host: "10.0.0.11", ContainerID: "3f4e", IfName: "eth0", PodName: "web-0", PodNamespace: "shop",
}

// answered returns the answer to asked, changed.
func answered(change func(*wire.Allocation)) []byte {
	a := wire.Allocation{
		Host: "10.0.0.11", ContainerID: "3f4e", IfName: "eth0", PodName: "web-0", PodNamespace: "shop",
		IPs: []wire.Address{
			{
				IPAddr: "10.0.0.21", Mask: 24, Gateway: "10.0.0.1", Pool: "a", VLAN: 7, MTU: 1400, MacAddr: "02:02:0a:00:00:15",
				Routes: []wire.Route{{Dst: "192.0.2.0/24", GW: "10.0.0.2"}, {Dst: "2001:db8:2::/48"}},
				DNS:    &wire.DNS{Nameservers: []string{"192.0.2.53"}, Domain: "a.example", Search: []string{"a"}},
			},
			{
				IPAddr: "2001:db8::21", Mask: 64, Pool: "b", MTU: 1300,
				DNS: &wire.DNS{Nameservers: []string{"192.0.2.53", "2001:db8::53"}, Domain: "b.example", Search: []string{"b"}},
			},
		},
	}
	if change != nil {
		change(&a)
	}
	return marshal(a)
}

func TestDecodeAllocation(t *testing.T) {
	wish := []netip.Addr{netip.MustParseAddr("10.0.0.21")}
	a, err := decodeAllocation(answered(nil), asked, wish)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.texts(); !slices.Equal(got, []string{"10.0.0.21", "2001:db8::21"}) {
		t.Errorf("addresses %v", got)
	}
	if a.mac("") != "02:02:0a:00:00:15" || a.mac("02:00:00:00:00:01") != "02:00:00:00:00:01" {
		t.Errorf("MACs %q, %q", a.mac(""), a.mac("02:00:00:00:00:01"))
	}
}

// TestForeignAllocations has answers that are not about the container, or that no interface can have.
func TestForeignAllocations(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.Allocation)
		want   string
	}{
		"another container": {func(a *wire.Allocation) { a.ContainerID = "other" }, `container "other"`},
		"another interface": {func(a *wire.Allocation) { a.IfName = "net1" }, `interface "net1"`},
		"another pod":       {func(a *wire.Allocation) { a.PodName = "web-1" }, `pod "web-1"`},
		"another namespace": {func(a *wire.Allocation) { a.PodNamespace = "x" }, `namespace "x"`},
		"no address":        {func(a *wire.Allocation) { a.IPs = nil }, "0 addresses"},
		"too many":          {func(a *wire.Allocation) { a.IPs = make([]wire.Address, maxAddrs+1) }, "65 addresses"},
		"an address":        {func(a *wire.Allocation) { a.IPs[0].IPAddr = "x" }, `address "x"`},
		"0.0.0.0":           {func(a *wire.Allocation) { a.IPs[0].IPAddr = "0.0.0.0" }, "0.0.0.0"},
		"a zone":            {func(a *wire.Allocation) { a.IPs[1].IPAddr = "fe80::1%eth0" }, "fe80::1%eth0"},
		"mapped":            {func(a *wire.Allocation) { a.IPs[1].IPAddr = "::ffff:10.0.0.1" }, "::ffff:10.0.0.1"},
		"multicast":         {func(a *wire.Allocation) { a.IPs[0].IPAddr = "224.0.0.1" }, "224.0.0.1"},
		"mask 0":            {func(a *wire.Allocation) { a.IPs[0].Mask = 0 }, "mask 0"},
		"mask 33":           {func(a *wire.Allocation) { a.IPs[0].Mask = 33 }, "mask 33"},
		"gateway":           {func(a *wire.Allocation) { a.IPs[0].Gateway = "x" }, `gateway "x"`},
		"gateway's family":  {func(a *wire.Allocation) { a.IPs[0].Gateway = "2001:db8::1" }, "family"},
		"mtu":               {func(a *wire.Allocation) { a.IPs[0].MTU = -1 }, "mtu -1"},
		"vlan":              {func(a *wire.Allocation) { a.IPs[0].VLAN = 4095 }, "vlan 4095"},
		"mac":               {func(a *wire.Allocation) { a.IPs[0].MacAddr = "01:00:5e:00:00:01" }, "01:00:5e:00:00:01"},
		"route's dst":       {func(a *wire.Allocation) { a.IPs[0].Routes[0].Dst = "x" }, "dst"},
		"route's gw":        {func(a *wire.Allocation) { a.IPs[0].Routes[0].GW = "::1" }, "gw"},
		"not the one asked": {func(a *wire.Allocation) { a.IPs[0].IPAddr = "10.0.0.22" }, "lacks 10.0.0.21"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := decodeAllocation(answered(c.change), asked, []netip.Addr{netip.MustParseAddr("10.0.0.21")})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v, want %q", a, err, c.want)
			}
		})
	}
	for _, text := range []string{"", "null", "[]", `"x"`, "{}", `{"ips":7}`} {
		if a, err := decodeAllocation([]byte(text), asked, nil); err == nil {
			t.Errorf("%q: %+v", text, a)
		}
	}
}

// A network without a router makes no default route, whoever writes one down without a next hop.
func TestResultWithoutGateway(t *testing.T) {
	a, err := decodeAllocation(answered(func(a *wire.Allocation) { a.IPs[0].Gateway = "" }), asked, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.addrs = a.addrs[:1]
	c := &call{conf: netconf.Conflist{Routes: []netconf.Route{
		{Dst: netip.MustParsePrefix("0.0.0.0/0")},
		{Dst: netip.MustParsePrefix("192.0.2.0/24"), GW: netip.MustParseAddr("10.0.0.9")},
	}}}
	r := c.result(a)
	if r.IPs[0].Gateway != nil {
		t.Errorf("gateway %s", r.IPs[0].Gateway)
	}
	text, err := json.Marshal(r.Routes)
	if diff := cmp.Diff(`[{"dst":"192.0.2.0/24","gw":"10.0.0.9"}]`, string(text)); err != nil || diff != "" {
		t.Errorf("%v, routes (-want +got):\n%s", err, diff)
	}
	c.conf.Routes = []netconf.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: netip.MustParseAddr("10.0.0.9")}}
	if got := c.result(a).Routes; len(got) == 0 || got[0].GW == nil {
		t.Errorf("a default route with a next hop of its own: %v", got)
	}
}

// TestResult has routes of the configuration before those of the pools, and none of a family without an address.
func TestResult(t *testing.T) {
	a, err := decodeAllocation(answered(nil), asked, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &call{conf: netconf.Conflist{Routes: []netconf.Route{
		{Dst: netip.MustParsePrefix("0.0.0.0/0")},
		{Dst: netip.MustParsePrefix("192.0.2.0/24"), GW: netip.MustParseAddr("10.0.0.9"), MTU: 1000},
	}}}
	text, err := json.Marshal(c.result(a))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"cniVersion":"1.1.0","dns":{"domain":"a.example","nameservers":["192.0.2.53","2001:db8::53"],` +
		`"search":["a","b"]},"ips":[{"address":"10.0.0.21/24","gateway":"10.0.0.1"},{"address":"2001:db8::21/64"}],` +
		`"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"},{"dst":"192.0.2.0/24","gw":"10.0.0.9","mtu":1000},{"dst":"2001:db8:2::/48"}]}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("two families (-want +got):\n%s", diff)
	}
	a.addrs = a.addrs[:1]
	text, err = json.Marshal(c.result(a).Routes)
	if diff := cmp.Diff(`[{"dst":"0.0.0.0/0","gw":"10.0.0.1"},{"dst":"192.0.2.0/24","gw":"10.0.0.9","mtu":1000}]`, string(text)); err != nil || diff != "" {
		t.Errorf("IPv4 alone: %v (-want +got):\n%s", err, diff)
	}
}

func TestSmaller(t *testing.T) {
	for _, c := range []struct{ a, b, want int }{{0, 0, 0}, {0, 9, 9}, {9, 0, 9}, {8, 9, 8}, {9, 8, 8}} {
		if got := smaller(c.a, c.b); got != c.want {
			t.Errorf("smaller(%d, %d) = %d", c.a, c.b, got)
		}
	}
}

func FuzzDecodeAllocation(f *testing.F) {
	f.Add(answered(nil))
	f.Add([]byte(`{"containerID":"3f4e","ifName":"eth0","podName":"web-0","podNamespace":"shop","ips":[{"ipAddr":"::1","mask":128}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := decodeAllocation(text, asked, nil)
		if err != nil {
			return
		}
		if _, err := (&call{}).result(a).GetAsVersion("0.3.0"); err != nil {
			t.Errorf("%s cannot be a result: %v", text, err)
		}
	})
}
