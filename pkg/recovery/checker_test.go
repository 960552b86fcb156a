package recovery

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/block"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// TestMoreIsLostThanWasRebuilt: somebody made leases of a pool again, and more of them are lost: then also pods that
// were created after that may have an address, and are waited for. So it is for a pool that is split, whose leases name
// its blocks.
func TestMoreIsLostThanWasRebuilt(t *testing.T) {
	for name, size := range map[string]int{"whole": 0, "split": 29} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t)
			at := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 19, byte(size), i}) }
			host := netip.MustParseAddr("192.168.19.1")
			set := func(p ipam.Pool, available string) ipam.Pool {
				var err error
				if p.Plan, err = ipam.NewPlan(ipam.PlanSpec{
					Net: at(0).String(), Mask: 24, Gateway: at(254).String(), Available: []string{available},
				}); err != nil {
					t.Fatal(err)
				}
				r.index.Pools.SetPool(p)
				return p
			}
			p := set(ipam.Pool{
				Name: "more-" + name, BlockSize: size, Hosts: map[netip.Addr]struct{}{host: {}},
			}, netip.PrefixFrom(at(0), 26).String())
			of := p
			if size > 0 {
				cidr := netip.PrefixFrom(at(8), size)
				of = set(ipam.Pool{
					Name: block.Name(p.Name, cidr), Parent: p.Name, Namespaces: map[string]struct{}{"default": {}},
				}, cidr.String())
			}
			rebuilt := r.newPod(t, "more-"+name+"-rebuilt", at(9))
			r.newPod(t, "more-"+name+"-lost", at(10))
			silent := r.newPod(t, "more-"+name+"-silent")
			r.write(t, lease.Lease{
				Addr: at(9), State: lease.Active, Params: of.Params(), HeldFinalizer: true,
				Updated: time.Now().Add(-time.Minute),
				Holder: lease.Holder{
					Host: host, IfName: "eth0", Namespace: "default", PodName: rebuilt.Name, PodUID: string(rebuilt.UID),
				},
			})
			r.index.Pools.SetNode("node-1", ipam.Node{Addrs: []netip.Addr{host}})
			c := NewChecker(CheckerConfig{
				Cache: r.admin, Index: r.index, Leases: r.leases, Log: slog.New(slog.DiscardHandler),
				Pods: &workload.Pods{
					Cached: r.admin, Live: r.admin, NodeAddrs: func(string) []netip.Addr { return []netip.Addr{host} },
				},
				Changed: func(string) {}, Restarts: func() uint64 { return 0 },
			})
			if _, _, err := c.check(t.Context(), map[string]time.Time{}, true); err != nil {
				t.Fatal(err)
			}
			if text := r.index.Pools.Rebuilding(p.Name); !strings.Contains(text, "default/"+silent.Name) {
				t.Errorf("the pool waits for %q", text)
			}
			if l := r.lease(t, at(10)); l.State != lease.Active || l.Pool != of.Name {
				t.Errorf("the lost lease: %+v", l)
			}
		})
	}
}
