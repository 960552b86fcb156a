package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// twoNetworks has the pools lan and lan2 of network lan, sto of network sto, and named, which serves who names it.
func twoNetworks(t testing.TB) *index.Index {
	t.Helper()
	x := index.New()
	for name, net := range map[string]string{"lan": "10.206.0.0", "lan2": "10.208.0.0", "sto": "10.207.0.0", "named": "10.212.0.0"} {
		available := strings.TrimSuffix(net, "0") + "10-" + strings.TrimSuffix(net, "0") + "19"
		plan, err := ipam.NewPlan(ipam.PlanSpec{
			Net: net, Mask: 24, Gateway: strings.TrimSuffix(net, "0") + "1", Available: []string{available},
		})
		if err != nil {
			t.Fatal(err)
		}
		p := ipam.Pool{Name: name, Plan: plan, Network: strings.TrimSuffix(name, "2"), NotDefault: name == "named"}
		if name == "named" {
			p.Network = ""
		}
		x.Pools.SetPool(p)
	}
	return x
}

// What the annotations of a pod come to for one of its interfaces.
func TestTermsByInterface(t *testing.T) {
	x := twoNetworks(t)
	const lan, sto = "lan", "sto"
	for name, tc := range map[string]struct {
		ifName, network string
		pod, namespace  notes
		sets, pools     string
		claim           string
		release         ReleasePolicy
		refused         ipam.Reason
	}{
		"an address of the network":          {"eth0", lan, notes{ownIP: "10.206.0.12"}, nil, "10.206.0.12", "", "", ReleaseWithPod, ""},
		"an address of another network":      {"net1", sto, notes{ownIP: "10.206.0.12"}, nil, "", "", "", ReleaseWithPod, ""},
		"an address of no pool":              {"net1", sto, notes{ownIP: "10.99.0.12"}, nil, "10.99.0.12", "", "", ReleaseWithPod, ""},
		"one of the two in no pool":          {"net1", sto, notes{ownIP: "10.206.0.12,10.99.0.1"}, nil, "10.99.0.1, 10.206.0.12", "", "", ReleaseWithPod, ""},
		"one of each network":                {"net1", sto, notes{ownIP: "10.206.0.12,10.207.0.12"}, nil, "10.206.0.12, 10.207.0.12", "", "", ReleaseWithPod, ""},
		"galaxy's lists":                     {"net1", sto, notes{galaxyArgs: `{"request_ip_range":[["10.206.0.12"],["10.207.0.13"]]}`}, nil, "10.207.0.13", "", "", ReleaseWithPod, ""},
		"a term of the interface":            {"net1", sto, notes{ownIP: "10.206.0.12", ownIP + ".net1": "10.207.0.14"}, nil, "10.207.0.14", "", "", ReleaseWithPod, ""},
		"a term of the network":              {"net1", sto, notes{ownIP + ".sto": "10.207.0.14"}, nil, "10.207.0.14", "", "", ReleaseWithPod, ""},
		"interface before network":           {"net1", sto, notes{ownIP + ".sto": "10.207.0.14", ownIP + ".net1": "10.207.0.15"}, nil, "10.207.0.15", "", "", ReleaseWithPod, ""},
		"a term of another interface":        {"eth0", lan, notes{ownIP + ".net1": "10.207.0.14"}, nil, "", "", "", ReleaseWithPod, ""},
		"a term binds whatever it names":     {"net1", sto, notes{ownIP + ".net1": "10.206.0.12"}, nil, "10.206.0.12", "", "", ReleaseWithPod, ""},
		"an interface with dots":             {"eth0.100", sto, notes{ownIP + ".eth0.100": "10.207.0.14"}, nil, "10.207.0.14", "", "", ReleaseWithPod, ""},
		"a pool of another network":          {"net1", sto, notes{ownPool: "lan"}, nil, "", "", "", ReleaseWithPod, ""},
		"pools of both networks":             {"net1", sto, notes{ownPool: "lan,sto"}, nil, "", "sto", "", ReleaseWithPod, ""},
		"a pool that there is not":           {"net1", sto, notes{ownPool: "stoo"}, nil, "", "stoo", "", ReleaseWithPod, ""},
		"pools in their order":               {"eth0", lan, notes{ownPool: "lan2, lan"}, nil, "", "lan2,lan", "", ReleaseWithPod, ""},
		"a default of another network":       {"net1", sto, nil, notes{ownPool: "lan"}, "", "", "", ReleaseWithPod, ""},
		"a default and an address inside":    {"eth0", "", notes{ownIP: "10.212.0.15"}, notes{ownPool: "named"}, "10.212.0.15", "named", "", ReleaseWithPod, ""},
		"a default and an address outside":   {"eth0", "", notes{ownIP: "10.206.0.12"}, notes{ownPool: "named"}, "10.206.0.12", "", "", ReleaseWithPod, ""},
		"a policy of the interface":          {"net1", sto, notes{ownRelease: "immutable", ownRelease + ".net1": "never"}, nil, "", "", claimName("deploy", "web/net1"), ReleaseNever, ""},
		"a policy of the pod":                {"eth0", lan, notes{ownRelease: "immutable", ownRelease + ".net1": "never"}, nil, "", "", "deploy-web", ReleaseImmutable, ""},
		"an address elsewhere, and a policy": {"net1", sto, notes{ownRelease: "immutable", ownIP: "10.206.0.12"}, nil, "", "", claimName("deploy", "web/net1"), ReleaseImmutable, ""},
		"families of no network":             {"net1", sto, notes{ownFamilyPolicy: "RequireDualStack"}, nil, "", "", "", ReleaseWithPod, ""},
		"an address with a length":           {"eth0", lan, notes{ownIP: "10.206.0.12/24"}, nil, "10.206.0.12", "", "", ReleaseWithPod, ""},
		"another network, but one interface": {"eth0", lan, notes{ownIP: "10.207.0.12"}, nil, "10.207.0.12", "", "", ReleaseWithPod, ""},
		"another pool, but one interface":    {"eth0", lan, notes{ownPool: "sto"}, nil, "", "sto", "", ReleaseWithPod, ""},
		"a default pool, but one interface":  {"eth0", lan, nil, notes{ownPool: "sto"}, "", "", "", ReleaseWithPod, ""},
		"a pool named twice":                 {"eth0", lan, notes{ownPool: "lan,lan"}, nil, "", "", "", "", ipam.ReasonInvalidAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			s := deployment().on(tc.pod)
			s.pod = s.pod.At(tc.ifName, tc.network)
			p, err := s.decideIn(x, tc.namespace, nil)
			if tc.refused != "" {
				if err == nil {
					t.Fatalf("%+v, %v", p, err)
				}
				return
			}
			var sets []string
			for _, set := range p.Sets {
				sets = append(sets, ipaddr.FormatSet(set))
			}
			claim := ""
			if tc.claim != "" {
				claim = "shop/" + tc.claim
			}
			got := []string{strings.Join(sets, "; "), strings.Join(p.Pools, ","), p.Claim, string(p.Release)}
			if diff := cmp.Diff([]string{tc.sets, tc.pools, claim, string(tc.release)}, got); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// A misspelt key is named with the one that may be meant, for an interface as well.
func TestMisspelt(t *testing.T) {
	s := deployment().on(understood(notes{ownPrefix + "ipp.net1": "x", ownPrefix + "release-polcy": "never", ownIP: "10.206.0.12"}))
	p, err := s.decideIn(twoNetworks(t), nil, nil)
	var got []string
	for _, i := range p.Ignored {
		got = append(got, i.String())
	}
	const of = " of Pod shop/web-5d4f8c7b9-x2x4z: there is no such annotation, did you mean "
	want := []string{ownPrefix + "ipp.net1" + of + ownIP + ".net1?", ownPrefix + "release-polcy" + of + ownRelease + "?"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
