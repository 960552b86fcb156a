package workload

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// What cannot be followed is refused with the annotations, their values and their objects in the message.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		sample
		namespace notes
		reason    ipam.Reason
		says      []string
	}{
		"no address":            {deployment().on(notes{ownIP: "10.0.0.300"}), nil, ipam.ReasonInvalidAnnotation, []string{ownIP, "10.0.0.300", "Pod shop/web-5d4f8c7b9-x2x4z"}},
		"an empty entry":        {deployment().on(notes{ownIP: "10.0.0.3,"}), nil, ipam.ReasonInvalidAnnotation, []string{ownIP}},
		"no name":               {deployment().on(notes{ownPool: "Blue Pool"}), nil, ipam.ReasonInvalidAnnotation, []string{ownPool, "Blue Pool"}},
		"no policy":             {deployment().on(notes{ownRelease: "forever"}), nil, ipam.ReasonInvalidAnnotation, []string{"forever", "immutable"}},
		"no policy of galaxy":   {deployment().on(notes{galaxy: "with-pod"}), nil, ipam.ReasonInvalidAnnotation, []string{"with-pod", "immutable"}},
		"no policy, workload":   {deployment().itself(notes{galaxy: "x"}), nil, ipam.ReasonInvalidAnnotation, []string{"Deployment shop/web"}},
		"no policy, namespace":  {deployment(), notes{ownRelease: "x"}, ipam.ReasonInvalidAnnotation, []string{"Namespace shop"}},
		"not fixed-ip":          {deployment().on(notes{fixedIP: "true"}), nil, ipam.ReasonInvalidAnnotation, []string{fixedIP, "fixed-ip"}},
		"no duration":           {deployment().on(notes{fixedIP: "fixed-ip", keepFixed: "two days"}), nil, ipam.ReasonInvalidAnnotation, []string{"two days", "48h"}},
		"negative duration":     {deployment().on(notes{fixedIP: "fixed-ip", keepFixed: "-1h"}), nil, ipam.ReasonInvalidAnnotation, []string{"-1h", "500h"}},
		"no time at all":        {deployment().on(notes{ownKeep: "0s"}), nil, ipam.ReasonInvalidAnnotation, []string{"1s"}},
		"absurd duration":       {deployment().on(notes{fixedIP: "fixed-ip", keepFixed: "501h"}), nil, ipam.ReasonInvalidAnnotation, []string{"501h", "500h"}},
		"absurd duration, ours": {deployment().on(notes{ownKeep: "9000h"}), nil, ipam.ReasonInvalidAnnotation, []string{"8760h"}},
		"overflow":              {deployment().on(notes{ownKeep: "99999999999h"}), nil, ipam.ReasonInvalidAnnotation, []string{"not a duration"}},
		"no JSON":               {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"]`}), nil, ipam.ReasonInvalidAnnotation, []string{galaxyArgs, "JSON"}},
		"other JSON":            {deployment().on(notes{galaxyArgs: `{"request_ip_range":"10.0.0.2"}`}), nil, ipam.ReasonInvalidAnnotation, []string{"request_ip_range"}},
		"no range":              {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.9~10.0.0.2"]]}`}), nil, ipam.ReasonInvalidAnnotation, []string{"reversed"}},
		"an empty list":         {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"],[]]}`}), nil, ipam.ReasonInvalidAnnotation, []string{"list 2", "empty"}},
		"one address twice":     {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"],["10.0.0.2"]]}`}), nil, ipam.ReasonInvalidAnnotation, []string{"10.0.0.2 twice"}},
		"too many":              {deployment().on(notes{galaxyArgs: `{"request_ip_range":[` + strings.Repeat(`["10.0.0.2"],`, 16) + `["10.0.0.3"]]}`}), nil, ipam.ReasonInvalidAnnotation, []string{"17", "16", "…"}},
		"several ranges, kept":  {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"],["10.0.0.3"]]}`, galaxy: "immutable"}), nil, ipam.ReasonInvalidAnnotation, []string{galaxyArgs, "Deployment shop/web", "interchangeable"}},
		"several, shared":       {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"],["10.0.0.3"]]}`, eniPool: "blue"}), nil, ipam.ReasonInvalidAnnotation, []string{"interchangeable"}},
		"several, by claim":     {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"],["10.0.0.3"]]}`, ownClaim: "c"}), nil, ipam.ReasonInvalidAnnotation, []string{"interchangeable"}},
		"mask of no address":    {deployment().on(notes{keeperIP: "10.0.0.2/33"}), nil, ipam.ReasonInvalidAnnotation, []string{"10.0.0.2/33"}},
		"several for one":       {deployment().on(notes{keeperIP: "10.0.0.2/24,10.0.0.3/24"}), nil, ipam.ReasonInvalidAnnotation, []string{"ip_pool"}},
		"masks in a list":       {deployment().itself(notes{keeperPool: "10.0.0.2/24,10.0.0.3/25"}), nil, ipam.ReasonInvalidAnnotation, []string{"10.0.0.3/25"}},
		"families in a list":    {deployment().itself(notes{keeperPool: "10.0.0.2/24,2001:db8::1/24"}), nil, ipam.ReasonInvalidAnnotation, []string{"IPv6"}},
		"no gateway":            {deployment().on(notes{keeperGatew: "10.0.0.2/24"}), nil, ipam.ReasonInvalidAnnotation, []string{keeperGatew}},
		"gateway of everything": {deployment().on(notes{keeperGatew: "0.0.0.0"}), nil, ipam.ReasonInvalidAnnotation, []string{"0.0.0.0"}},
		"no shared name":        {deployment().on(notes{eniPool: "a\x00b"}), nil, ipam.ReasonInvalidAnnotation, []string{eniPool}},
		"a long shared name":    {deployment().on(notes{eniPool: strings.Repeat("x", 254)}), nil, ipam.ReasonInvalidAnnotation, []string{"253"}},

		"two policies":                {deployment().on(notes{ownRelease: "immutable", galaxy: "never"}), nil, ipam.ReasonClaimConflict, []string{ownRelease + `="immutable"`, galaxy + `="never"`, "Pod shop/web-5d4f8c7b9-x2x4z"}},
		"policies of two systems":     {statefulSet().on(notes{fixedIP: "fixed-ip", galaxy: "never"}), nil, ipam.ReasonClaimConflict, []string{fixedIP, galaxy}},
		"two durations":               {statefulSet().on(notes{fixedIP: "fixed-ip", keepFixed: "1h", ownKeep: "2h"}), nil, ipam.ReasonClaimConflict, []string{ownKeep, keepFixed}},
		"duration of another policy":  {statefulSet().on(notes{ownRelease: "never", ownKeep: "2h"}), nil, ipam.ReasonClaimConflict, []string{ownRelease, ownKeep}},
		"two claims":                  {statefulSet().on(notes{ownClaim: "a", ipClaim: "b"}), nil, ipam.ReasonClaimConflict, []string{ownClaim, ipClaim}},
		"two claims for the workload": {statefulSet().having("a", "b"), nil, ipam.ReasonClaimConflict, []string{"a and b", "StatefulSet shop/db"}},
		"several, by its claim":       {deployment().on(notes{galaxyArgs: `{"request_ip_range":[["10.0.0.2"],["10.0.0.3"]]}`}).having("c"), nil, ipam.ReasonInvalidAnnotation, []string{"interchangeable"}},
		"claim and shared pool":       {statefulSet().on(notes{ownClaim: "a", eniPool: "a"}), nil, ipam.ReasonClaimConflict, []string{ownClaim, eniPool}},
		"two addresses":               {statefulSet().on(notes{ownIP: "10.0.0.2", keeperIP: "10.0.0.3/24"}), nil, ipam.ReasonClaimConflict, []string{ownIP, keeperIP}},
		"not of the list":             {deployment().on(notes{ownIP: "10.0.0.9"}).itself(notes{keeperPool: "10.0.0.2/24,10.0.0.3/24"}), nil, ipam.ReasonClaimConflict, []string{"Pod shop/web-5d4f8c7b9-x2x4z", "Deployment shop/web", "10.0.0.9", "10.0.0.2/24"}},
		"another mask":                {deployment().on(notes{keeperIP: "10.0.0.2/25"}).itself(notes{keeperPool: "10.0.0.2/24"}), nil, ipam.ReasonClaimConflict, []string{"/25", "/24", "masks"}},
		"gateway elsewhere":           {barePod().on(notes{keeperIP: "10.0.0.2/24", keeperGatew: "10.0.1.1"}), nil, ipam.ReasonClaimConflict, []string{keeperIP, keeperGatew, "subnet"}},
		"gateway of its own":          {barePod().on(notes{keeperIP: "10.0.0.2/24", keeperGatew: "10.0.0.2"}), nil, ipam.ReasonClaimConflict, []string{"is one of"}},
		"gateway of another family":   {barePod().on(notes{ownIP: "10.0.0.2", keeperGatew: "2001:db8::1"}), nil, ipam.ReasonClaimConflict, []string{"subnet"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := tc.decide(tc.namespace)
			why, ok := errors.AsType[*ipam.Refusal](err)
			if !ok || why.Reason != tc.reason || why.Hint == "" {
				t.Fatalf("%+v, %v; want a refusal %s with a hint", p, err, tc.reason)
			}
			for _, text := range tc.says {
				if !strings.Contains(why.Message, text) {
					t.Errorf("%q does not say %q", why.Message, text)
				}
			}
			if len(why.Message) > 600 {
				t.Errorf("%d characters", len(why.Message))
			}
		})
	}
}

// An owner that cannot be found is in nobody's way but of those whose address is to be kept for it.
func TestUnsure(t *testing.T) {
	s := deployment()
	s.own.unsure = ipam.Refuse(ipam.ReasonWorkloadUnknown, "gone")
	if p, err := s.on(notes{ownIP: "10.0.0.5"}).decide(nil); err != nil || p.Release != ReleaseWithPod {
		t.Errorf("plain: %+v, %v", p, err)
	}
	if p, err := s.on(notes{ownClaim: "mine"}).decide(nil); err != nil || p.Claim != "shop/mine" {
		t.Errorf("named: %+v, %v", p, err)
	}
	for _, kept := range []notes{{galaxy: "immutable"}, {ownKeep: "1h"}, {keeperIP: "10.0.0.1/24"}} {
		if p, err := s.on(kept).decide(nil); err == nil || err.Error() != "gone" {
			t.Errorf("%v: %+v, %v", kept, p, err)
		}
	}
}

// Where each part of a policy is from, as trace and explain show it.
func TestSources(t *testing.T) {
	s := deployment().on(notes{galaxy: "immutable", ownRelease: "immutable", ownIP: "10.0.0.2", keepFixed: "1h"}).
		itself(notes{keeperPool: "10.0.0.2/24", galaxy: "never"})
	p, err := s.decide(notes{ownPool: "blue", ownKeep: "1h"})
	want := []Source{
		{"Pod shop/web-5d4f8c7b9-x2x4z", ownIP, "10.0.0.2", "Sets"},
		{"Pod shop/web-5d4f8c7b9-x2x4z", ownRelease, "immutable", "Release"},
		{"Pod shop/web-5d4f8c7b9-x2x4z", galaxy, "immutable", "Release"},
		{"Deployment shop/web", keeperPool, "10.0.0.2/24", "Sets"},
		{"Namespace shop", ownPool, "blue", "Pool"},
	}
	if diff := cmp.Diff(want, p.Sources); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// Names that are made for claims are names of objects, and differ where the texts do.
func TestClaimName(t *testing.T) {
	for text, want := range map[string]string{
		"web": "deploy-web", "a.b": "deploy-a.b",
		"Web": "deploy-web-" + hashOf("deploy-Web"), "web!": "deploy-web-" + hashOf("deploy-web!"),
		"蓝": "deploy-" + hashOf("deploy-蓝"),
		strings.Repeat("x", 253): "deploy-" + strings.Repeat("x", 253-7-11) + "-" +
			hashOf("deploy-"+strings.Repeat("x", 253)),
	} {
		if got := claimName("deploy", text); got != want || len(got) > 253 {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for kind, want := range map[string]string{
		"TApp": "tapp", "Deploy": "deploy.example.org", "Pool": "pool.example.org", "A-B": "a-b.example.org", "StatefulSet": "statefulset",
	} {
		if got := prefixOf("example.org", kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// The claim of a shared pool tells its name where that is a name of an object.
func TestSharedName(t *testing.T) {
	for name, want := range map[string]string{"payments": "payments", "a.b-c": "a.b-c"} {
		if got := SharedName(SharedClaim(name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, other := range []string{"deploy-web", "pool", "pool-", "pool-Payments"} {
		if got := SharedName(other); got != "" {
			t.Errorf("%s is that of pool %q", other, got)
		}
	}
}
