package ipamclaim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func errDiffers(got, want status) error {
	return fmt.Errorf("the IPAMClaim shows %+v, want %+v", got, want)
}

// The addresses that an IPAMClaim asks for are those that its interface gets, or it gets none and says why.
func TestRequests(t *testing.T) {
	install(t, unchecked)
	c := start(t)
	s := newSite(t, c.URL, "v4", "v6")
	v6 := func(n int) string { return fmt.Sprintf("2001:db8:%d::%x", s.number(), n) }
	other := s.launch(hostA, networks("other"))
	s.claim("other", s.address(9)+"/24", v6(9)+"/64")
	if got := other.add(); !cmp.Equal(got, []string{s.address(9), v6(9)}) {
		t.Errorf("two families: %v", got)
	}
	s.shows("other", status{
		ips: s.address(9) + "/24 " + v6(9) + "/64", ownerPod: other.pod.Name, condition: "True/SuccessfulAllocation",
	})
	cases := map[string]struct {
		requests []string
		want     []string
		reason   ipam.Reason
		parts    []string
	}{
		"without any: one of each family": {want: []string{"", ""}},
		"one family alone":                {requests: []string{s.address(5) + "/24"}, want: []string{s.address(5)}},
		"the other family alone":          {requests: []string{v6(5) + "/64"}, want: []string{v6(5)}},
		"without a prefix":                {requests: []string{s.address(6) + "/32"}, want: []string{s.address(6)}},
		"in no pool":                      {requests: []string{"192.0.2.1/24"}, reason: ipam.ReasonAddressNotInPool, parts: []string{"192.0.2.1"}},
		"a family that no pool has":       {requests: []string{"fd00::1/64"}, reason: ipam.ReasonAddressNotInPool, parts: []string{"fd00::1"}},
		"one in a pool, one not": {
			requests: []string{s.address(7) + "/24", "fd00::1/64"}, reason: ipam.ReasonAddressNotInPool, parts: []string{"fd00::1"},
		},
		"held by another": {
			requests: []string{s.address(9) + "/24"}, reason: ipam.ReasonPoolExhausted, parts: []string{s.address(9), "is held by", other.pod.Name},
		},
		"another prefix than the pool's": {
			requests: []string{s.address(8) + "/16"}, reason: ipam.ReasonClaimConflict, parts: []string{"/16", "/24"},
		},
		"nonsense": {requests: []string{"x"}, reason: ipam.ReasonClaimConflict, parts: []string{`"x"`, "spec.ipRequests"}},
		"two of a family": {
			requests: []string{s.address(1) + "/24", s.address(2) + "/24"}, reason: ipam.ReasonClaimConflict, parts: []string{"second address"},
		},
	}
	// In order: the one without any, which may get an address that another asks for, comes last.
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T = t
			claim := "vm." + strings.ReplaceAll(strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return r
				}
				return ' '
			}, name), " ", "")
			s.claim(claim, tc.requests...)
			pod := s.launch(hostB, networks(claim))
			if tc.reason != "" {
				pod.refused(tc.reason, tc.parts...)
				s.shows(claim, status{condition: "False/" + string(tc.reason)})
				return
			}
			got := pod.add()
			if len(got) != len(tc.want) || tc.want[0] != "" && !cmp.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			pod.stop()
			if again := s.launch(hostA, networks(claim)).addSoon(); !cmp.Equal(again, got) {
				t.Errorf("the next pod has %v, not %v", again, got)
			}
		})
	}
}

// What the pod's networks say has to make sense where it names IPAMClaims.
func TestNetworks(t *testing.T) {
	install(t, asPublished)
	c := start(t)
	s := newSite(t, c.URL)
	s.claim("vm.a")
	element := func(more string) string { return `{"name":"n","ipam-claim-reference":"vm.a"` + more + `}` }
	for name, tc := range map[string]struct {
		networks, ifName string
		reason           ipam.Reason
		parts            []string
	}{
		"no JSON": {
			networks: `[{"ipam-claim-reference":`, reason: ipam.ReasonInvalidAnnotation, parts: []string{"not a JSON list"},
		},
		"an object": {networks: element(""), reason: ipam.ReasonInvalidAnnotation, parts: []string{"not a JSON list"}},
		"a number for a name": {
			networks: `[{"ipam-claim-reference":7}]`, reason: ipam.ReasonInvalidAnnotation, parts: []string{"not a JSON list"},
		},
		"no name of an object": {
			networks: `[{"interface":"` + ifName + `","ipam-claim-reference":"a/b"}]`, reason: ipam.ReasonInvalidAnnotation,
			parts: []string{`"a/b"`, "not the name of an object"},
		},
		"two for one interface": {
			networks: `[` + element(`,"interface":"`+ifName+`"`) + `,{"interface":"` + ifName + `","ipam-claim-reference":"vm.b"}]`,
			reason:   ipam.ReasonInvalidAnnotation, parts: []string{"two IPAMClaims", "vm.b"},
		},
		"one for two interfaces": {
			networks: `[` + element(`,"interface":"`+ifName+`"`) + `,` + element("") + `]`,
			reason:   ipam.ReasonInvalidAnnotation, parts: []string{"two interfaces", "net2"},
		},
		"another interface than the IPAMClaim's": {
			networks: `[{"name":"first"},` + element("") + `]`, ifName: "net2", reason: ipam.ReasonClaimConflict,
			parts: []string{"is for interface " + ifName, "net2"},
		},
		"an IPAMClaim that is not there": {
			networks: networks("vm.none"), reason: ipam.ReasonClaimNotFound, parts: []string{"vm.none does not exist"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T = t
			pod := s.launch(hostA, tc.networks)
			if tc.ifName == "" {
				tc.ifName = ifName
			}
			if err := refusedWith(pod.ask("POST", tc.ifName), tc.reason, tc.parts...); err != nil {
				t.Error(err)
			}
		})
	}
	// Elements that name none are Multus' alone, however they are written.
	if has := s.launch(hostA, "a, default/b@net7").add(); len(has) != 1 {
		t.Errorf("got %v", has)
	}
}
