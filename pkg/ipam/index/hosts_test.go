package index

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// The pools of a host come in one order of preference, each once, however they name the host.
func TestPoolsOfAHost(t *testing.T) {
	subnet := func(i int) (string, []string) { // of 16 addresses
		a := netip.AddrFrom4([4]byte{10, 0, byte(i), 0})
		return a.String() + "/28", []string{a.Next().Next().String()}
	}
	of := func(i int, name string, options ...option) ipam.Pool {
		net, available := subnet(i)
		return pool(t, name, net, available, options...)
	}
	pools := []ipam.Pool{
		of(1, "a", hosts(host2), hostSubnets("192.168.0.0/24")),
		of(2, "b"),
		of(3, "c", hosts(), hostSubnets("192.168.0.0/16", "192.168.0.1/32"), priority(1)),
		of(4, "d", hosts(host1), hostSubnets("192.168.0.0/31", "192.168.0.0/16")),
		of(5, "e", hosts(), hostSubnets("192.169.0.0/16")),
		of(6, "f", hosts(), hostSubnets("::/0")),
		of(7, "g", hosts(), hostSubnets("0.0.0.0/0"), namespaces("bank")),
	}
	x := indexOf(pools...)
	for name, tc := range map[string]struct {
		w    ipam.PickRequest
		want []string
	}{
		"listed and in subnets":       {want(), []string{"c", "a", "b", "d"}},
		"listed elsewhere, in others": {want(onHost(host2)), []string{"c", "a", "d"}},
		"in wide subnets alone":       {want(onHost("192.168.9.9")), []string{"c", "d"}},
		"in none":                     {want(onHost("172.16.0.1")), nil},
		"of IPv6":                     {want(onHost("2001:db8::1")), []string{"f"}},
		"bound to a namespace":        {want(inNamespace("bank"), onHost("172.16.0.1")), []string{"g"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for p := range x.core.state.Pools.Fitting(tc.w) {
				got = append(got, p.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for p := range x.core.state.Pools.Fitting(tc.w) { // whoever needs one looks at one
				if p.Name != tc.want[0] {
					t.Errorf("the first is %s", p.Name)
				}
				break
			}
		})
	}
	for _, p := range pools {
		x.Pools.RemovePool(p.Name)
	}
	for _, host := range []string{host1, host2, "192.168.9.9", "172.16.0.1", "2001:db8::1"} {
		if got := x.Pools.PoolsOf(ip(host)); len(got) > 0 {
			t.Errorf("pools that are gone are still listed for %s: %v", host, got)
		}
	}
	checkRules(t, x)
}

func TestHostsOfAPool(t *testing.T) {
	p := pool(t, "a", "10.0.0.0/28", []string{"10.0.0.2"}, hosts(host1, "172.16.0.1"),
		hostSubnets("192.168.0.0/16", "192.168.0.0/31"))
	x := indexOf(p, pool(t, "b", "10.0.1.0/28", []string{"10.0.1.2"}))
	x.Pools.SetNode("listed", node(host1))
	x.Pools.SetNode("inside", node("10.9.9.9", host2))
	x.Pools.SetNode("outside", node("10.9.9.8"))
	x.Pools.SetNode("listed-by-another", node("192.168.0.7", "172.16.0.1"))
	for name, want := range map[string]int{"a": 3, "b": 1, "c": 0} {
		if got := x.Pools.HostCount(name); got != want {
			t.Errorf("%d hosts may draw from pool %s, want %d", got, name, want)
		}
	}
	x.Pools.SetNode("inside", ipam.Node{})
	x.Pools.SetNode("another", node("192.168.0.3"))
	x.Pools.SetNode("yet-another", node("192.168.0.4"))
	if got := x.Pools.HostCount("a"); got != 4 {
		t.Errorf("%d hosts may draw from pool a after nodes have changed, want 4", got)
	}
	x.Pools.SetNode("inside", node("10.9.9.9", host2))
	if got := x.Pools.Covering(ips("10.9.9.9", host2)); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v cover a node", got)
	}
	if n, ok := p.HostSubnets.Of(ip(host1)); !ok || n != netip.MustParsePrefix("192.168.0.0/31") {
		t.Errorf("%s lies in %s, %v", host1, n, ok)
	}
	if text := p.HostSubnets.String(); text != "192.168.0.0/16, 192.168.0.0/31" {
		t.Errorf("written as %s", text)
	}
}

func TestParseNetwork(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.0/16": "", "10.0.0.0/16\n": "", "0.0.0.0/0": "", "::/0": "", "2001:db8::/32": "", "10.0.0.1/32": "",
		"10.0.0.1":            `"10.0.0.1" is not a CIDR`,
		"10.0.0.1/16":         `CIDR "10.0.0.1/16" has host bits set: write 10.0.0.0/16`,
		"10.0.0.0/33":         `"10.0.0.0/33" is not a CIDR`,
		"::ffff:10.0.0.0/112": `"::ffff:10.0.0.0/112" is not a CIDR`,
		"":                    `"" is not a CIDR`,
	} {
		if _, err := ipaddr.ParseNetwork(in); message(err) != want {
			t.Errorf("%q: %q, want %q", in, message(err), want)
		}
	}
}

func TestRefusalOfAHostBesideTheSubnets(t *testing.T) {
	x := indexOf(pool(t, "a", "10.0.0.0/28", []string{"10.0.0.2"}, hostSubnets("192.168.0.0/16")))
	_, refusal := x.Pick(want(onHost("172.16.0.1"), func(w *ipam.PickRequest) { w.Pools = []string{"a"} }), now)
	const text = "HostNotInPool: host 172.16.0.1 may not draw from pool a, nor is it in its host subnets 192.168.0.0/16; " +
		"hint: add the host with: bcsnetctl pool add-host a 172.16.0.1"
	if diff := cmp.Diff(text, refused(refusal)); diff != "" {
		t.Error(diff)
	}
}

// Few networks and many are asked in different ways.
func TestSmallestOfManyNetworks(t *testing.T) {
	many := ipam.Networks{netip.MustParsePrefix("10.0.0.0/8"): {}, netip.MustParsePrefix("2001:db8::/32"): {}}
	for i := range 20 {
		many[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)] = struct{}{}
	}
	for host, want := range map[string]string{
		"10.3.0.1": "10.3.0.0/16", "10.99.0.1": "10.0.0.0/8", "2001:db8::1": "2001:db8::/32", "11.0.0.1": "", "2001:db9::1": "",
	} {
		if got, ok := many.Of(ip(host)); ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s lies in %s, %v; want %q", host, got, ok, want)
		}
	}
	if _, ok := many.Of(netip.Addr{}); ok {
		t.Error("no host lies in a network")
	}
}
