package http_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// What a pool says about its network is in the answer.
func TestLinkOfThePool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.pool(1, func(p *v1.BCSNetPool) {
		p.Spec.VLAN, p.Spec.MTU = 1042, 8950
		p.Spec.Routes = []v1.Route{{Dst: "10.8.0.0/16"}, {Dst: "0.0.0.0/0", GW: s.ip(9)}}
		p.Spec.DNS = &v1.DNS{
			Nameservers: []string{s.ip(53)}, Domain: "shop.example", Search: []string{"a.example", "b.example"},
			Options: []string{"ndots:2"},
		}
	})
	s.pod("web-0")
	body := s.request(newID(), "web-0")
	n := s.Net[len("10.60."):]
	var last int
	_, _ = fmt.Sscan(n, &last)
	address := object{
		"ipAddr": s.ip(20), "gateway": s.ip(1), "mask": 24.0, "pool": s.Namespace, "vlan": 1042.0, "mtu": 8950.0,
		"macAddr": fmt.Sprintf("02:02:0a:3c:%02x:14", last),
		"routes":  []any{object{"dst": "10.8.0.0/16"}, object{"dst": "0.0.0.0/0", "gw": s.ip(9)}},
		"dns":     object{"nameservers": []any{s.ip(53)}, "domain": "shop.example", "search": []any{"a.example", "b.example"}, "options": []any{"ndots:2"}},
	}
	want := with(address, "host", s.Host, "containerID", body["containerID"], "podName", "web-0", "podNamespace",
		s.Namespace, "ifName", "eth0", "ips", []any{address})
	if diff := cmp.Diff(want, s.add(body).done(t)); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// A request draws one address of each family from the pools of one network, or none.
func TestDualStack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	network := "dual-" + s.Namespace
	s.pool(3, func(p *v1.BCSNetPool) { p.Spec.Network, p.Spec.VLAN = network, 4 })
	s.pool6(2, func(p *v1.BCSNetPool) { p.Spec.Network, p.Spec.VLAN = network, 6 })
	s.pod("web-0")
	body := with(s.request(newID(), "web-0"), "network", network, "ipAddr", s.ip(21)+", "+s.ip6(0x21))
	data := s.add(body).done(t)
	want := []any{
		object{
			"ipAddr": s.ip(21), "gateway": s.ip(1), "mask": 24.0, "pool": s.Namespace, "vlan": 4.0, "macAddr": data["macAddr"],
		},
		object{"ipAddr": s.ip6(0x21), "gateway": s.ip6(1), "mask": 64.0, "pool": s.Namespace + "-6", "vlan": 6.0},
	}
	if diff := cmp.Diff(want, data["ips"]); diff != "" || data["ipAddr"] != s.ip(21) || data["gateway"] != s.ip(1) ||
		data["mask"] != 24.0 {
		t.Errorf("ips (-want +got):\n%s\nof %v", diff, data)
	}
	// The same pair again, however it is asked for.
	pair := []string{s.ip(21), s.ip6(0x21)}
	for _, again := range []object{
		body, with(body, "ipAddr", nil), with(body, "ipAddr", s.ip6(0x21)), with(body, "network", nil, "ipAddr", nil),
	} {
		if got := ips(s.add(again).done(t)); !slices.Equal(got, pair) {
			t.Errorf("again: %v, want %v", got, pair)
		}
	}
	if got := stored(t, s.ip6(0x21)); got.Name == s.ip6(0x21) || got.Spec.Address != s.ip6(0x21) ||
		got.Status.SetSize != 2 {
		t.Errorf("the object is %s: %+v", got.Name, got)
	}

	// Without being asked it is a pair too; then IPv6 is used up, and IPv4 alone is no answer.
	second, taken := s.given("web-1")
	free := s.unused(3, s.ip(21), taken)
	if got := ips(s.add(second).done(t)); len(got) != 2 || got[1] != s.ip6(0x20) {
		t.Errorf("web-1 has %v", got)
	}
	s.pod("web-2")
	third := with(s.request(newID(), "web-2"), "network", network)
	s.add(third).refusedWith(t, "PoolExhausted", fmt.Sprintf("no available IP for pod %s/web-2: ", s.Namespace), "pool "+
		s.Namespace+"-6", "0 of 2")
	s.add(with(third, "ipAddr", free)).refusedWith(t, "PoolExhausted", "0 of 2")
	if half := active(t, shared.admin, third["containerID"].(string)); len(half) != 0 {
		t.Errorf("the refusal left %v", half)
	}
	if got := ips(s.del(second).done(t)); len(got) != 2 {
		t.Errorf("DEL freed %v, want both", got)
	}
	if got := ips(s.add(third).done(t)); len(got) != 2 {
		t.Errorf("web-2 has %v", got)
	}
}

