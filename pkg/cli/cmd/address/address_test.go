package address

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func TestNearestPool(t *testing.T) {
	var pools []ipam.Pool
	for name, subnet := range map[string]string{"a": "10.1.0.0/24", "b": "10.1.4.0/24", "six": "2001:db8::/64"} {
		pools = append(pools, ipam.Pool{Name: name, Plan: ipam.Plan{Subnet: netip.MustParsePrefix(subnet)}})
	}
	pools = append(pools, ipam.Pool{Name: "broken", Problem: "mask"})
	for addr, want := range map[string]string{
		"10.1.1.1": "a", "10.1.5.1": "b", "10.1.0.200": "", "10.200.0.1": "a", "192.168.0.1": "",
		"2001:db8:0:1::1": "six", "2001:db8::1": "", "fd00::1": "",
	} {
		if got := nearestPool(netip.MustParseAddr(addr), pools); got != want {
			t.Errorf("%s: got %q, want %q", addr, got, want)
		}
	}
}

func TestFindKinds(t *testing.T) {
	l := lease.Lease{Holder: lease.Holder{Namespace: "shop", PodName: "web-0", ContainerID: "4f1c2a77"}}
	vm := lease.Lease{Holder: lease.Holder{Owner: "web-vip"}}
	for text, tc := range map[string]struct{ may, begins string }{
		"web":       {"pod namespace for", "pod for"},
		"web-0":     {"pod container namespace for", "pod"},
		"shop/we":   {"pod for", "pod"},
		"shop/":     {"pod for", "pod"},
		"bank/web":  {"pod for", ""},
		"4f1":       {"pod namespace for", ""},
		"4f1c":      {"pod container namespace for", "container"},
		"10.0.0.11": {" host for", ""},
		"a/b/c":     {"for", ""},
	} {
		t.Run(text, func(t *testing.T) {
			var may, begins []string
			for _, k := range findKinds() {
				if !k.may(text) {
					continue
				}
				may = append(may, k.flag)
				if k.begins != nil && (k.begins(l, text) || k.begins(vm, text)) {
					begins = append(begins, k.flag)
				}
			}
			if got := strings.Join(may, " "); got != tc.may {
				t.Errorf("it may be %q, want %q", got, tc.may)
			}
			if got := strings.Join(begins, " "); got != tc.begins {
				t.Errorf("%q begin with it, want %q", got, tc.begins)
			}
		})
	}
}

func TestPastRows(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	addr := netip.MustParseAddr("10.1.0.20")
	held := lease.Lease{
		Addr: addr, State: lease.Active, Updated: now, Holder: lease.Holder{Namespace: "shop", PodName: "web-0"},
	}
	released, _ := lease.Release(held, now.Add(time.Hour), lease.Change{})
	reserved, _ := lease.Reserve(released, lease.Params{}, now.Add(2*time.Hour),
		lease.Change{Verb: lease.VerbReserve, By: "ann", Reason: "lab"})
	for name, tc := range map[string]struct {
		lease lease.Lease
		want  []string
	}{
		"never held": {lease.Lease{Addr: addr}, nil},
		"held":       {held, []string{"2026-05-04T03:02:01Z now shop/web-0 holds"}},
		"given up":   {released, []string{"2026-05-04T03:02:01Z 2026-05-04T04:02:01Z shop/web-0 gave up"}},
		"reserved": {reserved, []string{
			"2026-05-04T05:02:01Z now  reserved ann lab",
			" 2026-05-04T05:02:01Z  reserve ann lab",
			"2026-05-04T03:02:01Z 2026-05-04T04:02:01Z shop/web-0 gave up",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range pastRows(tc.lease) {
				var cells []string
				for _, c := range pastColumns() {
					if c.Name != "ADDRESS" && c.Name != "HOST" {
						cells = append(cells, c.Cell(r))
					}
				}
				got = append(got, strings.TrimRight(strings.Join(cells, " "), " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
