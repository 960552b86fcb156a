package view

import (
	"net/netip"
	"strings"
	"testing"

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
	kept := lease.Lease{Retention: lease.Retention{Claim: "shop/web-claim"}}
	answered := lease.Lease{State: lease.Reserved, Conflict: &lease.Conflict{
		MAC: "52:54:00:12:34:56", Outcome: lease.ConflictQuarantined,
	}}
	vm := lease.Lease{Holder: lease.Holder{Owner: "web-vip"}}
	for text, tc := range map[string]struct{ may, begins string }{
		"web":               {"pod namespace claim for", "pod claim for"},
		"web-0":             {"pod container namespace claim for", "pod"},
		"shop/we":           {"pod claim for", "pod claim"},
		"shop/":             {"pod claim for", "pod claim"},
		"bank/web":          {"pod claim for", ""},
		"4f1":               {"pod namespace claim for", ""},
		"4f1c":              {"pod container namespace claim for", "container"},
		"10.0.0.11":         {" host for", ""},
		"a/b/c":             {"for", ""},
		"02:02:0a:00:00:0b": {"mac pod container namespace claim for", ""},
		"52:54:00:12:34:56": {"mac pod container namespace claim for", "mac"},
	} {
		t.Run(text, func(t *testing.T) {
			var may, begins []string
			for _, k := range FindKinds() {
				if !k.May(text) {
					continue
				}
				may = append(may, k.Flag)
				if k.begins != nil && (k.begins(l, text) || k.begins(vm, text) || k.begins(kept, text) || k.begins(answered, text)) {
					begins = append(begins, k.Flag)
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

// TestPageLink: a page has the same path for commands, alerts and pages.
func TestPageLink(t *testing.T) {
	p := PageLink{text: "https://pools.example.com/"}
	if err := p.Validate(false); err != nil {
		t.Fatal(err)
	}
	for _, tc := range [][3]string{
		{"pool", "blue", "/pool/blue"}, {"ip", "fd00:0::1", "/ip/fd00::1"}, {"node", "node-1", "/host/node-1"},
		{"claim", "shop/db", "/claim/shop/db"}, {"pod", "shop/web-0", "/why?pod=shop%2Fweb-0"},
	} {
		if f := p.With(nil, tc[0], tc[1]); f[0].Text != "https://pools.example.com"+tc[2] {
			t.Errorf("%s %s: %s", tc[0], tc[1], f[0].Text)
		}
	}
	for _, bad := range []string{"http://pools.example.com", "https://a/b", "pools", "https://u@h", "https://h?x"} {
		if err := (&PageLink{text: bad}).Validate(false); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if err := p.Validate(true); err == nil {
		t.Error("it is taken with -o json")
	}
	if f := (&PageLink{}).With(nil, "pool", "blue"); f != nil {
		t.Errorf("nobody asked for %v", f)
	}
}