// The gateway of an answer where a host may name its own.
// Families in Kubernetes' words, in the request and as annotations of the pod.
func TestFamilies(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	network := "families-" + s.Namespace
	s.pool(5, func(p *v1.BCSNetPool) { p.Spec.Network = network })
	s.pool6(2, func(p *v1.BCSNetPool) { p.Spec.Network = network })
	for _, pod := range []string{"single", "first", "both", "prefers", "requires"} {
		s.pod(pod)
	}
	is6 := func(addr string) bool { return strings.Contains(addr, ":") }
	if got := ips(s.add(with(s.request(newID(), "single"), "ipFamilyPolicy", "SingleStack")).done(t)); len(got) != 1 || is6(got[0]) {
		t.Errorf("SingleStack: %v", got)
	}
	six := s.add(with(s.request(newID(), "first"), "ipFamilies", []string{"IPv6"})).done(t)
	if got := ips(six); len(got) != 1 || !is6(got[0]) || six["mask"] != 64.0 {
		t.Errorf("IPv6: %v", six)
	}
	body := with(s.request(newID(), "both"), "ipFamilyPolicy", "RequireDualStack", "ipFamilies", []string{"IPv6", "IPv4"})
	both := s.add(body).done(t)
	pair := ips(both)
	if len(pair) != 2 || !is6(pair[0]) || both["ipAddr"] != pair[0] {
		t.Errorf("IPv6, then IPv4: %v", both)
	}
	if again := ips(s.add(body).done(t)); !slices.Equal(again, pair) {
		t.Errorf("again: %v, want %v", again, pair)
	}
	// No IPv6 is left.
	s.add(with(s.request(newID(), "requires"), "ipFamilyPolicy", "RequireDualStack")).refusedWith(t, "PoolExhausted", "0 of 2")
	prefers := with(s.request(newID(), "prefers"), "ipFamilyPolicy", "PreferDualStack")
	alone := ips(s.add(prefers).done(t))
	if len(alone) != 1 || is6(alone[0]) {
		t.Errorf("PreferDualStack: %v", alone)
	}
	s.del(body).done(t) // there is some again: a repeated request gets what it got
	if again := ips(s.add(prefers).done(t)); !slices.Equal(again, alone) {
		t.Errorf("again: %v, want %v", again, alone)
	}
}

func TestHostGateway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	node := func(name, host, gateway string) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{node.GatewayAnnotation: gateway},
		}}
		s.create(n)
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
		if err := shared.admin.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.admin.Delete(context.Background(), n) })
	}
	bare, far, odd := s.host(21), s.host(22), s.host(23) // no node has the first
	network := "gw-" + s.Namespace
	s.pool(9, func(p *v1.BCSNetPool) { p.Spec.Hosts, p.Spec.Network = []string{s.Host, bare, far, odd}, network })
	s.pool6(9, func(p *v1.BCSNetPool) { p.Spec.Hosts, p.Spec.Network = []string{s.Host, bare, far, odd}, network })
	node(s.Namespace+"-a", s.Host, s.ip(3))
	node(s.Namespace+"-b", far, "192.0.2.1")
	node(s.Namespace+"-c", odd, "no address")
	byHost := startFor(t, account(t, shared.cluster), func(o *controller.Options) { o.GatewaySource = "host" }).caller()

	for name, c := range map[string]struct {
		host, asked, want, want6 string
	}{
		"the request's before the node's": {s.Host, s.ip(2), s.ip(2), s.ip6(1)},
		"the node's":                      {s.Host, "", s.ip(3), s.ip6(1)},
		"the request's":                   {bare, s.ip(2), s.ip(2), s.ip6(1)},
		"the request's in IPv6":           {s.Host, s.ip6(2), s.ip(3), s.ip6(2)},
		"the pool's":                      {bare, "", s.ip(1), s.ip6(1)},
		"outside the subnet: the node's":  {s.Host, "192.0.2.1", s.ip(3), s.ip6(1)},
		"outside the subnet: the pool's":  {far, "192.0.2.2", s.ip(1), s.ip6(1)},
		"an annotation of nonsense":       {odd, "", s.ip(1), s.ip6(1)},
	} {
		t.Run(name, func(t *testing.T) {
			body := object{"host": c.host, "owner": s.owner(name), "hostGateway": c.asked}
			controlplane.Eventually(t, func() error { // until the annotations are known
				data := byHost.do(t, "POST", prefix, body).done(t)
				got := []any{
					data["gateway"], data["ips"].([]any)[0].(object)["gateway"], data["ips"].([]any)[1].(object)["gateway"],
				}
				if diff := cmp.Diff([]any{c.want, c.want, c.want6}, got); diff != "" {
					return fmt.Errorf("gateways (-want +got):\n%s", diff)
				}
				return nil
			})
			// The other controller keeps to the pool's, and the object to what the pool says.
			if got := s.call.do(t, "POST", prefix, body).done(t); got["gateway"] != s.ip(1) {
				t.Errorf("--gateway-source=pool answers %v", got["gateway"])
			} else if o := stored(t, got["ipAddr"].(string)); o.Spec.Gateway != s.ip(1) {
				t.Errorf("the object has %s", o.Spec.Gateway)
			}
		})
	}
}
