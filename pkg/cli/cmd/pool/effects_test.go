package pool

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// poolWith is a pool as the allocator sees it, with the host 10.0.0.11.
func poolWith(t *testing.T, cidr, gateway string, available ...string) ipam.Pool {
	t.Helper()
	subnet := netip.MustParsePrefix(cidr)
	plan, err := ipam.NewPlan(ipam.PlanSpec{
		Net: subnet.Addr().String(), Mask: subnet.Bits(), Gateway: gateway, Available: available,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ipam.Pool{Name: "blue", Plan: plan, Hosts: map[netip.Addr]struct{}{netip.MustParseAddr("10.0.0.11"): {}}}
}

func activeOn(addr, host string) lease.Lease {
	l := lease.Lease{Addr: netip.MustParseAddr(addr), State: lease.Active, Params: lease.Params{Pool: "blue"}}
	l.Namespace, l.PodName = "default", "web-0"
	if host != "" {
		l.Host = netip.MustParseAddr(host)
	}
	return l
}

func reserved(addr string) lease.Lease {
	return lease.Lease{Addr: netip.MustParseAddr(addr), State: lease.Reserved, Params: lease.Params{Pool: "blue"}}
}

// TestEffects: what a change of a pool means for the leases that exist.
func TestEffects(t *testing.T) {
	const subnet, gateway = "10.1.0.0/24", "10.1.0.1"
	before := poolWith(t, subnet, gateway, "10.1.0.20-10.1.0.29")
	hostless := before
	hostless.Hosts = nil
	moved := poolWith(t, subnet, "10.1.0.254", "10.1.0.20-10.1.0.29")
	broken := before
	broken.Problem = "it makes no sense"
	green := poolWith(t, subnet, gateway, "10.1.0.28-10.1.0.33")
	green.Name = "green"
	held := func(addr string) lease.Lease {
		l := activeOn(addr, "10.0.0.11")
		l.Gateway = netip.MustParseAddr(gateway)
		return l
	}
	tests := map[string]struct {
		before, after ipam.Pool
		leases        []lease.Lease
		want          []string
		touches       bool
	}{
		"nothing": {before: before, after: before, leases: []lease.Lease{held("10.1.0.20")}},
		"new": {after: before, want: []string{
			"2 addresses would be in pool green, too: 10.1.0.28-10.1.0.29", "10 addresses more: 10.1.0.20-10.1.0.29",
		}},
		"an overlap that there was": {before: before, after: poolWith(t, subnet, gateway, "10.1.0.20-10.1.0.30"), want: []string{
			"1 address would be in pool green, too: 10.1.0.30", "1 address more: 10.1.0.30",
		}},
		"fewer": {
			before: before, after: poolWith(t, subnet, gateway, "10.1.0.22-10.1.0.29"),
			leases:  []lease.Lease{held("10.1.0.20"), reserved("10.1.0.21"), held("10.1.0.22"), held("10.1.0.200")},
			touches: true,
			want: []string{
				"2 addresses that are held would drain: 10.1.0.20 (default/web-0 on 10.0.0.11), 10.1.0.21 (reserved)",
				"2 addresses fewer: 10.1.0.20-10.1.0.21",
			},
		},
		"fewer and free": {before: before, after: poolWith(t, subnet, gateway, "10.1.0.22-10.1.0.29"), want: []string{
			"2 addresses fewer: 10.1.0.20-10.1.0.21",
		}},
		"host": {
			before: before, after: hostless, leases: []lease.Lease{held("10.1.0.20"), reserved("10.1.0.21")}, touches: true,
			want: []string{
				"host 10.0.0.11 could no longer draw and holds 1 address, which stays until its pod ends",
				"no host could draw from the pool any more",
			},
		},
		"host that holds nothing": {before: before, after: hostless, want: []string{"no host could draw from the pool any more"}},
		"host that was not in it": {before: hostless, after: hostless, leases: []lease.Lease{held("10.1.0.20")}},
		"gateway":                 {before: before, after: moved, want: []string{"new leases would get the gateway 10.1.0.254"}},
		"gateway that pods have":  {before: before, after: moved, leases: []lease.Lease{held("10.1.0.20"), reserved("10.1.0.21")}, touches: true, want: []string{"new leases would get the gateway 10.1.0.254; 1 address in use keeps another until its pod ends"}},
		"a spec that cannot be read": {before: broken, after: before, leases: []lease.Lease{held("10.1.0.20")}, want: []string{
			"2 addresses would be in pool green, too: 10.1.0.28-10.1.0.29", "10 addresses more: 10.1.0.20-10.1.0.29",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			e := effectsOf(tc.before, tc.after, tc.leases, []ipam.Pool{green})
			var got []string
			for _, line := range e.say() {
				got = append(got, line.text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if e.touches() != tc.touches {
				t.Errorf("touches is %t", e.touches())
			}
		})
	}
}
