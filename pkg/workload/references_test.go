package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// References are found by the interface that Multus gives an element.
func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct {
		networks, first string
		want            []Reference
		problem         string
	}{
		"nothing":                     {},
		"names alone":                 {networks: "a, b/c@net3"},
		"no reference":                {networks: `[{"name":"a","interface":"x"}]`},
		"broken, without a reference": {networks: `[{"name"`},
		"by position": {
			networks: `[{"name":"a"},{"name":"b","ipam-claim-reference":"vm.b"},{"name":"c","interface":"x","ipam-claim-reference":"vm.c"}]`,
			want:     []Reference{{IfName: "net2", Claim: "vm.b"}, {IfName: "x", Claim: "vm.c"}},
		},
		"an element that is null counts": {
			networks: `[null,{"ipam-claim-reference":"vm.b"}]`, want: []Reference{{IfName: "net2", Claim: "vm.b"}},
		},
		"the first network": {
			first: `[{"name":"a","ipam-claim-reference":"vm.a"}]`, networks: `[{"ipam-claim-reference":"vm.b"}]`,
			want: []Reference{{IfName: "eth0", Claim: "vm.a", First: true}, {IfName: "net1", Claim: "vm.b"}},
		},
		"an empty reference": {networks: `[{"name":"a","ipam-claim-reference":""}]`},
		"an object":          {networks: `{"ipam-claim-reference":"vm.a"}`, problem: networksAnnotation},
		"a list of lists":    {first: `[["ipam-claim-reference"]]`, problem: defaultNetworkAnnotation},
		"cut off":            {networks: `[{"ipam-claim-reference":"vm.a"}`, problem: networksAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			o := &corev1.Pod{}
			o.Annotations = map[string]string{networksAnnotation: tc.networks, defaultNetworkAnnotation: tc.first}
			for what, p := range map[string]Pod{"read": FromObject(o), "cached": FromObject(Trim(o))} {
				if diff := cmp.Diff(tc.want, p.References); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
				if (p.ReferenceProblem == "") != (tc.problem == "") || !strings.Contains(p.ReferenceProblem, tc.problem) {
					t.Errorf("%s: problem %q, want %q", what, p.ReferenceProblem, tc.problem)
				}
			}
		})
	}
}

// Which reference counts for an interface, and what is refused.
func TestReferenceOf(t *testing.T) {
	two := []Reference{{IfName: "net1", Claim: "vm.a"}, {IfName: "net2", Claim: "vm.b"}}
	for name, tc := range map[string]struct {
		all    []Reference
		ifName string
		want   string
		part   string
	}{
		"of its interface":            {all: two, ifName: "net2", want: "vm.b"},
		"of no interface: the first":  {all: two, want: "vm.a"},
		"of another interface":        {all: two, ifName: "eth0"},
		"none":                        {},
		"no name":                     {all: []Reference{{IfName: "net1", Claim: "A_b"}}, ifName: "net1", part: `"A_b"`},
		"a very long name":            {all: []Reference{{IfName: "net1", Claim: strings.Repeat("a", 3000)}}, part: "…"},
		"two of one interface":        {all: append(two, Reference{IfName: "net1", Claim: "vm.c"}), ifName: "net1", part: "two IPAMClaims"},
		"one of two interfaces":       {all: append(two, Reference{IfName: "net3", Claim: "vm.b"}), ifName: "net3", part: "two interfaces"},
		"others' faults do not count": {all: append(two, Reference{IfName: "net3", Claim: "B!"}), ifName: "net1", want: "vm.a"},
	} {
		t.Run(name, func(t *testing.T) {
			ref, ok, refusal := Pod{Namespace: "shop", Name: "p", References: tc.all}.At(tc.ifName, "").reference()
			switch {
			case tc.part != "":
				if refusal == nil || refusal.Reason != ipam.ReasonInvalidAnnotation ||
					!strings.Contains(refusal.Message, tc.part) ||
					len(refusal.Message) > 400 {
					t.Errorf("%v, want %q", refusal, tc.part)
				}
			case refusal != nil || ok != (tc.want != "") || ref.Claim != tc.want:
				t.Errorf("%+v, %v, %v; want %q", ref, ok, refusal, tc.want)
			}
		})
	}
}

// FuzzReferences: whatever the annotations say, each reference has an interface and a name, and the cache's copy says
// the same.
func FuzzReferences(f *testing.F) {
	for _, text := range []string{
		`[{"name":"a","interface":"x","ipam-claim-reference":"vm.a"},{"ipam-claim-reference":"vm.b"}]`, `a,b@net1`, `[null]`,
		`{"ipam-claim-reference":"a"}`, `[{"ipam-claim-reference":`, `["ipam-claim-reference"]`, ``,
	} {
		f.Add(text, "net1")
	}
	f.Fuzz(func(t *testing.T, text, ifName string) {
		o := &corev1.Pod{}
		o.Annotations = map[string]string{networksAnnotation: text, defaultNetworkAnnotation: text}
		p := FromObject(o)
		for _, r := range p.References {
			if r.IfName == "" || r.Claim == "" {
				t.Errorf("%+v", r)
			}
		}
		if ref, ok, refusal := p.At(ifName, "").reference(); ok && (refusal != nil || ifName != "" && ref.IfName != ifName) {
			t.Errorf("%+v, %v", ref, refusal)
		}
		if diff := cmp.Diff(p.References, FromObject(Trim(o)).References); diff != "" {
			t.Errorf("-pod +cached:\n%s", diff)
		}
	})
}
