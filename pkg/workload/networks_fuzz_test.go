package workload

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// FuzzNetworkStatus: whatever the annotation says, the pod has each address once and an interface for each, none that
// does not parse, and those of its status first; the cache's copy says the same.
func FuzzNetworkStatus(f *testing.F) {
	for _, text := range []string{
		`[{"name":"default/a","interface":"eth0","ips":["10.0.0.9","2001:db8::9"],"default":true},{"interface":"net1","ips":["10.1.0.9"]}]`,
		`[{"ips":["10.0.0.9","x",""]}]`, `[{}]`, `[]`, `null`, `{}`, `[null]`, `[{"ips":null}]`, `[{"ips":"10.0.0.9"}]`, ``, `[`,
	} {
		f.Add(text, "10.0.0.9")
	}
	f.Fuzz(func(t *testing.T, text, ip string) {
		o := &corev1.Pod{}
		o.Annotations = map[string]string{NetworkStatus: text}
		o.Status.PodIPs = []corev1.PodIP{{IP: ip}}
		p := FromObject(o)
		if len(p.Addrs) != len(p.IfNames) {
			t.Fatalf("%d addresses and %d interfaces", len(p.Addrs), len(p.IfNames))
		}
		for i, a := range p.Addrs {
			if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
				t.Errorf("address %v", a)
			}
			for _, other := range p.Addrs[:i] {
				if other == a {
					t.Errorf("%s twice", a)
				}
			}
		}
		if first, err := ipaddr.ParseAddr(ip); err == nil && (p.Addrs[0] != first || p.IfNames[0] != lease.DefaultIfName) {
			t.Errorf("the first is %s on %s, not %s", p.Addrs[0], p.IfNames[0], first)
		}
		if diff := cmp.Diff(p, FromObject(Trim(o)), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("-pod +cached:\n%s", diff)
		}
	})
}
