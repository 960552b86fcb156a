package cli

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// poolOn is a pool as the allocator sees it, with the host 10.0.0.11.
func poolOn(t *testing.T, cidr, gateway string, available ...string) ipam.Pool {
	t.Helper()
	subnet := netip.MustParsePrefix(cidr)
	plan, err := ipam.NewPlan(ipam.PlanSpec{Net: subnet.Addr().String(), Mask: subnet.Bits(), Gateway: gateway, Available: available})
	if err != nil {
		t.Fatal(err)
	}
	return ipam.Pool{Name: "blue", Plan: plan, Hosts: map[netip.Addr]struct{}{netip.MustParseAddr("10.0.0.11"): {}}}
}

func heldOn(addr, host string) lease.Lease {
	l := lease.Lease{Addr: netip.MustParseAddr(addr), State: lease.Active, Params: lease.Params{Pool: "blue"}}
	l.Namespace, l.PodName = "default", "web-0"
	if host != "" {
		l.Host = netip.MustParseAddr(host)
	}
	return l
}

func setApart(addr string) lease.Lease {
	return lease.Lease{Addr: netip.MustParseAddr(addr), State: lease.Reserved, Params: lease.Params{Pool: "blue"}}
}

// TestEffects: what a change of a pool means for the leases that exist.
func TestEffects(t *testing.T) {
	const subnet, gateway = "10.1.0.0/24", "10.1.0.1"
	before := poolOn(t, subnet, gateway, "10.1.0.20-10.1.0.29")
	hostless := before
	hostless.Hosts = nil
	moved := poolOn(t, subnet, "10.1.0.254", "10.1.0.20-10.1.0.29")
	broken := before
	broken.Problem = "it makes no sense"
	green := poolOn(t, subnet, gateway, "10.1.0.28-10.1.0.33")
	green.Name = "green"
	held := func(addr string) lease.Lease {
		l := heldOn(addr, "10.0.0.11")
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
		"an overlap that there was": {before: before, after: poolOn(t, subnet, gateway, "10.1.0.20-10.1.0.30"), want: []string{
			"1 address would be in pool green, too: 10.1.0.30", "1 address more: 10.1.0.30",
		}},
		"fewer": {
			before: before, after: poolOn(t, subnet, gateway, "10.1.0.22-10.1.0.29"),
			leases: []lease.Lease{held("10.1.0.20"), setApart("10.1.0.21"), held("10.1.0.22"), held("10.1.0.200")}, touches: true,
			want: []string{
				"2 addresses that are held would drain: 10.1.0.20 (default/web-0 on 10.0.0.11), 10.1.0.21 (reserved)",
				"2 addresses fewer: 10.1.0.20-10.1.0.21",
			},
		},
		"fewer and free": {before: before, after: poolOn(t, subnet, gateway, "10.1.0.22-10.1.0.29"), want: []string{
			"2 addresses fewer: 10.1.0.20-10.1.0.21",
		}},
		"host": {
			before: before, after: hostless, leases: []lease.Lease{held("10.1.0.20"), setApart("10.1.0.21")}, touches: true,
			want: []string{
				"host 10.0.0.11 could no longer draw and holds 1 address, which stays until its pod ends",
				"no host could draw from the pool any more",
			},
		},
		"host that holds nothing": {before: before, after: hostless, want: []string{"no host could draw from the pool any more"}},
		"host that was not in it": {before: hostless, after: hostless, leases: []lease.Lease{held("10.1.0.20")}},
		"gateway":                 {before: before, after: moved, want: []string{"new leases would get the gateway 10.1.0.254"}},
		"gateway that pods have":  {before: before, after: moved, leases: []lease.Lease{held("10.1.0.20"), setApart("10.1.0.21")}, touches: true, want: []string{"new leases would get the gateway 10.1.0.254; 1 address in use keeps another until its pod ends"}},
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

// TestTree: networks by name, pools of none last; hosts and addresses in the order of their numbers.
func TestTree(t *testing.T) {
	named := func(name, network string, hosts ...string) resource.Pool {
		p := &v1.BCSNetPool{Spec: v1.BCSNetPoolSpec{Net: "10.1.0.0", Mask: 24, Network: network, Hosts: hosts}}
		p.Name = name
		return resource.Pool{BCSNetPool: p}
	}
	pools := []resource.Pool{named("alone", ""), named("blue", "z", "10.0.0.9", "10.0.0.11", "10.0.0.11", "10.0.0.12"), named("six", "a")}
	taken := []lease.Lease{heldOn("10.1.0.100", "10.0.0.11"), heldOn("10.1.0.20", "10.0.0.11"), heldOn("10.1.0.7", "10.0.0.9"), setApart("10.1.0.3")}
	tests := map[string]struct {
		depth int
		want  string
	}{
		"networks": {1, `a             1 pool
z             1 pool, 3 active, 1 reserved
(no network)  1 pool
`},
		"all": {0, "a             1 pool\n`-- six  10.1.0.0/24\n" + `z             1 pool, 3 active, 1 reserved
` + "`-- blue  10.1.0.0/24, 3 active, 1 reserved\n" + `    |-- (no host)  1 address
` + "    |   `-- 10.1.0.3  reserved\n" + `    |-- 10.0.0.9   1 address
` + "    |   `-- 10.1.0.7  default/web-0\n" + `    |-- 10.0.0.11  2 addresses
    |   |-- 10.1.0.20   default/web-0
` + "    |   `-- 10.1.0.100  default/web-0\n    `-- 1 host that holds nothing\n(no network)  1 pool\n`-- alone  10.1.0.0/24\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var trees []printer.Branch
			for _, n := range growTree(pools, taken, nil) {
				trees = append(trees, n.branch())
			}
			var b bytes.Buffer
			var ascii terminal.Terminal
			printer.DrawTree(&b, trees, printer.StrokesOf(ascii), tc.depth)
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPaintDiff(t *testing.T) {
	const text = "--- a\n+++ b\n@@ -1 +1 @@\n same\n-old\n+new\n"
	plain, colored := terminal.Terminal{}, terminal.Terminal{Color: true}
	if got := paintDiff(plain, text); got != text {
		t.Errorf("without colour: %q", got)
	}
	const want = "\x1b[31m--- a\x1b[0m\n\x1b[32m+++ b\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n same\n\x1b[31m-old\x1b[0m\n\x1b[32m+new\x1b[0m\n"
	if got := paintDiff(colored, text); got != want {
		t.Errorf("got %q", got)
	}
}
