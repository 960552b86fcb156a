package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// A term for an interface or network that there is not is never without effect in silence.
func TestTermsForNothing(t *testing.T) {
	x := twoNetworks(t)
	for name, tc := range map[string]struct {
		networks         string
		pod, namespace   notes
		refused, ignored bool
	}{
		"an interface of the annotation":   {networks: "storage/san", pod: notes{ownIP + ".net1": "10.207.0.14"}},
		"a named one":                      {networks: "storage/san@san0", pod: notes{ownIP + ".san0": "10.207.0.14"}},
		"a named one in JSON":              {networks: `[{"name":"san","interface":"san0"}]`, pod: notes{ownIP + ".san0": "10.207.0.14"}},
		"a network":                        {networks: "san@san0", pod: notes{ownIP + ".sto": "10.207.0.14"}},
		"a network, without other ones":    {pod: notes{ownIP + ".sto": "10.207.0.14"}},
		"a mistyped network":               {networks: "san", pod: notes{ownIP + ".stoo": "10.207.0.14"}, refused: true},
		"a mistyped interface":             {networks: "san@san0", pod: notes{ownIP + ".san1": "10.207.0.14"}, refused: true},
		"a mistyped first interface":       {networks: "san", pod: notes{ownPool + ".eht0": "lan"}, refused: true},
		"an interface that Multus may add": {networks: "san", pod: notes{ownIP + ".net2": "10.207.0.14"}, ignored: true},
		"interfaces unknown":               {pod: notes{ownIP + ".stoo": "10.207.0.14"}, ignored: true},
		"networks that cannot be read":     {networks: "[{", pod: notes{ownIP + ".stoo": "10.207.0.14"}, ignored: true},
		"a default for other pods":         {networks: "san@san0", namespace: notes{ownPool + ".net1": "sto"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := deployment().on(tc.pod)
			s.pod.Interfaces, s.pod.Several = furtherInterfaces(map[string]string{networksAnnotation: tc.networks})
			for _, ifName := range []string{"eth0", ""} {
				s.pod = s.pod.At(ifName, "")
				p, err := s.decideIn(x, tc.namespace, nil)
				if (err != nil) != tc.refused || len(p.Ignored) > 0 != tc.ignored {
					t.Errorf("%v, ignored %v", err, p.Ignored)
				}
				if !tc.refused && !tc.ignored && len(p.Unbound) != 1 {
					t.Errorf("it is not said that the term is for something else: %v", p.Unbound)
				}
			}
		})
	}
}

// A cached pod knows its interfaces by name.
func TestTrimKeepsInterfaces(t *testing.T) {
	for text, want := range map[string][]string{
		"":             nil,
		"[]":           nil,
		"[{":           {"?"},
		"san":          {"net1"},
		"a/san@x, san": {"x", "net2"},
		`[{"name":"a"},{"name":"b","interface":"sto0"}]`:                  {"net1", "sto0"},
		`[{"name":"a","ipam-claim-reference":"r"},{"name":"b"}]`:          {"net1", "net2"},
		`[{"name":"a","namespace":"n","cni-args":{"x":["` + "y" + `"]}}]`: {"net1"},
	} {
		o := &corev1.Pod{}
		o.Annotations = map[string]string{networksAnnotation: text}
		for _, o := range []*corev1.Pod{o, Trim(o), Trim(Trim(o))} {
			pod := FromObject(o)
			var got []string
			for _, i := range pod.Interfaces {
				got = append(got, i.IfName)
			}
			if pod.Several && got == nil {
				got = []string{"?"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s as %q: -want +got:\n%s", text, o.Annotations[networksAnnotation], diff)
			}
		}
	}
}

// Families that the network lacks are another interface's only if the pod has one.
func TestFamiliesOfOneInterface(t *testing.T) {
	x := twoNetworks(t)
	six, err := ipam.NewPlan(ipam.PlanSpec{Net: "fd00::", Mask: 64, Gateway: "fd00::1", Available: []string{"fd00::10-fd00::19"}})
	if err != nil {
		t.Fatal(err)
	}
	x.Pools.SetPool(ipam.Pool{Name: "lan6", Plan: six, Network: "lan"})
	for networks, said := range map[string]ipam.FamilyPolicy{"": ipam.RequireDualStack, "[]": ipam.RequireDualStack, "lan": ""} {
		s := deployment().on(notes{ownFamilyPolicy: "RequireDualStack"})
		s.pod.Interfaces, s.pod.Several = furtherInterfaces(map[string]string{networksAnnotation: networks})
		s.pod = s.pod.At("eth0", "sto")
		p, err := s.decideIn(x, nil, nil)
		if err != nil || p.Families.Policy != said {
			t.Errorf("networks %q: %s, %v, want %q", networks, p.Families, err, said)
		}
	}
}
