package cni_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// configured returns the addresses, in CIDR notation, and the routes beyond the link that an interface has.
func (c *container) configured() (addrs, routes []string) {
	c.Helper()
	c.netns.Do(c.T, func() error {
		l, err := netlink.LinkByName(c.ifName)
		if err != nil {
			return err
		}
		found, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, a := range found {
			if !a.IP.IsLinkLocalUnicast() {
				addrs = append(addrs, a.IPNet.String())
			}
		}
		all, err := netlink.RouteList(l, netlink.FAMILY_ALL)
		for _, r := range all {
			if r.Gw != nil {
				routes = append(routes, fmt.Sprintf("%s via %s", r.Dst, r.Gw))
			}
		}
		return err
	})
	slices.Sort(addrs)
	slices.Sort(routes)
	return addrs, routes
}

// TestMainPlugins has the life of a pod with each of the reference main plugins, and in each version of CNI: ADD, what
// the kernel has then, CHECK, DEL, and DEL once more.
func TestMainPlugins(t *testing.T) {
	t.Parallel()
	macvlan := `"type":"macvlan","master":"eth0","mode":"bridge"`
	for name, c := range map[string]struct{ version, main string }{
		"bridge, 1.1.0":  {"1.1.0", bridge},
		"bridge, 1.0.0":  {"1.0.0", bridge},
		"bridge, 0.4.0":  {"0.4.0", bridge},
		"bridge, 0.3.1":  {"0.3.1", bridge},
		"bridge, 0.3.0":  {"0.3.0", bridge},
		"macvlan, 1.1.0": {"1.1.0", macvlan},
		"macvlan, 0.3.1": {"0.3.1", macvlan},
		"ptp, 1.1.0":     {"1.1.0", `"type":"ptp"`},
		"ptp, 0.4.0":     {"0.4.0", `"type":"ptp"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.lan.Attach(t, n.host, "eth0")
			n.pool("", func(s *v1.BCSNetPoolSpec) {
				s.Routes = []v1.Route{{Dst: "192.0.2.0/24", GW: n.addr(253)}}
				s.DNS = &v1.DNS{Nameservers: []string{"192.0.2.53"}, Search: []string{"example"}}
			}, 20)
			list := conflist(t, c.version, "lan", c.main, `"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}],"probe":true`)
			pod := n.container("web")
			result, err := pod.add(list)
			if err != nil {
				t.Fatal(err)
			}
			if len(result.IPs) != 1 || result.IPs[0].Address.String() != n.addr(20)+"/24" ||
				result.IPs[0].Gateway.String() != n.addr(254) || len(result.Routes) != 2 {
				t.Errorf("the result is %v", result)
			}
			// macvlan puts the DNS of its own configuration in the place of the pool's, also where it has none.
			if want := []string{"192.0.2.53"}; c.main != macvlan && !slices.Equal(want, result.DNS.Nameservers) {
				t.Errorf("DNS: %+v", result.DNS)
			}
			addrs, routes := pod.configured()
			if diff := cmp.Diff([]string{n.addr(20) + "/24"}, addrs); diff != "" {
				t.Errorf("addresses: %s", diff)
			}
			if want := "0.0.0.0/0 via " + n.addr(254); !slices.Contains(routes, want) {
				t.Errorf("routes %v, want %s", routes, want)
			}
			l := n.lease(n.addr(20))
			if l.Status != v1.IPActive || l.ContainerID != pod.id || l.PodUID != pod.uid || l.CNINetwork != "lan" || l.Host != n.Host {
				t.Errorf("the lease is %+v", l)
			}
			if c.version >= "0.4" {
				if err := pod.check(list); err != nil {
					t.Errorf("CHECK: %v", err)
				}
			}
			if got := n.files("run/attach"); !slices.Equal(got, []string{pod.id + ":eth0.json"}) {
				t.Errorf("attachments: %v", got)
			}
			for range 2 {
				if err := pod.del(list); err != nil {
					t.Errorf("DEL: %v", err)
				}
			}
			n.wantFree(n.addr(20))
			if got := n.files("run/attach"); len(got) > 0 {
				t.Errorf("attachments after DEL: %v", got)
			}
		})
	}
}

