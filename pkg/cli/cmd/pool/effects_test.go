package pool

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cli/clitest"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// TestEffects: what a change of a pool means for the leases that exist.
func TestEffects(t *testing.T) {
	const subnet, gateway = "10.1.0.0/24", "10.1.0.1"
	before := clitest.Pool(t, subnet, gateway, "10.1.0.20-10.1.0.29")
	hostless := before
	hostless.Hosts = nil
	moved := clitest.Pool(t, subnet, "10.1.0.254", "10.1.0.20-10.1.0.29")
	broken := before
	broken.Problem = "it makes no sense"
	green := clitest.Pool(t, subnet, gateway, "10.1.0.28-10.1.0.33")
	green.Name = "green"
	held := func(addr string) lease.Lease {
		l := clitest.Active(addr, "10.0.0.11")
		l.Given = lease.NewGiven(before.Settings())
		return l
	}
	without := func(addr string) lease.Lease {
		l := clitest.Active(addr, "10.0.0.11")
		l.Given = lease.NewGiven(lease.Settings{})
		return l
	}
	linked := before
	linked.Link = lease.Link{
		VLAN: 100, MTU: 9000, Routes: []lease.Route{{Dst: netip.MustParsePrefix("10.8.0.0/16")}},
		DNS: &lease.DNS{Nameservers: []string{"10.0.0.2"}, Search: []string{"corp.example"}},
	}
	quoted := before
	quoted.MaxPerNamespace, quoted.Quotas = 1, map[string]int{"batch": 0, "shop": 4}
	const kept = "; 1 address in use keeps what it was given until its pod ends"
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
		"an overlap that there was": {before: before, after: clitest.Pool(t, subnet, gateway, "10.1.0.20-10.1.0.30"), want: []string{
			"1 address would be in pool green, too: 10.1.0.30", "1 address more: 10.1.0.30",
		}},
		"fewer": {
			before: before, after: clitest.Pool(t, subnet, gateway, "10.1.0.22-10.1.0.29"),
			leases:  []lease.Lease{held("10.1.0.20"), clitest.Reserved("10.1.0.21"), held("10.1.0.22"), held("10.1.0.200")},
			touches: true,
			want: []string{
				"2 addresses that are held would drain: 10.1.0.20 (default/web-0 on 10.0.0.11), 10.1.0.21 (reserved)",
				"2 addresses fewer: 10.1.0.20-10.1.0.21",
			},
		},
		"fewer and free": {before: before, after: clitest.Pool(t, subnet, gateway, "10.1.0.22-10.1.0.29"), want: []string{
			"2 addresses fewer: 10.1.0.20-10.1.0.21",
		}},
		"host": {
			before: before, after: hostless, leases: []lease.Lease{held("10.1.0.20"), clitest.Reserved("10.1.0.21")}, touches: true,
			want: []string{
				"host 10.0.0.11 could no longer draw and holds 1 address, which stays until its pod ends",
				"no host could draw from the pool",
			},
		},
		"host that holds nothing": {before: before, after: hostless, want: []string{"no host could draw from the pool"}},
		"host that was not in it": {before: hostless, after: hostless, leases: []lease.Lease{held("10.1.0.20")}},
		"gateway":                 {before: before, after: moved, want: []string{"new leases would get the gateway 10.1.0.254"}},
		"gateway where there was none": {
			before: clitest.Pool(t, subnet, "", "10.1.0.20-10.1.0.29"), after: before,
			leases: []lease.Lease{without("10.1.0.20")}, touches: true,
			want: []string{"new leases would get the gateway 10.1.0.1" + kept},
		},
		"gateway that a pod has the address of": {
			before: clitest.Pool(t, subnet, "", "10.1.0.20-10.1.0.29"), after: clitest.Pool(t, subnet, "10.1.0.20", "10.1.0.20-10.1.0.29"),
			leases: []lease.Lease{without("10.1.0.20")}, touches: true,
			want: []string{
				"1 address that is held would drain: 10.1.0.20 (default/web-0 on 10.0.0.11)",
				"10.1.0.20, the gateway, is held by default/web-0 on host 10.0.0.11: pods with that gateway would send to it",
				"new leases would get the gateway 10.1.0.20" + kept,
				"1 address fewer: 10.1.0.20",
			},
		},
		"no gateway any more": {
			before: before, after: clitest.Pool(t, subnet, "", "10.1.0.20-10.1.0.29"),
			leases: []lease.Lease{held("10.1.0.20")}, touches: true,
			want: []string{"new leases would get no gateway" + kept},
		},
		"gateway that pods have": {before: before, after: moved, leases: []lease.Lease{held("10.1.0.20"), clitest.Reserved("10.1.0.21")}, touches: true, want: []string{"new leases would get the gateway 10.1.0.254" + kept}},
		"gateway of a lease of which nothing is known": {
			before: before, after: moved, leases: []lease.Lease{clitest.Active("10.1.0.20", "10.0.0.11")}, touches: true,
			want: []string{
				"new leases would get the gateway 10.1.0.254",
				"for 1 address in use the settings that it was given are unknown: it keeps that until its pod ends",
			},
		},
		"VLAN, MTU, routes and DNS": {
			before: before, after: linked, leases: []lease.Lease{held("10.1.0.20"), clitest.Reserved("10.1.0.21")},
			want: []string{
				"new leases would get VLAN 100" + kept, "new leases would get MTU 9000" + kept,
				"new leases would get route 10.8.0.0/16 via 10.1.0.1" + kept,
				"new leases would get DNS 10.0.0.2, search corp.example" + kept,
			},
		},
		"VLAN, MTU, routes and DNS as pods have them": {
			before: linked, after: before, leases: []lease.Lease{held("10.1.0.20")},
			want: []string{
				"new leases would get no VLAN", "new leases would get no MTU", "new leases would get no routes", "new leases would get no DNS",
			},
		},
		"quotas": {
			before: before, after: quoted, leases: []lease.Lease{held("10.1.0.20"), held("10.1.0.21"), clitest.Reserved("10.1.0.22")},
			want: []string{
				"namespace batch has 0 of the 0 that it may have: it would get no further address",
				"namespace default has 2 of the 1 that it may have: it would get no further address, and keeps what it has",
			},
		},
		"quotas that there were": {before: quoted, after: quoted, leases: []lease.Lease{held("10.1.0.20"), held("10.1.0.21")}},
		"a spec that cannot be read": {before: broken, after: before, leases: []lease.Lease{held("10.1.0.20")}, want: []string{
			"2 addresses would be in pool green, too: 10.1.0.28-10.1.0.29", "10 addresses more: 10.1.0.20-10.1.0.29",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			given := []ipam.Pool{green}
			if tc.before.Name != "" {
				given = append(given, tc.before)
			}
			fit := resource.NewFit(given, tc.after)
			was, is := fit.Pool(tc.after.Name)
			e := effectsOf(was, is, tc.leases, fit)
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
