package recovery

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// TestOneNodesWord: what the pods of one node report closes no pool that other nodes draw from, and takes no address of
// a pool that is not for the node. It does with evidence of the store, or with reports of a second node.
func TestOneNodesWord(t *testing.T) {
	for i, tc := range []struct {
		name string
		// served: the node that reports draws from the pool. other: so does the other node's pod, which reports, too.
		served, other bool
		// active is what the status of the pool counts.
		active int64
		// rebuilt: a lease of the node was made again a minute ago.
		rebuilt      bool
		closed, made bool
	}{
		{name: "served", served: true, made: true},
		{name: "foreign"},
		{name: "served-rebuilt", served: true, rebuilt: true, made: true},
		{name: "served-fewer", served: true, active: 2, closed: true, made: true},
		{name: "foreign-fewer", active: 2, closed: true, made: true},
		{name: "served-both", served: true, other: true, closed: true, made: true},
		{name: "foreign-both", other: true, closed: true, made: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReplica(t)
			at := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 20, byte(i), n}) }
			host := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 20, n}) }
			hosts := map[string]netip.Addr{"bad": host(1), "good": host(2), "third": host(3)}
			p := ipam.Pool{Name: "lone-" + tc.name, Hosts: map[netip.Addr]struct{}{host(2): {}, host(3): {}}}
			if tc.served {
				p.Hosts[host(1)] = struct{}{}
			}
			var err error
			if p.Plan, err = ipam.NewPlan(ipam.PlanSpec{
				Net: at(0).String(), Mask: 24, Gateway: at(254).String(),
				Available: []string{netip.PrefixFrom(at(0), 26).String()},
			}); err != nil {
				t.Fatal(err)
			}
			r.index.Pools.SetPool(p)
			r.index.Pools.SetNode("bad", ipam.Node{Addrs: []netip.Addr{host(1)}})
			o := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Spec: v1.BCSNetPoolSpec{
				Net: at(0).String(), Mask: 24, Gateway: at(254).String(), AvailableIPs: []string{at(9).String()},
				Hosts: []string{host(2).String()},
			}}
			if err := r.admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.admin.Delete(t.Context(), o) })
			if o.Status.Active = tc.active; tc.active > 0 {
				if err := r.admin.Status().Update(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			r.write(t, lease.Lease{
				Addr: at(9), State: lease.Active, Params: p.Params(), HeldFinalizer: true, Updated: time.Now(),
				Holder: lease.Holder{Host: host(2), ContainerID: "c-" + tc.name, IfName: "eth0", Owner: "vm-" +
					tc.name},
			})
			pod := func(name, node string, addrs ...netip.Addr) *corev1.Pod {
				return r.newPodOn(t, node, "lone-"+tc.name+"-"+name, addrs...)
			}
			pod("reports", "bad", at(10))
			if tc.rebuilt {
				mine := pod("rebuilt", "bad", at(12))
				r.write(t, lease.Lease{
					Addr: at(12), State: lease.Active, Params: p.Params(), HeldFinalizer: true,
					Updated: time.Now().Add(-time.Minute),
					Holder: lease.Holder{
						Host: host(1), IfName: "eth0", Namespace: "default", PodName: mine.Name,
						PodUID: string(mine.UID),
					},
				})
			}
			silent := pod("silent", "third")
			if tc.other {
				pod("other", "good", at(11))
			} else {
				pod("other", "good")
			}
			c := NewChecker(CheckerConfig{
				Cache: r.admin, Index: r.index, Leases: r.leases, Log: slog.New(slog.DiscardHandler),
				Pods: &workload.Pods{
					Cached: r.admin, Live: r.admin,
					NodeAddrs: func(node string) []netip.Addr { return []netip.Addr{hosts[node]} },
				},
				Changed: func(string) {}, Restarts: func() uint64 { return 0 },
			})
			_, lone, err := c.check(t.Context(), map[string]time.Time{}, true)
			if err != nil {
				t.Fatal(err)
			}
			if text := r.index.Pools.Rebuilding(p.Name); strings.Contains(text, silent.Name) != tc.closed {
				t.Errorf("the pool waits for %q", text)
			}
			if l := r.lease(t, at(10)); (l.State == lease.Active) != tc.made {
				t.Errorf("the lease that the pod reports: %+v", l)
			}
			if lone == tc.closed {
				t.Errorf("lone is %t", lone)
			}
			if tc.other || tc.closed || !tc.made {
				return
			}
			// A second node reports while it is checked again: the pool waits for the others after all.
			pod("later", "good", at(13))
			if _, _, err := c.check(t.Context(), map[string]time.Time{}, false); err != nil {
				t.Fatal(err)
			}
			if text := r.index.Pools.Rebuilding(p.Name); !strings.Contains(text, silent.Name) {
				t.Errorf("after two nodes have reported, the pool waits for %q", text)
			}
		})
	}
}