// TestFamilies has a network of two families, and pods with both and with one. Routes of a family that a pod has no
// address of are left out. The gateway of IPv6 is link-local, as routers announce it.
func TestFamilies(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	network := fmt.Sprintf("net-%d", n.ten)
	n.pool("", func(s *v1.BCSNetPoolSpec) { s.Network = network }, 20, 21)
	six := n.NewPool(fmt.Sprintf("cni-%d-six", n.ten), func(s *v1.BCSNetPoolSpec) {
		s.Net, s.Mask, s.Gateway, s.Network = fmt.Sprintf("fd77:%x::", n.ten), 64, "fe80::1", network
	}, n.addr6(0x20), n.addr6(0x21))
	n.WantReady(six)
	routes := `"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]`
	for name, c := range map[string]struct {
		ipam       string
		want4      bool
		want6      bool
		wantRoutes int
	}{
		"both":        {routes, true, true, 2},
		"IPv4":        {routes + `,"ipFamilies":["IPv4"]`, true, false, 1},
		"IPv6":        {routes + `,"ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack"`, false, true, 1},
		"both, named": {routes + `,"ipFamilyPolicy":"RequireDualStack","network":"` + network + `"`, true, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.on(t)
			pod := n.container("web")
			list := conflist(t, "1.1.0", "lan", bridge, c.ipam)
			result, err := pod.add(list)
			if err != nil {
				t.Fatal(err)
			}
			addrs, via := pod.configured()
			if slices.Contains(via, "::/0 via fe80::1") != c.want6 {
				t.Errorf("routes %v", via)
			}
			has4, has6 := false, false
			for _, a := range addrs {
				is4 := netip.MustParsePrefix(a).Addr().Is4()
				has4, has6 = has4 || is4, has6 || !is4
			}
			if has4 != c.want4 || has6 != c.want6 || len(result.Routes) != c.wantRoutes || len(result.IPs) != len(addrs) {
				t.Errorf("addresses %v, result %v", addrs, result)
			}
			if err := pod.check(list); err != nil {
				t.Errorf("CHECK: %v", err)
			}
			if err := pod.del(list); err != nil {
				t.Error(err)
			}
			n.wantHeld(pod.id)
		})
	}
}

// TestInterfaces has two interfaces of one pod, in two networks with pools of their own.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	blue, red := fmt.Sprintf("blue-%d", n.ten), fmt.Sprintf("red-%d", n.ten)
	n.pool("-blue", func(s *v1.BCSNetPoolSpec) { s.Network = blue }, 20)
	n.pool("-red", func(s *v1.BCSNetPoolSpec) { s.Network = red }, 30)
	first := conflist(t, "1.1.0", "blue", bridge, fmt.Sprintf(`"network":%q`, blue))
	second := conflist(t, "1.1.0", "red", `"type":"bridge","bridge":"cni1"`, fmt.Sprintf(`"network":%q`, red))
	pod := n.container("web")
	other := *pod
	other.ifName = "net1"
	if got := slices.Concat(pod.added(first), other.added(second)); !slices.Equal(got, []string{n.addr(20), n.addr(30)}) {
		t.Errorf("addresses %v", got)
	}
	n.wantHeld(pod.id, n.addr(20), n.addr(30))
	if err := other.del(second); err != nil {
		t.Error(err)
	}
	n.wantHeld(pod.id, n.addr(20))
	if err := pod.check(first); err != nil {
		t.Error(err)
	}
	if err := pod.del(first); err != nil {
		t.Error(err)
	}
	n.wantHeld(pod.id)
}

