package hosts_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/hosts"
)

// object returns a Node with an InternalIP, if it is to have one, and the annotation.
func object(name, internal, further string, ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{hosts.Annotation: further}}}
	if internal != "" {
		o.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: internal}}
	}
	o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	for _, key := range taints {
		o.Spec.Taints = append(o.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return o
}

func texts(addrs []netip.Addr) string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return strings.Join(all, " ")
}

// TestOf: all that a Node says of addresses, in an order that does not change; what cannot be read is told apart.
func TestOf(t *testing.T) {
	plain := func(*corev1.Node) {}
	for name, tc := range map[string]struct {
		further string
		change  func(*corev1.Node)
		// addrs, of which given are those of the annotation; unread is what is no address.
		addrs, given, unread string
	}{
		"no annotation":          {"", plain, "10.0.0.11", "", ""},
		"one more":               {"10.8.0.11", plain, "10.0.0.11 10.8.0.11", "10.8.0.11", ""},
		"both families, spaces":  {" 10.8.0.11 ,fd00:8::11", plain, "10.0.0.11 10.8.0.11 fd00:8::11", "10.8.0.11 fd00:8::11", ""},
		"one twice":              {"10.8.0.11,10.8.0.11", plain, "10.0.0.11 10.8.0.11", "10.8.0.11", ""},
		"its own":                {"10.0.0.11", plain, "10.0.0.11", "", ""},
		"empty parts":            {",,10.8.0.11,", plain, "10.0.0.11 10.8.0.11", "10.8.0.11", ""},
		"parts that are none":    {"10.8.0.0/24,x,10.8.0.11", plain, "10.0.0.11 10.8.0.11", "10.8.0.11", "10.8.0.0/24,x"},
		"nothing but nonsense":   {"10.8.0.11 10.8.0.12", plain, "10.0.0.11", "", "10.8.0.11 10.8.0.12"},
		"an IPv4 within an IPv6": {"::ffff:10.8.0.11", plain, "10.0.0.11", "", "::ffff:10.8.0.11"},
		"internal before external, no names": {"10.8.0.11", func(o *corev1.Node) {
			o.Status.Addresses = append([]corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: "10.9.9.9"}, {Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
			}, o.Status.Addresses...)
		}, "10.0.0.11 192.0.2.1 10.8.0.11", "10.8.0.11", ""},
		"a status that cannot be read": {"10.8.0.11", func(o *corev1.Node) { o.Status.Addresses[0].Address = "a" },
			"10.8.0.11", "10.8.0.11", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := object("n", "10.0.0.11", tc.further, corev1.ConditionTrue)
			tc.change(o)
			n := hosts.Of(o)
			got := []string{texts(n.Addrs), texts(n.Further), strings.Join(n.Unread, ",")}
			if diff := cmp.Diff([]string{tc.addrs, tc.given, tc.unread}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestMostOfStatus: a status with more addresses than count leaves out the last ones, and not those of the annotation.
func TestMostOfStatus(t *testing.T) {
	const more = 3
	o := object("n", "10.0.0.11", "10.8.0.11", corev1.ConditionTrue)
	o.Status.Addresses = nil
	for i := range hosts.MostOfStatus + more {
		o.Status.Addresses = append(o.Status.Addresses, corev1.NodeAddress{
			Type: corev1.NodeInternalIP, Address: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}).String(),
		})
	}
	n := hosts.Of(o)
	last := netip.AddrFrom4([4]byte{10, 0, 1, hosts.MostOfStatus - 1})
	if len(n.Internal) != hosts.MostOfStatus || n.Internal[len(n.Internal)-1] != last || n.Uncounted != more ||
		texts(n.Further) != "10.8.0.11" || len(n.Addrs) != len(n.Internal)+1 {
		t.Errorf("%+v", n)
	}
}

// TestOutOfService: the taint counts whatever its effect; no other taint does.
func TestOutOfService(t *testing.T) {
	for taint, want := range map[string]bool{
		corev1.TaintNodeOutOfService: true, corev1.TaintNodeUnreachable: false, corev1.TaintNodeNotReady: false, "x": false,
	} {
		if got := hosts.Of(object("n", "10.0.0.11", "", corev1.ConditionUnknown, "y", taint)).OutOfService; got != want {
			t.Errorf("%s: out of service: %t", taint, got)
		}
	}
}

// TestTable: who claims an address, which Node stands for it, and who may act for it.
func TestTable(t *testing.T) {
	const up, down = corev1.ConditionTrue, corev1.ConditionUnknown
	for name, tc := range map[string]struct {
		nodes []*corev1.Node
		// at are the nodes that claim 10.8.0.11; best stands for it; act are those that may act for it.
		at, best, act string
	}{
		"nobody":               {nil, "", "", ""},
		"its own":              {[]*corev1.Node{object("a", "10.8.0.11", "", down)}, "a", "a", "a"},
		"given":                {[]*corev1.Node{object("a", "10.0.0.1", "10.8.0.11", up), object("b", "10.0.0.2", "", up)}, "a", "a", "a"},
		"given, no own":        {[]*corev1.Node{object("a", "", "10.8.0.11", up)}, "a", "a", "a"},
		"given twice":          {[]*corev1.Node{object("a", "", "10.8.0.11", down), object("b", "", "10.8.0.11", up)}, "a b", "b", ""},
		"own, and given":       {[]*corev1.Node{object("a", "10.8.0.11", "", down), object("b", "", "10.8.0.11", up)}, "a b", "b", "a"},
		"own twice, one ready": {[]*corev1.Node{object("a", "10.8.0.11", "", down), object("b", "10.8.0.11", "", up)}, "a b", "b", "a b"},
		"own twice, none":      {[]*corev1.Node{object("b", "10.8.0.11", "", down), object("a", "10.8.0.11", "", down)}, "a b", "a", "a b"},
		"own and given in one": {[]*corev1.Node{object("a", "10.8.0.11", "10.8.0.11", up)}, "a", "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			table, host := hosts.NewTable(), netip.MustParseAddr("10.8.0.11")
			for range 2 { // the same again changes nothing
				for _, o := range tc.nodes {
					table.Set(hosts.Of(o))
				}
			}
			var at, act []string
			for _, n := range table.At(host) {
				at = append(at, n.Name)
			}
			for _, n := range table.All() {
				if strings.Contains(" "+texts(table.ActsFor(n.Name))+" ", " 10.8.0.11 ") {
					act = append(act, n.Name)
				}
			}
			best, _ := table.Best(host)
			got := []string{strings.Join(at, " "), best.Name, strings.Join(act, " ")}
			if diff := cmp.Diff([]string{tc.at, tc.best, tc.act}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if table.Claimed(host) != (len(at) > 0) {
				t.Errorf("claimed: %t", table.Claimed(host))
			}
			for _, o := range tc.nodes {
				table.Remove(o.Name)
			}
			if table.Claimed(host) || len(table.Addrs()) > 0 || len(table.All()) > 0 {
				t.Errorf("when all are gone: %v", table.Addrs())
			}
		})
	}
}
