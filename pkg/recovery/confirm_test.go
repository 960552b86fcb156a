package recovery

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/workload"
	"github.com/bcsnet/bcsnet/test/intercept"
)

// TestManyReportsAreListed: a node whose pods report many addresses that nobody holds costs a few lists, and not a read
// of each address and of each pod. All leases are made before the replica is ready.
func TestManyReportsAreListed(t *testing.T) {
	const pods = 40
	r := newReplica(t)
	host, other := netip.MustParseAddr("192.168.21.1"), netip.MustParseAddr("192.168.21.2")
	p := ipam.Pool{Name: "many-reports", Hosts: map[netip.Addr]struct{}{host: {}, other: {}}}
	var err error
	if p.Plan, err = ipam.NewPlan(ipam.PlanSpec{
		Net: "10.21.0.0", Mask: 24, Gateway: "10.21.0.254", Available: []string{"10.21.0.0/25"},
	}); err != nil {
		t.Fatal(err)
	}
	r.index.Pools.SetPool(p)
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 21, 0, byte(1 + i)}) }
	for i := range pods {
		r.newPodOn(t, "many", fmt.Sprintf("many-%d", i), at(i))
	}
	r.newPodOn(t, "quiet", "many-quiet") // else one node is enough to close the pool
	hosts := map[string]netip.Addr{"many": host, "quiet": other}
	c := NewChecker(CheckerConfig{
		Cache: r.admin, Index: r.index, Leases: r.leases, Log: slog.New(slog.DiscardHandler),
		Pods: &workload.Pods{
			Cached: r.admin, Live: r.admin,
			NodeAddrs: func(node string) []netip.Addr { return []netip.Addr{hosts[node]} },
		},
		Changed: func(string) {}, Restarts: func() uint64 { return 0 },
	})
	r.tap.Forget()
	if _, lone, err := c.check(t.Context(), map[string]time.Time{}, true); err != nil || !lone {
		t.Fatalf("lone is %t: %v", lone, err)
	}
	reads := intercept.All(intercept.Method(http.MethodGet), func(r *http.Request) bool { return !intercept.Watches(r) })
	// The lists of pools and of pods for the evidence and two plans, and those of the leases and the pods.
	if n := r.tap.Count(reads); n > 8 {
		t.Errorf("%d reads for the reports of %d pods", n, pods)
	}
	for i := range pods {
		if l := r.lease(t, at(i)); l.State != lease.Active {
			t.Errorf("the lease of %s: %+v", at(i), l)
		}
	}
}

// TestFewReportsAreReadAtOnce: below the number from which objects are listed, each is read once.
func TestFewReportsAreReadAtOnce(t *testing.T) {
	for _, n := range []int{1, listFrom - 1, listFrom, listFrom + 1} {
		var leases []lease.Lease
		for i := range n {
			leases = append(leases, lease.Lease{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})})
		}
		gets, lists := make(chan netip.Addr, n), 0
		read, err := readGroups(leases, func(lease.Lease) string { return "all" }, func(l lease.Lease) netip.Addr { return l.Addr },
			func(a netip.Addr) (string, bool, error) {
				gets <- a
				return a.String(), true, nil
			},
			func(_ string, found func(netip.Addr, string)) error {
				lists++
				for _, l := range leases {
					found(l.Addr, l.Addr.String())
				}
				found(netip.IPv4Unspecified().Next(), "not asked for")
				return nil
			})
		wantLists := 0
		if n >= listFrom {
			wantLists = 1
		}
		if err != nil || lists != wantLists || len(gets) != n*(1-wantLists) || len(read) != n {
			t.Errorf("%d leases: %d lists, %d reads, %d objects: %v", n, lists, len(gets), len(read), err)
		}
	}
}