// TestWishes has an address asked for in each way that the ecosystem has, and a MAC for the chained plugin.
func TestWishes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20, 21, 22, 23, 24)
	capable := bridge + `,"capabilities":{"ips":true,"mac":true}`
	for name, c := range map[string]struct {
		main         string
		capabilities map[string]any
		args         [][2]string
		mac          bool
	}{
		"CNI_ARGS":      {main: bridge, args: [][2]string{{"IP", n.addr(23)}}},
		"args.cni.ips":  {main: bridge + fmt.Sprintf(`,"args":{"cni":{"ips":["%s/24"]}}`, n.addr(23))},
		"runtimeConfig": {main: capable, capabilities: map[string]any{"ips": []string{n.addr(23) + "/24"}, "mac": "02:00:00:00:00:17"}, mac: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.on(t)
			pod := n.container("web")
			pod.capabilities, pod.args = c.capabilities, c.args
			list := conflist(t, "1.1.0", "lan", c.main, "")
			if got := pod.added(list); !slices.Equal(got, []string{n.addr(23)}) {
				t.Errorf("addresses %v", got)
			}
			if _, routes := pod.configured(); len(routes) != 0 {
				t.Errorf("routes that nobody asked for: %v", routes)
			}
			if mac := pod.netns.MAC(t, "eth0").String(); c.mac && mac != "02:00:00:00:00:17" {
				t.Errorf("MAC %s", mac)
			}
			if err := pod.del(list); err != nil {
				t.Error(err)
			}
			n.wantFree(n.addr(23))
		})
	}
	t.Run("another length than the pool's", func(t *testing.T) {
		n := n.on(t)
		pod := n.container("web")
		pod.capabilities = map[string]any{"ips": []string{n.addr(23) + "/16"}}
		list := conflist(t, "1.1.0", "lan", capable, "")
		_, err := pod.add(list)
		n.wantError(err, "has the length /16", "(BadAddress)")
		if err := pod.del(list); err != nil {
			t.Error(err)
		}
	})
	t.Run("of no pool", func(t *testing.T) {
		n := n.on(t)
		pod := n.container("web")
		pod.args = [][2]string{{"IP", "192.0.2.1"}}
		_, err := pod.add(conflist(t, "1.1.0", "lan", bridge, ""))
		n.wantError(err, "192.0.2.1", "(AddressNotInPool)")
	})
}

// TestAnnounced has bcsnet-announce after the main plugin: it finds what bcsnet-ipam left for it.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	mtu := int32(1400)
	n.pool("", func(s *v1.BCSNetPoolSpec) { s.MTU = mtu }, 20)
	list := conflist(t, "1.1.0", "lan", bridge, "", `{"type":"bcsnet-announce","mac":true}`)
	pod := n.container("web")
	if got := pod.added(list); !slices.Equal(got, []string{n.addr(20)}) {
		t.Errorf("addresses %v", got)
	}
	l := pod.netns.Link(t, "eth0").Attrs()
	if want := fmt.Sprintf("02:02:0a:%02x:00:14", n.ten); l.MTU != 1400 || l.HardwareAddr.String() != want {
		t.Errorf("MTU %d, MAC %s, want %s", l.MTU, l.HardwareAddr, want)
	}
	if err := pod.check(list); err != nil {
		t.Error(err)
	}
	if err := pod.del(list); err != nil {
		t.Error(err)
	}
	n.wantFree(n.addr(20))
}

