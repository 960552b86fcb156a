package doctor_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// BenchmarkExamine runs all checks over 65,536 addresses, 20,000 of them held by pods and each a second
// time by a pod that is gone, and 500 nodes.
func BenchmarkExamine(b *testing.B) {
	s := healthy()
	s.Leases, s.Pods, s.Nodes, s.Pools = nil, nil, nil, nil
	var hosts []string
	for i := range 500 {
		h := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		hosts = append(hosts, h.String())
		s.Nodes = append(s.Nodes, doctor.Node{Name: fmt.Sprintf("node-%d", i), Addrs: []netip.Addr{h}, Ready: true})
	}
	for i := range 16 {
		s.Pools = append(s.Pools, pool(fmt.Sprintf("p-%d", i), fmt.Sprintf("10.1.%d.0/20", i*16), func(p *v1.BCSNetPool) {
			p.Spec.Mask, p.Spec.Net, p.Spec.Gateway, p.Spec.Hosts = 16, "10.1.0.0", "10.1.0.1", hosts
		}))
	}
	for i := range 65536 {
		a := fmt.Sprintf("10.1.%d.%d", i>>8, i&255)
		s.Leases = append(s.Leases, leased(a, fmt.Sprintf("pod-%d", i%40000), func(l *lease.Lease) {
			l.Pool, l.Host = fmt.Sprintf("p-%d", i>>12), s.Nodes[i%500].Addrs[0]
		}))
		if i < 20000 {
			s.Pods = append(s.Pods, pod(fmt.Sprintf("pod-%d", i), a))
		}
	}
	checks := doctor.Checks()
	b.ReportAllocs()
	for b.Loop() {
		if n := len(doctor.Examine(s, checks).Findings); n < 40000 {
			b.Fatalf("%d findings", n)
		}
	}
}