// TestVLAN has pools in another VLAN than the main plugin's configuration: nothing stays taken.
func TestVLAN(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", func(s *v1.BCSNetPoolSpec) { s.VLAN = 7 }, 20)
	for name, c := range map[string]struct{ main, want string }{
		"vlan of the bridge":   {`"type":"bridge","vlan":8`, "vlan of network lan is in VLAN 8"},
		"vlanId":               {`"type":"vlan","master":"eth0","vlanId":9`, "vlanId of network lan is in VLAN 9"},
		"master by its name":   {`"type":"macvlan","master":"eth0.10"`, "master eth0.10 of network lan is in VLAN 10"},
		"the same":             {`"type":"bridge","vlan":7`, ""},
		"no VLAN is named":     {`"type":"macvlan","master":"eth0"`, ""},
		"master, and the same": {`"type":"ipvlan","master":"bond0.7"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.on(t)
			pod := n.container("web")
			stdin := fmt.Sprintf(`{"cniVersion":"1.1.0","name":"lan",%s,"ipam":{"type":"bcsnet-ipam"}}`, c.main)
			_, err := pod.call("ADD", stdin)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				n.wantHeld(pod.id, n.addr(20))
				if _, err := pod.call("DEL", stdin); err != nil {
					t.Error(err)
				}
			} else {
				n.wantError(err, `"code": 7`, n.addr(20)+" is of pool cni-", "in VLAN 7", c.want)
			}
			n.wantHeld(pod.id)
			n.wantFree(n.addr(20))
		})
	}
}

// TestAtOnce has two ADDs of one container at once, and twenty containers at once: the former have one answer, the
// latter an address each.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
	stdin := `{"cniVersion":"1.1.0","name":"lan","ipam":{"type":"bcsnet-ipam"}}`
	pod := n.container("web")
	same := make(chan string, 2)
	for range 2 {
		go func() {
			out, err := pod.call("ADD", stdin)
			if err != nil {
				out = err.Error()
			}
			same <- out
		}()
	}
	if a, b := <-same, <-same; a != b {
		t.Errorf("two answers:\n%s\n%s", a, b)
	}
	var pods []*container
	for i := range 8 {
		pods = append(pods, n.container(fmt.Sprintf("w%d", i)))
	}
	answers := make(chan error, len(pods))
	for _, p := range pods {
		go func() {
			_, err := p.call("ADD", stdin)
			answers <- err
		}()
	}
	for range pods {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	controlplane.Eventually(t, func() error {
		list := &v1.BCSNetIPList{}
		if err := n.Admin.List(t.Context(), list); err != nil {
			return err
		}
		holders := map[string]int{}
		for _, o := range list.Items {
			if o.Status.Host == n.Host && o.Status.Status == v1.IPActive {
				holders[o.Status.ContainerID]++
			}
		}
		if len(holders) != len(pods)+1 {
			return fmt.Errorf("%d containers have addresses: %v", len(holders), holders)
		}
		for id, count := range holders {
			if count != 1 {
				return fmt.Errorf("%s has %d addresses", id, count)
			}
		}
		return nil
	})
}

// TestReleasedConfiguration has a node as the released plugin has it: it asks over plain HTTP, and its network
// configuration says whom.
func TestReleasedConfiguration(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.pool("", nil, 20)
	n.remove("etc/config.json")
	list := conflist(t, "0.3.0", "lan", bridge, fmt.Sprintf(`"host":%q,"netserviceEndpoint":%q,"routes":[{"dst":"0.0.0.0/0"}],`+
		`"logDir":"/data/bcs/logs"`, n.Host, n.plainRelay().url))
	pod := n.container("web")
	if got := pod.added(list); !slices.Equal(got, []string{n.addr(20)}) {
		t.Errorf("addresses %v", got)
	}
	if err := pod.del(list); err != nil {
		t.Error(err)
	}
	n.wantFree(n.addr(20))
}

// TestOldVersions has configurations of the first versions of CNI, and one without a version, as
// NetworkAttachmentDefinitions have them: the result has the address in their form.
func TestOldVersions(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"0.1.0": `"cniVersion":"0.1.0",`, "0.2.0": `"cniVersion":"0.2.0",`, "none": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.pool("", nil, 20)
			pod := n.container("web")
			stdin := "{" + version + `"name":"lan","ipam":{"type":"bcsnet-ipam","routes":[{"dst":"0.0.0.0/0"}]}}`
			out, err := pod.call("ADD", stdin)
			if err != nil || !strings.Contains(out, `"ip4"`) || !strings.Contains(out, n.addr(20)+"/24") ||
				!strings.Contains(out, `"gw": "`+n.addr(254)) {
				t.Errorf("%s, %v", out, err)
			}
			if _, err := pod.call("DEL", stdin); err != nil {
				t.Error(err)
			}
			n.wantFree(n.addr(20))
		})
	}
}
